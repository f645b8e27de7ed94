"""Bins come from the schema alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail import Categorical, Numeric, Schema
from vitrail.errors import InvalidInput, SchemaError
from vitrail.explain.marginals import MOST_BINS, marginals_bins, marginals_question
from vitrail.schema.bins import bins_of

SCHEMA = Schema(
    {
        "age": Numeric(17, 90, integer=True),
        "gain": Numeric(0, 99_999, integer=True),
        "weight": Numeric(0.0, 1.0),
        "sex": Categorical(["Female", "Male"]),
    }
)


def test_levels_are_their_own_bins() -> None:
    bins = bins_of("sex", SCHEMA["sex"], 20)
    assert bins.labels == ("Female", "Male")
    assert bins.edges is None
    assert bins.index(np.array([1.0, 0.0])).tolist() == [1, 0]


def test_few_whole_numbers_have_a_bin_each() -> None:
    bins = bins_of("age", SCHEMA["age"], 20)
    assert len(bins) == 74
    assert (bins.labels[0], bins.labels[-1]) == ("17", "90")
    assert bins.index(np.array([17.0, 18.0, 90.0])).tolist() == [0, 1, 73]
    assert bins.midpoints[0] == 17


def test_many_whole_numbers_are_cut_between_them() -> None:
    bins = bins_of("gain", SCHEMA["gain"], 20)
    assert len(bins) == 20
    assert bins.labels[1] == "5000 to 9999"
    assert bins.index(np.array([4999.0, 5000.0, 99_999.0])).tolist() == [0, 1, 19]


def test_a_last_bin_may_be_shorter() -> None:
    bins = bins_of("x", Numeric(0, 102, integer=True), 20)
    assert bins.labels[-1] == "102"
    assert bins.edges is not None
    assert np.diff(bins.edges).tolist() == [6.0] * 17 + [1.0]


def test_a_bin_per_value_when_as_many_bins_as_values_are_asked_for() -> None:
    assert len(bins_of("x", Numeric(1, 150, integer=True), 150)) == 150


def test_numbers_are_cut_into_equal_intervals() -> None:
    bins = bins_of("weight", SCHEMA["weight"], 4)
    assert bins.edges == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert bins.index(np.array([0.0, 0.25, 0.999, 1.0])).tolist() == [0, 1, 3, 3]


@given(
    low=st.integers(-(2**53), 2**53 - 1),
    width=st.integers(1, 2**53),
    bins=st.integers(1, 300),
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20),
)
def test_every_value_has_exactly_one_bin(low: int, width: int, bins: int, values: list[float]) -> None:
    made = bins_of("x", Numeric(low, min(low + width, 2**53), integer=True), bins)
    assert 1 <= len(made) <= max(100, bins)
    index = made.index(np.array(values))
    assert ((index >= 0) & (index < len(made))).all()


@given(low=st.floats(-1e300, 1e300), width=st.floats(1e-3, 1e300), bins=st.integers(1, 50), share=st.floats(0, 1))
def test_a_number_lies_between_the_edges_of_its_bin(low: float, width: float, bins: int, share: float) -> None:
    column = Numeric(low, low + width) if low < low + width else Numeric(0, 1)
    made = bins_of("x", column, bins)
    assert made.edges is not None
    value = column.low + share * (column.high - column.low)
    (index,) = made.index(np.array([value]))
    assert made.edges[index] <= value or index == 0
    assert value < made.edges[index + 1] or index == len(made) - 1


def test_the_question_has_one_name_for_one_request() -> None:
    assert marginals_question(SCHEMA).key == marginals_question(SCHEMA, list(SCHEMA), 20).key
    others = [marginals_question(SCHEMA, ["age"]), marginals_question(SCHEMA, ["gain"]), marginals_question(SCHEMA, bins=21)]
    assert len({marginals_question(SCHEMA).key, *(other.key for other in others)}) == 4


@pytest.mark.parametrize(
    ("columns", "bins", "error", "sentence"),
    [
        (["agee"], 20, SchemaError, "column 'agee' is not in the schema.*Did you mean 'age'"),
        ([], 20, InvalidInput, "columns is empty"),
        ("age", 20, InvalidInput, r"give a list of names, such as \['age'\]"),
        (["age", "age"], 20, InvalidInput, "names 'age' twice"),
        (None, 0, InvalidInput, "bins is 0; it must be a whole number from 1"),
        (None, 2.5, InvalidInput, r"bins is 2\.5"),
        (None, True, InvalidInput, "bins is True"),
        (None, MOST_BINS, InvalidInput, "name fewer columns"),
    ],
)
def test_a_bad_request_is_named(columns: object, bins: object, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        marginals_bins(SCHEMA, columns, bins)  # type: ignore[arg-type]
