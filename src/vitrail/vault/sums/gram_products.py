"""The exact sums of Gram questions, in one of two ways, each with its own argument for the bound after rounding.

**For many queries at once** (``SharedProduct``): one matrix product serves them all. Everything is an integer held in
float64. With |u| <= 1 on the grid 2**-UNIT_BITS and weights on the grid 2**-WEIGHT_BITS, the columns V = (u_i u_j rounded,
u, 1, y u rounded, y) are made once and multiplied by the weights of all queries; ``SHARED_ROWS`` products of at most
2**(UNIT_BITS + WEIGHT_BITS) add up exactly, in whatever order the library adds. The sums around each centre follow in
integers: sum w (u-z)(u-z)^T = sum w uu^T - z (sum w u)^T - (sum w u) z^T + (sum w) zz^T.

*Bound.* u and y are rounded first; the squared distances |u|^2 - 2 u.z + |z|^2 of the rounded values are exact
integers (below 2**44), hence the same bits for a row wherever it stands, and what is computed from them is
element-wise. Rounding the products moves the summed matrix from w d d^T by at most w (g/2) sqrt(n^2 + n) in norm, g =
2**-UNIT_BITS: that much is added to N = |d| sqrt(|d|^2 + y^2) before w is lowered to l2_bound/N and rounded *down*.
So the contribution that is summed obeys the bound.

**One query at a time** (``DirectProducts``): the weight is folded into the vector. For query q a row becomes v = sqrt(w) d
and t = sqrt(w) y, both rounded to nearest on power-of-two grids, and contributes v v^T and t v: one product of the block's
(v, t) with v, exact in float64 because entries stay below 2**21 cells and ``DIRECT_ROWS`` rows are multiplied at a time (21
+ 21 + 11 = 53 bits).

*Bound.* In real numbers the contribution has norm N = |v| sqrt(|v|^2 + t^2), and the weight is lowered until N <= C -
slack. Rounding moves v by at most e = g_v sqrt(n)/2 and t by at most g_t/2, hence (v, t) by at most E = sqrt(e^2 +
g_t^2/4); from |v v'^T - ...| <= e |(v, t)| + |v| E + e E, with |v| <= sqrt(C) and |t| <= y_bound, the rounded
contribution has norm at most C: slack is that expression, a public constant. The integers are checked all the same,
and a row that fails counts zero.

**Weights** are kept in [0, 1], and lowered jointly where a row would say too much to all queries together. A row that is one
of j of its person has its weight divided by j after that, and its bound too: a person obeys the bound by the triangle
inequality (``rows.persons``). ``DirectProducts`` takes the whole slack off the share of such a row, which is more than it
needs, and rows whose share is less than that count zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._types import Bools, Floats
from ...errors import InvalidInput
from ...nothing_escapes import attempt
from ..engines.row_pass import Summation
from ..rows.block import Arrays, Counted, among_fillers, salvaged
from .device import Array, beside, device_for, namespace, on_host, pair_columns, placed, product
from .grid import FLOAT_SLACK, Grid, InPieces, clip_rows, power_of_two_below, squared_norms, to_grid
from .totals import ExactTotals

if TYPE_CHECKING:
    from ..questions.gram_sum import GramSum


UNIT_BITS = 20
WEIGHT_BITS = 20
SHARED_ROWS = 2**12
CELLS_AT_ONCE = 2**16
"""Numbers that are worked on at once, element by element: they stay in the processor's cache."""
SMALLEST_WEIGHT = 2.0**-18
"""Weights clipped below this would be a few of their cells wide."""


class SharedProduct:
    """The exact sums of a Gram question with many queries, by one product per block."""

    def __init__(self, question: GramSum, device: str = "cpu") -> None:
        longest = (2 * question.row_norm) ** 2 + 2 * question.row_norm * question.y_bound * question.cross
        if question.l2_bound / longest < SMALLEST_WEIGHT:
            raise InvalidInput(
                f"l2_bound of a GramSum is {question.l2_bound:.3g}, far below what a row inside row_norm = "
                f"{question.row_norm:.3g} can contribute: clipped rows would count nothing. Lower row_norm, or scale u down"
            )
        self.question, self.device, n = question, device, question.size
        # The columns V of the shared product: pairs u_i u_j with i <= j, u, 1 [, y u, y].
        self.n_columns = n * (n + 1) // 2 + n + 1 + (n + 1 if question.cross else 0)
        # Powers of two, at least row_norm and y_bound, that u and y are divided by; the latter is never below the former, so
        # that one bound on rounding serves both parts.
        self.u_scale = 2 * power_of_two_below(question.row_norm)
        self.y_scale = max(2 * power_of_two_below(question.y_bound), self.u_scale)
        # The grid of u and of the centres: u_scale is 2**UNIT_BITS cells.
        self.unit_grid = Grid(question.row_norm, self.u_scale * 2.0**-UNIT_BITS, n)
        # The size of one unit of an exact Gram entry, and of an exact cross entry.
        self.gram_cell = self.u_scale**2 * 2.0 ** -(2 * UNIT_BITS + WEIGHT_BITS)
        self.cross_cell = self.u_scale * self.y_scale * 2.0 ** -(2 * UNIT_BITS + WEIGHT_BITS)
        # What rounding the products may add to the norm of a contribution with w = 1.
        self.rounding = self.u_scale * self.y_scale * 2.0 ** -(UNIT_BITS + 1) * math.sqrt(n * n + n) / FLOAT_SLACK

    @cached_property
    def _centres(self) -> Floats:
        if self.question.centres is None:
            return np.zeros((1, self.question.size))
        return np.asarray(to_grid(self.question.centres, self.unit_grid))

    def summation(self) -> Summation:
        """Weights of all queries times the columns V."""
        shapes = ((self.question.queries, self.n_columns),)
        return Summation(self.question.row_function(), InPieces(self._products, SHARED_ROWS), shapes)

    def sums(self, totals: ExactTotals) -> NDArray[np.object_]:
        """Exact sums, (queries, pairs [+ size])."""
        shape = self.question.queries, self.question.size
        return self._around(totals.exact(0), np.broadcast_to(self._centres, shape).astype(np.int64).astype(np.object_))

    def _products(self, arrays: Arrays, counted: Counted) -> list[Floats]:
        u, y, row_weights = arrays
        usable = counted.valid & ~np.isnan(y[:, 0])
        if not np.isfinite(u.sum()):  # cheap to rule out; a row that is not finite counts zero
            usable &= np.isfinite(u).all(axis=1)
        u_cells = to_grid(u, self.unit_grid)
        y_cells = None
        if self.question.cross:
            most = math.floor(self.question.y_bound / self.y_scale * 2.0**UNIT_BITS)
            y_cells = np.clip(np.rint(np.where(usable, y[:, 0], 0.0) / self.y_scale * 2.0**UNIT_BITS), -most, most)
        squares = squared_distances(u_cells, self._centres)
        weights = np.empty((len(u), self.question.queries))
        for some in _pieces(len(u), self.question.queries):
            weights[some] = self._integer_weights(
                squares[some], None if y_cells is None else y_cells[some], row_weights[some], counted[some].among
            )
        if not usable.all():
            weights[~usable] = 0.0
        numbers, multiplied = self.question.size + self.question.queries, self.question.queries * self.n_columns
        if (device := device_for(self.device, len(u), multiplied, numbers)) != "cpu":
            return [product(placed(weights, device), pair_columns(u_cells, y_cells, UNIT_BITS, device))]
        return [weights.T @ self._columns(u_cells, y_cells).T]

    def _integer_weights(self, squares: Floats, y_cells: Floats | None, row_weights: Floats, among: Floats | None) -> Floats:
        """Weights in cells, (rows, queries), for which every row's contribution obeys both bounds.

        ``squares`` are exact squared distances in cells, (rows, queries) or (rows, 1) where all queries share a centre.
        """
        question, unit = self.question, 2.0**-UNIT_BITS
        d2 = squares * (self.u_scale * unit) ** 2
        norms = d2
        if y_cells is not None:
            norms = np.sqrt(d2 * (d2 + (y_cells * (self.y_scale * unit))[:, None] ** 2))
        norms = norms + self.rounding
        weights = np.ones((1, 1)) if question.weight is None else weights_at(question.weight, np.sqrt(d2))
        if row_weights.shape[1]:
            weights = weights * clipped_weights(row_weights)
        weights = np.minimum(weights, question.l2_bound * FLOAT_SLACK / norms)
        if weights.shape[1] < question.queries:
            weights = np.repeat(weights, question.queries, axis=1)
        if question.joint_bound < math.sqrt(question.queries) * question.l2_bound * FLOAT_SLACK:
            weights = weights * joint_factors(weights, norms, question.joint_bound)
        weights *= 2.0**WEIGHT_BITS
        if among is not None:
            weights /= among[:, None]
        return np.floor(weights, out=weights)

    def _columns(self, u: Floats, y: Floats | None) -> Floats:
        """V of all rows, transposed so that every step is of contiguous numbers: integers on the grid 2**-UNIT_BITS."""
        n, start = self.question.size, 0
        columns, turned = np.empty((self.n_columns, len(u))), np.ascontiguousarray(u.T)
        scaled = turned * 2.0**-UNIT_BITS
        for i in range(n):
            pairs = columns[start : start + n - i]
            np.rint(np.multiply(scaled[i], turned[i:], out=pairs), out=pairs)
            start += n - i
        columns[start : start + n] = turned
        columns[start + n] = 2.0**UNIT_BITS
        if y is not None:
            products = columns[start + n + 1 : start + 2 * n + 1]
            np.rint(np.multiply(scaled, y, out=products), out=products)
            columns[start + 2 * n + 1] = y
        return columns

    def _around(self, totals: NDArray[np.object_], centres: NDArray[np.object_]) -> NDArray[np.object_]:
        """Sums around each centre, (queries, pairs [+ n]), in cells of 2**-(2 UNIT_BITS + WEIGHT_BITS).

        ``totals`` (queries, columns) are the exact products, ``centres`` (queries, n) integers on the unit grid.
        """
        n, lift = self.question.size, 1 << UNIT_BITS
        pairs, (first, second) = n * (n + 1) // 2, np.triu_indices(n)
        u_sums = totals[:, pairs : pairs + n]
        weight_sums = totals[:, pairs + n] // lift
        gram: NDArray[np.object_] = totals[:, :pairs] * lift
        gram = gram - centres[:, first] * u_sums[:, second] - centres[:, second] * u_sums[:, first]
        gram = gram + centres[:, first] * centres[:, second] * weight_sums[:, None]
        if not self.question.cross:
            return gram
        yu_sums, y_sums = totals[:, pairs + n + 1 : pairs + 2 * n + 1], totals[:, pairs + 2 * n + 1]
        return np.concatenate((gram, yu_sums * lift - centres * y_sums[:, None]), axis=1)


def _pieces(rows: int, width: int) -> list[slice]:
    """Rows in pieces of about ``CELLS_AT_ONCE`` numbers: like blocks, multiples of 64, so that kernels have no rest."""
    step = max(1, CELLS_AT_ONCE // width // 64) * 64
    return [slice(start, start + step) for start in range(0, rows, step)]


def squared_distances(u: Floats, centres: Floats) -> Floats:
    """|u - z|^2 for every row and centre, (rows, queries), exact integers."""
    squares: Floats = u @ centres.T
    squares *= -2.0
    squares += squared_norms(u)[:, None]
    squares += squared_norms(centres)
    return squares


CELL_BITS = 21
DIRECT_ROWS = 2**11


class DirectProducts:
    """The exact sums of a Gram question, by one product per query and block."""

    def __init__(self, question: GramSum, device: str = "cpu") -> None:
        self.question, self.device = question, device
        # One cell of v, at most 2**-CELL_BITS of twice sqrt(l2_bound), the largest |v|; and one cell of t.
        self.v_step = 2 * power_of_two_below(math.sqrt(question.l2_bound)) * 2.0**-CELL_BITS
        self.t_step = 2 * power_of_two_below(question.y_bound) * 2.0**-CELL_BITS if question.cross else 0.0
        # The size of one unit of an exact Gram entry, and of an exact cross entry.
        self.gram_cell, self.cross_cell = self.v_step**2, self.v_step * self.t_step
        # C - slack, and the joint bound less the slack of every query.
        v_error = self.v_step * math.sqrt(question.size) / 2
        both_error = math.hypot(v_error, self.t_step / 2)
        longest = math.sqrt(question.l2_bound + (question.y_bound**2 if question.cross else 0.0))
        slack = v_error * longest + math.sqrt(question.l2_bound) * both_error + v_error * both_error
        self.inner_bound = (question.l2_bound - slack) * FLOAT_SLACK
        self.joint_inner_bound = question.joint_bound - math.sqrt(question.queries) * (question.l2_bound - self.inner_bound)
        self._bounds = ((question.l2_bound, self.inner_bound), (question.joint_bound, self.joint_inner_bound))
        if self.inner_bound <= 0.5 * question.l2_bound or self.joint_inner_bound <= 0:
            raise InvalidInput(
                f"y_bound of a GramSum is {question.y_bound}, too large beside l2_bound = {question.l2_bound}; scale y down "
                "and the answer up"
            )

    def summation(self) -> Summation:
        """One product for each query."""
        question = self.question
        shapes = ((question.queries, question.size + (1 if question.cross else 0), question.size),)
        return Summation(question.row_function(), InPieces(self._products, DIRECT_ROWS), shapes)

    def sums(self, totals: ExactTotals) -> NDArray[np.object_]:
        """Exact sums, (queries, pairs [+ size])."""
        question, exact = self.question, totals.exact(0)
        first, second = np.triu_indices(question.size)
        gram = exact[:, first, second]
        return gram if not question.cross else np.concatenate((gram, exact[:, question.size, :]), axis=1)

    def _products(self, arrays: Arrays, counted: Counted) -> list[Floats]:
        """For each query the integer matrix (v, t)^T v of at most DIRECT_ROWS rows."""
        question = self.question
        numbers, multiplied = question.size + question.queries, question.queries * question.size**2
        device = device_for(self.device, len(counted.valid), multiplied, numbers)
        u, finite = clip_rows(arrays[0], question.row_norm)
        y = np.clip(arrays[1][:, 0], -question.y_bound, question.y_bound)
        usable = counted.valid & finite & ~np.isnan(y)
        share = 1.0 if counted.among is None else 1.0 / counted.among
        roots = self._root_weights(u, y, arrays[2], usable, share)
        there, products = placed(u, device), np.empty((question.queries, question.size + question.cross, question.size))
        for query in range(question.queries):
            d = there if question.centres is None else there - placed(question.centres[query].copy(), device)
            products[query] = self._one_product(d, y, roots[:, query], usable, share)
        return [products]

    def _root_weights(self, u: Floats, y: Floats, row_weights: Floats, usable: Bools, share: float | Floats) -> Floats:
        """sqrt(w) of every row and query, lowered so that each contribution obeys its share of the bounds."""
        question = self.question
        d2 = np.empty((len(u), question.queries))
        for query in range(question.queries):
            d2[:, query] = squared_norms(u if question.centres is None else u - question.centres[query])
        norms = np.sqrt(d2 * (d2 + (y * y)[:, None])) if question.cross else d2
        weights = np.ones_like(d2) if question.weight is None else weights_at(question.weight, np.sqrt(d2))
        if row_weights.shape[1]:
            weights *= clipped_weights(row_weights)
        inner, joint = (_less_slack(*bounds, share) for bounds in self._bounds)
        if not isinstance(share, float):
            weights *= share[:, None]
        np.minimum(weights, np.reshape(inner, (-1, 1)) / norms, out=weights)
        weights *= joint_factors(weights, norms, joint)
        weights[~usable] = 0.0
        return np.sqrt(weights, out=weights)

    def _one_product(self, d: Array, y: Floats, roots: Floats, usable: Bools, share: float | Floats) -> Floats:
        """(v, t)^T v of one query, exact integers, on whichever device ``d`` is."""
        xp = namespace(d)
        v = xp.round(d * beside(roots / self.v_step, d)[:, None])
        squares = squared_norms(v) if xp is np else on_host((v * v).sum(dim=1))
        t = np.rint(y * (roots / self.t_step)) if self.question.cross else np.zeros(len(y))
        lost = ~(usable & self._obeys(squares, t, share))
        if lost.any():
            v[beside(lost, v)], t[lost] = 0.0, 0.0
        left = xp.concatenate((v, beside(t, v)[:, None]), axis=1) if self.question.cross else v
        return product(left, v)

    def _obeys(self, squares: Floats, t: Floats, share: float | Floats) -> Bools:
        """Whether the integers v and t of each row obey the bound; False for what is not finite.

        v.v is at most 2**43 however large the row was, because the weight was lowered: exact in any order.
        """
        v2 = squares * self.gram_cell
        most = (self.question.l2_bound * share) ** 2 * FLOAT_SLACK**0.25
        return np.asarray(v2 * (v2 + (t * self.t_step) ** 2) <= most)


def weights_at(weight: Callable[[Floats], Floats], distances: Floats) -> Floats:
    """A caller's weights of private distances, in [0, 1]. Where the function fails the row counts zero, and nobody hears."""
    public = np.zeros((1, distances.shape[1]))  # distances at which the function was tried

    def weigh(part: slice) -> Arrays | None:
        some = among_fillers(distances, part, public).copy()
        given = attempt(lambda: np.asarray(weight(some), dtype=np.float64), None)
        return (given,) if given is not None and given.shape == distances.shape else None

    return clipped_weights(salvaged(len(distances), weigh, [distances.shape[1:]])[0])


def clipped_weights(weights: Floats) -> Floats:
    """A fresh array of weights in [0, 1]; what is NaN counts zero."""
    clipped = np.clip(np.asarray(weights, dtype=np.float64), 0.0, 1.0)
    return np.nan_to_num(clipped, copy=False) if np.isnan(clipped.sum()) else clipped


def _less_slack(bound: float, inner_bound: float, share: float | Floats) -> float | Floats:
    """A share of a bound, less the whole slack that rounding needs of it."""
    if isinstance(share, float):  # all of it
        return inner_bound
    return np.maximum(0.0, bound * share - (bound - inner_bound))


def joint_factors(weights: Floats, norms: Floats, joint_bound: float | Floats) -> Floats:
    """Factors (rows, 1) in [0, 1] that bring sqrt(sum over queries of (w N)^2) to at most ``joint_bound``."""
    inner = joint_bound * (FLOAT_SLACK - weights.shape[1] * 2.0**-52)  # a sum of that many squares is rounded as often
    joint = np.sqrt(np.einsum("ij,ij->i", weights * norms, weights * norms))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(joint > inner, inner / joint, 1.0)
    return factors[:, None]
