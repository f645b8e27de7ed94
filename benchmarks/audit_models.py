"""Parts of the audit benchmark that train models: likelihood ratios on Location-30, training speed, reconstruction."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from papers import risks_setup as setup
from vitrail.audit import influence, reconstruction
from vitrail.audit.attacks import joint_online, offline, online
from vitrail.audit.roc import area, best_threshold, found_at
from vitrail.audit.shadow import Networks, halves
from vitrail.audit.signals import explanation_signals, prediction_signals

Row = dict[str, object]


# --- likelihood ratios ---------------------------------------------------------------------------------------------


def location_rows(folder: Path, device: str, quick: bool) -> tuple[dict[str, float], list[Row], dict[str, object]]:
    """One population, many networks on random halves of it; each of the first eight is attacked with all others as shadows.

    Scores of all targets are pooled before rates are read off, so that 0.1 % of non-members are enough people.
    """
    targets, shadows = (4, 20) if quick else (8, 128)
    case = setup.location(folder, device, quick)
    people = 1000 if quick else len(case.points)
    order = np.random.default_rng(11).permutation(len(case.points))[:people]
    points, labels = case.points[order], case.labels[order]
    chosen, inside = halves(targets + shadows, people, people // 2, seed=12)
    trained = case.recipe.fit(points, labels, chosen)
    forms: dict[str, list[np.ndarray]] = {}
    raw: dict[str, list[np.ndarray]] = {}
    sign: dict[str, int] = {}
    for place in range(targets + shadows):
        one = trained.only(place)
        for signal in (
            *explanation_signals(one.explain(points)[0]),
            *prediction_signals(one.predict(points)[0], labels),
        ):
            forms.setdefault(signal.name, []).append(signal.normal)
            raw.setdefault(signal.name, []).append(signal.scores)
            sign[signal.name] = signal.sign
    normal = {name: np.stack(several) for name, several in forms.items()}
    explanation = [name for name in normal if name.startswith("explanation")]
    pooled: dict[tuple[str, str], tuple[list[np.ndarray], list[np.ndarray]]] = {}
    bars: dict[str, list[float]] = {}

    def add(attack: str, name: str, scores: np.ndarray, member: np.ndarray) -> None:
        kept = pooled.setdefault((attack, name), ([], []))
        kept[0].append(scores[member])
        kept[1].append(scores[~member])

    for target in range(targets):
        others = np.arange(targets + shadows) != target
        member = inside[target]
        for name, table in normal.items():
            add("threshold", name, raw[name][target], member)
            add("offline", name, offline(table[target], table[others], inside[others], sign[name]), member)
            add("online", name, online(table[target], table[others], inside[others]), member)
            bars.setdefault(name, []).append(best_threshold(raw[name][target][member], raw[name][target][~member]))
        joint = np.stack([normal[name] for name in explanation])
        add("online", "all of the explanation", joint_online(joint[:, target], joint[:, others], inside[others]), member)
    rows: list[Row] = []
    for (attack, name), (members, non) in pooled.items():
        a, b = np.concatenate(members), np.concatenate(non)
        rows.append(
            {
                "attack": attack,
                "signal": name,
                "auc": setup.said(area(a, b, 0.95)),
                "tpr_at_1_percent": setup.said(found_at(a, b, 0.01, 0.95)),
                "tpr_at_01_percent": setup.said(found_at(a, b, 0.001, 0.95)),
                "nonmembers": len(b),
                "nonmembers_under_01_percent": int(0.001 * len(b)),
            }
        )
    rates = {(row["attack"], row["signal"]): row for row in rows}
    headline: dict[str, float] = {}
    for key, column in (("lrt_tpr_gain", "tpr_at_1_percent"), ("lrt_tpr_gain_01", "tpr_at_01_percent")):
        plain = rates["threshold", "explanation variance"][column]["value"]  # type: ignore[index]
        sharp = rates["online", "explanation variance"][column]["value"]  # type: ignore[index]
        headline[key] = float(sharp) / max(float(plain), 1 / rates["threshold", "explanation variance"]["nonmembers"])  # type: ignore[operator]
    # Every target's best threshold against the mean of three others', on explanation variance.
    gaps = []
    for name in ("explanation variance", "prediction variance", "loss"):
        lost = []
        for target in range(targets):
            member = inside[target]
            scores = raw[name][target]
            three = float(np.mean([bars[name][(target + step) % targets] for step in (1, 2, 3)]))
            best = setup.balanced_accuracy(scores[member], scores[~member], bars[name][target], 0.95).value
            lost.append(best - setup.balanced_accuracy(scores[member], scores[~member], three, 0.95).value)
        gaps.append(100 * float(np.mean(lost)))
    headline["shadow_gap"] = max(gaps)
    train = np.mean([trained.only(t).accuracy(points[inside[t]], labels[inside[t]])[0] for t in range(targets)])
    test = np.mean([trained.only(t).accuracy(points[~inside[t]], labels[~inside[t]])[0] for t in range(targets)])
    how = {
        "targets": targets,
        "shadow models": targets + shadows - 1,
        "people": people,
        "accuracy": f"{train:.3f} train, {test:.3f} test",
        "network": f"{case.recipe.hidden}, {case.recipe.epochs} epochs",
        "lrt_tpr_gain": "online likelihood ratio on the gradient's log variance over its variance threshold, 1 % accused",
    }
    return headline, rows, how


# --- speed ---------------------------------------------------------------------------------------------------------


def speed_rows(folder: Path, device: str, quick: bool) -> tuple[dict[str, float], list[Row], dict[str, object]]:
    """64 networks of the Adult architecture: all at once, and one by one with torch.nn and torch.optim.

    The same rows, batches of 32, steps, optimiser and losses. The loop for one indexes tensors, without a data loader. Under
    ``quick`` one epoch and every eighth network alone; the time is scaled up.
    """
    import torch

    case = setup.adult(folder, device, quick=False)
    models, epochs, alone = (64, 1, 8) if quick else (64, 20, 64)
    half = case.people // 2
    order = np.random.default_rng(13)
    chosen = [order.permutation(len(case.points))[:half] for _ in range(models)]
    recipe = replace(case.recipe, epochs=epochs)
    replace(recipe, epochs=1).fit(case.points, case.labels, chosen[:2])  # what is loaded once is not timed
    if device != "cpu":
        torch.cuda.synchronize()
    start = time.perf_counter()
    recipe.fit(case.points, case.labels, chosen)
    if device != "cpu":
        torch.cuda.synchronize()
    together = time.perf_counter() - start
    rows_first = np.ascontiguousarray(case.points)  # as quick to gather as for the networks together
    points, labels = torch.as_tensor(rows_first, device=device), torch.as_tensor(case.labels, device=device)
    train_alone(recipe, points, labels, chosen[0], 1)
    start = time.perf_counter()
    for rows in chosen[:alone]:
        train_alone(recipe, points, labels, rows, epochs)
    if device != "cpu":
        torch.cuda.synchronize()
    apart = (time.perf_counter() - start) * models / alone
    row = {
        "models": models,
        "epochs": epochs,
        "seconds_together": together,
        "seconds_one_by_one": apart,
        "measured_alone": alone,
    }
    how = {"device": device, "threads": torch.get_num_threads(), "batch": recipe.batch_size}
    return {"batched_training_speedup": apart / together}, [row], how


def train_alone(recipe: Networks, points: object, labels: object, rows: np.ndarray, epochs: int) -> None:
    import torch

    device = points.device  # type: ignore[attr-defined]
    widths = (points.shape[1], *recipe.hidden, 2)  # type: ignore[attr-defined]
    parts: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(widths):
        parts += [torch.nn.Linear(inputs, outputs), torch.nn.Tanh()]
    module = torch.nn.Sequential(*parts[:-1]).to(device)
    optimizer = torch.optim.Adagrad(module.parameters(), lr=recipe.learning_rate, lr_decay=recipe.learning_rate_decay)
    index = torch.as_tensor(rows, device=device)
    for _ in range(epochs):
        shuffled = index[torch.randperm(len(index), device=device)]
        for start in range(0, len(index), recipe.batch_size):
            some = shuffled[start : start + recipe.batch_size]
            loss = torch.nn.functional.cross_entropy(module(points[some]), labels[some])  # type: ignore[index]
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()


# --- reconstruction ------------------------------------------------------------------------------------------------


def reconstruction_rows(folder: Path, device: str, quick: bool) -> tuple[dict[str, float], list[Row], dict[str, object]]:
    """Synthetic 900 x 1 025, and Adult by strategy and group; one row shown per query."""
    generator = np.random.default_rng(14)
    rows: list[Row] = []
    points = generator.normal(size=(900, 1025))
    labels = (points[:, 0] + generator.normal(size=900) > 0).astype(np.int64)
    shows = influence.LogisticInfluence.fit(points, labels, k=1, l2=1e-2)
    found = reconstruction(shows, 1025, queries=1000, hessian_inverse=shows.hessian_inverse(), training=points, seed=15)
    rows += [{"data": "synthetic", "rank": found.rank_bound, **plain(row.to_json())} for row in found.rows]
    best = max(row.share or 0.0 for row in found.rows if row.strategy == "H-orthogonal")
    case = setup.adult(folder, device, quick=True)
    assert case.groups is not None
    sizes = (500,) if quick else (1000, 5000)
    for size in sizes:
        chosen = generator.permutation(len(case.points))[:size]
        people = case.points[chosen].astype(np.float64)
        for k in (1,) if quick else (1, 5):
            shows = influence.LogisticInfluence.fit(people, case.labels[chosen], k=k, l2=1e-3)
            audit = reconstruction(
                shows, (np.zeros(people.shape[1]), np.ones(people.shape[1])), queries=200 if quick else 5000,
                hessian_inverse=shows.hessian_inverse(), training=people, groups=list(case.groups[chosen]), seed=16,
            )  # fmt: skip
            rows += [
                {"data": "adult", "rows": size, "shown": k, "rank": audit.rank_bound, **plain(row.to_json())}
                for row in audit.rows
            ]
    how: dict[str, object] = {
        "synthetic": "N(0, 1), logistic regression, l2 0.01, at most 1 000 queries",
        "adult": "103 features, l2 0.001",
    }
    return {"reconstruction_synthetic": best}, rows, how


def plain(row: Row) -> Row:
    """Without the count after every query."""
    counts = row.pop("over_queries")
    assert isinstance(counts, list)
    row["over_queries"] = {str(place): counts[place - 1] for place in (10, 30, 100, 300, 1000, 3000) if place <= len(counts)}
    return row
