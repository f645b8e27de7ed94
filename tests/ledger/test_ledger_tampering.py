"""Whatever is done to the file of a ledger from outside, ``verify`` names it and never raises."""

import json
import sqlite3

import pytest

from vitrail.accounting import GaussianSum
from vitrail.accounting.guarantee import Budget
from vitrail.errors import LedgerCorrupted, LedgerError
from vitrail.ledger import SqlLedger
from vitrail.ledger.entries import canonical_json, digest_of

EVENT = GaussianSum(1.0, 40.0)
KEY = "ab" * 32


@pytest.fixture
def path(tmp_path):
    """A ledger with 9 entries: opened, capped, charged, released, replayed, charged, charged, released, charged."""
    path = tmp_path / "ledger.db"
    ledger = SqlLedger(path)
    ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    ledger.cap_analyst("adult", "bob", Budget(0.5, 1e-6))
    ledger.store(charge(ledger, KEY), b"one")
    charge(ledger, KEY, "bob")
    charge(ledger)
    ledger.store(charge(ledger), b"two")
    charge(ledger)
    assert ledger.verify().ok
    ledger.close()
    return path


def charge(ledger, key=None, analyst="alice"):
    return ledger.charge("adult", analyst=analyst, event=EVENT, question={"kind": "sum"}, key=key)


def tamper(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.close()


def problems(path):
    ledger = SqlLedger(path, must_exist=True)
    try:
        return "\n".join(ledger.verify().problems)
    finally:
        ledger.close()


def rewrite(path, seq, change, *, forge_digests):
    """Change one entry's record; with ``forge_digests``, also rewrite every later link and the head, as an insider could."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT seq, record FROM vitrail_entries ORDER BY seq").fetchall()
        previous = None
        for number, record in rows:
            fields = json.loads(record)
            if number == seq:
                change(fields)
            if forge_digests and previous is not None:
                fields["previous"] = previous
            text = canonical_json(fields)
            previous = digest_of(text)
            digest = ", digest = ?" if forge_digests else ""
            values = (text, previous, number) if forge_digests else (text, number)
            if forge_digests or number == seq:
                connection.execute(f"UPDATE vitrail_entries SET record = ?{digest} WHERE seq = ?", values)
        if forge_digests:
            connection.execute("UPDATE vitrail_accounts SET head = ?", (previous,))
    connection.close()


SIMPLE = {
    "an entry edited": (
        "UPDATE vitrail_entries SET record = replace(record, 'alice', 'carol') WHERE seq = 6",
        "Entry 6 of account 'adult' cannot stand: its text does not match its digest.",
    ),
    "an entry's digest edited": (
        "UPDATE vitrail_entries SET digest = 'ff' || substr(digest, 3) WHERE seq = 6",
        "Entry 6 of account 'adult' cannot stand: its text does not match its digest.",
    ),
    "a middle entry deleted": (
        "DELETE FROM vitrail_entries WHERE seq = 6",
        "Entry 6 of account 'adult' is missing: entry 7 follows.",
    ),
    "the first entry deleted": (
        "DELETE FROM vitrail_entries WHERE seq = 1",
        "Entry 1 of account 'adult' is missing: entry 2 follows.",
    ),
    "the tail cut": (
        "DELETE FROM vitrail_entries WHERE seq = 9",
        "The chain of account 'adult' ends at entry 8; its head says entry 9.",
    ),
    "all entries deleted": (
        "DELETE FROM vitrail_entries",
        "The chain of account 'adult' ends at entry 0; its head says entry 9.",
    ),
    "the head moved back": (
        "UPDATE vitrail_accounts SET seq = 8, head = (SELECT digest FROM vitrail_entries WHERE seq = 8)",
        "The chain of account 'adult' ends at entry 9; its head says entry 8.",
    ),
    "two entries renumbered": (
        "UPDATE vitrail_entries SET seq = CASE seq WHEN 6 THEN -7 ELSE -6 END WHERE seq IN (6, 7)",
        "Entry 1 of account 'adult' is missing: entry -7 follows.",
    ),
    "the total lowered": (
        'UPDATE vitrail_accounts SET spent = \'{"pico_epsilon":0,"pico_mu_squared":1,"quecto_delta":0}\'',
        "The spent of account 'adult' is kept as Cost(pico_mu_squared=1",
    ),
    "the total made unreadable": ("UPDATE vitrail_accounts SET spent = 'nothing'", "cannot be read"),
    "the total set to no text": ("UPDATE vitrail_accounts SET spent = 7", "cannot be read"),
    "the capacity raised": (
        "UPDATE vitrail_accounts SET capacity = replace(capacity, '\"pico_mu_squared\":', '\"pico_mu_squared\":9')",
        "The capacity of account 'adult' is kept as",
    ),
    "the budget raised": (
        "UPDATE vitrail_accounts SET budget = replace(budget, '\"epsilon\":1.0', '\"epsilon\":9.0')",
        "The budget of account 'adult' is kept as Budget(epsilon=9.0",
    ),
    "the number of questions lowered": (
        "UPDATE vitrail_accounts SET n_questions = 1",
        "The n_questions of account 'adult' is kept as 1; its entries say 4.",
    ),
    "the account row deleted": ("DELETE FROM vitrail_accounts", "Account 'adult' has entries and no account row."),
    "an analyst's total lowered": (
        "UPDATE vitrail_analysts SET spent = replace(spent, '\"pico_mu_squared\":', '\"pico_mu_squared\":1') "
        "WHERE analyst = 'bob'",
        "What analyst 'bob' has spent of account 'adult', or the cap, is kept as",
    ),
    "an analyst's cap lifted": (
        "UPDATE vitrail_analysts SET cap = NULL, capacity = NULL",
        "What analyst 'bob' has spent of account 'adult', or the cap, is kept as",
    ),
    "an analyst deleted": ("DELETE FROM vitrail_analysts WHERE analyst = 'bob'", "What analyst 'bob' has spent"),
    "a sighting added": (
        "INSERT INTO vitrail_sightings VALUES ('adult', 7, 'bob')",
        "Whether analyst 'bob' has seen the release of charge 7 of account 'adult' is kept as SightingRow",
    ),
    "a sighting deleted": (
        "DELETE FROM vitrail_sightings WHERE analyst = 'bob'",
        "Whether analyst 'bob' has seen the release of charge 3 of account 'adult' is kept as None",
    ),
    "a release's bytes changed": (
        "UPDATE vitrail_releases SET content = x'00' WHERE charge_seq = 3",
        "The release stored for charge 3 of account 'adult' cannot stand: its bytes do not match the digest",
    ),
    "a release deleted": (
        "DELETE FROM vitrail_releases WHERE charge_seq = 3",
        "The release of charge 3 of account 'adult' was recorded and is missing.",
    ),
    "a release put in": (
        "INSERT INTO vitrail_releases VALUES ('adult', 9, 9, NULL, x'00')",
        "The release stored for charge 9 of account 'adult' cannot stand: no entry records it.",
    ),
    "a release without a charge": (
        "INSERT INTO vitrail_releases VALUES ('adult', 4, 4, NULL, x'00')",
        "The release stored for charge 4 of account 'adult' cannot stand: there is no such charge.",
    ),
    "a release's key changed": (
        "UPDATE vitrail_releases SET key = 'cdcdcdcdcdcdcdcd' WHERE charge_seq = 3",
        "it is kept under another key than it was charged with",
    ),
    "entries moved to another account": (
        "UPDATE vitrail_entries SET account = 'other'",
        "it was written for account 'adult'",
    ),
    "text in place of a number": ("UPDATE vitrail_entries SET seq = 'six' WHERE seq = 6", "account 'adult'"),
}


@pytest.mark.parametrize(("statement", "expected"), SIMPLE.values(), ids=SIMPLE)
def test_verify_names_what_was_done(path, statement, expected):
    tamper(path, statement)
    assert expected in problems(path)


def test_swapped_releases_are_named(path):
    tamper(
        path,
        "UPDATE vitrail_releases SET content = CASE charge_seq WHEN 3 THEN CAST('two' AS BLOB) ELSE CAST('one' AS BLOB) END",
    )
    assert problems(path).count("its bytes do not match the digest") == 2


def test_a_lower_price_shows_even_with_every_digest_forged(path):
    rewrite(path, 6, lambda fields: fields["body"]["cost"].update(pico_mu_squared=1), forge_digests=True)
    assert "Entry 6 of account 'adult' cannot stand: its event costs Cost(pico_mu_squared=625000000" in problems(path)


def test_a_higher_capacity_shows_even_with_every_digest_forged(path):
    rewrite(path, 1, lambda fields: fields["body"]["capacity"].update(pico_mu_squared=10**15), forge_digests=True)
    assert "Entry 1 of account 'adult' cannot stand: its budget allows" in problems(path)


def test_spending_past_the_caps_shows_even_with_every_digest_forged(path):
    def shrink(fields):
        fields["body"]["budget"] = Budget(0.01, 1e-6).to_json()
        fields["body"]["capacity"].update(pico_mu_squared=Budget(0.01, 1e-6).capacity().pico_mu_squared)

    rewrite(path, 2, shrink, forge_digests=True)
    assert "Entry 5 of account 'adult' cannot stand: it takes analyst 'bob' past the cap that held then." in problems(path)
    rewrite(path, 1, shrink, forge_digests=True)
    assert "Entry 3 of account 'adult' cannot stand: it takes the account past its budget." in problems(path)


def test_a_replay_that_was_not_counted_shows(path):
    rewrite(path, 5, lambda fields: fields["body"]["counted"].update(pico_mu_squared=0), forge_digests=True)
    assert "Entry 5 of account 'adult' cannot stand: it should count Cost(pico_mu_squared=625000000" in problems(path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda fields: fields["body"]["event"].update(version=2), "an event of kind 'gaussian-sum', version 2, which this"),
        (lambda fields: fields["body"]["event"].update(kind="magic"), "an event of kind 'magic', version 1, which this"),
        (lambda fields: fields["body"]["event"].update(sigma="ten"), "its particulars cannot be read"),
        (lambda fields: fields["body"]["event"].update(sigma=0), "its particulars cannot be read"),
        (lambda fields: fields["body"].update(event=None), "it holds no event"),
        (lambda fields: fields["body"].update(cost={}), "it holds a cost that is not three whole numbers"),
        (lambda fields: fields["body"].update(analyst=None), "it names no analyst"),
        (lambda fields: fields["body"].pop("key"), "its particulars cannot be read (KeyError)"),
        (lambda fields: fields.update(kind="refunded"), "its kind 'refunded' is none that this version knows"),
        (lambda fields: fields.update(format="vitrail-ledger/9"), "it is not written in the format vitrail-ledger/1"),
        (lambda fields: fields.update(previous="0" * 64), "it does not follow the entry before it"),
        (lambda fields: fields.pop("time_utc"), "its text cannot be read"),
        (lambda fields: fields["body"].clear(), "it holds a cost that is not three whole numbers"),
    ],
)
def test_an_entry_without_a_meaning_is_named(path, change, expected):
    if expected.startswith("it does not follow"):
        rewrite(path, 9, change, forge_digests=False)
        with sqlite3.connect(path) as connection:
            (text,) = connection.execute("SELECT record FROM vitrail_entries WHERE seq = 9").fetchone()
            connection.execute("UPDATE vitrail_entries SET digest = ? WHERE seq = 9", (digest_of(text),))
        connection.close()
    else:
        rewrite(path, 6, change, forge_digests=True)
    assert expected in problems(path)


def test_a_history_rewritten_throughout_is_only_seen_against_a_head_that_was_kept_elsewhere(path, state_folder):
    ledger = SqlLedger(path, must_exist=True)
    published = ledger.verify().heads
    ledger.close()
    rewrite(path, 6, lambda fields: fields["body"].update(question={"kind": "innocent"}), forge_digests=True)
    ledger = SqlLedger(path, must_exist=True)
    assert "has another history; a record outside the ledger knows 9 entries" in ledger.verify().problems[0]
    for record in state_folder.glob("*.json"):
        record.unlink()
    assert ledger.verify().ok  # the stated limit: nothing inside the file can tell
    assert "does not pass through the head that was published" in ledger.verify(published).problems[0]
    ledger.close()


def test_nothing_is_charged_on_a_cut_tail(path):
    tamper(path, "DELETE FROM vitrail_entries WHERE seq = 9")
    ledger = SqlLedger(path, must_exist=True)
    with pytest.raises(LedgerCorrupted, match=r"its last entry \(number 9\) is missing or changed"):
        charge(ledger)
    ledger.close()


def test_changed_bytes_are_not_replayed(path):
    tamper(path, "UPDATE vitrail_releases SET content = x'00' WHERE charge_seq = 3")
    ledger = SqlLedger(path, must_exist=True)
    with pytest.raises(LedgerCorrupted, match="the stored release of charge 3 does not match its digest"):
        charge(ledger, KEY)
    ledger.close()


def test_entries_of_an_edited_chain_are_refused_when_they_are_read(path):
    tamper(path, "UPDATE vitrail_entries SET record = '[]' WHERE seq = 6")
    ledger = SqlLedger(path, must_exist=True)
    statement = ledger.statement("adult")  # its totals and its head do not depend on that entry
    with pytest.raises(LedgerCorrupted, match=r"does not hold: of entry 6, its text does not match its digest\."):
        statement.bill()
    ledger.close()


def test_overwritten_pages_are_reported(path):
    ledger = SqlLedger(path, must_exist=True)
    ledger.close()
    content = bytearray(path.read_bytes())
    for offset in range(4096 * 3, len(content), 64):
        content[offset : offset + 16] = b"\xff" * 16
    path.write_bytes(content)
    try:
        found = problems(path)
    except LedgerError:
        return  # too broken to be opened at all, which says so as well
    assert found
