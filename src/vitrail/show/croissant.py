"""A privacy label as JSON-LD: a dataset in the vocabulary of Croissant (MLCommons, version 1.0), and a few terms of our own.

Terms of ``dp:`` are documented in docs/exports.md. Columns are told as schema.org's ``variableMeasured``, and as Croissant's
records where there is a file that holds them. Everything comes from declarations, releases and the ledger.

Test: tests/show/test_label.py, also with Croissant's own loader (mlcroissant).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..accounting import JsonValue
from ..accounting.neighbours import Neighbours, kind_of, rows_per_person_of
from ..errors import InvalidInput
from ..schema import Column, Numeric, Schema

if TYPE_CHECKING:
    from .label import PrivacyLabel

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
DP = "urn:vitrail:dp#"
"""The namespace of our own terms."""
DAYS = "days since 1970-01-01"
_CROISSANT = (
    "citeAs column equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath "
    "key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField transform"
)
CONTEXT: dict[str, JsonValue] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "dp": DP,
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _CROISSANT.split()},
}
ENCODINGS = {".csv": "text/csv", ".parquet": "application/x-parquet", ".arrow": "application/vnd.apache.arrow.file"}
"""Of files of rows, by their endings. Croissant's own loader reads the first two."""
OWNER_TERMS = {
    "license": "license",
    "url": "url",
    "creator": "creator",
    "date-published": "datePublished",
    "version": "version",
    "citation": "citeAs",
}
"""What Croissant asks for and only the owner knows: names in ``answers``, and the terms they become."""
_NOT_IN_AN_ID = re.compile(r"[^\w.-]|^\.+$")
"""Croissant's loader refuses blanks in an ``@id``; colons, slashes and dots alone would make another address of it."""


def json_ld(label: PrivacyLabel, file: str | Path | None = None) -> dict[str, JsonValue]:
    """The label, and the records of a file of sampled rows where one is given."""
    name = label.dataset or "a dataset"
    made: dict[str, JsonValue] = {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": name,
        "description": f"{label.what} from the private rows of {name}. {label.guarantee.sentence}",
    }
    if label.created:
        made["datePublished"] = label.created
    made |= {OWNER_TERMS[name]: _owner_term(name, text) for name, text in label.answers.items() if name in OWNER_TERMS}
    made["dp:label"] = _terms(label)
    if label.schema is not None:
        made["variableMeasured"] = [_variable(name, column) for name, column in label.schema.items()]
    return made if file is None else made | _records(label.schema, Path(file))


def _owner_term(name: str, text: str) -> JsonValue:
    return {"@type": "sc:Organization", "name": text} if name == "creator" else text


def _terms(label: PrivacyLabel) -> dict[str, JsonValue]:
    promise = label.guarantee
    terms: dict[str, JsonValue] = {"@type": "dp:Label"}
    terms |= {f"dp:{name}": number for name, number in promise.to_json().items() if name in ("epsilon", "delta", "mu")}
    terms |= {"dp:neighbours": promise.neighbours, "dp:protects": promise.protects, "dp:sentence": promise.sentence}
    terms |= _unit(promise.neighbours) | {"dp:trustModel": "central", "dp:mechanism": list(label.mechanisms)}
    if label.model:
        terms["dp:model"] = label.model
    if label.n_rows_public is not None:
        terms["dp:declaredRowCount"] = label.n_rows_public
    if label.rows_counted is not None:
        terms["dp:rowsCounted"] = label.rows_counted.sentence
    if label.accuracy:
        terms["dp:accuracy"] = list(label.accuracy)
    if (bill := label.bill) is not None:
        terms["dp:budget"] = {
            "@type": "dp:Budget",
            "dp:account": bill.account,
            "dp:budgetEpsilon": bill.budget_epsilon,
            "dp:budgetDelta": bill.budget_delta,
            "dp:spentEpsilon": bill.spent_epsilon,
            "dp:remainingEpsilon": bill.remaining_epsilon,
            "dp:ledgerHead": bill.head,
        }
    return terms


def _unit(neighbours: Neighbours) -> dict[str, JsonValue]:
    """Row or person, and how many rows one has at most, where that was declared."""
    most = rows_per_person_of(neighbours)
    if neighbours == kind_of(neighbours):
        return {"dp:unitOfPrivacy": "row", "dp:mostRowsPerUnit": most}
    return {"dp:unitOfPrivacy": "person"} | ({"dp:mostRowsPerUnit": most} if most > 1 else {})


def _variable(name: str, column: Column) -> dict[str, JsonValue]:
    """A column and its public bounds."""
    made: dict[str, JsonValue] = {"@type": "sc:PropertyValue", "name": name, "description": _description(column)}
    if column.label:
        made["alternateName"] = column.label
    if column.from_rows:
        made["dp:readOffRows"] = list(column.from_rows)
    if isinstance(column, Numeric):
        unit = DAYS if column.date else column.unit
        made |= {"unitText": unit} if unit else {}
        return made | {"minValue": column.low, "maxValue": column.high, "dp:codes": list(column.codes)}
    return made | {"dp:levels": list(column.levels)}


def _description(column: Column) -> str:
    """What was declared in words, and what a value may be."""
    return ": ".join(filter(None, (column.description, column.allowed)))


def _records(schema: Schema | None, file: Path) -> dict[str, JsonValue]:
    if schema is None:
        raise InvalidInput(f"file is {str(file)!r}, and this label knows no columns; make it of private rows or of a pane")
    if (encoding := ENCODINGS.get(file.suffix.lower())) is None:
        raise InvalidInput(f"file is {str(file)!r}; its name must end in {', '.join(ENCODINGS)}, as files of rows do")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"the file of rows {str(file)!r} cannot be read: {error.strerror}") from error
    (file_id,) = _ids([file.name])
    held: JsonValue = {
        "@type": "cr:FileObject",
        "@id": file_id,
        "name": file.name,
        "contentUrl": file.name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": encoding,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    fields: list[JsonValue] = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{field_id}",
            "name": name,
            "description": _description(column),
            "dataType": _data_type(column),
            "source": {"fileObject": {"@id": file_id}, "extract": {"column": name}},
        }
        for field_id, (name, column) in zip(_ids(schema), schema.items(), strict=True)
    ]
    record_set: JsonValue = {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
    return {"distribution": [held], "recordSet": [record_set]}


def _ids(names: Iterable[str]) -> list[str]:
    """Names as parts of an ``@id``, no two the same.

    Examples
    --------
    >>> _ids(["age", "net pay", "net_pay", ".."])
    ['age', 'net_pay', 'net_pay_2', '_']
    """
    made: dict[str, None] = {}
    for plain in (_NOT_IN_AN_ID.sub("_", name) for name in names):
        numbered = (f"{plain}_{number}" for number in itertools.count(2))
        made[next(one for one in itertools.chain([plain], numbered) if one not in made)] = None
    return [*made]


def _data_type(column: Column) -> str:
    """As rows are written: whole numbers, numbers, truths, texts; levels of several types are texts."""
    if isinstance(column, Numeric):
        return "sc:Integer" if column.integer else "sc:Float"
    kinds = {type(level) for level in column.levels}
    names = {frozenset({bool}): "sc:Boolean", frozenset({int}): "sc:Integer", frozenset({float}): "sc:Float"}
    return "sc:Float" if kinds == {int, float} else names.get(frozenset(kinds), "sc:Text")
