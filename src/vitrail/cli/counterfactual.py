"""`vitrail counterfactual`: what would have changed a model's answer, from a private picture of the classes.

Everything public (schema, model, points, constraints, files to write) is read and tried before the ledger is opened, so that
a mistake costs nothing. The picture is paid for once: with a model that is a file, or a ``--key``, the same command for
other people replays it, free; ``--save`` keeps it in a file of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from ..guarantee import check_epsilon_delta
from ..results.counterfactuals import Counterfactuals
from ..schema import Level, Numeric, Schema
from ..show.tables import printable
from . import options
from .account import STILL_PAID, bill_line, charged_since, declared_of, with_notes
from .ask_input import model_of, points_of
from .ask_output import SUFFIXES
from .output import (
    check_files,
    check_writable,
    print_json,
    print_line,
    print_note,
    print_table,
    print_written,
    write_files,
)

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..solve.counterfactual.fitted import FittedCounterfactual
    from ..solve.counterfactual.rules import Columns


@dataclass(frozen=True)
class Asked:
    """What is asked about public people, as the call takes it."""

    people: object
    desired_class: Level
    total: int
    features_to_vary: Columns
    permitted_range: dict[str, Sequence[Level]]

    def answered(self, explainer: FittedCounterfactual) -> Counterfactuals:
        """Search; free."""
        return explainer(
            self.people,
            desired_class=self.desired_class,
            total_CFs=self.total,
            features_to_vary=self.features_to_vary,
            permitted_range=self.permitted_range,
        )


def counterfactual(
    data: options.Data,
    schema: options.Schema,
    model: options.Model,
    point: options.Point,
    rows: options.Rows,
    epsilon: options.Epsilon,
    budget: options.Budget,
    ledger: options.Ledger,
    desired: Annotated[
        str, typer.Option("--desired-class", metavar="CLASS", help="The class to get to: 0, 1, its name, or opposite.")
    ] = "opposite",
    total: Annotated[int, typer.Option("--total", help="How many different answers for each person.")] = 1,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="COLUMN", help="A column that may change; repeat. All if not given."),
    ] = None,
    permit: Annotated[
        list[str] | None,
        typer.Option(
            "--permit",
            metavar="COLUMN=RANGE",
            help="Where changed values may lie: age=30:50, or levels: 'job=clerk|nurse'. May be repeated.",
        ),
    ] = None,
    files: options.PictureFiles = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the releases, to explain others without the data.")
    ] = None,
    output: options.ModelOutput = None,
    bounds: options.Range = None,
    inputs: options.Inputs = "auto",
    threshold: Annotated[float, typer.Option("--threshold", help="Outputs of at least this are class 1.")] = 0.5,
    key: options.Key = None,
    as_json: options.Json = False,
    delta: options.Delta = options.DEFAULT_DELTA,
    target: options.Target = None,
    neighbours: options.Neighbours = None,
    name: options.Name = None,
    account: options.Account = None,
    analyst: options.Analyst = "owner",
    version: options.Version = "1",
) -> None:
    """Say what would have changed a model's answer for public points, from private rows, with a promise and a bill."""
    from ..explain.counterfactual import Counterfactual
    from ..solve.counterfactual.fitted import FittedCounterfactual

    check_epsilon_delta(epsilon, delta, "a question")
    check_files(files, SUFFIXES, "the explanation")
    if save is not None:
        check_writable(save, "the counterfactual")
    declared = declared_of(data, schema, rows, budget, delta, ledger, target, neighbours, name, account, analyst, version)
    rehearsal = declared.rehearsal()
    chosen = model_of(model, output=output, bounds=bounds, inputs=inputs)
    ranges = _ranges(rehearsal.feature_schema, permit or [])
    asked = Asked(points_of(point, target), _class_of(desired), total, list(vary or ()) or "all", ranges)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of is said when it is paid for
        tried = Counterfactual(rehearsal, chosen, threshold=threshold, rows=False, latent="none")
        asked.answered(FittedCounterfactual(tried.quote(epsilon=epsilon).result, chosen))
    private = declared.opened()
    last = max(entry.seq for entry in private.budget.entries)
    explainer = with_notes(lambda: Counterfactual(private, chosen, threshold=threshold, key=key).fit(epsilon=epsilon))
    if save is not None:
        explainer.save(save)
    found = asked.answered(explainer)
    after = private.budget
    bill = bill_line(after, found.cost, replayed=not charged_since(after, last))
    _write(found, after, declared.name, bill, files)
    if as_json:
        print_json(found.to_json())
    elif files:
        print_line(bill)
        print_written(files)
    else:
        _print(found, bill)


def _class_of(text: str) -> Level:
    return int(text) if text.isdecimal() else text


def _ranges(schema: Schema, permit: Sequence[str]) -> dict[str, Sequence[Level]]:
    """The options ``--permit``, read by the schema."""
    ranges: dict[str, Sequence[Level]] = {}
    for text in permit:
        name, equals, given = text.partition("=")
        if not equals or not given:
            raise InvalidInput(f"--permit is {text!r}; write COLUMN=LOW:HIGH or COLUMN=LEVEL|LEVEL")
        if isinstance(schema[schema.names[schema.column_index(name)]], Numeric):
            try:
                low, high = (float(end) for end in given.split(":"))
            except ValueError as error:
                raise InvalidInput(f"--permit is {text!r}; column {name!r} needs two numbers, as in {name}=30:50") from error
            ranges[name] = (low, high)
        else:
            ranges[name] = given.split("|")
    return ranges


def _print(found: Counterfactuals, bill: str) -> None:
    """One line per change: a table for a terminal, tab-separated for a pipe; then the promise and the bill."""
    lines = [
        (str(place), str(number), column, str(before), str(after))
        for place, some in enumerate(found.changes)
        for number, changes in enumerate(some)
        for column, before, after in changes
    ]
    print_table(("person", "answer", "column", "now", "what if"), [tuple(map(printable, line)) for line in lines])
    print_line()
    for place, message in enumerate(found.messages):
        if message:
            print_line(printable(f"Person {place}: {message}"))
        for number, one in enumerate(found.answers[place]):
            print_line(
                f"Person {place}, answer {number}: the model says {one.output:.3g}, not {found.outputs[place]:.3g}; "
                f"distance {one.distance:.3g}, to the class {one.plausibility:.3g}."
            )
    for sentence in (found.guarantee.sentence, *found.notes, bill):
        print_line(printable(sentence))


def _write(found: Counterfactuals, statement: Statement, dataset: str, bill: str, files: Sequence[Path] | None) -> None:
    from ..show import page, write_page

    writers: dict[str, Callable[[Path], object]] = {
        ".json": found.write_json,
        ".png": lambda file: found.plot(0).savefig(file, dpi=160),
        ".html": lambda file: write_page(page(found, dataset=dataset, bill=statement.bill(), notes=(bill,)), file),
    }
    write_files(files, writers, "the explanation", STILL_PAID)
    if len(found) > 1 and any(file.suffix.lower() == ".png" for file in files or ()):
        print_note(f"Note: the picture shows the first of {len(found)} people; a .json file holds all of them.")
