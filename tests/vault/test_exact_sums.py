"""Integer sums do not depend on order, block size or threads, and are what rational arithmetic says."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import count_bounds
from exact_sums import exact_sum
from vitrail.vault.rows.sampling import Sample
from vitrail.vault.sums.grid import to_grid

NASTY = [0.0, -0.0, 5e-324, 1.0, -0.3, 1e154, -1e200, 1.7e308, math.nan, math.inf, -math.inf]
floats = st.one_of(st.sampled_from(NASTY), st.floats(), st.floats(-1, 1))


def tables(width):
    return st.lists(st.lists(floats, min_size=width, max_size=width), min_size=1, max_size=12)


def total_of(question, rows_pass, block_rows):
    plan = question.plan(0.5, rows_pass.facts)
    return exact_sum(rows_pass, question.row_function(), plan.grid, block_rows).tolist()


@settings(max_examples=60, deadline=None)
@given(
    table=tables(3),
    l2_bound=st.sampled_from([1e-100, 0.5, 1.7320508075688772, 1e100]),
    n_rows_public=st.sampled_from([1, 100, 10**9]),
    seed=st.integers(0, 2**32),
)
def test_bounded_sums_are_the_same_for_any_order_block_and_threads(walk, indexed, table, l2_bound, n_rows_public, seed):
    rows, lookup = indexed
    table = np.array(table)
    question = vt.BoundedSum(lookup(table), size=3, l2_bound=l2_bound)
    index = np.random.default_rng(seed).integers(0, len(table), size=len(table) + 3)
    grid = question.plan(0.5, walk(rows([0]), n_rows_public=n_rows_public).facts).grid
    oracle = [sum(int(to_grid(table[i : i + 1], grid)[0, k]) for i in index) for k in range(3)]
    for block_rows in {1, 2, 3, 5, len(index) - 1, len(index), len(index) + 4}:
        for order, threads in ((index, 1), (index[::-1], 1), (np.sort(index), 3)):
            walked = walk(rows(order), block_rows=block_rows, threads=threads, n_rows_public=n_rows_public)
            assert total_of(question, walked, block_rows) == oracle


def test_a_bounded_sum_is_what_rational_arithmetic_says(walk, indexed):
    rows, lookup = indexed
    generator = np.random.default_rng(5)
    table = generator.normal(size=(40, 4))
    table /= np.linalg.norm(table, axis=1, keepdims=True) * generator.uniform(1.01, 5, size=(40, 1))
    question = vt.BoundedSum(lookup(table), size=4, l2_bound=1.0)
    walked = walk(rows(range(40)), block_rows=7)
    step = Fraction(question.plan(0.5, walked.facts).grid.step)
    oracle = [sum(round(Fraction(float(x)) / step) for x in column) for column in table.T]
    assert total_of(question, walked, 7) == oracle


def test_padding_never_counts(walk, indexed):
    rows, _ = indexed
    question = vt.BoundedSum(lambda block: np.ones((len(block), 1)), size=1, l2_bound=1.0)
    step = question.plan(0.5, walk(rows([1])).facts).grid.step
    for n in (0, 1, 7, 8, 9):
        for block_rows in (1, 8, 100):
            walked = walk(rows(range(n)), block_rows=block_rows)
            assert total_of(question, walked, block_rows) == [n * int(1 / step)]


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.01])
@pytest.mark.parametrize("block_rows", [1, 5, 4096])
def test_a_poisson_sample_is_made_of_whole_rows_each_at_most_once(walk, indexed, rate, block_rows):
    rows, _ = indexed
    walked = walk(rows(range(900)))
    chunks = list(Sample(walked.source, walked.facts, rate).chunks(block_rows))
    assert all(len(chunk) == block_rows for chunk in chunks[:-1])
    taken = np.concatenate([np.empty((0, 1)), *chunks])[:, 0]
    assert np.array_equal(taken, np.unique(taken))
    fewest, most = count_bounds(900, rate)
    assert fewest <= len(taken) <= most


def test_a_sample_larger_than_a_chunk_of_the_source_is_cut_into_whole_blocks(walk, indexed):
    rows, _ = indexed
    walked = walk(rows(np.arange(10_000) % 1000))
    sizes = [len(chunk) for chunk in Sample(walked.source, walked.facts, 0.9).chunks(64)]
    assert set(sizes[:-1]) == {64}
    fewest, most = count_bounds(10_000, 0.9)
    assert fewest <= sum(sizes) <= most


# Select


def scores_by_hand(table, index, plan):
    """Scores in cells, in exact arithmetic; no number of the table is clipped."""
    step = Fraction(plan.step)
    return [sum(round(Fraction(float(table[i, j])) / step) for i in index) for j in range(table.shape[1])]


@settings(max_examples=45, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_scores_are_exact_for_any_order_block_and_threads(walk, indexed, seed):
    rows, lookup = indexed
    generator = np.random.default_rng(seed)
    table = generator.uniform(-0.99, 0.99, size=(9, 4))
    question = vt.Select(lookup(table), candidates=4, bound=1.0)
    index = generator.integers(0, 9, size=13)
    oracle = None
    for block_rows in (1, 2, 5, 13, 20):
        for order, threads in ((index, 1), (index[::-1], 3)):
            walked = walk(rows(order), block_rows=block_rows, threads=threads)
            plan = question.plan(0.5, walked.facts)
            oracle = oracle or scores_by_hand(table, index, plan)
            assert plan.scores(walked, block_rows) == oracle


@settings(max_examples=60, deadline=None)
@given(
    table=st.lists(st.lists(floats, min_size=6, max_size=6), min_size=2, max_size=8),
    bound=st.sampled_from([1e-100, 0.7, 1.0, 1e100]),
    neighbours=st.sampled_from(["add-remove", "replace-one"]),
)
def test_no_neighbour_moves_a_score_by_more_than_its_sensitivity(walk, indexed, table, bound, neighbours):
    rows, lookup = indexed
    table = np.array(table)
    question = vt.Select(lookup(table), 6, bound)

    def scores(order):
        walked = walk(rows(order), block_rows=3, neighbours=neighbours)
        plan = question.plan(1.0, walked.facts)
        return np.array(plan.scores(walked, 3), dtype=object), plan.sensitivity_cells

    everyone = list(range(len(table)))
    all_scores, sensitivity = scores(everyone)
    for left_out in everyone:
        others = [i for i in everyone if i != left_out]
        neighbour = others if neighbours == "add-remove" else [*others, (left_out + 1) % len(table)]
        assert np.abs(all_scores - scores(neighbour)[0]).max() <= sensitivity
