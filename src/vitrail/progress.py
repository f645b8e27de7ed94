"""A progress bar for anything longer than two seconds; silent in pipes.

It counts in per cent of *public* units (the declared row count, the number of groups) and always ends at 100 %.
Whoever watches it live sees how fast the work goes, as with a watch: it is for the owner's screen, not for the
analyst's.

A conversation has **one** bar (:func:`one_bar`), whose phases are its questions, each as long as its share of the price:
that is known beforehand, and no row decides it. What walks over rows inside a phase moves the same bar on.

While private rows are read the process is silent (``nothing_escapes``), and the bar is all that may be seen: it draws on
a copy of standard error that was kept for it (:func:`keep_screen`), and never shows what others print.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_SECONDS = 2.0
BETWEEN = "from releases to numbers"
"""What a conversation does between its questions."""
_kept: int | None = None


def keep_screen(descriptor: int | None) -> None:
    """Where bars are drawn while standard error is silent; None when it speaks for itself again."""
    global _kept
    _kept = descriptor


def screen_of_stderr() -> int | None:
    """The descriptor on which somebody can see standard error; None in pipes and notebooks."""
    try:
        return sys.stderr.fileno() if sys.stderr.isatty() else None
    except (AttributeError, OSError, ValueError):  # no stream, a closed one, or one without a descriptor
        return None


Advance: TypeAlias = Callable[[int], None]
"""Tells the bar that so many more public units are done."""
Phase: TypeAlias = Callable[[str, float], AbstractContextManager[None]]
"""Opens a phase of the one bar, by its name and its share of the whole."""


class _Bar:
    """A bar that appears when the work took long. A phase begins at ``_begun`` of the whole and is ``_part`` of it."""

    def __init__(self, label: str, screen: TextIO, part: float) -> None:
        self._label, self._screen, self._started = label, screen, time.monotonic()
        self._shown: Progress | None = None
        self._begun, self._part = 0.0, part

    def inside(self, fraction: float) -> None:
        """So much of the phase is done."""
        if self._shown is None and time.monotonic() - self._started > PATIENCE_SECONDS:
            self._shown = _drawn(self._label, self._screen)
        if self._shown is not None:
            per_cent = int(100 * min(1.0, self._begun + self._part * fraction) + 1e-9)
            self._shown.update(self._shown.task_ids[0], completed=per_cent, description=self._label)

    @contextmanager
    def phase(self, label: str, share: float) -> Iterator[None]:
        """One part of the work."""
        self._label, self._part = label, share
        self.inside(0.0)
        yield
        self._begun, self._part, self._label = self._begun + share, 0.0, BETWEEN
        self.inside(0.0)

    def end(self) -> None:
        """Take it off the screen."""
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=100)
            self._shown.stop()


_open_bar: ContextVar[_Bar | None] = ContextVar("_open_bar", default=None)


@contextmanager
def _on_screen(label: str, part: float) -> Iterator[_Bar | None]:
    """A bar, or None where nobody would see it."""
    descriptor = screen_of_stderr() if _kept is None else _kept
    if descriptor is None:
        yield None
        return
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace") as screen:
        bar = _Bar(label, screen, part)
        try:
            yield bar
        finally:
            bar.end()


@contextmanager
def one_bar(label: str) -> Iterator[Phase]:
    """One bar for all that happens in the block; inside another one, a part of that.

    Examples
    --------
    >>> with one_bar("a report") as phase:
    ...     with phase("histograms", 0.25), progress("summing", 10) as advance:
    ...         advance(10)
    ...     with phase("curves", 0.75):
    ...         pass
    """
    if _open_bar.get() is not None:
        yield _unseen
        return
    with _on_screen(label, part=0.0) as bar:
        token = _open_bar.set(bar)
        try:
            yield _unseen if bar is None else bar.phase
        finally:
            _open_bar.reset(token)


@contextmanager
def _unseen(label: str, share: float) -> Iterator[None]:
    yield


@contextmanager
def progress(label: str, total_units: int) -> Iterator[Advance]:
    """Show a bar on standard error while the block runs, if it takes long and somebody can see it.

    Inside :func:`one_bar` it moves that bar on, through the phase at hand.

    Examples
    --------
    >>> with progress("summing", 10) as advance:
    ...     for _ in range(10):
    ...         advance(1)
    """
    total, done = max(1, total_units), 0

    def moving(bar: _Bar | None) -> Advance:
        def advance(units: int) -> None:
            nonlocal done
            done = min(total, done + units)
            if bar is not None:
                bar.inside(done / total)

        return advance

    if (already := _open_bar.get()) is not None:
        yield moving(already)
        return
    with _on_screen(label, part=1.0) as own:
        yield moving(own)


def _drawn(label: str, screen: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        *(TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()),
        console=Console(file=screen, force_terminal=True),
        transient=True,
        speed_estimate_period=3600.0,  # phases differ in pace: the whole so far says more than the last seconds
        redirect_stdout=False,  # it would print above the bar what a model prints about a private row
        redirect_stderr=False,
    )
    bar.add_task(label, total=100)
    bar.start()
    return bar
