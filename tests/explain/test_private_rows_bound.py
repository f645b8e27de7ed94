"""What a row contributes to the questions of private rows, that nobody is clipped, and that the promise holds."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.explain.marginals import histogram_question
from vitrail.explain.private_rows import COUNTS, choosing_question, stars_of, tables_question
from vitrail.solve.rows.histograms import fine_bins, groups_of
from vitrail.vault import rehearse

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 9, integer=True),
        "weight": vt.Numeric(-1.0, 1.0),
        "sex": vt.Categorical(["Female", "Male"]),
        "pay": vt.Numeric(0, 1000, integer=True),
        "job": vt.Categorical(list("abcde")),
    }
)
BINS = tuple(fine_bins(name, column, 8) for name, column in SCHEMA.items())
GROUPS = [groups_of(np.full(len(one), 1 / len(one)), ordered=one.edges is not None, most=4) for one in BINS]
PAIRS = list(combinations(range(5), 2))

some_rows = st.fixed_dictionaries(
    {
        "age": st.lists(st.integers(-5, 20), min_size=2, max_size=2),
        "weight": st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
        "sex": st.lists(st.sampled_from(["Female", "Male"]), min_size=2, max_size=2),
        "pay": st.lists(st.integers(-5, 2000), min_size=2, max_size=2),
        "job": st.lists(st.sampled_from(list("abcde")), min_size=2, max_size=2),
    }
)


TABLES = tables_question(BINS, GROUPS, PAIRS)
CHOOSING = choosing_question(BINS, GROUPS)
ROW: dict[str, list[object]] = {"age": [3], "weight": [0.5], "sex": ["Male"], "pay": [7], "job": ["c"]}
NOBODY: dict[str, list[object]] = {name: [] for name in ROW}


def alone(question: object, rows: dict[str, list[object]], row: int) -> np.ndarray:
    """What one row contributes: noise of a thousandth."""
    one = {name: values[row : row + 1] for name, values in rows.items()}
    return rehearse(question, one, SCHEMA, mu=1e4, n_rows_public=1, draws=1)[0]  # type: ignore[arg-type]


def gram_norm(gram: np.ndarray) -> float:
    """Off the diagonal every number counts twice."""
    matrix = np.zeros((CHOOSING.size, CHOOSING.size))
    matrix[np.triu_indices(CHOOSING.size)] = gram
    return float(np.sqrt(2 * (matrix**2).sum() - (np.diag(matrix) ** 2).sum()))


@settings(max_examples=25, deadline=None)
@given(rows=some_rows)
def test_a_row_has_one_bin_of_every_column_and_contrasts_of_one_length(rows: dict[str, list[object]]) -> None:
    counts = histogram_question(BINS, COUNTS)
    first, second = np.rint(alone(counts, rows, 0)), np.rint(alone(counts, rows, 1))
    assert set(np.unique(first)) <= {0.0, 1.0}
    assert first.sum() == 5  # so the squared norm is exactly that
    assert ((first - second) ** 2).sum() <= 10
    sizes = [int(group.max()) + 1 for group in GROUPS]
    squares = [1 - 1 / size for size in sizes]
    tables = math.sqrt(sum(squares[i] * squares[j] for i, j in PAIRS))
    for row in (0, 1):
        assert np.linalg.norm(alone(TABLES, rows, row)) == pytest.approx(tables, rel=2e-2)
        assert gram_norm(alone(CHOOSING, rows, row)) == pytest.approx(sum(squares), rel=2e-2)
    assert TABLES.l2_bound == pytest.approx(tables, rel=1e-4)  # as large as it must be, and hardly larger
    assert CHOOSING.l2_bound == pytest.approx(sum(squares), rel=1e-4)


@pytest.mark.parametrize("pairs", [PAIRS, [(0, 1)], [(0, 1), (0, 2), (3, 4)]])
def test_the_stated_bounds_hold_exactly(pairs: list[tuple[int, int]]) -> None:
    question = tables_question(BINS, GROUPS, pairs)
    squares = [Fraction(int(group.max()), int(group.max()) + 1) for group in GROUPS]
    assert Fraction(question.l2_bound) ** 2 >= sum(squares[i] * squares[j] for i, j in pairs)
    assert sum(len(seconds) for _, seconds in stars_of(pairs)) == len(pairs)
    assert Fraction(CHOOSING.l2_bound) >= sum(squares)
    assert len(histogram_question(BINS, COUNTS).sizes) == 5  # its price is that of five partitions: tests/vault


def test_rows_are_counted_whole_not_clipped() -> None:
    n = 20_000
    rows = {name: values * n for name, values in ROW.items()}
    for question in (histogram_question(BINS, COUNTS), TABLES, CHOOSING):
        counted = rehearse(question, rows, SCHEMA, mu=1e4, n_rows_public=n, draws=1, block_rows=4096)[0]
        assert np.abs(counted - n * alone(question, ROW, 0)).max() < n * 1e-2


def worst_direction(question: object) -> np.ndarray:
    """Along which two neighbours are told apart best: what the row adds, over the variance of the noise there."""
    added = alone(question, ROW, 0)
    if question is CHOOSING:
        first, second = np.triu_indices(CHOOSING.size)
        added = added * np.where(first == second, 1, 2)
    return added


@pytest.mark.parametrize(
    "question", [histogram_question(BINS, COUNTS), TABLES, CHOOSING], ids=["counts", "tables", "choosing"]
)
def test_an_audit_at_the_bound_does_not_refute_the_price(question: object) -> None:
    mu, row, nobody, direction = 1.0, ROW, NOBODY, worst_direction(question)

    def run(rows: object, draws: int) -> np.ndarray:
        return rehearse(question, rows, SCHEMA, mu=mu, n_rows_public=1, draws=draws)  # type: ignore[arg-type]

    def audit() -> vt.audit.Audit:
        return vt.audit.mechanism(
            run,
            (nobody, row),
            claimed=mu,
            draws=40_000,
            confidence=CONFIDENCE,
            statistic=lambda out: out @ direction,
        )

    assert audit().verdict == "not refuted"
    with planted_noise():
        assert audit().tightness > 0.75  # the noise is not wasted either


@pytest.mark.usefixtures("planted_noise")
def test_the_same_audit_refutes_half_the_noise() -> None:
    question, row, nobody, direction = TABLES, ROW, NOBODY, worst_direction(TABLES)

    def run(rows: object, draws: int) -> np.ndarray:
        return rehearse(question, rows, SCHEMA, mu=2.0, n_rows_public=1, draws=draws)  # type: ignore[arg-type]

    audit = vt.audit.mechanism(
        run,
        (nobody, row),
        claimed=1.0,
        draws=40_000,
        confidence=CONFIDENCE,
        statistic=lambda out: out @ direction,
    )
    assert audit.verdict == "refuted"
