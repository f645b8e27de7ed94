"""Random numbers of a training run, on the device where the rows are.

*Poisson samples.* Every row enters a step with probability ``rate``, independently. That is the same law as: draw how many
enter, N ~ Binomial(n, rate), then a set of N rows, all sets being equally likely. The second form needs no answer from the
device before the next command is given, so it is what runs on an accelerator; on NumPy arrays every row tosses its own coin.

*Noise* is a float: Box-Muller or a ziggurat in 32 bits, from generators that are no secure ones (PCG64, Philox), seeded
with fresh bits of the operating system: 256 of them per run on the CPU and for the sizes of samples, 64 at every step on
an accelerator. (torch's own generator on the CPU takes 32 bits only, so NumPy's draws for it.) That is weaker than what
the rest of the vault does (integers from secure bits alone, ``vault.noise``), and docs/guarantees.md says so.

There is no seed. A run without a promise may be handed a generator from outside (``train_maps``), to be repeated bit for
bit.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from ..errors import InvalidInput
from .map_gradients import Array


class Randomness(Protocol):
    """Draws for one run."""

    def begin_step(self) -> None:
        """Take new bits of the operating system, where that is how it works."""
        ...

    def sample(self, n_rows: int, rate: float) -> Array:
        """The places of a Poisson sample of ``n_rows`` rows."""
        ...

    def normal(self, shape: tuple[int, ...], std: float) -> Array:
        """Gaussian floats."""
        ...


def fresh_generator() -> np.random.Generator:
    """256 bits of the operating system."""
    return np.random.default_rng(int.from_bytes(os.urandom(32), "little"))


def _fresh_bits() -> int:
    return int.from_bytes(os.urandom(8), "little")


def randomness_on(like: Array, given: np.random.Generator | None = None) -> Randomness:
    """Draws that live where ``like`` lives; from the operating system unless a generator is given."""
    if isinstance(like, np.ndarray):
        return NumpyRandomness(given)
    if type(like).__module__.split(".")[0] == "torch":
        return TorchCpuRandomness(given) if like.device.type == "cpu" else TorchRandomness(like.device, given)
    raise InvalidInput(f"rows are {type(like).__name__}; a run takes NumPy arrays or torch tensors")


class NumpyRandomness:
    """On NumPy arrays."""

    def __init__(self, given: np.random.Generator | None = None) -> None:
        self._generator = fresh_generator() if given is None else given

    def begin_step(self) -> None:
        """Nothing to do: 256 bits last."""

    def sample(self, n_rows: int, rate: float) -> Array:
        """One coin per row."""
        return np.flatnonzero(self._generator.random(n_rows) < rate)

    def normal(self, shape: tuple[int, ...], std: float) -> Array:
        """32-bit floats."""
        return self._generator.standard_normal(shape, dtype=np.float32) * np.float32(std)


class TorchCpuRandomness:
    """On torch tensors in main memory: NumPy's draws."""

    def __init__(self, given: np.random.Generator | None = None) -> None:
        import torch

        self._torch, self._draws = torch, NumpyRandomness(given)

    def begin_step(self) -> None:
        """Nothing to do."""

    def sample(self, n_rows: int, rate: float) -> Array:
        """One coin per row."""
        return self._torch.from_numpy(self._draws.sample(n_rows, rate))

    def normal(self, shape: tuple[int, ...], std: float) -> Array:
        """32-bit floats."""
        return self._torch.from_numpy(self._draws.normal(shape, std))


class TorchRandomness:
    """On torch tensors of an accelerator."""

    def __init__(self, device: Any, given: np.random.Generator | None = None) -> None:
        import torch

        self._torch, self._device, self._fresh = torch, device, given is None
        self._generator = torch.Generator(device=device)
        self._sizes = fresh_generator() if given is None else given
        self._generator.manual_seed(_fresh_bits() if given is None else int(given.integers(2**63)))

    def begin_step(self) -> None:
        """64 new bits, unless the run is to be reproduced."""
        if self._fresh:
            self._generator.manual_seed(_fresh_bits())

    def sample(self, n_rows: int, rate: float) -> Array:
        """How many, then which."""
        size = int(self._sizes.binomial(n_rows, rate))
        return self._torch.randperm(n_rows, generator=self._generator, device=self._device)[:size]

    def normal(self, shape: tuple[int, ...], std: float) -> Array:
        """32-bit floats."""
        drawn = self._torch.randn(shape, generator=self._generator, device=self._device, dtype=self._torch.float32)
        return drawn.mul_(std)
