"""Bands of ratios, of their differences and of the largest of these: how often they hold on planted noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from error_rates import count_bounds
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.groups.ratios import (
    Bands,
    Sums,
    difference_bands,
    largest_difference,
    n_pairs,
    quotient_bands,
    ratio_bands,
    smallest_ratio,
)

DRAWS = 20_000
NOISE = np.array([[1.0, 0.4], [0.4, 2.0]])


def sums_of(rate: float, rows: float, draw: np.random.Generator, size: tuple[int, ...] = (DRAWS,)) -> Sums:
    """Noisy numerators and denominators of one rate."""
    noise = draw.multivariate_normal([0, 0], NOISE, size)
    return Sums(rate * rows + noise[..., 0], rows + noise[..., 1], NOISE[0, 0], NOISE[0, 1], NOISE[1, 1])


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.97, 1.0])
@pytest.mark.parametrize("rows", [1.0, 6.0, 40.0])
def test_a_ratio_is_held_as_often_as_claimed_however_few_rows_there_are(rate: float, rows: float) -> None:
    """Exactly 95 % before the range cuts; at the ends of the range, and where nothing is known, more often."""
    bands = ratio_bands(sums_of(rate, rows, np.random.default_rng(1)), TWO_SIDED_95, 0.0, 1.0)
    held = int(((bands.lower <= rate) & (rate <= bands.upper)).sum())
    least, most = count_bounds(DRAWS, 0.95)
    assert held >= least
    if rows == 40.0 and rate == 0.3:
        assert held <= most


def test_what_is_pushed_out_of_the_range_keeps_a_band() -> None:
    pushed = ratio_bands(Sums(np.array([-9.0]), np.array([100.0]), 1.0, 0.0, 1.0), TWO_SIDED_95, 0.0, 1.0)
    assert (float(pushed.value[0]), float(pushed.lower[0])) == (0.0, 0.0)
    assert float(pushed.upper[0]) == pytest.approx(0.01, rel=0.01)  # one standard error


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.5), (1.0, 0.6), (0.0, 0.1), (0.5, 0.5), (1.0, 1.0)])
def test_differences_and_quotients_of_two_groups_hold(first: float, second: float) -> None:
    draw = np.random.default_rng(2)
    one, other = (
        ratio_bands(sums_of(rate, rows, draw), TWO_SIDED_95, 0.0, 1.0, cut=False)
        for rate, rows in ((first, 30.0), (second, 300.0))
    )
    least = 0.94 * DRAWS
    apart = difference_bands(one, other, 1.0)
    assert ((apart.lower <= first - second) & (first - second <= apart.upper)).sum() >= least
    over = quotient_bands(one, other)
    quotient = min(first / second, 1.0)
    assert ((over.lower <= quotient + 1e-9) & (quotient - 1e-9 <= over.upper)).sum() >= least
    assert ((over.lower >= 0) & (over.upper <= 1)).all()


def test_ends_that_were_cut_would_not_hold() -> None:
    """Why bands of rates are handed on uncut: for a rate of 1 the distance to the upper end is what noise left of it."""
    draw = np.random.default_rng(3)
    pairs = [(sums_of(1.0, 30.0, draw), sums_of(0.6, 3000.0, draw))]
    held = {}
    for cut in (True, False):
        one, other = (ratio_bands(sums, TWO_SIDED_95, 0.0, 1.0, cut=cut) for sums in pairs[0])
        apart = difference_bands(one, other, 1.0)
        held[cut] = float(((apart.lower <= 0.4) & (apart.upper >= 0.4)).mean())
    assert held[True] < 0.85
    assert held[False] > 0.94


@pytest.mark.parametrize(
    "rates", [(0.3, 0.3, 0.3, 0.3, 0.3), (0.1, 0.5, 0.3, 0.2, 0.9), (1.0, 1.0, 0.2, 1.0, 0.9), (0.4, 0.6)]
)
def test_the_largest_difference_and_the_smallest_ratio_hold(rates: tuple[float, ...]) -> None:
    draw, draws = np.random.default_rng(4), 600
    sizes = (1000.0, 30.0, 100.0, 50.0, 20.0)
    parts = [sums_of(rate, size, draw, (draws,)) for rate, size in zip(rates, sizes, strict=False)]
    sums = Sums(*(np.stack([part[k] for part in parts], axis=1) for k in range(2)), *parts[0][2:])  # type: ignore[arg-type]
    together = float(np.abs(np.quantile(draw.normal(size=10**6), 0.025 / n_pairs(len(rates)))))
    alone, wide = (ratio_bands(sums, z, 0.0, 1.0, cut=False) for z in (TWO_SIDED_95, together))
    held = np.zeros(2)
    for i in range(draws):
        both = tuple(Bands(*(numbers[i] for numbers in bands)) for bands in (alone, wide))
        for k, (found, truth) in enumerate(
            ((largest_difference(*both), max(rates) - min(rates)), (smallest_ratio(*both), min(rates) / max(rates)))
        ):
            assert 0 <= found.lower <= found.value <= found.upper <= 1
            held[k] += found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert (held >= 0.94 * draws).all()


@given(
    above=st.floats(-1e300, 1e300),
    below=st.floats(-1e300, 1e300),
    spread=st.floats(1e-6, 1e6),
    correlation=st.floats(-1, 1),
    cut=st.booleans(),
)
def test_whatever_noise_says_bands_have_two_ends_in_order(
    above: float, below: float, spread: float, correlation: float, cut: bool
) -> None:
    sums = Sums(np.array([above]), np.array([below]), spread**2, correlation * spread, 1.0)
    bands = ratio_bands(sums, TWO_SIDED_95, -1.0, 2.0, cut=cut)
    if cut:
        assert -1.0 <= bands.lower[0] <= bands.value[0] <= bands.upper[0] <= 2.0
    elif np.isfinite(bands.value[0]):
        assert bands.lower[0] <= bands.upper[0]
