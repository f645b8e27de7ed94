"""`vitrail explain X.pane person.json`: one person, from a pane. Needs neither data nor ledger, and costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from ..results.band_claim import weakest
from ..results.checks import shown_text
from ..show.tables import printable
from . import options
from .account import with_notes
from .ask_input import model_of, points_of
from .output import check_files, existing, print_json, print_line, print_table, print_written, write_files
from .report import SUFFIXES

if TYPE_CHECKING:
    from ..model import Model
    from ..pane.person import Person


def explain(
    pane: options.Pane,
    person: Annotated[
        str, typer.Argument(metavar="PERSON", help="A .json or .csv file with one person, JSON text, or - for stdin.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="M.onnx",
            help="An ONNX file, module:attribute (importing it RUNS that code), or embedded, if the pane holds its model. "
            "Without it there are curves and contributions, and no counterfactuals.",
        ),
    ] = None,
    files: options.PageFiles = None,
    desired: Annotated[
        str | None,
        typer.Option("--desired-class", help="The class that counterfactuals lead to; the other one if not given."),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=20, help="How many counterfactuals.")] = 3,
    method: Annotated[str, typer.Option("--method", help="Of contributions: auto, moments or rows.")] = "auto",
    bands: Annotated[bool, typer.Option("--bands/--no-bands", help="Noise bands, which take a few seconds.")] = True,
    output: options.ModelOutput = None,
    bounds: options.Range = None,
    inputs: options.Inputs = "auto",
    as_json: options.Json = False,
) -> None:
    """Explain one person from a pane: what each column contributes, what would change the answer, where they stand. Free."""
    from ..pane.pane import METHODS, Pane
    from ..solve.counterfactual.classes import OPPOSITE

    check_files(files, SUFFIXES, "the explanation")
    chosen = next((known for known in METHODS if known == method), None)
    if chosen is None:
        raise InvalidInput(f"--method is {method!r}; choose one of {', '.join(METHODS)}")
    path = existing(pane, "pane")
    point = points_of(person, None)
    opened = with_notes(lambda: Pane.load(path, model=_model(model, output, bounds, inputs)))
    wanted = OPPOSITE if desired is None else int(desired) if desired.isdecimal() else desired
    found = opened.explain(point, desired_class=wanted, total_CFs=count, method=chosen, bands=bands)  # type: ignore[arg-type]
    write_files(files, {".json": found.write_json, ".html": found.to_html}, "the explanation")
    if as_json:
        print_json(found.to_json())
    elif files:
        print_written(files)
    else:
        _print(found)


def _model(
    text: str | None, output: str | None, bounds: tuple[float, float] | None, inputs: str
) -> Model | str | Path | None:
    """The model as Pane.load takes it: an ONNX file is read as the pane says, unless options say otherwise."""
    plain = output is None and bounds is None and inputs == "auto"
    if text is None or text == "embedded":
        if not plain:
            raise InvalidInput("--output, --range and --inputs say how a model is read; give --model too")
        return text
    if plain and text.lower().endswith(".onnx"):
        return existing(Path(text), "model")
    return model_of(text, output=output, bounds=bounds, inputs=inputs)


def _print(found: Person) -> None:
    if found.explanation is not None:
        print_line(found.explanation.summary(len(found.point)))
        print_line()
    if found.counterfactuals is not None:
        one = found.counterfactuals[0]
        print_line(printable(f"{one.model} says {one.classes[0]}; to get to {one.wanted[0]}:"))
        for answer, changes in zip(one.answers[0], one.changes[0], strict=True):
            moves = ", ".join(f"{name} from {shown_text(before)} to {shown_text(after)}" for name, before, after in changes)
            print_line(printable(f"  {moves}: then the model says {answer.output:.3g}"))
        if one.messages[0]:
            print_line(printable(f"  {one.messages[0]}"))
        print_line()
    if found.places:
        claim = weakest(one.curve.band_claim for one in found.places)
        header = ("column", "here", found.places[0].curve.kind, claim.column)
        lines = [
            (
                printable(one.column),
                printable(shown_text(one.value)),
                f"{one.output:.3g}",
                "" if one.half_width is None else f"± {one.half_width:.2g}",
            )
            for one in found.places
        ]
        print_table(header, lines, numeric=(2, 3))
        print_line(claim.sentence(found.places[0].curve.kind))
        print_line()
    for note in found.notes:
        print_line(printable(note))
    print_line(printable(found.pane.guarantee.sentence))
