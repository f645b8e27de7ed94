"""A ledger in this process's memory: for tests, notebooks and one-off runs. It ends with the process.

Everything lives in one dictionary of cells, and a transaction is committed by a single ``dict.update``: no other thread
and no keyboard interrupt can come between the charge and the totals. A copy of it would have the whole budget again, so
it refuses to be pickled, copied, or used by a forked child.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn, TypeAlias, TypeVar

from ..accounting import Cost, Event, JsonValue
from ..errors import LedgerError
from ..guarantee import Budget, Neighbours
from . import artefacts, operations, verification
from .book import AccountRow, AnalystRow, KeptRow, PartRow, ReleaseRow
from .entries import RawEntry
from .outcome import NOTHING_CHARGED, answer_lost, outcome
from .parts import Part
from .results import Account, Charge, Replay, Reservation, Statement, Verification, check_fits

_Key: TypeAlias = (
    tuple[str, str]
    | tuple[str, str, int | str]
    | tuple[str, str, int, str]
    | tuple[str, str, str, str]
    | tuple[str, str, str, str, int]
)
_Cell: TypeAlias = AccountRow | AnalystRow | PartRow | RawEntry | ReleaseRow | KeptRow | tuple[int, ...] | bool
_T = TypeVar("_T")


class MemoryLedger:
    """A ledger that lives and ends with this process.

    Examples
    --------
    >>> from vitrail.accounting import GaussianSum
    >>> ledger = MemoryLedger()
    >>> account = ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    >>> charge = ledger.charge(
    ...     "adult", analyst="alice", event=GaussianSum(1.0, 10.0), question={"kind": "count"}, key="00ff" * 16
    ... )
    >>> ledger.store(charge, b"42")
    >>> ledger.charge(
    ...     "adult", analyst="alice", event=GaussianSum(1.0, 10.0), question={"kind": "count"}, key="00ff" * 16
    ... ).release
    b'42'
    >>> round(ledger.statement("adult").spent_epsilon, 2), ledger.verify().ok
    (0.4, True)
    """

    def __init__(self) -> None:
        self._cells: dict[_Key, _Cell] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False

    def open_account(self, account: str, budget: Budget, neighbours: Neighbours, *, data: str | None = None) -> Account:
        """See :meth:`Ledger.open_account`. Nothing remembers it, so where the rows are makes no difference."""
        with outcome(NOTHING_CHARGED), self._transaction() as book:
            return operations.open_account(book, account, budget, neighbours)

    def cap_analyst(self, account: str, analyst: str, budget: Budget) -> None:
        """See :meth:`Ledger.cap_analyst`."""
        with outcome(NOTHING_CHARGED), self._transaction() as book:
            operations.cap_analyst(book, account, analyst, budget)

    def charge(
        self,
        account: str,
        *,
        analyst: str,
        event: Event,
        question: Mapping[str, JsonValue],
        key: str | None,
        part: Part | None = None,
        reservation: Reservation | None = None,
    ) -> Charge | Replay:
        """See :meth:`Ledger.charge`."""
        with outcome(NOTHING_CHARGED), self._transaction() as book:
            return operations.charge(book, account, analyst, event, question, key, part)

    def reserve(
        self,
        account: str,
        *,
        analyst: str,
        cost: Cost,
        recipe: str | None,
        question: Mapping[str, JsonValue],
        part: Part | None = None,
    ) -> Reservation:
        """Set a price aside (interim: checks that it fits, until reservations are kept)."""
        check_fits(self.statement(account), cost, analyst)
        return Reservation(account, 0, analyst, recipe, cost)

    def has_begun(self, account: str, *, recipe: str) -> bool:
        """Whether this recipe was begun (interim: never known)."""
        return False

    def finish(self, reservation: Reservation) -> Cost:
        """Give back what was not booked (interim: nothing was set aside)."""
        return Cost()

    def store(self, charge: Charge, release: bytes) -> None:
        """See :meth:`Ledger.store`."""
        with outcome(answer_lost(charge)), self._transaction() as book:
            operations.store(book, charge, release)

    def keep(self, account: str, *, analyst: str, name: str, content: bytes) -> None:
        """See :meth:`Ledger.keep`."""
        with outcome(NOTHING_CHARGED), self._transaction() as book:
            artefacts.keep(book, account, analyst, name, content)

    def kept(self, account: str, *, analyst: str, name: str) -> bytes | None:
        """See :meth:`Ledger.kept`."""
        with self._transaction() as book:
            return artefacts.kept(book, account, analyst, name)

    def statement(self, account: str) -> Statement:
        """See :meth:`Ledger.statement`."""
        with self._transaction() as book:
            return operations.statement(book, account)

    def accounts(self) -> tuple[str, ...]:
        """See :meth:`Ledger.accounts`."""
        with self._transaction() as book:
            return book.names()

    def verify(self, published: Mapping[str, str] | None = None) -> Verification:
        """See :meth:`Ledger.verify`."""
        with self._transaction() as book:
            return verification.verify(book, published)

    def close(self) -> None:
        """Close the ledger; what it held is gone."""
        self._closed = True
        self._cells = {}

    @contextmanager
    def _transaction(self) -> Iterator[MemoryBook]:
        if self._closed:
            raise LedgerError("This ledger was closed. Open one with open_ledger.")
        if os.getpid() != self._pid:
            raise LedgerError(
                "A memory ledger belongs to the process that made it: a child that spent from its copy would spend the "
                "budget twice. Use a ledger file, for example open_ledger('ledger.db'), to share a budget."
            )
        with self._lock:
            book = MemoryBook(self._cells)
            yield book
            self._cells.update(book.written)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("A memory ledger cannot be copied or pickled: the copy would have the budget again.")

    def __repr__(self) -> str:
        return "MemoryLedger()"


class MemoryBook:
    """One transaction over the cells: reads through what it has written, which is applied when it ends well."""

    def __init__(self, cells: Mapping[_Key, _Cell]) -> None:
        self._cells = cells
        self.written: dict[_Key, _Cell] = {}

    def _get(self, key: _Key, of: type[_T]) -> _T | None:
        cell = self.written.get(key, self._cells.get(key))
        return cell if isinstance(cell, of) else None

    def _all(self, table: str, account: str) -> list[tuple[_Key, _Cell]]:
        cells = {**self._cells, **self.written}
        return [(key, cell) for key, cell in cells.items() if key[0] == table and key[1] == account]

    def names(self) -> tuple[str, ...]:
        """See :meth:`Book.names`."""
        return tuple(sorted({key[1] for key in (*self._cells, *self.written)}))

    def account(self, account: str) -> AccountRow | None:
        """See :meth:`Book.account`."""
        return self._get(("account", account), AccountRow)

    def put_account(self, row: AccountRow, *, new: bool) -> None:
        """See :meth:`Book.put_account`."""
        self.written["account", row.account] = row

    def analyst(self, account: str, analyst: str) -> AnalystRow | None:
        """See :meth:`Book.analyst`."""
        return self._get(("analyst", account, analyst), AnalystRow)

    def analysts(self, account: str) -> list[AnalystRow]:
        """See :meth:`Book.analysts`."""
        rows = [cell for _, cell in self._all("analyst", account) if isinstance(cell, AnalystRow)]
        return sorted(rows, key=lambda row: row.analyst)

    def put_analyst(self, row: AnalystRow, *, new: bool) -> None:
        """See :meth:`Book.put_analyst`."""
        self.written["analyst", row.account, row.analyst] = row

    def parts_of(self, account: str, analyst: str, partition: str) -> list[PartRow]:
        """See :meth:`Book.parts_of`."""
        return [row for row in self.parts(account) if (row.analyst, row.part.partition) == (analyst, partition)]

    def parts(self, account: str) -> list[PartRow]:
        """See :meth:`Book.parts`."""
        return [cell for _, cell in self._all("part", account) if isinstance(cell, PartRow)]

    def put_part(self, row: PartRow, *, new: bool) -> None:
        """See :meth:`Book.put_part`."""
        self.written["part", row.account, row.analyst, row.part.partition, row.part.index] = row

    def entry(self, account: str, seq: int) -> RawEntry | None:
        """See :meth:`Book.entry`."""
        return self._get(("entry", account, seq), RawEntry)

    def entries(self, account: str) -> Iterator[RawEntry]:
        """See :meth:`Book.entries`."""
        rows = [cell for _, cell in self._all("entry", account) if isinstance(cell, RawEntry)]
        return iter(sorted(rows, key=lambda row: row.seq))

    def append(self, account: str, entry: RawEntry) -> None:
        """See :meth:`Book.append`."""
        self.written["entry", account, entry.seq] = entry

    def release_under(self, account: str, key: str, analyst: str) -> ReleaseRow | None:
        """See :meth:`Book.release_under`."""
        stored = self._get(("key", account, key), tuple) or ()
        seen = [seq for seq in stored if self.has_seen(account, seq, analyst)]
        first = (*seen, *stored)[:1]
        return self._get(("release", account, first[0]), ReleaseRow) if first else None

    def has_release(self, account: str, charge_seq: int) -> bool:
        """See :meth:`Book.has_release`."""
        return self._get(("release", account, charge_seq), ReleaseRow) is not None

    def releases(self, account: str) -> Iterator[ReleaseRow]:
        """See :meth:`Book.releases`."""
        rows = [cell for _, cell in self._all("release", account) if isinstance(cell, ReleaseRow)]
        return iter(sorted(rows, key=lambda row: row.charge_seq))

    def put_release(self, row: ReleaseRow) -> None:
        """See :meth:`Book.put_release`."""
        self.written["release", row.account, row.charge_seq] = row
        if row.key is not None:
            stored = self._get(("key", row.account, row.key), tuple) or ()
            self.written["key", row.account, row.key] = (*stored, row.charge_seq)

    def has_seen(self, account: str, charge_seq: int, analyst: str) -> bool:
        """See :meth:`Book.has_seen`."""
        return self._get(("sighting", account, charge_seq, analyst), bool) is not None

    def sightings(self, account: str) -> set[tuple[int, str]]:
        """See :meth:`Book.sightings`."""
        keys = [key for key, _ in self._all("sighting", account)]
        return {(key[2], key[3]) for key in keys if len(key) == 4 and isinstance(key[2], int)}

    def put_sighting(self, account: str, charge_seq: int, analyst: str) -> None:
        """See :meth:`Book.put_sighting`."""
        self.written["sighting", account, charge_seq, analyst] = True

    def kept(self, account: str, analyst: str, name: str) -> KeptRow | None:
        """See :meth:`Book.kept`."""
        return self._get(("kept", account, analyst, name), KeptRow)

    def all_kept(self, account: str) -> Iterator[KeptRow]:
        """See :meth:`Book.all_kept`."""
        rows = [cell for _, cell in self._all("kept", account) if isinstance(cell, KeptRow)]
        return iter(sorted(rows, key=lambda row: (row.analyst, row.name)))

    def put_kept(self, row: KeptRow, *, new: bool) -> None:
        """See :meth:`Book.put_kept`."""
        self.written["kept", row.account, row.analyst, row.name] = row
