"""Rows in a Spark table or in files that Spark reads. They never come here: the question goes to them (``engines.spark``).

*A data frame is a query*, and most queries make what a row contributes depend on other rows; some give other rows when a
part of them is computed again. So a frame is taken only where its plan is a scan of Parquet or ORC files (a table of such
files, a view of one) or rows that the driver holds, and above it nothing but selections of columns, perhaps under other
names, and ``coalesce``, which only joins parts. The parts of such a scan are ranges of files that Spark fixes when it
begins, so a part that is read again, because a task was lost or a second copy was started, holds the same rows; no row is
in two parts. A shuffle, a filter, a limit or a join is refused, as is a file that is given twice, which Spark would read
twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from ... import _checks
from ..._types import Floats
from ...errors import InvalidInput, SchemaError
from ...nothing_escapes import attempt
from ...schema import Schema
from .files import place_of
from .sources import RowSource
from .tables import Table, quoted_in_spark

FORMATS = ("Parquet", "ORC")
WHAT_TO_DO = "write its result as a Parquet table that the owner approves of, and give that: spark.table(...)"


class SparkRows(RowSource):
    """The rows of a Spark data frame, as a plain scan."""

    keeps_order = False

    def __init__(self, frame: Any, schema: Schema, place: str | None = None) -> None:
        self.frame, self._schema = frame, schema
        self._relations = _relations(frame)
        files = [str(path) for relation in self._relations for path in relation.location().inputFiles()]
        if len(set(files)) < len(files):
            raise InvalidInput(
                "a file of the Spark data frame is given twice; its rows would count twice, and nobody's promise would "
                "hold: give every file once"
            )
        roots = [path.removeprefix("file:") for relation in self._relations for path in _paths(relation)]
        self.place = place or (place_of("", roots) if roots else None)
        self._check_columns()

    def _check_columns(self) -> None:
        names = self.frame.columns
        missing = [name for name in self._schema.names if names.count(name) == 0]
        if missing:
            raise SchemaError(
                f"the Spark data frame has no column {_checks.listed([*map(repr, missing)])} that the schema declares; it "
                f"has {_checks.listed([*map(repr, names)])}"
            )
        twice = [name for name in self._schema.names if names.count(name) > 1]
        if twice:
            raise SchemaError(f"the Spark data frame has two columns {twice[0]!r}; give them names of their own")
        typed = attempt(lambda: arrow_schema(self.selected().schema), None)
        if typed is None:
            raise SchemaError("a column of the Spark data frame has a type that Arrow has no match for; cast it to a number")
        self._schema.read(pa.Table.from_batches([], schema=typed))

    def selected(self) -> Any:
        """The declared columns, in the order of the schema."""
        return self.frame.select(*map(quoted_in_spark, self._schema.names))

    def parts(self) -> int:
        """In how many parts Spark reads them."""
        return int(self.selected()._jdf.queryExecution().toRdd().getNumPartitions())

    def check(self) -> None:
        """See that files are still there."""
        configuration = self.frame.sparkSession._jsparkSession.sessionState().newHadoopConf()

        def is_there(path: Any) -> bool:
            return bool(path.getFileSystem(configuration).exists(path))

        for root in (root for relation in self._relations for root in _items(relation.location().rootPaths())):
            if not attempt(partial(is_there, root), False):
                raise InvalidInput("files of the Spark data frame are gone; open the data again. Nothing was charged")

    def chunks(self, rows: int) -> Iterator[Floats]:
        """They are on Spark's side."""
        raise InvalidInput("rows on Spark are not brought here")


def spark_rows(rows: object, schema: Schema) -> SparkRows | None:
    """The rows of a data frame of Spark's, or of a table by its name; None for anything else."""
    if isinstance(rows, Table):
        return SparkRows(frame_of(rows), schema, rows.place) if rows.kind == "spark" else None
    if not any(kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in type(rows).__mro__):
        return None
    return SparkRows(rows, schema)


def frame_of(table: Table) -> Any:
    """The data frame of a table, in the session that is active, or in one with the cluster's own configuration."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidInput("a Spark table needs the package pyspark; install vitrail[spark]") from None
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    found = attempt(lambda: session.table(str(table.name)), None)
    if found is None:
        raise InvalidInput(f"{table} cannot be opened; see that Spark's session has a table or view of this name")
    return found


def arrow_schema(schema: Any) -> pa.Schema:
    """Columns of Spark as it hands them over; moments in UTC, whatever the session's time zone is."""
    from pyspark.sql.pandas.types import to_arrow_schema

    newer = "timezone" in inspect.signature(to_arrow_schema).parameters  # 4.0 has UTC of its own accord
    return to_arrow_schema(schema, **({"timezone": "UTC"} if newer else {}))


def _relations(frame: Any) -> list[Any]:
    """The scans of files that a frame is made of; a frame that is anything more than that is refused."""
    if not hasattr(frame, "_jdf"):
        raise InvalidInput(
            "rows are given as a data frame of Spark Connect, whose plan cannot be looked at; open it in a session on the "
            "cluster itself"
        )
    found: list[Any] = []
    _walk(frame._jdf.queryExecution().analyzed(), found)
    return found


def _walk(node: Any, found: list[Any]) -> None:
    kind = node.getClass().getSimpleName()
    if kind == "LogicalRelation":
        relation = node.relation()
        if relation.getClass().getSimpleName() != "HadoopFsRelation" or relation.fileFormat().toString() not in FORMATS:
            raise InvalidInput(
                "the Spark data frame reads something else than Parquet or ORC files; types of texts are guessed from "
                f"values, and a database may give other rows when it is asked again: {WHAT_TO_DO}"
            )
        found.append(relation)
        return
    if kind == "LocalRelation":
        return
    plain = (
        kind in ("SubqueryAlias", "View")
        or (kind == "Repartition" and not node.shuffle())
        or (kind == "Project" and all(map(_is_a_column, _items(node.projectList()))))
    )
    if not plain:
        raise InvalidInput(
            f"the Spark data frame is a query ({kind}); filters, limits, joins, windows, samples and shuffles may make what "
            f"a row contributes depend on other rows, or count it twice when a task is run again: {WHAT_TO_DO}"
        )
    for child in _items(node.children()):
        _walk(child, found)


def _is_a_column(expression: Any) -> bool:
    kind = expression.getClass().getSimpleName()
    if kind == "Alias" or (kind == "Cast" and expression.dataType().equals(expression.child().dataType())):  # as in views
        return _is_a_column(expression.child())
    return bool(kind == "AttributeReference")


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _paths(relation: Any) -> list[str]:
    return [str(path.toString()) for path in _items(relation.location().rootPaths())]
