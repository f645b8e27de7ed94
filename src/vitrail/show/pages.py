"""Pages and notebook fragments of results.

Every page is one template with the privacy label and one style sheet, and stands alone: no scripts, nothing loaded from
elsewhere, readable on a phone and on paper. What a result puts on its page is :func:`page_content`; what a notebook shows of
it is :func:`fragment`. Both are dispatched on the class: rooms above this one register their own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import NamedTuple, TypeAlias

from .._types import Figure
from ..accounting import epsilon_of, rounded_up
from ..accounting.guarantee import Bill
from ..errors import InvalidInput
from ..results import Attribution, Curve, Ranking, Surface
from ..results.band_claim import BandClaim
from ..results.base import Drawn, Result
from ..results.checks import shown_text
from ..results.class_picture import ClassPicture
from ..results.counterfactuals import Counterfactuals
from ..results.effects import Effects
from ..results.group_table import GroupTable
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..results.report import PART_NAMES, Report
from ..results.verdict import Verdict
from . import attributions, counterfactuals, curves, drawings, groups, histograms, spending
from .drawings import Drawing
from .style import render
from .text_tables import Table

Content: TypeAlias = tuple[str, dict[str, object]]
"""The name of a template, and what it is given."""
Shown: TypeAlias = Drawn | Bill

MOST_POINTS_IN_NOTEBOOK, MOST_PEOPLE_IN_NOTEBOOK = 5, 3
TOOLS: dict[str, object] = {
    "attributions": attributions,
    "counterfactuals": counterfactuals,
    "curves": curves,
    "drawings": drawings,
    "groups": groups,
    "histograms": histograms,
    "spending": spending,
    "epsilon_of": epsilon_of,
    "rounded_up": rounded_up,
    "shown_text": shown_text,
    "count_claim": BandClaim.NOISE_LAW_95,
    "part_names": PART_NAMES,
    "curve_verdict": lambda effects, name: curve_verdict(effects, name),
}
"""What every template can call, by name."""


class Picture(NamedTuple):
    """A figure on a page: what it shows in words, its numbers folded away underneath, its title, and what to know of it."""

    figure: Figure | Drawing
    description: str
    numbers: Table | None = None
    title: str = ""
    remark: str = ""


# --- pages ---------------------------------------------------------------------------------------------------------------


def page(
    result: Shown,
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
        What was found, a :class:`~vitrail.accounting.guarantee.Bill`, a pane, or a person explained from one.
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
    given: dict[str, object] = {
        "read_first": result.read_first if isinstance(result, Result) else (),
        "rows_counted": result.rows_counted if isinstance(result, Result) else None,
        "result": result,
        "title": title,
        "dataset": dataset,
        "model": named if isinstance(named, str) else model,
        "notes": (*notes, *getattr(result, "notes", ())),
        "guarantee": guarantee if bill is None else bill.guarantee,
        "bill": bill,
        "label_lines": (),
        "explained": True,
    }
    return render(template, **(TOOLS | given | own))


@singledispatch
def page_content(result: Shown) -> Content:
    """The template of a result's page, and what it needs beside the result itself."""
    match result:
        case Bill():
            return "bill.html", {}
        case Attribution():
            return "attribution.html", {"shown": list(result[: attributions.MOST_POINTS])}
        case Counterfactuals():
            return "counterfactuals.html", {}
        case Marginals():
            return "marginals.html", {"marginals": result}
        case GroupTable():
            return "groups.html", {}
        case PrivateRows():
            return "private_rows.html", {"marginals": result.marginals.drawn}
        case Report():
            return "report.html", report_content(result)
        case Result():
            pictures = pictures_of(result)
            heading = pictures[0].title
            if isinstance(result, Effects):
                heading = f"{heading.partition(':')[0]} of {len(pictures)} columns"
            return "result.html", {"pictures": pictures, "heading": heading, "sentences": result.read_below}
    raise InvalidInput(f"there is no page for a {type(result).__name__}; give one of vitrail's results, or a bill")


def report_content(result: Report) -> dict[str, object]:
    """What the page of a global report needs; a pane's page is made of the same."""
    effects = {part: curves_of for part, curves_of in (("pdp", result.pdp), ("ale", result.ale)) if curves_of}
    found = {"report": result, "effects": effects, "columns": column_order(result), "marginals": result.marginals.drawn}
    ends = (("people", "Who is in the data"), ("cost", "What it cost, and what to know"))
    contents = (*report_contents(result, column_order(result)), *ends, LABEL_LINE)
    return found | {"of_model": "", "contents": contents, "script_hash": report_script_hash()}


LABEL_LINE = ("label", "Privacy label")


def report_contents(result: Report, columns: Sequence[str], place: str = "", of_model: str = "") -> list[tuple[str, str]]:
    """The contents of a report: addresses on the page, and what stands there; ``place`` ends the ids of one of several."""
    of = f"{of_model}: " if of_model else ""
    lines = [(f"matters{place}", f"{of}What matters most")] if result.rankings else []
    lines += [(f"columns{place}", f"{of}Column by column")] if columns else []
    return lines + [(f"column{place}-{number}", name) for number, name in enumerate(columns, 1)]


def report_script_hash() -> str:
    """What the page's policy lets run: the script that sorts rankings, and nothing else."""
    return f"sha256-{base64.b64encode(hashlib.sha256(render('report.js').encode()).digest()).decode('ascii')}"


def column_order(result: Report) -> tuple[str, ...]:
    """The columns with curves: by importance, or else by how far their first curve goes up and down.

    As they were asked where what would put them in order is mostly noise.
    """
    curves_of = result.pdp or result.ale
    by_name: Mapping[str, Curve] = curves_of or {}
    ranking = result.importance or result.shap
    if ranking is not None:
        return tuple(name for name in ranking.order if name in by_name)
    if curves_of is not None and curves_of.verdict is Verdict.MOSTLY_NOISE:
        return tuple(by_name)
    return tuple(sorted(by_name, key=lambda name: float(by_name[name].y.min() - by_name[name].y.max())))


def curve_verdict(effects: Effects, name: str) -> str:
    """What is said beside a curve that does not stand out of the noise of all of them."""
    match effects.verdicts.get(name):
        case Verdict.MOSTLY_NOISE:
            return "Mostly noise: this curve cannot be told from a flat one."
        case Verdict.WEAK:
            return "Weak: it stands out of its own noise, but is not surely among the larger half of the curves."
    return ""


def pictures_of(result: Result) -> tuple[Picture, ...]:
    """The pictures of a result, with their numbers."""
    match result:
        case Effects():
            named = {**result, **{" and ".join(pair): surface for pair, surface in result.surfaces.items()}}
            every = [(picture, name) for name, member in named.items() for picture in pictures_of(member)]
            return tuple(picture._replace(remark=curve_verdict(result, name)) for picture, name in every)
        case Curve():
            title, table = curves.curve_title(result), curves.curve_table(result)
            described = f"{title}, with its {result.band_claim.band}; the numbers follow."
            return (Picture(drawings.curve_drawing(result), described, table, title),)
        case Surface():
            title, table = curves.surface_title(result), curves.surface_table(result)
            described = f"{title}, and the width of its {result.band_claim.bands}; the numbers follow."
            return (Picture(curves.surface_figure(result, titled=False), described, table, title),)
        case Ranking():
            named_items = ", ".join(result.top(20)) if result.ranked else "mostly noise, not ranked"
            described = f"{result.kind}: {named_items}; the numbers follow."
            table = curves.ranking_table(result)
            return (Picture(curves.ranking_figure(result, titled=False), described, table, result.kind),)
        case ClassPicture():
            described = f"How many rows each class of {result.dataset} has"
            return (Picture(result.plot(), described, title="Rows of each class"),)
    raise InvalidInput(f"there is no picture of a {type(result).__name__}; give one of vitrail's results")


# --- notebooks -----------------------------------------------------------------------------------------------------------


@singledispatch
def fragment(result: Shown) -> str:
    """What a notebook shows of a result: a heading, pictures or bars or tables, and the sentences a reader should know.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> ranking = vt.Ranking(("<age>", "sex"), np.array([0.5, 0.1]), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
    >>> html = vt.show.fragment(ranking)
    >>> "<img" in html, "&lt;age&gt;" in html, "<age>" in html
    (True, True, False)
    """
    match result:
        case Bill():
            return result._repr_html_()
        case Attribution():
            shown = list(result[:MOST_POINTS_IN_NOTEBOOK])
            more = f"and {len(result) - len(shown)} more points" if len(result) > len(shown) else ""
            pale = f"Lines are {result.band_claim.bands}; a pale bar {attributions.PALE_MEANS}."
            bands = () if result.lower is None else (pale,)
            below = attributions.sentences_below(result) if len(result) == 1 else result.read_below
            return fragment_html(repr(result), (*bands, *below), explanations=shown, more=more, first=result.read_first)
        case Counterfactuals():
            people = range(min(len(result), MOST_PEOPLE_IN_NOTEBOOK))
            more = f"The first {len(people)} of {len(result)} people are shown." if len(people) < len(result) else ""
            ask, answer = counterfactuals.question_of, counterfactuals.changes_table
            tables = [(ask(result, i), answer(result, i), result.messages[i]) for i in people]
            return fragment_html(repr(result), result.sentences, tables=tables, more=more)
        case Result():
            drawn: list[Result] = [result]
            if isinstance(result, Report):
                drawn = [*result.rankings.values(), *(effects for effects in (result.pdp, result.ale) if effects)]
            pictures = [Picture(drawing.plot(), repr(drawing)) for drawing in drawn]  # type: ignore[attr-defined]
            return fragment_html(repr(result), result.read_below, pictures=pictures, first=result.read_first)
    raise InvalidInput(f"there is nothing to show of a {type(result).__name__}; give one of vitrail's results")


def fragment_html(
    heading: str,
    sentences: Sequence[str],
    *,
    pictures: Sequence[Picture] = (),
    explanations: Sequence[Attribution] = (),
    tables: Sequence[tuple[str, Table, str]] = (),
    more: str = "",
    first: Sequence[str] = (),
) -> str:
    """A fragment from its pieces; ``tables`` have a text before and after each, and ``first`` stands above all of it."""
    given: dict[str, object] = {"heading": heading, "sentences": sentences, "pictures": pictures, "read_first": first}
    given["explanations"] = explanations
    return render("fragment.html", **(TOOLS | given), tables=tables, more=more)
