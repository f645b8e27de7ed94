"""Rows that look like a class: private rows and draws from the picture, as far as the public model puts them there.

Post-processing of releases, and of the public model. Answers are sought near these rows, and the mean distance to the
nearest twenty of them is what ``plausibility`` means. Twenty, because a search that likes to be near one private row finds
the odd one that noise put where nobody is: on Adult (forest, epsilon 0.75) answers near one row were 1.6 from the nearest
held-out real row of the class, answers near twenty 0.9 to 1.0, both some 1.1 from the person.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...explain.counterfactual.classes import Classes
from ...results.class_picture import ClassPicture
from ...schema import FloatArray, Schema

Floats = NDArray[np.float64]

DRAWN = 30_000
"""Rows drawn, and shown to the model until enough are of the class."""
AT_ONCE = 6_000
KEPT = 4_000
NEIGHBOURS = 20
"""How many rows of the class an answer should be near to."""
ENOUGH = 200
"""With fewer rows of the class, draws from the class's own columns are added."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one class, by the model.

    Attributes
    ----------
    raw : array (rows, columns)
    features : array (rows, features)
    prototype : array (features,)
        The class's prototype, whatever the model says of it.
    """

    raw: FloatArray
    features: Floats
    prototype: Floats

    def distance(self, features: Floats) -> Floats:
        """Mean distance of each row to the nearest of the pool in the encoding; to the prototype if there is none."""
        if not len(self.raw):
            return np.asarray(np.linalg.norm(features - self.prototype, axis=1))
        count = min(NEIGHBOURS, len(self.raw))
        return np.concatenate([self._to_nearest(part, count) for part in _parts(features)])

    def _to_nearest(self, features: Floats, count: int) -> Floats:
        found = squares(features, self.features)
        return np.asarray(np.sqrt(np.partition(found, count - 1, axis=1)[:, :count]).mean(axis=1))


def _parts(features: Floats, rows: int = 2048) -> list[Floats]:
    return [features[start : start + rows] for start in range(0, max(len(features), 1), rows)]


def squares(one: Floats, other: Floats) -> Floats:
    """Squared distances, (rows of one, rows of other)."""
    found = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.asarray(np.maximum(found, 0.0))


def pool_of(picture: ClassPicture, classes: Classes, place: int, seed: int) -> Pool:
    """The pool of a class: the same for the same picture, model and seed."""
    generator = np.random.default_rng([seed, place])
    schema = picture.schema
    prototype = picture.prototype_features[place]
    found = [_of_class(schema, classes, place, schema.unfeature(prototype[None, :]))]
    if picture.rows is not None:
        drawn = picture.rows.raw(DRAWN, int(generator.integers(2**31)))
        for start in range(0, DRAWN, AT_ONCE):  # no more rows are shown to the model than it takes
            if sum(map(len, found)) < KEPT:
                found.append(_of_class(schema, classes, place, drawn[start : start + AT_ONCE]))
    if sum(map(len, found)) < ENOUGH:
        found.append(_of_class(schema, classes, place, picture.draw(place, DRAWN // 3, generator)))
    raw = np.concatenate(found)[:KEPT]
    return Pool(raw, schema.features(raw)[0], prototype)


def _of_class(schema: Schema, classes: Classes, place: int, raw: FloatArray) -> FloatArray:
    return np.asarray(raw[classes.index(classes.outputs(schema, raw)) == place])
