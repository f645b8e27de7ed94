"""The running totals of an account and its analysts: add a cost or refuse it, and give back what was never used.

A cost to one of several disjoint parts of the rows counts by the rule of ``accounting.parallel``: of each partition the
dearest part, for the account and for every analyst's cap.
"""

from __future__ import annotations

from dataclasses import replace

from ..accounting import Cost, dearest, exposure
from ..errors import LedgerError
from .allowance import fits, refusal
from .book import AccountRow, AnalystRow, Book, PartRow
from .entries import Part


def spend(book: Book, row: AccountRow, cost: Cost, part: Part | None) -> AccountRow:
    """The account's row with ``cost`` spent, for the caller to write; or :class:`BudgetExceeded`."""
    return replace(row, spent=_added(book, row, None, row.spent, row.capacity, cost, part))


def count(book: Book, row: AccountRow, analyst: str, cost: Cost, part: Part | None) -> None:
    """Count ``cost`` against the analyst's cap, or raise :class:`BudgetExceeded`."""
    line = book.analyst(row.account, analyst) or AnalystRow(row.account, analyst, Cost())
    book.put_analyst(replace(line, spent=_added(book, row, analyst, line.spent, line.capacity, cost, part)))


def give_back(book: Book, row: AccountRow, cost: Cost, part: Part | None) -> AccountRow:
    """The account's row with ``cost`` no longer spent, for the caller to write."""
    return replace(row, spent=_less(book, row.account, "", row.spent, cost, part))


def uncount(book: Book, row: AccountRow, analyst: str, cost: Cost, part: Part | None) -> None:
    """Take ``cost`` off what counts against the analyst's cap."""
    line = book.analyst(row.account, analyst) or AnalystRow(row.account, analyst, Cost())
    book.put_analyst(replace(line, spent=_less(book, row.account, analyst, line.spent, cost, part)))


def _added(
    book: Book, row: AccountRow, analyst: str | None, spent: Cost, capacity: Cost | None, cost: Cost, part: Part | None
) -> Cost:
    """The total after ``cost``, or a refusal. Without an analyst it is the account's own."""
    exposed = spent
    if part is not None:
        costs = _part_costs(book, row.account, analyst or "", part)
        exposed = exposure(spent, costs, part.index)
    if capacity is not None and not fits(exposed, cost, capacity):
        delta = row.budget.question_delta
        raise refusal(cost, exposed, capacity, account=row.account, delta=delta, analyst=analyst, part=part)
    if part is None:
        return spent + cost
    return _with_part(book, row.account, analyst or "", spent, costs, part, costs.get(part.index, Cost()) + cost)


def _less(book: Book, account: str, analyst: str, spent: Cost, cost: Cost, part: Part | None) -> Cost:
    if part is None:
        return cost.left_of(spent)
    costs = _part_costs(book, account, analyst, part)
    return _with_part(book, account, analyst, spent, costs, part, cost.left_of(costs.get(part.index, Cost())))


def _with_part(book: Book, account: str, analyst: str, spent: Cost, costs: dict[int, Cost], part: Part, own: Cost) -> Cost:
    """The total once the part has cost ``own``, which is written."""
    book.put_part(PartRow(account, analyst, part, own))
    return dearest(costs.values()).left_of(spent) + dearest({**costs, part.index: own}.values())


def _part_costs(book: Book, account: str, analyst: str, part: Part) -> dict[int, Cost]:
    """What was spent on each part of the partition, by index, if it is described as before."""
    rows = book.parts_of(account, analyst, part.partition)
    for known in (row.part for row in rows):
        if (known.name, known.count) != (part.name, part.count):
            raise LedgerError(
                f"The partition {part.partition[:12]} of account {account!r} is known as {known.name!r} with "
                f"{known.count} parts; now it comes as {part.name!r} with {part.count}."
            )
    return {row.part.index: row.spent for row in rows}
