"""SHAP importance and dependence end to end."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput

N = 4000
RNG = np.random.default_rng(6)
SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "pay": vt.Numeric(0, 1), "job": vt.Categorical(["clerk", "smith", "baker"])})
ROWS = {
    "age": RNG.uniform(0, 100, N),
    "pay": RNG.beta(2, 4, N),
    "job": RNG.choice(["clerk", "smith", "baker"], N, p=[0.6, 0.3, 0.1]),
}


def output(x):
    return 0.5 * x[:, 0] ** 2 + 0.1 * x[:, 1] + 0.3 * x[:, 3]


MODEL = vt.Model(output, range=(0, 1), name="formula")


def private(budget=1e4, **more):
    return vt.PrivateData(ROWS, SCHEMA, name="staff", n_rows_public=N, budget=vt.Budget(budget, 1e-6), **more)


def centred():
    """Shapley values of an additive model: each part less its mean."""
    parts = {"age": 0.5 * (ROWS["age"] / 100) ** 2, "pay": 0.1 * ROWS["pay"], "job": 0.3 * (ROWS["job"] == "smith")}
    return {name: part - part.mean() for name, part in parts.items()}


@pytest.mark.usefixtures("planted_noise")
def test_importance_is_the_mean_size():
    found = vt.ShapImportance(private(), MODEL, chains=64)(mu=100.0)
    expected = np.array([np.abs(part).mean() for part in centred().values()])
    np.testing.assert_allclose(found.scores, expected, atol=0.02)
    assert found.order[2] == "pay"
    assert found.kind == "SHAP importance"


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_dependence_follows_the_column(neighbours):
    curves = vt.ShapDependence(private(neighbours=neighbours), MODEL, columns=["age", "job"])(mu=60.0)
    assert list(curves) == ["age", "job"]
    age = curves["age"]
    expected = 0.5 * (np.asarray(age.x) / 100) ** 2 - 0.5 * np.mean((ROWS["age"] / 100) ** 2)
    np.testing.assert_allclose(age.y, expected, atol=0.02)
    smith = np.mean(ROWS["job"] == "smith")
    np.testing.assert_allclose(curves["job"].y, 0.3 * np.array([-smith, 1 - smith, -smith]), atol=0.02)


@pytest.mark.usefixtures("planted_noise")
def test_a_curve_has_a_band_that_holds():
    marginals = vt.marginals(private(), mu=60.0)
    given = {"columns": ["age"], "marginals": marginals}
    exact = vt.ShapDependence(private(), MODEL, **given)(mu=100.0)["age"]
    draws = [vt.ShapDependence(private(), MODEL, **given)(mu=1.0)["age"] for _ in range(30)]
    assert isinstance(draws[0], vt.Curve)
    inside = np.mean([(one.lower <= exact.y) & (exact.y <= one.upper) for one in draws])
    assert 0.9 < inside < 0.99


def test_the_price_is_what_was_asked():
    data = private(budget=2.0)
    found = vt.ShapDependence(data, MODEL, columns=["age"])(epsilon=0.5)
    assert data.budget.spent == found.cost
    ranked = vt.ShapImportance(data, MODEL)(epsilon=0.5)
    assert ranked.guarantee.epsilon <= 0.5 + 1e-9
    assert data.budget.spent <= found.cost + ranked.cost  # the histograms were the same question, and replayed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["agee"]}, "names 'agee', which is none of"),
        ({"columns": ["age", "age"]}, "twice"),
        ({"columns": []}, "columns is empty"),
        ({"columns": [3]}, "names 3, which is none of"),
        ({"chains": 0}, "chains is 0"),
        ({"sampling_rate": "all"}, "sampling_rate"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_charged(options, message):
    data = private()
    with pytest.raises(InvalidInput, match=message):
        vt.ShapDependence(data, MODEL, **options)(epsilon=1.0)
    with pytest.raises(InvalidInput, match="wrap it"):
        vt.ShapImportance(data, output)
    assert data.budget.spent == vt.Cost()


# --- rare cells -------------------------------------------------------------------------------------------------------

RARE = vt.Schema({"age": vt.Numeric(0, 100), "stroke": vt.Categorical(["no", "yes"])})
STROKE = vt.Model(lambda x: 0.1 * x[:, 0] + 0.7 * x[:, 2], range=(0, 1), name="stroke")


def rare_curve(count, mu):
    """Of a level that ``count`` of the rows have; its value is 0.7 less the background's mean of that."""
    stroke = np.full(N, "no", dtype=object)
    stroke[:count] = "yes"
    rows = {"age": ROWS["age"], "stroke": stroke}
    data = vt.PrivateData(rows, RARE, name="rare", n_rows_public=N, budget=vt.Budget(1e4, 1e-6), ledger="memory")
    return vt.ShapDependence(data, STROKE, columns=["stroke"])(mu=mu)["stroke"]


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("mu", [0.05, 0.2, 1.0])
def test_a_level_that_hardly_a_row_has_is_shown_as_the_model_has_it(mu):
    """No reference row need have the level: it once got the mean over all rows, 0, and a band of nothing around it."""
    curve = rare_curve(4, mu)
    assert curve.y[1] == pytest.approx(0.7, abs=0.1)  # of the background, a few rows in a hundred have it, by noise
    assert abs(curve.y[0]) < 0.1
