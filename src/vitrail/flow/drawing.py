"""A picture of stages: SVG with a layout of our own, and Mermaid text for pages that render it. No dependency.

Edges that carry something tainted (see ``separators``) are dark, those that carry released or post-processed values blue,
public ones dashed. Where the released stages are no separator, a shortest path past them is red.
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from .layout import Layout, layered
from .separators import EXPLANATION, ROWS

if TYPE_CHECKING:
    from .stages import Stages

BOX_WIDTH = 216.0
LETTERS_PER_LINE = 33
LINE_HEIGHT = 15.0
PADDING = 9.0
MARGIN = 20.0
BETWEEN_LAYERS = 44.0
LEGEND_STEP = 20.0

DARK, BLUE, GREY, ORANGE, RED = "#3f3f46", "#1d5fa8", "#6b7280", "#c2410c", "#b91c1c"
RELEASED_FILL = "#d6e6f7"
FONT = "font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of stages, with a separator highlighted. Notebooks show it as it is.

    Attributes
    ----------
    stages : Stages
        What is drawn.
    separator : tuple of str
        The highlighted stages; empty for none.

    Examples
    --------
    >>> import vitrail as vt
    >>> picture = vt.flow.of("Marginals").draw()
    >>> picture.separator
    ('counts',)
    >>> picture.mermaid().splitlines()[0]
    'flowchart TD'
    >>> picture.svg()[:4]
    '<svg'
    """

    stages: Stages
    separator: tuple[str, ...] = ()

    def mermaid(self) -> str:
        """The text of a Mermaid flowchart."""
        graph = self.stages.graph
        key = {name: f"s{i}" for i, name in enumerate(graph.names)}
        lines = ["flowchart TD"]
        for name in graph.names:
            label = "<br/>".join(_mermaid_text(line) for line in [name, *self._lines(name)])
            left, right = ("[(", ")]") if name == ROWS else ("([", "])") if name == EXPLANATION else ("[", "]")
            lines.append(f'    {key[name]}{left}"{label}"{right}')
        for name in graph.names:
            arrow = "-.->" if name in self.stages.public else "-->"
            lines += [f"    {key[name]} {arrow} {key[reader]}" for reader in graph.after[name]]
        styles = {
            "released": (self.stages.released, f"fill:{RELEASED_FILL},stroke:{BLUE}"),
            "public": (self.stages.public, f"fill:#ffffff,stroke:{GREY},stroke-dasharray:5 4"),
            "separator": (self.separator, f"stroke:{ORANGE},stroke-width:3px"),
        }
        for style, (names, looks) in styles.items():
            if names:
                lines.append(f"    classDef {style} {looks}")
                lines.append(f"    class {','.join(key[name] for name in names)} {style}")
        return "\n".join(lines) + "\n"

    def svg(self) -> str:
        """The text of an SVG picture, complete in itself."""
        graph = self.stages.graph
        layout = layered(graph, dict.fromkeys(graph.names, BOX_WIDTH))
        heights = [max(self._height(item[0]) for item in row if not item[1]) for row in layout.layers]
        top = MARGIN + (26.0 if self.stages.title else 0.0)
        tops = [top + sum(heights[:i]) + BETWEEN_LAYERS * i for i in range(len(heights))]
        legend = self._legend(tops[-1] + heights[-1] + 26.0)
        width = max(layout.width, 470.0) + 2 * MARGIN
        height = tops[-1] + heights[-1] + 26.0 + LEGEND_STEP * len(legend) / 2  # a sample and a text each
        shift = (width - layout.width) / 2

        drawn = [self._edges(layout, tops, heights, shift)]
        for at, row in enumerate(layout.layers):
            for item in row:
                if not item[1]:
                    drawn.append(self._box(item[0], shift + layout.middles[at, item], tops[at], heights[at]))
        if self.stages.title:
            drawn.insert(0, _text(width / 2, MARGIN + 8, self.stages.title, 'font-size="15" font-weight="600"'))
        markers = "".join(
            f'<marker id="tip-{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 10 5 0 10z" fill="{colour}"/></marker>'
            for colour in (DARK, BLUE, GREY, RED)
        )
        spoken = escape(f"Stages of {self.stages.title}" if self.stages.title else "Stages")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img" {FONT} font-size="11.5" text-anchor="middle">\n'
            f"<title>{spoken}</title>\n<desc>{escape(self._in_words())}</desc>\n<defs>{markers}</defs>\n"
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join([*drawn, *legend]) + "\n</svg>\n"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file: ``.svg``, or ``.mmd`` for Mermaid text."""
        file = Path(path)
        writers = {".svg": self.svg, ".mmd": self.mermaid}
        if file.suffix not in writers:
            raise InvalidInput(f"a drawing of stages is saved as .svg or .mmd; the file is named {file.name!r}")
        file.write_text(writers[file.suffix](), encoding="utf-8")
        return file

    def _lines(self, name: str) -> list[str]:
        """What stands in the box of a stage, below its name."""
        if name == ROWS:
            return ["private"]
        stage = self.stages[name]
        lines = textwrap.wrap(stage.does, LETTERS_PER_LINE)
        if stage.released:
            lines += textwrap.wrap(f"released: {stage.released}", LETTERS_PER_LINE)
        return lines

    def _height(self, name: str) -> float:
        return 2 * PADDING + LINE_HEIGHT * (1 + len(self._lines(name)))

    def _box(self, name: str, middle: float, top: float, layer_height: float) -> str:
        height = self._height(name)
        top += (layer_height - height) / 2
        fill, stroke, width, more, ink = "#ffffff", DARK, 1.2, "", "#18181b"
        if name == ROWS:
            fill, ink = DARK, "#ffffff"
        elif name in self.stages.public:
            stroke, more = GREY, ' stroke-dasharray="5 4"'
        elif name in self.stages.released:
            fill, stroke = RELEASED_FILL, BLUE
        elif name not in self._tainted():
            stroke = BLUE
        if name in self.separator:
            stroke, width = ORANGE, 3.0
        corner = 16 if name in (ROWS, EXPLANATION) else 6
        shapes = [
            f'<rect x="{middle - BOX_WIDTH / 2:.1f}" y="{top:.1f}" width="{BOX_WIDTH:.0f}" height="{height:.1f}" '
            f'rx="{corner}" fill="{fill}" stroke="{stroke}" stroke-width="{width}"{more}/>'
        ]
        line = top + PADDING + 11
        shapes.append(_text(middle, line, name, f'font-weight="600" font-size="12.5" fill="{ink}"'))
        for said in self._lines(name):
            line += LINE_HEIGHT
            shapes.append(_text(middle, line, said, f'fill="{ink}"'))
        return "\n".join(shapes)

    def _leak(self) -> set[tuple[str, str]]:
        """Edges of a path past the released stages, if some are released and they do not separate."""
        path = self.stages.leak() if self.stages.released and not self.separator else None
        return set(pairwise(path or ()))

    def _tainted(self) -> set[str]:
        """What still depends on exact rows; where a separator of things not released was chosen, as if it were released."""
        released = set(self.stages.released)
        return self.stages.graph.near(released if released.issuperset(self.separator) else self.separator)

    def _edges(self, layout: Layout, tops: list[float], heights: list[float], shift: float) -> str:
        """Curves from box to box, straight down past the layers in between."""
        graph = self.stages.graph
        tainted, leak = self._tainted(), self._leak()
        routes = {(name, reader): layout.route(name, reader) for name in graph.names for reader in graph.after[name]}
        leaving = {name: sorted(graph.after[name], key=lambda end: routes[name, end][1][1]) for name in graph.names}
        entering = {name: sorted(graph.before[name], key=lambda start: routes[start, name][-2][1]) for name in graph.names}
        paths = []
        for (name, reader), route in routes.items():
            colour, more = (DARK, "") if name in tainted else (BLUE, "")
            if name in self.stages.public:
                colour, more = GREY, ' stroke-dasharray="5 4"'
            if (name, reader) in leak:
                colour = RED
            start_at, end_at = route[0][0], route[-1][0]
            points = []  # (x, y) where the edge leaves or enters a layer, in turn
            for at, middle in route:
                x, slack = shift + middle, 0.0
                if at == start_at:
                    x += _port(leaving[name].index(reader), len(leaving[name]))
                    slack = (heights[at] - self._height(name)) / 2
                elif at == end_at:
                    x += _port(entering[reader].index(name), len(entering[reader]))
                    slack = (heights[at] - self._height(reader)) / 2
                if at != start_at:
                    points.append((x, tops[at] + slack))
                if at != end_at:
                    points.append((x, tops[at] + heights[at] - slack))
            drawn = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
            for i, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
                half = (y + to_y) / 2
                curve = f"C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
                drawn.append(f"L{to_x:.1f} {to_y:.1f}" if i % 2 else curve)
            thick = 2.2 if colour == RED else 1.4
            paths.append(
                f'<path d="{"".join(drawn)}" fill="none" stroke="{colour}" stroke-width="{thick}"{more} '
                f'marker-end="url(#tip-{colour[1:]})"/>'
            )
        return "\n".join(paths)

    def _legend(self, top: float) -> list[str]:
        """What colours and lines mean, for those that occur."""
        said = [(f'stroke="{DARK}"', "depends on exact rows")]
        if self.stages.released:
            said.append((f'stroke="{BLUE}" fill="{RELEASED_FILL}"', "released through a mechanism"))
        if self.stages.released or self.separator:
            said.append((f'stroke="{BLUE}"', "computed from releases and public stages"))
        if self.stages.public:
            said.append((f'stroke="{GREY}" stroke-dasharray="5 4"', "public: depends on no row"))
        if self.separator:
            said.append((f'stroke="{ORANGE}" stroke-width="3"', "a separator: every path from the rows meets it"))
        if self._leak():
            said.append((f'stroke="{RED}" stroke-width="2"', "a leak: rows reach the explanation past all mechanisms"))
        lines = []
        for i, (looks, meaning) in enumerate(said):
            y = top + LEGEND_STEP * i
            fill = "" if "fill=" in looks else ' fill="#ffffff"'
            lines.append(f'<rect x="{MARGIN:.0f}" y="{y - 10:.1f}" width="26" height="12" rx="3" {looks}{fill}/>')
            lines.append(_text(MARGIN + 36, y, meaning, 'text-anchor="start"'))
        return lines

    def _in_words(self) -> str:
        """For those who hear the picture."""
        sentences = [f"{part.name}: after {', '.join(part.after) or 'nothing'}" for part in self.stages]
        if self.separator:
            sentences.append(f"highlighted separator: {', '.join(self.separator)}")
        return "; ".join(sentences)


def _port(place: int, count: int) -> float:
    """Where along its side of a box an edge ends, so that edges do not lie upon each other."""
    return (place - (count - 1) / 2) * min(18.0, 0.7 * BOX_WIDTH / count)


def _text(x: float, y: float, said: str, looks: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {looks}>{escape(said)}</text>'


def _mermaid_text(said: str) -> str:
    """Text inside a quoted Mermaid label: what would end the quote or start markup is written as an entity."""
    for letter, entity in (("#", "#35;"), ("&", "#amp;"), ("<", "#lt;"), (">", "#gt;"), ('"', "#quot;")):
        said = said.replace(letter, entity)
    return said
