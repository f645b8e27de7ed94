"""What was spent: an account's bill as a picture and a table, and what methods spend as questions go on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .. import _checks
from .._types import Axes, Figure
from ..accounting import Cost, epsilon_of, rounded_up
from ..errors import InvalidInput
from ..guarantee import Bill
from .style import AMBER, GLASS, INK, SERIES, new_figure, put_labels, quiet
from .tables import Table, shortened

MOST_NAMED = 12
_MOST_COMPUTED = 240
"""Numbers of questions at which a line is computed."""
_LEAST_GAP = 0.07


def budget_figure(bill: Bill) -> Figure:
    """Epsilon spent after each paid question, under the budget's line."""
    paid = [line for line in bill.lines if line.paid]
    figure = new_figure(6.6, 2.6)
    axes = figure.add_subplot()
    quiet(axes)
    n_questions = len(paid)
    heights = [0.0, *(line.so_far for line in paid)]
    edges = range(n_questions + 2)  # the last level goes on for one question's width
    axes.fill_between(edges, [*heights, heights[-1]], step="post", color=GLASS, alpha=0.25, linewidth=0)
    axes.step(edges, [*heights, heights[-1]], where="post", color=GLASS, linewidth=1.8)
    _budget_line(axes, bill.budget_epsilon)
    spent = f"spent ε = {rounded_up(bill.spent_epsilon)}"
    axes.text(edges[-1], heights[-1], spent, color=INK, fontsize=8.5, va="bottom", ha="right")
    axes.set_ylim(0, bill.budget_epsilon * 1.15)
    axes.set_xlim(0, edges[-1])
    if n_questions <= MOST_NAMED:
        axes.set_xticks(edges[:-1], ["opened", *(f"entry {line.seq}" for line in paid)], ha="left")
    put_labels(axes, "" if n_questions <= MOST_NAMED else "questions paid", "ε spent so far")
    return figure


def _budget_line(axes: Axes, epsilon: float) -> None:
    axes.axhline(epsilon, color=AMBER, linewidth=1.6)
    axes.text(0, epsilon, f"budget ε = {rounded_up(epsilon)}", color=AMBER, fontsize=8.5, va="bottom")


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


def budget_over_queries(
    costs: Mapping[str, Sequence[Cost]], *, delta: float, n_queries: int | None = None, budget_epsilon: float | None = None
) -> Figure:
    """Epsilon spent so far over the number of questions, one line for each method.

    Parameters
    ----------
    costs : mapping of str to sequence of Cost
        What each question cost, by method. Questions after the last one listed are free: a method that pays once has one.
    delta : float
        At which epsilons are stated.
    n_queries : int, optional
        How many questions; the longest of the lists if not given.
    budget_epsilon : float, optional
        A line that cannot be crossed.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> once, each = [Cost.of_mu(0.2)], [Cost.of_mu(0.05)] * 100
    >>> figure = budget_over_queries({"one synopsis": once, "per question": each}, delta=1e-6)
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['one synopsis', 'per question']
    """
    if not costs or not any(len(each) for each in costs.values()):
        raise InvalidInput("there are no costs to draw; give at least one method with at least one cost")
    if not 0 < delta < 1:
        raise InvalidInput(f"delta is {delta}; it must lie strictly between 0 and 1, for example 1e-6")
    if n_queries is None:
        n_queries = max(len(each) for each in costs.values())
    _checks.whole("n_queries", n_queries)
    figure = new_figure(6.6, 3.0)
    axes = figure.add_subplot()
    quiet(axes, "y")
    some = min(n_queries, _MOST_COMPUTED)
    counts = sorted({0, 1, *(round(n_queries * i / some) for i in range(some + 1))})
    ends: list[tuple[float, str, str]] = []
    for number, (name, each) in enumerate(costs.items()):
        color, style = SERIES[number % len(SERIES)], "-" if number < len(SERIES) else "--"
        spent = _spent(each, counts, delta)
        axes.plot(counts, spent, color=color, linewidth=1.8, linestyle=style, label=name)
        ends.append((spent[-1], f"{shortened(name, 28)}  ε = {rounded_up(spent[-1])}", color))
    top = max(*(height for height, _, _ in ends), budget_epsilon or 0.0)
    if budget_epsilon is not None:
        _budget_line(axes, budget_epsilon)
    axes.set_ylim(0, 1.1 * top or 1.0)
    axes.set_xlim(0, n_queries)
    _name_lines(axes, ends)
    put_labels(axes, "questions asked", f"ε spent so far, at δ = {rounded_up(delta)}")
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    return figure


def _spent(costs: Sequence[Cost], counts: Sequence[int], delta: float) -> list[float]:
    """Epsilon after so many questions: Gaussian parts add in squares, fixed blocks as they are."""
    sums = [Cost()]
    for cost in costs:
        sums.append(sums[-1] + cost)
    reached = [sums[min(count, len(costs))] for count in counts]
    return [_epsilon(cost.mu, delta) + cost.block_epsilon for cost in reached]


@lru_cache(maxsize=4096)
def _epsilon(mu: float, delta: float) -> float:
    return epsilon_of(mu, delta) if mu else 0.0


def _name_lines(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write each method's name at the end of its line, moved apart where they would meet."""
    top = axes.get_ylim()[1]
    reached = -math.inf
    for height, text, color in sorted(ends):
        reached = max(height / top, reached + _LEAST_GAP)
        axes.annotate(
            text, (1.01, reached), xycoords="axes fraction", color=color, fontsize=8.5, va="center", parse_math=False
        )
