"""What a browser needs to look for counterfactuals, and what is the same for everybody: made when a site is written.

The search itself (web/src/counterfactual) is that of ``solve.counterfactual``, written once more, and gives the same answers
for the same outputs of the model. What it starts from is drawn with NumPy's generator and shown to the model here: the pool
of every class, its prototype, and what a person may change. All of it is post-processing of the pane.
Test: tests/live/test_golden_counterfactual.py.

*Rows as texts.* A value is written as its number among the values that its column has, in digits of base 91: column by
column, the highest digit of all rows first. Numbers that need not be whole lie on a grid (``on_grid``), which is not written
out. One character per value is what deflate packs best: 8 000 rows of 13 columns take some 45 kB.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import Floats, Indices
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.archive import array_bytes, digest, json_bytes, pack
from ..schema import Column, Level, Numeric
from ..solve.counterfactual.fitted import FittedCounterfactual
from ..solve.counterfactual.permitted import Rules
from ..solve.counterfactual.search import FEW_COLUMNS, POOL_CELLS, draws, on_grid, pool_of

FORMAT = "vitrail-live-search/1"
DIGITS = "".join(chr(code) for code in range(35, 127) if chr(code) != "\\")
"""Printable, and written in JSON as they are: no quotation mark, no backslash."""
SEED = 0
"""Of the search: the default of ``FittedCounterfactual``."""


def prepared_search(fitted: FittedCounterfactual, *, ranges: bool = False) -> bytes:
    """The file from which a browser says what would have changed the model's answer.

    Parameters
    ----------
    fitted : FittedCounterfactual
        Such as ``pane.counterfactual``.
    ranges : bool
        Whether people may also ask for a range of outputs (``desired=``): ten times as many rows are then handed over,
        because which of them are in a range is not known before.

    Returns
    -------
    bytes
        An archive: ``manifest.json`` has the classes, what may change and words; the members have rows and prototypes.
    """
    picture, classes, schema = fitted.picture, fitted.classes, fitted.picture.schema
    rules = Rules.of(schema, "all", None)
    if len(rules.leads) > FEW_COLUMNS:
        raise InvalidInput(
            f"{len(rules.leads)} columns may change, and a browser searches at most {FEW_COLUMNS}; declare change='never' "
            "where a person cannot change anything, or leave the search out"
        )
    if ranges and len(classes.models) > 1:
        raise InvalidInput("ranges is True, and the model has several classes; a range is of the outputs of one model")
    tables = {f"class{number}": pool_of(picture, classes, number, SEED, number).raw for number in range(len(classes))}
    draws_of_ranges: list[JsonValue] = []
    if ranges:  # number 1 is the range itself; what it is like decides on the last draws alone
        last = len(list(draws(picture, 1, SEED, 0))) - 1
        for like in range(len(classes)):
            for place, (enough, draw) in enumerate(draws(picture, 1, SEED, like)):
                if place == last or like == 0:
                    tables[f"draw{len(draws_of_ranges)}"] = on_grid(schema, draw())
                    draws_of_ranges.append({"enough": enough, "like": like if place == last else None})
    tables["prototypes"] = on_grid(schema, schema.unfeature(picture.prototype_features))
    every = np.concatenate([*tables.values()])
    grids = [_grid(column) for column in schema.values()]
    others = [np.setdiff1d(every[:, j], grid) for j, grid in enumerate(grids)]
    values = [np.concatenate(both) for both in zip(grids, others, strict=True)]
    files = {f"rows/{name}.json": json_bytes(_texts(rows, values)) for name, rows in tables.items()}
    files["rows/values.npy"] = array_bytes(np.concatenate(others))
    files["classes/prototypes.npy"] = array_bytes(picture.prototype_features)
    facts: dict[str, JsonValue] = {
        "format": FORMAT,
        "columns": [*schema.names],
        "model": classes.name,
        "labels": [_plain(label) for label in classes.labels],
        "outputs": len(classes.models),
        "range": [classes.models[0].lo, classes.models[0].hi],
        "threshold": classes.threshold,
        "rules": _rules(rules),
        "rows": {name: len(rows) for name, rows in tables.items()},
        "cells": [max(len(grid) - 1, 0) for grid in grids],
        "values": [len(own) for own in others],
        "draws": draws_of_ranges,
        "notes": [*fitted.notes],
        "notes_on": [[*picture.notes_on(np.array([number]))] for number in range(len(classes))],
        "files": {name: digest(content) for name, content in files.items()},
    }
    return pack(facts, files)


def _rules(rules: Rules) -> dict[str, JsonValue]:
    """What may change, column by column, with links and orders by column numbers."""
    return {
        "vary": rules.vary.tolist(),
        "low": rules.low.tolist(),
        "high": rules.high.tolist(),
        "up": rules.up.tolist(),
        "down": rules.down.tolist(),
        "whole": rules.whole.tolist(),
        "bounds": rules.bounds.tolist(),
        "codes": [[*map(float, codes)] for codes in rules.codes],
        "categorical": [levels is not None for levels in rules.levels],
        "orders": rules.orders.tolist(),
        "following": [
            {
                "column": link.column,
                "followers": link.followers.tolist(),
                "values": link.values.tolist(),
                "widths": link.widths.tolist(),
            }
            for link in rules.following
        ],
    }


def _grid(column: Column) -> Floats:
    """All places of a column's grid; none where it has no grid."""
    if not isinstance(column, Numeric) or column.integer:
        return np.empty(0)
    return np.minimum(column.low + np.arange(POOL_CELLS + 1) / POOL_CELLS * (column.high - column.low), column.high)


def _texts(rows: Floats, values: Sequence[Floats]) -> list[JsonValue]:
    """Rows as one text for each column."""
    orders = [np.argsort(own) for own in values]
    numbers = (
        order[np.searchsorted(own, rows[:, j], sorter=order)]
        for j, (own, order) in enumerate(zip(values, orders, strict=True))
    )
    return [_text(own, len(known)) for own, known in zip(numbers, values, strict=True)]


def _text(numbers: Indices, count: int) -> str:
    """Numbers below ``count`` in digits, the highest digit of all of them first.

    Examples
    --------
    >>> _text(np.array([0, 1, 90]), 91), _text(np.array([0, 92]), 93)
    ('#$~', '#$#$')
    """
    width, letters = 1, np.array(list(DIGITS))
    while len(DIGITS) ** width < count:
        width += 1
    places = [numbers // len(DIGITS) ** place % len(DIGITS) for place in reversed(range(width))]
    return "".join(letters[np.concatenate(places)])


def _plain(label: Level) -> Level:
    return label.item() if isinstance(label, np.generic) else label
