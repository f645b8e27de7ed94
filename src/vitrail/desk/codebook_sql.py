"""What SQL's CREATE TABLE says about columns: types, CHECK constraints, enumerations, keys, comments.

Only declarations are read; nothing is ever run. What a constraint says beyond bounds and lists of values is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..schema import Level
from .codebook_cells import kind_of, number_in
from .described import CODE_BOOK, Described, first_of

_NAME = r'(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[A-Za-z_]\w*)'
_TEXT = r"'(?:[^']|'')*'"
_TABLE = re.compile(
    rf"CREATE\s+(?:\w+\s+)*?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:{_NAME}\s*\.\s*)*{_NAME}\s*\(", re.IGNORECASE
)
_ENUM = re.compile(rf"CREATE\s+TYPE\s+(?:{_NAME}\s*\.\s*)?({_NAME})\s+AS\s+ENUM\s*\(([^)]*)\)", re.IGNORECASE)
_COMMENT = re.compile(rf"COMMENT\s+ON\s+COLUMN\s+(?:{_NAME}\s*\.\s*)*({_NAME})\s+IS\s+({_TEXT})", re.IGNORECASE)
_TABLE_WORDS = ("constraint", "primary", "unique", "check", "foreign", "index", "key", "exclude", "like")
_NUMBER = r"[-+]?\d+(?:\.\d+)?|" + r"(?:DATE\s*)?'\d{4}-\d{2}-\d{2}'"


def described_tables(text: str) -> dict[str, Described]:
    """The columns of every table that a text creates.

    Examples
    --------
    >>> found = described_tables("CREATE TABLE t (age INT CHECK (age BETWEEN 0 AND 99), sex CHAR CHECK (sex IN ('f', 'm')))")
    >>> found["age"].column("age"), found["sex"].column("sex")
    (Numeric(0, 99, integer=True), Categorical(['f', 'm']))
    """
    plain = re.sub(rf"({_TEXT})|--[^\n]*|/\*.*?\*/", lambda found: found[1] or " ", text, flags=re.DOTALL)
    enums = {_name(found[1]).lower(): _texts(found[2]) for found in _ENUM.finditer(plain)}
    made: dict[str, Described] = {}
    for table in _TABLE.finditer(plain):
        parts = list(_parts(plain, table.end()))
        columns = {_name(found[0]): part[found.end() :] for part in parts if (found := _column(part))}
        rules = " ".join(part for part in parts if not _column(part))
        keys = {
            _name(one)
            for found in re.finditer(r"PRIMARY\s+KEY\s*\(([^)]*)\)", rules, re.IGNORECASE)
            for one in found[1].split(",")
        }
        strict = any(re.search(r"\bNOT\s+NULL\b", rest, re.IGNORECASE) for name, rest in columns.items() if name not in keys)
        for name, rest in columns.items():
            nullable = strict and not re.search(r"\b(NOT\s+NULL|PRIMARY\s+KEY)\b", rest, re.IGNORECASE)
            told = _described(name, rest, rules, enums, is_key=name in keys, nullable=nullable)
            made[name] = first_of(made.get(name), told)
    for found in _COMMENT.finditer(plain):
        if (name := _name(found[1])) in made:
            made[name] = made[name].then(Described.of(CODE_BOOK, description=_texts(found[2])[0]))
    return made


def _column(part: str) -> re.Match[str] | None:
    found = re.match(_NAME, part)
    return None if found is None or found[0].lower() in _TABLE_WORDS else found


def _parts(text: str, start: int) -> Iterator[str]:
    """What stands between the commas of a list in parentheses, which may be nested."""
    depth, part, quoted = 1, "", False
    for letter in text[start:]:
        quoted ^= letter == "'"
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if depth == 0 or (depth == 1 and letter == "," and not quoted):
            yield part.strip()
            part = ""
            if depth == 0:
                return
        else:
            part += letter


def _described(name: str, rest: str, rules: str, enums: dict[str, list[str]], *, is_key: bool, nullable: bool) -> Described:
    kind_text = re.match(r"\s*([A-Za-z_]\w*(?:\s+precision)?)", rest)
    word = kind_text[1].lower() if kind_text else ""
    own = re.search(r"ENUM\s*\(([^)]*)\)", rest, re.IGNORECASE)
    levels: tuple[Level, ...] = tuple(_texts(own[1]) if own else enums.get(word, ()))
    about = rf'(?:"{re.escape(name)}"|`{re.escape(name)}`|\b{re.escape(name)}\b)'
    checks = (
        rest + " " + " ".join(found[0] for found in re.finditer(r"CHECK\s*\((?:[^()]|\([^()]*\))*\)", rules, re.IGNORECASE))
    )
    listed = re.search(rf"{about}\s+IN\s*\(([^)]*)\)", checks, re.IGNORECASE)
    if listed and not levels:
        levels = tuple(_level(item) for item in _items(listed[1]))
    kind, _ = kind_of(word)
    is_text = word.startswith(("varchar", "char", "text", "string", "nvarchar", "clob"))
    key = (
        is_key or re.search(r"\bPRIMARY\s+KEY\b|\bUNIQUE\b", rest, re.IGNORECASE) or word in ("uuid", "serial", "bigserial")
    )
    low, high = _bounds(about, checks)
    comment = re.search(rf"\bCOMMENT\s+({_TEXT})", rest, re.IGNORECASE)
    return Described.of(
        CODE_BOOK,
        kind="identifier" if key else "levels" if levels else None if is_text else kind,
        low=low,
        high=high,
        levels=levels,
        blank=(nullable and not key) or None,
        description=_texts(comment[1])[0] if comment else "",
    )


def _bounds(about: str, checks: str) -> tuple[float | None, float | None]:
    """The bounds that constraints put on a column."""
    between = re.search(rf"{about}\s+BETWEEN\s+({_NUMBER})\s+AND\s+({_NUMBER})", checks, re.IGNORECASE)
    if between:
        return _number(between[1]), _number(between[2])
    low = re.search(rf"{about}\s*>=?\s*({_NUMBER})", checks, re.IGNORECASE)
    high = re.search(rf"{about}\s*<=?\s*({_NUMBER})", checks, re.IGNORECASE)
    return (_number(low[1]) if low else None), (_number(high[1]) if high else None)


def _number(text: str) -> float | None:
    return number_in(re.sub(r"(?i)^date\s*", "", text).strip("'"))


def _items(text: str) -> list[str]:
    return re.findall(rf"{_TEXT}|[^,\s][^,]*", text)


def _level(item: str) -> Level:
    number = number_in(item.strip())
    return _texts(item)[0] if item.strip().startswith("'") else item.strip() if number is None else number


def _texts(text: str) -> list[str]:
    return [found[1:-1].replace("''", "'") for found in re.findall(_TEXT, text)]


def _name(text: str) -> str:
    plain = text.strip()
    return plain[1:-1] if plain[:1] in '"`[' else plain
