"""Words and numbers of the pages: what roles and states are called, and how epsilons and times are written."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from ....accounting import rounded_down, rounded_up

ROLE_WORDS: Mapping[str, str] = {"owner": "owners", "analyst": "analysts", "reader": "readers", "auditor": "auditors"}

STATE_WORDS: Mapping[str, tuple[str, str]] = {
    "waiting": ("Waits for approval", "At this price the owner has to approve it. Nothing is charged before."),
    "queued": ("In the queue", "Another question to the same rows is being answered. This one is next, or soon."),
    "running": ("At work", "It is paid for, and is being answered."),
    "done": ("Done", "The answer is below. Looking at it again is free."),
    "failed": ("Failed", "No answer came of it."),
    "refused": ("Refused", "Nothing was charged."),
    "declined": ("Declined", "Nothing was charged."),
}
"""What a state is called, and what it means."""

FINISHED = frozenset({"done", "failed", "refused", "declined"})

VERDICT_WORDS: Mapping[str, str] = {
    "clear": "Clear: what is there should stand out of the noise.",
    "weak": "Weak: the largest effects should show, the others may not.",
    "mostly noise": "Mostly noise: at this price the answer will not tell much.",
}

MADE_UP_VERDICT_WORDS: Mapping[str, str] = {
    "clear": "Perhaps clear: on made-up rows, spread over all that the schema allows, it stands out; real rows often show "
    "less.",
    "weak": "Perhaps weak: on made-up rows, spread over all that the schema allows, the largest effects show; real rows "
    "often show less.",
    "mostly noise": "Mostly noise, on made-up rows: at this price the answer will not tell much.",
}
"""The same where no histograms were bought, and rows are drawn from the schema."""

BETTER = "Histograms, bought first, make this estimate better."

EPSILON = (
    "Epsilon is a price in privacy: it bounds what an answer can tell about any one person in the data. A higher epsilon "
    "buys a sharper answer, and every answer is paid from one budget that is never refilled.",
    "Prices do not simply add up. The noise of each answer is drawn by itself, so that several answers together tell less, "
    "and cost less, than the sum of their epsilons. What is left is the largest single question that still fits.",
)
"""What epsilon is, in two paragraphs."""

KIND_WORDS: Mapping[str, str] = {
    "opened": "the account was opened with its budget",
    "capped": "the owner set what somebody may learn at most",
    "reserved": "the price of a question was set aside",
    "charged": "a part of it was spent, before any row was read",
    "released": "the answer to a charge was stored",
    "finished": "the question is complete; what was set aside and not spent went back",
    "replayed": "a stored answer was handed out again",
    "joined": "somebody works on what another has bought, and it counts as an answer handed out again",
    "kept": "somebody's own work on answers was stored",
    "freed": "the owner gave back what was set aside and not spent",
}
"""What the kinds of entries of a ledger mean."""


def cost(value: object) -> str:
    """An epsilon that is spent or asked for: rounded up."""
    return rounded_up(_number(value)) if value is not None else "–"


def paid(epsilon: float) -> str:
    """A price that was paid, which is never nothing."""
    return cost(epsilon) if epsilon > 0 else "almost 0"


def left(value: object) -> str:
    """An epsilon that is left: rounded down."""
    return rounded_down(max(0.0, _number(value))) if value is not None else "–"


def sentence(text: object) -> str:
    """A sentence of the service as a page shows it: with a capital, and one mark at its end.

    Examples
    --------
    >>> sentence("it must be a number"), sentence("Did you mean 'age'?")
    ('It must be a number.', "Did you mean 'age'?")
    """
    told = str(text).strip()
    return f"{told[:1].upper()}{told[1:]}" + ("" if not told or told[-1] in ".?!" else ".")


def width(value: float) -> str:
    """Half a band, in two digits that are read as they stand.

    Examples
    --------
    >>> width(334.2), width(0.0123), width(14.6)
    ('330', '0.012', '15')
    """
    return f"{Decimal(f'{value:.1e}'):,f}" if 1e-5 < value < 1e12 else f"{value:.1e}"


def minute(time: object) -> str:
    """A time of the service, in UTC, to the minute.

    Examples
    --------
    >>> minute("2026-05-04T09:31:07+00:00"), minute(None)
    ('2026-05-04 09:31', '–')
    """
    return str(time)[:16].replace("T", " ") if time else "–"


def digest(value: object) -> str:
    """The beginning of a digest, enough to compare by eye."""
    text = str(value or "")
    return f"{text[:16]}…" if len(text) > 20 else text


def count(number: int, one: str, many: str = "") -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "column"), count(2, "person", "people")
    ('1 column', '2 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def share(part: object, whole: object) -> float:
    """A part of a whole in per cent, within 0 and 100."""
    whole_number = _number(whole)
    return 0.0 if whole_number <= 0 else max(0.0, min(100.0, 100 * _number(part) / whole_number))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float(str(value))
