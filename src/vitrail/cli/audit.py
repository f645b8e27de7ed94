"""`vitrail audit`: attack explanations that lie in files, or test a mechanism's privacy claim.

Audits read what an auditor owns: explanations, points and code. There is no ledger, nothing is charged. A refuted claim ends
with exit code 1, so that a build can be stopped by it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from . import declarations as options
from .audit_inputs import (
    EXPLAIN_HELP,
    alike,
    check_outcome,
    explainer_of,
    give_outcome,
    numbers_of,
    predictor_of,
    table_of,
    taken,
)
from .inputs import imported
from .printing import print_lines, print_note, print_table

if TYPE_CHECKING:
    from ..audit import MembershipAudit

EXIT_REFUTED = 1
SHADOW_HELP = (
    "How the attacker trains models of the same kind: a vitrail.audit.shadow.Networks, or a function of (points, labels) "
    "that returns (explain, predict). Needs --label, --explain and predictions."
)
app = typer.Typer(no_args_is_help=True, help="Attack explanations, or test a privacy claim. Nothing is charged.")


@app.command("membership")
@options.command
def membership(
    members: Annotated[Path, typer.Argument(metavar="MEMBERS", help="People in the training data: .csv, .parquet or .npy.")],
    nonmembers: Annotated[Path, typer.Argument(metavar="NONMEMBERS", help="Others of the same population, same columns.")],
    output: options.OutputOptions,
    explain: Annotated[str | None, typer.Option("--explain", help=EXPLAIN_HELP)] = None,
    module: Annotated[
        str | None, typer.Option("--module", metavar="MODULE:NAME", help="A torch module that returns logits.")
    ] = None,
    predict: Annotated[
        str | None, typer.Option("--predict", help="module:function from points to probabilities, or an .onnx file.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="COLUMN", help="The column of true classes 0, 1, ...")] = (
        None
    ),
    probability: Annotated[
        list[str] | None,
        typer.Option("--probability", metavar="COLUMN", help="A column of predicted probabilities; repeat, one per class."),
    ] = None,
    shadow: Annotated[str | None, typer.Option("--shadow", metavar="MODULE:NAME", help=SHADOW_HELP)] = None,
    shadow_models: Annotated[int, typer.Option("--shadow-models", help="How many the attacker trains.")] = 16,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference", metavar="PEOPLE", help="The attacker's own people, same columns; shadow models see them too."
        ),
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option("--attack", help="threshold, shadow, learned or 'likelihood ratio'; repeat. All that can be run."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the attacker's random choices.")] = 0,
    confidence: Annotated[float, typer.Option("--confidence", help="Of every interval.")] = 0.95,
) -> None:
    """Attack explanations: who was in the training data? From files, and code you trust.

    With --shadow the attacker trains models of the same kind, for thresholds that transfer and for likelihood ratios, the
    strongest attacks.
    """
    from .. import audit

    check_outcome(output)
    sides = alike([table_of(path) for path in (members, nonmembers, reference) if path is not None])
    labels = taken(sides, [label] if label else [], "--label")
    probabilities = taken(sides, probability or [], "--probability")
    points = [numbers_of(side) for side in sides]
    predictor = predictor_of(predict, module, None if probabilities is None else probabilities[:2])
    if shadow is not None and (explain is None or labels is None or predictor is None):
        raise InvalidInput(
            "--shadow needs --explain, --label and what predicts (--predict or --module): shadow models are trained on the "
            "labels, and asked as the model is"
        )
    if reference is not None and shadow is None:
        raise InvalidInput("--reference is whom shadow models are trained on; give --shadow too")
    attacker = audit.Attacker(
        shadow=None if shadow is None else imported(shadow, "--shadow"),
        shadow_models=shadow_models,
        reference=None if reference is None or labels is None else (points[2], labels[2][:, 0]),
        attacks=attack or "all",
        seed=seed,
    )
    outcome = audit.membership(
        audit.Target(explainer_of(explain, module), predictor, name=explain or members.stem),
        *points[:2],
        labels=None if labels is None else (labels[0][:, 0], labels[1][:, 0]),
        attacker=attacker,
        confidence=confidence,
    )
    give_outcome(outcome, output, lambda: _print_attacks(outcome))


def _print_attacks(outcome: MembershipAudit) -> None:
    lines = []
    for row in sorted(outcome.rows, key=lambda row: -row.auc.value):
        beyond = "-" if row.excess_auc is None else f"{row.excess_auc.value:+.3f}"
        lines.append((row.attack, row.signal, str(row.auc), f"{row.tpr_at_1_percent.value:.3f}", beyond))
    header = ("attack", "looks at", "area", "found at 1 %", "area beyond predictions")
    print_table(header, lines, numeric=(2, 3, 4))
    print_lines(outcome.summary())
    for note in outcome.notes:
        print_note(f"Note: {note}")


@app.command("mechanism")
@options.command
def mechanism(
    function: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="run(dataset, draws) or run(dataset): outputs of the mechanism.")
    ],
    neighbours: Annotated[
        str,
        typer.Option("--neighbours", metavar="MODULE:NAME", help="A pair of datasets, or a list of pairs to search among."),
    ],
    output: options.OutputOptions,
    mu: Annotated[float | None, typer.Option("--mu", help="The claim, as mu of Gaussian differential privacy.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The claim, as epsilon at --delta.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="Where an epsilon is claimed; 0 for pure privacy.")] = 0.0,
    draws: Annotated[int, typer.Option("--draws", help="Outputs on either dataset.")] = 200_000,
    confidence: Annotated[float, typer.Option("--confidence", help="That a sound mechanism is not refuted.")] = 0.999,
) -> None:
    """Test a privacy claim on draws from neighbouring datasets. Exit code 1: refuted."""
    from .. import audit

    check_outcome(output)
    if (mu is None) == (epsilon is None):
        raise InvalidInput("say what is claimed: --mu, or --epsilon with --delta")
    claimed: Guarantee | float = mu if mu is not None else Guarantee(cast("float", epsilon), delta, 0.0)
    run = cast("Callable[..., object]", imported(function, "FUNCTION"))
    given = imported(neighbours, "--neighbours")
    if isinstance(given, list):
        searched = audit.search(run, given, claimed, draws=draws, confidence=confidence)
        outcome, words = searched.audit, searched.summary()
    else:
        outcome = audit.mechanism(run, cast("tuple[object, object]", given), claimed, draws=draws, confidence=confidence)
        words = outcome.summary()
    give_outcome(outcome, output, lambda: print_lines(f"{outcome.verdict_line.capitalize()}.\n{words}"))
    if outcome.refuted:
        raise typer.Exit(EXIT_REFUTED)
