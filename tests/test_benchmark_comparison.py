"""The comparison with other libraries: judges judge, the attacker is right where it must be, and the results are whole."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from benchmark_scripts import ROOT, script
from vitrail.accounting import mu_of

pytest.importorskip("dice_ml")
pytest.importorskip("interpret")
pytest.importorskip("numba")
comparison = script("comparison")
setup = script("comparison_setup")
attack = script("comparison_attack")
counterfactual = script("comparison_counterfactual")


@pytest.fixture(scope="module")
def bench():
    return setup.Bench(quick=True)


def test_the_three_parts_share_nobody(bench):
    whole = len(pd.read_parquet(bench.folder / "adult.parquet"))
    assert len(setup.Bench().private) == setup.PRIVATE
    assert setup.TRAINED_ON + setup.PRIVATE + len(bench.others) == whole
    assert len(bench.people) == 5


def test_the_quick_model_has_the_bits_of_the_forest(bench):
    assert (bench.probability(bench.people) == bench.forest.predict_proba(bench.people)[:, 1]).all()


def test_shap_finds_what_the_quick_judge_finds(bench):
    pytest.importorskip("shap")
    judge = script("reasons_truth").tree_sum(bench.forest, bench.schema.n_columns)
    few = bench.rows[:40]
    assert setup.shap_values(bench.forest, few)(bench.people[:2]) == pytest.approx(
        judge.values(bench.people[:2], few), abs=1e-7
    )


def test_agreement_is_about_directions_and_order():
    truth = np.array([[3.0, 2.0, 1.0, 0.0]])
    found = comparison.agreement(2 * truth, truth)
    assert (found["cosine"], found["same_first"], found["shared_of_three"]) == (pytest.approx(1.0), 1.0, 3.0)
    assert found["error"] == pytest.approx(math.sqrt(14 / 4))
    assert comparison.agreement(np.array([[0.0, 1.0, 2.0, 3.0]]), truth)["shared_of_three"] == 2.0


def test_a_mean_tells_who_was_there_unless_it_is_rounded(bench):
    pairs = attack.of_shap(bench, bench.rows[:100], bench.people[:1])
    assert len(pairs) == attack.TARGETS
    assert attack.guessed(pairs, None) == 1.0
    assert attack.guessed(pairs, 0) < 1.0
    there, gone = pairs[0]
    target = attack.targets(bench.rows[:100], attack.TARGETS)[0]
    judge = script("reasons_truth").tree_sum(bench.forest, bench.schema.n_columns)
    assert judge.values(bench.people[:1], np.delete(bench.rows[:100], target, axis=0)) == pytest.approx(gone)
    assert judge.values(bench.people[:1], bench.rows[:100]) == pytest.approx(there)


def test_the_best_guess_against_a_promise_is_bounded():
    assert attack.at_most(0.0) == 0.5
    assert 0.54 < attack.at_most(mu_of(1.0, 1e-6)) < 0.55
    assert attack.guessed([(np.zeros(1), np.zeros(1))], None) == 0.5


def test_answers_are_judged_by_the_forest_and_the_rules(bench):
    others = bench.read(bench.others)
    real = bench.schema.features(others[bench.probability(others) >= 0.5])[0]
    people = others[bench.probability(others) < 0.5][:2]
    rich = others[bench.probability(others) >= 0.5][:1]
    row = counterfactual.judged(bench, people, [rich, np.empty((0, bench.schema.n_columns))], real)
    assert (row["answered"], row["confirmed"]) == (0.5, 1.0)
    assert row["to_nearest_real_row"] < 1e-6
    assert row["copies_of_a_private_row"] == float((bench.rows == rich).all(axis=1).any())
    assert row["apart"] is None


def test_frames_are_read_as_the_schema_reads_them(bench):
    frame = pd.DataFrame(bench.schema.frame(bench.people))
    assert (counterfactual.read(bench.schema, frame) == bench.people).all()


def test_opendps_noise_pays_for_the_promise_and_ours_is_not_larger():
    dp = pytest.importorskip("opendp.prelude")
    found, scale = setup.opendp_sum(np.zeros((1, 4)), 1.0, setup.EPSILON)
    assert found.shape == (4,)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=4), dp.l2_distance(T=float)
    promised = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)).map(1.0).epsilon(setup.DELTA)
    assert 0.99 * setup.EPSILON <= promised <= setup.EPSILON
    assert 1 / mu_of(setup.EPSILON, setup.DELTA) <= scale


def test_the_results_hold_every_part_and_no_row_of_anybody():
    found = json.loads((ROOT / "benchmarks/results/comparison.json").read_text())
    assert {row["part"] for row in found["rows"]} >= {"reasons", "curves", "attack", "glass_box", "under_the_hood"}
    attacked = [row for row in found["rows"] if row["part"] == "attack" and row["method"] == "Vitrail"]
    # The attacker's luck against a promise that holds: so many right guesses must not be all but impossible.
    assert all(row["chance_of_so_many"] > 1e-6 for row in attacked)
    assert all(isinstance(column, vt.Numeric | vt.Categorical) for column in setup.Bench().schema.values())
