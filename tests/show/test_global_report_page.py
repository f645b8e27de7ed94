"""The page of a global report: order, scales, many levels, nasty names."""

import re

import pytest

from vitrail.accounting import rounded_up
from vitrail.errors import InvalidInput
from vitrail.guarantee import Budget, Guarantee
from vitrail.ledger import open_ledger
from vitrail.show import CurveShape, Histogram, RankingShape, bill_of
from vitrail.show.global_report import MOST_LEVELS, GlobalShape, columns_part, cost_section, global_report, most_common

NASTY = '"><script>alert(1)</script>'
PROMISE = Guarantee.of_mu(0.2, 1e-6)


def flat(title: str, height: float) -> CurveShape:
    return CurveShape(title, (0.0, 1.0), (0.0, height), (-0.01, height - 0.01), (0.01, height + 0.01))


def shape(**changed: object) -> GlobalShape:
    fields: dict[str, object] = {
        "dataset": NASTY,
        "model": NASTY,
        "pdp": {"small": flat("small", 0.001), NASTY: flat(NASTY, 0.8)},
        "ale": None,
        "importance": None,
        "histograms": (Histogram(NASTY, (NASTY, "b"), None, (10.0, 20.0), 2.0),),
        "total": 30.0,
        "total_sigma": 2.0,
        "shares": {"marginals": 0.12, "pdp": 0.88},
        "mu": 0.2,
        "notes": (NASTY,),
    }
    return GlobalShape(**{**fields, **changed})  # type: ignore[arg-type]


def test_names_are_escaped_and_nothing_is_loaded() -> None:
    page = global_report(shape(), PROMISE).to_html()
    assert "<script" not in page
    assert not re.search(r"url\(|@import|https?://", re.sub(r"data:image[^\"]*", "", page))


def test_without_importance_the_curve_that_moves_most_comes_first() -> None:
    assert shape().columns() == (NASTY, "small")


def test_with_importance_its_order_holds_and_noise_is_named() -> None:
    ranking = RankingShape("importance", ("small", NASTY), (0.2, 0.01), (0.1, -0.1), (0.3, 0.12), (0.9,), "loss")
    found = shape(importance=ranking)
    assert found.columns() == ("small", NASTY)
    first, second = columns_part(found).cards
    assert first.text == "Place 1 of 2: loss 0.2 ± 0.1 (not calibrated)."
    assert second.text.endswith("which may be noise alone.")


def test_a_curve_that_does_nothing_does_not_fill_its_picture() -> None:
    large, small = columns_part(shape()).cards
    spans = []
    for card in (large, small):
        low, high = card.pictures[0].figure.axes[0].get_ylim()
        spans.append(high - low)
    assert spans[1] == pytest.approx(0.12 * spans[0])


def test_of_many_levels_the_most_common_are_drawn_and_all_are_listed() -> None:
    levels = tuple(f"level {place}" for place in range(40))
    shares = tuple((place % 20) / 380 for place in range(40))
    curve = CurveShape("land", levels, tuple(float(place) for place in range(40)), shares=shares)
    shown = most_common(curve, MOST_LEVELS)
    assert len(shown.x) == MOST_LEVELS
    assert list(shown.y) == sorted(shown.y)
    assert {int(name.split()[1]) % 20 for name in shown.x} == set(range(12, 20))
    (card,) = columns_part(shape(pdp={"land": curve})).cards
    assert card.pictures[0].title == "Partial dependence, the 16 most common of 40 levels"
    assert len(card.pictures[0].numbers.rows) == 40


def test_what_was_paid_before_is_not_priced_again() -> None:
    (table,) = cost_section(shape(shares={"marginals": 0.0, "pdp": 1.0}), PROMISE).tables
    assert table.rows[0] == ("histograms of all columns", "paid before", "")
    assert table.rows[1] == ("partial dependence", "100.0 %", rounded_up(PROMISE.epsilon))


def test_the_bill_of_another_kind_of_account_is_refused() -> None:
    ledger = open_ledger("memory")
    ledger.open_account("a", Budget(1.0, 1e-6), "replace-one")
    with pytest.raises(InvalidInput, match="give the bill of the account that paid"):
        global_report(shape(), PROMISE, bill=bill_of(ledger.statement("a")))
