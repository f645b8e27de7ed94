"""What stands on the pages of a pane: one for the model, one for a person. The templates are in ``show/templates``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..accounting import rounded_up
from ..results.band_claim import weakest
from ..results.checks import shown_text
from ..show import Table
from ..show.pages import Content, fragment_html, report_content
from .histograms import drawn_marginals
from .parts import KINDS

if TYPE_CHECKING:
    from .pane import Pane
    from .person import Person


def inside_table(pane: Pane) -> Table:
    """What a pane holds: parts, their shares of the price, how accurate they are."""
    shares, accuracy = pane.shares(), pane.accuracy()
    rows = []
    for name, share in shares.items():
        title = KINDS[name].title if name in KINDS else name
        rows.append((title, f"{100 * share:.1f} %", accuracy.get(title, "not readable by this version; kept as it is")))
    return Table(("part", "of the price", "how accurate"), tuple(rows), numeric=(1,))


def questions_table(pane: Pane) -> Table:
    """The questions that were paid for."""
    rows = tuple((str(line.entry), line.date, line.question, rounded_up(line.epsilon)) for line in pane.bill)
    return Table(("entry", "day", "question", "ε by itself"), rows, numeric=(0, 3))


def label_lines(pane: Pane) -> tuple[tuple[str, str], ...]:
    """What the privacy label of everything that comes from a pane says beside the promise."""
    paid = f"paid once, in {len(pane.bill)} questions, by {pane.created}; whatever is computed from it is free"
    return ("Model", pane.made_for.name), ("Bill", paid), ("Made with", pane.tool)


def pane_fragment(pane: Pane) -> str:
    """What a notebook shows of a pane."""
    return fragment_html(repr(pane), (pane.guarantee.sentence,), tables=[("", inside_table(pane), "")])


def pane_content(pane: Pane) -> Content:
    """The page of the model."""
    content: dict[str, object] = {"report": None, "notes": ()}
    if "global" in pane.shares():
        report = replace(pane.report, marginals=drawn_marginals(pane.marginals))
        content = report_content(report) | {"notes": report.notes}
    tables = {"inside": inside_table(pane), "questions": questions_table(pane)}
    # The bill of a pane is a table of its own questions, not that of an account.
    return "pane.html", content | tables | {"label_lines": label_lines(pane), "model": pane.made_for.name, "bill": None}


def person_content(person: Person) -> Content:
    """The page of a person."""
    pane, e = person.pane, person.explanation
    asked_model = pane.model is not None and e is not None
    content: dict[str, object] = {
        "label_lines": label_lines(pane),
        "dataset": pane.dataset,
        "model": pane.made_for.name,
        "asked_model": asked_model,
        "output": "" if e is None else f"{(e.outputs if asked_model else e.predictions)[0]:.3g}",
        "output_range": pane.made_for.range,
        "kinds": " and ".join(sorted({place.curve.kind for place in person.places})),
        "curves_claim": weakest(place.curve.band_claim for place in person.places) if person.places else None,
        "person": Table(("column", "value"), tuple((name, shown_text(value)) for name, value in person.point.items())),
        "notes": _notes(person),
    }
    return "person.html", content


def _notes(person: Person) -> tuple[str, ...]:
    results = (person, person.explanation, person.counterfactuals)
    return tuple(dict.fromkeys(note for one in results if one is not None for note in one.notes))
