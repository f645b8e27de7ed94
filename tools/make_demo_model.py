"""Make what `vitrail serve --demo` shows: census rows, their declaration, and a small ONNX model of the other half.

Run once, by hand; what it writes is committed, in src/vitrail/serve/demo. The rows are shuffled: the model is trained on
one half and the other half is the demo's "private" one. Needs the extra ``test`` (pandas, scikit-learn, skl2onnx).
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingClassifier

from vitrail.cli.app import app
from vitrail.desk.declaration import read_declaration

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "examples" / "data"
DEMO = ROOT / "src" / "vitrail" / "serve" / "demo"
N_PRIVATE = 15_000
BUDGET = 3


def main() -> None:
    DEMO.mkdir(exist_ok=True)
    table = pq.read_table(DATA / "adult.parquet")
    order = np.random.default_rng(0).permutation(table.num_rows)
    private, training = table.take(pa.array(order[:N_PRIVATE])), table.take(pa.array(order[N_PRIVATE:])).to_pandas()
    pq.write_table(private.replace_schema_metadata(), DEMO / "census.parquet", compression="zstd", compression_level=19)

    declaration = DEMO / "census.toml"
    declaration.unlink(missing_ok=True)
    words = ["init", str(DEMO / "census.parquet"), "--codebook", str(DATA / "adult.codebook.md"), "--target", "income"]
    words += ["--rows", str(N_PRIVATE), "--budget", str(BUDGET), "--name", "census", "-o", str(declaration), "--no-ask"]
    with redirect_stdout(StringIO()):
        app(words, standalone_mode=False)
    rows = DEMO / "census.parquet"
    text = declaration.read_text(encoding="utf-8").replace(f'source = "{rows}"', f'source = "{rows.name}"')
    declaration.write_text(text, encoding="utf-8")

    schema = read_declaration(declaration).schema.without("income")
    features, _ = schema.features(schema.read(pd.DataFrame(training.drop(columns="income"))))
    model = GradientBoostingClassifier(n_estimators=60, max_depth=4, min_samples_leaf=20, random_state=0)
    model.fit(features.astype(np.float32), training["income"].astype(str))
    exported = to_onnx(model, features[:1].astype(np.float32), options={"zipmap": False})
    (DEMO / "income.onnx").write_bytes(exported.SerializeToString())
    for file in sorted(DEMO.iterdir()):
        print(f"{file.name:16} {file.stat().st_size / 1024:8.1f} KiB")


if __name__ == "__main__":
    main()
