"""A table or view by its name, in a database or a lake.

There is no way to give SQL. A query may make what a row contributes depend on other rows (``LIMIT``, windows, joins, groups,
samples), and the promise counts on it that a row contributes what its own values say, once. So the owner names a table, or a
view that the owner approves of; the schema chooses columns, and what is asked of the database is ``SELECT`` of these columns
``FROM`` that name, every identifier checked and quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

from ...errors import InvalidInput

FILE_KINDS = ("duckdb", "delta", "iceberg")
KINDS = (*FILE_KINDS, "postgresql", "spark")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_HOSTS = re.compile(r"[\w.\-:,\[\]%]*")
_WITH_PASSWORD = re.compile(r"password=|://[^/@]*:[^@]*@")
_SECRETS = ("password", "sslpassword")
_PLACES = ("host", "port", "dbname")
_PUBLIC = (*_PLACES, "user", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "target_session_attrs")
_DEFAULT_SCHEMA = {"duckdb": "main", "postgresql": "public"}
_WAYS = {
    "duckdb": 'vt.Table("duckdb:///bank.duckdb", "customers")',
    "delta": 'vt.Table("delta:///path/of/the/table")',
    "iceberg": 'vt.Table("iceberg:///catalog.db", "bank.customers")',
    "postgresql": 'vt.Table("postgresql://user@host/database", "public.customers")',
    "spark": 'vt.Table("spark:///", "bank.customers")',
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table, or a view that the owner approves of, by its name; what :class:`PrivateData` takes as rows.

    Parameters
    ----------
    where : str
        ``duckdb:///FILE``, ``delta:///FOLDER``, ``iceberg:///CATALOG.db`` (a catalog in SQLite; ``?catalog=NAME`` if it is
        not called ``default``), ``postgresql://user@host:port/database`` or ``spark:///`` (the session that is active, or
        one with the cluster's own configuration). What follows ``:///`` is a path; an absolute
        one has a fourth slash. A password is better kept where PostgreSQL looks for it (``PGPASSWORD``, ``~/.pgpass``); one
        in the address is used and shown nowhere.
    name : str, optional
        The table or view: letters, digits and underscores, after a point the name in its schema or namespace. A Delta
        table is its folder and has none.
    folder : path, optional
        Where a relative path begins; the current directory if not given.

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.Table("postgresql://clerk:secret@db.bank/loans", "public.customers")
    Table(where='postgresql://clerk@db.bank/loans', name='public.customers')
    >>> vt.Table("duckdb:///bank.duckdb", "customers").to_text()
    'duckdb:///bank.duckdb#customers'
    >>> vt.Table("duckdb:///bank.duckdb", "customers LIMIT 10")
    Traceback (most recent call last):
        ...
    vitrail.errors.InvalidInput: the table is named 'customers LIMIT 10'; a name is of letters, digits and underscores, ...
    """

    where: str
    name: str | None = None
    folder: str | Path | None = field(default=None, kw_only=True, repr=False, compare=False)
    _address: str = field(init=False, default="", repr=False, compare=False)
    _place: str = field(init=False, default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        kind, found, rest = self.where.partition("://") if isinstance(self.where, str) else ("", "", "")
        if not found or kind not in KINDS:
            raise InvalidInput(f"the address of a table begins with one of {', '.join(KINDS)}, as in {_WAYS['duckdb']}")
        shown, address, place = _ADDRESSES.get(kind, _file)(kind, rest, self.folder)
        name = _checked_name(kind, self.name)
        fields = {"where": f"{kind}://{shown}", "name": name, "_address": address}
        fields["_place"] = f"{kind}://{place}" + ("" if name is None else f"#{'.'.join(_parts(kind, name))}")
        for attribute, value in fields.items():
            object.__setattr__(self, attribute, value)

    @property
    def kind(self) -> str:
        """``duckdb``, ``delta``, ``iceberg``, ``postgresql`` or ``spark``."""
        return self.where.partition("://")[0]

    @property
    def address(self) -> str:
        """What the driver is given: a path, or an address with its password. Never shown."""
        return self._address

    @property
    def place(self) -> str:
        """By which an account knows these rows again: where they are, whoever asks."""
        return self._place

    @property
    def parts(self) -> tuple[str, ...]:
        """The name in its schema or namespace; the database's default schema where none was given."""
        return () if self.name is None else _parts(self.kind, self.name)

    @property
    def catalog(self) -> str:
        """The name of an Iceberg catalog."""
        return dict(parse_qsl(self.where.partition("?")[2])).get("catalog", "default")

    def to_text(self) -> str:
        """Address and name in one text, without a password; :meth:`from_text` reads it."""
        return self.where if self.name is None else f"{self.where}#{self.name}"

    @classmethod
    def from_text(cls, text: str, *, folder: str | Path | None = None) -> Table:
        """The table that :meth:`to_text` wrote. Such texts are kept in files, so one with a password is refused.

        Examples
        --------
        >>> Table.from_text("duckdb:///bank.duckdb#customers")
        Table(where='duckdb:///bank.duckdb', name='customers')
        """
        if _WITH_PASSWORD.search(text):
            raise InvalidInput(
                "the text that names a table holds a password; leave it out, and keep it where PostgreSQL looks for it: in "
                "PGPASSWORD, or in ~/.pgpass"
            )
        where, _, name = text.partition("#")
        return cls(where, name or None, folder=folder)


def quoted(*identifiers: str) -> str:
    """Identifiers as SQL takes them, whatever they hold.

    Examples
    --------
    >>> quoted("public", 'odd"name')
    '"public"."odd""name"'
    """
    return ".".join('"' + identifier.replace('"', '""') + '"' for identifier in identifiers)


def quoted_in_spark(name: str) -> str:
    """A column's name as Spark takes it, whatever it holds.

    Examples
    --------
    >>> quoted_in_spark("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def _parts(kind: str, name: str) -> tuple[str, ...]:
    parts = tuple(name.split("."))
    return (_DEFAULT_SCHEMA[kind], *parts) if len(parts) == 1 and kind in _DEFAULT_SCHEMA else parts


def _checked_name(kind: str, name: object) -> str | None:
    if kind == "delta":
        if name is not None:
            raise InvalidInput(f"a Delta table is its folder and has no name; leave it out, as in {_WAYS[kind]}")
        return None
    if name is None:
        raise InvalidInput(f"the table has no name; give it, as in {_WAYS[kind]}")
    parts = name.split(".") if isinstance(name, str) else [""]
    fewest, most = {"iceberg": (2, 9), "spark": (1, 3)}.get(kind, (1, 2))
    if not isinstance(name, str) or not all(map(_IDENTIFIER.fullmatch, parts)) or not fewest <= len(parts) <= most:
        # It may be an address, or the end of one, and hold a password.
        given = "" if "@" in str(name) or "://" in str(name) else f"{name!r}"
        raise InvalidInput(
            f"the table is named {given or 'otherwise'}; a name is of letters, digits and underscores, as in {_WAYS[kind]}. "
            "Queries are not taken: limits, windows, joins and samples make what a row contributes depend on other rows. "
            "Let the owner make a table, or a view of which every row comes from one row"
        )
    return name


def _file(kind: str, rest: str, folder: str | Path | None) -> tuple[str, str, str]:
    path, _, query = rest.removeprefix("/").partition("?")
    known = ["catalog"] if kind == "iceberg" else []
    if not rest.startswith("/") or not path or "#" in rest or any(key not in known for key, _ in parse_qsl(query)):
        raise InvalidInput(f"the address of a {kind} table is {kind}:///PATH, as in {_WAYS[kind]}")
    full = (Path.cwd() if folder is None else Path(folder)) / Path(path).expanduser()
    return rest, str(full), f"/{full.resolve()}" + (f"?{query}" if query else "")


def _session(kind: str, rest: str, folder: str | Path | None) -> tuple[str, str, str]:
    if rest != "/":
        raise InvalidInput(f"the address of a Spark table is spark:///, whatever the cluster, as in {_WAYS['spark']}")
    return rest, rest, rest


def _server(kind: str, rest: str, folder: str | Path | None) -> tuple[str, str, str]:
    """The address as it may be shown, as it is used, and of the place alone.

    What is wrong with it is not quoted: a password with an unexpected character may be anywhere in it.
    """
    server, _, query = rest.partition("?")
    authority, _, database = server.partition("/")
    login, at, hosts = authority.rpartition("@")
    user = login.partition(":")[0]
    parameters = parse_qsl(query, keep_blank_values=True)
    if (
        "#" in rest
        or "@" in login + database
        or ":" in database
        or not _HOSTS.fullmatch(hosts)
        or not all(key in (*_PUBLIC, *_SECRETS) for key, _ in parameters)
    ):
        raise InvalidInput(
            f"the address of the database cannot be read; write it as in {_WAYS['postgresql']}, with special characters as "
            f"percent signs and digits. After a question mark may stand {', '.join((*_PUBLIC, *_SECRETS))}"
        )
    shown = f"{user}{at}{hosts}/{database}" + _query(parameters, _PUBLIC)
    return shown, f"postgresql://{rest}", f"{hosts}/{unquote(database)}" + _query(parameters, _PLACES)


_ADDRESSES = {"postgresql": _server, "spark": _session}


def _query(parameters: list[tuple[str, str]], kept: tuple[str, ...]) -> str:
    texts = [f"{key}={quote(value, safe='/')}" for key, value in parameters if key in kept]
    return f"?{'&'.join(texts)}" if texts else ""
