"""What the ledger does, transaction by transaction. The same code runs over every back-end.

*Charge, then look.* ``charge`` reads the running totals, decides, appends the entry and writes the new totals, all in one
transaction; the caller gets its receipt only after the commit. A crash before the commit charged nothing and nothing was
read; a crash after it costs budget and never privacy, because nothing is ever refunded.

*The filter.* The account is locked while a charge is decided, so any number of processes that ask at once are served as
if one after the other, and the sum of granted costs never passes the capacity: the condition of the filter theorem
(Smith & Thakurta 2022), whoever chooses the questions and however they depend on earlier answers.

*Replays.* A stored release that is handed out again is post-processing of what was paid for: it costs the account
nothing. For an analyst who has not seen it, it is new, and counts against that analyst's cap at its original price.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from ..accounting import Cost, Event, JsonValue, event_to_json
from ..errors import LedgerCorrupted, LedgerError
from ..guarantee import Budget, Neighbours, check_neighbours
from .allowance import fits, refusal
from .book import AccountRow, AnalystRow, Book, ReleaseRow
from .checks import check_budget, check_key, check_name, check_question, check_release, price
from .entries import GENESIS, Entry, Kind, canonical_json, cost_to_json, decode, digest_of, utc_now
from .results import Account, AnalystLine, Charge, Replay, Statement


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
        book.put_account(_append(book, row, "opened", body), new=True)
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
    row = _locked(book, account)
    capacity = budget.capacity()
    body: dict[str, JsonValue] = {"analyst": analyst, "budget": budget.to_json(), "capacity": cost_to_json(capacity)}
    book.put_account(_append(book, row, "capped", body), new=False)
    found = book.analyst(account, analyst)
    now = replace(found or AnalystRow(account, analyst, Cost()), cap=budget, capacity=capacity)
    book.put_analyst(now, new=found is None)


def charge(
    book: Book, account: str, analyst: str, event: Event, question: Mapping[str, JsonValue], key: str | None
) -> Charge | Replay:
    """Replay what is stored under ``key``, or check the caps and append the charge."""
    check_name(analyst, "an analyst")
    check_question(question)
    check_key(key)
    cost = price(event)
    row = _locked(book, account)
    if key is not None and (stored := book.release_under(account, key, analyst)) is not None:
        return _replay(book, row, analyst, event, stored)
    if not fits(row.spent, cost, row.capacity):
        raise refusal(cost, row.spent, row.capacity, account=account, delta=row.budget.question_delta, analyst=None)
    _count_for_analyst(book, row, analyst, cost)
    body: dict[str, JsonValue] = {
        "analyst": analyst,
        "event": event_to_json(event),
        "question": dict(question),
        "cost": cost_to_json(cost),
        "key": key,
    }
    after = _append(book, row, "charged", body)
    book.put_account(replace(after, spent=row.spent + cost, n_questions=row.n_questions + 1), new=False)
    return Charge(account, after.seq, cost, after.head)


def _replay(book: Book, row: AccountRow, analyst: str, event: Event, stored: ReleaseRow) -> Replay:
    charged = _charged_entry(book, row.account, stored.charge_seq)
    if charged is None:
        raise _corrupted(row.account, f"a release is stored for entry {stored.charge_seq}, which is no charge")
    released = _entry(book, row.account, stored.released_seq)
    if released is None or released.body.get("sha256") != hashlib.sha256(stored.content).hexdigest():
        raise _corrupted(row.account, f"the stored release of charge {stored.charge_seq} does not match its digest")
    if canonical_json(charged.body["event"]) != canonical_json(event_to_json(event)):
        raise LedgerError(
            f"The key {stored.key} names entry {charged.seq} of account {row.account!r}, a question with the event "
            f"{charged.body['event']}; now it comes with {event_to_json(event)}. A key must name one question: give this "
            "one another key. Nothing was charged."
        )
    seen = book.has_seen(row.account, charged.seq, analyst)
    counted = Cost() if seen else charged.cost
    if not seen:
        _count_for_analyst(book, row, analyst, counted)
        book.put_sighting(row.account, charged.seq, analyst)
    body: dict[str, JsonValue] = {
        "analyst": analyst,
        "of": charged.seq,
        "key": stored.key,
        "counted": cost_to_json(counted),
    }
    book.put_account(_append(book, row, "replayed", body), new=False)
    return Replay(row.account, charged.seq, charged.cost, counted, stored.content)


def store(book: Book, receipt: Charge, release: bytes) -> None:
    """Bind the release to its charge."""
    check_release(release)
    row = _locked(book, receipt.account)
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
    after = _append(book, row, "released", {"of": receipt.seq, "sha256": digest, "size": len(release)})
    book.put_account(after, new=False)
    key = charged.body["key"]
    book.put_release(ReleaseRow(receipt.account, receipt.seq, after.seq, None if key is None else str(key), release))
    book.put_sighting(receipt.account, receipt.seq, str(charged.analyst))


def statement(book: Book, account: str) -> Statement:
    """The state of the account and its bill."""
    row = _locked(book, account)
    delta = row.budget.question_delta
    try:
        entries = tuple(decode(raw) for raw in book.entries(account))
    except LedgerCorrupted as error:
        raise _corrupted(account, f"of an entry, {error}") from error
    lines = (AnalystLine(a.analyst, a.spent, a.cap, a.capacity, delta) for a in book.analysts(account))
    return Statement(account, row.budget, row.neighbours, row.capacity, row.spent, row.n_questions, tuple(lines), entries)


def _count_for_analyst(book: Book, row: AccountRow, analyst: str, cost: Cost) -> None:
    """Add ``cost`` to what the analyst has spent, or refuse."""
    found = book.analyst(row.account, analyst)
    before = found or AnalystRow(row.account, analyst, Cost())
    if before.capacity is not None and not fits(before.spent, cost, before.capacity):
        delta = row.budget.question_delta
        raise refusal(cost, before.spent, before.capacity, account=row.account, delta=delta, analyst=analyst)
    book.put_analyst(replace(before, spent=before.spent + cost), new=found is None)


def _locked(book: Book, account: str) -> AccountRow:
    """The account's row, if it exists and its head is the last entry there is: nothing is built on a tail that was cut."""
    row = book.account(account)
    if row is None:
        known = ", ".join(map(repr, book.names())) or "none yet"
        raise LedgerError(
            f"There is no account {account!r} in this ledger; it has {known}. Open it with open_account first."
        )
    last = book.entry(account, row.seq)
    if last is None or digest_of(last.record) != row.head:
        raise _corrupted(account, f"its last entry (number {row.seq}) is missing or changed")
    return row


def _append(book: Book, row: AccountRow, kind: Kind, body: Mapping[str, JsonValue]) -> AccountRow:
    """Append an entry; the row with the new head is for the caller to write."""
    raw = Entry(row.account, row.seq + 1, utc_now(), kind, row.head, body).raw()
    book.append(row.account, raw)
    return replace(row, seq=raw.seq, head=raw.digest)


def _entry(book: Book, account: str, seq: int) -> Entry | None:
    raw = book.entry(account, seq)
    try:
        return None if raw is None else decode(raw)
    except LedgerCorrupted as error:
        raise _corrupted(account, f"of entry {seq}, {error}") from error


def _charged_entry(book: Book, account: str, seq: int) -> Entry | None:
    found = _entry(book, account, seq)
    return found if found is not None and found.kind == "charged" else None


def _corrupted(account: str, what: str) -> LedgerCorrupted:
    return LedgerCorrupted(
        f"The chain of account {account!r} does not hold: {what}. Nothing was charged. Run verify() for the full list, and "
        "go back to a copy of the ledger that verifies."
    )
