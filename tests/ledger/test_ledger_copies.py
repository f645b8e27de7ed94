"""Copies of a ledger: each holds every charge, and an older one, or an empty file in its place, is noticed."""

import itertools
import json
import shutil
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from vitrail.accounting import GaussianSum
from vitrail.errors import LedgerError, LedgerRolledBack, LedgerWarning
from vitrail.ledger import SqlLedger, high_water, open_ledger

BUDGET = vt.Budget(5.0, 1e-6)
EVENT = GaussianSum(1.0, 64.0)
CHILD = """
import os, signal, sys
import vitrail as vt
from vitrail.accounting import GaussianSum
from vitrail.ledger import open_ledger

ledger = open_ledger(sys.argv[1])
ledger.open_account("adult", vt.Budget(5.0, 1e-6), "add-remove")

def charge():
    seq = ledger.charge("adult", analyst="alice", event=GaussianSum(1.0, 64.0), question={}, key=None).seq
    print(seq, flush=True)
"""


def opened(path, data=None):
    ledger = open_ledger(path)
    ledger.open_account("adult", BUDGET, "add-remove", data=data)
    return ledger


def charge(ledger, times=1):
    for _ in range(times):
        receipt = ledger.charge("adult", analyst="alice", event=EVENT, question={}, key=None)
    return receipt


def charged(path):
    """How many charges a lone file holds, without this library."""
    connection = sqlite3.connect(path)
    records = connection.execute("SELECT record FROM vitrail_entries").fetchall()
    connection.close()
    return sum(json.loads(record)["kind"] == "charged" for (record,) in records)


def start(path, script):
    return subprocess.Popen([sys.executable, "-c", CHILD + script, str(path)], stdout=subprocess.PIPE, text=True)


def record_file(state_folder):
    (file,) = state_folder.glob("*.json")
    return file


# Every charge is in the one file


def test_a_plain_copy_of_an_open_ledger_holds_every_charge(tmp_path):
    ledger = opened(tmp_path / "ledger.db")
    for number in range(1, 6):
        charge(ledger)
        copy = tmp_path / f"copy{number}.db"
        shutil.copyfile(tmp_path / "ledger.db", copy)
        assert charged(copy) == number
    ledger.close()


def test_a_plain_copy_of_a_killed_ledger_holds_every_charge(tmp_path):
    child = start(tmp_path / "ledger.db", "for _ in range(7): charge()\nos.kill(os.getpid(), signal.SIGKILL)")
    output, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert len(output.splitlines()) == 7
    shutil.copyfile(tmp_path / "ledger.db", tmp_path / "copy.db")
    assert charged(tmp_path / "copy.db") == 7


@pytest.mark.parametrize("may_write", [True, False])
def test_a_ledger_with_a_write_ahead_log_is_refused(tmp_path, may_write):
    """Its charges may be in the log, which a copy of the file leaves behind. It opens again once they are in the file."""
    path = tmp_path / "ledger.db"
    ledger = opened(path)
    ledger._database.engine.dispose()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    charge(ledger, 3)
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    path.chmod(0o600 if may_write else 0o400)
    for file in (path, copy):
        for there in (opened, SqlLedger):
            with pytest.raises(LedgerError, match="has a write-ahead log, and a plain copy of it would lack charges"):
                there(file)
    assert copy.read_bytes()[18:20] == b"\x02\x02"  # left as it was
    path.chmod(0o600)
    ledger.close()
    assert connection.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    connection.close()
    assert charged(path) == 3
    ledger = opened(path)
    assert ledger.verify().ok
    charge(ledger)
    ledger.close()


@pytest.mark.parametrize("log", ["-wal", "-journal"])
def test_an_emptied_file_beside_its_log_is_refused_and_the_log_stays(tmp_path, log):
    path = tmp_path / "ledger.db"
    path.touch()
    journal_header = bytes.fromhex("d9d505f920a163d7") + bytes(7) + b"\x01" + bytes(3) + b"\x05"
    (tmp_path / f"ledger.db{log}").write_bytes(journal_header.ljust(4096, b"\x01"))
    for there in (True, False):
        with pytest.raises(LedgerError, match=r"is empty or gone, and .*ledger\.db-\w+ says that it was not"):
            open_ledger(path)
        assert (tmp_path / f"ledger.db{log}").exists()
        if there:
            path.unlink()


def test_a_database_without_a_ledger_does_not_become_one(tmp_path):
    """As a copy of a ledger with a write-ahead log is without the log: 4 096 bytes that had the whole budget again."""
    connection = sqlite3.connect(tmp_path / "live.db")
    connection.execute("PRAGMA journal_mode=WAL")
    shutil.copyfile(tmp_path / "live.db", tmp_path / "copy.db")
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("CREATE TABLE other (number)")
    connection.close()
    assert (tmp_path / "copy.db").stat().st_size == 4096
    with pytest.raises(LedgerError, match="has a write-ahead log"):
        open_ledger(tmp_path / "copy.db")
    with pytest.raises(LedgerError, match="is a database without a ledger"):
        open_ledger(tmp_path / "live.db")


# An older copy is noticed


@pytest.mark.parametrize("how", ["emptied", "deleted"])
def test_an_account_that_is_known_does_not_begin_anew(tmp_path, state_folder, how):
    path = tmp_path / "ledger.db"
    ledger = opened(path)
    charge(ledger, 3)
    ledger.close()
    path.write_bytes(b"") if how == "emptied" else path.unlink()
    with pytest.raises(LedgerRolledBack) as caught:
        opened(path)
    text = str(caught.value)
    assert f"The ledger {path} has no account 'adult'" in text
    assert f"the record {record_file(state_folder)} says that it had 4 entries" in text
    assert text.endswith("Nothing was charged.")
    assert SqlLedger(path).accounts() == ()
    record_file(state_folder).unlink()  # the owner's decision
    charge(opened(path))


def test_an_older_copy_in_its_place_is_noticed(tmp_path, state_folder):
    path = tmp_path / "ledger.db"
    ledger = opened(path)
    receipt = charge(ledger, 2)
    ledger.store(receipt, b"answer")
    shutil.copyfile(path, tmp_path / "older.db")
    charge(ledger, 3)
    ledger.close()
    (tmp_path / "older.db").replace(path)
    with pytest.raises(LedgerRolledBack, match=r"with 4 entries .* had 7 entries"):
        opened(path)
    older = SqlLedger(path)
    refused = "Nothing was charged."
    for attempt in (
        lambda: charge(older),
        lambda: older.charge("adult", analyst="alice", event=EVENT, question={}, key="ab" * 32),
        lambda: older.cap_analyst("adult", "bob", vt.Budget(1.0, 1e-6)),
        lambda: older.keep("adult", analyst="alice", name="notes", content=b""),
    ):
        with pytest.raises(LedgerRolledBack, match=refused):
            attempt()
    assert older.statement("adult").n_questions == 2  # it can be read
    (problem,) = older.verify().problems
    assert "ends at entry 4; a record outside the ledger knows 7 entries of it" in problem
    record_file(state_folder).unlink()  # the owner's decision
    charge(older)
    assert older.verify().ok
    older.close()


def test_a_copy_put_under_a_running_ledger_is_noticed(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = opened(path)
    charge(ledger)
    shutil.copyfile(path, tmp_path / "older.db")
    charge(ledger)
    (tmp_path / "older.db").replace(path)
    ledger._database.engine.dispose()  # the next transaction opens the file that is there now
    with pytest.raises(LedgerRolledBack):
        charge(ledger)
    ledger.close()


def test_of_two_copies_one_can_be_spent_from(tmp_path):
    ledger = opened(tmp_path / "ledger.db")
    charge(ledger)
    shutil.copyfile(tmp_path / "ledger.db", tmp_path / "copy.db")
    copy = opened(tmp_path / "copy.db")
    charge(copy)
    with pytest.raises(LedgerRolledBack):
        charge(ledger)
    charge(copy)
    ledger.close()
    copy.close()


def test_a_ledger_may_move_and_another_may_have_an_account_of_that_name(tmp_path):
    ledger = opened(tmp_path / "ledger.db")
    charge(ledger)
    ledger.close()
    (tmp_path / "ledger.db").rename(tmp_path / "moved.db")
    moved = opened(tmp_path / "moved.db")
    charge(moved)
    other = opened(tmp_path / "ledger.db")  # other rows of that name: nothing says that they are the same
    charge(other)
    charge(moved)
    assert moved.verify().ok
    assert other.verify().ok
    moved.close()
    other.close()


def test_rows_in_a_file_have_one_account_of_a_name_whatever_the_ledger(tmp_path):
    pq.write_table(pa.table({"x": np.linspace(0, 1, 50)}), tmp_path / "rows.parquet")

    def data(ledger):
        schema = vt.Schema({"x": vt.Numeric(0, 1)})
        return vt.PrivateData(
            tmp_path / "rows.parquet", schema, name="rows", n_rows_public=50, budget=vt.Budget(1, 1e-6), ledger=ledger
        )

    question = vt.BoundedSum(lambda block: block.features, 1, 1.0)
    data(tmp_path / "ledger.db").ask(question, epsilon=0.3)
    shutil.copyfile(tmp_path / "ledger.db", tmp_path / "older.db")
    data(tmp_path / "ledger.db").ask(question, epsilon=0.3)
    for other in ("older.db", "new.db"):
        with pytest.raises(LedgerRolledBack, match=r"for the rows in .*rows\.parquet"):
            data(tmp_path / other)
    with pytest.raises(LedgerError, match=r"have an account 'rows' in the ledger .*ledger\.db, and no ledger was named"):
        data(None)
    assert data("memory").budget.spent_epsilon == 0  # decided, not forgotten
    assert data(tmp_path / "ledger.db").budget.n_questions == 2


def test_a_torn_copy_forgets_no_charge(tmp_path, state_folder):
    """A copy made in the middle of a commit has some pages of before and some of after: every mixture is tried."""
    path, page = tmp_path / "ledger.db", 4096
    ledger = opened(path)
    charge(ledger, 4)
    before = path.read_bytes()
    charge(ledger)
    after = path.read_bytes()
    ledger.close()
    changed = [n for n in range(0, len(after), page) if after[n : n + page] != before[n : n + page]]
    assert 2 <= len(changed) <= 8
    record, seen = record_file(state_folder), {"refused": 0, "whole": 0}
    known = record.read_text()
    for kept in itertools.chain.from_iterable(itertools.combinations(changed, n) for n in range(len(changed) + 1)):
        torn = bytearray(after)
        for place in kept:
            torn[place : place + page] = before[place : place + page]
        path.write_bytes(torn)
        record.write_text(known)
        try:
            charge(opened(path))
        except LedgerError:
            seen["refused"] += 1
        else:
            assert charged(path) == 6
            seen["whole"] += 1
    assert seen["whole"] >= 1
    assert seen["refused"] >= 2


# The record lags, and never leads


def test_a_crash_between_the_charge_and_its_record_is_no_alarm(tmp_path, state_folder):
    die = """
from vitrail.ledger.high_water import HighWaterMarks
charge()
HighWaterMarks.keep = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
charge()
"""
    child = start(tmp_path / "ledger.db", die)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert json.loads(record_file(state_folder).read_text())["seq"] == 2
    ledger = opened(tmp_path / "ledger.db")
    assert ledger.statement("adult").n_questions == 2  # the charge stands
    assert ledger.verify().ok
    charge(ledger)
    assert json.loads(record_file(state_folder).read_text())["seq"] == 4
    ledger.close()


def test_the_record_of_many_processes_ends_at_the_last_charge(tmp_path, state_folder):
    children = [start(tmp_path / "ledger.db", "for _ in range(25): charge()") for _ in range(4)]
    told = [int(line) for child in children for line in child.communicate()[0].splitlines()]
    assert [child.returncode for child in children] == [0] * 4
    assert len(told) == 100
    known = json.loads(record_file(state_folder).read_text())
    ledger = SqlLedger(tmp_path / "ledger.db")
    assert known["seq"] == max(told) == 101
    assert known["head"] == ledger.statement("adult").head
    assert known["spent"]["pico_mu_squared"] == ledger.statement("adult").spent.pico_mu_squared
    ledger.close()


def test_where_no_record_can_be_kept_it_is_said_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("VITRAIL_STATE", str(tmp_path / "file"))
    monkeypatch.setattr(high_water, "_SAID", set())
    with pytest.warns(LedgerWarning, match="an older copy of a ledger would not be noticed") as caught:
        charge(ledger := opened(tmp_path / "ledger.db"), 3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert ledger.statement("adult").n_questions == 3
    assert ledger.verify().accounts[0].recorded is None
    ledger.close()


def test_a_record_that_cannot_be_read_is_named(tmp_path, state_folder):
    ledger = opened(tmp_path / "ledger.db")
    record_file(state_folder).write_text("{}")
    with pytest.raises(LedgerError, match=r"The record .*\.json of how far an account has come cannot be read"):
        charge(ledger)
    assert "cannot be read" in ledger.verify().problems[0]
    ledger.close()


def test_a_database_that_lost_its_account_is_noticed(emptied_database):
    ledger = opened(emptied_database())
    charge(ledger, 2)
    ledger.close()
    with pytest.raises(LedgerRolledBack, match="has no account 'adult'"):
        opened(emptied_database())


# Backups


def test_a_backup_is_the_ledger_between_two_charges_while_others_charge(tmp_path):
    path = tmp_path / "ledger.db"
    children = [start(path, "while True: charge()") for _ in range(2)]
    try:
        for child in children:
            assert child.stdout.readline()
        ledger = SqlLedger(path, must_exist=True)
        for number in range(4):
            known = ledger.statement("adult").n_questions
            found = ledger.backup(tmp_path / f"backup{number}.db")
            assert found.ok
            assert found.accounts[0].n_questions >= known
            assert charged(tmp_path / f"backup{number}.db") == found.accounts[0].n_questions
        ledger.close()
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert not list(tmp_path.glob(".*"))


def test_a_backup_replaces_nothing_unless_told(tmp_path):
    ledger = opened(tmp_path / "ledger.db")
    charge(ledger)
    ledger.backup(tmp_path / "backup.db")
    charge(ledger)
    with pytest.raises(LedgerError, match=r"There is something at .*backup\.db already"):
        ledger.backup(tmp_path / "backup.db")
    assert charged(tmp_path / "backup.db") == 1
    for overwrite in (False, True):
        with pytest.raises(LedgerError, match="would replace the ledger"):
            ledger.backup(tmp_path / "ledger.db", overwrite=overwrite)
    with pytest.raises(LedgerError, match="there is no folder"):
        ledger.backup(tmp_path / "nowhere" / "backup.db")
    ledger.backup(tmp_path / "backup.db", overwrite=True)
    assert charged(tmp_path / "backup.db") == 2
    charge(ledger)
    ledger.close()
    with pytest.raises(LedgerRolledBack):
        opened(tmp_path / "backup.db")


def test_a_ledger_that_does_not_hold_is_not_backed_up(tmp_path):
    ledger = opened(tmp_path / "ledger.db")
    charge(ledger, 2)
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("UPDATE vitrail_entries SET record = '[]' WHERE seq = 2")
    connection.close()
    (tmp_path / "backup.db").write_bytes(b"the last good one")
    with pytest.raises(LedgerError, match="does not hold, so no backup was written"):
        ledger.backup(tmp_path / "backup.db", overwrite=True)
    assert (tmp_path / "backup.db").read_bytes() == b"the last good one"
    ledger.close()
