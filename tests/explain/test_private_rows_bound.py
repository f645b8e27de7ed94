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
from vitrail.explain.private_rows import COUNTS, stars_of, tables_question
from vitrail.solve.private_tables import fine_bins, groups_of
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


def alone(question: object, rows: dict[str, list[object]], row: int) -> np.ndarray:
    one = {name: values[row : row + 1] for name, values in rows.items()}
    noisy = rehearse(question, one, SCHEMA, mu=100.0, n_rows_public=1, draws=1)[0]  # type: ignore[arg-type]
    assert np.abs(noisy - np.rint(noisy)).max() < 0.3  # nine standard deviations: noise of at most sqrt(10)/100
    return np.rint(noisy)


@settings(max_examples=25, deadline=None)
@given(rows=some_rows)
def test_a_row_is_one_cell_of_every_table_and_one_bin_of_every_column(rows: dict[str, list[object]]) -> None:
    for question, ones in ((histogram_question(BINS, COUNTS), 5), (tables_question(BINS, GROUPS, PAIRS), len(PAIRS))):
        first, second = alone(question, rows, 0), alone(question, rows, 1)
        assert set(np.unique(first)) <= {0.0, 1.0}
        assert first.sum() == ones  # so the squared norm is exactly that
        assert ((first - second) ** 2).sum() <= 2 * ones


@pytest.mark.parametrize("pairs", [PAIRS, [(0, 1)], [(0, 1), (0, 2), (3, 4)]])
def test_the_stated_bounds_hold_exactly_and_are_tight(pairs: list[tuple[int, int]]) -> None:
    question = tables_question(BINS, GROUPS, pairs)
    assert question.l2_bound is not None
    assert Fraction(question.l2_bound) ** 2 >= len(pairs)
    assert question.l2_bound == pytest.approx(math.sqrt(len(pairs)), rel=1e-11)
    assert sum(len(seconds) for _, seconds in stars_of(pairs)) == len(pairs)
    counts = histogram_question(BINS, COUNTS)
    assert counts.replace_bound is not None
    assert Fraction(counts.l2_bound) ** 2 >= 5
    assert Fraction(counts.replace_bound) ** 2 >= 10


def test_rows_are_counted_whole_not_clipped() -> None:
    n = 20_000
    rows = {
        "age": np.full(n, 3),
        "weight": np.full(n, 0.5),
        "sex": np.full(n, "Male"),
        "pay": np.full(n, 0),
        "job": np.full(n, "c"),
    }
    for question, ones in ((histogram_question(BINS, COUNTS), 5), (tables_question(BINS, GROUPS, PAIRS), len(PAIRS))):
        counted = rehearse(question, rows, SCHEMA, mu=100.0, n_rows_public=n, draws=1, block_rows=4096)[0]
        full = counted[counted > n / 2]
        assert len(full) == ones
        assert np.abs(full - n).max() < 0.3


@pytest.mark.parametrize("which", ["counts", "tables"])
def test_an_audit_at_the_bound_does_not_refute_the_price(which: str) -> None:
    question = histogram_question(BINS, COUNTS) if which == "counts" else tables_question(BINS, GROUPS, PAIRS)
    mu = 1.0
    row = {"age": [3], "weight": [0.5], "sex": ["Male"], "pay": [7], "job": ["c"]}
    nobody: dict[str, list[object]] = {name: [] for name in row}
    direction = np.rint(rehearse(question, row, SCHEMA, mu=100.0, n_rows_public=1, draws=1)[0])  # type: ignore[arg-type]

    def run(rows: object, draws: int) -> np.ndarray:
        return rehearse(question, rows, SCHEMA, mu=mu, n_rows_public=1, draws=draws)  # type: ignore[arg-type]

    def audit() -> vt.audit.Audit:
        return vt.audit.mechanism(
            run, (nobody, row), claimed=mu, draws=40_000, confidence=CONFIDENCE, statistic=lambda out: out @ direction
        )

    assert audit().verdict == "not refuted"
    with planted_noise():
        assert audit().tightness > 0.75  # the noise is not wasted either


@pytest.mark.usefixtures("planted_noise")
def test_the_same_audit_refutes_half_the_noise() -> None:
    question = tables_question(BINS, GROUPS, PAIRS)
    row = {"age": [3], "weight": [0.5], "sex": ["Male"], "pay": [7], "job": ["c"]}
    nobody: dict[str, list[object]] = {name: [] for name in row}
    direction = np.rint(rehearse(question, row, SCHEMA, mu=100.0, n_rows_public=1, draws=1)[0])  # type: ignore[arg-type]

    def run(rows: object, draws: int) -> np.ndarray:
        return rehearse(question, rows, SCHEMA, mu=2.0, n_rows_public=1, draws=draws)  # type: ignore[arg-type]

    audit = vt.audit.mechanism(
        run, (nobody, row), claimed=1.0, draws=40_000, confidence=CONFIDENCE, statistic=lambda out: out @ direction
    )
    assert audit.verdict == "refuted"
