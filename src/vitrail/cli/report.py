"""`vitrail report`: everything global about a model from private rows, for one price, as one page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..accounting import JsonValue, rounded_up
from ..guarantee import check_epsilon_delta
from ..show.tables import printable
from . import options
from .account import STILL_PAID, bill_line, charged_since, declared_of, fits_line, with_notes
from .ask_input import model_of
from .output import check_files, existing, print_json, print_line, print_table, print_written, write_files

if TYPE_CHECKING:
    from ..explain.quoted import Quoted
    from ..ledger import Statement
    from ..results.report import Report

SUFFIXES = (".html", ".json")


def report(
    data: options.Data,
    schema: options.Schema,
    model: options.Model,
    rows: options.Rows,
    epsilon: options.Epsilon,
    budget: options.Budget,
    ledger: options.Ledger,
    files: options.PageFiles = None,
    features: Annotated[
        list[str] | None,
        typer.Option("--features", metavar="COLUMN", help="Only this column; may be repeated. All if not given."),
    ] = None,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--parts", metavar="PART", help="pdp, ale, importance or shap; may be repeated. All but shap if not given."
        ),
    ] = None,
    output: options.ModelOutput = None,
    bounds: options.Range = None,
    inputs: options.Inputs = "auto",
    loss: options.Loss = "squared",
    sampling_rate: Annotated[
        float, typer.Option("--sampling-rate", help="Below 1: look at a random share of the rows, faster and noisier.")
    ] = 1.0,
    key: options.Key = None,
    quote: options.Quote = False,
    as_json: options.Json = False,
    delta: options.Delta = options.DEFAULT_DELTA,
    target: options.Target = None,
    neighbours: options.Neighbours = None,
    name: options.Name = None,
    account: options.Account = None,
    analyst: options.Analyst = "owner",
    version: options.Version = "1",
) -> None:
    """Explain a whole model from private rows: importance, partial dependence, accumulated effects, one price, one page."""
    from ..explain.global_report import GlobalReport
    from ..vault import PrivateData

    check_epsilon_delta(epsilon, delta, "a question")
    check_files(files, SUFFIXES, "the report")
    declared = declared_of(data, schema, rows, budget, delta, ledger, target, neighbours, name, account, analyst, version)
    rehearsal = declared.rehearsal()
    chosen = model_of(model, output=output, bounds=bounds, inputs=inputs)

    def explainer(rows_of: PrivateData) -> GlobalReport:
        return GlobalReport(
            rows_of,
            chosen,
            columns=features,
            parts=parts,  # type: ignore[arg-type]  # unknown names are refused there
            loss=loss,
            sampling_rate=sampling_rate,
            key=key,
        )

    if quote:
        tag = explainer(rehearsal).quote(epsilon=epsilon)
        _print_quote(tag, declared.statement(rehearsal.budget), as_json)
        return
    existing(data, "data")
    private = declared.opened()
    last = max(entry.seq for entry in private.budget.entries)
    found = with_notes(lambda: explainer(private)(epsilon=epsilon))
    after = private.budget
    writers: dict[str, Callable[[Path], object]] = {
        ".json": found.write_json,
        ".html": lambda file: found.to_html(file, after.bill()),
    }
    write_files(files, writers, "the report", STILL_PAID)
    line = bill_line(after, found.cost, replayed=not charged_since(after, last))
    if as_json:
        print_json(found.to_json())
        return
    if not files:
        print_report(found)
        print_line()
        print_line(printable(found.guarantee.sentence))
    print_line(line)
    if files:
        print_written(files)


def print_report(found: Report) -> None:
    """A line for each column: its importance, and how far its curves go up and down."""
    effects = {kind: curves for kind, curves in (("pdp", found.pdp), ("ale", found.ale)) if curves is not None}
    ranking = found.importance or found.shap
    columns = ranking.order if ranking is not None else tuple(next(iter(effects.values())))
    header = ["column"]
    if ranking is not None:
        header += [ranking.kind.replace("permutation ", ""), ranking.band_claim.column, "above the next"]
        ranked = ranking.frame()
    header += [f"{kind} from lowest to highest" for kind in effects]
    lines = []
    for place, column in enumerate(columns):
        line = [printable(column)]
        if ranking is not None:
            half = (float(ranked["upper"][place]) - float(ranked["lower"][place])) / 2
            sure = float(ranked["confidence"][place])
            last = place == len(columns) - 1
            line += [f"{float(ranked['score'][place]):.4g}", f"± {half:.2g}", "" if last else f"{100 * sure:.0f} %"]
        line += [f"{float(curves[column].y.max() - curves[column].y.min()):.3g}" for curves in effects.values()]
        lines.append(line)
    print_table(header, lines, numeric=range(1, len(header)))
    if ranking is not None:
        print_line()
        print_line(ranking.band_claim.sentence(ranking.kind))


def _print_quote(tag: Quoted[Report], statement: Statement, as_json: bool) -> None:
    fits = statement.spent + tag.price.cost <= statement.capacity
    if as_json:
        said: dict[str, JsonValue] = {"fits": fits, "remaining_epsilon": statement.remaining_epsilon}
        price = {**tag.price.to_json(), **said}
        print_json({**tag.to_json(), "price": price})
        return
    promise = tag.price.guarantee
    print_line(
        f"The report costs epsilon {rounded_up(promise.epsilon)} at delta {rounded_up(promise.delta)} "
        f"(mu {rounded_up(promise.mu)}, neighbours {promise.neighbours})."
    )
    print_line(
        f"Bands of about: {tag.widths_text.replace('+-', '± ')}. That is an estimate from rows drawn from {tag.stands_on}."
    )
    print_line(fits_line(fits, statement))
