"""Those who run a service: health, metrics and logs that tell nothing of rows; backups that hold."""

import json
import logging
import os
import sqlite3
from contextlib import closing

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

import postgresql_server
import serve_setup
from ledger_setup import BUDGET, problems_after
from ledger_setup import ask as charge
from vitrail.errors import InvalidInput, LedgerError, Unanswered
from vitrail.ledger import SqlLedger, open_ledger
from vitrail.nothing_escapes import hushed
from vitrail.serve.access.tokens import Tokens
from vitrail.serve.operation import backup, health, logs, metrics, migrate
from vitrail.serve.problems import TITLES
from vitrail.serve.web.app import create_app

QUESTION = {"explainer": "marginals", "epsilon": 0.5}


@pytest.fixture
def service(tmp_path):
    with serve_setup.serving(serve_setup.write_house(tmp_path)) as service:
        yield service


def ask(service, question=QUESTION):
    alice = serve_setup.person("alice")
    return serve_setup.finished(service, alice, service.submit(alice, "staff", question).id)


def values(text, name):
    """The samples of a metric, by their labels."""
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            if sample.name == name:
                found[tuple(sample.labels.values())] = sample.value
    return found


# --- logs ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def written():
    """A log, and what was written to it so far."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    log = logs.Log(writer)

    def lines():
        try:
            return [json.loads(line) for line in os.read(reader, 1 << 16).decode().splitlines()]
        except BlockingIOError:
            return []

    yield log, lines
    log.close()
    os.close(reader)
    os.close(writer)


def test_a_log_speaks_while_the_process_is_silent(written, capfd):
    log, lines = written

    def rows_in_hand():
        os.write(2, b"a private row")
        logging.getLogger("a library").error("a private row")
        log.write("asked", person="alice", dataset="staff")

    hushed(rows_in_hand)
    assert [(line["event"], line["person"]) for line in lines()] == [("asked", "alice")]
    assert "private" not in capfd.readouterr().err


def test_a_log_on_standard_error_goes_on_there(capfd):
    log = logs.Log()
    hushed(lambda: log.write("asked", job="j1"))
    log.close()
    log.write("asked", job="j2")  # dropped: the service has ended
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["job"] == "j1"


@pytest.mark.parametrize(
    "fields", [{"age": 41}, {"row": "Smith"}, {"seconds": 1.25}, {"dataset": ["staff"]}, {"kind": ValueError("Smith")}]
)
def test_a_field_that_is_not_in_the_list_is_refused(written, fields):
    log, lines = written
    with pytest.raises(InvalidInput, match=r"not in its list|give a plain value"):
        log.write("asked", **fields)
    assert lines() == []


def test_of_errors_ours_have_a_sentence_and_others_a_kind(written):
    log, lines = written
    log.failed("job", LedgerError("The ledger is away."), job="j1")
    log.failed("job", KeyError("Mr Smith, 41"))
    log.failed("job", type("Mr Smith", (ValueError,), {})("41"))
    ours, theirs, invented = lines()
    assert (ours["kind"], ours["sentence"]) == ("LedgerError", "The ledger is away.")
    assert theirs["kind"] == "KeyError"
    assert invented["kind"] == "an error"
    assert "Smith" not in json.dumps([theirs, invented])
    assert "41" not in json.dumps([theirs["kind"], invented["kind"]])


def test_what_libraries_log_loses_its_words(written):
    log, lines = written
    root = logging.getLogger()
    before, level = root.handlers, root.level
    try:
        log.take_over()
        try:
            raise ValueError("Mr Smith")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("in the row of Mr Smith")
        logging.getLogger("uvicorn.access").info("GET /v1/jobs?name=Smith")
        found = lines()
    finally:
        root.handlers, root.level = before, level
    assert [(line["logger"], line["kind"], line["level"]) for line in found] == [("uvicorn.error", "ValueError", "error")]
    assert "Smith" not in json.dumps(found)


def test_control_characters_do_not_make_a_second_line(written):
    log, lines = written
    log.write("asked", dataset='x\n{"event": "approved"}\x1b[2J')
    (line,) = lines()
    assert line["event"] == "asked"
    assert "\x1b" not in line["dataset"]


# --- metrics -------------------------------------------------------------------------------------------------------------


def test_metrics_tell_budgets_and_jobs(service):
    measured = metrics.Metrics()
    before = measured.text(service)
    assert values(before, "vitrail_budget_epsilon") == {("staff",): 20.0}
    assert values(before, "vitrail_spent_epsilon") == {("staff",): 0.0}
    assert ask(service).state == "done"
    after = measured.text(service)
    statement = service.ledger.statement("staff")
    assert values(after, "vitrail_spent_epsilon") == {("staff",): statement.spent_epsilon}
    assert values(after, "vitrail_remaining_epsilon") == {("staff",): statement.remaining_epsilon}
    assert values(after, "vitrail_jobs")[("ended",)] == 1


def test_answered_and_failed_are_one_number(service):
    """Whether a model failed on some row must not be read off a counter."""
    job = ask(service)
    measured, told = metrics.Metrics(), []
    for state in ("done", "failed"):
        service.store.change(job.id, only_from=["done", "failed"], state=state)
        told.append(measured.text(service))
    assert told[0] == told[1]
    assert values(told[0], "vitrail_jobs")[("ended",)] == 1


def test_no_counter_tells_an_answer_from_a_failure():
    def counted(*outcome):
        measured = metrics.Metrics()
        measured.request("/v1/jobs/{job_id}/result", *outcome, seconds=3.0)
        return [line for line in measured.text().decode().splitlines() if "_created" not in line]

    row_failed = TITLES["unanswered"][0]
    assert counted(200) == counted(row_failed, "unanswered") == counted(500, "unexpected")
    assert counted(402, "budget-exceeded") != counted(200)  # prices decide that, and no row


def test_free_routes_are_timed_and_others_are_not():
    measured = metrics.Metrics()
    for route in ("/v1/datasets/{dataset}/budget", "/v1/datasets/{dataset}/explanations", "/v1/jobs/{job_id}", "none"):
        measured.request(route, 200, None, 0.25)
    timed = values(measured.text(), "vitrail_free_request_seconds_sum")
    assert timed == {("/v1/datasets/{dataset}/budget",): 0.25}
    assert len(values(measured.text(), "vitrail_requests_total")) == 4


def test_every_free_route_is_a_route(service):
    app = create_app(service)
    known = {metrics.re.sub(r"\{[^}]*\}", "{}", route.path) for route in app.routes}
    assert known >= metrics.FREE_ROUTES
    assert not any("explanations" in route or "jobs" in route or "panes" in route for route in metrics.FREE_ROUTES)


def test_two_services_of_a_process_count_apart():
    first, second = metrics.Metrics(), metrics.Metrics()
    first.request("/v1/me", 200)
    assert values(second.text(), "vitrail_requests_total") == {}


# --- over HTTP -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(service):
    app = create_app(service)
    tokens = Tokens(service.ledger.database, service.house)
    with TestClient(app) as client:
        bearers = {name: {"Authorization": f"Bearer {tokens.issue(name)[1]}"} for name in serve_setup.PEOPLE}
        yield client, bearers


def test_metrics_are_for_owner_and_auditors(client):
    asked, bearers = client
    assert asked.get("/metrics").status_code == 401
    allowed = {name: asked.get("/metrics", headers=bearer).status_code for name, bearer in bearers.items()}
    assert allowed == {"owner": 200, "audrey": 200, "alice": 403, "bob": 403, "rita": 403}
    told = asked.get("/metrics", headers=bearers["audrey"])
    assert told.headers["content-type"].startswith("text/plain")
    counted = values(told.content, "vitrail_requests_total")
    assert counted[("/metrics", "4xx")] == 4
    assert values(told.content, "vitrail_refusals_total")[("forbidden",)] == 3


def test_health_is_told_to_everybody(client):
    asked, _ = client
    assert asked.get("/healthz").json() == {"status": "ok"}
    ready = asked.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["checks"] == {"ledger": True, "tables": True, "lanes": True}


def test_a_service_that_cannot_answer_is_not_ready(service):
    assert health.readyz(service)[1] == 200
    with service.ledger.database.transaction(read_only=False) as connection:
        connection.exec_driver_sql(f"DELETE FROM {migrate.VERSION_TABLE}")
    told, status = health.readyz(service)
    assert (status, told["checks"]) == (503, {"ledger": True, "tables": False, "lanes": True})
    migrate.upgrade(service.ledger.database)
    service.stop()
    assert health.readyz(service)[0]["checks"]["lanes"] is False
    service.ledger.close()
    told, status = health.readyz(service)
    assert (status, told["status"], told["checks"]["ledger"]) == (503, "not ready", False)


# --- backups -------------------------------------------------------------------------------------------------------------


def test_a_backup_holds_the_bill_the_answers_and_the_heads(service, tmp_path):
    job = ask(service)
    made = backup.back_up(service.ledger, tmp_path / "monday")
    with closing(SqlLedger(made.copy, must_exist=True)) as copy:
        assert copy.verify(backup.read_heads(made.heads)).ok
        assert migrate.revision(copy.database) == migrate.head()
    with closing(sqlite3.connect(made.copy)) as connection:
        assert connection.execute("SELECT state FROM vitrail_serve_jobs WHERE id = ?", [job.id]).fetchone() == ("done",)
    facts = json.loads(made.heads.read_text())["accounts"]["staff"]
    statement = service.ledger.statement("staff")
    assert (facts["head"], facts["entries"]) == (statement.head, statement.n_entries)
    assert facts["time"].count(":") == 2  # the minute, and the zone: no second
    assert f"--head staff={statement.head}" in made.verify_command
    ask(service, QUESTION | {"epsilon": 0.7})
    assert service.ledger.verify(backup.read_heads(made.heads)).ok  # history goes on from there


def test_of_a_ledger_in_postgresql_the_heads_are_written_alone(tmp_path):
    if (why := postgresql_server.missing()) is not None:
        pytest.skip(why)
    with postgresql_server.running() as address, closing(open_ledger(address)) as ledger:
        ledger.open_account("adult", BUDGET, "add-remove")
        charge(ledger, 0.2)
        migrate.upgrade(ledger.database)
        made = backup.back_up(ledger, tmp_path / "monday")
        assert made.copy is None
        assert [file.name for file in (tmp_path / "monday").iterdir()] == ["heads.json"]
        assert backup.read_heads(made.heads) == {"adult": ledger.statement("adult").head}
        charge(ledger, 0.1)
        assert ledger.verify(backup.read_heads(made.heads)).ok


def test_a_rewritten_history_does_not_pass_through_the_heads(service, tmp_path):
    ask(service)
    heads = backup.read_heads(backup.back_up(service.ledger, tmp_path / "monday").heads)
    with closing(open_ledger(tmp_path / "other.db")) as other:
        other.open_account("staff", service.house.datasets["staff"].declaration.budget, "add-remove")
        assert other.verify().problems != other.verify(heads).problems


def test_an_earlier_backup_is_not_replaced_unasked(service, tmp_path):
    backup.back_up(service.ledger, tmp_path / "monday")
    with pytest.raises(InvalidInput, match="there already"):
        backup.back_up(service.ledger, tmp_path / "monday")
    assert backup.back_up(service.ledger, tmp_path / "monday", overwrite=True).copy.exists()


def test_a_ledger_that_does_not_hold_has_no_heads(service, tmp_path):
    ask(service)
    path = tmp_path / "ledger.db"
    assert problems_after(path, "UPDATE vitrail_entries SET record = '{}' WHERE seq = 2")
    with pytest.raises(LedgerError, match="does not hold"):
        backup.back_up(service.ledger, tmp_path / "monday")
    assert not (tmp_path / "monday" / "heads.json").exists()


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": "vitrail-heads/9", "accounts": {}}', '{"format": "vitrail-heads/1"}']
)
def test_a_file_without_heads_is_refused(tmp_path, text):
    (tmp_path / "heads.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"heads\.json"):
        backup.read_heads(tmp_path / "heads.json")


def test_unanswered_is_what_rows_may_cause():
    """The list of codes that are not counted follows ``Problem.of``."""
    from vitrail.serve.problems import Problem

    assert {Problem.of(Unanswered("x")).code, Problem.of(KeyError("x")).code} == metrics.TOLD_BY_ROWS
