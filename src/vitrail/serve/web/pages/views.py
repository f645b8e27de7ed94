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
from ...kinds import KINDS, models_named
from . import words
from .charts import BillChart, bill_chart
from .questions import question

if TYPE_CHECKING:
    from ...principal import Principal
    from ...store import Job, PaneLine

Facts = Mapping[str, Any]
MOST_PEOPLE_SHOWN = 5
"""Of those that a question is about."""


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
        "" if cap is None else f"{words.left(own_left)} left of your {words.cost(cap)}",
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


def delta(facts: Facts) -> float:
    """The delta at which epsilons of a dataset are told."""
    return float(facts["delta"])


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
    rows: list[dict[str, Any]]
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
    shown = [{**line, "price": words.paid(float(line["epsilon"])) if line["paid"] else "free"} for line in reversed(lines)]
    return BillView(_bill_sentence(told), chart, shown, every, note)


def _bill_sentence(told: Facts) -> str:
    """What is spent, and the largest question that fits for who looks: by the budget, or by their own limit."""
    own, left = told["yours"], told["remaining_epsilon"]
    spent = f"Epsilon {words.cost(told['spent_epsilon'])} of {words.cost(told['budget_epsilon'])} is spent"
    if own["cap_epsilon"] is not None and own["remaining_epsilon"] < left:
        if own["remaining_epsilon"] <= 0:
            return f"{spent}, by everybody; your own limit of {words.cost(own['cap_epsilon'])} is used up."
        fits = f"of your own limit of {words.cost(own['cap_epsilon'])} there is {words.left(own['remaining_epsilon'])} left"
        return f"{spent}, by everybody; {fits}, so that a question of up to that fits."
    return f"{spent}; a question of up to {words.left(left)} fits, by what is left of the budget."


# --- questions -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quote:
    """A quote in words; or, with a ``problem``, why there is none. ``job`` is the same question, answered before."""

    problem: str = ""
    epsilon: float = 0.0
    bands: str = ""
    calibrated: bool = False
    verdict: str = ""
    stands_on: str = ""
    fits: bool = False
    waits: bool = False
    remaining: float = 0.0
    approve_above: float | None = None
    afterwards: str = ""
    made_up: bool = False
    job: str = ""


def quote(told: Facts, facts: Facts, request: Facts, job: str = "") -> Quote:
    """What the service's quote of a request says."""
    explainer = str(request["explainer"])
    widths = told.get("half_widths") or ({} if told["half_width"] is None else {"": told["half_width"]})
    unit = "\u00a0rows" if explainer == "marginals" else ""
    bands = ", ".join(f"{part}\u00a0±\u00a0{words.width(width)}{unit}".strip() for part, width in widths.items())
    return Quote(
        epsilon=told["epsilon"] or request.get("epsilon", 0.0),  # what is too small for its mu is not nothing
        bands=bands,
        calibrated=str(told.get("band_claim") or "").startswith("95 %"),
        verdict=_verdict_words(told, explainer),
        stands_on=told["stands_on"],
        fits=told["fits"],
        waits=told["needs_approval"],
        remaining=told["remaining_epsilon"],
        approve_above=facts["approve_above"],
        afterwards=_afterwards(told, delta(facts)),
        made_up=KINDS[explainer].points and "points" not in request,
        job=job,
    )


def _verdict_words(told: Facts, explainer: str) -> str:
    """What to expect, and how much the estimate is worth."""
    if told["verdict"] is None:
        return ""
    if told["stands_on"] != "the schema":
        return words.VERDICT_WORDS[told["verdict"]]
    return words.MADE_UP_VERDICT_WORDS[told["verdict"]] + (f" {words.BETTER}" if explainer != "marginals" else "")


def _afterwards(told: Facts, delta: float) -> str:
    """The largest question that would fit after this one: squares of mu add, epsilons do not."""
    if not told["fits"]:
        return ""
    left = mu_of(told["remaining_epsilon"], delta) ** 2 - told["price"]["pico_mu_squared"] / PICO
    return f"epsilon {words.left(epsilon_of(math.sqrt(left), delta)) if left > 0 else 0}"


def job(found: Job) -> dict[str, Any]:
    """A question as its page shows it."""
    return {
        **found.to_json(),
        "title": question(found.explainer).title,
        "price": words.paid(found.epsilon or float(found.asked.get("epsilon", 0.0))),
    }


@dataclass(frozen=True)
class Asked:
    """What a question was: its models, options and people. Values of people are for who asked, and nobody else's page."""

    models: str
    options: list[tuple[str, str]]
    n_people: int
    people: list[list[tuple[str, str]]]


def asked(found: Job, viewer: str) -> Asked:
    """What was asked, as far as this viewer may read it again."""
    request = found.asked
    points = request.get("points", [])
    return Asked(
        ", ".join(models_named(request)),
        [(name, value if isinstance(value, str) else _json(value)) for name, value in request["options"].items()],
        len(points),
        [[(name, _cell(value)) for name, value in point.items()] for point in points[:MOST_PEOPLE_SHOWN]]
        if viewer == found.person
        else [],
    )


def _json(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def _cell(value: Any) -> str:
    return "missing" if value is None else str(value)


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
    remark: str = ""


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
    cap, spent = line["cap_epsilon"], line["spent_epsilon"]
    limit = "no cap: the whole budget" if cap is None else f"at most {words.cost(cap)}"
    told = f"{words.cost(line['spent_epsilon']) if line['spent_epsilon'] else '0'} spent, {limit}"
    remark = "That is less than is spent already: nothing more can be bought." if cap is not None and cap < spent else ""
    return Share(dataset, "" if cap is None else f"{cap:g}", told, remark)


def _column_words(column: Facts) -> str:
    label, unit, text = (str(column.get(word) or "") for word in ("label", "unit", "description"))
    return ". ".join(filter(None, (f"{label} ({unit})" if label and unit else label or unit, text)))


def _shortened(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
