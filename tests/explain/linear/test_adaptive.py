"""The adaptive protocol: free reuse, cheaper starts, a ledger that stays consistent, and a life after a restart."""

import math

import numpy as np
import pytest

import vitrail as vt
from quadratic_loss import excess_loss
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.solve.linear.descent import FEWEST_SHARES, LEAST_ENHANCED, Gradients, History, Past, shares_needed
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import stable

WIDTH = 6
SCHEMA = vt.Schema({f"x{i}": vt.Numeric(0, 1) for i in range(WIDTH)})


class Bent:
    """A model that is an object with content, hence with a hash; a little bent."""

    def predict(self, x):
        return np.clip(0.5 + 0.3 * (x[:, 0] - x[:, 1]) + 0.1 * x[:, 2] * x[:, 3], 0, 1)


MODEL = vt.Model(Bent(), range=(0, 1), inputs="features")


def problem_of(intercept=False):
    return LocalProblem(SCHEMA, MODEL, stable(), "soft", intercept)


def random_rows(count=1500, seed=0):
    return np.random.default_rng(seed).uniform(0, 1, (count, WIDTH))


def private(epsilon=200.0, rows=None, **options):
    rows = random_rows() if rows is None else rows
    return vt.PrivateData(
        rows, SCHEMA, name="rows", n_rows_public=len(rows), budget=vt.Budget(epsilon, 1e-6), block_rows=512, **options
    )


def explain(problem, data, points, mu, **options):
    local = vt.LocalLinear(data, problem.model, method=vt.linear.Adaptive(**options), intercept=problem.intercept)
    return local(points, mu=mu)


def descent(problem, data, points, mu):
    return vt.LocalLinear(data, problem.model, method="descent", intercept=problem.intercept)(points, mu=mu)


def cluster(count, spread, seed=1):
    return np.clip(0.5 + np.random.default_rng(seed).uniform(-spread, spread, (count, WIDTH)), 0, 1)


def loss_of(problem, rows, point, phi):
    x, f = problem.encode(rows), problem.at(rows)
    d = x - problem.encode(point.reshape(1, -1))[0]
    alpha = problem.weight(np.linalg.norm(d, axis=1))
    a, b = (d * alpha[:, None]).T @ d / len(x), (d * (alpha * f)[:, None]).sum(axis=0) / len(x)
    return excess_loss(a[None], b[None], phi[None])[0]


def losses(problem, rows, points, explained):
    pairs = zip(points, 2 * explained.coefficients, strict=True)
    return np.array([loss_of(problem, rows, point, phi) for point, phi in pairs])


@pytest.mark.usefixtures("planted_noise", "questions_known_to_be_row_wise")
def test_nearby_points_cost_less_and_lose_no_more():
    """On points near each other it spends a fraction, and the same fraction buys a plain descent far less."""
    problem, rows, mu = problem_of(), random_rows(), 0.4
    spent, lost = [], []
    for seed in range(3):
        points = cluster(20, 0.15, seed)
        plain, adapted, hasty = private(), private(), private()
        full = descent(problem, plain, points, mu)
        found = explain(problem, adapted, points, mu)
        enhanced = explain(problem, hasty, points, mu, enhanced=True)
        part = adapted.budget.spent.pico_mu_squared / plain.budget.spent.pico_mu_squared
        same_price = descent(problem, plain, points, mu * math.sqrt(part))
        spent.append((part, hasty.budget.spent.pico_mu_squared / plain.budget.spent.pico_mu_squared))
        lost.append([losses(problem, rows, points, one).mean() for one in (full, found, same_price)])
        assert (found.method, enhanced.method) == ("adaptive", "enhanced")
    in_full, adaptively, at_the_same_price = np.mean(lost, axis=0)
    assert max(part for part, _ in spent) < 0.5
    assert np.mean(spent, axis=0)[1] < np.mean(spent, axis=0)[0]
    assert adaptively < 2 * in_full
    assert adaptively < at_the_same_price


def test_a_near_point_is_explained_by_its_neighbour_free():
    problem, data = problem_of(), private()
    history = History(problem)
    point = cluster(1, 0.1)
    first = explain(problem, data, point, 1.0, history=history, iterations=10)
    spent = data.budget.spent
    near = explain(problem, data, point + 0.01, 1.0, history=history, iterations=10)
    assert data.budget.spent == spent == first.cost
    assert near.cost == vt.Cost()
    assert (near.coefficients == first.coefficients).all()
    assert near.guarantee == first.guarantee  # free, but it rests on what the first released
    assert "1 of 1 points were explained by a neighbour, free" in " ".join(near.notes)


def test_what_was_handed_on_is_never_handed_on_again():
    """Three points in a row, each near the next: the third is too far from the first, which alone was computed."""
    problem, data = problem_of(), private()
    history = History(problem)
    step = 0.08 / problem.encode(np.ones((1, WIDTH)))[0, 0]  # 0.08 in units of x, along one column
    points = np.full((3, WIDTH), 0.5)
    points[:, 0] = 0.3 + step * np.arange(3)
    explain(problem, data, points, 1.0, history=history, iterations=10, reuse_distance=0.1)
    assert [past.computed for past in history] == [True, False, True]


def test_an_affine_model_that_is_handed_on_stays_the_same_function():
    problem, data = problem_of(intercept=True), private()
    history = History(problem)
    points = cluster(1, 0.1)
    moved = np.clip(points + 0.03, 0, 1)
    found = explain(problem, data, np.concatenate([points, moved]), 4.0, history=history, iterations=20)
    here, there = problem.encode(points)[0], problem.encode(moved)[0]
    slope = found.coefficients[0]
    assert found.intercepts[1] == pytest.approx(found.intercepts[0] + slope @ (there - here))
    assert found.predictions == pytest.approx(found.intercepts)
    assert found.base_values[0] == pytest.approx(found.base_values[1])  # the same local average


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("enhanced", [False, True])
def test_no_point_costs_more_than_its_share_and_the_bill_agrees(intercept, enhanced):
    problem, data = problem_of(intercept), private()
    history = History(problem)
    points = random_rows(5, seed=7)
    found = explain(problem, data, points, 1.5, history=history, iterations=12, enhanced=enhanced, reuse_distance=0.0)
    each = vt.Cost.of_mu(1.5 / math.sqrt(5))
    assert all(past.cost <= each for past in history)
    assert sum((past.cost for past in history), vt.Cost()) == found.cost == data.budget.spent == history.cost
    assert found.cost <= vt.Cost.of_mu(1.5)


def test_the_theorem_as_shares():
    """s^(1 - 1/2a) T with s = (log T)^-a is s sqrt(log T) T: checked against the theorem's own form."""
    for s in (0.05, 0.1, 0.2, 0.41):
        a = math.log(1 / s) / math.log(math.log(300))
        assert a > 0.5
        assert shares_needed(300, s, 2e-9, enhanced=True) == math.ceil(s ** (1 - 1 / (2 * a)) * 300)
    assert shares_needed(300, 0.9, 2e-9, enhanced=True) == 300
    assert shares_needed(300, 0.0, 2.0, enhanced=True) == LEAST_ENHANCED * 300
    assert shares_needed(10, 0.0, 2.0, enhanced=True) == FEWEST_SHARES
    assert shares_needed(300, 0.05, 0.2, enhanced=False) == math.ceil(
        max(0.2 * math.sqrt(math.log(300)), 0.35 + 0.0025 * 300**0.5 / 0.2) * 300
    )


@pytest.mark.usefixtures("planted_noise")
def test_a_bad_history_is_left_behind():
    """Past explanations point the wrong way: the first gradient tells, the point costs more, and steps lead away."""
    problem, data = problem_of(), private()
    gradients = Gradients(problem)
    history = History(problem)
    explain(problem, data, cluster(2, 0.4), 3.0, history=history, iterations=10, reuse_distance=0.0)
    wrong = History(problem)
    for past in history:
        wrong.add(Past(past.raw, gradients.project(-past.phi), True, 0.0, None, 0.0, 1, past.cost))
    point = np.full((1, WIDTH), 0.45)
    starts = gradients.project(np.array([wrong.start(point[0])[0], np.zeros(WIDTH)]))
    from_there, from_zero = (loss_of(problem, random_rows(), point, start) for start in starts)
    assert from_there > 1.5 * from_zero
    spent = {}
    for enhanced in (False, True):
        for known in (history, wrong):
            options = {"iterations": 100, "reuse_distance": 0.0, "enhanced": enhanced}
            found = explain(problem, data, point, 3.0, history=History(problem, known), **options)
            assert losses(problem, random_rows(), point, found)[0] < 0.01 * from_zero
            spent[enhanced, known is wrong] = found.cost.pico_mu_squared
    assert spent[True, True] > 1.5 * spent[True, False]
    assert spent[False, True] >= spent[False, False]


def test_an_account_that_runs_out_mid_stream_keeps_what_was_released(tmp_path):
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    problem, data = problem_of(), private(epsilon=2.0, ledger=ledger)
    history = History(problem)
    points = random_rows(40, seed=9)
    mu_each = data.budget.budget.mu / 2.5

    def explain_all():
        for point in points:
            explain(problem, data, point[None], mu_each, history=history, iterations=6, reuse_distance=0.0)

    with pytest.raises(BudgetExceeded):
        explain_all()
    explained = len(history)
    assert 2 <= explained < 40
    statement = data.budget
    assert history.cost <= statement.spent <= statement.capacity  # what the broken-off descent released stays charged
    released = [entry for entry in statement.entries if entry.kind == "released"]
    assert len(released) == statement.n_questions  # every charge has its release
    assert (
        vt.PrivateData(
            random_rows(), SCHEMA, name="rows", n_rows_public=1500, budget=vt.Budget(2.0, 1e-6), ledger=ledger
        ).budget.spent
        == statement.spent
    )


def test_after_a_restart_the_same_stream_is_replayed_free(tmp_path):
    """The history needs no file of its own: every question has a stable key, and the ledger has the answers."""
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    problem, points = problem_of(), random_rows(4, seed=5)
    first, again = History(problem), History(problem_of())
    options = {"iterations": 8, "reuse_distance": 0.0}
    explain(problem, private(5.0, ledger=ledger), points, 0.8, history=first, **options)
    data = private(5.0, ledger=ledger)
    spent = data.budget.spent
    explain(problem_of(), data, points, 0.8, history=again, **options)
    assert data.budget.spent == spent == first.cost == again.cost
    assert [past.phi.tolist() for past in first] == [past.phi.tolist() for past in again]
    fresh = explain(problem, data, random_rows(1, seed=6), 0.4, history=again, **options)
    assert data.budget.spent == spent + fresh.cost
    assert fresh.cost.pico_mu_squared > 0


def test_a_saved_history_goes_on_where_it_stopped(tmp_path):
    problem, data = problem_of(), private()
    history = History(problem)
    explain(problem, data, cluster(3, 0.3), 1.0, history=history, iterations=8)
    history.save(tmp_path / "history.json")
    loaded = History.load(tmp_path / "history.json", problem_of())
    spent = data.budget.spent
    near = explain(problem, data, cluster(3, 0.3)[:1] + 0.01, 1.0, history=loaded, iterations=8)
    assert data.budget.spent == spent
    assert near.cost == vt.Cost()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reuse_distance": -1.0}, "reuse_distance is -1.0"),
        ({"reuse_distance": math.nan}, "reuse_distance is nan"),
        ({"iterations": 1}, "iterations is 1"),
        ({"iterations": 5000, "mu": 3e-6}, "too small to be split"),
    ],
)
def test_bad_input_is_told_before_anything_is_charged(options, message):
    data = private()
    with pytest.raises(InvalidInput, match=message):
        explain(problem_of(), data, cluster(1, 0.1), **{"mu": 0.5, **options})
    assert data.budget.spent == vt.Cost()


def test_a_history_of_another_problem_is_refused():
    data = private()
    with pytest.raises(InvalidInput, match="another problem"):
        explain(problem_of(), data, cluster(1, 0.1), 0.5, history=History(problem_of(intercept=True)))
    assert data.budget.spent == vt.Cost()
