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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress

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


Advance: TypeAlias = Callable[[int], None]
"""Tells the bar that so many more public units are done."""


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
    started, total, done = time.monotonic(), max(1, total_units), 0
    bars: list[Progress] = []  # one, once it took long

    def advance(units: int) -> None:
        nonlocal done
        done = min(total, done + units)
        if not bars and time.monotonic() - started > PATIENCE_SECONDS:
            bars.append(_begun(label, screen))
        for bar in bars:
            bar.update(bar.task_ids[0], completed=100 * done // total)

    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace") as screen:
        try:
            yield advance
        finally:
            for bar in bars:
                bar.update(bar.task_ids[0], completed=100)
                bar.stop()


def _begun(label: str, screen: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        *(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()),
        console=Console(file=screen, force_terminal=True),
        transient=True,
        redirect_stdout=False,  # it would print above the bar what a model prints about a private row
        redirect_stderr=False,
    )
    bar.add_task(label, total=100)
    bar.start()
    return bar
