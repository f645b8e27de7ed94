"""Private training of locally linear maps: a fixed block of noisy clipped sums, charged before a row is read.

*Persons.* Where rows carry their persons (``rows.persons``), the coin is a person's, and whoever enters a step is there with
one of their rows, drawn anew each time: on average the mean over their rows. Fix the draws of everybody else: what a step
releases is then a mixture, over that row, of what it releases for a person with that row alone, and hockey-stick divergences
are convex: it costs no more than the dearest row would.

*What is released.* At every step each row enters with probability ``sampling_rate``, by a coin of its own; the rows
that entered give their clipped gradients as integers (``map_gradients``: at most 2^B cells of clip / 2^B, whatever the
row, and the same whatever the other rows are); the exact integer sum gets round(sigma Z) in every coordinate, sigma =
noise_multiplier 2^B cells, from the operating system's generator. That is a function of the continuous Gaussian
mechanism's output, as for every other question. Everything else (the step of the optimiser, the schedule, the average
of the weights) is a function of these noisy sums and of public numbers, so the whole sequence of weights is covered.

*What it costs.* ``steps`` Poisson-sampled Gaussian sums of sensitivity ``clip``, all fixed beforehand: the event
``FixedBlock``, whose (epsilon, delta) is that of the privacy loss distribution (``accounting.events``). For
``sampling_rate`` 1 they are Gaussian sums, and mu = sqrt(steps) / noise_multiplier exactly. The rate comes from the
declared row count, the steps from nobody: no look at the rows decides when to stop.

*Neighbours.* add-remove: the row's vector is there or not, distance ``clip``. replace-one is priced by the same
accountant for that relation (the two vectors may point apart).

*Not counted*: how long it takes (docs/guarantees.md).

**Random numbers**: rounded Gaussians on the grid and exact coins, from the operating system's generator. The same draws as
everywhere in the vault (``vault.noise``): the noise is round(sigma Z) in cells of the grid on which the sums are integers,
so that no float of it is visible, and a row enters a step by a coin of its own whose probability is exactly the rate. They
do not depend on rows. For an accelerator the random bits are drawn ahead of the steps that use them, in threads of their
own, and become noise there.

There is no seed. A run without a promise may be handed a generator from outside (``train_maps``), to be repeated bit for
bit; its samples come from there, and it has no noise.

**The rows** are read from the vault's source, moved to the device, and nowhere else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...errors import InvalidInput
from ..engines.row_pass import in_order
from ..noise.sampler import bernoulli, rounded_gaussian, rounded_gaussian_from, uniform_below
from ..public_facts import PublicFacts
from ..rows.row_function import gathered
from ..rows.sources import RowSource
from ..sums.device import check_device, on_host, placed
from .feature_curves import FeatureCurves
from .map_gradients import clipped_cells, row_coefficients, rows_that_stay_exact, summed_products
from .plan import MapTraining
from .row_vectors import Array, PublicMatrices, RunRows, TrainingRows, training_vectors

BLOCK_NUMBERS = 2**19
"""Responses that are held at once on the CPU, where they should stay in the cache; 2^7 times as many on an accelerator."""


@dataclass(frozen=True)
class People:
    """Where each person's rows begin, and how many there are."""

    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    def one_row_each(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each of these people one of their rows. That its odds are equal up to 2^-53 is accuracy, not privacy."""
        drawn = uniform_below(2**53, len(chosen)) * 2.0**-53
        return np.asarray(self.starts[chosen] + (drawn * self.counts[chosen]).astype(np.int64))

    def of_rows(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], People]:
        """The rows of some people, as a mask of all rows, and these people among those rows alone."""
        counts = self.counts[chosen]
        return np.repeat(chosen, self.counts), People(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True)
class TrainedMaps:
    """What leaves a run: maps as they act on features (M, K, P0), and biases (M, K)."""

    maps: Floats
    biases: Floats


def train_maps(
    training: MapTraining,
    features: Array,
    labels: Array,
    *,
    advance: Callable[[int], None] | None = None,
    generator: np.random.Generator | None = None,
    people: People | None = None,
) -> TrainedMaps:
    """Run it. The rows are read here; the caller has charged for it, or holds the rows anyway.

    Parameters
    ----------
    training : MapTraining
        The plan.
    features : array (rows, P0) of 32-bit floats
        NumPy or torch; where it lies is where the work is done. Curved already, where the plan has curves.
    labels : array (rows,) of integers
        Classes by number. A label out of range is a row that counts zero.
    advance : function, optional
        Told of every step.
    generator : numpy.random.Generator, optional
        To repeat a run that promises nothing. A private run draws from the operating system.
    people : People, optional
        Whose rows they are; without it every row is somebody of its own.
    """
    if generator is not None and training.private:
        raise InvalidInput(
            "a generator is given for a private run; noise that can be drawn again hides nothing: leave it out"
        )
    matrices = PublicMatrices.of(training.projections, training.filters, features.shape[1])
    with np.errstate(all="ignore"):  # what overflows belongs to a row that counts zero
        rows = training_vectors(features, labels, training.n_classes, matrices, training.row_length)
        weights = _Run(training, rows, generator, people).weights(advance)
    return TrainedMaps(matrices.back_to_features(weights[:, :, :-1]), np.ascontiguousarray(weights[:, :, -1]))


@dataclass
class _Run:
    training: MapTraining
    rows: RunRows
    generator: np.random.Generator | None = None
    people: People | None = None

    def weights(self, advance: Callable[[int], None] | None) -> Floats:
        """Adam on noisy sums; the average of the last part of the way. Shape (M, K, W), the biases last."""
        plan = self.training
        xp = array_api_compat.array_namespace(self.rows.features)
        shape = (plan.n_maps, plan.n_classes, self.rows.width)
        # 256 bits of the operating system: for first weights, and for samples that promise nothing
        generator = self.generator or np.random.default_rng(int.from_bytes(os.urandom(32), "little"))
        weights = _like(xp, generator.uniform(-plan.start, plan.start, shape), self.rows.features)
        decay = _like(xp, np.append(np.full(shape[2] - 1, plan.decay), 0.0), self.rows.features)  # none on biases
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
        return on_host(mean)

    def draws(self, size: int, generator: np.random.Generator) -> Iterator[StepDraws]:
        """What the steps draw; none of it depends on the rows' values."""
        plan, n_rows = self.training, self.rows.n_rows
        if not plan.private:
            return (
                StepDraws(np.flatnonzero(generator.random(n_rows) < plan.sampling_rate) if plan.sampling_rate < 1 else None)
                for _ in range(plan.steps)
            )
        sigma_cells = plan.noise_multiplier * 2.0**plan.cell_bits
        device = None if isinstance(self.rows.features, np.ndarray) else self.rows.features.device
        return private_draws(n_rows, plan.sampling_rate, sigma_cells, size, plan.steps, device=device, people=self.people)

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
        plan, on_host = self.training, isinstance(self.rows.features, np.ndarray)
        xp, copies = array_api_compat.array_namespace(self.rows.features), self.rows.matrices.copies
        room = BLOCK_NUMBERS * (1 if on_host else 2**7)
        groups = 1 if plan.projections is None else plan.n_maps
        # numbers of a row; vectors are used twice
        numbers = copies * max(plan.n_maps * plan.n_classes, groups * self.rows.width // 4)
        at_once = min(rows_that_stay_exact(plan.cell_bits, copies), max(64, room // numbers))
        count = self.rows.n_rows if draws.rows is None else len(draws.rows)
        chosen = None if draws.rows is None else _like(xp, draws.rows, self.rows.features)
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


STEPS_AHEAD = 16
STEPS_AT_ONCE = 8
"""On an accelerator the noise of so many steps is worked out together, and the host waits for it once."""


@dataclass(frozen=True)
class StepDraws:
    """What one step draws: the indices of the rows that enter (None for all of them), and the noise in cells (or None)."""

    rows: NDArray[np.int64] | None
    noise: Array | None = None


def private_draws(
    n_rows: int,
    rate: float,
    sigma_cells: float,
    size: int,
    steps: int,
    *,
    device: Any = None,
    people: People | None = None,
) -> Iterator[StepDraws]:
    """The draws of a private run, step by step, made a few steps ahead.

    Parameters
    ----------
    n_rows : int
        Rows that toss a coin.
    rate, sigma_cells : float
        Probability that a row enters; standard deviation of the noise in cells.
    size, steps : int
        Numbers in a sum; how many sums.
    device : torch.device, optional
        Where the noise is wanted; NumPy arrays if not given.
    people : People, optional
        Who tosses a coin instead, and enters with one row.
    """

    def entering() -> NDArray[np.int64] | None:
        if people is not None:
            everybody = len(people.counts)
            return people.one_row_each(np.flatnonzero(bernoulli(rate, everybody)) if rate < 1 else np.arange(everybody))
        return None if rate == 1 else np.flatnonzero(bernoulli(rate, n_rows))

    if device is None:
        for _ in range(steps):
            yield StepDraws(entering(), rounded_gaussian(sigma_cells, size))
        return

    drawn = in_order(lambda _: (entering(), os.urandom(8 * size)), iter(range(steps)), threads=2, ahead=STEPS_AHEAD)
    while some := list(islice(drawn, STEPS_AT_ONCE)):
        words = np.frombuffer(b"".join(word for _, word in some), np.int64).copy()
        noise = rounded_gaussian_from(words, sigma_cells, device).reshape(len(some), size)
        yield from (StepDraws(rows, noise[step]) for step, (rows, _) in enumerate(some))


def on_device(features: NDArray[np.float32], labels: NDArray[np.int64], device: str) -> tuple[Array, Array]:
    """The rows where the work shall be done; see :func:`check_device`."""
    device = check_device(device)
    return placed(features, device), placed(labels, device)


def training_rows(
    source: RowSource, facts: PublicFacts, curves: FeatureCurves | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64], People | None]:
    """Features and classes of private rows, and whose they are, for ``train_maps`` and nobody else.

    Where there are ``curves``, features are curved, row by row.

    Rows that the schema lets count zero are left out: a row more or less is a row more or less here too.
    """
    assert facts.target is not None
    column = facts.schema.column_index(facts.target)
    raw, starts = gathered(source, facts)
    width = facts.feature_schema.n_features if curves is None else curves.width
    features = np.empty((len(raw), width), np.float32)
    for start in range(0, len(raw), 4096):
        some = slice(start, start + 4096)
        scaled, _ = facts.feature_schema.features(np.ascontiguousarray(np.delete(raw[some], column, axis=1)))
        features[some] = scaled if curves is None else curves.of(scaled)
    people = None if starts is None else People(starts, np.diff(starts, append=len(raw)))
    return features, raw[:, column].astype(np.int64), people
