"""The one release: what it sums, what a row can say, what the schema takes off it, and what neighbours can tell."""

import json
import math

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE, normal_bound, planted_noise
from vitrail import audit
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.solve.linear.least_squares import solve_in_ball
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import LocalStatistics, Scales, Structure, scales_of
from vitrail.solve.linear.weights import custom, exponential, stable
from vitrail.vault import rehearse

SCHEMA = vt.Schema(
    {
        "a": vt.Numeric(0, 10),
        "team": vt.Categorical(["red", "blue", "green"]),
        "b": vt.Numeric(-1, 1),
        "one": vt.Categorical(["only"]),
    }
)
MODEL = vt.Model(lambda x: np.clip(0.2 + 0.5 * x[:, 0] * x[:, 1] + 0.2 * x[:, 4], 0, 1), range=(0, 1), name="toy")
POINTS = SCHEMA.read_points({"a": [2.0, 9.0], "team": ["red", "green"], "b": [0.5, -0.4], "one": ["only", "only"]})


def random_rows(count=1500, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "a": generator.uniform(0, 10, count),
        "team": generator.choice(["red", "blue", "green"], count, p=[0.6, 0.3, 0.1]),
        "b": generator.uniform(-1, 1, count),
        "one": np.full(count, "only"),
    }


def problem_of(intercept, weight=None, schema=SCHEMA, model=MODEL):
    return LocalProblem(schema, model, stable() if weight is None else weight, "soft", intercept)


def exact_sums(problem, rows, raw_points, scales):
    """Sums of (kappa, d) and eta f over the rows, by numpy."""
    raw = problem.schema.read(rows)
    x, f = problem.encode(raw), problem.at(raw)
    gram, cross = [], []
    for z in problem.encode(raw_points):
        d = x - z
        alpha = problem.weight(np.linalg.norm(d, axis=1))
        u = np.column_stack([np.full(len(d), scales.intercept), d]) if problem.intercept else d
        gram.append((u * alpha[:, None]).T @ u)
        cross.append((u * (alpha * scales.label * f)[:, None]).sum(axis=0))
    return np.array(gram), np.array(cross)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("count", [2, 9])
def test_with_little_noise_the_release_is_the_sum(intercept, count):
    rows, problem = random_rows(), problem_of(intercept)
    points = np.tile(POINTS, (5, 1))[:count]
    scales = scales_of(problem)
    data = vt.PrivateData(rows, SCHEMA, name="sums", n_rows_public=1500, budget=vt.Budget(50_000, 1e-6))
    release = data.ask(statistics_question(problem, points), mu=90.0)
    gram, cross = exact_sums(problem, rows, points, scales)
    assert release.sigma < 0.02
    within = normal_bound(of=2 * (gram.size + cross.size))
    assert np.abs(release.parts["gram"] - gram).max() < within * release.sigma
    assert np.abs(release.parts["cross"] - cross).max() < within * release.sigma
    statistics = LocalStatistics.of_sums(problem, points, release.parts["gram"], release.parts["cross"], release.sigma, 1500)
    exact = LocalStatistics.of_sums(problem, points, gram, cross, release.sigma, 1500)
    tolerance = within * statistics.noise / (scales.intercept**2 if intercept else 1.0) / scales.label
    assert np.abs(statistics.a - exact.a).max() < tolerance
    assert np.abs(statistics.b - exact.b).max() < tolerance


@pytest.mark.parametrize("intercept", [False, True])
def test_exact_statistics_are_not_moved_by_the_projection(intercept):
    problem = problem_of(intercept)
    scales = scales_of(problem)
    gram, cross = exact_sums(problem, random_rows(), POINTS, scales)
    structure = Structure(SCHEMA, scales.intercept)
    reduced, vector = structure.reduce(gram, cross, structure.levels(POINTS))
    basis = structure.coordinates.embedding
    if intercept:
        basis = np.block([[np.ones((1, 1)), np.zeros((1, structure.coordinates.size))], [np.zeros((len(basis), 1)), basis]])
    assert np.allclose(basis @ reduced @ basis.T, gram, atol=1e-9)
    assert np.allclose(vector @ basis.T, cross, atol=1e-9)


@pytest.mark.parametrize("intercept_scale", [0.0, 0.3])
def test_resampled_noise_has_the_law_of_projected_noise(intercept_scale):
    """Variances of random linear functionals agree, and the projection makes noise smaller, never larger."""
    structure = Structure(SCHEMA, intercept_scale)
    generator = np.random.default_rng(0)
    draws, size = 20_000, SCHEMA.n_features + structure.offset
    levels = structure.levels(POINTS[1:])
    noise = generator.standard_normal((draws, size, size))
    noise = (noise + noise.transpose(0, 2, 1)) / 2
    cross = generator.standard_normal((draws, size))
    projected, vector = structure.reduce(noise, cross, np.repeat(levels, draws, axis=0))
    drawn, drawn_vector = structure.noise(np.repeat(levels, draws, axis=0), generator)
    functionals = generator.standard_normal((projected[0].size, 30))
    ratios = (drawn.reshape(draws, -1) @ functionals).var(axis=0) / (projected.reshape(draws, -1) @ functionals).var(axis=0)
    assert np.abs(ratios - 1).max() < 0.07
    assert np.allclose(drawn_vector.var(axis=0), vector.var(axis=0), rtol=0.07)
    assert np.square(projected).sum() < np.square(noise).sum()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weight", [stable(), stable(4.0), exponential(0.3)], ids=lambda weight: weight.name)
def test_no_row_exceeds_the_bound_and_some_row_nearly_reaches_it(intercept, weight):
    """The bound of the module docstring is the bound in the question."""
    schema = SCHEMA.without("one")
    problem = problem_of(intercept, weight, schema=schema)
    scales = scales_of(problem)
    points = schema.read_points({"a": [0.0, 5.0], "team": ["red", "red"], "b": [-1.0, 0.0]})
    opposite = schema.read_points({"a": 10.0, "team": "blue", "b": 1.0})
    raw = np.concatenate([schema.read(random_rows(20_000)), opposite])
    d = np.linalg.norm(problem.encode(raw) - problem.encode(points[:1]), axis=1)
    assert d[-1] == pytest.approx(problem.largest_distance)
    squares = scales.intercept**2 + d**2
    norms = weight(d) * np.sqrt(squares * (squares + scales.label**2))
    question = statistics_question(problem, points)
    assert norms.max() <= question.l2_bound
    assert norms.max() >= 0.99 * question.l2_bound
    assert question.joint_bound == pytest.approx(math.sqrt(2) * question.l2_bound)


def test_scales_beat_the_plain_ones_by_the_formula():
    problem = problem_of(True)
    scales, plain = scales_of(problem), Scales.bounded(1.0, 1.0, problem.weight, problem.largest_distance)
    d = np.linspace(0, problem.largest_distance, 20_001)
    longest = problem.weight(d) * np.sqrt((1 + d**2) * (2 + d**2))  # alpha |u| sqrt(|u|^2 + 1), u = (1, d)
    assert plain.l2_bound == pytest.approx(longest.max(), rel=5e-4)
    assert scales.l2_bound < plain.l2_bound / 2
    assert 0 < scales.intercept < 1
    assert scales_of(problem_of(False)).intercept == 0


def test_unscaling_undoes_the_scales():
    problem = problem_of(True)
    scales, plain = scales_of(problem), Scales(1.0, 1.0, 1.0)
    a, b = scales.undone(*exact_sums(problem, random_rows(), POINTS, scales))
    gram, cross = exact_sums(problem, random_rows(), POINTS, plain)
    assert np.allclose(a, gram)
    assert np.allclose(b, cross)


def test_the_same_question_is_told_by_its_content():
    def forest(seed):
        from sklearn.ensemble import RandomForestClassifier

        raw = SCHEMA.read(random_rows(200))
        target = (raw[:, 0] > 5).astype(int)
        return vt.Model(RandomForestClassifier(3, random_state=seed).fit(SCHEMA.features(raw)[0], target))

    def key(problem, name=None, points=POINTS):
        data = vt.PrivateData(
            random_rows(9), SCHEMA, name="told", n_rows_public=9, budget=vt.Budget(1, 1e-6), ledger="memory"
        )
        explain = vt.LocalLinear(
            data, problem.model, weight=problem.weight, labels=problem.labels, intercept=problem.intercept, key=name
        )
        identity = explain.conversation(SCHEMA.frame(points)).identity
        return None if identity is None else json.dumps(identity, sort_keys=True)

    one = problem_of(True, model=forest(0))
    assert key(one) is not None
    assert key(one) == key(problem_of(True, model=forest(0)))
    others = [
        problem_of(True, model=forest(1)),
        problem_of(False, model=forest(0)),
        problem_of(True, stable(2.0), model=forest(0)),
        LocalProblem(SCHEMA, forest(0), stable(), "hard", True),
    ]
    assert len({key(problem) for problem in [one, *others]}) == 5
    assert key(problem_of(True)) is None  # a function has no content
    assert key(problem_of(True), "toy 1") is not None
    assert key(problem_of(True, custom(lambda d: np.exp(-d), name="mine"), model=forest(0))) is None
    assert key(one) != key(one, points=POINTS[:1])


# --- what neighbours can tell ----------------------------------------------------------------------------------------------

LINE = vt.Schema({"x": vt.Numeric(0, 1)})
UP = vt.Model(lambda x: np.where(x[:, 0] > 0.2, 1.0, 0.0), range=(0, 1), name="step")


def worst_neighbours(problem):
    """A few rows around the point, and the same with one more where a row says most."""
    scales = scales_of(problem)
    d = np.linspace(0, 1, 2001)
    squares = scales.intercept**2 + d**2
    worst = d[np.argmax(problem.weight(d) * np.sqrt(squares * (squares + scales.label**2)))]
    rows = np.array([0.1, 0.2, 0.5])
    return rows, np.append(rows, worst)


@pytest.mark.parametrize("intercept", [False, True])
def test_coefficients_tell_neighbours_apart_no_better_than_claimed(intercept):
    """From rows to coefficients: the vault's mechanism on worst-case neighbours, then the solver."""
    problem = problem_of(intercept, schema=LINE, model=UP)
    point = LINE.read_points({"x": [0.0]})
    question, mu = statistics_question(problem, point), 1.0
    sigma = question.l2_bound / mu
    n = question.size
    first, second = np.triu_indices(n)

    def coefficients(rows, draws):
        flat = rehearse(question, {"x": rows}, LINE, mu=mu, n_rows_public=4, draws=draws)
        gram = np.empty((draws, n, n))
        gram[:, first, second] = gram[:, second, first] = flat[:, : len(first)]
        repeated = np.repeat(point, draws, axis=0)
        statistics = LocalStatistics.of_sums(problem, repeated, gram, flat[:, len(first) :], sigma, 4)
        if not intercept:
            return solve_in_ball(statistics.a, statistics.b, 5.0)  # in a smaller ball slopes say less
        fit = statistics.explain()
        return np.column_stack([fit.intercepts, fit.slopes])

    found = audit.mechanism(coefficients, worst_neighbours(problem), claimed=mu, draws=50_000, confidence=CONFIDENCE)
    assert found.verdict == "not refuted"

    def towards_the_row(rows, draws):
        return rehearse(question, {"x": rows}, LINE, mu=mu, n_rows_public=4, draws=draws)

    far = {"x": worst_neighbours(problem)[1][-1:]}
    place = problem.encode(LINE.read(far))[0, 0]
    scales = scales_of(problem)
    u = np.array([scales.intercept, place]) if intercept else np.array([place])
    embedded = np.outer(u, u)[first, second] * np.where(first == second, 1.0, 2.0)
    direction = np.concatenate([embedded, scales.label * u])

    def sharp():
        return audit.mechanism(
            towards_the_row,
            worst_neighbours(problem),
            claimed=mu,
            draws=50_000,
            confidence=CONFIDENCE,
            statistic=lambda outputs: outputs @ direction,
        )

    assert sharp().verdict == "not refuted"
    with planted_noise():
        assert sharp().tightness > 0.6  # the bound is used up, and the audit has the power to see it


def test_an_audit_would_see_a_bound_that_is_half_of_what_rows_say():
    """The planted bug: sums whose rows are not clipped to the bound of their noise."""
    problem = problem_of(False, schema=LINE, model=UP)
    question = statistics_question(problem, LINE.read_points({"x": [0.0]}))
    generator = np.random.default_rng(3)

    def unclipped(rows, draws):
        d = np.asarray(rows)
        alpha = problem.weight(d)
        total = np.array([(alpha * d * d).sum(), (alpha * d * scales_of(problem).label * (2.0 * (d > 0.2) - 1)).sum()])
        return np.round((total + generator.normal(0, question.l2_bound / 2, (draws, 2))) * 4096) / 4096

    assert audit.mechanism(unclipped, worst_neighbours(problem), claimed=1.0, draws=50_000).verdict == "refuted"


@pytest.mark.parametrize("intercept", [False, True])
def test_the_declared_row_count_moves_no_explanation(intercept):
    problem = problem_of(intercept)
    scales, generator = scales_of(problem), np.random.default_rng(3)
    gram, cross = exact_sums(problem, random_rows(), POINTS, scales)
    noise = generator.normal(0, 2.0, gram.shape)
    gram, cross = gram + (noise + noise.transpose(0, 2, 1)) / 2, cross + generator.normal(0, 2.0, cross.shape)
    found = []
    for declared in (1500, 750, 1111):
        statistics = LocalStatistics.of_sums(problem, POINTS, gram, cross, 2.0, declared)
        if intercept:
            ridge = statistics.explain()
            found.append([ridge.intercepts, ridge.slopes, ridge.values, ridge.half_widths])
        else:
            fit = statistics.solve()
            found.append([fit.slopes, statistics.values(fit), statistics.half_widths(fit)])
    for other in found[1:]:
        for numbers, again in zip(found[0], other, strict=True):
            assert again == pytest.approx(numbers, rel=1e-6, abs=1e-9)
