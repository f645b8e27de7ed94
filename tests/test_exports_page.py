"""The page about other programs: its Python runs as it stands, and so do its commands."""

import re
import shlex

import mlflow
import numpy as np
import pandas as pd
import polars
import pytest

import vitrail as vt
from benchmark_scripts import ROOT
from command_line import vitrail

PAGE = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the page speaks of, in an empty folder: data with a ledger, a pane, people."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    rows = {"age": draw.uniform(0, 100, 3000), "smoker": draw.choice(["no", "yes"], 3000)}
    budget = vt.Budget(2, 1e-6)
    data = vt.PrivateData(rows, SCHEMA, name="adult", n_rows_public=3000, budget=budget, ledger="sqlite:///ledger.db")
    model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0], range=(0, 1), name="risk")
    pane = vt.release(data, model, epsilon=1.0)
    pane.save("adult.pane")
    people = pd.DataFrame({"age": [30.0, 70.0], "smoker": ["no", "yes"]})
    return {"data": data, "pane": pane, "people": people, "vt": vt, "mlflow": mlflow, "polars": polars}


def test_python_of_the_page_runs(names, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "exports.md", "exec"), names)
    assert {path.name for path in tmp_path.iterdir()} >= {"label.html", "rows.parquet", "reasons"}
    assert names["events"].epsilon == pytest.approx(1.0, rel=1e-6)


def test_commands_of_the_page_run(names, tmp_path, monkeypatch, capsys):
    commands = [shlex.split(line, comments=True)[1:] for line in PAGE.splitlines() if line.startswith("    vitrail ")]
    assert len(commands) == 6
    for words in sorted(commands, key=lambda words: words[0] != "rows"):  # a label describes them
        assert vitrail(monkeypatch, capsys, *words).code == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"events.json", "charges.csv", "label.jsonld", "rows.csv"}
