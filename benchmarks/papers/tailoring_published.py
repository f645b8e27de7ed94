"""The mechanisms of "Tailoring Differential Privacy to Any Explainer" as published: a baseline, not a product.

Written from the paper and the constants of its public code: neighbours by replacing one row, pure epsilon per column,
Laplace noise, R the range of predictions, m the resolution. Several of its claims do not hold (docs/errata.md): counts of
levels get half the noise that they need and are released twice, levels and bounds are read from the rows. Its epsilon is
what it claims.

- *Partial dependence*: m equidistant places (or the levels), noise Lap(m R / (n 8 eps/9)); the rest pays for a histogram.
  Its code keeps Adult as a table of whole numbers, so the model is asked at each place cut to a whole number while the curve
  is drawn at the place itself ("lagging behind", as the paper's supplement says of education-num): ``truncated``.
- *Accumulated effects, numbers*: values are jittered by U(0, range/n); m quantiles 0, 1/(m-1), ..., 1 by the mechanism of
  Kaplan, Schnapp & Stemmer (2022) for 4 eps/9; sums of differences + Lap(2R / (4 eps/9)), over n/m; accumulated, centred.
- *Accumulated effects, levels*: sums + Lap(2R / (8 eps/9)) over counts + Lap(9/eps). Such a ratio has no mean.
- *Generic plots*: rows dealt into 200 equal parts; the non-private curve of each, at m equidistant places (levels), clipped
  to the range; mean + Lap(m R / (200 8 eps/9)), where R is twice the largest absolute prediction for accumulated effects.
- *Permutation importance*: permuted squared error + Lap(2 R^2 M / (n eps)) for each of M columns.
- *Rank aggregation*: Borda points M..1 from 200 parts, + Lap((M^2 + M) / eps) (code) or Lap((ceil(M^2/2) + M) / eps) (text).

What does not depend on the noise is computed once; curves come as (draws, places) on ``Case.axis``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from global_setup import Case, published_effects

PARTS = 200
RESOLUTION = 20
QUANTILE_JITTER = 1e-5


def laplace(scale: float | np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.laplace(0.0, 1.0, shape) * scale


def interpolated(axis: np.ndarray, places: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """Each curve along straight lines, flat beyond its ends."""
    return np.stack([np.interp(axis, places, curve) for curve in curves])


def grid(case: Case, name: str, resolution: int) -> np.ndarray:
    """Levels, or equidistant places."""
    return case.axis(name) if case.categorical(name) else np.linspace(*case.bounds(name), resolution)


# --- partial dependence ------------------------------------------------------------------------------------------------


def partial_dependence(
    case: Case,
    name: str,
    epsilon: float,
    draws: int,
    rng: np.random.Generator,
    resolution: int = RESOLUTION,
    *,
    truncated: bool = False,
) -> np.ndarray:
    places = grid(case, name, resolution)
    exact = case.clipped_means(name, np.floor(places) if truncated else places)
    scale = len(places) * case.width / (case.m * 8 * epsilon / 9)
    return interpolated(case.axis(name), places, exact + laplace(scale, (draws, len(places)), rng))


# --- accumulated effects -----------------------------------------------------------------------------------------------


def exponential_quantile(
    values: np.ndarray, low: float, high: float, quantile: float, epsilon: float, rng: np.random.Generator
) -> float:
    """A point drawn with density exp(-epsilon |rank - quantile n| / (2 s)); ``values`` sorted, inside [low, high]."""
    ends = np.concatenate([[low], np.clip(values, low, high), [high]])
    lengths = np.diff(ends)
    ranks = np.arange(len(lengths))
    sensitivity = max(quantile, 1 - quantile)
    with np.errstate(divide="ignore"):
        scores = np.log(lengths) - epsilon / (2 * sensitivity) * np.abs(ranks - quantile * len(values))
    chosen = int(np.argmax(scores + rng.gumbel(size=len(scores))))
    return float(rng.uniform(ends[chosen], ends[chosen + 1]))


def approximate_quantiles(
    values: np.ndarray, low: float, high: float, quantiles: np.ndarray, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Many quantiles, the middle one first and each half on its own side (Kaplan, Schnapp & Stemmer 2022), replace-one."""
    each = epsilon / (2 * (math.log2(len(quantiles)) + 1))
    spread = 4 * QUANTILE_JITTER
    values = np.sort(values + rng.normal(0, QUANTILE_JITTER, len(values)))

    def between(inside: np.ndarray, wanted: np.ndarray, left: float, right: float) -> list[float]:
        if not len(wanted):
            return []
        middle = len(wanted) // 2
        share = float(wanted[middle])
        found = exponential_quantile(inside, left, right, share, each, rng)
        if len(wanted) == 1:
            return [found]
        cut = int(np.searchsorted(inside, found))
        below = wanted[:middle] / share
        above = (wanted[middle + 1 :] - share) / (1 - share) if middle + 1 < len(wanted) else wanted[:0]
        return [*between(inside[:cut], below, left, found), found, *between(inside[cut:], above, found, right)]

    return np.array(between(values, np.asarray(quantiles, dtype=np.float64), low - spread, high + spread))


@dataclass(frozen=True)
class Differences:
    """Exact sums of differences between neighbouring places, before any noise."""

    places: np.ndarray
    sums: np.ndarray


def quantile_differences(
    case: Case, name: str, epsilon: float, rng: np.random.Generator, resolution: int = RESOLUTION
) -> Differences:
    """One draw of the private quantiles, and the clipped differences summed between them."""
    low, high = case.bounds(name)
    column = case.column(name) + rng.uniform(0, (high - low) / case.m, case.m)
    order = np.argsort(column)
    ranked = column[order]
    places = approximate_quantiles(ranked, low, high, np.linspace(0, 1, resolution), 4 * epsilon / 9, rng)
    borders = np.minimum(np.searchsorted(ranked, places, side="left"), case.m - 1)
    inside = np.arange(borders[0], borders[-1])
    interval = np.searchsorted(borders, inside, side="right") - 1
    rows = order[inside]
    upper = case.clipped(case.predict(case.altered(name, places[interval + 1], rows)))
    lower = case.clipped(case.predict(case.altered(name, places[interval], rows)))
    return Differences(places, np.bincount(interval, upper - lower, minlength=resolution - 1))


def level_differences(case: Case, name: str) -> tuple[Differences, np.ndarray]:
    """Steps from each level to the next, over the rows of the former; and how many rows each level has."""
    curves = case.single_curves(name)
    levels = case.column(name).astype(int)
    count = len(curves.values)
    rows = np.flatnonzero(levels < count - 1)
    outputs = case.clipped(curves.outputs.astype(np.float64))
    found = outputs[rows, levels[rows] + 1] - outputs[rows, levels[rows]]
    sums = np.bincount(levels[rows], found, minlength=count - 1)
    return Differences(curves.values, sums), np.bincount(levels, minlength=count).astype(np.float64)


def accumulated(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Running sums of effects, less the mean over places: (draws, places)."""
    curves = np.concatenate([np.zeros((len(sums), 1)), np.cumsum(sums / counts, axis=1)], axis=1)
    return curves - curves.mean(axis=1, keepdims=True)


def accumulated_effects(
    case: Case,
    name: str,
    epsilon: float,
    draws: int,
    rng: np.random.Generator,
    resolution: int = RESOLUTION,
    quantile_draws: int = 1,
) -> np.ndarray:
    """``draws`` noises for each of ``quantile_draws`` private cuts of a numeric column."""
    if case.categorical(name):
        exact, counts = level_differences(case, name)
        shape = (draws * quantile_draws, len(exact.sums))
        sums = exact.sums + laplace(2 * case.width / (8 * epsilon / 9), shape, rng)
        noisy = counts[:-1] + laplace(9 / epsilon, shape, rng)
        return accumulated(sums, noisy)
    found = []
    for _ in range(quantile_draws):
        exact = quantile_differences(case, name, epsilon, rng, resolution)
        sums = exact.sums + laplace(2 * case.width / (4 * epsilon / 9), (draws, len(exact.sums)), rng)
        curves = accumulated(sums, np.full(1, case.m / resolution))
        found.append(interpolated(case.axis(name), exact.places, curves))
    return np.concatenate(found)


# --- generic plots -----------------------------------------------------------------------------------------------------


def parts_of(rows: np.ndarray, parts: int = PARTS) -> list[np.ndarray]:
    ends = (np.arange(parts + 1) * (len(rows) / parts)).astype(int)
    return [rows[start:end] for start, end in itertools.pairwise(ends)]


def generic_mean(case: Case, name: str, kind: str, rng: np.random.Generator, resolution: int = RESOLUTION) -> np.ndarray:
    """The mean of the parts' clipped curves at ``grid``, before noise: one deal of the rows."""
    places = grid(case, name, resolution)
    parts = parts_of(rng.permutation(case.m))
    curves = [np.interp(places, *part_curve(case, name, kind, rows, resolution)) for rows in parts]
    low, high = generic_range(case, kind)
    return np.clip(np.stack(curves), low, high).mean(axis=0)


def part_curve(
    case: Case, name: str, kind: str, rows: np.ndarray, resolution: int = RESOLUTION
) -> tuple[np.ndarray, np.ndarray]:
    """The non-private curve of some rows: values and curve."""
    if kind == "pdp":
        return _partial_of(case, name, rows)
    return published_effects(case, name, rows, resolution)


def _partial_of(case: Case, name: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = case.single_curves(name)
    present = np.unique(np.searchsorted(known.values, case.column(name)[rows]))
    return known.values[present], known.outputs[np.ix_(rows, present)].mean(axis=0, dtype=np.float64)


def generic_range(case: Case, kind: str) -> tuple[float, float]:
    largest = max(abs(case.low), abs(case.high))
    return (case.low, case.high) if kind == "pdp" else (-largest, largest)


def generic_plot(
    case: Case, name: str, kind: str, means: list[np.ndarray], epsilon: float, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Noise on ``generic_mean`` of several deals."""
    low, high = generic_range(case, kind)
    count = len(means[0])
    scale = count * (high - low) / (PARTS * 8 * epsilon / 9)
    places = grid(case, name, count)
    return np.concatenate(
        [interpolated(case.axis(name), places, mean + laplace(scale, (draws, count), rng)) for mean in means]
    )


# --- rankings ----------------------------------------------------------------------------------------------------------


def importance_scale(width: float, columns: int, rows: int, epsilon: float) -> float:
    """Of the noise on each permuted squared error."""
    return 2 * width**2 * columns / (rows * epsilon)


def borda_sensitivity(items: int, version: str) -> int:
    """What a changed vote can change in L1: as the code, the text, or the truth has it.

    Votes over M items differ by at most the sum of |i - (M+1-i)|, which is floor(M^2/2).
    """
    return {"code": items**2 + items, "text": -(-(items**2) // 2) + items, "exact": items**2 // 2}[version]


def borda_points(scores: np.ndarray) -> np.ndarray:
    """(voters, items) scores to points: M for the largest, 1 for the smallest."""
    return np.argsort(np.argsort(scores, axis=1, kind="stable"), axis=1, kind="stable") + 1.0


def concordant(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The share of pairs in the same order: of scores ``found`` (draws, items) with ``truth`` (items,) or one per draw."""
    found = np.atleast_2d(found)
    truth = np.broadcast_to(truth, found.shape)
    first, second = np.triu_indices(found.shape[1], 1)
    same = np.sign(truth[:, first] - truth[:, second]) * np.sign(found[:, first] - found[:, second]) > 0
    return same.mean(axis=1)
