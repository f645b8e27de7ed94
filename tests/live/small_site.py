"""A small pane of a gradient boosting in ONNX, as files: what tests of live pages start from."""

from pathlib import Path

import numpy as np
import pandas as pd

import vitrail as vt
from benchmark_scripts import ROOT
from error_rates import planted_noise
from vitrail.show.page_words import PageWords

DATA = ROOT / "examples" / "data"
N_ROWS = 6_000
TREES = 30
PERSON = {
    "age": 38, "workclass": "Private", "education": "HS-grad", "education-num": 9, "marital-status": "Married-civ-spouse",
    "occupation": "Sales", "relationship": "Wife", "race": "White", "sex": "Female", "capital-gain": 0, "capital-loss": 0,
    "hours-per-week": 45, "native-country": "United-States",
}  # fmt: skip
WORDS = PageWords(decision="Your loan", above="approved", below="declined", good="above")
TRAINED_ON = "other customers of the same bank"


def write_subject(folder: Path) -> None:
    """``small.pane`` and ``model.onnx``; on planted noise, so that what a page says is no matter of chance."""
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier

    schema = vt.Schema.load(DATA / "adult.schema.json")
    rows = pd.read_parquet(DATA / "adult.parquet").sample(frac=1, random_state=0)
    training, inputs = rows[:10_000], schema.without("income")
    features, _ = inputs.features(inputs.read(training.drop(columns="income")))
    boosting = GradientBoostingClassifier(n_estimators=TREES, random_state=0).fit(features, training["income"])
    graph = to_onnx(boosting, features[:1].astype(np.float32), options={"zipmap": False})
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    model = vt.Model(folder / "model.onnx", output=">50K", name="income model")
    with planted_noise():
        data = vt.PrivateData(
            rows[-N_ROWS:], schema, name="customers", target="income", n_rows_public=N_ROWS,
            budget=vt.Budget(epsilon=3.0, delta=1e-6), ledger="memory",
        )  # fmt: skip
        vt.release(data, model, epsilon=2.0, page=WORDS).save(folder / "small.pane")
