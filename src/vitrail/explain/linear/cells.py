"""Cells: a synopsis for sharper weights.

``tensors`` replaces a weight by a line in the squared distance, around each point. That is exact for 1 - d^2/4 and close for
mild weights; a sharp one bends too much over all distances at once. So cut the rows into K cells by the levels of one or
more categorical columns, release the moments of every cell, and fit the line cell by cell: within a cell distances vary less
(the cut columns not at all), and near cells get the steep part of the weight, far ones the flat.

*Cost.* A row lies in one cell: its contribution, with zeros for all other cells, is as long as before, and shorter by the
cut columns, which are public inside a cell. Noise falls on every cell, so what an explanation feels of it grows as sqrt K.

*Which columns*, without a look at the data: the cells should tell apart what the model says. On public rows, uniform over
the schema, the share of the model's variance that the levels of a column explain; the best column that the noise allows,
then the next. How many cells: as long as their noise (``expected_gradient_noise``) stays below what the line misses of the
weight (``typical_line``). Both follow from schema, weight, price and declared row count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import Categorical
from .coordinates import Cells
from .moments import expected_gradient_noise
from .moments import fit as fit_moments
from .problem import LocalProblem
from .synopsis import Synopsis
from .tensors import typical_line

if TYPE_CHECKING:
    from ...vault import PrivateData

MOST_CELLS = 64
PROBE_ROWS = 4096
NOISE_PER_MISS = 0.007
"""The largest |g| that is worth its cells, per unit of what the line misses: calibrated on public data (docs/local.md)."""


def fit(
    problem: LocalProblem,
    data: PrivateData,
    mu: float,
    *,
    key: str | None = None,
    columns: tuple[str, ...] | None = None,
) -> Synopsis:
    """Release the moments of every cell, once.

    Parameters
    ----------
    problem : LocalProblem
    data : PrivateData
    mu : float
        The price.
    key : str, optional
        A name for a model that is a bare function.
    columns : tuple of str, optional
        The categorical columns to cut by; chosen from public facts if not given.

    Returns
    -------
    Synopsis

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> from vitrail.explain.linear.weights import exponential
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> rows = {"dose": np.linspace(0, 1, 9000), "ward": np.array(["A", "B"] * 4500)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=9000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: np.where(x[:, 1] == 1, 0.5 * x[:, 0], 0.5), range=(0, 1))
    >>> fit(LocalProblem(schema, model, exponential(0.2)), data, mu=0.4).cells
    ('ward',)
    """
    if columns is None:
        columns = choose_columns(problem, mu, data.n_rows_public)
    return fit_moments(problem, data, mu, key=key, cells=columns)


def choose_columns(problem: LocalProblem, mu: float, n_rows_public: int) -> tuple[str, ...]:
    """The columns to cut by, from public facts alone; none where one cell is best."""
    missed = typical_line(Cells(problem.schema).whole, problem.weight)[2]
    scores = explained_shares(problem)
    chosen: tuple[str, ...] = ()
    for name in sorted(scores, key=lambda one: -scores[one]):
        wider = (*chosen, name)
        if len(wider) == problem.schema.n_columns:
            break
        cells = Cells(problem.schema, wider)
        if cells.count > MOST_CELLS:
            continue
        if expected_gradient_noise(cells, problem.weight, mu, n_rows_public) <= NOISE_PER_MISS * missed:
            chosen = wider
    return chosen


def explained_shares(problem: LocalProblem) -> dict[str, float]:
    """How much of the model's variance on public rows the levels of each categorical column explain."""
    raw = problem.schema.probe_rows(PROBE_ROWS)
    f = problem.at(raw)
    f = np.where(np.isfinite(f), f, 0.0) - np.nanmean(f)
    whole = max(float(f @ f), 1e-300)
    shares = {}
    for place, (name, column) in enumerate(problem.schema.items()):
        if isinstance(column, Categorical) and len(column.levels) > 1:
            levels = raw[:, place].astype(np.intp)
            rows = np.bincount(levels, minlength=len(column.levels))
            sums = np.bincount(levels, weights=f, minlength=len(column.levels))
            # Less what as many random groups would explain by chance.
            chance = (len(column.levels) - 1) / (len(f) - 1)
            shares[name] = float((sums**2 / np.maximum(rows, 1)).sum()) / whole - chance
    return shares
