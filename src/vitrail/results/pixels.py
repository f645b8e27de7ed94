"""Which column a pixel belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

Places = NDArray[np.intp]


def column_of_pixels(
    columns: tuple[str, ...],
    shape: tuple[int, int],
    superpixels: NDArray[np.integer] | Mapping[str, Sequence[int]] | None,
) -> Places:
    """The number of the column that each pixel belongs to, -1 where there is none.

    Examples
    --------
    >>> column_of_pixels(("sky", "sea"), (2, 2), {"sky": [0, 1], "sea": [3]}).tolist()
    [[0, 0], [-1, 1]]
    """
    height, width = _checked_shape(shape)
    if superpixels is None:
        if len(columns) != height * width:
            raise InvalidInput(
                f"shape is {shape}, that is {height * width} pixels, and the explanation has {len(columns)} columns; give "
                "the shape of the picture, or superpixels= to say which pixels a column stands for"
            )
        return np.arange(height * width).reshape(height, width)
    if isinstance(superpixels, Mapping):
        return _of_mapping(columns, (height, width), superpixels)
    owner = np.asarray(superpixels)
    if owner.shape != (height, width) or owner.dtype.kind not in "iu":
        raise InvalidInput(
            f"superpixels have shape {owner.shape} and dtype {owner.dtype}; they must be whole numbers of shape {shape}"
        )
    if owner.min() < -1 or owner.max() >= len(columns):
        raise InvalidInput(
            f"superpixels hold numbers from {owner.min()} to {owner.max()}; they must be columns, numbered from 0 to "
            f"{len(columns) - 1}, or -1 for none"
        )
    return owner.astype(np.intp)


def pixels_of_point(
    columns: tuple[str, ...], point: Mapping[str, object], shape: tuple[int, int]
) -> NDArray[np.float64] | None:
    """The point as a picture, or None where it is not made of numbers."""
    values = [point[name] for name in columns]
    if not all(isinstance(value, int | float) for value in values):
        return None
    return np.array(values, dtype=np.float64).reshape(shape)


def _of_mapping(columns: tuple[str, ...], shape: tuple[int, int], superpixels: Mapping[str, Sequence[int]]) -> Places:
    owner = np.full(shape[0] * shape[1], -1, dtype=np.intp)
    numbers = {name: number for number, name in enumerate(columns)}
    for name, given in superpixels.items():
        if name not in numbers:
            raise InvalidInput(f"superpixels name {name!r}, which is no column of the explanation")
        pixels = np.asarray(given)
        if pixels.size == 0:
            continue
        if pixels.ndim != 1 or pixels.dtype.kind not in "iu" or pixels.min() < 0 or pixels.max() >= owner.size:
            raise InvalidInput(f"superpixel {name!r} must be a list of pixels, whole numbers from 0 to {owner.size - 1}")
        if (owner[pixels] != -1).any():
            raise InvalidInput(
                f"superpixel {name!r} has a pixel that another one has too; every pixel belongs to one at most"
            )
        owner[pixels] = numbers[name]
    return owner.reshape(shape)


def _checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    whole = isinstance(shape, tuple | list) and len(shape) == 2
    if not whole or any(isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1 for size in shape):
        raise InvalidInput(f"shape is {shape!r}; it must be a height and a width in pixels, such as (28, 28)")
    return int(shape[0]), int(shape[1])
