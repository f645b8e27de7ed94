"""What the page of auditors shows: verdicts on accounts, entries, and the end of the access log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....accounting import epsilon_of
from ....ledger.entries import cost_from_json
from ...access.access_log import verify as verify_log
from . import words
from .views import Facts

if TYPE_CHECKING:
    from ...access.access_log import AccessLog

MOST_LINES = 20
"""Of the access log, on a page."""


@dataclass(frozen=True)
class AccountLine:
    """The verdict on one account."""

    name: str
    dataset: str
    holds: bool
    sentence: str
    head: str
    n_entries: int


@dataclass(frozen=True)
class Verified:
    """The verdict on the ledger."""

    holds: bool
    sentence: str
    accounts: list[AccountLine]
    problems: list[str]


def verified(told: Facts, datasets: Mapping[str, str]) -> Verified:
    """Whether every chain holds, account by account; ``datasets`` are names by account."""
    problems = [str(problem) for problem in told["problems"]]
    accounts = []
    for line in told["accounts"]:
        name = str(line["account"])
        wrong = [problem for problem in problems if name in problem]
        sentence = " ".join(wrong) or "The chain holds, and every charge is priced right."
        accounts.append(
            AccountLine(name, datasets.get(name, ""), not wrong, sentence, str(line["head"]), int(line["n_entries"]))
        )
    summary = "The ledger holds: every chain is whole." if told["ok"] else "The ledger does not hold. See below."
    return Verified(bool(told["ok"]), summary, accounts, problems)


@dataclass(frozen=True)
class EntryLine:
    """An entry of the ledger in a table."""

    seq: int
    time: str
    kind: str
    who: str
    what: str
    price: str
    digest: str


def entry(told: Facts, delta: float) -> EntryLine:
    """An entry, from its record; what it spent is told as epsilon at ``delta``."""
    record = json.loads(told["record"])
    body = record["body"]
    who = str(body.get("analyst") or "")
    kind, time = str(record["kind"]), str(record["time_utc"])
    return EntryLine(int(told["seq"]), time, kind, who, _what(body), _entry_price(kind, body, delta), str(told["digest"]))


def _entry_price(kind: str, body: Facts, delta: float) -> str:
    """What a charge spent, or a reservation set aside."""
    if kind not in ("charged", "reserved"):
        return ""
    cost = cost_from_json(body["cost"])
    told = words.paid((epsilon_of(cost.mu, delta) if cost.mu else 0.0) + cost.block_epsilon)
    return told if kind == "charged" else f"{told} set aside"


def _what(body: Facts) -> str:
    """What an entry is about: a question, a budget, or another entry."""
    if isinstance(question := body.get("question"), dict) and question.get("label"):
        return str(question["label"])
    if isinstance(limit := body.get("budget"), dict):
        return f"epsilon {words.cost(limit['epsilon'])}"
    return f"of entry {body['of']}" if "of" in body else ""


@dataclass(frozen=True)
class LogView:
    """The end of the access log, the newest lines first."""

    holds: bool
    sentence: str
    head: str
    lines: list[dict[str, str]]


def access_log(log: AccessLog | None) -> LogView | None:
    """Whether the access log's chain holds, and its newest lines; None where none is kept."""
    if log is None:
        return None
    checked = verify_log(log.path)
    if not checked.ok:
        sentence = f"The chain does not hold: {'; '.join(checked.problems)}"
    else:
        sentence = f"The chain of {words.count(checked.lines, 'line')} holds."
    return LogView(
        checked.ok,
        sentence,
        str(checked.head or "") if checked.ok else "",
        [_log_line(line) for line in reversed(log.tail(limit=MOST_LINES))],
    )


def _log_line(line: Facts) -> dict[str, str]:
    named = ", ".join(str(value) for value in (line.get("parameters") or {}).values())
    what = f"{line.get('method', '')} {line.get('route', '')}" + (f" ({named})" if named else "")
    who = str(line.get("person") or "nobody")
    return {
        "seq": str(line["n"]),
        "time": str(line.get("time", "")),
        "who": who,
        "what": what,
        "status": str(line.get("status", "")),
    }
