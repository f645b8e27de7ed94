"""The user's Ctrl-C, told from what a model merely raises.

While private rows are in hand our own handler stands in for the one that was there. It notes the signal, and it raises
only where the main thread is inside a guarded call, so that a long call ends at once. The question then stops, and when
every silence is lifted the signal is sent again, to the handler that was there before: what the user sees is a fresh
interrupt, without cause, context or a frame in which a row was. A ``KeyboardInterrupt`` with no signal behind it is a
failing row like any other.

Python delivers signals to the main thread only. A pass in another thread installs nothing: no interrupt can reach it, so
whatever is raised there was raised by what runs there.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupted(BaseException):
    """On its way out to :func:`vitrail.nothing_escapes.sealed`; never seen outside."""


class Interrupts:
    """What the main thread knows of the user's interrupts."""

    def __init__(self) -> None:
        self._before: Any = None
        self._users = 0
        self.seen = self.left = False
        self.calling = False

    def __enter__(self) -> Interrupts:
        if in_main_thread():
            if self._users == 0:
                self.seen = self.calling = False
                before = signal.getsignal(signal.SIGINT)
                self._before = before if callable(before) else None  # ignored, or not Python's: it stays as it is
                if self._before is not None:
                    signal.signal(signal.SIGINT, self._note)
            self._users += 1
        return self

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
        said = self.left and in_main_thread()
        if said:
            self.left = False
        return said


INTERRUPTS = Interrupts()


def in_main_thread() -> bool:
    """Whether signals arrive here."""
    return threading.current_thread() is threading.main_thread()


def stop_if_interrupted() -> None:
    """Leave the private rows if the user wants to; call it between pieces of work."""
    if INTERRUPTS.happened():
        raise Interrupted
