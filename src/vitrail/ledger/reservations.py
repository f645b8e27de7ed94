"""Running totals, and reservations: the price of a whole recipe, set aside at once and booked question by question.

*Parts.* A cost to one of several disjoint parts of the rows counts by the rule of ``accounting.parallel``: of each partition
the dearest part, for the account and for every analyst's cap.

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
analyst has not seen. Tests: tests/ledger/test_ledger_reservations*.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypeVar

from ..accounting import Cost, JsonValue, dearest, exposure
from ..errors import LedgerError
from .allowance import fits, refusal
from .book import Book, corrupted
from .entries import Part, check_name, check_part, check_question, cost_from_json, cost_to_json
from .results import Reservation
from .tables import AccountRow, AnalystRow, ChargeRow, PartRow, ReservationRow, SightingRow

_Total = TypeVar("_Total", AccountRow, AnalystRow)


def account_asked(
    book: Book, account: str, analyst: str, question: Mapping[str, JsonValue], part: Part | None
) -> AccountRow:
    """The account's row, locked, for a question that makes sense."""
    check_name(analyst, "an analyst")
    check_question(question)
    row = book.locked(account)
    if part is not None:
        check_part(part, row.neighbours)
    return row


def analyst_row(book: Book, account: str, analyst: str) -> AnalystRow:
    """The analyst's row, or that of one who has spent nothing."""
    return book.get(AnalystRow, account=account, analyst=analyst) or AnalystRow(account, analyst, Cost())


def spend(book: Book, row: _Total, cost: Cost, part: Part | None, delta: float) -> _Total:
    """The row with ``cost`` spent, for the caller to write, or :class:`BudgetExceeded` in epsilons at ``delta``."""
    costs = _part_costs(book, row, part)
    exposed = row.spent if part is None else exposure(row.spent, costs, part.index)
    if row.capacity is not None and not fits(exposed, cost, row.capacity):
        analyst = row.analyst if isinstance(row, AnalystRow) else None
        raise refusal(cost, exposed, row.capacity, account=row.account, delta=delta, analyst=analyst, part=part)
    if part is None:
        return replace(row, spent=row.spent + cost)
    return _with_part(book, row, costs, part, costs.get(part.index, Cost()) + cost)


def spend_of_cap(book: Book, row: AccountRow, analyst: str, cost: Cost, part: Part | None) -> None:
    """Count ``cost`` against the analyst's cap, or refuse it."""
    book.put(spend(book, analyst_row(book, row.account, analyst), cost, part, row.budget.question_delta))


def give_back(book: Book, row: _Total, cost: Cost, part: Part | None) -> _Total:
    """The row with ``cost`` no longer spent, for the caller to write."""
    if part is None:
        return replace(row, spent=cost.left_of(row.spent))
    costs = _part_costs(book, row, part)
    return _with_part(book, row, costs, part, cost.left_of(costs.get(part.index, Cost())))


def _with_part(book: Book, row: _Total, costs: dict[int, Cost], part: Part, own: Cost) -> _Total:
    """The row once the part has cost ``own``, which is written."""
    book.put(PartRow(row.account, _whose(row), part.partition, part.index, part.count, part.name, own))
    others = dearest(costs.values()).left_of(row.spent)
    return replace(row, spent=others + dearest({**costs, part.index: own}.values()))


def _part_costs(book: Book, row: AccountRow | AnalystRow, part: Part | None) -> dict[int, Cost]:
    """What was spent on each part of the partition, by index, if it is described as before."""
    if part is None:
        return {}
    rows = book.rows(PartRow, account=row.account, analyst=_whose(row), partition_id=part.partition)
    for known in (kept.part for kept in rows):
        if (known.name, known.count) != (part.name, part.count):
            raise LedgerError(
                f"The partition {part.partition[:12]} of account {row.account!r} is known as {known.name!r} with "
                f"{known.count} parts; now it comes as {part.name!r} with {part.count}."
            )
    return {kept.part_index: kept.spent for kept in rows}


def _whose(row: AccountRow | AnalystRow) -> str:
    """The analyst of a part's row: empty for the account itself."""
    return row.analyst if isinstance(row, AnalystRow) else ""


# --- reservations --------------------------------------------------------------------------------------------------------


def still_wanted(book: Book, asked: Reservation) -> Reservation:
    """What the recipe may still book, of the account and of the cap; or the reservation that is open for it."""
    if asked.recipe is None:
        return asked
    named = {"account": asked.account, "recipe": asked.recipe}
    earlier = [known for known in book.rows(ReservationRow, **named) if known.part == asked.part]
    for known in earlier:
        if known.analyst == asked.analyst and known.state == "open":
            entry = book.entry(known.account, known.reserved_seq, "reserved")
            if entry is None:
                raise corrupted(known.account, f"its entry {known.reserved_seq}, which made a reservation, is missing")
            held, held_of_cap = cost_from_json(entry.body["cost"]), cost_from_json(entry.body["counted"])
            return replace(asked, seq=entry.seq, cost=held, counted=held_of_cap, digest=entry.digest)
    steps = [step for step in book.rows(ChargeRow, **named) if step.part == asked.part]
    booked = sum((step.cost for step in steps), Cost())
    seen = sum((step.cost for step in steps if counts_for(book, step, asked.analyst)), Cost())
    if any(known.state == "finished" for known in earlier):
        return replace(asked, cost=Cost(), counted=seen.left_of(booked))
    return replace(asked, cost=booked.left_of(asked.cost), counted=seen.left_of(asked.cost))


def make(book: Book, row: AccountRow, wanted: Reservation, question: Mapping[str, JsonValue]) -> Reservation:
    """Set aside what is wanted, or refuse it."""
    part = wanted.part
    row = spend(book, row, wanted.cost, part, row.budget.question_delta)
    spend_of_cap(book, row, wanted.analyst, wanted.counted, part)
    body: dict[str, JsonValue] = {
        "analyst": wanted.analyst,
        "recipe": wanted.recipe,
        "question": dict(question),
        "cost": cost_to_json(wanted.cost),
        "counted": cost_to_json(wanted.counted),
        **({} if part is None else {"part": part.to_json()}),
    }
    after = book.append(row, "reserved", body)
    book.put(ReservationRow(row.account, after.seq, wanted.analyst, wanted.recipe, part, wanted.cost, wanted.counted))
    return replace(wanted, seq=after.seq, digest=after.head)


def counts_for(book: Book, charge: ChargeRow, analyst: str) -> bool:
    """Whether the charge counts against that analyst's cap already."""
    where: dict[str, str | int] = {"account": charge.account, "charge_seq": charge.charge_seq, "analyst": analyst}
    return charge.analyst == analyst or book.get(SightingRow, **where) is not None


def known(book: Book, reservation: Reservation, account: str, analyst: str, part: Part | None) -> ReservationRow | None:
    """The row of a reservation that this ledger gave to this analyst for this part; None where it holds nothing."""
    if (reservation.account, reservation.analyst, reservation.part) != (account, analyst, part):
        raise LedgerError(
            f"The reservation was made in account {reservation.account!r} by analyst {reservation.analyst!r} for "
            f"{reservation.part or 'the whole data'}; the question is for account {account!r}, by {analyst!r}, for "
            f"{part or 'the whole data'}. Charge it without the reservation, or make another."
        )
    return row_of(book, reservation)


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


def close(book: Book, row: AccountRow, held: ReservationRow, kind: Literal["finished", "freed"]) -> Cost:
    """Give back what the reservation has not booked."""
    book.put(give_back(book, analyst_row(book, row.account, held.analyst), held.held_of_cap, held.part))
    given_back = {"cost": cost_to_json(held.held), "counted": cost_to_json(held.held_of_cap)}
    book.append(give_back(book, row, held.held, held.part), kind, {"of": held.reserved_seq, **given_back})
    book.put(replace(held, held=Cost(), held_of_cap=Cost(), state=kind))
    return held.held


def row_of(book: Book, reservation: Reservation) -> ReservationRow | None:
    """The row of a reservation that this ledger gave; None where nothing had to be set aside."""
    if not reservation.seq:
        return None
    entry = book.entry(reservation.account, reservation.seq, "reserved")
    held = book.get(ReservationRow, account=reservation.account, reserved_seq=reservation.seq)
    if entry is None or held is None or entry.digest != reservation.digest:
        raise LedgerError(
            f"Entry {reservation.seq} of account {reservation.account!r} is not the reservation that was given; a "
            "reservation is used with the ledger that made it."
        )
    return held
