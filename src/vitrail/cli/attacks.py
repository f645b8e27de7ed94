"""More of `vitrail audit`: rows pulled out of examples, the graph of who explains whom, models copied, columns guessed.

What explains is code (``module:function``), a file of answers, or, for explanations by examples, a logistic regression that
is trained here and shows its most influential rows. Files are read as the auditor has them; nothing is charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
import typer

from .._types import Floats
from ..errors import InvalidInput
from . import declarations as options
from .audit_inputs import (
    METHODS,
    alike,
    check_outcome,
    explainer_of,
    give_outcome,
    numbers_of,
    predictor_of,
    table_of,
    taken,
    texts,
)
from .inputs import imported
from .printing import print_lines, print_table

if TYPE_CHECKING:
    from ..audit import AttributeAudit, ExtractionAudit, InfluenceAudit, ReconstructionAudit

Shows = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="MODULE:NAME",
        help="A function from points to the training rows that are shown for each: an array (points, shown, columns). "
        "Without it a logistic regression is trained on --label, and shows its most influential rows.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column of two classes that the regression predicts.")
]
Shown = Annotated[int, typer.Option("--shown", help="How many rows the regression shows for each point.")]
L2 = Annotated[float, typer.Option("--l2", help="The regression's penalty.")]
Group = Annotated[str | None, typer.Option("--group", metavar="COLUMN", help="A column of names: who is hurt.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the attacker's random choices.")]
Confidence = Annotated[float, typer.Option("--confidence", help="Of every interval.")]


@dataclass(frozen=True)
class Examples:
    """Rows as the explainer shows them, the explainer, and where points may lie; H^-1 where the attacker can know it."""

    sides: list[Floats]
    groups: list[str] | None
    explain: Callable[..., object]
    domain: int | tuple[Floats, Floats]
    hessian_inverse: Floats | None


def _examples(
    tables: list[Path], explain: str | None, label: str | None, group: str | None, shown: int, l2: float
) -> Examples:
    """What is attacked. The regression's columns are scaled to between -1 and 1; code gets them as they are."""
    from ..audit import influence

    sides = alike([table_of(path) for path in tables])
    groups = texts(sides, group, "--group")[0]
    if explain is not None:
        if label is not None:
            raise InvalidInput("--label is for the regression that explains without --explain; leave one of them out")
        rows = [numbers_of(side) for side in sides]
        return Examples(rows, groups, _example_code(explain), (rows[0].min(axis=0), rows[0].max(axis=0)), None)
    if label is None:
        raise InvalidInput("say what explains: --explain MODULE:NAME, or --label COLUMN for a regression by influence")
    answers = texts(sides, label, "--label")[0] or []
    names = sorted(set(answers))
    if len(names) != 2:
        raise InvalidInput(f"--label {label!r} holds {len(names)} classes; the regression is for two")
    rows = [numbers_of(side) for side in sides]
    low, high = rows[0].min(axis=0), rows[0].max(axis=0)
    scaled = [2 * (side - low) / np.where(high > low, high - low, 1.0) - 1 for side in rows]
    shows = influence.LogisticInfluence.fit(scaled[0], np.array([one == names[1] for one in answers]), k=shown, l2=l2)
    return Examples(scaled, groups, shows, scaled[0].shape[1], shows.hessian_inverse())


def _example_code(explain: str) -> Callable[..., object]:
    found = imported(explain, "--explain")
    if not callable(found):
        raise InvalidInput(f"--explain {explain!r} is {type(found).__name__}; it has to be a function of points")
    return cast("Callable[..., object]", found)


@options.command
def reconstruction(
    training: Annotated[Path, typer.Argument(metavar="TRAINING", help="The training rows: .csv, .parquet or .npy.")],
    output: options.OutputOptions,
    explain: Shows = None,
    label: Label = None,
    shown: Shown = 1,
    l2: L2 = 1e-2,
    group: Group = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy", help="random, orthogonal, H-orthogonal (of the regression) or walk; repeat. All that can be run."
        ),
    ] = None,
    queries: Annotated[int, typer.Option("--queries", help="The most that each strategy may ask.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Pull training rows out of explanations that show training rows: how many, in how many queries, and whose."""
    from .. import audit

    check_outcome(output)
    prey = _examples([training], explain, label, group, shown, l2)
    outcome = audit.reconstruction(
        prey.explain,
        prey.domain,
        strategies=strategy or "all",
        queries=queries,
        hessian_inverse=prey.hessian_inverse,
        training=prey.sides[0],
        groups=prey.groups,
        seed=seed,
    )
    give_outcome(outcome, output, lambda: _print_strategies(outcome))


def _print_strategies(outcome: ReconstructionAudit) -> None:
    lines = [
        (row.strategy, str(row.queries), str(row.recovered), "-" if row.share is None else f"{row.share:.1%}")
        for row in outcome.rows
    ]
    print_table(("strategy", "queries", "rows recovered", "share"), lines, numeric=(1, 2, 3))
    print_lines(outcome.summary())


@options.command
def influence(
    members: Annotated[Path, typer.Argument(metavar="MEMBERS", help="All training rows: .csv, .parquet or .npy.")],
    output: options.OutputOptions,
    nonmembers: Annotated[
        Path | None, typer.Argument(metavar="NONMEMBERS", help="Others of the same population, same columns.")
    ] = None,
    explain: Shows = None,
    label: Label = None,
    shown: Shown = 1,
    l2: L2 = 1e-2,
    group: Group = None,
    confidence: Confidence = 0.95,
) -> None:
    """Tell members by who is shown when they are asked about, and walk the graph of who explains whom."""
    from .. import audit

    check_outcome(output)
    prey = _examples([members] if nonmembers is None else [members, nonmembers], explain, label, group, shown, l2)
    others = None if nonmembers is None else prey.sides[1]
    outcome = audit.influence_attack(prey.explain, prey.sides[0], others, groups=prey.groups, confidence=confidence)
    give_outcome(outcome, output, lambda: _print_graph(outcome))


def _print_graph(outcome: InfluenceAudit) -> None:
    graph = outcome.graph
    numbers = {
        "different rows": str(graph.rows),
        "edges": str(graph.edges),
        "rows shown for some row": f"{graph.revealed:.1%}",
        "rows that a walk shows, on average": f"{graph.reached:.1%}",
        "rows that a walk shows, at most": f"{graph.reached_most:.1%}",
        "strongly connected components": str(graph.components),
        "rows in the largest": str(graph.largest[0]),
    }
    print_table(("influence graph", ""), list(numbers.items()), numeric=(1,))
    print_lines(outcome.summary())


@options.command
def extraction(
    queries: Annotated[Path, typer.Argument(metavar="QUERIES", help="What the attacker asks: .csv, .parquet or .npy.")],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Where the copy is compared with the model, same columns.")],
    output: options.OutputOptions,
    predict: Annotated[
        str | None,
        typer.Option("--predict", help="The model: module:function from points to probabilities, or an .onnx file."),
    ] = None,
    module: Annotated[
        str | None, typer.Option("--module", metavar="MODULE:NAME", help="The model: a torch module that returns logits.")
    ] = None,
    counterfactuals: Annotated[
        str | None,
        typer.Option(
            "--counterfactuals",
            help="module:function from points to a point of another class each, or a table of answers to QUERIES, row by "
            "row; empty where none was found.",
        ),
    ] = None,
    attributions: Annotated[
        str | None,
        typer.Option(
            "--attributions",
            help="module:function from points to gradients, a table of answers to QUERIES, or with --module a method: "
            f"{', '.join(METHODS)}.",
        ),
    ] = None,
    step: Annotated[float, typer.Option("--step", help="How far along attributions the attacker steps.")] = 0.2,
    confidence: Confidence = 0.95,
) -> None:
    """Copy a model from its answers, and say how much explanations speed that up."""
    from .. import audit

    check_outcome(output)
    model = predictor_of(predict, module, None)
    if model is None:
        raise InvalidInput("say what is copied: --predict MODULE:FUNCTION or an .onnx file, or --module MODULE:NAME")
    asked, points = (numbers_of(side) for side in alike([table_of(queries), table_of(test)]))
    outcome = audit.extraction(
        model,
        None if counterfactuals is None else _answers(counterfactuals, queries, None, "--counterfactuals"),
        points,
        queries=asked,
        attributions=None if attributions is None else _answers(attributions, queries, module, "--attributions"),
        step=step,
        confidence=confidence,
    )
    give_outcome(outcome, output, lambda: _print_copies(outcome))


def _answers(text: str, queries: Path, module: str | None, option: str) -> Callable[..., object]:
    """Explanations of the queries: a table in their order, or what computes them."""
    if text in METHODS and option == "--attributions":
        return explainer_of(text, module)
    if ":" in text:
        return cast("Callable[..., object]", imported(text, option))
    table = numbers_of(alike([table_of(queries), table_of(Path(text))])[1])
    return lambda _: table


def _print_copies(outcome: ExtractionAudit) -> None:
    lines = [
        ("predictions alone", str(outcome.agreement_without)),
        ("with explanations", str(outcome.agreement)),
        ("the commonest class, always", f"{outcome.majority:.3f}"),
    ]
    print_table(("the copy knows", "agreement"), lines, numeric=(1,))
    print_lines(outcome.summary())


@options.command
def attribute(
    explanations: Annotated[
        Path, typer.Argument(metavar="EXPLANATIONS", help="People's explanations, a column each: .csv, .parquet or .npy.")
    ],
    sensitive: Annotated[str, typer.Option("--sensitive", metavar="COLUMN", help="The column that is guessed.")],
    output: options.OutputOptions,
    prediction: Annotated[
        list[str] | None,
        typer.Option("--prediction", metavar="COLUMN", help="A column of what the model said; repeat, one per class."),
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option("--known", metavar="COLUMN", help="A column that the attacker knows; repeat.")
    ] = None,
    seed: Seed = 0,
    confidence: Confidence = 0.95,
) -> None:
    """Guess a hidden column from explanations, and say how much better than without them."""
    from .. import audit

    check_outcome(output)
    sides = [table_of(explanations)]
    hidden = texts(sides, sensitive, "--sensitive")[0] or []
    said = taken(sides, prediction or [], "--prediction")
    others = taken(sides, known or [], "--known")
    outcome = audit.attribute(
        numbers_of(sides[0]),
        np.array(hidden),
        predictions=None if said is None else said[0],
        known=None if others is None else others[0],
        confidence=confidence,
        seed=seed,
    )
    give_outcome(outcome, output, lambda: _print_guesses(outcome))


def _print_guesses(outcome: AttributeAudit) -> None:
    lines = [(row.sees, f"{row.balanced_accuracy:.3f}", str(row.accuracy)) for row in outcome.rows]
    print_table(("the attacker sees", "balanced accuracy", "accuracy"), lines, numeric=(1, 2))
    print_lines(outcome.summary())
