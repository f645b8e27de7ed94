"""Calls with private rows in hand: one that may fail, a silent one, and a sealed one."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from ..errors import VitrailError
from .interrupts import INTERRUPTS, in_main_thread, stop_if_interrupted
from .quiet import QUIET

Result = TypeVar("Result")
Otherwise = TypeVar("Otherwise")

FAILURES: tuple[type[BaseException], ...] = (BaseException,)
"""What counts as failing on a private row: everything that can be raised."""


class _Here(threading.local):
    """Whether this thread is behind the door already."""

    inside = False


_HERE = _Here()
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
    return work() if _HERE.inside else _behind_the_door(work, None)


def sealed(work: Callable[[], Result], may_say: type[VitrailError], otherwise: VitrailError) -> Result:
    """Run ``work`` in silence; nothing it raises gets out.

    Parameters
    ----------
    work : callable
        Has private rows in hand.
    may_say : type
        Sentences of ours that are about public facts: they are raised without cause, context or frames.
    otherwise : VitrailError
        Is raised in place of anything else.
    """
    return _behind_the_door(work, (may_say, otherwise))


def _behind_the_door(work: Callable[[], Result], rule: tuple[type[VitrailError], VitrailError] | None) -> Result:
    result: list[Result] = []
    failure: BaseException | None = None
    before = _HERE.inside
    with INTERRUPTS, QUIET:
        _HERE.inside = True
        try:
            result.append(work())
        except BaseException as error:
            failure = error if rule is None else _public_form(error, *rule)
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


def _public_form(error: BaseException, may_say: type[VitrailError], otherwise: VitrailError) -> VitrailError:
    said = error if isinstance(error, may_say) else otherwise
    said.__cause__ = said.__context__ = said.__traceback__ = None
    said.__dict__.pop("__notes__", None)
    return said
