"""The tests of the live page's own code: ``npm test`` in web/, run once however many tests ask."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[2] / "web"
NOT_TESTED = "THE LIVE PAGE IS NOT TESTED: node or web/node_modules is missing; run 'npm ci' in web/"


@dataclass(frozen=True)
class Ran:
    """How it ended, what was printed, and what tests wrote to the file that ``GOLDEN_MAX_DIFF`` names."""

    code: int
    printed: str
    largest: str


def npm_test() -> Ran:
    """The run of all tests in web/tests; skips where there is no node."""
    npm = shutil.which("npm")
    if npm is None or not (WEB / "node_modules").is_dir():
        pytest.skip(NOT_TESTED)
    return _ran(npm)


@cache
def _ran(npm: str) -> Ran:
    with tempfile.TemporaryDirectory() as folder:
        largest = Path(folder) / "largest.json"
        env = {**os.environ, "GOLDEN_MAX_DIFF": str(largest)}
        ran = subprocess.run([npm, "test"], cwd=WEB, env=env, capture_output=True, text=True, timeout=600, check=False)
        return Ran(ran.returncode, ran.stdout + ran.stderr, largest.read_text() if largest.exists() else "")
