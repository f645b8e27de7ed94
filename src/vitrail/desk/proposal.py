"""A schema to begin with: what a code book, types and names tell, and, if the owner says so, the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..vault.owner import Looked, as_given
from ..vault.owner import look as look_at
from .described import NAME, ROWS, Described
from .suggestions import by_name, by_type


def seen_columns(source: object, *, look: bool) -> tuple[dict[str, Any], dict[str, Looked], int | None]:
    """The columns and their types; and, if the owner says so, what the rows hold, and how many there are, roundly."""
    header = as_given.columns_of(source)
    if not look:
        return header, {}, None
    looked, rows = look_at(as_given.tables_of(source))
    return header, looked, _round_count(rows)


def _round_count(rows: int) -> int | None:
    """Three leading digits: a count that differs by one row is mostly the same."""
    digits = max(0, len(str(rows)) - 3)
    return round(rows, -digits) or None


def propose(header: Mapping[str, Any], book: Mapping[str, Described], looked: Mapping[str, Looked]) -> dict[str, Described]:
    """What is known about every column.

    The code book comes first, then the type, then the name; the rows last, for what nobody else has said. A name that
    suggests an identifier or free text is believed over rows and types, because leaving a column out is the safe side.

    Parameters
    ----------
    header : mapping of str to Arrow type or None
        The columns, in the order of the rows.
    book : mapping of str to Described
        What the code book says.
    looked : mapping of str to Looked
        What was seen in the rows; empty where nobody looked.
    """
    made = {}
    for name, kind in header.items():
        suggested = by_name(name)
        told = book.get(name, Described())
        if told.kind is None and suggested.left_out:
            told = told.then(suggested)
        if kind is not None:
            told = _by_type(told, by_type(kind))
        if name in looked:
            told = _by_rows(told, looked[name], suggested)
        made[name] = told.then(suggested)
    return made


def _by_type(told: Described, typed: Described) -> Described:
    """A type is what a file happens to hold: it decides only where nothing else is said, and never against levels."""
    if told.kind is None and told.levels:
        return told
    return told.then(typed)


def _by_rows(told: Described, looked: Looked, suggested: Described) -> Described:
    facts = looked.facts()
    if suggested.low is not None and suggested.high is not None and told.low is None and _within(facts, suggested):
        told = told.then(suggested)  # bounds that the world knows hold what was seen: the rows need not tell theirs
        if facts.get("kind") == "integer" and told.kind == "number" and told.sources["kind"] == NAME:
            told = replace(told, kind="integer", sources={**told.sources, "kind": ROWS})
    seen = Described.of(ROWS, **facts)
    if told.kind == "levels" and looked.may_be_codes and not told.levels:
        seen = Described.of(ROWS, **facts | {"kind": "levels", "levels": tuple(looked.distinct.tolist())})
    if told.kind in ("integer", "number") and told.low is not None and told.high is not None:
        apart = tuple(int(code) for code in looked.special_codes() if not told.low <= code <= told.high)
        seen = Described.of(ROWS, kind=told.kind, codes=apart, blank=facts.get("blank"))
    return told.then(seen)


def _within(facts: Mapping[str, Any], suggested: Described) -> bool:
    low, high = facts.get("low"), facts.get("high")
    if low is None or high is None or suggested.low is None or suggested.high is None:
        return False
    return bool(facts.get("kind") in ("integer", "number") and suggested.low <= low and high <= suggested.high)


def likely_target(names: Sequence[str]) -> str | None:
    """A column that is called what targets are called; None where there is none, or are several."""
    usual = {"target", "label", "y", "outcome", "class", "default", "income", "churn", "response", "approved"}
    found = [name for name in names if name.lower() in usual]
    return found[0] if len(found) == 1 else None
