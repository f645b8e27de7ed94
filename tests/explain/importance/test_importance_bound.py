"""What a row contributes to permutation importance: never longer than stated, from the row alone, donors in the schema."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.explain.joint_sum import JointSum
from vitrail.explain.permutation_importance import plan_importance
from vitrail.solve.coalitions import row_hashes
from vitrail.solve.curves.importance import SMALLEST_PROBABILITY, Donor, loss_of
from vitrail.solve.curves.reference import Reference
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema(
    {
        "a": vt.Numeric(-5, 5),
        "b": vt.Numeric(0, 9, integer=True),
        "c": vt.Categorical(["x", "y", "z"]),
        "y": vt.Numeric(0, 1, integer=True),
    }
)
FEATURES = SCHEMA.without("y")
RNG = np.random.default_rng(0)
ROWS = {
    "a": RNG.normal(0, 1, 500).clip(-5, 5),
    "b": RNG.integers(0, 10, 500),
    "c": RNG.choice(["x", "y", "z"], 500, p=[0.7, 0.2, 0.1]),
    "y": RNG.integers(0, 2, 500),
}
DATA = vt.PrivateData(ROWS, SCHEMA, name="rows", target="y", n_rows_public=500, budget=vt.Budget(1e4, 1e-6))
MARGINALS = vt.marginals(DATA, mu=20.0, bins=40)


def jagged(features):
    """As different for neighbouring rows as a model can be."""
    return (np.sin(1e4 * features @ np.arange(1.0, features.shape[1] + 1)) + 1) / 2


MODEL = vt.Model(jagged, range=(0, 1))
REFERENCE = Reference(FEATURES, MODEL, MARGINALS)


def summand_of(loss="squared", bound=None, clip=None, repeats=2):
    made = loss_of(loss, bound, MODEL, SCHEMA, "y", None)
    return plan_importance(REFERENCE, FEATURES.names, made, repeats, clip, noise=1e-3)


def block_of(raw, model=MODEL):
    facts = PublicFacts(SCHEMA, "y", len(raw), "add-remove", len(raw))
    predictions = Predictions(facts)
    predictions.admit(model)
    return Block(raw, facts, lambda m, v: predictions.of(m, v, None))


def raw_rows(n, seed=0):
    draw = np.random.default_rng(seed)
    return (
        np.column_stack([draw.uniform(-5, 5, n), draw.integers(0, 10, n), draw.integers(0, 3, n), draw.integers(0, 2, n)])
        + 0.0
    )


LOSSES = [
    ("squared", None),
    ("absolute", None),
    ("zero-one", None),
    ("log", None),
    (lambda y, f: 1e9 * (f - 0.5) * (2 * y - 1), 2.5),
]


@pytest.mark.parametrize(("loss", "bound"), LOSSES)
@pytest.mark.parametrize("clip", [None, 1e-3, 1e9])
def test_no_row_is_longer_than_one(loss, bound, clip):
    joint = JointSum((summand_of(loss, bound, clip),), (1.0,))
    found = joint(block_of(raw_rows(64)))
    assert np.isfinite(found).all()
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, (8, 4), elements=st.floats(0, 1)),
    st.floats(1e-6, 1e6),
    st.integers(1, 5),
)
def test_whatever_the_rows_the_sum_moves_by_less_than_the_bound(shares, clip, repeats):
    raw = np.column_stack(
        [shares[:, 0] * 10 - 5, np.round(shares[:, 1] * 9), np.floor(shares[:, 2] * 2.99), np.round(shares[:, 3])]
    )
    summand = summand_of(clip=clip, repeats=repeats)
    given_rows = summand.contributions(block_of(raw))
    # Unclipped, a difference of losses and one of expected losses are at most twice the largest loss together; the base
    # loss is at most half of it from the middle.
    assert np.abs(given_rows[:, :3]).max() <= 2.0
    assert np.abs(given_rows[:, 3]).max() <= 0.5
    np.testing.assert_array_equal(given_rows[:, 4], np.linalg.norm(given_rows[:, :3], axis=1) > summand.clip)
    assert np.linalg.norm(JointSum((summand,), (1.0,))(block_of(raw)), axis=1).max() <= 1 + 1e-12


def test_a_row_contributes_the_same_in_any_company():
    raw, summand = raw_rows(16), summand_of(repeats=3)
    together = summand.contributions(block_of(raw))
    turned = summand.contributions(block_of(raw[::-1].copy()))[::-1]
    np.testing.assert_array_equal(together, turned)
    others = raw_rows(16, seed=9)
    others[5] = raw[5]
    np.testing.assert_array_equal(summand.contributions(block_of(others))[5], together[5])


def test_a_model_that_fails_on_a_row_makes_it_no_number():
    summand = summand_of()
    block = block_of(raw_rows(8))
    broken = Block(block._raw, block._facts, lambda m, v: np.where(np.arange(len(v)) == 3, np.nan, 0.5))
    found = summand.contributions(broken)
    assert np.isnan(found[3]).any()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


# --- donors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEATURES.names)
def test_donors_follow_the_released_histogram_and_stay_in_the_schema(name):
    donor = Donor.of(REFERENCE, name)
    rows = raw_rows(40_000)[:, :3]
    drawn = np.concatenate(donor.draws(row_hashes(rows, 0), 2))
    column = FEATURES[name]
    if name == "c":
        np.testing.assert_allclose(np.bincount(drawn.astype(int)) / len(drawn), MARGINALS.shares["c"], atol=0.01)
        return
    assert column.low <= drawn.min() <= drawn.max() <= column.high
    assert not column.integer or (drawn == np.round(drawn)).all()
    assert abs(drawn.mean() - np.mean(ROWS[name])) < 0.15
    assert abs(drawn.std() - np.std(ROWS[name])) < 0.15


def test_several_donors_are_spread_over_the_distribution():
    donor = Donor.of(REFERENCE, "a")
    draws = np.stack(donor.draws(row_hashes(raw_rows(200)[:, :3], 0), 4))
    quarter = np.searchsorted(donor.at(np.array([0.25, 0.5, 0.75])), draws)
    assert (np.sort(quarter, axis=0) == np.arange(4)[:, None]).mean() > 0.99


def test_donors_of_different_columns_have_nothing_in_common():
    """They come from one hash of the row: its further hashes must be as good as independent. 40 000 rows: std 1/200."""
    hashes = row_hashes(raw_rows(40_000)[:, :3], 0)
    first, second = (Donor.of(REFERENCE, name).draws(hashes, 1)[0] for name in ("a", "b"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_a_column_of_few_values_meets_all_of_them_with_their_shares(repeats):
    """As many predictions as donors, or one more, and no chance: the mean is what very many donors would give."""
    few, many = Donor.of(REFERENCE, "c"), Donor.of(REFERENCE, "a")
    hashes = row_hashes(raw_rows(50)[:, :3], 0)
    assert few.exact(repeats) == (repeats >= 2)
    assert not many.exact(1000)  # intervals, not values
    assert many.values(hashes, repeats).shape == (50, repeats, 1)
    for donor in (few, many):
        assert donor.weights(repeats).sum() == pytest.approx(1)
        assert donor.values(hashes, repeats).shape[-2] == len(donor.weights(repeats)) <= repeats + 1
    if few.exact(repeats):
        np.testing.assert_array_equal(few.values(hashes, repeats).ravel(), [0, 1, 2])
        summand = summand_of(repeats=repeats)
        block = block_of(raw_rows(50))
        found = summand.contributions(block)[:, 2] * summand.sizes[2]
        rows, target = block.values, block.target
        outputs = MODEL.predict_points(FEATURES, rows)
        set_to = [np.column_stack([rows[:, :2], np.full(50, level)]) for level in range(3)]
        at = np.stack([MODEL.predict_points(FEATURES, altered) for altered in set_to], axis=1)
        losses, shares = (target[:, None] - at) ** 2, few.shares
        correction = summand.expected[2] - shares @ summand.expected[2]
        expected = losses @ shares - (target - outputs) ** 2 + correction[rows[:, 2].astype(int)]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_whole_numbers_of_few_values_are_met_one_by_one():
    donor = Donor.of(REFERENCE, "b")
    assert donor.exact(9)
    assert not donor.exact(8)
    np.testing.assert_array_equal(donor.values(np.zeros(3, np.uint64), 9).ravel(), np.arange(10))


# --- losses -----------------------------------------------------------------------------------------------------------


def test_losses_are_what_they_are_called_and_bounded():
    y, f = np.array([0.0, 1.0, 1.0]), np.array([0.25, 0.25, 1.0])
    expected = {
        "squared": ([0.0625, 0.5625, 0.0], 1.0),
        "absolute": ([0.25, 0.75, 0.0], 1.0),
        "zero-one": ([0.0, 1.0, 0.0], 1.0),
        "log": ([-np.log(0.75), -np.log(0.25), -np.log(1 - SMALLEST_PROBABILITY)], -np.log(SMALLEST_PROBABILITY)),
    }
    for name, (values, largest) in expected.items():
        loss = loss_of(name, None, MODEL, SCHEMA, "y", None)
        np.testing.assert_allclose(loss(y, f), values)
        assert loss.largest == pytest.approx(largest)


def test_the_largest_loss_follows_from_the_declared_ranges():
    wide = vt.Model(lambda x: x[:, 0], range=(-3, 1))
    schema = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Numeric(0, 4)})
    assert loss_of("squared", None, wide, schema, "y", None).largest == 49.0
    assert loss_of("absolute", None, wide, schema, "y", None).largest == 7.0


def test_a_categorical_target_is_one_where_the_model_says_so():
    schema = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Categorical(["low", "mid", "high"])})
    with pytest.raises(InvalidInput, match="positive="):
        loss_of("squared", None, MODEL, schema, "y", None)
    loss = loss_of("squared", None, MODEL, schema, "y", "mid")
    assert loss.numbers(np.array([0.0, 1.0, 2.0])).tolist() == [0.0, 1.0, 0.0]
    two = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Categorical(["no", "yes"])})
    assert loss_of("squared", None, MODEL, two, "y", None).positive == 1
