"""Bring a ledger's database to what this version knows: steps forward, in one transaction, rows and chain untouched.

A ledger that no service has seen yet says by its tables where it stands. Whoever upgrades holds the lock that the ledger is
made under, so two servers that start at once make each table once. A database that a newer version wrote is refused: going
back is going back to a copy (``vitrail serve backup``).
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql

from ...errors import LedgerError, VitrailError
from ...ledger.database import lock_creation

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ...ledger.database import Database

VERSION_TABLE = "vitrail_serve_revision"
"""Where the database says which steps it has had."""
_STEPS = Path(__file__).parent / "migrations"
_LEDGER = "vitrail_entries"
_INDEX = "vitrail_reservations", "vitrail_reservations_open"
_SERVICE = tuple(f"vitrail_serve_{name}" for name in ("tokens", "sessions", "jobs", "panes"))
_ONE_AT_A_TIME = threading.Lock()  # Alembic's op is one for the process


def upgrade(database: Database) -> list[str]:
    """Take every step that the database has not had.

    Parameters
    ----------
    database : Database
        The ledger's own (``ledger.database``), which is there: ``open_ledger`` makes one.

    Returns
    -------
    list of str
        The steps that were taken, oldest first; empty where there was nothing to do.

    Raises
    ------
    LedgerError
        If a newer version wrote the database, or some of the service's tables are missing.

    Examples
    --------
    >>> from vitrail.ledger import open_ledger
    >>> database = open_ledger("memory").database
    >>> upgrade(database), upgrade(database), revision(database)
    (['0003'], [], '0003')
    """
    if revision(database) == head():
        return []  # a reader's look: a server that starts beside others waits for nobody
    with _ONE_AT_A_TIME, database.transaction(read_only=False) as connection:
        lock_creation(connection)
        before = _recorded(connection)
        _refuse_unknown(before, database.where)
        if before is None:
            before = _found(connection, database.where)
            _context(connection).stamp(_scripts(), before or "base")
        take_steps(connection, head())
    return [step for step in steps() if before is None or step > before]


def revision(database: Database) -> str | None:
    """The last step that the database says it has had; None where no service has been."""
    with database.transaction(read_only=True) as connection:
        return _recorded(connection)


def check_known(database: Database) -> None:
    """Refuse a database that a newer version wrote, without writing to it."""
    _refuse_unknown(revision(database), database.where)


def take_steps(connection: Connection, last: str) -> None:
    """Take the steps up to ``last`` that the database does not say it has had, in the connection's transaction."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationStep

    def to_take(now: tuple[str, ...], _: object) -> list[Any]:
        newest_first = _scripts().iterate_revisions(last, now or "base", implicit_base=True)
        return [MigrationStep.upgrade_from_script(_scripts().revision_map, step) for step in reversed([*newest_first])]

    context = _context(connection, fn=to_take)
    with Operations.context(context):
        context.run_migrations()


@cache
def steps() -> tuple[str, ...]:
    """Every step that this version knows, oldest first."""
    return tuple(reversed([str(step.revision) for step in _scripts().walk_revisions()]))


def head() -> str:
    """The newest step that this version knows."""
    return steps()[-1]


@cache
def _scripts() -> Any:
    """The files of the steps, as Alembic reads them: without a configuration file, and without an ``env.py``."""
    try:
        from alembic.script import ScriptDirectory
    except ImportError as error:
        raise VitrailError(
            "the service keeps its tables with alembic, which is not installed: pip install 'vitrail[serve]'"
        ) from error
    return ScriptDirectory(str(_STEPS))


def _context(connection: Connection, **options: object) -> Any:
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, **options})


def _recorded(connection: Connection) -> str | None:
    if not sql.inspect(connection).has_table(VERSION_TABLE):
        return None
    table = sql.table(VERSION_TABLE, sql.column("version_num"))
    found = connection.execute(sql.select(table.c.version_num)).scalars().all()
    return None if not found else str(max(found))


def _found(connection: Connection, where: str) -> str | None:
    """The step at which a database stands that does not say so itself, by what is in it."""
    inspector = sql.inspect(connection)
    if not inspector.has_table(_LEDGER):
        return None
    there = [name for name in _SERVICE if inspector.has_table(name)]
    if there and len(there) < len(_SERVICE):
        missing = ", ".join(name for name in _SERVICE if name not in there)
        raise LedgerError(
            f"The database {where} has {there[0]} and lacks {missing}: tables of the service were removed. Go back to a "
            "copy that has all of them."
        )
    if there:
        return "0003"
    return "0002" if inspector.has_index(*_INDEX) else "0001"


def _refuse_unknown(found: str | None, where: str) -> None:
    if found is not None and found not in steps():
        raise LedgerError(
            f"The database {where} is at step {found!r}, and this version of vitrail knows steps up to {head()!r}: a newer "
            "version wrote it. Start that version, or go back to a copy that was made before."
        )
