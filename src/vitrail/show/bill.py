"""The bill of an account as plain lines: what was asked, by whom, at what price, and how much that makes so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..accounting import Cost, JsonValue, Spending, epsilon_of, rounded_down, rounded_up
from ..guarantee import Budget, Guarantee, Neighbours


class PartFacts(Protocol):
    """What is read of a part of the rows; its text is its name in words."""

    @property
    def place(self) -> tuple[str, int]:
        """Partition and index."""
        ...


class EntryFacts(Protocol):
    """What is read of a ledger's entry; the ledger itself is not known here."""

    @property
    def seq(self) -> int:
        """Its place in the account's chain."""
        ...

    @property
    def time_utc(self) -> str:
        """When, as ISO 8601 text."""
        ...

    @property
    def kind(self) -> str:
        """What happened."""
        ...

    @property
    def body(self) -> Mapping[str, JsonValue]:
        """The particulars."""
        ...

    @property
    def analyst(self) -> str | None:
        """Who, if anybody."""
        ...

    @property
    def cost(self) -> Cost:
        """What was charged."""
        ...

    @property
    def part(self) -> PartFacts | None:
        """The part of the rows that was charged, if not the whole data."""
        ...


class StatementFacts(Protocol):
    """What is read of a ledger's statement."""

    @property
    def account(self) -> str:
        """The account's name."""
        ...

    @property
    def budget(self) -> Budget:
        """The most it may spend."""
        ...

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation."""
        ...

    @property
    def delta(self) -> float:
        """The delta at which epsilons of questions are stated."""
        ...

    @property
    def capacity(self) -> Cost:
        """The budget in integers."""
        ...

    @property
    def spent(self) -> Cost:
        """What is gone of it."""
        ...

    @property
    def remaining_epsilon(self) -> float:
        """The largest question that still fits."""
        ...

    @property
    def head(self) -> str:
        """The digest of the last entry."""
        ...

    @property
    def entries(self) -> Sequence[EntryFacts]:
        """The whole chain."""
        ...


@dataclass(frozen=True, slots=True)
class BillLine:
    """One question, or one stored answer handed out again.

    Parameters
    ----------
    seq : int
        Its number in the ledger.
    time_utc : str
        When.
    analyst : str
        Who asked.
    what : str
        The question, in a few words.
    paid : bool
        Whether it was paid for; a replay is not.
    epsilon : float
        Its own epsilon at the account's delta; 0 for a replay.
    so_far : float
        Epsilon of everything up to here. It is less than the sum: squares of mu add, epsilons do not.
    share : float
        What it added to the account's spending on questions, as a share of the budget's mu squared; 0 for what the training
        purse paid, and for a question to a part of the rows while another part is dearer.
    part : str
        The disjoint part of the rows that was asked, in words; empty for the whole data.
    """

    seq: int
    time_utc: str
    analyst: str
    what: str
    paid: bool
    epsilon: float
    so_far: float
    share: float
    part: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What an account has paid for.

    Parameters
    ----------
    account : str
        The account.
    budget_epsilon, budget_delta : float
        The most it may spend.
    spent_epsilon, remaining_epsilon : float
        What questions and training runs together cost, and the largest single question that still fits.
    guarantee : Guarantee
        The promise for everything it has released.
    head : str
        The digest of the ledger's last entry.
    lines : tuple of BillLine
        The questions and replays, oldest first.
    """

    account: str
    budget_epsilon: float
    budget_delta: float
    spent_epsilon: float
    remaining_epsilon: float
    guarantee: Guarantee
    head: str
    lines: tuple[BillLine, ...]

    @property
    def sentence(self) -> str:
        """The state of the account in a sentence."""
        paid = sum(line.paid for line in self.lines)
        replayed = len(self.lines) - paid
        again = f", {replayed} stored answer{'s' if replayed != 1 else ''} handed out again for nothing" if replayed else ""
        return (
            f"{paid} question{'s' if paid != 1 else ''} paid{again}: ε = {rounded_up(self.spent_epsilon)} spent of "
            f"{rounded_up(self.budget_epsilon)} (δ = {rounded_up(self.budget_delta)}). The largest question that still "
            f"fits is ε = {rounded_down(self.remaining_epsilon)}."
        )


def bill_of(statement: StatementFacts) -> Bill:
    """The bill in a ledger's statement (``data.budget``)."""
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


def _promise(statement: StatementFacts) -> Guarantee:
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


def _part_text(part: PartFacts | None) -> str:
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
