"""A progress bar for anything longer than two seconds; silent in pipes.

It counts in per cent of *public* units (the declared row count, the number of groups) and always ends at 100 %.
Whoever watches it live sees how fast the work goes, as with a watch: it is for the owner's screen, not for the
analyst's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PATIENCE_SECONDS = 2.0


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
    if not sys.stderr.isatty():
        yield lambda units: None
        return
    bar = _Bar(label, max(1, total_units))
    try:
        yield bar.advance
    finally:
        bar.finish()


class _Bar:
    def __init__(self, label: str, total_units: int) -> None:
        self._label, self._total, self._done = label, total_units, 0
        self._started = time.monotonic()
        self._shown: _Shown | None = None

    def advance(self, units: int) -> None:
        self._done = min(self._total, self._done + units)
        if self._shown is None and time.monotonic() - self._started > PATIENCE_SECONDS:
            self._shown = _Shown(self._label)
        if self._shown is not None:
            self._shown.at(100 * self._done // self._total)

    def finish(self) -> None:
        if self._shown is not None:
            self._shown.at(100)
            self._shown.stop()


class _Shown:
    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(label, total=100)
        self._progress.start()

    def at(self, per_cent: int) -> None:
        self._progress.update(self._task, completed=per_cent)

    def stop(self) -> None:
        self._progress.stop()
