"""Whose mistake an exception is."""

from __future__ import annotations

import traceback


def raised_by_a_model(error: BaseException) -> bool:
    """Whether it came through the code of this room, which calls models; else the mistake is somebody else's.

    Examples
    --------
    >>> raised_by_a_model(ZeroDivisionError())
    False
    """
    names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(name.startswith(f"{__package__}.") for name in names)
