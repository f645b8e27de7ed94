"""What `vitrail audit` reads and writes: tables of people, code that explains or predicts, outcomes on screen and files."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import InvalidInput
from .inputs import existing, imported
from .printing import check_files, give

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from ..accounting import JsonValue
    from ..audit.targets import Explain
    from .declarations import OutputOptions

PICTURE = ".png"
TABLES = (".npy", ".csv", ".parquet")
METHODS = (
    "gradient",
    "input_x_gradient",
    "integrated_gradients",
    "guided_backpropagation",
    "layer_relevance",
    "smooth_gradient",
)
EXPLAIN_HELP = (
    f"module:function from points to explanations, or with --module a method: {', '.join(METHODS)}. Without it the files "
    "hold explanations."
)


def check_outcome(output: OutputOptions) -> None:
    """Refuse files that the outcome cannot be written to, before anything is attacked."""
    check_files(output.files, "the audit", (PICTURE,))


def give_outcome(outcome: Any, output: OutputOptions, show: Callable[[], None]) -> None:
    """The outcome on the screen in any case, and in files."""
    if output.files and not output.as_json:
        show()
    content: dict[str, JsonValue] = outcome.to_json()

    def draw(file: Path) -> None:
        figure: Figure = outcome.plot()
        figure.savefig(file, dpi=160)

    give(output, "the audit", content, show, {".html": outcome.report, PICTURE: draw})


# What the command line names


def explainer_of(explain: str | None, module: str | None) -> Callable[..., object]:
    """What explains: a function of points, or a method of a torch module; the points themselves if nothing is named."""
    from ..audit import targets

    if explain is None:
        return lambda points: points
    if explain in METHODS:
        if module is None:
            raise InvalidInput(f"--explain {explain} needs --module MODULE:NAME, a torch module")
        make = cast("Callable[..., Explain]", getattr(targets, explain))
        return make(imported(module, "--module"))
    if ":" not in explain:
        raise InvalidInput(f"--explain is {explain!r}; write module:function, or one of {', '.join(METHODS)}")
    return cast("Callable[..., object]", imported(explain, "--explain"))


def predictor_of(
    text: str | None, module: str | None, probabilities: list[NDArray[np.float64]] | None
) -> Callable[..., object] | None:
    """What predicts: a function, an .onnx file, a torch module, or columns of the files; None if nothing does."""
    from ..audit import targets
    from ..model.reading_models import predictor_of as opened

    if text is not None and Path(text).suffix.lower() == ".onnx":
        return opened(existing(Path(text), "model"))
    if text is not None:
        return cast("Callable[..., object]", imported(text, "--predict"))
    if module is not None:
        return targets.predictions(imported(module, "--module"))
    if probabilities is None:
        return None
    table = np.concatenate(probabilities)
    return lambda _: table  # of all people, in the order in which they are asked about


# Files


def table_of(path: Path) -> dict[str, NDArray[np.generic]]:
    """Columns by name; an array's columns are numbered."""
    suffix = existing(path, "table").suffix.lower()
    if suffix not in TABLES:
        raise InvalidInput(f"{str(path)!r} is no table; give one of {', '.join(TABLES)}")
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if suffix == ".npy":
            array = np.load(path, allow_pickle=False)
            return {str(index): column for index, column in enumerate(array.reshape(len(array), -1).T)}
        table = csv.read_csv(path) if suffix == ".csv" else parquet.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error}") from error
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}


def alike(sides: list[dict[str, NDArray[np.generic]]]) -> list[dict[str, NDArray[np.generic]]]:
    """Tables with their columns in the order of the first, or an error that names what one of them lacks."""
    first = sides[0]
    for side in sides[1:]:
        if odd := sorted(set(first) ^ set(side)):
            raise InvalidInput(f"the tables must have the same columns; only one of them has {', '.join(odd[:20])}")
    return [{name: side[name] for name in first} for side in sides]


def texts(sides: list[dict[str, NDArray[np.generic]]], name: str | None, option: str) -> list[list[str] | None]:
    """A column of names or classes, as texts, taken out of every table."""
    if name is None:
        return [None] * len(sides)
    for side in sides:
        if name not in side:
            raise InvalidInput(f"{option} is {name!r}; the columns are {', '.join(list(side)[:20])}")
    return [[str(value) for value in side.pop(name)] for side in sides]


def taken(sides: list[dict[str, NDArray[np.generic]]], names: list[str], option: str) -> list[NDArray[np.float64]] | None:
    """Columns taken out of both tables."""
    for side, name in product(sides, names):
        if name not in side:
            raise InvalidInput(f"{option} is {name!r}; the columns are {', '.join(list(side)[:20])}")
    return [numbers_of({name: side.pop(name) for name in names}) for side in sides] if names else None


def numbers_of(columns: dict[str, NDArray[np.generic]]) -> NDArray[np.float64]:
    """Columns of numbers as a matrix."""
    if not columns:
        raise InvalidInput("no columns are left to attack")
    numbers = []
    for name, column in columns.items():
        try:
            numbers.append(column.astype(np.float64))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"column {name!r} holds texts; an attack needs numbers, encode or drop it") from error
    return np.column_stack(numbers)
