"""The histograms that private rows bring along, in the form that curves and pictures use. Post-processing; no vault.

Private rows count fine bins of every column first (``rows.private_rows``), and that release is all that curves need of the
marginals. A column of real numbers has bins of its own for values at its bounds, which have no width; here they get a
millionth of the range, so that the edges of a histogram increase.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..explain.bins import Bins
from ..explain.marginals_result import Marginals
from ..explain.rows.result import PrivateRows
from ..schema import Column, Numeric

WIDTH_AT_BOUND = 1e-6
"""Of the range."""


def usable_bins(bins: Bins, column: Column) -> Bins:
    """The bins with edges that increase.

    Examples
    --------
    >>> from vitrail.explain.rows.cuts import fine_bins
    >>> column = Numeric(0, 10)
    >>> usable_bins(fine_bins("dose", column, 4), column).edges
    (0.0, 1e-05, 5.0, 9.99999, 10.0)
    """
    if bins.edges is None or bins.integer or len(bins) < 3 or not isinstance(column, Numeric):
        return bins
    low, high = float(column.low), float(column.high)
    width = WIDTH_AT_BOUND * (high - low)
    inside = [max(low + width, min(high - width, edge)) for edge in bins.edges[2:-2]]
    return replace(bins, edges=(low, low + width, *inside, high - width, high))


def marginals_of(rows: PrivateRows) -> Marginals:
    """The histograms of all columns of private rows. Their cost is that of the rows, of which they are a part.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"city": vt.Categorical(["Bern", "Genf"]), "speaks": vt.Categorical(["de", "fr"])})
    >>> people = {"city": np.repeat(["Bern", "Genf"], 5000), "speaks": np.repeat(["de", "fr"], 5000)}
    >>> data = vt.PrivateData(people, schema, name="swiss", n_rows_public=10_000, budget=vt.Budget(1, 1e-6))
    >>> marginals_of(vt.private_rows(data, epsilon=1.0)).shares["city"].round(1).tolist()
    [0.5, 0.5]
    """
    bins = tuple(usable_bins(one, rows.schema[one.name]) for one in rows.bins)
    counts = {one.name: count for one, count in zip(bins, rows.counts, strict=True)}
    return Marginals(
        rows.dataset, bins, MappingProxyType(counts), rows.counts_sigma, rows.n_rows_public, rows.cost, rows.guarantee
    )
