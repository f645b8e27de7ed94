"""Claims under attack: bad neighbours found, one run with canaries, models copied, columns guessed, rates measured."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import binom, rankdata

import vitrail as vt
from vitrail.audit import attribute, extraction, one_run, search
from vitrail.audit.one_run import epsilon_bound, tail_probability
from vitrail.audit.roc import area, area_difference, auc_of, balanced_accuracy, best_threshold, curve, found_at, ranks_of
from vitrail.errors import InvalidInput

torch.set_num_threads(1)
GRID = 2.0**-20


def clipped_sum(seed, clip):
    generator = np.random.default_rng(seed)

    def run(rows, draws):
        total = float(np.clip(rows, -clip, clip).sum()) if len(rows) else 0.0
        return np.round((total + generator.normal(size=draws)) / GRID) * GRID

    return run


PAIRS = [(np.array([0.1]), np.array([])), (np.array([1.0]), np.array([])), (np.array([0.5]), np.array([]))]


def test_the_worst_neighbours_are_found_and_the_promise_holds_there():
    found = search(clipped_sum(1, 1.0), PAIRS, claimed=1.0, draws=60_000)
    assert found.chosen == 1
    assert not found.refuted
    assert found.audit.tightness > 0.8
    assert found.audit.draws == 30_000


def test_a_clip_that_is_too_wide_is_found_among_candidates():
    found = search(
        clipped_sum(2, 2.0), [*PAIRS, (np.array([5.0]), np.array([]))], claimed=vt.Guarantee.of_mu(1.0, 1e-6), draws=40_000
    )
    assert found.chosen == 3
    assert found.refuted
    assert "Candidate 3 of 4" in str(found)
    assert found.to_json()["audit"]["refuted"] is True


def test_a_single_pair_gets_all_draws():
    assert search(clipped_sum(3, 1.0), PAIRS[1:2], claimed=1.0, draws=2000).audit.draws == 2000


def test_a_search_needs_pairs_and_draws():
    for candidates, draws, message in (
        ([], 9000, "list of pairs"),
        (PAIRS, 3000, "at least 1000 each"),
        (PAIRS, 1.5, "whole number"),
    ):
        with pytest.raises(InvalidInput, match=message):
            search(clipped_sum(4, 1.0), candidates, claimed=1.0, draws=draws)


def test_an_audit_tells_its_verdict_in_a_line_and_on_a_page(tmp_path):
    audit = vt.audit.mechanism(clipped_sum(5, 2.0), (np.array([2.0]), np.array([])), claimed=1.0, draws=20_000)
    assert audit.verdict_line.startswith("claim refuted, tightness 1.")
    page = audit.report(tmp_path / "audit.html").read_text()
    assert audit.verdict_line in page
    assert "<script" not in page


# One run


def noisy_bits(seed, canaries, epsilon):
    """Randomised response of every canary's coin: exactly epsilon-DP, and every guess is as good as it may be."""
    generator = np.random.default_rng(seed)
    coins = generator.integers(0, 2, canaries).astype(bool)
    kept = generator.uniform(size=canaries) < 1 / (1 + np.exp(-epsilon))
    return np.where(kept, coins, ~coins) + generator.uniform(0, 0.1, canaries), coins


def test_one_run_of_randomised_response_is_measured_and_not_refuted():
    audit = one_run(*noisy_bits(1, 5000, 1.0), claimed=1.0)
    assert not audit.refuted
    assert 0.7 < audit.tightness <= 1


def test_one_run_refutes_half_the_claim():
    audit = one_run(*noisy_bits(2, 2000, 2.0), claimed=vt.Guarantee(1.0, 1e-6, 0.0))
    assert audit.refuted
    assert "Claim refuted, tightness 1." in str(audit)
    assert json.dumps(audit.to_json())


def test_one_run_keeps_its_confidence_where_it_can_be_counted():
    refuted = sum(
        one_run(*noisy_bits(100 + seed, 300, 1.0), claimed=1.0, confidence=0.9, guesses=300).refuted for seed in range(100)
    )
    assert refuted <= 28  # 10 expected at most; 29 or more have a chance below 1e-6


def test_equal_scores_tell_nothing_in_whatever_order_the_canaries_stand():
    sorted_coins = np.repeat([False, True], 200)
    assert one_run(np.zeros(400), sorted_coins, claimed=0.1).epsilon_lower == 0
    assert one_run(np.zeros(400), ~sorted_coins, claimed=0.1).epsilon_lower == 0


def test_the_tail_is_the_binomials_and_delta_only_adds():
    assert tail_probability(100, 100, 60, 0.0, 0.0) == pytest.approx(binom.sf(59, 100, 0.5))
    assert tail_probability(100, 100, 60, 0.0, 1e-3) > tail_probability(100, 100, 60, 0.0, 0.0)
    assert tail_probability(100, 100, 60, 0.0, 1.0) == 1
    bounds = [epsilon_bound(1000, 1000, 800, delta, 1e-3) for delta in (0.0, 1e-6, 1e-4)]
    assert bounds == sorted(bounds, reverse=True)
    found = epsilon_bound(1000, 1000, 800, 0.0, 1e-3)
    assert tail_probability(1000, 1000, 800, found, 0.0) == pytest.approx(1e-3, rel=1e-3)
    assert epsilon_bound(100, 100, 50, 0.0, 1e-3) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": np.zeros(5), "included": np.zeros(5)}, "at least 20"),
        ({"included": np.zeros(99)}, "one of each"),
        ({"included": np.zeros(100)}, "one side"),
        ({"included": np.arange(100)}, "True or False"),
        ({"scores": np.full(100, np.nan)}, "NaN"),
        ({"claimed": -1.0}, "claimed is"),
        ({"claimed": vt.Guarantee(1.0, 1e-6, 0.0, "replace-one")}, "adding or removing"),
        ({"claimed": vt.Guarantee(1.0, 1e-6, 0.0), "delta": 1e-5}, "leave delta"),
        ({"delta": 2.0}, "delta is"),
        ({"guesses": 101}, "guesses is"),
        ({"confidence": 2}, "confidence is"),
    ],
)
def test_one_run_refuses_bad_input(changes, message):
    given = {"scores": np.arange(100.0), "included": np.arange(100) % 2} | changes
    with pytest.raises(InvalidInput, match=message):
        one_run(given.pop("scores"), given.pop("included"), **given)


# Extraction and attribute inference

DIRECTION = np.array([1.0, -1.0, 0.5])


def probability(points):
    return 1 / (1 + np.exp(-6 * (points @ DIRECTION - 0.8)))


def across(points):
    gap = (points @ DIRECTION - 0.8) / float(DIRECTION @ DIRECTION)
    return points - 1.05 * np.outer(gap, DIRECTION)


def slope(points):
    p = probability(points)
    return np.where(p > 0.5, 1, -1)[:, None] * (6 * p * (1 - p))[:, None] * DIRECTION


def test_counterfactuals_help_to_copy_a_model():
    generator = np.random.default_rng(1)
    test, queries = generator.normal(size=(2000, 3)), generator.normal(size=(20, 3))
    audit = extraction(probability, across, test, queries=queries)
    assert audit.agreement.lower > 0.93
    assert audit.agreement.value > audit.agreement_without.value
    assert audit.majority < 0.8
    assert audit.to_json()["excess"] == pytest.approx(audit.excess)
    slopes = extraction(probability, None, test, queries=queries, attributions=slope)
    assert slopes.agreement.value > slopes.majority


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": np.zeros((5, 3))}, "at least 10"),
        ({"queries": np.zeros((20, 2))}, "alike"),
        ({"queries": np.full((20, 3), -9.0)}, "one class"),
        ({"test": np.full((20, 3), np.nan)}, "NaN"),
        ({"counterfactuals": None}, "nothing to extract with"),
        ({"counterfactuals": lambda x: x[:3]}, "counterfactuals returned shape"),
        ({"counterfactuals": lambda x: x * np.nan}, "no answer for anybody"),
        ({"predict": lambda x: 0.5}, "predict returned shape"),
    ],
)
def test_extraction_refuses_bad_input(changes, message):
    generator = np.random.default_rng(2)
    given = {
        "predict": probability, "counterfactuals": across, "test": generator.normal(size=(50, 3)),
        "queries": generator.normal(size=(20, 3)),
    } | changes  # fmt: skip
    with pytest.raises(InvalidInput, match=message):
        extraction(**given)


def test_a_column_that_only_explanations_show_is_found_and_no_other():
    generator = np.random.default_rng(3)
    hidden = generator.integers(0, 3, 600)
    known, prediction = generator.normal(size=(600, 2)), generator.uniform(size=600)
    telling = np.column_stack([hidden + 0.3 * generator.normal(size=600), prediction])
    found = attribute(telling, hidden, predictions=prediction, known=known)
    assert found.excess.lower > 0.3
    assert found.chance == pytest.approx(1 / 3)
    silent = attribute(np.column_stack([prediction, known[:, 0]]), hidden, predictions=prediction, known=known)
    assert silent.excess.lower < 0.1
    assert silent.rows[0].sees == "everything but the explanation"
    assert json.dumps(silent.to_json())
    assert attribute(telling, np.array(["a", "b", "c"])[hidden]).excess.lower > 0.3


@pytest.mark.parametrize(
    ("explanations", "sensitive", "message"),
    [
        (np.zeros((5, 2)), np.zeros(5), "at least 40"),
        (np.zeros((60, 2)), np.zeros(59), "one value for each"),
        (np.zeros((60, 2)), np.zeros(60), "one class only"),
        (np.zeros((60, 2)), np.arange(60), "at least 10 each"),
        (np.full((60, 2), np.nan), np.arange(60) % 2, "NaN"),
        ([[1.0], [1.0, 2.0]] * 30, np.arange(60) % 2, "equally wide"),
    ],
)
def test_attribute_inference_refuses_bad_input(explanations, sensitive, message):
    with pytest.raises(InvalidInput, match=message):
        attribute(explanations, sensitive)


# Rates


def test_areas_and_their_intervals():
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(300):
        members, others = generator.normal(1, 1, 60), generator.normal(0, 1, 80)
        found = area(members, others, 0.95)
        missed += not found.lower <= 0.7602 <= found.upper  # Phi(1/sqrt 2)
    assert missed <= 40  # 15 expected; 41 or more have a chance below 1e-7
    assert area(np.array([2.0, 3, 4]), np.array([0.0, 1]), 0.95).value == 1
    assert area(np.array([2.0, 3, 4]), np.array([0.0, 1]), 0.95).lower < 0.2
    assert auc_of(np.zeros(3), np.zeros(5)) == 0.5


def test_the_difference_of_areas_is_paired():
    generator = np.random.default_rng(5)
    members, others = generator.normal(1, 1, 300), generator.normal(0, 1, 300)
    same = area_difference((members, others), (members + 0.0, others + 0.0), 0.95)
    assert (same.lower, same.upper) == (0, 0)
    worse = (members + generator.normal(0, 3, 300), others + generator.normal(0, 3, 300))
    assert area_difference((members, others), worse, 0.95).lower > 0.02


def test_thresholds_and_low_rates():
    members, others = np.array([1.0, 2, 3, 3]), np.array([0.0, 0, 1, 5])
    threshold = best_threshold(members, others)
    assert balanced_accuracy(members, others, threshold, 0.95).value == 0.75
    assert found_at(members, others, 0.25, 0.95).value == 0.75  # one may be accused: above 1 lie 2, 3 and 3
    assert found_at(members, others, 0.01, 0.95).value == 0
    false, true = curve(members, others)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()


def test_ranks_are_those_of_scipy():
    generator = np.random.default_rng(4)
    for scores in (
        generator.normal(size=200),
        generator.integers(0, 9, 200).astype(float),
        np.array([np.inf, 1.0, -np.inf]),
    ):
        assert ranks_of(scores).tolist() == rankdata(scores).tolist()
