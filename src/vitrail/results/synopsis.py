"""A synopsis: released moments that explain any point, on any machine, without the data. No vault, no ledger, no model.

Explanations are computed from the release by linear algebra (``solve.linear``): everything here is post-processing and costs
nothing.

*With an intercept* an explanation is a ridge regression, and its bands follow from the
law of the noise on the moments: independent, Gaussian, sigma over the scale on every sum, drawn ``NOISE_DRAWS`` times and
carried through to the statistics of each point (``solve.linear.ridge``). *Without one* the slope is the best in the
paper's unit ball, and noise of that law is added to the
released sums again, 59 times, and every explanation is solved again. The half-width is the 57th smallest move of the value,
times the factor of ``solve.linear.statistics`` for estimates that noise has already turned; it is about the ball's own
optimum.

A weight that is not polynomial is replaced by the nearest line in the squared distance. Bands are about the explanation
under that line, on the same rows without noise: what the line itself moves is not in them, and a note says so. Nor is
sampling error. How often bands held: benchmarks/bands_local.py.

*Rows that count.* Among the sums is that of 1, cell by cell. Statistics are divided by it, and the result says it; but an
explanation depends on no count: both sides of its equations are divided by the same number, and so is their noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .. import _checks
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..model import Model
from ..schema import Schema
from ..solve.linear.coordinates import Coordinates, Partition
from ..solve.linear.least_squares import solve_in_ball
from ..solve.linear.problem import Labels, active_features, by_column, farthest
from ..solve.linear.ridge import NOISE_DRAWS, RIDGE, RidgeFit, ridge_fit
from ..solve.linear.statistics import DRAWS, FEWEST_DRAWS, Structure, calibrated
from ..solve.linear.tensors import Blocks, MomentTensors, WeightedSums, blocks_of, over_cells, part_shapes, shrink
from ..solve.linear.weights import Weight
from .archive import read_bytes
from .attribution import Attribution
from .band_claim import claim_of
from .base import Stored
from .checks import Floats, frozen_numbers, plain_rows
from .row_count import RowCount

SCALES = {"M0", "F0", "H0", "G0", "h", "fh", "hh", "E", "M1", "F1", "H1", "G1", "M2", "F2", "H2", "T"}
"""The kinds of products that are released (``explain.linear.fitting``)."""
AT_ONCE = 256
"""Points solved in one batch: large enough for the matrix products, small enough for memory."""
PROBED_POINTS = 16
"""At which ``half_width`` is computed."""
NOTE_RIDGE = (
    f"Bands are about weighted ridge regression (ridge {RIDGE:g} of the mean eigenvalue) on the same rows without noise. "
    "Sampling error is not in them."
)
NOTE_BALL = (
    "Bands are about the best slope no longer than 1, on the same rows without noise; what that bound takes from "
    "contributions is not in them, nor sampling error."
)
NOTE_LINE = (
    "The weight was replaced by the nearest line in the squared distance; bands are about the explanation under that line, "
    "and what it moves is not in them."
)
NOTE_SHRUNK = "Released sums were shrunk towards independence: the bands do not hold what that moves."
NOTE_TRAINING = "The promise covers the model's training too: its own is added to that of the explanation."
NOTE_NO_MODEL = "The model was not at hand: the outputs shown are the explanation's own predictions."


@dataclass(frozen=True, eq=False, repr=False)
class Synopsis(Stored, stored_as="synopsis/1"):
    """Released moments of a dataset under a model: unlimited local explanations, free.

    Attributes
    ----------
    schema : Schema
        The feature columns.
    weight : Weight
        How rows count by their distance; ``with_weight`` changes it, free.
    labels : {"soft", "hard"}
        Whether the model's output or its sign was explained.
    intercept : bool
        Whether explanations have one; ``with_intercept`` changes it, free.
    output_range : (float, float)
        The model's declared range.
    cells : tuple of str
        The columns by whose levels the rows are cut into cells; empty for one cell.
    scales : mapping
        What each kind of product was multiplied by.
    parts : tuple of arrays
        The release.
    sigma : float
        Standard deviation of the noise on every number of it.
    n_rows_public : int
        The declared row count.
    guarantee, cost : Guarantee, Cost
        The promise and the price for all explanations ever made from it.
    dataset : str
        Whose.
    model : Model or None
        For the outputs shown beside explanations; not part of the file.
    shrinks : bool
        Whether released sums are shrunk towards independence (``with_shrinkage``).

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"dose": vt.Numeric(0, 1), "ward": vt.Categorical(["A", "B"])})
    >>> rows = {"dose": np.linspace(0, 1, 90_000), "ward": np.array(["A", "B"] * 45_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=90_000, budget=vt.Budget(1, 1e-6))
    >>> synopsis = vt.LocalLinear(data, vt.Model(lambda x: 0.2 + 0.5 * x[:, 0], range=(0, 1))).fit(epsilon=1.0)
    >>> synopsis
    Synopsis('patients', 2 columns, 20 numbers, epsilon=1 at delta=1e-06)
    >>> synopsis([{"dose": 0.9, "ward": "A"}, {"dose": 0.1, "ward": "B"}]).top(1)[0].column
    'dose'
    """

    schema: Schema
    weight: Weight
    labels: Labels
    intercept: bool
    output_range: tuple[float, float]
    cells: tuple[str, ...]
    scales: Mapping[str, float]
    parts: tuple[Floats, ...]
    sigma: float
    n_rows_public: int
    guarantee: Guarantee
    cost: Cost
    dataset: str
    model: Model | None = field(default=None, compare=False)
    shrinks: bool = False

    def __post_init__(self) -> None:
        expected = part_shapes(self.partition)
        if tuple(part.shape for part in self.parts) != expected:
            raise InvalidInput(f"the arrays of this synopsis do not fit its schema; their shapes must be {expected}")
        self._fix(parts=tuple(frozen_numbers(part, part.shape, "parts") for part in self.parts))
        self._fix(scales=MappingProxyType(dict(self.scales)))

    def check_read(self) -> None:
        """Refuse scales that nothing can be divided by, and moments that would not fit a machine once laid out."""
        self.coordinates.check_size()
        amounts = (self.sigma, self.n_rows_public, *self.scales.values())
        if set(self.scales) != SCALES or not all(0 < amount < math.inf for amount in amounts):
            raise InvalidInput("its noise, its row count or one of its scales is no positive number")
        if not self.output_range[0] < self.output_range[1]:
            raise InvalidInput("its output range is empty")

    def __repr__(self) -> str:
        size = sum(part.size for part in self.parts)
        return f"Synopsis({self.dataset!r}, {self.schema.n_columns} columns, {size} numbers, {self.guarantee.brief})"

    # --- what it knows -----------------------------------------------------------------------------------------------

    @cached_property
    def partition(self) -> Partition:
        """The cells."""
        return Partition(self.schema, self.cells)

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of the schema."""
        return self.partition.whole

    @cached_property
    def moments(self) -> tuple[MomentTensors, ...]:
        """The released moments of every cell, laid out."""
        return self._laid_out(self._blocks)

    @cached_property
    def _blocks(self) -> tuple[Blocks, ...]:
        return self._shrunk(blocks_of(self.partition, self.scales, self.parts))

    def _shrunk(self, blocks: tuple[Blocks, ...]) -> tuple[Blocks, ...]:
        if not self.shrinks:
            return blocks
        noise = {name: self.sigma / scale for name, scale in self.scales.items()}
        return tuple(shrink(self.partition.rest, block, noise) for block in blocks)

    @cached_property
    def rows_counted(self) -> RowCount:
        """How many rows count, from the released sums as they are, and what was declared."""
        scale = self.scales["M0"]
        return RowCount.of_partitions([self.parts[0][:, 0] / scale], self.sigma / scale, self.n_rows_public)

    def _laid_out(self, blocks: tuple[Blocks, ...]) -> tuple[MomentTensors, ...]:
        return tuple(MomentTensors.of_blocks(self.partition.rest, block) for block in blocks)

    @cached_property
    def largest_distance(self) -> float:
        """The largest distance of a row from a point that the schema allows."""
        return farthest(self.schema)

    def with_weight(self, weight: Weight) -> Synopsis:
        """The same release, read with another weight."""
        return replace(self, weight=weight)

    def with_intercept(self, intercept: bool) -> Synopsis:
        """The same release, read with or without an intercept."""
        return replace(self, intercept=intercept)

    def with_shrinkage(self) -> Synopsis:
        """The same release, its noisiest sums shrunk towards independence (``shrinkage``): where rows or epsilon are few.

        Errors become smaller, but they are no longer centred at zero, so bands cover less than they say.
        """
        return replace(self, shrinks=True)

    # --- explanations ------------------------------------------------------------------------------------------------

    def __call__(self, points: object, *, bands: bool = True, draws: int = DRAWS) -> Attribution:
        """Explain public points.

        Parameters
        ----------
        points : object
            What ``schema.read_points`` takes: a dictionary, a data frame, a list of dictionaries.
        bands : bool
            Whether to show bands; without an intercept they take ``draws`` times as long.
        draws : int
            How many redraws of the noise a band is made from where there is no intercept.

        Returns
        -------
        Attribution
        """
        raw = self.schema.read_points(points)
        if len(raw) == 0:
            raise InvalidInput("there are no points to explain; give at least one")
        w = self.coordinates.of_points(raw)
        _checks.whole("draws", draws, least=FEWEST_DRAWS)
        low, high = self.output_range
        middle, half = (high + low) / 2, (high - low) / 2
        half_widths: Floats | None = None
        if self.intercept:
            ridge = self.ridge(w)
            solution, half_widths = Solution(ridge.intercepts, ridge.slopes, ridge.means), half * ridge.half_widths
        else:
            solution = self._in_ball(w, self.moments)
        values = self._values(raw, solution)
        if bands and not self.intercept:
            half_widths = self._half_widths(raw, w, values, draws)
        half_widths = half_widths if bands else None
        at_point = middle + half * solution.intercepts
        base = at_point - values.sum(axis=1) if self.intercept else np.zeros(len(raw))
        predicted = base + values.sum(axis=1)
        return Attribution(
            values=values,
            base_values=base,
            columns=self.schema.names,
            points=plain_rows(self.schema.frame(raw)),
            outputs=predicted if self.model is None else self.model.predict_points(self.schema, raw),
            guarantee=self.guarantee,
            cost=self.cost,
            method="synopsis",
            band_claim=claim_of(self._measured_as),
            lower=None if half_widths is None else values - half_widths,
            upper=None if half_widths is None else values + half_widths,
            coefficients=half * solution.slopes @ self.coordinates.embedding.T,
            intercepts=at_point,
            features=self.schema.feature_names,
            explains_output=self.model is not None and self.intercept and self.labels == "soft",
            notes=self._notes(bands),
            rows_counted=self.rows_counted,
        )

    @property
    def _measured_as(self) -> str:
        """The kind as which bands were measured: of the model's output, with the weights of benchmarks."""
        if not self.intercept or self.shrinks or self.labels != "soft":
            return "local linear"
        kinds = {"stable": "local cells"} if self.cells else {"polynomial": "local moments", "stable": "local cells"}
        return kinds.get(self.weight.name, "local linear")

    def _notes(self, bands: bool) -> tuple[str, ...]:
        notes = {NOTE_RIDGE: self.intercept, NOTE_BALL: not self.intercept}
        notes |= {NOTE_LINE: self.weight.name != "polynomial", NOTE_SHRUNK: self.shrinks}
        notes = {note: bands and holds for note, holds in notes.items()} | {NOTE_NO_MODEL: self.model is None}
        notes[NOTE_TRAINING] = self.guarantee.protects == "training-data"
        return tuple(note for note, holds in notes.items() if holds)

    def statistics(self, points: object) -> tuple[Floats, Floats]:
        """(A, b) in x of every point, per row that counts: with u = d, or u = (1, d) where the synopsis has an intercept."""
        sums = self._statistics(self.moments, self.coordinates.of_points(self.schema.read_points(points)))
        embedding = self.coordinates.embedding
        gram = np.einsum("ai,qij,bj->qab", embedding, sums.gram, embedding)
        cross, mean = sums.cross @ embedding.T, sums.mean @ embedding.T
        if self.intercept:
            gram, cross = _bordered(sums.total, mean, gram), np.column_stack([sums.labels, cross])
        rows = self.rows_counted.denominator
        return gram / rows, cross / rows

    def _in_ball(self, w: Floats, moments: tuple[MomentTensors, ...]) -> Solution:
        """Slopes in f and the coordinates y around points with coordinates ``w``; there is no intercept."""
        rows, slopes = self.rows_counted.denominator, np.empty((len(w), self.coordinates.size))
        for start in range(0, len(w), AT_ONCE):
            sums = self._statistics(moments, w[start : start + AT_ONCE])
            slopes[start : start + AT_ONCE] = solve_in_ball(sums.gram / rows, sums.cross / rows)
        return Solution(np.zeros(len(w)), slopes, np.zeros_like(slopes))

    def ridge(self, w: Floats) -> RidgeFit:
        """Ridge regressions around points with coordinates ``w``, in f and the coordinates y, with half-widths by column."""
        if not self.intercept:
            raise InvalidInput("a ridge regression has an intercept; use with_intercept(True)")
        return RidgeFit.joined([self._ridge(w[start : start + AT_ONCE]) for start in range(0, len(w), AT_ONCE)])

    def _ridge(self, w: Floats) -> RidgeFit:
        generator = np.random.default_rng(0)  # the release holds all the noise that protects; this only measures it
        a, b = self._equations(self.moments, w)

        def noise() -> tuple[Floats, Floats]:
            # The line that stands for a weight follows the moments: noise moves it, too.
            noisy_a, noisy_b = self._equations(self._noised_again(generator), w)
            return noisy_a - a, noisy_b - b

        columns, drawn = Structure(self.schema).column_of, (noise() for _ in range(NOISE_DRAWS))
        return ridge_fit(a, b, drawn, columns, smallest_mass=self._smallest_mass)

    def _equations(self, moments: tuple[MomentTensors, ...], w: Floats) -> tuple[Floats, Floats]:
        """(A, b) of u = (1, d) in the coordinates y, per row that counts."""
        sums = self._statistics(moments, w)
        gram, cross = _bordered(sums.total, sums.mean, sums.gram), np.column_stack([sums.labels, sums.cross])
        rows = self.rows_counted.denominator
        return gram / rows, cross / rows

    def _noised_again(self, generator: np.random.Generator) -> tuple[MomentTensors, ...]:
        """The released moments with a second helping of their noise."""
        noise = tuple(self.sigma * generator.standard_normal(part.shape) for part in self.parts)
        added = blocks_of(self.partition, self.scales, noise)
        return self._laid_out(self._shrunk(tuple(block + drawn for block, drawn in zip(self._blocks, added, strict=True))))

    def _statistics(self, moments: tuple[MomentTensors, ...], w: Floats) -> WeightedSums:
        return over_cells(self.partition, moments, w, self.weight, self.largest_distance)

    @cached_property
    def _smallest_mass(self) -> float:
        """A total weight, per row that counts, that the noise alone would hardly reach."""
        return 4 * self.sigma / self.scales["M0"] / self.rows_counted.denominator

    def _values(self, raw: Floats, solution: Solution) -> Floats:
        """What each column contributes, in units of the model's output (points, columns)."""
        embedding, half = self.coordinates.embedding, (self.output_range[1] - self.output_range[0]) / 2
        slopes = solution.slopes @ embedding.T
        by_feature = -(solution.means @ embedding.T) if self.intercept else active_features(self.schema, raw)
        return half * by_column(self.schema, slopes * by_feature)

    def _half_widths(self, raw: Floats, w: Floats, values: Floats, draws: int) -> Floats:
        """Half-widths of the bands (points, columns)."""
        generator = np.random.default_rng(0)  # the release holds all the noise that protects; this only measures it
        redrawn = np.empty((len(values), draws, values.shape[1]))
        slopes = np.empty((len(values), draws, self.coordinates.size))
        for draw in range(draws):
            solution = self._in_ball(w, self._noised_again(generator))
            redrawn[:, draw], slopes[:, draw] = self._values(raw, solution), solution.slopes
        return calibrated(values, redrawn, slopes)

    @cached_property
    def half_width(self) -> float | None:
        """The median half-width of the bands, at points drawn from the schema."""
        return self(self.schema.frame(self.schema.probe_rows(PROBED_POINTS))).half_width

    # --- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path, *, model: Model | None = None, weight: Weight | None = None) -> Synopsis:
        """Read what ``save`` wrote; nothing in it is run.

        Parameters
        ----------
        path : path
        model : Model, optional
            For the outputs shown beside explanations.
        weight : Weight, optional
            Instead of the stored one; needed where that was a function of the user's own.
        """
        made = cls.from_bytes(read_bytes(path), what=repr(str(path)))
        made = replace(made, model=model, weight=made.weight if weight is None else weight)
        made.weight(np.zeros(1))  # a stored function of somebody's own says so now
        return made


class Solution(NamedTuple):
    """Local linear models in f and the coordinates y: f = intercept + slope.(y - w)."""

    intercepts: Floats
    slopes: Floats
    means: Floats


def _bordered(total: Floats, mean: Floats, gram: Floats) -> Floats:
    """The Gram matrices of (1, d)."""
    made = np.empty((len(gram), gram.shape[1] + 1, gram.shape[2] + 1))
    made[:, 0, 0], made[:, 0, 1:], made[:, 1:, 0], made[:, 1:, 1:] = total, mean, mean, gram
    return made
