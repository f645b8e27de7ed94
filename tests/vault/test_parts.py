"""Disjoint parts of private rows: which row is where, what it costs, what is refused."""

import struct

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from exact_sums import exact_sum
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.ledger import Part
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.parts import PartRows, part_indices, salt_of
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions
from vitrail.vault.rows.sources import open_rows

SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "team": vt.Categorical(["red", "blue"]), "dose": vt.Numeric(-1, 1)})


def frame(count=1000, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "age": np.where(generator.uniform(size=count) < 0.05, np.nan, generator.uniform(0, 100, count)),
        "team": generator.choice(["red", "blue", "green"], count),  # green is undeclared: missing
        "dose": generator.choice([-1.0, -0.0, 0.0, 0.5], count),
    }


def sources(tmp_path):
    rows = frame()
    table = pa.table(rows)
    folder = tmp_path / "folder"
    folder.mkdir()
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=77)
    for number, start in enumerate(range(0, 1000, 300)):
        pq.write_table(table.slice(start, 300), folder / f"{number}.parquet")
    return {
        "dict": rows,
        "pandas": pd.DataFrame(rows),
        "polars": pl.DataFrame(rows),
        "arrow": table,
        "parquet": str(tmp_path / "rows.parquet"),
        "folder": folder,
    }


def part_rows(rows, index, count=3, name="thirds", schema=SCHEMA):
    return PartRows(open_rows(rows, schema), schema.n_columns, name=name, index=index, count=count)


def walked(source, block_rows):
    chunks = list(source.chunks(block_rows))
    assert all(len(chunk) == block_rows for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= block_rows for chunk in chunks)
    return np.concatenate([*chunks, np.empty((0, SCHEMA.n_columns))])


def test_every_row_is_in_one_part_whatever_holds_it_and_however_it_is_cut(tmp_path):
    everything = SCHEMA.read(frame())
    where = part_indices(everything, salt_of("thirds"), 3)
    for kind, rows in sources(tmp_path).items():
        for block_rows in (1, 8, 64, 1024) if kind in ("dict", "parquet") else (256,):
            for index in range(3):
                found = walked(part_rows(rows, index), block_rows)
                assert np.array_equal(found, everything[where == index], equal_nan=True), (kind, block_rows)
    assert np.bincount(where, minlength=3).sum() == 1000


def test_parts_are_about_equally_large_and_names_are_independent():
    raw = SCHEMA.read({**frame(30_000), "dose": np.random.default_rng(1).uniform(-1, 1, 30_000)})
    one, other = (part_indices(raw, salt_of(name), 3) for name in ("thirds", "others"))
    together = np.bincount(3 * one + other, minlength=9) / 30_000
    assert together == pytest.approx(np.full(9, 1 / 9), abs=0.01)  # five standard deviations
    every = part_indices(np.arange(30_000.0)[:, None], salt_of("thirds"), 3)  # neighbouring numbers, hashed well
    assert np.bincount(every) / 30_000 == pytest.approx(np.full(3, 1 / 3), abs=0.015)


def test_a_row_keeps_its_part_for_ever():
    """Frozen: a change of the hash would move rows between parts of accounts that have spent already."""
    raw = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [np.nan, 2.0], [-3.5, 1e300]])
    found = part_indices(raw, salt_of("thirds"), 1000).tolist()
    assert found == [141, 576, 612, 33, 854]
    assert found == [in_whole_numbers(row, salt_of("thirds")) % 1000 for row in raw]


def in_whole_numbers(row, mixed):
    """The same hash in Python's integers."""
    for value in row:
        bits = 0x7FF8000000000000 if value != value else int.from_bytes(struct.pack(">d", value), "big")
        mixed = ((mixed ^ bits) + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        mixed ^= mixed >> 31
    return mixed


def test_equal_values_share_a_part_however_they_are_written():
    other_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    raw = np.array([[0.0, np.nan], [-0.0, other_nan]])
    for count in range(2, 40):
        assert len(set(part_indices(raw, salt_of("x"), count))) == 1


ROW = st.tuples(st.sampled_from([0.0, 25.0, 50.0, np.nan]), st.sampled_from(["red", "blue"]), st.sampled_from([-0.5, 0.0]))


def columns(rows):
    return {name: np.array(list(values), dtype=object) for name, values in zip(SCHEMA, zip(*rows, strict=True), strict=True)}


@given(rows=st.lists(ROW, min_size=2, max_size=20), place=st.integers(0, 19), block_rows=st.sampled_from([1, 2, 8]))
@settings(max_examples=60, deadline=None)
def test_a_row_more_changes_the_exact_sum_of_one_part_only(rows, place, block_rows):
    place %= len(rows)
    fewer = rows[:place] + rows[place + 1 :]
    changed = [
        (exact_total(rows, index, block_rows) != exact_total(fewer, index, block_rows)).any()
        or not np.array_equal(raw_of(rows, index), raw_of(fewer, index), equal_nan=True)
        for index in range(3)
    ]
    assert sum(changed) == 1
    where = part_indices(SCHEMA.read(columns(rows))[place : place + 1], salt_of("thirds"), 3)[0]
    assert changed[where]


def raw_of(rows, index):
    return walked(part_rows(columns(rows), index), 4)


def exact_total(rows, index, block_rows):
    """The vault's own exact sum over a part, in whole cells, before any noise."""
    facts = PublicFacts(SCHEMA, None, 30, "add-remove", block_rows)
    question = vt.BoundedSum(lambda block: np.column_stack([block.features, np.ones(len(block))]), 5, 3.0)
    plan = question.plan(1.0, facts)
    rows_of_part = RowPass(part_rows(columns(rows), index), facts, Predictions(facts))
    return np.asarray(exact_sum(rows_of_part, question.row_function(), plan.grid, block_rows))


# --- PrivateData ------------------------------------------------------------------------------------------------------

MEAN = vt.BoundedSum(lambda block: block.features, size=4, l2_bound=2.0, key="features")


def private(rows=None, epsilon=2.0, **options):
    options = {"name": "trial", "n_rows_public": 1000, **options}
    rows = frame() if rows is None else rows
    return vt.PrivateData(rows, SCHEMA, budget=vt.Budget(epsilon, 1e-6), **options)


def test_three_parts_cost_as_much_as_one_and_the_sums_add_up():
    data = private(epsilon=5000.0)
    parts = data.parts(3, name="thirds")
    answers = [part.ask(MEAN, mu=50.0) for part in parts]
    assert data.budget.spent == answers[0].cost
    whole = data.ask(MEAN, mu=50.0)
    assert sum(answer.value for answer in answers) == pytest.approx(whole.value, abs=0.6)  # seven standard deviations
    assert all(np.abs(answer.value).max() > 20 for answer in answers)
    assert data.budget.spent == answers[0].cost + whole.cost


def test_a_part_has_the_face_of_the_data():
    data = private(target="team", analyst="alice")
    part = data.parts(3, name="thirds")[1]
    assert isinstance(part, vt.PrivateData)
    assert repr(part) == "PrivateData(\"trial, part 2 of 3 of 'thirds'\", 3 columns, declared rows 333)"
    assert (part.schema, part.feature_schema, part.target, part.delta, part.neighbours) == (
        data.schema, data.feature_schema, "team", data.delta, "add-remove"
    )  # fmt: skip
    assert (data.part, part.part.index, part.part.count, part.part.name) == (None, 1, 3, "thirds")
    assert part.budget.account == data.budget.account == "trial"
    assert private(n_rows_public=2).parts(5, name="fifths")[0].n_rows_public == 1
    part.ask(vt.BoundedSum(lambda block: block.features, 2, 1.0), epsilon=0.1)
    assert part.budget.of_analyst("alice").spent.mu > 0


@pytest.mark.parametrize("method", ["statistics", "adaptive", "marginals"])
def test_explainers_take_a_part(method):
    data = private(epsilon=500.0)
    model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    for part in data.parts(2, name="halves"):
        if method == "marginals":
            vt.marginals(part, epsilon=1.0)
        else:
            how = vt.linear.Adaptive(iterations=5) if method == "adaptive" else vt.linear.Statistics()
            found = vt.LocalLinear(part, model, method=how)({"age": 50, "team": "red", "dose": 0}, mu=2.0)
            assert found.cost.mu <= 2.0 * (1 + 1e-9)
    assert {entry.part.index for entry in data.budget.entries if entry.kind == "charged"} == {0, 1}
    one, other = (line.spent for line in data.budget.parts)
    assert data.budget.spent.pico_mu_squared == max(one.pico_mu_squared, other.pico_mu_squared)


def test_replays_are_a_parts_own():
    data = private()
    first, second = data.parts(2, name="halves")
    paid = first.ask(MEAN, epsilon=0.2)
    other = second.ask(MEAN, epsilon=0.2)
    assert not other.replayed
    assert not data.ask(MEAN, epsilon=0.2).replayed
    assert not data.parts(2, name="other")[0].ask(MEAN, epsilon=0.2).replayed
    again = data.parts(2, name="halves")[0].ask(MEAN, epsilon=0.2)
    assert again.replayed
    assert (again.value == paid.value).all()


def test_another_name_count_dataset_version_or_schema_is_another_partition():
    ledger = vt.ledger.open_ledger("memory")
    same = {"ledger": ledger, "account": "all"}
    wide = vt.Schema({**SCHEMA, "age": vt.Numeric(0, 101)})
    budget = vt.Budget(2.0, 1e-6)
    every = [
        private(**same).parts(3, name="thirds")[0],
        private(**same).parts(3, name="others")[0],
        private(**same).parts(4, name="thirds")[0],
        private(**same, name="copy").parts(3, name="thirds")[0],
        private(**same, version="2").parts(3, name="thirds")[0],
        vt.PrivateData(frame(), wide, name="trial", n_rows_public=1000, budget=budget, **same).parts(3, name="thirds")[0],
    ]
    assert len({part.part.partition for part in every}) == len(every)
    for part in every:
        part.ask(MEAN, mu=0.05)
    cost = every[0].budget.parts[0].spent
    assert every[0].budget.spent.pico_mu_squared == len(every) * cost.pico_mu_squared
    assert private(**same).parts(3, name="thirds")[0].part == every[0].part


def test_a_quote_shows_the_parts_cost_and_what_it_adds():
    data = private()
    first, second = data.parts(2, name="halves")
    new = first.quote(MEAN, mu=0.2)
    assert new.adds == new.cost
    first.ask(MEAN, mu=0.2)
    free, dearer = second.quote(MEAN, mu=0.1), second.quote(MEAN, mu=0.3)
    assert (free.adds, free.part) == (vt.Cost(), "part 2 of 2 of 'halves'")
    assert free.cost.mu == pytest.approx(0.1)
    assert "It goes to part 2 of 2 of 'halves', and adds nothing, another part being dearer so far, to what" in str(free)
    assert dearer.adds.pico_mu_squared == dearer.cost.pico_mu_squared - new.cost.pico_mu_squared
    assert free.remaining_epsilon == pytest.approx(2.0, rel=1e-3)
    assert first.quote(MEAN, mu=0.1).remaining_epsilon < 2.0
    assert data.quote(MEAN, mu=0.1).part is None
    assert data.quote(MEAN, mu=0.1).adds == data.quote(MEAN, mu=0.1).cost
    before = data.budget.spent
    second.ask(MEAN, mu=0.3)
    assert data.budget.spent == before + dearer.adds


def test_a_refusal_names_the_part_and_the_quote_knew():
    data = private(epsilon=0.5)
    first, second = data.parts(2, name="halves")
    first.ask(MEAN, epsilon=0.4)
    assert not first.quote(MEAN, epsilon=0.45).fits
    with pytest.raises(BudgetExceeded, match="account 'trial' for part 1 of 2 of 'halves'"):
        first.ask(MEAN, epsilon=0.45)
    assert second.quote(MEAN, epsilon=0.45).fits
    second.ask(MEAN, epsilon=0.45)


def test_what_cannot_be_split_is_refused():
    exchange = private(neighbours="replace-one")
    with pytest.raises(InvalidInput, match="under 'add-remove' only, because a row that is exchanged may leave one part"):
        exchange.parts(3, name="thirds")
    part = private().parts(3, name="thirds")[0]
    with pytest.raises(InvalidInput, match="parts of parts are not accounted for"):
        part.parts(2, name="halves")
    for count in (0, 1, -3, 2.0, True, 10**6):
        with pytest.raises(InvalidInput, match="count of parts"):
            private().parts(count, name="x")
    for name in ("", " x", "a\nb", 3, "x" * 101):
        with pytest.raises(InvalidInput, match="name of a partition"):
            private().parts(2, name=name)


def test_files_written_after_the_split_are_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(frame()), path)
    data = private(path)
    part = data.parts(2, name="halves")[0]
    part.ask(MEAN, epsilon=0.1)
    pq.write_table(pa.table(frame(999, seed=1)), path)
    for _ in range(2):
        data.ask(MEAN, epsilon=0.1)  # the whole data is as it is now
        with pytest.raises(InvalidInput, match="open the data again under a new version="):
            part.ask(vt.BoundedSum(lambda block: block.features, 4, 2.0), epsilon=0.1)
    assert data.budget.n_questions == 2
    path.unlink()
    with pytest.raises(InvalidInput, match="Nothing was charged"):
        part.ask(vt.BoundedSum(lambda block: block.features, 4, 2.0), epsilon=0.1)


def test_nothing_about_a_part_says_how_many_rows_it_has():
    """Two datasets of different sizes: the same public face, the same bill but for times and digests."""
    told = []
    for count in (50, 1000):
        data = private(frame(count))
        parts = data.parts(3, name="thirds")
        for part in parts:
            part.ask(MEAN, epsilon=0.1)
        statement = data.budget
        bodies = [dict(entry.body) for entry in statement.entries if entry.kind != "released"]
        told.append((repr(parts), bodies, statement.spent, statement.parts, str(parts[0].quote(MEAN, epsilon=0.1))))
    assert told[0] == told[1]


def test_the_bill_shows_parts_and_adds_up():
    data = private()
    first, second = data.parts(2, name="halves")
    for where, mu in ((data, 0.1), (first, 0.2), (second, 0.1), (second, 0.15)):
        where.ask(vt.BoundedSum(lambda block: block.features, 4, 2.0, label="mean"), mu=mu)
    bill = data.budget.bill()
    assert [line.what for line in bill.lines] == [
        "mean",
        "mean (part 1 of 2 of 'halves')",
        "mean (part 2 of 2 of 'halves')",
        "mean (part 2 of 2 of 'halves')",
    ]
    assert [line.part for line in bill.lines] == ["", "part 1 of 2 of 'halves'", *["part 2 of 2 of 'halves'"] * 2]
    assert bill.lines[2].share == bill.lines[3].share == 0
    assert bill.lines[1].so_far == bill.lines[3].so_far == bill.spent_epsilon
    spent, capacity = data.budget.spent, data.budget.capacity
    assert sum(line.share for line in bill.lines) == pytest.approx(spent.pico_mu_squared / capacity.pico_mu_squared)


def test_the_command_line_shows_parts(tmp_path):
    from typer.testing import CliRunner

    from vitrail.cli.app import app

    path = tmp_path / "ledger.db"
    first, second = private(ledger=path).parts(2, name="halves")
    first.ask(MEAN, epsilon=0.2)
    second.ask(MEAN, epsilon=0.1)
    shown = CliRunner().invoke(app, ["budget", str(path)]).output
    assert "part       1 of 2 of 'halves': epsilon 0.2, up to" in shown
    assert "part       2 of 2 of 'halves': epsilon 0.1, up to" in shown
    listed = CliRunner().invoke(app, ["ledger", "entries", str(path)]).output
    assert "part 2 of 2 of 'halves'" in listed
    assert CliRunner().invoke(app, ["ledger", "verify", str(path)]).exit_code == 0


# --- keeping ----------------------------------------------------------------------------------------------------------


def test_what_is_kept_belongs_to_analyst_dataset_version_and_part(tmp_path):
    same = {"ledger": tmp_path / "ledger.db", "account": "all", "analyst": "alice"}
    private(**same).keep("notes", b"mine")
    assert private(**same).kept("notes") == b"mine"
    for other in ({"analyst": "bob"}, {"version": "2"}, {"name": "copy"}, {"n_rows_public": 999}):
        assert private(**{**same, **other}).kept("notes") is None
    part = private(**same).parts(2, name="halves")[0]
    assert part.kept("notes") is None
    part.keep("notes", b"the part's")
    assert private(**same).parts(2, name="halves")[0].kept("notes") == b"the part's"
    assert private(**same).parts(2, name="halves")[1].kept("notes") is None
    assert private(**same).budget.spent == vt.Cost()
    for name in ("", "x" * 101, 3):
        with pytest.raises(InvalidInput, match="the name to keep something under"):
            part.keep(name, b"")


def test_a_part_is_described_by_plain_facts():
    part = private().parts(2, name="halves")[1].part
    assert part == Part(part.partition, "halves", 1, 2)
