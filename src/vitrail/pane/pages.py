"""From a pane to pages: one for the model, one for a person. The pages themselves are drawn in ``show.pane_page``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..accounting import rounded_up
from ..results.checks import shown_text
from ..show import Report, Section, Table, privacy_label
from ..show.label import PrivacyLabel
from ..show.pane_page import PersonShape, Standing, person_report
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


def bill_table(pane: Pane) -> Table:
    """The questions that were paid for."""
    rows = tuple((str(line.entry), line.date, line.question, rounded_up(line.epsilon)) for line in pane.bill)
    return Table(("entry", "day", "question", "ε by itself"), rows, numeric=(0, 3))


def pane_label(pane: Pane) -> PrivacyLabel:
    """The privacy label of everything that comes from a pane."""
    label = privacy_label(pane.guarantee, dataset=pane.dataset)
    paid = f"paid once, in {len(pane.bill)} questions, by {pane.created}; whatever is computed from it is free"
    lines = (("Model", pane.made_for.name), ("Bill", paid), ("Made with", pane.tool))
    return replace(label, lines=(*label.lines, *lines))


def pane_section(pane: Pane, notes: tuple[str, ...] = ()) -> Section:
    """What is in the pane, and what it cost."""
    text = (
        "This page was made from a pane: a file that holds nothing but differentially private releases. The promise above "
        "is for all of it together. Shares are of mu squared, in which costs add up; epsilons of single questions do not."
    )
    return Section("What is inside, and what it cost", (text, *notes), (inside_table(pane), bill_table(pane)))


def model_report(pane: Pane) -> Report:
    """The page of the model."""
    label = pane_label(pane)
    title = f"{pane.made_for.name}, explained from {pane.dataset}"
    if "global" not in pane.shares():
        return Report(title, label, (pane_section(pane),))
    made = replace(pane.report, marginals=drawn_marginals(pane.marginals)).report(title=title)
    # Its own last section tells the report's price alone, and its notes; here the report is one of several parts.
    last = made.sections[-1]
    assert isinstance(last, Section)
    return replace(made, label=label, sections=(*made.sections[:-1], pane_section(pane, last.paragraphs[1:])))


def person_page(person: Person) -> Report:
    """The page of a person."""
    pane = person.pane
    standings = tuple(
        Standing(one.column, one.value if not one.curve.categorical else str(one.value), one.curve.shape(), _said(one))
        for one in person.places
    )
    shape = PersonShape(
        model=pane.made_for.name,
        point=tuple((name, shown_text(value)) for name, value in person.point.items()),
        attribution=None if person.explanation is None else person.explanation.attribution(),
        asked_model=pane.model is not None,
        what_if=None if person.counterfactuals is None else person.counterfactuals.shape(),
        standings=standings,
        output_range=pane.made_for.range,
        notes=_notes(person),
    )
    return person_report(shape, pane_label(pane))


def _said(place: Place) -> str:
    band = "" if place.half_width is None else f" ± {place.half_width:.2g} ({place.curve.band_claim.mark})"
    return f"At {shown_text(place.value)}: {place.output:.3g}{band}."


def _notes(person: Person) -> tuple[str, ...]:
    found = [*person.notes, *(() if person.explanation is None else person.explanation.notes)]
    found += [] if person.counterfactuals is None else [*person.counterfactuals.notes]
    return tuple(dict.fromkeys(found))
