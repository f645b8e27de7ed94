"""A progress bar for anything longer than two seconds; silent in pipes.

It counts in per cent of *public* units (the declared row count, the number of groups) and always ends at 100 %.
Whoever watches it live sees how fast the work goes, as with a watch: it is for the owner's screen, not for the
analyst's.

While private rows are read the process is silent (``nothing_escapes``), and the bar is all that may be seen: it draws on
a copy of standard error that was kept for it (:func:`keep_screen`), and never shows what others print.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

PATIENCE_SECONDS = 2.0
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


class Advance(Protocol):
    """Tells the bar that so many public units are done."""

    def __call__(self, units: int) -> None:
        """Count ``units`` more."""
        ...


@contextmanager
def progress(label: str, total_units: int) -> Iterator[Advance]:
    """Show a bar on standard error while the block runs, if it takes long and somebody can see it.

    Examples
    --------
    >>> with progress("summing", 10) as advance:
    ...     for _ in range(10):
    ...         advance(1)
    """
    descriptor = screen_of_stderr() if _kept is None else _kept
    if descriptor is None:
        yield lambda units: None
        return
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace") as screen:
        bar = _Bar(label, max(1, total_units), screen)
        try:
            yield bar.advance
        finally:
            bar.finish()


class _Bar:
    def __init__(self, label: str, total_units: int, screen: TextIO) -> None:
        self._label, self._total, self._done, self._screen = label, total_units, 0, screen
        self._started = time.monotonic()
        self._shown: _Shown | None = None

    def advance(self, units: int) -> None:
        self._done = min(self._total, self._done + units)
        if self._shown is None and time.monotonic() - self._started > PATIENCE_SECONDS:
            self._shown = _Shown(self._label, self._screen)
        if self._shown is not None:
            self._shown.at(100 * self._done // self._total)

    def finish(self) -> None:
        if self._shown is not None:
            self._shown.at(100)
            self._shown.stop()


class _Shown:
    def __init__(self, label: str, screen: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._progress = Progress(
            *columns,
            console=Console(file=screen, force_terminal=True),
            transient=True,
            redirect_stdout=False,  # it would print above the bar what a model prints about a private row
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(label, total=100)
        self._progress.start()

    def at(self, per_cent: int) -> None:
        self._progress.update(self._task, completed=per_cent)

    def stop(self) -> None:
        self._progress.stop()
