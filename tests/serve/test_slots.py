"""What a clock and a watched account tell of a question at work: answers in slots, few phases, the account as it was."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve_setup import POINT, SHAPLEY, finished, person, serving, write_house
from vitrail.serve import jobs
from vitrail.serve.jobs import Progress
from vitrail.serve.service import Service


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
    with serving(write_house(tmp_path, slot=3.0)) as service:
        job = service.submit(alice, "staff", asked)

        def look() -> Any:
            told = service.quote(alice, "staff", quoted)
            return told["stands_on"], told["remaining_epsilon"]

        before = (look()[0], service.statement(alice, "staff")["remaining_epsilon"])
        assert watched(service, job, look) == [before]
        assert look()[0] == "histograms bought before"
        assert look()[1] < before[1]  # type: ignore[operator]
