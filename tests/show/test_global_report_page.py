"""The page of a global report: order, scales, many levels, nasty names."""

import re

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import rounded_up
from vitrail.accounting.guarantee import Budget, Guarantee
from vitrail.errors import InvalidInput
from vitrail.ledger import open_ledger
from vitrail.results import Density
from vitrail.results.effects import Effects
from vitrail.results.marginals import Marginals
from vitrail.schema.bins import Bins
from vitrail.show.curves import MOST_LEVELS, least_span, most_common_levels
from vitrail.show.drawings import curve_drawing
from vitrail.show.pages import column_order

NASTY = '"><script>alert(1)</script>'
PROMISE, COST = Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2)


def curve(name: str, x: object, y: object, **more: object) -> vt.Curve:
    return vt.Curve(name, "partial dependence", x, np.asarray(y, dtype=float), PROMISE, COST, **more)  # type: ignore[arg-type]


def flat(name: str, height: float) -> vt.Curve:
    return curve(name, np.array([0.0, 1.0]), [0.0, height], std=np.full(2, 0.01 / 1.96), notes=(NASTY,))


def report(*curves: vt.Curve, **changed: object) -> vt.Report:
    counts = Marginals(NASTY, (Bins(NASTY, (NASTY, "b"), None),), {NASTY: np.array([10.0, 20.0])}, 2.0, 30, COST, PROMISE)
    shown = curves or (flat("small", 0.001), flat(NASTY, 0.8))
    fields: dict[str, object] = {
        "dataset": NASTY,
        "model": NASTY,
        "n_rows_public": 30,
        "marginals": counts,
        "pdp": Effects({str(one.name): one for one in shown}, counts, PROMISE, COST),
        "ale": None,
        "importance": None,
        "shares": {"marginals": 0.12, "pdp": 0.88},
        "guarantee": PROMISE,
        "cost": COST,
    }
    return vt.Report(**{**fields, **changed})  # type: ignore[arg-type]


def cards(page: str) -> list[str]:
    return page.split('<h2 id="columns">Column by column</h2>')[1].split("</section>")[0].split("<article")[1:]


def test_names_are_escaped_and_nothing_is_loaded() -> None:
    page = report().to_html()
    assert page.count("<script>") == page.count("<script") == 1  # which sorts rankings; tests/show/test_pages.py compares it
    assert "&lt;script&gt;" in page
    assert not re.search(r"url\(|@import|https?://", re.sub(r"data:image[^\"]*", "", page))


def test_without_importance_the_curve_that_moves_most_comes_first() -> None:
    assert column_order(report()) == (NASTY, "small")


def test_with_importance_its_order_holds_and_noise_is_named() -> None:
    std = np.array([0.1, 0.11]) / 1.959963984540054
    ranking = vt.Ranking(("small", NASTY), np.array([0.2, 0.01]), PROMISE, COST, std=std, score_label="loss")
    found = report(importance=ranking)
    assert column_order(found) == ("small", NASTY)
    first, second = cards(found.to_html())
    assert "<p>Place 1 of 2: loss 0.2 ± 0.1 (not calibrated).</p>" in first
    assert "<p>Place 2 of 2: loss 0.01 ± 0.11 (not calibrated), which may be noise alone.</p>" in second


def test_a_curve_that_does_nothing_does_not_fill_its_picture() -> None:
    large, small = flat("a", 0.8), flat("b", 0.001)
    least = least_span([large, small])

    def rise(one: vt.Curve, span: float) -> float:
        (line,) = [shape for shape in curve_drawing(one, least_span=span).shapes if shape.kind == "line"]
        heights = [float(pair.split(",")[1]) for pair in line.at["points"].split()]
        return heights[0] - heights[-1]

    assert rise(large, least) == rise(large, 0.0) > 100
    assert rise(small, least) < 2 < rise(small, 0.0)


def test_of_many_levels_the_most_common_are_drawn_and_all_are_listed() -> None:
    levels = tuple(f"level {i}" for i in range(40))
    shares = np.array([(i % 20) / 380 for i in range(40)])
    land = curve("land", levels, np.arange(40.0), density=Density(None, shares), std=np.ones(40))
    shown = most_common_levels(land, MOST_LEVELS)
    assert len(shown) == MOST_LEVELS
    assert list(shown.y) == sorted(shown.y)
    assert {int(str(name).split()[1]) % 20 for name in shown.x} == set(range(12, 20))
    assert np.array_equal(shown.lower, land.lower[[int(y) for y in shown.y]])
    own = most_common_levels(land, MOST_LEVELS, own="level 0")
    assert len(own) == MOST_LEVELS
    assert own.x[0] == "level 0"
    (card,) = cards(report(land).to_html())
    assert "Partial dependence, the 16 most common of 40 levels" in card
    assert card.count("<tr><td>level ") == 40


def test_what_was_paid_before_is_not_priced_again() -> None:
    page = report(shares={"marginals": 0.0, "pdp": 1.0}).to_html()
    costs = re.sub(r"\s+", " ", page.split('<h2 id="cost">What each part cost')[1])
    assert "what was paid for before included" in costs
    assert '<td>histograms of all columns</td><td class="number">paid before</td><td></td>' in costs
    priced = f'<td class="number">100.0 %</td> <td class="number">{rounded_up(PROMISE.epsilon)}</td>'
    assert f"<td>partial dependence</td>{priced}" in costs
    assert "what was paid for before" not in report().to_html()


def test_the_bill_of_another_kind_of_account_is_refused() -> None:
    ledger = open_ledger("memory")
    ledger.open_account("a", Budget(1.0, 1e-6), "replace-one")
    with pytest.raises(InvalidInput, match="give the bill of the account that paid"):
        report().to_html(bill=ledger.statement("a").bill())
