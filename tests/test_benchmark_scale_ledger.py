"""The benchmark of long ledgers: what it fills is a ledger that holds, and goes on."""

from contextlib import closing

from benchmark_scripts import script
from vitrail.ledger import SqlLedger

scale_ledger = script("scale_ledger")


def test_the_made_chain_verifies_and_goes_on(tmp_path):
    path = tmp_path / "long.db"
    scale_ledger.make_ledger(path, 400)
    with closing(SqlLedger(path, must_exist=True)) as ledger:
        assert ledger.verify().problems == ()
        statement = ledger.statement(scale_ledger.ACCOUNT)
        assert (statement.n_entries, statement.n_questions, statement.reservations) == (401, 100, ())
        assert len(statement.bill().lines) == 100
        asked = {"analyst": "bob", "event": scale_ledger.EVENT, "question": {}}
        assert ledger.charge(scale_ledger.ACCOUNT, key=None, **asked).seq == 402
        assert ledger.charge(scale_ledger.ACCOUNT, key=f"{7:063x}f", **asked).release == scale_ledger.ANSWER
        assert ledger.verify().problems == ()


def test_what_is_measured_has_its_names(state_folder):
    headline, rows, how = scale_ledger.measure((40, 80))
    assert headline == {}  # of a million entries there is none here
    assert [row["n_entries"] for row in rows] == [41, 81]
    assert how.keys() - {"ledger"} <= rows[0].keys()
    assert all(row["statement_ms"] > 0 and row["verify_s"] is not None for row in rows)
    assert not [*state_folder.glob("*.json")]  # the user's own records are left alone
