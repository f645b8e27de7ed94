"""What a function on rows is shown: a block of constant shape, in which it cannot tell padding from people.

**Which rows of a block fail** is found by halving, in blocks of the same shape. A block is called whole. If that raises, it
is called again with its first half alone, the rest filled with a public row, and with its second half alone; a half that
raises is halved again, down to single rows. Every row stays in its own place and every call has the one constant shape. A
row that raises alone among fillers counts zero.

*The same result as row by row.* A call that does not raise is taken at its word: its rows have their bits, because a
function that passed the probe gives a row the same bits in any company (``row_function``). So for a function that raises
because of single rows, halving gives exactly what calling every row alone would give. One that raises because of several
rows *together* (it runs out of memory, say) loses no row either: smaller blocks are tried until they pass, and a row is
given up only for what it does alone.

*How long it takes.* k failing rows in a block of n cost at most 2 k ceil(log2 n) further calls, because at every size at
most k blocks fail and each is called as two halves; and never more than 2 (n - 1), the number of halves there are. With the
largest block, 4096 rows, one failing row makes its block take up to 25 times as long, and a block in which every row fails
8191 times. That is seen by whoever has a watch, and is named as a limit (docs/guarantees.md). Test:
tests/vault/test_halving.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Bools, Floats
from ...errors import InvalidInput
from ...model import Model
from ...schema import Categorical, Column
from ..public_facts import PublicFacts

if TYPE_CHECKING:
    import pandas as pd


Predict = Callable[[Model, Floats], Floats]
Arrays = tuple[Floats, ...]

WAYS_AT_ONCE = 4
"""Altered blocks that go into one call: a forest of a hundred trees then takes a third less time per row."""


@dataclass(frozen=True)
class Counted:
    """Which rows of a block count, and of how many rows of their person each is one; None where a row is a unit of its own.

    What a row that is one of j says is divided by j, and its bound too (``persons``).
    """

    valid: Bools
    among: Floats | None = None

    def __getitem__(self, some: slice) -> Counted:
        return Counted(self.valid[some], None if self.among is None else self.among[some])


class Block:
    """A block of rows, as a function given to the vault sees it.

    The function must return, for every row of the block, a value that depends on that row alone. Some rows may be public
    padding; what they return is thrown away.

    Attributes
    ----------
    features : array (rows, n_features)
        The encoded columns without the target: numerics in [0, 1], categoricals one-hot.
    target : array (rows,)
        The target column: a number, or the index of its level.

    Examples
    --------
    >>> import vitrail as vt
    >>> mean_of_features = vt.BoundedSum(lambda block: block.features, size=3, l2_bound=1.0)
    """

    __slots__ = ("_facts", "_features", "_predict", "_predict_altered", "_raw")

    def __init__(self, raw: Floats, facts: PublicFacts, predict: Predict, predict_altered: Predict | None = None) -> None:
        # Read-only: a function that worked in place would otherwise change the private rows for every later question.
        self._raw = raw.view()
        self._raw.flags.writeable = False
        self._facts, self._predict = facts, predict
        self._predict_altered = _one_way_at_a_time(predict) if predict_altered is None else predict_altered
        self._features: Floats | None = None

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"Block of {len(self._raw)} rows, padding included"

    @property
    def features(self) -> Floats:
        """The encoded feature columns."""
        if self._features is None:
            self._features = self._facts.feature_schema.features(self.values)[0]
        return self._features

    @property
    def values(self) -> Floats:
        """The feature columns in original units, categoricals as the index of their level: (rows, n_columns), read-only."""
        target = self._facts.target
        if target is None:
            return self._raw
        column, last = self._facts.schema.column_index(target), self._raw.shape[1] - 1
        if column in (0, last):  # a view will do
            return self._raw[:, 1:] if column == 0 else self._raw[:, :last]
        return np.delete(self._raw, column, axis=1)

    @property
    def target(self) -> Floats:
        """The target column: a number, or the index of its level."""
        if self._facts.target is None:
            raise InvalidInput("this dataset declares no target; give PrivateData target= to use block.target")
        return self.column(self._facts.target)

    def column(self, name: str) -> Floats:
        """One column in original units, or as level indices."""
        return np.array(self._raw[:, self._facts.schema.column_index(name)])

    def columns(self, names: Iterable[str]) -> Floats:
        """Some columns side by side, (rows, names), each as :meth:`column` gives it."""
        return self._raw[:, [self._facts.schema.column_index(name) for name in names]]

    def predictions(self, model: Model) -> Floats:
        """The model's output for every row, clipped to its declared range; NaN where the model fails."""
        return self._predict(model, self.values)

    def outputs(self, model: Model, altered: Floats) -> Floats:
        """The model's output for altered rows, in the place of the row each was made from.

        A row of which the model cannot be asked some altered form counts zero in the question.

        Parameters
        ----------
        model : Model
            The model to ask.
        altered : array (rows, n_columns) or (rows, k, n_columns)
            :attr:`values` with some columns exchanged, in one way or in k. Entry i must be made from row i alone, and stay
            inside the schema. Several ways at once are faster.

        Returns
        -------
        array (rows,) or (rows, k)

        Notes
        -----
        While the vault tries a function on public rows, these numbers are not the model's: they are a hash of each altered
        row, because whether the function keeps rows apart does not depend on what the model says about them.
        """
        rows, columns = len(self._raw), self._facts.feature_schema.n_columns
        if altered.ndim not in (2, 3) or (altered.shape[0], altered.shape[-1]) != (rows, columns):
            raise InvalidInput(
                f"block.outputs was given an array of shape {altered.shape} for a block of {rows} rows; altered rows in the "
                f"place of each row are expected, {(rows, columns)} or {(rows, 'k', columns)}"
            )
        return self._predict_altered(model, altered)

    def what_if(self, model: Model, columns: str | Sequence[str], values: Floats) -> Floats:
        """The model's output for every row, had it other values in some columns: what :meth:`outputs` says of such rows.

        Altered rows are held a few at a time, however many values there are, so that long grids on wide rows fit into
        memory. A row of which the model cannot be asked counts zero in the question, as for :meth:`outputs`.

        Parameters
        ----------
        model : Model
            The model to ask.
        columns : str or sequence of str
            The feature column to set, or several to set together.
        values : array (k,) or (rows, k)
            k values for all rows alike, or for each row its own, made from that row alone; numbers in original units, levels
            as their index, all of them inside the schema. Of several columns (k, columns) or (rows, k, columns).

        Returns
        -------
        array (rows, k)

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "dose": vt.Numeric(0, 1)})
        >>> rows = {"age": np.full(5000, 50.0), "dose": np.full(5000, 0.5)}
        >>> data = vt.PrivateData(rows, schema, name="trial", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
        >>> risk = vt.Model(lambda x: x[:, 0] * x[:, 1], range=(0, 1), name="risk")
        >>> ages = np.array([20.0, 80.0])
        >>> at_ages = vt.BoundedSum(lambda block: block.what_if(risk, "age", ages), size=2, l2_bound=2.0**0.5)
        >>> (data.ask(at_ages, epsilon=1.0).value / 5000).round(1).tolist()
        [0.1, 0.4]
        """
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        schema, own = self._facts.feature_schema, self.values
        if not names or len(set(names)) < len(names) or not all(name in schema for name in names):
            raise InvalidInput(
                f"block.what_if was given the columns {columns!r}; name one of the features, or several, each once: "
                f"{', '.join(schema.names[:12])}{' ...' if schema.n_columns > 12 else ''}"
            )
        values = np.asarray(values, dtype=np.float64)
        given = values[..., None] if isinstance(columns, str) else values
        if given.ndim not in (2, 3) or given.shape[-1] != len(names) or (given.ndim == 3 and len(given) != len(own)):
            last = () if isinstance(columns, str) else (len(names),)
            raise InvalidInput(
                f"block.what_if was given values of shape {values.shape} for {len(own)} rows; k values for all rows are "
                f"expected, {('k', *last)}, or k for each, {(len(own), 'k', *last)}"
            )
        for index, name in enumerate(names):
            if not _inside(schema[name], given[..., index]).all():
                raise InvalidInput(
                    f"block.what_if was given a value of {name!r} that the schema does not allow; it must be "
                    f"{schema[name].allowed}{' (as its index)' * isinstance(schema[name], Categorical)}"
                )
        where, ways = [schema.column_index(name) for name in names], given.shape[-2]
        outputs = np.empty((len(own), ways))
        # The calls that block.outputs would make of all ways at once, pack by pack, and so its bits.
        altered = np.empty((len(own), min(ways, WAYS_AT_ONCE), own.shape[1]))
        for start in range(0, ways, WAYS_AT_ONCE):
            pack = slice(start, min(start + WAYS_AT_ONCE, ways))
            some = altered[:, : pack.stop - start]
            some[:] = own[:, None]  # all of it anew: a model may have worked in place
            some[:, :, where] = given[..., pack, :]
            outputs[:, pack] = self._predict_altered(model, some)
        return outputs

    def frame(self) -> pd.DataFrame:
        """All columns, the target included, as a pandas data frame in original units and levels."""
        return self._facts.schema.pandas(self._raw)


def _inside(column: Column, values: Floats) -> Bools:
    """Which values a complete raw row may have in a column: a level's index, a number between the bounds, or a code."""
    if isinstance(column, Categorical):
        return np.asarray((values >= 0) & (values < len(column.levels)) & (values == np.floor(values)))
    between = (values >= column.low) & (values <= column.high)
    whole = between & (values == np.floor(values)) if column.integer else between
    return np.asarray(whole | np.isin(values, column.codes) if column.codes else whole)


def _one_way_at_a_time(predict: Predict) -> Predict:
    def outputs(model: Model, altered: Floats) -> Floats:
        if altered.ndim == 2:
            return predict(model, altered)
        return np.stack([predict(model, np.ascontiguousarray(way)) for way in altered.transpose(1, 0, 2)], axis=1)

    return outputs


def salvaged(rows: int, call: Callable[[slice], Arrays | None], row_shapes: Iterable[tuple[int, ...]]) -> Arrays:
    """What ``call`` returns for a whole block; where that fails, what it returns in halves, and NaN for failing rows.

    ``call`` runs with only these rows of the block, at their positions, and returns None when it fails. A part that fails is
    halved until every part passed or is one row.

    Examples
    --------
    >>> def call(part):
    ...     return None if part.start <= 2 < part.stop else (np.arange(4.0),)
    >>> salvaged(4, call, [()])
    (array([ 0.,  1., nan,  3.]),)
    """
    whole = call(slice(0, rows))
    if whole is not None:
        return whole
    results, failed = tuple(np.full((rows, *shape), np.nan) for shape in row_shapes), [(0, rows)]
    while failed:
        start, stop = failed.pop()
        middle = (start + stop) // 2
        for half in ((start, middle), (middle, stop)) if stop - start > 1 else ():
            part = slice(*half)
            if (returned := call(part)) is None:
                failed.append(half)
                continue
            for result, values in zip(results, returned, strict=True):
                result[part] = values[part]
    return results


def among_fillers(rows: Floats, part: slice, filler: Floats) -> Floats:
    """Some rows of a block at their positions, the rest filled with a public row (1, columns)."""
    if part == slice(0, len(rows)):
        return rows
    block = np.repeat(filler, len(rows), axis=0)
    block[part] = rows[part]
    return block
