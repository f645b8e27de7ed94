"""How every picture here looks, and how it becomes part of a page."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .page import html_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2933"
SOFT = "#6b7783"
RULE = "#d5dbe1"
GLASS = "#5b84b1"
AMBER = "#c8882d"


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty white figure that no window knows of and no global state remembers."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inches, height_inches), dpi=110, facecolor="white", layout="constrained")


def quiet(axes: Axes) -> None:
    """Take away what carries no information: the frame, heavy ticks."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    axes.tick_params(labelsize=8, colors=SOFT, length=0)


def figure_svg(figure: Figure) -> bytes:
    """The figure as SVG: the same bytes for the same figure, and its words as text."""
    import matplotlib

    buffer = io.BytesIO()
    settings = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vitrail"})
    with settings, warnings.catch_warnings():
        # Letters that matplotlib's own font lacks are written as text all the same; the reader's fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def figure_image(figure: Figure, description: str) -> str:
    """An ``<img>`` that carries the figure in itself.

    As an image rather than inline markup: nothing in it can run, and its ids cannot meet those of another picture.
    """
    encoded = base64.b64encode(figure_svg(figure)).decode("ascii")
    width_inches, height_inches = figure.get_size_inches()
    size = f'width="{width_inches * 96:.0f}" height="{height_inches * 96:.0f}"'
    return f'<img src="data:image/svg+xml;base64,{encoded}" {size} alt="{html_text(description)}">'


def notebook_html(heading: str, figure: Figure, description: str, sentences: Sequence[str]) -> str:
    """What a notebook shows: a heading, the picture, and the sentences under it."""
    said = "".join(f"<p>{html_text(one)}</p>" for one in sentences)
    return f"<p><b>{html_text(heading)}</b></p>{figure_image(figure, description)}{said}"
