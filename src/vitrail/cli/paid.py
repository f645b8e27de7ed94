"""Commands that ask private rows, for a price: marginals, ask, counterfactual, report, groups, release. And a free quote.

Each says what it buys and what it makes of it (:class:`~vitrail.cli.answering.Order`); the rest is one flow for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from .._checks import choice
from ..accounting.neighbours import is_whole_person, kind_of, rows_per_person_of
from ..errors import InvalidInput
from ..explain.recipe import Conversation, GlobalExplainer, LocalExplainer
from ..results import Attribution
from ..results.counterfactuals import Counterfactuals
from ..results.group_table import GroupTable
from ..results.marginals import Marginals
from ..schema import Level, Numeric, Schema
from . import declarations as options
from .answering import STILL_PAID, Order, account_of, fulfil, print_quote
from .inputs import class_of, one_account, open_existing_ledger, points_of, range_of, weight_of
from .printing import attribution_figure, check_writable, counterfactual_figure, print_lines, print_table, write_file
from .views import viewed_point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..explain.linear.options import MethodName
    from ..explain.quoted import Quoted
    from ..ledger import Statement
    from ..pane.pane import Pane
    from ..pane.pane_recipe import PaneExplainer
    from ..results.class_picture import ClassPicture
    from ..vault import PrivateData

B = TypeVar("B")
A = TypeVar("A")
METHODS = ("auto", "statistics", "descent", "synopsis", "private-rows", "shapley")
PANE = ".pane"


def _itself(bought: A) -> A:
    return bought


# --- histograms ----------------------------------------------------------------------------------------------------------


def _marginals_order(columns: list[str] | None, bins: int) -> Order[Marginals, Marginals]:
    from ..explain.marginals import MarginalsExplainer

    def details(quoted: Quoted[Marginals], explainer: GlobalExplainer[Marginals]) -> None:
        rows, half = quoted.result.n_rows_public, quoted.result.half_width
        lines = [
            (cut.name, str(len(cut)), f"{rows / len(cut):,.0f}", f"± {100 * half * len(cut) / rows:.1f} %")
            for cut in quoted.result.bins
        ]
        print_table(("column", "bins", "rows per bin on average", "band, relative to that"), lines, numeric=(1, 2, 3))

    return Order("the report", lambda data: MarginalsExplainer(data, columns=columns, bins=bins), _itself, details=details)


@options.command
def marginals(
    data: options.DataOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    columns: options.Columns = None,
    bins: options.Bins = 20,
) -> None:
    """Ask for the private histogram of every column."""
    fulfil(_marginals_order(columns, bins), data, price, output)


@options.command
def quote(
    public: options.PublicOptions,
    price: options.PriceOptions,
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA.toml]", help="A declaration; or give its facts as options.")
    ] = None,
    columns: options.Columns = None,
    bins: options.Bins = 20,
    ledger: Annotated[str | None, typer.Option("--ledger", help="Also say whether it fits an account there.")] = None,
    account: options.OnlyAccount = None,
    as_json: options.Json = False,
) -> None:
    """Say what marginals would cost and how wide their noise bands would be. Needs no rows and charges nothing."""
    if ledger is None and account is not None:
        raise InvalidInput("--account names an account of a ledger; give --ledger too")
    known = None
    if ledger is not None:
        with closing(open_existing_ledger(ledger)) as opened:
            known = opened.statement(one_account(opened, account))
        public = _agreed(public, known)
    nobody = options.DataOptions(**vars(public), data=data or Path("quote"))
    if nobody.is_declared and known is None:
        known = account_of(nobody)
    price.check(nobody.declared)
    order = _marginals_order(columns, bins)
    budget = nobody.declared.budget if known is None else known.budget
    print_quote(order, order.explainer(nobody.nobody(budget)), nobody, price, known, as_json=as_json)


def _agreed(public: options.PublicOptions, known: Statement) -> options.PublicOptions:
    """The options with the account's delta, neighbours and unit; an option that says otherwise is refused."""
    relation, most = kind_of(known.neighbours), rows_per_person_of(known.neighbours)
    for option, given, value in (
        ("--delta", public.delta, known.budget.delta),
        ("--neighbours", public.neighbours, relation),
        ("--rows-per-person", public.rows_per_person, most),
    ):
        if given is not None and given != value:
            raise InvalidInput(f"{option} is {given}, but account {known.account!r} has {value}; leave {option} out")
    if (public.person is not None) != is_whole_person(known.neighbours):
        said = "counts rows" if public.person is not None else "counts people once: name the column, --person"
        raise InvalidInput(f"--person is {public.person}, but account {known.account!r} {said}")
    return replace(public, delta=known.budget.delta, neighbours=relation, rows_per_person=most)


# --- points --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _AtPoints(GlobalExplainer[Attribution]):
    """An explainer of points, about these."""

    explainer: LocalExplainer[Attribution]
    points: object

    def conversation(self) -> Conversation[Attribution]:
        return self.explainer.conversation(self.points)


def _picture(figure: Callable[[A], Figure]) -> dict[str, Callable[[A, Path], object]]:
    """What writes a picture of an answer."""
    return {".png": lambda answer, file: figure(answer).savefig(file, dpi=160)}


Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="statistics (sharp, per batch), descent (thousands of features), synopsis or private-rows (paid once, any "
        "point free afterwards), shapley (contributions add up to the output). auto: statistics, or descent.",
    ),
]
WeightName = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="NAME[:NUMBER]",
        help="How rows count by distance: stable, polynomial, exponential:0.3, inverse-quadratic. Not for shapley.",
    ),
]


@options.command
def ask(
    data: options.DataOptions,
    model: options.ModelOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    point: options.Point,
    method: Method = "auto",
    weight: WeightName = None,
    view: Annotated[
        Path | None,
        typer.Option(
            "--view",
            metavar="VIEW.json",
            help="Of texts or pictures, as `vitrail texts` and `vitrail pictures` write it. --point is then a text, a .txt "
            "file, or a picture (.npy).",
        ),
    ] = None,
) -> None:
    """Explain a model's output at public points from private rows, with noise bands, a promise and a bill."""
    from ..explain.linear.local_linear import LocalLinear
    from ..explain.linear.options import Rows
    from ..explain.shapley import Shapley

    choice("--method", method, METHODS)
    if method == "shapley" and weight is not None:
        raise InvalidInput("--weight is for local linear explanations; Shapley values have none: leave it out")
    if view is not None and method not in ("auto", "statistics", "descent"):
        raise InvalidInput(f"--view goes with the methods statistics and descent; --method is {method}")
    chosen, distance = model.load(), weight_of(weight)
    looked, points, draw = (
        (None, points_of(point, data.declared.target), attribution_figure)
        if view is None
        else viewed_point(view, point, data.declared.target)
    )

    def local(rows: PrivateData, name: MethodName = "auto") -> LocalLinear:
        explainer = LocalLinear(rows, chosen, method=name, weight=distance, key=model.key, view=looked)
        explainer.read_points(points)  # what is wrong with them is said, also where the method does not ask about points
        return explainer

    def pay(explainer: Callable[[PrivateData], GlobalExplainer[B]], answer: Callable[[B], Attribution]) -> None:
        order = Order("the explanation", explainer, answer, chosen.name, _picture(draw))
        fulfil(order, data, price, output)

    if method == "synopsis":
        pay(lambda rows: local(rows).fitting(), lambda synopsis: synopsis(points))
    elif method == "private-rows":
        pay(lambda rows: local(rows).fitting(Rows()), lambda fitted: fitted(points))
    elif method == "shapley":
        pay(lambda rows: _AtPoints(Shapley(rows, chosen, key=model.key), points), _itself)
    else:
        pay(lambda rows: _AtPoints(local(rows, method), points), _itself)  # type: ignore[arg-type]  # checked above


# --- what would have changed it ------------------------------------------------------------------------------------------


@options.command
def counterfactual(
    data: options.DataOptions,
    model: options.ModelOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    point: options.Point,
    desired: options.Desired = "opposite",
    desired_range: options.DesiredRange = None,
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
    margin: Annotated[
        float, typer.Option("--margin", help="How far past the border of the class answers must lie, in the model's output.")
    ] = 0.0,
    threshold: Annotated[float, typer.Option("--threshold", help="Outputs of at least this are class 1.")] = 0.5,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the releases, to explain others without the data.")
    ] = None,
) -> None:
    """Say what would have changed a model's answer for public points, from private rows, with a promise and a bill.

    The picture of the classes is paid for once: with a model that is a file, or a --key, other people are free.
    """
    from ..explain.counterfactual import Counterfactual
    from ..solve.counterfactual.fitted import FittedCounterfactual

    if save is not None:
        check_writable(save, "the counterfactual")
    chosen, people = model.load(), points_of(point, data.declared.target)

    def keep(picture: ClassPicture) -> None:
        if save is not None:
            write_file(save, FittedCounterfactual(picture, chosen).save, "the counterfactual", STILL_PAID)

    def search(picture: ClassPicture) -> Counterfactuals:
        return FittedCounterfactual(picture, chosen)(
            people,
            desired_class=class_of(desired),
            desired=range_of(desired_range),
            total_CFs=total,
            features_to_vary=vary or "all",
            permitted_range=_ranges(picture.schema, permit or ()),
            margin=margin,
        )

    def explainer(rows: PrivateData) -> Counterfactual:
        return Counterfactual(rows, chosen, threshold=threshold, key=model.key)

    order = Order("the explanation", explainer, search, chosen.name, _picture(counterfactual_figure), keep)
    fulfil(order, data, price, output)


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


# --- whole models --------------------------------------------------------------------------------------------------------


@options.command
def report(
    data: options.DataOptions,
    model: options.ModelOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    columns: options.Columns = None,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--parts", metavar="PART", help="pdp, ale, importance or shap; may be repeated. All but shap if not given."
        ),
    ] = None,
    loss: options.Loss = "squared",
    sampling_rate: options.SamplingRate = 1.0,
) -> None:
    """Explain a whole model from private rows: importance, partial dependence, accumulated effects, one price, one page."""
    from ..explain.global_report import GlobalReport

    chosen = model.load()

    def explainer(rows: PrivateData) -> GlobalReport:
        return GlobalReport(
            rows,
            chosen,
            columns=columns,
            parts=parts,  # type: ignore[arg-type]  # unknown names are refused there
            loss=loss,
            sampling_rate=sampling_rate,
            key=model.key,
        )

    fulfil(Order("the report", explainer, _itself, chosen.name), data, price, output)


@options.command
def groups(
    data: options.DataOptions,
    model: options.ModelOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    by: Annotated[
        list[str], typer.Option("--by", metavar="COLUMN", help="The column that tells groups apart; twice to cross two.")
    ],
    edges: Annotated[
        list[str] | None,
        typer.Option("--edges", metavar="COLUMN=NUMBERS", help="Where a number is cut: age=30,60. May be repeated."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="From which output on a row is selected; the middle of the range if not given."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option("--positive", metavar="LEVEL", help="The level of the target that is the outcome.")
    ] = None,
    outcome_threshold: Annotated[
        float | None, typer.Option("--outcome-threshold", help="From which number on the target is the outcome.")
    ] = None,
) -> None:
    """Say what a model does by declared group: selection and error rates, calibration, differences, with noise bands."""
    from ..explain.group_report import GroupReport

    chosen = model.load()

    def explainer(rows: PrivateData) -> GroupReport:
        return GroupReport(
            rows,
            chosen,
            by=by,
            edges=_edges(edges),
            threshold=threshold,
            positive=None if positive is None else _level_of(rows, positive),
            outcome_threshold=outcome_threshold,
            key=model.key,
        )

    fulfil(Order("the report", explainer, _itself, chosen.name, _picture(GroupTable.plot)), data, price, output)


def _level_of(rows: PrivateData, text: str) -> Level:
    """The level of the target that a word on the command line names; the word itself if there is none."""
    column = None if rows.target is None else rows.schema[rows.target]
    levels = () if column is None or isinstance(column, Numeric) else column.levels
    return next((level for level in levels if str(level) == text), text)


def _edges(given: Sequence[str] | None) -> dict[str, list[float]] | None:
    try:
        pairs = [text.partition("=") for text in given or ()]
        return {name: [float(edge) for edge in numbers.split(",")] for name, _, numbers in pairs} or None
    except ValueError as error:
        raise InvalidInput(f"--edges is {given!r}; write a column and where it is cut, as in age=30,60") from error


@options.command
def release(
    data: options.DataOptions,
    model: options.ModelsOptions,
    price: options.PriceOptions,
    output: options.OutputOptions,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--parts",
            metavar="PART",
            help="rows, local, effects (or pdp, ale), importance, counterfactual; may be repeated. Rows, effects and "
            "importance if not given; where rows are impossible, counterfactual instead of them.",
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weight", metavar="PART=NUMBER", help="A part's weight in the price, as in local=3; may be repeated."
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="From which output on a row is of class 1, for counterfactuals.")
    ] = None,
    loss: options.Loss = "squared",
    embed_model: Annotated[
        bool, typer.Option("--embed-model", help="Write the model into the pane too (ONNX models only).")
    ] = False,
    sampling_rate: Annotated[float | None, typer.Option("--sampling-rate", help=options.SAMPLING_HELP)] = None,
    pane_version: Annotated[
        str | None, typer.Option("--pane-version", metavar="TEXT", help="What you call this pane, such as 2026-Q4.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="YYYY-MM-DD", help="The last day it is meant to be used; it warns afterwards."),
    ] = None,
) -> None:
    """Pay once for a pane: a file of private releases that explains models anywhere, for ever, without the data.

    Without --model it holds private rows alone, which explain any model.
    """
    from ..pane.pane_recipe import PaneExplainer

    if not any(file.suffix.lower() == PANE for file in output.files or ()) and not price.only_quoted:
        given = "is missing" if not output.files else f"is {str(output.files[0])!r}"
        raise InvalidInput(f"--output-file {given}; name the file of the pane, which must end in {PANE}")
    chosen, declared = model.load(), data.declared
    version = _declared_or("--pane-version", pane_version, declared.pane_version, data.data.name)
    rate = _declared_or("--sampling-rate", sampling_rate, declared.pane_sampling_rate, data.data.name)
    day = _declared_or("--expires", expires, declared.pane_expires, data.data.name)

    def explainer(rows: PrivateData) -> PaneExplainer:
        return PaneExplainer(
            rows,
            chosen,
            parts=parts or "all",  # type: ignore[arg-type]  # unknown names are refused there
            weights=_weights(weights),
            threshold=threshold,
            loss=loss,
            embed_model=embed_model,
            sampling_rate=1.0 if rate is None else rate,
            key=model.key,
            version="1" if version is None else version,
            expires=day,
            page=declared.page,
        )

    writers: dict[str, Callable[[Pane, Path], object]] = {PANE: lambda made, file: made.save(file)}
    fulfil(Order("the pane", explainer, _itself, writers=writers, details=_print_pane_quote), data, price, output)


def _declared_or(option: str, given: B | None, declared: B | None, file: str) -> B | None:
    """What an option says, or the declaration; not both."""
    if given is not None and declared is not None:
        raise InvalidInput(f"{option} is given, and {file} declares it in [pane]; leave the option out, or change the file")
    return declared if given is None else given


def _print_pane_quote(quoted: Quoted[Pane], explainer: GlobalExplainer[Pane]) -> None:
    from ..pane.pane_recipe import PaneExplainer

    assert isinstance(explainer, PaneExplainer)
    for part, share in explainer.shares(quoted.price.cost.mu).items():
        print_lines(f"{part}: {100 * share:.1f} % of the price")
    for title, accuracy in quoted.result.accuracy().items():
        print_lines(f"{title}: {accuracy}")


def _weights(given: list[str] | None) -> dict[str, float] | None:
    try:
        return {part: float(number) for part, _, number in (text.partition("=") for text in given or ())} or None
    except ValueError as error:
        raise InvalidInput(f"--weight is {given!r}; write a part and a number, as in local=3") from error
