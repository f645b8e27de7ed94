"""The tables on the house itself, from benchmarks/results/house.json."""

from __future__ import annotations

from page_tables import Lines, Tables, rows_of, table


def walks() -> Lines:
    keys = ("journey", "modules", "room_changes", "first_modules", "first_room_changes")
    columns = ("journey", "modules", "room changes", "modules, first drawing", "room changes, first drawing")
    return table(columns, [tuple(row[key] for key in keys) for row in rows_of("house", "walks")])


def rooms() -> Lines:
    keys = ("room", "modules", "code_lines")
    return table(("room", "modules", "code lines"), [tuple(row[key] for key in keys) for row in rows_of("house", "rooms")])


TABLES: Tables = {"house.walks": walks, "house.rooms": rooms}
