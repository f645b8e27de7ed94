"""What a column's name and type suggest, without a look at any row.

Names that the world agrees on have public bounds: nobody is 130 years old, a week has 168 hours. These are suggestions; the
file that `vitrail init` writes says of each where it is from.
"""

from __future__ import annotations

import re
from typing import Any

from .described import NAME, TYPE, Described

IDENTIFIERS = frozenset(
    [
        "id",
        "uuid",
        "guid",
        "ssn",
        "nin",
        "iban",
        "email",
        "mail",
        "phone",
        "telephone",
        "mobile",
        "passport",
        "surname",
        "firstname",
        "lastname",
        "fullname",
        "address",
        "street",
        "username",
        "login",
        "ip",
        "mrn",
        "hash",
        "fingerprint",
        "url",
    ]
)
FREE_TEXTS = frozenset(
    [
        "comment",
        "comments",
        "note",
        "notes",
        "remark",
        "remarks",
        "narrative",
        "message",
        "review",
        "freetext",
        "essay",
        "transcript",
    ]
)
BOOLEAN_FIRST = frozenset(["is", "has", "had", "was", "were", "can", "did", "does"])
DATES = frozenset(["date", "dob", "birthdate", "datetime", "timestamp"])
NEVER = frozenset(["sex", "gender", "race", "ethnicity", "birthplace", "nationality"])

# The words that a name has to hold, in order, and what they suggest.
BOUNDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hours week", {"kind": "number", "low": 0, "high": 168, "unit": "hours"}),
    ("age", {"kind": "integer", "low": 0, "high": 120, "unit": "years", "change": "up"}),
    ("latitude", {"kind": "number", "low": -90, "high": 90, "unit": "degrees"}),
    ("longitude", {"kind": "number", "low": -180, "high": 180, "unit": "degrees"}),
    ("percent", {"kind": "number", "low": 0, "high": 100, "unit": "%"}),
    ("percentage", {"kind": "number", "low": 0, "high": 100, "unit": "%"}),
    ("pct", {"kind": "number", "low": 0, "high": 100, "unit": "%"}),
    ("probability", {"kind": "number", "low": 0, "high": 1}),
    ("fraction", {"kind": "number", "low": 0, "high": 1}),
    ("bmi", {"kind": "number", "low": 10, "high": 80, "unit": "kg/m²"}),
    ("heart rate", {"kind": "number", "low": 20, "high": 250, "unit": "per minute"}),
    ("heartrate", {"kind": "number", "low": 20, "high": 250, "unit": "per minute"}),
    ("systolic", {"kind": "number", "low": 50, "high": 260, "unit": "mmHg"}),
    ("diastolic", {"kind": "number", "low": 30, "high": 160, "unit": "mmHg"}),
    ("credit score", {"kind": "integer", "low": 300, "high": 850}),
    ("fico", {"kind": "integer", "low": 300, "high": 850}),
    ("gpa", {"kind": "number", "low": 0, "high": 4}),
    ("birth year", {"kind": "integer", "low": 1900, "high": 2030, "change": "never"}),
    ("year birth", {"kind": "integer", "low": 1900, "high": 2030, "change": "never"}),
    ("month", {"kind": "integer", "low": 1, "high": 12}),
    ("hour", {"kind": "integer", "low": 0, "high": 23}),
    ("weekday", {"kind": "integer", "low": 0, "high": 7}),
    ("children", {"kind": "integer", "low": 0, "high": 15}),
    ("dependents", {"kind": "integer", "low": 0, "high": 15}),
)


def words_of(name: str) -> list[str]:
    """The words of a column's name, in lower case.

    Examples
    --------
    >>> words_of("customerID"), words_of("hours-per-week"), words_of("DOB")
    (['customer', 'id'], ['hours', 'per', 'week'], ['dob'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def by_name(name: str) -> Described:
    """What a name suggests; nothing, mostly."""
    words = words_of(name)
    if not words:
        return Described()
    if (
        IDENTIFIERS & {words[-1], "".join(words)}
        or words == ["name"]
        or words[-2:] in (["first", "name"], ["last", "name"], ["full", "name"])
    ):
        return Described.of(NAME, kind="identifier")
    if FREE_TEXTS & {words[-1], "".join(words)}:
        return Described.of(NAME, kind="text")
    if DATES & {words[-1], "".join(words)}:
        return Described.of(NAME, kind="date", change="never" if "birth" in "".join(words) or "dob" in words else None)
    if words[0] in BOOLEAN_FIRST and len(words) > 1:
        return Described.of(NAME, kind="boolean")
    for wanted, facts in BOUNDS:
        if _holds(words, wanted.split()):
            return Described.of(NAME, **facts)
    return Described.of(NAME, change="never") if NEVER & set(words) else Described()


def _holds(words: list[str], wanted: list[str]) -> bool:
    """Whether the words end in the wanted ones, other words between them: ``hours-per-week``, but not ``age_group``."""
    if words[-1] != wanted[-1]:
        return False
    rest = iter(words)
    return all(word in rest for word in wanted)


def by_type(kind: Any) -> Described:
    """What an Arrow type says: the kind of a column, and of truth values their levels."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return Described.of(TYPE, kind="boolean")
    if pa.types.is_temporal(kind) and not pa.types.is_time(kind) and not pa.types.is_duration(kind):
        return Described.of(TYPE, kind="date")
    if pa.types.is_integer(kind):
        return Described.of(TYPE, kind="integer")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Described.of(TYPE, kind="number")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return Described.of(TYPE, kind="levels")
    return Described.of(TYPE, kind="text")  # lists, structures, binary: no column of a table
