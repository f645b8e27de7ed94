"""`vitrail train`: a classifier that explains itself, trained on private rows; and `vitrail explain` of one, which is free.

The price is paid from the account's purse for training, which is set aside when the account is opened: ``training =
[epsilon, delta]`` in a declaration's ``[budget]``, or ``--budget`` with the first training.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..accounting import rounded_down, rounded_up
from ..accounting.guarantee import Budget, check_epsilon_delta
from ..errors import InvalidInput
from . import declarations as options
from .answering import account_of, with_notes
from .inputs import MAPS, check_source, class_of, existing, points_of
from .printing import (
    attribution_figure,
    check_files,
    check_writable,
    content_of,
    give,
    print_json,
    print_lines,
    print_table,
    show,
)

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..maps import LocallyLinearClassifier

LARGEST_SHOWN = 5
MapsFile = Annotated[Path, typer.Argument(metavar="X.maps", help="A trained model, as `vitrail train` writes it.")]


@options.command
def train(
    data: options.DataOptions,
    epsilon: Annotated[float, typer.Option("--epsilon", help="What the training may cost, of the purse for training.")],
    file: Annotated[Path, typer.Option("--output-file", "-o", metavar="X.maps", help="Where the trained model is written.")],
    training_delta: Annotated[
        float | None,
        typer.Option(
            "--training-delta", help="Its delta; of a declared purse all that is left, else a tenth of the account's."
        ),
    ] = None,
    n_maps: Annotated[
        int | None, typer.Option("--maps", min=1, help="Linear maps per class; by the number of rows if not given.")
    ] = None,
    curves: Annotated[
        int | None, typer.Option("--curves", min=0, help="Smooth curves per number; 0: a map is linear in the numbers.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Noisy steps.")] = None,
    quote: Annotated[bool, typer.Option("--quote", help="Only say what is set aside and whether it fits. Free.")] = False,
    as_json: options.Json = False,
) -> None:
    """Train a classifier that explains itself on private rows: a few linear maps for each class of --target."""
    check_writable(file, "the model")
    if file.suffix.lower() != MAPS:
        raise InvalidInput(f"--output-file is {str(file)!r}; the name of a trained model must end in {MAPS}")
    known = account_of(data)
    delta = _training_delta(data, known, training_delta)
    check_epsilon_delta(epsilon, delta, "a training")
    budget = _budget(data, known, epsilon, delta)
    if quote:
        _print_quote(epsilon, delta, budget, known)
        return
    from ..maps import LocallyLinearClassifier, save_maps

    model = LocallyLinearClassifier(epsilon, delta, n_maps=n_maps, curves=curves, steps=steps)
    rehearsed = LocallyLinearClassifier(epsilon, delta, n_maps=n_maps, curves=curves, steps=1, progress=False)
    with_notes(
        lambda: rehearsed.fit(data.nobody(budget))
    )  # whatever is wrong with the declarations is said here, for nothing
    check_source(data.declared)
    private = with_notes(lambda: data.private_data(None, budget))
    with_notes(lambda: model.fit(private))
    save_maps(model, file)
    spent, whole = (rounded_up(part[0]) for part in (private.budget.training_spent, budget.training))
    bill = f"The training cost epsilon {rounded_up(epsilon)}. Spent of the purse for training: {spent} of {whole}."
    if as_json:
        print_json({"file": str(file), "guarantee": model.guarantee_.to_json(), "classes": model.classes_.tolist()})
        return
    _print_model(model)
    print_lines(
        "", model.guarantee_.sentence, bill, f"Written: {file}. `vitrail explain {file} PERSON` explains anybody, free."
    )


def _training_delta(data: options.DataOptions, known: Statement | None, stated: float | None) -> float:
    """As stated, else what a purse still has, else a tenth of the account's."""
    if stated is not None:
        return stated
    if known is not None:
        return known.training_remaining[1] or known.budget.training[1] or known.budget.delta / 10
    whole = data.declared.budget
    return whole.training[1] or whole.delta / 10


def _budget(data: options.DataOptions, known: Statement | None, epsilon: float, delta: float) -> Budget:
    """The account's budget, with a purse for training inside; of a new one that nobody declared: for this training."""
    if data.is_declared or known is not None:
        budget = data.declared.budget if data.is_declared else known.budget if known is not None else None
        assert budget is not None
        if not budget.training[0]:
            where = (
                "[budget] of the declaration has none: training = [0.5, 1e-7]"
                if data.is_declared
                else "the account has none"
            )
            raise InvalidInput(
                f"training is paid from a purse of its own, which is set aside when an account is opened; {where}"
            )
        return budget
    if data.budget is None:
        raise InvalidInput(
            "--budget is missing: the whole epsilon of the account, for ever, of which --epsilon is set aside for training"
        )
    whole = data.declared.budget
    return Budget(whole.epsilon, whole.delta, training=(epsilon, delta))


def _print_quote(epsilon: float, delta: float, budget: Budget, known: Statement | None) -> None:
    left = budget.training if known is None else known.training_remaining
    fits = epsilon <= left[0] and delta <= left[1]
    print_lines(
        f"The price of training is what is set aside for it: epsilon {rounded_up(epsilon)} at delta {rounded_up(delta)}.",
        f"It {'fits' if fits else 'does not fit'}: the purse for training still has epsilon {rounded_down(left[0])} "
        f"and delta {rounded_down(left[1])}. Nothing was charged.",
    )


def _print_model(model: LocallyLinearClassifier) -> None:
    """The largest weights of every class."""
    bank = model.explain_global()
    lines = [
        (str(label), feature, f"{weight:+.3f}")
        for label in bank.classes
        for feature, weight in bank.top(label, LARGEST_SHOWN)
    ]
    print_table(("class", "feature", "mean weight of its maps"), lines, numeric=(2,))
    if model.curves_ is not None:
        print_lines("A number with a mark, such as age~1, is one of the smooth curves of that column.")


@options.command
def show_maps(maps: MapsFile, as_json: options.Json = False) -> None:
    """Say what a trained model promises, and what weighs most in it. Free."""
    from ..maps import load_maps

    model = load_maps(existing(maps, "model"))
    if as_json:
        print_json({"classes": model.classes_.tolist(), "maps": len(model.maps_), "guarantee": model.guarantee_.to_json()})
        return
    print_lines(f"{maps}: {model.explain_global()!r}", model.guarantee_.sentence, "")
    _print_model(model)


@options.command
def explain_maps(
    maps: MapsFile,
    person: Annotated[
        str, typer.Argument(metavar="PERSON", help="A .json, .csv or .parquet file with people, JSON text, or - for stdin.")
    ],
    output: options.OutputOptions,
    target: Annotated[
        str | None,
        typer.Option("--class", metavar="CLASS", help="Whose score is explained; the predicted one if not given."),
    ] = None,
) -> None:
    """Explain people by a model of locally linear maps: exactly what it computes. Free."""
    from ..maps import load_maps
    from ..show import page, write_page

    check_files(output.files, "the explanation", (".png",))
    model = load_maps(existing(maps, "model"))
    wanted = None if target is None else class_of(target)
    points = points_of(person, None)
    answer = with_notes(lambda: model.explain_local(points, target=wanted))
    line = f"The model says: {', '.join(str(label) for label in model.predict(points)[:20])}."
    writers = {
        ".html": lambda where: write_page(page(answer, model=maps.stem, notes=(line,)), where),
        ".png": lambda where: attribution_figure(answer).savefig(where, dpi=160),
    }
    give(
        output,
        "the explanation",
        content_of(answer),
        lambda: show(answer, maps.stem, line),
        writers,
        first=answer.read_first,
    )
