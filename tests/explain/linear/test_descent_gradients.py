"""What a row contributes to a gradient: the bound of the text is the bound of the code, and rows stay on their own."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import vitrail as vt
from error_rates import normal_bound, square_sum_bounds
from vitrail.explain.linear.descent import gradient_question, means_question
from vitrail.solve.linear.descent import INTERCEPT_UNIT, Gradients
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import custom, exponential, inverse_quadratic, polynomial, stable
from vitrail.vault import rehearse
from vitrail.vault.public_facts import PublicFacts

SCHEMA = vt.Schema(
    {"a": vt.Numeric(0, 1), "b": vt.Numeric(-1, 1), "team": vt.Categorical(["red", "blue", "green"]), "c": vt.Numeric(0, 9)}
)
WEIGHTS = [stable(), stable(3.0), polynomial(), exponential(), exponential(0.1), inverse_quadratic()]
MODEL = vt.Model(lambda x: np.clip(0.2 + 0.5 * x[:, 0] + 0.3 * x[:, 3], 0, 1), range=(0, 1), name="toy", inputs="features")


def problem_of(weight=None, intercept=False, labels="hard"):
    return LocalProblem(SCHEMA, MODEL, weight or stable(), labels, intercept)


def random_rows(count, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "a": generator.uniform(0, 1, count),
        "b": generator.uniform(-1, 1, count),
        "team": generator.choice(["red", "blue", "green"], count),
        "c": generator.uniform(0, 9, count),
    }


def exact_gradients(problem, rows, centres, phi):
    raw = problem.schema.read(rows)
    x, f = problem.encode(raw), problem.at(raw)
    found = []
    for z, one in zip(centres, phi, strict=True):
        d = x - z
        residual = d @ one[1:] + one[0] - f if problem.intercept else d @ one - f
        u = np.column_stack([np.full(len(d), INTERCEPT_UNIT), d]) if problem.intercept else d
        alpha = problem.weight(np.linalg.norm(d, axis=1))
        found.append(2 * alpha[:, None] * residual[:, None] * u)
    return np.stack(found, axis=1)


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda weight: str(weight.to_json()))
def test_the_bound_on_the_sphere_is_the_papers_constant(weight):
    gradients = Gradients(problem_of(weight))
    paper = weight.gradient_constant(gradients.problem.largest_distance, 1.0)
    assert gradients.largest_bound == pytest.approx(paper, rel=1e-6)
    assert gradients.bounds(np.zeros((1, gradients.problem.size)))[0] < gradients.largest_bound


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda weight: str(weight.to_json()))
def test_no_row_exceeds_its_bound(weight, intercept):
    problem = problem_of(weight, intercept)
    gradients = Gradients(problem)
    generator = np.random.default_rng(3)
    centres = problem.encode(SCHEMA.read_points(random_rows(30, seed=1)))
    phi = gradients.project(generator.normal(size=(30, gradients.problem.size)) * generator.uniform(0, 2, (30, 1)))
    longest = np.linalg.norm(exact_gradients(problem, random_rows(400), centres, phi), axis=2).max(axis=0)
    assert (longest <= gradients.bounds(phi)).all()


def test_the_bound_is_reached_by_the_worst_row():
    """At distance r = (sqrt(3) - 1)/2 from the point, against phi on the sphere: 2 r (r + 1) = c = 1."""
    schema = vt.Schema({"x": vt.Numeric(0, 1)})
    problem = LocalProblem(schema, vt.Model(lambda x: np.zeros(len(x)), range=(0, 1)), stable(1.0), "hard", False)
    z, r = 0.5, (np.sqrt(3) - 1) / 2
    worst = exact_gradients(problem, {"x": np.array([z + r])}, np.array([[z]]), np.array([[1.0]]))
    assert np.linalg.norm(worst) == pytest.approx(1.0, rel=1e-9)
    assert Gradients(problem).bounds(np.array([[1.0]]))[0] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_vault_sums_the_gradients_of_all_points_in_one_pass(intercept):
    problem = problem_of(intercept=intercept, labels="soft")
    gradients = Gradients(problem)
    centres = problem.encode(SCHEMA.read_points(random_rows(3, seed=2)))
    phi = gradients.project(np.random.default_rng(0).normal(size=(3, gradients.problem.size)))
    rows = random_rows(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a function that is not row-wise would be run one row at a time, with a warning
        question = gradient_question(gradients, centres, phi)
        sums = rehearse(question, rows, SCHEMA, mu=100.0, n_rows_public=200, draws=400)
    expected = exact_gradients(problem, rows, centres, phi).sum(axis=0).ravel()
    noise = question.plan(100.0, PublicFacts(SCHEMA, None, 200, "add-remove", 8)).sigma
    assert noise == pytest.approx(np.linalg.norm(gradients.bounds(phi)) / 100.0, rel=1e-3)
    of = 2 * (sums.shape[1] + 1)  # twice, for the grid: it moves a mean by 0.06 of its standard deviation
    assert np.abs(sums.mean(axis=0) - expected).max() < normal_bound(of) * noise / np.sqrt(400)
    low, high = square_sum_bounds(sums.shape[1] * 399, of)
    assert low < np.square((sums - sums.mean(axis=0)) / noise).sum() < high


@pytest.mark.usefixtures("planted_noise")
def test_weighted_means_are_released_with_an_intercept():
    problem = problem_of(intercept=True)
    rows = random_rows(500)
    data = vt.PrivateData(rows, SCHEMA, name="rows", n_rows_public=500, budget=vt.Budget(500, 1e-6))
    centres = problem.encode(SCHEMA.read_points(random_rows(2, seed=5)))
    gradients = Gradients(problem)
    means = gradients.weighted_means(data.ask(means_question(gradients, centres), mu=20.0), centres)
    raw = SCHEMA.read(rows)
    x, f = problem.encode(raw), problem.at(raw)
    for z, mean, level in zip(centres, means.of_x, means.levels, strict=True):
        alpha = problem.weight(np.linalg.norm(x - z, axis=1))
        assert np.abs(mean - alpha @ (x - z) / alpha.sum()).max() < 5 * means.stds.max()
        assert abs(level - alpha @ f / alpha.sum()) < 5 * means.stds.max()
        assert gradients.start(np.array([level]), 1)[0, 0] == pytest.approx(level)


@pytest.mark.parametrize("scale", [0.05, 0.3, 3.0])
def test_no_row_is_longer_than_the_bound_of_means(scale):
    """Rows at all distances the schema allows, with the largest label; the bound is attained."""
    problem = replace(problem_of(intercept=True), weight=vt.weights.exponential(scale))
    d = np.linspace(0, problem.largest_distance, 5000)
    lengths = problem.weight(d) * np.sqrt(1 + 1 + d**2)
    assert lengths.max() <= Gradients(problem).mean_bound
    assert lengths.max() == pytest.approx(Gradients(problem).mean_bound, rel=1e-6)


def test_projection_keeps_phi_inside_and_on_a_grid():
    gradients = Gradients(problem_of(intercept=True))
    phi = gradients.project(np.full((2, gradients.problem.size), 9.0))
    assert np.linalg.norm(phi[:, 1:], axis=1) == pytest.approx(gradients.radius)
    assert (phi[:, 0] == 2.0).all()
    assert (gradients.project(phi) == phi).all()
    assert (phi * 2**32 == np.rint(phi * 2**32)).all()


def private(count=9):
    return vt.PrivateData(
        random_rows(count), SCHEMA, name="rows", n_rows_public=count, budget=vt.Budget(1, 1e-6), ledger="memory"
    )


def test_names_hold_everything_that_matters_and_nothing_else():
    raw = random_rows(1, seed=2)

    def name(problem, key="toy-1", points=raw, iterations=None):
        local = vt.LocalLinear(
            private(),
            problem.model,
            method=vt.linear.Descent(iterations=iterations),
            weight=problem.weight,
            labels=problem.labels,
            intercept=problem.intercept,
            key=key,
        )
        identity = local.conversation(points).identity
        return None if identity is None else json.dumps(identity, sort_keys=True)

    half, third = custom(lambda d: 0 * d + 0.5), custom(lambda d: 0 * d + 0.3)
    names = [
        name(problem_of()),
        name(problem_of(), points=random_rows(1, seed=3)),
        name(problem_of(), iterations=7),
        name(problem_of(), "toy-2"),
        name(problem_of(stable(2.0))),
        name(problem_of(labels="soft")),
        name(problem_of(intercept=True)),
        name(problem_of(half)),
        name(problem_of(third)),  # the same name, other values
    ]
    assert len(set(names)) == len(names)
    assert name(problem_of()) == names[0]
    assert name(problem_of(), key=None) is None  # a function has no content hash: always a new question
    assert problem_of().facts() == problem_of().facts()
