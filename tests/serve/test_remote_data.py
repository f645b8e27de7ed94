"""Data of a service has the face of local data: the same facts, the same quotes, the same results to the last bit."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import vitrail as vt
from every_explainer import assert_same
from explainer_table import ONE_POINT, POINTS, TABLE, Row
from serve_client_setup import Place, listening_house
from serve_setup import write_house
from vitrail.errors import InvalidInput
from vitrail.explain.elsewhere import elsewhere
from vitrail.results.synopsis import Synopsis
from vitrail.serve.remote_data import RemoteData
from vitrail.solve.linear.labelled_rows import RowsExplainer

NOT_TAKEN = {
    "any curve",
    "any ranking",
    "any ranking of the first",
    "local adaptive",
    "local enhanced",
    "partial dependence with Laplace noise",
    "accumulated effects with Laplace noise",
}
"""Rows of the table that take a function, a history of somebody's own, or a noise that the service chooses itself."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with listening_house(write_house(tmp_path_factory.mktemp("house"), epsilon=90.0)) as made:
        yield made


@pytest.fixture(scope="module")
def house(place: Place) -> vt.RemoteHouse:
    return place.connect()


@pytest.fixture(scope="module")
def data(house: vt.RemoteHouse) -> RemoteData:
    return house["staff"]


@pytest.fixture(scope="module")
def model(house: vt.RemoteHouse) -> vt.Model:
    return house.model("score")


def asked(row: Row, data: vt.PrivateData, model: vt.Model) -> tuple[Any, object]:
    """The explainer of a row of the table, without a key: models of a service are files."""
    local = vt.LocalLinear(data, model)
    wrapped: dict[str, Any] = {
        "local classes": lambda: vt.LocalClasses(data, [model]),
        "local moments": lambda: local.fitting("moments"),
        "local cells": lambda: local.fitting("cells"),
        "local cells by sex": lambda: local.fitting(vt.linear.Cells(columns=("sex",))),
        "local rows": lambda: local.fitting(vt.linear.Rows(n_sampled=500)),
    }
    if row.name in wrapped:
        return wrapped[row.name](), ONE_POINT if row.name == "local classes" else None
    made = row.make(data, model)
    return type(made)(**{name: value for name, value in made.given().items() if name != "key"}), row.points


def bought(row: Row, data: vt.PrivateData, model: vt.Model) -> Any:
    explainer, points = asked(row, data, model)
    result = explainer(epsilon=row.epsilon) if points is None else explainer(points, epsilon=row.epsilon)
    if isinstance(result, RowsExplainer | Synopsis):
        return result(POINTS)
    return next(iter(result.values())) if row.name == "local classes" else result


@pytest.mark.parametrize("row", [row for row in TABLE if row.name not in NOT_TAKEN], ids=lambda row: row.name)
def test_a_service_answers_as_local_data_does(row: Row, place: Place, data: RemoteData, model: vt.Model) -> None:
    """What the service answered is asked again of the same ledger, without it: a replay, so nothing may differ."""
    remote = bought(row, data, model)
    paid = data.budget.spent_epsilon
    local = bought(row, place.rows_of(), model)
    assert type(remote) is type(local)
    assert_same(remote, local)
    assert data.budget.spent_epsilon == paid


@pytest.mark.parametrize("row", [row for row in TABLE if row.name in NOT_TAKEN], ids=lambda row: row.name)
def test_code_and_histories_are_not_sent(row: Row, data: RemoteData, model: vt.Model) -> None:
    explainer, points = asked(row, data, model)
    before = data.budget.spent_epsilon
    with pytest.raises(InvalidInput, match=r"takes no code|which no service offers|takes Laplace noise by itself"):
        explainer(epsilon=1.0) if points is None else explainer(points, epsilon=1.0)
    assert data.budget.spent_epsilon == before


def test_functions_that_buy_work_as_they_are(place: Place, data: RemoteData, model: vt.Model) -> None:
    local = place.rows_of()
    assert vt.marginals(data, bins=7, epsilon=0.5) == vt.marginals(local, bins=7, epsilon=0.5)
    assert vt.private_rows(data, mu=0.2) == vt.private_rows(local, mu=0.2)
    pane = vt.release(data, model, parts=["rows", "pdp"], epsilon=1.0)
    assert pane.parts == ("rows", "pdp")
    assert pane.local(ONE_POINT).columns == ("age", "hours", "sex")  # the model came along
    fitted = vt.Counterfactual(data, model, rows=False).fit(epsilon=1.0)
    assert fitted({"age": 30, "hours": 10.0, "sex": "Male"}).messages
    assert vt.LocalLinear(data, model).fit(epsilon=1.0)(ONE_POINT).method == "synopsis"


def test_histograms_that_were_bought_are_named_by_their_content(place: Place, data: RemoteData, model: vt.Model) -> None:
    histograms = vt.marginals(data, epsilon=0.4)
    with_them = vt.PartialDependence(data, model, marginals=histograms)(epsilon=0.4)
    assert_same(with_them, vt.PartialDependence(place.rows_of(), model, marginals=histograms)(epsilon=0.4))
    strangers = vt.marginals(place.connect("bob")["staff"], epsilon=0.3)
    with pytest.raises(Exception, match="that you bought here"):
        vt.PartialDependence(data, model, marginals=strangers)(epsilon=0.4)


# --- quotes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [{"epsilon": 0.5}, {"mu": 0.2}, {"half_width": 0.2}, {"verdict": "weak"}], ids=str)
def test_quotes_are_those_of_local_data(goal: dict[str, Any], place: Place, data: RemoteData, model: vt.Model) -> None:
    remote = data.quote(vt.PartialDependence(data, model, columns=["age"]), **goal)
    local = vt.PartialDependence(place.rows_of(), model, columns=["age"]).quote(**goal)
    assert remote.price == local.price
    assert (remote.epsilon, remote.fits, remote.half_width, remote.verdict) == (
        local.epsilon,
        local.fits,
        local.half_width,
        local.verdict,
    )
    assert (str(remote), remote.stands_on, remote.half_widths) == (str(local), local.stands_on, local.half_widths)
    assert remote._repr_html_() == local._repr_html_()
    assert remote.to_json()["price"] == local.to_json()["price"]


def test_quotes_of_points_and_of_parts(place: Place, data: RemoteData, model: vt.Model) -> None:
    local = place.rows_of()
    assert str(vt.Shapley(data, model).quote(epsilon=0.5)) == str(vt.Shapley(local, model).quote(epsilon=0.5))
    assert str(vt.Shapley(data, model).quote(POINTS, mu=0.1)) == str(vt.Shapley(local, model).quote(POINTS, mu=0.1))
    report = data.quote(vt.GlobalReport(data, model), epsilon=0.5)
    told = vt.GlobalReport(local, model).quote(epsilon=0.5)
    assert {part: width for part, (width, _) in report.half_widths.items()} == {
        part: width for part, (width, _) in told.half_widths.items()
    }
    tag = data.price_tag(report.price.cost)
    assert (tag.cost, tag.guarantee, tag.fits) == (report.price.cost, report.price.guarantee, report.price.fits)


def test_a_quote_stands_on_what_was_bought_at_the_service(place: Place) -> None:
    data = place.connect("owner")["staff"]
    model = vt.Model(place.service.house.models["score"].content(), inputs="features")
    assert data.quote(vt.PartialDependence(data, model), epsilon=0.5).stands_on == "the schema"
    vt.marginals(data, epsilon=0.6)
    assert data.quote(vt.PartialDependence(data, model), epsilon=0.5).stands_on == "histograms bought before"


# --- facts and the bill --------------------------------------------------------------------------------------------------

FACTS = ["name", "schema", "feature_schema", "target", "n_rows_public", "neighbours", "rows_per_person", "person"]
FACTS += ["delta", "analyst", "part"]


def test_the_public_facts_are_those_of_local_data(place: Place, data: RemoteData) -> None:
    local = place.rows_of()
    assert {name: getattr(data, name) for name in FACTS} == {name: getattr(local, name) for name in FACTS}
    assert data.models == ("score",)
    assert repr(data) == f"RemoteData('staff', 4 columns, declared rows 400, at {place.address})"
    assert data._repr_html_() == local.schema._repr_html_()


def test_nothing_of_local_data_is_forgotten() -> None:
    """A method that PrivateData gets, and this class does not, would look for rows that are not there."""
    public = {name for name in dir(vt.PrivateData) if not name.startswith("_")}
    assert public >= {*FACTS, "ask", "quote", "budget", "cap"}
    assert {name for name in public if name not in vars(RemoteData)} == set()


STEPS = ["ask", "train", "parts", "for_analyst", "as_it_was", "cap"]
STEPS += ["keep", "kept", "has_begun", "reserve", "ask_reserved", "finish"]


@pytest.mark.parametrize("method", STEPS)
def test_what_a_service_does_not_do_is_said(method: str, data: RemoteData) -> None:
    with pytest.raises(InvalidInput, match=rf"^staff\.{method}\(\) .+(;|\.|:) "):
        getattr(data, method)("anything", epsilon=1.0)


def test_every_attribute_is_a_fact_or_asks_or_is_refused() -> None:
    public = {name for name in dir(vt.PrivateData) if not name.startswith("_")}
    assert public - {*FACTS, *STEPS} == {"budget", "quote", "price_tag"}


def test_a_question_of_ones_own_has_no_quote_and_no_conversation(data: RemoteData, model: vt.Model) -> None:
    with pytest.raises(InvalidInput, match="takes no code"):
        data.quote(vt.BoundedSum(lambda block: block.features, 1, 1.0), epsilon=0.5)
    assert elsewhere(vt.Shapley(data, model)) is not None
    with pytest.raises(InvalidInput, match="is a step that a service takes itself"):
        vt.Shapley(data, model).conversation(ONE_POINT).explain(epsilon=0.1)


def test_the_statement_says_what_local_data_says(place: Place, data: RemoteData) -> None:
    vt.marginals(data, bins=3, epsilon=0.2)
    told, local = data.budget, place.rows_of().budget
    for name in ("account", "neighbours", "delta", "spent_epsilon", "remaining_epsilon", "n_questions"):
        assert getattr(told, name) == getattr(local, name)
    assert told.budget == local.budget
    assert [line.analyst for line in told.analysts] == ["alice"]
    assert told.of_analyst("alice").spent_epsilon == local.of_analyst("alice").spent_epsilon
    with pytest.raises(vt.errors.LedgerError, match="'bob' has no line"):
        told.of_analyst("bob")
    assert json.loads(json.dumps(told.to_json()))["account"] == "staff"


def test_the_bill_has_the_lines_of_whoever_asks(place: Place, data: RemoteData) -> None:
    vt.marginals(data, bins=4, epsilon=0.2)
    vt.marginals(place.connect("bob")["staff"], bins=5, epsilon=0.2)
    own, whole = data.budget.bill(), place.rows_of().budget.bill()
    assert [line.seq for line in own.lines] == [line.seq for line in whole.lines if line.analyst == "alice"]
    assert own.spent_epsilon == whole.spent_epsilon
    assert "other people's, or older" in str(own)
    assert "not among these lines" in str(data.budget)
    assert "marginals of 4 columns" in data.budget._repr_html_()
    assert data.budget.bill(newest=0).lines == ()
    every = place.connect("owner")["staff"].budget
    assert [line.seq for line in every.bill().lines] == [line.seq for line in whole.lines]
    assert every.bill().omission == ""
    assert {line.analyst for line in every.analysts} >= {"alice", "bob"}


def test_a_price_is_checked_before_anything_is_sent(data: RemoteData, model: vt.Model) -> None:
    for price in ({}, {"epsilon": 1.0, "mu": 1.0}, {"epsilon": -1.0}, {"mu": np.nan}):
        with pytest.raises(InvalidInput, match=r"price|epsilon of a question|mu of a question"):
            vt.Shapley(data, model)(ONE_POINT, **price)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_nobody_copies_the_token_along(take: Any, house: vt.RemoteHouse, data: RemoteData) -> None:
    for held in (data, house, house.transport):
        with pytest.raises(InvalidInput, match="token along"):
            take(held)
