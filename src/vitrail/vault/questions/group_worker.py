"""Runs one group function per fresh process.

A group function is arbitrary code; if one group could leave something behind for the next, a row would touch more
than its own group. So a small server process (``child_process``), which has seen no rows, forks a child for every
group. The child draws a seed of its own, has no standard output or error, computes, writes its numbers to a pipe and
ends; what takes longer than the time limit is killed. This isolates groups from each other; it is no sandbox against
hostile code.

One group must not fail another: if the server itself is lost while a group runs (the group used up all memory, or killed
what it could), or a call breaks off half-way, that group has failed and the next one finds a new server.
"""

from __future__ import annotations

import os
import pickle
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput
from ..child_process import ChildProcess, connections

GroupCall = Callable[[Floats], Floats]
READY = b"ready"


class GroupServer:
    """A running server for one group function. Use as a context manager."""

    def __init__(self, call: GroupCall, timeout_seconds: float) -> None:
        import cloudpickle

        try:
            self._task = cloudpickle.dumps((call, timeout_seconds))
        except Exception as error:
            raise InvalidInput(
                f"the group function cannot be sent to a process of its own ({error}); avoid open files, locks and "
                "connections in it, or choose isolation='none'"
            ) from error
        self._start()

    def _start(self) -> None:
        self._process = ChildProcess(__name__)
        self._to, self._from = self._process.to, self._process.back
        self._lost, answer = False, b"it ended at once"
        with suppress(OSError, EOFError):
            self._to.send_bytes(self._task)
            answer = self._from.recv_bytes()
        if answer != READY:
            self._lost = True
            self.close()
            reason = answer.decode(errors="replace")
            raise InvalidInput(
                f"the group function cannot be loaded in a process of its own ({reason}); define it in a module that can be "
                "imported, or as a lambda or inner function, or choose isolation='none'"
            )

    def __call__(self, raw: Floats) -> Floats | None:
        """The function's result for one group, or None when it failed or took too long."""
        if self._lost:
            self.close()
            self._start()
        self._lost = True  # until the whole answer is here: after half of one, the next group would get the other half
        try:
            self._to.send(raw)
            answer = self._from.recv_bytes()
        except (OSError, EOFError):  # the server is gone; who did that must not be known
            return None
        self._lost = False
        return np.frombuffer(answer, dtype=np.float64) if answer else None

    def close(self) -> None:
        """End the process, and wait until it is gone."""
        if self._lost:
            self._process.kill()
        self._process.close()


def _in_child(call: GroupCall, raw: Floats, timeout_seconds: float) -> bytes:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _child(call, raw, reader, writer)
    os.close(writer)
    try:
        return _read_until(reader, time.monotonic() + timeout_seconds)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _child(call: GroupCall, raw: Floats, reader: int, writer: int) -> None:
    status = 1
    try:
        os.close(reader)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        random.seed(os.urandom(32))
        np.random.seed(np.frombuffer(os.urandom(64), dtype=np.uint32))  # noqa: NPY002 - the legacy global state is what user code uses
        if (torch := sys.modules.get("torch")) is not None:
            torch.seed()
        result = np.ascontiguousarray(call(raw.copy()), dtype=np.float64)
        with os.fdopen(writer, "wb") as out:
            out.write(b"\x01" + result.tobytes())
        status = 0
    finally:
        os._exit(status)


def _read_until(reader: int, deadline: float) -> bytes:
    whole = bytearray()
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(reader, 1 << 16)
        if not piece:
            return bytes(whole[1:]) if whole[:1] == b"\x01" else b""
        whole += piece
    return b""


def serve() -> None:
    """Serve the process that started this one: one child per group until it hangs up."""
    requests, answers = connections()
    with suppress(EOFError):
        task = requests.recv_bytes()
        try:
            call, timeout_seconds = pickle.loads(task)  # noqa: S301 - written by our own parent process
        except Exception as error:
            answers.send_bytes(f"{type(error).__name__}: {error}".encode())
            return
        answers.send_bytes(READY)
        while True:
            answers.send_bytes(_in_child(call, requests.recv(), timeout_seconds))
