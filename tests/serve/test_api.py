"""The API over a real socket: every route for every role, bodies that are wrong, jobs, events, and what is in the log."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from serve_setup import PEOPLE, POINT, listening, serving, write_house
from vitrail.errors import VitrailError
from vitrail.serve.access.access_log import verify
from vitrail.serve.access.gate import Gate
from vitrail.serve.rules import NOBODY, PUBLIC, Rules
from vitrail.serve.service import Service
from vitrail.serve.web.api import MOST_LISTENERS
from vitrail.serve.web.app import create_app
from vitrail.serve.web.doors import Doors, routes_of

SHAPLEY: dict[str, Any] = {"explainer": "shapley", "model": "score", "points": [POINT], "epsilon": 0.1}


@dataclass
class House:
    """A running service, and a token for everybody."""

    url: str
    app: Any
    service: Service
    secrets: dict[str, str]

    def call(self, who: str | None, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes, Any]:
        host = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=60)
        sent = dict(headers)
        if who is not None:
            sent["Authorization"] = f"Bearer {self.secrets[who]}"
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def json(self, who: str, method: str, path: str, body: object = None) -> Any:
        status, content, _ = self.call(who, method, path, body)
        assert status < 300, content
        return json.loads(content)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("house")
    path = write_house(folder, names=("staff", "other"), approve_above=2.0)
    with serving(path, started=False) as service:
        gate = Gate(service.house, service.ledger.database)
        secrets = {name: gate.tokens.issue(name)[1] for name in PEOPLE}
        app = create_app(service, gate=gate)
        with listening(app) as url:
            yield House(url, app, service, secrets)


@pytest.fixture(scope="module")
def answered(house: House) -> dict[str, str]:
    """What alice asked and bought: the numbers in the paths below."""
    job = house.json("alice", "POST", "/v1/datasets/staff/explanations", SHAPLEY)
    pane = house.json(
        "alice", "POST", "/v1/datasets/staff/explanations", {"explainer": "pane", "epsilon": 1.0, "model": "score"}
    )
    pane = house.json("alice", "GET", f"/v1/jobs/{pane['id']}?wait=60")
    assert job["state"] == pane["state"] == "done"
    token = house.json("owner", "POST", "/v1/tokens", {"person": "bob"})
    return {"dataset": "staff", "job_id": job["id"], "pane_id": pane["id"], "model": "score", "person": "alice",
            "token_id": token["id"], "name": "none"}  # fmt: skip


def filled(path: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        path = path.replace(f"{{{name}}}", part)
    return path


def test_every_route_is_open_to_the_roles_of_its_rule_and_to_nobody_else(house: House, answered: dict[str, str]) -> None:
    """Generated from the routes: one without a rule makes no application (below), so none is missing here."""
    rules: Rules = house.app.state.rules
    tried = 0
    for method, path, allowed in rules:
        for who, role in [*PEOPLE.items(), (None, NOBODY)]:
            if role in allowed:
                continue
            status, content, headers = house.call(
                who, method, filled(path, answered), {} if method in ("POST", "PUT") else None
            )
            expected = 401 if who is None else 403
            assert status == expected, (method, path, role, content[:200])
            assert headers["Content-Type"].split(";")[0] in ("application/problem+json", "text/html")
            tried += 1
    assert tried > 50


def test_whoever_a_route_is_open_to_is_let_in(house: House, answered: dict[str, str]) -> None:
    for method, path, allowed in house.app.state.rules:
        if method != "GET" or "events" in path:
            continue
        for who, role in PEOPLE.items():
            if role in allowed:
                status, _, _ = house.call(who, method, filled(path, answered))
                assert status not in (401, 403, 500), (path, role)


WHOLE = {
    "GET": ["/v1/tokens", "/v1/access-log", "/v1/access-log/verification", "/metrics", "/people"],
    "POST": ["/v1/tokens"],
    "DELETE": ["/v1/tokens/{token_id}"],
}
"""What is about the whole house, or opens it."""
CHANGES = {
    "POST": ["/v1/tokens", "/v1/jobs/{job_id}/approval", "/v1/panes/{pane_id}/publication",
             "/v1/datasets/{dataset}/explanations"],
    "PUT": ["/v1/people/{person}/caps/{dataset}"],
    "DELETE": ["/v1/tokens/{token_id}", "/v1/panes/{pane_id}/publication"],
}  # fmt: skip
SENT = {
    "/v1/tokens": {"person": "owner"},
    "/v1/jobs/{job_id}/approval": {"approve": True},
    "/v1/datasets/{dataset}/explanations": SHAPLEY,
    "/v1/people/{person}/caps/{dataset}": {"epsilon": 1.0},
}


def test_a_token_of_the_owner_that_is_restricted_makes_none_that_is_not(house: House, answered: dict[str, str]) -> None:
    some = house.json("owner", "POST", "/v1/tokens", {"person": "owner", "datasets": ["staff"]})
    reading = house.json("owner", "POST", "/v1/tokens", {"person": "owner", "may_buy": False})
    house.secrets |= {"some": some["secret"], "reading": reading["secret"]}
    n_tokens = len(house.json("owner", "GET", "/v1/tokens"))
    for who, table in (("some", WHOLE), ("reading", CHANGES)):
        for method, paths in table.items():
            for path in paths:
                status, content, _ = house.call(who, method, filled(path, answered), SENT.get(path))
                assert status == 403, (who, method, path, content[:200])
    assert len(house.json("owner", "GET", "/v1/tokens")) == n_tokens
    for method, paths in CHANGES.items():  # every route that changes something for the owner is in the table
        ruled = {
            path for m, path, roles in house.app.state.rules if m == method and path.startswith("/v1") and "owner" in roles
        }
        reads = {
            path for path in ruled if path.endswith(("/quotes", "/person")) or path == "/v1/panes/{pane_id}/explanations"
        }
        assert set(paths) == ruled - reads, method
    for path in ("/v1/datasets", "/v1/approvals", "/approvals", "/v1/people", "/ledger", "/v1/ledger/verification"):
        assert house.call("some", "GET", path)[0] == 200, path
        assert house.call("reading", "GET", path)[0] == 200, path
    assert "Access log" not in house.call("some", "GET", "/ledger", Accept="text/html")[1].decode()


def test_a_stream_of_events_ends_and_is_asked_for_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens shows a token that may have been revoked meanwhile."""
    monkeypatch.setattr("vitrail.serve.web.api.LONGEST_LISTENING", 0.3)
    token = house.json("owner", "POST", "/v1/tokens", {"person": "alice"})
    house.secrets["once"] = token["secret"]
    job = json.loads(house.call("once", "POST", "/v1/datasets/staff/explanations", {**SHAPLEY, "epsilon": 2.25})[1])
    status, content, _ = house.call("once", "GET", f"/v1/jobs/{job['id']}/events")
    assert (status, content.count(b"event: job")) == (200, 1)
    house.json("owner", "DELETE", f"/v1/tokens/{token['id']}")
    assert house.call("once", "GET", f"/v1/jobs/{job['id']}/events")[0] == 401
    house.json("owner", "POST", f"/v1/jobs/{job['id']}/approval", {"approve": False})


def test_no_role_reaches_anothers_answer(house: House, answered: dict[str, str]) -> None:
    job, pane = answered["job_id"], answered["pane_id"]
    paths = [f"/v1/jobs/{job}", f"/v1/jobs/{job}/result", f"/v1/jobs/{job}/result?as=html", f"/v1/jobs/{job}/events",
             f"/v1/panes/{pane}", f"/v1/panes/{pane}/page"]  # fmt: skip
    for who in ("bob", "rita", "audrey", None):
        for path in paths:
            assert house.call(who, "GET", path)[0] in (401, 403, 404), (who, path)
    for path in paths:
        assert house.call("alice", "GET", path)[0] == 200, path
    for who in ("bob", "rita", "audrey"):
        body = {"point": POINT}
        assert house.call(who, "POST", f"/v1/panes/{pane}/explanations", body)[0] in (403, 404)
    assert house.call("bob", "GET", "/v1/datasets/other")[0] == 404
    assert house.call("bob", "POST", "/v1/datasets/other/explanations", SHAPLEY)[0] == 404
    assert house.call("alice", "GET", "/v1/datasets/other")[0] == 200


def test_a_route_without_a_rule_makes_no_application(house: House) -> None:
    from fastapi import FastAPI

    app, rules = FastAPI(openapi_url=None, docs_url=None, redoc_url=None), Rules()
    Doors(app, rules).route("GET", "/ruled", PUBLIC, lambda: "x")
    app.add_api_route("/forgotten", lambda: "x")
    with pytest.raises(VitrailError, match="no rule says who may call GET /forgotten"):
        Doors(app, rules).check()
    assert {(method, path) for method, path, _ in house.app.state.rules} == set(routes_of(house.app))


def test_a_revoked_token_opens_nothing_from_then_on(house: House) -> None:
    made = house.json("owner", "POST", "/v1/tokens", {"person": "alice", "days": 1, "may_buy": False})
    house.secrets["guest"] = made["secret"]
    assert house.json("guest", "GET", "/v1/me")["may_buy"] is False
    assert house.call("guest", "POST", "/v1/datasets/staff/explanations", SHAPLEY)[0] == 403
    house.json("owner", "DELETE", f"/v1/tokens/{made['id']}")
    assert house.call("guest", "GET", "/v1/me")[0] == 401
    assert made["secret"] not in json.dumps(house.json("owner", "GET", "/v1/tokens"))


BODIES: list[tuple[object, int]] = [
    (b"", 422),
    (b"{", 422),
    (b"[]", 422),
    (b'{"explainer": "marginals", "epsilon": NaN}', 422),
    (b'{"explainer": "marginals", "epsilon": 1, "epsilon": 2}', 422),
    (b"[" * 100_000, 422),
    (b'"' + b"x" * 5_000_000 + b'"', 413),
    ({"explainer": "marginals", "epsilon": 0}, 422),
    ({"explainer": "marginals", "mu": 1e-300}, 422),
    ({**SHAPLEY, "model": "sha256:00"}, 404),
    ({**SHAPLEY, "epsilon": 100}, 402),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_a_body_that_is_wrong_gets_a_sentence(house: House, body: object, expected: int) -> None:
    who = "owner" if expected == 402 else "alice"  # a price that high would wait for the owner
    status, content, headers = house.call(who, "POST", "/v1/datasets/staff/explanations", body)
    said = json.loads(content)
    assert (status, said["status"]) == (expected, expected)
    assert headers["Content-Type"] == "application/problem+json"
    assert "Traceback" not in said["detail"]


def test_a_dear_question_waits_and_the_owner_decides(house: House) -> None:
    status, content, _ = house.call("alice", "POST", "/v1/datasets/staff/explanations", {**SHAPLEY, "epsilon": 2.5})
    job = json.loads(content)
    assert (status, job["state"]) == (202, "waiting")
    assert job["id"] in [one["id"] for one in house.json("owner", "GET", "/v1/approvals")]
    house.json("owner", "POST", f"/v1/jobs/{job['id']}/approval", {"approve": True})
    assert house.json("alice", "GET", f"/v1/jobs/{job['id']}?wait=60")["state"] == "done"
    status, _, _ = house.call("owner", "POST", f"/v1/jobs/{job['id']}/approval", {"approve": True})
    assert status == 409


def test_events_end_with_the_job(house: House, answered: dict[str, str]) -> None:
    status, content, headers = house.call("alice", "GET", f"/v1/jobs/{answered['job_id']}/events")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "text/event-stream")
    *_, last = content.decode().strip().split("\n\n")
    assert last.startswith("event: end\ndata: ")
    assert json.loads(last.partition("data: ")[2])["state"] == "done"


def test_nobody_listens_to_more_jobs_than_a_service_can_tell(house: House) -> None:
    status, content, _ = house.call("alice", "POST", "/v1/datasets/staff/explanations", {**SHAPLEY, "epsilon": 2.75})
    job = json.loads(content)
    assert (status, job["state"]) == (202, "waiting")
    streams = []
    for number in range(MOST_LISTENERS + 1):
        connection = http.client.HTTPConnection(house.url.removeprefix("http://"), timeout=60)
        headers = {"Authorization": f"Bearer {house.secrets['alice']}"}
        connection.request("GET", f"/v1/jobs/{job['id']}/events", headers=headers)
        response = connection.getresponse()
        assert response.status == (429 if number == MOST_LISTENERS else 200)
        if number < MOST_LISTENERS:
            assert response.readline() == b"event: job\n"
        streams.append((connection, response))
    for connection, response in streams:
        response.close()
        connection.close()
    house.json("owner", "POST", f"/v1/jobs/{job['id']}/approval", {"approve": False})


def test_every_answer_has_the_headers_that_keep_a_browser_in(house: House, answered: dict[str, str]) -> None:
    for path in ("/v1/me", "/nowhere", f"/v1/jobs/{answered['job_id']}/result?as=html"):
        headers = house.call("alice", "GET", path)[2]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "sandbox" in headers["Content-Security-Policy"]


def test_the_access_log_has_every_request_and_no_value(house: House, answered: dict[str, str]) -> None:
    house.call(
        "alice", "POST", "/v1/datasets/staff/quotes?secret=unspoken", {**SHAPLEY, "points": [{**POINT, "hours": 77.125}]}
    )
    lines = house.json("audrey", "GET", "/v1/access-log")
    quotes = [line for line in lines if line["route"] == "/v1/datasets/{dataset}/quotes"]
    assert quotes[-1]["person"] == "alice"
    assert quotes[-1]["parameters"] == {"dataset": "staff"}
    text = house.service.house.access_log.read_text()
    assert "unspoken" not in text  # letters and dots, which no digest has
    assert "77.125" not in text
    assert not any(secret in text for secret in house.secrets.values())
    assert verify(house.service.house.access_log).ok
    assert house.json("audrey", "GET", "/v1/access-log/verification")["ok"] is True


def test_the_description_names_every_route_of_the_api_with_examples(house: House) -> None:
    described = json.loads(house.call(None, "GET", "/v1/openapi.json")[1])
    listed = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    ruled = {(m, p) for m, p, _ in house.app.state.rules if p.startswith("/v1/") and p != "/v1/openapi.json"}
    assert {one for one in listed if one[1].startswith("/v1/")} == ruled
    body = described["paths"]["/v1/datasets/{dataset}/explanations"]["post"]["requestBody"]
    examples = body["content"]["application/json"]["examples"]
    assert set(examples) == {one["explainer"] for one in house.json("alice", "GET", "/v1/vocabulary")}
