"""What an entry of the ledger is, and how entries are chained.

An entry is a canonical JSON text (sorted keys, no spaces, ASCII, no NaN) that holds everything: the account, the sequence
number, the UTC time, the kind, the body, and the digest of the entry before it. Its digest is the SHA-256 of that text, so
a digest vouches for the whole history up to it: change, drop or insert any entry and every later digest changes.

The vocabulary is frozen: a kind keeps its meaning for ever, and a new meaning is a new kind.

``opened``    the account's budget, neighbour relation and capacity. Always entry 1.
``capped``    an analyst's cap was set; the latest one holds.
``charged``   a question was paid for, before anything was read: analyst, event, question, cost, key; the part, where it
              went to one of several disjoint parts of the rows; the reservation, where it was booked against one.
``released``  the answer to the charge ``of`` was stored: its SHA-256 and size.
``replayed``  an analyst was handed the stored answer of the charge ``of``, and what that counted against the analyst's cap,
              or against what the reservation holds of it.
``joined``    an analyst works on the charge ``of`` of another, whose answer is not stored; counted as a replay is.
``kept``      an analyst's own work on releases was stored under a name: its SHA-256 and size; the latest one holds.
``reserved``  the price of a recipe was set aside: of the account (``cost``) and of the analyst's cap (``counted``).
``finished``  the recipe of the reservation ``of`` is complete; what it did not book was given back.
``freed``     the owner gave back what the reservation ``of`` had not booked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from ..accounting import Cost, Event, JsonValue, event_to_json
from ..accounting.guarantee import Budget
from ..accounting.neighbours import Neighbours, is_exchange, rows_per_person_of
from ..errors import InvalidInput, LedgerCorrupted, LedgerError

FORMAT = "vitrail-ledger/1"
GENESIS = "0" * 64
"""What the first entry of an account names as the digest before it."""

Kind: TypeAlias = Literal[
    "opened", "capped", "charged", "released", "replayed", "joined", "kept", "reserved", "finished", "freed"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
MOST_PARTS = 10_000
LONGEST_NAME = 200
LARGEST_QUESTION = 64 * 1024
LARGEST_KEPT = 64 * 2**20
_COST_FIELDS = ("pico_mu_squared", "pico_epsilon", "quecto_delta")
_PARTITION = re.compile(r"[0-9a-f]{64}")
_HEX_DIGEST = re.compile(r"[0-9a-f]{16,128}")


def canonical_json(value: JsonValue | Mapping[str, JsonValue], what: str = "a ledger entry") -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII only, no NaN.

    Examples
    --------
    >>> canonical_json({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    >>> canonical_json({"a": float("nan")}, "the question")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: the question holds nan at a; JSON has finite numbers only
    """
    return _ENCODER.encode(_plain(value, what, ""))


def _plain(value: object, what: str, path: str) -> JsonValue:
    """A copy made of JSON's own types; anything else would be written in a way that does not read back the same."""
    here = f" at {path}" if path else ""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidInput(f"{what} holds {value!r}{here}; JSON has finite numbers only")
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(item, what, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise InvalidInput(f"{what} has the key {wrong[0]!r}{here}; keys must be text")
        return {key: _plain(item, what, f"{path}.{key}" if path else key) for key, item in value.items()}
    raise InvalidInput(f"{what} holds a {type(value).__name__}{here}; give text, numbers, lists and mappings only")


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry as it is stored: nothing in it is believed until it was checked."""

    account: str
    seq: int
    digest: str
    record: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the bill: what happened (``kind``), when (ISO 8601 text in UTC), and the particulars, plain JSON values.

    ``seq`` is its place in the account's chain, from 1, and ``previous`` the digest of the entry before it.

    Examples
    --------
    >>> entry = Entry("adult", 2, "2026-01-01T00:00:00.000000+00:00", "released", GENESIS, {"of": 1})
    >>> decode(entry.raw()) == entry
    True
    """

    account: str
    seq: int
    time_utc: str
    kind: Kind
    previous: str
    body: Mapping[str, JsonValue]

    @property
    def record(self) -> str:
        """The canonical text that the digest covers."""
        return canonical_json({"format": FORMAT, **{name: getattr(self, name) for name in self.__slots__}})

    @property
    def digest(self) -> str:
        """SHA-256 of the record, in hex."""
        return digest_of(self.record)

    @property
    def analyst(self) -> str | None:
        """Who, where the entry names somebody."""
        name = self.body.get("analyst")
        return name if isinstance(name, str) else None

    @property
    def cost(self) -> Cost:
        """What was charged (zero for every kind but ``charged``)."""
        return cost_from_json(self.body.get("cost")) if self.kind == "charged" else Cost()

    @property
    def part(self) -> Part | None:
        """The part of the rows that was charged or reserved for; None for the whole data, and for every other kind."""
        named = self.kind in ("charged", "reserved") and "part" in self.body
        return part_from_json(self.body["part"]) if named else None

    def raw(self) -> RawEntry:
        """The entry as it is stored."""
        record = self.record
        return RawEntry(self.account, self.seq, digest_of(record), record)


def digest_of(record: str) -> str:
    """SHA-256 of a record, in hex."""
    return hashlib.sha256(record.encode("utf-8", "surrogatepass")).hexdigest()


def utc_now() -> str:
    """The time of an entry: ISO 8601, microseconds, UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def decode(raw: RawEntry) -> Entry:
    """The entry in a stored record, or :class:`LedgerCorrupted` with the reason."""
    if digest_of(raw.record) != raw.digest:
        raise LedgerCorrupted("its text does not match its digest")
    try:
        fields = json.loads(raw.record)
        if fields.pop("format") != FORMAT:
            raise LedgerCorrupted(f"it is not written in the format {FORMAT}")
        entry = Entry(**fields)
        if entry.kind not in KINDS:
            raise LedgerCorrupted(f"its kind {entry.kind!r} is none that this version knows")
        # What ``loads`` made is JSON's own types already, so the encoder writes what ``entry.record`` would, sooner.
        if entry.seq != raw.seq or _ENCODER.encode({"format": FORMAT, **fields}) != raw.record:
            raise LedgerCorrupted("its text is not the canonical text of what it says")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise LedgerCorrupted(f"its text cannot be read ({type(error).__name__})") from error
    return entry


def corrupted(account: str, what: str) -> LedgerCorrupted:
    """A chain that does not hold, in a sentence."""
    return LedgerCorrupted(
        f"The chain of account {account!r} does not hold: {what}. Run verify() for the full list, and go back to a copy of "
        "the ledger that verifies."
    )


def cost_to_json(cost: Cost) -> dict[str, JsonValue]:
    """A cost as plain JSON values.

    Examples
    --------
    >>> cost_from_json(cost_to_json(Cost(5, 0, 7))) == Cost(5, 0, 7)
    True
    """
    return {name: getattr(cost, name) for name in _COST_FIELDS}


def content_to_json(content: bytes) -> dict[str, JsonValue]:
    """What an entry records about stored bytes."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def cost_from_json(fields: JsonValue) -> Cost:
    """The cost that ``cost_to_json`` wrote, or :class:`LedgerCorrupted`."""
    if isinstance(fields, dict) and set(fields) == set(_COST_FIELDS):
        numbers = [number for number in map(fields.get, _COST_FIELDS) if type(number) is int and number >= 0]
        if len(numbers) == len(_COST_FIELDS):
            return Cost(*numbers)
    raise LedgerCorrupted("it holds a cost that is not three whole numbers of at least 0")


def budget_from_json(fields: JsonValue) -> Budget:
    """The budget that ``Budget.to_json`` wrote, or :class:`LedgerCorrupted`."""
    try:
        return Budget(fields["epsilon"], fields["delta"], tuple(fields["training"]))  # type: ignore[index, call-overload, arg-type]
    except (TypeError, KeyError, ValueError) as error:
        raise LedgerCorrupted("it holds a budget that cannot be read") from error


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
    def key(self) -> tuple[str, int]:
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
    if is_exchange(neighbours) or rows_per_person_of(neighbours) > 1:
        raise LedgerError(
            "Disjoint parts share a budget under 'add-remove' only, of rows or of people who count once; this account has "
            f"{neighbours!r}, where one step changes rows of several parts."
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
    if [type(value) for value in (part.partition, part.name, part.index, part.count)] != [str, str, int, int]:
        return False
    named = _PARTITION.fullmatch(part.partition) is not None and part.name != ""
    return named and 2 <= part.count <= MOST_PARTS and 0 <= part.index < part.count


# Public input, checked before anything is charged


def check_name(name: str, what: str) -> str:
    """An account's or analyst's name, if it can be one."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"the name of {what} is {name!r}; it must be printable text of 1 to {LONGEST_NAME} characters, without spaces "
            "at its ends"
        )
    return name


def check_digest(digest: str | None, what: str) -> str | None:
    """A key or the name of a recipe, if it is one."""
    if digest is not None and not (isinstance(digest, str) and _HEX_DIGEST.fullmatch(digest)):
        raise InvalidInput(f"{what} is {digest!r}; it must be None or a digest of 16 to 128 lower-case hex digits")
    return digest


def check_bytes(content: bytes, what: str, most: int | None = None) -> bytes:
    """A release or something to keep, if it is bytes and not too many."""
    if not isinstance(content, bytes):
        raise InvalidInput(f"the {what} is a {type(content).__name__}; it must be bytes")
    if most is not None and len(content) > most:
        raise InvalidInput(f"the {what} takes {len(content)} bytes; it may take {most}: keep it in pieces")
    return content


def check_cost(cost: Cost) -> Cost:
    """A price, if it is one; a price below nothing would be a refund."""
    if not isinstance(cost, Cost) or min(cost.amounts) < 0:
        raise InvalidInput(f"the price is {cost!r}; it must be a Cost of at least nothing: nothing is ever refunded")
    return cost


def check_question(question: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The public description of a question, if it is small and plain."""
    if not isinstance(question, Mapping):
        raise InvalidInput(f"question is a {type(question).__name__}; it must be a mapping of plain JSON values")
    size = len(canonical_json(question, "the question"))
    if size > LARGEST_QUESTION:
        raise InvalidInput(f"the question's description takes {size} characters; it must stay under {LARGEST_QUESTION}")
    return dict(question)


def check_budget(budget: Budget) -> Budget:
    """A budget, if it is one."""
    if not isinstance(budget, Budget):
        raise InvalidInput(f"budget is a {type(budget).__name__}; it must be a vitrail.Budget")
    return budget


def price(event: Event) -> Cost:
    """What the event costs, if its numbers make sense."""
    try:
        canonical_json(event_to_json(event), "the event")
        return check_cost(event.cost())
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInput(f"the event {event!r} has no price: {error}") from error
