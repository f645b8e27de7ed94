"""Which rows of a block fail: found by halving, in blocks of the same shape.

A block is called whole. If that raises, it is called again with its first half alone, the rest filled with a public row, and
with its second half alone; a half that raises is halved again, down to single rows. Every row stays in its own place and
every call has the one constant shape. A row that raises alone among fillers counts zero.

*The same result as row by row.* A call that does not raise is taken at its word: its rows have their bits, because a
function that passed the probe gives a row the same bits in any company (``row_function``). So for a function that raises
because of single rows, halving gives exactly what calling every row alone would give. One that raises because of several
rows *together* (it runs out of memory, say) loses no row either: smaller blocks are tried until they pass, and a row is
given up only for what it does alone.

*How long it takes.* k failing rows in a block of n cost at most 2 k ceil(log2 n) further calls, because at every size at
most k blocks fail and each is called as two halves; and never more than 2 (n - 1), the number of halves there are. With
the largest block, 4096 rows, one failing row makes its block take up to 25 times as long, and a block in which every row
fails 8191 times. That is seen by whoever has a watch, and is named as a limit (docs/guarantees.md). Test:
tests/vault/test_halving.py.
"""

from __future__ import annotations

from collections.abc import Callable


def in_halves(rows: int, passes: Callable[[slice], bool]) -> None:
    """Halve a block of which the whole failed until every part passed or is one row.

    Parameters
    ----------
    rows : int
        The number of rows in the block.
    passes : callable
        Calls whatever failed with only these rows of the block, keeps the result, and says whether there was one.

    Examples
    --------
    >>> asked = []
    >>> def passes(part):
    ...     asked.append((part.start, part.stop))
    ...     return not part.start <= 5 < part.stop
    >>> in_halves(8, passes)
    >>> asked
    [(0, 4), (4, 8), (4, 6), (6, 8), (4, 5), (5, 6)]
    """
    failed = [(0, rows)]
    while failed:
        start, stop = failed.pop()
        if stop - start < 2:
            continue
        middle = (start + stop) // 2
        failed += [part for part in ((start, middle), (middle, stop)) if not passes(slice(*part))]
