"""The page of a global report: what matters most, then a card for every column, who is in the data, what it cost.

Takes shapes and texts alone, so that a page can be made wherever releases are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..accounting import epsilon_of, rounded_up
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..results.band_claim import weakest
from .bill import Bill
from .budget import bill_section
from .curves import CurveShape, curve_table, draw_curve
from .histograms import Histogram, histograms_section
from .images import SOFT, new_figure
from .label import privacy_label
from .page import html_text
from .rankings import RankingShape, ranking_figure, ranking_table
from .report import PagePart, Picture, Report, Section, Table

CURVE_INCHES = 4.2
"""Width of a curve's picture: two fit side by side, and letters stay readable on a phone."""
RANKING_INCHES = 4.8
MOST_LEVELS, MOST_ITEMS = 16, 30
LEAST_SPAN = 0.12
"""Of the widest scale among the curves of a kind: a curve that does next to nothing should not look as if it did."""
KINDS = {"pdp": "Partial dependence", "ale": "Accumulated effects"}
PARTS = {
    "marginals": "histograms of all columns",
    "clips": "sizes of local effects, to set their clips",
    "pdp": "partial dependence",
    "ale": "accumulated effects",
    "importance": "permutation importance",
    "shap": "SHAP importance",
}


@dataclass(frozen=True)
class GlobalShape:
    """A global explanation as plain numbers and texts.

    Parameters
    ----------
    dataset, model : str
        Whose rows, and what was explained.
    pdp, ale : mapping of str to CurveShape, or None
        Curves by column.
    importance : RankingShape or None
        Columns, the most important first.
    shap : RankingShape or None
        Columns by the mean size of their Shapley values.
    histograms : tuple of Histogram
        Of every column.
    total, total_sigma : float
        About how many rows there are, and the noise of that.
    shares : mapping of str to float
        What share of mu squared each part took.
    mu : float
        What all of it cost.
    notes : tuple of str
        Sentences a reader should know.
    """

    dataset: str
    model: str
    pdp: Mapping[str, CurveShape] | None
    ale: Mapping[str, CurveShape] | None
    importance: RankingShape | None
    histograms: tuple[Histogram, ...]
    total: float
    total_sigma: float
    shares: Mapping[str, float]
    mu: float
    notes: tuple[str, ...] = ()
    shap: RankingShape | None = None

    @property
    def effects(self) -> dict[str, Mapping[str, CurveShape]]:
        """The curves there are, by kind."""
        return {kind: curves for kind, curves in (("pdp", self.pdp), ("ale", self.ale)) if curves}

    def columns(self) -> tuple[str, ...]:
        """The columns with curves: by importance, or else by how far their first curve goes up and down."""
        curves = next(iter(self.effects.values()), {})
        ranking = self.importance or self.shap
        if ranking is not None:
            return tuple(name for name in ranking.items if name in curves)
        return tuple(sorted(curves, key=lambda name: min(curves[name].y) - max(curves[name].y)))


@dataclass(frozen=True, slots=True)
class Card:
    """One column: what is said about it, and its pictures side by side; below each other where a screen is narrow."""

    title: str
    text: str
    pictures: tuple[Picture, ...]

    def to_html(self) -> str:
        """The card as HTML, escaped."""
        pictures = "\n".join(one.to_html() for one in self.pictures)
        said = f"<p>{html_text(self.text)}</p>" if self.text else ""
        return f'<article class="card"><h3>{html_text(self.title)}</h3>{said}<div class="pair">{pictures}</div></article>'


@dataclass(frozen=True, slots=True)
class Cards:
    """A part of a report: paragraphs, then cards."""

    title: str
    paragraphs: tuple[str, ...]
    cards: tuple[Card, ...]

    def to_html(self) -> str:
        """The part as HTML, escaped."""
        said = "\n".join(f"<p>{html_text(text)}</p>" for text in self.paragraphs)
        cards = "\n".join(card.to_html() for card in self.cards)
        return f"<section>\n<h2>{html_text(self.title)}</h2>\n{said}\n{cards}\n</section>"


def global_report(
    found: GlobalShape,
    guarantee: Guarantee,
    *,
    bill: Bill | None = None,
    title: str | None = None,
    before: tuple[Section, ...] = (),
) -> Report:
    """The page: label, importance, columns, histograms, cost.

    Parameters
    ----------
    found : GlobalShape
        What was found.
    guarantee : Guarantee
        The promise for everything on the page; with a bill the label states that of the whole account.
    bill : Bill, optional
        What the account has paid for.
    title : str, optional
        What stands on top.
    before : tuple of Section
        Sections of the caller's own, after the label.
    """
    if bill is not None and bill.guarantee.neighbours != guarantee.neighbours:
        raise InvalidInput(
            f"the bill is of an account with neighbours {bill.guarantee.neighbours!r}, and the explanation of one with "
            f"{guarantee.neighbours!r}; give the bill of the account that paid: vt.show.bill_of(data.budget)"
        )
    parts: list[PagePart] = [*before]
    rankings = []
    if found.importance is not None:
        text = (
            f"How much worse {found.model} predicts the target when a column's values are exchanged for values drawn from "
            f"its histogram. Bars are {found.importance.band_claim.bands}; a band that includes 0 says that the column may "
            "not matter at all."
        )
        rankings.append(ranking_card(found.importance, text))
    if found.shap is not None:
        text = (
            f"How much a column moves single outputs of {found.model}: the mean size of its Shapley values over the rows, "
            f"against rows drawn from the histograms. Bars are {found.shap.band_claim.bands}."
        )
        rankings.append(ranking_card(found.shap, text))
    if rankings:
        parts.append(Cards("What matters most", (), tuple(rankings)))
    if found.effects:
        parts.append(columns_part(found))
    parts.append(histograms_section(found.histograms, total=found.total, total_sigma=found.total_sigma))
    parts.append(cost_section(found, guarantee))
    if bill is not None:
        parts.append(bill_section(bill))
    label = privacy_label(guarantee if bill is None else bill.guarantee, dataset=found.dataset, bill=bill)
    return Report(title or f"{found.model}, explained from {found.dataset}", label, tuple(parts))


def ranking_card(ranking: RankingShape, text: str) -> Card:
    """The ranking with its bands, and what it means."""
    claim = ranking.band_claim
    if ranking.lower is not None:
        text += f" {claim.sentence()}"
    if ranking.confidence and len(ranking.items) > 1:
        text += (
            f" The percentages on the right say {claim.order}: that of two neighbouring columns the upper one is truly the "
            "more important one."
        )
    shown = min(MOST_ITEMS, len(ranking.items))
    axes = new_figure(RANKING_INCHES, 0.9 + 0.32 * shown).add_subplot()
    figure = ranking_figure(ranking, axes, max_items=shown, titled=False)
    axes.set_xlabel(ranking.score_label, fontsize=8, color=SOFT, parse_math=False)  # the text says the rest
    described = f"{ranking.title}: {', '.join(ranking.items[:shown])}; the numbers follow."
    title = ranking.title.capitalize() + (
        f", the first {shown} of {len(ranking.items)}" if shown < len(ranking.items) else ""
    )
    return Card(title, text, (Picture(figure, described, ranking_table(ranking)),))


def columns_part(found: GlobalShape) -> Cards:
    """A card for every column, the most important first."""
    said = [
        "Blue shows the noise bands. Grey shows where the rows are, noisy as well: a curve means little where nobody is."
    ]
    for kind, curves in found.effects.items():
        said.append(weakest(curve.band_claim for curve in curves.values()).sentence(PARTS[kind]))
    if found.pdp:
        said.append("Partial dependence: the model's mean output over all rows, had they all this value in the column.")
    if found.ale:
        said.append(
            "Accumulated effects: what small steps of the column do to the output of the rows that are there, added up; "
            "their mean is 0. Where the two differ in shape, the column goes along with other columns."
        )
    least = {kind: LEAST_SPAN * max(_span(curve) for curve in curves.values()) for kind, curves in found.effects.items()}
    cards = []
    for name in found.columns():
        pictures = tuple(
            _picture(curves[name], kind, least[kind]) for kind, curves in found.effects.items() if name in curves
        )
        cards.append(Card(name, _importance_text(found.importance, name), pictures))
    return Cards("Column by column", tuple(said), tuple(cards))


def _span(curve: CurveShape) -> float:
    low, high = curve.limits()
    return high - low


def _importance_text(ranking: RankingShape | None, name: str) -> str:
    if ranking is None or name not in ranking.items:
        return ""
    place = ranking.items.index(name)
    text = f"Place {place + 1} of {len(ranking.items)}: {ranking.score_label} {ranking.scores[place]:.3g}"
    if ranking.lower is not None and ranking.upper is not None:
        half = (ranking.upper[place] - ranking.lower[place]) / 2
        text += f" ± {half:.2g} ({ranking.band_claim.mark})"
        if ranking.lower[place] <= 0:
            text += ", which may be noise alone"
    return f"{text}."


def _picture(curve: CurveShape, kind: str, least_span: float) -> Picture:
    """The curve at the page's size; of many levels the most common ones, with the numbers of all underneath."""
    shown = most_common(curve, MOST_LEVELS)
    low, high = shown.limits()
    missing = max(0.0, least_span - (high - low)) / 2
    figure = new_figure(CURVE_INCHES, shown.height_inches)
    draw_curve(figure.add_subplot(), shown, (low - missing, high + missing), titled=False)
    title = KINDS[kind]
    if len(shown.x) < len(curve.x):
        title += f", the {len(shown.x)} most common of {len(curve.x)} levels"
    described = f"{curve.title}, with its {curve.band_claim.band}; the numbers follow."
    return Picture(figure, described, curve_table(curve), title=title)


def most_common(curve: CurveShape, most: int) -> CurveShape:
    """The levels with the largest shares, in their own order; a curve over numbers, or of few levels, as it is.

    Examples
    --------
    >>> shape = CurveShape("job", ("a", "b", "c"), (0.1, 0.2, 0.3), shares=(0.2, 0.1, 0.7))
    >>> most_common(shape, 2).x
    ('a', 'c')
    """
    shares = curve.shares
    if not curve.categorical or len(curve.x) <= most or shares is None:
        return curve
    kept = sorted(sorted(range(len(curve.x)), key=lambda place: -shares[place])[:most])
    return curve.at_levels(kept)


def cost_section(found: GlobalShape, guarantee: Guarantee) -> Section:
    """What each part took of the price, and what to know about all of them."""
    rows = []
    for part, share in found.shares.items():
        alone = "" if share <= 0 else rounded_up(epsilon_of(found.mu * math.sqrt(share), guarantee.delta))
        rows.append((PARTS.get(part, part), f"{100 * share:.1f} %" if share > 0 else "paid before", alone))
    earlier = any(share <= 0 for share in found.shares.values())
    text = (
        f"Everything above together{', what was paid for before included' if earlier else ''}: {guarantee.sentence} Shares "
        f"are of the mu squared that was paid here, {rounded_up(found.mu**2)}, in which costs add up; the last column is "
        "what a part would have cost by itself."
    )
    table = Table(("part", "share of the price", "ε by itself"), tuple(rows), numeric=(1, 2))
    return Section("What each part cost, and what to know", (text, *found.notes), (table,))
