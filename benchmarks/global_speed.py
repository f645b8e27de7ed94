"""Speed of whole-model explanations on the Adult forest: against the model's own predictions, and against scikit-learn."""

from __future__ import annotations

import time

import numpy as np

import vitrail as vt
from global_setup import Bench, Case, Part

GRID = 20
STACKED_ROWS = 16_384


class Counted:
    """The model, and how many rows it was asked for and how long that took."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.rows, self.seconds = 0, 0.0

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        start = time.perf_counter()
        outputs = self._case.predict(raw)
        self.seconds += time.perf_counter() - start
        self.rows += len(raw)
        return outputs


def forest(case: Case) -> vt.Model:
    """The estimator itself, as a user gives it."""
    return vt.Model(case.estimator, output=1, inputs="values", name="forest")


def _timed(action: object) -> float:
    start = time.perf_counter()
    action()  # type: ignore[operator]
    return time.perf_counter() - start


def report_vs_predict(bench: Bench) -> Part:
    """Wall time of the report over that of the model on as many rows, stacked."""
    case = bench.case("adult")
    counted = Counted(case)
    data = case.vault(target=True)

    def report(model: vt.Model) -> None:
        vt.GlobalReport(data, model)(epsilon=1.0)

    report(vt.Model(counted, range=(case.low, case.high), inputs="values", name="forest"))
    asked = counted.rows
    seconds = _timed(lambda: report(forest(case)))
    stacked = np.resize(case.raw, (STACKED_ROWS, case.raw.shape[1]))
    calls = -(-asked // STACKED_ROWS)
    alone = _timed(lambda: [case.predict(stacked) for _ in range(calls)]) * asked / (calls * STACKED_ROWS)
    row = {"seconds": seconds, "rows_predicted": asked, "seconds_of_the_model_alone": alone}
    how = (
        "vt.GlobalReport at epsilon 1, one run; how many rows it predicts is counted in a run before; the model alone "
        f"predicts as many of the same rows, stacked {STACKED_ROWS} at a time"
    )
    return Part({"report_vs_predict": seconds / alone}, [row], how)


def sklearn_speedup(bench: Bench) -> Part:
    """scikit-learn's partial_dependence and permutation_importance(n_repeats=1) over ours: same columns, grid and rows."""
    from sklearn.inspection import partial_dependence, permutation_importance

    case = bench.case("adult")
    data, model = case.vault(target=True), forest(case)
    places = {name: case.grid_points(name) for name in case.names}

    def theirs() -> None:
        for name, count in places.items():
            values = {case.place(name): np.linspace(*case.bounds(name), count)}
            partial_dependence(
                case.estimator, case.raw, [case.place(name)], custom_values=values, method="brute", kind="average"
            )
        permutation_importance(case.estimator, case.raw, case.given.target, n_repeats=1, random_state=0)

    def ours() -> None:
        marginals = vt.marginals(data, epsilon=0.1)
        vt.PartialDependence(data, model, resolution=GRID)(epsilon=1.0, marginals=marginals)
        vt.PermutationImportance(data, model, n_repeats=1)(epsilon=1.0, marginals=marginals)

    seconds = {"sklearn": _timed(theirs), "ours": _timed(ours)}
    row = {**seconds, "grid_points": sum(places.values())}
    return Part(
        {"sklearn_speedup": seconds["sklearn"] / seconds["ours"]}, [row], f"one run of each, {GRID} places per number"
    )
