"""Sums, optima and draws where features are many: those of the loops over single points, which other benchmarks use."""

import math

import numpy as np
import pytest

from benchmark_scripts import script
from vitrail.accounting import mu_of
from vitrail.solve.linear import least_squares
from vitrail.solve.linear.descent import Gradients
from vitrail.solve.linear.weights import stable

torch = pytest.importorskip("torch")
wide = script("papers.patel_wide")
cases = script("papers.patel_cases")
published = script("papers.patel_published")
words = script("papers.patel_words")
convergence = script("papers.patel_convergence")
exact = script("exact")
stream = script("local_stream")
streams = script("papers.patel_streams")
setup = script("local_setup")

SIZE, POINTS, ROWS = 9, 4, 50_000


class Constant:
    """A generator whose every normal is one standard deviation, or nothing."""

    def __init__(self, value: float) -> None:
        self.value = value

    def normal(self, loc, scale, shape):
        return np.full(shape, loc + self.value * scale)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(600, SIZE)) / math.sqrt(SIZE)
    return x, np.where(x[:, 0] + 0.1 * rng.normal(size=600) > 0.17, 1.0, -1.0)


@pytest.fixture(scope="module")
def truth(rows):
    x, f = rows
    ((a, b),) = exact.statistics(x, f, x[:POINTS], [stable(1.0)])
    return stream.Third(ROWS, x[:POINTS], x[:POINTS], a, b)


def around(truth, value, monkeypatch):
    made = wide.Around.of(wide.tensor(truth.a, "cpu"), wide.tensor(truth.b, "cpu"), truth.rows, 0)
    monkeypatch.setattr(
        wide.Around, "normal", lambda self, *shape: torch.full(shape, value, dtype=torch.float64)
    )  # fmt: skip
    return made


def test_sums_are_those_of_the_shared_product(rows, truth):
    x, f = rows
    some = wide.Rows.of(x, "cpu")
    made = list(wide.batches(some, x[:POINTS], stable(1.0), 3))
    assert [place for place, _, _ in made] == [slice(0, 3), slice(3, POINTS)]
    np.testing.assert_allclose(np.concatenate([grams for _, _, grams in made]), truth.a, atol=1e-14)
    crosses = [some.crosses(wide.tensor(f, "cpu"), wide.tensor(x[place], "cpu"), alphas) for place, alphas, _ in made]
    np.testing.assert_allclose(np.concatenate(crosses), truth.b, atol=1e-14)


def test_the_optimum_in_the_ball_is_the_exact_one(truth):
    for scale in (1.0, 1e-3, 50.0):  # inside and on the sphere
        found = wide.solve_in_ball(wide.tensor(truth.a, "cpu"), wide.tensor(scale * truth.b, "cpu")).numpy()
        best = exact.optimum(truth.a, scale * truth.b)
        np.testing.assert_allclose(exact.excess_loss(truth.a, scale * truth.b, found, best), 0.0, atol=1e-13 * scale)


def test_the_optimum_of_a_noisy_release_is_the_librarys():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(40, SIZE, SIZE)), rng.normal(size=(40, SIZE))
    a += a.transpose(0, 2, 1)
    found = wide.solve_in_ball(wide.tensor(a, "cpu"), wide.tensor(b, "cpu")).numpy()
    np.testing.assert_allclose(found, least_squares.solve_in_ball(a, b), atol=1e-7)


def test_excess_losses_are_exact(truth, monkeypatch):
    made = around(truth, 0.0, monkeypatch)
    phi = np.random.default_rng(2).normal(size=(3, POINTS, SIZE)) / 3
    found = made.excess(wide.tensor(phi.transpose(1, 2, 0), "cpu"))
    np.testing.assert_allclose(found, [truth.excess(one) for one in phi], rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_algorithm_1_as_published_is_that_of_one_point(truth, noise, monkeypatch):
    found = around(truth, noise, monkeypatch).published(0.3, 1e-6, 2, 40)
    pairs = zip(truth.a, truth.b, strict=True)
    one_by_one = [published.algorithm_1(a, b, ROWS, 0.3, 1e-6, Constant(noise), iterations=40) for a, b in pairs]
    for draw in range(2):
        np.testing.assert_allclose(found[:, :, draw], one_by_one, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_descent_is_that_of_one_point(truth, noise, monkeypatch):
    gradients, mu = Gradients(cases.pixel_problem(SIZE)), mu_of(0.3, 1e-6)
    found = around(truth, noise, monkeypatch).descent(gradients, mu, 2)
    one_by_one = stream.non_adaptive(gradients, truth, mu, Constant(noise))[0]
    for draw in range(2):
        np.testing.assert_allclose(found[:, :, draw], one_by_one, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_statistics_are_those_of_one_point(truth, noise, monkeypatch):
    problem, mu = cases.pixel_problem(SIZE), mu_of(0.3, 1e-6)
    found = around(truth, noise, monkeypatch).statistics(problem, mu, 1)
    one_by_one = stream.per_query_statistics(problem, truth, mu, Constant(noise))[0]
    np.testing.assert_allclose(found[:, :, 0], one_by_one, atol=1e-9)


def test_other_row_counts_share_the_truth(truth, monkeypatch):
    made = around(truth, 0.0, monkeypatch)
    again = made.of_rows(7, 3)
    assert again.best is made.best
    assert again.rows == 7


def test_the_strongest_words_keep_their_sign_and_their_order():
    phi = np.array([[0.1, -3.0, 2.0, 0.5, 9.0, -0.2, 0.3]])
    present = np.array([[True, True, True, True, False, True, True]])
    np.testing.assert_array_equal(words.top_words(phi, present), [[-2, 3, 4, 7, -6]])
    np.testing.assert_array_equal(words.top_words(phi, present & (np.arange(7) < 2)), [[-2, 1, 0, 0, 0]])


def test_shared_words_are_counted_whatever_their_sign():
    one, other = np.array([[[1, -2, 3, 4, 0]]]), np.array([[[2, -3, 9, 0, 0]]])
    np.testing.assert_array_equal(words.shared(one, other), [[2]])


def test_a_traced_descent_ends_where_the_published_one_does(truth):
    chosen = published.Parameters(np.full(SIZE, 0.1), 0.01, 30, 0.05)
    losses = convergence.losses_of_steps(truth, 1, chosen, np.random.default_rng(5))
    c0 = published.learning_rate(SIZE, 0.01, 0.05, convergence.ITERATIONS)
    rng = np.random.default_rng(5)
    ended = published.dpgd_explain(truth.a[1], truth.b[1], chosen.start, chosen.sigma, chosen.steps, c0, rng)
    assert len(losses) == chosen.steps
    expected = exact.excess_loss(truth.a[1:2], truth.b[1:2], ended[None], truth.best[1:2])
    np.testing.assert_allclose(losses[-1:], expected, rtol=1e-9)


def test_a_stream_is_answered_in_every_way_and_afterwards_for_free(tmp_path):
    """A small workload of the shape of Text's: nine columns, three parts of six queries."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(600, SIZE)) / math.sqrt(SIZE)
    f = np.where(x[:, 0] > 0.17, 1.0, -1.0)

    def third(part: int, count: int):
        of = rng.choice(600, count, replace=False)
        ((a, b),) = exact.statistics(x[part::3], f[part::3], x[of], [stable(1.0)])
        return stream.Third(300_000, x[of] * math.sqrt(SIZE), x[of], a, b)

    bench = cases.PatelBench(tmp_path, setup.Cache(tmp_path), setup.Scale(True))
    load = streams.Workload(
        "text", cases.pixel_problem(SIZE), [third(i, 6) for i in range(3)], [third(i, 3) for i in range(3)], 0.05
    )
    found = streams.measure(bench, load)
    assert len(found) == 9
    assert all(len(one.losses) == 18 and len(one.epsilon) == 6 for one in found.values())
    assert found["adaptive (sound)"].epsilon[-1] <= found["non-adaptive (sound Algorithm 1)"].epsilon[-1] * (1 + 1e-6)
    later = streams.non_interactive(bench, load, [found["adaptive (sound)"], found["enhanced (sound)"]])
    assert [len(one.losses) for one in later] == [9, 9]
    assert min(one.losses.min() for one in [*found.values(), *later]) > -1e-12
