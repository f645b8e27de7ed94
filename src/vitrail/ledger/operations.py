"""The longer steps of the ledger's transactions: running totals, reservations, what is handed out again, the statement.

*Parts.* A cost to one of several disjoint parts of the rows counts by the rule of ``accounting.cost``: of each partition
the dearest part, for the account and for every analyst's cap.

*Replays.* A stored release that is handed out again is post-processing of what was paid for: it costs the account
nothing. For an analyst who has not seen it, it is new, and counts against that analyst's cap at its original price.

*Charged and not stored.* A crash between the two, or a racer still at work. Nothing of it has left the vault, so the same
charge pays for another computation with fresh noise; whoever stores first decides what is delivered to all.

*Reservations.* The price of a whole recipe is set aside at once and booked question by question. A reservation counts as
spent when it is made, for the account (by the rule for parts) and for the analyst's cap. A charge that carries it is booked
against what it still holds and moves no total. ``finish`` and ``free`` give back what it holds at the end.

*Why giving back is sound.* The filter theorem (Smith & Thakurta 2022) asks that the costs of the mechanisms that were run
never add up to more than the capacity, whoever chooses them. At every moment, for every row,

    booked charges that read it  <=  plain charges + all that reservations hold or have booked  =  spent  <=  capacity,

because a charge needs its cost inside the reservation, and a reservation is admitted only under the capacity. What is given
back was never booked, so no mechanism was run for it: the left side is unchanged and the sum stands as if that much had
never been reserved. When to give back is decided outside the vault, from releases, so it is part of the adaptive choice.

*Once, whoever asks.* A recipe is named by a digest. What was booked under it before is not reserved again: its steps are
replayed or joined. Of a finished recipe the account reserves nothing, and the analyst's cap what that analyst has not seen.
Tests: tests/ledger/test_ledger_reservations.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypeVar

from ..accounting import Cost, Event, JsonValue, dearest, event_to_json, exposure
from ..errors import LedgerError
from . import entries
from .allowance import fits, refusal
from .book import Book
from .chain import Chain, Reader
from .entries import Entry, Part, canonical_json, content_to_json, corrupted, cost_from_json, cost_to_json, price
from .results import Charge, Replay, Reservation
from .statement import AnalystLine, PartLine, ReservationLine, Statement, question_text
from .tables import AccountRow, AnalystRow, ChargeRow, KeptRow, PartRow, ReleaseRow, ReservationRow, SightingRow

_Total = TypeVar("_Total", AccountRow, AnalystRow)


def account_asked(
    book: Book, account: str, analyst: str, question: Mapping[str, JsonValue], part: Part | None
) -> AccountRow:
    """The account's row, locked, for a question that makes sense."""
    entries.check_name(analyst, "an analyst")
    entries.check_question(question)
    row = book.locked(account)
    if part is not None:
        entries.check_part(part, row.neighbours)
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
            entry = _reserved_by(book, known)
            held, held_of_cap = cost_from_json(entry.body["cost"]), cost_from_json(entry.body["counted"])
            return replace(asked, seq=entry.seq, cost=held, counted=held_of_cap, digest=entry.digest)
    steps = [step for step in book.rows(ChargeRow, **named) if step.part == asked.part]
    booked = sum((step.cost for step in steps), Cost())
    seen = sum((step.cost for step in steps if counts_for(book, step, asked.analyst)), Cost())
    if any(known.state == "finished" for known in earlier):
        return replace(asked, cost=Cost(), counted=seen.left_of(booked))
    return replace(asked, cost=booked.left_of(asked.cost), counted=seen.left_of(asked.cost))


def _reserved_by(book: Book, known: ReservationRow) -> Entry:
    """The entry that made the reservation."""
    entry = book.entry(known.account, known.reserved_seq, "reserved")
    if entry is None:
        raise corrupted(known.account, f"its entry {known.reserved_seq}, which made a reservation, is missing")
    return entry


def make_reservation(book: Book, row: AccountRow, wanted: Reservation, question: Mapping[str, JsonValue]) -> Reservation:
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
    return reservation_row(book, reservation)


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


def close_reservation(book: Book, row: AccountRow, held: ReservationRow, kind: Literal["finished", "freed"]) -> Cost:
    """Give back what the reservation has not booked."""
    book.put(give_back(book, analyst_row(book, row.account, held.analyst), held.held_of_cap, held.part))
    given_back = {"cost": cost_to_json(held.held), "counted": cost_to_json(held.held_of_cap)}
    book.append(give_back(book, row, held.held, held.part), kind, {"of": held.reserved_seq, **given_back})
    book.put(replace(held, held=Cost(), held_of_cap=Cost(), state=kind))
    return held.held


def reservation_row(book: Book, reservation: Reservation) -> ReservationRow | None:
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


# --- what is handed out again --------------------------------------------------------------------------------------------


def again(
    book: Book,
    row: AccountRow,
    analyst: str,
    earlier: ChargeRow,
    event: Event,
    part: Part | None,
    held: ReservationRow | None,
    *,
    as_stored: bool,
) -> Charge | Replay:
    """Hand out the stored release of an earlier charge under the same key, or, where none is stored, that charge itself.

    A step of a recipe is handed out ``as_stored``: its event need not agree to the last bit.
    """
    stored = book.get(ReleaseRow, account=row.account, charge_seq=earlier.charge_seq)
    charged = _charged_before(book, earlier, part)
    if stored is None and not price(event) <= charged.cost:
        raise _other_question(charged, f"a question that was charged {charged.cost}; now it comes at {price(event)}")
    event_json = event_to_json(event)
    if stored is not None and not as_stored and canonical_json(charged.body["event"]) != canonical_json(event_json):
        raise _other_question(charged, f"a question with the event {charged.body['event']}; now it comes with {event_json}")
    seen = counts_for(book, earlier, analyst)
    counted = Cost() if seen else charged.cost
    body: dict[str, JsonValue] = {"analyst": analyst, "of": charged.seq, "counted": cost_to_json(counted)}
    if not seen:
        if held is not None and take(book, held, counted, of_cap_only=True):
            body["reservation"] = held.reserved_seq
        else:
            spend_of_cap(book, row, analyst, counted, charged.part)
        book.add(SightingRow(row.account, charged.seq, analyst))
    if stored is None:
        if not seen:
            book.append(row, "joined", body)
        return Charge(row.account, charged.seq, charged.cost, charged.digest)
    content = checked_content(book, stored)
    book.append(row, "replayed", {**body, "key": stored.key})
    return Replay(row.account, charged.seq, charged.cost, counted, content)


def _charged_before(book: Book, earlier: ChargeRow, part: Part | None) -> Entry:
    """The entry of a charge under the same key, if it was for the same part."""
    charged = book.entry(earlier.account, earlier.charge_seq, "charged")
    if charged is None or charged.body["key"] != earlier.key:
        raise corrupted(earlier.account, f"entry {earlier.charge_seq} is not the charge that the key {earlier.key} names")
    if charged.part != part:
        raise _other_question(
            charged, f"which asked {charged.part or 'the whole data'}; now it comes for {part or 'the whole data'}"
        )
    return charged


def _other_question(charged: Entry, how: str) -> LedgerError:
    return LedgerError(
        f"The key {charged.body['key']} names entry {charged.seq} of account {charged.account!r}, {how}. A key must name "
        "one question: give this one another key."
    )


def checked_content(book: Book, stored: ReleaseRow | KeptRow) -> bytes:
    """The bytes of a release, or of something that is kept, if they are those that were recorded."""
    names: dict[str, JsonValue]
    if isinstance(stored, ReleaseRow):
        entry, names = book.entry(stored.account, stored.released_seq, "released"), {"of": stored.charge_seq}
        what = f"the stored release of charge {stored.charge_seq}"
    else:
        entry, names = book.entry(stored.account, stored.kept_seq, "kept"), {"analyst": stored.analyst, "name": stored.name}
        what = f"what analyst {stored.analyst!r} keeps as {stored.name!r}"
    if entry is None or entry.body != {**names, **content_to_json(stored.content)}:
        raise corrupted(stored.account, f"{what} does not match its digest")
    return stored.content


# --- the statement -------------------------------------------------------------------------------------------------------


def statement(book: Book, account: str, read: Reader) -> Statement:
    """The state of the account, from its running totals; ``read`` is for the entries, should somebody ask for them.

    What is read is what is shown: a row for the account, one for every analyst, part and open reservation, and the last
    entry, which must be the head. How many entries there are makes no difference.
    """
    row = book.locked(account)
    delta = row.budget.question_delta
    return Statement(
        account,
        row.budget,
        row.neighbours,
        row.capacity,
        row.spent,
        row.n_questions,
        row.seq,
        row.head,
        tuple(
            AnalystLine(line.analyst, line.spent, line.cap, line.capacity, delta)
            for line in book.rows(AnalystRow, account=account)
        ),
        _part_lines(row, book.rows(PartRow, account=account, analyst="")),
        tuple(_reservation_line(_reserved_by(book, held), held, delta) for held in book.open_reservations(account)),
        Chain(account, row.seq, row.head, read),
    )


def _part_lines(row: AccountRow, rows: list[PartRow]) -> tuple[PartLine, ...]:
    """What each part was charged, and what its rows are exposed to in all."""
    spent: dict[str, dict[int, Cost]] = {}
    for line in rows:
        spent.setdefault(line.part.partition, {})[line.part.index] = line.spent
    delta = row.budget.question_delta
    lines = [
        PartLine(
            line.part, line.spent, exposure(row.spent, spent[line.part.partition], line.part.index), row.capacity, delta
        )
        for line in rows
    ]
    return tuple(sorted(lines, key=lambda line: (line.part.name, line.part.key)))


def _reservation_line(entry: Entry, held: ReservationRow, delta: float) -> ReservationLine:
    reserved = cost_from_json(entry.body.get("cost"))
    booked = held.held.left_of(reserved)
    named = held.analyst, held.recipe, question_text(entry), held.part
    return ReservationLine(entry.seq, entry.time_utc, *named, reserved, booked, delta)
