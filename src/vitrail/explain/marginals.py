"""Marginals: the private histogram of every column, from one question.

The bins of a column are a partition of the rows, so this is :class:`CellCounts` of d partitions: a row is in one bin of each
column, d ones, however many bins there are. Noise of sqrt(d)/mu on every count is mu-GDP (replace-one: sqrt(2 d)/mu). A row
that does not count (a missing value without a declared stand-in) is in no bin. Bins come from the schema and are public;
shares, means, quantiles and the total are computed from the release and cost nothing. Test:
tests/explain/test_marginals_bound.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.marginals import Marginals
from ..schema import Schema
from ..schema.bins import Bins, bins_of, index_of_all
from ..vault import Block, CellCounts, PrivateData
from .elsewhere import elsewhere
from .recipe import Ask, Conversation, Given, GlobalExplainer, Recipe, Terms, key_of
from .sampled import checked_rate

VERSION = 1
SEEN = "marginals"
"""Under which name an analyst's latest histograms are kept beside the bill."""
MOST_BINS = 10**6
"""All columns together: with more, a file could not hold their labels and counts (``results.archive``)."""


class MarginalsExplainer(GlobalExplainer[Marginals]):
    """Private histograms of columns, to be quoted, called or audited.

    ``vt.marginals(data, epsilon=e)`` is ``vt.MarginalsExplainer(data)(epsilon=e)``.

    Parameters
    ----------
    data, columns, bins, sampling_rate
        As for :func:`marginals`.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema, nobody = vt.Schema({"age": vt.Numeric(0, 99, integer=True)}), {"age": []}
    >>> data = vt.PrivateData(nobody, schema, name="patients", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> quote = data.quote(vt.MarginalsExplainer(data), epsilon=0.5)
    >>> quote.fits, quote.result.columns, data.budget.spent_epsilon
    (True, ('age',), 0.0)
    """

    def __init__(
        self, data: PrivateData, *, columns: Sequence[str] | None = None, bins: int = 20, sampling_rate: float = 1.0
    ) -> None:
        self.data, self._cuts = data, marginals_bins(data.schema, columns, bins)
        self.columns, self.bins, self.sampling_rate = columns, bins, checked_rate(sampling_rate)

    def conversation(self) -> Conversation[Marginals]:
        """One question, for the whole price."""
        cuts: list[JsonValue] = [cut.to_json() for cut in self._cuts]
        identity: dict[str, JsonValue] = {"kind": "marginals", "version": VERSION, "bins": cuts}
        label = f"marginals of {len(cuts)} columns"
        return Conversation(self.data, self._recipe, label, identity, sampling_rate=self.sampling_rate)

    def _recipe(self, terms: Terms) -> Recipe[Marginals]:
        release = yield Ask(histogram_question(self._cuts, "marginals"), share=1.0)
        return Marginals.of_release(release, self._cuts, terms.n_rows_public)

    def __call__(self, *, epsilon: Given = None, mu: Given = None) -> Marginals:
        """Buy the histograms; quotes of other explainers stand on them from then on."""
        bought = super().__call__(epsilon=epsilon, mu=mu)
        # A service keeps them itself, beside its bill.
        if elsewhere(self) is None and set(bought.columns) >= set(self.data.feature_schema.names):
            self.data.keep(SEEN, bought.to_bytes())
        return bought


def seen_marginals(data: PrivateData) -> Marginals | None:
    """Histograms of all columns that this analyst has bought before, if any: a quote may stand on them."""
    kept = data.kept(SEEN)
    return None if kept is None else Marginals.from_bytes(kept)


def marginals(
    data: PrivateData,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 20,
    sampling_rate: float = 1.0,
    epsilon: Given = None,
    mu: Given = None,
) -> Marginals:
    """Private histograms of the columns of a dataset, the target included, in one question.

    Parameters
    ----------
    data : PrivateData
        The rows.
    columns : list of str, optional
        Which columns; all of them if not given. Noise grows with the square root of their number, not with that of bins.
    bins : int
        Into how many intervals a numeric column is cut; whole numbers with at most 100 values get a bin each.
    sampling_rate : float
        Below 1, each row is looked at with this probability: sooner, noisier and no cheaper. Bands hold what that adds.
    epsilon, mu : float
        The price, in one of the two currencies; a :class:`MarginalsExplainer` can be quoted first.

    Returns
    -------
    Marginals

    Raises
    ------
    BudgetExceeded
        If too little is left. Asking again for the same columns, bins and price replays the stored answer, free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.full(9000, 40), "smoker": np.array(["yes"] * 2000 + ["no"] * 7000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> histograms = vt.marginals(data, epsilon=0.5)
    >>> histograms.labels["smoker"], np.round(histograms.shares["smoker"], 1).tolist()
    (('no', 'yes'), [0.8, 0.2])
    >>> histograms.quantile("age", 0.5)
    40.0
    """
    return MarginalsExplainer(data, columns=columns, bins=bins, sampling_rate=sampling_rate)(epsilon=epsilon, mu=mu)


def marginals_bins(schema: Schema, columns: Sequence[str] | None = None, bins: int = 20) -> tuple[Bins, ...]:
    """The public bins of every asked column, or an error that names what is wrong with the request."""
    bins = _checks.whole("bins", bins, most=MOST_BINS)
    made = tuple(bins_of(name, schema[name], bins) for name in asked_columns(schema, columns))
    if (width := sum(map(len, made))) > MOST_BINS:
        largest = max(made, key=len)
        raise InvalidInput(
            f"these columns have {width} bins together ({largest.name!r} alone {len(largest)}), and at most {MOST_BINS} can "
            "be counted at once; ask for fewer bins=, or name fewer columns with columns="
        )
    return made


def asked_columns(schema: Schema, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the columns that are asked for, each once; all of them for None."""
    if columns is not None and not isinstance(columns, str):
        for name in columns:
            schema.column_index(name)  # an unknown name is told with the nearest one
    return _checks.names("columns", columns, schema.names)


def marginals_question(schema: Schema, columns: Sequence[str] | None = None, bins: int = 20) -> CellCounts:
    """The question behind :func:`marginals`.

    Examples
    --------
    >>> from vitrail.schema import Categorical
    >>> question = marginals_question(Schema({"sex": Categorical(["Female", "Male"]), "smoker": Categorical(["no", "yes"])}))
    >>> question.sizes
    (2, 2)
    """
    return histogram_question(marginals_bins(schema, columns, bins), "marginals")


def histogram_question(bins: tuple[Bins, ...], kind: str) -> CellCounts:
    """The noisy count of every bin of every column. About no model: its key is the same in all recipes that ask it."""
    names, index = [cut.name for cut in bins], index_of_all(bins)

    def cells(block: Block) -> Floats:
        return index(block.columns(names)).astype(np.float64)

    key, label = key_of(kind, VERSION, bins=[cut.to_json() for cut in bins]), f"{kind} of {len(bins)} columns"
    return CellCounts(cells, tuple(map(len, bins)), key=key, label=label)
