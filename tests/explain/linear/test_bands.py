"""Bands cover the solution without noise as often as they say, whether signal or noise dominates."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import LocalStatistics, radius_of, scales_of
from vitrail.solve.linear.weights import stable

LEVELS = {"job": 6, "team": 4, "town": 8}
SCHEMA = vt.Schema(
    {name: vt.Numeric(0, 1) for name in ("a", "b", "c")}
    | {name: vt.Categorical([f"{name}{level}" for level in range(count)]) for name, count in LEVELS.items()}
)
SLOPES = np.random.default_rng(11).normal(0, 1.2, SCHEMA.n_features)
MODEL = vt.Model(lambda x: 1 / (1 + np.exp(-(x - x.mean(axis=1, keepdims=True)) @ SLOPES)), range=(0, 1), name="logistic")
N_ROWS = 6000


@pytest.fixture(scope="module", params=[False, True], ids=["centred", "affine"])
def simulated(request):
    """Exact sums of simulated rows around a few of them."""
    generator = np.random.default_rng(5)
    raw = np.column_stack(
        [generator.beta(2, 3, (N_ROWS, 3))] + [generator.binomial(k - 1, 0.3, N_ROWS) for k in LEVELS.values()]
    ).astype(float)
    problem = LocalProblem(SCHEMA, MODEL, stable(), "soft", request.param)
    scales, points = scales_of(problem), raw[:25]
    x, f = problem.encode(raw), problem.at(raw)
    gram, cross = [], []
    for z in problem.encode(points):
        d = x - z
        alpha = problem.weight(np.linalg.norm(d, axis=1))
        u = np.column_stack([np.full(len(d), scales.intercept), d]) if problem.intercept else d
        gram.append((u * alpha[:, None]).T @ u)
        cross.append((u * (alpha * scales.label * f)[:, None]).sum(axis=0))
    return problem, points, np.array(gram), np.array(cross)


def noisy(problem, points, gram, cross, sigma, generator):
    size = gram.shape[1]
    noise = generator.standard_normal(gram.shape)
    noise = (noise + noise.transpose(0, 2, 1)) / 2
    assert size == noise.shape[1]
    return LocalStatistics.of_sums(
        problem, points, gram + sigma * noise, cross + sigma * generator.standard_normal(cross.shape), sigma, N_ROWS
    )


@pytest.mark.parametrize("sigma", [0.3, 3.0, 30.0], ids=["signal", "both", "noise"])
def test_measured_coverage(simulated, sigma):
    problem, points, gram, cross = simulated
    generator = np.random.default_rng(17)
    covered = []
    for _ in range(6):
        released = noisy(*simulated, sigma, generator)
        radius = radius_of(problem, released.noise, released.structure.coordinates.size)
        exact = LocalStatistics.of_sums(problem, points, gram, cross, sigma, N_ROWS)
        truth = exact.values(exact.solve(radius))
        fit = released.solve(radius)
        covered.append(np.abs(released.values(fit) - truth) <= released.half_widths(fit, radius))
    coverage = np.mean(covered)
    print(f"coverage {coverage:.3f} at sigma {sigma}")
    assert 0.92 <= coverage <= 0.985  # 900 checks that are not independent


def test_bands_shrink_with_the_noise(simulated):
    generator = np.random.default_rng(1)
    widths = []
    for sigma in (0.1, 1.0):
        released = noisy(*simulated, sigma, generator)
        widths.append(np.median(released.half_widths(released.solve(2.0), 2.0)))
    assert 5 < widths[1] / widths[0] < 20


def test_the_same_release_has_the_same_bands(simulated):
    released = noisy(*simulated, 1.0, np.random.default_rng(2))
    fit = released.solve(1.0)
    assert np.array_equal(released.half_widths(fit, 1.0), released.half_widths(fit, 1.0))


def test_columns_left_out_have_no_value_and_no_band(simulated):
    released = noisy(*simulated, 1.0, np.random.default_rng(3))
    kept = released.strongest(released.solve(1.0), 2)
    assert (kept.sum(axis=1) == 2).all()
    fit = released.solve(1.0, kept)
    values, half_widths = released.values(fit), released.half_widths(fit, 1.0, columns=kept)
    assert np.abs(values[~kept]).max() < 1e-12
    assert half_widths[~kept].max() < 1e-12
    assert half_widths[kept].min() > 0
