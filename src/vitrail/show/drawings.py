"""Pictures of pages: curves, levels and histograms as shapes that a template writes as inline SVG.

A page needs colours that follow dark mode and paper, values to rest a pointer on, and few bytes; matplotlib's pictures,
which ``plot()`` gives, have none of these. A drawing is numbers and texts only: the template escapes them, and classes of
the style sheet colour them. Lengths are in units of the drawing, which a page stretches to the width that it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._types import Floats
from ..results import Curve, Ranking
from ..results.checks import shown_text
from ..results.marginals import Marginals
from .curves import FOOT, MOST_LEVELS, curve_limits, most_common_levels
from .histograms import level_bars
from .text_tables import aligned_numbers, half_widths, per_cent, shortened, tick_text

WIDTH = 360
LINE_HEIGHT, BAR_HEIGHT = 170, 130
ROW = 21
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 8, 22
NAMES = 138
"""Width of the names of levels."""
LONGEST_NAME = 20
MOST_HOVERED = 40
"""Points of a curve that tell their value."""
MOST_WHISKERS = 40

Format = Callable[[float], str]


class Shape(NamedTuple):
    """One element: its tag, its class in the style sheet, numbers, what is told where a pointer rests, and its text."""

    tag: str
    kind: str
    at: Mapping[str, str]
    title: str = ""
    text: str = ""


@dataclass(frozen=True)
class Drawing:
    """Shapes on a ground of so many units."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def curve_drawing(
    curve: Curve,
    *,
    value: object = None,
    least_span: float = 0.0,
    most: int = MOST_LEVELS,
    name: Format | None = None,
    level: Callable[[object], str] = shown_text,
) -> Drawing:
    """A curve with its band and, at its foot, where the rows are; with a ``value`` its place is marked.

    Of more than ``most`` levels the most common ones. ``name`` writes numbers of the output, ``level`` those of the column.
    """
    shown = most_common_levels(curve, most, own=value)
    low, high = curve_limits(shown)
    missing = max(0.0, least_span - (high - low)) / 2
    limits = (low - missing, high + missing)
    write = _short if name is None else name
    return (_levels if shown.categorical else _line)(shown, limits, value, write, level)


def _line(
    curve: Curve, limits: tuple[float, float], value: object, write: Format, level: Callable[[object], str]
) -> Drawing:
    x, y, density = np.asarray(curve.x, dtype=np.float64), curve.y, curve.density
    edges = None if density is None else density.edges
    reached = [float(x[0]), float(x[-1]), *([] if edges is None else [float(edges[0]), float(edges[-1])])]
    first, last = min(reached), max(reached)
    low = limits[0] - ((limits[1] - limits[0]) * FOOT / (1 - FOOT) if edges is not None else 0.0)
    across, up = _scale((first, last), LEFT, WIDTH - RIGHT), _scale((low, limits[1]), LINE_HEIGHT - BOTTOM, TOP)
    shapes = _grid_up(ticks(limits, 4), up, write)
    if density is not None and edges is not None:
        tallest = max(float(density.shares.max()), 1e-300)
        ground = LINE_HEIGHT - BOTTOM
        stairs: list[tuple[float, float]] = [(across(float(edges[0])), ground)]
        for (a, b), share in zip(pairwise(edges), density.shares, strict=True):
            top = ground - max(0.0, float(share)) / tallest * FOOT * 0.85 * (ground - TOP)
            stairs += [(across(float(a)), top), (across(float(b)), top)]
        stairs.append((across(float(edges[-1])), ground))
        shapes.append(Shape("polygon", "foot", {"points": " ".join(f"{x_:.1f},{y_:.1f}" for x_, y_ in stairs)}))
    if curve.lower is not None and curve.upper is not None:
        ends = [*zip(x, curve.upper, strict=True), *reversed([*zip(x, curve.lower, strict=True)])]
        shapes.append(Shape("polygon", "band", {"points": _points(ends, across, up)}))
    shapes.append(Shape("polyline", "line", {"points": _points(zip(x, y, strict=True), across, up)}))
    if isinstance(value, int | float) and first <= float(value) <= last:
        place, height = across(float(value)), up(float(np.interp(float(value), x, y)))
        shapes.append(Shape("line", "mark", _at(x1=place, x2=place, y1=TOP, y2=LINE_HEIGHT - BOTTOM)))
        shapes.append(Shape("circle", "mark", _at(cx=place, cy=height, r=4.5)))
    shapes += _hover(curve, x, across, write, level)
    for tick in ticks((first, last), 5):
        shapes.append(Shape("text", "tick middle", _at(x=across(tick), y=LINE_HEIGHT - 6), text=level(tick)))
    return Drawing(WIDTH, LINE_HEIGHT, tuple(shapes))


def _hover(
    curve: Curve, x: Floats, across: Callable[[float], float], write: Format, level: Callable[[object], str]
) -> list[Shape]:
    """Strips that tell the curve's values."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_HOVERED)).astype(int))
    middles = [float(across(float(x[j]))) for j in chosen]
    cuts = [middles[0] - 6, *((a + b) / 2 for a, b in pairwise(middles)), middles[-1] + 6]
    halves = None if curve.lower is None else curve.half_widths
    made = []
    for j, (left, right) in zip(chosen, pairwise(cuts), strict=True):
        band = "" if halves is None else f" ± {write(float(halves[j]))}"
        told = f"{level(float(x[j]))}: {write(float(curve.y[j]))}{band}"
        made.append(_rect("hover", left, TOP, right - left, LINE_HEIGHT - BOTTOM - TOP, told))
    return made


def _levels(
    curve: Curve, limits: tuple[float, float], value: object, write: Format, level: Callable[[object], str]
) -> Drawing:
    shares = None if curve.density is None else curve.density.shares
    own = [name == value for name in curve.x]
    return _dots([level(name) for name in curve.x], (curve.y, curve.lower, curve.upper), limits, write, shares, own)


def dots_drawing(names: Sequence[str], values: Floats, lower: Floats, upper: Floats) -> Drawing:
    """A row for each value: its name, a dot and its band; rows without a number stay empty."""
    ends = [number for numbers in (values, lower, upper) for number in numbers if math.isfinite(number)] or [0.0, 1.0]
    room = 0.05 * (max(ends) - min(ends)) or 0.05
    return _dots(names, (values, lower, upper), (min(ends) - room, max(ends) + room), tick_text)


def _dots(
    names: Sequence[str],
    numbers: tuple[Floats, Floats | None, Floats | None],
    limits: tuple[float, float],
    write: Format,
    shares: Floats | None = None,
    own: Sequence[bool] | None = None,
) -> Drawing:
    height, (values, lower, upper) = TOP + ROW * len(names) + BOTTOM, numbers
    across = _scale(limits, NAMES + 8, WIDTH - RIGHT)
    shapes = []
    for tick in ticks(limits, 3):
        shapes.append(Shape("line", "grid", _at(x1=across(tick), x2=across(tick), y1=TOP, y2=height - BOTTOM)))
        shapes.append(Shape("text", "tick middle", _at(x=across(tick), y=height - 6), text=write(tick)))
    tallest = 1.0 if shares is None else max(float(shares.max()), 1e-300)
    for row, name in enumerate(names):
        y, value = TOP + ROW * row, float(values[row])
        marked = own is not None and own[row]
        if marked:
            shapes.append(_rect("own", 0, y, WIDTH, ROW))
        if shares is not None:
            share = max(0.0, float(shares[row])) / tallest
            shapes.append(_rect("foot", NAMES + 8, y + ROW - 5, share * (WIDTH - RIGHT - NAMES - 8), 3))
        shapes.append(Shape("text", "name", _at(x=NAMES, y=y + ROW / 2 + 4), text=shortened(name, LONGEST_NAME)))
        if not math.isfinite(value):
            continue
        band = ""
        if lower is not None and upper is not None:
            left, right = across(float(lower[row])), across(float(upper[row]))
            shapes.append(_rect("band", left, y + ROW / 2 - 4, max(right - left, 0.5), 7))
            band = f" ± {write(float(upper[row] - lower[row]) / 2)}"
        shapes.append(Shape("circle", "mark" if marked else "dot", _at(cx=across(value), cy=y + ROW / 2, r=3.5)))
        shapes.append(_rect("hover", 0, y, WIDTH, ROW, f"{name}: {write(value)}{band}"))
    return Drawing(WIDTH, height, tuple(shapes))


def histogram_drawing(marginals: Marginals, name: str) -> Drawing:
    """One column's noisy counts: numbers upright, codes behind them; levels lying. True counts are not negative."""
    bins, counts = marginals.bins_of(name), marginals.counts[name]
    if bins.edges is None:
        bars = level_bars(bins, counts)
        halves = [marginals.half_width * math.sqrt(bar.n_levels) for bar in bars]
        return _lying([bar.label for bar in bars], [bar.total for bar in bars], halves)
    edges, numbers = bins.edges, counts[: bins.n_intervals]
    step = 0.04 * (edges[-1] - edges[0])
    places = [(a, b) for a, b in pairwise(edges)]
    places += [(edges[-1] + step * (2 * k + 1), edges[-1] + step * (2 * k + 2)) for k in range(len(bins.codes))]
    return _upright(places, counts, bins.labels, marginals.half_width, len(numbers))


def _upright(
    places: Sequence[tuple[float, float]], counts: Floats, labels: Sequence[str], half: float, n_numbers: int
) -> Drawing:
    most = max(float((counts + half).max()), half)
    across, up = _scale((places[0][0], places[-1][1]), LEFT, WIDTH - RIGHT), _scale((0, most), BAR_HEIGHT - BOTTOM, TOP)
    shapes = _grid_up(ticks((0, most), 3), up, tick_text)
    ground = up(0)
    for j, ((a, b), count, label) in enumerate(zip(places, counts.tolist(), labels, strict=True)):
        width = max(across(b) - across(a) - 0.6, 0.6)
        told = f"{label}: {count:,.0f} ± {half:,.0f}"
        top = up(max(count, 0.0))
        shapes.append(_rect("bar" if j < n_numbers else "bar code", across(a), top, width, ground - top, told))
        if len(places) <= MOST_WHISKERS:
            middle, ends = across((a + b) / 2), [up(max(0.0, count + shift)) for shift in (-half, half)]
            shapes.append(Shape("line", "whisker", _at(x1=middle, x2=middle, y1=ends[0], y2=ends[1])))
        if j >= n_numbers:
            shapes.append(Shape("text", "tick middle", _at(x=across((a + b) / 2), y=BAR_HEIGHT - 6), text=label))
    for tick in ticks((places[0][0], places[n_numbers - 1][1]), 5):
        shapes.append(Shape("text", "tick middle", _at(x=across(tick), y=BAR_HEIGHT - 6), text=tick_text(tick)))
    return Drawing(WIDTH, BAR_HEIGHT, tuple(shapes))


def _lying(labels: Sequence[str], totals: Sequence[float], halves: Sequence[float]) -> Drawing:
    height, most = TOP + ROW * len(labels) + BOTTOM, max(total + half for total, half in zip(totals, halves, strict=True))
    across = _scale((0, max(most, 1e-9)), NAMES + 8, WIDTH - RIGHT)
    shapes = []
    for tick in ticks((0, most), 3):
        shapes.append(Shape("text", "tick middle", _at(x=across(tick), y=height - 6), text=tick_text(tick)))
    for row, (label, total, half) in enumerate(zip(labels, totals, halves, strict=True)):
        y = TOP + ROW * row
        shapes.append(Shape("text", "name", _at(x=NAMES, y=y + ROW / 2 + 4), text=shortened(label, LONGEST_NAME)))
        shapes.append(_rect("bar", across(0), y + 4, max(across(max(total, 0.0)) - across(0), 0.5), ROW - 8))
        ends = [across(max(0.0, total + shift)) for shift in (-half, half)]
        shapes.append(Shape("line", "whisker", _at(x1=ends[0], x2=ends[1], y1=y + ROW / 2, y2=y + ROW / 2)))
        shapes.append(_rect("hover", 0, y, WIDTH, ROW, f"{label}: {total:,.0f} ± {half:,.0f}"))
    return Drawing(WIDTH, height, tuple(shapes))


class RankingRow(NamedTuple):
    """A line of a ranking: its texts, and where its score and band lie, in per cent of the width."""

    name: str
    score: float
    text: str
    half: str
    told: str
    place: float
    band: tuple[float, float] | None
    above: str
    faint: bool


def ranking_rows(ranking: Ranking, most: int = 30) -> list[RankingRow]:
    """The highest items, for a table that can be sorted; faint where a score may be noise alone."""
    frame = {name: column[:most] for name, column in ranking.frame().items()}
    names, scores = frame["item"].tolist(), [float(score) for score in frame["score"]]
    banded = ranking.std is not None
    ends = [(float(a), float(b)) for a, b in zip(frame["lower"], frame["upper"], strict=True)] if banded else []
    places = [0.0, *scores, *(end for pair in ends for end in pair)]
    across = _scale((min(places), max(places)), 0, 100)
    halves = half_widths([a for a, _ in ends], [b for _, b in ends]) if banded else [""] * len(names)
    sure = [""] * len(names)
    if ranking.own_std is not None and ranking.ranked:
        sure = [*map(per_cent, ranking.confidence.tolist()), ""][: len(names)]
    certain = ranking.certain() if banded else names
    made = []
    for j, (name, text) in enumerate(zip(names, aligned_numbers(scores), strict=True)):
        band = (across(ends[j][0]), across(ends[j][1]) - across(ends[j][0])) if banded else None
        told = f"{name}: {scores[j]:.4g} {halves[j]}".strip()
        made.append(
            RankingRow(name, scores[j], text, halves[j], told, across(scores[j]), band, sure[j], name not in certain)
        )
    return made


# --- numbers -------------------------------------------------------------------------------------------------------------


def ticks(limits: tuple[float, float], most: int) -> list[float]:
    """Round numbers between two ends, at most about so many.

    Examples
    --------
    >>> ticks((17, 90), 5), ticks((0.0, 0.31), 4)
    ([20.0, 40.0, 60.0, 80.0], [0.0, 0.1, 0.2, 0.3])
    """
    low, high = limits
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _short(value: float) -> str:
    return f"{value:.3g}"


def _scale(ends: tuple[float, float], start: float, stop: float) -> Callable[[float], float]:
    low, high = ends
    factor = (stop - start) / (high - low) if high > low else 0.0
    return lambda value: start + (value - low) * factor


def _at(**numbers: float) -> dict[str, str]:
    return {name: f"{number:.1f}".removesuffix(".0") for name, number in numbers.items()}


def _rect(kind: str, x: float, y: float, width: float, height: float, title: str = "") -> Shape:
    return Shape("rect", kind, _at(x=x, y=y, width=max(width, 0.0), height=max(height, 0.0)), title)


def _points(ends: object, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    pairs: list[tuple[float, float]] = list(ends)  # type: ignore[call-overload]
    return " ".join(f"{across(float(x)):.1f},{up(float(y)):.1f}" for x, y in pairs)


def _grid_up(places: Sequence[float], up: Callable[[float], float], write: Format) -> list[Shape]:
    made = []
    for tick in places:
        made.append(Shape("line", "grid", _at(x1=LEFT, x2=WIDTH - RIGHT, y1=up(tick), y2=up(tick))))
        made.append(Shape("text", "tick end", _at(x=LEFT - 5, y=up(tick) + 3.5), text=write(tick)))
    return made
