"""Selection by exact enumeration: the probabilities, their ratios between neighbours, and the draws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import ndtr, ndtri

import vitrail as vt
from error_rates import count_bounds
from vitrail.accounting.events import mu_of_bounded_range
from vitrail.errors import InvalidInput
from vitrail.vault import rehearse
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.questions.select import WEIGHT_BITS, exp_minus, selection_weights

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.fractions(0, 400),
        st.fractions(0, 1),
        st.floats(0, 300).map(Fraction),
        st.sampled_from(
            [Fraction(0), Fraction(1, 10**30), Fraction(10**6), Fraction(math.log(2)), Fraction(177), Fraction(178)]
        ),
    )
)
def test_exponentials_are_right_to_their_last_unit(x):
    found = exp_minus(x, WEIGHT_BITS)
    with mp.workprec(1000):
        exact = mp.exp(-mpf(x.numerator) / x.denominator) * mpf(2) ** WEIGHT_BITS
        assert abs(found - exact) <= 1


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=8),
    st.floats(1e-6, 40),
    st.integers(1, 2**22),
)
def test_probabilities_are_those_of_the_exponential_mechanism(scores, epsilon, sensitivity):
    weights = selection_weights(scores, epsilon, sensitivity)
    total = Fraction(int(sum(weights)))
    with mp.workprec(800):
        exact = [mp.exp(mpf(epsilon) * (score - max(scores)) / (2 * sensitivity)) for score in scores]
        for weight, true in zip(weights, exact, strict=True):
            share = mpf(int(weight)) / mpf(int(total))
            assert abs(share - true / sum(exact)) <= len(scores) * mpf(2) ** (4 - WEIGHT_BITS)


def test_weights_do_not_depend_on_where_scores_start():
    assert list(selection_weights([5, 9, 1], 0.7, 3)) == list(selection_weights([1005, 1009, 1001], 0.7, 3))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("candidates", [2, 3])
def test_every_pair_of_neighbouring_scores_is_within_the_bounded_range(epsilon, sensitivity, candidates):
    """Privacy losses lie in an interval of length epsilon that contains 0, for all moves of all small score vectors."""
    grid = range(4 if candidates == 2 else 3)
    moves = list(itertools.product(range(-sensitivity, sensitivity + 1), repeat=candidates))
    widest = mpf(0)
    with mp.workprec(400):
        for scores in itertools.product(grid, repeat=candidates):
            here = selection_weights(list(scores), epsilon, sensitivity)
            log_here = [mp.log(int(w)) - mp.log(int(sum(here))) for w in here]
            for move in moves:
                moved = [score + step for score, step in zip(scores, move, strict=True)]
                there = selection_weights(moved, epsilon, sensitivity)
                losses = [a - mp.log(int(w)) + mp.log(int(sum(there))) for a, w in zip(log_here, there, strict=True)]
                assert max(losses) - min(losses) <= mpf(epsilon) + mpf(2) ** -200
                assert max(losses) >= -(mpf(2) ** -200)
                assert min(losses) <= mpf(2) ** -200
                widest = max(widest, max(losses) - min(losses))
        assert widest > mpf(epsilon) * (1 - mpf(10) ** -6), "the bound is reached: nothing is wasted"


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_neighbouring_selections_are_within_their_gaussian_price(epsilon):
    """The exact trade-off of two outcomes at the worst move lies above the Gaussian curve of the price."""
    mu = mu_of_bounded_range(epsilon)
    for scores, moved in (([0, 0], [1, -1]), ([3, 0], [2, 1]), ([0, 5], [1, 4])):
        p = np.array(selection_weights(scores, epsilon, 1), dtype=float)
        q = np.array(selection_weights(moved, epsilon, 1), dtype=float)
        p, q = p / p.sum(), q / q.sum()
        for outcome in (0, 1):
            type_1, type_2 = p[outcome], 1 - q[outcome]
            assert type_2 >= ndtr(ndtri(1 - type_1) - mu) - 1e-12


def test_draws_follow_the_exact_probabilities():
    table = np.array([0.0, 0.3, 0.9, 0.5])

    def fn(block):
        return np.repeat(table[None], len(block), axis=0) * block.column("x")[:, None]

    question = vt.Select(fn, candidates=4, bound=1.0)
    draws = 100_000
    found = rehearse(question, {"x": np.ones(3)}, UNIT, mu=1.0, n_rows_public=3, draws=draws)[:, 0]
    assert set(np.unique(found)) <= {0.0, 1.0, 2.0, 3.0}
    epsilon, step = question.plan(1.0, _facts()).epsilon, question.plan(1.0, _facts()).sensitivity_cells / 2**20
    expected = np.exp(epsilon * 3 * table / 2 / step)
    for count, rate in zip(np.bincount(found.astype(int), minlength=4), expected / expected.sum(), strict=True):
        fewest, most = count_bounds(draws, float(rate), of=4)
        assert fewest <= count <= most


def _facts():
    return PublicFacts(UNIT, None, 3, "add-remove", 8)


def test_sensitivities_by_neighbour_relation(walk):
    rows = {"x": [0.5]}
    for bound in (1.0, 0.7, 3.0, 1e-100, 1e100):
        cells = {}
        for neighbours in ("add-remove", "replace-one"):
            question = vt.Select(lambda block: block.features, 1, bound)
            plan = question.plan(0.5, walk(rows, UNIT, neighbours=neighbours).facts)
            cells[neighbours] = plan.sensitivity_cells
            assert mu_of_bounded_range(plan.epsilon) <= 0.5
            assert plan.event.cost().mu <= 0.5 * (1 + 1e-12)
            exact = Fraction(bound) / Fraction(plan.step) * (2 if neighbours == "replace-one" else 1)
            assert exact <= plan.sensitivity_cells <= exact * (1 + Fraction(1, 10**5))
        assert cells["replace-one"] == 2 * cells["add-remove"]


def test_far_behind_candidates_are_never_chosen_and_ties_are_even():
    weights = selection_weights([0, 10**9, 10**9], 1.0, 1)
    assert weights[0] == 0
    assert weights[1] == weights[2] == 2**WEIGHT_BITS


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": 0}, {"candidates": 2.5}, {"bound": 0}, {"bound": -1}, {"bound": math.nan}, {"bound": math.inf},
        {"fn": 3},
    ],
)  # fmt: skip
def test_impossible_selections_are_refused(options):
    options = {"fn": lambda block: block.features, "candidates": 1, "bound": 1.0, **options}
    with pytest.raises(InvalidInput):
        vt.Select(**options)
