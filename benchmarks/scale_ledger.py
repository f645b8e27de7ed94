"""What a long ledger costs: a statement, a charge and the bill at 10^4, 10^5 and 10^6 entries.

    python benchmarks/scale_ledger.py     # a few minutes; needs about 2 GB in the temporary folder

A ledger file has one account, filled by bulk insert of a valid chain: questions as a recipe asks them, four entries each
(reserved, charged, released, finished), with right digests, running totals, look-ups and stored answers. A ledger of this
maker verifies (tests/test_benchmark_scale_ledger.py); how long that takes is measured up to 10^5 entries.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitrail.accounting import Cost, GaussianSum, JsonValue, event_to_json
from vitrail.accounting.guarantee import Budget
from vitrail.ledger import SqlLedger
from vitrail.ledger.entries import Entry, Kind, content_to_json, cost_to_json, utc_now
from vitrail.ledger.tables import (
    TABLES,
    AccountRow,
    AnalystRow,
    ChargeRow,
    ReleaseRow,
    ReservationRow,
    Row,
    SightingRow,
    pack,
    unpack,
)

ACCOUNT, ANALYST, BUDGET = "long", "alice", Budget(1.0, 1e-6)
EVENT = GaussianSum(1.0, 4000.0)
"""Cheap enough for a quarter of a million questions under the budget."""
PER_QUESTION, ANSWER = 4, b"stored"
SIZES = (10**4, 10**5, 10**6)
LONGEST_VERIFIED = 10**5
CALLS = 25


def make_ledger(path: Path, n_entries: int) -> None:
    """Write a ledger with one account whose chain has at least ``n_entries`` entries: whole questions."""
    with closing(SqlLedger(path)) as ledger:
        ledger.open_account(ACCOUNT, BUDGET, "add-remove")
    columns = ", ".join(TABLES[AccountRow].c.keys())
    with closing(sqlite3.connect(path)) as connection, connection:
        (opened,) = connection.execute(f"SELECT {columns} FROM {TABLES[AccountRow].name}")
        row = unpack(AccountRow, opened)
        n_questions = -((row.seq - n_entries) // PER_QUESTION)
        if not (spent := Cost(n_questions * EVENT.cost().pico_mu_squared)) <= row.capacity:
            raise ValueError(f"{n_questions} questions cost more than the budget holds")
        row = replace(row, spent=spent, n_questions=n_questions)
        for start in range(0, n_questions, 2500):
            rows: list[Row] = []
            for number in range(start, min(start + 2500, n_questions)):
                row = _question(row, number, rows)
            _write(connection, rows)
        _write(connection, [row, AnalystRow(ACCOUNT, ANALYST, spent)])


def _question(row: AccountRow, number: int, rows: list[Row]) -> AccountRow:
    """Append what one question of a recipe leaves in the tables; the account's row with its new head."""
    cost, recipe, key = EVENT.cost(), f"{number:064x}", f"{number:063x}f"
    asked: dict[str, JsonValue] = {"question": "bounded-sum", "size": 10, "label": f"question {number}"}
    price, reserved, charged = cost_to_json(cost), row.seq + 1, row.seq + 2
    paid = {"event": event_to_json(EVENT), "question": asked, "cost": price, "key": key, "reservation": reserved}
    back = cost_to_json(Cost())
    for kind, body in (
        ("reserved", {"analyst": ANALYST, "recipe": recipe, "question": asked, "cost": price, "counted": price}),
        ("charged", {"analyst": ANALYST, **paid}),
        ("released", {"of": charged, **content_to_json(ANSWER)}),
        ("finished", {"of": reserved, "cost": back, "counted": back}),
    ):
        row = _appended(row, kind, body, rows)
    rows.append(ReservationRow(ACCOUNT, reserved, ANALYST, recipe, None, Cost(), Cost(), "finished"))
    rows.append(ChargeRow(ACCOUNT, charged, ANALYST, key, recipe, None, cost))
    rows.append(ReleaseRow(ACCOUNT, charged, charged + 1, key, ANSWER))
    rows.append(SightingRow(ACCOUNT, charged, ANALYST))
    return row


def _appended(row: AccountRow, kind: Kind, body: dict[str, JsonValue], rows: list[Row]) -> AccountRow:
    raw = Entry(ACCOUNT, row.seq + 1, utc_now(), kind, row.head, body).raw()
    rows.append(raw)
    return replace(row, seq=raw.seq, head=raw.digest)


def _write(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    by_kind: dict[type, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(type(row), []).append(row)
    for kind, several in by_kind.items():
        names = TABLES[kind].c.keys()
        values = ", ".join(f":{name}" for name in names)
        insert = f"INSERT OR REPLACE INTO {TABLES[kind].name} ({', '.join(names)}) VALUES ({values})"
        connection.executemany(insert, map(pack, several))


def milliseconds(work: Callable[[], object], calls: int = CALLS) -> float:
    """The median of several calls."""
    took = []
    for _ in range(calls):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return round(1000 * statistics.median(took), 3)


@contextmanager
def _own_records(folder: Path) -> Iterator[None]:
    """Keep the record of how far the account has come with the ledger, not with the user's own."""
    before = os.environ.get("VITRAIL_STATE")
    os.environ["VITRAIL_STATE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["VITRAIL_STATE"]
        else:
            os.environ["VITRAIL_STATE"] = before


def measure_one(folder: Path, n_entries: int) -> dict[str, Any]:
    """One size: everything that a question or a look at the account does, and the walks over the whole chain."""
    path = folder / f"{n_entries}.db"
    start = time.perf_counter()
    with _own_records(folder / "state"):
        make_ledger(path, n_entries)
        made_s = time.perf_counter() - start
        with closing(SqlLedger(path, must_exist=True)) as ledger:
            start = time.perf_counter()
            statement = ledger.statement(ACCOUNT)
            first_s = time.perf_counter() - start
            row: dict[str, Any] = {
                "n_entries": statement.n_entries,
                "n_questions": statement.n_questions,
                "file_mb": round(path.stat().st_size / 1e6, 1),
                "made_s": round(made_s, 1),
                "first_statement_ms": round(1000 * first_s, 3),
                "statement_ms": milliseconds(lambda: ledger.statement(ACCOUNT)),
                "printed_ms": milliseconds(lambda: str(ledger.statement(ACCOUNT))),
                "accounts_ms": milliseconds(ledger.accounts),
                "bill_s": round(milliseconds(ledger.statement(ACCOUNT).bill, calls=1) / 1000, 2),
                "verify_s": None,
            }
            if n_entries <= LONGEST_VERIFIED:
                start = time.perf_counter()
                verdict = ledger.verify()
                row["verify_s"] = round(time.perf_counter() - start, 2)
                if not verdict.ok:
                    raise ValueError(f"the ledger does not hold: {verdict.problems[0]}")
            question: dict[str, JsonValue] = {"question": "bounded-sum", "size": 10}
            row["charge_ms"] = milliseconds(
                lambda: ledger.charge(ACCOUNT, analyst=ANALYST, event=EVENT, question=question, key=None)
            )
    path.unlink()
    return row


def measure(sizes: Sequence[int] = SIZES) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Headline, rows and how, as every benchmark has them."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure_one(Path(folder), size) for size in sizes]
    million = [row["statement_ms"] for size, row in zip(sizes, rows, strict=True) if size == 10**6]
    headline = {"statement_ms_1e6_entries": million[0]} if million else {}
    how = {
        "ledger": "a SQLite file with one account, filled by bulk insert of a valid chain, four entries a question",
        "statement_ms": f"wall time, median of {CALLS} calls of SqlLedger.statement; first_statement_ms after opening",
        "printed_ms": "statement and str() of it, which has the newest 50 lines of the bill",
        "charge_ms": f"median of {CALLS} charges, each on the disk before it returns",
        "bill_s": "Statement.bill(), all lines: reads, checks and adds up the whole chain",
        "verify_s": f"SqlLedger.verify(), up to {LONGEST_VERIFIED} entries",
    }
    return headline, rows, how


if __name__ == "__main__":
    names = ("headline", "rows", "how")
    print(json.dumps(dict(zip(names, measure(), strict=True)), indent=1))
