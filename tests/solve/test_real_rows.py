"""Reasons held against real rows: what is taken off, how surely, and what bands make of it."""

from dataclasses import replace

import numpy as np
import pytest

import vitrail as vt
from vitrail.results.mean_reasons import MeanReasons
from vitrail.solve.shapley import real_rows
from vitrail.solve.shapley.real_rows import BEFOREHAND, LEAST, OF_SPREAD, RealRows

N_ROWS = 20_000
SCHEMA = vt.Schema({name: vt.Numeric(0, 1) for name in "abcd"})
ABOUT = [[name] for name in SCHEMA]


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    columns = {name: draw.random(N_ROWS) for name in SCHEMA}
    data = vt.PrivateData(columns, SCHEMA, name="people", n_rows_public=N_ROWS, budget=vt.Budget(100, 1e-6), ledger="memory")
    return vt.private_rows(data, mu=1.0)


def bought(rows, apart, stds, **changes):
    """Mean reasons of a sum of four columns, that differ from those on sampled rows by so much."""
    per_row = 0.1 * (0.5 - rows.sampled[:1024])
    made = MeanReasons(
        dataset="people",
        model="sum",
        schema=SCHEMA,
        players=tuple(SCHEMA),
        clip=0.2,
        sizes=np.ones(4),
        means=per_row.mean(axis=0) - apart,
        stds=np.broadcast_to(stds, 4),
        per_row=per_row,
        outputs=0.1 * rows.sampled[:1024].sum(axis=1),
        expected=rows.standard_errors(per_row[None], ABOUT)[0],
        excess=0.0,
        excess_std=1e-9,
        n_rows_public=N_ROWS,
        cost=rows.cost,
        guarantee=rows.guarantee,
    )
    return replace(made, **changes)


def real(rows, apart, stds, n_rows=1024, **changes):
    return RealRows(rows, bought(rows, np.asarray(apart), stds, **changes), ABOUT, n_rows)


def test_a_difference_that_is_surely_there_is_taken_off(rows):
    apart = np.array([0.05, -0.02, 0.03, -0.04])
    assert np.allclose(real(rows, apart, 1e-4).correction.taken_off, apart, rtol=0.01)


@pytest.mark.parametrize("chance", [0.5, 1.5, 2.9])
def test_what_noise_may_have_made_of_it_is_not(rows, chance):
    """Noise a hundred times larger than what sampled rows may be off by: not even three standard deviations of it move."""
    found = real(rows, np.full(4, chance * 0.1), 0.1).correction
    assert np.abs(found.taken_off).max() < 1e-3
    expected = max(0.0, chance**2 - 1) * 0.01
    assert found.squares == pytest.approx(np.full(4, expected), rel=0.01, abs=1e-4)


@pytest.fixture(scope="module")
def share_held(rows):
    """Of draws in which sampled rows are off by ``off`` standard deviations of the noise, how many bands hold that."""
    given = replace(bought(rows, np.zeros(4), 1e-9), expected=np.full(4, 1e-9))  # standard errors know nothing of it
    spread = np.sqrt((given.per_row**2).mean(axis=0))

    def share(off, noise_of_spread=OF_SPREAD / 1.5, n_draws=400):
        held, stds = [], noise_of_spread * spread
        for noise in np.random.default_rng(0).normal(size=(n_draws, 4)):
            means = given.per_row.mean(axis=0) - (off + noise) * stds
            found = RealRows(rows, replace(given, means=means, stds=stds), ABOUT, 1024).correction
            held.append(np.abs(found.taken_off - off * stds) <= 1.96 * np.sqrt(found.squares))
        return np.mean(held)

    return share


@pytest.mark.parametrize("off", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0])
def test_what_noise_hides_is_in_the_bands_whatever_its_size(share_held, off):
    """Standard errors of nothing, noise below a tenth of the spread: the bar of the worst column, for any error."""
    assert share_held(off) >= 0.85


@pytest.mark.parametrize("noise", [0.1, 0.2, 0.5, 2.0])
def test_where_noise_is_larger_bands_hold_errors_up_to_a_tenth_of_the_spread(share_held, noise):
    assert share_held(OF_SPREAD / noise, noise) >= 0.95
    if noise >= 0.2:
        assert share_held(3 * OF_SPREAD / noise, noise) < 0.85  # and this is where they end


def test_bands_that_leave_it_out_miss_what_is_as_large_as_the_noise(share_held, monkeypatch):
    monkeypatch.setattr(real_rows, "HIDDEN", 0.0)
    assert share_held(1.0) < 0.6


def test_bands_grow_by_what_standard_errors_did_not_expect(rows):
    expected = rows.standard_errors(bought(rows, np.zeros(4), 1e-9).per_row[None], ABOUT)[0]
    for times in (0.0, 1.0, 3.0):
        scale = real(rows, times * expected, 1e-9).correction.scale
        assert scale == pytest.approx(max(LEAST, (BEFOREHAND + 4 * times**2) / (BEFOREHAND + 4)), rel=1e-6)
    assert LEAST == 0.5


def test_a_number_that_is_the_same_for_everybody_has_the_error_of_what_was_bought(rows):
    """Where a person's values are those that were bought, up to a constant, sampled rows have no part in the error."""
    held = real(rows, np.zeros(4), 2e-5)
    per_row = held.per_row[None] + np.array([[[0.01, -0.01, 0.02, -0.02]]])
    plain, found = rows.standard_errors(per_row, ABOUT), held.standard_errors(per_row)
    assert (found < plain / 3).all()
    assert found == pytest.approx(np.full((1, 4), 2e-5), rel=0.5)


def test_what_the_clip_took_is_in_the_bands(rows):
    plain, more = real(rows, np.zeros(4), 1e-4), real(rows, np.zeros(4), 1e-4, excess=0.08, excess_std=0.01)
    grown = more.correction.squares - plain.correction.squares
    assert grown.sum() == pytest.approx(0.08**2 - 0.01**2, rel=1e-6)
    assert grown == pytest.approx(np.full(4, grown.mean()), rel=0.2)  # four columns alike
    fewer = real(rows, np.zeros(4), 1e-4, excess=-0.08, excess_std=0.01)
    assert fewer.correction.squares == pytest.approx(plain.correction.squares)


@pytest.mark.parametrize("n_rows", [1, 64, 1024, 4096])
def test_the_difference_is_that_of_the_rows_that_values_are_means_over(rows, n_rows):
    held = real(rows, np.zeros(4), 1e-5, n_rows)
    per_row = np.broadcast_to(0.1 * (0.5 - rows.sampled[:n_rows]), (1, n_rows, 4))
    # Values corrected by real rows are those on real rows, whatever rows they were computed with.
    corrected = per_row.mean(axis=1)[0] - held.correction.taken_off
    wrong = 0.1 * np.abs(rows.sampled[:n_rows].mean(axis=0) - rows.sampled[:1024].mean(axis=0)) if n_rows > 1024 else 1e-4
    assert (np.abs(corrected - held.bought.means) <= wrong + 1e-4).all()
    assert np.isfinite(held.standard_errors(per_row)).all()
