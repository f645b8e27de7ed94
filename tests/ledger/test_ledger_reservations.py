"""Reservations: a recipe's whole price is set aside at once, booked step by step, and what is left is given back."""

import json
import math
import threading
from dataclasses import replace

import pytest

from reservation_setup import (
    BUDGET,
    CAPACITY,
    OTHER,
    RECIPE,
    event,
    exhaust,
    key,
    opened,
    reserve,
    spent,
    step,
    third,
    units,
)
from vitrail.accounting import Cost, FixedBlock, GaussianSum
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded, InvalidInput, LedgerError
from vitrail.ledger import Replay, Reservation


@pytest.fixture
def adult(ledger):
    return opened(ledger)


# One reservation


def test_a_reservation_counts_as_spent_at_once(adult):
    made = reserve(adult)
    assert made == Reservation("adult", 2, "alice", RECIPE, None, units(3000), units(3000), made.digest)
    assert spent(adult) == spent(adult, "alice") == units(3000)
    statement = adult.statement("adult")
    assert statement.n_questions == 0
    (line,) = statement.reservations
    assert (line.seq, line.analyst, line.recipe, line.label, line.part) == (2, "alice", RECIPE, "a report", None)
    assert (line.reserved, line.booked, line.held) == (units(3000), Cost(), units(3000))
    assert line.time_utc == statement.entries[1].time_utc
    assert json.loads(json.dumps(statement.to_json()))["reservations"][0]["recipe"] == RECIPE
    assert adult.verify().ok


def test_a_reservation_that_does_not_fit_is_refused_as_a_question_is(adult):
    before = adult.statement("adult")
    with pytest.raises(
        BudgetExceeded, match=r"This question costs epsilon .* is left of account 'adult'.*would fit"
    ) as caught:
        reserve(adult, CAPACITY + 1)
    assert caught.value.cap == "dataset"
    adult.cap_analyst("adult", "bob", Budget(0.1, 6e-7))
    capped = adult.statement("adult")
    with pytest.raises(BudgetExceeded, match="the cap of analyst 'bob' on account 'adult'"):
        reserve(adult, CAPACITY // 2, "bob")
    assert adult.statement("adult") == capped
    assert before.reservations == capped.reservations == ()
    reserve(adult, CAPACITY)  # and exactly what is there


def test_what_is_booked_moves_no_total_and_what_is_not_is_given_back(adult):
    made = reserve(adult, 3000)
    first, _ = step(adult, made, 0, 1000)
    assert spent(adult) == spent(adult, "alice") == units(3000)
    (line,) = adult.statement("adult").reservations
    assert (line.booked, line.held) == (first.cost, first.cost.left_of(units(3000)))
    second, _ = step(adult, made, 1, 500)
    booked = first.cost + second.cost
    assert adult.finish(made) == booked.left_of(units(3000))
    assert spent(adult) == spent(adult, "alice") == booked
    assert adult.finish(made) == Cost()
    statement = adult.statement("adult")
    assert (statement.n_questions, statement.reservations) == (2, ())
    assert [entry.kind for entry in statement.entries] == [
        "opened",
        "reserved",
        "charged",
        "released",
        "charged",
        "released",
        "finished",
    ]
    assert statement.entries[2].body["reservation"] == made.seq
    assert adult.verify().ok


def test_a_recipe_cannot_book_more_than_its_price(adult):
    made = reserve(adult, 3000)
    step(adult, made, 0, 2500)
    before = adult.statement("adult")
    with pytest.raises(LedgerError, match=r"A recipe asked for more than its price.*Nothing was charged\.$"):
        step(adult, made, 1, 501)
    assert adult.statement("adult") == before
    step(adult, made, 1, 500)
    with pytest.raises(LedgerError, match="more than its price"):
        step(adult, made, 2, 1)


def test_blocks_are_reserved_in_their_own_purse(adult):
    block = FixedBlock(0.3, 3e-7, noise_multiplier=1.0, sampling_rate=0.01, steps=100)
    made = reserve(adult, units(100) + block.cost())
    assert adult.statement("adult").training_spent == pytest.approx((0.3, 3e-7))
    with pytest.raises(BudgetExceeded, match="training purse"):
        adult.charge("adult", analyst="bob", event=block, question={}, key=None)
    adult.charge("adult", analyst="alice", event=block, question={}, key=None, reservation=made)
    with pytest.raises(LedgerError, match="more than its price"):
        adult.charge("adult", analyst="alice", event=block, question={}, key=None, reservation=made)
    assert adult.finish(made) == units(100)
    assert spent(adult) == block.cost()
    assert adult.verify().ok


def test_a_cap_that_is_lowered_does_not_touch_what_was_reserved(adult):
    made = reserve(adult)
    adult.cap_analyst("adult", "alice", Budget(0.001, 6e-7))
    step(adult, made, 0, 3000)
    with pytest.raises(BudgetExceeded):
        reserve(adult, 1, recipe=OTHER)
    adult.finish(made)
    assert adult.verify().ok


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": "short"},
        {"recipe": 7},
        {"cost": 3},
        {"cost": Cost(-1)},
        {"analyst": ""},
        {"question": {1: 2}},
        {"part": "x"},
    ],
    ids=repr,
)
def test_bad_input_is_refused_before_anything_is_reserved(adult, change):
    arguments = {"analyst": "alice", "cost": units(5), "recipe": RECIPE, "question": {}, **change}
    with pytest.raises(InvalidInput):
        adult.reserve("adult", **arguments)
    assert len(adult.statement("adult").entries) == 1


def test_a_reservation_is_used_by_who_made_it_and_for_what(adult):
    adult.open_account("other", BUDGET, "add-remove")
    made = reserve(adult)
    asked = {"event": event(5), "question": {}, "key": None}
    with pytest.raises(LedgerError, match="made in account 'adult' by analyst 'alice' for the whole data"):
        adult.charge("adult", analyst="bob", reservation=made, **asked)
    with pytest.raises(LedgerError, match="for part 1 of 3 of 'thirds'"):
        adult.charge("adult", analyst="alice", reservation=made, part=third(0), **asked)
    with pytest.raises(LedgerError, match="the question is for account 'other'"):
        adult.charge("other", analyst="alice", reservation=made, **asked)
    for forged in (replace(made, seq=1), replace(made, seq=99), replace(made, digest="0" * 64)):
        with pytest.raises(LedgerError, match="is not the reservation that was given"):
            adult.charge("adult", analyst="alice", reservation=forged, **asked)
        with pytest.raises(LedgerError, match="is not the reservation that was given"):
            adult.finish(forged)
    assert adult.statement("adult").n_questions == 0


# A recipe that is asked for again


def test_an_open_reservation_is_resumed(adult):
    made = reserve(adult)
    step(adult, made, 0)
    assert reserve(adult) == made
    assert reserve(adult, 9999) == made  # it is named by its recipe, not by its price
    assert reserve(adult, recipe=OTHER).seq != made.seq
    assert reserve(adult, part=third(0)).seq != made.seq
    assert reserve(adult, recipe=None).seq != reserve(adult, recipe=None).seq
    assert isinstance(step(adult, made, 0), Replay)
    assert adult.verify().ok


def test_a_finished_recipe_is_replayed_for_nothing_when_the_budget_is_gone(adult):
    made = reserve(adult)
    charge, _ = step(adult, made, 0)
    adult.finish(made)
    exhaust(adult)
    before = adult.statement("adult")
    again = reserve(adult)
    assert again == Reservation("adult", 0, "alice", RECIPE, None, Cost(), Cost(), "")
    assert adult.statement("adult") == before
    assert step(adult, again, 0).release == b"answer 0"
    with pytest.raises(LedgerError, match="more than its price"):
        step(adult, again, 1)
    assert adult.finish(again) == Cost()
    assert spent(adult, "alice") == charge.cost
    assert adult.verify().ok


def test_of_a_finished_recipe_another_analyst_pays_the_cap_exactly(adult):
    made = reserve(adult)
    costs = [step(adult, made, number, 700)[0].cost for number in range(3)]
    adult.finish(made)
    exhaust(adult)
    step(adult, None, 0, 700, analyst="bob")  # bob has seen the first step, paid for without a reservation
    total = spent(adult)
    adult.cap_analyst("adult", "bob", Budget(0.5, 6e-7))
    bobs = reserve(adult, analyst="bob")
    assert (bobs.cost, bobs.counted) == (Cost(), costs[1] + costs[2])
    assert [step(adult, bobs, number, 700).counted for number in range(3)] == [Cost(), costs[1], costs[2]]
    assert adult.finish(bobs) == Cost()
    assert spent(adult, "bob") == costs[0] + costs[1] + costs[2]
    assert spent(adult) == total
    adult.cap_analyst("adult", "carol", Budget(0.02, 6e-7))
    with pytest.raises(BudgetExceeded, match="the cap of analyst 'carol'"):
        reserve(adult, analyst="carol")
    assert adult.verify().ok


def test_what_was_booked_before_is_not_reserved_again(adult):
    alices = reserve(adult, 3000)
    first, _ = step(adult, alices, 0, 1000)
    bobs = reserve(adult, 3000, "bob")  # while alice's is open
    assert (bobs.cost, bobs.counted) == (first.cost.left_of(units(3000)), units(3000))
    assert step(adult, bobs, 0, 1000).counted == first.cost
    second, _ = step(adult, bobs, 1, 1000)
    assert step(adult, alices, 1, 1000).counted == second.cost
    third_step, _ = step(adult, alices, 2, 1000)
    assert step(adult, bobs, 2, 1000).counted == third_step.cost
    booked = first.cost + second.cost + third_step.cost
    adult.finish(alices)
    adult.finish(bobs)
    assert spent(adult) == spent(adult, "alice") == spent(adult, "bob") == booked
    assert adult.statement("adult").n_questions == 3
    assert adult.verify().ok


def test_a_step_that_was_booked_and_not_stored_is_joined(adult):
    alices = reserve(adult, 3000)
    asked = {"event": event(1000), "question": {}, "key": key(0)}
    charge = adult.charge("adult", analyst="alice", reservation=alices, **asked)
    assert adult.charge("adult", analyst="alice", reservation=alices, **asked) == charge
    bobs = reserve(adult, 3000, "bob")
    assert adult.charge("adult", analyst="bob", reservation=bobs, **asked) == charge
    assert spent(adult, "bob") == units(3000)  # taken from what was reserved of the cap
    assert adult.store(charge, b"bob's") == b"bob's"
    assert adult.store(charge, b"alice's") == b"bob's"
    adult.finish(bobs)
    adult.finish(alices)
    assert spent(adult) == spent(adult, "bob") == charge.cost
    assert adult.verify().ok


def test_the_stored_question_of_a_step_is_authoritative(adult):
    made = reserve(adult)
    step(adult, made, 0, 1000)
    almost = GaussianSum(1.0, event(1000).sigma * (1 - 1e-12))
    asked = {"analyst": "alice", "event": almost, "question": {}, "key": key(0)}
    assert adult.charge("adult", reservation=made, **asked).release == b"answer 0"
    with pytest.raises(LedgerError, match="A key must name one question"):
        adult.charge("adult", **asked)
    with pytest.raises(LedgerError, match="A key must name one question"):
        adult.charge("adult", reservation=reserve(adult, part=third(0)), part=third(0), **asked)
    assert adult.statement("adult").n_questions == 1


def test_a_step_that_is_computed_again_may_differ_in_its_last_bit(ledger):
    """Above a mu of some 16 a price in whole units says more than a float: a step is booked at its units."""
    ledger.open_account("adult", Budget(2000.0, 1e-6), "add-remove")
    price = Cost(25**2 * 10**12 + 12345)
    made = reserve(ledger, price)
    sigma = 1 / (price.pico_mu_squared / 10**12) ** 0.5 * (1 + 2e-15)
    events = [GaussianSum(1.0, sigma), GaussianSum(math.nextafter(1.0, 2), sigma * (1 - 3e-16))]
    assert not events[1].cost() <= events[0].cost() <= price
    asked = {"analyst": "alice", "question": {}, "key": key(0), "reservation": made}
    charge = ledger.charge("adult", event=events[0], booked=price, **asked)
    assert charge.cost == price
    assert ledger.charge("adult", event=events[1], booked=price, **asked) == charge
    for wrong in (Cost(price.pico_mu_squared - 9), Cost()):
        with pytest.raises(InvalidInput, match="is booked for it; book what it costs"):
            ledger.charge("adult", event=events[1], booked=wrong, **{**asked, "key": key(1)})
    assert ledger.finish(made) == Cost()
    assert ledger.verify().ok


def test_a_step_that_somebody_asked_without_a_recipe_is_replayed(adult):
    step(adult, None, 0, 1000, analyst="bob")
    made = reserve(adult, 3000)
    assert step(adult, made, 0, 1000).counted == event(1000).cost()
    assert spent(adult, "alice") == units(3000)
    adult.finish(made)
    assert spent(adult) == spent(adult, "alice") == event(1000).cost()
    assert adult.verify().ok


def test_a_replay_that_the_reservation_does_not_hold_counts_against_the_cap_as_any(adult):
    step(adult, None, 0, 1000, analyst="bob")
    made = reserve(adult, 400)
    assert step(adult, made, 0, 1000).counted == event(1000).cost()
    assert spent(adult, "alice") == units(400) + event(1000).cost()
    adult.finish(made)
    assert spent(adult, "alice") == event(1000).cost()
    assert adult.verify().ok


def test_threads_that_race_through_one_recipe_deliver_the_same(adult):
    delivered = {}

    def run(number):
        made = reserve(adult, 3000, analyst=("alice", "bob")[number % 2])
        answers = []
        for index in range(3):
            asked = {"analyst": made.analyst, "event": event(900), "question": {}, "key": key(index)}
            answer = adult.charge("adult", reservation=made, **asked)
            replayed = isinstance(answer, Replay)
            answers.append(answer.release if replayed else adult.store(answer, f"{number} computed {index}".encode()))
        adult.finish(made)
        delivered[number] = answers

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(delivered) == 6
    assert len({tuple(answers) for answers in delivered.values()}) == 1
    three = event(900).cost() + event(900).cost() + event(900).cost()
    assert spent(adult) == spent(adult, "alice") == spent(adult, "bob") == three
    assert adult.statement("adult").n_questions == 3
    assert adult.verify().ok


# The owner frees what a dead recipe holds


def test_the_owner_frees_what_was_not_booked(adult):
    made = reserve(adult, 3000)
    first, _ = step(adult, made, 0, 1000)
    assert adult.free("adult", made.seq) == first.cost.left_of(units(3000))
    assert spent(adult) == spent(adult, "alice") == first.cost
    assert adult.statement("adult").reservations == ()
    before = adult.statement("adult")
    with pytest.raises(
        LedgerError, match=r"reservation 2 of account 'adult' was freed.*Reserve again.*Nothing was charged\.$"
    ):
        step(adult, made, 1)
    assert adult.statement("adult") == before
    assert isinstance(step(adult, made, 0), Replay)  # what is stored is handed out as ever
    again = reserve(adult, 3000)
    assert again.cost == again.counted == first.cost.left_of(units(3000))
    second, _ = step(adult, again, 1, 1000)
    adult.finish(again)
    assert spent(adult) == first.cost + second.cost
    assert adult.verify().ok


def test_a_recipe_that_was_freed_under_its_feet_may_still_finish(adult):
    made = reserve(adult, 3000)
    charge, _ = step(adult, made, 0, 1000)
    adult.free("adult", made.seq)
    assert adult.finish(made) == Cost()
    exhaust(adult)
    assert reserve(adult, 3000).seq == 0  # finished, so it is replayed for nothing
    assert spent(adult, "alice") == charge.cost
    assert adult.verify().ok


def test_nothing_is_freed_twice(adult):
    made, other = reserve(adult), reserve(adult, recipe=None)
    adult.free("adult", made.seq)
    with pytest.raises(LedgerError, match=r"was freed already.*Nothing was freed\.$"):
        adult.free("adult", made.seq)
    adult.finish(other)
    with pytest.raises(LedgerError, match="was finished already"):
        adult.free("adult", other.seq)
    last = reserve(adult, recipe=OTHER)
    with pytest.raises(LedgerError, match=rf"Entry 1 of account 'adult' is no reservation; open are {last.seq}\."):
        adult.free("adult", 1)
    assert adult.verify().ok


# Parts


def test_reservations_for_parts_follow_the_rule(adult):
    made = [reserve(adult, price, part=third(index)) for index, price in enumerate((1000, 3000, 2000))]
    assert spent(adult) == spent(adult, "alice") == units(3000)
    assert [line.spent for line in adult.statement("adult").parts] == [units(1000), units(3000), units(2000)]
    charge, _ = step(adult, made[1], 0, 500)
    assert adult.finish(made[1]) == charge.cost.left_of(units(3000))
    assert spent(adult) == spent(adult, "alice") == units(2000)
    assert adult.free("adult", made[2].seq) == units(2000)
    adult.finish(made[0])
    assert spent(adult) == spent(adult, "alice") == charge.cost
    assert adult.verify().ok


def test_a_part_that_is_full_refuses_and_another_does_not(adult):
    reserve(adult, CAPACITY, part=third(0))
    with pytest.raises(BudgetExceeded, match="for part 1 of 3 of 'thirds'"):
        reserve(adult, 10, recipe=OTHER, part=third(0))
    with pytest.raises(BudgetExceeded):
        reserve(adult, 10, recipe=OTHER)
    reserve(adult, CAPACITY, part=third(1))
    assert adult.verify().ok
