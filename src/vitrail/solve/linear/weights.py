"""Weights (``vt.weights``): how much a row counts for the explanation of a point, by their distance; values in [0, 1].

Patel, Shokri & Zick bound a row's gradient 2 alpha(d) d (d + 1) by c; a weight with that property is in F(c). What
the vault needs is weaker and enforced there: weights are clipped to [0, 1], and a row's contribution to a release is
lowered to the bound that the noise is made for. So a wrong constant here costs accuracy, never privacy. Weights that
are unbounded (1/d) are refused all the same: no rescaling makes them a weighting of neighbours under which one row's
influence is bounded.

Examples
--------
>>> import numpy as np, vitrail as vt
>>> vt.weights.exponential(0.3)(np.array([0.0, 0.5])).round(3)
array([1.   , 0.435])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ... import _checks
from ..._types import Floats
from ...accounting import JsonValue
from ...errors import InvalidInput

_DISTANCES = 20_001


@dataclass(frozen=True)
class Weight:
    """A weight function of the distance, element-wise to [0, 1], its name, and the numbers it depends on.

    Examples
    --------
    >>> stable(c=1.0)(np.array([0.1, 1.0]))
    array([1.  , 0.25])
    """

    name: str
    function: Callable[[Floats], Floats]
    parameters: tuple[tuple[str, float], ...] = ()

    def __call__(self, distances: Floats) -> Floats:
        """Weights of rows at these distances."""
        return np.asarray(self.function(np.asarray(distances, dtype=np.float64)), dtype=np.float64)

    def to_json(self) -> dict[str, JsonValue]:
        """Name and parameters."""
        return {"name": self.name, **dict(self.parameters)}

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> Weight:
        """What ``to_json`` wrote; a function of somebody's own comes back as a name that cannot be called."""
        name = str(fields["name"])
        parameters = {key: float(str(value)) for key, value in fields.items() if key != "name"}

        def lost(_distances: Floats) -> Floats:
            raise InvalidInput(f"the stored weight {name!r} is a function of its author's own; give it again with weight=")

        return NAMED[name](**parameters) if name in NAMED else cls(name, lost, tuple(parameters.items()))

    def gradient_constant(self, largest_distance: float, radius: float = 1.0) -> float:
        """The smallest c with 2 alpha(d) d (radius d + 1) <= c up to ``largest_distance``: a row's pull on a gradient."""
        d = np.linspace(0.0, largest_distance, _DISTANCES)
        return float((2 * self(d) * d * (radius * d + 1)).max())


def stable(c: float = 1.0) -> Weight:
    """The paper's equation 5: 1 up to r = (sqrt(2c + 1) - 1)/2, then c/(2d(1 + d)): in F(c) everywhere."""
    c = _checks.positive("c", c, of="the stable weight")
    r = (math.sqrt(2 * c + 1) - 1) / 2

    def function(d: Floats) -> Floats:
        far = np.maximum(d, r)
        return np.asarray(np.minimum(c / 2 / (far * (1 + far)), 1.0))  # at r it is 1, up to rounding

    return Weight("stable", function, (("c", c),))


def polynomial() -> Weight:
    """1 - d^2/4 on [0, 2]: a polynomial in d^2, for which the synopsis is exact."""
    return Weight("polynomial", lambda d: np.maximum(1 - d * d / 4, 0.0))


def exponential(width: float = 1.0) -> Weight:
    """exp(-d^2/width): sharp for small widths. The paper's exp(-d^2) is width 1, and in F(1.5271), not F(1)."""
    width = _checks.positive("width", width, of="the exponential weight")
    return Weight("exponential", lambda d: np.exp(-d * d / width), (("width", width),))


def inverse_quadratic(width: float = 1.0) -> Weight:
    """1/(1 + d^2/width): heavy-tailed."""
    width = _checks.positive("width", width, of="the inverse-quadratic weight")
    return Weight("inverse-quadratic", lambda d: 1 / (1 + d * d / width), (("width", width),))


# Weights that their name and parameters tell; others are functions.
NAMED: Mapping[str, Callable[..., Weight]] = MappingProxyType(
    {"stable": stable, "polynomial": polynomial, "exponential": exponential, "inverse-quadratic": inverse_quadratic}
)


def custom(function: Callable[[Floats], Floats], *, name: str = "custom", largest_distance: float = 2.0) -> Weight:
    """A weight of the user's own, after a look at it on public distances.

    Examples
    --------
    >>> try:
    ...     custom(lambda d: 1 / d)
    ... except InvalidInput as error:
    ...     print(str(error).split(":")[0])
    the weight 'custom' reaches inf at distance 0, and must stay in [0, 1]
    """
    if not callable(function):
        raise InvalidInput(f"weight is {function!r}; give vt.weights.stable() or another of vt.weights, or a function")
    d = np.linspace(0.0, largest_distance, _DISTANCES)
    with np.errstate(all="ignore"):
        values = np.asarray(function(d.copy()), dtype=np.float64)
    if values.shape != d.shape:
        raise InvalidInput(f"the weight {name!r} returned shape {values.shape} for {d.shape} distances; it is element-wise")
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        first = int(np.argmax(bad))
        raise InvalidInput(
            f"the weight {name!r} reaches {values[first]:g} at distance {d[first]:g}, and must stay in [0, 1]: one row next "
            "to the point would decide the explanation alone. Cap it, for example np.minimum(1, ...)"
        )
    return Weight(name, function)
