"""The how-to of renewing a pane runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "renew.md"


def test_code_about_renewing_runs(tmp_path):
    """The page itself says what is found: smokers went from 30 to 50 of 100, ages did not change.

    Its noise is fresh. The shift is many times its noise; but that age is flagged too has a chance of up to the level, so
    the level of the page's comparison is made one that chance does not reach.
    """
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    careful = code.replace('vt.Pane.load("patients-2026.pane")\n)', 'vt.Pane.load("patients-2026.pane"), level=1e-8\n)')
    assert careful != code
    (tmp_path / "page.py").write_text(careful)
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "differ by more than noise explains: smoker, histogram" in done.stdout
    assert (tmp_path / "drift.html").is_file()
