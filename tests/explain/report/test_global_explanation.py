"""A global explanation: files come back exactly, pages stand alone, the promise covers everything that is shown."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(20, 60, integer=True),
        "pay": vt.Numeric(0, 10),
        "job": vt.Categorical(["a", "b", "c"]),
        "risk": vt.Numeric(0, 1),
    }
)
MODEL = vt.Model(lambda x: 0.1 + 0.6 * x[:, 0] + 0.2 * x[:, 2], range=(0, 1), name="risk model")


def private(budget: float = 3.0) -> vt.PrivateData:
    generator = np.random.default_rng(5)
    age = generator.integers(20, 61, 3000)
    rows = {"age": age, "pay": generator.uniform(0, 10, 3000), "job": generator.choice(["a", "b", "c"], 3000)}
    rows["risk"] = (age - 20) / 40
    return vt.PrivateData(rows, SCHEMA, name="people", target="risk", n_rows_public=3000, budget=vt.Budget(budget, 1e-6))


@pytest.fixture(scope="module")
def data() -> vt.PrivateData:
    return private()


@pytest.fixture(scope="module")
def found(data: vt.PrivateData) -> vt.Report:
    return vt.GlobalReport(data, MODEL, key="risk")(epsilon=1.0)


def test_a_file_comes_back_exactly(found: vt.Report, tmp_path: Path) -> None:
    again = vt.Report.load(found.save(tmp_path / "report.vt"))
    assert again == found
    for effects, back in ((found.pdp, again.pdp), (found.ale, again.ale)):
        for name in effects:
            for part in ("y", "lower", "upper", "std"):
                np.testing.assert_array_equal(getattr(back[name], part), getattr(effects[name], part))
            np.testing.assert_array_equal(back[name].density.shares, effects[name].density.shares)
            assert tuple(back[name].x) == tuple(effects[name].x)
    np.testing.assert_array_equal(again.importance.scores, found.importance.scores)
    assert (again.guarantee, again.cost, dict(again.shares)) == (found.guarantee, found.cost, dict(found.shares))
    assert again.marginals.total == found.marginals.total
    assert again.to_html() == found.to_html()


@pytest.mark.parametrize("lost", ["marginals", "shares", "guarantee", "pdp", "n_rows_public"])
def test_a_file_that_lacks_something_is_refused(found: vt.Report, lost: str) -> None:
    fields = json.loads(json.dumps(found.to_json()))
    del fields[lost]
    with pytest.raises(InvalidInput, match=f"lacks '{lost}'"):
        vt.Report.from_json(fields)


def test_another_file_is_refused(found: vt.Report) -> None:
    with pytest.raises(InvalidInput, match="names the format 'vitrail-ranking/1'"):
        vt.Report.from_json(found.importance.to_json())
    with pytest.raises(InvalidInput, match="'shares-0' is 'much'"):
        vt.Report.from_json({**found.to_json(), "shares": {"pdp": "much"}})
    with pytest.raises(InvalidInput, match="names the format 'None'"):
        vt.Effects.from_json({})


def test_surfaces_come_back_too(data: vt.PrivateData, found: vt.Report) -> None:
    effects = vt.PartialDependence(data, MODEL, columns=["age", ("age", "job")], marginals=found.marginals, key="r")(
        epsilon=0.5
    )
    again = vt.Effects.from_json(json.loads(json.dumps(effects.to_json())))
    assert again == effects
    np.testing.assert_array_equal(again["age", "job"].values, effects["age", "job"].values)
    assert again.cost == effects.cost


def test_the_frame_is_tidy(found: vt.Report) -> None:
    frame = found.frame()
    assert set(frame) == {"part", "name", "x", "y", "lower", "upper", "std"}
    assert {len(column) for column in frame.values()} == {
        sum(map(len, found.pdp.values())) + sum(map(len, found.ale.values())) + 3
    }
    scores = frame["y"][frame["part"] == "importance"]
    np.testing.assert_array_equal(scores, np.sort(found.importance.scores)[::-1])


def test_marginals_paid_before_are_part_of_the_promise_on_the_page() -> None:
    data = private()
    before = vt.marginals(data, epsilon=0.5, bins=100)
    found = vt.GlobalReport(data, MODEL, parts=["pdp"], marginals=before)(epsilon=0.5)
    assert found.guarantee.mu == pytest.approx(np.hypot(found.cost.mu, before.guarantee.mu))
    assert found.guarantee.epsilon == pytest.approx(data.budget.spent_epsilon, rel=1e-6)
    promised = f"ε = {found.guarantee.epsilon:.3g}, δ = 1e-06"
    assert promised in found.to_html()


class Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cards: list[str] = []
        self.at = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at = tag

    def handle_data(self, data: str) -> None:
        if self.at == "h3" and data.strip():
            self.cards.append(data)
            self.at = ""


def test_the_page_has_the_label_the_cards_by_importance_and_each_note_once(
    data: vt.PrivateData, found: vt.Report, tmp_path: Path
) -> None:
    page = found.to_html(tmp_path / "r.html", data.budget.bill())
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page
    words = Words()
    words.feed(page)
    assert words.cards == ["Permutation importance", *found.importance.order]
    for heading in ("Privacy label", "Known limits", "Ledger head", "Who is in the data", "What each part cost", "The bill"):
        assert heading in page
    assert page.count(found.pdp["age"].notes[0]) == 1
    assert len(page) < 3_000_000


def test_a_notebook_gets_pictures_and_the_promise(found: vt.Report) -> None:
    shown = found._repr_html_()
    assert shown.count("<img") == 3
    assert "differential privacy" in shown
