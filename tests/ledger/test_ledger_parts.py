"""Charges to disjoint parts of the rows, and what analysts keep: the same behaviour on every ledger."""

import contextlib
import json
import random
import sqlite3
import threading

import pytest

from ledger_setup import problems_after
from vitrail.accounting import Cost, FixedBlock, GaussianSum, Spending, dearest
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded, InvalidInput, LedgerCorrupted, LedgerError
from vitrail.ledger import Charge, Part, Replay, SqlLedger
from vitrail.ledger.entries import canonical_json, digest_of

BUDGET = Budget(1.0, 1e-6, training=(0.4, 4e-7))
THIRDS, HALVES = "ab" * 32, "cd" * 32
KEY = "0f" * 32


def third(index):
    return Part(THIRDS, "thirds", index, 3)


def half(index):
    return Part(HALVES, "halves", index, 2)


@pytest.fixture
def adult(ledger):
    ledger.open_account("adult", BUDGET, "add-remove")
    return ledger


def of_units(units):
    """A sum that costs about so many millionths of mu squared."""
    return GaussianSum(1.0, (10**6 / units) ** 0.5)


def ask(ledger, part=None, units=1000, analyst="alice", key=None, event=None):
    event = event or of_units(units)
    return ledger.charge("adult", analyst=analyst, event=event, question={"kind": "sum"}, key=key, part=part)


def test_parts_cost_as_much_as_the_dearest(adult):
    costs = [ask(adult, third(index), units).cost for index, units in enumerate((1000, 3000, 2000))]
    whole = ask(adult, None, 500).cost
    statement = adult.statement("adult")
    assert statement.spent == whole + dearest(costs) == whole + costs[1]
    assert [(line.part, line.spent, line.exposed) for line in statement.parts] == [
        (third(index), cost, whole + cost) for index, cost in enumerate(costs)
    ]
    assert statement.n_questions == 4
    assert statement.of_analyst("alice").spent == statement.spent
    assert adult.verify().ok
    assert adult.verify().accounts[0].spent == statement.spent


def test_partitions_add_up_like_whole_questions(adult):
    one, other = ask(adult, third(0), 1000).cost, ask(adult, half(0), 1500).cost
    assert adult.statement("adult").spent == one + other
    ask(adult, third(2), 1000)
    ask(adult, half(1), 1500)
    assert adult.statement("adult").spent == one + other
    never = adult.statement("adult").of_part(third(1))
    assert (never.spent, never.exposed) == (Cost(), other)


def test_fixed_blocks_take_the_maximum_component_by_component(adult):
    for index, (epsilon, delta) in enumerate(((0.1, 2e-7), (0.3, 1e-7))):
        block = FixedBlock(epsilon, delta, noise_multiplier=1.0, sampling_rate=0.01, steps=100)
        ask(adult, third(index), event=block)
    assert adult.statement("adult").training_spent == pytest.approx((0.3, 2e-7))
    with pytest.raises(BudgetExceeded, match="training purse of account 'adult' for part 2 of 3 of 'thirds'"):
        ask(adult, third(1), event=FixedBlock(0.2, 1e-8, noise_multiplier=1.0, sampling_rate=0.01, steps=100))
    ask(adult, third(2), event=FixedBlock(0.4, 4e-7, noise_multiplier=1.0, sampling_rate=0.01, steps=100))
    assert adult.verify().ok


@pytest.mark.parametrize("seed", range(6))
def test_random_adaptive_streams_follow_the_rule(adult, seed):
    """Against the rule written out naively: granted exactly when every row's own sum of charges stays under the capacity."""
    chance = random.Random(seed)
    capacity = BUDGET.capacity().pico_mu_squared
    everywhere = [None, *map(third, range(3)), *map(half, range(2))]
    granted = []
    last = 0
    for _ in range(60):
        part = chance.choice(everywhere if last % 2 else everywhere[1:4])
        units = chance.randrange(1, 9000) if last % 3 else chance.randrange(1, 900)
        cost = of_units(units).cost().pico_mu_squared
        rows = [(i, j) for i in range(3) for j in range(2)]  # a row is known by its part in either partition

        def paid_by(row, charges):
            return sum(paid for where, paid in charges if where in (None, third(row[0]), half(row[1])))

        worst = max(paid_by(row, [*granted, (part, cost)]) for row in rows)
        try:
            last = ask(adult, part, units).seq
        except BudgetExceeded:
            assert worst > capacity
            last += 1
            continue
        granted.append((part, cost))
        assert worst <= capacity
        assert adult.statement("adult").spent.pico_mu_squared == worst
    assert len(granted) < 60, "the stream must meet the limit, or this would test little"
    assert adult.verify().ok


def test_a_cheaper_part_goes_on_when_the_dearest_is_full(adult):
    room = BUDGET.capacity().pico_mu_squared // 10**6
    ask(adult, third(0), room - 10)
    for index in (0, None):
        with pytest.raises(BudgetExceeded):
            ask(adult, None if index is None else third(index), 1000)
    before = adult.statement("adult").spent
    ask(adult, third(1), room - 20)
    assert adult.statement("adult").spent == before


def test_the_refusal_names_the_part_and_what_would_fit(adult):
    room = BUDGET.capacity().pico_mu_squared // 10**6
    ask(adult, third(0), room - 500)
    ask(adult, third(1), room - 9000)
    with pytest.raises(BudgetExceeded) as caught:
        ask(adult, third(1), 20_000)
    assert "is left of account 'adult' for part 2 of 3 of 'thirds'. Nothing was charged for it." in str(caught.value)
    line = adult.statement("adult").of_part(third(1))
    assert caught.value.remaining_epsilon == line.remaining_epsilon > adult.statement("adult").remaining_epsilon
    ask(adult, third(1), 8990)


def test_an_analysts_cap_follows_the_same_rule(adult):
    cap = Budget(0.3, 6e-7)
    adult.cap_analyst("adult", "bob", cap)
    room = cap.capacity().pico_mu_squared // 10**6
    for index in range(3):
        ask(adult, third(index), room - 5, analyst="bob")
    with pytest.raises(BudgetExceeded, match="the cap of analyst 'bob' on account 'adult' for part 3 of 3 of 'thirds'"):
        ask(adult, third(2), room, analyst="bob")
    with pytest.raises(BudgetExceeded):
        ask(adult, None, room, analyst="bob")
    ask(adult, third(2), room, analyst="alice")
    assert adult.statement("adult").of_analyst("bob").spent == of_units(room - 5).cost()
    assert adult.verify().ok


def test_a_replay_counts_against_the_part_for_who_has_not_seen_it(adult):
    adult.cap_analyst("adult", "bob", Budget(0.5, 1e-6))
    adult.store(ask(adult, third(0), 2000, key=KEY), b"seen")
    ask(adult, third(1), 2000, analyst="bob")
    replay = ask(adult, third(0), 2000, analyst="bob", key=KEY)
    assert isinstance(replay, Replay)
    assert replay.release == b"seen"
    assert replay.counted == replay.cost
    assert adult.statement("adult").of_analyst("bob").spent == replay.cost  # two parts, one price
    for part in (third(1), None):
        with pytest.raises(LedgerError, match="which asked part 1 of 3 of 'thirds'; now it comes for"):
            ask(adult, part, 2000, key=KEY)
    assert adult.verify().ok


@pytest.mark.parametrize(
    "part",
    [
        Part("short", "thirds", 0, 3),
        Part(THIRDS, "", 0, 3),
        Part(THIRDS, "thirds", 3, 3),
        Part(THIRDS, "thirds", -1, 3),
        Part(THIRDS, "thirds", 0, 1),
        Part(THIRDS, "thirds", 0, 10**9),
        Part(THIRDS, "thirds", True, 3),
        "thirds",
    ],
    ids=repr,
)
def test_bad_parts_are_refused_before_anything_is_charged(adult, part):
    with pytest.raises(InvalidInput):
        ask(adult, part)
    assert adult.statement("adult").n_questions == 0


def test_a_partition_keeps_its_name_and_count(adult):
    ask(adult, third(0))
    for other in (Part(THIRDS, "other", 0, 3), Part(THIRDS, "thirds", 0, 4)):
        with pytest.raises(LedgerError, match="is known as 'thirds' with 3 parts; now it comes as"):
            ask(adult, other)
    assert adult.statement("adult").n_questions == 1


@pytest.mark.parametrize("relation", ["replace-one", "add-remove, up to 2 rows per person"])
def test_accounts_of_exchanged_rows_or_of_persons_have_no_parts(adult, relation):
    adult.open_account("exchange", BUDGET, relation)
    with pytest.raises(LedgerError, match="under 'add-remove' only"):
        adult.charge("exchange", analyst="alice", event=of_units(5), question={}, key=None, part=third(0))
    assert adult.statement("exchange").n_questions == 0


def test_threads_never_overspend_a_part(adult):
    unit = of_units(1500)
    fitting = BUDGET.capacity().pico_mu_squared // unit.cost().pico_mu_squared
    granted = []

    def work(number):
        for turn in range(fitting):
            part = third((turn + number) % 3)
            with contextlib.suppress(BudgetExceeded):
                granted.append((part, ask(adult, part, event=unit).seq))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {part: sum(one == part for one, _ in granted) for part, _ in granted} == dict.fromkeys(
        map(third, range(3)), fitting
    )
    assert len({seq for _, seq in granted}) == 3 * fitting
    assert adult.verify().ok


def test_whole_data_charges_are_written_as_ever(adult):
    ask(adult)
    assert "part" not in adult.statement("adult").entries[-1].body
    assert adult.statement("adult").entries[-1].part is None
    ask(adult, third(2))
    assert adult.statement("adult").entries[-1].part == third(2)
    assert adult.statement("adult").to_json()["parts"][0]["index"] == 2


# --- what analysts keep -----------------------------------------------------------------------------------------------


def test_what_is_kept_is_found_by_who_kept_it(adult):
    before = adult.statement("adult").spent
    adult.keep("adult", analyst="alice", name="notes", content=b"one")
    adult.keep("adult", analyst="alice", name="notes", content=b"two")
    assert adult.kept("adult", analyst="alice", name="notes") == b"two"
    assert adult.kept("adult", analyst="bob", name="notes") is None
    assert adult.kept("adult", analyst="alice", name="other") is None
    assert adult.statement("adult").spent == before
    assert [entry.kind for entry in adult.statement("adult").entries] == ["opened", "kept", "kept"]
    assert adult.verify().ok
    assert isinstance(ask(adult), Charge)


@pytest.mark.parametrize("change", [{"name": ""}, {"name": "a\nb"}, {"analyst": ""}, {"content": "text"}], ids=repr)
def test_bad_things_to_keep_are_refused(adult, change):
    with pytest.raises(InvalidInput):
        adult.keep("adult", **{"analyst": "alice", "name": "notes", "content": b"", **change})
    with pytest.raises(LedgerError, match="no account 'nowhere'"):
        adult.keep("nowhere", analyst="alice", name="notes", content=b"")
    assert len(adult.statement("adult").entries) == 1


# --- files: tampering, older ledgers, crashes ---------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    """Entries: opened, charged (part 1), charged (part 2), charged, kept."""
    path = tmp_path / "ledger.db"
    ledger = SqlLedger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    ask(ledger, third(0), 1000)
    ask(ledger, third(1), 3000)
    ask(ledger, None, 500)
    ledger.keep("adult", analyst="alice", name="notes", content=b"mine")
    assert ledger.verify().ok
    ledger.close()
    return path


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "UPDATE vitrail_parts SET spent = replace(spent, '1000', '1') WHERE part_index = 0 AND analyst = ''",
            "What account 'adult' has spent on part 1 of 3 of 'thirds' is kept as",
        ),
        ("DELETE FROM vitrail_parts WHERE analyst = 'alice'", "What analyst 'alice' on account 'adult' has spent on part 1"),
        (
            "UPDATE vitrail_parts SET part_index = 2 WHERE part_index = 1",
            "has spent on part 3 of 3 of 'thirds' is kept as PartRow",
        ),
        ("UPDATE vitrail_parts SET part_count = 4", "has spent on part 1 of 4 of 'thirds' is kept as PartRow"),
        ("UPDATE vitrail_parts SET spent = 'x'", "cannot be read"),
        ("DELETE FROM vitrail_parts", "is kept as None; its entries say PartRow"),
        ("UPDATE vitrail_kept SET content = x'00'", "keeps as 'notes' in account 'adult' cannot stand: it does not match"),
        ("UPDATE vitrail_kept SET analyst = 'bob'", "What analyst 'alice' keeps as 'notes' in account 'adult' was recorded"),
        ("DELETE FROM vitrail_kept", "was recorded and is missing"),
        ("INSERT INTO vitrail_kept VALUES ('adult', 'eve', 'notes', 5, x'00')", "cannot stand: no entry records it"),
    ],
)
def test_verify_names_what_was_done_to_parts_and_kept_work(path, statement, expected):
    assert expected in problems_after(path, statement)


def rewrite(path, seq, change):
    """Change one entry, then forge every later link and the head, as an insider could."""
    with sqlite3.connect(path) as connection:
        previous = None
        for number, record in connection.execute("SELECT seq, record FROM vitrail_entries ORDER BY seq").fetchall():
            fields = json.loads(record)
            if number == seq:
                change(fields["body"])
            if previous is not None:
                fields["previous"] = previous
            text = canonical_json(fields)
            previous = digest_of(text)
            connection.execute("UPDATE vitrail_entries SET record = ?, digest = ? WHERE seq = ?", (text, previous, number))
        connection.execute("UPDATE vitrail_accounts SET head = ?", (previous,))
    connection.close()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda body: body["part"].update(index=1), "has spent on part 1 of 3 of 'thirds' is kept as PartRow"),
        (lambda body: body.pop("part"), "The spent of account 'adult' is kept as"),
        (lambda body: body["part"].update(index=7), "it names a part that cannot be read"),
        (lambda body: body["part"].update(extra=1), "it names a part that cannot be read"),
        (lambda body: body.update(part="all"), "it names a part that cannot be read"),
    ],
)
def test_a_part_that_was_moved_shows_even_with_every_digest_forged(path, change, expected):
    rewrite(path, 2, change)
    assert expected in problems_after(path)


def test_two_descriptions_of_one_partition_show(path):
    rewrite(path, 3, lambda body: body["part"].update(count=4))
    assert "it describes its partition otherwise than an entry before it" in problems_after(path)


def test_parts_under_replace_one_show(path):
    rewrite(path, 1, lambda body: body.update(neighbours="replace-one"))
    assert "it charges a part under neighbours 'replace-one'" in problems_after(path)


def test_charges_to_parts_past_the_budget_show(path):
    def shrink(body):
        small = Budget(0.05, 1e-6, training=(0.01, 1e-8))
        body["budget"] = small.to_json()
        capacity = small.capacity()
        body["capacity"].update(
            pico_mu_squared=capacity.pico_mu_squared,
            pico_epsilon=capacity.pico_epsilon,
            quecto_delta=capacity.quecto_delta,
        )

    rewrite(path, 1, shrink)
    assert "Entry 3 of account 'adult' cannot stand: it takes the account past its budget." in problems_after(path)


def test_changed_kept_work_is_not_handed_out(path):
    problems_after(path, "UPDATE vitrail_kept SET content = x'00'")
    ledger = SqlLedger(path, must_exist=True)
    with pytest.raises(LedgerCorrupted, match="keeps as 'notes' does not match its digest"):
        ledger.kept("adult", analyst="alice", name="notes")
    ledger.close()


def test_the_rule_written_out():
    spending = Spending()
    assert spending.exposure(("thirds", 1)) == Cost()
    spending.add(Cost(2))
    spending.add(Cost(5, 7), ("thirds", 0))
    spending.add(Cost(6, 1), ("thirds", 1))
    spending.add(Cost(3), ("halves", 0))
    assert spending.total == Cost(2 + 6 + 3, 7)
    assert spending.exposure(("thirds", 0)) == Cost(2 + 5 + 3, 7)
    assert spending.exposure(("thirds", 2)) == Cost(2 + 3)
    assert spending.exposure(("halves", 1)) == Cost(2 + 6, 7)
    assert spending.exposure(None) == spending.total
