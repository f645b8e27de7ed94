"""`vitrail schema check`: whether a schema is sound, and whether points fit it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..schema import Numeric, Schema
from .output import existing, print_line, print_table, read_json


def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA.json", help="The schema.")],
    points: Annotated[
        Path | None, typer.Argument(metavar="[POINT.json]", help="One point (an object), or a list of them. Public.")
    ] = None,
) -> None:
    """Check a schema and, if given, public points against it."""
    declared = Schema.load(existing(schema, "schema"))
    if points is not None:
        found = declared.read_points(read_json(points, "point"))
        print_line(f"{len(found)} point{'s fit' if len(found) != 1 else ' fits'} the schema {schema}.")
        return
    rows = [
        (
            name,
            "numeric" if isinstance(column, Numeric) else "categorical",
            column.allowed,
            "the row counts zero" if column.missing is None else f"read as {column.missing!r}",
        )
        for name, column in declared.items()
    ]
    print_table(("column", "kind", "allowed", "missing"), rows)
    print_line(f"{declared.n_columns} columns, {declared.n_features} features. Digest {declared.digest()[:12]}.")
