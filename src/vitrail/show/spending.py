"""What was spent: an account's bill as a picture and a table."""

from __future__ import annotations

from .._types import Figure
from ..accounting import rounded_up
from ..accounting.guarantee import BILL_HEADER, Bill
from .style import AMBER, GLASS, INK, new_axes, put_labels
from .text_tables import Table

MOST_NAMED = 12


def budget_figure(bill: Bill) -> Figure:
    """Epsilon spent after each paid question, under the budget's line."""
    paid, before = [line for line in bill.lines if line.paid], bill.n_earlier or 0
    figure, axes = new_axes(6.6, 2.6)
    n_questions = len(paid)
    start = 0.0 if not before else paid[0].so_far if paid else bill.spent_epsilon
    heights = [start, *(line.so_far for line in paid)]
    edges = range(before, before + n_questions + 2)  # the last level goes on for one question's width
    axes.fill_between(edges, [*heights, heights[-1]], step="post", color=GLASS, alpha=0.25, linewidth=0)
    axes.step(edges, [*heights, heights[-1]], where="post", color=GLASS, linewidth=1.8)
    axes.axhline(bill.budget_epsilon, color=AMBER, linewidth=1.6)
    axes.text(
        before, bill.budget_epsilon, f"budget ε = {rounded_up(bill.budget_epsilon)}", color=AMBER, fontsize=8.5, va="bottom"
    )
    spent = f"spent ε = {rounded_up(bill.spent_epsilon)}"
    axes.text(edges[-1], heights[-1], spent, color=INK, fontsize=8.5, va="bottom", ha="right")
    axes.set_ylim(0, bill.budget_epsilon * 1.15)
    axes.set_xlim(before, edges[-1])
    named = n_questions <= MOST_NAMED and not before
    if named:
        axes.set_xticks(edges[:-1], ["opened", *(f"entry {line.seq}" for line in paid)], ha="left")
    put_labels(axes, "" if named else "questions paid", "ε spent so far")
    return figure


def bill_table(bill: Bill) -> Table:
    """The bill, line by line."""
    return Table(BILL_HEADER, bill.cells, numeric=(0, 4, 5, 6))
