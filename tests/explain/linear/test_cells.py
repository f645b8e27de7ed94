"""Cells: sharper weights, chosen from public facts, for the price of one release."""

from itertools import product

import numpy as np
import pytest

import vitrail as vt
from quadratic_loss import best_affine
from vitrail.accounting import Cost
from vitrail.errors import BudgetExceeded, InvalidInput, ModelError
from vitrail.explain.linear import fitting as moments
from vitrail.results.synopsis import Synopsis
from vitrail.solve.linear import cells
from vitrail.solve.linear.coordinates import Coordinates, Partition
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import exponential, polynomial, stable
from vitrail.vault.public_facts import PublicFacts

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


def fit(problem: LocalProblem, data: vt.PrivateData, mu: float, columns: tuple[str, ...] | None = None) -> Synopsis:
    return vt.LocalLinear(data, problem.model, weight=problem.weight).fit(kind=vt.linear.Cells(columns=columns), mu=mu)


def private(budget: float = 20.0) -> vt.PrivateData:
    generator = np.random.default_rng(0)
    rows = {
        "x": generator.random(N_ROWS),
        "useless": generator.choice(["a", "b", "c"], N_ROWS),
        "useful": generator.choice(["a", "b"], N_ROWS),
        "y": generator.random(N_ROWS),
    }
    return vt.PrivateData(rows, SCHEMA, name="switch", n_rows_public=N_ROWS, budget=vt.Budget(budget, 1e-6))


def exact_survey(raw: np.ndarray, schema: vt.Schema = SCHEMA) -> np.ndarray:
    y = Coordinates(schema).of_points(raw)
    u = np.column_stack([np.ones(len(y)), y])
    return u.T @ u


def correlated_rows(count: int) -> np.ndarray:
    """``useful`` goes along with x and y, ``useless`` with nothing."""
    generator = np.random.default_rng(0)
    useful = generator.integers(0, 2, count)
    x, y = (0.7 * useful + 0.3 * generator.random(count) for _ in range(2))
    return np.column_stack([x, generator.integers(0, 3, count), useful, y])


def test_the_survey_finds_the_explained_variance_of_squared_distances() -> None:
    raw = correlated_rows(1500)
    y = Coordinates(SCHEMA).of_points(raw)
    found = cells.explained_shares(SCHEMA, exact_survey(raw), 0.0)
    # d^2 around a row, less what does not vary among categories: its linear part -2 y.w, as the weight's line sees it.
    linear = -2 * y @ y.T
    for name, place in (("useless", 1), ("useful", 2)):
        means = np.stack([linear[raw[:, place] == level].mean(axis=0) for level in raw[:, place].astype(int)])
        assert found[name] == pytest.approx(means.var(axis=0).mean() / linear.var(axis=0).mean(), abs=1e-9)
    assert found["useful"] > found["useless"]


def test_columns_are_chosen_by_what_they_explain_and_what_the_noise_allows() -> None:
    sharp = problem_of(exponential(0.2))
    shares = {"useless": 0.1, "useful": 0.5}
    assert cells.choose_columns(SCHEMA, sharp.weight, 1.0, 10**5, shares)[0] == "useful"
    assert cells.pays(SCHEMA, sharp.weight, 1.0, 10**6)
    assert not cells.pays(SCHEMA, sharp.weight, 1e-4, 1000)
    assert not cells.pays(SCHEMA, polynomial(), 1.0, 10**9)  # exact with one cell


def test_more_money_never_means_fewer_cells() -> None:
    wide = vt.Schema({f"c{levels}": vt.Categorical(range(levels)) for levels in (2, 3, 4, 5, 6, 7, 8)})
    shares = {"c2": 0.2, "c4": 0.3, "c6": 0.3, "c8": 0.1}
    chosen = [cells.choose_columns(wide, stable(), mu, 10**5, shares) for mu in np.geomspace(1e-4, 10, 12)]
    counts = [Partition(wide, columns).count for columns in chosen]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 48


@pytest.mark.usefixtures("planted_noise")
def test_the_survey_is_charged_and_everything_stays_within_the_price() -> None:
    data = private(20.0)
    made = fit(problem_of(exponential(0.2)), data, 1.0)
    assert made.cells
    assert data.budget.n_questions == 2
    assert data.budget.spent == made.cost <= Cost.of_mu(1.0)
    assert made.guarantee.mu == pytest.approx(1.0, rel=1e-6)
    assert data.budget.spent_epsilon == pytest.approx(made.guarantee.epsilon, rel=1e-6)


def test_nothing_is_surveyed_where_it_cannot_pay() -> None:
    data = private()
    made = fit(problem_of(polynomial()), data, 0.5)
    assert made.cells == ()
    assert data.budget.n_questions == 1
    assert made.cost <= Cost.of_mu(0.5)


def test_a_budget_too_small_for_all_of_it_is_refused_before_the_survey() -> None:
    data = private(1.0)
    with pytest.raises(BudgetExceeded):
        fit(problem_of(exponential(0.2)), data, 1.0)
    with pytest.raises(ModelError):
        fit(problem_of(exponential(0.2), lambda x: x[:, 0] * 9), data, 0.1)
    assert data.budget.spent_epsilon == 0


def test_no_row_exceeds_the_norm_of_the_survey() -> None:
    asked = moments.survey_question(SCHEMA)
    corners = np.array(list(product([0.0, 1.0], range(3), range(2), [0.0, 1.0])))
    facts = PublicFacts(SCHEMA, None, len(corners), "add-remove", len(corners))
    left, right = asked.fn(vt.Block(corners, facts, lambda model, values: values[:, 0]))
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    assert norms.max() <= asked.l2_bound
    assert norms.min() >= (1 - 1e-4) * asked.l2_bound


@pytest.mark.usefixtures("planted_noise")
def test_cells_follow_a_sharp_weight_where_a_line_cannot() -> None:
    """The statistics have the slopes of the model, which no ridge has shrunk yet; explanations are nearer to them, too."""
    sharp = problem_of(exponential(0.05))
    points = {"x": [0.2, 0.8], "useless": ["a", "b"], "useful": ["a", "b"], "y": [0.5, 0.5]}
    errors, explained = {}, {}
    for columns in ((), ("useful",)):
        made = fit(sharp, private(200.0), 8.0, columns=columns)
        _, slopes = best_affine(*made.statistics(points), 20.0)
        for found, coefficients in ((errors, slopes / 2), (explained, made(points, bands=False).coefficients)):
            found[columns] = np.abs(coefficients[:, 0] / 2.0 - [0.3, -0.3]).max()  # x is divided by sqrt(4 columns)
    assert errors["useful",] < 0.02
    assert errors["useful",] < 0.5 * errors[()]
    assert explained["useful",] < 0.8 * explained[()]


def test_the_price_does_not_depend_on_the_cells() -> None:
    bounds = [
        moments.moments_question(problem_of(stable()), cells=columns).l2_bound
        for columns in ((), ("useful",), ("useless", "useful"))
    ]
    assert bounds[2] < bounds[1] < bounds[0] * 1.2


def test_a_synopsis_with_cells_is_stored_like_any_other(tmp_path) -> None:
    made = fit(problem_of(exponential(0.3)), private(), 1.0, columns=("useful",))
    made.save(tmp_path / "cells.synopsis")
    read = Synopsis.load(tmp_path / "cells.synopsis")
    points = {"x": 0.2, "useless": "a", "useful": "a", "y": 0.5}
    assert np.array_equal(read(points).lower, made(points).lower)


@pytest.mark.parametrize("columns", [("x",), ("useful", "useful"), ("x", "useless", "useful", "y")])
def test_bad_cells_are_named_before_anything_is_charged(columns: tuple[str, ...]) -> None:
    data = private()
    with pytest.raises(InvalidInput, match="cells are cut by"):
        fit(problem_of(stable()), data, 0.1, columns=columns)
    assert data.budget.spent_epsilon == 0
