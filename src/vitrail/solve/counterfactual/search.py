"""The search for counterfactuals: public post-processing, many people at once, thousands of rows per call of the model.

1. *Candidates*: the rows of the wanted class nearest to the person, its prototype, points between (and, for differentiable
   models, minima of eq. 18: ``fitted``), settled onto the rules. Those that the model puts in the wanted class are
   valid.
2. *Fallback* for people without any: one column at a time towards the class, then random permitted rows.
3. *Less change*: numeric changes are taken back as far as the model agrees (a binary search on the amount); then single
   columns are undone, the one that helps most first, or, where columns are many, the smallest changes together (a binary
   search on their number).
4. *Several answers*: the best, then those that are good and far from what was chosen.

Every step keeps a row valid or leaves it as it was, so that the last word on validity is the model's own.

*The pool of a class* are rows that look like it: private rows and draws from the picture, as far as the public model puts
them there. Answers are sought near these rows, and the mean distance to the nearest twenty of them is what ``plausibility``
means. Twenty, because a search that likes to be near one private row finds the odd one that noise put where nobody is: on
Adult (forest, epsilon 0.75) answers near one row were 1.6 from the nearest held-out real row of the class, answers near
twenty 0.9 to 1.0, both some 1.1 from the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..._types import Bools, Floats, Indices
from ...results.class_picture import ClassPicture
from ...schema import Schema
from .classes import Classes, Rules

# Rows drawn, and shown to the model until enough are of the class.
DRAWN = 30_000
BATCH = 10_000
KEPT = 4_000
# How many rows of the class an answer should be near to.
NEIGHBOURS = 20
# With fewer rows of the class, draws from the class's own columns are added.
ENOUGH = 200
DISTANCE_BATCH = 2_048
# Rows of the pool that each person starts from.
NEAREST = 24
# Valid candidates of each person that are made sparse, at most. Different answers need many of them.
REFINED = 40
# Up to so many varied columns single ones are tried one by one.
FEW_COLUMNS = 64
HALVINGS = 6
# Fractions of the way from the person to the prototype of the class that are tried.
TOWARDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
# Columns that the fallback changes at most.
MOVES = 8
# Values of a number that the fallback tries.
GRID_VALUES = 9
# By how much a change must lower the cost of an answer to stay, if the model does not need it.
WORTH = 0.05
# Random rows per person in the last resort.
RANDOM = 2_000
# Distance of encoded rows below which two answers say the same to a person.
ALIKE = 0.05
# Of plausibility against distance, unless told; chosen on people that the documented figures are not about.
PLAUSIBILITY_WEIGHT = 1.3


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """Squared distances, (rows, others)."""
    squared = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * rows @ others.T
    return np.asarray(np.maximum(squared, 0.0))


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one class by the model, raw and in the encoding, and its prototype, whatever the model says of that."""

    raw: Floats
    features: Floats
    prototype: Floats

    def distance(self, features: Floats) -> Floats:
        """Mean distance of each row to its nearest neighbours in the pool; to the prototype if the pool is empty."""
        if not len(self.raw):
            return np.asarray(np.linalg.norm(features - self.prototype, axis=1))
        count = min(NEIGHBOURS, len(self.raw))
        means = [np.empty(0)]
        for start in range(0, len(features), DISTANCE_BATCH):
            squared = squared_distances(features[start : start + DISTANCE_BATCH], self.features)
            means.append(np.sqrt(np.partition(squared, count - 1, axis=1)[:, :count]).mean(axis=1))
        return np.concatenate(means)


def pool_of(picture: ClassPicture, classes: Classes, number: int, seed: int) -> Pool:
    """The pool of a class, by its number: the same for the same picture, model and seed."""
    schema, generator = picture.schema, np.random.default_rng([seed, number])

    def of_class(raw: Floats) -> Floats:
        return np.asarray(raw[classes.index(classes.outputs(schema, raw)) == number])

    prototype = picture.prototype_features[number]
    raw = of_class(schema.unfeature(prototype[None, :]))
    if picture.rows is not None:
        drawn = picture.rows.raw(DRAWN, int(generator.integers(2**31)))
        for start in range(0, DRAWN, BATCH):  # no more rows are shown to the model than it takes
            if len(raw) < KEPT:
                raw = np.concatenate([raw, of_class(drawn[start : start + BATCH])])
    if len(raw) < ENOUGH:
        raw = np.concatenate([raw, of_class(picture.draw(number, DRAWN // 3, generator))])
    return Pool(raw[:KEPT], schema.features(raw[:KEPT])[0], prototype)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Raw rows under consideration, and the number of the point that each is for."""

    point: Indices
    rows: Floats

    def take(self, which: Bools | Indices) -> Candidates:
        """A copy of some of them."""
        return Candidates(self.point[which], self.rows[which])

    def joined(self, *others: Candidates) -> Candidates:
        """These and others."""
        every = (self, *others)
        return Candidates(np.concatenate([some.point for some in every]), np.concatenate([some.rows for some in every]))


@dataclass(frozen=True, eq=False)
class Search:
    """What every step of a search looks at: the columns, the model and what may change.

    ``points`` are the people, raw (points, columns), ``target`` (points,) the numbers of the classes that they shall get
    to, ``pools`` the rows that look like each of those; ``plausibility_weight`` counts against distance.
    """

    schema: Schema
    classes: Classes
    rules: Rules
    points: Floats
    target: Indices
    pools: Mapping[int, Pool]
    plausibility_weight: float
    seed: int

    def features(self, rows: Floats) -> Floats:
        """Rows in the encoding."""
        return self.schema.features(rows)[0]

    def settle(self, tried: Candidates) -> Candidates:
        """The nearest rows that keep the rules."""
        return Candidates(tried.point, self.rules.settle(self.points[tried.point], tried.rows))

    def valid(self, tried: Candidates) -> Bools:
        """Mask of the rows that the model puts in the wanted class."""
        outputs = self.classes.outputs(self.schema, tried.rows)
        return np.asarray(self.classes.index(outputs) == self.target[tried.point])

    def distance(self, tried: Candidates) -> Floats:
        """Distance to the person in the encoding."""
        away = self.features(self.points[tried.point]) - self.features(tried.rows)
        return np.asarray(np.linalg.norm(away, axis=1))

    def implausibility(self, tried: Candidates) -> Floats:
        """Mean distance to the nearest rows of the wanted class's pool."""
        away, features, target = np.zeros(len(tried.rows)), self.features(tried.rows), self.target[tried.point]
        for number, pool in self.pools.items():
            if (own := target == number).any():
                away[own] = pool.distance(features[own])
        return away

    def cost(self, tried: Candidates) -> Floats:
        """What answers are compared by: distance to the person plus weighted distance to the class."""
        weight = self.plausibility_weight
        return self.distance(tried) + (weight * self.implausibility(tried) if weight else 0.0)


def find(search: Search, points: Indices, total: int, extra: Floats | None) -> list[Floats]:
    """For each of these points up to ``total`` valid rows, the best first.

    Parameters
    ----------
    points : array of int
        Numbers of points that are not in their wanted class yet.
    extra : array (points, columns), optional
        One more candidate for each, such as a minimum of eq. 18.
    """
    settled = search.settle(_starts(search, points, extra))
    settled = settled.take((settled.rows != search.points[settled.point]).any(axis=1))
    valid = settled.take(search.valid(settled))
    if len(without := np.setdiff1d(points, valid.point)):
        valid = valid.joined(_fallback(search, without))
    valid = _cheapest(search, valid, REFINED)
    refined = _refine(search, valid)
    return [_chosen(search, refined, valid, int(point), total) for point in points]


# --- candidates ----------------------------------------------------------------------------------------------------------


def _starts(search: Search, points: Indices, extra: Floats | None) -> Candidates:
    features = search.features(search.points[points])
    widths = [features_of.stop - features_of.start for features_of in search.schema.feature_slices.values()]
    varied = np.repeat(search.rules.vary, widths)
    starts: list[Candidates] = []
    for number, pool in search.pools.items():
        own = search.target[points] == number
        own_points, here = points[own], features[own]
        if len(own_points) and len(pool.raw):
            count = min(NEAREST, len(pool.raw))
            by_distance = squared_distances(here * varied, pool.features * varied)
            nearest = np.argpartition(by_distance, count - 1, axis=1)[:, :count]
            starts.append(Candidates(np.repeat(own_points, count), pool.raw[nearest.ravel()]))
        for fraction in TOWARDS if len(own_points) else ():  # towards the prototype, and past it
            moved = np.clip(here + fraction * (pool.prototype - here), 0.0, 1.0)
            starts.append(Candidates(own_points, search.schema.unfeature(moved)))
    if extra is not None:
        starts.append(Candidates(points, extra))
    return starts[0].joined(*starts[1:])


def _fallback(search: Search, points: Indices) -> Candidates:
    """One column at a time to where the model is surest of the wanted class; then random permitted rows."""
    valid = Candidates(np.empty(0, dtype=np.intp), np.empty((0, search.points.shape[1])))
    current = Candidates(points, search.points[points])
    for _ in range(min(MOVES, int(search.rules.vary.sum()))):
        if not len(current.point):
            return valid
        current, margin, is_valid = _best_moves(search, current)
        valid = valid.joined(current.take(is_valid))
        current = current.take(~is_valid & np.isfinite(margin))
    generator = np.random.default_rng([search.seed, 1])
    for point in np.setdiff1d(points, valid.point):
        own, pool = search.points[point], search.pools[int(search.target[point])]
        drawn = _random_rows(search.rules, own, generator)
        if len(pool.raw):  # half of them with some columns of the class
            taken = pool.raw[generator.integers(len(pool.raw), size=RANDOM // 2)]
            mixed = generator.random(taken.shape) < generator.random((len(taken), 1))
            drawn[: len(taken)] = np.where(mixed, taken, own)
        settled = search.settle(Candidates(np.full(RANDOM, point), drawn))
        valid = valid.joined(settled.take(search.valid(settled)))
    return valid


def _random_rows(rules: Rules, own: Floats, generator: np.random.Generator) -> Floats:
    drawn = rules.low + generator.random((RANDOM, len(own))) * (rules.high - rules.low)
    for column, permitted in enumerate(rules.levels):
        if permitted is not None:
            drawn[:, column] = generator.choice(np.flatnonzero(permitted), size=RANDOM)
    return np.where(generator.random(drawn.shape) < generator.random((RANDOM, 1)), drawn, own)


def _best_moves(search: Search, current: Candidates) -> tuple[Candidates, Floats, Bools]:
    """The best change of one column for each row: the nearest valid one, else the one with the largest margin."""
    best, lines = current.rows.copy(), np.arange(len(current.rows))
    margins, nearest = np.full(len(best), -np.inf), np.full(len(best), np.inf)
    columns = np.flatnonzero(search.rules.vary)
    if len(columns) > 4 * FEW_COLUMNS:  # too many to try all of them
        columns = columns[:: max(1, len(columns) // (4 * FEW_COLUMNS))]
    for column in columns:
        values = search.rules.choices(int(column), GRID_VALUES)
        tried, shape = current.take(np.repeat(lines, len(values))), (len(best), len(values))
        tried.rows[:, column] = np.tile(values, len(best))
        tried = search.settle(tried)
        outputs, wanted = search.classes.outputs(search.schema, tried.rows), search.target[tried.point]
        margin = search.classes.margin(outputs, wanted).reshape(shape)
        valid = search.classes.index(outputs) == wanted
        away = np.where(valid, search.distance(tried), np.inf).reshape(shape)
        closest, surest = away.argmin(axis=1), margin.argmax(axis=1)
        by_distance = away[lines, closest] < nearest
        by_margin = ~np.isfinite(nearest) & ~by_distance & (margin[lines, surest] > margins)
        pick, better = np.where(by_distance, closest, surest), by_distance | by_margin
        best[better] = tried.rows.reshape(*shape, -1)[lines, pick][better]
        margins[better] = margin[lines, pick][better]
        nearest[by_distance] = away[lines, closest][by_distance]
    return Candidates(current.point, best), margins, np.isfinite(nearest)


# --- fewer and smaller changes -------------------------------------------------------------------------------------------


def _refine(search: Search, valid: Candidates) -> Candidates:
    """The same candidates with fewer and smaller changes, all of them still valid."""
    if not len(valid.rows):
        return valid
    rules = search.rules
    numeric = np.flatnonzero(rules.vary & [levels is None for levels in rules.levels])
    back = _halve_back(search, valid, numeric)
    if int(rules.vary.sum()) > FEW_COLUMNS:
        return _undo_smallest(search, back)
    undone = _undo_one_by_one(search, back)
    smaller = undone
    for column in numeric:
        smaller = _halve_back(search, smaller, np.array([column]))
    better = search.cost(smaller) <= search.cost(undone)
    best = np.where(better[:, None], smaller.rows, undone.rows)
    return _undo_one_by_one(search, Candidates(valid.point, best))


def _undo_smallest(search: Search, start: Candidates) -> Candidates:
    """Undo as many of the smallest changes as the model lets go, by a binary search on their number."""
    own, rows, n_columns = search.points[start.point], start.rows, start.rows.shape[1]
    size = np.abs(rows - own) / np.maximum(search.rules.high - search.rules.low, 1e-300)
    rank = np.argsort(np.argsort(size, axis=1), axis=1)
    low, high = np.zeros(len(rows)), np.full(len(rows), float(n_columns))
    best = rows.copy()
    for _ in range(int(np.ceil(np.log2(n_columns + 1)))):
        middle = np.floor((low + high + 1) / 2)
        tried = Candidates(start.point, np.where(rank < middle[:, None], own, rows))
        valid = search.valid(tried)
        best[valid] = tried.rows[valid]
        low, high = np.where(valid, middle, low), np.where(valid, high, middle - 1)
    return Candidates(start.point, best)


def _halve_back(search: Search, start: Candidates, columns: Indices) -> Candidates:
    """Take numeric changes back as far as the model lets go, by a binary search on the amount."""
    best, own = start.rows.copy(), search.points[start.point]
    moved = np.flatnonzero((best[:, columns] != own[:, columns]).any(axis=1))
    own = own[moved]
    low, high = np.zeros(len(moved)), np.ones(len(moved))
    for _ in range(HALVINGS if len(moved) else 0):
        middle, tried = (low + high) / 2, start.take(moved)
        tried.rows[:, columns] = own[:, columns] + middle[:, None] * (tried.rows[:, columns] - own[:, columns])
        tried = search.settle(tried)
        valid = search.valid(tried)
        better = valid & (np.abs(tried.rows - own) <= np.abs(best[moved] - own)).all(axis=1)
        best[moved[better]] = tried.rows[better]
        low, high = np.where(valid, low, middle), np.where(valid, middle, high)
    return Candidates(start.point, best)


def _undo_one_by_one(search: Search, start: Candidates) -> Candidates:
    """Undo single columns, the one that helps most first, as long as the model agrees and the answer gets no worse by it."""
    best, own = start.rows.copy(), search.points[start.point]
    costs, active = search.cost(start), np.arange(len(best))
    while len(active):
        which, column = np.nonzero(best[active] != own[active])
        line = active[which]
        tried = Candidates(start.point[line], best[line])
        tried.rows[np.arange(len(line)), column] = own[line, column]
        valid = search.valid(tried)
        tried, line = tried.take(valid), line[valid]
        cost = search.cost(tried)
        order = np.lexsort((cost, line))
        first = order[np.unique(line[order], return_index=True)[1]]
        first = first[cost[first] < costs[line[first]] + WORTH]
        active = line[first]
        best[active], costs[active] = tried.rows[first], cost[first]
    return Candidates(start.point, best)


# --- choosing ------------------------------------------------------------------------------------------------------------


def _cheapest(search: Search, valid: Candidates, most: int) -> Candidates:
    """The candidates of least cost, at most so many for each point."""
    order = np.lexsort((search.cost(valid), valid.point))
    point = valid.point[order]
    starts = np.searchsorted(point, point, side="left")
    return valid.take(order[np.arange(len(order)) - starts < most])


def _chosen(search: Search, refined: Candidates, unrefined: Candidates, point: int, total: int) -> Floats:
    """The best answer, then each time the one whose distance from those chosen exceeds its cost most; all different.

    Where refining made too many of them nearly one and the same, candidates stand in as they were before; answers that are
    alike come last.
    """
    rows = np.unique(refined.rows[refined.point == point], axis=0)
    if _count_unlike(search.features(rows), total) < total:
        rows = np.unique(np.concatenate([rows, unrefined.rows[unrefined.point == point]]), axis=0)
    rows = rows[(rows != search.points[point]).any(axis=1)]
    if not len(rows):
        return np.asarray(rows)
    cost = search.cost(Candidates(np.full(len(rows), point), rows))
    features, picked = search.features(rows), [int(cost.argmin())]
    while len(picked) < min(total, len(rows)):
        apart = np.sqrt(squared_distances(features, features[picked]).min(axis=1))
        worth = apart - cost - np.where(apart < ALIKE, 1e6, 0.0)
        worth[picked] = -np.inf
        picked.append(int(worth.argmax()))
    return np.asarray(rows[picked])


def _count_unlike(features: Floats, enough: int) -> int:
    """How many rows there are that are not alike, counted up to ``enough``."""
    kept = features[:1]
    for row in features[1:]:
        if len(kept) < enough and squared_distances(row[None], kept).min() >= ALIKE**2:
            kept = np.concatenate([kept, row[None]])
    return len(kept)
