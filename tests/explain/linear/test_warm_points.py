"""A point of a stream where others were explained before: its start, its steps, and what T' decides."""

import math

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.explain.linear import descent
from vitrail.solve.linear.descent import FEWEST_SHARES, Gradients, History, Past
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import stable

WIDTH = 5
SCHEMA = vt.Schema({f"x{i}": vt.Numeric(0, 1) for i in range(WIDTH)})
MODEL = vt.Model(lambda x: np.clip(0.5 + 0.3 * (x[:, 0] - x[:, 1]) + 0.1 * x[:, 2] * x[:, 3], 0, 1), range=(0, 1))
N_ROWS = 800
PRICE = 0.8
NEW = np.full((1, WIDTH), 0.45)


def problem_of(intercept):
    return LocalProblem(SCHEMA, MODEL, stable(), "soft", intercept)


def points(count, seed=1):
    return np.random.default_rng(seed).uniform(0, 1, (count, WIDTH))


def private(seed=0):
    rows = np.random.default_rng(seed).uniform(0, 1, (N_ROWS, WIDTH))
    options = {"name": "rows", "n_rows_public": N_ROWS, "budget": vt.Budget(500.0, 1e-6), "ledger": "memory"}
    return vt.PrivateData(rows, SCHEMA, **options)


def history_of(problem, raw, phis, stds=None, computed=None):
    stds = np.full(len(raw), 0.1) if stds is None else stds
    computed = [True] * len(raw) if computed is None else computed
    mean = np.zeros(WIDTH) if problem.intercept else None
    rows = zip(raw, phis, computed, stds, strict=True)
    return History(problem, [Past(z, phi, own, std, mean, 0.05, 7, vt.Cost.of_mu(0.1)) for z, phi, own, std in rows])


def explain(problem, data, history, raw=NEW, **options):
    method = vt.linear.Adaptive(history=history, reuse_distance=0.0, **options)
    return vt.LocalLinear(data, problem.model, method=method, intercept=problem.intercept)(raw, mu=PRICE)


class Watched:
    """What ``descend`` was given last, and the T' of every point."""

    def __init__(self, monkeypatch, needed=None):
        self.steps, self.start, self.needed = None, None, []
        descend, shares_needed = descent.descend, descent.shares_needed

        def spied(gradients, centres, start, steps, *arguments, **options):
            self.start, self.steps = start, list(steps)
            return descend(gradients, centres, start, steps, *arguments, **options)

        def counted(*arguments, **options):
            self.needed.append(shares_needed(*arguments, **options) if needed is None else needed)
            return self.needed[-1]

        monkeypatch.setattr(descent, "descend", spied)
        monkeypatch.setattr(descent, "shares_needed", counted)

    @property
    def lengths(self):
        return [length for length, _ in self.steps]

    @property
    def shares(self):
        return [share for _, share in self.steps]


def watched(problem, data, history, needed=None, **options):
    """A warm point by way of the library, on a copy of the history: what was watched, and its entry."""
    known = History(problem, history)
    with pytest.MonkeyPatch.context() as monkeypatch:
        watch = Watched(monkeypatch, needed)
        explain(problem, data, known, **options)
    return watch, [*known][-1]


# --- the start ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("count", [1, 3, WIDTH, 40])
def test_the_start_is_linear_in_past_explanations(intercept, count):
    problem, raw, generator = problem_of(intercept), points(count), np.random.default_rng(2)
    one, two = generator.normal(size=(2, count, problem.size))
    apart = [history_of(problem, raw, phis).start(NEW[0])[0] for phis in (one, two)]
    together, _ = history_of(problem, raw, one + two).start(NEW[0])
    assert together == pytest.approx(apart[0] + apart[1], abs=1e-12)
    assert history_of(problem, raw, -3 * one).start(NEW[0])[0] == pytest.approx(-3 * apart[0], abs=1e-12)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_one_line_that_explains_all_points_explains_the_next(count):
    """The same affine function, written down around each point in turn."""
    problem, raw = problem_of(True), points(count)
    slope = np.random.default_rng(3).normal(size=WIDTH)
    around = [np.append(0.2 + slope @ x, slope) for x in problem.encode(np.concatenate([raw, NEW]))]
    start, _ = history_of(problem, raw, around[:-1]).start(NEW[0])
    assert start == pytest.approx(around[-1], abs=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_start_follows_how_explanations_change_with_their_points(intercept):
    """Slopes that are linear in the point are found at a new one, but for the ridge."""
    problem, raw = problem_of(intercept), points(400)
    change = np.random.default_rng(4).normal(size=(WIDTH, WIDTH))

    def slopes(given):
        return problem.encode(given) @ change

    at_points = slopes(raw)
    phis = np.column_stack([np.zeros(len(raw)), at_points]) if intercept else at_points
    start, _ = history_of(problem, raw, phis).start(NEW[0])
    away = np.linalg.norm(at_points.mean(axis=0) - slopes(NEW)[0])
    assert np.linalg.norm(start[-WIDTH:] - slopes(NEW)[0]) < 0.05 * away


def test_what_was_handed_on_says_nothing_about_a_start():
    problem, raw, phis = problem_of(True), points(6), np.random.default_rng(5).normal(size=(6, WIDTH + 1))
    computed = [True, False, True, True, False, True]
    own, std = history_of(problem, raw[computed], phis[computed]).start(NEW[0])
    among, among_std = history_of(problem, raw, phis, computed=computed).start(NEW[0])
    assert (among == own).all()
    assert among_std == std
    assert history_of(problem, raw, phis, computed=[False] * 6).start(NEW[0]) is None
    assert History(problem).start(NEW[0]) is None


def test_the_noise_in_a_start_is_that_of_what_it_is_made_of():
    problem, raw = problem_of(False), points(9)
    phis, stds = np.zeros((9, WIDTH)), np.linspace(0.1, 0.9, 9)
    assert history_of(problem, raw[:1], phis[:1], stds[:1]).start(NEW[0])[1] == pytest.approx(stds[0])
    _, std = history_of(problem, raw, phis, stds).start(NEW[0])
    assert history_of(problem, raw, phis, 5 * stds).start(NEW[0])[1] == pytest.approx(5 * std)
    _, in_the_middle = history_of(problem, raw, phis).start(raw.mean(axis=0))  # all nine count the same there
    assert 0.1 / 3 <= in_the_middle < 0.1


# --- the steps ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[False, True], ids=["centred", "affine"])
def begun(request):
    """A problem, and the history of two points of it."""
    problem = problem_of(request.param)
    history = History(problem)
    with planted_noise():
        explain(problem, private(), history, points(2))
    return problem, history


def test_steps_are_the_same_for_every_number_of_shares(begun):
    problem, history = begun
    (few, few_past), (many, many_past) = (watched(problem, private(), history, needed) for needed in (5, 200))
    assert few.lengths == many.lengths
    assert (few.start == many.start).all()
    assert few_past.gradients == many_past.gradients == len(few.lengths)
    assert few.shares[0] == many.shares[0]  # T' is not known before the first gradient
    assert np.divide(many.shares[1:], few.shares[1:]) == pytest.approx(199 / 4)
    assert few_past.noise_std > many_past.noise_std
    assert few_past.cost.mu < many_past.cost.mu


@pytest.mark.usefixtures("planted_noise")
def test_steps_depend_on_public_numbers_only(begun):
    """Other rows, another history, the enhanced variant: another T', the same steps."""
    problem, history = begun
    project = Gradients(problem).project
    wrong = history_of(problem, points(3, seed=8), project(np.random.default_rng(9).normal(size=(3, problem.size))))
    runs = [
        watched(problem, private(seed), known, enhanced=enhanced)[0]
        for seed, known, enhanced in ((0, history, False), (1, wrong, False), (0, history, True), (1, wrong, True))
    ]
    assert len({watch.needed[-1] for watch in runs}) > 1
    assert all(watch.lengths == runs[0].lengths for watch in runs)


def test_no_step_is_longer_than_a_contraction_allows_and_the_first_is_short(begun):
    problem, history = begun
    watch, _ = watched(problem, private(), history)
    first, *others = watch.lengths
    assert 0 < first < others[0] <= 1 / Gradients(problem).curvature
    assert (np.diff(others) < 0).all()


def test_two_shares_are_enough(begun):
    """The first gradient and one step: whole price, since T' is two of two."""
    problem, history = begun
    data = private()
    watch, past = watched(problem, data, history, iterations=2)
    assert watch.needed[-1] == 2
    assert past.gradients == len(watch.steps) == 2
    assert past.cost == data.budget.spent == price_of(PRICE)
    cold = History(problem)
    explain(problem, data, cold, iterations=2)
    assert [*cold][-1].cost == price_of(PRICE)


# --- the price ---------------------------------------------------------------------------------------------------------


def price_of(mu):
    return vt.Cost(math.floor(mu**2 * 10**12 + 1e-3))


def check_charge(problem, data, watch, past, shares):
    """T' shares of what means leave, to a unit of the ledger; in the ledger as in the history."""
    means = descent.MEANS_SHARE if problem.intercept else 0.0
    whole, needed = price_of(PRICE), watch.needed[-1]
    assert FEWEST_SHARES <= needed <= shares
    assert past.cost == data.budget.spent
    assert past.cost <= whole
    expected = (means + (1 - means) * needed / shares) * whole.pico_mu_squared
    assert abs(past.cost.pico_mu_squared - expected) <= 1.01
    assert sum(watch.shares) == pytest.approx((1 - means) * needed / shares)
    assert data.budget.n_questions == past.gradients + problem.intercept


@pytest.mark.parametrize("needed", [2, 5, 200, 300])
def test_a_point_costs_as_many_shares_as_its_first_gradient_says(begun, needed):
    problem, history = begun
    data = private()
    watch, past = watched(problem, data, history, needed)
    check_charge(problem, data, watch, past, 300)
    assert (past.cost == price_of(PRICE)) == (needed == 300)


@pytest.mark.parametrize("enhanced", [False, True])
@pytest.mark.parametrize("iterations", [2, 7, 60])
def test_the_charge_follows_the_number_of_shares_that_is_needed(begun, enhanced, iterations):
    problem, history = begun
    for seed in range(3):
        data = private(seed)
        watch, past = watched(problem, data, history, iterations=iterations, enhanced=enhanced)
        check_charge(problem, data, watch, past, iterations)


def test_a_price_is_refused_before_its_first_question_or_split_to_its_last(begun):
    """Whatever T' comes out as: a step of a point with two shares costs a part of one."""
    problem, history = begun
    refused = []
    for mu in np.geomspace(2e-6, 1e-3, 19):
        data = private()
        method = vt.linear.Adaptive(history=History(problem, history), reuse_distance=0.0, enhanced=True)
        explainer = vt.LocalLinear(data, MODEL, method=method, intercept=problem.intercept)
        try:
            explainer(NEW, mu=float(mu))
        except vt.errors.InvalidInput as error:
            refused.append(("too small to be split" in str(error), data.budget.spent))
    assert 0 < len(refused) < 19
    assert set(refused) == {(True, vt.Cost())}
