"""The tables on promises about people, from benchmarks/results/persons.json."""

from __future__ import annotations

from page_tables import Lines, Tables, how, rows_of, table


def accuracy() -> Lines:
    """By result and price: the error under three promises."""
    lines = [
        (row["of"], row["epsilon"], *(f"{row[promise]:.2g}" for promise in ("rows", "person", "declared")))
        for row in rows_of("persons", "accuracy")
    ]
    return table(("error of", "epsilon", "about one row", "`person=`", "`rows_per_person=40`"), lines)


def bands() -> Lines:
    """By price: how often bands of groups hold for people."""
    lines = [
        (
            row["epsilon"],
            f"{row['held']:.1%}",
            f"{row['worst']:.1%}, {row['worst_cell'].replace('_', ' ')}",
            f"{row['width']:.2f} x",
        )
        for row in rows_of("persons", "bands")
    ]
    return table(("epsilon", "held", "worst number", "width over the oracle's"), lines)


TABLES: Tables = {
    "persons.accuracy": accuracy,
    "persons.bands": bands,
    "persons.how": lambda: how("persons", "accuracy", "bands", "time"),
}
