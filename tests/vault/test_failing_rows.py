"""What goes wrong on a private row costs that row alone, in silence."""

import logging
import threading
import warnings

import numpy as np
import pytest

import vitrail as vt
from exact_sums import exact_sum
from vitrail.errors import ImpureFunction, InvalidInput, ModelError
from vitrail.nothing_escapes import hushed
from vitrail.vault.rows.row_function import probe

TABLE = np.random.default_rng(1).uniform(-0.5, 0.5, size=(1000, 2))
BAD = 7
UNIT = vt.Schema({"x": vt.Numeric(0, 1)})


def plain(block):
    return TABLE[block.column("i").astype(int)]


def raises(block):
    if (block.column("i") == BAD).any():
        warnings.warn("a row", stacklevel=2)
        logging.getLogger("vitrail.vault").debug("nothing of ours logs this")
        raise KeyError("a private row")
    return plain(block)


def says(value):
    def fn(block):
        out = plain(block)
        out[block.column("i") == BAD] = value
        return out

    return fn


def wrong_shape(block):
    return plain(block)[:0] if (block.column("i") == BAD).any() else plain(block)


def wrong_type(block):
    return "text" if (block.column("i") == BAD).any() else plain(block)


def exits(block):
    if (block.column("i") == BAD).any():
        raise SystemExit(3)
    return plain(block)


def divides(block):
    out = plain(block)
    out[:, 0] += 1 / (block.column("i") - BAD) - 1 / (block.column("i") - BAD)
    return out


def half_bad(block):
    """One coordinate is NaN: the whole row counts zero."""
    out = plain(block)
    out[block.column("i") == BAD, 1] = np.nan
    return out


def total(walk, fn, order, block_rows=5, threads=1):
    question = vt.BoundedSum(fn, size=2, l2_bound=1.0)
    walked = walk({"i": np.asarray(order, dtype=float)}, block_rows=block_rows, threads=threads)
    grid = question.plan(1.0, walked.facts).grid
    return exact_sum(walked, question.row_function(), grid, block_rows).tolist()


ORDER = np.array([1, 2, 3, BAD, 4, 5, 6, 8, 9, BAD, 10, 11])
WITHOUT = ORDER[ORDER != BAD]
FAILING = [raises, says(np.nan), says(np.inf), says(-np.inf), wrong_shape, wrong_type, exits, divides, half_bad]


@pytest.mark.parametrize("fn", FAILING, ids=lambda fn: fn.__qualname__)
@pytest.mark.parametrize(("block_rows", "threads"), [(1, 1), (5, 1), (5, 3), (50, 1)])
def test_only_the_failing_row_counts_zero(walk, capfd, recwarn, caplog, fn, block_rows, threads):
    assert total(walk, fn, ORDER, block_rows, threads) == total(walk, plain, WITHOUT)
    assert capfd.readouterr() == ("", "")
    assert len(recwarn) == 0
    assert [record for record in caplog.records if record.name.startswith("vitrail") and record.levelno > 10] == []


@pytest.mark.parametrize("fn", FAILING, ids=lambda fn: fn.__qualname__)
def test_a_failing_row_raises_nothing_in_an_answer(private, fn, capfd, recwarn):
    """The filler and the probe rows do not fail; a private row does, and the answer comes all the same."""
    quiet = private({"i": ORDER.astype(float)}, vt.Schema({"i": vt.Numeric(0, 999)}), block_rows=5)
    release = quiet.ask(vt.BoundedSum(fn, size=2, l2_bound=1.0), mu=1.0)
    assert np.isfinite(release.value).all()
    assert capfd.readouterr() == ("", "")
    assert len(recwarn) == 0


def test_warnings_return_after_the_pass_also_when_passes_overlap(walk):
    """Filters belong to the process: a pass that ends must not unmute one that still runs, nor mute what comes later."""
    before = list(warnings.filters)
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    heard = []

    def first():
        hushed(lambda: (first_in.set(), second_in.wait(10)))
        first_out.set()

    def late():
        second_in.set()
        first_out.wait(10)
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn("about a private row", stacklevel=1)
        heard.extend(caught)

    def second():
        first_in.wait(10)
        hushed(late)

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert heard == []
    assert list(warnings.filters) == before


# Models


def unit_rows(values):
    return {"x": np.asarray(values, dtype=float)}


def model_total(walk, model, values, block_rows=4, fn=None):
    question = vt.BoundedSum(fn or (lambda block: block.predictions(model)), size=1, l2_bound=1.0)
    walked = walk(unit_rows(values), UNIT, block_rows=block_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape = question.probe(walked.facts, walked.predictions)
    grid = question.plan(1.0, walked.facts).grid
    return exact_sum(walked, question.row_function(), grid, shape).tolist()


VALUES = [0.125, 0.25, 0.3, 0.625, 0.7, 0.3, 0.8]
GOOD = [value for value in VALUES if value != 0.3]


def fails_on(outcome):
    def predict(x):
        out = x[:, 0] / 2
        bad = x[:, 0] == 0.3
        if bad.any() and outcome == "raise":
            raise ValueError("0.3 is a secret")
        if bad.any() and outcome == "shape":
            return out[:1]
        out[bad] = {"nan": np.nan, "inf": np.inf, "raise": 0, "shape": 0}[outcome]
        return out

    return vt.Model(predict, range=(0, 1))


@pytest.mark.parametrize("outcome", ["raise", "nan", "inf", "shape"])
def test_a_model_that_fails_on_a_row_costs_that_row_alone(walk, capfd, outcome):
    steady = vt.Model(lambda x: x[:, 0] / 2, range=(0, 1))
    assert model_total(walk, fails_on(outcome), VALUES) == model_total(walk, steady, GOOD)
    assert capfd.readouterr() == ("", "")


def test_a_model_that_fails_on_a_block_but_not_alone_loses_no_row(walk):
    def predict(x):
        if (x[:, 0] > 0.6).sum() >= 2 and (x[:, 0] == 0.625).any():  # no probe row is 0.625
            raise MemoryError("two at once")
        return x[:, 0] / 2

    steady = vt.Model(lambda x: x[:, 0] / 2, range=(0, 1))
    assert model_total(walk, vt.Model(predict, range=(0, 1)), VALUES) == model_total(walk, steady, VALUES)


def test_outputs_outside_the_range_are_clipped_in_silence(walk, recwarn):
    wild = vt.Model(lambda x: np.where(x[:, 0] == 0.3, 1e9, x[:, 0] / 2), range=(0, 1))
    bounded = vt.Model(lambda x: np.where(x[:, 0] == 0.3, 1.0, x[:, 0] / 2), range=(0, 1))
    assert model_total(walk, wild, VALUES) == model_total(walk, bounded, VALUES)
    assert len(recwarn) == 0


def test_a_model_asked_only_about_private_rows_was_not_admitted_and_counts_zero(walk):
    """The probe never saw it: such rows count zero, they do not raise."""
    steady = vt.Model(lambda x: x[:, 0], range=(0, 1))

    def fn(block):
        return block.predictions(steady) if (block.column("x") == 0.3).any() else block.column("x")

    assert model_total(walk, steady, VALUES, fn=fn) == model_total(walk, steady, GOOD, fn=lambda block: block.column("x"))


def test_work_in_place_harms_neither_the_rows_nor_stored_predictions(private):
    model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    data = private(unit_rows([0.5] * 100), UNIT, block_rows=10)

    def in_place(block):
        predictions, column, features = block.predictions(model), block.column("x"), block.features
        predictions -= 0.25
        column -= 0.25
        features -= 0.25
        return np.column_stack([predictions, column, features])

    for _ in range(3):
        noisy = data.ask(vt.BoundedSum(in_place, size=3, l2_bound=0.5), mu=1.0).value
        assert np.abs(noisy - 25).max() < 5
    with pytest.raises(InvalidInput, match="read-only"):
        data.ask(vt.BoundedSum(lambda block: np.subtract(block.values, 1, out=block.values), size=1, l2_bound=1.0), mu=1.0)


# Missing values


def test_missing_values_follow_the_schema_and_nothing_else(walk):
    strict = vt.Schema({"x": vt.Numeric(0, 1), "c": vt.Categorical(["a", "b"])})
    lenient = vt.Schema({"x": vt.Numeric(0, 1, missing=0.25), "c": vt.Categorical(["a", "b"], missing="b")})
    rows = {"x": [0.5, None, 0.5, float("nan"), 0.5], "c": ["a", "b", None, "z", "b"]}

    def sums(schema):
        question = vt.BoundedSum(lambda block: block.features, size=3, l2_bound=2.0)
        walked = walk(rows, schema, block_rows=2)
        grid = question.plan(1.0, walked.facts).grid
        return (exact_sum(walked, question.row_function(), grid, 2) * grid.step).tolist()

    assert sums(strict) == [1.0, 1.0, 1.0]
    assert sums(lenient) == [2.0, 1.0, 4.0]


# Probing


@pytest.mark.parametrize(
    ("fn", "size"),
    [
        (lambda block: block.features[:3], 1),
        (lambda block: np.ones((len(block), 2)), 1),
        (lambda block: np.ones(len(block)), 2),
        (lambda block: "text", 1),
        (lambda block: None, 1),
        (lambda block: (block.features, block.features), 1),
        (lambda block: 1 / 0, 1),
        (lambda block: block.column("no such column"), 1),
        (lambda block: block.target, 1),
        (lambda block: block.predictions(lambda x: x), 1),
        (lambda block: block.predictions(vt.Model(lambda x: x[:, 0] * 9, range=(0, 1))), 1),
        (lambda block: block.predictions(vt.Model(lambda x: x[:3, 0], range=(0, 1))), 1),
    ],
)
@pytest.mark.parametrize("rate", [None, 0.5])
def test_what_is_wrong_on_public_rows_is_said_before_anything_is_charged(private, fn, size, rate):
    data = private(unit_rows(VALUES), UNIT)
    with pytest.raises((InvalidInput, ModelError)):
        data.ask(vt.BoundedSum(fn, size=size, l2_bound=1.0, rate=rate), mu=1.0)
    assert data.budget.spent.pico_mu_squared == 0


def counter():
    seen = []

    def fn(block):
        seen.append(1)
        return np.full((len(block), 1), len(seen) / 1000)

    return fn


def with_memory():
    """Adds what it saw last: pure on a block that is repeated, not otherwise."""
    last = [0.0]

    def fn(block):
        out = block.features + last[0]
        last[0] = float(block.features[0, 0])
        return out

    return fn


def random_function():
    generator = np.random.default_rng()
    return lambda block: generator.random((len(block), 1))


@pytest.mark.parametrize("make", [counter, with_memory, random_function])
@pytest.mark.parametrize("block_rows", [1, 8])
def test_functions_with_memory_or_chance_are_refused(private, make, block_rows):
    data = private(unit_rows(VALUES), UNIT, block_rows=block_rows)
    with pytest.raises(ImpureFunction, match="Nothing was charged"):
        data.ask(vt.BoundedSum(make(), size=1, l2_bound=1.0), mu=1.0)
    assert data.budget.spent.pico_mu_squared == 0


def positional(block):
    """Bits that depend on the place in the block, as those of a matrix product may."""
    return block.features * (1 + 2.0**-40 * np.arange(len(block))[:, None])


IMPURE = {
    "mean": lambda block: block.features - block.features.mean(axis=0),
    "largest": lambda block: block.features / max(block.features.max(), 1e-9),
    "rank": lambda block: np.argsort(np.argsort(block.features, axis=0), axis=0) / 2 / len(block),
    "position": positional,
}


@pytest.mark.parametrize("name", IMPURE)
def test_functions_of_the_block_are_run_one_row_at_a_time_and_sums_stay_exact(walk, name):
    question = vt.BoundedSum(IMPURE[name], size=1, l2_bound=1.0)
    sums = set()
    for block_rows in (2, 3, 8):
        for values in (VALUES, VALUES[::-1], sorted(VALUES)):
            walked = walk(unit_rows(values), UNIT, block_rows=block_rows)
            with pytest.warns(UserWarning, match="one row at a time"):
                shape = probe(question.row_function(), walked.facts, walked.predictions)
            assert shape == 1
            grid = question.plan(1.0, walked.facts).grid
            sums.add(tuple(exact_sum(walked, question.row_function(), grid, shape)))
    assert len(sums) == 1


def test_a_model_whose_bits_depend_on_the_place_is_asked_row_by_row(walk):
    """A real matrix product where it differs, and a certain one that always does."""
    model = vt.Model(lambda x: x[:, 0] * (0.5 + 2.0**-30 * np.arange(len(x))), range=(0, 1))
    question = vt.BoundedSum(lambda block: block.predictions(model), size=1, l2_bound=1.0)
    sums = set()
    for values in (VALUES, VALUES[::-1]):
        walked = walk(unit_rows(values), UNIT, block_rows=4)
        with pytest.warns(UserWarning, match="one row at a time"):
            shape = question.probe(walked.facts, walked.predictions)
        grid = question.plan(1.0, walked.facts).grid
        sums.add(tuple(exact_sum(walked, question.row_function(), grid, shape)))
    assert sums == {tuple(model_total(walk, vt.Model(lambda x: x[:, 0] * 0.5, range=(0, 1)), VALUES))}


@pytest.mark.parametrize("width", [3, 17, 64])
def test_matrix_products_give_order_independent_sums_whatever_the_probe_decides(walk, width):
    schema = vt.Schema({f"x{j}": vt.Numeric(0, 1) for j in range(width)})
    generator = np.random.default_rng(width)
    matrix, rows = generator.normal(size=(width, 5)) / width, generator.random((53, width))
    question = vt.BoundedSum(lambda block: block.features @ matrix, size=5, l2_bound=1.0)
    sums = set()
    for order in (np.arange(53), np.arange(53)[::-1], generator.permutation(53)):
        for threads in (1, 3):
            walked = walk(rows[order], schema, block_rows=16, threads=threads)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shape = question.probe(walked.facts, walked.predictions)
            grid = question.plan(1.0, walked.facts).grid
            sums.add(tuple(exact_sum(walked, question.row_function(), grid, shape)))
    assert len(sums) == 1


def test_a_model_with_a_memory_is_refused_before_anything_is_charged():
    calls = []

    def counting(features):
        calls.append(len(features))
        return np.full(len(features), (len(calls) % 7) / 10)

    model = vt.Model(counting, range=(0, 1))
    data = vt.PrivateData(
        {"x": np.linspace(0, 1, 50)},
        vt.Schema({"x": vt.Numeric(0, 1)}),
        name="memory",
        n_rows_public=50,
        budget=vt.Budget(1, 1e-6),
    )
    with pytest.raises(vt.errors.ModelError, match="two predictions for the same public row"):
        data.ask(vt.BoundedSum(lambda block: block.predictions(model)[:, None], 1, 1.0), epsilon=0.5)
    assert data.budget.spent_epsilon == 0
