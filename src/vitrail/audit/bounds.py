"""From counts to certainty: how private a mechanism can still be, given how often an event was seen.

An event E is fixed in advance. It is seen ``hits`` times in ``trials`` draws on one dataset (its probability there is q)
and ``false_alarms`` times in as many draws on the neighbour (probability p). Differential privacy bounds q by p:

    mu-GDP             q <= Phi(Phi^-1(p) + mu)       so  mu      >= Phi^-1(q) - Phi^-1(p)
    (epsilon, delta)   q <= e^epsilon p + delta       so  epsilon >= log((q - delta) / p)

Both right sides, the *measures*, rise in q and fall in p. A confidence region for (p, q) therefore gives a lower bound of
mu or epsilon, its smallest measure, and nothing is assumed about the mechanism but independent draws.

*The region.* The exact binomial tails P1 = P(Bin(trials, q) >= hits) and P0 = P(Bin(trials, p) <= false_alarms) are, at
the true (p, q), independent and stochastically at least uniform (this is Clopper & Pearson 1934). Two intervals of level
alpha/2 each waste much of that: the corner of a box is farther away than its sides. Instead the two are added as normal
scores (Stouffer): with w1^2 + w0^2 = 1 fixed in advance, Z = w1 Phi^-1(1 - P1) + w0 Phi^-1(1 - P0) is stochastically at
most N(0, 1), so {(p, q): Z < c} with Phi(-c) = (1 - ``BOX_SHARE``) alpha misses the truth with at most that probability.
That region is a half plane, unbounded, so it is cut (Berger & Boos 1994) by Clopper-Pearson bounds q > q_box, p < p_box
which share the remaining ``BOX_SHARE`` of alpha. By the union bound the intersection misses with probability at most alpha.

*Its minimum.* For given p the region is q > q_low(p), which is a Clopper-Pearson bound at a level that depends on p and
rises with p. Between two grid points the measure is thus at least measure(q_low(left), right): the grid makes the bound
smaller, never larger. For a symmetric event of a Gaussian mechanism the bound lies 3.1 sqrt(2) standard errors of one
probit below the truth at 99.9 % confidence, against 2 x 3.3 for the two intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtr, betaincinv, ndtr, ndtri

from .._types import Floats

Measure = Callable[[Floats, Floats], Floats]

# Share of the error probability that goes to the box around the half plane.
BOX_SHARE = 0.1

GRID_CELLS = 2000
SMALLEST_WEIGHT = 0.1


def mu_measure(hit_rate: Floats, false_rate: Floats) -> Floats:
    """The smallest mu for which mu-GDP allows an event these two probabilities."""
    with np.errstate(invalid="ignore"):
        return np.asarray(ndtri(hit_rate) - ndtri(false_rate), dtype=np.float64)


def epsilon_measure(delta: float) -> Measure:
    """The smallest epsilon for which (epsilon, delta)-DP allows an event these two probabilities."""

    def measure(hit_rate: Floats, false_rate: Floats) -> Floats:
        excess = np.maximum(np.asarray(hit_rate) - delta, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(excess) - np.log(false_rate), dtype=np.float64)

    return measure


def clopper_pearson_lower(hits: int, trials: int, level: float | Floats) -> Floats:
    """Exact lower confidence bound of a probability, wrong with probability at most ``level``."""
    level = np.asarray(level, dtype=np.float64)
    if hits == 0:
        return np.zeros_like(level)
    return np.asarray(betaincinv(hits, trials - hits + 1, level), dtype=np.float64)


def clopper_pearson_upper(hits: int, trials: int, level: float | Floats) -> Floats:
    """Exact upper confidence bound of a probability, wrong with probability at most ``level``."""
    return 1.0 - clopper_pearson_lower(trials - hits, trials, level)


def clopper_pearson(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Both bounds, each wrong with probability at most ``level``."""
    return float(clopper_pearson_lower(hits, trials, level)), float(clopper_pearson_upper(hits, trials, level))


def wilson(hits: Floats, trials: int, z: float) -> tuple[Floats, Floats]:
    """Approximate (lower, upper) bounds in closed form: for choosing an event, never for deciding about it."""
    rate = hits / trials
    centre = rate + z * z / (2 * trials)
    half_width = z * np.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return np.clip((centre - half_width) / scale, 0.0, 1.0), np.clip((centre + half_width) / scale, 0.0, 1.0)


def two_interval_bound(measure: Measure, hits: int, false_alarms: int, trials: int, confidence: float) -> float:
    """The textbook bound: one Clopper-Pearson interval for each rate, each at half the error probability."""
    level = (1 - confidence) / 2
    bound = float(measure(clopper_pearson_lower(hits, trials, level), clopper_pearson_upper(false_alarms, trials, level)))
    return max(bound, 0.0) if not math.isnan(bound) else 0.0


def joint_bound(
    measure: Measure,
    hits: int,
    false_alarms: int,
    trials: int,
    confidence: float,
    weights: tuple[float, float] = (1.0, 1.0),
    grid_cells: int = GRID_CELLS,
) -> float:
    """Lower confidence bound of ``measure`` from the joint region of the module's docstring, at least 0.

    Parameters
    ----------
    measure : callable
        ``mu_measure`` or ``epsilon_measure(delta)``: rises in the hit rate, falls in the false alarm rate.
    hits, false_alarms : int
        How often the event was seen, out of ``trials`` draws on either dataset.
    weights : (float, float)
        Relative weights of the hit rate's and the false alarm rate's evidence, fixed before the counts were seen. Best
        in proportion to the standard errors of the measure in either rate (``best_weights``).

    Examples
    --------
    >>> round(joint_bound(mu_measure, 69_146, 30_854, 100_000, 0.999), 3)
    0.981
    >>> round(two_interval_bound(mu_measure, 69_146, 30_854, 100_000, 0.999), 3)
    0.973
    """
    alpha = 1 - confidence
    norm = math.hypot(*weights)
    weight_hits, weight_false = (max(weight / norm, SMALLEST_WEIGHT) for weight in weights)
    norm = math.hypot(weight_hits, weight_false)
    weight_hits, weight_false = weight_hits / norm, weight_false / norm
    bar = -float(ndtri((1 - BOX_SHARE) * alpha))
    box_level = BOX_SHARE * alpha / 2
    hit_floor = float(clopper_pearson_lower(hits, trials, box_level))
    false_ceiling = float(clopper_pearson_upper(false_alarms, trials, box_level))

    # Left of this end only the box's floor holds for q; p is so small there that the minimum lies elsewhere.
    left_end = min(max(float(clopper_pearson_lower(false_alarms, trials, 1e-7)), 1e-12), false_ceiling / 2)
    false_rate = ndtr(np.linspace(ndtri(left_end), ndtri(min(false_ceiling, 1 - 1e-16)), grid_cells + 1))
    false_rate[-1] = false_ceiling  # ndtr(ndtri(p)) may round below p, and the grid must reach the box's side
    with np.errstate(invalid="ignore"):
        false_score = -ndtri(bdtr(float(false_alarms), trials, false_rate[:-1]))
        level = ndtr(-(bar - weight_false * false_score) / weight_hits)
    hit_low = np.maximum(clopper_pearson_lower(hits, trials, level), hit_floor)
    inside = measure(hit_low, false_rate[1:])
    left = measure(np.array([hit_floor]), false_rate[:1])
    bound = float(np.concatenate([left, inside]).min())  # NaN, from a rate of 0 or 1 on both sides, stays NaN
    return max(bound, 0.0) if math.isfinite(bound) else 0.0


def best_weights(measure: Measure, hits: float, false_alarms: float, trials: int) -> tuple[float, float]:
    """Standard errors of the measure in either rate, from counts of *other* draws than those it will be used on."""
    hit_rate, false_rate = (hits + 0.5) / (trials + 1), (false_alarms + 0.5) / (trials + 1)

    def error(rate: float, of: Callable[[Floats], Floats]) -> float:
        step = 1e-3 * min(rate, 1 - rate)
        low, high = (float(of(np.asarray(rate + side * step))) for side in (-1, 1))
        slope = abs(high - low) / (2 * step)
        return slope * math.sqrt(rate * (1 - rate)) if math.isfinite(slope) else 1.0

    return (
        error(hit_rate, lambda q: measure(q, np.asarray(false_rate))),
        error(false_rate, lambda p: measure(np.asarray(hit_rate), p)),
    )
