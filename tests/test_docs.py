"""The code in the README and the tutorials, and the commands of the second one, run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

TUTORIAL_SETTING = """
import pyarrow.parquet as pq
from sklearn.tree import DecisionTreeClassifier
people = pq.read_table("examples/data/adult.parquet", columns=["age", "hours-per-week", "sex", "income"])
pq.write_table(people, "people.parquet")
public = people.slice(0, 500).to_pandas()   # for the reader of this test only: a model that somebody else trained
tree = DecisionTreeClassifier(max_depth=3, random_state=0)
forest = tree.fit(public[["age", "hours-per-week"]], public["income"] == ">50K")
"""


def python_blocks(page: Path) -> str:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks, f"{page.name} shows no Python"
    return "\n".join(blocks)


@pytest.mark.parametrize(("page", "before"), [("README.md", ""), ("docs/tutorial.md", TUTORIAL_SETTING)])
def test_code_in_the_docs_runs(page: str, before: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = tmp_path / "page.py"
    script.write_text(before + python_blocks(ROOT / page))
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ledger.db").is_file()
    assert (tmp_path / "marginals.png").stat().st_size > 10_000


PANE_SETTING = """
import pandas as pd
from skl2onnx import to_onnx
from sklearn.tree import DecisionTreeClassifier
columns = ["age", "education-num", "hours-per-week", "sex"]
people = pd.read_parquet("examples/data/adult.parquet")[[*columns, "income"]]
people.to_csv("people.csv", index=False)
public = people[columns].head(3000).assign(sex=lambda rows: (rows["sex"] == "Male").astype(float)).to_numpy("float32")
tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(public, people["income"].head(3000) == ">50K")
with open("model.onnx", "wb") as file:
    file.write(to_onnx(tree, public[:1], options={"zipmap": False}).SerializeToString())
"""


def test_from_a_csv_to_a_page(tmp_path: Path) -> None:
    """Python blocks in one process, and the commands between them, in the order of the page."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"```(python|bash)\n(.*?)```", (ROOT / "docs" / "tutorial_pane.md").read_text(), re.DOTALL)
    steps = [PANE_SETTING]
    for kind, text in blocks:
        command = f"import subprocess; subprocess.run(['bash', '-e', '-c', {text!r}], check=True)"
        steps.append(text if kind == "python" else command)
    assert {kind for kind, _ in blocks} == {"python", "bash"}
    (tmp_path / "page.py").write_text("\n".join(steps))
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env={**os.environ, "PATH": beside},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Privacy label" in (tmp_path / "person.html").read_text(encoding="utf-8")
    assert "What matters most" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_every_result_named_in_the_docs_comes_from_a_file(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import make_docs_tables
    finally:
        sys.path.pop(0)
    assert (ROOT / "docs" / "benchmarks.md").read_text() == make_docs_tables.vault_page()
