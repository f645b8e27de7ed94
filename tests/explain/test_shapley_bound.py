"""What a row contributes to Shapley values: the right vector, never longer than stated, a function of the row alone."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import vitrail as vt
from vitrail.explain.shapley import RowVectors, norms_of
from vitrail.solve.coalitions import Chains, point_key, ranks_of
from vitrail.solve.shapley.released import Scales, clip_edges
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Categorical(["x", "y", "z"])})


def additive(features):
    return 0.4 * features[:, 0] ** 2 - 0.3 * features[:, 1] + 0.2 * features[:, 3]


def entangled(features):
    """All three columns act together."""
    return features[:, 0] * features[:, 1] * (1 - features[:, 2]) + 0.5 * features[:, 1] * features[:, 4]


def pairwise(features):
    return features[:, 0] * features[:, 1] - 0.5 * features[:, 1] * features[:, 4] + features[:, 0]


def model_of(function, low=-2.0, high=2.0):
    return vt.Model(function, range=(low, high))


def brute_force(function, row, point):
    """Shapley values by the definition: over all sets of columns, each weighted."""
    n = len(row)

    def value(chosen):
        hybrid = np.array([point[j] if j in chosen else row[j] for j in range(n)])[None]
        return float(function(SCHEMA.features(hybrid)[0])[0])

    values = np.zeros(n)
    for j in range(n):
        others = [i for i in range(n) if i != j]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for chosen in itertools.combinations(others, size):
                values[j] += weight * (value({*chosen, j}) - value(set(chosen)))
    return values


def contributions(function, rows, point, ranks):
    model = model_of(function)
    outputs = model.predict_points(SCHEMA, np.concatenate([rows, point[None]]))
    return Chains(model, SCHEMA, np.arange(SCHEMA.n_columns)).contributions(
        rows, outputs[:-1], point, float(outputs[-1]), ranks
    )


def some_rows(n, seed=0):
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.random(n), draw.random(n), draw.integers(0, 3, n)]).astype(float)


POINT = np.array([0.9, 0.2, 2.0])
ALL_ORDERS = np.array(list(itertools.permutations(range(3))))


@pytest.mark.parametrize("function", [additive, entangled, pairwise])
def test_all_permutations_together_are_the_shapley_values(function):
    rows = some_rows(6)
    ranks = np.repeat(ALL_ORDERS[:, None, :], len(rows), axis=1)
    found = contributions(function, rows, POINT, ranks)
    expected = np.array([brute_force(function, row, POINT) for row in rows])
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_an_additive_model_needs_one_permutation_only(order):
    rows = some_rows(5)
    found = contributions(additive, rows, POINT, np.broadcast_to(order, (1, 5, 3)))
    np.testing.assert_allclose(found, [brute_force(additive, row, POINT) for row in rows], atol=1e-14)


def test_a_permutation_and_its_reverse_are_exact_for_pairs_of_columns():
    rows = some_rows(40)
    found = contributions(pairwise, rows, POINT, ranks_of(rows, point_key(POINT, 0), 2))
    np.testing.assert_allclose(found, [brute_force(pairwise, row, POINT) for row in rows], atol=1e-14)


def test_hashed_permutations_average_to_the_shapley_values():
    rows = some_rows(4000)
    found = contributions(entangled, rows, POINT, ranks_of(rows, point_key(POINT, 0), 1))
    ranks = np.repeat(ALL_ORDERS[:, None, :], len(rows), axis=1)
    exact = contributions(entangled, rows, POINT, ranks)
    off = (found - exact).mean(axis=0)
    error = (found - exact).std(axis=0) / math.sqrt(len(rows))
    assert (error > 0).all()  # single permutations do differ from the exact vectors
    assert (np.abs(off) < 4 * error).all()


def test_every_permutation_is_as_likely_as_any_other():
    ranks = ranks_of(some_rows(12_000), 5, 1)[0]
    assert (np.sort(ranks, axis=1) == np.arange(3)).all()
    counts = np.array([(ranks == order).all(axis=1).sum() for order in ALL_ORDERS])
    assert counts.sum() == 12_000
    assert ((counts - 2000) ** 2 / 2000).sum() < 30  # chi-squared of 5 degrees: a chance of 1e-5


def test_permutations_change_with_row_point_and_seed():
    rows = some_rows(200)
    first = ranks_of(rows, point_key(POINT, 0), 1)
    assert (first == ranks_of(rows, point_key(POINT, 0), 1)).all()
    assert (first != ranks_of(rows, point_key(POINT, 1), 1)).any()
    assert (first != ranks_of(rows, point_key(POINT + 0.01, 0), 1)).any()
    assert len(np.unique(first[0], axis=0)) == 6
    shuffled = np.random.default_rng(0).permutation(200)
    assert (ranks_of(rows[shuffled], point_key(POINT, 0), 1)[0] == first[0][shuffled]).all()


@given(
    rows=arrays(np.float64, (7, 2), elements=st.sampled_from([0.0, 0.25, 0.9, 1.0])),
    n_permutations=st.integers(1, 5),
    key=st.integers(0, 2**64 - 1),
)
@settings(max_examples=60)
def test_contributions_add_up_also_where_row_and_point_agree(rows, n_permutations, key):
    rows = np.column_stack([rows, [0, 1, 2, 0, 1, 2, 2]])
    found = contributions(entangled, rows, POINT, ranks_of(rows, key, n_permutations))
    outputs = entangled(SCHEMA.features(np.concatenate([rows, POINT[None]]))[0])
    np.testing.assert_allclose(found.sum(axis=1), outputs[-1] - outputs[:-1], atol=1e-14)
    assert (found[rows == POINT] == 0).all()  # a column on which they agree has nothing to add


def test_one_chain_at_a_time_gives_the_same_as_packed_calls():
    rows = some_rows(64)
    ranks = ranks_of(rows, 3, 3)
    packed = contributions(entangled, rows, POINT, ranks)
    model = model_of(entangled)
    outputs = model.predict_points(SCHEMA, np.concatenate([rows, POINT[None]]))
    chains = Chains(model, SCHEMA, np.arange(SCHEMA.n_columns))
    chains._row_wise.update(dict.fromkeys(range(10_000), False))
    alone = chains.contributions(rows, outputs[:-1], POINT, float(outputs[-1]), ranks)
    assert (packed == alone).all()


def test_hybrids_that_are_alike_are_asked_for_once():
    asked = []

    def counted(features):
        asked.append(len(np.unique(features, axis=0)))
        return entangled(features)

    rows = np.repeat(some_rows(4), 50, axis=0)
    model = model_of(counted)
    chains = Chains(model, SCHEMA, np.arange(SCHEMA.n_columns))
    outputs = model.predict_points(SCHEMA, rows)
    chains._is_row_wise(200)
    asked.clear()
    chains.contributions(rows, outputs, POINT, 0.1, ranks_of(rows, 0, 1))
    assert sum(asked) <= 4 * 2 + 1  # four different rows, two hybrids each, and the padding


def block_of(raw, schema=SCHEMA, target=None):
    facts = PublicFacts(schema, target, 100, "add-remove", len(raw))
    predictions = Predictions(facts)

    def predict(model, values):
        predictions.admit(model)
        return predictions.of(model, values, None)

    return Block(raw, facts, predict)


def vectors_of(function, points, n_permutations=1, low=-2.0, high=2.0):
    model = model_of(function, low, high)
    outputs = model.predict_points(SCHEMA, points)
    return RowVectors(SCHEMA, None, Chains(model, SCHEMA, np.arange(SCHEMA.n_columns)), points, outputs, n_permutations, 0)


def wild(features):
    """Jumps between the ends of its range, so that vectors reach far."""
    return np.where((np.floor(features[:, 0] * 8) + np.floor(features[:, 1] * 8) + features[:, 3]) % 2 == 0, -2.0, 2.0)


@given(
    rows=arrays(np.float64, (8, 2), elements=st.floats(0, 1)),
    points=arrays(np.float64, (3, 2), elements=st.floats(0, 1)),
    clip=st.floats(1e-3, 20),
    n_permutations=st.integers(1, 3),
    sampled=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_no_row_is_longer_than_stated(rows, points, clip, n_permutations, sampled):
    rows = np.column_stack([rows, np.arange(8) % 3]).astype(float)
    points = np.column_stack([points, [0, 1, 2]]).astype(float)
    unclipped = vectors_of(wild, points, n_permutations)
    scales = Scales(3, 3, clip, 4.0, sampled)
    vectors = unclipped.clipped(scales, block_of(rows))
    assert vectors.shape == (8, scales.size)
    values, squares, excess, _, count = np.split(vectors, np.cumsum(scales.sizes)[:-1], axis=1)
    before = norms_of(unclipped(block_of(rows))[0])
    after = norms_of(values.reshape(8, 3, 3))
    assert (after <= clip * (1 + 1e-12)).all()
    assert (np.sqrt((vectors**2).sum(axis=1)) <= scales.l2_bound).all()
    np.testing.assert_allclose(after, np.minimum(before, clip), rtol=1e-12)
    lengths = np.clip(before - clip, 0, scales.most_excess)
    np.testing.assert_allclose(excess, scales.excess * lengths, rtol=1e-12, atol=1e-12 * clip)
    assert (count == scales.count).all()
    if sampled:
        np.testing.assert_allclose(squares, scales.squares * values**2, rtol=1e-12)
    assert before.max() <= 4.0 * math.sqrt(3) + 1e-9  # the longest there is: R sqrt(n)


@given(
    n_points=st.integers(1, 50),
    n_columns=st.integers(1, 40),
    clip=st.floats(1e-3, 1e3),
    width=st.floats(1e-3, 1e3),
    sampled=st.booleans(),
)
def test_the_bound_of_the_docstring_is_the_bound_of_the_code(n_points, n_columns, clip, width, sampled):
    shares = 1 + 1 / 16 + 1 / (9 * math.sqrt(n_points)) + (1 / 16 if sampled else 0)
    shares += 1 / 9 if clip < width * math.sqrt(n_columns) else 0
    stated = math.sqrt(n_points) * clip * math.sqrt(shares)
    assert stated <= Scales(n_points, n_columns, clip, width, sampled).l2_bound <= stated * (1 + 1e-9)


@pytest.mark.parametrize("sampled", [False, True])
def test_the_bound_is_reached(sampled):
    """Twice as long as the clip at every point, with an output at the end of the range: no smaller bound would do."""
    unclipped = vectors_of(lambda x: 4 * x[:, 0] - 2, np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    scales = Scales(2, 3, 1.5, 4.0, sampled)
    row = unclipped.clipped(scales, block_of(np.array([[0.0, 0.0, 0.0]])))
    assert math.isclose(np.linalg.norm(row), scales.l2_bound, rel_tol=1e-11)


def test_a_row_on_which_the_model_fails_adds_nothing_anywhere():
    """Not even to the count: rows that are summed and rows that are counted are the same."""

    unclipped = vectors_of(lambda x: x[:, 0], POINT[None])
    vectors = np.full((2, 1, 3), 0.1)
    vectors[1, 0, 2] = np.nan
    failing = RowVectors(SCHEMA, None, unclipped.chains, POINT[None], unclipped.point_outputs, 1, 0)
    object.__setattr__(failing, "of", lambda values, outputs: vectors)
    rows = failing.clipped(Scales(1, 3, 1.0, 4.0), block_of(some_rows(2)))
    assert np.isfinite(rows[0]).all()
    assert np.isnan(rows[1]).all()


def test_a_row_has_the_same_bits_in_any_company():
    points = np.array([[0.9, 0.2, 2.0], [0.1, 0.5, 0.0]])
    fn = partial(vectors_of(entangled, points, 2).clipped, Scales(2, 3, 0.3, 4.0))
    rows = some_rows(32)
    together = fn(block_of(rows))
    for place in (0, 5, 31):
        alone = np.repeat(SCHEMA.filler(), 32, axis=0)
        alone[place] = rows[place]
        assert (fn(block_of(alone))[place] == together[place]).all()
    order = np.random.default_rng(0).permutation(32)
    assert (fn(block_of(rows[order])) == together[order]).all()


def test_private_rows_that_are_like_public_ones_are_right():
    """All of these few kinds of rows are among the vault's probe rows, which were answered with another row's outputs."""
    schema = vt.Schema({"a": vt.Categorical(["no", "yes"]), "b": vt.Categorical(["no", "yes"])})
    rows = {"a": ["yes"] * 300 + ["no"] * 100, "b": ["no", "yes"] * 200}
    data = vt.PrivateData(rows, schema, name="few", n_rows_public=400, budget=vt.Budget(1e4, 1e-6), ledger="memory")
    model = vt.Model(lambda x: 0.1 + 0.6 * x[:, 1], range=(0, 1), inputs="features")
    found = vt.Shapley(data, model)({"a": "no", "b": "yes"}, mu=100.0)
    np.testing.assert_allclose(found.values, [[-0.45, 0.0]], atol=5e-3)


def test_public_rows_are_looked_up_and_right():
    """The vault's probe sees what private rows would get."""
    fn = vectors_of(entangled, POINT[None])
    probe = SCHEMA.probe_rows(16)
    half = np.repeat(probe[:8], 2, axis=0)
    some = fn(block_of(half))[0]
    assert len(fn._known) == 8
    first = fn(block_of(probe))[0]
    assert len(fn._known) == 16
    assert (some[::2] == first[:8]).all()
    mixed = np.concatenate([probe[:15], some_rows(1)])  # one private row: computed, not looked up
    assert (fn(block_of(mixed))[0][:15] == first[:15]).all()
    assert (fn(block_of(probe[::-1].copy()))[0] == first[::-1]).all()
    np.testing.assert_allclose(
        vectors_of(entangled, POINT[None], 600)(block_of(probe))[0][:, 0],
        [brute_force(entangled, row, POINT) for row in probe],
        atol=0.1,
    )


def test_the_histogram_of_norms_gets_one_from_every_row():
    """A total of 1 in shares of 1/Q: norm at most 1, and two rows at most sqrt(2) apart."""
    points = np.array([[0.9, 0.2, 2.0], [0.1, 0.5, 0.0], [0.0, 1.0, 1.0]])
    edges = clip_edges(4.0, 3)
    counted = vectors_of(wild, points).norm_shares(edges, block_of(some_rows(64)))
    np.testing.assert_allclose(counted.sum(axis=1), 1.0, rtol=1e-12)
    assert (counted >= 0).all()
    assert (np.linalg.norm(counted, axis=1) <= 1 + 1e-12).all()
    assert (np.linalg.norm(counted[:, None] - counted, axis=2) <= math.sqrt(2) + 1e-12).all()
    same_and_far = vectors_of(wild, POINT[None]).norm_shares(edges, block_of(np.array([POINT, [0.1, 0.2, 2.0]])))
    assert math.isclose(np.linalg.norm(same_and_far[0] - same_and_far[1]), math.sqrt(2))  # no smaller bound would do
    norms = norms_of(vectors_of(wild, points)(block_of(some_rows(64)))[0])
    above = (norms > edges[-2]).mean()
    np.testing.assert_allclose(counted[:, -1].mean(), above, rtol=1e-12)
