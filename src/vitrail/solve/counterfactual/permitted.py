"""What a person may change: the schema's rules and those of one call, kept by every row that a search looks at. Public.

A candidate is *settled* before a model sees it: every value that may not be what it is becomes the nearest permitted one, or
the person's own. So whatever the search proposes, answers lie in the schema and keep the rules. A person's own value is
always permitted: a range says where a *changed* value may lie, and a value outside the bounds is never advised.

*Rules about columns together* (``Link``, ``AtLeast``) hold in an answer for the columns that it changes. A person whose own
row breaks one is not told to mend it: what an answer does not touch stays as it is; what it touches keeps the rule, or goes
back. Linked columns are one *player*: they change together, are undone together, and naming one of them names all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from ... import _checks
from ..._types import Bools, Floats, Indices
from ...errors import InvalidInput
from ...schema import AtLeast, Categorical, Level, Link, Numeric, Schema, Within
from ...schema.reading import Matcher

Columns: TypeAlias = Literal["all"] | Sequence[str]
Ranges: TypeAlias = Mapping[str, Sequence[Level] | Set[Level]] | None


@dataclass(frozen=True, eq=False)
class Following:
    """Columns that follow from another one: ``values`` (levels, followers) for each of its levels."""

    column: int
    followers: Indices
    values: Floats
    widths: Floats

    def levels(self, wanted: Floats, counted: Bools, own: Floats) -> Indices:
        """The level nearest to each row's values in the followers that count; of equal ones the person's own."""
        away = (np.abs(wanted[:, None, :] - self.values) / self.widths * counted[:, None, :]).sum(axis=2)
        away[np.arange(len(own)), own.astype(np.intp)] -= 1e-9
        return np.asarray(away.argmin(axis=1))


@dataclass(frozen=True, eq=False)
class Rules:
    """The permitted values of every column.

    Attributes
    ----------
    vary : array of bool, shape (columns,)
        Whether the column may change at all.
    low, high : array of shape (columns,)
        Between which numbers a changed value may lie; level numbers for categories.
    up, down : array of bool, shape (columns,)
        Whether the value may go up, and down.
    whole : array of bool, shape (columns,)
        Whether values are whole numbers.
    levels : tuple of array of bool or None
        For categories the permitted levels.
    following : tuple of Following
        The links, one for each column that others follow from.
    orders : array of int, shape (orders, 2)
        Pairs of columns of which the first is at least the second.
    bounds : array of shape (2, columns)
        The schema's. A value outside them is a code, which has no order.
    codes : tuple of tuple of float
        For numbers their codes: never a new value; and a person at one keeps it where a value may only rise or fall.

    Examples
    --------
    >>> schema = Schema({"age": Numeric(17, 90, integer=True, change="up"), "sex": Categorical(["f", "m"], change="never")})
    >>> rules = Rules.of(schema, "all", {"age": (30, 50)})
    >>> person = schema.read_points({"age": 40, "sex": "f"})
    >>> rules.settle(person, np.array([[20.0, 1.0]])).tolist(), rules.settle(person, np.array([[77.4, 1.0]])).tolist()
    ([[40.0, 0.0]], [[50.0, 0.0]])
    """

    vary: Bools
    low: Floats
    high: Floats
    up: Bools
    down: Bools
    whole: Bools
    levels: tuple[Bools | None, ...]
    following: tuple[Following, ...]
    orders: Indices
    bounds: Floats
    codes: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, schema: Schema, features_to_vary: Columns, permitted_range: Ranges) -> Rules:
        """The rules, or an error that names what cannot be kept."""
        columns = list(schema.values())
        limits = [(c.low, c.high) if isinstance(c, Numeric) else (0, len(c.levels) - 1) for c in columns]
        bounds = np.array(limits, dtype=np.float64).T
        for rule in schema.rules:
            if isinstance(rule, Within):
                limits[schema.column_index(rule.column)] = (rule.low, rule.high)
        levels = [np.ones(len(c.levels), dtype=np.bool_) if isinstance(c, Categorical) else None for c in columns]
        if permitted_range is not None and not isinstance(permitted_range, Mapping):
            raise InvalidInput(
                f"permitted_range is {permitted_range!r}; give a dictionary such as {{'age': (30, 50), 'job': ['clerk']}}"
            )
        for name, given in (permitted_range or {}).items():
            number = schema.column_index(str(name))
            column = columns[number]
            if isinstance(column, Numeric):
                limits[number] = _interval(name, column, limits[number], given)
            else:
                levels[number] = _permitted_levels(name, column, given)
            if column.change == "never":
                raise InvalidInput(
                    f"permitted_range names {name!r}, which the schema declares change='never'; leave it out, it stays"
                )
        following = _following(schema)
        low, high = np.array(limits, dtype=np.float64).T
        up, down = (np.array([column.change != other for column in columns]) for other in ("down", "up"))
        whole = np.array([isinstance(column, Categorical) or column.integer for column in columns])
        names = [(rule.larger, rule.smaller) for rule in schema.rules if isinstance(rule, AtLeast)]
        orders = np.array([[schema.column_index(name) for name in pair] for pair in names], dtype=np.intp).reshape(-1, 2)
        vary = _varied(schema, features_to_vary, following)
        codes = tuple(column.codes if isinstance(column, Numeric) else () for column in columns)
        return cls(vary, low, high, up, down, whole, tuple(levels), following, orders, bounds, codes)

    @cached_property
    def _lead(self) -> Indices:
        lead = np.arange(len(self.vary))
        for link in self.following:
            lead[link.followers] = link.column
        return lead

    @cached_property
    def leads(self) -> Indices:
        """The players that may change, each by its column, or by the one that its columns follow from."""
        return np.unique(self._lead[self.vary])

    @cached_property
    def players(self) -> Bools:
        """(players, columns): the columns that change together."""
        return np.asarray(self._lead == self.leads[:, None])

    def settle(self, points: Floats, candidates: Floats) -> Floats:
        """Permitted raw rows near the candidates, one for each point: both (rows, columns)."""
        settled = self._each(points, candidates)
        if not self.following and not len(self.orders):
            return settled
        for link in self.following:
            self._follow(link, points, settled)
        for larger, smaller in self.orders:
            self._order(int(larger), int(smaller), points, settled)
        # What is still broken goes back. Every round takes changes back, and a row without any breaks nothing.
        while (broken := self._broken(points, settled)).any():
            settled = np.where(broken, points, settled)
        return settled

    def _each(self, points: Floats, candidates: Floats) -> Floats:
        """Every column by its own rules."""
        rounded = np.where(self.whole, np.rint(candidates), candidates)
        low = np.where(self.down, self.low, np.maximum(self.low, points))
        high = np.where(self.up, self.high, np.minimum(self.high, points))
        settled = np.where(low <= high, np.minimum(np.maximum(rounded, low), high), points)
        for column, permitted in enumerate(self.levels):
            if permitted is not None:
                level = np.clip(settled[:, column], 0, len(permitted) - 1).astype(np.intp)
                settled[:, column] = np.where(permitted[level], level, points[:, column])
        for column, codes in enumerate(self.codes):
            if codes:
                one_way = not (self.up[column] and self.down[column])
                stays = np.isin(rounded[:, column], codes) | (one_way & np.isin(points[:, column], codes))
                settled[:, column] = np.where(stays, points[:, column], settled[:, column])
        return np.where(self.vary & (rounded != points) & np.isfinite(rounded), settled, points)

    @staticmethod
    def _follow(link: Following, points: Floats, settled: Floats) -> None:
        """Let followers follow a changed column; where they alone changed, the column follows them."""
        own, moved = points[:, link.column], settled[:, link.followers] != points[:, link.followers]
        leads = settled[:, link.column] != own
        led = np.flatnonzero(~leads & moved.any(axis=1))
        settled[led, link.column] = link.levels(settled[led][:, link.followers], moved[led], own[led])
        touched = np.flatnonzero(leads | moved.any(axis=1))
        settled[np.ix_(touched, link.followers)] = link.values[settled[touched, link.column].astype(np.intp)]

    def _order(self, larger: int, smaller: int, points: Floats, settled: Floats) -> None:
        """Move the column that changed, the larger one if both did, to where the order holds."""
        wrong = self._out_of_order(larger, smaller, points, settled)
        raised = wrong & (settled[:, larger] != points[:, larger])
        up = np.ceil(settled[:, smaller]) if self.whole[larger] else settled[:, smaller]
        down = np.floor(settled[:, larger]) if self.whole[smaller] else settled[:, larger]
        settled[raised, larger], settled[wrong & ~raised, smaller] = up[raised], down[wrong & ~raised]

    def _out_of_order(self, larger: int, smaller: int, points: Floats, rows: Floats) -> Bools:
        pair = [larger, smaller]
        known = ((rows[:, pair] >= self.bounds[0, pair]) & (rows[:, pair] <= self.bounds[1, pair])).all(axis=1)
        touched = (rows[:, pair] != points[:, pair]).any(axis=1)
        return np.asarray(known & touched & (rows[:, larger] < rows[:, smaller]))

    def _broken(self, points: Floats, rows: Floats) -> Bools:
        """(rows, columns): the columns of every rule that a row breaks."""
        broken = self._each(points, rows) != rows
        for larger, smaller in self.orders:
            broken[:, [larger, smaller]] |= self._out_of_order(int(larger), int(smaller), points, rows)[:, None]
        for link in self.following:
            group = [link.column, *link.followers]
            told = link.values[rows[:, link.column].astype(np.intp)]
            apart = (rows[:, group] != points[:, group]).any(axis=1) & (told != rows[:, link.followers]).any(axis=1)
            broken[:, group] |= (apart | broken[:, group].any(axis=1))[:, None]
        return np.asarray(broken & (rows != points))

    def by_player(self, of_columns: Floats) -> Floats:
        """Sums over the columns of each player, (rows, players)."""
        return of_columns @ self.players.T if self.following else of_columns[:, self.leads]

    def of_players(self, chosen: Bools) -> Bools:
        """The columns of chosen players: (rows, players) to (rows, columns)."""
        columns = np.zeros((len(chosen), len(self.vary)), dtype=np.bool_)
        columns[:, self.leads] = chosen
        for link in self.following:
            columns[:, link.followers] = columns[:, [link.column]]
        return columns

    def choices(self, column: int, count: int) -> Floats:
        """Values to try in a column: permitted levels, or evenly spaced numbers with both ends."""
        permitted = self.levels[column]
        if permitted is not None:
            return np.flatnonzero(permitted).astype(np.float64)
        return np.linspace(self.low[column], self.high[column], count)

    def kept(self, points: Floats, answers: Floats) -> Bools:
        """Whether each answer keeps every rule."""
        return np.asarray((self.settle(points, answers) == answers).all(axis=1))


def _following(schema: Schema) -> tuple[Following, ...]:
    """The links of a schema, by the column that others follow from."""
    links = [rule for rule in schema.rules if isinstance(rule, Link)]
    made = []
    for name in dict.fromkeys(link.column for link in links):
        own = [link for link in links if link.column == name]
        columns = [schema[link.other] for link in own]
        values = [
            [float(value) if isinstance(column, Numeric) else column.levels.index(value) for value in link.values.values()]
            for link, column in zip(own, columns, strict=True)
        ]
        # Levels have no order: the wrong one is farther than any number.
        widths = [column.high - column.low if isinstance(column, Numeric) else 1e-3 for column in columns]
        followers = np.array([schema.column_index(link.other) for link in own], dtype=np.intp)
        made.append(Following(schema.column_index(name), followers, np.array(values, dtype=np.float64).T, np.array(widths)))
    return tuple(made)


def _varied(schema: Schema, given: Columns, following: tuple[Following, ...]) -> Bools:
    if (isinstance(given, str) and given != "all") or not isinstance(given, Sequence):
        raise InvalidInput(f"features_to_vary is {given!r}; give 'all' or a list of columns")
    names = _checks.names("features_to_vary", None if isinstance(given, str) else given, schema.names)
    vary = np.array([name in names for name in schema])
    may = np.array([column.change != "never" for column in schema.values()])
    for link in following:
        group = [link.column, *link.followers]
        vary[group], may[group] = vary[group].any(), may[group].all()
    vary &= may
    if not vary.any():
        raise InvalidInput(
            "every column of features_to_vary is declared change='never' in the schema; name one that may change"
        )
    return vary


def _interval(name: str, column: Numeric, limits: tuple[float, float], given: object) -> tuple[float, float]:
    ends = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else []
    numbers = [float(end) for end in ends if isinstance(end, int | float | np.number) and not isinstance(end, bool)]
    if len(ends) != 2 or len(numbers) != 2 or not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; it must be a pair (low, high) of numbers")
    low, high = numbers
    if column.integer:
        low, high = math.ceil(low), math.floor(high)
    low, high = max(low, limits[0]), min(high, limits[1])
    if low > high:
        raise InvalidInput(
            f"permitted_range of {name!r} is {given!r}, which holds nothing that is {column.allowed}: nothing is permitted"
        )
    return low, high


def _permitted_levels(name: str, column: Categorical, given: object) -> Bools:
    if isinstance(given, str) or not isinstance(given, Sequence | Set | np.ndarray) or not len(given):
        raise InvalidInput(f"permitted_range of {name!r} is {given!r}; give a list of levels, {column.allowed}")
    matcher, permitted = Matcher(column), np.zeros(len(column.levels), dtype=np.bool_)
    for level in given:
        code = matcher.code_of(level)
        if math.isnan(code):
            raise InvalidInput(f"permitted_range of {name!r} holds {level!r}; it must be {column.allowed}")
        permitted[int(code)] = True
    return permitted
