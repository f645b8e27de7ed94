"""What pairs of columns that no table links have in common: drawn rows are weighed for it, and errors hold what is left."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput
from vitrail.solve.linear.labelled_rows import explain_on
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import stable
from vitrail.solve.rows.left_out import MOST, factors_of, hidden_squares, left_out_squares, weights_of

N = 4_000
EVEN = np.array([0.5, 0.5])


def independent_rows(columns: int, groups: int = 2, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.integers(0, groups, N) for _ in range(columns)]


def alike(share: float) -> np.ndarray:
    """Two even columns of two groups that agree in so many rows."""
    return np.array([[share, 1 - share], [1 - share, share]]) / 2


def weights(tables: dict[tuple[int, int], np.ndarray], groups: list[np.ndarray], size: int = 2) -> np.ndarray:
    return weights_of(factors_of(tables, groups, [size] * len(groups)), groups, N)


def size_of(numbers: np.ndarray, by: np.ndarray) -> float:
    return float(np.sqrt(left_out_squares(numbers[None, :, None], by)[0, 0]))


# --- weights -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.45, 0.6, 0.8])
def test_weighed_rows_have_the_table(share: float) -> None:
    """Of rows whose columns are independent half agree; weighed, as many as the table says, and the difference is known."""
    groups = independent_rows(2)
    agree = (groups[0] == groups[1]).astype(float)
    found = weights({(0, 1): alike(share)}, groups)
    assert found.mean() == pytest.approx(1)
    assert found @ agree / N == pytest.approx(share, abs=0.005)
    assert size_of(agree, found) == pytest.approx(abs(share - 0.5), abs=0.03)


def test_a_column_by_itself_stays_as_it_is() -> None:
    groups = independent_rows(2)
    found = weights({(0, 1): alike(0.8)}, groups)
    assert found @ groups[0] / N == pytest.approx(0.5, abs=0.005)
    assert size_of(groups[0].astype(float), found) < 0.02


def test_what_is_said_again_does_not_count_again() -> None:
    """Three columns that are one: three tables say the same, and three factors of the same size would be too many."""
    first, second = independent_rows(2)
    tables = {(0, 1): alike(0.7), (0, 2): alike(0.7), (0, 3): alike(0.7)}
    found = weights(tables, [first, second, second, second])
    assert found @ (first == second) / N == pytest.approx(0.7, abs=0.005)


def test_several_tables_hold_together() -> None:
    """Real rows of four columns that all hang together: independent draws, weighed, have all six of their tables."""
    generator = np.random.default_rng(2)
    base = generator.normal(size=N)
    real = [np.digitize(base + generator.normal(size=N), [-1, 0, 1]) for _ in range(4)]
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    tables = {pair: np.bincount(4 * real[pair[0]] + real[pair[1]], minlength=16).reshape(4, 4) / N for pair in pairs}
    drawn = [generator.permutation(column) for column in real]
    found = weights(tables, drawn, 4)
    for i, j in pairs:
        have = np.bincount(4 * drawn[i] + drawn[j], weights=found / N, minlength=16).reshape(4, 4)
        assert np.abs(have - tables[i, j]).max() < 0.01


def test_linked_pairs_keep_what_they_have() -> None:
    """Two columns hang on a third, and more than that on each other: weights for that leave the two links as they were."""
    generator = np.random.default_rng(4)
    base = generator.integers(0, 2, N)
    groups = [base, *(np.where(generator.random(N) < 0.8, base, 1 - base) for _ in range(2))]
    tables = {(1, 2): alike(0.85)}
    found = weights_of(factors_of(tables, groups, [2] * 3, [(0, 1), (0, 2)]), groups, N)
    assert found @ (groups[1] == groups[2]) / N == pytest.approx(0.85, abs=0.005)
    for other in groups[1:]:
        assert found @ (base == other) / N == pytest.approx(np.mean(base == other), abs=0.005)
    alone = weights(tables, groups)
    assert abs(alone @ (base == groups[1]) / N - np.mean(base == groups[1])) > 0.01


def test_a_group_that_no_drawn_row_is_in_has_its_factors() -> None:
    """Of a column that is linked and in no table: the rows drawn do not say how many groups it has."""
    groups = independent_rows(3)
    found = factors_of({(0, 1): alike(0.8)}, groups, [2, 2, 3], [(0, 2)])
    assert found[0, 2].shape == (2, 3)
    assert np.abs(found[0, 2][:, 2]).max() < 0.01  # nobody is there: nothing to say


def test_rows_that_have_their_tables_are_left_as_they_are() -> None:
    groups = independent_rows(2)
    have = np.bincount(2 * groups[0] + groups[1], minlength=4).reshape(2, 2) / N
    assert factors_of({}, groups, [2, 2]) == {}
    assert factors_of({(0, 1): have}, groups, [2, 2]) == {}
    np.testing.assert_array_equal(weights_of({}, [], 3), np.ones(3))


def test_tables_that_cannot_hold_leave_weights_within_their_bound() -> None:
    """Three columns cannot differ pairwise; a group that no row has stays empty; more tables than are looked at."""
    groups = independent_rows(3)
    found = weights(dict.fromkeys([(0, 1), (0, 2), (1, 2)], alike(0.0)), groups)
    assert np.isfinite(found).all()
    assert found.max() / found.min() <= np.exp(2 * MOST) * (1 + 1e-9)
    many = independent_rows(20, groups=5)
    many[3] = np.minimum(many[3], 3)
    lean = np.full((5, 5), 0.03) + 0.05 * np.eye(5)
    made = factors_of({(i, j): lean for i in range(20) for j in range(i + 1, 20)}, many, [5] * 20)
    assert 0 < sum((len(one) - 1) ** 2 for one in made.values()) <= 1_000  # of 190 tables with 16 contrasts each
    assert np.isfinite(weights_of(made, many, N)).all()


# --- pairs that noise hides ----------------------------------------------------------------------------------------------


def test_hidden_pairs_are_as_large_as_noise_makes_them() -> None:
    """Columns depend on each other by noise drawn for every contrast: the mean squared error is the one foretold."""
    generator = np.random.default_rng(1)
    sizes, noise, pairs = (2, 3, 4), 0.002, [(0, 1), (0, 2), (1, 2)]
    groups = [np.tile(group.ravel(), 150) for group in np.indices(sizes)]  # all cells alike: chance has no say
    shares = [np.full(size, 1 / size) for size in sizes]
    effects = {pair: generator.normal(size=(sizes[pair[0]], sizes[pair[1]])) for pair in pairs}
    number = sum(effects[i, j][groups[i], groups[j]] for i, j in pairs)
    foretold = hidden_squares(np.asarray(number)[None, :, None], groups, shares, set(), noise)[0, 0]
    # By hand: an error of each contrast moves a pair's part of the mean by the effect's own contrast.
    centred = {pair: e - e.mean(axis=0) - e.mean(axis=1, keepdims=True) + e.mean() for pair, e in effects.items()}
    by_hand = noise**2 * sum(float(np.square(e).sum()) for e in centred.values())
    assert foretold == pytest.approx(by_hand, rel=0.02)
    known = hidden_squares(np.asarray(number)[None, :, None], groups, shares, {(1, 2)}, noise)[0, 0]
    assert known == pytest.approx(by_hand - noise**2 * float(np.square(centred[1, 2]).sum()), rel=0.02)


def test_a_number_of_one_column_hangs_on_no_pair() -> None:
    groups = independent_rows(3)
    alone, both = groups[0].astype(float), (groups[0] == groups[1]).astype(float)
    of_one, of_two = hidden_squares(np.stack([alone, both], axis=1)[None], groups, [EVEN] * 3, set(), 0.01)[0]
    assert of_one < 0.01 * of_two


# --- through a release ---------------------------------------------------------------------------------------------------


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


def test_a_tree_knows_its_third_side_by_weights() -> None:
    """With one parent each, one pair of three has no table: the share of rows in which it agrees is off, and errors say so.

    Weighed, rows have it. With two parents all pairs have a table, and nothing is left out.
    """
    rows = people()
    tree, whole = bought(1), bought(2)
    ((first, second),) = {(0, 1), (0, 2), (1, 2)} - set(tree.noisy_tables)
    assert (first, second) in tree.factors
    names = SCHEMA.names
    truth = float(np.mean(rows[names[first]] == rows[names[second]]))

    def found(made: vt.PrivateRows) -> tuple[float, float, float]:
        agree = (made.sampled[:, first] == made.sampled[:, second]).astype(float)
        weighed = float(made.weights(made.sampled) @ agree / len(agree))
        return float(agree.mean()), weighed, float(made.standard_errors(agree[None, :, None])[0, 0])

    (of_tree, weighed, error), (of_whole, same, small) = found(tree), found(whole)
    assert not whole.factors
    assert of_whole == same
    assert abs(of_whole - truth) < 0.02
    assert small < 0.02
    assert abs(of_tree - truth) > 0.03
    assert abs(weighed - truth) < 0.02
    assert abs(of_tree - truth) < 1.96 * error < 6 * abs(of_tree - truth)


def test_what_is_left_out_is_in_the_file(tmp_path: Path) -> None:
    tree = bought(1)
    tree.save(tmp_path / "rows.json")
    again = vt.PrivateRows.load(tmp_path / "rows.json")
    np.testing.assert_array_equal(again.weights(again.sampled), tree.weights(tree.sampled))
    assert again.coarse_sigma == tree.coarse_sigma > 0
    assert np.ptp(again.weights(again.sampled)) > 0.1


@pytest.mark.parametrize("wrong", ["groups", "pair", "shape"])
def test_factors_that_do_not_fit_are_refused(wrong: str) -> None:
    tree = bought(1)
    pair, table = next(iter(tree.factors.items()))
    given = {
        "groups": {"coarse_groups": tree.coarse_groups[:2]},
        "pair": {"factors": {(1, 1): table}},
        "shape": {"factors": {pair: table[:, :1]}},
    }[wrong]
    with pytest.raises(InvalidInput):
        vt.PrivateRows(**{**{name: getattr(tree, name) for name in tree.__dataclass_fields__}, **given})


def test_lines_on_rows_are_by_weights() -> None:
    """What a column adds at a point hangs on its mean among neighbours, and so on a pair that is not linked.

    Rows with all three tables say what it is; with the tree alone it is off, and weights bring it back.
    """
    tree, whole = bought(1), bought(2)
    ((first, second),) = {(0, 1), (0, 2), (1, 2)} - set(tree.noisy_tables)
    place = SCHEMA.feature_slices[SCHEMA.names[first]].start
    model = vt.Model(lambda x: x[:, place], range=(0, 1), name="first")
    problem = LocalProblem(SCHEMA, model, stable())
    points = [{name: "yes" if name == SCHEMA.names[second] else "no" for name in SCHEMA.names}]

    def adds(rows: vt.PrivateRows) -> float:
        return float(explain_on(problem, rows, n_sampled=20_000)(points, bands=False).values[0, first])

    truth, weighed, plain = adds(whole), adds(tree), adds(replace(tree, factors={}))
    assert abs(plain - truth) > 0.01
    assert abs(weighed - truth) < 0.3 * abs(plain - truth)
