"""Figures in a page: where they come from, and which numbers come from nowhere.

A page is Markdown with marks in HTML comments, which no reader of the rendered page sees:

    It loses <!--= local statistics data=acs epsilon=0.1 gain .0f -->595<!--/--> times less.

The text between a mark that begins with ``=`` and ``<!--/-->`` is written by ``tools/make_docs_tables.py`` from
benchmarks/results/local.json. After ``=`` stand the file's name (``printed`` is benchmarks/papers/printed.json, what papers
print), then either a key of its headline, or a part, what tells one of its rows from the others, and a key of that row;
``a.b`` looks inside. Where several rows fit, ``least``, ``most`` or ``count`` stands before the key. ``/`` and a second such
reference divide (one key alone: of the same row). The last word may be a format of Python's. Long references stand at the
end of the page, as addresses of links do, and the text has their names:

    It loses <!--= acs_gain -->595<!--/--> times less.

    <!-- figures
    acs_gain: local statistics data=acs epsilon=0.1 gain .0f
    -->

A whole table is

    <!-- table: local.losses -->
    ...
    <!-- end -->

A number that was not measured is declared, with a reason: ``<!--chosen the default share-->12 %<!--/-->``, or ``printed``
(where a paper prints it), ``derived`` (by which test, derivation or arithmetic), ``example`` (made up to show something).
All other numbers that look measured (``unmarked``) are refused by tests/test_docs.py, in every page.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PRINTED = ROOT / "benchmarks" / "papers" / "printed.json"
Row = Mapping[str, Any]

DECLARED = ("chosen", "printed", "derived", "example")
LONGEST_DECLARED = 400
"""Characters between a declaring mark and its end: it says something about numbers, not about a page."""

DEFINED = re.compile(r"^<!-- figures\n(.*?)\n-->$", re.DOTALL | re.MULTILINE)
MARK = re.compile(rf"<!--(=|{'|'.join(DECLARED)})\s+((?:(?!-->).)*?)\s*-->(.*?)<!--/-->", re.DOTALL)
BLOCK = re.compile(r"<!-- table: ([\w.-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
FORMAT = re.compile(r"\+?,?(\.\d+)?[defg%]|str")
PICKS: dict[str, Callable[[list[Any]], Any]] = {"least": min, "most": max, "count": len}


class BadMark(ValueError):
    """A mark that cannot be followed; the message says which and why."""


# --- following a mark ----------------------------------------------------------------------------------------------------


@cache
def stored(name: str) -> dict[str, Any]:
    path = PRINTED if name == "printed" else RESULTS / f"{name}.json"
    if not path.exists():
        raise BadMark(f"there is no file {path.relative_to(ROOT)}")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def number(value: object) -> str:
    """As tables and pages print numbers by default: three digits, small and large ones with an exponent."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    assert isinstance(value, float)
    if value == 0:
        return "0"
    return f"{value:.1e}" if abs(value) < 0.01 or abs(value) >= 1e5 else f"{value:.3g}"


def inside(row: Row, key: str) -> Any:
    """``row[key]``, or what lies at the dotted path ``key`` if there is no such key."""
    if key in row:
        return row[key]
    first, _, rest = key.partition(".")
    if rest and isinstance(row.get(first), Mapping):
        return inside(row[first], rest)
    raise BadMark(f"there is no {key!r} among {', '.join(row)}")


def fits(row: Row, key: str, wanted: str) -> bool:
    """Whether a row has this value; ``key=`` alone wants it to have none."""
    value = row.get(key)
    if value is None:
        return wanted == ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value) == float(wanted)
        except ValueError:
            return False
    return str(value) == wanted


def referred(found: Mapping[str, Any], words: Sequence[str]) -> tuple[Any, Row]:
    """The value that words refer to, and where it stands: a row, or the headline."""
    if len(words) == 1:
        headline: Row = found.get("headline", {})
        return inside(headline, words[0]), headline
    part, *chosen = words
    selectors = [word.split("=", 1) for word in chosen if "=" in word]
    rest = [word for word in chosen if "=" not in word]
    rows = [row for row in found["rows"] if row["part"] == part and all(fits(row, *one) for one in selectors)]
    if not rows:
        raise BadMark(f"no row of {part!r} has {selectors}")
    pick = PICKS[rest.pop(0)] if rest and rest[0] in PICKS else None
    if pick is len and not rest:
        return len(rows), rows[0]
    if len(rest) != 1:
        raise BadMark(f"after the row's own facts stands one key, not {rest}")
    if pick is None and len(rows) > 1:
        raise BadMark(f"{len(rows)} rows of {part!r} have {selectors}")
    values = [inside(row, rest[0]) for row in rows]
    return (values[0] if pick is None else pick(values)), rows[0]


def figure(reference: str) -> str:
    """What stands between a mark and its end.

    Examples
    --------
    >>> figure("printed harder data=mnist epsilon=2 accuracy .1f")
    '94.2'
    """
    name, *words = shlex.split(reference)
    form = words.pop() if len(words) > 1 and FORMAT.fullmatch(words[-1]) else ""
    found = stored(name)
    if "/" in words:
        place = words.index("/")
        above, row = referred(found, words[:place])
        below = words[place + 1 :]
        value = above / (inside(row, below[0]) if len(below) == 1 else referred(found, below)[0])
    else:
        value, _ = referred(found, words)
    if not form or form == "str":
        return number(value)
    return format(value, form).replace("%", " %").replace(",", " ")


def defined(text: str) -> dict[str, str]:
    """The references that stand at the end of a page, by name."""
    found: dict[str, str] = {}
    for block in DEFINED.findall(text):
        for line in block.splitlines():
            name, colon, reference = line.partition(": ")
            if not colon or not re.fullmatch(r"\w+", name) or name in found:
                raise BadMark(f"{line!r} is not a new name, a colon and a reference")
            found[name] = reference
    return found


def written(text: str, tables: Mapping[str, Callable[[], Sequence[str]]]) -> str:
    """A page with every figure and table written anew."""

    def table(match: re.Match[str]) -> str:
        if match[1] not in tables:
            raise BadMark(f"there is no table {match[1]!r}; there are {', '.join(sorted(tables))}")
        body = "\n".join(tables[match[1]]()).strip()
        return f"<!-- table: {match[1]} -->\n\n{body}\n\n<!-- end -->"

    names = defined(text)
    unused = set(names)

    def mark(match: re.Match[str]) -> str:
        if match[1] != "=":
            return match[0]
        unused.discard(match[2])
        try:
            value = figure(names.get(match[2], match[2]))
        except (BadMark, KeyError, ValueError, ZeroDivisionError) as error:
            raise BadMark(f"<!--= {match[2]} -->: {error}") from error
        return f"<!--= {match[2]} -->{value}<!--/-->"

    fresh = MARK.sub(mark, BLOCK.sub(table, text))
    if unused:
        raise BadMark(f"nothing refers to {', '.join(sorted(unused))}")
    return fresh


# --- numbers without a mark ----------------------------------------------------------------------------------------------

NUMBER = r"(?<![\w.,/-])[+-]?\d+(?: \d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"
WORDS = "two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty|hundred|thousand"
UNITS = r"x(?!\s?\d)|×(?!\s?\d)|times|%|ns|us|ms|s|seconds?|minutes?|hours?|KiB|MiB|GiB|KB|MB|GB|points of"
LOOKS_MEASURED = re.compile(
    rf"""
    (?:{NUMBER})\s?(?:{UNITS})(?![\w-])          # 46 x, 12 %, 3.1 s
    | (?<![\w.,/-])[+-]?\d+\.\d+(?:e[+-]?\d+)?(?![\w.]*\d)   # 0.97
    | (?<![\w.,/-])\d+e[+-]?\d+                   # 1e-6
    | (?:{NUMBER})\s+of\s+(?:the\s+)?\d           # 30 of 49
    | \b(?:tens|dozens|hundreds|thousands|millions)\s+of\s+times\b
    | \b(?:{WORDS})(?:\s+(?:{WORDS}))*\s+times\s+(?:the|as|too|(?:less|more|fewer|\w+er)\b)
    | \b(?:half|a\s+(?:third|quarter|fifth|tenth|twentieth|hundredth))\s+(?:of\s+)?the\s+(?:noise|loss|error|time)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
PRICE = r"(?:0\.(?:006|01|02|025|03|05|1|2|25|3|4|5|75)|[1-9]|10)(?:\.0)?(?!\.?\d)"
"""Prices that somebody asks for. What is measured is hardly ever one of them."""
SETTING = re.compile(
    rf"""
    \b(?:epsilons?|eps|ε)\s?(?:=|:|of|at|only)?\s?(?:{PRICE})(?:(?:,\s|\sand\s|,\sand\s|\sor\s|\s/\s|\sto\s)(?:{PRICE}))*
    | \b(?:delta|δ)\s?(?:=|:|of|at)?\s?1e-0?\d+\b
    | \b9[59](?:\.9)?\s%\s(?:noise\s)?(?:bands?|intervals?|confidence)
    | \bPython\s3\.\d+ | \bversions?\s\d+\.\d+
    | \b(?:Table|Figure|Section|Theorem|Lemma|Thm|Cor\.|Def\.|sec\.|eq\.)\s?[\w.]*\d+(?:\.\d+)*
    | \b\d{{4}}-\d\d-\d\d\b
    """,
    re.VERBOSE,
)
"""What is asked for or named, not measured: prices, levels of confidence, versions, places in a paper, days."""

HIDDEN = (  # code, what is generated or declared, comments, addresses, tags; none of them may reach over a blank line unseen
    re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE),
    re.compile(r"(?<=\n\n)(?:(?: {4}|\t).*\n?)+"),
    BLOCK,
    MARK,
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(`+)(?:(?!\n\n).)*?\1", re.DOTALL),
    re.compile(r"\]\([^)\n]*\)"),
    re.compile(r"</?[a-zA-Z](?:(?!\n\n)[^<>])*>"),
    SETTING,
)


def unmarked(text: str) -> Iterator[tuple[int, str]]:
    """Numbers that look measured and have no mark: line, and the words."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", "\0", match[0])

    for pattern in HIDDEN:
        text = pattern.sub(blank, text)
    for match in LOOKS_MEASURED.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split())


def badly_set(text: str) -> Iterator[str]:
    """Marks that would spoil the rendered page, or declare more than a few numbers."""
    for line in text.splitlines():
        if re.match(rf"\s*(?:[-*+>]\s+|\d+\.\s+)?<!--(?:=|/|{'|'.join(DECLARED)})", line):
            yield f"a comment at the beginning of a line ends the paragraph; move a word before it: {line[:80]}"
    for match in MARK.finditer(text):
        if "|" in match[2]:
            yield f"a bar ends a table's cell: {match[0][:80]}"
        if match[1] != "=" and (len(match[3]) > LONGEST_DECLARED or "\n\n" in match[3] or not match[2]):
            yield f"a declaration is about a few numbers and has a reason: {match[0][:80]}"
    opened, closed = len(re.findall(rf"<!--(?:=|{'|'.join(DECLARED)})\s", text)), text.count("<!--/-->")
    if opened != closed or len(MARK.findall(text)) != opened:
        yield f"{opened} marks are opened, {closed} closed"
