"""What is known about a column before it is declared, and from where: a code book, a type, a name, or the rows.

Facts are gathered from the surest source to the least sure one; a fact that is there already is not replaced. What the
owner still has to say is what is left over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from ..errors import SchemaError
from ..schema import Categorical, Column, Level, Numeric

Kind: TypeAlias = Literal["number", "integer", "date", "boolean", "levels", "identifier", "text", "out"]

NUMERIC_KINDS = ("number", "integer", "date")
CODE_BOOK, TYPE, NAME, ROWS, OWNER = "the code book", "its type", "its name", "the rows", "the owner"
SPECIAL_CODES = (-1, -7, -8, -9, -77, -88, -99, -777, -888, -999, -9999, 99, 999, 9999, 99999)
"""Numbers that code books use for "no record", "refused" and the like, where they lie outside of the quantities."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """Facts about a column, each with where it is from.

    Attributes
    ----------
    kind : str, optional
        What its values are. Columns that are an ``identifier``, free ``text`` or plainly ``out`` have no place in a schema.
    low, high : float, optional
        Bounds of a number or a date, in days.
    levels : tuple of level
        Of a column of categories.
    blank : bool, optional
        Whether values may be missing without any mark: empty cells, NULL, NaN. They are declared as a state of their own,
        which models are given as NaN.
    follows : str
        The column that this one follows from, and how, as a code book writes it: ``degree: school = 10; college = 14``.
    note : str
        What a code book says that could not be taken as a fact, for the owner to see.
    sources : mapping of str to str
        Fact to source.
    """

    kind: Kind | None = None
    low: float | None = None
    high: float | None = None
    levels: tuple[Level, ...] = ()
    ordered: bool | None = None
    codes: tuple[float, ...] = ()
    missing: Level | None = None
    blank: bool | None = None
    as_nan: bool | None = None
    change: str | None = None
    label: str = ""
    unit: str = ""
    description: str = ""
    value_labels: Mapping[Level, str] = field(default_factory=dict)
    follows: str = ""
    note: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str, **facts: object) -> Described:
        """Facts from one source; what is empty is no fact."""
        told = {name: value for name, value in facts.items() if value not in (None, "", (), {})}
        return cls(**told, sources=dict.fromkeys(told, source))  # type: ignore[arg-type]

    def then(self, other: Described) -> Described:
        """These facts, and those of a less sure source where there is none.

        Of a kind that was told by a surer source, another source tells no bounds or levels of another kind, nor a way to
        change that needs an order. A bound that contradicts the other one is not taken.
        """
        bounds = ("low", "high", "codes", "ordered", "levels", "value_labels", "unit", "missing", "blank", "as_nan")
        foreign = {*bounds} if self.kind is not None and not _agree(self.kind, other.kind) else set()
        if foreign and other.change in ("up", "down"):
            foreign.add("change")
        ends = [getattr(self if end in self.sources else other, end) for end in ("low", "high")]
        if None not in ends and not ends[0] < ends[1]:
            foreign |= {"low", "high"}
        new = {name for name in other.sources if name not in self.sources and name not in foreign}
        if self.kind == "number" and other.kind == "integer" and self.sources.get("kind") == TYPE:
            new.add("kind")  # a float column may hold whole numbers: pandas makes it one for a single missing value
        facts = {name: getattr(other, name) for name in new}
        return replace(self, **facts, sources={**self.sources, **{name: other.sources[name] for name in new}})

    @property
    def left_out(self) -> str | None:
        """Why the column has no place in a schema; None where it has one."""
        reasons = {"identifier": "it identifies a row", "text": "it is free text", "out": "it was left out"}
        return None if self.kind not in reasons else f"{reasons[self.kind]}, by {self.sources['kind']}"

    @property
    def wanting(self) -> tuple[str, ...]:
        """The facts that are still missing for a declaration."""
        if self.kind is None:
            return ("kind",)
        if self.kind in NUMERIC_KINDS:
            return tuple(name for name in ("low", "high") if getattr(self, name) is None)
        return ("levels",) if self.kind == "levels" and not self.levels else ()

    def column(self, name: str) -> Column:
        """The declaration; what is wanting for it is an error."""
        if self.left_out is not None:
            raise SchemaError(f"column {name!r} has no place in a schema: {self.left_out}")
        if self.wanting:
            raise SchemaError(f"column {name!r} is not declared yet: its {' and '.join(self.wanting)} must be given")
        options: dict[str, Any] = {word: getattr(self, word) for word in ("label", "description")}
        options |= {"change": self.change or "any", "missing": self.missing, "as_nan": bool(self.as_nan)}
        try:
            return self._levels(options) if self.kind in ("boolean", "levels") else self._number(options)
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from error

    def _levels(self, options: dict[str, Any]) -> Categorical:
        levels, words = self.levels or (False, True), {**self.value_labels}
        if self.missing is not None and self.missing not in levels:
            levels = (*levels, self.missing)
        elif self.missing is None and self.blank:
            state = next(word for word in ("missing", "no record", "(missing)") if word not in map(str, levels))
            levels, options = (*levels, state), {**options, "missing": state, "as_nan": True}
        return Categorical(levels, ordered=bool(self.ordered), value_labels=words, **options)

    def _number(self, options: dict[str, Any]) -> Numeric:
        assert self.low is not None
        assert self.high is not None
        low, high, codes, words = self.low, self.high, self.codes, {**self.value_labels}
        if isinstance(self.missing, int | float) and not low <= self.missing <= high and self.missing not in codes:
            codes = (*codes, self.missing)
        elif self.missing is None and self.blank:
            free = [code for code in SPECIAL_CODES if not low <= code <= high and code not in codes]
            code = next((float(code) for code in free if code < 0), low - 1)
            codes, words = (*codes, code), {**words, code: "missing"}
            options = {**options, "missing": code, "as_nan": True}
        whole, date = self.kind != "number", self.kind == "date"
        return Numeric(low, high, whole, codes=codes, date=date, unit=self.unit, value_labels=words, **options)


def described(column: Column, source: str) -> Described:
    """What a declaration tells, as facts."""
    known = {one.name for one in fields(Described)}
    told = {one.name: getattr(column, one.name) for one in fields(column) if one.name in known}
    told = {name: value for name, value in told.items() if value is not False}
    if isinstance(column, Categorical):
        kind = "boolean" if column.levels == (False, True) else "levels"
    else:
        kind = "date" if column.date else "integer" if column.integer else "number"
    made = Described.of(source, kind=kind, **told)
    off_rows = dict.fromkeys((fact for fact in column.from_rows if fact in made.sources), ROWS)
    return replace(made, sources={**made.sources, **off_rows})  # what was read off rows once stays so


def first_of(one: Described | None, other: Described) -> Described:
    """The first of two descriptions of one column in a code book, with a note where the second says something else."""
    if one is None or one == other:
        return other if one is None else one
    return replace(one, note=one.note or "it is described twice, in different ways; the first is taken")


def _agree(kind: Kind, other: Kind | None) -> bool:
    """Whether bounds and levels for one kind are bounds and levels for the other."""
    numbers = ("number", "integer")
    return other is None or kind == other or (kind in numbers and other in numbers)
