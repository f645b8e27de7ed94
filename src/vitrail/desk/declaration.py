"""A declared dataset: one file that says where rows are, what is public about them, and who pays.

Everything in it is public but for what the paths lead to. Paths are relative to the file. :func:`read_declaration` checks
it, word by word, and reads no row; what is wrong is said with the table and the key where it stands.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import _checks
from ..accounting.guarantee import Budget, emptiness
from ..accounting.neighbours import MOST_ROWS_PER_PERSON
from ..errors import InvalidInput, SchemaError
from ..schema import Categorical, Column, Group, Numeric, Rule, Schema
from ..schema.rules import rule_from_json
from ..vault import PrivateData, Table

ENDING = ".toml"
FORMAT = 1
DEFAULT_DELTA = 1e-6
KINDS = ("number", "integer", "date", "boolean", "levels")
TABLES = ("format", "dataset", "budget", "analysts", "columns", "groups", "rules", "left_out", "looked")
DATASET_KEYS = ("name", "source", "table", "target", "rows", "version", "neighbours", "rows_per_person", "person")
BUDGET_KEYS = ("epsilon", "delta", "ledger", "account")
_NUMBER_KEYS = ("low", "high", "missing", "change", "codes", "as_nan", "label", "unit", "description", "value_labels")
_LEVEL_KEYS = ("levels", "missing", "change", "ordered", "as_nan", "label", "description", "value_labels")


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What the owner declares about a dataset.

    Attributes
    ----------
    name : str
        Of the dataset, in the bill.
    source : str or Table
        Where the rows are: a file, a folder, or a table of a database.
    schema : Schema
        Public bounds and levels.
    n_rows_public : int
        The declared row count.
    budget : Budget
        The most that may ever be spent.
    ledger : str
        Where the bill is kept.
    target : str, optional
        The column to predict.
    rows_per_person : int
        The most rows that one person has: the unit of every promise.
    person : str, optional
        The column that names whose row it is. Each person then counts once, and ``n_rows_public`` counts people.
    caps : mapping of str to Budget
        What each analyst may learn at most.
    left_out : mapping of str to str
        Columns of the rows that are not declared, and why.
    looked : mapping of str to tuple of str
        Facts that were read off the rows, by column: public by the owner's decision.
    """

    name: str
    source: str | Table
    schema: Schema
    n_rows_public: int
    budget: Budget
    ledger: str
    target: str | None = None
    account: str | None = None
    version: str = "1"
    neighbours: str = "add-remove"
    rows_per_person: int = 1
    person: str | None = None
    caps: Mapping[str, Budget] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    looked: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def open(self, *, analyst: str = "owner", rows: object = None, ledger: object = None) -> PrivateData:
        """The private data; ``rows`` and ``ledger`` in place of the declared ones, for rehearsals and tests."""
        data = PrivateData(
            self.source if rows is None else rows,
            self.schema,
            name=self.name,
            target=self.target,
            n_rows_public=self.n_rows_public,
            budget=self.budget,
            neighbours=self.neighbours,
            rows_per_person=self.rows_per_person,
            person=self.person,
            ledger=self.ledger if ledger is None else ledger,
            analyst=analyst,
            account=self.account,
            version=self.version,
        )
        known = {line.analyst: line.cap for line in data.budget.analysts}
        for name, cap in self.caps.items():
            if known.get(name) != cap:
                data.cap(name, cap)
        return data

    def nobodys_rows(self) -> dict[str, list[object]]:
        """The columns of the rows, with no row in them."""
        return {name: [] for name in (*self.schema, *([] if self.person is None else [self.person]))}


def open(path: str | Path, *, analyst: str = "owner") -> PrivateData:  # noqa: A001 - vt.open is what people look for
    r"""Open private data that a file declares: rows, schema, budget and ledger in one.

    Parameters
    ----------
    path : str or Path
        A file as ``vitrail init`` writes it, such as ``census.toml``.
    analyst : str
        Who asks. The file may cap what an analyst learns.

    Returns
    -------
    PrivateData

    Examples
    --------
    >>> import tempfile, vitrail as vt
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "visits.csv").write_text("age,smoker\n" + "40,yes\n60,no\n" * 100)
    >>> _ = (folder / "visits.toml").write_text('''
    ... format = 1
    ... [dataset]
    ... source = "visits.csv"
    ... rows = 200
    ... [budget]
    ... epsilon = 1.0
    ... ledger = "ledger.db"
    ... [columns.age]
    ... kind = "integer"
    ... low = 0
    ... high = 120
    ... [columns.smoker]
    ... levels = ["no", "yes"]
    ... ''')
    >>> data = vt.open(folder / "visits.toml")
    >>> data
    PrivateData('visits', 2 columns, declared rows 200)
    >>> vt.marginals(data, epsilon=0.5).guarantee.epsilon <= data.budget.budget.epsilon
    True
    """
    return read_declaration(Path(path)).open(analyst=analyst)


def read_declaration(path: Path) -> Declaration:
    """The declaration in a file, or an error that says what is wrong with it, and where."""
    fields = read_tables(path)
    try:
        return _declaration(fields, path)
    except (InvalidInput, SchemaError) as error:
        raise type(error)(f"{path.name}: {error}") from error


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a declaration's file, unchecked."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        hint = _checks.did_you_mean(path.name, [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else [])
        raise InvalidInput(f"the declaration {str(path)!r} cannot be read: {error.strerror}.{hint}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is no TOML file that can be read: {error}") from error


def _declaration(fields: Mapping[str, Any], path: Path) -> Declaration:
    _check_keys("the file", fields, TABLES)
    if fields.get("format") != FORMAT:
        raise InvalidInput(f"format is {fields.get('format')!r}; this version reads format = {FORMAT}, the first line")
    dataset, paid = (_table(fields, name) for name in ("dataset", "budget"))
    _check_keys("[dataset]", dataset, DATASET_KEYS)
    _check_keys("[budget]", paid, BUDGET_KEYS)
    left_out = {str(name): str(why) for name, why in _table(fields, "left_out").items()}
    rows = _wanted(
        dataset, "rows", "[dataset]", "how many rows there are; it is public, declared and never counted: rows = 10000"
    )
    source = _checks.text(
        "source", _wanted(dataset, "source", "[dataset]", 'where the rows are: source = "rows.csv"'), of="[dataset]"
    )
    epsilon = _wanted(paid, "epsilon", "[budget]", "how much may ever be spent: epsilon = 1.0")
    budget = checked_budget(epsilon, paid.get("delta", DEFAULT_DELTA), rows)
    ledger = _checks.text(
        "ledger", _wanted(paid, "ledger", "[budget]", 'where the bill is kept: ledger = "ledger.db"'), of="[budget]"
    )
    if ledger == "memory":
        raise InvalidInput(
            "ledger of [budget] is 'memory', which forgets what was spent; name a file: ledger = \"ledger.db\""
        )
    caps = {name: checked_budget(cap, budget.delta, rows) for name, cap in _table(fields, "analysts").items()}
    schema = _schema(fields)
    return Declaration(
        name=str(dataset.get("name", path.stem)),
        source=Table(source, dataset.get("table"), folder=path.parent) if "://" in source else _beside(path, source),
        schema=schema,
        n_rows_public=_checks.whole("rows", rows, most=10**12, of="[dataset]"),
        budget=budget,
        ledger=_beside(path, ledger, scheme="sqlite:///"),
        target=_target(dataset.get("target"), schema),
        account=paid.get("account"),
        version=str(dataset.get("version", "1")),
        neighbours=dataset.get("neighbours", "add-remove"),
        rows_per_person=_checks.whole(
            "rows_per_person", dataset.get("rows_per_person", 1), most=MOST_ROWS_PER_PERSON, of="[dataset]"
        ),
        person=None if "person" not in dataset else _checks.text("person", dataset["person"], of="[dataset]"),
        caps=caps,
        left_out=left_out,
        looked={str(name): tuple(facts) for name, facts in _table(fields, "looked").items()},
    )


def checked_budget(epsilon: object, delta: object, n_rows: object) -> Budget:
    """A budget that promises something: an epsilon in the hundreds, or a delta of a row's share, does not."""
    budget = Budget(epsilon, delta)  # type: ignore[arg-type]
    if (why := emptiness(budget, n_rows if isinstance(n_rows, int) else 1)) is not None:
        raise InvalidInput(why)
    return budget


def _schema(fields: Mapping[str, Any]) -> Schema:
    given = _table(fields, "columns")
    if not given:
        raise SchemaError("there is no [columns.NAME]; declare at least one column")
    rules: list[Rule] = [Group(name, columns) for name, columns in _table(fields, "groups").items()]
    listed = fields.get("rules", [])
    if not isinstance(listed, list):
        raise SchemaError(f"rules is {listed!r}; write each as a table of its own: [[rules]]")
    return Schema({name: column_of(name, facts) for name, facts in given.items()}, [*rules, *map(rule_from_json, listed)])


def column_of(name: str, given: object) -> Column:
    """A column from its table in the file."""
    where = f"[columns.{name}]"
    if not isinstance(given, Mapping):
        raise SchemaError(f"{where} is {given!r}; it must be a table")
    facts = dict(given)
    kind = facts.pop("kind", "levels" if "levels" in facts else None)
    if kind is None or kind == "":
        raise SchemaError(
            f"{where} has no kind yet; write kind = one of {', '.join(map(repr, KINDS))}, or leave the column out"
        )
    _checks.choice("kind", kind, KINDS, of=where)
    levels = kind in ("boolean", "levels")
    _check_keys(where, facts, _LEVEL_KEYS if levels else _NUMBER_KEYS)
    if kind == "boolean":
        facts.setdefault("levels", [False, True])
    for wanted in ("levels",) if levels else ("low", "high"):
        if facts.get(wanted) in (None, "", []):
            raise SchemaError(
                f"{where} has no {wanted} yet; write what is public about it (a form, a code book, a law), or leave "
                "the column out"
            )
    try:
        if levels:
            return Categorical(**facts)
        return Numeric(integer=kind != "number", date=kind == "date", **facts | {"codes": tuple(facts.get("codes", ()))})
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from error


def _target(name: object, schema: Schema) -> str | None:
    if name in (None, ""):
        return None
    if name not in schema:
        raise SchemaError(f"target is {name!r}: {_checks.not_among(name, schema.names, 'declared')}")
    return str(name)


def _table(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = fields.get(name, {})
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name} is {given!r}; it must be a table: [{name}]")
    return given


def _wanted(table: Mapping[str, Any], key: str, where: str, what: str) -> Any:
    if table.get(key) in (None, "", 0):
        raise InvalidInput(f"{where} does not say {what}")
    return table[key]


def _check_keys(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            hint = _checks.did_you_mean(key, known)
            raise InvalidInput(f"{where} has the key {key!r}, which it does not know; it knows {', '.join(known)}.{hint}")


def _beside(path: Path, where: str, scheme: str = "") -> str:
    """A path in the file as it is from here; an address of a database as it stands."""
    plain = where.removeprefix(scheme) if scheme else where
    return where if "://" in plain else str(path.parent / plain)
