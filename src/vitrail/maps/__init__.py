"""Models that explain themselves, trained under differential privacy: locally linear maps."""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("locally linear maps are scikit-learn estimators, and it is not installed; install vitrail[maps]")

from .files import load_maps, save_maps
from .locally_linear import LocallyLinearClassifier
from .settings import PictureFilters
from .tuning import TunedMaps, tune_locally_linear

__all__ = ["LocallyLinearClassifier", "PictureFilters", "TunedMaps", "load_maps", "save_maps", "tune_locally_linear"]
