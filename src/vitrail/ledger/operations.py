"""What is handed out a second time, and the statement of an account.

*Replays.* A stored release that is handed out again is post-processing of what was paid for: it costs the account
nothing. For an analyst who has not seen it, it is new, and counts against that analyst's cap at its original price.

*Charged and not stored.* A crash between the two, or a racer still at work. Nothing of it has left the vault, so the same
charge pays for another computation with fresh noise; whoever stores first decides what is delivered to all.
"""

from __future__ import annotations

from ..accounting import Cost, Event, JsonValue, event_to_json, exposure
from ..errors import LedgerCorrupted, LedgerError
from .book import Book, corrupted
from .entries import Entry, Part, RawEntry, canonical_json, content_to_json, cost_from_json, cost_to_json, decode, price
from .reservations import counts_for, spend_of_cap, take
from .results import AnalystLine, Charge, PartLine, Replay, ReservationLine, Statement
from .tables import AccountRow, AnalystRow, ChargeRow, KeptRow, PartRow, ReleaseRow, ReservationRow, SightingRow


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
    told = event_to_json(event)
    if stored is not None and not as_stored and canonical_json(charged.body["event"]) != canonical_json(told):
        raise _other_question(charged, f"a question with the event {charged.body['event']}; now it comes with {told}")
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
