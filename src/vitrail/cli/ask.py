"""`vitrail ask`: why a model says what it says at a point, from private rows, for a price that is known before.

Everything public (schema, model, points, options, files to write) is read and tried before the ledger is opened, so that a
mistake costs nothing. The price is paid in one batch for all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..accounting import Cost, JsonValue, rounded_up
from ..errors import InvalidInput, ModelError
from ..guarantee import Guarantee, check_epsilon_delta, check_neighbours, question_mu
from ..model import Model
from ..results import Attribution
from ..results.band_claim import BandClaim, claim_of
from ..schema import Schema
from ..schema.reading import did_you_mean
from . import options
from .account import charged_since, declared_of, fits_line, with_notes
from .ask_input import model_of, points_of, weight_of
from .ask_output import SUFFIXES, Answer, print_answer, write_answer
from .output import check_files, print_json, print_line, print_written

if TYPE_CHECKING:
    from ..explain.linear.local_linear import LocalLinear
    from ..explain.linear.options import MethodName
    from ..ledger import Statement
    from ..solve.linear.weights import Weight
    from ..vault import PrivateData

METHODS = ("auto", "statistics", "descent", "synopsis", "private-rows", "shapley")
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

    @property
    def band_claim(self) -> BandClaim:
        """What its bands will claim."""
        return claim_of("shapley" if self.method == "shapley" else "local linear")

    def explain(self, data: PrivateData) -> Attribution:
        """Pay, and explain."""
        from ..explain.linear.options import Rows
        from ..explain.shapley import Shapley

        if self.method == "shapley":
            return Shapley(data, self.model, key=self.key)(self.points, epsilon=self.epsilon)
        local = self._local(data)
        if self.method == "synopsis":
            return local.fit(epsilon=self.epsilon)(self.points)
        if self.method == "private-rows":
            return local.fit(epsilon=self.epsilon, kind=Rows(replicates=REPLICATES))(self.points)
        return local(self.points, epsilon=self.epsilon)

    def _local(self, data: PrivateData) -> LocalLinear:
        from ..explain.linear.local_linear import LocalLinear

        method: MethodName = "descent" if self.method == "descent" else "statistics"
        return LocalLinear(data, self.model, method=method, weight=self.weight, key=self.key)

    def price(self, data: PrivateData) -> tuple[Cost, float | None]:
        """What would be charged, and half the expected width of a band where that can be told beforehand."""
        from ..explain.shapley import Shapley

        if self.method == "shapley":
            exact = Shapley(data, self.model, key=self.key).quote(self.points, epsilon=self.epsilon)
            return exact.price.cost, exact.half_width
        if self.method == "statistics":
            local = self._local(data).quote(self.points, epsilon=self.epsilon)
            return local.price.cost, local.half_width
        return Cost.of_mu(question_mu(self.epsilon, None, data.delta)), None


def ask(
    data: options.Data,
    schema: options.Schema,
    model: options.Model,
    point: options.Point,
    rows: options.Rows,
    epsilon: options.Epsilon,
    budget: options.Budget,
    ledger: options.Ledger,
    files: options.PictureFiles = None,
    output: options.ModelOutput = None,
    bounds: options.Range = None,
    inputs: options.Inputs = "auto",
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
    """Explain a model's output at public points from private rows, with noise bands, a promise and a bill."""
    check_epsilon_delta(epsilon, delta, "a question")
    check_files(files, SUFFIXES, "the explanation")
    declared = declared_of(data, schema, rows, budget, delta, ledger, target, neighbours, name, account, analyst, version)
    rehearsal = declared.rehearsal()
    chosen = model_of(model, output=output, bounds=bounds, inputs=inputs)
    asked = _checked(rehearsal.feature_schema, chosen, points_of(point, target), method, weight, key, epsilon)
    if quote:
        _print_quote(asked, rehearsal, declared.statement(rehearsal.budget), as_json)
        return
    private = declared.opened()
    last = max(entry.seq for entry in private.budget.entries)
    found = with_notes(lambda: asked.explain(private))
    after = private.budget
    answer = Answer(found, after, declared.name, chosen.name, replayed=not charged_since(after, last))
    write_answer(answer, files)
    if as_json:
        print_json(found.to_json())
    elif files:
        print_line(answer.bill_line)
        print_written(files)
    else:
        print_answer(answer)


def _checked(
    schema: Schema, model: Model, points: object, method: str, weight: str | None, key: str | None, epsilon: float
) -> Asked:
    """Try model and points on public rows. The schema is that of the features, without the target."""
    from ..explain.linear.local_linear import MOST_FEATURES

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
            "band_claim": asked.band_claim.value,
            "fits": fits,
            "remaining_epsilon": statement.remaining_epsilon,
        }
        print_json(fields)
        return
    points = "1 point" if asked.n_points == 1 else f"{asked.n_points} points together"
    print_line(
        f"Explaining {points} by method {asked.method} costs epsilon {rounded_up(promise.epsilon)} at delta "
        f"{rounded_up(promise.delta)} (mu {rounded_up(promise.mu)}, neighbours {promise.neighbours})."
    )
    if half_width is None:
        print_line(f"How wide the bands would be is not known beforehand with method {asked.method}.")
    else:
        guess = " That is an estimate from public stand-in rows." if asked.method == "statistics" else ""
        print_line(
            f"Each contribution would have a {asked.band_claim.band} of about ± {half_width:.2g}, where outputs lie in "
            f"[{asked.model.lo:g}, {asked.model.hi:g}].{guess}"
        )
    print_line(fits_line(fits, statement))
