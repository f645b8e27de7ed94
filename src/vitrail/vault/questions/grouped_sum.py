"""Grouped sum (subsample and aggregate): run any function on random groups of rows and add up what it says.

Each row goes to one of ``groups`` groups by a fresh uniform draw of its own; an arbitrary function runs per group, in
a fresh process; its output is put into the public box [low, high] and on a grid; an empty, failing or late group says
a public default inside the box; the number of groups is constant. Couple the other rows' draws: adding or removing a
row changes the content of one group only, so one summand moves, anywhere in the box: the sum moves by at most the
box's diagonal |high - low| (sqrt(k) R for a cube). Replacing a row: couple its draw too, and again one group changes.
Both relations cost the same. Where a person has up to k rows, each has a draw of its own and changes one group: at most
k groups change, and the sum moves by at most k diagonals. Where rows carry their persons, the draw is a person's, and one
group changes. The box on the grid has half-sides of H_i whole cells, and the
sensitivity used is the diagonal of *that* box, 2 g |H|: exact.

*Rankings.* With ``rank_points`` a group ranks things instead of saying numbers: its result is turned into points here, and
two rankings are never further apart than ``largest_distance``, far less than the diagonal of their box. Points are rounded
to the grid, which moves each coordinate of either ranking by at most half a cell: g sqrt(k) is added.

A group says scores; the vault itself turns them into points, so it need not trust the group for anything. The highest score
gets w_1, the next w_2, down to w_M (w falling, public); equal scores share the mean of their ranks' points, which is the
mean over all ways to break the tie. So whatever a group says, its points lie in the convex hull of the permutations of w,
and so does what a failing or empty group says, the mean of w everywhere. The distance of two points of a convex hull is
largest between two of its corners:

    |w - w.p|^2 = 2 sum w_i^2 - 2 sum w_i w_p(i),

and the last sum is smallest where p reverses the order (rearrangement inequality). That is D^2 = sum_i (w_i - w_(M+1-i))^2:
exact, and reached by a group whose order turns round, under either neighbour relation. For Borda's points M-1, ..., 0: D^2
= sum (M+1-2i)^2 = M(M^2-1)/3, and the same permutation has the largest L1 distance, sum |M+1-2i| = floor(M^2/2). Where only
the first k <= M/2 ranks get points (k, k-1, ..., 1, 0, ...): D^2 = 2 (1 + 4 + ... + k^2) = k(k+1)(2k+1)/3, whatever M is.
Test: tests/explain/generic/test_ranking_bound.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _checks
from ..._types import Floats
from ...errors import ImpureFunction, InvalidInput, VitrailError
from ...model import Model
from ...nothing_escapes import attempt, hushed, stop_if_interrupted
from ...progress import progress
from ..engines.row_pass import RowPass
from ..noise.sampler import uniform_below
from ..public_facts import PublicFacts
from ..rows.block import Block
from ..rows.predictions import Predictions
from ..rows.row_function import gathered
from ..sums.grid import power_of_two_below
from .group_worker import GroupCall, GroupServer
from .question import Answer, Question, SumPlan, sigma_for

LARGEST_PUBLIC_GROUP = 2000
SMALLEST_SIDE, LARGEST_SIDE = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class GroupedSum(Question):
    """The noisy sum, over random groups of rows, of whatever a function says about a group.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block` that holds one group (no padding), returns an array of length ``size``. It may do
        anything: train, sort, rank, call another library. ``block.frame()`` gives a pandas data frame.
    size : int
        Length of the result.
    low, high : float or array
        The public box results are clipped to. The noise is proportional to its diagonal. Not with ``rank_points``.
    groups : int
        How many groups. More groups mean less noise in the mean, and fewer rows in each.
    default : float or array, optional
        What an empty, failing or late group says; the middle of the box if not given.
    isolation : {"process", "none"}
        Run each group in a fresh process (default), or in this one: faster, and then ``fn`` must keep no memory of
        groups.
    timeout_seconds : float
        What takes longer counts as failing (in a process of its own only).
    key, label : str, optional
        As for :class:`BoundedSum`.
    rank_points : array of length ``size``, optional
        Instead of a box: results are scores, of which only the order counts. The highest gets ``rank_points[0]`` points, the
        next ``rank_points[1]``, and so on, falling; equal scores share theirs. An empty, failing or late group shares all.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> rows = {"age": np.linspace(20, 60, 5000)}
    >>> data = vt.PrivateData(rows, schema, name="medians", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
    >>> median = vt.GroupedSum(
    ...     lambda group: np.median(group.column("age")), size=1, low=0, high=100, groups=100, isolation="none"
    ... )
    >>> release = data.ask(median, epsilon=1.9)
    >>> bool(abs(release.parts["mean"][0] - 40) < 15)
    True
    """

    kind = "grouped-sum"
    described = ("size", "groups", "low", "high", "default", "rank_points", "isolation")
    fn: Callable[[Block], ArrayLike]
    size: int
    low: float | Floats | None = None
    high: float | Floats | None = None
    groups: int = 200
    default: float | Floats | None = None
    isolation: Literal["process", "none"] = "process"
    timeout_seconds: float = 60.0
    key: str | None = None
    label: str | None = None
    rank_points: ArrayLike | None = None

    def __post_init__(self) -> None:
        self._check(wholes={"size": 10**8, "groups": 10**6}, positives=("timeout_seconds",))
        _checks.choice("isolation", self.isolation, ("process", "none"), of="a GroupedSum")
        for name, vector in (self._box() if self.rank_points is None else self._ranking_box(self.rank_points)).items():
            vector.setflags(write=False)
            object.__setattr__(self, name, vector)

    def _box(self) -> dict[str, Floats]:
        """What results are clipped to, and what a failing group says, if they are given soundly."""
        what = "a GroupedSum"
        if self.low is None or self.high is None:
            raise InvalidInput(
                f"{what} has no box; give low and high, what results are clipped to, or rank_points= for rankings"
            )
        low, high = self._vector("low", self.low), self._vector("high", self.high)
        with np.errstate(over="ignore"):
            sides = high - low
        if not ((sides >= SMALLEST_SIDE) & (sides <= LARGEST_SIDE)).all():
            raise InvalidInput(
                f"low of {what} must be below high in every coordinate, by {SMALLEST_SIDE:g} to {LARGEST_SIDE:g}"
            )
        default = (low + high) / 2 if self.default is None else self._vector("default", self.default)
        if not ((low <= default) & (default <= high)).all():
            raise InvalidInput(f"default of {what} must lie between low and high in every coordinate")
        return {"low": low, "high": high, "default": default}

    def _ranking_box(self, given: ArrayLike) -> dict[str, Floats]:
        if any(side is not None for side in (self.low, self.high, self.default)):
            raise InvalidInput("a GroupedSum with rank_points= ranks: low, high and default are theirs, leave them out")
        points = self._vector("rank_points", given)
        if (np.diff(points) > 0).any() or not points[0] - points[-1] > 1e-6 * abs(points[0]):
            raise InvalidInput(
                "rank_points of a GroupedSum must fall from the first place to the last, and not all be the same"
            )
        ends = {"low": points[-1], "high": points[0], "default": min(max(points.mean(), points[-1]), points[0])}
        return {"rank_points": points, **{name: np.full(self.size, value) for name, value in ends.items()}}

    def _vector(self, name: str, value: ArrayLike) -> Floats:
        try:
            vector = np.broadcast_to(np.asarray(value, dtype=np.float64), (self.size,)).copy()
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name} of a GroupedSum is neither a number nor an array of length {self.size}") from error
        if not np.isfinite(vector).all():
            raise InvalidInput(f"{name} of a GroupedSum must be finite")
        return vector

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Run ``fn`` on one public group of the expected size."""
        rows = max(2, min(LARGEST_PUBLIC_GROUP, facts.n_rows_public // self.groups))

        try:
            result = _group_call(self.fn, facts, predictions.admit)(facts.schema.probe_rows(rows))
        except VitrailError:
            raise
        except Exception as error:
            raise InvalidInput(
                f"the function of this GroupedSum fails on a public group of {rows} rows drawn from the schema "
                f"({type(error).__name__}: {error}); nothing was charged"
            ) from error
        if result.shape != (self.size,):
            raise InvalidInput(f"the function of this GroupedSum returned shape {result.shape}; ({self.size},) is expected")
        if not np.isfinite(result).all():
            raise ImpureFunction("the function of this GroupedSum returned NaN or infinity for a public group of rows")
        if self.isolation == "process":  # what cannot be sent there is found out before anything is charged
            with self.runner(facts) as run:
                elsewhere = run(facts.schema.probe_rows(rows))
            if elsewhere is None:
                raise InvalidInput(
                    f"the function of this GroupedSum fails in a process of its own on a public group of {rows} rows, or "
                    f"takes longer than timeout_seconds = {self.timeout_seconds:g}; raise it, or choose isolation='none'"
                )
        return facts.block_rows

    def runner(self, facts: PublicFacts) -> AbstractContextManager[Callable[[Floats], Floats | None]]:
        """What runs one group and returns its result; None, or whatever it raises, when it fails."""
        call = _group_call(self.fn, facts)
        return nullcontext(call) if self.isolation == "none" else closing(GroupServer(call, self.timeout_seconds))

    def plan(self, mu: float, facts: PublicFacts) -> GroupedSumPlan:
        """Fix sigma and the grid."""
        if self.rank_points is None:
            half = (np.asarray(self.high) - np.asarray(self.low)) / 2
            finest = float(np.linalg.norm(half)) / mu / (10 * self.groups)
            step = power_of_two_below(max(min(finest, float(half.min()) / 2**10), float(half.max()) / 2**40))
            half_cells = np.ceil(half / step)
            sensitivity = 2 * step * math.sqrt(sum(int(side) ** 2 for side in half_cells)) * (1 + 1e-15)
        else:
            furthest = largest_distance(np.asarray(self.rank_points))
            step = power_of_two_below(furthest * min(max(1 / mu / (10 * self.groups), 2.0**-40), 2.0**-20))
            half_cells = np.full(self.size, math.inf)
            # Half a cell for each of two rankings and coordinate; the last factor covers the rounding of means of points.
            sensitivity = (furthest + step * math.sqrt(self.size) * (1 + 1e-6)) * (1 + 1e-15)
        if facts.rows_per_person > 1:
            sensitivity = math.nextafter(facts.rows_per_person * sensitivity, math.inf)
        return GroupedSumPlan(self, self.size, sensitivity, sigma_for(sensitivity, mu), step, half_cells)


@dataclass(frozen=True)
class GroupedSumPlan(SumPlan[GroupedSum]):
    """A grouped sum with its noise fixed."""

    half_cells: Floats

    @property
    def stored_numbers(self) -> int:
        """Sum and mean."""
        return 2 * self.width

    @cached_property
    def _middle(self) -> Floats:
        return np.asarray((np.asarray(self.question.low) + np.asarray(self.question.high)) / 2)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """Noise first; then each draw assigns the rows to groups anew."""
        return super().answers(rows, block_rows, draws) + self.question.groups * self._middle

    def exact_cells(self, rows: RowPass, block_rows: int, draws: int = 1) -> NDArray[np.int64]:
        """The sums over groups in cells from the middle, (draws, size)."""
        return hushed(lambda: self._exact_cells(rows, draws))

    def _exact_cells(self, rows: RowPass, draws: int) -> NDArray[np.int64]:
        question = self.question
        # Every row that counts, in memory: a group function may need all of its rows at once.
        everything, starts = gathered(rows.source, rows.facts)
        scores = np.full((draws, question.groups, question.size), np.nan)
        with progress("explaining groups", draws * question.groups) as advance, question.runner(rows.facts) as run:
            for draw in scores:
                for group, members in enumerate(_assigned(everything, question.groups, starts)):
                    # An empty group is not run; one that fails says its default, and why it failed would be data.
                    result = attempt(lambda members=members: run(members), None) if len(members) else None  # type: ignore[misc]
                    if result is not None and result.shape == (question.size,):
                        draw[group] = result
                    advance(1)
                    stop_if_interrupted()
        return np.asarray(self._on_grid(scores).sum(axis=1))

    def _on_grid(self, scores: Floats) -> NDArray[np.int64]:
        """What groups scores, (..., size), in whole cells inside the box; the default where it is not finite."""
        question = self.question
        usable = np.isfinite(scores).all(axis=-1, keepdims=True)
        if question.rank_points is None:
            inside = np.clip(np.where(usable, scores, np.asarray(question.default)), question.low, question.high)
        else:  # equal scores everywhere share all the points
            inside = points_of(np.where(usable, scores, 0.0), np.asarray(question.rank_points))
        cells = np.rint((inside - self._middle) / self.step)
        return np.clip(cells, -self.half_cells, self.half_cells).astype(np.int64)

    def shape(self, flat: Floats) -> Answer:
        """The sum over groups, and the mean."""
        return Answer(flat, {"sum": flat, "mean": flat / self.question.groups})


def _group_call(
    fn: Callable[[Block], ArrayLike], facts: PublicFacts, admit: Callable[[Model], None] | None = None
) -> GroupCall:
    def predict(model: Model, values: Floats) -> Floats:
        if admit is not None:
            admit(model)
        return model.predict(facts.feature_schema, values)

    def call(raw: Floats) -> Floats:
        return np.atleast_1d(np.asarray(fn(Block(raw, facts, predict)), dtype=np.float64))

    return call


def _assigned(raw: Floats, groups: int, starts: NDArray[np.int64] | None) -> Iterator[Floats]:
    """The rows of each group, by a fresh uniform draw for every row, or for every person whose rows begin at ``starts``."""
    if starts is None:
        group = uniform_below(groups, len(raw))
    else:
        group = np.repeat(uniform_below(groups, len(starts)), np.diff(starts, append=len(raw)))
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(groups + 1)).tolist()
    return (raw[order[start:stop]] for start, stop in pairwise(edges))


def largest_distance(rank_points: Floats) -> float:
    """How far apart the points of two rankings can be, rounded up.

    Examples
    --------
    >>> round(largest_distance(np.array([2.0, 1.0, 0.0])) ** 2, 9)  # 3 (9 - 1) / 3
    8.0
    """
    square = sum(
        ((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(rank_points, rank_points[::-1], strict=True)), Fraction(0)
    )
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def points_of(scores: Floats, rank_points: Floats) -> Floats:
    """The points that finite scores, (..., size), earn; equal scores share theirs.

    Examples
    --------
    >>> points_of(np.array([[5.0, 9.0, 7.0], [1.0, 1.0, 0.0]]), np.array([2.0, 1.0, 0.0]))
    array([[0. , 2. , 1. ],
           [1.5, 1.5, 0. ]])
    """
    from scipy.stats import rankdata  # slow to import, and few questions rank

    first, last = (rankdata(-scores, method, axis=-1).astype(np.intp) - 1 for method in ("min", "max"))
    before = np.concatenate([[0.0], np.cumsum(rank_points)])
    # A score of its own gets its rank's points as they are: the difference of two running sums would round them.
    return np.where(first == last, rank_points[first], (before[last + 1] - before[first]) / (last + 1 - first))
