"""The vault's mechanisms on rows that are nobody's: what auditors and tests draw from, hundreds of thousands of times.

The same plans, the same sums and the same noise as in :meth:`PrivateData.ask`, without a ledger. The rows are the
auditor's own; there is no way from a :class:`PrivateData` to here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..guarantee import check_neighbours
from ..schema import Schema
from .predictions import Predictions
from .question import Question
from .row_pass import RowPass
from .rows import open_rows
from .setting import Setting


def rehearse(
    question: Question,
    rows: object,
    schema: Schema,
    *,
    mu: float,
    n_rows_public: int,
    draws: int,
    target: str | None = None,
    neighbours: str = "add-remove",
    block_rows: int = 8,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Independent outputs of a question on given, non-private rows, flat: (draws, width).

    Parameters
    ----------
    question : BoundedSum, GramSum, Select, GroupedSum or SampledSum
    rows, schema, n_rows_public, target, neighbours, block_rows, threads
        As for :class:`PrivateData`.
    mu : float
        The price of each draw.
    draws : int
        How many.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.vault import rehearse
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> question = vt.BoundedSum(lambda block: block.features, size=1, l2_bound=1.0)
    >>> rehearse(question, {"age": [50.0]}, schema, mu=1.0, n_rows_public=1, draws=3).shape
    (3, 1)
    """
    setting = Setting(schema, target, n_rows_public, check_neighbours(neighbours), block_rows, threads)
    predictions = Predictions(setting)
    shape = question.probe(setting, predictions)
    return question.plan(mu, setting).answers(RowPass(open_rows(rows, schema), setting, predictions), shape, draws)
