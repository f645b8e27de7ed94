"""The running totals of accounts and analysts: add a cost or refuse it, and give back what was never used.

A cost to one of several disjoint parts of the rows counts by the rule of ``accounting.cost``: of each partition the
dearest part, for the account and for every analyst's cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from ..accounting import Cost, JsonValue, dearest, exposure
from ..errors import LedgerError
from .allowance import fits, refusal
from .book import Book
from .entries import Part, check_name, check_part, check_question
from .tables import AccountRow, AnalystRow, PartRow

_Total = TypeVar("_Total", AccountRow, AnalystRow)


def account_asked(
    book: Book, account: str, analyst: str, question: Mapping[str, JsonValue], part: Part | None
) -> AccountRow:
    """The account's row, locked, for a question that makes sense."""
    check_name(analyst, "an analyst")
    check_question(question)
    row = book.locked(account)
    if part is not None:
        check_part(part, row.neighbours)
    return row


def analyst_row(book: Book, account: str, analyst: str) -> AnalystRow:
    """The analyst's row, or that of one who has spent nothing."""
    return book.get(AnalystRow, account=account, analyst=analyst) or AnalystRow(account, analyst, Cost())


def spend(book: Book, row: _Total, cost: Cost, part: Part | None, delta: float) -> _Total:
    """The row with ``cost`` spent, for the caller to write, or :class:`BudgetExceeded` in epsilons at ``delta``."""
    costs = _part_costs(book, row, part)
    exposed = row.spent if part is None else exposure(row.spent, costs, part.index)
    if row.capacity is not None and not fits(exposed, cost, row.capacity):
        analyst = row.analyst if isinstance(row, AnalystRow) else None
        raise refusal(cost, exposed, row.capacity, account=row.account, delta=delta, analyst=analyst, part=part)
    if part is None:
        return replace(row, spent=row.spent + cost)
    return _with_part(book, row, costs, part, costs.get(part.index, Cost()) + cost)


def give_back(book: Book, row: _Total, cost: Cost, part: Part | None) -> _Total:
    """The row with ``cost`` no longer spent, for the caller to write."""
    if part is None:
        return replace(row, spent=cost.left_of(row.spent))
    costs = _part_costs(book, row, part)
    return _with_part(book, row, costs, part, cost.left_of(costs.get(part.index, Cost())))


def _with_part(book: Book, row: _Total, costs: dict[int, Cost], part: Part, own: Cost) -> _Total:
    """The row once the part has cost ``own``, which is written."""
    book.put(PartRow(row.account, _whose(row), part.partition, part.index, part.count, part.name, own))
    others = dearest(costs.values()).left_of(row.spent)
    return replace(row, spent=others + dearest({**costs, part.index: own}.values()))


def _part_costs(book: Book, row: AccountRow | AnalystRow, part: Part | None) -> dict[int, Cost]:
    """What was spent on each part of the partition, by index, if it is described as before."""
    if part is None:
        return {}
    rows = book.rows(PartRow, account=row.account, analyst=_whose(row), partition_id=part.partition)
    for known in (kept.part for kept in rows):
        if (known.name, known.count) != (part.name, part.count):
            raise LedgerError(
                f"The partition {part.partition[:12]} of account {row.account!r} is known as {known.name!r} with "
                f"{known.count} parts; now it comes as {part.name!r} with {part.count}."
            )
    return {kept.part_index: kept.spent for kept in rows}


def _whose(row: AccountRow | AnalystRow) -> str:
    """The analyst of a part's row: empty for the account itself."""
    return row.analyst if isinstance(row, AnalystRow) else ""
