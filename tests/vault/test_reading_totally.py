"""Whatever a private value is, it becomes a number, a level or missing; nothing escapes, and no other row changes."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from exact_sums import exact_sum
from vitrail.audit.escapes import OddNumber
from vitrail.errors import InvalidInput, SchemaError, Unanswered
from vitrail.vault.rows.sources import open_rows

SECRET = "Ada earns 61.0625"
SCHEMA = vt.Schema({"city": vt.Categorical(["Aix", "Bonn", "1"]), "age": vt.Numeric(0, 100)})
QUESTION = vt.BoundedSum(lambda block: block.features, SCHEMA.n_features, 2.0)
CITIES, AGES = [b"Aix", b"Bonn", b"Paris", b"Bonn", b"1"], [1.5, 99.0, 40.0, 7.25, 3.0]
LATIN = SECRET.encode() + b" in caf\xe9"

TEXTS = {
    "string": lambda binary: binary.cast(pa.binary()).view(pa.string()),
    "large string": lambda binary: binary.cast(pa.large_binary()).view(pa.large_string()),
    "string view": lambda binary: binary.cast(pa.binary_view()).view(pa.string_view()),
    "dictionary": lambda binary: binary.cast(pa.binary()).view(pa.string()).dictionary_encode(),
}


def table(cities, ages=None, kind="string"):
    ages = [50.0] * len(cities) if ages is None else ages
    return pa.table({"city": TEXTS[kind](pa.array(cities, pa.binary())), "age": pa.array(ages)})


def in_a_file(made, folder, **options):
    path = folder / "rows.parquet"
    pq.write_table(made, path, **options)
    return path


CONTAINERS = {
    "arrow": lambda made, folder: made,
    "arrow chunks": lambda made, folder: pa.concat_tables([made.slice(k, 1) for k in range(len(made))]),
    "parquet": lambda made, folder: in_a_file(made, folder),
    "parquet without dictionary": lambda made, folder: in_a_file(made, folder, use_dictionary=False),
    "pandas of arrow": lambda made, folder: pd.DataFrame(
        {name: pd.Series(pd.arrays.ArrowExtensionArray(made[name])) for name in made.column_names}
    ),
    "polars": lambda made, folder: pl.DataFrame(pl.from_arrow(made)),
    "a dictionary of arrow": lambda made, folder: {name: made[name] for name in made.column_names},
}


def total(rows, walk):
    walked = walk(rows, SCHEMA, block_rows=4)
    return exact_sum(walked, QUESTION.row_function(), QUESTION.plan(1.0, walked.facts).grid, 4)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_text_that_is_no_utf8_matches_no_level_and_is_not_told_of(walk, tmp_path, container, kind):
    if container == "polars" and kind == "dictionary":
        pytest.skip("Polars itself refuses such a dictionary, before we see it")

    def rows(odd):
        return CONTAINERS[container](table([*CITIES, odd], [*AGES, 60.0], kind), tmp_path)

    audit = vt.audit.escapes(
        lambda odd: total(rows(odd), walk), b"unknown", {"latin": LATIN, "bytes": b"\xff\x00\xfe", "none": None}
    )
    assert audit.escapes == ()


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_question_about_such_a_text_is_answered_by_every_part(tmp_path, container):
    data = vt.PrivateData(
        CONTAINERS[container](table([*CITIES, LATIN]), tmp_path),
        SCHEMA,
        name="x",
        n_rows_public=9,
        budget=vt.Budget(9, 1e-6),
    )
    for part in (data, *data.parts(3, name="thirds")):
        assert np.isfinite(part.ask(QUESTION, mu=0.5).value).all()


@given(st.lists(st.one_of(st.none(), st.binary(max_size=5), st.sampled_from([b"Aix", b"1", b"7.5"])), max_size=9), st.data())
@settings(max_examples=60, deadline=None)
def test_any_bytes_in_a_text_column_mean_the_same_alone_and_in_company(tmp_path_factory, cities, data):
    """In every container and type; also where the column is declared a number."""
    folder = tmp_path_factory.mktemp("any")
    schema = vt.Schema({"city": data.draw(st.sampled_from([vt.Categorical(["Aix", "1"]), vt.Numeric(0, 10)]))})
    alone = [schema.read({"city": [city]})[0, 0] for city in cities]
    for container, make in CONTAINERS.items():
        for kind in TEXTS:
            if container == "polars" and kind == "dictionary":
                continue
            made = table(cities, kind=kind)
            if container == "arrow chunks" and not cities:
                continue
            read = np.concatenate([np.empty((0, 1)), *open_rows(make(made, folder), schema).chunks(4)])
            assert np.array_equal(
                read[:, 0].view(np.uint64), np.array(alone, dtype=float).view(np.uint64)
            ) or np.array_equal(read[:, 0], alone, equal_nan=True)


ODD = vt.audit.odd_values(SECRET)


@pytest.mark.parametrize(
    "make", [lambda column: column, lambda column: pd.DataFrame(column, dtype=object)], ids=["list", "pandas"]
)
@pytest.mark.parametrize("name", SCHEMA)
def test_no_odd_value_is_heard_of_and_none_changes_another_row(walk, make, name):
    def rows(value):
        columns = {"city": ["Aix", "Bonn", "1", None], "age": [1.5, 99.0, 40.0, None]}
        columns[name][3] = value
        objects = {one: np.empty(4, dtype=object) for one in columns}
        for one, values in columns.items():
            objects[one][:] = values
        return make(objects)

    # With one column missing the last row does not count, whatever the other is.
    audit = vt.audit.escapes(lambda value: total(rows(value), walk), None, ODD)
    assert audit.escapes == ()


class Rude:
    """An object that raises wherever it is touched."""

    def __getattribute__(self, name):
        raise SystemExit(SECRET)

    def __hash__(self):
        raise SystemExit(SECRET)


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=4),
    st.text(alphabet="\ud800\udfff\x00", max_size=2),
    st.binary(max_size=4),
    st.complex_numbers(),
    st.datetimes(),
    st.decimals(),
    st.sampled_from(["an odd number", "a rude object"]),  # made in the test: a test library touches its values
    st.lists(st.integers(), max_size=2),
    st.sampled_from([pd.NA, pd.NaT, np.datetime64("NaT"), np.float16(3), np.array(3), np.array([1, 2]), "Aix", "7"]),
)


@given(
    st.lists(anything, max_size=7),
    st.sampled_from([vt.Categorical(["Aix", "7"]), vt.Categorical([7, 1.5]), vt.Numeric(0, 100)]),
)
@settings(max_examples=300, deadline=None)
def test_any_objects_in_a_column_mean_the_same_alone_and_in_company(values, column):
    made = {"an odd number": OddNumber(SECRET), "a rude object": Rude()}
    values = [made.get(value, value) if type(value) is str else value for value in values]
    schema = vt.Schema({"x": column})
    objects = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        objects[row] = value
    alone = [schema.read({"x": [value]})[0, 0] for value in values]
    frames = [{"x": values}, {"x": objects}, objects[:, None], pd.DataFrame({"x": pd.Series(objects, dtype=object)})]
    if not any(type(value) is Rude for value in values):  # Polars touches them before we do
        frames.append(pl.DataFrame({"x": pl.Series("x", values, dtype=pl.Object)}))
    for frame in frames:
        assert np.array_equal(schema.read(frame)[:, 0], alone, equal_nan=True)


numbers = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(2**53, 2**53 + 9))


@given(st.lists(numbers, min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_large_integers_are_rounded_alike_in_every_container(values):
    schema = vt.Schema({"x": vt.Numeric(-1e30, 1e30)})
    alone = [schema.read({"x": [value]})[0, 0] for value in values]
    column = pa.array(values, pa.int64())
    for frame in (
        pa.table({"x": column}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Int128)}),
        pd.DataFrame({"x": pd.array(values, dtype="Int64")}),
        pd.DataFrame({"x": pd.array(values, dtype=pd.ArrowDtype(pa.int64()))}),
        pa.table({"x": column.dictionary_encode()}),
        pa.table(
            {"x": pa.array([None if value is None else decimal.Decimal(value) for value in values], pa.decimal128(38, 4))}
        ),
        pa.table(
            {"x": pa.array([None if value is None else decimal.Decimal(value) for value in values], pa.decimal256(60, 4))}
        ),
    ):
        assert np.array_equal(schema.read(frame)[:, 0], alone, equal_nan=True)


def test_a_complex_value_leaves_the_other_rows_the_numbers_they_were():
    schema = vt.Schema({"x": vt.Numeric(0, 10)})
    for make in (np.array, lambda values: pd.Series(values), lambda values: list(values)):
        assert np.array_equal(schema.read({"x": make([1.5, 2.0, 1j])})[:, 0], [1.5, 2, np.nan], equal_nan=True)


def test_masked_values_are_missing():
    schema = vt.Schema({"x": vt.Numeric(0, 10)})
    assert np.array_equal(schema.read({"x": np.ma.array([1.0, 5.0], mask=[0, 1])})[:, 0], [1, np.nan], equal_nan=True)


def test_a_dtype_that_holds_no_numbers_is_told_of_without_values():
    schema, levels = vt.Schema({"x": vt.Numeric(0, 10)}), vt.Schema({"x": vt.Categorical([1, 2])})
    late, long = (pa.array([2**62], kind) for kind in (pa.timestamp("s"), pa.duration("s")))  # no date of Python's
    for column in (long, pa.array([[1]]), pa.array([{"a": 1}]), long.dictionary_encode(), pa.array([b"a"])):
        for rows in (pa.table({"x": column}), {"x": column}):
            with pytest.raises(SchemaError, match="column 'x' has dtype") as caught:
                schema.read(rows)
            assert str(2**62) not in str(caught.value)
    for column in (late, late.dictionary_encode()):
        for rows in (pa.table({"x": column}), {"x": column}):
            assert schema.read(rows).tolist() == [[10.0]]
            with pytest.raises(SchemaError, match=r"column 'x' has dtype.*a categorical column cannot hold") as caught:
                levels.read(rows)
            assert str(2**62) not in str(caught.value)
    with pytest.raises(SchemaError, match="Datetime"):
        levels.read(pd.DataFrame({"x": [datetime.datetime(2020, 1, 1)]}))


def test_dictionaries_with_odd_indices_are_missing_there():
    indices = pa.array([0, 7, None, 1], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["Aix", None]), safe=False)
    assert np.array_equal(
        vt.Schema({"x": vt.Categorical(["Aix"])}).read({"x": column})[:, 0], [0, np.nan, np.nan, np.nan], equal_nan=True
    )


# Files


def damaged(folder, rows=5000):
    path = in_a_file(table([b"Aix"] * rows, list(np.linspace(0, 90, rows))), folder, compression="snappy")
    content = bytearray(path.read_bytes())
    content[200 : len(content) // 2] = b"\xa5" * (len(content) // 2 - 200)
    path.write_bytes(content)
    return path


def test_a_damaged_page_is_told_of_in_a_sentence_of_ours_and_stays_on_the_bill(tmp_path):
    data = vt.PrivateData(damaged(tmp_path), SCHEMA, name="x", n_rows_public=5000, budget=vt.Budget(9, 1e-6))
    with pytest.raises(Unanswered, match=r"rows\.parquet cannot be read to its end") as caught:
        data.ask(QUESTION, mu=0.5)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert data.budget.spent_epsilon > 0


def test_a_file_written_anew_without_a_column_is_noticed_before_the_charge(tmp_path):
    path = in_a_file(table(CITIES), tmp_path)
    data = vt.PrivateData(path, SCHEMA, name="x", n_rows_public=9, budget=vt.Budget(9, 1e-6))
    pq.write_table(table(CITIES).drop_columns(["age"]), path)
    with pytest.raises(InvalidInput, match="'age'"):
        data.ask(QUESTION, mu=0.5)
    pq.write_table(table(CITIES).set_column(1, "age", pa.array([datetime.timedelta(1)] * 5)), path)
    with pytest.raises(InvalidInput, match="dtype"):
        data.ask(QUESTION, mu=0.5)
    assert data.budget.spent_epsilon == 0


# Texts and pictures


def test_texts_that_are_none_are_missing_and_change_no_other_text():
    words = vt.BagOfWords(["cafe", "plot"])
    column = pa.chunked_array([pa.array([b"a plot", LATIN, None], pa.binary()).view(pa.string())])
    for texts in (column, pd.Series(pd.arrays.ArrowExtensionArray(column)), ["a plot", LATIN, Rude()]):
        raw = words.schema().read(words.rows(texts))
        assert np.array_equal(raw, [[0, 1], [np.nan] * 2, [np.nan] * 2], equal_nan=True)


def test_a_picture_that_is_none_is_missing_and_changes_no_other():
    picture = vt.Picture((2, 2))
    good = [[1, 2], [3, 4]]
    for odd in ([[1, 2]], [[1, SECRET], [3, 4]], None, SECRET, Rude(), [1, [2]]):
        raw = picture.schema().read(picture.rows([good, odd, good]))
        assert np.array_equal(raw, [[1, 2, 3, 4], [np.nan] * 4, [1, 2, 3, 4]], equal_nan=True)
