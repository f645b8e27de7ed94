"""Private rows: pay once, then sample rows without limit, for any explainer of any library.

Up to three questions, each planned from the answers before it: counts of every fine bin of every column, and of blocks of
bins where they are many; contrasts of all pairs of columns by coarse groups, only to choose which belong together;
contrasts of the chosen pairs by finer groups. Where, by public numbers, no dependence between columns could stand out of the
noise, or columns are more than ``MOST_SURVEYED``, counts are all that is asked, for the whole price; where none does stand
out, what is left buys the same counts again.
The model of the joint distribution (``solve/rows``) and every row sampled from it are post-processing. Shares of the price
and the rule for finer bins were chosen on Adult, COMPAS, German credit, HELOC and Framingham.

*Counts.* A row contributes a 1 in its bin of each of the d columns, and in its block of each of the c columns that are
counted twice: norm sqrt(d + c), two rows at most sqrt(2 (d + c)) apart (``marginals``).

*Contrasts.* Column j has k_j groups; a row's contrasts v_j are a row of a k_j x (k_j - 1) matrix with orthonormal columns
that are orthogonal to constants, so |v_j|^2 = 1 - 1/k_j whatever the group. *To choose from*: with v all of them side by
side, |v|^2 = S = sum_j (1 - 1/k_j), and a row contributes v v^T, of norm S: a :class:`GramSum` with l2_bound S is mu-GDP
with noise S/mu on the diagonal and S/(sqrt 2 mu) elsewhere. *Tables*: v_i v_j^T for t pairs (i, j); pairs of one first
column are one block of a :class:`ProductSum`, v_i times the vectors of the s second columns side by side; squared norms add
up to sum (1 - 1/k_i)(1 - 1/k_j) < t. Bounds are a hair larger than that: no row is ever clipped. (Under replace-one both
charge twice the bound.) Groups and the choice of tables are functions of earlier releases, so asking in turn is adaptive
composition, which the ledger's filter is made for. Test: tests/explain/test_private_rows_bound.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .. import _checks
from .._types import Floats, Indices
from ..accounting import JsonValue
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..results.private_rows import PrivateRows
from ..results.row_count import RowCount
from ..schema import Schema
from ..schema.bins import MOST_SINGLE_VALUES, Bins
from ..solve.rows.histograms import blocks_as_bins, blocks_of, fine_bins, groups_of, shares_of_columns
from ..solve.rows.left_out import factors_of
from ..solve.rows.network import MOST_SURVEYED, Link, choose_structure, independent, pairs_of
from ..solve.rows.tables import Pair, contrasts, group_shares, standing_out
from ..solve.sampling import sampling_variance
from ..vault import Block, GramSum, PrivateData, ProductSum
from .marginals import asked_columns, histogram_question
from .recipe import Ask, Conversation, Given, GlobalExplainer, Recipe, Terms, cost_of, key_of, sigma_of
from .sampled import checked_rate

VERSION = 4
COUNTS = "private-rows-counts"
SHARES = (0.5, 0.15, 0.35)
"""Of mu squared: counts, choosing, tables. Explanations hang on the columns' own distributions first."""
COARSE_SHARES = (0.65, 0.15, 0.2)
"""The same where noise leaves at most ``FEW_GROUPS`` groups of a column to choose from: there it is the columns' own
distributions that are wrong."""
FEW_GROUPS = 3
FINER = 4
"""By how much bins may be finer than asked for, where there is little noise."""
MOST_GROUPS_CHOOSING = 6
MOST_CONTRASTS = 1_500
"""Of all columns together, to choose from: their number is squared."""
DEPENDENCE = 0.15
"""A correlation that tables to choose from should tell from noise, or their groups are merged."""
MOST_GROUPS = {1: 60, 2: 27, 3: 12}
"""By number of parents: a clique's joint distribution then has at most some 20 000 cells."""
TABLE_NATS = 0.02
"""What the noise of a table may cost, of mutual information, or its groups are merged."""
SAMPLED, DRAWN_TOGETHER = 4_096, 256
"""Stored rows. They are drawn evenly (``solve.rows.network``) some at a time: explanations stand on the first ones only, and
a part of the whole, picked at random, would have rare values with large effects too often or too rarely."""
RAKED, RAKED_VALUES = 32_768, 2**22
"""Rows that are drawn to find how much rows count for pairs that are not linked, and their values at most."""
WIDE_SAMPLED = 1_024
"""Stored rows of very many columns: so many that reasons have their background."""
MOST_COLUMNS = 20_000
MOST_LINKED = 60
"""Columns up to which one may hang on more than one other."""
MOST_BINS = 1_000
MOST_ALL_BINS = 10**6
"""Of all columns together: with more, a file could not hold their labels and counts (``results.archive``)."""
WIDE_BIN, FEWEST_BINS = 8.0, 8
"""Of very many columns: how many times the noise on it an even share of the rows in a bin is, or bins are made wider, down
to so many. Noise grows with the root of the number of columns, and what fine bins would tell of each is lost in it."""
HAIR = 1 + 2.0**-16
"""By how much bounds exceed what a row contributes, so that rounding clips nobody."""


class PrivateRowsExplainer(GlobalExplainer[PrivateRows]):
    """A private model of the joint distribution of columns, to be quoted, called or audited.

    ``vt.private_rows(data, epsilon=e)`` is ``vt.PrivateRowsExplainer(data)(epsilon=e)``.

    Parameters
    ----------
    data, columns, bins, parents, sampling_rate
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
        self,
        data: PrivateData,
        *,
        columns: Sequence[str] | None = None,
        bins: int = 128,
        parents: int | None = None,
        sampling_rate: float = 1.0,
    ) -> None:
        self.data, self.columns, self.parents, self.sampling_rate = data, columns, parents, checked_rate(sampling_rate)
        self._schema, self._cuts = rows_design(data.schema, columns, bins, parents)
        self.bins = int(bins)
        self._recipe = partial(private_rows_recipe, columns=self._schema.names, bins=bins, parents=parents)

    def conversation(self) -> Conversation[PrivateRows]:
        """Counts, coarse tables to choose from, tables."""
        count = self._schema.n_columns
        # Of very many columns only what bins follow from: all their labels would be a text of many millions of letters.
        few = count <= MOST_SURVEYED
        cuts: list[JsonValue] = [cut.to_json() for cut in self._cuts] if few else [self.bins, *self._schema.names]
        identity: dict[str, JsonValue] = {"kind": "private rows", "version": VERSION, "bins": cuts, "parents": self.parents}
        label = f"private rows of {count} columns"
        return Conversation(self.data, self._recipe, label, identity, sampling_rate=self.sampling_rate)


def private_rows(
    data: PrivateData,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 128,
    parents: int | None = None,
    sampling_rate: float = 1.0,
    epsilon: Given = None,
    mu: Given = None,
) -> PrivateRows:
    """A private model of the joint distribution of columns, from which rows are sampled without limit.

    Parameters
    ----------
    data : PrivateData
        The rows. The target is a column like any other.
    columns : list of str, optional
        Which columns; all of them if not given. Explaining a model needs every column that the model reads. More than 1 000
        are taken as independent of each other, and results that stand on them say so.
    bins : int
        Into about how many intervals a numeric column is cut, up to four times as many where the noise allows it; whole
        numbers with at most as many values get a bin each. Fewer where there are more than 1 000 columns and the noise that
        so many of them make is large.
    parents : int, optional
        On how many others a column may hang at most: 1 (a tree), 2 or 3. How many it does hang on, if any, is chosen from
        public numbers and the noisy answers.
    sampling_rate : float
        Below 1, every question looks at each row with this probability: sooner, noisier and no cheaper. What the choice of
        the rows adds is in everything that is said of how far sampled rows may be off.
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
    options = {"columns": columns, "bins": bins, "parents": parents, "sampling_rate": sampling_rate}
    return PrivateRowsExplainer(data, **options)(epsilon=epsilon, mu=mu)  # type: ignore[arg-type]


def private_rows_recipe(
    terms: Terms, *, columns: Sequence[str] | None = None, bins: int = 128, parents: int | None = None
) -> Recipe[PrivateRows]:
    """The conversation behind :func:`private_rows`, also inside other recipes."""
    schema, cuts = rows_design(terms.schema, columns, bins, parents)
    schema, cuts = rows_design(terms.schema, columns, _as_fine_as_noise_allows(terms, cuts, bins), parents)
    if (every := sum(map(len, cuts))) > MOST_ALL_BINS:
        raise InvalidInput(
            f"these {len(cuts)} columns have {every} bins and levels together, and private rows at most {MOST_ALL_BINS}; "
            "name the columns that matter with columns="
        )
    blocks = [blocks_of(cut) for cut in cuts]
    counted_bins = (
        *cuts,
        *(blocks_as_bins(cut, block) for cut, block in zip(cuts, blocks, strict=True) if block is not None),
    )
    n_choosing = 0
    if len(cuts) <= MOST_SURVEYED:
        n_choosing = _groups_to_choose_from(terms.scaled(SHARES[1]), sum(len(cut) > 1 for cut in cuts))
    price = SHARES if n_choosing > FEW_GROUPS else COARSE_SHARES

    label = f"private rows: counts of {len(cuts)} columns"
    counted = yield Ask(histogram_question(counted_bins, COUNTS), price[0] if n_choosing else 1.0, label)
    values, sigma = counted.value, sigma_of(counted)
    releases = [counted]
    pieces = np.cumsum([len(cut) for cut in counted_bins])[:-1]
    rate = terms.sampling_rate

    links, tables, tables_sigma, survey = independent(len(cuts)), {}, sigma, None
    groups = [np.zeros(len(cut), dtype=np.intp) for cut in cuts]
    if n_choosing:
        total, shares = _shares(np.split(values, pieces), cuts, sigma, terms.n_rows_public, rate)
        groups = _groups(cuts, shares, n_choosing)
        label = f"private rows: all pairs of {len(cuts)} columns, to choose from"
        coarse = yield Ask(choosing_question(cuts, groups), price[1], label)
        releases.append(coarse)
        given = coarse.parts["gram"], _coarse_sigma(coarse), group_shares(shares, groups), total
        seen, each = standing_out(*given, rate=rate), standing_out(*given, surely=False, rate=rate)
        survey = Survey(each, groups, _coarse_sigma(coarse))
        links, most = _chosen(terms.scaled(price[2]), seen, group_shares(shares, groups), total, parents)
        if pairs := pairs_of(links):
            groups = _groups(cuts, shares, most)
            label = f"private rows: {len(pairs)} tables of linked columns"
            fine = yield Ask(tables_question(cuts, groups, pairs), price[2], label)
            releases.append(fine)
            tables, tables_sigma = tables_of(fine, groups, pairs), sigma_of(fine)
        else:  # nothing hangs together: the rest buys the same counts a second time
            groups = [np.zeros(len(cut), dtype=np.intp) for cut in cuts]
            label = f"private rows: counts of {len(cuts)} columns, again"
            again = yield Ask(histogram_question(counted_bins, f"{COUNTS}-again"), price[2], label)
            releases.append(again)
            weights = np.array([sigma, sigma_of(again)]) ** -2.0
            values, sigma = (weights[0] * values + weights[1] * again.value) / weights.sum(), weights.sum() ** -0.5
    pieces_of = np.split(values, pieces)
    of_blocks = iter(pieces_of[len(cuts) :])
    made = PrivateRows(
        dataset=terms.dataset,
        schema=schema,
        target=terms.target if terms.target in schema else None,
        bins=cuts,
        groups=tuple(groups),
        links=links,
        counts=tuple(pieces_of[: len(cuts)]),
        block_counts=tuple(np.empty(0) if block is None else next(of_blocks) for block in blocks),
        counts_sigma=float(sigma),
        noisy_tables=MappingProxyType(tables),
        tables_sigma=float(tables_sigma),
        n_rows_public=terms.n_rows_public,
        sampled=np.zeros((0, len(cuts))),
        coarse_groups=() if survey is None else tuple(survey.groups),
        coarse_sigma=0.0 if survey is None else survey.sigma,
        factors={},
        cost=cost_of(releases),
        guarantee=terms.promise(*releases),
        sampling_rate=rate,
    )
    seed = int.from_bytes(hashlib.sha256(values.tobytes()).digest()[:8])
    stored = SAMPLED if len(cuts) <= MOST_SURVEYED else WIDE_SAMPLED
    sampled = np.concatenate([made.raw(DRAWN_TOGETHER, seed + i) for i in range(stored // DRAWN_TOGETHER)])
    if survey is None:
        return made.storing(sampled, {})
    raked = made.raw(min(RAKED, RAKED_VALUES // len(cuts)), seed + SAMPLED)
    return made.storing(sampled, survey.factors(cuts, links, raked))


class Survey(NamedTuple):
    """What the tables to choose from say: those that stand out, the groups they count, the noise on a contrast."""

    tables: Mapping[Pair, Floats]
    groups: Sequence[Indices]
    sigma: float

    def factors(self, cuts: Sequence[Bins], links: tuple[Link, ...], drawn: Floats) -> dict[Pair, Floats]:
        """By how much drawn rows should count more for pairs that are not linked."""
        linked = set(pairs_of(links))
        unlinked = {pair: table for pair, table in self.tables.items() if pair not in linked}
        of_rows = [group[cut.index(column)] for group, cut, column in zip(self.groups, cuts, drawn.T, strict=True)]
        sizes = [int(group.max()) + 1 for group in self.groups]
        return factors_of(unlinked, of_rows, sizes, sorted(linked))


def _shares(
    counted: Sequence[Floats], cuts: Sequence[Bins], sigma: float, n_rows_public: int, rate: float
) -> tuple[float, list[Floats]]:
    """The number of rows, and every column's distribution over its bins, from the counts of bins and of blocks."""
    total, of_blocks = RowCount.of_partitions(counted, sigma, n_rows_public, rate).denominator, iter(counted[len(cuts) :])
    blocks = [np.empty(0) if blocks_of(cut) is None else next(of_blocks) for cut in cuts]
    return total, shares_of_columns(counted[: len(cuts)], blocks, cuts, sigma, total)


def _as_fine_as_noise_allows(terms: Terms, cuts: Sequence[Bins], bins: int) -> int:
    """Twice as many bins, and again, while an even share of the rows in each stands out of the noise on its count.

    Of very many columns half as many, and again, until it stands far out of it.
    """
    noise = math.sqrt(sum(1 + (blocks_of(cut) is not None) for cut in cuts)) / terms.scaled(SHARES[0]).mu_of_a_row
    fine = bins
    if len(cuts) > MOST_SURVEYED:
        far = terms.n_rows_public / (WIDE_BIN * math.sqrt(len(cuts)) / terms.mu_of_a_row)
        while fine > FEWEST_BINS and fine > min(far, MOST_ALL_BINS / len(cuts)):
            fine = max(FEWEST_BINS, fine // 2)
        return fine
    while 2 * fine <= min(FINER * bins, MOST_BINS) and fine * noise < terms.n_rows_public:
        fine *= 2
    return fine


def _groups_to_choose_from(terms: Terms, columns: int) -> int:
    """How many groups of a column tables to choose from have; none where no dependence could stand out of their noise.

    ``columns``: those with more than one bin; the others depend on nothing.
    """
    n_pairs = columns * (columns - 1) // 2
    if not n_pairs:
        return 0
    rows, many = terms.n_rows_public, math.sqrt(2 * math.log(max(2, n_pairs)))

    def noise(groups: int) -> float:
        return columns * (1 - 1 / groups) / (math.sqrt(2) * terms.mu_of_a_row)

    if rows / 4 < noise(2) * (1 + many):  # two equal groups that determine each other
        return 0
    possible = range(3, 1 + min(MOST_GROUPS_CHOOSING, 1 + MOST_CONTRASTS // columns))
    return max((k for k in possible if DEPENDENCE * rows / k >= 2 * math.sqrt(k - 1) * noise(k)), default=2)


def _coarse_sigma(coarse: Release) -> float:
    """Off the diagonal of a Gram sum."""
    return sigma_of(coarse) / math.sqrt(2)


def _chosen(
    terms: Terms, seen: Mapping[Pair, Floats], shares: Sequence[Floats], total: float, parents: int | None
) -> tuple[tuple[Link, ...], int]:
    """The links that are worth most after the price of their tables, and how many groups a column of those tables has."""
    most_parents = parents or (3 if len(shares) <= MOST_LINKED else 1)
    best, groups, worth = independent(len(shares)), 2, 0.0
    for number in range(1, most_parents + 1):
        n_tables = sum(min(number, column) for column in range(len(shares)))
        wide = _groups_of_tables(terms, n_tables, number)
        noise = math.sqrt(n_tables) * (1 - 1 / wide) / (terms.mu_of_a_row * total)
        squared = noise**2 + sampling_variance(terms.sampling_rate, wide**-2.0, total)
        links, gained = choose_structure(seen, shares, number, float(squared) * wide**2 * (wide - 1))
        if gained > worth:
            best, worth, groups = links, gained, _groups_of_tables(terms, len(pairs_of(links)), number)
    return best, groups


def _groups_of_tables(terms: Terms, n_tables: int, parents: int) -> int:
    """So many groups that the noise of a table costs little."""
    sigma = math.sqrt(n_tables) / terms.mu_of_a_row
    return min(MOST_GROUPS[parents], max(2, int(math.cbrt(TABLE_NATS * (terms.n_rows_public / sigma) ** 2))))


def _groups(cuts: Sequence[Bins], shares: Sequence[Floats], most: int) -> list[Indices]:
    """Groups of every column's bins."""
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
            f"private rows of {len(names)} columns are asked for, and at most {MOST_COLUMNS} can be drawn together; "
            "name the ones that matter with columns="
        )
    # In the schema's order, whatever order they were named in: one request has one name.
    schema = whole.without(*sorted(set(whole.names).difference(names)))
    singly = MOST_SINGLE_VALUES if len(names) <= MOST_SURVEYED else bins
    return schema, tuple(fine_bins(name, column, bins, singly) for name, column in schema.items())


# --- questions -------------------------------------------------------------------------------------------------------


def choosing_question(bins: Sequence[Bins], groups: Sequence[Indices]) -> GramSum:
    """The noisy Gram matrix of the contrasts of all columns' groups: every pair of columns, coarsely."""
    sizes = [int(group.max()) + 1 for group in groups]
    square = sum(1 - 1 / size for size in sizes)

    def all_contrasts(block: Block) -> Floats:
        return np.concatenate([_contrasts(block, cut, group) for cut, group in zip(bins, groups, strict=True)], axis=1)

    return GramSum(
        all_contrasts,
        size=sum(sizes) - len(sizes),
        l2_bound=square * HAIR,
        row_norm=math.sqrt(square) * HAIR,
        key=key_of("private-rows-choosing", VERSION, **_facts(bins, groups)),
    )


def tables_question(bins: Sequence[Bins], groups: Sequence[Indices], pairs: Sequence[Pair]) -> ProductSum:
    """The noisy contrasts of some pairs of columns, by groups of their bins.

    Its key names bins, groups and pairs: should a rebuilt recipe ever choose other ones, a stored table is never misread.
    """
    sizes = [int(group.max()) + 1 for group in groups]
    stars = stars_of(pairs)
    used = sorted({column for pair in pairs for column in pair})

    def products(block: Block) -> tuple[Floats, ...]:
        made = {j: _contrasts(block, bins[j], groups[j]) for j in used}
        sides = ((made[first], np.concatenate([made[j] for j in seconds], axis=1)) for first, seconds in stars)
        return tuple(side for both in sides for side in both)

    return ProductSum(
        products,
        lefts=tuple(sizes[first] - 1 for first, _ in stars),
        rights=tuple(sum(sizes[j] - 1 for j in seconds) for _, seconds in stars),
        left_bounds=tuple(HAIR * math.sqrt(1 - 1 / sizes[first]) for first, _ in stars),
        right_bounds=tuple(HAIR * math.sqrt(sum(1 - 1 / sizes[j] for j in seconds)) for _, seconds in stars),
        key=key_of("private-rows-tables", VERSION, pairs=[list(pair) for pair in pairs], **_facts(bins, groups)),
    )


def _contrasts(block: Block, bins: Bins, group: Indices) -> Floats:
    column, of_groups = block.column(bins.name), contrasts(int(group.max()) + 1)
    if bins.edges is None or bins.codes:
        return of_groups[group[bins.index(column)]]
    # Groups of numbers are numbered upwards: a few edges find them faster than all of them find the bin.
    return of_groups[np.searchsorted(np.array(bins.edges[1:-1])[np.diff(group) > 0], column, side="right")]


def _facts(bins: Sequence[Bins], groups: Sequence[Indices]) -> dict[str, JsonValue]:
    return {"bins": [cut.to_json() for cut in bins], "groups": [group.tolist() for group in groups]}


def tables_of(release: Release, groups: Sequence[Indices], pairs: Sequence[Pair]) -> dict[Pair, Floats]:
    """A released product sum, cut into one table of contrasts per pair."""
    widths = [int(group.max()) for group in groups]
    tables: dict[Pair, Floats] = {}
    for block, (first, seconds) in enumerate(stars_of(pairs)):
        ends = np.cumsum([widths[j] for j in seconds])
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
