"""The ledger: who spent what, in SQLite (in memory or a file) or PostgreSQL, through the same code.

Safe for many threads and processes, for kill -9 at any moment, and after a fork. Every method is one transaction over a
:class:`~vitrail.ledger.book.Book`; how connections keep their promise is in ``database``, how an older copy is noticed in
``high_water``.

*Charge, then look.* ``charge`` reads the running totals, decides, appends the entry and writes the new totals, all in one
transaction; the caller gets its receipt only after the commit. A crash before the commit charged nothing and nothing was
read; a crash after it costs budget and never privacy, because nothing that was charged is ever refunded.

*The filter.* The account is locked while a charge is decided, so any number of processes that ask at once are served as
if one after the other, and the sum of granted costs never passes the capacity: the condition of the filter theorem
(Smith & Thakurta 2022), whoever chooses the questions and however they depend on earlier answers.

*What an error says.* A ledger writes before a row is read (charges, reservations), after (answers), and when neither
matters. The code that finds something wrong (a chain that was cut, a disk that is full) does not know the moment, so it says
only what it found, and the method adds how things stand. A sentence about rows in shared code would be false at some moment.

*Kept work.* What an analyst computed from releases is kept free, under a name, its digest in the chain. It is per analyst:
what one analyst was told counts against that analyst's cap, so no other may read it for free.

*In memory.* The ledger ends with its process. A copy of it would have the whole budget again, so it refuses to be pickled,
copied, or used by a forked child.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from sqlalchemy.exc import IntegrityError

from ..accounting import Cost, Event, JsonValue, event_to_json
from ..accounting.guarantee import Budget
from ..accounting.neighbours import Neighbours, check_neighbours
from ..errors import InvalidInput, LedgerError
from . import entries, operations
from .book import Book
from .database import Database, TransactionFailed
from .entries import GENESIS, LARGEST_KEPT, Part, RawEntry, content_to_json, cost_to_json, price
from .high_water import HighWater, HighWaterMarks, refuse_older_copy, state_folder
from .operations import account_asked, analyst_row, spend, spend_of_cap
from .results import Charge, Replay, Reservation, Verification
from .statement import Statement
from .tables import AccountRow, ChargeRow, KeptRow, ReleaseRow, ReservationRow, SightingRow
from .verification import verify

NOTHING_CHARGED = "Nothing was charged."
CHARGE_UNSURE = (
    "No row was read for this question. Whether its charge was recorded before the failure, the bill says (`vitrail "
    "budget`); a charge is never refunded."
)
NOTHING_RESERVED = "Nothing was reserved."
RESERVATION_UNSURE = (
    "No row was read for it. Whether it was reserved before the failure, `vitrail ledger reservations` says; asking again "
    "goes on with the reservation that is open, and the owner may free it."
)
NOTHING_FREED = "Nothing was freed."
STILL_HELD = "What the recipe did not book may still be reserved: `vitrail ledger reservations` says so."


class SqlLedger:
    """Who spent what. Charge, then look; nothing that was charged is ever refunded.

    Parameters
    ----------
    where : str or Path
        ``"memory"``, a file's path, or a URL such as ``"sqlite:///ledger.db"`` or
        ``"postgresql+psycopg://user@host/database"``.
    must_exist : bool
        Refuse to create a ledger where there is none.

    Examples
    --------
    >>> from vitrail.accounting import GaussianSum
    >>> ledger = SqlLedger("memory")
    >>> ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    >>> question = {"analyst": "alice", "event": GaussianSum(1.0, 10.0), "question": {}, "key": "00ff" * 16}
    >>> charge = ledger.charge("adult", **question)
    >>> ledger.store(charge, b"42")
    b'42'
    >>> ledger.charge("adult", **question).release
    b'42'
    >>> round(ledger.statement("adult").spent_epsilon, 2), ledger.verify().ok
    (0.4, True)
    """

    def __init__(self, where: str | Path = "memory", *, must_exist: bool = False) -> None:
        self._database = Database(where, must_exist=must_exist)
        self._marks = HighWaterMarks(state_folder(), wanted=not self._database.in_memory)
        self._openings: dict[str, str] = {}  # account to the digest of its first entry, by which its record is found

    def open_account(self, account: str, budget: Budget, neighbours: Neighbours, *, data: str | None = None) -> None:
        """Create the account, unless it was opened so before.

        Parameters
        ----------
        account : str
            Its name.
        budget : Budget
            The most it may ever spend.
        neighbours : str
            The neighbour relation, and with it the unit of the promise (``accounting.neighbours``).
        data : str, optional
            Where the rows are, if they are in files: the record outside the ledger then notices when an older copy, or an
            empty one, is opened for the same rows.

        Raises
        ------
        LedgerRolledBack
            If the account is known to have come further than this ledger says.
        LedgerError
            If it was opened with another budget or neighbour relation.
        """
        entries.check_name(account, "an account")
        entries.check_budget(budget)
        check_neighbours(neighbours)
        try:
            self._open_account(account, budget, neighbours, data)
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            # PostgreSQL: an account that does not exist cannot be locked, and another process has just opened it.
            self._open_account(account, budget, neighbours, data)

    def _open_account(self, account: str, budget: Budget, neighbours: Neighbours, data: str | None) -> None:
        known = self._marks.known(account, self._database.address, data)
        with self._writing(account, NOTHING_CHARGED, data=data) as book:
            for mark in known:
                self._refuse_older_copy(book, mark)
            row = book.account(account)
            if row is None:
                row = AccountRow(account, budget, neighbours, budget.capacity(), Cost(), 0, 0, GENESIS)
                row = book.append(row, "opened", {"neighbours": neighbours, **_cap_body(budget)})
            elif (row.budget, row.neighbours) != (budget, neighbours):
                raise LedgerError(
                    f"Account {account!r} was opened with {row.budget} and neighbours {row.neighbours!r}; now it is asked "
                    f"for with {budget} and neighbours {neighbours!r}. A budget never changes once it is set: use the first "
                    "values, or, if these are other rows, another account name. (Two accounts over the same rows add up; "
                    "the ledger cannot see it.)"
                )
            book.spending = row  # an account that was there is recorded, too, if it comes from elsewhere

    def cap_analyst(self, account: str, analyst: str, budget: Budget) -> None:
        """Cap what one analyst may learn. A later cap, higher or lower, replaces it."""
        entries.check_name(analyst, "an analyst")
        entries.check_budget(budget)
        with self._writing(account, NOTHING_CHARGED) as book:
            book.append(book.locked(account), "capped", {"analyst": analyst, **_cap_body(budget)})
            book.put(replace(analyst_row(book, account, analyst), cap=budget, capacity=budget.capacity()))

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
        account, analyst, part
            As for :meth:`charge`.
        cost : Cost
            The price of the whole recipe.
        recipe : str or None
            A hex digest that names the recipe, or None for one that can never be resumed.
        question : Mapping
            A small public description, for the bill; its ``label`` names the reservation.

        Raises
        ------
        BudgetExceeded
            If the account or the analyst's cap does not allow it. Nothing was reserved.
        """
        entries.check_digest(recipe, "recipe")
        entries.check_cost(cost)
        with self._writing(account, NOTHING_RESERVED, unsure=RESERVATION_UNSURE) as book:
            row = account_asked(book, account, analyst, question, part)
            wanted = operations.still_wanted(book, Reservation(account, 0, analyst, recipe, part, cost, cost, ""))
            if wanted.seq or wanted.cost == wanted.counted == Cost():
                return wanted
            return operations.make_reservation(book, row, wanted, question)

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
        booked: Cost | None = None,
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
        booked : Cost, optional
            What is booked against the reservation, at least the event's price, which it is if not given. A step that is
            computed again may have an event that differs in its last bit, and must still cost no more than was booked.

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
        entries.check_digest(key, "key")
        cost = price(event)
        with self._writing(account, NOTHING_CHARGED, unsure=CHARGE_UNSURE) as book:
            row = account_asked(book, account, analyst, question, part)
            held = None if reservation is None else operations.known_reservation(book, reservation, account, analyst, part)
            if key is not None and (earlier := book.get(ChargeRow, account=account, key=key)) is not None:
                return operations.again(book, row, analyst, earlier, event, part, held, as_stored=reservation is not None)
            if reservation is None:
                row = spend(book, row, cost, part, row.budget.question_delta)
                spend_of_cap(book, row, analyst, cost, part)
            else:
                if booked is not None and not cost <= booked:
                    raise InvalidInput(f"the question costs {cost}, and {booked} is booked for it; book what it costs")
                cost = cost if booked is None else booked
                if not operations.take(book, held, cost):
                    raise operations.overdrawn(reservation, held, cost)
            body: dict[str, JsonValue] = {
                "analyst": analyst,
                "event": event_to_json(event),
                "question": dict(question),
                "cost": cost_to_json(cost),
                "key": key,
                **({} if part is None else {"part": part.to_json()}),
                **({} if held is None else {"reservation": held.reserved_seq}),
            }
            after = book.append(replace(row, n_questions=row.n_questions + 1), "charged", body)
            recipe = None if held is None else held.recipe
            if key is not None or recipe is not None:
                book.add(ChargeRow(account, after.seq, analyst, key, recipe, part, cost))
            return Charge(account, after.seq, cost, after.head)

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
        entries.check_bytes(release, "release")
        account, seq = charge.account, charge.seq
        lost = (
            f"Charge {seq} of account {account!r} stands, and the rows were read for it; the answer was not stored and is "
            "not handed out. Nothing is refunded: repair the ledger or its disk, then ask again. A question with a key is "
            "then answered under the same charge; one without is a new charge."
        )
        with self._writing(account, lost) as book:
            row = book.locked(account)
            charged = book.entry(account, seq, "charged")
            if charged is None or charged.digest != charge.digest:
                raise LedgerError(
                    f"Entry {seq} of account {account!r} is not the charge that this receipt was given for; a release is "
                    "stored in the ledger that charged for it."
                )
            if (stored := book.get(ReleaseRow, account=account, charge_seq=seq)) is not None:
                return operations.checked_content(book, stored)
            after = book.append(row, "released", {"of": seq, **content_to_json(release)})
            key = charged.body["key"]
            book.add(ReleaseRow(account, seq, after.seq, None if key is None else str(key), release))
            book.add(SightingRow(account, seq, str(charged.analyst)))
        return release

    def has_begun(self, account: str, *, recipe: str) -> bool:
        """Whether anything was ever set aside for a recipe of this name."""
        with self._database.reading() as book:
            return bool(book.rows(ReservationRow, account=account, recipe=recipe))

    def is_stored(self, account: str, *, key: str) -> bool:
        """Whether the answer of a question of this name is there, so that nobody has to look at rows for it."""
        with self._database.reading() as book:
            charges = book.rows(ChargeRow, account=account, key=key)
            return any(book.get(ReleaseRow, account=account, charge_seq=charge.charge_seq) for charge in charges)

    def finish(self, reservation: Reservation) -> Cost:
        """Mark the recipe as complete and give back what it did not book, which is returned. A second time: nothing."""
        with self._writing(reservation.account, STILL_HELD) as book:
            row = book.locked(reservation.account)
            held = operations.reservation_row(book, reservation)
            if held is None or held.state == "finished":
                return Cost()
            return operations.close_reservation(book, row, held, "finished")

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
        with self._writing(account, NOTHING_FREED, unsure=STILL_HELD) as book:
            row = book.locked(account)
            held = book.get(ReservationRow, account=account, reserved_seq=seq)
            if held is None:
                listed = ", ".join(str(known.reserved_seq) for known in book.open_reservations(account)) or "none"
                raise LedgerError(f"Entry {seq} of account {account!r} is no reservation; open are {listed}.")
            if held.state != "open":
                raise LedgerError(
                    f"Reservation {seq} of account {account!r} was {held.state} already; it holds nothing any more."
                )
            return operations.close_reservation(book, row, held, "freed")

    def keep(self, account: str, *, analyst: str, name: str, content: bytes) -> None:
        """Keep what an analyst made from releases alone, under a name, free. The latest content under a name holds."""
        entries.check_name(analyst, "an analyst")
        entries.check_name(name, "something to keep")
        entries.check_bytes(content, "content to keep", LARGEST_KEPT)
        with self._writing(account, NOTHING_CHARGED) as book:
            body: dict[str, JsonValue] = {"analyst": analyst, "name": name, **content_to_json(content)}
            after = book.append(book.locked(account), "kept", body)
            book.put(KeptRow(account, analyst, name, after.seq, content))

    def kept(self, account: str, *, analyst: str, name: str) -> bytes | None:
        """What that analyst keeps under ``name``; None where there is nothing."""
        entries.check_name(analyst, "an analyst")
        entries.check_name(name, "something that is kept")
        with self._database.reading() as book:
            book.locked(account)
            row = book.get(KeptRow, account=account, analyst=analyst, name=name)
            return None if row is None else operations.checked_content(book, row)

    def statement(self, account: str) -> Statement:
        """The account's state, at a price that does not depend on how many entries there are.

        Totals are those that every charge keeps, and the last entry is checked to be the head. Entries, and with them the
        bill's lines, are read when the statement is asked for them; they are checked then, and must lead to that head
        (``chain``). So a damaged entry is found by who reads it, and by :meth:`verify`, which is who adds up afresh.
        """
        with self._database.reading() as book:
            return operations.statement(book, account, partial(self._database.entries, account))

    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts, sorted."""
        with self._database.reading() as book:
            return book.names()

    def verify(self, published: Mapping[str, str] | None = None) -> Verification:
        """Walk every chain, price every event afresh, and name what does not hold. Never raises for a damaged ledger.

        Parameters
        ----------
        published : mapping of str to str, optional
            Heads that were published earlier, by account; the history must still pass through them.
        """
        self._database.check_usable()
        try:
            records = self._marks.all()  # before the chain: a record never leads
            with self._database.reading() as book:
                return verify(book, published, records=records, ledger=self._database.address)
        except LedgerError as error:
            return Verification((str(error),), ())

    def backup(self, destination: str | Path, *, overwrite: bool = False) -> Verification:
        """Copy the ledger as it stands between two transactions to another file, also while others use it.

        The copy is walked before it gets its name. It is a ledger like any other: as long as this one goes on, the record
        that the user keeps outside (``high_water``) tells that the copy is older, and it cannot be spent from.

        Parameters
        ----------
        destination : str or Path
            The file to write, readable by its owner only.
        overwrite : bool
            Whether a file that is there is replaced.

        Returns
        -------
        Verification
            What the walk over the copy found.

        Raises
        ------
        LedgerError
            If the file is there, cannot be written, or the copy does not verify. Then nothing was replaced.
        """
        return self._database.backup(Path(destination), overwrite=overwrite)

    @property
    def database(self) -> Database:
        """Where it is kept; a service keeps its own tables beside."""
        return self._database

    def close(self) -> None:
        """Close the connections. The ledger stays where it is; what was in memory is gone."""
        self._database.close()

    @contextmanager
    def _writing(self, account: str, refused: str, *, unsure: str | None = None, data: str | None = None) -> Iterator[Book]:
        """A transaction on an account that no record contradicts. Its own record follows the commit.

        Parameters
        ----------
        account : str
            The account.
        refused : str
            Said after an error of the ledger: what holds when nothing was written.
        unsure : str, optional
            Said instead when the database failed, perhaps at the commit; ``refused`` if not given.
        data : str, optional
            Where the account's rows are, for its record.
        """
        try:
            with self._database.writing() as book:
                opening = self._opening(book, account)
                if opening is not None and (mark := self._marks.of(opening)) is not None:
                    self._refuse_older_copy(book, mark)
                yield book
        except LedgerError as error:
            error.args = (f"{error} {unsure if unsure and isinstance(error, TransactionFailed) else refused}",)
            raise
        if (row := book.spending) is not None:  # committed
            if opening is None and row.seq == 1:
                opening = self._openings[account] = row.head
            if opening is not None:  # else the first entry was removed, which verify names
                state = row.account, opening, row.seq, row.head, row.spent, row.budget.question_delta
                self._marks.keep(HighWater(*state, self._database.address, () if data is None else (data,)))

    def _refuse_older_copy(self, book: Book, mark: HighWater) -> None:
        refuse_older_copy(book, mark, self._database.where, self._marks.file(mark.opening))

    def _opening(self, book: Book, account: str) -> str | None:
        """The digest of the account's first entry. Read once: a ledger in this one's place is found by this one's record."""
        if account not in self._openings and (first := book.get(RawEntry, account=account, seq=1)) is not None:
            self._openings[account] = first.digest
        return self._openings.get(account)

    def __reduce__(self) -> NoReturn:
        raise LedgerError("A ledger cannot be copied or pickled. Open it by its address where it is needed.")

    def __repr__(self) -> str:
        return f"SqlLedger({self._database.where!r})"


def _cap_body(budget: Budget) -> dict[str, JsonValue]:
    return {"budget": budget.to_json(), "capacity": cost_to_json(budget.capacity())}
