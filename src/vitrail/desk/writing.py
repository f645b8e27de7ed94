"""A declaration as the text of its file: what is known, where each fact is from, and what is still to be filled in."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..schema import Categorical, Column
from ..schema.days import date_text
from ..schema.rules import named_in, rule_from_json
from .declaration import DEFAULT_DELTA, FORMAT, declaration_of
from .described import CODE_BOOK, NAME, OWNER, ROWS, TYPE, Described

HEAD = """\
# The public facts about {name}: `vitrail init` wrote this file, and it is yours to change. Everything in it may be known by
# everybody; bounds and levels come from forms, code books and laws, never from the rows{looked}.
"""
LOOKED = """
# These facts were read off the private rows with --look. They are public now, by the owner's decision, and no promise covers
# them. Replace one by what is known from elsewhere, and take it off this list.
"""
FILL_IN = "fill in"
WIDEST = 120
_WRITTEN = (
    "low",
    "high",
    "levels",
    "ordered",
    "missing",
    "codes",
    "as_nan",
    "change",
    "label",
    "unit",
    "description",
    "value_labels",
)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What is to be written; what nobody has said yet is None."""

    name: str
    source: str
    columns: Mapping[str, Described]
    target: str | None = None
    table: str | None = None
    rows: int | None = None
    rows_counted: bool = False
    rows_per_person: int = 1
    person: str | None = None
    epsilon: float | None = None
    delta: float = DEFAULT_DELTA
    ledger: str = "ledger.db"
    account: str | None = None
    caps: Mapping[str, float] = field(default_factory=dict)
    rules: Sequence[Mapping[str, Any]] = ()

    @property
    def declared(self) -> dict[str, Described]:
        """The columns that have a place in the schema."""
        return {name: facts for name, facts in self.columns.items() if facts.left_out is None}

    @property
    def wanting(self) -> dict[str, tuple[str, ...]]:
        """What is still to be filled in, by table of the file."""
        open_facts = {f"columns.{name}": facts.wanting for name, facts in self.declared.items() if facts.wanting}
        public = {"rows": self.rows, "target": self.target}
        unsaid = tuple(name for name, value in public.items() if value is None)
        paid = ("epsilon",) if self.epsilon is None else ()
        return ({"dataset": unsaid} if unsaid else {}) | ({"budget": paid} if paid else {}) | open_facts

    @property
    def looked(self) -> dict[str, list[str]]:
        """The facts that were read off the rows, by column."""
        facts_of = [one.name for one in fields(Described)]
        found = {
            name: [fact for fact in facts_of if facts.sources.get(fact) == ROWS] for name, facts in self.declared.items()
        }
        return {name: facts for name, facts in found.items() if facts}

    def check(self, path: Path) -> None:
        """Refuse what every command would refuse once the open places are filled in; ``path`` is where the file will lie."""
        wanting = {name for name, facts in self.declared.items() if facts.wanting}
        filled = replace(
            self,
            rows=self.rows or 1,
            epsilon=self.epsilon or max([1.0, *self.caps.values()]),
            columns={**self.columns, **dict.fromkeys(wanting, Described.of(OWNER, kind="boolean"))},
            rules=[rule for rule in self.rules if wanting.isdisjoint(named_in(rule_from_json(dict(rule))))],
        )
        declaration_of(tomllib.loads(filled.text()), path)

    def text(self) -> str:
        """The file."""
        looked = ", but for those listed as looked" if self.looked or self.rows_counted else ""
        return HEAD.format(name=self.name, looked=looked) + "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"format = {FORMAT}"
        yield ""
        yield "[dataset]"
        yield from _line("name", self.name, "in every bill and page")
        yield from _line("source", self.source, "where the rows are; relative to this file")
        if self.table:
            yield from _line("table", self.table)
        yield from _line(
            "target",
            self.target or "",
            "the column to predict" if self.target else f'{FILL_IN}: the column to predict, "" for none',
        )
        counted = "rows" if self.person is None else "people"
        yield from _line(
            "rows",
            self.rows or 0,
            f"how many {counted}, for everybody to know" if self.rows else f"{FILL_IN}: about how many {counted}",
        )
        if self.rows_counted:
            yield from _line("looked", ["rows"], "what was read off the rows with --look: public by the owner's decision")
        if self.person is not None:
            yield from _line(
                "person", self.person, "whose row it is: everybody counts once, and the promise is about people"
            )
        if self.rows_per_person > 1:
            yield from _line(
                "rows_per_person", self.rows_per_person, "the most rows of one person: the promise is about people"
            )
        yield from _line("version", "1", "change it when the rows change: old answers are then not given again")
        yield ""
        yield "[budget]"
        yield from _line(
            "epsilon",
            self.epsilon or 0,
            "the most that may ever be spent, for ever" if self.epsilon else f"{FILL_IN}: 1.0 is usual",
        )
        yield from _line("delta", self.delta)
        yield from _line("ledger", self.ledger, "where the bill is kept")
        if self.account:
            yield from _line("account", self.account, "who pays; datasets that share rows must share it")
        yield ""
        yield "[analysts]  # what each may learn at most, as in: alice = 0.5"
        for name, cap in self.caps.items():
            yield from _line(name, cap)
        for name, facts in self.declared.items():
            yield ""
            yield from _column_lines(name, facts)
        yield from self._tables()

    def _tables(self) -> Iterator[str]:
        for rule in self.rules:
            yield from ("", "[[rules]]")
            for key, value in rule.items():
                yield from _line(key, value)
        left_out = {name: why for name, facts in self.columns.items() if (why := facts.left_out)}
        if left_out:
            yield from ("", "[left_out]  # columns of the rows that are no part of the schema, and why")
            for name, why in left_out.items():
                yield from _line(name, why)
        if self.looked:
            yield LOOKED.rstrip("\n")
            yield "[looked]"
            for name, facts in self.looked.items():
                yield from _line(name, facts)


def _column_lines(name: str, facts: Described) -> Iterator[str]:
    yield f"[columns.{_key(name)}]"
    comment = _whence(facts)
    if facts.wanting:
        yield from _line("kind", facts.kind or "", comment or f"{FILL_IN}: number, integer, date, boolean or levels")
        known = {
            fact: getattr(facts, fact) for fact in ("low", "high", "label", "unit", "description") if fact in facts.sources
        }
        hints = {"levels": 'as in ["no", "yes"]', "low": "the smallest value there can be", "high": "the largest"}
        for fact in facts.wanting[facts.kind is None :]:
            yield from _line(fact, [] if fact == "levels" else "", f"{FILL_IN}: {hints[fact]}")
        for fact, value in known.items():
            yield from _line(fact, value)
        return
    column = facts.column(name)
    yield from _line("kind", facts.kind, comment)
    for fact, value in column_facts(column).items():
        yield from _line(fact, value)


def column_facts(column: Column) -> dict[str, Any]:
    """What a column's table holds beside its kind: facts that are not the default."""
    plain = Categorical([0]) if isinstance(column, Categorical) else type(column)(0, 1)
    made: dict[str, Any] = {}
    names = {one.name for one in fields(column)}
    for name in _WRITTEN:
        if name not in names or (
            (value := getattr(column, name)) == getattr(plain, name) and name not in ("low", "high", "levels")
        ):
            continue
        if getattr(column, "date", False) and name in ("low", "high"):
            value = _Date(date_text(value))
        made[name] = list(value) if isinstance(value, tuple) else value
    if made.get("levels") == [False, True]:
        del made["levels"]
    return made


def _whence(facts: Described) -> str:
    """Where the facts are from, in a few words."""
    sources = {source for fact, source in facts.sources.items() if fact in ("kind", "low", "high", "levels", "codes")}
    if not sources or sources == {CODE_BOOK} or sources == {TYPE}:
        return "from the code book" if sources == {CODE_BOOK} else ""
    told = {
        NAME: "suggested by its name: check it",
        ROWS: "read off the rows, see [looked]",
        CODE_BOOK: "from the code book",
        OWNER: "",
    }
    return "; ".join(text for source, text in told.items() if source in sources and text)


# --- TOML ----------------------------------------------------------------------------------------------------------------


class _Date(str):
    """A date, which TOML writes without quotes."""


def _line(key: str, value: object, comment: str = "") -> Iterator[str]:
    written = f"{_key(key)} = {toml_value(value)}"
    if isinstance(value, list) and len(written) > WIDEST:
        yield f"{_key(key)} = ["
        items = [f"{toml_value(item)}, " for item in value]
        while items:
            line = "  "
            while items and (line == "  " or len(line) + len(items[0]) <= WIDEST):
                line += items.pop(0)
            yield line.rstrip()
        written = "]"
    yield f"{written}  # {comment}" if comment else written


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    r"""A value as TOML writes it.

    Examples
    --------
    >>> toml_value({"1": 'a "word"'}), toml_value([1, 2.5, True])
    ('{ 1 = "a \\"word\\"" }', '[1, 2.5, true]')
    """
    if isinstance(value, _Date):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {toml_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    # JSON escapes what TOML does, but for the one control character that it may leave as it is.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
