"""Where rows are and who walks over them: this process, a pool of processes, or Spark."""

from __future__ import annotations

from ...errors import InvalidInput
from ...schema import Schema
from ..rows.persons import open_persons
from ..rows.sources import MappedRows, MemoryRows, RowSource
from ..rows.spark_frames import spark_rows
from .pool import Pool
from .row_pass import Engine


def open_with_engine(rows: object, schema: Schema, person: str | None, workers: int) -> tuple[RowSource, Engine | None]:
    """Open rows for so many processes; None where this one does it alone."""
    on_spark = spark_rows(rows, schema)
    if on_spark is not None:
        from .spark import Spark

        if person is not None:
            raise InvalidInput(
                "the rows are on Spark, and person= needs a person's rows together, which Spark would have to shuffle; "
                "declare rows_per_person=, or give a table with one row per person"
            )
        if workers > 1:
            raise InvalidInput(f"workers is {workers}, and the rows are on Spark, which has its own; leave it out")
        return on_spark, Spark(on_spark)
    source = open_persons(rows, schema, person)
    if workers == 1:
        return source, None
    if isinstance(source, MemoryRows):
        source = MappedRows.of(source.everything())
    return source, Pool(workers, source)
