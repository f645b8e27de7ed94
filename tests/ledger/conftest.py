"""The ledgers that every behaviour is tested on.

PostgreSQL joins when ``VITRAIL_TEST_POSTGRESQL`` holds the address of a database that may be emptied.
"""

import os

import pytest
from sqlalchemy import create_engine

from vitrail.ledger import open_ledger
from vitrail.ledger.tables import METADATA

POSTGRESQL = os.environ.get("VITRAIL_TEST_POSTGRESQL")


@pytest.fixture
def emptied_database():
    """Empties the database and says where it is."""
    if POSTGRESQL is None:
        pytest.skip("needs a database")

    def empty():
        engine = create_engine(POSTGRESQL)
        METADATA.drop_all(engine)
        engine.dispose()
        return POSTGRESQL

    yield empty
    empty()


@pytest.fixture(params=["memory", "sqlite", *(["postgresql"] if POSTGRESQL else [])])
def address(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("emptied_database")()
    return {"memory": "memory", "sqlite": tmp_path / "ledger.db"}[request.param]


@pytest.fixture
def ledger(address):
    opened = open_ledger(address)
    yield opened
    opened.close()
