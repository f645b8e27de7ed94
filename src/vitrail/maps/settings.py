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

The settings of a run: defaults that look at nothing but public numbers, and their checks.

From what a user gives to what a run trains on: checked, and scaled by declared bounds.

Arrays given the scikit-learn way are the caller's own: their checks (NaN, values outside the bounds, one class only) read
them and say so in an error, and their shapes and classes are taken as public, which ``guarantee_`` names. Rows of a
``PrivateData`` never come here: the vault reads them by the schema's own policy, in silence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from .._checks import positive, whole
from .._types import Floats
from ..accounting.guarantee import check_epsilon_delta
from ..errors import InvalidInput
from ..schema import Schema
from ..vault import MapTraining, noise_for
from .tables import curves_of, defaults_for_tables, defaults_otherwise, is_table

if TYPE_CHECKING:
    from .locally_linear import LocallyLinearClassifier

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

    def matrices(self) -> NDArray[np.float32]:
        """From pixels to inputs: shape (size ** 2, copies, pixels); copy 0 is the picture as it is."""
        height, width = self.shape
        down, right = _waves(height, self.size), _waves(width, self.size)
        frequency = np.hypot(np.arange(self.size)[:, None], np.arange(self.size)[None, :])
        scale = (1 + frequency) ** -self.tilt
        scale *= math.sqrt(self.size**2 / float((scale**2).sum()))
        scale[0, 0] *= self.even
        pictures = np.einsum("ay,bx,ab->abyx", down, right, scale).reshape(self.size**2, height, width)
        # Shifted by whole pixels, with zeros behind.
        copies = [pictures, *(ndimage.shift(pictures, (0, -y, -x), order=0) for y, x in _WAYS[self.shifts])]
        if self.mirror:
            copies.append(pictures[:, :, ::-1])
        return np.stack(copies, axis=1).reshape(self.size**2, len(copies), -1).astype(np.float32)


def _waves(length: int, size: int) -> Floats:
    """Orthonormal cosines, slowest first: (size, length)."""
    midpoints = (np.arange(length) + 0.5) / length
    lengths = np.where(np.arange(size) > 0, math.sqrt(2), 1.0)[:, None]
    return np.asarray(np.cos(np.pi * np.outer(np.arange(size), midpoints)) * lengths / math.sqrt(length))


# Projections are public and the same on every machine; nothing private is ever drawn from this.
PROJECTION_SEED = 20_200_207


def check_settings(model: LocallyLinearClassifier) -> None:
    """Refuse what cannot be run, before anything is read or charged."""
    if isinstance(model.epsilon, bool) or not isinstance(model.epsilon, int | float):
        raise InvalidInput(f"epsilon is {model.epsilon!r}; it must be a number, or math.inf for no privacy")
    if not math.isinf(model.epsilon) or model.epsilon < 0:
        check_epsilon_delta(model.epsilon, model.delta, "a LocallyLinearClassifier")
    if model.random_state is not None and math.isfinite(model.epsilon):
        raise InvalidInput(
            f"random_state is {model.random_state!r} in a private run; noise that can be drawn again hides nothing: "
            "leave it None, or train without privacy (epsilon=math.inf)"
        )
    given = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
    for name in given.keys() & {"n_maps", "steps", "batch_size", "projection"}:
        whole(name, given[name], most=10**12)
    if model.curves is not None:
        whole("curves", model.curves, least=0, most=10**4)
        if model.curves and (model.filters is not None or model.projection is not None):
            raise InvalidInput("curves are given together with filters or a projection; a map is trained on one of them")
    for name in given.keys() & {"clip", "learning_rate", "start", "row_length", "epochs"}:
        positive(name, given[name])
    if model.steps is not None and model.epochs is not None:
        raise InvalidInput("steps and epochs are both given; they say the same thing, give one")
    if model.filters is not None and model.projection is not None:
        raise InvalidInput("filters and projection are both given; a map is trained on one of them")


def plan_training(
    model: LocallyLinearClassifier,
    n_features: int,
    n_classes: int,
    n_rows_public: int,
    neighbours: str = "add-remove",
    noise_multiplier: float | None = None,
    *,
    schema: Schema | None = None,
) -> MapTraining:
    """The run, fixed: from a model's settings and public numbers; the noise is solved for unless it is given.

    ``n_features`` are those of the schema, where there is one, before they become curves.
    """
    check_settings(model)
    curves, open_ones = curves_of(model, schema), defaults_otherwise(n_rows_public)
    if schema is not None and is_table(model, schema):
        open_ones = defaults_for_tables(n_rows_public, schema.n_features, float(model.epsilon))
    if curves is not None:
        n_features = curves.width
    rate = min(1.0, (model.batch_size or open_ones.batch_size) / n_rows_public)
    steps = model.steps
    if steps is None:
        steps = open_ones.steps if model.epochs is None else max(1, round(model.epochs / rate))
    clip, n_maps = model.clip or open_ones.clip, int(model.n_maps or open_ones.n_maps)
    private = math.isfinite(model.epsilon)
    if noise_multiplier is None:
        noise_multiplier = noise_for(model.epsilon, model.delta, rate, steps, neighbours) if private else 0.0
    filters = None if model.filters is None else model.filters.matrices()
    if filters is not None and filters.shape[2] != n_features:
        raise InvalidInput(
            f"filters are for pictures of {filters.shape[2]} pixels and there are {n_features} features; give the shape "
            "of the pictures that X holds, row by row"
        )
    return MapTraining(
        n_classes=n_classes,
        n_maps=n_maps,
        noise_multiplier=noise_multiplier,
        sampling_rate=rate,
        steps=steps,
        epsilon=float(model.epsilon),
        delta=model.delta,
        expected_rows=rate * n_rows_public,
        beta=model.beta,
        clip=float(clip) if private else math.inf,
        learning_rate=model.learning_rate or open_ones.learning_rate,
        decay=model.decay,
        average=model.average,
        start=model.start,
        momentum=model.momentum,
        schedule=model.schedule,
        filters=filters,
        projections=None if model.projection is None else random_projections(n_maps, model.projection, n_features),
        row_length=model.row_length,
        curves=curves,
    )


def random_projections(n_maps: int, width: int, n_features: int) -> NDArray[np.float32]:
    """One per map, shared by the classes: entries N(0, 1/width), as in the paper; drawn from a public seed."""
    generator = np.random.Generator(np.random.PCG64(PROJECTION_SEED))
    drawn = generator.standard_normal((n_maps, width, n_features), dtype=np.float32)
    return drawn / np.float32(math.sqrt(width))


def checked_bounds(bounds: object, n_columns: int) -> tuple[Floats, Floats] | None:
    """Bounds as a pair of numbers, or of one number per column; None where none are declared."""
    if bounds is None:
        return None
    try:
        ends: tuple[object, ...] = tuple(bounds)  # type: ignore[arg-type]
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (n_columns,)).copy() for end in ends)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"bounds are {bounds!r}; they must be a pair (low, high) of numbers, or of {n_columns} numbers each"
        ) from error
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidInput("bounds must be finite, and every low end below its high end")
    return low, high


def scaled_by(bounds: tuple[Floats, Floats] | None, X: Floats) -> Floats:
    """Columns as features in [0, 1], or as they are without bounds; values outside are an error."""
    if bounds is None:
        return X
    low, high = bounds
    outside = ((low > X) | (high < X)).any(axis=0)
    if outside.any():
        column = int(np.flatnonzero(outside)[0])
        raise InvalidInput(
            f"X has values outside the declared bounds in column {column}, which are "
            f"[{low[column]:g}, {high[column]:g}]; widen bounds=, or clip X yourself"
        )
    return np.asarray((X - low) / (high - low))


def scaled_to_length(features: Floats, row_length: float | None) -> Floats:
    """Every row scaled to Euclidean length ``row_length`` by its own length alone; a row of zeros stays."""
    if row_length is None:
        return features
    lengths = np.sqrt((features * features).sum(axis=1, keepdims=True))
    return np.asarray(features * (row_length / np.where(lengths > 0, lengths, 1.0)))


def classes_of(declared: Sequence[object] | None, labels: NDArray[np.generic]) -> NDArray[np.generic]:
    """The classes, in order: declared, or those that occur."""
    known = np.unique(labels if declared is None else np.asarray(declared))
    if len(known) < 2:
        raise InvalidInput(
            f"{'y has' if declared is None else 'classes declares'} one class only; a classifier needs two or more classes. "
            "If there are others that happen not to occur, declare them: classes=[...]"
        )
    strange = ~np.isin(labels, known)
    if strange.any():
        raise InvalidInput(f"y holds {labels[strange][0]!r}, which is none of the declared classes {known.tolist()!r}")
    return known


def schema_features(schema: Schema, frame: object) -> tuple[Floats, Floats]:
    """Raw rows and features of a frame whose values may be named in errors; missing values by the schema's policy."""
    raw = schema.read_points(frame)
    features, valid = schema.features(raw)
    if not valid.all():
        raise InvalidInput(
            f"row {int(np.flatnonzero(~valid)[0])} lacks a value in a column whose schema has no stand-in (missing=...)"
        )
    return raw, features
