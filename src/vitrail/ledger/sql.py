"""A ledger in a database: a SQLite file, or PostgreSQL through the same code.

Safe for many threads and processes, for kill -9 at any moment, and after a fork. Every method is one transaction of
``operations`` over a :class:`~vitrail.ledger.sql_book.SqlBook`; how connections keep their promise is in ``sql_engine``, how
an older copy is noticed in ``high_water``, and who says what about rows and charges when something fails in ``outcome``.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from sqlalchemy import Connection, Engine, insert, inspect, select, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from ..accounting import Cost, Event, JsonValue
from ..errors import LedgerError
from ..guarantee import Budget, Neighbours
from . import artefacts, operations, verification
from .high_water import HighWater, HighWaterMarks, contradiction, mark_of, state_folder
from .outcome import CHARGE_UNSURE, NOTHING_CHARGED, TransactionFailed, answer_lost, outcome
from .parts import Part
from .results import Account, Charge, Replay, Reservation, Statement, Verification, check_fits
from .sql_backup import copy_file
from .sql_book import SqlBook
from .sql_engine import READ_ONLY, connect, is_empty, leave_write_ahead_log, make_file, parse
from .sql_tables import FORMAT, FORMAT_VERSION, LATER, METADATA

_CREATION_LOCK = 0x76697472  # an arbitrary number that only ledgers being created lock in PostgreSQL


class SqlLedger:
    """A ledger in a SQLite file or a PostgreSQL database.

    Parameters
    ----------
    where : str or Path
        A URL such as ``"sqlite:///ledger.db"`` or ``"postgresql+psycopg://user@host/database"``, or a file's path.
    must_exist : bool
        Refuse to create a ledger where there is none.

    Examples
    --------
    >>> import tempfile
    >>> from vitrail.accounting import GaussianSum
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = SqlLedger(f"sqlite:///{folder}/ledger.db")
    ...     account = ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    ...     charge = ledger.charge("adult", analyst="alice", event=GaussianSum(1.0, 10.0), question={}, key=None)
    ...     ledger.close()
    ...     ledger = SqlLedger(f"sqlite:///{folder}/ledger.db", must_exist=True)
    ...     print(ledger.statement("adult").n_questions, ledger.verify().ok)
    ...     ledger.close()
    1 True
    """

    def __init__(self, where: str | Path, *, must_exist: bool = False) -> None:
        self._url = parse(where)
        self._is_file = self._url.get_backend_name() == "sqlite"
        self._place = str(self._url.database) if self._is_file else self._url.render_as_string()
        self._marks = HighWaterMarks(state_folder())
        self._openings: dict[str, str] = {}  # account to the digest of its first entry, by which its record is found
        if self._is_file:
            make_file(Path(self._place), must_exist=must_exist)
            leave_write_ahead_log(Path(self._place))
        self._pid = os.getpid()
        self._engine: Engine | None = connect(self._url)
        self._complete = False  # whether it is known to have every table of this version
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
        with outcome(NOTHING_CHARGED), self._writing(account, data=data) as book:
            for mark in known:
                self._refuse_older_copy(book, mark)
            opened = operations.open_account(book, account, budget, neighbours)
            book.written = book.account(account)  # an account that was there is recorded, too, if it comes from elsewhere
        return opened

    def cap_analyst(self, account: str, analyst: str, budget: Budget) -> None:
        """See :meth:`Ledger.cap_analyst`."""
        with outcome(NOTHING_CHARGED), self._writing(account) as book:
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
        with outcome(NOTHING_CHARGED, unsure=CHARGE_UNSURE), self._writing(account) as book:
            answer = operations.charge(book, account, analyst, event, question, key, part)
            if isinstance(answer, Replay) and answer.counted == Cost():
                book.written = None  # nobody spent anything: a copy without this entry has no more budget than this one
        return answer  # outside the block: committed and durable

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
        with outcome(answer_lost(charge)), self._writing(charge.account) as book:
            operations.store(book, charge, release)
            book.written = None  # as above: what was spent is what was spent

    def keep(self, account: str, *, analyst: str, name: str, content: bytes) -> None:
        """See :meth:`Ledger.keep`."""
        with outcome(NOTHING_CHARGED), self._writing(account) as book:
            artefacts.keep(book, account, analyst, name, content)
            book.written = None

    def kept(self, account: str, *, analyst: str, name: str) -> bytes | None:
        """See :meth:`Ledger.kept`."""
        with self._reading() as book:
            return artefacts.kept(book, account, analyst, name)

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
        self._engine_here()
        try:
            records = self._marks.all()  # before the chain: a record never leads
            with self._reading() as book:
                return verification.verify(book, published, records=records, place=self._address)
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
            raise LedgerError(f"The ledger {self._place} is no file; back it up with the database's own tools, as pg_dump.")

        def walk(copy: Path) -> Verification:
            opened = SqlLedger(copy, must_exist=True)
            try:
                with opened._reading() as book:
                    return verification.verify(book)  # without records: others may have charged since
            finally:
                opened.close()

        with self._transaction(read_only=True) as connection:
            return copy_file(connection, Path(self._place), Path(destination), walk, overwrite=overwrite)

    def close(self) -> None:
        """Close the connections. The ledger stays where it is."""
        if self._engine is not None and os.getpid() == self._pid:
            self._engine.dispose()
        self._engine = None

    def _prepare_tables(self, *, must_exist: bool) -> None:
        """Check the format; where there is no ledger, create one if that is allowed."""
        with self._transaction(read_only=True) as connection:  # a reader without the right to write may still verify
            if inspect(connection).has_table(FORMAT.name):
                self._check_format(connection)
                self._complete = _has_every_table(connection)
                return
        if must_exist:
            raise LedgerError(f"{self._place} holds no ledger. Check the address, or create one with open_ledger.")
        with self._transaction(read_only=False) as connection:
            _lock_creation(connection)
            if not inspect(connection).has_table(FORMAT.name):
                if self._is_file and not is_empty(Path(self._place)):
                    raise LedgerError(
                        f"{self._place} is a database without a ledger: another program's, or a copy of a ledger that was "
                        "made without its -wal file. A new ledger is made in a new file only."
                    )
                METADATA.create_all(connection)
                connection.execute(insert(FORMAT).values(version=FORMAT_VERSION))
            self._check_format(connection)

    def _add_later_tables(self) -> None:
        """Give a ledger of an earlier version the tables it lacks. Its entries, and what they say, stay as they are."""
        with self._transaction(read_only=False) as connection:
            _lock_creation(connection)
            METADATA.create_all(connection, tables=list(LATER))
        self._complete = True

    def _check_format(self, connection: Connection) -> None:
        versions = connection.execute(select(FORMAT.c.version)).scalars().all()
        if versions != [FORMAT_VERSION]:
            raise LedgerError(
                f"The ledger {self._place} has the format {versions}; this version of vitrail reads [{FORMAT_VERSION}]. Use "
                "the version that wrote it, or a later one."
            )

    @property
    def _address(self) -> str:
        """The place by which records know this ledger: one name for a file, whatever links lead to it."""
        return str(Path(self._place).resolve()) if self._is_file else self._place

    @contextmanager
    def _writing(self, account: str, *, data: str | None = None) -> Iterator[SqlBook]:
        """A transaction on an account that no record contradicts. Its own record follows the commit."""
        if not self._complete:
            self._add_later_tables()
        with self._transaction(read_only=False) as connection:
            book = SqlBook(connection, for_update=True)
            opening = self._opening(book, account)
            if opening is not None and (mark := self._marks.of(opening)) is not None:
                self._refuse_older_copy(book, mark)
            yield book
        if (row := book.written) is not None:  # committed
            if opening is None and row.seq == 1:
                opening = self._openings[account] = row.head
            if opening is not None:  # else the first entry was removed, which verify names
                self._marks.keep(mark_of(row, opening, self._address, data))

    def _refuse_older_copy(self, book: SqlBook, mark: HighWater) -> None:
        if (refusal := contradiction(book, mark, self._place, self._marks.file(mark.opening))) is not None:
            raise refusal

    def _opening(self, book: SqlBook, account: str) -> str | None:
        """The digest of the account's first entry. Read once: a ledger in this one's place is found by this one's record."""
        if account not in self._openings and (first := book.entry(account, 1)) is not None:
            self._openings[account] = first.digest
        return self._openings.get(account)

    @contextmanager
    def _reading(self) -> Iterator[SqlBook]:
        with self._transaction(read_only=True) as connection:
            complete = self._complete or _has_every_table(connection)
            yield SqlBook(connection, for_update=False, complete=complete)

    @contextmanager
    def _transaction(self, *, read_only: bool) -> Iterator[Connection]:
        """One transaction: committed if the block ends well, rolled back if it does not."""
        engine = self._engine_here()
        options: dict[str, object] = {READ_ONLY: read_only}
        if read_only and engine.dialect.name == "postgresql":
            options["isolation_level"] = "REPEATABLE READ"  # one snapshot for all the statements of a reader
        try:
            with engine.connect().execution_options(**options) as connection, connection.begin():
                yield connection
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or type(error).__name__).partition("\n")[0]
            raise TransactionFailed(f"The ledger {self._place} could not complete a transaction ({reason}).") from error

    def _engine_here(self) -> Engine:
        """The engine of this process; a forked child gets its own, because connections do not survive a fork."""
        if self._engine is None:
            raise LedgerError(f"The ledger {self._place} was closed. Open it again with open_ledger.")
        if os.getpid() != self._pid:
            _INHERITED.append(self._engine)
            self._engine = connect(self._url)
            self._pid = os.getpid()
        return self._engine

    def __reduce__(self) -> NoReturn:
        raise LedgerError("A ledger cannot be copied or pickled. Open it by its address where it is needed.")

    def __repr__(self) -> str:
        return f"SqlLedger({self._place!r})"


def _has_every_table(connection: Connection) -> bool:
    return all(inspect(connection).has_table(table.name) for table in LATER)


def _lock_creation(connection: Connection) -> None:
    """PostgreSQL: one process at a time makes tables. In SQLite the write lock of the transaction does it."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CREATION_LOCK})


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
