"""What every kind of question has in common: it can describe itself, be planned at a price, and be answered."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...accounting import Event, JsonValue
from ...errors import InvalidInput
from ..noise.sampler import LARGEST_SIGMA_GRID
from ..rows.predictions import Predictions
from ..rows.row_pass import RowPass
from ..setting import Setting


@dataclass(frozen=True)
class Answer:
    """One released value, and its named parts where it has several."""

    value: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]] = field(default_factory=dict)


class Plan(Protocol):
    """A question with its price fixed: everything public is decided, no row has been read."""

    @property
    def event(self) -> Event:
        """What the ledger will record, and what it costs."""
        ...

    @property
    def sigma(self) -> float | None:
        """Noise standard deviation of one coordinate, or None where the noise is not additive."""
        ...

    @property
    def stds(self) -> NDArray[np.float64] | None:
        """Noise standard deviation of every number of a flat output, or None where the noise is not additive."""
        ...

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> NDArray[np.float64]:
        """``draws`` independent outputs, flat: (draws, width). A release is one draw.

        Noise is drawn before the rows are touched.
        """
        ...

    def shape(self, flat: NDArray[np.float64]) -> Answer:
        """One flat output, given its shape."""
        ...


class Question(Protocol):
    """A question to the vault. Its arguments were checked when it was made; it has not seen any row."""

    kind: ClassVar[str]

    @property
    def label(self) -> str | None:
        """What the bill calls this question; it is no part of what makes two questions the same."""
        ...

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters, for the ledger and for the key of a stored release."""
        ...

    def identity(self) -> str | None:
        """A name for the part that has no parameters of its own (the function), or None: then every ask is new."""
        ...

    def probe(self, setting: Setting, predictions: Predictions) -> int:
        """Run what will run on rows on public ones; raise before anything is charged. Returns the block shape to use."""
        ...

    def plan(self, mu: float, setting: Setting) -> Plan:
        """Fix the noise for a price of at most mu."""
        ...


def check_noise_fits(sigma: float, step: float) -> None:
    """Refuse, before anything is charged, noise wider than the sampler goes."""
    if not sigma / step <= LARGEST_SIGMA_GRID:
        raise InvalidInput(
            f"the noise this question would get (standard deviation {sigma:.3g}) is too wide for its grid; ask for a larger "
            "epsilon or mu, or, if it is a GroupedSum, make the sides of its box less unequal"
        )


def sigma_for(sensitivity: float, mu: float) -> float:
    """The smallest noise whose price is at most mu, rounded up."""
    return math.nextafter(sensitivity / mu, math.inf) * (1 + 1e-15)


def array_digest(array: NDArray[np.float64]) -> str:
    """A stable name for public numbers too many to write into the ledger."""
    content = np.ascontiguousarray(array, dtype=np.float64)
    return hashlib.sha256(repr(content.shape).encode() + content.tobytes()).hexdigest()
