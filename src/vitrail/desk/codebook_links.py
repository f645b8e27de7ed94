"""Columns that follow from others, as a code book says it: columns that say the same are advised together, or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..accounting import JsonValue
from .codebook_cells import items_of, level_in
from .described import Described


def links_in(columns: Mapping[str, Described]) -> tuple[list[dict[str, JsonValue]], dict[str, str]]:
    """The links that code books declare with *follows from*; and why, by column, a cell makes none.

    Examples
    --------
    >>> years = Described.of("the code book", kind="integer", follows="degree: school = 10; college = 14")
    >>> links_in({"degree": Described.of("the code book", kind="levels"), "years": years})[0]
    [{'rule': 'link', 'column': 'degree', 'other': 'years', 'values': {'school': 10, 'college': 14}}]
    """
    declared = {name: facts for name, facts in columns.items() if facts.left_out is None}
    links: list[dict[str, JsonValue]] = []
    refused: dict[str, str] = {}
    for name, facts in declared.items():
        if not facts.follows:
            continue
        column, values = _parsed(facts.follows, declared)
        if column is None:
            refused[name] = f"it follows from {facts.follows.partition(':')[0]!r}, which is no declared column of the rows"
        elif not values:
            refused[name] = (
                f"it follows from {column!r}, and how is not said; write '{column}: a level = its value here; ...', with "
                "every level, or leave one of the two out"
            )
        else:
            links.append({"rule": "link", "column": column, "other": name, "values": values})
    return links, refused


def _parsed(cell: str, declared: Mapping[str, Described]) -> tuple[str | None, dict[str, JsonValue]]:
    """The column that a cell names at its beginning or its end, and the value that each of its levels has here."""
    for column in sorted(declared, key=len, reverse=True):  # a name may begin with another, and hold a colon
        if found := re.match(rf"{re.escape(column)}\s*:\s*(.*)", cell, re.DOTALL):
            pairs = (re.fullmatch(r"(.+?)\s*(?<![<>!])=\s*(.+)", item, re.DOTALL) for item in items_of(found[1])[0])
            return column, {str(level_in(pair[1])): level_in(pair[2]) for pair in pairs if pair}
    named = (column for column in declared if re.fullmatch(rf"(.*\W)?{re.escape(column)}", cell))
    return max(named, key=len, default=None), {}
