"""Private Shapley values: permutation contributions per private row, clipped, in one noisy sum."""

from .quote import ShapleyQuote
from .shapley import Shapley

__all__ = ["Shapley", "ShapleyQuote"]
