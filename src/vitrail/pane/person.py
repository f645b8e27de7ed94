"""A person explained from a pane: why, what if, where they stand on each curve; as an object, a page and JSON. No vault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results import Attribution, Curve
from ..results.archive import json_bytes, write_bytes
from ..results.band_claim import weakest
from ..results.base import Drawn
from ..results.checks import plain_value
from ..results.counterfactuals import Counterfactuals
from ..results.mean_reasons import MeanReasons
from ..schema import Level, Numeric
from ..show import attributions
from ..show.letter import Letter
from ..show.page_words import PageWords
from ..show.pages import Content, fragment, page_content
from ..solve.counterfactual.classes import Desired
from ..solve.counterfactual.fitted import FittedCounterfactual
from ..solve.counterfactual.permitted import Rules
from ..solve.shapley.on_rows import Players, Scale, players_of
from ..solve.shapley.real_rows import RealRows
from ..solve.shapley.reasons import BACKGROUND, BY_HEART, OF_ANOTHER, explain_on_rows, largest_of
from .manifest import REASONS, ROWS
from .pages import label_lines

if TYPE_CHECKING:
    from ..accounting.guarantee import Guarantee
    from ..model import Model
    from .pane import Method, Pane

FORMAT = "vitrail-person/1"
MOST_SEARCHED = 1_000
"""Columns up to which a page says what would change the output."""
TOO_WIDE = (
    "No counterfactuals: among {columns} columns the search takes minutes and gigabytes. Ask for them by themselves: "
    "pane.counterfactual."
)
NEEDS_MODEL = (
    "Reasons need the model: load the pane with model=. Private rows are in it, and with the model they give Shapley values."
)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where somebody stands on a curve.

    Attributes
    ----------
    column : str
        The column.
    value : str, int, float or bool
        What they have there.
    curve : Curve
        The curve.
    output : float
        The curve at that value.
    half_width : float or None
        Of its noise band there; ``curve.band_claim`` says how often that holds.
    """

    column: str
    value: Level
    curve: Curve
    output: float
    half_width: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Person(Drawn):
    """One person, explained from a pane.

    Attributes
    ----------
    point : dict
        What they have in each column.
    explanation : Attribution or None
        What each column contributes; None where the pane has nothing local.
    counterfactuals : Counterfactuals or None
        What would change the model's answer; None without a model, or with neither rows nor a picture of its classes.
    standings : tuple of Standing
        Where they stand on each curve, the largest contribution first.
    pane : Pane
        What it was computed from.
    notes : tuple of str
        What could not be said, and why.
    model : Model or None
        Which was asked, if one was.
    """

    point: dict[str, Level]
    explanation: Attribution | None
    counterfactuals: Counterfactuals | None
    standings: tuple[Standing, ...]
    pane: Pane
    notes: tuple[str, ...] = ()
    model: Model | None = None

    def __repr__(self) -> str:
        what = {"contributions": self.explanation, "counterfactuals": self.counterfactuals, "standings": self.standings}
        return f"Person({', '.join(name for name, part in what.items() if part)}; {self.pane!r})"

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as plain JSON values."""
        standings: list[JsonValue] = [
            {
                "column": standing.column,
                "value": plain_value(standing.value),
                "kind": standing.curve.kind,
                "output": standing.output,
                "half_width": standing.half_width,
                "band_claim": standing.curve.band_claim.value,
            }
            for standing in self.standings
        ]
        return {
            "format": FORMAT,
            "dataset": self.pane.dataset,
            "pane_version": self.pane.version,
            "pane_expires": self.pane.expires,
            "model": self.model_name,
            "guarantee": self.pane.guarantee.to_json(),
            "point": {name: plain_value(value) for name, value in self.point.items()},
            "explanation": None if self.explanation is None else self.explanation.to_json(),
            "counterfactuals": None if self.counterfactuals is None else self.counterfactuals.to_json(),
            "standings": standings,
            "notes": list(self.notes),
        }

    @property
    def model_name(self) -> str:
        """Of the model that is explained."""
        number = 0 if self.model is None else self.pane.manifest.number_of(self.model)
        return self.model.name if self.model is not None and number is None else self.pane.models[number or 0]

    def write_json(self, path: str | Path) -> Path:
        """Write ``to_json`` as text; returns where."""
        return write_bytes(path, json_bytes(self.to_json()))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the pane that it was computed from."""
        return self.pane.guarantee


def explained(pane: Pane, asked: Model | None, point: object, **how: Any) -> Person:
    """One person, from a pane of one model or none, or by another model than its own; see ``Pane.explain``."""
    n_points = len(pane.schema.read_points(point))
    if n_points != 1:
        raise InvalidInput(f"{n_points} points were given; a page is about one person, give one (pane.local takes many)")
    return explained_all(pane, asked, point, **how)[0]


def explained_all(
    pane: Pane,
    asked: Model | None,
    points: object,
    *,
    desired_class: Level,
    desired: Desired | None,
    total_CFs: int,
    method: Method,
    bands: bool,
) -> list[Person]:
    """Several people at once: the model is asked about all of them together."""
    raw, parts = pane.schema.read_points(points), pane.parts
    frame = {name: values.tolist() for name, values in pane.schema.frame(raw).items()}
    shown = [{name: values[row] for name, values in frame.items()} for row in range(len(raw))]
    is_own = asked is None or pane.manifest.number_of(asked) is not None
    explanation = changes = None
    notes: list[str] = []
    if (ROWS in parts and asked is not None) or ("local" in parts and is_own):
        explanation = pane.local(shown, method=method, bands=bands, model=asked)
    elif ROWS in parts:
        notes.append(NEEDS_MODEL)
    if asked is not None and (columns := pane.schema.n_columns) > MOST_SEARCHED:
        notes.append(TOO_WIDE.format(columns=columns))
    elif asked is not None and (ROWS in parts or "counterfactual" in parts):
        try:
            Rules.of(pane.schema, "all", None)  # whether anything may change at all
            fitted = pane.counterfactual if asked is pane.model else counterfactual_on(pane, asked)
        except InvalidInput as error:  # or the model has other classes than the pane's: the rest can still be said
            notes.append(f"No counterfactuals: {error}.")
        else:
            changes = fitted(shown, desired_class=desired_class, desired=desired, total_CFs=total_CFs)
    has_curves = "pdp" in parts or "ale" in parts
    if has_curves and not is_own:
        about, name = " and ".join(pane.models), "" if asked is None else asked.name
        notes.append(f"Curves are left out: they are about {about}, and {name} was asked.")
    if explanation is None and changes is None and not (has_curves and is_own):
        raise InvalidInput(
            f"this pane says nothing about single people without a model; it has {', '.join(map(repr, parts))}. Load "
            "it with model=, or give one here"
        )
    people = []
    for row, point in enumerate(shown):
        e = None if explanation is None else explanation[row]
        standings = _standings(pane, point, e) if has_curves and is_own else ()
        people.append(Person(point, e, None if changes is None else changes[row], standings, pane, tuple(notes), asked))
    return people


def needed(what: str, model: Model | None) -> Model:
    """The model, or a sentence that it is needed."""
    if model is None:
        raise InvalidInput(f"{what} asks the model, and none was given: model=vt.Model(...), here or to Pane.load")
    return model


def reasons_on_rows(
    pane: Pane,
    models: Sequence[Model],
    points: object,
    background: int = BACKGROUND,
    *,
    scale: Scale = "output",
    players: Players | None = None,
    **how: Any,
) -> list[Attribution]:
    """Shapley values on the pane's rows, corrected by what real rows were asked; of one model, or of all classes of one."""
    raw, rows, bought = pane.schema.read_points(points), pane.private_rows, _bought(pane, models, scale, players)
    n_rows = _checks.whole("background", background, most=len(rows.sampled))
    given: Any = {"n_rows": n_rows, "scale": scale, "players": players, "bought": bought}
    made = explain_on_rows(models, pane.schema, raw, rows, **given, **how)
    if not _has_reasons(pane) or scale != "output" or not any(BY_HEART in each.notes for each in made):
        return made
    # Nobody asked real rows about this model, or this class of it; what they said of another is the size to expect.
    known = RealRows(rows, pane.mean_reasons, list(players_of(pane.schema).values()), n_rows)
    size = OF_ANOTHER.format(model=pane.models[0], size=largest_of(known))
    return [replace(each, notes=(*each.notes, size)) if BY_HEART in each.notes else each for each in made]


def _has_reasons(pane: Pane) -> bool:
    """Whether real rows were asked about the reasons of one model."""
    return len(pane.models) == 1 and REASONS in pane.manifest.known


def _bought(pane: Pane, models: Sequence[Model], scale: Scale, players: Players | None) -> dict[int, MeanReasons]:
    """By number, what real rows were asked about the reasons of these models; of two classes, one mirrors the other.

    Nothing of more classes: the values of all of them add up to zero, and only one was asked about.
    """
    declared = scale == "output" and players_of(pane.schema, players) == players_of(pane.schema)
    own = [number for number, model in enumerate(models) if pane.manifest.number_of(model) is not None]
    if not declared or not own or len(models) > 2 or not _has_reasons(pane):
        return {}
    of_two = {1 - own[0]: pane.mean_reasons.mirrored()} if len(models) == 2 else {}
    return {**of_two, own[0]: pane.mean_reasons}


def counterfactual_on(pane: Pane, model: Model | None) -> FittedCounterfactual:
    """The search on private rows, which the model puts into its classes; with the picture of these where it was bought."""
    known, asked = pane.manifest.known, needed("a counterfactual", model)
    is_own = pane.manifest.number_of(asked) is not None
    if ROWS not in known or (is_own and "counterfactual" in known):
        fitted = FittedCounterfactual(pane.class_picture, asked)
        if not is_own:
            about = " and ".join(pane.models)
            raise InvalidInput(f"they are sought near the classes of {about}, and {asked.name} was asked: there are no rows")
        return fitted
    # Who chose a threshold for one model means it for the next, where it is possible.
    chosen = (made.threshold for made in pane.manifest.models if made.threshold is not None)
    possible = (threshold for threshold in chosen if asked.lo < threshold < asked.hi)
    fitted = FittedCounterfactual.on_rows(pane.private_rows, asked, next(possible, (asked.lo + asked.hi) / 2))
    fitted.picture = replace(fitted.picture, guarantee=pane.guarantee, cost=pane.cost)
    return fitted


def _standings(pane: Pane, shown: Mapping[str, Level], explanation: Attribution | None) -> tuple[Standing, ...]:
    """Where somebody stands on each curve, the largest contribution first; as declared where reasons are mostly noise."""
    effects, groups = pane.effects, pane.schema.groups
    order = list(effects)
    if explanation is not None:
        players = (share.column for share in explanation.top(len(shown)))
        order = [name for player in players for name in groups.get(player, (player,))]
    codes = {name: column.codes for name, column in pane.schema.items() if isinstance(column, Numeric)}
    there = [name for name in order if name in effects and shown[name] not in codes.get(name, ())]
    return tuple(standing_on(effects[name], shown[name]) for name in there)


def standing_on(curve: Curve, value: Level) -> Standing:
    """Where somebody with this value stands."""
    half = None
    if curve.lower is not None and curve.upper is not None:
        wide = curve.half_widths
        if curve.categorical:
            half = float(wide[list(curve.x).index(value)])
        else:
            half = float(np.interp(float(value), np.asarray(curve.x), wide))
    return Standing(curve.label, value, curve, float(curve(value)), half)


# --- pages -------------------------------------------------------------------------------------------------------------


def letter_of(person: Person, words: PageWords | None = None) -> Letter:
    """What the person's page says, in the pane's words or others."""
    pane, e = person.pane, person.explanation
    told = words or page_words_of(pane)
    made_for = pane.manifest.models[0] if pane.manifest.models else None
    limits = (0.0, 1.0) if made_for is None else made_for.range
    border = sum(limits) / 2 if made_for is None else made_for.border
    if person.model is not None:
        limits = (person.model.lo, person.model.hi)
        border = border if limits[0] < border < limits[1] else sum(limits) / 2
    return Letter(
        words=told,
        schema=pane.schema,
        model=person.model_name,
        range=limits,
        border=border,
        explanation=e,
        changes_found=person.counterfactuals,
        guarantee=pane.guarantee,
        n_rows_public=pane.n_rows_public,
        point=person.point,
        asked_model=person.model is not None and e is not None,
    )


def page_words_of(pane: Pane) -> PageWords:
    """The owner's words in a pane; the schema's own where there are none."""
    given = pane.manifest.page
    return PageWords() if given is None else PageWords.read(given)


def person_content(person: Person) -> Content:
    """The page of a person."""
    pane, e, letter = person.pane, person.explanation, letter_of(person)
    counted = None if e is None or e.rows_counted is None else e.rows_counted
    counted = pane.rows_counted if counted is None else counted
    contradiction = () if counted is None or not counted.contradicts else (counted.sentence,)
    results = (person, e, person.counterfactuals)
    claims = [standing.curve.band_claim for standing in person.standings]
    technical = [] if e is None else [*([e.too_little] if e.too_little else []), *e.verdict_sentences]
    technical += (
        [attributions.sentence_of(e), attributions.fidelity_of(e)] if e is not None and e.method != "shapley" else []
    )
    content: dict[str, object] = {
        "letter": letter,
        "say": letter.say,
        "language": letter.catalogue.language,
        "direction": letter.catalogue.direction,
        "label_lines": label_lines(pane),
        "dataset": pane.dataset,
        "model": person.model_name,
        "read_first": (*([pane.expiry_sentence] if pane.expired else []), *contradiction),
        "rows_counted": counted,
        "needs_model": NEEDS_MODEL if NEEDS_MODEL in person.notes else "",
        "curves_claim": weakest(claims) if claims else None,
        "technical": tuple(dict.fromkeys(technical)),
        "pane_version": letter.say("Version {version}.", version=pane.version),
        "notes": tuple(dict.fromkeys(note for result in results if result is not None for note in result.notes)),
    }
    return "person.html", content


page_content.register(Person, person_content)


@fragment.register
def _(person: Person) -> str:
    results = (person.explanation, person.counterfactuals)
    return "".join(fragment(result) for result in results if result is not None)
