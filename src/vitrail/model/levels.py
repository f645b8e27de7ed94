"""Levels: which of them a model knows, and by which number it knows them.

A model that was fitted on numbers in place of texts does not record which number stood for which text, and a wrong guess
gives confident wrong outputs. So codes are never guessed. They are what the model recorded (a booster its categories, in its
order), or what an encoder inside it recorded, or the indices of the schema's levels if the caller says ``inputs="values"``.
"""

from __future__ import annotations

import difflib
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
            others = _not_declared(column.levels, known)
            raise ModelError(
                f"{label} was fitted without {_level_words(lacking)} of column {name!r}, which the schema declares"
                f"{_odd_ones(lacking, others)}; retrain it with a category dtype that has all declared levels, take the "
                "level out of the schema, or say unknown='missing': the model is then given a missing value there"
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


def refuse_other_levels(
    label: str, schema: Schema, known: Iterable[tuple[str, Sequence[object]]], unknown: Unknown
) -> dict[str, tuple[Level, ...]]:
    """Refuse a model whose encoder would pass over declared levels in silence because they are written in another way.

    A level that an encoder has not seen is its own matter (``handle_unknown``), tried on public rows. But one that it has
    not seen, while it knows one that is not declared, may be the same level by another name; and a model that knows *none*
    of a column's levels was fitted on something else, such as numbers in place of texts.

    Parameters
    ----------
    label : str
        The model, for messages.
    schema : Schema
        Whose levels are asked about.
    known : iterable of (str, sequence)
        Columns and the levels that encoders learned for them; a frozenset is one level in several spellings.
    unknown : {"refuse", "missing"}
        ``"missing"`` says that levels which the model does not know are meant to be unknown to it.

    Returns
    -------
    dict
        The declared levels that the model does not know, by column.

    Examples
    --------
    >>> schema = Schema({"job": Categorical(["boss", "clerk"])})
    >>> refuse_other_levels("a pipeline", schema, [("job", ["clerk"])], "refuse")
    {'job': ('boss',)}
    >>> refuse_other_levels("a pipeline", schema, [("job", ["Boss", "clerk"])], "refuse")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    vitrail.errors.ModelError: a pipeline does not know the level 'boss' of column 'job', ..., and it knows 'Boss', which ...
    """
    strange: dict[str, tuple[Level, ...]] = {}
    for name, categories in known:
        column = schema.get(name)
        if not isinstance(column, Categorical) or not (categories or text_columns(schema, [name])):
            continue
        spellings = {spelling for category in categories for spelling in _spellings(category)}
        # What a level that stands for nothing is given as, the model's own rule for missing values decides.
        asked = [level for level in column.levels if not (column.as_nan and level == column.missing)]
        lacking = tuple(level for level in asked if level not in spellings)
        if asked and len(lacking) == len(asked):
            raise _other_levels(label, name, sorted(spellings, key=str), column.levels)
        others = _not_declared(column.levels, categories)
        if lacking and others and unknown == "refuse":
            raise ModelError(
                f"{label} does not know {_level_words(lacking)} of column {name!r}, which the schema declares"
                f"{_odd_ones(lacking, others)}; write them alike in both, or, if they are different levels, say "
                "unknown='missing': the model then does with them what it does with any level that it does not know"
            )
        if lacking:
            strange[name] = lacking
    return strange


def _spellings(category: object) -> set[object]:
    return {_plain(spelling) for spelling in (category if isinstance(category, frozenset) else (category,))}


def _not_declared(levels: Sequence[Level], categories: Iterable[object]) -> list[object]:
    """The categories of a model that are none of the declared levels; a missing value is no category."""
    spelled = [_spellings(category) for category in categories]
    odd = [spellings for spellings in spelled if spellings.isdisjoint(levels) and not any(map(_is_blank, spellings))]
    return [min(spellings, key=lambda spelling: not isinstance(spelling, str)) for spellings in odd]


def _is_blank(value: object) -> bool:
    return value is None or value == "" or str(value) in ("nan", "<NA>", "NaT", "None")


def _odd_ones(lacking: Sequence[Level], others: Sequence[object]) -> str:
    """What a model knows besides, and which of it looks like which declared level."""
    if not others:
        return ""
    by_text = {str(other).casefold().strip(): other for other in others}
    pairs = []
    for level in lacking:
        near = difflib.get_close_matches(str(level).casefold().strip(), by_text, n=1)
        pairs += [f"{level!r} may be its {by_text[near[0]]!r}"] if near else []
    return f", and it knows {listed(others)}, which the schema does not declare{': ' if pairs else ''}{', '.join(pairs[:4])}"


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def levels_inside(
    estimator: Any, depth: int = DEEPEST, given: Sequence[object] | None = None
) -> Iterator[tuple[str, Sequence[object]]]:
    """Columns and the levels that encoders inside an estimator learned for them, where these were fitted on a frame.

    ``given`` are the names of its columns where it was handed an array of them.
    """
    if depth <= 0 or isinstance(estimator, type | np.ndarray):
        return
    if isinstance(estimator, list | tuple):
        for inner in estimator:
            yield from levels_inside(inner, depth - 1)
        return
    if not any(hasattr(estimator, method) for method in ("predict", "transform")) or not hasattr(estimator, "__dict__"):
        return
    own = getattr(estimator, "feature_names_in_", None)
    names = given if own is None else own
    categories = getattr(estimator, "categories_", None)
    if names is not None and isinstance(categories, list) and len(categories) == len(names):
        yield from ((str(name), list(known)) for name, known in zip(names, categories, strict=True))
    if names is not None and isinstance(bins := getattr(estimator, "bins_", None), list) and len(bins) == len(names):
        yield from ((str(name), _level_bins(own[0])) for name, own in zip(names, bins, strict=True))
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list):
        yield from _levels_of_steps(steps, names, depth)
    for name, value in vars(estimator).items():
        # What was fitted ends in an underscore; the parameters it was made from are unfitted copies.
        if name.endswith("_") or name.startswith("_"):
            yield from levels_inside(value, depth - 1)


def _levels_of_steps(
    steps: list[tuple[str, Any]], names: Sequence[object] | None, depth: int
) -> Iterator[tuple[str, Sequence[object]]]:
    """Of the steps of a pipeline: one that fills in values hands on an array of the same columns."""
    for _, step in steps:
        yield from levels_inside(step, depth - 1, names)
        own = getattr(step, "feature_names_in_", None)
        names = _kept(step, names if own is None else own)


def _kept(step: Any, names: Sequence[object] | None) -> Sequence[object] | None:
    """The names of a step's columns behind it, where it keeps columns in their places."""
    if names is None or (isinstance(step, str) and step == "passthrough"):
        return names
    filled = getattr(step, "statistics_", None)
    adds = getattr(step, "add_indicator", False)
    return names if filled is not None and not adds and len(filled) == len(names) and not _drops(step, filled) else None


def _drops(step: Any, filled: Iterable[object]) -> bool:
    """Whether an imputer leaves out columns in which it saw nothing."""
    return not getattr(step, "keep_empty_features", False) and any(_is_blank(value) for value in filled)


def _level_bins(bins: object) -> list[object]:
    """The levels of a column of interpret's additive models, which hold them as texts; none where they cut numbers."""
    texts = list(bins) if isinstance(bins, dict) else []
    return [frozenset({text, float(text)}) if _is_number(text) else text for text in texts]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).lstrip("-").isdigit()


def level_rows(schema: Schema) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Public rows in which every level of every column occurs; as many as the longest list of levels."""
    lengths = [len(column.levels) if isinstance(column, Categorical) else 1 for column in schema.values()]
    rows = np.repeat(schema.filler(), max(lengths), axis=0)
    for index, (column, length) in enumerate(zip(schema.values(), lengths, strict=True)):
        if isinstance(column, Categorical):
            rows[:, index] = np.arange(len(rows)) % length
    return rows
