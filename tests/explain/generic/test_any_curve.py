"""Any curve: what explainers may say, what it costs, what is refused before anything is charged."""

import math

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from error_rates import count_bounds, normal_bound, square_sum_bounds
from vitrail.errors import InvalidInput, ModelError, SchemaError
from vitrail.explain.any_curve import CurveGrid, CurveReader
from vitrail.explain.group_task import choose_groups
from vitrail.explain.recipe import Terms

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100),
        "visits": vt.Numeric(0, 9, integer=True),
        "sex": vt.Categorical(["f", "m", "x"]),
        "risk": vt.Numeric(0, 1),
    }
)
GENERATOR = np.random.default_rng(5)
AGE = GENERATOR.uniform(0, 100, 4000)
ROWS = {
    "age": AGE,
    "visits": GENERATOR.integers(0, 10, 4000),
    "sex": np.array(["f", "m"])[GENERATOR.integers(0, 2, 4000)],
    "risk": AGE / 200,
}
GRID = [10.0, 30.0, 50.0, 70.0, 90.0]


def dataset(**options):
    options = {"n_rows_public": 4000, "budget": vt.Budget(1e5, 1e-6), "target": "risk", "name": "patients", **options}
    return vt.PrivateData(ROWS, SCHEMA, **options)


def curve_of(explainer, x_grid=GRID, y_range=(0, 1), *, data=None, mu=90.0, **options):
    """Of so high a price that a twentieth is sixteen standard deviations of the noise: sqrt(5) / 90 / 8 groups."""
    options = {"groups": 8, "isolation": "none", **options}
    return vt.AnyCurve(data or dataset(), explainer, x_grid=x_grid, y_range=y_range, **options)(mu=mu)


def groups_at(explainer, mu):
    """Of the question that would be asked."""
    talk = explainer.conversation()
    return next(talk.recipe(Terms.of(talk.data, mu))).question.groups


def is_private(X, y):
    """Whether a group holds the rows above, and not public ones that the explainer is tried on."""
    return np.allclose(y, X["age"] / 200)


LINE = [0.05, 0.15, 0.25, 0.35, 0.45]
SAID = {
    "pair": lambda model, X: (np.array([0.0, 100.0]), np.array([0.0, 0.5])),
    "unsorted pair with a place named twice": lambda model, X: ([100, 0, 100], [0.6, 0.0, 0.4]),
    "values on the grid": lambda model, X: LINE,
    "dictionary": lambda model, X: {0.0: 0.0, 100.0: 0.5},
    "series": lambda model, X: pd.Series([0.0, 0.5], index=[0.0, 100.0]),
    "frame as PyALE returns it": lambda model, X: pd.DataFrame({"eff": [0.0, 0.5], "size": [3, 4]}, index=[0.0, 100.0]),
    "with the target": lambda model, X, y: (X["age"], y),
}


@pytest.mark.parametrize("name", SAID)
def test_whatever_an_explainer_says_ends_up_on_the_grid(name):
    curve = curve_of(SAID[name])
    assert np.abs(curve.y - LINE).max() < 0.05
    assert curve.x.tolist() == GRID
    assert curve.kind == "any curve"


def test_levels_that_are_left_out_say_the_default_and_others_are_ignored():
    curve = curve_of(lambda model, X: X.assign(x=0.8).groupby("sex")["x"].mean(), "sex", default=0.2)
    assert curve.x == ("f", "m", "x")
    assert curve.categorical
    assert np.abs(curve.y - [0.8, 0.8, 0.2]).max() < 0.05
    assert np.abs(curve_of(lambda model, X: {"m": 0.3, "f": 0.6}, ["f"]).y - 0.6).max() < 0.05


def test_values_are_clipped_to_the_range_group_by_group():
    """Half of the groups say 100, half say 0: clipped before the mean is taken, that is a half, not 1."""
    calls = []

    def explainer(model, X, y):
        calls.append(is_private(X, y))
        return np.full(5, 100.0 if sum(calls) % 2 else 0.0)

    assert np.abs(curve_of(explainer).y - 0.5).max() < 0.05


def test_groups_that_fail_say_the_default_silently(capfd, recwarn):
    ways = [lambda: [math.nan] * 5, lambda: [1.0], lambda: 1 / 0, lambda: (["a"], [1.0]), lambda: "text", lambda: None]
    calls = []

    def explainer(model, X, y):
        calls.append(is_private(X, y))
        return ways[len(calls) % len(ways)]() if calls[-1] else np.full(5, 0.9)

    curve = curve_of(explainer, groups=12, default=0.25)
    assert np.abs(curve.y - 0.25).max() < 0.05
    assert sum(calls) == 12
    assert capfd.readouterr() == ("", "")
    assert [
        str(one.message) for one in recwarn if "promises nothing" not in str(one.message)
    ] == []  # so large a budget does


def test_a_column_gives_its_own_places():
    assert curve_of(lambda model, X: np.full(10, 0.5), "visits").x.tolist() == list(range(10))
    ages = curve_of(lambda model, X: np.full(20, 0.5), "age")
    assert (ages.name, ages.x[0], ages.x[-1], len(ages)) == ("age", 0, 100, 20)


def test_the_band_is_the_noise_law_and_covers():
    """No group disagrees, so the truth is known: 95 % of points are inside."""
    explainer = vt.AnyCurve(
        dataset(), lambda model, X: np.full(200, 0.5), x_grid=np.arange(200.0), y_range=(-9, 10), groups=50, isolation="none"
    )
    curves = [explainer(mu=10.0) for _ in range(25)]
    covered = np.sum([(c.lower <= 0.5) & (c.upper >= 0.5) for c in curves])
    fewest, most = count_bounds(25 * 200, 0.95, of=2)
    assert fewest <= covered <= most
    std = 19 * math.sqrt(200) / (50 * 10.0)
    assert curves[0].std == pytest.approx(np.full(200, std), rel=1e-2)
    low, high = square_sum_bounds(25 * 200, of=2)
    assert low < np.sum([((c.y - 0.5) / c.std) ** 2 for c in curves]) < high


def test_bands_and_values_stay_in_the_range():
    curve = curve_of(lambda model, X: np.ones(5), mu=0.5)
    assert curve.y.max() <= 1
    assert curve.lower.min() >= 0
    assert curve.upper.max() <= 1


def test_a_model_of_ours_predicts_on_frames():
    model = vt.Model(lambda x: x[:, 0] / 2, range=(0, 1), name="half")

    def dependence(model, X):
        return [model(X.assign(age=age)).mean() for age in GRID]

    assert np.abs(curve_of(dependence, model=model).y - LINE).max() < 0.05
    with pytest.raises(ModelError):
        curve_of(dependence, model=vt.Model(lambda x: x[:, 0] * 9, range=(0, 1)))


def test_groups_run_in_processes_of_their_own_by_default():
    def explainer(model, X, kept=[]):  # noqa: B006 - a memory that must not outlive its group
        kept.append(1)
        return np.full(2, float(len(kept)))

    curve = curve_of(explainer, [0.0, 1.0], (0, 10), groups=3, isolation="process")
    # A few times on public groups in this process, then once in each group, which says the same: not one more than the
    # last. A half is nine standard deviations of the noise.
    tried = len(explainer.__defaults__[0])
    assert np.abs(curve.y - (tried + 1)).max() < 0.5


def test_retraining_protects_the_training_data():
    def train(frame):
        return np.polyfit(frame["age"], frame["risk"], 1)

    def line(model, X):
        return np.polyval(model, GRID)

    data = dataset()
    explainer = vt.AnyCurve(data, line, x_grid=GRID, y_range=(0, 1), retrain=train, isolation="none")
    curve = explainer(mu=90.0)
    assert curve.guarantee.protects == "training-data"
    assert "was trained on" in curve.guarantee.sentence
    assert (np.abs(curve.y - LINE) < normal_bound(of=10) * curve.std).all()
    assert any("models" in note for note in curve.notes)
    assert curve_of(line, model=np.array([0.005, 0.0])).guarantee.protects == "explanation-data"
    assert explainer.quote(mu=90.0).result.guarantee.protects == "training-data"
    with pytest.raises(InvalidInput, match="both model= and retrain="):
        vt.AnyCurve(data, line, x_grid=GRID, y_range=(0, 1), retrain=train, model=1)


def test_the_number_of_groups_depends_on_public_quantities():
    few = vt.AnyCurve(dataset(), SAID["pair"], x_grid=GRID, y_range=(0, 1))
    assert groups_at(few, mu=0.2) == 80  # 4000 rows, 50 each
    assert groups_at(few, mu=90.0) == 2
    assert groups_at(vt.AnyCurve(dataset(), SAID["pair"], x_grid=GRID, y_range=(0, 1), groups=7), mu=0.2) == 7
    wide = choose_groups(10**7, math.sqrt(5), 0.02, 0.2, trains=False)
    assert wide == math.ceil(math.sqrt(5) / 0.02 / 0.2)
    assert choose_groups(4000, 1.0, 0.02, 0.2, trains=True) == 20


def test_a_quote_tells_what_will_happen():
    explainer = vt.AnyCurve(dataset(), SAID["values on the grid"], x_grid=GRID, y_range=(0, 1), isolation="none")
    quote = dataset().quote(explainer, epsilon=2.0)
    curve = explainer(epsilon=2.0)
    assert quote.price.cost == curve.cost
    assert quote.result.std == pytest.approx(curve.std)
    assert quote.price.guarantee.epsilon == pytest.approx(curve.guarantee.epsilon)
    assert quote.result.notes == curve.notes
    assert "a random group of about 50 rows" in quote.result.notes[0]
    assert quote.to_json()["half_width"] == quote.half_width


def test_an_explainer_is_tried_on_groups_of_the_size_it_will_get():
    """Not on a handful of rows, on which what trains a model may fail."""
    sizes = []

    def explainer(model, X):
        sizes.append(len(X))
        if len(X) < 300:
            raise ValueError("too few rows")
        return LINE

    data = dataset()
    assert np.abs(curve_of(explainer, data=data).y - LINE).max() < 0.05
    assert min(sizes) > 300
    with pytest.raises(InvalidInput, match="too few rows"):
        curve_of(explainer, data=data, groups=80)
    assert data.budget.n_questions == 1


def test_a_named_question_is_replayed():
    data = dataset()

    def ask(grid=(10.0, 30.0), key="line"):
        return curve_of(lambda model, X: ([0, 100], [0.0, 0.5]), list(grid), data=data, mu=5.0, key=key)

    first = ask()
    spent = data.budget.spent
    assert np.array_equal(ask().y, first.y)
    assert data.budget.spent == spent
    assert not np.array_equal(ask((10.0, 40.0)).y, first.y)
    assert not np.array_equal(ask(key="another").y, first.y)
    assert data.budget.spent.pico_mu_squared == 3 * spent.pico_mu_squared


REFUSED = {
    "no range": ({"y_range": None}, "y_range is not given"),
    "range turned round": ({"y_range": (1, 0)}, "low below high"),
    "range of one point": ({"y_range": (1, 1)}, "low below high"),
    "infinite range": ({"y_range": (0, math.inf)}, "finite"),
    "range of three": ({"y_range": (0, 1, 2)}, "pair"),
    "range of texts": ({"y_range": ("a", "b")}, "pair"),
    "empty grid": ({"x_grid": []}, "x_grid has shape"),
    "grid that falls": ({"x_grid": [2.0, 1.0]}, "increase"),
    "grid with NaN": ({"x_grid": [1.0, math.nan]}, "finite"),
    "levels twice": ({"x_grid": ["f", "f"]}, "twice"),
    "no grid": ({"x_grid": 5}, "x_grid is int"),
    "unknown column": ({"x_grid": "weight"}, "weight"),
    "one group": ({"groups": 1}, "groups of AnyCurve is 1"),
    "more groups than rows": ({"groups": 5000}, "groups of AnyCurve"),
    "default outside": ({"default": 2.0}, "inside y_range"),
    "default of the wrong length": ({"default": [0.1, 0.2]}, "length 5"),
    "no function": ({"explainer": 3}, "function"),
    "no retraining function": ({"retrain": 3}, "retrain"),
    "isolation": ({"isolation": "thread"}, "isolation"),
    "key": ({"key": ""}, "key"),
    "too few numbers": ({"explainer": lambda model, X: [1.0]}, "returned 1 numbers"),
    "NaN": ({"explainer": lambda model, X: [math.nan] * 5}, "NaN"),
    "NaN in a pair": ({"explainer": lambda model, X: ([0, 1], [0.0, math.nan])}, "NaN"),
    "pair that does not fit": ({"explainer": lambda model, X: ([0, 1, 2], [0.0, 1.0])}, "go together"),
    "levels for numbers": ({"explainer": lambda model, X: {"a": 1.0}}, "no numbers"),
    "numbers for levels": ({"explainer": lambda model, X: {1.0: 1.0}, "x_grid": "sex"}, "none of the levels"),
    "text": ({"explainer": lambda model, X: "curve"}, "no array"),
    "frame without eff": ({"explainer": lambda model, X: X}, "'eff'"),
    "failing": ({"explainer": lambda model, X: X["no such column"]}, "no such column"),
    "price": ({"mu": -1.0}, "mu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_and_nothing_is_charged(name):
    data = dataset()
    options, message = REFUSED[name]
    options = {"explainer": SAID["values on the grid"], **options}
    with pytest.raises((InvalidInput, SchemaError), match=message):
        curve_of(data=data, **options)
    assert data.budget.spent.pico_mu_squared == 0


def test_a_target_that_is_not_declared_is_refused():
    data = vt.PrivateData(ROWS, SCHEMA, name="none", n_rows_public=4000, budget=vt.Budget(9, 1e-6))
    with pytest.raises(InvalidInput, match="declares no target"):
        vt.AnyCurve(data, SAID["with the target"], x_grid=GRID, y_range=(0, 1))
    with pytest.raises(InvalidInput, match="PrivateData"):
        vt.AnyCurve(ROWS, SAID["pair"], x_grid=GRID, y_range=(0, 1))


def test_levels_are_known_by_what_they_print():
    reader = CurveReader(CurveGrid(None, (1, 2, "x")), (0.0, 0.0, 0.0))
    assert reader({1.0: 5.0, np.int64(2): 6.0, np.str_("x"): 7.0}).tolist() == [5, 6, 7]
