"""What the ledger does, transaction by transaction.

*Charge, then look.* ``charge`` reads the running totals, decides, appends the entry and writes the new totals, all in one
transaction; the caller gets its receipt only after the commit. A crash before the commit charged nothing and nothing was
read; a crash after it costs budget and never privacy, because nothing that was charged is ever refunded.

*The filter.* The account is locked while a charge is decided, so any number of processes that ask at once are served as
if one after the other, and the sum of granted costs never passes the capacity: the condition of the filter theorem
(Smith & Thakurta 2022), whoever chooses the questions and however they depend on earlier answers.

*Replays.* A stored release that is handed out again is post-processing of what was paid for: it costs the account
nothing. For an analyst who has not seen it, it is new, and counts against that analyst's cap at its original price.

*Charged and not stored.* A crash between the two, or a racer still at work. Nothing of it has left the vault, so the same
charge pays for another computation with fresh noise; whoever stores first decides what is delivered to all.

*Parts.* A charge may be for one of several disjoint parts of the rows (``totals``). *Reservations* have their own module.

*Kept work.* What an analyst computed from releases is kept free, under a name, its digest in the chain. It is per analyst:
what one analyst was told counts against that analyst's cap, so no other may read it for free.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from ..accounting import Cost, Event, JsonValue, event_to_json, exposure
from ..errors import LedgerCorrupted, LedgerError
from ..guarantee import Budget, Neighbours, check_neighbours
from .book import Book, corrupted
from .entries import (
    GENESIS,
    LARGEST_KEPT,
    Entry,
    Part,
    RawEntry,
    canonical_json,
    check_budget,
    check_bytes,
    check_digest,
    check_name,
    cost_from_json,
    cost_to_json,
    decode,
    price,
)
from .reservations import counts_for, known_reservation, overdrawn, take
from .results import Account, AnalystLine, Charge, PartLine, Replay, Reservation, ReservationLine, Statement
from .tables import AccountRow, AnalystRow, ChargeRow, KeptRow, PartRow, ReleaseRow, ReservationRow, SightingRow
from .totals import account_asked, analyst_row, spend


def open_account(book: Book, account: str, budget: Budget, neighbours: Neighbours) -> Account:
    """Create the account, or find it as it was opened."""
    check_name(account, "an account")
    check_budget(budget)
    check_neighbours(neighbours)
    row = book.account(account)
    if row is None:
        capacity = budget.capacity()
        row = AccountRow(account, budget, neighbours, capacity, Cost(), 0, 0, GENESIS)
        body: dict[str, JsonValue] = {
            "budget": budget.to_json(),
            "neighbours": neighbours,
            "capacity": cost_to_json(capacity),
        }
        book.append(row, "opened", body)
    elif (row.budget, row.neighbours) != (budget, neighbours):
        raise LedgerError(
            f"Account {account!r} was opened with {row.budget} and neighbours {row.neighbours!r}; now it is asked for with "
            f"{budget} and neighbours {neighbours!r}. A budget never changes once it is set: use the first values, or, if "
            "these are other rows, another account name. (Two accounts over the same rows add up; the ledger cannot see it.)"
        )
    return Account(account, row.budget, row.neighbours, row.capacity)


def cap_analyst(book: Book, account: str, analyst: str, budget: Budget) -> None:
    """Set the analyst's cap; the latest one holds."""
    check_name(analyst, "an analyst")
    check_budget(budget)
    row = book.locked(account)
    capacity = budget.capacity()
    body: dict[str, JsonValue] = {"analyst": analyst, "budget": budget.to_json(), "capacity": cost_to_json(capacity)}
    book.append(row, "capped", body)
    book.put(replace(analyst_row(book, account, analyst), cap=budget, capacity=capacity))


def charge(
    book: Book,
    account: str,
    analyst: str,
    event: Event,
    question: Mapping[str, JsonValue],
    key: str | None,
    part: Part | None = None,
    reservation: Reservation | None = None,
) -> Charge | Replay:
    """Replay or join what was charged under ``key``, or check the caps and append the charge."""
    check_digest(key, "key")
    cost = price(event)
    row = account_asked(book, account, analyst, question, part)
    held = None if reservation is None else known_reservation(book, reservation, account, analyst, part)
    if key is not None and (earlier := book.charge_under(account, key, analyst)) is not None:
        stored = book.get(ReleaseRow, account=account, charge_seq=earlier.charge_seq)
        charged = _charged_before(book, earlier, part)
        if stored is None:
            _check_no_dearer(charged, cost)
        elif reservation is None:  # a step of a recipe need not agree to the last bit: what is stored is authoritative
            _check_same_event(charged, event)
        return _again(book, row, analyst, earlier, charged, stored, held)
    if reservation is None:
        row = spend(book, row, cost, part, row.budget.question_delta)
        book.put(spend(book, analyst_row(book, account, analyst), cost, part, row.budget.question_delta))
    elif not take(book, held, cost):
        raise overdrawn(reservation, held, cost)
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


def _check_same_event(charged: Entry, event: Event) -> None:
    told = event_to_json(event)
    if canonical_json(charged.body["event"]) != canonical_json(told):
        raise _other_question(charged, f"a question with the event {charged.body['event']}; now it comes with {told}")


def _check_no_dearer(charged: Entry, cost: Cost) -> None:
    if not cost <= charged.cost:
        raise _other_question(charged, f"a question that was charged {charged.cost}; now it comes at {cost}")


def _other_question(charged: Entry, how: str) -> LedgerError:
    return LedgerError(
        f"The key {charged.body['key']} names entry {charged.seq} of account {charged.account!r}, {how}. A key must name "
        "one question: give this one another key."
    )


def _again(
    book: Book,
    row: AccountRow,
    analyst: str,
    earlier: ChargeRow,
    charged: Entry,
    stored: ReleaseRow | None,
    held: ReservationRow | None,
) -> Charge | Replay:
    """Hand out the stored release of an earlier charge, or, where none is stored, that charge itself."""
    seen = counts_for(book, earlier, analyst)
    counted = Cost() if seen else charged.cost
    reserved: dict[str, JsonValue] = {}
    if not seen:
        if held is not None and take(book, held, counted, of_cap_only=True):
            reserved = {"reservation": held.reserved_seq}
        else:
            line = analyst_row(book, row.account, analyst)
            book.put(spend(book, line, counted, charged.part, row.budget.question_delta))
        book.add(SightingRow(row.account, charged.seq, analyst))
    body: dict[str, JsonValue] = {"analyst": analyst, "of": charged.seq, "counted": cost_to_json(counted), **reserved}
    if stored is None:
        if not seen:
            book.append(row, "joined", body)
        return Charge(row.account, charged.seq, charged.cost, charged.digest)
    content = _checked_content(book, stored)
    book.append(row, "replayed", {**body, "key": stored.key})
    return Replay(row.account, charged.seq, charged.cost, counted, content)


def _checked_content(book: Book, stored: ReleaseRow) -> bytes:
    released = book.entry(stored.account, stored.released_seq, "released")
    told = None if released is None else (released.body.get("of"), released.body.get("sha256"))
    if told != (stored.charge_seq, hashlib.sha256(stored.content).hexdigest()):
        raise corrupted(stored.account, f"the stored release of charge {stored.charge_seq} does not match its digest")
    return stored.content


def store(book: Book, receipt: Charge, release: bytes) -> bytes:
    """Bind the release to its charge, unless one is bound; the bytes that are."""
    check_bytes(release, "release")
    row = book.locked(receipt.account)
    charged = book.entry(receipt.account, receipt.seq, "charged")
    if charged is None or charged.digest != receipt.digest:
        raise LedgerError(
            f"Entry {receipt.seq} of account {receipt.account!r} is not the charge that this receipt was given for; a "
            "release is stored in the ledger that charged for it."
        )
    if (stored := book.get(ReleaseRow, account=receipt.account, charge_seq=receipt.seq)) is not None:
        return _checked_content(book, stored)
    digest = hashlib.sha256(release).hexdigest()
    after = book.append(row, "released", {"of": receipt.seq, "sha256": digest, "size": len(release)})
    key = charged.body["key"]
    book.add(ReleaseRow(receipt.account, receipt.seq, after.seq, None if key is None else str(key), release))
    book.add(SightingRow(receipt.account, receipt.seq, str(charged.analyst)))
    return release


def keep(book: Book, account: str, analyst: str, name: str, content: bytes) -> None:
    """Keep ``content`` under ``name``, in place of what was there."""
    check_name(analyst, "an analyst")
    check_name(name, "something to keep")
    check_bytes(content, "content to keep", LARGEST_KEPT)
    row = book.locked(account)
    digest = hashlib.sha256(content).hexdigest()
    body: dict[str, JsonValue] = {"analyst": analyst, "name": name, "sha256": digest, "size": len(content)}
    after = book.append(row, "kept", body)
    book.put(KeptRow(account, analyst, name, after.seq, content))


def kept(book: Book, account: str, analyst: str, name: str) -> bytes | None:
    """What the analyst keeps under ``name``, checked against its entry; None where there is nothing."""
    check_name(analyst, "an analyst")
    check_name(name, "something that is kept")
    book.locked(account)
    row = book.get(KeptRow, account=account, analyst=analyst, name=name)
    if row is None:
        return None
    entry = book.entry(account, row.kept_seq, "kept")
    told = None if entry is None else (entry.analyst, entry.body.get("name"), entry.body.get("sha256"))
    if told != (analyst, name, hashlib.sha256(row.content).hexdigest()):
        raise corrupted(account, f"what analyst {analyst!r} keeps as {name!r} does not match its digest")
    return row.content


def statement(book: Book, account: str) -> Statement:
    """The state of the account and its bill."""
    row = book.locked(account)
    delta = row.budget.question_delta
    try:
        entries = tuple(decode(raw) for raw in book.stream(RawEntry, account))
    except LedgerCorrupted as error:
        raise corrupted(account, f"of an entry, {error}") from error
    return Statement(
        account,
        row.budget,
        row.neighbours,
        row.capacity,
        row.spent,
        row.n_questions,
        tuple(
            AnalystLine(line.analyst, line.spent, line.cap, line.capacity, delta)
            for line in book.rows(AnalystRow, account=account)
        ),
        entries,
        _part_lines(row, book.rows(PartRow, account=account, analyst="")),
        tuple(
            _reservation_line(entries[held.reserved_seq - 1], held, delta)
            for held in book.rows(ReservationRow, account=account)
            if held.state == "open"
        ),
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
    return tuple(sorted(lines, key=lambda line: (line.part.name, line.part.place)))


def _reservation_line(entry: Entry, held: ReservationRow, delta: float) -> ReservationLine:
    question = entry.body.get("question")
    named = [question.get(word) for word in ("label", "question", "kind")] if isinstance(question, dict) else []
    label = next((word for word in named if isinstance(word, str) and word), "a recipe")
    reserved = cost_from_json(entry.body.get("cost"))
    booked = held.held.left_of(reserved)
    return ReservationLine(entry.seq, entry.time_utc, held.analyst, held.recipe, label, held.part, reserved, booked, delta)
