"""Algorithms 2 and 3 of Patel, Shokri & Zick made sound: a stream of points, each cheaper for what is known already.

The price mu of a point is cut into T equal shares, mu^2/T each. A new point z is explained in four moves:

(a) *Reuse*. A past explanation that was itself computed, of a point within a distance the user sets, is handed on.
(b) *Choice*, one share. Else a start is chosen by the length of its gradient around z (``Select``, score sensitivity c; the
    paper's 1/m is c/m in truth, and overspends by 1.5 to 2). Candidates are the nearest past explanations, as in the paper,
    zero, and (ours) what a ridge regression of past explanations on their points predicts at z, which is free.
(c) *Beta*, one share. The gradient at the start is released; it is the first step of the descent as well.
(d) *Descent* at the price of T' <= T shares, the first gradient included. Theorem 4.4, with s = max(sqrt(n) sigma, beta)/c
    written as (log T)^-a, has T' = s^(1 - 1/2a) T, which is

        T' = min(1, s sqrt(log T)) T;

    *enhanced* has s = beta/c. beta^2 is |released|^2 - n sigma^2: the noise's own length is public and taken off.

*Why it is private.* Start, T', spend and the moment of refusal are functions of releases and public numbers. The paper's T'
is a function of the exact gradient: a row that carries it past a whole number is seen with certainty. Costs are chosen on
the way, so the account must be a filter, as the ledger is; the paper adds up until a bound is crossed. *Bounds*: see
``gradients``. No point costs more than mu.

*What it is worth.* Between points that noise hardly blurs, a good start saves nothing: the price buys the last digits. With
x = sqrt(n)/(mu m0), the length of the noise, the share of the price that leaves the loss as it is was measured (hospital
records, 40 000 x 81, 200 points): 0.2 at x = 0.07, 0.35 at 0.008, 1 at 0.002. The theorem's constants do not know that,
so T' is kept above (0.35 + 0.0025/x) T, except in the enhanced variant. With the paper's candidates alone there is nothing
to save at equal loss: past explanations carry their own noise along. Regression averages it out.

Audit: tests/audit/test_adaptive_audit.py, where the published version is caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import Basis, Cost
from ...accounting.cost import PICO
from ...errors import InvalidInput
from ...guarantee import question_mu
from ...results import Attribution
from ...solve.linear.contributions import explanation_of
from ...solve.linear.history import History, Past
from ..promises import guarantee_of
from .descent import (
    BANDS_NOTE,
    MEANS_SHARE,
    MOST_ITERATIONS,
    REACH,
    REPLAYED_NOTE,
    Pace,
    descend,
    mu_of_units,
    pace_of,
    split_units,
)
from .gradients import Answers, Gradients, NoisyGradient, VaultAnswers, check_iterations, checked_centres
from .kept_history import NOT_KEPT_NOTE, keeper_of
from .problem import Floats, LocalProblem

if TYPE_CHECKING:
    from ...vault import PrivateData

ITERATIONS = 300
REUSE_DISTANCE = 0.1
CANDIDATES = 1
"""Past explanations among the starts. More of them make a cheap choice a bad one: measured, three lose to one."""
FEWEST_SHARES = 2
RIDGES = (0.01, 0.1, 1.0)
WARM_REACH = 0.45
"""In place of REACH where a start is known; both measured on the hospital records named above."""


@dataclass(frozen=True)
class Rules:
    """Everything about the protocol that is fixed before it starts.

    Parameters
    ----------
    shares : int
        T, into how many shares the price of a point is cut.
    share_units, means_units : int
        Prices of one share and of the weighted means, in trillionths of mu^2.
    n_rows_public : int
        What sums are divided by.
    reuse_distance : float
        Explanations are handed on up to here, in units of x (|x| <= 1).
    candidates : int
        How many past explanations, the nearest, are among the starts.
    enhanced : bool
        Let beta alone set the spend.
    """

    shares: int
    share_units: int
    means_units: int
    n_rows_public: int
    reuse_distance: float
    candidates: int
    enhanced: bool

    def shares_needed(self, beta: float, size: int, sigma: float) -> int:
        """T', for a start with a gradient of length ``beta`` released with noise ``sigma``, both in units of c."""
        noise = math.sqrt(size) * sigma
        part = (beta if self.enhanced else max(beta, noise)) * math.sqrt(math.log(self.shares))
        if not self.enhanced:
            part = max(part, 0.35 + 0.0025 * math.sqrt(self.shares) / noise)  # noise = sqrt(T) x
        most = self.shares - 1  # the choice took one
        return max(min(FEWEST_SHARES, most), min(math.ceil(part * self.shares), most))

    def pace(self, gradients: Gradients, units: int, reach: float) -> Pace:
        """The pace of a descent at the price of ``units``; no step costs less than a share."""
        most = max(1, min(MOST_ITERATIONS, units // self.share_units))
        mu = math.sqrt(units / PICO)
        return pace_of(gradients, mu, self.n_rows_public, reach=reach, most_iterations=most)


def rules_of(
    gradients: Gradients,
    mu: float,
    n_rows_public: int,
    *,
    iterations: int = ITERATIONS,
    reuse_distance: float = REUSE_DISTANCE,
    candidates: int = CANDIDATES,
    enhanced: bool = False,
) -> Rules:
    """The rules for points that may cost ``mu`` each."""
    check_iterations(iterations)
    if isinstance(reuse_distance, bool) or not isinstance(reuse_distance, int | float) or not 0 <= reuse_distance < math.inf:
        raise InvalidInput(f"reuse_distance is {reuse_distance!r}; it must be a number of at least 0, in units of |x| <= 1")
    if isinstance(candidates, bool) or not isinstance(candidates, int | np.integer) or not 0 <= candidates <= 1000:
        raise InvalidInput(f"candidates is {candidates!r}; it must be a whole number from 0 to 1000")
    units = Cost.of_mu(mu).pico_mu_squared
    means_units = math.floor(units * MEANS_SHARE) if gradients.problem.intercept else 0
    share_units = (units - means_units) // iterations
    mu_of_units(share_units)  # refuses a share of nothing
    return Rules(iterations, share_units, means_units, n_rows_public, float(reuse_distance), int(candidates), enhanced)


def explain_point(gradients: Gradients, answers: Answers, rules: Rules, raw: Floats, history: History) -> Past:
    """Explain one point and add it to the history. ``answers`` is the vault, or a rehearsal."""
    problem = gradients.problem
    centre = problem.encode(raw[None])[0]
    computed = history.computed()
    centres = problem.encode(np.array([past.raw for past in computed])) if computed else np.zeros((0, len(centre)))
    distances = np.linalg.norm(centres - centre, axis=1)
    if computed and distances.min() <= rules.reuse_distance:
        place = int(np.argmin(distances))
        entry = _handed_on(problem, computed[place], centre - centres[place], raw)
        if history.holds(entry.raw):  # asked again: one entry for it is enough
            return entry
    else:
        starts: list[tuple[Floats, float]] = []
        if computed:
            phis = np.array([_moved(problem, past.phi, centre - one) for past, one in zip(computed, centres, strict=True)])
            stds = np.array([past.noise_std for past in computed])
            nearest = np.argsort(distances, kind="stable")[: rules.candidates]
            starts = [(phis[place], float(stds[place])) for place in nearest]
            starts += [_predicted(centres, centre, phis, stds, ridge) for ridge in RIDGES]
        entry = _computed(gradients, answers, rules, raw, centre, starts)
    history.add(entry)
    return entry


def _computed(
    gradients: Gradients,
    answers: Answers,
    rules: Rules,
    raw: Floats,
    centre: Floats,
    starts: list[tuple[Floats, float]],
) -> Past:
    """Moves (b) to (d); a full descent from zero where nothing is known yet."""
    centres, zero, share_mu = centre[None], np.zeros((1, gradients.size)), mu_of_units(rules.share_units)
    cost, replayed, means, choice = Cost(), True, None, None
    if gradients.problem.intercept:
        means = answers.means(centres, mu=mu_of_units(rules.means_units))
        cost, replayed = means.cost, means.replayed
    if not starts:
        pace = rules.pace(gradients, rules.shares * rules.share_units, REACH)
        sizes, prices, start, start_std, first = pace.sizes(), _even(rules, rules.shares, pace), zero, 0.0, None
    else:
        candidates = gradients.project(np.concatenate([np.array([phi for phi, _ in starts]), zero]))
        choice = answers.choose(centre, candidates, mu=share_mu)
        cost, replayed = cost + choice.cost, replayed and choice.replayed
        start, start_std = candidates[choice.index][None], [*(std for _, std in starts), 0.0][choice.index]
        first = answers.gradient(centres, start, step=0, mu=share_mu)
        c = gradients.largest_bound
        beta = math.sqrt(max(0.0, float(np.square(first.mean).sum()) - gradients.size * first.sigma**2))
        shares = rules.shares_needed(beta / c, gradients.size, first.sigma / c)
        reach = WARM_REACH * math.sqrt(shares / rules.shares)
        if choice.index == len(starts):  # nothing known was better than nothing
            shares, reach = rules.shares - 1, REACH
        pace = rules.pace(gradients, (shares - 1) * rules.share_units, reach)
        # A step is as long as its price: the first gradient, with its one share, moves phi by that much less.
        first_size = pace.first_step * pace.iterations / (shares - 1)
        sizes, prices = np.append(first_size, pace.sizes()), [rules.share_units, *_even(rules, shares - 1, pace)]
    ended = descend(_asker(answers, centres, prices, first), start, sizes, gradients.project)
    return Past(
        np.array(raw, dtype=np.float64),
        ended.phi[0],
        True,
        math.hypot(start_std, ended.noise_std),
        None if means is None else means.mean[0],
        0.0 if means is None else float(means.std[0]),
        len(sizes),
        cost + ended.cost,
        replayed and ended.replayed,
        Basis.union(one.basis for one in (means, choice, ended) if one is not None).bundled(),
    )


def _even(rules: Rules, shares: int, pace: Pace) -> list[int]:
    """The price of every step, when ``shares`` are divided among them."""
    return split_units(shares * rules.share_units, [1.0] * pace.iterations)


def _asker(
    answers: Answers, centres: Floats, prices: list[int], first: NoisyGradient | None
) -> Callable[[int, Floats], NoisyGradient]:
    """Asks for gradients at these prices; the first may be at hand already."""

    def ask(step: int, phi: Floats) -> NoisyGradient:
        if step == 0 and first is not None:
            return first
        return answers.gradient(centres, phi, step=step, mu=mu_of_units(prices[step]))

    return ask


def _predicted(centres: Floats, centre: Floats, phis: Floats, stds: Floats, ridge: float) -> tuple[Floats, float]:
    """Ridge regression of past explanations on their points, at a new point; and the noise that is left in it."""
    middle = centres.mean(axis=0)
    away, here = centres - middle, centre - middle
    if len(away) <= away.shape[1]:  # the smaller of the two systems
        shares = np.linalg.solve(away @ away.T + ridge * np.eye(len(away)), away @ here)
    else:
        shares = away @ np.linalg.solve(away.T @ away + ridge * np.eye(len(here)), here)
    shares = shares + (1 - shares.sum()) / len(shares)  # what the slopes leave over is the mean's
    return shares @ phis, float(np.linalg.norm(shares * stds))


def _handed_on(problem: LocalProblem, past: Past, shift: Floats, raw: Floats) -> Past:
    """Move (a): the same linear model, seen from another point."""
    mean = None if past.mean is None else past.mean - shift
    phi = _moved(problem, past.phi, shift)
    here = np.array(raw, dtype=np.float64)
    return Past(here, phi, False, past.noise_std, mean, past.mean_std, 0, Cost(), past.replayed, past.basis)


def _moved(problem: LocalProblem, phi: Floats, shift: Floats) -> Floats:
    """The same affine function around a centre that lies ``shift`` further; a centred model is taken as it is."""
    return np.append(phi[0] + phi[1:] @ shift, phi[1:]) if problem.intercept else phi


def explain(
    problem: LocalProblem,
    data: PrivateData,
    raw_points: Floats,
    mu: float,
    *,
    history: History | None = None,
    enhanced: bool = False,
    iterations: int = ITERATIONS,
    reuse_distance: float = REUSE_DISTANCE,
    candidates: int = CANDIDATES,
    model_key: str | None = None,
) -> Attribution:
    """Explain public points one after the other, each from what the earlier ones released.

    Parameters
    ----------
    problem : LocalProblem
        Schema, model, weight, labels, intercept.
    data : PrivateData
        The rows.
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.
    mu : float
        The most this call may cost, as GDP: mu/sqrt(points) for each point.
    history : History, optional
        Of earlier calls; it grows by this one. If not given it is the one that the ledger keeps for this problem and
        analyst, which is kept again after every point. ``History(problem)`` starts anew.
    enhanced : bool
        The paper's enhanced variant: as few steps as the start allows, without its theorem on the loss.
    iterations : int
        T, into how many shares the price of a point is cut; a descent takes a hundred steps at most.
    reuse_distance : float
        Hand on an explanation of a point this near, free. In units of x: features divided by the square root of the number
        of columns. The loss differs by O(d), not O(d^2) as the paper has it: on Adult by 2e-4 below the default of 0.1,
        2e-3 up to 0.2, and 1e-2 up to the paper's log(T)/sqrt(T), which is 0.33 at T = 300.
    candidates : int
        How many of the nearest past explanations are tried as a start, besides predictions from all of them.
    model_key : str, optional
        A name for a model without a content hash (a function), so that asking again replays the stored answers and the
        history is found again.

    Returns
    -------
    Attribution
        ``method`` is ``"adaptive"`` or ``"enhanced"``; ``cost`` is the price of this call's releases, and ``guarantee``
        covers those of the whole history, on which the explanations rest.

    Raises
    ------
    BudgetExceeded
        When the account runs out. Points explained before that are in the history, and in the ledger if that keeps it.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.solve.linear.weights import stable
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "dose": vt.Numeric(0, 1)})
    >>> spread = np.random.default_rng(0).uniform(size=(2, 4000))
    >>> data = vt.PrivateData({"age": 100 * spread[0], "dose": spread[1]}, schema, name="trial", n_rows_public=4000,
    ...                       budget=vt.Budget(9.0, 1e-6))
    >>> problem = LocalProblem(schema, vt.Model(lambda x: x[:, 0], range=(0, 1)), stable(), intercept=False)
    >>> history = History(problem)
    >>> points = schema.read_points({"age": [50, 51, 90], "dose": [0.5, 0.5, 0.1]})
    >>> found = explain(problem, data, points, mu=1.0, history=history, iterations=20)
    >>> [past.gradients > 0 for past in history], found.cost <= vt.Cost.of_mu(1.0)
    ([True, False, True], True)
    """
    gradients = Gradients(problem, model_key)
    checked_centres(problem, data, raw_points)
    raw_points = np.asarray(raw_points, dtype=np.float64)
    keeper = keeper_of(problem, data, model_key) if history is None else None
    unkept = (NOT_KEPT_NOTE,) if keeper is None and history is None else ()
    if history is None:
        history = History(problem) if keeper is None else keeper.load()
    history.check(problem)
    each = question_mu(None, mu, data.delta) / math.sqrt(len(raw_points))
    rules = rules_of(
        gradients,
        each,
        data.n_rows_public,
        iterations=iterations,
        reuse_distance=reuse_distance,
        candidates=candidates,
        enhanced=enhanced,
    )
    method = "enhanced" if enhanced else "adaptive"
    answers = VaultAnswers(gradients, data, method)
    found = []
    for raw in raw_points:
        found.append(explain_point(gradients, answers, rules, raw, history))
        if keeper is not None:
            keeper.keep(history)
    cost = sum((past.cost for past in found), Cost())
    return explanation_of(
        problem,
        raw_points,
        np.array([past.phi for past in found]),
        phi_std=np.array([past.noise_std for past in found]),
        means=np.array([past.mean for past in found]) if problem.intercept else None,
        means_std=np.array([past.mean_std for past in found]),
        guarantee=guarantee_of(data, history.basis),
        cost=cost,
        method=method,
        notes=(*_notes(found, history), *unkept),
    )


def _notes(found: list[Past], history: History) -> tuple[str, ...]:
    released = [past.gradients for past in found]
    notes = [f"{past_text(released)}.", BANDS_NOTE, f"The guarantee covers all {len(history)} points of the history."]
    return (*notes, REPLAYED_NOTE) if all(past.replayed for past in found) else tuple(notes)


def past_text(released: list[int]) -> str:
    """How many points were handed on, and how many gradients the others took."""
    fresh = [count for count in released if count]
    handed_on = f"{len(released) - len(fresh)} of {len(released)} points were explained by a neighbour, free"
    if not fresh:
        return handed_on
    return f"{handed_on}; the others took {min(fresh)} to {max(fresh)} noisy gradients, {sum(fresh)} in all"
