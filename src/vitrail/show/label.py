"""The privacy label: what is promised, to whom, at what price, and what is not promised. It heads every report."""

from __future__ import annotations

from dataclasses import dataclass

from ..accounting import rounded_up
from ..guarantee import Guarantee
from .bill import Bill
from .page import html_text

KNOWN_LIMITS = (
    "One row is taken to be one person. Somebody with k rows is protected by a promise k times as weak in mu.",
    "What was declared beforehand is public: the schema, the row count, the model. The promise says nothing about them.",
    "The model is an input: what it learned from its own training rows is not covered, unless the line above says so.",
    "Timing, memory use and other side channels of the machine are not covered.",
    "Bands show the noise that was added, for each number on its own; beside them stands how often they hold, or that "
    "nobody calibrated them. They do not show sampling error.",
)

_PROTECTS = {
    "explanation-data": "the rows these numbers were computed from, given the model",
    "training-data": "the rows these numbers were computed from, and those the model was trained on",
}
_NEIGHBOURS = {
    "add-remove": "add-remove: with or without any one row",
    "replace-one": "replace-one: any one row exchanged for another (the number of rows is not protected)",
}


@dataclass(frozen=True, slots=True)
class PrivacyLabel:
    """The lines of a privacy label, in order: a name and a text."""

    promise: str
    lines: tuple[tuple[str, str], ...]
    limits: tuple[str, ...] = KNOWN_LIMITS

    def to_html(self) -> str:
        """The label as HTML, escaped."""
        lines = "".join(
            f'<div class="line"><dt>{html_text(name)}</dt><dd>{html_text(text)}</dd></div>' for name, text in self.lines
        )
        limits = "".join(f"<li>{html_text(limit)}</li>" for limit in self.limits)
        return (
            '<section class="label"><h2>Privacy label</h2><dl>'
            f'<div class="line"><dt>Promise</dt><dd class="big">{html_text(self.promise)}</dd></div>{lines}</dl>'
            f"<details open><summary>Known limits</summary><ul>{limits}</ul></details></section>"
        )


def privacy_label(guarantee: Guarantee, *, dataset: str, bill: Bill | None = None) -> PrivacyLabel:
    """The label of a release, or of all that an account has released.

    Parameters
    ----------
    guarantee : Guarantee
        The promise for everything in the report together.
    dataset : str
        Whose rows.
    bill : Bill, optional
        What was spent of which budget.
    """
    lines = [
        ("In words", guarantee.sentence),
        ("Dataset", dataset),
        ("Protects", _PROTECTS[guarantee.protects]),
        ("Neighbours", _NEIGHBOURS[guarantee.neighbours]),
    ]
    if bill is not None:
        lines.append(("Bill", bill.sentence))
        lines.append(("Ledger head", bill.head))
    return PrivacyLabel(f"ε = {rounded_up(guarantee.epsilon)}, δ = {rounded_up(guarantee.delta)}", tuple(lines))
