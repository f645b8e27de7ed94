"""A progress bar for anything longer than two seconds, in terminals and notebooks; silent in pipes.

It counts in per cent of *public* units (the declared row count, the number of groups) and always ends at 100 %.
Whoever watches it live sees how fast the work goes, as with a watch: it is for the owner's screen, not for the
analyst's.

A conversation has **one** bar (:func:`one_bar`), whose phases are its questions, each as long as its share of the price:
that is known beforehand, and no row decides it. What walks over rows inside a phase moves the same bar on.

**The time left** is an estimate by these shares (:func:`time_left`): the time so far, times what is left over what is done.
It takes a dear question for a long one. Where a cheap question is the slow one, the estimate is too low until that
question is under way. It is made of the clock and of the per cent shown, and tells nothing more.

While private rows are read the process is silent (``nothing_escapes``), and the bar is all that may be seen. In a terminal
it draws on a copy of standard error that was kept for it (:func:`keep_screen`). In a notebook it goes by the kernel's
messages for displays, which are no stream: what others print is not in them, and what others display is stopped
(:func:`only_bars`). Either way it shows the name of a phase, a
whole per cent and the time left, never what others print.

A notebook is saved with what its cells show, and given to others. So the bar is replaced by nothing at the end, and the
file keeps no pace: only an empty output, which says that the work took longer than two seconds. A kernel that is killed
meanwhile leaves the last bar behind.
"""

from __future__ import annotations

import html
import importlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TextIO, TypeAlias

PATIENCE_SECONDS = 2.0
SECONDS_BETWEEN_UPDATES = 0.2
FIRST_ESTIMATE_PER_CENT = 3
"""Before it, and before ``PATIENCE_SECONDS`` of work, nothing is said about the time left: it would be a guess."""
BETWEEN = "from releases to numbers"
"""What a conversation does between its questions."""
_kept: int | None = None


def keep_screen(descriptor: int | None) -> None:
    """Where bars are drawn while standard error is silent; None when it speaks for itself again."""
    global _kept
    _kept = descriptor


def screen_of_stderr() -> int | None:
    """The descriptor on which somebody can see standard error; None in pipes, and in notebooks, where it has none."""
    try:
        return sys.stderr.fileno() if sys.stderr.isatty() else None
    except (AttributeError, OSError, ValueError):  # no stream, a closed one, or one without a descriptor
        return None


Advance: TypeAlias = Callable[[int], None]
"""Tells the bar that so many more public units are done."""
Phase: TypeAlias = Callable[[str, float], AbstractContextManager[None]]
"""Opens a phase of the one bar, by its name and its share of the whole."""


def time_left(elapsed_seconds: float, per_cent: int) -> str:
    """In words, how long it will take if what is left goes at the pace of what is done; empty while nobody can tell.

    Examples
    --------
    >>> time_left(30.0, 25)
    'about 2 min left'
    """
    if elapsed_seconds < PATIENCE_SECONDS or not FIRST_ESTIMATE_PER_CENT <= per_cent < 100:
        return ""
    seconds = math.ceil(elapsed_seconds * (100 - per_cent) / per_cent)
    if seconds <= 60:
        return f"about {seconds} s left"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"about {hours} h {minutes} min left" if hours else f"about {minutes} min left"


class _Drawing(Protocol):
    """A bar as somebody sees it."""

    def show(self, label: str, per_cent: int, left: str) -> None:
        """Draw it, in place of what it was before."""

    def remove(self) -> None:
        """Take it away."""


class _InTerminal:
    """A bar of rich on a terminal."""

    def __init__(self, screen: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._bar = Progress(
            # Not rich's own time left: it counts a phase that walks over the rows twice as twice as much done.
            *(TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(file=screen, force_terminal=True),
            transient=True,
            redirect_stdout=False,  # it would print above the bar what a model prints about a private row
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=100, left="")

    def show(self, label: str, per_cent: int, left: str) -> None:
        self._bar.update(self._task, completed=per_cent, description=label, left=left)
        self._bar.start()  # with something to draw; once it has started this does nothing

    def remove(self) -> None:
        self._bar.update(self._task, completed=100, left="")
        self._bar.stop()


class _InNotebook:
    """One display of a notebook, updated in place."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, label: str, per_cent: int, left: str) -> None:
        said = f"{per_cent} %, {left}" if left else f"{per_cent} %"
        name, drawn = html.escape(label), f'<progress max="100" value="{per_cent}"></progress>'
        self._send({"text/plain": f"{label}: {said}", "text/html": f"<label>{name} {drawn} {said}</label>"})

    def remove(self) -> None:
        self._send({"text/plain": "", "text/html": ""})

    def _send(self, shown: dict[str, str]) -> None:
        """``raw``: the texts as they are, past the formatters that somebody may have registered."""
        _sending.now = True
        try:
            if self._handle is None:
                self._handle = self._display(shown, raw=True, display_id=True)
            else:
                self._handle.update(shown, raw=True)
        finally:
            _sending.now = False


_sending = threading.local()


def only_bars(publish: Callable[..., Any]) -> Callable[..., Any]:
    """A notebook's way to publish displays, for bars alone: what a model displays of a private row goes nowhere."""

    def publish_bars(*args: Any, **options: Any) -> Any:
        return publish(*args, **options) if getattr(_sending, "now", False) else None

    return publish_bars


def publisher_of_kernel() -> Any:
    """What publishes displays where the cells of a notebook run; None elsewhere."""
    shell = _kernel_shell()
    return None if shell is None else getattr(shell, "display_pub", None)


def _kernel_shell() -> Any:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # IPython in a terminal has a shell too, and no kernel
    return None if getattr(shell, "kernel", None) is None else shell


def _display_of_kernel() -> Callable[..., Any] | None:
    """IPython's ``display``, where the cells of a notebook run; elsewhere None, and IPython is not imported."""
    if _kernel_shell() is None:
        return None
    display: Callable[..., Any] = importlib.import_module("IPython.display").display
    return display


class _Bar:
    """A bar that appears when the work took long. A phase begins at ``_begun`` of the whole and is ``_part`` of it."""

    def __init__(self, label: str, draw: Callable[[], _Drawing], part: float) -> None:
        self._label, self._draw, self._started = label, draw, time.monotonic()
        self._counted_from = self._started
        self._drawing: _Drawing | None = None
        self._shown, self._shown_at = ("", -1), -math.inf
        self._begun, self._part, self.has_phases = 0.0, part, part == 0.0

    def inside(self, fraction: float) -> None:
        """So much of the phase is done."""
        now, per_cent = time.monotonic(), int(100 * min(1.0, self._begun + self._part * fraction) + 1e-9)
        if now - self._started <= PATIENCE_SECONDS or self._shown == (self._label, per_cent):
            return
        # The name of a phase is never late: the next update may be a minute away, and there are few of them.
        if self._shown[0] == self._label and now - self._shown_at < SECONDS_BETWEEN_UPDATES:
            return
        self._shown, self._shown_at = (self._label, per_cent), now
        with suppress(Exception):  # a screen that is gone must not cost an answer that is paid for
            if self._drawing is None:
                self._drawing = self._draw()
            self._drawing.show(self._label, per_cent, time_left(now - self._counted_from, per_cent))

    @contextmanager
    def phase(self, label: str, share: float) -> Iterator[None]:
        """One part of the work."""
        self._label, self._part = label, share
        self.inside(0.0)
        yield
        self._begun, self._part, self._label = self._begun + share, 0.0, BETWEEN
        if self._begun == 0.0:  # a rehearsal has no share: its time says nothing about the pace of the others
            self._counted_from = time.monotonic()
        self.inside(0.0)

    def end(self) -> None:
        """Take it off the screen."""
        if self._drawing is not None:
            with suppress(Exception):
                self._drawing.remove()


_open_bar: ContextVar[_Bar | None] = ContextVar("_open_bar", default=None)
_listener: ContextVar[Callable[[str, float], None] | None] = ContextVar("_listener", default=None)


@contextmanager
def told(listener: Callable[[str, float], None]) -> Iterator[None]:
    """Tell a program, instead of a screen, which phase of a conversation begins and what share of the whole is done.

    Phases only: nothing of the pace at which rows are walked over inside one, which the analysts of a service may not see.

    Examples
    --------
    >>> heard = []
    >>> with told(lambda label, done: heard.append((label, done))), one_bar("a report") as phase:
    ...     with phase("histograms", 0.25), progress("summing", 10) as advance:
    ...         advance(10)
    ...     with phase("curves", 0.75):
    ...         pass
    >>> heard
    [('histograms', 0.0), ('curves', 0.25)]
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def _telling(listener: Callable[[str, float], None]) -> Phase:
    done = 0.0

    @contextmanager
    def phase(label: str, share: float) -> Iterator[None]:
        nonlocal done
        listener(label, done)
        yield
        done += share

    return phase


@contextmanager
def _screen() -> Iterator[Callable[[], _Drawing] | None]:
    """What draws a bar where somebody sees it: in a terminal or in a notebook; None where nobody would."""
    descriptor = screen_of_stderr() if _kept is None else _kept
    if descriptor is not None:
        with os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace") as screen:
            yield partial(_InTerminal, screen)
    elif (display := _display_of_kernel()) is not None:
        yield partial(_InNotebook, display)
    else:
        yield None


@contextmanager
def _on_screen(label: str, part: float) -> Iterator[_Bar | None]:
    """A bar, or None where nobody would see it."""
    with _screen() as draw:
        if draw is None:
            yield None
            return
        bar = _Bar(label, draw, part)
        token = _open_bar.set(bar)
        try:
            yield bar
        finally:
            _open_bar.reset(token)
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
    if (listener := _listener.get()) is not None:
        token = _listener.set(None)  # what is inside another conversation is a part of it
        try:
            yield _telling(listener)
        finally:
            _listener.reset(token)
        return
    with _on_screen(label, part=0.0) as bar:
        yield _unseen if bar is None else bar.phase


@contextmanager
def _unseen(label: str, share: float) -> Iterator[None]:
    yield


@contextmanager
def progress(label: str, total_units: int) -> Iterator[Advance]:
    """Show a bar while the block runs, if it takes long and somebody can see it.

    Inside :func:`one_bar` it moves that bar on, through the phase at hand. Inside another ``progress``, whose units know
    nothing of these, nothing is seen of it.

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
        yield moving(already if already.has_phases else None)
        return
    with _on_screen(label, part=1.0) as own:
        yield moving(own)
