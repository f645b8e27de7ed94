"""Random numbers of a training run: rounded Gaussians on the grid and exact coins, from the operating system's generator.

The same draws as everywhere in the vault (``vault.noise``): the noise is round(sigma Z) in cells of the grid on which the
sums are integers, so that no float of it is visible, and a row enters a step by a coin of its own whose probability is
exactly the rate. They do not depend on rows. For an accelerator the random bits are drawn ahead of the steps that use them,
in threads of their own, and become noise there (``noise_on_device``).

There is no seed. A run without a promise may be handed a generator from outside (``train_maps``), to be repeated bit for
bit; its samples come from there, and it has no noise.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..noise.on_device import rounded_gaussian_from
from ..noise.sampler import bernoulli, rounded_gaussian
from .row_arithmetic import Array

STEPS_AHEAD = 16
STEPS_AT_ONCE = 8
"""On an accelerator the noise of so many steps is worked out together, and the host waits for it once."""


@dataclass(frozen=True)
class StepDraws:
    """What one step draws: the indices of the rows that enter (None for all of them), and the noise in cells (or None)."""

    rows: NDArray[np.int64] | None
    noise: Array | None


def fresh_generator() -> np.random.Generator:
    """256 bits of the operating system: for first weights and for samples that promise nothing."""
    return np.random.default_rng(int.from_bytes(os.urandom(32), "little"))


def private_draws(
    n_rows: int, rate: float, sigma_cells: float, size: int, steps: int, *, device: Any = None
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
    """

    def entering() -> NDArray[np.int64] | None:
        return None if rate == 1 else np.flatnonzero(bernoulli(rate, n_rows))

    if device is None:
        for _ in range(steps):
            yield StepDraws(entering(), rounded_gaussian(sigma_cells, size))
        return

    def bits() -> tuple[NDArray[np.int64] | None, bytes]:
        return entering(), os.urandom(8 * size)

    with ThreadPoolExecutor(2, "vitrail-draws") as pool:
        waiting: deque[Future[tuple[NDArray[np.int64] | None, bytes]]] = deque()
        asked = 0
        for start in range(0, steps, STEPS_AT_ONCE):
            while asked < min(steps, start + STEPS_AHEAD):
                waiting.append(pool.submit(bits))
                asked += 1
            drawn = [waiting.popleft().result() for _ in range(min(STEPS_AT_ONCE, steps - start))]
            words = np.frombuffer(b"".join(some for _, some in drawn), np.int64).copy()
            noise = rounded_gaussian_from(words, sigma_cells, device).reshape(len(drawn), size)
            yield from (StepDraws(rows, noise[step]) for step, (rows, _) in enumerate(drawn))


def open_draws(n_rows: int, rate: float, steps: int, generator: np.random.Generator) -> Iterator[StepDraws]:
    """The samples of a run without a promise."""
    for _ in range(steps):
        yield StepDraws(None if rate == 1 else np.flatnonzero(generator.random(n_rows) < rate), None)
