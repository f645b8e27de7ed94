"""Every option that more than one command has: one name, one meaning, one help text.

A command takes its options as parameters, because that is what its ``--help`` is made of. What they mean together is
:func:`vitrail.cli.account.declared_of`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_DELTA = 1e-6

# Whose rows, and what is public about them

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A Parquet file, a folder of them, or a CSV file with one row per line.")
]
Schema = Annotated[Path, typer.Option("--schema", metavar="S.json", help="The declared columns.")]
Rows = Annotated[int, typer.Option("--rows", min=1, help="The public row count. Declared, never counted.")]
Target = Annotated[str | None, typer.Option("--target", help="The column to predict.")]
Name = Annotated[str | None, typer.Option("--name", help="The dataset's name; the file's if not given.")]
Version = Annotated[
    str, typer.Option("--data-version", help="Change it when the rows change: old answers are then not replayed.")
]

# Who pays, and how much

Epsilon = Annotated[float, typer.Option("--epsilon", help="What this question may cost.")]
Budget = Annotated[float, typer.Option("--budget", help="The account's whole epsilon, for ever.")]
Delta = Annotated[float, typer.Option("--delta", help="The account's delta.")]
Neighbours = Annotated[
    str | None, typer.Option("--neighbours", help="add-remove (the default) or replace-one.", show_default=False)
]
Ledger = Annotated[str, typer.Option("--ledger", help="Where the bill is kept: a path ending in .db, or a URL.")]
Account = Annotated[str | None, typer.Option("--account", help="Who pays; the dataset's name if not given.")]
Analyst = Annotated[str, typer.Option("--analyst", help="Who asks.")]
Quote = Annotated[bool, typer.Option("--quote", help="Only say what it would cost and how wide the bands would be. Free.")]

# Which model, and how it is read

Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="M.onnx",
        help="An ONNX file. Or module:attribute, a model or function in Python: importing it RUNS that code. Pickles are "
        "refused, because opening one runs code that nobody sees.",
    ),
]
ModelOutput = Annotated[
    str | None, typer.Option("--output", metavar="CLASS", help="Which class or column of the model's output.")
]
Range = Annotated[
    tuple[float, float] | None,
    typer.Option("--range", metavar="LOW HIGH", help="Where the outputs lie, if they are no probabilities."),
]
Inputs = Annotated[
    str, typer.Option("--inputs", help="What the model takes: features in [0, 1], values, frame, category-frame.")
]
Key = Annotated[
    str | None, typer.Option("--key", help="A name for a model that is a Python function: asking again then costs nothing.")
]

# What is asked

Point = Annotated[
    str,
    typer.Option(
        "--point",
        metavar="POINT",
        help="What to explain, public: JSON (an object, or a list of them), - for standard input, or a .json, .csv or "
        ".parquet file. Several points are one batch and share the price.",
    ),
]
Loss = Annotated[str, typer.Option("--loss", help="Of importance: squared, absolute, zero-one or log.")]
Columns = Annotated[list[str] | None, typer.Option("--column", help="Only this column; may be repeated. All if not given.")]
Bins = Annotated[int, typer.Option("--bins", help="Into how many intervals a number is cut.")]

# What is looked at

LedgerToRead = Annotated[str, typer.Argument(metavar="LEDGER", help="Its path, or a URL such as sqlite:///ledger.db.")]
OnlyAccount = Annotated[str | None, typer.Option("--account", metavar="NAME", help="Only this account.")]
Pane = Annotated[Path, typer.Argument(metavar="X.pane", help="A pane, as `vitrail release` writes it.")]

# Where the answer goes

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
PageFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--output-file",
        "-o",
        metavar="R.html",
        help="Where to write it: .html or .json; may be repeated. On the screen if not given.",
    ),
]
PictureFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--output-file",
        "-o",
        metavar="E.html",
        help="Where to write it: .html, .png or .json; may be repeated. On the screen if not given.",
    ),
]
