"""Tables by their names: no queries, no secrets."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import postgresql_server
import vitrail as vt
from vitrail.errors import InvalidInput, LedgerRolledBack, SchemaError
from vitrail.vault.rows.tables import quoted

SECRETS = ("s3cret", "zq%40xv", "zq@xv", "zq/xv", "zq?xv", "zq#xv", "zq:xv", "zqü", "12#34", "zq xv")
UNIT = vt.Schema({"x": vt.Numeric(0, 1), 'odd"; DROP TABLE t; --': vt.Numeric(0, 1)})
SUM = vt.BoundedSum(lambda block: block.features, 2, 2.0)

NO_NAMES = [
    "a; drop", "select * from t", "SELECT", "t LIMIT 10", "t--", "t/*x*/", 't"', "t'", "(select 1)", "t,u", "a.b.c", ".t",
    "t.", "", " t", "1t", "a-b", "t\n", "t\0", "t@h", "read_csv('x')", "a..b", 3, b"t", None,
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NO_NAMES if name != "SELECT"])
@pytest.mark.parametrize("where", ["duckdb:///bank.duckdb", "postgresql://host/db"])
def test_what_is_no_name_is_refused(where, name):
    with pytest.raises(InvalidInput, match=r"table is named|has no name"):
        vt.Table(where, name)


def test_names_have_as_many_parts_as_their_kind():
    for name in ("t", "a.b; drop"):
        with pytest.raises(InvalidInput, match=r"bank\.customers"):
            vt.Table("iceberg:///catalog.db", name)
    with pytest.raises(InvalidInput, match="is its folder"):
        vt.Table("delta:///folder", "t")
    assert vt.Table("iceberg:///catalog.db", "a.b.c").parts == ("a", "b", "c")
    assert vt.Table("duckdb:///x", "select").parts == ("main", "select")
    assert vt.Table("postgresql://host/db", "t").parts == ("public", "t")
    assert vt.Table("delta:///folder").parts == ()


@pytest.mark.parametrize(
    "where",
    [
        "",
        "bank.duckdb",
        "mysql://host/db",
        "duckdb://bank.duckdb",
        "duckdb:///",
        "duckdb:///x?access_mode=write",
        "duckdb:///x#y",
        "postgresql://host/db?options=-csearch_path",
        "postgresql://host/db#t",
        "postgresql://ho st/db",
        "file:///x",
        7,
        None,
    ],
)
def test_what_is_no_address_is_refused(where):
    with pytest.raises(InvalidInput, match="address"):
        vt.Table(where, "t")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "form",
    [
        "postgresql://clerk:{}@host:5433/db",
        "postgresql://clerk@host/db?password={}",
        "postgresql://h/d?sslpassword={}&port=1",
    ],
)
def test_a_password_is_shown_nowhere(secret, form):
    """Nor any piece of one that was not escaped, and is refused or read as something else."""
    shown = []
    address = form.format(secret)
    for make in (
        lambda: vt.Table(address, "t"),
        lambda: vt.Table.from_text(address + "#t"),
        lambda: vt.Table.from_text(address),
        lambda: vt.Table(address, address),
    ):
        try:
            table = make()
            shown += [repr(table), str(table), table.to_text(), table.place, table.where, f"{table}"]
            assert table.address == address
        except InvalidInput as error:
            shown.append(str(error))
    assert len(shown) >= 4
    assert not [text for text in shown for piece in re.split("[@/?#: ]", secret) if piece in text]


def test_texts_and_back(tmp_path):
    for table in (
        vt.Table("duckdb:///bank.duckdb", "customers"),
        vt.Table("delta:///lake/customers"),
        vt.Table("iceberg:////catalog.db?catalog=prod", "bank.customers"),
        vt.Table("postgresql://clerk:secret@host:5433/db?sslmode=require", "public.customers"),
    ):
        again = vt.Table.from_text(table.to_text())
        assert again == table
        assert hash(again) == hash(table)
        assert again.place == table.place
        assert repr(copy.copy(table)) == repr(pickle.loads(pickle.dumps(table))) == repr(table)
    assert vt.Table("iceberg:///c.db?catalog=prod", "a.b").catalog == "prod"
    assert vt.Table("iceberg:///c.db", "a.b").catalog == "default"
    inside = vt.Table.from_text("duckdb:///bank.duckdb#t", folder=tmp_path)
    assert inside.address == str(tmp_path / "bank.duckdb")
    assert inside.to_text() == "duckdb:///bank.duckdb#t"


def test_the_same_table_has_the_same_place_whoever_asks():
    place = vt.Table("postgresql://host/db", "t").place
    assert place == vt.Table("postgresql://other:secret@host/db?connect_timeout=3", "public.t").place
    assert place != vt.Table("postgresql://host/db", "other.t").place
    assert place != vt.Table("postgresql://host2/db", "t").place
    assert vt.Table("duckdb:///x", "t").place == vt.Table("duckdb:///./y/../x", "main.t").place


def test_a_path_stays_where_it_was_when_the_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = vt.Table("duckdb:///bank.duckdb", "t")
    monkeypatch.chdir("/")
    assert table.address == str(tmp_path / "bank.duckdb")


def test_identifiers_are_quoted():
    assert quoted('a"b', "c") == '"a""b"."c"'


def made(path):
    with duckdb.connect(path) as connection:
        connection.execute('CREATE TABLE t AS SELECT 0.5 AS x, 1.0 AS "odd""; DROP TABLE t; --" FROM range(100)')
    return vt.Table(f"duckdb:///{path}", "t")


def opened(rows, ledger="memory", **options):
    options = {"name": "rows", "n_rows_public": 100, "budget": vt.Budget(99, 1e-6), **options}
    return vt.PrivateData(rows, UNIT, ledger=ledger, **options)


def test_odd_columns_are_columns(tmp_path):
    table = made(tmp_path / "bank.duckdb")
    for _ in range(2):
        assert abs(opened(table).ask(SUM, mu=1.0).value - [50, 100]).max() < 15


def test_a_table_that_is_gone_or_has_other_columns_is_noticed_before_the_charge(tmp_path):
    path = tmp_path / "bank.duckdb"
    data = opened(made(path))
    data.ask(SUM, mu=1.0)
    spent = data.budget.spent
    with duckdb.connect(path) as connection:
        connection.execute("ALTER TABLE t RENAME x TO y")
    with pytest.raises(SchemaError, match=r"Table\(where='duckdb:.*', name='t'\) has no column 'x'"):
        data.ask(SUM, mu=1.0)
    with duckdb.connect(path) as connection:
        connection.execute("ALTER TABLE t RENAME y TO x")
        connection.execute("ALTER TABLE t ALTER x TYPE INTERVAL USING INTERVAL 1 DAY")
    with pytest.raises(SchemaError, match="'x' has dtype"):
        data.ask(SUM, mu=1.0)
    with duckdb.connect(path) as connection:
        connection.execute("DROP TABLE t")
    with pytest.raises(InvalidInput, match="cannot be opened"):
        data.ask(SUM, mu=1.0)
    path.unlink()
    with pytest.raises(InvalidInput, match="there is no file"):
        data.ask(SUM, mu=1.0)
    assert data.budget.spent == spent


@pytest.mark.parametrize(
    ("where", "name", "words"),
    [
        ("duckdb:///{}/none.duckdb", "t", "there is no file"),
        ("duckdb:///{}/text", "t", "cannot be opened"),
        ("delta:///{}/none", None, "there is no folder"),
        ("delta:///{}", None, "Delta table"),
        ("iceberg:///{}/none.db", "a.t", "there is no file"),
        ("iceberg:///{}/text", "a.t", "cannot be opened"),
        ("iceberg:///{}/empty", "a.t", "cannot be opened"),
    ],
)
def test_what_is_not_there_is_told_in_words_of_ours_and_not_made(tmp_path, where, name, words, capfd):
    (tmp_path / "text").write_text("Ada earns 61.0625")
    (tmp_path / "empty").touch()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InvalidInput, match=words) as caught:
        opened(vt.Table(where.format(tmp_path), name))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert capfd.readouterr() == ("", "")


def test_an_account_knows_its_table_again(tmp_path, monkeypatch):
    monkeypatch.setenv("VITRAIL_STATE", str(tmp_path / "state"))
    table = made(tmp_path / "bank.duckdb")
    opened(table, ledger=tmp_path / "first.db").ask(SUM, mu=1.0)
    with pytest.raises(LedgerRolledBack, match=r"bank\.duckdb#main\.t"):
        opened(vt.Table(table.where, "main.t"), ledger=tmp_path / "second.db")


@pytest.mark.skipif(postgresql_server.missing() is not None, reason=str(postgresql_server.missing()))
def test_a_password_reaches_neither_ledger_nor_record_nor_errors(tmp_path, monkeypatch, capfd):
    import psycopg

    monkeypatch.setenv("VITRAIL_STATE", str(tmp_path / "state"))
    with postgresql_server.running() as address:
        address = address.replace("+psycopg", "")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS few")
            connection.execute('CREATE TABLE few AS SELECT 0.5 AS x, 0.5 AS "odd""; DROP TABLE t; --"')
        table = vt.Table(address + "&password=s3cret", "few")
        data = opened(table, ledger=tmp_path / "ledger.db")
        data.ask(SUM, mu=1.0)
    with pytest.raises(InvalidInput, match="cannot be opened") as caught:  # the server is gone
        data.ask(SUM, mu=1.0)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"#public.few" in content for content in written)
    for text in (*written, str(caught.value).encode(), repr(data).encode(), *map(str.encode, capfd.readouterr())):
        assert b"s3cret" not in text


def test_the_page_about_rows_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "rows.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "bank.duckdb").is_file()
