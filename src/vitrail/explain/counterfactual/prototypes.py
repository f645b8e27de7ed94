"""What the classes look like, in one bounded sum: the mean code of each class, and how its columns are distributed.

A row of class s contributes one-hot(s) x (code, 1) and, where they are not too many, one-hot(s) x one-hot(bin) for each of
d columns. With |code| <= 1 the first block has norm at most sqrt 2; the second has d ones, norm sqrt d exactly. They are
weighted by w1 and w2 with 2 w1^2 + d w2^2 = 1, so that a row's norm is at most 1.

*Replace-one.* Two rows of one class: their codes are at most 2 apart and their counts cancel, so the first blocks are at
most 2 apart; in the second they differ in at most two places per column, sqrt(2 d). Two rows of different classes: other
places, sqrt(2 + 2) = 2 and sqrt(2 d). (For codes of length C the first is max(2 C, sqrt(2 (C^2 + 1))).) Together at most
sqrt(4 w1^2 + 2 d w2^2) = sqrt 2. A row without a class counts zero, which is at most 1 from any other. Codes are cut to
length 1 on every row, here. The class is that of the public model's output for the row, or its label.

Test: tests/explain/counterfactual/test_counterfactual_bounds.py, tests/audit/test_counterfactual_audit.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...schema.bins import Bins
from ...solve.counterfactual.codes import AnyCode, Weights
from .moments import HAIR, shortened

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
VERSION = 1


@dataclass(frozen=True, eq=False)
class ClassSums:
    """What a row contributes, as a function of a block."""

    classes: Callable[[Block], Indices]
    n_classes: int
    code: AnyCode
    scale: float
    bins: tuple[Bins, ...]

    @property
    def weights(self) -> Weights:
        """Of the blocks."""
        return Weights.of(len(self.bins))

    @property
    def width(self) -> int:
        """How many numbers a class has: its code, its count, its bins."""
        return self.code.size + 1 + sum(map(len, self.bins))

    def __call__(self, block: Block) -> Floats:
        """(rows, classes x width), weighted; NaN for a row without a class."""
        place = self.classes(block)
        codes = self.code.encode(shortened(block.features, self.scale))
        rows = np.arange(len(block))
        told = np.zeros((len(block), self.width))
        told[:, : self.code.size] = codes * self.weights.codes
        told[:, self.code.size] = self.weights.codes
        start = self.code.size + 1
        for one in self.bins:
            told[rows, start + one.index(block.column(one.name))] = self.weights.marginals
            start += len(one)
        made = np.zeros((len(block), self.n_classes, self.width))
        made[rows, np.maximum(place, 0)] = told
        made[place < 0] = np.nan
        return made.reshape(len(block), -1)

    def question(self, identity: object, has_key: bool) -> BoundedSum:
        """The sum to ask for."""
        from ...vault import BoundedSum  # here, so that stored counterfactuals can be used without loading the vault

        key = {
            "kind": "counterfactual-classes",
            "version": VERSION,
            "code": self.code.digest(),
            "scale": self.scale,
            "bins": [one.to_json() for one in self.bins],
            "of": identity,
        }
        return BoundedSum(
            self,
            size=self.n_classes * self.width,
            l2_bound=HAIR,
            replace_bound=math.sqrt(2.0) * HAIR,
            key=json.dumps(key, sort_keys=True) if has_key else None,
            label=f"counterfactuals: prototypes of {self.n_classes} classes",
        )
