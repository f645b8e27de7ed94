"""`vitrail quote` and `vitrail marginals`: the price tag of the first question about a dataset, and the question."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..guarantee import Budget, check_epsilon_delta
from ..schema import Schema
from .output import (
    check_writable,
    existing,
    one_account,
    open_existing_ledger,
    print_json,
    print_line,
    print_note,
    print_table,
)

if TYPE_CHECKING:
    from ..explain.marginals import Marginals
    from ..ledger import Statement
    from ..vault import Quote

DEFAULT_DELTA = 1e-6

SchemaOption = Annotated[Path, typer.Option("--schema", metavar="S.json", help="The declared columns.")]
EpsilonOption = Annotated[float, typer.Option("--epsilon", help="What this question may cost.")]
RowsOption = Annotated[int, typer.Option("--rows", min=1, help="The public row count. Declared, never counted.")]
TargetOption = Annotated[str | None, typer.Option("--target", help="The column to predict.")]
ColumnsOption = Annotated[
    list[str] | None, typer.Option("--column", help="Only this column; may be repeated. All if not given.")
]
BinsOption = Annotated[int, typer.Option("--bins", help="Into how many intervals a number is cut.")]
NeighboursOption = Annotated[
    str | None, typer.Option("--neighbours", help="add-remove (the default) or replace-one.", show_default=False)
]


def quote(
    schema: SchemaOption,
    epsilon: EpsilonOption,
    rows: RowsOption,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help=f"The account's delta; {DEFAULT_DELTA:g} if not given.", show_default=False),
    ] = None,
    target: TargetOption = None,
    neighbours: NeighboursOption = None,
    columns: ColumnsOption = None,
    bins: BinsOption = 20,
    ledger: Annotated[str | None, typer.Option("--ledger", help="Also say whether it fits an account there.")] = None,
    account: Annotated[str | None, typer.Option("--account", metavar="NAME", help="Which account.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Say what marginals would cost and how wide their noise bands would be. Needs no data and charges nothing."""
    from ..explain.marginals import marginals_bins

    declared = Schema.load(existing(schema, "schema"))
    statement = None if ledger is None else _statement(ledger, account)
    if ledger is None and account is not None:
        raise InvalidInput("--account names an account of a ledger; give --ledger too")
    budget, relation = _terms(statement, epsilon, delta, neighbours)
    found = _quote_without_rows(declared, target, rows, budget, relation, columns, bins, epsilon)
    assert found.sigma is not None
    half = 1.959963984540054 * found.sigma
    made = marginals_bins(declared, columns, bins)
    fits = None if statement is None else statement.spent + found.cost <= statement.capacity
    if as_json:
        sizes: JsonValue = {one.name: len(one) for one in made}
        verdict: dict[str, JsonValue] = {
            "fits": fits,
            "remaining_epsilon": None if statement is None else statement.remaining_epsilon,
        }
        print_json({**found.to_json(), **verdict, "band_half_width": half, "bins": sizes})
        return
    promise = found.guarantee
    print_line(
        f"Marginals of {len(made)} columns with {sum(map(len, made))} bins cost epsilon {promise.epsilon:.4g} at delta "
        f"{promise.delta:.3g} (mu {promise.mu:.4g}, neighbours {promise.neighbours})."
    )
    print_line(
        f"Each count would be within {half:,.1f} of the true one with probability 95 %: {100 * half / rows:.2f} % of "
        f"{rows:,} rows."
    )
    if statement is not None:
        verb = "fits" if fits else "does not fit"
        print_line(
            f"It {verb}: the largest question that account {statement.account!r} can still pay for is epsilon "
            f"{statement.remaining_epsilon:.4g}."
        )
    print_line()
    lines = [(one.name, str(len(one)), f"{rows / len(one):,.0f}", f"± {100 * half * len(one) / rows:.1f} %") for one in made]
    print_table(("column", "bins", "rows per bin on average", "band, relative to that"), lines, numeric=(1, 2, 3))


def _statement(ledger: str, account: str | None) -> Statement:
    with closing(open_existing_ledger(ledger)) as opened:
        return opened.statement(one_account(opened, account))


def _terms(statement: Statement | None, epsilon: float, delta: float | None, neighbours: str | None) -> tuple[Budget, str]:
    """The budget and neighbour relation that prices are stated for: the account's, or those on the command line."""
    if statement is None:
        delta = DEFAULT_DELTA if delta is None else delta
        check_epsilon_delta(epsilon, delta, "a question")
        return Budget(epsilon, delta), neighbours or "add-remove"
    for option, given, fixed in (
        ("--delta", delta, statement.budget.delta),
        ("--neighbours", neighbours, statement.neighbours),
    ):
        if given is not None and given != fixed:
            raise InvalidInput(f"{option} is {given}, but account {statement.account!r} has {fixed}; leave {option} out")
    return statement.budget, statement.neighbours


def _quote_without_rows(
    schema: Schema,
    target: str | None,
    rows: int,
    budget: Budget,
    neighbours: str,
    columns: list[str] | None,
    bins: int,
    epsilon: float,
) -> Quote:
    """Quote on a dataset of no rows at all: a quote reads none, so it is the same."""
    from ..explain.marginals import marginals_question
    from ..vault import PrivateData

    nobody: dict[str, list[float]] = {name: [] for name in schema}
    data = PrivateData(nobody, schema, name="quote", target=target, n_rows_public=rows, budget=budget, neighbours=neighbours)
    return data.quote(marginals_question(schema, columns, bins), epsilon=epsilon)


def marginals(
    data: Annotated[Path, typer.Argument(metavar="DATA.parquet", help="A Parquet file, or a folder of them.")],
    schema: SchemaOption,
    rows: RowsOption,
    epsilon: EpsilonOption,
    budget: Annotated[float, typer.Option("--budget", help="The account's whole epsilon, for ever.")],
    ledger: Annotated[str, typer.Option("--ledger", help="Where the bill is kept: a path ending in .db, or a URL.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="R.html", help="Where to write the report.")],
    delta: Annotated[float, typer.Option("--delta", help="The account's delta.")] = DEFAULT_DELTA,
    target: TargetOption = None,
    neighbours: NeighboursOption = None,
    columns: ColumnsOption = None,
    bins: BinsOption = 20,
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name; the file's if not given.")] = None,
    account: Annotated[str | None, typer.Option("--account", help="Who pays; the dataset's name if not given.")] = None,
    analyst: Annotated[str, typer.Option("--analyst", help="Who asks.")] = "owner",
    version: Annotated[
        str, typer.Option("--data-version", help="Change it when the rows change: old answers are then not replayed.")
    ] = "1",
    json_output: Annotated[
        Path | None, typer.Option("--json", metavar="M.json", help="Also write the numbers as JSON.")
    ] = None,
) -> None:
    """Ask for the private histogram of every column, and write a report."""
    from ..explain.marginals import marginals as ask_marginals
    from ..explain.marginals import marginals_bins
    from ..vault import PrivateData

    declared = Schema.load(existing(schema, "schema"))
    marginals_bins(declared, columns, bins)
    check_epsilon_delta(epsilon, delta, "a question")
    check_writable(output, "the report")
    if json_output is not None:
        check_writable(json_output, "the JSON file")
    if ledger == "memory":
        raise InvalidInput(
            "--ledger is 'memory', which would forget the bill when this command ends; name a file, such as l.db"
        )
    file = ledger.removeprefix("sqlite:///")
    is_new = "://" not in file and not Path(file).exists()
    private = PrivateData(
        existing(data, "data"),
        declared,
        name=name or data.stem,
        target=target,
        n_rows_public=rows,
        budget=Budget(budget, delta),
        neighbours=neighbours or "add-remove",
        ledger=ledger,
        analyst=analyst,
        account=account,
        version=version,
    )
    if is_new:
        print_note(f"Note: {ledger} is a new ledger. If this data was asked about before, use the ledger that knows of it.")
    found = ask_marginals(private, epsilon=epsilon, columns=columns, bins=bins)
    _write(found, private.budget, output, json_output)


def _write(found: Marginals, statement: Statement, output: Path, json_output: Path | None) -> None:
    from ..show import Report, bill_of, bill_section, histograms_section, privacy_label

    bill = bill_of(statement)
    sections = (
        histograms_section(found.histograms(), total=found.total, total_sigma=found.total_sigma),
        bill_section(bill),
    )
    label = privacy_label(bill.guarantee, dataset=found.dataset, bill=bill)
    Report(f"Marginals of {found.dataset}", label, sections).save(output)
    if json_output is not None:
        json_output.write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")
    replayed = found.release is not None and found.release.replayed
    paid = "was stored already and cost nothing" if replayed else f"cost epsilon {found.guarantee.epsilon:.4g}"
    print_line(
        f"The answer {paid}. Spent so far: epsilon {statement.spent_epsilon:.4g} of {statement.budget.epsilon:.4g}; a "
        f"question of up to epsilon {statement.remaining_epsilon:.4g} still fits."
    )
    print_line(f"Each count is within {found.half_width:,.1f} of the true one with probability 95 %.")
    print_line(f"Report: {output}" + ("" if json_output is None else f"\nNumbers: {json_output}"))
