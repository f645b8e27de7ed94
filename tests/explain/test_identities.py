"""A stored answer is replayed for the same model and no other, whatever key they share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import vitrail as vt
from vitrail.errors import InvalidInput, ModelError
from vitrail.explain.recipe import Conversation
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions

pytestmark = pytest.mark.usefixtures("curves_in_a_hurry")

ROWS = 500
SCHEMA = vt.Schema({"age": vt.Numeric(0, 1), "dose": vt.Numeric(0, 1), "ill": vt.Numeric(0, 1, integer=True)})
POINT = {"age": 0.4, "dose": 0.6}
KEY = "score"


def private(**options: object) -> vt.PrivateData:
    draw = np.random.default_rng(0)
    rows = {"age": draw.uniform(size=ROWS), "dose": draw.uniform(size=ROWS), "ill": draw.integers(0, 2, ROWS)}
    settings = {"name": "trial", "n_rows_public": ROWS, "budget": vt.Budget(500.0, 1e-6), "target": "ill", **options}
    return vt.PrivateData(rows, SCHEMA, **settings)  # type: ignore[arg-type]


def line(slope: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: slope * x[:, 0]


def two_columns(x: np.ndarray) -> np.ndarray:
    return np.stack([0.5 * x[:, 0], 0.5 * x[:, 0] + 0 * x[:, 1]], axis=1)  # alike, so that only the number differs


def step(at: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(x[:, 0] > at, 1.0, 0.0)


def tree(depth: int) -> DecisionTreeRegressor:
    draw = np.random.default_rng(1)
    x = draw.uniform(size=(500, 2))
    return DecisionTreeRegressor(max_depth=depth, random_state=0).fit(x, x[:, 0] * x[:, 1])


PAIRS: dict[str, Callable[[], tuple[vt.Model, vt.Model]]] = {
    "content of functions": lambda: (vt.Model(line(0.5), range=(0, 1)), vt.Model(line(0.6), range=(0, 1))),
    "where no probe row lies": lambda: (
        vt.Model(step(0.5000001), range=(0, 1)),
        vt.Model(step(0.5000002), range=(0, 1)),
    ),
    "content of estimators": lambda: tuple(vt.Model(tree(depth), range=(0, 1), inputs="values") for depth in (2, 3)),  # type: ignore[return-value]
    "output": lambda: tuple(vt.Model(two_columns, output=place, range=(0, 1)) for place in (0, 1)),  # type: ignore[return-value]
    "range": lambda: (vt.Model(line(0.5), range=(0, 1)), vt.Model(line(0.5), range=(0, 1.5))),
    "inputs": lambda: (
        vt.Model(line(0.5), range=(0, 1), inputs="features"),
        vt.Model(line(0.5), range=(0, 1), inputs="values"),
    ),
}


def local(d: vt.PrivateData, m: vt.Model, k: str | None, method: Any = "statistics") -> object:
    return vt.LocalLinear(d, m, method=method, key=k)(POINT, epsilon=1.0)


def stream(d: vt.PrivateData, m: vt.Model, k: str | None) -> object:
    """From an empty history: with its own of before, every point would be handed on."""
    start = vt.linear.History(vt.LocalLinear(d, m).problem)
    return local(d, m, k, vt.linear.Adaptive(iterations=4, history=start))


Ask = Callable[[vt.PrivateData, vt.Model, str | None], object]
ASKED: dict[str, Ask] = {
    "statistics": local,
    "descent": lambda d, m, k: local(d, m, k, vt.linear.Descent(iterations=4)),
    "adaptive": stream,
    "moments": lambda d, m, k: vt.LocalLinear(d, m, key=k).fit(epsilon=1.0),
    "classes": lambda d, m, k: vt.LocalClasses(d, [m], key=k)(POINT, epsilon=1.0),
    "shapley": lambda d, m, k: vt.Shapley(d, m, key=k)(POINT, epsilon=1.0),
    "shapley, clip chosen": lambda d, m, k: vt.Shapley(d, m, key=k, clip="auto")(POINT, epsilon=1.0),
    "counterfactual": lambda d, m, k: vt.Counterfactual(d, m, rows=False, key=k, threshold=0.25).fit(epsilon=1.0),
    "pdp": lambda d, m, k: vt.PartialDependence(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "ale": lambda d, m, k: vt.AccumulatedEffects(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "importance": lambda d, m, k: vt.PermutationImportance(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "interactions": lambda d, m, k: vt.Interactions(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "shap importance": lambda d, m, k: vt.ShapImportance(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "shap dependence": lambda d, m, k: vt.ShapDependence(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "report": lambda d, m, k: vt.GlobalReport(d, m, key=k, marginals=counted(d))(epsilon=1.0),
    "pane": lambda d, m, k: vt.release(d, m, epsilon=1.0, parts=["local", "counterfactual"], threshold=0.25, key=k),
    "any curve": lambda d, m, k: vt.AnyCurve(
        d, curve, x_grid=[0.0, 1.0], y_range=(0, 1), model=m, groups=20, isolation="none", key=k
    )(epsilon=1.0),
    "any ranking": lambda d, m, k: vt.AnyRanking(d, rank, model=m, groups=20, isolation="none", key=k)(epsilon=1.0),
}


def counted(data: vt.PrivateData) -> vt.Marginals:
    """Histograms are about no model: they are replayed, rightly, and no part of what is counted below."""
    return vt.marginals(data, epsilon=2.0)


def curve(model: object, X: object) -> np.ndarray:
    return np.full(2, 0.5)


def rank(model: object, X: object) -> dict[str, float]:
    return {"age": 1.0, "dose": 0.0}


def charges(data: vt.PrivateData, act: Callable[[], object]) -> int:
    """How many questions were charged, and none of them before."""
    before = sum(entry.kind == "charged" for entry in data.budget.entries)
    act()
    return sum(entry.kind == "charged" for entry in data.budget.entries) - before


@pytest.mark.usefixtures("questions_known_to_be_row_wise")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ASKED)
def test_one_key_for_two_models_replays_neither_for_the_other(name: str, pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = PAIRS[pair]()
    if name == "classes" and pair == "range":
        pytest.skip("LocalClasses takes probabilities alone")
    data = private()
    counted(data)
    paid = charges(data, lambda: ASKED[name](data, first, KEY))
    assert paid > 0
    monkeypatch.setattr(Conversation, "rehearse", lambda talk, mu: None)  # it was rehearsed, and all runs are alike
    assert charges(data, lambda: ASKED[name](data, first, KEY)) == 0  # the same model again
    assert charges(data, lambda: ASKED[name](data, second, KEY)) == paid
    assert charges(data, lambda: ASKED[name](data, first, KEY)) == 0
    assert charges(data, lambda: ASKED[name](data, first, "another key")) == paid


@pytest.mark.usefixtures("questions_known_to_be_row_wise")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ASKED)
def test_a_function_without_a_key_is_never_replayed(name: str) -> None:
    data, model = private(), vt.Model(line(0.5), range=(0, 1))
    counted(data)
    paid = charges(data, lambda: ASKED[name](data, model, None))
    assert charges(data, lambda: ASKED[name](data, model, None)) == paid > 0


@pytest.mark.usefixtures("questions_known_to_be_row_wise")
@pytest.mark.parametrize("name", [name for name in ASKED if not name.startswith("any")])
def test_an_estimator_that_is_fitted_again_is_another_model(name: str) -> None:
    estimator = tree(3)
    data, model = private(), vt.Model(estimator, range=(0, 1), inputs="values")
    counted(data)
    paid = charges(data, lambda: ASKED[name](data, model, None))
    assert charges(data, lambda: ASKED[name](data, model, None)) == 0
    x = np.random.default_rng(2).uniform(size=(500, 2))
    estimator.fit(x, 1 - x[:, 0])
    assert charges(data, lambda: ASKED[name](data, model, None)) == paid > 0


# --- what a model is -------------------------------------------------------------------------------------------------


def fitted(estimator: LogisticRegression | ExtraTreesClassifier, flip: bool) -> LogisticRegression | ExtraTreesClassifier:
    x = np.random.default_rng(3).uniform(size=(400, 2))
    return estimator.fit(x, (x[:, 0] > 0.5) != flip)


@pytest.mark.parametrize(
    "made",
    [
        LogisticRegression,  # has n_jobs=None: the adapter works on a copy with one thread, and must follow the original
        lambda: ExtraTreesClassifier(10, n_jobs=1, random_state=0),  # is used itself; its trees are kept for speed
        lambda: ExtraTreesClassifier(10, n_jobs=2, random_state=0),
    ],
)
def test_digest_and_predictions_follow_a_refit(made: Callable[[], LogisticRegression | ExtraTreesClassifier]) -> None:
    estimator = fitted(made(), flip=False)
    model, schema = vt.Model(estimator, inputs="values"), SCHEMA.without("ill")
    points = schema.read_points([{"age": 0.1, "dose": 0.5}, {"age": 0.9, "dose": 0.5}])
    before, rising = model.digest(), model.predict(schema, points)
    assert model.digest() == before
    fitted(estimator, flip=True)
    assert model.digest() == vt.Model(fitted(made(), flip=True), inputs="values").digest()
    assert model.digest() != before
    falling = model.predict(schema, points)
    assert rising[0] < 0.5 < rising[1]
    assert falling[0] > 0.5 > falling[1]


def test_predictions_kept_in_the_vault_are_dropped_when_the_model_is_fitted_again() -> None:
    estimator = tree(3)
    data, model = private(), vt.Model(estimator, range=(0, 1), inputs="values")

    def mean() -> float:
        question = vt.BoundedSum(lambda block: block.predictions(model)[:, None], 1, 1.0)
        return float(data.ask(question, epsilon=50.0).value[0]) / ROWS

    x = np.random.default_rng(2).uniform(size=(500, 2))
    estimator.fit(x, np.full(500, 0.1))
    assert abs(mean() - 0.1) < 0.05
    estimator.fit(x, np.full(500, 0.9))
    assert abs(mean() - 0.9) < 0.05


def test_what_was_said_of_the_filling_row_is_dropped_too() -> None:
    estimator, x = tree(3), np.random.default_rng(2).uniform(size=(500, 2))
    model = vt.Model(estimator, range=(0, 1), inputs="values")
    predictions = Predictions(PublicFacts(SCHEMA, "ill", 500, "add-remove", 64))
    for level in (0.1, 0.9):
        estimator.fit(x, np.full(500, level))
        predictions.begin()
        predictions.admit(model)
        assert predictions.of_filler(model, 64) == pytest.approx(level)


def test_predictions_of_a_function_are_dropped_when_what_it_asks_is_fitted_again() -> None:
    estimator = tree(3)
    data, model = private(), vt.Model(lambda x: estimator.predict(x), range=(0, 1))
    question = vt.BoundedSum(lambda block: block.predictions(model)[:, None], 1, 1.0)
    x = np.random.default_rng(2).uniform(size=(500, 2))
    for level in (0.1, 0.9):
        estimator.fit(x, np.full(500, level))
        assert abs(float(data.ask(question, epsilon=50.0).value[0]) / ROWS - level) < 0.05


def test_a_model_that_was_refitted_is_probed_again() -> None:
    class Rough(DecisionTreeRegressor):
        mixes = False

        def predict(self, X: np.ndarray) -> np.ndarray:  # type: ignore[override]
            return np.random.default_rng().uniform(size=len(X)) if self.mixes else 0.5 * X[:, 0]

    estimator = Rough().fit(np.zeros((2, 2)), np.zeros(2))
    data, model = private(), vt.Model(estimator, range=(0, 1), inputs="values")
    question = vt.BoundedSum(lambda block: block.predictions(model)[:, None], 1, 1.0)
    data.ask(question, epsilon=1.0)
    estimator.mixes = True
    spent = data.budget.spent
    with pytest.raises(ModelError, match="two predictions for the same public row"):
        data.ask(question, epsilon=1.0)
    assert data.budget.spent == spent


def test_other_classes_after_a_refit_are_refused() -> None:
    estimator = fitted(LogisticRegression(), flip=False)
    model = vt.Model(estimator, inputs="values", output=True)
    estimator.fit(np.random.default_rng(0).uniform(size=(90, 2)), np.repeat(["a", "b", "c"], 30))
    with pytest.raises(ModelError, match="other classes"):
        model.digest()
    with pytest.raises(ModelError, match="other classes"):
        vt.Shapley(private(), model)


def test_a_function_that_counts_its_calls_is_still_itself() -> None:
    calls: list[int] = []

    def counting(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        return 0.5 * x[:, 0]

    data, model = private(), vt.Model(counting, range=(0, 1))
    assert [charges(data, lambda: vt.Shapley(data, model, key=KEY)(POINT, epsilon=1.0)) for _ in range(2)] == [1, 0]
    assert calls


def test_a_torch_module_is_copied_and_its_training_changes_nothing() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
    model, schema = vt.Model(module, range=(0, 1)), SCHEMA.without("ill")
    points = schema.probe_rows(8)
    before, outputs = model.digest(), model.predict(schema, points)
    with torch.no_grad():
        module[0].weight += 1.0
    assert model.digest() == before
    np.testing.assert_array_equal(model.predict(schema, points), outputs)
    assert vt.Model(module, range=(0, 1)).digest() != before


def test_a_counterfactual_does_not_speak_for_a_model_that_was_fitted_again() -> None:
    estimator = tree(3)
    explain = vt.Counterfactual(private(), vt.Model(estimator, range=(0, 1), inputs="values"), threshold=0.25, rows=False)
    fitted_before = explain.fit(epsilon=4.0)
    fitted_before(POINT)
    estimator.fit(np.random.default_rng(2).uniform(size=(50, 2)), np.linspace(0, 1, 50))
    with pytest.raises(InvalidInput, match="fitted again"):
        fitted_before(POINT)


# --- other things that a key does not stand in for -------------------------------------------------------------------


def test_a_history_is_found_for_its_own_model_alone() -> None:
    data = private()
    one, other = PAIRS["content of functions"]()
    local(data, one, KEY, vt.linear.Adaptive(iterations=4))
    assert vt.LocalLinear(data, one, method="history", key=KEY)(POINT).method == "history"
    with pytest.raises(InvalidInput, match="keeps no history"):
        vt.LocalLinear(data, other, method="history", key=KEY)(POINT)


def test_a_history_at_hand_is_refused_for_another_function() -> None:
    data = private()
    one, other = PAIRS["range"]()
    shared = vt.linear.Adaptive(iterations=4, history=vt.linear.History(vt.LocalLinear(data, one).problem))
    local(data, one, None, shared)
    with pytest.raises(InvalidInput, match="another problem"):
        vt.LocalLinear(data, other, method=shared)


def test_one_key_for_two_weights_replays_neither_for_the_other() -> None:
    data, model = private(), vt.Model(line(0.5), range=(0, 1))
    weights = [vt.weights.custom(lambda d, c=c: 1.0 - c * np.minimum(d, 1.0) * (d < 0.3)) for c in (0.1, 0.2)]
    for weight in weights:
        explain = vt.LocalLinear(data, model, weight=weight, key=KEY)
        assert charges(data, lambda explain=explain: explain(POINT, epsilon=1.0)) == 1  # type: ignore[misc]


@pytest.mark.parametrize("report", [False, True])
def test_one_key_for_two_losses_replays_neither_for_the_other(report: bool) -> None:
    data, model = private(), vt.Model(line(0.5), range=(0, 1))
    counted(data)

    def ask(power: float) -> object:
        def own(y: np.ndarray, f: np.ndarray) -> np.ndarray:
            return np.abs(y - f) ** power

        options: Any = {"loss": own, "loss_bound": 1.0, "key": KEY, "marginals": counted(data)}
        if report:
            return vt.GlobalReport(data, model, parts=["importance"], **options)(epsilon=1.0)
        return vt.PermutationImportance(data, model, **options)(epsilon=1.0)

    assert [charges(data, lambda p=p: ask(p)) for p in (2.0, 2.0, 2.0000001)] == [1, 0, 1]  # type: ignore[misc]


def test_one_key_for_two_explainers_of_other_libraries_replays_neither() -> None:
    data = private()

    def ask(level: float) -> object:
        def flat(model: object, X: object) -> np.ndarray:
            return np.full(2, level)

        options = {"x_grid": [0.0, 1.0], "y_range": (0, 1), "groups": 20, "isolation": "none", "key": KEY}
        return vt.AnyCurve(data, flat, model=tree(2), **options)(epsilon=1.0)  # type: ignore[arg-type]

    assert [charges(data, lambda p=p: ask(p)) for p in (0.2, 0.2, 0.8)] == [1, 0, 1]  # type: ignore[misc]


def test_a_pane_stamped_with_one_model_holds_that_models_synopsis() -> None:
    """The audit's case: the pane of model B, made with model A's key, held what was released about A."""
    data = private()
    one, other = (vt.Model(tree(depth), range=(0, 1), inputs="values") for depth in (1, 5))
    first = vt.release(data, one, epsilon=1.0, parts=["local"], key=KEY)
    second = vt.release(data, other, epsilon=1.0, parts=["local"], key=KEY)
    assert first.made_for.digest != second.made_for.digest
    assert not np.array_equal(first.synopsis.parts[0], second.synopsis.parts[0])


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    """Neither hash seeds nor addresses are in it."""
    program = (
        "import vitrail as vt\n"
        "schema = vt.Schema({'x': vt.Numeric(0, 1)})\n"
        "def made(scale, names=frozenset(['u', 'v', 'w'])):\n"
        "    return lambda x: scale * x[:, 0] * ('u' in {'u', 'v', 'w'}) * ('w' in names)\n"
        "print(vt.Model(made(0.5), range=(0, 1)).identity(schema, 'score'))\n"
    )
    found = set()
    for seed in ("1", "2", "3"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
        found.add(run.stdout.strip())
    assert [len(one) for one in found] == [64]
