"""The face of a ledger. ``SqlLedger`` is the one implementation; a wrapper around it may have the same face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..accounting import Cost, Event, JsonValue
from ..guarantee import Budget, Neighbours
from .entries import Part
from .results import Account, Charge, Replay, Reservation, Statement, Verification


@runtime_checkable
class Ledger(Protocol):
    """Who spent what. Charge, then look; nothing that was charged is ever refunded."""

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
        """Set aside the price of a whole recipe, durably, of the account and of the analyst's cap.

        It counts as spent at once. What was booked under the recipe before is not set aside again, of a finished recipe
        nothing (of the cap: what this analyst has not seen). An open reservation of this analyst for the recipe and part is
        returned as it stands: the recipe is resumed.

        Parameters
        ----------
        account : str
            Who pays.
        analyst : str
            Who asks.
        cost : Cost
            The price of the whole recipe.
        recipe : str or None
            A hex digest that names the recipe, or None for one that can never be resumed.
        question : Mapping
            A small public description, for the bill; its ``label`` names the reservation.
        part : Part, optional
            The part of the rows that the recipe reads, if not all.

        Raises
        ------
        BudgetExceeded
            If the account or the analyst's cap does not allow it. Nothing was reserved.
        """
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

        Only when this returns a :class:`Charge` may noise be drawn and rows be read. Whatever it raises, do not look. A key
        that was charged before, and whose answer is not stored, gives that charge again: nothing of it has left the vault,
        so the answer may be computed anew, and :meth:`store` says which one counts.

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
        reservation : Reservation, optional
            What pays, if not the account as it stands. A stored answer is then handed out even if the event differs: the
            stored question is authoritative.

        Raises
        ------
        BudgetExceeded
            If the account or the analyst's cap does not allow it. Nothing was charged; a cheaper question may fit.
        LedgerRolledBack
            If the account is known to have come further than this ledger says: replays are refused then, too.
        LedgerError
            If there is no such account; if the key belongs to a question with another event (not stored: a cheaper one) or
            to another part; if the reservation does not hold the price, or was finished or freed.
        """
        ...

    def store(self, charge: Charge, release: bytes) -> bytes:
        """Bind a release to the charge that paid for it, unless one is bound already.

        Returns
        -------
        bytes
            What is stored, and must be delivered: ``release``, or what somebody with the same charge stored before.

        Raises
        ------
        LedgerError
            If it cannot be stored. The charge stands and the rows were read; the answer must not be handed out.
        """
        ...

    def has_begun(self, account: str, *, recipe: str) -> bool:
        """Whether anything was ever set aside for a recipe of this name."""
        ...

    def finish(self, reservation: Reservation) -> Cost:
        """Mark the recipe as complete and give back what it did not book, which is returned. A second time: nothing."""
        ...

    def free(self, account: str, seq: int) -> Cost:
        """Give back what a reservation has not booked: for the owner, when a recipe died and will not be resumed.

        Parameters
        ----------
        account : str
            The account.
        seq : int
            The number of the ``reserved`` entry, as in ``statement(account).reservations``.

        Returns
        -------
        Cost
            What the account has back.

        Raises
        ------
        LedgerError
            If there is no such reservation, or it was finished or freed before.
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
