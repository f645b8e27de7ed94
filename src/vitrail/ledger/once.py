"""Warnings that are said once in a process, at the line of the caller who can do something about it."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from ..errors import LedgerWarning

_PACKAGE = str(Path(__file__).resolve().parents[1])
_SAID: set[str] = set()


def warn_once(what: str, text: str) -> None:
    """Warn, if this process was not warned of ``what`` before.

    Python's own register of warnings counts by line, so that a loop over three scripts would say it three times, and one
    over ``exec`` never stop.
    """
    if what in _SAID:
        return
    _SAID.add(what)
    warnings.warn(text, LedgerWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far up the caller of this package is, counted from ``warn_once``: the package's own frames have others between."""
    level, found, frame = 1, 1, sys._getframe(1)
    while frame.f_back is not None:
        found = level if frame.f_code.co_filename.startswith(_PACKAGE) else found
        level, frame = level + 1, frame.f_back
    return found + 1
