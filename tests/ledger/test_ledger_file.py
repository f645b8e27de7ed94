"""The file of a SQLite ledger: who may read it, where it is made, and what survives a fork."""

import os
import sqlite3
import stat

import pytest

from vitrail.accounting import GaussianSum
from vitrail.accounting.guarantee import Budget
from vitrail.errors import LedgerError
from vitrail.ledger import SqlLedger, open_ledger
from vitrail.ledger.tables import METADATA

BUDGET = Budget(1.0, 1e-6)


def charge(ledger):
    return ledger.charge("adult", analyst="alice", event=GaussianSum(1.0, 40.0), question={}, key=None)


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_files_are_readable_by_their_owner_only(tmp_path, state_folder):
    ledger = SqlLedger(tmp_path / "ledger.db")
    ledger.open_account("adult", BUDGET, "add-remove")
    with ledger._database.transaction(read_only=False) as connection:
        connection.exec_driver_sql("UPDATE vitrail_accounts SET n_questions = n_questions + 1")  # now there is a journal
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    ledger.close()
    assert modes == dict.fromkeys(["ledger.db", "ledger.db-journal"], 0o600)
    records = list(state_folder.iterdir())
    assert len(records) == 2  # the account's and the lock
    assert {stat.S_IMODE(file.stat().st_mode) for file in records} == {0o600}


@pytest.mark.usefixtures("waits_for_the_disk")
def test_every_connection_is_durable(tmp_path):
    ledger = SqlLedger(tmp_path / "ledger.db")
    with ledger._database.transaction(read_only=False) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
        other = sqlite3.connect(tmp_path / "ledger.db", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
    ledger.close()


def test_readers_do_not_wait_for_a_writer(tmp_path):
    ledger = SqlLedger(tmp_path / "ledger.db")
    ledger.open_account("adult", BUDGET, "add-remove")
    with ledger._database.transaction(read_only=False):
        assert ledger.statement("adult").n_questions == 0
        assert ledger.verify().ok
    ledger.close()


def test_must_exist(tmp_path):
    path = tmp_path / "typo.db"
    with pytest.raises(LedgerError, match=r"There is no ledger at .*typo\.db"):
        SqlLedger(path, must_exist=True)
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerError, match="holds no ledger"):
        SqlLedger(path, must_exist=True)
    open_ledger(path).close()
    SqlLedger(f"sqlite:///{path}", must_exist=True).close()


def test_no_folder_is_made(tmp_path):
    with pytest.raises(LedgerError, match="there is no folder"):
        open_ledger(tmp_path / "nowhere" / "ledger.db")
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(LedgerError, match="is not a file"):
        open_ledger(tmp_path / "folder.db")


def test_another_file_is_not_taken_for_a_ledger(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(LedgerError, match="is no ledger"):
        open_ledger(path)


def test_a_later_format_is_refused(tmp_path):
    path = tmp_path / "ledger.db"
    open_ledger(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE vitrail_format SET version = 2")
    connection.close()
    with pytest.raises(LedgerError, match=r"has the format \[2\]; this version of vitrail reads \[1\]"):
        open_ledger(path)


@pytest.mark.parametrize("table", [name for name in METADATA.tables if name != "vitrail_format"])
def test_a_ledger_that_lacks_a_table_is_refused(tmp_path, table):
    path = tmp_path / "ledger.db"
    ledger = open_ledger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    with sqlite3.connect(path) as connection:
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    assert "The accounts cannot be read" in ledger.verify().problems[0]  # opened before, it is reported on
    ledger.close()
    with pytest.raises(LedgerError, match=f"lacks {table}: tables were removed, or never made"):
        open_ledger(path)


@pytest.mark.parametrize(
    "address", ["sqlite://", "sqlite:///:memory:", "sqlite:///x.db?mode=memory", "mysql://host/db", "nonsense://x", "://"]
)
def test_addresses_that_are_no_ledger(address):
    with pytest.raises(LedgerError, match=r"The ledger's address"):
        open_ledger(address)


@pytest.mark.parametrize("driver", ["pg8000", "psycopg", "psycopg2"])
def test_a_database_that_cannot_be_reached(driver):
    with pytest.raises(LedgerError) as caught:
        open_ledger(f"postgresql+{driver}://somebody:secret@localhost:1/nowhere")
    assert "secret" not in str(caught.value)


def test_a_change_of_directory_does_not_lead_to_another_ledger(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = open_ledger("ledger.db")
    ledger.open_account("adult", BUDGET, "add-remove")
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger._database.engine.dispose()  # the next transaction opens the file again
    charge(ledger)
    assert ledger.statement("adult").n_questions == 1
    assert not list((tmp_path / "elsewhere").iterdir())
    ledger.close()


def test_a_ledger_that_disappears_is_not_made_anew(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = open_ledger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    ledger._database.engine.dispose()
    path.unlink()
    with pytest.raises(LedgerError, match="unable to open database file"):
        charge(ledger)
    assert not ledger.verify().ok
    assert not path.exists()
    ledger.close()


def test_odd_characters_in_the_path(tmp_path):
    path = tmp_path / "a folder with ? # % and ü" / "ledger.db"
    path.parent.mkdir()
    ledger = open_ledger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    ledger.close()
    assert [file.name for file in path.parent.iterdir()] == ["ledger.db"]
    assert SqlLedger(path, must_exist=True).accounts() == ("adult",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_children_spend_from_one_purse_after_a_fork(tmp_path):
    ledger = open_ledger(tmp_path / "ledger.db")
    ledger.open_account("adult", BUDGET, "add-remove")
    charge(ledger)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                for _ in range(10):
                    charge(ledger)
                os._exit(0)
            except BaseException:
                os._exit(1)
        children.append(child)
    for _ in range(10):
        charge(ledger)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert ledger.statement("adult").n_questions == 41
    assert ledger.verify().ok
    ledger.close()
