"""Grouped sum (subsample and aggregate): run any function on random groups of rows and add up what it says.

Each row goes to one of ``groups`` groups by a fresh uniform draw of its own; an arbitrary function runs per group, in
a fresh process; its output is put into the public box [low, high] and on a grid; an empty, failing or late group says
a public default inside the box; the number of groups is constant. Couple the other rows' draws: adding or removing a
row changes the content of one group only, so one summand moves, anywhere in the box: the sum moves by at most the
box's diagonal |high - low| (sqrt(k) R for a cube). Replacing a row: couple its draw too, and again one group changes.
Both relations cost the same. The box on the grid has half-sides of H_i whole cells, and the sensitivity used is the
diagonal of *that* box, 2 g |H|: exact.

With ``places`` a group ranks things instead of saying numbers: its result is turned into points here, and two rankings are
never further apart than ``rank_points.largest_distance`` (the argument is there), far less than the diagonal of their box.
Points are rounded to the grid, which moves each coordinate of either ranking by at most half a cell: g sqrt(k) is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _checks
from ...accounting import GaussianSum, JsonValue
from ...errors import ImpureFunction, InvalidInput, VitrailError
from ...model import Model
from ...nothing_escapes import attempt, hushed, stop_if_interrupted
from ...progress import progress
from ..noise.sampler import rounded_gaussian, uniform_below
from ..rows.block import Block
from ..rows.predictions import Predictions
from ..rows.row_pass import RowPass
from ..setting import Setting
from ..sums.grid import power_of_two_below
from .group_worker import GroupServer
from .question import Answer, array_digest, check_noise_fits, sigma_for
from .rank_points import checked_places, largest_distance, points_of

Floats = NDArray[np.float64]
LARGEST_PUBLIC_GROUP = 2000
SMALLEST_SIDE, LARGEST_SIDE = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class GroupedSum:
    """The noisy sum, over random groups of rows, of whatever a function says about a group.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block` that holds one group (no padding), returns an array of length ``size``. It may do
        anything: train, sort, rank, call another library. ``block.frame()`` gives a pandas data frame.
    size : int
        Length of the result.
    low, high : float or array
        The public box results are clipped to. The noise is proportional to its diagonal. Not with ``places``.
    groups : int
        How many groups. More groups mean less noise in the mean, and fewer rows in each.
    default : float or array, optional
        What an empty, failing or late group says; the middle of the box if not given.
    isolation : {"process", "none"}
        Run each group in a fresh process (default), or in this one: faster, and then ``fn`` must keep no memory of
        groups.
    timeout_seconds : float
        What takes longer counts as failing (in a process of its own only).
    key : str, optional
        A name for ``fn``; with it, asking again returns the stored release.
    label : str, optional
        What the bill calls it.
    places : array of length ``size``, optional
        Instead of a box: results are scores, of which only the order counts. The highest gets ``places[0]`` points, the
        next ``places[1]``, and so on, falling; equal scores share theirs. An empty, failing or late group shares all.

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

    kind: ClassVar[str] = "grouped-sum"
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
    places: ArrayLike | None = None

    def __post_init__(self) -> None:
        what = "a GroupedSum"
        _checks.function("fn", self.fn, of=what)
        _checks.whole("size", self.size, of=what)
        _checks.whole("groups", self.groups, most=10**6, of=what)
        _checks.positive("timeout_seconds", self.timeout_seconds, of=what)
        if self.isolation not in ("process", "none"):
            raise InvalidInput(f"isolation of {what} is {self.isolation!r}; choose 'process' or 'none'")
        if self.places is not None:
            self._become_ranking(self.places)
            return
        if self.low is None or self.high is None:
            raise InvalidInput(f"{what} has no box; give low and high, what results are clipped to, or places= for rankings")
        low, high = (self._vector(name, getattr(self, name)) for name in ("low", "high"))
        with np.errstate(over="ignore"):
            sides = high - low
        if not ((sides >= SMALLEST_SIDE) & (sides <= LARGEST_SIDE)).all():
            raise InvalidInput(
                f"low of {what} must be below high in every coordinate, by {SMALLEST_SIDE:g} to {LARGEST_SIDE:g}"
            )
        default = (low + high) / 2 if self.default is None else self._vector("default", self.default)
        if not ((low <= default) & (default <= high)).all():
            raise InvalidInput(f"default of {what} must lie between low and high in every coordinate")
        for name, vector in (("low", low), ("high", high), ("default", default)):
            vector.setflags(write=False)
            object.__setattr__(self, name, vector)

    def _become_ranking(self, given: ArrayLike) -> None:
        if any(part is not None for part in (self.low, self.high, self.default)):
            raise InvalidInput("a GroupedSum with places= ranks: low, high and default are the places' own, leave them out")
        places = checked_places(given, self.size)
        ends = {"low": places[-1], "high": places[0], "default": min(max(places.mean(), places[-1]), places[0])}
        for name, value in ends.items():
            vector = np.full(self.size, value)
            vector.setflags(write=False)
            object.__setattr__(self, name, vector)
        object.__setattr__(self, "places", places)

    def _vector(self, name: str, value: ArrayLike) -> Floats:
        try:
            vector = np.broadcast_to(np.asarray(value, dtype=np.float64), (self.size,)).copy()
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name} of a GroupedSum is neither a number nor an array of length {self.size}") from error
        if not np.isfinite(vector).all():
            raise InvalidInput(f"{name} of a GroupedSum must be finite")
        return vector

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters."""
        box: dict[str, JsonValue] = {
            name: float(vector[0]) if (vector == vector[0]).all() else array_digest(vector)
            for name, vector in ((name, np.asarray(getattr(self, name))) for name in ("low", "high", "default"))
        }
        if self.places is not None:
            box["places"] = array_digest(np.asarray(self.places))
        return {"question": self.kind, "size": self.size, "groups": self.groups, **box, "isolation": self.isolation}

    def identity(self) -> str | None:
        """The caller's name for ``fn``."""
        return self.key

    def probe(self, setting: Setting, predictions: Predictions) -> int:
        """Run ``fn`` on one public group of the expected size."""
        rows = max(2, min(LARGEST_PUBLIC_GROUP, setting.n_rows_public // self.groups))

        def admit_and_predict(model: Model, values: Floats) -> Floats:
            predictions.admit(model)
            return model.predict(setting.feature_schema, values)

        try:
            result = np.asarray(
                self.fn(Block(setting.schema.probe_rows(rows), setting, admit_and_predict)), dtype=np.float64
            )
        except VitrailError:
            raise
        except Exception as error:
            raise InvalidInput(
                f"the function of this GroupedSum fails on a public group of {rows} rows drawn from the schema "
                f"({type(error).__name__}: {error}); nothing was charged"
            ) from error
        if result.size != self.size or result.ndim > 1:
            raise InvalidInput(f"the function of this GroupedSum returned shape {result.shape}; ({self.size},) is expected")
        if not np.isfinite(result).all():
            raise ImpureFunction("the function of this GroupedSum returned NaN or infinity for a public group of rows")
        if self.isolation == "process":
            self._probe_elsewhere(setting, rows)
        return setting.block_rows

    def _probe_elsewhere(self, setting: Setting, rows: int) -> None:
        """The same in a process of its own: what cannot be sent there is found out before anything is charged."""
        with GroupServer(_group_call(self.fn, setting), self.timeout_seconds) as server:
            if server.run(setting.schema.probe_rows(rows)) is None:
                raise InvalidInput(
                    f"the function of this GroupedSum fails in a process of its own on a public group of {rows} rows, or "
                    f"takes longer than timeout_seconds = {self.timeout_seconds:g}; raise it, or choose isolation='none'"
                )

    def plan(self, mu: float, setting: Setting) -> GroupedSumPlan:
        """Fix sigma and the grid."""
        if self.places is not None:
            return self._ranking_plan(mu, np.asarray(self.places))
        low, high = np.asarray(self.low), np.asarray(self.high)
        half = (high - low) / 2
        finest = float(np.linalg.norm(half)) / mu / (10 * self.groups)
        step = power_of_two_below(max(min(finest, float(half.min()) / 2**10), float(half.max()) / 2**40))
        cells = np.ceil(half / step)
        sensitivity = 2 * step * math.sqrt(sum(int(side) ** 2 for side in cells)) * (1 + 1e-15)
        sigma = sigma_for(sensitivity, mu)
        check_noise_fits(sigma, step)
        return GroupedSumPlan(self, sensitivity, sigma, step, cells)

    def _ranking_plan(self, mu: float, places: Floats) -> GroupedSumPlan:
        furthest = largest_distance(places)
        step = power_of_two_below(furthest * min(max(1 / mu / (10 * self.groups), 2.0**-40), 2.0**-20))
        # Half a cell for each of two rankings and coordinate; the last factor covers the rounding of means of places.
        sensitivity = (furthest + step * math.sqrt(self.size) * (1 + 1e-6)) * (1 + 1e-15)
        sigma = sigma_for(sensitivity, mu)
        check_noise_fits(sigma, step)
        return GroupedSumPlan(self, sensitivity, sigma, step, np.full(self.size, math.inf))


@dataclass(frozen=True)
class GroupedSumPlan:
    """A grouped sum with its noise fixed."""

    question: GroupedSum
    sensitivity: float
    sigma: float
    step: float
    half_cells: Floats

    @property
    def event(self) -> GaussianSum:
        """One Gaussian sum over the groups."""
        return GaussianSum(self.sensitivity, self.sigma)

    @cached_property
    def _middle(self) -> Floats:
        middle: Floats = (np.asarray(self.question.low) + np.asarray(self.question.high)) / 2
        return middle

    @property
    def stds(self) -> Floats:
        """The noise of every number of the flat answer."""
        return np.full(self.question.size, self.sigma)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """Noise first; then each draw assigns the rows to groups anew."""
        size = self.question.size
        noise = rounded_gaussian(self.sigma / self.step, draws * size).reshape(draws, size)
        return (self.exact_cells(rows, block_rows, draws) + noise) * self.step + self.question.groups * self._middle

    def exact_cells(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.int64]:
        """The sums over groups in cells from the middle, (draws, size). Never leaves the vault."""
        return hushed(lambda: self._exact_cells(rows, block_rows, draws))

    def _exact_cells(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.int64]:
        question = self.question
        everything = _all_rows(rows, block_rows)
        said = np.full((draws, question.groups, question.size), np.nan)
        with (
            progress("explaining groups", draws * question.groups) as advance,
            _runner(question, rows.setting) as run,
        ):
            for draw in said:
                for group, members in enumerate(_assigned(everything, question.groups)):
                    # An empty group is not run; one that fails says its default, and why it failed would be data.
                    result = attempt(lambda members=members: run(members), None) if len(members) else None  # type: ignore[misc]
                    if result is not None and result.shape == (question.size,):
                        draw[group] = result
                    advance(1)
                    stop_if_interrupted()
        return np.asarray(self._on_grid(said).sum(axis=1))

    def _on_grid(self, said: Floats) -> NDArray[np.int64]:
        """What groups said, (..., size), in whole cells inside the box; the default where it is not finite."""
        question = self.question
        usable = np.isfinite(said).all(axis=-1, keepdims=True)
        if question.places is None:
            inside = np.clip(np.where(usable, said, np.asarray(question.default)), question.low, question.high)
        else:  # equal scores everywhere share all the points
            inside = points_of(np.where(usable, said, 0.0), np.asarray(question.places))
        cells = np.rint((inside - self._middle) / self.step)
        return np.clip(cells, -self.half_cells, self.half_cells).astype(np.int64)

    def shape(self, flat: Floats) -> Answer:
        """The sum over groups, and the mean."""
        return Answer(flat, {"sum": flat, "mean": flat / self.question.groups})


def _all_rows(rows: RowPass, block_rows: int) -> Floats:
    """Every row that counts, in memory: a group function may need all of its rows at once."""
    if rows.source.changed():
        rows.predictions.forget()
    kept = []
    for chunk in rows.source.chunks(max(block_rows, 4096)):
        complete, valid = rows.setting.schema.complete(chunk)
        kept.append(complete[valid])
    return np.concatenate(kept) if kept else np.empty((0, rows.setting.schema.n_columns))


def _group_call(fn: Callable[[Block], ArrayLike], setting: Setting) -> Callable[[Floats], Floats]:
    def predict(model: Model, values: Floats) -> Floats:
        return model.predict(setting.feature_schema, values)

    def call(raw: Floats) -> Floats:
        return np.atleast_1d(np.asarray(fn(Block(raw, setting, predict)), dtype=np.float64))

    return call


def _assigned(raw: Floats, groups: int) -> Iterator[Floats]:
    """The rows of each group, by a fresh uniform draw for every row."""
    place = uniform_below(groups, len(raw))
    order = np.argsort(place, kind="stable")
    edges = np.searchsorted(place[order], np.arange(groups + 1)).tolist()
    return (raw[order[start:stop]] for start, stop in pairwise(edges))


@contextmanager
def _runner(question: GroupedSum, setting: Setting) -> Iterator[Callable[[Floats], Floats | None]]:
    """What runs one group and returns its result; None, or whatever it raises, when it fails."""
    call = _group_call(question.fn, setting)
    if question.isolation == "none":
        yield call
        return
    with GroupServer(call, question.timeout_seconds) as server:
        yield server.run
