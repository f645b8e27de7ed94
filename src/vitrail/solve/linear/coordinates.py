"""Coordinates in which a row of a schema has nothing redundant to say. Public facts only.

With p columns, x = features / sqrt(p) is a point c + U y: c the middle of everything the schema allows, U with orthonormal
columns, so |x - z| = |y - w| for the coordinates w of z. A numeric column has one coordinate, y_j in +-1/(2 sqrt p). A
categorical one with L levels has L - 1: the rows V_l / sqrt(p) of an orthonormal contrast table, all of the same length,
rho^2 = (1 - 1/L)/p. What one-hot columns satisfy by construction (levels add up to one) holds here without being asked
for, the middle makes rows as short as they can be made, and coordinates are fewer than features. A number with codes is
taken as several numbers, itself and one of 0 or 1 for each code: *columns* are here those of ``Schema.without_codes``, and
p is their number before that.

*Products.* Within a categorical column every polynomial of the coordinates is linear in (1, u): the level decides both.
Within a numeric column y_j^2 = h_j + 1/(8p) with |h_j| <= 1/(8p). So |y|^2 = kappa + h, h = sum_j h_j, and kappa is
public: of the squared length of a row only a small part is private.

Rows are turned into coordinates by differences and by looking up levels, never by a matrix product: what a row gives
depends on that row alone, bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.linalg import helmert

from ..._types import Floats, Indices
from ...errors import InvalidInput
from ...schema import Numeric, Schema

# Third moments of so many are 2.8 million numbers, and 134 MB once they are laid out.
MOST_COORDINATES = 256


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of one schema of features.

    Examples
    --------
    >>> from vitrail.schema import Categorical
    >>> schema = Schema({"age": Numeric(0, 100), "sex": Categorical(["Female", "Male"])})
    >>> y = Coordinates(schema).of_points(schema.read_points({"age": [50, 100], "sex": ["Male", "Female"]}))
    >>> y.round(3)
    array([[ 0.   , -0.5  ],
           [ 0.354,  0.5  ]])
    """

    schema: Schema
    all_columns: int | None = None
    """p, where these are the columns of a part of a schema."""

    def __post_init__(self) -> None:
        if self.size == 0:
            raise InvalidInput("every column here has one level only; there is nothing to explain by")

    def check_size(self) -> None:
        """Refuse schemas whose moments would not fit a machine."""
        if self.size > MOST_COORDINATES:
            raise InvalidInput(
                f"the schema has {self.size} free coordinates, and a synopsis holds at most {MOST_COORDINATES}; pay per "
                "question instead (method='statistics' or 'descent'), or merge rare levels"
            )

    @cached_property
    def parts(self) -> Schema:
        """The columns that coordinates belong to: those of the schema, codes as columns of their own."""
        return self.schema.without_codes()

    @cached_property
    def n_columns(self) -> int:
        """What squared lengths are divided by, p."""
        return self.schema.n_columns if self.all_columns is None else self.all_columns

    @cached_property
    def scale(self) -> float:
        """What features are divided by: sqrt(p)."""
        return math.sqrt(self.n_columns)

    @cached_property
    def is_numeric(self) -> tuple[bool, ...]:
        """Which columns are numbers."""
        return tuple(isinstance(column, Numeric) for column in self.parts.values())

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many coordinates each column has."""
        return tuple(1 if isinstance(column, Numeric) else len(column.levels) - 1 for column in self.parts.values())

    @cached_property
    def size(self) -> int:
        """How many coordinates there are."""
        return sum(self.widths)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the coordinates of each column lie."""
        ends = np.cumsum((0, *self.widths)).tolist()
        return tuple(slice(start, end) for start, end in pairwise(ends))

    @cached_property
    def numeric_indices(self) -> Indices:
        """The coordinates of the numeric columns."""
        chosen = zip(self.slices, self.is_numeric, strict=True)
        return np.array([span.start for span, numeric in chosen if numeric], dtype=np.intp)

    @cached_property
    def tables(self) -> tuple[Floats | None, ...]:
        """The contrast table V (levels, levels - 1) of each categorical column; None for numbers."""
        pairs = zip(self.widths, self.is_numeric, strict=True)
        return tuple(None if numeric else contrasts(width + 1) for width, numeric in pairs)

    @cached_property
    def squared_lengths(self) -> Floats:
        """The largest |u_c|^2 of each column; of a categorical one, the only."""
        shares = [0.25 if numeric else k / (k + 1) for k, numeric in zip(self.widths, self.is_numeric, strict=True)]
        return np.array(shares) / self.n_columns

    @cached_property
    def square_middle(self) -> float:
        """The middle of y_j^2 for a number, 1/(8p), which is also the largest |h_j|."""
        return 1 / (8 * self.n_columns)

    @cached_property
    def largest_h(self) -> float:
        """The largest |h|."""
        return len(self.numeric_indices) * self.square_middle

    @cached_property
    def kappa(self) -> float:
        """The public part of |y|^2."""
        categorical = ~np.array(self.is_numeric)
        return float(self.squared_lengths[categorical].sum()) + self.largest_h

    @cached_property
    def embedding(self) -> Floats:
        """U (features, coordinates): slopes in x are U times slopes in y."""
        made = np.zeros((self.schema.n_features, self.size))
        for span, features, table in zip(self.slices, self.parts.feature_slices.values(), self.tables, strict=True):
            made[features, span] = 1.0 if table is None else table
        return made

    def of_rows(self, features: Floats) -> Floats:
        """Coordinates of encoded rows (features in [0, 1], one-hot levels)."""
        made = np.empty((len(features), self.size))
        for span, of_column, table in zip(self.slices, self.parts.feature_slices.values(), self.tables, strict=True):
            if table is None:
                np.divide(features[:, of_column] - 0.5, self.scale, out=made[:, span])
            elif table.shape[1]:
                made[:, span] = (table / self.scale)[np.argmax(features[:, of_column], axis=1)]
        return made

    def of_points(self, raw: Floats) -> Floats:
        """Coordinates of complete raw rows or points."""
        return self.of_rows(self.schema.features(raw)[0])

    def squares(self, y: Floats) -> Floats:
        """h_j of every numeric column (rows, numbers)."""
        numbers = y[:, self.numeric_indices]
        return np.asarray(numbers * numbers - self.square_middle)


@dataclass(frozen=True)
class Partition:
    """A partition of all rows by the levels of a few categorical columns; without columns, one cell.

    Inside a cell these columns are constant: their coordinates are public there, and only the *rest* is private.

    Parameters
    ----------
    schema : Schema
        All feature columns.
    columns : tuple of str
        The categorical columns that are cut by.

    Examples
    --------
    >>> from vitrail.schema import Categorical
    >>> schema = Schema({"age": Numeric(0, 100), "sex": Categorical(["Female", "Male"])})
    >>> cells = Partition(schema, ("sex",))
    >>> cells.count, cells.rest.size, cells.fixed.round(2).tolist()
    (2, 1, [[0.5], [-0.5]])
    """

    schema: Schema
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.columns:
            self.schema.column_index(name)  # an error that says which columns there are
            if isinstance(self.schema[name], Numeric):
                raise InvalidInput(f"cells are cut by the levels of categorical columns; {name!r} is numeric")
        if len(set(self.columns)) < len(self.columns) or set(self.columns) >= set(self.schema.names):
            raise InvalidInput(f"cells are cut by {self.columns}; name different columns, and leave at least one")

    @cached_property
    def whole(self) -> Coordinates:
        """The coordinates of all columns."""
        return Coordinates(self.schema)

    @cached_property
    def rest(self) -> Coordinates:
        """The coordinates of the columns that are not cut by."""
        return Coordinates(self.schema.without(*self.columns), self.schema.n_columns) if self.columns else self.whole

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The numbers of levels of the columns that are cut by."""
        return tuple(self.whole.widths[self.whole.parts.column_index(name)] + 1 for name in self.columns)

    @cached_property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(self.levels)

    @cached_property
    def fixed_indices(self) -> Indices:
        """Coordinate indices of the cut columns."""
        spans = [self.whole.slices[self.whole.parts.column_index(name)] for name in self.columns]
        return np.array([index for span in spans for index in range(span.start, span.stop)], dtype=np.intp)

    @cached_property
    def fixed(self) -> Floats:
        """The coordinates of the cut columns in every cell (cells, coordinates)."""
        chosen = np.unravel_index(np.arange(self.count), self.levels) if self.columns else ()
        tables = [contrasts(count) / self.whole.scale for count in self.levels]
        parts = [table[level] for table, level in zip(tables, chosen, strict=True)]
        return np.hstack([np.zeros((self.count, 0)), *parts])

    def index(self, features: Floats) -> Indices:
        """The cell of every encoded row."""
        cell = np.zeros(len(features), dtype=np.intp)
        for name, count in zip(self.columns, self.levels, strict=True):
            cell = cell * count + np.argmax(features[:, self.schema.feature_slices[name]], axis=1)
        return cell

    def rest_features(self, features: Floats) -> Floats:
        """The features of the columns that are not cut by."""
        if not self.columns:
            return features
        kept = [span for name, span in self.schema.feature_slices.items() if name not in self.columns]
        return np.hstack([features[:, span] for span in kept])


def contrasts(levels: int) -> Floats:
    """Orthonormal columns (levels, levels - 1) that add up to zero, by Helmert; its rows all have the same length.

    Examples
    --------
    >>> contrasts(3).round(3)
    array([[ 0.707,  0.408],
           [-0.707,  0.408],
           [ 0.   , -0.816]])
    """
    return np.ascontiguousarray(helmert(levels).T) if levels > 1 else np.zeros((1, 0))
