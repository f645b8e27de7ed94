"""The manifest of a pane: what it is, what it promises, what was paid, and which files belong to which part.

The JSON object is kept as it was read, so that what a later version adds comes through a save unchanged; the dataclasses
below are what this version understands of it. docs/pane.md documents every field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from ..accounting import Cost, JsonValue
from ..errors import DamagedFile, InvalidInput
from ..guarantee import Guarantee
from ..results import codec
from ..results.archive import check_files, check_format
from ..results.checks import plain_value
from ..schema import Level, Schema

FORMAT = "vitrail-pane/2"
MOST_FEATURES = 4_000
"""Encoded features of a schema: some parts hold, or build, the square of their number."""
MOST_TEXT = 1000
_PART_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TEXT = re.compile(rf".{{1,{MOST_TEXT}}}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """A question that was paid for this pane: its entry in the ledger (0 where that is not known), day, words and price."""

    entry: int
    date: str
    question: str
    cost: Cost
    epsilon: float

    def __post_init__(self) -> None:
        _check("bill", _DATE, self.date)
        _check("bill", _TEXT, self.question)
        if not 0 <= self.entry < 2**63:
            raise InvalidInput(f"'bill' names entry {self.entry} of a ledger; entries are numbered from 0")


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
    embedded, sha256 : str or None
        The file of the pane that holds it, and its hash.
    """

    name: str
    digest: str | None
    output: Level | None
    range: tuple[float, float]
    inputs: str
    column: int | None
    embedded: str | None = None
    sha256: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", plain_value(self.output))
        _check("model", _TEXT, self.name, self.inputs)
        _check("model", _SHA256, *(sha for sha in (self.digest, self.sha256) if sha is not None))
        if not self.range[0] < self.range[1] or (self.column is not None and self.column < 0):
            raise InvalidInput("'model' has an empty range, or a column below 0")
        if (self.embedded is None) != (self.sha256 is None):
            raise InvalidInput("'model' must name both an embedded file and its hash, or neither")


@dataclass(frozen=True, slots=True)
class Part:
    """A stored result: its format, its share of the price (of mu squared), and the hashes of its files."""

    format: str
    share: float
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        _check("parts", _TEXT, self.format)
        _check("parts", _SHA256, *self.files.values())


@dataclass(frozen=True, eq=False)
class Manifest:
    """What ``manifest.json`` says. Everything was checked when it was made; fields that are not known are kept.

    Attributes
    ----------
    tool, created : str
        What made it; the day of its last charge, as in 2026-01-31.
    dataset, n_rows_public, target, schema
        The declared facts; ``schema`` has all columns.
    model : MadeFor
        The model that it was made with.
    guarantee, cost, bill
        The promise for everything in the pane together, what was charged for it, and the questions that were paid for.
    parts : mapping of str to Part
        What is inside.
    fields : mapping
        The JSON object.
    """

    tool: str
    created: str
    dataset: str
    n_rows_public: int
    target: str | None
    schema: Schema
    model: MadeFor
    guarantee: Guarantee
    cost: Cost
    bill: tuple[Line, ...]
    parts: Mapping[str, Part]
    fields: Mapping[str, JsonValue] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check("dataset", _TEXT, self.dataset)
        _check("tool", _TEXT, self.tool)
        _check("created", _DATE, self.created)
        if not 0 < self.n_rows_public < 2**63:
            raise InvalidInput("'n_rows_public' must be at least 1")
        if self.schema.n_features > MOST_FEATURES:
            raise InvalidInput(f"'schema' declares {self.schema.n_features} features, and a pane at most {MOST_FEATURES}")
        if self.target is not None and self.target not in self.schema:
            raise InvalidInput(f"'schema' has no column {self.target!r}, which 'target' names")
        if not self.parts:
            raise InvalidInput("'parts' is empty; a pane has at least one")
        for name, part in self.parts.items():
            _check("parts", _PART_NAME, name)
            if not part.files or not all(file.startswith(f"{name}/") for file in part.files):
                raise InvalidInput(f"'parts' names files that do not belong to {name!r}, or none")

    @classmethod
    def read(cls, fields: Mapping[str, JsonValue], files: Mapping[str, bytes], what: str) -> Manifest:
        """The manifest, if it describes these files."""
        check_format(fields, FORMAT, what)
        known = _known(fields, cls)
        if isinstance(parts := fields.get("parts"), dict):
            known["parts"] = {name: _known(one, Part) if isinstance(one, dict) else one for name, one in parts.items()}
        made = codec.from_json(cls, known, f"the manifest of {what}")
        listed: dict[str, JsonValue] = {name: sha for part in made.parts.values() for name, sha in part.files.items()}
        if made.model.embedded is not None:
            if made.model.embedded in listed:
                raise DamagedFile(f"the manifest of {what} names {made.model.embedded!r} as a model and as a part")
            listed[made.model.embedded] = made.model.sha256
        check_files(listed, files, what)
        return replace(made, fields=MappingProxyType(dict(fields)))

    def to_fields(self) -> dict[str, JsonValue]:
        """The JSON object of a new pane."""
        return {"format": FORMAT, **codec.to_json(self)}

    @cached_property
    def feature_schema(self) -> Schema:
        """The columns that the model reads."""
        return self.schema if self.target is None else self.schema.without(self.target)


def _known(fields: Mapping[str, JsonValue], kind: type) -> dict[str, JsonValue]:
    return {name: fields[name] for name in codec.stored_fields(kind) if name in fields}


def _check(field_name: str, pattern: re.Pattern[str], *values: str) -> None:
    for value in values:
        if not pattern.fullmatch(value):
            raise InvalidInput(f"{field_name!r} holds {value[:60]!r}, which is not of the form {pattern.pattern}")
