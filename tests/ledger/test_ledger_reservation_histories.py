"""Reservations, charges, replays and ends in any order: what counts is what a plain model of it counts."""

import random
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from reservation_setup import BUDGET, OTHER, RECIPE, event, key, reserve, third, units
from vitrail.accounting import Cost, Spending
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded, LedgerError
from vitrail.ledger import Charge, Replay, Reservation, open_ledger
from vitrail.ledger.allowance import fits
from vitrail.ledger.entries import KINDS

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
        key = None if part is None else part.key
        fitting = fits(self.account().exposure(key), cost, BUDGET.capacity())
        capped = analyst not in self.caps or fits(self.analyst(analyst).exposure(key), counted, self.caps[analyst])
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
            spending.add(cost, None if part is None else part.key)
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
            booked.add(cost, None if part is None else part.key)
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
            booked.add(cost, None if part is None else part.key)
        assert self.ledger.statement("adult").spent == booked.total
        assert self.ledger.statement("adult").reservations == ()
        self.ledger.close()


Conversations.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestConversations = Conversations.TestCase


def newest_lines_agree(statement):
    """Whether lines that are reached from the end are those that are added up from the first entry, to the last bit."""
    whole, paid = statement.bill(), statement.n_questions
    assert sum(line.paid for line in whole.lines) == paid
    for count in {0, 1, 5, len(whole.lines) - 1, len(whole.lines), len(whole.lines) + 1} - {-1}:
        bill = statement.bill(newest=count)
        shown = bill.lines
        assert len(shown) <= count
        assert shown == whole.lines[len(whole.lines) - len(shown) :]
        assert bill == whole if bill.n_earlier is None else bill.n_earlier == paid - sum(line.paid for line in shown)
    assert statement.bill(newest=len(whole.lines)).lines == whole.lines
    return bool(statement.reservations), bool(statement.parts), any(not line.paid for line in whole.lines)


def walk(seed):
    """Many steps of few recipes at random, so that what is rare above comes up. Returns the kinds of entries."""
    chance, walked = random.Random(seed), Conversations()
    walked.open()
    made, pending, looked = [], [], set()
    for number in range(150):
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
        if number % 50 == 49:
            looked.add(newest_lines_agree(walked.ledger.statement("adult")))
    assert (True, True, True) in looked  # reservations that hold something, parts, and stored answers
    kinds = Counter(entry.kind for entry in walked.ledger.statement("adult").entries)
    walked.teardown()
    return kinds


def test_long_conversations():
    kinds = sum((walk(seed) for seed in range(6)), Counter())
    assert min(kinds[kind] for kind in set(KINDS) - {"kept"}) > 2, kinds
