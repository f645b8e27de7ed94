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
from ..accounting import rounded_down, rounded_up
from ..accounting.guarantee import Budget, emptiness
from ..accounting.neighbours import MOST_ROWS_PER_PERSON, NEIGHBOURS
from ..errors import InvalidInput, SchemaError
from ..schema import Categorical, Column, Group, Numeric, Rule, Schema
from ..schema.rules import rule_from_json
from ..vault import PrivateData, Table

OWNER = "owner"
"""Who asks where nobody is named. Caps of analysts are not about the owner."""
ENDING = ".toml"
FORMAT = 1
DEFAULT_DELTA = 1e-6
KINDS = ("number", "integer", "date", "boolean", "levels")
TABLES = ("format", "dataset", "budget", "analysts", "pane", "page", "columns", "groups", "rules", "left_out", "looked")
DATASET_KEYS = ("name", "source", "table", "target", "rows", "version", "neighbours", "rows_per_person", "person", "looked")
BUDGET_KEYS = ("epsilon", "delta", "training", "ledger", "account")
PANE_KEYS = ("version", "expires", "sampling_rate")
_NUMBER_KEYS = ("low", "high", "missing", "change", "codes", "as_nan", "label", "unit", "description", "value_labels")
_MADE_OF: tuple[tuple[str, type, str], ...] = (
    ("levels", list, 'a list, such as ["no", "yes"]'),
    ("codes", list, "a list of numbers, such as [-9, -8]"),
    ("value_labels", dict, 'a table, such as { 1 = "yes" }'),
)
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
    rows_looked : bool
        Whether the row count is such a fact.
    pane_version, pane_expires : str, optional
        What ``vitrail release`` calls a pane, and the last day that it is meant to be used; no part of any question.
    pane_sampling_rate : float, optional
        With which probability ``vitrail release`` looks at each row.
    page : mapping, optional
        The owner's words for a person's page, which a pane carries; no part of any question either.
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
    rows_looked: bool = False
    pane_version: str | None = None
    pane_expires: str | None = None
    pane_sampling_rate: float | None = None
    page: Mapping[str, Any] | None = None

    def open(self, *, analyst: str = OWNER, rows: object = None, ledger: object = None, workers: int = 1) -> PrivateData:
        """The private data; ``rows`` and ``ledger`` in place of the declared ones, for rehearsals and tests."""
        if self.caps and analyst not in (*self.caps, OWNER):
            raise InvalidInput(
                f"the analyst is {analyst!r}, and [analysts] gives epsilon to {', '.join(map(repr, self.caps))} only; add a "
                f"line for {analyst!r} there.{_checks.did_you_mean(analyst, self.caps)}"
            )
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
            workers=workers,
        )
        known = {line.analyst: line.cap for line in data.budget.analysts}
        for name, cap in self.caps.items():
            if known.get(name) != cap:
                data.cap(name, cap)
        return data

    def nobodys_rows(self) -> dict[str, list[object]]:
        """The columns of the rows, with no row in them."""
        return {name: [] for name in (*self.schema, *([] if self.person is None else [self.person]))}


def open(path: str | Path, *, analyst: str = OWNER, workers: int = 1) -> PrivateData:  # noqa: A001 - vt.open is what people look for
    r"""Open private data that a file declares: rows, schema, budget and ledger in one.

    Parameters
    ----------
    path : str or Path
        A file as ``vitrail init`` writes it, such as ``census.toml``.
    analyst : str
        Who asks. The file may cap what analysts learn; where it caps any, others than the owner are refused.
    workers : int
        How many processes walk over the rows. That is a matter of the machine, so the file says nothing of it.

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
    return read_declaration(Path(path)).open(analyst=analyst, workers=workers)


def read_declaration(path: Path) -> Declaration:
    """The declaration in a file, or an error that says what is wrong with it, and where."""
    fields = read_tables(path)
    try:
        return declaration_of(fields, path)
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


def declaration_of(fields: Mapping[str, Any], path: Path) -> Declaration:
    """The declaration that a file's tables are, or an error; ``path`` is where it lies, and other paths begin there."""
    _check_keys("the file", fields, TABLES)
    if fields.get("format") != FORMAT or type(fields["format"]) is not int:
        raise InvalidInput(f"format is {fields.get('format')!r}; this version reads format = {FORMAT}, the first line")
    dataset, paid, pane = (_table(fields, name) for name in ("dataset", "budget", "pane"))
    for where, given, keys in (("dataset", dataset, DATASET_KEYS), ("budget", paid, BUDGET_KEYS), ("pane", pane, PANE_KEYS)):
        _check_keys(f"[{where}]", given, keys)
    left_out = {name: _text(name, why, "[left_out]") for name, why in _table(fields, "left_out").items()}
    rows = _wanted(
        dataset, "rows", "[dataset]", "how many rows there are; it is public, declared and never counted: rows = 10000"
    )
    source = _checks.text(
        "source", _wanted(dataset, "source", "[dataset]", 'where the rows are: source = "rows.csv"'), of="[dataset]"
    )
    epsilon = _wanted(paid, "epsilon", "[budget]", "how much may ever be spent: epsilon = 1.0")
    budget = checked_budget(epsilon, paid.get("delta", DEFAULT_DELTA), rows, paid.get("training", (0.0, 0.0)))
    ledger = _checks.text(
        "ledger", _wanted(paid, "ledger", "[budget]", 'where the bill is kept: ledger = "ledger.db"'), of="[budget]"
    )
    if ledger == "memory":
        raise InvalidInput(
            "ledger of [budget] is 'memory', which forgets what was spent; name a file: ledger = \"ledger.db\""
        )
    caps = {name: _cap(name, cap, budget, rows) for name, cap in _table(fields, "analysts").items()}
    looked = {name: _texts(name, facts, "[looked]") for name, facts in _table(fields, "looked").items()}
    schema = _schema(fields, looked)
    for name in left_out:
        if name in schema:
            raise SchemaError(f"{name!r} stands in [columns] and in [left_out]; take it out of one of them")
    for name in looked:
        if name not in schema:
            raise SchemaError(f"[looked] names {name!r}: {_checks.not_among(name, schema.names, 'declared')}")
    table = _text_or_none("table", dataset, "[dataset]")
    return Declaration(
        name=_text("name", dataset.get("name", path.stem), "[dataset]"),
        source=Table(source, table, folder=path.parent) if "://" in source else _beside(path, source),
        schema=schema,
        n_rows_public=_checks.whole("rows", rows, most=10**12, of="[dataset]"),
        budget=budget,
        ledger=_beside(path, ledger, scheme="sqlite:///"),
        target=_target(dataset.get("target"), schema),
        account=_text_or_none("account", paid, "[budget]"),
        version=_version(dataset.get("version", "1"), "[dataset]"),
        neighbours=_checks.choice("neighbours", dataset.get("neighbours", NEIGHBOURS[0]), NEIGHBOURS, of="[dataset]"),
        rows_per_person=_checks.whole(
            "rows_per_person", dataset.get("rows_per_person", 1), most=MOST_ROWS_PER_PERSON, of="[dataset]"
        ),
        person=_text_or_none("person", dataset, "[dataset]"),
        caps=caps,
        left_out=left_out,
        looked=looked,
        rows_looked="rows" in _texts("looked", dataset.get("looked", []), "[dataset]"),
        pane_version=None if "version" not in pane else _version(pane["version"], "[pane]"),
        pane_expires=_expires(pane.get("expires")),
        pane_sampling_rate=None if (rate := pane.get("sampling_rate")) is None else _rate(rate),
        page=_page(fields, schema),
    )


def checked_budget(epsilon: object, delta: object, n_rows: object, training: object = (0.0, 0.0)) -> Budget:
    """A budget that promises something: an epsilon in the hundreds, or a delta of a row's share, does not."""
    if not isinstance(training, list | tuple) or len(training) != 2:
        raise InvalidInput(
            f"training of a budget is {training!r}; it must be the epsilon and delta set aside for training: [0.5, 1e-7]"
        )
    budget = Budget(epsilon, delta, training=(training[0], training[1]))  # type: ignore[arg-type]
    if (why := emptiness(budget, n_rows if isinstance(n_rows, int) else 1)) is not None:
        raise InvalidInput(why)
    return budget


def _cap(name: str, epsilon: object, budget: Budget, n_rows: object) -> Budget:
    if not isinstance(epsilon, int | float) or isinstance(epsilon, bool):
        raise InvalidInput(f"{name} of [analysts] is {epsilon!r}; it must be the epsilon of a budget, such as 0.5")
    cap = checked_budget(epsilon, budget.delta, n_rows)
    if cap.epsilon > budget.epsilon:
        raise InvalidInput(
            f"{name} of [analysts] is {rounded_up(epsilon)}, and the budget of all together is "
            f"{rounded_down(budget.epsilon)}; give at most that"
        )
    return cap


def _schema(fields: Mapping[str, Any], looked: Mapping[str, Sequence[str]]) -> Schema:
    given = _table(fields, "columns")
    if not given:
        raise SchemaError("there is no [columns.NAME]; declare at least one column")
    rules: list[Rule] = [Group(name, columns) for name, columns in _table(fields, "groups").items()]
    listed = fields.get("rules", [])
    if not isinstance(listed, list):
        raise SchemaError(f"rules is {listed!r}; write each as a table of its own: [[rules]]")
    columns = {name: column_of(name, facts, looked.get(name, ())) for name, facts in given.items()}
    return Schema(columns, [*rules, *map(rule_from_json, listed)])


def column_of(name: str, given: object, looked: Sequence[str] = ()) -> Column:
    """A column from its table in the file; ``looked`` names the facts that were read off the rows."""
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
    for key, made_of, words in _MADE_OF:
        if key in facts and not isinstance(facts[key], made_of):
            raise SchemaError(f"{key} of {where} is {facts[key]!r}; it must be {words}")
    try:
        if levels:
            return Categorical(**facts, from_rows=tuple(looked))
        return Numeric(integer=kind != "number", date=kind == "date", **facts, from_rows=tuple(looked))
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from error


def _target(given: object, schema: Schema) -> str | None:
    if given in (None, ""):
        return None
    name = _checks.text("target", given, of="[dataset]", hint=': the column to predict, or "" for none')
    if name not in schema:
        raise SchemaError(f"target is {name!r}: {_checks.not_among(name, schema.names, 'declared')}")
    return name


def _text(key: str, given: object, where: str) -> str:
    return _checks.text(key, given, of=where)


def _text_or_none(key: str, table: Mapping[str, Any], where: str) -> str | None:
    return None if key not in table else _text(key, table[key], where)


def _texts(key: str, given: object, where: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise InvalidInput(f'{key} of {where} is {given!r}; it must be a list of texts, such as ["low", "high"]')
    return tuple(given)


def _version(given: object, where: str) -> str:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return str(given)
    return _text("version", given, where)


def _rate(given: object) -> float:
    return _checks.fraction("sampling_rate", given, of="[pane]")


def _expires(given: object) -> str | None:
    """The day as it is declared. One that has passed is refused where a pane is released, not where rows are asked."""
    if given in (None, ""):
        return None
    from ..pane.lifetime import checked_day  # what reads panes is not needed to ask rows

    try:
        return checked_day(given)
    except InvalidInput as error:
        raise InvalidInput(f"[pane]: {error}") from error


def _page(fields: Mapping[str, Any], schema: Schema) -> Mapping[str, Any] | None:
    """The owner's words for pages, checked."""
    if not (words := _table(fields, "page")):
        return None
    from ..show.page_words import PageWords  # what draws pages is not needed to ask rows

    PageWords.from_json(words).check([*schema, *schema.groups])
    return words


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
