"""Levels: which of them a model knows, and by which number it knows them.

A model that was fitted on numbers in place of texts does not record which number stood for which text, and a wrong guess
gives confident wrong outputs. So codes are never guessed. They are what the model recorded (a booster its categories, in its
order), or what an encoder inside it recorded, or the indices of the schema's levels if the caller says ``inputs="values"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from .._types import Indices
from ..errors import ModelError
from ..schema import Categorical, Level, Schema

Unknown: TypeAlias = Literal["refuse", "missing"]
UNKNOWN: tuple[Unknown, ...] = ("refuse", "missing")
Categories: TypeAlias = Mapping[str, tuple[Level, ...]]
"""The levels of columns as a model recorded them, in its order."""

# Encoders in column transformers in pipelines in searches: deep enough for all, and an end for what refers to itself.
DEEPEST = 8
N_NAMED = 8


def coded_columns(schema: Schema, names: Iterable[str] | None = None) -> list[str]:
    """The columns whose level indices are other values than their levels: numbers in their place would be codes.

    Examples
    --------
    >>> coded_columns(Schema({"sex": Categorical(["Female", "Male"]), "smokes": Categorical([0, 1])}))
    ['sex']
    """
    columns = ((name, schema[name]) for name in (schema.names if names is None else names))
    return [
        name
        for name, column in columns
        if isinstance(column, Categorical) and column.levels != (*range(len(column.levels)),)
    ]


def text_columns(schema: Schema, names: Iterable[str]) -> list[str]:
    """The columns that have a level which is no number."""
    return [
        name
        for name in names
        if isinstance(column := schema[name], Categorical) and any(isinstance(level, str) for level in column.levels)
    ]


def listed(values: Sequence[object], most: int = N_NAMED) -> str:
    """The first few of some values, quoted."""
    return ", ".join(map(repr, values[:most])) + (f" and {len(values) - most} more" if len(values) > most else "")


def codes_refused(label: str, columns: Sequence[str]) -> ModelError:
    """What is said about a model that was fitted on numbers where the schema has texts."""
    return ModelError(
        f"{label} was fitted on numbers, and the schema declares texts for {listed(columns)}; which number stood for which "
        "level is not recorded in it and is not guessed: give a pipeline that holds the encoder, or, if level i of the "
        "schema was the number i, say inputs='values'"
    )


def category_codes(label: str, schema: Schema, categories: Categories, unknown: Unknown) -> dict[str, Indices]:
    """For each column that is a category to the model, the model's code of each of the schema's levels; -1 for missing.

    Parameters
    ----------
    label : str
        The model, for messages.
    schema : Schema
        Whose levels are asked about.
    categories : mapping of str to tuple
        What the model recorded.
    unknown : {"refuse", "missing"}
        What becomes of a level that the model has no category for.

    Examples
    --------
    >>> schema = Schema({"sex": Categorical(["Female", "Male"])})
    >>> category_codes("a booster", schema, {"sex": ("Male", "Female")}, "refuse")
    {'sex': array([1, 0])}
    """
    codes = {}
    for name, known in categories.items():
        column = schema[name]
        if not isinstance(column, Categorical):
            raise ModelError(
                f"{label} was fitted on {name!r} as a category, and the schema declares a number; declare it as "
                f"Categorical([{listed(known, 3)}, ...])"
            )
        ranks = {category: rank for rank, category in enumerate(known)}
        texts = {str(category): rank for category, rank in ranks.items()}
        found = np.array([ranks.get(level, texts.get(str(level), -1)) for level in column.levels], dtype=np.intp)
        blank = [column.as_nan and level == column.missing for level in column.levels]  # no level to the model
        found[blank] = -1
        lacking = [
            level for level, code, is_blank in zip(column.levels, found, blank, strict=True) if code < 0 and not is_blank
        ]
        if len(lacking) == len(column.levels):
            raise _other_levels(label, name, known, column.levels)
        if lacking and unknown == "refuse":
            raise ModelError(
                f"{label} was fitted without {_level_words(lacking)} of column {name!r}, which the schema declares; retrain "
                "it with a category dtype that has all declared levels, take the level out of the schema, or say "
                "unknown='missing': the model is then given a missing value there"
            )
        codes[name] = found
    return codes


def _level_words(levels: Sequence[Level]) -> str:
    return f"the level{'s' if len(levels) > 1 else ''} {listed(levels)}"


def _other_levels(label: str, name: str, known: Sequence[object], levels: Sequence[Level]) -> ModelError:
    has = f"knows {listed(known, 3)}" if known else "was fitted on numbers"
    return ModelError(
        f"{label} knows none of the levels of column {name!r}: the schema declares {listed(levels, 3)}, and the model "
        f"{has}; declare the levels that it was fitted on, or fit it on the declared ones"
    )


def refuse_other_levels(label: str, schema: Schema, known: Iterable[tuple[str, Sequence[object]]]) -> None:
    """Refuse a model that knows none of a column's levels: its encoder would pass all of them over in silence.

    A level that an encoder has not seen is its own matter (``handle_unknown``), tried on public rows. All of them together
    mean that it was fitted on something else, such as numbers in place of texts.
    """
    for name, categories in known:
        column = schema.get(name)
        if not isinstance(column, Categorical) or not (categories or text_columns(schema, [name])):
            continue
        if set(column.levels).isdisjoint(plain := [_plain(category) for category in categories]):
            raise _other_levels(label, name, plain, column.levels)


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def levels_inside(estimator: Any, depth: int = DEEPEST) -> Iterator[tuple[str, Sequence[object]]]:
    """Columns and the levels that encoders inside an estimator learned for them, where these were fitted on a frame."""
    if depth <= 0 or isinstance(estimator, type | np.ndarray):
        return
    if isinstance(estimator, list | tuple):
        for inner in estimator:
            yield from levels_inside(inner, depth - 1)
        return
    if not any(hasattr(estimator, method) for method in ("predict", "transform")) or not hasattr(estimator, "__dict__"):
        return
    names, categories = getattr(estimator, "feature_names_in_", None), getattr(estimator, "categories_", None)
    if names is not None and isinstance(categories, list) and len(categories) == len(names):
        yield from ((str(name), list(known)) for name, known in zip(names, categories, strict=True))
    if names is not None and isinstance(bins := getattr(estimator, "bins_", None), list) and len(bins) == len(names):
        yield from ((str(name), _level_bins(own[0])) for name, own in zip(names, bins, strict=True))
    for name, value in vars(estimator).items():
        # What was fitted ends in an underscore; the parameters it was made from are unfitted copies.
        if name == "steps" or name.endswith("_") or name.startswith("_"):
            yield from levels_inside(value, depth - 1)


def _level_bins(bins: object) -> list[object]:
    """The levels of a column of interpret's additive models, which hold them as texts; none where they cut numbers."""
    texts = list(bins) if isinstance(bins, dict) else []
    numbers = [float(text) for text in texts if text.replace(".", "", 1).lstrip("-").isdigit()]
    return [*texts, *numbers]


def level_rows(schema: Schema) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Public rows in which every level of every column occurs; as many as the longest list of levels."""
    lengths = [len(column.levels) if isinstance(column, Categorical) else 1 for column in schema.values()]
    rows = np.repeat(schema.filler(), max(lengths), axis=0)
    for index, (column, length) in enumerate(zip(schema.values(), lengths, strict=True)):
        if isinstance(column, Categorical):
            rows[:, index] = np.arange(len(rows)) % length
    return rows
