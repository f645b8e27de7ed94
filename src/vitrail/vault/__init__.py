"""TRUSTED. The only room with raw rows: the questions that can be asked of them, exact sums, noise, and the charge first."""

from ..accounting.releases import Release
from .private_data import PrivateData
from .questions.bounded_sum import BoundedSum
from .questions.cell_counts import CellCounts, root_up
from .questions.gram_sum import GramSum
from .questions.grouped_sum import GroupedSum
from .questions.laplace_sum import LaplaceSum
from .questions.product_sum import ProductSum
from .questions.question import Question
from .questions.select import Select
from .quote import Quote, price_tag
from .rehearsal import PublicRows, rehearse
from .rows.block import Block
from .rows.tables import Table
from .sums.device import check_device
from .training.choice import HELD_OUT_SHARE, MapChoice, choose_run
from .training.feature_curves import Curve, FeatureCurves
from .training.map_gradients import MapScores, map_scores
from .training.plan import MapTraining, noise_for, run_epsilon
from .training.run import TrainedMaps, on_device, train_maps

__all__ = [
    "HELD_OUT_SHARE",
    "Block",
    "BoundedSum",
    "CellCounts",
    "Curve",
    "FeatureCurves",
    "GramSum",
    "GroupedSum",
    "LaplaceSum",
    "MapChoice",
    "MapScores",
    "MapTraining",
    "PrivateData",
    "ProductSum",
    "PublicRows",
    "Question",
    "Quote",
    "Release",
    "Select",
    "Table",
    "TrainedMaps",
    "check_device",
    "choose_run",
    "map_scores",
    "noise_for",
    "on_device",
    "price_tag",
    "rehearse",
    "root_up",
    "run_epsilon",
    "train_maps",
]
