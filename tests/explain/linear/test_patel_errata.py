"""Where the paper on local explanations needs mending, in numbers (docs/errata.md)."""

import numpy as np
import pytest

from vitrail.solve.linear.weights import stable

WEIGHT = stable(1.0)
PHI = np.array([1.0, 0.0])


def contribution(distance, label):
    """2 alpha (phi.d - f) d for d along phi: what a row at this distance adds to the summed gradient."""
    d = distance * PHI
    return 2 * WEIGHT(np.array([distance]))[0] * (PHI @ d - label) * d


def mean_gradient(rows):
    return np.mean([contribution(*row) for row in rows], axis=0)


R = (np.sqrt(3) - 1) / 2
CROWD, ODD = (R, 1.0), (R, -1.0)


@pytest.mark.parametrize("m", [100, 10_000])
def test_omitting_a_row_moves_the_mean_gradient_by_more_than_c_over_m(m):
    """Lemma 3.1: the normaliser 1/m moves with the row. Every single row contributes at most c = 1."""
    assert np.linalg.norm(contribution(*ODD)) <= 1 + 1e-12
    assert np.linalg.norm(contribution(*CROWD)) <= 1 + 1e-12
    with_row = ((m - 1) * contribution(*CROWD) + contribution(*ODD)) / m
    without = contribution(*CROWD)
    moved = m * np.linalg.norm(with_row - without)
    assert moved == pytest.approx(1.464, abs=0.01)
    assert moved > 1.4


@pytest.mark.parametrize("m", [100, 10_000])
def test_the_score_of_the_exponential_mechanism_moves_by_more_than_one_over_m(m):
    """Algorithm 2 scores past explanations by the norm of the mean gradient and takes 1/m for its sensitivity."""
    with_row = ((m - 1) * contribution(*CROWD) + contribution(*ODD)) / m
    moved = m * abs(np.linalg.norm(with_row) - np.linalg.norm(contribution(*CROWD)))
    assert moved > 1.4


def test_losses_at_neighbouring_points_differ_to_first_order():
    """Theorem 4.2 says O(d^2): then the ratio to d would vanish with d. It does not."""
    x, label, phi = np.array([0.3, 0.1]), 1.0, np.array([0.6, 0.2])

    def loss(z):
        d = x - z
        return WEIGHT(np.array([np.linalg.norm(d)]))[0] * (phi @ d - label) ** 2

    steps = np.array([1e-2, 1e-3, 1e-4])
    ratios = [abs(loss(np.array([step, 0.0])) - loss(np.zeros(2))) / step for step in steps]
    assert min(ratios) > 0.5
    assert ratios[1] == pytest.approx(ratios[2], rel=0.02)


def test_the_centred_model_says_nothing_at_its_own_centre():
    """Algorithm 4 labels a past point by phi.z_j; the model phi.(x - z_j) is zero there, whatever f says."""
    z = np.array([0.4, -0.2])
    assert PHI @ (z - z) == 0.0


@pytest.mark.parametrize("c", [0.1, 1.0, 10.0])
def test_the_stable_weight_is_as_stable_as_lemma_4_1_says(c):
    """This one holds: weights of a row at points d apart differ by the factor 1 + (d^2 + 2 r d) / r^2 at most."""
    weight, r = stable(c), (np.sqrt(2 * c + 1) - 1) / 2
    distances = np.linspace(0, 5, 2001)
    for d in (0.001 * r, 0.1 * r, r):
        for other in (distances + d, np.abs(distances - d)):
            ratios = weight(other) / weight(distances)
            assert ratios.max() <= 1 + (d**2 + 2 * r * d) / r**2 + 1e-12
