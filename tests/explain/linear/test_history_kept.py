"""The history of explained points is kept with the ledger: across objects, processes and crashes, for nothing."""

import json
import subprocess
import sys

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.explain.linear import adaptive, kept_history
from vitrail.ledger import open_ledger
from vitrail.solve.linear.history import History
from vitrail.solve.linear.weights import exponential

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Numeric(0, 1)})


class Tilted:
    """A model with a content hash."""

    def predict(self, x):
        return 0.1 + 0.6 * x[:, 0] + 0.2 * x[:, 1]


MODEL = vt.Model(Tilted(), range=(0, 1), inputs="features")
BARE = vt.Model(lambda x: x[:, 0], range=(0, 1), inputs="features")
FAST = {"method": "adaptive", "iterations": 6, "reuse_distance": 0.02}


def private(tmp_path, epsilon=50.0, **options):
    rows = np.random.default_rng(0).uniform(size=(400, 3))
    options = {"name": "rows", "n_rows_public": 400, "ledger": tmp_path / "ledger.db", **options}
    return vt.PrivateData(rows, SCHEMA, budget=vt.Budget(epsilon, 1e-6), **options)


def points(count, seed=1):
    return np.random.default_rng(seed).uniform(size=(count, 3))


def kept_of(data, model=MODEL, **options):
    local = vt.LocalLinear(data, model, **options)
    return kept_history.existing(local.problem, data, None)


def test_a_restart_goes_on_where_it_stopped_free(tmp_path):
    first = vt.LocalLinear(private(tmp_path), MODEL)(points(4), mu=1.0, **FAST)
    data = private(tmp_path)  # everything anew: rows, ledger, model object
    spent = data.budget.spent
    model = vt.Model(Tilted(), range=(0, 1), inputs="features")
    again = vt.LocalLinear(data, model)(points(4), mu=1.0, **FAST)
    assert data.budget.spent == spent == first.cost
    assert again.cost == vt.Cost()
    assert again.guarantee == first.guarantee  # it rests on what was released then
    assert (again.coefficients == first.coefficients).all()
    assert "4 of 4 points were explained by a neighbour, free" in again.notes[0]
    near = vt.LocalLinear(data, model)(np.clip(points(4) + 0.001, 0, 1), mu=1.0, **FAST)
    assert near.cost == vt.Cost()
    assert len(kept_of(data)) == 8  # the near points are entries of their own; the same points were not entered again
    assert data.budget.spent == spent
    assert open_ledger(tmp_path / "ledger.db").verify().ok


def test_new_points_start_from_what_is_kept(tmp_path):
    vt.LocalLinear(private(tmp_path), MODEL)(points(3), mu=1.0, **FAST)
    data = private(tmp_path)
    vt.LocalLinear(data, MODEL)(points(1, seed=9), mu=0.5, **FAST)
    labels = [entry.body["question"]["label"] for entry in data.budget.entries if entry.kind == "charged"]
    last = [label for label in labels if "choice among" in label][-1]
    assert last == "adaptive: choice among 5 starts"  # one past explanation, three predictions, zero


PROGRAM = """
import json, sys
import numpy as np
import vitrail as vt
from sklearn.tree import DecisionTreeRegressor

schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
public = np.random.default_rng(0).uniform(size=(50, 2))
tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(public, public[:, 0])
rows = np.random.default_rng(1).uniform(size=(400, 2))
data = vt.PrivateData(rows, schema, name="rows", n_rows_public=400, budget=vt.Budget(20, 1e-6), ledger=sys.argv[1])
local = vt.LocalLinear(data, vt.Model(tree, range=(0, 1), inputs="features"))
before = data.budget.spent
found = local(np.array([[0.2, 0.3], [0.8, 0.6]]), mu=1.0, method="adaptive", iterations=6)
free = local(np.array([[0.5, 0.5]]), method="history")
told = [data.budget.spent.pico_mu_squared - before.pico_mu_squared, found.coefficients.tolist(), free.notes[0]]
print(json.dumps(told))
"""


def test_another_process_reuses_it_free(tmp_path):
    def run():
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "ledger.db")]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)

    (paid, first, _), (paid_again, again, note) = run(), run()
    assert paid > 0
    assert paid_again == 0
    assert again == first
    assert note.startswith("Fitted on 2 points")


def test_a_crash_in_the_middle_loses_no_point(tmp_path, monkeypatch):
    """The third point breaks down after its choice: two are kept, and asking the batch again pays for the rest only."""
    data = private(tmp_path)
    asked = points(4)
    original, calls = adaptive.explain_point, []

    def breaks(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(adaptive, "explain_point", breaks)
    with pytest.raises(KeyboardInterrupt):
        vt.LocalLinear(data, MODEL)(asked, mu=1.0, **FAST)
    monkeypatch.undo()
    data = private(tmp_path)
    spent = data.budget.spent
    assert len(kept_of(data)) == 2
    rest = vt.LocalLinear(data, MODEL)(asked, mu=1.0, **FAST)
    assert len(kept_of(data)) == 4
    assert "2 of 4 points were explained by a neighbour, free" in rest.notes[0]
    assert data.budget.spent == spent + rest.cost


def test_a_budget_that_runs_out_keeps_what_was_explained(tmp_path):
    data = private(tmp_path, epsilon=1.0)

    def explain_all():
        for point in points(30):
            vt.LocalLinear(data, MODEL)(point[None], epsilon=0.45, **FAST)

    with pytest.raises(BudgetExceeded):
        explain_all()
    data = private(tmp_path, epsilon=1.0)
    kept = kept_of(data)
    assert 2 <= len(kept) < 30
    free = vt.LocalLinear(data, MODEL)(points(2, seed=7), method="history")
    assert free.guarantee.epsilon == 0
    assert free.notes[0].startswith(f"Fitted on {len(kept)} points")


def test_what_is_another_problem_starts_anew(tmp_path):
    data = private(tmp_path)
    vt.LocalLinear(data, MODEL)(points(2), mu=1.0, **FAST)
    other_model = vt.Model(Tilted(), range=(0, 2), inputs="features")
    others = [
        vt.LocalLinear(data, other_model),
        vt.LocalLinear(data, MODEL, intercept=False),
        vt.LocalLinear(data, MODEL, labels="hard"),
        vt.LocalLinear(data, MODEL, weight=exponential()),
        vt.LocalLinear(private(tmp_path, analyst="bob"), MODEL),
        vt.LocalLinear(private(tmp_path, version="2"), MODEL),
        vt.LocalLinear(private(tmp_path, name="copy", account="rows"), MODEL),
        vt.LocalLinear(data.parts(2, name="halves")[0], MODEL),
    ]
    for local in others:
        with pytest.raises(InvalidInput, match="the ledger keeps no history of this problem for this analyst"):
            local(points(1), method="history")
    assert len(kept_of(data)) == 2


def test_each_part_has_a_history_of_its_own(tmp_path):
    data = private(tmp_path)
    first, second = data.parts(2, name="halves")
    vt.LocalLinear(first, MODEL)(points(2), mu=1.0, **FAST)
    spent = data.budget.spent
    vt.LocalLinear(second, MODEL)(points(2), mu=1.0, **FAST)
    assert [len(kept_of(part)) for part in private(tmp_path).parts(2, name="halves")] == [2, 2]
    assert data.budget.spent.pico_mu_squared < 2 * spent.pico_mu_squared
    vt.LocalLinear(first, MODEL)(points(2), method="history")
    with pytest.raises(InvalidInput, match="keeps no history"):
        vt.LocalLinear(data, MODEL)(points(2), method="history")


def test_a_bare_function_needs_a_name(tmp_path):
    data = private(tmp_path)
    found = vt.LocalLinear(data, BARE)(points(2), mu=1.0, **FAST)
    assert kept_history.NOT_KEPT_NOTE in found.notes
    assert all(entry.kind != "kept" for entry in data.budget.entries)
    with pytest.raises(InvalidInput, match="needs the option history=, or key="):
        vt.LocalLinear(data, BARE)(points(1), method="history")
    named = vt.LocalLinear(data, BARE)(points(2), mu=1.0, key="risk/1", **FAST)
    assert kept_history.NOT_KEPT_NOTE not in named.notes
    assert "Fitted on 2 points" in vt.LocalLinear(data, BARE)(points(1), method="history", key="risk/1").notes[0]
    with pytest.raises(InvalidInput, match="keeps no history"):
        vt.LocalLinear(data, BARE)(points(1), method="history", key="risk/2")


def test_a_history_that_is_given_is_used_and_not_kept(tmp_path):
    data = private(tmp_path)
    local = vt.LocalLinear(data, MODEL)
    mine = History(local.problem)
    local(points(2), mu=1.0, history=mine, **FAST)
    assert len(mine) == 2
    with pytest.raises(InvalidInput, match="keeps no history"):
        local(points(1), method="history")
    assert "Fitted on 2 points" in local(points(1), method="history", history=mine).notes[0]


def test_long_histories_are_kept_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_history, "POINTS_PER_PIECE", 3)
    data = private(tmp_path)
    local = vt.LocalLinear(data, MODEL)
    for number, point in enumerate(points(8)):
        local(point[None], mu=0.5, **FAST)
        assert len(kept_of(data)) == number + 1
    sizes = [entry.body["size"] for entry in data.budget.entries if entry.kind == "kept"]
    assert len(sizes) == 8  # one piece is written for each point, and none grows without end
    assert max(sizes) < 3.2 * sizes[0]
    assert (kept_of(data).raw_points == points(8)).all()


@pytest.mark.parametrize("size", [2, 32])
def test_two_runs_take_in_what_the_other_kept(tmp_path, monkeypatch, size):
    monkeypatch.setattr(kept_history, "POINTS_PER_PIECE", size)
    data, other = private(tmp_path), private(tmp_path)
    problem = vt.LocalLinear(data, MODEL).problem
    source = History(problem)
    adaptive.explain(problem, data, points(7), 1.0, history=source, iterations=6, reuse_distance=0.0)
    entries = list(source)
    one, two = (kept_history.keeper_of(problem, whose, None) for whose in (data, other))
    mine, theirs = one.load(), two.load()
    for number, entry in enumerate(entries):
        keeper, history = (one, mine) if number in (0, 3, 4) else (two, theirs)
        history.add(entry)
        keeper.keep(history)
    kept = kept_of(data)
    assert sorted(kept.raw_points.tolist()) == sorted(points(7).tolist())
    assert kept.raw_points.tolist() == theirs.raw_points.tolist()  # the last to keep has seen everything
