"""`vitrail audit`: attack explanations that lie in files, or test a mechanism's privacy claim.

Audits read what an auditor owns: explanations, points and code. There is no ledger, nothing is charged. A refuted claim ends
with exit code 1, so that a build can be stopped by it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
import typer

from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from . import declarations as options
from .inputs import existing, imported
from .printing import check_files, give, print_lines, print_note, print_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..audit import Audit, MembershipAudit
    from ..audit.targets import Explain

EXIT_REFUTED = 1
TABLES = (".npy", ".csv", ".parquet")
METHODS = (
    "gradient",
    "input_x_gradient",
    "integrated_gradients",
    "guided_backpropagation",
    "layer_relevance",
    "smooth_gradient",
)
EXPLAIN_HELP = (
    f"module:function from points to explanations, or with --module a method: {', '.join(METHODS)}. Without it the files "
    "hold explanations."
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
    seed: Annotated[int, typer.Option("--seed", help="Of the attacker's random choices.")] = 0,
    confidence: Annotated[float, typer.Option("--confidence", help="Of every interval.")] = 0.95,
) -> None:
    """Attack explanations: who was in the training data? From files, and code you trust."""
    from .. import audit

    check_files(output.files, "the audit")
    sides = [_table(path) for path in (members, nonmembers)]
    labels = _taken(sides, [label] if label else [], "--label")
    probabilities = _taken(sides, probability or [], "--probability")
    if not all(sides):
        raise InvalidInput(f"{str(members)!r} or {str(nonmembers)!r} has no columns left to attack")
    points = [_numbers(side) for side in sides]
    predictor = _predictor(predict, module, probabilities)
    outcome = audit.membership(
        audit.Target(_explainer(explain, module), predictor, name=explain or members.stem),
        *points,
        labels=None if labels is None else (labels[0][:, 0], labels[1][:, 0]),
        attacker=audit.Attacker(seed=seed),
        confidence=confidence,
    )
    _give(outcome, output, lambda: _print_attacks(outcome))


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

    check_files(output.files, "the audit")
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
    _give(outcome, output, lambda: print_lines(f"{outcome.verdict_line.capitalize()}.\n{words}"))
    if outcome.refuted:
        raise typer.Exit(EXIT_REFUTED)


def _give(outcome: Audit | MembershipAudit, output: options.OutputOptions, show: Callable[[], None]) -> None:
    """The outcome on the screen in any case, and in files."""
    if output.files and not output.as_json:
        show()
    give(output, "the audit", outcome.to_json(), show, {".html": outcome.report})


# What the command line names


def _explainer(explain: str | None, module: str | None) -> Callable[..., object]:
    from ..audit import targets

    if explain is None:
        return lambda points: points
    if explain in METHODS:
        if module is None:
            raise InvalidInput(f"--explain {explain} needs --module MODULE:NAME, a torch module")
        make = cast("Callable[..., Explain]", getattr(targets, explain))
        return make(imported(module, "--module"))
    if ":" not in explain:
        raise InvalidInput(f"--explain is {explain!r}; write module:function, or one of {', '.join(METHODS)}")
    return cast("Callable[..., object]", imported(explain, "--explain"))


def _predictor(
    text: str | None, module: str | None, probabilities: list[NDArray[np.float64]] | None
) -> Callable[..., object] | None:
    from ..audit import targets
    from ..model.reading_models import predictor_of

    if text is not None and Path(text).suffix.lower() == ".onnx":
        return predictor_of(existing(Path(text), "model"))
    if text is not None:
        return cast("Callable[..., object]", imported(text, "--predict"))
    if module is not None:
        return targets.predictions(imported(module, "--module"))
    if probabilities is None:
        return None
    table = np.concatenate(probabilities)
    return lambda _: table  # of all people, in the order in which they are asked about


# Files


def _table(path: Path) -> dict[str, NDArray[np.generic]]:
    """Columns by name; an array's columns are numbered."""
    suffix = existing(path, "table").suffix.lower()
    if suffix not in TABLES:
        raise InvalidInput(f"{str(path)!r} is no table; give one of {', '.join(TABLES)}")
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if suffix == ".npy":
            array = np.load(path, allow_pickle=False)
            return {str(index): column for index, column in enumerate(array.reshape(len(array), -1).T)}
        table = csv.read_csv(path) if suffix == ".csv" else parquet.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error}") from error
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}


def _taken(sides: list[dict[str, NDArray[np.generic]]], names: list[str], option: str) -> list[NDArray[np.float64]] | None:
    """Columns taken out of both tables."""
    for side, name in product(sides, names):
        if name not in side:
            raise InvalidInput(f"{option} is {name!r}; the columns are {', '.join(list(side)[:20])}")
    return [_numbers({name: side.pop(name) for name in names}) for side in sides] if names else None


def _numbers(columns: dict[str, NDArray[np.generic]]) -> NDArray[np.float64]:
    numbers = []
    for name, column in columns.items():
        try:
            numbers.append(column.astype(np.float64))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"column {name!r} holds texts; an attack needs numbers, encode or drop it") from error
    return np.column_stack(numbers)
