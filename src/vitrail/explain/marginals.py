"""Marginals: the private histogram of every column, from one question.

A row contributes, for each of the d columns, a 1 in the bin that its value falls into and 0 in all others: d ones, hence an
L2 norm of exactly sqrt(d), however many bins there are. Two rows differ in at most two places per column, so replacing one
moves the sum by at most sqrt(2 d). A row that counts zero (a missing value without a declared stand-in) contributes the zero
vector, which is sqrt(d) away from any other. Bins come from the schema and are public. So one release with noise sigma =
sqrt(d)/mu on every count is mu-GDP (replace-one: sqrt(2 d)/mu, and a little more for the vault's rounding); shares, means,
quantiles and the total are computed from it and cost nothing. The bounds are rounded up: the float sqrt(3) is below the true
root, and every row would be clipped. Test: tests/explain/test_marginals_bound.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.marginals import Marginals
from ..schema import Schema
from ..schema.bins import Bins, bins_of
from .recipe import Ask, Conversation, GlobalExplainer, Recipe, Terms

if TYPE_CHECKING:
    from ..vault import Block, BoundedSum, PrivateData

VERSION = 1
SEEN = "marginals"
"""Under which name an analyst's latest histograms are kept beside the bill."""
MOST_BINS = 20_000
"""All columns together; a block of 4096 rows then takes 0.7 GB."""

__all__ = ["Marginals", "marginals", "marginals_bins", "marginals_question"]


class MarginalsExplainer(GlobalExplainer[Marginals]):
    """Private histograms of columns: what :func:`marginals` buys, to be quoted, called or audited.

    Parameters
    ----------
    data : PrivateData
        The rows.
    columns, bins
        As for :func:`marginals`.
    """

    def __init__(self, data: PrivateData, *, columns: Sequence[str] | None = None, bins: int = 20) -> None:
        self._data, self._columns, self._n_bins = data, columns, bins
        self._bins = marginals_bins(data.schema, columns, bins)

    def __repr__(self) -> str:
        return f"Marginals of {len(self._bins)} columns of {self._data!r}, not bought yet: call it with epsilon="

    def conversation(self) -> Conversation[Marginals]:
        """One question, for the whole price."""
        identity: dict[str, JsonValue] = {"kind": "marginals", "bins": [one.to_json() for one in self._bins]}
        return Conversation(self._data, self._recipe, f"marginals of {len(self._bins)} columns", identity)

    def _recipe(self, terms: Terms) -> Recipe[Marginals]:
        release = yield Ask(marginals_question(terms.schema, self._columns, self._n_bins), share=1.0)
        return Marginals.of_release(release, self._bins, terms.n_rows_public)

    def __call__(self, *, epsilon: float | None = None, mu: float | None = None) -> Marginals:
        """Buy the histograms; quotes of other explainers stand on them from then on."""
        bought = super().__call__(epsilon=epsilon, mu=mu)
        if set(bought.columns) >= set(self._data.feature_schema.names):
            self._data.keep(SEEN, json.dumps(bought.to_json()).encode())
        return bought


def seen_marginals(data: PrivateData) -> Marginals | None:
    """Histograms of all columns that this analyst has bought before, if any: a quote may stand on them."""
    kept = data.kept(SEEN)
    return None if kept is None else Marginals.from_json(json.loads(kept))


@overload
def marginals(
    data: PrivateData, *, columns: Sequence[str] | None = None, bins: int = 20, epsilon: None = None, mu: None = None
) -> MarginalsExplainer: ...


@overload
def marginals(
    data: PrivateData, *, columns: Sequence[str] | None = None, bins: int = 20, epsilon: float, mu: None = None
) -> Marginals: ...


@overload
def marginals(
    data: PrivateData, *, columns: Sequence[str] | None = None, bins: int = 20, epsilon: None = None, mu: float
) -> Marginals: ...


def marginals(
    data: PrivateData,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 20,
    epsilon: float | None = None,
    mu: float | None = None,
) -> Marginals | MarginalsExplainer:
    """Private histograms of the columns of a dataset, the target included, in one question.

    Parameters
    ----------
    data : PrivateData
        The rows.
    columns : list of str, optional
        Which columns; all of them if not given. Noise grows with the square root of their number, not with that of bins.
    bins : int
        Into how many intervals a numeric column is cut; whole numbers with at most 100 values get a bin each.
    epsilon, mu : float, optional
        The price, in one of the two currencies. Without one, what is returned can be quoted and called.

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
    >>> found = vt.marginals(data, epsilon=0.5)
    >>> found.labels["smoker"], np.round(found.shares["smoker"], 1).tolist()
    (('no', 'yes'), [0.8, 0.2])
    >>> found.quantile("age", 0.5)
    40.0
    """
    explainer = MarginalsExplainer(data, columns=columns, bins=bins)
    return explainer if epsilon is None and mu is None else explainer(epsilon=epsilon, mu=mu)


def marginals_bins(schema: Schema, columns: Sequence[str] | None = None, bins: int = 20) -> tuple[Bins, ...]:
    """The public bins of every asked column, or an error that names what is wrong with the request."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= MOST_BINS:
        raise InvalidInput(f"bins is {bins!r}; it must be a whole number from 1 to {MOST_BINS}")
    if isinstance(columns, str):
        raise InvalidInput(f"columns is {columns!r}; give a list of names, such as [{columns!r}]")
    names = schema.names if columns is None else tuple(columns)
    if not names:
        raise InvalidInput("columns is empty; name at least one column, or leave it out for all of them")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"columns names {twice!r} twice; each column is counted once")
    for name in names:
        schema.column_index(name)
    made = tuple(bins_of(name, schema[name], int(bins)) for name in names)
    if (width := sum(map(len, made))) > MOST_BINS:
        largest = max(made, key=len)
        raise InvalidInput(
            f"these columns have {width} bins together ({largest.name!r} alone {len(largest)}), and at most {MOST_BINS} can "
            "be counted at once; name fewer columns with columns="
        )
    return made


def marginals_question(schema: Schema, columns: Sequence[str] | None = None, bins: int = 20) -> BoundedSum:
    """The question behind :func:`marginals`, for a quote or an audit.

    Examples
    --------
    >>> from vitrail.schema import Categorical
    >>> question = marginals_question(Schema({"sex": Categorical(["Female", "Male"]), "smoker": Categorical(["no", "yes"])}))
    >>> question.size, round(question.l2_bound, 4), round(question.replace_bound, 4)
    (4, 1.4142, 2.0)
    """
    from ..vault import BoundedSum  # here, so that stored marginals can be read without loading the vault

    made = marginals_bins(schema, columns, bins)
    identity = {"kind": "marginals", "version": VERSION, "bins": [one.to_json() for one in made]}
    return BoundedSum(
        _OneHot(made),
        size=sum(map(len, made)),
        l2_bound=root_up(len(made)),
        replace_bound=root_up(2 * len(made)),
        key=json.dumps(identity, sort_keys=True),
        label=f"marginals of {len(made)} columns",
    )


class _OneHot:
    """What a row contributes: a one in its bin of every column."""

    def __init__(self, bins: tuple[Bins, ...]) -> None:
        self._bins = bins
        self._starts = np.cumsum([0, *map(len, bins)])

    def __call__(self, block: Block) -> NDArray[np.float64]:
        counted = np.zeros((len(block), int(self._starts[-1])))
        rows = np.arange(len(block))
        for one, start in zip(self._bins, self._starts[:-1], strict=True):
            counted[rows, start + one.index(block.column(one.name))] = 1.0
        return counted


def root_up(square: int) -> float:
    """The smallest float whose exact square is at least ``square``."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
