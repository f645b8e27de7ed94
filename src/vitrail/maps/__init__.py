"""Models that explain themselves, trained under differential privacy: locally linear maps."""

from .locally_linear import LocallyLinearClassifier
from .settings import PictureFilters
from .tuning import TunedMaps, tune_locally_linear

__all__ = ["LocallyLinearClassifier", "PictureFilters", "TunedMaps", "tune_locally_linear"]
