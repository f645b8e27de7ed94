"""Budgets and guarantees: what is refused, what is promised, and how it reads."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.accounting import Cost, epsilon_of
from vitrail.accounting.gdp import delta_of
from vitrail.accounting.guarantee import Budget, Guarantee, question_mu
from vitrail.accounting.neighbours import check_neighbours
from vitrail.errors import InvalidInput, VitrailError


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"epsilon": 0, "delta": 1e-6}, "epsilon of a budget is 0; it must be positive and finite"),
        ({"epsilon": -1.0, "delta": 1e-6}, "epsilon of a budget is -1.0"),
        ({"epsilon": math.inf, "delta": 1e-6}, "epsilon of a budget is inf"),
        ({"epsilon": math.nan, "delta": 1e-6}, "epsilon of a budget is nan"),
        ({"epsilon": "1", "delta": 1e-6}, "epsilon of a budget is '1'; it must be a number"),
        ({"epsilon": True, "delta": 1e-6}, "epsilon of a budget is True; it must be a number"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta of a budget is 0.0; it must lie strictly between 0 and 1"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta of a budget is 1.0"),
        ({"epsilon": 1.0, "delta": math.nan}, "delta of a budget is nan"),
        ({"epsilon": 1.0, "delta": None}, "delta of a budget is None"),
        ({"epsilon": 1.0, "delta": 1e-6, "training": (1.0, 0.0)}, "training is (1.0, 0.0); both parts must be"),
        ({"epsilon": 1.0, "delta": 1e-6, "training": (0.5, 1e-6)}, "both parts must be at least 0 and below"),
        ({"epsilon": 1.0, "delta": 1e-6, "training": (-0.1, 0.0)}, "both parts must be at least 0 and below"),
        ({"epsilon": 1.0, "delta": 1e-6, "training": 0.5}, "training is 0.5; it must be a pair"),
        ({"epsilon": 1.0, "delta": 1e-6, "training": (0.1, 0.1, 0.1)}, "it must be a pair"),
        ({"epsilon": 1.0, "delta": 1e-6, "training": ("a", "b")}, "it must be a pair"),
    ],
)
def test_a_bad_budget_is_refused_in_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Budget(**arguments)
    assert sentence in str(caught.value)
    assert isinstance(caught.value, VitrailError)
    assert isinstance(caught.value, ValueError)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 50), st.floats(-12, -2), st.floats(0, 0.9), st.floats(0, 0.9))
def test_questions_and_purse_together_stay_inside_the_budget(
    epsilon: float, log10_delta: float, epsilon_share: float, delta_share: float
) -> None:
    delta = 10**log10_delta
    budget = Budget(epsilon, delta, training=(epsilon * epsilon_share, delta * delta_share))
    capacity = budget.capacity()
    if capacity.pico_mu_squared == 0:
        return  # too little left to buy a question
    questions_mu = math.sqrt(capacity.pico_mu_squared / 1e12)
    questions_delta = delta_of(questions_mu, epsilon - budget.training[0])
    assert questions_delta + budget.training[1] < delta
    assert capacity.block_epsilon <= budget.training[0] * (1 + 1e-15)


def test_a_purse_takes_from_what_questions_may_spend() -> None:
    whole, split = Budget(1.0, 1e-6), Budget(1.0, 1e-6, training=(0.5, 5e-7))
    assert whole.mu > split.mu > 0
    assert whole.capacity().pico_epsilon == 0
    assert split.capacity().pico_epsilon == 500_000_000_000
    assert whole.question_delta < whole.delta


def test_budgets_read_as_numbers_and_survive_json() -> None:
    budget = Budget(1, 1e-6, training=(0, 0))
    assert budget == Budget(1.0, 1e-6)
    assert isinstance(budget.epsilon, float)
    fields = json.loads(json.dumps(budget.to_json()))
    assert Budget(fields["epsilon"], fields["delta"], tuple(fields["training"])) == budget


def test_guarantees_say_what_whose_and_against_which_change() -> None:
    promise = Guarantee.of_mu(0.5, 1e-6)
    assert promise.epsilon == epsilon_of(0.5, 1e-6)
    assert str(promise) == (
        "(epsilon = 2.255, delta = 1e-06)-differential privacy, equal to 0.5-GDP, for adding or removing any one row of "
        "the data the explanation is computed from, given the model."
    )
    replaced = Guarantee.of_mu(0.5, 1e-6, "replace-one", "training-data").sentence
    assert replaced.endswith(
        "for replacing any one row of the data the model was trained on and the explanation is computed from."
    )


def test_a_guarantee_with_fixed_blocks_claims_no_mu() -> None:
    assert "GDP" not in Guarantee(1.0, 1e-6, 0.0).sentence


def test_a_guarantee_carries_its_sentence_into_json() -> None:
    promise = Guarantee.of_mu(0.5, 1e-6)
    fields = json.loads(json.dumps(promise.to_json()))
    assert fields.pop("sentence") == promise.sentence
    assert Guarantee.from_json(fields) == promise


@pytest.mark.parametrize("given_relation", ["add_remove", "", "Add-Remove", "bounded"])
def test_unknown_neighbours_are_refused(given_relation: str) -> None:
    with pytest.raises(InvalidInput, match="choose 'add-remove' or 'replace-one'"):
        check_neighbours(given_relation)


@pytest.mark.parametrize(
    ("epsilon", "mu", "sentence"),
    [
        (None, None, "either epsilon= or mu=, and not both"),
        (0.1, 0.1, "either epsilon= or mu=, and not both"),
        (-0.1, None, "epsilon of a question is -0.1"),
        (None, 0.0, "mu of a question is 0.0; it must be positive and at most 100"),
        (None, 101.0, "mu of a question is 101.0"),
        (None, math.nan, "mu of a question is nan"),
        (None, "0.1", "mu of a question is '0.1'"),
        (None, True, "mu of a question is True"),
    ],
)
def test_a_question_needs_one_price(epsilon: object, mu: object, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        question_mu(epsilon, mu, 1e-6)
    assert sentence in str(caught.value)


def test_an_epsilon_that_buys_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too small to buy anything at delta 1e-15; ask for more"):
        question_mu(1e-9, None, 1e-15)


def test_a_question_pays_its_own_epsilon_at_the_accounts_delta() -> None:
    budget = Budget(1.0, 1e-6)
    whole = question_mu(1.0, None, budget.question_delta)
    assert budget.mu * (1 - 1e-9) < whole <= budget.mu
    assert question_mu(None, 0.25, budget.question_delta) == 0.25
    cheap = Cost.of_mu(question_mu(0.1, None, budget.question_delta))
    assert cheap <= budget.capacity()
