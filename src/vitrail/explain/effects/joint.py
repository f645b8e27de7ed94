"""Several explanations in one noisy sum.

A *part* contributes some blocks of numbers per row. Each block b is clipped to its own bound B_b in L2 norm, here, on every
row, and scaled by sqrt(share_b) / B_b. The whole vector of a row then has norm at most sqrt(sum of shares) = 1 (shares are
normalised), so the sum is one :class:`BoundedSum` with bound 1 (2 under replace-one), which the vault enforces once more.
Noise of standard deviation sigma on the sum is noise of sigma B_b / sqrt(share_b) on block b in its own units: a block pays
for its bound and its share and for nothing else, exactly as if it had been asked alone at the price mu sqrt(share_b). One
question instead of many makes one pass over the rows and one line on the bill. Test:
tests/explain/effects/test_effects_joint.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...errors import InvalidInput
from ...solve.curves.axes import Floats

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum, PrivateData, Release, SampledSum


@dataclass(frozen=True)
class BlockSpec:
    """One block of a part: how many numbers, their L2 bound per row, and the weight of its claim on the price."""

    name: str
    size: int
    bound: float
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.bound < math.inf or not 0 < self.share < math.inf:
            raise InvalidInput(f"the block {self.name!r} of a joint sum needs a positive size, bound and share")


class Part(Protocol):
    """What one explanation wants to know of every row."""

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """Its blocks, in the order of their numbers."""
        ...

    def contributions(self, block: Block) -> Floats:
        """(rows, sum of sizes), each row from that row alone; not yet clipped."""
        ...

    def identity(self) -> object:
        """JSON values that tell this part from every other, the model left aside."""
        ...


@dataclass(frozen=True, eq=False)
class Joint:
    """Parts with their shares, as one function of a block of rows."""

    parts: tuple[Part, ...]
    weights: tuple[float, ...]

    @property
    def scaled(self) -> tuple[tuple[BlockSpec, float], ...]:
        """Every block with its normalised share of mu squared."""
        total = sum(
            weight * block.share / _inner(part)
            for part, weight in zip(self.parts, self.weights, strict=True)
            for block in part.blocks
        )
        return tuple(
            (block, weight * block.share / _inner(part) / total)
            for part, weight in zip(self.parts, self.weights, strict=True)
            for block in part.blocks
        )

    @property
    def size(self) -> int:
        """How many numbers a row contributes."""
        return sum(block.size for part in self.parts for block in part.blocks)

    def __call__(self, block: Block) -> Floats:
        """Clipped and scaled contributions."""
        given = np.concatenate([part.contributions(block) for part in self.parts], axis=1)
        start = 0
        for spec, share in self.scaled:
            columns = given[:, start : start + spec.size]
            norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))
            # A row over its bound is scaled to it; NaN stays NaN, and the vault counts such a row as zero.
            factor = np.minimum(1.0, spec.bound / np.maximum(norms, 1e-300)) * (math.sqrt(share) / spec.bound)
            columns *= factor[:, None]
            start += spec.size
        return given

    def question(self, key: str | None, label: str, rate: float = 1.0) -> BoundedSum | SampledSum:
        """The sum to ask for. The bound is 1, and a hair: rounding must not clip rows that reach it."""
        from ...vault import BoundedSum, SampledSum

        bound = 1.0 + 1e-12
        if rate < 1:
            return SampledSum(self, self.size, bound, rate=rate, key=key, label=label)
        return BoundedSum(self, self.size, bound, key=key, label=label)

    def split(self, release: Release, n_rows: float) -> tuple[tuple[Floats, Floats], ...]:
        """Per part: means over rows in the part's own units, and the noise's standard deviation of each number."""
        assert release.sigma is not None
        values, stds, start = [], [], 0
        for spec, share in self.scaled:
            unit = spec.bound / math.sqrt(share) / n_rows
            values.append(release.value[start : start + spec.size] * unit)
            stds.append(np.full(spec.size, release.sigma * unit))
            start += spec.size
        found, place = [], 0
        for part in self.parts:
            count = len(part.blocks)
            found.append((np.concatenate(values[place : place + count]), np.concatenate(stds[place : place + count])))
            place += count
        return tuple(found)


def _inner(part: Part) -> float:
    """A part's own shares add up to one, whatever their unit."""
    return sum(block.share for block in part.blocks)


def noise_std(joint: Joint, spec_name: str, sigma: float, n_rows: float) -> float:
    """What the noise on one number of a block will be, before anything is paid."""
    for spec, share in joint.scaled:
        if spec.name == spec_name:
            return sigma * spec.bound / math.sqrt(share) / n_rows
    raise InvalidInput(f"there is no block {spec_name!r}")


def per_unit_std(data: PrivateData, mu: float) -> float:
    """Noise on the mean of a quantity of bound 1 that has a question of price ``mu`` for itself."""
    factor = 2 if data.neighbours == "replace-one" else 1
    return factor / mu / data.n_rows_public


def normalised(weights: Sequence[float]) -> tuple[float, ...]:
    """Weights that add up to one."""
    total = float(sum(weights))
    return tuple(float(weight) / total for weight in weights)
