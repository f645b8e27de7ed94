"""The tables on the service, from benchmarks/results/serve.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from page_tables import Lines, Tables, held_to, how, rows_of, table

HEADLINE = {
    "overspend": ("granted beyond what fits, SQLite and PostgreSQL together", "0", "{:.0f}"),
    "lost": ("answers lost in all kills", "0", "{:.0f}"),
    "double_charged": ("charged twice", "0", "{:.0f}"),
    "free_answers": ("answered without a charge", "0", "{:.0f}"),
    "explain_per_second": ("explanations from a pane, everybody new", "at least 25 a second", "{:.0f} a second"),
    "stored_per_second": ("pages and explanations asked before", "at least 200 a second", "{:.0f} a second"),
    "charges_per_second": ("charges, PostgreSQL, 32 accounts", "at least 300 a second", "{:.0f} a second"),
    "memory_growth": ("memory after 10 000 requests over that after half of them", "flat", "{:.2f} x"),
}


def timing() -> Lines:
    """By slot: what a clock tells about a failing row."""
    lines = [
        (
            "answers leave when they are ready" if row["slot_seconds"] == 0 else f"slots of {row['slot_seconds']:g} s",
            row["compared"],
            f"{row['ms_without']:.0f} ms",
            f"{row['ms_with']:.0f} ms",
            f"{row['advantage']:.2f}",
        )
        for row in rows_of("serve", "timing")
    ]
    return table(("", "compared", "median time without", "median time with", "advantage of the best guess"), lines)


def cap() -> Lines:
    """By ledger: attempts and what was granted."""
    lines = [
        (_name(row), row["attempts"], row["granted"], row["refused"], f"{row['seconds']:.0f} s")
        for row in rows_of("serve", "cap")
    ]
    return table(("ledger", "attempts", "granted", "refused", "time"), lines)


def killed() -> Lines:
    """By ledger: kills, and what became of answers and charges."""
    lines = [
        (_name(row), row["kills"], row["answers"], row["lost"], row["double_charged"], row["free_answers"])
        for row in rows_of("serve", "killed")
    ]
    return table(("ledger", "kills", "answers", "lost", "charged twice", "free"), lines)


def _name(row: Mapping[str, Any]) -> str:
    return {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[str(row["ledger"])]


TABLES: Tables = {
    "serve.headline": lambda: held_to("serve", HEADLINE),
    "serve.timing": timing,
    "serve.cap": cap,
    "serve.killed": killed,
    "serve.how": lambda: how("serve", "cap", "killed", "speed", "charges", "memory", "timing"),
}
