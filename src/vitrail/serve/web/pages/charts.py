"""The bill as a picture over time, drawn as shapes: what is spent so far, in steps, under the line of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ....accounting import rounded_up
from ....show.drawings import Drawing, Shape, ticks

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 28, 22
MOST_HOVERED = 80
"""Steps that tell their value where a pointer rests."""


@dataclass(frozen=True)
class BillChart:
    """A drawing with its title and what it shows in words."""

    drawing: Drawing
    title: str
    description: str


def bill_chart(
    lines: Sequence[tuple[str, float]],
    budget: float,
    *,
    spent: float | None = None,
    whole: bool = True,
    now: datetime | None = None,
) -> BillChart:
    """The epsilon spent after each line, against time.

    Parameters
    ----------
    lines : sequence of (time, epsilon so far)
        Oldest first; times as the ledger writes them.
    budget : float
        The most that may ever be spent.
    spent : float, optional
        What is spent by now, where the lines do not tell: an analyst's are some of all.
    whole : bool
        Whether the first line is the account's first; if not, nobody knows here when it came to what it begins with.
    now : datetime, optional
        The right end.
    """
    end = now or datetime.now(UTC)
    steps = [(_time(time), max(0.0, so_far)) for time, so_far in lines]
    start = min([steps[0][0] if steps else end, end]) - timedelta(minutes=1)
    end = max([end, *(time for time, _ in steps)])
    seconds = max((end - start).total_seconds(), 1.0)
    top = 1.12 * max([budget, spent or 0.0, *(so_far for _, so_far in steps)]) or 1.0

    def across(time: datetime) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (time - start).total_seconds() / seconds

    def up(epsilon: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * epsilon / top

    shapes = []
    for tick in ticks((0.0, top), 4):
        shapes.append(Shape("line", "grid", _at(x1=LEFT, x2=WIDTH - RIGHT, y1=up(tick), y2=up(tick))))
        shapes.append(Shape("text", "tick end", _at(x=LEFT - 5, y=up(tick) + 3.5), text=f"{tick:g}"))
    level = 0.0 if whole or not steps else steps[0][1]
    corners = [(across(start), up(level))]
    for time, so_far in steps:
        corners += [(across(time), up(level)), (across(time), up(so_far))]
        level = so_far
    corners.append((across(end), up(level)))
    if spent is not None and spent > level:
        level = spent
        corners.append((across(end), up(level)))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    ground = up(0.0)
    shapes.append(
        Shape("polygon", "band", {"points": f"{corners[0][0]:.1f},{ground:.1f} {points} {corners[-1][0]:.1f},{ground:.1f}"})
    )
    shapes.append(Shape("polyline", "line", {"points": points}))
    shapes.append(Shape("line", "limit", _at(x1=LEFT, x2=WIDTH - RIGHT, y1=up(budget), y2=up(budget))))
    shapes.append(Shape("text", "limit-name", _at(x=LEFT + 4, y=up(budget) - 4), text=f"budget {rounded_up(budget)}"))
    for time, so_far in steps[-MOST_HOVERED:]:
        told = f"{time:%Y-%m-%d %H:%M}: epsilon {rounded_up(so_far)} spent so far"
        shapes.append(Shape("circle", "step", _at(cx=across(time), cy=up(so_far), r=3), title=told))
    shapes.append(Shape("text", "tick", _at(x=2, y=12), text="epsilon spent so far"))
    for text, x, kind in _time_ticks(start, end, across(start), across(end)):
        shapes.append(Shape("text", f"tick {kind}".strip(), _at(x=x, y=HEIGHT - 6), text=text))
    description = (
        f"Epsilon spent so far against time: {len(steps)} steps, up to {rounded_up(level)} of {rounded_up(budget)} "
        f"by {end:%Y-%m-%d %H:%M} UTC."
    )
    return BillChart(Drawing(WIDTH, HEIGHT, tuple(shapes)), "What was spent, over time", description)


def _time_ticks(start: datetime, end: datetime, first: float, last: float) -> list[tuple[str, float, str]]:
    """Both ends in words: days where they are apart, minutes within one day."""
    form = "%H:%M" if start.date() == end.date() else "%-d %b %H:%M" if end - start < timedelta(days=3) else "%-d %b %Y"
    return [(start.strftime(form), first, ""), (f"{end.strftime(form)} UTC", last, "end")]


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _at(**numbers: float) -> dict[str, str]:
    return {name: f"{number:.1f}".removesuffix(".0") for name, number in numbers.items()}
