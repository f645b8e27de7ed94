"""What the ledger does, transaction by transaction. The same code runs over every back-end.

*Charge, then look.* ``charge`` reads the running totals, decides, appends the entry and writes the new totals, all in one
transaction; the caller gets its receipt only after the commit. A crash before the commit charged nothing and nothing was
read; a crash after it costs budget and never privacy, because nothing is ever refunded.

*The filter.* The account is locked while a charge is decided, so any number of processes that ask at once are served as
if one after the other, and the sum of granted costs never passes the capacity: the condition of the filter theorem
(Smith & Thakurta 2022), whoever chooses the questions and however they depend on earlier answers.

*Replays.* A stored release that is handed out again is post-processing of what was paid for: it costs the account
nothing. For an analyst who has not seen it, it is new, and counts against that analyst's cap at its original price.

*Parts.* A charge may be for one of several disjoint parts of the rows; what the parts of a partition cost together is the
dearest of them (``accounting.parallel`` has the rule and its proof), for the account and for every analyst's cap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from ..accounting import Cost, Event, JsonValue, event_to_json, exposure, total_with
from ..errors import LedgerCorrupted, LedgerError
from ..guarantee import Budget, Neighbours, check_neighbours
from .allowance import fits, refusal
from .book import AccountRow, AnalystRow, Book, PartRow, ReleaseRow
from .chain import append, corrupted, entry_of, locked
from .checks import check_budget, check_key, check_name, check_question, check_release, price
from .entries import GENESIS, Entry, canonical_json, cost_to_json, decode
from .parts import Part, check_part
from .results import Account, AnalystLine, Charge, PartLine, Replay, Statement


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
        book.put_account(append(book, row, "opened", body), new=True)
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
    row = locked(book, account)
    capacity = budget.capacity()
    body: dict[str, JsonValue] = {"analyst": analyst, "budget": budget.to_json(), "capacity": cost_to_json(capacity)}
    book.put_account(append(book, row, "capped", body), new=False)
    found = book.analyst(account, analyst)
    now = replace(found or AnalystRow(account, analyst, Cost()), cap=budget, capacity=capacity)
    book.put_analyst(now, new=found is None)


def charge(
    book: Book,
    account: str,
    analyst: str,
    event: Event,
    question: Mapping[str, JsonValue],
    key: str | None,
    part: Part | None = None,
) -> Charge | Replay:
    """Replay what is stored under ``key``, or check the caps and append the charge."""
    check_name(analyst, "an analyst")
    check_question(question)
    check_key(key)
    cost = price(event)
    row = locked(book, account)
    if part is not None:
        check_part(part, row.neighbours)
    if key is not None and (stored := book.release_under(account, key, analyst)) is not None:
        return _replay(book, row, analyst, event, stored, part)
    spent = _spend(book, row, None, row.spent, row.capacity, cost, part)
    _count_for_analyst(book, row, analyst, cost, part)
    body: dict[str, JsonValue] = {
        "analyst": analyst,
        "event": event_to_json(event),
        "question": dict(question),
        "cost": cost_to_json(cost),
        "key": key,
        **({} if part is None else {"part": part.to_json()}),
    }
    after = append(book, row, "charged", body)
    book.put_account(replace(after, spent=spent, n_questions=row.n_questions + 1), new=False)
    return Charge(account, after.seq, cost, after.head)


def _replay(book: Book, row: AccountRow, analyst: str, event: Event, stored: ReleaseRow, part: Part | None) -> Replay:
    charged = _charged_entry(book, row.account, stored.charge_seq)
    if charged is None:
        raise corrupted(row.account, f"a release is stored for entry {stored.charge_seq}, which is no charge")
    released = entry_of(book, row.account, stored.released_seq)
    if released is None or released.body.get("sha256") != hashlib.sha256(stored.content).hexdigest():
        raise corrupted(row.account, f"the stored release of charge {stored.charge_seq} does not match its digest")
    if canonical_json(charged.body["event"]) != canonical_json(event_to_json(event)):
        raise LedgerError(
            f"The key {stored.key} names entry {charged.seq} of account {row.account!r}, a question with the event "
            f"{charged.body['event']}; now it comes with {event_to_json(event)}. A key must name one question: give this "
            "one another key."
        )
    if charged.part != part:
        raise LedgerError(
            f"The key {stored.key} names entry {charged.seq} of account {row.account!r}, which asked "
            f"{charged.part or 'the whole data'}; now it comes for {part or 'the whole data'}. A key must name one "
            "question: give this one another key."
        )
    seen = book.has_seen(row.account, charged.seq, analyst)
    counted = Cost() if seen else charged.cost
    if not seen:
        _count_for_analyst(book, row, analyst, counted, part)
        book.put_sighting(row.account, charged.seq, analyst)
    body: dict[str, JsonValue] = {
        "analyst": analyst,
        "of": charged.seq,
        "key": stored.key,
        "counted": cost_to_json(counted),
    }
    book.put_account(append(book, row, "replayed", body), new=False)
    return Replay(row.account, charged.seq, charged.cost, counted, stored.content)


def store(book: Book, receipt: Charge, release: bytes) -> None:
    """Bind the release to its charge."""
    check_release(release)
    row = locked(book, receipt.account)
    charged = _charged_entry(book, receipt.account, receipt.seq)
    if charged is None or charged.digest != receipt.digest:
        raise LedgerError(
            f"Entry {receipt.seq} of account {receipt.account!r} is not the charge that this receipt was given for; a "
            "release is stored in the ledger that charged for it."
        )
    if book.has_release(receipt.account, receipt.seq):
        raise LedgerError(
            f"The release of charge {receipt.seq} of account {receipt.account!r} is stored already. A charge pays for one "
            "release: charge again for another."
        )
    digest = hashlib.sha256(release).hexdigest()
    after = append(book, row, "released", {"of": receipt.seq, "sha256": digest, "size": len(release)})
    book.put_account(after, new=False)
    key = charged.body["key"]
    book.put_release(ReleaseRow(receipt.account, receipt.seq, after.seq, None if key is None else str(key), release))
    book.put_sighting(receipt.account, receipt.seq, str(charged.analyst))


def statement(book: Book, account: str) -> Statement:
    """The state of the account and its bill."""
    row = locked(book, account)
    delta = row.budget.question_delta
    try:
        entries = tuple(decode(raw) for raw in book.entries(account))
    except LedgerCorrupted as error:
        raise corrupted(account, f"of an entry, {error}") from error
    lines = (AnalystLine(a.analyst, a.spent, a.cap, a.capacity, delta) for a in book.analysts(account))
    parts = _part_lines(row, [one for one in book.parts(account) if not one.analyst])
    return Statement(
        account, row.budget, row.neighbours, row.capacity, row.spent, row.n_questions, tuple(lines), entries, parts
    )


def _part_lines(row: AccountRow, rows: list[PartRow]) -> tuple[PartLine, ...]:
    """What each part was charged, and what its rows are exposed to in all."""
    spent: dict[str, dict[int, Cost]] = {}
    for one in rows:
        spent.setdefault(one.part.partition, {})[one.part.index] = one.spent
    delta = row.budget.question_delta
    lines = [
        PartLine(one.part, one.spent, exposure(row.spent, spent[one.part.partition], one.part.index), row.capacity, delta)
        for one in rows
    ]
    return tuple(sorted(lines, key=lambda line: (line.part.name, line.part.place)))


def _count_for_analyst(book: Book, row: AccountRow, analyst: str, cost: Cost, part: Part | None) -> None:
    """Add ``cost`` to what the analyst has spent, or refuse."""
    found = book.analyst(row.account, analyst)
    before = found or AnalystRow(row.account, analyst, Cost())
    spent = _spend(book, row, analyst, before.spent, before.capacity, cost, part)
    book.put_analyst(replace(before, spent=spent), new=found is None)


def _spend(
    book: Book, row: AccountRow, analyst: str | None, spent: Cost, capacity: Cost | None, cost: Cost, part: Part | None
) -> Cost:
    """What the account, or an analyst, has spent after this cost, by the rule for parts; or a refusal."""
    exposed, after = spent, spent + cost
    if part is not None:
        rows = {one.part.index: one for one in book.parts_of(row.account, analyst or "", part.partition)}
        if wrong := [one.part for one in rows.values() if (one.part.name, one.part.count) != (part.name, part.count)]:
            raise LedgerError(
                f"The partition {part.partition[:12]} of account {row.account!r} is known as {wrong[0].name!r} with "
                f"{wrong[0].count} parts; now it comes as {part.name!r} with {part.count}."
            )
        by_part = {index: one.spent for index, one in rows.items()}
        exposed, after = exposure(spent, by_part, part.index), total_with(spent, by_part, part.index, cost)
        own = by_part.get(part.index, Cost()) + cost
        book.put_part(PartRow(row.account, analyst or "", part, own), new=part.index not in rows)
    if capacity is not None and not fits(exposed, cost, capacity):
        delta = row.budget.question_delta
        raise refusal(cost, exposed, capacity, account=row.account, delta=delta, analyst=analyst, part=part)
    return after


def _charged_entry(book: Book, account: str, seq: int) -> Entry | None:
    found = entry_of(book, account, seq)
    return found if found is not None and found.kind == "charged" else None
