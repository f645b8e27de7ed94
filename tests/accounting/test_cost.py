"""Costs are integers that only ever round up, so a sum of them never reports less than was spent."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.accounting import Cost
from vitrail.accounting.cost import PICO, QUECTO

mus = st.floats(1e-6, 100)
costs = st.builds(Cost, st.integers(0, 10**16), st.integers(0, 10**14), st.integers(0, QUECTO))


@given(st.lists(mus, min_size=1, max_size=20))
def test_a_sum_of_questions_never_reports_less_than_was_spent(values: list[float]) -> None:
    total = sum((Cost.of_mu(mu) for mu in values), Cost())
    spent = sum(Fraction(mu) ** 2 for mu in values)
    assert spent <= Fraction(total.pico_mu_squared, PICO) < spent + Fraction(len(values), PICO)
    assert Fraction(total.mu) ** 2 >= Fraction(total.pico_mu_squared, PICO)


@given(st.floats(1e-9, 1e9), st.floats(1e-3, 1e6))
def test_a_gaussian_sum_costs_its_exact_ratio_rounded_up(l2_bound: float, ratio: float) -> None:
    sigma = l2_bound * ratio
    exact = (Fraction(l2_bound) / Fraction(sigma)) ** 2
    assert 0 <= Fraction(Cost.of_gaussian(l2_bound, sigma).pico_mu_squared, PICO) - exact < Fraction(1, PICO)


@given(st.floats(1e-9, 100), st.floats(1e-20, 0.5))
def test_a_block_costs_what_is_written_rounded_up(epsilon: float, delta: float) -> None:
    cost = Cost.of_block(epsilon, delta)
    assert 0 <= cost.pico_epsilon - Fraction(Decimal(repr(epsilon))) * PICO < 1
    assert 0 <= cost.quecto_delta - Fraction(Decimal(repr(delta))) * QUECTO < 1
    assert cost.pico_mu_squared == 0


@given(mus)
def test_mu_reports_the_integer_rounded_up_and_no_further(mu: float) -> None:
    cost = Cost.of_mu(mu)
    assert Fraction(cost.mu) ** 2 * PICO >= cost.pico_mu_squared
    assert cost.mu == pytest.approx(math.sqrt(cost.pico_mu_squared / PICO), rel=1e-15)


@given(mus, st.floats(0, 100), st.floats(0, 0.5))
def test_a_capacity_never_promises_more_than_was_allowed(mu: float, epsilon: float, delta: float) -> None:
    capacity = Cost.capacity(mu, epsilon, delta)
    assert Fraction(capacity.pico_mu_squared, PICO) <= Fraction(mu) ** 2
    assert Fraction(capacity.pico_epsilon, PICO) <= Fraction(Decimal(repr(epsilon)))
    assert Fraction(capacity.quecto_delta, QUECTO) <= Fraction(Decimal(repr(delta)))


@given(st.integers(1, 10**13), st.integers(1, 200))
def test_n_equal_costs_fill_a_capacity_exactly_and_one_more_is_refused(each: int, n: int) -> None:
    capacity, spent = Cost(each * n), Cost()
    for _ in range(n):
        assert spent + Cost(each) <= capacity
        spent = spent + Cost(each)
    assert spent == capacity
    assert spent.left_of(capacity) == Cost()
    assert not spent + Cost(1) <= capacity


@pytest.mark.parametrize(("n", "each", "purse"), [(10, 0.1, 1.0), (3, 0.1, 0.3), (7, 0.07, 0.49), (100, 0.02, 2.0)])
def test_blocks_fill_a_purse_exactly(n: int, each: float, purse: float) -> None:
    """In binary, ten times 0.1 is not 1.0; as written, it is."""
    capacity = Cost.capacity(1.0, purse, 1e-5)
    spent = sum((Cost.of_block(each, 1e-7) for _ in range(n)), Cost())
    assert spent.pico_epsilon == capacity.pico_epsilon
    assert spent <= capacity
    assert not spent + Cost.of_block(1e-12, 1e-30) <= capacity


def test_four_questions_of_half_the_mu_fill_it() -> None:
    assert sum((Cost.of_mu(0.5) for _ in range(4)), Cost()) == Cost.capacity(1.0)


@given(costs, costs, costs)
def test_costs_add_as_a_commutative_monoid(a: Cost, b: Cost, c: Cost) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Cost() == a


@given(costs, costs)
def test_what_is_left_fits_and_more_does_not(spent: Cost, capacity: Cost) -> None:
    left = spent.left_of(capacity)
    assert Cost() <= left
    if spent <= capacity:
        assert spent + left == capacity
    else:
        assert 0 in (left.pico_mu_squared, left.pico_epsilon, left.quecto_delta)


@given(costs, st.sampled_from(["pico_mu_squared", "pico_epsilon", "quecto_delta"]))
def test_every_part_of_a_cost_can_refuse_on_its_own(capacity: Cost, part: str) -> None:
    fields = {"pico_mu_squared": 0, "pico_epsilon": 0, "quecto_delta": 0}
    fields[part] = getattr(capacity, part) + 1
    assert not Cost(**fields) <= capacity
