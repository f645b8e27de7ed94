"""Reservations: the price of a whole recipe, set aside in one transaction and booked question by question.

*What counts.* A reservation counts as spent when it is made, for the account (by the rule for parts) and for the analyst's
cap. A charge that carries it is booked against what it still holds and moves no total. ``finish`` and ``free`` give back
what it holds at the end.

*Why giving back is sound.* The filter theorem (Smith & Thakurta 2022) asks that the costs of the mechanisms that were run
never add up to more than the capacity, whoever chooses them. At every moment, for every row,

    booked charges that read it  <=  plain charges + all that reservations hold or have booked  =  spent  <=  capacity,

because a charge needs its cost inside the reservation, and a reservation is admitted only under the capacity. What is given
back was never booked, so no mechanism was run for it: the left side is unchanged and the sum stands as if that much had
never been reserved. When to give back is decided outside the vault, from releases, so it is part of the adaptive choice.

*Once, whoever asks.* A recipe is named by a digest. What was booked under it before is not reserved again: its steps are
replayed or joined (``operations``). Of a finished recipe the account reserves nothing, and the analyst's cap what that
analyst has not seen. Tests: tests/ledger/test_ledger_reservations.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from ..accounting import Cost, JsonValue
from ..errors import LedgerError
from .book import Book, corrupted
from .entries import Part, check_cost, check_digest, cost_from_json, cost_to_json
from .results import Reservation
from .tables import AccountRow, ChargeRow, ReservationRow, SightingRow
from .totals import account_asked, analyst_row, give_back, spend


def reserve(
    book: Book,
    account: str,
    analyst: str,
    cost: Cost,
    recipe: str | None,
    question: Mapping[str, JsonValue],
    part: Part | None,
) -> Reservation:
    """Set aside what the recipe may still book, or return the reservation that is open for it."""
    check_digest(recipe, "recipe")
    check_cost(cost)
    row = account_asked(book, account, analyst, question, part)
    held = held_of_cap = cost
    if recipe is not None:
        earlier = [known for known in book.rows(ReservationRow, account=account, recipe=recipe) if known.part == part]
        for known in earlier:
            if known.analyst == analyst and known.state == "open":
                return _receipt(book, known)
        steps = [step for step in book.rows(ChargeRow, account=account, recipe=recipe) if step.part == part]
        booked = sum((step.cost for step in steps), Cost())
        seen = sum((step.cost for step in steps if counts_for(book, step, analyst)), Cost())
        finished = any(known.state == "finished" for known in earlier)
        held = Cost() if finished else booked.left_of(cost)
        held_of_cap = seen.left_of(booked if finished else cost)
    if held == held_of_cap == Cost():
        return Reservation(account, 0, analyst, recipe, part, held, held_of_cap, "")
    delta = row.budget.question_delta
    row = spend(book, row, held, part, delta)
    book.put(spend(book, analyst_row(book, account, analyst), held_of_cap, part, delta))
    body: dict[str, JsonValue] = {
        "analyst": analyst,
        "recipe": recipe,
        "question": dict(question),
        "cost": cost_to_json(held),
        "counted": cost_to_json(held_of_cap),
        **({} if part is None else {"part": part.to_json()}),
    }
    after = book.append(row, "reserved", body)
    book.put(ReservationRow(account, after.seq, analyst, recipe, part, held, held_of_cap))
    return Reservation(account, after.seq, analyst, recipe, part, held, held_of_cap, after.head)


def counts_for(book: Book, charge: ChargeRow, analyst: str) -> bool:
    """Whether the charge counts against that analyst's cap already."""
    where: dict[str, str | int] = {"account": charge.account, "charge_seq": charge.charge_seq, "analyst": analyst}
    return charge.analyst == analyst or book.get(SightingRow, **where) is not None


def known_reservation(
    book: Book, reservation: Reservation, account: str, analyst: str, part: Part | None
) -> ReservationRow | None:
    """The row of a reservation that this ledger gave to this analyst for this part; None where it holds nothing."""
    if (reservation.account, reservation.analyst, reservation.part) != (account, analyst, part):
        raise LedgerError(
            f"The reservation was made in account {reservation.account!r} by analyst {reservation.analyst!r} for "
            f"{reservation.part or 'the whole data'}; the question is for account {account!r}, by {analyst!r}, for "
            f"{part or 'the whole data'}. Charge it without the reservation, or make another."
        )
    return _row_of(book, reservation) if reservation.seq else None


def take(book: Book, held: ReservationRow | None, cost: Cost, *, of_cap_only: bool = False) -> bool:
    """Book ``cost`` against what the reservation holds; False where it does not hold that much, and nothing is written."""
    after = None if held is None else held.less(cost, of_cap_only=of_cap_only)
    if after is None:
        return False
    book.put(after)
    return True


def overdrawn(reservation: Reservation, row: ReservationRow | None, cost: Cost) -> LedgerError:
    """Why a charge cannot be booked, in a sentence."""
    if row is not None and row.state != "open":
        what = f"reservation {row.reserved_seq} of account {row.account!r} was {row.state}, and holds nothing any more"
        return LedgerError(f"The question cannot be booked: {what}. Reserve again and go on from there.")
    held = Cost() if row is None else row.held
    return LedgerError(
        f"A recipe asked for more than its price: the question costs {cost}, and its reservation on account "
        f"{reservation.account!r} holds {held}."
    )


def finish(book: Book, reservation: Reservation) -> Cost:
    """Give back what a complete recipe did not book. A second time gives back nothing."""
    row = book.locked(reservation.account)
    if not reservation.seq:
        return Cost()
    known = _row_of(book, reservation)
    return Cost() if known.state == "finished" else _close(book, row, known, "finished")


def free(book: Book, account: str, seq: int) -> Cost:
    """Give back what a reservation has not booked, by the number of its entry."""
    row = book.locked(account)
    known = book.get(ReservationRow, account=account, reserved_seq=seq)
    if known is None:
        open_ones = [str(row.reserved_seq) for row in book.rows(ReservationRow, account=account) if row.state == "open"]
        raise LedgerError(
            f"Entry {seq} of account {account!r} is no reservation; open are {', '.join(open_ones) or 'none'}."
        )
    if known.state != "open":
        raise LedgerError(f"Reservation {seq} of account {account!r} was {known.state} already; it holds nothing any more.")
    return _close(book, row, known, "freed")


def _close(book: Book, row: AccountRow, known: ReservationRow, kind: Literal["finished", "freed"]) -> Cost:
    book.put(give_back(book, analyst_row(book, row.account, known.analyst), known.held_of_cap, known.part))
    body: dict[str, JsonValue] = {
        "of": known.reserved_seq,
        "cost": cost_to_json(known.held),
        "counted": cost_to_json(known.held_of_cap),
    }
    book.append(give_back(book, row, known.held, known.part), kind, body)
    book.put(replace(known, held=Cost(), held_of_cap=Cost(), state=kind))
    return known.held


def _row_of(book: Book, reservation: Reservation) -> ReservationRow:
    entry = book.entry(reservation.account, reservation.seq, "reserved")
    known = book.get(ReservationRow, account=reservation.account, reserved_seq=reservation.seq)
    if entry is None or known is None or entry.digest != reservation.digest:
        raise LedgerError(
            f"Entry {reservation.seq} of account {reservation.account!r} is not the reservation that was given; a "
            "reservation is used with the ledger that made it."
        )
    return known


def _receipt(book: Book, known: ReservationRow) -> Reservation:
    entry = book.entry(known.account, known.reserved_seq, "reserved")
    if entry is None:
        raise corrupted(known.account, f"its entry {known.reserved_seq}, which made a reservation, is missing")
    held, held_of_cap = cost_from_json(entry.body["cost"]), cost_from_json(entry.body["counted"])
    return Reservation(
        known.account, known.reserved_seq, known.analyst, known.recipe, known.part, held, held_of_cap, entry.digest
    )
