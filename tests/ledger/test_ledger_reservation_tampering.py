"""What is wrong with reservations in a changed file shows; ledgers from before there were any are read and go on."""

import json
import sqlite3

import pytest

from ledger_setup import problems_after
from reservation_setup import (
    BUDGET,
    OTHER,
    event,
    reserve,
    step,
)
from vitrail.ledger import SqlLedger
from vitrail.ledger.entries import canonical_json, digest_of


@pytest.fixture
def path(tmp_path):
    """Entries: opened, charged, reserved, charged, released, joined, reserved, freed, reserved, replayed, finished."""
    path = tmp_path / "ledger.db"
    ledger = SqlLedger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    ledger.charge("adult", analyst="alice", event=event(100), question={}, key=OTHER)
    made = reserve(ledger, 3000)
    step(ledger, made, 0, 1000)
    ledger.charge("adult", analyst="bob", event=event(100), question={}, key=OTHER)
    ledger.free("adult", reserve(ledger, 500, "carol", OTHER).seq)
    bobs = reserve(ledger, 3000, "bob")
    step(ledger, bobs, 0, 1000)
    ledger.finish(bobs)
    kinds = [entry.kind for entry in ledger.statement("adult").entries]
    assert " ".join(kinds) == ("opened charged reserved charged released joined reserved freed reserved replayed finished")
    assert ledger.verify().ok
    ledger.close()
    return path


def rewrite(path, seq, change):
    """Change one entry, then forge every later link and the head, as an insider could."""
    with sqlite3.connect(path) as connection:
        previous = None
        for number, record in connection.execute("SELECT seq, record FROM vitrail_entries ORDER BY seq").fetchall():
            fields = json.loads(record)
            if number == seq:
                change(fields)
            if previous is not None:
                fields["previous"] = previous
            text = canonical_json(fields)
            previous = digest_of(text)
            connection.execute("UPDATE vitrail_entries SET record = ?, digest = ? WHERE seq = ?", (text, previous, number))
        connection.execute("UPDATE vitrail_accounts SET head = ?", (previous,))
    connection.close()


def cost_of(name, number):
    return lambda fields: fields["body"][name].update(pico_mu_squared=number)


def body(**changes):
    return lambda fields: fields["body"].update(changes)


FORGED = {  # the entry that is changed, how, the entry that verify names, and what it says
    "over-booked": (3, cost_of("cost", 5), 4, "it books more than reservation 3 holds"),
    "over-booked cap": (3, cost_of("counted", 5), 4, "it books more than reservation 3 holds"),
    "booked nowhere": (4, body(reservation=2), 4, "it is booked against entry 2, which is no reservation"),
    "booked before": (4, body(reservation=9), 4, "it is booked against entry 9, which is no reservation"),
    "another's": (3, body(analyst="dave"), 4, "which is another analyst's or part's"),
    "booked on freed": (10, body(reservation=7), 10, "it is booked against reservation 7, which was freed before"),
    "freed twice": (11, lambda f: f.update(kind="freed", body={**f["body"], "of": 7}), 11, "7 held, which was freed before"),
    "freed another's": (8, body(of=3), 8, "it gives back (Cost"),
    "freed nothing": (8, body(of=4), 8, "it gives back what entry 4 reserved, which is no reservation"),
    "gave back more": (11, cost_of("cost", 10**11), 11, "it gives back (Cost"),
    "past the budget": (3, cost_of("cost", 10**13), 3, "it takes the account past its budget"),
    "joined nothing": (6, body(of=5), 6, "it joins entry 5, which is no charge with a key"),
    "joined what was stored": (6, body(of=4), 6, "it joins entry 4, which is no charge with a key"),
    "joined for less": (6, cost_of("counted", 1), 6, "it should count Cost"),
    "no recipe": (3, lambda fields: fields["body"].pop("recipe"), 3, "its particulars cannot be read (KeyError)"),
}


@pytest.mark.parametrize(("seq", "change", "named", "expected"), FORGED.values(), ids=FORGED)
def test_what_is_wrong_with_a_reservation_shows_even_with_every_digest_forged(path, seq, change, named, expected):
    rewrite(path, seq, change)
    problems = problems_after(path).splitlines()
    named_entry = [line for line in problems if line.startswith(f"Entry {named} of account 'adult' cannot stand")]
    assert any(expected in line for line in named_entry), problems


def test_more_reserved_than_was_spent_shows(path):
    """What is over-booked counts in full: no forged reservation hides a charge."""
    rewrite(path, 4, lambda fields: fields["body"].update(reservation=9))
    assert "The spent of account 'adult' is kept as" in problems_after(path)


HELD = "What reservation {} of account 'adult' holds is kept as"
TABLES = {
    "UPDATE vitrail_reservations SET held = replace(held, 'd\":', 'd\":9') WHERE reserved_seq = 3": HELD.format(3),
    "UPDATE vitrail_reservations SET held_of_cap = replace(held_of_cap, ':0', ':1') WHERE reserved_seq = 3": HELD.format(3),
    "UPDATE vitrail_reservations SET held = 'x'": "cannot be read",
    "UPDATE vitrail_reservations SET state = 'open' WHERE reserved_seq = 7": HELD.format(7),
    "UPDATE vitrail_reservations SET recipe = NULL WHERE reserved_seq = 9": HELD.format(9),
    "UPDATE vitrail_reservations SET analyst = 'eve' WHERE reserved_seq = 3": HELD.format(3),
    "DELETE FROM vitrail_reservations WHERE reserved_seq = 3": f"{HELD.format(3)} None; its entries say ReservationRow",
    "DELETE FROM vitrail_reservations": f"{HELD.format(3)} None; its entries say ReservationRow",
    "DELETE FROM vitrail_charges WHERE charge_seq = 2": "Charge 2 of account 'adult' is kept as None",
    "UPDATE vitrail_charges SET key = 'abababababababab' WHERE charge_seq = 2": "Charge 2 of account 'adult' is kept as",
    "UPDATE vitrail_charges SET recipe = NULL WHERE charge_seq = 4": "Charge 4 of account 'adult' is kept as",
    "UPDATE vitrail_charges SET cost = replace(cost, 'd\":', 'd\":1')": "Charge 2 of account 'adult' is kept as",
}


@pytest.mark.parametrize(("statement", "expected"), TABLES.items(), ids=range(len(TABLES)))
def test_verify_names_what_was_done_to_the_tables(path, statement, expected):
    assert expected in problems_after(path, statement)
