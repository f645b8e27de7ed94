"""Draws of a release without the pass over the rows: exact sums plus noise of the law that the vault's plan states.

The vault adds Gaussian noise to exact sums, std sigma on the diagonal and the cross terms and sigma/sqrt(2) off the diagonal
(rounded on a grid thousands of times finer). The sums of many points are computed once; a thousand releases then take
seconds. Real releases through the ledger are made beside them wherever these draws count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import vitrail as vt
from exact import BLOCK_ROWS
from local_setup import Case
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import LocalStatistics, scales_of
from vitrail.vault import rehearse


def symmetric_noise(shape: tuple[int, int, int], sigma: float, rng: np.random.Generator) -> np.ndarray:
    upper = np.triu(rng.normal(0.0, sigma / math.sqrt(2), shape), 1)
    noise = upper + upper.transpose(0, 2, 1)
    noise[:, np.arange(shape[1]), np.arange(shape[1])] = rng.normal(0.0, sigma, shape[:2])
    return noise


def drawn_statistics(
    problem: LocalProblem,
    case: Case,
    of: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    sigma: float,
    rng: np.random.Generator | None,
) -> LocalStatistics:
    """Released statistics of rows ``of``, each from its own noise of this sigma; none where ``rng`` is None.

    ``a`` and ``b`` are exact means of u u^T and f u, u = d or (1, d); the question releases sums of (kappa, d) and eta f.
    """
    scales = scales_of(problem)
    size = np.ones(a.shape[1])
    if problem.intercept:
        size[0] = scales.intercept
    gram = case.m * a * size[:, None] * size
    cross = case.m * b * size * scales.label
    if rng is not None:
        gram = gram + symmetric_noise(gram.shape, sigma, rng)
        cross = cross + rng.normal(0.0, sigma, cross.shape)
    return LocalStatistics.of_sums(problem, case.data.raw[of], gram, cross, sigma, case.m, scales)


def rehearsed(asked: vt.ProductSum, case: Case, mu: float, draws: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Independent releases of a product sum by the vault's own rehearsal: one exact pass, ``draws`` times its noise."""
    shapes = list(zip(asked.lefts, asked.rights, strict=True))
    ends = np.cumsum([left * right for left, right in shapes])
    flats = rehearse(
        asked, case.data.frame, case.data.schema, mu=mu, n_rows_public=case.m, draws=draws, block_rows=BLOCK_ROWS
    )
    for flat in flats:
        yield tuple(part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True))
