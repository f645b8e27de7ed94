"""The search for counterfactuals: public post-processing, many people at once, thousands of rows per call of the model.

1. *Candidates*: the rows of the wanted class nearest to the person, its prototype, points between (and, for differentiable
   models, minima of eq. 18: ``fitted``); and *moves*: a single column changed to each of the values that rows of the class
   have in it, then a second one where the model was nearly won over. All are settled onto the rules; those that the model
   puts in the wanted class are valid. Who has none gets random permitted rows.
2. *Refinement* (``refinement``): whatever can be undone is undone, alone and in pairs, and numbers go back towards the
   person's as far as the model agrees.
3. *Several answers* differ in the columns that they change. There are fewer answers where there are no more such sets.

Every step keeps a row valid or leaves it as it was, so that the last word on validity is the model's own. Answers are
compared by how much they change: L1 in the encoding, and a price for every change. The nearest row of the class with its
changes undone is among them, and nothing farther is told first, unless it is to be more plausible.

*The pool of a class* are rows that look like it: private rows and draws from the picture, as far as the public model puts
them there. The mean distance to the nearest twenty of them is what ``plausibility`` means: one alone may be the odd one
that noise put where nobody is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..._types import Bools, Floats, Indices
from ...results.class_picture import ClassPicture
from ...schema import Numeric, Schema
from .classes import Classes
from .permitted import Rules

# Rows drawn and shown to the model, until enough are of the class.
DRAWN = 30_000
BATCH = 10_000
KEPT = 4_000
POOL_CELLS = 4_096
# How many rows of the class an answer's plausibility is measured on.
NEIGHBOURS = 20
# With fewer rows of the class, draws from the class's own columns are added.
ENOUGH = 200
DISTANCE_BATCH = 2_048
# Rows of the pool that each person starts from.
NEAREST = 24
# Squared distances that differ by less are the same: another machine, or a browser, starts from the same rows.
SAME_DISTANCE = 2.0**-30
# Valid candidates of each person that are refined, at most. Different answers need many of them.
REFINED = 48
# Up to so many varied columns moves are tried for everybody, and pairs of changes are undone.
FEW_COLUMNS = 64
# Fractions of the way from the person to the prototype of the class that are tried.
TOWARDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
# Columns that moves change, at most: for more answers, and for a first one.
MOVES, MOST_MOVES = 2, 8
# Rows of each person that moves go on from.
BEAM = 4
# Values of a number that moves try: as many quantiles of the class.
GRID_VALUES = 9
# What a change costs besides its size: a whole range of a number costs 1.
PER_CHANGE = 0.15
# Random rows per person in the last resort.
RANDOM = 2_000


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

    @cached_property
    def values(self) -> list[Floats]:
        """For each column what rows of the class have in it: the distinct values if they are few, else quantiles."""
        distinct = [np.unique(column) for column in self.raw.T]
        steps = np.linspace(0, 1, GRID_VALUES)
        return [
            values if len(values) <= 5 * GRID_VALUES else np.quantile(column, steps, method="nearest")
            for values, column in zip(distinct, self.raw.T, strict=True)
        ]


def on_grid(schema: Schema, raw: Floats) -> Floats:
    """Rows with their fractions on a grid, ``POOL_CELLS`` to a column's range: what a site hands over is then small.

    They were drawn evenly from far wider bins. Zero and codes are values of their own, and stay.
    """
    columns = [(j, c) for j, c in enumerate(schema.values()) if isinstance(c, Numeric) and not c.integer]
    made = raw.copy()
    for j, column in columns:
        values, width = raw[:, j], column.high - column.low
        cells = np.rint((values - column.low) / width * POOL_CELLS)
        near = np.minimum(column.low + cells / POOL_CELLS * width, column.high)
        made[:, j] = np.where((values == 0) | np.isin(values, column.codes), values, near)
    return made


def draws(picture: ClassPicture, number: int, seed: int, like: int) -> Iterator[tuple[int, Callable[[], Floats]]]:
    """What the pool of a class is taken from, in turn: the size from which a pool needs no more, and how to draw rows."""
    rows, generator = picture.rows, np.random.default_rng([seed, number])
    if rows is not None:
        for _ in range(DRAWN // BATCH):
            yield KEPT, partial(rows.raw, BATCH, int(generator.integers(2**31)))
    yield ENOUGH, partial(picture.draw, like, DRAWN // 3, generator)


def pool_of(picture: ClassPicture, classes: Classes, number: int, seed: int, like: int) -> Pool:
    """The pool of a class, by its number: the same for the same picture, model and seed.

    ``like`` is the number of the picture's own class that it resembles: itself, but for a range of outputs.
    """
    schema = picture.schema

    def of_class(raw: Floats) -> Floats:
        return np.asarray(raw[classes.index(classes.outputs(schema, raw)) == number])

    prototype = picture.prototype_features[like]
    raw = of_class(on_grid(schema, schema.unfeature(prototype[None, :])))
    for enough, draw in draws(picture, number, seed, like):
        if len(raw) >= enough:
            break
        raw = np.concatenate([raw, of_class(on_grid(schema, draw()))])
    return Pool(raw[:KEPT], schema.features(raw[:KEPT])[0], prototype)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Raw rows under consideration, and the number of the point that each is for."""

    point: Indices
    rows: Floats

    def take(self, which: Bools | Indices | slice) -> Candidates:
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
    to, ``pools`` the rows that look like each of those; ``plausibility_weight`` counts against distance; ``margin`` is
    how far past the border of the wanted class outputs must lie.
    """

    schema: Schema
    classes: Classes
    rules: Rules
    points: Floats
    target: Indices
    pools: Mapping[int, Pool]
    plausibility_weight: float
    seed: int
    margin: float = 0.0

    def features(self, rows: Floats) -> Floats:
        """Rows in the encoding."""
        return self.schema.features(rows)[0]

    def settle(self, tried: Candidates) -> Candidates:
        """The nearest rows that keep the rules."""
        return Candidates(tried.point, self.rules.settle(self.points[tried.point], tried.rows))

    def valid(self, tried: Candidates) -> Bools:
        """Mask of the rows that the model puts in the wanted class."""
        if not len(tried.rows):
            return np.zeros(0, dtype=np.bool_)
        return self.accepts(self.classes.outputs(self.schema, tried.rows), tried.point)

    def accepts(self, outputs: Floats, point: Indices) -> Bools:
        """Mask of the outputs that are in the wanted class of these points, as far past its border as they must."""
        inside = np.asarray(self.classes.index(outputs) == self.target[point])
        return inside & (self.classes.margin(outputs, self.target[point]) >= self.margin) if self.margin else inside

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

    def amounts(self, tried: Candidates) -> Floats:
        """How much each column changes, (rows, columns): L1 in the encoding."""
        away = np.abs(self.features(self.points[tried.point]) - self.features(tried.rows))
        return np.add.reduceat(away, [where.start for where in self.schema.feature_slices.values()], axis=1)

    def changed(self, tried: Candidates) -> Bools:
        """Which players change, (rows, players)."""
        return self.rules.by_player(tried.rows != self.points[tried.point]) > 0

    def cost(self, tried: Candidates) -> Floats:
        """What answers are compared by: L1 distance to the person, a price for every change, distance to the class."""
        weight, changes = self.plausibility_weight, self.changed(tried).sum(axis=1)
        near = weight * self.implausibility(tried) if weight else 0.0
        return np.asarray(self.amounts(tried).sum(axis=1) + PER_CHANGE * changes + near)

    @cached_property
    def is_wide(self) -> bool:
        """Whether so many columns vary that not all of them are tried."""
        return len(self.rules.leads) > FEW_COLUMNS


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
            # Equal distances are equal whatever the last bits of a matrix product are, and the earlier row is the nearer.
            by_distance = np.rint(squared_distances(here * varied, pool.features * varied) / SAME_DISTANCE).astype(np.int64)
            ranked = by_distance * len(pool.raw) + np.arange(len(pool.raw))
            nearest = np.sort(np.argpartition(ranked, count - 1, axis=1)[:, :count], axis=1)
            starts.append(Candidates(np.repeat(own_points, count), pool.raw[nearest.ravel()]))
        for fraction in TOWARDS if len(own_points) else ():  # towards the prototype, and past it
            moved = np.clip(here + fraction * (pool.prototype - here), 0.0, 1.0)
            starts.append(Candidates(own_points, search.schema.unfeature(moved)))
    if extra is not None:
        starts.append(Candidates(points, extra))
    return starts[0].joined(*starts[1:])


def candidates(search: Search, points: Indices, total: int, extra: Floats | None) -> tuple[Candidates, Candidates]:
    """Valid rows for these points, nobody's own: those that look like the class, and moves.

    Parameters
    ----------
    points : array of int
        Numbers of points that are not in their wanted class yet.
    total : int
        How many answers each shall have.
    extra : array (points, columns), optional
        One more candidate for each, such as a minimum of eq. 18.
    """
    settled = search.settle(_starts(search, points, extra))
    alike = settled.take(search.valid(settled))
    moving = np.setdiff1d(points, alike.point) if search.is_wide else points
    moves = _moves(search, moving, total, set(alike.point.tolist()))
    return alike, moves.joined(_random(search, np.setdiff1d(points, [*alike.point, *moves.point])))


def _moves(search: Search, points: Indices, total: int, answered: set[int]) -> Candidates:
    """Single columns changed, then further ones, from where the model is nearest to the wanted class.

    It goes on for people who have fewer valid sets of columns than answers were asked for, and longer for those who have
    no answer at all.
    """
    found = Candidates(np.empty(0, dtype=np.intp), np.empty((0, search.points.shape[1])))
    current, sets = Candidates(points, search.points[points]), dict.fromkeys(points.tolist(), 0)
    for depth in range(min(MOST_MOVES, len(search.rules.leads))):
        tried = _all_moves(search, current)
        outputs, wanted = search.classes.outputs(search.schema, tried.rows), search.target[tried.point]
        valid, changed = search.accepts(outputs, tried.point), search.changed(tried)
        size, margin = search.amounts(tried).sum(axis=1), search.classes.margin(outputs, wanted)
        nearest = first_of_each(tried.point, changed, size, np.flatnonzero(valid))
        found = found.joined(tried.take(nearest))
        for point in tried.point[nearest]:
            sets[point] += 1
        going = [p for p, n in sets.items() if n < total and (depth + 1 < MOVES or not (n or p in answered))]
        others = np.flatnonzero(~valid & np.isfinite(margin) & np.isin(tried.point, going))
        surest = first_of_each(tried.point, changed, -margin, others)
        current = tried.take(_first_few(tried.point, -margin, surest, BEAM))
        if not len(current.point):
            break
    return found


def _all_moves(search: Search, current: Candidates) -> Candidates:
    """Every row with each of its columns changed to each value of the class."""
    made = [current.take(slice(0, 0))]
    leads = search.rules.leads
    if search.is_wide:  # too many to try all of them
        leads = leads[:: max(1, len(leads) // (4 * FEW_COLUMNS))]
    for number, pool in search.pools.items():
        own = current.take(search.target[current.point] == number)
        for column in leads if len(own.point) else ():
            values = pool.values[column] if len(pool.raw) else search.rules.choices(int(column), GRID_VALUES)
            moved = own.take(np.repeat(np.arange(len(own.point)), len(values)))
            moved.rows[:, column] = np.tile(values, len(own.point))
            made.append(moved)
    settled = search.settle(made[0].joined(*made[1:]))
    return settled.take((settled.rows != search.points[settled.point]).any(axis=1))


def first_of_each(point: Indices, changed: Bools, order: Floats, among: Indices | None = None) -> Indices:
    """Of these rows (all, if not told) the first by ``order`` for every point and set of changed players."""
    among = np.arange(len(point)) if among is None else among
    among = among[np.argsort(order[among], kind="stable")]
    sets = np.concatenate([point[among, None], np.packbits(changed[among], axis=1)], axis=1)
    return np.asarray(among[np.unique(sets, axis=0, return_index=True)[1]])


def _first_few(point: Indices, order: Floats, among: Indices, most: int) -> Indices:
    """Of these rows the first by ``order``, at most so many for every point."""
    among = among[np.lexsort((order[among], point[among]))]
    starts = np.searchsorted(point[among], point[among], side="left")
    return np.asarray(among[np.arange(len(among)) - starts < most])


def _random(search: Search, points: Indices) -> Candidates:
    """Random permitted rows, half of them with some columns of the class."""
    valid = Candidates(np.empty(0, dtype=np.intp), np.empty((0, search.points.shape[1])))
    generator = np.random.default_rng([search.seed, 1])
    for point in points:
        own, pool = search.points[point], search.pools[int(search.target[point])]
        drawn = _random_rows(search.rules, own, generator)
        if len(pool.raw):
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


def nearest_few(search: Search, valid: Candidates, most: int) -> Candidates:
    """The candidates nearest to the person, at most so many for each point."""
    order = search.amounts(valid).sum(axis=1)
    return valid.take(_first_few(valid.point, order, np.arange(len(order)), most))
