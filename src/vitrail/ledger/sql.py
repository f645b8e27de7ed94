"""A ledger in a database: SQLite in memory or in a file, PostgreSQL through the same code.

Safe for many threads and processes, for kill -9 at any moment, and after a fork. Every method is one transaction of
``operations`` or ``reservations`` over a :class:`~vitrail.ledger.book.Book`; how connections keep their promise is in
``database``, how an older copy is noticed in ``high_water``.

*What an error says.* A ledger writes before a row is read (charges, reservations), after (answers), and when neither
matters. The code that finds something wrong (a chain that was cut, a disk that is full) does not know the moment, so it says
only what it found, and the method adds how things stand. A sentence about rows in shared code would be false at some moment.

*In memory.* The ledger ends with its process. A copy of it would have the whole budget again, so it refuses to be pickled,
copied, or used by a forked child.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from sqlalchemy import Connection, Engine, inspect, select, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ..accounting import Cost, Event, JsonValue
from ..errors import LedgerError
from ..guarantee import Budget, Neighbours
from . import database, operations, reservations, verification
from .book import Book
from .entries import Part, RawEntry
from .high_water import HighWater, HighWaterMarks, contradiction, mark_of, state_folder
from .results import Account, Charge, Replay, Reservation, Statement, Verification
from .tables import FORMAT_VERSION, LATER, METADATA, TABLES, ChargeRow, FormatRow, ReservationRow

_CREATION_LOCK = 0x76697472  # an arbitrary number that only ledgers being created lock in PostgreSQL

NOTHING_CHARGED = "Nothing was charged."
CHARGE_UNSURE = (
    "No row was read for this question. Whether its charge was recorded before the failure, the bill says (`vitrail "
    "budget`); a charge is never refunded."
)
NOTHING_RESERVED = "Nothing was reserved."
RESERVATION_UNSURE = (
    "No row was read for it. Whether it was reserved before the failure, `vitrail ledger reservations` says; asking again "
    "goes on with the reservation that is open, and the owner may free it."
)
NOTHING_FREED = "Nothing was freed."
STILL_HELD = "What the recipe did not book may still be reserved: `vitrail ledger reservations` says so."


class TransactionFailed(LedgerError):
    """The database did not complete a transaction. It may fail at the very commit, so what was written is not certain."""


class SqlLedger:
    """A ledger in memory, in a SQLite file or in a PostgreSQL database.

    Parameters
    ----------
    where : str or Path
        ``"memory"``, a file's path, or a URL such as ``"sqlite:///ledger.db"`` or
        ``"postgresql+psycopg://user@host/database"``.
    must_exist : bool
        Refuse to create a ledger where there is none.

    Examples
    --------
    >>> from vitrail.accounting import GaussianSum
    >>> ledger = SqlLedger("memory")
    >>> account = ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    >>> question = {"analyst": "alice", "event": GaussianSum(1.0, 10.0), "question": {}, "key": "00ff" * 16}
    >>> charge = ledger.charge("adult", **question)
    >>> ledger.store(charge, b"42")
    b'42'
    >>> ledger.charge("adult", **question).release
    b'42'
    >>> round(ledger.statement("adult").spent_epsilon, 2), ledger.verify().ok
    (0.4, True)
    """

    def __init__(self, where: str | Path = "memory", *, must_exist: bool = False) -> None:
        self._url = database.parse(where)
        self._in_memory = where == "memory"
        self._is_file = self._url.get_backend_name() == "sqlite" and not self._in_memory
        file_or_memory = str(self._url.database or "memory")
        self._where = file_or_memory if self._is_file or self._in_memory else self._url.render_as_string()
        self._marks = HighWaterMarks(state_folder(), wanted=not self._in_memory)
        self._openings: dict[str, str] = {}  # account to the digest of its first entry, by which its record is found
        self._pid = os.getpid()
        self._engine: Engine | None = None
        self._memory = database.connect_in_memory() if self._in_memory else None
        self._lock = threading.Lock()  # of the one connection to memory
        self._complete = self._in_memory  # whether it is known to have every table of this version
        if self._in_memory:
            return
        if self._is_file:
            database.make_file(Path(self._where), must_exist=must_exist)
            database.leave_write_ahead_log(Path(self._where))
        self._engine = database.connect(self._url)
        try:
            self._prepare_tables(must_exist=must_exist)
        except BaseException:
            self.close()
            raise
        _OPEN.add(self)

    def open_account(self, account: str, budget: Budget, neighbours: Neighbours, *, data: str | None = None) -> Account:
        """See :meth:`Ledger.open_account`."""
        try:
            return self._open_account(account, budget, neighbours, data)
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
        # PostgreSQL: an account that does not exist cannot be locked, and another process has just opened it.
        return self._open_account(account, budget, neighbours, data)

    def _open_account(self, account: str, budget: Budget, neighbours: Neighbours, data: str | None) -> Account:
        known = self._marks.known(account, self._address, data)
        with _outcome(NOTHING_CHARGED), self._writing(account, data=data) as book:
            for mark in known:
                self._refuse_older_copy(book, mark)
            opened = operations.open_account(book, account, budget, neighbours)
            book.spending = book.account(account)  # an account that was there is recorded, too, if it comes from elsewhere
        return opened

    def cap_analyst(self, account: str, analyst: str, budget: Budget) -> None:
        """See :meth:`Ledger.cap_analyst`."""
        with _outcome(NOTHING_CHARGED), self._writing(account) as book:
            operations.cap_analyst(book, account, analyst, budget)

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
        """See :meth:`Ledger.reserve`."""
        with _outcome(NOTHING_RESERVED, unsure=RESERVATION_UNSURE), self._writing(account) as book:
            reserved = reservations.reserve(book, account, analyst, cost, recipe, question, part)
        return reserved

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
        with _outcome(NOTHING_CHARGED, unsure=CHARGE_UNSURE), self._writing(account) as book:
            answer = operations.charge(book, account, analyst, event, question, key, part, reservation)
        return answer  # outside the block: committed and durable

    def store(self, charge: Charge, release: bytes) -> bytes:
        """See :meth:`Ledger.store`."""
        lost = (
            f"Charge {charge.seq} of account {charge.account!r} stands, and the rows were read for it; the answer was not "
            "stored and is not handed out. Nothing is refunded: repair the ledger or its disk, then ask again. A question "
            "with a key is then answered under the same charge; one without is a new charge."
        )
        with _outcome(lost), self._writing(charge.account) as book:
            stored = operations.store(book, charge, release)
        return stored

    def has_begun(self, account: str, *, recipe: str) -> bool:
        """See :meth:`Ledger.has_begun`."""
        with self._reading() as book:
            return bool(book.rows(ReservationRow, account=account, recipe=recipe))

    def finish(self, reservation: Reservation) -> Cost:
        """See :meth:`Ledger.finish`."""
        with _outcome(STILL_HELD), self._writing(reservation.account) as book:
            given_back = reservations.finish(book, reservation)
        return given_back

    def free(self, account: str, seq: int) -> Cost:
        """See :meth:`Ledger.free`."""
        with _outcome(NOTHING_FREED, unsure=STILL_HELD), self._writing(account) as book:
            given_back = reservations.free(book, account, seq)
        return given_back

    def keep(self, account: str, *, analyst: str, name: str, content: bytes) -> None:
        """See :meth:`Ledger.keep`."""
        with _outcome(NOTHING_CHARGED), self._writing(account) as book:
            operations.keep(book, account, analyst, name, content)

    def kept(self, account: str, *, analyst: str, name: str) -> bytes | None:
        """See :meth:`Ledger.kept`."""
        with self._reading() as book:
            return operations.kept(book, account, analyst, name)

    def statement(self, account: str) -> Statement:
        """See :meth:`Ledger.statement`."""
        with self._reading() as book:
            return operations.statement(book, account)

    def accounts(self) -> tuple[str, ...]:
        """See :meth:`Ledger.accounts`."""
        with self._reading() as book:
            return book.names()

    def verify(self, published: Mapping[str, str] | None = None) -> Verification:
        """See :meth:`Ledger.verify`."""
        self._check_usable()
        try:
            records = self._marks.all()  # before the chain: a record never leads
            with self._reading() as book:
                return verification.verify(book, published, records=records, ledger=self._address)
        except LedgerError as error:
            return Verification((str(error),), ())

    def backup(self, destination: str | Path, *, overwrite: bool = False) -> Verification:
        """Copy the ledger as it stands between two transactions to another file, also while others use it.

        The copy is walked before it gets its name. It is a ledger like any other: as long as this one goes on, the record
        that the user keeps outside (``high_water``) tells that the copy is older, and it cannot be spent from.

        Parameters
        ----------
        destination : str or Path
            The file to write, readable by its owner only.
        overwrite : bool
            Whether a file that is there is replaced.

        Returns
        -------
        Verification
            What the walk over the copy found.

        Raises
        ------
        LedgerError
            If the file is there, cannot be written, or the copy does not verify. Then nothing was replaced.
        """
        if not self._is_file:
            raise LedgerError(f"The ledger {self._where} is no file; back it up with the database's own tools, as pg_dump.")

        def walk(copy: Path) -> Verification:
            opened = SqlLedger(copy, must_exist=True)
            try:
                with opened._reading() as book:
                    return verification.verify(book)  # without records: others may have charged since
            finally:
                opened.close()

        with self._transaction(read_only=True) as connection:
            return database.copy_file(connection, Path(self._where), Path(destination), walk, overwrite=overwrite)

    def close(self) -> None:
        """Close the connections. The ledger stays where it is; what was in memory is gone."""
        if os.getpid() == self._pid:
            if self._engine is not None:
                self._engine.dispose()
            if self._memory is not None:
                self._memory.close()
        self._engine = self._memory = None

    def _prepare_tables(self, *, must_exist: bool) -> None:
        """Check the format; where there is no ledger, create one if that is allowed."""
        with self._transaction(read_only=True) as connection:  # a reader without the right to write may still verify
            if _has_table(connection, FormatRow):
                self._check_format(connection)
                self._complete = not _missing_tables(connection)
                return
        if must_exist:
            raise LedgerError(f"{self._where} holds no ledger. Check the address, or create one with open_ledger.")
        self._make_tables()

    def _make_tables(self) -> None:
        """Make a ledger, or give one of an earlier version the tables it lacks: its entries stay as they are."""
        with self._transaction(read_only=False) as connection:
            if connection.dialect.name == "postgresql":  # in SQLite the write lock of the transaction does it
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CREATION_LOCK})
            if not _has_table(connection, FormatRow):
                if self._is_file and not database.is_empty(Path(self._where)):
                    raise LedgerError(
                        f"{self._where} is a database without a ledger: another program's, or a copy of a ledger that was "
                        "made without its -wal file. A new ledger is made in a new file only."
                    )
                database.make_tables(connection)
            self._check_format(connection)
            missing = _missing_tables(connection)
            METADATA.create_all(connection, tables=[TABLES[row] for row in missing])
            if ChargeRow in missing:
                verification.list_charges(Book(connection, for_update=True))
        self._complete = True

    def _check_format(self, connection: Connection) -> None:
        versions = connection.execute(select(TABLES[FormatRow])).scalars().all()
        if versions != [FORMAT_VERSION]:
            raise LedgerError(
                f"The ledger {self._where} has the format {versions}; this version of vitrail reads [{FORMAT_VERSION}]. Use "
                "the version that wrote it, or a later one."
            )

    @property
    def _address(self) -> str:
        """The place by which records know this ledger: one name for a file, whatever links lead to it."""
        return str(Path(self._where).resolve()) if self._is_file else self._where

    @contextmanager
    def _writing(self, account: str, *, data: str | None = None) -> Iterator[Book]:
        """A transaction on an account that no record contradicts. Its own record follows the commit."""
        if not self._complete:
            self._make_tables()
        with self._transaction(read_only=False) as connection:
            book = Book(connection, for_update=True)
            opening = self._opening(book, account)
            if opening is not None and (mark := self._marks.of(opening)) is not None:
                self._refuse_older_copy(book, mark)
            yield book
        if (row := book.spending) is not None:  # committed
            if opening is None and row.seq == 1:
                opening = self._openings[account] = row.head
            if opening is not None:  # else the first entry was removed, which verify names
                self._marks.keep(mark_of(row, opening, self._address, data))

    def _refuse_older_copy(self, book: Book, mark: HighWater) -> None:
        if (refusal := contradiction(book, mark, self._where, self._marks.file(mark.opening))) is not None:
            raise refusal

    def _opening(self, book: Book, account: str) -> str | None:
        """The digest of the account's first entry. Read once: a ledger in this one's place is found by this one's record."""
        if account not in self._openings and (first := book.get(RawEntry, account=account, seq=1)) is not None:
            self._openings[account] = first.digest
        return self._openings.get(account)

    @contextmanager
    def _reading(self) -> Iterator[Book]:
        with self._transaction(read_only=True) as connection:
            missing = frozenset[Callable[..., object]]() if self._complete else _missing_tables(connection)
            yield Book(connection, for_update=False, missing=missing)

    @contextmanager
    def _transaction(self, *, read_only: bool) -> Iterator[Connection]:
        """One transaction: committed if the block ends well, rolled back if it does not."""
        self._check_usable()
        try:
            with self._connection(read_only=read_only) as connection, connection.begin():
                yield connection
        except (SQLAlchemyError, sqlite3.Error) as error:
            reason = str(getattr(error, "orig", error)).partition("\n")[0]
            raise TransactionFailed(f"The ledger {self._where} could not complete a transaction ({reason}).") from error

    @contextmanager
    def _connection(self, *, read_only: bool) -> Iterator[Connection]:
        """A connection of the engine's own, or, in memory, the one there is, while no other thread has it."""
        if self._memory is not None:
            if not self._lock.acquire(timeout=database.BUSY_SECONDS):
                raise TransactionFailed("The ledger in memory is busy with another transaction of this process.")
            try:
                yield self._memory
            finally:
                self._lock.release()
        elif self._engine is not None:
            options: dict[str, object] = {database.READ_ONLY: read_only}
            if read_only and self._engine.dialect.name == "postgresql":
                options["isolation_level"] = "REPEATABLE READ"  # one snapshot for all the statements of a reader
            with self._engine.connect().execution_options(**options) as connection:
                yield connection

    def _check_usable(self) -> None:
        """Refuse a ledger that was closed. A forked child gets an engine of its own: connections do not survive a fork."""
        if self._engine is None and self._memory is None:
            raise LedgerError(f"The ledger {self._where} was closed. Open it again with open_ledger.")
        if os.getpid() != self._pid:
            if self._engine is None:
                raise LedgerError(
                    "A ledger in memory belongs to the process that made it: a child that spent from its copy would spend "
                    "the budget twice. Use a ledger file, for example open_ledger('ledger.db'), to share a budget."
                )
            _INHERITED.append(self._engine)
            self._engine = database.connect(self._url)
            self._pid = os.getpid()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("A ledger cannot be copied or pickled. Open it by its address where it is needed.")

    def __repr__(self) -> str:
        return f"SqlLedger({self._where!r})"


@contextmanager
def _outcome(refused: str, *, unsure: str | None = None) -> Iterator[None]:
    """Add to a ledger's error how things stand.

    Parameters
    ----------
    refused : str
        What holds when the operation was refused and nothing of it was written.
    unsure : str, optional
        What holds when the database failed, perhaps at the commit; ``refused`` if not given.
    """
    try:
        yield
    except LedgerError as error:
        said = unsure if unsure is not None and isinstance(error, TransactionFailed) else refused
        error.args = (f"{error} {said}",)
        raise


def _has_table(connection: Connection, row: Callable[..., object]) -> bool:
    return inspect(connection).has_table(TABLES[row].name)


def _missing_tables(connection: Connection) -> frozenset[Callable[..., object]]:
    """The rows that a ledger of an earlier version has no tables for."""
    return frozenset(row for row in LATER if not _has_table(connection, row))


_OPEN: weakref.WeakSet[SqlLedger] = weakref.WeakSet()
_INHERITED: list[Engine] = []
"""Engines a child got from its parent. Kept, because letting one go would close the parent's connections from here."""


def _close_idle_connections() -> None:
    """Leave a child nothing to inherit but what another thread is using this very moment."""
    for ledger in list(_OPEN):
        if ledger._engine is not None:
            ledger._engine.dispose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_idle_connections)
