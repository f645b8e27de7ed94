"""How fast reasons are: Shapley values of people on background rows, one core, and against shap's at equal error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bench_data as datasets
import vitrail as vt
from running import Part
from vitrail.solve.shapley.on_rows import shapley_on

BACKGROUND_ROWS = 256
PEOPLE = 100
COMPARED_PEOPLE = 8
SEEDS = 10
ROUNDS = 3


def processor_seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The least of a few rounds: other work on the machine only adds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def exact_values(predict: Callable[[np.ndarray], np.ndarray], point: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Means over the rows, from every coalition of the columns in which a row differs from the point."""
    values = np.zeros(len(point))
    for row in rows:
        columns = np.flatnonzero(row != point)
        members = (np.arange(2 ** len(columns))[:, None] >> np.arange(len(columns))) & 1 == 1
        hybrids = np.repeat(row[None], len(members), axis=0)
        hybrids[:, columns] = np.where(members, point[columns], row[columns])
        outputs, sizes = predict(hybrids), members.sum(axis=1)
        weights = [1 / (len(columns) * math.comb(len(columns) - 1, size)) for size in range(len(columns))]
        for place, column in enumerate(columns):
            without = np.flatnonzero(~members[:, place])
            gained = outputs[without + (1 << place)] - outputs[without]
            values[column] += np.take(weights, sizes[without]) @ gained
    return values / len(rows)


def shapley_speed(folder: Path, *, quick: bool = False) -> Part:
    """People a second, and how many times shap's permutation explainer takes for the same Monte-Carlo error."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    data = datasets.adult(folder)
    draw = np.random.default_rng(0)
    n_people = 10 if quick else PEOPLE
    chosen = data.raw[draw.choice(len(data.raw), BACKGROUND_ROWS + n_people, replace=False)]
    background, people = chosen[:BACKGROUND_ROWS], chosen[BACKGROUND_ROWS:]
    rows: list[dict[str, Any]] = []
    fitted = HistGradientBoostingClassifier(random_state=0).fit(data.raw, data.positive)
    one_hot = HistGradientBoostingClassifier(random_state=0).fit(data.schema.features(data.raw)[0], data.positive)
    models = {"values": vt.Model(fitted, inputs="values"), "features": vt.Model(one_hot, inputs="features")}
    rates = {}
    for inputs, model in models.items():
        for batch in (1, n_people):
            work = partial(shapley_on, model, data.schema, people[:batch], background)
            work()
            rate = batch / processor_seconds(work)
            rates[inputs, batch] = rate
            rows.append({"what": "people a second", "inputs": inputs, "people": batch, "per_second": rate})
        exact = partial(
            shapley_on, model, data.schema, people[:COMPARED_PEOPLE], background, scale="log-odds", method="tree"
        )
        exact()  # shap is imported once
        rate = COMPARED_PEOPLE / processor_seconds(exact, 1)
        rows.append(
            {"what": "people a second, exact log-odds", "inputs": inputs, "people": COMPARED_PEOPLE, "per_second": rate}
        )
    compared = _against_shap(models["values"], fitted, data.schema, people[: 2 if quick else COMPARED_PEOPLE], background)
    headline = {
        "shapley_per_second": rates["values", n_people],
        "shap_permutation_speedup": min(row["speedup"] for row in compared if "speedup" in row),
    }
    how = (
        "processor seconds of one thread, the least of three rounds. HistGradientBoostingClassifier with its defaults on "
        f"Adult's 13 columns (level indices; 103 one-hot features in rows), {BACKGROUND_ROWS} real rows as background, one "
        f"order and its reverse per row, {n_people} people in one call (one alone in rows), the outputs at the background "
        "included, no bands. Against shap's PermutationExplainer with the same background: seconds x mean squared error, "
        "theirs over ours, the errors against every coalition enumerated, over people, columns and seeds; one permutation "
        "and its default of 500 evaluations are both tried and the one that does better counts"
    )
    return Part(headline, rows + compared, how)


def _against_shap(
    model: vt.Model, fitted: Any, schema: vt.Schema, people: np.ndarray, background: np.ndarray
) -> list[dict[str, Any]]:
    import shap

    def predict(raw: np.ndarray) -> np.ndarray:
        return fitted.predict_proba(raw)[:, 1]

    truth = np.stack([exact_values(predict, person, background) for person in people])

    def tried(explain: Callable[[int], np.ndarray], seeds: int) -> tuple[float, float]:
        """Seconds, and mean squared error."""
        explain(seeds)  # loops are compiled
        errors = [np.mean((explain(seed) - truth) ** 2) for seed in range(seeds)]
        return processor_seconds(lambda: explain(0)), float(np.mean(errors))

    def theirs(seed: int, evaluations: int) -> np.ndarray:
        masker = shap.maskers.Independent(background, max_samples=len(background))
        explainer = shap.PermutationExplainer(predict, masker, seed=seed)
        return explainer(people, max_evals=evaluations, silent=True).values

    our_seconds, our_error = tried(lambda seed: shapley_on(model, schema, people, background, seed=seed).values, SEEDS)
    rows = [{"what": "ours", "seconds": our_seconds, "rmse": math.sqrt(our_error), "people": len(people)}]
    for evaluations, seeds in ((2 * len(schema) + 1, SEEDS), (500, 4)):
        seconds, error = tried(partial(theirs, evaluations=evaluations), seeds)
        speedup = seconds * error / (our_seconds * our_error)
        found = {"seconds": seconds, "rmse": math.sqrt(error), "speedup": speedup, "people": len(people)}
        rows.append({"what": "shap.PermutationExplainer", "evaluations": evaluations, **found})
    return rows
