"""Whose rows a command asks and who pays: what the commands that ask share, before and after the question.

Everything public is tried on a *rehearsal* first: the same declarations with no rows and a ledger that is forgotten.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..accounting import Cost, epsilon_of, rounded_down, rounded_up
from ..errors import InvalidInput, LedgerError, LedgerWarning
from ..guarantee import Budget
from ..schema import Schema
from .ask_input import private_rows_of
from .output import existing, open_existing_ledger, print_note

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..vault import PrivateData

PACKAGE = Path(__file__).resolve().parents[1]
Found = TypeVar("Found")
STILL_PAID = (
    ". It was paid for; the ledger keeps the releases of a model that is a file, and the same command again costs nothing"
)
"""What is said after a paid answer could not be written."""


@dataclass(frozen=True)
class Declared:
    """A dataset as the command line declares it, and the ledger that its account is in."""

    path: Path
    schema: Schema
    name: str
    target: str | None
    rows: int
    budget: Budget
    neighbours: str
    ledger: str
    analyst: str
    account: str | None
    version: str

    def __post_init__(self) -> None:
        if self.ledger == "memory":
            raise InvalidInput(
                "--ledger is 'memory', which would forget the bill when this command ends; name a file, such as l.db"
            )

    @property
    def ledger_is_new(self) -> bool:
        """Whether the ledger is a file that is not there yet."""
        file = self.ledger.removeprefix("sqlite:///")
        return "://" not in file and not Path(file).exists()

    def rehearsal(self) -> PrivateData:
        """No rows, and a ledger that is forgotten: whatever is wrong with the options is found here."""
        return self._opened({column: [] for column in self.schema}, "memory")

    def opened(self) -> PrivateData:
        """The rows, with their account."""
        source = private_rows_of(self.path, self.schema)
        if self.ledger_is_new:
            print_note(
                f"Note: {self.ledger} is a new ledger. If this data was asked about before, use the ledger that knows of it."
            )
        return with_notes(lambda: self._opened(source, self.ledger))

    def statement(self, expected: Statement) -> Statement:
        """The account as it stands, or ``expected`` where it was not opened yet: a quote opens none."""
        if self.ledger_is_new:
            return expected
        account = self.account or self.name
        with closing(open_existing_ledger(self.ledger)) as opened:
            if account not in opened.accounts():
                return expected
            found = opened.statement(account)
        if (found.budget, found.neighbours) != (expected.budget, expected.neighbours):
            raise LedgerError(
                f"Account {account!r} has {found.budget} and neighbours {found.neighbours!r}; the options say "
                f"{expected.budget} and {expected.neighbours!r}. A budget never changes once it is set: give the account's "
                "own values."
            )
        return found

    def _opened(self, source: object, ledger: str) -> PrivateData:
        from ..vault import PrivateData

        return PrivateData(
            source,
            self.schema,
            name=self.name,
            target=self.target,
            n_rows_public=self.rows,
            budget=self.budget,
            neighbours=self.neighbours,
            ledger=ledger,
            analyst=self.analyst,
            account=self.account,
            version=self.version,
        )


def declared_of(
    data: Path,
    schema: Path,
    rows: int,
    budget: float,
    delta: float,
    ledger: str,
    target: str | None,
    neighbours: str | None,
    name: str | None,
    account: str | None,
    analyst: str,
    version: str,
) -> Declared:
    """What the options of `vitrail.cli.options` declare together."""
    return Declared(
        path=data,
        schema=Schema.load(existing(schema, "schema")),
        name=name or data.stem,
        target=target,
        rows=rows,
        budget=Budget(budget, delta),
        neighbours=neighbours or "add-remove",
        ledger=ledger,
        analyst=analyst,
        account=account,
        version=version,
    )


def bill_line(now: Statement, cost: Cost, *, replayed: bool) -> str:
    """What an answer cost, and what is left. What it reveals may be more, and is its promise."""
    epsilon = epsilon_of(cost.mu, now.delta)
    paid = "was stored already and cost nothing" if replayed else f"cost epsilon {rounded_up(epsilon)}"
    return (
        f"The answer {paid}. Spent so far: epsilon {rounded_up(now.spent_epsilon)} of {rounded_up(now.budget.epsilon)}; "
        f"a question of up to epsilon {rounded_down(now.remaining_epsilon)} still fits."
    )


def fits_line(fits: bool, statement: Statement) -> str:
    """The last sentence of a quote."""
    return (
        f"It {'fits' if fits else 'does not fit'}: the largest question that account {statement.account!r} can still pay "
        f"for is epsilon {rounded_down(statement.remaining_epsilon)}. Nothing was charged."
    )


def with_notes(explain: Callable[[], Found]) -> Found:
    """Explain; what the library warns of becomes a note. Other packages' warnings are dropped: they may be about rows."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = explain()
    ours = [one for one in seen if one.category is UserWarning and Path(one.filename).is_relative_to(PACKAGE)]
    ours += [one for one in seen if one.category is LedgerWarning]  # it names the line that called the library
    for text in dict.fromkeys(str(one.message) for one in ours):
        print_note(f"Note: {text}")
    return found


def charged_since(statement: Statement, last: int) -> bool:
    """Whether anything was charged after entry ``last``."""
    return any(entry.kind == "charged" and entry.seq > last for entry in statement.entries)
