"""interpret's DP-EBM on a prepared table. Runs under any Python that has interpret-core:
benchmarks/papers/locally_linear_tabular.py calls it.

    python dpebm.py TABLE.npz --epsilon 1 --delta 1e-5

TABLE.npz: ``rows`` (rows, columns) of texts, ``positive``, ``tests`` (splits, rows of a test), ``kinds`` ("continuous" or
"nominal"), ``low``, ``high``. The bounds of numbers are given to it as public, as they are to ours. Trains on all rows but
those of a test, and prints the test's AUC as JSON, split by split.
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
    given = parser.parse_args()
    with np.load(given.table) as file:
        table = {key: file[key] for key in file.files}
    kinds = [str(kind) for kind in table["kinds"]]
    bounds = {j: (float(table["low"][j]), float(table["high"][j])) for j, kind in enumerate(kinds) if kind == "continuous"}
    rows, positive = table["rows"].astype(object), table["positive"]
    for test in table["tests"]:
        train = np.setdiff1d(np.arange(len(rows)), test)
        started = time.process_time()
        model = DPExplainableBoostingClassifier(
            feature_types=kinds,
            epsilon=given.epsilon,
            delta=given.delta,
            privacy_bounds=bounds,
            n_jobs=1,
            random_state=None,
        )
        model.fit(rows[train], positive[train])
        seconds = time.process_time() - started
        told = roc_auc_score(positive[test], model.predict_proba(rows[test])[:, 1])
        print(json.dumps({"auc": told, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
