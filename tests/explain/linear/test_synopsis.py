"""A synopsis: paid once, then any number of explanations, on any machine, with bands, without the data."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from quadratic_loss import excess_loss
from vitrail.errors import BudgetExceeded, InvalidInput, RowCountWarning, SchemaError
from vitrail.explain.linear import fitting as moments
from vitrail.results.row_count import CONTRADICTS
from vitrail.results.synopsis import Synopsis
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import custom, exponential, polynomial

SCHEMA = vt.Schema(
    {
        "dose": vt.Numeric(0, 10),
        "ward": vt.Categorical(["A", "B", "C"]),
        "age": vt.Numeric(0, 100),
        "ill": vt.Categorical([0, 1]),
    }
)
POINTS = {"dose": [1.0, 9.0, 5.0], "ward": ["A", "C", "B"], "age": [30, 80, 50]}
N_ROWS = 6000


def risk(x: np.ndarray) -> np.ndarray:
    return np.clip(0.1 + 0.5 * x[:, 0] + 0.2 * x[:, 3] + 0.2 * x[:, 0] * x[:, 4], 0, 1)


def private(**more: object) -> vt.PrivateData:
    generator = np.random.default_rng(0)
    rows = {
        "dose": generator.uniform(0, 10, N_ROWS),
        "ward": generator.choice(["A", "B", "C"], N_ROWS),
        "age": generator.uniform(0, 100, N_ROWS),
        "ill": generator.integers(0, 2, N_ROWS),
    }
    settings: dict[str, object] = {
        "name": "patients",
        "n_rows_public": N_ROWS,
        "budget": vt.Budget(3, 1e-6),
        "target": "ill",
    }
    return vt.PrivateData(rows, SCHEMA, **{**settings, **more})  # type: ignore[arg-type]


def problem_of(data: vt.PrivateData, **more: object) -> LocalProblem:
    model = vt.Model(risk, range=(0, 1), name="risk")
    return LocalProblem(data.feature_schema, model, **{"weight": polynomial(), **more})  # type: ignore[arg-type]


def fit(problem: LocalProblem, data: vt.PrivateData, mu: float, key: str | None = None) -> Synopsis:
    explain = vt.LocalLinear(
        data, problem.model, weight=problem.weight, labels=problem.labels, intercept=problem.intercept, key=key
    )
    return explain.fit(kind="moments", mu=mu)


@pytest.fixture(scope="module")
def synopsis() -> Synopsis:
    data = private()
    with planted_noise():
        return fit(problem_of(data), data, 0.5)


def test_one_charge_then_free(synopsis: Synopsis) -> None:
    data = private()
    fitted = fit(problem_of(data), data, 0.5)
    spent = data.budget.spent
    for _ in range(3):
        e = fitted(POINTS)
    assert data.budget.spent == spent == fitted.cost == e.cost
    assert e.guarantee == fitted.guarantee
    assert [entry.body["question"]["label"] for entry in data.budget.entries if entry.kind == "charged"] == [
        "synopsis of 3 columns for explanations of risk"
    ]


def test_the_explanation_is_that_of_the_model(synopsis: Synopsis) -> None:
    e = synopsis(POINTS)
    assert e.method == "synopsis"
    assert e.columns == ("dose", "ward", "age")
    assert e.predictions == pytest.approx(e.outputs, abs=0.15)
    assert e.values[0, 0] < -0.1 < 0.1 < e.values[1, 0]
    assert np.abs(e.values[:, 2]).max() < 0.1
    assert e.base_values + e.values.sum(axis=1) == pytest.approx(e.intercepts)
    assert (e.lower < e.values).all()
    assert (e.values < e.upper).all()


def test_points_are_explained_alike_alone_and_in_a_crowd(synopsis: Synopsis) -> None:
    generator = np.random.default_rng(1)
    many = {"dose": generator.uniform(0, 10, 700), "ward": ["A", "B"] * 350, "age": generator.uniform(0, 100, 700)}
    together = synopsis(many, bands=False)
    alone = synopsis({name: values[600] for name, values in many.items()}, bands=False)
    assert together.values[600] == pytest.approx(alone.values[0], abs=1e-12)
    assert together.lower is None


def test_centred_explanations_lie_in_the_unit_ball_and_their_loss_is_small() -> None:
    data = private()
    fitted = fit(problem_of(data, labels="hard", intercept=False), data, 0.6)
    e = fitted(POINTS, bands=False)
    slopes = e.coefficients / 0.5
    assert (np.linalg.norm(slopes, axis=1) <= 1 + 1e-9).all()
    noisy_gram, noisy_cross = fitted.statistics(POINTS)
    assert excess_loss(noisy_gram, noisy_cross, slopes) == pytest.approx(0, abs=1e-9)


def test_asking_again_replays_where_the_model_has_a_name() -> None:
    data = private(budget=vt.Budget(9, 1e-6))
    first = fit(problem_of(data), data, 0.5, key="risk 1")
    spent = data.budget.spent
    again = fit(problem_of(data), data, 0.5, key="risk 1")
    assert data.budget.spent == spent
    assert all(np.array_equal(one, two) for one, two in zip(first.parts, again.parts, strict=True))
    fit(problem_of(data, labels="hard"), data, 0.5, key="risk 1")
    assert data.budget.spent.mu > spent.mu


@pytest.mark.usefixtures("planted_noise")
def test_bands_cover_what_there_would_be_without_noise() -> None:
    data = private(budget=vt.Budget(40, 1e-6))
    problem = problem_of(data)
    points = {"dose": [1.0, 9.0, 5.0, 3.0], "ward": ["A", "C", "B", "B"], "age": [30, 80, 50, 10]}
    reference = fit(problem, private(budget=vt.Budget(4000, 1e-6)), 80.0)
    inside = []
    for _ in range(12):
        fitted = fit(problem, data, 0.5)
        truth = reference(points, bands=False)
        e = fitted(points)
        inside.append((e.lower <= truth.values) & (truth.values <= e.upper))
    assert np.mean(inside) >= 0.85  # 144 values, not independent


def test_weight_and_intercept_change_for_free(synopsis: Synopsis) -> None:
    sharp, centred = synopsis.with_weight(exponential(0.3)), synopsis.with_intercept(False)
    assert sharp.cost == synopsis.cost
    assert not np.allclose(sharp(POINTS, bands=False).values, synopsis(POINTS, bands=False).values)
    assert (centred(POINTS, bands=False).base_values == 0).all()


@pytest.mark.parametrize("cells", [(), ("ward",)])
def test_it_counts_its_rows_and_a_wrong_declared_count_is_said(cells: tuple[str, ...]) -> None:
    generator = np.random.default_rng(1)
    rows = {"dose": generator.uniform(0, 10, 3000), "ward": generator.choice(["A", "B", "C"], 3000)}
    rows |= {"age": generator.uniform(0, 100, 3000), "ill": generator.integers(0, 2, 3000)}
    data = vt.PrivateData(rows, SCHEMA, name="few", n_rows_public=1500, budget=vt.Budget(3, 1e-6), target="ill")
    kind = vt.linear.Cells(columns=cells) if cells else "moments"
    with pytest.warns(RowCountWarning, match="declared: 1,500. The two contradict each other: there are more rows"):
        fitted = vt.LocalLinear(data, vt.Model(risk, range=(0, 1)), weight=polynomial()).fit(kind=kind, epsilon=3.0)
    counted = fitted.rows_counted
    assert abs(counted.counted - 3000) < CONTRADICTS * counted.std < 1000
    e = fitted(POINTS)
    assert e.rows_counted == counted
    assert e.read_first[0] == counted.sentence
    shrunk = fitted.with_shrinkage()
    assert shrunk.rows_counted == counted


def test_no_explanation_depends_on_the_declared_count(synopsis: Synopsis) -> None:
    other = replace(synopsis, n_rows_public=N_ROWS // 2)
    assert other.rows_counted.contradicts
    assert not synopsis.rows_counted.contradicts
    for intercept in (True, False):
        e, again = (made.with_intercept(intercept)(POINTS) for made in (synopsis, other))
        assert again.values == pytest.approx(e.values)
        assert again.upper == pytest.approx(e.upper)
    assert other.statistics(POINTS)[0] == pytest.approx(synopsis.statistics(POINTS)[0])


def test_replace_one_costs_twice_the_noise() -> None:
    one, two = private(), private(neighbours="replace-one")
    noise = [fit(problem_of(data), data, 0.5).sigma for data in (one, two)]
    assert noise[1] == pytest.approx(2 * noise[0], rel=1e-3)


def test_shrinking_is_a_choice_and_says_so(synopsis: Synopsis) -> None:
    shrunk = synopsis.with_shrinkage()
    assert any("shrunk" in note for note in shrunk(POINTS, draws=19).notes)
    assert not any("shrunk" in note for note in synopsis(POINTS, draws=19).notes)


# --- what is wrong is said before anything is charged ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "error"),
    [
        ({"dose": 1.0, "ward": "Z", "age": 3}, SchemaError),
        ({"dose": float("nan"), "ward": "A", "age": 3}, SchemaError),
        ({"dose": 11.0, "ward": "A", "age": 3}, SchemaError),
        ({"dose": 1.0, "ward": "A"}, SchemaError),
        (np.zeros((1, 7)), SchemaError),
        ({"dose": [], "ward": [], "age": []}, InvalidInput),
    ],
)
def test_points_outside_the_schema_are_refused(synopsis: Synopsis, points: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        synopsis(points)


def test_bad_requests_charge_nothing() -> None:
    data = private(budget=vt.Budget(0.1, 1e-6))
    with pytest.raises(BudgetExceeded):
        fit(problem_of(data), data, 1.0)
    wide = vt.Schema({f"x{i}": vt.Numeric(0, 1) for i in range(300)})
    with pytest.raises(InvalidInput, match="at most 256"):
        moments.moments_question(LocalProblem(wide, vt.Model(risk, range=(0, 1)), polynomial()))
    with pytest.raises(InvalidInput, match="is numeric"):
        vt.LocalLinear(data, problem_of(data).model).fit(kind=vt.linear.Cells(columns=("dose",)), mu=0.01)
    with pytest.raises(InvalidInput, match="draws is 9"):
        fit(problem_of(private()), private(), 0.4)(POINTS, draws=9)
    assert data.budget.spent_epsilon == 0


# --- files ----------------------------------------------------------------------------------------------------------------


def test_a_stored_synopsis_explains_the_same(synopsis: Synopsis, tmp_path: Path) -> None:
    synopsis.save(tmp_path / "patients.synopsis")
    read = Synopsis.load(tmp_path / "patients.synopsis", model=synopsis.model)
    assert np.array_equal(read(POINTS).values, synopsis(POINTS).values)
    assert np.array_equal(read(POINTS).lower, synopsis(POINTS).lower)
    assert (read.guarantee, read.cost, read.schema) == (synopsis.guarantee, synopsis.cost, synopsis.schema)
    read.save(tmp_path / "again.synopsis")
    assert (tmp_path / "again.synopsis").read_bytes() == (tmp_path / "patients.synopsis").read_bytes()
    alone = Synopsis.load(tmp_path / "patients.synopsis")(POINTS)
    assert np.array_equal(alone.outputs, alone.predictions)
    assert any("model was not at hand" in note for note in alone.notes)


def test_reading_needs_neither_vault_nor_ledger(synopsis: Synopsis, tmp_path: Path) -> None:
    synopsis.save(tmp_path / "patients.synopsis")
    program = (
        "import sys\n"
        "from vitrail.results.synopsis import Synopsis\n"
        f"e = Synopsis.load({str(tmp_path / 'patients.synopsis')!r})({{'dose': 3, 'ward': 'A', 'age': 9}})\n"
        "print(e.values.shape, [name for name in ('vitrail.vault', 'vitrail.ledger', 'sqlalchemy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 3) []"


def test_a_function_as_weight_has_to_be_given_again(tmp_path: Path) -> None:
    data = private()
    weight = custom(lambda d: np.exp(-d), name="mine")
    fit(problem_of(data, weight=weight), data, 0.5).save(tmp_path / "mine.synopsis")
    with pytest.raises(InvalidInput, match="give it again with weight="):
        Synopsis.load(tmp_path / "mine.synopsis")
    assert Synopsis.load(tmp_path / "mine.synopsis", weight=weight).weight.name == "mine"
