"""Reservations: a recipe's whole price is set aside at once, booked step by step, and what is left is given back."""

import json
import random
import sqlite3
import threading
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from vitrail.accounting import Cost, FixedBlock, GaussianSum, Spending
from vitrail.errors import BudgetExceeded, InvalidInput, LedgerError
from vitrail.guarantee import Budget
from vitrail.ledger import Charge, Part, Replay, Reservation, SqlLedger, open_ledger
from vitrail.ledger.allowance import fits
from vitrail.ledger.entries import KINDS, canonical_json, digest_of

BUDGET = Budget(1.0, 1e-6, training=(0.4, 4e-7))
CAPACITY = BUDGET.capacity().pico_mu_squared // 10**6  # in millionths of mu squared
RECIPE, OTHER = "ab" * 32, "cd" * 32
THIRDS = "ef" * 32


def third(index):
    return Part(THIRDS, "thirds", index, 3)


def units(number):
    return Cost(number * 10**6)


def event(number):
    """A sum that costs so many millionths of mu squared."""
    made = GaussianSum(1.0, (10**6 / number) ** 0.5 * (1 + 1e-13))
    assert 0 <= units(number).pico_mu_squared - made.cost().pico_mu_squared < 10**4
    return made


def key(step, recipe=RECIPE):
    return digest_of(f"{recipe} {step}")


@pytest.fixture
def adult(ledger):
    ledger.open_account("adult", BUDGET, "add-remove")
    return ledger


def reserve(ledger, price=3000, analyst="alice", recipe=RECIPE, part=None):
    cost = price if isinstance(price, Cost) else units(price)
    return ledger.reserve("adult", analyst=analyst, cost=cost, recipe=recipe, question={"label": "a report"}, part=part)


def step(ledger, reservation, number=0, price=1000, **more):
    """Ask for a step of the recipe, and store its answer if it is new."""
    asked = {"analyst": "alice", "part": None, **more}
    if reservation is not None:
        asked = {**asked, "analyst": reservation.analyst, "part": reservation.part, "reservation": reservation}
    answer = ledger.charge("adult", event=event(price), question={}, key=key(number), **asked)
    return answer if isinstance(answer, Replay) else (answer, ledger.store(answer, f"answer {number}".encode()))


def spent(ledger, analyst=None):
    statement = ledger.statement("adult")
    return statement.spent if analyst is None else statement.of_analyst(analyst).spent


def exhaust(ledger):
    """Spend what is left of the account."""
    left = ledger.statement("adult").remaining.pico_mu_squared
    sigma = (10**12 / left) ** 0.5 * (1 + 1e-12)
    ledger.charge("adult", analyst="eve", event=GaussianSum(1.0, sigma), question={}, key=None)
    assert ledger.statement("adult").remaining.pico_mu_squared < 10**4


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


# Any order of events


PARTS = st.sampled_from([None, third(0), third(1)])
ANALYSTS = st.sampled_from(["alice", "bob", "carol"])
RECIPES = st.sampled_from([RECIPE, OTHER, None])
PRICES = {RECIPE: 6000, OTHER: 2500, None: 4000}  # of a capacity of some 19 000
SHARES = {RECIPE: (3000, 2000, 900), OTHER: (2000, 500), None: (1500, 1500)}


class Conversations(RuleBasedStateMachine):
    """Recipes of several analysts and parts, broken off, resumed, raced, freed; plain sets say what must come of it."""

    made = Bundle("made")
    pending = Bundle("pending")

    @initialize()
    def open(self):
        self.ledger = open_ledger("memory")
        self.ledger.open_account("adult", BUDGET, "add-remove")
        self.charges = {}  # seq: (part, cost, key)
        self.counted = set()  # (charge, analyst)
        self.held = {}  # seq of a reservation: (reservation, held of the account, held of the cap)
        self.caps, self.stored = {}, {}

    def expect(self, action, *, analyst, cost, counted, part):
        """Do it; it must be refused exactly when the account or the cap does not hold it."""
        before = self.ledger.statement("adult")
        place = None if part is None else part.place
        fitting = fits(self.account().exposure(place), cost, BUDGET.capacity())
        capped = analyst not in self.caps or fits(self.analyst(analyst).exposure(place), counted, self.caps[analyst])
        try:
            done = action()
        except BudgetExceeded as refused:
            done, refusing = None, refused.cap
        else:
            refusing = None
        assert refusing == (f"analyst {analyst}" if fitting and not capped else None if fitting else "dataset")
        assert done is not None or self.ledger.statement("adult") == before
        return done

    def account(self):
        return self.total([(part, cost) for part, cost, _ in self.charges.values()], 1)

    def analyst(self, name):
        return self.total([self.charges[seq][:2] for seq, who in self.counted if who == name], 2, name)

    def total(self, charges, which, name=None):
        spending = Spending()
        for part, cost in charges + [
            (held[0].part, held[which]) for held in self.held.values() if name in (None, held[0].analyst)
        ]:
            spending.add(cost, None if part is None else part.place)
        return spending

    @rule(analyst=ANALYSTS, epsilon=st.floats(0.1, 0.8))
    def cap(self, analyst, epsilon):
        self.ledger.cap_analyst("adult", analyst, Budget(epsilon, 1e-6))
        self.caps[analyst] = Budget(epsilon, 1e-6).capacity()

    @rule(target=made, analyst=ANALYSTS, recipe=RECIPES, part=PARTS)
    def reserve(self, analyst, recipe, part):
        price, earlier = units(PRICES[recipe]), [one for one in self.begun if one[1:] == (recipe, part)] if recipe else []
        for seq, (known, _, _) in self.held.items():
            if recipe and (known.analyst, known.recipe, known.part) == (analyst, recipe, part):
                assert reserve(self.ledger, price, analyst, recipe, part).seq == seq
                return known
        cost = counted = price
        if earlier:
            steps = {seq: self.charges[seq][1] for seq in self.steps.get((recipe, part), ())}
            booked = sum(steps.values(), Cost())
            seen = sum((cost for seq, cost in steps.items() if (seq, analyst) in self.counted), Cost())
            done = (recipe, part) in self.finished
            cost, counted = (Cost(), seen.left_of(booked)) if done else (booked.left_of(price), seen.left_of(price))
        reservation = self.expect(
            lambda: reserve(self.ledger, price, analyst, recipe, part),
            analyst=analyst,
            cost=cost,
            counted=counted,
            part=part,
        )
        if reservation is None:
            return multiple()
        assert (reservation.cost, reservation.counted) == (cost, counted)
        assert (reservation.seq == 0) == (cost == counted == Cost())
        if reservation.seq:
            self.held[reservation.seq] = (reservation, cost, counted)
            self.begun.add((reservation.seq, recipe, part))
        return reservation

    def __init__(self):
        super().__init__()
        self.begun, self.finished, self.steps, self.fresh = set(), set(), {}, iter(range(10**6))

    @rule(target=pending, reservation=made, number=st.integers(0, 2))
    def step(self, reservation, number):
        shares = SHARES[reservation.recipe]
        share = event(shares[number % len(shares)])
        name = key(number, (reservation.recipe, reservation.part)) if reservation.recipe else None
        known = [seq for seq, charge in self.charges.items() if name is not None and charge[2] == name]
        before = self.ledger.statement("adult")
        asked = {"analyst": reservation.analyst, "event": share, "question": {}, "key": name, "part": reservation.part}
        _, held, held_of_cap = self.held.get(reservation.seq, (None, Cost(), Cost()))
        if not known:
            fitting = share.cost() <= held and share.cost() <= held_of_cap
            try:
                charge = self.ledger.charge("adult", reservation=reservation, **asked)
            except LedgerError as error:
                refused = str(error)
            else:
                refused = ""
            assert fitting == (refused == "")
            if refused:
                closed = reservation.seq and reservation.seq not in self.held
                assert ("holds nothing any more" if closed else "more than its price") in refused
                assert self.ledger.statement("adult") == before
                return multiple()
            self.charges[charge.seq] = (reservation.part, charge.cost, name)
            self.held[reservation.seq] = (
                reservation,
                charge.cost.left_of(held),
                charge.cost.left_of(held_of_cap),
            )
            if reservation.recipe:
                self.steps.setdefault((reservation.recipe, reservation.part), set()).add(charge.seq)
            self.counted.add((charge.seq, reservation.analyst))
            assert self.ledger.statement("adult").spent == before.spent
            return charge
        (seq,) = known
        cost = Cost() if (seq, reservation.analyst) in self.counted else self.charges[seq][1]
        inside = cost <= held_of_cap
        answer = self.expect(
            lambda: self.ledger.charge("adult", reservation=reservation, **asked),
            analyst=reservation.analyst,
            cost=Cost(),
            counted=Cost() if inside else cost,
            part=reservation.part,
        )
        if answer is None:
            return multiple()
        assert answer.seq == seq
        assert isinstance(answer, Replay) == (seq in self.stored)
        self.counted.add((seq, reservation.analyst))
        if inside and reservation.seq in self.held:
            self.held[reservation.seq] = (reservation, held, cost.left_of(held_of_cap))
        if isinstance(answer, Replay):
            assert (answer.release, answer.counted) == (self.stored[seq], cost)
            return multiple()
        return answer

    @rule(target=pending, analyst=ANALYSTS, part=PARTS, price=st.integers(1, 6000))
    def ask(self, analyst, part, price):
        asked = event(price)
        charge = self.expect(
            lambda: self.ledger.charge("adult", analyst=analyst, event=asked, question={}, key=None, part=part),
            analyst=analyst,
            cost=asked.cost(),
            counted=asked.cost(),
            part=part,
        )
        if charge is None:
            return multiple()
        self.charges[charge.seq] = (part, charge.cost, None)
        self.counted.add((charge.seq, analyst))
        return charge

    @rule(charge=pending)
    def store(self, charge):
        content = str(next(self.fresh)).encode()
        assert self.ledger.store(charge, content) == self.stored.setdefault(charge.seq, content)

    @rule(reservation=consumes(made))
    def finish(self, reservation):
        _, held, _ = self.held.pop(reservation.seq, (None, Cost(), None))
        assert self.ledger.finish(reservation) == held
        if reservation.seq and reservation.recipe:
            self.finished.add((reservation.recipe, reservation.part))

    @rule(reservation=made)
    def free(self, reservation):
        if reservation.seq not in self.held:
            with pytest.raises(LedgerError, match="Nothing was freed"):
                self.ledger.free("adult", reservation.seq)
            return
        assert self.ledger.free("adult", reservation.seq) == self.held.pop(reservation.seq)[1]

    @invariant()
    def holds(self, *, verify=True):
        statement = self.ledger.statement("adult")
        booked = Spending()
        for part, cost, _ in self.charges.values():
            booked.add(cost, None if part is None else part.place)
        assert booked.total <= statement.spent <= BUDGET.capacity()
        assert statement.spent == self.account().total
        assert statement.n_questions == len(self.charges)
        for line in statement.analysts:
            assert line.spent == self.analyst(line.analyst).total
        assert {line.seq: line.held for line in statement.reservations} == {
            seq: held for seq, (_, held, _) in self.held.items()
        }
        assert not verify or self.ledger.verify().problems == ()

    def teardown(self):
        for reservation, _, _ in list(self.held.values()):
            self.finish(reservation)
        self.holds()
        booked = Spending()
        for part, cost, _ in self.charges.values():
            booked.add(cost, None if part is None else part.place)
        assert self.ledger.statement("adult").spent == booked.total
        assert self.ledger.statement("adult").reservations == ()
        self.ledger.close()


Conversations.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestConversations = Conversations.TestCase


def walk(seed):
    """Many steps of few recipes at random, so that what is rare above comes up. Returns the kinds of entries."""
    chance, walked = random.Random(seed), Conversations()
    walked.open()
    made, pending = [], []
    for _ in range(150):
        action = chance.choices(["reserve", "step", "ask", "store", "finish", "free", "cap"], [20, 90, 2, 10, 6, 4, 1])[0]
        if action == "reserve":
            recipe, part = chance.choice([RECIPE, OTHER, None]), chance.choice([None, third(0), third(1)])
            outcome = walked.reserve(analyst=chance.choice(["alice", "bob"]), recipe=recipe, part=part)
            made += [outcome] if isinstance(outcome, Reservation) else []
        elif action == "ask":
            walked.ask(analyst="carol", part=chance.choice([None, third(0)]), price=chance.randrange(1, 300))
        elif action == "cap":
            walked.cap(analyst="carol", epsilon=chance.uniform(0.1, 0.8))
        elif action == "store" and pending:
            walked.store(chance.choice(pending))
        elif action == "step" and made:
            outcome = walked.step(chance.choice(made[-4:]), chance.randrange(3))
            pending += [outcome] if isinstance(outcome, Charge) else []
            if isinstance(outcome, Charge) and chance.random() < 0.6:
                walked.store(outcome)
        elif action == "finish" and made:
            walked.finish(made.pop(chance.randrange(len(made))))
        elif action == "free" and made:
            walked.free(chance.choice(made))
        walked.holds(verify=chance.random() < 0.2)
    kinds = Counter(entry.kind for entry in walked.ledger.statement("adult").entries)
    walked.teardown()
    return kinds


def test_long_conversations():
    kinds = sum((walk(seed) for seed in range(6)), Counter())
    assert min(kinds[kind] for kind in set(KINDS) - {"kept"}) > 2, kinds


# Tampering, and ledgers from before there were reservations


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


def problems(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    ledger = SqlLedger(path, must_exist=True)
    try:
        return "\n".join(ledger.verify().problems)
    finally:
        ledger.close()


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
    found = [
        line for line in problems(path).splitlines() if line.startswith(f"Entry {named} of account 'adult' cannot stand")
    ]
    assert any(expected in line for line in found), problems(path)


def test_more_reserved_than_was_spent_shows(path):
    """What is over-booked counts in full: no forged reservation hides a charge."""
    rewrite(path, 4, lambda fields: fields["body"].update(reservation=9))
    assert "The spent of account 'adult' is kept as" in problems(path)


HELD = "What reservation {} of account 'adult' holds is kept as"
TABLES = {
    "UPDATE vitrail_reservations SET held = replace(held, 'd\":', 'd\":9') WHERE reserved_seq = 3": HELD.format(3),
    "UPDATE vitrail_reservations SET held_of_cap = replace(held_of_cap, ':0', ':1') WHERE reserved_seq = 3": HELD.format(3),
    "UPDATE vitrail_reservations SET held = 'x'": "cannot be read",
    "UPDATE vitrail_reservations SET state = 'open' WHERE reserved_seq = 7": HELD.format(7),
    "UPDATE vitrail_reservations SET recipe = NULL WHERE reserved_seq = 9": HELD.format(9),
    "UPDATE vitrail_reservations SET analyst = 'eve' WHERE reserved_seq = 3": HELD.format(3),
    "DELETE FROM vitrail_reservations WHERE reserved_seq = 3": f"{HELD.format(3)} None; its entries say ReservationRow",
    "DROP TABLE vitrail_reservations": f"{HELD.format(3)} None; its entries say ReservationRow",
    "DELETE FROM vitrail_charges WHERE charge_seq = 2": "Charge 2 of account 'adult' is kept as None",
    "UPDATE vitrail_charges SET key = 'abababababababab' WHERE charge_seq = 2": "Charge 2 of account 'adult' is kept as",
    "UPDATE vitrail_charges SET recipe = NULL WHERE charge_seq = 4": "Charge 4 of account 'adult' is kept as",
    "UPDATE vitrail_charges SET cost = replace(cost, 'd\":', 'd\":1')": "Charge 2 of account 'adult' is kept as",
}


@pytest.mark.parametrize(("statement", "expected"), TABLES.items(), ids=range(len(TABLES)))
def test_verify_names_what_was_done_to_the_tables(path, statement, expected):
    assert expected in problems(path, statement)


def test_a_ledger_from_before_there_were_reservations(tmp_path):
    """Readers find it whole without the new tables; the first writer makes them, and finds what was charged before."""
    path = tmp_path / "ledger.db"
    ledger = SqlLedger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    unstored = ledger.charge("adult", analyst="alice", event=event(100), question={}, key=key(7))
    step(ledger, None, 0)
    ledger.charge("adult", analyst="alice", event=event(100), question={}, key=None, part=third(1))
    ledger.close()
    assert problems(path, "DROP TABLE vitrail_reservations", "DROP TABLE vitrail_charges") == ""
    ledger = SqlLedger(path, must_exist=True)
    before = ledger.statement("adult")
    assert (before.reservations, before.parts[0].part) == ((), third(1))
    assert isinstance(step(ledger, None, 0), Replay)
    assert ledger.charge("adult", analyst="alice", event=event(100), question={}, key=key(7)) == unstored
    made = reserve(ledger)
    ledger.finish(made)
    assert ledger.verify().ok
    assert ledger.statement("adult").spent == before.spent
    ledger.close()


def test_two_charges_under_one_key_of_an_earlier_version(tmp_path):
    """It paid again for what was not stored; each analyst is handed what they have seen."""
    path = tmp_path / "ledger.db"
    ledger = SqlLedger(path)
    ledger.open_account("adult", BUDGET, "add-remove")
    for analyst, name in (("alice", "11" * 32), ("bob", "22" * 32)):
        charge = ledger.charge("adult", analyst=analyst, event=event(100), question={}, key=name)
        ledger.store(charge, f"{analyst}'s".encode())
    ledger.close()
    for seq in (2, 4):
        rewrite(path, seq, lambda fields: fields["body"].update(key=key(0)))
    statement = f"UPDATE vitrail_releases SET key = '{key(0)}'"
    for record in tmp_path.parent.glob("**/state*/*.json"):
        record.unlink()
    problems(path, statement, "DROP TABLE vitrail_charges")
    ledger = SqlLedger(path, must_exist=True)

    def told(analyst):
        return ledger.charge("adult", analyst=analyst, event=event(100), question={}, key=key(0)).release

    assert [told(analyst) for analyst in ("alice", "bob", "carol")] == [b"alice's", b"bob's", b"alice's"]
    assert ledger.verify().ok
    ledger.close()
