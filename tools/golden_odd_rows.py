"""The second pane of the golden vectors: what a census has not. Written by tools/make_golden.py.

Codes, a date, a declared group; two columns that say the same, so that strata repeat each other; a level that one row has;
a clip that took more from real rows; means over more rows than were kept of what was bought. Rows and reasons are changed
after they were released, so the pane is about nobody.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType
from sklearn.ensemble import GradientBoostingClassifier

import vitrail as vt
from vitrail._types import Floats
from vitrail.live.prepared import prepared
from vitrail.pane import Pane
from vitrail.results import codec
from vitrail.results.archive import digest, pack

N_ROWS, BACKGROUND, STORED = 3_000, 1_500, 2_048
SIZES = (256, 1_024, BACKGROUND)
ROOMS = ("one", "two", "three")
SCHEMA = vt.Schema(
    {
        "debt": vt.Numeric(0, 50, missing=-9, codes=(-9, -8)),
        "rooms": vt.Categorical([1, 2, 3]),
        "rooms in words": vt.Categorical(list(ROOMS)),
        "age": vt.Numeric(18, 80, integer=True),
        "since": vt.Numeric(10_957, 20_088, date=True),
        "region": vt.Categorical(["north", "south", "east", "west", "moon"]),
    },
    rules=[vt.Group("home", ["rooms", "rooms in words"])],
)


def people(schema: vt.Schema, rows: Floats) -> list[dict[str, Any]]:
    """A code, the ends of numbers, and the rare level."""
    raw = rows[:4].copy()
    raw[0, 0], raw[1, 0], raw[2, 0] = -8, 0, 50
    raw[3, 5] = 4
    frame = schema.frame(raw)
    return [
        {name: values[i].item() if isinstance(values[i], np.generic) else values[i] for name, values in frame.items()}
        for i in range(len(raw))
    ]


def model_of(folder: Path) -> vt.Model:
    """Takes values: original units, and level indices."""
    return vt.Model(folder / "odd.onnx", output=1, inputs="values", name="boosting of values")


def make(folder: Path) -> None:
    """Write the pane, the model, the people and what is prepared."""
    generator = np.random.default_rng(0)
    rooms = generator.integers(0, 3, N_ROWS)
    raw = np.stack(
        [
            np.where(
                generator.random(N_ROWS) < 0.2, generator.choice([-9.0, -8.0], N_ROWS), generator.uniform(0, 50, N_ROWS)
            ),
            rooms,
            rooms,
            generator.integers(18, 81, N_ROWS),
            generator.integers(10_957, 20_089, N_ROWS),
            generator.integers(0, 4, N_ROWS),
        ],
        axis=1,
    ).astype(np.float64)
    wanted = raw[:, 0] / 50 + (raw[:, 1] == 2) + raw[:, 3] / 80 * (raw[:, 5] == 1) + generator.normal(0, 0.3, N_ROWS) > 1.2
    fitted = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(raw, wanted)
    inputs = [("values", FloatTensorType([None, raw.shape[1]]))]
    graph = convert_sklearn(fitted, initial_types=inputs, options={"zipmap": False}, target_opset=17)
    (folder / "odd.onnx").write_bytes(graph.SerializeToString())
    budget, model = vt.Budget(3.0, 1e-6), model_of(folder)
    data = vt.PrivateData(SCHEMA.frame(raw), SCHEMA, name="odd", n_rows_public=N_ROWS, budget=budget, ledger="memory")
    (folder / "odd.pane").write_bytes(_changed(vt.release(data, model, epsilon=3.0, parts=["rows", "reasons"])))
    pane, model = read(folder)
    (folder / "odd.prepared").write_bytes(prepared(pane, model, background=BACKGROUND))
    given = people(pane.schema, pane.private_rows.sampled)
    (folder / "odd_people.json").write_text(json.dumps(given, indent=1) + "\n", encoding="ascii")


def _changed(pane: Pane) -> bytes:
    """The pane with rows and reasons that are hard to work with, and fewer rows."""
    rows, reasons = pane.private_rows, pane.mean_reasons
    sampled = rows.sampled[:STORED].copy()
    sampled[:, 2] = sampled[:, 1]
    sampled[sampled[:, 5] == 4, 5] = 0
    sampled[5, 5] = 4
    outputs = pane.model.predict_points(pane.schema, sampled[: len(reasons.outputs)]) if pane.model else reasons.outputs
    parts = {
        "rows": rows.storing(sampled, rows.factors),
        "reasons": replace(reasons, excess=5 * reasons.excess_std, outputs=outputs),
    }
    fields: Any = json.loads(json.dumps(dict(pane.manifest.fields)))
    files: dict[str, bytes] = {}
    for name, part in parts.items():
        files |= {f"{name}/{file}": content for file, content in codec.to_files(part).items()}
        fields["parts"][name]["files"] = {file: digest(files[file]) for file in files if file.startswith(f"{name}/")}
    return pack(fields, files)


def read(folder: Path) -> tuple[Pane, vt.Model]:
    """The committed pane and its model."""
    model = model_of(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Pane.load(folder / "odd.pane", model=model), model
