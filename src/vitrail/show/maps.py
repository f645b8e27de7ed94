"""Maps of a locally linear model as pictures: a row per class, or one input beside the maps that decided."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .attributions import LOWERS, RAISES, Attribution
from .images import INK, RULE, SOFT, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
MOST_BARS = 12


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
    size = 0.85 if shape is not None else 2.1
    height = size if shape is not None else max(1.2, 0.16 * min(len(features), MOST_BARS) + 0.6)
    label_room = 0.0 if shape is not None else 1.6
    figure = new_figure(size * across + 0.9 + label_room, height * len(maps) + 0.9)
    axes = figure.subplots(len(maps), across, squeeze=False)
    order = None if shape is not None else _largest([m for row in maps for m in row])
    for r, row in enumerate(maps):
        limit = max((float(np.abs(one).max()) for one in row), default=1.0) or 1.0
        for c in range(across):
            place = axes[r, c]
            if c >= len(row):
                place.set_axis_off()
                continue
            if shape is not None:
                picture(place, row[c], shape)
            else:
                assert order is not None
                _bars(place, row[c][order], [features[at] for at in order], limit, named=c == 0)
            if weights is not None:
                place.set_title(f"{weights[r][c]:.2f}", fontsize=7, color=SOFT, pad=2)
        if shape is not None:
            axes[r, 0].set_ylabel(_short(classes[r]), fontsize=9, color=INK, rotation=0, ha="right", va="center", labelpad=6)
        else:
            axes[r, 0].set_title(_short(classes[r]), fontsize=9, color=INK, loc="left")
    _foot(figure, footer)
    return figure


def attribution_figure(
    told: Attribution,
    *,
    point: Floats | None,
    maps: Sequence[Floats],
    weights: Sequence[float],
    average: Floats,
    features: Sequence[str],
    label: str,
    shape: tuple[int, int] | None = None,
    footer: str = "",
) -> Figure:
    """One input, the maps that decided with their weights, their weighted average, and the contributions."""
    if shape is None:
        figure = new_figure(3.0 + 2.6 * (len(maps) + 1), 0.2 * min(len(features), MOST_BARS) + 1.4)
        axes = figure.subplots(1, len(maps) + 2, squeeze=False)[0]
        order = _largest([average])
        names = [features[at] for at in order]
        values = np.array(told.values)
        shown = np.argsort(-np.abs(values), kind="stable")[:MOST_BARS]
        said = [f"{told.names[at]} = {told.shown[at]}" for at in shown]
        _bars(axes[0], values[shown], said, float(np.abs(values).max()) or 1.0)
        axes[0].set_title(f"contributions to {_short(label)}", fontsize=8, color=INK)
        limit = max(float(np.abs(one).max()) for one in (*maps, average)) or 1.0
        _bars(axes[1], average[order], names, limit)
        axes[1].set_title("weighted average map", fontsize=8, color=INK)
        for place, one, weight in zip(axes[2:], maps, weights, strict=True):
            _bars(place, one[order], names, limit, named=False)
            place.set_title(f"weight {weight:.2f}", fontsize=8, color=SOFT)
        _foot(figure, footer)
        return figure
    if point is None or point.size != shape[0] * shape[1]:
        raise InvalidInput(f"shape is {shape} and the input has {len(told.names)} columns; give the shape of the picture")
    figure = new_figure(1.35 * (len(maps) + 3), 2.1)
    axes = figure.subplots(1, len(maps) + 3, squeeze=False)[0]
    axes[0].imshow(point.reshape(shape), cmap="gray_r", interpolation="nearest")
    _bare(axes[0])
    axes[0].set_title(f"input: {_short(label)}", fontsize=8, color=INK)
    for place, one, weight in zip(axes[1:-2], maps, weights, strict=True):
        picture(place, one, shape)
        place.set_title(f"map, weight {weight:.2f}", fontsize=8, color=SOFT)
    picture(axes[-2], average, shape)
    axes[-2].set_title("average map", fontsize=8, color=INK)
    picture(axes[-1], np.array(told.values), shape)
    axes[-1].set_title("contributions", fontsize=8, color=INK)
    _foot(figure, footer)
    return figure


def picture(axes: Axes, one: Floats, shape: tuple[int, int]) -> None:
    """One map, colours centred at zero."""
    if one.size != shape[0] * shape[1]:
        raise InvalidInput(f"shape is {shape}, that is {shape[0] * shape[1]} pixels, and a map has {one.size} numbers")
    limit = float(np.abs(one).max()) or 1.0
    axes.imshow(one.reshape(shape), cmap=_colours(), vmin=-limit, vmax=limit, interpolation="nearest")
    _bare(axes)


def _bars(axes: Axes, values: Floats, names: Sequence[str], limit: float, named: bool = True) -> None:
    places = np.arange(len(values))[::-1]
    axes.barh(places, values, color=[RAISES if value > 0 else LOWERS for value in values], height=0.7)
    axes.set_xlim(-1.05 * limit, 1.05 * limit)
    axes.axvline(0, color=RULE, linewidth=0.8)
    axes.set_yticks(places, [_short(name) for name in names] if named else [])
    quiet(axes)


def _largest(maps: Sequence[Floats]) -> list[int]:
    sizes = np.max(np.abs(np.array(maps)), axis=0)
    return [int(at) for at in np.argsort(-sizes, kind="stable")[:MOST_BARS]]


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(RULE)


def _foot(figure: Figure, footer: str) -> None:
    if footer:
        wide = max(40, int(figure.get_size_inches()[0] * 17))
        figure.supxlabel("\n".join(textwrap.wrap(footer, wide)), fontsize=6.5, color=SOFT, x=0.01, ha="left")


def _colours() -> LinearSegmentedColormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("maps", [LOWERS, "#ffffff", RAISES])
