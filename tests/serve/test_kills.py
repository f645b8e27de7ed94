"""A service that is killed at any step of a question goes on with it: nothing lost, nothing free, nothing paid twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="lives are forks")
def test_a_kill_at_any_step_costs_nothing_and_gives_nothing(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
        "VITRAIL_STATE": str(tmp_path / "state"),
    }
    command = [sys.executable, str(TESTS / "serve_kill_driver.py"), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    whole, *cases = (json.loads(line) for line in run.stdout.splitlines())
    assert (whole["state"], whole["questions"], whole["open"]) == ("done", 2, 0)
    assert len(cases) == 18
    for case in cases:
        assert (case["state"], case["same"], case["verified"]) == ("done", True, True), case
        assert (case["spent"], case["questions"], case["open"]) == (whole["spent"], 2, 0), case
        assert case["killed"], case
        if (case["step"], case["after"]) != ("Store.add", False):
            assert case["known"] == 1, case  # what was taken up is known to the next one
