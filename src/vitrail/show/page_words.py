"""The owner's own words for a person's page: what the decision is called, which side of it is good, names and units.

They are public and no part of any question: words may be changed at any time, and that costs nothing. An owner declares them
in ``[page]`` of a dataset's TOML or in a file of their own (:meth:`PageWords.load`); a pane carries them in its manifest.
Where nothing is declared the page uses the names of the schema.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .. import _checks
from ..accounting import JsonValue
from ..errors import InvalidInput
from ..schema import Schema
from .catalogue import LANGUAGES

SIDES = ("above", "below")
MOST_TEXT, MOST_LETTER = 300, 4_000
"""Letters of a name or sentence, and of a sender or footer."""
LEAST_REASONS, MOST_REASONS = 2, 5


@dataclass(frozen=True, kw_only=True)
class ColumnWords:
    """Words for one column.

    Attributes
    ----------
    label, unit : str
        What it is called and what its numbers count, in place of the schema's.
    subject : str
        How a sentence about it begins; ``{value}`` is the person's: "Your {value} hours a week". Without one the sentence
        names label and value.
    text : str
        A short explanation of what it means.
    code, reason : str
        The adverse-action reason code, and its official wording.
    values : mapping of str to str
        What levels and codes mean, in words.

    Examples
    --------
    >>> import vitrail as vt
    >>> hours = vt.ColumnWords(label="Hours of work", subject="Your {value} hours a week", code="W2")
    >>> vt.PageWords(columns={"hours-per-week": hours}).columns["hours-per-week"].label
    'Hours of work'
    """

    label: str = ""
    unit: str = ""
    subject: str = ""
    text: str = ""
    code: str = ""
    reason: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("label", "unit", "subject", "text", "code", "reason"):
            _check_text(name, getattr(self, name), MOST_TEXT)
        _check_placeholders(self.subject)
        object.__setattr__(self, "values", _texts("values", self.values))


@dataclass(frozen=True, kw_only=True)
class PageWords:
    """What an owner calls things on a person's page.

    Attributes
    ----------
    language : {"en", "de", "fr", "es"}
        Of the page's own sentences.
    decision : str
        What was decided: "Your application for a loan".
    above, below : str
        The outcome where the output is at least the threshold, and below it: "approved", "declined", "at least 500 a day".
    classes : mapping of str to str
        The outcome by class, where a model has several.
    good : {"", "above", "below"}
        Which side is good for the person. Without it the page says what raised and lowered the output, neither good nor bad.
    threshold : float, optional
        In place of the pane's.
    unit : str
        What outputs count, such as "bikes a day". Outputs between 0 and 1 without one are shown as per cent.
    sender, footer : str
        The letter's sender, above; its legal text, below.
    most_reasons : int
        How many reasons are told in sentences, from 2 to 5.
    columns : mapping of str to ColumnWords
        Words for columns, or groups of columns.

    Examples
    --------
    >>> import vitrail as vt
    >>> words = vt.PageWords(decision="Your loan", above="approved", below="declined", good="above",
    ...     columns={"hours": vt.ColumnWords(label="Hours of work a week", subject="Your {value} hours a week")})
    >>> words.outcome(0.31, 0.5), vt.PageWords.from_json(words.to_json()) == words
    ('declined', True)
    >>> vt.PageWords(good="up")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: good of [page] is 'up'; choose one of '', 'above', 'below'
    """

    language: str = "en"
    decision: str = ""
    above: str = ""
    below: str = ""
    classes: Mapping[str, str] = field(default_factory=dict)
    good: str = ""
    threshold: float | None = None
    unit: str = ""
    sender: str = ""
    footer: str = ""
    most_reasons: int = 4
    columns: Mapping[str, ColumnWords] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _checks.choice("language", self.language, LANGUAGES, of="[page]")
        _checks.choice("good", self.good, ("", *SIDES), of="[page]")
        for name, most in (("decision", MOST_TEXT), ("above", MOST_TEXT), ("below", MOST_TEXT), ("unit", MOST_TEXT)):
            _check_text(name, getattr(self, name), most)
        for name in ("sender", "footer"):
            _check_text(name, getattr(self, name), MOST_LETTER)
        _checks.whole("most_reasons", self.most_reasons, least=LEAST_REASONS, most=MOST_REASONS, of="[page]")
        if self.threshold is not None:
            given = self.threshold
            if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
                raise InvalidInput(f"threshold of [page] is {given!r}; it must be a number")
            object.__setattr__(self, "threshold", float(given))
        object.__setattr__(self, "classes", _texts("classes", self.classes))
        if not isinstance(self.columns, Mapping) or not all(isinstance(one, ColumnWords) for one in self.columns.values()):
            raise InvalidInput("columns of [page] is no table of words by column")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    # --- files -------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> PageWords:
        """Words from a TOML file: its table ``[page]``, or the whole file where it has none."""
        file = Path(path)
        try:
            with file.open("rb") as opened:
                tables = tomllib.load(opened)
        except OSError as error:
            raise InvalidInput(f"the words {str(path)!r} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file.name} is no TOML file that can be read: {error}") from error
        try:
            return cls.from_json(tables.get("page", tables))
        except InvalidInput as error:
            raise InvalidInput(f"{file.name}: {error}") from error

    @classmethod
    def read(cls, given: Mapping[str, JsonValue]) -> PageWords:
        """Words that a pane holds: keys of a later version are passed over, words that cannot be used give none."""

        def known(table: Mapping[str, Any], kind: type) -> dict[str, Any]:
            return {one.name: table[one.name] for one in fields(kind) if one.name in table}

        table = known(given, cls)
        if isinstance(columns := table.get("columns"), Mapping):
            table["columns"] = {
                name: known(one, ColumnWords) if isinstance(one, Mapping) else one for name, one in columns.items()
            }
        try:
            return cls.from_json(table)
        except InvalidInput:
            return cls()

    @classmethod
    def from_json(cls, given: object) -> PageWords:
        """Words from a table as TOML and JSON hold it, or an error that names the key."""
        table = _table("[page]", given, [one.name for one in fields(cls)])
        columns = table.get("columns", {})
        if not isinstance(columns, Mapping):
            raise InvalidInput("columns of [page] is no table; write [page.columns.NAME]")
        known = [one.name for one in fields(ColumnWords)]
        made = {str(name): ColumnWords(**_table(f"[page.columns.{name}]", one, known)) for name, one in columns.items()}
        return cls(**{**table, "columns": made})

    def to_json(self) -> dict[str, JsonValue]:
        """The same as a table of plain values, without what was not declared."""

        def plain(value: Any) -> dict[str, JsonValue]:
            given = {one.name: getattr(value, one.name) for one in fields(value)}
            return {name: dict(said) if isinstance(said, Mapping) else said for name, said in given.items() if said}

        made = plain(self) | {"language": self.language}
        if self.threshold is not None:
            made["threshold"] = self.threshold
        if self.columns:
            made["columns"] = {name: plain(one) for name, one in self.columns.items()}
        return made

    def check(self, columns: object) -> None:
        """Refuse words for columns that are not there."""
        known = list(columns) if isinstance(columns, Mapping | list | tuple) else []
        for name in self.columns:
            if name not in known:
                raise InvalidInput(f"[page.columns] names {name!r}: {_checks.not_among(name, known, 'declared')}")

    # --- words -------------------------------------------------------------------------------------------------------

    def outcome(self, output: float, threshold: float) -> str:
        """The outcome in words; empty where the side has none."""
        return self.above if output >= threshold else self.below

    def of(self, column: str, schema: Schema) -> ColumnWords:
        """Words for a column or a group: the page's own, else the schema's, else its name."""
        own = self.columns.get(column, ColumnWords())
        declared = schema.get(column)
        label = own.label or getattr(declared, "label", "") or column
        unit = own.unit or getattr(declared, "unit", "")
        text = own.text or getattr(declared, "description", "")
        values = {str(value): word for value, word in getattr(declared, "value_labels", {}).items()} | dict(own.values)
        return replace(own, label=label, unit=unit, text=text[:MOST_TEXT], values=values)


def _table(what: str, given: object, known: list[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{what} is {type(given).__name__}; it must be a table")
    for name in given:
        if name not in known:
            hint = _checks.did_you_mean(str(name), known)
            raise InvalidInput(f"{what} has the key {name!r}; it may have {', '.join(known)}.{hint}")
    return dict(given)


def _check_text(name: str, given: object, most: int) -> None:
    if not isinstance(given, str) or len(given) > most:
        raise InvalidInput(f"{name} of [page] is {str(given)[:40]!r}; it must be a text of at most {most} letters")


def _texts(name: str, given: object) -> Mapping[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidInput(f'{name} of [page] is {given!r}; it must be a table of texts, such as {{ "1" = "yes" }}')
    for text in given.values():
        _check_text(name, text, MOST_TEXT)
    return MappingProxyType({str(key): text for key, text in given.items()})


def _check_placeholders(subject: str) -> None:
    rest = subject.replace("{value}", "")
    if "{" in rest or "}" in rest:
        raise InvalidInput(f"subject of [page.columns] is {subject!r}; {{value}} is the only thing in braces that is known")
