"""TRUSTED. The only room with raw rows: the questions that can be asked of them, exact sums, noise, and the charge first."""

from ..releases import Release
from .block import Block
from .bounded_sum import BoundedSum
from .gram_sum import GramSum
from .grouped_sum import GroupedSum
from .map_gradients import MapScores, map_scores
from .private_data import PrivateData
from .product_sum import ProductSum
from .question import Question
from .quote import Quote
from .rehearsal import PublicRows, rehearse
from .sampled_sum import SampledSum
from .select import Select
from .training import MapTraining, TrainedMaps, train_maps
from .training_choice import JUDGING_SHARE, MapChoice, choose_run
from .training_price import noise_for, run_epsilon
from .training_rows import check_device, on_device

__all__ = [
    "JUDGING_SHARE",
    "Block",
    "BoundedSum",
    "GramSum",
    "GroupedSum",
    "MapChoice",
    "MapScores",
    "MapTraining",
    "PrivateData",
    "ProductSum",
    "PublicRows",
    "Question",
    "Quote",
    "Release",
    "SampledSum",
    "Select",
    "TrainedMaps",
    "check_device",
    "choose_run",
    "map_scores",
    "noise_for",
    "on_device",
    "rehearse",
    "run_epsilon",
    "train_maps",
]
