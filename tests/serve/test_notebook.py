"""A notebook that was written for local data runs against a service, in a real kernel, with its first cell exchanged."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from serve_client_setup import listening_house
from serve_setup import write_house

HERE = """
import vitrail as vt
data = vt.open("staff.toml", analyst="alice")
model = vt.Model("score.onnx", name="score", inputs="features")
"""
THERE = """
import vitrail as vt
house = vt.connect("{address}")  # the token is in VITRAIL_TOKEN
data, model = house["staff"], house.model("score")
"""
CELLS = (
    """
    person = {"age": 30, "hours": 40.0, "sex": "Male"}
    explain = vt.Shapley(data, model)
    explain.quote(person, epsilon=0.5).epsilon
    """,
    "explain(person, epsilon=0.5)",
    "report = vt.GlobalReport(data, model, parts=['pdp'])(epsilon=1.0); report",
    "report.pdp['age'](40), report.pdp['age'].half_width, report.guarantee",
    "pane = vt.release(data, model, parts=['rows'], epsilon=1.0); pane.local(person).values.tolist()",
    "data.budget.remaining_epsilon",
)


def shown(folder: Path, sources: Sequence[str]) -> list[dict[str, Any] | None]:
    """What each cell shows in the end, as a notebook keeps it."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(source)) for source in sources])
    nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    kept = [[one["data"] for one in cell.outputs if one["output_type"] == "execute_result"] for cell in notebook.cells]
    return [dict(results[0]) if results else None for results in kept]


def test_a_notebook_runs_against_a_service_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First against the service, then against the rows with the same ledger, in which all of it was bought by then."""
    pytest.importorskip("ipykernel")
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(folder, str(tmp_path / folder))
    with listening_house(write_house(tmp_path)) as place:
        monkeypatch.setenv("VITRAIL_TOKEN", place.token("alice"))
        made = shown(tmp_path, [THERE.format(address=place.address), *CELLS, HERE, *CELLS])
    there, here = made[1 : len(CELLS) + 1], made[len(CELLS) + 2 :]
    assert here == there
    assert None not in here
    assert "hours" in here[1]["text/html"]
