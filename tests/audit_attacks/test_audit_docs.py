"""The page on audits runs as it stands; the audit benchmark's pieces do what they say."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_code_of_the_page_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "audit.md").read_text(), re.DOTALL)
    assert len(blocks) == 9
    (tmp_path / "page.py").write_text("import torch\ntorch.set_num_threads(1)\n" + "\n".join(blocks))
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "claim refuted, tightness 1.9" in done.stdout
    assert "H-orthogonal: 60 of 60" in done.stdout
    assert "strongly connected components" in done.stdout
    assert "a surrogate agrees with the model" in done.stdout
    assert "explanations give the column away" in done.stdout
    assert "claim not refuted, tightness 0." in done.stdout
    assert "<h1>Membership audit" in (tmp_path / "audit.html").read_text()
