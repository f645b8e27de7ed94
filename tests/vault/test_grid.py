"""Rows on the grid: the integers obey the bound whatever the floats were."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from vitrail.vault.rows.block import Counted
from vitrail.vault.sums.grid import Grid, power_of_two_below, sum_on_grid, to_grid

BELOW_ROOT_3 = 1.7320508075688772
NASTY = [0.0, -0.0, 5e-324, -2.2e-308, 1e-160, 1.0, -1.0, 0.5, 1e154, 1.4e154, -1e200, 1.7e308, -1.7e308]
NASTY += [math.nan, math.inf, -math.inf]
BOUNDS = [1e-100, 1e-30, 0.1, 1.0, BELOW_ROOT_3, 1.4142135623730951, 7.0, 1e30, 1e100]

floats = st.one_of(st.sampled_from(NASTY), st.floats(), st.floats(-2, 2))
bounds = st.one_of(st.sampled_from(BOUNDS), st.floats(1e-100, 1e100))


def grid_of(l2_bound, bits, size):
    """A grid with 2**bits to 2**(bits + 1) cells per bound; from 26 bits on norms are checked in int64."""
    return Grid(l2_bound, power_of_two_below(l2_bound) / 2**bits, size)


@st.composite
def grids_and_rows(draw, most_rows=5):
    """Rows of arbitrary floats, and rows whose norm is within a few ulps of the bound."""
    size = draw(st.integers(1, 6))
    grid = grid_of(draw(bounds), draw(st.integers(10, 30)), size)
    rows = []
    for _ in range(draw(st.integers(1, most_rows))):
        row = np.array(draw(st.lists(floats, min_size=size, max_size=size)))
        if draw(st.booleans()):
            row = np.array(draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size)))
            norm = np.linalg.norm(row)
            row = row / norm if norm > 1e-3 else np.full(size, 1 / math.sqrt(size))
            row = row * grid.l2_bound * (1 + draw(st.integers(-4, 4)) * 2.0**-52)
        rows.append(row)
    return grid, np.array(rows)


def whole(cells):
    """A row of cells as Python integers."""
    assert all(float(cell).is_integer() for cell in cells)
    return [int(cell) for cell in cells]


def exactly_rounded(row, grid):
    """Round half to even of row / step, in rational arithmetic."""
    return [round(Fraction(float(entry)) / Fraction(grid.step)) for entry in row]


def distance_to_projection(row, cells, grid):
    """How far the cells lie from the row's projection to the ball, to 400 bits."""
    with mp.workprec(400):
        entries = [mpf(float(entry)) for entry in row]
        norm = mp.sqrt(sum(entry * entry for entry in entries))
        factor = 1 if norm <= grid.l2_bound else mpf(grid.l2_bound) / norm
        gaps = [mpf(cell) * mpf(grid.step) - factor * entry for cell, entry in zip(cells, entries, strict=True)]
        return mp.sqrt(sum(gap * gap for gap in gaps))


@settings(max_examples=250, deadline=None)
@given(grids_and_rows())
@example((grid_of(BELOW_ROOT_3, 20, 3), np.ones((1, 3))))
@example((grid_of(BELOW_ROOT_3, 29, 3), np.ones((1, 3))))
@example((grid_of(1.0, 20, 3), np.array([[1e200, 0, 0], [1.7e308] * 3, [5e-324] * 3, [math.inf, 0, 0]])))
def test_every_row_obeys_the_bound_in_exact_integers_and_lies_where_it_should(case):
    grid, rows = case
    limit = (Fraction(grid.l2_bound) / Fraction(grid.step)) ** 2
    cells = to_grid(rows, grid)
    for row, found in zip(rows, cells, strict=True):
        v = whole(found)
        assert sum(x * x for x in v) <= limit
        if not np.isfinite(row).all():
            assert v == [0] * grid.size
            continue
        assert distance_to_projection(row, v, grid) <= grid.displacement
        norm_squared = sum(Fraction(float(x)) ** 2 for x in row)
        rounded = exactly_rounded(row, grid)
        inside = norm_squared <= Fraction(grid.l2_bound) ** 2 * (1 - Fraction(1, 2**45))
        if inside and sum(x * x for x in rounded) <= limit:
            assert v == rounded


@settings(max_examples=150, deadline=None)
@given(grids_and_rows(), st.randoms(use_true_random=False))
def test_adding_or_removing_any_row_moves_the_sum_by_at_most_the_bound(case, random):
    grid, rows = case
    valid = np.array([random.random() < 0.8 for _ in rows])
    total = sum_on_grid(rows, Counted(valid), grid)
    limit = (Fraction(grid.l2_bound) / Fraction(grid.step)) ** 2
    for left_out in range(len(rows)):
        others = np.arange(len(rows)) != left_out
        moved = [int(x) for x in total - sum_on_grid(rows[others], Counted(valid[others]), grid)]
        assert sum(x * x for x in moved) <= limit
        if not valid[left_out]:
            assert not any(moved)


@settings(max_examples=60, deadline=None)
@given(grids_and_rows(most_rows=9), st.randoms(use_true_random=False))
def test_a_row_has_the_same_cells_alone_and_in_any_company(case, random):
    grid, rows = case
    together = to_grid(rows, grid)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert np.array_equal(to_grid(rows[order], grid), together[order])
    for place, row in enumerate(rows):
        assert np.array_equal(to_grid(row[None], grid)[0], together[place])


@pytest.mark.parametrize("size", [2, 7, 16, 33, 100, 1001])
def test_wide_rows_have_the_same_cells_alone_and_in_any_company(size):
    """Norms that do not add up exactly: their bits must not depend on where a row stands."""
    rows = np.random.default_rng(size).normal(size=(37, size))
    grid = grid_of(0.9 * math.sqrt(size), 22, size)
    together = to_grid(rows, grid)
    assert np.array_equal(to_grid(rows[::-1], grid), together[::-1])
    for place in range(37):
        assert np.array_equal(to_grid(rows[place : place + 1].copy(), grid)[0], together[place])
        assert np.array_equal(to_grid(rows[place:], grid)[0], together[place])


def test_the_float_norm_is_not_trusted():
    """(1, 1, 1) passes any float test against the largest double below the square root of three."""
    row, grid = np.ones((1, 3)), grid_of(BELOW_ROOT_3, 20, 3)
    assert np.einsum("ij,ij->i", row, row)[0] <= np.float64(BELOW_ROOT_3) ** 2 * (1 + 2.0**-51)
    unclipped = np.rint(row[0] / grid.step)
    assert sum(int(x) ** 2 for x in unclipped) > grid.limit_squared
    assert sum(int(x) ** 2 for x in to_grid(row, grid)[0]) <= grid.limit_squared


def test_rows_too_large_for_their_squares_are_clipped_rather_than_lost():
    grid = grid_of(1.0, 20, 2)
    cells = to_grid(np.array([[1e200, 0.0], [0.0, -1.7e308]]), grid)
    assert np.allclose(cells * grid.step, [[1, 0], [0, -1]], atol=grid.displacement)


@pytest.mark.parametrize("bits", [10, 20, 25, 26, 28, 30])
@pytest.mark.parametrize("rows", [1, 7, 3000])
def test_sums_are_exact_across_steps_and_on_both_sides_of_the_float_check(bits, rows):
    generator = np.random.default_rng(bits * 10_000 + rows)
    grid = grid_of(3.0, bits, 60)  # 3000 rows of 60 are several cache-sized steps
    assert grid.checked_in_floats == (bits < 26)
    contributions = generator.normal(size=(rows, 60)) * generator.choice([0.01, 0.3, 50.0], size=(rows, 1))
    valid = generator.random(rows) < 0.9
    oracle = [0] * 60
    for row, counts in zip(contributions, valid, strict=True):
        if counts:
            oracle = [total + int(x) for total, x in zip(oracle, to_grid(row[None], grid)[0], strict=True)]
    assert sum_on_grid(contributions, Counted(valid), grid).tolist() == oracle


@settings(max_examples=200, deadline=None)
@given(
    bounds,
    st.integers(1, 10**8),
    st.floats(1e-6, 100),
    st.sampled_from([1, 7, 10**4, 10**9, 10**12]),
)
def test_a_chosen_grid_is_fine_enough_and_never_finer_than_its_check(l2_bound, size, mu, n_rows_public):
    sigma = l2_bound / mu
    grid = Grid.choose(l2_bound, size, sigma, n_rows_public)
    ratio = Fraction(l2_bound) / Fraction(grid.step)
    assert math.frexp(grid.step)[0] == 0.5
    assert ratio <= 2**31
    assert grid.inner_norm > 0
    assert Fraction(grid.inner_norm) + Fraction(math.sqrt(size)) / 2 <= ratio
    pinned = ratio > 2**29
    assert pinned or n_rows_public * Fraction(grid.step) <= Fraction(sigma) / 10
    assert sigma / grid.step <= 2.0**45
