"""Contributions of pixels, or of patches of pixels, laid over the picture they explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .attributions import LOWERS, RAISES
from .images import INK, RULE, SOFT, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_GREY_WEIGHTS = (0.299, 0.587, 0.114)
"""How bright red, green and blue look (ITU-R BT.601)."""


def heat_figure(
    heat: Floats,
    *,
    image: Floats | None = None,
    certain: NDArray[np.bool_] | None = None,
    title: str = "",
    footer: str = "",
    regions: NDArray[np.intp] | None = None,
) -> Figure:
    """A heat map whose colours are centred at zero, over the picture in grey where there is one.

    Parameters
    ----------
    heat : array of shape (height, width)
        The contribution drawn at each pixel; NaN where there is none.
    image : array of shape (height, width) or (height, width, 3), optional
        The picture, on any scale. It is shown on its own as well, on the left.
    certain : array of bool, of the same shape, optional
        False where the noise band includes zero: such pixels get no colour.
    title, footer : str
        What stands above and below. With ``certain`` and without a footer, how many pixels got no colour.
    regions : array of int, of the same shape, optional
        Regions whose outlines are drawn.
    """
    heat = np.asarray(heat, dtype=np.float64)
    if heat.ndim != 2 or not heat.size:
        raise InvalidInput(f"heat has shape {heat.shape}; a heat map needs a height and a width")
    drawn = np.isfinite(heat) if certain is None else np.isfinite(heat) & certain
    height, width = heat.shape
    panel = 2.9
    panels = 2 if image is not None else 1
    figure = new_figure(panel * panels + (0.9 if panels == 2 else 1.6), min(6.0, max(1.6, panel * height / width)) + 0.75)
    overlay = figure.add_subplot(1, panels, panels)
    if image is not None:
        grey = _grey(image, (height, width))
        picture = figure.add_subplot(1, panels, 1)
        picture.imshow(grey, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        _bare(picture, "the point")
        # Little contrast, light: colours have to be told apart on top of it.
        overlay.imshow(0.6 + 0.4 * grey, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    size = float(np.max(np.abs(heat[np.isfinite(heat)]), initial=0.0)) or 1.0
    shown = np.where(np.isfinite(heat), heat, 0.0)
    opacity = np.where(drawn, 0.2 + 0.75 * np.abs(shown) / size if image is not None else 1.0, 0.0)
    colored = overlay.imshow(shown, cmap=_colors(), vmin=-size, vmax=size, alpha=opacity, interpolation="nearest")
    overlay.set_facecolor(RULE)
    _bare(overlay, "contributions")
    bar = figure.colorbar(colored, ax=overlay, shrink=0.8, pad=0.03)
    if bar.solids is not None:
        bar.solids.set_alpha(1.0)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=0)
    if title:
        figure.suptitle(title, fontsize=9.5, color=INK, x=0.02, ha="left", parse_math=False)
    if regions is not None:
        _outline(overlay, regions)
    if footer:
        figure.supxlabel(footer, fontsize=8, color=SOFT)
    elif certain is not None:
        noise = int(np.sum(np.isfinite(heat) & ~certain))
        text = f"{noise} of {int(np.isfinite(heat).sum())} pixels have a noise band that includes 0 and no colour"
        figure.supxlabel(text, fontsize=8, color=SOFT)
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


def _colors() -> LinearSegmentedColormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "vitrail", [(0.0, "#1f4f86"), (0.3, LOWERS), (0.5, "white"), (0.7, RAISES), (1.0, "#7d1f14")]
    )


def _outline(axes: Axes, regions: NDArray[np.intp]) -> None:
    """Lines between neighbouring pixels of different regions."""
    from matplotlib.collections import LineCollection

    right = [((x + 0.5, y - 0.5), (x + 0.5, y + 0.5)) for y, x in np.argwhere(regions[:, 1:] != regions[:, :-1]).tolist()]
    below = [((x - 0.5, y + 0.5), (x + 0.5, y + 0.5)) for y, x in np.argwhere(regions[1:] != regions[:-1]).tolist()]
    axes.add_collection(LineCollection(right + below, colors=SOFT, linewidths=0.4, alpha=0.5))


def _bare(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8.5, color=SOFT, loc="left")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
