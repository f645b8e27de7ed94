"""A consistent copy of a SQLite ledger, made while others may use it.

SQLite's own backup reads every page under one lock, so that the copy is the file as it stood between two transactions. It is
written beside its destination under another name, brought to the disk, walked, and only then takes the destination's name:
there is never half a backup, nor one that does not verify, where a good one was.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

from ..errors import LedgerError
from .results import Verification
from .sql_engine import sync_folder


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
    original = connection.connection.driver_connection
    assert isinstance(original, sqlite3.Connection)
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as target:
            target.execute("PRAGMA synchronous=EXTRA")
            original.backup(target)
    except sqlite3.Error as error:
        raise LedgerError(f"The backup {copy} cannot be written ({error}).") from error
