"""Product sums: exact, bounded on the integers, the same for any order and block shape, and as private as claimed."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.errors import InvalidInput
from vitrail.vault import rehearse
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Counted
from vitrail.vault.rows.predictions import Predictions
from vitrail.vault.rows.sources import open_rows

WIDTH = 4
SCHEMA = vt.Schema({f"x{i}": vt.Numeric(-10.0, 10.0) for i in range(WIDTH)})


def vectors(block: vt.Block) -> tuple[np.ndarray, ...]:
    x = block.values
    return x[:, :2], x, x[:, 2:3], np.tanh(x[:, 1:])


def question(**more: object) -> vt.ProductSum:
    return vt.ProductSum(
        vectors,
        lefts=(2, 1),
        rights=(4, 3),
        left_bounds=(1.3, 2.0),
        right_bounds=(1.7, 0.9),
        **more,  # type: ignore[arg-type]
    )


def cells(asked: vt.ProductSum, rows: np.ndarray, block_rows: int = 8, threads: int = 1) -> np.ndarray:
    facts = PublicFacts(SCHEMA, None, 50, "add-remove", block_rows, threads)
    plan = asked.plan(1.0, facts)
    return plan.exact_cells(RowPass(open_rows(rows, SCHEMA), facts, Predictions(facts)), block_rows)


def fine_products(asked: vt.ProductSum, row: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """The integers that one row adds, before the rounding to the coarse grid, and the size of one unit."""
    facts = PublicFacts(SCHEMA, None, 50, "add-remove", 1)
    plan = asked.plan(1.0, facts)
    block = vt.Block(np.asarray(row, dtype=float).reshape(1, -1), facts, lambda *_: np.zeros(1))
    arrays = tuple(np.ascontiguousarray(part) for part in vectors(block))
    products = plan._products(arrays, Counted(np.ones(1, dtype=bool)))
    return [(p, left.step * right.step) for p, (left, right) in zip(products, plan.grids, strict=True)]


numbers = st.floats(-10, 10, allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 10.0, -10.0, 1.3, 1.7])
tables = st.lists(st.lists(numbers, min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=12).map(np.array)


@settings(deadline=None, max_examples=60)
@given(tables, st.sampled_from([None, 0.4, 2.0]))
def test_every_row_obeys_the_bound_in_exact_arithmetic(rows: np.ndarray, bound: float | None) -> None:
    asked = question(**({} if bound is None else {"l2_bound": bound}))
    for row in rows:
        squares = Fraction(0)
        for product, unit in fine_products(asked, row):
            squares += sum(Fraction(int(entry)) ** 2 for entry in product.ravel()) * Fraction(unit) ** 2
        assert squares <= Fraction(asked.l2_bound) ** 2


@settings(deadline=None, max_examples=25)
@given(tables, st.integers(1, 13), st.sampled_from([1, 3]), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_order_blocks_or_threads(rows: np.ndarray, block_rows: int, threads: int, random) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    assert np.array_equal(cells(question(), rows), cells(question(), rows[order], block_rows, threads))


def test_the_sum_is_the_sum_of_products() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.4, 0.4, (300, WIDTH))  # inside every bound: nothing is clipped
    asked = question()
    released = rehearse(asked, rows, SCHEMA, mu=50.0, n_rows_public=300, draws=1, block_rows=64)[0]
    answer = asked.plan(50.0, PublicFacts(SCHEMA, None, 300, "add-remove", 64)).shape(released)
    # A half is eight standard deviations of the noise.
    assert np.allclose(answer.parts["0"], rows[:, :2].T @ rows, atol=0.5)
    assert np.allclose(answer.parts["1"], rows[:, 2:3].T @ np.tanh(rows[:, 1:]), atol=0.5)


def test_a_row_that_is_not_finite_counts_zero() -> None:
    def broken(block: vt.Block) -> tuple[np.ndarray, ...]:
        x = block.values
        return np.where(x[:, :1] == 3.0, np.nan, 1.0), x

    asked = vt.ProductSum(broken, lefts=(1,), rights=(WIDTH,), right_bounds=(20.0,))
    rows = np.array([[1.0, 2, 3, 4], [3.0, 9, 9, 9], [5.0, 6, 7, 8]])
    assert np.array_equal(cells(asked, rows), cells(asked, rows[[0, 2]]))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_audit_on_worst_case_neighbours(neighbours: str) -> None:
    asked = vt.ProductSum(lambda block: (block.values[:, :1], block.values[:, :2]), lefts=(1,), rights=(2,))
    one = np.array([[10.0, 0, 0, 0]])
    other = np.empty((0, WIDTH))
    if neighbours == "replace-one":  # x x^T cannot change its sign: a left of the opposite sign can
        asked = vt.ProductSum(lambda block: (block.values[:, 1:2], np.ones((len(block), 2))), lefts=(1,), rights=(2,))
        one, other = np.array([[0.0, 10, 0, 0]]), np.array([[0.0, -10, 0, 0]])

    def run(rows: np.ndarray, draws: int) -> np.ndarray:
        return rehearse(asked, rows, SCHEMA, mu=1.0, n_rows_public=1, draws=draws, neighbours=neighbours)

    audit = vt.audit.mechanism(run, (one, other), claimed=1.0, confidence=CONFIDENCE)
    assert not audit.refuted, audit.summary()
    with planted_noise():
        audit = vt.audit.mechanism(run, (one, other), claimed=1.0)
    assert audit.tightness >= 0.8, audit.summary()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lefts": ()}, "one of each per block"),
        ({"rights": (4,)}, "one of each per block"),
        ({"left_bounds": (1.0,)}, "one per block"),
        ({"lefts": (0, 1)}, "whole number"),
        ({"right_bounds": (1.0, -1.0)}, "positive"),
        ({"l2_bound": float("nan")}, "positive"),
        ({"fn": 3}, "function of a block"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"fn": vectors, "lefts": (2, 1), "rights": (4, 3)}
    with pytest.raises(InvalidInput, match=message):
        vt.ProductSum(**{**good, **change})  # type: ignore[arg-type]
