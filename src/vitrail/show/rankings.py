"""Rankings and other estimates with their noise: a dot and a band for each, and how sure an order is."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import _checks
from ..errors import InvalidInput
from ..results import Ranking
from ..results.band_claim import BandClaim
from .style import AMBER, SOFT, dots, figure_of, new_figure, put_labels, put_title
from .tables import Table, aligned_numbers, half_widths, per_cent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SURE = 0.95
"""Orders less probable than this are written in amber."""


def ranking_figure(ranking: Ranking, axes: Axes | None = None, *, max_items: int = 20, titled: bool = True) -> Figure:
    """The highest items in a figure of its own, or drawn into given axes; returns the figure."""
    n_shown = min(_checks.whole("max_items", max_items), len(ranking))
    if axes is None:
        axes = new_figure(4.4, 1.1 + 0.32 * n_shown).add_subplot()
    top = {name: column[:n_shown] for name, column in ranking.frame().items()}
    banded = ranking.std is not None
    dots(axes, top["item"].tolist(), top["score"], top["lower"] if banded else None, top["upper"] if banded else None)
    sure_of_next = [] if ranking.own_std is None else top["confidence"][: n_shown - 1].tolist()
    for row, sure in enumerate(sure_of_next):
        axes.text(
            1.01, row + 0.5, per_cent(sure), transform=axes.get_yaxis_transform(),
            color=SOFT if sure >= SURE else AMBER, fontsize=7.5, va="center",
        )  # fmt: skip
    blue = f"blue: {ranking.band_claim.band}" if banded else ""
    right = f"right: {ranking.band_claim.order}" if sure_of_next else ""
    put_labels(axes, "\n".join(line for text in (ranking.score_label, blue, right) for line in textwrap.wrap(text, 50)))
    if titled:
        more = f" (the first {n_shown} of {len(ranking)})" if n_shown < len(ranking) else ""
        put_title(axes, ranking.kind + more, 80, bold=True)
    return figure_of(axes)


def ranking_table(ranking: Ranking) -> Table:
    """The numbers of a ranking, the highest item first."""
    frame, claim = ranking.frame(), ranking.band_claim
    blank = [""] * len(ranking)
    half = blank if ranking.std is None else half_widths(frame["lower"].tolist(), frame["upper"].tolist())
    sure = blank if ranking.own_std is None else [*map(per_cent, ranking.confidence.tolist()), ""]
    above = "above the next" if claim.calibrated else "above the next, by noise alone"
    rows = tuple(zip(frame["item"].tolist(), aligned_numbers(frame["score"]), half, sure, strict=True))
    return Table(("item", ranking.score_label, claim.column, above), rows, numeric=(1, 2, 3))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A released number, half the width of its noise band, and how often that holds."""

    name: str
    value: float
    half_width: float
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED


def estimates_figure(estimates: Sequence[Estimate], *, limits: tuple[float, float] | None = None) -> Figure:
    """One line per estimate, the first on top; ``limits`` are the ends of the scale, where there are natural ones.

    Examples
    --------
    >>> import vitrail as vt
    >>> risks = [vt.show.Estimate("women", 0.12, 0.02), vt.show.Estimate("men", 0.31, 0.02)]
    >>> len(vt.show.estimates_figure(risks).axes)
    1
    """
    if not estimates:
        raise InvalidInput("there is no estimate to draw; give at least one")
    axes = new_figure(4.0, 0.6 + 0.3 * len(estimates)).add_subplot()
    values, half = (np.array([getattr(estimate, name) for estimate in estimates]) for name in ("value", "half_width"))
    dots(axes, [estimate.name for estimate in estimates], values, values - half, values + half)
    if limits is not None:
        axes.set_xlim(*limits)
    return figure_of(axes)
