"""The one door between private rows and everybody who may hear: nothing that a row causes goes through it.

A question's answer is noisy and paid for. Whatever else a private row brought about would be a free and exact look at it:
an exception, a warning, a log line, a byte on a screen, an interrupt that never was. So code that has private rows in hand
runs behind this door, and all of these stop here, whatever raised or wrote them:

- *exceptions* of every kind, ``BaseException`` included (a panic of a Rust library and a cancelled task are no
  ``Exception``): :func:`attempt` turns what one call raises into "this row does not count", and :func:`sealed` lets nothing
  leave but a sentence of ours without cause, context or frames;
- *interrupts* that only pretend: the user's Ctrl-C is obeyed because our own signal handler saw it; one that a model raises
  is a failing row;
- *warnings, log records, standard output and standard error*, those of C libraries included, what Python says about failing
  threads and destructors, and what is displayed in a notebook.

**What may be said about rows**, here and in every message of the library: the names of columns and files; the dtype of a
whole column; which container rows came in, and its number of dimensions and columns; that a file is damaged or gone; and
whatever the schema declares. Never a value, the place or number of a row, nor the words of another library about either.

**What cannot be held back in one process** (docs/guarantees.md names it): a model that ends or crashes the process, sends
it a signal, writes to files, sockets or processes of its own, keeps a copy of a stream that is no file descriptor 1 or 2,
or leaves a thread behind that speaks later; and how long a row takes. Tests: tests/vault/test_nothing_escapes.py,
tests/vault/test_escapes_planted.py.

**Silence.** Warnings, log records, output, destructors, threads: all of it belongs to the whole process. A thread is no
help in telling a model's words from others': models keep pools of threads, which were started on public rows and are handed
private ones later. So the first call that needs silence silences the process, the last one to end restores it, and what
*other* threads print or log in between is lost as well: that is the price.

File descriptors 1 and 2 point to the null device meanwhile, because C libraries write there past Python. What they still
hold in buffers of their own is pushed out on both sides: before, so that nothing public is lost, and after, into the null
device, so that nothing private comes late. ``sys.stdout`` and ``sys.stderr`` are exchanged too, as a notebook's are no
descriptors. The bar (``progress``) counts in public units and gets a copy of the screen.

**The user's Ctrl-C**, told from what a model merely raises. While private rows are in hand our own handler stands in for
the one that was there. It notes the signal, and it raises only where the main thread is inside a guarded call, so that a
long call ends at once. The question then stops, and when every silence is lifted the signal is sent again, to the handler
that was there before: what the user sees is a fresh interrupt, without cause, context or a frame in which a row was. A
``KeyboardInterrupt`` with no signal behind it is a failing row like any other.

Python delivers signals to the main thread only. A pass in another thread installs nothing: no interrupt can reach it, so
whatever is raised there was raised by what runs there.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import FrameType, TracebackType
from typing import Any, TextIO, TypeVar, cast

from .errors import InvalidInput, Unanswered, VitrailError
from .progress import keep_screen, only_bars, publisher_of_kernel, screen_of_stderr

Result = TypeVar("Result")
Otherwise = TypeVar("Otherwise")

FAILURES: tuple[type[BaseException], ...] = (BaseException,)
"""What counts as failing on a private row: everything that can be raised."""


_HERE = threading.local()
"""``inside`` is set while this thread is behind the door."""
_failed = threading.Event()


def attempt(work: Callable[[], Result], otherwise: Otherwise) -> Result | Otherwise:
    """What ``work`` returns, or ``otherwise`` if it raises anything at all; why it did is forgotten.

    Only where :func:`hushed` or :func:`sealed` is around it does it tell the user's interrupt from a raised one.

    Examples
    --------
    >>> attempt(lambda: 1 / 0, "this row does not count")
    'this row does not count'
    """
    main = in_main_thread()
    try:
        if main:
            INTERRUPTS.calling = True
        try:
            if not INTERRUPTS.happened():  # nothing more is begun after an interrupt
                return work()
        finally:
            if main:
                INTERRUPTS.calling = False
    except FAILURES:
        _failed.set()
    stop_if_interrupted()  # not inside the clause above: it would carry what was caught
    return otherwise


def hushed(work: Callable[[], Result]) -> Result:
    """Run ``work`` in silence, and obey the user's interrupt afterwards; what it raises is raised here.

    For rows that need not be private (a rehearsal's): a mistake in them is shown.

    Examples
    --------
    >>> hushed(lambda: print("a private row") or 3)
    3
    """
    return work() if getattr(_HERE, "inside", False) else _behind_the_door(work, None)


def sealed(work: Callable[[], Result], otherwise: VitrailError) -> Result:
    """Run ``work``, which has private rows in hand, in silence; nothing it raises gets out.

    Sentences of ours of the kind of ``otherwise`` are about public facts: they are raised without cause, context or frames.
    ``otherwise`` is raised in place of anything else.
    """
    return _behind_the_door(work, otherwise)


def _behind_the_door(work: Callable[[], Result], otherwise: VitrailError | None) -> Result:
    result: list[Result] = []
    failure: BaseException | None = None
    before = getattr(_HERE, "inside", False)
    with INTERRUPTS, QUIET:
        _HERE.inside = True
        try:
            result.append(work())
        except BaseException as error:
            failure = error if otherwise is None else _public_form(error, otherwise)
        finally:
            _HERE.inside = before
        if _failed.is_set() and not before:
            _failed.clear()
            gc.collect()  # what a failing row left in circles ends in silence too
    if not before and INTERRUPTS.ended_it():
        failure = None
        signal.raise_signal(signal.SIGINT)
        raise KeyboardInterrupt  # for a handler of the caller's that only takes note: there is no answer to return
    if failure is not None:
        raise failure
    return result[0]


def _public_form(error: BaseException, otherwise: VitrailError) -> VitrailError:
    raised = error if isinstance(error, type(otherwise)) else otherwise
    raised.__cause__ = raised.__context__ = raised.__traceback__ = None
    raised.__dict__.pop("__notes__", None)
    return raised


_DESCRIPTORS = (1, 2)


def _say_nothing(*_: object, **__: object) -> None:
    """Stands for every hook that would speak."""


class Quiet:
    """Counts who needs silence, over all threads."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._nowhere: TextIO | None = None
        self._undo = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._silence()
            self._users += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo.close()

    def _silence(self) -> None:
        """Silence the process; what undoes it is put on a stack, so that all of it is undone in the opposite order."""
        if self._nowhere is None or self._nowhere.closed:
            # Its descriptor is never closed: a library may keep the stream that it saw first.
            descriptor = os.open(os.devnull, os.O_WRONLY)
            self._nowhere = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", closefd=False)
        undo, streams = self._undo, (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        _push_out(*streams)
        if (screen := screen_of_stderr()) is not None:
            screen = os.dup(screen)
        _exchange(undo, sys, stdout=self._nowhere, stderr=self._nowhere)
        if screen is not None:
            undo.callback(os.close, screen)
        undo.callback(keep_screen, None)
        keep_screen(screen)
        for descriptor in _DESCRIPTORS:
            try:
                kept = os.dup(descriptor)
            except OSError:  # a service may have closed its standard streams
                continue
            undo.callback(os.close, kept)
            undo.callback(os.dup2, kept, descriptor)
            os.dup2(self._nowhere.fileno(), descriptor)
        undo.callback(lambda: _push_out(sys.stdout, sys.stderr, *streams))
        if (publisher := publisher_of_kernel()) is not None:  # a notebook's displays are no stream
            _exchange(undo, publisher, publish=only_bars(publisher.publish), clear_output=_say_nothing)
        _exchange(undo, sys, unraisablehook=_say_nothing)
        _exchange(undo, threading, excepthook=_say_nothing)
        # Either alone has a way round it: a level may be set again, and a handler may have a `handle` of its own.
        undo.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        _exchange(undo, logging.Handler, handle=_say_nothing)
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        warnings.showwarning = _say_nothing  # for who sets filters anew


def _exchange(undo: ExitStack, owner: object, **attributes: object) -> None:
    """Set attributes, and what they were again when ``undo`` is closed."""
    for name, value in attributes.items():
        undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)


QUIET = Quiet()


def _c_flush() -> Callable[[None], object]:
    """The C library's ``fflush``; nothing where it is not found."""
    try:
        return cast("Callable[[None], object]", ctypes.CDLL(None).fflush)
    except (OSError, TypeError, AttributeError):
        return _say_nothing


_flush_c = _c_flush()


def _push_out(*streams: object) -> None:
    """Write what Python and C still hold back."""
    for stream in {id(stream): stream for stream in streams if stream is not None}.values():
        with suppress(Exception):
            stream.flush()  # type: ignore[attr-defined]
    _flush_c(None)  # None: all of C's streams


class Interrupted(BaseException):
    """On its way out to :func:`vitrail.nothing_escapes.sealed`; never seen outside."""


class Interrupts:
    """What the main thread knows of the user's interrupts."""

    def __init__(self) -> None:
        self._before: Any = None
        self._users = 0
        self.seen = self.left = False
        self.calling = False

    def __enter__(self) -> None:
        if in_main_thread():
            if self._users == 0:
                self.seen = self.calling = False
                before = signal.getsignal(signal.SIGINT)
                self._before = before if callable(before) else None  # ignored, or not Python's: it stays as it is
                if self._before is not None:
                    signal.signal(signal.SIGINT, self._note)
            self._users += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if in_main_thread():
            self._users -= 1
            if self._users == 0:
                if self._before is not None:
                    signal.signal(signal.SIGINT, self._before)
                self.left, self.seen = self.seen, False  # from here on the handler of before hears the user itself

    def _note(self, number: int, frame: FrameType | None) -> None:
        first, self.seen = not self.seen, True
        # Once only: a second one could strike in the few instructions after the call, where nothing would catch it.
        if first and self.calling:
            raise KeyboardInterrupt

    def happened(self) -> bool:
        """Whether the user interrupted this thread's work that is going on."""
        return self.seen and in_main_thread()

    def ended_it(self) -> bool:
        """Whether the user interrupted this thread's work that has just ended; said once."""
        is_left = self.left and in_main_thread()
        if is_left:
            self.left = False
        return is_left


INTERRUPTS = Interrupts()


def in_main_thread() -> bool:
    """Whether signals arrive here."""
    return threading.current_thread() is threading.main_thread()


def stop_if_interrupted() -> None:
    """Leave the private rows if the user wants to; call it between pieces of work."""
    if INTERRUPTS.happened():
        raise Interrupted


def opening(work: Callable[[], Result]) -> Result:
    """Open rows, or look at their files: before any charge. Only what is wrong with columns, dtypes and files is said."""
    sentence = (
        "the rows cannot be read, and why may not be said: it could be about one of them. Give plain columns of numbers, "
        "texts or booleans"
    )
    return sealed(work, InvalidInput(sentence))


def answering(work: Callable[[], Result]) -> Result:
    """Read private rows, after the charge. Only a damaged file is told."""
    sentence = (
        "the question could not be answered, and why may not be said: it could be about a private row. It stays on the "
        "bill. To find out, ask it of rows that are nobody's (vitrail.vault.PublicRows)"
    )
    return sealed(work, Unanswered(sentence))
