"""Cells: sharper weights, chosen from public facts, for the price of one release."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.explain.linear import cells, moments
from vitrail.explain.linear.coordinates import Cells
from vitrail.explain.linear.problem import LocalProblem
from vitrail.explain.linear.synopsis import Synopsis
from vitrail.explain.linear.weights import exponential, polynomial, stable

SCHEMA = vt.Schema(
    {
        "x": vt.Numeric(0, 1),
        "useless": vt.Categorical(["a", "b", "c"]),
        "useful": vt.Categorical(["a", "b"]),
        "y": vt.Numeric(0, 1),
    }
)
N_ROWS = 8000


def switched(features: np.ndarray) -> np.ndarray:
    """Rises in x for one level of ``useful``, falls for the other, which also lies lower."""
    on = features[:, 4] == 1
    return np.where(on, 0.3 * features[:, 0], 1 - 0.3 * features[:, 0])


def problem_of(weight, model=switched) -> LocalProblem:
    return LocalProblem(SCHEMA, vt.Model(model, range=(0, 1)), weight)


def private(budget: float = 20.0) -> vt.PrivateData:
    generator = np.random.default_rng(0)
    rows = {
        "x": generator.random(N_ROWS),
        "useless": generator.choice(["a", "b", "c"], N_ROWS),
        "useful": generator.choice(["a", "b"], N_ROWS),
        "y": generator.random(N_ROWS),
    }
    return vt.PrivateData(rows, SCHEMA, name="switch", n_rows_public=N_ROWS, budget=vt.Budget(budget, 1e-6))


def test_columns_are_chosen_by_what_the_model_says_and_what_the_noise_allows() -> None:
    sharp = problem_of(exponential(0.2))
    assert cells.choose_columns(sharp, 1.0, 10**6)[0] == "useful"
    assert cells.choose_columns(sharp, 1e-4, 1000) == ()
    assert cells.choose_columns(problem_of(polynomial()), 1.0, 10**9) == ()  # exact with one cell
    shares = cells.explained_shares(sharp)
    assert shares["useful"] > 0.5
    assert abs(shares["useless"]) < 0.01


def test_more_money_or_rows_never_means_fewer_cells() -> None:
    counts = [
        Cells(SCHEMA, cells.choose_columns(problem_of(stable()), mu, 10**5)).count for mu in np.geomspace(1e-4, 10, 12)
    ]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > 1


def test_cells_follow_a_sharp_weight_where_a_line_cannot() -> None:
    sharp = problem_of(exponential(0.05))
    points = {"x": [0.2, 0.8], "useless": ["a", "b"], "useful": ["a", "b"], "y": [0.5, 0.5]}
    errors = {}
    for columns in ((), ("useful",)):
        e = cells.fit(sharp, private(200.0), 8.0, columns=columns)(points, bands=False, radius=20.0)
        errors[columns] = np.abs(e.coefficients[:, 0] / 2.0 - [0.3, -0.3]).max()  # x is divided by sqrt(4 columns)
    assert errors["useful",] < 0.02
    assert errors["useful",] < 0.5 * errors[()]


def test_the_price_does_not_depend_on_the_cells() -> None:
    bounds = [
        moments.question(problem_of(stable()), cells=columns).l2_bound
        for columns in ((), ("useful",), ("useless", "useful"))
    ]
    assert bounds[2] < bounds[1] < bounds[0] * 1.2


def test_a_synopsis_with_cells_is_stored_like_any_other(tmp_path) -> None:
    made = cells.fit(problem_of(exponential(0.3)), private(), 1.0)
    assert made.cells[:1] == ("useful",)
    made.save(tmp_path / "cells.synopsis")
    read = Synopsis.load(tmp_path / "cells.synopsis")
    points = {"x": 0.2, "useless": "a", "useful": "a", "y": 0.5}
    assert np.array_equal(read(points).lower, made(points).lower)


@pytest.mark.parametrize("columns", [("x",), ("useful", "useful"), ("x", "useless", "useful", "y")])
def test_bad_cells_are_named_before_anything_is_charged(columns: tuple[str, ...]) -> None:
    data = private()
    with pytest.raises(InvalidInput, match="cells are cut by"):
        cells.fit(problem_of(stable()), data, 0.1, columns=columns)
    assert data.budget.spent_epsilon == 0
