"""The face of a ledger, whatever keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..accounting import Cost, Event, JsonValue
from ..guarantee import Budget, Neighbours
from .parts import Part
from .results import Account, Charge, Replay, Reservation, Statement, Verification


@runtime_checkable
class Ledger(Protocol):
    """Who spent what. Charge, then look; nothing is ever refunded."""

    def open_account(self, account: str, budget: Budget, neighbours: Neighbours, *, data: str | None = None) -> Account:
        """Create the account, or return it as it was opened.

        Parameters
        ----------
        account : str
            Its name.
        budget : Budget
            The most it may ever spend.
        neighbours : {"add-remove", "replace-one"}
            The neighbour relation.
        data : str, optional
            Where the rows are, if they are in files: a ledger that keeps a record outside itself then notices when an older
            copy, or an empty one, is opened for the same rows.

        Raises
        ------
        LedgerRolledBack
            If the account is known to have come further than this ledger says.
        LedgerError
            If it was opened with another budget or neighbour relation.
        """
        ...

    def cap_analyst(self, account: str, analyst: str, budget: Budget) -> None:
        """Cap what one analyst may learn. A later cap, higher or lower, replaces it."""
        ...

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
        """Pay for a question, durably, or get the answer that was stored under its key.

        Only when this returns a :class:`Charge` may noise be drawn and rows be read. Whatever it raises, do not look.

        Parameters
        ----------
        account : str
            Who pays.
        analyst : str
            Who asks.
        event : Event
            What will happen; its price is computed here.
        question : Mapping
            A small public description (the kind of question, sizes), for the bill.
        key : str or None
            A hex digest of everything public that makes this question the same as another, or None for a question
            that is always new.
        part : Part, optional
            The part of the rows that the question reads, if not all. Of each partition, the account pays the dearest part.

        Raises
        ------
        BudgetExceeded
            If the account or the analyst's cap does not allow it. Nothing was charged; a cheaper question may fit.
        LedgerRolledBack
            If the account is known to have come further than this ledger says: replays are refused then, too.
        LedgerError
            If there is no such account, or the key belongs to a question with another event or to another part.
        """
        ...

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
        ...

    def has_begun(self, account: str, *, recipe: str) -> bool:
        """Whether this recipe was begun (interim: never known)."""
        ...

    def finish(self, reservation: Reservation) -> Cost:
        """Give back what was not booked (interim: nothing was set aside)."""
        ...

    def store(self, charge: Charge, release: bytes) -> None:
        """Bind a release to the charge that paid for it, so that it can be replayed.

        Raises
        ------
        LedgerError
            If it cannot be stored. The charge stands and the rows were read; only the answer is lost.
        """
        ...

    def keep(self, account: str, *, analyst: str, name: str, content: bytes) -> None:
        """Keep what an analyst made from releases alone, under a name, free. The latest content under a name holds."""
        ...

    def kept(self, account: str, *, analyst: str, name: str) -> bytes | None:
        """What that analyst keeps under ``name``; None where there is nothing."""
        ...

    def statement(self, account: str) -> Statement:
        """The account's state and its bill."""
        ...

    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts, sorted."""
        ...

    def verify(self, published: Mapping[str, str] | None = None) -> Verification:
        """Walk every chain, price every event afresh, and name what does not hold. Never raises for a damaged ledger.

        Parameters
        ----------
        published : mapping of str to str, optional
            Heads that were published earlier, by account; the history must still pass through them.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
