"""Totals merge: whoever adds what, in whatever order, and however large it gets, the sum is Python's."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.vault.questions import question as noisy_sums
from vitrail.vault.sums import totals
from vitrail.vault.sums.totals import ExactTotals, narrowed

LARGEST = 2**53 - 1
numbers = st.integers(-LARGEST, LARGEST)


@settings(max_examples=60, deadline=None)
@given(
    walks=st.lists(st.lists(st.tuples(numbers, numbers), max_size=7), min_size=1, max_size=5),
    few=st.sampled_from([1, 2, 512]),
    order=st.randoms(use_true_random=False),
)
def test_any_walks_merged_in_any_order_are_the_sum(walks, few, order):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "ADDS_THAT_FIT", few)  # settles often
        parts = []
        for walk in walks:
            total = ExactTotals([(2,), (1,)])
            for first, second in walk:
                total.add([np.array([first, second], dtype=float), np.array([first])])
            parts.append(pickle.loads(pickle.dumps(total)))
        order.shuffle(parts)
        merged = ExactTotals([(2,), (1,)])
        for part in parts:
            merged.merge(part)
    expected = [sum(walk[i] for walks_ in walks for walk in walks_) for i in (0, 1)]
    assert merged.exact(0).tolist() == merged.value(0).tolist() == expected
    assert merged.exact(1).tolist() == merged.value(1).tolist() == expected[:1]


def test_what_int64_cannot_hold_is_held():
    total, added = ExactTotals([(1,)]), np.array([float(LARGEST)])
    for _ in range(3000):
        total.add([added])
    assert total.value(0).tolist() == [3000 * LARGEST]
    assert 3000 * LARGEST > 2**63
    assert total.value(0).dtype == object
    total.add([-added])
    assert total.exact(0).tolist() == [2999 * LARGEST]


def test_other_shapes_are_not_merged():
    with pytest.raises(ValueError, match="cannot be merged"):
        ExactTotals([(2,)]).merge(ExactTotals([(3,)]))


def test_whole_numbers_are_narrowed_only_where_noise_fits_beside_them():
    assert narrowed(np.array([2**61, -5], dtype=object)).dtype == np.int64
    assert narrowed(np.array([2**62], dtype=object)).tolist() == [2**62]


def test_a_million_million_rows_overflow_nothing(walk, monkeypatch):
    """As if every row that is there stood for 10^10: what int64 would wrap around has the right sign and size."""
    facts_rows = {"i": np.arange(100.0)}
    question = vt.BoundedSum(lambda block: np.ones((len(block), 1)), 1, 1.0)
    walked = walk(facts_rows, n_rows_public=10**12)
    plan = question.plan(0.1, walked.facts)
    real = ExactTotals.add
    monkeypatch.setattr(ExactTotals, "add", lambda self, arrays: [real(self, arrays) for _ in range(10**4)])
    scaled = plan.exact_cells(walked, 8)
    assert int(scaled[0]) == 100 * 10**4 * round(1 / plan.step)
    assert plan.answers(walked, 8, 1)[0, 0] > 0


@pytest.mark.parametrize(
    "question",
    [
        vt.BoundedSum(lambda block: block.features, 10**8, 1.0),
        vt.ProductSum(lambda block: (block.features,) * 2, lefts=(10**4,), rights=(10**4,)),
        vt.GramSum(lambda block: block.features, 10**4, 1.0),
    ],
    ids=lambda question: question.kind,
)
def test_an_answer_that_no_ledger_holds_is_refused_before_the_charge(private, monkeypatch, question):
    monkeypatch.setattr(noisy_sums, "LARGEST_RELEASE", 700_000_000)
    data = private({"i": [1.0]})
    with pytest.raises(InvalidInput, match="a ledger stores at most 700 MB"):
        data.ask(question, epsilon=0.1)
    assert data.budget.spent_epsilon == 0


SAMPLED = {
    "bounded": lambda rate: vt.BoundedSum(lambda block: np.ones((len(block), 1)), 1, 1.0, rate=rate),
    "counts": lambda rate: vt.CellCounts(lambda block: np.zeros((len(block), 1)), (1,), rate=rate),
    "product": lambda rate: vt.ProductSum(lambda block: (np.ones((len(block), 1)),) * 2, (1,), (1,), rate=rate),
    "gram": lambda rate: vt.GramSum(lambda block: np.ones((len(block), 1)), 1, 1.0, rate=rate),
}


@pytest.mark.parametrize("kind", SAMPLED)
def test_every_sum_can_be_of_a_sample(walk, kind):
    """At a price so high that noise is nothing: the answer is the number of rows in the sample, over the rate."""
    from error_rates import count_bounds

    rows = {"i": np.arange(900.0)}
    walked = walk(rows, n_rows_public=900)
    whole = SAMPLED[kind](None).plan(1e4, walked.facts)
    assert whole.answers(walked, 8, 1).ravel()[0] == pytest.approx(900, abs=1)
    plan = SAMPLED[kind](0.25).plan(1e4, walked.facts)
    assert plan.sigma == pytest.approx(4 * whole.sigma, rel=0.01)
    assert plan.event.cost() == whole.event.cost()
    answers = plan.answers(walked, 8, 3).ravel() * 0.25
    fewest, most = count_bounds(900, 0.25)
    assert all(fewest - 1 <= answer <= most + 1 for answer in answers)


def test_coins_are_of_the_key_and_the_place_and_of_nothing_else(walk):
    walked = walk({"i": np.arange(900.0)})
    sample, other = walked.sampled(0.5).source, walked.sampled(0.5).source

    def taken(source, rows):
        return np.concatenate([*source.chunks(rows)])[:, 0].tolist()

    assert taken(sample, 5) == taken(sample, 64) == taken(pickle.loads(pickle.dumps(sample)), 900)
    assert sample.key != other.key
    assert taken(sample, 5) != taken(other, 5)  # 900 coins: the same by chance once in 2^900
    second = sample.over(walked.source, 1)
    assert taken(second, 5) != taken(sample, 5)


def test_a_rate_is_part_of_the_question_and_none_changes_nothing():
    assert "rate" not in SAMPLED["counts"](None).describe()
    assert SAMPLED["counts"](0.5).describe()["rate"] == 0.5
    with pytest.raises(InvalidInput, match="rate of a GramSum is 2"):
        SAMPLED["gram"](2.0)


def test_a_choice_can_be_made_on_a_sample(private):
    data = private({"i": np.zeros(400)}, n_rows_public=400)
    better = vt.Select(lambda block: np.tile([0.0, 1.0], (len(block), 1)), 2, 1.0, rate=0.5)
    assert data.ask(better, epsilon=5.0).value[0] == 1
