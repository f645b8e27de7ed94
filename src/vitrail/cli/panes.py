"""Commands that cost nothing and need neither data nor ledger: `show`, `explain`, `report` of a pane; `schema check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._checks import choice
from ..desk.declaration import ENDING, read_declaration
from ..errors import InvalidInput
from ..model.files import OPENED
from ..schema import Numeric, Schema
from . import declarations as options
from .answering import with_notes
from .inputs import class_of, existing, points_of, range_of
from .printing import (
    check_files,
    check_writable,
    content_of,
    give,
    print_json,
    print_lines,
    print_person,
    print_report,
    print_table,
    write_file,
)

if TYPE_CHECKING:
    from ..accounting import JsonValue
    from ..model import Model
    from ..pane.manifest import MadeFor
    from ..pane.pane import Pane


def show(
    pane: options.PaneFile,
    newer: Annotated[
        Path | None, typer.Argument(metavar="[NEW.pane]", help="A newer pane: say instead where the two differ.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say what a pane promises, what it cost, what is inside, and how accurate to expect it. Free.

    With two panes: which histograms and curves differ by more than noise explains.
    """
    opened = _load(pane)
    if newer is not None:
        _show_drift(opened, _load(newer), as_json=as_json)
        return
    if as_json:
        life: dict[str, JsonValue] = {"version": opened.version, "expires": opened.expires, "expired": opened.expired}
        print_json({**content_of(opened), **life})
        return
    from ..pane.pages import inside_table, lifetime_text, person_sentence, questions_table

    size = pane.stat().st_size / 1024
    about = f"{' and '.join(opened.models)}, explained from" if opened.models else "private rows of"
    print_lines(
        f"{pane}: {about} {opened.dataset} ({size:.0f} KiB)",
        *([f"Version {own}."] if (own := lifetime_text(opened)) else []),
        opened.guarantee.sentence,
        *map(_model_line, opened.manifest.models),
        *([] if opened.models else ["Model: none. Private rows explain any: vitrail explain --model."]),
        *filter(None, [person_sentence(opened)]),
        f"Made with {opened.tool}, paid for by {opened.created}, declared rows {opened.n_rows_public}.",
        "",
    )
    for table in (inside_table(opened), questions_table(opened)):
        print_table(table.header, table.rows, numeric=table.numeric)
        print_lines("")
    if opened.unknown_parts:
        print_lines(f"Parts of a later version, kept as they are: {', '.join(opened.unknown_parts)}.")


def _show_drift(old: Pane, new: Pane, *, as_json: bool) -> None:
    """Where two panes differ."""
    from ..pane.comparison import compare

    found = compare(old, new)
    if as_json:
        print_json(found.to_json())
        return
    print_lines(f"{found.old}, against {found.new}", found.sentence, "")
    table = found.table()
    print_table(table.header, table.rows, numeric=table.numeric)
    print_lines("", *found.notes)


def _model_line(made_for: MadeFor) -> str:
    digest = "no content hash: a bare function" if made_for.digest is None else f"content {made_for.digest[:16]}"
    inside = "" if made_for.embedded is None else "; it lies in the pane (--model embedded)"
    low, high = made_for.range
    return f"Model {made_for.name}: output {made_for.output}, range {low:g} to {high:g}, {digest}{inside}."


About = Annotated[str | None, typer.Option("--about", metavar="NAME", help="Which of the pane's models, if it has several.")]


@options.command
def report_pane(pane: options.PaneFile, output: options.OutputOptions, about: About = None) -> None:
    """Write the page of the model from a pane: importance, curves, histograms, promise and price. Free."""
    check_files(output.files, "the report")
    opened = _load(pane)
    opened = opened if about is None else opened.about(about)
    report = opened.report
    writers, first = {".html": opened.to_html}, report.read_first
    give(output, "the report", report.to_json(), lambda: print_report(report), writers, first=first)


@options.command
def explain(
    pane: options.PaneFile,
    person: Annotated[
        str,
        typer.Argument(
            metavar="PERSON",
            help="A .json, .csv or .parquet file with one person, JSON text, or - for stdin. Many people with -o FOLDER.",
        ),
    ],
    reading: options.ReadingOptions,
    output: options.OutputOptions,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="M.onnx",
            help=f"{options.MODEL_HELP} Or embedded, if the pane holds its model. Any model is explained; without one there "
            "are curves.",
        ),
    ] = None,
    about: About = None,
    desired: options.Desired = "opposite",
    desired_range: options.DesiredRange = None,
    count: Annotated[int, typer.Option("--count", min=1, max=20, help="How many counterfactuals.")] = 3,
    method: Annotated[
        str, typer.Option("--method", help="Of contributions: auto, shapley, tree, linear or moments.")
    ] = "auto",
    bands: Annotated[bool, typer.Option("--bands/--no-bands", help="Noise bands, which take a few seconds.")] = True,
    words: Annotated[
        Path | None,
        typer.Option("--words", metavar="WORDS.toml", help="Your words for the page, in place of those in the pane."),
    ] = None,
    name_by: Annotated[
        str | None, typer.Option("--name-by", metavar="COLUMN", help="Of many people: the column that names their pages.")
    ] = None,
) -> None:
    """Explain people from a pane: what counted, what would change the answer, where they stand. Free.

    With -o letters/ (a folder) everybody in a file gets a page of their own, with an index, and reasons.json and reasons.csv
    for a decision system.
    """
    from ..pane.pane import METHODS, Pane

    folder = _folder_of(output)
    if folder is None:
        check_files(output.files, "the explanation")
        if name_by is not None:
            raise InvalidInput("--name-by names the pages of many people; give a folder for them: -o letters/")
    chosen = choice("--method", method, METHODS)
    path = existing(pane, "pane")
    opened = with_notes(lambda: Pane.load(path, model=_model(model, reading)))
    point = points_of(person, opened.manifest.target)
    wanted, outputs = class_of(desired), range_of(desired_range)
    opened = opened if about is None else opened.about(about)
    if words is not None:
        from ..show.page_words import PageWords

        told = PageWords.load(existing(words, "file of words"))
        told.check([*opened.schema, *opened.schema.groups])
        opened = opened.with_page(told)
    if folder is not None:
        from ..pane.letters import write_letters

        how: Any = {"desired_class": wanted, "desired": outputs, "total_CFs": count, "method": chosen}
        written = write_letters(opened, point, folder, name_by=name_by, bands=bands, **how)
        print_lines(f"{len(written.pages)} letters, and an index of them. Written: {folder / 'index.html'}")
        return
    explained = opened.explain(point, desired_class=wanted, desired=outputs, total_CFs=count, method=chosen, bands=bands)
    writers, e = {".html": explained.to_html}, explained.explanation
    first = () if e is None else e.read_first
    give(output, "the explanation", explained.to_json(), lambda: print_person(explained), writers, first=first)


def _folder_of(output: options.OutputOptions) -> Path | None:
    """The folder that letters go to, where one was named: ``letters/``, or one that is there."""
    files = output.files or []
    folders = [path for path, text in zip(files, map(str, files), strict=True) if path.is_dir() or not path.suffix]
    if folders and (len(files) > 1 or output.as_json):
        raise InvalidInput("-o names a folder for letters; give nothing else with it (reasons.json is written there)")
    return folders[0] if folders else None


def rows(
    pane: options.PaneFile,
    file: Annotated[
        Path, typer.Option("--output-file", "-o", metavar="FILE", help="A .csv, .parquet or .arrow file to write.")
    ],
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="How many; as many as were declared if not given.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same rows.")] = 0,
) -> None:
    """Write rows sampled from a pane's private tables: nobody's, and any number of them. Free."""
    from ..results.arrow_rows import writer_of

    check_writable(file, "the rows")
    writer_of(file)
    made = _load(pane).private_rows
    write_file(file, lambda path: made.write(path, count, seed), "the rows")
    print_lines(f"{count or made.n_rows_public} rows of {made.dataset}, {made.guarantee.brief}. Written: {file}")


def _model(text: str | None, reading: options.ReadingOptions) -> Model | str | Path | None:
    """The model as Pane.load takes it: a file is read as the pane says, unless options say otherwise."""
    if text is None or text == "embedded":
        if reading.given:
            raise InvalidInput("--output, --range, --inputs and --unknown say how a model is read; give --model too")
        return text
    if not reading.given and Path(text).suffix.lower() in OPENED:
        return existing(Path(text), "model")
    return reading.read(text)


def _load(path: Path) -> Pane:
    """The pane in a file, without a model."""
    from ..pane.pane import Pane

    return with_notes(lambda: Pane.load(existing(path, "pane")))


def check_schema(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA.json", help="The schema, or a declaration (.toml).")],
    points: Annotated[
        Path | None, typer.Argument(metavar="[POINT.json]", help="One point (an object), or a list of them. Public.")
    ] = None,
) -> None:
    """Check a schema and, if given, public points against it."""
    file = existing(schema, "schema")
    declared = read_declaration(file).schema if file.suffix.lower() == ENDING else Schema.load(file)
    if points is not None:
        read = declared.read_points(points_of(str(points), None))
        print_lines(f"{len(read)} point{'s fit' if len(read) != 1 else ' fits'} the schema {schema}.")
        return
    rows = []
    for name, column in declared.items():
        kind = "numeric" if isinstance(column, Numeric) else "categorical"
        missing = "the row counts zero" if column.missing is None else f"read as {column.missing!r}"
        rows.append((name, kind, column.allowed, missing))
    print_table(("column", "kind", "allowed", "missing"), rows)
    print_lines(f"{declared.n_columns} columns, {declared.n_features} features. Digest {declared.digest()[:12]}.")
