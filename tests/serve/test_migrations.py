"""The history of the tables: from a ledger of the first version to today's, without touching a row; twice is once."""

import subprocess
import sys
from contextlib import closing

import pytest
import sqlalchemy as sql
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import postgresql_server
from ledger_setup import BUDGET, KEY, ask
from vitrail.errors import LedgerError
from vitrail.ledger import open_ledger
from vitrail.ledger import tables as ledger_tables
from vitrail.serve import tables as service_tables
from vitrail.serve.operation import migrate

BOTH = (ledger_tables.METADATA, service_tables.METADATA)
INDEX = "vitrail_reservations_open"


@pytest.fixture(scope="module")
def server():
    if (why := postgresql_server.missing()) is not None:
        pytest.skip(why)
    with postgresql_server.running() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Where a ledger may be made: nothing is there yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.db'}"
        return
    where = request.getfixturevalue("server")
    empty(where)
    yield where
    empty(where)


def empty(where):
    engine = sql.create_engine(where)
    with engine.begin() as connection:
        for name in sql.inspect(connection).get_table_names():
            connection.execute(sql.text(f'DROP TABLE "{name}"'))
    engine.dispose()


def at_step(where, step):
    """Make tables by the steps alone, up to one of them, and forget that there were steps: as earlier versions left it."""
    engine = sql.create_engine(where)
    with engine.begin() as connection:
        migrate.take_steps(connection, step)
        connection.execute(sql.text(f"DROP TABLE {migrate.VERSION_TABLE}"))
    engine.dispose()


def all_rows(ledger):
    with ledger.database.transaction(read_only=True) as connection:
        tables = ledger_tables.METADATA.tables.values()
        return {table.name: sorted(map(repr, connection.execute(sql.select(table)))) for table in tables}


def written_indexes(connection):
    """Every index as the database writes it, conditions included, which Alembic does not compare."""
    where = {
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'vitrail%'",
    }[connection.dialect.name]
    found = {name: " ".join(text.split()) for name, text in connection.execute(sql.text(where))}
    return {name: text for name, text in found.items() if not name.startswith(migrate.VERSION_TABLE)}


def test_a_ledger_of_the_first_version_verifies_before_and_after(address):
    at_step(address, "0001")
    with closing(open_ledger(address)) as ledger:
        ledger.database._lacks_index = False  # it would get the index with its first charge; this one was made before
        ledger.open_account("adult", BUDGET, "add-remove")
        ledger.store(ask(ledger, 0.1, key=KEY), b"an answer")
        ask(ledger, 0.2, analyst="bob")
        before, rows = ledger.verify(), all_rows(ledger)
        assert before.ok
        assert before.accounts[0].n_questions == 2
        assert migrate.revision(ledger.database) is None
        assert migrate.upgrade(ledger.database) == ["0002", "0003"]
        assert migrate.revision(ledger.database) == migrate.head() == "0003"
        assert ledger.verify() == before
        assert all_rows(ledger) == rows
        assert migrate.upgrade(ledger.database) == []
        ask(ledger, 0.1)
        assert ledger.verify().ok


def test_steps_make_what_the_tables_of_today_say(address):
    """By the steps from nothing, and by ``create_all``: the same columns, types, nullability, keys and indexes."""
    at_step(address, migrate.head())
    engine = sql.create_engine(address)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), list(BOTH)) == []
        by_steps = written_indexes(connection)
        inspector = sql.inspect(connection)
        keys = {name: inspector.get_pk_constraint(name)["constrained_columns"] for name in inspector.get_table_names()}
    engine.dispose()
    empty(address)
    with engine.begin() as connection:
        for metadata in BOTH:
            metadata.create_all(connection)
        assert written_indexes(connection) == by_steps
        inspector = sql.inspect(connection)
        assert keys == {
            name: inspector.get_pk_constraint(name)["constrained_columns"] for name in inspector.get_table_names()
        }
    engine.dispose()
    assert INDEX in by_steps
    assert len(keys) == sum(len(metadata.tables) for metadata in BOTH)


def test_a_column_that_the_steps_forgot_would_be_found(address):
    at_step(address, migrate.head())
    engine = sql.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sql.text("ALTER TABLE vitrail_serve_jobs DROP COLUMN label"))
        connection.execute(sql.text(f"DROP INDEX {INDEX}"))
        found = compare_metadata(MigrationContext.configure(connection), list(BOTH))
    engine.dispose()
    assert {one[0] for one in found} == {"add_column", "add_index"}


@pytest.mark.parametrize(("made", "taken"), [("0001", ["0002", "0003"]), ("0002", ["0003"]), ("0003", [])])
def test_a_database_that_says_nothing_is_read_off_its_tables(address, made, taken):
    at_step(address, made)
    with closing(open_ledger(address)) as ledger:
        assert migrate.upgrade(ledger.database) == taken
        with ledger.database.transaction(read_only=True) as connection:
            assert sql.inspect(connection).has_index("vitrail_reservations", INDEX)
            assert sql.inspect(connection).has_table("vitrail_serve_panes")
        assert migrate.revision(ledger.database) == "0003"


def test_a_ledger_in_memory_is_upgraded_through_its_own_connection():
    with closing(open_ledger("memory")) as ledger:
        ledger.open_account("adult", BUDGET, "add-remove")
        assert migrate.upgrade(ledger.database) == ["0003"]
        assert migrate.upgrade(ledger.database) == []
        assert ledger.verify().ok


def test_a_database_of_a_newer_version_is_refused_and_left_alone(address):
    with closing(open_ledger(address)) as ledger:
        migrate.upgrade(ledger.database)
        with ledger.database.transaction(read_only=False) as connection:
            connection.execute(sql.text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0099'"))
        with pytest.raises(LedgerError, match=r"at step '0099'.*up to '0003'.*newer version"):
            migrate.upgrade(ledger.database)
        with pytest.raises(LedgerError, match="newer version"):
            migrate.check_known(ledger.database)
        assert migrate.revision(ledger.database) == "0099"


def test_a_service_that_lost_a_table_is_refused(address):
    at_step(address, "0003")
    engine = sql.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sql.text("DROP TABLE vitrail_serve_panes"))
    engine.dispose()
    with closing(open_ledger(address)) as ledger:
        with pytest.raises(LedgerError, match=r"lacks vitrail_serve_panes"):
            migrate.upgrade(ledger.database)
        assert migrate.revision(ledger.database) is None  # nothing of the attempt stayed


SERVER = """
import sys, pathlib, time
from vitrail.ledger import open_ledger
from vitrail.serve.operation import migrate
ledger, gate = open_ledger(sys.argv[1]), pathlib.Path(sys.argv[2])
migrate.head()
print("ready", flush=True)
while not gate.exists():
    time.sleep(0.001)
print(*migrate.upgrade(ledger.database))
"""


def test_servers_that_start_at_once_make_each_table_once(address, tmp_path):
    at_step(address, "0001")
    words = [sys.executable, "-c", SERVER, address, str(tmp_path / "gate")]
    servers = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    (tmp_path / "gate").touch()
    said = [server.communicate(timeout=60) for server in servers]
    assert [server.returncode for server in servers] == [0, 0, 0], said
    assert sorted(out for out, _ in said) == ["\n", "\n", "0002 0003\n"]
