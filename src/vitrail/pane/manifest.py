"""The manifest of a pane: what it is, what it promises, what was paid, and which files belong to which part.

The JSON object is kept as it was read, so that what a later version adds comes through a save unchanged; the dataclasses
below are what this version understands of it. docs/pane.md documents every field. A new kind of part is one :class:`Kind`
here and a few lines in ``pane_recipe``; a part that a reader does not know is kept.

*Several models.* Rows are about none. A part that is about a model is there once for each: ``global`` for the first,
``global-2`` for the second. What a pane says of one of them is read from the pane of that one (:meth:`Manifest.about`), so
everything else knows one model at most.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..accounting import Cost, JsonValue
from ..accounting.guarantee import Guarantee
from ..errors import DamagedFile, InvalidInput, ModelError
from ..model import Model
from ..model.contents import read_once
from ..model.feeds import INPUTS
from ..model.onnx_graphs import OnnxPredictor
from ..model.reading_models import predictor_of
from ..results import codec
from ..results.archive import check_files, check_format, digest
from ..results.band_claim import TWO_SIDED_95, weakest
from ..results.base import Stored
from ..results.checks import plain_value
from ..results.class_picture import ClassPicture
from ..results.mean_reasons import MeanReasons
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.synopsis import Synopsis
from ..schema import Level, Schema
from .lifetime import DEFAULT_VERSION, Words, WordsGiven, checked_day, checked_page, checked_version

FORMAT = "vitrail-pane/3"
MOST_FEATURES = 100_000
"""Encoded features of a schema. Parts that hold the square of their number have bounds of their own."""
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
    """A model that a pane was made with, as far as the manifest knows it.

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
    threshold : float or None
        From which output on a row is of class 1, if the owner chose it.
    """

    name: str
    digest: str | None
    output: Level | None
    range: tuple[float, float]
    inputs: str
    column: int | None
    embedded: str | None = None
    sha256: str | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", plain_value(self.output))
        _check("models", _TEXT, self.name, self.inputs)
        _check("models", _SHA256, *(sha for sha in (self.digest, self.sha256) if sha is not None))
        if not self.range[0] < self.range[1] or (self.column is not None and self.column < 0):
            raise InvalidInput("'models' has an empty range, or a column below 0")
        if self.threshold is not None and not self.range[0] < self.threshold < self.range[1]:
            raise InvalidInput(f"'models' has the threshold {self.threshold!r} outside the range of the model")
        if (self.embedded is None) != (self.sha256 is None):
            raise InvalidInput("'models' must name both an embedded file and its hash, or neither")

    @property
    def border(self) -> float:
        """The output that counterfactuals cross: the threshold, or the middle of the range."""
        return sum(self.range) / 2 if self.threshold is None else self.threshold


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
    models : tuple of MadeFor
        The models that it was made with; none where it holds private rows alone.
    guarantee, cost, bill
        The promise for everything in the pane together, what was charged for it, and the questions that were paid for.
    parts : mapping of str to Part
        What is inside.
    version, expires : str, str or None
        What the owner calls it among panes of the same data; the last day that it is meant to be used, as in 2027-06-30.
    page : mapping or None
        The owner's words for pages, as they were given.
    fields : mapping
        The JSON object.
    """

    tool: str
    created: str
    dataset: str
    n_rows_public: int
    target: str | None
    schema: Schema
    models: tuple[MadeFor, ...]
    guarantee: Guarantee
    cost: Cost
    bill: tuple[Line, ...]
    parts: Mapping[str, Part]
    version: str = DEFAULT_VERSION
    expires: str | None = None
    page: Words = field(default=None, compare=False)  # any JSON object: written and read by this class, not by its fields
    fields: Mapping[str, JsonValue] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check("dataset", _TEXT, self.dataset)
        _check("tool", _TEXT, self.tool)
        _check("created", _DATE, self.created)
        checked_version(self.version)
        if self.expires is not None:
            checked_day(self.expires)
        object.__setattr__(self, "page", checked_page(self.page))
        if not 0 < self.n_rows_public < 2**63:
            raise InvalidInput("'n_rows_public' must be at least 1")
        if self.schema.n_features > MOST_FEATURES:
            raise InvalidInput(f"'schema' declares {self.schema.n_features} features, and a pane at most {MOST_FEATURES}")
        if self.target is not None and self.target not in self.schema:
            raise InvalidInput(f"'schema' has no column {self.target!r}, which 'target' names")
        if len({made_for.name for made_for in self.models}) < len(self.models):
            raise InvalidInput("'models' has two models of one name")
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
        known = {**_DEFAULTS, **_known(fields, cls)}
        if isinstance(parts := fields.get("parts"), dict):
            known["parts"] = {name: _known(part, Part) if isinstance(part, dict) else part for name, part in parts.items()}
        made = codec.from_json(cls, known, f"the manifest of {what}")
        listed: dict[str, JsonValue] = {name: sha for part in made.parts.values() for name, sha in part.files.items()}
        for made_for in made.models:
            if made_for.embedded is not None:
                if made_for.embedded in listed:
                    raise DamagedFile(f"the manifest of {what} names {made_for.embedded!r} as a model and as something else")
                listed[made_for.embedded] = made_for.sha256
        check_files(listed, files, what)
        try:
            return replace(made, page=checked_page(fields.get("page")), fields=MappingProxyType(dict(fields)))
        except InvalidInput as error:
            raise DamagedFile(f"the manifest of {what} cannot be read: 'page': {error}") from error

    def to_fields(self) -> dict[str, JsonValue]:
        """The JSON object of a new pane; what its owner has not declared is not written."""
        written = {name: value for name, value in codec.to_json(self).items() if _DEFAULTS.get(name, ...) != value}
        return {"format": FORMAT, **written, **({} if self.page is None else {"page": dict(self.page)})}

    def with_page(self, page: WordsGiven, files: Mapping[str, bytes]) -> Manifest:
        """The same manifest with other words for pages; what a later version wrote into it stays."""
        kept, words = {name: value for name, value in self.fields.items() if name != "page"}, checked_page(page)
        return Manifest.read(kept if words is None else {**kept, "page": dict(words)}, files, "the pane")

    @cached_property
    def feature_schema(self) -> Schema:
        """The columns that the model reads."""
        return self.schema if self.target is None else self.schema.without(self.target)

    @cached_property
    def known(self) -> dict[str, tuple[str, int]]:
        """The parts that this version reads, by name: their kind, and the number of the model that they are about."""
        names = {part_name(kind, n): (kind, n) for kind in KINDS for n in range(1 if kind == ROWS else len(self.models))}
        return {
            name: names[name]
            for name, part in self.parts.items()
            if name in names and part.format == KINDS[names[name][0]].holds.FORMAT
        }

    def title(self, name: str) -> str:
        """What a part is called, and which of several models it is about."""
        kind, number = self.known[name]
        of = f" of {self.models[number].name}" if kind != ROWS and len(self.models) > 1 else ""
        return KINDS[kind].title + of

    def number_of(self, model: Model) -> int | None:
        """Which of the pane's models this is: by content, or by name where that has none. None if it is another one."""
        now = model.digest()
        same = [
            (made.name != model.name, number)  # of two with the same content, the one of its name
            for number, made in enumerate(self.models)
            if (now == made.digest if made.digest is not None else made.name == model.name)
        ]
        return min(same)[1] if same else None

    def about(self, number: int, files: Mapping[str, bytes]) -> tuple[Manifest, dict[str, bytes]]:
        """The pane of one of the models: what is about it and what is about none, with the promise and price of all."""
        made_for, parts, kept = self.models[number], {}, {}
        if made_for.embedded is not None:
            kept[made_for.embedded] = files[made_for.embedded]
        for name, (kind, of) in self.known.items():
            if kind == ROWS or of == number:
                renamed = {file: f"{kind}/{file.removeprefix(f'{name}/')}" for file in self.parts[name].files}
                kept |= {new: files[old] for old, new in renamed.items()}
                hashes = {new: self.parts[name].files[old] for old, new in renamed.items()}
                parts[kind] = replace(self.parts[name], files=hashes)
        if not parts:
            raise InvalidInput(f"this version reads none of what the pane holds about {made_for.name!r}")
        one = replace(self, models=(made_for,), parts=parts)
        return Manifest.read(one.to_fields(), kept, "the pane"), kept


_DEFAULTS: Mapping[str, JsonValue] = {"version": DEFAULT_VERSION, "expires": None}
"""Fields that files may lack, and what that means."""


def _known(fields: Mapping[str, JsonValue], kind: type) -> dict[str, JsonValue]:
    return {name: fields[name] for name in codec.stored_fields(kind) if name in fields}


def _check(field_name: str, pattern: re.Pattern[str], *values: str) -> None:
    for value in values:
        if not pattern.fullmatch(value):
            raise InvalidInput(f"{field_name!r} holds {value[:60]!r}, which is not of the form {pattern.pattern}")


EMBEDDED = "embedded"
MODEL_FILE = "model/{}.onnx"
ROWS = "rows"
"""The one part that is about no model."""
REASONS = "reasons"


def part_name(kind: str, number: int) -> str:
    """The name of a part, or of the file of a model, by the model's number: the first one's is the kind's own.

    Examples
    --------
    >>> part_name("global", 0), part_name("global", 1)
    ('global', 'global-2')
    """
    return kind if number == 0 else f"{kind}-{number + 1}"


def described(models: Sequence[Model], contents: Mapping[str, bytes], threshold: float | None) -> tuple[MadeFor, ...]:
    """What a manifest says about models, and the files of them that the pane holds, in their order."""

    def one(model: Model, file: str | None) -> MadeFor:
        known, limits, sha256 = model.digest(), (model.lo, model.hi), None if file is None else digest(contents[file])
        side = None if threshold is None else float(threshold)
        return MadeFor(model.name, known, model.output, limits, model.inputs, model.column, file, sha256, side)

    return tuple(one(model, file) for model, file in zip(models, contents or [None] * len(models), strict=True))


def onnx_content(model: Model) -> bytes:
    """The bytes of an ONNX model; other models are not written into files, because only code could read them back."""
    predictor = model.predictor
    if not isinstance(predictor, OnnxPredictor):
        raise ModelError(
            f"embed_model is True, and {model.name} is no ONNX model; export it to ONNX first, or leave the model out: "
            "who has the model can give it to Pane.load"
        )
    return predictor.wrapped


@read_once()
def opened(given: object, manifest: Manifest, files: Mapping[str, bytes], what: str) -> tuple[Model, ...]:
    """The models that a caller gave, in whatever form, once they are known to work on the pane's columns."""
    if given is None:
        return ()
    if given == EMBEDDED:
        models = [_read_as(files[made.embedded], made) for made in manifest.models if made.embedded is not None]
        if not models:
            raise InvalidInput(f"{what} holds no model; give the one that it was made with: model=vt.Model(...)")
    else:
        models = [_one_opened(one, manifest) for one in (given if isinstance(given, list | tuple) else [given])]
    if len(models) > max(1, len(manifest.models)):
        raise InvalidInput(f"{len(models)} models were given, and {what} is about {len(manifest.models)}; give one")
    for model in models:
        model.check(manifest.feature_schema)
        if manifest.models and manifest.number_of(model) is None:
            _say_that_it_is_another(model, manifest, what)
    return tuple(models)


def _one_opened(given: object, manifest: Manifest) -> Model:
    if isinstance(given, Model):
        return given
    if not isinstance(given, str | Path):
        raise InvalidInput(f"model is {type(given).__name__}; wrap it: vt.Model(your_model)")
    path = Path(given)
    predictor = predictor_of(path)
    if not manifest.models:
        return Model(predictor, name=path.name)
    # Of several models it is the one whose content it has, read as the pane says.
    ways = [_read_as(predictor, made_for) for made_for in manifest.models]
    other = replace(manifest.models[0], name=path.name)
    return next((model for model in ways if manifest.number_of(model) is not None), None) or _read_as(predictor, other)


def _read_as(given: object, made_for: MadeFor) -> Model:
    """A model read as the pane says: the same output, range and inputs give the same digest."""
    inputs = next((known for known in INPUTS if known == made_for.inputs), None)
    if inputs is None:
        raise DamagedFile(f"the manifest says that the model takes {made_for.inputs!r}; there are {', '.join(INPUTS)}")
    # By its name where it has one: a class may be called by the number of another class's column.
    predictor = predictor_of(given)
    named = predictor.classes is not None and made_for.output in predictor.classes
    output = made_for.output if named else made_for.column
    return Model(predictor, output=output, range=made_for.range, inputs=inputs, name=made_for.name)


def _say_that_it_is_another(model: Model, manifest: Manifest, what: str) -> None:
    contents = [("" if made.digest is None else f" (content {made.digest[:12]})") for made in manifest.models]
    about = " and ".join(f"{made.name!r}{content}" for made, content in zip(manifest.models, contents, strict=True))
    known = "is another model" if model.digest() is not None else "has no content that could be compared"
    warnings.warn(
        f"{what} was made with {about}, and {model.name!r} {known}: curves, importance and the local synopsis are about the "
        "former. Private rows are about no model, and serve any.",
        UserWarning,
        stacklevel=4,
    )


@dataclass(frozen=True)
class Kind:
    """A kind of part: its title, what it holds, and a sentence on how accurate that is."""

    title: str
    holds: type[Stored]
    accuracy: Callable[[Any], str]


def read_part(name: str, manifest: Manifest, files: Mapping[str, bytes], what: str) -> Any:
    """The part of a pane with this name, if it is about the pane's rows and columns."""
    described = f"the part {name!r} of {what}"
    inside = {file.removeprefix(f"{name}/"): files[file] for file in manifest.parts[name].files}
    part: Any = KINDS[manifest.known[name][0]].holds.from_files(inside, described)
    try:
        if part.n_rows_public != manifest.n_rows_public:
            raise InvalidInput("it is about another number of rows than the pane")
        if isinstance(part, Report):
            for column in {*(part.pdp or ()), *(part.ale or ()), *(part.importance or ())}:
                manifest.feature_schema.column_index(column)
        elif part.schema.digest() != manifest.feature_schema.digest():
            raise InvalidInput("it is about other columns than the pane")
    except InvalidInput as error:
        raise DamagedFile(f"{described} cannot be read: {error}") from error
    return part


def _rows_accuracy(rows: PrivateRows) -> str:
    on_bin, on_cell = (100 * sigma / rows.total for sigma in (rows.counts_sigma, rows.tables_sigma))
    return (
        f"{len(rows.columns)} columns, {len(rows.noisy_tables)} tables; noise (one std) of {on_bin:.2g} % of "
        f"all rows on a bin, {on_cell:.2g} % on a cell"
    )


def _reasons_accuracy(reasons: MeanReasons) -> str:
    noise = float(np.median(reasons.stds))
    return (
        f"means over the real rows of what {len(reasons.players)} columns add to an output; noise (one std) of {noise:.2g}"
    )


def _synopsis_accuracy(synopsis: Synopsis) -> str:
    noise = synopsis.sigma / synopsis.scales["F1"] / synopsis.n_rows_public
    return f"{sum(part.size for part in synopsis.parts)} moments; noise of {noise:.2g} on a mean of outputs times a feature"


def _report_accuracy(report: Report) -> str:
    accuracies = []
    for name, effects in (("partial dependence", report.pdp), ("accumulated effects", report.ale)):
        widths = [TWO_SIDED_95 * float(np.median(curve.std)) for curve in (effects or {}).values() if curve.std is not None]
        if effects is not None and widths:
            mark = weakest(curve.band_claim for curve in effects.values()).mark
            accuracies.append(f"{name} of {len(effects)} columns ± {float(np.median(widths)):.2g} ({mark})")
    if report.importance is not None:
        table = report.importance.frame()
        width = float(np.median(table["upper"].astype(float) - table["lower"].astype(float))) / 2
        accuracies.append(
            f"importance of {len(report.importance)} columns ± {width:.2g} ({report.importance.band_claim.mark})"
        )
    return "; ".join(accuracies) + "; half-widths of bands, medians"


def _picture_accuracy(picture: ClassPicture) -> str:
    known = [str(label) for label, seen in zip(picture.labels, picture.known, strict=True) if seen]
    rows = "with" if picture.rows is not None else "without"
    return f"classes that stand out of the noise: {', '.join(known) or 'none'}; {rows} private rows to look near"


KINDS: Mapping[str, Kind] = {
    ROWS: Kind("private rows", PrivateRows, _rows_accuracy),
    REASONS: Kind("reasons on real rows", MeanReasons, _reasons_accuracy),
    "local": Kind("local synopsis", Synopsis, _synopsis_accuracy),
    "global": Kind("global report", Report, _report_accuracy),
    "counterfactual": Kind("picture of the classes", ClassPicture, _picture_accuracy),
}
