"""The pages of a pane: one for the model, one for a person (why, what if, where they stand on each curve). No vault.

*Histograms.* Private rows count fine bins of every column first, and that release is all that curves need. A
column of real numbers has bins of its own for values at its bounds, which have no width; here they get a millionth of the
range, so that the edges of a histogram increase. In pictures such narrow bins would be invisible however many rows they
hold: there they are drawn together with their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..accounting import JsonValue, rounded_up
from ..results import Attribution, Curve
from ..results.archive import json_bytes, write_bytes
from ..results.band_claim import weakest
from ..results.base import Drawn
from ..results.checks import plain_value, shown_text
from ..results.counterfactuals import Counterfactuals
from ..show import Table
from ..show.pages import Content, fragment, fragment_html, page_content, report_content
from .manifest import KINDS

if TYPE_CHECKING:
    from ..accounting.guarantee import Guarantee
    from ..model import Model
    from ..schema import Level
    from .pane import Pane


FORMAT = "vitrail-person/1"
NEEDS_MODEL = (
    "Reasons need the model: load the pane with model=. Private rows are in it, and with the model they give Shapley values."
)
TOO_LITTLE = (
    "There is too little data to tell this person's reasons at this price: with {rows} rows at {epsilon} the noise is as "
    "large as all reasons together, so they are not listed. What the model says here is its own answer all the same."
)


def inside_table(pane: Pane) -> Table:
    """What a pane holds: parts, their shares of the price, how accurate they are."""
    shares, accuracy = pane.shares(), pane.accuracy()
    rows = []
    for name, share in shares.items():
        title = KINDS[name].title if name in KINDS else name
        rows.append((title, f"{100 * share:.1f} %", accuracy.get(title, "not readable by this version; kept as it is")))
    return Table(("part", "of the price", "how accurate"), tuple(rows), numeric=(1,))


def questions_table(pane: Pane) -> Table:
    """The questions that were paid for."""
    rows = tuple((str(line.entry), line.date, line.question, rounded_up(line.epsilon)) for line in pane.bill)
    return Table(("entry", "day", "question", "ε by itself"), rows, numeric=(0, 3))


def label_lines(pane: Pane) -> tuple[tuple[str, str], ...]:
    """What the privacy label of everything that comes from a pane says beside the promise."""
    paid = f"paid once, in {len(pane.bill)} questions, by {pane.created}; whatever is computed from it is free"
    return ("Model", pane.made_for.name), ("Bill", paid), ("Made with", pane.tool)


def pane_fragment(pane: Pane) -> str:
    """What a notebook shows of a pane."""
    return fragment_html(repr(pane), (pane.guarantee.sentence,), tables=[("", inside_table(pane), "")])


def pane_content(pane: Pane) -> Content:
    """The page of the model."""
    content: dict[str, object] = {"report": None, "notes": ()}
    if "global" in pane.shares():
        content = report_content(pane.report) | {"notes": pane.report.notes}
    tables = {"inside": inside_table(pane), "questions": questions_table(pane)}
    # The bill of a pane is a table of its own questions, not that of an account.
    return "pane.html", content | tables | {"label_lines": label_lines(pane), "model": pane.made_for.name, "bill": None}


def person_content(person: Person) -> Content:
    """The page of a person."""
    pane, e = person.pane, person.explanation
    asked_model, results = person.model is not None and e is not None, (person, e, person.counterfactuals)
    content: dict[str, object] = {
        "label_lines": label_lines(pane),
        "dataset": pane.dataset,
        "model": person.model_name,
        "asked_model": asked_model,
        "too_little": TOO_LITTLE.format(rows=f"{pane.n_rows_public:,}", epsilon=pane.guarantee.brief)
        if e is not None and e.mostly_noise is not None and e.mostly_noise[0]
        else "",
        "needs_model": NEEDS_MODEL if NEEDS_MODEL in person.notes else "",
        "output": "" if e is None else f"{(e.outputs if asked_model else e.predictions)[0]:.3g}",
        "output_range": pane.made_for.range if person.model is None else (person.model.lo, person.model.hi),
        "kinds": " and ".join(sorted({standing.curve.kind for standing in person.standings})),
        "curves_claim": weakest(standing.curve.band_claim for standing in person.standings) if person.standings else None,
        "person": Table(("column", "value"), tuple((name, shown_text(value)) for name, value in person.point.items())),
        "notes": tuple(dict.fromkeys(note for result in results if result is not None for note in result.notes)),
    }
    return "person.html", content


@dataclass(frozen=True, eq=False)
class Standing:
    """Where somebody stands on a curve.

    Attributes
    ----------
    column : str
        The column.
    value : str, int, float or bool
        What they have there.
    curve : Curve
        The curve.
    output : float
        The curve at that value.
    half_width : float or None
        Of its noise band there; ``curve.band_claim`` says how often that holds.
    """

    column: str
    value: Level
    curve: Curve
    output: float
    half_width: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Person(Drawn):
    """One person, explained from a pane.

    Attributes
    ----------
    point : dict
        What they have in each column.
    explanation : Attribution or None
        What each column contributes; None where the pane has nothing local.
    counterfactuals : Counterfactuals or None
        What would change the model's answer; None without that part, or without a model.
    standings : tuple of Standing
        Where they stand on each curve, the largest contribution first.
    pane : Pane
        What it was computed from.
    notes : tuple of str
        What could not be said, and why.
    model : Model or None
        Which was asked, if one was.
    """

    point: dict[str, Level]
    explanation: Attribution | None
    counterfactuals: Counterfactuals | None
    standings: tuple[Standing, ...]
    pane: Pane
    notes: tuple[str, ...] = ()
    model: Model | None = None

    def __repr__(self) -> str:
        what = {"contributions": self.explanation, "counterfactuals": self.counterfactuals, "standings": self.standings}
        return f"Person({', '.join(name for name, part in what.items() if part)}; {self.pane!r})"

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as plain JSON values."""
        standings: list[JsonValue] = [
            {
                "column": standing.column,
                "value": plain_value(standing.value),
                "kind": standing.curve.kind,
                "output": standing.output,
                "half_width": standing.half_width,
                "band_claim": standing.curve.band_claim.value,
            }
            for standing in self.standings
        ]
        return {
            "format": FORMAT,
            "dataset": self.pane.dataset,
            "model": self.model_name,
            "guarantee": self.pane.guarantee.to_json(),
            "point": {name: plain_value(value) for name, value in self.point.items()},
            "explanation": None if self.explanation is None else self.explanation.to_json(),
            "counterfactuals": None if self.counterfactuals is None else self.counterfactuals.to_json(),
            "standings": standings,
            "notes": list(self.notes),
        }

    @property
    def model_name(self) -> str:
        """Of the model that is explained."""
        return self.pane.made_for.name if self.model is None or self.model is self.pane.model else self.model.name

    def write_json(self, path: str | Path) -> Path:
        """Write ``to_json`` as text; returns where."""
        return write_bytes(path, json_bytes(self.to_json()))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the pane that it was computed from."""
        return self.pane.guarantee


page_content.register(Person, person_content)


@fragment.register
def _(person: Person) -> str:
    results = (person.explanation, person.counterfactuals)
    return "".join(fragment(result) for result in results if result is not None)


def standing_on(curve: Curve, value: Level) -> Standing:
    """Where somebody with this value stands."""
    half = None
    if curve.lower is not None and curve.upper is not None:
        wide = curve.half_widths
        if curve.categorical:
            half = float(wide[list(curve.x).index(value)])
        else:
            half = float(np.interp(float(value), np.asarray(curve.x), wide))
    return Standing(curve.label, value, curve, float(curve(value)), half)
