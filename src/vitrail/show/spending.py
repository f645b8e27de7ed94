"""What several methods spend as questions go on: one line each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ..accounting import Cost, epsilon_of, rounded_up
from ..errors import InvalidInput
from .attributions import RAISES, check_most
from .histograms import shortened
from .images import AMBER, GLASS, INK, RULE, SOFT, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = (GLASS, RAISES, "#4f7f52", "#7a5c99", "#3d8f93", "#8a6d3b", INK, SOFT)
_MOST_PLACES = 240
_LEAST_GAP = 0.07


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
    check_most(n_queries, "n_queries")
    figure = new_figure(6.6, 3.0)
    axes = figure.add_subplot()
    quiet(axes)
    places = _places(n_queries)
    ends: list[tuple[float, str, str]] = []
    for number, (name, each) in enumerate(costs.items()):
        color = _COLORS[number % len(_COLORS)]
        spent = _spent(each, places, delta)
        style = "-" if number < len(_COLORS) else "--"
        axes.plot(places, spent, color=color, linewidth=1.8, linestyle=style, label=name)
        ends.append((spent[-1], f"{shortened(name, 28)}  ε = {rounded_up(spent[-1])}", color))
    top = max(height for height, _, _ in ends)
    if budget_epsilon is not None:
        top = max(top, budget_epsilon)
        axes.axhline(budget_epsilon, color=AMBER, linewidth=1.4)
        axes.text(0, budget_epsilon, f" budget ε = {rounded_up(budget_epsilon)}", color=AMBER, fontsize=8.5, va="bottom")
    axes.set_ylim(0, 1.1 * top or 1.0)
    axes.set_xlim(0, max(1, n_queries))
    _name_lines(figure, ends)
    axes.set_xlabel("questions asked", fontsize=8.5, color=SOFT)
    axes.set_ylabel(f"ε spent so far, at δ = {rounded_up(delta)}", fontsize=8.5, color=SOFT)
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure


def _places(n_queries: int) -> list[int]:
    """Numbers of questions at which the lines are computed: all of few, evenly spread ones of many."""
    if n_queries <= _MOST_PLACES:
        return list(range(n_queries + 1))
    return sorted({0, 1, *(round(n_queries * step / _MOST_PLACES) for step in range(_MOST_PLACES + 1))})


def _spent(costs: Sequence[Cost], places: Sequence[int], delta: float) -> list[float]:
    """Epsilon after so many questions: Gaussian parts add in squares, fixed blocks as they are."""
    sums = [Cost()]
    for cost in costs:
        sums.append(sums[-1] + cost)
    reached = [sums[min(place, len(costs))] for place in places]
    return [_epsilon(cost.mu, delta) + cost.block_epsilon for cost in reached]


@lru_cache(maxsize=4096)
def _epsilon(mu: float, delta: float) -> float:
    return epsilon_of(mu, delta) if mu else 0.0


def _name_lines(figure: Figure, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write each method's name at the end of its line, moved apart where they would meet."""
    axes = figure.axes[0]
    top = axes.get_ylim()[1]
    reached = -math.inf
    for height, text, color in sorted(ends):
        reached = max(height / top, reached + _LEAST_GAP)
        axes.annotate(
            text, (1.01, reached), xycoords="axes fraction", color=color, fontsize=8.5, va="center", parse_math=False
        )
