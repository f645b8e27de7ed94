"""By how much the noise of private rows may have moved means over them: nothing without noise, and right in size with it."""

from functools import cache

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise

N = 4000
SCHEMA = vt.Schema({"age": vt.Numeric(0, 60, integer=True), "sex": vt.Categorical(["f", "m"]), "pay": vt.Numeric(0, 1)})


def people():
    draw = np.random.default_rng(2)
    age = draw.binomial(60, 0.4, N)
    pay = np.clip(0.3 + 0.01 * age + draw.normal(0, 0.1, N), 0, 1)
    return {"age": age, "sex": draw.choice(["f", "m"], N, p=[0.7, 0.3]), "pay": pay}


@cache
def bought(mu, which=0):
    """The same noise gives the same rows, so they are made once."""
    data = vt.PrivateData(
        people(), SCHEMA, name="people", n_rows_public=N, budget=vt.Budget(1e5, 1e-6), ledger="memory", target=None
    )
    with planted_noise(which):
        return vt.private_rows(data, mu=mu)


def numbers_of(raw):
    """What is averaged: (rows, numbers)."""
    return np.stack([raw[:, 0] / 60, raw[:, 1], raw[:, 2], raw[:, 1] * raw[:, 2]], axis=1)


def test_a_constant_does_not_move():
    rows = bought(1.0)
    per_row = numbers_of(rows.sampled[:600])
    np.testing.assert_allclose(rows.moves(per_row + 7.0), rows.moves(per_row), atol=1e-9)


def test_standard_errors_are_those_of_means_over_releases():
    """Over 24 releases the root mean square of (mean - truth)/error: 1 is right, and chance leaves it within .55 to 1.45.

    (The relative standard deviation of a mean of 24 squares is .29; squared that is .3 to 2.1, and errors are rather large.)
    """
    truth, ratios = numbers_of(SCHEMA.read_points(people())).mean(axis=0), []
    for which in range(24):
        rows = bought(0.3, which)
        per_row = numbers_of(rows.sampled[:1024])
        ratios.append((per_row.mean(axis=0) - truth) / rows.standard_errors(per_row[None])[0])
    sizes = np.sqrt(np.mean(np.square(ratios), axis=0))
    assert (sizes > 0.3).all()
    assert (sizes < 1.45).all()


def test_without_noise_nothing_moves():
    noisy, exact = bought(0.3), bought(100.0)
    for rows, low, high in ((noisy, 1e-3, 0.2), (exact, 0.0, 2e-3)):
        sizes = np.sqrt((rows.moves(numbers_of(rows.sampled)) ** 2).sum(axis=0))
        assert (low < sizes).all()
        assert (sizes < high).all()


def test_moves_are_as_large_as_the_errors_that_noise_makes():
    """Over releases with known noise, means over many sampled rows are off by about what the moves say."""
    raw = SCHEMA.read_points(people())
    truth, ratios = numbers_of(raw).mean(axis=0), []
    for which in range(8):
        rows = bought(0.3, which)
        told = np.sqrt((rows.moves(numbers_of(rows.sampled)) ** 2).sum(axis=0))
        ratios.append((numbers_of(rows.raw(60_000, seed=which)).mean(axis=0) - truth) / told)
    assert 0.3 < np.sqrt(np.mean(np.square(ratios))) < 1.5


@pytest.mark.parametrize("first", [50, 4000])
def test_moves_are_of_the_rows_that_are_given(first):
    rows = bought(1.0)
    per_row = numbers_of(rows.sampled[:first])
    assert rows.moves(per_row).shape == (len(rows._perturbed[0]) + SCHEMA.n_columns, 4)
    assert rows.moves(np.ones((first, 2))) == pytest.approx(0, abs=1e-12)
