"""ROC curves of attacks, on logarithmic axes by default: a few people found for sure matter more than the average.

Explanations in blue, predictions in amber, whatever else in grey; solid lines for the strongest of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from .images import AMBER, GLASS, INK, RULE, SOFT, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOWEST_RATE = 1e-4
COLOURS = {"explanation": GLASS, "prediction": AMBER}
STYLES = ("-", "--", ":", "-.")


@dataclass(frozen=True, slots=True)
class RocShape:
    """One curve as plain numbers: false and true positive rates, both rising.

    Examples
    --------
    >>> figure = roc_figure([RocShape("threshold", "explanation", (0.0, 0.1, 1.0), (0.0, 0.4, 1.0))])
    >>> figure.axes[0].get_xscale()
    'log'
    """

    name: str
    source: str
    false_positive_rate: tuple[float, ...]
    true_positive_rate: tuple[float, ...]


def roc_figure(shapes: Sequence[RocShape], *, logarithmic: bool = True) -> Figure:
    """True over false positive rate for every attack; the thin line is a coin."""
    if not shapes:
        raise InvalidInput("there is no curve to draw; give at least one")
    figure = new_figure(5.2, 4.9)
    axes = figure.add_subplot()
    quiet(axes)
    axes.spines["left"].set_visible(True)
    axes.spines["left"].set_color(RULE)
    low = LOWEST_RATE if logarithmic else 0.0
    axes.plot([max(low, 1e-9), 1], [max(low, 1e-9), 1], color=RULE, linewidth=1)
    used: dict[str, int] = {}
    for shape in shapes:
        place = used.get(shape.source, 0)
        used[shape.source] = place + 1
        axes.step(
            [max(rate, low) for rate in shape.false_positive_rate],
            [max(rate, low) for rate in shape.true_positive_rate],
            where="post",
            color=COLOURS.get(shape.source, SOFT),
            linestyle=STYLES[place % len(STYLES)],
            linewidth=1.6 if place == 0 else 1.1,
            label=shape.name,
        )
    if logarithmic:
        axes.set(xscale="log", yscale="log", xlim=(LOWEST_RATE, 1), ylim=(LOWEST_RATE, 1.05))
    else:
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.set_xlabel("non-members accused", fontsize=9, color=INK)
    axes.set_ylabel("members found", fontsize=9, color=INK)
    axes.grid(color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", fontsize=8, frameon=False, ncols=1)
    return figure
