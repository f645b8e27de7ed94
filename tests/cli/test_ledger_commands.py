"""`vitrail ledger backup`, and what the commands say about copies."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from vitrail.accounting import Cost, GaussianSum
from vitrail.ledger import high_water, open_ledger

ASK = ["marginals", "people.parquet", "--schema", "schema.json", "--rows", 500, "--budget", 1, "-o", "r.html"]


@pytest.fixture(autouse=True)
def _people(tmp_path):
    pq.write_table(pa.table({"age": np.arange(500) % 100}), tmp_path / "people.parquet")
    vt.Schema({"age": vt.Numeric(0, 99, integer=True)}).save(tmp_path / "schema.json")


def ask(run, ledger, epsilon):
    return run(*ASK, "--ledger", ledger, "--epsilon", epsilon)


def test_a_backup_is_written_verified_and_not_replaced(run):
    assert ask(run, "l.db", 0.2)[0] == 0
    code, out, _ = run("ledger", "backup", "l.db", "b.db")
    assert code == 0
    assert "Account 'people': 6 entries, head " in out
    assert "The copy b.db holds what the ledger held." in out
    code, out, _ = run("ledger", "verify", "b.db")
    assert (code, "The ledger holds." in out) == (0, True)
    code, _, err = run("ledger", "backup", "l.db", "b.db")
    assert code == 2
    assert "There is something at" in err
    assert run("ledger", "backup", "l.db", "b.db", "--overwrite")[0] == 0
    code, _, err = run("ledger", "backup", "l.db", "b.txt")
    assert (code, "its name must end in .db" in err) == (2, True)
    code, _, err = run("ledger", "backup", "nowhere.db", "c.db")
    assert (code, "there is no ledger at 'nowhere.db'" in err) == (2, True)
    assert not Path("c.db").exists()


def test_an_older_copy_is_refused_and_verify_says_why(run, state_folder):
    assert ask(run, "l.db", 0.2)[0] == 0
    run("ledger", "backup", "l.db", "b.db")
    assert ask(run, "l.db", 0.3)[0] == 0
    code, out, _ = run("ledger", "verify", "l.db")
    assert code == 0
    assert (
        "This user's record outside the ledger knows 8 entries of it." in out
    )  # the answer of the last charge is no charge
    shutil.copyfile("b.db", "l.db")
    code, _, err = ask(run, "l.db", 0.5)
    assert code == 2
    (record,) = state_folder.glob("*.json")
    assert f"the record {record} says that it had 8 entries" in err
    assert err.rstrip().endswith("Nothing was charged.")
    code, out, _ = run("ledger", "verify", "l.db")
    assert code == 1
    assert "ends at entry 6; a record outside the ledger knows 8 entries of it" in out
    code, out, _ = run("ledger", "verify", "l.db", "--json")
    assert json.loads(out)["accounts"][0]["recorded"] == 8
    code, _, err = ask(run, "new.db", 0.5)  # the same rows, from another ledger
    assert (code, "has no account 'people'" in err) == (2, True)
    record.unlink()
    code, out, _ = run("ledger", "verify", "l.db")
    assert code == 0
    assert "This user has no record of it outside the ledger" in out
    assert ask(run, "l.db", 0.5)[0] == 0


def test_a_place_where_no_record_can_be_kept_is_a_note(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VITRAIL_STATE", str(tmp_path / "file"))
    monkeypatch.setattr(high_water, "_SAID", set())
    code, _, err = ask(run, "l.db", 0.2)
    assert code == 0
    assert "Note: No record of how far accounts have come can be kept" in err
    assert "LedgerWarning" not in err


def test_of_a_long_bill_the_newest_lines_are_shown_and_programs_have_all(run):
    ledger = open_ledger("l.db")
    ledger.open_account("people", vt.Budget(1.0, 1e-6), "add-remove")
    for number in range(52):
        asked = {"analyst": "alice", "event": GaussianSum(1.0, 1000.0), "question": {"label": f"question no. {number}."}}
        ledger.charge("people", key=None, **asked)
    ledger.close()
    code, out, _ = run("budget", "l.db")
    assert (code, out.count("question no. ")) == (0, 50)
    assert "on 52 questions" in out
    assert (
        "Of the bill's lines only the newest 50 are here; 2 questions were paid before them. More of them: --lines N." in out
    )
    assert ("question no. 1." in out, "question no. 2." in out) == (False, True)
    whole = run("budget", "l.db", "--lines", 52)[1]
    assert (whole.count("question no. "), "--lines" in whole) == (52, False)
    assert run("budget", "l.db", "--lines", 0)[1].count("question no. ") == 0
    (told,) = json.loads(run("budget", "l.db", "--json")[1])
    assert (len(told["bill"]), told["n_entries"], len(told["head"])) == (52, 53, 64)
    (short,) = json.loads(run("budget", "l.db", "--json", "--lines", 3)[1])
    assert short["bill"] == told["bill"][-3:]
    assert len(json.loads(run("ledger", "entries", "l.db", "--json")[1])) == 53


def test_reservations_are_listed_and_freed(run):
    assert ask(run, "l.db", 0.2)[0] == 0
    assert run("ledger", "reservations", "l.db")[1].strip() == "No reservation is open."
    ledger = open_ledger("l.db")
    before = ledger.statement("people").remaining_epsilon
    cost = Cost.of_mu(0.05)
    made = ledger.reserve("people", analyst="alice", cost=cost + cost, recipe="ab" * 32, question={"label": "a report"})
    event = GaussianSum(1.0, 20.0)
    charge = ledger.charge("people", analyst="alice", event=event, question={}, key=None, reservation=made)
    code, out, _ = run("ledger", "reservations", "l.db")
    assert code == 0
    for word in ("people", str(made.seq), "alice", "a report", "abababababab"):
        assert word in out
    (listed,) = json.loads(run("ledger", "reservations", "l.db", "--json")[1])
    assert (listed["account"], listed["seq"], listed["label"]) == ("people", made.seq, "a report")
    assert listed["booked"]["pico_mu_squared"] == charge.cost.pico_mu_squared
    assert f"reserved   a report (alice, entry {made.seq}): epsilon" in run("budget", "l.db")[1]
    code, out, _ = run("ledger", "free", "l.db", made.seq)
    assert code == 0
    assert f"Reservation {made.seq} of account 'people' was freed; a question of up to epsilon" in out
    assert ledger.statement("people").reservations == ()
    assert 0 < ledger.statement("people").remaining_epsilon < before
    code, _, err = run("ledger", "free", "l.db", made.seq)
    assert code == 2
    assert "was freed already" in err
    code, _, err = run("ledger", "free", "l.db", 1)
    assert (code, "is no reservation; open are none" in err) == (2, True)
    assert run("ledger", "verify", "l.db")[0] == 0
    ledger.close()
