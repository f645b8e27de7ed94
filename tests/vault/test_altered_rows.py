"""What the model says about altered rows: asked in place, probed without the model, and a failing row costs itself alone."""

import tracemalloc

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.vault import rehearse
from vitrail.vault.rows.block import WAYS_AT_ONCE
from vitrail.vault.rows.row_function import hashed_rows

SCHEMA = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Numeric(0, 1)})
ROWS = np.random.default_rng(3).uniform(size=(500, 2))


def counted():
    calls = []

    def predict(features):
        calls.append(len(features))
        return features[:, 0] * features[:, 1]

    return vt.Model(predict, range=(0, 1)), calls


def exact(question, rows=ROWS, mu=1e6):
    """The sum of a question with next to no noise."""
    return rehearse(question, rows, SCHEMA, mu=mu, n_rows_public=500, draws=1, block_rows=64)[0]


def at(model, x):
    def fn(block):
        altered = block.values.copy()
        altered[:, 0] = x
        return block.outputs(model, altered)

    return vt.BoundedSum(fn, 1, 1.0)


def test_outputs_are_the_models_own_on_altered_rows():
    model, _ = counted()
    assert exact(at(model, 0.25))[0] == pytest.approx(0.25 * ROWS[:, 1].sum(), abs=1e-3)


def test_the_probe_does_not_ask_the_model_about_altered_rows():
    model, calls = counted()
    plain = vt.BoundedSum(lambda block: block.predictions(model), 1, 1.0)
    exact(plain)
    before = len(calls)
    many = [at(model, x) for x in np.linspace(0, 1, 5)]
    for question in many:
        exact(question)
    # The model is asked about the blocks of private rows alone (and admitted anew by each rehearsal).
    fresh, fresh_calls = counted()
    exact(vt.BoundedSum(lambda block: block.predictions(fresh), 1, 1.0))
    assert len(calls) - before <= 5 * len(fresh_calls)


def test_a_function_that_mixes_altered_rows_is_seen():
    model, _ = counted()

    def mixes(block):
        return block.outputs(model, np.ascontiguousarray(block.values[::-1]))

    with pytest.warns(UserWarning, match="depends on the block"):
        exact(vt.BoundedSum(mixes, 1, 1.0))


def test_a_model_that_ignores_a_column_cannot_hide_that_it_was_mixed():
    """The model does not look at y, so its own outputs would not show that y came from another row."""
    model = vt.Model(lambda features: features[:, 0], range=(0, 1))

    def mixes(block):
        altered = block.values.copy()
        altered[:, 1] = np.roll(altered[:, 1], 1)
        return block.outputs(model, altered)

    with pytest.warns(UserWarning, match="depends on the block"):
        exact(vt.BoundedSum(mixes, 1, 1.0))


def test_a_failing_altered_row_counts_zero_and_no_other_changes():
    bad = ROWS[17, 1]

    def predict(features):
        if ((features[:, 1] == bad) & (features[:, 0] == 0.5)).any():
            raise ValueError("private")
        return features[:, 1]

    found = exact(at(vt.Model(predict, range=(0, 1)), 0.5))[0]
    assert found == pytest.approx(ROWS[:, 1].sum() - bad, abs=1e-3)


@pytest.mark.parametrize("shape", [(3, 2), (1,)])
def test_a_wrong_shape_is_refused_before_anything_is_charged(shape):
    model, _ = counted()
    data = vt.PrivateData(ROWS, SCHEMA, name="altered", n_rows_public=500, budget=vt.Budget(1, 1e-6))
    with pytest.raises(InvalidInput, match=r"block\.outputs"):
        data.ask(vt.BoundedSum(lambda block: block.outputs(model, np.zeros(shape)), 1, 1.0), epsilon=0.5)
    assert data.budget.n_questions == 0


@pytest.mark.parametrize("ways", [1, 3, 4, 9])
def test_several_ways_at_once_are_the_same_bits_as_one_by_one(ways):
    model, _ = counted()
    places = np.linspace(0, 1, ways)

    def together(block):
        altered = np.repeat(block.values[:, None, :], ways, axis=1)
        altered[:, :, 0] = places
        return block.outputs(model, altered)

    def apart(block):
        columns = []
        for place in places:
            altered = block.values.copy()
            altered[:, 0] = place
            columns.append(block.outputs(model, altered))
        return np.stack(columns, axis=1)

    blocks = []

    def both(block):
        first, second = together(block), apart(block)
        blocks.append(np.array_equal(first, second))
        return first

    exact(vt.BoundedSum(both, ways, 3.0))
    assert all(blocks)


def test_packs_are_larger_calls_of_one_shape_and_only_for_models_that_bear_it():
    sizes = set()

    def predict(features):
        sizes.add(len(features))
        return features[:, 0] * features[:, 1]

    def asking(model):
        def fn(block):
            return block.outputs(model, np.repeat(block.values[:, None, :], 6, axis=1))

        return vt.BoundedSum(fn, 6, 3.0)

    exact(asking(vt.Model(predict, range=(0, 1))))
    assert 4 * 64 in sizes

    def mean_of_a_pack(features):
        return features[:, 0] if len(features) <= 64 else features[:, 0] * 0 + features[:, 0].mean()

    found = exact(asking(vt.Model(mean_of_a_pack, range=(0, 1))))
    np.testing.assert_allclose(found, ROWS[:, 0].sum(), atol=1e-2)


def test_hashes_differ_where_rows_do():
    rows = np.random.default_rng(0).uniform(size=(20_000, 3))
    rows[1] = rows[0]
    rows[2] = rows[0] * [1, 1, 1 + 2**-52]
    found = hashed_rows(rows)
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert len(np.unique(found)) == len(rows) - 1
    assert ((found >= 0) & (found < 1)).all()


def test_a_function_is_probed_with_outputs_that_its_model_gives():
    """A function that knows the model's two classes alone is no failing one; one that mixes rows by them is found out."""
    model = vt.Model(lambda features: (features[:, 0] > 0.5).astype(float), range=(0, 1))
    meaning = {0.0: 0.0, 1.0: 1.0}
    question = vt.BoundedSum(lambda block: [[meaning[output]] for output in block.predictions(model)], 1, 1.0)
    np.testing.assert_allclose(exact(question), (ROWS[:, 0] > 0.5).sum(), atol=1e-2)
    data = vt.PrivateData(ROWS, SCHEMA, name="mixed", n_rows_public=500, budget=vt.Budget(1, 1e-6), ledger="memory")
    mixed = vt.BoundedSum(lambda block: block.predictions(model)[:, None] - block.predictions(model).mean(), 1, 1.0)
    with pytest.warns(UserWarning, match="depends on the block around it"):
        data.ask(mixed, epsilon=0.1)


MIXED = vt.Schema(
    {
        "x": vt.Numeric(0, 1),
        "n": vt.Numeric(0, 9, integer=True, codes=(-9,)),
        "y": vt.Numeric(0, 1),
        "c": vt.Categorical(["a", "b", "d"]),
    }
)
"""The target stands in the middle, where the features are no view of the rows."""
OTHERS = {"x": [0.5, 0.1, 1.0, 0.0, 0.7], "n": [3.0, -9.0, 0.0, 9.0, 4.0], "c": [2.0, 0.0, 1.0, 1.0, 0.0]}


def mixed_rows():
    draw = np.random.default_rng(5)
    return {"x": draw.random(150), "n": draw.integers(0, 10, 150), "y": draw.random(150), "c": draw.choice(list("abd"), 150)}


@pytest.mark.parametrize("columns", ["x", "n", "c", ["x", "c"], ("c",), ["n", "x", "c"]])
@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("ways", [1, 3, 4, 9])
def test_what_if_has_the_bits_and_the_calls_of_outputs(columns, per_row, ways):
    """On private rows and in the probe, where the model is not asked."""
    names = [columns] if isinstance(columns, str) else list(columns)
    calls, same_bits, made = [], [], []

    def predict(features):
        calls.append(len(features))
        return 1 / (1 + np.exp(-np.sin(features @ np.linspace(0.3, 1.1, 6))))

    model = vt.Model(predict, range=(0, 1))

    def both(block):
        values = np.stack([np.resize(OTHERS[name], ways) for name in names], axis=-1)
        if per_row:  # every second row gets them the other way round
            values = np.where((block.column("x") > 0.5)[:, None, None], values, values[::-1])
        features = ["x", "n", "c"]
        altered = np.repeat(block.values[:, None, :], ways, axis=1)
        altered[:, :, [features.index(name) for name in names]] = values
        before = len(calls)
        expected = block.outputs(model, altered)
        between = len(calls)
        found = block.what_if(model, columns, values[..., 0] if isinstance(columns, str) else values)
        same_bits.append(np.array_equal(found, expected))
        made.append((calls[before:between], calls[between:]))
        return found

    question = vt.BoundedSum(both, ways, 3.0)
    rehearse(question, mixed_rows(), MIXED, mu=1.0, n_rows_public=150, draws=1, block_rows=64, target="y")
    assert all(same_bits)
    on_rows = made[-3:]  # before that the model was probed by the first function that asked it, and then not asked
    packs, rest = divmod(ways, WAYS_AT_ONCE)
    assert on_rows == [([WAYS_AT_ONCE * 64] * packs + [64] * rest,) * 2] * 3
    assert all(asked == [] for _, asked in made[:-3])


def test_what_if_asks_one_row_at_a_time_where_a_model_bears_no_more():
    """Its outputs change in their last bits with a row's place."""
    calls = []

    def predict(features):
        calls.append(len(features))
        return np.clip(features[:, 0] * features[:, 1] + 1e-9 * np.arange(len(features)), 0, 1)

    model = vt.Model(predict, range=(0, 1))
    values = np.linspace(0, 1, 5)
    with pytest.warns(UserWarning, match="one row at a time"):
        found = exact(vt.BoundedSum(lambda block: block.what_if(model, "x", values), 5, 3.0))
    assert calls[-500 * 5 :] == [1] * 2500
    np.testing.assert_allclose(found, values * ROWS[:, 1].sum(), atol=1e-2)


def test_a_row_that_fails_one_way_counts_zero_and_no_other_changes():
    bad = ROWS[17, 1]

    def predict(features):
        if ((features[:, 1] == bad) & (features[:, 0] == 0.5)).any():
            raise ValueError("private")
        return features[:, 1]

    model = vt.Model(predict, range=(0, 1))
    found = exact(vt.BoundedSum(lambda block: block.what_if(model, "x", np.linspace(0, 1, 9)), 9, 3.0))
    np.testing.assert_allclose(found, ROWS[:, 1].sum() - bad, atol=1e-2)


def test_what_if_holds_a_few_altered_rows_at_a_time():
    """Four hundred ways of 64 rows of 200 columns would be 41 MB."""
    schema = vt.Schema({f"x{index}": vt.Numeric(0, 1) for index in range(200)})
    model, peaks = vt.Model(lambda features: features[:, 3], range=(0, 1)), []

    def at_many(block):
        tracemalloc.start()
        found = block.what_if(model, "x3", np.linspace(0, 1, 400))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        return found

    question = vt.BoundedSum(at_many, 400, 20.0)
    rehearse(question, np.full((64, 200), 0.5), schema, mu=1.0, n_rows_public=64, draws=1, block_rows=64)
    assert max(peaks) < 4e6


def test_a_model_that_writes_into_its_rows_changes_no_other_way():
    """The rows of one call are made anew for the next."""

    class Rude:
        def predict(self, rows):
            outputs = np.array(rows[:, 0] * rows[:, 1])
            rows[:] = 0.0
            return outputs

    question = vt.BoundedSum(lambda block: block.what_if(vt_model, "x", np.full(9, 0.25)), 9, 3.0)
    vt_model = vt.Model(Rude().predict, range=(0, 1), inputs="values")
    np.testing.assert_allclose(exact(question), 0.25 * ROWS[:, 1].sum(), atol=1e-2)


@pytest.mark.parametrize(
    ("columns", "values", "sentence"),
    [
        ("z", [0.5], "name one of the features"),
        ("y", [0.5], "name one of the features"),
        ([], np.zeros((1, 0)), "name one of the features"),
        (["x", "x"], [[0.5, 0.5]], "each once"),
        ("x", 0.5, "k values for all rows"),
        ("x", np.zeros((2, 3)), "k values for all rows"),
        ("x", np.zeros((64, 3, 1)), "k values for all rows"),
        (["x", "c"], [[0.5]], "'k', 2"),
        (["x"], [0.5, 0.5], "'k', 1"),
        ("x", [0.5, 1.5], "a number between 0.0 and 1.0"),
        ("x", [np.nan], "a number between 0.0 and 1.0"),
        ("n", [3.5], "a whole number between 0 and 9, or a code: -9"),
        ("n", [-8], "or a code"),
        ("c", [3], "one of 'a', 'b', 'd'.*as its index"),
        ("c", [0.5], "one of 'a', 'b', 'd'"),
    ],
)
def test_what_if_refuses_what_the_schema_does_not_allow_before_anything_is_charged(columns, values, sentence):
    model = vt.Model(lambda features: features[:, 0], range=(0, 1))
    data = vt.PrivateData(
        mixed_rows(), MIXED, name="if", target="y", n_rows_public=150, budget=vt.Budget(1, 1e-6), block_rows=64
    )
    with pytest.raises(InvalidInput, match=sentence):
        data.ask(vt.BoundedSum(lambda block: block.what_if(model, columns, np.asarray(values)), 1, 1.0), epsilon=0.5)
    assert data.budget.n_questions == 0
