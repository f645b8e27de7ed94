"""The one look: colours, figures, axes, and how a figure becomes part of a page. matplotlib is imported on first use.

The renderer: every page and every notebook fragment is a template in ``templates``, and what it is given is escaped.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _checks
from .._types import Axes, Figure, Floats
from ..errors import InvalidInput
from ..results.archive import write_bytes
from .text_tables import shortened

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import LinearSegmentedColormap


INK = "#1f2933"
SOFT = "#6b7783"
RULE = "#d5dbe1"
GLASS = "#5b84b1"
AMBER = "#c8882d"
RAISES = "#b5483a"
"""What pushes the output up is red and what pulls it down is blue, here as in shap."""
LOWERS = GLASS
MARK = "#fbe8c8"
"""Behind a value that was changed."""
PALE = 0.35
"""Opacity of what may be noise alone."""

LONGEST_NAME = 28
MOST_ACROSS = 12


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty white figure that no window knows of and no global state remembers; a notebook shows it by itself."""
    from .figure import ShownFigure

    return ShownFigure(figsize=(width_inches, height_inches), dpi=110, facecolor="white", layout="constrained")


def new_axes(
    width_inches: float, height_inches: float, grid: Literal["x", "y", "both"] | None = None
) -> tuple[Figure, Axes]:
    """A new figure with one picture in it, ``quiet``."""
    figure = new_figure(width_inches, height_inches)
    axes = figure.add_subplot()
    quiet(axes, grid)
    return figure, axes


def figure_of(axes: Axes) -> Figure:
    """The figure that axes belong to."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def quiet(axes: Axes, grid: Literal["x", "y", "both"] | None = None) -> None:
    """Take away what carries no information (the frame, heavy ticks), and draw thin lines at the ticks of one axis."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    axes.tick_params(labelsize=8, colors=SOFT, length=0)
    if grid is not None:
        axes.grid(axis=grid, color=RULE, linewidth=0.6)
        axes.set_axisbelow(True)


def bare(axes: Axes, title: str = "", *, color: str = SOFT) -> None:
    """Axes of a picture: no ticks, a thin frame, a title."""
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(RULE)
    if title:
        axes.set_title(title, fontsize=8.5, color=color, loc="left", parse_math=False)


def put_title(axes: Axes, text: str, most: int = 60, *, bold: bool = False) -> None:
    """The title of axes, at the left. A dollar sign in a name is a dollar sign, not the beginning of a formula."""
    weight = "bold" if bold else "normal"
    axes.set_title(shortened(text, most), fontsize=9.5, color=INK, loc="left", fontweight=weight, parse_math=False)


def put_labels(axes: Axes, across: str = "", up: str = "") -> None:
    """What the two axes are called."""
    axes.set_xlabel(across, fontsize=8, color=SOFT, parse_math=False)
    axes.set_ylabel(shortened(up, 36), fontsize=8, color=SOFT, parse_math=False)


def put_footnote(figure: Figure, text: str) -> None:
    """A line across the foot of a figure: a picture is sent around without its page."""
    figure.supxlabel(text, fontsize=8, color=SOFT, x=0.99, ha="right", parse_math=False)


def put_heading(figure: Figure, text: str) -> None:
    """A line above all axes of a figure."""
    figure.suptitle(text, fontsize=9.5, color=INK, x=0.02, ha="left", parse_math=False)


def name_rows(axes: Axes, names: Sequence[str], most: int = LONGEST_NAME) -> range:
    """Give every row of lying bars or dots its name, the first on top; returns the heights of the rows."""
    rows = range(len(names))
    axes.set_yticks(list(rows), [shortened(name, most) for name in names], parse_math=False)
    axes.tick_params(axis="y", colors=INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    return rows


def dots(
    axes: Axes,
    names: Sequence[str],
    values: ArrayLike,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    *,
    grey: bool = False,
) -> range:
    """A row for each value: its name, a dot, and its band in blue; all in grey where they are mostly noise."""
    quiet(axes, "x")
    rows = name_rows(axes, names)
    if lower is not None and upper is not None:
        axes.hlines(rows, lower, upper, color=SOFT if grey else GLASS, alpha=0.45, linewidth=7)
    axes.plot(values, rows, "o", color=SOFT if grey else INK, markersize=4)
    axes.locator_params(axis="x", nbins=6)
    return rows


def small_multiples(heights: Sequence[float], across: int, width_inches: float = 4.0) -> tuple[Figure, list[Axes]]:
    """A figure with axes side by side, each hanging from the top of its cell at its own height in inches.

    So bars and levels are equally thick everywhere.
    """
    across = min(_checks.whole("across", across, most=MOST_ACROSS), len(heights))
    lines = [heights[start : start + across] for start in range(0, len(heights), across)]
    figure = new_figure(width_inches * across, sum(max(line) for line in lines))
    grid = figure.add_gridspec(len(lines), across, height_ratios=[max(line) for line in lines])
    axes = []
    for i, line in enumerate(lines):
        for j, height in enumerate(line):
            own = height / max(line)
            cell = grid[i, j].subgridspec(2, 1, height_ratios=[own, max(1e-3, 1 - own)])
            axes.append(figure.add_subplot(cell[0, 0]))
    return figure, axes


def color_bar(axes: Axes, colored: ScalarMappable, *, shrink: float, label: str = "") -> Colorbar:
    """What the colours of axes mean, beside them."""
    bar = figure_of(axes).colorbar(colored, ax=axes, shrink=shrink, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=SOFT, length=0)
    if label:
        bar.ax.set_ylabel(shortened(label, 30), fontsize=8, color=SOFT, parse_math=False)
    return bar


def diverging_colors() -> LinearSegmentedColormap:
    """Blue to white to red: what lowers, nothing, what raises."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = [(0.0, "#1f4f86"), (0.3, LOWERS), (0.5, "white"), (0.7, RAISES), (1.0, "#7d1f14")]
    return LinearSegmentedColormap.from_list("vitrail", stops)


def draw_pixels(axes: Axes, values: Floats, title: str = "") -> None:
    """A picture of numbers, with colours centred at zero."""
    limit = float(np.abs(values).max()) or 1.0
    axes.imshow(values, cmap=diverging_colors(), vmin=-limit, vmax=limit, interpolation="nearest")
    bare(axes, title)


def figure_svg(figure: Figure) -> bytes:
    """The figure as SVG: the same bytes for the same figure, its words as text, and no more digits than can be seen."""
    import matplotlib

    buffer = io.BytesIO()
    settings = matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "vitrail", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
    )
    with settings, warnings.catch_warnings():
        # Letters that matplotlib's own font lacks are written as text all the same; the reader's fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    # Within tags alone, so that words stay as they are: digits beyond a hundredth of a point, spaces in paths, turns by 0.
    return re.sub(rb"<[^>]*>(\s+(?=<))?", lambda tag: _SPARE.sub(rb"\1", tag[0]).rstrip(), buffer.getvalue())


_SPARE = re.compile(
    rb'(\d\.\d\d)\d+|(?<=[\d"]) ?\n?(?=[LMQCz])|(?<=[LMQC]) (?=[-\d])| ?\n(?=")| transform="rotate\(-0 [^"]*"'
)


def figure_address(figure: Figure) -> str:
    """The figure as the address of an image.

    As an image rather than inline markup: nothing in it can run, and its ids cannot meet those of another picture.
    """
    return f"data:image/svg+xml;base64,{base64.b64encode(figure_svg(figure)).decode('ascii')}"


TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"address": figure_address, "MARK": MARK}
    return environment


def render(template: str, **given: object) -> str:
    """The text of a template with what it is given. Autoescape is on for every text that is not from a template."""
    return _environment().get_template(template).render(given)


def write_page(html: str, path: str | Path) -> Path:
    """Write a page as one file; returns where."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"the file of a page is {str(path)!r}; its name must end in .html")
    return write_bytes(path, html.encode())
