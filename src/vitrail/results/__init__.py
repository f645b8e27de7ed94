"""What explainers return: contributions, curves, surfaces, rankings, with noise bands, promise and price. No rows."""

from .attribution import Attribution, Contribution
from .base import Result
from .curve import Curve, Density, Surface
from .ranking import Ranking
from .verdict import Verdict

__all__ = ["Attribution", "Contribution", "Curve", "Density", "Ranking", "Result", "Surface", "Verdict"]
