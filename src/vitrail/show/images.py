"""Numbers of pixels as pictures: contributions laid over what they explain, and the maps of a locally linear model."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from .._types import Axes, Bools, Figure, Floats, Indices
from ..errors import InvalidInput
from ..results import Attribution
from ..schema import Picture
from . import style
from .text_tables import shortened

_GREY_WEIGHTS = (0.299, 0.587, 0.114)
"""How bright red, green and blue look (ITU-R BT.601)."""
_PANEL_INCHES = 2.9
MOST_BARS = 12
LONGEST_NAME = 24


def image_figure(e: Attribution, shape: tuple[int, int] | Picture, *, image: Floats | None, title: str) -> Figure:
    """The heat map of one point whose columns are pixels or regions; ``AttributionPlots.image`` says what is taken."""
    picture = shape if isinstance(shape, Picture) else Picture(shape)
    same = e.columns == picture.view_schema().names if picture is shape else len(e.columns) == picture.n_regions
    if not same:
        raise InvalidInput(
            f"shape is {picture.shape}, that is {picture.n_regions} {picture.parts}, and the explanation has "
            f"{len(e.columns)} columns ({e.columns[0]!r}, ...); give the shape, or the picture that the explanation was "
            "made with"
        )
    regions = picture.region_of_pixels
    certain, footer = np.ones(regions.shape, dtype=np.bool_), ""
    if e.lower is not None and e.upper is not None:
        sure = np.isin(e.columns, e.certain())
        certain = sure[regions]
        footer = (
            f"{int((~sure).sum())} of {len(e.columns)} {picture.parts} have no colour:\nthey may be noise alone, by the "
            f"{e.band_claim.bands} of all together"
        )
    if image is None:
        values = [e.points[0][name] for name in e.columns]
        if all(isinstance(value, int | float) for value in values):
            image = np.array(values, dtype=np.float64)[regions]
    outlined = regions if len(e.columns) < regions.size else None
    return _heat_figure(e.values[0][regions], image, certain, regions=outlined, title=title, footer=footer)


def _heat_figure(
    heat: Floats, image: Floats | None, certain: Bools, *, regions: Indices | None, title: str, footer: str
) -> Figure:
    """A heat map whose colours are centred at zero, over the picture in grey where there is one.

    A pixel that is not ``certain`` gets no colour. ``regions`` are outlined.
    """
    height, width = heat.shape
    panels = 1 if image is None else 2
    inches_high = min(6.0, max(1.6, _PANEL_INCHES * height / width)) + 0.75
    figure = style.new_figure(_PANEL_INCHES * panels + (1.6 if image is None else 0.9), inches_high)
    overlay = figure.add_subplot(1, panels, panels)
    size = float(np.abs(heat).max()) or 1.0
    opacity = np.ones(heat.shape)
    if image is not None:
        grey = _grey(image, (height, width))
        picture = figure.add_subplot(1, panels, 1)
        picture.imshow(grey, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        style.bare(picture, "the point")
        # Little contrast, light: colours have to be told apart on top of it.
        overlay.imshow(0.6 + 0.4 * grey, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        opacity = 0.2 + 0.75 * np.abs(heat) / size
    opacity = np.where(certain, opacity, 0.0)
    colored = overlay.imshow(
        heat, cmap=style.diverging_colors(), vmin=-size, vmax=size, alpha=opacity, interpolation="nearest"
    )
    overlay.set_facecolor(style.RULE)
    style.bare(overlay, "contributions")
    bar = style.color_bar(overlay, colored, shrink=0.8)
    if bar.solids is not None:
        bar.solids.set_alpha(1.0)
    if regions is not None:
        _outline(overlay, regions)
    style.put_heading(figure, title)
    if footer:
        style.put_footnote(figure, footer)
    return figure


def _grey(image: Floats, shape: tuple[int, int]) -> Floats:
    """The picture as brightness from 0 to 1."""
    try:
        pixels = np.asarray(image, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("image is not an array of numbers; give brightness or red, green and blue per pixel") from error
    if pixels.shape == (shape[0] * shape[1],):
        pixels = pixels.reshape(shape)
    if pixels.shape[:2] != shape or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (1, 3, 4))):
        raise InvalidInput(
            f"image has shape {pixels.shape}; for contributions of shape {shape} it must be {shape} or {(*shape, 3)}"
        )
    if not np.isfinite(pixels).all():
        raise InvalidInput("image holds a number that is not finite; every pixel must be a finite number")
    if pixels.ndim == 3:
        pixels = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels[:, :, :3] @ np.array(_GREY_WEIGHTS)
    low, high = float(pixels.min()), float(pixels.max())
    return (pixels - low) / (high - low) if high > low else np.full(shape, 0.5)


def _outline(axes: Axes, regions: Indices) -> None:
    """Lines between neighbouring pixels of different regions."""
    from matplotlib.collections import LineCollection

    right = [((x + 0.5, y - 0.5), (x + 0.5, y + 0.5)) for y, x in np.argwhere(regions[:, 1:] != regions[:, :-1]).tolist()]
    below = [((x - 0.5, y + 0.5), (x + 0.5, y + 0.5)) for y, x in np.argwhere(regions[1:] != regions[:-1]).tolist()]
    axes.add_collection(LineCollection(right + below, colors=style.SOFT, linewidths=0.4, alpha=0.5))


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
    figure = style.new_figure(width, height * len(maps) + 0.9)
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
                axes[r, c].set_title(f"{weights[r][c]:.2f}", fontsize=7, color=style.SOFT, pad=2)
        name = shortened(classes[r], LONGEST_NAME)
        if shape is None:
            axes[r, 0].set_title(name, fontsize=9, color=style.INK, loc="left", parse_math=False)
        else:
            axes[r, 0].set_ylabel(
                name, fontsize=9, color=style.INK, rotation=0, ha="right", va="center", labelpad=6, parse_math=False
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
        figure = style.new_figure(3.0 + 2.6 * (len(maps) + 1), 0.2 * min(len(e.features), MOST_BARS) + 1.4)
        axes = figure.subplots(1, len(maps) + 2, squeeze=False)[0]
        top = e.top(MOST_BARS)
        values = np.array([contribution.value for contribution in top])
        names = [f"{contribution.column} = {contribution.shown}" for contribution in top]
        _bars(axes[0], values, names, float(np.abs(values).max()) or 1.0)
        order = _largest([average])
        limit = max(float(np.abs(values).max()) for values in (*maps, average)) or 1.0
        _bars(axes[1], average[order], [e.features[j] for j in order], limit)
        for panel, values in zip(axes[2:], maps, strict=True):
            _bars(panel, values[order], [], limit)
        titles = [f"contributions to {name}", "weighted average map", *(f"weight {weight:.2f}" for weight in weights)]
    else:
        if len(e.columns) != shape[0] * shape[1]:
            raise InvalidInput(f"shape is {shape} and the input has {len(e.columns)} columns; give the shape of the picture")
        figure = style.new_figure(1.35 * (len(maps) + 3), 2.1)
        axes = figure.subplots(1, len(maps) + 3, squeeze=False)[0]
        point = np.array([e.points[0][column] for column in e.columns], dtype=np.float64)
        axes[0].imshow(point.reshape(shape), cmap="gray_r", interpolation="nearest")
        style.bare(axes[0])
        for panel, values in zip(axes[1:], (*maps, average, e.values[0]), strict=True):
            draw_map(panel, values, shape)
        titles = [f"input: {name}", *(f"map, weight {weight:.2f}" for weight in weights), "average map", "contributions"]
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title, fontsize=8, color=style.INK, parse_math=False)
    _put_promise(figure, footer)
    return figure


def draw_map(axes: Axes, values: Floats, shape: tuple[int, int]) -> None:
    """One map as a picture, colours centred at zero."""
    if values.size != shape[0] * shape[1]:
        raise InvalidInput(f"shape is {shape}, that is {shape[0] * shape[1]} pixels, and a map has {values.size} numbers")
    style.draw_pixels(axes, values.reshape(shape))


def _bars(axes: Axes, values: Floats, names: Sequence[str], limit: float) -> None:
    """Lying bars on a scale from ``-limit`` to ``limit``, the first on top; no names where none are given."""
    style.quiet(axes)
    rows = np.arange(len(values))
    axes.barh(rows, values, color=[style.RAISES if value > 0 else style.LOWERS for value in values], height=0.7)
    axes.set(xlim=(-1.05 * limit, 1.05 * limit), ylim=(len(values) - 0.4, -0.6))
    axes.axvline(0, color=style.RULE, linewidth=0.8)
    axes.set_yticks(rows if names else [], [shortened(name, LONGEST_NAME) for name in names], parse_math=False)


def _largest(maps: Sequence[Floats]) -> list[int]:
    """Numbers of the features with the largest entries in any map."""
    sizes = np.max(np.abs(np.array(maps)), axis=0)
    return [int(j) for j in np.argsort(-sizes, kind="stable")[:MOST_BARS]]


def _put_promise(figure: Figure, text: str) -> None:
    """The promise in small letters, in lines as wide as the figure."""
    if text:
        wide = max(40, int(figure.get_size_inches()[0] * 17))
        figure.supxlabel("\n".join(textwrap.wrap(text, wide)), fontsize=6.5, color=style.SOFT, x=0.01, ha="left")
