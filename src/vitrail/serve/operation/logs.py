"""The service's log: a line of JSON for each event, with fields from a list, on a copy of standard error.

While rows are in hand the process is silent (``nothing_escapes``): logging is off and descriptor 2 leads nowhere. A log that
stopped whenever somebody asks would be no log, so this one keeps a copy of the descriptor from the start. It can, because
nothing that is written here can carry a row: fields are those of ``FIELDS``, and of errors that are not ours the kind alone.

Records of other libraries (uvicorn's) become lines without their words: logger, level, kind.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from ..._tables import printable
from ...errors import InvalidInput, VitrailError

Level: TypeAlias = Literal["info", "warning", "error"]
Plain: TypeAlias = str | int | float | bool | None

FIELDS = frozenset(
    {
        *("person", "role", "credential", "method", "route", "status", "code", "job", "dataset", "explainer", "model"),
        *("account", "state", "attempts", "step", "steps", "address", "version", "name", "datasets", "models", "people"),
        *("kind", "sentence", "logger", "signal", "where"),
    }
)
"""What a line may hold beside time, level and event. No time that something took, no count of rows, no value."""
MOST_LETTERS = 500


class Log:
    """Lines of JSON on a copy of a descriptor.

    Parameters
    ----------
    descriptor : int
        Where lines go; standard error if not given. It is copied when the log is made.

    Examples
    --------
    >>> import os
    >>> reader, writer = os.pipe()
    >>> log = Log(writer)
    >>> log.write("started", address="http://127.0.0.1:8765")
    >>> json.loads(os.read(reader, 999))["event"]
    'started'
    >>> log.write("asked", age=41)
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: the log's line 'asked' has the field 'age', which is not in its list
    """

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor: int | None = os.dup(descriptor)
        self._lock = threading.Lock()

    def write(self, event: str, *, level: Level = "info", **fields: Plain) -> None:
        """Add one line. A field that is not in the list, or holds more than a plain value, is refused."""
        for name, value in fields.items():
            if name not in FIELDS:
                raise InvalidInput(f"the log's line {event!r} has the field {name!r}, which is not in its list")
            if value is not None and not isinstance(value, str | int | float | bool):
                raise InvalidInput(f"the field {name!r} of a log's line is a {type(value).__name__}; give a plain value")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({"time": now, "level": level, "event": event, **_shortened(fields)}, ensure_ascii=False)
        with self._lock, suppress(OSError):  # a pipe whose reader is gone ends no service
            if self._descriptor is not None:
                os.write(self._descriptor, f"{line}\n".encode())

    def at_once(self, event: str) -> None:
        """Add a line without waiting for anybody: from a signal's handler, which may have interrupted another line."""
        now, descriptor = datetime.now(UTC).isoformat(timespec="seconds"), self._descriptor
        if descriptor is not None:
            with suppress(OSError):
                os.write(descriptor, f"{json.dumps({'time': now, 'level': 'info', 'event': event})}\n".encode())

    def failed(self, event: str, error: BaseException, **fields: Plain) -> None:
        """Add a line about an error: its sentence if it is ours, else its kind alone."""
        ours = {"sentence": str(error)} if isinstance(error, VitrailError) else {}
        self.write(event, level="error", kind=kind_of(error), **ours, **fields)

    def take_over(self) -> None:
        """Let this log have what libraries log, without their words; nothing else listens from now on."""
        for name in ("", "uvicorn", "uvicorn.error", "uvicorn.access", "alembic", "sqlalchemy"):
            logger = logging.getLogger(name)
            logger.handlers = [_Wordless(self)] if not name else []
            logger.propagate = True
        logging.getLogger().setLevel(logging.WARNING)

    def close(self) -> None:
        """Give the descriptor back; later lines are dropped."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor = None


class _Wordless(logging.Handler):
    """Turns records of others into lines that hold none of their words."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """One line: who, how bad, and the kind of the error, if there is one."""
        error = record.exc_info[1] if record.exc_info else None
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        known: dict[str, Plain] = {} if error is None else {"kind": kind_of(error)}
        self._log.write("logged", level=level, logger=record.name, **known)


def kind_of(error: BaseException) -> str:
    """The name of an error's class, if its module knows the class by it: a class made on the spot may be called anything.

    Examples
    --------
    >>> kind_of(KeyError("Mr Smith"))
    'KeyError'
    >>> kind_of(type("Mr Smith", (Exception,), {})())
    'an error'
    """
    known = getattr(sys.modules.get(type(error).__module__), type(error).__name__, None)
    return type(error).__name__ if known is type(error) else "an error"


def _shortened(fields: Mapping[str, Plain]) -> dict[str, Plain]:
    return {name: printable(value)[:MOST_LETTERS] if isinstance(value, str) else value for name, value in fields.items()}
