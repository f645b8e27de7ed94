"""A budget that nobody writes down: what is said about it, and where it is refused."""

from __future__ import annotations

from ..errors import LedgerError
from .high_water import HighWaterMarks, state_folder
from .once import warn_once


def check_forgetful(account: str, data: str | None) -> None:
    """Say, once, that data without ``ledger=`` has a new budget in every process; refuse rows that are known to have one.

    Whoever writes ``ledger="memory"`` has decided it and is not asked.
    """
    for mark in HighWaterMarks(state_folder()).known(account, None, data):
        raise LedgerError(
            f"The rows in {data} have an account {account!r} in the ledger {mark.ledger}, and no ledger was named; without "
            "one they would have a second budget. Give that one as ledger=, or ledger='memory' for a budget that is "
            "forgotten when this process ends. Nothing was charged."
        )
    warn_once(
        "forgetful",
        "This data has no ledger, so what is spent is forgotten when this process ends, and the next one has the whole "
        "budget again. Keep it in a file: ledger='sqlite:///ledger.db'. If it may be forgotten, say so: ledger='memory'.",
    )
