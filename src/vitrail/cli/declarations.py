"""What commands are told, declared once: groups of options, and a decorator that gives a command the groups it names.

A group is a frozen dataclass whose fields are typer options. :func:`command` flattens the groups among a function's
parameters for typer, which makes ``--help`` of them, and puts them together again when the command is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from ..accounting.guarantee import Budget, check_epsilon_delta
from ..errors import InvalidInput
from ..schema import Schema
from .inputs import existing, model_of

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..model import Model
    from ..vault import PrivateData

DEFAULT_DELTA = 1e-6
DEFAULT_NEIGHBOURS = "add-remove"


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer takes it: every parameter that is a group of options becomes the options of that group."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type] = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))
            continue
        declared = get_type_hints(group := groups[parameter.name], include_extras=True)
        parameters += [option.replace(annotation=declared[name]) for name, option in signature(group).parameters.items()]

    def called(**given: object) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return called


# --- whose rows, who pays ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PublicOptions:
    """What is public about a dataset: enough for a quote."""

    schema: Annotated[Path, typer.Option("--schema", metavar="S.json", help="The declared columns.")]
    rows: Annotated[int, typer.Option("--rows", min=1, help="The public row count. Declared, never counted.")]
    target: Annotated[str | None, typer.Option("--target", help="The column to predict.")] = None
    delta: Annotated[
        float | None,
        typer.Option("--delta", help=f"The account's delta; {DEFAULT_DELTA} if not given.", show_default=False),
    ] = None
    neighbours: Annotated[
        str | None, typer.Option("--neighbours", help="add-remove (the default) or replace-one.", show_default=False)
    ] = None

    def read_schema(self) -> Schema:
        """The schema in the file."""
        return Schema.load(existing(self.schema, "schema"))

    @property
    def delta_or_default(self) -> float:
        """The delta that holds."""
        return DEFAULT_DELTA if self.delta is None else self.delta


@dataclass(frozen=True, kw_only=True)
class DataOptions(PublicOptions):
    """Private rows, what is public about them, and the account that pays."""

    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A Parquet file, a folder of them, or a CSV file with one row per line.")
    ]
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", help="The account's whole epsilon, for ever. Of a new account: this question's, if not given."
        ),
    ] = None
    ledger: Annotated[str, typer.Option("--ledger", help="Where the bill is kept: a path ending in .db, or a URL.")] = (
        "ledger.db"
    )
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name; the file's if not given.")] = None
    account: Annotated[str | None, typer.Option("--account", help="Who pays; the dataset's name if not given.")] = None
    analyst: Annotated[str, typer.Option("--analyst", help="Who asks.")] = "owner"
    version: Annotated[
        str, typer.Option("--data-version", help="Change it when the rows change: old answers are then not replayed.")
    ] = "1"

    def __post_init__(self) -> None:
        if self.ledger == "memory":
            raise InvalidInput(
                "--ledger is 'memory', which would forget the bill when this command ends; name a file, such as l.db"
            )

    @property
    def dataset(self) -> str:
        """The dataset's name."""
        return self.name or self.data.stem

    @property
    def ledger_is_new(self) -> bool:
        """Whether the ledger is a file that is not there yet."""
        file = self.ledger.removeprefix("sqlite:///")
        return "://" not in file and not Path(file).exists()

    def total(self, price: PriceOptions, known: Statement | None) -> Budget:
        """The account's budget: as given, else as the account has it, else for this one question."""
        if known is not None and self.budget is None and self.delta is None:
            return known.budget
        epsilon = price.epsilon if self.budget is None else self.budget
        if epsilon is None:
            raise InvalidInput("--budget is missing: without --epsilon nothing says how large the account is; give it")
        return Budget(epsilon, self.delta_or_default)

    def private_data(self, rows: object, schema: Schema, budget: Budget, ledger: str) -> PrivateData:
        """The dataset with these rows and this ledger."""
        from ..vault import PrivateData

        return PrivateData(
            rows,
            schema,
            name=self.dataset,
            target=self.target,
            n_rows_public=self.rows,
            budget=budget,
            neighbours=self.neighbours or DEFAULT_NEIGHBOURS,
            ledger=ledger,
            analyst=self.analyst,
            account=self.account,
            version=self.version,
        )


@dataclass(frozen=True, kw_only=True)
class PriceOptions:
    """What a question may cost, or what is only to be said about that."""

    epsilon: Annotated[float | None, typer.Option("--epsilon", help="What this question may cost.")] = None
    half_width: Annotated[
        float | None,
        typer.Option("--half-width", help="Instead of a price: only say what bands this narrow would cost. Free."),
    ] = None
    verdict: Annotated[
        str | None,
        typer.Option("--verdict", help="Instead of a price: only say what a clear (or weak) answer would cost. Free."),
    ] = None
    quote: Annotated[
        bool, typer.Option("--quote", help="Only say what it would cost and how wide the bands would be. Free.")
    ] = False

    @property
    def only_quoted(self) -> bool:
        """Whether nothing is to be paid."""
        return self.quote or self.half_width is not None or self.verdict is not None

    def check(self, delta: float) -> None:
        """Refuse a price that is none."""
        if sum(given is not None for given in (self.epsilon, self.half_width, self.verdict)) != 1:
            raise InvalidInput(
                "give either --epsilon, the price, or --half-width, an accuracy whose price is told, or --verdict, which is "
                "told as well"
            )
        if self.epsilon is not None:
            check_epsilon_delta(self.epsilon, delta, "a question")


# --- which model ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a model is read."""

    output: Annotated[
        str | None, typer.Option("--output", metavar="CLASS", help="Which class or column of the model's output.")
    ] = None
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="LOW HIGH", help="Where the outputs lie, if they are no probabilities."),
    ] = None
    inputs: Annotated[
        str, typer.Option("--inputs", help="What the model takes: features in [0, 1], values, frame, category-frame.")
    ] = "auto"

    @property
    def given(self) -> bool:
        """Whether anything is said about it."""
        return self.output is not None or self.bounds is not None or self.inputs != "auto"

    def read(self, text: str) -> Model:
        """The model that a text names."""
        return model_of(text, output=self.output, bounds=self.bounds, inputs=self.inputs)


MODEL_HELP = (
    "An ONNX file. Or module:attribute, a model or function in Python: importing it RUNS that code. Pickles are refused, "
    "because opening one runs code that nobody sees."
)
Key = Annotated[
    str | None,
    typer.Option("--key", help="A name for a model that is a Python function: asking again then costs nothing."),
]


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ReadingOptions):
    """A model, and the name that the ledger knows it by."""

    model: Annotated[str, typer.Option("--model", metavar="M.onnx", help=MODEL_HELP)]
    key: Key = None

    def load(self) -> Model:
        """The model."""
        return self.read(self.model)


@dataclass(frozen=True, kw_only=True)
class ModelsOptions(ReadingOptions):
    """Models that are read in the same way, or none."""

    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="M.onnx", help=f"{MODEL_HELP} Repeat it for several; none for private rows alone."),
    ] = None
    key: Key = None

    def load(self) -> list[Model] | None:
        """The models."""
        if not self.model and (self.given or self.key is not None):
            raise InvalidInput("--output, --range, --inputs and --key are about a model; give --model too")
        return [self.read(text) for text in self.model] if self.model else None


# --- where the answer goes -----------------------------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Files, or the screen."""

    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--output-file",
            "-o",
            metavar="FILE",
            help="Where to write it, by the name's ending: .html, .json, .png for pictures, .pane for panes; may be "
            "repeated. On the screen if not given.",
        ),
    ] = None
    as_json: Json = False


# --- what several commands ask for ---------------------------------------------------------------------------------------

Point = Annotated[
    str,
    typer.Option(
        "--point",
        metavar="POINT",
        help="What to explain, public: JSON (an object, or a list of them), - for standard input, or a .json, .csv or "
        ".parquet file. Several points are one batch and share the price.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="COLUMN", help="Only this column; may be repeated. All if not given."),
]
Bins = Annotated[int, typer.Option("--bins", help="Into how many intervals a number is cut.")]
Loss = Annotated[str, typer.Option("--loss", help="Of importance: squared, absolute, zero-one or log.")]
Desired = Annotated[
    str, typer.Option("--desired-class", metavar="CLASS", help="The class to get to: 0, 1, its name, or opposite.")
]
DesiredRange = Annotated[
    str | None,
    typer.Option("--desired", metavar="LOW:HIGH", help="Instead, outputs to get to: 500: is at least 500, :500 at most."),
]
LedgerToRead = Annotated[str, typer.Argument(metavar="LEDGER", help="Its path, or a URL such as sqlite:///ledger.db.")]
OnlyAccount = Annotated[str | None, typer.Option("--account", metavar="NAME", help="Only this account.")]
PaneFile = Annotated[Path, typer.Argument(metavar="X.pane", help="A pane, as `vitrail release` writes it.")]
