"""What a ledger does, wherever it is kept (``conftest`` says where)."""

import contextlib
import copy
import os
import pickle
import subprocess
import sys
import threading

import pytest

from ledger_setup import BUDGET, KEY, ask, block, event_of
from vitrail.accounting import Cost, GaussianSum, Selection
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded, InvalidInput, LedgerError
from vitrail.ledger import Charge, SqlLedger, open_ledger


def test_it_has_the_face_of_a_ledger(ledger):
    assert isinstance(ledger, SqlLedger)
    assert open_ledger(ledger) is ledger


def test_open_account_twice_gives_the_same(ledger):
    ledger.open_account("adult", BUDGET, "add-remove")
    first = ledger.statement("adult")
    ledger.open_account("adult", BUDGET, "add-remove")
    assert ledger.statement("adult") == first
    assert first.capacity == BUDGET.capacity()
    assert [entry.kind for entry in ledger.statement("adult").entries] == ["opened"]


@pytest.mark.parametrize(
    ("budget", "neighbours"), [(Budget(2.0, 1e-6), "add-remove"), (BUDGET, "replace-one"), (Budget(1.0, 1e-6), "add-remove")]
)
def test_open_account_with_other_values_says_both(adult, budget, neighbours):
    with pytest.raises(LedgerError) as caught:
        adult.open_account("adult", budget, neighbours)
    text = str(caught.value)
    assert str(BUDGET) in text
    assert str(budget) in text
    assert repr(neighbours) in text
    assert "another account name" in text
    assert adult.statement("adult").budget == BUDGET


def test_charge_takes_the_price_and_gives_a_receipt(adult):
    event = GaussianSum(1.0, 20.0)
    receipt = ask(adult, event=event)
    assert receipt == Charge("adult", 2, event.cost(), receipt.digest)
    statement = adult.statement("adult")
    assert statement.spent == event.cost()
    assert statement.n_questions == 1
    line = statement.entries[1]
    assert (line.kind, line.analyst, line.cost, line.digest) == ("charged", "alice", event.cost(), receipt.digest)
    assert line.body["question"] == {"kind": "sum", "size": 3}
    assert line.body["event"] == {"kind": "gaussian-sum", "version": 1, "sensitivity": 1.0, "sigma": 20.0}


def test_every_kind_of_event_is_charged(adult):
    events = [GaussianSum(1.0, 30.0), Selection(0.05), block(0.1, 1e-7)]
    for event in events:
        ask(adult, event=event)
    total = Cost()
    for event in events:
        total += event.cost()
    assert adult.statement("adult").spent == total
    assert adult.verify().ok


def test_account_exhausts_exactly(ledger):
    budget = Budget(0.5, 1e-6)
    ledger.open_account("adult", budget, "add-remove")
    unit = GaussianSum(1.0, 100.0)
    fitting = ledger.statement("adult").capacity.pico_mu_squared // unit.cost().pico_mu_squared
    for _ in range(fitting):
        ask(ledger, event=unit)
    with pytest.raises(BudgetExceeded):
        ask(ledger, event=unit)
    statement = ledger.statement("adult")
    assert statement.n_questions == fitting
    rest = statement.remaining.pico_mu_squared
    assert rest < unit.cost().pico_mu_squared


def test_accounts_do_not_share_their_purse(ledger):
    for name in ("one", "two"):
        ledger.open_account(name, Budget(0.5, 1e-6), "add-remove")
    ask(ledger, 0.45, account="one")
    ask(ledger, 0.45, account="two")
    assert ledger.accounts() == ("one", "two")
    assert ledger.statement("one").n_questions == ledger.statement("two").n_questions == 1


def test_refusal_says_requested_remaining_and_what_fits(adult):
    ask(adult, 0.5)
    before = adult.statement("adult")
    with pytest.raises(BudgetExceeded) as caught:
        ask(adult, 0.5)
    refused = caught.value
    assert str(refused).startswith("This question costs epsilon 0.5 (at delta 6e-07), but only 0.3")
    assert "is left of account 'adult'. Nothing was charged for it. A question of epsilon <= 0.3" in str(refused)
    assert refused.cap == "dataset"
    assert refused.requested_epsilon == pytest.approx(0.5, rel=1e-6)
    assert refused.remaining_epsilon == before.remaining_epsilon
    assert adult.statement("adult") == before
    advised = float(str(refused).split("epsilon <= ")[1].split(" would fit")[0])
    assert 0.99 * refused.remaining_epsilon <= advised <= refused.remaining_epsilon
    assert isinstance(ask(adult, advised), Charge)


def test_remaining_epsilon_really_fits_and_little_more_does(adult):
    ask(adult, 0.3)
    left = adult.statement("adult").remaining_epsilon
    with pytest.raises(BudgetExceeded):
        ask(adult, left * (1 + 1e-6))
    assert isinstance(ask(adult, left), Charge)
    assert adult.statement("adult").remaining_epsilon < 1e-3


def test_whole_budget_in_one_question(ledger):
    ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    statement = ledger.statement("adult")
    assert statement.spent_epsilon == 0
    assert statement.remaining_epsilon == 1.0  # as it was declared, not a rounding below


def test_refusal_when_nothing_is_left(ledger):
    ledger.open_account("adult", Budget(0.2, 1e-6), "add-remove")
    capacity = ledger.statement("adult").capacity.pico_mu_squared
    ask(ledger, event=GaussianSum(1.0, (10**12 / capacity) ** 0.5 * (1 + 1e-12)))
    with pytest.raises(BudgetExceeded, match=r"only 0 is left .* No question with an epsilon above 0 fits any more"):
        ask(ledger, 0.1)


def test_refusal_of_an_absurd_price(adult):
    with pytest.raises(BudgetExceeded, match="costs epsilon inf") as caught:
        ask(adult, event=GaussianSum(1.0, 1e-6))
    assert caught.value.requested_epsilon == float("inf")


def test_refusal_of_a_block_speaks_of_the_training_purse(adult):
    ask(adult, event=block(0.1, 1e-7))
    with pytest.raises(BudgetExceeded) as caught:
        ask(adult, event=block(0.35, 1e-7))
    assert str(caught.value) == (
        "This training block costs epsilon 0.35 and delta 1e-07, but only epsilon 0.3 and delta 3e-07 are left of the "
        "training purse of account 'adult'. Nothing was charged for it. A block within these two would fit."
    )
    assert (caught.value.requested_epsilon, caught.value.remaining_epsilon) == (0.35, 0.3)
    with pytest.raises(BudgetExceeded, match=r"delta 4e-07, but only epsilon 0\.3 and delta 3e-07"):
        ask(adult, event=block(0.1, 4e-7))
    ask(adult, event=block(0.3, 3e-7))
    assert adult.statement("adult").training_remaining == (0.0, 0.0)


def test_refusal_of_a_block_without_a_purse(ledger):
    ledger.open_account("adult", Budget(1.0, 1e-6), "add-remove")
    with pytest.raises(BudgetExceeded, match="has no training purse"):
        ask(ledger, event=block(0.1, 1e-7))


def test_purses_are_apart(adult):
    ask(adult, 0.6 * 0.99)
    ask(adult, event=block(0.4, 4e-7))
    with pytest.raises(BudgetExceeded, match="This question"):
        ask(adult, 0.3)
    assert adult.verify().ok


def test_store_refuses_strangers_and_keeps_the_first(adult):
    receipt = ask(adult, key=KEY)
    assert adult.store(receipt, b"one") == b"one"
    assert adult.store(receipt, b"two") == b"one"
    for stranger in (
        Charge("adult", 1, receipt.cost, receipt.digest),
        Charge("adult", 99, receipt.cost, receipt.digest),
        Charge("adult", receipt.seq, receipt.cost, "0" * 64),
    ):
        with pytest.raises(LedgerError, match="not the charge"):
            adult.store(stranger, b"x")
    with pytest.raises(LedgerError, match="no account 'nowhere'"):
        adult.store(Charge("nowhere", 2, receipt.cost, receipt.digest), b"x")
    assert ask(adult, key=KEY).release == b"one"


def test_statement_states_epsilon_at_the_account_delta(adult):
    ask(adult, 0.25)
    statement = adult.statement("adult")
    assert statement.delta == BUDGET.question_delta
    assert statement.spent_epsilon == pytest.approx(0.25, rel=1e-6)
    assert statement.to_json()["spent_epsilon"] == statement.spent_epsilon
    assert statement.head == adult.verify().heads["adult"]
    with pytest.raises(LedgerError, match="'carol' has no line"):
        statement.of_analyst("carol")


def test_unknown_account_names_the_known_ones(adult):
    for action in (
        lambda: ask(adult, account="adlut"),
        lambda: adult.statement("adlut"),
        lambda: adult.cap_analyst("adlut", "bob", BUDGET),
    ):
        with pytest.raises(LedgerError, match="no account 'adlut' in this ledger; it has 'adult'"):
            action()
    assert adult.accounts() == ("adult",)


@pytest.mark.parametrize(
    "change",
    [
        {"analyst": ""},
        {"analyst": "a\nb"},
        {"analyst": 3},
        {"analyst": "x" * 201},
        {"key": "short"},
        {"key": "AB" * 32},
        {"key": 7},
        {"question": {"size": float("nan")}},
        {"question": {1: "x"}},
        {"question": {"rows": {1, 2}}},
        {"question": [1]},
        {"question": {"text": "x" * 70_000}},
        {"event": GaussianSum(1.0, 0.0)},
        {"event": GaussianSum(float("nan"), 1.0)},
        {"event": GaussianSum(1.0, float("inf"))},
        {"event": block(-0.1, 1e-7)},
        {"event": block(0.1, -1e-7)},
        {"event": Selection(float("inf"))},
        {"event": "free"},
    ],
    ids=repr,
)
def test_bad_input_is_refused_before_anything_is_charged(adult, change):
    arguments = {"analyst": "alice", "event": event_of(0.1), "question": {}, "key": None, **change}
    with pytest.raises(InvalidInput):
        adult.charge("adult", **arguments)
    assert [entry.kind for entry in adult.statement("adult").entries] == ["opened"]


def test_bad_accounts_and_releases_are_refused(adult):
    with pytest.raises(InvalidInput, match="the name of an account"):
        adult.open_account(" adult", BUDGET, "add-remove")
    with pytest.raises(InvalidInput, match="neighbours is 'nearby'"):
        adult.open_account("other", BUDGET, "nearby")
    with pytest.raises(InvalidInput, match="budget is a tuple"):
        adult.open_account("other", (1.0, 1e-6), "add-remove")
    with pytest.raises(InvalidInput, match="must be bytes"):
        adult.store(ask(adult), "text")


def test_closed_ledger_says_so(adult):
    adult.close()
    with pytest.raises(LedgerError, match="was closed"):
        ask(adult)


def test_no_copy_of_a_ledger(adult):
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="cannot be copied or pickled"):
            attempt(adult)


def test_threads_never_overspend(ledger):
    ledger.open_account("adult", Budget(0.5, 1e-6), "add-remove")
    unit = GaussianSum(1.0, 60.0)
    fitting = ledger.statement("adult").capacity.pico_mu_squared // unit.cost().pico_mu_squared
    granted = []

    def work():
        for _ in range(fitting // 4):
            with contextlib.suppress(BudgetExceeded):
                granted.append(ask(ledger, event=unit).seq)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == len(set(granted)) == fitting
    assert ledger.verify().ok


def test_heads_that_were_published_must_stay_in_the_history(adult):
    published = adult.verify().heads
    ask(adult)
    assert adult.verify(published).ok
    assert adult.verify({"adult": "0" * 64}).problems == (
        "The history of account 'adult' does not pass through the head that was published.",
    )
    assert "is not in this ledger" in adult.verify({"lost": "0" * 64}).problems[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_memory_ledger_does_not_spend_in_a_child():
    ledger = open_ledger("memory")
    ledger.open_account("adult", BUDGET, "add-remove")
    child = os.fork()
    if child == 0:
        try:
            ask(ledger)
            os._exit(1)
        except LedgerError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sqlalchemy_is_imported_when_a_ledger_is_opened():
    program = (
        "import sys, vitrail.vault, vitrail.ledger; before = 'sqlalchemy' in sys.modules; vitrail.ledger.open_ledger(None); "
        "print(before, 'sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


def test_open_ledger_by_address(tmp_path):
    for where in (f"sqlite:///{tmp_path}/a.db", str(tmp_path / "b.sqlite"), tmp_path / "c.sqlite3"):
        opened = open_ledger(where)
        assert isinstance(opened, SqlLedger)
        opened.close()
    assert repr(open_ledger("memory")) == repr(open_ledger(None)) == "SqlLedger('memory')"
    for where in ("ledger", tmp_path / "ledger.txt", 3):
        with pytest.raises(InvalidInput):
            open_ledger(where)
