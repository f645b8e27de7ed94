"""Interventional Shapley values of points on given background rows: pure post-processing once the rows are public.

For a point z and a background row b the game v_b(S) = f(z_S, b_-S) has Shapley values psi_j(z, b), and the value of player j
is their mean over the rows: linear in the background, so that a caller may weigh the rows anew without asking the model.

*Orders.* Every row gets an order of the players of its own, and the reverse of it. With D_s the output after the first s
exchanges minus that after all the others, the player at place s is given psi = (D_s - D_{s-1}) / 2, which telescopes:
whatever the order, sum_j psi_j(z, b) = f(z) - f(b). It is exact where at most two players act together. The orders of as
many rows as there are players form a Latin square with random players and places: each order is uniform, so the mean is
unbiased, and each player stands equally often at each place, which takes some variance out. Orders depend on the seed and
the row's number, not on the points. (One order for all rows, as permutation explainers have it, leaves an error that no
number of rows averages out.)

*Asked once.* A hybrid is known by the sum of a 64-bit word per player's content, so that along a chain it is a running sum.
Exchanges that change nothing, rows and points themselves, and hybrids met before in the same piece of work, have a word that
is known already; what is left is asked in large calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ..._types import Floats, Indices
from ...errors import InvalidInput, ModelError
from ...model import Model
from ...schema import Schema
from ..coalitions import row_hashes
from .trees import tree_values

Scale: TypeAlias = Literal["output", "log-odds"]
Method: TypeAlias = Literal["permutations", "tree"]
Players: TypeAlias = Mapping[str, Sequence[str]] | Sequence[Sequence[str]]
# Log-odds are of the output's place in its range, kept this far from both ends: near 1, a 32-bit probability is no finer.
LOG_ODDS_MARGIN = 1e-6
# Exchanges that are followed at a time.
PIECE = 1 << 19
# Features of a call: a block that stays in the processor's cache is predicted several times faster.
CALL_FEATURES = 1 << 18
# Numbers of hybrids that are held at a time.
HELD = 1 << 23
MOST_PLAYERS = 1_000
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class RowValues:
    """Shapley values of points, row by row of their background.

    Attributes
    ----------
    players : tuple of str
        What the values are of: columns, and groups of columns.
    values : array (points, players)
        Means over the rows. They sum to ``outputs`` - ``base``.
    per_row : array (points, rows, players)
        What each player adds on the way from a row to a point. They sum to ``outputs`` - ``row_outputs``.
    row_outputs, outputs : arrays (rows,), (points,)
        On the scale that is explained.
    base : float
        The mean of ``row_outputs``.
    standard_errors : array (points, players)
        Of ``values``, for rows that are a sample: the error of the random orders is in it. NaN for a single row.
    method : str
        ``"permutations"`` or ``"tree"`` (exact).
    """

    players: tuple[str, ...]
    values: Floats
    per_row: Floats
    row_outputs: Floats
    outputs: Floats
    base: float
    standard_errors: Floats
    method: str

    @classmethod
    def of(cls, players: tuple[str, ...], per_row: Floats, row_outputs: Floats, outputs: Floats, method: str) -> RowValues:
        """Means and their errors, from the rows."""
        n_rows = per_row.shape[1]
        errors = per_row.std(axis=1, ddof=1) / np.sqrt(n_rows) if n_rows > 1 else np.full_like(per_row[:, 0], np.nan)
        return cls(
            players=players,
            values=per_row.mean(axis=1),
            per_row=per_row,
            row_outputs=row_outputs,
            outputs=outputs,
            base=float(row_outputs.mean()),
            standard_errors=errors,
            method=method,
        )


def shapley_on(
    model: Model,
    schema: Schema,
    points: Floats,
    background: Floats,
    *,
    players: Players | None = None,
    scale: Scale = "output",
    method: Method = "permutations",
    seed: int = 0,
    orders: int = 1,
) -> RowValues:
    """Shapley values of a model's output at public points, on background rows.

    Parameters
    ----------
    model : Model
    schema : Schema
        The columns of points and rows.
    points : array (points, columns)
        Raw, as ``schema.read_points`` gives them.
    background : array (rows, columns)
        Raw and complete; at least one row.
    players : mapping from names to columns, or sequence of groups of columns, optional
        Columns that are exchanged together and have one value; the schema's groups if not given. A column that is not named
        is a player of its own.
    scale : {"output", "log-odds"}
        Of what the values are: the output, or log(p / (1 - p)) of its place p in the model's range, with p at least
        ``LOG_ODDS_MARGIN`` from 0 and 1.
    method : {"permutations", "tree"}
        ``"tree"`` is exact and slower: for averaged trees, and for boosted ones on the scale of log-odds (or of a regression
        value). It needs shap, to read the trees. Where the model is no such sum of trees, permutations are used.
    seed : int
        Of the orders.
    orders : int
        Orders per row, each with its reverse.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)})
    >>> model = Model(lambda x: x[:, 0] * x[:, 1], range=(0, 1))
    >>> explained = shapley_on(model, schema, np.array([[1.0, 1.0]]), np.array([[0.0, 0.0], [0.0, 1.0]]))
    >>> explained.per_row[0].tolist(), explained.values[0].tolist(), explained.base
    ([[0.5, 0.5], [1.0, 0.0]], [0.75, 0.25], 0.0)
    """
    return shapley_of_outputs(
        [model], schema, points, background, players=players, scale=scale, method=method, seed=seed, orders=orders
    )[0]


def shapley_of_outputs(
    models: Sequence[Model],
    schema: Schema,
    points: Floats,
    background: Floats,
    *,
    players: Players | None = None,
    scale: Scale = "output",
    method: Method = "permutations",
    seed: int = 0,
    orders: int = 1,
) -> list[RowValues]:
    """The same for several outputs of one predictor, of one range: one result each, from the same calls of it.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> def both(x):
    ...     return np.stack([x[:, 0], 1 - x[:, 0]], axis=1)
    >>> schema = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1)})
    >>> models = [Model(both, output=output, range=(0, 1)) for output in (0, 1)]
    >>> results = shapley_of_outputs(models, schema, np.array([[1.0, 1.0]]), np.array([[0.0, 0.0]]))
    >>> [result.values[0].tolist() for result in results]
    [[1.0, 0.0], [-1.0, 0.0]]
    """
    if len({(model.lo, model.hi) for model in models}) != 1:
        raise InvalidInput("models are outputs of one predictor, at least one of them, and all have the same range")
    groups = players_of(schema, players)
    game = _Game(
        tuple(models), schema, player_numbers(schema, groups), _checks.choice("scale", scale, ("output", "log-odds"))
    )
    for name, given in (("points", points), ("background", background)):
        _check_rows(name, given, schema)
    if not len(background):
        raise InvalidInput("background has no rows; Shapley values are means over at least one")
    if method != "tree":
        check_players(len(groups))
    orders, seed = _checks.whole("orders", orders, most=10_000), _checks.whole("seed", seed, least=0, most=2**63)
    outputs, row_outputs = game.outputs(points), game.outputs(background)
    exact = None
    if _checks.choice("method", method, ("permutations", "tree")) == "tree":
        differences = np.moveaxis(outputs[:, None] - row_outputs, 2, 0)
        exact = tree_values(models, schema, points, background, game.player_of, differences)
    per_row = game.by_orders(points, outputs, background, row_outputs, orders, seed) if exact is None else exact
    used = "permutations" if exact is None else "tree"
    return [
        RowValues.of(tuple(groups), per_row[number], row_outputs[:, number], outputs[:, number], used)
        for number in range(len(models))
    ]


def players_of(schema: Schema, players: Players | None = None) -> dict[str, tuple[str, ...]]:
    """The columns of every player, by its name, in the order of their first columns; the schema's groups if none is given.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> schema = Schema({name: Numeric(0, 1) for name in ("a", "b", "c")})
    >>> players_of(schema, {"both": ["c", "b"]})
    {'a': ('a',), 'both': ('b', 'c')}
    >>> players_of(schema, [["a", "c"]])
    {'a + c': ('a', 'c'), 'b': ('b',)}
    """
    if players is None:
        players = schema.groups
    if isinstance(players, str) or not isinstance(players, Mapping | Sequence):
        raise InvalidInput(f"players is {players!r}; give groups of column names, such as {{'place': ['city', 'state']}}")
    named = list(players.items()) if isinstance(players, Mapping) else [(None, group) for group in players]
    owner: dict[str, str] = {}
    for name, group in named:
        columns = _checks.names("a group of players", group, schema.names)
        title = (
            " + ".join(sorted(columns, key=schema.column_index)) if name is None else _checks.text("name of a player", name)
        )
        for column in columns:
            if column in owner:
                raise InvalidInput(f"players names {column!r} twice; a column belongs to one player")
            owner[column] = title
    titles = set(owner.values())
    found: dict[str, list[str]] = {}
    for column in schema.names:
        if column not in owner and column in titles:
            raise InvalidInput(f"players calls a group {column!r}, which is another column; give it a name of its own")
        found.setdefault(owner.get(column, column), []).append(column)
    return {title: tuple(columns) for title, columns in found.items()}


def check_players(count: int) -> None:
    """Refuse more players than the model can be asked about: once for each of them on the way from every row to a point."""
    if count > MOST_PLAYERS:
        raise InvalidInput(
            f"Shapley values of {count} columns are asked for, and at most {MOST_PLAYERS} can be told apart; say which "
            "columns belong together: rules=[vt.Group('name', [...]), ...] of the schema (or players= on private rows)"
        )


def player_numbers(schema: Schema, groups: Mapping[str, Sequence[str]]) -> Indices:
    """The number of the player that each column belongs to."""
    number = {column: place for place, group in enumerate(groups.values()) for column in group}
    return np.array([number[column] for column in schema.names], dtype=np.intp)


def _check_rows(name: str, rows: Floats, schema: Schema) -> None:
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != schema.n_columns:
        given = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise InvalidInput(
            f"{name} is {given}; it must be float64 of shape (rows, {schema.n_columns}), in the schema's order"
        )


def balanced_orders(n_orders: int, n_players: int, seed: int) -> Indices:
    """Orders of players (orders, players): in every full block of as many orders as players, each is once at each place.

    Examples
    --------
    >>> orders = balanced_orders(6, 3, seed=0)
    >>> np.sort(orders[:3], axis=0).tolist(), np.sort(orders, axis=1)[0].tolist()
    ([[0, 0, 0], [1, 1, 1], [2, 2, 2]], [0, 1, 2])
    """
    generator, numbers = np.random.Generator(np.random.PCG64(seed)), np.arange(n_players)
    # Square by square, so that more rows leave the orders of the first ones as they are.
    squares = [
        generator.permutation(n_players)[(generator.permutation(n_players) + numbers[:, None]) % n_players]
        for _ in range(-(-n_orders // n_players))
    ]
    return np.concatenate(squares)[:n_orders]


@dataclass(frozen=True, eq=False)
class _Game:
    """Outputs of one predictor, and which player each column belongs to."""

    models: tuple[Model, ...]
    schema: Schema
    player_of: Indices
    scale: Scale

    def outputs(self, raw: Floats) -> Floats:
        """Outputs (rows, models) on the scale that is explained."""
        call_rows = self.call_rows
        asked = [
            self.models[0].predict_together(self.models, self.schema, raw[start : start + call_rows])
            for start in range(0, len(raw), call_rows)
        ]
        outputs = np.concatenate([np.empty((0, len(self.models))), *asked])
        if not np.isfinite(outputs).all():
            raise ModelError(
                f"{self.models[0].name} returns no finite number for a point with some values of a background row"
            )
        if self.scale == "output":
            return outputs
        low, width = self.models[0].lo, self.models[0].width
        share = np.clip((outputs - low) / width, LOG_ODDS_MARGIN, 1 - LOG_ODDS_MARGIN)
        return np.asarray(np.log(share / (1 - share)))

    @property
    def call_rows(self) -> int:
        """Rows that the model is asked about at a time."""
        return min(1 << 15, max(1 << 10, CALL_FEATURES // self.schema.n_features))

    def words(self, raw: Floats) -> NDArray[np.uint64]:
        """A word (rows, players) for the content of each player in each row."""
        words = np.zeros((len(raw), int(self.player_of.max()) + 1), dtype=np.uint64)
        for column, player in enumerate(self.player_of):
            words[:, player] += row_hashes(raw[:, [column]], (column + 1) * _GOLDEN)
        return words

    def by_orders(
        self, points: Floats, outputs: Floats, rows: Floats, row_outputs: Floats, n_orders: int, seed: int
    ) -> Floats:
        """What each player adds, (models, points, rows, players), piece by piece."""
        n_players = int(self.player_of.max()) + 1
        orders = balanced_orders(len(rows) * n_orders, n_players, seed)
        added = np.empty((len(self.models), len(points), len(rows), n_players))
        row_steps = 2 * n_orders * n_players * len(self.models)
        n_rows = max(1, min(len(rows), PIECE // row_steps))
        n_points = max(1, PIECE // (row_steps * n_rows))
        for row in range(0, len(rows), n_rows):
            near = slice(row, row + n_rows)
            chains = orders[row * n_orders : (row + n_rows) * n_orders]
            for point in range(0, len(points), n_points):
                some = slice(point, point + n_points)
                added[:, some, near] = self.along(points[some], outputs[some], rows[near], row_outputs[near], chains)
        return added

    def along(self, points: Floats, outputs: Floats, rows: Floats, row_outputs: Floats, orders: Indices) -> Floats:
        """The same for one piece, given the orders of its rows."""
        n_points, n_rows, n_players = len(points), len(rows), orders.shape[1]
        row_of = np.repeat(np.arange(n_rows), len(orders) // n_rows)
        ranks = np.argsort(orders, axis=1)
        point_words, row_words = self.words(points), self.words(rows)
        changes = (point_words[:, None] - row_words)[:, row_of[:, None], orders]
        passed = np.cumsum(changes, axis=2, dtype=np.uint64)[..., :-1]
        ends, starts = point_words.sum(axis=1, dtype=np.uint64), row_words.sum(axis=1, dtype=np.uint64)
        chains = np.stack([starts[row_of][:, None] + passed, ends[:, None, None] - passed])
        _, first, which = np.unique(np.concatenate([ends, starts, chains.ravel()]), return_index=True, return_inverse=True)
        new = first >= n_points + n_rows
        hybrid_outputs = np.concatenate([outputs, row_outputs])[np.where(new, 0, first)]
        reverse, point, chain, step = np.unravel_index(first[new] - n_points - n_rows, chains.shape)
        exchanged = (ranks[chain] <= step[:, None]) != (reverse == 1)[:, None]
        asked = [np.empty((0, len(self.models)))]
        at_once = self.call_rows * max(1, HELD // (self.call_rows * rows.shape[1]))
        for start in range(0, len(chain), at_once):  # some at a time: rows of ten thousand columns are long
            some = slice(start, start + at_once)
            hybrids = np.where(exchanged[some][:, self.player_of], points[point[some]], rows[row_of[chain[some]]])
            asked.append(self.outputs(hybrids))
        hybrid_outputs[new] = np.concatenate(asked)
        met = hybrid_outputs[which[n_points + n_rows :]].reshape(*chains.shape, len(self.models))
        whole = (outputs[:, None] - row_outputs[row_of])[:, :, None]
        added = np.diff(np.concatenate([-whole, met[0] - met[1], whole], axis=2), axis=2) / 2
        by_player = added[:, np.arange(len(orders))[:, None], ranks]
        by_row = by_player.reshape(n_points, n_rows, -1, n_players, len(self.models)).mean(axis=2)
        return np.moveaxis(by_row, 3, 0)
