"""What people write into the cells of a code book: ranges, lists of levels, ``1 = yes; 2 = no``, words for types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..schema import Level
from ..schema.days import days_of
from .described import CODE_BOOK, NUMERIC_KINDS, SPECIAL_CODES, Described, Kind

_NUMBER = r"[-+−]?\d[\d,_]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_DATE = r"\d{4}-\d{2}-\d{2}"
_RANGE = re.compile(
    rf"[\[(]?\s*({_NUMBER}|{_DATE})\s*(?:-|–|—|\.\.\.?|…|to|,|:|and)\s*({_NUMBER}|{_DATE})\s*[\])]?", re.IGNORECASE
)
_END = rf"({_NUMBER}|{_DATE})"
_AT_LEAST = re.compile(
    rf"(?:>=?|≥|at least|from|min(?:imum)?)\s*{_END}"
    rf"|{_END}\s*(?:\+|(?:or|and) (?:more|above|over|older|higher|up|later)|upwards)",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    rf"(?:<=?|≤|at most|up to|max(?:imum)?)\s*{_END}|{_END}\s*(?:or|and) (?:less|fewer|below|under|younger|lower|earlier)",
    re.IGNORECASE,
)
_MEANING = re.compile(r"(.+?)(?<![<>!])\s*(?:=|:|\s[-–]\s|→|->)\s*(.+)", re.DOTALL)  # "<=50K" is a level, not a meaning
_ITEM_MARKS = ("\n", ";", "|", " < ", ",", "/")
KIND_WORDS: dict[Kind, tuple[str, ...]] = {
    "integer": ("int", "integer", "count", "whole", "bigint", "smallint", "tinyint", "serial", "long", "discrete"),
    "number": ("float", "double", "numeric", "number", "decimal", "real", "continuous", "money", "quantity", "currency"),
    "date": ("date", "datetime", "timestamp", "timestamptz", "day"),
    "boolean": ("bool", "boolean", "flag", "logical", "bit", "binary", "yes/no", "dummy"),
    "levels": (
        "categorical",
        "category",
        "nominal",
        "factor",
        "enum",
        "enumeration",
        "ordinal",
        "ordered",
        "likert",
        "levels",
    ),
    "identifier": ("id", "identifier", "key", "uuid", "guid", "primary key"),
    "text": ("free text", "freetext", "text", "comment", "note", "open-ended"),
    "out": ("leave out", "left out", "leave it out", "omitted", "excluded"),
}
BLANK_WORDS = ("blank", "empty", "nan", "na", "n/a", "null", "none", "yes", "allowed", "true", "nullable")
_WORD_OF = {word: kind for kind, words in KIND_WORDS.items() for word in words}


def kind_of(text: str) -> tuple[Kind | None, bool]:
    """The kind that a word for a type means, and whether it says that levels are ordered."""
    plain = re.sub(r"\(.*?\)|\[.*?\]", "", text.strip().lower()).strip()
    ordered = any(word in plain for word in ("ordinal", "ordered", "likert"))
    words = [plain, *re.findall(r"[a-z/]+", plain)]
    found = (_WORD_OF.get(word) or _WORD_OF.get(re.sub(r"\d+$", "", word)) for word in words)
    return next((kind for kind in found if kind), None), ordered


def number_in(text: str) -> float | None:
    """The number that a text is; a whole one as an integer, a date as its days."""
    plain = text.strip().replace("−", "-")
    if re.fullmatch(_DATE, plain):
        return days_of(plain)
    if not re.fullmatch(_NUMBER, plain):
        return None
    number = float(re.sub(r"[,_]", "", plain))
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def level_in(text: str) -> Level:
    """A level as it is written: a number where it is one, else the text without its quotes."""
    plain = text.strip()
    if plain[:1] in "'\"`“" and plain[-1:] in "'\"`”" and len(plain) > 1:
        return plain[1:-1]
    number = number_in(plain) if not re.fullmatch(rf"{_DATE}|[-+]?0\d+", plain) else None
    return plain if number is None else number


def items_of(text: str) -> tuple[list[str], bool]:
    """The items of a list in a cell, and whether they are written in an order (``low < middle < high``)."""
    plain = text.strip().strip("{}").strip()
    if plain[:1] == "[" and plain[-1:] == "]" and not _RANGE.fullmatch(plain):
        plain = plain[1:-1]
    for mark in _ITEM_MARKS:
        parts = [part.strip().rstrip(";" if mark == "\n" else "") for part in plain.split(mark) if part.strip()]
        if len(parts) > 1:
            return parts, mark == " < "
    return [plain] if plain else [], False


def is_list(text: str) -> bool:
    """Whether a cell says all there is to say about values, as a range or several levels do, and not one value of many."""
    return bool(_bounds(text) or _one_end(text)) or any(mark in text.strip() for mark in (";", "\n", "|", " < "))


def values_in(text: str) -> dict[str, Any]:
    """The facts that a cell about values tells: bounds, levels, codes, and what they mean; none where it is prose."""
    if bounds := _bounds(text) or _one_end(text):
        return bounds
    items, ordered = items_of(text)
    ends = [end for item in items if (end := _one_end(item))]
    codes = tuple(level_in(_MEANING.sub(r"\1", item)) for item in items if not _one_end(item))
    if len(ends) == 1 and codes and all(code in SPECIAL_CODES for code in codes):  # "0+; -9 = no record"
        return {**ends[0], "codes": codes, "value_labels": _meanings(items)}
    ranges = [bounds for item in items if (bounds := _bounds(item))]
    single = [item for item in items if not _bounds(item)]
    pairs = [
        (level_in(found[1]), found[2].strip()) if (found := _MEANING.fullmatch(item)) else (level_in(item), "")
        for item in single
    ]
    meanings = {value: meaning for value, meaning in pairs if meaning}
    numbers = [value for value, _ in pairs if isinstance(value, int | float)]
    if ranges and len(numbers) == len(pairs):  # quantities, and special codes beside them
        low, high = min(one["low"] for one in ranges), max(one["high"] for one in ranges)
        inside = {value: word for value, word in meanings.items() if not low <= float(value) <= high}
        return {"low": low, "high": high, "codes": tuple(number for number in numbers if not low <= number <= high)} | (
            {"value_labels": inside} if inside else {}
        )
    levels = tuple(dict.fromkeys(value for value, _ in pairs))
    if not levels or ranges or (len(items) == 1 and not meanings and re.search(r"\S\s+\S", items[0])):
        return {}
    return {"levels": levels, "value_labels": meanings, "ordered": ordered or None}


def _bounds(text: str) -> dict[str, float]:
    """Bounds in a text such as ``17-90`` or ``0 to 100 years``; none where it is no range."""
    found = _RANGE.fullmatch(text.strip())
    if not found:
        return {}
    low, high = (number_in(end) for end in found.groups())
    return {"low": low, "high": high} if low is not None and high is not None and low < high else {}


def _one_end(text: str) -> dict[str, float]:
    """One bound, in a text such as ``18+`` or ``>= 18``; none where it is no such text."""
    for end, pattern in (("low", _AT_LEAST), ("high", _AT_MOST)):
        if (found := pattern.fullmatch(text.strip())) and (number := number_in(found[1] or found[2])) is not None:
            return {end: number}
    return {}


def _meanings(items: Sequence[str]) -> dict[Level, str]:
    """What ``1 = yes`` says, for the items that say such a thing."""
    return {level_in(found[1]): found[2].strip() for item in items if (found := _MEANING.fullmatch(item))}


def described_cells(cells: dict[str, str]) -> Described:
    """A line of a code book: cells by what they are about."""
    facts: dict[str, Any] = {}
    for part in ("values", "range"):
        facts |= {name: value for name, value in values_in(cells.get(part, "")).items() if name not in facts}
    facts |= {end: number for end in ("low", "high") if (number := number_in(cells.get(end, ""))) is not None}
    kind, ordered = kind_of(cells.get("kind", ""))
    facts["kind"] = _settled_kind(kind, facts)
    if facts["kind"] in ("levels", "boolean"):
        facts.pop("low", None), facts.pop("high", None)
        facts["ordered"] = ordered or facts.get("ordered") or None
    elif "levels" in facts:  # codes of a quantity, or examples: no levels
        facts["codes"] = tuple(level for level in facts.pop("levels") if level in SPECIAL_CODES)
        facts["value_labels"] = {
            code: word for code, word in facts.get("value_labels", {}).items() if code in facts["codes"]
        }
    facts |= {word: cells.get(word, "").strip() for word in ("label", "unit", "description", "change", "follows")}
    facts |= _missing_in(cells.get("missing", ""), facts)
    return Described.of(CODE_BOOK, **facts, note=_unread(cells, facts))


def _unread(cells: dict[str, str], facts: dict[str, Any]) -> str:
    """What is left open although the book has a cell about it, in words."""
    told = [cells[part] for part in ("values", "range", "low", "high") if cells.get(part, "").strip()]
    if not told or facts["kind"] in ("boolean", "identifier", "text", "out"):
        return ""
    if facts["kind"] in NUMERIC_KINDS:
        ends = [end for end in ("low", "high") if cells.get(end, "").strip() and end not in facts]
        wanting = ends or [end for end in ("low", "high") if end not in facts]
        what = f"no {' and '.join(wanting)}" if ends or len(wanting) == 2 else ""
    else:
        what = "" if facts.get("levels") or "low" in facts or "high" in facts else "no bounds and no levels"
    return what and f"its values are {', '.join(map(repr, told))}, which tells {what}"


def _settled_kind(kind: Kind | None, facts: dict[str, Any]) -> Kind | None:
    """The kind by its word and by what stands beside it."""
    levels: Sequence[Level] = facts.get("levels", ())
    if kind in ("identifier", "out"):
        return kind
    if levels and kind not in NUMERIC_KINDS:
        yes_no = {str(level).lower() for level in levels} == {"true", "false"}
        return "boolean" if yes_no and all(isinstance(level, bool) for level in levels) else "levels"
    if any(isinstance(level, str) for level in levels):
        return kind  # words beside a type of numbers are words about them: "see the manual", "zero to many"
    # A type of whole numbers with a list of values and their meanings: integer-coded categories.
    if levels and "low" not in facts and any(level not in SPECIAL_CODES for level in levels):
        return "levels" if kind != "date" else kind
    if kind is None and ("low" in facts or "high" in facts):
        whole = all(float(facts[end]).is_integer() for end in ("low", "high") if end in facts)
        return "integer" if whole else "number"
    return kind


def _missing_in(text: str, facts: dict[str, Any]) -> dict[str, Any]:
    """What a cell about missing values tells."""
    plain = text.strip()
    if not plain or plain.lower() in ("no", "false", "never", "not null", "0 %", "-"):
        return {}
    if plain.lower() in BLANK_WORDS:
        return {"blank": True}
    level = level_in(plain)
    numeric = facts.get("kind") in NUMERIC_KINDS
    if numeric and not isinstance(level, int | float):
        items = [number for item in items_of(plain)[0] if (number := number_in(item.split("=")[0])) is not None]
        return {"codes": tuple(dict.fromkeys((*facts.get("codes", ()), *items))), "missing": items[0]} if items else {}
    return {"missing": level}
