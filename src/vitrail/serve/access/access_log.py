"""The access log: who called which route, and with what outcome; one JSON object a line, each chained to the one before.

A line carries the SHA-256 of the line before it, so a line that is changed, removed or put in is found (:func:`verify`). The
hashes find damage, not forgery: who may write the file can make another chain. An auditor who notes the head now and then
finds that too, and a cut end, because every later log must pass through a head that was noted.

What is not in it: addresses and queries as they were sent, bodies, how long anything took. The route is the template
(``/v1/jobs/{job_id}``), and of its parameters only those that are public names of the house.

*One ``os.write`` a line*, to a descriptor of its own that is opened for appending: it is written also while the process is
silent (``nothing_escapes`` takes away descriptors 1 and 2 and the log records), and what a line began is whole when the
process is killed, but for a full disk. It is not brought to the disk line by line: a power cut may take the last ones.
A line that was half written is closed by a line that says so and covers it by its hash; whatever is no line at the end of
a file counts as one. Several processes may write to one file: each takes a lock (``flock``, where there is one) and reads
the end that the others have left.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ...accounting import JsonValue
from ...errors import VitrailError
from ..principal import Principal

try:
    import fcntl
except ImportError:  # Windows: one process a file
    fcntl = None  # type: ignore[assignment]

START = "0" * 64
"""What the first line follows."""
PARAMETERS = ("dataset", "job_id", "pane_id", "model", "person", "token_id")
"""Path parameters that are public names of the house."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MOST_LINES = 1000
"""Lines that are handed out at a time."""
_NAME = re.compile(r"[\w.:@ -]{1,100}")
_CHUNK = 1 << 16


@dataclass(frozen=True)
class LogCheck:
    """What a walk over an access log found.

    Attributes
    ----------
    lines : int
        How many lines there are.
    head : str
        The hash of the last one; an auditor notes it, and hands it to the next check.
    problems : tuple of str
        What is wrong.

    Examples
    --------
    >>> LogCheck(3, "ab" * 32, ()).ok
    True
    """

    lines: int
    head: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the chain holds."""
        return not self.problems


@dataclass(frozen=True)
class _End:
    """The end of a file: the last line's number and hash, and the bytes after it that are no line."""

    number: int
    head: str
    torn: bytes
    size: int
    ended: bool = True  # by the end of a line


class AccessLog:
    """A file to which every call of the service adds a line.

    Parameters
    ----------
    path : Path
        It is made where there is none, readable by its owner only; the chain of one that is there goes on.

    Examples
    --------
    >>> import tempfile
    >>> alice = Principal("alice", "analyst", None, may_buy=True, credential="t_1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = AccessLog(Path(folder) / "access.jsonl")
    ...     log.write(alice, "GET", "/v1/jobs/{job_id}", 200, {"job_id": "j7", "secret": "not kept"})
    ...     log.write(None, "GET", "/v1/jobs", 401)
    ...     lines, checked = log.tail(), verify(log.path)
    ...     log.close()
    >>> [(line["person"], line["route"], line["parameters"], line["status"]) for line in lines]
    [('alice', '/v1/jobs/{job_id}', {'job_id': 'j7'}, 200), (None, '/v1/jobs', {}, 401)]
    >>> checked.ok, checked.lines
    (True, 2)
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock = threading.Lock()
        self._end: _End | None = None
        self._handle, self._pid = self._open(), os.getpid()
        with self._lock, self._alone():
            self._find_end()

    def write(
        self,
        principal: Principal | None,
        method: str,
        route: str,
        status: int,
        parameters: Mapping[str, str] | None = None,
        now: datetime | None = None,
    ) -> None:
        """Add a line.

        Parameters
        ----------
        principal : Principal or None
            Who asked; None for who showed no credential, or a wrong one.
        method, route : str
            The route as it is declared, with its parameters' names in braces; never the address that was sent.
            Where no route is meant, an empty text.
        status : int
            What was answered.
        parameters : mapping of str to str, optional
            The route's parameters, of which those in ``PARAMETERS`` are kept, if they look like names.
        now : datetime, optional
            Of the call; its second is kept.
        """
        kept = {name: value for name, value in (parameters or {}).items() if name in PARAMETERS}
        facts: dict[str, JsonValue] = {
            "person": None if principal is None else principal.name,
            "role": None if principal is None else principal.role,
            "credential": None if principal is None else principal.credential,
            "method": method if method in METHODS else "?",
            "route": route,
            "parameters": {name: value if _NAME.fullmatch(value) else "?" for name, value in kept.items()},
            "status": status,
        }
        with self._lock, self._alone():
            end = self._find_end()
            self._append(end, facts, now or datetime.now(UTC))

    def tail(self, after: int | None = None, limit: int = 100) -> list[dict[str, JsonValue]]:
        """Lines with a number above ``after``, oldest first, at most ``limit``; the newest ones for None."""
        limit = min(max(limit, 1), MOST_LINES)
        with self._lock, self._alone():
            end = self._find_end()
        first = end.number - limit + 1 if after is None else after + 1
        found: list[dict[str, JsonValue]] = []
        with self.path.open("rb") as file:
            file.seek(_start_of(file, first, end.size))
            for raw in file:
                line = _parsed(raw)
                if line is not None and _number(line) >= first:
                    found.append(line)
                if len(found) >= limit or file.tell() >= end.size:
                    break
        return found

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
            self._handle = -1

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            raise VitrailError(
                f"the access log {self.path.name} cannot be opened: {error.strerror}. Name a file that can be written as "
                "access_log of [service]"
            ) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only process that writes to the file, and the file be the one at the path."""
        if self._handle < 0:
            raise VitrailError("the access log was closed; nothing is answered without it")
        if os.getpid() != self._pid or self._moved():  # a child's lock must be its own; a rotated file has a new chain
            os.close(self._handle)
            self._handle, self._pid, self._end = self._open(), os.getpid(), None
        with _locked(self._handle, exclusive=True):
            yield

    def _moved(self) -> bool:
        try:
            return not os.path.samestat(os.fstat(self._handle), self.path.stat())
        except OSError:
            return True

    def _find_end(self) -> _End:
        """Where the chain stands; a half-written end is closed."""
        size = os.fstat(self._handle).st_size
        if self._end is None or self._end.size != size:
            with open(self._handle, "rb", closefd=False) as file:
                self._end = _end_of(file, size)
        if self._end.torn:
            torn: dict[str, JsonValue] = {"torn": _hash(self._end.torn), "torn_bytes": len(self._end.torn)}
            self._append(self._end, torn, datetime.now(UTC))
        return self._end

    def _append(self, end: _End, facts: Mapping[str, JsonValue], now: datetime) -> None:
        start = b"" if end.ended else b"\n"
        time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = {"n": end.number + 1, "time": time, **facts, "previous": end.head}
        line = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
        self._end = None
        try:
            written = os.write(self._handle, start + line)
        except OSError as error:
            raise VitrailError(f"the access log {self.path.name} cannot be written: {error.strerror}") from error
        if written != len(start) + len(line):
            raise VitrailError(f"the access log {self.path.name} cannot be written: the disk is full")
        self._end = _End(end.number + 1, _hash(line), b"", end.size + written)


def verify(path: Path, head: str | None = None) -> LogCheck:
    """Walk over an access log, and say where its chain does not hold.

    Parameters
    ----------
    path : Path
        The log; a service may be writing to it.
    head : str, optional
        The head of an earlier check: the log must still pass through it, so that a cut end is found too.

    Returns
    -------
    LogCheck
        With at most a hundred problems.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = AccessLog(Path(folder) / "access.jsonl")
    ...     for status in (200, 404, 200):
    ...         log.write(None, "GET", "/healthz", status)
    ...     log.close()
    ...     first, second, third = log.path.read_bytes().splitlines(keepends=True)
    ...     _ = log.path.write_bytes(first + third)
    ...     print(verify(log.path).problems[0])
    line 2 does not follow the one before it: a line was changed, removed or put in
    """
    previous, number, lines, torn, problems, passed = START, -1, 0, b"", [], head in (None, START)
    with path.open("rb") as file, _locked(file.fileno(), exclusive=False):
        for place, raw in enumerate(file, 1):
            line = _parsed(raw)
            if line is None:
                torn += raw
                continue
            if torn and line.get("torn") != _hash(torn):
                problems.append(f"before line {place} stands what is no line, and the line does not account for it")
            elif not torn and "torn" in line:
                problems.append(f"line {place} accounts for a half-written line, which is no longer there")
            elif line.get("previous") != previous:
                problems.append(f"line {place} does not follow the one before it: a line was changed, removed or put in")
            elif _number(line) != number + 1:
                problems.append(f"line {place} has the number {_number(line)}, and the one before it {number}")
            previous, number, lines, torn = _hash(raw), _number(line), lines + 1, b""
            passed = passed or previous == head
    if torn:
        problems.append("the end is half a line; a service that starts on this log closes it, and says so in it")
    if not passed:
        problems.append("the log does not pass through the head that was noted: its end was cut, or it is another log")
    return LogCheck(lines, previous, tuple(problems[:100]))


@contextmanager
def _locked(handle: int, *, exclusive: bool) -> Iterator[None]:
    """Hold the file's lock. Without locks, as on some file systems, one process may write to a file."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    try:
        yield
    finally:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)


def _end_of(file: BinaryIO, size: int) -> _End:
    """The last whole line of a file and what follows it; read from the back, because logs are long."""
    start, tail = size, b""
    while True:
        begins = max(0, start - _CHUNK)
        file.seek(begins)
        tail = file.read(start - begins) + tail
        start, after, ended = begins, b"", tail.endswith(b"\n") or not tail
        for raw in reversed(BytesIO(tail).readlines()[start > 0 :]):  # the first may have begun earlier
            line = _parsed(raw)
            if line is not None:
                return _End(_number(line), _hash(raw), after, size, ended)
            after = raw + after
        if start == 0:
            return _End(-1, START, after, size, ended)


def _start_of(file: BinaryIO, first: int, size: int) -> int:
    """Where a line starts that is at or before number ``first``: numbers rise, so halves of the file are left out."""
    low, high = 0, size
    while high - low > _CHUNK:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()  # the rest of a line
        start, line = file.tell(), _parsed(file.readline())
        while line is None and file.tell() < high:
            start, line = file.tell(), _parsed(file.readline())
        if line is not None and start < high and _number(line) <= first:
            low = start
        else:
            high = middle
    return low


def _parsed(raw: bytes) -> dict[str, JsonValue] | None:
    """A line of ours, or None."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and type(line.get("n")) is int and isinstance(line.get("previous"), str) else None


def _number(line: Mapping[str, JsonValue]) -> int:
    number = line["n"]
    assert isinstance(number, int)
    return number


def _hash(raw: bytes) -> str:
    return hashlib.sha256(raw.removesuffix(b"\n")).hexdigest()
