"""Connections that keep the promise of durability.

*SQLite.* Write-ahead log and ``synchronous=FULL``: a commit returns after its log is on the disk. The driver's own idea of
when a transaction starts is switched off, and every writing transaction starts with ``BEGIN IMMEDIATE``, which takes the
one write lock before anything is read: what was read is what is decided upon. The file is made here, readable by its
owner only, and connections are opened with ``mode=rw``, so that a file that disappears is an error and never a new, empty
ledger. The path is made absolute, so that a change of directory does not lead to another file. Write-ahead logs need
shared memory: keep the file on a local disk, not on a network share.

*PostgreSQL.* Read committed, the account's row locked with ``FOR UPDATE`` (see ``sql_book``), ``synchronous_commit`` on.

Other databases are refused: each has its own rules about what a lock protects and what a commit means, and an
untested rule is a way to overspend.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from ..errors import LedgerError

BUSY_SECONDS = 60.0
"""How long a connection waits for another's write before it gives up."""

READ_ONLY = "vitrail_read_only"
"""The execution option of transactions that only read: they take a snapshot and block nobody."""


def parse(where: str | Path) -> URL:
    """The URL of a ledger, with a file's path made absolute."""
    if isinstance(where, Path):
        return URL.create("sqlite", database=str(where.expanduser().absolute()))
    try:
        url = make_url(where)
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
        return _sqlite_engine(url)
    try:
        engine = create_engine(url, isolation_level="READ COMMITTED", hide_parameters=True, max_overflow=-1)
    except ImportError as error:
        raise LedgerError(
            f"The ledger's address names the driver {url.get_driver_name()!r}, which is not installed. Install it, or name "
            "another, as in 'postgresql+psycopg://user@host/database'."
        ) from error
    event.listen(engine, "begin", _begin_postgresql)
    return engine


def make_file(url: URL, *, must_exist: bool) -> None:
    """Create the file of a SQLite ledger, readable by its owner only, unless it is there."""
    if url.get_backend_name() != "sqlite":
        return
    path = Path(str(url.database))
    if path.is_file():
        return
    if path.exists():
        raise LedgerError(f"The ledger {path} is not a file.")
    if must_exist:
        raise LedgerError(f"There is no ledger at {path}. Check the path, or create the ledger with open_ledger.")
    if not path.parent.is_dir():
        raise LedgerError(
            f"The ledger {path} cannot be created: there is no folder {path.parent}. Check the path, or make it."
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _sync_folder(path.parent)
    except FileExistsError:
        return  # another process made it between the question and the answer
    except OSError as error:
        raise LedgerError(f"The ledger {path} cannot be created ({error.strerror}).") from error


def _sync_folder(folder: Path) -> None:
    """Make the new name durable: a ledger lost with its folder's cache would come back with its budget whole."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sqlite_engine(url: URL) -> Engine:
    file = URL.create("sqlite", database=Path(str(url.database)).as_uri(), query={"mode": "rw", "uri": "true"})
    engine = create_engine(
        file,
        poolclass=QueuePool,
        max_overflow=-1,
        hide_parameters=True,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    assert isinstance(connection, sqlite3.Connection)
    connection.isolation_level = None  # the driver starts no transaction of its own; _begin_sqlite does
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA fullfsync=ON")  # macOS: an fsync that reaches the disk
    cursor.execute("PRAGMA checkpoint_fullfsync=ON")
    _switch_to_wal(cursor)
    cursor.close()


def _switch_to_wal(cursor: sqlite3.Cursor) -> None:
    """Turn the write-ahead log on. The switch does not wait its turn as other statements do, so it is tried again."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = cursor.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError(f"the file system does not allow a write-ahead log (journal mode {mode!r})")
        return


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get(READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _begin_postgresql(connection: Connection) -> None:
    if not connection.get_execution_options().get(READ_ONLY, False):
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO ON")
