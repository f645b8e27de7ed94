"""Figures 6, 7 and 10 of "Interpretable and Differentially Private Predictions" on a stand-in for the Henan hospital
records, which are not public: Diabetes 130, one encounter of each of 71 518 people, in three classes (not readmitted, within
30 days, later).

    python benchmarks/papers/locally_linear_hospital.py RUNS --data FOLDER --workers 2

Writes lines (``hospital.jsonl``) and attributions to draw (``hospital.npz``). *The paper's settings*: two maps, no
projection, batches of 256, 20 epochs, Adam 0.01 that loses a fifth every quarter, its clip of 0.001 of the mean loss, which
is 256 times as much per example; noise for the epsilon that is asked for. *Ours* are the defaults. The network has three
dense layers of 128 units, without privacy. Accuracy is told beside that of always saying the largest class, and beside the
mean AUC of the classes, as they are uneven.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import vitrail as vt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import bench_data as datasets

DELTA = 2e-5
CLASSES = ["NO", "<30", ">30"]
EPSILONS = (0.1, 0.5, 1.5, 4.0, math.inf)
MAPS = (1, 2, 5, 20)
SEEDS = 2
PUBLISHED = {
    "n_maps": 2,
    "curves": 0,
    "batch_size": 256,
    "epochs": 20,
    "learning_rate": 0.01,
    "schedule": "steps",
    "clip": 0.256,
    "average": 1e-4,
    "start": 0.03,
}
SHOWN, EXAMPLES = 4, 60


class Patients:
    """Rows to train on and rows to judge by."""

    def __init__(self, folder: Path) -> None:
        data, people = datasets.diabetes(folder)
        first = pd.Series(people).drop_duplicates().index.to_numpy()
        told = pd.read_parquet(folder / "diabetes130" / "diabetic_data.parquet", columns=["readmitted"])["readmitted"]
        frame, labels = data.frame.iloc[first].reset_index(drop=True), told.to_numpy().astype(str)[first]
        order = np.random.default_rng(0).permutation(len(frame))
        test, train = np.split(order, [round(0.2 * len(order))])
        self.schema = data.schema
        self.train, self.y = frame.iloc[train], labels[train]
        self.test, self.told = frame.iloc[test], labels[test]

    def features(self, frame: pd.DataFrame) -> np.ndarray:
        return self.schema.features(self.schema.read(frame))[0].astype(np.float32)

    def judged(self, probabilities: np.ndarray) -> dict[str, float]:
        """Of the classes in the order of CLASSES."""
        right = np.array(CLASSES)[probabilities.argmax(1)] == self.told
        aucs = [roc_auc_score(self.told == label, probabilities[:, k]) for k, label in enumerate(CLASSES)]
        return {"accuracy": float(right.mean()), "auc": float(np.mean(aucs))}


@lru_cache(maxsize=1)
def patients_of(folder: Path) -> Patients:
    return Patients(folder)


def maps(patients: Patients, epsilon: float, **settings: Any) -> vt.LocallyLinearClassifier:
    return vt.LocallyLinearClassifier(
        epsilon,
        DELTA,
        schema=patients.schema,
        classes=CLASSES,
        n_rows_public=len(patients.y),
        device="cpu",
        progress=False,
        **settings,
    ).fit(patients.train, patients.y)


def network(patients: Patients) -> Any:
    """Three dense layers of 128 units, without privacy: as long as a tenth of the training rows gets better."""
    import torch

    torch.set_num_threads(1)
    x = torch.tensor(patients.features(patients.train))
    y = torch.tensor(np.searchsorted(sorted(CLASSES), patients.y))
    order = torch.randperm(len(x))
    held, used = order[: len(x) // 10], order[len(x) // 10 :]
    parts = [torch.nn.Linear(x.shape[1], 128), torch.nn.ReLU()]
    for _ in range(2):
        parts += [torch.nn.Linear(128, 128), torch.nn.ReLU()]
    net = torch.nn.Sequential(*parts, torch.nn.Linear(128, len(CLASSES)))
    optimiser, best, kept = torch.optim.Adam(net.parameters(), 1e-3), math.inf, net.state_dict()
    for _ in range(12):
        for rows in used[torch.randperm(len(used))].split(256):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()
        with torch.no_grad():
            loss = float(torch.nn.functional.cross_entropy(net(x[held]), y[held]))
        if loss < best:
            best, kept = loss, {name: value.clone() for name, value in net.state_dict().items()}
    net.load_state_dict(kept)
    return net


def integrated(net: Any, rows: np.ndarray, label: int) -> np.ndarray:
    """Mean gradient of a class's score on the way from no feature at all to each row."""
    import torch

    shares = (torch.arange(32) + 0.5)[:, None] / 32
    found = []
    for row in torch.tensor(rows):
        inputs = (shares * row).requires_grad_(True)
        net(inputs)[:, label].sum().backward()
        found.append(inputs.grad.mean(0).numpy())
    return np.array(found)


def one(given: tuple[Path, str, float, int | None, int]) -> dict[str, object]:
    """A run: the published settings or ours, at an epsilon, perhaps with another number of maps."""
    folder, settings, epsilon, n_maps, seed = given
    patients, started = patients_of(folder), time.process_time()
    order = np.argsort(np.argsort(CLASSES))  # of CLASSES among the sorted ones
    if settings == "network":
        import torch

        net = network(patients)
        with torch.no_grad():
            said = torch.softmax(net(torch.tensor(patients.features(patients.test))), 1).numpy()
    else:
        own = dict(PUBLISHED) if settings == "the paper's" else {}
        said = maps(patients, epsilon, **own | ({} if n_maps is None else {"n_maps": n_maps})).predict_proba(patients.test)
    told = patients.judged(said[:, order])
    part = "hospital" if n_maps is None else "hospital_maps"
    named = {"part": part, "dataset": "diabetes", "settings": settings, "n_maps": n_maps, "seed": seed}
    seconds = time.process_time() - started
    return {**named, "epsilon": None if math.isinf(epsilon) else epsilon, **told, "seconds": seconds}


def attributions(folder: Path, out: Path) -> list[dict[str, object]]:
    """Integrated gradients of the network and weighted maps, both not multiplied by the row, on the same people."""
    patients = Patients(folder)
    rows = {label: np.flatnonzero(patients.told == label)[:EXAMPLES] for label in CLASSES}
    found: dict[str, dict[str, np.ndarray]] = {}
    net, ordered = network(patients), sorted(CLASSES)
    features = patients.features(patients.test)
    found["integrated gradients"] = {k: integrated(net, features[some], ordered.index(k)) for k, some in rows.items()}
    for name, epsilon in (("maps, no privacy", math.inf), ("maps, epsilon 1.5", 1.5), ("maps, epsilon 0.1", 0.1)):
        clf = maps(patients, epsilon, **PUBLISHED)
        found[name] = {k: clf.explain_local(patients.test.iloc[some], target=k).coefficients for k, some in rows.items()}
    np.savez_compressed(
        out / "hospital.npz",
        names=np.array(patients.schema.feature_names),
        **{f"{name}|{label}": values[:SHOWN] for name, own in found.items() for label, values in own.items()},
    )
    lines: list[dict[str, object]] = []
    gradients = found["integrated gradients"]
    for name, own in found.items():
        beside = [cosines(own[k], gradients[k]).diagonal().mean() for k in CLASSES]
        within = [cosines(own[k], own[k])[np.triu_indices(EXAMPLES, 1)].mean() for k in CLASSES]
        spread = [np.abs(v).sum(1) ** 2 / (v * v).sum(1) / v.shape[1] for v in own.values()]
        lines.append(
            {
                "part": "hospital_attributions",
                "what": name,
                "agreement_with_gradients": float(np.mean(beside)),
                "agreement_within_class": float(np.mean(within)),
                "share_of_features": float(np.mean(spread)),
                "examples": EXAMPLES * len(CLASSES),
            }
        )
    return lines


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    one, other = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (first, second))
    return one @ other.T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    folder = datasets.data_folder(given.data)
    given.runs.mkdir(parents=True, exist_ok=True)

    def write(found: dict[str, object]) -> None:
        with (given.runs / "hospital.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(found, flush=True)

    patients = Patients(folder)
    largest = float((patients.told == CLASSES[0]).mean())
    write({"part": "hospital", "dataset": "diabetes", "settings": "largest class", "epsilon": None, "accuracy": largest})
    todo: list[tuple[Path, str, float, int | None, int]] = []
    for seed in range(given.seeds):
        todo += [(folder, "the paper's", epsilon, None, seed) for epsilon in EPSILONS]
        todo += [(folder, "ours", epsilon, None, seed) for epsilon in EPSILONS]
        todo.append((folder, "network", math.inf, None, seed))
        todo += [(folder, "the paper's", epsilon, n_maps, seed) for n_maps in MAPS for epsilon in (1.5, math.inf)]
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        drawn = pool.apply_async(attributions, (folder, given.runs))
        for found in pool.imap_unordered(one, todo):
            write(found)
        for found in drawn.get():
            write(found)


if __name__ == "__main__":
    main()
