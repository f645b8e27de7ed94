"""Rows that another library streams: lazy frames of Polars, datasets of Hugging Face, and a function of the owner's.

*A lazy frame is a query*, and most queries make what a row contributes depend on other rows. So a lazy frame is taken only
where its plan, before anything is optimised, is a scan of Parquet or Arrow files or a frame in memory, and above it nothing
but selections of columns, perhaps under other names. Polars writes plans out; whatever line is not known here is refused.
Scans of CSV and JSON are refused too: their types are guessed from values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import InvalidInput
from ...nothing_escapes import attempt
from .pieces import Batches, Origin, Piece

_COLUMN = r'col\("[^"\n]*"\)(?:\.alias\("[^"\n]*"\))?'
_SELECTION = re.compile(rf"\s*SELECT \[{_COLUMN}(?:, {_COLUMN})*\]")
_SCAN = re.compile(
    r"(?:Parquet|Ipc) SCAN \[[^\n]*\]\nPROJECT \*/\d+ COLUMNS(?:\nESTIMATED ROWS: \d+)?"
    r"|DF \[[^\n]*\]; PROJECT \*/\d+ COLUMNS"
)


def lazy_origin(frame: Any, polars: Any) -> Origin:
    """The rows of a lazy frame that is a plain scan."""
    if not _is_plain(attempt(lambda: frame.explain(optimized=False), "")):
        raise InvalidInput(
            "the lazy frame is a query; give a plain scan of Parquet or Arrow files, of which columns may be selected and "
            "renamed. Filters, limits, joins, windows and the like may make what a row contributes depend on other rows: "
            "write their result to a file that the owner approves of, or collect() it"
        )
    if not hasattr(frame, "collect_batches"):
        raise InvalidInput("this version of Polars cannot stream a lazy frame; install vitrail[sources], or collect() it")

    def columns() -> pa.Schema:
        return polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def batches(names: list[str], rows: int) -> Batches:
        for part in frame.select(names).collect_batches(chunk_size=rows, lazy=True):
            yield from part.to_arrow().to_batches()

    piece = Piece(
        "the lazy frame", columns, batches, "the lazy frame's columns cannot be read; see that its files are there"
    )
    return Origin((piece,), watched=False)


def _is_plain(plan: str) -> bool:
    """Whether a plan, as Polars writes it, is a scan of files or a frame, and above it selections of columns alone."""
    lines = plan.split("\n")
    while lines and _SELECTION.fullmatch(lines[0]):
        lines.pop(0)
    return _SCAN.fullmatch("\n".join(line.strip() for line in lines)) is not None


def dataset_of_hugging_face(dataset: Any) -> Origin:
    """The rows of a ``datasets.Dataset``: it does not change, and the files that it keeps them in are watched."""
    files = [Path(cached["filename"]) for cached in dataset.cache_files]

    def state() -> object:
        return tuple((str(file), (status := file.stat()).st_size, status.st_mtime_ns) for file in files)

    def batches(names: list[str], rows: int) -> Batches:
        for table in dataset.with_format("arrow").select_columns(names).iter(batch_size=rows):
            yield from table.to_batches()

    unreadable = "the dataset's columns cannot be read; load it again"
    piece = Piece("the dataset", lambda: dataset.features.arrow_schema, batches, unreadable)
    return Origin((piece,), state)


def function_origin(start: Callable[[list[str]], object]) -> Origin:
    """What a function of the owner's gives: called with the wanted columns, it begins a walk, a record batch reader."""

    def reader(names: list[str]) -> pa.RecordBatchReader:
        begun = start(names)
        if not isinstance(begun, pa.RecordBatchReader):
            raise InvalidInput(
                f"rows are given as a function that returns {type(begun).__name__}; it must return a "
                "pyarrow.RecordBatchReader, anew at every call: RecordBatchReader.from_batches(schema, batches) makes one "
                "of any generator"
            )
        return begun

    def batches(names: list[str], rows: int) -> Batches:
        with reader(names) as opened:
            yield from opened

    def columns() -> pa.Schema:
        with reader([]) as opened:
            return opened.schema

    return Origin((Piece("what the function of rows reads", columns, batches, "the function of rows fails"),), watched=False)
