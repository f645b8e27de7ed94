"""Connections that keep the promise of durability.

*SQLite.* A rollback journal that is deleted at the commit, and ``synchronous=EXTRA``: when a charge returns, all of it is in
the one file, on the disk, and the journal's removal too (without that, a power cut could bring the journal back, which would
undo the charge). So a plain copy of the file between two charges holds every charge, and one that is made in the middle of a
commit is torn: its head is no longer its last entry, which is found before anything is appended. A write-ahead log is faster
and keeps charges in a second file, where a copy of the first is a ledger that has spent nothing; checkpoints after every
commit would not help, because a reader can hold them up. A database with such a log is refused. Readers and writers wait for
each other, up to ``BUSY_SECONDS``.

The driver's own idea of when a transaction starts is switched off, and every writing transaction starts with ``BEGIN
IMMEDIATE``, which takes the one write lock before anything is read: what was read is what is decided upon. The file is made
here, readable by its owner only, its name brought to the disk (SQLite does that for journals and not for the file), and
connections are opened with ``mode=rw``, so that a file that disappears is an error and never a new, empty ledger. The path
is made absolute, so that a change of directory does not lead to another file. SQLite's locks need a local disk, not a
network share.

*PostgreSQL.* Read committed, the account's row locked with ``FOR UPDATE`` (see ``book``), ``synchronous_commit`` on.

Other databases are refused: each has its own rules about what a lock protects and what a commit means, and an
untested rule is a way to overspend.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from ..errors import LedgerError
from .book import Book
from .entries import RawEntry
from .results import Verification
from .sqlite_file import BUSY_SECONDS, copied_to, is_empty, make_file
from .tables import FORMAT_VERSION, METADATA, OPEN_RESERVATIONS, TABLES, FormatRow, ReservationRow
from .verification import verify

_CREATION_LOCK = 0x76697472  # an arbitrary number that only ledgers being created lock in PostgreSQL

_INDEX = TABLES[ReservationRow].name, str(OPEN_RESERVATIONS.name)

KEPT_CONNECTIONS = 32
"""To PostgreSQL, where a new one costs as much as several charges: what more threads need is opened and closed each time."""

READ_ONLY = "vitrail_read_only"
"""The execution option of transactions that only read: they take a snapshot and block nobody."""


def parse(where: str | Path) -> URL:
    """The URL of a ledger, with a file's path made absolute; without a path for one in memory."""
    if where == "memory":
        return URL.create("sqlite")
    if isinstance(where, Path):
        return URL.create("sqlite", database=str(where.expanduser().absolute()))
    try:
        url = sql.make_url(where)
        backend = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise LedgerError(
            "The ledger's address cannot be read; give a URL such as 'sqlite:///ledger.db' or "
            "'postgresql+psycopg://user@host/database'."
        ) from error
    if backend not in ("sqlite", "postgresql"):
        raise LedgerError(
            f"The ledger's address names the database {backend!r}; ledgers are kept in SQLite or PostgreSQL, whose locks "
            "and commits this ledger is written for."
        )
    if backend == "postgresql":
        return url
    if not url.database or url.database == ":memory:" or url.database.startswith("file:") or url.query:
        raise LedgerError(
            f"The ledger's address is {str(where)!r}; a SQLite ledger is a plain file, such as 'sqlite:///ledger.db'. For a "
            "ledger that ends with the process use 'memory'."
        )
    return URL.create("sqlite", database=str(Path(url.database).absolute()))


def connect(url: URL) -> Engine:
    """An engine whose transactions are durable when they return."""
    if url.get_backend_name() == "sqlite":
        file = URL.create("sqlite", database=Path(str(url.database)).as_uri(), query={"mode": "rw", "uri": "true"})
        return _sqlite_engine(file, max_overflow=-1)
    try:
        options = {"pool_size": KEPT_CONNECTIONS, "max_overflow": -1}
        engine = sql.create_engine(url, isolation_level="READ COMMITTED", hide_parameters=True, **options)
    except ImportError as error:
        raise LedgerError(
            f"The ledger's address names the driver {url.get_driver_name()!r}, which is not installed. Install it, or name "
            "'postgresql+psycopg://user@host/database', whose driver comes with vitrail[postgresql]."
        ) from error
    event.listen(engine, "begin", _begin_postgresql)
    return engine


def _sqlite_engine(url: URL, pool: type[sql.Pool] = sql.QueuePool, **options: int) -> Engine:
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = sql.create_engine(url, poolclass=pool, hide_parameters=True, connect_args=arguments, **options)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@cache
def _memory_engine() -> Engine:
    """One engine for all ledgers in memory, whose statements are compiled once; every connection is a database."""
    return _sqlite_engine(URL.create("sqlite"), sql.NullPool)


@cache
def _empty_in_memory() -> Connection:
    """An empty ledger to copy: making its tables anew would take twenty times as long."""
    connection = _memory_engine().connect()
    with connection.begin():
        _make_all_tables(connection)
    return connection


_COPYING = threading.Lock()


def _connect_in_memory() -> Connection:
    """A connection to an empty ledger of its own, which ends with it. It serves one thread at a time."""
    connection = _memory_engine().connect()
    with _COPYING:
        _driver_connection(_empty_in_memory()).backup(_driver_connection(connection))
    return connection


def _make_all_tables(connection: Connection) -> None:
    """Make every table of a ledger where there is none."""
    METADATA.create_all(connection)
    connection.execute(sql.insert(TABLES[FormatRow]).values(version=FORMAT_VERSION))


def lock_creation(connection: Connection) -> None:
    """Be the only one who makes tables or indexes: in SQLite the write lock of the transaction does it."""
    if connection.dialect.name == "postgresql":
        connection.execute(sql.text("SELECT pg_advisory_xact_lock(:number)"), {"number": _CREATION_LOCK})


def _driver_connection(connection: Connection) -> sqlite3.Connection:
    """SQLite's own connection behind SQLAlchemy's."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    assert isinstance(connection, sqlite3.Connection)
    connection.isolation_level = None  # the driver starts no transaction of its own; _begin_sqlite does
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=EXTRA")
    cursor.execute("PRAGMA fullfsync=ON")  # macOS: an fsync that reaches the disk
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _begin_postgresql(connection: Connection) -> None:
    if not connection.get_execution_options().get(READ_ONLY, False):
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO ON")


class TransactionFailed(LedgerError):
    """The database did not complete a transaction. It may fail at the very commit, so what was written is not certain."""


class Database:
    """The tables of a ledger, opened or made, and transactions on them.

    Parameters
    ----------
    where : str or Path
        ``"memory"``, a file's path, or a URL.
    must_exist : bool
        Refuse to create a ledger where there is none.
    """

    def __init__(self, where: str | Path, *, must_exist: bool) -> None:
        self._url = parse(where)
        self.in_memory = where == "memory"
        self.is_file = self._url.get_backend_name() == "sqlite" and not self.in_memory
        self.where = str(self._url.database or "memory") if self.is_file or self.in_memory else self._url.render_as_string()
        """Its place, for messages."""
        self._pid = os.getpid()
        self.engine: Engine | None = None
        self._memory = _connect_in_memory() if self.in_memory else None
        self._lock = threading.Lock()  # of the one connection to memory
        self._lacks_index = False
        if self.in_memory:
            return
        if self.is_file:
            make_file(Path(self.where), must_exist=must_exist)
        self.engine = connect(self._url)
        try:
            self._find_tables(must_exist=must_exist)
        except BaseException:
            self.close()
            raise
        _OPEN.add(self)

    @property
    def address(self) -> str:
        """The place by which records know this ledger: one name for a file, whatever links lead to it."""
        return str(Path(self.where).resolve()) if self.is_file else self.where

    @contextmanager
    def writing(self) -> Iterator[Book]:
        """A transaction that writes."""
        self._add_index()
        with self.transaction(read_only=False) as connection:
            yield Book(connection, for_update=True)

    @contextmanager
    def reading(self) -> Iterator[Book]:
        """A transaction that reads one snapshot."""
        with self.transaction(read_only=True) as connection:
            yield Book(connection, for_update=False)

    def entries(self, account: str, first: int, last: int) -> list[RawEntry]:
        """Entries by their numbers, for a statement that was made earlier."""
        try:
            self.check_usable()
        except LedgerError as error:
            raise LedgerError(
                f"{error} A statement knows its totals; its entries, and the bill's lines, are read from the ledger when "
                "they are asked for."
            ) from None
        with self.reading() as book:
            return book.between(account, first, last)

    @contextmanager
    def transaction(self, *, read_only: bool) -> Iterator[Connection]:
        """One transaction: committed if the block ends well, rolled back if it does not."""
        self.check_usable()
        try:
            with self._connection(read_only=read_only) as connection, connection.begin():
                yield connection
        except (SQLAlchemyError, sqlite3.Error) as error:
            reason = str(getattr(error, "orig", error)).partition("\n")[0]
            if reason == "file is not a database":
                raise LedgerError(
                    f"The file {self.where} is no ledger; name one that Vitrail made, such as ledger.db."
                ) from error
            raise TransactionFailed(f"The ledger {self.where} could not complete a transaction ({reason}).") from error

    @contextmanager
    def _connection(self, *, read_only: bool) -> Iterator[Connection]:
        """A connection of the engine's own, or, in memory, the one there is, while no other thread has it."""
        if self._memory is not None:
            if not self._lock.acquire(timeout=BUSY_SECONDS):
                raise TransactionFailed("The ledger in memory is busy with another transaction of this process.")
            try:
                yield self._memory
            finally:
                self._lock.release()
        elif self.engine is not None:
            options: dict[str, object] = {READ_ONLY: read_only}
            if read_only and self.engine.dialect.name == "postgresql":
                options["isolation_level"] = "REPEATABLE READ"  # one snapshot for all the statements of a reader
            with self.engine.connect().execution_options(**options) as connection:
                yield connection

    def check_usable(self) -> None:
        """Refuse a ledger that was closed. A forked child gets an engine of its own: connections do not survive a fork."""
        if self.engine is None and self._memory is None:
            raise LedgerError(f"The ledger {self.where} was closed. Open it again with open_ledger.")
        if os.getpid() != self._pid:
            if self.engine is None:
                raise LedgerError(
                    "A ledger in memory belongs to the process that made it: a child that spent from its copy would spend "
                    "the budget twice. Use a ledger file, for example open_ledger('ledger.db'), to share a budget."
                )
            _INHERITED.append(self.engine)
            self.engine = connect(self._url)
            self._pid = os.getpid()

    def backup(self, destination: Path, *, overwrite: bool) -> Verification:
        """Copy the ledger, as :meth:`SqlLedger.backup` says."""
        if not self.is_file:
            raise LedgerError(f"The ledger {self.where} is no file; back it up with the database's own tools, as pg_dump.")
        source, target = Path(self.where), destination.expanduser().absolute()
        with (
            self.transaction(read_only=True) as connection,
            copied_to(target, _driver_connection(connection), source, overwrite=overwrite) as copy,
        ):
            with closing(Database(copy, must_exist=True)) as opened, opened.reading() as book:
                walked = verify(book)  # without records: others may have charged since
            if not walked.ok:
                raise LedgerError(
                    f"The ledger {source} does not hold, so no backup was written: {walked.problems[0]} Run `vitrail ledger "
                    "verify` for the full list."
                )
        return walked

    def close(self) -> None:
        """Close the connections; what was in memory is gone."""
        if os.getpid() == self._pid:
            if self.engine is not None:
                self.engine.dispose()
            if self._memory is not None:
                self._memory.close()
        self.engine = self._memory = None

    def _find_tables(self, *, must_exist: bool) -> None:
        """Find the ledger; where there is none, make one if that is allowed."""
        with self.transaction(read_only=True) as connection:  # a reader without the right to write may still verify
            if self._holds_ledger(connection):
                self._lacks_index = not sql.inspect(connection).has_index(*_INDEX)
                return
        if must_exist:
            raise LedgerError(f"{self.where} holds no ledger. Check the address, or create one with open_ledger.")
        with self.transaction(read_only=False) as connection:
            lock_creation(connection)
            if self._holds_ledger(connection):  # another process has just made it
                return
            if self.is_file and not is_empty(Path(self.where)):
                raise LedgerError(
                    f"{self.where} is a database without a ledger: another program's. A new ledger is made in a new file "
                    "only."
                )
            _make_all_tables(connection)

    def _add_index(self) -> None:
        """Give a ledger of an earlier version the index that it lacks. Who only reads changes nothing about a ledger."""
        if not self._lacks_index:
            return
        self._lacks_index = False  # tried once: whoever may not do it has a slower statement, and everything else
        with suppress(LedgerError), self.transaction(read_only=False) as connection:
            lock_creation(connection)
            OPEN_RESERVATIONS.create(connection, checkfirst=True)

    def _holds_ledger(self, connection: Connection) -> bool:
        """Whether there is a ledger here. One of another format is refused, and so is one that lacks a table."""
        inspector = sql.inspect(connection)
        lacking = [name for name in METADATA.tables if not inspector.has_table(name)]
        if TABLES[FormatRow].name in lacking:
            return False
        versions = connection.execute(sql.select(TABLES[FormatRow])).scalars().all()
        if versions != [FORMAT_VERSION]:
            raise LedgerError(
                f"The ledger {self.where} has the format {versions}; this version of vitrail reads [{FORMAT_VERSION}]. Use "
                "the version that wrote it, or a later one."
            )
        if lacking:
            raise LedgerError(
                f"The ledger {self.where} lacks {', '.join(lacking)}: tables were removed, or never made. Go back to a copy "
                "of the ledger that verifies."
            )
        return True


_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[Engine] = []
"""Engines a child got from its parent. Kept, because letting one go would close the parent's connections from here."""


def _close_idle_connections() -> None:
    """Leave a child nothing to inherit but what another thread is using this very moment."""
    for database in list(_OPEN):
        if database.engine is not None:
            database.engine.dispose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_idle_connections)
