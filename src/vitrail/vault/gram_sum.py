"""Gram sum: add up w u u^T (and w y u) over the rows, for one query or for thousands at once.

A row contributes, to query q with centre z, the matrix w d d^T and, with ``cross``, the vector w y d, where d = u -
z. Embedded isometrically (off-diagonal entries count twice) its norm is

    N = w |d| sqrt(|d|^2 + y^2)      (w |d|^2 without cross),

so it is bounded without ever forming n^2 numbers per row: u and y are rounded to nearest on their grids, N is
computed from the rounded values, and only w is then lowered, to at most ``l2_bound``/N, and rounded down. The
contribution that is really summed therefore obeys the bound whatever floating point did to u. Over Q queries a row's
norm is at most ``joint_bound`` (sqrt(Q) * l2_bound unless a smaller one is asked for, which then clips rows jointly).

On the shared path the products u_i u_j and y u_i are rounded once more, each by at most half a cell of g =
2**-UNIT_BITS: the summed matrix differs from w d d^T by at most w (g/2) sqrt(n^2 + n) in norm, and that much is added
to N before w is lowered.

The exact integer sums are finer than the noise needs. They are rounded to a coarser grid h, which moves each
coordinate by at most h/2 on either of two neighbouring datasets, so the sensitivity grows by h sqrt(Q (n^2 + n)),
less than one part in 4000 by the choice of h, and is charged for. Noise: std sigma on the diagonal and the cross
terms, sigma/sqrt 2 off the diagonal, which is isotropic noise of std sigma in the isometric embedding; each entry
rounded. mu = sensitivity/sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..accounting import GaussianSum, JsonValue
from ..errors import InvalidInput
from .block import Block
from .gram_kernels import (
    DIRECT_EXACT_ROWS,
    SHARED_EXACT_ROWS,
    UNIT_BITS,
    WEIGHT_BITS,
    ExactTotal,
    Floats,
    SharedColumns,
    direct_products,
    join_halves,
    squared_distances,
)
from .grid import Grid, power_of_two_below, to_grid
from .noise import rounded_gaussian
from .predictions import Predictions
from .question import Answer, array_digest, check_callable, check_count, check_positive, sigma_for
from .row_function import Arrays, RowFunction, probe
from .row_pass import RowPass
from .setting import Setting

SHARED_FROM_QUERIES = 8
"""From how many queries on one shared product is faster than one Gram product each."""

_FLOAT_SLACK = 1 - 2.0**-40


@dataclass(frozen=True, eq=False)
class GramSum:
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
    key : str, optional
        A name for the functions; with it, asking again returns the stored release.

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

    kind: ClassVar[str] = "gram-sum"
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
    joint_bound: float | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        what = "a GramSum"
        check_callable("fn", self.fn, what)
        check_count("size", self.size, what, 10**5)
        for name in ("l2_bound", "row_norm", "y_bound"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name), what))
        for name in ("weight", "row_weights"):
            if getattr(self, name) is not None:
                check_callable(name, getattr(self, name), what)
        queries = check_count("queries", self.queries, what, 10**6)
        if self.centres is not None:
            queries = self._check_centres(queries)
        object.__setattr__(self, "queries", queries)
        whole = math.sqrt(queries) * self.l2_bound
        joint = whole if self.joint_bound is None else check_positive("joint_bound", self.joint_bound, what)
        object.__setattr__(self, "joint_bound", min(joint, whole))

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

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters."""
        numbers: dict[str, JsonValue] = {
            name: getattr(self, name)
            for name in ("size", "l2_bound", "row_norm", "cross", "y_bound", "queries", "joint_bound")
        }
        return {"question": self.kind, **numbers, "centres": None if self.centres is None else array_digest(self.centres)}

    def identity(self) -> str | None:
        """The caller's name for the functions."""
        return self.key

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

    def probe(self, setting: Setting, predictions: Predictions) -> int:
        """Look at the functions on public rows and public distances."""
        self._probe_weight()
        return probe(self.row_function(), setting, predictions)

    def plan(self, mu: float, setting: Setting) -> GramSumPlan:
        """Fix sigma and the coarse grid."""
        assert self.joint_bound is not None
        cells = math.sqrt(self.queries * (self.size**2 + self.size))
        step = power_of_two_below(self.joint_bound / (4096 * cells))
        sensitivity = setting.sensitivity_factor * self.joint_bound + step * cells * (1 + 2.0**-40)
        return GramSumPlan(self, sensitivity, sigma_for(sensitivity, mu), step)

    def _probe_weight(self) -> None:
        if self.weight is None:
            return
        distances = np.linspace(0, 2 * self.row_norm, 64 * self.queries).reshape(64, self.queries)
        try:
            weights = np.asarray(self.weight(distances.copy()), dtype=np.float64)
        except Exception as error:
            raise InvalidInput(f"weight fails on public distances: {type(error).__name__}: {error}") from error
        if weights.shape != distances.shape:
            raise InvalidInput(
                f"weight returned shape {weights.shape} for distances of shape {distances.shape}; it is element-wise"
            )
        if not np.array_equal(weights[::-1], np.asarray(self.weight(distances[::-1].copy())), equal_nan=True):
            raise InvalidInput(
                "weight is not an element-wise function of the distance: reordering the rows changed its values"
            )
        if np.isnan(weights).any() or weights.min() < 0:
            raise InvalidInput(
                "weight is negative or NaN at some distance within the declared row_norm; it must lie in [0, 1]"
            )


@dataclass(frozen=True)
class GramSumPlan:
    """A Gram sum with its noise fixed. Inside, u and y are scaled by powers of two to norm at most 1."""

    question: GramSum
    sensitivity: float
    sigma: float
    step: float

    @cached_property
    def columns(self) -> SharedColumns:
        """The columns of the shared product."""
        return SharedColumns(self.question.size, self.question.cross)

    @cached_property
    def unit_grid(self) -> Grid:
        """The grid of u and of the centres: u_scale is 2**UNIT_BITS cells."""
        return Grid(self.question.row_norm, self.u_scale * 2.0**-UNIT_BITS, self.question.size)

    @property
    def event(self) -> GaussianSum:
        """One Gaussian sum over all queries."""
        return GaussianSum(self.sensitivity, self.sigma)

    @property
    def u_scale(self) -> float:
        """A power of two at least row_norm."""
        return 2 * power_of_two_below(self.question.row_norm)

    @property
    def y_scale(self) -> float:
        """A power of two at least y_bound, never below u_scale: both parts then share their cells."""
        return max(2 * power_of_two_below(self.question.y_bound), self.u_scale)

    @property
    def width(self) -> int:
        """Numbers released per query."""
        return self.columns.pairs + (self.question.size if self.question.cross else 0)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """Exact integer sums, rounded to the coarse grid, plus noise."""
        sigmas = np.tile(self._sigma_pattern() / self.step, self.question.queries)
        noise = rounded_gaussian(np.tile(sigmas, draws), draws * len(sigmas)).reshape(draws, -1)
        return (self._exact_cells(rows, block_rows).reshape(-1) + noise) * np.float64(self.step)

    def _sigma_pattern(self) -> Floats:
        first, second = np.triu_indices(self.question.size)
        off_diagonal = math.nextafter(self.sigma / math.sqrt(2), math.inf)
        gram = np.where(first == second, self.sigma, off_diagonal)
        return np.concatenate((gram, np.full(self.width - len(gram), self.sigma)))

    def _exact_cells(self, rows: RowPass, block_rows: int) -> NDArray[np.int64]:
        question = self.question
        shared = question.queries >= SHARED_FROM_QUERIES
        totals = self._fold_shared(rows, block_rows) if shared else self._fold_direct(rows, block_rows)
        fine_bits = 2 * UNIT_BITS + WEIGHT_BITS
        cells = np.empty(totals.shape, dtype=np.int64)
        pairs = self.columns.pairs
        for part, scale in ((slice(0, pairs), self.u_scale**2), (slice(pairs, None), self.u_scale * self.y_scale)):
            # one fine cell is scale * 2**-fine_bits; `step` is a power of two, so the ratio is one as well
            shift = round(math.log2(self.step / scale)) + fine_bits
            fine = totals[:, part]
            rounded = (fine + (1 << (shift - 1))) >> shift if shift > 0 else fine << -shift
            cells[:, part] = rounded.astype(np.int64)
        return cells

    # -- what happens to one block ------------------------------------------------------------------------------------

    def _parts_on_grids(
        self, arrays: Arrays, valid: NDArray[np.bool_], rows: int
    ) -> Iterator[tuple[Floats, Floats | None, Floats]]:
        """A block in parts of at most ``rows`` rows, few enough for one exact product."""
        for start in range(0, len(valid), rows):
            part = slice(start, start + rows)
            yield self._on_grids(tuple(array[part] for array in arrays), valid[part])

    def _on_grids(self, arrays: Arrays, valid: NDArray[np.bool_]) -> tuple[Floats, Floats | None, Floats]:
        """u and y as integers on the unit grid, and the row weights with rows that do not count set to zero."""
        u, y, row_weights = arrays
        counted = valid & np.isfinite(y[:, 0])
        if not np.isfinite(u.sum()):  # cheap to rule out; a row that is not finite counts zero
            counted &= np.isfinite(u).all(axis=1)
        cells = to_grid(u, self.unit_grid)
        y_cells = None
        if self.question.cross:
            bound = math.floor(self.question.y_bound / self.y_scale * 2.0**UNIT_BITS)
            scaled = np.rint(np.where(counted, y[:, 0], 0.0) / self.y_scale * 2.0**UNIT_BITS)
            y_cells = np.clip(scaled, -bound, bound)
        weights = counted.astype(np.float64)[:, None]
        if row_weights.shape[1]:
            given = clipped_weights(row_weights)
            weights = given if counted.all() else given * weights
        return cells, y_cells, weights

    def _bounded_weights(self, squares: Floats, y: Floats | None, row_weights: Floats, rounding: float) -> Floats:
        """Integer weights (rows, queries) for which every row's contribution obeys both bounds.

        ``squares`` are exact squared distances in cells; ``rounding`` is what later rounding adds to the norm of w = 1.
        """
        question = self.question
        unit = 2.0**-UNIT_BITS
        d2 = squares * (self.u_scale * unit) ** 2
        weights: Floats = row_weights
        if question.weight is not None:
            weights = clipped_weights(np.asarray(question.weight(np.sqrt(d2)), dtype=np.float64)) * row_weights
        norms = d2
        if y is not None:
            norms = np.sqrt(d2 * (d2 + (y * (self.y_scale * unit))[:, None] ** 2))
        norms = norms + rounding
        with np.errstate(divide="ignore"):
            weights = np.minimum(weights, question.l2_bound * _FLOAT_SLACK / norms)
        if weights.shape[1] < question.queries:
            weights = np.repeat(weights, question.queries, axis=1)
        assert question.joint_bound is not None
        if question.joint_bound < math.sqrt(question.queries) * question.l2_bound * _FLOAT_SLACK:
            joint = np.sqrt(np.einsum("ij,ij->i", weights * norms, weights * norms))
            with np.errstate(divide="ignore"):
                weights = weights * np.minimum(1.0, question.joint_bound * _FLOAT_SLACK / joint)[:, None]
        weights *= 2.0**WEIGHT_BITS
        return np.floor(weights, out=weights)

    def _centre_cells(self) -> Floats:
        question = self.question
        if question.centres is None:
            return np.zeros((1, question.size))
        return np.asarray(to_grid(question.centres, self.unit_grid))

    def _fold_direct(self, rows: RowPass, block_rows: int) -> NDArray[np.object_]:
        question, centres = self.question, self._centre_cells()
        right = question.size + (1 if question.cross else 0)
        totals = ExactTotal((question.queries, 2, question.size, right))

        def reduce(arrays: Arrays, valid: NDArray[np.bool_]) -> list[Floats]:
            partials = []
            space = np.empty((2, DIRECT_EXACT_ROWS, question.size))
            for u, y, row_weights in self._parts_on_grids(arrays, valid, DIRECT_EXACT_ROWS):
                weights = self._bounded_weights(squared_distances(u, centres), y, row_weights, 0.0)
                halves = np.empty((question.queries, 2, question.size, right))
                for query in range(question.queries):
                    d = u if question.centres is None else u - centres[query]
                    halves[query] = direct_products(d, y, weights[:, query], space)
                partials.append(halves)
            return partials

        rows.fold(question.row_function(), reduce, totals.add_all, block_rows=block_rows, label="summing")
        exact = totals.value()
        whole = join_halves(exact[:, 0], exact[:, 1])
        first, second = np.triu_indices(question.size)
        gram = whole[:, first, second]
        return gram if not question.cross else np.concatenate((gram, whole[:, :, question.size]), axis=1)

    def _fold_shared(self, rows: RowPass, block_rows: int) -> NDArray[np.object_]:
        question, centres = self.question, self._centre_cells()
        n = question.size
        rounding = self.u_scale * self.y_scale * 2.0 ** -(UNIT_BITS + 1) * math.sqrt(n * n + n) * (1 + 2.0**-40)
        totals = ExactTotal((question.queries, self.columns.width))

        def reduce(arrays: Arrays, valid: NDArray[np.bool_]) -> list[Floats]:
            partials = []
            for u, y, row_weights in self._parts_on_grids(arrays, valid, SHARED_EXACT_ROWS):
                weights = self._bounded_weights(squared_distances(u, centres), y, row_weights, rounding)
                partials.append(weights.T @ self.columns.of(u, y))
            return partials

        rows.fold(question.row_function(), reduce, totals.add_all, block_rows=block_rows, label="summing")
        whole_centres = np.broadcast_to(centres, (question.queries, n)).astype(np.int64).astype(np.object_)
        return self.columns.around(totals.value(), whole_centres)

    def shape(self, flat: Floats) -> Answer:
        """Symmetric matrices, (size, size) for one query and (queries, size, size) for more."""
        question, n = self.question, self.question.size
        table = flat.reshape(question.queries, self.width)
        first, second = np.triu_indices(n)
        gram = np.empty((question.queries, n, n))
        gram[:, first, second] = gram[:, second, first] = table[:, : self.columns.pairs]
        cross = table[:, self.columns.pairs :]
        single = question.queries == 1 and question.centres is None
        parts = {"gram": gram[0] if single else gram}
        if question.cross:
            parts["cross"] = cross[0] if single else cross
        return Answer(parts["gram"], parts)


def clipped_weights(weights: Floats) -> Floats:
    """Weights in [0, 1]; what is NaN counts zero."""
    clipped = np.clip(weights, 0.0, 1.0)
    return np.nan_to_num(clipped, copy=False) if np.isnan(clipped.sum()) else clipped
