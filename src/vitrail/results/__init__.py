"""What explainers return: contributions, curves, surfaces, rankings, with noise bands, promise and price. No rows."""

from .attribution import Attribution
from .contribution import Contribution
from .curve import Curve, Density
from .plots import ExplanationPlots
from .ranking import Ranking
from .surface import Surface

__all__ = ["Attribution", "Contribution", "Curve", "Density", "ExplanationPlots", "Ranking", "Surface"]
