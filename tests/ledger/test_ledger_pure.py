"""The pure parts: canonical text, the filter's arithmetic, and histories of any shape."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from vitrail.accounting import Cost, FixedBlock, GaussianSum, Selection, mu_of
from vitrail.accounting.guarantee import Budget
from vitrail.errors import BudgetExceeded, LedgerCorrupted
from vitrail.ledger import Charge, Entry, open_ledger
from vitrail.ledger.allowance import fits, largest_epsilon
from vitrail.ledger.entries import GENESIS, RawEntry, canonical_json, decode, digest_of
from vitrail.ledger.tally import Tally

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_canonical_json_is_one_text_and_reads_back(value):
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(st.text(), JSON), st.integers(1, 10**9))
def test_entries_read_back_and_every_change_shows(body, seq):
    entry = Entry("adult", seq, "2026-01-01T00:00:00.000000+00:00", "charged", GENESIS, body)
    raw = entry.raw()
    assert decode(raw) == entry
    changed = raw.record.replace('"account":"adult"', '"account":"adulT"')
    for number, digest, record in (
        (seq, raw.digest, changed),
        (seq + 1, raw.digest, raw.record),
        (seq, digest_of(raw.record + " "), raw.record + " "),
        (seq, digest_of("{}"), "{}"),
    ):
        forged = RawEntry("adult", number, digest, record)
        with pytest.raises(LedgerCorrupted):
            decode(forged)


@given(st.integers(0, 10**13), st.floats(1e-12, 0.1))
def test_largest_epsilon_fits(left, delta):
    epsilon = largest_epsilon(Cost(left), delta)
    # What question_mu charges: whole units, rounded down.
    assert Cost.capacity(mu_of(epsilon, delta)).pico_mu_squared <= left if epsilon else True


@given(st.tuples(*[st.integers(0, 10**31)] * 3), st.tuples(*[st.integers(1, 10**31)] * 3), st.integers(0, 2))
def test_a_cap_holds_to_the_last_unit(spent, cost, part):
    exactly = [before + more for before, more in zip(spent, cost, strict=True)]
    assert fits(Cost(*spent), Cost(*cost), Cost(*exactly))
    exactly[part] -= 1
    assert not fits(Cost(*spent), Cost(*cost), Cost(*exactly))


def test_a_component_that_is_not_moved_does_not_refuse():
    assert fits(Cost(5, 5, 5), Cost(), Cost())
    assert not fits(Cost(0, 5, 5), Cost(0, 0, 1), Cost(9, 9, 5))


CHARGES = st.one_of(
    st.floats(5, 500).map(lambda sigma: GaussianSum(1.0, sigma)),
    st.floats(0.001, 0.5).map(Selection),
    st.tuples(st.floats(0, 0.2), st.floats(0, 2e-7)).map(lambda pair: FixedBlock(*pair, 1.0, 0.01, 10)),
)
ANALYSTS = st.sampled_from(["alice", "bob", "carol"])
KEYS = st.one_of(st.none(), st.sampled_from(["aa" * 8, "bb" * 8]))


class Histories(RuleBasedStateMachine):
    """Any sequence of charges, stores, replays and caps; a few plain dictionaries say what must come of it."""

    @initialize()
    def open(self):
        self.ledger = open_ledger("memory")
        self.budget = Budget(1.0, 1e-6, training=(0.3, 3e-7))
        self.ledger.open_account("adult", self.budget, "add-remove")
        self.spent, self.granted = Cost(), 0
        self.analysts = {}
        self.counted = set()
        self.caps = {}
        self.events = {}

    @rule(event=CHARGES, analyst=ANALYSTS, key=KEYS, keep=st.booleans())
    def charge(self, event, analyst, key, keep):
        event = self.events.setdefault(key, event) if key else event
        before = self.ledger.statement("adult")
        try:
            answer = self.ledger.charge("adult", analyst=analyst, event=event, question={}, key=key)
        except BudgetExceeded as refused:
            spent = self.spent if refused.cap == "dataset" else self.analysts.get(analyst, Cost())
            cap = self.budget if refused.cap == "dataset" else self.caps[analyst]
            assert not fits(spent, event.cost(), cap.capacity())
            assert self.ledger.statement("adult") == before
            return
        if isinstance(answer, Charge):
            known = (answer.seq, analyst) in self.counted
            new = answer.seq not in {seq for seq, _ in self.counted}
            assert new or key  # a charge is given again under its key only
            self.spent += event.cost() if new else Cost()
            self.granted += new
            counted = Cost() if known else event.cost()
            self.counted.add((answer.seq, analyst))
            if keep:
                assert self.ledger.store(answer, str(answer.seq).encode()) == str(answer.seq).encode()
        else:
            assert answer.release == str(answer.seq).encode()
            counted = answer.counted
            assert counted == (Cost() if (answer.seq, analyst) in self.counted else event.cost())
            self.counted.add((answer.seq, analyst))
        self.analysts[analyst] = self.analysts.get(analyst, Cost()) + counted
        if analyst in self.caps:
            assert counted == Cost() or fits(before_spent(before, analyst), counted, self.caps[analyst].capacity())

    @rule(analyst=ANALYSTS, epsilon=st.floats(0.01, 2.0))
    def cap(self, analyst, epsilon):
        self.caps[analyst] = Budget(epsilon, 1e-6)
        self.ledger.cap_analyst("adult", analyst, self.caps[analyst])

    @invariant()
    def holds(self):
        statement = self.ledger.statement("adult")
        assert statement.spent == self.spent <= self.budget.capacity()
        assert statement.n_questions == self.granted
        assert {line.analyst: line.spent for line in statement.analysts if line.spent != Cost()} == {
            name: spent for name, spent in self.analysts.items() if spent != Cost()
        }
        assert {line.analyst: line.cap for line in statement.analysts if line.cap} == self.caps
        tally = Tally("adult")
        for entry in statement.entries:
            tally.add(entry)
        assert tally.problems == []
        assert (tally.spent, tally.n_questions, tally.head) == (statement.spent, statement.n_questions, statement.head)
        assert self.ledger.verify().ok
        assert math.isfinite(statement.spent_epsilon)


def before_spent(statement, analyst):
    return next((line.spent for line in statement.analysts if line.analyst == analyst), Cost())


Histories.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestHistories = Histories.TestCase
