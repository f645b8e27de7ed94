"""Algorithm 1: it descends, it costs what it says, it refuses before it charges."""

import math
from fractions import Fraction

import numpy as np
import pytest

import vitrail as vt
from quadratic_loss import best_affine, excess_loss
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.explain.linear import descent
from vitrail.solve.linear.descent import Gradients, step_sizes
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import stable

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "team": vt.Categorical(["red", "blue"])})
MODEL = vt.Model(lambda x: np.clip(0.1 + 0.8 * x[:, 0] * x[:, 1], 0, 1), range=(0, 1), name="toy")


def random_rows(count, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "a": generator.uniform(0, 1, count),
        "b": generator.uniform(0, 1, count),
        "team": generator.choice(["red", "blue"], count),
    }


def private(rows, schema=SCHEMA, epsilon=50_000.0, **options):
    count = len(next(iter(rows.values())))
    return vt.PrivateData(rows, schema, name="rows", n_rows_public=count, budget=vt.Budget(epsilon, 1e-6), **options)


def exact_statistics(problem, rows, raw_points):
    raw = problem.schema.read(rows)
    x, f = problem.encode(raw), problem.at(raw)
    a, b = [], []
    for z in problem.encode(raw_points):
        d = x - z
        alpha = problem.weight(np.linalg.norm(d, axis=1))
        u = np.column_stack([np.ones(len(d)), d]) if problem.intercept else d
        a.append((u * alpha[:, None]).T @ u / len(x))
        b.append((u * (alpha * f)[:, None]).sum(axis=0) / len(x))
    return np.array(a), np.array(b)


POINTS = SCHEMA.read_points({"a": [0.2, 0.9], "b": [0.5, 0.4], "team": ["red", "blue"]})


@pytest.fixture(scope="module")
def rows():
    return random_rows(2000)


def explain(problem, data, raw, mu, iterations=None, key=None):
    method = vt.linear.Descent(iterations=iterations)
    local = vt.LocalLinear(
        data,
        problem.model,
        method=method,
        weight=problem.weight,
        labels=problem.labels,
        intercept=problem.intercept,
        key=key,
    )
    return local(problem.schema.frame(raw), mu=mu)


def price_of(mu):
    """Whole trillionths of mu squared, no more than asked."""
    return vt.Cost(math.floor(Fraction(mu) ** 2 * 10**12))


@pytest.mark.usefixtures("planted_noise")
def test_with_little_noise_it_reaches_the_optimum(rows):
    problem = LocalProblem(SCHEMA, MODEL, stable(), "soft", intercept=False)
    found = explain(problem, private(rows), POINTS, mu=90.0, iterations=300)
    a, b = exact_statistics(problem, rows, POINTS)
    phi = found.coefficients / 0.5
    at_zero = excess_loss(a, b, np.zeros_like(phi))
    assert (excess_loss(a, b, phi) < 2e-3 * at_zero).all()
    assert found.method == "descent"
    assert found.outputs == pytest.approx(MODEL.predict_points(SCHEMA, POINTS))


@pytest.mark.usefixtures("planted_noise")
def test_it_is_exact_projected_gradient_descent_plus_its_noise(rows):
    problem = LocalProblem(SCHEMA, MODEL, stable(), "hard", intercept=False)
    gradients = Gradients(problem)
    found = explain(problem, private(rows), POINTS, mu=90.0, iterations=40)
    sizes = step_sizes(gradients, 90.0 / np.sqrt(2), 2000, 40)
    a, b = exact_statistics(problem, rows, POINTS)
    phi = np.zeros_like(b)
    for eta in sizes:
        phi = phi - eta * 2 * (np.einsum("qij,qj->qi", a, phi) - b)
        phi /= np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0)
    std = (found.upper - found.values)[:, 0] / 1.96 / 0.5
    assert np.abs(found.coefficients / 0.5 - phi).max() < 6 * std.max()
    assert std.max() < 1e-3


@pytest.mark.usefixtures("planted_noise")
def test_bands_hold_what_noise_does(rows):
    """Many runs at a price where noise is felt: the spread of phi is no larger than the bands say, nor far smaller."""
    problem = LocalProblem(SCHEMA, MODEL, stable(), "soft", intercept=False)
    data = private(rows)
    runs = [explain(problem, data, POINTS[:1], mu=0.05, iterations=10) for _ in range(30)]
    spread = np.array([run.coefficients[0] for run in runs]).std(axis=0)
    claimed = (runs[0].upper - runs[0].values)[0, 0] / 1.96
    assert (spread < 1.35 * claimed).all()
    assert spread.max() > 0.4 * claimed


@pytest.mark.usefixtures("planted_noise")
def test_an_intercept_is_found_and_contributions_add_up(rows):
    problem = LocalProblem(SCHEMA, MODEL, stable(), "soft", intercept=True)
    data = private(rows)
    found = explain(problem, data, POINTS, mu=90.0, iterations=400)
    a, b = exact_statistics(problem, rows, POINTS)
    intercepts, _ = best_affine(a, b, 3.0)
    assert found.intercepts == pytest.approx(0.5 + 0.5 * intercepts, abs=0.02)
    assert found.predictions == pytest.approx(found.intercepts)
    x = problem.encode(SCHEMA.read(rows))
    for row, z in enumerate(problem.encode(POINTS)):
        alpha = problem.weight(np.linalg.norm(x - z, axis=1))
        mean = alpha @ (x - z) / alpha.sum()
        slope = found.coefficients[row]
        by_column = [-(slope[part] * mean[part]).sum() for part in SCHEMA.feature_slices.values()]
        assert found.values[row] == pytest.approx(by_column, abs=5e-3)
    assert data.budget.spent == found.cost


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("mu", "iterations"), [(0.3, 7), (1.0, 100), (0.0123, 13)])
def test_the_gradients_cost_mu_together_to_the_last_unit(rows, mu, iterations, intercept):
    problem = LocalProblem(SCHEMA, MODEL, stable(), intercept=intercept)
    data = private(rows)
    found = explain(problem, data, POINTS, mu=mu, iterations=iterations)
    assert found.cost == price_of(mu) == data.budget.spent
    assert data.budget.n_questions == iterations + intercept
    assert found.guarantee.mu == pytest.approx(mu)


def test_many_points_take_turns_at_the_same_price(rows, monkeypatch):
    monkeypatch.setattr(descent, "MOST_NUMBERS", 8)  # two points of four features at once
    problem = LocalProblem(SCHEMA, MODEL, stable(), intercept=False)
    data = private(rows)
    points = SCHEMA.read_points(random_rows(5, seed=4))
    found = explain(problem, data, points, mu=0.5, iterations=10)
    assert len(found) == 5
    assert data.budget.n_questions == 30
    assert data.budget.spent == price_of(0.5)


@pytest.mark.usefixtures("planted_noise")
def test_two_thousand_features():
    """Wide rows, as of text: the point of descent is that nothing of size n^2 is ever made."""
    words = 2000
    schema = vt.Schema({f"w{i}": vt.Numeric(0, 1) for i in range(words)})
    generator = np.random.default_rng(0)
    table = (generator.uniform(size=(150, words)) < 0.05).astype(float)
    table[:, 0] = np.arange(150) % 2
    model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    data = vt.PrivateData(table, schema, name="text", n_rows_public=150, budget=vt.Budget(50_000, 1e-6), block_rows=32)
    problem = LocalProblem(schema, model, stable(), "hard", intercept=False)
    found = explain(problem, data, table[:1], mu=60.0, iterations=10)
    assert found.values.shape == (1, words)
    assert found.top(1)[0].column == "w0"
    assert found.cost <= vt.Cost.of_mu(60.0)


def test_a_descent_that_does_not_fit_is_refused_before_its_first_gradient(rows):
    problem = LocalProblem(SCHEMA, MODEL, stable(), intercept=False)
    data = private(rows, epsilon=0.5)
    with pytest.raises(BudgetExceeded, match="Nothing was charged") as refused:
        explain(problem, data, POINTS, mu=0.5, iterations=10)
    assert refused.value.remaining_epsilon == pytest.approx(0.5, rel=1e-3)
    assert data.budget.spent == vt.Cost()


def test_a_paid_descent_is_replayed_even_from_an_empty_account(rows):
    problem = LocalProblem(SCHEMA, MODEL, stable(), intercept=False)
    data = private(rows, epsilon=1.0)
    mu = data.budget.budget.mu * 0.9
    first = explain(problem, data, POINTS, mu=mu, iterations=5, key="toy")
    again = explain(problem, data, POINTS, mu=mu, iterations=5, key="toy")
    assert (first.values == again.values).all()
    assert data.budget.spent == first.cost
    with pytest.raises(BudgetExceeded):
        explain(problem, data, POINTS, mu=mu, iterations=6, key="toy")
    assert data.budget.spent == first.cost


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mu": 0.0}, "mu of a question is 0.0"),
        ({"mu": 0.5, "iterations": 1}, "iterations is 1"),
        ({"mu": 0.5, "iterations": 2.5}, "iterations is 2.5"),
        ({"mu": 2e-6, "iterations": 9000}, "too small to be split"),
    ],
)
def test_bad_input_is_told_before_anything_is_charged(rows, arguments, message):
    data = private(rows)
    problem = LocalProblem(SCHEMA, MODEL, stable(), intercept=False)
    with pytest.raises(InvalidInput, match=message):
        explain(problem, data, POINTS, **arguments)
    assert data.budget.spent == vt.Cost()


def test_a_model_that_changes_shape_is_refused_uncharged(rows):
    data = private(rows)
    wide = vt.Model(lambda x: np.zeros((len(x), 3)), range=(0, 1))
    with pytest.raises(InvalidInput):
        explain(LocalProblem(SCHEMA, wide, stable()), data, POINTS, mu=0.5)
    assert data.budget.spent == vt.Cost()
