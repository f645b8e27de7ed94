"""Rows in files: Parquet, CSV, and datasets of Arrow's over any file system."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import InvalidInput
from ...schema.csv_lines import CSV_ENDINGS, batches_of, header_at, read_header
from .pieces import Batches, Origin, Piece

READABLE_FORMATS = ("parquet", "arrow", "orc")
"""Formats of datasets whose columns have types of their own. Those of texts guess types from values, row by row."""


def files_origin(paths: Sequence[str | Path]) -> Origin:
    """Files and folders of Parquet, and CSV files, in this order."""
    files = [file for path in paths for file in _files(path)]
    _check_once(files)

    def state() -> object:
        return tuple((str(file), (status := file.stat()).st_size, status.st_mtime_ns) for file in files)

    place = place_of("", [str(Path(path).resolve()) for path in paths])
    return Origin(
        tuple(_csv(file) if file.suffix.lower() in CSV_ENDINGS else _parquet(file) for file in files), state, place
    )


def _files(path: str | Path) -> list[Path]:
    if "://" in str(path):
        kind = str(path).partition("://")[0]
        raise InvalidInput(
            f"rows are given as '{kind}://...'; a table is named with vt.Table(...), and files on another file system are "
            "opened with pyarrow.dataset.dataset(...)"
        )
    path = Path(path).absolute()  # a change of directory does not lead to other rows
    if path.is_file():
        return [path]
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*.parquet")) if not _is_aside(file.relative_to(path))]
        if files:
            return files
        raise InvalidInput(f"the folder {path} holds no .parquet file")
    raise InvalidInput(
        f"there is no file or folder {path}; rows are a data frame, an array, or the path of a Parquet or CSV file"
    )


def _is_aside(path: Path) -> bool:
    """Whether a file is no part of a folder's rows: half-written ones and editors' copies have such names, for Spark too."""
    return any(name.startswith(("_", ".")) for name in path.parts)


def _check_once(files: Sequence[Path]) -> None:
    """Refuse a file that is given twice: everybody in it would count twice, and the promise is about one row."""
    known: set[object] = set()
    for file in files:
        status = file.stat()
        who = (status.st_dev, status.st_ino) if status.st_ino else file.resolve()  # a link has the number of its file
        if who in known:
            raise InvalidInput(
                f"the file {file.name} is given twice, by its path, its folder or a link; its rows would count twice, and "
                "nobody's promise would hold: give every file once"
            )
        known.add(who)


def place_of(prefix: str, paths: list[str]) -> str:
    """One path as it is; several as their folder and a digest."""
    if len(paths) == 1:
        return prefix + paths[0]
    digest = hashlib.sha256("\0".join(sorted(paths)).encode(errors="surrogateescape")).hexdigest()
    return f"{prefix}{os.path.commonpath(paths)} ({len(paths)} files, {digest[:16]})"


def _parquet(file: Path) -> Piece:
    import pyarrow.parquet as pq

    def batches(names: list[str], rows: int, groups: list[int] | None = None) -> Batches:
        with pq.ParquetFile(file, pre_buffer=False, buffer_size=2**20) as opened:
            yield from opened.iter_batches(batch_size=rows, columns=names, row_groups=groups)

    def cut() -> tuple[Piece, ...]:
        groups = pq.read_metadata(file).num_row_groups
        return tuple(replace(piece, batches=partial(batches, groups=[group]), cut=None) for group in range(groups))

    unreadable = f"{file} cannot be read as Parquet; write it with to_parquet, or pass a frame"
    partitioned = any("=" in name for name in file.parts[:-1])
    hint = "; what stands in the names of folders is read by pyarrow.dataset.dataset(folder, partitioning='hive')"
    piece = Piece(file.name, lambda: pq.read_schema(file), batches, unreadable, hint=hint if partitioned else "", cut=cut)
    return piece


def _csv(file: Path) -> Piece:
    what = f"the data {str(file)!r}"

    def columns() -> pa.Schema:
        return pa.schema([(name, pa.large_string()) for name in header_at(file, what).names])

    def batches(names: list[str], rows: int) -> Batches:
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            yield from batches_of(lines, read_header(next(lines, ""), what), names)

    return Piece(file.name, columns, batches, f"{what} cannot be read as CSV", typed=False)


def dataset_origin(dataset: Any) -> Origin:
    """The files of a ``pyarrow.dataset.Dataset``, on whatever file system it opened them."""
    import pyarrow.dataset as ds

    parts = _parts(dataset, ds)
    found = [(part, list(part.get_fragments())) for part in parts]

    def state() -> object:
        return tuple(
            (info.path, info.size, info.mtime_ns)
            for part, fragments in found
            for info in part.filesystem.get_file_info([fragment.path for fragment in fragments])
            if _is_there(info)
        )

    first = state()
    pieces = [_fragment(part.schema, one, lambda: state() == first) for part, fragments in found for one in fragments]
    file_system = parts[0].filesystem.type_name
    prefix = "" if file_system == "local" else f"{file_system}:"
    paths = [one.path for _, fragments in found for one in fragments]
    if not prefix:
        _check_once([Path(path) for path in paths])
    elif len(set(paths)) < len(paths):
        raise InvalidInput("a file of the dataset is given twice, and its rows would count twice; give every file once")
    return Origin(tuple(pieces), state, place_of(prefix, [path if prefix else str(Path(path).resolve()) for path in paths]))


def _is_there(info: Any) -> bool:
    if not info.is_file:
        raise FileNotFoundError
    return True


def _parts(dataset: Any, ds: Any) -> list[Any]:
    """The datasets of files that a dataset is made of."""
    if isinstance(dataset, ds.UnionDataset):
        return [part for child in dataset.children for part in _parts(child, ds)]
    if not isinstance(dataset, ds.FileSystemDataset):
        raise InvalidInput(
            f"rows are given as {type(dataset).__name__}, which may be walked once only; give a dataset of files, or "
            "the table itself"
        )
    if dataset.format.default_extname not in READABLE_FORMATS:
        raise InvalidInput(
            f"the dataset is of .{dataset.format.default_extname} files, of which Arrow guesses types from values; give "
            "Parquet files, or the paths of CSV files themselves"
        )
    try:
        dataset.get_fragments()
    except ValueError:
        raise InvalidInput(
            "the dataset is filtered or projected; give the dataset itself: the schema chooses columns, and rows are chosen "
            "by writing them to files of their own"
        ) from None
    return [dataset]


def _fragment(declared: pa.Schema, fragment: Any, unchanged: Callable[[], bool]) -> Piece:
    name = Path(fragment.path).name

    def columns() -> pa.Schema:
        if not unchanged():
            raise InvalidInput("files of this dataset were written since it was opened; open it again. Nothing was charged")
        return _own_columns(declared, fragment)

    def batches(names: list[str], rows: int) -> Batches:
        return fragment_batches(declared, fragment, names, rows)

    return Piece(name, columns, batches, f"{name} of the dataset cannot be read")


def _own_columns(declared: pa.Schema, fragment: Any) -> pa.Schema:
    """In the file's own types: a cast to the dataset's may fail for a value. The rest is in the file's path, or null."""
    own = fragment.physical_schema
    return pa.schema([*own, *(field for field in declared if field.name not in own.names)])


def fragment_batches(declared: pa.Schema, fragment: Any, names: list[str], rows: int) -> Batches:
    """The rows of one file of a dataset."""
    options = None
    if fragment.format.default_extname == "parquet":  # which would be held whole
        options = fragment.format.default_fragment_scan_options
        options.pre_buffer = False
    yield from fragment.to_batches(
        schema=_own_columns(declared, fragment),
        columns=names,
        batch_size=rows,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
        cache_metadata=False,
        fragment_scan_options=options,
    )
