"""Regions of similar brightness of one public picture.

The idea of SLIC (Achanta et al. 2012): k-means on (brightness, place), started from a regular grid. Afterwards every region
is connected: a part that is cut off from the bulk of its region joins the neighbour it has most of its border with.
Deterministic: the same picture has the same regions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ..errors import InvalidInput

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

ROUNDS = 10


def superpixels_of(bright: Floats, n_regions: int, compactness: float) -> Labels:
    """Region numbers 0, 1, 2, ... of a picture with brightness in [0, 1].

    Examples
    --------
    >>> half = np.zeros((6, 6)); half[:, 3:] = 1
    >>> len(np.unique(superpixels_of(half, 4, 0.5)))
    4
    """
    height, width = bright.shape
    if isinstance(n_regions, bool) or not isinstance(n_regions, int | np.integer) or not 1 <= n_regions <= bright.size:
        raise InvalidInput(f"n_regions is {n_regions!r}; it must be a whole number from 1 to the number of pixels")
    if not 0 < compactness < math.inf:
        raise InvalidInput(f"compactness is {compactness!r}; it must be positive and finite")
    step = math.sqrt(bright.size / n_regions)
    down, across = max(1, round(height / step)), max(1, round(width / step))
    rows, columns = np.indices(bright.shape).astype(np.float64)
    pixels = np.stack([bright, rows * compactness / step, columns * compactness / step], axis=-1).reshape(-1, 3)
    start = np.add.outer(np.arange(height) * down // height * across, np.arange(width) * across // width)
    labels = start.ravel()
    for _ in range(ROUNDS):
        centres = _means(pixels, labels, down * across)
        nearest = _nearest(pixels, centres)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
    return _connected(labels.reshape(bright.shape))


def _means(pixels: Floats, labels: Labels, count: int) -> Floats:
    """The mean of every region that has pixels."""
    sizes = np.bincount(labels, minlength=count)
    sums = np.stack([np.bincount(labels, pixels[:, one], minlength=count) for one in range(pixels.shape[1])], axis=1)
    return np.asarray(sums[sizes > 0] / sizes[sizes > 0, None])


def _nearest(pixels: Floats, centres: Floats) -> Labels:
    best = np.full(len(pixels), np.inf)
    labels = np.zeros(len(pixels), dtype=np.intp)
    for number, centre in enumerate(centres):
        away = np.square(pixels - centre).sum(axis=1)
        labels[away < best] = number
        np.minimum(best, away, out=best)
    return labels


def _connected(labels: Labels) -> Labels:
    """The same regions without exclaves, numbered in the order in which they first appear."""
    bulk = np.full(labels.shape, -1, dtype=np.intp)
    for number in np.unique(labels):
        parts, count = ndimage.label(labels == number)
        sizes = np.bincount(parts.ravel(), minlength=count + 1)[1:]
        bulk[parts == 1 + int(np.argmax(sizes))] = number
    while (bulk < 0).any():
        loose, count = ndimage.label(bulk < 0)
        for part in range(1, count + 1):
            inside = loose == part
            border = ndimage.binary_dilation(inside) & (bulk >= 0)
            around = bulk[border]
            bulk[inside] = np.bincount(around).argmax() if around.size else 0
    _, first = np.unique(bulk, return_index=True)
    order = bulk.ravel()[np.sort(first)]
    renumbered = np.empty(int(bulk.max()) + 1, dtype=np.intp)
    renumbered[order] = np.arange(len(order))
    return np.asarray(renumbered[bulk])
