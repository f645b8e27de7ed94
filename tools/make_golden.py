"""Golden vectors of the live page: a small pane, two ONNX models, and the numbers that Python finds for eight people.

    python tools/make_golden.py            # writes web/golden/
    python tools/make_golden.py numbers    # keeps its panes and models, and writes the numbers anew

The TypeScript in web/src has to find the same numbers (web/tests/golden.test.ts), and today's Python has to find them again
(tests/live/test_golden.py). Noise is drawn anew whenever this is run, so a new pane has new numbers: run it when the format
or an algorithm has changed, and commit all of the folder together.

Outputs of models, for numbers that must agree to 1e-9, come from two places that both languages share to the last bit:
``formula`` below, and the recorded float32 outputs of the gradient boosting for every hybrid of 256 rows (``outputs.bin``:
by person and row, forward then reverse, step by step).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

import golden_odd_rows
import vitrail as vt
from vitrail._types import Floats
from vitrail.live.prepared import prepared
from vitrail.pane import Pane
from vitrail.pane.person import standing_on
from vitrail.results import Attribution
from vitrail.schema import Categorical, Numeric, Schema
from vitrail.solve.shapley.on_rows import RowValues, balanced_orders, players_of, shapley_on
from vitrail.solve.shapley.real_rows import RealRows

ROOT = Path(__file__).resolve().parent.parent
DATA, GOLDEN = ROOT / "examples" / "data", ROOT / "web" / "golden"
TARGET, CLASS = "income", ">50K"
N_ROWS, EPSILON, TREES = 4_000, 3.0, 100
SIZES = (256, 1_024)
RECORDED = SIZES[0]
SHOWN_ROWS = (0, 1, 17, 255)
"""Rows whose contributions are written one by one."""


# --- making --------------------------------------------------------------------------------------------------------------


def features_graph(schema: Schema, rows: pd.DataFrame) -> bytes:
    """Gradient boosting that takes encoded features."""
    read = schema.without(TARGET)
    features = read.features(read.read(rows))[0].astype(np.float32)
    fitted = GradientBoostingClassifier(n_estimators=TREES, random_state=0).fit(features, rows[TARGET] == CLASS)
    return _exported(fitted, [("features", FloatTensorType([None, read.n_features]))])


def columns_graph(schema: Schema, rows: pd.DataFrame) -> bytes:
    """A pipeline that takes one tensor for each column: numbers, and texts."""
    read = schema.without(TARGET)
    texts = [name for name, column in read.items() if isinstance(column, Categorical)]
    levels = [list(column.levels) for column in read.values() if isinstance(column, Categorical)]
    encoder = ColumnTransformer([("texts", OneHotEncoder(categories=levels), texts)], remainder="passthrough")
    booster = GradientBoostingClassifier(n_estimators=TREES, max_depth=2, random_state=1)
    fitted = Pipeline([("encoder", encoder), ("booster", booster)]).fit(rows[list(read)], rows[TARGET] == CLASS)
    kinds = [(name, StringTensorType([None, 1]) if name in texts else FloatTensorType([None, 1])) for name in read]
    return _exported(fitted, kinds)


def _exported(fitted: object, inputs: list[tuple[str, object]]) -> bytes:
    # A ZipMap gives dictionaries, which browsers' runtimes do not hand out.
    graph = convert_sklearn(fitted, initial_types=inputs, options={"zipmap": False}, target_opset=17)
    content: bytes = graph.SerializeToString()
    return content


def people_of(schema: Schema, rows: Floats) -> list[dict[str, Any]]:
    """Four stored rows, the two corners of the schema, the rarest levels, and a code-like extreme."""
    low, high, filler = schema.probe_rows(3)
    rare = filler.copy()
    for j, column in enumerate(schema.values()):
        if isinstance(column, Categorical):
            rare[j] = np.argmin(np.bincount(rows[:, j].astype(np.intp), minlength=len(column.levels)))
    extreme = rows[3].copy()
    for j, column in enumerate(schema.values()):
        if isinstance(column, Numeric):
            extreme[j] = column.high if j % 2 else column.low
    raw = np.stack([*rows[[2_000, 2_001, 2_002, 0]], low, high, rare, extreme])
    frame = schema.frame(raw)
    return [
        {name: values[i].item() if hasattr(values[i], "item") else values[i] for name, values in frame.items()}
        for i in range(len(raw))
    ]


# --- numbers that both languages have to find ----------------------------------------------------------------------


def formula(features: Floats) -> Floats:
    """A model made of additions, products and one division, in a fixed order: the same bits in every language."""
    total = np.zeros(len(features))
    for k in range(features.shape[1]):
        total = total + (((k * 7) % 11) - 5) / 8 * features[:, k]
        if k:
            total = total + (((k * 3) % 5) - 2) / 4 * (features[:, k] * features[:, k - 1])
    pairs = features[:, 0] * features[:, -1]
    total = total + pairs * features[:, features.shape[1] // 2]
    return np.asarray(0.5 + total / (2 * (1 + np.abs(total))))


def formula_model() -> vt.Model:
    """The formula, as a model."""
    return vt.Model(formula, range=(0, 1), inputs="features", name="formula")


def lists(numbers: Floats) -> Any:
    """An array as JSON holds it."""
    return np.asarray(numbers, dtype=np.float64).tolist()


def of_outputs(pane: Pane, raw: Floats, found: RowValues, n_rows: int, *, own: bool) -> dict[str, Any]:
    """Values, standard errors and the rows' own contributions for one number of rows."""
    rows, about = pane.private_rows, list(players_of(pane.schema).values())
    made: dict[str, Any] = {
        "values": lists(found.values),
        "base": found.base,
        "outputs": lists(found.outputs),
        "per_row": lists(found.per_row[:, list(SHOWN_ROWS)]),
        "standard_errors": lists(rows.standard_errors(found.per_row, about)),
    }
    if own:
        real = RealRows(rows, pane.mean_reasons, about, n_rows)
        correction = real.correction
        made["corrected"] = {
            "taken_off": lists(correction.taken_off),
            "weights": lists(correction.weights),
            "squares": lists(correction.squares),
            "scale": correction.scale,
            "standard_errors": lists(real.standard_errors(found.per_row)),
        }
    return made


def found_on(pane: Pane, model: vt.Model, raw: Floats, n_rows: int) -> RowValues:
    """Shapley values on the first stored rows."""
    return shapley_on(model, pane.schema, raw, np.ascontiguousarray(pane.private_rows.sampled[:n_rows]))


def chain_outputs(pane: Pane, model: vt.Model, raw: Floats, n_rows: int) -> Floats:
    """The model's output for every hybrid, (people, rows, 2, steps), and for people and rows before: float32 numbers."""
    schema, rows = pane.schema, pane.private_rows.sampled[:n_rows]
    players = players_of(schema)
    orders = balanced_orders(n_rows, len(players), seed=0)
    columns = [[schema.column_index(name) for name in group] for group in players.values()]
    hybrids = []
    for person in raw:
        for row, order in zip(rows, orders, strict=True):
            forward, reverse = row.copy(), person.copy()
            steps: tuple[list[Floats], list[Floats]] = [], []
            for player in order[:-1]:
                forward[columns[player]], reverse[columns[player]] = person[columns[player]], row[columns[player]]
                steps[0].append(forward.copy())
                steps[1].append(reverse.copy())
            hybrids.extend([*steps[0], *steps[1]])
    asked = np.concatenate([raw, rows, np.array(hybrids)])
    return model.predict_points(schema, asked, batch=4096)


def attribution_numbers(explanation: Attribution) -> dict[str, Any]:
    """What a page shows of one person."""
    assert explanation.lower is not None
    assert explanation.upper is not None
    judged = explanation._judgements[0]
    return {
        "output": float(explanation.outputs[0]),
        "base": explanation.base_value,
        "values": lists(explanation.values[0]),
        "lower": lists(explanation.lower[0]),
        "upper": lists(explanation.upper[0]),
        "gap": float(explanation.gap[0]) if explanation.gap is not None else None,
        "verdict": judged.verdict.value,
        "verdicts": [verdict.value for verdict in judged.verdicts],
        "certain": list(judged.certain),
        "signal": judged.signal,
        "too_little": explanation.too_little,
        "notes": list(explanation.notes),
        "claim": explanation.band_claim.value,
        "order": [share.column for share in explanation.top(len(explanation.columns))],
    }


def curve_numbers(pane: Pane, person: dict[str, Any]) -> dict[str, Any]:
    """Where somebody stands on each curve."""
    standings = {name: standing_on(curve, person[name]) for name, curve in pane.effects.items()}
    return {name: [standing.output, standing.half_width] for name, standing in standings.items()}


def numbers_of(pane: Pane, models: dict[str, vt.Model], people: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything that is compared, from a pane and models as they are read today."""
    schema = pane.schema
    raw = schema.read_points(list(people))
    recorded = found_on(pane, models["features"], raw, RECORDED)
    return {
        "raw": lists(raw),
        "features": lists(schema.features(raw)[0]),
        "shown_rows": list(SHOWN_ROWS),
        "formula": {str(n): of_outputs(pane, raw, found_on(pane, formula_model(), raw, n), n, own=True) for n in SIZES},
        "recorded": {str(RECORDED): of_outputs(pane, raw, recorded, RECORDED, own=True)},
        "end_to_end": {
            name: {
                str(n): [attribution_numbers(pane.local(person, model=model, bands=True, background=n)) for person in people]
                for n in SIZES
            }
            for name, model in models.items()
        },
        "curves": [curve_numbers(pane, person) for person in people],
    }


def odd_numbers(folder: Path) -> dict[str, Any]:
    """The same of the second pane: by a formula, and through its model."""
    pane, model = golden_odd_rows.read(folder)
    people: list[dict[str, Any]] = json.loads((folder / "odd_people.json").read_text())
    raw, sizes = pane.schema.read_points(people), golden_odd_rows.SIZES
    return {
        "raw": lists(raw),
        "shown_rows": list(SHOWN_ROWS),
        "formula": {str(n): of_outputs(pane, raw, found_on(pane, formula_model(), raw, n), n, own=True) for n in sizes},
        "end_to_end": {
            str(n): [attribution_numbers(pane.local(person, model=model, bands=True, background=n)) for person in people]
            for n in sizes
        },
    }


def read(folder: Path) -> tuple[Pane, dict[str, vt.Model], list[dict[str, Any]]]:
    """The committed pane, its models by name, and the people."""
    models = {
        "features": vt.Model(folder / "features.onnx", output=1, name="boosting of features"),
        "columns": vt.Model(folder / "columns.onnx", output=1, name="boosting of columns"),
    }
    people: list[dict[str, Any]] = json.loads((folder / "people.json").read_text())
    return Pane.load(folder / "golden.pane", model=models["features"]), models, people


def make(folder: Path) -> None:
    """Write the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = Schema.load(DATA / "adult.schema.json")
    rows = pd.read_parquet(DATA / "adult.parquet").sample(frac=1, random_state=0)
    training, private = rows.iloc[:6_000], rows.iloc[6_000 : 6_000 + N_ROWS]
    (folder / "features.onnx").write_bytes(features_graph(schema, training))
    (folder / "columns.onnx").write_bytes(columns_graph(schema, training))
    model = vt.Model(folder / "features.onnx", output=1, name="boosting of features")
    budget = vt.Budget(EPSILON, 1e-6)
    data = vt.PrivateData(
        private, schema, target=TARGET, name="golden", n_rows_public=N_ROWS, budget=budget, ledger="memory"
    )
    pane = vt.release(data, model, epsilon=EPSILON, parts=["rows", "reasons", "pdp"])
    pane.save(folder / "golden.pane")
    people = people_of(pane.schema, pane.private_rows.sampled)
    (folder / "people.json").write_text(json.dumps(people, indent=1) + "\n", encoding="ascii")
    golden_odd_rows.make(folder)
    write_numbers(folder)


def write_numbers(folder: Path) -> None:
    """What Python finds today, from the panes and models in the folder."""
    pane, models, people = read(folder)
    for name, model in models.items():
        (folder / f"{name}.prepared").write_bytes(prepared(pane, model))
    raw = pane.schema.read_points(people)
    chain_outputs(pane, models["features"], raw, RECORDED).astype("<f4").tofile(folder / "outputs.bin")
    for file, numbers in (("numbers.json", numbers_of(pane, models, people)), ("odd_numbers.json", odd_numbers(folder))):
        (folder / file).write_text(json.dumps(numbers, separators=(",", ":"), allow_nan=False) + "\n")


if __name__ == "__main__":
    # "numbers" keeps panes and models, and writes anew what is computed from them.
    write_numbers(GOLDEN) if sys.argv[1:] == ["numbers"] else make(GOLDEN)
