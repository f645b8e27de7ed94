"""What is promised, in numbers and in a sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Literal

from .accounting import Cost, JsonValue, epsilon_of, mu_of, rounded_up
from .accounting.cost import PICO
from .accounting.gdp import LARGEST_MU
from .errors import InvalidInput

Neighbours = Literal["add-remove", "replace-one"]
Protects = Literal["explanation-data", "training-data"]

NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace-one")

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


def check_neighbours(neighbours: str) -> Neighbours:
    """The neighbour relation, if it is one of ours."""
    for known in NEIGHBOURS:
        if neighbours == known:
            return known
    raise InvalidInput(f"neighbours is {neighbours!r}; choose one of {', '.join(map(repr, NEIGHBOURS))}")


@dataclass(frozen=True, slots=True)
class Budget:
    """The most privacy an account may ever spend.

    Parameters
    ----------
    epsilon, delta : float
        The promise for everything together.
    training : (float, float)
        The part (epsilon, delta) set aside for fixed blocks, such as private training runs. It can be spent on
        nothing else, and nothing else can be spent on them.

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


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise about one release, or about everything an account has released.

    Parameters
    ----------
    epsilon, delta : float
        The promise as (epsilon, delta)-differential privacy.
    mu : float
        The same promise as Gaussian differential privacy (0 where fixed blocks are part of it and no mu describes it).
    neighbours : {"add-remove", "replace-one"}
        What "one person's data" means: a row added or removed, or a row replaced.
    protects : {"explanation-data", "training-data"}
        Whose rows: those the explainer reads given the model, or those the model was trained on as well.

    Examples
    --------
    >>> promise = Guarantee.of_mu(0.23670, 1e-6)
    >>> promise.sentence.split(", for ")[0]
    '(epsilon = 1, delta = 1e-06)-differential privacy, equal to 0.2367-GDP'
    """

    epsilon: float
    delta: float
    mu: float
    neighbours: Neighbours = "add-remove"
    protects: Protects = "explanation-data"

    @classmethod
    def of_mu(
        cls,
        mu: float,
        delta: float,
        neighbours: Neighbours = "add-remove",
        protects: Protects = "explanation-data",
    ) -> Guarantee:
        """The guarantee of a mu-GDP release, stated at ``delta``."""
        return cls(epsilon_of(mu, delta), delta, mu, neighbours, protects)

    @property
    def sentence(self) -> str:
        """The promise in words."""
        change = {"add-remove": "adding or removing any one row", "replace-one": "replacing any one row"}[self.neighbours]
        whose = {
            "explanation-data": "of the data the explanation is computed from, given the model",
            "training-data": "of the data the model was trained on and the explanation is computed from",
        }[self.protects]
        pair = f"(epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)})"
        gdp = f", equal to {rounded_up(self.mu)}-GDP" if self.mu else ""
        return f"{pair}-differential privacy{gdp}, for {change} {whose}."

    @property
    def brief(self) -> str:
        """Epsilon and delta in a few characters, rounded up."""
        return f"epsilon={rounded_up(self.epsilon)} at delta={rounded_up(self.delta)}"

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, JsonValue]:
        """The guarantee as plain JSON values, the sentence included."""
        return {**asdict(self), "sentence": self.sentence}


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
