"""`vitrail texts` and `vitrail pictures`: rows, schema and view from private texts or pictures, for `vitrail ask --view`.

The files of rows that are written are as private as what they are made from. Schemas and views are public: a vocabulary is a
list that anybody may see, regions are a grid or drawn on a picture that anybody may see.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..errors import InvalidInput
from ..schema import BagOfWords, Picture, Schema, load_view, save_view
from . import declarations as options
from .inputs import existing, points_of
from .printing import check_writable, print_lines, write_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from ..results import Attribution

ROWS, ARRAY = (".csv", ".parquet"), ".npy"
Out = Annotated[
    Path,
    typer.Option(
        "--output-file", "-o", metavar="ROWS.parquet", help="The rows, private as before; its schema and view lie beside it."
    ),
]
Others = Annotated[
    Path | None,
    typer.Option("--schema", metavar="S.json", help="Of other columns that are kept beside them, such as the target."),
]


@options.command
def texts(
    source: Annotated[Path, typer.Argument(metavar="TEXTS", help="Private texts in a column of a .csv or .parquet file.")],
    column: Annotated[str, typer.Option("--column", metavar="COLUMN", help="The column that holds the texts.")],
    words: Annotated[
        Path, typer.Option("--words", metavar="WORDS.txt", help="A PUBLIC word list, the weightiest words first.")
    ],
    file: Out,
    most_words: Annotated[
        int | None, typer.Option("--most-words", min=1, help="How many words of a text count in an explanation.")
    ] = None,
    others: Others = None,
) -> None:
    """Turn private texts into rows of words: a column for each word of a public list."""
    _check(file)
    listed = existing(words, "word list").read_text(encoding="utf-8-sig", errors="replace").split()
    view = BagOfWords(listed, most_words=most_words)
    table = _table(source)
    if column not in table:
        raise InvalidInput(f"--column is {column!r}; the columns are {', '.join(list(table)[:20])}")
    said = table.pop(column).to_pylist()
    if not any(isinstance(text, str) for text in said):
        raise InvalidInput(f"--column {column!r} holds no texts")
    _write(view, view.rows(said), table, others, file)


@options.command
def pictures(
    source: Annotated[
        Path, typer.Argument(metavar="PICTURES.npy", help="Private grey pictures: (pictures, height, width).")
    ],
    file: Out,
    patches: Annotated[
        tuple[int, int] | None, typer.Option("--patches", metavar="HEIGHT WIDTH", help="Explain by rectangles of this size.")
    ] = None,
    regions: Annotated[
        Path | None,
        typer.Option("--regions", metavar="MAP.npy", help="Explain by PUBLIC regions: the number of each pixel's."),
    ] = None,
    high: Annotated[float, typer.Option("--high", help="The value of a white pixel.")] = 255.0,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="LABELS.csv", help="Other columns, row by row, declared by --schema.")
    ] = None,
    others: Others = None,
) -> None:
    """Turn private pictures into rows of pixels, to be explained by patches, regions or pixels."""
    _check(file)
    images = _array(source)
    if images.ndim != 3:
        raise InvalidInput(f"{str(source)!r} has shape {images.shape}; it must be (pictures, height, width)")
    height, width = images.shape[1:]
    drawn = None if regions is None else _array(regions)
    view = Picture((height, width), patches=patches, superpixels=drawn, high=high)
    table = {} if labels is None else _table(labels)
    if any(len(values) != len(images) for values in table.values()):
        raise InvalidInput(f"{str(labels)!r} has not a row for each of the pictures")
    _write(view, view.rows(images), table, others, file)


def _check(file: Path) -> None:
    check_writable(file, "the rows")
    if file.suffix.lower() != ".parquet":
        raise InvalidInput(f"--output-file is {str(file)!r}; its name must end in .parquet")


def _table(path: Path) -> dict[str, Any]:
    """The columns of a private table, by name; errors do not quote what is in it."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    suffix = existing(path, "table").suffix.lower()
    if suffix not in ROWS:
        raise InvalidInput(f"{str(path)!r} is no table; give one of {', '.join(ROWS)}")
    try:
        table = csv.read_csv(path) if suffix == ".csv" else parquet.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {type(error).__name__}") from error
    return {name: table.column(name) for name in table.column_names}


def _array(path: Path) -> np.ndarray[Any, Any]:
    if existing(path, "array").suffix.lower() != ARRAY:
        raise InvalidInput(f"{str(path)!r} is no array; give an {ARRAY} file, as numpy.save writes it")
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {type(error).__name__}") from error


def _write(view: BagOfWords | Picture, rows: dict[str, Any], table: dict[str, Any], others: Path | None, file: Path) -> None:
    """Rows, and beside them their schema and the view."""
    import pyarrow as pa
    from pyarrow import parquet

    declared = {} if others is None else dict(Schema.load(existing(others, "schema")))
    for name in declared:
        if name in rows:
            raise InvalidInput(f"{name!r} is a column of --schema and one of the view; call it something else")
        if name not in table:
            raise InvalidInput(
                f"--schema declares {name!r}, and there is no such column; there are {', '.join(table) or 'none'}"
            )
    made = pa.table(
        {**{name: np.asarray(values) for name, values in rows.items()}, **{name: table[name] for name in declared}}
    )
    schema, told = file.with_suffix(".schema.json"), file.with_suffix(".view.json")
    write_file(file, lambda path: parquet.write_table(made, path), "the rows")
    Schema({**view.schema(), **declared}).save(schema)
    save_view(view, told)
    print_lines(f"{len(rows)} columns of {view!r}. Written: {file} (private), {schema}, {told}.")


# What `vitrail ask --view` is asked about


def viewed_point(
    path: Path, text: str, target: str | None
) -> tuple[BagOfWords | Picture, object, Callable[[Attribution], Figure]]:
    """The view, the point in its columns, and what draws the answer: words of the text, or a heat map over the picture."""
    view = load_view(existing(path, "view"))
    if isinstance(view, Picture):
        image = _array(Path(text))
        if image.shape != view.shape:
            raise InvalidInput(f"--point has shape {image.shape}; the view is of pictures of shape {view.shape}")
        return view, view.rows(image), lambda e: e.plot.image(view, image=image.astype(np.float64))
    if text.lstrip()[:1] in ("{", "["):
        return view, points_of(text, target), lambda e: e.plot.text().figure()
    said = existing(Path(text), "text").read_text(encoding="utf-8") if text.endswith(".txt") else text
    return view, view.rows(said), lambda e: e.plot.text(said).figure()
