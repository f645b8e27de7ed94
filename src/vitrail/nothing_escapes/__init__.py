"""The one door between private rows and everybody who may hear: nothing that a row causes goes through it.

A question's answer is noisy and paid for. Whatever else a private row brought about would be a free and exact look at it: an
exception, a warning, a log line, a byte on a screen, an interrupt that never was. So code that has private rows in hand runs
behind this door, and all of these stop here, whatever raised or wrote them:

- *exceptions* of every kind, ``BaseException`` included (a panic of a Rust library and a cancelled task are no
  ``Exception``): :func:`attempt` turns what one call raises into "this row does not count", and :func:`sealed` lets nothing
  leave but a sentence of ours without cause, context or frames;
- *interrupts* that only pretend: the user's Ctrl-C is obeyed because our own signal handler saw it; one that a model raises
  is a failing row (``interrupts``);
- *warnings, log records, standard output and standard error*, those of C libraries included, and what Python says about
  failing threads and destructors (``quiet``).

**What may be said about rows**, here and in every message of the library: the names of columns and files; the dtype of a
whole column; which container rows came in, and its number of dimensions and columns; that a file is damaged or gone; and
whatever the schema declares. Never a value, the place or number of a row, nor the words of another library about either.

**What cannot be held back in one process** (docs/guarantees.md names it): a model that ends or crashes the process, sends
it a signal, writes to files, sockets or processes of its own, keeps a copy of a stream that is no file descriptor 1 or 2,
or leaves a thread behind that speaks later; and how long a row takes. Tests: tests/vault/test_nothing_escapes.py,
tests/vault/test_escapes_planted.py.
"""

from .calls import attempt, hushed, sealed, stop_if_interrupted

__all__ = ["attempt", "hushed", "sealed", "stop_if_interrupted"]
