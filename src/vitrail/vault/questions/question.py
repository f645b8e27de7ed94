"""What every kind of question has in common: it can describe itself, be planned at a price, and be answered.

*Noisy sums.* All questions but ``Select`` release an exact integer sum plus noise (``SumPlan``). What a row adds, why that
is bounded, and how far one neighbour step moves the sum, its ``sensitivity``, is argued beside each kind (for a person with
several rows in ``accounting.neighbours``). Rounded Gaussian
noise of standard deviation ``sigma`` is added on the grid of the sum. For integer x, x + round(Z) = round(x + Z):
post-processing of the continuous Gaussian mechanism, hence mu-GDP with mu = sensitivity/sigma, and no float of the noise is
ever visible (Mironov 2012; Haney et al. 2022).
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._types import Floats
from ...accounting import Event, GaussianSum, JsonValue
from ...accounting.guarantee import question_mu
from ...errors import InvalidInput
from ..engines.row_pass import RowPass, Summation
from ..noise.sampler import LARGEST_SIGMA_GRID, rounded_gaussian
from ..public_facts import PublicFacts
from ..rows.predictions import Predictions
from ..rows.row_function import RowFunction, probe
from ..sums.totals import ExactTotals, Integers

LARGEST_RELEASE = 900_000_000
"""Bytes of one answer: SQLite and PostgreSQL hold values of up to a thousand million."""


@dataclass(frozen=True)
class Answer:
    """One released value, and its named parts where it has several."""

    value: Floats
    parts: dict[str, Floats] = field(default_factory=dict)


class Plan(Protocol):
    """A question with its price fixed: everything public is decided, no row has been read."""

    @property
    def event(self) -> Event:
        """What the ledger will record, and what it costs."""

    @property
    def sigma(self) -> float | None:
        """Noise standard deviation of one coordinate, or None where the noise is not additive."""

    @property
    def stds(self) -> Floats | None:
        """Noise standard deviation of every number of a flat output, or None where the noise is not additive."""

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """``draws`` independent outputs, flat: (draws, width). A release is one draw.

        Noise is drawn before the rows are touched.
        """

    def shape(self, flat: Floats) -> Answer:
        """One flat output, given its shape."""


class Question(ABC):
    """A question to the vault. Its arguments were checked when it was made; it has not seen any row.

    ``key`` names the functions, which have no parameters of their own to be known by; without it every ask is new.
    ``label`` is what the bill calls the question; it is no part of what makes two questions the same.
    """

    kind: ClassVar[str]
    described: ClassVar[tuple[str, ...]]
    """The public parameters, by name."""
    in_epsilon: ClassVar[bool] = False
    """Whether it is paid in epsilon, from the purse where epsilons add up, and not in mu."""

    key: str | None
    label: str | None

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters, for the ledger and for the key of a stored release; arrays by their digest."""
        return {"question": self.kind, **{name: plain(getattr(self, name)) for name in self.described}, **self._sampled()}

    def _sampled(self) -> dict[str, JsonValue]:
        """The sampling rate, where there is one: a question without is known as it was before questions had any."""
        rate = getattr(self, "rate", None)
        return {} if rate is None else {"rate": rate}

    def _check(
        self, *, functions: Iterable[str] = ("fn",), wholes: Mapping[str, int], positives: Iterable[str] = ()
    ) -> None:
        """Refuse arguments that are no functions, no whole numbers up to a bound, no positive numbers."""
        what = f"a {type(self).__name__}"
        for name in functions:
            _checks.function(name, getattr(self, name), of=what)
        for name, most in wholes.items():
            object.__setattr__(self, name, _checks.whole(name, getattr(self, name), most=most, of=what))
        for name in positives:
            object.__setattr__(self, name, _checks.positive(name, getattr(self, name), of=what))

    def price(self, epsilon: float | None, mu: float | None, delta: float) -> float:
        """What ``plan`` takes, from the one price that was given: mu."""
        return question_mu(epsilon, mu, delta)

    @abstractmethod
    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Run what will run on rows on public ones; raise before anything is charged. Returns the block shape to use."""

    @abstractmethod
    def plan(self, price: float, facts: PublicFacts) -> Plan:
        """Fix the noise for a price of at most so much: mu, or epsilon of a question that is paid in it."""


class RowQuestion(Question):
    """A question whose functions look at one row at a time: at every row, or at those of a random sample.

    ``rate``: each row is in the sample with this probability (``rows.sampling``), in (0, 1]; None for all rows. The answer
    is the sample's, divided by it.
    """

    rate: float | None

    def _check_rate(self) -> None:
        if self.rate is not None:
            object.__setattr__(self, "rate", _checks.fraction("rate", self.rate, of=f"a {type(self).__name__}"))

    def rows_summed(self, facts: PublicFacts) -> int:
        """About how many rows are summed, by the declared count."""
        return facts.n_rows_public if self.rate is None else max(1, round(self.rate * facts.n_rows_public))

    @abstractmethod
    def row_function(self) -> RowFunction:
        """What runs on rows, with the shapes it must return."""

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Look at the functions on public rows."""
        return probe(self.row_function(), facts, predictions)


AnyQuestion = TypeVar("AnyQuestion", bound=Question)


@dataclass(frozen=True)
class SumPlan(ABC, Generic[AnyQuestion]):
    """A noisy sum of ``width`` numbers with its noise fixed: exact integers in cells of ``step``, moved by ``sensitivity``.

    Where only a share of the rows is summed, ``rate``, the answer is the sum divided by it.
    """

    question: AnyQuestion
    width: int
    sensitivity: float
    sigma_of_sum: float
    step: float
    rate: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse, before anything is charged, noise wider than the sampler goes, and answers that no ledger holds."""
        if (size := 8 * self.stored_numbers) > LARGEST_RELEASE:
            raise InvalidInput(
                f"the answer to this question would take {size / 1e6:.0f} MB, and a ledger stores at most "
                f"{LARGEST_RELEASE / 1e6:.0f} MB of one; ask for less at once: fewer columns, cells, queries or grid points"
            )
        if not self.sigma_of_sum / self.step <= LARGEST_SIGMA_GRID:
            raise InvalidInput(
                f"the noise this question would get (standard deviation {self.sigma_of_sum:.3g}) is too wide for its grid; "
                "ask for a larger epsilon or mu, or, if it is a GroupedSum, make the sides of its box less unequal"
            )

    @property
    def stored_numbers(self) -> int:
        """How many numbers the release holds, parts that are stored beside the value included."""
        return self.width

    @property
    def event(self) -> GaussianSum:
        """One Gaussian sum."""
        return GaussianSum(self.sensitivity, self.sigma_of_sum)

    @property
    def sigma(self) -> float:
        """Noise standard deviation of one coordinate of the answer."""
        return self.sigma_of_sum / self.rate

    @property
    def stds(self) -> Floats:
        """Noise standard deviation of every number of the answer."""
        return np.full(self.width, self.sigma)

    @property
    def cell_sigmas(self) -> float | Floats:
        """Noise standard deviation in cells of the grid: one for all numbers, or one each."""
        return self.sigma_of_sum / self.step

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """Exact integer sums plus rounded noise, which is drawn first."""
        noise = draw_noise(self.cell_sigmas, draws, self.width)
        cells = self.exact_cells(rows, block_rows, draws) + noise
        return np.asarray(cells, dtype=np.float64) * np.float64(self.step / self.rate)

    @abstractmethod
    def exact_cells(self, rows: RowPass, block_rows: int, draws: int = 1) -> Integers:
        """The exact sums in cells, (draws, width), or (width,) where all draws share them. Never leaves the vault."""

    def shape(self, flat: Floats) -> Answer:
        """As it is."""
        return Answer(flat)


AnyRowQuestion = TypeVar("AnyRowQuestion", bound=RowQuestion)


@dataclass(frozen=True)
class RowSumPlan(SumPlan[AnyRowQuestion]):
    """A noisy sum of what single rows say: it merges, whoever walks over which rows (``engines``)."""

    @abstractmethod
    def summation(self) -> Summation:
        """What is added up."""

    @abstractmethod
    def cells_of(self, totals: ExactTotals) -> Integers:
        """The sums in cells, flat."""

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Of the question."""
        return self.question.probe(facts, predictions)

    def public_outputs(self) -> tuple[Floats, ...]:
        """Of further functions that the question has."""
        return ()

    def exact_cells(self, rows: RowPass, block_rows: int, draws: int = 1) -> Integers:
        """Of all rows; or each draw takes a sample of its own, and rows that are not in it are never looked at."""
        walks = draws if self.question.rate is not None else 1
        cells: list[Integers] = [
            self.cells_of(rows.sampled(self.question.rate).totals(self, block_rows)) for _ in range(walks)
        ]
        return cells[0] if walks == 1 else np.asarray(np.array(cells))


def draw_noise(sigmas: float | Floats, draws: int, width: int) -> NDArray[np.int64]:
    """Rounded Gaussian noise in grid cells, (draws, width)."""
    each = sigmas if isinstance(sigmas, float) else np.tile(sigmas, draws)
    return rounded_gaussian(each, draws * width).reshape(draws, width)


def sigma_for(sensitivity: float, mu: float) -> float:
    """The smallest noise whose price is at most mu, rounded up."""
    return math.nextafter(sensitivity / mu, math.inf) * (1 + 1e-15)


def array_digest(array: NDArray[np.floating]) -> str:
    """A stable name for public numbers too many to write into the ledger."""
    content = np.ascontiguousarray(array)
    return hashlib.sha256(repr(content.shape).encode() + content.tobytes()).hexdigest()


def plain(value: object) -> JsonValue:
    """A public parameter as JSON writes it; an array by its digest, or by its entry where all are the same."""
    if isinstance(value, np.ndarray):
        same = value.ndim == 1 and (value == value[0]).all()
        return float(value[0]) if same else array_digest(value)
    return list(value) if isinstance(value, tuple) else value  # type: ignore[return-value]
