"""Walking every chain of a ledger and naming what does not hold.

What is checked, for every account: each entry's digest, number and link to the one before; the price of every event; the
caps at every entry; every total (of parts, too), the head, the caps and the sightings that the back-end keeps beside the
chain; every stored release, and everything that analysts keep, against its recorded digest. A ledger that is damaged is
reported on, never raised about.

What cannot be seen from inside: somebody who can rewrite the whole file can rewrite the whole history, heads and all, or
put an older copy in its place. The defence is a head that is kept elsewhere: a history that no longer passes through it is
named. A user's own records (``high_water``) are such heads, and are compared where there are any. Heads that were published
(:attr:`Verification.heads`) and are passed back as ``published`` convince others, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import LedgerCorrupted
from .book import Book
from .entries import RawEntry, content_to_json, decode
from .high_water import HighWater
from .results import Verification, VerifiedAccount
from .tables import TABLES, AnalystRow, ChargeRow, KeptRow, PartRow, ReleaseRow, ReservationRow, SightingRow
from .tally import Tally, TallyRow


def verify(
    book: Book,
    published: Mapping[str, str] | None = None,
    *,
    records: Sequence[HighWater] = (),
    ledger: str | None = None,
) -> Verification:
    """Walk every chain that the book holds.

    ``published`` are heads that were published earlier, by account; ``records`` what is known from outside about these
    accounts, and about others, which are passed over; ``ledger`` is where this one is: an account that was recorded there
    must be there.
    """
    problems: list[str] = []
    accounts: list[VerifiedAccount] = []
    wanted = dict(published or {})
    try:
        names = book.names()
    except Exception as error:
        return Verification((f"The accounts cannot be read ({_reason(error)}).",), ())
    for name in names:
        tally = Tally(name)
        digests: set[str] = set()
        try:
            _walk(book, tally, digests)
            _compare_totals(book, tally)
            _compare_rows(book, tally)
            _compare_releases(book, tally)
            _compare_kept(book, tally)
        except Exception as error:  # whatever a damaged store throws is a finding, not an accident
            tally.problems.append(f"Account {name!r} cannot be read to its end ({_reason(error)}).")
        if name in wanted and wanted.pop(name) not in digests:
            tally.problems.append(f"The history of account {name!r} does not pass through the head that was published.")
        known = [mark for mark in records if mark.account == name and (mark.opening in digests or mark.ledger == ledger)]
        tally.problems += [_older(tally, mark) for mark in known if mark.head not in digests]
        problems += tally.problems
        longest = max((mark.seq for mark in known), default=None)
        accounts.append(
            VerifiedAccount(name, tally.seq, tally.n_questions, len(tally.releases), tally.spent, tally.head, longest)
        )
    problems += [
        f"Account {mark.account!r}, recorded in this ledger with {mark.seq} entries, is missing."
        for mark in records
        if mark.ledger == ledger and mark.account not in names
    ]
    problems += [f"Account {name!r}, whose head was published, is not in this ledger." for name in wanted]
    return Verification(tuple(problems), tuple(accounts))


def _older(tally: Tally, recorded: HighWater) -> str:
    """What is wrong with a history that a record outside the ledger contradicts."""
    differs = f"ends at entry {tally.seq}" if tally.seq < recorded.seq else "has another history"
    return (
        f"Account {tally.account!r} {differs}; a record outside the ledger knows {recorded.seq} entries of it, in "
        f"{recorded.ledger}. This is an older copy or another ledger, and must not be spent from."
    )


def _walk(book: Book, tally: Tally, digests: set[str]) -> None:
    """Check the links of the chain and fold it."""
    for raw in book.stream(RawEntry, tally.account):
        expected = tally.seq + 1
        if raw.seq != expected:
            tally.problems.append(f"Entry {expected} of account {tally.account!r} is missing: entry {raw.seq} follows.")
        previous = tally.head
        try:
            entry = decode(raw)
        except LedgerCorrupted as error:
            tally.complain(raw.seq, str(error))
            tally.seq, tally.head = raw.seq, raw.digest
            continue
        if entry.account != tally.account:
            tally.complain(entry.seq, f"it was written for account {entry.account!r}")
        if entry.previous != previous:
            tally.complain(entry.seq, "it does not follow the entry before it")
        if entry.seq == 1 and entry.kind != "opened":
            tally.complain(1, "it does not open the account")
        tally.add(entry)
        digests.add(raw.digest)


def _compare_totals(book: Book, tally: Tally) -> None:
    """Check the running totals and the head of the account against the chain."""
    row = book.account(tally.account)
    if row is None:
        tally.problems.append(f"Account {tally.account!r} has entries and no account row.")
        return
    if (row.seq, row.head) != (tally.seq, tally.head):
        tally.problems.append(
            f"The chain of account {tally.account!r} ends at entry {tally.seq}; its head says entry {row.seq}"
            f"{' with another digest' if row.seq == tally.seq else ''}. Entries at its end were removed, added or changed."
        )
    for name in ("budget", "neighbours", "capacity", "spent", "n_questions"):
        kept, counted = getattr(row, name), getattr(tally, name)
        if kept != counted:
            tally.problems.append(f"The {name} of account {tally.account!r} is kept as {kept}; its entries say {counted}.")


def _compare_rows(book: Book, tally: Tally) -> None:
    """Check the analysts' and parts' totals, the reservations and the look-ups against the chain."""
    for kind, rows in tally.rows().items():
        keys = [column.name for column in TABLES[kind].primary_key]
        kept, counted = (
            {tuple(str(getattr(row, key)) for key in keys): row for row in every}
            for every in (book.rows(kind, account=tally.account), rows)
        )
        tally.problems += [
            f"{_what(kept.get(key) or counted[key])} is kept as {kept.get(key)}; its entries say {counted.get(key)}."
            for key in sorted(kept.keys() | counted.keys())
            if kept.get(key) != counted.get(key)
        ]


def _what(row: TallyRow) -> str:
    """What a row is about, for a sentence."""
    here = f"account {row.account!r}"
    match row:
        case AnalystRow():
            return f"What analyst {row.analyst!r} has spent of {here}, or the cap,"
        case PartRow():
            return f"What {f'analyst {row.analyst!r} on ' if row.analyst else ''}{here} has spent on {row.part}"
        case SightingRow():
            return f"Whether analyst {row.analyst!r} has seen the release of charge {row.charge_seq} of {here}"
        case ReservationRow():
            return f"What reservation {row.reserved_seq} of {here} holds"
        case ChargeRow():
            return f"Charge {row.charge_seq} of {here}"


def _compare_kept(book: Book, tally: Tally) -> None:
    """Check what analysts keep against the digests that were recorded last."""
    missing = dict(tally.kept)
    for row in book.stream(KeptRow, tally.account):
        recorded = missing.pop((row.analyst, row.name), None)
        if recorded != (row.kept_seq, content_to_json(row.content)):
            reason = "no entry records it" if recorded is None else "it does not match the entry that recorded it last"
            tally.problems.append(f"{_kept_words(tally, row.analyst, row.name)} cannot stand: {reason}.")
    tally.problems += [f"{_kept_words(tally, *key)} was recorded and is missing." for key in sorted(missing)]


def _kept_words(tally: Tally, analyst: str, name: str) -> str:
    return f"What analyst {analyst!r} keeps as {name!r} in account {tally.account!r}"


def _compare_releases(book: Book, tally: Tally) -> None:
    """Check every stored release against its charge and its recorded digest."""
    missing = set(tally.releases)
    for row in book.stream(ReleaseRow, tally.account):
        missing.discard(row.charge_seq)
        if reason := _wrong_release(row, tally):
            tally.problems.append(
                f"The release stored for charge {row.charge_seq} of account {tally.account!r} cannot stand: {reason}."
            )
    tally.problems += [
        f"The release of charge {seq} of account {tally.account!r} was recorded and is missing." for seq in sorted(missing)
    ]


def _wrong_release(row: ReleaseRow, tally: Tally) -> str | None:
    charged, recorded = tally.charges.get(row.charge_seq), tally.releases.get(row.charge_seq)
    if charged is None:
        return "there is no such charge"
    if recorded is None:
        return "no entry records it"
    if row.released_seq != recorded[0]:
        return f"it was recorded by entry {recorded[0]} and names entry {row.released_seq}"
    if row.key != charged.key:
        return "it is kept under another key than it was charged with"
    matches = recorded == (row.released_seq, content_to_json(row.content))
    return None if matches else "its bytes do not match the digest that was recorded"


def _reason(error: Exception) -> str:
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
