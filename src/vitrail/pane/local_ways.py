"""How a pane explains single points: Shapley values on its rows, a linear picture on them, the synopsis. No vault."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from .. import _checks
from ..results import Attribution
from ..solve.linear.labelled_rows import RowsExplainer, explain_on
from ..solve.linear.problem import LocalProblem
from ..solve.linear.weights import polynomial
from .manifest import ROWS
from .person import needed, reasons_on_rows

if TYPE_CHECKING:
    from ..model import Model
    from .pane import Pane

Method = Literal["auto", "shapley", "tree", "linear", "moments"]
METHODS: tuple[Method, ...] = ("auto", "shapley", "tree", "linear", "moments")
SAMPLED = 20_000
"""Private rows that a sharp kernel works on."""
NO_BANDS = "No bands were computed; ask for bands=True to get them."


def local_explanation(
    pane: Pane, asked: Model | None, points: object, method: Method, *, bands: bool, background: int, **shapley: Any
) -> Attribution:
    """What the method says of these points, from the pane of one model or none; see ``Pane.local``."""
    chosen = _checks.choice("method", method, METHODS)
    if chosen == "auto":
        has_rows = ROWS in pane.manifest.parts and asked is not None
        chosen = "shapley" if has_rows or "local" not in pane.manifest.parts else "moments"
    if chosen in ("shapley", "tree"):
        asked = needed("an explanation by Shapley values", asked)
        way = "tree" if chosen == "tree" else "permutations"
        return reasons_on_rows(pane, [asked], points, background, bands=bands, method=way, **shapley)[0]
    if chosen == "linear":
        made = pane.linear if asked is pane.model else linear_on(pane, asked)  # the own model has labelled rows once
        return made(points, bands=bands)
    explanation = pane.synopsis(points, bands=bands)
    return explanation if bands else replace(explanation, notes=(*explanation.notes, NO_BANDS))


def linear_on(pane: Pane, model: Model | None) -> RowsExplainer:
    """Linear pictures on private rows that the model labels."""
    problem = LocalProblem(pane.schema, needed("method 'linear'", model), polynomial())
    return explain_on(problem, pane.private_rows, n_sampled=SAMPLED)
