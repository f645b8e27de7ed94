"""Exact sums, optima and draws where features are hundreds or thousands: many points at once, in float64, by torch.

A picture of 2 304 pixels has five million products of two pixels, and 12 000 rows around each of a thousand points are
127 GFlop a point. That is hours on a core and seconds on an accelerator, so everything here runs on the device it is
given. Sums are those of ``exact.statistics`` (means of alpha (x - z)(x - z)^T and alpha f (x - z)), exact up to rounding;
the vault's own sums, exact to the last bit, are not needed to judge an explanation. Draws have the laws of
``patel_published.algorithm_1``, ``local_stream.non_adaptive`` and ``local_stream.per_query_statistics``, whose loops over
points and steps are too slow here.
Problems have numeric columns only and no intercept. Tests: tests/test_benchmark_patel_wide.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from papers.patel_published import published_sigma
from vitrail.solve.linear.descent import Gradients, step_sizes
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import scales_of

Weigh = Callable[[np.ndarray], np.ndarray]
NEWTON_STEPS = 200
LENGTHS = 4097
PHI_STEP = 2.0**-32
"""The grid of the library's own iterates."""


def tensor(values: np.ndarray, device: str) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float64, device=device)


def distances(x: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """|x - z|, (rows, points)."""
    squares = (x * x).sum(1)[:, None] - 2 * (x @ points.T) + (points * points).sum(1)
    return squares.clamp_min_(0.0).sqrt_()


@dataclass(frozen=True)
class Rows:
    """Rows that explain, on a device."""

    x: torch.Tensor

    @classmethod
    def of(cls, x: np.ndarray, device: str) -> Rows:
        return cls(tensor(x, device))

    def weights(self, points: torch.Tensor, weigh: Weigh) -> torch.Tensor:
        """alpha, (rows, points)."""
        found = weigh(distances(self.x, points).cpu().numpy())
        return torch.as_tensor(found, dtype=torch.float64, device=self.x.device)

    def grams(self, points: torch.Tensor, alphas: torch.Tensor) -> torch.Tensor:
        """A of every point, (points, n, n)."""
        made = torch.empty((len(points), *2 * (points.shape[1],)), dtype=torch.float64, device=self.x.device)
        for gram, z, alpha in zip(made, points, alphas.T, strict=True):
            scaled = (self.x - z) * alpha.sqrt()[:, None]
            torch.matmul(scaled.T, scaled, out=gram)
        return made.div_(len(self.x))

    def crosses(self, f: torch.Tensor, points: torch.Tensor, alphas: torch.Tensor) -> torch.Tensor:
        """b of every point, (points, n)."""
        weighted = alphas * f[:, None]
        return (weighted.T @ self.x - weighted.sum(0)[:, None] * points) / len(self.x)


def batches(
    rows: Rows, points: np.ndarray, weigh: Weigh, together: int
) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
    """Some points at a time: which, their alphas and their grams."""
    for start in range(0, len(points), together):
        place = slice(start, min(start + together, len(points)))
        some = tensor(points[place], str(rows.x.device))
        alphas = rows.weights(some, weigh)
        yield place, alphas, rows.grams(some, alphas)


@dataclass(frozen=True)
class Around:
    """Exact statistics around points, A (points, n, n) and b (points, n), and what is drawn on them.

    phi is (points, n, draws) throughout. ``rows`` is what noise is divided by.
    """

    a: torch.Tensor
    b: torch.Tensor
    rows: int
    generator: torch.Generator

    @classmethod
    def of(cls, a: torch.Tensor, b: torch.Tensor, rows: int, seed: int) -> Around:
        return cls(a, b, rows, torch.Generator(a.device).manual_seed(seed))

    def of_rows(self, rows: int, seed: int) -> Around:
        """The same truth, with the noise of so many rows."""
        again = Around.of(self.a, self.b, rows, seed)
        vars(again)["best"] = self.best
        return again

    @cached_property
    def best(self) -> torch.Tensor:
        """(points, n)."""
        return solve_in_ball(self.a, self.b)

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float64, device=self.a.device)

    def gradient(self, phi: torch.Tensor) -> torch.Tensor:
        return 2 * (self.a @ phi - self.b[:, :, None])

    def excess(self, phi: torch.Tensor) -> np.ndarray:
        """Excess losses, (draws, points)."""
        away = phi - self.best[:, :, None]
        slope = (self.a @ self.best[:, :, None] - self.b[:, :, None]).mul_(2)
        return ((self.a @ away + slope) * away).sum(1).T.cpu().numpy()

    def start(self, draws: int) -> torch.Tensor:
        return torch.zeros((*self.b.shape, draws), dtype=torch.float64, device=self.a.device)

    def published(self, epsilon: float, delta: float, draws: int, iterations: int = 300) -> torch.Tensor:
        """Algorithm 1 as published."""
        sigma, phi = published_sigma(self.rows, epsilon, delta, iterations), self.start(draws)
        c0 = 1 / math.sqrt(1 + self.b.shape[1] * sigma**2)
        for t in range(1, iterations):
            phi = projected(phi - c0 / math.sqrt(t) * (self.gradient(phi) + sigma * self.normal(*phi.shape)))
        return phi

    def descent(self, gradients: Gradients, mu: float, draws: int) -> torch.Tensor:
        """The sound Algorithm 1 with the library's own steps and bounds."""
        sizes, phi = step_sizes(gradients, mu, self.rows), self.start(draws)
        table = tensor(bounds_by_length(gradients), str(self.a.device))
        for eta in sizes:
            sigma = between(table, phi.norm(dim=1)) / (mu / math.sqrt(len(sizes))) / self.rows
            moved = phi - float(eta) * (self.gradient(phi) + sigma[:, None, :] * self.normal(*phi.shape))
            phi = torch.round(projected(moved) / PHI_STEP) * PHI_STEP
        return phi

    def statistics(self, problem: LocalProblem, mu: float, draws: int) -> torch.Tensor:
        """One release of statistics for each draw, solved in the ball."""
        return torch.stack([solve_in_ball(*self.noisy(problem, mu)) for _ in range(draws)], dim=2)

    def noisy(self, problem: LocalProblem, mu: float) -> tuple[torch.Tensor, torch.Tensor]:
        """A and b with the noise law of the vault: sigma on the diagonal and in b, sigma/sqrt(2) off the diagonal."""
        scales = scales_of(problem)
        sigma, upper = scales.l2_bound / mu / self.rows, self.normal(*self.a.shape).triu_()
        diagonal = torch.diagonal(upper, dim1=1, dim2=2).clone()
        noise = (upper + upper.transpose(1, 2)) / math.sqrt(2)
        torch.diagonal(noise, dim1=1, dim2=2).copy_(diagonal)
        return self.a + sigma * noise, self.b + sigma / scales.label * self.normal(*self.b.shape)


def projected(phi: torch.Tensor) -> torch.Tensor:
    """Into the unit ball, every draw of every point."""
    return phi / phi.norm(dim=1, keepdim=True).clamp_min(1.0)


def bounds_by_length(gradients: Gradients) -> np.ndarray:
    """The bound on a row's gradient at evenly spaced lengths of phi; between them it is convex, so a line lies above it."""
    phi = np.zeros((LENGTHS, gradients.problem.size))
    phi[:, 0] = np.linspace(0.0, 1.0, LENGTHS)
    return gradients.bounds(phi)


def between(table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Linear interpolation in a table over [0, 1]."""
    at = lengths.clamp(0.0, 1.0) * (len(table) - 1)
    low = at.floor().long().clamp_max(len(table) - 2)
    return table[low] + (at - low) * (table[low + 1] - table[low])


def solve_in_ball(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The minimisers of phi^T A phi - 2 b^T phi over the unit ball, A symmetric and perhaps indefinite, by Cholesky alone.

    One lambda >= 0 has (A + lambda I) phi = b, A + lambda I positive definite, and |phi| = 1 unless lambda is 0: Newton's
    method on 1/|phi| - 1, which never passes the root from the left, kept between a lambda that is too small (not definite,
    or phi too long) and one that is large enough. Eigenvectors, which the library's solver uses, take a hundred times
    longer on an accelerator. (b has something along every eigenvector here: it comes with noise, or A is definite.)
    """
    rest = a.abs().sum(2) - torch.diagonal(a, dim1=1, dim2=2).abs()
    least = (torch.diagonal(a, dim1=1, dim2=2) - rest).amin(1)  # no eigenvalue lies below (Gershgorin)
    low, high = torch.zeros_like(least), b.norm(dim=1) + (-least).clamp_min(0.0) + 1e-300
    trial, found, done = low.clone(), torch.zeros_like(b), torch.zeros_like(low, dtype=torch.bool)
    for _ in range(NEWTON_STEPS):
        at = torch.nonzero(~done)[:, 0]
        if not len(at):
            break
        shifted = a[at]
        torch.diagonal(shifted, dim1=1, dim2=2).add_(trial[at, None])
        factor, failed = torch.linalg.cholesky_ex(shifted)
        definite = failed == 0
        factor[~definite] = torch.eye(a.shape[1], dtype=a.dtype, device=a.device)
        half = torch.linalg.solve_triangular(factor, b[at, :, None], upper=False)
        phi = torch.linalg.solve_triangular(factor.transpose(1, 2), half, upper=True)
        again = torch.linalg.solve_triangular(factor, phi, upper=False)[:, :, 0]
        phi, lengths = phi[:, :, 0], phi[:, :, 0].norm(dim=1)
        outside = ~definite | (lengths > 1)
        newton = trial[at] + lengths**2 / again.square().sum(1) * (lengths - 1)
        low[at], high[at] = torch.where(outside, trial[at], low[at]), torch.where(outside, high[at], trial[at])
        ended = definite & (((lengths - 1).abs() <= 1e-12) | (~outside & (trial[at] == 0)))
        tight = high[at] - low[at] <= 1e-15 * high[at]
        found[at[definite]] = phi[definite]
        done[at] = ended | (tight & definite)
        middle = (low[at] + high[at]) / 2
        usable = definite & (newton > low[at]) & (newton < high[at])
        trial[at] = torch.where(tight, high[at], torch.where(usable, newton, middle))
    return found / found.norm(dim=1, keepdim=True).clamp_min(1.0)
