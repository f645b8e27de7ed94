"""Streams of questions about disjoint parts of the rows, answered from exact statistics plus the noise law of the vault.

Each row draws its part, so the parts compose in parallel: the account pays for the dearest of them. Passes over a million
rows for every question of thousands of streams would take days; the exact sums around all queries are computed once, and
every way of answering then runs on them. A few real releases are made beside them wherever these figures count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import exact
from local_draws import symmetric_noise
from local_setup import Case
from papers.patel_published import Rehearsal
from vitrail.accounting import Cost
from vitrail.explain.linear import Adaptive
from vitrail.explain.linear.descent import Descended, Stream, descend
from vitrail.explain.recipe import Recipe, Terms, cost_of
from vitrail.solve.linear.descent import Gradients, History, Past, step_sizes
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import LocalStatistics, scales_of
from vitrail.solve.linear.weights import stable

PARTS = 3
AT_ONCE = 10**7
"""Numbers per batch of noisy matrices, to keep memory small where features are many."""


@dataclass(frozen=True)
class Third:
    """One part of the rows, its queries, and the truth around them. ``rows`` is what the noise is divided by."""

    rows: int
    raw: np.ndarray
    centres: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def statistics(self, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = self._places[centre.tobytes()]
        return self.a[place], self.b[place]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {one.tobytes(): place for place, one in enumerate(self.centres)}

    @cached_property
    def best(self) -> np.ndarray:
        return exact.optimum(self.a, self.b)

    def excess(self, phi: np.ndarray) -> np.ndarray:
        return exact.excess_loss(self.a, self.b, phi, self.best)

    def first(self, count: int) -> Third:
        return Third(self.rows, self.raw[:count], self.centres[:count], self.a[:count], self.b[:count])


def parts_of(m: int) -> tuple[np.ndarray, np.random.Generator]:
    """The part each of m rows draws, and the generator that draws the queries."""
    rng = np.random.default_rng(11)
    return rng.integers(0, PARTS, m), rng


def third_of(case: Case, rows: np.ndarray, of: np.ndarray) -> Third:
    """The truth around rows ``of``, computed from rows ``rows``: from the cache where possible."""
    digest = hashlib.sha256(of.tobytes()).hexdigest()[:16]

    def made() -> dict[str, np.ndarray]:
        x = case.data.x
        ((a, b),) = exact.statistics(x[rows], case.hard[rows], x[of], [stable(1.0)])
        return {"a": a, "b": b}

    stored = case.cache.arrays(f"third-{case.name}-{len(rows)}-{digest}", made)
    return Third(len(rows), case.data.raw[of], case.data.x[of], stored["a"], stored["b"])


def thirds(case: Case, queries: int) -> Iterator[Third]:
    part_of, rng = parts_of(case.m)
    for part in range(PARTS):
        yield third_of(case, np.flatnonzero(part_of == part), rng.choice(case.m, queries, replace=False))


def non_adaptive(gradients: Gradients, third: Third, mu: float, rng: np.random.Generator) -> tuple[np.ndarray, Cost]:
    """Sound Algorithm 1 for every query on its own, at the library's own number of steps."""
    sizes = step_sizes(gradients, mu, third.rows)
    steps = [(float(eta), 1 / len(sizes)) for eta in sizes]
    rehearsal = Rehearsal(gradients, third.statistics, third.rows, rng)
    phis, spent = [], Cost()
    for centre in third.centres:

        def recipe(terms: Terms, z: np.ndarray = centre) -> Recipe[Descended]:
            return descend(gradients, z[None], np.zeros((1, gradients.problem.size)), steps, terms)

        ended = rehearsal.run(recipe, mu)
        phis.append(ended.phi[0])
        spent = spent + cost_of(ended.releases)
    return np.array(phis), spent


def protocol(
    gradients: Gradients, third: Third, mu: float, rng: np.random.Generator, *, enhanced: bool
) -> tuple[np.ndarray, Cost, History, list[Past]]:
    """The sound protocol over all queries: phis, cost, the history it leaves, and what each query got."""
    options, history = Adaptive(enhanced=enhanced), History(gradients.problem)
    rehearsal = Rehearsal(gradients, third.statistics, third.rows, rng)
    entries = []
    for raw in third.raw:

        def recipe(terms: Terms, point: np.ndarray = raw[None]) -> Recipe[tuple[History, list[Past]]]:
            return Stream(gradients, history, options).entries_recipe(point, terms)

        _, (past,) = rehearsal.run(recipe, mu)
        history.take(past)
        entries.append(past)
    return np.array([past.phi for past in entries]), history.cost, history, entries


def per_query_statistics(
    problem: LocalProblem, third: Third, mu: float, rng: np.random.Generator
) -> tuple[np.ndarray, Cost]:
    """One release of statistics per query: the library's own scales, structure and solver on exact sums plus noise.

    Where the problem has an intercept, statistics are those of (1, x - z); slopes are returned either way.
    """
    scales = scales_of(problem)
    size = np.ones(third.a.shape[1])
    if problem.intercept:
        size[0] = scales.intercept
    sigma = scales.l2_bound / mu
    step = max(1, AT_ONCE // third.a.shape[1] ** 2)
    phis = []
    for start in range(0, len(third.raw), step):
        place = slice(start, start + step)
        gram = third.rows * third.a[place] * size[:, None] * size
        gram += symmetric_noise(gram.shape, sigma, rng)
        cross = third.rows * third.b[place] * size * scales.label
        cross += rng.normal(0.0, sigma, cross.shape)
        found = LocalStatistics.of_sums(problem, third.raw[place], gram, cross, sigma, third.rows, scales)
        slopes = found.explain().slopes if problem.intercept else found.solve().slopes
        phis.append(found.features(slopes))
    return np.concatenate(phis), Cost(Cost.of_mu(mu).pico_mu_squared * len(third.raw))
