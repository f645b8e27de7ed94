"""Disjoint parts of the rows: questions to different parts cost the account as much as the dearest part alone.

*Which row is where.* A row's part is a public hash of that row's own canonical content (``rows.part``: the float64 values
that ``schema.read`` gives, one zero, one NaN) and of the partition's name. Its position, the other rows and their number
play no role. So when a row is added or removed, exactly one part gains or loses it, and every other part has the same rows
in the same order: its releases follow the same law. ``accounting.parallel`` proves from this that the rule of the account,

    charges to the whole data + for every partition, the largest sum of charges to one of its parts,

is a sound filter, however questions are chosen. Equal rows share a part, so parts of data with few distinct rows are uneven.

*Which partitions are the same.* The maximum may be taken only over parts that are disjoint for sure: parts of one function
of one kind of row. A partition is therefore known by a digest of the dataset's name and version, the schema, its own name
and the number of parts; if any of these differs, charges add up as if each went to the whole data. The version is in it
because a person whose values change may change parts: rows that change need a new version, as they do for stored answers,
and Parquet files that were written since a part was made are refused.

*Replace-one is refused*: the row that goes and the row that comes may lie in different parts, both would change, and the
dearest part would be too little. *Parts of parts are refused*: the account's rule knows one level.

*Row counts.* How many rows a part has is private. Its public count is the dataset's, divided: max(1, round(m0 / k)).

Tests: tests/vault/test_parts.py, tests/audit/test_parts_audit.py.
"""

from __future__ import annotations

import hashlib
import json

from .. import _checks
from ..errors import InvalidInput
from ..ledger import Part
from ..ledger.entries import MOST_PARTS
from ..schema import Schema
from .setting import Setting

LONGEST_NAME = 100


def partition(dataset: str, version: str, schema: Schema, *, name: str, count: int) -> tuple[Part, ...]:
    """The parts of a partition, by their public description.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> [str(part) for part in partition("ages", "1", Schema({"age": Numeric(0, 9)}), name="halves", count=2)]
    ["part 1 of 2 of 'halves'", "part 2 of 2 of 'halves'"]
    """
    _checks.whole("count", count, most=MOST_PARTS, of="parts")
    if count < 2:
        raise InvalidInput("count of parts is 1; a single part is the data itself: ask that, or choose 2 parts or more")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(f"name of a partition is {name!r}; give it a short name, for example 'thirds'")
    identity = {
        "format": 1,
        "dataset": dataset,
        "version": version,
        "schema": schema.digest(),
        "name": name,
        "count": int(count),
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return tuple(Part(digest, name, index, int(count)) for index in range(count))


def check_partition_allowed(setting: Setting, part: Part | None) -> None:
    """Refuse to split what cannot be split soundly."""
    if part is not None:
        raise InvalidInput(
            f"this is {part} already; parts of parts are not accounted for. Split the data itself into more parts"
        )
    if setting.neighbours != "add-remove":
        raise InvalidInput(
            f"neighbours is {setting.neighbours!r}; disjoint parts share a budget under 'add-remove' only, because a row "
            "that is exchanged may leave one part and turn up in another. Ask the whole data, or open it with "
            "neighbours='add-remove'"
        )


def part_row_count(n_rows_public: int, count: int) -> int:
    """The declared row count of a part.

    Examples
    --------
    >>> part_row_count(1000, 3), part_row_count(2, 5)
    (333, 1)
    """
    return max(1, round(n_rows_public / count))
