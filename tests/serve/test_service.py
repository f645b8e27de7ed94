"""The service without the web: questions, jobs, who may see what, approvals, panes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vitrail as vt
from serve_setup import POINT, SHAPLEY, finished, person, serving, spent, write_house
from vitrail.errors import InvalidInput, LedgerError
from vitrail.serve import jobs, kinds
from vitrail.serve.problems import Problem
from vitrail.serve.service import Service
from vitrail.serve.store import Job
from vitrail.serve.turns import Turns


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(write_house(tmp_path)) as made:
        yield made


def test_a_question_is_answered_once_and_again_for_nothing(service: Service) -> None:
    alice = person("alice")
    job = finished(service, alice, service.submit(alice, "staff", SHAPLEY).id)
    assert (job.state, job.content_kind) == ("done", "vitrail-attribution/2")
    paid = spent(service)
    assert paid == pytest.approx(0.5)
    assert service.submit(alice, "staff", SHAPLEY).id == job.id
    assert spent(service) == paid
    found = kinds.read_result(*service.result(alice, job.id))
    assert isinstance(found, vt.Attribution)
    assert b"<html" in service.page(alice, job.id)
    assert json.loads(json.dumps(service.result_json(alice, job.id)))["format"] == "vitrail-attribution/2"


def test_the_same_question_of_two_people_is_two_jobs_and_one_charge(service: Service) -> None:
    first, second = (service.submit(person(name), "staff", SHAPLEY) for name in ("alice", "bob"))
    assert first.id != second.id
    kept = [finished(service, person(name), job.id) for name, job in (("alice", first), ("bob", second))]
    assert kept[0].content_sha256 == kept[1].content_sha256
    assert spent(service) == pytest.approx(0.5)


def test_nobody_sees_the_answers_of_others(service: Service) -> None:
    job = finished(service, person("alice"), service.submit(person("alice"), "staff", SHAPLEY).id)
    for name in ("bob", "rita", "audrey"):
        for look in (service.job, service.result, service.page):
            with pytest.raises(Problem, match="no job"):
                look(person(name), job.id)
        assert service.jobs(person(name)) == []
    assert service.job(person("owner"), job.id).state == "done"


def test_what_does_not_fit_is_refused_and_nothing_is_charged(service: Service) -> None:
    alice, dear = person("alice"), {**SHAPLEY, "epsilon": 21.0}
    job = finished(service, alice, service.submit(alice, "staff", dear).id)
    assert job.state == "refused"
    problem = json.loads(job.problem)
    assert problem["status"] == 402
    assert 19.9 < problem["remaining_epsilon"] <= 20
    assert spent(service) == 0


def test_a_cap_refuses_and_a_raised_cap_lets_the_same_job_be_done(service: Service) -> None:
    alice, owner = person("alice"), person("owner")
    service.cap(owner, "alice", "staff", 0.2)
    assert finished(service, alice, service.submit(alice, "staff", SHAPLEY).id).state == "refused"
    service.cap(owner, "alice", "staff", 1.0)
    assert finished(service, alice, service.submit(alice, "staff", SHAPLEY).id).state == "done"


def test_whom_a_declaration_gives_nothing_may_not_ask(tmp_path: Path) -> None:
    path = write_house(tmp_path)
    declared = (tmp_path / "staff.toml").read_text()
    (tmp_path / "staff.toml").write_text(declared.replace("[columns.age]", "[analysts]\nalice = 0.5\n[columns.age]"))
    with serving(path) as service:
        assert service.statement(person("alice"), "staff")["yours"]["cap_epsilon"] == 0.5  # type: ignore[index, call-overload]
        for look in (service.submit, service.quote):
            with pytest.raises(Problem, match="gives no epsilon to 'bob'"):
                look(person("bob"), "staff", SHAPLEY)
        assert finished(service, person("alice"), service.submit(person("alice"), "staff", SHAPLEY).id).state == "done"
        assert finished(service, person("owner"), service.submit(person("owner"), "staff", SHAPLEY).id).state == "done"


def test_caps_of_the_files_are_the_first_and_the_owners_stay(tmp_path: Path) -> None:
    path = write_house(tmp_path)
    path.write_text(path.read_text() + "[people.alice.caps]\nstaff = 0.5\n")
    for cap in (0.5, 0.25):
        with serving(path) as service:
            yours: Any = service.statement(person("alice"), "staff")["yours"]
            assert yours["cap_epsilon"] == cap
            service.cap(person("owner"), "alice", "staff", 0.25)


def test_a_quote_is_the_librarys_and_free(service: Service) -> None:
    alice = person("alice")
    quoted = service.quote(alice, "staff", {"explainer": "marginals", "epsilon": 0.5})
    local = vt.MarginalsExplainer(service._data["staff"].for_analyst("alice")).quote(epsilon=0.5)
    assert quoted["half_width"] == local.half_width
    assert quoted["sentence"] == str(local)
    assert spent(service) == 0


def test_histograms_that_were_bought_are_used_by_their_hash(service: Service) -> None:
    alice = person("alice")
    bought = finished(service, alice, service.submit(alice, "staff", {"explainer": "marginals", "epsilon": 0.5}).id)
    ask = {"explainer": "partial-dependence", "model": "score", "epsilon": 0.5}
    ask["options"] = {"marginals": {"sha256": bought.content_sha256}}
    assert finished(service, alice, service.submit(alice, "staff", ask).id).state == "done"
    with pytest.raises(Problem, match="you bought here"):
        service.submit(person("bob"), "staff", ask)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({**SHAPLEY, "model": "other"}, "not approved"),
    ({**SHAPLEY, "points": [{**POINT, "sex": "Mail"}]}, "Mail"),
    ({**SHAPLEY, "points": [{"age": 30}]}, "hours"),
    ({**SHAPLEY, "epsilon": -1}, "epsilon"),
    ({**SHAPLEY, "options": {"clip": "maybe"}}, "clip"),
]


@pytest.mark.parametrize(("request_", "sentence"), WRONG)
def test_what_is_wrong_is_said_before_there_is_a_job(service: Service, request_: dict[str, Any], sentence: str) -> None:
    with pytest.raises((Problem, InvalidInput), match=sentence):
        service.submit(person("alice"), "staff", request_)
    assert service.jobs(person("alice")) == []


def test_a_pane_is_its_analysts_until_it_is_published(service: Service) -> None:
    alice, bob, rita, owner = map(person, ("alice", "bob", "rita", "owner"))
    ask = {"explainer": "pane", "model": "score", "epsilon": 3.0}
    job = finished(service, alice, service.submit(alice, "staff", ask).id)
    assert job.state == "done"
    assert [line.id for line in service.panes(alice)] == [job.id]
    assert service.panes(bob) == service.panes(rita) == []
    with pytest.raises(Problem, match="no pane"):
        service.pane(rita, job.id)
    service.publish(owner, job.id, published=True)
    assert service.pane(rita, job.id) == service.pane(alice, job.id)
    found = json.loads(service.explain_from_pane(rita, job.id, POINT, n_rows=64))
    assert found["format"] == "vitrail-attribution/2"
    assert b"Privacy label" in service.person_page(rita, job.id, POINT)
    assert b"<html" in service.pane_page(rita, job.id)
    with pytest.raises(Problem, match="no pane"):
        service.pane(person("audrey"), job.id)
    service.publish(owner, job.id, published=False)
    assert service.panes(rita) == []


def test_panes_of_one_second_are_listed_newest_first(tmp_path: Path) -> None:
    with serving(write_house(tmp_path), started=False) as service:
        wanted = [f"{n * 7 % 5}" * 32 for n in range(5)]  # names tell nothing about the order
        for place, name in enumerate(wanted):
            job = Job(name, "alice", "staff", "pane", "{}", "a pane", "running", 1.0, "", 0.0, 1, place, created="noon")
            service.store.add(job)
            service.store.finish(job, "done", finished="noon", kind="a file", content=b"pane", title="a pane")
        assert [line.id for line in service.panes(person("alice"))] == wanted[::-1]


def test_the_bill_shows_analysts_their_own_lines_to_the_minute(service: Service) -> None:
    for name, epsilon in (("alice", 0.3), ("bob", 0.4)):
        job = service.submit(person(name), "staff", {"explainer": "marginals", "epsilon": epsilon})
        finished(service, person(name), job.id)
    assert [line["analyst"] for line in service.bill(person("alice"), "staff")] == ["alice"]
    assert len(str(service.bill(person("alice"), "staff")[0]["time_utc"])) == len("2026-01-01T00:00")
    assert [line["analyst"] for line in service.bill(person("audrey"), "staff")] == ["alice", "bob"]
    assert service.verify(person("audrey"))["ok"] is True
    assert len(service.entries(person("audrey"), "staff")) > 4


def test_a_restart_goes_on_and_charges_nothing_again(tmp_path: Path) -> None:
    path, alice = write_house(tmp_path), person("alice")
    with serving(path, started=False) as service:
        service.start()
        done = finished(service, alice, service.submit(alice, "staff", SHAPLEY).id)
        paid = spent(service)
    with serving(path, started=False) as service:  # it died after the answer was computed, before it was written down
        service.store.change(done.id, only_from=["done"], state="running", content=None, attempts=1)
        service.start()
        again = finished(service, alice, done.id)
        assert (again.state, again.content_sha256) == ("done", done.content_sha256)
        assert spent(service) == paid
        assert service.verify(person("owner"))["ok"] is True


def test_a_job_that_ends_the_process_each_time_waits_for_the_owner(tmp_path: Path) -> None:
    path, alice = write_house(tmp_path), person("alice")
    with serving(path) as service:
        done = finished(service, alice, service.submit(alice, "staff", SHAPLEY).id)
    with serving(path, started=False) as service:
        service.store.change(done.id, only_from=["done"], state="running", content=None, attempts=3)
        service.start()
        stuck = finished(service, alice, done.id)
        assert stuck.state == "waiting"
        assert "3 times" in str(stuck.problem)
        assert service.submit(alice, "staff", SHAPLEY).state == "waiting"
        service.approve(person("owner"), done.id)
        assert finished(service, alice, done.id).state == "done"


def test_a_model_that_is_not_the_approved_file_does_not_start(tmp_path: Path) -> None:
    path = write_house(tmp_path)
    with (tmp_path / "score.onnx").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(InvalidInput, match="not the one that was approved"), serving(path):
        pass


def test_words_of_the_ledger_about_the_owners_files_are_not_passed_on() -> None:
    problem = Problem.of(LedgerError("The ledger /srv/private/ledger.db could not complete a transaction (disk I/O error)."))
    assert (problem.status, problem.code) == (503, "ledger")
    assert "/srv" not in json.dumps(problem.to_json())


def test_the_price_of_a_refused_question_may_be_beyond_any_epsilon(service: Service) -> None:
    """JSON has no infinity: one such job made the list of jobs unreadable, for its owner and for its asker."""
    alice = person("alice")
    job = finished(service, alice, service.submit(alice, "staff", {"explainer": "marginals", "mu": 100}).id)
    assert job.state == "refused"
    listed = json.dumps([one.to_json() for one in service.jobs(alice)], allow_nan=False)
    assert '"requested_epsilon": null' in listed


# --- nothing is lost -----------------------------------------------------------------------------------------------------


def test_a_job_that_is_asked_again_when_it_is_hardly_over_is_done(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the end that is written down and the lane's forgetting it."""
    alice, asked = person("alice"), {**SHAPLEY, "epsilon": 25.0}
    finish, times = service.store.finish, list[str]()

    def again(job: Any, *given: Any, **more: Any) -> None:
        finish(job, *given, **more)
        if not times:
            times.append(service.submit(alice, "staff", asked).state)

    monkeypatch.setattr(service.store, "finish", again)
    job = service.submit(alice, "staff", asked)
    until = time.monotonic() + 30
    while not times or service.job(alice, job.id).state != "refused" or service.is_at_work(job):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert times == ["queued"]


def test_a_job_whose_end_cannot_be_written_down_is_taken_up_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, finish, failed = person("alice"), service.store.finish, list[int]()

    def fails_once(*given: Any, **more: Any) -> None:
        if not failed:
            failed.append(1)
            raise LedgerError("the database is locked")
        finish(*given, **more)

    monkeypatch.setattr(jobs, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(service.store, "finish", fails_once)
    job = finished(service, alice, service.submit(alice, "staff", SHAPLEY).id)
    assert (job.state, job.attempts, failed) == ("done", 2, [1])
    assert spent(service) == pytest.approx(0.5)


def test_nobody_has_more_open_questions_than_a_service_will_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrail.serve.service.MOST_OPEN", 2)
    alice = person("alice")
    with serving(write_house(tmp_path, approve_above=0.3)) as service:
        asked = [{**SHAPLEY, "epsilon": epsilon} for epsilon in (0.5, 0.6, 0.7)]
        assert [service.submit(alice, "staff", one).state for one in asked[:2]] == ["waiting"] * 2
        with pytest.raises(Problem, match="2 of your questions are open"):
            service.submit(alice, "staff", asked[2])
        assert service.submit(alice, "staff", asked[0]).state == "waiting"  # it is there already
        assert service.submit(person("bob"), "staff", asked[2]).state == "waiting"


def test_one_person_has_one_turn_and_others_do_not_wait_for_it() -> None:
    turns, entered = Turns(2, patience=0.05), list[str]()
    with turns.of("alice"):
        with pytest.raises(Problem, match="ask again soon"), turns.of("alice"):
            entered.append("alice")
        with turns.of("bob"):
            entered.append("bob")
            with pytest.raises(Problem, match="ask again soon"), turns.of("rita"):
                entered.append("rita")
    with turns.of("alice"):
        entered.append("alice")
    assert entered == ["bob", "alice"]
