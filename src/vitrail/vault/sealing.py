"""The two sentences that stand for whatever must not be said: about rows that are opened, and about a charged question."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import InvalidInput, Unanswered
from ..nothing_escapes import sealed

Result = TypeVar("Result")


def opening(work: Callable[[], Result]) -> Result:
    """Open rows, or look at their files: before any charge. Only what is wrong with columns, dtypes and files is said."""
    return sealed(
        work,
        InvalidInput,
        InvalidInput(
            "the rows cannot be read, and why may not be said: it could be about one of them. Give plain columns of "
            "numbers, texts or booleans"
        ),
    )


def answering(work: Callable[[], Result]) -> Result:
    """Read private rows, after the charge. Only a damaged file is told."""
    return sealed(
        work,
        Unanswered,
        Unanswered(
            "the question could not be answered, and why may not be said: it could be about a private row. It stays on the "
            "bill. To find out, ask it of rows that are nobody's (vitrail.vault.rehearse)"
        ),
    )
