"""All that a pane knows about one person: why, what if, and where they stand on each curve. No vault, no ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results import Attribution, Curve
from ..results.archive import json_bytes, write_bytes
from ..results.checks import plain_value
from ..results.counterfactuals import Counterfactuals
from ..results.door import Drawn
from ..show.pages import fragment, page_content
from .pages import person_content

if TYPE_CHECKING:
    from ..guarantee import Guarantee
    from ..schema import Level
    from .pane import Method, Pane

FORMAT = "vitrail-person/1"


@dataclass(frozen=True, eq=False)
class Place:
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
        What would change the model's answer; None without that part, or without a model.
    places : tuple of Place
        Where they stand on each curve, the largest contribution first.
    pane : Pane
        What it was computed from.
    notes : tuple of str
        What could not be said, and why.
    """

    point: dict[str, Level]
    explanation: Attribution | None
    counterfactuals: Counterfactuals | None
    places: tuple[Place, ...]
    pane: Pane
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        what = {"contributions": self.explanation, "counterfactuals": self.counterfactuals, "places": self.places}
        return f"Person({', '.join(name for name, part in what.items() if part)}; {self.pane!r})"

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as plain JSON values."""
        places: list[JsonValue] = [
            {
                "column": one.column,
                "value": plain_value(one.value),
                "kind": one.curve.kind,
                "output": one.output,
                "half_width": one.half_width,
                "band_claim": one.curve.band_claim.value,
            }
            for one in self.places
        ]
        return {
            "format": FORMAT,
            "dataset": self.pane.dataset,
            "model": self.pane.made_for.name,
            "guarantee": self.pane.guarantee.to_json(),
            "point": {name: plain_value(value) for name, value in self.point.items()},
            "explanation": None if self.explanation is None else self.explanation.to_json(),
            "counterfactuals": None if self.counterfactuals is None else self.counterfactuals.to_json(),
            "places": places,
            "notes": list(self.notes),
        }

    def write_json(self, path: str | Path) -> Path:
        """Write ``to_json`` as text; returns where."""
        return write_bytes(path, json_bytes(self.to_json()))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the pane that it was computed from."""
        return self.pane.guarantee


page_content.register(Person, person_content)


@fragment.register
def _(person: Person) -> str:
    results = (person.explanation, person.counterfactuals)
    return "".join(fragment(one) for one in results if one is not None)


def explained(
    pane: Pane,
    point: object,
    *,
    desired_class: Level,
    total_CFs: int,
    method: Method,
    bands: bool,
) -> Person:
    """Everything about one point."""
    raw = pane.schema.read_points(point)
    if len(raw) != 1:
        raise InvalidInput(f"{len(raw)} points were given; a page is about one person, give one (pane.local takes many)")
    shown = {name: values.tolist()[0] for name, values in pane.schema.frame(raw).items()}
    parts = pane.parts
    explanation = None
    if "local" in parts or ("rows" in parts and pane.model is not None):
        explanation = pane.local(shown, method=method, bands=bands)
    found: Counterfactuals | None = None
    notes: tuple[str, ...] = ()
    if "counterfactual" in parts and pane.model is not None:
        try:
            fitted = pane.counterfactual
        except InvalidInput as error:  # the model has other classes than the pane's: the rest can still be said
            notes = (f"No counterfactuals: {error}.",)
        else:
            found = fitted(shown, desired_class=desired_class, total_CFs=total_CFs)
    places: tuple[Place, ...] = ()
    if "pdp" in parts or "ale" in parts:
        effects = pane.effects
        order = effects if explanation is None else [one.column for one in explanation.top(len(pane.schema.names))]
        places = tuple(_place(effects[name], shown[name]) for name in order if name in effects)
    if explanation is None and found is None and not places:
        raise InvalidInput(
            f"this pane says nothing about single people without its model; it has {', '.join(map(repr, parts))}. Load it "
            "with model="
        )
    return Person(shown, explanation, found, places, pane, notes)


def _place(curve: Curve, value: Level) -> Place:
    half = None
    if curve.lower is not None and curve.upper is not None:
        wide = curve.half_widths
        if curve.categorical:
            half = float(wide[list(curve.x).index(value)])
        else:
            half = float(np.interp(float(value), np.asarray(curve.x), wide))
    return Place(curve.label, value, curve, float(curve(value)), half)
