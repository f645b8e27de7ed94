"""What a ledger tells another accountant: dp-accounting's own sum against ours, and what is not in it."""

import math

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant

import vitrail as vt
from reservation_setup import event, opened, reserve, step
from vitrail.accounting import Cost, FixedBlock, GaussianSum, Selection, Spending, block_epsilon, epsilon_of, event_from_json
from vitrail.accounting.dp_events import dp_event
from vitrail.accounting.guarantee import Budget
from vitrail.ledger import Part, open_ledger

GRID = 1e-4
"""Of privacy losses, as the accountant rounds them up: each event adds at most so much to an epsilon."""
ROUNDING = 1e-6
"""Of epsilon: conversions of ours round up by a twentieth of it, in delta."""
THIRDS, HALVES = "ab" * 32, "cd" * 32
BLOCK = {"noise_multiplier": 4.0, "sampling_rate": 0.05}


def third(index):
    return Part(THIRDS, "thirds", index, 3)


def half(index):
    return Part(HALVES, "halves", index, 2)


@pytest.fixture
def account():
    ledger = open_ledger("memory")
    ledger.open_account("adult", Budget(8.0, 1e-6, training=(4.0, 5e-7)), "add-remove")
    yield ledger
    ledger.close()


def ask(ledger, mu, part=None, *, event=None, question=None, key=None, analyst="alice"):
    event = GaussianSum(1.0, 1 / mu) if event is None else event
    return ledger.charge("adult", analyst=analyst, event=event, question=question or {}, key=key, part=part)


def block(steps, epsilon=0.9, delta=1e-7):
    return FixedBlock(epsilon, delta, steps=steps, **BLOCK)


def exported(ledger):
    return ledger.statement("adult").to_dp_events()


def their_epsilon(events):
    """By privacy loss distributions, at the delta that the export names."""
    accountant = PLDAccountant(NeighboringRelation[events.relation], value_discretization_interval=GRID)
    return accountant.compose(events.to_dp_accounting()).get_epsilon(events.delta)


def agrees(events):
    """Whether the two epsilons are the same but for grids and rounding."""
    theirs, slack = their_epsilon(events), GRID * max(1, len(events.event()["events"]))
    return events.epsilon * (1 - ROUNDING) <= theirs <= events.epsilon + slack


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_questions_of_many_prices_agree(neighbours):
    ledger = open_ledger("memory")
    ledger.open_account("adult", Budget(8.0, 1e-6), neighbours)
    for number in range(40):
        ask(ledger, 0.01 * (1 + number % 7))
    ask(ledger, 0, event=Selection(0.3))
    events = exported(ledger)
    assert len(events.charges) == 41
    assert events.spent == ledger.statement("adult").spent
    assert agrees(events)


def test_the_dearest_part_counts_once(account):
    ask(account, 0.1)
    for mu, part in ((0.1, third(0)), (0.2, third(1)), (0.15, third(1)), (0.24, third(2)), (0.1, half(0)), (0.3, half(1))):
        ask(account, mu, part)
    events = exported(account)
    noise = sorted(round(1 / one["noise_multiplier"], 6) for one in events.event()["events"])
    assert noise == [0.1, 0.15, 0.2, 0.3]
    assert events.spent == account.statement("adult").spent
    assert agrees(events)


def test_a_sampled_question_is_sampled_there_and_costs_all_of_its_price_here(account):
    sampled = {"question": "bounded-sum", "rate": 0.1}
    ask(account, 0.3, question=sampled)
    events = exported(account)
    assert events.event()["events"][0]["sampling_probability"] == 0.1
    assert epsilon_of(0.3 * 0.1, events.delta) < their_epsilon(events) < 0.5 * events.epsilon
    ask(account, 0.3, question={"question": "grouped-sum", "rate": 0.1})  # which draws no sample
    assert exported(account).event()["events"][1]["kind"] == "GaussianDpEvent"


def test_sampling_is_not_counted_where_prices_decide_which_part_is_dearest(account):
    """By its price the first part is dearer, by its loss the second one: the whole price covers both."""
    ask(account, 0.31, third(0), question={"question": "bounded-sum", "rate": 0.01})
    ask(account, 0.30, third(1))
    (counted,) = exported(account).event()["events"]
    assert counted["kind"] == "GaussianDpEvent"
    assert 1 / counted["noise_multiplier"] == pytest.approx(0.31)


def test_an_exchanged_row_is_not_amplified_by_sampling():
    ledger = open_ledger("memory")
    ledger.open_account("adult", Budget(8.0, 1e-6), "replace-one")
    ask(ledger, 0.3, question={"question": "bounded-sum", "rate": 0.1})
    assert agrees(exported(ledger))


def test_training_runs_are_what_their_blocks_say(account):
    epsilon = block_epsilon(*BLOCK.values(), 100, 1e-7)
    ask(account, 0.2)
    ask(account, 0, event=block(100, epsilon, 1e-7))
    ask(account, 0, event=block(100, epsilon, 1e-7))
    events = exported(account)
    assert events.delta == pytest.approx(account.statement("adult").delta + 2e-7)
    assert events.epsilon == pytest.approx(epsilon_of(0.2, events.question_delta) + 2 * epsilon)
    theirs = their_epsilon(events)
    assert theirs < events.epsilon  # three epsilons that are added up cost more than their composition
    one_run = PLDAccountant(value_discretization_interval=GRID).compose(events.to_dp_accounting().events[1])
    assert theirs > one_run.get_epsilon(events.delta)


def test_of_training_runs_on_parts_the_most_steps_of_each_kind_count(account):
    for part, steps in ((third(0), 100), (third(0), 50), (third(1), 120), (third(2), 10)):
        ask(account, 0, part, event=block(steps, 0.2, 1e-8))
    ask(account, 0, third(2), event=FixedBlock(0.1, 1e-8, noise_multiplier=9.0, sampling_rate=0.05, steps=7))
    steps = {one["event"]["event"]["noise_multiplier"]: one["count"] for one in exported(account).event()["events"]}
    assert steps == {4.0: 150, 9.0: 7}


def test_replays_caps_and_reservations_that_booked_nothing_cost_nothing():
    ledger = opened(open_ledger("memory"))
    ledger.cap_analyst("adult", "bob", Budget(0.5, 1e-6))
    ask(ledger, 0.05, key="0f" * 32)
    charge = ledger.charge("adult", analyst="alice", event=GaussianSum(1.0, 20.0), question={}, key="0e" * 32)
    ledger.store(charge, b"answer")
    ledger.charge("adult", analyst="bob", event=GaussianSum(1.0, 20.0), question={}, key="0e" * 32)  # a replay
    finished = reserve(ledger, 3000)
    step(ledger, finished, 0, 1000)
    ledger.finish(finished)
    dead = reserve(ledger, 2000, recipe="cd" * 32)
    ledger.free("adult", dead.seq)
    still_open = reserve(ledger, 2000, recipe="de" * 32)
    step(ledger, still_open, 7, 500)
    events, statement = exported(ledger), ledger.statement("adult")
    kinds = [entry.kind for entry in statement.entries]
    assert {"replayed", "capped", "reserved", "finished", "freed"} <= set(kinds)
    assert len(events.charges) == kinds.count("charged") == 4
    assert events.epsilon == pytest.approx(statement.bill().lines[-1].so_far, rel=1e-12)
    assert events.spent.pico_mu_squared < statement.spent.pico_mu_squared  # an open reservation holds more than is booked
    assert agrees(events)
    assert event(500).cost().pico_mu_squared <= events.charges[-1].cost.pico_mu_squared


@pytest.mark.parametrize("seed", range(4))
def test_random_accounts_are_never_dearer_there(account, seed):
    """Against the rule written out: no row's composition costs more than the export, nor the export more than our sum."""
    draw = np.random.default_rng(seed)
    everywhere = [None, *map(third, range(3)), *map(half, range(2))]
    for _ in range(25):
        sampled = {"question": "bounded-sum", "rate": float(draw.choice([0.05, 0.5, 1.0]))}
        ask(account, float(draw.uniform(0.01, 0.1)), everywhere[draw.integers(6)], question=sampled)
    events = exported(account)
    theirs = their_epsilon(events)
    assert theirs <= events.epsilon + 25 * GRID
    for i, j in ((i, j) for i in range(3) for j in range(2)):
        own = [one for one in events.charges if one.key in (None, (THIRDS, i), (HALVES, j))]
        row = PLDAccountant(value_discretization_interval=GRID)
        row.compose(dp_event({"kind": "ComposedDpEvent", "events": [one.event() for one in own]}))
        assert row.get_epsilon(events.delta) <= theirs + len(own) * GRID


def test_the_plain_values_say_the_same_without_dp_accounting(account):
    ask(account, 0.1)
    ask(account, 0.2, third(1))
    ask(account, 0, event=block(30))
    events = exported(account)
    told = events.to_json()
    assert isinstance(dp_event(told["event"]), ComposedDpEvent)
    assert dp_event(told["event"]) == events.to_dp_accounting()
    squares = sum(one["mu"] ** 2 for one in told["charges"])
    assert math.sqrt(squares) == pytest.approx(told["mu"])
    header, *lines = events.table()
    assert [line[header.index("part")] for line in lines] == ["", "1", ""]
    assert float(lines[2][header.index("block_epsilon")]) == 0.9


@pytest.mark.parametrize(
    "fields", [None, [], {"kind": "NonPrivateDpEvent"}, {"kind": "GaussianDpEvent"}, {"kind": "ComposedDpEvent", "event": 1}]
)
def test_an_event_that_is_none_of_ours_is_refused(fields):
    with pytest.raises(vt.errors.InvalidInput, match="an event of kind"):
        dp_event(fields)


def test_real_questions_are_told_with_their_samples():
    schema = vt.Schema({"age": vt.Numeric(0, 100)})
    rows = {"age": np.linspace(0, 100, 400)}
    data = vt.PrivateData(rows, schema, name="ages", n_rows_public=400, budget=vt.Budget(2, 1e-6), ledger="memory")
    data.ask(vt.BoundedSum(lambda one: one.features, size=1, l2_bound=1.0, rate=0.25), epsilon=0.5)
    data.ask(vt.Select(lambda one: one.features, candidates=1, bound=1.0), epsilon=0.2)
    data.ask(vt.BoundedSum(lambda one: one.features, size=1, l2_bound=1.0), epsilon=0.5)
    charges = data.budget.to_dp_events().charges
    assert [one.sampling_rate for one in charges] == [0.25, 1.0, 1.0]
    assert [one.mechanism for one in charges] == ["gaussian-sum", "selection", "gaussian-sum"]
    spending = Spending()
    for entry in data.budget.entries:
        spending.add(entry.cost)
        if entry.kind == "charged":
            assert event_from_json(entry.body["event"]).cost() <= entry.cost + Cost(1)
    assert data.budget.to_dp_events().spent == spending.total
