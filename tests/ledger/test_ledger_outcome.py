"""What an error says about the charge and the rows is true at the moment it is raised."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import GaussianSum
from vitrail.errors import LedgerCorrupted, LedgerError
from vitrail.ledger import SqlLedger

EVENT = GaussianSum(1.0, 64.0)
SCHEMA = vt.Schema({"x": vt.Numeric(0, 1)})
NO_LOOK = ("No row was", "no row was", "Nothing was charged", "nothing was charged")


class Failing(SqlLedger):
    """A ledger whose place disappears after it has charged."""

    def charge(self, *args, **kwargs):
        charged = super().charge(*args, **kwargs)
        self._database.engine.dispose()
        path = Path(self._database.where)
        path.rename(f"{path}.away")
        return charged


def test_an_answer_that_cannot_be_stored_was_paid_and_looked_for(tmp_path):
    ledger = Failing(tmp_path / "ledger.db")
    read = []

    def features(block):
        read.append(len(block))
        return block.features

    rows = {"x": np.linspace(0, 1, 40)}
    data = vt.PrivateData(rows, SCHEMA, name="a", n_rows_public=40, budget=vt.Budget(1, 1e-6), ledger=ledger)
    with pytest.raises(LedgerError, match="unable to open database file") as caught:
        data.ask(vt.BoundedSum(features, 1, 1.0), epsilon=0.5)
    text = str(caught.value)
    assert "Charge 2 of account 'a' stands, and the rows were read for it; the answer was not stored" in text
    assert "then ask again. A question with a key is then answered under the same charge; one without is a new" in text
    assert not any(words in text for words in NO_LOOK)
    (tmp_path / "ledger.db.away").rename(tmp_path / "ledger.db")
    assert SqlLedger(tmp_path / "ledger.db").statement("a").n_questions == 1  # as the message says


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_chain_that_breaks_before_the_answer_is_stored(tmp_path, kind):
    ledger = SqlLedger("memory" if kind == "memory" else tmp_path / "ledger.db")
    ledger.open_account("a", vt.Budget(1, 1e-6), "add-remove")
    receipt = ledger.charge("a", analyst="alice", event=EVENT, question={}, key=None)
    with ledger._database.transaction(read_only=False) as connection:
        connection.exec_driver_sql("DELETE FROM vitrail_entries WHERE seq = 2")
    with pytest.raises(LedgerCorrupted, match="Charge 2 of account 'a' stands, and the rows were read for it") as caught:
        ledger.store(receipt, b"answer")
    assert not any(words in str(caught.value) for words in NO_LOOK)
    with pytest.raises(LedgerCorrupted, match=r"Nothing was charged\.$"):
        ledger.charge("a", analyst="alice", event=EVENT, question={}, key=None)
    ledger.close()


def test_a_charge_that_fails_at_its_commit_is_not_said_to_be_none(tmp_path, monkeypatch):
    ledger = SqlLedger(tmp_path / "ledger.db")
    ledger.open_account("a", vt.Budget(1, 1e-6), "add-remove")
    commit = ledger._database.engine.dialect.do_commit

    def committed_and_failed(connection):
        commit(connection)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(ledger._database.engine.dialect, "do_commit", committed_and_failed)
    with pytest.raises(LedgerError, match="disk I/O error") as caught:
        ledger.charge("a", analyst="alice", event=EVENT, question={}, key=None)
    assert "No row was read for this question. Whether its charge was recorded" in str(caught.value)
    assert "Nothing was charged" not in str(caught.value)
    monkeypatch.undo()
    assert ledger.statement("a").n_questions == 1  # it was
    ledger.close()


def test_looking_at_a_ledger_says_nothing_about_rows(tmp_path):
    ledger = SqlLedger(tmp_path / "ledger.db")
    ledger.open_account("a", vt.Budget(1, 1e-6), "add-remove")
    ledger._database.engine.dispose()
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(LedgerError, match="unable to open database file") as caught:
        ledger.statement("a")
    assert str(caught.value).endswith("could not complete a transaction (unable to open database file).")
    ledger.close()


FORGETFUL = """
import warnings
import vitrail as vt

def data(**more):
    return vt.PrivateData(
        {"x": [0.5]}, vt.Schema({"x": vt.Numeric(0, 1)}), name="a", n_rows_public=1, budget=vt.Budget(1, 1e-6), **more
    )

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    data(ledger="memory")
    assert not seen
    for _ in range(5):
        data()
for one in seen:
    print(one.category.__name__, one.filename, one.lineno, one.message)
"""


def test_data_without_a_ledger_says_once_that_its_bill_is_forgotten(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FORGETFUL)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    assert line.startswith(
        f"LedgerWarning {script} 6 This data has no ledger, so what is spent is forgotten when this process"
    )
    assert "ledger='sqlite:///ledger.db'" in line
    assert "ledger='memory'" in line
