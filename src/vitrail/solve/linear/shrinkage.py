"""Shrink released sums towards what lower sums predict, as far as the noise says. Post-processing.

A block of k noisy sums with noise v on each, and a prediction of it: the positive-part James-Stein estimate moves the block
towards the prediction by the share (k - 2) v / |block - prediction|^2, at most all the way. For k >= 3 its expected squared
error is below that of the block itself, whatever the truth is, and far below where the prediction is good or the block is
mostly noise. Predictions here are independence: label and column, column and column, and for three of them no joint effect.
With little noise nothing moves; with much the excess loss falls. Single numbers pay for it: the estimate of a weak effect is
biased towards none, and bands of noise cover it less often. So it is a choice, and not the default.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .coordinates import Coordinates
from .tensors import Blocks, middles

Floats = NDArray[np.float64]


def shrink(coordinates: Coordinates, blocks: Blocks, noise: Mapping[str, float]) -> Blocks:
    """The blocks with F1, M2 and F2 shrunk; ``noise`` holds the standard deviation of each kind of sum."""
    slices = [place for place in coordinates.slices if place.stop > place.start]
    count, labelled = max(float(blocks.scalars[0]), 1.0), float(blocks.scalars[1])
    vectors = blocks.vectors.copy()
    m1, f1 = vectors[0], vectors[1]
    for place in slices:
        f1[place] = _towards(f1[place], labelled / count * m1[place], noise["F1"])
    both = np.outer(m1, m1) / count
    half = np.outer(f1, m1) / count
    predicted = (both, half + half.T - labelled / count * both)
    pairs = []
    for column, block in zip(middles(coordinates), blocks.pairs, strict=True):
        first = coordinates.slices[column]
        block = block.copy()
        for second in slices:
            if second.start >= first.stop:
                where = slice(second.start - first.stop, second.stop - first.stop)
                for kind, name in enumerate(("M2", "F2")):
                    block[kind][:, where] = _towards(block[kind][:, where], predicted[kind][first, second], noise[name])
        pairs.append(block)
    return Blocks(blocks.scalars, vectors, blocks.squares, tuple(pairs))


def _towards(block: Floats, prediction: Floats, noise: float) -> Floats:
    if block.size < 3:
        return block
    away = block - prediction
    squares = float(np.vdot(away, away))
    kept = 1 - (block.size - 2) * noise**2 / squares if squares > 0 else 0.0
    return np.asarray(prediction + max(kept, 0.0) * away)
