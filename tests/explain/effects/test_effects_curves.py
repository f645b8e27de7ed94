"""Partial dependence and accumulated effects end to end: right without noise, cut by the schema alone, charged as said."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import BudgetExceeded, InvalidInput, ModelError
from vitrail.explain.effects import DependenceSummand, EffectsSummand
from vitrail.solve.curves import dependence
from vitrail.solve.curves.dependence import plan_dependence
from vitrail.solve.curves.kriging import Prior
from vitrail.solve.curves.local_effects import cut_column, plan_effects
from vitrail.solve.curves.reference import Reference, fine_axis, pair_axis, reference_rows
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(20, 60, integer=True),
        "pay": vt.Numeric(0, 1000),
        "job": vt.Categorical(["clerk", "smith", "baker"]),
    }
)
RNG = np.random.default_rng(4)
N = 3000
ROWS = {
    "age": RNG.integers(20, 61, N),
    "pay": np.clip(RNG.gamma(2, 100, N), 0, 1000),
    "job": RNG.choice(["clerk", "smith", "baker"], N, p=[0.6, 0.3, 0.1]),
}


def output(features):
    age, pay, smith, baker = features[:, 0], features[:, 1], features[:, 3], features[:, 4]
    return 0.2 + 0.3 * age**2 + 0.2 * np.sqrt(pay) + smith * (0.1 + 0.2 * age) - 0.1 * baker


MODEL = vt.Model(output, range=(0, 1.2), name="formula")
FEATURES = SCHEMA.features(SCHEMA.read_points(ROWS))[0]


def private(budget=1e4, **more):
    return vt.PrivateData(ROWS, SCHEMA, name="staff", n_rows_public=N, budget=vt.Budget(budget, 1e-6), **more)


def exact_pdp(column, values):
    found = []
    for value in values:
        altered = SCHEMA.read_points(ROWS)
        altered[:, column] = value
        found.append(output(SCHEMA.features(altered)[0]).mean())
    return np.array(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("estimate", ["smooth", "plain"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_partial_dependence_is_right_at_a_high_price(estimate, neighbours):
    data = private(neighbours=neighbours)
    effects = vt.PartialDependence(data, MODEL, estimate=estimate)(mu=60.0)
    assert list(effects) == ["age", "pay", "job"]
    for place, name in enumerate(SCHEMA):
        curve = effects[name]
        places = np.arange(3) if name == "job" else np.asarray(curve.x)
        np.testing.assert_allclose(curve.y, exact_pdp(place, places), atol=4e-3)
    assert effects["age"].density is not None
    assert effects.cost.mu == pytest.approx(60.0, rel=1e-6)
    assert effects.cost.mu <= 60.0 + 1e-9


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("together", [1, 50, 200])
def test_curves_found_in_groups_are_right_too(together, monkeypatch):
    """As for hundreds of columns: no array is larger than what one group needs."""
    sizes = []
    original = Prior.of
    monkeypatch.setattr(dependence, "MOST_TOGETHER", together)
    monkeypatch.setattr(Prior, "of", lambda curves, *more: sizes.append(curves.shape[1]) or original(curves, *more))
    effects = vt.PartialDependence(private(), MODEL)(mu=60.0)
    assert len(sizes) >= 2
    assert max(sizes) < sum(len(curve.x) for curve in effects.values())
    for place, name in enumerate(SCHEMA):
        places = np.arange(3) if name == "job" else np.asarray(effects[name].x)
        np.testing.assert_allclose(effects[name].y, exact_pdp(place, places), atol=4e-3)


@pytest.mark.usefixtures("planted_noise")
def test_the_smooth_estimate_draws_between_measured_places_as_the_model_does():
    data = private()
    few = vt.PartialDependence(data, MODEL, columns=["pay"], resolution=3)(mu=60.0)["pay"]
    truth = exact_pdp(1, np.asarray(few.x))
    straight = np.interp(few.x, [0, 500, 1000], exact_pdp(1, [0, 500, 1000]))
    assert np.abs(few.y - truth).max() < 0.1 * np.abs(straight - truth).max()


def exact_ale(edges):
    """By the definition, for age."""
    raw = SCHEMA.read_points(ROWS)
    step = np.clip(np.searchsorted(edges[1:-1], raw[:, 0], side="left"), 0, len(edges) - 2)
    ends = []
    for value in (edges[step + 1], edges[step]):
        altered = raw.copy()
        altered[:, 0] = value
        ends.append(output(SCHEMA.features(altered)[0]))
    counts = np.bincount(step, minlength=len(edges) - 1)
    effects = np.bincount(step, ends[0] - ends[1], minlength=len(edges) - 1) / counts
    curve = np.concatenate([[0], effects.cumsum()])
    return curve - (counts / N) @ (curve[1:] + curve[:-1]) / 2


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("estimate", ["smooth", "plain"])
def test_accumulated_effects_are_right_at_a_high_price(estimate):
    effects = vt.AccumulatedEffects(private(), MODEL, estimate=estimate)(mu=80.0)
    np.testing.assert_allclose(effects["age"].y, exact_ale(np.asarray(effects["age"].x)), atol=6e-3)
    job = effects["job"]
    assert job.x == ("clerk", "smith", "baker")
    clerks_and_smiths = np.asarray(ROWS["job"]) != "baker"
    assert job.y[1] - job.y[0] == pytest.approx(0.1 + 0.2 * FEATURES[clerks_and_smiths, 0].mean(), abs=6e-3)
    smiths_and_bakers = np.asarray(ROWS["job"]) != "clerk"
    assert job.y[2] - job.y[1] == pytest.approx(-0.2 - 0.2 * FEATURES[smiths_and_bakers, 0].mean(), abs=1e-2)


@pytest.mark.usefixtures("planted_noise")
def test_levels_can_be_stepped_through_in_another_order():
    order = ["baker", "clerk", "smith"]
    effects = vt.AccumulatedEffects(private(), MODEL, columns=["job"], orders={"job": order})(mu=80.0)
    assert effects["job"].x == tuple(order)
    assert effects["job"].y[1] - effects["job"].y[0] == pytest.approx(0.1, abs=1e-2)


@pytest.mark.usefixtures("planted_noise")
def test_intervals_cover_every_value_and_have_rows():
    marginals = vt.marginals(private(), mu=20.0, bins=100)
    for name in ("age", "pay"):
        intervals = cut_column(Reference(SCHEMA, MODEL, marginals), name)
        raw = SCHEMA.read_points(ROWS)
        found = intervals.of_rows(raw)[:, 0]
        edges = intervals.axis.numbers
        assert edges[0] == SCHEMA[name].low
        assert edges[-1] == SCHEMA[name].high
        assert (np.diff(edges) > 0).all()
        values = raw[:, intervals.axis.columns[0]]
        assert (values <= edges[found + 1]).all()
        assert (values >= edges[found]).all()
        assert np.abs(intervals.counts - np.bincount(found, minlength=len(intervals))).max() < 12
        np.testing.assert_allclose(intervals.shares @ intervals.centred(), 0, atol=1e-12)


@pytest.mark.parametrize("kind", ["dependence", "effects"])
def test_contributions_of_a_row_do_not_depend_on_others(kind):
    """The function behind the sum, on real rows: alone among fillers a row has the same bits."""
    reference = Reference(SCHEMA, MODEL, vt.marginals(private(), mu=10.0, bins=100))
    if kind == "dependence":
        summand = DependenceSummand(MODEL, plan_dependence(reference, SCHEMA.names, 1e-4))
    else:
        summand = EffectsSummand(MODEL, plan_effects(reference, SCHEMA.names, {}, 1e-4))
    raw = SCHEMA.read_points(ROWS)[:64]

    facts = PublicFacts(SCHEMA, None, 64, "add-remove", 64)

    def block_of(rows):
        return Block(rows, facts, lambda model, values: model.predict(SCHEMA, values))

    whole = summand.contributions(block_of(raw))
    alone = np.repeat(SCHEMA.filler(), 64, axis=0)
    alone[5] = raw[5]
    np.testing.assert_array_equal(summand.contributions(block_of(alone))[5], whole[5])
    assert whole.shape[1] == sum(block.size for block in summand.blocks)


def test_asking_again_is_free_and_the_same():
    data = private(budget=3.0)
    explain = vt.PartialDependence(data, MODEL, columns=["age"], key="formula")
    first = explain(epsilon=2.0)
    spent = data.budget.spent
    again = vt.PartialDependence(data, MODEL, columns=["age"], key="formula")(epsilon=2.0)
    assert data.budget.spent == spent
    np.testing.assert_array_equal(first["age"].y, again["age"].y)


def test_what_does_not_fit_is_refused_before_the_marginals_are_paid():
    data = private(budget=1.0)
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        vt.AccumulatedEffects(data, MODEL)(epsilon=1.5)
    assert data.budget.n_questions == 0
    vt.AccumulatedEffects(data, MODEL)(epsilon=1.0)


def test_given_marginals_are_not_paid_for_again():
    data = private()
    marginals = vt.marginals(data, mu=5.0, bins=100)
    before = data.budget.n_questions
    effects = vt.PartialDependence(data, MODEL, columns=["job"], marginals=marginals)(mu=5.0)
    assert data.budget.n_questions == before + 1
    assert effects.marginals is marginals


@pytest.mark.usefixtures("planted_noise")
def test_sampled_rows_give_the_same_curve_with_more_noise():
    effects = vt.PartialDependence(private(), MODEL, columns=["job"], sampling_rate=0.5)(mu=60.0)
    np.testing.assert_allclose(effects["job"].y, exact_pdp(2, np.arange(3)), atol=0.03)


def broken(features):
    return np.full(len(features), np.nan)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda data: vt.PartialDependence(data, MODEL, columns=["agee"])(epsilon=1), "Did you mean 'age'"),
        (lambda data: vt.PartialDependence(data, MODEL, columns=[])(epsilon=1), "columns is empty"),
        (lambda data: vt.PartialDependence(data, MODEL, columns=["age", "age"])(epsilon=1), "twice"),
        (lambda data: vt.PartialDependence(data, MODEL, columns=["age"])(epsilon=0), "epsilon"),
        (lambda data: vt.PartialDependence(data, MODEL, resolution=1)(epsilon=1), "resolution"),
        (lambda data: vt.PartialDependence(data, MODEL, estimate="rough")(epsilon=1), "estimate"),
        (lambda data: vt.PartialDependence(data, MODEL, sampling_rate=0)(epsilon=1), "sampling_rate"),
        (lambda data: vt.PartialDependence(data, output)(epsilon=1), "vt.Model"),
        (lambda data: vt.PartialDependence(ROWS, MODEL)(epsilon=1), "PrivateData"),
        (lambda data: vt.PartialDependence(data, MODEL, marginals=3)(epsilon=1), "vt.marginals"),
        (lambda data: vt.PartialDependence(data, vt.Model(broken, range=(0, 1)))(epsilon=1), "finite"),
        (lambda data: vt.AccumulatedEffects(data, MODEL, orders={"job": ["clerk"]})(epsilon=1), "each of its levels"),
        (lambda data: vt.AccumulatedEffects(data, MODEL, orders={"age": [1]})(epsilon=1), "no categorical column"),
    ],
)
def test_bad_input_is_named_and_costs_nothing(call, message):
    data = private()
    with pytest.raises((InvalidInput, ModelError), match=message):
        call(data)
    assert data.budget.n_questions == 0


@pytest.mark.usefixtures("planted_noise")
def test_reference_rows_follow_the_marginals():
    marginals = vt.marginals(private(), mu=50.0, bins=100)
    rows = reference_rows(SCHEMA, marginals, 2000)
    np.testing.assert_allclose(np.bincount(rows[:, 2].astype(int)) / 2000, [0.6, 0.3, 0.1], atol=0.03)
    assert rows[:, 1].mean() == pytest.approx(np.mean(ROWS["pay"]), rel=0.05)
    assert (rows[:, 0] == np.round(rows[:, 0])).all()
    even = reference_rows(SCHEMA, None, 300)
    np.testing.assert_allclose(np.bincount(even[:, 2].astype(int)) / 300, np.full(3, 1 / 3), atol=0.01)


def test_axes_come_from_the_schema():
    assert fine_axis(SCHEMA, "age", None).values[:, 0].tolist() == list(range(20, 61))
    assert fine_axis(SCHEMA, "job", None).values[:, 0].tolist() == [0, 1, 2]
    assert pair_axis(SCHEMA, "job", "pay", 5).values.shape == (15, 2)


def test_effects_are_tidy():
    effects = vt.PartialDependence(private(), MODEL)(mu=20.0)
    frame = effects.frame()
    assert {len(column) for column in frame.values()} == {sum(len(curve) for curve in effects.values())}
    assert set(effects.data(0)) == set(effects["age"].frame())
    assert set(effects.to_json()["curves"]) == set(SCHEMA)
    assert "partial dependence of 3 columns" in repr(effects)
    figure = effects.plot()
    assert len(figure.axes) >= 3
    with pytest.raises(KeyError, match="nothing of"):
        effects["agee"]
