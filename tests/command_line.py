"""What the tests of the commands share: a call of `vitrail` in this process, census rows with a small ONNX tree, options."""

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from skl2onnx import to_onnx
from sklearn.tree import DecisionTreeClassifier

import vitrail as vt
from vitrail.cli import main

ROOT = Path(__file__).resolve().parents[1]


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def vitrail(monkeypatch, capsys, *words: object, stdin: str = "") -> Ran:
    """Run the command in this process."""
    monkeypatch.setattr(sys, "argv", ["vitrail", *map(str, words)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def census(folder: Path, columns: list[str], n_rows: int, *, never: tuple[str, ...] = (), **tree: int):
    """Write people.parquet, schema.json and model.onnx: census rows, and a tree that predicts who is rich. Returns both."""
    people = pq.read_table(ROOT / "examples/data/adult.parquet", columns=[*columns, "income"]).slice(0, n_rows)
    pq.write_table(people, folder / "people.parquet")
    declared = vt.Schema.load(ROOT / "examples/data/adult.schema.json")
    rules = {name: "never" if name in never else "any" for name in [*columns, "income"]}
    schema = vt.Schema({name: replace(declared[name], change=rule) for name, rule in rules.items()})
    schema.save(folder / "schema.json")
    inputs = schema.without("income")
    features, _ = inputs.features(inputs.read(people))
    is_rich = np.array(people["income"].to_pylist()) == ">50K"
    fitted = DecisionTreeClassifier(random_state=0, **tree).fit(features, is_rich)
    exported = to_onnx(fitted, features[:1].astype(np.float32), options={"zipmap": False})
    (folder / "model.onnx").write_bytes(exported.SerializeToString())
    return people, fitted


def words_of(command: str, options: dict[str, object], changed: dict[str, object]) -> list[object]:
    """A command with its options, some of them changed; None leaves one out."""
    data = changed.pop("data", "people.parquet")
    merged = options | {name.replace("_", "-"): value for name, value in changed.items()}
    given = [(f"--{name}", value) for name, value in merged.items() if value is not None]
    return [command, data, *(word for pair in given for word in pair)]
