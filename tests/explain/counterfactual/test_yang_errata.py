"""Where the paper on private counterfactuals needs mending, in numbers (docs/errata.md): how much noise it takes."""

import numpy as np
import pytest

from benchmark_scripts import script

published = script("yang_published", "benchmarks/papers")


def coefficients(rows, units):
    """Of equation 12, summed over rows: of 1, of x . g(x, w_p) for every unit p and column, and of every g_p g_q."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    return np.concatenate([[np.sum(rows**2)], np.tile(-2 * rows.sum(axis=0), units), np.full(units**2, float(len(rows)))])


def moved(one, other, units):
    return float(np.abs(coefficients(one, units) - coefficients(other, units)).sum())


def test_the_coefficients_are_those_of_a_square():
    """With one column equation 12 is (x - sum of g)^2, and there equation 13 holds."""
    rng = np.random.default_rng(0)
    x, g = rng.uniform(-1, 1), rng.uniform(0, 1, 5)
    basis = np.concatenate([[1.0], g, np.outer(g, g).ravel()])
    assert coefficients([[x]], 5) @ basis == pytest.approx((x - g.sum()) ** 2)
    assert moved([[1.0]], [[-1.0]], 5) <= published.sensitivity(5)


@pytest.mark.parametrize(("columns", "units"), [(2, 3), (24, 32), (127, 32), (784, 256)])
def test_a_row_moves_the_coefficients_by_more_than_equation_13_says(columns, units):
    """Inputs from -1 to 1, as it assumes. One row exchanged: 4 d K, where the paper has 4 (K + 1) whatever d is."""
    ones = np.ones((1, columns))
    found = moved(ones, -ones, units)
    assert found == 4 * columns * units
    assert found > published.sensitivity(units)
    assert found <= columns + 4 * columns * units
    rng = np.random.default_rng(1)
    others = [moved(rng.uniform(-1, 1, (1, columns)), rng.choice([-1.0, 1.0], (1, columns)), units) for _ in range(50)]
    assert max(others) <= found


def test_what_equation_13_promises_on_adult_costs_23_times_as_much():
    """Laplace noise of scale Delta / epsilon: the privacy loss is epsilon times what moved over Delta."""
    ones = np.ones((1, 24))
    assert moved(ones, -ones, 32) == 3072
    assert published.sensitivity(32) == 132
    assert moved(ones, -ones, 32) / published.sensitivity(32) == pytest.approx(23.3, abs=0.05)
    assert moved(ones, 0 * ones, 32) / published.sensitivity(32) > 11  # encodings from 0 to 1 do not save it


# --- several layers: normalised before each ------------------------------------------------------------------------------


def to_range(inputs):
    """Each column over the rows, so that it reaches from -1 to 1."""
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    return 2 * (inputs - low) / (high - low) - 1


def standardised(inputs):
    """Each column over the rows: mean 0, variance 1 (batch normalisation)."""
    return (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)


def half_and_half(rows):
    """What a hidden unit may say of ``rows`` people: two values that lie close together."""
    return np.where(np.arange(rows) % 2, 0.51, 0.5)[:, None]


@pytest.mark.parametrize("rows", [100, 1_000, 10_000])
def test_scaling_to_the_range_lets_one_row_move_all(rows):
    """Inputs stay in the assumed range, and the sum of coefficients moves by as much as there are rows."""
    people = half_and_half(rows)
    other = people.copy()
    other[-1] = 1.0
    found = moved(to_range(people), to_range(other), 32)
    assert found > rows / 2 * 32
    assert found > published.sensitivity(32)


@pytest.mark.parametrize("rows", [100, 1_000, 10_000])
def test_standardising_leaves_the_range(rows):
    """One row far from the others stands sqrt(rows - 1) away, and its own coefficients are as much larger."""
    people = np.full((rows, 1), 0.5)
    people[-1] = 1.0
    far = standardised(people)[-1:]
    assert float(far[0, 0]) == pytest.approx(np.sqrt(rows - 1))
    assert np.abs(coefficients(far, 32)[: -(32**2)]).sum() > published.sensitivity(32)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_noise_for_one_layer_does_not_pay_for_several(layers):
    """Even where a row is normalised by itself and the sensitivity of a layer is right: the losses of layers add up."""
    epsilon, ones = 0.5, np.ones((1, 8))
    sensitivity = moved(ones, -ones, 8)

    def log_density(released, row):
        return sum(-np.abs(seen - coefficients(row, 8)).sum() * epsilon / sensitivity for seen in released)

    released = [coefficients(ones, 8)] * layers
    assert log_density(released, ones) - log_density(released, -ones) == pytest.approx(layers * epsilon)


# --- Theorem 3: the search adds no bias ----------------------------------------------------------------------------------


def test_symmetric_noise_on_a_prototype_moves_the_mean_answer():
    """Its proof needs a search that commutes with reflection at the prototype. A decoder that ends in a sigmoid does not:
    the answers for a prototype and its mirror images do not average to the answer for the prototype itself."""
    torch = pytest.importorskip("torch")
    weights, prototype, noise = np.array([[2.0], [1.0]]), np.array([1.0]), np.array([0.8])
    module = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(module.weight, 0.0)
    torch.nn.init.constant_(module.bias, 1.0)
    model = torch.nn.Sequential(module, torch.nn.Sigmoid())  # says the wanted class of everybody
    query = np.array([[0.1, 0.1]])

    def answer(at):
        code = published.PublishedDPC(weights, np.stack([at, at]))
        return published.published_search(code, model, query, np.array([1]), gamma=1e3, beta=0.0, steps=20)[0]

    mean = (answer(prototype + noise) + answer(prototype - noise)) / 2
    assert np.abs(mean - answer(prototype)).max() > 0.02
