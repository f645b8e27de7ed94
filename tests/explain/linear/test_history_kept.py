"""The history of explained points is kept with the ledger: across objects, processes and crashes, for nothing."""

import json
import subprocess
import sys

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.explain.linear import descent as adaptive
from vitrail.ledger import open_ledger
from vitrail.solve.linear.descent import Gradients, History
from vitrail.solve.linear.weights import exponential

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Numeric(0, 1)})


class Tilted:
    """A model with a content hash."""

    def predict(self, x):
        return 0.1 + 0.6 * x[:, 0] + 0.2 * x[:, 1]


MODEL = vt.Model(Tilted(), range=(0, 1), inputs="features")
BARE = vt.Model(lambda x: x[:, 0], range=(0, 1), inputs="features")
FAST = {"iterations": 6, "reuse_distance": 0.02}


def private(tmp_path, epsilon=50.0, **options):
    rows = np.random.default_rng(0).uniform(size=(400, 3))
    options = {"name": "rows", "n_rows_public": 400, "ledger": tmp_path / "ledger.db", **options}
    return vt.PrivateData(rows, SCHEMA, budget=vt.Budget(epsilon, 1e-6), **options)


def points(count, seed=1):
    return np.random.default_rng(seed).uniform(size=(count, 3))


def explain(data, model, points, *, history=None, key=None, **price):
    method = vt.linear.Adaptive(history=history, **FAST)
    return vt.LocalLinear(data, model, method=method, key=key)(points, **price)


def recall(data, model, points, *, history=None, key=None, **options):
    return vt.LocalLinear(data, model, method=vt.linear.FromHistory(history=history), key=key, **options)(points)


def kept_of(data):
    return adaptive.kept_history(vt.LocalLinear(data, MODEL).problem, data, None)


def test_a_restart_goes_on_where_it_stopped_free(tmp_path):
    first = explain(private(tmp_path), MODEL, points(4), mu=1.0)
    data = private(tmp_path)  # everything anew: rows, ledger, model object
    spent = data.budget.spent
    model = vt.Model(Tilted(), range=(0, 1), inputs="features")
    again = explain(data, model, points(4), mu=1.0)
    assert data.budget.spent == spent == first.cost
    assert again.cost == vt.Cost()
    assert again.guarantee == first.guarantee  # it rests on what was released then
    assert (again.coefficients == first.coefficients).all()
    assert "4 of 4 points were explained by a neighbour, free" in " ".join(again.notes)
    near = explain(data, model, np.clip(points(4) + 0.001, 0, 1), mu=1.0)
    assert near.cost == vt.Cost()
    assert len(kept_of(data)) == 8  # the near points are entries of their own; the same points were not entered again
    assert data.budget.spent == spent
    assert open_ledger(tmp_path / "ledger.db").verify().ok


def test_new_points_start_from_what_is_kept(tmp_path, monkeypatch):
    explain(private(tmp_path), MODEL, points(3), mu=1.0)
    data, asked, original, starts = private(tmp_path), points(1, seed=9), adaptive.descend, []
    kept = kept_of(data)
    predicted, _ = kept.start(asked[0])

    def spied(gradients, centres, start, *arguments, **options):
        starts.append(start)
        return original(gradients, centres, start, *arguments, **options)

    monkeypatch.setattr(adaptive, "descend", spied)
    booked = len(data.budget.entries)
    explain(data, MODEL, asked, mu=0.5)
    assert len(starts) == 2  # rehearsed, then asked
    assert all((start == Gradients(kept.problem).project(predicted[None])).all() for start in starts)
    labels = [entry.body["question"]["label"] for entry in data.budget.entries[booked:] if entry.kind == "charged"]
    gradients = [*kept_of(data)][-1].gradients
    names = ["means", *(f"gradient {step + 1}" for step in range(gradients))]
    assert labels == [f"{name} of a local explanation" for name in names]  # the start itself was free


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
model = vt.Model(tree, range=(0, 1), inputs="features")
before = data.budget.spent
found = vt.LocalLinear(data, model, method=vt.linear.Adaptive(iterations=6))(np.array([[0.2, 0.3], [0.8, 0.6]]), mu=1.0)
free = vt.LocalLinear(data, model, method="history")(np.array([[0.5, 0.5]]))
told = [data.budget.spent.pico_mu_squared - before.pico_mu_squared, found.coefficients.tolist(), " ".join(free.notes)]
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
    assert "Fitted on 2 points" in note


def test_a_crash_in_the_middle_loses_no_point(tmp_path, monkeypatch):
    """The third point breaks off after two answers: two points are kept, and asking again pays for what was not answered."""
    data, asked, original = private(tmp_path), points(4), vt.PrivateData.ask_reserved
    reservations, answers = [], []

    def breaks(data, reservation, *arguments, **options):
        if reservation not in reservations:
            reservations.append(reservation)
        if len(reservations) == 3 and answers.count(3) == 2:
            raise KeyboardInterrupt
        answers.append(len(reservations))
        return original(data, reservation, *arguments, **options)

    monkeypatch.setattr(vt.PrivateData, "ask_reserved", breaks)
    with pytest.raises(KeyboardInterrupt):
        explain(data, MODEL, asked, mu=1.0)
    monkeypatch.undo()
    data = private(tmp_path)
    assert len(kept_of(data)) == 2
    charged = sum(entry.kind == "charged" for entry in data.budget.entries)
    rest = explain(data, MODEL, asked, mu=1.0)
    kept = kept_of(data)
    assert len(kept) == 4
    assert "2 of 4 points were explained by a neighbour, free" in " ".join(rest.notes)
    assert data.budget.spent == kept.cost
    in_all = sum(1 + past.gradients for past in kept)  # means, and gradients
    assert charged == len(answers)
    assert sum(entry.kind == "charged" for entry in data.budget.entries) == in_all


def test_a_budget_that_runs_out_keeps_what_was_explained(tmp_path):
    data = private(tmp_path, epsilon=1.0)

    def explain_all():
        for point in points(30):
            explain(data, MODEL, point[None], epsilon=0.45)

    with pytest.raises(BudgetExceeded):
        explain_all()
    data = private(tmp_path, epsilon=1.0)
    kept = kept_of(data)
    assert 2 <= len(kept) < 30
    free = recall(data, MODEL, points(2, seed=7))
    assert free.guarantee.epsilon == 0
    assert any(note.startswith(f"Fitted on {len(kept)} points") for note in free.notes)


def test_what_is_another_problem_starts_anew(tmp_path):
    data = private(tmp_path)
    explain(data, MODEL, points(2), mu=1.0)
    other_model = vt.Model(Tilted(), range=(0, 2), inputs="features")
    others = [
        (data, other_model, {}),
        (data, MODEL, {"intercept": False}),
        (data, MODEL, {"labels": "hard"}),
        (data, MODEL, {"weight": exponential()}),
        (private(tmp_path, analyst="bob"), MODEL, {}),
        (private(tmp_path, version="2"), MODEL, {}),
        (private(tmp_path, name="copy", account="rows"), MODEL, {}),
        (data.parts(2, name="halves")[0], MODEL, {}),
    ]
    for whose, model, options in others:
        with pytest.raises(InvalidInput, match="the ledger keeps no history of this problem for this analyst"):
            recall(whose, model, points(1), **options)
    assert len(kept_of(data)) == 2


def test_each_part_has_a_history_of_its_own(tmp_path):
    data = private(tmp_path)
    first, second = data.parts(2, name="halves")
    explain(first, MODEL, points(2), mu=1.0)
    spent = data.budget.spent
    explain(second, MODEL, points(2), mu=1.0)
    assert [len(kept_of(part)) for part in private(tmp_path).parts(2, name="halves")] == [2, 2]
    assert data.budget.spent.pico_mu_squared < 2 * spent.pico_mu_squared
    recall(first, MODEL, points(2))
    with pytest.raises(InvalidInput, match="keeps no history"):
        recall(data, MODEL, points(2))


def test_a_bare_function_needs_a_name(tmp_path):
    data = private(tmp_path)
    found = explain(data, BARE, points(2), mu=1.0)
    assert adaptive.NOT_KEPT_NOTE in found.notes
    assert all(entry.kind != "kept" for entry in data.budget.entries)
    with pytest.raises(InvalidInput, match="needs the option history=, or key="):
        recall(data, BARE, points(1))
    named = explain(data, BARE, points(2), mu=1.0, key="risk/1")
    assert adaptive.NOT_KEPT_NOTE not in named.notes
    assert "Fitted on 2 points" in " ".join(recall(data, BARE, points(1), key="risk/1").notes)
    with pytest.raises(InvalidInput, match="keeps no history"):
        recall(data, BARE, points(1), key="risk/2")


def test_a_history_that_is_given_is_used_and_not_kept(tmp_path):
    data = private(tmp_path)
    mine = History(vt.LocalLinear(data, MODEL).problem)
    explain(data, MODEL, points(2), mu=1.0, history=mine)
    assert len(mine) == 2
    with pytest.raises(InvalidInput, match="keeps no history"):
        recall(data, MODEL, points(1))
    assert "Fitted on 2 points" in " ".join(recall(data, MODEL, points(1), history=mine).notes)


def test_long_histories_are_kept_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(adaptive, "POINTS_PER_PIECE", 3)
    data = private(tmp_path)
    for number, point in enumerate(points(8)):
        explain(data, MODEL, point[None], mu=0.5)
        assert len(kept_of(data)) == number + 1
    sizes = [entry.body["size"] for entry in data.budget.entries if entry.kind == "kept"]
    assert len(sizes) == 8  # one piece is written for each point, and none grows without end
    assert max(sizes) < 3.2 * sizes[0]
    assert (kept_of(data).raw_points == points(8)).all()


@pytest.mark.parametrize("size", [2, 32])
def test_two_runs_take_in_what_the_other_kept(tmp_path, monkeypatch, size):
    monkeypatch.setattr(adaptive, "POINTS_PER_PIECE", size)
    data, other = private(tmp_path), private(tmp_path)
    problem = vt.LocalLinear(data, MODEL).problem
    source = History(problem)
    explain(data, MODEL, points(7), mu=1.0, history=source)
    entries = list(source)
    one, two = (adaptive.keeper_of(problem, whose, None) for whose in (data, other))
    mine, theirs = one.load(), two.load()
    for number, entry in enumerate(entries):
        keeper, history = (one, mine) if number in (0, 3, 4) else (two, theirs)
        history.add(entry)
        keeper.keep(history)
    kept = kept_of(data)
    assert sorted(kept.raw_points.tolist()) == sorted(points(7).tolist())
    assert kept.raw_points.tolist() == theirs.raw_points.tolist()  # the last to keep has seen everything
