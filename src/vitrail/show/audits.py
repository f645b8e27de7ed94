"""Audits: ROC curves of attacks, and pages of what was attacked and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .._types import Figure
from ..accounting import JsonValue
from ..errors import InvalidInput
from .style import AMBER, GLASS, INK, RULE, SOFT, name_rows, new_axes, put_labels, render

LOWEST_RATE = 1e-4
COLORS = {"explanation": GLASS, "prediction": AMBER}
LINES = ("-", "--", ":", "-.")


@dataclass(frozen=True, slots=True)
class RocCurve:
    """The curve of one attack: false and true positive rates, both rising.

    Examples
    --------
    >>> figure = roc_figure([RocCurve("threshold", "explanation", (0.0, 0.1, 1.0), (0.0, 0.4, 1.0))])
    >>> figure.axes[0].get_xscale()
    'log'
    """

    name: str
    source: str
    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]


def roc_figure(curves: Sequence[RocCurve], *, logarithmic: bool = True) -> Figure:
    """True over false positive rate for every attack; the thin line is a coin.

    On logarithmic axes by default: a few people found for sure matter more than the average. Explanations are blue,
    predictions amber, all else grey; the first curve of each is solid.
    """
    if not curves:
        raise InvalidInput("there is no curve to draw; give at least one")
    figure, axes = new_axes(5.2, 4.9, "both")
    axes.spines["left"].set_visible(True)
    axes.spines["left"].set_color(RULE)
    low = LOWEST_RATE if logarithmic else 0.0
    axes.plot([max(low, 1e-9), 1], [max(low, 1e-9), 1], color=RULE, linewidth=1)
    n_drawn: dict[str, int] = {}
    for curve in curves:
        number = n_drawn.get(curve.source, 0)
        n_drawn[curve.source] = number + 1
        axes.step(
            [max(rate, low) for rate in curve.false_positive_rate],
            [max(rate, low) for rate in curve.true_positive_rate],
            where="post",
            color=COLORS.get(curve.source, SOFT),
            linestyle=LINES[number % len(LINES)],
            linewidth=1.6 if number == 0 else 1.1,
            label=curve.name,
        )
    if logarithmic:
        axes.set(xscale="log", yscale="log", xlim=(LOWEST_RATE, 1), ylim=(LOWEST_RATE, 1.05))
    else:
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.tick_params(which="minor", length=0)
    put_labels(axes, "non-members accused", "members found")
    figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=1)
    return figure


def rising_figure(
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]], across: str, up: str, *, bound: float | None = None
) -> Figure:
    """Curves by name, and a thin line at what bounds them, if they come near it.

    Examples
    --------
    >>> figure = rising_figure([("walk", (1, 2, 3), (1, 1, 2))], "queries", "rows")
    >>> figure.axes[0].get_xlabel()
    'queries'
    """
    figure, axes = new_axes(5.2, 3.6, "y")
    highest = max((float(value) for _, _, y in curves for value in y), default=0.0) or 1.0
    if bound is not None and bound < 2 * highest:
        axes.axhline(bound, color=RULE, linewidth=1)
        highest = max(highest, bound)
    for number, (name, x, y) in enumerate(curves):
        axes.plot(x, y, color=(GLASS, AMBER, INK, SOFT)[number % 4], linestyle=LINES[number // 4 % len(LINES)], label=name)
    axes.set_ylim(0, 1.06 * highest)
    put_labels(axes, across, up)
    if len(curves) > 1:
        axes.legend(fontsize=8, frameon=False)
    return figure


def rates_figure(names: Sequence[str], rates: Sequence[tuple[float, float, float]], across: str, *, chance: float) -> Figure:
    """A dot with its interval for each rate; the thin line is what needs no knowledge.

    Examples
    --------
    >>> figure = rates_figure(["with", "without"], [(0.9, 0.8, 1.0), (0.7, 0.6, 0.8)], "agreement", chance=0.5)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['with', 'without']
    """
    figure, axes = new_axes(5.2, 0.9 + 0.4 * len(names), "x")
    places = name_rows(axes, names)
    axes.axvline(chance, color=SOFT, linewidth=1, linestyle=":")
    for place, (value, low, high) in zip(places, rates, strict=True):
        axes.plot([low, high], [place, place], color=GLASS, linewidth=1.6)
        axes.plot([value], [place], "o", color=GLASS, markersize=5)
    axes.set_xlim(0, 1)
    put_labels(axes, across)
    return figure


Kind = Literal["membership", "mechanism", "reconstruction", "influence", "extraction", "attribute"]


def audit_page(kind: Kind, fields: Mapping[str, JsonValue], figure: Figure | None = None) -> str:
    """The page of an audit, from what its ``to_json`` says and its picture."""
    return render(f"audit_{kind}.html", fields=fields, figure=figure, bill=None)
