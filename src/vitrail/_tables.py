"""Tables of texts for notebooks and terminals, for the rooms that know nothing of drawing.

Whatever is not ours in them (names of columns, analysts, questions) is escaped in HTML and made printable in text.
"""

from __future__ import annotations

import html
from collections.abc import Sequence


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], above: Sequence[str] = ()) -> str:
    """A table under some sentences, for a notebook; no header where its texts are empty.

    Examples
    --------
    >>> html_table(("column", "kind"), [("<age>", "numeric")])
    '<table><tr><th>column</th><th>kind</th></tr><tr><td>&lt;age&gt;</td><td>numeric</td></tr></table>'
    """
    head = _row(header, "th") if any(header) else ""
    body = "".join(_row(row, "td") for row in rows)
    said = "".join(f"<p>{html.escape(text)}</p>" for text in above)
    return said + (f"<table>{head}{body}</table>" if body else "")


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in cells) + "</tr>"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], above: Sequence[str] = ()) -> str:
    """The same for a terminal: columns side by side, under their names.

    Examples
    --------
    >>> print(text_table(("stage", "reads"), [("x values", "rows"), ("explanation", "x values")]))
    stage        reads
    x values     rows
    explanation  x values
    """
    lines = [[printable(text) for text in row] for row in (header, *rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*map(printable, above), *table])


def printable(text: str) -> str:
    r"""The text without control characters and the like, for terminals: names may come from anywhere.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
