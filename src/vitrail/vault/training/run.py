"""Private training of locally linear maps: a fixed block of noisy clipped sums, charged before a row is read.

*What is released.* At every step each row enters with probability ``sampling_rate``, by a coin of its own; the rows
that entered give their clipped gradients as integers (``map_gradients``: at most 2^B cells of clip / 2^B, whatever the
row, and the same whatever the other rows are); the exact integer sum gets round(sigma Z) in every coordinate, sigma =
noise_multiplier 2^B cells, from the operating system's generator. That is a function of the continuous Gaussian
mechanism's output, as for every other question. Everything else (the step of the optimiser, the schedule, the average
of the weights) is a function of these noisy sums and of public numbers, so the whole sequence of weights is covered.

*What it costs.* ``steps`` Poisson-sampled Gaussian sums of sensitivity ``clip``, all fixed beforehand: the event
``FixedBlock``, whose (epsilon, delta) is that of the privacy loss distribution (``accounting.blocks``). For
``sampling_rate`` 1 they are Gaussian sums, and mu = sqrt(steps) / noise_multiplier exactly. The rate comes from the
declared row count, the steps from nobody: no look at the rows decides when to stop.

*Neighbours.* add-remove: the row's vector is there or not, distance ``clip``. replace-one is priced by the same
accountant for that relation (the two vectors may point apart).

*Not counted*: how long it takes (docs/guarantees.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from ...accounting import FixedBlock, JsonValue, rounded_down, rounded_up
from ...errors import InvalidInput
from .map_gradients import COPY_ROOM_BITS, clipped_cells, row_coefficients, rows_that_stay_exact, summed_products
from .plan_checks import check_training, check_width
from .price import run_epsilon
from .row_arithmetic import Array
from .row_vectors import PublicMatrices, RowsMadeAgain, TrainingRows, training_vectors
from .step_noise import StepDraws, fresh_generator, open_draws, private_draws

FloatArray = NDArray[np.float32]
BLOCK_NUMBERS = 2**19
"""Responses that are held at once on the CPU, where they should stay in the cache; 2^7 times as many on an accelerator."""

FINEST_CELL_BITS, LARGEST_SIGMA_BITS = 36, 44


@dataclass(frozen=True, eq=False)
class MapTraining:
    """A training run, fixed before it starts. Nothing in it comes from rows.

    Parameters
    ----------
    n_classes, n_maps : int
        The model: ``n_maps`` linear maps for each class.
    beta : float
        Inverse temperature of the weights of the maps.
    epsilon, delta : float
        The price; ``epsilon`` infinite for a run without noise and without a promise.
    noise_multiplier : float
        Noise over clip; 0 where ``epsilon`` is infinite.
    sampling_rate : float
        Probability with which a row enters a step.
    steps : int
        How many noisy sums.
    clip : float
        The longest gradient of a row; infinite only where ``epsilon`` is.
    expected_rows : float
        Rows expected in a step, from the declared row count: what sums are divided by.
    learning_rate, decay : float
        Of Adam, with a cosine schedule down to zero; ``decay`` is L2 on the maps.
    average : float
        Share of the run, at its end, whose weights are averaged.
    start : float
        Half the width of the uniform first weights.
    filters : array (P, copies, P0), or None
        Public linear maps from features to inputs, one for each copy of a row; the first is what predictions use.
    projections : array (M, P', P), or None
        Public projections, one per map.
    row_length : float, or None
        Scale every row's features to this Euclidean length first, by the row's own length.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.vault import MapTraining
    >>> run = MapTraining(n_classes=2, n_maps=3, noise_multiplier=1.3, sampling_rate=500 / 60_000, steps=2400,
    ...                   epsilon=1.48, delta=1e-5, expected_rows=500)
    >>> run.event.cost().block_epsilon
    1.48
    """

    n_classes: int
    n_maps: int
    noise_multiplier: float
    sampling_rate: float
    steps: int
    epsilon: float
    delta: float
    expected_rows: float
    beta: float = 1.0
    clip: float = 1.0
    learning_rate: float = 1e-2
    decay: float = 0.0
    average: float = 0.25
    start: float = 0.01
    momentum: float = 0.9
    schedule: str = "cosine"
    filters: FloatArray | None = field(default=None, repr=False)
    projections: FloatArray | None = field(default=None, repr=False)
    row_length: float | None = None

    def __post_init__(self) -> None:
        check_training(self)

    @property
    def private(self) -> bool:
        """Whether there is a promise."""
        return math.isfinite(self.epsilon)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coordinate of a step's sum."""
        return self.noise_multiplier * self.clip

    @property
    def cell_bits(self) -> int:
        """B: a sum is counted in cells of clip / 2^B, finer than the noise by 2^B times the noise multiplier."""
        finest = FINEST_CELL_BITS if self.filters is None else FINEST_CELL_BITS - COPY_ROOM_BITS
        return min(finest, LARGEST_SIGMA_BITS - math.ceil(math.log2(max(1.0, self.noise_multiplier))))

    @property
    def event(self) -> FixedBlock:
        """What the ledger records."""
        return FixedBlock(self.epsilon, self.delta, self.noise_multiplier, self.sampling_rate, self.steps)

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters; arrays by their digest."""
        return {
            "question": "map-training",
            "n_classes": self.n_classes,
            "n_maps": self.n_maps,
            "beta": self.beta,
            "clip": self.clip,
            "learning_rate": self.learning_rate,
            "decay": self.decay,
            "average": self.average,
            "start": self.start,
            "momentum": self.momentum,
            "schedule": self.schedule,
            "expected_rows": self.expected_rows,
            "filters": _digest(self.filters),
            "projections": _digest(self.projections),
            "row_length": self.row_length,
        }

    def check_fits(self, n_features: int, neighbours: str) -> None:
        """Refuse a run that does not fit the data, or whose noise does not pay for its epsilon: a bill must be true."""
        check_width(self, n_features)
        cost = run_epsilon(self.noise_multiplier, self.sampling_rate, self.steps, self.delta, neighbours)
        if not cost <= self.epsilon:
            raise InvalidInput(
                f"noise_multiplier {self.noise_multiplier:.6g} makes this run cost epsilon {rounded_up(cost)} at delta "
                f"{rounded_up(self.delta)} ({neighbours}); it says {rounded_down(self.epsilon)}. Nothing was charged"
            )


@dataclass(frozen=True)
class TrainedMaps:
    """What leaves a run: maps as they act on features (M, K, P0), and biases (M, K)."""

    maps: NDArray[np.float64]
    biases: NDArray[np.float64]


def train_maps(
    training: MapTraining,
    features: Array,
    labels: Array,
    *,
    advance: Callable[[int], None] | None = None,
    generator: np.random.Generator | None = None,
) -> TrainedMaps:
    """Run it. The rows are read here; the caller has charged for it, or holds the rows anyway.

    Parameters
    ----------
    training : MapTraining
        The plan.
    features : array (rows, P0) of 32-bit floats
        NumPy or torch; where it lies is where the work is done.
    labels : array (rows,) of integers
        Classes by number. A label out of range is a row that counts zero.
    advance : function, optional
        Told of every step.
    generator : numpy.random.Generator, optional
        To repeat a run that promises nothing. A private run draws from the operating system.
    """
    if generator is not None and training.private:
        raise InvalidInput(
            "a generator is given for a private run; noise that can be drawn again hides nothing: leave it out"
        )
    matrices = PublicMatrices.of(training.projections, training.filters, features.shape[1])
    with np.errstate(all="ignore"):  # what overflows belongs to a row that counts zero
        rows = training_vectors(features, labels, training.n_classes, matrices, training.row_length)
        weights = _Run(training, rows, generator).weights(advance)
    return TrainedMaps(matrices.back_to_features(weights[:, :, :-1]), np.ascontiguousarray(weights[:, :, -1]))


@dataclass
class _Run:
    training: MapTraining
    rows: TrainingRows | RowsMadeAgain
    generator: np.random.Generator | None = None

    def weights(self, advance: Callable[[int], None] | None) -> NDArray[np.float64]:
        """Adam on noisy sums; the average of the last part of the way. Shape (M, K, W), the biases last."""
        plan = self.training
        xp = array_api_compat.array_namespace(self.rows.place)
        shape = (plan.n_maps, plan.n_classes, self.rows.width)
        generator = fresh_generator() if self.generator is None else self.generator
        weights = _like(xp, generator.uniform(-plan.start, plan.start, shape), self.rows.place)
        decay = _like(xp, np.append(np.full(shape[2] - 1, plan.decay), 0.0), self.rows.place)  # none on biases
        adam, mean = _Adam(xp, weights, plan.momentum), xp.zeros_like(weights)
        averaged_from = plan.steps - max(1, round(plan.average * plan.steps))
        for step, draws in enumerate(self.draws(math.prod(shape), generator)):
            gradient = self.noisy_sum(weights, draws) / plan.expected_rows
            weights = weights - adam.step(
                gradient + decay * weights, plan.learning_rate * _schedule(plan.schedule, step / plan.steps)
            )
            if step >= averaged_from:
                mean = mean + (weights - mean) / (step - averaged_from + 1)
            if advance is not None:
                advance(1)
        return _numpy(mean)

    def draws(self, size: int, generator: np.random.Generator) -> Iterator[StepDraws]:
        """What the steps draw; none of it depends on the rows' values."""
        plan, n_rows = self.training, self.rows.n_rows
        if not plan.private:
            return open_draws(n_rows, plan.sampling_rate, plan.steps, generator)
        sigma_cells = plan.noise_multiplier * 2.0**plan.cell_bits
        device = None if isinstance(self.rows.place, np.ndarray) else self.rows.place.device
        return private_draws(n_rows, plan.sampling_rate, sigma_cells, size, plan.steps, device=device)

    def noisy_sum(self, weights: Array, draws: StepDraws) -> Array:
        """The clipped sum over the rows that entered, with its noise; without privacy, the sum as it is."""
        xp, plan = array_api_compat.array_namespace(weights), self.training
        if not plan.private:
            return sum((self._plain_sum(block, weights) for block in self._blocks(draws)), xp.zeros_like(weights))
        assert draws.noise is not None
        total = xp.reshape(draws.noise, tuple(weights.shape))
        for block in self._blocks(draws):
            total = total + clipped_cells(block, weights, beta=plan.beta, clip=plan.clip, cell_bits=plan.cell_bits)
        return xp.astype(total, xp.float64) * (plan.clip / 2.0**plan.cell_bits)

    def _blocks(self, draws: StepDraws) -> Iterator[TrainingRows]:
        plan, on_host = self.training, isinstance(self.rows.place, np.ndarray)
        xp, copies = array_api_compat.array_namespace(self.rows.place), self.rows.n_copies
        room = BLOCK_NUMBERS * (1 if on_host else 2**7)
        groups = 1 if plan.projections is None else plan.n_maps
        numbers = copies * max(
            plan.n_maps * plan.n_classes, groups * self.rows.width // 4
        )  # of a row; vectors are used twice
        at_once = min(rows_that_stay_exact(plan.cell_bits, copies), max(64, room // numbers))
        count = self.rows.n_rows if draws.rows is None else len(draws.rows)
        chosen = None if draws.rows is None else _like(xp, draws.rows, self.rows.place)
        for start in range(0, count, at_once):
            here = slice(start, min(start + at_once, count))
            yield self.rows.at(here if chosen is None else chosen[here])

    def _plain_sum(self, block: TrainingRows, weights: Array) -> Array:
        xp, copies = array_api_compat.array_namespace(weights), block.vectors.shape[2]
        scale = xp.repeat(block.unit * block.counted / copies, copies)
        plain = row_coefficients(block, weights, self.training.beta) * scale[:, None, None]
        return summed_products(xp, plain, block, tuple(weights.shape))


class _Adam:
    """Kingma & Ba 2015, on numbers that are private already."""

    def __init__(self, xp: Any, like: Array, momentum: float, memory: float = 0.999) -> None:
        self._xp, self._momentum, self._memory, self._steps = xp, momentum, memory, 0
        self._first, self._second = xp.zeros_like(like), xp.zeros_like(like)

    def step(self, gradient: Array, rate: float) -> Array:
        """How far to go, against the gradient."""
        self._steps += 1
        self._first = self._momentum * self._first + (1 - self._momentum) * gradient
        self._second = self._memory * self._second + (1 - self._memory) * gradient * gradient
        size = rate / (1 - self._momentum**self._steps)
        return size * self._first / (self._xp.sqrt(self._second / (1 - self._memory**self._steps)) + 1e-12)


def _schedule(name: str, progress: float) -> float:
    if name == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress))
    return float(0.8 ** math.floor(4 * progress))  # "steps": a fifth less after every quarter of the run


def _like(xp: Any, numbers: NDArray[Any], like: Array) -> Array:
    return xp.asarray(numbers, device=array_api_compat.device(like))


def _numpy(numbers: Array) -> NDArray[np.float64]:
    on_host = numbers.cpu() if hasattr(numbers, "cpu") else numbers.get() if hasattr(numbers, "get") else numbers
    return np.asarray(on_host, dtype=np.float64)


def _digest(numbers: FloatArray | None) -> str | None:
    if numbers is None:
        return None
    content = np.ascontiguousarray(numbers, dtype=np.float32)
    return hashlib.sha256(repr(content.shape).encode() + content.tobytes()).hexdigest()
