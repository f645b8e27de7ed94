"""One joint sum: every block is clipped to its bound on every row, and pays for its share and nothing else."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import vitrail as vt
from error_rates import normal_bound, std_ratio_bounds
from vitrail.errors import InvalidInput
from vitrail.explain.joint_sum import BlockSpec, JointSum
from vitrail.vault import rehearse
from vitrail.vault.public_facts import PublicFacts

SCHEMA = vt.Schema({"x": vt.Numeric(0, 1)})


@dataclass(frozen=True)
class Fixed:
    """Hands out given numbers, whatever the rows."""

    blocks: tuple
    numbers: np.ndarray

    def contributions(self, block):
        return self.numbers.copy()


class Rows:
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count


numbers = hnp.arrays(np.float64, (6, 5), elements=st.floats(-1e9, 1e9, allow_subnormal=False))


@settings(max_examples=200, deadline=None)
@given(numbers, st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=5), st.lists(st.floats(0.1, 10), min_size=3, max_size=3))
def test_no_row_exceeds_the_bound_whatever_it_contributes(given_numbers, sizes, shares):
    """Two summands, three blocks, any bounds and shares: the vector of a row has norm at most 1."""
    first = Fixed((BlockSpec(2, sizes[0], shares[0]), BlockSpec(1, sizes[1], shares[1])), given_numbers[:, :3])
    second = Fixed((BlockSpec(2, sizes[2], shares[2]),), given_numbers[:, 3:])
    joint = JointSum((first, second), (sizes[3], sizes[4]))
    assert np.linalg.norm(joint(Rows(6)), axis=1).max() <= 1 + 1e-12
    assert sum(share for _, share in joint.scaled) == pytest.approx(1.0)


def test_a_row_with_no_number_stays_without_one():
    broken = np.array([[1.0, np.nan], [1.0, 0.0]])
    joint = JointSum((Fixed((BlockSpec(2, 1.0),), broken),), (1.0,))
    found = joint(Rows(2))
    assert np.isnan(found[0]).any()
    np.testing.assert_allclose(found[1], [1.0, 0.0])


def test_noise_of_a_block_is_that_of_asking_alone_at_its_share():
    """Split of a rehearsed release: unbiased, and the spread is sigma bound / sqrt(share) / rows."""
    rows = np.full((400, 1), 0.5)
    blocks = (BlockSpec(1, 0.5, 1.0), BlockSpec(1, 8.0, 3.0))

    @dataclass(frozen=True)
    class Two:
        blocks: tuple

        def contributions(self, block):
            return np.column_stack([block.features[:, 0] * 0.8, block.features[:, 0] * 10])

    joint = JointSum((Two(blocks),), (1.0,))
    question = joint.question("two blocks")
    mu = 0.5
    draws = rehearse(question, rows, SCHEMA, mu=mu, n_rows_public=400, draws=4000)
    sigma = question.plan(mu, PublicFacts(SCHEMA, None, 400, "add-remove", 8)).sigma
    assert sigma == pytest.approx(1.0 / mu, rel=1e-3)

    found = np.array([joint.split(draw, sigma, 400)[0][0] for draw in draws])
    stds = joint.split(draws[0], sigma, 400)[0][1]
    np.testing.assert_allclose(stds, [sigma * 0.5 / np.sqrt(0.25) / 400, sigma * 8 / np.sqrt(0.75) / 400])
    low, high = std_ratio_bounds(4000, of=4)
    ratios = found.std(axis=0, ddof=1) / stds
    assert ((low < ratios) & (ratios < high)).all()
    # 400 equal rows are all rounded to the grid the same way, which moves their mean by a twentieth of the noise here.
    assert (np.abs(found.mean(axis=0) - [0.4, 5.0]) < (normal_bound(of=4) / np.sqrt(4000) + 0.1) * stds).all()


@pytest.mark.parametrize("wrong", [{"size": 0}, {"bound": 0.0}, {"bound": float("inf")}, {"share": -1.0}])
def test_blocks_are_checked(wrong):
    with pytest.raises(InvalidInput):
        BlockSpec(**{"size": 1, "bound": 1.0, **wrong})
