"""Cells: a synopsis for sharper weights.

``tensors`` replaces a weight by a line in the squared distance, around each point. That is exact for 1 - d^2/4 and close for
mild weights; a sharp one bends too much over all distances at once. So cut the rows into K cells by the levels of one or
more categorical columns, release the moments of every cell, and fit the line cell by cell: within a cell distances vary less
(by the cut columns not at all), and near cells get the steep part of the weight, far ones the flat.

*Cost.* A row lies in one cell: its contribution, with zeros for all other cells, is as long as before, and shorter by the
cut columns, which are public inside a cell. Noise falls on every cell, so what an explanation feels of it grows as sqrt K.

*Which columns.* Those that explain most of the variance of d^2 among rows and points, through every column they go along
with. That is a function of second moments: a tenth of the price (in mu^2) is paid for a *survey*, one noisy sum of (1, y)
(1, y)^T, whose rows have norm at most 1 + rho^2, rho^2 = sum_c rho_c^2. Around a row w drawn like the others, d^2 has the
variance 4 w^T C w, on average 4 tr(C S), with covariance C and second moment S of y; the levels of column c explain 4 tr(B_c
S) of it, B_c the covariance of the means per level. Columns are added as long as they lower

    g_K^2 + (MISS_COST m)^2 prod_c (1 - share_c)^2

the noise of K cells (``expected_gradient_noise``) against what a line misses of the weight (m of ``typical_line``), which
falls with the square of the unexplained variance. Where noise is above all that cells could gain, which schema, weight,
price and declared row count tell, nothing is surveyed, and the synopsis has one cell and the whole price.

Mean excess loss on ACS income (1 338 936 rows, stable weight, epsilon 0.1): 5.2e-5 with one cell, 2.6e-5 cut by sex or by
marital status, 1.2e-5 by both (K = 10), 3.6e-5 by occupation (K = 10).
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...results.synopsis import Synopsis
from ...schema import Schema
from ...solve.linear.coordinates import Cells, Coordinates
from ...solve.linear.tensors import typical_line
from ..promises import basis_of, guarantee_of
from .moments import check_schema, expected_gradient_noise, question, roomy
from .moments import fit as fit_moments
from .problem import LocalProblem

if TYPE_CHECKING:
    from ...vault import Block, PrivateData, ProductSum

Floats = NDArray[np.float64]

VERSION = 1
MOST_CELLS = 64
MISS_COST = 0.0155
"""What a line that misses the weight by 1 costs, as an error |g| of the gradient: 5.2e-5 of excess loss on ACS."""
SURVEY_SHARE = 0.1
RARE = 4.0
"""Levels with fewer rows than so many standard deviations of their noisy count explain nothing that could be seen."""


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
        The price of everything, the survey included.
    key : str, optional
        A name for a model that is a bare function.
    columns : tuple of str, optional
        The categorical columns to cut by. If not given they are chosen, by a survey where that can pay.

    Returns
    -------
    Synopsis

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> from vitrail.solve.linear.weights import exponential
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> rows = {"dose": np.linspace(0, 1, 90_000), "ward": np.array(["A", "B"] * 45_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=90_000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: np.where(x[:, 1] == 1, 0.5 * x[:, 0], 0.5), range=(0, 1))
    >>> fit(LocalProblem(schema, model, exponential(0.2)), data, mu=0.4).cells
    ('ward',)
    """
    if columns is not None:
        return fit_moments(problem, data, mu, key=key, cells=tuple(columns))
    check_schema(problem, data)
    problem.model.check(problem.schema)
    survey_mu = math.sqrt(SURVEY_SHARE) * mu
    rest = mu**2 - survey_mu**2 - 4e-12  # both costs are rounded up to whole trillionths
    worth = pays(problem, mu, data.n_rows_public) and rest > 0
    if not worth or not data.quote(question(problem, key=key), mu=mu).fits:
        return fit_moments(problem, data, mu, key=key)
    release = data.ask(survey_question(problem.schema), mu=survey_mu)
    assert release.sigma is not None
    shares = explained_shares(problem.schema, release.parts["0"], release.sigma)
    chosen = choose_columns(problem, math.sqrt(rest), data.n_rows_public, shares)
    made = fit_moments(problem, data, math.sqrt(rest), key=key, cells=chosen)
    return replace(made, cost=made.cost + release.cost, guarantee=guarantee_of(data, basis_of([made, release])))


def pays(problem: LocalProblem, mu: float, n_rows_public: int) -> bool:
    """Whether two cells that explained half of the variance of d^2 would be a clear gain; from public facts alone."""
    missed = MISS_COST * typical_line(Cells(problem.schema).whole, problem.weight)[2]
    noise = expected_gradient_noise(Cells(problem.schema), problem.weight, mu, n_rows_public)
    return 2 * noise**2 + 0.25 * missed**2 < 0.8 * (noise**2 + missed**2)


def choose_columns(problem: LocalProblem, mu: float, n_rows_public: int, shares: dict[str, float]) -> tuple[str, ...]:
    """The columns to cut by, from public facts and the shares that a survey found; none where one cell is best."""
    missed = MISS_COST * typical_line(Cells(problem.schema).whole, problem.weight)[2]

    def expected(columns: tuple[str, ...]) -> float:
        noise = expected_gradient_noise(Cells(problem.schema, columns), problem.weight, mu, n_rows_public)
        return noise**2 + (missed * math.prod(1 - shares[name] for name in columns)) ** 2

    chosen: tuple[str, ...] = ()
    while True:
        wider = [(*chosen, name) for name in shares if name not in chosen]
        wider = [columns for columns in wider if _is_cut(problem.schema, columns)]
        best = min(wider, key=expected, default=chosen)
        if expected(best) >= expected(chosen):
            return chosen
        chosen = best


def _is_cut(schema: Schema, columns: tuple[str, ...]) -> bool:
    """Whether these columns leave something to explain by, in not too many cells."""
    leaves = any(width and name not in columns for name, width in zip(schema.names, Coordinates(schema).widths, strict=True))
    return leaves and Cells(schema, columns).count <= MOST_CELLS


def survey_question(schema: Schema) -> ProductSum:
    """The sum of (1, y) (1, y)^T.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> round(survey_question(schema).l2_bound, 3)
    1.375
    """
    from ...vault import ProductSum  # here, so that a stored synopsis can be read without loading the vault

    coordinates = Coordinates(schema)
    coordinates.check_size()
    size = coordinates.size + 1
    bound = roomy(math.sqrt(1 + float(coordinates.squared_lengths.sum())), size)

    def rows(block: Block) -> tuple[Floats, ...]:
        y = coordinates.of_rows(block.features)
        u = np.column_stack([np.ones(len(y)), y])
        return u, u

    return ProductSum(
        rows,
        lefts=(size,),
        rights=(size,),
        left_bounds=(bound,),
        right_bounds=(bound,),
        key=json.dumps({"kind": "survey", "version": VERSION}),
        label=f"survey of {schema.n_columns} columns, to choose cells",
    )


def explained_shares(schema: Schema, surveyed: Floats, sigma: float) -> dict[str, float]:
    """How much of the variance of d^2 the levels of each categorical column explain, from a survey (1 + n, 1 + n)."""
    coordinates = Coordinates(schema)
    count = max(float(surveyed[0, 0]), 1.0)
    moments = (surveyed + surveyed.T) / (2 * count)
    mean, second = moments[0, 1:], moments[1:, 1:]
    whole = float(np.sum((second - np.outer(mean, mean)) * second))
    shares = {}
    for name, place, table in zip(schema.names, coordinates.slices, coordinates.tables, strict=True):
        if table is None or table.shape[1] == 0:
            continue
        frequencies = 1 / len(table) + coordinates.scale * table @ mean[place]
        sums = mean / len(table) + coordinates.scale * table @ second[place]
        sums[:, place] = table * frequencies[:, None] / coordinates.scale
        common = frequencies * count > RARE * sigma * coordinates.scale
        means = sums[common] / frequencies[common, None] - mean
        between = (means * frequencies[common, None]).T @ means
        share = float(np.sum(between * second)) / whole if whole > 0 else 0.0
        shares[name] = min(max(share, 0.0), 1.0)
    return shares
