"""From a form to a request: a person's values by the schema, options by their fields, the rest as JSON.

Columns and levels are named by their numbers in forms, so that any name and any level can be chosen, and comes back as what
it is: a level that is a number stays one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidInput
from ... import shapes
from ...kinds import KINDS, models_named
from .questions import Field, question
from .site import Form

PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MOST_SUGGESTED = 1.0
"""The dearest price that a form suggests by itself."""


@dataclass(frozen=True)
class Input:
    """One column of the schema as a field to type or choose a value in."""

    name: str
    label: str
    column: str
    kind: str
    levels: tuple[tuple[str, str], ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False
    help: str = ""
    value: str = ""
    optional: bool = False


def inputs_of(columns: Sequence[Mapping[str, Any]], form: Form) -> list[Input]:
    """A field for every column, with what was typed before."""
    return [_input_of(number, column, form.get(f"p.{number}")) for number, column in enumerate(columns)]


def _input_of(number: int, column: Mapping[str, Any], value: str) -> Input:
    name = str(column["name"])
    label, unit, words = str(column.get("label") or name), str(column.get("unit") or ""), column.get("value_labels") or {}
    shown = f"{label} ({unit})" if unit else label
    optional = column.get("missing") is not None
    if "levels" in column:
        levels = tuple((str(i), str(words.get(str(level), level))) for i, level in enumerate(column["levels"]))
        return Input(f"p.{number}", shown, name, "levels", levels, value=value, optional=optional)
    if column.get("date"):
        return Input(f"p.{number}", shown, name, "date", value=value, optional=optional)
    low, high, codes = float(column["low"]), float(column["high"]), [float(code) for code in column.get("codes", ())]
    told = f"{low:g} to {high:g}" + (f", or {', '.join(f'{code:g}' for code in codes)}" if codes else "")
    whole = bool(column.get("integer")) and not codes
    return Input(
        f"p.{number}", shown, name, "number", (), min([low, *codes]), max([high, *codes]), whole, told, value, optional
    )


def point_of(columns: Sequence[Mapping[str, Any]], form: Form, *, partly: bool = False) -> dict[str, Any] | None:
    """The person that was typed; None if nothing was, or (``partly``) if something is missing still."""
    typed = [form.get(f"p.{number}") for number in range(len(columns))]
    if not any(typed):
        return None
    point: dict[str, Any] = {}
    for column, text in zip(columns, typed, strict=True):
        if not text and column.get("missing") is None:
            if partly:
                return None
            raise InvalidInput(
                f"fill in the person first: there is no value for {column['name']!r}, and every value is needed"
            )
        point[str(column["name"])] = _value_of(column, text)
    return point


def _value_of(column: Mapping[str, Any], text: str) -> Any:
    if not text:
        return column["missing"]
    if "levels" in column:
        if not text.isdecimal() or len(text) > 9 or int(text) >= len(column["levels"]):
            raise InvalidInput(f"{column['name']!r} is {text[:40]!r}; choose one of its values")
        return column["levels"][int(text)]
    return text if column.get("date") else number_of(str(column["name"]), text, whole=bool(column.get("integer")))


def number_of(name: str, text: str, *, whole: bool = False) -> float | int:
    """A number that was typed, or an error that names the field. A comma is not guessed at: it would be a tenfold price."""
    if not text:
        raise InvalidInput(f"{name} is empty; type a number, such as {'30' if whole else '0.1'}")
    if "," in text:
        raise InvalidInput(f"{name} is {text[:40]!r}; write decimals with a point, such as 0.5")
    number = plain_number(text)
    if number is None:
        raise InvalidInput(f"{name} is {text[:40]!r}; type a number, such as {'30' if whole else '0.1'}")
    return int(number) if whole and number.is_integer() else number


def plain_number(text: str) -> float | None:
    """The number that a text is, as the script of these pages reads it too; None for anything else.

    Examples
    --------
    >>> plain_number("0.50"), plain_number("1e-9"), plain_number("0,5"), plain_number("1_0"), plain_number("inf")
    (0.5, 1e-09, None, None, None)
    """
    number = float(text) if PLAIN_NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def buy_words(text: str) -> str:
    """What stands on the button: the price as it was read, or none.

    Examples
    --------
    >>> buy_words("0.50"), buy_words("5"), buy_words("0,5"), buy_words("-1")
    ('Buy for epsilon 0.5', 'Buy for epsilon 5', 'Buy', 'Buy')
    """
    number = plain_number(text)
    if number is None or number <= 0:
        return "Buy"
    return f"Buy for epsilon {int(number) if number.is_integer() and number < 1e15 else number}"


def request_of(
    explainer: str, form: Form, columns: Sequence[Mapping[str, Any]], features: Sequence[Mapping[str, Any]], *, quote: bool
) -> dict[str, Any]:
    """The request that a form makes.

    Parameters
    ----------
    explainer : str
        Its name in the vocabulary.
    form : Form
        What was posted.
    columns, features : sequences of columns
        The schema, and the schema without the target: options name the one, people have the other.
    quote : bool
        Whether points may be left out, because it is a quote only.
    """
    kind = KINDS.get(explainer)
    if kind is None:
        raise InvalidInput(f"there is no question called {explainer[:40]!r}; choose one of the list")
    request: dict[str, Any] = {"explainer": explainer}
    models = [name for name in form.all("model") if name]
    if kind.models == "several":
        request["model"] = models
    elif kind.models != "none" and models:
        request["model"] = models[0] if len(models) == 1 else models
    if kind.points:
        point = point_of(features, form, partly=quote)
        if point is None and not quote:
            raise InvalidInput("fill in the person first: the answer is about the values that you type")
        request |= {} if point is None else {"points": [point]}
    options = _more(form.get("more"))
    for field in question(explainer).fields:
        if (value := _option(field, form, columns)) is not None:
            options[field.name] = value
    if options:
        request["options"] = options
    request["epsilon"] = price_of(form)
    return request


def price_of(form: Form) -> float:
    """The price that was typed."""
    text = form.get("epsilon")
    if not text:
        raise InvalidInput("type a price, such as 0.1")
    return float(number_of("the price", text))


def form_of(request: Mapping[str, Any], columns: Sequence[Mapping[str, Any]], features: Sequence[Mapping[str, Any]]) -> Form:
    """The form that makes a request, but for its price: the way back from :func:`request_of`.

    A form has room for one person; of several none is filled in.
    """
    fields: dict[str, tuple[str, ...]] = {"model": tuple(models_named(request))}
    names, options = [str(column["name"]) for column in columns], dict(request.get("options", {}))
    for asked in question(str(request["explainer"])).fields:
        if (typed := _typed(asked, options.get(asked.name), names)) is not None:
            fields[f"o.{asked.name}"] = typed
            del options[asked.name]
    if options:
        fields["more"] = (json.dumps(options, ensure_ascii=False),)
    points = request.get("points", [])
    if len(points) == 1:
        for number, column in enumerate(features):
            fields[f"p.{number}"] = (_typed_value(column, points[0].get(str(column["name"]))),)
    return Form(fields)


def _typed(field: Field, value: Any, names: Sequence[str]) -> tuple[str, ...] | None:
    """An option as its field has it; None where the field cannot say it."""
    if field.kind in ("columns", "column"):
        chosen = value if isinstance(value, list) and field.kind == "columns" else [value]
        known = all(isinstance(one, str) and one in names for one in chosen)
        return tuple(str(names.index(one)) for one in chosen) if known else None
    return (str(value),) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _typed_value(column: Mapping[str, Any], value: Any) -> str:
    if "levels" in column:
        return str(column["levels"].index(value)) if value in column["levels"] else ""
    return "" if value is None or value == column.get("missing") else str(value)


def _option(field: Field, form: Form, columns: Sequence[Mapping[str, Any]]) -> Any:
    typed = [text for text in form.all(f"o.{field.name}") if text.strip()]
    if not typed:
        if field.required:
            raise InvalidInput(f"{field.label!r} is empty; choose one")
        return None
    if field.kind in ("columns", "column"):
        names = [str(column["name"]) for column in columns]
        chosen = [names[int(text)] for text in typed if text.isdecimal() and len(text) <= 9 and int(text) < len(names)]
        if len(chosen) < len(typed):
            raise InvalidInput(f"{field.label!r} names a column that is not there; choose again")
        return chosen if field.kind == "columns" else chosen[0]
    return number_of(field.label, typed[0], whole=field.kind == "whole")


def _more(text: str) -> dict[str, Any]:
    if not text:
        return {}
    given = shapes.parsed(text.encode(), "what stands under “more”")
    if not isinstance(given, dict):
        raise InvalidInput('what stands under “more” must be an object, such as {"seed": 7}')
    return dict(given)


def suggested_price(remaining: float) -> float:
    """A price to begin with: a tenth of what is left, with one digit, and not above 1."""
    tenth = min(MOST_SUGGESTED, remaining / 10)
    if tenth <= 0:
        return 0.1
    power = 10.0 ** math.floor(math.log10(tenth))
    return round(math.floor(tenth / power + 1e-9) * power, 12)
