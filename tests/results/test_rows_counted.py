"""How many rows count: said by every release that counts them, warned of where it contradicts, used as the denominator."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vitrail as vt
from error_rates import normal_bound
from vitrail.errors import RowCountWarning
from vitrail.results.row_count import RowCount
from vitrail.solve.sampling import count_variance, sampling_variance

N = 3000
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100, integer=True, missing=40),
        "debt": vt.Numeric(0, 50, missing=-9, codes=(-9, -8)),
        "job": vt.Categorical(["yes", "no", "?"], missing="?"),
        "sex": vt.Categorical(["f", "m"]),
    }
)


def rows_of(n=N):
    """A tenth has no sex and does not count; others have no age (one in six), no job (five) or no debt (four)."""
    draw = np.random.default_rng(0)
    missing = {"age": 6, "debt": 4, "job": 5, "sex": 10}
    full = {"age": draw.integers(0, 100, n).astype(float), "debt": draw.uniform(0, 50, n)}
    full |= {"job": draw.choice(["yes", "no"], n), "sex": draw.choice(["f", "m"], n)}
    rows = {name: values.astype(object) for name, values in full.items()}
    for name, every in missing.items():
        rows[name][draw.random(n) < 1 / every] = None
    return rows


def private(declared, rows=None, schema=SCHEMA):
    given = rows_of() if rows is None else rows
    budget = vt.Budget(99, 1e-6)
    return vt.PrivateData(given, schema, name="people", n_rows_public=declared, budget=budget, ledger="memory")


@pytest.mark.parametrize("explain", [vt.marginals, vt.private_rows])
def test_a_wrong_declared_count_is_said_and_warned_of_and_nothing_else_is(explain):
    everybody = {name: values[[value is not None for value in rows_of()["sex"]]] for name, values in rows_of().items()}
    n = len(everybody["sex"])
    with pytest.warns(RowCountWarning, match="there are more rows than were declared") as caught:
        result = explain(private(n // 2, everybody), mu=5.0)
    assert caught[0].filename == __file__
    rows = result.rows_counted
    assert rows.declared == n // 2
    assert abs(rows.counted - n) < normal_bound() * rows.std
    assert rows.std < n / 50
    assert any("contradict" in sentence for sentence in result.sentences)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = explain(private(n, everybody), mu=5.0)  # 4 standard deviations and one per cent: 1 % here is 54 of them
    assert not right.rows_counted.contradicts
    assert right.rows_counted.sentence in right.sentences


def test_quotes_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vt.Shapley(private(100), vt.Model(lambda x: x[:, 0], range=(0, 1), inputs="features")).quote(
            {"age": 3, "debt": 3.0, "job": "no", "sex": "f"}, epsilon=1
        )


def test_a_pane_knows_its_rows():
    model = vt.Model(lambda x: x[:, 0], range=(0, 1), name="age")
    with pytest.warns(RowCountWarning, match="cannot be read by the schema"):
        pane = vt.release(private(N), model, epsilon=50.0)
    counted = N - sum(value is None for value in rows_of()["sex"])
    assert abs(pane.rows_counted.counted - counted) < normal_bound() * pane.rows_counted.std
    assert pane.missing_rows()[0].startswith("Rows that do not count: ")
    assert len(pane.missing_rows()) == 4


def numbers(sentence):
    """The count and its noise, as the sentence says them."""
    count, noise = sentence.split(" ± ")[:2]
    return float(count.split(" ")[-1].replace(",", "")), float(noise.split(" ")[0].replace(",", ""))


@pytest.mark.parametrize("explain", [vt.marginals, vt.private_rows])
@pytest.mark.filterwarnings("ignore::vitrail.errors.RowCountWarning")
def test_what_missing_values_touched_is_said_with_numbers(explain):
    rows = rows_of()
    result = explain(private(N), mu=5.0)
    told = result.missing_rows(SCHEMA) if explain is vt.marginals else result.missing_rows()
    assert len(told) == 4
    counts = np.array([value is not None for value in rows["sex"]])
    absent = {name: counts & np.array([value is None for value in rows[name]]) for name in rows}
    sigma = (result if explain is vt.marginals else result.marginals).sigma
    exact = [N - counts.sum(), None, absent["debt"].sum(), absent["job"].sum()]
    for sentence, count, std in zip(told, exact, [result.rows_counted.std, *[sigma] * 3], strict=True):
        said, half_width = numbers(sentence)
        assert half_width == pytest.approx(1.96 * std, abs=0.6)
        if count is not None:
            assert abs(said - count) < normal_bound(of=3) * std + 1
    assert "'sex' takes the whole row out" in told[0]
    assert "missing in 'age' are held as 40: at most" in told[1]
    assert numbers(told[1])[0] > absent["age"].sum() - normal_bound() * sigma - 1
    assert "missing in 'debt' are held as -9" in told[2]
    assert "missing or undeclared in 'job' are held as '?'" in told[3]


@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6), sigma=st.floats(1e-3, 1e3), rows=st.integers(0, 10**6))
def test_the_weights_of_partitions_are_unbiased_and_best(sizes, sigma, rows):
    """Without noise the count is exact; its noise is never more than that of the partition of the fewest cells."""
    counts = [np.full(size, rows / size) for size in sizes]
    found = RowCount.of_partitions(counts, sigma, rows)
    assert found.counted == pytest.approx(rows, rel=1e-9)
    assert found.std <= sigma * math.sqrt(min(sizes)) * (1 + 1e-12)
    assert not found.contradicts


def test_a_count_that_drowns_is_not_divided_by():
    assert RowCount(10.0, 3.0, 50).denominator == 50
    assert RowCount(13.0, 3.0, 50).denominator == 13.0
    assert RowCount(0.0, 0.0, 0).denominator == 1


def test_the_variance_of_a_poisson_sample():
    draw = np.random.default_rng(0)
    values, rate = draw.normal(2, 1, 500), 0.3
    taken = draw.random((40_000, 500)) < rate
    sums, counts = taken @ values / rate, taken.sum(axis=1) / rate
    assert sums.var() / 500**2 == pytest.approx(float(sampling_variance(rate, (values**2).mean(), 500)), rel=0.05)
    assert counts.var() == pytest.approx(count_variance(rate, 500), rel=0.05)
    assert (sums / counts).var() == pytest.approx(float(sampling_variance(rate, values.var(), 500)), rel=0.05)
