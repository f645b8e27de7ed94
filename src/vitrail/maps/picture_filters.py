"""Public linear filters for pictures: what the maps are trained on, so that noise falls where it hurts least.

A map on pixels is w . x. Training w = A' m instead, with a fixed public A, gives the same family of maps (those in the
span of A), and everything stays linear in the pixels; but the noise of private training now lies in m. With A the slow
cosine pictures (a discrete cosine transform), noise goes to smooth patterns only, and a map needs a few hundred numbers
instead of one per pixel. ``even`` shrinks the flat picture, which says how bright a picture is and otherwise takes up most
of every gradient.

*Shifts.* A picture moved by a pixel is the same digit. The gradients of the moved pictures are averaged *within* a row,
before its clip (``vault.map_gradients``, copies), so a row still adds one vector of bounded norm. Moving is linear as
well: a copy is just another A.

Nothing here looks at data: all of it follows from the shape of a picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput

_WAYS = {
    0: (),
    4: ((1, 0), (-1, 0), (0, 1), (0, -1)),
    8: ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)),
}


@dataclass(frozen=True)
class PictureFilters:
    """Train maps of pictures on smooth patterns, and on pictures moved by a pixel.

    Parameters
    ----------
    shape : (int, int)
        Height and width of a picture; its pixels are the columns, row by row.
    size : int
        How many cosine waves in each direction: ``size ** 2`` numbers per map.
    tilt : float
        Waves are scaled by (1 + frequency) ** -tilt.
    even : float
        Scale of the flat picture, in (0, 1].
    shifts : {0, 4, 8}
        In how many directions a picture is also moved by one pixel in training.
    mirror : bool
        Whether it is also mirrored, left to right.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.PictureFilters((28, 28), size=14, shifts=4).matrices().shape
    (196, 5, 784)
    """

    shape: tuple[int, int]
    size: int = 16
    tilt: float = 0.0
    even: float = 0.1
    shifts: int = 4
    mirror: bool = False

    def __post_init__(self) -> None:
        if len(self.shape) != 2 or min(self.shape) < 2:
            raise InvalidInput(f"shape of PictureFilters is {self.shape!r}; it must be a height and a width")
        if not 1 <= self.size <= min(self.shape):
            raise InvalidInput(f"size of PictureFilters is {self.size!r}; it must lie from 1 to {min(self.shape)}")
        if self.shifts not in _WAYS:
            raise InvalidInput(f"shifts of PictureFilters is {self.shifts!r}; it must be 0, 4 or 8")
        if not 0 < self.even <= 1 or not math.isfinite(self.tilt):
            raise InvalidInput(f"even is {self.even!r} and tilt {self.tilt!r}; even must lie in (0, 1] and tilt be a number")

    @property
    def n_copies(self) -> int:
        """How many pictures stand for one in training."""
        return 1 + self.shifts + self.mirror

    def matrices(self) -> NDArray[np.float32]:
        """From pixels to inputs: shape (size ** 2, copies, pixels); copy 0 is the picture as it is."""
        height, width = self.shape
        down, right = _waves(height, self.size), _waves(width, self.size)
        frequency = np.hypot(np.arange(self.size)[:, None], np.arange(self.size)[None, :])
        scale = (1 + frequency) ** -self.tilt
        scale *= math.sqrt(self.size**2 / float((scale**2).sum()))
        scale[0, 0] *= self.even
        pictures = np.einsum("ay,bx,ab->abyx", down, right, scale).reshape(self.size**2, height, width)
        copies = [pictures, *(_moved(pictures, *way) for way in _WAYS[self.shifts])]
        if self.mirror:
            copies.append(pictures[:, :, ::-1])
        return np.stack(copies, axis=1).reshape(self.size**2, self.n_copies, -1).astype(np.float32)


def _waves(length: int, size: int) -> NDArray[np.float64]:
    """Orthonormal cosines, slowest first: (size, length)."""
    places = (np.arange(length) + 0.5) / length
    lengths = np.where(np.arange(size) > 0, math.sqrt(2), 1.0)[:, None]
    return np.asarray(np.cos(np.pi * np.outer(np.arange(size), places)) * lengths / math.sqrt(length))


def _moved(pictures: NDArray[np.float64], down: int, right: int) -> NDArray[np.float64]:
    """Filters that see a picture as if it had been moved; what leaves the frame is lost, what enters is black."""
    height, width = pictures.shape[1:]
    moved = np.zeros_like(pictures)
    seen = slice(max(0, down), height + min(0, down)), slice(max(0, right), width + min(0, right))
    from_ = slice(max(0, -down), height + min(0, -down)), slice(max(0, -right), width + min(0, -right))
    moved[:, from_[0], from_[1]] = pictures[:, seen[0], seen[1]]
    return moved
