"""Which part of the rows a charge is for. The rule of what parts cost together is ``accounting.parallel``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..accounting import JsonValue
from ..errors import InvalidInput, LedgerCorrupted, LedgerError
from ..guarantee import Neighbours

MOST_PARTS = 10_000
_PARTITION = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a partition of the rows.

    Parameters
    ----------
    partition : str
        A hex digest of everything that decides which row lies in which part, so that two partitions with the same digest
        are the same. Partitions with different digests compose like questions to the whole data.
    name : str
        What the partition is called.
    index : int
        Which part, from 0.
    count : int
        How many there are.

    Examples
    --------
    >>> str(Part("ab" * 32, "thirds", 1, 3))
    "part 2 of 3 of 'thirds'"
    """

    partition: str
    name: str
    index: int
    count: int

    def __str__(self) -> str:
        return f"part {self.index + 1} of {self.count} of {self.name!r}"

    @property
    def place(self) -> tuple[str, int]:
        """Partition and index."""
        return self.partition, self.index

    def to_json(self) -> dict[str, JsonValue]:
        """The part as plain JSON values."""
        return {"partition": self.partition, "name": self.name, "index": self.index, "count": self.count}


def check_part(part: Part, neighbours: Neighbours) -> Part:
    """A part, if it is one and the account's promise allows it."""
    if not isinstance(part, Part):
        raise InvalidInput(f"part is a {type(part).__name__}; it must be a vitrail.ledger.Part, or None for the whole data")
    if not _makes_sense(part):
        raise InvalidInput(
            f"the part {part!r} is none; a partition has a digest of 64 lower-case hex digits, a name and 2 to {MOST_PARTS} "
            "parts, and an index counts them from 0"
        )
    if neighbours != "add-remove":
        raise LedgerError(
            f"Disjoint parts share a budget under add-remove neighbours only; this account has {neighbours!r}, where the "
            "row that is exchanged may turn up in another part."
        )
    return part


def part_from_json(fields: JsonValue) -> Part:
    """The part that ``Part.to_json`` wrote, or :class:`LedgerCorrupted`."""
    if isinstance(fields, dict) and set(fields) == {"partition", "name", "index", "count"}:
        part = Part(**fields)  # type: ignore[arg-type]
        if _makes_sense(part):
            return part
    raise LedgerCorrupted("it names a part that cannot be read")


def _makes_sense(part: Part) -> bool:
    return (
        isinstance(part.partition, str)
        and _PARTITION.fullmatch(part.partition) is not None
        and isinstance(part.name, str)
        and bool(part.name)
        and type(part.count) is int
        and type(part.index) is int
        and 2 <= part.count <= MOST_PARTS
        and 0 <= part.index < part.count
    )
