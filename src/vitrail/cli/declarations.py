"""What commands are told, declared once: groups of options, and a decorator that gives a command the groups it names.

A group is a frozen dataclass whose fields are typer options. :func:`command` flattens the groups among a function's
parameters for typer, which makes ``--help`` of them, and puts them together again when the command is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from ..accounting.guarantee import Budget, check_epsilon_delta
from ..accounting.neighbours import MOST_ROWS_PER_PERSON
from ..desk.declaration import DEFAULT_DELTA, ENDING, Declaration, checked_budget, read_declaration
from ..errors import InvalidInput
from ..schema import Schema
from .inputs import existing, model_of

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..model import Model
    from ..vault import PrivateData

DEFAULT_NEIGHBOURS = "add-remove"
DEFAULT_LEDGER = "ledger.db"


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

    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="S.json", help="The declared columns, where DATA declares none.")
    ] = None
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="The public row count, where DATA declares none. Never counted.")
    ] = None
    target: Annotated[str | None, typer.Option("--target", help="The column to predict.")] = None
    delta: Annotated[
        float | None,
        typer.Option("--delta", help=f"The account's delta; {DEFAULT_DELTA} if not given.", show_default=False),
    ] = None
    neighbours: Annotated[
        str | None, typer.Option("--neighbours", help="add-remove (the default) or replace-one.", show_default=False)
    ] = None
    rows_per_person: Annotated[
        int | None,
        typer.Option(
            "--rows-per-person", min=1, max=MOST_ROWS_PER_PERSON, help="The most rows that one person has; 1 if not given."
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option("--person", metavar="COLUMN", help="Whose row it is; everybody counts once, and --rows counts people."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DataOptions(PublicOptions):
    """Private rows, what is public about them, and the account that pays."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A declaration, such as census.toml, which `vitrail init` writes. Or rows, and what it would say "
            "as options: "
            "a Parquet file, a folder of them, or a CSV file with one row per line.",
        ),
    ]
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", help="The account's whole epsilon, for ever. Of a new account: this question's, if not given."
        ),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", help=f"Where the bill is kept: a path ending in .db, or a URL; {DEFAULT_LEDGER} if not given."
        ),
    ] = None
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name; the file's if not given.")] = None
    account: Annotated[str | None, typer.Option("--account", help="Who pays; the dataset's name if not given.")] = None
    analyst: Annotated[str, typer.Option("--analyst", help="Who asks.")] = "owner"
    version: Annotated[
        str | None, typer.Option("--data-version", help="Change it when the rows change: old answers are then not replayed.")
    ] = None

    def __post_init__(self) -> None:
        if self.ledger == "memory":
            raise InvalidInput(
                "--ledger is 'memory', which would forget the bill when this command ends; name a file, such as l.db"
            )

    @property
    def is_declared(self) -> bool:
        """Whether a file declares it all."""
        return self.data.suffix.lower() == ENDING

    @cached_property
    def declared(self) -> Declaration:
        """The dataset as its file declares it, or as the options do; these may leave the budget to :meth:`total`."""
        if self.is_declared:
            for option in (
                "schema",
                "rows",
                "target",
                "delta",
                "neighbours",
                "rows_per_person",
                "person",
                "budget",
                "ledger",
                "name",
                "account",
                "version",
            ):
                if getattr(self, option) is not None:
                    named = "data-version" if option == "version" else option.replace("_", "-")
                    raise InvalidInput(
                        f"--{named} is given, and {self.data.name} declares it; leave the option out, or change the file"
                    )
            return read_declaration(existing(self.data, "declaration"))
        if self.schema is None or self.rows is None:
            missing = "--schema" if self.schema is None else "--rows"
            data = existing(self.data, "data") if self.data.suffix else "DATA"
            raise InvalidInput(
                f"{missing} is missing; give it, or declare the dataset once: `vitrail init {data}` writes a file that "
                "every command takes"
            )
        return Declaration(
            name=self.name or self.data.stem,
            source=str(self.data),
            schema=Schema.load(existing(self.schema, "schema")),
            n_rows_public=self.rows,
            budget=checked_budget(1.0 if self.budget is None else self.budget, self._delta, self.rows),
            ledger=self.ledger or DEFAULT_LEDGER,
            target=self.target,
            account=self.account,
            version=self.version or "1",
            neighbours=self.neighbours or DEFAULT_NEIGHBOURS,
            rows_per_person=self.rows_per_person or 1,
            person=self.person,
        )

    @property
    def _delta(self) -> float:
        return DEFAULT_DELTA if self.delta is None else self.delta

    @property
    def ledger_is_new(self) -> bool:
        """Whether the ledger is a file that is not there yet."""
        file = self.declared.ledger.removeprefix("sqlite:///")
        return "://" not in file and not Path(file).exists()

    def total(self, price: PriceOptions, known: Statement | None) -> Budget:
        """The account's budget: as declared or given, else as the account has it, else for this one question."""
        if self.is_declared:
            return self.declared.budget
        if self.budget is not None:
            stated = self.declared.budget
            agrees = known is not None and (known.budget.epsilon, known.budget.delta) == (stated.epsilon, stated.delta)
            return known.budget if known is not None and agrees else stated  # the account knows its purse for training
        if known is not None and self.delta is None:
            return known.budget
        if price.epsilon is None:
            raise InvalidInput("--budget is missing: without --epsilon nothing says how large the account is; give it")
        return Budget(price.epsilon, self._delta)

    def private_data(self, rows: object, budget: Budget, ledger: str | None = None) -> PrivateData:
        """The dataset with these rows; ``ledger`` in place of its own."""
        return replace(self.declared, budget=budget).open(analyst=self.analyst, rows=rows, ledger=ledger)

    def nobody(self, budget: Budget) -> PrivateData:
        """The same declarations with no rows, and a ledger that is forgotten."""
        return self.private_data(self.declared.nobodys_rows(), budget, "memory")


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

    def check(self, declared: Declaration) -> None:
        """Refuse a price that is none."""
        if sum(given is not None for given in (self.epsilon, self.half_width, self.verdict)) != 1:
            raise InvalidInput(
                "give either --epsilon, the price, or --half-width, an accuracy whose price is told, or --verdict, which is "
                "told as well"
            )
        if self.epsilon is not None:
            check_epsilon_delta(self.epsilon, declared.budget.delta, "a question")
            checked_budget(self.epsilon, declared.budget.delta, declared.n_rows_public)


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

    unknown: Annotated[
        str,
        typer.Option("--unknown", help="Of a declared level that a booster has no category for: refuse, or missing."),
    ] = "refuse"
    unsafe_pickle: Annotated[
        bool,
        typer.Option(
            "--unsafe-pickle", help="Open a .pkl, .pickle or .joblib file or an MLflow folder: this RUNS its code."
        ),
    ] = False

    @property
    def given(self) -> bool:
        """Whether anything is said about it."""
        said = self.output is not None or self.bounds is not None or self.inputs != "auto"
        return said or self.unknown != "refuse" or self.unsafe_pickle

    def read(self, text: str) -> Model:
        """The model that a text names."""
        return model_of(
            text,
            output=self.output,
            bounds=self.bounds,
            inputs=self.inputs,
            unknown=self.unknown,
            unsafe_pickle=self.unsafe_pickle,
        )


MODEL_HELP = (
    "A file: .onnx, .skops, XGBoost's .json or .ubj, LightGBM's .txt, CatBoost's .cbm, .maps of `vitrail train`. Or "
    "module:attribute, a model or function in Python: importing it RUNS that code. Pickles need --unsafe-pickle, because "
    "opening one runs code that nobody sees."
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
            raise InvalidInput("--output, --range, --inputs, --unknown and --key are about a model; give --model too")
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
SAMPLING_HELP = "Below 1: look at a random share of the rows. Faster, noisier, and no cheaper."
SamplingRate = Annotated[float, typer.Option("--sampling-rate", help=SAMPLING_HELP)]
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
