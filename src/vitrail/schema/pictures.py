"""Pictures as rows of pixels, and the patches or superpixels by which explanations of pictures speak.

Every pixel is a column, because the model needs them all. An explanation may be made of pixels too; but noise grows with
the number of columns, and people point at regions. A picture with regions is a view: a column per region, the mean of its
pixels.

*The bound.* Features of pixels lie in [0, 1], so does the mean of a region's, and R regions are at most sqrt(R) long.
Computed sums of numbers in [0, 1] may exceed their count by rounding, so means are cut at 1. Pixels are added one after
another, elementwise over rows: what a row shows depends on that row alone, bit for bit. Test: tests/test_pictures.py.

*The partition is public*: a grid, a label map of the user's own, or regions of the explained picture itself
(:meth:`Picture.around`), which is public because whoever asks for its explanation names it. Never of a private picture.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._types import Indices
from ..errors import InvalidInput, SchemaError
from ..nothing_escapes import attempt, hushed
from .columns import Numeric
from .layout import FloatArray
from .schema import Schema


@dataclass(frozen=True, eq=False)
class Picture:
    """Grey pictures of one size as columns of pixels, and the public regions that explain them.

    Parameters
    ----------
    shape : (int, int)
        Height and width in pixels.
    patches : (int, int), optional
        Explain by rectangles of this height and width; those at the right and lower edge may be smaller.
    superpixels : array of int, shape (height, width), optional
        Explain by regions of your own: the number of the region that each pixel belongs to, 0, 1, 2, ... with none left out.
    high : float
        The value of a white pixel; black is 0.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> picture = vt.Picture((4, 4), patches=(2, 2), high=1)
    >>> picture.view_schema().names
    ('patch 0,0', 'patch 0,1', 'patch 1,0', 'patch 1,1')
    >>> bright = np.zeros((4, 4)); bright[:2, 2:] = 1
    >>> picture.look(picture.schema().features(picture.schema().read_points(picture.rows(bright)))[0])
    array([[0., 1., 0., 0.]])

    Give the columns to ``PrivateData`` and the picture itself to the explainer, and to ``e.plot.image``:

    >>> images = np.random.default_rng(0).uniform(size=(2000, 4, 4))
    >>> data = vt.PrivateData(
    ...     picture.rows(images), picture.schema(), name="photographs", n_rows_public=2000, budget=vt.Budget(9, 1e-6))
    >>> model = vt.Model(lambda pixels: pixels[:, [2, 3, 6, 7]].mean(axis=1), range=(0, 1), name="upper right corner")
    >>> e = vt.LocalLinear(data, model, view=picture)(picture.rows(bright), epsilon=8)
    >>> e.top(1)[0].column
    'patch 0,1'
    """

    shape: tuple[int, int]
    _: KW_ONLY
    patches: tuple[int, int] | None = None
    superpixels: NDArray[np.integer] | None = None
    high: float = 255.0

    def __post_init__(self) -> None:
        height, width = shape = _checks.pair("shape", self.shape, "a height and a width in pixels, such as (28, 28)")
        patches, superpixels = self.patches, self.superpixels
        if patches is not None and superpixels is not None:
            raise InvalidInput("a picture was given patches and superpixels; give one of the two, or neither for pixels")
        if patches is not None:
            patches = _checks.pair("patches", patches, "a height and a width in pixels, such as (4, 4)")
            across = -(-width // patches[1])
            superpixels = np.add.outer(np.arange(height) // patches[0] * across, np.arange(width) // patches[1])
        elif superpixels is not None:
            superpixels = np.asarray(superpixels)
            if superpixels.shape != shape or superpixels.dtype.kind not in "iu":
                raise InvalidInput(
                    f"superpixels have shape {superpixels.shape} and dtype {superpixels.dtype}; they must be whole numbers "
                    f"of shape {shape}"
                )
            superpixels = superpixels.astype(np.intp)
            numbers = np.unique(superpixels)
            if numbers[0] != 0 or numbers[-1] != len(numbers) - 1:
                raise InvalidInput(
                    f"superpixels hold {len(numbers)} different numbers from {numbers[0]} to {numbers[-1]}; they must be 0, "
                    "1, 2, ... with none left out"
                )
        if superpixels is not None:
            superpixels.flags.writeable = False
        fixed = {"shape": shape, "patches": patches, "superpixels": superpixels, "high": Numeric(0, self.high).high}
        for name, value in fixed.items():
            object.__setattr__(self, name, value)

    @classmethod
    def around(
        cls, public_image: FloatArray, n_regions: int = 40, *, compactness: float = 0.5, high: float = 255.0
    ) -> Picture:
        """Regions of similar brightness of one PUBLIC picture, the one to be explained.

        The regions are scikit-image's SLIC superpixels (``pip install 'vitrail[pictures]'``): connected, and the same for
        the same picture.

        Parameters
        ----------
        public_image : array (height, width)
            Never a private one: the regions show its outlines.
        n_regions : int
            About how many.
        compactness : float
            How much nearness counts against brightness: regions become squares as it grows.
        high : float
            The value of a white pixel.
        """
        image = np.asarray(public_image)
        if image.ndim != 2 or image.dtype.kind not in "biuf" or not np.isfinite(image).all():
            raise InvalidInput(f"public_image has shape {image.shape}; it must be finite brightness, (height, width)")
        bright = np.clip(image.astype(np.float64) / Numeric(0, high).high, 0.0, 1.0)
        return cls(bright.shape, superpixels=_superpixels(bright, n_regions, compactness), high=high)

    def __repr__(self) -> str:
        return f"Picture({self.shape[0]} x {self.shape[1]}, {self.n_regions} {self.parts})"

    @property
    def n_regions(self) -> int:
        """How many columns an explanation has."""
        return self.shape[0] * self.shape[1] if self.superpixels is None else int(self.superpixels.max()) + 1

    @property
    def parts(self) -> str:
        """What its regions are called: pixels, patches or superpixels."""
        return "pixels" if self.superpixels is None else "patches" if self.patches is not None else "superpixels"

    @property
    def region_of_pixels(self) -> Indices:
        """The number of the region that each pixel belongs to."""
        pixels = np.arange(self.shape[0] * self.shape[1]).reshape(self.shape)
        return pixels if self.superpixels is None else self.superpixels.astype(np.intp, copy=False)

    def rows(self, images: object) -> dict[str, NDArray[np.generic]]:
        """Pictures as columns, pixel by pixel.

        Parameters
        ----------
        images : array (rows, height, width), (rows, height * width) or (height, width)
            Numbers from 0 (black) to ``high`` (white). A picture of a list that is no such array becomes missing.
        """
        array = hushed(lambda: self._array(images))
        size = self.shape[0] * self.shape[1]
        if array.shape == self.shape:
            array = array[None]
        if array.dtype.kind not in "biuf" or array.shape[1:] not in (self.shape, (size,)):
            raise SchemaError(
                f"pictures are {array.dtype} with dimensions {array.shape[1:]} each; they must be numbers, each of shape "
                f"{self.shape} or {(size,)}"
            )
        pixels = np.ascontiguousarray(array.reshape(len(array), size).T)
        return dict(zip(self._pixel_names, pixels, strict=True))

    def _array(self, images: object) -> NDArray[Any]:
        """One array; of a list in which a picture has another shape or holds something else, picture by picture."""
        array = attempt(lambda: np.asarray(images), None)
        if array is not None and (array.dtype.kind in "biuf" or not isinstance(images, list | tuple)):
            return array
        if not isinstance(images, list | tuple):
            raise SchemaError(f"pictures are given as {type(images).__name__}; give an array")
        made = np.full((len(images), *self.shape), np.nan)
        for row, image in enumerate(images):
            pixels = attempt(lambda image=image: np.asarray(image), None)  # type: ignore[misc]
            if pixels is not None and pixels.dtype.kind in "biuf" and pixels.size == made[row].size:
                made[row] = pixels.reshape(self.shape)
        return made

    # --- the view ----------------------------------------------------------------------------------------------------

    def schema(self) -> Schema:
        """The columns of the rows: every pixel, from 0 to ``high``, line by line."""
        return self._schema

    def view_schema(self) -> Schema:
        """The columns of an explanation: every region's mean, or the pixels themselves."""
        return self._view_schema

    @cached_property
    def _pixel_names(self) -> tuple[str, ...]:
        return tuple(f"pixel {row},{column}" for row in range(self.shape[0]) for column in range(self.shape[1]))

    @cached_property
    def _schema(self) -> Schema:
        return Schema(dict.fromkeys(self._pixel_names, Numeric(0, self.high)))

    @cached_property
    def _view_schema(self) -> Schema:
        if self.superpixels is None:
            return self._schema
        if self.patches is None:
            names = [f"superpixel {region}" for region in range(self.n_regions)]
        else:
            across = -(-self.shape[1] // self.patches[1])
            names = [f"patch {region // across},{region % across}" for region in range(self.n_regions)]
        return Schema(dict.fromkeys(names, Numeric(0, self.high)))

    @property
    def largest_norm(self) -> float:
        """sqrt(R): R means in [0, 1]."""
        return math.sqrt(self.n_regions)

    def look(self, features: FloatArray) -> FloatArray:
        """The mean of every region."""
        if self.superpixels is None:
            return features
        owner = self.superpixels.ravel()
        by_pixel = np.ascontiguousarray(features.T)
        sums = np.zeros((self.n_regions, len(features)))
        for pixel, region in enumerate(owner.tolist()):
            sums[region] += by_pixel[pixel]
        sums /= np.bincount(owner).astype(np.float64)[:, None]
        return np.ascontiguousarray(np.minimum(sums, 1.0, out=sums).T)

    @property
    def note(self) -> str:
        """What a reader should know."""
        scale = f"coefficients are for columns divided by {self.largest_norm:.4g}"
        if self.superpixels is None:
            return f"Explained by {self.n_regions} pixels; {scale}."
        return f"Explained by the means of {self.n_regions} {self.parts}, while the model sees every pixel; {scale}."

    def digest(self) -> str:
        """A hash of size, regions and range."""
        owner = None if self.superpixels is None else self.superpixels.tolist()
        return hashlib.sha256(json.dumps(["picture 1", self.shape, owner, self.high]).encode()).hexdigest()


def _superpixels(bright: FloatArray, n_regions: int, compactness: float) -> Indices:
    """Region numbers 0, 1, 2, ... of a picture with brightness in [0, 1]: k-means on (brightness, position), connected."""
    _checks.whole("n_regions", n_regions, most=bright.size)
    _checks.positive("compactness", compactness)
    try:
        from skimage.segmentation import slic
    except ImportError as error:
        raise InvalidInput(
            "regions of a picture are found by scikit-image, which is not installed; install it with: pip install "
            "'vitrail[pictures]', or give superpixels= of your own"
        ) from error
    regions = slic(bright, n_segments=n_regions, compactness=compactness, channel_axis=None, start_label=0)
    return np.unique(regions, return_inverse=True)[1].reshape(bright.shape)
