"""Section 6.3 of the paper: explanations of models that were themselves trained with differential privacy."""

from __future__ import annotations

import numpy as np

import exact
import vitrail as vt
from bench_data import Dataset
from local_setup import Case, Part
from papers.patel_cases import TRAINING, PatelBench, problem_of, text_case, train_words
from papers.patel_streams import histogram
from vitrail.accounting import mu_of
from vitrail.solve.linear.descent import Gradients
from vitrail.solve.linear.weights import stable

EPSILONS = (0.5, 2.0, 10.0)
DELTA = 1e-5
PRINTED_ACCURACY = {"f": 0.836, "f_0.5": 0.52, "f_2": 0.74, "f_10": 0.81}
DISTANCE_EDGES = np.linspace(0.0, 2.0, 41)
LOSS_EDGES = np.geomspace(1e-7, 1.0, 43)
NEAREST = 50
AT_ONCE = 100
SCATTERED = 100


def models(bench: PatelBench) -> tuple[dict[str, np.ndarray], dict[str, float], np.ndarray, np.ndarray]:
    """Probabilities on all reviews by model, what training cost each, and the IMDB rows that train and test."""
    case = text_case(bench)
    imdb = int(bench.cache.arrays("text-words", dict)["imdb_rows"])
    order = np.random.default_rng(0).permutation(imdb)
    train, test = order[: imdb * 7 // 10], order[imdb * 7 // 10 :]
    features = case.data.raw
    outputs, spent = {}, {}
    for epsilon in (None, *EPSILONS):
        name = "f" if epsilon is None else f"f_{epsilon:g}"

        def made(epsilon: float | None = epsilon) -> dict[str, np.ndarray]:
            p, stated = train_words(features, case.data.positive, train, epsilon, delta=DELTA)
            return {"p": p, "epsilon": np.array(np.inf if stated is None else stated)}

        stored = bench.cache.arrays(f"words-{name}", made)
        outputs[name], spent[name] = stored["p"], float(stored["epsilon"])
    return outputs, spent, train, test


def training(bench: PatelBench) -> Part:
    from papers.patel_wide import Around, Rows, batches, tensor

    case = text_case(bench)
    outputs, spent, train, test = models(bench)
    gradients, mu, positive = Gradients(problem_of(case)), mu_of(0.1, DELTA), case.data.positive
    x, of, draws = case.data.x, case.indices(10 if bench.scale.quick else 500), 2
    near, on_device = exact.nearest_others(x, of, NEAREST), Rows.of(x, bench.device)
    labels = {name: np.where(p >= 0.5, 1.0, -1.0) for name, p in outputs.items()}
    distances: dict[tuple[str, str], list[np.ndarray]] = {}
    lost: dict[tuple[str, str], list[np.ndarray]] = {}
    for place, alphas, grams in batches(on_device, x[of], stable(1.0), AT_ONCE):
        plain = None
        for name, f in labels.items():
            crosses = on_device.crosses(tensor(f, bench.device), tensor(x[of][place], bench.device), alphas)
            around = Around.of(grams, crosses, len(x), 61 + place.start)
            plain = around.best if plain is None else plain  # f is the first
            many = around.of_rows(100 * len(x), 62 + place.start)
            found = {
                "optimum, no noise": around.best[:, :, None],
                "Algorithm 1 as published": around.published(0.1, DELTA, draws, 200),
                "descent": around.descent(gradients, mu, draws),
                "statistics": around.statistics(gradients.problem, mu, draws),
                "statistics, noise of 100 times the rows": many.statistics(gradients.problem, mu, draws),
            }
            for method, phi in found.items():
                away = (phi - plain[:, :, None]).norm(dim=1).T.cpu().numpy()
                distances.setdefault((name, method), []).append(away)
                lost.setdefault((name, method), []).append(around.excess(phi))
    rows: list[dict[str, object]] = []
    for (name, method), some in distances.items():
        away, losses = np.concatenate(some, axis=1), np.concatenate(lost[name, method], axis=1)
        wrong = ((labels[name] > 0) != positive)[near].mean(axis=1)
        scattered = [[float(f"{a:.3g}"), float(f"{b:.3g}")] for a, b in zip(wrong, losses.mean(axis=0), strict=True)]
        rows.append(
            {
                "model": name,
                "method": method,
                "test_accuracy": float(((labels[name] > 0) == positive)[test].mean()),
                "printed_accuracy": PRINTED_ACCURACY[name],
                "mean_dist": float(away.mean()),
                "mean_excess_loss": float(losses.mean()),
                "correlation_with_errors_nearby": correlation(losses.mean(axis=0), wrong),
                "errors_nearby": float(wrong.mean()),
                "points": away.shape[1],
                "draws": away.shape[0],
                "dist_histogram": histogram(away.ravel(), DISTANCE_EDGES),
                "loss_histogram": histogram(losses.ravel(), LOSS_EDGES),
                "scatter": scattered[:SCATTERED],
            }
        )
        print("  ", {k: v for k, v in rows[-1].items() if not isinstance(v, list)}, flush=True)
    rows += composed(bench, case, outputs, spent, train)
    headline = {f"dist_{row['model']}": float(str(row["mean_dist"])) for row in rows if row["method"] == "optimum, no noise"}
    headline |= {
        f"accuracy_{row['model']}": float(str(row["test_accuracy"])) for row in rows if row["method"] == "statistics"
    }
    how = (
        "IMDB, 35 000 / 15 000 reviews, 500 words; a dense network of 16 units trained by Opacus' DP-SGD (Poisson batches, "
        f"PRV accountant, delta 1e-5, {TRAINING}, not tuned) or, f, without privacy. Explanations at epsilon 0.1, delta "
        "1e-5 (T = 200 as published) of 500 reviews from all 52 000 reviews, labelled by each model. Dist "
        "= |phi - phi*(f)| as in the paper; 'optimum, no noise' is the part of it that is the model's. Errors nearby: share "
        "of the 50 nearest reviews that the model gets wrong. 'promise' rows are releases through the ledger from the "
        "35 000 training reviews with the training's own (epsilon, delta) added"
    )
    return Part(headline, rows, how)


def correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Pearson's; None where one of them does not vary (losses of an exact optimum are zero but for rounding)."""
    if first.std() <= 1e-12 or second.std() <= 1e-12:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def composed(
    bench: PatelBench, case: Case, outputs: dict[str, np.ndarray], spent: dict[str, float], train: np.ndarray
) -> list[dict[str, object]]:
    """One explanation of each DP model from its own training rows, through the ledger, with the whole promise."""
    kept = np.sort(train)
    data = Dataset("text", case.data.frame.iloc[kept].reset_index(drop=True), case.data.schema, case.data.positive[kept])
    rows: list[dict[str, object]] = []
    for name in outputs:
        if name == "f":
            continue
        one = Case(f"text-{name}", data, case.estimator, outputs[name][kept], bench.cache, bench.scale)
        explain = vt.LocalLinear(
            one.private,
            one.model,
            method=vt.linear.Statistics(bands=False),
            labels="hard",
            intercept=False,
            training_guarantee=(spent[name], DELTA),
        )
        found = explain(one.points(np.arange(1)), epsilon=0.1)
        rows.append(
            {
                "model": name,
                "method": "promise",
                "training_epsilon": spent[name],
                "epsilon": found.guarantee.epsilon,
                "delta": found.guarantee.delta,
                "protects": found.guarantee.protects,
            }
        )
        print("  ", rows[-1], flush=True)
        if bench.scale.quick:
            break
    return rows
