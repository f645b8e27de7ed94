"""The benchmark on bands: pairs are counted as they should be, and every part runs on data it makes."""

import json

import numpy as np
import pytest

import vitrail as vt
from benchmark_scripts import script

pytest.importorskip("numba")
setup = script("bands_setup")
tools = script("bands_tools")
bands = script("bands")
clear = script("bands_clear")
script("bands_shap")  # parts import these by name when they are asked for
script("bands_local")
script("bands_linear")
tables = script("bands_tables", "tools")
reasons_setup = script("reasons_setup")
running = script("running")

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 40, integer=True),
        "city": vt.Categorical(["a", "b", "c"]),
        "gain": vt.Numeric(0, 999, integer=True),
        "share": vt.Numeric(0, 1),
    }
)
OURS = [name for name, module in bands.PARTS.items() if module != "bands_curves"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    rng = np.random.default_rng(0)
    gain = rng.integers(0, 999, 420) * (rng.random(420) < 0.2)
    rows = np.column_stack([rng.integers(0, 41, 420), rng.integers(0, 3, 420), gain, rng.random(420)])
    target = (rows[:, 0] / 20 + (rows[:, 1] == 2) * rows[:, 3] + (rows[:, 2] > 0) > 1.2).astype(float)
    split = reasons_setup.Case("tiny", SCHEMA, rows[:400], target[:400], rows[400:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(setup.READERS, "tiny", lambda folder: split)
        patch.setattr(clear, "SMALL", ("tiny",))
        folder = tmp_path_factory.mktemp("bands")
        yield setup.Bench(folder, setup.Cache(folder), quick=True, data=("tiny",), epsilons=(1.0,))


def test_a_compiled_model_is_the_model(bench):
    case = bench.case("tiny")
    estimator = setup.fitted(case.split)
    assert case.predict(case.people) == pytest.approx(estimator.predict_proba(case.people)[:, 1], abs=1e-9)
    assert len(case.fewer(100).rows) == 100
    assert case.terms(1.0).n_rows_public == 400


def test_the_network_of_rentals_is_scikit_learns():
    rng = np.random.default_rng(0)
    rows, target = rng.random((200, 3)), rng.integers(1, 900, 200).astype(float)
    schema = vt.Schema({name: vt.Numeric(0, 1) for name in "abc"})
    split = reasons_setup.Case("bike", schema, rows, target, rows[:5])
    estimator = setup.fitted(split)
    case = setup.compiled(split, estimator)
    assert case.predict(rows) == pytest.approx(np.clip(np.exp(estimator.predict(rows)), 1, 977))


@pytest.mark.parametrize("name", OURS)
def test_every_part_runs(bench, name, tmp_path):
    running.measure(bands.BENCHMARK, [name], bench, tmp_path, resume=False)
    part = json.loads((tmp_path / f"{name}.json").read_text())
    assert {row["data"] for row in part["rows"]} == {"tiny"}
    if name.startswith("false_clear"):
        assert 0 <= part["headline"][name] <= 1
        return
    rows = [row for row in part["rows"] if row["coverage"] is not None]
    assert rows or all(row["mostly_noise"] == 1 for row in part["rows"])
    assert all(0 <= row["coverage"] <= 1 and 0 <= row["mostly_noise"] < 1 for row in rows)


def test_pairs_are_held_or_not_and_noise_is_counted_apart():
    coverage = tools.Coverage("some", least_pairs=2)
    values = np.array([0.0, 1.0, 2.0])
    pairs = {"value": values, "lower": values - 1, "upper": values + 1, "truth": 0.5}
    coverage.add("data", 1.0, "age", **pairs)
    coverage.add("data", 1.0, "age", **pairs, noise=True)
    coverage.add("data", 1.0, "rare", value=0.0, lower=0.0, upper=0.0, truth=1.0)
    age, rare = coverage.rows()
    assert (age["coverage"], age["pairs"], age["mostly_noise"], age["noise_coverage"]) == (2 / 3, 3, 0.5, 2 / 3)
    assert age["width"] == pytest.approx(1 / (1.96 * np.sqrt(2.75 / 3)), rel=1e-3)
    assert (rare["coverage"], rare["pairs"]) == (0, 1)
    assert coverage.part("how").headline["some_worst"] == 2 / 3  # one pair of a rare column is too few


def test_bands_of_the_right_width_hold_95_percent():
    coverage, rng = tools.Coverage("some"), np.random.default_rng(0)
    for column in "ab":
        value = rng.normal(3.0, 2.0, 4000)
        coverage.add("data", 1.0, column, value=value, lower=value - 3.92, upper=value + 3.92, truth=3.0)
    headline = coverage.part("how").headline
    assert headline["some_overall"] == pytest.approx(0.95, abs=0.015)
    assert headline["some_width"] == pytest.approx(1.0, abs=0.05)


def test_noise_is_called_noise():
    rng, stds = np.random.default_rng(0), np.ones((500, 10))
    nothing = rng.normal(size=(500, 10))
    assert tools.mostly_noise(nothing, stds).mean() > 0.9
    assert tools.clear(nothing, stds).mean() < 0.01
    assert not tools.mostly_noise(nothing + 10 * np.eye(10)[0], stds).any()
    assert tools.clear(nothing + 10 * np.eye(10)[0], stds)[:, 0].all()


def test_the_page_shows_what_misses_the_bars(monkeypatch):
    row = {
        "part": "pdp",
        "explainer": "pdp",
        "data": "adult",
        "epsilon": 1.0,
        "pairs": 400,
        "width": 1.2,
        "mostly_noise": 0.0,
    }
    rows = [{**row, "column": "age", "coverage": 0.6}, {**row, "column": "sex", "coverage": 1.0}]
    rows += [{**row, "column": "rare", "coverage": 0.0, "pairs": 3}]
    how = {"not finished": ["ale", "false_clear"], "data": ["adult"], "pdp": "nobody had looked at these data"}
    monkeypatch.setattr(tables, "stored", lambda name: {"rows": rows, "how": how})
    line, _, missing = tables.explainers()[2:]
    assert missing == "Not measured: accumulated effects."
    summary = "80.0% (adult, eps 1) | 60.0% | age (adult, eps 1) | 1.20 x | **no** |"
    assert line == f"| partial dependence | {summary}"
    assert tables.worst()[2].startswith("| partial dependence | adult | 1 | age | 60.0%")
    monkeypatch.setattr(tables, "OUTSIDE", ("one", "two"))
    assert tables.outside()[2:] == 2 * [f"| partial dependence | adult | {summary} yes |"]
    how["pdp"] = "measured again after a change: everything"
    assert tables.outside()[2:] == 2 * [f"| partial dependence | adult | {summary} no |"]
    assert tables.misses()[2:] == 3 * ["| partial dependence | adult | age | 1 | 60.0% |"]
