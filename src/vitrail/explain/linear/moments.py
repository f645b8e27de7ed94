"""The moment synopsis: one release from which the statistics of every point follow, for ever.

*What a row contributes.* With y, u_c, h of ``coordinates`` and f in [-1, 1], the products listed in ``tensors``, each kind
times a public scale s: s_M0, s_F0 f, ..., s_M1 y, s_F1 f y, ..., s_M2 u_c (x) u_d, ..., s_T u_b (x) u_c (x) u_d, over
columns b < c < d.

*Bound.* |u_c|^2 <= rho_c^2, equal for a categorical column, so with the elementary symmetric polynomials e_k of all rho_c^2
the squared norm is at most

    s_M0^2 + s_F0^2 + (s_H0^2 + s_G0^2) h^2 + (s_h^2 + s_fh^2 + s_hh^2 h^2) k/(8p)^2 + s_E^2 k/(8p)^2 e_1
    + (s_M1^2 + s_F1^2 + (s_H1^2 + s_G1^2) h^2) e_1 + (s_M2^2 + s_F2^2 + s_H2^2 h^2) e_2 + s_T^2 e_3,      h = k/(8p)

for k numbers among p columns (those that cells are cut by left out; a row lies in one cell, so the number of cells does not
matter). A row with every number at an end and |f| = 1 attains it. Each part's vectors are given
bounds that leave room for the vault's grid, so no row is clipped. Cost: one Gaussian sum. Tests:
tests/explain/linear/test_moments_bound.py.

*Scales.* Noise of standard deviation sigma on a block released with scale s is sigma/s on its sums. To first order an
explanation phi moves by (A + lambda)^-1 g, g = dA phi - db, and lambda, which the unit ball brings in, exceeds most
eigenvalues of A: what counts is |g|^2. Block t adds C_t/s_t^2 to its expectation, over points with independent, uniformly
distributed columns and slopes that owe the same to each; it adds s_t^2 N_t to the squared norm. The product of both sums is
least, (sum_t sqrt(C_t N_t))^2, for s_t^2 = sqrt(C_t/N_t). C_t follows from the schema and the weight, both public. Third
moments, most of the numbers, make for a twentieth of the noise: contracted with a point, a cube of noise is a thin matrix.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import SchemaError
from ...results.synopsis import Synopsis
from ...solve.linear.coordinates import Cells
from ...solve.linear.tensors import middles, part_shapes, typical_line, typical_squares
from ...solve.linear.weights import Weight
from .problem import LocalProblem

if TYPE_CHECKING:
    from ...vault import Block, PrivateData, ProductSum

Floats = NDArray[np.float64]

VERSION = 1
OFFSET_SQUARED = 0.2
"""A typical square of what the explanation says at y = 0, phi_0 - w.phi; f lies in [-1, 1]."""
ALONG_SHARE = 0.25
"""How much an error of the gradient along w, or of the intercept, counts: A is larger there than lambda."""


def fit(
    problem: LocalProblem, data: PrivateData, mu: float, *, key: str | None = None, cells: tuple[str, ...] = ()
) -> Synopsis:
    """Release the moments of a dataset under a model, once.

    Parameters
    ----------
    problem : LocalProblem
        Model, weight, labels, with or without intercept.
    data : PrivateData
    mu : float
        The price.
    key : str, optional
        A name for a model that is a bare function; asking again about the same one then replays the stored release.
    cells : tuple of str
        Categorical columns by whose levels the rows are cut; each cell has moments of its own.

    Returns
    -------
    Synopsis

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> from vitrail.solve.linear.weights import polynomial
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> rows = {"dose": np.linspace(0, 1, 90_000), "ward": np.array(["A", "B"] * 45_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=90_000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0], range=(0, 1))
    >>> synopsis = fit(LocalProblem(schema, model, polynomial()), data, mu=0.4)
    >>> round(float(synopsis({"dose": 0.9, "ward": "A"}).values[0, 0]), 1)
    0.2
    """
    if data.feature_schema != problem.schema:
        raise SchemaError(
            "the problem's schema is not that of the data without its target; make it from data.feature_schema"
        )
    asked = question(problem, key=key, cells=cells)
    release = data.ask(asked, mu=mu)
    assert release.sigma is not None
    return Synopsis(
        schema=problem.schema,
        weight=problem.weight,
        labels=problem.labels,
        intercept=problem.intercept,
        output_range=(problem.model.lo, problem.model.hi),
        cells=tuple(cells),
        scales=choose_scales(Cells(problem.schema, tuple(cells)), problem.weight),
        parts=tuple(release.parts[str(index)] for index in range(len(release.parts))),
        sigma=release.sigma,
        n_rows_public=data.n_rows_public,
        guarantee=release.guarantee,
        cost=release.cost,
        dataset=data.name,
        model=problem.model,
    )


def question(problem: LocalProblem, *, key: str | None = None, cells: tuple[str, ...] = ()) -> ProductSum:
    """The question behind :func:`fit`, for a quote or an audit.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.solve.linear.weights import polynomial
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> asked = question(LocalProblem(schema, vt.Model(lambda x: x[:, 0], range=(0, 1)), polynomial()))
    >>> asked.lefts, asked.rights
    ((1, 4, 1, 3), (7, 2, 2, 1))
    """
    from ...vault import ProductSum  # here, so that a stored synopsis can be read without loading the vault

    partition = Cells(problem.schema, tuple(cells))
    partition.whole.check_size()
    scales = choose_scales(partition, problem.weight)
    rows = _Rows(problem, partition, scales)
    sizes, bounds = rows.sizes(), rows.bounds()
    model = problem.model_identity(key)
    identity = {"kind": "moments", "version": VERSION, "labels": problem.labels, "model": model}
    identity |= {"scales": dict(scales), "cells": list(cells)}
    return ProductSum(
        rows,
        lefts=tuple(size for size, _ in sizes),
        rights=tuple(size for _, size in sizes),
        left_bounds=tuple(roomy(bound, size) for (bound, _), (size, _) in zip(bounds, sizes, strict=True)),
        right_bounds=tuple(roomy(bound, size) for (_, bound), (_, size) in zip(bounds, sizes, strict=True)),
        key=None if model is None else json.dumps(identity, sort_keys=True),
        label=f"synopsis of {problem.schema.n_columns} columns for explanations of {problem.model.name}",
    )


def check_schema(problem: LocalProblem, data: PrivateData) -> None:
    """Refuse a problem about other columns than the data's."""
    if data.feature_schema != problem.schema:
        raise SchemaError(
            "the problem's schema is not that of the data without its target; make it from data.feature_schema"
        )


class _Rows:
    """What a row contributes, as factors of the products; the left ones stand in the place of the row's cell."""

    def __init__(self, problem: LocalProblem, cells: Cells, scales: Mapping[str, float]) -> None:
        self._problem, self._cells, self._scales = problem, cells, scales

    def sizes(self) -> list[tuple[int, int]]:
        """Lengths of the left and right vectors of each part."""
        return list(part_shapes(self._cells))

    def bounds(self) -> list[tuple[float, float]]:
        """The largest norms of the left and right vectors of each part."""
        c, s = self._cells.rest, self._scales
        numbers, h, lengths = len(c.numeric_places), c.largest_h, c.squared_lengths
        each = numbers * c.square_middle**2
        scalars = s["M0"] ** 2 + s["F0"] ** 2 + (s["H0"] ** 2 + s["G0"] ** 2) * h**2
        scalars += (s["h"] ** 2 + s["fh"] ** 2 + s["hh"] ** 2 * h**2) * each
        vectors = s["M1"] ** 2 + s["F1"] ** 2 + (s["H1"] ** 2 + s["G1"] ** 2) * h**2
        squares = [(s["E"] * math.sqrt(each), math.sqrt(lengths.sum()))] if numbers else []
        pairs = []
        for j in middles(c):
            left = s["M2"] ** 2 + s["F2"] ** 2 + s["H2"] ** 2 * h**2 + s["T"] ** 2 * lengths[:j].sum()
            pairs.append((math.sqrt(left), math.sqrt(lengths[j] * lengths[j + 1 :].sum())))
        return [(1.0, math.sqrt(scalars)), (math.sqrt(vectors), math.sqrt(lengths.sum())), *squares, *pairs]

    def __call__(self, block: Block) -> tuple[Floats, ...]:
        c, s, features = self._cells.rest, self._scales, block.features
        cell = self._cells.index(features)
        f = self._problem.label(block.predictions(self._problem.model))[:, None]
        y = c.of_rows(self._cells.rest_features(features))
        each = c.squares(y)
        h = np.add.accumulate(each, axis=1)[:, -1:] if each.shape[1] else np.zeros_like(f)
        one = np.ones_like(f)
        scalars = [s["M0"] * one, s["F0"] * f, s["H0"] * h, s["G0"] * f * h, s["h"] * each, s["fh"] * f * each]
        vectors = [s["M1"] * one, s["F1"] * f, s["H1"] * h, s["G1"] * f * h]
        made = [self._placed(one, cell), np.hstack([*scalars, s["hh"] * h * each])]
        made += [self._placed(np.hstack(vectors), cell), y]
        if each.shape[1]:
            made += [self._placed(s["E"] * each, cell), y]
        shared = np.hstack([s["M2"] * one, s["F2"] * f, s["H2"] * h, s["T"] * y])
        for j in middles(c):
            place = c.slices[j]
            made.append(self._placed(shared[:, : 3 + place.start], cell))
            made.append((y[:, place, None] * y[:, None, place.stop :]).reshape(len(y), -1))
        return tuple(made)

    def _placed(self, left: Floats, cell: NDArray[np.intp]) -> Floats:
        if self._cells.count == 1:
            return left
        made = np.zeros((len(left), self._cells.count, left.shape[1]))
        made[np.arange(len(left)), cell] = left
        return made.reshape(len(left), -1)


def roomy(bound: float, size: int) -> float:
    """A bound that no rounding to the vault's grid (2**-20 of it, half a cell per entry) and no float error passes."""
    return bound * (1 + math.sqrt(size) * 2.0**-20 + 1e-12)


def choose_scales(cells: Cells, weight: Weight) -> Mapping[str, float]:
    """What each kind of product is multiplied by, from public facts; three digits, so that every machine finds the same."""
    costs, norms = _costs_and_norms(cells, weight)
    best = {name: (costs[name] / norms[name]) ** 0.25 if norms[name] > 0 and costs[name] > 0 else 1.0 for name in costs}
    return MappingProxyType({name: float(f"{scale / best['F1']:.3g}") for name, scale in best.items()})


def expected_gradient_noise(cells: Cells, weight: Weight, mu: float, n_rows_public: int) -> float:
    """The root mean square of |g| to expect of a synopsis at this price (module docstring); reads nothing private."""
    costs, norms = _costs_and_norms(cells, weight)
    whole = sum(math.sqrt(costs[name] * norms[name]) for name in costs)
    return whole * math.sqrt(cells.count) / (mu * n_rows_public)


def _costs_and_norms(cells: Cells, weight: Weight) -> tuple[dict[str, float], dict[str, float]]:
    """C_t and N_t of the module docstring, by kind of product, for one cell."""
    c = cells.rest
    p, columns = c.n_columns, len(c.widths)
    k, rho2 = np.array(c.widths, dtype=np.float64), c.squared_lengths
    numbers, middle, h2 = len(c.numeric_places), c.square_middle, c.largest_h**2
    w2 = typical_squares(c)
    along = ALONG_SHARE * (1 + float(w2.sum()))
    apart = len(cells.levels) / p  # the squared distance of two cells, where half of all rows agree in a column
    level, slope = (value**2 for value in typical_line(cells.whole, weight)[:2])
    steep = 4 * slope  # t contains -2 y.w
    pair_widths = pair_points = pair_norms = cube_points = cube_norms = 0.0
    for i, j in combinations(range(columns), 2):
        pair_widths += (k[i] + k[j]) / p
        pair_points += k[i] * w2[j] + k[j] * w2[i]
        pair_norms += rho2[i] * rho2[j]
    for some in combinations(range(columns), 3):
        cube_points += sum(w2[a] * (sum(k[b] for b in some) - k[a]) for a in some) / p
        cube_norms += math.prod(float(rho2[a]) for a in some)
    n = float(k.sum())
    per_vector = n * OFFSET_SQUARED + along
    number_points = sum(float((w2 + w2[j] * (k + 1)).sum()) / p for j in range(columns) if c.is_numeric[j])
    costs = {
        "M0": level * OFFSET_SQUARED * (along + apart),
        "F0": level * (along + apart),
        "H0": slope * OFFSET_SQUARED * (along + apart),
        "G0": slope * (along + apart),
        "h": level * numbers / p,
        "fh": steep * numbers / (12 * p),
        "hh": slope * numbers / p,
        "M1": level * per_vector,
        "F1": level * n + steep * along * float(w2.sum()),
        "H1": slope * per_vector,
        "G1": slope * n,
        "E": steep * number_points,
        "M2": level * pair_widths + steep * OFFSET_SQUARED * pair_points,
        "F2": steep * pair_points,
        "H2": slope * pair_widths,
        "T": steep * cube_points,
    }
    one, each = float(rho2.sum()), numbers * middle**2
    norms = {"M0": 1.0, "F0": 1.0, "H0": h2, "G0": h2, "h": each, "fh": each, "hh": each * h2, "E": each * one}
    norms |= {"M1": one, "F1": one, "H1": one * h2, "G1": one * h2}
    norms |= {"M2": pair_norms, "F2": pair_norms, "H2": pair_norms * h2, "T": cube_norms}
    return costs, norms
