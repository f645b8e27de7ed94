"""``pane.json``: what a pane is, what it promises, what was paid, and which files belong to which part.

The JSON object is kept as it was read, so that what a later version adds comes through a save unchanged; the properties
below are what this version understands of it. docs/pane.md documents every field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput, VitrailError
from ..guarantee import Guarantee
from ..results import stored
from ..results.archive import DamagedFile, digest
from ..schema import Level, Schema

FORMAT, VERSION = "vitrail-pane", 1
MOST_FEATURES = 4_000
"""Encoded features of a schema: some parts hold, or build, the square of their number."""
_PART_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Line:
    """A question that was paid for this pane: its entry in the ledger (0 where that is not known), day, words and price."""

    entry: int
    date: str
    question: str
    cost: Cost
    epsilon: float

    def to_json(self) -> dict[str, JsonValue]:
        """The line as plain JSON values."""
        made: dict[str, JsonValue] = {"entry": self.entry, "date": self.date, "question": self.question}
        return made | {"pico_mu_squared": self.cost.pico_mu_squared, "epsilon": self.epsilon}


@dataclass(frozen=True, slots=True)
class MadeFor:
    """The model that a pane was made with, as far as the manifest knows it.

    Attributes
    ----------
    name : str
        For display.
    digest : str or None
        ``Model.digest()``: a hash of content, output, range and inputs; None for a bare function.
    output : str, int or None
        Which output.
    range : (float, float)
        Its declared range.
    inputs : str
        What it is given.
    column : int or None
        The column of its output, for opening an embedded model.
    embedded : str or None
        The file of the pane that holds it.
    """

    name: str
    digest: str | None
    output: Level | None
    range: tuple[float, float]
    inputs: str
    column: int | None
    embedded: str | None

    def to_json(self) -> dict[str, JsonValue]:
        """The description as plain JSON values."""
        output = self.output if isinstance(self.output, str | int | float | bool | None) else str(self.output)
        made: dict[str, JsonValue] = {"name": self.name, "digest": self.digest, "output": output}
        made |= {"range": list(self.range), "inputs": self.inputs, "column": self.column, "embedded": self.embedded}
        return made


@dataclass(frozen=True, eq=False)
class Manifest:
    """The manifest of a pane. Everything it says was checked when it was made; unknown fields are kept."""

    fields: Mapping[str, Any]

    @classmethod
    def read(cls, fields: dict[str, Any], files: Mapping[str, bytes], what: str) -> Manifest:
        """The manifest, if it describes these files."""
        if fields.get("format") != FORMAT:
            raise DamagedFile(f"{what} names the format {str(fields.get('format'))[:60]!r}; a pane names {FORMAT!r}")
        version = fields.get("version")
        if version != VERSION or isinstance(version, bool):
            raise DamagedFile(
                f"{what} has version {str(version)[:20]} of the format; this version of Vitrail reads version {VERSION}, "
                "upgrade to read it"
            )
        made = cls(fields)
        for name in ("schema", "guarantee", "cost", "bill", "model", "created", "parts", "dataset", "tool", "n_rows_public"):
            made._checked(name, what)
        made._check_files(files, what)
        return made

    def _checked(self, name: str, what: str) -> None:
        try:
            getattr(self, name)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, VitrailError) as error:
            raise DamagedFile(f"{name!r} in the manifest of {what} cannot be read: {_words(error)}") from error

    def _check_files(self, files: Mapping[str, bytes], what: str) -> None:
        listed = {name: sha for part in self.parts.values() for name, sha in part["files"].items()}
        if self.model.embedded is not None:
            listed[self.model.embedded] = self.fields["model"]["sha256"]
        for name, sha in listed.items():
            if name not in files:
                raise DamagedFile(f"{what} lacks the file {name!r}, which its manifest names; it may have been cut")
            if digest(files[name]) != sha:
                raise DamagedFile(f"the file {name!r} of {what} is not the one its manifest names: the pane is damaged")
        if spare := sorted(set(files) - set(listed)):
            raise DamagedFile(f"{what} holds the file {spare[0]!r}, which its manifest does not name")

    # --- what it says ------------------------------------------------------------------------------------------------

    @property
    def dataset(self) -> str:
        """Whose rows."""
        return _text(self.fields, "dataset")

    @property
    def tool(self) -> str:
        """What made it."""
        return _text(self.fields, "tool")

    @property
    def created(self) -> str:
        """The day of its last charge, as in 2026-01-31."""
        return _matching(_DATE, self.fields["created"])

    @property
    def n_rows_public(self) -> int:
        """The declared row count."""
        if (count := _whole(self.fields["n_rows_public"])) == 0:
            raise ValueError("a pane is about at least one row")
        return count

    @cached_property
    def schema(self) -> Schema:
        """All declared columns."""
        found = Schema.from_json(self.fields["schema"])
        if found.n_features > MOST_FEATURES:
            raise InvalidInput(f"it declares {found.n_features} features, and a pane at most {MOST_FEATURES}")
        if self.target is not None:
            found.column_index(self.target)
        return found

    @property
    def target(self) -> str | None:
        """The target column."""
        return None if self.fields["target"] is None else _text(self.fields, "target")

    @cached_property
    def feature_schema(self) -> Schema:
        """The columns that the model reads."""
        return self.schema if self.target is None else self.schema.without(self.target)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The promise for everything in the pane together."""
        return stored.promise({**self.fields, "notes": []})[0]

    @cached_property
    def cost(self) -> Cost:
        """What was charged for it."""
        return stored.promise({**self.fields, "notes": []})[1]

    @cached_property
    def bill(self) -> tuple[Line, ...]:
        """The questions that were paid for."""
        return tuple(
            Line(
                _whole(line["entry"]),
                _matching(_DATE, line["date"]),
                _text(line, "question"),
                Cost(_whole(line["pico_mu_squared"])),
                _number(line["epsilon"]),
            )
            for line in self.fields["bill"]
        )

    @cached_property
    def model(self) -> MadeFor:
        """The model that it was made with."""
        fields = self.fields["model"]
        low, high = (_number(end) for end in fields["range"])
        output = fields["output"]
        if not isinstance(output, str | int | float | bool | None) or not low < high:
            raise ValueError("its output or range is none")
        if fields["embedded"] is not None:
            _matching(_SHA256, fields["sha256"])
        return MadeFor(
            name=_text(fields, "name"),
            digest=_maybe(fields["digest"], lambda sha: _matching(_SHA256, sha)),
            output=output,
            range=(low, high),
            inputs=_text(fields, "inputs"),
            column=_maybe(fields["column"], _whole),
            embedded=_maybe(fields["embedded"], lambda name: _text({"": name}, "")),
        )

    @cached_property
    def parts(self) -> Mapping[str, Mapping[str, Any]]:
        """By name: the part's format, its share of the price and its files."""
        parts = self.fields["parts"]
        owned: set[str] = set()
        for name, part in parts.items():
            _matching(_PART_NAME, name)
            _text(part, "format")
            _number(part["share"])
            if not isinstance(part["files"], dict) or not part["files"]:
                raise TypeError(f"part {name!r} needs files")
            for file, sha in part["files"].items():
                _matching(_SHA256, sha)
                if not file.startswith(f"{name}/") or file in owned:
                    raise ValueError(f"the file {file!r} does not belong to part {name!r}")
                owned.add(file)
        if not parts:
            raise ValueError("it has no part")
        return dict(parts)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str) or not 0 < len(value) <= 1000:
        raise TypeError(f"{name!r} must be a text of 1 to 1000 characters")
    return value


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{str(value)[:60]!r} is not of the form {pattern.pattern}")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise TypeError(f"{str(value)[:60]!r} is no whole number of at least 0")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:60]!r} is no number")
    return float(value)


def _maybe(value: object, read: Callable[[object], Found]) -> Found | None:
    return None if value is None else read(value)
