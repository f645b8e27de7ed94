"""What explainers return: contributions with their noise bands, the promise and its price. No rows, no vault, no ledger."""

from .contribution import Contribution
from .explanation import Explanation
from .plots import ExplanationPlots

__all__ = ["Contribution", "Explanation", "ExplanationPlots"]
