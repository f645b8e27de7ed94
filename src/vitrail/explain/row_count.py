"""A warning where a purchase contradicts the declared row count."""

from __future__ import annotations

import sys
import warnings

from ..errors import RowCountWarning

PACKAGE = __name__.partition(".")[0] + "."


def warn_of_contradiction(result: object) -> None:
    """Warn where the rows that a bought result counted and the declared ones cannot both be right.

    Post-processing of what was paid for: the warning says nothing that is not in the result's own sentences, so nobody
    learns more from it. Not called for quotes and rehearsals, which count rows that are nobody's.
    """
    rows = getattr(result, "rows_counted", None)
    if rows is None or not rows.contradicts:
        return
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(rows.sentence, RowCountWarning, stacklevel=level)  # the line that called this package
