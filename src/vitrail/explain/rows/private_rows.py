"""Private rows: pay once, then sample rows without limit, for any explainer of any library.

Three questions, each planned from the answers before it (``questions`` has the bounds):

1. counts of every fine bin of every column (a fifth of mu squared),
2. coarse tables of all pairs of columns, only to choose which belong together (a fifth),
3. finer tables of the chosen pairs (three fifths).

The ledger is charged for each; their costs add up to at most the price asked. Everything else is post-processing: the model
of the joint distribution (``structure``, ``consistency``, ``network``) and every row sampled from it. Budget shares, numbers
of groups and of parents are fixed here, from public numbers. They were chosen on Adult, where the error of
local explanations hardly moved when shares or group sizes were halved or doubled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import Cost, epsilon_of, rounded_down, rounded_up
from ...errors import BudgetExceeded, InvalidInput
from ...guarantee import question_mu
from ...results.marginals import nearest_shares
from ...results.private_rows import PrivateRows
from ...schema import Schema
from ...schema.bins import Bins
from ...solve.rows.consistency import agreed_shares, shrunken_table, total_of
from ...solve.rows.cuts import Floats, Indices, fine_bins, groups_of
from ...solve.rows.structure import Link, choose_structure, complete_structure, pairs_of
from ..promises import basis_of, guarantee_of
from .questions import counts_question, tables_of, tables_question

if TYPE_CHECKING:
    from ...vault import PrivateData, Question, Release

SHARES = (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5))
"""Of mu squared: counts, choosing, tables."""
SHARES_UNCHOSEN = (Fraction(1, 4), Fraction(3, 4))
"""Where columns are so few that every pair is taken."""
CELL_OVER_NOISE = 3.0
"""An average cell of a table holds this many standard deviations of noise, or groups are merged."""
MOST_GROUPS_CHOOSING = 8
MOST_GROUPS = {1: 60, 2: 40, 3: 20}
"""By number of parents: a clique's joint distribution then has at most 160 000 cells."""
THREE_PARENTS_FROM = 5_000.0
"""Value of n_rows_public * mu from which a column may hang on three others: with much noise in the tables two do as well,
with exact tables three are better.
"""
MOST_COLUMNS = 100
MOST_BINS = 1_000

__all__ = ["PrivateRows", "private_rows"]


def private_rows(
    data: PrivateData,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    columns: Sequence[str] | None = None,
    bins: int = 100,
    parents: int | None = None,
) -> PrivateRows:
    """A private model of how the columns hang together, from which rows are sampled without limit.

    Parameters
    ----------
    data : PrivateData
        The rows. The target is a column like any other.
    epsilon, mu : float
        The price of all of it, in one of the two currencies.
    columns : list of str, optional
        Which columns; all of them if not given. Explaining a model needs every column that the model reads.
    bins : int
        Into how many intervals a numeric column is cut; whole numbers with at most 100 values get a bin each.
    parents : int, optional
        On how many others a column may hang: 1 (a tree), 2 or 3. Chosen from public numbers if not given.

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
    schema, cuts = _public_design(data.schema, columns, bins, parents)
    whole = question_mu(epsilon, mu, data.delta)
    count = len(cuts)
    parents = parents or (3 if data.n_rows_public * whole >= THREE_PARENTS_FROM else 2)
    choosing = count > parents + 1
    prices = _parts(whole, (Fraction(1),) if count == 1 else SHARES if choosing else SHARES_UNCHOSEN)
    first = counts_question(cuts)
    _check_affordable(data, first, prices)

    counted = data.ask(first, mu=prices[0])
    assert counted.sigma is not None
    counts = np.split(counted.value, np.cumsum([len(one) for one in cuts])[:-1])
    total = total_of(counts, counted.sigma, data.n_rows_public)
    shares = [nearest_shares(column / total) for column in counts]
    releases = [counted]

    if choosing:
        links = _choose(data, cuts, counts, shares, total, parents, prices[1], releases)
    else:
        links = complete_structure(count)
    pairs = pairs_of(links)
    groups = [np.zeros(len(one), dtype=np.intp) for one in cuts]
    tables: dict[tuple[int, int], Floats] = {}
    tables_sigma = 0.0
    if pairs:
        most = min(_groups_for(data.n_rows_public, len(pairs), prices[-1]), MOST_GROUPS[parents])
        groups = _grouped(cuts, shares, most)
        release = data.ask(tables_question(cuts, groups, pairs, "of linked columns"), mu=prices[-1])
        assert release.sigma is not None
        tables, tables_sigma = tables_of(release, groups, pairs), release.sigma
        releases.append(release)
    cost = sum((release.cost for release in releases), Cost())
    return PrivateRows(
        dataset=data.name,
        schema=schema,
        target=data.target if data.target in schema else None,
        bins=cuts,
        groups=tuple(groups),
        links=links,
        counts=tuple(counts),
        counts_sigma=counted.sigma,
        noisy_tables=MappingProxyType(tables),
        tables_sigma=tables_sigma,
        n_rows_public=data.n_rows_public,
        cost=cost,
        guarantee=guarantee_of(data, basis_of(releases)),
    )


def _choose(
    data: PrivateData,
    cuts: tuple[Bins, ...],
    counts: Sequence[Floats],
    shares: Sequence[Floats],
    total: float,
    parents: int,
    mu: float,
    releases: list[Release],
) -> tuple[Link, ...]:
    """Pay for coarse tables of all pairs, and choose the structure from them."""
    pairs = list(combinations(range(len(cuts)), 2))
    groups = _grouped(cuts, shares, min(_groups_for(data.n_rows_public, len(pairs), mu), MOST_GROUPS_CHOOSING))
    release = data.ask(tables_question(cuts, groups, pairs, "of all pairs, to choose from"), mu=mu)
    assert release.sigma is not None
    sigma = release.sigma
    tables = tables_of(release, groups, pairs)
    agreed = agreed_shares(counts, releases[0].sigma or 0.0, tables, sigma, groups, total)
    joints = {(i, j): shrunken_table(table, sigma, agreed[i], agreed[j], total) for (i, j), table in tables.items()}
    releases.append(release)
    return choose_structure(joints, len(cuts), parents)


def _grouped(cuts: Sequence[Bins], shares: Sequence[Floats], most: int) -> list[Indices]:
    return [groups_of(share, ordered=one.edges is not None, most=most) for one, share in zip(cuts, shares, strict=True)]


def _groups_for(n_rows_public: int, tables: int, mu: float) -> int:
    """How many groups a column may have, so that an average cell stands out of the noise."""
    sigma = math.sqrt(tables) / mu
    return max(2, int(math.sqrt(n_rows_public / (CELL_OVER_NOISE * sigma))))


def _parts(mu: float, shares: Sequence[Fraction]) -> list[float]:
    """The price of each question: whole units of the ledger that add up to no more than the price of all."""
    units = math.floor(Fraction(mu) ** 2 * 10**12)
    parts = [math.floor(share * units) for share in shares]
    if min(parts) < 1:
        raise InvalidInput(
            f"the price of these private rows is mu = {rounded_up(mu)}, too small to buy anything; ask for more"
        )
    return [math.sqrt(part / 10**12) * (1 - 2e-15) for part in parts]


def _check_affordable(data: PrivateData, first: Question, prices: Sequence[float]) -> None:
    """Refuse before the first question if the last could not be paid for.

    Not if the first was asked before: then the others were too, and all of them are replayed.
    """
    statement = data.budget
    needed = sum((Cost.of_mu(price) for price in prices), Cost())
    if statement.spent + needed <= statement.capacity:
        return
    cost = data.quote(first, mu=prices[0]).cost
    asked = {"dataset": data.name, **first.describe(), "label": first.label}
    charged = [entry for entry in statement.entries if entry.kind == "charged" and entry.cost == cost]
    if any(entry.body.get("question") == asked for entry in charged):
        return
    requested = epsilon_of(needed.mu, data.delta)
    raise BudgetExceeded(
        f"These private rows cost epsilon {rounded_up(requested)} (at delta {rounded_up(data.delta)}), but only "
        f"{rounded_down(statement.remaining_epsilon)} is left of account {statement.account!r}. Nothing was charged.",
        requested_epsilon=requested,
        remaining_epsilon=statement.remaining_epsilon,
    )


def _public_design(
    whole: Schema, columns: Sequence[str] | None, bins: int, parents: int | None
) -> tuple[Schema, tuple[Bins, ...]]:
    """The columns and their fine bins, or an error that names what is wrong with the request."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= MOST_BINS:
        raise InvalidInput(f"bins is {bins!r}; it must be a whole number from 1 to {MOST_BINS}")
    if parents is not None and (isinstance(parents, bool) or parents not in MOST_GROUPS):
        raise InvalidInput(f"parents is {parents!r}; a column may hang on 1, 2 or 3 others")
    if isinstance(columns, str):
        raise InvalidInput(f"columns is {columns!r}; give a list of names, such as [{columns!r}]")
    names = whole.names if columns is None else tuple(columns)
    if not names:
        raise InvalidInput("columns is empty; name at least one column, or leave it out for all of them")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"columns names {twice!r} twice; each column is sampled once")
    for name in names:
        whole.column_index(name)
    if len(names) > MOST_COLUMNS:
        raise InvalidInput(
            f"private rows of {len(names)} columns are asked for, and at most {MOST_COLUMNS} can be modelled together; "
            "name the ones that matter with columns="
        )
    # In the schema's order, whatever order they were named in: one request has one name.
    schema = whole.without(*(name for name in whole.names if name not in names))
    return schema, tuple(fine_bins(name, column, int(bins)) for name, column in schema.items())
