"""The page of a pane, and its histograms. No vault.

*Histograms.* Private rows count fine bins of every column first, and that release is all that curves need. A
column of real numbers has bins of its own for values at its bounds, which have no width; here they get a millionth of the
range, so that the edges of a histogram increase. In pictures such narrow bins would be invisible however many rows they
hold: there they are drawn together with their neighbours.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from ..accounting import rounded_up
from ..show import Table
from ..show.pages import (
    LABEL_LINE,
    Content,
    column_order,
    fragment_html,
    report_content,
    report_contents,
    report_script_hash,
)
from .lifetime import DEFAULT_VERSION, in_words
from .manifest import ROWS

if TYPE_CHECKING:
    from ..results.report import Report
    from .pane import Pane

MOST_DRAWN = 100
"""Histograms on the page of a pane that has no curves."""
READ_OFF = "Read off the rows"
NO_MODEL = "none: private rows serve any model"


def inside_table(pane: Pane) -> Table:
    """What a pane holds: parts, their shares of the price, how accurate they are."""
    accuracy, manifest, rows = pane.accuracy(), pane.manifest, []
    for name, share in pane.shares().items():
        title = manifest.title(name) if name in manifest.known else name
        rows.append((title, f"{100 * share:.1f} %", accuracy.get(title, "not readable by this version; kept as it is")))
    return Table(("part", "of the price", "how accurate"), tuple(rows), numeric=(1,))


def questions_table(pane: Pane) -> Table:
    """The questions that were paid for."""
    rows = tuple((str(line.entry), line.date, line.question, rounded_up(line.epsilon)) for line in pane.bill)
    return Table(("entry", "day", "question", "ε by itself"), rows, numeric=(0, 3))


def label_lines(pane: Pane) -> tuple[tuple[str, str], ...]:
    """What the privacy label of everything that comes from a pane says beside the promise."""
    paid = f"paid once, in {len(pane.bill)} questions, by {pane.created}; whatever is computed from it is free"
    looked = pane.manifest.schema.read_off_rows
    model, own = ("Model", " and ".join(pane.models) or NO_MODEL), lifetime_text(pane)
    told = (model, *([("Version", own)] if own else []), ("Bill", paid), ("Made with", pane.tool))
    return (*told, (READ_OFF, f"{looked}: exact, by the owner's decision, and covered by no promise")) if looked else told


def lifetime_text(pane: Pane) -> str:
    """What the owner calls the pane and how long it is meant to be used; empty where nothing of that was declared."""
    if pane.expires is None:
        return "" if pane.version == DEFAULT_VERSION else pane.version
    over = ": that day has passed" if pane.expired else ""
    return f"{pane.version}, meant to be used until {in_words(pane.expires)}{over}"


def label_of(pane: Pane) -> dict[str, Any]:
    """The fields of a pane's privacy label: what its manifest says, and how accurate its parts are."""
    manifest, own = pane.manifest, lifetime_text(pane)
    return {
        "what": "A pane",
        "guarantee": pane.guarantee,
        "dataset": pane.dataset,
        "model": " and ".join(pane.models),
        "created": pane.created,
        "schema": manifest.schema,
        "n_rows_public": pane.n_rows_public,
        "rows_counted": pane.rows_counted,
        "accuracy": (
            *([pane.expiry_sentence] if pane.expired else [f"Version {own}."] if own else []),
            *(f"{title}: {told}." for title, told in pane.accuracy().items()),
        ),
    }


def person_sentence(pane: Pane) -> str:
    """What a pane tells a person, and from what."""
    models, borders = " and ".join(pane.models), dict.fromkeys(f"{made.border:g}" for made in pane.manifest.models)
    crossed = f"; counterfactuals cross the output {' or '.join(borders)}" if borders else ""
    if ROWS in pane.parts:
        asked = f"With {models}, or any other model" if models else "With any model"
        return f"{asked}, it tells anybody the reasons and what would change the answer, from its private rows{crossed}."
    if "counterfactual" in pane.parts:
        return f"With {models} it tells anybody what would change the answer, from its picture of the classes{crossed}."
    return ""


def pane_fragment(pane: Pane) -> str:
    """What a notebook shows of a pane."""
    sentences = [sentence for sentence in (pane.guarantee.sentence, person_sentence(pane)) if sentence]
    first = [pane.expiry_sentence] if pane.expired else []
    return fragment_html(repr(pane), sentences, tables=[("", inside_table(pane), "")], first=first)


def unclear_parts(report: Report) -> tuple[str, ...]:
    """What is to be read first of a report, but for its rows."""
    return tuple(said for said in report.read_first if said in report.verdict_sentences)


def pane_content(pane: Pane) -> Content:
    """The page of its models, one after the other: rankings and curves. Then histograms, and what is inside."""
    abouts = {name: pane.about(name) for name in pane.models}
    told = {name: one.report for name, one in abouts.items() if "global" in one.manifest.known}
    several, common = len(told) > 1, set[str].intersection(*(set(report.notes) for report in told.values())) if told else ()
    notes = [note if note in common else f"{name}: {note}" for name, report in told.items() for note in report.notes]
    reports = [report_content(report) | {"model": name, "of_model": several and name} for name, report in told.items()]
    lines = [
        report_contents(report, column_order(report), f"-{number}" if several else "", name if several else "")
        for number, (name, report) in enumerate(told.items(), 1)
    ]
    content: dict[str, object] = {"reports": reports, "marginals": None, "script_hash": report_script_hash()}
    content["notes"] = (*dict.fromkeys(notes), *pane.missing_rows())
    if reports or (ROWS in pane.parts and pane.schema.n_columns <= MOST_DRAWN):
        content["marginals"] = pane.marginals.drawn
    people = [("people", "Who is in the data")] if content["marginals"] is not None else []
    content["contents"] = (*chain(*lines), *people, ("inside", "What is inside, and what it cost"), LABEL_LINE)
    counted = pane.rows_counted
    unclear = [said if not several else f"{name}: {said}" for name, report in told.items() for said in unclear_parts(report)]
    content["rows_counted"] = counted
    expired = [pane.expiry_sentence] if pane.expired else []
    content["read_first"] = (
        *expired,
        *([counted.sentence] if counted is not None and counted.contradicts else []),
        *unclear,
    )
    tables = {"inside": inside_table(pane), "questions": questions_table(pane), "for_a_person": person_sentence(pane)}
    # The bill of a pane is a table of its own questions, not that of an account.
    model, own = " and ".join(pane.models) or "Private rows", {"label_lines": label_lines(pane), "bill": None}
    return "pane.html", content | tables | own | {"model": model, "explained": bool(pane.models)}
