"""Pages and notebook fragments of results.

Every page is one template with the privacy label and one style sheet, and stands alone: no scripts, nothing loaded from
elsewhere, readable on a phone and on paper. What a result puts on its page is :func:`page_content`; what a notebook shows of
it is :func:`fragment`. Both are dispatched on the class: rooms above this one register their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..accounting import epsilon_of, rounded_up
from ..errors import InvalidInput
from ..guarantee import Bill, Guarantee
from ..results import Curve, Explanation, Ranking, Surface
from ..results.band_claim import TWO_SIDED_95, BandClaim
from ..results.counterfactuals import Counterfactuals
from ..results.effects import Effects
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..results.report import PART_NAMES, GlobalExplanation
from .attributions import (
    MOST_COLUMNS,
    MOST_POINTS,
    MOST_SUMMARISED,
    Bar,
    bar_limits,
    bar_numbers,
    bars_of,
    contributions_table,
    sentence_of,
)
from .counterfactuals import changes_table, distances_figure, question_of
from .curves import (
    curve_figure,
    curve_height,
    curve_limits,
    curve_table,
    curve_title,
    draw_curve,
    mark_value,
    most_common_levels,
    surface_figure,
    surface_table,
    surface_title,
)
from .histograms import histogram_figure, histogram_table, links_figure
from .rankings import ranking_figure, ranking_table
from .render import render
from .spending import bill_table, budget_figure
from .style import new_figure
from .tables import Table, aligned_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Content = tuple[str, dict[str, object]]
"""The name of a template, and what it is given."""


class Result(Protocol):
    """Anything that was released: it carries its promise."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise."""
        ...


CURVE_INCHES = 4.2
"""Width of a curve's picture: two fit side by side, and letters stay readable on a phone."""
RANKING_INCHES = 4.8
MOST_LEVELS, MOST_ITEMS, MOST_PEOPLE, MOST_PEOPLE_IN_NOTEBOOK = 16, 30, 12, 3
LEAST_SPAN = 0.12
"""Of the widest scale among the curves of a kind: a curve that does next to nothing should not look as if it did."""

KNOWN_LIMITS = (
    "One row is taken to be one person. Somebody with k rows is protected by a promise k times as weak in mu.",
    "What was declared beforehand is public: the schema, the row count, the model. The promise says nothing about them.",
    "The model is an input: what it learned from its own training rows is not covered, unless the line above says so.",
    "Timing, memory use and other side channels of the machine are not covered.",
    "Bands show the noise that was added, for each number on its own; beside them stands how often they hold, or that "
    "nobody calibrated them. They do not show sampling error.",
)
_PROTECTS = {
    "explanation-data": "the rows these numbers were computed from, given the model",
    "training-data": "the rows these numbers were computed from, and those the model was trained on",
}
_NEIGHBOURS = {
    "add-remove": "add-remove: with or without any one row",
    "replace-one": "replace-one: any one row exchanged for another (the number of rows is not protected)",
}


@dataclass(frozen=True, slots=True)
class PrivacyLabel:
    """The lines of a privacy label, in order: a name and a text."""

    promise: str
    lines: tuple[tuple[str, str], ...]
    limits: tuple[str, ...] = KNOWN_LIMITS


def privacy_label(guarantee: Guarantee, *, dataset: str = "", bill: Bill | None = None) -> PrivacyLabel:
    """The label of a release, or of all that an account has released.

    Parameters
    ----------
    guarantee : Guarantee
        The promise for everything on the page together.
    dataset : str
        Whose rows.
    bill : Bill, optional
        What was spent of which budget.
    """
    lines = [("In words", guarantee.sentence)]
    if dataset:
        lines.append(("Dataset", dataset))
    lines += [("Protects", _PROTECTS[guarantee.protects]), ("Neighbours", _NEIGHBOURS[guarantee.neighbours])]
    if bill is not None:
        lines += [("Bill", bill.sentence), ("Ledger head", bill.head)]
    return PrivacyLabel(f"ε = {rounded_up(guarantee.epsilon)}, δ = {rounded_up(guarantee.delta)}", tuple(lines))


class Picture(NamedTuple):
    """A figure on a page: what it shows in words, its numbers folded away underneath, and its title."""

    figure: Figure
    description: str
    numbers: Table | None = None
    title: str = ""


class Card(NamedTuple):
    """One column on a page: what is said about it, and its pictures side by side; below each other on a phone."""

    title: str
    text: str
    pictures: tuple[Picture, ...]


class Point(NamedTuple):
    """One explained point on a page: what the model says, the explanation in a sentence, and its bars."""

    output: str
    sentence: str
    caution: str
    bars: list[Bar]
    bar_numbers: list[tuple[str, str]]
    limits: tuple[float, float]
    numbers: Table

    @classmethod
    def of(cls, e: Explanation, most: int = MOST_COLUMNS) -> Point:
        """What is shown of an explanation of one point."""
        bars = bars_of(e, most)
        output = aligned_numbers(e.outputs)[0]
        sentence = sentence_of(e)
        return cls(output, sentence, caution_of(e), bars, bar_numbers(bars), bar_limits(bars), contributions_table(e))


def caution_of(e: Explanation) -> str:
    """A sentence where the explanation of one point is far from the model, so that nobody takes it for the model."""
    if abs(e.predictions[0] - e.outputs[0]) <= abs(e.values[0]).max():
        return ""
    prediction, output = aligned_numbers((e.predictions[0], e.outputs[0]))
    return (
        f"Take care: the explanation arrives at {prediction} where the model says {output}. The miss is larger than any "
        "contribution, so do not take the imitation for the model at this very point."
    )


# --- pages ---------------------------------------------------------------------------------------------------------------


def page(
    result: Result,
    *,
    title: str | None = None,
    dataset: str = "",
    model: str = "the model",
    bill: Bill | None = None,
    notes: Sequence[str] = (),
) -> str:
    """A whole page of a result, as HTML that stands alone.

    Parameters
    ----------
    result : any result
        What was found, a :class:`~vitrail.guarantee.Bill`, a pane, or a person explained from one.
    title : str, optional
        What stands on top.
    dataset, model : str
        Whose rows, and what was explained, where the result does not know it.
    bill : Bill, optional
        ``data.budget.bill()``: the label then states the promise for all that the account has released.
    notes : sequence of str
        Further sentences for the reader.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> promise = vt.Guarantee.of_mu(0.2, 1e-6)
    >>> curve = vt.Curve("<age>", "any curve", np.arange(3.0), np.zeros(3), promise, vt.Cost.of_mu(0.2))
    >>> html = vt.show.page(curve, title="What <age> does")
    >>> "<h1>What &lt;age&gt; does</h1>" in html, "Privacy label" in html, "<script" in html
    (True, True, False)
    """
    template, own = page_content(result)
    guarantee = result.guarantee
    dataset, named = getattr(result, "dataset", "") or dataset, getattr(result, "model", None)
    if isinstance(result, Bill):
        bill = result
    if bill is not None and bill.guarantee.neighbours != guarantee.neighbours:
        raise InvalidInput(
            f"the bill is of an account with neighbours {bill.guarantee.neighbours!r}, and the explanation of one with "
            f"{guarantee.neighbours!r}; give the bill of the account that paid: data.budget.bill()"
        )
    given = {
        "result": result,
        "title": title,
        "dataset": dataset,
        "model": named if isinstance(named, str) else model,
        "notes": (*notes, *getattr(result, "notes", ())),
        "label": privacy_label(guarantee if bill is None else bill.guarantee, dataset=dataset, bill=bill),
        "bill": bill,
        "bill_table": None if bill is None else bill_table(bill),
        "bill_picture": None if bill is None else Picture(budget_figure(bill), f"Budget picture. {bill.sentence}"),
    }
    return render(template, **(given | own))


@singledispatch
def page_content(result: Result) -> Content:
    """The template of a result's page, and what it needs beside the result itself."""
    raise InvalidInput(f"there is no page for a {type(result).__name__}; give one of vitrail's results, or a bill")


@page_content.register
def _(result: Bill) -> Content:
    return "bill.html", {}


@page_content.register
def _(result: Explanation) -> Content:
    return "attribution.html", {"points": [Point.of(result[i], 20) for i in range(min(len(result), MOST_POINTS))]}


@page_content.register
def _(result: Counterfactuals) -> Content:
    shown = range(min(len(result), MOST_PEOPLE))
    people = [(question_of(result, i), changes_table(result, i), result.messages[i]) for i in shown]
    distances = Picture(distances_figure(result), "Each dot is one person's first answer.") if len(result) > 1 else None
    return "counterfactuals.html", {"people": people, "distances": distances}


@page_content.register(Curve)
@page_content.register(Surface)
@page_content.register(Ranking)
@page_content.register(Effects)
@page_content.register(PrivateRows)
def _(result: Curve | Surface | Ranking | Effects | PrivateRows) -> Content:
    return "result.html", {"pictures": pictures_of(result), "sentences": sentences_of(result)}


@page_content.register
def _(result: Marginals) -> Content:
    return "marginals.html", histograms_content(result)


@page_content.register
def report_content(result: GlobalExplanation) -> Content:
    """What the page of a global report needs; a pane's page is made of the same."""
    effects = {kind: curves for kind, curves in (("pdp", result.pdp), ("ale", result.ale)) if curves}
    least = {kind: LEAST_SPAN * max(map(_span, curves.values())) for kind, curves in effects.items()}
    cards = [
        Card(
            name,
            _importance_text(result.importance, name),
            tuple(_effect_picture(curves[name], kind, least[kind]) for kind, curves in effects.items() if name in curves),
        )
        for name in column_order(result)
    ]
    given = {
        "rankings": [(part, ranking, _ranking_picture(ranking)) for part, ranking in result.rankings.items()],
        "cards": cards,
        "effects": effects,
        "costs": costs_table(result),
        "mu_squared": rounded_up(result.cost.mu**2),
        "part_names": PART_NAMES,
    }
    return "report.html", given | histograms_content(result.marginals)


def column_order(result: GlobalExplanation) -> tuple[str, ...]:
    """The columns with curves: by importance, or else by how far their first curve goes up and down."""
    curves: Mapping[str, Curve] = result.pdp or result.ale or {}
    ranking = result.importance or result.shap
    if ranking is not None:
        return tuple(name for name in ranking.order if name in curves)
    return tuple(sorted(curves, key=lambda name: float(curves[name].y.min() - curves[name].y.max())))


def costs_table(result: GlobalExplanation) -> Table:
    """What each part took of the price."""
    rows = []
    for part, share in result.shares.items():
        alone = "" if share <= 0 else rounded_up(epsilon_of(result.cost.mu * math.sqrt(share), result.guarantee.delta))
        rows.append((PART_NAMES.get(part, part), f"{100 * share:.1f} %" if share > 0 else "paid before", alone))
    return Table(("part", "share of the price", "ε by itself"), tuple(rows), numeric=(1, 2))


def _span(curve: Curve) -> float:
    low, high = curve_limits(curve)
    return high - low


def _importance_text(ranking: Ranking | None, name: str) -> str:
    if ranking is None or name not in ranking.items:
        return ""
    item = ranking.items.index(name)
    text = f"Place {ranking.rank(name)} of {len(ranking)}: {ranking.score_label} {ranking.scores[item]:.3g}"
    if ranking.lower is not None and ranking.upper is not None:
        half = (ranking.upper[item] - ranking.lower[item]) / 2
        text += f" ± {half:.2g} ({ranking.band_claim.mark})"
        if ranking.lower[item] <= 0:
            text += ", which may be noise alone"
    return f"{text}."


def _effect_picture(curve: Curve, kind: str, least_span: float) -> Picture:
    """The curve at the page's size; of many levels the most common ones, with the numbers of all underneath."""
    shown = most_common_levels(curve, MOST_LEVELS)
    low, high = curve_limits(shown)
    missing = max(0.0, least_span - (high - low)) / 2
    figure = new_figure(CURVE_INCHES, curve_height(shown))
    draw_curve(figure.add_subplot(), shown, (low - missing, high + missing), titled=False)
    title = PART_NAMES[kind].capitalize()
    if len(shown) < len(curve):
        title += f", the {len(shown)} most common of {len(curve)} levels"
    return Picture(figure, _described(curve), curve_table(curve), title)


def _ranking_picture(ranking: Ranking) -> Picture:
    n_shown = min(MOST_ITEMS, len(ranking))
    axes = new_figure(RANKING_INCHES, 0.9 + 0.32 * n_shown).add_subplot()
    figure = ranking_figure(ranking, axes, max_items=n_shown, titled=False)
    axes.set_xlabel(ranking.score_label)  # the text says the rest
    more = f", the first {n_shown} of {len(ranking)}" if n_shown < len(ranking) else ""
    described = f"{ranking.kind}: {', '.join(ranking.top(n_shown))}; the numbers follow."
    return Picture(figure, described, ranking_table(ranking), ranking.kind.capitalize() + more)


def standing_picture(curve: Curve, value: object, text: str) -> Picture:
    """A curve with somebody's value marked on it; their own level is among those drawn."""
    shown = most_common_levels(curve, MOST_LEVELS, own=value)
    figure = new_figure(CURVE_INCHES, curve_height(shown))
    axes = figure.add_subplot()
    draw_curve(axes, shown, titled=False)
    mark_value(axes, shown, value)
    return Picture(figure, f"{curve_title(curve)}. {text}", curve_table(curve))


def histograms_content(marginals: Marginals) -> dict[str, object]:
    """What the section of histograms needs: every column's picture with its numbers, and what the counts claim."""
    return {
        "marginals": marginals,
        "histograms": histogram_pictures(marginals),
        "count_claim": BandClaim.NOISE_LAW_95,
        "total_half_width": TWO_SIDED_95 * marginals.total_sigma,
    }


def histogram_pictures(marginals: Marginals) -> tuple[Picture, ...]:
    """Every column's histogram with its numbers."""
    return tuple(
        Picture(
            histogram_figure(marginals, name),
            f"Histogram of {name} with noise bands; the numbers follow.",
            histogram_table(marginals, name),
            name,
        )
        for name in marginals.columns
    )


def _described(curve: Curve) -> str:
    return f"{curve_title(curve)}, with its {curve.band_claim.band}; the numbers follow."


# --- one result and its pictures ----------------------------------------------------------------------------------------


@singledispatch
def pictures_of(result: Result) -> tuple[Picture, ...]:
    """The pictures of a result, with their numbers."""
    raise InvalidInput(f"there is no picture of a {type(result).__name__}; give one of vitrail's results")


@pictures_of.register
def _(result: Curve) -> tuple[Picture, ...]:
    return (Picture(curve_figure(result, titled=False), _described(result), curve_table(result), curve_title(result)),)


@pictures_of.register
def _(result: Surface) -> tuple[Picture, ...]:
    title = surface_title(result)
    described = f"{title}, and the width of its {result.band_claim.bands}; the numbers follow."
    return (Picture(surface_figure(result, titled=False), described, surface_table(result), title),)


@pictures_of.register
def _(result: Ranking) -> tuple[Picture, ...]:
    described = f"{result.kind}: {', '.join(result.top(20))}; the numbers follow."
    return (Picture(ranking_figure(result, titled=False), described, ranking_table(result), result.kind),)


@pictures_of.register
def _(result: Effects) -> tuple[Picture, ...]:
    return tuple(picture for one in (*result.values(), *result.surfaces.values()) for picture in pictures_of(one))


@pictures_of.register
def _(result: PrivateRows) -> tuple[Picture, ...]:
    described = f"Which columns of {result.dataset} hang together"
    return (Picture(links_figure(result), described, title=described), *histogram_pictures(result.marginals))


def sentences_of(result: Result) -> tuple[str, ...]:
    """What stands under every picture of a result: the promise at least."""
    return getattr(result, "sentences", (result.guarantee.sentence,))


# --- notebooks -----------------------------------------------------------------------------------------------------------


@singledispatch
def fragment(result: Result) -> str:
    """What a notebook shows of a result: a heading, pictures or bars or tables, and the sentences a reader should know.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> ranking = vt.Ranking(("<age>", "sex"), np.array([0.5, 0.1]), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
    >>> html = vt.show.fragment(ranking)
    >>> "<img" in html, "&lt;age&gt;" in html, "<age>" in html
    (True, True, False)
    """
    raise InvalidInput(f"there is nothing to show of a {type(result).__name__}; give one of vitrail's results")


def fragment_html(
    heading: str,
    sentences: Sequence[str],
    *,
    pictures: Sequence[Picture] = (),
    points: Sequence[Point] = (),
    tables: Sequence[tuple[str, Table, str]] = (),
    more: str = "",
) -> str:
    """A fragment from its pieces; ``tables`` have a text before and after each."""
    return render(
        "fragment.html", heading=heading, sentences=sentences, pictures=pictures, points=points, tables=tables, more=more
    )


@fragment.register
def _(result: Explanation) -> str:
    points = [Point.of(result[i], 8) for i in range(min(len(result), MOST_SUMMARISED))]
    more = f"and {len(result) - len(points)} more points" if len(result) > len(points) else ""
    bands = (f"Lines are {result.band_claim.bands}; a pale bar's band includes 0.",) if result.lower is not None else ()
    return fragment_html(repr(result), (*bands, *result.sentences), points=points, more=more)


@fragment.register
def _(result: Counterfactuals) -> str:
    n_shown = min(len(result), MOST_PEOPLE_IN_NOTEBOOK)
    tables = [(question_of(result, i), changes_table(result, i), result.messages[i]) for i in range(n_shown)]
    more = f"The first {n_shown} of {len(result)} people are shown." if n_shown < len(result) else ""
    return fragment_html(repr(result), (result.guarantee.sentence, *result.notes), tables=tables, more=more)


@fragment.register(Curve)
@fragment.register(Surface)
@fragment.register(Ranking)
@fragment.register(Effects)
@fragment.register(Marginals)
@fragment.register(PrivateRows)
def _(result: Curve | Surface | Ranking | Effects | Marginals | PrivateRows) -> str:
    return fragment_html(repr(result), sentences_of(result), pictures=[Picture(result.plot(), repr(result))])


@fragment.register
def _(result: GlobalExplanation) -> str:
    effects = [effects for effects in (result.pdp, result.ale) if effects]
    drawn: list[Ranking | Effects] = [*result.rankings.values(), *effects]
    claims = (claim.sentence(PART_NAMES[part]) for part, claim in result.band_claims.items())
    sentences = (result.guarantee.sentence, *claims, *result.notes)
    return fragment_html(repr(result), sentences, pictures=[Picture(one.plot(), repr(one)) for one in drawn])


@fragment.register
def _(result: Bill) -> str:
    return fragment_html(
        f"The bill of account {result.account!r}", (result.sentence,), tables=[("", bill_table(result), "")]
    )
