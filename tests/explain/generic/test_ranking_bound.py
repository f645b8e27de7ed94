"""How far apart two rankings can be: by hand, by brute force, and as the vault charges it."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.explain.any_ranking import points_of_ranks
from vitrail.vault.public_facts import checked_facts
from vitrail.vault.questions.grouped_sum import largest_distance, points_of

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


def all_votes(places):
    return [np.array(vote) for vote in permutations(places)]


@pytest.mark.parametrize("n_items", [2, 3, 4, 5])
def test_borda_bounds_are_exact(n_items):
    """Over all pairs of rankings: L2 sqrt(M(M^2-1)/3), L1 floor(M^2/2), both reached."""
    votes = all_votes(points_of_ranks(n_items))
    squares = {int(((one - other) ** 2).sum()) for one in votes for other in votes}
    assert max(squares) == n_items * (n_items**2 - 1) // 3
    assert max(int(np.abs(one - other).sum()) for one in votes for other in votes) == n_items**2 // 2
    bound = largest_distance(points_of_ranks(n_items))
    assert Fraction(bound) ** 2 >= max(squares) > Fraction(bound) ** 2 * (1 - Fraction(1, 10**12))
    centre = points_of_ranks(n_items).mean()
    assert all(((vote - centre) ** 2).sum() == pytest.approx(n_items * (n_items**2 - 1) / 12) for vote in votes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=5).filter(lambda points: len(set(points)) > 1))
def test_bounds_of_other_points_are_exact(points):
    places = np.sort(np.array(points, dtype=float))[::-1]
    votes = all_votes(places)
    furthest = max(int(((one - other) ** 2).sum()) for one in votes for other in votes)
    bound = largest_distance(places)
    assert Fraction(bound) ** 2 >= furthest
    assert bound**2 == pytest.approx(furthest, rel=1e-12)


@pytest.mark.parametrize(("n_items", "k"), [(4, 2), (10, 3), (50, 5)])
def test_fewer_places_cost_less_however_many_items_there_are(n_items, k):
    assert largest_distance(points_of_ranks(n_items, k)) ** 2 == pytest.approx(k * (k + 1) * (2 * k + 1) / 3)
    assert largest_distance(points_of_ranks(n_items, k)) < largest_distance(points_of_ranks(n_items))


FACTS = checked_facts(vt.Schema({"x": vt.Numeric(0, 1)}), None, 9, "add-remove", None, 1)
SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1e300, -1e300, np.nan, np.inf, -np.inf]), st.floats(-3, 3, allow_subnormal=True)
)


@st.composite
def ranking_cases(draw):
    n_items = draw(st.integers(2, 7))
    k = draw(st.none() | st.integers(1, n_items - 1))
    said = draw(arrays(np.float64, (4, n_items), elements=SCORES))
    return points_of_ranks(n_items, k), said


@settings(max_examples=150, deadline=None)
@given(ranking_cases(), st.sampled_from([0.01, 1.0, 20.0]), st.sampled_from([2, 300, 10**6]))
def test_no_group_moves_the_sum_further_than_was_charged(case, mu, groups):
    """Whatever a group says, ties, NaN and infinities included; in the exact integers that are summed."""
    places, said = case
    question = vt.GroupedSum(lambda group: said[0], len(places), groups=groups, rank_points=places, isolation="none")
    plan = question.plan(mu, FACTS)
    reverse = np.arange(len(places), dtype=float)
    votes = [*plan._on_grid(said), *plan._on_grid(np.array([reverse, -reverse, np.full(len(places), np.nan)]))]
    bound = (Fraction(plan.sensitivity) / Fraction(plan.step)) ** 2
    assert all(sum(int(x) ** 2 for x in one - other) <= bound for one in votes for other in votes)
    reached = sum(int(x) ** 2 for x in votes[4] - votes[5])
    assert reached >= float(bound) * (1 - 1e-5), "and no more is charged than a ranking turned round needs"
    assert plan.sensitivity / plan.sigma <= mu


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 8)), elements=st.integers(0, 4).map(float)))
def test_points_are_ranks_and_ties_share(scores):
    n_items = scores.shape[1]
    expected = np.array([rankdata(row, method="average") - 1 for row in scores])
    assert np.allclose(points_of(scores, points_of_ranks(n_items)), expected)
    for k in range(1, n_items):
        points = points_of(scores, points_of_ranks(n_items, k))
        assert np.allclose(points.sum(axis=1), k * (k + 1) / 2)
        assert all((np.argsort(row, kind="stable")[-1] == row.argmax()) or row.max() >= 0 for row in points)


def test_an_empty_or_failing_group_shares_all_the_points():
    question = vt.GroupedSum(lambda group: 1 / 0, 3, groups=2, rank_points=[2, 1, 0], isolation="none")
    assert question.default.tolist() == [1, 1, 1]
    plan = question.plan(1.0, FACTS)
    assert np.array_equal(plan._on_grid(np.full(3, np.nan)) * plan.step + 1, [1, 1, 1])


@pytest.mark.parametrize(
    "options",
    [
        {"rank_points": [1, 2, 3]},
        {"rank_points": [1, 1, 1]},
        {"rank_points": [2, 1]},
        {"rank_points": [np.inf, 1, 0]},
        {"rank_points": "abc"},
        {"rank_points": [2, 1, 0], "low": 0},
        {"rank_points": [2, 1, 0], "default": 1.0},
        {},
        {"low": 0},
    ],
)
def test_impossible_rank_points_are_refused(options):
    with pytest.raises(InvalidInput):
        vt.GroupedSum(lambda group: [0, 0, 0], 3, **options)
