"""Requests made up from the API's own description: none of them ends in a server error, or in something undescribed.

Schemathesis makes them, with the names of things that are there as well as names of nothing. The seed is fixed: the requests
are the same in every run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from serve_setup import POINT, finished, listening, person, serving, write_house
from vitrail.serve.access.gate import Gate
from vitrail.serve.web.app import create_app

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
REFUSED = ("DELETE /v1/tokens/{token_id}",)
"""Would take our own token away."""


def test_made_up_requests_end_in_no_server_error(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "schemathesis"
    assert program.exists() or shutil.which("schemathesis"), "schemathesis is part of the extra 'test'"
    with serving(write_house(tmp_path, epsilon=40.0)) as service:
        gate = Gate(service.house, service.ledger.database)
        owner = person("owner")
        asked = {"explainer": "pane", "model": "score", "epsilon": 1.0, "options": {"parts": ["rows"]}}
        pane = finished(service, owner, service.submit(owner, "staff", asked).id)
        app = create_app(service, gate=gate)
        described = app.openapi()
        known = {"dataset": "staff", "job_id": pane.id, "pane_id": pane.id, "model": "score", "person": "alice"}
        for methods in described["paths"].values():
            for operation in methods.values():
                for parameter in operation.get("parameters", ()):
                    if parameter["name"] in known:
                        parameter["schema"] = {"type": "string", "enum": [known[parameter["name"]], "none"]}
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                for example in body.get("examples", {}).values():
                    example["value"] |= {"model": "score"} if "model" in example["value"] else {}
                    example["value"] |= {"points": [POINT]} if "points" in example["value"] else {}
        (tmp_path / "openapi.json").write_text(json.dumps(described))
        with listening(app) as url:
            arguments = ["--url", url, "-H", f"Authorization: Bearer {gate.tokens.issue('owner')[1]}", "--checks", CHECKS]
            arguments += ["--phases", "examples,fuzzing", "-n", "12", "--seed", "19", "--generation-database", "none"]
            for path in REFUSED:
                arguments += ["--exclude-name", path]
            command = [str(program), "run", str(tmp_path / "openapi.json"), *arguments]
            run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
            assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
            assert " passed" in run.stdout
        assert service.verify(owner)["ok"] is True
