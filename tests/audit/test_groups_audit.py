"""GroupReport attacked on worst-case neighbours: its one sum, with the longest row and the furthest pair."""

import functools

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.explain.recipe import Terms
from vitrail.vault import rehearse

DRAWS, MU = 60_000, 1.0
SCHEMA = vt.Schema({"pay": vt.Numeric(0, 1), "sex": vt.Categorical(["f", "m"]), "ill": vt.Numeric(0, 1, integer=True)})
MODEL = vt.Model(lambda x: x[:, 0], range=(0, 1), name="itself")
NOBODY = {name: [] for name in SCHEMA}


def rows(*people):
    return {name: [person[k] for person in people] for k, name in enumerate(SCHEMA)}


LONGEST = (0.0, "f", 0)
"""At an end of its bin, so that every number is 1 in size."""
PAIRS = {
    "another outcome and decision": ((0.0, "f", 0), (1.0, "f", 1)),
    "another decision": ((0.0, "f", 1), (1.0, "f", 1)),
    "another outcome in one bin": ((0.0, "f", 0), (0.2499999, "f", 1)),
    "another group": ((0.0, "f", 0), (0.0, "m", 0)),
}


@functools.cache
def question():
    data = vt.PrivateData(
        NOBODY, SCHEMA, name="nobody", target="ill", n_rows_public=4, budget=vt.Budget(9, 1e-6), ledger="memory"
    )
    return next(vt.GroupReport(data, MODEL, by="sex").conversation().recipe(Terms.of(data, MU))).question


def audit(neighbours, relation="add-remove", claimed=MU, mu=MU):
    def run(held, draws):
        return rehearse(
            question(), held, SCHEMA, mu=mu, n_rows_public=4, draws=draws, target="ill", neighbours=relation, block_rows=2
        )

    return vt.audit.mechanism(run, neighbours, claimed, draws=DRAWS, confidence=CONFIDENCE)


def test_a_row_more_is_told_no_better_than_promised():
    found = audit((NOBODY, rows(LONGEST)))
    assert not found.refuted, str(found)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_row_exchanged_is_told_no_better_than_promised(pair):
    one, other = PAIRS[pair]
    found = audit((rows(one), rows(other)), "replace-one")
    assert not found.refuted, str(found)


def test_the_noise_is_used_up():
    """The bounds leave no room: a row is told nearly as well as was paid for, and so is the furthest pair."""
    with planted_noise():
        assert audit((NOBODY, rows(LONGEST))).tightness >= 0.7
        tight = [audit((rows(one), rows(other)), "replace-one").tightness for one, other in PAIRS.values()]
        assert max(tight) >= 0.65, tight


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_too_little_noise_is_caught(relation):
    neighbours = (NOBODY, rows(LONGEST)) if relation == "add-remove" else map(rows, PAIRS["another outcome and decision"])
    with planted_noise():
        assert audit(tuple(neighbours), relation, mu=1.6 * MU).refuted


def test_an_outcome_told_twice_is_caught():
    """A vector that is longer than its shares say, had the vault believed it: as if the clip were not there."""
    told = np.sqrt(2.0) * 1.1
    longer = vt.BoundedSum(lambda block: told * question().fn(block), size=question().size, l2_bound=told)

    def run(held, draws):
        return rehearse(longer, held, SCHEMA, mu=told * MU, n_rows_public=4, draws=draws, target="ill", block_rows=2)

    with planted_noise():
        found = vt.audit.mechanism(run, (NOBODY, rows(LONGEST)), MU, draws=DRAWS, confidence=CONFIDENCE)
    assert found.refuted, str(found)
