"""Gram sum: add up w u u^T (and w y u) over the rows, for one query or for thousands at once.

A row contributes, to query q with centre z, the matrix w d d^T and, with ``cross``, the vector w y d, where d = u -
z. Embedded isometrically (off-diagonal entries count twice) its norm is

    w |d| sqrt(|d|^2 + y^2)      (w |d|^2 without cross),

so it is bounded by lowering w, without ever forming n^2 numbers per row. Over Q queries a row's norm is at most
``joint_bound``: sqrt(Q) * l2_bound unless a smaller one is asked for, which then clips rows jointly. Two ways to sum,
each with its own argument for the bound after rounding: ``DirectProducts`` for a few queries, ``SharedProduct`` for many.

The exact integer sums are finer than the noise needs. They are rounded to a coarser grid h, which moves each coordinate by
at most h/2 on either of two neighbouring datasets, so the sensitivity grows by h sqrt(Q (n^2 + n)), less than one part in
4000 by the choice of h, and is charged for. Noise: std sigma on the diagonal and the cross terms, sigma/sqrt 2 off the
diagonal, which is isotropic noise of std sigma in the isometric embedding; each entry rounded. mu = sensitivity/sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._types import Floats
from ...errors import InvalidInput
from ..engines.row_pass import Summation
from ..public_facts import PublicFacts
from ..rows.block import Block
from ..rows.predictions import Predictions
from ..rows.row_function import RowFunction
from ..sums.gram_products import DirectProducts, SharedProduct
from ..sums.grid import coarse_step, rounded_to
from ..sums.totals import ExactTotals, Integers, narrowed
from .question import Answer, RowQuestion, RowSumPlan, sigma_for

SHARED_FROM_QUERIES = 8
"""From how many queries on one shared product is faster than one Gram product each."""


@dataclass(frozen=True, eq=False)
class GramSum(RowQuestion):
    """The noisy weighted Gram matrix of a vector per row, around one centre or many.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block`; returns u (rows, size), or (u, y) with ``cross``, y of shape (rows,).
    size : int
        Length n of u.
    l2_bound : float
        Bound on a row's contribution to one query; larger ones get a smaller weight.
    row_norm : float
        Rows with |u| above it are clipped to it. Centres must lie inside it.
    cross : bool
        Also release sum w y d. |y| is clipped to ``y_bound``.
    y_bound : float
        See ``cross``.
    centres : array (queries, size), optional
        Public points z; d = u - z. Without them there is one query, around 0.
    weight : callable, optional
        Element-wise function of the distances |d| (rows, queries); values are clipped to [0, 1]. Default: 1.
    row_weights : callable, optional
        Takes a :class:`Block`; returns further weights (rows, queries), clipped to [0, 1].
    queries : int, optional
        Number of queries when only ``row_weights`` tells them apart.
    joint_bound : float, optional
        Bound on a row's contribution to all queries together; default sqrt(queries) * l2_bound.
    key, label, rate : optional
        As for :class:`BoundedSum`.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
    >>> rows = {"a": np.full(2000, 0.5), "b": np.full(2000, 0.25)}
    >>> data = vt.PrivateData(rows, schema, name="squares", n_rows_public=2000, budget=vt.Budget(2, 1e-6))
    >>> moments = data.ask(vt.GramSum(lambda block: block.features, size=2, l2_bound=2.0, row_norm=1.5), epsilon=1.5)
    >>> moments.value.shape
    (2, 2)
    """

    kind = "gram-sum"
    described = ("size", "l2_bound", "row_norm", "cross", "y_bound", "queries", "joint_bound", "centres")
    fn: Callable[[Block], object]
    size: int
    l2_bound: float
    row_norm: float = 1.0
    cross: bool = False
    y_bound: float = 1.0
    centres: NDArray[np.float64] | None = None
    weight: Callable[[Floats], Floats] | None = None
    row_weights: Callable[[Block], Floats] | None = None
    queries: int = 1
    joint_bound: float = math.inf
    key: str | None = None
    label: str | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        functions = [name for name in ("weight", "row_weights") if getattr(self, name) is not None]
        bounds = ("l2_bound", "row_norm", "y_bound")
        self._check(functions=("fn", *functions), wholes={"size": 10**5, "queries": 10**6}, positives=bounds)
        queries = self.queries
        if self.centres is not None:
            queries = self._check_centres(queries)
        object.__setattr__(self, "queries", queries)
        whole = math.sqrt(queries) * self.l2_bound
        joint = whole if self.joint_bound == math.inf else _checks.positive("joint_bound", self.joint_bound, of="a GramSum")
        object.__setattr__(self, "joint_bound", min(joint, whole))
        object.__setattr__(self, "l2_bound", min(self.l2_bound, joint))
        self._check_rate()

    def _check_centres(self, queries: int) -> int:
        centres = np.array(self.centres, dtype=np.float64, ndmin=2)
        if centres.ndim != 2 or centres.shape[1] != self.size or not np.isfinite(centres).all():
            raise InvalidInput(
                f"centres have shape {centres.shape}; finite values of shape (queries, {self.size}) are expected"
            )
        if queries not in (1, len(centres)):
            raise InvalidInput(f"queries is {queries}, but there are {len(centres)} centres; leave queries out")
        if np.linalg.norm(centres, axis=1).max() > self.row_norm * (1 + 1e-9):
            raise InvalidInput(f"a centre lies outside row_norm = {self.row_norm}; raise row_norm or move the centre")
        centres.setflags(write=False)
        object.__setattr__(self, "centres", centres)
        return len(centres)

    def row_function(self) -> RowFunction:
        """Everything that runs on rows, as one function returning u [, y], weights."""
        shapes: tuple[tuple[int, ...], ...] = ((self.size,), (1,), (self.queries if self.row_weights else 0,))

        def call(block: Block) -> tuple[object, object, object]:
            returned = self.fn(block)
            if self.cross:
                if not (isinstance(returned, tuple) and len(returned) == 2):
                    raise InvalidInput("the function of this GramSum must return (u, y) because cross=True")
                u, y = returned
            else:
                u, y = returned, np.zeros(len(block))
            return u, y, self.row_weights(block) if self.row_weights else np.zeros((len(block), 0))

        return RowFunction(call, shapes, "the function of this GramSum")

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Look at the functions on public rows and public distances."""
        self._probe_weight()
        return super().probe(facts, predictions)

    def plan(self, mu: float, facts: PublicFacts) -> GramSumPlan:
        """Fix sigma and the coarse grid."""
        step, rounding = coarse_step(self.joint_bound, self.queries * (self.size**2 + self.size))
        sensitivity = facts.farthest(self.joint_bound) + rounding
        way = SharedProduct if self.queries >= SHARED_FROM_QUERIES else DirectProducts
        width = self.queries * (self.size * (self.size + 1) // 2 + (self.size if self.cross else 0))
        products = way(self, facts.device)
        return GramSumPlan(self, width, sensitivity, sigma_for(sensitivity, mu), step, products, rate=self.rate or 1.0)

    def public_distances(self) -> Floats:
        """Distances at which the weight is tried."""
        return np.linspace(0, 2 * self.row_norm, 64 * self.queries).reshape(64, self.queries)

    def _probe_weight(self) -> None:
        if self.weight is None:
            return
        distances = self.public_distances()
        try:
            weights = np.asarray(self.weight(distances.copy()), dtype=np.float64)
        except Exception as error:
            raise InvalidInput(f"weight fails on public distances: {type(error).__name__}: {error}") from error
        if weights.shape != distances.shape:
            raise InvalidInput(
                f"weight returned shape {weights.shape} for distances of shape {distances.shape}; it is element-wise"
            )
        moved = np.asarray(self.weight(distances[::-1].copy()))
        same = np.array_equal(weights[::-1], moved, equal_nan=True)
        for row in (1, 32, 62):  # alone among others that it has not met
            alone = np.repeat(distances[5:6], len(distances), axis=0)
            alone[row] = distances[row]
            same = same and np.array_equal(np.asarray(self.weight(alone))[row], weights[row], equal_nan=True)
        if not same:
            raise InvalidInput(
                "weight is not an element-wise function of the distance: other rows, or their order, changed its values"
            )
        if np.isnan(weights).any() or weights.min() < 0:
            raise InvalidInput(
                "weight is negative or NaN at some distance within the declared row_norm; it must lie in [0, 1]"
            )


@dataclass(frozen=True)
class GramSumPlan(RowSumPlan[GramSum]):
    """A Gram sum with its noise fixed."""

    products: DirectProducts | SharedProduct

    @property
    def stored_numbers(self) -> int:
        """Whole matrices."""
        return self.question.queries * (self.question.size**2 + self.question.size)

    @property
    def pairs(self) -> int:
        """Entries of a symmetric matrix that are released."""
        return self.question.size * (self.question.size + 1) // 2

    @property
    def query_width(self) -> int:
        """Numbers released per query."""
        return self.width // self.question.queries

    @property
    def stds(self) -> Floats:
        """One sigma on the diagonal and the cross terms, sigma/sqrt 2 off the diagonal."""
        return self._stds_of_sum() / self.rate

    @property
    def cell_sigmas(self) -> Floats:
        """The same, of the sum, in cells."""
        return self._stds_of_sum() / self.step

    def _stds_of_sum(self) -> Floats:
        sigma, (first, second) = self.sigma_of_sum, np.triu_indices(self.question.size)
        gram = np.where(first == second, sigma, math.nextafter(sigma / math.sqrt(2), math.inf))
        return np.tile(np.concatenate((gram, np.full(self.query_width - len(gram), sigma))), self.question.queries)

    def public_outputs(self) -> tuple[Floats, ...]:
        """Of the weight, which is no part of the function on rows."""
        weight, distances = self.question.weight, self.question.public_distances()
        return () if weight is None else (np.asarray(weight(distances), dtype=np.float64),)

    def summation(self) -> Summation:
        """By one product for all queries, or one each."""
        return self.products.summation()

    def cells_of(self, totals: ExactTotals) -> Integers:
        """The exact sums, rounded to the coarse grid."""
        sums, pairs, products = self.products.sums(totals), self.pairs, self.products
        cells = [rounded_to(self.step, sums[:, :pairs], products.gram_cell)]
        if self.question.cross:
            cells.append(rounded_to(self.step, sums[:, pairs:], products.cross_cell))
        return narrowed(np.concatenate(cells, axis=1).reshape(-1))

    def shape(self, flat: Floats) -> Answer:
        """Symmetric matrices, (size, size) for one query and (queries, size, size) for more."""
        question, n = self.question, self.question.size
        table = flat.reshape(question.queries, self.query_width)
        first, second = np.triu_indices(n)
        gram = np.empty((question.queries, n, n))
        gram[:, first, second] = gram[:, second, first] = table[:, : self.pairs]
        cross = table[:, self.pairs :]
        single = question.queries == 1 and question.centres is None
        parts = {"gram": gram[0] if single else gram}
        if question.cross:
            parts["cross"] = cross[0] if single else cross
        return Answer(parts["gram"], parts)
