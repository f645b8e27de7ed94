"""Rows that look like a class: private rows and draws from the picture, as far as the public model puts them there.

Post-processing of releases, and of the public model. Answers are sought near these rows, and the mean distance to the
nearest twenty of them is what ``plausibility`` means. Twenty, because a search that likes to be near one private row finds
the odd one that noise put where nobody is: on Adult (forest, epsilon 0.75) answers near one row were 1.6 from the nearest
held-out real row of the class, answers near twenty 0.9 to 1.0, both some 1.1 from the person.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...results.class_picture import ClassPicture
from .classes import Classes

DRAWN = 30_000
"""Rows drawn, and shown to the model until enough are of the class."""
BATCH = 6_000
KEPT = 4_000
NEIGHBOURS = 20
"""How many rows of the class an answer should be near to."""
ENOUGH = 200
"""With fewer rows of the class, draws from the class's own columns are added."""
DISTANCE_BATCH = 2_048


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one class, by the model.

    Attributes
    ----------
    raw : array (rows, columns)
        The rows.
    features : array (rows, features)
        The rows in the encoding.
    prototype : array (features,)
        The class's prototype, whatever the model says of it.
    """

    raw: Floats
    features: Floats
    prototype: Floats

    def distance(self, features: Floats) -> Floats:
        """Mean distance of each row to its nearest neighbours in the pool; to the prototype if the pool is empty."""
        if not len(self.raw):
            return np.asarray(np.linalg.norm(features - self.prototype, axis=1))
        count = min(NEIGHBOURS, len(self.raw))
        means = [np.empty(0)]
        for start in range(0, len(features), DISTANCE_BATCH):
            squared = squared_distances(features[start : start + DISTANCE_BATCH], self.features)
            means.append(np.sqrt(np.partition(squared, count - 1, axis=1)[:, :count]).mean(axis=1))
        return np.concatenate(means)


def squared_distances(rows: Floats, others: Floats) -> Floats:
    """Squared distances, (rows, others)."""
    squared = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * rows @ others.T
    return np.asarray(np.maximum(squared, 0.0))


def pool_of(picture: ClassPicture, classes: Classes, number: int, seed: int) -> Pool:
    """The pool of a class, by its number: the same for the same picture, model and seed."""
    schema, generator = picture.schema, np.random.default_rng([seed, number])

    def of_class(raw: Floats) -> Floats:
        return np.asarray(raw[classes.index(classes.outputs(schema, raw)) == number])

    prototype = picture.prototype_features[number]
    raw = of_class(schema.unfeature(prototype[None, :]))
    if picture.rows is not None:
        drawn = picture.rows.raw(DRAWN, int(generator.integers(2**31)))
        for start in range(0, DRAWN, BATCH):  # no more rows are shown to the model than it takes
            if len(raw) < KEPT:
                raw = np.concatenate([raw, of_class(drawn[start : start + BATCH])])
    if len(raw) < ENOUGH:
        raw = np.concatenate([raw, of_class(picture.draw(number, DRAWN // 3, generator))])
    return Pool(raw[:KEPT], schema.features(raw[:KEPT])[0], prototype)
