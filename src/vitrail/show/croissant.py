"""A privacy label as JSON-LD: a dataset in the vocabulary of Croissant (MLCommons, version 1.0), and a few terms of our own.

Terms of ``dp:`` are documented in docs/exports.md. Columns are told as schema.org's ``variableMeasured``, and as Croissant's
records where there is a file that holds them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ..accounting import JsonValue
from ..accounting.neighbours import rows_per_person_of
from ..errors import InvalidInput
from ..schema import Column, Numeric, Schema

if TYPE_CHECKING:
    from .label import PrivacyLabel

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
DP = "urn:vitrail:dp#"
"""The namespace of our own terms."""
_CROISSANT = (
    "citeAs column extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath key md5 parentField "
    "path recordSet references regex repeated replace separator source subField transform"
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
"""Of files of rows, by their endings."""


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
    made["dp:label"] = _terms(label)
    if label.schema is not None:
        made["variableMeasured"] = [_variable(name, column) for name, column in label.schema.items()]
    return made if file is None else made | _records(label.schema, Path(file))


def _terms(label: PrivacyLabel) -> dict[str, JsonValue]:
    promise = label.guarantee
    most = rows_per_person_of(promise.neighbours)
    terms: dict[str, JsonValue] = {"@type": "dp:Label"}
    terms |= {f"dp:{name}": number for name, number in promise.to_json().items() if name in ("epsilon", "delta", "mu")}
    terms |= {"dp:neighbours": promise.neighbours, "dp:protects": promise.protects, "dp:sentence": promise.sentence}
    terms |= {
        "dp:unitOfPrivacy": "row" if most == 1 else "person",
        "dp:mostRowsPerUnit": most,
        "dp:trustModel": "central",
        "dp:mechanism": list(label.mechanisms),
    }
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


def _variable(name: str, column: Column) -> dict[str, JsonValue]:
    """A column and its public bounds."""
    made: dict[str, JsonValue] = {"@type": "sc:PropertyValue", "name": name, "description": column.allowed}
    if isinstance(column, Numeric):
        return made | {"minValue": column.low, "maxValue": column.high, "dp:codes": list(column.codes)}
    return made | {"dp:levels": list(column.levels)}


def _records(schema: Schema | None, file: Path) -> dict[str, JsonValue]:
    if schema is None:
        raise InvalidInput(f"file is {str(file)!r}, and this label knows no columns; make it of private rows or of a pane")
    if (encoding := ENCODINGS.get(file.suffix.lower())) is None:
        raise InvalidInput(f"file is {str(file)!r}; its name must end in {', '.join(ENCODINGS)}, as files of rows do")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"the file of rows {str(file)!r} cannot be read: {error.strerror}") from error
    held: JsonValue = {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": encoding,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    fields: list[JsonValue] = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{name}",
            "name": name,
            "description": column.allowed,
            "dataType": _data_type(column),
            "source": {"fileObject": {"@id": file.name}, "extract": {"column": name}},
        }
        for name, column in schema.items()
    ]
    record_set: JsonValue = {"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}
    return {"distribution": [held], "recordSet": [record_set]}


def _data_type(column: Column) -> str:
    """As rows are written: whole numbers, numbers, truths, texts; levels of several types are texts."""
    if isinstance(column, Numeric):
        return "sc:Integer" if column.integer else "sc:Float"
    kinds = {type(level) for level in column.levels}
    names = {frozenset({bool}): "sc:Boolean", frozenset({int}): "sc:Integer", frozenset({float}): "sc:Float"}
    return "sc:Float" if kinds == {int, float} else names.get(frozenset(kinds), "sc:Text")
