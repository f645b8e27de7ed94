"""Without noise, the statistics from a moment synopsis are the weighted sums over rows, for every point at once."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Cost
from vitrail.accounting.guarantee import Guarantee
from vitrail.explain.linear import fitting as moments
from vitrail.results.synopsis import Synopsis
from vitrail.solve.linear.cells import choose_scales
from vitrail.solve.linear.coordinates import Coordinates, Partition
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.tensors import blocks_of, shrink
from vitrail.solve.linear.weights import Weight, exponential, polynomial
from vitrail.vault.public_facts import PublicFacts

SCHEMAS = {
    "mixed": vt.Schema(
        {
            "a": vt.Numeric(-1, 3),
            "b": vt.Categorical(["p", "q", "r"]),
            "c": vt.Numeric(0, 10),
            "d": vt.Categorical(["u", "v"]),
            "e": vt.Categorical([1, 2, 3, 4]),
        }
    ),
    "numbers": vt.Schema({name: vt.Numeric(0, 1) for name in "abcd"}),
    "categories": vt.Schema({"a": vt.Categorical(["x", "y", "z"]), "b": vt.Categorical(["0", "1"])}),
    "one level": vt.Schema({"a": vt.Categorical(["only"]), "b": vt.Numeric(0, 1), "c": vt.Categorical(["0", "1", "2"])}),
    "one number": vt.Schema({"a": vt.Numeric(0, 1)}),
    "one category": vt.Schema({"a": vt.Categorical(["x", "y", "z"])}),
}


def bent(features: np.ndarray) -> np.ndarray:
    return np.abs(np.sin(3 * features[:, 0] + features[:, -1] * (1 + features.sum(axis=1))))


def random_rows(schema: vt.Schema, count: int, seed: int = 0) -> np.ndarray:
    """Rows whose columns depend on each other."""
    generator = np.random.default_rng(seed)
    shared = generator.random(count)
    columns = []
    for column in schema.values():
        mixed = np.clip(0.6 * shared + 0.4 * generator.random(count), 0, 1 - 1e-9)
        if isinstance(column, vt.Numeric):
            columns.append(column.low + (column.high - column.low) * mixed)
        else:
            columns.append(np.floor(len(column.levels) * mixed**2))
    return np.column_stack(columns)


def exact_synopsis(problem: LocalProblem, raw: np.ndarray, cells: tuple[str, ...] = ()) -> Synopsis:
    """What would be released without noise."""
    facts = PublicFacts(problem.schema, None, len(raw), "add-remove", len(raw))
    block = vt.Block(raw, facts, lambda model, values: model.predict(problem.schema, values))
    factors = moments.moments_question(problem, cells=cells).fn(block)
    return Synopsis(
        schema=problem.schema,
        weight=problem.weight,
        labels=problem.labels,
        intercept=problem.intercept,
        output_range=(0.0, 1.0),
        cells=cells,
        scales=choose_scales(Partition(problem.schema, cells), problem.weight),
        parts=tuple(left.T @ right for left, right in zip(factors[0::2], factors[1::2], strict=True)),
        sigma=1e-200,
        n_rows_public=len(raw),
        guarantee=Guarantee.of_mu(1.0, 1e-6),
        cost=Cost.of_mu(1.0),
        dataset="test",
    )


def brute_force(problem: LocalProblem, raw: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, z = problem.encode(raw), problem.encode(points)
    f = problem.at(raw)
    grams, crosses = [], []
    for point in z:
        d = x - point
        alpha = problem.weight(np.linalg.norm(d, axis=1))
        u = np.column_stack([np.ones(len(d)), d]) if problem.intercept else d
        grams.append((u * alpha[:, None]).T @ u / len(raw))
        crosses.append(u.T @ (alpha * f) / len(raw))
    return np.array(grams), np.array(crosses)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("labels", ["hard", "soft"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_the_synopsis_is_exact_for_its_own_weight(name: str, labels: str, intercept: bool) -> None:
    schema = SCHEMAS[name]
    problem = LocalProblem(schema, vt.Model(bent, range=(0, 1)), polynomial(), labels, intercept)
    raw, points = random_rows(schema, 300), random_rows(schema, 7, seed=1)
    gram, cross = exact_synopsis(problem, raw).statistics(schema.frame(points))
    true_gram, true_cross = brute_force(problem, raw, points)
    assert np.abs(gram - true_gram).max() < 1e-9
    assert np.abs(cross - true_cross).max() < 1e-9


@pytest.mark.parametrize("cells", [("b",), ("d",), ("e", "b"), ("b", "d", "e")])
@pytest.mark.parametrize("intercept", [False, True])
def test_cells_add_up_to_the_same_statistics(cells: tuple[str, ...], intercept: bool) -> None:
    schema = SCHEMAS["mixed"]
    problem = LocalProblem(schema, vt.Model(bent, range=(0, 1)), polynomial(), "hard", intercept)
    raw, points = random_rows(schema, 300), random_rows(schema, 5, seed=1)
    gram, cross = exact_synopsis(problem, raw, cells).statistics(schema.frame(points))
    true_gram, true_cross = brute_force(problem, raw, points)
    assert np.abs(gram - true_gram).max() < 1e-9
    assert np.abs(cross - true_cross).max() < 1e-9


def test_any_line_in_the_squared_distance_is_exact() -> None:
    schema = SCHEMAS["mixed"]
    line = Weight("line", lambda d: 0.9 - 0.3 * d * d)
    problem = LocalProblem(schema, vt.Model(bent, range=(0, 1)), polynomial(), "soft", True)
    raw, points = random_rows(schema, 200), random_rows(schema, 5, seed=1)
    gram, _ = exact_synopsis(problem, raw).with_weight(line).statistics(schema.frame(points))
    true_gram, _ = brute_force(LocalProblem(schema, problem.model, line, "soft", True), raw, points)
    assert np.abs(gram - true_gram).max() < 1e-9


def test_other_weights_are_close_and_cells_bring_them_closer() -> None:
    schema = SCHEMAS["mixed"]
    problem = LocalProblem(schema, vt.Model(bent, range=(0, 1)), exponential(0.7), "soft", True)
    raw, points = random_rows(schema, 2000), random_rows(schema, 20, seed=1)
    true_gram, _ = brute_force(problem, raw, points)
    errors = {}
    for cells in ((), ("b",), ("b", "e")):
        gram, _ = exact_synopsis(problem, raw, cells).statistics(schema.frame(points))
        errors[cells] = np.linalg.norm(gram - true_gram) / np.linalg.norm(true_gram)
    assert errors[()] < 0.2
    assert errors["b", "e"] < 0.5 * errors["b",]
    assert errors["b",] < 0.5 * errors[()]


def test_coordinates_keep_distances_and_slopes() -> None:
    schema = SCHEMAS["mixed"]
    coordinates = Coordinates(schema)
    raw = random_rows(schema, 50)
    problem = LocalProblem(schema, vt.Model(bent, range=(0, 1)), polynomial())
    y, x = coordinates.of_points(raw), problem.encode(raw)
    assert coordinates.embedding.T @ coordinates.embedding == pytest.approx(np.eye(coordinates.size))
    assert (y - y[:1]) @ coordinates.embedding.T == pytest.approx(x - x[:1])
    h = coordinates.squares(y).sum(axis=1)
    assert (y * y).sum(axis=1) == pytest.approx(coordinates.kappa + h)
    assert np.abs(h).max() <= coordinates.largest_h


def test_shrinking_changes_nothing_without_noise_and_helps_with_much() -> None:
    schema = SCHEMAS["mixed"]
    problem = LocalProblem(schema, vt.Model(bent, range=(0, 1)), polynomial(), "hard", False)
    exact = exact_synopsis(problem, random_rows(schema, 300))
    (truth,) = blocks_of(exact.partition, exact.scales, exact.parts)
    same = shrink(exact.coordinates, truth, dict.fromkeys(exact.scales, 0.0))
    assert same.vectors == pytest.approx(truth.vectors)
    assert all(one == pytest.approx(two) for one, two in zip(same.pairs, truth.pairs, strict=True))
    generator = np.random.default_rng(0)
    before = after = 0.0
    for _ in range(50):
        (added,) = blocks_of(
            exact.partition, exact.scales, tuple(60 * generator.standard_normal(part.shape) for part in exact.parts)
        )
        noisy = truth + added
        shrunk = shrink(exact.coordinates, noisy, {name: 60 / scale for name, scale in exact.scales.items()})
        before += sum(((one[:2] - two[:2]) ** 2).sum() for one, two in zip(noisy.pairs, truth.pairs, strict=True))
        after += sum(((one[:2] - two[:2]) ** 2).sum() for one, two in zip(shrunk.pairs, truth.pairs, strict=True))
    assert after < 0.8 * before
