"""Commands for any explainer: ``vitrail curve`` and ``vitrail ranking`` run somebody's function on groups of private rows.

The function is named as ``module:name``; importing it runs its code, and so does calling it on private rows, in processes of
its own. It is approved by whoever types the command, who must be the owner of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from ..results import Curve, Ranking
from . import declarations as options
from .answering import Order, fulfil
from .inputs import imported

if TYPE_CHECKING:
    from pathlib import Path

    from ..vault import PrivateData

PARTIAL_DEPENDENCE = "partial-dependence"

Groups = Annotated[
    int | None, typer.Option("--groups", help="Into how many groups rows are dealt; chosen from public facts if not given.")
]
TIMEOUT_HELP = "What one group may take; one that takes longer counts as the public default."
Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help=TIMEOUT_HELP)]


def _itself(bought: Any) -> Any:
    return bought


def _function(reference: str) -> Callable[..., object]:
    """What ``--explainer module:name`` names."""
    found = imported(reference, "--explainer")
    if not callable(found):
        raise InvalidInput(f"--explainer {reference!r} is {type(found).__name__}, and has to be a function of (model, X)")
    return found


def _writers() -> dict[str, Callable[[Any, Path], object]]:
    return {".png": lambda answer, file: answer.plot().savefig(file, dpi=160)}


@options.command
def curve(
    data: options.DataOptions,
    model: options.ModelOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    column: Annotated[str, typer.Option("--column", metavar="COLUMN", help="Whose values the curve is drawn over.")],
    explainer: Annotated[
        str,
        typer.Option(
            "--explainer",
            metavar="MODULE:NAME",
            help="A function of (model, X), or (model, X, y), that returns a curve (x, y), of Python code you trust. "
            "scikit-learn's partial dependence if not given.",
        ),
    ] = PARTIAL_DEPENDENCE,
    y_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--y-range", metavar="LOW HIGH", help="Where curves are clipped; the model's range if not given."),
    ] = None,
    groups: Groups = None,
    timeout: Timeout = 60.0,
) -> None:
    """Draw the curve of any explainer from private rows: it runs on random groups of them, and the noisy mean is shown.

    `vitrail report` has curves of its own, which need far less noise; this is for explainers that it does not have.
    """
    from ..explain.adapters import from_partial_dependence
    from ..explain.any_curve import AnyCurve

    chosen = model.load()
    function = from_partial_dependence(column) if explainer == PARTIAL_DEPENDENCE else _function(explainer)
    between = (chosen.lo, chosen.hi) if y_range is None else y_range

    def made(rows: PrivateData) -> AnyCurve:
        return AnyCurve(
            rows,
            function,
            model=chosen,
            x_grid=column,
            y_range=between,
            groups=groups,
            timeout_seconds=timeout,
            key=model.key,
        )

    order: Order[Curve, Curve] = Order("the curve", made, _itself, chosen.name, _writers())
    fulfil(order, data, price, output)


@options.command
def ranking(
    data: options.DataOptions,
    model: options.ModelOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    explainer: Annotated[
        str,
        typer.Option(
            "--explainer",
            metavar="MODULE:NAME",
            help="A function of (model, X), or (model, X, y), that returns the columns in order, or a score for each, of "
            "Python code you trust.",
        ),
    ],
    top: Annotated[
        int | None, typer.Option("--top", metavar="NUMBER", help="Rank the first so many only, with far less noise.")
    ] = None,
    groups: Groups = None,
    timeout: Timeout = 60.0,
) -> None:
    """Rank the columns by any explainer, from private rows: it votes on random groups of them, and the count gets noise.

    `vitrail report` has an importance of its own; this is for explainers that it does not have.
    """
    from ..explain.any_ranking import AnyRanking

    chosen, function = model.load(), _function(explainer)

    def made(rows: PrivateData) -> AnyRanking:
        return AnyRanking(rows, function, model=chosen, top_k=top, groups=groups, timeout_seconds=timeout, key=model.key)

    order: Order[Ranking, Ranking] = Order("the ranking", made, _itself, chosen.name, _writers())
    fulfil(order, data, price, output)
