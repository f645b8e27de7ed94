"""What the owner declares about columns together: what advice to a person has to keep, and what has one reason together.

A row is checked against none of it; private rows may break every rule. They say what a person may be told to change: who
gets another school degree has its years of school too, and no account is older than the oldest one. A group says nothing
about advice: its columns are one player in explanations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

from .. import _checks
from ..accounting import JsonValue
from ..errors import SchemaError
from .columns import Categorical, Column, Level, Numeric, plain_level, plain_number


@dataclass(frozen=True, slots=True)
class Link:
    """A column that follows from another: each level of ``column`` has its value in ``other``.

    In advice the two change together, and count as one change.

    Parameters
    ----------
    column : str
        A categorical column.
    other : str
        The column that follows from it, of either kind.
    values : mapping of level to value
        For every level of ``column`` the value that ``other`` has with it.

    Examples
    --------
    >>> import vitrail as vt
    >>> columns = {"degree": vt.Categorical(["school", "college"]), "years": vt.Numeric(0, 20, integer=True)}
    >>> vt.Schema(columns, rules=[vt.Link("degree", "years", {"school": 10, "college": 14})]).rules
    (Link('degree', 'years', {'school': 10, 'college': 14}),)
    >>> vt.Schema(columns, rules=[vt.Link("degree", "years", {"school": 10})])
    Traceback (most recent call last):
        ...
    vitrail.errors.SchemaError: the link of 'degree' and 'years' has no value for 'college'; every level needs one
    """

    KIND: ClassVar[str] = "link"
    column: str
    other: str
    values: Mapping[Level, Level]

    def __repr__(self) -> str:
        return f"Link({self.column!r}, {self.other!r}, {dict(self.values)!r})"

    def checked(self, columns: Mapping[str, Column]) -> Link:
        """The rule with its values in the order of the levels, or an error that says what is wrong with it."""
        column, other = _named(self.column, columns), _named(self.other, columns)
        what = f"the link of {self.column!r} and {self.other!r}"
        if not isinstance(column, Categorical) or self.column == self.other:
            raise SchemaError(f"{what} starts at {self.column!r}; it must start at another column, a categorical one")
        if not isinstance(self.values, Mapping):
            raise SchemaError(f"{what} has the values {self.values!r}; give a dictionary of level to value")
        given = {str(level): value for level, value in self.values.items()}  # a JSON object has texts as keys
        if unknown := [text for text in given if text not in map(str, column.levels)]:
            raise SchemaError(f"{what} has a value for {unknown[0]!r}; {self.column!r} must be {column.allowed}")
        values: dict[Level, Level] = {}
        for level in column.levels:
            if str(level) not in given:
                raise SchemaError(f"{what} has no value for {level!r}; every level needs one")
            values[level] = _value(other, given[str(level)], f"{what} has the value {given[str(level)]!r} for {level!r}")
        return Link(self.column, self.other, values)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """An order of two numeric columns: in advice, ``larger`` is at least ``smaller``.

    Examples
    --------
    >>> import vitrail as vt
    >>> columns = {"oldest": vt.Numeric(0, 100), "average": vt.Numeric(0, 100)}
    >>> vt.Schema(columns, rules=[vt.AtLeast("oldest", "average")]).rules
    (AtLeast('oldest', 'average'),)
    """

    KIND: ClassVar[str] = "at least"
    larger: str
    smaller: str

    def __repr__(self) -> str:
        return f"AtLeast({self.larger!r}, {self.smaller!r})"

    def checked(self, columns: Mapping[str, Column]) -> AtLeast:
        """The rule, or an error that says what is wrong with it."""
        for name in (self.larger, self.smaller):
            if not isinstance(_named(name, columns), Numeric) or self.larger == self.smaller:
                raise SchemaError(f"a rule says that {self.larger!r} is at least {self.smaller!r}; give two numeric columns")
        return self


@dataclass(frozen=True, slots=True)
class Within:
    """Plausible values of a numeric column: a changed value lies between ``low`` and ``high``, narrower than its bounds.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.Schema({"hours": vt.Numeric(0, 99)}, rules=[vt.Within("hours", 20, 60)]).rules
    (Within('hours', 20, 60),)
    """

    KIND: ClassVar[str] = "within"
    column: str
    low: float
    high: float

    def __repr__(self) -> str:
        return f"Within({self.column!r}, {self.low!r}, {self.high!r})"

    def checked(self, columns: Mapping[str, Column]) -> Within:
        """The rule, or an error that says what is wrong with it."""
        column = _named(self.column, columns)
        if not isinstance(column, Numeric):
            raise SchemaError(f"a rule gives {self.column!r} a plausible range; it must be a numeric column")
        low, high = (
            plain_number(getattr(self, name), f"{name} of the range of {self.column!r}") for name in ("low", "high")
        )
        if column.integer:
            low, high = math.ceil(low), math.floor(high)
        if not column.low <= low <= high <= column.high:
            raise SchemaError(f"the plausible range of {self.column!r} is {low} to {high}; it must hold {column.allowed}")
        return Within(self.column, low, high)


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that say one thing: a pane's Shapley values give them one value together, under ``name``.

    Parameters
    ----------
    name : str
        What explanations call them; it may be the name of one of them.
    columns : list of str
        At least two columns, of either kind. A column is in one group at most.

    Examples
    --------
    >>> import vitrail as vt
    >>> columns = {"degree": vt.Categorical(["school", "college"]), "years": vt.Numeric(0, 20), "age": vt.Numeric(0, 100)}
    >>> vt.Schema(columns, rules=[vt.Group("education", ["degree", "years"])]).groups
    {'education': ('degree', 'years')}
    >>> vt.Schema(columns, rules=[vt.Group("age", ["degree", "years"])])
    Traceback (most recent call last):
        ...
    vitrail.errors.SchemaError: a group is called 'age', which is a column outside it; give it a name of its own
    """

    KIND: ClassVar[str] = "group"
    name: str
    columns: Sequence[str]

    def __repr__(self) -> str:
        return f"Group({self.name!r}, {list(self.columns)!r})"

    def checked(self, columns: Mapping[str, Column]) -> Group:
        """The group with its columns as a tuple, or an error that says what is wrong with it."""
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"a group is called {self.name!r}; its name must be a non-empty text")
        given = self.columns
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) < 2:
            raise SchemaError(f"the group {self.name!r} has the columns {given!r}; give a list of at least two names")
        for name in given:
            _named(name, columns)
        if self.name in columns and self.name not in given:
            raise SchemaError(f"a group is called {self.name!r}, which is a column outside it; give it a name of its own")
        return Group(self.name, tuple(given))


Rule: TypeAlias = Link | AtLeast | Within | Group
KINDS: Mapping[str, type[Rule]] = {kind.KIND: kind for kind in (Link, AtLeast, Within, Group)}


def checked_rules(given: Iterable[Rule], columns: Mapping[str, Column]) -> tuple[Rule, ...]:
    """The rules of a schema with these columns, or an error that says what is wrong with one."""
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise SchemaError(f"rules is {given!r}; give a list of vt.Link, vt.AtLeast, vt.Within and vt.Group")
    rules: list[Rule] = []
    for rule in given:
        if not isinstance(rule, Link | AtLeast | Within | Group):
            raise SchemaError(f"a rule is {rule!r}; it must be a vt.Link, vt.AtLeast, vt.Within or vt.Group")
        rules.append(rule.checked(columns))
    links = [rule for rule in rules if isinstance(rule, Link)]
    followers = [link.other for link in links]
    for link in links:
        if link.column in followers or followers.count(link.other) > 1:
            twice = link.column if link.column in followers else link.other
            raise SchemaError(f"{twice!r} follows from one link and stands in another; link each follower to one column")
    groups = [rule for rule in rules if isinstance(rule, Group)]
    for what, named in (
        ("a column belongs to one group", [column for group in groups for column in group.columns]),
        ("each group needs a name of its own", [group.name for group in groups]),
    ):
        if len(set(named)) < len(named):
            raise SchemaError(f"the groups name {next(name for name in named if named.count(name) > 1)!r} twice; {what}")
    return tuple(rules)


def named_in(rule: Rule) -> tuple[str, ...]:
    """The columns that a rule is about."""
    if isinstance(rule, Link):
        return rule.column, rule.other
    if isinstance(rule, Group):
        return tuple(rule.columns)
    return (rule.larger, rule.smaller) if isinstance(rule, AtLeast) else (rule.column,)


def rule_to_json(rule: Rule) -> dict[str, JsonValue]:
    """The rule as plain JSON values."""
    made: dict[str, JsonValue] = {"rule": rule.KIND} | {field.name: getattr(rule, field.name) for field in fields(rule)}
    if isinstance(rule, Link):
        made["values"] = {str(level): value for level, value in rule.values.items()}
    elif isinstance(rule, Group):
        made["columns"] = list(rule.columns)
    return made


def rule_from_json(given: JsonValue) -> Rule:
    """Read back what ``rule_to_json`` wrote; the schema checks what it says."""
    kind = KINDS.get(str(given.get("rule"))) if isinstance(given, dict) else None
    if kind is None or not isinstance(given, dict):
        raise SchemaError(f"a rule is {given!r}; it must be an object with a 'rule', one of {', '.join(map(repr, KINDS))}")
    names = [field.name for field in fields(kind)]
    if set(given) != {"rule", *names}:
        raise SchemaError(f"a rule {kind.KIND!r} has the fields {', '.join(map(repr, given))}; it has 'rule', {names}")
    return kind(**{name: given[name] for name in names})  # type: ignore[arg-type]


def _named(name: object, columns: Mapping[str, Column]) -> Column:
    if not isinstance(name, str) or name not in columns:
        raise SchemaError(f"a rule names {name!r}: {_checks.not_among(str(name), tuple(columns), 'in the schema')}")
    return columns[name]


def _value(column: Column, given: object, what: str) -> Level:
    """A value as the column writes it."""
    if isinstance(column, Numeric):
        number = plain_number(given, what)
        if not column.low <= number <= column.high or (column.integer and number != int(number)):
            raise SchemaError(f"{what}; it must be {column.allowed}")
        return int(number) if column.integer else float(number)
    level = plain_level(given)
    if level not in column.levels:
        raise SchemaError(f"{what}; it must be {column.allowed}")
    return column.levels[column.levels.index(level)]
