"""What is promised, what may be spent and what was spent, in numbers and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from .. import _checks
from .._tables import html_table, text_table
from ..errors import InvalidInput
from . import NOTHING, Basis, Cost, JsonValue, epsilon_of, mu_of, rounded_down, rounded_up
from .cost import PICO
from .gdp import LARGEST_MU
from .neighbours import Neighbours, change_in_words, check_neighbours, is_whole_person, unit_in_words

Protects = Literal["explanation-data", "training-data"]

PROTECTS: tuple[Protects, ...] = ("explanation-data", "training-data")

SAMPLER_SHARE_OF_DELTA = 1e-6
"""Share of an account's delta set aside for the noise samplers' distance from the true law (vault.noise bounds it)."""


def check_epsilon_delta(epsilon: float, delta: float, what: str = "a budget") -> None:
    """Refuse an epsilon or delta outside its range."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{name} of {what} is {value!r}; it must be a number")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InvalidInput(f"epsilon of {what} is {epsilon}; it must be positive and finite, for example 1.0")
    if not 0 < delta < 1:
        raise InvalidInput(f"delta of {what} is {delta}; it must lie strictly between 0 and 1, for example 1e-6")


def check_epsilon(epsilon: float, what: str = "a question") -> float:
    """The epsilon of something that has no delta, or an error that says what is wrong with it."""
    check_epsilon_delta(epsilon, 0.5, what)
    return float(epsilon)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most privacy an account may ever spend.

    Parameters
    ----------
    epsilon, delta : float
        The promise for everything together.
    training : (float, float)
        The part (epsilon, delta) set aside for what adds up in epsilon: private training runs, and questions with Laplace
        noise. It can be spent on nothing else, and nothing else can be spent on them.

    Examples
    --------
    >>> Budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06, training=(0.0, 0.0))
    >>> Budget(epsilon=-1, delta=1e-6)
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: epsilon of a budget is -1; it must be positive and finite, for example 1.0
    """

    epsilon: float
    delta: float
    training: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)
        try:
            training_epsilon, training_delta = (float(part) for part in self.training)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"training is {self.training!r}; it must be a pair (epsilon, delta)") from error
        if not (0 <= training_epsilon < self.epsilon and 0 <= training_delta < self.delta):
            raise InvalidInput(
                f"training is {self.training!r}; both parts must be at least 0 and below the whole budget's "
                f"({self.epsilon}, {self.delta})"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        object.__setattr__(self, "training", (training_epsilon, training_delta))

    @property
    def question_delta(self) -> float:
        """The delta at which every single question's ``epsilon=`` is understood."""
        return (self.delta - self.training[1]) * (1 - SAMPLER_SHARE_OF_DELTA)

    @property
    def mu(self) -> float:
        """The GDP budget left for questions after the training purse and the samplers' share of delta."""
        return mu_of(self.epsilon - self.training[0], self.question_delta)

    def capacity(self) -> Cost:
        """The budget in the ledger's integers, rounded down."""
        return Cost.capacity(self.mu, *self.training)

    def to_json(self) -> dict[str, JsonValue]:
        """The budget as plain JSON values."""
        return {"epsilon": self.epsilon, "delta": self.delta, "training": list(self.training)}


LARGEST_EPSILON = 100.0
"""Above this a promise says nothing: it allows odds of e^100 to 1 that a row is the one somebody looks for."""


def emptiness(budget: Budget, n_rows: int) -> str | None:
    """Why a budget promises nothing for so many rows, in words; None where it promises something.

    Examples
    --------
    >>> emptiness(Budget(1.0, 1e-6), 1000) is None
    True
    >>> emptiness(Budget(1.0, 0.1), 1000).split(";")[0]
    'delta is 0.1, and there are 1000 rows: publishing one of them whole would keep such a promise'
    """
    if budget.epsilon > LARGEST_EPSILON:
        return (
            f"epsilon is {rounded_up(budget.epsilon)}, which promises nothing: an answer may then all but name a "
            "row; it must be at most 100, and 1 is a usual budget"
        )
    if n_rows > 1 and budget.delta * n_rows >= 1:
        return (
            f"delta is {rounded_up(budget.delta)}, and there are {n_rows} rows: publishing one of them whole would "
            f"keep such a promise; it must be far below {1 / n_rows:.1g}, and 1e-06 is usual"
        )
    return None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise about what one release, one result or one account reveals.

    The promise of a result covers *every* release it was computed from, also those that were paid for by an earlier call
    (``marginals=`` that were given, private rows, a history). What a call was charged is its ``cost``, and may be less.

    Parameters
    ----------
    epsilon, delta : float
        The promise as (epsilon, delta)-differential privacy.
    mu : float
        The same promise as Gaussian differential privacy (0 where fixed blocks are part of it and no mu describes it).
    neighbours : str
        What "one person's data" means: ``"add-remove"`` for a row added or removed, ``"replace-one"`` for a row replaced,
        ``"add-remove, up to 3 rows per person"`` for all rows of a person.
    protects : {"explanation-data", "training-data"}
        Whose rows: those the explainer reads given the model, or those the model was trained on as well.
    basis : Basis
        The releases that it covers, by name and price. Two promises with the same numbers are equal whatever they cover.

    Raises
    ------
    InvalidInput
        If the numbers promise more than the releases behind them keep.

    Examples
    --------
    >>> promise = Guarantee.of_mu(0.23670, 1e-6)
    >>> promise.sentence.split(", for ")[0]
    '(epsilon = 1, delta = 1e-06)-differential privacy, equal to 0.2367-GDP'
    >>> histogram, curve = Basis.of("a", Cost.of_mu(0.3)), Basis.of("b", Cost.of_mu(0.4))
    >>> round(Guarantee.of(histogram | curve | histogram, 1e-6).mu, 6)
    0.5
    """

    epsilon: float
    delta: float
    mu: float
    neighbours: Neighbours = "add-remove"
    protects: Protects = "explanation-data"
    basis: Basis = field(default=NOTHING, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.basis and not self._keeps(self.basis.cost):
            raise InvalidInput(
                f"a promise of epsilon {rounded_up(self.epsilon)} at delta {rounded_up(self.delta)} (mu "
                f"{rounded_up(self.mu)}) says less than the releases behind it cost together, mu "
                f"{rounded_up(self.basis.cost.mu)}; it must cover all of them"
            )

    def _keeps(self, cost: Cost) -> bool:
        if self.mu:
            return cost.mu <= self.mu * (1 + 1e-9) and cost.block_epsilon == 0 == cost.block_delta
        needed = _epsilon_at(cost, max(self.delta - cost.block_delta, 0.0))
        return needed <= self.epsilon * (1 + 1e-9) and cost.block_delta <= self.delta * (1 + 1e-9)

    @classmethod
    def of_mu(
        cls, mu: float, delta: float, neighbours: Neighbours = "add-remove", protects: Protects = "explanation-data"
    ) -> Guarantee:
        """The guarantee of a mu-GDP question before it is asked, stated at ``delta``: for quotes, which name no release."""
        return cls(epsilon_of(mu, delta), delta, mu, neighbours, protects)

    @classmethod
    def of(
        cls, basis: Basis, delta: float, neighbours: Neighbours = "add-remove", protects: Protects = "explanation-data"
    ) -> Guarantee:
        """The promise for everything that these releases reveal together, its Gaussian part stated at ``delta``."""
        cost = basis.cost
        at = delta if cost.mu else 0.0
        mu = 0.0 if cost.block_epsilon or cost.block_delta else cost.mu
        return cls(_epsilon_at(cost, at), at + cost.block_delta, mu, neighbours, protects, basis)

    @classmethod
    def together(cls, promises: Iterable[Guarantee], delta: float, neighbours: Neighbours) -> Guarantee:
        """The promise for all of these, each release behind them counted once; one about another unit cannot be added."""
        given = tuple(promises)
        for promise in given:
            if promise.neighbours != neighbours and promise.epsilon:
                raise InvalidInput(
                    f"a result whose promise is about {promise.neighbours!r} cannot be added to one about {neighbours!r}; "
                    "buy both from data with the same neighbours and rows_per_person"
                )
        return cls.of(Basis.union(promise.behind for promise in given), delta, neighbours)

    @property
    def behind(self) -> Basis:
        """The releases that it covers; where they are not named, one of this price that is like no other.

        So a promise that was written by hand, or read from a file that names no releases, is added in full.
        """
        if self.basis or not self.epsilon:
            return self.basis
        if not math.isfinite(self.epsilon):
            raise InvalidInput("there is no promise for what was released without noise; nothing can be added to it")
        return Basis.new(Cost.of_mu(self.mu) if self.mu else Cost.of_block(self.epsilon, self.delta))

    @property
    def sentence(self) -> str:
        """The promise in words."""
        change = change_in_words(self.neighbours)
        whose = {
            "explanation-data": "of the data the explanation is computed from, given the model",
            "training-data": "of the data the model was trained on and the explanation is computed from",
        }[self.protects]
        pair = f"(epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)})"
        gdp = f", equal to {rounded_up(self.mu)}-GDP" if self.mu else ""
        return f"{pair}-differential privacy{gdp}, for {change} {whose}."

    @property
    def unit(self) -> str:
        """Whose data it is about, in words: any one row, or all rows of any one person."""
        return unit_in_words(self.neighbours)

    @property
    def unit_counts_once(self) -> bool:
        """Whether the unit is a person, whatever the number of rows."""
        return is_whole_person(self.neighbours)

    @property
    def brief(self) -> str:
        """Epsilon and delta in a few characters, rounded up."""
        return f"epsilon={rounded_up(self.epsilon)} at delta={rounded_up(self.delta)}"

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, JsonValue]:
        """The guarantee as plain JSON values, the sentence included."""
        # A reference without noise has an infinite epsilon, which JSON cannot write as a number.
        numbers: dict[str, JsonValue] = {
            name: "inf" if math.isinf(number) else number
            for name, number in (("epsilon", self.epsilon), ("delta", self.delta), ("mu", self.mu))
        }
        words: dict[str, JsonValue] = {"neighbours": self.neighbours, "protects": self.protects}
        return numbers | words | {"releases": self.basis.to_json(), "sentence": self.sentence}

    @classmethod
    def from_json(cls, fields: object) -> Guarantee:
        """Read back what ``to_json`` wrote; ValueError, TypeError or KeyError where it is something else.

        Examples
        --------
        >>> promise = Guarantee.of(Basis.of("a", Cost.of_mu(0.3)), 1e-6)
        >>> back = Guarantee.from_json(promise.to_json())
        >>> back == promise, back.basis == promise.basis
        (True, True)
        """
        if not isinstance(fields, Mapping):
            raise TypeError("'guarantee' must be an object")
        epsilon, delta, mu = (_at_least_zero(fields[name], name) for name in ("epsilon", "delta", "mu"))
        basis = Basis.from_json(fields.get("releases", []))
        protects = _checks.choice("'protects' of the guarantee", fields["protects"], PROTECTS)
        return cls(epsilon, delta, mu, check_neighbours(str(fields["neighbours"])), protects, basis)


@dataclass(frozen=True, slots=True)
class BillLine:
    """One question, or one stored answer handed out again.

    Parameters
    ----------
    seq : int
        Its number in the ledger.
    time_utc : str
        When.
    analyst : str
        Who asked.
    what : str
        The question, in a few words.
    paid : bool
        Whether it was paid for; a replay is not.
    epsilon : float
        Its own epsilon at the account's delta; 0 for a replay.
    so_far : float
        Epsilon of everything up to here. It is less than the sum: squares of mu add, epsilons do not.
    share : float
        What it added to the account's spending on questions, as a share of the budget's mu squared; 0 for what the training
        purse paid, and for a question to a part of the rows while another part is dearer.
    part : str
        The disjoint part of the rows that was asked, in words; empty for the whole data.
    """

    seq: int
    time_utc: str
    analyst: str
    what: str
    paid: bool
    epsilon: float
    so_far: float
    share: float
    part: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What an account has paid for.

    Parameters
    ----------
    account : str
        The account.
    budget_epsilon, budget_delta : float
        The most it may spend.
    spent_epsilon, remaining_epsilon : float
        What questions and training runs together cost, and the largest single question that still fits.
    guarantee : Guarantee
        The promise for everything it has released.
    head : str
        The digest of the ledger's last entry.
    lines : tuple of BillLine
        The questions and replays, oldest first.
    n_earlier : int or None
        Where only the newest lines are here: how many questions were paid before them. None where all lines are.
    """

    account: str
    budget_epsilon: float
    budget_delta: float
    spent_epsilon: float
    remaining_epsilon: float
    guarantee: Guarantee
    head: str
    lines: tuple[BillLine, ...]
    n_earlier: int | None = None

    @property
    def sentence(self) -> str:
        """The state of the account in a sentence; replays are counted where all lines are here."""
        here = sum(line.paid for line in self.lines)
        paid = here + (self.n_earlier or 0)
        replayed = len(self.lines) - here if self.n_earlier is None else 0
        again = f", {replayed} stored answer{'s' if replayed != 1 else ''} handed out again for nothing" if replayed else ""
        return (
            f"{paid} question{'s' if paid != 1 else ''} paid{again}: ε = {rounded_up(self.spent_epsilon)} spent of "
            f"{rounded_up(self.budget_epsilon)} (δ = {rounded_up(self.budget_delta)}). The largest question that still "
            f"fits is ε = {rounded_down(self.remaining_epsilon)}."
        )

    @property
    def omission(self) -> str:
        """Which lines are not here, in a sentence; empty where all are."""
        if self.n_earlier is None:
            return ""
        if not self.lines:
            return "The bill's lines are left out."
        before = f"{self.n_earlier} question{'s were' if self.n_earlier != 1 else ' was'} paid before them"
        return f"Of the bill's lines only the newest {len(self.lines)} are here; {before}."

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """A row of texts for every line, under ``BILL_HEADER``."""
        return tuple(
            (
                str(line.seq),
                line.time_utc[:19].replace("T", " "),
                line.analyst,
                line.what,
                rounded_up(line.epsilon) if line.paid else "free",
                rounded_up(line.so_far),
                f"{100 * line.share:.1f} %" if line.share else "",
            )
            for line in self.lines
        )

    def __str__(self) -> str:
        said = [f"The bill of account {self.account!r}: {self.sentence}", self.omission]
        return text_table(BILL_HEADER, self.cells, [*filter(None, said)])

    def _repr_html_(self) -> str:
        said = [f"The bill of account {self.account!r}", self.sentence, self.omission]
        return html_table(BILL_HEADER, self.cells, [*filter(None, said)])


BILL_HEADER = ("entry", "time (UTC)", "analyst", "question", "ε", "ε so far", "of budget")


def _epsilon_at(cost: Cost, delta: float) -> float:
    """Epsilon of questions at ``delta``, and what fixed blocks took."""
    return (epsilon_of(cost.mu, delta) if cost.mu else 0.0) + cost.block_epsilon


def _at_least_zero(value: object, name: str) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    number = math.inf if value == "inf" else float(value) if known else math.nan  # type: ignore[arg-type]
    if not number >= 0:
        raise ValueError(f"{name!r} of the guarantee must be a number of at least 0")
    return number


def question_mu(epsilon: float | None, mu: float | None, delta: float) -> float:
    """The mu that a question may cost: from its own ``epsilon`` at ``delta``, or given as it is."""
    if (epsilon is None) == (mu is None):
        raise InvalidInput("give the question a price: either epsilon= or mu=, and not both")
    if epsilon is not None:
        check_epsilon_delta(epsilon, delta, "a question")
        # A whole number of the ledger's units, less a hair: a question for all of a budget costs no more than it holds.
        units = math.floor(Fraction(mu_of(epsilon, delta)) ** 2 * PICO)
        if units == 0:
            raise InvalidInput(
                f"epsilon of a question is {epsilon}, too small to buy anything at delta {rounded_up(delta)}; ask for more"
            )
        return math.sqrt(units / PICO) * (1 - 2e-15)
    assert mu is not None
    if isinstance(mu, bool) or not isinstance(mu, int | float) or not (math.isfinite(mu) and 0 < mu <= LARGEST_MU):
        raise InvalidInput(f"mu of a question is {mu!r}; it must be positive and at most {LARGEST_MU}")
    return float(mu)
