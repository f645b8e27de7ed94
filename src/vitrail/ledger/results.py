"""What a ledger hands back: charges, replays, statements, verifications. Plain frozen values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from .._tables import html_table, text_table
from ..accounting import (
    Cost,
    FixedBlock,
    JsonValue,
    Spending,
    epsilon_of,
    event_from_json,
    exposure,
    rounded_down,
    rounded_up,
)
from ..accounting.dp_events import DpCharge, DpEvents
from ..accounting.guarantee import BILL_HEADER, Bill, BillLine, Budget, Guarantee
from ..accounting.neighbours import Neighbours, is_exchange, rows_per_person_of
from ..errors import LedgerError
from .allowance import largest_epsilon, question_epsilon
from .entries import Entry, Part, cost_to_json


@dataclass(frozen=True, slots=True)
class Charge:
    """A receipt: the question is paid for, durably, and the data may now be read.

    ``cost`` was paid, and is never refunded. ``seq`` is the number of the ``charged`` entry, and ``digest`` its digest, by
    which the ledger knows its own receipts.
    """

    account: str
    seq: int
    cost: Cost
    digest: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """A receipt: the price of a recipe is set aside, and its questions are booked against it.

    ``cost`` was set aside of the account, ``counted`` of the cap of the ``analyst``, who alone may book against it, for
    questions to ``part`` (None: to all rows). ``recipe`` is the digest that names the recipe, None for one that cannot be
    resumed. ``seq`` and ``digest`` are those of the ``reserved`` entry; 0 and empty where nothing had to be set aside,
    because all was booked before.
    """

    account: str
    seq: int
    analyst: str
    recipe: str | None
    part: Part | None
    cost: Cost
    counted: Cost
    digest: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A stored answer: the account paid for it before, and pays nothing now.

    ``seq`` is the number of the ``charged`` entry that paid for it, ``cost`` what was paid then. ``counted`` is what this
    replay counted against the asking analyst's cap: nothing if the analyst had seen it. ``release`` are the stored bytes.
    """

    account: str
    seq: int
    cost: Cost
    counted: Cost
    release: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AnalystLine:
    """What one analyst has spent and seen, and may.

    ``spent`` is what the analyst paid for, and was replayed without having paid; ``cap`` the latest cap, if one was set, and
    ``capacity`` the cap in the ledger's integers. Epsilons are stated at ``delta``, the account's ``question_delta``.
    """

    analyst: str
    spent: Cost
    cap: Budget | None
    capacity: Cost | None
    delta: float

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of all that the analyst was told by questions, at the account's delta."""
        return question_epsilon(self.spent, self.delta)

    @property
    def remaining_epsilon(self) -> float | None:
        """The largest single question that the analyst's own cap still allows; None without a cap."""
        return None if self.capacity is None else largest_epsilon(self.spent.left_of(self.capacity), self.delta)


@dataclass(frozen=True, slots=True)
class PartLine:
    """What was charged to one part of the rows.

    ``spent`` is the sum of the charges to this part; ``exposed`` what all charges that read its rows cost together: those to
    the whole data, to this part, and to the dearest part of every other partition. The account has spent the largest of
    these, of its ``capacity``. Epsilons are stated at ``delta``, the account's ``question_delta``.
    """

    part: Part
    spent: Cost
    exposed: Cost
    capacity: Cost
    delta: float

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of the questions to this part, at the account's delta."""
        return question_epsilon(self.spent, self.delta)

    @property
    def remaining_epsilon(self) -> float:
        """The largest single question to this part that still fits."""
        return largest_epsilon(self.exposed.left_of(self.capacity), self.delta)


@dataclass(frozen=True, slots=True)
class ReservationLine:
    """A reservation that is open: a recipe at work, or one that died.

    ``seq`` is the number of its entry, by which the owner frees it, and ``label`` says what the recipe is. ``reserved`` was
    set aside of the account, and ``booked`` was booked against it since. Epsilons are stated at ``delta``, the account's
    ``question_delta``.
    """

    seq: int
    time_utc: str
    analyst: str
    recipe: str | None
    label: str
    part: Part | None
    reserved: Cost
    booked: Cost
    delta: float

    @property
    def held(self) -> Cost:
        """What would be given back if it were freed now."""
        return self.booked.left_of(self.reserved)

    @property
    def reserved_epsilon(self) -> float:
        """Epsilon of what was set aside, as one question."""
        return question_epsilon(self.reserved, self.delta)

    @property
    def booked_epsilon(self) -> float:
        """Epsilon of what was booked, as one question."""
        return question_epsilon(self.booked, self.delta)

    def to_json(self) -> dict[str, JsonValue]:
        """The line as plain JSON values."""
        return _plain(self, "reserved_epsilon", "booked_epsilon")


@dataclass(frozen=True, slots=True)
class Statement:
    """The state of an account and its bill.

    Parameters
    ----------
    account : str
        The account's name.
    budget : Budget
        The most it may ever spend.
    neighbours : str
        The neighbour relation.
    capacity, spent : Cost
        The budget and what is gone of it, reservations included, in integers.
    n_questions : int
        How many questions were paid for.
    analysts : tuple of AnalystLine
        One line for every analyst, by name.
    entries : tuple of Entry
        The whole chain, oldest first.
    parts : tuple of PartLine
        One line for every disjoint part of the rows that was charged. Of each partition, ``spent`` holds the dearest.
    reservations : tuple of ReservationLine
        One line for every reservation that is open, oldest first.
    """

    account: str
    budget: Budget
    neighbours: Neighbours
    capacity: Cost
    spent: Cost
    n_questions: int
    analysts: tuple[AnalystLine, ...]
    entries: tuple[Entry, ...] = field(repr=False)
    parts: tuple[PartLine, ...] = ()
    reservations: tuple[ReservationLine, ...] = ()

    @property
    def delta(self) -> float:
        """The delta at which the epsilons of questions are stated."""
        return self.budget.question_delta

    @property
    def remaining(self) -> Cost:
        """What is left, in integers."""
        return self.spent.left_of(self.capacity)

    @property
    def spent_epsilon(self) -> float:
        """Epsilon of all questions together, at ``delta``, rounded up. The training purse is apart."""
        return question_epsilon(self.spent, self.delta)

    @property
    def remaining_epsilon(self) -> float:
        """The largest single question that still fits, at ``delta``, rounded down.

        Epsilons do not add, squares of mu do: this is not the budget's epsilon less ``spent_epsilon``.
        """
        return largest_epsilon(self.remaining, self.delta)

    @property
    def training_spent(self) -> tuple[float, float]:
        """(epsilon, delta) that fixed blocks took from the training purse."""
        return self.spent.block_epsilon, self.spent.block_delta

    @property
    def training_remaining(self) -> tuple[float, float]:
        """(epsilon, delta) left in the training purse."""
        return self.remaining.block_epsilon, self.remaining.block_delta

    @property
    def head(self) -> str:
        """The digest of the last entry. Whoever keeps a copy of it can tell later whether history was rewritten."""
        return self.entries[-1].digest

    def bill(self) -> Bill:
        """What the account has paid for, line by line; ``vitrail.show.page`` makes a page of it."""
        spent, budget = self.spent, self.budget
        trained = bool(spent.pico_epsilon or spent.quecto_delta)
        # Of questions the delta of their whole purse, the samplers' share included; and what training runs took of theirs.
        delta = budget.delta - budget.training[1] + spent.block_delta
        epsilon = self._epsilon(spent)
        promise = Guarantee(epsilon, delta, 0.0 if trained else spent.mu, self.neighbours)
        lines = tuple(self._bill_lines())
        return Bill(self.account, budget.epsilon, budget.delta, epsilon, self.remaining_epsilon, promise, self.head, lines)

    def __str__(self) -> str:
        return text_table(BILL_HEADER, self.bill().cells, self._sentences())

    def _repr_html_(self) -> str:
        return html_table(BILL_HEADER, self.bill().cells, self._sentences())

    def _sentences(self) -> list[str]:
        """What there is to say beside the bill's lines: the account, caps, and what is set aside."""
        said = [f"Account {self.account!r}, neighbours {self.neighbours}: {self.bill().sentence}"]
        for line in self.analysts:
            if line.remaining_epsilon is not None:
                largest = rounded_down(line.remaining_epsilon)
                said.append(f"Analyst {line.analyst!r} has a cap: a question of up to ε = {largest} still fits it.")
        for held in self.reservations:
            set_aside, booked = rounded_up(held.reserved_epsilon), rounded_up(held.booked_epsilon)
            said.append(
                f"Set aside for {held.label!r} (entry {held.seq}): ε = {set_aside}, of which ε = {booked} is booked."
            )
        return said

    def _bill_lines(self) -> Iterator[BillLine]:
        """What was asked, by whom, at what price, and how much that makes so far."""
        spending, named, capacity = Spending(), dict[str, str](), max(1, self.capacity.pico_mu_squared)
        for entry in self.entries:
            if entry.kind not in ("charged", "replayed"):
                continue
            before, part, paid = spending.total, entry.part, entry.kind == "charged"
            spending.add(entry.cost, None if part is None else part.key)
            spent = spending.total
            if paid:
                what = named[str(entry.seq)] = question_text(entry) + ("" if part is None else f" ({part})")
            else:
                what = f"again: {named.get(str(entry.body.get('of')), 'a stored answer')}"
            so_far, share = self._epsilon(spent), (spent.pico_mu_squared - before.pico_mu_squared) / capacity
            who, epsilon = entry.analyst or "", self._epsilon(entry.cost)
            yield BillLine(entry.seq, entry.time_utc, who, what, paid, epsilon, so_far, share, str(part or ""))

    def to_dp_events(self) -> DpEvents:
        """What was charged, for another accountant: every charge as dp-accounting describes it, and all of them composed."""
        charges = tuple(_dp_charge(entry, self.neighbours) for entry in self.entries if entry.kind == "charged")
        return DpEvents(self.account, self.neighbours, self.delta, self.head, charges)

    def _epsilon(self, cost: Cost) -> float:
        """Questions at the account's delta, plus what training runs took."""
        return epsilon_of(cost.mu, self.delta) + cost.block_epsilon

    def of_part(self, part: Part) -> PartLine:
        """One part's line; a part that was never charged has one too."""
        siblings = {line.part.index: line.spent for line in self.parts if line.part.partition == part.partition}
        exposed = exposure(self.spent, siblings, part.index)
        return PartLine(part, siblings.get(part.index, Cost()), exposed, self.capacity, self.delta)

    def of_analyst(self, analyst: str) -> AnalystLine:
        """One analyst's line."""
        for line in self.analysts:
            if line.analyst == analyst:
                return line
        known = ", ".join(repr(line.analyst) for line in self.analysts) or "nobody"
        raise LedgerError(f"Analyst {analyst!r} has no line in account {self.account!r}; it knows {known}.")

    def to_json(self) -> dict[str, JsonValue]:
        """The statement as plain JSON values, without the entries."""
        epsilons = ("spent_epsilon", "remaining_epsilon")
        return {
            **_plain(self, "delta", *epsilons, "training_spent", "training_remaining", "head"),
            "n_entries": len(self.entries),
            "analysts": [_plain(line, *epsilons) for line in self.analysts],
            "parts": [{**line.part.to_json(), **_plain(line, *epsilons)} for line in self.parts],
            "reservations": [line.to_json() for line in self.reservations],
        }


def question_text(entry: Entry) -> str:
    """The question's own label, or its kind and size in words."""
    question = entry.body.get("question")
    if not isinstance(question, dict):
        return "a question"
    if isinstance(label := question.get("label"), str) and label:
        return label
    kind = str(question.get("question", "question")).replace("-", " ")
    for name, unit in (("size", "numbers"), ("candidates", "candidates"), ("groups", "groups")):
        if isinstance(amount := question.get(name), int):
            return f"{kind} of {amount} {unit}"
    return kind


def _dp_charge(entry: Entry, neighbours: Neighbours) -> DpCharge:
    """One charge; a block by its own description, a question by its price (``accounting.dp_events``)."""
    fields, part = entry.body["event"], entry.part
    event = event_from_json(fields if isinstance(fields, dict) else {})
    which = (None, None) if part is None else (part.partition, part.index)
    told = entry.seq, entry.time_utc, entry.analyst or "", question_text(entry), event.kind, entry.cost
    if isinstance(event, FixedBlock):
        return DpCharge(*told, event.noise_multiplier, event.sampling_rate, event.steps, *which)
    if is_exchange(neighbours):
        return DpCharge(*told, 2 / entry.cost.mu, 1.0, 1, *which)
    rate = _sampling_rate(entry) if rows_per_person_of(neighbours) == 1 else 1.0  # such rows have a coin each
    return DpCharge(*told, 1 / entry.cost.mu, rate, 1, *which)


def _sampling_rate(entry: Entry) -> float:
    """With which probability a row entered a sum; 1 where the ledger does not say that it was drawn by a coin."""
    question = entry.body.get("question")
    known = isinstance(question, dict) and question.get("question") == "bounded-sum"
    rate = question.get("rate") if known and isinstance(question, dict) else None
    return rate if isinstance(rate, float) and 0 < rate < 1 else 1.0


def _plain(line: AnalystLine | PartLine | ReservationLine | Statement, *properties: str) -> dict[str, JsonValue]:
    """The fields of a line, and some of its properties, as JSON values; other lines and entries are left out."""
    names = [known.name for known in fields(line) if known.name not in ("analysts", "parts", "reservations", "entries")]
    return {name: _json(getattr(line, name)) for name in (*names, *properties)}


def _json(value: Budget | Part | Cost | tuple[float, ...] | str | float | None) -> JsonValue:
    if isinstance(value, Budget | Part):
        return value.to_json()
    return cost_to_json(value) if isinstance(value, Cost) else list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class VerifiedAccount:
    """What the walk over one account's chain found.

    ``spent`` are its charges, added up afresh. ``head`` is the digest of its last entry: publish it, and this history can no
    longer be rewritten unseen. ``recorded`` is how many entries this user's own record, outside the ledger, knows of; None
    where there is no record.
    """

    account: str
    n_entries: int
    n_questions: int
    n_releases: int
    spent: Cost
    head: str
    recorded: int | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of walking every chain of a ledger.

    Parameters
    ----------
    problems : tuple of str
        What does not hold, in sentences. Empty when all is well.
    accounts : tuple of VerifiedAccount
        What was found, account by account.

    Examples
    --------
    >>> Verification((), ()).ok
    True
    """

    problems: tuple[str, ...]
    accounts: tuple[VerifiedAccount, ...]

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    @property
    def heads(self) -> dict[str, str]:
        """The digest of every account's last entry, to be published."""
        return {verified.account: verified.head for verified in self.accounts}
