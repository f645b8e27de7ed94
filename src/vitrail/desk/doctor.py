"""The doctor: what does not fit between rows, declaration and model, said exactly, to the owner of the rows alone.

It reads the rows without noise, charges nothing and leaves nothing behind. So its findings are private, and it is reached
from the owner's desk only: whoever runs it can read the rows anyway.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import _checks
from .._types import Floats
from ..accounting import Cost
from ..accounting.guarantee import Budget, question_mu
from ..accounting.neighbours import kind_of
from ..errors import InvalidInput
from ..explain.quoted import stand_in
from ..explain.recipe import REHEARSED_PUBLIC_ROWS, Terms
from ..model import Model
from ..pane.pane_recipe import PaneExplainer
from ..schema import Categorical, Column, Numeric, Schema
from ..schema.days import date_text
from ..vault import PrivateData
from ..vault.owner import ColumnFacts, ModelFacts, RowFacts, agreement, as_given, examine, examine_model
from .checkup import GRAVITIES, Checkup, Finding, Gravity
from .declaration import Declaration, read_declaration
from .described import SPECIAL_CODES

MOST_NAMED = 5
ROWS_FOR_MODEL = 20_000
COUNT_TOLERANCE = 0.05
FEW, MORE = 64, 192
YES, NO = ("yes", "y", "true", "t", "1", "1.0", "ja", "oui", "si"), ("no", "n", "false", "f", "0", "0.0", "nein", "non")


def doctor(
    data: str | Path | Declaration | PrivateData,
    model: Model | None = None,
    *,
    rows: object = None,
    person: str | None = None,
    timing: bool = True,
) -> Checkup:
    """Say, exactly and to the owner alone, what does not fit between rows, declaration and model. Charges nothing.

    Parameters
    ----------
    data : path, Declaration or PrivateData
        A file as ``vitrail init`` writes it; or private data.
    model : Model, optional
        Also say what it does on the rows: failures, outputs outside its range, whether a row's answer depends on its
        neighbours, and how long a release will take.
    rows : object, optional
        The rows themselves. Needed where private data was made from a frame, of which the vault keeps numbers only.
    timing : bool
        Whether to try how long a release takes, which may itself take a minute.
    person : str, optional
        The column that says who a row is about, where none is declared: also say how many rows people have, and how many
        of them have more than the declared ``rows_per_person``.

    Returns
    -------
    Checkup
        PRIVATE: it quotes values of rows.

    Examples
    --------
    >>> import vitrail as vt
    >>> rows = {"income": ["2", "43", "lots", "84"] * 25}
    >>> schema = vt.Schema({"income": vt.Numeric(0, 100)})
    >>> data = vt.PrivateData(rows, schema, name="incomes", n_rows_public=100, budget=vt.Budget(1, 1e-6), ledger="memory")
    >>> print(vt.doctor(data, rows=rows))  # doctest: +ELLIPSIS
    PRIVATE: what follows was read off the rows, ...
    <BLANKLINE>
    100 rows were read; 75 of them count in every answer. 1 column is declared.
    <BLANKLINE>
    Mend this:
      rows: 25.0 % of the rows count as nothing in every answer, because a value is missing or not declared: see income.
    <BLANKLINE>
    Look at this:
      income: 25 rows (25.0 %) hold what is no number, such as 'lots'; such a row counts as nothing.
    <BLANKLINE>
    Then run the doctor again.
    """
    case = _Case.of(data, rows)
    if model is not None:
        if not isinstance(model, Model):
            raise InvalidInput(f"the model is {type(model).__name__}; wrap it: vt.doctor(data, vt.Model(...))")
        model.check(case.schema.without(case.target) if case.target else case.schema)
    person = case.declared.person if person is None else person
    facts = examine(as_given.tables_of(case.source), case.schema, person)
    findings = [*_about_columns(case, facts, person), *_about_rows(case, facts)]
    findings += [] if person is None else _about_persons(case.declared, facts, person)
    for name, column in case.schema.items():
        if facts.columns[name].rows:
            findings += _about_column(name, column, facts.columns[name], is_target=name == case.target)
    lacking = [name for name in case.schema if name not in facts.given or name in facts.refused]
    counting = f"{facts.counted:,} of them {'counts' if facts.counted == 1 else 'count'} in every answer"
    if facts.rows and lacking:
        counting = "no question can be asked about them, because declared columns are missing"
    counted = f"{facts.rows:,} row{' was' if facts.rows == 1 else 's were'} read; {counting}."
    summary = [f"{counted} {len(case.schema)} column{'s are' if len(case.schema) > 1 else ' is'} declared."]
    seconds = None
    if model is not None and not any(finding.gravity == "stop" and finding.where != "rows" for finding in findings):
        asked = examine_model(case.raw(), case.schema, case.target, model, most=ROWS_FOR_MODEL)
        findings += _about_model(model, asked)
        seconds = _release_seconds(case, model, asked) if timing else None
        summary += list(_model_summary(model, asked, seconds))
    findings.sort(key=lambda finding: GRAVITIES.index(finding.gravity))
    return Checkup(case.name, tuple(findings), tuple(summary), seconds)


class _Case:
    """Rows, and what is declared about them."""

    def __init__(self, source: object, declared: Declaration) -> None:
        self.source, self.declared = source, declared
        self.name, self.schema, self.target = declared.name, declared.schema, declared.target

    @classmethod
    def of(cls, data: object, rows: object) -> _Case:
        """What the caller means."""
        if isinstance(data, str | Path):
            data = read_declaration(Path(data))
        if isinstance(data, Declaration):
            return cls(data.source if rows is None else rows, data)
        if not isinstance(data, PrivateData):
            raise InvalidInput(
                f"data is {type(data).__name__}; give the path of a declaration, such as 'census.toml', or private data"
            )
        source = as_given.source_of(data) if rows is None else rows
        if source is None:
            raise InvalidInput(
                "this private data was made from a frame, of which the vault keeps numbers only; give the rows again: "
                "vt.doctor(data, rows=frame)"
            )
        facts: dict[str, Any] = {"name": data.name, "schema": data.schema, "target": data.target}
        facts |= {"n_rows_public": data.n_rows_public, "budget": data.budget.budget, "source": "", "ledger": ""}
        facts |= {"neighbours": kind_of(data.neighbours), "rows_per_person": data.rows_per_person}
        facts["person"] = data.person
        return cls(source, Declaration(**facts))

    def raw(self) -> Iterator[Floats]:
        """The rows as the vault reads them."""
        return (self.schema.read(table) for table in as_given.tables_of(self.source))


# --- findings ------------------------------------------------------------------------------------------------------------


def _about_columns(case: _Case, facts: RowFacts, person: str | None) -> Iterator[Finding]:
    known = {*case.schema, *case.declared.left_out, person}
    extra = [name for name in facts.given if name not in known]
    if facts.rows and not {*case.schema} & {*facts.given}:
        yield Finding(
            "stop", "rows", f"they have none of the declared columns, but {_listed(facts.given)}: are these the right rows?"
        )
        return
    for name in case.schema:
        if facts.rows and name not in facts.given:
            yield Finding("stop", name, f"is declared, and the rows have no such column.{_checks.did_you_mean(name, extra)}")
    for name, dtype in facts.refused.items():
        yield Finding(
            "stop", name, f"has the type {dtype}, which a column cannot hold; convert it, or leave the column out."
        )
    if extra:
        yield Finding("note", "rows", f"the columns {_listed(extra)} are not declared, and no answer knows them.")


def _about_rows(case: _Case, facts: RowFacts) -> Iterator[Finding]:
    if not facts.rows:
        yield Finding("stop", "rows", "there are none.")
        return
    declared = case.declared.n_rows_public
    units, there = ("rows", facts.rows) if case.declared.person is None else ("people", len(facts.persons))
    if abs(declared / max(1, there) - 1) > COUNT_TOLERANCE:
        yield Finding(
            "care",
            "rows",
            f"{declared:,}{' people' if units == 'people' else ''} are declared and there are {there:,}: every mean is "
            "divided by the declared count, and would be off by "
            f"a factor of {there / declared:.2f}. The count is public; change it only if it may be known.",
        )
    lost = facts.rows - facts.counted
    if lost:
        guilty = [name for name, one in facts.columns.items() if one.unusable and case.schema[name].missing is None]
        yield Finding(
            "stop" if lost > 0.1 * facts.rows else "care",
            "rows",
            f"{_share(lost, facts.rows)} of the rows count as nothing in every answer, because a value is missing "
            "or not declared: "
            f"see {_listed(guilty, quoted=False)}.",
        )


def _about_persons(declaration: Declaration, facts: RowFacts, person: str) -> Iterator[Finding]:
    """How many rows people have, against how many are declared."""
    declared = declaration.rows_per_person
    if facts.rows and person not in facts.given:
        yield Finding("stop", person, f"is named as the person, and {_checks.not_among(person, facts.given, 'in the rows')}")
    if facts.nobodys:
        lost = "such a row counts as nothing" if declaration.person else "who they are about is not known"
        yield Finding("care", person, f"{_rows(facts.nobodys, facts.rows)} no name: {lost}.")
    if facts.blurred:
        yield Finding(
            "care",
            person,
            f"{_rows(facts.blurred, facts.rows)} numbers above 2^53, which are rounded: several people may seem one.",
        )
    if not facts.persons:
        return
    most, people = max(facts.persons.values()), len(facts.persons)
    told = f"{people:,} people have {sum(facts.persons.values()) / people:.1f} rows each on average, and {most:,} at most"
    over = sum(count > declared for count in facts.persons.values())
    if declaration.person is not None:
        yield Finding("note", person, f"{told}; everybody counts once.")
    elif over:
        yield Finding(
            "stop",
            person,
            f"{told}. {over:,} of them ({_share(over, people)}) have more than the declared rows_per_person = {declared}, "
            f"and are promised less, somebody {-(-most // declared)} times the mu. Declare more, or keep at most {declared} "
            f"rows of each before; or declare whose row it is, person = {person!r}, and everybody counts once.",
        )
    else:
        yield Finding("note", person, f"{told}; rows_per_person = {declared} holds for all of them.")


def _about_column(name: str, column: Column, facts: ColumnFacts, *, is_target: bool) -> Iterator[Finding]:
    lost = "such a row counts as nothing" if column.missing is None else f"such a value is read as {column.missing!r}"
    if facts.blank:
        mend = "" if column.missing is not None else "; declare what stands for it (missing=), or impute before"
        gravity: Gravity = "care" if column.missing is None else "note"
        yield Finding(gravity, name, f"{_rows(facts.blank, facts.rows)} no value; {lost}{mend}.")
    if isinstance(column, Categorical):
        yield from _about_levels(name, column, facts, lost)
    else:
        yield from _about_numbers(name, column, facts, lost)
    if is_target and isinstance(column, Categorical) and sum(count > 0 for count in facts.levels.values()) < 2:
        yield Finding("stop", name, "is the target, and all rows have the same value: nothing can be said about errors.")


def _about_levels(name: str, column: Categorical, facts: ColumnFacts, lost: str) -> Iterator[Finding]:
    unknown = facts.unreadable
    words = {str(value).strip().lower() for value in unknown}
    if unknown and set(column.levels) == {False, True} and words <= {*YES, *NO}:
        written = sorted({str(value) for value in unknown}, key=lambda text: text.strip().lower() in YES)
        yield Finding(
            "stop",
            name,
            f"is declared as true or false, and the rows write {_listed(written)}; declare levels = {written!r}.",
        )
        return
    for value, count in unknown.most_common(MOST_NAMED):
        yield Finding(
            "care", name, f"{_rows(count, facts.rows)} {value!r}, which is not declared; {lost}.{_nearest(value, column)}"
        )
    rest = list(unknown.values())
    rest.sort(reverse=True)
    if len(unknown) > MOST_NAMED:
        more = sum(rest[MOST_NAMED:]) + facts.more_unreadable
        kinds = (
            "free text or an identifier: leave it out"
            if len(unknown) > 0.5 * facts.rows
            else "declare them, or group them before"
        )
        yield Finding(
            "care",
            name,
            f"{_rows(more, facts.rows)} one of {len(unknown) - MOST_NAMED:,} or more other undeclared values; {kinds}.",
        )
    idle = [level for level in column.levels if not facts.levels[level] and level != column.missing]
    if idle:
        yield Finding("note", name, f"the levels {_listed(idle)} occur in no row.")


def _nearest(value: object, column: Categorical) -> str:
    """The declared level that is probably meant."""
    plain = str(value).strip().lower()
    for level in column.levels:
        if str(level).strip().lower() == plain:
            how = "a space" if str(value).strip() == str(level) else "capital letters"
            return f" It differs from {level!r} by {how} only."
    if "\ufffd" in plain:
        return " It is not UTF-8; save the file as UTF-8."
    return _checks.did_you_mean(value, column.levels)


def _about_numbers(name: str, column: Numeric, facts: ColumnFacts, lost: str) -> Iterator[Finding]:
    if unreadable := sum(facts.unreadable.values()) + facts.more_unreadable:
        such = _listed([value for value, _ in facts.unreadable.most_common(3)])
        what = "no date" if column.date else "no number"
        yield Finding("care", name, f"{_rows(unreadable, facts.rows)} what is {what}, such as {such}; {lost}.")
    told = date_text if column.date else "{:g}".format
    codes = {value: count for value, count in facts.outside.items() if value in SPECIAL_CODES and count >= 2}
    for value, count in codes.items():
        where = column.low if value < column.low else column.high
        yield Finding(
            "stop" if count > 0.01 * facts.rows else "care",
            name,
            f"{_rows(count, facts.rows)} {value:g}, outside of its bounds, which looks like a code for a missing "
            "value and is read as "
            f"{told(where)}; declare codes = [{value:g}], and missing = {value:g} if it means that.",
        )
    others = [facts.low, facts.high] if facts.more_outside else [value for value in facts.outside if value not in codes]
    for count, end, word, reached in (
        (facts.below, column.low, "below", min(others, default=facts.low)),
        (facts.above, column.high, "above", max(others, default=facts.high)),
    ):
        rest = count - sum(number for value, number in codes.items() if (value < column.low) == (word == "below"))
        if rest:
            what = "a value" if rest == 1 else "values"
            how_far = f"({'as far as ' if rest > 1 else ''}{told(reached)}), which {'is' if rest == 1 else 'are'}"
            yield Finding(
                "care" if rest > 0.01 * facts.rows else "note",
                name,
                f"{_rows(rest, facts.rows)} {what} {word} {told(end)} {how_far} read as {told(end)}.",
            )
    if facts.not_whole:
        what = "a number that is not whole, and is" if facts.not_whole == 1 else "numbers that are not whole, and are"
        yield Finding("care", name, f"{_rows(facts.not_whole, facts.rows)} {what} rounded; is it an integer?")
    if column.integer and not column.date and facts.distinct_rows > 100 and len(facts.distinct) > 0.95 * facts.distinct_rows:
        yield Finding(
            "care", name, "has another value in nearly every row, as an identifier has; if it is one, leave it out."
        )
    used = facts.high - facts.low
    if 0 < used < 0.3 * (column.high - column.low) and facts.rows > 20:
        yield Finding(
            "note",
            name,
            f"values lie between {told(facts.low)} and {told(facts.high)}, a small part of the bounds "
            f"{told(column.low)} to {told(column.high)}: "
            "narrower ones, if they are public, make answers sharper.",
        )


# --- the model -----------------------------------------------------------------------------------------------------------


def _about_model(model: Model, facts: ModelFacts) -> Iterator[Finding]:
    if not facts.rows:
        return
    if facts.failed:
        gravity: Gravity = "stop" if facts.failed > 0.01 * facts.rows else "care"
        yield Finding(
            gravity,
            "model",
            f"{_rows(facts.failed, facts.rows)} no finite output; they count as nothing where the model is asked.",
        )
    if facts.outside:
        yield Finding(
            "stop" if facts.outside > 0.01 * facts.rows else "care",
            "model",
            f"{_rows(facts.outside, facts.rows)} an output outside of its range ({model.lo:g} to {model.hi:g}), "
            "which is clipped; outputs go "
            f"from {facts.low:g} to {facts.high:g}.",
        )
    if facts.impure:
        gravity = "stop" if facts.largest_difference > 1e-3 * model.width else "note"
        yield Finding(
            gravity,
            "model",
            f"{_share(facts.impure, facts.rows)} of the outputs change with the order of the rows, by up to "
            f"{facts.largest_difference:.2g}; the "
            "vault then asks one row at a time, which is slow.",
        )
    if facts.low == facts.high:
        yield Finding("stop", "model", f"every row gets the same output, {facts.low:g}: is it given what it was trained on?")
    area = agreement(facts.outputs, facts.targets)
    if area is not None and max(area, 1 - area) < 0.55:
        yield Finding(
            "care", "model", f"tells the target's two values apart no better than chance (area under the curve {area:.2f})."
        )


def _model_summary(model: Model, facts: ModelFacts, seconds: float | None) -> Iterator[str]:
    area = agreement(facts.outputs, facts.targets)
    told = "" if area is None else f" Area under the curve: {area:.3f}."
    yield f"{model.name} was asked about {facts.rows:,} rows; outputs from {facts.low:g} to {facts.high:g}.{told}"
    speed = f"{1e6 * facts.seconds_per_row:.2g} microseconds for a prediction"
    if seconds is None:
        yield f"It takes {speed} on this machine."
    else:
        yield f"A pane of it takes about {_duration(seconds)} on this machine: {speed}."


class _Counting(Model):
    """A model that counts the rows it is asked about."""

    asked = 0

    @classmethod
    def of(cls, model: Model) -> _Counting:
        """The same model, counting."""
        made = cls.__new__(cls)
        made.__dict__.update(copy.copy(model).__dict__)
        return made

    def _clipped(self, schema: Schema, raw: Floats, columns: Sequence[int | None]) -> list[Floats]:
        self.asked += len(raw)
        return super()._clipped(schema, raw, columns)


def _release_seconds(case: _Case, model: Model, facts: ModelFacts) -> float:
    """How long a pane takes: a run on a few rows, nobody's, is timed; and what more rows add is counted in predictions."""
    budget = Budget(1.0, case.declared.budget.delta)
    empty = replace(case.declared, budget=budget).open(rows=case.declared.nobodys_rows(), ledger="memory")
    mu = question_mu(1.0, None, empty.delta)

    def tried(rows: int, public_rows: int | None = None) -> tuple[int, float]:
        """How many predictions were made, and the seconds it took."""
        counting, terms = _Counting.of(model), Terms.of(empty, mu)
        conversation = PaneExplainer(empty, counting).conversation()
        terms, began = replace(terms, public_rows=public_rows or terms.public_rows), time.perf_counter()
        conversation.run(terms, Cost.of_mu(mu).pico_mu_squared, stand_in(terms, rows))
        return counting.asked, time.perf_counter() - began

    fewest, more = (tried(rows, REHEARSED_PUBLIC_ROWS)[0] for rows in (FEW, MORE))
    per_row = max(0.0, (more - fewest) / (MORE - FEW))
    return tried(FEW)[1] + per_row * case.declared.n_rows_public * facts.seconds_per_row


# --- words ---------------------------------------------------------------------------------------------------------------


def _rows(count: int, total: int) -> str:
    return f"{count:,} row{'s' if count > 1 else ''} ({_share(count, total)}) {'hold' if count > 1 else 'holds'}"


def _share(count: int, total: int) -> str:
    share = 100 * count / total
    return f"{share:.1f} %" if share >= 0.05 else "below 0.1 %"


def _listed(names: Iterable[object], *, quoted: bool = True) -> str:
    shown = [repr(name) if quoted else str(name) for name in names]
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return ", ".join(shown[:MOST_NAMED]) + more


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
