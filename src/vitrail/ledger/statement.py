"""How an account stands: a statement with its lines, and the bill that can be made of it.

A statement is made of the running totals that every charge keeps, so it costs the same however many entries there are.
Entries, and the bill's lines with them, are read when somebody asks for them (``chain``).

*The newest lines alone.* A line says how much was spent up to it. All charges together are the account's total less what
open reservations hold, and a charge that is read backwards is taken off again, part by part. These are whole numbers, so
lines that were reached so are those that adding up from the first entry gives, to the last bit
(tests/ledger/test_ledger_reservation_histories.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import islice

from .._checks import whole
from .._tables import html_table, text_table
from ..accounting import (
    Cost,
    FixedBlock,
    JsonValue,
    LaplaceSum,
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
from ..errors import LedgerCorrupted, LedgerError
from .allowance import largest_epsilon, question_epsilon
from .chain import Chain
from .entries import Entry, Part, cost_to_json

SHOWN_LINES = 50
"""Of a bill that is printed: the newest."""

_BILLED = ("charged", "replayed")
_ENTRIES_PER_LINE = 20  # at most so many are read for a line: a question has three or four, and what is kept has no line


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
    """The state of an account, as it was when the statement was made, and its bill.

    What is here was read at a price that does not depend on how many entries there are. Entries are read when they are asked
    for (``entries``, ``since``, ``bill``, ``to_dp_events``, the newest of them to print it): those up to ``head``, however
    the ledger went on, and checked to lead there. The ledger must be open for that. Pickled, a statement takes them along.

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
    n_entries : int
        How long the chain is.
    head : str
        The digest of the last entry. Whoever keeps a copy of it can tell later whether history was rewritten.
    analysts : tuple of AnalystLine
        One line for every analyst, by name.
    parts : tuple of PartLine
        One line for every disjoint part of the rows that was charged. Of each partition, ``spent`` holds the dearest.
    reservations : tuple of ReservationLine
        One line for every reservation that is open, oldest first.
    chain : Chain
        Where the entries are read.
    """

    account: str
    budget: Budget
    neighbours: Neighbours
    capacity: Cost
    spent: Cost
    n_questions: int
    n_entries: int
    head: str = field(repr=False)
    analysts: tuple[AnalystLine, ...]
    parts: tuple[PartLine, ...]
    reservations: tuple[ReservationLine, ...]
    chain: Chain = field(repr=False, compare=False)  # the head stands for it

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
    def entries(self) -> tuple[Entry, ...]:
        """The whole chain, oldest first. Read when it is first asked for."""
        return self.chain.entries

    def since(self, seq: int) -> tuple[Entry, ...]:
        """The entries after number ``seq``, oldest first; those before are not read."""
        return tuple(islice(self.chain.backwards(), max(0, self.n_entries - seq)))[::-1]

    def bill(self, newest: int | None = None) -> Bill:
        """What the account has paid for, line by line; ``vitrail.show.page`` makes a page of it.

        Parameters
        ----------
        newest : int, optional
            Read so many lines from the end, and no more of the chain than they need. All lines if not given.
        """
        if newest is None:
            return self._bill(self.chain.forwards(), Spending(), None)
        window, n_lines, n_wanted = list[Entry](), 0, whole("newest", newest, least=0)
        for entry in islice(self.chain.backwards(), _ENTRIES_PER_LINE * (n_wanted + 1)):
            n_lines += entry.kind in _BILLED
            if n_lines > n_wanted:
                break
            window.append(entry)
        if len(window) == self.n_entries:
            return self._bill(reversed(window), Spending(), None)
        spending, n_earlier = self._charged(), self.n_questions
        for entry in window:
            if entry.kind == "charged":
                spending.take_back(entry.cost, _part_key(entry.part))
                n_earlier -= 1
        return self._bill(reversed(window), spending, n_earlier)

    def _charged(self) -> Spending:
        """What the ``charged`` entries make, part by part: all that is spent, less what open reservations hold."""
        spending = Spending({line.part.key: line.spent for line in self.parts})
        spending.add(spending.total.left_of(self.spent))
        for held in self.reservations:
            spending.take_back(held.held, _part_key(held.part))
        return spending

    def _bill(self, entries: Iterable[Entry], spending: Spending, n_earlier: int | None) -> Bill:
        """The bill with the lines of these entries, before which ``spending`` was charged."""
        spent, budget = self.spent, self.budget
        trained = bool(spent.pico_epsilon or spent.quecto_delta)
        # Of questions the delta of their whole purse, the samplers' share included; and what training runs took of theirs.
        delta = budget.delta - budget.training[1] + spent.block_delta
        epsilon = self.epsilon(spent)
        promise = Guarantee(epsilon, delta, 0.0 if trained else spent.mu, self.neighbours)
        stands = self.account, budget.epsilon, budget.delta, epsilon, self.remaining_epsilon, promise, self.head
        return Bill(*stands, tuple(self._bill_lines(entries, spending)), n_earlier)

    def __str__(self) -> str:
        return text_table(BILL_HEADER, *self._printed())

    def _repr_html_(self) -> str:
        return html_table(BILL_HEADER, *self._printed())

    def _printed(self) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
        """The bill's newest lines, and what there is to say beside them: the account, caps, and what is set aside."""
        try:
            bill, whole = self.bill(newest=SHOWN_LINES), "bill() has them all."
        except LedgerCorrupted:
            raise
        except LedgerError as error:  # the ledger was closed: what was printed a line earlier must not fail for that
            bill, whole = self._bill((), Spending(), self.n_questions), str(error)
        said = [f"Account {self.account!r}, neighbours {self.neighbours}: {bill.sentence}"]
        for line in self.analysts:
            if line.remaining_epsilon is not None:
                largest = rounded_down(line.remaining_epsilon)
                said.append(f"Analyst {line.analyst!r} has a cap: a question of up to ε = {largest} still fits it.")
        for held in self.reservations:
            set_aside, booked = rounded_up(held.reserved_epsilon), rounded_up(held.booked_epsilon)
            said.append(
                f"Set aside for {held.label!r} (entry {held.seq}): ε = {set_aside}, of which ε = {booked} is booked."
            )
        return bill.cells, [*said, *([f"{bill.omission} {whole}"] if bill.omission else [])]

    def _bill_lines(self, entries: Iterable[Entry], spending: Spending) -> Iterator[BillLine]:
        """What was asked, by whom, at what price, and how much that makes so far."""
        named, capacity = dict[int, str](), max(1, self.capacity.pico_mu_squared)
        spent, priced = spending.total, lru_cache(256)(self.epsilon)  # prices come again, and an epsilon takes a search
        for entry in entries:
            if entry.kind not in _BILLED:
                continue
            before, part, paid = spent, entry.part, entry.kind == "charged"
            if paid:
                spending.add(entry.cost, _part_key(part))
                spent, what = spending.total, named.setdefault(entry.seq, asked_text(entry))
            elif isinstance(of := entry.body.get("of"), int) and 0 < of < entry.seq:
                what = f"again: {named[of] if of in named else named.setdefault(of, asked_text(self.chain.entry(of)))}"
            else:
                what = "again: a stored answer"
            so_far, share = priced(spent), (spent.pico_mu_squared - before.pico_mu_squared) / capacity
            who, epsilon = entry.analyst or "", priced(entry.cost)
            yield BillLine(entry.seq, entry.time_utc, who, what, paid, epsilon, so_far, share, str(part or ""))

    def to_dp_events(self) -> DpEvents:
        """What was charged, for another accountant: every charge as dp-accounting describes it, and all of them composed."""
        charges = tuple(_dp_charge(entry, self.neighbours) for entry in self.chain.forwards() if entry.kind == "charged")
        return DpEvents(self.account, self.neighbours, self.delta, self.head, charges)

    def epsilon(self, cost: Cost) -> float:
        """Epsilon of a cost to this account: questions at its delta, plus what training runs took."""
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
            **_plain(self, "delta", *epsilons, "training_spent", "training_remaining"),
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


def asked_text(entry: Entry) -> str:
    """What a charge was for: the question, and the part of the rows if it was one."""
    part = entry.part
    return question_text(entry) + ("" if part is None else f" ({part})")


def _part_key(part: Part | None) -> tuple[str, int] | None:
    return None if part is None else part.key


def _dp_charge(entry: Entry, neighbours: Neighbours) -> DpCharge:
    """One charge; a block by its own description, a question by its price (``accounting.dp_events``)."""
    fields, part = entry.body["event"], entry.part
    event = event_from_json(fields if isinstance(fields, dict) else {})
    which = (None, None) if part is None else (part.partition, part.index)
    told = entry.seq, entry.time_utc, entry.analyst or "", question_text(entry), event.kind, entry.cost
    if isinstance(event, FixedBlock):
        return DpCharge(*told, event.noise_multiplier, event.sampling_rate, event.steps, *which)
    if isinstance(event, LaplaceSum):
        return DpCharge(*told, event.scale / event.sensitivity, 1.0, 1, *which)
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
    names = [known.name for known in fields(line) if known.name not in ("analysts", "parts", "reservations", "chain")]
    return {name: _json(getattr(line, name)) for name in (*names, *properties)}


def _json(value: Budget | Part | Cost | tuple[float, ...] | str | float | None) -> JsonValue:
    if isinstance(value, Budget | Part):
        return value.to_json()
    return cost_to_json(value) if isinstance(value, Cost) else list(value) if isinstance(value, tuple) else value
