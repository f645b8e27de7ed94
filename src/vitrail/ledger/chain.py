"""The chain inside a transaction: lock its account, append to it, read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..accounting import JsonValue
from ..errors import LedgerCorrupted, LedgerError
from .book import AccountRow, Book
from .entries import Entry, Kind, decode, digest_of, utc_now


def locked(book: Book, account: str) -> AccountRow:
    """The account's row, if it exists and its head is the last entry there is: nothing is built on a tail that was cut."""
    row = book.account(account)
    if row is None:
        known = ", ".join(map(repr, book.names())) or "none yet"
        raise LedgerError(
            f"There is no account {account!r} in this ledger; it has {known}. Open it with open_account first."
        )
    last = book.entry(account, row.seq)
    if last is None or digest_of(last.record) != row.head:
        raise corrupted(account, f"its last entry (number {row.seq}) is missing or changed")
    if book.entry(account, row.seq + 1) is not None:  # half of a transaction: the file was copied while it was written
        raise corrupted(account, f"entries follow its head (number {row.seq})")
    return row


def append(book: Book, row: AccountRow, kind: Kind, body: Mapping[str, JsonValue]) -> AccountRow:
    """Append an entry; the row with the new head is for the caller to write."""
    raw = Entry(row.account, row.seq + 1, utc_now(), kind, row.head, body).raw()
    book.append(row.account, raw)
    return replace(row, seq=raw.seq, head=raw.digest)


def entry_of(book: Book, account: str, seq: int) -> Entry | None:
    """One entry, checked."""
    raw = book.entry(account, seq)
    try:
        return None if raw is None else decode(raw)
    except LedgerCorrupted as error:
        raise corrupted(account, f"of entry {seq}, {error}") from error


def corrupted(account: str, what: str) -> LedgerCorrupted:
    """A chain that does not hold, in a sentence."""
    return LedgerCorrupted(
        f"The chain of account {account!r} does not hold: {what}. Run verify() for the full list, and go back to a copy of "
        "the ledger that verifies."
    )
