"""What pages show, from what the service tells: numbers in words, and no more than a template needs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as url_quote

from ....accounting import epsilon_of, mu_of
from ....accounting.cost import PICO
from ....schema import Schema
from ...access.access_log import verify as verify_log
from . import words
from .charts import BillChart, bill_chart
from .questions import question

if TYPE_CHECKING:
    from ...access.access_log import AccessLog
    from ...principal import Principal
    from ...store import Job, PaneLine

Facts = Mapping[str, Any]


# --- datasets ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """What is left of an account, for everybody and for the one who looks."""

    words: str
    percent: float
    own_words: str
    own_percent: float
    most: float


def budget(told: Facts) -> Budget:
    """What is left, from a statement. Own numbers are shown where there is a cap."""
    whole, left, own = told["budget_epsilon"], told["remaining_epsilon"], told["yours"]
    cap, own_left = own["cap_epsilon"], own["remaining_epsilon"]
    return Budget(
        f"epsilon {words.left(left)} of {words.cost(whole)} left",
        words.share(left, whole),
        "" if cap is None else f"yours {words.left(own_left)} of {words.cost(cap)}",
        0.0 if cap is None else words.share(own_left, cap),
        float(own_left),
    )


def account_names(datasets: Sequence[Facts]) -> dict[str, str]:
    """The names of datasets, by their accounts in the ledger."""
    return {str(facts["budget"]["account"]): str(facts["name"]) for facts in datasets}


@dataclass(frozen=True)
class Card:
    """A dataset as it stands on a card."""

    name: str
    address: str
    models: str
    budget: Budget


def card(facts: Facts) -> Card:
    """A dataset's card."""
    name = str(facts["name"])
    n_models = len(facts["models"])
    return Card(name, f"/datasets/{url_quote(name, safe='')}", words.count(n_models, "model"), budget(facts["budget"]))


def public_facts(facts: Facts) -> list[tuple[str, str]]:
    """What is public about a dataset, in words."""
    told = [
        ("Rows, as declared", f"about {facts['n_rows_public']:,}"),
        ("Target", str(facts["target"] or "none")),
        (
            "Two datasets are neighbours if",
            f"one row is {'added or removed' if 'add' in facts['neighbours'] else 'replaced'}",
        ),
        ("Delta", words.cost(facts["delta"])),
    ]
    if facts.get("rows_per_person", 1) != 1:
        told.append(("Rows of a person, at most", str(facts["rows_per_person"])))
    if facts["approve_above"] is not None:
        told.append(("The owner is asked above", f"epsilon {words.left(facts['approve_above'])}"))
    return told


@dataclass(frozen=True)
class ColumnLine:
    """A column as it is listed and chosen."""

    number: int
    name: str
    allowed: str
    words: str
    levels: bool
    feature: bool


def schema(facts: Facts) -> list[dict[str, Any]]:
    """The columns of a dataset, as JSON has them."""
    columns: list[dict[str, Any]] = facts["schema"]["columns"]
    return columns


def features(facts: Facts) -> list[dict[str, Any]]:
    """The columns that a person has: all but the target."""
    return [column for column in schema(facts) if column["name"] != facts["target"]]


def columns(facts: Facts) -> list[ColumnLine]:
    """Every column, with what it may be, in words."""
    declared = Schema.from_json(facts["schema"])
    return [
        ColumnLine(
            number,
            str(column["name"]),
            _shortened(declared[str(column["name"])].allowed),
            _column_words(column),
            "levels" in column,
            column["name"] != facts["target"],
        )
        for number, column in enumerate(schema(facts))
    ]


@dataclass(frozen=True)
class ModelLine:
    """An approved model."""

    name: str
    sha256: str
    words: str


def models(facts: Facts) -> list[ModelLine]:
    """The models that may be asked about."""
    return [
        ModelLine(
            str(model["name"]),
            str(model["sha256"]),
            f"from {model['range'][0]:g} to {model['range'][1]:g}"
            + ("" if model["output"] is None else f", output {model['output']}"),
        )
        for model in facts["models"]
    ]


@dataclass(frozen=True)
class BillView:
    """The bill as a page shows it; the newest lines first."""

    sentence: str
    chart: BillChart
    rows: list[Facts]
    others: bool
    note: str


def bill(lines: Sequence[Facts], facts: Facts, principal: Principal, most: int) -> BillView:
    """The lines that this person may see, of so many that were asked for, and their picture."""
    told = facts["budget"]
    every = principal.role in ("owner", "auditor")
    paid = [(str(line["time_utc"]), float(line["so_far"])) for line in lines if line["paid"]]
    spent, whole = float(told["spent_epsilon"]), len(lines) < most
    chart = bill_chart(paid, float(told["budget_epsilon"]), spent=spent, whole=whole)
    note = "" if every else "Only your own questions are listed; what is spent so far is everybody's."
    sentence = str(told["sentence"])
    return BillView(f"{sentence[:1].upper()}{sentence[1:]}.", chart, [*reversed(lines)], every, note)


# --- questions -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quote:
    """A quote in words; or, with a ``problem``, why there is none."""

    problem: str = ""
    epsilon: float = 0.0
    bands: str = ""
    verdict: str = ""
    stands_on: str = ""
    fits: bool = False
    waits: bool = False
    remaining: float = 0.0
    approve_above: float | None = None
    afterwards: str = ""


def quote(told: Facts, facts: Facts) -> Quote:
    """What the service's quote says."""
    widths = told.get("half_widths") or ({} if told["half_width"] is None else {"": told["half_width"]})
    bands = ", ".join(f"{part}\u00a0±\u00a0{width:.2g}".strip() for part, width in widths.items())
    return Quote(
        epsilon=told["epsilon"],
        bands=bands,
        verdict=told["verdict"] or "",
        stands_on=told["stands_on"],
        fits=told["fits"],
        waits=told["needs_approval"],
        remaining=told["remaining_epsilon"],
        approve_above=facts["approve_above"],
        afterwards=_afterwards(told, float(facts["delta"])),
    )


def _afterwards(told: Facts, delta: float) -> str:
    """The largest question that would fit after this one: squares of mu add, epsilons do not."""
    if not told["fits"]:
        return ""
    left = mu_of(told["remaining_epsilon"], delta) ** 2 - told["price"]["pico_mu_squared"] / PICO
    return f"epsilon {words.left(epsilon_of(math.sqrt(left), delta)) if left > 0 else 0}"


def job(found: Job) -> dict[str, Any]:
    """A question as its page shows it."""
    return {**found.to_json(), "title": question(found.explainer).title}


# --- panes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pane:
    """A pane on its card: who may read it, in words."""

    id: str
    dataset: str
    title: str
    words: str
    published: bool


def pane(line: PaneLine) -> Pane:
    """A pane's card."""
    readers = "everybody who may hear of the dataset" if line.published else f"{line.person} and the owner"
    told = f"Of {line.dataset}, released by {line.person} on {words.minute(line.created)} UTC. Read by {readers}."
    return Pane(line.id, line.dataset, f"{line.title[:1].upper()}{line.title[1:]}", told, line.published is not None)


# --- people --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """What somebody may learn of a dataset, and has learnt."""

    dataset: str
    cap: str
    words: str


@dataclass(frozen=True)
class Person:
    """Somebody on the owner's page."""

    name: str
    number: int
    role: str
    datasets: tuple[str, ...] | None
    shares: tuple[Share, ...]


def people(told: Sequence[Facts]) -> list[Person]:
    """Everybody, with caps where the role can buy."""
    return [
        Person(
            str(person["name"]),
            number,
            str(person["role"]),
            None if person["datasets"] is None else tuple(person["datasets"]),
            tuple(
                _share(dataset, line)
                for dataset, line in person["lines"].items()
                if person["role"] == "analyst" and (person["datasets"] is None or dataset in person["datasets"])
            ),
        )
        for number, person in enumerate(told)
    ]


def _share(dataset: str, line: Facts) -> Share:
    cap = line["cap_epsilon"]
    limit = "no cap: the whole budget" if cap is None else f"at most {words.cost(cap)}"
    told = f"{words.cost(line['spent_epsilon']) if line['spent_epsilon'] else '0'} spent, {limit}"
    return Share(dataset, "" if cap is None else f"{cap:g}", told)


# --- ledger --------------------------------------------------------------------------------------------------------------


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
    digest: str


def entry(told: Facts) -> EntryLine:
    """An entry, from its record."""
    record = json.loads(told["record"])
    body = record["body"]
    who = str(body.get("analyst") or "")
    return EntryLine(int(told["seq"]), str(record["time_utc"]), str(record["kind"]), who, _what(body), str(told["digest"]))


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
    lines: list[dict[str, str]]


def access_log(log: AccessLog | None) -> LogView | None:
    """Whether the access log's chain holds, and its newest lines; None where none is kept."""
    if log is None:
        return None
    checked = verify_log(log.path)
    if not checked.ok:
        sentence = f"The chain does not hold: {'; '.join(checked.problems)}"
    else:
        sentence = f"The chain of {words.count(checked.lines, 'line')} holds. Its head is {words.digest(checked.head)}"
    return LogView(checked.ok, sentence, [_log_line(line) for line in reversed(log.tail(limit=100))])


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


def _column_words(column: Facts) -> str:
    label, unit, text = (str(column.get(word) or "") for word in ("label", "unit", "description"))
    return ". ".join(filter(None, (f"{label} ({unit})" if label and unit else label or unit, text)))


def _shortened(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
