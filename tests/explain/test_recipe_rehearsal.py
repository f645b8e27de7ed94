"""Conversations (explain/recipe.py) with the stand-in, with an auditor's rows, and with models that fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vitrail as vt
from recipe_setup import (
    MU,
    PRICE,
    SCHEMA,
    Answers,
    Killed,
    Small,
    Steps,
    die,
    ending_after,
    is_real,
    kinds,
    private,
    talk,
)
from vitrail.accounting import Cost, epsilon_of, rounded_up
from vitrail.errors import InvalidInput, ModelError
from vitrail.explain.recipe import Ask, Recipe, Terms, cost_of
from vitrail.vault import PublicRows


def outputs(features: Any) -> Any:
    return features[:, 0]


def failing(features: Any) -> Any:
    if (features[:, 0] == 1).any():
        raise KeyError("no such age")
    return outputs(features)


def of_model(model: vt.Model, ask_after: bool = False) -> Callable[[Terms], Recipe[Answers]]:
    """A recipe that asks a model about rows, and perhaps about public ones after its first charge."""

    def recipe(terms: Terms) -> Recipe[Answers]:
        first = yield Ask(vt.BoundedSum(lambda block: block.predictions(model)[:, None], 1, 1.0), 0.5)
        if ask_after:
            model.predict_points(terms.schema, terms.schema.probe_rows(5))
        second = yield Ask(Steps().question(1.0), 0.5)
        return Answers((first, second), cost_of([first, second]), terms.promise(first, second))

    return recipe


@pytest.mark.parametrize("how", ["raises", "no number", "out of range"])
def test_a_failing_model_is_found_before_any_charge(how: str) -> None:
    functions = {
        "raises": failing,
        "no number": lambda x: np.where(x[:, 0] == 1, np.nan, outputs(x)),
        "out of range": lambda x: 7 * outputs(x),
    }
    data, model = private(), vt.Model(functions[how], range=(0, 1), name="fragile")
    with pytest.raises(ModelError, match="fragile"):
        talk(data, of_model(model), models=(model,)).explain(mu=MU)
    assert kinds(data) == ["opened"]


@pytest.mark.parametrize("how", ["raises", "raises in a quote"])
def test_a_model_that_fails_where_it_was_not_tried_is_told_in_a_sentence(how: str) -> None:
    """On rows that a recipe makes for itself, in the rehearsal: whatever the model raises becomes a sentence about it."""
    data, fragile = private(), vt.Model(lambda x: gap(x), range=(0, 1), name="fragile")

    def gap(features: Any) -> Any:
        if (features[:, 0] == 0.625).any():
            raise KeyError("no such age")
        return outputs(features)

    def recipe(terms: Terms) -> Recipe[Answers]:
        release = yield Ask(Steps().question(1.0), 1.0)
        fragile.predict_points(terms.schema, np.array([[62.5, 0.0]]))
        return Answers((release,), release.cost, terms.promise(release))

    conversation = talk(data, recipe, models=(fragile,))
    ask = conversation.explain if how == "raises" else conversation.quote
    with pytest.raises(ModelError, match="fragile fails on public rows: KeyError"):
        ask(mu=MU)
    assert kinds(data) == ["opened"]


def test_post_processing_that_fails_is_found_before_any_charge() -> None:
    data = private()

    def recipe(terms: Terms) -> Recipe[None]:
        release = yield Ask(Steps().question(1.0), 1.0)
        raise InvalidInput(f"nothing can be made of {len(release.value)} numbers")

    with pytest.raises(InvalidInput, match="nothing can be made of 3 numbers"):
        talk(data, recipe).explain(mu=MU)
    assert kinds(data) == ["opened"]


def test_a_mistake_of_ours_is_not_blamed_on_the_model_and_says_what_was_charged() -> None:
    data, model = private(), vt.Model(outputs, range=(0, 1), name="innocent")

    def recipe(terms: Terms) -> Recipe[None]:
        yield Ask(Steps().question(1.0), 1.0)
        model.predict_points(terms.schema, terms.schema.probe_rows(5))
        if is_real(terms):
            raise ZeroDivisionError("ours")

    with pytest.raises(ZeroDivisionError, match="ours") as told:
        talk(data, recipe, models=(model,)).explain(mu=MU)
    (note,) = told.value.__notes__
    assert "was charged before that, and stays charged" in note


def test_the_rehearsal_may_be_about_less() -> None:
    data, seen = private(), []

    def recipe(points: int) -> Callable[[Terms], Recipe[int]]:
        def asks(terms: Terms) -> Recipe[int]:
            seen.append((points, is_real(terms)))
            yield Ask(Steps().question(1.0), 1.0)
            return points

        return asks

    assert talk(data, recipe(1000), rehearsal=recipe(2)).explain(mu=MU) == 1000
    assert seen == [(2, False), (1000, True)]


def test_what_was_begun_is_not_rehearsed_again() -> None:
    data, rehearsed = private(), []

    def recipe(terms: Terms) -> Recipe[Answers]:
        rehearsed.append(not is_real(terms))
        return (yield from Steps()(terms))

    for _ in range(2):
        talk(data, recipe).explain(mu=MU)
    assert rehearsed == [True, False, False]


@pytest.mark.parametrize("identity", [{"kind": "model"}, None])
def test_a_model_that_fails_later_says_what_was_charged(identity: Any) -> None:
    data, calls = private(), []

    def moody(features: Any) -> Any:
        if calls:
            raise ValueError("not today")
        return outputs(features)

    model = vt.Model(moody, range=(0, 1), name="moody")

    def recipe(terms: Terms) -> Recipe[Answers]:
        first = yield Ask(Steps().question(1.0), 0.5)
        if is_real(terms):
            calls.append(1)
        model.predict_points(terms.schema, terms.schema.probe_rows(5))
        second = yield Ask(Steps().question(1.0), 0.5)
        return Answers((first, second), cost_of([first, second]), terms.promise(first, second))

    with pytest.raises(ModelError, match="moody") as told:
        talk(data, recipe, models=(model,), identity=identity).explain(mu=MU)
    (first,) = (entry.cost for entry in data.budget.entries if entry.kind == "charged")
    assert f"Epsilon {rounded_up(epsilon_of(first.mu, data.delta))} was charged before that, and stays charged" in str(
        told.value
    )
    assert ("asking again at the same price goes on from there" in str(told.value)) == (identity is not None)
    assert data.budget.spent == (first if identity is None else PRICE)
    if identity is not None:
        calls.clear()
        mended = vt.Model(outputs, range=(0, 1), name="mended")
        result = talk(data, of_steps(mended), models=(mended,), identity=identity).explain(mu=MU)
        assert [release.replayed for release in result.releases] == [True, False]
        assert data.budget.spent == result.cost <= PRICE


def of_steps(model: vt.Model) -> Callable[[Terms], Recipe[Answers]]:
    def recipe(terms: Terms) -> Recipe[Answers]:
        first = yield Ask(Steps().question(1.0), 0.5)
        model.predict_points(terms.schema, terms.schema.probe_rows(5))
        second = yield Ask(Steps().question(1.0), 0.5)
        return Answers((first, second), cost_of([first, second]), terms.promise(first, second))

    return recipe


@pytest.mark.parametrize("what", ["reserve", "charge", "store", "finish"])
def test_a_recipe_without_a_name_frees_its_rest_when_it_fails(what: str) -> None:
    """It cannot be resumed, so nobody could ever book it."""
    data = private()
    with ending_after(what, 1, die), pytest.raises(Killed):
        talk(data, identity=None).explain(mu=MU)
    booked = sum((entry.cost for entry in data.budget.entries if entry.kind == "charged"), Cost())
    if what == "reserve":  # it had no receipt yet: the owner can see it and free it
        (line,) = data.budget.reservations
        assert (line.recipe, line.booked) == (None, Cost())
        return
    assert data.budget.spent == booked
    assert data.budget.reservations == ()


def test_a_quote_is_free_and_exact_about_the_price() -> None:
    data = private()
    quote = data.quote(Small(data), mu=MU)
    assert kinds(data) == ["opened"]
    assert quote.fits
    assert quote.price.cost == PRICE
    assert [one.cost for one in quote.result.releases] == [one.cost for one in talk(data).explain(mu=MU).releases]
    assert not data.quote(Small(data), mu=MU).fits
    with pytest.raises(InvalidInput, match="one of them only"):
        data.quote(Small(data), mu=MU, half_width=0.1)


def test_on_an_auditors_rows_there_is_no_ledger() -> None:
    data = private()
    rows = PublicRows({"age": [50.0], "smoker": ["yes"]}, SCHEMA, 1)
    result, releases = talk(data).on(rows, mu=MU)
    assert list(result.releases) == list(releases)
    assert cost_of(releases) <= PRICE
    assert kinds(data) == ["opened"]


@pytest.mark.parametrize("price", [{}, {"epsilon": 1.0, "mu": 1.0}, {"mu": -1.0}, {"mu": math.nan}, {"epsilon": 0.0}])
def test_a_bad_price_is_refused(price: dict[str, float]) -> None:
    data = private()
    with pytest.raises(InvalidInput):
        talk(data).explain(**price)
    assert kinds(data) == ["opened"]
