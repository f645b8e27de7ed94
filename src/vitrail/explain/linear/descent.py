"""The three algorithms of Patel, Shokri & Zick made sound.

*Algorithm 1*: descent along noisy gradients, for problems too wide for n^2 numbers. *Gradient.* A row contributes 2 alpha r
u, once for every point z that shares the pass: points * size numbers, each point's no longer than ``Gradients.bounds`` (the
proof stands in ``solve.linear.descent``); several points make one longer vector, and their norms add in squares. *Means.* A
row contributes alpha u, u = (1, f, x - z), |alpha u| <= sup alpha sqrt(2 + d^2); ratios are the weighted means of f and x -
z. The vault clips to the bounds, so a wrong one would cost accuracy, never privacy.

*Cost.* The T gradients of a descent are chosen adaptively; at mu^2/T each they cost mu together, exactly (the GDP filter),
where the paper's strong composition is 18 times too noisy. Points that share a pass share its price: at the same price for
all, q points get the noise of mu/sqrt(q). Sums are divided by the public row count (the paper's own m moves with the row).
*Neighbours*: as the dataset declares; replace-one doubles the sensitivity. Number and lengths of the steps come from public
numbers, and nothing else stops a descent. Tests: tests/explain/linear/test_descent*.py.

*Algorithms 2 and 3*: a stream of points, each cheaper for what is known already. The price mu of a point is cut into T equal
shares, mu^2/T each. A new point z is explained in three moves:

(a) *Reuse*. A past explanation that was itself computed, of a point within a distance the user sets, is handed on.
(b) *Beta*, one share. Else the start is what a ridge regression of past explanations on their points predicts at z, which
    is free. The gradient there is released; it is the first step of the descent as well.
(c) *Descent* at the price of T' <= T shares, the first gradient included (``shares_needed``). beta^2 is |released|^2 - n
    sigma^2: the noise's own length is public and taken off.

*Bands.* The paper chooses a start among past explanations by a private score (whose sensitivity is c/m, not its 1/m). With
one share of hundreds that choice is nearly random, and no band holds what it leads to. A regression chooses nothing, and the
steps that follow are the same whatever T' is (T' buys less noise on them), so where a stream leads without noise depends on
public numbers and rows alone, and its noise is that of linear steps. docs/bands.md.

*Why it is private.* Start, T', spend and the moment of refusal are functions of releases and public numbers. The paper's T'
is a function of the exact gradient: a row that carries it past a whole number is seen with certainty. Costs are chosen on
the way, so the account must be a filter, as the ledger is; the paper adds up until a bound is crossed. No point costs more
than mu: every point is a conversation of its own, whose unused shares are given back.

*What it is worth.* docs/benchmarks.md. Audit: tests/audit/test_adaptive_audit.py, where the published version is
caught.

*The history* is made of releases and public points, so keeping it is free (``PrivateData.keep``). It is kept per analyst,
under a digest of the problem: schema, model, weight, labels, intercept; the dataset, its version and, where there is one,
the part are in it by way of the vault. It is kept after every point, in pieces of some dozens of points: a long stream does
not write all of its past again and again. Two runs of one analyst at the same time take in what the other has kept before
they keep their own; if both keep in the same instant, the points of one may be missing afterwards. The answers that were
paid for are in the ledger in any case. Test: tests/explain/linear/test_history_kept.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..._types import Floats
from ...accounting import Basis, Cost, JsonValue
from ...accounting.cost import PICO
from ...accounting.guarantee import Guarantee
from ...accounting.releases import Release
from ...errors import InvalidInput
from ...results import Attribution
from ...results.band_claim import BandClaim
from ...solve.linear.descent import (
    INTERCEPT_UNIT,
    MOST_ITERATIONS,
    REACH,
    Gradients,
    History,
    Means,
    Past,
    decode,
    encode,
    shares_needed,
    step_sizes,
)
from ...solve.linear.problem import LocalModels, LocalProblem, explanation_of
from ...vault import Block, BoundedSum, PrivateData
from ..recipe import Ask, Recipe, Terms, cost_of, scaled
from .options import Adaptive, Descent

MEANS_SHARE = 0.1
"""Share of the price that goes to the weighted mean of the rows, where contributions need one."""
MOST_NUMBERS = 8192
"""Per row and pass: a block of 4096 rows then takes 0.3 GB."""
REHEARSED_STEPS = 2
"""Steps of a descent that is rehearsed: the others ask the same question at another phi."""
BANDS_NOTE = (
    "Bands are about where the same steps lead without noise. How far that is from the best line is not in them and not "
    "known (gradients do not tell how flat the loss is), and can be more than the bands: on public data the size of "
    "contributions was {} to {} times that of ridge regression, and their cosine with it {} to {}."
)
LEFT_OUT = {"descent": (0.1, 1.0, 0.6, 1.0), "adaptive": (0.3, 1.1, 0.6, 1.0), "enhanced": (0.3, 1.1, 0.6, 1.0)}
"""Least and most size, and cosine: docs/bands.md; tests/test_measured_claims.py compares."""
WARM_REACH = 0.45
"""In place of REACH where a start is known; both measured on hospital records."""
POINTS_PER_PIECE = 32
NOT_KEPT_NOTE = "The history was not kept with the ledger, because the model has no content hash; key= gives it a name."
_ROWS_IN_CACHE = 256
Steps: TypeAlias = Sequence[tuple[float, float]]
"""Length and share of the price of every step."""


class GradientRows:
    """What a row contributes to gradients. No matrix products: their bits depend on a row's rank in the block.

    Attributes
    ----------
    centres : array (points, n_features)
    phi : array (points, size)
    """

    def __init__(self, problem: LocalProblem, centres: Floats, phi: Floats) -> None:
        self.problem, self.centres, self.phi = problem, centres, phi

    def __call__(self, block: Block) -> Floats:
        """(rows, points * size)."""
        x, f = self.problem.x(block.features), self.problem.label(block.predictions(self.problem.model))
        made = np.empty((len(x), *self.phi.shape))
        for start in range(0, len(x), _ROWS_IN_CACHE):
            batch = slice(start, start + _ROWS_IN_CACHE)
            self._fill(made[batch], x[batch], f[batch])
        return made.reshape(len(x), -1)

    def _fill(self, made: Floats, x: Floats, f: Floats) -> None:
        for point, (z, phi) in enumerate(zip(self.centres, self.phi, strict=True)):
            d, alpha = weighted(self.problem, x, z)
            target = made[:, point]
            if self.problem.intercept:
                pull = 2 * alpha * ((d * phi[1:]).sum(axis=1) + phi[0] - f)
                target[:, 0] = INTERCEPT_UNIT * pull
                np.multiply(d, pull[:, None], out=target[:, 1:])
            else:
                np.multiply(d, (2 * alpha * ((d * phi).sum(axis=1) - f))[:, None], out=target)


def weighted(problem: LocalProblem, x: Floats, z: Floats) -> tuple[Floats, Floats]:
    """x - z and its weight."""
    d = x - z
    return d, np.clip(problem.weight(np.sqrt(np.einsum("ij,ij->i", d, d))), 0.0, 1.0)


def gradient_question(gradients: Gradients, centres: Floats, phi: Floats) -> BoundedSum:
    """The gradients at ``phi`` (points, size) of the losses around ``centres`` (points, n_features), as one sum."""
    norm = float(np.linalg.norm(gradients.bounds(phi))) * (1 + 1e-12)
    return BoundedSum(GradientRows(gradients.problem, centres, phi), phi.size, norm)


def means_question(gradients: Gradients, centres: Floats) -> BoundedSum:
    """alpha (1, f, x - z), for every point of the pass."""
    problem = gradients.problem

    def rows(block: Block) -> Floats:
        x, f = problem.x(block.features), problem.label(block.predictions(problem.model))
        made = np.empty((len(x), len(centres), x.shape[1] + 2))
        for point, z in enumerate(centres):
            d, alpha = weighted(problem, x, z)
            made[:, point, 0], made[:, point, 1] = alpha, alpha * f
            np.multiply(d, alpha[:, None], out=made[:, point, 2:])
        return made.reshape(len(x), -1)

    size = len(centres) * (problem.n_features + 2)
    return BoundedSum(rows, size, gradients.mean_bound * math.sqrt(len(centres)))


@dataclass(frozen=True, eq=False)
class Descended:
    """Where a descent ended, the std that the noise of its gradients gives every entry of phi, at most, and its releases."""

    phi: Floats
    noise_std: float
    releases: tuple[Release, ...]


def descend(
    gradients: Gradients, centres: Floats, start: Floats, steps: Steps, terms: Terms, *, first: Release | None = None
) -> Recipe[Descended]:
    """Projected descent from ``start`` (points, size); the release of the ``first`` step may be at hand.

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
    sizes = step_sizes(gradients, terms.mu_of_a_row / math.sqrt(len(centres)), terms.n_rows_public, options.iterations)
    at_once = max(1, MOST_NUMBERS // gradients.problem.size)
    means_share = MEANS_SHARE if problem.intercept else 0.0
    step_share = (1 - means_share) / len(sizes)
    smallest_batch = (len(centres) - 1) % at_once + 1
    check_divisible(terms, step_share * smallest_batch / len(centres))
    ends, means, releases = [], list[Means](), list[Release]()
    for at in range(0, len(centres), at_once):
        batch = centres[at : at + at_once]
        share = len(batch) / len(centres)
        if problem.intercept:
            releases.append((yield means_ask(gradients, batch, means_share * share)))
            means.append(gradients.weighted_means(releases[-1], batch))
        start = gradients.start(means[-1].levels if means else None, len(batch))
        steps = [(float(eta), step_share * share) for eta in sizes[:most_steps]]
        ended = yield from descend(gradients, batch, start, steps, terms)
        ends.append((ended.phi, np.hypot(means[-1].stds if means else np.zeros(len(batch)), ended.noise_std)))
        releases += ended.releases
    phi, phi_stds = map(np.concatenate, zip(*ends, strict=True))
    mean = np.concatenate([found.of_x for found in means]) if means else None
    mean_stds = np.concatenate([found.stds for found in means]) if means else None
    models, promise = LocalModels(phi, mean, phi_stds, mean_stds), replace(terms.promise(*releases), basis=bundle(releases))
    notes = (f"Found by {len(sizes)} noisy gradients per point.", BANDS_NOTE.format(*LEFT_OUT["descent"]))
    cost, claim = cost_of(releases), _claim(problem, "descent")
    return explanation_of(problem, raw, models, guarantee=promise, cost=cost, method="descent", notes=notes, claim=claim)


def _claim(problem: LocalProblem, method: str) -> BandClaim:
    """Bands of descents were measured with an intercept."""
    return problem.claim(f"local {method}" if problem.intercept else "local linear")


def bundle(releases: Sequence[Release]) -> Basis:
    """Releases that are always used together, named as one."""
    return Basis.union(release.guarantee.behind for release in releases).bundled()


def check_divisible(terms: Terms, share: float) -> None:
    """Refuse a price of which this share buys nothing, before the first question is booked."""
    if terms.mu**2 * share * PICO < 1:
        raise InvalidInput(
            "the price is too small to be split over the gradients of a descent; ask for more, or fewer iterations"
        )


# --- a stream of points ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """Points one after the other, from a history as it is now.

    Attributes
    ----------
    gradients : Gradients
        The problem, and public facts about it.
    history : History
        What is known before the first point. It is left as it is.
    options : Adaptive
    """

    gradients: Gradients
    history: History
    options: Adaptive

    def facts(self) -> dict[str, JsonValue]:
        """What the questions of a stream depend on, besides its points."""
        options: list[JsonValue] = [self.options.iterations, self.options.reuse_distance]
        return {"method": self.options.name, "options": options, "history": self.history.digest()}

    def entries_recipe(self, raw: Floats, terms: Terms, most_steps: int | None = None) -> Recipe[tuple[History, list[Past]]]:
        """The history afterwards, and its entry for every point, each at the same share of the price."""
        known, entries = History(self.history.problem, self.history), []
        share = 1 / len(raw)
        for point in raw:
            past = known.neighbour(point, self.options.reuse_distance)
            if past is None:
                inner = _Point(self.gradients, point, known, self.options, terms.scaled(share), most_steps)
                past = yield from scaled(inner.recipe(), share)
            known.take(past)
            entries.append(past)
        return known, entries

    def recipe(self, raw: Floats, terms: Terms, most_steps: int | None = None) -> Recipe[Attribution]:
        """The explanation of all points."""
        after, entries = yield from self.entries_recipe(raw, terms, most_steps)
        promise = after.promise(terms.delta, terms.neighbours)
        return stream_explanation(after, raw, entries, promise, self.options)


class _Point:
    """Moves (b) and (c) for one point; a full descent from no slope where nothing is known yet."""

    def __init__(
        self, gradients: Gradients, raw: Floats, history: History, options: Adaptive, terms: Terms, most_steps: int | None
    ) -> None:
        self._raw, self._options, self._terms, self._most_steps = raw, options, terms, most_steps
        self._gradients, self._centres = gradients, gradients.problem.encode(raw[None])
        self._means_share = MEANS_SHARE if gradients.problem.intercept else 0.0
        self._share = (1 - self._means_share) / options.iterations
        self._start = history.start(raw)
        self._step_lengths = self._sizes(REACH if self._start is None else WARM_REACH)
        # A step costs no less, T' being two at least; refused at the first point, if at all: its descent is the longest.
        check_divisible(terms, self._share / len(self._sizes(REACH)))

    def recipe(self) -> Recipe[Past]:
        gradients, releases, mean, mean_std, levels = self._gradients, [], None, 0.0, None
        if gradients.problem.intercept:
            releases.append((yield means_ask(gradients, self._centres, self._means_share)))
            means = gradients.weighted_means(releases[0], self._centres)
            mean, mean_std, levels = means.of_x[0], float(means.stds[0]), means.levels
        if self._start is None:
            ended, start_std = (yield from self._cold(gradients.start(levels, 1))), mean_std
        else:
            phi, start_std = self._start
            ended = yield from self._warm(gradients.project(phi[None]))
        releases += ended.releases
        raw, std = np.array(self._raw, dtype=np.float64), math.hypot(start_std, ended.noise_std)
        return Past(raw, ended.phi[0], True, std, mean, mean_std, len(ended.releases), cost_of(releases), bundle(releases))

    def _cold(self, start: Floats) -> Recipe[Descended]:
        sizes, shares = self._step_lengths, self._options.iterations
        steps = [(float(eta), shares * self._share / len(sizes)) for eta in sizes[: self._most_steps]]
        return (yield from descend(self._gradients, self._centres, start, steps, self._terms))

    def _warm(self, start: Floats) -> Recipe[Descended]:
        """Steps are the same for every T', which decides how noisy they are and nothing else."""
        gradients, shares, sizes = self._gradients, self._options.iterations, self._step_lengths
        question = gradient_question(gradients, self._centres, start)
        first = yield Ask(question, self._share, "gradient 1 of a local explanation")
        c, (mean, sigma) = gradients.largest_bound, gradients.mean(first, self._terms.n_rows_public)
        beta = math.sqrt(max(0.0, float(np.square(mean).sum()) - gradients.problem.size * sigma**2))
        noise = math.sqrt(gradients.problem.size) * sigma
        needed = shares_needed(shares, beta / c, noise / c, enhanced=self._options.enhanced)
        # A step is as long as its price at most: the first gradient, with its one share, moves phi by that much less.
        first_step = float(sizes[0]) * len(sizes) / shares, self._share
        others = [(float(eta), (needed - 1) * self._share / len(sizes)) for eta in sizes[: self._most_steps]]
        return (yield from descend(gradients, self._centres, start, [first_step, *others], self._terms, first=first))

    def _sizes(self, reach: float) -> Floats:
        """The lengths of the steps, from the whole price."""
        most, mu = (
            min(MOST_ITERATIONS, self._options.iterations - 1),
            self._terms.mu_of_a_row * math.sqrt(1 - self._means_share),
        )
        return step_sizes(self._gradients, mu, self._terms.n_rows_public, reach=reach, most_iterations=most)


def stream_explanation(
    history: History, raw: Floats, entries: list[Past], promise: Guarantee, options: Adaptive
) -> Attribution:
    """What the entries say. ``promise`` covers the releases of the whole history, on which the explanations rest."""
    problem = history.problem
    columns = zip(*((past.phi, past.noise_std, past.mean_std) for past in entries), strict=True)
    phi, noise_std, mean_std = map(np.array, columns)
    mean = np.array([past.mean for past in entries]) if problem.intercept else None
    models = LocalModels(phi, mean, noise_std, mean_std)
    released = [past.gradients for past in entries]
    about = BANDS_NOTE.format(*LEFT_OUT[options.name])
    notes = (f"{_effort(released)}.", about, f"The guarantee covers all {len(history)} points of the history.")
    cost = sum((past.cost for past in entries), Cost())
    claim = _claim(problem, options.name)
    return explanation_of(problem, raw, models, guarantee=promise, cost=cost, method=options.name, notes=notes, claim=claim)


def _effort(released: list[int]) -> str:
    """How many points were handed on, and how many gradients the others took."""
    fresh = [count for count in released if count]
    handed_on = f"{len(released) - len(fresh)} of {len(released)} points were explained by a neighbour, free"
    if not fresh:
        return handed_on
    return f"{handed_on}; the others took {min(fresh)} to {max(fresh)} noisy gradients, {sum(fresh)} in all"


class Keeper:
    """Where the history of one problem is kept, and how much of it is there already.

    Parameters
    ----------
    problem : LocalProblem
        What is explained.
    data : PrivateData
        Whose ledger keeps it, for the analyst who asks.
    identity : mapping
        What the problem is known by.
    """

    def __init__(self, problem: LocalProblem, data: PrivateData, identity: dict[str, JsonValue]) -> None:
        named = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self._problem, self._data, self._name = problem, data, f"history {named}"
        self._n_known = 0

    def load(self) -> History:
        """Everything that is kept."""
        history = History(self._problem, self._read(0))
        self._n_known = len(history)
        return history

    def keep(self, history: History) -> None:
        """Keep what is new in ``history``, after what another run has kept in the meantime, which it takes in."""
        if len(history) == self._n_known:
            return
        first = self._n_known // POINTS_PER_PIECE
        stored = self._read(first)[self._n_known - first * POINTS_PER_PIECE :]
        history.insert(self._n_known, stored)
        entries = list(history)
        for start in range(first * POINTS_PER_PIECE, len(entries), POINTS_PER_PIECE):
            piece = entries[start : start + POINTS_PER_PIECE]
            self._data.keep(f"{self._name} {start // POINTS_PER_PIECE}", encode(self._problem, piece))
        self._n_known = len(entries)

    def _read(self, piece: int) -> list[Past]:
        """The kept entries from a piece on."""
        entries: list[Past] = []
        while (content := self._data.kept(f"{self._name} {piece}")) is not None:
            entries += decode(content, self._problem, "kept in the ledger")
            piece += 1
        return entries


def keeper_of(problem: LocalProblem, data: PrivateData, key: str | None) -> Keeper | None:
    """Where the problem's history is kept; None for a model or weight that has no name."""
    identity = problem.identity(key)
    return None if identity is None else Keeper(problem, data, identity)


def kept_history(problem: LocalProblem, data: PrivateData, key: str | None) -> History:
    """The history that is kept, or an error that says what to do."""
    keeper = keeper_of(problem, data, key)
    if keeper is None:
        raise InvalidInput(
            f"method 'history' needs the option history=, or key=: {problem.model.name} has no content hash by which the "
            "history in the ledger could be found; give the key that its points were explained with"
        )
    history = keeper.load()
    if not len(history):
        raise InvalidInput(
            f"the ledger keeps no history of this problem for this analyst on {data.name!r} (schema, model, weight, labels, "
            "intercept, version and part must be the same); explain some points first, with method='adaptive' for example"
        )
    return history
