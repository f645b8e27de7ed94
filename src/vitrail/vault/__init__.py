"""TRUSTED. The only room with raw rows: the questions that can be asked of them, exact sums, noise, and the charge first."""

from .block import Block
from .bounded_sum import BoundedSum
from .gram_sum import GramSum
from .grouped_sum import GroupedSum
from .private_data import PrivateData
from .product_sum import ProductSum
from .question import Question
from .quote import Quote
from .rehearsal import rehearse
from .release import Release
from .sampled_sum import SampledSum
from .select import Select

__all__ = [
    "Block",
    "BoundedSum",
    "GramSum",
    "GroupedSum",
    "PrivateData",
    "ProductSum",
    "Question",
    "Quote",
    "Release",
    "SampledSum",
    "Select",
    "rehearse",
]
