"""Very many columns: private rows that are independent, Shapley values by groups, blocks of few rows, plain refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput, SchemaError
from vitrail.explain.joint_sum import MOST_EXPLAINED
from vitrail.explain.private_rows import FEWEST_BINS, MOST_COLUMNS, PrivateRowsExplainer
from vitrail.pane.pane_recipe import PaneExplainer
from vitrail.results.band_claim import BandClaim
from vitrail.schema.bins import bins_of, index_of_all
from vitrail.solve.coalitions import WIDE, row_hashes
from vitrail.solve.curves.assemble import INDEPENDENT
from vitrail.solve.rows.histograms import column_shares, fine_bins, shares_of_columns
from vitrail.solve.rows.network import MOST_SURVEYED
from vitrail.solve.shapley.on_rows import MOST_PLAYERS
from vitrail.solve.shapley.reasons import MANY_COLUMNS
from vitrail.vault.public_facts import BLOCK_BYTES, checked_facts, default_block_rows

WIDTH, N_GROUPS, N_ROWS = 1_200, 20, 600
KINDS = (vt.Numeric(0, 1), vt.Numeric(0, 99, integer=True), vt.Categorical([0, 1, 2]), vt.Categorical([False, True]))
NAMES = [f"c{number:04d}" for number in range(WIDTH)]
COLUMNS = {name: KINDS[number % (4 if number < 40 else 2) + 2 * (number >= 40)] for number, name in enumerate(NAMES)}
GROUPS = [vt.Group(f"group {number}", NAMES[number::N_GROUPS]) for number in range(N_GROUPS)]
SCHEMA = vt.Schema(COLUMNS, rules=GROUPS)


def rows_of(schema: vt.Schema = SCHEMA) -> dict[str, np.ndarray]:
    return dict(schema.frame(schema.probe_rows(N_ROWS)))


def opened(schema: vt.Schema = SCHEMA, epsilon: float = 1e5, **options: object) -> vt.PrivateData:
    given: dict[str, object] = {"name": "wide", "n_rows_public": N_ROWS, "ledger": "memory", **options}
    return vt.PrivateData(rows_of(schema), schema, budget=vt.Budget(epsilon, 1e-6), **given)  # type: ignore[arg-type]


def nobodys(schema: vt.Schema, n_rows_public: int = 10**6) -> vt.PrivateData:
    return vt.PrivateData(
        {name: [] for name in schema}, schema, name="nobody", n_rows_public=n_rows_public, budget=vt.Budget(1, 1e-6),
        ledger="memory",
    )  # fmt: skip


def first_numbers(values: np.ndarray) -> np.ndarray:
    """The mean of the first number of four groups, whatever the others are: groups 0, 4, 8 and 12."""
    return np.asarray((values[:, 0] + values[:, 4] + values[:, 8] + values[:, 12]) / 4)


LINE = vt.Model(first_numbers, range=(0, 1), inputs="values", name="line")
PLAIN = vt.Schema({f"x{number}": KINDS[0 if number < 40 else 3] for number in range(MOST_SURVEYED + 1)})


@pytest.fixture(scope="module")
def pane() -> vt.Pane:
    with planted_noise():
        return vt.release(opened(), epsilon=50.0)


# --- private rows ------------------------------------------------------------------------------------------------------


def test_rows_of_very_many_columns_are_counts_for_the_whole_price_and_claim_nothing_of_pairs(pane: vt.Pane) -> None:
    rows = pane.private_rows
    assert len(rows.columns) == WIDTH
    assert not rows.noisy_tables
    assert not rows.coarse_groups
    assert not rows.tree
    assert rows.counts_sigma == pytest.approx(np.sqrt(WIDTH) / pane.cost.mu, rel=1e-3)
    # 600 rows in as many bins as noise lets them stand out of: far fewer than the 100 of a pane of few columns.
    assert max(len(cut) for cut in rows.bins) <= 2 * FEWEST_BINS
    e = vt.Pane.from_bytes(pane.to_bytes()).local(_person(), model=LINE)
    assert e.columns == tuple(SCHEMA.groups)
    assert MANY_COLUMNS.format(most=MOST_SURVEYED) in e.notes
    assert e.band_claim is BandClaim.NOT_CALIBRATED


def test_reasons_by_groups_ask_the_model_by_the_number_of_groups(pane: vt.Pane) -> None:
    asked: list[int] = []

    def counting(values: np.ndarray) -> np.ndarray:
        asked.append(len(values))
        return first_numbers(values)

    person, background = _person(), 64
    model = vt.Model(counting, range=(0, 1), inputs="values", name="counting")
    e = pane.local(person, model=model, background=background)
    assert sum(asked) < 2 * background * N_GROUPS + 2_000  # both ways along every order; probes and ends beside
    effects = dict(zip(e.columns, e.values[0], strict=True))
    sampled = pane.private_rows.sampled[:background]
    for number in (0, 4, 8, 12):
        expected = (person[NAMES[number]] - sampled[:, number].mean()) / 4
        assert effects[f"group {number}"] == pytest.approx(expected, abs=1e-9)
    assert max(abs(value) for name, value in effects.items() if name not in {f"group {n}" for n in (0, 4, 8, 12)}) < 1e-9
    assert e.points[0]["group 0"].endswith(f"... ({WIDTH // N_GROUPS} columns)")


def test_a_page_of_very_many_columns_has_reasons_and_says_why_it_has_no_counterfactuals(pane: vt.Pane) -> None:
    person = pane.explain(_person(), model=LINE, bands=True)
    assert person.explanation is not None
    assert person.counterfactuals is None
    assert any("pane.counterfactual" in note for note in person.notes)
    assert "(60 columns)" in str(person.to_html())


def test_bins_are_wider_where_very_many_columns_make_much_noise_and_as_asked_where_they_do_not() -> None:
    many = PrivateRowsExplainer(nobodys(PLAIN, 10**9), bins=64)
    few = PrivateRowsExplainer(nobodys(PLAIN, 10**4), bins=64)
    wide, narrow = (max(map(len, each.quote(epsilon=1.0).result.bins)) for each in (few, many))
    assert wide <= 2 * FEWEST_BINS < 64 <= narrow


def test_moves_of_very_many_columns_are_standard_errors(pane: vt.Pane) -> None:
    rows = pane.private_rows
    per_row = rows.sampled[:256, :3]
    errors = rows.standard_errors(per_row[None])[0]
    assert np.sqrt(np.square(rows.moves(per_row)).sum(axis=0)) == pytest.approx(errors)
    assert rows.rough_variances(per_row) == pytest.approx(errors**2)


def _person() -> dict[str, object]:
    return {name: values[-1] for name, values in SCHEMA.frame(SCHEMA.probe_rows(7)).items()}


# --- sums over the rows ----------------------------------------------------------------------------------------------


def test_shapley_by_groups_of_very_many_columns() -> None:
    with planted_noise():
        e = vt.Shapley(opened(), LINE, clip=1.0)(_person(), mu=50.0)
    effects, person, mean = dict(zip(e.columns, e.values[0], strict=True)), _person(), rows_of()
    assert len(effects) == N_GROUPS
    for number in (0, 4, 8, 12):
        expected = (float(person[NAMES[number]]) - float(mean[NAMES[number]].mean())) / 4  # type: ignore[arg-type]
        assert effects[f"group {number}"] == pytest.approx(expected, abs=0.01)


def test_histograms_of_very_many_columns_are_those_of_each() -> None:
    with planted_noise():
        found = vt.marginals(opened(), mu=100.0)
    for name in NAMES[:8]:
        values = SCHEMA.probe_rows(N_ROWS)[:, SCHEMA.column_index(name)]
        index = bins_of(name, SCHEMA[name], 20).index(values)
        assert found.counts[name] == pytest.approx(
            np.bincount(index, minlength=len(found.counts[name])), abs=8 * found.sigma
        )


def test_importance_of_some_of_very_many_columns_says_what_it_stands_on() -> None:
    importance = vt.PermutationImportance(opened(), LINE, columns=[NAMES[0], NAMES[1]])
    with planted_noise():
        found = importance(epsilon=50.0)
    assert found.order[0] == NAMES[0]
    assert INDEPENDENT in found.notes
    assert found.band_claim is BandClaim.NOT_CALIBRATED


# --- refusals, before anything is charged ------------------------------------------------------------------------------


def test_what_is_too_wide_is_refused_with_what_to_do_and_charges_nothing() -> None:
    data = opened(PLAIN)
    line = vt.Model(lambda x: x[:, 0], range=(0, 1), name="x0")
    assert PLAIN.n_columns > max(MOST_PLAYERS, MOST_EXPLAINED)
    with pytest.raises(InvalidInput, match=r"at most 1000 can be told apart; say which columns belong together.*vt.Group"):
        vt.Shapley(data, line)
    with pytest.raises(InvalidInput, match=r"importance of 1001 columns is asked for.*name the ones that matter with col"):
        vt.PermutationImportance(data, line)
    with pytest.raises(InvalidInput, match="leave curves and importance out of a pane's parts="):
        vt.release(data, line, parts=["rows", "pdp"], epsilon=1.0)
    with pytest.raises(InvalidInput, match="at most 1000 can be told apart"):
        vt.release(data, line, parts=["rows", "reasons"], epsilon=1.0)
    with pytest.raises(InvalidInput, match="ask for fewer bins="):
        vt.marginals(data, bins=26_000, epsilon=1.0)
    assert data.budget.spent_epsilon == 0
    assert {entry.kind for entry in data.budget.entries} <= {"opened"}
    assert tuple(PaneExplainer(data, line).shares(0.5)) == ("rows",)  # what "all" buys then


def test_more_columns_than_can_be_drawn_are_refused_and_named_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = vt.Schema({f"x{number}": KINDS[3] for number in range(MOST_COLUMNS + 1)})
    data = nobodys(wide)
    with pytest.raises(InvalidInput, match=f"at most {MOST_COLUMNS} can be drawn together; name the ones that matter"):
        vt.private_rows(data, epsilon=1.0)
    vt.PrivateRowsExplainer(data, columns=["x0", "x1"])
    monkeypatch.setattr("vitrail.explain.private_rows.MOST_ALL_BINS", 2_000)
    with pytest.raises(
        InvalidInput, match=r"bins and levels together, and private rows at most 2000; name the columns that"
    ):
        vt.private_rows(nobodys(PLAIN), epsilon=1.0)
    with pytest.raises(InvalidInput, match="'x49' and 19951 others"):
        vt.private_rows(data, columns=["y0"], epsilon=1.0)


# --- blocks, bins, hashes ------------------------------------------------------------------------------------------------


def test_a_block_stays_within_its_bytes_and_depends_on_what_was_declared_alone() -> None:
    for width in (1_024, 1_025, 3_000, 27_500, 65_536):
        rows = default_block_rows(10**6, width)
        assert 8 * rows * width <= BLOCK_BYTES
        assert rows % (64 if rows >= 64 else 16) == 0
    assert default_block_rows(10**6, 1_024) == 4096 > default_block_rows(10**6, 1_025)
    facts = checked_facts(SCHEMA, None, 10**6, "add-remove", None, 1)
    assert facts.block_rows == default_block_rows(10**6, SCHEMA.n_columns + SCHEMA.n_features)
    assert checked_facts(SCHEMA, None, 10**6, "add-remove", 7, 1).block_rows == 7


def test_columns_that_are_cut_alike_are_looked_up_and_smoothed_as_if_alone() -> None:
    columns = {
        "a": vt.Numeric(0, 50, codes=(-9,)),
        "b": vt.Numeric(0, 50),
        "c": vt.Numeric(0, 50, codes=(-9,)),
        "d": vt.Categorical(["x", "y"]),
        "e": vt.Categorical(["y", "z"]),
    }
    raw = vt.Schema(columns).probe_rows(200)
    cuts = [fine_bins(name, column, 40) for name, column in columns.items()]
    expected = np.stack([cut.index(raw[:, j]) for j, cut in enumerate(cuts)], axis=1)
    assert np.array_equal(index_of_all(cuts)(raw), expected)
    counts = [np.bincount(expected[:, j], minlength=len(cut)).astype(float) for j, cut in enumerate(cuts)]
    plain = [dataclasses.replace(cut, edges=cut.edges) for cut in cuts]
    found = shares_of_columns(counts, [np.empty(0)] * 5, plain, 3.0, 200.0)
    for count, cut, shares in zip(counts, cuts, found, strict=True):
        assert shares == pytest.approx(column_shares(count, None, cut, 3.0, 200.0), abs=1e-12)


def test_hashes_of_wide_rows_are_of_the_row_alone_and_of_every_column() -> None:
    rows = np.random.default_rng(0).random((8, WIDE + 10))
    hashes = row_hashes(rows, 3)
    assert np.array_equal(row_hashes(rows[::-1], 3)[::-1], hashes)
    assert len({*hashes.tolist(), *row_hashes(rows, 4).tolist()}) == 16
    for column in (0, WIDE, WIDE + 9):
        other = rows.copy()
        other[:, column] += 0.5
        assert not np.isin(row_hashes(other, 3), hashes).any()
    swapped = rows[:, ::-1].copy()
    assert not np.isin(row_hashes(swapped, 3), hashes).any()


def test_arrow_columns_are_read_alike_whatever_their_type_and_gaps() -> None:
    schema = vt.Schema({"x": vt.Numeric(0, 9), "b": vt.Categorical([False, True])})
    values, truths = [1, 2, None, 4], [True, None, False, True]
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64()):
        table = pa.table({"x": pa.array(values, kind), "b": pa.array(truths)})
        chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
        for given in (table, chunked):
            assert np.array_equal(schema.read(given)[:, 0], [1, 2, np.nan, 4], equal_nan=True)
            assert np.array_equal(schema.read(given)[:, 1], [1, np.nan, 0, 1], equal_nan=True)
        whole = pa.table({"x": pa.array([1, 2], kind), "b": pa.array([True, False])})
        assert np.array_equal(schema.read(whole), [[1.0, 1.0], [2.0, 0.0]])
    with pytest.raises(SchemaError, match="c0049' and 1150 others"):
        SCHEMA.column_index("nothing")
