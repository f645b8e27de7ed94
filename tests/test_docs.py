"""The code in the README and the tutorial runs as it stands."""

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
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ledger.db").is_file()
    assert (tmp_path / "marginals.png").stat().st_size > 10_000


def test_every_result_named_in_the_docs_comes_from_a_file(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import make_docs_tables
    finally:
        sys.path.pop(0)
    assert (ROOT / "docs" / "benchmarks.md").read_text() == make_docs_tables.vault_page()
