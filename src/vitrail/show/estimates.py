"""Estimates with their noise: a dot and a band for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..results.band_claim import BandClaim, weakest
from .images import GLASS, INK, RULE, new_figure, quiet
from .report import Picture, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Estimate:
    """A released number, half the width of its noise band, and how often that holds."""

    name: str
    value: float
    half_width: float
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED


def estimates_figure(estimates: Sequence[Estimate], *, limits: tuple[float, float] | None = None) -> Figure:
    """One line per estimate, the first on top; ``limits`` are the ends of the scale, where there are natural ones."""
    if not estimates:
        raise InvalidInput("there is no estimate to draw; give at least one")
    figure = new_figure(4.0, 0.6 + 0.3 * len(estimates))
    axes = figure.add_subplot()
    quiet(axes)
    places = range(len(estimates))
    axes.hlines(
        places,
        [one.value - one.half_width for one in estimates],
        [one.value + one.half_width for one in estimates],
        color=GLASS,
        alpha=0.4,
        linewidth=7,
    )
    axes.plot([one.value for one in estimates], places, "o", color=INK, markersize=4)
    axes.set_yticks(list(places), [one.name for one in estimates], parse_math=False)
    axes.tick_params(axis="y", colors=INK)
    axes.set_ylim(len(estimates) - 0.4, -0.6)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    if limits is not None:
        axes.set_xlim(*limits)
    return figure


def estimates_picture(title: str, estimates: Sequence[Estimate], *, limits: tuple[float, float] | None = None) -> Picture:
    """The figure with its numbers, for a report."""
    rows = tuple((one.name, f"{one.value:.4g}", f"± {one.half_width:.2g}") for one in estimates)
    spoken = "; ".join(f"{name} {value} {band}" for name, value, band in rows)
    return Picture(
        estimates_figure(estimates, limits=limits),
        f"{title}: {spoken}",
        Table(("", "value", weakest(one.band_claim for one in estimates).column), rows, numeric=(1, 2)),
        title=title,
    )
