"""The tables on groups, from benchmarks/results/groups.json."""

from __future__ import annotations

from page_marks import stored
from page_tables import Lines, Tables, how, rows_of, table

DATA = ("adult", "compas", "heloc", "acs", "bike", "diabetes", "framingham", "german")
NAMES = {"adult": "Adult", "compas": "COMPAS", "heloc": "HELOC", "acs": "ACS", "german": "German credit"}


def headline() -> Lines:
    """By data: the worst of all choices of groups and prices."""
    figures = stored("groups")["headline"]
    lines = []
    for name in DATA:
        held, worst, between = (f"{figures[f'{name}_{key}']:.1%}" for key in ("held", "worst", "between_held"))
        widths = (f"{figures[f'{name}_{key}']:.2f} x" for key in ("width", "between_width"))
        lines.append((NAMES.get(name, name.title()), held, worst, between, *widths))
    head = ("data", "held", "worst number", "comparisons held", "width over the oracle's", "of comparisons")
    return table(head, lines)


def settings() -> Lines:
    """By data, groups and price."""
    lines = []
    for row in rows_of("groups", *DATA):
        first = (NAMES.get(row["data"], row["data"].title()), row["by"].replace(" x ", " and "), row["epsilon"])
        if row["refused"]:
            lines.append((*first, "refused", "", "", "", ""))
            continue
        shown = f"{row['shown']:.1f} of {row['groups']}"
        worst = f"{row['worst']:.1%}, {row['worst_cell'].replace('_', ' ')}"
        lines.append((*first, shown, f"± {row['half_width']:.2g}", f"{row['held']:.1%}", worst, f"{row['width']:.2f} x"))
    head = (
        "data",
        "by",
        "epsilon",
        "groups shown",
        "median band of selection rates",
        "held",
        "worst number",
        "width over the oracle's",
    )
    return table(head, lines)


TABLES: Tables = {
    "groups.headline": headline,
    "groups.settings": settings,
    "groups.how": lambda: how("groups", *DATA),
}
