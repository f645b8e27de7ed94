"""The service without the web: questions, jobs, who may see what, approvals, panes."""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vitrail as vt
from serve_setup import POINT, finished, onnx_model, person, serving, write_house
from vitrail.errors import InvalidInput, LedgerError
from vitrail.serve import jobs, kinds
from vitrail.serve.jobs import Progress
from vitrail.serve.problems import Problem
from vitrail.serve.service import Service
from vitrail.serve.turns import Turns

SHAPLEY: dict[str, Any] = {"explainer": "shapley", "model": "score", "points": [POINT], "epsilon": 0.5}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(write_house(tmp_path)) as made:
        yield made


def spent(service: Service, name: str = "staff") -> float:
    return float(str(service.statement(person("owner"), name)["spent_epsilon"]))


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


def test_dear_questions_wait_for_the_owner(tmp_path: Path) -> None:
    alice, owner = person("alice"), person("owner")
    with serving(write_house(tmp_path, approve_above=0.3)) as service:
        quoted = service.quote(alice, "staff", SHAPLEY)
        assert quoted["needs_approval"] is True
        job = service.submit(alice, "staff", SHAPLEY)
        assert job.state == "waiting"
        assert spent(service) == 0
        assert [one.id for one in service.approvals(owner)] == [job.id]
        service.decline(owner, job.id, "too dear")
        assert "too dear" in str(service.job(alice, job.id).problem)
        assert service.submit(alice, "staff", SHAPLEY).state == "declined"  # told once
        assert service.submit(alice, "staff", SHAPLEY).state == "waiting"
        service.approve(owner, job.id)
        assert finished(service, alice, job.id).state == "done"
        with pytest.raises(Problem, match="waits for nobody"):
            service.approve(owner, job.id)
        cheap = service.submit(alice, "staff", {**SHAPLEY, "epsilon": 0.1})
        assert finished(service, alice, cheap.id).state == "done"


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


def test_the_bill_does_not_grow_for_analysts_while_a_question_is_at_work(tmp_path: Path) -> None:
    """Two questions: the second is charged when the first was answered, and a bill that grew then would tell when."""
    alice, owner, asked = person("alice"), person("owner"), {**SHAPLEY, "options": {"clip": "auto"}}
    with serving(write_house(tmp_path, slot=2.0)) as service:
        job = service.submit(alice, "staff", asked)
        seen, known = set(), set()
        while service.is_at_work(job):
            told = service.statement(alice, "staff")["n_questions"], len(service.bill(alice, "staff"))
            owners = service.statement(owner, "staff")["n_questions"]
            if service.job(alice, job.id).state == "running":  # it was at work when both were asked
                seen.add(told)
                known.add(owners)
        assert seen == {(0, 0)}
        assert 2 in known
        assert service.statement(alice, "staff")["n_questions"] == len(service.bill(alice, "staff")) == 2


def test_answers_leave_at_the_end_of_a_slot(tmp_path: Path) -> None:
    progress = Progress(slot_seconds=0.5, began=100.0)
    assert [progress.ends(now) for now in (100.0, 100.2, 100.5, 100.7)] == [100.5, 100.5, 100.5, 101.0]
    alice = person("alice")
    with serving(write_house(tmp_path, slot=0.2)) as service:
        assert finished(service, alice, service.submit(alice, "staff", SHAPLEY).id).state == "done"


@given(taken=st.floats(0, 50), extra=st.floats(0, 0.9))
def test_a_longer_time_is_told_by_no_more_than_its_share_of_a_slot(taken: float, extra: float) -> None:
    """The exact share of delays for which the slot differs, by the corners of the interval: at most extra / slot."""
    slot, steps = 1.0, 2000
    delays = [(step + 0.5) / steps for step in range(steps)]
    differ = sum(
        Progress(slot, 0.0, delay).ends(taken) != Progress(slot, 0.0, delay).ends(taken + extra) for delay in delays
    )
    assert differ / steps <= extra / slot + 2 / steps


@given(
    lengths=st.lists(st.floats(0.001, 3), min_size=1, max_size=60),
    slow=st.integers(0, 59),
    extra=st.floats(0, 0.5),
    shares=st.randoms(use_true_random=False),
)
def test_phases_tell_together_no_more_than_the_end(
    lengths: list[float], slow: int, extra: float, shares: random.Random
) -> None:
    """Phases are shown by independent delays, so their advantages add up: exactly, from every delay of a fine grid."""
    slot, steps, n = 0.5, 400, len(lengths)
    share = sorted(shares.random() for _ in lengths)

    def begins(more: float) -> list[float]:
        longer = [length + more * (number == slow % n) for number, length in enumerate(lengths)]
        return [sum(longer[:number]) for number in range(n)]

    def shown(times: list[float], delay: float) -> list[float]:
        """From which look on each phase is seen, where every delay is this one."""
        progress = Progress(slot, 0.0, draw=lambda: delay)
        for number, at in enumerate(times):
            progress.tell(str(number), share[number], now=at)
        return [math.ceil(phase[0] / slot) for phase in progress.phases]

    drawn = [(step + 0.5) / steps for step in range(steps)]
    fast, slowly = (
        [Counter(look) for look in zip(*(shown(begins(more), one) for one in drawn), strict=True)] for more in (0, extra)
    )
    assert len(fast) == len(slowly) <= jobs.MARKS
    told = sum((one - other).total() / steps for one, other in zip(fast, slowly, strict=True))  # total variation
    assert told <= extra / slot + 2 * len(fast) / steps


def test_every_phase_that_is_shown_has_a_delay_of_its_own() -> None:
    """One delay for all of them would be told by the first, and the last would then tell everything."""
    progress = Progress(1.0, 0.0)
    for number in range(40):
        progress.tell(str(number), number / 40, now=0.0)
    assert [label for _, label, _ in progress.phases] == ["0", "10", "20", "30"]
    assert len({when for when, _, _ in progress.phases}) == jobs.MARKS
    assert all(0 <= when <= jobs.MARKS for when, _, _ in progress.phases)
    without = Progress(0.0, 0.0)
    for number in range(40):
        without.tell(str(number), number / 40, now=0.0)
    assert len(without.phases) == 40


def test_the_delay_of_a_job_is_drawn_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    class Seen(Progress):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            drawn.append(self.delay)

    monkeypatch.setattr(jobs, "Progress", Seen)
    alice = person("alice")
    with serving(write_house(tmp_path, slot=0.05)) as service:
        for number in range(3):
            asked = {**SHAPLEY, "points": [{**POINT, "age": 30 + number}]}
            finished(service, alice, service.submit(alice, "staff", asked).id)
    assert len(set(drawn)) == 3
    assert all(0 <= delay <= 0.05 for delay in drawn)


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


# --- approvals -----------------------------------------------------------------------------------------------------------


def test_what_the_owner_declined_is_done_by_no_asking_again(tmp_path: Path) -> None:
    """Approved once, declined when it had ended the process three times: the old approval is gone with that."""
    alice, owner = person("alice"), person("owner")
    path = write_house(tmp_path, approve_above=0.3)
    cheap = {**SHAPLEY, "epsilon": 0.1}
    with serving(path) as service:
        dear = service.submit(alice, "staff", SHAPLEY)
        service.approve(owner, dear.id)
        assert finished(service, alice, dear.id).state == "done"
        small = finished(service, alice, service.submit(alice, "staff", cheap).id)
    with serving(path, started=False) as service:
        for job in (dear, small):
            service.store.change(job.id, only_from=["done"], state="running", content=None, attempts=3)
        service.start()
        for job, asked in ((dear, SHAPLEY), (small, cheap)):
            assert finished(service, alice, job.id).state == "waiting"
            service.decline(owner, job.id)
            again = [service.submit(alice, "staff", asked).state for _ in range(4)]
            assert again == ["declined", "waiting", "waiting", "waiting"]


def test_a_token_that_reads_only_decides_nothing(tmp_path: Path) -> None:
    alice, owner = person("alice"), person("owner")
    reading = replace(owner, may_buy=False)
    with serving(write_house(tmp_path, approve_above=0.3)) as service:
        job = service.submit(alice, "staff", SHAPLEY)
        for act in (
            lambda: service.approve(reading, job.id),
            lambda: service.decline(reading, job.id),
            lambda: service.cap(reading, "alice", "staff", 1.0),
            lambda: service.publish(reading, "none", published=True),
        ):
            with pytest.raises(Problem, match="changes and buys nothing"):
                act()
        assert service.job(alice, job.id).state == "waiting"


def test_a_restricted_owner_sees_what_is_about_those_datasets(tmp_path: Path) -> None:
    alice = person("alice")
    some = replace(person("owner"), datasets=frozenset({"staff"}))
    with serving(write_house(tmp_path, names=("staff", "other"), approve_above=0.3)) as service:
        jobs = {name: service.submit(alice, name, SHAPLEY).id for name in ("staff", "other")}
        assert [job.id for job in service.approvals(some)] == [jobs["staff"]]
        assert all(set(line["lines"]) == {"staff"} for line in service.people(some))  # type: ignore[arg-type]
        told: Any = service.verify(some)
        assert told["ok"] is True
        assert [line["account"] for line in told["accounts"]] == ["staff"]
        with pytest.raises(Problem, match="no job"):
            service.approve(some, jobs["other"])


def test_a_dataset_that_was_taken_out_breaks_no_list(tmp_path: Path) -> None:
    alice, owner = person("alice"), person("owner")
    path = write_house(tmp_path, names=("staff", "other"), approve_above=0.3)
    with serving(path) as service:
        job = service.submit(alice, "other", SHAPLEY)
    path.write_text(path.read_text().partition("[datasets.other]")[0])
    with serving(path) as service:
        assert service.approvals(owner) == []
        assert service.is_at_work(job) is False
        with pytest.raises(Problem, match="no dataset 'other'"):
            service.approve(owner, job.id)
        assert service.job(owner, job.id).state == "waiting"
        assert service.decline(owner, job.id).state == "declined"


# --- a house that was changed --------------------------------------------------------------------------------------------


def other_model(folder: Path, path: Path) -> None:
    """Another model under the name that the house knows."""
    before = hashlib.sha256((folder / "score.onnx").read_bytes()).hexdigest()
    content = onnx_model(threshold=0.7)
    (folder / "score.onnx").write_bytes(content)
    path.write_text(path.read_text().replace(before, hashlib.sha256(content).hexdigest()))


def test_a_model_that_was_replaced_is_another_question(tmp_path: Path) -> None:
    path, alice = write_house(tmp_path), person("alice")
    with serving(path) as service:
        first = finished(service, alice, service.submit(alice, "staff", SHAPLEY).id)
        outputs = kinds.read_result(*service.result(alice, first.id)).outputs
    other_model(tmp_path, path)
    with serving(path) as service:
        second = finished(service, alice, service.submit(alice, "staff", SHAPLEY).id)
        assert second.id != first.id
        assert kinds.read_result(*service.result(alice, second.id)).outputs != outputs
        assert service.result(alice, first.id)[1] != service.result(alice, second.id)[1]


def test_an_approval_is_not_for_another_model(tmp_path: Path) -> None:
    """Approved and not begun when the model was replaced: it ends, and asking again is a question for the owner."""
    path, alice, owner = write_house(tmp_path, approve_above=0.3), person("alice"), person("owner")
    with serving(path, started=False) as service:
        service.start()
        service._lanes["staff"].stop()
        job = service.submit(alice, "staff", SHAPLEY)
        service.approve(owner, job.id)
    other_model(tmp_path, path)
    with serving(path) as service:
        ended = finished(service, alice, job.id)
        assert (ended.state, spent(service)) == ("failed", 0)
        assert "was changed since this was asked" in str(ended.problem)
        assert service.submit(alice, "staff", SHAPLEY).state == "waiting"


def test_whoever_has_left_the_house_spends_nothing_more(tmp_path: Path) -> None:
    path, alice = write_house(tmp_path), person("alice")
    with serving(path) as service:
        service._lanes["staff"].stop()
        job = service.submit(alice, "staff", SHAPLEY)
    path.write_text(path.read_text().replace('[people.alice]\nrole = "analyst"\n', ""))
    with serving(path) as service:
        ended = finished(service, person("owner"), job.id)
        assert (ended.state, spent(service)) == ("failed", 0)
        assert "may not ask questions" in str(ended.problem)


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


# --- what is seen of a question at work ----------------------------------------------------------------------------------


def watched(service: Service, job: Any, look: Any) -> list[Any]:
    """What ``look`` sees while a job is at work, each time it is something else."""
    seen: list[Any] = []
    while service.is_at_work(job):
        found = look()
        if service.job(person("alice"), job.id).state == "running" and found not in seen:
            seen.append(found)
    return seen


def test_datasets_that_share_an_account_show_nothing_of_each_others_questions(tmp_path: Path) -> None:
    alice, path = person("alice"), write_house(tmp_path, names=("staff", "other"), slot=1.0)
    for name in ("staff", "other"):
        declared = (tmp_path / f"{name}.toml").read_text()
        (tmp_path / f"{name}.toml").write_text(declared.replace("[budget]", '[budget]\naccount = "people"'))
    with serving(path) as service:
        job = service.submit(alice, "staff", {**SHAPLEY, "options": {"clip": "auto"}})
        told = watched(service, job, lambda: service.statement(alice, "other"))
        assert [(one["n_questions"], one["spent_epsilon"]) for one in told] == [(0, 0.0)]
        after = service.statement(alice, "other")
        assert (after["n_questions"], after["account"]) == (2, "people")
        assert service._lanes["staff"] is service._lanes["other"]


def test_a_quote_stands_on_what_was_known_before_the_question_at_work(tmp_path: Path) -> None:
    """Histograms are kept as soon as they are bought: quotes would tell when, to whoever asks for them all the time."""
    alice, asked = person("alice"), {"explainer": "marginals", "epsilon": 0.3}
    quoted = {"explainer": "partial-dependence", "model": "score", "epsilon": 0.5, "options": {"columns": ["age"]}}
    with serving(write_house(tmp_path, slot=2.0)) as service:
        job = service.submit(alice, "staff", asked)

        def look() -> Any:
            told = service.quote(alice, "staff", quoted)
            return told["stands_on"], told["remaining_epsilon"]

        before = (look()[0], service.statement(alice, "staff")["remaining_epsilon"])
        assert watched(service, job, look) == [before]
        assert look()[0] == "histograms bought before"
        assert look()[1] < before[1]  # type: ignore[operator]


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
