"""A house with four people and two datasets, and databases with the service's tables in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitrail.ledger import open_ledger
from vitrail.ledger.database import Database
from vitrail.serve.house import House, read_house
from vitrail.serve.tables import METADATA

DECLARATION = """
format = 1
[dataset]
name = "{name}"
source = "rows.csv"
rows = 100
[budget]
epsilon = 1.0
ledger = "postgresql+psycopg://vitrail@localhost/never_opened"
[columns.age]
kind = "integer"
low = 0
high = 120
"""
PEOPLE = """
[people.alice]
role = "analyst"
datasets = ["census"]
[people.bob]
role = "analyst"
[people.rita]
role = "reader"
[people.adam]
role = "auditor"
"""


def house_in(folder: Path, people: str = PEOPLE, service: str = "", oidc: str = "") -> House:
    """A house that is read from files, as the service reads it."""
    (folder / "rows.csv").write_text("age\n" + "40\n" * 100)
    for name in ("census", "visits"):
        (folder / f"{name}.toml").write_text(DECLARATION.format(name=name))
    datasets = '[datasets.census]\ndeclaration = "census.toml"\n[datasets.visits]\ndeclaration = "visits.toml"\n'
    (folder / "house.toml").write_text(f"format = 1\n[service]\n{service}\n{datasets}{people}{oidc}")
    return read_house(folder / "house.toml")


@contextmanager
def database_at(address: str | Path) -> Iterator[Database]:
    """A database with empty tables of the service."""
    ledger = open_ledger(address)
    try:
        with ledger.database.transaction(read_only=False) as connection:
            METADATA.drop_all(connection)
            METADATA.create_all(connection)
        yield ledger.database
    finally:
        ledger.close()
