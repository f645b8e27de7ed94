"""Who decides: approvals and declines, restricted tokens of the owner, and a house that was changed meanwhile."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serve_setup import SHAPLEY, finished, onnx_model, person, serving, spent, write_house
from vitrail.serve import kinds
from vitrail.serve.problems import Problem


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
