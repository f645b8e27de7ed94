"""What a row contributes to the marginals, and that the stated bounds are those."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vitrail as vt
from vitrail.explain.marginals import marginals_bins, marginals_question
from vitrail.vault import rehearse

COLUMNS = {
    "age": vt.Numeric(0, 9, integer=True),
    "weight": vt.Numeric(-1.0, 1.0),
    "sex": vt.Categorical(["Female", "Male"]),
    "pay": vt.Numeric(0, 1000, integer=True),
    "job": vt.Categorical(list("abcde")),
}


def schema_of(d: int) -> vt.Schema:
    return vt.Schema(dict(list(COLUMNS.items())[:d]))


def contributions(schema: vt.Schema, rows: dict[str, list[object]]) -> np.ndarray:
    """What each row adds on its own, read off a rehearsal with hardly any noise."""
    question = marginals_question(schema, bins=7)
    found = []
    for i in range(len(next(iter(rows.values())))):
        row = {name: values[i : i + 1] for name, values in rows.items()}
        found.append(rehearse(question, row, schema, mu=100.0, n_rows_public=1, draws=1)[0])
    noisy = np.array(found)
    assert np.abs(noisy - np.rint(noisy)).max() < 0.3  # noise of at most sqrt(5)/100
    return np.rint(noisy)


rows_of_five = st.fixed_dictionaries(
    {
        "age": st.lists(st.integers(-5, 20), min_size=2, max_size=2),
        "weight": st.lists(st.floats(allow_nan=False), min_size=2, max_size=2),
        "sex": st.lists(st.sampled_from(["Female", "Male"]), min_size=2, max_size=2),
        "pay": st.lists(st.integers(-5, 2000), min_size=2, max_size=2),
        "job": st.lists(st.sampled_from(list("abcde")), min_size=2, max_size=2),
    }
)


@given(rows=rows_of_five)
def test_a_row_has_norm_root_d_and_two_are_at_most_root_2d_apart(rows: dict[str, list[object]]) -> None:
    first, second = contributions(schema_of(5), rows)
    assert set(np.unique(first)) <= {0.0, 1.0}
    counts = math.isfinite(rows["weight"][0])  # type: ignore[arg-type]
    assert first.sum() == (5 if counts else 0)  # d ones: the squared norm is d; an infinite value is a missing one
    assert ((first - second) ** 2).sum() <= 10


@pytest.mark.parametrize("d", range(1, 6))
def test_the_bounds_hold_exactly_and_are_tight(d: int) -> None:
    question = marginals_question(schema_of(d))
    for neighbours, square in (("add-remove", d), ("replace-one", 2 * d)):
        data = vt.PrivateData(
            {name: [] for name in schema_of(d)},
            schema_of(d),
            name="nobody",
            n_rows_public=1,
            budget=vt.Budget(9, 1e-6),
            neighbours=neighbours,
            ledger="memory",
        )
        sigma = data.ask(question, mu=1.0).sigma
        assert sigma is not None
        assert Fraction(sigma) ** 2 >= square
        assert sigma == pytest.approx(square**0.5, rel=1e-14)


def test_rows_are_counted_whole_not_clipped() -> None:
    """With three columns the float root of 3 is too small: clipping would shave a little off each of many rows."""
    schema = schema_of(3)
    n = 50_000
    rows = {"age": np.full(n, 3), "weight": np.full(n, 0.5), "sex": np.full(n, "Male")}
    counted = rehearse(marginals_question(schema), rows, schema, mu=100.0, n_rows_public=n, draws=1, block_rows=4096)[0]
    assert np.abs(counted[counted > n / 2] - n).max() < 0.3


def test_a_row_that_lacks_a_value_counts_in_no_column() -> None:
    schema = schema_of(3)
    rows = {"age": [3, 3], "weight": [0.5, None], "sex": ["Male", "Male"]}
    counted = rehearse(marginals_question(schema), rows, schema, mu=100.0, n_rows_public=2, draws=1)[0]
    assert np.rint(counted).sum() == 3


@pytest.mark.parametrize(("neighbours", "square"), [("add-remove", 3), ("replace-one", 6)])
def test_the_noise_is_what_the_neighbours_need(neighbours: str, square: int) -> None:
    data = vt.PrivateData(
        {"age": [], "weight": [], "sex": []},
        schema_of(3),
        name="nobody",
        n_rows_public=10,
        budget=vt.Budget(1, 1e-6),
        neighbours=neighbours,
    )
    quote = data.quote(marginals_question(data.schema), mu=0.1)
    assert quote.sigma is not None
    least = square**0.5 / 0.1
    assert least <= quote.sigma < 1.01 * least  # replace-one: the vault adds what rounding to its grid can move two rows
    assert quote.cost.mu <= 0.1 * (1 + 1e-12)


def test_the_counts_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    schema = schema_of(5)
    n = 3000
    rows = {
        "age": rng.integers(0, 10, n),
        "weight": rng.uniform(-1, 1, n),
        "sex": rng.choice(["Female", "Male"], n),
        "pay": rng.integers(0, 1001, n),
        "job": rng.choice(list("abcde"), n),
    }
    counted = np.rint(
        rehearse(marginals_question(schema), rows, schema, mu=100.0, n_rows_public=n, draws=1, block_rows=256)[0]
    )
    start = 0
    for bins in marginals_bins(schema):
        if bins.edges is None:
            expected = [int((rows[bins.name] == label).sum()) for label in bins.labels]
        else:
            expected = np.histogram(rows[bins.name], bins.edges)[0].tolist()
        assert counted[start : start + len(bins)].tolist() == expected
        start += len(bins)
    assert start == len(counted)
