"""A pane gives the model's own reasons: they add up, for any model, any class, any group of columns."""

from html import unescape

import numpy as np
import pytest
from pane_setup import FEATURES, PERSON, fitted, opened, people
from sklearn.tree import DecisionTreeClassifier

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput, ModelError
from vitrail.solve.shapley.on_rows import shapley_on

OTHERS = [PERSON, {"age": 80, "gain": 0.7, "sex": "m"}, {"age": 55, "gain": 0.2, "sex": "f"}]


def test_reasons_add_up_to_the_output_and_are_those_of_real_rows(made):
    found = made.pane.local(OTHERS, bands=True)
    raw = FEATURES.read_points(OTHERS)
    assert np.abs(found.gap).max() < 1e-9
    assert np.array_equal(found.outputs, made.model.predict_points(FEATURES, raw))
    rows = people()
    real = FEATURES.read({name: rows[name] for name in FEATURES})
    truth = shapley_on(made.model, FEATURES, raw, real[:4000])
    # The rows are 6 000 at epsilon 4, the background 1 024 of them: each a few hundredths of the range at most.
    assert np.abs(found.values - truth.values).max() < 0.06
    assert found.columns == ("age", "gain", "sex")
    assert (found.lower[:, :2] < found.values[:, :2]).all()
    assert (found.upper - found.lower)[:, :2].max() < 0.3
    assert set(found.verdicts) == {vt.Verdict.CLEAR}


def test_another_model_is_explained_from_the_same_rows(made):
    other = vt.Model(fitted(depth=2)[0], output="yes", name="shallow")
    person = made.pane.explain(OTHERS[1], model=other)
    assert np.abs(person.explanation.gap).max() < 1e-9
    assert person.explanation.outputs[0] == other.predict_points(FEATURES, FEATURES.read_points(OTHERS[1]))[0]
    assert person.standings == ()
    assert any("Curves are left out: they are about riches" in note for note in person.notes)
    page = person.to_html()
    assert "shallow says" in page
    assert person.to_json()["model"] == "shallow"
    with pytest.raises(ModelError):
        made.pane.local(PERSON, model=vt.Model(lambda features: features[:, 9], range=(0, 1)))


def test_every_class_from_the_same_calls(made):
    rows = people(900, seed=3)
    labels = np.digitize(rows["age"], [40, 65]).astype(str)
    features = FEATURES.features(FEATURES.read({name: rows[name] for name in FEATURES}))[0]
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(features, labels)
    found = made.pane.classes(OTHERS, model=vt.Model(tree, output="0"), bands=True)
    assert list(found) == ["0", "1", "2"]
    for label, one in found.items():
        alone = made.pane.local(OTHERS, model=vt.Model(tree, output=label))
        np.testing.assert_allclose(one.values, alone.values, atol=1e-12)
    np.testing.assert_allclose(sum(one.values for one in found.values()), 0, atol=1e-9)  # probabilities add up to 1
    with pytest.raises(ModelError, match="names no classes"):
        made.pane.classes(PERSON, model=vt.Model(lambda x: x[:, 0], range=(0, 1)))


def test_of_two_classes_one_mirrors_the_other_and_is_what_local_says(made):
    found, alone = made.pane.classes(OTHERS, bands=True), made.pane.local(OTHERS, bands=True)
    assert any("corrected by the difference" in note for note in alone.notes)
    np.testing.assert_allclose(found["yes"].values, alone.values, atol=1e-12)
    np.testing.assert_allclose(found["yes"].upper, alone.upper, atol=1e-12)
    np.testing.assert_allclose(found["no"].values, -alone.values, atol=1e-12)
    np.testing.assert_allclose(found["no"].base_values + found["yes"].base_values, 1, atol=1e-12)
    np.testing.assert_allclose(found["no"].lower, -alone.upper, atol=1e-12)


def test_groups_log_odds_and_the_size_of_the_background(made):
    both = made.pane.local(PERSON, players={"who": ["age", "sex"]}, bands=True)
    assert both.columns == ("who", "gain")
    assert both.points[0]["who"] == "30, f"
    assert np.abs(both.gap).max() < 1e-9
    odds = made.pane.local(OTHERS[1:2], scale="log-odds")
    assert np.abs(odds.gap).max() < 1e-9
    few, many = (made.pane.local(PERSON, background=n, bands=True) for n in (64, 4096))
    assert (many.upper - many.lower).sum() < (few.upper - few.lower).sum()
    for wrong in (0, 4097):
        with pytest.raises(InvalidInput, match=f"background is {wrong}"):
            made.pane.local(PERSON, background=wrong)


def test_too_little_data_is_said_and_not_drawn():
    data = opened(budget=0.01)
    with planted_noise():  # what is mostly noise is one draw in twenty or so that looks like more
        pane = vt.release(data, vt.Model(fitted()[0], output="yes", name="riches"), epsilon=0.0005, parts=["rows"])
    person = pane.explain(PERSON)
    assert person.explanation.verdict is vt.Verdict.MOSTLY_NOISE
    page = person.to_html()
    assert "too little data to tell at this price" in page
    first, last = page.split('id="numbers"')
    assert "so none are listed. The result is the model's own answer all the same." in unescape(first)
    assert "What would help" in last
    assert "gain" not in first.split('id="why"')[1].split("</section>")[0]  # no reason names a column
    assert 'class="bar"' not in page
    assert "riches says" in page


def test_without_a_model_the_page_says_that_one_is_needed(made):
    pane = vt.release(opened(), made.model, epsilon=4.0)
    without = vt.Pane.from_bytes(pane.to_bytes())
    page = without.explain(PERSON).to_html()
    assert "Reasons need the model" in page
    with pytest.raises(InvalidInput, match="asks the model, and none was given"):
        without.local(PERSON)
