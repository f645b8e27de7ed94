"""Which of the things that a user gives as rows lie elsewhere, and where."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ...errors import InvalidInput
from .databases import table_origin
from .files import dataset_origin, files_origin
from .pieces import Origin
from .streams import dataset_of_hugging_face, function_origin, lazy_origin
from .tables import Table


def origin_of(rows: object) -> Origin | None:
    """Where the rows lie; None for what is held in memory. Raises InvalidInput, and looks at no row."""
    if isinstance(rows, str | Path):
        return files_origin([rows])
    if isinstance(rows, list | tuple) and rows and all(isinstance(path, str | Path) for path in rows):
        return files_origin(rows)
    if isinstance(rows, Table):
        return table_origin(rows)
    if _is_a(rows, "pyarrow.dataset", "Dataset"):
        return dataset_origin(rows)
    if _is_a(rows, "polars", "LazyFrame"):
        return lazy_origin(rows, sys.modules["polars"])
    if _is_a(rows, "datasets", "Dataset"):
        return dataset_of_hugging_face(rows)
    for name in ("DatasetDict", "IterableDataset", "IterableDatasetDict"):
        if _is_a(rows, "datasets", name):
            raise InvalidInput(
                f"rows are given as {name}; give one split of a dataset that is not streamed: a datasets.Dataset"
            )
    return function_origin(rows) if callable(rows) else None


def _is_a(rows: Any, module: str, name: str) -> bool:
    """Whether rows are of a class of a library, which they are only if somebody has imported it."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(rows, kind)
