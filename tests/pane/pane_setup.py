"""What the tests of panes share: people, a tree, a pane."""

from dataclasses import dataclass

import numpy as np
from skl2onnx import to_onnx
from sklearn.tree import DecisionTreeClassifier

import vitrail as vt
from vitrail.pane.pane_recipe import PARTS

N_ROWS = 6000
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True),
        "gain": vt.Numeric(0, 1),
        "sex": vt.Categorical(["f", "m"]),
        "rich": vt.Categorical(["no", "yes"]),
    }
)
FEATURES = SCHEMA.without("rich")
PERSON = {"age": 30, "gain": 0.0, "sex": "f"}


def people(count=N_ROWS, seed=0):
    """Many sit at either bound of the gain, which has bins without width there."""
    draw = np.random.default_rng(seed)
    age, sex = draw.integers(18, 91, count), draw.choice(["f", "m"], count)
    gain = np.clip(draw.normal(0.3, 0.5, count), 0, 1)
    rich = np.where(age / 90 + 0.5 * gain + draw.normal(0, 0.1, count) > 0.8, "yes", "no")
    return {"age": age, "gain": gain, "sex": sex, "rich": rich}


def fitted(depth=4):
    rows = people(800, seed=1)
    raw = FEATURES.read({name: rows[name] for name in FEATURES})
    features = FEATURES.features(raw)[0]
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(features, rows["rich"]), features


def opened(budget=4.0, rows=None, **options):
    options = {"target": "rich", "n_rows_public": N_ROWS, **options}
    rows = people() if rows is None else rows
    return vt.PrivateData(rows, SCHEMA, name="people", budget=vt.Budget(budget, 1e-6), **options)


@dataclass(frozen=True)
class Made:
    data: vt.PrivateData
    model: vt.Model
    onnx: bytes
    pane: vt.Pane
    content: bytes


def make():
    tree, features = fitted()
    onnx = to_onnx(tree, features[:1].astype(np.float32), options={"zipmap": False}).SerializeToString()
    data, model = opened(), vt.Model(tree, output="yes", name="riches")
    pane = vt.release(data, model, epsilon=4.0, parts=PARTS)
    return Made(data, model, onnx, pane, pane.to_bytes())
