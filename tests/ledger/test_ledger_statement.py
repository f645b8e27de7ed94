"""Statements: what they read, and what their entries are when they are read later."""

import pickle
import sqlite3
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import create_engine, event, inspect, text

from benchmark_scripts import script
from ledger_setup import BUDGET, KEY, ask
from vitrail.accounting import GaussianSum
from vitrail.errors import InvalidInput, LedgerCorrupted, LedgerError
from vitrail.ledger import SqlLedger, open_ledger
from vitrail.ledger.entries import Entry

CHEAP = GaussianSum(1.0, 4000.0)
INDEX = "vitrail_reservations_open"
long_ledger = script("scale_ledger")
LONG = long_ledger.ACCOUNT


# --- what is read --------------------------------------------------------------------------------------------------------


@contextmanager
def steps_of(ledger):
    """Counts the steps of SQLite's own machine: a row that is read takes several, wherever it lies in the tree."""
    counted, database = [0], ledger._database
    opened = database._memory or database.engine.connect()
    driver = opened.connection.driver_connection

    def step():
        counted[0] += 1

    driver.set_progress_handler(step, 1)
    if opened is not database._memory:
        opened.close()  # back to the pool, which gives it to whoever is next
    yield counted
    driver.set_progress_handler(None, 1)


def reserved(ledger, recipe):
    return ledger.reserve(LONG, analyst="bob", cost=CHEAP.cost(), recipe=recipe, question={"label": "a report"})


def freed(ledger):
    with pytest.raises(LedgerError, match=r"Entry 4 .* is no reservation; open are none"):
        ledger.free(LONG, 4)


OPERATIONS = {
    "statement": lambda ledger: ledger.statement(LONG),
    "printed": lambda ledger: (str(ledger.statement(LONG)), ledger.statement(LONG)._repr_html_()),
    "json": lambda ledger: ledger.statement(LONG).to_json(),
    "newest lines": lambda ledger: ledger.statement(LONG).bill(newest=7),
    "accounts": lambda ledger: ledger.accounts(),
    "charge": lambda ledger: ledger.charge(LONG, analyst="bob", event=CHEAP, question={}, key="ab" * 32),
    "replay": lambda ledger: ledger.charge(LONG, analyst="bob", event=CHEAP, question={}, key=f"{7:063x}f"),
    "reserve, finish": lambda ledger: ledger.finish(reserved(ledger, "cd" * 32)),
    "reserve again": lambda ledger: reserved(ledger, f"{7:064x}"),
    "is stored": lambda ledger: ledger.is_stored(LONG, key=f"{7:063x}f"),
    "has begun": lambda ledger: ledger.has_begun(LONG, recipe=f"{7:064x}"),
    "keep": lambda ledger: ledger.keep(LONG, analyst="bob", name="mine", content=b"1"),
    "free": freed,
}


@pytest.fixture(scope="module")
def two_lengths(tmp_path_factory):
    """The same account after 100 questions and after 600, and the index that old ledgers lack dropped from neither."""
    folder = tmp_path_factory.mktemp("long")
    paths = [folder / f"{length}.db" for length in (400, 2400)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITRAIL_STATE", str(folder))
        for path in paths:
            long_ledger.make_ledger(path, int(path.stem))
    return paths


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_what_is_done_per_question_takes_as_many_steps_however_long_the_chain_is(two_lengths, operation):
    taken = []
    for path in two_lengths:
        with closing(SqlLedger(path, must_exist=True)) as ledger, steps_of(ledger) as counted:
            operation(ledger)
        taken.append(counted[0])
    assert taken[0] == taken[1] > 5


def test_the_counter_sees_a_walk(two_lengths):
    taken = []
    for path in two_lengths:
        with closing(SqlLedger(path, must_exist=True)) as ledger, steps_of(ledger) as counted:
            _ = ledger.statement(LONG).entries
        taken.append(counted[0])
    assert taken[1] > 5 * taken[0]


def test_in_memory_too():
    ledger, taken = open_ledger("memory"), []
    ledger.open_account(LONG, BUDGET, "add-remove")
    for _ in range(2):
        for number in range(100):
            reservation = reserved(ledger, f"{len(taken) * 100 + number:064x}")
            ask(ledger, account=LONG, event=CHEAP)
            ledger.finish(reservation)
        with steps_of(ledger) as counted:
            ledger.statement(LONG)
        taken.append(counted[0])
    assert taken[0] == taken[1] > 5


def test_in_a_database_as_many_rows_come_back(emptied_database):
    with closing(open_ledger(emptied_database())) as ledger:
        ledger.open_account(LONG, BUDGET, "add-remove")
        rows, taken = [0, 0], []

        def counted(_connection, cursor, *_):
            rows[0] += 1
            rows[1] += max(0, cursor.rowcount)

        event.listen(ledger._database.engine, "after_cursor_execute", counted)
        for _ in range(2):
            for number in range(20):
                reservation = reserved(ledger, f"{len(taken) * 20 + number:064x}")
                ask(ledger, account=LONG, event=CHEAP)
                ledger.finish(reservation)
            rows[:] = 0, 0
            ledger.statement(LONG)
            ledger.accounts()
            taken.append(tuple(rows))
        assert taken[0] == taken[1]


# --- entries that are read later -----------------------------------------------------------------------------------------


def test_entries_are_those_up_to_the_head_however_the_ledger_goes_on(adult):
    ask(adult)
    before = adult.statement("adult")
    ask(adult, analyst="bob")
    after = adult.statement("adult")
    assert (before.n_entries, after.n_entries) == (2, 3)
    assert [entry.kind for entry in before.entries] == ["opened", "charged"]
    assert (before.entries[-1].digest, after.entries[-1].digest) == (before.head, after.head)
    assert [line.analyst for line in before.bill().lines] == ["alice"]
    assert before.bill(newest=9) == before.bill()
    assert len(before.to_dp_events().charges) == 1
    assert after.since(2) == after.entries[2:]
    assert before.since(2) == ()
    assert before.since(0) == before.entries
    assert before.entries is before.entries  # read once


def test_statements_of_the_same_state_are_equal(adult):
    ask(adult)
    first, second = adult.statement("adult"), adult.statement("adult")
    assert first.entries  # whether they were read is no part of it
    assert first == second
    assert repr(first) == repr(second)
    ask(adult)
    assert adult.statement("adult") != first


def test_a_statement_of_a_closed_ledger_knows_its_totals_and_says_that_entries_are_gone(adult):
    ask(adult)
    read, unread = adult.statement("adult"), adult.statement("adult")
    assert read.entries
    adult.close()
    assert len(read.bill().lines) == 1
    assert (unread.n_questions, unread.n_entries) == (1, 2)
    assert unread.to_json() == read.to_json()
    said = "The bill's lines are left out. The ledger "
    assert said in str(unread)
    assert "1 question paid: " in str(unread)
    assert "when they are asked for." in unread._repr_html_()
    for look in (unread.bill, unread.to_dp_events, lambda: unread.entries):
        with pytest.raises(LedgerError, match=r"was closed\. Open it again .* A statement knows its totals; its entries"):
            look()


def test_a_ledger_in_memory_lasts_as_long_as_its_statement():
    ledger = open_ledger("memory")
    ledger.open_account("adult", BUDGET, "add-remove")
    statement = ledger.statement("adult")
    del ledger
    assert len(statement.entries) == 1


def test_a_pickled_statement_takes_its_entries_along(adult):
    ask(adult, key=KEY)
    statement = adult.statement("adult")
    stored = pickle.dumps(statement)
    ask(adult)
    adult.close()
    back = pickle.loads(stored)
    assert back == statement
    assert [entry.kind for entry in back.entries] == ["opened", "charged"]
    assert back.bill() == pickle.loads(pickle.dumps(back)).bill()
    assert back.bill(newest=1).lines == back.bill().lines
    assert back.since(1) == back.entries[1:]


def tampered(path, *changes):
    with closing(sqlite3.connect(path)) as connection, connection:
        for change in changes:
            connection.execute(*change)


def test_entries_that_do_not_lead_to_the_head_are_refused(tmp_path):
    path = tmp_path / "ledger.db"
    with closing(open_ledger(path)) as ledger:
        ledger.open_account("adult", BUDGET, "add-remove")
        for _ in range(4):
            ask(ledger)
        statement = ledger.statement("adult")
        other = Entry("adult", 3, "2026-01-01T00:00:00.000000+00:00", "charged", "0" * 64, {"analyst": "eve"}).raw()
        changed = ("UPDATE vitrail_entries SET digest = ?, record = ? WHERE seq = 3", (other.digest, other.record))
        tampered(path, changed)  # a whole entry in itself, and not the one that was there
        for look in (statement.bill, statement.to_dp_events):
            with pytest.raises(LedgerCorrupted, match="entry 3 does not follow the entry before it"):
                look()
        with pytest.raises(LedgerCorrupted, match="entry 4 does not follow the entry before it"):
            statement.since(0)
        assert [entry.seq for entry in statement.since(3)] == [4, 5]  # what hangs together with the head is the head's own
        tampered(path, ("DELETE FROM vitrail_entries WHERE seq = 2",))
        with pytest.raises(LedgerCorrupted, match="of its entries 1 to 5 some are missing"):
            statement.bill()


def test_another_ledger_in_its_place_is_noticed(tmp_path):
    path = tmp_path / "ledger.db"
    with closing(open_ledger(path)) as ledger:
        ledger.open_account("adult", BUDGET, "add-remove")
        ask(ledger)
        statement = ledger.statement("adult")
        with closing(open_ledger(tmp_path / "other.db")) as other:
            other.open_account("adult", BUDGET, "add-remove")
            ask(other)
        with (
            closing(sqlite3.connect(tmp_path / "other.db")) as source,
            closing(sqlite3.connect(path)) as target,
        ):
            source.backup(target)
        for look in (statement.bill, lambda: str(statement)):
            with pytest.raises(LedgerCorrupted, match="entry 2 is not the one that this statement was made with"):
                look()


# --- the newest lines ----------------------------------------------------------------------------------------------------


def test_of_a_long_bill_the_newest_lines_are_printed_and_all_are_counted(adult):
    asked = {"analyst": "alice", "event": CHEAP, "key": KEY}
    adult.store(adult.charge("adult", question={"label": "the first"}, **asked), b"1")
    for number in range(59):
        adult.charge("adult", analyst="alice", event=CHEAP, question={"label": f"no. {number}"}, key=None)
    adult.charge("adult", question={}, **asked)
    statement = adult.statement("adult")
    printed = str(statement)
    assert "60 questions paid: " in printed
    assert (
        "Of the bill's lines only the newest 50 are here; 11 questions were paid before them. bill() has them all."
        in printed
    )
    assert "no. 10" in printed
    assert "no. 9 " not in printed
    assert "again: the first" in printed  # whose own line is not shown
    assert statement._repr_html_().count("<tr>") == 51
    whole = statement.bill()
    assert (len(whole.lines), whole.n_earlier, whole.omission) == (61, None, "")
    assert "60 questions paid, 1 stored answer handed out again" in whole.sentence
    assert statement.bill(newest=50).lines == whole.lines[11:]
    assert statement.bill(newest=61) == whole
    none = statement.bill(newest=0)
    assert (none.lines, none.n_earlier, none.omission) == ((), 60, "The bill's lines are left out.")
    assert none.guarantee == whole.guarantee


def test_what_is_kept_does_not_make_the_newest_lines_long_to_find(adult):
    ask(adult)
    for number in range(70):
        adult.keep("adult", analyst="alice", name=str(number), content=b"1")
    bill = adult.statement("adult").bill(newest=1)
    assert (bill.lines, bill.n_earlier) == ((), 1)  # twice twenty entries were read, and there was no line
    assert "1 question paid" in bill.sentence
    assert len(adult.statement("adult").bill(newest=5).lines) == 1


@pytest.mark.parametrize("newest", [-1, 1.5, "many", True])
def test_a_number_of_lines_is_a_whole_one(adult, newest):
    with pytest.raises(InvalidInput, match="newest"):
        adult.statement("adult").bill(newest=newest)


# --- ledgers of earlier versions, which lack an index --------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def old_ledger(request, tmp_path):
    """The address of a ledger without the index, and an engine to look at it with."""
    where = (
        f"sqlite:///{tmp_path / 'old.db'}" if request.param == "sqlite" else request.getfixturevalue("emptied_database")()
    )
    with closing(open_ledger(where)) as ledger:
        ledger.open_account(LONG, BUDGET, "add-remove")
        ledger.finish(reserved(ledger, "ab" * 32))
        reserved(ledger, "cd" * 32)
    engine = create_engine(where)
    with engine.begin() as connection:
        connection.execute(text(f"DROP INDEX {INDEX}"))
    yield where, engine
    engine.dispose()


def has_index(engine):
    return INDEX in [index["name"] for index in inspect(engine).get_indexes("vitrail_reservations")]


def test_an_old_ledger_gets_its_index_from_who_writes_and_not_from_who_reads(old_ledger):
    where, engine = old_ledger
    with closing(open_ledger(where)) as ledger:
        assert [line.seq for line in ledger.statement(LONG).reservations] == [4]
        assert ledger.verify().ok
        assert not has_index(engine)
        ask(ledger, account=LONG)
        assert has_index(engine)
        assert [line.seq for line in ledger.statement(LONG).reservations] == [4]
        assert ledger.verify().ok
    with closing(open_ledger(where)) as again:
        ask(again, account=LONG)
        assert again.verify().ok


def test_whoever_cannot_make_the_index_goes_on_without(old_ledger):
    where, engine = old_ledger
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {INDEX} (taken INTEGER)"))  # the name is taken: making the index fails
    try:
        with closing(open_ledger(where)) as ledger:
            ask(ledger, account=LONG)
            assert ledger.free(LONG, 4) == CHEAP.cost()
            assert ledger.statement(LONG).reservations == ()
            assert ledger.verify().ok
        assert not has_index(engine)
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP TABLE {INDEX}"))
