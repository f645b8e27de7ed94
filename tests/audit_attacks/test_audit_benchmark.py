"""The pieces of the audit benchmark: breaches are caught, bounds are bounds, tables come from results files."""

import json

import numpy as np
import pytest

import vitrail as vt
from benchmark_scripts import script
from error_rates import CONFIDENCE, largest_count, planted_noise

claims = script("audit_claims")
private = script("audit_private")
marks = script("page_marks", "tools")
tables = script("audit_tables", "tools")


def audited(breach):
    return vt.audit.mechanism(breach.run, breach.neighbours, breach.claimed, draws=breach.draws, confidence=CONFIDENCE)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", ["unique_categories", "halved_noise"])
def test_breaches_are_caught(name):
    assert audited(claims.BREACHES[name][0](1, 4000)).refuted


@pytest.mark.slow
@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", ["algorithm_2", "dpc_prototypes", "dpc_basis", "double_histogram"])
def test_slow_breaches_are_caught(name):
    make, _, few = claims.BREACHES[name]
    assert audited(make(2, few)).refuted


@pytest.mark.slow
def test_a_ranking_priced_for_the_wrong_direction_is_caught_and_mended_afterwards():
    make, _, few = claims.BREACHES["borda_direction"]
    breach = make(3, few)
    with breach.planted(), planted_noise():
        assert audited(breach).refuted
    assert not audited(breach).refuted


def test_sound_mechanisms_are_not_refuted():
    rows = claims.false_alarm_rows(8, 1000)
    assert sum(row["audits"] for row in rows) == 8
    assert sum(row["refuted"] for row in rows) <= largest_count(8, 0.001)  # audits of 99.9 % confidence


def test_a_violation_is_more_than_the_promise_allows():
    assert private.bound_on_advantage(1.0) == pytest.approx(np.tanh(0.5), abs=1e-5)
    assert not private.violated(73, 100, 27, 100, 1.0)  # exactly what epsilon = 1 allows
    assert private.violated(990, 1000, 10, 1000, 1.0)
    assert private.violated(1000, 1000, 500, 1000, 0.1)  # found surely among many accused: the other direction


def test_attacks_learn_on_their_own_trials():
    generator = np.random.default_rng(4)
    member = generator.integers(0, 2, 400).astype(bool)
    vectors = generator.normal(size=(400, 3)) + 3.0 * member[:, None]
    training = np.arange(400) < 200
    scores = private.scores_of(vectors, member, training)
    judged = scores["linear discriminant"][~training]
    assert np.median(judged[member[~training]]) > np.median(judged[~member[~training]])


def test_tables_come_from_results(tmp_path, monkeypatch):
    interval = {"value": 0.5, "lower": 0.4, "upper": 0.6}
    found = {
        "headline": {"lrt_tpr_gain": 10.0, "breaches_caught": 1},
        "rows": [
            {"part": "claims", "breach": "halved noise", "tests": "mu", "claimed_mu": 1.0, "mu_lower": 1.9, "draws": 9,
             "verdict": "refuted"},
            {"part": "location", "attack": "online", "signal": "loss", "auc": interval, "tpr_at_1_percent": interval,
             "tpr_at_01_percent": interval},
            {"part": "reconstruction", "data": "adult", "strategy": "walk", "queries": 9, "recovered": 3, "share": 0.3,
             "rank": 5, "by_group": {"women": interval}},
            {"part": "private", "explainer": "Shapley", "epsilon": 1.0, "attack": "L1", "auc": 0.5, "tpr_at_1_percent": 0.0,
             "advantage": 0.0, "allowed": 0.46},
        ],
    }  # fmt: skip
    (tmp_path / "audit.json").write_text(json.dumps(found))
    monkeypatch.setattr(marks, "RESULTS", tmp_path)
    marks.stored.cache_clear()
    try:
        made = {
            name: "\n".join(tables.TABLES[f"audit.{name}"]()) for name in ("claims", "reconstruction", "private", "gallery")
        }
    finally:
        marks.stored.cache_clear()
    assert "| halved noise | mu = 1 | 1.9 | 9 | refuted |" in made["claims"]
    assert "women: 0.500" in made["reconstruction"]
    assert "| Shapley |" in made["private"]
    assert "| mu 1 | 1.90 | refuted |" in made["gallery"]
