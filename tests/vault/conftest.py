"""Ways into the vault that only its own tests take."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions
from vitrail.vault.rows.sources import open_rows

INDEXED = vt.Schema({"i": vt.Numeric(0, 999, integer=True)})


@pytest.fixture(scope="session")
def walk():
    """A pass over rows, without ledger or probe."""

    def make(rows, schema=INDEXED, *, block_rows=8, threads=1, n_rows_public=100, neighbours="add-remove", target=None):
        facts = PublicFacts(schema, target, n_rows_public, neighbours, block_rows, threads)
        return RowPass(open_rows(rows, schema), facts, Predictions(facts))

    return make


@pytest.fixture(scope="session")
def indexed():
    """Rows that are nothing but an index, and a pure function that looks their contribution up in a table."""

    def rows(order):
        return {"i": np.asarray(order, dtype=np.float64)}

    def lookup(*tables):
        def fn(block):
            index = block.column("i").astype(int)
            found = tuple(np.asarray(table)[index % len(table)] for table in tables)
            return found if len(found) > 1 else found[0]

        return fn

    return rows, lookup


@pytest.fixture(scope="session")
def private():
    """A private dataset with a generous budget, in memory."""

    def make(rows, schema=INDEXED, *, name="data", n_rows_public=100, budget=None, **options):
        budget = vt.Budget(60.0, 1e-6) if budget is None else budget
        options = {"ledger": "memory", **options}  # without it the first of a process warns, once
        return vt.PrivateData(rows, schema, name=name, n_rows_public=n_rows_public, budget=budget, **options)

    return make
