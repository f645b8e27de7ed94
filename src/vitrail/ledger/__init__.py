"""Who spent what: an append-only, hash-chained bill, in memory or in a database. Charge, then look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from .entries import Entry, Part
from .results import Charge, Replay, Reservation, Verification, VerifiedAccount
from .statement import AnalystLine, PartLine, ReservationLine, Statement

if TYPE_CHECKING:
    from .sql import SqlLedger

__all__ = [
    "AnalystLine",
    "Charge",
    "Entry",
    "Part",
    "PartLine",
    "Replay",
    "Reservation",
    "ReservationLine",
    "SqlLedger",
    "Statement",
    "Verification",
    "VerifiedAccount",
    "open_ledger",
]

FILE_ENDINGS = (".db", ".sqlite", ".sqlite3")
"""How the name of a ledger file ends."""


def open_ledger(where: str | Path | SqlLedger | None) -> SqlLedger:
    """Open a ledger, and create it if there is none.

    Parameters
    ----------
    where : str, Path, SqlLedger or None
        ``None`` or ``"memory"``: one that ends with this process. A path that ends in ``.db``, ``.sqlite`` or
        ``.sqlite3``, or ``"sqlite:///..."``: a file. ``"postgresql+psycopg://..."``: a database. A ledger: itself.

    Examples
    --------
    >>> open_ledger("memory")
    SqlLedger('memory')
    >>> open_ledger("ledger.txt")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: the ledger is 'ledger.txt'; give "memory", a path ending in .db, .sqlite or .sqlite3, or a \
URL such as 'sqlite:///ledger.db'
    """
    from .sql import SqlLedger

    if isinstance(where, SqlLedger):
        return where
    where = "memory" if where is None else where
    if not isinstance(where, str | Path):
        raise InvalidInput(f"the ledger is a {type(where).__name__}; give a path, a URL, a ledger, or None for memory")
    is_address = isinstance(where, str) and (where == "memory" or "://" in where)
    if not is_address and Path(where).suffix not in FILE_ENDINGS:
        raise InvalidInput(
            f'the ledger is {str(where)!r}; give "memory", a path ending in {", ".join(FILE_ENDINGS[:-1])} or '
            f"{FILE_ENDINGS[-1]}, or a URL such as 'sqlite:///ledger.db'"
        )
    return SqlLedger(where if is_address else Path(where))


def __getattr__(name: str) -> object:
    """Import the ledger itself when it is asked for: the values that it hands out need no SQLAlchemy."""
    if name == "SqlLedger":
        from .sql import SqlLedger

        return SqlLedger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
