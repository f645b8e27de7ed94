"""The file of a SQLite ledger: made for its owner only, never one that was emptied, and copied as a whole."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import LedgerError

BUSY_SECONDS = 60.0
"""How long a connection waits for another's write before it gives up."""

_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # how a rollback journal begins


def make_file(path: Path, *, must_exist: bool) -> None:
    """Create the file of a SQLite ledger, readable by its owner only, unless it is there."""
    if path.exists() and not path.is_file():
        raise LedgerError(f"The ledger {path} is not a file.")
    _refuse_emptied(path)
    if b"\x02" in _head_of(path, 20)[18:]:  # the format versions of a database with such a log
        raise LedgerError(
            f"The ledger {path} has a write-ahead log, and a plain copy of it would lack charges; ledgers are kept without. "
            f"Close whatever else uses it, run `sqlite3 {path} 'PRAGMA journal_mode=DELETE'`, and open it again."
        )
    if path.exists():
        return
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


def _head_of(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def _sync_folder(folder: Path) -> None:
    """Make the new name durable: a ledger lost with its folder's cache would come back with its budget whole."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def copied_to(destination: Path, connection: sqlite3.Connection, source: Path, *, overwrite: bool) -> Iterator[Path]:
    """A copy of the database behind ``connection``, which gets its name if the block, which may verify it, ends well.

    Parameters
    ----------
    destination : Path
        The file to write.
    connection : sqlite3.Connection
        Open for reading, on the ledger.
    source : Path
        The ledger's file: it is no destination.
    overwrite : bool
        Whether a file that is there is replaced.
    """
    if destination.exists() and destination.samefile(source):
        raise LedgerError(f"The backup would replace the ledger {source} itself; name another file.")
    if destination.exists() and not (overwrite and destination.is_file()):
        raise LedgerError(
            f"There is something at {destination} already. Name another file, or allow that a file is replaced: "
            "overwrite=True, or --overwrite."
        )
    if not destination.parent.is_dir():
        raise LedgerError(f"The backup {destination} cannot be written: there is no folder {destination.parent}.")
    copy = destination
    try:
        handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.", suffix=".tmp")
        copy = Path(name)
        os.close(handle)
        with closing(sqlite3.connect(copy, isolation_level=None)) as target:
            target.execute("PRAGMA synchronous=EXTRA")
            connection.backup(target)
        yield copy
        copy.replace(destination)
        _sync_folder(destination.parent)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise LedgerError(f"The backup {destination} cannot be written ({reason}).") from error
    finally:
        if copy != destination:
            copy.unlink(missing_ok=True)
