"""The judge of the benchmark on reasons: its Shapley values are those of the definition, and its distances are distances."""

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import vitrail as vt
from benchmark_scripts import script

pytest.importorskip("numba")
setup = script("reasons_setup")
peers = script("reasons_peers")
reasons = script("reasons")

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 40, integer=True),
        "city": vt.Categorical(["a", "b", "c"]),
        "gain": vt.Numeric(0, 999, integer=True),
        "share": vt.Numeric(0, 1),
    }
)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [
            rng.integers(0, 41, 400),
            rng.integers(0, 3, 400),
            rng.integers(0, 999, 400) * (rng.random(400) < 0.2),
            rng.random(400),
        ]
    )
    target = (rows[:, 0] / 20 + (rows[:, 1] == 2) * rows[:, 3] + (rows[:, 2] > 0) > 1.2).astype(float)
    return setup.Case("tiny", SCHEMA, rows[:380], target[:380], rows[380:])


def by_definition(predict, z, background):
    """Shapley values from all coalitions."""
    d = len(z)
    members = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    worth = np.mean([predict(np.where(members, z, b)) for b in background], axis=0)
    sizes = members.sum(axis=1)
    values = np.zeros(d)
    for j in range(d):
        without = np.flatnonzero(~members[:, j])
        weights = [math.factorial(s) * math.factorial(d - s - 1) / math.factorial(d) for s in sizes[without]]
        values[j] = weights @ (worth[without + 2**j] - worth[without])
    return values


@pytest.mark.parametrize("kind", setup.MODELS)
def test_values_are_those_of_the_definition(case, kind):
    estimator = setup.fitted(case, kind)
    model = setup.judged(case, kind, estimator)
    assert model.predict(case.people) == pytest.approx(estimator.predict_proba(case.people)[:, 1], abs=1e-5)
    z, background = case.people[:2], case.rows[:15]
    found = model.values(z, background, orders=2000)
    wanted = [by_definition(lambda raw: estimator.predict_proba(raw)[:, 1], person, background) for person in z]
    # 30 000 orders and their reverses: a gain lies in [-1, 1], so 0.03 is five standard errors at the very least.
    assert found == pytest.approx(np.array(wanted), abs=1e-12 if kind == setup.FOREST else 0.03)
    assert found.sum(axis=1) == pytest.approx(model.predict(z) - model.predict(background).mean(), abs=1e-5)
    if kind == setup.BOOSTING:
        margin = by_definition(estimator.decision_function, z[0], background)
        assert model.margin().values(z[:1], background)[0] == pytest.approx(margin, abs=1e-12)


def test_a_regression_is_exact(case):
    estimator = RandomForestRegressor(5, random_state=0).fit(case.rows, case.rows[:, 0] * case.rows[:, 3])
    found = setup.tree_sum(estimator, 4).values(case.people[:1], case.rows[:10])
    assert found[0] == pytest.approx(by_definition(estimator.predict, case.people[0], case.rows[:10]), abs=1e-9)


def test_the_real_rows_agree_with_the_truth_and_others_do_not(case, tmp_path, monkeypatch):
    monkeypatch.setitem(setup.CASES, "tiny", lambda folder: case)
    monkeypatch.setattr(setup, "LEAST_ORDERS", 8192)
    bench = setup.bench_of(Path(tmp_path), tmp_path, quick=True)
    cosine, top = setup.judge(case.rows, "tiny", setup.FOREST, bench=bench)
    assert (cosine, top) == (pytest.approx(1), 1.0)
    wrong = np.tile(case.people[:1], (5, 1))
    assert setup.judge(wrong, "tiny", setup.FOREST, bench=bench)[0] < 0.9
    rows = reasons.judged(bench, "tiny", [case.rows], epsilon=1.0)
    assert [row["model"] for row in rows] == list(setup.MODELS)
    assert all(row["cosine"] > 0.99 and row["monte_carlo"] < 1e-3 for row in rows)
    assert reasons.headline_of(rows, "tiny", 1.0)["tiny_top_eps1"] == min(row["top"] for row in rows)


def test_distances_of_tables(case):
    assert peers.table_distance(case, case.rows) == 0
    columns = np.column_stack([np.random.default_rng(j).permutation(case.rows[:, j]) for j in range(4)])
    assert 0 < peers.table_distance(case, columns) < peers.table_distance(case, np.zeros((5, 4)))


def test_a_zero_has_a_bin_of_its_own_and_rows_come_back_to_their_bins(case):
    bins = peers.binned(case)
    gain = list(SCHEMA).index("gain")
    codes = bins.codes(case.rows)
    assert set(case.rows[codes[:, gain] == bins.codes(np.zeros((1, 4)))[0, gain], gain]) == {0.0}
    back = bins.rows(codes, np.random.default_rng(0))
    assert (bins.codes(back) == codes).all()
    drawn = peers.independent_rows(case, 1.0, 50, seed=0)
    assert drawn.shape == (50, 4)
    assert np.isfinite(SCHEMA.features(drawn)[0]).all()
