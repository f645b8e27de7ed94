"""Rows, an additive model and its exact Shapley vectors, for the tests of Shapley values."""

import math

import numpy as np

import vitrail as vt
from vitrail.explain.recipe import Terms

SCHEMA = vt.Schema({"a": vt.Numeric(0, 10), "b": vt.Numeric(0, 1), "c": vt.Categorical(["x", "y", "z"])})
POINT = {"a": 9.0, "b": 0.2, "c": "z"}
N = 3000


def rows_of(n=N, seed=0):
    draw = np.random.default_rng(seed)
    return {"a": draw.uniform(0, 10, n), "b": draw.random(n), "c": draw.choice(["x", "y", "z"], n)}


def private(rows=None, *, epsilon=3000.0, n_rows_public=N, schema=SCHEMA, **options):
    rows = rows_of() if rows is None else rows
    budget = vt.Budget(epsilon, 1e-6)
    return vt.PrivateData(rows, schema, name="rows", n_rows_public=n_rows_public, budget=budget, **options)


def additive(features):
    return 0.4 * features[:, 0] + 0.3 * features[:, 1] + 0.2 * features[:, 4]


MODEL = vt.Model(additive, range=(0, 1), name="additive")


def question_of(shapley, points, mu=1.0):
    """The first question of the recipe: with a given clip the only one."""
    talk = shapley.conversation(points)
    return next(talk.begun(Terms.of(talk.data, mu))).question


def exact_vectors(rows, points):
    """What each row that counts adds at each point, (rows, points, columns), for the additive model."""
    complete, counts = SCHEMA.complete(SCHEMA.read(rows))
    features = SCHEMA.features(complete[counts])[0]
    at = SCHEMA.features(SCHEMA.read_points(points))[0]
    return ((at - features[:, None]) * [0.4, 0.3, 0, 0, 0.2])[:, :, [0, 1, 4]]


def most_std(scales, sigma, n_rows, value=1.0):
    """More than the standard deviation of the noise in a value (or in a base that is ``value`` from the middle)."""
    return math.hypot(sigma, value * sigma / scales.count) / n_rows
