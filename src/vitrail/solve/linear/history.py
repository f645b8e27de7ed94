"""What was explained before: the memory of the adaptive protocol, and Algorithm 4, which explains from it alone.

A history holds public points and explanations that were released; keeping, copying and publishing it costs nothing. After a
restart it is read from the ledger, which keeps it (``adaptive.Keeper``), or from a file of its own; and asking the same
stream again from an empty one rebuilds it, because the ledger replays stored answers free.

*Algorithm 4* (Patel, Shokri & Zick) fits the local linear model on the past points instead of the private rows. The paper
labels them by phi_j.z_j; its centred models predict 0 at z_j, and the model is public anyway, so the label is f(z_j). Then
no private row is involved at all: the guarantee is epsilon 0, whoever chose the points and why. It is as good as the past
points are dense. Test: tests/explain/linear/test_history.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._types import Floats
from ...accounting import NOTHING, Basis, Cost, rounded_up
from ...errors import InvalidInput
from ...guarantee import Guarantee, Neighbours
from ...results import Attribution
from ...results.archive import read_bytes, write_bytes
from ...results.base import Stored
from .descent import Gradients
from .least_squares import in_eigenbasis
from .problem import LocalModels, LocalProblem, explanation_of

RIDGES = (0.01, 0.1, 1.0)


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

    @property
    def behind(self) -> Basis:
        """The releases; where none is named, one of this price that is like no other."""
        return self.basis or Basis.new(self.cost)


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
    >>> from vitrail.solve.linear.problem import stable
    >>> from vitrail.model import Model
    >>> from vitrail.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 100)})
    >>> history = History(LocalProblem(schema, Model(lambda x: x[:, 0], range=(0, 1)), stable(), intercept=False))
    >>> len(history), history.cost
    (0, Cost(pico_mu_squared=0, pico_epsilon=0, quecto_delta=0))
    """

    def __init__(self, problem: LocalProblem) -> None:
        self._problem = problem
        self._entries: list[Past] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Past]:
        return iter(tuple(self._entries))

    def __repr__(self) -> str:
        fresh = sum(entry.computed for entry in self._entries)
        return f"History({len(self)} points, {fresh} of them computed, mu={rounded_up(self.cost.mu)})"

    @property
    def problem(self) -> LocalProblem:
        """What is explained."""
        return self._problem

    @property
    def cost(self) -> Cost:
        """What all of it cost."""
        return sum((entry.cost for entry in self._entries), Cost())

    @property
    def basis(self) -> Basis:
        """The releases behind all of it, each once."""
        return Basis.union(entry.behind for entry in self._entries)

    @property
    def raw_points(self) -> Floats:
        """All points, (points, n_columns)."""
        return np.array([entry.raw for entry in self._entries]).reshape(len(self), self._problem.schema.n_columns)

    def computed(self) -> list[Past]:
        """The entries whose explanations may be handed on."""
        return [entry for entry in self._entries if entry.computed]

    def add(self, entry: Past) -> None:
        """Put an entry at the end."""
        size = self._problem.size
        if entry.raw.shape != (self._problem.schema.n_columns,) or entry.phi.shape != (size,):
            raise InvalidInput(
                f"an entry of this history has a point of {self._problem.schema.n_columns} values and a phi of {size}, "
                f"not shapes {entry.raw.shape} and {entry.phi.shape}"
            )
        self._entries.append(entry)

    def insert(self, index: int, entries: list[Past]) -> None:
        """Put entries of another history of the same problem before the one at ``index``."""
        self._entries[index:index] = entries

    def copy(self) -> History:
        """Another one with the same entries, which grows on its own."""
        other = History(self._problem)
        other._entries = list(self._entries)
        return other

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
        computed = self.computed()
        centres, centre = self._centres(computed), self._problem.encode(raw[None])[0]
        distances = np.linalg.norm(centres - centre, axis=1)
        if not computed or distances.min() > reuse_distance:
            return None
        nearest = int(np.argmin(distances))
        past, shift = computed[nearest], centre - centres[nearest]
        mean = None if past.mean is None else past.mean - shift
        phi, here = self._moved(past.phi, shift), np.array(raw, dtype=np.float64)
        return Past(here, phi, False, past.noise_std, mean, past.mean_std, 0, Cost(), past.basis)

    def starts(self, raw: Floats, candidates: int) -> list[tuple[Floats, float]]:
        """Where a descent at ``raw`` may start, and the noise in each: the nearest past phis, and regressions of all.

        The regressions are ridge regressions of past explanations on their points, at the new point: they average the noise
        of single explanations out.
        """
        computed = self.computed()
        if not computed:
            return []
        centres, centre = self._centres(computed), self._problem.encode(raw[None])[0]
        phis = np.array([self._moved(past.phi, centre - one) for past, one in zip(computed, centres, strict=True)])
        stds = np.array([past.noise_std for past in computed])
        nearest = np.argsort(np.linalg.norm(centres - centre, axis=1), kind="stable")[:candidates]
        middle = centres.mean(axis=0)
        weights = [_ridge_weights(centres - middle, centre - middle, ridge) for ridge in RIDGES]
        predicted = [(shares @ phis, float(np.linalg.norm(shares * stds))) for shares in weights]
        return [*((phis[index], float(stds[index])) for index in nearest), *predicted]

    def _centres(self, entries: list[Past]) -> Floats:
        if not entries:
            return np.zeros((0, self._problem.n_features))
        return self._problem.encode(np.array([past.raw for past in entries]))

    def _moved(self, phi: Floats, shift: Floats) -> Floats:
        """The same affine function around a centre that lies ``shift`` further; a centred model is taken as it is."""
        return np.append(phi[0] + phi[1:] @ shift, phi[1:]) if self._problem.intercept else phi

    def promise(self, delta: float, neighbours: Neighbours) -> Guarantee:
        """The promise for all that was released for it."""
        return Guarantee.of(self.basis, delta, neighbours)

    def check(self, problem: LocalProblem) -> None:
        """Refuse a problem that this history is not about."""
        if _digest(problem) != _digest(self._problem):
            raise InvalidInput(
                "the history is about another problem (schema, model, weight, labels or intercept differ); start a new one"
            )

    def save(self, path: str | Path) -> None:
        """Write a file. It holds released numbers and public points only."""
        write_bytes(path, encode(self._problem, self._entries))

    @classmethod
    def load(cls, path: str | Path, problem: LocalProblem) -> History:
        """Read a file that ``save`` wrote, about the same problem."""
        return decode(read_bytes(path), problem, repr(str(path)))


def encode(problem: LocalProblem, entries: list[Past]) -> bytes:
    """Entries of a history, to be stored."""
    return HistoryFile(_digest(problem), tuple(entries)).to_bytes()


def decode(content: bytes, problem: LocalProblem, where: str) -> History:
    """What ``encode`` wrote about the same problem; ``where`` it was found is for errors."""
    stored = HistoryFile.from_bytes(content, what=f"the history {where}")
    if stored.problem != _digest(problem):
        raise InvalidInput(
            f"the history {where} is about another problem (schema, model, weight, labels or intercept differ)"
        )
    history = History(problem)
    for entry in stored.entries:
        history.add(entry)
    return history


def _digest(problem: LocalProblem) -> str:
    facts = {**problem.facts(), "model": problem.model.fingerprint(problem.row_schema)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _ridge_weights(away: Floats, here: Floats, ridge: float) -> Floats:
    """The weights of past points in a ridge regression at a new one, from coordinates around their mean."""
    if len(away) <= away.shape[1]:  # the smaller of the two systems
        weights = np.linalg.solve(away @ away.T + ridge * np.eye(len(away)), away @ here)
    else:
        weights = away @ np.linalg.solve(away.T @ away + ridge * np.eye(len(here)), here)
    return np.asarray(weights + (1 - weights.sum()) / len(weights))  # what the slopes leave over is the mean's


# --- Algorithm 4 ------------------------------------------------------------------------------------------------------


def explain_from(history: History, raw_points: Floats) -> Attribution:
    """Explain public points from the history alone, free.

    Parameters
    ----------
    history : History
        Of at least one point.
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.

    Returns
    -------
    Attribution
        ``method`` is ``"history"``; no private row was used, so epsilon is 0.

    Examples
    --------
    >>> from vitrail.solve.linear.problem import stable
    >>> from vitrail.model import Model
    >>> from vitrail.schema import Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 100), "dose": Numeric(0, 1)})
    >>> history = History(LocalProblem(schema, Model(lambda x: x[:, 0], range=(0, 1)), stable()))
    >>> for raw in schema.read_points({"age": [40, 40, 60, 60], "dose": [0.2, 0.8, 0.2, 0.8]}):
    ...     history.add(Past(raw, np.zeros(3), True, 0.0, np.zeros(2), 0.0, 1, Cost.of_mu(0.1)))
    >>> found = explain_from(history, schema.read_points({"age": 55, "dose": 0.5}))
    >>> found.guarantee.epsilon, found.top(1)[0].column
    (0.0, 'age')
    """
    problem = history.problem
    raw = np.asarray(raw_points, dtype=np.float64)
    if raw.ndim != 2 or raw.shape[1] != problem.schema.n_columns or not len(raw) or not np.isfinite(raw).all():
        raise InvalidInput(
            f"raw_points have shape {raw.shape}; complete points of shape (points, {problem.schema.n_columns}) are expected"
        )
    if not len(history):
        raise InvalidInput("the history is empty; explain some points first, with method='adaptive' for example")
    past = history.raw_points
    x, f = problem.encode(past), problem.at(past)
    fitted = [_fit(problem, x - z, f) for z in problem.encode(raw)]
    return explanation_of(
        problem,
        raw,
        LocalModels(np.array([phi for phi, _ in fitted]), np.array([mean for _, mean in fitted])),
        guarantee=Guarantee.of(Basis(), 0.0),  # no release is used: the points and the model are public
        cost=Cost(),
        method="history",
        notes=(
            f"Fitted on {len(history)} points that were explained before, labelled by the model; no private row was used.",
        ),
    )


def _fit(problem: LocalProblem, d: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares with the slope in its ball: (phi, weighted mean of d)."""
    alpha = np.clip(problem.weight(np.linalg.norm(d, axis=1)), 0.0, 1.0)
    mass = float(alpha.sum())
    alpha = alpha / mass if mass > 0 else np.full(len(d), 1 / len(d))
    mean, centre = (alpha @ d, float(alpha @ f)) if problem.intercept else (np.zeros(d.shape[1]), 0.0)
    root = np.sqrt(alpha)[:, None]
    # The singular values of the weighted rows are the eigenvalues of A, without ever forming n^2 numbers.
    left, singular, right = np.linalg.svd(root * (d - mean), full_matrices=False)
    beta = singular * (left.T @ (root[:, 0] * (f - centre)))
    slope = in_eigenbasis(singular[None, ::-1] ** 2, beta[None, ::-1], Gradients(problem).radius)[0, ::-1] @ right
    if not problem.intercept:
        return slope, mean
    return np.append(centre - slope @ mean, slope), mean
