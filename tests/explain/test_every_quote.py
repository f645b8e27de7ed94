"""Every explainer's quote: free, about the result that would be paid for, and the other way round."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import vitrail as vt
from every_explainer import EVERY, explained
from explainer_table import SCHEMA, TABLE, Row, model, private
from vitrail.accounting import Cost
from vitrail.errors import InvalidInput
from vitrail.explain import quoted, recipe


def asked(row: Row) -> tuple[vt.PrivateData, Any]:
    """Data without rows, and what the explainer's price would buy there: once for the tests that look at it."""
    return _asked(row.name)


@functools.cache
def _asked(name: str) -> tuple[vt.PrivateData, Any]:
    row, data = next(row for row in TABLE if row.name == name), private({name: [] for name in SCHEMA})
    return data, data.quote(row.make(data, model()), epsilon=row.epsilon)


def hurry(monkeypatch: pytest.MonkeyPatch, rows: int = 100) -> None:
    """Few stand-in rows and one draw, where it does not matter what a quote shows."""
    monkeypatch.setattr(quoted, "STAND_IN_ROWS", rows)
    monkeypatch.setattr(recipe, "QUOTE_DRAWS", 1)


@EVERY
def test_a_quote_is_free_and_shows_the_same_kind_of_result(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    data, quote = asked(row)
    explainer = row.make(data, model())
    assert len(data.budget.entries) == len(private({name: [] for name in SCHEMA}).budget.entries)
    assert quote.fits
    price = row.price(data.delta)
    assert quote.price.cost == price
    if row.bands:
        real = explained(row, private())
        if row.points is not None:  # bands of the same points; without any, a quote is about a point of its own
            quote = explainer.quote(row.points, epsilon=row.epsilon)
        assert type(real) is type(quote.result)
        assert 1 / row.quote_within < quote.half_width / real.half_width < row.quote_within
    hurry(monkeypatch)
    assert not data.quote(explainer, epsilon=19_000.0).fits


@EVERY
def test_a_quote_says_the_verdict_to_expect(row: Row) -> None:
    _, quote = asked(row)
    known = row.bands
    assert (quote.verdict is not None) == known
    assert quote.to_json()["verdict"] == (quote.verdict.value if known else None)
    assert ("Verdict to expect" in str(quote)) == known
    if known:
        assert f"{quote.verdict}, an estimate from rows drawn from the schema" in str(quote)


SEARCHED = ("marginals", "shapley", "permutation importance", "local statistics", "global report")


@pytest.mark.parametrize("row", [row for row in TABLE if row.name in SEARCHED], ids=lambda row: row.name)
def test_a_clear_verdict_has_a_price(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, rows=400)  # a search over many quotes
    data = private({name: [] for name in SCHEMA})
    explainer = row.make(data, model())
    quote = explainer.quote(verdict="clear")
    assert quote.verdict is vt.Verdict.CLEAR
    # Near its price a verdict turns more than once where bands move with the noise itself, so further below.
    assert explainer.quote(mu=quote.price.guarantee.mu / quoted.PRICE_STEP).verdict is not vt.Verdict.CLEAR
    assert explainer.quote(verdict="weak").epsilon <= quote.epsilon
    assert data.budget.spent == Cost()


def test_a_verdict_that_no_price_brings_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    data = private({name: [] for name in SCHEMA})
    flat = vt.PartialDependence(data, vt.Model(lambda x: 0.5 + 0 * x[:, 0], range=(0, 1), name="flat"), estimate="plain")
    with pytest.raises(InvalidInput, match="makes the verdict clear"):
        flat.quote(verdict="clear")
    for wrong, message in (
        ({"verdict": "mostly noise"}, "verdict is"),
        ({"verdict": "clear", "epsilon": 1.0}, "one of them only"),
        ({"verdict": "clear", "half_width": 0.1}, "one of them only"),
    ):
        with pytest.raises(InvalidInput, match=message):
            flat.quote(**wrong)
    rows = next(row for row in TABLE if row.name == "private rows").make(data, model())
    with pytest.raises(InvalidInput, match="no bands, so no verdict"):
        rows.quote(verdict="clear")


@EVERY
def test_an_accuracy_has_a_price(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    if not row.bands:
        pytest.skip("this explainer has no bands")
    # The search is tested here, over many quotes: few stand-in rows and one draw each. The test above has them all.
    hurry(monkeypatch, rows=200)
    data = private({name: [] for name in SCHEMA})
    explainer = row.make(data, model())
    wanted = 1.3 * data.quote(explainer, epsilon=row.epsilon).half_width
    quote = data.quote(explainer, half_width=wanted)
    assert quote.half_width <= wanted
    assert quote.epsilon < row.epsilon * (row.quote_within / 3)  # widths that vary by chance are not quite monotone
    assert data.budget.spent == Cost()


RANDOM = ("any curve", "any ranking", "any ranking of the first", "local enhanced")
"""Groups are dealt and candidates chosen at random, on nobody's rows too."""


@pytest.mark.parametrize("row", [row for row in TABLE if row.name not in RANDOM], ids=lambda row: row.name)
def test_a_quote_is_the_same_again(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    data = private({name: [] for name in SCHEMA})
    explainer = row.make(data, model())
    first, second = (data.quote(explainer, epsilon=row.epsilon).half_width for _ in range(2))
    assert first == second
