"""Explanations as JSON: a versioned format of plain values, written and read without running anything.

Python writes a float as the shortest text that reads back as the same float, so every number returns exactly. Costs are
whole numbers that may pass 2**53, where other languages' readers round; the largest is therefore written as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee
from .band_claim import BandClaim

if TYPE_CHECKING:
    from .attribution import Attribution

KIND = "vitrail-explanation"
VERSION = 1
_ARRAYS = ("values", "base_values", "outputs", "lower", "upper", "coefficients", "intercepts")
_OPTIONAL = ("lower", "upper", "coefficients", "intercepts")
_COSTS = ("pico_mu_squared", "pico_epsilon", "quecto_delta")


def to_json(explanation: Attribution) -> dict[str, JsonValue]:
    """The explanation as plain JSON values."""
    fields: dict[str, JsonValue] = {"format": f"{KIND}/{VERSION}", "method": explanation.method}
    fields["columns"] = list(explanation.columns)
    fields["points"] = [dict(point) for point in explanation.points]  # type: ignore[arg-type]
    for name in _ARRAYS:
        numbers: NDArray[np.float64] | None = getattr(explanation, name)
        fields[name] = None if numbers is None else numbers.tolist()
    fields["features"] = list(explanation.features)
    fields["notes"] = list(explanation.notes)
    fields["band_claim"] = explanation.band_claim.value
    fields["guarantee"] = explanation.guarantee.to_json()
    cost = explanation.cost
    fields["cost"] = dict(zip(_COSTS, (cost.pico_mu_squared, cost.pico_epsilon, str(cost.quecto_delta)), strict=True))
    return fields


def from_json(fields: Mapping[str, JsonValue], source: str = "what was given") -> dict[str, object]:
    """The arguments of an explanation, from what ``to_json`` wrote; an error that says what is wrong otherwise."""
    kind = fields.get("format") if isinstance(fields, Mapping) else None
    if not isinstance(kind, str) or not kind.startswith(f"{KIND}/"):
        named = f"; it names the format {kind[:60]!r}" if isinstance(kind, str) else ""
        raise InvalidInput(f"{source} is not an explanation as Attribution.to_json or save writes it{named}")
    if kind != f"{KIND}/{VERSION}":
        raise InvalidInput(
            f"{source} has the format {kind[:60]!r}; this version of Vitrail reads '{KIND}/{VERSION}', upgrade to read it"
        )
    try:
        return _arguments(fields)
    except KeyError as error:
        raise InvalidInput(f"{source} is an explanation that lacks {error}; it may have been cut or edited") from error
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"{source} is an explanation that cannot be read: {error}") from error


def save(fields: dict[str, JsonValue], path: str | Path) -> Path:
    """Write JSON text; returns where."""
    target = Path(path)
    try:
        target.write_text(json.dumps(fields, allow_nan=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"the explanation cannot be written to {str(path)!r}: {error.strerror}") from error
    return target


def load(path: str | Path) -> Mapping[str, JsonValue]:
    """The JSON values in a file."""
    try:
        read: Mapping[str, JsonValue] = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the explanation cannot be read from {str(path)!r}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the file {str(path)!r} is not whole JSON text; it may have been cut, or is something else"
        ) from error
    return read


def _arguments(fields: Mapping[str, JsonValue]) -> dict[str, object]:
    made: dict[str, object] = {}
    for name in _ARRAYS:
        if (numbers := fields[name]) is None and name in _OPTIONAL:
            made[name] = None
        else:
            made[name] = _numbers(numbers, name)
    for name in ("columns", "features", "notes"):
        made[name] = _texts(fields[name], name)
    points = fields["points"]
    if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
        raise TypeError("'points' must be a list of objects")
    for point in points:
        if any(isinstance(value, list | dict) for value in point.values()):  # type: ignore[union-attr]
            raise TypeError("a point must hold texts and numbers only")
    method = fields["method"]
    if not isinstance(method, str):
        raise TypeError("'method' must be a text")
    return {
        **made,
        "points": tuple(points),
        "method": method,
        "guarantee": Guarantee.from_json(fields["guarantee"]),
        "cost": _cost(fields),
        "band_claim": _band_claim(fields),
    }


def _band_claim(fields: Mapping[str, JsonValue]) -> BandClaim:
    for claim in BandClaim:
        if fields["band_claim"] == claim.value:
            return claim
    raise ValueError(f"'band_claim' must be one of {', '.join(repr(claim.value) for claim in BandClaim)}")


def _cost(fields: Mapping[str, JsonValue]) -> Cost:
    cost = fields["cost"]
    if not isinstance(cost, dict):
        raise TypeError("'cost' must be an object")
    parts: list[int] = []
    for name in _COSTS:
        part = cost[name]
        if isinstance(part, str) and part.isascii() and part.isdigit() and len(part) < 100:
            part = int(part)
        if isinstance(part, bool) or not isinstance(part, int) or part < 0:
            raise ValueError(f"{name!r} of the cost must be a whole number of at least 0")
        parts.append(part)
    return Cost(*parts)


def _texts(value: JsonValue, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"{name!r} must be a list of texts")
    return tuple(str(one) for one in value)


def _numbers(value: JsonValue, name: str) -> list[object]:
    """Lists of numbers, or of lists of numbers. Texts that read as numbers are none."""
    if isinstance(value, list):
        numbers: list[object] = [float(one) for one in value if _is_number(one)]
        if len(numbers) == len(value):
            return numbers
        if all(isinstance(row, list) for row in value):
            return [_numbers(row, name) for row in value]
    raise TypeError(f"{name!r} must be a list of numbers, or of lists of them")


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
