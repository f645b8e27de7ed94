"""Speed of whole-model explanations on the Adult forest: against the model's own predictions, and against scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import vitrail as vt
from global_setup import Bench, Case, Part

GRID = 20
ROUNDS = 3
STACKED_ROWS = 16_384


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """How many rows models are asked about, by whichever way they predict, while it lasts."""
    asked: list[int] = []
    real = vt.Model._outputs

    def counting(self: vt.Model, schema: vt.Schema, raw: np.ndarray, columns: Any) -> Any:
        asked.append(len(raw))
        return real(self, schema, raw, columns)

    vt.Model._outputs = counting  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        vt.Model._outputs = real  # type: ignore[method-assign]


def forest(case: Case) -> vt.Model:
    """The estimator itself, as a user gives it."""
    return vt.Model(case.estimator, output=1, inputs="values", name="forest")


def timed(action: object) -> float:
    """Processor seconds of this process, which other work on the machine does not change; one thread on either side."""
    start = time.process_time()
    action()  # type: ignore[operator]
    return time.process_time() - start


def report_vs_predict(bench: Bench) -> Part:
    """Time of the report over that of the model on as many rows, stacked."""
    case = bench.case("adult")
    data = case.vault(target=True)
    with counted_rows() as rows:
        seconds = timed(lambda: vt.GlobalReport(data, forest(case))(epsilon=1.0))
    asked = sum(rows)
    stacked = np.resize(case.raw, (STACKED_ROWS, case.raw.shape[1]))
    calls = -(-asked // STACKED_ROWS)
    alone = timed(lambda: [case.predict(stacked) for _ in range(calls)]) * asked / (calls * STACKED_ROWS)
    row = {"seconds": seconds, "rows_predicted": asked, "seconds_of_the_model_alone": alone}
    how = (
        "processor seconds, one thread; vt.GlobalReport at epsilon 1, one run; how many rows it asks the forest about "
        "is counted meanwhile; the model alone (predict_proba) predicts as many of the same rows, stacked "
        f"{STACKED_ROWS} at a time"
    )
    return Part({"report_vs_predict": seconds / alone}, [row], how)


def sklearn_speedup(bench: Bench) -> Part:
    """scikit-learn's partial_dependence and permutation_importance(n_repeats=1) over ours: same columns, grid and rows."""
    from sklearn.inspection import partial_dependence, permutation_importance

    case = bench.case("adult")
    model = forest(case)
    places = {name: case.grid_points(name) for name in case.names}

    def theirs() -> None:
        for name, count in places.items():
            values = {case.place(name): np.linspace(*case.bounds(name), count)}
            partial_dependence(
                case.estimator, case.raw, [case.place(name)], custom_values=values, method="brute", kind="average"
            )
        permutation_importance(case.estimator, case.raw, case.given.target, n_repeats=1, random_state=0)

    def ours() -> None:
        data = case.vault(target=True)  # one of its own: it must not replay what it answered before
        marginals = vt.marginals(data, epsilon=0.1)
        vt.PartialDependence(data, model, resolution=GRID, marginals=marginals)(epsilon=1.0)
        vt.PermutationImportance(data, model, n_repeats=1, marginals=marginals)(epsilon=1.0)

    rounds = [(timed(theirs), timed(ours)) for _ in range(1 if bench.scale.quick else ROUNDS)]
    seconds = dict(zip(("sklearn", "ours"), np.median(rounds, axis=0).tolist(), strict=True))
    row = {**seconds, "grid_points": sum(places.values()), "rounds": rounds}
    return Part(
        {"sklearn_speedup": seconds["sklearn"] / seconds["ours"]},
        [row],
        f"processor seconds, one thread; medians of {len(rounds)} runs of each in turn, {GRID} places per number",
    )
