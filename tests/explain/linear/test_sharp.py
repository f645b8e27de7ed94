"""Explanations on private rows: right where the truth is known, free after the release, honest about what they are."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput, ModelError, SchemaError
from vitrail.results.private_rows import PrivateRows
from vitrail.solve.linear.labelled_rows import (
    LEAST_WEIGHT,
    LabelledRows,
    RowsExplainer,
    anchors,
    explain_on,
    least_width,
    solve_at,
    usual_square,
)
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import exponential, stable

DATA = Path(__file__).resolve().parents[3] / "examples" / "data"
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100),
        "smoker": vt.Categorical(["no", "yes"]),
        "sex": vt.Categorical(["Female", "Male"]),
        "ill": vt.Categorical(["no", "yes"]),
    }
)
FEATURES = SCHEMA.without("ill")
POINTS = [{"age": 90.0, "smoker": "yes", "sex": "Male"}, {"age": 10.0, "smoker": "no", "sex": "Female"}]


def linear_model() -> vt.Model:
    return vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")


def private(epsilon: float = 1.0) -> vt.PrivateData:
    rng = np.random.default_rng(0)
    n = 20_000
    rows = {
        "age": rng.uniform(0, 100, n),
        "smoker": rng.choice(["no", "yes"], n),
        "sex": rng.choice(["Female", "Male"], n),
        "ill": rng.choice(["no", "yes"], n),
    }
    return vt.PrivateData(rows, SCHEMA, name="people", target="ill", n_rows_public=n, budget=vt.Budget(epsilon, 1e-6))


def problem(model: vt.Model | None = None, **options: object) -> LocalProblem:
    return LocalProblem(FEATURES, model or linear_model(), stable(), **options)  # type: ignore[arg-type]


def fit(model: vt.Model, data: vt.PrivateData, mu: float, **options: int) -> RowsExplainer:
    return vt.LocalLinear(data, model).fit(kind=vt.linear.Rows(**options), mu=mu)


@pytest.fixture(scope="module")
def rows() -> PrivateRows:
    with planted_noise():
        return vt.private_rows(private(), epsilon=1.0)


def test_a_linear_model_is_recovered(rows: PrivateRows) -> None:
    e = explain_on(problem(), rows, n_sampled=20_000)(POINTS)
    assert e.method == "private-rows"
    assert e.predictions == pytest.approx([0.87, 0.23], abs=0.01)
    assert e.base_values + e.values.sum(axis=1) == pytest.approx(e.predictions)
    assert np.abs(e.values[:, 2]).max() < 0.01  # the model does not read sex
    assert e.values[0, 1] > 0.05 > -0.05 > e.values[1, 1]


def test_paying_once_explains_for_free_and_the_price_does_not_depend_on_the_model() -> None:
    data = private()
    local = fit(linear_model(), data, 0.2, n_sampled=2000)
    spent = data.budget.spent
    local(POINTS)
    local(POINTS[0])
    other = vt.Model(lambda x: x[:, 0], range=(0, 1))
    fit(other, data, 0.2, n_sampled=2000)  # the same release, replayed
    assert data.budget.spent == spent == local.rows.cost
    assert local(POINTS).guarantee == local.rows.guarantee


def test_the_solver_is_ridge_regression_towards_the_slope() -> None:
    rng = np.random.default_rng(0)
    x, f, slope, z, counts = rng.random((300, 5)), rng.random(300), rng.random(5), rng.random((1, 5)), rng.random(300)
    sharp = dataclasses.replace(problem(), weight=exponential(0.3))
    fit = solve_at(sharp, z, LabelledRows(x, f, counts, slope), 0.01)
    weights = np.exp(-((x - z) ** 2).sum(axis=1) / 0.3)
    weights[weights < LEAST_WEIGHT * weights.max()] = 0.0
    weights *= counts / (weights @ counts)
    stacked = np.vstack([np.sqrt(weights)[:, None] * np.column_stack([np.ones(300), x - z]), 0.1 * np.eye(6)[1:]])
    wanted = np.linalg.lstsq(stacked, np.concatenate([np.sqrt(weights) * f, 0.1 * slope]), rcond=None)[0]
    assert fit.phi[0] == pytest.approx(wanted, abs=1e-9)
    assert fit.means is not None
    assert fit.means[0] == pytest.approx(weights @ (x - z))
    assert fit.misses is not None
    assert fit.misses[0] == pytest.approx(np.sqrt(weights @ (wanted[0] + (x - z) @ wanted[1:] - f) ** 2))


def width_of(local: RowsExplainer) -> float:
    return dict(local.problem.weight.parameters)["width"]


def numbers(high: float, scale: float) -> tuple[vt.Schema, PrivateRows]:
    """Two columns of numbers up to ``scale`` that were declared up to ``high``."""
    schema, rng = vt.Schema({"age": vt.Numeric(0, high), "dose": vt.Numeric(0, high)}), np.random.default_rng(0)
    rows = {name: rng.uniform(0, scale, 20_000) for name in schema}
    data = vt.PrivateData(rows, schema, name="people", n_rows_public=20_000, budget=vt.Budget(10, 1e-6))
    with planted_noise():
        return schema, vt.private_rows(data, epsilon=10.0)


def test_the_width_is_a_tenth_of_the_median_square_between_rows_whatever_the_bounds_are() -> None:
    bent = vt.Model(lambda x: np.minimum(1.0, x[:, 0] * 10) ** 4, range=(0, 1), name="bent")
    for high in (100.0, 1000.0):
        schema, rows = numbers(high, 100.0)
        about = LocalProblem(schema, bent, stable())
        local = explain_on(about, rows, n_sampled=5000)
        x = about.encode(rows.raw(20_000, 9))
        median = np.median(((x[::2] - x[1::2]) ** 2).sum(axis=1))
        assert width_of(local) == pytest.approx(0.1 * median, rel=0.1)
        assert local.ridge == pytest.approx(2e-4 * width_of(local))
        assert explain_on(about, rows, n_sampled=2000, weight=stable()).problem.weight.name == "stable"
    point = {"age": 90.0, "dose": 50.0}  # among rows that fill a hundredth of what the schema allows
    sharp, blunt = (explain_on(about, rows, n_sampled=5000, weight=weight)(point) for weight in (None, exponential(0.65)))
    assert sharp.gap is not None
    assert blunt.gap is not None
    assert abs(sharp.gap[0]) < 0.5 * abs(blunt.gap[0])


def test_neighbours_who_differ_in_one_level_always_have_a_say(rows: PrivateRows) -> None:
    local = explain_on(problem(), rows, n_sampled=2000)
    assert local.problem.weight(np.sqrt([2 / 3]))[0] == pytest.approx(0.2)  # two of the three columns agree
    whole = vt.Schema({"smoker": vt.Numeric(0, 1, integer=True), "age": vt.Numeric(0, 100, integer=True)})
    assert exponential(least_width(whole))(np.sqrt([1 / 2]))[0] == pytest.approx(0.2)
    assert least_width(vt.Schema({"age": vt.Numeric(0, 100)})) == 0


def test_rows_that_are_all_alike_have_a_width_all_the_same() -> None:
    class Alike:
        schema = FEATURES

        def raw(self, n: int, seed: int) -> np.ndarray:
            return np.tile(FEATURES.filler(), (n, 1))

    assert usual_square(problem(), Alike(), 0) == 1.0  # type: ignore[arg-type]


def test_fidelity_is_the_error_on_rows_near_the_point(rows: PrivateRows) -> None:
    straight = explain_on(problem(), rows, n_sampled=5000)(POINTS)
    assert straight.fidelity is not None
    assert straight.fidelity.max() < 1e-3  # the model is linear
    schema, pairs = numbers(100.0, 100.0)
    step = vt.Model(lambda x: (x[:, 0] > 0.5) * 0.8, range=(0, 1), name="step")
    local = explain_on(LocalProblem(schema, step, stable()), pairs, n_sampled=5000)
    bent = local([{"age": age, "dose": 50.0} for age in (5.0, 50.0)])
    assert bent.fidelity is not None
    assert bent.fidelity[1] > 3 * bent.fidelity[0]  # the step is at 50
    assert bent.fidelity[1] > 0.05


def test_the_centred_form_stays_in_the_unit_ball(rows: PrivateRows) -> None:
    e = explain_on(problem(intercept=False, labels="hard"), rows, n_sampled=3000)(POINTS)
    assert e.coefficients is not None
    assert (np.linalg.norm(e.coefficients, axis=1) <= 0.5 * (1 + 1e-9)).all()  # half the range of the output
    assert (e.base_values == 0).all()
    assert e.gap is None  # contributions of this form add up to no output


def test_bands_come_unless_declined_and_say_what_they_are(rows: PrivateRows) -> None:
    without = explain_on(problem(), rows, n_sampled=2000)(POINTS, bands=False)
    assert without.lower is None
    assert any("No bands" in note for note in without.notes)
    banded = explain_on(problem(), rows, n_sampled=2000)(POINTS)
    assert banded.lower is not None
    assert banded.upper is not None
    assert (banded.lower <= banded.values).all()
    assert (banded.values <= banded.upper).all()
    assert (banded.values == without.values).all()
    assert any("Bands hold the noise of the tables" in note for note in banded.notes)


def test_anchors_change_one_column_and_do_not_follow_the_sampler() -> None:
    raw = np.tile(FEATURES.filler(), (6000, 1))
    made = anchors(FEATURES, raw, 0)
    changed = made != raw
    assert (changed.sum(axis=1) <= 1).all()
    assert changed.any(axis=0).all()
    assert not np.isnan(FEATURES.features(made)[0]).any()
    # The sampler's first draws at the same seed decide the first column; they must not decide what is redrawn.
    first = np.random.default_rng(0).random(6000)
    assert abs(np.corrcoef(first, changed[:, 0])[0, 1]) < 0.06


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_sampled": 10}, "n_sampled is 10"),
        ({"n_sampled": 2.5}, r"n_sampled is 2\.5"),
    ],
)
def test_bad_options_cost_nothing(options: dict[str, object], sentence: str) -> None:
    data = private()
    with pytest.raises(InvalidInput, match=sentence):
        fit(linear_model(), data, 0.2, **options)  # type: ignore[arg-type]
    assert data.budget.n_questions == 0


def test_a_bad_model_costs_nothing() -> None:
    data = private()
    with pytest.raises(ModelError, match="range"):
        fit(vt.Model(lambda x: 5 + x[:, 0], range=(0, 1)), data, 0.2)
    assert data.budget.n_questions == 0


def test_bad_points_are_named(rows: PrivateRows) -> None:
    local = explain_on(problem(), rows, n_sampled=2000)
    for point in ({**POINTS[0], "smoker": "maybe"}, {**POINTS[0], "age": float("nan")}, {**POINTS[0], "age": 200}):
        with pytest.raises(SchemaError):
            local(point)
    partial = vt.private_rows(private(), epsilon=1.0, columns=["age", "smoker"])
    with pytest.raises(SchemaError, match="'sex'"):
        explain_on(problem(), partial)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.slow
def test_on_adult_it_is_more_faithful_than_the_global_linear_fit() -> None:
    schema = vt.Schema.load(DATA / "adult.schema.json")
    frame = pd.read_parquet(DATA / "adult.parquet")
    features = schema.without("income")
    raw = schema.read(frame)[:, [schema.column_index(name) for name in features]]
    encoded = features.features(raw)[0]
    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(encoded, frame["income"] == ">50K")
    f, x = 2 * model.predict_proba(encoded)[:, 1] - 1, encoded / np.sqrt(features.n_columns)
    data = vt.PrivateData(frame, schema, name="adult", target="income", n_rows_public=30_162, budget=vt.Budget(1.0, 1e-6))
    local = fit(vt.Model(model), data, 0.2367, n_sampled=30_000)
    chosen = np.random.default_rng(5).choice(len(x), 40, replace=False)
    e = local(frame[list(features)].iloc[chosen])
    assert e.intercepts is not None
    assert e.coefficients is not None
    design = np.column_stack([np.ones(len(x)), x])
    plain = np.linalg.lstsq(design.T @ design + 1e-6 * np.eye(design.shape[1]), design.T @ f, rcond=None)[0]
    ours, linear = [], []
    for k, place in enumerate(chosen):
        apart = ((x - x[place]) ** 2).sum(axis=1)
        apart[place] = np.inf
        near = np.argsort(apart, kind="stable")[:200]
        predicted = 2 * (e.intercepts[k] + (x[near] - x[place]) @ e.coefficients[k]) - 1
        ours.append(np.mean((predicted - f[near]) ** 2))
        linear.append(np.mean((design[near] @ plain - f[near]) ** 2))
    assert np.mean(ours) < 0.9 * np.mean(linear)


def test_more_sampled_rows_do_not_make_the_kernel_sharper(rows: PrivateRows) -> None:
    few, many = (explain_on(problem(), rows, n_sampled=n)(POINTS).values for n in (4000, 40_000))
    assert np.abs(few - many).max() < 0.03
    assert abs(many[0, 1]) > 0.02  # neighbours who differ in the column are among them
