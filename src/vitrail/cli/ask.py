"""`vitrail ask`: why a model says what it says at a point, from private rows, for a price that is known before.

Everything public (schema, model, points, options, files to write) is read and tried before the ledger is opened, so that a
mistake costs nothing. The price is paid in one batch for all points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput, LedgerError, ModelError
from ..explanation import Explanation
from ..guarantee import Budget, Guarantee, check_epsilon_delta, check_neighbours, question_mu
from ..model import Model
from ..schema import Schema
from ..schema.reading import did_you_mean
from .ask_input import model_of, points_of, private_rows_of, weight_of
from .ask_output import Answer, check_files, print_answer, write_files
from .marginals import DEFAULT_DELTA, EpsilonOption, NeighboursOption, RowsOption, SchemaOption, TargetOption
from .output import existing, open_existing_ledger, print_json, print_line, print_note

if TYPE_CHECKING:
    from ..explain.linear.weights import Weight
    from ..ledger import Statement
    from ..vault import PrivateData

METHODS = ("auto", "statistics", "descent", "synopsis", "private-rows", "shapley")
PACKAGE = Path(__file__).resolve().parents[1]
REPLICATES = 8
"""Samples that the bands of private rows are computed from."""


@dataclass(frozen=True)
class Asked:
    """One question, read and tried on public input."""

    schema: Schema
    model: Model
    points: object
    n_points: int
    method: str
    weight: Weight | None
    key: str | None
    epsilon: float

    def explain(self, data: PrivateData) -> Explanation:
        """Pay, and explain."""
        from ..explain.linear.local import LocalLinear
        from ..explain.shapley import Shapley

        if self.method == "shapley":
            return Shapley(data, self.model, key=self.key)(self.points, epsilon=self.epsilon)
        local = LocalLinear(data, self.model, weight=self.weight)
        if self.method == "synopsis":
            return local.fit(epsilon=self.epsilon, key=self.key)(self.points)
        if self.method == "private-rows":
            return local.fit(epsilon=self.epsilon, kind="rows", key=self.key, replicates=REPLICATES)(self.points)
        return local(self.points, epsilon=self.epsilon, method=self.method, key=self.key)

    def price(self, data: PrivateData) -> tuple[Cost, float | None]:
        """What would be charged, and half the expected width of a band where that can be told beforehand."""
        from ..explain.linear.local import LocalLinear
        from ..explain.shapley import Shapley

        if self.method == "shapley":
            exact = Shapley(data, self.model, key=self.key).quote(self.points, epsilon=self.epsilon)
            return exact.cost, exact.half_width
        if self.method == "statistics":
            local = LocalLinear(data, self.model, weight=self.weight).quote(self.points, epsilon=self.epsilon)
            return local.price.cost, local.half_width
        return Cost.of_mu(question_mu(self.epsilon, None, data.delta)), None


def ask(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A Parquet file, a folder of them, or a CSV file with one row per line.")
    ],
    schema: SchemaOption,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="M.onnx",
            help="An ONNX file. Or module:attribute, a model or function in Python: importing it RUNS that code. Pickles "
            "are refused, because opening one runs code that nobody sees.",
        ),
    ],
    point: Annotated[
        str,
        typer.Option(
            "--point",
            metavar="POINT",
            help="What to explain, public: JSON (an object, or a list of them), - for standard input, or a .json, .csv or "
            ".parquet file. Several points are one batch and share the price.",
        ),
    ],
    rows: RowsOption,
    epsilon: EpsilonOption,
    budget: Annotated[float, typer.Option("--budget", help="The account's whole epsilon, for ever.")],
    ledger: Annotated[str, typer.Option("--ledger", help="Where the bill is kept: a path ending in .db, or a URL.")],
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--output-file",
            "-o",
            metavar="E.html",
            help="Where to write it: .html, .png or .json; may be repeated. On the screen if not given.",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="CLASS", help="Which class or column of the model's output.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="LOW HIGH", help="Where the outputs lie, if they are no probabilities."),
    ] = None,
    inputs: Annotated[
        str,
        typer.Option("--inputs", help="What the model takes: features in [0, 1], values, frame, category-frame."),
    ] = "auto",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="statistics (sharp, per batch), descent (thousands of features), synopsis or private-rows (paid once, any "
            "point free afterwards), shapley (contributions add up to the output). auto: statistics, or descent.",
        ),
    ] = "auto",
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="NAME[:NUMBER]",
            help="How rows count by distance: stable, polynomial, exponential:0.3, inverse-quadratic. Not for shapley.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="A name for a model that is a Python function: asking again then costs nothing."),
    ] = None,
    quote: Annotated[
        bool, typer.Option("--quote", help="Only say what it would cost and how wide the bands would be. Free.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    delta: Annotated[float, typer.Option("--delta", help="The account's delta.")] = DEFAULT_DELTA,
    target: TargetOption = None,
    neighbours: NeighboursOption = None,
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name; the file's if not given.")] = None,
    account: Annotated[str | None, typer.Option("--account", help="Who pays; the dataset's name if not given.")] = None,
    analyst: Annotated[str, typer.Option("--analyst", help="Who asks.")] = "owner",
    version: Annotated[
        str, typer.Option("--data-version", help="Change it when the rows change: old answers are then not replayed.")
    ] = "1",
) -> None:
    """Explain a model's output at public points from private rows, with noise bands, a promise and a bill."""
    from ..vault import PrivateData

    whole = Budget(budget, delta)
    check_epsilon_delta(epsilon, delta, "a question")
    check_files(files or ())
    if ledger == "memory":
        raise InvalidInput(
            "--ledger is 'memory', which would forget the bill when this command ends; name a file, such as l.db"
        )
    declared = Schema.load(existing(schema, "schema"))
    dataset = name or data.stem

    def opened(source: object, where: str | None) -> PrivateData:
        return PrivateData(
            source,
            declared,
            name=dataset,
            target=target,
            n_rows_public=rows,
            budget=whole,
            neighbours=neighbours or "add-remove",
            ledger=where,
            analyst=analyst,
            account=account,
            version=version,
        )

    # On no rows and a ledger that is forgotten: whatever is wrong with the options is found here.
    rehearsal = opened({column: [] for column in declared}, None)
    chosen = model_of(model, output=output, bounds=bounds, inputs=inputs)
    asked = _checked(rehearsal.feature_schema, chosen, points_of(point, target), method, weight, key, epsilon)
    is_new = _is_new(ledger)
    if quote:
        statement = None if is_new else _account_now(ledger, account or dataset, rehearsal.budget)
        _print_quote(asked, rehearsal, statement or rehearsal.budget, as_json)
        return
    source = private_rows_of(data, declared)
    if is_new:
        print_note(f"Note: {ledger} is a new ledger. If this data was asked about before, use the ledger that knows of it.")
    private = opened(source, ledger)
    last = max(entry.seq for entry in private.budget.entries)
    found = _with_notes(lambda: asked.explain(private))
    after = private.budget
    charged = any(entry.kind == "charged" and entry.seq > last for entry in after.entries)
    answer = Answer(found, after, dataset, chosen.name, replayed=not charged)
    write_files(answer, files or ())
    if as_json:
        print_json(found.to_json())
    elif files:
        print_line(answer.bill_line)
        print_line("Written: " + ", ".join(map(str, files)))
    else:
        print_answer(answer)


def _checked(
    schema: Schema, model: Model, points: object, method: str, weight: str | None, key: str | None, epsilon: float
) -> Asked:
    """Try model and points on public rows. The schema is that of the features, without the target."""
    from ..explain.linear.local import MOST_FEATURES

    if method not in METHODS:
        raise InvalidInput(f"--method is {method!r}; choose one of {', '.join(METHODS)}.{did_you_mean(method, METHODS)}")
    if method == "shapley" and weight is not None:
        raise InvalidInput("--weight is for local linear explanations; Shapley values have none: leave it out")
    if method == "auto":
        method = "statistics" if schema.n_features <= MOST_FEATURES else "descent"
    raw = schema.read_points(points)
    if len(raw) == 0:
        raise InvalidInput("there are no points to explain; give at least one")
    model.check(schema)
    outputs = model.predict_points(schema, raw)
    if not np.isfinite(outputs).all():
        raise ModelError(f"{model.name} returns no finite number at point {int(np.argmin(np.isfinite(outputs)))}")
    return Asked(schema, model, points, len(raw), method, weight_of(weight), key, epsilon)


def _with_notes(explain: Callable[[], Explanation]) -> Explanation:
    """Explain; what the library warns of becomes a note. Other packages' warnings are dropped: they may be about rows."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = explain()
    ours = [one for one in seen if Path(one.filename).is_relative_to(PACKAGE)]
    for text in dict.fromkeys(str(one.message) for one in ours if one.category is UserWarning):
        print_note(f"Note: {text}")
    return found


def _is_new(ledger: str) -> bool:
    file = ledger.removeprefix("sqlite:///")
    return "://" not in file and not Path(file).exists()


def _account_now(ledger: str, account: str, expected: Statement) -> Statement | None:
    """The account as it stands, if it was opened already: a quote opens none."""
    with closing(open_existing_ledger(ledger)) as opened:
        if account not in opened.accounts():
            return None
        found = opened.statement(account)
    if (found.budget, found.neighbours) != (expected.budget, expected.neighbours):
        raise LedgerError(
            f"Account {account!r} has {found.budget} and neighbours {found.neighbours!r}; the options say {expected.budget} "
            f"and {expected.neighbours!r}. A budget never changes once it is set: give the account's own values."
        )
    return found


def _print_quote(asked: Asked, data: PrivateData, statement: Statement, as_json: bool) -> None:
    cost, half_width = asked.price(data)
    promise = Guarantee.of_mu(cost.mu, data.delta, check_neighbours(data.neighbours))
    fits = statement.spent + cost <= statement.capacity
    if as_json:
        fields: dict[str, JsonValue] = {
            "method": asked.method,
            "n_points": asked.n_points,
            "pico_mu_squared": cost.pico_mu_squared,
            "guarantee": promise.to_json(),
            "half_width": half_width,
            "fits": fits,
            "remaining_epsilon": statement.remaining_epsilon,
        }
        print_json(fields)
        return
    points = "1 point" if asked.n_points == 1 else f"{asked.n_points} points together"
    print_line(
        f"Explaining {points} by method {asked.method} costs epsilon {promise.epsilon:.4g} at delta {promise.delta:.3g} "
        f"(mu {promise.mu:.4g}, neighbours {promise.neighbours})."
    )
    if half_width is None:
        print_line(f"How wide the bands would be is not known beforehand with method {asked.method}.")
    else:
        guess = " That is an estimate from public stand-in rows." if asked.method == "statistics" else ""
        print_line(
            f"Each contribution would have a 95 % band of about ± {half_width:.2g}, where outputs lie in "
            f"[{asked.model.lo:g}, {asked.model.hi:g}].{guess}"
        )
    print_line(
        f"It {'fits' if fits else 'does not fit'}: the largest question that account {statement.account!r} can still pay "
        f"for is epsilon {statement.remaining_epsilon:.4g}. Nothing was charged."
    )
