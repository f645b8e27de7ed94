"""What a row adds to mean reasons, attacked: the longest row there can be, against nobody's, and against another.

The adversary knows model, points and clip, and looks along the direction in which the row moves the sum. Draws are the
vault's own, on rows that are nobody's.
"""

from functools import partial

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE
from vitrail.explain.joint_sum import ROUNDING
from vitrail.explain.mean_reasons import EXCESS, PairedVectors
from vitrail.solve.coalitions import Chains
from vitrail.vault import rehearse

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
MODEL = vt.Model(lambda x: x[:, 0] * x[:, 1], range=(0, 1), name="product")
POINTS = np.array([[1.0, 0.9], [0.9, 1.0], [1.0, 1.0]])
CLIP = 0.2
"""Vectors are up to 0.7 long: the row below is clipped, and its excess is counted to its end."""
DRAWS = 100_000
LONGEST, OTHER, NOBODY = {"a": [0.0], "b": [0.0]}, {"a": [1.0], "b": [1.0]}, {"a": [], "b": []}
PAIRS = {"add-remove": (LONGEST, NOBODY), "replace-one": (LONGEST, OTHER)}


BOUND = CLIP * float(np.hypot(1, EXCESS)) * ROUNDING


def asked(clip=CLIP, bound=BOUND):
    chains = Chains(MODEL, SCHEMA, np.arange(2))
    paired = PairedVectors(SCHEMA, None, chains, POINTS, MODEL.predict_points(SCHEMA, POINTS), 2, 0, n_each=2)
    return vt.BoundedSum(partial(paired.mean_clipped, clip), 3, bound)


def audit(relation, claimed, question, mu=1.0):
    def run(rows, draws):
        return rehearse(question, rows, SCHEMA, mu=mu, n_rows_public=9, draws=draws, neighbours=relation, block_rows=2)

    return vt.audit.mechanism(run, PAIRS[relation], claimed, draws=DRAWS, confidence=CONFIDENCE)


@pytest.mark.parametrize("relation", PAIRS)
def test_the_longest_row_keeps_the_promise(relation):
    found = audit(relation, 1.0, asked())
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_the_bound_wastes_nothing():
    found = audit("add-remove", 1.0, asked())
    assert found.tightness >= 0.8, str(found)
    assert audit("add-remove", 0.5, asked()).refuted


@pytest.mark.usefixtures("planted_noise")
def test_vectors_that_nobody_clips_are_caught():
    """Here and in the vault's bound, with the noise that the clip would have had."""
    assert audit("add-remove", 1.0, asked(clip=10.0, bound=100 * BOUND), mu=100.0).refuted
