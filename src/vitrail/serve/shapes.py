"""Shapes of JSON values: the part of JSON Schema that requests need, checked with sentences of ours.

One shape says what is allowed, is written into the OpenAPI description, and is what requests are checked against.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from .._checks import did_you_mean, listed
from ..accounting import JsonValue
from ..errors import InvalidInput

Shape: TypeAlias = Mapping[str, Any]
MOST_TEXT = 1000
"""Letters of a text in a request: names, levels, sentences."""
MOST_LISTED = 10_000
LARGEST_WHOLE = 2**53
"""Whole numbers up to here are the same in every JSON reader."""

TEXT: Shape = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}
NUMBER: Shape = {"type": "number"}
WHOLE: Shape = {"type": "integer", "minimum": -LARGEST_WHOLE, "maximum": LARGEST_WHOLE}
FLAG: Shape = {"type": "boolean"}
NULL: Shape = {"type": "null"}
LEVEL: Shape = {"anyOf": [{"type": "string", "maxLength": MOST_TEXT}, NUMBER, FLAG]}
"""What stands in a cell of a table."""
CELL: Shape = {"anyOf": [*LEVEL["anyOf"], NULL]}


def one_of(*texts: str) -> Shape:
    """One of several texts."""
    return {"type": "string", "enum": list(texts)}


def either(*shapes: Shape) -> Shape:
    """Any of several shapes."""
    return {"anyOf": list(shapes)}


def list_of(shape: Shape, *, least: int = 0, most: int = MOST_LISTED) -> Shape:
    """A list."""
    return {"type": "array", "items": shape, "minItems": least, "maxItems": most}


def table_of(shape: Shape, *, most: int = MOST_LISTED) -> Shape:
    """An object with any names."""
    return {"type": "object", "additionalProperties": shape, "maxProperties": most}


def record(required: Iterable[str] = (), **fields: Shape) -> Shape:
    """An object with these names and no others."""
    return {"type": "object", "properties": fields, "required": sorted(required), "additionalProperties": False}


_WORDS = {
    "string": "a text",
    "number": "a finite number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def check(value: object, shape: Shape, where: str) -> None:
    """Refuse a value of another shape, and say where it stands.

    Examples
    --------
    >>> check({"bins": "many"}, record(bins=WHOLE), "options")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: options.bins is 'many'; it must be a whole number
    """
    if "anyOf" in shape:
        if not any(_fits(value, one, where) for one in shape["anyOf"]):
            raise InvalidInput(f"{where} is {_shown(value)}; it must be {words(shape)}")
        return
    kind = shape["type"]
    if not _is(value, kind):
        raise InvalidInput(f"{where} is {_shown(value)}; it must be {words(shape)}")
    if kind == "string":
        _check_text(str(value), shape, where)
    elif kind in ("number", "integer"):
        _check_number(value, shape, where)
    elif kind == "array":
        assert isinstance(value, list)
        if not shape.get("minItems", 0) <= len(value) <= shape.get("maxItems", math.inf):
            raise InvalidInput(f"{where} has {len(value)} entries; it may have {shape['minItems']} to {shape['maxItems']}")
        for number, one in enumerate(value):
            check(one, shape["items"], f"{where}[{number}]")
    elif kind == "object":
        assert isinstance(value, dict)
        _check_object(value, shape, where)


def words(shape: Shape) -> str:
    """What a shape wants, in a few words.

    Examples
    --------
    >>> words(either(list_of(TEXT), NULL))
    'a list or null'
    """
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(words(one) for one in shape["anyOf"]))
    return listed([repr(text) for text in shape["enum"]]) if "enum" in shape else _WORDS[shape["type"]]


def parsed(content: bytes, what: str = "the request") -> JsonValue:
    """A JSON value, strictly: no name twice, no NaN, nothing deeper than a request needs."""

    def refuse(text: str) -> float:
        raise InvalidInput(f"{what} holds {text}, which is no number; leave it out, or write null")

    def once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        made: dict[str, JsonValue] = {}
        for name, one in pairs:
            if name in made:
                raise InvalidInput(f"{what} names {_shown(name)} twice")
            made[name] = one
        return made

    try:
        value: JsonValue = json.loads(content, parse_constant=refuse, object_pairs_hook=once)
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is no JSON text: {str(error)[:100] or 'it is too deep'}") from None
    return value


def _fits(value: object, shape: Shape, where: str) -> bool:
    try:
        check(value, shape, where)
    except InvalidInput:
        return False
    return True


def _is(value: object, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "null":
        return value is None
    return isinstance(value, {"string": str, "boolean": bool, "array": list, "object": dict}[kind])


def _check_text(value: str, shape: Shape, where: str) -> None:
    if "enum" in shape and value not in shape["enum"]:
        raise InvalidInput(f"{where} is {_shown(value)}; it must be {words(shape)}.{did_you_mean(value, shape['enum'])}")
    if not shape.get("minLength", 0) <= len(value) <= shape.get("maxLength", math.inf):
        raise InvalidInput(
            f"{where} has {len(value)} letters; it may have {shape.get('minLength', 0)} to {shape['maxLength']}"
        )
    if any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidInput(f"{where} holds a letter that no text has")


def _check_number(value: Any, shape: Shape, where: str) -> None:
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise InvalidInput(f"{where} is too large; it must be a finite number")
    if not shape.get("minimum", -math.inf) <= value <= shape.get("maximum", math.inf):
        raise InvalidInput(f"{where} is {value!r}; it may be {shape.get('minimum')} to {shape.get('maximum')}")


def _check_object(value: dict[str, Any], shape: Shape, where: str) -> None:
    known, others = shape.get("properties", {}), shape["additionalProperties"]
    if len(value) > shape.get("maxProperties", math.inf):
        raise InvalidInput(f"{where} has {len(value)} entries; it may have {shape['maxProperties']}")
    for name, one in value.items():
        _check_text(name, {"maxLength": MOST_TEXT}, f"a name in {where}")
        if name in known:
            check(one, known[name], f"{where}.{name}" if where else name)
        elif others is False:
            there = f"; known are {listed(sorted(known))}" if known else ", and nothing is"
            raise InvalidInput(
                f"{where or 'the request'} has {name!r}, which is not known{there}.{did_you_mean(name, known)}"
            )
        else:
            check(one, others, f"{where}.{name}")
    if missing := [name for name in shape.get("required", ()) if name not in value]:
        raise InvalidInput(f"{where or 'the request'} has no {missing[0]!r}; give it: {words(known[missing[0]])}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
