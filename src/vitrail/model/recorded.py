"""What the boosters of XGBoost and LightGBM recorded about their training data.

Both take levels as codes. XGBoost (from 3.1 on) records the categories of each column; LightGBM records those of its pandas
columns, in the order of the columns and without their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import ModelError
from ..schema import Categorical, Level, Schema
from .content_walk import is_of
from .levels import Categories, codes_refused, text_columns


def given_names(names: Iterable[object] | None, made_up: str = "Column_|feature_0*") -> tuple[str, ...] | None:
    """Names that somebody gave; None for those that a library made up by counting.

    Examples
    --------
    >>> given_names(["age", "Column_1"]), given_names(["Column_0", "Column_1"]), given_names(None)
    (('age', 'Column_1'), None, None)
    """
    texts = tuple(str(name) for name in names) if names is not None else ()
    found = [re.fullmatch(f"(?:{made_up})(0|[1-9]\\d*)", text) for text in texts]
    counted = all(match is not None and int(match[1]) == place for place, match in enumerate(found))
    return None if counted else texts


def booster_of(estimator: Any) -> Any | None:
    """The booster inside an estimator of XGBoost or LightGBM; None for others, and before it was fitted."""
    if is_of(estimator, "xgboost", "XGBModel"):
        return estimator.get_booster() if hasattr(estimator, "n_features_in_") else None
    return getattr(estimator, "booster_", None) if is_of(estimator, "lightgbm", "LGBMModel") else None


def recorded_categories(booster: Any, schema: Schema, columns: Sequence[str], label: str) -> Categories:
    """The categories of a booster's columns, in its order, by the schema's names of the columns.

    Parameters
    ----------
    booster : xgboost.Booster or lightgbm.Booster
    schema : Schema
        What is declared about the columns.
    columns : sequence of str
        The schema's names of the booster's columns, in the booster's order.
    label : str
        The model, for messages.
    """
    of_xgboost = is_of(booster, "xgboost", "Booster")
    return _of_xgboost(booster, schema, columns, label) if of_xgboost else _of_lightgbm(booster, schema, columns, label)


def has_categories(booster: Any) -> bool:
    """Whether a booster recorded the categories of any of its columns."""
    if is_of(booster, "lightgbm", "Booster"):
        return bool(booster.pandas_categorical)
    return any(values is not None for values in _arrow_categories(booster))


def _arrow_categories(booster: Any) -> list[Any]:
    """One Arrow array of categories for each column of an XGBoost booster, None where there are none."""
    if "c" not in (booster.feature_types or ()) or not hasattr(booster, "get_categories"):
        return []
    return [values for _, values in booster.get_categories(export_to_arrow=True).to_arrow()]


def _of_xgboost(booster: Any, schema: Schema, columns: Sequence[str], label: str) -> Categories:
    levels = [name for name, kind in zip(columns, booster.feature_types or (), strict=False) if kind == "c"]
    if not hasattr(booster, "get_categories") and (texts := text_columns(schema, levels)):
        raise codes_refused(f"{label}, of an XGBoost that does not record categories (from 3.1 on it does),", texts)
    found = zip(columns, _arrow_categories(booster), strict=False)
    return {name: tuple(values.to_pylist()) for name, values in found if values is not None}


def _of_lightgbm(booster: Any, schema: Schema, columns: Sequence[str], label: str) -> Categories:
    recorded: list[list[Level]] = booster.pandas_categorical or []
    if not recorded:
        return {}
    infos = feature_infos(booster)
    # Which columns they are of is not written. A column that was split is a range of numbers or a list of codes; one that
    # never was may be either, and is then what the schema says.
    levels = [name for name, info in zip(columns, infos, strict=True) if _is_level(info, schema, name)]
    if len(levels) != len(recorded):
        raise ModelError(
            f"{label} recorded the categories of {len(recorded)} columns without their names, and {len(levels)} of its "
            "columns are levels by the schema and by what it learned; declare as Categorical the columns that were "
            "categories when it was fitted"
        )
    return {name: tuple(values) for name, values in zip(levels, recorded, strict=True)}


def _is_level(info: str, schema: Schema, name: str) -> bool:
    return isinstance(schema[name], Categorical) if info == "none" else not info.startswith("[")


def feature_infos(booster: Any) -> list[str]:
    """What a LightGBM booster says of its columns: ``"[low:high]"`` of numbers, ``"0:2:1"`` of levels, or ``"none"``."""
    header = booster.model_to_string(num_iteration=1).partition("\nTree=")[0]
    found = re.search(r"^feature_infos=(.*)$", header, re.MULTILINE)
    return found[1].split() if found else []
