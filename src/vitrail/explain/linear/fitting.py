"""Pay once, explain anybody for ever: what ``LocalLinear.fitting`` returns, to be quoted, called or audited.

*Training.* An explanation's promise is for the rows that it is computed from, given the model. If the same rows trained the
model under (epsilon_f, delta_f)-differential privacy, basic composition adds that: epsilons and deltas add, and the promise
is about training data too. Test: tests/explain/linear/test_local.py.

*Moments* of all rows, or of every cell of a partition: one release from which the statistics of every point follow. *What a
row contributes.* With y, u_c, h of ``coordinates`` and f in [-1, 1], the products listed in ``tensors``, each kind times a
public scale s: s_M0, s_F0 f, ..., s_M1 y, s_F1 f y, ..., s_M2 u_c (x) u_d, ..., s_T u_b (x) u_c (x) u_d, over columns b < c
< d.

*Bound.* |u_c|^2 <= rho_c^2, equal for a categorical column, so with the elementary symmetric polynomials e_k of all rho_c^2
the squared norm is at most

    s_M0^2 + s_F0^2 + (s_H0^2 + s_G0^2) h^2 + (s_h^2 + s_fh^2 + s_hh^2 h^2) k/(8p)^2 + s_E^2 k/(8p)^2 e_1
    + (s_M1^2 + s_F1^2 + (s_H1^2 + s_G1^2) h^2) e_1 + (s_M2^2 + s_F2^2 + s_H2^2 h^2) e_2 + s_T^2 e_3,      h = k/(8p)

for k numbers (a code counts as another one) among p columns (those that cells are cut by left out; a row lies in one cell,
so the number of cells does not matter). A row with every number at an end and |f| = 1 attains it. Each part's vectors are
given bounds that leave room for the vault's grid, so no row is clipped. Cost: one Gaussian sum. Neighbours: as the dataset
declares. Test:
tests/explain/linear/test_moments_bound.py. Scales: ``solve.linear.cells``.

*Cells.* ``tensors`` replaces a weight by a line in the squared distance, around each point. That is exact for 1 - d^2/4 and
close for mild weights; a sharp one bends too much over all distances at once. So cut the rows into K cells by the levels of
one or more categorical columns, release the moments of every cell, and fit the line cell by cell: within a cell distances
vary less (by the cut columns not at all), and near cells get the steep part of the weight, far ones the flat. A row lies in
one cell: its contribution, with zeros for all other cells, is as long as before, and shorter by the cut columns, which are
public inside a cell. Noise falls on every cell, so what an explanation feels of it grows as sqrt K.

*Survey.* Which columns to cut by is a function of second moments: a tenth of the price (in mu^2) is paid for one noisy sum
of (1, y) (1, y)^T, whose rows have norm at most 1 + rho^2, rho^2 = sum_c rho_c^2. Where noise is above all that cells could
gain, which schema, weight, price and declared row count tell, nothing is surveyed, and the synopsis has one cell and the
whole price. Mean excess loss on ACS income (1 338 936 rows, stable weight, epsilon 0.1): 5.2e-5 with one cell, 2.6e-5 cut by
sex or by marital status, 1.2e-5 by both (K = 10), 3.6e-5 by occupation (K = 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from ..._types import Floats, Indices
from ...accounting import JsonValue
from ...accounting.guarantee import Guarantee
from ...errors import InvalidInput
from ...results.synopsis import Synopsis
from ...schema import Schema
from ...solve.linear.cells import choose_columns, choose_scales, explained_shares, pays
from ...solve.linear.coordinates import Coordinates, Partition
from ...solve.linear.labelled_rows import RowsExplainer, explain_on
from ...solve.linear.problem import LocalProblem
from ...solve.linear.tensors import middles, part_shapes
from ...solve.linear.weights import Weight
from ...vault import Block, PrivateData, ProductSum
from ..elsewhere import elsewhere
from ..private_rows import PrivateRowsExplainer
from ..quoted import try_model
from ..recipe import Ask, Conversation, Given, GlobalExplainer, Recipe, Terms, key_of, scaled, sigma_of
from .options import Cells, Moments, Rows

F = TypeVar("F")
Training: TypeAlias = tuple[float, float] | None
VERSION, SURVEY_VERSION = 2, 1
SURVEY_SHARE = 0.1


def checked_training(given: tuple[float, float] | None) -> Training:
    """(epsilon, delta) under which a model was trained on the very rows that explain it, if that is given."""
    if given is None:
        return None
    try:
        epsilon, delta = (float(number) for number in given)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"training_guarantee is {given!r}; it must be a pair (epsilon, delta)") from error
    if not (0 <= epsilon < float("inf") and 0 <= delta < 1):
        raise InvalidInput(f"training_guarantee is {given!r}; epsilon must be at least 0 and finite, delta in [0, 1)")
    return epsilon, delta


def with_training(promise: Guarantee, training: Training) -> Guarantee:
    """The promise for training and explanation together."""
    if training is None:
        return promise
    epsilon, delta = promise.epsilon + training[0], promise.delta + training[1]
    return Guarantee(epsilon, delta, 0.0, promise.neighbours, "training-data", promise.basis)


@dataclass(frozen=True)
class Fitting(GlobalExplainer[F]):
    """What a fit would buy: made by :meth:`LocalLinear.fitting`.

    Attributes
    ----------
    make : callable
        Makes the conversation; whatever is wrong with model or columns is an error.
    of : tuple, optional
        The explainer that it is a fit of, and the kind of fit.
    """

    make: Callable[[], Conversation[F]]
    of: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        if self.of is not None:
            object.__setattr__(self, "data", self.of[0].data)

    def conversation(self) -> Conversation[F]:
        """What would be said to the vault."""
        return self.make()

    def __call__(self, *, epsilon: Given = None, mu: Given = None) -> F:
        """Buy it, for a price. Of a service private rows are bought; what explains on them is made here, with the model."""
        if self.of is None or not isinstance(self.of[1], Rows) or elsewhere(self) is None:
            return super().__call__(epsilon=epsilon, mu=mu)
        local, kind = self.of
        bought = rows_explainer(self.data, local.problem, local.sampling_rate)(epsilon=epsilon, mu=mu)
        weight = None if local.weight is None else local.problem.weight
        made = explain_on(local.problem, bought, weight=weight, n_sampled=kind.n_sampled)
        promise = with_training(made.guarantee, checked_training(local.training_guarantee))
        return cast("F", replace(made, guarantee=promise))


def synopsis_conversation(
    data: PrivateData, problem: LocalProblem, kind: Moments | Cells, training: Training, key: str | None
) -> Conversation[Synopsis]:
    """Moments of the rows, from which every point is explained: one question, or a survey and one."""
    columns = () if isinstance(kind, Moments) else None if kind.columns is None else tuple(kind.columns)

    def recipe(terms: Terms) -> Recipe[Synopsis]:
        made = yield from cells_recipe(problem, terms) if columns is None else moments_recipe(problem, columns, terms)
        return replace(made, guarantee=with_training(made.guarantee, training))

    known = problem.identity(key)
    cut: JsonValue = None if columns is None else list(columns)
    identity = None if known is None else {"kind": "synopsis", "version": VERSION, **known, "cells": cut}
    label = f"synopsis of {problem.schema.n_columns} columns for explanations of {problem.model.name}"
    return Conversation(data, recipe, label, identity, (problem.model,))


def rows_explainer(data: PrivateData, problem: LocalProblem, sampling_rate: float) -> PrivateRowsExplainer:
    """The private rows that a fit of rows stands on."""
    return PrivateRowsExplainer(data, columns=problem.schema.names, sampling_rate=sampling_rate)


def rows_conversation(
    data: PrivateData, problem: LocalProblem, kind: Rows, training: Training, weight: Weight | None, sampling_rate: float
) -> Conversation[RowsExplainer]:
    """Private rows, on which every point is explained: their questions depend neither on the model nor on the weight."""
    paid = rows_explainer(data, problem, sampling_rate).conversation()

    def recipe(terms: Terms) -> Recipe[RowsExplainer]:
        rows = yield from paid.recipe(terms)
        n_sampled = min(kind.n_sampled, terms.public_rows)
        made = explain_on(problem, rows, weight=weight, n_sampled=n_sampled)
        return replace(made, guarantee=with_training(made.guarantee, training))

    # Whoever has begun to buy these rows is not rehearsed again, whatever the model: so it is tried here.
    try_model(problem.model, problem.schema)
    return Conversation(data, recipe, paid.label, paid.identity, (problem.model,), sampling_rate=sampling_rate)


def moments_recipe(problem: LocalProblem, cells: tuple[str, ...], terms: Terms) -> Recipe[Synopsis]:
    """One question, for the whole price; ``cells`` names the categorical columns that rows are cut by."""
    release = yield Ask(moments_question(problem, cells=cells), 1.0)
    return Synopsis(
        schema=problem.schema,
        weight=problem.weight,
        labels=problem.labels,
        intercept=problem.intercept,
        output_range=(problem.model.lo, problem.model.hi),
        cells=cells,
        scales=choose_scales(Partition(problem.schema, cells), problem.weight),
        parts=tuple(release.parts[str(index)] for index in range(len(release.parts))),
        sigma=sigma_of(release),
        n_rows_public=terms.n_rows_public,
        guarantee=release.guarantee,
        cost=release.cost,
        dataset=terms.dataset,
        model=problem.model,
    )


def cells_recipe(problem: LocalProblem, terms: Terms) -> Recipe[Synopsis]:
    """A survey, where that can pay, and the moments of the cells that it finds worth their noise."""
    schema, weight, n_rows = problem.schema, problem.weight, terms.n_rows_public
    if not pays(schema, weight, terms.mu_of_a_row, n_rows):
        return (yield from moments_recipe(problem, (), terms))
    survey = yield Ask(survey_question(schema), SURVEY_SHARE, f"survey of {schema.n_columns} columns, to choose cells")
    shares = explained_shares(schema, survey.parts["0"], sigma_of(survey))
    rest = terms.scaled(1 - SURVEY_SHARE)
    chosen = choose_columns(schema, weight, rest.mu_of_a_row, n_rows, shares)
    made = yield from scaled(moments_recipe(problem, chosen, rest), 1 - SURVEY_SHARE)
    return replace(made, cost=made.cost + survey.cost, guarantee=terms.promise(made, survey))


def moments_question(problem: LocalProblem, *, cells: tuple[str, ...] = ()) -> ProductSum:
    """The sum of all products, cell by cell.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    >>> asked = moments_question(LocalProblem(schema, model, vt.weights.polynomial()))
    >>> asked.lefts, asked.rights
    ((1, 4, 1, 3), (7, 2, 2, 1))
    """
    partition = Partition(problem.schema, cells)
    partition.whole.check_size()
    rows = MomentRows(problem, partition, choose_scales(partition, problem.weight))
    sizes, bounds = part_shapes(partition), rows.bounds()
    roomy = [tuple(map(_roomy, of_part, shape)) for of_part, shape in zip(bounds, sizes, strict=True)]
    (lefts, rights), (left_bounds, right_bounds) = zip(*sizes, strict=True), zip(*roomy, strict=True)
    return ProductSum(rows, lefts, rights, left_bounds=left_bounds, right_bounds=right_bounds)


def survey_question(schema: Schema) -> ProductSum:
    """The sum of (1, y) (1, y)^T. It is about no model, so other fits at the same price share its answer.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> round(survey_question(schema).l2_bound, 3)
    1.375
    """
    coordinates = Coordinates(schema)
    coordinates.check_size()
    size = coordinates.size + 1
    bound = _roomy(math.sqrt(1 + float(coordinates.squared_lengths.sum())), size)

    def rows(block: Block) -> tuple[Floats, ...]:
        y = coordinates.of_rows(block.features)
        u = np.column_stack([np.ones(len(y)), y])
        return u, u

    key = key_of("survey", SURVEY_VERSION)
    return ProductSum(rows, lefts=(size,), rights=(size,), left_bounds=(bound,), right_bounds=(bound,), key=key)


class MomentRows:
    """What a row contributes, as factors of the products; the left ones stand in the columns of the row's cell."""

    def __init__(self, problem: LocalProblem, cells: Partition, scales: Mapping[str, float]) -> None:
        self._problem, self._cells, self._scales = problem, cells, scales

    def bounds(self) -> list[tuple[float, float]]:
        """The largest norms of the left and right vectors of each part."""
        c, s = self._cells.rest, self._scales
        numbers, h, lengths = len(c.numeric_indices), c.largest_h, c.squared_lengths
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
        """Left and right factors of every part, in turn."""
        c, s, features = self._cells.rest, self._scales, block.features
        cell = self._cells.index(features)
        f = self._problem.label(block.predictions(self._problem.model))[:, None]
        y = c.of_rows(self._cells.rest_features(features))
        each = c.squares(y)
        h = np.add.accumulate(each, axis=1)[:, -1:] if each.shape[1] else np.zeros_like(f)
        ones = np.ones_like(f)
        scalars = [s["M0"] * ones, s["F0"] * f, s["H0"] * h, s["G0"] * f * h, s["h"] * each, s["fh"] * f * each]
        vectors = [s["M1"] * ones, s["F1"] * f, s["H1"] * h, s["G1"] * f * h]
        made = [self._placed(ones, cell), np.hstack([*scalars, s["hh"] * h * each])]
        made += [self._placed(np.hstack(vectors), cell), y]
        if each.shape[1]:
            made += [self._placed(s["E"] * each, cell), y]
        shared = np.hstack([s["M2"] * ones, s["F2"] * f, s["H2"] * h, s["T"] * y])
        for j in middles(c):
            span = c.slices[j]
            made.append(self._placed(shared[:, : 3 + span.start], cell))
            made.append((y[:, span, None] * y[:, None, span.stop :]).reshape(len(y), -1))
        return tuple(made)

    def _placed(self, left: Floats, cell: Indices) -> Floats:
        if self._cells.count == 1:
            return left
        made = np.zeros((len(left), self._cells.count, left.shape[1]))
        made[np.arange(len(left)), cell] = left
        return made.reshape(len(left), -1)


def _roomy(bound: float, size: int) -> float:
    """A bound that no rounding to the vault's grid (2**-20 of it, half a cell per entry) and no float error passes."""
    return bound * (1 + math.sqrt(size) * 2.0**-20 + 1e-12)
