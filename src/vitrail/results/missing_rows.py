"""Which rows missing values have touched, in sentences with numbers and their noise. Post-processing of released counts.

A column's policy says what a missing (or undeclared) value becomes: a level or code of its own, a declared number between
the bounds, or nothing, and then the row does not count. Each leaves its mark in the histograms:

- rows that do not count are missing from all of them: declared less counted;
- a level or code is a bin: its count, people who truly have that value among them;
- a number between the bounds falls into some bin: its count is at most how many there are, not how many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..schema import Categorical, Schema
from ..schema.bins import Bins

if TYPE_CHECKING:
    from .marginals import Marginals


def missing_sentences(marginals: Marginals, schema: Schema) -> tuple[str, ...]:
    """How many rows each column's policy touched, and how many do not count, each in a sentence.

    Parameters
    ----------
    marginals : Marginals
        Noisy histograms.
    schema : Schema
        Which declares the policies; columns that it does not have are left out.
    """
    columns = [cut for cut in marginals.bins if cut.name in schema]
    touched = [_touched(cut, schema, marginals) for cut in columns if schema[cut.name].missing is not None]
    return (*_not_counted(marginals, schema), *touched)


def _touched(bins: Bins, schema: Schema, marginals: Marginals) -> str:
    column = schema[bins.name]
    missing = column.missing
    assert missing is not None
    if isinstance(column, Categorical):
        index = column.levels.index(missing)
        what, is_own = f"missing or undeclared in {bins.name!r} are held as {str(missing)!r}", True
    else:
        index, is_own = int(bins.index(np.array([float(missing)]))[0]), missing in column.codes
        what = f"missing in {bins.name!r} are held as {missing:g}"
    count, half = max(0.0, float(marginals.counts[bins.name][index])), marginals.half_width
    number = f"{count:,.0f} ± {half:,.0f} rows ({_percent(count, half, marginals)})"
    if is_own:
        return f"Values {what}: {number} are there, who truly have that value among them."
    return f"Values {what}: at most {number} are so, all that lie in {bins.labels[index]}."


def _not_counted(marginals: Marginals, schema: Schema) -> tuple[str, ...]:
    """Declared less counted, where some column has no policy and the count does not say that there are more."""
    rows = marginals.rows_counted
    without = [name for name, column in schema.items() if column.missing is None]
    if not without or rows.counted - rows.declared > rows.half_width:
        return ()
    lacking = max(0.0, rows.declared - rows.counted)
    named = ", ".join(map(repr, without[:4])) + (f" and {len(without) - 4} more" if len(without) > 4 else "")
    share = _percent(lacking, rows.half_width, marginals, of=rows.declared)
    return (
        f"Rows that do not count: {lacking:,.0f} ± {rows.half_width:,.0f} ({share} of the declared), if the declared number "
        f"is right: a missing or undeclared value in {named} takes the whole row out.",
    )


def _percent(count: float, half_width: float, marginals: Marginals, of: float | None = None) -> str:
    rows = marginals.rows_counted.denominator if of is None else max(of, 1.0)
    return f"{min(1.0, count / rows):.1%} ± {min(1.0, half_width / rows):.1%}"
