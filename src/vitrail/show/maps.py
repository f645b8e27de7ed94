"""Maps of a locally linear model: a row per class, or one input beside the maps that decided."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._types import Floats
from ..errors import InvalidInput
from ..results import Attribution
from .style import INK, LOWERS, RAISES, RULE, SOFT, bare, draw_pixels, new_figure, quiet
from .tables import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 12
LONGEST_NAME = 24


def filters_figure(
    maps: Sequence[Sequence[Floats]],
    classes: Sequence[str],
    features: Sequence[str],
    *,
    shape: tuple[int, int] | None = None,
    weights: Sequence[Sequence[float]] | None = None,
    footer: str = "",
) -> Figure:
    """A row of maps for each class, heaviest first.

    Parameters
    ----------
    maps : sequence of sequences of arrays (n_features,)
        The maps to show, class by class.
    classes, features : sequences of str
        Names.
    shape : (int, int), optional
        Draw each map as a picture of this height and width; otherwise as bars over the features.
    weights : sequence of sequences of float, optional
        How much each map is used.
    footer : str
        What stands below.
    """
    across = max(len(row) for row in maps)
    bars_height = max(1.2, 0.16 * min(len(features), MOST_BARS) + 0.6)
    width, height = (2.1 * across + 2.5, bars_height) if shape is None else (0.85 * across + 0.9, 0.85)
    figure = new_figure(width, height * len(maps) + 0.9)
    axes = figure.subplots(len(maps), across, squeeze=False)
    order = _largest([values for row in maps for values in row])
    for r, row in enumerate(maps):
        limit = max((float(np.abs(values).max()) for values in row), default=1.0) or 1.0
        for c in range(across):
            if c >= len(row):
                axes[r, c].set_axis_off()
            elif shape is None:
                _bars(axes[r, c], row[c][order], [features[j] for j in order] if c == 0 else [], limit)
            else:
                draw_map(axes[r, c], row[c], shape)
            if weights is not None and c < len(row):
                axes[r, c].set_title(f"{weights[r][c]:.2f}", fontsize=7, color=SOFT, pad=2)
        name = shortened(classes[r], LONGEST_NAME)
        if shape is None:
            axes[r, 0].set_title(name, fontsize=9, color=INK, loc="left", parse_math=False)
        else:
            axes[r, 0].set_ylabel(
                name, fontsize=9, color=INK, rotation=0, ha="right", va="center", labelpad=6, parse_math=False
            )
    _put_promise(figure, footer)
    return figure


def map_figure(
    e: Attribution,
    maps: Sequence[Floats],
    weights: Sequence[float],
    label: str,
    *,
    shape: tuple[int, int] | None = None,
    footer: str = "",
) -> Figure:
    """One input, the maps that decided with their weights, their weighted average, and the contributions.

    Parameters
    ----------
    e : Attribution
        Of one input; its coefficients are the weighted average of the maps.
    maps, weights : sequences
        The heaviest maps, and how much each counted.
    label : str
        The class that was explained.
    shape : (int, int), optional
        Draw pictures of this height and width; otherwise bars.
    footer : str
        What stands below.
    """
    assert e.coefficients is not None
    name, average = shortened(label, LONGEST_NAME), e.coefficients[0]
    if shape is None:
        figure = new_figure(3.0 + 2.6 * (len(maps) + 1), 0.2 * min(len(e.features), MOST_BARS) + 1.4)
        axes = figure.subplots(1, len(maps) + 2, squeeze=False)[0]
        top = e.top(MOST_BARS)
        values = np.array([contribution.value for contribution in top])
        _bars(
            axes[0],
            values,
            [f"{contribution.column} = {contribution.shown}" for contribution in top],
            float(np.abs(values).max()) or 1.0,
        )
        order = _largest([average])
        limit = max(float(np.abs(values).max()) for values in (*maps, average)) or 1.0
        _bars(axes[1], average[order], [e.features[j] for j in order], limit)
        for panel, values in zip(axes[2:], maps, strict=True):
            _bars(panel, values[order], [], limit)
        titles = [f"contributions to {name}", "weighted average map", *(f"weight {weight:.2f}" for weight in weights)]
    else:
        if len(e.columns) != shape[0] * shape[1]:
            raise InvalidInput(f"shape is {shape} and the input has {len(e.columns)} columns; give the shape of the picture")
        figure = new_figure(1.35 * (len(maps) + 3), 2.1)
        axes = figure.subplots(1, len(maps) + 3, squeeze=False)[0]
        point = np.array([e.points[0][column] for column in e.columns], dtype=np.float64)
        axes[0].imshow(point.reshape(shape), cmap="gray_r", interpolation="nearest")
        bare(axes[0])
        for panel, values in zip(axes[1:], (*maps, average, e.values[0]), strict=True):
            draw_map(panel, values, shape)
        titles = [f"input: {name}", *(f"map, weight {weight:.2f}" for weight in weights), "average map", "contributions"]
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title, fontsize=8, color=INK, parse_math=False)
    _put_promise(figure, footer)
    return figure


def draw_map(axes: Axes, values: Floats, shape: tuple[int, int]) -> None:
    """One map as a picture, colours centred at zero."""
    if values.size != shape[0] * shape[1]:
        raise InvalidInput(f"shape is {shape}, that is {shape[0] * shape[1]} pixels, and a map has {values.size} numbers")
    draw_pixels(axes, values.reshape(shape))


def _bars(axes: Axes, values: Floats, names: Sequence[str], limit: float) -> None:
    """Lying bars on a scale from ``-limit`` to ``limit``, the first on top; no names where none are given."""
    quiet(axes)
    rows = np.arange(len(values))
    axes.barh(rows, values, color=[RAISES if value > 0 else LOWERS for value in values], height=0.7)
    axes.set_xlim(-1.05 * limit, 1.05 * limit)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.axvline(0, color=RULE, linewidth=0.8)
    axes.set_yticks(rows if names else [], [shortened(name, LONGEST_NAME) for name in names], parse_math=False)


def _largest(maps: Sequence[Floats]) -> list[int]:
    """Numbers of the features with the largest entries in any map."""
    sizes = np.max(np.abs(np.array(maps)), axis=0)
    return [int(j) for j in np.argsort(-sizes, kind="stable")[:MOST_BARS]]


def _put_promise(figure: Figure, text: str) -> None:
    """The promise in small letters, in lines as wide as the figure."""
    if text:
        wide = max(40, int(figure.get_size_inches()[0] * 17))
        figure.supxlabel("\n".join(textwrap.wrap(text, wide)), fontsize=6.5, color=SOFT, x=0.01, ha="left")
