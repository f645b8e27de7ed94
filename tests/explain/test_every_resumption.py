"""Every explainer's conversation, broken off after each of its answers, and had with an auditor's rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import vitrail as vt
from every_explainer import EVERY, conversation, explained
from explainer_table import SCHEMA, Row, private, rows
from vitrail.accounting import Cost
from vitrail.explain.recipe import Conversation
from vitrail.vault import PublicRows

pytestmark = pytest.mark.usefixtures("curves_in_a_hurry")


class Killed(BaseException):
    """Stands for a process that ends between two steps."""


@EVERY
def test_a_run_that_broke_off_goes_on_where_it_stopped(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = private(ledger=f"sqlite:///{tmp_path / 'whole.db'}")
    explained(row, data)
    monkeypatch.setattr(Conversation, "rehearse", lambda talk, mu: None)  # it was rehearsed, and all runs are alike
    charges = [entry for entry in data.budget.entries if entry.kind == "charged"]
    for n in range(1, len(charges) + 1):
        where = f"sqlite:///{tmp_path / f'{n}.db'}"
        broken = private(ledger=where)
        with pytest.raises(Killed):
            run_and_die(row, broken, after=n)
        spent = broken.budget.spent
        assert spent == row.price(data.delta)  # the whole price is set aside
        resumed = private(ledger=where)
        result = explained(row, resumed)
        assert resumed.budget.spent == result.cost
        assert sum(entry.kind == "charged" for entry in resumed.budget.entries) == len(charges)


def run_and_die(row: Row, data: vt.PrivateData, after: int) -> None:
    """Run the conversation and end it when ``after`` answers were delivered."""
    talk = conversation(row, data)
    delivered = 0

    def dying(terms: Any) -> Any:
        nonlocal delivered
        recipe, release = talk.begun(terms), None
        while True:
            try:
                ask = recipe.send(release)
            except StopIteration as stop:
                return stop.value
            release = yield ask
            delivered += 1
            if delivered == after:
                raise Killed

    dataclasses.replace(talk, recipe=dying).explain(epsilon=row.epsilon)


@EVERY
def test_the_whole_conversation_runs_on_an_auditors_rows(row: Row) -> None:
    data = private({name: [] for name in SCHEMA})
    public = PublicRows(rows(400), SCHEMA, 400, "rich", block_rows=256)
    result, releases = conversation(row, data).on(public, epsilon=row.epsilon)
    assert releases
    assert sum((release.cost for release in releases), Cost()) <= row.price(data.delta)
    assert result.frame()
    assert data.budget.spent == Cost()
