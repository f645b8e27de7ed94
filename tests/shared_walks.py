"""Questions of every kind, and their exact sums by any engine: for tests of walks that are shared."""

import numpy as np
import pyarrow as pa

import vitrail as vt
from vitrail.vault.engines.choice import open_with_engine
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "city": vt.Categorical(["x", "y", "z"])})
N = 3000
BLOCK_ROWS = 64


def table(rows=N, seed=0):
    generator = np.random.default_rng(seed)
    columns = {"a": generator.random(rows), "b": generator.random(rows), "city": generator.choice(["x", "y", "z"], rows)}
    columns["a"][::97] = np.nan
    return pa.table(columns)


def near(distances):
    return np.exp(-distances)


QUESTIONS = {
    "bounded": vt.BoundedSum(lambda block: block.features, 5, 1.5),
    "counts": vt.CellCounts(lambda block: np.floor(block.values * [3, 4, 1]), (4, 5, 3)),
    "product": vt.ProductSum(lambda block: (block.features, block.features[:, :2]), (5,), (2,), (2.0,), (2.0,)),
    "gram": vt.GramSum(lambda block: block.features, 5, 1.0, row_norm=2.0, weight=near),
    "many": vt.GramSum(
        lambda block: block.features, 5, 1.0, row_norm=2.0, weight=near, centres=np.eye(5)[np.arange(10) % 5]
    ),
    "select": vt.Select(lambda block: block.features, 5, 1.0),
    "sample": vt.BoundedSum(lambda block: block.features, 5, 1.5, rate=0.3),
}


def facts(rows=N):
    return PublicFacts(SCHEMA, None, rows, "add-remove", BLOCK_ROWS)


def exact(rows, question, workers=1, **opened):
    """The exact sums of a question, by whoever walks over these rows."""
    source, engine = opened.get("source"), opened.get("engine")
    if source is None:
        source, engine = open_with_engine(rows, SCHEMA, None, workers)
    about = facts()
    predictions = Predictions(about)
    plan = question.plan(0.5, about)
    block_rows = question.probe(about, predictions)
    if engine is not None:
        block_rows = engine.prepare(plan, about, block_rows)
    walked = RowPass(source, about, predictions, engine)
    try:
        return (
            plan.scores(walked, block_rows) if question.kind == "select" else plan.exact_cells(walked, block_rows).tolist()
        )
    finally:
        if engine is not None and "engine" not in opened:
            engine.close()
