"""Every explainer, for everything that a conversation promises: one row of the table is one explainer."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrail as vt
from explainer_table import POINTS, SCHEMA, TABLE, Row, model, outputs, private, rows
from vitrail.accounting import Cost
from vitrail.guarantee import question_mu
from vitrail.vault import PublicRows

BAD_PRICES = [{"epsilon": -1.0}, {"epsilon": float("nan")}, {}, {"epsilon": 1.0, "mu": 1.0}, {"mu": 0.0}]
EVERY = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)


def explained(row: Row, data: vt.PrivateData, **price: Any) -> Any:
    explainer, price = row.make(data, model()), price or {"epsilon": row.epsilon}
    return explainer(**price) if row.points is None else explainer(row.points, **price)


def conversation(row: Row, data: vt.PrivateData) -> Any:
    explainer = row.make(data, model())
    return explainer.conversation() if row.points is None else explainer.conversation(row.points)


def entries(data: vt.PrivateData) -> int:
    return len(data.budget.entries)


@EVERY
def test_the_cost_is_the_price(row: Row) -> None:
    data = private()
    result = explained(row, data)
    price = Cost.of_mu(question_mu(row.epsilon, None, data.delta))
    assert data.budget.spent == result.cost
    assert result.cost <= price
    # Prices are split into whole trillionths of mu squared; a question may leave the last few of its own unused.
    assert result.cost.pico_mu_squared > (1 - 1e-6) * price.pico_mu_squared - 10 or row.questions is None
    assert result.guarantee.epsilon <= row.epsilon * (1 + 1e-9)
    assert result.guarantee.neighbours == data.neighbours


@EVERY
def test_the_result_is_finite_and_says_how_good_it_is(row: Row) -> None:
    result = explained(row, private())
    frame = result.frame()
    assert isinstance(frame, dict)
    assert len({len(column) for column in frame.values()}) == 1
    for column in frame.values():
        if np.asarray(column).dtype.kind == "f":
            assert not np.isinf(np.asarray(column)).any()
    if row.bands:
        assert 0 < result.half_width < np.inf


@EVERY
def test_a_quote_is_free_and_shows_the_same_kind_of_result(row: Row) -> None:
    data = private({name: [] for name in SCHEMA})
    before = entries(data)
    explainer = row.make(data, model())
    quote = data.quote(explainer, epsilon=row.epsilon)
    assert entries(data) == before
    assert quote.fits
    assert not data.quote(explainer, epsilon=19_000.0).fits
    price = Cost.of_mu(question_mu(row.epsilon, None, data.delta))
    assert quote.price.cost == price
    if row.bands:
        real = explained(row, private())
        assert type(real) is type(quote.result)
        assert 1 / 3 < quote.half_width / real.half_width < 3


@EVERY
def test_an_accuracy_has_a_price(row: Row) -> None:
    if not row.bands:
        pytest.skip("this explainer has no bands")
    data = private({name: [] for name in SCHEMA})
    explainer = row.make(data, model())
    wanted = 1.3 * data.quote(explainer, epsilon=row.epsilon).half_width
    quote = data.quote(explainer, half_width=wanted)
    assert quote.half_width <= wanted
    assert quote.epsilon < row.epsilon
    assert data.budget.spent == Cost()


@EVERY
def test_asking_again_is_free(row: Row) -> None:
    data = private()
    first = explained(row, data)
    spent = data.budget.spent
    again = explained(row, data)
    assert data.budget.spent == spent
    assert_same(first, again)


@EVERY
def test_a_price_that_does_not_fit_is_refused_whole(row: Row) -> None:
    data = private(epsilon=0.9 * row.epsilon)
    with pytest.raises(vt.errors.BudgetExceeded, match="Nothing was charged"):
        explained(row, data)
    assert data.budget.spent == Cost()
    assert all(entry.kind != "charged" for entry in data.budget.entries)


@EVERY
@pytest.mark.parametrize(
    "price", [{"epsilon": -1.0}, {"epsilon": float("nan")}, {}, {"epsilon": 1.0, "mu": 1.0}, {"mu": 0.0}]
)
def test_a_bad_price_is_refused_before_any_charge(row: Row, price: dict[str, float]) -> None:
    data = private()
    explainer = row.make(data, model())
    with pytest.raises(vt.errors.VitrailError):
        explainer(**price) if row.points is None else explainer(row.points, **price)
    assert data.budget.spent == Cost()


@EVERY
def test_bad_points_are_refused_before_any_charge(row: Row) -> None:
    if row.points is None:
        pytest.skip("this explainer takes no points")
    data = private()
    for bad in ({**POINTS, "sex": ["Male", "Other"]}, {**POINTS, "age": [30, float("nan")]}, {"age": [30]}, {}):
        with pytest.raises(vt.errors.VitrailError):
            row.make(data, model())(bad, epsilon=row.epsilon)
    assert data.budget.spent == Cost()


@EVERY
def test_a_model_that_fails_is_found_before_any_charge(row: Row) -> None:
    data = private()
    gap = vt.Model(lambda x: np.where(x[:, 0] == 1, np.nan, outputs(x)), range=(0, 1), name="gap")
    talk = row.make(data, model()).conversation
    if not (talk() if row.points is None else talk(row.points)).models:
        pytest.skip("this explainer asks no model")
    with pytest.raises(vt.errors.VitrailError):
        explained(dataclasses.replace(row, make=lambda data, _: row.make(data, gap)), data)
    assert data.budget.spent == Cost()


class Killed(BaseException):
    """Stands for a process that ends between two steps."""


@EVERY
def test_a_run_that_broke_off_goes_on_where_it_stopped(row: Row, tmp_path: Path) -> None:
    data = private(ledger=f"sqlite:///{tmp_path / 'whole.db'}")
    explained(row, data)
    charges = [entry for entry in data.budget.entries if entry.kind == "charged"]
    for n in range(1, len(charges) + 1):
        where = f"sqlite:///{tmp_path / f'{n}.db'}"
        broken = private(ledger=where)
        with pytest.raises(Killed):
            run_and_die(row, broken, after=n)
        spent = broken.budget.spent
        assert spent == Cost.of_mu(question_mu(row.epsilon, None, data.delta))  # the whole price is set aside
        resumed = private(ledger=where)
        result = explained(row, resumed)
        assert resumed.budget.spent == result.cost
        assert sum(entry.kind == "charged" for entry in resumed.budget.entries) == len(charges)


def run_and_die(row: Row, data: vt.PrivateData, after: int) -> None:
    """Run the conversation and end it when ``after`` answers were delivered."""
    talk = conversation(row, data)
    delivered = 0

    def dying(terms: Any) -> Any:
        nonlocal delivered
        recipe, release = talk.recipe(terms), None
        while True:
            try:
                ask = recipe.send(release)
            except StopIteration as stop:
                return stop.value
            release = yield ask
            delivered += terms.public_rows > 1000  # not in the rehearsal
            if delivered == after:
                raise Killed

    dataclasses.replace(talk, recipe=dying, rehearsal=talk.rehearsal or talk).explain(epsilon=row.epsilon)


@EVERY
def test_the_whole_conversation_runs_on_an_auditors_rows(row: Row) -> None:
    data = private({name: [] for name in SCHEMA})
    public = PublicRows(rows(400), SCHEMA, 400, "rich", block_rows=256)
    result, releases = conversation(row, data).on(public, mu=1.0)
    assert releases
    assert sum((release.cost for release in releases), Cost()) <= Cost.of_mu(1.0)
    assert result.frame()
    assert data.budget.spent == Cost()


@EVERY
def test_a_saved_result_is_the_same(row: Row, tmp_path: Path) -> None:
    result = explained(row, private())
    result.save(tmp_path / "result.vitrail")
    assert_same(type(result).load(tmp_path / "result.vitrail"), result)


@EVERY
def test_every_result_has_a_picture_and_a_page(row: Row) -> None:
    result = explained(row, private())
    assert result.plot().get_axes()
    assert "<html" in result.to_html()
    assert result._repr_html_()


def assert_same(one: Any, other: Any) -> None:
    left, right = one.frame(), other.frame()
    assert list(left) == list(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])
    assert one.cost == other.cost
    assert one.guarantee == other.guarantee
