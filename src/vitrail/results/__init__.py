"""What explainers return: contributions, curves, surfaces, rankings, with noise bands, promise and price. No rows."""

from .contribution import Contribution
from .curve import Curve, Density
from .explanation import Explanation
from .ranking import Ranking
from .surface import Surface

__all__ = ["Contribution", "Curve", "Density", "Explanation", "Ranking", "Surface"]
