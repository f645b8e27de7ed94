"""The bill of an account: what was asked, by whom, at what price, and how much that makes so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..accounting import Cost, JsonValue, Spending, epsilon_of
from ..guarantee import Bill, BillLine, Guarantee

if TYPE_CHECKING:
    from .entries import Part
    from .results import Statement


def bill_of(statement: Statement) -> Bill:
    """The bill in a statement; users call ``data.budget.bill()``."""
    lines: list[BillLine] = []
    spending = Spending()
    capacity = max(1, statement.capacity.pico_mu_squared)
    charged = {entry.seq: entry for entry in statement.entries if entry.kind == "charged"}
    named = {seq: _question_text(entry.body) + _part_text(entry.part) for seq, entry in charged.items()}
    for entry in statement.entries:
        if entry.kind not in ("charged", "replayed"):
            continue
        before, part = spending.total, entry.part
        spending.add(entry.cost, None if part is None else part.place)
        spent = spending.total
        what = named.get(entry.seq) or f"again: {named.get(_whole(entry.body.get('of')), 'a stored answer')}"
        lines.append(
            BillLine(
                entry.seq,
                entry.time_utc,
                entry.analyst or "",
                what,
                entry.kind == "charged",
                _epsilon(entry.cost, statement.delta),
                _epsilon(spent, statement.delta),
                (spent.pico_mu_squared - before.pico_mu_squared) / capacity,
                "" if part is None else str(part),
            )
        )
    return Bill(
        statement.account,
        statement.budget.epsilon,
        statement.budget.delta,
        _epsilon(statement.spent, statement.delta),
        statement.remaining_epsilon,
        _promise(statement),
        statement.head,
        tuple(lines),
    )


def _promise(statement: Statement) -> Guarantee:
    """The promise for everything the account has released: questions as one, training runs added.

    Its delta is that of the whole purse of questions, the samplers' share included, and what training runs took of theirs.
    """
    spent = statement.spent
    trained = bool(spent.pico_epsilon or spent.quecto_delta)
    delta = statement.budget.delta - statement.budget.training[1] + spent.block_delta
    mu = 0.0 if trained else spent.mu
    return Guarantee(_epsilon(spent, statement.delta), delta, mu, statement.neighbours)


def _epsilon(cost: Cost, delta: float) -> float:
    """Questions at the account's delta, plus what training runs took."""
    return epsilon_of(cost.mu, delta) + cost.block_epsilon


def _part_text(part: Part | None) -> str:
    return "" if part is None else f" ({part})"


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else -1


def _question_text(body: Mapping[str, JsonValue]) -> str:
    """The question's own label, or its kind and size in words."""
    question = body.get("question")
    if not isinstance(question, dict):
        return "a question"
    if isinstance(label := question.get("label"), str) and label:
        return label
    kind = str(question.get("question", "question")).replace("-", " ")
    for name, unit in (("size", "numbers"), ("candidates", "candidates"), ("groups", "groups")):
        if isinstance(amount := question.get(name), int):
            return f"{kind} of {amount} {unit}"
    return kind
