"""Whose turn it is: work that takes a processor, one at a time for each person and a few in all."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from .problems import Problem

MOST_WAITING = 2
"""So many of one person wait behind the one that is at work; more are refused."""
PATIENCE_SECONDS = 30.0


class Turns:
    """Turns of so many people at once.

    Examples
    --------
    >>> turns = Turns(2)
    >>> with turns.of("alice"), turns.of("bob"):
    ...     turns.at_work
    ('alice', 'bob')
    """

    def __init__(self, at_once: int, *, patience: float = PATIENCE_SECONDS) -> None:
        self._at_once, self._patience = at_once, patience
        self._at_work: set[str] = set()
        self._waiting: Counter[str] = Counter()
        self._changed = threading.Condition()

    @property
    def at_work(self) -> tuple[str, ...]:
        """Whose turn it is, sorted."""
        return tuple(sorted(self._at_work))

    @contextmanager
    def of(self, person: str) -> Iterator[None]:
        """Wait for this person's turn, and have it. Whoever has one already waits for that to end, and nobody else does."""
        with self._changed:
            if self._waiting[person] >= MOST_WAITING:
                raise _too_many("several quotes of yours are being worked out")
            self._waiting[person] += 1
            came = self._changed.wait_for(lambda: self._is_turn_of(person), self._patience)
            self._waiting[person] -= 1
            if not came:
                raise _too_many("too many quotes are being worked out")
            self._at_work.add(person)
        try:
            yield
        finally:
            with self._changed:
                self._at_work.discard(person)
                self._changed.notify_all()

    def _is_turn_of(self, person: str) -> bool:
        return person not in self._at_work and len(self._at_work) < self._at_once


def _too_many(why: str) -> Problem:
    return Problem("too-many-requests", f"{why}; ask again soon", retry_after=5)
