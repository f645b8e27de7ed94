"""What a back-end must be able to do: keep rows, inside one transaction. It decides nothing.

A :class:`Book` is one open transaction. Either everything written to it happens, durably, or nothing does; and while one
is open for writing, no other transaction can write to the same account. ``operations`` decides what to write.

Beside the entries a book keeps running totals (so that a charge costs the same however long the chain is). They are a
convenience and never the authority: ``verification`` adds them up again from the chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..accounting import Cost
from ..guarantee import Budget, Neighbours
from .entries import RawEntry
from .parts import Part


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account's running totals and the head of its chain."""

    account: str
    budget: Budget
    neighbours: Neighbours
    capacity: Cost
    spent: Cost
    n_questions: int
    seq: int
    head: str


@dataclass(frozen=True, slots=True)
class AnalystRow:
    """An analyst's running totals in one account, and the cap that holds now."""

    account: str
    analyst: str
    spent: Cost
    cap: Budget | None = None
    capacity: Cost | None = None


@dataclass(frozen=True, slots=True)
class PartRow:
    """What was charged to one part of the rows, or, where ``analyst`` is not empty, what counts against that analyst."""

    account: str
    analyst: str
    part: Part
    spent: Cost


@dataclass(frozen=True, slots=True)
class KeptRow:
    """An analyst's own work under a name, and the entry that recorded its digest."""

    account: str
    analyst: str
    name: str
    kept_seq: int
    content: bytes


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """Stored bytes, the charge that paid for them, and the entry that recorded their digest."""

    account: str
    charge_seq: int
    released_seq: int
    key: str | None
    content: bytes


class Book(Protocol):
    """One open transaction of a back-end."""

    def names(self) -> tuple[str, ...]:
        """Every account that any row names, sorted."""

    def account(self, account: str) -> AccountRow | None:
        """The account's row, locked against other writers until the transaction ends."""

    def put_account(self, row: AccountRow, *, new: bool) -> None:
        """Write the account's row."""

    def analyst(self, account: str, analyst: str) -> AnalystRow | None:
        """The analyst's row."""

    def analysts(self, account: str) -> list[AnalystRow]:
        """Every analyst's row, by name."""

    def put_analyst(self, row: AnalystRow, *, new: bool) -> None:
        """Write the analyst's row."""

    def parts_of(self, account: str, analyst: str, partition: str) -> list[PartRow]:
        """The rows of one partition, of an analyst or (empty text) the account itself."""

    def parts(self, account: str) -> list[PartRow]:
        """Every part's row, the account's own and the analysts'."""

    def put_part(self, row: PartRow, *, new: bool) -> None:
        """Write a part's row."""

    def entry(self, account: str, seq: int) -> RawEntry | None:
        """One entry."""

    def entries(self, account: str) -> Iterator[RawEntry]:
        """The whole chain, by sequence number."""

    def append(self, account: str, entry: RawEntry) -> None:
        """Write an entry; its number must be free."""

    def release_under(self, account: str, key: str, analyst: str) -> ReleaseRow | None:
        """The release stored under ``key``: the first that the analyst has seen, or else the first stored."""

    def has_release(self, account: str, charge_seq: int) -> bool:
        """Whether that charge's release is stored."""

    def releases(self, account: str) -> Iterator[ReleaseRow]:
        """Every release, by charge."""

    def put_release(self, row: ReleaseRow) -> None:
        """Store a release."""

    def has_seen(self, account: str, charge_seq: int, analyst: str) -> bool:
        """Whether the analyst was handed that charge's release before."""

    def sightings(self, account: str) -> set[tuple[int, str]]:
        """Every (charge, analyst) pair that was handed over."""

    def put_sighting(self, account: str, charge_seq: int, analyst: str) -> None:
        """Record that the analyst was handed that charge's release."""

    def kept(self, account: str, analyst: str, name: str) -> KeptRow | None:
        """What the analyst keeps under that name."""

    def all_kept(self, account: str) -> Iterator[KeptRow]:
        """Everything that is kept, by analyst and name."""

    def put_kept(self, row: KeptRow, *, new: bool) -> None:
        """Keep something under a name."""
