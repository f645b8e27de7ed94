"""Numbers as several public curves of themselves, so that a linear map of a row is an additive model of its columns.

A number x in [0, 1] becomes P numbers c_1(x), ..., c_P(x), each read off a public table and straight between its knots;
other features stay as they are. Which curves there are follows from the schema alone. Where one of the *gates* of a number
is set (the features of its codes: no quantity), all its curves are 0.

*Row alone, bit for bit.* A comparison with public knots finds the piece, and the rest is single IEEE operations on single
numbers (no product of matrices, no exp): what a row becomes does not depend on the rows beside it. A gradient is clipped by
the length of the row *as it is here*, so the bound of ``map_gradients`` is about curves as it was about numbers.

Test: tests/maps/test_feature_curves.py::test_a_row_becomes_the_same_bits_whatever_stands_beside_it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...errors import InvalidInput

LARGEST_VALUE = 1e6
"""Of a curve: sums stay exact beyond, but no sensible table lies there."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The curves of one feature.

    Parameters
    ----------
    feature : int
        Its number among the features of the schema.
    knots : array (K,)
        Rising from 0 to 1.
    values : array (K, P)
        The curves at the knots.
    gates : tuple of int
        Features that set the curves to 0 where they are not 0.
    """

    feature: int
    knots: Floats
    values: Floats
    gates: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a table that is none; arrays are replaced by copies that nobody can change afterwards."""
        knots, values = (np.array(given, dtype=np.float64) for given in (self.knots, self.values))
        if knots.ndim != 1 or len(knots) < 2 or values.ndim != 2 or len(values) != len(knots) or not values.shape[1]:
            raise InvalidInput(
                f"a curve has knots of shape {knots.shape} and values of shape {values.shape}; (K,) and (K, P) are expected"
            )
        if knots[0] != 0 or knots[-1] != 1 or not (np.diff(knots) > 0).all():
            raise InvalidInput("the knots of a curve must rise from 0 to 1")
        if not (np.abs(values) <= LARGEST_VALUE).all():
            raise InvalidInput(f"a curve has values beyond {LARGEST_VALUE:g} or that are no numbers; scale them down")
        for name, array in (("knots", knots), ("values", values)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def of(self, features: Floats) -> Floats:
        """The curves (rows, P) at features (rows, P0)."""
        x = features[:, self.feature]
        piece = np.searchsorted(self.knots[1:-1], x, side="right")
        start, width = self.knots[:-1][piece], np.diff(self.knots)[piece]
        share = np.clip((x - start) / width, 0.0, 1.0)  # a feature outside [0, 1] is read at the end of the table
        made = np.diff(self.values, axis=0)[piece]
        made *= share[:, None]
        made += self.values[:-1][piece]
        if self.gates:
            made *= (features[:, list(self.gates)] == 0).all(axis=1)[:, None]
        return np.asarray(made)


@dataclass(frozen=True, eq=False)
class FeatureCurves:
    """Which features become curves; the others stay as they are, in their places.

    Parameters
    ----------
    n_features : int
        How many features a row has before.
    curves : tuple of Curve
        In the order of their features.

    Examples
    --------
    >>> tent = Curve(0, knots=[0.0, 0.5, 1.0], values=[[0.0], [1.0], [0.0]])
    >>> FeatureCurves(2, (tent,)).of(np.array([[0.25, 7.0], [1.0, 8.0]]))
    array([[0.5, 7. ],
           [0. , 8. ]])
    """

    n_features: int
    curves: tuple[Curve, ...]

    def __post_init__(self) -> None:
        """Refuse curves of features that there are not."""
        own = [curve.feature for curve in self.curves]
        used = [*own, *(gate for curve in self.curves for gate in curve.gates)]
        if own != sorted(set(own)) or not all(0 <= feature < self.n_features for feature in used):
            raise InvalidInput(
                f"curves are of the features {own!r}; they must be distinct, in order, and below {self.n_features}"
            )

    @cached_property
    def sources(self) -> NDArray[np.intp]:
        """The feature that each number of a curved row comes from."""
        counts = np.ones(self.n_features, dtype=np.intp)
        for curve in self.curves:
            counts[curve.feature] = curve.values.shape[1]
        return np.repeat(np.arange(self.n_features), counts)

    @property
    def width(self) -> int:
        """How many numbers a row has afterwards."""
        return len(self.sources)

    def of(self, features: Floats) -> Floats:
        """Curved rows (rows, width), each from its own features alone."""
        made = np.asarray(features, dtype=np.float64)[:, self.sources]
        for curve in self.curves:
            first = int(np.searchsorted(self.sources, curve.feature))
            made[:, first : first + curve.values.shape[1]] = curve.of(features)
        return made

    def names(self, features: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the numbers of a curved row: ``"age~1"`` is the first curve of age."""
        curved, number, made = {curve.feature for curve in self.curves}, 0, []
        for place, source in enumerate(self.sources):
            number = number + 1 if place and source == self.sources[place - 1] else 1
            made.append(f"{features[source]}~{number}" if int(source) in curved else features[source])
        return tuple(made)

    def by_feature(self, values: Floats) -> Floats:
        """Sums (rows, n_features) over the curves of each feature."""
        return np.asarray(np.add.reduceat(values, np.searchsorted(self.sources, np.arange(self.n_features)), axis=1))

    def digest(self) -> str:
        """SHA-256 of all that is in it."""
        hashed = hashlib.sha256(str(self.n_features).encode())
        for curve in self.curves:
            hashed.update(repr((curve.feature, curve.gates, curve.values.shape)).encode())
            hashed.update(curve.knots.tobytes() + curve.values.tobytes())
        return hashed.hexdigest()
