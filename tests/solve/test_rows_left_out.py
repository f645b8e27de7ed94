"""What pairs of columns that no table links have in common: how far means over the rows are off is found from a survey."""

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.solve.rows.left_out import left_out_squares, tilted

N = 4_000
QUIET = 1e-4
"""Noise on a share of the rows."""


def independent_rows(columns: int, groups: int = 2, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.integers(0, groups, N) for _ in range(columns)]


def alike(share: float) -> np.ndarray:
    """Two even columns of two groups that agree in so many rows."""
    return np.array([[share, 1 - share], [1 - share, share]]) / 2


def size_of(numbers: np.ndarray, tilt: np.ndarray) -> float:
    return float(np.sqrt(left_out_squares(numbers[None, :, None], tilt)[0, 0]))


@pytest.mark.parametrize("share", [0.45, 0.6, 0.8])
def test_the_error_of_a_mean_is_what_the_table_says(share: float) -> None:
    """Of rows whose columns are independent half agree; the mean of "they agree" is off by the difference."""
    groups = independent_rows(2)
    agree = (groups[0] == groups[1]).astype(float)
    assert size_of(agree, tilted({(0, 1): alike(share)}, groups, QUIET)) == pytest.approx(abs(share - 0.5), abs=0.03)


def test_numbers_of_one_column_are_not_off() -> None:
    """Tables say nothing new of a column by itself."""
    groups = independent_rows(2)
    tilt = tilted({(0, 1): alike(0.8)}, groups, QUIET)
    assert size_of(groups[0].astype(float), tilt) < 0.02


def test_what_is_said_again_does_not_count_again() -> None:
    """Three columns that are one: three tables say the same, and the sum of three errors would be three times too large."""
    first, second = independent_rows(2)
    agree = (first == second).astype(float)
    once = size_of(agree, tilted({(0, 1): alike(0.7)}, [first, second], QUIET))
    tables = {(0, 1): alike(0.7), (0, 2): alike(0.7), (0, 3): alike(0.7)}
    assert size_of(agree, tilted(tables, [first, second, second, second], QUIET)) == pytest.approx(once, rel=0.1)


def test_nothing_is_left_out_of_independent_rows() -> None:
    groups = independent_rows(2)
    assert not tilted({}, groups, QUIET).any()
    assert size_of((groups[0] == groups[1]).astype(float), tilted({(0, 1): alike(0.5)}, groups, QUIET)) < 0.02


def test_noise_is_not_taken_for_dependence() -> None:
    """Tables that are noise of known size: errors are far smaller than noise would make them."""
    generator, groups, noise = np.random.default_rng(5), independent_rows(12, groups=4), 0.05
    pairs = [(i, j) for i in range(12) for j in range(i)]
    tables = {pair: np.full((4, 4), 1 / 16) + generator.normal(0, noise, (4, 4)) for pair in pairs}
    told, believed = (np.abs(tilted(tables, groups, std)).mean() for std in (noise, QUIET))
    assert told < 0.1 * believed


def test_a_group_that_no_row_has_and_many_pairs() -> None:
    groups = independent_rows(20, groups=5)
    groups[3] = np.minimum(groups[3], 3)
    pairs = [(i, j) for i in range(20) for j in range(i)]  # 190 tables of 16 contrasts: more than are looked at
    tilt = tilted({pair: np.full((5, 5), 1 / 25) for pair in pairs}, groups, QUIET)
    assert tilt.shape == (N,)
    assert np.isfinite(tilt).all()


def people() -> dict[str, np.ndarray]:
    """One column that two others hang on, each in its own way, and which hang on each other beyond that."""
    generator = np.random.default_rng(3)
    base = generator.integers(0, 2, N)
    other = np.where(generator.random(N) < 0.7, base, 1 - base)
    third = np.where(generator.random(N) < 0.5, base, other)
    names = np.array(["no", "yes"])
    return {"base": names[base], "other": names[other], "third": names[third]}


SCHEMA = vt.Schema(dict.fromkeys(["base", "other", "third"], vt.Categorical(["no", "yes"])))


def bought(parents: int, which: int = 0) -> vt.PrivateRows:
    given = {"n_rows_public": N, "budget": vt.Budget(1e5, 1e-6), "ledger": "memory"}
    with planted_noise(which):
        return vt.private_rows(vt.PrivateData(people(), SCHEMA, name="people", **given), mu=3.0, parents=parents)


def test_errors_of_a_tree_hold_what_its_third_side_is() -> None:
    """With one parent each, one pair of three has no table: the share of rows in which it agrees is off, and errors say so.

    With two parents all have one, and nothing is left out.
    """
    rows = people()
    tree, whole = bought(1), bought(2)
    ((first, second),) = {(0, 1), (0, 2), (1, 2)} - set(tree.noisy_tables)
    names = SCHEMA.names
    truth = float(np.mean(rows[names[first]] == rows[names[second]]))

    def found(made: vt.PrivateRows) -> tuple[float, float]:
        agree = (made.sampled[:, first] == made.sampled[:, second]).astype(float)
        return float(agree.mean()), float(made.standard_errors(agree[None, :, None])[0, 0])

    (of_tree, error), (of_whole, small) = found(tree), found(whole)
    assert not whole.tilt.any()
    assert abs(of_whole - truth) < 0.02
    assert small < 0.02
    assert abs(of_tree - truth) > 0.03
    assert abs(of_tree - truth) < 1.96 * error < 6 * abs(of_tree - truth)


def test_what_is_left_out_is_in_the_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tree = bought(1)
    tree.save(tmp_path / "rows.json")
    again = vt.PrivateRows.load(tmp_path / "rows.json")
    np.testing.assert_array_equal(again.tilt, tree.tilt)
    assert again.tilt.any()
