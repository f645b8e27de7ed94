"""The same rows count once and have one budget: however files are given, and whatever a dataset is called."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput, LedgerError, LedgerWarning

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
COUNT = vt.BoundedSum(lambda block: np.ones((len(block), 1)), 1, 1.0)


def private(rows, name="ones", ledger="memory", **options):
    facts = {"n_rows_public": 1, "budget": vt.Budget(20, 1e-6), "ledger": ledger}
    return vt.PrivateData(rows, UNIT, name=name, **(facts | options))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "rows" / "a.parquet")
    return tmp_path / "rows"


def count(rows):
    data = private(rows)
    return len(np.concatenate(list(data._PrivateData__rows.chunks(9))))


TWICE = {
    "a path twice": lambda folder: [folder / "a.parquet", folder / "a.parquet"],
    "a file and its folder": lambda folder: [folder / "a.parquet", folder],
    "a roundabout path": lambda folder: [folder / "a.parquet", folder / ".." / "rows" / "a.parquet"],
    "a folder with a symbolic link": lambda folder: (folder / "b.parquet").symlink_to(folder / "a.parquet") or folder,
    "a folder with a hard link": lambda folder: (folder / "b.parquet").hardlink_to(folder / "a.parquet") or folder,
    "a dataset of a path twice": lambda folder: ds.dataset([str(folder / "a.parquet")] * 2),
    "a union of datasets": lambda folder: ds.dataset([ds.dataset(folder), ds.dataset(folder)]),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_file_that_is_given_twice_is_refused(folder, name):
    rows = TWICE[name](folder)
    with pytest.raises(InvalidInput, match=r"given twice.* count twice"):
        private(rows)


@pytest.mark.parametrize("aside", ["_temporary/0", ".ipynb_checkpoints", "_delta_log", "part/_old"])
def test_what_a_folder_keeps_aside_is_no_row_of_it(folder, aside):
    (folder / aside).mkdir(parents=True)
    shutil.copy(folder / "a.parquet", folder / aside / "a.parquet")
    shutil.copy(folder / "a.parquet", folder / ".a.parquet")
    shutil.copy(folder / "a.parquet", folder / "_a.parquet")
    assert count(folder) == count(ds.dataset(folder)) == 1


def test_two_files_with_equal_rows_are_two_rows(folder):
    shutil.copy(folder / "a.parquet", folder / "b.parquet")
    assert count(folder) == 2


def test_a_column_in_the_names_of_folders_is_told(tmp_path):
    ds.write_dataset(pa.table({"x": [0.5, 1.0], "y": [1, 2]}), tmp_path / "hive", format="parquet",
                     partitioning=ds.partitioning(pa.schema([("y", pa.int64())]), flavor="hive"))  # fmt: skip
    schema = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Numeric(0, 5)})
    facts = {"name": "h", "n_rows_public": 2, "budget": vt.Budget(1, 1e-6), "ledger": "memory"}
    with pytest.raises(InvalidInput, match="partitioning='hive'"):
        vt.PrivateData(tmp_path / "hive", schema, **facts)
    vt.PrivateData(ds.dataset(tmp_path / "hive", partitioning="hive"), schema, **facts)


# One budget


def test_rows_that_another_account_pays_for_have_no_second_budget(folder, tmp_path):
    ledger = tmp_path / "l.db"
    private(folder, ledger=ledger).ask(COUNT, epsilon=1.0)
    for where in (ledger, tmp_path / "other.db"):
        with pytest.raises(LedgerError, match=r"second budget for them.*account='ones'.*Nothing was charged"):
            private(folder, name="renamed", ledger=where)
    assert not (tmp_path / "other.db").exists()
    again = private(folder, name="renamed", account="ones", ledger=ledger)
    assert again.budget.spent_epsilon == pytest.approx(1.0)


def test_whoever_names_a_second_account_is_told_that_the_two_add_up(folder, tmp_path):
    private(folder, ledger=tmp_path / "l.db").ask(COUNT, epsilon=1.0)
    with pytest.warns(LedgerWarning, match="what the two spend adds up"):
        private(folder, account="another", ledger=tmp_path / "l.db")
    private(folder, account="another", ledger=tmp_path / "l.db")  # which is known by then


def test_a_budget_that_is_forgotten_is_not_asked_about(folder, tmp_path):
    private(folder, ledger=tmp_path / "l.db").ask(COUNT, epsilon=1.0)
    assert private(folder, name="renamed").budget.spent_epsilon == 0


# A source that is gone costs nothing


def gone(file):
    file.unlink()


def other_columns(file):
    pq.write_table(pa.table({"y": [1.0]}), file)


@pytest.mark.parametrize("change", [gone, other_columns])
def test_a_source_that_is_gone_is_noticed_before_the_charge(folder, change):
    data = private(folder / "a.parquet")
    named = vt.BoundedSum(COUNT.fn, 1, 1.0, key="count")
    stored = data.ask(named, epsilon=1.0)
    spent = data.budget.spent_epsilon
    change(folder / "a.parquet")
    for ask in (
        lambda: data.ask(COUNT, epsilon=1.0),
        lambda: data.ask(vt.BoundedSum(COUNT.fn, 1, 1.0, key="another"), epsilon=1.0),
        lambda: vt.marginals(data, epsilon=1.0),
    ):
        with pytest.raises(InvalidInput):
            ask()
    assert data.budget.spent_epsilon == spent
    assert not data.budget.reservations
    assert data.ask(named, epsilon=1.0).value == stored.value  # what is stored needs no files
