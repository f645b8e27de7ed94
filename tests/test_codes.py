"""Codes of numeric columns: values of their own from reading to advice."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from explainer_table import TABLE, Row, outputs, rows
from vitrail.errors import InvalidInput, SchemaError
from vitrail.explain.linear.fitting import moments_question, survey_question
from vitrail.explain.quoted import edge_rows
from vitrail.results.marginals import Marginals
from vitrail.schema import Categorical, Numeric, Schema
from vitrail.schema.bins import Bins, bins_of, values_in
from vitrail.solve.counterfactual.fitted import FittedCounterfactual
from vitrail.solve.counterfactual.permitted import Rules
from vitrail.solve.curves.reference import reference_rows, smoothed
from vitrail.solve.linear.labelled_rows import anchors
from vitrail.solve.linear.problem import LocalProblem, active_features
from vitrail.solve.linear.weights import polynomial
from vitrail.solve.rows.histograms import fine_bins, groups_of
from vitrail.vault.public_facts import PublicFacts

LOANS = Schema(
    {
        "months": Numeric(0, 100, integer=True, missing=-9, codes=(-9, -8)),
        "purpose": Categorical(["car", "house"]),
        "debt": Numeric(0, 50, codes=(99.5, -1)),
        "income": Numeric(10, 20),
    }
)


def test_a_declaration_with_codes():
    assert LOANS.feature_names == (
        "months", "months=-9", "months=-8", "purpose=car", "purpose=house", "debt", "debt=99.5", "debt=-1", "income",
    )  # fmt: skip
    assert LOANS["debt"].allowed == "a number between 0.0 and 50.0, or a code: 99.5, -1"
    assert repr(LOANS["months"]) == "Numeric(0, 100, integer=True, missing=-9, codes=(-9, -8))"
    assert Schema.from_json(json.loads(json.dumps(LOANS.to_json()))) == LOANS
    assert Numeric(0, 9, codes=(np.int64(-9),)) == Numeric(0, 9, codes=(-9.0,))
    assert "a code: -9, -8" in LOANS._repr_html_()


def test_a_schema_without_codes_is_written_as_before():
    plain = Schema({"age": Numeric(17, 90, integer=True), "hours": Numeric(0, 99.5), "sex": Categorical(["f", "m"])})
    assert "codes" not in json.dumps(plain.to_json())
    assert plain.digest() == "d7fe472a30aa4fd988c5d5cd21f70917a87d7e8070ac3e04947c737b0468aba6"
    assert plain.without_codes() is plain


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Numeric(0, 9, codes=(5,)), "must not lie between 0.0 and 9.0"),
        (lambda: Numeric(0, 9, codes=(9,)), "must not lie between"),
        (lambda: Numeric(0, 9, codes=(-9, -9.0)), "twice"),
        (lambda: Numeric(0, 9, codes=(float("nan"),)), "finite"),
        (lambda: Numeric(0, 9, codes=("-9",)), "must be a number"),
        (lambda: Numeric(0, 9, codes=(True,)), "must be a number"),
        (lambda: Numeric(0, 9, codes=-9), "a tuple of numbers"),
        (lambda: Numeric(0, 9, codes="-9"), "a tuple of numbers"),
        (lambda: Numeric(0, 9, integer=True, codes=(-9.5,)), "whole number"),
        (lambda: Numeric(0, 1e-300, codes=(1e300,)), "too far"),
        (lambda: Numeric(0, 9, missing=-7, codes=(-9,)), "or be one of the codes"),
        (lambda: Schema({"a": Numeric(0, 1, codes=(2,)), "a=2": Categorical(["x"])}), "two features would be called 'a=2'"),
        (lambda: Schema({"a": Numeric(0, 1, codes=(2,)), "a=2": Numeric(0, 1)}), "two features would be called 'a=2'"),
    ],
)
def test_a_bad_code_is_a_sentence(make, says):
    with pytest.raises(SchemaError, match=says):
        make()


@pytest.mark.parametrize("kind", [list, np.array, lambda values: list(map(str, values))])
def test_private_values_equal_to_a_code_stay_and_others_are_clipped(kind):
    months = [-9.0, -8.0, -7.0, -8.6, 101.0, 50.4, 999.0, np.nan, np.inf]
    n = len(months)
    read = LOANS.read(
        {"months": kind(months), "purpose": ["car"] * n, "debt": [99.5] * n, "income": kind([9.0] * (n - 1) + [np.nan])}
    )
    assert read[:7, 0].tolist() == [-9, -8, 0, 0, 100, 50, 100]
    assert np.isnan(read[7:, 0]).all()  # what is missing becomes the declared code later, not here
    completed, valid = LOANS.complete(read)
    assert completed[7, 0] == -9
    assert valid.tolist() == [True] * (n - 1) + [False]
    assert (read[:, 2] == 99.5).all()
    assert (read[:-1, 3] == 10).all()


def test_points_may_be_codes_and_nothing_else_outside_the_bounds():
    point = {"months": -8, "purpose": "car", "debt": -1, "income": 12}
    assert LOANS.read_points(point).tolist() == [[-8, 0, -1, 12]]
    for name, value in (("months", -7), ("months", -8.6), ("debt", 99), ("debt", float("nan")), ("income", -9)):
        with pytest.raises(SchemaError, match=f"column '{name}' is"):
            LOANS.read_points({**point, name: value})


def test_features_by_hand():
    raw = LOANS.read_points({"months": [-8, 50], "purpose": ["car", "house"], "debt": [25, -1], "income": [20, 10]})
    expected = [[0, 0, 1, 1, 0, 0.5, 0, 0, 1], [0.5, 0, 0, 0, 1, 0, 0, 1, 0]]
    assert LOANS.features(raw)[0].tolist() == expected
    assert raw[0, 0] == -8  # the rows themselves are left as they are
    alone = Schema({"x": Numeric(1, 3, codes=(0,))})
    held = np.array([[0.0], [2.0]])
    assert alone.features(held)[0].tolist() == [[0, 1], [0.5, 0]]
    assert held.tolist() == [[0], [2]]


def test_unfeature_finds_the_nearest_row():
    schema, generator = Schema({"x": Numeric(0, 1, codes=(-9, -8))}), np.random.default_rng(0)
    encoded = generator.uniform(-0.3, 1.3, (500, 3))
    grid = np.array([[-9.0], [-8.0], *np.linspace(0, 1, 2001)[:, None].tolist()])
    found = schema.features(schema.unfeature(encoded))[0]
    best = ((encoded[:, None, :] - schema.features(grid)[0]) ** 2).sum(axis=2).min(axis=1)
    assert (((encoded - found) ** 2).sum(axis=1) <= best + 1e-12).all()
    far = np.array([[-10.0, 0.0, 0.0]])  # 0 + -9 is a number out of bounds, not the code
    assert schema.unfeature(np.array([[-9.0, 0.0, 0.0], *far.tolist()])).tolist() == [[0.0], [0.0]]


def test_features_are_those_of_a_schema_without_codes():
    plain = LOANS.without_codes()
    assert plain.names == ("months", "months=-9", "months=-8", "purpose", "debt", "debt=99.5", "debt=-1", "income")
    assert plain.feature_names == LOANS.feature_names
    features = LOANS.features(LOANS.probe_rows(200))[0]
    assert np.allclose(plain.features(plain.unfeature(features))[0], features, atol=0.005)  # months are rounded


def test_codes_are_among_public_rows():
    for drawn in (
        LOANS.probe_rows(100),
        reference_rows(LOANS, None, 100),
        anchors(LOANS, LOANS.probe_rows(1000)[:3].repeat(300, 0), 0),
    ):
        assert {-9.0, -8.0} <= set(drawn[:, 0])
        assert {99.5, -1.0} <= set(drawn[:, 2])
        assert np.array_equal(LOANS.read(LOANS.frame(drawn)), drawn)
        assert (drawn[:, 0] >= 0).mean() > 0.3
    tried, words = edge_rows(LOANS)
    assert "'debt' at 99.5" in words
    assert (tried[[word == "'months' at -8" for word in words], 0] == -8).all()


# --- bins ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [bins_of, fine_bins])
@pytest.mark.parametrize("bins", [1, 2, 7, 100, 300])
@settings(max_examples=20, deadline=None)
@given(
    values=st.lists(st.floats(-200, 200) | st.sampled_from([-9.0, -8.0, 99.5, -1.0]), min_size=1, max_size=20),
    seed=st.integers(0, 99),
)
def test_every_code_is_a_bin_of_its_own(cut, bins, values, seed):
    for name, codes in (("months", [-9, -8]), ("debt", [99.5, -1])):
        column = LOANS[name]
        made = cut(name, column, bins)
        assert made.labels[made.n_intervals :] == column.code_texts
        assert len(made.edges) == made.n_intervals + 1
        assert Bins.from_json(json.loads(json.dumps(made.to_json()))) == made
        held = LOANS.read({"months": values, "purpose": ["car"] * len(values), "debt": values, "income": values})
        raw = held[:, LOANS.column_index(name)]
        index = made.index(raw)
        assert ((index >= made.n_intervals) == np.isin(raw, codes)).all()
        drawn = values_in(made, index, column.low, column.high, np.random.default_rng(seed).random(len(raw)))
        assert np.array_equal(made.index(drawn), index)
        assert np.array_equal(drawn[index >= made.n_intervals], raw[index >= made.n_intervals])


@pytest.mark.parametrize(
    "change",
    [{"labels": []}, {"labels": [1]}, {"edges": [0, True]}, {"edges": "0"}, {"integer": 1}, {"codes": [None]}, {"name": 3},
     {"edges": None}, {"codes": [-9]}, {"edges": [1, 0, 2]}, {"edges": [0, 1, float("inf")]}],
)  # fmt: skip
def test_bins_are_checked_when_they_are_read(change):
    fields = bins_of("debt", LOANS["debt"], 2).to_json()
    with pytest.raises(InvalidInput):
        Bins.from_json({**fields, **change})


def test_groups_keep_codes_apart_as_long_as_there_is_room():
    shares = np.array([0.1] * 8 + [0.15, 0.05])
    assert groups_of(shares, ordered=True, most=20, codes=2).tolist() == list(range(10))
    apart = groups_of(shares, ordered=True, most=5, codes=2).tolist()
    assert apart[-2:] == [max(apart[:8]) + 1, max(apart[:8]) + 2]
    assert max(apart) < 5
    assert groups_of(shares, ordered=True, most=2, codes=2).tolist() == [0] * 8 + [1, 1]


def test_smoothing_leaves_codes_alone():
    noisy = np.array([0.2, 0.21, 0.19, 0.2, 0.0, 0.2])
    smooth = smoothed(noisy, 0.1, codes=2)
    assert smooth.low.tolist() == [True] * 4 + [False] * 2
    assert smooth.shares[4:] == pytest.approx([0.0, 0.2], abs=1e-9)
    of_codes = smooth.variance_of(np.array([0, 0, 1, 1, -1, -1]))
    assert len(of_codes) == 2


# --- bounds of the linear explainers -------------------------------------------------------------------------------------


def test_no_row_with_codes_exceeds_the_bounds_of_local_explanations():
    raw = np.concatenate([LOANS.probe_rows(400), np.array([[-9, 0, 50, 20], [100, 1, 99.5, 10]], dtype=float)])
    problem = LocalProblem(LOANS, vt.Model(lambda x: (x[:, 0] > 0.4).astype(float), range=(0, 1)), polynomial(), "hard")
    x = problem.encode(raw)
    assert (np.linalg.norm(x, axis=1) <= 1 + 1e-15).all()
    assert np.linalg.norm(x[:, None] - x, axis=2).max() <= problem.largest_distance + 1e-15
    assert problem.largest_distance == pytest.approx(np.sqrt((1 + 2 * 3) / 4))
    block = vt.Block(
        raw, PublicFacts(LOANS, None, 9, "add-remove", len(raw)), lambda model, rows: model.predict(LOANS, rows)
    )
    for asked in (
        moments_question(problem, cells=()),
        moments_question(problem, cells=("purpose",)),
        survey_question(LOANS),
    ):
        made = asked.fn(block)
        sides = zip(made[0::2], made[1::2], asked.left_bounds, asked.right_bounds, strict=True)
        for left, right, left_bound, right_bound in sides:
            assert (np.linalg.norm(left, axis=1) <= left_bound).all()
            assert (np.linalg.norm(right, axis=1) <= right_bound).all()


def test_a_point_has_its_number_or_its_code():
    raw = LOANS.read_points({"months": [-8, 0], "purpose": ["car", "house"], "debt": [0, 99.5], "income": [10, 10]})
    assert active_features(LOANS, raw).tolist() == [[0, 0, 1, 1, 0, 1, 0, 0, 1], [1, 0, 0, 0, 1, 0, 1, 0, 1]]


# --- explainers ----------------------------------------------------------------------------------------------------------

STAFF = Schema(
    {
        "age": Numeric(18, 90, integer=True, codes=(999,)),
        "hours": Numeric(0, 80, missing=-9, codes=(-9, -8)),
        "sex": Categorical(["Female", "Male"]),
        "rich": Categorical(["no", "yes"]),
    }
)


def staff(n=3000):
    """The table's rows; a fifth of the hours is unknown, a tenth of all are -8, which goes with being rich."""
    held = rows(n)
    held["age"][::7] = 999
    held["hours"] = np.where(held["rich"] == "yes", np.where(np.arange(n) % 4 == 0, -8.0, held["hours"]), held["hours"])
    held["hours"][1::5] = np.nan
    return held


def private(held=None, epsilon=1e6, training=(0, 0), **more):
    held = staff() if held is None else held
    n = len(held["age"])
    budget = vt.Budget(epsilon, 1e-6, training=training)
    return vt.PrivateData(held, STAFF, name="staff", n_rows_public=n, target="rich", budget=budget, ledger="memory", **more)


def model():
    """The table's model, which reads age, hours and sex, and says more at -8."""
    features = [STAFF.feature_names.index(name) for name in ("age", "hours", "sex=Female", "sex=Male")]
    at = STAFF.feature_names.index("hours=-8")
    return vt.Model(lambda x: outputs(x[:, features]) + 0.1 * x[:, at], range=(0, 1), name="score")


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_every_explainer_takes_rows_with_codes(row: Row):
    explainer = row.make(private(training=(10, 0)), model())
    result = explainer(epsilon=row.epsilon) if row.points is None else explainer(row.points, epsilon=row.epsilon)
    assert np.isfinite(result.guarantee.epsilon)


@pytest.mark.parametrize("row", [row for row in TABLE if row.points is not None], ids=lambda row: row.name)
def test_codes_can_be_explained(row: Row):
    result = row.make(private(), model())({"age": 999, "hours": -8.0, "sex": "Male"}, epsilon=50.0)
    assert np.isfinite(result.values).all()


def test_private_rows_have_codes_as_often_as_the_rows_and_where_they_do():
    made = vt.private_rows(private(), epsilon=500.0)
    sampled, held = made.sample(20_000, seed=0), staff()
    at = np.isin(sampled["hours"], [-9.0, -8.0])
    assert (at | ((sampled["hours"] >= 0) & (sampled["hours"] <= 80))).all()
    # 5 standard deviations of 20 000 draws, beside noise that is next to none
    assert (sampled["hours"] == -9.0).mean() == pytest.approx(np.isnan(held["hours"]).mean(), abs=0.02)
    assert (sampled["age"] == 999).mean() == pytest.approx(1 / 7, abs=0.02)
    assert (sampled["rich"][sampled["hours"] == -8.0] == "yes").mean() > 0.9
    again = vt.PrivateRows.from_json(made.to_json())
    assert np.array_equal(again.raw(50, seed=3), made.raw(50, seed=3))


def test_means_and_quantiles_are_those_of_numbers():
    found, hours = vt.marginals(private(), bins=80, epsilon=500.0), staff()["hours"]
    known = hours[hours >= 0]
    assert found.mean("hours") == pytest.approx(known.mean(), abs=0.5)
    assert found.quantile("hours", 0.5) == pytest.approx(np.median(known), abs=1.5)
    assert found.quantile("hours", 1.0) == pytest.approx(80, abs=1.0)
    frame = found.frame()
    assert frame["low"][frame["bin"] == "-8"].tolist() == [-8.0]
    assert found.counts["hours"][-2] == pytest.approx(np.isnan(hours).sum(), abs=20)
    assert Marginals.from_json(found.to_json()).mean("hours") == found.mean("hours")
    found.plot().savefig("/dev/null", format="png")


def test_curves_run_over_numbers_and_effects_leave_rows_at_codes_out():
    held = staff()
    data, explained = private(held), model()
    raw = STAFF.without("rich").read({name: held[name] for name in ("age", "hours", "sex")})
    raw, _ = STAFF.without("rich").complete(raw)
    pdp = vt.PartialDependence(data, explained, columns=["hours"])(epsilon=200.0)["hours"]
    assert (pdp.x.min(), pdp.x.max()) == (0, 80)
    for hours in (10.0, 60.0):
        changed = raw.copy()
        changed[:, 1] = hours  # rows at a code in another column are as they are
        assert pdp(hours) == pytest.approx(explained.predict_points(STAFF.without("rich"), changed).mean(), abs=0.01)
    ale = vt.AccumulatedEffects(data, explained, columns=["hours"])(epsilon=200.0)["hours"]
    # The model is linear in hours, with slope 0.25/80, for everybody who has a number there.
    assert ale(70.0) - ale(10.0) == pytest.approx(0.25 * 60 / 80, abs=0.01)
    numbers = raw[raw[:, 1] >= 0, 1]
    assert np.interp(numbers, ale.x, ale.y).mean() == pytest.approx(0, abs=0.01)


def test_a_code_that_matters_is_important():
    features = STAFF.without("rich").feature_names
    at = features.index("hours=-8")
    only = vt.Model(lambda x: 0.2 + 0.6 * x[:, at], range=(0, 1), name="only at -8")
    ranking = vt.PermutationImportance(private(), only)(epsilon=200.0)
    assert ranking.top(1)[0] == "hours"
    local = vt.LocalLinear(private(), only)({"age": 40, "hours": -8.0, "sex": "Male"}, epsilon=200.0)
    assert local.top(1)[0].column == "hours"
    assert local.values[0, 1] > 0.3


def test_a_loss_needs_a_target_without_codes():
    held = {"x": np.linspace(0, 1, 50), "y": np.linspace(0, 1, 50)}
    schema = Schema({"x": Numeric(0, 1), "y": Numeric(0, 1, codes=(-9,))})
    data = vt.PrivateData(held, schema, name="d", n_rows_public=50, target="y", budget=vt.Budget(1, 1e-6), ledger="memory")
    with pytest.raises(InvalidInput, match="'y' has codes"):
        vt.PermutationImportance(data, vt.Model(lambda x: x[:, 0], range=(0, 1)))


# --- advice --------------------------------------------------------------------------------------------------------------


def test_rules_never_settle_on_a_code():
    schema = Schema({"a": Numeric(0, 9, codes=(-9, 99)), "b": Numeric(0, 9, change="up", codes=(-9,))})
    rules = Rules.of(schema, "all", None)
    people = np.array([[4.0, 4.0], [4.0, 4.0], [-9.0, -9.0], [4.0, 5.0]])
    wanted = np.array([[-9.0, -9.0], [99.0, 12.0], [6.0, 6.0], [-3.0, 7.0]])
    settled = rules.settle(people, wanted)
    assert settled.tolist() == [[4, 4], [4, 9], [6, -9], [0, 7]]
    assert rules.kept(people, settled).all()
    assert not rules.kept(people[:1], np.array([[-9.0, 4.0]])).any()


def test_a_code_is_never_advised():
    age, hours, at = (STAFF.feature_names.index(name) for name in ("age", "hours", "hours=-8"))
    tempting = vt.Model(lambda x: 0.3 * x[:, age] + 0.3 * x[:, hours] + 0.7 * x[:, at], range=(0, 1), name="tempting")
    data = private()
    people = [{"age": 30, "hours": 10.0, "sex": "Male"}, {"age": 999, "hours": -9.0, "sex": "Female"}]
    picture = vt.Counterfactual(data, tempting, rows=True)(epsilon=200.0)
    found = FittedCounterfactual(picture, tempting)(people, total_CFs=3)
    advised = [change for person in found.changes for answer in person for change in answer]
    assert advised
    for name, _, new in advised:
        assert new not in (-9.0, -8.0, 999), name


def test_nobody_with_a_code_stands_on_a_curve():
    made = vt.release(private(), model(), epsilon=20.0)
    person = made.explain({"age": 40, "hours": -8.0, "sex": "Male"}, bands=False)
    assert "hours" not in [standing.column for standing in person.standings]
    assert "age" in [standing.column for standing in person.standings]
    assert "-8" in person.to_html()
