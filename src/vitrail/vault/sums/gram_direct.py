"""Gram sums one query at a time: the weight is folded into the vector.

For query q a row becomes v = sqrt(w) d and t = sqrt(w) y, both rounded to nearest on power-of-two grids, and contributes
v v^T and t v: one product of the block's (v, t) with v, exact in float64 because entries stay below 2**21 cells and
``EXACT_ROWS`` rows are multiplied at a time (21 + 21 + 11 = 53 bits).

*Bound.* In real numbers the contribution has norm N = |v| sqrt(|v|^2 + t^2), and the weight is lowered until N <= C -
slack. Rounding moves v by at most e = g_v sqrt(n)/2 and t by at most g_t/2, hence (v, t) by at most E = sqrt(e^2 +
g_t^2/4); from |v v'^T - ...| <= e |(v, t)| + |v| E + e E, with |v| <= sqrt(C) and |t| <= y_bound, the rounded
contribution has norm at most C: slack is that expression, a public constant. The integers are checked all the same,
and a row that fails counts zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from ...errors import InvalidInput
from ..rows.row_function import Arrays
from ..rows.row_pass import RowPass
from .exact_total import ExactTotal
from .gram_weights import FLOAT_SLACK, clipped_weights, joint_factors, weights_at
from .grid import Array, clip_rows, power_of_two_below, rounded, squared_norms

if TYPE_CHECKING:
    from ..questions.gram_sum import GramSum

Floats = NDArray[np.float64]
CELL_BITS = 21
EXACT_ROWS = 2**11


@dataclass(frozen=True)
class DirectProducts:
    """The exact sums of a Gram question, by one product per query and block."""

    question: GramSum

    def __post_init__(self) -> None:
        if self.inner_bound <= 0.5 * self.question.l2_bound or self.joint_inner_bound <= 0:
            raise InvalidInput(
                f"y_bound of a GramSum is {self.question.y_bound}, too large beside l2_bound = {self.question.l2_bound}; "
                "scale y down and the answer up"
            )

    @cached_property
    def v_step(self) -> float:
        """One cell of v: at most 2**-CELL_BITS of twice sqrt(l2_bound), the largest |v|."""
        return 2 * power_of_two_below(math.sqrt(self.question.l2_bound)) * 2.0**-CELL_BITS

    @cached_property
    def t_step(self) -> float:
        """One cell of t."""
        return 2 * power_of_two_below(self.question.y_bound) * 2.0**-CELL_BITS if self.question.cross else 0.0

    @property
    def gram_cell(self) -> float:
        """The size of one unit of an exact Gram entry."""
        return self.v_step**2

    @property
    def cross_cell(self) -> float:
        """The size of one unit of an exact cross entry."""
        return self.v_step * self.t_step

    @cached_property
    def inner_bound(self) -> float:
        """C - slack."""
        question = self.question
        v_error = self.v_step * math.sqrt(question.size) / 2
        both_error = math.hypot(v_error, self.t_step / 2)
        longest = math.sqrt(question.l2_bound + (question.y_bound**2 if question.cross else 0.0))
        slack = v_error * longest + math.sqrt(question.l2_bound) * both_error + v_error * both_error
        return (question.l2_bound - slack) * FLOAT_SLACK

    @cached_property
    def joint_inner_bound(self) -> float:
        """The joint bound less the slack of every query."""
        assert self.question.joint_bound is not None
        return self.question.joint_bound - math.sqrt(self.question.queries) * (self.question.l2_bound - self.inner_bound)

    def totals(self, rows: RowPass, block_rows: int) -> NDArray[np.object_]:
        """Exact sums, (queries, pairs [+ size])."""
        question = self.question
        right = question.size + (1 if question.cross else 0)
        total = ExactTotal((question.queries, right, question.size))

        def reduce(arrays: Arrays, valid: NDArray[np.bool_]) -> list[Floats]:
            starts = range(0, len(valid), EXACT_ROWS)
            parts = [(tuple(a[s : s + EXACT_ROWS] for a in arrays), valid[s : s + EXACT_ROWS]) for s in starts]
            return [self._products(*part) for part in parts]

        rows.fold(question.row_function(), reduce, total.add_all, block_rows=block_rows, label="summing")
        exact = total.value()
        first, second = np.triu_indices(question.size)
        gram = exact[:, first, second]
        return gram if not question.cross else np.concatenate((gram, exact[:, question.size, :]), axis=1)

    def _products(self, arrays: Arrays, valid: NDArray[np.bool_]) -> Floats:
        """For each query the integer matrix (v, t)^T v of at most EXACT_ROWS rows."""
        question = self.question
        u, finite = clip_rows(arrays[0], question.row_norm)
        y = np.clip(arrays[1][:, 0], -question.y_bound, question.y_bound)
        counted = valid & finite & ~np.isnan(y)
        roots = self._root_weights(u, y, arrays[2], counted)
        products = np.empty((question.queries, question.size + (1 if question.cross else 0), question.size))
        for query in range(question.queries):
            d = u if question.centres is None else u - question.centres[query]
            products[query] = self._one_product(d, y, roots[:, query], counted)
        return products

    def _root_weights(self, u: Floats, y: Floats, row_weights: Floats, counted: NDArray[np.bool_]) -> Floats:
        """sqrt(w) of every row and query, lowered so that each contribution obeys the bounds."""
        question = self.question
        d2 = np.empty((len(u), question.queries))
        for query in range(question.queries):
            d2[:, query] = squared_norms(u if question.centres is None else u - question.centres[query])
        norms = np.sqrt(d2 * (d2 + (y * y)[:, None])) if question.cross else d2
        weights = np.ones_like(d2) if question.weight is None else weights_at(question.weight, np.sqrt(d2))
        if row_weights.shape[1]:
            weights *= clipped_weights(row_weights)
        np.minimum(weights, self.inner_bound / norms, out=weights)
        weights *= joint_factors(weights, norms, self.joint_inner_bound)
        weights[~counted] = 0.0
        return np.sqrt(weights, out=weights)

    def _one_product(self, d: Array, y: Array, roots: Array, counted: Array) -> Array:
        """(v, t)^T v of one query, exact integers; written for arrays of any namespace."""
        xp = array_namespace(d)
        v = rounded(d * (roots / self.v_step)[:, None])
        t = rounded(y * (roots / self.t_step)) if self.question.cross else None
        keep = counted & self._obeys(v, t)
        if not bool(xp.all(keep)):
            v = xp.where(keep[:, None], v, xp.zeros_like(v))
            t = None if t is None else xp.where(keep, t, xp.zeros_like(t))
        left = v if t is None else xp.concat((v, t[:, None]), axis=1)
        return left.T @ v

    def _obeys(self, v: Array, t: Array | None) -> Array:
        """Whether the integers of each row obey the bound; False for what is not finite. Squares stay below 2**53: exact."""
        v2 = squared_norms(v) * self.gram_cell
        t2 = 0.0 if t is None else (t * self.t_step) ** 2
        return v2 * (v2 + t2) <= self.question.l2_bound**2 * FLOAT_SLACK**0.25
