"""Noisy gradients of the local loss: bounds, steps, what a good start saves, and the history that good starts come from.

*Gradient.* With u = x - z, or (k, x - z) where there is an intercept, and r the residual, a row contributes 2 alpha r u to
the gradient at phi around z. (The intercept is counted in units of k = 1/2, about as long as x - z is: the loss is rounder
then, steps are three times longer, and the bound is smaller.) As |f| <= 1,

    |2 alpha r u| <= 2 alpha(d) |u| (|slope| d + |intercept| + 1),  d = |x - z|,

whose largest value over the distances the schema allows is :meth:`Gradients.bounds`. phi was released a step before, so
its length is public and the bound uses it: 0.73 c at phi = 0 for the stable weight, c on the unit sphere (the paper's c,
``weight.gradient_constant(largest_distance, 1)``). Test: tests/explain/linear/test_descent_gradients.py.

*Steps.* T gradients have noise sqrt(T) s each, s = c/(mu m0). Steps of total length tau carry noise of length about
sqrt(n) s tau into phi, however many they are, and leave a bias of order 1/tau: so tau is ``REACH``/(sqrt(n) s), and T need
only be so large that no step exceeds 1/L, L = 2 sup alpha |u|^2. Steps shrink linearly to zero. Measured on hospital
records (40 000 rows, 81 features; mean excess loss at epsilon 0.01 / 0.1 / 1, delta 1e-6): 1.6e-2 / 1.1e-3 / 1.8e-5 with
T = 100, against 1.7e-2 / 1.1e-3 / 4.0e-5 for the paper's c0/sqrt(t) with T = 300 and the best c0, both with this noise, and
1.7e-2 / 0.9e-3 / 1.5e-5 for sufficient statistics. Averaging the iterates was worse in every case.

*Start*: no slope, and as intercept the weighted mean of labels, which is released with those of x - z. The first gradient
of the slope is then that of centred rows. (From zero the slopes do the work of the intercept for many steps, as levels of a
column are never all absent: after a hundred without noise, contributions on Diabetes 130 were nearly orthogonal to those
of ridge regression. How far steps from here lead: docs/bands.md.)

*History*: what was explained before, the memory of the adaptive protocol. A history holds public points and explanations
that were released; keeping, copying and publishing it costs nothing. After a restart it is read from the ledger, which
keeps it (``adaptive.Keeper``), or from a file of its own; and asking the same stream again from an empty one rebuilds it,
because the ledger replays stored answers free. Test: tests/explain/linear/test_history.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..._types import Floats
from ...accounting import NOTHING, Basis, Cost, rounded_up
from ...accounting.guarantee import Guarantee
from ...accounting.neighbours import Neighbours
from ...accounting.releases import Release
from ...errors import InvalidInput
from ...results.archive import read_bytes, write_bytes
from ...results.base import Stored
from .problem import LocalProblem

# Of the ball for the slope where there is an intercept: x is divided by sqrt(columns), so length 1 follows no model.
AFFINE_RADIUS = 3.0
INTERCEPT_UNIT = 0.5
# In units of f; the bound grows with the intercept that phi has, not with this one.
LARGEST_INTERCEPT = 2.0
REACH = 0.7
FEWEST_ITERATIONS, MOST_ITERATIONS = 10, 100
FEWEST_SHARES, LEAST_ENHANCED = 2, 0.1
SHARED_NOISE = 0.4
"""The correlation that is taken to be between the noise of past explanations, which descend from each other: of 0.3, 0.5 and
0.8, with all of which bands held on ACS, Adult, COMPAS, Framingham, Diabetes 130 and Bike Sharing, between the first two,
whose bands are narrower (streams of 20 points)."""
_DISTANCES = 20_001
# phi is rounded to this, so that a last bit that differs between machines does not travel.
_PHI_STEP = 2.0**-32


@dataclass(frozen=True)
class Gradients:
    """Public facts about the gradients of a problem.

    Examples
    --------
    >>> from vitrail.solve.linear.weights import stable
    >>> from vitrail.model import Model
    >>> from vitrail.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 100), "dose": Numeric(0, 1)})
    >>> problem = LocalProblem(schema, Model(lambda x: x[:, 0], range=(0, 1)), stable(c=1), intercept=False)
    >>> Gradients(problem).bounds(np.array([[0.0, 0.0], [0.6, 0.8]])).round(3)
    array([0.732, 1.   ])
    """

    problem: LocalProblem

    @property
    def radius(self) -> float:
        """Of the ball that holds the slope: 1 without an intercept, as in the paper."""
        return AFFINE_RADIUS if self.problem.intercept else 1.0

    @cached_property
    def _alpha(self) -> tuple[Floats, Floats]:
        """Distances d on a fine public grid, and their weights."""
        d = np.linspace(0.0, self.problem.largest_distance, _DISTANCES)
        return d, np.clip(self.problem.weight(d), 0.0, 1.0)

    @cached_property
    def _pull(self) -> tuple[Floats, Floats]:
        """|u| and 2 alpha |u| on the same grid."""
        d, alpha = self._alpha
        u = np.sqrt(d * d + INTERCEPT_UNIT**2) if self.problem.intercept else d
        return u, 2 * alpha * u

    @cached_property
    def curvature(self) -> float:
        """L = 2 sup alpha |u|^2: no direction of the mean loss bends more."""
        u, pull = self._pull
        return float((pull * u).max())

    def bounds(self, phi: Floats) -> Floats:
        """The longest gradient of any row, for every phi of (points, size)."""
        offsets = np.abs(phi[:, 0]) if self.problem.intercept else np.zeros(len(phi))
        slopes = np.linalg.norm(phi[:, 1:] if self.problem.intercept else phi, axis=1)
        d, pull = self._alpha[0], self._pull[1]
        longest = [(pull * (slope * d + (1.0 + offset))).max() for slope, offset in zip(slopes, offsets, strict=True)]
        return np.array(longest) * (1 + 1e-9)

    @cached_property
    def largest_bound(self) -> float:
        """The bound on the edge of the ball, with an intercept as large as labels are."""
        edge = np.zeros((1, self.problem.size))
        edge[0, 0], edge[0, -1] = (1.0 if self.problem.intercept else 0.0), self.radius
        return float(self.bounds(edge)[0])

    @cached_property
    def mean_bound(self) -> float:
        """The largest alpha |(1, f, x - z)|; f is in [-1, 1]."""
        d, alpha = self._alpha
        return float((alpha * np.sqrt(d * d + 2)).max()) * (1 + 1e-9)

    def project(self, phi: Floats) -> Floats:
        """The nearest allowed phi: slope in the ball, intercept in its interval, on a fine grid."""
        inside = np.array(phi, dtype=np.float64)
        slopes = inside[..., 1:] if self.problem.intercept else inside
        slopes /= np.maximum(np.linalg.norm(slopes, axis=-1, keepdims=True) / self.radius, 1.0)
        if self.problem.intercept:
            inside[..., 0] = np.clip(inside[..., 0], -LARGEST_INTERCEPT, LARGEST_INTERCEPT)
        return np.asarray(np.rint(inside / _PHI_STEP) * _PHI_STEP)

    def mean(self, release: Release, n_rows_public: int) -> tuple[Floats, float]:
        """A released gradient of the mean loss (points, size), and the standard deviation of its entries.

        The entry of the intercept comes first, made smaller to be a step of the same length as the others.
        """
        assert release.sigma is not None
        mean = release.value.reshape(-1, self.problem.size) / n_rows_public
        if self.problem.intercept:
            mean[:, 0] *= INTERCEPT_UNIT
        return mean, release.sigma / n_rows_public

    def weighted_means(self, release: Release, centres: Floats) -> Means:
        """What a release of ``explain.linear.descent.means_question`` says."""
        assert release.sigma is not None
        sums = release.value.reshape(len(centres), -1)
        mass = np.maximum(sums[:, 0], release.sigma)  # a mass below its own noise says nothing
        nearest, farthest = -centres, 1 / self.problem.scale - centres  # where x - z can be at all
        means = np.clip(sums[:, 2:] / mass[:, None], nearest, farthest)
        return Means(np.clip(sums[:, 1] / mass, -1.0, 1.0), means, release.sigma / mass)

    def start(self, levels: Floats | None, n_points: int) -> Floats:
        """Where descents begin that know nothing else, (points, size): no slope, and the mean label where it is known."""
        phi = np.zeros((n_points, self.problem.size))
        if levels is not None:
            phi[:, 0] = levels
        return self.project(phi)


@dataclass(frozen=True, eq=False)
class Means:
    """Released weighted means around points: of f (points,), of x - z (points, n_features), and about how noisy each is."""

    levels: Floats
    of_x: Floats
    stds: Floats


def step_sizes(
    gradients: Gradients,
    mu: float,
    n_rows_public: int,
    iterations: int | None = None,
    *,
    reach: float = REACH,
    most_iterations: int = MOST_ITERATIONS,
) -> Floats:
    """How long each step of one point is whose gradients cost ``mu`` together: they shrink linearly to zero."""
    noise = gradients.largest_bound / (mu * n_rows_public)
    length = reach * gradients.radius / (math.sqrt(gradients.problem.size) * noise)
    if iterations is None:
        iterations = min(max(FEWEST_ITERATIONS, math.ceil(2 * length * gradients.curvature)), most_iterations)
    first = min(2 * length / iterations, 1 / gradients.curvature)
    return np.asarray(first * (1.0 - np.arange(iterations) / iterations))


def shares_needed(shares: int, beta: float, noise: float, *, enhanced: bool) -> int:
    """T' of Theorem 4.4 of Patel, Shokri & Zick: how many of T = ``shares`` shares a descent from a good start takes.

    ``beta`` is the length of the gradient at the start and ``noise`` that of its noise, both in units of c. The theorem,
    with s = max(noise, beta) written as (log T)^-a, has T' = s^(1 - 1/2a) T, which is min(1, s sqrt(log T)) T; *enhanced*
    has s = beta.

    Between points that noise hardly blurs, a good start saves nothing: the price buys the last digits. With x = sqrt(n)/(mu
    m0), the length of the noise, the share of the price that leaves the loss as it is was measured (hospital records, 40 000
    x 81, 200 points): 0.2 at x = 0.07, 0.35 at 0.008, 1 at 0.002. The theorem's constants do not know that, so T' is kept
    above (0.35 + 0.0025/x) T. *Enhanced*, which has no theorem, is kept above T/10: steps are as long whatever T' is, and at
    two shares of three hundred they would be noise.
    """
    needed = (beta if enhanced else max(beta, noise)) * math.sqrt(math.log(shares))
    needed = max(needed, LEAST_ENHANCED if enhanced else 0.35 + 0.0025 * math.sqrt(shares) / noise)  # noise = sqrt(T) x
    return max(FEWEST_SHARES, min(math.ceil(needed * shares), shares))


RIDGE = 0.1


@dataclass(frozen=True, eq=False)
class Past:
    """One point that was explained.

    Attributes
    ----------
    raw : array (n_columns,)
        The point.
    phi : array (size,)
        Its local linear model, the intercept first where there is one, in units of f.
    computed : bool
        Whether phi was computed for this point. One that was taken over from a neighbour is never handed on: distances
        would add up.
    noise_std : float
        Standard deviation that the releases gave every entry of phi, at most.
    mean : array (n_features,) or None
        The released weighted mean of x - z, where there is an intercept.
    mean_std : float
        Of its entries, about.
    gradients : int
        How many were released for this point.
    cost : Cost
        What was charged for it.
    basis : Basis
        The releases that phi rests on, bundled; those of the neighbour where phi was handed on.
    """

    raw: Floats
    phi: Floats
    computed: bool
    noise_std: float
    mean: Floats | None
    mean_std: float
    gradients: int
    cost: Cost
    basis: Basis = NOTHING


@dataclass(frozen=True, eq=False)
class HistoryFile(Stored, stored_as="history/3"):
    """Entries of a history as a file holds them, and a digest of the problem that they are about."""

    problem: str
    entries: tuple[Past, ...]


class History:
    """Explained points, oldest first. Grows while the adaptive protocol runs.

    Parameters
    ----------
    problem : LocalProblem
        What is explained; a history of one model, weight and schema is of no use to another.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema, model = vt.Schema({"age": vt.Numeric(0, 100)}), vt.Model(lambda x: x[:, 0], range=(0, 1))
    >>> history = History(LocalProblem(schema, model, vt.weights.stable(), intercept=False))
    >>> len(history), history.cost
    (0, Cost(pico_mu_squared=0, pico_epsilon=0, quecto_delta=0))
    """

    def __init__(self, problem: LocalProblem, entries: Iterable[Past] = ()) -> None:
        self.problem = problem
        self._entries: list[Past] = []
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Past]:
        return iter(tuple(self._entries))

    def __repr__(self) -> str:
        fresh = sum(entry.computed for entry in self._entries)
        return f"History({len(self)} points, {fresh} of them computed, mu={rounded_up(self.cost.mu)})"

    @property
    def cost(self) -> Cost:
        """What all of it cost."""
        return sum((entry.cost for entry in self._entries), Cost())

    @property
    def basis(self) -> Basis:
        """The releases behind all of it, each once; where an entry names none, one of its price that is like no other."""
        return Basis.union(entry.basis or Basis.new(entry.cost) for entry in self._entries)

    def promise(self, delta: float, neighbours: Neighbours) -> Guarantee:
        """The promise for what all entries reveal together."""
        return Guarantee.of(self.basis, delta, neighbours)

    @property
    def raw_points(self) -> Floats:
        """All points, (points, n_columns)."""
        return np.array([entry.raw for entry in self._entries]).reshape(len(self), self.problem.schema.n_columns)

    def computed(self) -> list[Past]:
        """The entries whose explanations may be handed on."""
        return [entry for entry in self._entries if entry.computed]

    def add(self, entry: Past) -> None:
        """Put an entry at the end."""
        size = self.problem.size
        if entry.raw.shape != (self.problem.schema.n_columns,) or entry.phi.shape != (size,):
            raise InvalidInput(
                f"an entry of this history has a point of {self.problem.schema.n_columns} values and a phi of {size}, "
                f"not shapes {entry.raw.shape} and {entry.phi.shape}"
            )
        self._entries.append(entry)

    def insert(self, index: int, entries: list[Past]) -> None:
        """Put entries of another history of the same problem before the one at ``index``."""
        self._entries[index:index] = entries

    def take(self, entry: Past) -> None:
        """Put an entry at the end, unless it is a neighbour's for a point that is here already: one for it is enough."""
        if entry.computed or not any(np.array_equal(known.raw, entry.raw) for known in self._entries):
            self.add(entry)

    def digest(self) -> str:
        """A name for what the questions about a next point depend on: the computed entries, by their releases.

        Releases have names of their own, which are the same on every machine; phi may differ in its last bit.
        """
        known = [[past.raw.tolist(), past.basis.to_json() or past.phi.tolist()] for past in self.computed()]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()

    def neighbour(self, raw: Floats, reuse_distance: float) -> Past | None:
        """The explanation of the nearest computed point within a distance, as an entry for ``raw``: the same linear model.

        None where there is no such point. Costs nothing: it rests on what the neighbour released.
        """
        if not (computed := self.computed()):
            return None
        centres, centre = self.problem.encode(np.array([past.raw for past in computed])), self.problem.encode(raw[None])[0]
        distances = np.linalg.norm(centres - centre, axis=1)
        nearest = int(np.argmin(distances))
        if distances[nearest] > reuse_distance:
            return None
        past, shift = computed[nearest], centre - centres[nearest]
        mean = None if past.mean is None else past.mean - shift
        phi, here = self._moved(past.phi, shift), np.array(raw, dtype=np.float64)
        return Past(here, phi, False, past.noise_std, mean, past.mean_std, 0, Cost(), past.basis)

    def start(self, raw: Floats) -> tuple[Floats, float] | None:
        """Where a descent at ``raw`` starts, and the noise in it; None where nothing was computed yet.

        What a ridge regression of past explanations on their points says at the new one. It averages the noise of single
        explanations out, and it is linear in them: nothing is chosen.
        """
        if not (computed := self.computed()):
            return None
        centres, centre = self.problem.encode(np.array([past.raw for past in computed])), self.problem.encode(raw[None])[0]
        phis = np.array([self._moved(past.phi, centre - own) for past, own in zip(computed, centres, strict=True)])
        middle = centres.mean(axis=0)
        weights = _ridge_weights(centres - middle, centre - middle, RIDGE)
        return weights @ phis, _combined_std(weights * np.array([past.noise_std for past in computed]))

    def _moved(self, phi: Floats, shift: Floats) -> Floats:
        """The same affine function around a centre that lies ``shift`` further; a centred model is taken as it is."""
        return np.append(phi[0] + phi[1:] @ shift, phi[1:]) if self.problem.intercept else phi

    def check(self, problem: LocalProblem) -> None:
        """Refuse a problem that this history is not about."""
        _check_digest(_digest(self.problem), problem, "the history")

    def save(self, path: str | Path) -> None:
        """Write a file. It holds released numbers and public points only."""
        write_bytes(path, encode(self.problem, self._entries))

    @classmethod
    def load(cls, path: str | Path, problem: LocalProblem) -> History:
        """Read a file that ``save`` wrote, about the same problem."""
        return decode(read_bytes(path), problem, repr(str(path)))


def _combined_std(parts: Floats) -> float:
    """Of a sum of past explanations, given the std of each part: they descend from each other, so noise is shared."""
    return math.sqrt((1 - SHARED_NOISE) * float(parts @ parts) + SHARED_NOISE * float(parts.sum()) ** 2)


def encode(problem: LocalProblem, entries: list[Past]) -> bytes:
    """Entries of a history, to be stored."""
    return HistoryFile(_digest(problem), tuple(entries)).to_bytes()


def decode(content: bytes, problem: LocalProblem, where: str) -> History:
    """What ``encode`` wrote about the same problem; ``where`` it was found is for errors."""
    stored = HistoryFile.from_bytes(content, what=f"the history {where}")
    _check_digest(stored.problem, problem, f"the history {where}")
    return History(problem, stored.entries)


def _digest(problem: LocalProblem) -> str:
    facts = {**problem.facts(), "model": problem.model.fingerprint(problem.row_schema)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _check_digest(digest: str, problem: LocalProblem, what: str) -> None:
    if digest != _digest(problem):
        raise InvalidInput(
            f"{what} is about another problem (schema, model, weight, labels or intercept differ); start a new one"
        )


def _ridge_weights(away: Floats, here: Floats, ridge: float) -> Floats:
    """The weights of past points in a ridge regression at a new one, from coordinates around their mean."""
    if len(away) <= away.shape[1]:  # the smaller of the two systems
        weights = np.linalg.solve(away @ away.T + ridge * np.eye(len(away)), away @ here)
    else:
        weights = away @ np.linalg.solve(away.T @ away + ridge * np.eye(len(here)), here)
    return np.asarray(weights + (1 - weights.sum()) / len(weights))  # what the slopes leave over is the mean's
