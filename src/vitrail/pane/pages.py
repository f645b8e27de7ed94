"""What stands on the pages of a pane: one for the model, one for a person. The templates are in ``show/templates``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..accounting import rounded_up
from ..results.band_claim import weakest
from ..results.checks import shown_text
from ..show import PrivacyLabel, Table, privacy_label
from ..show.counterfactuals import changes_table, question_of
from ..show.pages import Card, Content, Point, fragment_html, report_content, standing_picture
from .histograms import drawn_marginals
from .parts import KINDS

if TYPE_CHECKING:
    from .pane import Pane
    from .person import Person, Place


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


def pane_label(pane: Pane) -> PrivacyLabel:
    """The privacy label of everything that comes from a pane."""
    label = privacy_label(pane.guarantee, dataset=pane.dataset)
    paid = f"paid once, in {len(pane.bill)} questions, by {pane.created}; whatever is computed from it is free"
    lines = (("Model", pane.made_for.name), ("Bill", paid), ("Made with", pane.tool))
    return replace(label, lines=(*label.lines, *lines))


def pane_fragment(pane: Pane) -> str:
    """What a notebook shows of a pane."""
    return fragment_html(repr(pane), (pane.guarantee.sentence,), tables=[("", inside_table(pane), "")])


def pane_content(pane: Pane) -> Content:
    """The page of the model."""
    content: dict[str, object] = {"rankings": [], "cards": [], "histograms": [], "notes": ()}
    if "global" in pane.shares():
        report = replace(pane.report, marginals=drawn_marginals(pane.marginals))
        content = report_content(report)[1] | {"notes": report.notes}
    tables = {"inside": inside_table(pane), "questions": questions_table(pane)}
    # The bill of a pane is a table of its own questions, not that of an account.
    return "pane.html", content | tables | {"label": pane_label(pane), "model": pane.made_for.name, "bill": None}


def person_content(person: Person) -> Content:
    """The page of a person."""
    pane, e, changed = person.pane, person.explanation, person.counterfactuals
    asked_model = pane.model is not None and e is not None
    output = "" if e is None else f"{(e.outputs if asked_model else e.predictions)[0]:.3g}"
    content: dict[str, object] = {
        "label": pane_label(pane),
        "model": pane.made_for.name,
        "point": None if e is None else Point.of(e),
        "asked_model": asked_model,
        "output": output,
        "output_range": pane.made_for.range,
        "changes": None if changed is None else changes_table(changed),
        "question": "" if changed is None else question_of(changed),
        "message": "" if changed is None else changed.messages[0],
        "cards": [_standing_card(one) for one in person.places],
        "kinds": " and ".join(sorted({one.curve.kind for one in person.places})),
        "curves_claim": weakest(one.curve.band_claim for one in person.places) if person.places else None,
        "person": Table(("column", "value"), tuple((name, shown_text(value)) for name, value in person.point.items())),
        "notes": _notes(person),
    }
    return "person.html", content


def _standing_card(place: Place) -> Card:
    band = "" if place.half_width is None else f" ± {place.half_width:.2g} ({place.curve.band_claim.mark})"
    text = f"At {shown_text(place.value)}: {place.output:.3g}{band}."
    return Card(place.column, text, (standing_picture(place.curve, place.value, text),))


def _notes(person: Person) -> tuple[str, ...]:
    results = (person, person.explanation, person.counterfactuals)
    return tuple(dict.fromkeys(note for one in results if one is not None for note in one.notes))
