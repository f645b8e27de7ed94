"""The entries behind a statement: read when they are asked for, and checked as they are read.

A statement costs the same however long the chain is, so it does not hold the entries but a :class:`Chain`: where they are,
how many there were, and the digest of the last (the head). A ledger never changes or removes an entry, so they can be read
later, while the ledger goes on: what was appended since has a higher number and is not read. Each batch is a transaction of
its own, because a reader of a SQLite file keeps writers waiting.

*Why what is read later is what there was.* Every entry names the digest of the one before it, and its own digest covers that
name. Entries that hang together, the last with the digest that the statement has, are those of the statement; anything else
is an error. That holds for the newest few as well, which are read from the head backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..errors import LedgerCorrupted
from .entries import GENESIS, Entry, RawEntry, corrupted, decode

Reader: TypeAlias = Callable[[int, int], list[RawEntry]]
"""Reads the entries with these numbers, both included, in order; those that are there."""

_FORWARDS, _BACKWARDS = 1000, 50  # entries a transaction: backwards somebody looks for the newest few


class Chain:
    """The entries of an account up to a head.

    Pickling reads them: another process may have no way to the ledger.

    Parameters
    ----------
    account : str
        The account.
    n_entries : int
        How many there are.
    head : str
        The digest of the last.
    source : callable or tuple of Entry
        What reads them, or the entries themselves.

    Examples
    --------
    >>> first = Entry("adult", 1, "2026-01-01T00:00:00.000000+00:00", "opened", GENESIS, {})
    >>> chain = Chain("adult", 1, first.digest, lambda first_seq, last_seq: [first.raw()])
    >>> chain.entries == tuple(chain.backwards()) == (first,)
    True
    """

    __slots__ = ("_account", "_entries", "_head", "_n_entries", "_read")

    def __init__(self, account: str, n_entries: int, head: str, source: Reader | tuple[Entry, ...]) -> None:
        self._account, self._n_entries, self._head = account, n_entries, head
        self._entries: tuple[Entry, ...] | None = source if isinstance(source, tuple) else None
        self._read: Reader | None = None if isinstance(source, tuple) else source

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, oldest first. Read once."""
        if self._entries is None:
            self._entries = tuple(self.forwards())
        return self._entries

    def forwards(self) -> Iterator[Entry]:
        """All of them, oldest first, of which a few at a time are in memory. Believe them when the last was read."""
        if self._entries is not None:
            yield from self._entries
            return
        previous = GENESIS
        for first in range(1, self._n_entries + 1, _FORWARDS):
            for raw in self._batch(first, min(first + _FORWARDS - 1, self._n_entries)):
                entry = self._decoded(raw)
                self._check_link(entry.seq, entry.previous, previous)
                previous = raw.digest
                yield entry
        if previous != self._head:
            raise self._another_history()

    def backwards(self) -> Iterator[Entry]:
        """All of them, newest first; each is the head's own as it comes."""
        if self._entries is not None:
            yield from reversed(self._entries)
            return
        expected = self._head
        for last in range(self._n_entries, 0, -_BACKWARDS):
            for raw in reversed(self._batch(max(1, last - _BACKWARDS + 1), last)):
                entry = self._decoded(raw)
                if raw.digest != expected and raw.seq == self._n_entries:
                    raise self._another_history()
                self._check_link(raw.seq + 1, expected, raw.digest)
                expected = entry.previous
                yield entry
        self._check_link(1, expected, GENESIS)

    def entry(self, seq: int) -> Entry:
        """One of them, by its number. Its own text and digest are checked, not its place under the head."""
        if self._entries is not None:
            return self._entries[seq - 1]
        (raw,) = self._batch(seq, seq)
        return self._decoded(raw)

    def _batch(self, first: int, last: int) -> list[RawEntry]:
        assert self._read is not None
        rows = self._read(first, last)
        if [raw.seq for raw in rows] != [*range(first, last + 1)]:
            raise corrupted(self._account, f"of its entries {first} to {last} some are missing")
        return rows

    def _decoded(self, raw: RawEntry) -> Entry:
        try:
            return decode(raw)
        except LedgerCorrupted as error:
            raise corrupted(self._account, f"of entry {raw.seq}, {error}") from error

    def _check_link(self, seq: int, names: str, digest: str) -> None:
        if names != digest:
            raise corrupted(self._account, f"entry {seq} does not follow the entry before it")

    def _another_history(self) -> LedgerCorrupted:
        return corrupted(self._account, f"entry {self._n_entries} is not the one that this statement was made with")

    def __reduce__(self) -> tuple[type[Chain], tuple[str, int, str, tuple[Entry, ...]]]:
        return Chain, (self._account, self._n_entries, self._head, self.entries)
