"""What was charged, in the words of Google's dp-accounting, so that somebody else's accountant can check the sum.

*A question* of price mu is mu-GDP, as a Gaussian mechanism of noise multiplier 1/mu is: a ``GaussianDpEvent``. Its price is
what was charged, so the event is never kinder than the bill; a selection, for which dp-accounting has no event, is stated
by its price as well. Where the sum was over a random sample of the rows (Poisson, by coins of its own), the event is sampled
too; our own bill asks for the whole price. *A training run* is what its fixed block says: Poisson-sampled Gaussian sums.

*A choice among training runs* is more than those sums: rows that were held out were never in them, and decide by an
exponential mechanism (``vault.training.choice``), whose losses reach its epsilon far more often than delta. It is stated by
what was proven and charged, as the worst mechanism that is (epsilon, delta)-DP: randomised response at epsilon, and with
probability delta everything (Kairouz, Oh & Viswanath 2015). A discrete Laplace of sensitivity 1 is that response where rows
come and go, for which dp-accounting takes no other. *A Laplace sum* is stated so as well, with no delta: a neighbour may
move one coordinate or several, and that response is the worst of all.

*Neighbours.* An accountant for ``REPLACE_ONE`` takes a noise multiplier relative to what one row adds, and knows itself that
an exchange moves a sum twice as far. Our prices are of the exchange, so the multiplier is 2/mu there, and samples are not
counted: what a row adds is not in the price. Where a person has several rows, "one" is a person: prices are of all of its
rows, and samples are not counted either, because the coins were the rows' own.

*Parts.* A row lies in one part of a partition, so what was asked of the parts counts once, by the dearest. Prices of
questions have an order: the part with the largest sum of squares is at least as dear as any other, if samples are not
counted. Training runs have none, so of each kind (noise and sampling rate) the most steps of any part are taken. Both bound
every row's own composition (``accounting.cost``), and so does what they compose to.

Tests: tests/ledger/test_dp_events.py and tests/cli/test_export_commands.py compare with the accountant itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..errors import InvalidInput
from .cost import Cost, JsonValue, Spending
from .gdp import epsilon_of
from .neighbours import Neighbours, is_exchange, kind_of

FORMAT = "vitrail-dp-events/1"
RELATIONS: dict[str, str] = {"add-remove": "ADD_OR_REMOVE_ONE", "replace-one": "REPLACE_ONE"}
"""Our neighbour relations in dp-accounting's words; "one" is the unit of the account, a row or a person."""
_FIELDS = {
    "ComposedDpEvent": ("events",),
    "SelfComposedDpEvent": ("event", "count"),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
    "GaussianDpEvent": ("noise_multiplier",),
    "LaplaceDpEvent": ("noise_multiplier",),
    "DiscreteLaplaceDpEvent": ("noise_parameter", "sensitivity"),
    "RandomizedResponseDpEvent": ("noise_parameter", "num_buckets"),
}
"""The events that are written, and what each is made of; anything else is refused."""
CHOICE = "map choice"
"""How ``DpCharge.question`` words a choice among training runs."""
_NO_NOISE, _MANY_BUCKETS = 1 / 80, 10**30
"""Who sees a result with so little noise, or one of so many buckets, knows the input: losses beyond epsilon = 20."""


@dataclass(frozen=True, slots=True)
class DpCharge:
    """One charge of a ledger.

    Attributes
    ----------
    entry : int
        Its number in the chain.
    time_utc, analyst, question : str
        When, who, and what, in a few words.
    mechanism : str
        The kind of event that the ledger holds: ``gaussian-sum``, ``selection``, ``fixed-block``, ``laplace-sum``.
    cost : Cost
        What was charged.
    noise_multiplier : float
        Of each Gaussian sum, as an accountant for the account's neighbours takes it; of a Laplace sum, one over epsilon.
    sampling_rate : float
        The probability with which a row enters a sum; 1 where all do.
    steps : int
        How many such sums; 1 for a question.
    partition, part : str and int, or None
        Which part of which partition was asked; None for the whole data.
    """

    entry: int
    time_utc: str
    analyst: str
    question: str
    mechanism: str
    cost: Cost
    noise_multiplier: float
    sampling_rate: float = 1.0
    steps: int = 1
    partition: str | None = None
    part: int | None = None

    @property
    def is_block(self) -> bool:
        """Whether the training purse paid for it."""
        return self.mechanism in ("fixed-block", "laplace-sum")

    @property
    def is_by_price(self) -> bool:
        """Whether its price states it: a Laplace sum; a choice among training runs, of which sums are a part only."""
        return self.mechanism == "laplace-sum" or (self.is_block and self.question == CHOICE)

    @property
    def key(self) -> tuple[str, int] | None:
        """Partition and part; None for the whole data."""
        return None if self.partition is None or self.part is None else (self.partition, self.part)

    def event(self, *, sampled: bool = True, exchanged: bool = False) -> dict[str, JsonValue]:
        """As dp-accounting names it: kinds and parameters; a question without its sampling if that is not counted."""
        if self.is_by_price:
            return _worst_event(self.cost.block_epsilon, self.cost.block_delta, exchanged=exchanged)
        made: dict[str, JsonValue] = {"kind": "GaussianDpEvent", "noise_multiplier": self.noise_multiplier}
        if self.sampling_rate < 1 and sampled:
            made = _sampled(self.sampling_rate, made)
        return _repeated(made, self.steps)

    def to_json(self) -> dict[str, JsonValue]:
        """Plain JSON values, for programs that know nothing of dp-accounting; the price as mu, or as (epsilon, delta)."""
        told: dict[str, JsonValue] = {name: getattr(self, name) for name in self.__slots__ if name != "cost"}
        prices = {"mu": self.cost.mu, "block_epsilon": self.cost.block_epsilon, "block_delta": self.cost.block_delta}
        return {**told, **prices}


@dataclass(frozen=True, slots=True)
class DpEvents:
    """What an account was charged, for another accountant: ``data.budget.to_dp_events()``.

    Replays cost nothing and are not in it; nor is what a reservation holds and has not booked.

    Attributes
    ----------
    account : str
        Whose.
    neighbours : str
        The neighbour relation (``accounting.neighbours``); ``relation`` is its name in dp-accounting.
    question_delta : float
        At which the epsilons of questions are stated.
    head : str
        The digest of the ledger's last entry.
    charges : tuple of DpCharge
        Every charge, oldest first.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> rows = {"age": np.linspace(0, 100, 500)}
    >>> data = vt.PrivateData(rows, schema, name="ages", n_rows_public=500, budget=vt.Budget(1, 1e-6))
    >>> _ = vt.marginals(data, epsilon=0.5)
    >>> events = data.budget.to_dp_events()
    >>> len(events.charges), round(events.epsilon, 3)
    (1, 0.5)
    >>> from dp_accounting import NeighboringRelation
    >>> from dp_accounting.pld import PLDAccountant
    >>> accountant = PLDAccountant(NeighboringRelation[events.relation])
    >>> round(accountant.compose(events.to_dp_accounting()).get_epsilon(events.delta), 3)
    0.5
    """

    account: str
    neighbours: Neighbours
    question_delta: float
    head: str
    charges: tuple[DpCharge, ...]

    @property
    def relation(self) -> str:
        """The neighbour relation as dp-accounting names it: ``NeighboringRelation[events.relation]``."""
        return RELATIONS[kind_of(self.neighbours)]

    @property
    def spent(self) -> Cost:
        """What the charges make together, by our own rule."""
        spending = Spending()
        for charge in self.charges:
            spending.add(charge.cost, charge.key)
        return spending.total

    @property
    def delta(self) -> float:
        """At which to ask the other accountant: the questions' delta, and what training runs took of theirs."""
        return self.question_delta + self.spent.block_delta

    @property
    def epsilon(self) -> float:
        """Our own epsilon of all of it at ``delta``: what the other accountant's should agree with, or be below."""
        return epsilon_of(self.spent.mu, self.question_delta) + self.spent.block_epsilon

    def event(self) -> dict[str, JsonValue]:
        """All of it as one composed event, in plain JSON values: kinds and parameters."""
        return {"kind": "ComposedDpEvent", "events": [*self._events()]}

    def _events(self) -> Iterator[JsonValue]:
        exchanged = is_exchange(self.neighbours)
        yield from (charge.event(exchanged=exchanged) for charge in self.charges if charge.key is None)
        for partition in dict.fromkeys(charge.partition for charge in self.charges if charge.key is not None):
            parts: dict[int, list[DpCharge]] = {}
            for charge in self.charges:
                if charge.partition == partition and charge.part is not None:
                    parts.setdefault(charge.part, []).append(charge)
            questions = [[charge for charge in charges if not charge.is_block] for charges in parts.values()]
            dearest = max(questions, key=lambda charges: sum(charge.cost.pico_mu_squared for charge in charges))
            yield from (charge.event(sampled=False) for charge in dearest)
            yield from _most_steps(parts, exchanged=exchanged)

    def to_dp_accounting(self) -> Any:
        """All of it as a ``dp_accounting.ComposedDpEvent``."""
        return dp_event(self.event())

    def to_json(self) -> dict[str, JsonValue]:
        """The composed event and every charge, as plain JSON values; :func:`dp_event` reads the event."""
        header: dict[str, JsonValue] = {"format": FORMAT, "account": self.account, "head": self.head}
        header |= {"neighbours": self.neighbours, "neighboring_relation": self.relation}
        numbers: dict[str, JsonValue] = {"delta": self.delta, "epsilon": self.epsilon, "mu": self.spent.mu}
        return header | numbers | {"event": self.event(), "charges": [charge.to_json() for charge in self.charges]}

    def table(self) -> list[list[str]]:
        """The charges as lines of texts under a header, for a CSV file."""
        nothing = DpCharge(0, "", "", "", "", Cost(), 0.0).to_json()
        lines = [charge.to_json() for charge in self.charges]
        return [[*nothing], *(["" if value is None else str(value) for value in line.values()] for line in lines)]


def _most_steps(parts: Mapping[int, list[DpCharge]], *, exchanged: bool) -> Iterator[JsonValue]:
    """Of each kind of training run, the most steps that any part paid for; of each kind of choice, the most of them."""
    most: Counter[DpCharge] = Counter()
    for charges in parts.values():
        steps: Counter[DpCharge] = Counter()
        for charge in charges:
            if charge.is_block:
                about = (CHOICE, charge.mechanism, charge.cost) if charge.is_by_price else ("", charge.mechanism, Cost())
                kind = DpCharge(0, "", "", *about, charge.noise_multiplier, charge.sampling_rate)
                steps[kind] += 1 if charge.is_by_price else charge.steps
        most |= steps  # of each kind the larger number
    for kind, count in most.items():
        yield _repeated(kind.event(exchanged=exchanged), count)


def _worst_event(epsilon: float, delta: float, *, exchanged: bool) -> dict[str, JsonValue]:
    """The worst mechanism that is (epsilon, delta)-DP; numbers are rounded to the safe side, by parts in a million."""
    odds = math.exp(-epsilon) * (1 - 1e-12)
    response: dict[str, JsonValue] = {"kind": "DiscreteLaplaceDpEvent", "noise_parameter": epsilon, "sensitivity": 1}
    if exchanged and not delta:
        return {"kind": "RandomizedResponseDpEvent", "noise_parameter": 2 * odds / (1 + odds), "num_buckets": 2}
    if not delta:
        return response
    told: JsonValue = _sampled(delta * (1 + 1e-5), {"kind": "LaplaceDpEvent", "noise_multiplier": _NO_NOISE})
    if exchanged:
        kind = "RandomizedResponseDpEvent"
        response = {"kind": kind, "noise_parameter": 2 * odds / (1 + odds), "num_buckets": 2}
        told = {"kind": kind, "noise_parameter": 1 - delta * (1 + 1e-5) - 1e-15, "num_buckets": _MANY_BUCKETS}
    return {"kind": "ComposedDpEvent", "events": [response, told]}


def _sampled(rate: float, event: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"kind": "PoissonSampledDpEvent", "sampling_probability": rate, "event": event}


def _repeated(event: dict[str, JsonValue], count: int) -> dict[str, JsonValue]:
    return event if count == 1 else {"kind": "SelfComposedDpEvent", "event": event, "count": count}


def dp_event(fields: JsonValue | Mapping[str, JsonValue]) -> Any:
    """The ``dp_accounting`` event that plain JSON values describe: kinds and parameters.

    Parameters
    ----------
    fields : mapping
        An ``"event"`` as :meth:`DpEvents.to_json` writes it.

    Examples
    --------
    >>> gaussian = {"kind": "GaussianDpEvent", "noise_multiplier": 2.0}
    >>> dp_event({"kind": "SelfComposedDpEvent", "count": 3, "event": gaussian})
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=2.0), count=3)
    >>> dp_event({"kind": "ZCDpEvent"})
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: an event of kind 'ZCDpEvent' with the fields (); ComposedDpEvent, SelfComposedDpEvent, \
PoissonSampledDpEvent, GaussianDpEvent, LaplaceDpEvent, DiscreteLaplaceDpEvent and RandomizedResponseDpEvent are read, each \
with its own fields
    """
    given = dict(fields) if isinstance(fields, Mapping) else {}
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or set(given) != {*_FIELDS.get(kind, ("kind",))}:
        *names, last = _FIELDS
        raise InvalidInput(
            f"an event of kind {kind!r} with the fields ({', '.join(given)}); {', '.join(names)} and {last} are read, each "
            "with its own fields"
        )
    made: dict[str, Any] = given
    if "event" in made:
        made["event"] = dp_event(made["event"])
    if "events" in made:
        made["events"] = [dp_event(event) for event in made["events"]]
    try:
        return getattr(import_module("dp_accounting.dp_event"), kind)(**made)
    except ImportError as error:
        raise InvalidInput("dp-accounting is not installed; install it, or read the plain JSON values") from error
