"""Words and numbers of the pages: what roles and states are called, and how epsilons and times are written."""

from __future__ import annotations

from collections.abc import Mapping

from ....accounting import rounded_down, rounded_up

ROLE_WORDS: Mapping[str, str] = {"owner": "owners", "analyst": "analysts", "reader": "readers", "auditor": "auditors"}

STATE_WORDS: Mapping[str, tuple[str, str]] = {
    "waiting": ("Waits for approval", "At this price the owner has to approve it. Nothing is charged before."),
    "queued": ("In the queue", "Another question to the same rows is being answered. This one is next, or soon."),
    "running": ("At work", "It is paid for, and is being answered."),
    "done": ("Done", "The answer is below. Looking at it again is free."),
    "failed": ("Failed", "No answer came of it."),
    "refused": ("Refused", "Nothing was charged."),
    "declined": ("Declined", "The owner declined it. Nothing was charged."),
}
"""What a state is called, and what it means."""

FINISHED = frozenset({"done", "failed", "refused", "declined"})

VERDICT_WORDS: Mapping[str, str] = {
    "clear": "Clear: what is there should stand out of the noise.",
    "weak": "Weak: the largest effects should show, the others may not.",
    "mostly noise": "Mostly noise: at this price the answer will not tell much.",
}

EPSILON = (
    "Epsilon is a price in privacy: it bounds what an answer can tell about any one person in the data. A higher epsilon "
    "buys a sharper answer, and every answer is paid from one budget that is never refilled."
)


def cost(value: object) -> str:
    """An epsilon that is spent or asked for: rounded up."""
    return rounded_up(_number(value)) if value is not None else "–"


def left(value: object) -> str:
    """An epsilon that is left: rounded down."""
    return rounded_down(max(0.0, _number(value)), 3) if value is not None else "–"


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
