"""The ledgers that every behaviour is tested on: in memory, in a file, and in PostgreSQL where it is found."""

import pytest
from sqlalchemy import create_engine

import postgresql_server
from ledger_setup import BUDGET
from vitrail.ledger import open_ledger
from vitrail.ledger.tables import METADATA


@pytest.fixture(scope="session")
def database():
    """The address of a database that may be emptied."""
    if (why := postgresql_server.missing()) is not None:
        pytest.skip(why)
    with postgresql_server.running() as address:
        yield address


@pytest.fixture
def emptied_database(database):
    """Empties the database and says where it is."""

    def empty():
        engine = create_engine(database)
        METADATA.drop_all(engine)
        engine.dispose()
        return database

    yield empty
    empty()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("emptied_database")()
    return {"memory": "memory", "sqlite": tmp_path / "ledger.db"}[request.param]


@pytest.fixture
def ledger(address):
    opened = open_ledger(address)
    yield opened
    opened.close()


@pytest.fixture
def adult(ledger):
    ledger.open_account("adult", BUDGET, "add-remove")
    return ledger
