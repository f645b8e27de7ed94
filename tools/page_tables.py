"""What the makers of tables share: rows of a results file, a table's lines, what a benchmark says of how it was run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from page_marks import Row, number, stored

Lines = list[str]
Tables = Mapping[str, Callable[[], Sequence[str]]]


def rows_of(name: str, *parts: str) -> list[Row]:
    """The rows of some parts, in the order of the file."""
    return [row for row in stored(name)["rows"] if row["part"] in parts]


def table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> Lines:
    made = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return made + ["| " + " | ".join(number(cell) for cell in line) + " |" for line in lines]


def held_to(name: str, figures: Mapping[str, tuple[str, ...]]) -> Lines:
    """Headline figures beside what they are held to; each has its words, its bar, and perhaps a format."""
    headline: Row = stored(name)["headline"]
    lines = []
    for key, (what, bar, *form) in figures.items():
        if key in headline:
            lines.append((what, bar, form[0].format(headline[key]) if form else headline[key]))
    return table(("figure", "held to", "measured"), lines)


def how(name: str, *parts: str) -> Lines:
    """What the file says of how it came about: of these parts, or of everything."""
    said = {key: text for key, text in stored(name)["how"].items() if not isinstance(text, list) and key != "seconds"}
    if parts:
        said = {key: said[key] for key in parts}
    return ["How: " + "; ".join(f"*{key}*: {in_words(text)}" for key, text in said.items()) + "."]


def in_words(text: object) -> str:
    if isinstance(text, Mapping):
        return ", ".join(f"{key} {value}" for key, value in text.items())
    return str(text)
