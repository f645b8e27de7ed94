"""Private training of locally linear maps: a fixed block of noisy clipped sums, charged before a row is read.

*What is released.* At every step each row enters with probability ``sampling_rate``, on its own; the rows that entered
give their clipped gradients (``map_gradients``: norm at most ``clip``, whatever the row); their sum gets Gaussian noise of
standard deviation ``noise_multiplier * clip`` on every coordinate. Everything else (the step of the optimiser, the
schedule, the average of the weights) is a function of these noisy sums and of public numbers, so the whole sequence of
weights is covered.

*What it costs.* ``steps`` Poisson-sampled Gaussian sums of sensitivity ``clip``, all fixed beforehand: the event
``FixedBlock``, whose (epsilon, delta) is that of the privacy loss distribution (``accounting.blocks``). For
``sampling_rate`` 1 they are Gaussian sums, and mu = sqrt(steps) / noise_multiplier exactly. The rate comes from the
declared row count, the steps from nobody: no look at the rows decides when to stop.

*Neighbours.* add-remove: the row's vector is there or not, distance ``clip``. replace-one is priced by the same accountant
for that relation (the two vectors may point apart).

*Not counted*: how long it takes, and the last bits of floats (docs/guarantees.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from ..accounting import FixedBlock, JsonValue, rounded_down, rounded_up
from ..errors import InvalidInput
from .map_gradients import Array, Weights, clipped_sum, safe_clip
from .training_noise import Randomness, fresh_generator, randomness_on
from .training_price import run_epsilon

FloatArray = NDArray[np.float32]
BLOCK_NUMBERS = 2**24
"""Responses that are held at once on the CPU; eight times as many on an accelerator."""


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
        noisy = self.noise_multiplier > 0 and math.isfinite(self.clip) and self.clip > 0
        if math.isfinite(self.epsilon) and not noisy:
            raise InvalidInput("a private run needs a positive noise_multiplier and a finite, positive clip")
        if not 0 < self.sampling_rate <= 1 or self.steps < 1:
            raise InvalidInput(
                f"sampling_rate is {self.sampling_rate!r} and steps {self.steps!r}; they must lie in (0, 1] and from 1 up"
            )

    @property
    def private(self) -> bool:
        """Whether there is a promise."""
        return math.isfinite(self.epsilon)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coordinate of a step's sum."""
        return self.noise_multiplier * self.clip

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

    def check_width(self, n_features: int) -> None:
        """Refuse a run that was planned for other features."""
        given = self.filters if self.filters is not None else self.projections
        if given is not None and given.shape[2] != n_features:
            raise InvalidInput(f"the run is for {given.shape[2]} features; the schema has {n_features}. Nothing was charged")

    def check_fits(self, n_features: int, neighbours: str) -> None:
        """Refuse a run that does not fit the data, or whose noise does not pay for its epsilon: a bill must be true."""
        self.check_width(n_features)
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
    with exact_products(features):
        return _train(training, features, labels, advance, generator)


def _train(
    training: MapTraining,
    features: Array,
    labels: Array,
    advance: Callable[[int], None] | None,
    generator: np.random.Generator | None,
) -> TrainedMaps:
    xp = array_api_compat.array_namespace(features)
    inputs = _inputs(xp, training, features)
    # Zero times infinity is no number, and would show in every weight: a row that overflows says nothing there.
    inputs = xp.where(xp.isfinite(inputs), inputs, xp.zeros_like(inputs))
    projections = None if training.projections is None else _like(xp, training.projections, features)
    lengths = _lengths(xp, inputs, projections)
    targets = xp.astype(labels[:, None] == _arange(xp, training.n_classes, features)[None, :], xp.float32)
    run = _Run(xp, training, inputs, targets, lengths, projections, randomness_on(features, generator), generator)
    weights = run.weights(advance)
    maps = weights.maps if projections is None else xp.matmul(weights.maps, projections)
    if training.filters is not None:
        maps = xp.matmul(maps, _like(xp, training.filters, features)[:, 0, :])
    return TrainedMaps(_numpy(maps), _numpy(weights.biases))


@contextmanager
def exact_products(like: Array) -> Iterator[None]:
    """32-bit products in all their bits, which the bound counts on: torch may have been told to be content with fewer."""
    if isinstance(like, np.ndarray):
        yield
        return
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@dataclass
class _Run:
    xp: Any
    training: MapTraining
    inputs: Array
    targets: Array
    lengths: Array
    projections: Array | None
    randomness: Randomness
    generator: np.random.Generator | None = None

    def weights(self, advance: Callable[[int], None] | None) -> Weights:
        """Adam on noisy sums; the average of the last part of the way."""
        xp, plan = self.xp, self.training
        width = self.inputs.shape[-1] if self.projections is None else self.projections.shape[1]
        maps = self._first((plan.n_maps, plan.n_classes, width))
        biases = self._first((plan.n_maps, plan.n_classes))
        state = [_Adam(xp, maps, plan.momentum), _Adam(xp, biases, plan.momentum)]
        mean = [xp.zeros_like(maps), xp.zeros_like(biases)]
        averaged_from = plan.steps - max(1, round(plan.average * plan.steps))
        clip = plan.clip
        if math.isfinite(clip):
            copies = self.inputs.shape[1] if self.inputs.ndim == 3 else 1
            clip = safe_clip(clip, plan.n_maps, plan.n_classes, self.inputs.shape[-1], copies)
        std = plan.noise_multiplier * plan.clip if plan.private else 0.0
        for step in range(plan.steps):
            self.randomness.begin_step()
            towards = self._noisy_sum(maps, biases, clip, std)
            rate = plan.learning_rate * _schedule(plan.schedule, step / plan.steps)
            maps = maps - state[0].step(towards[0] / plan.expected_rows + plan.decay * maps, rate)
            biases = biases - state[1].step(towards[1] / plan.expected_rows, rate)
            if step >= averaged_from:
                share = 1 / (step - averaged_from + 1)
                mean = [old + share * (new - old) for old, new in zip(mean, (maps, biases), strict=True)]
            if advance is not None:
                advance(1)
        return Weights(mean[0], mean[1])

    def _first(self, shape: tuple[int, ...]) -> Array:
        """The first weights: public, but each run its own."""
        generator = fresh_generator() if self.generator is None else self.generator
        drawn = generator.uniform(-self.training.start, self.training.start, shape).astype(np.float32)
        return _like(self.xp, drawn, self.inputs)

    def _noisy_sum(self, maps: Array, biases: Array, clip: float, std: float) -> list[Array]:
        xp, plan = self.xp, self.training
        acting = maps if self.projections is None else xp.matmul(maps, self.projections)
        rows = self.inputs.shape[0]
        places = None if plan.sampling_rate == 1 else self.randomness.sample(rows, plan.sampling_rate)
        count = rows if places is None else places.shape[0]
        copies = self.inputs.shape[1] if self.inputs.ndim == 3 else 1
        room = BLOCK_NUMBERS * (1 if isinstance(self.inputs, np.ndarray) else 16)
        at_once = max(1, room // (copies * plan.n_maps * plan.n_classes))
        total_maps, total_biases = xp.zeros_like(acting), xp.zeros_like(biases)
        for start in range(0, count, at_once):
            here = slice(start, min(start + at_once, count))
            if places is None:
                inputs, targets, lengths = self.inputs[here], self.targets[here], self.lengths[here]
            else:
                taken = places[here]
                inputs, targets, lengths = (xp.take(a, taken, axis=0) for a in (self.inputs, self.targets, self.lengths))
            part = clipped_sum(inputs, targets, lengths, acting, biases, beta=plan.beta, clip=clip)
            total_maps, total_biases = total_maps + part.maps, total_biases + part.biases
        if self.projections is not None:
            total_maps = xp.matmul(total_maps, xp.matrix_transpose(self.projections))
        if std:
            total_maps = total_maps + self.randomness.normal(tuple(maps.shape), std)
            total_biases = total_biases + self.randomness.normal(tuple(biases.shape), std)
        return [total_maps, total_biases]


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


def _inputs(xp: Any, training: MapTraining, features: Array) -> Array:
    if training.row_length is not None:
        lengths = xp.sqrt(xp.sum(features * features, axis=1, keepdims=True))
        features = features * (training.row_length / xp.where(lengths > 0, lengths, xp.ones_like(lengths)))
    if training.filters is None:
        return features
    filters = _like(xp, training.filters, features)  # (P, copies, P0)
    width, copies, given = filters.shape
    flat = xp.reshape(xp.permute_dims(filters, (1, 0, 2)), (copies * width, given))
    made = xp.matmul(features, flat.T)
    return made if copies == 1 else xp.reshape(made, (features.shape[0], copies, width))


def _lengths(xp: Any, inputs: Array, projections: Array | None) -> Array:
    """What clipping needs to know of every row: see ``clipped_sum``."""
    if inputs.ndim == 3:
        if projections is not None:
            raise InvalidInput("copies of rows and a projection per map do not go together; leave one of them out")
        return xp.matmul(inputs, xp.matrix_transpose(inputs))
    if projections is None:
        return xp.sum(inputs * inputs, axis=1, keepdims=True)
    columns = []
    for place in range(projections.shape[0]):
        projected = xp.matmul(inputs, projections[place].T)
        columns.append(xp.sum(projected * projected, axis=1))
    return xp.stack(columns, axis=1)


def _arange(xp: Any, count: int, like: Array) -> Array:
    return xp.arange(count, device=array_api_compat.device(like))


def _like(xp: Any, numbers: NDArray[np.float32], like: Array) -> Array:
    return xp.asarray(numbers, device=array_api_compat.device(like))


def _numpy(numbers: Array) -> NDArray[np.float64]:
    on_host = numbers.cpu() if hasattr(numbers, "cpu") else numbers.get() if hasattr(numbers, "get") else numbers
    return np.asarray(on_host, dtype=np.float64)


def _digest(numbers: FloatArray | None) -> str | None:
    if numbers is None:
        return None
    content = np.ascontiguousarray(numbers, dtype=np.float32)
    return hashlib.sha256(repr(content.shape).encode() + content.tobytes()).hexdigest()
