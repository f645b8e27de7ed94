"""Private rows: pay once, then sample rows without limit, for any explainer of any library.

Three questions, each planned from the answers before it: counts of every fine bin of every column (a fifth of mu squared);
coarse tables of all pairs of columns, only to choose which belong together (a fifth); finer tables of the chosen pairs
(three fifths). The model of the joint distribution (``solve.rows``) and every row sampled from it are post-processing.
Shares of the price, numbers of groups and of parents are fixed here, from public numbers. They were chosen on Adult, where
the error of local explanations hardly moved when shares or group sizes were halved or doubled.

*Counts.* A row contributes a 1 in its bin of each of the d columns: norm sqrt(d), two rows at most sqrt(2 d) apart
(``marginals``).

*Tables.* A row lies in one cell of each of t tables of two columns' groups: t ones, norm sqrt(t) exactly, however many
cells there are. Tables with the same first column are one block of a product sum: its one-hot vector (norm 1) times the
one-hot vectors of the s second columns side by side (norm sqrt(s)); the blocks' squared norms add up to t. So noise of
standard deviation sqrt(t)/mu on every cell is mu-GDP. Bounds are rounded up: no row is ever clipped. (Under replace-one the
product sum charges 2 sqrt(t), where sqrt(2 t) would do.) Groups and the choice of tables are functions of earlier releases,
so asking in turn is adaptive composition, which the ledger's filter is made for.
Test: tests/explain/test_private_rows_bound.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from types import MappingProxyType

import numpy as np

from .. import _checks
from .._types import Floats, Indices
from ..accounting import JsonValue
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..results.marginals import nearest_shares
from ..results.private_rows import PrivateRows
from ..schema import Schema
from ..schema.bins import Bins
from ..solve.private_tables import (
    Pair,
    agreed_shares,
    choose_structure,
    complete_structure,
    fine_bins,
    groups_of,
    pairs_of,
    shrunken_table,
    total_of,
)
from ..vault import Block, PrivateData, ProductSum
from .marginals import asked_columns, histogram_question, one_hot, root_up
from .recipe import Ask, Conversation, Given, GlobalExplainer, Recipe, Terms, cost_of, key_of, sigma_of

VERSION = 1
COUNTS = "private-rows-counts"
SHARES = (0.2, 0.2, 0.6)
"""Of mu squared: counts, choosing, tables."""
SHARES_UNCHOSEN = (0.25, 0.75)
"""Where columns are so few that every pair is taken."""
CELL_OVER_NOISE = 3.0
"""An average cell of a table holds this many standard deviations of noise, or groups are merged."""
MOST_GROUPS_CHOOSING = 8
MOST_GROUPS = {1: 60, 2: 40, 3: 20}
"""By number of parents: a clique's joint distribution then has at most 160 000 cells."""
THREE_PARENTS_FROM = 5_000.0
"""Value of n_rows_public * mu from which a column may have three parents: with much noise in the tables two do as well, with
exact tables three are better.
"""
MOST_COLUMNS = 100
MOST_BINS = 1_000


class PrivateRowsExplainer(GlobalExplainer[PrivateRows]):
    """A private model of the joint distribution of columns, to be quoted, called or audited.

    ``vt.private_rows(data, epsilon=e)`` is ``vt.PrivateRowsExplainer(data)(epsilon=e)``.

    Parameters
    ----------
    data, columns, bins, parents
        As for :func:`private_rows`.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), "smoker": vt.Categorical(["no", "yes"])})
    >>> nobody = {"age": [], "smoker": []}
    >>> data = vt.PrivateData(nobody, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> quote = data.quote(vt.PrivateRowsExplainer(data), epsilon=1.0)
    >>> quote.fits, quote.result.columns, data.budget.spent_epsilon
    (True, ('age', 'smoker'), 0.0)
    """

    def __init__(
        self, data: PrivateData, *, columns: Sequence[str] | None = None, bins: int = 100, parents: int | None = None
    ) -> None:
        self._data, self._parents = data, parents
        self._schema, self._bins = rows_design(data.schema, columns, bins, parents)
        self._recipe = partial(private_rows_recipe, columns=self._schema.names, bins=bins, parents=parents)

    def conversation(self) -> Conversation[PrivateRows]:
        """Counts, coarse tables to choose from, tables."""
        cuts: list[JsonValue] = [cut.to_json() for cut in self._bins]
        identity: dict[str, JsonValue] = {"kind": "private rows", "version": VERSION, "bins": cuts, "parents": self._parents}
        return Conversation(self._data, self._recipe, f"private rows of {len(cuts)} columns", identity)


def private_rows(
    data: PrivateData,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 100,
    parents: int | None = None,
    epsilon: Given = None,
    mu: Given = None,
) -> PrivateRows:
    """A private model of the joint distribution of columns, from which rows are sampled without limit.

    Parameters
    ----------
    data : PrivateData
        The rows. The target is a column like any other.
    columns : list of str, optional
        Which columns; all of them if not given. Explaining a model needs every column that the model reads.
    bins : int
        Into how many intervals a numeric column is cut; whole numbers with at most 100 values get a bin each.
    parents : int, optional
        On how many others a column may depend: 1 (a tree), 2 or 3. Chosen from public numbers if not given.
    epsilon, mu : float
        The price of all of it, in one of the two currencies; a :class:`PrivateRowsExplainer` can be quoted first.

    Returns
    -------
    PrivateRows

    Raises
    ------
    BudgetExceeded
        If too little is left for all of it. Asking again for the same thing replays the stored answers, free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.repeat([30, 60], 10_000), "smoker": np.repeat(["no", "yes"], 10_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> made = vt.private_rows(data, epsilon=1.0)
    >>> sampled = made.sample(1000, seed=0)
    >>> bool(np.mean((sampled["age"] > 45) == (sampled["smoker"] == "yes")) > 0.9)
    True
    >>> round(made.guarantee.epsilon, 3)
    1.0
    """
    return PrivateRowsExplainer(data, columns=columns, bins=bins, parents=parents)(epsilon=epsilon, mu=mu)


def private_rows_recipe(
    terms: Terms, *, columns: Sequence[str] | None = None, bins: int = 100, parents: int | None = None
) -> Recipe[PrivateRows]:
    """The conversation behind :func:`private_rows`, also inside other recipes."""
    schema, cuts = rows_design(terms.schema, columns, bins, parents)
    most_parents = parents or (3 if terms.n_rows_public * terms.mu >= THREE_PARENTS_FROM else 2)
    choosing = len(cuts) > most_parents + 1
    shares: tuple[float, ...] = (1.0,) if len(cuts) == 1 else SHARES if choosing else SHARES_UNCHOSEN

    counted = yield Ask(histogram_question(cuts, COUNTS), shares[0], f"private rows: counts of {len(cuts)} columns")
    counts = np.split(counted.value, np.cumsum([len(cut) for cut in cuts])[:-1])
    counts_sigma = sigma_of(counted)
    total = total_of(counts, counts_sigma, terms.n_rows_public)
    bin_shares = [nearest_shares(column / total) for column in counts]
    releases = [counted]

    links = complete_structure(len(cuts))
    if choosing:
        every_pair = list(combinations(range(len(cuts)), 2))
        groups = _groups(terms.scaled(shares[1]), cuts, bin_shares, len(every_pair), MOST_GROUPS_CHOOSING)
        label = f"private rows: {len(every_pair)} tables of all pairs, to choose from"
        coarse = yield Ask(tables_question(cuts, groups, every_pair), shares[1], label)
        tables, sigma = tables_of(coarse, groups, every_pair), sigma_of(coarse)
        agreed = agreed_shares(counts, counts_sigma, tables, sigma, groups, total)
        joints = {(i, j): shrunken_table(table, sigma, agreed[i], agreed[j], total) for (i, j), table in tables.items()}
        links = choose_structure(joints, len(cuts), most_parents)
        releases.append(coarse)
    groups, tables, sigma = [np.zeros(len(cut), dtype=np.intp) for cut in cuts], {}, 0.0
    if pairs := pairs_of(links):
        groups = _groups(terms.scaled(shares[-1]), cuts, bin_shares, len(pairs), MOST_GROUPS[most_parents])
        label = f"private rows: {len(pairs)} tables of linked columns"
        fine = yield Ask(tables_question(cuts, groups, pairs), shares[-1], label)
        tables, sigma = tables_of(fine, groups, pairs), sigma_of(fine)
        releases.append(fine)
    return PrivateRows(
        dataset=terms.dataset,
        schema=schema,
        target=terms.target if terms.target in schema else None,
        bins=cuts,
        groups=tuple(groups),
        links=links,
        counts=tuple(counts),
        counts_sigma=counts_sigma,
        noisy_tables=MappingProxyType(tables),
        tables_sigma=sigma,
        n_rows_public=terms.n_rows_public,
        cost=cost_of(releases),
        guarantee=terms.promise(*releases),
    )


def _groups(terms: Terms, cuts: Sequence[Bins], shares: Sequence[Floats], n_tables: int, most: int) -> list[Indices]:
    """Groups of every column's bins: so many that an average cell of a table stands out of the noise."""
    sigma = math.sqrt(n_tables) / terms.mu
    most = min(most, max(2, int(math.sqrt(terms.n_rows_public / (CELL_OVER_NOISE * sigma)))))
    return [
        groups_of(share, ordered=cut.edges is not None, most=most, codes=len(cut.codes))
        for cut, share in zip(cuts, shares, strict=True)
    ]


def rows_design(
    whole: Schema, columns: Sequence[str] | None, bins: int, parents: int | None
) -> tuple[Schema, tuple[Bins, ...]]:
    """The columns and their fine bins, or an error that names what is wrong with the request."""
    bins = _checks.whole("bins", bins, most=MOST_BINS)
    if parents is not None:
        _checks.whole("parents", parents, most=max(MOST_GROUPS))
    names = asked_columns(whole, columns)
    if len(names) > MOST_COLUMNS:
        raise InvalidInput(
            f"private rows of {len(names)} columns are asked for, and at most {MOST_COLUMNS} can be modelled together; "
            "name the ones that matter with columns="
        )
    # In the schema's order, whatever order they were named in: one request has one name.
    schema = whole.without(*(name for name in whole.names if name not in names))
    return schema, tuple(fine_bins(name, column, bins) for name, column in schema.items())


# --- questions -------------------------------------------------------------------------------------------------------


def tables_question(bins: Sequence[Bins], groups: Sequence[Indices], pairs: Sequence[Pair]) -> ProductSum:
    """The noisy tables of some pairs of columns, by groups of their bins.

    Its key names bins, groups and pairs: should a rebuilt recipe ever choose other ones, a stored table is never misread.
    """
    sizes = [int(group.max()) + 1 for group in groups]
    stars = stars_of(pairs)
    used = sorted({column for pair in pairs for column in pair})

    def one_hots(block: Block) -> tuple[Floats, ...]:
        made = {j: one_hot(groups[j][bins[j].index(block.column(bins[j].name))], sizes[j]) for j in used}
        sides = ((made[first], np.concatenate([made[j] for j in seconds], axis=1)) for first, seconds in stars)
        return tuple(side for both in sides for side in both)

    facts: dict[str, JsonValue] = {"groups": [group.tolist() for group in groups], "pairs": [list(pair) for pair in pairs]}
    return ProductSum(
        one_hots,
        lefts=tuple(sizes[first] for first, _ in stars),
        rights=tuple(sum(sizes[j] for j in seconds) for _, seconds in stars),
        right_bounds=tuple(root_up(len(seconds)) for _, seconds in stars),
        key=key_of("private-rows-tables", VERSION, bins=[cut.to_json() for cut in bins], **facts),
    )


def tables_of(release: Release, groups: Sequence[Indices], pairs: Sequence[Pair]) -> dict[Pair, Floats]:
    """A released product sum, cut into one table per pair."""
    sizes = [int(group.max()) + 1 for group in groups]
    tables: dict[Pair, Floats] = {}
    for block, (first, seconds) in enumerate(stars_of(pairs)):
        ends = np.cumsum([sizes[j] for j in seconds])
        for second, table in zip(seconds, np.split(release.parts[str(block)], ends[:-1], axis=1), strict=True):
            tables[first, second] = np.array(table)
    return tables


def stars_of(pairs: Sequence[Pair]) -> list[tuple[int, tuple[int, ...]]]:
    """The pairs, by their first column.

    Examples
    --------
    >>> stars_of([(0, 1), (2, 3), (0, 3)])
    [(0, (1, 3)), (2, (3,))]
    """
    firsts = sorted({first for first, _ in pairs})
    return [(first, tuple(sorted(second for start, second in pairs if start == first))) for first in firsts]
