"""Algorithm 1 of Patel, Shokri & Zick made sound: descent along noisy gradients, for problems too wide for n^2 numbers.

*Gradient.* A row contributes 2 alpha r u, once for every point z that shares the pass: points * size numbers, each point's
no longer than ``Gradients.bounds`` (the proof stands in ``solve.linear.descent``); several points make one longer vector,
and their norms add in squares. *Choice.* The start whose summed gradient is shortest: ``Select(score="small-norm")`` with
the largest of those bounds. *Means.* A row contributes alpha u, u = (1, x - z), |alpha u| <= sup alpha |u|; the ratio of the
two parts is the weighted mean of x - z. The vault clips to the bounds, so a wrong one would cost accuracy, never privacy.

*Cost.* The T gradients of a descent are chosen adaptively; at mu^2/T each they cost mu together, exactly (the GDP filter),
where the paper's strong composition is 18 times too noisy. Points that share a pass share its price: at the same price for
all, q points get the noise of mu/sqrt(q). Sums are divided by the public row count (the paper's own m moves with the row).
*Neighbours*: as the dataset declares; replace-one doubles the sensitivity. Number and lengths of the steps come from public
numbers, and nothing else stops a descent. Tests: tests/explain/linear/test_descent*.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...accounting import Basis
from ...accounting.cost import PICO
from ...errors import InvalidInput
from ...releases import Release
from ...results import Attribution
from ...solve.linear.descent import INTERCEPT_UNIT, Gradients, pace_of
from ...solve.linear.problem import LocalModels, LocalProblem, explanation_of
from ...vault import Block, BoundedSum, Select
from ..recipe import Ask, Recipe, Terms, cost_of
from .options import Descent

MEANS_SHARE = 0.1
"""Share of the price that goes to the weighted mean of the rows, where contributions need one."""
MOST_NUMBERS = 8192
"""Per row and pass: a block of 4096 rows then takes 0.3 GB."""
REHEARSED_STEPS = 2
"""Steps of a descent that is rehearsed: the others ask the same question at another phi."""
BANDS_NOTE = "Bands cover the noise of the releases, not how far the descent still was from the optimum."
_ROWS_IN_CACHE = 256


class GradientRows:
    """What a row contributes to gradients. No matrix products: their bits depend on a row's rank in the block.

    Attributes
    ----------
    centres : array (points, n_features)
    phi : array (points, candidates, size)
    """

    def __init__(self, problem: LocalProblem, centres: Floats, phi: Floats) -> None:
        self.problem, self.centres, self.phi = problem, centres, phi

    def __call__(self, block: Block) -> Floats:
        """(rows, points * candidates * size)."""
        return self.candidates(block).reshape(len(block), -1)

    def candidates(self, block: Block) -> Floats:
        """(rows, points * candidates, size)."""
        x, f = self.problem.x(block.features), self.problem.label(block.predictions(self.problem.model))
        made = np.empty((len(x), *self.phi.shape))
        for start in range(0, len(x), _ROWS_IN_CACHE):
            batch = slice(start, start + _ROWS_IN_CACHE)
            self._fill(made[batch], x[batch], f[batch])
        return made.reshape(len(x), -1, self.phi.shape[-1])

    def _fill(self, made: Floats, x: Floats, f: Floats) -> None:
        for point, z in enumerate(self.centres):
            d, alpha = _weighted(self.problem, x, z)
            for candidate, phi in enumerate(self.phi[point]):
                target = made[:, point, candidate]
                if self.problem.intercept:
                    pull = 2 * alpha * ((d * phi[1:]).sum(axis=1) + phi[0] - f)
                    target[:, 0] = INTERCEPT_UNIT * pull
                    np.multiply(d, pull[:, None], out=target[:, 1:])
                else:
                    np.multiply(d, (2 * alpha * ((d * phi).sum(axis=1) - f))[:, None], out=target)


def _weighted(problem: LocalProblem, x: Floats, z: Floats) -> tuple[Floats, Floats]:
    """x - z and its weight."""
    d = x - z
    return d, np.clip(problem.weight(np.sqrt(np.einsum("ij,ij->i", d, d))), 0.0, 1.0)


def gradient_question(gradients: Gradients, centres: Floats, phi: Floats) -> BoundedSum:
    """The gradients at ``phi`` (points, size) of the losses around ``centres`` (points, n_features), as one sum."""
    norm = float(np.linalg.norm(gradients.bounds(phi))) * (1 + 1e-12)
    return BoundedSum(GradientRows(gradients.problem, centres, phi[:, None]), phi.size, norm)


def choice_question(gradients: Gradients, centre: Floats, starts: Floats) -> Select:
    """The start (candidates, size) with the shortest summed gradient around one centre."""
    rows = GradientRows(gradients.problem, centre[None], starts[None])
    return Select(rows.candidates, len(starts), float(gradients.bounds(starts).max()), "small-norm", gradients.size)


def means_question(gradients: Gradients, centres: Floats) -> BoundedSum:
    """alpha (1, x - z), for every point of the pass."""
    problem = gradients.problem

    def rows(block: Block) -> Floats:
        x = problem.x(block.features)
        made = np.empty((len(x), len(centres), x.shape[1] + 1))
        for point, z in enumerate(centres):
            d, alpha = _weighted(problem, x, z)
            made[:, point, 0] = alpha
            np.multiply(d, alpha[:, None], out=made[:, point, 1:])
        return made.reshape(len(x), -1)

    size = len(centres) * (problem.n_features + 1)
    return BoundedSum(rows, size, gradients.mean_bound * math.sqrt(len(centres)))


@dataclass(frozen=True, eq=False)
class Descended:
    """Where a descent ended, the std that the noise of its gradients gives every entry of phi, at most, and its releases."""

    phi: Floats
    noise_std: float
    releases: tuple[Release, ...]


def descend(
    gradients: Gradients,
    centres: Floats,
    start: Floats,
    steps: Sequence[tuple[float, float]],
    terms: Terms,
    *,
    first: Release | None = None,
) -> Recipe[Descended]:
    """Projected descent from ``start`` (points, size), for the (length, share) of every step; ``first`` may be at hand.

    The noise of a step is only ever shrunk afterwards: I - 2 eta A is a contraction for eta <= 1/L, and so is projection.
    """
    phi, variance, releases = start, 0.0, [] if first is None else [first]
    for step, (eta, share) in enumerate(steps):
        if step == len(releases):
            ask = Ask(gradient_question(gradients, centres, phi), share, f"gradient {step + 1} of a local explanation")
            releases.append((yield ask))
        mean, sigma = gradients.mean(releases[step], terms.n_rows_public)
        phi = gradients.project(phi - eta * mean)
        variance += float(eta * sigma) ** 2
    return Descended(phi, math.sqrt(variance), tuple(releases))


def means_ask(gradients: Gradients, centres: Floats, share: float) -> Ask:
    """The question for the weighted means that contributions are measured from."""
    return Ask(means_question(gradients, centres), share, "means of a local explanation")


def descent_recipe(
    gradients: Gradients, options: Descent, raw: Floats, terms: Terms, most_steps: int | None = None
) -> Recipe[Attribution]:
    """Gradients of all points at once, as far as they fit a pass; a tenth for their means, where there is an intercept."""
    problem, centres = gradients.problem, gradients.problem.encode(raw)
    pace = pace_of(gradients, terms.mu / math.sqrt(len(centres)), terms.n_rows_public, options.iterations)
    at_once = max(1, MOST_NUMBERS // gradients.size)
    means_share = MEANS_SHARE if problem.intercept else 0.0
    step_share = (1 - means_share) / pace.iterations
    smallest_batch = (len(centres) - 1) % at_once + 1
    check_divisible(terms, step_share * smallest_batch / len(centres))
    phis, phi_stds, means, means_stds = [], [], [], []
    releases: list[Release] = []
    for start in range(0, len(centres), at_once):
        batch = centres[start : start + at_once]
        share = len(batch) / len(centres)
        if problem.intercept:
            releases.append((yield means_ask(gradients, batch, means_share * share)))
            mean, std = gradients.weighted_means(releases[-1], batch)
            means.append(mean)
            means_stds.append(std)
        steps = [(float(eta), step_share * share) for eta in pace.sizes()[:most_steps]]
        ended = yield from descend(gradients, batch, np.zeros((len(batch), gradients.size)), steps, terms)
        phis.append(ended.phi)
        phi_stds.append(np.full(len(batch), ended.noise_std))
        releases += ended.releases
    banded = LocalModels(
        np.concatenate(phis),
        np.concatenate(means) if means else None,
        np.concatenate(phi_stds),
        np.concatenate(means_stds) if means else None,
    )
    return explanation_of(
        problem,
        raw,
        banded,
        guarantee=replace(terms.promise(*releases), basis=bundle(releases)),
        cost=cost_of(releases),
        method="descent",
        notes=(f"Found by {pace.iterations} noisy gradients per point.", BANDS_NOTE),
    )


def bundle(releases: Sequence[Release]) -> Basis:
    """Releases that are always used together, named as one."""
    return Basis.union(release.guarantee.behind for release in releases).bundled()


def check_divisible(terms: Terms, share: float) -> None:
    """Refuse a price of which this share buys nothing, before the first question is booked."""
    if terms.mu**2 * share * PICO < 1:
        raise InvalidInput(
            "the price is too small to be split over the gradients of a descent; ask for more, or fewer iterations"
        )
