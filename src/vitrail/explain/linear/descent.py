"""Algorithm 1 of Patel, Shokri & Zick made sound: descent along noisy gradients, for problems too wide for n^2 numbers.

*What a row contributes, and its bound*: see ``gradients``. *Cost.* The T gradients of a descent are chosen adaptively; at
mu^2/T each they cost mu together, exactly (the GDP filter), where the paper's strong composition is 18 times too noisy.
Points that share a pass share its price: at the same price for all, q points get the noise of mu/sqrt(q). *Neighbours.*
As the dataset declares. Number and lengths of the steps come from public numbers, and nothing else stops a descent.

*Steps.* T gradients have noise sqrt(T) s each, s = c/(mu m0). Steps of total length tau carry noise of length about
sqrt(n) s tau into phi, however many they are, and leave a bias of order 1/tau: so tau is ``REACH``/(sqrt(n) s), and T need
only be so large that no step exceeds 1/L, L = 2 sup alpha |u|^2. Steps shrink linearly to zero. Measured on hospital
records (40 000 rows, 81 features; mean excess loss at epsilon 0.01 / 0.1 / 1, delta 1e-6): 1.6e-2 / 1.1e-3 / 1.8e-5 with
T = 100, against 1.7e-2 / 1.1e-3 / 4.0e-5 for the paper's c0/sqrt(t) with T = 300 and the best c0, both with this noise, and
1.7e-2 / 0.9e-3 / 1.5e-5 for sufficient statistics. Averaging the iterates was worse in every case.
Tests: tests/explain/linear/test_descent*.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import NOTHING, Basis, Cost, epsilon_of, rounded_down, rounded_up
from ...accounting.cost import PICO
from ...errors import BudgetExceeded, InvalidInput
from ...guarantee import question_mu
from ...results import Attribution
from ...solve.linear.contributions import explanation_of
from ..promises import guarantee_of
from .gradients import (
    MOST_NUMBERS,
    Gradients,
    NoisyGradient,
    VaultAnswers,
    WeightedMeans,
    check_iterations,
    checked_centres,
    digest_of,
)
from .problem import Floats, LocalProblem

if TYPE_CHECKING:
    from ...vault import PrivateData

REACH = 0.7
FEWEST_ITERATIONS, MOST_ITERATIONS = 10, 100
MEANS_SHARE = 0.1
"""Share of the price that goes to the weighted mean of the rows, where contributions need one."""
BANDS_NOTE = "Bands cover the noise of the releases, not how far the descent still was from the optimum."
REPLAYED_NOTE = "Every release was stored already: this time nothing was charged."


@dataclass(frozen=True)
class Pace:
    """How many steps a full descent takes, and how long its first one is. Later ones shrink linearly to zero."""

    iterations: int
    first_step: float

    def sizes(self) -> Floats:
        """Lengths of all steps."""
        return np.asarray(self.first_step * (1.0 - np.arange(self.iterations) / self.iterations))


def pace_of(
    gradients: Gradients,
    mu: float,
    n_rows_public: int,
    iterations: int | None = None,
    *,
    reach: float = REACH,
    most_iterations: int = MOST_ITERATIONS,
) -> Pace:
    """The pace for one point whose gradients cost ``mu`` together."""
    noise = gradients.largest_bound / (mu * n_rows_public)
    length = reach * gradients.radius / (math.sqrt(gradients.size) * noise)
    if iterations is None:
        iterations = min(max(FEWEST_ITERATIONS, math.ceil(2 * length * gradients.curvature)), most_iterations)
    return Pace(iterations, min(2 * length / iterations, 1 / gradients.curvature))


@dataclass(frozen=True)
class Descended:
    """Where a descent ended, what its gradients cost, and the std that their noise gives every entry of phi, at most."""

    phi: Floats
    noise_std: float
    cost: Cost
    replayed: bool
    basis: Basis = NOTHING


def descend(
    ask: Callable[[int, Floats], NoisyGradient], start: Floats, sizes: Floats, project: Callable[[Floats], Floats]
) -> Descended:
    """Projected descent from ``start``: ``ask(step, phi)`` for every size.

    The noise of a step is only ever shrunk afterwards: I - 2 eta A is a contraction for eta <= 1/L, and so is projection.

    Examples
    --------
    >>> def exact(step, phi):
    ...     return NoisyGradient(2 * (phi - 0.5), 0.0, Cost())
    >>> descend(exact, np.zeros((1, 2)), np.full(30, 0.25), lambda phi: phi).phi.round(6)
    array([[0.5, 0.5]])
    """
    phi, variance, cost, replayed = start, 0.0, Cost(), True
    used: list[Basis] = []
    for step, eta in enumerate(sizes):
        gradient = ask(step, phi)
        phi = project(phi - eta * gradient.mean)
        variance += float(eta * gradient.sigma) ** 2
        cost, replayed = cost + gradient.cost, replayed and gradient.replayed
        used.append(gradient.basis)
    return Descended(phi, math.sqrt(variance), cost, replayed, Basis.union(used))


def split_units(units: int, shares: Sequence[float]) -> list[int]:
    """Whole parts in proportion to ``shares`` that add up to ``units`` exactly."""
    ends = [round(units * end) for end in np.cumsum(shares) / np.sum(shares)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def mu_of_units(units: int) -> float:
    """The price of a question that the ledger, which rounds up, charges with exactly this many trillionths of mu^2."""
    if units < 1:
        raise InvalidInput(
            "the price is too small to be split over the gradients of a descent; ask for more, or fewer iterations"
        )
    return math.sqrt(units / PICO) * (1 - 2e-15)


def explain(
    problem: LocalProblem,
    data: PrivateData,
    raw_points: Floats,
    mu: float,
    *,
    iterations: int | None = None,
    model_key: str | None = None,
) -> Attribution:
    """Explain public points by descent along noisy gradients; all of them together cost ``mu``.

    Parameters
    ----------
    problem : LocalProblem
        Schema, model, weight, labels, intercept.
    data : PrivateData
        The rows.
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.
    mu : float
        The price of the call, as GDP.
    iterations : int, optional
        Gradients per point; from public numbers if not given. More of them take time; they cost neither privacy nor
        accuracy.
    model_key : str, optional
        A name for a model without a content hash (a function), so that asking again replays the stored answers.

    Returns
    -------
    Attribution
        ``method`` is ``"descent"``. With an intercept, a tenth of the price goes to the weighted mean of the rows, from
        which contributions are measured.

    Raises
    ------
    BudgetExceeded
        If the whole descent does not fit. Nothing was charged then.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.solve.linear.weights import stable
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "dose": vt.Numeric(0, 1)})
    >>> spread = np.random.default_rng(0).uniform(size=(2, 4000))
    >>> data = vt.PrivateData({"age": 100 * spread[0], "dose": spread[1]}, schema, name="trial", n_rows_public=4000,
    ...                       budget=vt.Budget(9.0, 1e-6))
    >>> problem = LocalProblem(schema, vt.Model(lambda x: x[:, 0], range=(0, 1)), stable(), intercept=False)
    >>> found = explain(problem, data, schema.read_points({"age": 50, "dose": 0.5}), mu=1.0, iterations=20)
    >>> found.method, found.top(1)[0].column, found.cost == vt.Cost.of_mu(1.0)
    ('descent', 'age', True)
    """
    gradients = Gradients(problem, model_key)
    centres = checked_centres(problem, data, raw_points)
    check_iterations(iterations)
    mu = question_mu(None, mu, data.delta)
    at_once = max(1, MOST_NUMBERS // gradients.size)
    turns = [centres[start : start + at_once] for start in range(0, len(centres), at_once)]
    pace = pace_of(gradients, mu / math.sqrt(len(centres)), data.n_rows_public, iterations)
    steps = pace.iterations
    means_share = MEANS_SHARE if problem.intercept else 0.0
    answers = VaultAnswers(gradients, data, f"descent {_run_name(gradients, centres, mu, steps)}")
    _check_budget(answers, centres, mu, answers.gradient_label(steps - 1))

    ended: list[Descended] = []
    means: list[WeightedMeans] = []
    for turn, units in zip(turns, split_units(Cost.of_mu(mu).pico_mu_squared, [len(turn) for turn in turns]), strict=True):
        means_units, *step_units = split_units(units, [means_share, *[(1 - means_share) / steps] * steps])

        def ask(step: int, phi: Floats, turn: Floats = turn, step_units: Sequence[int] = step_units) -> NoisyGradient:
            return answers.gradient(turn, phi, step=step, mu=mu_of_units(step_units[step]))

        if problem.intercept:
            means.append(answers.means(turn, mu=mu_of_units(means_units)))
        ended.append(descend(ask, np.zeros((len(turn), gradients.size)), pace.sizes(), gradients.project))
    parts: list[Descended | WeightedMeans] = [*ended, *means]
    cost = sum((one.cost for one in parts), Cost())
    replayed = (REPLAYED_NOTE,) if all(one.replayed for one in parts) else ()
    return explanation_of(
        problem,
        np.asarray(raw_points, dtype=np.float64),
        np.concatenate([one.phi for one in ended]),
        phi_std=np.concatenate([np.full(len(one.phi), one.noise_std) for one in ended]),
        means=np.concatenate([one.mean for one in means]) if means else None,
        means_std=np.concatenate([one.std for one in means]) if means else None,
        guarantee=guarantee_of(data, Basis.union(one.basis for one in parts).bundled()),
        cost=cost,
        method="descent",
        notes=(f"Found by {steps} noisy gradients per point.", BANDS_NOTE, *replayed),
    )


def _run_name(gradients: Gradients, centres: Floats, mu: float, steps: int) -> str:
    """A short name for a descent in the bill: the same for the same descent, and for no other where keys are stable."""
    first = gradients.gradient_question(centres, np.zeros((len(centres), gradients.size))).key or digest_of(centres)
    return hashlib.sha256(f"{first} {mu!r} {steps}".encode()).hexdigest()[:12]


def _check_budget(answers: VaultAnswers, centres: Floats, mu: float, last_label: str) -> None:
    """Refuse a descent that the account cannot pay to its end, unless its last gradient is on the bill: that is a replay."""
    start = np.zeros((1, answers.gradients.size))
    question = answers.gradients.gradient_question(centres[:1], start)
    quote = answers.data.quote(question, mu=mu)
    if quote.fits:
        return
    if question.key is not None:
        asked = (entry.body.get("question") for entry in answers.data.budget.entries if entry.kind == "charged")
        mine = {"dataset": answers.data.name, "label": last_label}
        if any(isinstance(one, dict) and mine.items() <= one.items() for one in asked):
            return
    wanted = epsilon_of(mu, answers.data.delta)
    raise BudgetExceeded(
        f"this descent would cost epsilon {rounded_up(wanted)} in all its gradients together, and the largest question "
        f"the account can still pay for is epsilon {rounded_down(quote.remaining_epsilon)}. Nothing was "
        "charged; ask for less",
        requested_epsilon=wanted,
        remaining_epsilon=quote.remaining_epsilon,
    )
