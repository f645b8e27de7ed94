"""What an adversary may look at: scalar statistics learned from draws on either dataset.

A candidate maps outputs to one score per draw. Candidates are learned on one part of the draws, compared on a second, and
the winner is judged on a third, so that a poor candidate costs power and never validity. They are ordered from the plain to
the far-fetched:

- the coordinates, and for several coordinates linear discriminants: the mean difference whitened by the pooled covariance
  (two ridges: the small one finds noise that cancels between coordinates), by the variances alone, and not at all;
- distances from the centre, which see a variance that depends on the data;
- likelihood ratios over bins and over repeated values, which see atoms, gaps and outputs possible on one side only;
- the same over residues modulo powers of two, and over the largest power of two that divides a number: what an exact sum
  under rounded noise, or a floating-point noise, leaves in the low bits (Mironov 2012). This one does refute
  ``value + normal()`` in double precision, whatever its sigma: 0 + z keeps the low bits of z, 1 + z loses some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .._types import Floats, Indices
from .draws import Outputs

Score: TypeAlias = Callable[[Outputs], Floats]
View: TypeAlias = tuple[str, Score]

# How the names of candidates begin that look at the number format rather than at the number.
LOW_BITS = "low bits: "

RESIDUE_BITS_BELOW_SPREAD = (4, 10, 20, 30)
LIKELIHOOD_BINS, REPEATS_OF_AN_ATOM = 48, 8
RIDGES, LARGEST_COVARIANCE = (1e-9, 1e-2), 512
SCREENED_DRAWS, SCREENED_ELEMENTS = 4000, 4_000_000
COORDINATES_KEPT, VIEWS_KEPT = 3, 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to look at outputs.

    ``plain`` candidates have no freedom beyond a direction; the others must clear a stricter bar when compared.
    """

    name: str
    score: Score
    plain: bool = False


def learn(first: Outputs, second: Outputs) -> list[Candidate]:
    """Candidates learned from draws on either dataset."""
    candidates: list[Candidate] = []
    width = first.values.shape[1]
    if width:
        scalars, low_bits = _views(first, second)
        directions = _directions(first, second) if width > 1 else []
        candidates += [Candidate(name, score, plain=True) for name, score in scalars + directions]
        candidates += [_distance(name, score, first, second) for name, score in scalars + directions[:1]]
        candidates += _radii(first, second) if width > 1 else []
        candidates += [_likelihood_ratio(*view, first, second) for view in scalars + directions[:1] + low_bits]
    by_code = [_code_ratio(name, m, first, second) for m, name in enumerate(first.code_names)]
    return candidates + [candidate for candidate in by_code if candidate is not None]


# Views of single columns


def _views(first: Outputs, second: Outputs) -> tuple[list[View], list[View]]:
    """The coordinates worth a look as they are, and those worth one in the low bits."""
    width = first.values.shape[1]
    coordinates = [_view(name, j, lambda column: column) for j, name in enumerate(first.value_names)]
    spread = _pooled_spread(first.values, second.values)
    low_bits = [view for j in range(width) for view in _low_bit_views(first.value_names[j], j, float(spread[j]))]
    if width == 1:
        return coordinates, low_bits
    draws = min(SCREENED_DRAWS, len(first.values), max(500, SCREENED_ELEMENTS // (width * 7)))
    heads = first.between(0, draws), second.between(0, draws)
    shift = np.abs(_middle(first.values) - _middle(second.values)) / np.where(spread > 0, spread, 1e-300)
    kept = list(np.argsort(-shift)[:COORDINATES_KEPT])
    kept += [j for j in _most_surprising(coordinates, heads)[:COORDINATES_KEPT] if j not in kept]
    return [coordinates[j] for j in kept], [low_bits[i] for i in _most_surprising(low_bits, heads)[:VIEWS_KEPT]]


def _view(name: str, column: int, look: Callable[[Floats], Floats]) -> View:
    """A fixed function of one numeric column."""
    return name, lambda outputs: look(outputs.values[:, column])


def _most_surprising(views: list[View], heads: tuple[Outputs, Outputs]) -> Indices:
    return np.argsort([_surprise(score(heads[0]), score(heads[1])) for _, score in views])[::-1]


def _low_bit_views(name: str, column: int, spread: float) -> list[View]:
    exponents = {0}
    if spread > 0:
        exponents |= {int(np.floor(np.log2(spread))) - bits for bits in RESIDUE_BITS_BELOW_SPREAD}
    views = [_view(f"{LOW_BITS}{name} modulo 2^{e}", column, _residue(2.0**e)) for e in sorted(exponents, reverse=True)]
    return [*views, _view(f"{LOW_BITS}power of two dividing {name}", column, _granularity)]


def _residue(modulus: float) -> Callable[[Floats], Floats]:
    def look(column: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.mod(column, modulus), nan=-1.0)

    return look


def _granularity(column: Floats) -> Floats:
    """Exponent of the largest power of two that divides each number (a large one for zero)."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(column), column, 0.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, 2000.0, exponent - 53.0 + np.log2(np.maximum(lowest, 1.0)))


def _surprise(first: Floats, second: Floats) -> float:
    """How unlike two samples look: the larger of the Kolmogorov-Smirnov score and the score of the likeliest atom."""
    pooled = np.concatenate([first, second])
    order = np.argsort(pooled, kind="stable")
    ends = np.flatnonzero(np.append(pooled[order][1:] != pooled[order][:-1], True))
    signed = np.cumsum(np.where(order < len(first), 1.0, -1.0))[ends]
    smirnov = np.abs(signed).max() / np.sqrt(2 * len(first))
    counts = np.diff(ends, prepend=-1)
    atom = (np.abs(np.diff(signed, prepend=0.0)) / np.sqrt(counts)).max()
    return float(max(smirnov, atom - 2.0))  # an atom is the best of many: it starts behind


# Directions and distances


def _finite(values: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(values.sum()):  # one pass and no copy where there is nothing to replace
            return values
    return np.where(np.isfinite(values), values, 0.0)


def _middle(values: Floats) -> Floats:
    return np.asarray(_finite(values).mean(axis=0), dtype=np.float64)


def _pooled_spread(first: Floats, second: Floats) -> Floats:
    """Standard deviation within either sample; exactly 0 for a column that is constant within both."""
    samples = _finite(first), _finite(second)
    constant = np.logical_and(*((sample == sample[0]).all(axis=0) for sample in samples))
    spread = np.sqrt(sum(sample.var(axis=0) for sample in samples) / 2)
    return np.where(constant, 0.0, spread)


def _directions(first: Outputs, second: Outputs) -> list[View]:
    """Linear discriminants. Columns without spread are left to their own coordinate: one look tells them apart."""
    spread = _pooled_spread(first.values, second.values)
    columns = np.flatnonzero(spread > 0)
    if not len(columns):
        return []
    scale = spread[columns]
    standard = [_finite(outputs.values[:, columns]) / scale for outputs in (first, second)]
    shift = standard[1].mean(axis=0) - standard[0].mean(axis=0)
    weights = []
    if len(columns) <= LARGEST_COVARIANCE:
        centred = [side - side.mean(axis=0) for side in standard]
        correlation = sum(side.T @ side for side in centred) / (2 * len(first.values))
        for ridge in RIDGES:
            weight = np.linalg.solve(correlation + ridge * np.eye(len(shift)), shift)
            weights.append((f"linear discriminant (ridge {ridge:g})", weight))
    weights.append(("mean difference over variances", shift))
    weights.append(("mean difference", shift * scale * scale))

    def score_of(weight: Floats) -> Score:
        largest = np.abs(weight).max()
        per_unit = (weight / largest if largest > 0 else weight) / scale
        return lambda outputs: np.asarray(_finite(outputs.values[:, columns]) @ per_unit, dtype=np.float64)

    return [(name, score_of(weight)) for name, weight in weights]


def _distance(name: str, score: Score, first: Outputs, second: Outputs) -> Candidate:
    pooled = np.concatenate([score(first), score(second)])
    centre = float(np.partition(pooled, len(pooled) // 2)[len(pooled) // 2])

    def distance(outputs: Outputs) -> Floats:
        with np.errstate(invalid="ignore"):  # minus infinity, which stands for NaN, is at no distance from itself
            return np.nan_to_num(np.abs(score(outputs) - centre), nan=0.0, posinf=np.inf)

    return Candidate(f"distance of {name} from its median", distance)


def _radii(first: Outputs, second: Outputs) -> list[Candidate]:
    centre = (_middle(first.values) + _middle(second.values)) / 2
    spread = _pooled_spread(first.values, second.values)
    scale = np.where(spread > 0, spread, np.inf)

    def standardised(outputs: Outputs) -> Floats:
        return np.asarray((_finite(outputs.values) - centre) / scale, dtype=np.float64)

    return [
        Candidate("distance from the centre", lambda outputs: np.square(standardised(outputs)).sum(axis=1)),
        Candidate("largest coordinate", lambda outputs: np.abs(standardised(outputs)).max(axis=1)),
    ]


# Likelihood ratios


def _ratio(
    name: str, cell: Callable[[Outputs], Indices], cells: int, pair: tuple[Outputs, Outputs], *, plain: bool
) -> Candidate:
    """Smoothed log-likelihood ratio over ``cells`` cells; plain ones have a last cell for what tells nothing."""
    first, second = (np.bincount(cell(outputs), minlength=cells) + 0.5 for outputs in pair)
    ratio = np.log(second / first)
    if plain:
        ratio[-1] = 0.0
    return Candidate(f"likelihood ratio of {name}", lambda outputs: ratio[cell(outputs)], plain)


def _likelihood_ratio(name: str, score: Score, first: Outputs, second: Outputs) -> Candidate:
    """Of a value that repeats by itself, of the others by quantile bins."""
    pooled = np.concatenate([score(first), score(second)])
    distinct, counts = np.unique(pooled, return_counts=True)
    atoms = distinct[counts >= REPEATS_OF_AN_ATOM]
    rest = np.sort(pooled[~np.isin(pooled, atoms)])
    edges = np.unique(rest[np.linspace(0, len(rest) - 1, LIKELIHOOD_BINS + 1).astype(int)[1:-1]]) if len(rest) else rest

    def cell(outputs: Outputs) -> Indices:
        values = score(outputs)
        bins = len(atoms) + np.searchsorted(edges, values, side="right")
        return np.where(np.isin(values, atoms), np.searchsorted(atoms, values), bins)

    return _ratio(name, cell, len(atoms) + len(edges) + 1, (first, second), plain=False)


def _code_ratio(name: str, column: int, first: Outputs, second: Outputs) -> Candidate | None:
    """Over categories; a category not seen often enough tells nothing."""
    known, counts = np.unique(np.concatenate([first.codes[:, column], second.codes[:, column]]), return_counts=True)
    known = known[counts >= REPEATS_OF_AN_ATOM]
    if not len(known):
        return None

    def cell(outputs: Outputs) -> Indices:
        codes = outputs.codes[:, column]
        index = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        return np.where(known[index] == codes, index, len(known))

    return _ratio(name, cell, len(known) + 1, (first, second), plain=True)
