"""LocalLinear: what values mean, what bad input costs (nothing), what is replayed, promised and quoted."""

import subprocess
import sys

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import BudgetExceeded, InvalidInput, ModelError, SchemaError
from vitrail.solve.linear.weights import exponential

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100),
        "job": vt.Categorical(["clerk", "nurse", "pilot"]),
        "hours": vt.Numeric(0, 80),
        "rich": vt.Categorical(["no", "yes"]),
    }
)
POINT = {"age": 70, "job": "pilot", "hours": 40}
N_ROWS = 4000


def linear_risk(x):
    return 0.1 + 0.3 * x[:, 0] + 0.2 * x[:, 3] + 0.3 * x[:, 4]


MODEL = vt.Model(linear_risk, range=(0, 1), name="risk")


def rows_of(count=N_ROWS, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "age": generator.uniform(0, 100, count),
        "job": generator.choice(["clerk", "nurse", "pilot"], count, p=[0.5, 0.3, 0.2]),
        "hours": generator.uniform(0, 80, count),
        "rich": generator.choice(["no", "yes"], count),
    }


def private(epsilon=50_000.0, **options):
    options = {"name": "staff", "n_rows_public": N_ROWS, "target": "rich", **options}
    return vt.PrivateData(rows_of(), SCHEMA, budget=vt.Budget(epsilon, 1e-6), **options)


def forest(seed=0, classes=2):
    from sklearn.ensemble import RandomForestClassifier

    schema = SCHEMA.without("rich")
    raw = schema.read(rows_of())
    target = np.clip(raw[:, 0] // (100 / classes), 0, classes - 1).astype(int)
    return RandomForestClassifier(5, max_depth=4, random_state=seed).fit(schema.features(raw)[0], target)


@pytest.mark.usefixtures("planted_noise")
def test_a_linear_model_is_its_own_explanation():
    """Without noise worth the name, coefficients, values, base and prediction are the model's, up to the fixed ridge."""
    e = vt.LocalLinear(private(), MODEL)(POINT, mu=90.0)
    per_feature = e.coefficients[0] / np.sqrt(3)
    assert per_feature[0] == pytest.approx(0.3, rel=0.25)
    assert per_feature[4] == pytest.approx(0.3, rel=0.25)
    assert per_feature[3] - per_feature[1] == pytest.approx(0.2, rel=0.25)
    assert e.predictions[0] == pytest.approx(linear_risk(np.array([[0.7, 0, 0, 1, 0.5]]))[0], abs=0.03)
    assert e.outputs[0] == pytest.approx(e.predictions[0], abs=0.03)
    assert e.intercepts[0] == pytest.approx(e.predictions[0])
    assert e.columns == ("age", "job", "hours")
    assert e.features == SCHEMA.without("rich").feature_names
    assert e.points == ({"age": 70.0, "job": "pilot", "hours": 40.0},)
    assert e.method == "statistics"


@pytest.mark.usefixtures("planted_noise")
def test_values_compare_the_point_with_the_local_average():
    e = vt.LocalLinear(private(), MODEL)(POINT, mu=90.0)
    schema = SCHEMA.without("rich")
    raw = schema.read(rows_of())
    x = schema.features(raw)[0]
    z = schema.features(schema.read_points(POINT))[0]
    alpha = vt.LocalLinear(private(), MODEL).problem.weight(np.linalg.norm((x - z) / np.sqrt(3), axis=1))
    mean = (alpha[:, None] * x).sum(axis=0) / alpha.sum()
    slopes = np.array([0.3, 0, 0, 0.2, 0.3])
    expected = slopes * (z[0] - mean)
    assert np.allclose(e.values[0], [expected[0], expected[1:4].sum(), expected[4]], atol=0.015)  # the ridge's
    assert e.base_values[0] == pytest.approx(0.1 + slopes @ mean, abs=0.005)


def test_the_centred_form_has_the_slope_at_the_point_and_no_base():
    local = vt.LocalLinear(private(), MODEL, labels="hard", intercept=False)
    e = local(POINT, mu=90.0)
    assert e.base_values[0] == 0
    assert np.allclose(e.values[0], [e.coefficients[0, 0], e.coefficients[0, 3], e.coefficients[0, 4]])
    assert np.linalg.norm(e.coefficients[0] / 0.5) <= 1 + 1e-9  # the paper's unit ball


@pytest.mark.usefixtures("planted_noise")
def test_bands_hold_the_values_and_grow_with_the_price():
    data = private()
    sharp, blunt = (vt.LocalLinear(data, MODEL)(POINT, epsilon=epsilon) for epsilon in (5.0, 0.3))
    for e in (sharp, blunt):
        assert (e.lower <= e.values).all()
        assert (e.values <= e.upper).all()
    assert (blunt.upper - blunt.lower).mean() > 2 * (sharp.upper - sharp.lower).mean()
    assert any("Bands are about weighted ridge regression" in note for note in sharp.notes)
    without = vt.LocalLinear(data, MODEL, method=vt.linear.Statistics(bands=False))(POINT, epsilon=1.0)
    assert without.lower is None


def test_a_batch_costs_what_one_point_costs():
    data = private()
    e = vt.LocalLinear(data, MODEL)([POINT, {**POINT, "job": "clerk"}, {**POINT, "age": 3}], epsilon=0.5)
    assert len(e) == 3
    assert e.guarantee.epsilon == pytest.approx(0.5, rel=1e-6)
    assert data.budget.spent == e.cost


def test_asking_again_is_free_and_the_same():
    model, data = vt.Model(forest()), private(epsilon=1.0)
    first = vt.LocalLinear(data, model)(POINT, epsilon=0.9)
    again = vt.LocalLinear(data, model)(POINT, epsilon=0.9)
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.lower, again.lower)
    assert data.budget.spent == first.cost
    with pytest.raises(BudgetExceeded):
        vt.LocalLinear(data, model, labels="hard")(POINT, epsilon=0.9)


def test_functions_are_replayed_by_key_only():
    data = private(epsilon=1.0)
    vt.LocalLinear(data, MODEL, key="risk 1")(POINT, epsilon=0.9)
    vt.LocalLinear(data, MODEL, key="risk 1")(POINT, epsilon=0.9)
    with pytest.raises(BudgetExceeded):
        vt.LocalLinear(data, MODEL)(POINT, epsilon=0.9)


@pytest.mark.usefixtures("planted_noise")
def test_one_class_of_several_is_explained():
    estimator = forest(classes=3)
    data = private()
    first, last = (
        vt.LocalLinear(data, vt.Model(estimator, output=output))({**POINT, "age": 95}, mu=50.0) for output in (0, 2)
    )
    assert last.values[0, 0] > 0.05 > first.values[0, 0]


@pytest.mark.usefixtures("planted_noise")
def test_sharper_weights_and_own_functions():
    data = private()
    assert vt.LocalLinear(data, MODEL, weight=exponential(0.3))(POINT, mu=50.0).values.shape == (1, 3)
    own = vt.LocalLinear(data, MODEL, weight=lambda d: np.exp(-d))
    assert own(POINT, mu=50.0).values[0, 0] > 0
    with pytest.raises(InvalidInput, match="reaches inf"):
        vt.LocalLinear(data, MODEL, weight=lambda d: 1 / d)


# --- bad input costs nothing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [
        {**POINT, "job": "astronaut"},
        {**POINT, "age": float("nan")},
        {**POINT, "age": 170},
        {"age": 70, "job": "pilot"},
        np.array([70.0, 2.0]),
        np.full((2, 9), 1.0),
        [],
    ],
    ids=["unknown category", "NaN", "out of range", "missing column", "too narrow", "too wide", "none"],
)
def test_bad_points_are_refused_and_free(point):
    data = private(epsilon=1.0)
    with pytest.raises((SchemaError, InvalidInput)):
        vt.LocalLinear(data, MODEL)(point, epsilon=0.1)
    assert data.budget.spent == vt.Cost()


class ChangesShape:
    """Behaves on the probe rows, and not on the points."""

    def __call__(self, x):
        return x[:, :1] if len(x) == 1 and abs(x[0, 0] - 0.7) < 1e-9 else x[:, 0]


class FailsAtThePoint:
    def __call__(self, x):
        if (np.abs(x[:, 0] - 0.7) < 1e-9).any():
            raise RuntimeError("no")
        return x[:, 0]


@pytest.mark.parametrize(
    "predictor",
    [
        lambda x: x,
        lambda x: x[:-1, 0],
        lambda x: 3 * x[:, 0],
        lambda x: np.full(len(x), np.nan),
        ChangesShape(),
        FailsAtThePoint(),
    ],
    ids=["columns", "too few", "out of range", "NaN", "changes shape", "fails"],
)
def test_bad_models_are_refused_and_free(predictor):
    data = private(epsilon=1.0)
    with pytest.raises(ModelError):
        vt.LocalLinear(data, vt.Model(predictor, range=(0, 1), name="bad"))(POINT, epsilon=0.1)
    assert data.budget.spent == vt.Cost()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (lambda: "magic", "method is 'magic'; choose one of 'auto', 'statistics'"),
        (lambda: 7, "method is 7; choose one of"),
        (lambda: vt.linear.Moments(), "method is Moments"),
        (lambda: vt.linear.Statistics(draws=3), "draws is 3"),
        (lambda: vt.linear.Statistics(bands=1), "bands is 1"),
        (lambda: vt.linear.Descent(iterations=1), "iterations is 1"),
        (lambda: "history", "free"),
    ],
)
def test_bad_options_are_refused_and_free(method, words):
    data = private(epsilon=1.0)
    with pytest.raises(InvalidInput, match=words):
        vt.LocalLinear(data, MODEL, method=method())(POINT, epsilon=0.1)
    assert data.budget.spent == vt.Cost()


def test_options_of_another_method_are_no_options():
    with pytest.raises(TypeError):
        vt.linear.Descent(draws=59)
    with pytest.raises(TypeError):
        vt.LocalLinear(private(), MODEL, iterations=5)


def test_a_price_is_needed_and_one_only():
    data = private(epsilon=1.0)
    for price in ({}, {"epsilon": 0.1, "mu": 0.1}, {"epsilon": -1.0}):
        with pytest.raises(InvalidInput):
            vt.LocalLinear(data, MODEL)(POINT, **price)
    assert data.budget.spent == vt.Cost()


@pytest.mark.parametrize(
    "options",
    [
        {"labels": "medium"},
        {"intercept": 1},
        {"training_guarantee": (1,)},
        {"training_guarantee": (-1, 0)},
        {"key": ""},
        {"weight": "stable"},
    ],
    ids=str,
)
def test_bad_settings_are_refused(options):
    with pytest.raises(InvalidInput):
        vt.LocalLinear(private(), MODEL, **options)
    with pytest.raises(InvalidInput, match="PrivateData"):
        vt.LocalLinear(rows_of(), MODEL)
    with pytest.raises(InvalidInput, match=r"vt\.Model"):
        vt.LocalLinear(private(), linear_risk)


# --- promises and prices ---------------------------------------------------------------------------------------------------


def test_the_training_guarantee_is_added():
    data = private()
    plain = vt.LocalLinear(data, MODEL)(POINT, epsilon=0.5)
    assert plain.guarantee.protects == "explanation-data"
    both = vt.LocalLinear(data, MODEL, training_guarantee=(1.5, 1e-5))(POINT, epsilon=0.5)
    assert both.guarantee.protects == "training-data"
    assert both.guarantee.epsilon == pytest.approx(plain.guarantee.epsilon + 1.5)
    assert both.guarantee.delta == pytest.approx(plain.guarantee.delta + 1e-5)
    assert "trained on" in both.guarantee.sentence
    assert any("1.5" in note for note in both.notes)


@pytest.mark.usefixtures("planted_noise")
def test_a_quote_is_the_price_and_free():
    data = private(epsilon=1.0)
    local = vt.LocalLinear(data, MODEL)
    quote = local.quote(POINT, epsilon=0.2)
    ages = np.linspace(1, 99, 30)
    many = local.quote({"age": ages, "job": ["pilot"] * 30, "hours": [40] * 30}, epsilon=0.2)
    assert data.budget.spent == vt.Cost()
    assert many.half_width > quote.half_width > 0
    assert "Bands of about" in str(quote)
    e = local(POINT, epsilon=0.2)
    assert e.cost == quote.price.cost
    assert quote.half_width / 3 < e.half_width < 3 * quote.half_width  # an estimate from rows drawn from the schema
    assert data.quote(local, epsilon=0.2).price.cost == quote.price.cost
    assert data.quote(local.fitting("cells"), epsilon=0.2).half_width > 0
    with pytest.raises(InvalidInput, match="free and asks nothing"):
        data.quote(vt.LocalLinear(data, MODEL, method="history"), epsilon=0.2)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("kind", ["auto", "moments", "cells", "rows"])
def test_paying_once_explains_anyone(kind):
    data = private()
    local = vt.LocalLinear(data, MODEL).fit(epsilon=10.0, kind=kind)
    spent = data.budget.spent
    e = local([POINT, {**POINT, "age": 5}])
    assert data.budget.spent == spent == e.cost
    assert (e.coefficients[:, 0] > 0).all()


@pytest.mark.parametrize("kind", ["moments", vt.linear.Rows(n_sampled=200)])
def test_a_fit_promises_for_training_too(kind, tmp_path):
    local = vt.LocalLinear(private(), MODEL, training_guarantee=(1.0, 1e-5)).fit(epsilon=1.0, kind=kind)
    e = local(POINT)
    assert e.guarantee.protects == "training-data"
    assert e.guarantee.epsilon == pytest.approx(2.0, rel=1e-6)
    assert e.guarantee == local.guarantee
    if kind == "moments":
        local.save(tmp_path / "staff.synopsis")
        assert type(local).load(tmp_path / "staff.synopsis").guarantee == e.guarantee


def test_bad_fits_are_refused_and_free():
    data = private(epsilon=1.0)
    for kind in ("magic", vt.linear.Statistics(), vt.linear.Cells(columns=("age",)), vt.linear.Cells(columns=("colour",))):
        with pytest.raises(InvalidInput):
            vt.LocalLinear(data, MODEL).fit(epsilon=0.1, kind=kind)
    with pytest.raises(ModelError):
        vt.LocalLinear(data, vt.Model(lambda x: x, range=(0, 1))).fit(epsilon=0.1)
    assert data.budget.spent == vt.Cost()


def test_methods_are_reached_by_name():
    data = private()
    e = vt.LocalLinear(data, MODEL, method="adaptive")([POINT, {**POINT, "age": 20}], mu=5.0)
    assert len(e) == 2
    with pytest.raises(InvalidInput, match="needs the option history="):
        vt.LocalLinear(data, MODEL, method="history")(POINT)


def test_descent_is_reached_by_name():
    e = vt.LocalLinear(private(), MODEL, method=vt.linear.Descent(iterations=20))(POINT, mu=5.0)
    assert e.method == "descent"


USER_SCRIPT = """
import vitrail as vt

def ask(data: vt.PrivateData, model: vt.Model) -> None:
    explain = vt.LocalLinear(data, model, method=vt.linear.Statistics({statistics}), weight=vt.weights.stable(){more})
    explain({{"age": 3}}, epsilon=0.1{call}).top(3)
    explain.fit(kind={kind}, epsilon=0.1).half_width
    data.quote(explain, epsilon=0.1).result.top(3)
"""
GOOD = {"statistics": "draws=59", "more": "", "call": "", "kind": "vt.linear.Rows(n_sampled=3000)"}


@pytest.mark.slow
def test_a_type_checker_catches_a_misspelt_option(tmp_path):
    mistakes = [
        {},
        {"statistics": "darws=59"},
        {"more": ", lables='hard'"},
        {"more": ", labels='medium'"},
        {"call": ", bands=False"},
        {"kind": "'row'"},
        {"kind": "vt.linear.Rows(replicate=3)"},
    ]
    for number, mistake in enumerate(mistakes):
        (tmp_path / f"script_{number}.py").write_text(USER_SCRIPT.format(**{**GOOD, **mistake}))
    files = sorted(str(file) for file in tmp_path.glob("script_*.py"))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), *files]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert [f"script_{number}.py" in told for number in range(len(mistakes))] == [bool(mistake) for mistake in mistakes], (
        told
    )


def test_nothing_about_the_rows_in_the_repr():
    assert repr(vt.LocalLinear(private(), MODEL)) == (
        "LocalLinear(Model(risk, range=(0, 1)), weight 'stable', soft labels, with intercept)"
    )
