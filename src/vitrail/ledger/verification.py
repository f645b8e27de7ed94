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

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ..errors import LedgerCorrupted
from .book import Book
from .entries import Part, RawEntry, decode
from .high_water import HighWater
from .results import Verification, VerifiedAccount
from .tables import AnalystRow, ChargeRow, KeptRow, PartRow, ReleaseRow, ReservationRow, SightingRow
from .tally import Tally

_K = TypeVar("_K")
_V = TypeVar("_V")


def verify(
    book: Book,
    published: Mapping[str, str] | None = None,
    *,
    records: Sequence[HighWater] = (),
    place: str | None = None,
) -> Verification:
    """Walk every chain that the book holds.

    Parameters
    ----------
    book : Book
        An open transaction.
    published : mapping of str to str, optional
        Heads that were published earlier, by account.
    records : sequence of HighWater
        What is known from outside about these accounts, and about others, which are passed over.
    place : str, optional
        Where this ledger is: an account that was recorded there must be there.
    """
    problems: list[str] = []
    found: list[VerifiedAccount] = []
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
            _compare_analysts(book, tally)
            _compare_parts(book, tally)
            _compare_reservations(book, tally)
            _compare_releases(book, tally)
            _compare_kept(book, tally)
        except Exception as error:  # whatever a damaged store throws is a finding, not an accident
            tally.problems.append(f"Account {name!r} cannot be read to its end ({_reason(error)}).")
        if name in wanted and wanted.pop(name) not in digests:
            tally.problems.append(f"The history of account {name!r} does not pass through the head that was published.")
        recorded = [one for one in records if one.account == name and (one.opening in digests or one.ledger == place)]
        tally.problems += [_older(tally, one) for one in recorded if one.head not in digests]
        problems += tally.problems
        longest = max((one.seq for one in recorded), default=None)
        found.append(
            VerifiedAccount(name, tally.seq, tally.n_questions, len(tally.releases), tally.spent, tally.head, longest)
        )
    problems += [
        f"Account {one.account!r}, recorded in this ledger with {one.seq} entries, is missing."
        for one in records
        if one.ledger == place and one.account not in names
    ]
    problems += [f"Account {name!r}, whose head was published, is not in this ledger." for name in wanted]
    return Verification(tuple(problems), tuple(found))


def list_charges(book: Book) -> None:
    """Fill the look-up of charges from the chains, for a ledger that was written before there was one."""
    for name in book.names():
        tally = Tally(name)
        _walk(book, tally, set())
        for row in tally.listed_charges().values():
            book.add(row)


def _older(tally: Tally, recorded: HighWater) -> str:
    """What is wrong with a history that a record outside the ledger contradicts."""
    found = f"ends at entry {tally.seq}" if tally.seq < recorded.seq else "has another history"
    return (
        f"Account {tally.account!r} {found}; a record outside the ledger knows {recorded.seq} entries of it, in "
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
    pairs = {
        "budget": (row.budget, tally.budget),
        "neighbours": (row.neighbours, tally.neighbours),
        "capacity": (row.capacity, tally.capacity),
        "spent": (row.spent, tally.spent),
        "n_questions": (row.n_questions, tally.n_questions),
    }
    tally.problems += [
        f"The {name} of account {tally.account!r} is kept as {kept}; its entries say {told}."
        for name, (kept, told) in pairs.items()
        if kept != told
    ]


def _compare_analysts(book: Book, tally: Tally) -> None:
    """Check the analysts' totals and caps, and who has seen what, against the chain."""
    _compare(
        tally,
        lambda name: f"What analyst {name!r} has spent of account {tally.account!r}, or the cap,",
        {row.analyst: (row.spent, row.cap, row.capacity) for row in book.rows(AnalystRow, account=tally.account)},
        {name: (line.spent, line.cap, line.capacity) for name, line in tally.analysts.items()},
    )
    sightings = {(row.charge_seq, row.analyst) for row in book.rows(SightingRow, account=tally.account)}
    for charge_seq, name in sightings ^ tally.sightings:
        tally.problems.append(
            f"Whether analyst {name!r} has seen the release of charge {charge_seq} of account {tally.account!r} is kept "
            "otherwise than its entries say."
        )


def _compare_parts(book: Book, tally: Tally) -> None:
    """Check what the parts were charged against the chain."""

    def what(key: tuple[str, Part]) -> str:
        whose = f"analyst {key[0]!r} on account" if key[0] else "account"
        return f"What {whose} {tally.account!r} has spent on {key[1]}"

    _compare(
        tally,
        what,
        {(row.analyst, row.part): row.spent for row in book.rows(PartRow, account=tally.account)},
        tally.part_totals(),
    )


def _compare_reservations(book: Book, tally: Tally) -> None:
    """Check what reservations hold, and which charges can be looked up, against the chain."""
    _compare(
        tally,
        lambda seq: f"What reservation {seq} of account {tally.account!r} holds",
        {row.reserved_seq: row for row in book.rows(ReservationRow, account=tally.account)},
        tally.reservations,
    )
    if not book.lacks(ChargeRow):  # else a ledger of an earlier version: its first writer lists them
        _compare(
            tally,
            lambda seq: f"Charge {seq} of account {tally.account!r}",
            {row.charge_seq: row for row in book.rows(ChargeRow, account=tally.account)},
            tally.listed_charges(),
        )


def _compare(tally: Tally, what: Callable[[_K], str], kept: Mapping[_K, _V], told: Mapping[_K, _V]) -> None:
    """Name every key under which the tables keep something else than the entries say."""
    tally.problems += [
        f"{what(key)} is kept as {kept.get(key)}; its entries say {told.get(key)}."
        for key in sorted(kept.keys() | told.keys(), key=repr)
        if kept.get(key) != told.get(key)
    ]


def _compare_kept(book: Book, tally: Tally) -> None:
    """Check what analysts keep against the digests that were recorded last."""
    missing = dict(tally.kept)
    for row in book.stream(KeptRow, tally.account):
        recorded = missing.pop((row.analyst, row.name), None)
        found = (row.kept_seq, hashlib.sha256(row.content).hexdigest(), len(row.content))
        if recorded is None or found != (recorded.released_seq, recorded.sha256, recorded.size):
            reason = "no entry records it" if recorded is None else "it does not match the entry that recorded it last"
            tally.problems.append(
                f"What analyst {row.analyst!r} keeps as {row.name!r} in account {tally.account!r} cannot stand: {reason}."
            )
    tally.problems += [
        f"What analyst {analyst!r} keeps as {name!r} in account {tally.account!r} was recorded and is missing."
        for analyst, name in sorted(missing)
    ]


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
    if row.released_seq != recorded.released_seq:
        return f"it was recorded by entry {recorded.released_seq} and names entry {row.released_seq}"
    if row.key != charged.key:
        return "it is kept under another key than it was charged with"
    if hashlib.sha256(row.content).hexdigest() != recorded.sha256 or len(row.content) != recorded.size:
        return "its bytes do not match the digest that was recorded"
    return None


def _reason(error: Exception) -> str:
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
