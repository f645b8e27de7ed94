"""Cell counts: exact, never more than one per partition, and priced as proven."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.errors import InvalidInput
from vitrail.vault import rehearse, root_up

SCHEMA = vt.Schema({"x": vt.Numeric(-1e6, 1e6), "y": vt.Numeric(-1e6, 1e6)})


def as_they_are(block: vt.Block) -> np.ndarray:
    return np.stack([block.column("x"), block.column("y")], axis=1)


QUESTION = vt.CellCounts(as_they_are, sizes=(3, 5))


def counted(x: list[float], y: list[float], block_rows: int = 4096) -> np.ndarray:
    with planted_noise():
        found = rehearse(QUESTION, {"x": x, "y": y}, SCHEMA, mu=1e6, n_rows_public=len(x), draws=1, block_rows=block_rows)[0]
    assert np.abs(found - np.rint(found)).max() < 1e-4
    return np.asarray(np.rint(found))


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.integers(-2, 6).map(float), st.floats(-9, 9), st.just(math.nan))] * 2), max_size=30
    ),
    block_rows=st.sampled_from([1, 7, 4096]),
)
def test_a_row_is_in_one_cell_of_every_partition_or_in_none(rows: list[tuple[float, float]], block_rows: int) -> None:
    expected = np.zeros(8)
    for x, y in rows:
        if 0 <= x < 3 and 0 <= y < 5:  # NaN is neither
            expected[int(x)] += 1
            expected[3 + int(y)] += 1
    assert np.array_equal(counted([x for x, _ in rows], [y for _, y in rows], block_rows), expected)


@pytest.mark.parametrize(("neighbours", "factor"), [("add-remove", 1), ("replace-one", 2)])
def test_the_price_is_that_of_the_proven_bound(neighbours: str, factor: int) -> None:
    rows = {"x": [0.0], "y": [0.0]}
    data = vt.PrivateData(
        rows, SCHEMA, name="x", n_rows_public=1, budget=vt.Budget(9, 1e-6), neighbours=neighbours, ledger="memory"
    )
    release = data.ask(QUESTION, mu=0.5)
    assert release.sigma is not None
    assert Fraction(release.sigma) * Fraction(0.5) >= Fraction(root_up(2 * factor))
    assert release.sigma == pytest.approx(math.sqrt(2 * factor) / 0.5, rel=1e-12)


def test_an_audit_at_the_bound_does_not_refute_the_price_and_finds_half_the_noise() -> None:
    row: dict[str, list[float]] = {"x": [1.0], "y": [4.0]}
    nobody: dict[str, list[float]] = {"x": [], "y": []}
    direction = np.array([0, 1, 0, 0, 0, 0, 0, 1.0])

    def audit(mu: float) -> vt.audit.Audit:
        def run(rows: object, draws: int) -> np.ndarray:
            return rehearse(QUESTION, rows, SCHEMA, mu=mu, n_rows_public=1, draws=draws)  # type: ignore[arg-type]

        return vt.audit.mechanism(
            run, (nobody, row), claimed=1.0, draws=40_000, confidence=CONFIDENCE, statistic=lambda out: out @ direction
        )

    assert audit(1.0).verdict == "not refuted"
    with planted_noise():
        assert audit(1.0).tightness > 0.75
        assert audit(2.0).verdict == "refuted"


@pytest.mark.parametrize("sizes", [(), (0,), (2.5,), (10**7, 1)])
def test_wrong_sizes_are_named(sizes: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInput, match="sizes"):
        vt.CellCounts(as_they_are, sizes)  # type: ignore[arg-type]


def test_asking_again_is_free() -> None:
    rows = {"x": [1.0] * 500, "y": [2.0] * 500}
    data = vt.PrivateData(rows, SCHEMA, name="x", n_rows_public=500, budget=vt.Budget(9, 1e-6), ledger="memory")
    asked = vt.CellCounts(as_they_are, (3, 5), key="cells")
    first, again = data.ask(asked, epsilon=1.0), data.ask(asked, epsilon=1.0)
    assert again.replayed
    assert np.array_equal(first.value, again.value)
