"""Public facts about columns: bounds, levels, what a missing value stands for, and how rows become numbers.

Everything here is declared by the owner and printed freely. Rows pass through on their way to the vault, and each
output row depends on its own input row alone, bit for bit.
"""

from .columns import Categorical, Column, Level, Numeric
from .layout import BoolArray, FloatArray
from .pictures import Picture
from .rules import AtLeast, Group, Link, Rule, Within
from .schema import Schema, View
from .views import load_view, save_view
from .words import BagOfWords

__all__ = [
    "AtLeast",
    "BagOfWords",
    "BoolArray",
    "Categorical",
    "Column",
    "FloatArray",
    "Group",
    "Level",
    "Link",
    "Numeric",
    "Picture",
    "Rule",
    "Schema",
    "View",
    "Within",
    "load_view",
    "save_view",
]
