"""Bands: how far noise of the known law would have moved the values.

Fresh noise is drawn from the law of the release, added to the released statistics, and the problem is solved again, 59
times. The half-width is the 57th smallest of how far the value moved, spread and bias together: were the move from the truth
to the release drawn from the same law as these, it would be covered with probability 57/60.

*Calibration.* Released statistics hold noise already: where the ball binds, resampled problems start from an estimate that
noise has turned, and are turned by less than it was. In the model case phi = R b/|b|, noise of total size sqrt(nu) |b| turns
the truth into the estimate by an angle with cosine (1 + nu)^(-1/2), and the estimate into resampled ones by one with cosine
c = ((1 + nu)/(1 + 2 nu))^(1/2): both are near 1 where signal dominates, and where noise does the true error is up to 1.85
times the resampled one. c is seen, as the mean cosine between the values and the resampled ones. The factor used is 1 + k s
sqrt(1 - c), s the share of draws in which the ball binds, k = ``TURN_FACTOR``, fitted on Adult, ACS income and a simulation.

How often bands cover the solution without noise is measured in benchmarks/local_bands.py, also on data that had no part in
the fit; single columns may be covered more rarely than all together. The simulation of tests/explain/linear/test_bands.py
goes from signal to noise.

Not in the bands: sampling error (the rows are what they are), rows whose weight the vault lowered, and the choice of the
strongest columns, where one is made.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...explain.linear.statistics import LocalFit, LocalStatistics

Floats = NDArray[np.float64]

DRAWS = 59
FEWEST_DRAWS = 19
"""With fewer no order statistic has coverage 0.95."""
COVERAGE = 0.95
TURN_FACTOR = 1.0
BATCH_NUMBERS = 4_000_000
"""How many numbers of noise are held at a time."""


@dataclass(frozen=True, eq=False)
class Bands:
    """Half-widths of the bands of the values, (points, columns), in units of f; ``turn`` is the mean cosine c per point."""

    half_widths: Floats
    turn: Floats


def bands_of(
    statistics: LocalStatistics,
    fit: LocalFit,
    radius: float,
    *,
    columns: NDArray[np.bool_] | None = None,
    draws: int = DRAWS,
) -> Bands:
    """Calibrated half-widths for a solved batch.

    Parameters
    ----------
    statistics : LocalStatistics
    fit : LocalFit
        What ``statistics.solve(radius, columns)`` returned.
    radius, columns
        As for ``solve``.
    draws : int
        How often noise is drawn anew per point. The draws are seeded by the release: the same release has the same bands.
    """
    generator = np.random.default_rng(_seed(statistics))
    points, size = len(statistics.a), statistics.a.shape[1]
    values = statistics.values(fit)
    moves, cosines, bound = np.empty(values.shape), np.empty(points), np.empty(points)
    rank = min(math.ceil(COVERAGE * (draws + 1)), draws) - 1
    together = max(1, BATCH_NUMBERS // (draws * size * size))
    for start in range(0, points, together):
        places = slice(start, min(start + together, points))
        count = places.stop - places.start
        noise_a, noise_b = statistics.noise_draws(draws, generator, places)
        again = statistics.solve_again(radius, places, noise_a, noise_b, None if columns is None else columns[places], draws)
        moved = statistics.values(again, np.repeat(statistics.levels[places], draws, axis=0)).reshape(count, draws, -1)
        moves[places] = np.partition(np.abs(moved - values[places, None]), rank, axis=1)[:, rank]
        cosines[places] = _cosines(values[places], moved).mean(axis=1)
        on_sphere = np.linalg.norm(again.slopes, axis=1) > radius * (1 - 1e-6)
        bound[places] = on_sphere.reshape(count, draws).mean(axis=1)
    factor = 1 + TURN_FACTOR * bound * np.sqrt(1 - np.clip(cosines, 0.0, 1.0))
    return Bands(moves * factor[:, None], cosines)


def _cosines(values: Floats, resampled: Floats) -> Floats:
    lengths = np.linalg.norm(values, axis=1)[:, None] * np.linalg.norm(resampled, axis=2)
    products = np.einsum("qi,qdi->qd", values, resampled)
    cosines: Floats = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return cosines


def _seed(statistics: LocalStatistics) -> int:
    """Public numbers in, public number out."""
    return int.from_bytes(hashlib.sha256(statistics.b.tobytes()).digest()[:8], "big")


def expected_width(statistics: LocalStatistics, radius: float, *, draws: int = DRAWS) -> float:
    """The median half-width of the bands to expect of problems like these, in units of f; their noise is yet to come."""
    fit = statistics.solve(radius)
    return float(np.median(bands_of(statistics, fit, radius, draws=draws).half_widths))
