"""Random numbers of a training run: rounded Gaussians on the grid and exact coins, from the operating system's generator.

The same draws as everywhere in the vault (``vault.noise``): the noise is round(sigma Z) in cells of the grid on which the
sums are integers, so that no float of it is visible, and a row enters a step by a coin of its own whose probability is
exactly the rate. They do not depend on rows, so they are made ahead of the steps that use them, in threads of their own:
an accelerator does not wait for them.

There is no seed. A run without a promise may be handed a generator from outside (``train_maps``), to be repeated bit for
bit; its samples come from there, and it has no noise.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .noise import bernoulli, rounded_gaussian

STEPS_AHEAD = 6
LARGEST_THREADS = 4


@dataclass(frozen=True)
class StepDraws:
    """What one step draws: the indices of the rows that enter (None for all of them), and the noise in cells (or None)."""

    rows: NDArray[np.int64] | None
    noise: NDArray[np.int64] | None


def fresh_generator() -> np.random.Generator:
    """256 bits of the operating system: for first weights and for samples that promise nothing."""
    return np.random.default_rng(int.from_bytes(os.urandom(32), "little"))


def private_draws(
    n_rows: int, rate: float, sigma_cells: float, size: int, steps: int, *, threads: int = 1
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
    threads : int
        How many steps are drawn at once.
    """

    def draw() -> StepDraws:
        rows = None if rate == 1 else np.flatnonzero(bernoulli(rate, n_rows))
        return StepDraws(rows, rounded_gaussian(sigma_cells, size))

    with ThreadPoolExecutor(min(threads, LARGEST_THREADS, steps), "vitrail-draws") as pool:
        waiting: deque[Future[StepDraws]] = deque(pool.submit(draw) for _ in range(min(steps, STEPS_AHEAD)))
        for step in range(steps):
            drawn = waiting.popleft().result()
            if step + STEPS_AHEAD < steps:
                waiting.append(pool.submit(draw))
            yield drawn


def open_draws(n_rows: int, rate: float, steps: int, generator: np.random.Generator) -> Iterator[StepDraws]:
    """The samples of a run without a promise."""
    for _ in range(steps):
        yield StepDraws(None if rate == 1 else np.flatnonzero(generator.random(n_rows) < rate), None)
