"""Version, day of expiry and words for pages: declared, checked, shown, and part of no question."""

import json
import warnings
from datetime import date

import pytest
from pane_setup import N_ROWS, PERSON, SCHEMA, fitted, opened, people

import vitrail as vt
from file_damage import unzipped, zipped
from vitrail.errors import InvalidInput
from vitrail.pane import lifetime
from vitrail.show.label import privacy_label

DAY = date(2026, 11, 18)


@pytest.fixture(autouse=True)
def _a_fixed_day(monkeypatch):
    monkeypatch.setattr(lifetime, "today", lambda: DAY)


@pytest.fixture(scope="module")
def shop():
    """Data, a model and a pane of rows and curves, with nothing declared about its life."""
    data, model = opened(budget=1.0), vt.Model(fitted()[0], output="yes", name="riches")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifetime, "today", lambda: DAY)
        return data, model, vt.release(data, model, epsilon=1.0, parts=["rows", "pdp"])


def again(shop, **declared):
    data, model, _ = shop
    return vt.release(data, model, epsilon=1.0, parts=["rows", "pdp"], **declared)


def manifest_of(pane):
    return json.loads(unzipped(pane.to_bytes())["manifest.json"])


def test_what_is_not_declared_is_not_written_and_read_as_its_default(shop):
    fields = manifest_of(shop[2])
    assert fields.keys().isdisjoint({"version", "expires", "page"})
    read = vt.Pane.from_bytes(shop[2].to_bytes())
    assert (read.version, read.expires, read.expired, read.expiry_sentence, read.manifest.page) == (
        "1",
        None,
        False,
        "",
        None,
    )
    assert "Version" not in read.to_html()


def test_the_same_release_with_another_version_day_and_words_is_free(shop):
    spent, words = shop[0].budget.spent, {"decision": "Your loan", "columns": {"age": {"label": "Age"}}}
    made = again(shop, version="2026-Q4", expires="2027-06-30", page=words)
    assert shop[0].budget.spent == spent
    read = vt.Pane.from_bytes(made.to_bytes())
    assert (read.version, read.expires, dict(read.manifest.page)) == ("2026-Q4", "2027-06-30", words)
    assert read.to_bytes() == made.to_bytes()
    assert manifest_of(made) | {"version": "", "expires": "", "page": ""} == manifest_of(shop[2]) | {
        "version": "",
        "expires": "",
        "page": "",
    }
    assert again(shop).to_bytes() == shop[2].to_bytes()


def test_a_date_of_python_is_a_day_and_today_is_still_to_come(shop):
    assert again(shop, expires=date(2027, 1, 1)).expires == "2027-01-01"
    assert not again(shop, expires=DAY).expired


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"expires": "2026-11-17"}, "expires is 2026-11-17, and today is 2026-11-18"),
        ({"expires": "30.6.2027"}, "written as in 2027-06-30"),
        ({"expires": "2027-02-29"}, "it must be a day"),
        ({"expires": 20270630}, "it must be a day"),
        ({"version": ""}, "version is"),
        ({"version": "two\nlines"}, "one line"),
        ({"version": "x" * 101}, "at most 100"),
        ({"version": 2}, "version is '2'"),
        ({"page": "words"}, "page is str"),
        ({"page": {"columns": {1, 2}}}, "what JSON cannot"),
        ({"page": {"threshold": float("nan")}}, "what JSON cannot"),
        ({"page": {"footer": "x" * 64_000}}, "at most 64000"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_charged(wrong, said):
    data = opened()
    with pytest.raises(InvalidInput, match=said):
        vt.release(data, epsilon=1.0, **wrong)
    assert not [entry for entry in data.budget.entries if entry.kind == "charged"]


def test_after_its_day_a_pane_warns_and_says_so_first(shop, monkeypatch):
    made = again(shop, version="2026-Q4", expires="2027-06-30")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vt.Pane.from_bytes(made.to_bytes())
    assert "2026-Q4, meant to be used until 30 June 2027" in made.to_html()
    monkeypatch.setattr(lifetime, "today", lambda: date(2027, 7, 1))
    with pytest.warns(UserWarning, match="meant to be used until 30 June 2027"):
        late = vt.Pane.from_bytes(made.to_bytes(), model=shop[1])
    assert late.expired
    page = late.to_html()
    assert page.index(late.expiry_sentence) < page.index("<h2>")
    assert late.expiry_sentence in late._repr_html_()
    assert late.expiry_sentence in privacy_label(late).to_markdown()
    assert "that day has passed" in late.explain(PERSON, bands=False).to_html()
    assert late.to_bytes() == made.to_bytes()


def test_words_are_changed_and_taken_away_without_touching_anything_else(shop):
    class Words:
        def to_json(self):
            return {"decision": "Your loan", "unit": "é"}

    before = vt.Pane.from_bytes(later_version(shop[2].to_bytes()))
    worded = before.with_page(Words())
    assert dict(worded.manifest.page) == {"decision": "Your loan", "unit": "é"}
    assert manifest_of(worded)["of_tomorrow"] == [1]
    assert worded.with_page(None).to_bytes() == before.to_bytes()
    assert worded.with_model(shop[1]).manifest.page == worded.manifest.page


def later_version(content):
    """The pane as a later version might write it, with a field that this one does not know."""
    members = unzipped(content)
    fields = {**json.loads(members["manifest.json"]), "of_tomorrow": [1]}
    return zipped({**members, "manifest.json": json.dumps(fields).encode()})


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"version": ""},
        {"version": None},
        {"expires": "soon"},
        {"expires": "2027-13-01"},
        {"expires": 5},
        {"page": 1},
        {"page": []},
        {"page": {"x": "y" * 65_000}},
    ],
)
def test_manifests_with_a_wrong_life_are_refused(shop, change):
    members = unzipped(shop[2].to_bytes())
    fields = {**json.loads(members["manifest.json"]), **change}
    with pytest.raises(InvalidInput, match=next(iter(change))):
        vt.Pane.from_bytes(zipped({**members, "manifest.json": json.dumps(fields).encode()}))


def test_the_pane_of_one_of_several_models_has_the_life_of_the_whole():
    rows = people()
    data = vt.PrivateData(rows, SCHEMA, name="people", target="rich", n_rows_public=N_ROWS, budget=vt.Budget(4.0, 1e-6))
    models = [vt.Model(fitted(depth)[0], output="yes", name=f"depth {depth}") for depth in (2, 3)]
    pane = vt.release(data, models, epsilon=4.0, parts=["pdp"], version="b", expires="2027-01-01", page={"unit": "x"})
    one = pane.about("depth 3")
    assert (one.version, one.expires, dict(one.manifest.page)) == ("b", "2027-01-01", {"unit": "x"})
