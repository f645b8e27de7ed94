"""Disjoint parts of the rows: questions to different parts cost the account as much as the dearest part alone.

*Which row is where.* A row's part is a public hash of that row's own canonical content (``part_indices``: the float64 values
that ``schema.read`` gives, one zero, one NaN) and of the partition's name. Its position, the other rows and their number
play no role. So when a row is added or removed, exactly one part gains or loses it, and every other part has the same rows
in the same order: its releases follow the same law. ``accounting.cost`` proves from this that the rule of the account,

    charges to the whole data + for every partition, the largest sum of charges to one of its parts,

is a sound filter, however questions are chosen. Equal rows share a part, so parts of data with few distinct rows are
uneven.

*Which partitions are the same.* The maximum may be taken only over parts that are disjoint for sure: parts of one function
of one kind of row. A partition is therefore known by a digest of the dataset's name and version, the schema, its own name
and the number of parts; if any of these differs, charges add up as if each went to the whole data. The version is in it
because a person whose values change may change parts: rows that change need a new version, as they do for stored answers,
and files that were written since a part was made are refused. (Databases do not say when a table was written.)

*Replace-one is refused*: the row that goes and the row that comes may lie in different parts, both would change, and the
dearest part would be too little. *A declared number of rows per person is refused* for the same reason: a person's rows have
hashes of their own and may lie in several parts. Where rows carry their persons (``rows.persons``), a person's part is a
hash of their name, and all their rows lie there. *Parts of parts are refused*: the account's rule knows one level.

*Row counts.* How many rows a part has is private. Its public count is the dataset's, divided: max(1, round(m0 / k)).

Tests: tests/vault/test_parts.py, tests/audit/test_parts_audit.py.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..accounting.neighbours import check_unit_counts_once, is_exchange
from ..errors import InvalidInput
from ..ledger import Part
from ..ledger.entries import MOST_PARTS
from .public_facts import PublicFacts
from .rows.sources import MemoryRows, RowSource, recut

LONGEST_NAME = 100


def partition(
    facts: PublicFacts, dataset: str, version: str, *, name: str, count: int, of: Part | None = None
) -> tuple[Part, ...]:
    """The parts of a partition, by their public description, if it can be split soundly; ``of`` is the part it splits.

    Examples
    --------
    >>> from vitrail.schema import Numeric, Schema
    >>> facts = PublicFacts(Schema({"age": Numeric(0, 9)}), None, 100, "add-remove", 64)
    >>> [str(part) for part in partition(facts, "ages", "1", name="halves", count=2)]
    ["part 1 of 2 of 'halves'", "part 2 of 2 of 'halves'"]
    """
    if of is not None:
        raise InvalidInput(
            f"this is {of} already; parts of parts are not accounted for. Split the data itself into more parts"
        )
    check_unit_counts_once(facts.neighbours, "rows of one person may lie in several parts", "ask the whole data")
    if is_exchange(facts.neighbours):
        raise InvalidInput(
            f"neighbours is {facts.neighbours!r}; disjoint parts share a budget under 'add-remove' only, because a row "
            "that is exchanged may leave one part and turn up in another. Ask the whole data, or open it with "
            "neighbours='add-remove'"
        )
    _checks.whole("count", count, most=MOST_PARTS, of="parts")
    if count < 2:
        raise InvalidInput("count of parts is 1; a single part is the data itself: ask that, or choose 2 parts or more")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(f"name of a partition is {name!r}; give it a short name, for example 'thirds'")
    identity: dict[str, JsonValue] = {"format": 1, "dataset": dataset, "version": version}
    identity |= {} if facts.person is None else {"person": facts.person}  # by another column a row has another part
    digest = digest_of({**identity, "schema": facts.schema.digest(), "name": name, "count": int(count)})
    return tuple(Part(digest, name, index, int(count)) for index in range(count))


def digest_of(fields: dict[str, JsonValue]) -> str:
    """A name for public facts that changes with any of them."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, allow_nan=False).encode()).hexdigest()


def identity_of(facts: PublicFacts, dataset: str, version: str, part: Part | None) -> dict[str, JsonValue]:
    """What makes these rows other rows than another dataset's, or another part's."""
    about: dict[str, JsonValue] = {
        "dataset": dataset,
        "version": version,
        "schema": facts.schema.digest(),
        "target": facts.target,
        "n_rows_public": facts.n_rows_public,
        "neighbours": facts.neighbours if facts.person is None else [facts.neighbours, facts.person],
    }
    return about if part is None else {**about, "part": part.to_json()}


READ_AT_ONCE = 4096
_NAN_BITS = np.uint64(0x7FF8000000000000)
_STEP = np.uint64(0x9E3779B97F4A7C15)


def salt_of(name: str) -> int:
    """What a partition's name puts into every hash, so that partitions of different names are independent."""
    return int.from_bytes(hashlib.sha256(f"vitrail partition 1 {name}".encode()).digest()[:8], "big")


def part_indices(raw: Floats, salt: int, count: int) -> NDArray[np.int64]:
    """The part of every row, from that row's values alone: position, neighbours and their number play no role.

    Values are hashed column by column with the mixing function of SplitMix64 (Steele, Lea & Flood 2014): integer
    arithmetic, the same on every machine. Equal rows get equal parts: 0.0 and -0.0 are one value, and so is every NaN.
    That the parts are about equally large is the hash's merit; privacy needs only that it is public and looks at one row.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0], [np.nan, 1.0]])
    >>> found = part_indices(rows, salt_of("thirds"), 3)
    >>> bool(found[0] == found[1]), bool((found == part_indices(rows[::-1], salt_of("thirds"), 3)[::-1]).all())
    (True, True)
    """
    mixed = np.full(len(raw), salt, dtype=np.uint64)
    for column in raw.T:
        bits = (column + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        bits[np.isnan(column)] = _NAN_BITS
        mixed = _mix((mixed ^ bits) + _STEP)
    return (mixed % np.uint64(count)).astype(np.int64)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class PartRows(RowSource):
    """One part of another source.

    Its chunks are cut from the part's own rows, in their order: what a walk sees is a function of those rows and of nothing
    else, so a row of another part changes nothing here, not even where blocks begin.
    """

    def __init__(self, source: RowSource, n_columns: int, *, name: str, index: int, count: int) -> None:
        self._source, self._n_columns, self.keeps_order = source, n_columns, source.keeps_order
        self._salt, self._index, self._count = salt_of(name), index, count
        self._state = source.state()
        self._held: MemoryRows | None = None

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows; only the last may be shorter."""
        if not isinstance(self._source, MemoryRows):
            return recut(self._mine(), rows)
        if self._held is None:  # rows in memory are sorted into parts once
            self._held = MemoryRows(np.concatenate([*self._mine(), self._source.everything()[:0]]))
        return self._held.chunks(rows)

    def _mine(self) -> Iterator[Floats]:
        for raw in self._source.chunks(READ_AT_ONCE):
            own = raw if raw.shape[1] == self._n_columns else raw[:, -1:]  # the token of the row's person
            yield raw[part_indices(own, self._salt, self._count) == self._index]

    @property
    def base(self) -> RowSource:
        """As of the source."""
        return self._source.base

    def over(self, base: RowSource, share: int) -> RowSource:
        """The rows of the same part, among some of the rows."""
        made = copy.copy(self)
        made._source, made._held = self._source.over(base, share), None
        return made

    def state(self) -> object:
        """As of the source."""
        return self._source.state()

    def changed(self) -> bool:
        """Whether the source was written since this part was made."""
        return self._source.state() != self._state

    def check(self) -> None:
        """As the source does."""
        self._source.check()
