"""Noisy gradients of the local loss: what a row contributes, its bound, and the three questions that descent asks.

*Gradient.* With u = x - z, or (k, x - z) where there is an intercept, and r the residual, a row contributes 2 alpha r u,
once for every point z that shares the pass: points * size numbers. (The intercept is counted in units of k = 1/2, about
as long as x - z is: the loss is rounder then, steps are three times longer, and the bound is smaller.) As |f| <= 1,

    |2 alpha r u| <= 2 alpha(d) |u| (|slope| d + |intercept| + 1),  d = |x - z|,

whose largest value over the distances the schema allows is :meth:`Gradients.bounds`. phi was released a step before, so
its length is public and the bound uses it: 0.73 c at phi = 0 for the stable weight, c on the unit sphere (the paper's c,
``weight.gradient_constant(largest_distance, 1)``). Several points make one longer vector: their norms add in squares.
*Choice.* The start whose summed gradient is shortest: ``Select(score="small-norm")`` with the largest of those bounds.
*Means.* A row contributes alpha u, |alpha u| <= sup alpha |u|; the ratio of the two parts is the weighted mean of x - z.

The vault clips to the bounds, so a wrong one would cost accuracy, never privacy; sums are divided by the public row count
(the paper's own m moves with the row); replace-one doubles the sensitivity there. Test: test_descent_gradients.py.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...accounting import NOTHING, Basis, Cost, JsonValue
from ...errors import InvalidInput, ModelError, SchemaError
from .problem import Floats, LocalProblem

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum, PrivateData, Select

VERSION = 1
AFFINE_RADIUS = 3.0
"""Of the ball for the slope where there is an intercept: x is divided by sqrt(columns), so length 1 follows no model."""
INTERCEPT_UNIT = 0.5
LARGEST_INTERCEPT = 2.0
"""In units of f; the bound grows with the intercept that phi has, not with this one."""
MOST_NUMBERS = 8192
"""Per row and pass: a block of 4096 rows then takes 0.3 GB."""
_DISTANCES = 20_001
_ROWS_IN_CACHE = 256
_PHI_STEP = 2.0**-32
"""phi is rounded to this, so that a last bit that differs between machines does not make a stored question a new one."""


@dataclass(frozen=True)
class NoisyGradient:
    """A released gradient of the mean loss, (points, size), with noise of std ``sigma`` on every entry.

    Where there is an intercept, its entry comes first, made smaller to be a step of the same length as the others.
    """

    mean: Floats
    sigma: float
    cost: Cost
    replayed: bool = False
    basis: Basis = NOTHING


@dataclass(frozen=True)
class Choice:
    """Which start was chosen."""

    index: int
    cost: Cost
    replayed: bool = False
    basis: Basis = NOTHING


@dataclass(frozen=True)
class WeightedMeans:
    """The released weighted means of x - z, (points, n_features), and about how noisy each point's entries are."""

    mean: Floats
    std: Floats
    cost: Cost
    replayed: bool = False
    basis: Basis = NOTHING


class Answers(Protocol):
    """Who answers the questions of a descent: the vault, or a rehearsal on statistics that are nobody's."""

    def gradient(self, centres: Floats, phi: Floats, *, step: int, mu: float) -> NoisyGradient:
        """The gradients at ``phi`` (points, size) of the losses around ``centres`` (points, n_features)."""
        ...

    def choose(self, centre: Floats, starts: Floats, *, mu: float) -> Choice:
        """The start (candidates, size) with a short gradient around ``centre``."""
        ...

    def means(self, centres: Floats, *, mu: float) -> WeightedMeans:
        """The weighted means of x - z around ``centres``."""
        ...


@dataclass(frozen=True)
class Gradients:
    """Public facts about the gradients of a problem, and the questions about them.

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
    model_key: str | None = None

    @property
    def radius(self) -> float:
        """Of the ball that holds the slope: 1 without an intercept, as in the paper."""
        return radius_of(self.problem)

    @property
    def size(self) -> int:
        """Length of phi: one number per feature, after the intercept where there is one."""
        return self.problem.n_features + int(self.problem.intercept)

    @cached_property
    def _pull(self) -> tuple[Floats, Floats, Floats]:
        """Distances d, |u| and 2 alpha |u|, on a fine public grid."""
        d = np.linspace(0.0, self.problem.largest_distance, _DISTANCES)
        u = np.sqrt(d * d + INTERCEPT_UNIT**2) if self.problem.intercept else d
        return d, u, 2 * np.clip(self.problem.weight(d), 0.0, 1.0) * u

    @cached_property
    def curvature(self) -> float:
        """L = 2 sup alpha |u|^2: no direction of the mean loss bends more."""
        _, u, pull = self._pull
        return float((pull * u).max())

    def bounds(self, phi: Floats) -> Floats:
        """The longest gradient of any row, for every phi of (points, size)."""
        offsets = np.abs(phi[:, 0]) if self.problem.intercept else np.zeros(len(phi))
        slopes = np.linalg.norm(phi[:, 1:] if self.problem.intercept else phi, axis=1)
        d, _, pull = self._pull
        longest = [(pull * (slope * d + (1.0 + one))).max() for slope, one in zip(slopes, offsets, strict=True)]
        return np.array(longest) * (1 + 1e-9)

    @cached_property
    def largest_bound(self) -> float:
        """The bound on the edge of the ball, with an intercept as large as labels are."""
        edge = np.zeros((1, self.size))
        edge[0, 0], edge[0, -1] = (1.0 if self.problem.intercept else 0.0), self.radius
        return float(self.bounds(edge)[0])

    def project(self, phi: Floats) -> Floats:
        """The nearest allowed phi: slope in the ball, intercept in its interval, on a fine grid."""
        inside = np.array(phi, dtype=np.float64)
        slopes = inside[..., 1:] if self.problem.intercept else inside
        slopes /= np.maximum(np.linalg.norm(slopes, axis=-1, keepdims=True) / self.radius, 1.0)
        if self.problem.intercept:
            inside[..., 0] = np.clip(inside[..., 0], -LARGEST_INTERCEPT, LARGEST_INTERCEPT)
        return np.asarray(np.rint(inside / _PHI_STEP) * _PHI_STEP)

    def gradient_question(self, centres: Floats, phi: Floats, *, step: int = 0, label: str | None = None) -> BoundedSum:
        """The gradients of one pass as one sum."""
        from ...vault import BoundedSum  # here, so that stored explanations can be read without loading the vault

        norm = float(np.linalg.norm(self.bounds(phi))) * (1 + 1e-12)
        key = self._key("gradient", step=step, centres=centres, phi=phi)
        return BoundedSum(_GradientRows(self.problem, centres, phi[:, None]), phi.size, norm, key=key, label=label)

    def choice_question(self, centre: Floats, starts: Floats, *, label: str | None = None) -> Select:
        """The start with the shortest summed gradient around one centre."""
        from ...vault import Select

        bound = float(self.bounds(starts).max())
        key = self._key("choice", centre=centre, starts=starts)
        rows = _GradientRows(self.problem, centre[None], starts[None])
        return Select(rows.candidates, len(starts), bound, "small-norm", self.size, key=key, label=label)

    def means_question(self, centres: Floats, *, label: str | None = None) -> BoundedSum:
        """alpha u, u = (1, x - z), for every point of the pass."""
        from ...vault import BoundedSum

        d = self._pull[0]
        lengths = np.clip(self.problem.weight(d), 0.0, 1.0) * np.sqrt(d * d + 1)
        norm = float(lengths.max()) * np.sqrt(len(centres)) * (1 + 1e-9)
        size = len(centres) * (self.problem.n_features + 1)
        return BoundedSum(
            _MeanRows(self.problem, centres), size, float(norm), key=self._key("means", centres=centres), label=label
        )

    @cached_property
    def _model(self) -> str | None:
        """What the model is known by, computed once for all questions of a descent: hashing a large one takes time."""
        return self.problem.model_identity(self.model_key)

    def _key(self, kind: str, *, step: int = 0, **arrays: Floats) -> str | None:
        """A stable name; None where the model has no content hash and was given no name."""
        model = self._model
        if model is None:
            return None
        identity: dict[str, JsonValue] = {
            "kind": f"local-linear {kind}",
            "version": VERSION,
            **problem_identity(self.problem),
            "model": model,
            "step": step,
            **{what: digest_of(array) for what, array in arrays.items()},
        }
        return json.dumps(identity, sort_keys=True)


class _GradientRows:
    """What a row contributes to gradients. No matrix products: their bits depend on a row's place in the block."""

    def __init__(self, problem: LocalProblem, centres: Floats, phi: Floats) -> None:
        self._problem, self._centres, self._phi = problem, centres, phi  # (points, n), (points, candidates, size)

    def __call__(self, block: Block) -> Floats:
        return self.candidates(block).reshape(len(block), -1)

    def candidates(self, block: Block) -> Floats:
        """(rows, points * candidates, size)."""
        x, f = self._problem.rows(block)
        found = np.empty((len(x), *self._phi.shape))
        for start in range(0, len(x), _ROWS_IN_CACHE):
            part = slice(start, start + _ROWS_IN_CACHE)
            self._fill(found[part], x[part], f[part])
        return found.reshape(len(x), -1, self._phi.shape[-1])

    def _fill(self, found: Floats, x: Floats, f: Floats) -> None:
        for point, z in enumerate(self._centres):
            d = x - z
            twice_alpha = 2 * np.clip(self._problem.weight(np.sqrt(np.einsum("ij,ij->i", d, d))), 0.0, 1.0)
            for place, phi in enumerate(self._phi[point]):
                target = found[:, point, place]
                if self._problem.intercept:
                    pull = twice_alpha * ((d * phi[1:]).sum(axis=1) + phi[0] - f)
                    target[:, 0] = INTERCEPT_UNIT * pull
                    np.multiply(d, pull[:, None], out=target[:, 1:])
                else:
                    np.multiply(d, (twice_alpha * ((d * phi).sum(axis=1) - f))[:, None], out=target)


class _MeanRows:
    """What a row contributes to weighted means: alpha (1, x - z)."""

    def __init__(self, problem: LocalProblem, centres: Floats) -> None:
        self._problem, self._centres = problem, centres

    def __call__(self, block: Block) -> Floats:
        x = self._problem.x(block)
        found = np.empty((len(x), len(self._centres), x.shape[1] + 1))
        for place, z in enumerate(self._centres):
            d = x - z
            alpha = np.clip(self._problem.weight(np.sqrt(np.einsum("ij,ij->i", d, d))), 0.0, 1.0)
            found[:, place, 0] = alpha
            np.multiply(d, alpha[:, None], out=found[:, place, 1:])
        return found.reshape(len(x), -1)


@dataclass(frozen=True)
class VaultAnswers:
    """The vault, asked: every answer is charged to the ledger on its own, or replayed from it."""

    gradients: Gradients
    data: PrivateData
    run: str

    def gradient_label(self, step: int) -> str:
        """What the bill calls a gradient."""
        return f"{self.run}: gradient {step + 1}"

    def gradient(self, centres: Floats, phi: Floats, *, step: int, mu: float) -> NoisyGradient:
        """See :meth:`Answers.gradient`."""
        question = self.gradients.gradient_question(centres, phi, step=step, label=self.gradient_label(step))
        release = self.data.ask(question, mu=mu)
        assert release.sigma is not None
        rows = self.data.n_rows_public
        mean = release.value.reshape(phi.shape) / rows
        if self.gradients.problem.intercept:
            mean[:, 0] *= INTERCEPT_UNIT  # a step in units of the intercept, as a step of the intercept itself
        return NoisyGradient(mean, release.sigma / rows, release.cost, release.replayed, release.guarantee.behind)

    def choose(self, centre: Floats, starts: Floats, *, mu: float) -> Choice:
        """See :meth:`Answers.choose`."""
        question = self.gradients.choice_question(centre, starts, label=f"{self.run}: choice among {len(starts)} starts")
        release = self.data.ask(question, mu=mu)
        return Choice(int(release.value[0]), release.cost, release.replayed, release.guarantee.behind)

    def means(self, centres: Floats, *, mu: float) -> WeightedMeans:
        """See :meth:`Answers.means`."""
        release = self.data.ask(self.gradients.means_question(centres, label=f"{self.run}: means"), mu=mu)
        assert release.sigma is not None
        sums = release.value.reshape(len(centres), -1)
        mass = np.maximum(sums[:, 0], release.sigma)  # a mass below its own noise says nothing
        nearest, farthest = -centres, 1 / self.gradients.problem.scale - centres  # where x - z can be at all
        mean = np.clip(sums[:, 1:] / mass[:, None], nearest, farthest)
        return WeightedMeans(mean, release.sigma / mass, release.cost, release.replayed, release.guarantee.behind)


def checked_centres(problem: LocalProblem, data: PrivateData, raw_points: Floats) -> Floats:
    """The points as x, or an error before anything is charged."""
    if problem.row_schema != data.feature_schema:
        raise SchemaError("the problem's schema is not the feature schema of the data; make it with data.feature_schema")
    raw = np.asarray(raw_points, dtype=np.float64)
    if raw.ndim != 2 or raw.shape[1] != problem.row_schema.n_columns or not len(raw) or not np.isfinite(raw).all():
        raise InvalidInput(
            f"raw_points have shape {raw.shape}; complete points of shape (points, {problem.row_schema.n_columns}) are "
            "expected, as schema.read_points returns them"
        )
    problem.model.check(problem.row_schema)  # the means do not ask the model, so the vault would not notice in time
    if not np.isfinite(problem.model.predict_points(problem.row_schema, raw)).all():
        raise ModelError(f"{problem.model.name} gives no finite output at a point; explain points that it can predict")
    return problem.encode(raw)


def check_iterations(iterations: int | None) -> None:
    """A whole number of at least 2, or None."""
    if iterations is None:
        return
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or not 2 <= iterations <= 10_000:
        raise InvalidInput(f"iterations is {iterations!r}; it must be a whole number from 2 to 10000")


def radius_of(problem: LocalProblem) -> float:
    """The ball that a problem's slopes are sought in."""
    return AFFINE_RADIUS if problem.intercept else 1.0


def problem_identity(problem: LocalProblem) -> dict[str, JsonValue]:
    """Schema, weight, labels and form. A weight enters by its values on public distances too: anybody can use a name.

    To a billionth, because last bits may differ between machines.
    """
    weight = problem.weight
    values = np.rint(weight(np.linspace(0.0, problem.largest_distance, 1001)) * 1e9) + 0.0
    return {
        "schema": problem.schema_digest(),
        "weight": weight.to_json(),
        "weight_values": digest_of(np.nan_to_num(values)),
        "labels": problem.labels,
        "intercept": problem.intercept,
    }


def digest_of(array: Floats) -> str:
    """A stable name for public numbers."""
    content = np.ascontiguousarray(array, dtype=np.float64)
    return hashlib.sha256(repr(content.shape).encode() + content.tobytes()).hexdigest()
