"""Rankings with their noise: a dot and a band for each item, and between two how sure their order is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..results.band_claim import BandClaim
from .attributions import aligned_numbers
from .histograms import shortened
from .images import AMBER, GLASS, INK, RULE, SOFT, new_figure, notebook_html, quiet
from .report import Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONGEST_ITEM = 28
SURE = 0.95
"""Orders less probable than this are written in amber."""


@dataclass(frozen=True, slots=True)
class RankingShape:
    """A ranking as plain numbers and texts, the highest item first.

    Parameters
    ----------
    title : str
        What stands above it.
    items : tuple of str
        The items.
    scores : tuple of float
        Their scores, falling.
    lower, upper : tuple of float or None
        Ends of the scores' noise bands.
    confidence : tuple of float or None
        How probable it is that an item truly stands above the next one; one fewer than there are items.
    score_label : str
        What the scores are.
    band_claim : BandClaim
        How often the bands hold.

    Examples
    --------
    >>> shape = RankingShape("importance", ("age", "sex"), (0.5, 0.1), (0.4, 0.0), (0.6, 0.2), (0.98,), "loss")
    >>> ranking_figure(shape).axes[0].get_title(loc="left")
    'importance'
    """

    title: str
    items: tuple[str, ...]
    scores: tuple[float, ...]
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    confidence: tuple[float, ...] | None = None
    score_label: str = "score"
    band_claim: BandClaim = BandClaim.NOT_CALIBRATED

    def __post_init__(self) -> None:
        for part in (self.scores, self.lower, self.upper):
            if part is not None and len(part) != len(self.items):
                raise InvalidInput(f"a ranking of {len(self.items)} items was given {len(part)} numbers for them")
        if self.confidence is not None and len(self.confidence) != len(self.items) - 1:
            raise InvalidInput(f"a ranking of {len(self.items)} items has {len(self.items) - 1} pairs of neighbours")
        if not self.items:
            raise InvalidInput("a ranking has no items; give at least one")


def ranking_figure(ranking: RankingShape, axes: Axes | None = None, *, max_items: int = 20, titled: bool = True) -> Figure:
    """The highest items in a figure of its own, or drawn into given axes; returns the figure."""
    shown = min(max_items, len(ranking.items))
    if axes is None:
        axes = new_figure(5.6, 0.9 + 0.34 * shown).add_subplot()
    quiet(axes)
    places = range(shown)
    if ranking.lower is not None and ranking.upper is not None:
        axes.hlines(places, ranking.lower[:shown], ranking.upper[:shown], color=GLASS, alpha=0.45, linewidth=7)
    axes.plot(ranking.scores[:shown], places, "o", color=INK, markersize=4)
    axes.set_yticks(list(places), [shortened(item, LONGEST_ITEM) for item in ranking.items[:shown]], parse_math=False)
    axes.tick_params(axis="y", colors=INK)
    axes.set_ylim(shown - 0.4, -0.6)
    for place, sure in enumerate((ranking.confidence or ())[: shown - 1]):
        axes.text(
            1.01, place + 0.5, _per_cent(sure), transform=axes.get_yaxis_transform(),
            color=SOFT if sure >= SURE else AMBER, fontsize=7.5, va="center",
        )  # fmt: skip
    label = ranking.score_label + (f"; blue: {ranking.band_claim.band}" if ranking.lower is not None else "")
    label += f"\nright: {ranking.band_claim.order}" if ranking.confidence else ""
    axes.set_xlabel(label, fontsize=8, color=SOFT, parse_math=False)
    if titled:
        more = f" (the first {shown} of {len(ranking.items)})" if shown < len(ranking.items) else ""
        axes.set_title(ranking.title + more, fontsize=9.5, color=INK, loc="left", fontweight="bold", parse_math=False)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def ranking_table(ranking: RankingShape) -> Table:
    """The numbers of a ranking."""
    scores = aligned_numbers(ranking.scores)
    half = ["" for _ in scores]
    if ranking.lower is not None and ranking.upper is not None:
        half = [f"± {(high - low) / 2:.2g}" for low, high in zip(ranking.lower, ranking.upper, strict=True)]
    sure = [*(_per_cent(one) for one in ranking.confidence), ""] if ranking.confidence is not None else ["" for _ in scores]
    rows = tuple(zip(ranking.items, scores, half, sure, strict=True))
    claim = ranking.band_claim
    above = "above the next" if claim.calibrated else "above the next, by noise alone"
    return Table(("item", ranking.score_label, claim.column, above), rows, numeric=(1, 2, 3))


def ranking_picture(ranking: RankingShape) -> Picture:
    """The figure with its numbers, for a report."""
    described = f"{ranking.title}: {', '.join(ranking.items[:20])}; the numbers follow."
    return Picture(ranking_figure(ranking, titled=False), described, ranking_table(ranking), title=ranking.title)


def ranking_html(ranking: RankingShape, heading: str, sentences: Sequence[str]) -> str:
    """What a notebook shows: the picture, and the sentences under it."""
    return notebook_html(heading, ranking_figure(ranking), f"{ranking.title}: {', '.join(ranking.items[:20])}", sentences)


def _per_cent(probability: float) -> str:
    """A probability as a whole per cent that does not claim certainty."""
    return ">99 %" if probability > 0.995 else f"{100 * probability:.0f} %"
