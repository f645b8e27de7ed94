"""Silence while private rows are in hand: warnings, log records, standard output and error, destructors, threads.

All of it belongs to the whole process. A thread is no help in telling a model's words from others': models keep pools of
threads, which were started on public rows and are handed private ones later. So the first call that needs silence
silences the process, the last one to end restores it, and what *other* threads print or log in between is lost as well:
that is the price.

File descriptors 1 and 2 point to the null device meanwhile, because C libraries write there past Python. What they still
hold in buffers of their own is pushed out on both sides: before, so that nothing public is lost, and after, into the null
device, so that nothing private comes late. ``sys.stdout`` and ``sys.stderr`` are exchanged too, as a notebook's are no
descriptors. The bar (``progress``) counts in public units and gets a copy of the screen.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO, cast

from ..progress import keep_screen, screen_of_stderr

_DESCRIPTORS = (1, 2)


def _say_nothing(*_: object, **__: object) -> None:
    """Stands for every hook that would speak."""


class Quiet:
    """Counts who needs silence, over all threads."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._nowhere: TextIO | None = None
        self._screen: int | None = None
        self._warnings = warnings.catch_warnings()
        self._descriptors: dict[int, int] = {}
        self._python: dict[str, Any] = {}

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._silence()
            self._users += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._restore()

    def _silence(self) -> None:
        if self._nowhere is None or self._nowhere.closed:
            # Its descriptor is never closed: a library may keep the stream that it saw first.
            descriptor = os.open(os.devnull, os.O_WRONLY)
            self._nowhere = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", closefd=False)
        self._python = {
            "stdout": sys.stdout,
            "stderr": sys.stderr,
            "unraisablehook": sys.unraisablehook,
            "threads": threading.excepthook,
            "log level": logging.root.manager.disable,
            "handle": logging.Handler.handle,
        }
        _push_out(*self._streams())
        screen = screen_of_stderr()
        self._screen = None if screen is None else os.dup(screen)
        keep_screen(self._screen)
        self._descriptors = {descriptor: os.dup(descriptor) for descriptor in _DESCRIPTORS if _is_open(descriptor)}
        for descriptor in self._descriptors:
            os.dup2(self._nowhere.fileno(), descriptor)
        sys.stdout = sys.stderr = self._nowhere
        sys.unraisablehook = threading.excepthook = _say_nothing
        # Either alone has a way round it: a level may be set again, and a handler may have a `handle` of its own.
        logging.disable(sys.maxsize)
        logging.Handler.handle = _say_nothing  # type: ignore[assignment, method-assign]
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")
        warnings.showwarning = _say_nothing  # for who sets filters anew

    def _restore(self) -> None:
        self._warnings.__exit__(None, None, None)
        logging.Handler.handle = self._python["handle"]  # type: ignore[method-assign]
        logging.disable(self._python["log level"])
        sys.unraisablehook, threading.excepthook = self._python["unraisablehook"], self._python["threads"]
        _push_out(sys.stdout, sys.stderr, *self._streams())
        for descriptor, kept in self._descriptors.items():
            os.dup2(kept, descriptor)
            os.close(kept)
        keep_screen(None)
        if self._screen is not None:
            os.close(self._screen)
        sys.stdout, sys.stderr = self._python["stdout"], self._python["stderr"]
        self._python = {}

    def _streams(self) -> tuple[object, ...]:
        return self._python["stdout"], self._python["stderr"], sys.__stdout__, sys.__stderr__


QUIET = Quiet()


def _c_flush() -> Callable[[None], object]:
    """The C library's ``fflush``; nothing where it is not found."""
    try:
        return cast("Callable[[None], object]", ctypes.CDLL(None).fflush)
    except (OSError, TypeError, AttributeError):
        return _say_nothing


_flush_c = _c_flush()


def _is_open(descriptor: int) -> bool:
    """A service may have closed its standard streams."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _push_out(*streams: object) -> None:
    """Write what Python and C still hold back."""
    for stream in {id(stream): stream for stream in streams if stream is not None}.values():
        with suppress(Exception):
            stream.flush()  # type: ignore[attr-defined]
    _flush_c(None)  # None: all of C's streams
