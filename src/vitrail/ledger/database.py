"""Connections that keep the promise of durability.

*SQLite.* A rollback journal that is deleted at the commit, and ``synchronous=EXTRA``: when a charge returns, all of it is in
the one file, on the disk, and the journal's removal too (without that, a power cut could bring the journal back, which would
undo the charge). So a plain copy of the file between two charges holds every charge, and one that is made in the middle of a
commit is torn: its head is no longer its last entry, which is found before anything is appended. A write-ahead log is faster
and keeps charges in a second file, where a copy of the first is a ledger that has spent nothing; checkpoints after every
commit would not help, because a reader can hold them up. Ledgers with such a log are changed when they are opened. Readers
and writers wait for each other now, up to ``BUSY_SECONDS``.

The driver's own idea of when a transaction starts is switched off, and every writing transaction starts with ``BEGIN
IMMEDIATE``, which takes the one write lock before anything is read: what was read is what is decided upon. The file is made
here, readable by its owner only, its name brought to the disk (SQLite does that for journals and not for the file), and
connections are opened with ``mode=rw``, so that a file that disappears is an error and never a new, empty ledger. The path
is made absolute, so that a change of directory does not lead to another file. SQLite's locks need a local disk, not a
network share.

*PostgreSQL.* Read committed, the account's row locked with ``FOR UPDATE`` (see ``sql_book``), ``synchronous_commit`` on.

Other databases are refused: each has its own rules about what a lock protects and what a commit means, and an
untested rule is a way to overspend.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, NullPool, Pool, QueuePool, create_engine, event, insert, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry

from ..errors import LedgerError
from .results import Verification
from .tables import FORMAT_VERSION, METADATA, TABLES, FormatRow

BUSY_SECONDS = 60.0
"""How long a connection waits for another's write before it gives up."""

_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # how a rollback journal begins

READ_ONLY = "vitrail_read_only"
"""The execution option of transactions that only read: they take a snapshot and block nobody."""


def parse(where: str | Path) -> URL:
    """The URL of a ledger, with a file's path made absolute; without a path for one in memory."""
    if where == "memory":
        return URL.create("sqlite")
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
        file = URL.create("sqlite", database=Path(str(url.database)).as_uri(), query={"mode": "rw", "uri": "true"})
        return _sqlite_engine(file, max_overflow=-1)
    try:
        engine = create_engine(url, isolation_level="READ COMMITTED", hide_parameters=True, max_overflow=-1)
    except ImportError as error:
        raise LedgerError(
            f"The ledger's address names the driver {url.get_driver_name()!r}, which is not installed. Install it, or name "
            "another, as in 'postgresql+psycopg://user@host/database'."
        ) from error
    event.listen(engine, "begin", _begin_postgresql)
    return engine


def make_file(path: Path, *, must_exist: bool) -> None:
    """Create the file of a SQLite ledger, readable by its owner only, unless it is there."""
    if path.is_file():
        _refuse_emptied(path)
        return
    if path.exists():
        raise LedgerError(f"The ledger {path} is not a file.")
    _refuse_emptied(path)
    if must_exist:
        raise LedgerError(f"There is no ledger at {path}. Check the path, or create the ledger with open_ledger.")
    if not path.parent.is_dir():
        raise LedgerError(
            f"The ledger {path} cannot be created: there is no folder {path.parent}. Check the path, or make it."
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        sync_folder(path.parent)
    except FileExistsError:
        return  # another process made it between the question and the answer
    except OSError as error:
        raise LedgerError(f"The ledger {path} cannot be created ({error.strerror}).") from error


def is_empty(path: Path) -> bool:
    """Whether nothing was ever written to the file, or it is not there."""
    return not path.exists() or path.stat().st_size == 0


def _refuse_emptied(path: Path) -> None:
    """Refuse a file that is empty or gone while a log beside it knows of pages. SQLite would delete the log."""
    if not is_empty(path):
        return
    journal = _head_of(Path(f"{path}-journal"), 20)
    # Bytes 16 to 19 of a journal say how many pages the file had: none, where another process is creating it just now.
    lost = [f"{path}-journal"] if journal.startswith(_JOURNAL) and journal[16:] > bytes(4) else []
    lost += [f"{path}-wal"] if _head_of(Path(f"{path}-wal"), 33)[32:] else []
    if lost:
        raise LedgerError(
            f"The ledger {path} is empty or gone, and {lost[0]} says that it was not. Put the file back beside its log. If "
            "there never was a ledger, delete the log."
        )


def leave_write_ahead_log(path: Path) -> None:
    """Give a ledger that has a write-ahead log a rollback journal instead; all its charges are then in its file.

    The change needs the file to itself. A connection that tries and fails stands in the way of the next one, so each try has
    its own, and the tries of several processes fall out of step.
    """
    give_up_at = time.monotonic() + BUSY_SECONDS
    while _head_of(path, 20)[18:] == b"\x02\x02" and os.access(path, os.W_OK):  # the format versions of a file with a log
        try:
            with closing(
                sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous=EXTRA")
                connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up_at:
                raise LedgerError(
                    f"The ledger {path} has a write-ahead log, which this version does not use, and it could not be changed "
                    f"({error}). Close whatever else uses it, and open it again."
                ) from error
            time.sleep(0.01 + 0.04 * secrets.randbelow(1000) / 1000)
        except sqlite3.DatabaseError:
            return  # not a database: opening it says so


def _head_of(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def sync_folder(folder: Path) -> None:
    """Make the new name durable: a ledger lost with its folder's cache would come back with its budget whole."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sqlite_engine(url: URL, pool: type[Pool] = QueuePool, **options: int) -> Engine:
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(url, poolclass=pool, hide_parameters=True, connect_args=arguments, **options)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@cache
def _memory_engine() -> Engine:
    """One engine for all ledgers in memory, whose statements are compiled once; every connection is a database."""
    return _sqlite_engine(URL.create("sqlite"), NullPool)


@cache
def _empty_in_memory() -> Connection:
    """An empty ledger to copy: making its tables anew would take twenty times as long."""
    connection = _memory_engine().connect()
    with connection.begin():
        make_tables(connection)
    return connection


_COPYING = threading.Lock()


def connect_in_memory() -> Connection:
    """A connection to an empty ledger of its own, which ends with it. It serves one thread at a time."""
    connection = _memory_engine().connect()
    with _COPYING:
        driver_connection(_empty_in_memory()).backup(driver_connection(connection))
    return connection


def make_tables(connection: Connection) -> None:
    """Make every table of a ledger where there is none."""
    METADATA.create_all(connection)
    connection.execute(insert(TABLES[FormatRow]).values(version=FORMAT_VERSION))


def driver_connection(connection: Connection) -> sqlite3.Connection:
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


def copy_file(
    connection: Connection, source: Path, destination: Path, walk: Callable[[Path], Verification], *, overwrite: bool
) -> Verification:
    """Copy the database behind ``connection`` to ``destination``, which must verify.

    Parameters
    ----------
    connection : Connection
        Open for reading, on the ledger.
    source : Path
        The ledger's file: it is no destination.
    destination : Path
        The file to write.
    walk : callable
        Verifies a copy.
    overwrite : bool
        Whether a file that is there is replaced.
    """
    destination = destination.expanduser().absolute()
    if destination.exists() and destination.samefile(source):
        raise LedgerError(f"The backup would replace the ledger {source} itself; name another file.")
    if destination.exists() and not (overwrite and destination.is_file()):
        raise LedgerError(
            f"There is something at {destination} already. Name another file, or allow that a file is replaced: "
            "overwrite=True, or --overwrite."
        )
    if not destination.parent.is_dir():
        raise LedgerError(f"The backup {destination} cannot be written: there is no folder {destination.parent}.")
    try:
        handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.", suffix=".tmp")
        os.close(handle)
    except OSError as error:
        raise LedgerError(f"The backup {destination} cannot be written ({error.strerror}).") from error
    copy = Path(name)
    try:
        _copy_pages(connection, copy)
        found = walk(copy)
        if not found.ok:
            raise LedgerError(
                f"The ledger {source} does not hold, so no backup was written: {found.problems[0]} Run `vitrail ledger "
                "verify` for the full list."
            )
        copy.replace(destination)
        sync_folder(destination.parent)
    except OSError as error:
        raise LedgerError(f"The backup {destination} cannot be written ({error.strerror}).") from error
    finally:
        copy.unlink(missing_ok=True)
    return found


def _copy_pages(connection: Connection, copy: Path) -> None:
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as target:
            target.execute("PRAGMA synchronous=EXTRA")
            driver_connection(connection).backup(target)
    except sqlite3.Error as error:
        raise LedgerError(f"The backup {copy} cannot be written ({error}).") from error
