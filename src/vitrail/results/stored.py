"""Curves and rankings as JSON: the same versioned plain values as explanations, with a format name of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee
from . import files
from .band_claim import BandClaim

Made = TypeVar("Made")


def header(kind: str, version: int, guarantee: Guarantee, cost: Cost, notes: tuple[str, ...]) -> dict[str, JsonValue]:
    """What every stored result begins with: its format, promise, price and notes."""
    return {
        "format": f"{kind}/{version}",
        "guarantee": guarantee.to_json(),
        # Whole numbers beyond 2**53 are written as text: other languages' readers would round them.
        "cost": {
            "pico_mu_squared": cost.pico_mu_squared,
            "pico_epsilon": cost.pico_epsilon,
            "quecto_delta": str(cost.quecto_delta),
        },
        "notes": list(notes),
    }


def read(kind: str, version: int, fields: Mapping[str, JsonValue], make: Callable[[Mapping[str, JsonValue]], Made]) -> Made:
    """What ``make`` reads from stored fields of this format; an error that says what is wrong otherwise."""
    what = kind.removeprefix("vitrail-")
    found = fields.get("format") if isinstance(fields, Mapping) else None
    if not isinstance(found, str) or not found.startswith(f"{kind}/"):
        named = f"; it names the format {found[:60]!r}" if isinstance(found, str) else ""
        raise InvalidInput(f"what was given is not a {what} as its to_json writes it{named}")
    if found != f"{kind}/{version}":
        raise InvalidInput(
            f"what was given has the format {found[:60]!r}; this version of Vitrail reads '{kind}/{version}', upgrade to "
            "read it"
        )
    try:
        return make(fields)
    except KeyError as error:
        raise InvalidInput(f"what was given is a {what} that lacks {error}; it may have been cut or edited") from error
    except InvalidInput:
        raise
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"what was given is a {what} that cannot be read: {error}") from error


def promise(fields: Mapping[str, JsonValue]) -> tuple[Guarantee, Cost, tuple[str, ...]]:
    """The promise, the price and the notes that ``header`` wrote."""
    return Guarantee.from_json(fields["guarantee"]), files._cost(fields), texts(fields, "notes")


def band_claim(fields: Mapping[str, JsonValue]) -> BandClaim:
    """What the bands claim."""
    return files._band_claim(fields)


def texts(fields: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    """A list of texts."""
    return files._texts(fields[name], name)


def numbers(fields: Mapping[str, JsonValue], name: str) -> list[object] | None:
    """A list of numbers (or of lists of them), or nothing."""
    return None if fields[name] is None else files._numbers(fields[name], name)


def text(fields: Mapping[str, JsonValue], name: str) -> str:
    """One text."""
    value = fields[name]
    if not isinstance(value, str):
        raise TypeError(f"{name!r} must be a text")
    return value
