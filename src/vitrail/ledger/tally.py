"""Folding a chain of entries into the state it proves, checking every entry on the way.

A book keeps running totals so that a charge is quick; a :class:`Tally` trusts none of them. It starts from nothing,
reads the entries in order, prices every event afresh, and keeps a list of what does not hold. It is the one account of
what the entries *mean*: verification compares the running totals with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..accounting import Cost, JsonValue, Selection, Spending, UnknownEvent, event_from_json
from ..accounting.guarantee import Budget
from ..accounting.neighbours import Neighbours, check_neighbours, is_exchange, rows_per_person_of
from ..errors import LedgerCorrupted, VitrailError
from .allowance import fits
from .entries import GENESIS, Entry, Part, budget_from_json, cost_from_json
from .tables import AnalystRow, ChargeRow, PartRow, ReservationRow, SightingRow, State

TallyRow: TypeAlias = AnalystRow | PartRow | SightingRow | ReservationRow | ChargeRow


Recorded: TypeAlias = tuple[int, dict[str, JsonValue]]
"""Of stored bytes: the number of the entry that records them, and what it says about them (``content_to_json``)."""


@dataclass(slots=True)
class AnalystTally:
    """What the entries say about one analyst."""

    spending: Spending = field(default_factory=Spending)
    cap: Budget | None = None
    capacity: Cost | None = None


@dataclass(slots=True)
class Tally:
    """The state that a chain proves, and what is wrong with it.

    Examples
    --------
    >>> tally = Tally("adult")
    >>> tally.add(Entry("adult", 1, "2026-01-01T00:00:00+00:00", "released", GENESIS, {"of": 7}))
    >>> tally.problems
    ["Entry 1 of account 'adult' cannot stand: it stores a release for entry 7, which is no charge."]
    """

    account: str
    budget: Budget | None = None
    neighbours: Neighbours | None = None
    capacity: Cost = field(default_factory=Cost)
    spending: Spending = field(default_factory=Spending)
    n_questions: int = 0
    seq: int = 0
    head: str = GENESIS
    analysts: dict[str, AnalystTally] = field(default_factory=dict)
    charges: dict[int, ChargeRow] = field(default_factory=dict)
    reservations: dict[int, ReservationRow] = field(default_factory=dict)
    releases: dict[int, Recorded] = field(default_factory=dict)
    sightings: set[tuple[int, str]] = field(default_factory=set)
    partitions: dict[str, tuple[int, str]] = field(default_factory=dict)
    kept: dict[tuple[str, str], Recorded] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def spent(self) -> Cost:
        """What the charges make together, parts included."""
        return self.spending.total

    def add(self, entry: Entry) -> None:
        """Take in the next entry. What cannot be believed in it is named and left out of the state."""
        try:
            getattr(self, f"_{entry.kind}")(entry)
        except (LedgerCorrupted, UnknownEvent) as error:
            self.complain(entry.seq, str(error))
        except (VitrailError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            self.complain(entry.seq, f"its particulars cannot be read ({type(error).__name__})")
        self.seq, self.head = entry.seq, entry.digest

    def complain(self, seq: int, what: str) -> None:
        """Name a problem of one entry."""
        self.problems.append(f"Entry {seq} of account {self.account!r} cannot stand: {what}.")

    def _opened(self, entry: Entry) -> None:
        if entry.seq != 1:
            raise LedgerCorrupted("an account is opened once, by its first entry")
        self.budget = budget_from_json(entry.body["budget"])
        self.neighbours = check_neighbours(str(entry.body["neighbours"]))
        self.capacity = _capacity(entry, self.budget)

    def _capped(self, entry: Entry) -> None:
        line, cap = self._analyst(entry), budget_from_json(entry.body["budget"])
        line.capacity, line.cap = _capacity(entry, cap), cap

    def _charged(self, entry: Entry) -> None:
        cost, part = entry.cost, self._part(entry)
        # Count first: what was charged was charged, even if something else about the entry is wrong.
        held = self._booked(entry, cost, part)
        if held is None:
            self._spend(entry, cost, part)
            self._count(entry, cost, part)
        self.n_questions += 1
        named = _text(entry, "key"), None if held is None else held.recipe
        self.charges[entry.seq] = ChargeRow(self.account, entry.seq, self._analyst_name(entry), *named, part, cost)
        event_fields = entry.body["event"]
        if not isinstance(event_fields, dict):
            raise LedgerCorrupted("it holds no event")
        event = event_from_json(event_fields)
        # A selection's price comes from a quantile function, whose last bits differ between mathematical libraries; the
        # price is rounded up by more than that. Every other price is exact arithmetic.
        repriced = event.cost()
        slack = 1 + repriced.pico_mu_squared // 10**12 if isinstance(event, Selection) else 0
        if held is not None and repriced <= cost:  # a step is booked at its whole share, of which an event may miss a little
            slack = 1 + repriced.pico_mu_squared // 10**11
        if not _nearly(cost, repriced, slack):
            raise LedgerCorrupted(f"its event costs {repriced}, and {cost} was charged")

    def _released(self, entry: Entry) -> None:
        of = entry.body["of"]
        if not isinstance(of, int) or of not in self.charges:
            raise LedgerCorrupted(f"it stores a release for entry {of}, which is no charge")
        if of in self.releases:
            raise LedgerCorrupted(f"it stores a second release for charge {of}")
        self.releases[of] = entry.seq, {name: entry.body[name] for name in ("sha256", "size")}
        self.sightings.add((of, self.charges[of].analyst))

    def _replayed(self, entry: Entry) -> None:
        charged, of = self._counted_again(entry), entry.body["of"]
        if charged is None or of not in self.releases:
            raise LedgerCorrupted(f"it replays entry {of}, for which no release was stored")
        if entry.body["key"] != charged.key:
            raise LedgerCorrupted(f"it replays charge {of} under another key than it was charged with")

    def _joined(self, entry: Entry) -> None:
        charged, of = self._counted_again(entry), entry.body["of"]
        if charged is None or charged.key is None or of in self.releases:
            raise LedgerCorrupted(f"it joins entry {of}, which is no charge with a key whose release was still to be stored")

    def _counted_again(self, entry: Entry) -> ChargeRow | None:
        """Count what an earlier charge means for another analyst's cap. The charge, if there is one."""
        of, counted = entry.body["of"], cost_from_json(entry.body["counted"])
        charged = self.charges.get(of) if isinstance(of, int) else None
        part = None if charged is None else charged.part
        if self._booked(entry, counted, part, of_cap_only=True) is None:
            self._count(entry, counted, part)
        if charged is None:
            return None
        sighting = (charged.charge_seq, self._analyst_name(entry))
        owed = Cost() if sighting in self.sightings or charged.analyst == entry.analyst else charged.cost
        self.sightings.add(sighting)
        if counted != owed:
            self.complain(entry.seq, f"it should count {owed} against the analyst's cap, and counts {counted}")
        return charged

    def _reserved(self, entry: Entry) -> None:
        held, held_of_cap = cost_from_json(entry.body["cost"]), cost_from_json(entry.body["counted"])
        part = self._part(entry)
        self._spend(entry, held, part)
        self._count(entry, held_of_cap, part)
        named = self._analyst_name(entry), _text(entry, "recipe")
        self.reservations[entry.seq] = ReservationRow(self.account, entry.seq, *named, part, held, held_of_cap)

    def _booked(self, entry: Entry, cost: Cost, part: Part | None, *, of_cap_only: bool = False) -> ReservationRow | None:
        """The reservation that the entry is booked against. What cannot be booked counts in full, as if it named none."""
        if "reservation" not in entry.body:
            return None
        of = entry.body["reservation"]
        held = self.reservations.get(of) if isinstance(of, int) else None
        if held is None:
            self.complain(entry.seq, f"it is booked against entry {of}, which is no reservation")
        elif held.state != "open":
            self.complain(entry.seq, f"it is booked against reservation {of}, which was {held.state} before")
        elif (held.analyst, held.part) != (entry.analyst, part):
            self.complain(entry.seq, f"it is booked against reservation {of}, which is another analyst's or part's")
        elif (after := held.less(cost, of_cap_only=of_cap_only)) is None:
            self.complain(entry.seq, f"it books more than reservation {of} holds")
        else:
            self.reservations[held.reserved_seq] = after
            return held
        return None

    def _finished(self, entry: Entry) -> None:
        state: State = "freed" if entry.kind == "freed" else "finished"
        of = entry.body["of"]
        held = self.reservations.get(of) if isinstance(of, int) else None
        if held is None:
            raise LedgerCorrupted(f"it gives back what entry {of} reserved, which is no reservation")
        if held.state in ("finished", state):
            raise LedgerCorrupted(f"it gives back what reservation {of} held, which was {held.state} before")
        self.spending.take_back(held.held, _key_of(held.part))
        self.analysts[held.analyst].spending.take_back(held.held_of_cap, _key_of(held.part))
        self.reservations[held.reserved_seq] = replace(held, held=Cost(), held_of_cap=Cost(), state=state)
        given_back = cost_from_json(entry.body["cost"]), cost_from_json(entry.body["counted"])
        if given_back != (held.held, held.held_of_cap):
            raise LedgerCorrupted(f"it gives back {given_back}, and reservation {of} held {(held.held, held.held_of_cap)}")

    _freed = _finished

    def _kept(self, entry: Entry) -> None:
        key = self._analyst_name(entry), str(entry.body["name"])
        self.kept[key] = entry.seq, {name: entry.body[name] for name in ("sha256", "size")}

    def _part(self, entry: Entry) -> Part | None:
        """The part that was charged. One that cannot be believed counts as the whole data, which is never too little."""
        try:
            part = entry.part
        except LedgerCorrupted as error:
            self.complain(entry.seq, str(error))
            return None
        if part is None:
            return None
        if self.neighbours is None or is_exchange(self.neighbours) or rows_per_person_of(self.neighbours) > 1:
            self.complain(entry.seq, f"it charges a part under neighbours {self.neighbours!r}")
            return None
        if self.partitions.setdefault(part.partition, (part.count, part.name)) != (part.count, part.name):
            self.complain(entry.seq, "it describes its partition otherwise than an entry before it")
            return None
        return part

    def _spend(self, entry: Entry, cost: Cost, part: Part | None) -> None:
        if not fits(self.spending.exposure(_key_of(part)), cost, self.capacity):
            self.complain(entry.seq, "it takes the account past its budget")
        self.spending.add(cost, _key_of(part))

    def _count(self, entry: Entry, cost: Cost, part: Part | None) -> None:
        line, key = self._analyst(entry), _key_of(part)
        if line.capacity is not None and not fits(line.spending.exposure(key), cost, line.capacity):
            self.complain(entry.seq, f"it takes analyst {entry.analyst!r} past the cap that held then")
        line.spending.add(cost, key)

    def _analyst(self, entry: Entry) -> AnalystTally:
        return self.analysts.setdefault(self._analyst_name(entry), AnalystTally())

    def _analyst_name(self, entry: Entry) -> str:
        if entry.analyst is None:
            raise LedgerCorrupted("it names no analyst")
        return entry.analyst

    def rows(self) -> dict[Callable[..., TallyRow], Sequence[TallyRow]]:
        """What the tables of running totals and look-ups must hold."""
        everyone = {"": self.spending, **{name: line.spending for name, line in self.analysts.items()}}
        return {
            AnalystRow: [
                AnalystRow(self.account, name, line.spending.total, line.cap, line.capacity)
                for name, line in self.analysts.items()
            ],
            PartRow: [
                PartRow(self.account, name, partition, index, *self.partitions[partition], cost)
                for name, spending in everyone.items()
                for partition, costs in spending.parts.items()
                for index, cost in costs.items()
            ],
            SightingRow: [SightingRow(self.account, charge_seq, analyst) for charge_seq, analyst in self.sightings],
            ReservationRow: list(self.reservations.values()),
            ChargeRow: [row for row in self.charges.values() if row.key is not None or row.recipe is not None],
        }


def _key_of(part: Part | None) -> tuple[str, int] | None:
    return None if part is None else part.key


def _text(entry: Entry, name: str) -> str | None:
    value = entry.body[name]
    return None if value is None else str(value)


def _capacity(entry: Entry, budget: Budget) -> Cost:
    """The recorded capacity, if the budget allows it.

    It is recorded because the conversion from epsilon may differ in its last bits between mathematical libraries. That
    conversion rounds down by far more (``gdp.RELATIVE_ERROR``), so one part in 10^12 is inside the promise.
    """
    recorded, allowed = cost_from_json(entry.body["capacity"]), budget.capacity()
    if not _nearly(recorded, allowed, 1 + allowed.pico_mu_squared // 10**12):
        raise LedgerCorrupted(f"its budget allows {allowed}, and {recorded} was recorded")
    return recorded


def _nearly(cost: Cost, other: Cost, slack: int) -> bool:
    blocks_agree = (cost.pico_epsilon, cost.quecto_delta) == (other.pico_epsilon, other.quecto_delta)
    return blocks_agree and abs(cost.pico_mu_squared - other.pico_mu_squared) <= slack
