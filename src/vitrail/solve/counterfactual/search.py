"""The search for counterfactuals: public post-processing, many people at once, thousands of rows per call of the model.

1. *Candidates*: the rows of the wanted class nearest to the person, its prototype, points between (and, for differentiable
   models, minima of eq. 18: ``gradient``), settled onto the rules. Those that the model puts in the wanted class are valid.
2. *Fallback* for people without any: one column at a time towards the class, then random permitted rows. Then it is said
   that nothing was found.
3. *Less change*: numeric changes are taken back as far as the model agrees (a binary search on the amount); then single
   columns are undone, the one that helps most first, or, where columns are many, the smallest changes together (a binary
   search on their number).
4. *Several answers*: the best, then those that are good and far from what was chosen.

Every step keeps a row valid or leaves it as it was, so that the last word on validity is the model's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...explain.counterfactual.classes import Classes
from ...schema import FloatArray, Schema
from .pool import Pool, squares
from .rules import Rules

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]

NEAREST = 24
"""Rows of the pool that each person starts from."""
REFINED = 40
"""Valid candidates of each person that are made sparse, at most. Different answers need many of them."""
FEW_COLUMNS = 64
"""Up to so many varied columns single ones are tried one by one."""
HALVINGS = 6
TOWARDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Parts of the way from the person to the prototype of the class that are tried."""
MOVES = 8
"""Columns that the fallback changes at most."""
STEPS = 9
"""Values of a number that the fallback tries."""
WORTH = 0.05
"""By how much a change must lower the cost of an answer to stay, if the model does not need it."""
RANDOM = 2_000
"""Random rows per person in the last resort."""

ALIKE = 0.05
"""Distance of encoded rows below which two answers say the same to a person."""
PLAUSIBILITY_WEIGHT = 1.3
"""Of plausibility against distance, unless told; chosen on people that the documented figures are not about."""


@dataclass(frozen=True, eq=False)
class Search:
    """One search: the model, the rules, and the pool of each wanted class."""

    schema: Schema
    classes: Classes
    rules: Rules
    pools: dict[int, Pool]
    plausibility_weight: float
    seed: int

    def valid(self, rows: FloatArray, target: Indices) -> Bools:
        """What the model says."""
        return np.asarray(self.classes.index(self.classes.outputs(self.schema, rows)) == target)

    def features(self, rows: FloatArray) -> Floats:
        """Rows in the encoding."""
        return self.schema.features(rows)[0]

    def implausibility(self, rows: FloatArray, target: Indices) -> Floats:
        """Mean distance to the nearest rows of the wanted class's pool."""
        found, features = np.zeros(len(rows)), self.features(rows)
        for place, pool in self.pools.items():
            mine = target == place
            if mine.any():
                found[mine] = pool.distance(features[mine])
        return found

    def cost(self, queries: FloatArray, rows: FloatArray, target: Indices) -> Floats:
        """What an answer is judged by: its distance to the person, and to the class."""
        distance = np.linalg.norm(self.features(queries) - self.features(rows), axis=1)
        if self.plausibility_weight == 0:
            return np.asarray(distance)
        return np.asarray(distance + self.plausibility_weight * self.implausibility(rows, target))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows under consideration, each for one query."""

    owner: Indices
    rows: FloatArray

    def take(self, which: Bools | Indices) -> Candidates:
        """Some of them."""
        return Candidates(self.owner[which], self.rows[which])

    def __add__(self, other: Candidates) -> Candidates:
        return Candidates(np.concatenate([self.owner, other.owner]), np.concatenate([self.rows, other.rows]))


def find(search: Search, queries: FloatArray, target: Indices, total: int, extra: FloatArray | None) -> list[FloatArray]:
    """For each query up to ``total`` valid rows, the best first.

    Parameters
    ----------
    queries : array (queries, columns)
        Raw rows that are not in their wanted class yet.
    target : array of int (queries,)
        The wanted classes.
    extra : array (queries, columns), optional
        One more candidate for each, such as a minimum of eq. 18.
    """
    started = _starts(search, queries, target, extra)
    settled = Candidates(started.owner, search.rules.settle(queries[started.owner], started.rows))
    settled = settled.take(np.asarray(_changed(queries, settled).any(axis=1)))
    good = settled.take(search.valid(settled.rows, target[settled.owner]))
    without = np.setdiff1d(np.arange(len(queries)), good.owner)
    if len(without):
        good = good + fallback(search, queries, target, without)
    good = _best(search, queries, target, good, REFINED)
    refined = refine(search, queries, target, good)
    return [_chosen(search, queries, target, refined, good, place, total) for place in range(len(queries))]


def _changed(queries: FloatArray, candidates: Candidates) -> Bools:
    return np.asarray(candidates.rows != queries[candidates.owner])


# --- candidates ----------------------------------------------------------------------------------------------------------


def _starts(search: Search, queries: FloatArray, target: Indices, extra: FloatArray | None) -> Candidates:
    owners: list[Indices] = []
    rows: list[FloatArray] = []
    features = search.features(queries)
    kept = np.concatenate(
        [np.full(part.stop - part.start, vary) for part, vary in zip(_slices(search.schema), search.rules.vary, strict=True)]
    )
    for place, pool in search.pools.items():
        mine = np.flatnonzero(target == place)
        if not len(mine):
            continue
        if len(pool.raw):
            count = min(NEAREST, len(pool.raw))
            by_distance = squares(features[mine] * kept, pool.features * kept)
            nearest = np.argpartition(by_distance, count - 1, axis=1)[:, :count]
            owners.append(np.repeat(mine, count))
            rows.append(pool.raw[nearest.ravel()])
        for step in TOWARDS:  # towards the prototype, and past it
            moved = features[mine] + step * (pool.prototype - features[mine])
            owners.append(mine)
            rows.append(search.schema.unfeature(np.clip(moved, 0.0, 1.0)))
    if extra is not None:
        owners.append(np.arange(len(queries)))
        rows.append(extra)
    return Candidates(np.concatenate(owners).astype(np.intp), np.concatenate(rows))


def _slices(schema: Schema) -> list[slice]:
    return list(schema.feature_slices.values())


def fallback(search: Search, queries: FloatArray, target: Indices, without: Indices) -> Candidates:
    """One column at a time to where the model is surest of the wanted class; then random permitted rows."""
    found = Candidates(np.empty(0, dtype=np.intp), np.empty((0, queries.shape[1])))
    current, active = queries[without].copy(), without.copy()
    for _ in range(min(MOVES, int(search.rules.vary.sum()))):
        if not len(active):
            return found
        current, margin, valid = _best_moves(search, queries[active], current, target[active])
        found = found + Candidates(active[valid], current[valid])
        active, current = active[~valid & np.isfinite(margin)], current[~valid & np.isfinite(margin)]
    left = np.setdiff1d(without, found.owner)
    generator = np.random.default_rng([search.seed, 1])
    for place in left:
        drawn = _random_rows(search.rules, queries[place], generator)
        pool = search.pools[int(target[place])]
        if len(pool.raw):  # half of them with some columns of the class
            taken = pool.raw[generator.integers(len(pool.raw), size=RANDOM // 2)]
            mixed = generator.random(taken.shape) < generator.random((len(taken), 1))
            drawn[: len(taken)] = np.where(mixed, taken, queries[place])
        settled = search.rules.settle(np.repeat(queries[place : place + 1], RANDOM, axis=0), drawn)
        valid = search.valid(settled, np.full(RANDOM, target[place]))
        found = found + Candidates(np.full(int(valid.sum()), place, dtype=np.intp), settled[valid])
    return found


def _random_rows(rules: Rules, query: FloatArray, generator: np.random.Generator) -> FloatArray:
    drawn = rules.low + generator.random((RANDOM, len(query))) * (rules.high - rules.low)
    for column, permitted in enumerate(rules.levels):
        if permitted is not None:
            drawn[:, column] = generator.choice(np.flatnonzero(permitted), size=RANDOM)
    return np.where(generator.random(drawn.shape) < generator.random((RANDOM, 1)), drawn, query)


def _best_moves(
    search: Search, queries: FloatArray, current: FloatArray, target: Indices
) -> tuple[FloatArray, Floats, Bools]:
    """The best change of one column for each row: the nearest valid one, else the one with the largest margin."""
    best = current.copy()
    margins = np.full(len(current), -np.inf)
    nearest = np.full(len(current), np.inf)
    columns = np.flatnonzero(search.rules.vary)
    if len(columns) > 4 * FEW_COLUMNS:  # too many to try one by one: those that the class differs in most
        columns = columns[:: max(1, len(columns) // (4 * FEW_COLUMNS))]
    for column in columns:
        values = search.rules.choices(int(column), STEPS)
        tried = np.repeat(current, len(values), axis=0)
        tried[:, column] = np.tile(values, len(current))
        tried = search.rules.settle(np.repeat(queries, len(values), axis=0), tried)
        wanted = np.repeat(target, len(values))
        outputs = search.classes.outputs(search.schema, tried)
        margin = search.classes.margin(outputs, wanted)
        valid = search.classes.index(outputs) == wanted
        away = np.linalg.norm(search.features(tried) - search.features(np.repeat(queries, len(values), axis=0)), axis=1)
        by_row = (len(current), len(values))
        away = np.where(valid, away, np.inf).reshape(by_row)
        margin = margin.reshape(by_row)
        rows = np.arange(len(current))
        closest, surest = away.argmin(axis=1), margin.argmax(axis=1)
        by_distance = away[rows, closest] < nearest
        by_margin = ~np.isfinite(nearest) & ~by_distance & (margin[rows, surest] > margins)
        pick = np.where(by_distance, closest, surest)
        better = by_distance | by_margin
        best[better] = tried.reshape(*by_row, -1)[rows, pick][better]
        margins[better] = margin[rows, pick][better]
        nearest[by_distance] = away[rows, closest][by_distance]
    return best, margins, np.isfinite(nearest)


# --- fewer and smaller changes -------------------------------------------------------------------------------------------


def refine(search: Search, queries: FloatArray, target: Indices, good: Candidates) -> Candidates:
    """The same candidates with fewer and smaller changes, all of them still valid."""
    if not len(good.owner):
        return good
    own, wanted = queries[good.owner], target[good.owner]
    rows = good.rows
    many = int(search.rules.vary.sum()) > FEW_COLUMNS
    rows = _halve_back(search, own, rows, wanted, np.flatnonzero(_numbers(search)))
    if many:
        rows = _undo_smallest(search, own, rows, wanted)
    else:
        rows = _undo_one_by_one(search, own, rows, wanted)
        before = rows
        for column in np.flatnonzero(_numbers(search)):
            rows = _halve_back(search, own, rows, wanted, np.array([column]))
        smaller = search.cost(own, rows, wanted) <= search.cost(own, before, wanted)
        rows = _undo_one_by_one(search, own, np.where(smaller[:, None], rows, before), wanted)
    return Candidates(good.owner, rows)


def _numbers(search: Search) -> Bools:
    return np.array([levels is None for levels in search.rules.levels]) & search.rules.vary


def _undo_smallest(search: Search, own: FloatArray, rows: FloatArray, wanted: Indices) -> FloatArray:
    """Undo as many of the smallest changes as the model lets go, by a binary search on their number."""
    size = np.abs(rows - own) / np.maximum(search.rules.high - search.rules.low, 1e-300)
    rank = np.argsort(np.argsort(size, axis=1), axis=1)
    low, high = np.zeros(len(rows)), np.full(len(rows), float(rows.shape[1]))
    best = rows.copy()
    for _ in range(int(np.ceil(np.log2(rows.shape[1] + 1)))):
        middle = np.floor((low + high + 1) / 2)
        tried = np.where(rank < middle[:, None], own, rows)
        valid = search.valid(tried, wanted)
        best[valid] = tried[valid]
        low, high = np.where(valid, middle, low), np.where(valid, high, middle - 1)
    return best


def _halve_back(search: Search, own: FloatArray, rows: FloatArray, wanted: Indices, columns: Indices) -> FloatArray:
    """Take numeric changes back as far as the model lets go, by a binary search on the amount."""
    best = rows.copy()
    active = np.flatnonzero((rows[:, columns] != own[:, columns]).any(axis=1))
    low, high = np.zeros(len(active)), np.ones(len(active))
    for _ in range(HALVINGS if len(active) else 0):
        middle = (low + high) / 2
        tried = rows[active]
        moved = own[active][:, columns] + middle[:, None] * (tried[:, columns] - own[active][:, columns])
        tried[:, columns] = moved
        tried = search.rules.settle(own[active], tried)
        valid = search.valid(tried, wanted[active])
        better = valid & (np.abs(tried - own[active]) <= np.abs(best[active] - own[active])).all(axis=1)
        best[active[better]] = tried[better]
        low, high = np.where(valid, low, middle), np.where(valid, middle, high)
    return best


def _undo_one_by_one(search: Search, own: FloatArray, rows: FloatArray, wanted: Indices) -> FloatArray:
    """Undo single columns, the one that helps most first, as long as the model agrees and the answer gets no worse by it."""
    best = rows.copy()
    costs = search.cost(own, best, wanted)
    active = np.arange(len(rows))
    while len(active):
        changed = best[active] != own[active]
        which, column = np.nonzero(changed)
        if not len(which):
            break
        tried = best[active][which]
        tried[np.arange(len(which)), column] = own[active][which, column]
        valid = search.valid(tried, wanted[active][which])
        tried, which = tried[valid], which[valid]
        place = active[which]
        cost = search.cost(own[place], tried, wanted[place])
        order = np.lexsort((cost, which))
        first = order[np.unique(which[order], return_index=True)[1]]
        first = first[cost[first] < costs[place[first]] + WORTH]
        best[place[first]] = tried[first]
        costs[place[first]] = cost[first]
        active = place[first]
    return best


# --- choosing ------------------------------------------------------------------------------------------------------------


def _best(search: Search, queries: FloatArray, target: Indices, good: Candidates, most: int) -> Candidates:
    """The candidates of least cost, at most so many for each query."""
    cost = search.cost(queries[good.owner], good.rows, target[good.owner])
    order = np.lexsort((cost, good.owner))
    owner = good.owner[order]
    starts = np.searchsorted(owner, owner, side="left")
    return good.take(order[np.arange(len(order)) - starts < most])


def _chosen(
    search: Search,
    queries: FloatArray,
    target: Indices,
    good: Candidates,
    spare: Candidates,
    place: int,
    total: int,
) -> FloatArray:
    """The best answer, then each time the one whose distance from those chosen exceeds its cost most; all different.

    Where refining made too many of them nearly one and the same, candidates stand in as they were before; answers that are
    alike come last.
    """
    rows = np.unique(good.rows[good.owner == place], axis=0)
    if _unlike(search.features(rows), total) < total:
        rows = np.unique(np.concatenate([rows, spare.rows[spare.owner == place]]), axis=0)
    rows = rows[(rows != queries[place]).any(axis=1)]
    if not len(rows):
        return np.asarray(rows)
    own = np.repeat(queries[place : place + 1], len(rows), axis=0)
    cost = search.cost(own, rows, np.full(len(rows), target[place]))
    features, picked = search.features(rows), [int(cost.argmin())]
    while len(picked) < min(total, len(rows)):
        apart = np.sqrt(squares(features, features[picked]).min(axis=1))
        worth = apart - cost - np.where(apart < ALIKE, 1e6, 0.0)
        worth[picked] = -np.inf
        picked.append(int(worth.argmax()))
    return np.asarray(rows[picked])


def _unlike(features: FloatArray, enough: int) -> int:
    """How many rows there are that are not alike, counted up to ``enough``."""
    kept: list[int] = []
    for place in range(len(features)):
        if len(kept) == enough:
            break
        if not kept or float(squares(features[place : place + 1], features[kept]).min()) >= ALIKE**2:
            kept.append(place)
    return len(kept)
