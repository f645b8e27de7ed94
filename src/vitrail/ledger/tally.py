"""Folding a chain of entries into the state it proves, checking every entry on the way.

The back-ends keep running totals so that a charge is quick; a :class:`Tally` trusts none of them. It starts from nothing,
reads the entries in order, prices every event afresh, and keeps a list of what does not hold. It is the one account of
what the entries *mean*: verification compares the running totals with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..accounting import Cost, Selection, UnknownEvent, event_from_json
from ..errors import LedgerCorrupted, VitrailError
from ..guarantee import Budget, Neighbours, check_neighbours
from .allowance import fits
from .entries import GENESIS, Entry, budget_from_json, cost_from_json


@dataclass(slots=True)
class AnalystTally:
    """What the entries say about one analyst."""

    spent: Cost = field(default_factory=Cost)
    cap: Budget | None = None
    capacity: Cost | None = None


@dataclass(frozen=True, slots=True)
class Charged:
    """What a later entry may refer to of a charge."""

    analyst: str
    cost: Cost
    key: str | None


@dataclass(frozen=True, slots=True)
class Released:
    """What was recorded about a stored release."""

    released_seq: int
    sha256: str
    size: int


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
    spent: Cost = field(default_factory=Cost)
    n_questions: int = 0
    seq: int = 0
    head: str = GENESIS
    analysts: dict[str, AnalystTally] = field(default_factory=dict)
    charges: dict[int, Charged] = field(default_factory=dict)
    releases: dict[int, Released] = field(default_factory=dict)
    sightings: set[tuple[int, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Take in the next entry. What cannot be believed in it is named and left out of the state."""
        meanings = {
            "opened": self._opened,
            "capped": self._capped,
            "charged": self._charged,
            "released": self._released,
            "replayed": self._replayed,
        }
        try:
            meanings[entry.kind](entry)
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
        line = self._analyst(entry)
        cap = budget_from_json(entry.body["budget"])
        line.capacity = _capacity(entry, cap)
        line.cap = cap

    def _charged(self, entry: Entry) -> None:
        cost = entry.cost
        # Count first: what was charged was charged, even if something else about the entry is wrong.
        if not fits(self.spent, cost, self.capacity):
            self.complain(entry.seq, "it takes the account past its budget")
        self.spent += cost
        self.n_questions += 1
        self._count(entry, self._analyst(entry), cost)
        key = entry.body["key"]
        self.charges[entry.seq] = Charged(str(entry.analyst), cost, None if key is None else str(key))
        event_fields = entry.body["event"]
        if not isinstance(event_fields, dict):
            raise LedgerCorrupted("it holds no event")
        event = event_from_json(event_fields)
        # A selection's price comes from a quantile function, whose last bits differ between mathematical libraries; the
        # price is rounded up by more than that. Every other price is exact arithmetic.
        repriced = event.cost()
        slack = 1 + repriced.pico_mu_squared // 10**12 if isinstance(event, Selection) else 0
        if not _nearly(cost, repriced, slack):
            raise LedgerCorrupted(f"its event costs {repriced}, and {cost} was charged")

    def _released(self, entry: Entry) -> None:
        of = entry.body["of"]
        if not isinstance(of, int) or of not in self.charges:
            raise LedgerCorrupted(f"it stores a release for entry {of}, which is no charge")
        if of in self.releases:
            raise LedgerCorrupted(f"it stores a second release for charge {of}")
        size = entry.body["size"]
        self.releases[of] = Released(entry.seq, str(entry.body["sha256"]), size if isinstance(size, int) else -1)
        self.sightings.add((of, self.charges[of].analyst))

    def _replayed(self, entry: Entry) -> None:
        line, of, counted = self._analyst(entry), entry.body["of"], cost_from_json(entry.body["counted"])
        self._count(entry, line, counted)
        if not isinstance(of, int) or of not in self.releases:
            raise LedgerCorrupted(f"it replays entry {of}, for which no release was stored")
        sighting = (of, str(entry.analyst))
        owed = Cost() if sighting in self.sightings else self.charges[of].cost
        self.sightings.add(sighting)
        if counted != owed:
            raise LedgerCorrupted(f"it should count {owed} against the analyst's cap, and counts {counted}")
        if entry.body["key"] != self.charges[of].key:
            raise LedgerCorrupted(f"it replays charge {of} under another key than it was charged with")

    def _count(self, entry: Entry, line: AnalystTally, cost: Cost) -> None:
        if line.capacity is not None and not fits(line.spent, cost, line.capacity):
            self.complain(entry.seq, f"it takes analyst {entry.analyst!r} past the cap that held then")
        line.spent += cost

    def _analyst(self, entry: Entry) -> AnalystTally:
        if entry.analyst is None:
            raise LedgerCorrupted("it names no analyst")
        return self.analysts.setdefault(entry.analyst, AnalystTally())


def _capacity(entry: Entry, budget: Budget) -> Cost:
    """The recorded capacity, if the budget allows it.

    It is recorded because the conversion from epsilon may differ in its last bits between mathematical libraries. That
    conversion rounds down by far more (``gdp.RELATIVE_ERROR``), so one part in 10^12 is inside the promise.
    """
    recorded, allowed = cost_from_json(entry.body["capacity"]), budget.capacity()
    if not _nearly(recorded, allowed, 1 + allowed.pico_mu_squared // 10**12):
        raise LedgerCorrupted(f"its budget allows {allowed}, and {recorded} was recorded")
    return recorded


def _nearly(one: Cost, other: Cost, slack: int) -> bool:
    return abs(one.pico_mu_squared - other.pico_mu_squared) <= slack and (one.pico_epsilon, one.quecto_delta) == (
        other.pico_epsilon,
        other.quecto_delta,
    )
