"""`vitrail quote` and `vitrail marginals`: the price tag of the first question about a dataset, and the question."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..accounting import JsonValue, rounded_up
from ..errors import InvalidInput
from ..guarantee import Budget, check_epsilon_delta
from ..results.band_claim import TWO_SIDED_95, claim_of
from ..schema import Schema
from . import options
from .account import bill_line, declared_of, fits_line
from .output import check_writable, existing, one_account, open_existing_ledger, print_json, print_line, print_table

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..results.marginals import Marginals
    from ..vault import Quote


def quote(
    schema: options.Schema,
    epsilon: options.Epsilon,
    rows: options.Rows,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help=f"The account's delta; {options.DEFAULT_DELTA} if not given.", show_default=False),
    ] = None,
    target: options.Target = None,
    neighbours: options.Neighbours = None,
    columns: options.Columns = None,
    bins: options.Bins = 20,
    ledger: Annotated[str | None, typer.Option("--ledger", help="Also say whether it fits an account there.")] = None,
    account: Annotated[str | None, typer.Option("--account", metavar="NAME", help="Which account.")] = None,
    as_json: options.Json = False,
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
    half, sure = TWO_SIDED_95 * found.sigma, claim_of("marginals").probability
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
        f"Marginals of {len(made)} columns with {sum(map(len, made))} bins cost epsilon {rounded_up(promise.epsilon)} "
        f"at delta {rounded_up(promise.delta)} (mu {rounded_up(promise.mu)}, neighbours {promise.neighbours})."
    )
    print_line(f"Each count would be within {half:,.1f} of the true one {sure}: {100 * half / rows:.2f} % of {rows:,} rows.")
    if statement is not None:
        print_line(fits_line(bool(fits), statement))
    print_line()
    lines = [(one.name, str(len(one)), f"{rows / len(one):,.0f}", f"± {100 * half * len(one) / rows:.1f} %") for one in made]
    print_table(("column", "bins", "rows per bin on average", "band, relative to that"), lines, numeric=(1, 2, 3))


def _statement(ledger: str, account: str | None) -> Statement:
    with closing(open_existing_ledger(ledger)) as opened:
        return opened.statement(one_account(opened, account))


def _terms(statement: Statement | None, epsilon: float, delta: float | None, neighbours: str | None) -> tuple[Budget, str]:
    """The budget and neighbour relation that prices are stated for: the account's, or those on the command line."""
    if statement is None:
        delta = options.DEFAULT_DELTA if delta is None else delta
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
    data = PrivateData(
        nobody,
        schema,
        name="quote",
        target=target,
        n_rows_public=rows,
        budget=budget,
        neighbours=neighbours,
        ledger="memory",
    )
    return data.quote(marginals_question(schema, columns, bins), epsilon=epsilon)


def marginals(
    data: options.Data,
    schema: options.Schema,
    rows: options.Rows,
    epsilon: options.Epsilon,
    budget: options.Budget,
    ledger: options.Ledger,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="R.html", help="Where to write the report.")],
    delta: options.Delta = options.DEFAULT_DELTA,
    target: options.Target = None,
    neighbours: options.Neighbours = None,
    columns: options.Columns = None,
    bins: options.Bins = 20,
    name: options.Name = None,
    account: options.Account = None,
    analyst: options.Analyst = "owner",
    version: options.Version = "1",
    json_output: Annotated[
        Path | None, typer.Option("--json", metavar="M.json", help="Also write the numbers as JSON.")
    ] = None,
) -> None:
    """Ask for the private histogram of every column, and write a report."""
    from ..explain.marginals import marginals as ask_marginals
    from ..explain.marginals import marginals_bins

    check_epsilon_delta(epsilon, delta, "a question")
    check_writable(output, "the report")
    if json_output is not None:
        check_writable(json_output, "the JSON file")
    declared = declared_of(data, schema, rows, budget, delta, ledger, target, neighbours, name, account, analyst, version)
    marginals_bins(declared.schema, columns, bins)
    private = declared.opened()
    found = ask_marginals(private, epsilon=epsilon, columns=columns, bins=bins)
    _write(found, private.budget, output, json_output)


def _write(found: Marginals, statement: Statement, output: Path, json_output: Path | None) -> None:
    found.to_html(output, statement.bill())
    if json_output is not None:
        json_output.write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")
    replayed = found.release is not None and found.release.replayed
    print_line(bill_line(statement, found.cost, replayed=replayed))
    sure = claim_of("marginals").probability
    print_line(f"Each count is within {found.half_width:,.1f} of the true one {sure}.")
    print_line(f"Report: {output}" + ("" if json_output is None else f"\nNumbers: {json_output}"))
