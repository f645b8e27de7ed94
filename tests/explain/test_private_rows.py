"""Private rows: what is sampled is what the tables say, and what is paid is what was asked."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import BudgetExceeded, InvalidInput, SchemaError
from vitrail.schema.bins import Bins, values_in
from vitrail.solve.rows.histograms import fine_bins, groups_of
from vitrail.solve.rows.network import Link, choose_structure, fit_network, pairs_of
from vitrail.solve.rows.tables import agreed_table, contrasts, mutual_information, rake

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 9, integer=True),
        "pay": vt.Numeric(0.0, 100.0),
        "sex": vt.Categorical(["Female", "Male"]),
        "job": vt.Categorical(list("abcd")),
        "ill": vt.Categorical(["no", "yes"]),
    }
)


def people(n: int = 20_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    age = rng.integers(0, 10, n)
    job = np.clip(age // 3 + rng.integers(0, 2, n), 0, 3)
    sex = rng.integers(0, 2, n)
    return {
        "age": age,
        "pay": np.where(rng.random(n) < 0.5, 0.0, 20.0 * job + rng.uniform(1, 20, n)),
        "sex": np.array(["Female", "Male"])[sex],
        "job": np.array(list("abcd"))[job],
        "ill": np.array(["no", "yes"])[(rng.random(n) < 0.1 + 0.5 * (age > 6)).astype(int)],
    }


def private(epsilon: float = 1.0, **kwargs: object) -> vt.PrivateData:
    options: dict[str, object] = {"target": "ill", "name": "people", "n_rows_public": 20_000, **kwargs}
    return vt.PrivateData(people(), SCHEMA, budget=vt.Budget(epsilon, 1e-6), **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made() -> vt.PrivateRows:
    with planted_noise():
        return vt.private_rows(private(), epsilon=1.0)


@pytest.fixture(scope="module")
def exact() -> vt.PrivateRows:
    """So little noise that every table is the true one."""
    with planted_noise():
        return vt.private_rows(private(5000.0), mu=50.0)


def group_of(made: vt.PrivateRows, name: str, raw: np.ndarray) -> np.ndarray:
    place = made.columns.index(name)
    return made.groups[place][made.bins[place].index(raw[:, place])]


def test_sampled_rows_have_the_distribution_of_the_tables(made: vt.PrivateRows) -> None:
    raw = made.raw(50_000, seed=3)
    assert made.tables
    for (parent, child), table in made.tables.items():
        flat = group_of(made, parent, raw) * table.shape[1] + group_of(made, child, raw)
        seen, expected = np.bincount(flat, minlength=table.size), table.ravel() * len(raw)
        kept = expected > 5
        assert seen[expected < 1e-9].sum() == 0
        rest = np.array([seen[~kept].sum()]), np.array([expected[~kept].sum()])
        seen, expected = (np.concatenate([a[kept], b]) for a, b in zip((seen, expected), rest, strict=True))
        real = expected > 1e-6
        assert chisquare(seen[real], expected[real] * seen[real].sum() / expected[real].sum()).pvalue > 1e-5


def test_sampled_columns_have_the_shares_they_say(made: vt.PrivateRows) -> None:
    raw = made.raw(50_000, seed=4)
    for place, (name, shares) in enumerate(made.shares.items()):
        assert shares.sum() == pytest.approx(1)
        seen = np.bincount(made.bins[place].index(raw[:, place]), minlength=len(shares)) / len(raw)
        assert np.abs(seen - shares).max() < 6 * np.sqrt(0.25 / len(raw)), name


def test_all_tables_of_a_column_agree_on_it(made: vt.PrivateRows) -> None:
    margins: dict[str, list[np.ndarray]] = {}
    for (parent, child), table in made.tables.items():
        assert table.min() >= 0
        margins.setdefault(parent, []).append(table.sum(axis=1))
        margins.setdefault(child, []).append(table.sum(axis=0))
    for found in margins.values():
        assert all(np.abs(margin - found[0]).max() < 1e-6 for margin in found)


def test_without_noise_the_tables_are_those_of_the_rows(exact: vt.PrivateRows) -> None:
    raw = SCHEMA.read(people())
    for (parent, child), table in exact.tables.items():
        flat = group_of(exact, parent, raw) * table.shape[1] + group_of(exact, child, raw)
        truth = np.bincount(flat, minlength=table.size).reshape(table.shape) / len(raw)
        assert np.abs(table - truth).max() < 1e-3


def test_what_ties_columns_together_survives(exact: vt.PrivateRows) -> None:
    sampled = exact.sample(40_000, seed=0)
    truth = people()
    for rows in (sampled, truth):
        rows["old"] = rows["age"] > 6
    assert np.mean(sampled["ill"][sampled["old"]] == "yes") == pytest.approx(
        np.mean(truth["ill"][truth["old"]] == "yes"), abs=0.02
    )
    assert np.mean(sampled["pay"] == 0.0) == pytest.approx(np.mean(truth["pay"] == 0.0), abs=0.02)  # the bound is an atom


def test_sampled_values_are_legal(made: vt.PrivateRows) -> None:
    frame = made.pandas(5000, seed=0)
    assert list(frame.columns) == list(SCHEMA.names)
    assert not np.isnan(SCHEMA.read_points(frame)).any()  # refuses anything outside the schema
    assert "ill" not in made.background(10).columns
    assert made.features(10, seed=0).shape == (10, SCHEMA.without("ill").n_features)


def test_a_seed_repeats_and_no_seed_does_not(made: vt.PrivateRows) -> None:
    assert (made.raw(50, seed=1) == made.raw(50, seed=1)).all()
    assert (made.raw(50, seed=1) != made.raw(50, seed=2)).any()
    assert (made.raw(50) != made.raw(50)).any()


def test_the_whole_budget_can_be_spent_and_asking_again_is_free() -> None:
    data = private()
    first = vt.private_rows(data, epsilon=1.0)
    spent = data.budget.spent
    again = vt.private_rows(data, epsilon=1.0)
    assert data.budget.spent == spent == first.cost
    assert data.budget.n_questions == 3
    assert again.tree == first.tree
    assert (again.raw(100, seed=0) == first.raw(100, seed=0)).all()
    assert first.guarantee.epsilon == pytest.approx(1.0, rel=1e-4)
    assert first.guarantee.epsilon <= 1.0 + 1e-9


def test_what_cannot_be_paid_for_in_full_is_not_begun() -> None:
    data = private()
    vt.marginals(data, epsilon=0.5)
    spent = data.budget.spent
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        vt.private_rows(data, epsilon=1.0)
    assert data.budget.spent == spent


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"columns": ["agee"]}, SchemaError, "Did you mean 'age'"),
        ({"columns": []}, InvalidInput, "columns is empty"),
        ({"columns": "age"}, InvalidInput, "give a list of names"),
        ({"columns": ["age", "age"]}, InvalidInput, "twice"),
        ({"bins": 0}, InvalidInput, "bins is 0"),
        ({"bins": True}, InvalidInput, "bins is True"),
        ({"parents": 4}, InvalidInput, "parents is 4"),
        ({"parents": True}, InvalidInput, "parents is True"),
        ({"mu": 0.1}, InvalidInput, "either epsilon= or mu="),
        ({"epsilon": -1.0}, InvalidInput, "must be positive"),
    ],
)
def test_a_bad_request_is_named_and_costs_nothing(options: dict[str, object], error: type[Exception], sentence: str) -> None:
    data = private()
    with pytest.raises(error, match=sentence):
        vt.private_rows(data, **{"epsilon": 0.5, **options})  # type: ignore[arg-type]
    assert data.budget.n_questions == 0


@pytest.mark.parametrize(("n", "seed"), [(0, 0), (2.5, 0), (True, 0), (10, -1), (10, 1.5)])
def test_a_bad_sample_is_named(made: vt.PrivateRows, n: object, seed: object) -> None:
    with pytest.raises(InvalidInput, match=r"^(n|seed) is"):
        made.raw(n, seed)  # type: ignore[arg-type]


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize(("columns", "questions"), [(["age"], 1), (["age", "job"], 3), (["sex", "ill"], 3)])
def test_columns_are_linked_where_they_hang_together(columns: list[str], questions: int) -> None:
    data = private()
    found = vt.private_rows(data, epsilon=1.0, columns=columns[::-1])
    assert len(found.noisy_tables) == (1 if columns == ["age", "job"] else 0)
    assert found.columns == tuple(name for name in SCHEMA if name in columns)
    assert found.raw(10, seed=0).shape == (10, len(columns))
    assert data.budget.n_questions == questions  # where nothing hangs together the rest buys the counts again
    assert data.budget.spent == found.cost


@pytest.mark.parametrize("parents", [1, 2, 3])
def test_no_column_has_more_parents_than_it_may(parents: int) -> None:
    with planted_noise():
        found = vt.private_rows(private(), epsilon=1.0, parents=parents)
    assert 1 <= max(len(link.parents) for link in found.links) <= parents
    assert np.isfinite(found.raw(100, seed=0)).all()


def test_columns_of_one_value_are_linked_to_nothing() -> None:
    schema = vt.Schema({name: vt.Categorical(["x"]) for name in "ab"} | {"n": vt.Numeric(0, 9, integer=True)})
    rows = {"a": ["x"] * 900, "b": ["x"] * 900, "n": np.arange(900) % 10}
    for columns in (["a", "b"], ["a", "b", "n"]):
        data = vt.PrivateData(rows, schema, name="x", n_rows_public=900, budget=vt.Budget(9, 1e-6), ledger="memory")
        found = vt.private_rows(data, mu=1.0, columns=columns)
        assert found.noisy_tables == {}
        assert (found.sampled[:, :2] == 0).all()


def test_where_no_link_could_stand_out_everything_is_spent_on_counts() -> None:
    data = private(0.01)
    found = vt.private_rows(data, epsilon=0.001)
    assert (found.noisy_tables, data.budget.n_questions) == ({}, 1)


def test_tied_columns_are_linked_and_others_are_not() -> None:
    third = np.full(3, 1 / 3)
    tied = rake(np.eye(3) + 0.1, [((0,), third), ((1,), third)])
    links, worth = choose_structure({(0, 3): tied, (1, 2): tied}, [third] * 5, 3, 0.01)
    assert pairs_of(links) == [(0, 3), (1, 2)]
    assert worth == pytest.approx(2 * (mutual_information(tied) - 0.01), abs=1e-6)
    assert sorted(link.child for link in links) == list(range(5))
    assert pairs_of(choose_structure({(0, 3): tied, (1, 2): tied}, [third] * 5, 3, 1.0)[0]) == []  # nothing is worth 1 nat


def test_a_table_that_is_all_noise_is_independence() -> None:
    rng = np.random.default_rng(0)
    rows, columns = np.full(5, 0.2), np.array([0.1, 0.2, 0.7])
    measured = 1000 * np.outer(rows @ contrasts(5), columns @ contrasts(3)) + rng.normal(0, 5, (4, 2))
    assert np.array_equal(agreed_table(measured, 5.0, rows, columns, 1000.0, least=6.0), np.outer(rows, columns))


def test_without_noise_contrasts_and_margins_are_the_table() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.full(12, 9.0)).reshape(4, 3)
    measured = 500 * contrasts(4).T @ table @ contrasts(3)
    found = agreed_table(measured, 0.0, table.sum(axis=1), table.sum(axis=0), 500.0)
    assert np.abs(found - table).max() < 1e-9


def test_many_columns_work_and_those_that_nothing_links_are_independent() -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(0, 2, 8000)
    columns = {f"c{i}": rng.integers(0, 2, 8000) for i in range(50)} | {"a": first, "b": first}
    schema = vt.Schema({name: vt.Numeric(0, 1, integer=True) for name in columns})
    data = vt.PrivateData(columns, schema, name="wide", n_rows_public=8000, budget=vt.Budget(8, 1e-6))
    with planted_noise():
        found = vt.private_rows(data, epsilon=8.0)
    assert found.tree == (("a", "b"),)
    sampled = found.sample(4000, seed=0)
    assert np.mean(sampled["a"] == sampled["b"]) > 0.97
    assert abs(np.mean(sampled["c0"] == sampled["c1"]) - 0.5) < 0.05


def test_the_stored_rows_are_rows_of_the_schema_and_have_the_shares(made: vt.PrivateRows) -> None:
    assert made.sampled.shape == (4096, 5)
    assert np.array_equal(SCHEMA.read_points(SCHEMA.frame(made.sampled)), made.sampled)
    for place, (name, shares) in enumerate(made.shares.items()):
        seen = np.bincount(made.bins[place].index(made.sampled[:, place]), minlength=len(shares)) / 4096
        assert np.abs(seen - shares).max() < 0.01, name  # even draws: a random sample would be off by 0.02 and more


def test_the_first_stored_rows_are_drawn_evenly() -> None:
    """Of 256 rows picked from 4 096 one column would be so near with a chance of 0.35, all twelve 3 times in a million."""
    columns = {f"x{j}": np.random.default_rng(j).permutation(np.arange(2000) % 2) for j in range(12)}
    schema = vt.Schema({name: vt.Numeric(0, 1, integer=True) for name in columns})
    data = vt.PrivateData(columns, schema, name="coins", n_rows_public=2000, budget=vt.Budget(0.05, 1e-6))
    with planted_noise():  # noise alone ties two columns now and then
        made = vt.private_rows(data, epsilon=0.05)
    assert not made.tree
    expected = 256 * np.array([share[1] for share in made.shares.values()])
    assert np.abs(made.sampled[:256].sum(axis=0) - expected).max() < 3.5


def test_bounds_are_bins_of_their_own() -> None:
    bins = fine_bins("pay", vt.Numeric(0.0, 100.0), 6)
    last = len(bins) - 1
    assert bins.index(np.array([0.0, 1e-9, 99.9, 100.0])).tolist() == [0, 1, last - 1, last]
    drawn = values_in(bins, np.array([0, last, 1]), 0.0, 100.0, np.array([0.9, 0.9, 0.5]))
    assert drawn[:2].tolist() == [0.0, 100.0]
    assert 0 < drawn[2] < 25
    debts = fine_bins("debt", vt.Numeric(-50.0, 100.0), 12)
    assert np.bincount(debts.index(np.array([-0.1, 0.0, 0.0, 1e-9, 3.0]))).max() == 2  # zero as well


@pytest.mark.parametrize(("epsilon", "times"), [(0.01, 1), (1.0, 2), (100.0, 4)])
def test_bins_are_finer_where_there_is_less_noise(epsilon: float, times: int) -> None:
    schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), "pay": vt.Numeric(0.0, 100.0)})
    nobody, budget = {"age": [], "pay": []}, vt.Budget(epsilon, 1e-6)
    data = vt.PrivateData(nobody, schema, name="nobody", n_rows_public=1_200, budget=budget, ledger="memory")
    asked = fine_bins("pay", schema["pay"], 64 * times)
    assert vt.private_rows(data, bins=64, epsilon=epsilon).bins == (fine_bins("age", schema["age"], 64), asked)


def test_values_fall_back_into_their_bin() -> None:
    rng = np.random.default_rng(0)
    for column in (vt.Numeric(-3.5, 7.25), vt.Numeric(-7, 5000, integer=True), vt.Numeric(0, 20, integer=True)):
        bins: Bins = fine_bins("x", column, 12)
        index = rng.integers(0, len(bins), 2000)
        values = values_in(bins, index, column.low, column.high, rng.random(2000))
        assert (bins.index(values) == index).all()
        assert not column.integer or (values == np.rint(values)).all()


def test_groups_are_numbered_without_gaps() -> None:
    rng = np.random.default_rng(0)
    for ordered in (True, False):
        for most in (2, 3, 8):
            found = groups_of(rng.dirichlet(np.full(30, 0.2)), ordered=ordered, most=most)
            assert set(found.tolist()) == set(range(found.max() + 1))
            assert found.max() < most
            assert not ordered or (np.diff(found) >= 0).all()


def test_a_stored_model_samples_the_same_rows_without_the_vault(made: vt.PrivateRows, tmp_path: Path) -> None:
    path = tmp_path / "people.rows"
    made.save(path)
    read = vt.PrivateRows.load(path)
    assert read == made
    assert (read.guarantee, read.cost, read.tree, read.target) == (made.guarantee, made.cost, made.tree, made.target)
    assert (read.raw(500, seed=5) == made.raw(500, seed=5)).all()
    program = (
        "import sys, vitrail as vt; rows = vt.PrivateRows.load(sys.argv[1]); rows.sample(5); rows.plot(); "
        "print([name for name in ('vitrail.vault', 'vitrail.ledger', 'sqlalchemy') if name in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"


def test_pictures_and_html_are_safe() -> None:
    schema = vt.Schema({"<b>x": vt.Categorical(["<script>", "$y^$"]), "z": vt.Numeric(0, 1)})
    rows = {"<b>x": ["$y^$"] * 50, "z": [0.5] * 50}
    data = vt.PrivateData(rows, schema, name="<i>data", n_rows_public=50, budget=vt.Budget(1, 1e-6))
    found = vt.private_rows(data, epsilon=1.0)
    assert "<i>data" not in found._repr_html_()
    assert len(found.marginals.plot().axes) == 2


def test_tables_that_contradict_each_other_are_sampled_as_they_are_reported() -> None:
    """a = b, b = c and a = not c: no distribution has all three, and what is reported is what is drawn."""
    same, other = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    half, whole = [np.full(2, 0.5)] * 3, [np.arange(2)] * 3
    soft = {(0, 1): 0.9 * same + 0.025, (1, 2): 0.9 * same + 0.025, (0, 2): 0.9 * other + 0.025}
    network = fit_network((Link(0, ()), Link(1, (0,)), Link(2, (0, 1))), soft, half, half, whole)
    drawn = network.draw_bins(100_000, np.random.default_rng(0))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        seen = np.bincount(drawn[:, i] * 2 + drawn[:, j], minlength=4)
        assert chisquare(seen, network.table(i, j).ravel() * len(drawn)).pvalue > 1e-5
