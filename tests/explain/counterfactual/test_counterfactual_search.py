"""Whatever is asked, answers lie in the schema, keep the rules, and are what the model says they are."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import BudgetExceeded, InvalidInput, ModelError, SchemaError
from vitrail.solve.counterfactual.classes import Classes
from vitrail.solve.counterfactual.permitted import Rules

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True, change="up"),
        "debt": vt.Numeric(0, 50.0, change="down"),
        "income": vt.Numeric(0, 100.0),
        "job": vt.Categorical(["none", "clerk", "nurse", "judge"]),
        "sex": vt.Categorical(["f", "m"], change="never"),
    }
)
N = 4000


def rows(n=N):
    generator = np.random.default_rng(0)
    job = generator.integers(0, 4, n)
    return {
        "age": generator.integers(18, 91, n),
        "debt": generator.uniform(0, 50, n),
        "income": np.clip(15 * job + generator.normal(20, 12, n), 0, 100),
        "job": np.array(["none", "clerk", "nurse", "judge"])[job],
        "sex": np.array(["f", "m"])[generator.integers(0, 2, n)],
    }


def private(budget=9.0, **more):
    return vt.PrivateData(rows(), SCHEMA, name="loans", n_rows_public=N, budget=vt.Budget(budget, 1e-6), **more)


def credit(x):
    return np.clip(0.9 * x[:, 2] - 0.4 * x[:, 1] + 0.2 * x[:, 0] + 0.2 * x[:, 6], 0, 1)


MODEL = vt.Model(credit, range=(0, 1), name="credit")
POOR = {"age": 30, "debt": 20.0, "income": 30.0, "job": "clerk", "sex": "f"}


@pytest.fixture(scope="module")
def fitted():
    with planted_noise():
        return vt.Counterfactual(private(), MODEL, key="credit").fit(epsilon=2.0)


def assert_same(one, other):
    """Bit by bit the same answers."""
    left, right = one.frame(), other.frame()
    assert list(left) == list(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])


people = st.fixed_dictionaries(
    {
        "age": st.integers(18, 90),
        "debt": st.floats(0, 50),
        "income": st.floats(0, 100),
        "job": st.sampled_from(["none", "clerk", "nurse", "judge"]),
        "sex": st.sampled_from(["f", "m"]),
    }
)
varied = st.just("all") | st.lists(st.sampled_from(["age", "debt", "income", "job"]), min_size=1, unique=True)
ranges = st.fixed_dictionaries(
    {},
    optional={
        "age": st.tuples(st.integers(18, 90), st.integers(18, 90)).map(sorted).map(tuple),
        "income": st.tuples(st.floats(0, 100), st.floats(0, 100)).map(sorted).map(tuple),
        "job": st.lists(st.sampled_from(["none", "clerk", "nurse", "judge"]), min_size=1, unique=True),
    },
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=st.lists(people, min_size=1, max_size=3), vary=varied, permitted=ranges, total=st.integers(1, 3))
def test_answers_lie_in_the_schema_and_keep_every_rule(fitted, some, vary, permitted, total):
    out = fitted(some, total_CFs=total, features_to_vary=vary, permitted_range=permitted)
    for place, person in enumerate(some):
        assert len(out.answers[place]) <= total
        assert bool(out.answers[place]) != bool(out.messages[place])
        for answer in out.answers[place]:
            raw = SCHEMA.read_points(dict(answer.row))  # strict: whatever does not fit the schema is an error
            assert (credit(SCHEMA.features(raw)[0]) >= 0.5)[0] == (out.wanted[place] == 1)
            after = answer.row
            assert after["sex"] == person["sex"]
            assert after["age"] >= person["age"]
            assert after["debt"] <= person["debt"]
            changed = {name for name in SCHEMA if after[name] != person[name]}
            assert changed
            assert vary == "all" or changed <= set(vary)
            for name in changed & {"age", "income"} & set(permitted):
                assert permitted[name][0] <= after[name] <= permitted[name][1]
            if "job" in changed and "job" in permitted:
                assert after["job"] in permitted["job"]
            away = np.linalg.norm(SCHEMA.features(raw)[0] - SCHEMA.features(SCHEMA.read_points(person))[0])
            assert answer.distance == pytest.approx(away)


def test_rows_are_settled_wherever_they_come_from():
    rules = Rules.of(SCHEMA, ["age", "debt", "job"], {"age": (40, 50), "job": ["judge"]})
    own = SCHEMA.read_points([POOR] * 3)
    wild = np.array([[1e9, -5, 99, 7, 9], [-1e9, 49, 0, 0, 1], [np.nan, np.inf, 0, 3.4, 0]])
    settled = rules.settle(own, wild)
    assert settled[:, 0].tolist() == [50, 40, 30]
    assert settled[:, 1].tolist() == [0, 20, 20]  # debt only goes down
    assert settled[:, 2].tolist() == [30, 30, 30]  # not named
    assert settled[:, 3].tolist() == [3, 1, 3]
    assert (settled[:, 4] == own[:, 4]).all()
    assert rules.kept(own, settled).all()
    assert not rules.kept(own, np.where(np.arange(5) == 2, 31.0, own)).any()


def test_a_range_that_leaves_no_way_on_keeps_the_own_value():
    rules = Rules.of(SCHEMA, "all", {"age": (20, 25)})
    older = SCHEMA.read_points(POOR)  # 30, and nobody gets younger
    assert rules.settle(older, older + 10)[0, 0] == 30


def test_changes_that_are_not_needed_are_undone(fitted):
    out = fitted(POOR, plausibility_weight=0)
    assert out.validity.all()
    for column, _, after in out.changes[0][0]:
        undone = {**out.answers[0][0].row, column: POOR[column]}
        assert credit(SCHEMA.features(SCHEMA.read_points(undone))[0])[0] < 0.5, (column, after)


def test_answers_are_different_and_the_same_again(fitted):
    out, again = (fitted([POOR], total_CFs=4) for _ in range(2))
    assert_same(out, again)
    assert len({tuple(answer.row.values()) for answer in out.answers[0]}) == len(out.answers[0]) == 4


def test_what_cannot_be_is_said(fitted):
    out = fitted(
        [POOR, {**POOR, "income": 95.0}], desired_class=1, features_to_vary=["job"], permitted_range={"job": ["none"]}
    )
    assert out.validity.tolist() == [[False], [False]]
    assert "No permitted change was found" in out.messages[0]
    assert "already" in out.messages[1]
    assert np.isnan(out.distance).all()


def test_many_people_are_answered_at_once(fitted):
    generator = np.random.default_rng(2)
    crowd = [{**POOR, "income": float(i), "debt": float(d)} for i, d in generator.uniform(0, 30, (300, 2))]
    out = fitted(crowd, desired_class=1)
    assert out.validity.mean() > 0.99
    assert np.nanmean(out.plausibility) < 0.5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"desired_class": 2}, "desired_class is 2; choose 'opposite' or one of the classes 0, 1"),
        ({"desired_class": "rich"}, "desired_class is 'rich'"),
        ({"desired_class": None}, "desired_class is None"),
        ({"features_to_vary": []}, "features_to_vary is empty"),
        ({"features_to_vary": "income"}, "give 'all' or a list"),
        ({"features_to_vary": ["incme"]}, "Did you mean 'income'"),
        ({"features_to_vary": ["sex"]}, "declared change='never'"),
        ({"permitted_range": {"income": (200, 300)}}, "nothing is permitted"),
        ({"permitted_range": {"age": (30.2, 30.8)}}, "holds nothing that is a whole number"),
        ({"permitted_range": {"income": (1, 2, 3)}}, "must be a pair"),
        ({"permitted_range": {"job": ["pope"]}}, "holds 'pope'"),
        ({"permitted_range": {"job": "judge"}}, "give a list of levels"),
        ({"permitted_range": {"shoe": (1, 2)}}, "'shoe' is not in the schema"),
        ({"permitted_range": {"sex": ["f"]}}, "declares change='never'"),
        ({"permitted_range": 7}, "give a dictionary"),
        ({"total_CFs": 0}, "total_CFs is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"plausibility_weight": -1.0}, "plausibility_weight is -1.0"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(fitted, given, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        fitted(POOR, **given)


def test_people_who_do_not_fit_the_schema_are_refused(fitted):
    with pytest.raises(SchemaError, match="Did you mean 'judge'"):
        fitted({**POOR, "job": "jugde"})
    with pytest.raises(InvalidInput, match="nobody to explain"):
        fitted([])


# --- paying --------------------------------------------------------------------------------------------------------------


def test_fitting_costs_what_was_asked_and_calls_cost_nothing():
    data = private(1.0)
    made = vt.Counterfactual(data, MODEL, key="credit", latent="linear").fit(epsilon=0.5)
    assert data.budget.spent_epsilon == pytest.approx(0.5, abs=1e-6)
    assert made.guarantee.epsilon <= 0.5
    paid = data.budget.spent
    assert made.cost == paid
    made(POOR)
    vt.Counterfactual(data, MODEL, key="credit", latent="linear").fit(epsilon=0.5)  # replayed
    assert data.budget.spent == paid


def test_what_does_not_fit_is_refused_before_anything_is_charged():
    data = private(0.5)
    made = vt.Counterfactual(data, MODEL, latent="linear")
    with pytest.raises(BudgetExceeded):
        made.fit(epsilon=0.8)
    with pytest.raises(InvalidInput):
        made.fit(epsilon=0.1, mu=0.1)
    generator = np.random.default_rng(0)
    dice = vt.Model(lambda x: generator.uniform(size=len(x)), range=(0, 1), name="dice")
    with pytest.raises(ModelError, match="two predictions"):
        vt.Counterfactual(data, dice, latent="linear").fit(epsilon=0.1)
    assert data.budget.spent.pico_mu_squared == 0
    quoted = data.quote(made, epsilon=0.3)
    assert quoted.epsilon == pytest.approx(0.3)
    assert data.budget.spent.pico_mu_squared == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"latent": "deep"}, "latent is 'deep'"),
        ({"by": "luck"}, "by is 'luck'"),
        ({"by": "labels"}, "needs data with a target"),
        ({"rows": 3}, "rows is 3"),
        ({"clip": 0}, "clip is 0"),
        ({"threshold": 1.5}, "threshold is 1.5, outside the output range"),
    ],
)
def test_bad_options_are_refused(options, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        vt.Counterfactual(private(), MODEL, **options)


def test_nothing_is_said_before_it_is_paid():
    data = private()
    with pytest.raises(TypeError):
        vt.Counterfactual(data, MODEL)(POOR)
    with pytest.raises(InvalidInput, match="epsilon"):
        vt.Counterfactual(data, MODEL).fit()
    assert data.budget.spent.pico_mu_squared == 0


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("latent", ["none", "linear", "sigmoid"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_every_code_finds_prototypes_and_answers(latent, relation):
    data = private(neighbours=relation)
    made = vt.Counterfactual(data, MODEL, latent=latent, rows=False).fit(epsilon=4.0)
    income = SCHEMA.feature_slices["income"]
    poor, rich = made.picture.prototype_features[:, income].ravel()
    assert rich > poor + 0.1
    assert made.picture.counts.sum() == pytest.approx(N, rel=0.1)
    assert made(POOR, desired_class=1).validity.all()
    assert made.guarantee.neighbours == relation


@pytest.mark.usefixtures("planted_noise")
def test_prototypes_without_noise_are_class_means():
    made = vt.Counterfactual(private(1e6), MODEL, latent="none", rows=False).fit(epsilon=1e5)
    features = SCHEMA.features(SCHEMA.read(rows()))[0]
    side = credit(features) >= 0.5
    for place, mine in enumerate((~side, side)):
        assert made.picture.prototype_features[place] == pytest.approx(features[mine].mean(axis=0), abs=0.01)
        assert made.picture.counts[place] == pytest.approx(mine.sum(), abs=2)


@pytest.mark.usefixtures("planted_noise")
def test_labels_have_prototypes_of_their_own():
    schema = vt.Schema({"x": vt.Numeric(0, 1), "z": vt.Numeric(0, 1), "y": vt.Categorical(["no", "yes"])})
    x = np.linspace(0, 1, 2000)
    table = {"x": x, "z": x[::-1], "y": np.where(x > 0.7, "yes", "no")}
    data = vt.PrivateData(table, schema, name="d", target="y", n_rows_public=2000, budget=vt.Budget(9, 1e-6))
    model = vt.Model(lambda features: features[:, 0], range=(0, 1))
    made = vt.Counterfactual(data, model, by="labels", latent="none", rows=False).fit(epsilon=8)
    assert made.picture.prototype_features[1, 0] == pytest.approx(0.85, abs=0.03)
    assert made.picture.counts[1] == pytest.approx(600, abs=60)


# --- classes, models, files ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest():
    table = rows()
    features = SCHEMA.features(SCHEMA.read(table))[0]
    label = np.digitize(credit(features), [0.2, 0.4])
    return RandomForestClassifier(12, max_depth=6, random_state=0).fit(features, label)


@pytest.mark.usefixtures("planted_noise")
def test_several_classes_of_a_forest(forest, tmp_path):
    models = [vt.Model(forest, output=k) for k in (0, 1, 2)]
    classes, probes = Classes.of(models, 0.5), SCHEMA.probe_rows(50)
    assert classes.is_one_predictor
    one_by_one = np.stack([model.predict(SCHEMA, probes) for model in models], axis=1)
    assert np.array_equal(classes.outputs(SCHEMA, probes, batch=7), one_by_one)
    data = private()
    made = vt.Counterfactual(data, models).fit(epsilon=3.0)
    out = made([POOR] * 2, desired_class=2)
    assert out.validity.all()
    assert out.wanted == (2, 2)
    raw = SCHEMA.read_points(dict(out.answers[0][0].row))
    assert forest.predict(SCHEMA.features(raw)[0]).tolist() == [2]
    any_other = made(POOR)
    assert any_other.wanted[0] != any_other.classes[0]
    assert any_other.validity.all()
    made.save(tmp_path / "cf.zip")
    loaded = vt.FittedCounterfactual.load(tmp_path / "cf.zip", model=models)
    assert_same(loaded([POOR] * 2, desired_class=2), out)
    with pytest.raises(InvalidInput, match="about the classes 0, 1, 2"):
        vt.FittedCounterfactual.load(tmp_path / "cf.zip", model=MODEL)
    other = RandomForestClassifier(3, random_state=1).fit(np.eye(SCHEMA.n_features), np.arange(SCHEMA.n_features) % 3)
    with pytest.raises(InvalidInput, match="another model"):
        vt.FittedCounterfactual.load(tmp_path / "cf.zip", model=[vt.Model(other, output=k) for k in (0, 1, 2)])


def test_broken_files_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "cf.zip")
    loaded = vt.FittedCounterfactual.load(tmp_path / "cf.zip", model=MODEL)
    assert_same(loaded(POOR), fitted(POOR))
    whole = (tmp_path / "cf.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.zip").write_text("hello")
    for name in ("cut.zip", "text.zip", "none.zip"):
        with pytest.raises(InvalidInput, match=name):
            vt.FittedCounterfactual.load(tmp_path / name, model=MODEL)


@pytest.mark.usefixtures("planted_noise")
def test_a_stored_picture_explains_where_there_is_no_vault(forest, tmp_path):
    made = vt.Counterfactual(private(), vt.Model(forest, output=2)).fit(epsilon=3.0)
    made.save(tmp_path / "cf.zip")
    with (tmp_path / "forest.pkl").open("wb") as file:
        pickle.dump(forest, file)
    program = f"""
import pickle, sys, vitrail as vt
forest = pickle.load(open({str(tmp_path / "forest.pkl")!r}, "rb"))
cf = vt.FittedCounterfactual.load({str(tmp_path / "cf.zip")!r}, model=vt.Model(forest, output=2))
out = cf({POOR!r}, desired_class=1)
print(out.validity.all(), [name for name in ("vitrail.vault", "vitrail.ledger", "sqlalchemy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True []", done.stdout + done.stderr


def test_names_of_sides():
    def named(output):
        estimator = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]] * 4, ["<=50K", ">50K"] * 4)
        return Classes.of(vt.Model(estimator, output=output), 0.5)

    assert named(">50K").labels == ("not >50K", ">50K")
    assert named(">50K").number(">50K") == named(">50K").number(1) == 1
    assert Classes.of(MODEL, 0.5).labels == (0, 1)
    zero = vt.Model(lambda x: x, output=0, range=(0, 1))
    assert Classes.of(zero, 0.5).labels == (1, 0)  # the upper side of class 0's output is class 0
    assert Classes.of(zero, 0.5).number(0) == 1


def test_results_go_through_json_and_files(fitted, tmp_path):
    out = fitted([POOR, {**POOR, "income": 0.0}], total_CFs=2)
    again = vt.Counterfactuals.from_json(json.loads(json.dumps(out.to_json())))
    assert_same(again, out)
    assert again.changes == out.changes
    assert (again.guarantee, again.cost, again.notes) == (out.guarantee, out.cost, out.notes)
    assert_same(vt.Counterfactuals.load(out.save(tmp_path / "out.json")), out)
    assert len(out) == 2
    assert out[1].points[0]["income"] == 0.0
    assert [len(one) for one in out] == [1, 1]
    with pytest.raises(IndexError):
        out[2]
    for broken in (
        {},
        {"format": "vitrail-counterfactuals/9"},
        {**out.to_json(), "points": 3},
        {**out.to_json(), "points": [{}, {}]},
        {**out.to_json(), "answers": [[{}], []]},
        {**out.to_json(), "outputs": [0.5, None]},
        {**out.to_json(), "wanted": [[1], [1]]},
        {**out.to_json(), "total_CFs": 1},
    ):
        with pytest.raises(InvalidInput):
            vt.Counterfactuals.from_json(broken)


def test_pictures_are_drawn(fitted):
    out = fitted([POOR, {**POOR, "income": 0.0}], total_CFs=2)
    assert len(out.plot(1).axes) == 1
    assert len(out.plot_distances().axes) == 1
    page = out._repr_html_()
    assert "Counterfactuals(credit, 2 of 2 people answered" in page
    assert out.guarantee.sentence in page
    none = fitted(POOR, features_to_vary=["job"], permitted_range={"job": ["none"]})
    texts = [text.get_text() for text in none.plot().axes[0].texts]
    assert any("No permitted change" in text for text in texts)


@pytest.mark.usefixtures("planted_noise")
def test_pictures_of_pixels():
    picture = vt.Picture((3, 4), high=1)
    images = np.random.default_rng(0).uniform(size=(3000, 3, 4))
    data = vt.PrivateData(picture.rows(images), picture.schema(), name="p", n_rows_public=3000, budget=vt.Budget(9, 1e-6))
    model = vt.Model(lambda pixels: pixels[:, :4].mean(axis=1), range=(0, 1), name="bright sky")
    made = vt.Counterfactual(data, model, rows=False, clip=2.5).fit(epsilon=5)
    out = made(picture.rows(np.full((3, 4), 0.2)))
    assert out.validity.all()
    assert len(out.plot(picture=picture).axes) == 3
    with pytest.raises(InvalidInput, match="others"):
        out.plot(picture=vt.Picture((5, 5)))


@pytest.mark.usefixtures("planted_noise")
def test_answers_change_different_columns_and_are_fewer_rather_than_padded():
    generator = np.random.default_rng(5)
    schema = vt.Schema({"gain": vt.Numeric(0, 100_000, integer=True), "years": vt.Numeric(0, 20, integer=True)})
    rows = {"gain": generator.integers(0, 100_000, 4000), "years": generator.integers(0, 20, 4000)}
    data = vt.PrivateData(rows, schema, name="people", n_rows_public=4000, budget=vt.Budget(2, 1e-6))
    model = vt.Model(lambda x: ((x[:, 0] > 0.05) | (x[:, 1] > 0.6)) * 1.0, range=(0, 1), name="either")
    found = vt.Counterfactual(data, model).fit(epsilon=1.0)({"gain": 0, "years": 9}, desired_class=1, total_CFs=3)
    # Either column is enough, so there is no third answer; and numbers are taken back to the last unit.
    assert found.changes[0] == ((("gain", 0, 5001),), (("years", 9, 13),))
