"""A failing block is halved: as many calls as the docstring says, at one shape, and the bits of row by row."""

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.vault.rows.block import salvaged
from vitrail.vault.rows.row_function import RowFunction, evaluate

TABLE = np.random.default_rng(3).uniform(-0.5, 0.5, size=1000)
UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


def most_calls(rows, failing):
    return 0 if not failing else min(2 * failing * math.ceil(math.log2(rows)), 2 * (rows - 1)) if rows > 1 else 0


@given(st.integers(1, 300).flatmap(lambda rows: st.tuples(st.just(rows), st.sets(st.integers(0, rows - 1), min_size=1))))
@settings(max_examples=200, deadline=None)
def test_halving_finds_exactly_the_failing_rows_within_the_stated_number_of_calls(case):
    rows, bad = case
    found, calls = np.zeros(rows, dtype=bool), []

    def call(part):
        calls.append(part)
        if any(part.start <= row < part.stop for row in bad):
            return None
        assert not found[part].any(), "no row is taken twice"
        found[part] = True
        return (np.arange(rows, dtype=np.float64),)

    (values,) = salvaged(rows, call, [()])
    np.testing.assert_array_equal(values, np.where(found, np.arange(rows), np.nan))
    assert set(np.flatnonzero(~found)) == bad
    assert calls.pop(0) == slice(0, rows)
    assert len(calls) <= most_calls(rows, len(bad))


def reference(fn, raw, setting):
    """Every row alone among fillers."""
    out = np.full(len(raw), np.nan)
    for row in range(len(raw)):
        alone = np.repeat(setting.schema.filler(), len(raw), axis=0)
        alone[row] = raw[row]
        try:
            out[row] = fn(alone[:, 0])[row]
        except KeyError:
            continue
    return out


@given(st.lists(st.integers(0, 40), min_size=1, max_size=64), st.sets(st.integers(0, 40)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_bits_are_those_of_row_by_row_at_one_shape(walk, order, bad, by_model):
    """Where the function fails and where the model does."""
    shapes, public = set(), [True]

    def fn(index):
        shapes.add(len(index))
        if not public and set(index.astype(int)) & bad:
            raise KeyError("a private row")
        return TABLE[index.astype(int)]

    walked = walk({"i": np.array(order, dtype=float)}, block_rows=len(order))
    raw = np.array(order, dtype=float)[:, None]
    if by_model:
        model = vt.Model(lambda values: fn(values[:, 0]), range=(-1, 1), inputs="values")
        walked.predictions.admit(model)
        function = RowFunction(lambda block: block.predictions(model), ((1,),), "a test")
    else:
        function = RowFunction(lambda block: fn(block.column("i")), ((1,),), "a test")
    public.clear()
    shapes.clear()
    (found,) = evaluate(function, raw, walked.facts, walked.predictions, 0)
    assert shapes == {len(order)}
    expected = reference(fn, raw, walked.facts)
    assert np.array_equal(found[:, 0].view(np.uint64)[~np.isnan(expected)], expected.view(np.uint64)[~np.isnan(expected)])
    assert np.isnan(found[np.isnan(expected)]).all()


def counted(predict):
    calls = []

    def counting(x):
        calls.append(len(x))
        return predict(x)

    return vt.Model(counting, range=(0, 1)), calls


def touchy(x):
    if (x[:, 0] == 0.3).any():
        raise ValueError("a private row")
    return x[:, 0]


def model_calls(private, values, questions, altered=False):
    """Calls of the model, on public rows and then on private ones, for so many questions about it."""
    model, calls = counted(touchy)
    data = private({"x": np.array(values)}, UNIT, block_rows=1024, n_rows_public=4096)

    def fn(block):
        return block.outputs(model, block.values.copy()) if altered else block.predictions(model)

    for _ in range(questions):
        data.ask(vt.BoundedSum(fn, size=1, l2_bound=1.0), mu=0.1)
    return len(calls), calls


@pytest.mark.parametrize("altered", [False, True])
def test_one_failing_row_among_4096_costs_twenty_calls_and_not_a_thousand(private, altered):
    usual, _ = model_calls(private, [0.5] * 4096, 1, altered)
    odd, calls = model_calls(private, [0.3] + [0.5] * 4095, 1, altered)
    assert usual < odd <= usual + 2 * 10 + 1  # log2(1024) = 10, and one block of fillers
    assert set(calls[-(4 + odd - usual) :]) == {1024}  # all that saw private rows: four blocks, and what halving adds


def test_a_failing_row_is_looked_for_once_per_model_and_not_per_question(private):
    once, _ = model_calls(private, [0.3] + [0.5] * 4095, 1)
    thrice, _ = model_calls(private, [0.3] + [0.5] * 4095, 3)
    usual, _ = model_calls(private, [0.5] * 4096, 1)
    usual_thrice, _ = model_calls(private, [0.5] * 4096, 3)
    assert thrice - once == usual_thrice - usual


def test_a_block_of_failing_rows_is_called_twice_as_often_as_it_has_rows(walk):
    calls = []

    def fn(block):
        calls.append(len(block))
        if (block.column("x") == 0.3).any():
            raise ValueError
        return block.features

    walked = walk({"x": np.full(64, 0.3)}, UNIT, block_rows=64)
    evaluate(RowFunction(fn, ((1,),), "a test"), np.full((64, 1), 0.3), walked.facts, walked.predictions, 0)
    assert calls == [64] * (2 * 64 - 1)


def test_no_block_outlives_its_call(walk):
    """Without the garbage collector's help: a circle of references would keep private rows, and their memory, for longer."""
    walked = walk({"i": np.arange(8.0)}, block_rows=8)
    function = RowFunction(lambda block: block.features, ((1,),), "a test")
    gc.disable()
    try:
        raw = np.arange(8.0)[:, None].copy()
        evaluate(function, raw, walked.facts, walked.predictions, None)
        alive = weakref.ref(raw)
        del raw
        assert alive() is None
    finally:
        gc.enable()
