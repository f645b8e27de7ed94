"""The pages of a pane: one for the model, one for a person (why, what if, where they stand on each curve). No vault.

*Histograms.* Private rows count fine bins of every column first, and that release is all that curves need. A
column of real numbers has bins of its own for values at its bounds, which have no width; here they get a millionth of the
range, so that the edges of a histogram increase. In pictures such narrow bins would be invisible however many rows they
hold: there they are drawn together with their neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..accounting import JsonValue, rounded_up
from ..results import Attribution, Curve
from ..results.archive import json_bytes, write_bytes
from ..results.band_claim import weakest
from ..results.base import Drawn
from ..results.checks import plain_value, shown_text
from ..results.counterfactuals import Counterfactuals
from ..results.curve import Density
from ..results.effects import Effects
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..schema import Column, Numeric
from ..schema.bins import Bins
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
WIDTH_AT_BOUND = 1e-6
"""Of the range."""
NARROW = 1 / 128
"""Of the range: narrower bins are drawn together with their neighbours."""


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
        report = replace(pane.report, marginals=drawn_marginals(pane.marginals))
        content = report_content(report) | {"notes": report.notes}
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


def usable_bins(bins: Bins, column: Column) -> Bins:
    """The bins with edges that increase.

    Examples
    --------
    >>> from vitrail.solve.rows.histograms import fine_bins
    >>> column = Numeric(0, 10)
    >>> [round(edge, 6) for edge in usable_bins(fine_bins("dose", column, 4), column).edges]
    [0.0, 1e-05, 0.001, 5.0, 9.99999, 10.0]
    """
    if bins.edges is None or bins.integer or bins.n_intervals < 3 or not isinstance(column, Numeric):
        return bins
    low, high = float(column.low), float(column.high)
    width = WIDTH_AT_BOUND * (high - low)
    made = [low, low + width]
    for edge in bins.edges[2:-2]:  # zero is a bin without width, too
        made.append(max(made[-1] + width, min(high - width, edge)))
    return replace(bins, edges=(*made, high - width, high))


def marginals_of(rows: PrivateRows) -> Marginals:
    """The histograms of all columns of private rows. Their cost and promise are those of the rows, of which they are a part.

    The histograms alone are one of the rows' releases. But who has them from a pane or a file has the rows as well.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"city": vt.Categorical(["Bern", "Genf"]), "speaks": vt.Categorical(["de", "fr"])})
    >>> people = {"city": np.repeat(["Bern", "Genf"], 5000), "speaks": np.repeat(["de", "fr"], 5000)}
    >>> data = vt.PrivateData(people, schema, name="swiss", n_rows_public=10_000, budget=vt.Budget(1, 1e-6))
    >>> marginals_of(vt.private_rows(data, epsilon=1.0)).shares["city"].round(1).tolist()
    [0.5, 0.5]
    """
    bins = tuple(usable_bins(each, rows.schema[each.name]) for each in rows.bins)
    counts = {each.name: count for each, count in zip(bins, rows.counts, strict=True)}
    return Marginals(
        rows.dataset, bins, MappingProxyType(counts), rows.counts_sigma, rows.n_rows_public, rows.cost, rows.guarantee
    )


def drawn_marginals(marginals: Marginals) -> Marginals:
    """The same histograms for pictures: narrow bins joined to their neighbours.

    The noise of k joined bins is sqrt(k) times that of one. There is one sigma for all, so it is the largest: bands of the
    other bins are drawn wider than they need be.
    """
    bins, counts, joined = [], {}, 1
    for column_bins in marginals.bins:
        wide, number = _joined(column_bins, np.asarray(marginals.counts[column_bins.name]))
        if wide.edges is not None and column_bins.edges is not None:
            joined = max(joined, int(np.diff(np.searchsorted(column_bins.edges, wide.edges)).max()))
        bins.append(wide)
        counts[column_bins.name] = number
    sigma = marginals.sigma * math.sqrt(joined)
    return replace(marginals, bins=tuple(bins), counts=MappingProxyType(counts), sigma=sigma)


def with_drawn_densities(report: Report) -> Report:
    """The same curves, with the histogram at their foot as it is drawn."""
    return replace(report, pdp=_redrawn(report.pdp), ale=_redrawn(report.ale))


def _redrawn(effects: Effects | None) -> Effects | None:
    if effects is None:
        return None
    return replace(effects, curves=MappingProxyType({name: _visible(curve) for name, curve in effects.curves.items()}))


def _visible(curve: Curve) -> Curve:
    density = curve.density
    if density is None or density.edges is None:
        return curve
    keep = _kept_edges(density.edges)
    shares = np.add.reduceat(density.shares, np.flatnonzero(keep)[:-1])
    return replace(curve, density=Density(density.edges[keep], shares))


def _joined(bins: Bins, counts: Floats) -> tuple[Bins, Floats]:
    if bins.edges is None:
        return bins, counts
    edges = np.asarray(bins.edges)
    keep = _kept_edges(edges)
    if keep.all():
        return bins, counts
    starts = np.flatnonzero(keep)

    def label(low: float, high: float) -> str:
        return f"{math.ceil(low)} to {math.floor(high)}" if bins.integer else f"{low:.4g} to {high:.4g}"

    labels = [bins.labels[a] if b == a + 1 else label(edges[a], edges[b]) for a, b in pairwise(starts.tolist())]
    kept, count = tuple(edges[keep].tolist()), bins.n_intervals
    wide = Bins(bins.name, (*labels, *bins.labels[count:]), kept, bins.integer, bins.codes)
    return wide, np.concatenate([np.add.reduceat(counts[:count], starts[:-1]), counts[count:]])


def _kept_edges(edges: Floats) -> NDArray[np.bool_]:
    keep = np.ones(len(edges), dtype=np.bool_)
    last, least = edges[0], NARROW * (edges[-1] - edges[0])
    for place in range(1, len(edges) - 1):
        keep[place] = edges[place] - last >= least and edges[-1] - edges[place] >= least
        last = edges[place] if keep[place] else last
    return keep


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
