"""What a model, or a value, may do on a private row so that somebody hears of it: the material of ``escapes``."""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import decimal
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NoReturn


class Panic(BaseException):
    """As libraries written in Rust raise it: no ``Exception``."""


class _Dies:
    """Raises when it is thrown away, at once or, in a circle, when Python next looks for circles."""

    def __init__(self, secret: str, *, in_a_circle: bool) -> None:
        self.secret, self.circle = secret, self if in_a_circle else None

    def __del__(self) -> None:
        raise ValueError(self.secret)


class OddNumber(float):
    """A number that raises whenever it is used as one."""

    def __new__(cls, secret: str) -> OddNumber:
        """It holds a secret."""
        made = super().__new__(cls, 0.0)
        made.secret = secret
        return made

    secret: str

    def _panics(self, *_: object) -> NoReturn:
        print(self.secret)
        raise Panic(self.secret)

    __float__ = __hash__ = __eq__ = __repr__ = __str__ = __bool__ = _panics


def _raiser(kind: Callable[[str], BaseException]) -> Callable[[str], object]:
    def misdeed(secret: str) -> object:
        raise kind(secret)

    return misdeed


def _recursion(secret: str) -> object:
    return _recursion(secret + "!")


def _while_handling(secret: str) -> object:
    try:
        raise ValueError(secret)
    except ValueError as error:
        raise KeyboardInterrupt from error


def _warning_against_filters(secret: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(secret, stacklevel=1)
    return None


def _log_against_levels(secret: str) -> None:
    before = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    try:
        logging.getLogger("a model").critical(secret)
    finally:
        logging.disable(before)


def _print_by_c(secret: str) -> object:
    return ctypes.CDLL(None).puts(secret.encode())


def _thread(secret: str) -> object:
    def work() -> None:
        raise ValueError(secret)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return None


MISDEEDS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "raises ValueError": _raiser(ValueError),
        "raises MemoryError": _raiser(MemoryError),
        "raises StopIteration": _raiser(StopIteration),
        "raises SystemExit": _raiser(SystemExit),
        "raises KeyboardInterrupt": _raiser(KeyboardInterrupt),
        "raises KeyboardInterrupt from ValueError": _while_handling,
        "raises GeneratorExit": _raiser(GeneratorExit),
        "raises CancelledError": _raiser(asyncio.CancelledError),
        "raises a panic": _raiser(Panic),
        "raises a group": _raiser(lambda secret: BaseExceptionGroup(secret, [Panic(secret)])),
        "recurses for ever": _recursion,
        "warns": lambda secret: warnings.warn(secret, stacklevel=1),
        "warns against filters": _warning_against_filters,
        "logs": lambda secret: logging.getLogger("a model").error(secret),
        "logs against levels": _log_against_levels,
        "logs by a handler": lambda secret: [
            handler.handle(logging.LogRecord("a model", 60, "", 0, secret, (), None)) for handler in logging.root.handlers
        ],
        "prints": lambda secret: print(secret),
        "prints to standard error": lambda secret: print(secret, file=sys.stderr),
        "prints to the first standard output": lambda secret: print(secret, file=sys.__stdout__),
        "writes to descriptor 1": lambda secret: os.write(1, secret.encode()),
        "writes to descriptor 2": lambda secret: os.write(2, secret.encode()),
        "prints by the C library": _print_by_c,
        "fails in a thread": _thread,
        "fails in a destructor": lambda secret: _Dies(secret, in_a_circle=False).secret,
        "fails in a destructor later": lambda secret: _raiser(ValueError)(_Dies(secret, in_a_circle=True).secret),
    }
)
"""Things to do with a secret that must not get out: call one where a model, or a function on rows, sees its row."""


def odd_values(secret: str) -> dict[str, object]:
    r"""Values that have made some reader of columns raise, each with a secret in it where one fits.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.audit.odd_values("Ada")["not UTF-8"]
    b'Ada\xe9'
    """
    return {
        "not UTF-8": secret.encode() + b"\xe9",
        "lone surrogate": secret + "\ud800",
        "null character": secret + "\x00",
        "text": secret,
        "text of a number": " 7.5 ",
        "nothing": None,
        "not a number": float("nan"),
        "infinity": float("inf"),
        "beyond floats": 10**400,
        "beyond exact floats": 2**53 + 1,
        "complex": 1j,
        "decimal": decimal.Decimal("NaN"),
        "signalling decimal": decimal.Decimal("sNaN"),
        "date": datetime.date(9999, 12, 31),
        "list": [secret],
        "dictionary": {secret: secret},
        "type": int,
        "raises when used": OddNumber(secret),
    }
