"""Panes of no model and of several: what is bought once, what for each, and what is said about which."""

import json
import re
import warnings

import numpy as np
import pytest
from pane_setup import FEATURES, PERSON, SCHEMA, fitted, opened, people
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from error_rates import planted_noise
from file_damage import rehashed, unzipped, zipped
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.pane.pane_recipe import PaneExplainer

DEEP, SHALLOW = (vt.Model(fitted(depth)[0], output="yes", name=name) for depth, name in ((4, "deep"), (2, "shallow")))
OTHER = vt.Model(fitted(3)[0], output="yes", name="other")
RICH = {"age": 80, "gain": 0.7, "sex": "m"}


def charges(data):
    return [entry for entry in data.budget.entries if entry.kind == "charged"]


@pytest.fixture(scope="module", autouse=True)
def same_noise():
    with planted_noise():
        yield


@pytest.fixture(scope="module")
def alone():
    data = opened(budget=1.0)
    return data, vt.release(data, epsilon=1.0)


@pytest.fixture(scope="module")
def both():
    data = opened()
    return data, vt.release(data, [DEEP, SHALLOW], epsilon=4.0)


# --- no model ------------------------------------------------------------------------------------------------------------


def test_rows_alone_are_a_pane(alone):
    data, pane = alone
    assert (pane.parts, pane.models, pane.made_for, pane.model) == (("rows",), (), None, None)
    assert repr(pane) == "Pane('people': rows; epsilon=1 at delta=1e-06)"
    assert data.budget.spent == pane.cost
    assert sum((line.cost for line in pane.bill), vt.Cost()) == pane.cost
    assert data.budget.capacity.pico_mu_squared - pane.cost.pico_mu_squared < 20  # all of the price goes to the rows
    spent = data.budget.spent
    assert vt.release(data, epsilon=1.0).to_bytes() == pane.to_bytes()
    assert vt.release(data, epsilon=1.0, parts=["rows"]).to_bytes() == pane.to_bytes()
    assert data.budget.spent == spent
    page = pane.to_html()
    for words in ("Private rows of people", "Who is in the data", "none: private rows serve any model", "What is inside"):
        assert words in page
    assert "Pane(" in pane._repr_html_()
    assert pane.half_width > 0
    assert len(pane.frame()) > 0


def test_a_pane_without_a_model_says_that_one_is_needed(alone):
    pane = vt.Pane.from_bytes(alone[1].to_bytes())
    for ask in (pane.local, pane.classes, lambda point: pane.counterfactual(point)):
        with pytest.raises(InvalidInput, match="asks the model, and none was given"):
            ask(PERSON)
    with pytest.raises(InvalidInput, match="says nothing about single people without a model; it has 'rows'"):
        pane.explain(PERSON)
    with pytest.raises(InvalidInput, match="model is 'deep', and this pane was made without one"):
        pane.explain(PERSON, model="deep")
    for part in ("report", "effects", "importance", "synopsis"):
        with pytest.raises(InvalidInput, match="this pane has no part"):
            getattr(pane, part)
    with pytest.raises(InvalidInput, match="holds no model"):
        pane.with_model("embedded")
    with pytest.raises(InvalidInput, match="2 models were given"):
        pane.with_model([DEEP, SHALLOW])


def test_rows_alone_explain_any_model(alone, tmp_path):
    pane = vt.Pane.from_bytes(alone[1].to_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # there is no model that this one is not
        loaded = pane.with_model(DEEP)
    for person in (pane.explain(PERSON, model=DEEP), loaded.explain(PERSON)):
        assert np.abs(person.explanation.gap).max() < 1e-9
        assert person.counterfactuals.validity[0, 0]
        assert person.standings == ()
        assert person.model_name == "deep"
        page = person.to_html()
        assert "deep says" in page
        assert "from private rows, in the classes that deep puts them in" in page
        assert person.to_json()["guarantee"]["epsilon"] == pytest.approx(1, rel=1e-6)
    tree, features = fitted()
    onnx = to_onnx(tree, features[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    (tmp_path / "next.onnx").write_bytes(onnx)
    assert vt.Pane.from_bytes(pane.to_bytes(), tmp_path / "next.onnx").model.name == "next.onnx"


def test_no_prediction_is_made_on_private_rows_for_rows_alone(monkeypatch):
    monkeypatch.setattr(vt.Model, "predict_points", None)
    assert vt.release(opened(), epsilon=1.0).parts == ("rows",)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"parts": ["rows", "pdp"]}, "parts names 'pdp', which is about a model, and none was given"),
        ({"parts": ["counterfactual"]}, "parts names 'counterfactual', which is about a model"),
        ({"parts": ["local"]}, "parts names 'local', which is about a model"),
        ({"weights": {"pdp": 2}}, "not among the parts"),
        ({"embed_model": True}, "there is no model"),
        ({"model": []}, "model is an empty list"),
        ({"model": [DEEP, fitted()[0]]}, "wrap it"),
        ({"model": "deep"}, "model is str; wrap it"),
        ({"model": [DEEP, vt.Model(fitted(2)[0], output="yes", name="deep")]}, "two models are called 'deep'"),
        ({"model": [DEEP, DEEP]}, "two models are called 'deep'"),
        ({"model": [DEEP, SHALLOW], "threshold": 3.0}, "threshold"),
        ({"model": [DEEP, SHALLOW], "embed_model": True}, "deep is no ONNX model"),
        ({"model": [DEEP, vt.Model(lambda x: x[:, 9], range=(0, 1), name="bad")]}, "bad"),
    ],
)
def test_bad_input_is_said_before_anything_is_charged(wrong, said):
    data, options = opened(), dict(wrong)
    with pytest.raises((InvalidInput, vt.errors.ModelError), match=said):
        vt.release(data, options.pop("model", None), epsilon=1.0, **options)
    assert charges(data) == []


def test_one_column_has_no_rows_to_release():
    schema = vt.Schema({"age": vt.Numeric(0, 100)})
    data = vt.PrivateData({"age": []}, schema, name="one", n_rows_public=10, budget=vt.Budget(1, 1e-6), ledger="memory")
    with pytest.raises(InvalidInput, match="private rows have 2 to"):
        vt.release(data, epsilon=1.0)
    assert charges(data) == []


# --- several models ------------------------------------------------------------------------------------------------------


def test_rows_are_bought_once_and_the_rest_is_shared_evenly(both):
    data, pane = both
    assert pane.models == ("deep", "shallow")
    assert pane.parts == ("rows", "reasons", "pdp", "ale", "importance")
    shares, plan = pane.shares(), PaneExplainer(data, [DEEP, SHALLOW]).shares(pane.cost.mu)
    assert list(shares) == ["rows", "reasons", "reasons-2", "global", "global-2"]
    assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    assert shares["rows"] == pytest.approx(plan["rows"], abs=1e-4)
    for name, of_both in (("reasons", plan["reasons"]), ("global", 1 - plan["rows"] - plan["reasons"])):
        assert shares[name] == pytest.approx(of_both / 2, abs=1e-4)
        assert shares[f"{name}-2"] == pytest.approx(of_both / 2, abs=1e-4)
    assert data.budget.spent == pane.cost == sum((line.cost for line in pane.bill), vt.Cost())
    assert pane.guarantee.epsilon == pytest.approx(4.0, rel=1e-6)
    for name in ("deep", "shallow"):
        named = {line.question.split(" of ")[0] for line in pane.bill if line.question.endswith(f" of {name}")}
        assert named == {"mean reasons", "sizes", "pdp, ale, importance"}
    about = {f"{part} of {name}" for part in ("reasons on real rows", "global report") for name in ("deep", "shallow")}
    assert set(pane.accuracy()) == {"private rows", *about}
    spent = data.budget.spent
    assert vt.release(data, [DEEP, SHALLOW], epsilon=4.0).to_bytes() == pane.to_bytes()
    assert data.budget.spent == spent
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        vt.release(data, [SHALLOW, DEEP], epsilon=4.0)  # another order is another question


def test_without_rows_histograms_are_bought_once_too():
    data = opened()
    pane = vt.release(data, [DEEP, SHALLOW], epsilon=4.0, parts=["pdp"])
    assert data.budget.spent == pane.cost
    paid = [pane.about(name).report.shares["marginals"] > 0 for name in pane.models]
    assert paid == [True, False]
    assert pane.about("deep").marginals.total == pane.about("shallow").marginals.total == pane.marginals.total


def test_what_two_parts_have_in_common_is_paid_once():
    """More than 16 features: prototypes are averaged in a code of the rows, which is about no model."""
    rows = {f"x{i}": np.random.default_rng(i).uniform(size=1000) for i in range(17)}
    schema = vt.Schema({name: vt.Numeric(0, 1) for name in rows})
    lines = [vt.Model(lambda x, b=b: 0.1 + b * x[:, 0], range=(0, 1), name=f"line {b}") for b in (0.5, 0.8)]
    for parts in (["rows", "counterfactual"], ["counterfactual"]):
        account = {"n_rows_public": 1000, "budget": vt.Budget(1, 1e-6), "ledger": "memory"}
        data = vt.PrivateData(rows, schema, name="wide", **account)
        pane = vt.release(data, lines, epsilon=1.0, parts=parts, key="lines")
        assert pane.cost == data.budget.spent == pane.guarantee.behind.cost
        assert sum(pane.shares().values()) == pytest.approx(1, abs=1e-5)
        assert data.budget.capacity.pico_mu_squared >= data.budget.spent.pico_mu_squared
        assert vt.release(data, lines, epsilon=1.0, parts=parts, key="lines").to_bytes() == pane.to_bytes()
        assert pane.cost == data.budget.spent


def test_each_part_is_about_its_own_model(both):
    pane, rows = both[1], people()
    raw = FEATURES.read({name: rows[name] for name in FEATURES})
    for model in (DEEP, SHALLOW):
        one = pane.about(model.name)
        assert (one.models, one.model, one.made_for.name) == ((model.name,), model, model.name)
        for age in (25, 60, 85):
            set_to = raw.copy()
            set_to[:, 0] = age
            assert abs(one.pdp["age"](age) - model.predict_points(FEATURES, set_to).mean()) < 0.04
        assert one.private_rows.sampled.tolist() == pane.private_rows.sampled.tolist()
        assert (one.guarantee, one.cost, one.bill) == (pane.guarantee, pane.cost, pane.bill)
        assert one.about(model.name) is one
        assert f"{model.name}, explained from people" in one.to_html()
        assert vt.Pane.from_bytes(one.to_bytes(), model).pdp.to_json() == one.pdp.to_json()


def test_of_several_models_one_must_be_chosen(both):
    pane = both[1]
    sentence = "about several models; choose one of 'deep', 'shallow'"
    for ask in (pane.local, pane.explain, pane.classes, lambda point: pane.counterfactual(point)):
        with pytest.raises(InvalidInput, match=sentence):
            ask(PERSON)
    for part in ("report", "pdp", "ale", "effects", "importance", "class_picture"):
        with pytest.raises(InvalidInput, match=rf"{sentence}: pane\.about"):
            getattr(pane, part)
    with pytest.raises(InvalidInput, match=r"choose 'deep' or 'shallow'\. Did you mean 'deep'"):
        pane.explain(PERSON, model="deeep")
    page = pane.to_html()
    for words in ("deep and shallow, explained from people", "global report of shallow"):
        assert words in page
    for model in (DEEP, SHALLOW):
        named, given = pane.explain(RICH, model=model.name), pane.explain(RICH, model=model)
        for person in (named, given):
            assert person.model_name == model.name
            assert {standing.column for standing in person.standings} == {"age", "gain", "sex"}
            assert person.counterfactuals.model == model.name
            assert person.explanation.outputs[0] == model.predict_points(FEATURES, FEATURES.read_points(RICH))[0]
        np.testing.assert_array_equal(named.explanation.values, given.explanation.values)
        np.testing.assert_array_equal(pane.local(RICH, model=model.name, bands=True).values, named.explanation.values)
        assert pane.local(RICH, model=model.name, method="linear").outputs[0] == named.explanation.outputs[0]
        assert pane.classes(RICH, model=model.name)["yes"].outputs[0] == named.explanation.outputs[0]


def test_the_page_of_several_models_shows_the_curves_and_the_ranking_of_each(both):
    pane = both[1]
    page = pane.to_html()
    assert page.count('<h2 id="people">Who is in the data') == 1  # rows are about no model
    assert page.count('<h2 id="inside">What is inside, and what it cost') == 1
    parts = re.split(r'<div id="model-\d">', page)
    assert len(parts) == 3
    for number, name in enumerate(pane.models, 1):
        assert f'<a href="#model-{number}">{name}</a>' in parts[0]
        own, alone = parts[number], pane.about(name).to_html()
        for part, heading in (("matters", "what matters most"), ("columns", "column by column")):
            assert f'<h2 id="{part}-{number}">{name}: {heading}</h2>' in own
            assert f'<a href="#{part}-{number}">{name}: {heading.capitalize()}</a>' in parts[0]
        drawn = re.findall(r"<svg.*?</svg>", own.partition("Who is in the data")[0], re.DOTALL)
        assert len(drawn) == 2 * 3  # two curves of each column
        assert drawn == re.findall(r"<svg.*?</svg>", alone, re.DOTALL)[:6]
        assert '<nav id="models">' not in alone
        assert '<h2 id="matters">What matters most</h2>' in alone


def test_several_models_go_through_a_file(both, tmp_path):
    path = both[1].save(tmp_path / "both.pane")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = vt.Pane.load(path, model=[SHALLOW, DEEP])  # in any order: they are known by their content
        one = vt.Pane.load(path, model=SHALLOW)
    assert again.to_bytes() == path.read_bytes() == both[1].to_bytes()
    assert repr(again) == repr(both[1])
    for name in ("deep", "shallow"):
        mine, theirs = (pane.explain(PERSON, model=name).to_json() for pane in (both[1], again))
        assert mine == theirs
    assert one.explain(PERSON).model_name == "shallow"  # the only one at hand
    assert one.explain(PERSON, model="deep").explanation is None
    assert one.explain(PERSON, model="deep").standings
    with pytest.warns(UserWarning, match="made with 'deep' .*'shallow' .* and 'other' is another model"):
        foreign = vt.Pane.load(path, model=OTHER)
    assert foreign.explain(PERSON).model_name == "other"
    with pytest.raises(InvalidInput, match="3 models were given"):
        vt.Pane.load(path, model=[DEEP, SHALLOW, OTHER])


def test_several_models_in_the_file(tmp_path):
    models, files = [], []
    for depth in (4, 2):
        tree, features = fitted(depth)
        files.append(to_onnx(tree, features[:1].astype(np.float32), options={"zipmap": False}).SerializeToString())
        models.append(vt.Model(files[-1], output=1, name=f"depth {depth}"))
    data = opened()
    pane = vt.release(data, models, epsilon=4.0, parts=["rows", "counterfactual"], embed_model=True)
    loaded = vt.Pane.from_bytes(pane.to_bytes(), "embedded")
    assert loaded.models == ("depth 4", "depth 2")
    for model in models:
        person = loaded.explain(PERSON, model=model.name)
        assert person.counterfactuals.model == model.name
        assert person.explanation.outputs[0] == pytest.approx(
            model.predict_points(FEATURES, FEATURES.read_points(PERSON))[0]
        )
    (tmp_path / "second.onnx").write_bytes(files[1])
    assert vt.Pane.from_bytes(pane.to_bytes(), tmp_path / "second.onnx").explain(PERSON).model_name == "depth 2"
    members = unzipped(pane.to_bytes())
    manifest = json.loads(members["manifest.json"])
    manifest["models"][1]["embedded"] = manifest["models"][0]["embedded"]
    manifest["models"][1]["sha256"] = manifest["models"][0]["sha256"]
    with pytest.raises(InvalidInput, match="as something else"):
        vt.Pane.from_bytes(zipped({**members, "manifest.json": json.dumps(manifest).encode()}))


def test_a_part_of_a_model_that_is_not_there_is_kept_and_not_read(both):
    members = unzipped(both[1].to_bytes())
    manifest = json.loads(members["manifest.json"])
    del manifest["models"][1]
    pane = vt.Pane.from_bytes(zipped(rehashed({**members, "manifest.json": json.dumps(manifest).encode()})))
    assert pane.unknown_parts == ("reasons-2", "global-2")
    assert pane.about("deep").pdp["age"](40) == both[1].about("deep").pdp["age"](40)


def test_a_quote_for_several_models_charges_nothing():
    data = opened(budget=1.0)
    quote = data.quote(PaneExplainer(data, [DEEP, SHALLOW]), epsilon=1.0)
    assert quote.fits
    assert quote.result.models == ("deep", "shallow")
    # Of partial dependence, which is sums alone; clips of accumulated effects are chosen from releases, and vary.
    alone = data.quote(PaneExplainer(data, DEEP), epsilon=1.0).result.report.half_widths
    assert quote.result.about("deep").report.half_widths["pdp"] > 1.2 * alone["pdp"]
    assert data.quote(PaneExplainer(data), epsilon=1.0).result.parts == ("rows",)
    assert charges(data) == []


def test_functions_are_replayed_under_a_key_and_told_apart():
    data = opened(budget=1.0)
    lines = [vt.Model(lambda x, b=b: 0.1 + b * x[:, 0], range=(0, 1), name=f"line {b}") for b in (0.5, 0.8)]
    first = vt.release(data, lines, epsilon=1.0, parts=["rows", "pdp"], key="lines")
    assert vt.release(data, lines, epsilon=1.0, parts=["rows", "pdp"], key="lines").to_bytes() == first.to_bytes()
    reloaded = vt.Pane.from_bytes(first.to_bytes(), lines)
    ends = [reloaded.about(line.name).pdp["age"](90) for line in lines]
    assert ends == pytest.approx([0.6, 0.9], abs=0.05)
    assert reloaded.explain(PERSON, model=lines[1]).model_name == "line 0.8"


# --- counterfactuals of any model ----------------------------------------------------------------------------------------


def test_another_model_has_counterfactuals_from_private_rows(both):
    pane, raw = both[1], FEATURES.read_points(PERSON)
    person = pane.explain(PERSON, model=OTHER)
    found = person.counterfactuals
    assert found.model == "other"
    assert found.validity[0, 0]
    assert OTHER.predict_points(FEATURES, raw)[0] < 0.5
    for answer in found.answers[0]:
        assert OTHER.predict_points(FEATURES, FEATURES.read_points(answer.row))[0] >= 0.5
    assert (found.guarantee, found.cost) == (pane.guarantee, pane.cost)
    assert any("in the classes that other puts them in" in note for note in found.notes)
    assert any("they are about deep and shallow, and other was asked" in note for note in person.notes)
    assert person.standings == ()
    own = pane.explain(PERSON, model="deep").counterfactuals
    assert any("in the classes that deep puts them in" in note for note in own.notes)


def test_a_picture_that_was_bought_of_each_model_is_used():
    pane = vt.release(opened(), [DEEP, SHALLOW], epsilon=4.0, parts=["rows", "counterfactual"], threshold=0.7)
    assert list(pane.shares()) == ["rows", "counterfactual", "counterfactual-2"]
    for model in (DEEP, SHALLOW):
        fitted_one = pane.about(model.name).counterfactual
        np.testing.assert_array_equal(fitted_one.picture.sums, pane.about(model.name).class_picture.sums)
        assert all(answer.output >= 0.7 for answer in fitted_one(PERSON, desired_class="yes").answers[0])
    assert all(answer.output >= 0.7 for answer in pane.explain(PERSON, model=OTHER).counterfactuals.answers[0])


@pytest.mark.parametrize("parts", ["all", ["rows", "counterfactual"]])
def test_the_threshold_that_was_chosen_holds_for_this_model_and_the_next(parts):
    made = vt.release(opened(), DEEP, epsilon=4.0, parts=parts, threshold=0.9)
    assert ("counterfactual" in made.parts) == (parts != "all")
    pane = vt.Pane.from_bytes(made.to_bytes(), DEEP)
    assert (pane.made_for.threshold, made.made_for.threshold) == (0.9, 0.9)
    assert pane.to_bytes() == made.to_bytes()
    assert "cross the output 0.9" in pane.to_html()
    for model in (DEEP, OTHER):
        found = pane.explain(PERSON, model=model).counterfactuals
        assert found.answers[0]
        assert all(answer.output >= 0.9 for answer in found.answers[0])
    between = vt.Model(lambda x: 0.6 + 0.35 * x[:, 0], range=(0, 1), name="between")  # over the middle, and not far enough
    found = pane.explain(PERSON, model=between, total_CFs=1).counterfactuals
    assert (found.classes[0], found.outputs[0] > 0.5) == (0, True)
    amount = vt.Model(lambda x: 100 + 900 * x[:, 0], range=(100, 1000), name="amount")  # 0.9 is none of its outputs
    assert pane.explain(PERSON, model=amount, total_CFs=1).counterfactuals.answers[0][0].output >= 550
    rent = pane.explain(PERSON, model=amount, desired=(700, 800), total_CFs=1).counterfactuals
    assert 700 <= rent.answers[0][0].output <= 800


def test_without_rows_another_model_has_none(both):
    pane = vt.release(opened(), DEEP, epsilon=4.0, parts=["pdp", "counterfactual"])
    with pytest.raises(InvalidInput, match="says nothing about single people"):
        pane.explain(PERSON, model=OTHER)
    assert pane.counterfactual(PERSON).validity.all()
    with pytest.warns(UserWarning, match="is another model"):
        other = pane.with_model(OTHER)
    with pytest.raises(InvalidInput, match="near the classes of deep, and other was asked"):
        other.counterfactual(PERSON)


def test_where_nothing_may_change_there_are_reasons_and_a_note():
    columns = {"age": vt.Numeric(18, 90, change="never"), "sex": vt.Categorical(["f", "m"], change="never")}
    account = {"n_rows_public": 6000, "budget": vt.Budget(4, 1e-6), "ledger": "memory"}
    data = vt.PrivateData(people(), vt.Schema(columns), name="people", **account)
    age = vt.Model(lambda x: x[:, 0], range=(0, 1), name="age")
    person = vt.release(data, epsilon=4.0).explain({"age": 30, "sex": "f"}, model=age)
    assert person.explanation.top(1)[0].column == "age"
    assert person.counterfactuals is None
    assert any("No counterfactuals: every column" in note for note in person.notes)


def test_a_class_that_few_rows_are_in_is_said(alone):
    rare = vt.Model(lambda x: (x[:, 0] > 0.999).astype(float), range=(0, 1), name="rare")
    nobody = vt.Model(lambda x: np.zeros(len(x)), range=(0, 1), name="nobody")
    assert alone[1].explain(PERSON, model=rare).counterfactuals.validity[0, 0]
    found = alone[1].explain(PERSON, model=nobody).counterfactuals
    assert "No permitted change was found" in found.messages[0]
    assert any("prototype of class 1" in note for note in found.notes)


# --- groups, trees -------------------------------------------------------------------------------------------------------


def test_declared_groups_are_one_player():
    schema = vt.Schema(dict(SCHEMA), rules=[vt.Group("means", ["age", "gain"])])
    data = vt.PrivateData(
        people(), schema, name="people", target="rich", n_rows_public=6000, budget=vt.Budget(4, 1e-6), ledger="memory"
    )
    pane = vt.Pane.from_bytes(vt.release(data, DEEP, epsilon=4.0).to_bytes(), DEEP)
    found = pane.local(RICH)
    assert found.columns == ("means", "sex")
    assert found.points[0]["means"] == "80, 0.7"
    assert np.abs(found.gap).max() < 1e-9
    assert pane.local(RICH, players={}).columns == ("age", "gain", "sex")
    np.testing.assert_allclose(found.values, pane.local(RICH, players={"means": ["age", "gain"]}).values, atol=1e-12)
    assert list(pane.classes(RICH)["yes"].columns) == ["means", "sex"]
    person = pane.explain(RICH)
    assert {standing.column for standing in person.standings} == {"age", "gain", "sex"}
    assert "means" in person.to_html()


def test_trees_are_explained_exactly(alone):
    pytest.importorskip("shap")
    rows = people(800, seed=1)
    features = FEATURES.features(FEATURES.read({name: rows[name] for name in FEATURES}))[0]
    forest = RandomForestClassifier(8, max_depth=5, random_state=0).fit(features, rows["rich"])
    model, pane = vt.Model(forest, output="yes", name="forest"), alone[1]
    exact, sampled = (pane.local([PERSON, RICH], model=model, method=how, bands=True) for how in ("tree", "shapley"))
    assert np.abs(exact.gap).max() < 1e-6
    assert any("Exact over all orders" in note for note in exact.notes)
    assert not any("Exact over all orders" in note for note in sampled.notes)
    np.testing.assert_allclose(exact.values, sampled.values, atol=0.02)
    line = vt.Model(lambda x: x[:, 0], range=(0, 1), name="line")  # no trees: the same values as without
    fallback = pane.local(PERSON, model=line, method="tree")
    np.testing.assert_array_equal(fallback.values, pane.local(PERSON, model=line).values)
    assert fallback.notes == pane.local(PERSON, model=line).notes


def test_an_answer_reads_the_models_content_once_and_the_next_answer_reads_it_again(alone, monkeypatch):
    """It is hashed to know which model is asked; a model that is fitted again between two answers is another one."""
    tree, features = fitted(3)
    model, read = vt.Model(tree, output="yes", name="tree"), []
    original = vt.Model._digest
    monkeypatch.setattr(vt.Model, "_digest", lambda self: read.append(self) or original(self))
    alone[1].explain(RICH, model=model, bands=False)
    assert read.count(model) == 1
    before = model.digest()
    tree.fit(features, np.roll(people(800, seed=1)["rich"], 1))
    alone[1].explain(RICH, model=model, bands=False)
    assert read.count(model) == 3
    assert model.digest() != before
