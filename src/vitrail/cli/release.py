"""`vitrail release`: pay once for a pane, a file that explains the model for ever without the data.

Everything public is tried before the account is opened; the library refuses all parts together before the first charge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInput
from ..guarantee import check_epsilon_delta
from . import options
from .account import bill_line, charged_since, declared_of, fits_line, with_notes
from .ask_input import model_of
from .output import check_writable, print_json, print_line

SUFFIX = ".pane"


def release(
    data: options.Data,
    schema: options.Schema,
    model: options.Model,
    rows: options.Rows,
    epsilon: options.Epsilon,
    file: Annotated[Path, typer.Option("--output-file", "-o", metavar="X.pane", help="Where to write the pane.")],
    budget: Annotated[
        float | None, typer.Option("--budget", help="The account's whole epsilon, for ever; that of the pane if not given.")
    ] = None,
    ledger: options.Ledger = "ledger.db",
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--parts",
            metavar="PART",
            help="rows, local, effects (or pdp, ale), importance, counterfactual; may be repeated. All that is possible if "
            "not given.",
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weight", metavar="PART=NUMBER", help="A part's weight in the price, as in local=3; may be repeated."
        ),
    ] = None,
    output: options.ModelOutput = None,
    bounds: options.Range = None,
    inputs: options.Inputs = "auto",
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="From which output on a row is of class 1, for counterfactuals.")
    ] = None,
    loss: options.Loss = "squared",
    embed_model: Annotated[
        bool, typer.Option("--embed-model", help="Write the model into the pane too (ONNX models only).")
    ] = False,
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
    """Pay once for a pane: a file of private releases that explains the model anywhere, for ever, without the data."""
    from ..pane.pane_recipe import PaneExplainer
    from ..vault import PrivateData

    check_epsilon_delta(epsilon, delta, "a question")
    if file.suffix.lower() != SUFFIX:
        raise InvalidInput(f"--output-file is {str(file)!r}; its name must end in {SUFFIX}")
    check_writable(file, "the pane")
    declared = declared_of(
        data,
        schema,
        rows,
        epsilon if budget is None else budget,
        delta,
        ledger,
        target,
        neighbours,
        name,
        account,
        analyst,
        version,
    )
    rehearsal = declared.rehearsal()
    chosen = model_of(model, output=output, bounds=bounds, inputs=inputs)

    def explainer(rows_of: PrivateData) -> PaneExplainer:
        return PaneExplainer(
            rows_of,
            chosen,
            parts=parts or "all",  # type: ignore[arg-type]  # checked there
            weights=_weights(weights),
            threshold=threshold,
            loss=loss,
            embed_model=embed_model,
            key=key,
        )

    tried = explainer(rehearsal)
    if quote:
        tag = tried.quote(epsilon=epsilon)
        statement = declared.statement(rehearsal.budget)
        fits = statement.spent + tag.price.cost <= statement.capacity
        if as_json:
            print_json({**tag.to_json(), "price": {**tag.price.to_json(), "fits": fits}})
            return
        for title, accuracy in tag.result.accuracy().items():
            print_line(f"{title}: {accuracy}")
        print_line(fits_line(fits, statement))
        return
    private = declared.opened()
    last = max(entry.seq for entry in private.budget.entries)
    pane = with_notes(lambda: explainer(private)(epsilon=epsilon))
    pane.save(file)
    after = private.budget
    if as_json:
        print_json({"file": str(file), "parts": list(pane.parts), "guarantee": pane.guarantee.to_json()})
        return
    print_line(repr(pane))
    print_line(bill_line(after, pane.cost, replayed=not charged_since(after, last)))
    print_line(f"Written: {file} ({file.stat().st_size / 1024:.0f} KiB). `vitrail show {file}` says what is inside.")


def _weights(given: list[str] | None) -> dict[str, float] | None:
    if not given:
        return None
    found: dict[str, float] = {}
    for text in given:
        part, equals, number = text.partition("=")
        try:
            found[part] = float(number)
        except ValueError as error:
            raise InvalidInput(f"--weight is {text!r}; write a part and a number, as in local=3") from error
        if not equals:
            raise InvalidInput(f"--weight is {text!r}; write a part and a number, as in local=3")
    return found
