"""Rows on Spark: the bits of one process under any partitioning and with killed tasks; nothing private in its logs."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import spark_session
import vitrail as vt
from shared_walks import BLOCK_ROWS, QUESTIONS, SCHEMA, N, exact, facts, table
from vitrail.errors import InvalidInput, SchemaError, Unanswered
from vitrail.vault.engines.choice import open_with_engine
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.engines.spark import _bytes
from vitrail.vault.owner.as_given import columns_of, tables_of
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions

pytestmark = pytest.mark.skipif(spark_session.missing() is not None, reason=str(spark_session.missing()))

ROWS = table()
EXACT = [kind for kind in QUESTIONS if kind != "sample"]
ODD = 0.123456
SECRET = "4711.081511"
"""A value that some rows have, as it is written; nobody else writes it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def session(folder):
    with spark_session.running(folder) as running:
        yield running


@pytest.fixture(scope="module")
def partitionings(session, folder):
    """The same rows, cut in six ways."""
    for name, count, group in (("one", 1, N), ("groups", 1, 100), ("seven", 7, 200), ("uneven", 3, 50)):
        (folder / name).mkdir()
        edges = [0, 10, 2500, N] if name == "uneven" else [N * i // count for i in range(count + 1)]
        for number in range(count):
            some = ROWS.slice(edges[number], edges[number + 1] - edges[number])
            pq.write_table(some, folder / name / f"{number}.parquet", row_group_size=group)
    session.conf.set("spark.sql.files.openCostInBytes", "1")
    frames = {name: session.read.parquet(str(folder / name)) for name in ("one", "groups", "seven", "uneven")}
    session.conf.set("spark.sql.files.maxPartitionBytes", "8000")
    frames["many parts"] = session.read.parquet(str(folder / "groups"))
    assert open_with_engine(frames["many parts"], SCHEMA, None, 1)[0].parts() > 4
    session.conf.unset("spark.sql.files.maxPartitionBytes")
    frames["one"].write.orc(str(folder / "orc"))
    frames["orc"] = session.read.orc(str(folder / "orc"))
    frames["joined parts"] = session.read.parquet(str(folder / "seven")).coalesce(2)
    return frames


CASES = [("uneven", kind) for kind in EXACT] + [
    (way, "gram") for way in ("one", "groups", "seven", "many parts", "joined parts", "orc")
]


@pytest.mark.parametrize(("way", "kind"), CASES)
def test_spark_has_the_bits_of_one_process(partitionings, way, kind):
    assert exact(partitionings[way], QUESTIONS[kind]) == exact(ROWS, QUESTIONS[kind])


def test_spark_reads_values_of_any_type_as_files_are_read(session, folder):
    """Dates, moments in a session of another time zone, decimals, small and large whole numbers, texts of numbers, nulls."""
    moments = np.array(["2024-03-10T23:30", "1999-12-31T00:15", "NaT", "2024-03-11T00:00"], dtype="datetime64[us]")
    columns = {
        "day": pa.array([1, 19_000, None, 3], pa.date32()),
        "moment": pa.array(moments, pa.timestamp("us", "UTC")),
        "price": pa.array(["1.25", "99.99", None, "0.00"]).cast(pa.decimal128(10, 2)),
        "small": pa.array([1, -5, None, 100], pa.int8()),
        "large": pa.array([2**53 + 1, -(2**60), None, 0], pa.int64()),
        "single": pa.array([0.1, np.nan, None, 1e30], pa.float32()),
        "yes": pa.array([True, False, None, True]),
        "text": pa.array(["a", "b", None, "other"]),
    }
    schema = vt.Schema(
        {
            **{name: vt.Numeric(-1e20, 1e20, missing=0) for name in columns if name not in ("yes", "text")},
            "yes": vt.Categorical([False, True], missing=True),
            "text": vt.Categorical(["a", "b"], missing="a"),
        }
    )
    pq.write_table(pa.table(columns), folder / "types.parquet")
    session.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    about = PublicFacts(schema, None, 4, "add-remove", 8)
    question = vt.ProductSum(
        lambda block: (np.ones((len(block), 1)), np.arctan(block.values) / 4), (1,), (8,), (1.0,), (9.0,)
    )
    plan, sums = question.plan(0.5, about), []
    for rows in (folder / "types.parquet", session.read.parquet(str(folder / "types.parquet"))):
        source, engine = open_with_engine(rows, schema, None, 1)
        predictions = Predictions(about)
        question.probe(about, predictions)
        if engine is not None:
            engine.prepare(plan, about, 8)
        sums.append(plan.exact_cells(RowPass(source, about, predictions, engine), 8).tolist())
    session.conf.unset("spark.sql.session.timeZone")
    assert sums[0] == sums[1]
    assert len(set(sums[0])) > 4


def test_a_task_that_is_killed_runs_again_and_no_row_counts_twice(partitionings, tmp_path):
    mark = tmp_path / "killed"

    def deadly(block):
        if (block.column("b") > 0.5).any() and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block.features

    about = facts()
    source, engine = open_with_engine(partitionings["seven"], SCHEMA, None, 1)
    plan = vt.BoundedSum(deadly, 5, 1.5).plan(0.5, about)
    mark.touch()  # while public rows are looked at
    engine.prepare(plan, about, BLOCK_ROWS)
    found = []
    for rate in (None, 0.5):
        walked = RowPass(source, about, Predictions(about), engine).sampled(rate)
        for killed in (False, True):
            if killed:
                mark.unlink()
            found.append(plan.cells_of(walked.totals(plan, BLOCK_ROWS)).tolist())
            assert mark.exists(), "nobody was killed"
    assert found[0] == found[1] == exact(ROWS, vt.BoundedSum(lambda block: block.features, 5, 1.5))
    assert found[2] == found[3] != found[0]


def private(frame, **options):
    options = {"n_rows_public": N, "block_rows": BLOCK_ROWS, **options}
    return vt.PrivateData(frame, SCHEMA, name="there", budget=vt.Budget(9, 1e-6), ledger="memory", **options)


def test_private_data_on_spark_answers_and_an_explainer_needs_nothing_else(partitionings):
    data = private(partitionings["seven"])
    plain = vt.BoundedSum(lambda block: np.ones((len(block), 1)), 1, 1.0)
    sampled = vt.BoundedSum(lambda block: np.ones((len(block), 1)), 1, 1.0, rate=0.5)
    assert abs(data.ask(plain, epsilon=2.0).value[0] - N * 96 / 97) < 60
    assert abs(data.ask(sampled, epsilon=2.0).value[0] - N * 96 / 97) < 700
    assert abs(sum(part.ask(plain, epsilon=2.0).value[0] for part in data.parts(2, name="halves")) - N * 96 / 97) < 120
    made = vt.marginals(data, epsilon=2.0)
    assert abs(made.counts["city"].sum() - N * 96 / 97) < 120


def test_a_table_by_its_name(session, partitionings):
    partitionings["one"].write.mode("overwrite").saveAsTable("customers")
    named = vt.Table("spark:///", "customers")
    assert named == vt.Table.from_text(named.to_text())
    source, _ = open_with_engine(named, SCHEMA, None, 1)
    assert source.place == "spark:///#customers"
    assert exact(named, QUESTIONS["bounded"]) == exact(ROWS, QUESTIONS["bounded"])
    session.sql("create or replace temporary view shown as select a, b, city from customers")
    assert exact(vt.Table("spark:///", "shown"), QUESTIONS["bounded"]) == exact(ROWS, QUESTIONS["bounded"])
    assert list(columns_of(named)) == list(SCHEMA.names)  # for the owner's desk
    assert sum(len(some) for some in tables_of(named)) == N
    with pytest.raises(InvalidInput, match="see that Spark's session has a table"):
        private(vt.Table("spark:///", "nowhere"))


def test_a_declaration_names_a_spark_table(session, partitionings, tmp_path):
    partitionings["one"].write.mode("overwrite").saveAsTable("declared")
    text = f"""format = 1
[dataset]
name = "declared"
source = "spark:///"
table = "declared"
rows = {N}
[budget]
epsilon = 5.0
delta = 1e-6
ledger = "ledger.db"
[columns]
a = {{ kind = "number", low = 0, high = 1 }}
b = {{ kind = "number", low = 0, high = 1 }}
city = {{ kind = "levels", levels = ["x", "y", "z"] }}
"""
    (tmp_path / "there.toml").write_text(text)
    data = vt.open(tmp_path / "there.toml")
    assert abs(data.ask(vt.BoundedSum(lambda block: block.features, 5, 1.5), epsilon=4.0).value[2:].sum() - N) < 200


def test_queries_are_refused(session, partitionings, folder):
    frame, path = partitionings["seven"], str(folder / "seven")
    queries = {
        "Limit": frame.limit(5),
        "Filter": frame.filter("a > 0"),
        "Repartition": frame.repartition(3),
        "Union": frame.union(frame),
        "Sample": frame.sample(0.5),
        "Join": frame.join(frame.select("a").distinct(), "a"),
        "Project": frame.selectExpr("a + 1 as a", "b", "city"),
    }
    for kind, query in queries.items():
        with pytest.raises(InvalidInput, match=rf"the Spark data frame is a query \(\w*{kind}.*write its result"):
            private(query)
    for twice in ([path, path], [path, f"{path}/0.parquet"]):
        with pytest.raises(InvalidInput, match="given twice"):
            private(session.read.parquet(*twice))
    pa.csv.write_csv(ROWS, folder / "rows.csv")
    with pytest.raises(InvalidInput, match="something else than Parquet or ORC"):
        private(session.read.csv(str(folder / "rows.csv"), header=True, inferSchema=True))


def test_other_things_that_spark_cannot_do_are_refused_before_the_charge(session, partitionings, folder, monkeypatch):
    frame = partitionings["seven"]
    with pytest.raises(InvalidInput, match="person= needs a person's rows together"):
        private(frame, person="city")
    with pytest.raises(InvalidInput, match="which has its own; leave it out"):
        private(frame, workers=2)
    with pytest.raises(SchemaError, match="has no column 'b'"):
        private(frame.select("a", "city"))
    with pytest.raises(InvalidInput, match=r"is a query \(LogicalRDD\)"):
        private(session.createDataFrame([(0.5, 0.5, "x")], "a double, b double, city string"))
    pq.write_table(pa.table({"a": [0.5], "b": [[1.0]], "city": ["x"]}), folder / "lists.parquet")
    with pytest.raises(SchemaError, match="'b'"):
        private(session.read.parquet(str(folder / "lists.parquet")))
    data = private(frame)
    with pytest.raises(InvalidInput, match="needs the rows of a group together"):
        data.ask(vt.GroupedSum(lambda group: 0.0, 1, low=0, high=1, isolation="none"), epsilon=0.1)
    with monkeypatch.context() as patch:
        patch.setattr("vitrail.vault.engines.spark._bytes", lambda text: 100)
        with pytest.raises(InvalidInput, match=r"spark\.driver\.maxResultSize"):
            data.ask(QUESTIONS["bounded"], epsilon=0.1)
    with pytest.raises(InvalidInput, match=r"cannot be asked on Spark .*RuntimeError: no license here"):
        data.ask(vt.BoundedSum(Elsewhere(os.getpid(), "raise"), 5, 1.5), epsilon=0.1)
    assert data.budget.spent_epsilon == 0


class Elsewhere:
    """A function that is itself in the process that made it, and something else in others."""

    def __init__(self, here, what):
        self.here, self.what = here, what

    def __call__(self, block):
        if os.getpid() != self.here and self.what == "raise":
            raise RuntimeError("no license here")
        if os.getpid() != self.here and self.what == "own bits":
            time.sleep(0.5)  # so that another process is busy with the other task
            return block.features * (1 + os.getpid() * 2.0**-40)
        return block.features


def weight_of_the_process(distances):
    time.sleep(0.2)
    return np.exp(-distances) * (1 - os.getpid() * 2.0**-50)


@pytest.mark.parametrize(
    "question",
    [
        vt.BoundedSum(Elsewhere(os.getpid(), "own bits"), 5, 1.5),
        vt.GramSum(lambda block: block.features, 5, 1.0, row_norm=2.0, weight=weight_of_the_process),
    ],
    ids=["function", "weight"],
)
def test_a_cluster_whose_processes_differ_in_the_last_bits_is_refused(partitionings, question):
    data = private(partitionings["seven"])
    with pytest.raises(InvalidInput, match="do not give the same bits on public rows"):
        data.ask(question, epsilon=0.1)
    assert data.budget.spent_epsilon == 0


class _Part:
    def __init__(self, share, digest="same"):
        self.share, self.digest, self.total = share, digest, b""


@pytest.mark.parametrize("made", [[0, 1, 1], [0, 2], [0, 1, 2, 2], []])
def test_a_part_that_is_missing_or_comes_twice_is_no_answer(partitionings, made):
    _, engine = open_with_engine(partitionings["seven"], SCHEMA, None, 1)
    with pytest.raises(Unanswered, match="missing or came twice"):
        engine._merged([_Part(share) for share in made], 3, None, None)
    with pytest.raises(Unanswered, match="same bits"):
        engine._merged([_Part(0), _Part(1, "other"), _Part(2)], 3, None, None)


def test_no_value_and_no_message_about_a_row_is_in_the_logs(session, folder, capfd):
    """A model that fails, prints and kills on private rows, with a secret in all that it says: Spark writes none of it."""
    schema = vt.Schema({"a": vt.Numeric(0, 9999), "b": vt.Numeric(0, 1), "city": vt.Categorical(["x", "y", "z"])})
    secret = np.where(np.arange(N) % 50 == 3, float(SECRET), 5.0)
    (folder / "secret").mkdir()
    pq.write_table(ROWS.set_column(0, "a", pa.array(secret)), folder / "secret" / "rows.parquet")
    frame = session.read.parquet(str(folder / "secret"))
    data = vt.PrivateData(
        frame, schema, name="logs", n_rows_public=N, budget=vt.Budget(5, 1e-6), ledger="memory", block_rows=BLOCK_ROWS
    )

    def speaks(block):
        found = block.column("a")
        if (found == float(SECRET)).any():
            print(f"I saw {found[found == float(SECRET)][0]}", flush=True)
            os.write(2, f"I saw {SECRET}".encode())
            raise ValueError(f"{SECRET} is too large")
        return block.features

    def kills(block):
        if (block.column("a") == float(SECRET)).any():
            os.environ["SEEN"] = SECRET
            os.kill(os.getpid(), signal.SIGKILL)
        return block.features

    release = data.ask(vt.BoundedSum(speaks, 5, 1.5), epsilon=2.0)
    assert abs(release.value[2:].sum() - N * 49 / 50) < 100  # what fails counts zero
    with pytest.raises(Unanswered, match="Spark did not finish") as told:
        data.ask(vt.BoundedSum(kills, 5, 1.5), epsilon=0.1)
    assert told.value.__cause__ is told.value.__context__ is None
    heard = capfd.readouterr()
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    logged = "".join(path.read_text() for path in (folder / "events").iterdir())
    kinds = {json.loads(line)["Event"] for line in logged.splitlines()}
    assert "SparkListenerTaskEnd" in kinds
    assert "crashed" in logged  # it did see the killed tasks
    for place in (logged, heard.out, heard.err, str(told.value)):
        assert SECRET not in place
        assert "too large" not in place
        assert "I saw" not in place


def test_sizes_as_spark_writes_them():
    assert [_bytes(text) for text in ("1g", "512m", "100", "0", "2GB", "odd")] == [2**30, 2**29, 100, 0, 2**31, 0]


def test_gone_files_are_told_before_the_charge(session, tmp_path):
    pq.write_table(ROWS, tmp_path / "gone.parquet")
    data = private(session.read.parquet(str(tmp_path / "gone.parquet")))
    Path(tmp_path / "gone.parquet").unlink()
    with pytest.raises(InvalidInput, match="are gone"):
        data.ask(QUESTIONS["bounded"], epsilon=0.1)
    assert data.budget.spent_epsilon == 0
