"""Algorithms 1, 2 and 3 of Patel, Shokri & Zick AS PUBLISHED: baselines and targets of audits, not private as claimed.

Not private as claimed, because (see MATH in the docs): Algorithm 2 lets the exact gradient norm beta set sigma, T' and the
step size, and T' is visible; its exponential mechanism assumes sensitivity 1/m where c/m is needed; Algorithm 3 stops when a
composition bound is crossed, which is no privacy filter; and the sensitivity c/m of Lemma 3.1 is 2c/m when the normaliser m
moves with the row. Algorithm 1 is valid on slack alone: its noise is some 18 times larger than needed.

Everything runs on exact statistics of the rows around a point, A = mean alpha d d^T and b = mean alpha f d: the gradient at
phi is 2 (A phi - b), so no pass over the rows is needed and thousands of queries are fast. :class:`Rehearsal` answers the
questions of the library's own sound protocol in the same way, with the noise law of the vault, for experiments on long
streams.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from vitrail.accounting import Basis, Cost
from vitrail.accounting.guarantee import Guarantee
from vitrail.accounting.releases import Release
from vitrail.explain.linear.descent import GradientRows
from vitrail.explain.recipe import Ask, Recipe, Terms, drive
from vitrail.explain.split import mu_of_units
from vitrail.solve.linear.descent import Gradients

R = TypeVar("R")
DELTA = 1e-6
Statistics = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From a point to (A, b)."""


def gradient(a: np.ndarray, b: np.ndarray, phi: np.ndarray) -> np.ndarray:
    return 2 * (a @ phi - b)


def projected(phi: np.ndarray) -> np.ndarray:
    """The nearest phi in the unit ball."""
    return phi / max(1.0, float(np.linalg.norm(phi)))


def published_sigma(m: int, epsilon: float, delta: float, iterations: int, c: float = 1.0) -> float:
    """Line 1 of Algorithm 1, times c of the weight."""
    return c * math.sqrt(
        16 * iterations * math.log(math.e + math.sqrt(iterations) * epsilon / delta) * math.log(iterations / delta)
    ) / (m * epsilon)  # fmt: skip


def dpgd_explain(
    a: np.ndarray, b: np.ndarray, start: np.ndarray, sigma: float, steps: int, c0: float, generator: np.random.Generator
) -> np.ndarray:
    """The procedure DPGD-Explain: steps - 1 noisy gradients, step c0/sqrt(t), projection to the unit ball."""
    phi = start
    for t in range(1, steps):
        noisy = gradient(a, b, phi) + generator.normal(0.0, sigma, len(b))
        phi = projected(phi - c0 / math.sqrt(t) * noisy)
    return phi


def algorithm_1(
    a: np.ndarray,
    b: np.ndarray,
    m: int,
    epsilon: float,
    delta: float,
    generator: np.random.Generator,
    *,
    iterations: int = 300,
    c: float = 1.0,
) -> np.ndarray:
    """One explanation as published: start 0, c0 = 1/sqrt(1 + n sigma^2)."""
    sigma = published_sigma(m, epsilon, delta, iterations, c)
    c0 = 1 / math.sqrt(1 + len(b) * sigma**2)
    return dpgd_explain(a, b, np.zeros(len(b)), sigma, iterations, c0, generator)


def learning_rate(n: int, sigma: float, beta: float, iterations: int) -> float:
    """Equation 11: the c of the steps c/sqrt(t)."""
    noise = n * sigma**2
    squares = noise + beta**2
    return math.sqrt(2 / (squares + math.sqrt(squares**2 + 12 * noise * math.log(iterations))))


@dataclass(frozen=True)
class Parameters:
    """What Algorithm 2 returns. All but the start are functions of the exact beta: that is the breach."""

    start: np.ndarray
    sigma: float
    steps: int
    beta: float


def steps_of(s: float, iterations: int) -> int:
    """T' of Theorem 4.4: s^(1 - 1/2a) T with s = (log T)^-a, if a > 1/2; else T."""
    if s <= 0:
        return 2
    a = math.log(1 / s) / math.log(math.log(iterations))
    return max(2, round(s ** (1 - 1 / (2 * a)) * iterations)) if a > 0.5 else iterations


def algorithm_2(
    a: np.ndarray,
    b: np.ndarray,
    m: int,
    history: np.ndarray,
    epsilon_para: float,
    sigma_min: float,
    iterations: int,
    generator: np.random.Generator,
    *,
    enhanced: bool = False,
) -> Parameters:
    """Choose the start by the exponential mechanism with the published sensitivity; beta, sigma and T' exactly."""
    if not len(history):
        return Parameters(np.zeros(len(b)), sigma_min, iterations, float(np.linalg.norm(gradient(a, b, np.zeros(len(b))))))
    norms = np.linalg.norm(2 * (history @ a - b), axis=1)
    scores = -m * epsilon_para * norms / 2
    weights = np.exp(scores - scores.max())
    chosen = int(generator.choice(len(history), p=weights / weights.sum()))
    beta = float(norms[chosen])
    n = len(b)
    sigma = max(beta / math.sqrt(n), sigma_min)
    return Parameters(history[chosen], sigma, steps_of(beta if enhanced else math.sqrt(n) * sigma, iterations), beta)


def composed_epsilon(epsilons: np.ndarray, delta: float) -> float:
    """Strong composition of steps of these epsilons (Kairouz, Oh & Viswanath, Theorem 3.5), at slack ``delta``."""
    squares = float(np.square(epsilons).sum())
    drift = float((epsilons * np.tanh(epsilons / 2)).sum())
    return min(
        float(epsilons.sum()), drift + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / delta))
    )  # fmt: skip


@dataclass
class Algorithm3:
    """The published protocol over a stream; ``explain`` until ``exhausted``."""

    statistics: Statistics
    m: int
    epsilon: float
    delta: float
    epsilon_min: float
    delta_min: float
    generator: np.random.Generator
    iterations: int = 300
    distance: float | None = None
    enhanced: bool = False
    centres: list[np.ndarray] = field(default_factory=list)
    phis: list[np.ndarray] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    step_epsilons: list[np.ndarray] = field(default_factory=list)
    chosen: dict[int, Parameters] = field(default_factory=dict)
    """What Algorithm 2 returned, by query."""

    @property
    def epsilon_step(self) -> float:
        return self.epsilon_min / math.sqrt(8 * self.iterations * math.log(2 / self.delta_min))

    @property
    def sigma_min(self) -> float:
        return math.sqrt(2 * math.log(2.5 * self.iterations / self.delta_min)) / (self.m * self.epsilon_step)

    @property
    def spent_epsilon(self) -> float:
        """By strong composition, half of delta as its slack."""
        return composed_epsilon(np.concatenate([np.zeros(1), *self.step_epsilons]), self.delta / 2)

    @property
    def exhausted(self) -> bool:
        return self.spent_epsilon > self.epsilon

    def explain(self, centre: np.ndarray) -> np.ndarray:
        near = math.log(self.iterations) / math.sqrt(self.iterations) if self.distance is None else self.distance
        usable = [place for place, flag in enumerate(self.flags) if flag]
        for place in usable:
            if np.linalg.norm(self.centres[place] - centre) <= near:
                return self._add(centre, self.phis[place], False, 0)
        a, b = self.statistics(centre)
        history = np.array(self.phis).reshape(len(self.phis), len(b))
        chosen = algorithm_2(
            a, b, self.m, history, self.epsilon_step, self.sigma_min, self.iterations, self.generator, enhanced=self.enhanced
        )  # fmt: skip
        self.chosen[len(self.centres)] = chosen
        c0 = learning_rate(len(b), chosen.sigma, chosen.beta, self.iterations)
        phi = dpgd_explain(a, b, chosen.start, chosen.sigma, chosen.steps, c0, self.generator)
        spent = np.full(chosen.steps - 1, self.epsilon_step * self.sigma_min / chosen.sigma)
        self.step_epsilons.append(np.append(spent, self.epsilon_step) if len(history) else spent)
        return self._add(centre, phi, True, chosen.steps)

    def _add(self, centre: np.ndarray, phi: np.ndarray, flag: bool, steps: int) -> np.ndarray:
        self.centres.append(centre)
        self.phis.append(phi)
        self.flags.append(flag)
        self.steps.append(steps)
        return phi


@dataclass
class Rehearsal:
    """The other side of the sound protocol's recipes: exact statistics, with the vault's noise law. Centred form only."""

    gradients: Gradients
    statistics: Statistics
    n_rows_public: int
    generator: np.random.Generator

    def run(self, recipe: Callable[[Terms], Recipe[R]], mu: float) -> R:
        """Have the conversation at this price."""
        schema = self.gradients.problem.row_schema
        terms = Terms("rehearsal", schema, None, self.n_rows_public, "add-remove", DELTA, mu)
        return drive(recipe(terms), Cost.of_mu(mu).pico_mu_squared, self.answer)

    def answer(self, ask: Ask, units: int, step: int) -> Release:
        rows: GradientRows = ask.question.fn  # type: ignore[attr-defined]
        phi = rows.phi
        exact = np.stack([gradient(*self.statistics(z), one) for z, one in zip(rows.centres, phi, strict=True)])
        sigma = float(np.linalg.norm(self.gradients.bounds(phi))) / mu_of_units(units)
        noisy = self.n_rows_public * exact + self.generator.normal(0.0, sigma, exact.shape)
        return Release(noisy.ravel(), sigma, Cost(units), promise(units), {}, "rehearsal")


@functools.cache
def promise(units: int) -> Guarantee:
    """Of a release of this price that nobody will ever compose with others."""
    return Guarantee.of(Basis.of(f"rehearsed at {units}", Cost(units)), DELTA)
