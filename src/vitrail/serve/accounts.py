"""Accounts of a service: what was spent and is left, bills, caps, and the ledger for those who audit it.

While a question is at work analysts see its account as it was before: a later question of a conversation is charged, and
histograms are kept, when the one before was answered, and how long that took may follow from rows (``jobs``). That holds for
budgets and bills, and for quotes, which say what fits and stand on histograms that were bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..accounting import JsonValue, rounded_down, rounded_up
from ..accounting.guarantee import Budget
from ..errors import InvalidInput
from ..explain.marginals import SEEN
from ..ledger.results import Verification
from ..results.codec import to_json as plain_json
from .principal import OWNER, Principal
from .problems import Problem

if TYPE_CHECKING:
    from ..ledger import SqlLedger, Statement
    from ..vault import PrivateData
    from .house import House
    from .jobs import Lane
    from .store import Store

MOST_LINES = 1000


@dataclass(frozen=True)
class Stand:
    """How an account stood at one moment, and the histograms that a person had of a dataset."""

    statement: Statement
    dataset: str = ""
    person: str = ""
    histograms: bytes | None = None


class Accounts:
    """What a service can tell of its accounts."""

    house: House
    ledger: SqlLedger
    store: Store

    def __init__(self) -> None:
        self._data: dict[str, PrivateData] = {}
        self._accounts: dict[str, str] = {}
        self._lanes: dict[str, Lane] = {}
        self._before: dict[str, Stand] = {}

    def _known(self, principal: Principal, name: str) -> PrivateData:
        """The dataset as this person asks it; somebody who may not hear of it is told that there is none."""
        if name not in self._data or not principal.knows(name):
            raise Problem("not-found", f"there is no dataset {name[:60]!r} here")
        return self._data[name].for_analyst(principal.name)

    def _remember(self, job_id: str) -> None:
        """How things stand before a job, for those who look while it is at work."""
        job = self.store.job(job_id)
        if job is not None:
            asked = self._data[job.dataset].for_analyst(job.person)
            stand = Stand(asked.budget, job.dataset, job.person, asked.kept(SEEN))
            self._before[self._accounts[job.dataset]] = stand

    def _seen(self, principal: Principal, dataset: str) -> Statement:
        """The account, as this person may see it now."""
        return self._stand(principal, dataset).statement

    def _stand(self, principal: Principal, dataset: str, *, histograms: bool = False) -> Stand:
        """The account, and this person's histograms where they are asked for, as this person may see them now."""
        data, lane = self._known(principal, dataset), self._lanes[dataset]
        while True:
            turn = lane.turn
            if lane.busy and principal.role not in ("owner", "auditor"):
                before = self._before[self._accounts[dataset]]
                if not histograms or (before.person, before.dataset) == (principal.name, dataset):
                    return before
                return Stand(before.statement, dataset, principal.name, data.kept(SEEN))
            now = Stand(data.budget, dataset, principal.name, data.kept(SEEN) if histograms else None)
            if principal.role in ("owner", "auditor") or (lane.turn == turn and not lane.busy):
                return now  # no question was begun while this was read

    def _for_quotes(self, principal: Principal, dataset: str) -> PrivateData:
        """The data for a quote, which is worked out from how things stand now, however long it takes."""
        stand = self._stand(principal, dataset, histograms=True)
        return self._known(principal, dataset).as_it_was(stand.statement, {SEEN: stand.histograms})

    def statement(self, principal: Principal, dataset: str) -> dict[str, JsonValue]:
        """What was spent and what is left: all of it, and this person's own line; everybody's for owner and auditor."""
        made = self._seen(principal, dataset)
        shown: dict[str, JsonValue] = {
            "account": made.account,
            "budget_epsilon": made.budget.epsilon,
            "budget_delta": made.budget.delta,
            "delta": made.delta,
            "neighbours": made.neighbours,
            "spent_epsilon": made.spent_epsilon,
            "remaining_epsilon": made.remaining_epsilon,
            "n_questions": made.n_questions,
            "sentence": (
                f"epsilon {rounded_up(made.spent_epsilon)} of {rounded_up(made.budget.epsilon)} is spent; a question of up "
                f"to {rounded_down(made.remaining_epsilon)} fits"
            ),
            "yours": self._line(made, principal.name),
        }
        if principal.role in ("owner", "auditor"):
            shown["analysts"] = [self._line(made, line.analyst) for line in made.analysts]
            shown["reservations"] = [line.to_json() for line in made.reservations]
            shown["head"] = made.head
        return shown

    def _line(self, statement: Statement, name: str) -> dict[str, JsonValue]:
        line = next((line for line in statement.analysts if line.analyst == name), None)
        cap = None if line is None or line.cap is None else line.cap.epsilon
        left = statement.remaining_epsilon
        if line is not None and line.remaining_epsilon is not None:
            left = min(left, line.remaining_epsilon)
        spent = 0.0 if line is None else line.spent_epsilon
        return {"analyst": name, "spent_epsilon": spent, "cap_epsilon": cap, "remaining_epsilon": left}

    def bill(self, principal: Principal, dataset: str, newest: int = 100) -> list[dict[str, JsonValue]]:
        """The newest lines of the bill: their own for analysts, all of them for owner and auditor.

        Times are cut to the minute for analysts: a later question of a conversation is charged when the one before was
        answered, and how long that took may follow from rows.
        """
        every = principal.role in ("owner", "auditor")
        made = self._seen(principal, dataset).bill(min(newest, MOST_LINES) if every else MOST_LINES)
        lines = [line for line in made.lines if every or line.analyst == principal.name][-newest:]
        shown: list[dict[str, JsonValue]] = [plain_json(line) for line in lines]
        return shown if every else [{**line, "time_utc": str(line["time_utc"])[:16]} for line in shown]

    def people(self, principal: Principal) -> list[dict[str, JsonValue]]:
        """Everybody of the house, with what they may learn."""
        statements = {name: data.budget for name, data in self._data.items() if principal.knows(name)}
        names = dict.fromkeys([OWNER, *self.house.people])
        return [
            {
                "name": name,
                "role": person.role,
                "datasets": None if person.datasets is None else list(person.datasets),
                "lines": {one: self._line(made, name) for one, made in statements.items()},
            }
            for name in names
            if (person := self.house.person(name)) is not None
        ]

    def cap(self, principal: Principal, person: str, dataset: str, epsilon: float) -> dict[str, JsonValue]:
        """Limit what somebody may learn of a dataset, from now on."""
        principal.check_may_change()
        data = self._known(principal, dataset)
        if self.house.person(person) is None or person == OWNER:
            raise Problem("not-found", f"there is no person {person[:60]!r} whose learning could be limited")
        whole = self.house.datasets[dataset].declaration.budget
        if not 0 < epsilon <= whole.epsilon:
            raise InvalidInput(f"epsilon is {epsilon!r}; a cap lies above 0 and is at most {rounded_down(whole.epsilon)}")
        data.cap(person, Budget(epsilon, whole.delta))
        return self._line(data.budget, person)

    # --- the ledger --------------------------------------------------------------------------------------------------

    def verify(self, principal: Principal) -> dict[str, JsonValue]:
        """Walk every chain, and price every charge afresh; who knows some datasets only is told of theirs."""
        found = self.ledger.verify()
        if principal.datasets is not None:
            mine = {account for name, account in self._accounts.items() if principal.knows(name)}
            others = [repr(line.account) for line in found.accounts if line.account not in mine]
            problems = [said for said in found.problems if not any(other in said for other in others)]
            found = Verification(tuple(problems), tuple(line for line in found.accounts if line.account in mine))
        return {"ok": found.ok, **plain_json(found)}

    def entries(self, principal: Principal, dataset: str, after: int = 0, most: int = 200) -> list[dict[str, JsonValue]]:
        """Entries of a dataset's account, by number."""
        made = self._known(principal, dataset).budget
        first, last = after + 1, min(after + most, made.n_entries)
        found = self.ledger.database.entries(made.account, first, last) if first <= last else []
        return [{"seq": entry.seq, "digest": entry.digest, "record": entry.record} for entry in found]
