"""What the command line names: files, models, public points, weights, private rows, ledgers.

Models and points are public, and what is wrong with them is said. Private rows are read silently: in a CSV file one line is
one row, whatever stands in it, so that no line can change or hide another.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._checks import choice, did_you_mean
from ..errors import InvalidInput, LedgerError, ModelError
from ..model import Model
from ..model.model import INPUTS
from ..schema import Schema
from ..solve.linear.weights import Weight, exponential, inverse_quadratic, polynomial, stable

if TYPE_CHECKING:
    from ..ledger import SqlLedger
    from ..schema import Level
    from ..solve.counterfactual.classes import Desired

POINT_SUFFIXES = (".json", ".csv", ".parquet")
_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill", ".skops", ".pt", ".pth", ".ckpt", ".bin", ".model")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_WEIGHTS: dict[str, Callable[..., Weight]] = {
    "stable": stable,
    "polynomial": polynomial,
    "exponential": exponential,
    "inverse-quadratic": inverse_quadratic,
}


def existing(path: Path, what: str) -> Path:
    """The path, if something is there; otherwise an error with the nearest name in its folder."""
    if path.exists():
        return path
    folder = path.parent
    if not folder.is_dir():
        raise InvalidInput(f"there is no {what} at {str(path)!r}: there is no folder {str(folder)!r}")
    hint = did_you_mean(path.name, [file.name for file in folder.iterdir()])
    raise InvalidInput(f"there is no {what} at {str(path)!r}.{hint}")


def model_of(text: str, *, output: str | None, bounds: tuple[float, float] | None, inputs: str) -> Model:
    """The model that the command line names: the path of an ONNX file, or ``module:attribute``, which is imported."""
    kind = choice("--inputs", inputs, INPUTS)
    path = Path(text)
    predictor: object = path
    if path.suffix.lower() == ".onnx":
        existing(path, "model")
    elif path.suffix.lower() in _PICKLES:
        raise ModelError(
            f"--model is {text!r}; such a file can run any code when it is opened, so it is not. Export the model to ONNX: "
            "for scikit-learn skl2onnx.to_onnx(model, X[:1], options={'zipmap': False}), and write its SerializeToString() "
            "to model.onnx; for torch torch.onnx.export"
        )
    elif not _REFERENCE.fullmatch(text):
        raise ModelError(
            f"--model is {text!r}; give the path of an .onnx file, or module:attribute of Python code you trust"
        )
    elif isinstance(predictor := imported(text, "--model"), Model):
        if output is not None or bounds is not None or inputs != "auto":
            raise ModelError(
                f"{text} is a vt.Model already; leave --output, --range and --inputs out, or give what it wraps"
            )
        return predictor
    try:
        return Model(predictor, output=_output(output, predictor), range=bounds, inputs=kind)
    except ModelError as error:  # said in the words of the command line
        words = str(error)
        for python, option in (("range=(low, high)", "--range LOW HIGH"), ("output=", "--output"), ("range=", "--range")):
            words = words.replace(python, option)
        raise ModelError(words) from error


def imported(reference: str, option: str) -> object:
    """What ``module:attribute`` names; importing it runs its code."""
    if not _REFERENCE.fullmatch(reference):
        raise InvalidInput(f"{option} is {reference!r}; write module:name, of Python code you trust")
    module, _, attribute = reference.partition(":")
    if (here := str(Path.cwd())) not in sys.path:  # as `python -m` has it, and an installed command does not
        sys.path.insert(0, here)
    try:
        target: object = importlib.import_module(module)
        for name in attribute.split("."):
            target = getattr(target, name)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise InvalidInput(f"{option} {reference!r} cannot be imported: {error}") from error
    except Exception as error:  # its message may hold anything, rows included
        raise InvalidInput(
            f"{option} {reference!r} cannot be imported: {type(error).__name__}. `vitrail --debug` shows where"
        ) from error
    return target


def _output(text: str | None, predictor: object) -> Level | None:
    """The class whose name was given, where the model has names; else its number."""
    classes: list[Level] = np.ravel(getattr(predictor, "classes_", ())).tolist()
    named = [label for label in classes if str(label) == text]
    return None if text is None else named[0] if named else class_of(text)


def class_of(text: str) -> Level:
    """A class by its number or its name."""
    return int(text) if text.isdecimal() else text


def range_of(text: str | None) -> Desired | None:
    """A range of outputs: ``500:``, ``:500``, ``400:500``."""
    if text is None:
        return None
    try:
        low, high = (float(end) if end else None for end in text.split(":"))
    except ValueError as error:
        raise InvalidInput(
            f"--desired is {text!r}; write LOW:HIGH, 500: for at least 500, or :500 for at most 500"
        ) from error
    return low, high


def weight_of(text: str | None) -> Weight | None:
    """A weight by its name, and after a colon its number: ``stable``, ``exponential:0.3``."""
    if text is None:
        return None
    name, colon, number = text.partition(":")
    make = _WEIGHTS[choice("--weight", name, tuple(_WEIGHTS))]
    if not colon:
        return make()
    try:
        value = float(number)
    except ValueError as error:
        raise InvalidInput(f"--weight is {text!r}; what follows the colon must be a number, as in {name}:0.5") from error
    if name == "polynomial":
        raise InvalidInput(f"--weight is {text!r}; the polynomial weight has no number")
    return make(value)


def points_of(text: str, target: str | None) -> object:
    """Public points as ``schema.read_points`` takes them: inline JSON, ``-`` for standard input, or a file."""
    if text.lstrip()[:1] in ("{", "["):
        points = _json(text, "--point")
    elif text == "-":
        points = _json(sys.stdin.read(), "standard input")
    else:
        points = _points_in(existing(Path(text), "point"))
    names: set[str] = set()
    for point in points if isinstance(points, list) else [points]:
        names |= set(map(str, point)) if isinstance(point, Mapping) else set(getattr(point, "column_names", ()))
    if target is not None and target in names:
        raise InvalidInput(
            f"the point has the column {target!r}, which is the target; leave it out: it is what is predicted"
        )
    return points


def _points_in(path: Path) -> object:
    suffix = path.suffix.lower()
    if suffix not in POINT_SUFFIXES:
        raise InvalidInput(
            f"--point is the file {str(path)!r}; points are read from {', '.join(POINT_SUFFIXES)} files, from JSON on the "
            "command line, or from standard input (-)"
        )
    try:
        if suffix == ".csv":
            return csv_columns(path, "the file of points", strict=True)
        if suffix == ".json":
            return _json(path.read_text(encoding="utf-8"), f"the point {str(path)!r}")
        import pyarrow.parquet as pq

        return pq.read_table(path)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(f"the points in {str(path)!r} cannot be read: {error}") from error


def _json(text: str, what: str) -> object:
    try:
        points: object = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{what} cannot be read as JSON: {error}") from error
    if not isinstance(points, dict | list):
        raise InvalidInput(
            f'{what} is {type(points).__name__}; a point is an object such as {{"age": 39}}, or a list of them'
        )
    return points


def private_rows_of(path: Path, schema: Schema) -> object:
    """What ``PrivateData`` takes as rows: a Parquet path as it is, a CSV file as columns of texts."""
    file = existing(path, "data")
    if file.is_file() and file.suffix.lower() == ".csv":
        return csv_columns(file, "the data", strict=False, wanted=schema.names)
    return file


def csv_columns(path: Path, what: str, *, strict: bool, wanted: Sequence[str] | None = None) -> dict[str, list[str | None]]:
    """The columns of a CSV file with a header, as texts.

    Parameters
    ----------
    path : Path
        Separated by commas, in UTF-8; one line is one row, so a quoted cell holds no line break.
    what : str
        The file, for messages.
    strict : bool
        Whether a line that does not fit the header is an error. In private rows it is not: all its cells are missing.
    wanted : sequence of str, optional
        Columns to keep; all if not given.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            header = _cells(next(lines, ""))
            if not all(header) or len(set(header)) < max(1, len(header)):
                raise InvalidInput(f"{what} {str(path)!r} must begin with a line of distinct column names")
            kept = [index for index, name in enumerate(header) if wanted is None or name in wanted]
            columns: dict[str, list[str | None]] = {header[index]: [] for index in kept}
            for number, line in enumerate(lines, 2):
                if not line.strip():
                    continue
                cells = _cells(line)
                fits = len(cells) == len(header)
                if strict and not fits:
                    raise InvalidInput(
                        f"line {number} of {what} {str(path)!r} has not {len(header)} cells, as its header has"
                    )
                for index in kept:
                    columns[header[index]].append(cells[index] if fits else None)
    except OSError as error:
        raise InvalidInput(f"{what} {str(path)!r} cannot be read: {error.strerror}") from error
    return columns


def _cells(line: str) -> list[str]:
    """The cells of a line; none where it cannot be read."""
    try:
        return next(csv.reader((line,), skipinitialspace=True), [])
    except csv.Error:
        return []


def open_existing_ledger(where: str) -> SqlLedger:
    """A ledger that is there already: looking at a bill must not create one."""
    from ..ledger import SqlLedger

    return SqlLedger(where if "://" in where else existing(Path(where), "ledger"), must_exist=True)


def one_account(ledger: SqlLedger, account: str | None) -> str:
    """The account that was named, or the only one."""
    names = ledger.accounts() if account is None else (account,)
    if len(names) == 1:
        return names[0]
    if not names:
        raise LedgerError("This ledger has no account yet; the first question about a dataset opens one.")
    raise LedgerError(f"This ledger has several accounts: {', '.join(map(repr, names))}. Choose one with --account.")
