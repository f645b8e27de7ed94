"""The page of a pane, and its histograms. No vault.

*Histograms.* Private rows count fine bins of every column first, and that release is all that curves need. A
column of real numbers has bins of its own for values at its bounds, which have no width; here they get a millionth of the
range, so that the edges of a histogram increase. In pictures such narrow bins would be invisible however many rows they
hold: there they are drawn together with their neighbours.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..accounting import rounded_up
from ..results import Curve
from ..results.curve import Density
from ..results.effects import Effects
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..schema import Column, Numeric
from ..schema.bins import Bins
from ..show import Table
from ..show.pages import Content, fragment_html, report_content

if TYPE_CHECKING:
    from .pane import Pane


MOST_DRAWN = 100
"""Histograms on the page of a pane that has no curves."""
NO_MODEL = "none: private rows serve any model"
WIDTH_AT_BOUND = 1e-6
"""Of the range."""
NARROW = 1 / 128
"""Of the range: narrower bins are drawn together with their neighbours."""


def inside_table(pane: Pane) -> Table:
    """What a pane holds: parts, their shares of the price, how accurate they are."""
    accuracy, manifest, rows = pane.accuracy(), pane.manifest, []
    for name, share in pane.shares().items():
        title = manifest.title(name) if name in manifest.known else name
        rows.append((title, f"{100 * share:.1f} %", accuracy.get(title, "not readable by this version; kept as it is")))
    return Table(("part", "of the price", "how accurate"), tuple(rows), numeric=(1,))


def questions_table(pane: Pane) -> Table:
    """The questions that were paid for."""
    rows = tuple((str(line.entry), line.date, line.question, rounded_up(line.epsilon)) for line in pane.bill)
    return Table(("entry", "day", "question", "ε by itself"), rows, numeric=(0, 3))


def label_lines(pane: Pane) -> tuple[tuple[str, str], ...]:
    """What the privacy label of everything that comes from a pane says beside the promise."""
    paid = f"paid once, in {len(pane.bill)} questions, by {pane.created}; whatever is computed from it is free"
    return ("Model", " and ".join(pane.models) or NO_MODEL), ("Bill", paid), ("Made with", pane.tool)


def pane_fragment(pane: Pane) -> str:
    """What a notebook shows of a pane."""
    return fragment_html(repr(pane), (pane.guarantee.sentence,), tables=[("", inside_table(pane), "")])


def pane_content(pane: Pane) -> Content:
    """The page of the model; of several, or of none, histograms and what is inside."""
    content: dict[str, object] = {"report": None, "marginals": None, "notes": ()}
    if len(pane.models) != 1 and "rows" in pane.parts and pane.schema.n_columns <= MOST_DRAWN:
        content["marginals"] = drawn_marginals(pane.marginals)
    if len(pane.models) > 1:
        content["notes"] = (f"Each model has a page of its own: {', '.join(f'pane.about({n!r})' for n in pane.models)}.",)
    elif "global" in pane.shares():
        report = replace(pane.report, marginals=drawn_marginals(pane.marginals))
        content = report_content(report) | {"notes": report.notes}
    tables = {"inside": inside_table(pane), "questions": questions_table(pane)}
    # The bill of a pane is a table of its own questions, not that of an account.
    model, own = " and ".join(pane.models) or "Private rows", {"label_lines": label_lines(pane), "bill": None}
    return "pane.html", content | tables | own | {"model": model, "explained": bool(pane.models)}


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
