"""The rules of a conversation (explain/recipe.py), attacked with small recipes: prices, and asking again.

Rehearsals and failing models are in test_recipe_rehearsal.py; what happens when a run breaks off, races another or is asked
by others is in test_recipe_crashes.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from recipe_setup import (
    MU,
    N_ROWS,
    PRICE,
    SCHEMA,
    SHARES,
    Answers,
    Killed,
    Steps,
    check_ledger,
    die,
    ending_after,
    is_real,
    kinds,
    private,
    talk,
)
from vitrail.accounting import Cost, epsilon_of
from vitrail.errors import BudgetExceeded, InvalidInput, LedgerError
from vitrail.explain.marginals import marginals_question
from vitrail.explain.recipe import Ask, Recipe, Split, Terms, cost_of, scaled
from vitrail.explain.split import mu_of_units
from vitrail.vault.public_facts import PublicFacts

# --- prices ----------------------------------------------------------------------------------------------------------


@given(units=st.integers(1, 10**16), parts=st.lists(st.integers(1, 50), min_size=1, max_size=12), spare=st.integers(0, 50))
def test_whole_units_add_up_exactly(units: int, parts: list[int], spare: int) -> None:
    split, total = Split(units), sum(parts) + spare
    if units < 100 * total:
        units = 100 * total
        split = Split(units)
    given_out = [split.next(part / total) for part in parts]
    assert all(one >= 1 for one in given_out)
    if spare == 0:
        assert sum(given_out) == units
    else:
        assert units * sum(parts) / total - 1 - 1e-3 * units <= sum(given_out) <= units
    for part, one in zip(parts, given_out, strict=True):
        assert abs(one - units * part / total) <= 1 + 2e-9 * units


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan, math.inf])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match="the share of a question"):
        Split(1000).next(share)


@pytest.mark.parametrize("shares", [(0.5, 0.6), (1.0, 1e-6), (0.3,) * 4, (1 / 3, 1 / 3, 1 / 3, 1e-8)])
def test_shares_over_one_are_refused(shares: tuple[float, ...]) -> None:
    split = Split(10**12)
    for share in shares[:-1]:
        split.next(share)
    with pytest.raises(InvalidInput, match="add up to"):
        split.next(shares[-1])


def test_a_price_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too small to split"):
        Split(3).next(0.1)
    data = private()
    with pytest.raises(InvalidInput, match="too small"):
        talk(data).explain(mu=1e-7)
    with pytest.raises(InvalidInput, match="too small to split"):
        talk(data).explain(mu=1.5e-6)
    assert kinds(data) == ["opened"]


SETTING = PublicFacts(SCHEMA, None, N_ROWS, "add-remove", 64)


QUESTIONS: dict[str, Callable[[float], Any]] = {
    "bounded sum": lambda bound: vt.BoundedSum(lambda block: block.features, 3, bound),
    "sampled sum": lambda bound: vt.BoundedSum(lambda block: block.features, 3, bound, rate=0.3),
    "gram sum": lambda bound: vt.GramSum(lambda block: block.features, 3, bound, row_norm=math.sqrt(bound)),
    "product sum": lambda bound: vt.ProductSum(lambda block: (block.features,) * 2, (3,), (3,), (bound,)),
    "selection": lambda bound: vt.Select(lambda block: block.features, 3, bound),
    "curve of groups": lambda bound: vt.GroupedSum(lambda block: [0.0], 1, low=0.0, high=bound, groups=5),
    "ranking of groups": lambda bound: vt.GroupedSum(
        lambda block: [0.0] * 3, 3, groups=5, rank_points=[2 * bound, bound, 0]
    ),
    "histograms": lambda bound: marginals_question(SCHEMA),
}


@settings(max_examples=200)
@given(units=st.integers(1, 10**16), bound=st.floats(1e-3, 1e3), kind=st.sampled_from(sorted(QUESTIONS)))
def test_no_question_costs_more_than_its_units(units: int, bound: float, kind: str) -> None:
    cost = QUESTIONS[kind](bound).plan(mu_of_units(units), SETTING).event.cost()
    assert cost <= Cost(units)
    assert cost.pico_mu_squared >= units - 1 - 1e-11 * units  # and nothing to speak of is left


def test_a_recipe_that_asks_for_too_much_is_found_in_the_rehearsal() -> None:
    data = private()
    with pytest.raises(InvalidInput, match="add up to"):
        talk(data, Steps((0.5, 0.6))).explain(mu=MU)
    assert kinds(data) == ["opened"]


@pytest.mark.parametrize("identity", [{"kind": "greedy"}, None])
def test_too_much_on_one_path_is_refused_before_its_charge(identity: Any) -> None:
    """A path that the rehearsal did not take: what was booked stays booked, and the question too many is not."""
    data = private()

    def greedy(terms: Terms) -> Recipe[None]:
        yield Ask(Steps().question(1.0), 0.6)
        yield Ask(Steps().question(1.0), 0.6 if is_real(terms) else 0.4)
        return None

    with pytest.raises(InvalidInput, match="add up to"):
        talk(data, greedy, identity=identity).explain(mu=MU)
    assert kinds(data).count("charged") == 1
    (booked,) = (entry.cost for entry in data.budget.entries if entry.kind == "charged")
    assert booked.pico_mu_squared <= 0.6 * PRICE.pico_mu_squared + 1
    assert data.budget.spent == (PRICE if identity else booked)  # one that can be resumed keeps its reservation


def test_the_price_is_paid_exactly_and_nothing_is_left_over() -> None:
    data = private()
    result = talk(data).explain(mu=MU)
    assert data.budget.spent == result.cost <= PRICE
    assert PRICE.pico_mu_squared - result.cost.pico_mu_squared <= len(SHARES)
    assert result.guarantee.mu == pytest.approx(result.cost.mu, rel=1e-9)
    assert result.guarantee.basis.cost == result.cost
    assert data.budget.reservations == ()
    for release, share in zip(result.releases, SHARES, strict=True):
        assert release.cost.pico_mu_squared == pytest.approx(share * PRICE.pico_mu_squared, abs=2)


def test_epsilon_and_mu_are_the_same_price() -> None:
    by_mu, by_epsilon = private(mu=1.0), private(mu=1.0)
    talk(by_mu).explain(mu=MU)
    talk(by_epsilon).explain(epsilon=epsilon_of(MU, by_epsilon.delta))
    units = [data.budget.spent.pico_mu_squared for data in (by_mu, by_epsilon)]
    assert units[0] == pytest.approx(units[1], rel=1e-6)


def test_nested_recipes_take_their_share_of_the_outer_one() -> None:
    data = private()
    planned: list[float] = []

    def inner(terms: Terms) -> Recipe[Answers]:
        planned.append(terms.mu)
        return (yield from Steps((0.25, 0.75))(terms))

    def middle(terms: Terms) -> Recipe[list[Answers]]:
        first = yield from scaled(inner(terms.scaled(0.5)), 0.5)
        second = yield from scaled(inner(terms.scaled(0.5)), 0.5)
        return [first, second]

    def outer(terms: Terms) -> Recipe[list[Answers]]:
        made = yield from scaled(middle(terms.scaled(0.4)), 0.4)
        return [*made, (yield from scaled(inner(terms.scaled(0.6)), 0.6))]

    results = talk(data, outer).explain(mu=MU)
    paid = [release.cost.pico_mu_squared / PRICE.pico_mu_squared for result in results for release in result.releases]
    assert paid == pytest.approx([0.05, 0.15, 0.05, 0.15, 0.15, 0.45], rel=1e-9)
    # What a recipe plans with is what it gets.
    real = planned[3:]
    assert [result.cost.mu for result in results] == pytest.approx(real, rel=1e-9)
    assert data.budget.spent == sum((result.cost for result in results), Cost()) <= PRICE


def test_a_nested_recipe_cannot_take_more_than_its_share() -> None:
    data = private()

    def outer(terms: Terms) -> Recipe[None]:
        yield from scaled(Steps((1.0, 0.5))(terms.scaled(0.5)), 0.5)
        yield Ask(Steps().question(1.0), 0.5)
        return None

    with pytest.raises(InvalidInput, match="add up to"):
        talk(data, outer).explain(mu=MU)
    assert kinds(data) == ["opened"]


def test_a_given_release_answers_its_ask_and_joins_the_promise() -> None:
    data = private(mu=2.0)

    def recipe_with(marginals: vt.Marginals | None) -> Callable[[Terms], Recipe[Answers]]:
        def recipe(terms: Terms) -> Recipe[Answers]:
            used: list[Any] = [] if marginals is None else [marginals]
            asked: list[vt.Release] = []
            if marginals is None:
                asked.append((yield Ask(marginals_question(terms.schema), 0.4)))
            asked.append((yield Ask(Steps().question(1.0), 0.6)))
            return Answers(tuple(asked), cost_of(asked), terms.promise(*used, *asked))

        return recipe

    bought = vt.marginals(data, mu=1.0)
    before = data.budget.spent
    result = talk(data, recipe_with(bought)).explain(mu=MU)
    assert data.budget.spent == before + result.cost
    assert result.cost.pico_mu_squared == pytest.approx(0.6 * PRICE.pico_mu_squared, rel=1e-6)  # not scaled up
    assert result.guarantee.basis.cost == bought.cost + result.cost
    whole = talk(data, recipe_with(None), identity={"kind": "whole"}).explain(mu=MU)
    assert whole.cost.pico_mu_squared == pytest.approx(PRICE.pico_mu_squared, rel=1e-6)
    assert whole.guarantee.basis.cost == whole.cost


def test_what_a_finished_recipe_did_not_book_is_given_back() -> None:
    data = private()
    result = talk(data, Steps((0.1, 0.2))).explain(mu=MU)
    assert result.cost.pico_mu_squared == pytest.approx(0.3 * PRICE.pico_mu_squared, rel=1e-6)
    assert data.budget.spent == result.cost
    data.ask(Steps().question(1.0), mu=math.sqrt(0.69) * MU)  # it can be spent on something else


# --- asking again ----------------------------------------------------------------------------------------------------


def test_asking_again_is_free_when_the_budget_is_gone() -> None:
    data = private()
    first = talk(data).explain(mu=MU)
    with pytest.raises(BudgetExceeded):
        data.ask(Steps().question(1.0), mu=0.01)
    spent = data.budget.spent
    again = talk(data).explain(mu=MU)
    assert again.numbers == first.numbers
    assert all(release.replayed for release in again.releases)
    assert (again.cost, again.guarantee) == (first.cost, first.guarantee)
    assert data.budget.spent == spent
    assert data.budget.reservations == ()


def test_another_price_or_identity_is_another_conversation() -> None:
    data = private(mu=3.0)
    first = talk(data).explain(mu=MU)
    for other in (
        talk(data).explain(mu=0.6),
        talk(data, identity={"kind": "steps", "seed": 1}).explain(mu=MU),
        talk(data, identity=None).explain(mu=MU),
        talk(data, identity=None).explain(mu=MU),
    ):
        assert not any(release.replayed for release in other.releases)
        assert other.numbers != first.numbers
    charged = [entry.cost for entry in data.budget.entries if entry.kind == "charged"]
    assert len(charged) == 5 * len(SHARES)
    assert data.budget.spent == sum(charged, Cost())


def test_a_question_with_a_key_is_shared_by_recipes_at_the_same_price() -> None:
    data = private(mu=2.0)

    def recipe(terms: Terms) -> Recipe[Answers]:
        histograms = yield Ask(marginals_question(terms.schema), 0.5)
        sums = yield Ask(Steps().question(1.0), 0.5)
        return Answers((histograms, sums), cost_of([histograms, sums]), terms.promise(histograms, sums))

    one = talk(data, recipe, identity={"kind": "one"}).explain(mu=MU)
    two = talk(data, recipe, identity={"kind": "two"}).explain(mu=MU)
    assert two.releases[0].replayed
    assert not two.releases[1].replayed
    assert one.numbers[0] == two.numbers[0]
    assert data.budget.spent == one.cost + two.releases[1].cost
    assert (one.guarantee.behind | two.guarantee.behind).cost == data.budget.spent
    direct = data.ask(marginals_question(SCHEMA), mu=mu_of_units(PRICE.pico_mu_squared // 2))
    assert direct.replayed


def test_a_shared_question_that_one_recipe_died_on_is_computed_by_the_next(tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path / 'ledger.db'}"
    data = private(where, mu=2.0)

    def recipe(terms: Terms) -> Recipe[Answers]:
        histograms = yield Ask(marginals_question(terms.schema), 1.0)
        return Answers((histograms,), histograms.cost, terms.promise(histograms))

    with ending_after("charge", 1, die), pytest.raises(Killed):
        talk(data, recipe, identity={"kind": "one"}).explain(mu=MU)
    two = talk(data, recipe, identity={"kind": "two"}).explain(mu=MU)
    one = talk(data, recipe, identity={"kind": "one"}).explain(mu=MU)
    assert one.numbers == two.numbers
    assert data.budget.spent == one.cost <= PRICE
    assert kinds(data).count("charged") == 1
    assert data.budget.reservations == ()
    check_ledger(where)


def test_a_finished_recipe_that_asks_for_more_is_refused_and_pays_nothing() -> None:
    data = private(mu=2.0)
    talk(data, Steps((0.2, 0.3))).explain(mu=MU)
    spent, charged = data.budget.spent, kinds(data).count("charged")
    with pytest.raises(LedgerError, match="asked for more than its price"):
        talk(data, Steps((0.2, 0.3, 0.5))).explain(mu=MU)
    assert data.budget.spent == spent
    assert kinds(data).count("charged") == charged


@pytest.mark.parametrize("last_bits", [1, 2, 7])
def test_questions_whose_last_bits_differ_replay_the_stored_answer(last_bits: int) -> None:
    """Another BLAS, another machine: the stored question is authoritative."""
    data = private()
    first = talk(data, Steps()).explain(mu=MU)
    spent = data.budget.spent
    again = talk(data, Steps(last_bits=last_bits)).explain(mu=MU)
    assert again.numbers == first.numbers
    assert data.budget.spent == spent
    assert Steps().question(1.0).describe() != Steps(last_bits=last_bits).question(1.0).describe()
