"""What the command line names: files, models, public points, weights, ledgers.

Models and points are public, and what is wrong with them is said. Private rows are not read here: the vault gets their path.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .._checks import choice, did_you_mean
from ..desk.declaration import ENDING, Declaration, read_declaration
from ..errors import InvalidInput, LedgerError, ModelError
from ..model import Model
from ..model.feeds import INPUTS
from ..model.files import OPENED, PICKLES, is_pickled, unpickled
from ..model.levels import UNKNOWN
from ..model.reading_models import predictor_of
from ..schema.csv_lines import cells_of, read_header
from ..solve.linear.weights import Weight, exponential, inverse_quadratic, polynomial, stable
from .printing import print_note

if TYPE_CHECKING:
    from ..ledger import SqlLedger
    from ..schema import Level
    from ..solve.counterfactual.classes import Desired

MAPS = ".maps"
POINT_SUFFIXES = (".json", ".csv", ".parquet")
_RUNS_CODE = (".sav", ".dill", ".pt", ".pth", ".ckpt", ".bin", ".model")
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


def model_of(
    text: str,
    *,
    output: str | None,
    bounds: tuple[float, float] | None,
    inputs: str,
    unknown: str = "refuse",
    unsafe_pickle: bool = False,
) -> Model:
    """The model that the command line names: the path of a file, or ``module:attribute``, which is imported.

    A pickle or an MLflow folder runs code when it is opened: only with ``unsafe_pickle``, and not without saying so.
    """
    kind, policy = choice("--inputs", inputs, INPUTS), choice("--unknown", unknown, UNKNOWN)
    path = Path(text)
    given: object = path
    if path.suffix.lower() in OPENED:
        existing(path, "model")
    elif path.suffix.lower() == MAPS:
        from ..maps import load_maps

        given = load_maps(existing(path, "model"))
    elif path.suffix.lower() in (*PICKLES, *_RUNS_CODE) or is_pickled(path):
        given = _unpickled(path, unsafe_pickle)
    elif not _REFERENCE.fullmatch(text):
        raise ModelError(
            f"--model is {text!r}; give the path of an .onnx file, or module:attribute of Python code you trust; files of "
            f"these endings are opened too: {', '.join(ending for ending in OPENED if ending != '.onnx')}"
        )
    elif isinstance(given := imported(text, "--model"), Model):
        if output is not None or bounds is not None or inputs != "auto" or unknown != "refuse":
            raise ModelError(
                f"{text} is a vt.Model already; leave --output, --range, --inputs and --unknown out, or give what it wraps"
            )
        return given
    predictor = predictor_of(given)
    return Model(predictor, output=_output(output, predictor.classes), range=bounds, inputs=kind, unknown=policy)


def in_options(sentence: str) -> str:
    """A sentence about a model in the words of the command line.

    Examples
    --------
    >>> in_options("it is not plain; say inputs='features' or inputs='values', or give range=(low, high)")
    'it is not plain; say --inputs features or --inputs values, or give --range LOW HIGH'
    """
    sentence = sentence.replace("range=(low, high)", "--range LOW HIGH")
    sentence = re.sub(r"\b(inputs|unknown)='([\w-]+)'", r"--\1 \2", sentence)
    return re.sub(r"\b(output|range|inputs)=(?!\w)", r"--\1", sentence)


def _unpickled(path: Path, unsafe_pickle: bool) -> object:
    """What is in a file that runs code when it is opened, if the user wants that."""
    file = existing(path, "model")
    if not is_pickled(file):
        raise ModelError(
            f"--model is {str(path)!r}; such a file can run any code when it is opened, so it is not. Export a torch module "
            f"with torch.onnx.export; save a booster with its save_model: {', '.join(OPENED)} are opened"
        )
    if not unsafe_pickle:
        raise ModelError(
            f"--model is {str(path)!r}; it can run any code when it is opened, so it is not. If you trust whoever made it, "
            "say --unsafe-pickle. Better, for scikit-learn: skops.io.dump(model, 'model.skops'), or skl2onnx.to_onnx, and "
            "write its SerializeToString() to model.onnx; save a booster with its save_model"
        )
    print_note(f"Opening {str(path)!r} runs whatever code is in it, because of --unsafe-pickle.")
    return unpickled(file)


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


def _output(text: str | None, classes: tuple[Level, ...] | None) -> Level | None:
    """The class whose name was given, where the model has names; else its number."""
    named = [label for label in classes or () if str(label) == text]
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
            return csv_columns(path, "the file of points")
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


def check_source(declared: Declaration) -> None:
    """Refuse rows that are not there, before anything else is done."""
    if isinstance(declared.source, str):
        existing(Path(declared.source), "data")


def csv_columns(path: Path, what: str) -> dict[str, list[str]]:
    """The columns of a public CSV file as texts; one line is one row, and one that does not fit the header is an error."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            header = read_header(next(lines, ""), f"{what} {str(path)!r}")
            columns: dict[str, list[str]] = {name: [] for name in header.names}
            for number, line in enumerate(lines, 2):
                if not line.strip():
                    continue
                cells = cells_of(line, header.separator)
                if len(cells) != len(header.names):
                    raise InvalidInput(
                        f"line {number} of {what} {str(path)!r} has not {len(header.names)} cells, as its header has"
                    )
                for column, cell in zip(columns.values(), cells, strict=True):
                    column.append(cell)
    except OSError as error:
        raise InvalidInput(f"{what} {str(path)!r} cannot be read: {error.strerror}") from error
    return columns


def open_existing_ledger(where: str) -> SqlLedger:
    """A ledger that is there already, or that a declaration names: looking at a bill must not create one."""
    from ..ledger import SqlLedger

    if where.lower().endswith(ENDING):
        where = read_declaration(existing(Path(where), "declaration")).ledger
    return SqlLedger(where if "://" in where else existing(Path(where), "ledger"), must_exist=True)


def one_account(ledger: SqlLedger, account: str | None) -> str:
    """The account that was named, or the only one."""
    names = ledger.accounts() if account is None else (account,)
    if len(names) == 1:
        return names[0]
    if not names:
        raise LedgerError("This ledger has no account yet; the first question about a dataset opens one.")
    raise LedgerError(f"This ledger has several accounts: {', '.join(map(repr, names))}. Choose one with --account.")
