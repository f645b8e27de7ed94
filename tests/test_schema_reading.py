"""Rows from frames: silently where they are private, strictly where they are public."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.errors import SchemaError
from vitrail.schema import Categorical, Numeric, Schema

SCHEMA = Schema(
    {
        "age": Numeric(17, 90, integer=True),
        "hours": Numeric(0, 100),
        "sex": Categorical(["Female", "Male"]),
        "group": Categorical([1, 2, 3]),
        "flag": Categorical([False, True]),
    }
)
COLUMNS = {
    "age": [17, 39, None, 90],
    "hours": [0.5, None, 40.0, 100.0],
    "sex": ["Female", None, "Male", "Female"],
    "group": [1, 3, None, 2],
    "flag": [True, False, None, True],
}
RAW = np.array(
    [[17, 0.5, 0, 0, 1], [39, np.nan, np.nan, 2, 0], [np.nan, 40, 1, np.nan, np.nan], [90, 100, 0, 1, 1]], dtype=np.float64
)
LINES = pd.DataFrame(COLUMNS)
FORMS = {
    "dictionary of lists": COLUMNS,
    "dictionary of arrays": {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
    "pandas": LINES,
    "pandas objects": LINES.astype(object),
    "pandas nullable": LINES.convert_dtypes(),
    "pandas arrow": LINES.convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": LINES.astype({"sex": "category", "group": "category", "flag": "category", "age": "category"}),
    "pandas texts": LINES.astype(object).map(lambda v: v if pd.isna(v) else str(v)),
    "polars": pl.DataFrame(COLUMNS),
    "polars categories": pl.DataFrame(COLUMNS).with_columns(pl.col("sex").cast(pl.Categorical)),
    "polars enum": pl.DataFrame(COLUMNS).with_columns(pl.col("sex").cast(pl.Enum(["Male", "Female"]))),
    "polars decimals": pl.DataFrame(COLUMNS).with_columns(pl.col("hours").cast(pl.Decimal(10, 2))),
    "arrow": pa.table(COLUMNS),
    "arrow chunks": pa.concat_tables([pa.table(COLUMNS).slice(0, 3), pa.table(COLUMNS).slice(3)]),
    "arrow dictionaries": pa.concat_tables(
        [pa.table({**COLUMNS, "sex": pa.array(COLUMNS["sex"]).dictionary_encode()}).slice(k, 1) for k in range(4)]
    ),
    "objects": np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object),
    "structured": np.array(
        [tuple(np.nan if v is None else v for v in row) for row in zip(*COLUMNS.values(), strict=True)],
        dtype=[("age", float), ("hours", float), ("sex", "U9"), ("group", float), ("flag", object)],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_rows_reads_the_same(form):
    assert np.array_equal(SCHEMA.read(FORMS[form]), RAW, equal_nan=True)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_forms_of_complete_rows_are_points(form):
    rows = FORMS[form]
    if isinstance(rows, dict):
        first = {name: values[3:] for name, values in rows.items()}
    else:
        first = rows.iloc[3:] if isinstance(rows, pd.DataFrame) else rows[3:]
    assert np.array_equal(SCHEMA.read_points(first), RAW[3:])


def test_an_array_of_numbers():
    schema = SCHEMA.without("sex", "flag")
    rows = np.array([[17.4, 0.5, 1], [1000, np.inf, 4], [-3, np.nan, 2.5]])
    expected = [[17, 0.5, 0], [90, np.nan, np.nan], [17, np.nan, np.nan]]
    for dtype in (np.float64, np.float32, np.float16):
        assert np.array_equal(schema.read(rows.astype(dtype)), expected, equal_nan=True)
    assert schema.read(np.array([[20, 5, 3]], dtype=np.uint8)).tolist() == [[20, 5, 2]]
    assert schema.read(rows)[:, :].flags.c_contiguous


def test_the_callers_array_is_left_alone():
    rows = np.array([[1000.0, 5.0]])
    SCHEMA.without("sex", "flag", "group").read(rows)
    frame = pd.DataFrame(rows, columns=["age", "hours"])
    SCHEMA.without("sex", "flag", "group").read(frame)
    assert rows.tolist() == [[1000.0, 5.0]]


def test_values_are_clipped_rounded_or_missing():
    schema = Schema({"k": Numeric(0, 10, integer=True), "x": Numeric(0, 10)})
    values = [
        3.6,
        -1,
        11,
        np.inf,
        -np.inf,
        "7",
        " 7.5 ",
        "seven",
        None,
        10**400,
        b"2",
        decimal.Decimal("4"),
        True,
        1j,
        [3],
        {},
    ]
    raw = schema.read({"k": values, "x": values})
    nan = np.nan
    assert np.array_equal(raw[:, 0], [4, 0, 10, nan, nan, 7, 8, nan, nan, nan, 2, 4, 1, nan, nan, nan], equal_nan=True)
    assert np.array_equal(raw[:, 1], [3.6, 0, 10, nan, nan, 7, 7.5, nan, nan, nan, 2, 4, 1, nan, nan, nan], equal_nan=True)


@pytest.mark.parametrize(
    ("levels", "values", "codes"),
    [
        ([1, 2], [1, 1.0, "1", "1.0", np.int8(1), True, 3, "one", " 2", b"2"], [0, 0, 0, 0, 0, 0, None, None, 1, 1]),
        (["1", "2"], [1, 1.0, "1", "1.0", np.float32(2), "01"], [0, 0, 0, None, 1, None]),
        (["1.0", "x"], [1, 1.0, "1.0", "1"], [0, 0, 0, None]),
        ([False, True], [True, np.bool_(False), "True", "False", 1, 0.0], [1, 0, 1, 0, 1, 0]),
        (["False", "True"], [True, np.bool_(False), "True", 1], [1, 0, 1, None]),
        (["a", "b"], ["a", np.str_("b"), "A", "a ", b"b", 0, None], [0, 1, None, None, 1, None, None]),
        ([0.5, "half"], [0.5, "half", "0.5", ".5"], [0, 1, 0, 0]),
        ([-0.0, 1], [0, 0.0, -0.0], [0, 0, 0]),
    ],
)
def test_which_values_match_which_levels(levels, values, codes):
    raw = Schema({"c": Categorical(levels)}).read({"c": values})[:, 0]
    assert [None if np.isnan(code) else int(code) for code in raw] == codes


garbage = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**300, 10**310),
    st.floats(),
    st.text(max_size=6),
    st.text(alphabet="\ud800\udfff\x00", max_size=2),
    st.binary(max_size=4),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(),
    st.decimals(),
    st.fractions(),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from(
        [pd.NA, pd.NaT, np.nan, np.datetime64("2020-01-01"), np.float32("inf"), object(), int, np.array(3), "Male", "2"]
    ),
)


class Hostile(float):
    """A number that refuses to be one."""

    def __float__(self):
        raise RuntimeError("private")

    def __hash__(self):
        raise RuntimeError("private")

    def __eq__(self, other):
        raise RuntimeError("private")


@given(st.lists(st.tuples(*[garbage] * 5), max_size=8))
@settings(max_examples=300)
def test_no_private_value_raises_or_warns_and_none_changes_another_row(rows):
    def columns(of):
        return {name: [row[j] for row in of] for j, name in enumerate(SCHEMA)}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raw = SCHEMA.read(columns(rows))
        assert raw.shape == (len(rows), 5)
        features, _ = SCHEMA.features(raw)
        assert ((features >= 0) & (features <= 1)).all()
        # Each library decides on a dtype from all rows together; the meaning of a row must not follow.
        for k in range(len(rows)):
            assert np.array_equal(SCHEMA.read(columns(rows[k : k + 1])), raw[k : k + 1], equal_nan=True)
        objects = {}
        for name, values in columns(rows).items():
            objects[name] = np.empty(len(values), dtype=object)
            for k, value in enumerate(values):
                objects[name][k] = value
        frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in objects.items()})
        assert np.array_equal(SCHEMA.read(objects), raw, equal_nan=True)
        assert np.array_equal(SCHEMA.read(frame), raw, equal_nan=True)


def test_a_hostile_value_is_missing():
    raw = SCHEMA.read({name: [Hostile(2), value] for name, value in zip(SCHEMA, [20, 3, "Male", 2, True], strict=True)})
    assert np.isnan(raw[0]).all()
    assert raw[1].tolist() == [20, 3, 1, 1, 1]


def test_one_odd_line_in_a_file_leaves_the_other_lines_as_they_were(tmp_path):
    # pandas reads a whole column as text because of one value; the other rows must not notice.
    lines = "age,hours,sex,group,flag\n39,12.5,Male,2,True\n41,7,Female,1,False\n"
    clean, odd = tmp_path / "clean.csv", tmp_path / "odd.csv"
    clean.write_text(lines)
    odd.write_text(lines + "?,?,?,?,?\n")
    read = SCHEMA.read(pd.read_csv(odd))
    assert pd.read_csv(odd)["age"].dtype != pd.read_csv(clean)["age"].dtype
    assert np.array_equal(read[:2], SCHEMA.read(pd.read_csv(clean)))
    assert np.isnan(read[2]).all()


def test_other_columns_are_ignored_in_rows_and_refused_in_points():
    rows = {**COLUMNS, "name": ["x"] * 4}
    assert np.array_equal(SCHEMA.read(rows), RAW, equal_nan=True)
    with pytest.raises(SchemaError, match="column 'name' is not in the schema"):
        SCHEMA.read_points(rows)


DATES = pd.DataFrame({**COLUMNS, "sex": pd.to_datetime(["2020-01-01"] * 4)})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"age": [1]}, "column 'hours' of the schema is missing; given are 'age'"),
        (LINES.rename(columns={"hours": "hour"}), "Did you mean 'hour'"),
        (np.zeros((4, 3)), "the array has 3 columns; it must be two-dimensional with 5 columns .* age, hours"),
        (np.zeros(5), "the array has 1 dimension; "),
        (np.zeros((4, 5, 1)), "3 dimensions"),
        (np.zeros((4, 5)), "levels of sex are texts"),
        (np.zeros((2, 2), dtype=[("age", float)]), "structured array has 2 dimensions"),
        ({**COLUMNS, "age": [1]}, "different lengths"),
        ({**COLUMNS, "age": np.zeros((4, 2))}, "2 dimensions"),
        ({**COLUMNS, "age": 3}, "a column is given as int"),
        (DATES, "column 'sex' has dtype Datetime.*which a categorical column cannot hold"),
        (pl.from_pandas(DATES), "'sex' has dtype Datetime"),
        (DATES.assign(hours=pd.Timedelta(days=1), sex="Male"), "'hours' has dtype Duration.*between 0.0 and 100.0"),
        (pa.table(pl.DataFrame(COLUMNS).with_columns(age=pl.lit([1])).to_arrow()), "'age' has dtype List"),
        ({**COLUMNS, "sex": np.array(["2020-01-01"] * 4, dtype="M8[D]")}, "'sex' has dtype datetime64"),
        ({**COLUMNS, "age": np.array(["2020"] * 4, dtype="M8[Y]")}, "'age' has dtype datetime64"),
        (pl.DataFrame(COLUMNS).lazy(), "lazy"),
        (LINES.iloc[:, [0, 0, 1]], "cannot be told apart"),
        (17, "rows are given as int"),
        (LINES["age"], "rows are given as Series"),
        ("rows.csv", "rows are given as str"),
    ],
)
def test_structure_that_does_not_fit_is_an_error(rows, says):
    with pytest.raises(SchemaError, match=says):
        SCHEMA.read(rows)


POINT = {"age": 39, "hours": 40.5, "sex": "Male", "group": 2, "flag": True}


@pytest.mark.parametrize(
    "points",
    [
        POINT,
        [POINT],
        (POINT,),
        {name: [value] for name, value in POINT.items()},
        {name: np.asarray(value) for name, value in POINT.items()},
        dict(reversed(POINT.items())),
        pd.Series(POINT),
        pd.DataFrame([POINT]).iloc[0],
        pd.DataFrame([POINT]),
        pl.DataFrame([POINT]),
        np.array(list(POINT.values()), dtype=object),
        {name: str(value) for name, value in POINT.items()},
    ],
)
def test_every_form_of_a_point(points):
    assert SCHEMA.read_points(points).tolist() == [[39, 40.5, 1, 1, 1]]


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ({**POINT, "age": np.nan}, "column 'age' is nan in row 0; it must be a whole number between 17 and 90"),
        ({**POINT, "age": None}, "column 'age' is None in row 0"),
        ({**POINT, "age": 91}, "column 'age' is 91 in row 0"),
        ({**POINT, "age": 39.5}, "column 'age' is 39.5 in row 0; it must be a whole number"),
        ({**POINT, "age": "old"}, "column 'age' is 'old' in row 0"),
        ({**POINT, "hours": np.inf}, "column 'hours' is inf in row 0"),
        ({**POINT, "hours": -0.001}, "a number between 0.0 and 100.0"),
        (
            {**POINT, "sex": "Mael"},
            "column 'sex' is 'Mael' in row 0; it must be one of 'Female', 'Male'. Did you mean 'Male'",
        ),
        ({**POINT, "group": 7}, "column 'group' is 7 in row 0; it must be one of 1, 2, 3"),
        ({**POINT, "wage": 7}, "column 'wage' is not in the schema"),
        ({**{k: v for k, v in POINT.items() if k != "age"}, "agee": 3}, "'agee' is not in the schema.* Did you mean 'age'"),
        ({k: v for k, v in POINT.items() if k != "age"}, "column 'age' of the schema is missing"),
        ([POINT, {**POINT, "hours": 101}], "column 'hours' is 101 in row 1"),
        ([POINT, {"age": 3}], "row 1: column 'hours' of the schema is missing"),
        ([POINT, 3], "row 1 of the list of points is int"),
        ({name: [value, value] for name, value in {**POINT, "hours": 101.5}.items()}, "'hours' is 101.5 in row 0"),
        (pd.DataFrame([POINT, {**POINT, "age": 16}]), "column 'age' is 16 in row 1"),
        (np.array([1.0, 2.0, 3.0]), "the array has 3 columns"),
        ({**POINT, "hours": [1, 2]}, "a column is given as"),
        ({**POINT, "hours": datetime.date(2020, 1, 1)}, r"'hours' is datetime.date\(2020, 1, 1\) in row 0"),
        (17, "rows are given as int"),
    ],
)
def test_a_point_that_does_not_fit_is_an_error(points, says):
    with pytest.raises(SchemaError, match=says):
        SCHEMA.read_points(points)


def test_infer():
    frame = {
        "age": [20, 60, 30],
        "score": [0.5, None, 2.5],
        "sex": ["Male", None, "Female"],
        "flag": [True, True, None],
    }
    expected = Schema(
        {
            "age": Numeric(20, 60, integer=True),
            "score": Numeric(0.5, 2.5),
            "sex": Categorical(["Female", "Male"]),
            "flag": Categorical([False, True]),
        }
    )
    for form in (pd.DataFrame(frame), pl.DataFrame(frame), pa.table(frame), pd.DataFrame(frame).convert_dtypes()):
        assert Schema.infer(form).without("flag") == expected.without("flag")
    assert Schema.infer(pl.DataFrame(frame)) == expected
    assert Schema.infer({"c": pd.Series(["b", "a"]).astype(pd.CategoricalDtype(["b", "a", "z"]))})["c"] == Categorical(
        ["a", "b", "z"]
    )
    assert Schema.infer({"k": pd.Series([3, 1], dtype="category")})["k"] == Categorical([1, 3])
    assert Schema.infer.__doc__.split("\n")[0].count("PUBLIC") == 1


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"id": [str(k) for k in range(51)]}, "51 levels, more than max_levels=50"),
        ({"x": [1, 1]}, "only the value 1"),
        ({"x": np.array([np.nan])}, "no value"),
        ({"x": [None]}, "no value"),
        ({"x": ["a", 1]}, "mixes texts and numbers"),
        ({"x": ["a", (1, 2)]}, "holds \\(1, 2\\)"),
        (DATES, "'sex' has dtype Datetime"),
        (np.zeros((3, 2)), "without column names"),
        ({}, "at least one column"),
    ],
)
def test_infer_refuses_what_it_cannot_declare(frame, says):
    with pytest.raises(SchemaError, match=says):
        Schema.infer(frame)
