"""Whether anything but the answer tells one set of rows from another: exceptions, warnings, log lines, screens.

The test needs no statistics. ``ask`` is called on ordinary rows and on rows in which something odd happens, and *everything
that can be heard* while it runs is written down: what it raised (with causes and contexts), warnings, log records of every
level, standard output and standard error down to the file descriptors and C's own buffers, failing threads and destructors,
and what it returned, if it returns something that must not change. Whatever differs from the ordinary case was caused by
the odd rows, and has escaped. What is heard in both cases (a warning about public rows, say) has not.

It hears what a program hears in its own process. It does not hear time, files and sockets.
"""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import decimal
import gc
import io
import logging
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..errors import InvalidInput
from .mechanism import check_function

Heard = dict[str, list[str]]
# Characters of what escaped that are shown.
SHOWN = 200


class Escape(NamedTuple):
    """Something that was heard about odd rows and not about ordinary ones.

    Attributes
    ----------
    case : str
        Which odd rows.
    channel : str
        How it came out: ``"exception"``, ``"warning"``, ``"log"``, ``"output"``, ``"thread"``, ``"destructor"`` or
        ``"result"``.
    heard : str
        What was heard.
    """

    case: str
    channel: str
    heard: str


@dataclass(frozen=True)
class EscapeAudit:
    """What :func:`escapes` heard.

    Attributes
    ----------
    cases : tuple of str
        The odd rows that were tried.
    escapes : tuple of Escape
        What escaped.
    """

    cases: tuple[str, ...]
    escapes: tuple[Escape, ...]

    @property
    def refuted(self) -> bool:
        """Whether something escaped."""
        return bool(self.escapes)

    def summary(self) -> str:
        """A sentence, and a line for each escape."""
        if not self.escapes:
            return f"Nothing escaped in {len(self.cases)} cases."
        lines = [f"  {escape.case}: {escape.channel}: {escape.heard}" for escape in self.escapes]
        return "\n".join([f"{len(self.escapes)} escapes in {len(self.cases)} cases:", *lines])


def escapes(ask: Callable[[Any], object], ordinary: object, odd: Mapping[str, object]) -> EscapeAudit:
    """Listen to ``ask`` on ordinary and on odd rows, and report every difference.

    Parameters
    ----------
    ask : callable
        Takes rows and does what is to be tested: opens them and asks a question. What it returns is compared bit by bit,
        so let it return None where noise is in it, or an exact result that odd rows must not change.
    ordinary : object
        Rows on which nothing odd happens.
    odd : mapping of str to rows
        Rows on which something does, by a name for the report.

    Returns
    -------
    EscapeAudit

    Notes
    -----
    Listening changes the process (its standard streams, hooks and log handlers) while it lasts: nothing else should run.

    Examples
    --------
    >>> import vitrail as vt  # and escapes = vt.audit.escapes
    >>> def careless(rows):
    ...     return sum(1 for value in rows if value > 0)
    >>> print(escapes(careless, [1, -1], {"a text": [1, "Ada's income"]}).summary())
    1 escapes in 1 cases:
      a text: exception: TypeError: '>' not supported between instances of 'str' and 'int'

    A question of Vitrail's, on rows one of which makes the model write on the screen and then fail:

    >>> def model(x):
    ...     if (x[:, 0] == 0.3).any():
    ...         print("a row is 0.3")
    ...         raise SystemExit("0.3")
    ...     return x[:, 0]
    >>> def ask(values):
    ...     schema = vt.Schema({"x": vt.Numeric(0, 1)})
    ...     budget = vt.Budget(1, 1e-6)
    ...     data = vt.PrivateData({"x": values}, schema, name="x", n_rows_public=3, budget=budget, ledger="memory")
    ...     predictor = vt.Model(model, range=(0, 1))
    ...     data.ask(vt.BoundedSum(lambda block: block.predictions(predictor), 1, 1.0), epsilon=0.5)
    >>> escapes(ask, [0.1, 0.2, 0.4], {"0.3": [0.1, 0.3, 0.4]}).refuted
    False
    """
    check_function("ask", ask, "of rows")
    if not isinstance(odd, Mapping) or not odd:
        raise InvalidInput("odd is empty; give at least one name and rows on which something odd happens")
    usual = _listen(ask, ordinary)
    escapes = []
    for case, rows in odd.items():
        heard = _listen(ask, rows)
        for channel in usual:
            if heard[channel] != usual[channel] and not (channel == "result" and heard["exception"]):
                difference = "; ".join(heard[channel]) or "silence, where ordinary rows are not silent"
                escapes.append(Escape(str(case), channel, difference[:SHOWN]))
    return EscapeAudit(tuple(map(str, odd)), tuple(escapes))


def _listen(ask: Callable[[Any], object], rows: object) -> Heard:
    """All that can be heard of one call."""
    heard: Heard = {"exception": [], "result": []}
    with ExitStack() as ears:
        for listen in (_to_outputs, _to_warnings, _to_logs, _to_hooks):
            listen(ears, heard)
        try:
            heard["result"].append(_bits(ask(rows)))
        except BaseException as error:  # whatever it is, it is what a caller would have got
            heard["exception"] = [_plain(line) for line in _chain(error)]
            del error
        gc.collect()  # what was left in circles speaks now or never
    return heard


def _bits(result: object) -> str:
    if isinstance(result, np.ndarray):
        return f"{result.dtype} {result.shape} {np.ascontiguousarray(result).tobytes().hex()}"
    return _plain(repr(result))


def _plain(text: str) -> str:
    return re.sub(r"0x[0-9a-fA-F]+", "0x", text)


def _chain(error: BaseException) -> Iterator[str]:
    following: BaseException | None = error
    while following is not None:
        try:
            yield f"{type(following).__name__}: {following}"
        except BaseException:
            yield f"{type(following).__name__}, which cannot be shown"
        following = following.__cause__ or following.__context__


def _to_warnings(ears: ExitStack, heard: Heard) -> None:
    caught = ears.enter_context(warnings.catch_warnings(record=True))
    warnings.simplefilter("always")

    def write_down() -> None:
        heard["warning"] = [_plain(f"{warning.category.__name__}: {warning.message}") for warning in caught]

    ears.callback(write_down)


def _to_logs(ears: ExitStack, heard: Heard) -> None:
    lines = heard["log"] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(_plain(f"{record.name}: {record.getMessage()}"))

    ear, root = Ear(level=0), logging.getLogger()
    ears.callback(logging.disable, root.manager.disable)
    ears.callback(root.setLevel, root.level)
    ears.callback(root.removeHandler, ear)
    root.addHandler(ear)
    root.setLevel(1)
    logging.disable(logging.NOTSET)


def _to_hooks(ears: ExitStack, heard: Heard) -> None:
    threads, destructors = heard["thread"], heard["destructor"] = [], []
    ears.callback(setattr, threading, "excepthook", threading.excepthook)
    ears.callback(setattr, sys, "unraisablehook", sys.unraisablehook)
    threading.excepthook = lambda hook: threads.append(f"{hook.exc_type.__name__}: {hook.exc_value}")
    sys.unraisablehook = lambda hook: destructors.append(f"{hook.exc_type.__name__}: {hook.exc_value}")


def _to_outputs(ears: ExitStack, heard: Heard) -> None:
    """Standard output and error: Python's, what libraries write past it, and what C has not written yet."""
    python = io.StringIO()
    below = ears.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    _push_out()
    for descriptor in (1, 2):
        kept = os.dup(descriptor)
        ears.callback(os.close, kept)
        ears.callback(os.dup2, kept, descriptor)
        os.dup2(below.fileno(), descriptor)

    def write_down() -> None:
        _push_out()
        below.seek(0)
        written = python.getvalue() + below.read().decode(errors="backslashreplace")
        heard["output"] = [_plain(written)] if written else []

    ears.callback(write_down)
    ears.enter_context(redirect_stdout(python))
    ears.enter_context(redirect_stderr(python))


def _push_out() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)


# What a model, or a value, may do on a private row so that somebody hears of it


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


def _warning_against_filters(secret: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(secret, stacklevel=1)


def _log_against_levels(secret: str) -> None:
    before = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    try:
        logging.getLogger("a model").critical(secret)
    finally:
        logging.disable(before)


def _thread(secret: str) -> None:
    thread = threading.Thread(target=_raiser(ValueError), args=(secret,))
    thread.start()
    thread.join()


RAISED = (
    ValueError, MemoryError, StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError
)  # fmt: skip
MISDEEDS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        **{f"raises {kind.__name__}": _raiser(kind) for kind in RAISED},
        "raises KeyboardInterrupt from ValueError": _while_handling,
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
        "prints by the C library": lambda secret: ctypes.CDLL(None).puts(secret.encode()),
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
