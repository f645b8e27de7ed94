"""interpret's DP-EBM on a prepared table. Runs under any Python that has interpret-core:
benchmarks/papers/locally_linear_tabular.py calls it.

    python dpebm.py TABLE.npz --epsilon 1 --delta 1e-5 --seeds 5

TABLE.npz: ``train`` and ``test`` (rows, columns) of texts, ``y`` and ``yt``, ``kinds`` ("continuous" or "nominal"),
``low``, ``high``. The bounds of numbers are given to it as public, as they are to ours. Prints the test AUC of every seed
as JSON.
"""

import argparse
import json
import time

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.metrics import roc_auc_score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    with np.load(given.table) as file:
        table = {key: file[key] for key in file.files}
    kinds = [str(kind) for kind in table["kinds"]]
    bounds = {j: (float(table["low"][j]), float(table["high"][j])) for j, kind in enumerate(kinds) if kind == "continuous"}
    for _ in range(given.seeds):
        started = time.perf_counter()
        model = DPExplainableBoostingClassifier(
            feature_types=kinds, epsilon=given.epsilon, delta=given.delta, privacy_bounds=bounds, random_state=None
        )
        model.fit(table["train"].astype(object), table["y"])
        told = roc_auc_score(table["yt"], model.predict_proba(table["test"].astype(object))[:, 1])
        print(json.dumps({"auc": told, "seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main()
