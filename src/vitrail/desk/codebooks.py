"""Code books: tables in CSV, JSON or Markdown; our own schemas; Frictionless, pandera, Croissant; SQL's CREATE TABLE.

A code book is public. What it says about a column becomes facts (:class:`~vitrail.desk.described.Described`); what cannot
be understood is no fact, and is asked for or left open later.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..accounting import JsonValue
from ..errors import SchemaError
from ..schema import Schema
from ..schema.rules import named_in, rule_to_json
from .codebook_cells import described_cells, is_list, kind_of, level_in, number_in, values_in
from .codebook_sql import described_tables
from .described import CODE_BOOK, Described, described, first_of

HEADINGS = {
    "name": (
        "name",
        "column",
        "columnname",
        "variable",
        "variablename",
        "field",
        "fieldname",
        "feature",
        "attribute",
        "var",
    ),
    "kind": ("type", "kind", "datatype", "dtype", "measure", "measurementlevel", "variabletype"),
    "values": (
        "values",
        "levels",
        "categories",
        "codes",
        "valuelabels",
        "allowedvalues",
        "permittedvalues",
        "value",
        "code",
    ),
    "range": ("range", "domain", "bounds", "validrange"),
    "low": ("low", "min", "minimum", "lower", "lowerbound", "from"),
    "high": ("high", "max", "maximum", "upper", "upperbound", "to"),
    "label": ("label", "title", "caption", "displayname", "heading", "question"),
    "unit": ("unit", "units", "unitofmeasure", "measurementunit"),
    "description": ("description", "meaning", "definition", "notes", "comment", "comments", "explanation", "details"),
    "missing": (
        "missing",
        "missingvalue",
        "missingvalues",
        "missingcode",
        "missingcodes",
        "na",
        "nullable",
        "blank",
        "nulls",
    ),
    "change": ("change", "changes", "mutable", "actionable"),
    "follows": ("follows", "followsfrom", "derivedfrom", "link", "linkedto", "sameas", "rule"),
}
_ABOUT = {heading: about for about, headings in HEADINGS.items() for heading in headings}


def read_codebook(path: Path) -> dict[str, Described]:
    r"""What a code book says, by column.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "book.csv"
    >>> _ = file.write_text("column,values,label\nage,17-90,Age\nsex,Female|Male,\n")
    >>> read_codebook(file)["age"].column("age")
    Numeric(17, 90, integer=True, label='Age')
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"the code book {str(path)!r} cannot be read: {error}") from error
    ending = path.suffix.lower()
    if ending in (".json", ".jsonld", ".yaml", ".yml"):
        return _found(_in_document(_document(text, ending, path)), path)
    if ending in (".sql", ".ddl"):
        return _found(described_tables(text), path)
    if ending in (".csv", ".tsv", ".txt"):
        return _found(_in_table(_csv_lines(text)), path)
    if ending in (".md", ".markdown"):
        return _found(_in_table(_markdown_lines(text)), path)
    raise SchemaError(
        f"the code book is {str(path)!r}; its name must end in .csv, .tsv, .md, .json, .jsonld, .yaml or .sql, by what it is"
    )


def _found(columns: dict[str, Described], path: Path) -> dict[str, Described]:
    if columns:
        return columns
    raise SchemaError(
        f"the code book {str(path)!r} describes no column that can be understood; a table needs a heading such as "
        "'column' or 'variable', and others such as 'type', 'values', 'range', 'label', 'unit', 'missing'"
    )


# --- tables --------------------------------------------------------------------------------------------------------------


def _csv_lines(text: str) -> list[list[str]]:
    first = text.split("\n", 1)[0]
    mark = max((",", ";", "\t"), key=first.count)
    return [line for line in csv.reader(io.StringIO(text), delimiter=mark, skipinitialspace=True) if any(line)]


def _markdown_lines(text: str) -> list[list[str]]:
    """The lines of every table in a page whose heading names columns; tables follow one another."""
    lines = []
    for line in text.splitlines():
        if line.strip().startswith("|"):
            cells = [_unquoted(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                lines.append(cells)
    return lines


def _unquoted(cell: str) -> str:
    return cell[1:-1] if re.fullmatch(r"`[^`]*`", cell) else cell


def _in_table(lines: Sequence[Sequence[str]]) -> dict[str, Described]:
    """The columns that a table describes: one line each, or one line for each value of one."""
    if not lines:
        return {}
    about = [_ABOUT.get(re.sub(r"[^a-z]", "", heading.lower())) for heading in lines[0]]
    if "name" not in about:
        return {}
    columns: dict[str, list[dict[str, str]]] = {}
    name = ""
    for line in lines[1:]:
        cells: dict[str, str] = {}
        for what, cell in zip(about, line, strict=False):
            if what is not None and cell.strip() and what not in cells:
                cells[what] = cell.strip()
        name = cells.pop("name", name)  # an empty cell goes on with the column above
        if name:
            columns.setdefault(name, []).append(cells)
    return {name: described_cells(_one(name, lines)) for name, lines in columns.items()}


def _one(name: str, lines: Sequence[dict[str, str]]) -> dict[str, str]:
    """One line for a column that has several, one for each of its values: the value, and what it means."""
    if len(lines) == 1:
        return lines[0]
    merged: dict[str, str] = {}
    values: dict[str, str] = {}
    for line in lines:
        value = line.get("values", "")
        if value and not any(is_list(value) and _alike("values", value, known) for known in values):
            values.setdefault(value, line.get("label") or line.get("description") or "")
        for what, cell in line.items():
            if what == "values" or (what in ("label", "description", "missing") and value and not is_list(value)):
                continue  # about this value
            if not _alike(what, cell, merged.setdefault(what, cell)):
                raise _two_things(name, merged[what], cell)
    merged |= next(({"missing": line["missing"]} for line in lines if "missing" in line), {})
    return merged | ({"values": "\n".join(_value_lines(name, kind_of(merged.get("kind", ""))[0], values))} if values else {})


def _value_lines(name: str, kind: str | None, values: Mapping[str, str]) -> Iterator[str]:
    """The values of a column with what they mean, by line; a range beside another is a contradiction, or two levels."""
    lists = [value for value in values if is_list(value)]
    others = [value for value in values if value not in lists and number_in(value) is None]
    clash = len(lists) > 1 or (lists and others)
    are_levels = kind == "levels" or (kind is None and all(values.values()))
    if clash and not are_levels:
        raise _two_things(name, *[*lists, *others][:2])
    for value, meaning in values.items():
        level = f'"{value}"' if clash and value in lists else value
        yield f"{level} = {meaning}" if meaning and (clash or value not in lists) else level


def _alike(what: str, cell: str, other: str) -> bool:
    """Whether two cells about one thing say the same; words for people may go on from line to line."""
    if what == "kind":
        return kind_of(cell) == kind_of(other)
    if what in ("label", "description") or cell.casefold() == other.casefold():
        return True
    return values_in(cell) == values_in(other) != {}


def _two_things(name: str, one: str, other: str) -> SchemaError:
    return SchemaError(
        f"the code book has several lines about {name!r}, which say {one!r} and {other!r}; keep one line for a column, or "
        "one for each of its values"
    )


# --- documents -----------------------------------------------------------------------------------------------------------


def _document(text: str, ending: str, path: Path) -> object:
    try:
        if ending in (".json", ".jsonld"):
            return json.loads(text)
        return importlib.import_module("yaml").safe_load(text)
    except ImportError as error:
        raise SchemaError(
            f"the code book {str(path)!r} is YAML, and PyYAML is not installed; install pyyaml, or write it as JSON"
        ) from error
    except Exception as error:
        raise SchemaError(f"the code book {str(path)!r} cannot be read: {error}") from error


def _in_document(given: object) -> dict[str, Described]:
    """The columns of a document, by what it is."""
    if isinstance(given, list):
        return _in_records(given)
    if not isinstance(given, Mapping):
        return {}
    if "version" in given and isinstance(given.get("columns"), list):
        return {name: described(column, CODE_BOOK) for name, column in Schema.from_json(given).items()}
    readers: tuple[tuple[str, Callable[[Any], dict[str, Described]]], ...] = (
        ("recordSet", _in_croissant),
        ("resources", lambda resources: _in_frictionless(resources[0].get("schema", {}))),
        ("schema", lambda schema: _in_frictionless(schema) if isinstance(schema, Mapping) else {}),
    )
    for key, reader in readers:
        if given.get(key):
            return reader(given[key])
    if isinstance(given.get("fields"), list):
        return _in_frictionless(given)
    if "schema_type" in given and isinstance(given.get("columns"), Mapping):
        return {name: _pandera(column) for name, column in given["columns"].items()}
    columns = given.get("columns", given.get("variables", given))
    if isinstance(columns, list):
        return _in_records(columns)
    if isinstance(columns, Mapping) and all(isinstance(line, Mapping) for line in columns.values()):
        return _in_records([{"name": name, **line} for name, line in columns.items()])
    return {}


def _in_records(records: Sequence[object]) -> dict[str, Described]:
    """A table as a list of objects; levels and meanings may be lists and objects of their own."""
    columns: dict[str, list[dict[str, str]]] = {}
    for record in records:
        if not isinstance(record, Mapping):
            continue
        cells = {_ABOUT.get(re.sub(r"[^a-z]", "", str(key).lower()), ""): _cell(value) for key, value in record.items()}
        cells.pop("", None)
        if name := cells.pop("name", ""):
            columns.setdefault(name, []).append({what: cell for what, cell in cells.items() if cell})
    return {name: described_cells(_one(name, lines)) for name, lines in columns.items()}


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key} = {meaning}" for key, meaning in value.items())
    if isinstance(value, list):
        return "\n".join(map(str, value)) if len(value) != 2 or isinstance(value[0], str) else f"{value[0]} to {value[1]}"
    return "" if value is None else str(value)


def _in_frictionless(schema: Mapping[str, Any]) -> dict[str, Described]:
    """Frictionless Table Schema: fields with types and constraints."""
    keys = schema.get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else keys
    blank = "" in schema.get("missingValues", [])
    codes = [number for text in schema.get("missingValues", []) if (number := number_in(str(text))) is not None]
    made = {}
    for one in schema.get("fields", []):
        limits = one.get("constraints", {})
        enum = [*limits.get("enum", [])] or [*one.get("categories", [])]
        labels = {entry["value"]: entry.get("label", "") for entry in enum if isinstance(entry, Mapping)}
        levels = [entry["value"] if isinstance(entry, Mapping) else entry for entry in enum]
        kind, _ = kind_of(str(one.get("type", "")))
        kind = "levels" if levels else None if one.get("type") == "string" else kind
        kind = "date" if one.get("type") == "year" and "date" in one.get("format", "") else kind or _year(one)
        quantity = kind in ("number", "integer")
        made[str(one.get("name"))] = Described.of(
            CODE_BOOK,
            kind="identifier" if one.get("name") in keys or limits.get("unique") else kind,
            low=_end(limits.get("minimum")),
            high=_end(limits.get("maximum")),
            levels=tuple(map(_plain, levels)),
            ordered=one.get("categoriesOrdered") or None,
            codes=tuple(codes) if quantity else (),
            missing=codes[0] if quantity and codes else None,
            blank=(blank and limits.get("required") is False) or None,
            label=one.get("title", ""),
            unit=one.get("unit", ""),
            description=one.get("description", ""),
            value_labels={_plain(value): str(label) for value, label in labels.items() if label},
        )
    return made


def _year(one: Mapping[str, Any]) -> Any:
    return "integer" if one.get("type") == "year" else None


def _pandera(column: Mapping[str, Any]) -> Described:
    """A column of a pandera schema, as its ``to_json`` and ``to_yaml`` write it."""
    checks = {**column, **(column.get("checks") or {})}
    ends: dict[str, float | None] = {}
    for end, names in (
        ("low", ("greater_than_or_equal_to", "greater_than")),
        ("high", ("less_than_or_equal_to", "less_than")),
    ):
        told = [
            check.get("min_value", check.get("max_value")) if isinstance(check, Mapping) else check
            for name in names
            if (check := checks.get(name)) is not None
        ]
        ends[end] = _end(told[0]) if told else None
    if isinstance(within := checks.get("in_range"), Mapping):
        ends = {"low": _end(within.get("min_value")), "high": _end(within.get("max_value"))}
    allowed = checks.get("isin")
    levels = allowed.get("allowed_values", allowed.get("value", [])) if isinstance(allowed, Mapping) else allowed or []
    dtype = str(column.get("dtype", ""))
    kind, ordered = kind_of(dtype)
    return Described.of(
        CODE_BOOK,
        kind="levels" if levels else "identifier" if column.get("unique") else None if "str" in dtype else kind,
        **ends,
        levels=tuple(map(_plain, levels)),
        ordered=ordered or None,
        blank=column.get("nullable") or None,
        label=column.get("title") or "",
        description=column.get("description") or "",
    )


def _in_croissant(record_sets: object) -> dict[str, Described]:
    """MLCommons Croissant: the fields of its record sets; one that lists its data is an enumeration of another's levels."""
    sets = [one for one in (record_sets if isinstance(record_sets, list) else [record_sets]) if isinstance(one, Mapping)]
    named = {key: one for one in sets for key in (one.get("@id"), one.get("name")) if key}
    made: dict[str, Described] = {}
    for one in sets:
        if one.get("data"):
            continue
        keys = {str(key.get("@id", "")).split("/")[-1] for key in _listed(one.get("key")) if isinstance(key, Mapping)}
        for found in _listed(one.get("field")):
            name = str(found.get("name") or found.get("@id", "")).split("/")[-1]
            types = " ".join(str(kind).split(":")[-1].split("/")[-1] for kind in _listed(found.get("dataType")))
            kind, _ = kind_of(types)
            levels, labels = _enumeration(found, named)
            text = any(word in types for word in ("Text", "Enumeration"))
            told = Described.of(
                CODE_BOOK,
                kind="identifier" if name in keys else "levels" if levels else None if text else kind,
                low=_end(found.get("minValue", found.get("sc:minValue"))),
                high=_end(found.get("maxValue", found.get("sc:maxValue"))),
                levels=levels,
                value_labels=labels,
                label=found.get("alternateName", ""),
                unit=found.get("unitText", found.get("sc:unitText", "")),
                description=found.get("description", ""),
            )
            made[name] = first_of(made.get(name), told)
    return made


def _enumeration(found: Mapping[str, Any], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[Any, str]]:
    """The levels that a field refers to, and what they mean."""
    target = (found.get("references") or {}).get("field") or found.get("references") or {}
    where = str(target.get("@id", "")) if isinstance(target, Mapping) else ""
    source = named.get(where) or named.get(where.split("/")[0])
    lines = [line for line in _listed((source or {}).get("data")) if isinstance(line, Mapping)]
    if not lines:
        return (), {}
    key = where if where in lines[0] else next(iter(lines[0]))
    others = [column for column in lines[0] if column != key]
    levels = tuple(_plain(line[key]) for line in lines if key in line)
    return levels, {
        _plain(line[key]): str(line[others[0]]) for line in lines if key in line and others and others[0] in line
    }


def _listed(given: object) -> list[Any]:
    return given if isinstance(given, list) else [] if given is None else [given]


def _plain(value: object) -> Any:
    return value if isinstance(value, str | int | float | bool) else level_in(str(value))


def _end(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None if value is None else number_in(str(value))


def rules_in(path: Path, columns: Iterable[str]) -> list[dict[str, JsonValue]]:
    """The rules of a code book that is one of our schemas, as far as they are about these columns; other books have none."""
    given = _document(path.read_text(encoding="utf-8-sig"), ".json", path) if path.suffix.lower() == ".json" else None
    if not isinstance(given, Mapping) or "version" not in given or not given.get("rules"):
        return []
    known = set(columns)
    return [rule_to_json(rule) for rule in Schema.from_json(given).rules if known.issuperset(named_in(rule))]
