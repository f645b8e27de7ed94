"""What several analysts share: answers that were paid for already, and caps (``conftest`` says where ledgers are kept)."""

import pytest

from ledger_setup import BUDGET, KEY, OTHER_KEY, ask, block, event_of
from vitrail.accounting import Cost
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded, LedgerError
from vitrail.ledger import Charge, Replay


def test_replay_costs_the_account_nothing(adult):
    receipt = ask(adult, key=KEY)
    adult.store(receipt, b"answer")
    spent = adult.statement("adult").spent
    again = ask(adult, key=KEY)
    assert again == Replay("adult", receipt.seq, receipt.cost, Cost(), b"answer")
    assert b"answer" not in repr(again).encode()
    other = ask(adult, key=KEY, analyst="bob")
    assert other.counted == receipt.cost
    assert ask(adult, key=KEY, analyst="bob").counted == Cost()
    statement = adult.statement("adult")
    assert statement.spent == spent
    assert statement.n_questions == 1
    assert statement.of_analyst("alice").spent == statement.of_analyst("bob").spent == receipt.cost
    assert [entry.kind for entry in statement.entries] == [
        "opened",
        "charged",
        "released",
        "replayed",
        "replayed",
        "replayed",
    ]
    assert adult.verify().ok


def test_a_charge_whose_release_was_not_stored_is_given_again(adult):
    """Nothing of it has left the vault: a crash between charge and store does not cost a second time."""
    first = ask(adult, 0.2, key=KEY)
    assert ask(adult, 0.2, key=KEY) == first
    assert ask(adult, 0.1, key=KEY) == first  # what is cheaper was paid for as well
    with pytest.raises(LedgerError, match=r"a question that was charged Cost.*A key must name one question"):
        ask(adult, 0.3, key=KEY)
    statement = adult.statement("adult")
    assert (statement.n_questions, statement.spent) == (1, first.cost)
    assert [entry.kind for entry in statement.entries] == ["opened", "charged"]
    assert adult.store(first, b"answer") == b"answer"
    assert ask(adult, 0.2, key=KEY).release == b"answer"
    assert adult.verify().ok


def test_a_charge_of_another_that_was_not_stored_is_joined(adult):
    first = ask(adult, 0.2, key=KEY)
    assert [ask(adult, 0.2, key=KEY, analyst="bob") for _ in range(3)] == [first] * 3
    statement = adult.statement("adult")
    assert statement.spent == statement.of_analyst("alice").spent == statement.of_analyst("bob").spent == first.cost
    assert [(entry.kind, entry.analyst) for entry in statement.entries[1:]] == [("charged", "alice"), ("joined", "bob")]
    adult.store(first, b"answer")
    assert ask(adult, 0.2, key=KEY, analyst="bob").counted == Cost()
    assert adult.statement("adult").of_analyst("bob").spent == first.cost
    assert adult.verify().ok


def test_joining_counts_against_the_cap(adult):
    ask(adult, 0.2, key=KEY)
    adult.cap_analyst("adult", "bob", Budget(0.15, 6e-7))
    before = adult.statement("adult")
    with pytest.raises(BudgetExceeded, match="the cap of analyst 'bob'"):
        ask(adult, 0.2, key=KEY, analyst="bob")
    assert adult.statement("adult") == before


def test_of_two_answers_to_one_charge_the_first_stored_is_everybodys(adult):
    alices, bobs = ask(adult, key=KEY), ask(adult, key=KEY, analyst="bob")
    assert adult.store(bobs, b"bob's") == b"bob's"
    assert adult.store(alices, b"alice's") == b"bob's"
    assert {ask(adult, key=KEY, analyst=name).release for name in ("alice", "bob", "carol")} == {b"bob's"}
    assert sum(entry.kind == "released" for entry in adult.statement("adult").entries) == 1
    assert adult.verify().ok


def test_no_key_is_always_new(adult):
    adult.store(ask(adult), b"one")
    assert isinstance(ask(adult), Charge)


def test_keys_belong_to_their_account(adult):
    adult.open_account("other", BUDGET, "add-remove")
    adult.store(ask(adult, key=KEY), b"one")
    assert isinstance(ask(adult, key=KEY, account="other"), Charge)


def test_replay_works_after_the_budget_is_gone(adult):
    event = event_of(0.3)
    adult.store(ask(adult, event=event, key=KEY), b"kept")
    ask(adult, adult.statement("adult").remaining_epsilon)
    with pytest.raises(BudgetExceeded):
        ask(adult, event=event, key=OTHER_KEY)
    assert ask(adult, event=event, key=KEY, analyst="bob").release == b"kept"


def test_key_with_another_event_is_refused(adult):
    adult.store(ask(adult, 0.1, key=KEY), b"one")
    with pytest.raises(LedgerError, match="A key must name one question"):
        ask(adult, 0.2, key=KEY)
    assert adult.statement("adult").n_questions == 1


def test_analyst_cap_refuses_and_others_go_on(adult):
    adult.cap_analyst("adult", "bob", Budget(0.2, 6e-7))
    ask(adult, 0.15, analyst="bob")
    with pytest.raises(BudgetExceeded, match="left of the cap of analyst 'bob' on account 'adult'") as caught:
        ask(adult, 0.15, analyst="bob")
    assert caught.value.cap == "analyst bob"
    assert isinstance(ask(adult, 0.15, analyst="alice"), Charge)
    line = adult.statement("adult").of_analyst("bob")
    assert line.remaining_epsilon == caught.value.remaining_epsilon
    assert isinstance(ask(adult, line.remaining_epsilon, analyst="bob"), Charge)
    assert adult.verify().ok


def test_analyst_cap_counts_a_replay_once(adult):
    event = event_of(0.15)
    adult.store(ask(adult, event=event, key=KEY), b"one")
    adult.store(ask(adult, event=event, key=OTHER_KEY), b"two")
    adult.cap_analyst("adult", "bob", Budget(0.2, 6e-7))
    assert ask(adult, event=event, key=KEY, analyst="bob").counted == event.cost()
    assert ask(adult, event=event, key=KEY, analyst="bob").counted == Cost()
    before = adult.statement("adult")
    with pytest.raises(BudgetExceeded) as caught:
        ask(adult, event=event, key=OTHER_KEY, analyst="bob")
    assert caught.value.cap == "analyst bob"
    assert adult.statement("adult") == before
    assert ask(adult, event=event, key=KEY, analyst="bob").release == b"one"
    assert adult.verify().ok


def test_latest_cap_holds(adult):
    adult.cap_analyst("adult", "bob", Budget(0.1, 6e-7))
    with pytest.raises(BudgetExceeded):
        ask(adult, 0.3, analyst="bob")
    adult.cap_analyst("adult", "bob", Budget(0.5, 1e-6, training=(0.1, 4e-7)))
    ask(adult, 0.3, analyst="bob")
    adult.cap_analyst("adult", "bob", Budget(0.15, 1e-6, training=(0.1, 4e-7)))
    with pytest.raises(BudgetExceeded, match="only 0 is left"):
        ask(adult, 0.01, analyst="bob")
    ask(adult, event=block(0.1, 1e-7), analyst="bob")  # the training purse is not touched by questions
    assert adult.statement("adult").of_analyst("bob").cap == Budget(0.15, 1e-6, training=(0.1, 4e-7))
    assert adult.verify().ok


def test_capping_counts_what_was_spent_before(adult):
    ask(adult, 0.3, analyst="bob")
    adult.cap_analyst("adult", "bob", Budget(0.3, 6e-7))
    with pytest.raises(BudgetExceeded):
        ask(adult, 0.1, analyst="bob")


def test_dataset_cap_holds_for_colluding_analysts(adult):
    event = event_of(0.2)
    fitting = BUDGET.capacity().pico_mu_squared // event.cost().pico_mu_squared
    for number in range(fitting):
        ask(adult, event=event, analyst=f"analyst {number}")
    with pytest.raises(BudgetExceeded) as caught:
        ask(adult, event=event, analyst="one more")
    assert caught.value.cap == "dataset"
    assert adult.statement("adult").spent <= BUDGET.capacity()
