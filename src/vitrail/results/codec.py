"""Results to JSON and arrays, and back: both derived from the annotations of a dataclass, so that fields are declared once.

A field may be ``float``, ``int``, ``bool``, ``str``, ``None``, a ``Literal``, an ``Enum``, a ``tuple``, a ``Mapping``,
another dataclass, an ``NDArray`` of float64, intp, int64 or bool, a union of these, or a type with ``to_json`` and
``from_json`` of its own (``Guarantee``, ``Schema``). Fields with ``compare=False`` are not written.

Reading believes nothing: every value must have its declared type, every field must be there and none more, every number
must be finite; then the constructor checks whether the values belong together. An array of more than ``INLINE`` numbers is a
.npy file that is called after its field; smaller ones stand in the JSON text. Tests:
tests/results/test_codec.py, tests/results/test_stored.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..accounting import Cost, JsonValue
from ..errors import DamagedFile, InvalidInput
from .archive import array_bytes, array_of, json_bytes, parsed_json

FIELDS = "fields.json"
INLINE = 256
LEVELS = "levels"
"""Marks a tuple of floats where an array could stand as well."""
MOST_DIGITS = 100
UNSAID = MappingProxyType({"unsaid": True})
"""Metadata of a field that came later: left out of a file where it has its default, as older readers know it."""
_PLAIN = (str, int, float, bool, NoneType)
_COSTS = ("pico_mu_squared", "pico_epsilon", "quecto_delta")
T = TypeVar("T")


class Unfit(ValueError):
    """A stored value that is not what its field declares."""


@dataclass
class Members:
    """The arrays beside a JSON text; on reading, which of them were named by it."""

    inline: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


def to_files(content: object) -> dict[str, bytes]:
    """The members that a dataclass is stored as: ``fields.json`` and its larger arrays. Equal content, equal bytes."""
    members = Members()
    return {FIELDS: json_bytes(_write(type(content), content, members, "")), **members.files}


def from_files(kind: type[T], files: Mapping[str, bytes], what: str) -> T:
    """What ``to_files`` wrote, checked; :class:`DamagedFile` for anything else."""
    if FIELDS not in files:
        raise DamagedFile(f"{what} lacks {FIELDS}; it may have been cut")
    members = Members(files={name: content for name, content in files.items() if name != FIELDS})
    return _checked(kind, parsed_json(files[FIELDS], f"{FIELDS} of {what}"), members, what)


def to_json(content: object) -> dict[str, JsonValue]:
    """A dataclass as plain JSON values, arrays as lists; every number is written so that it reads back exactly."""
    written = _write(type(content), content, Members(inline=True), "")
    assert isinstance(written, dict)
    return written


def from_json(kind: type[T], value: JsonValue, what: str) -> T:
    """What ``to_json`` wrote, checked; :class:`DamagedFile` for anything else."""
    return _checked(kind, value, Members(), what)


def stored_fields(kind: Any) -> Mapping[str, Any]:
    """The type of every field of a dataclass that is written, by name."""
    return _stored_fields(kind)


@cache
def _stored_fields(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return MappingProxyType({own.name: _unaliased(hints[own.name]) for own in fields(kind) if own.compare})


def unsaid_fields(kind: Any) -> Mapping[str, Any]:
    """The defaults of fields that are not written where they have them."""
    return {own.name: own.default for own in fields(kind) if own.metadata.get("unsaid")}


def _unaliased(kind: Any) -> Any:
    """A type without names for types: ``NDArray`` is one for NumPy, from 2.5 and Python 3.12 on."""
    origin, args = get_origin(kind), get_args(kind)
    if hasattr(origin, "__value__"):
        return _unaliased(origin.__value__[args])
    plain = tuple(map(_unaliased, args))
    if plain == args:
        return kind
    return Union[plain] if origin in (Union, UnionType) else origin[plain]  # noqa: UP007 - made, not written


def _checked(kind: type[T], value: JsonValue, members: Members, what: str) -> T:
    try:
        with np.errstate(all="ignore"):  # numbers out of all bounds are refused, or harmless: no warnings
            made: T = _read(kind, value, members, "")
        if spare := sorted(set(members.files) - members.used):
            raise Unfit(f"no field is stored in {spare[0]!r}")
    except Exception as error:  # the values may be anybody's: no content may raise anything else
        reason = str(error) if isinstance(error, Unfit | InvalidInput) else f"{type(error).__name__}: {error}"
        raise DamagedFile(f"{what} cannot be read as {kind.__name__}: {reason[:400]}") from error
    return made


# --- writing ---------------------------------------------------------------------------------------------------------


def _write(kind: Any, value: Any, members: Members, name: str) -> JsonValue:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _write_union(args, value, members, name)
    if origin is np.ndarray:
        return _write_array(kind, value, members, name)
    if origin is tuple:
        kinds = args[:1] * len(value) if Ellipsis in args else args
        return [_write(*pair, members, f"{name}-{i}") for i, pair in enumerate(zip(kinds, value, strict=True))]
    if origin in (Mapping, dict):
        made = {key: _write(args[1], entry, members, f"{name}-{i}") for i, (key, entry) in enumerate(value.items())}
        return made if args[0] is str else [[_write(args[0], key, members, ""), entry] for key, entry in made.items()]
    if kind is Cost:
        # Whole numbers beyond 2**53 are written as text: other languages' readers would round them.
        return dict(zip(_COSTS, (value.pico_mu_squared, value.pico_epsilon, str(value.quecto_delta)), strict=True))
    if _is_own(kind):
        written: JsonValue = value.to_json()
    elif is_dataclass(kind):
        types, unsaid = stored_fields(kind), unsaid_fields(kind)
        said = (own for own in types if own not in unsaid or getattr(value, own) != unsaid[own])
        written = {own: _write(types[own], getattr(value, own), members, _join(name, own)) for own in said}
    elif isinstance(value, Enum):
        written = value.value
    else:  # what NumPy calls a number becomes a plain one
        written = value if origin is Literal or kind is NoneType else kind(value)
    return written


def _write_union(kinds: tuple[Any, ...], value: Any, members: Members, name: str) -> JsonValue:
    exact = [kind for kind in kinds if type(value) is kind]
    chosen = exact or [kind for kind in kinds if isinstance(value, _class_of(kind))]
    if not chosen:
        raise InvalidInput(f"{name or 'a value'} is {type(value).__name__}, which no file can hold there")
    written = _write(chosen[0], value, members, name)
    if isinstance(value, tuple) and _holds_arrays(kinds) and _all_floats(value):
        return {LEVELS: written}
    return written


def _write_array(kind: Any, value: Any, members: Members, name: str) -> JsonValue:
    array = np.asarray(value, dtype=_dtype_of(kind))
    if members.inline or (array.size <= INLINE and (array.size or array.ndim == 1)):
        listed: JsonValue = array.tolist()
        return listed
    file = f"{name}.npy"
    members.files[file] = array_bytes(array)
    return file


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(kind: Any, value: JsonValue, members: Members, name: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read_union(args, value, members, name)
    if origin is np.ndarray:
        return _read_array(kind, value, members, name)
    if origin is tuple:
        listed = _listed(value, name)
        if Ellipsis in args and args[0] is str and all(type(entry) is str for entry in listed):
            return tuple(listed)  # labels, levels and notes are many
        kinds = args[:1] * len(listed) if Ellipsis in args else args
        if len(kinds) != len(listed):
            raise Unfit(f"{name!r} has {len(listed)} entries and not {len(kinds)}")
        return tuple(_read(*pair, members, f"{name}-{i}") for i, pair in enumerate(zip(kinds, listed, strict=True)))
    if origin in (Mapping, dict):
        made = _read_mapping(args[0], args[1], value, members, name)
        return made if origin is dict else MappingProxyType(made)
    if kind is Cost:
        return Cost(**{unit: _whole(amount, unit) for unit, amount in _record(value, name, _COSTS).items()})
    if _is_own(kind):
        return _read_own(kind, value, name)
    if is_dataclass(kind):
        types = stored_fields(kind)
        record = _record({**unsaid_fields(kind), **value} if isinstance(value, dict) else value, name, types)
        make: Any = kind
        made = make(**{own: _read(type_, record[own], members, _join(name, own)) for own, type_ in types.items()})
        if hasattr(made, "check_read"):
            made.check_read()
        return made
    if origin is Literal or issubclass(kind, Enum):
        choices: Any = args if origin is Literal else [member.value for member in kind]
        if not isinstance(value, str) or value not in choices:
            raise Unfit(f"{name!r} must be one of {', '.join(map(repr, choices))}")
        return value if origin is Literal else kind(value)
    return _read_plain(kind, value, name)


def _read_plain(kind: type, value: JsonValue, name: str) -> Any:
    if kind is float and type(value) in (int, float):
        number = float(value)  # type: ignore[arg-type]
        if math.isfinite(number):
            return number
    elif type(value) is kind and kind in _PLAIN:
        return value
    raise Unfit(f"{name!r} is {str(value)[:60]!r}; it must be {_WORDS.get(kind, 'nothing')}")


def _read_union(kinds: tuple[Any, ...], value: JsonValue, members: Members, name: str) -> Any:
    if type(value) in kinds:  # 1 is a whole number and 1.0 is none, where both may stand
        return _read_plain(type(value), value, name)
    others = [kind for kind in kinds if kind is not NoneType]
    if _holds_arrays(kinds) and len(others) > 1:
        if isinstance(value, dict) and set(value) == {LEVELS}:
            value, others = value[LEVELS], [kind for kind in others if get_origin(kind) is not np.ndarray]
        elif isinstance(value, list) and not _all_floats(value):
            others = [kind for kind in others if get_origin(kind) is not np.ndarray]
    unfit = Unfit(f"{name!r} is {str(value)[:60]!r}, which is none of the values that it may have")
    for kind in others:
        try:
            return _read(kind, value, members, name)
        except Unfit as error:
            unfit = error
    raise unfit


def _read_array(kind: Any, value: JsonValue, members: Members, name: str) -> Any:
    dtype = _dtype_of(kind)
    if isinstance(value, str):
        if value != f"{name}.npy" or value not in members.files:
            raise Unfit(f"{name!r} names the file {value[:60]!r}, and must name {name + '.npy'!r}")
        members.used.add(value)
        array = array_of(members.files[value], value)
        if array.dtype != dtype.newbyteorder("<"):
            raise Unfit(f"{value} has dtype {array.dtype}, and must have {dtype}")
        return array.astype(dtype, copy=False)
    kinds = {"f": (int, float), "i": (int,), "b": (bool,)}[dtype.kind]
    _check_numbers(value, kinds, name)
    array = np.array(value, dtype=dtype)
    if not np.isfinite(array).all():
        raise Unfit(f"{name!r} holds a number that is not finite")
    array.flags.writeable = False
    return array


def _read_mapping(key: Any, kind: Any, value: JsonValue, members: Members, name: str) -> dict[Any, Any]:
    if key is str:
        if not isinstance(value, dict):
            raise Unfit(f"{name!r} must be an object")
        pairs: list[Any] = list(value.items())
    else:
        pairs = [_listed(pair, name) for pair in _listed(value, name)]
    if any(len(pair) != 2 for pair in pairs):
        raise Unfit(f"{name!r} must be pairs of a key and a value")
    made = {_read(key, k, members, ""): _read(kind, v, members, f"{name}-{i}") for i, (k, v) in enumerate(pairs)}
    if len(made) < len(pairs):
        raise Unfit(f"{name!r} names a key twice")
    return made


def _read_own(kind: Any, value: JsonValue, name: str) -> Any:
    try:
        made = kind.from_json(value)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise Unfit(f"{name!r} cannot be read: {type(error).__name__}: {error}") from error
    if made.to_json() != value:
        raise Unfit(f"{name!r} is not written as Vitrail writes it")
    return made


# --- kinds -----------------------------------------------------------------------------------------------------------

_WORDS = {float: "a finite number", int: "a whole number", bool: "true or false", str: "a text", NoneType: "null"}


def _is_own(kind: Any) -> bool:
    """Whether a type writes itself: it has both methods, and is none of the dataclasses that inherit them from here."""
    return hasattr(kind, "to_json") and hasattr(kind, "from_json") and not hasattr(kind, "FORMAT")


def _class_of(kind: Any) -> Any:
    origin = get_origin(kind)
    return {Literal: str, tuple: (tuple, list)}.get(origin, origin or ((float, int) if kind is float else kind))


def _holds_arrays(kinds: tuple[Any, ...]) -> bool:
    return any(get_origin(kind) is np.ndarray for kind in kinds)


def _all_floats(values: Any) -> bool:
    return bool(values) and all(type(value) is float for value in values)


def _dtype_of(kind: Any) -> np.dtype[Any]:
    made: np.dtype[Any] = np.dtype(get_args(get_args(kind)[1])[0])
    return made


def _join(name: str, field_name: str) -> str:
    return f"{name}-{field_name}" if name else field_name


def _record(value: JsonValue, name: str, names: Mapping[str, Any] | tuple[str, ...]) -> dict[str, JsonValue]:
    """An object with exactly these fields."""
    called = repr(name) if name else "it"
    if not isinstance(value, dict):
        raise Unfit(f"{called} is no object")
    for missing in (field_name for field_name in names if field_name not in value):
        raise Unfit(f"{called} lacks {missing!r}; it may have been cut or edited")
    for spare in (field_name for field_name in value if field_name not in names):
        raise Unfit(f"{called} has a field {str(spare)[:60]!r}, which this version does not know")
    return value


def _listed(value: JsonValue, name: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise Unfit(f"{name!r} must be a list")
    return value


def _whole(value: JsonValue, name: str) -> int:
    if name == _COSTS[2] and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < MOST_DIGITS:
        value = int(value)
    if type(value) is not int or value < 0:
        raise Unfit(f"{name!r} must be a whole number of at least 0")
    return value


def _check_numbers(value: JsonValue, kinds: tuple[type, ...], name: str) -> None:
    """Lists of numbers, or of lists of numbers. Texts that read as numbers are none."""
    if not isinstance(value, list):
        raise Unfit(f"{name!r} must be a list of numbers, or of lists of them")
    if not all(type(entry) in kinds for entry in value):
        for entry in value:
            _check_numbers(entry, kinds, name)
