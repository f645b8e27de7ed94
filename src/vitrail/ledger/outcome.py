"""What an error says about the charge and the rows, said by whoever knows.

A ledger writes at three moments: when it charges, which is before a row is read; when it stores an answer, which is after;
and when it does neither. The code that finds something wrong (a chain that was cut, a disk that is full) does not know the
moment, so it says only what it found, and the operation adds how things stand. A sentence about rows in shared code would be
false at one of the moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import LedgerError
from .results import Charge

NOTHING_CHARGED = "Nothing was charged."
CHARGE_UNSURE = (
    "No row was read for this question. Whether its charge was recorded before the failure, the bill says (`vitrail "
    "budget`); a charge is never refunded."
)


class TransactionFailed(LedgerError):
    """The database did not complete a transaction. It may fail at the very commit, so what was written is not certain."""


def answer_lost(charge: Charge) -> str:
    """How things stand when an answer cannot be stored."""
    return (
        f"Charge {charge.seq} of account {charge.account!r} stands, and the rows were read for it; the answer was not "
        "stored and is not handed out. Nothing is refunded: repair the ledger or its disk, then ask again: a new charge."
    )


@contextmanager
def outcome(refused: str, *, unsure: str | None = None) -> Iterator[None]:
    """Add to a ledger's error how things stand.

    Parameters
    ----------
    refused : str
        What holds when the operation was refused and nothing of it was written.
    unsure : str, optional
        What holds when the database failed, perhaps at the commit; ``refused`` if not given.

    Examples
    --------
    >>> with outcome(NOTHING_CHARGED):
    ...     raise LedgerError("The chain does not hold.")
    Traceback (most recent call last):
        ...
    vitrail.errors.LedgerError: The chain does not hold. Nothing was charged.
    """
    try:
        yield
    except LedgerError as error:
        said = unsure if unsure is not None and isinstance(error, TransactionFailed) else refused
        error.args = (f"{error} {said}",)
        raise
