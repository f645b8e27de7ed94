"""A picture of the budget: what was spent over the questions, and the line that cannot be crossed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..accounting import rounded_up
from .bill import Bill
from .images import AMBER, GLASS, INK, SOFT, new_figure, quiet
from .report import Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMED = 12


def budget_figure(bill: Bill) -> Figure:
    """Epsilon spent after each paid question, under the budget's line."""
    paid = [line for line in bill.lines if line.paid]
    figure = new_figure(6.6, 2.6)
    axes = figure.add_subplot()
    quiet(axes)
    places = list(range(len(paid) + 1))
    heights = [0.0, *(line.so_far for line in paid)]
    axes.fill_between(places, heights, step="post", color=GLASS, alpha=0.25, linewidth=0)
    axes.step(places, heights, where="post", color=GLASS, linewidth=1.8)
    axes.plot([places[-1], places[-1] + 1], [heights[-1]] * 2, color=GLASS, linewidth=1.8)
    axes.fill_between([places[-1], places[-1] + 1], heights[-1], color=GLASS, alpha=0.25, linewidth=0)
    axes.axhline(bill.budget_epsilon, color=AMBER, linewidth=1.6)
    axes.text(
        0, bill.budget_epsilon, f"budget ε = {rounded_up(bill.budget_epsilon)}", color=AMBER, fontsize=8.5, va="bottom"
    )
    axes.text(
        places[-1] + 1,
        heights[-1],
        f"spent ε = {rounded_up(bill.spent_epsilon)}",
        color=INK,
        fontsize=8.5,
        va="bottom",
        ha="right",
    )
    axes.set_ylim(0, bill.budget_epsilon * 1.15)
    axes.set_xlim(0, places[-1] + 1)
    axes.set_ylabel("ε spent so far", fontsize=8.5, color=SOFT)
    if len(paid) <= MOST_NAMED:
        axes.set_xticks(places, ["opened", *(f"entry {line.seq}" for line in paid)])
    else:
        axes.set_xlabel("questions paid", fontsize=8.5, color=SOFT)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("left")
    return figure


def bill_table(bill: Bill) -> Table:
    """The bill, line by line."""
    rows = tuple(
        (
            str(line.seq),
            line.time_utc[:19].replace("T", " "),
            line.analyst,
            line.what,
            rounded_up(line.epsilon) if line.paid else "free",
            rounded_up(line.so_far),
            f"{100 * line.share:.1f} %" if line.share else "",
        )
        for line in bill.lines
    )
    return Table(("entry", "time (UTC)", "analyst", "question", "ε", "ε so far", "of budget"), rows, numeric=(0, 4, 5, 6))


def bill_section(bill: Bill, title: str = "The bill") -> Section:
    """The bill and its picture, for a report."""
    text = (
        f"Every question that account {bill.account!r} has paid for. Each is charged before any row is read, and nothing is "
        "refunded. Epsilons of several questions do not add up, their squares of mu do: that is the last column."
    )
    picture = Picture(budget_figure(bill), f"Budget picture. {bill.sentence}")
    return Section(title, (text,), (bill_table(bill),), (picture,))
