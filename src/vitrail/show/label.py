"""The privacy label of a result, a pane or an account, in the forms that others ask for it.

One label, several writings: JSON-LD in Croissant's vocabulary for programs that look for datasets, the questions of NIST SP
800-226 for people who have to judge a promise, a page. Everything about the release comes from its guarantee, its manifest
or the ledger; sentences about the library are those of docs/guarantees.md (``show.label_words``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .. import _checks
from ..accounting import JsonValue, rounded_up
from ..accounting.dp_events import CHOICE
from ..accounting.guarantee import Bill, Guarantee
from ..accounting.neighbours import is_whole_person, kind_of
from ..errors import InvalidInput
from ..results.archive import json_bytes, write_bytes
from ..results.base import Drawn, Result
from ..results.row_count import RowCount
from ..schema import Schema
from .croissant import OWNER_TERMS, json_ld
from .label_words import FOR_THE_OWNER, NEIGHBOURS, NEIGHBOURS_OF_PERSONS, QUESTIONS, READ_OFF_ROWS
from .pages import TOOLS
from .style import render
from .text_tables import Table

FORMAT = "vitrail-label/1"
DOCUMENT = "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees"
NO_BILL = "How the budget of the account stands is not told here: give the label its bill."
MECHANISMS = {
    "gaussian-sum": "sum of clipped vectors with Gaussian noise",
    "selection": "choice by the exponential mechanism",
    "fixed-block": "run of Poisson-sampled Gaussian sums, fixed beforehand",
    CHOICE: "choice among such runs by the exponential mechanism, fixed beforehand",
    "laplace-sum": "sum of clipped vectors with discrete Laplace noise",
}
"""The events of ``accounting.events``, in words, and one that two of them make together."""


@dataclass(frozen=True)
class PrivacyLabel:
    """What is promised about a release, and what is not; made by :func:`privacy_label`.

    Attributes
    ----------
    what : str
        What it is the label of.
    guarantee : Guarantee
        The promise.
    dataset, model, created : str
        Whose rows, what was explained, the day of the last charge; empty where that is not known.
    mechanisms : tuple of str
        What was run on the rows.
    schema : Schema or None
        The columns and their public bounds.
    n_rows_public : int or None
        The declared row count; of people where rows say whose they are.
    rows_counted : RowCount or None
        How many rows count, where a release says so.
    accuracy : tuple of str
        How good it is, in sentences.
    bill : Bill or None
        How the budget stands.
    answers : mapping of str to str
        What the owner answers, by the names of questions and of the terms that Croissant asks for.
    """

    what: str
    guarantee: Guarantee
    dataset: str = ""
    model: str = ""
    created: str = ""
    mechanisms: tuple[str, ...] = ()
    schema: Schema | None = None
    n_rows_public: int | None = None
    rows_counted: RowCount | None = None
    accuracy: tuple[str, ...] = ()
    bill: Bill | None = None
    answers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"PrivacyLabel({self.what}{' of ' + self.dataset if self.dataset else ''}, {self.guarantee.brief})"

    def to_json_ld(self, file: str | Path | None = None) -> dict[str, JsonValue]:
        """JSON-LD in the vocabulary of Croissant 1.0, with terms of our own under ``dp:``.

        ``file`` names a file of sampled rows, as ``PrivateRows.write`` makes it: its records are described as well.
        """
        return json_ld(self, file)

    def to_nist(self) -> dict[str, JsonValue]:
        """The questions of NIST SP 800-226 and their answers, as plain JSON values."""
        asked: list[JsonValue] = []
        for question in QUESTIONS:
            made = {"name": question.name, "question": question.asked, "tier": question.tier}
            library: list[JsonValue] = [*question.library]
            asked.append({**made, "answers": [*self._told(question.name)], "library": library})
        return {"format": FORMAT, "document": DOCUMENT, "guarantee": self.guarantee.to_json(), "questions": asked}

    def table(self) -> Table:
        """Questions and answers as a table of texts; first what is true of this release, then of all."""
        rows = tuple(
            (question.asked, " ".join((*self._told(question.name), *map(_sentence, question.library))))
            for question in QUESTIONS
        )
        return Table(("question", "answer"), rows)

    def to_markdown(self) -> str:
        """The table in Markdown."""
        lines = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in self.table().rows]
        return "\n".join(["| question | answer |", "|---|---|", *(f"| {line} |" for line in lines)]) + "\n"

    def to_html(self, title: str | None = None) -> str:
        """A page that stands alone: the label as it is on every page, then questions and answers."""
        given: dict[str, object] = {
            "title": title or f"Privacy label{' of ' + self.dataset if self.dataset else ''}",
            "dataset": self.dataset,
            "guarantee": self.guarantee,
            "bill": self.bill,
            "rows_counted": self.rows_counted,
            "label_lines": [("Model", self.model)] if self.model else [],
            "document": DOCUMENT,
            "questions": self.table(),
        }
        return render("label_page.html", **(TOOLS | given))

    def write(self, path: str | Path) -> Path:
        """Write it: ``.html`` a page, ``.md`` a table, ``.json`` NIST's questions, ``.jsonld`` Croissant; returns where."""
        return write_bytes(path, self.writer_of(path)())

    def writer_of(self, path: str | Path) -> Callable[[], bytes]:
        """What makes the file that a name's ending asks for."""
        writers: dict[str, Callable[[], bytes]] = {
            ".html": lambda: self.to_html().encode(),
            ".md": lambda: self.to_markdown().encode(),
            ".json": lambda: json_bytes(self.to_nist()),
            ".jsonld": lambda: json_bytes(self.to_json_ld()),
        }
        if (ending := Path(path).suffix.lower()) not in writers:
            *first, last = writers
            raise InvalidInput(f"the file of a label is {str(path)!r}; its name must end in {', '.join(first)} or {last}")
        return writers[ending]

    def _repr_html_(self) -> str:
        return self.to_html()

    def _told(self, name: str) -> tuple[str, ...]:
        """What is true of this release: by the owner's word, or from what was released."""
        if name in self.answers:
            return (f"The owner says: {self.answers[name]}",)
        match name:
            case "privacy-parameters":
                return (self.guarantee.sentence,)
            case "neighbours":
                relation = self.guarantee.neighbours
                meaning = NEIGHBOURS.get(relation) or NEIGHBOURS_OF_PERSONS[kind_of(relation)]
                return (f"{relation}: {meaning}",)
            case "unit-of-privacy":
                return (f"{self.guarantee.unit[:1].upper()}{self.guarantee.unit[1:]}.",)
            case "protects":
                return (f"{self.guarantee.protects}: {self.guarantee.sentence.partition(', for ')[2]}",)
            case "composition":
                return (NO_BILL,) if self.bill is None else (self.bill.sentence, f"Ledger head: {self.bill.head}.")
            case "mechanism":
                return tuple(f"{mechanism[:1].upper()}{mechanism[1:]}." for mechanism in self.mechanisms)
            case "public":
                return self._public()
            case "utility":
                return self.accuracy
            case "bias":
                return () if self.rows_counted is None else (self.rows_counted.sentence,)
            case "hyperparameters" if self.schema is not None and self.schema.read_off_rows:
                return (f"{READ_OFF_ROWS} {self.schema.read_off_rows}.",)
            case "trust-model":
                return ("Central.",)
            case "data-collection":
                return (FOR_THE_OWNER,)
        return ()

    def _public(self) -> tuple[str, ...]:
        counted = "people" if is_whole_person(self.guarantee.neighbours) else "rows"
        count = () if self.n_rows_public is None else (f"Declared: {self.n_rows_public:,} {counted}.",)
        columns = [] if self.schema is None else [f"{name} ({column.allowed})" for name, column in self.schema.items()]
        model = [f"The model {self.model} is given."] if self.model else []
        return (*count, *([f"Declared columns: {'; '.join(columns)}."] if columns else []), *model)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def privacy_label(result: object, bill: Bill | None = None, answers: Mapping[str, str] | None = None) -> PrivacyLabel:
    """The privacy label of a result, a pane, a person explained from one, a bill or an account's statement.

    Parameters
    ----------
    result : any result, Pane, Person, Bill or Statement
        What was released; ``data.budget`` is the statement of an account.
    bill : Bill, optional
        ``data.budget.bill()``: the label then states the promise for all that the account has released.
    answers : mapping of str to str, optional
        What the owner answers to questions that no program can: ``{"data-collection": "..."}``. Names are those of
        ``to_nist()``; ``license``, ``url``, ``creator``, ``date-published``, ``version`` and ``citation`` are for Croissant.

    Returns
    -------
    PrivacyLabel
        With ``to_json_ld()``, ``to_nist()``, ``to_markdown()``, ``to_html()`` and ``write(path)``.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> rows = {"age": np.linspace(0, 100, 500)}
    >>> data = vt.PrivateData(rows, schema, name="ages", n_rows_public=500, budget=vt.Budget(1, 1e-6))
    >>> label = vt.privacy_label(vt.marginals(data, epsilon=0.5))
    >>> label
    PrivacyLabel(Marginals of ages, epsilon=0.5 at delta=1e-06)
    >>> label.to_json_ld()["dp:label"]["dp:neighbours"]
    'add-remove'
    >>> [question["name"] for question in vt.privacy_label(data.budget).to_nist()["questions"]][:3]
    ['privacy-parameters', 'unit-of-privacy', 'neighbours']
    """
    facts = label_facts(result)
    if bill is not None:
        if bill.guarantee.neighbours != facts["guarantee"].neighbours:
            raise InvalidInput(
                f"the bill is of an account with neighbours {bill.guarantee.neighbours!r}, and the release of one with "
                f"{facts['guarantee'].neighbours!r}; give the bill of the account that paid: data.budget.bill()"
            )
        facts |= {"guarantee": bill.guarantee, "bill": bill, "created": _last_day(bill)}
    given = dict(answers or {})
    for name in given:
        _checks.choice("a name in answers", name, (*(question.name for question in QUESTIONS), *OWNER_TERMS))
    facts.setdefault("mechanisms", _mechanisms_behind(facts["guarantee"]))
    return PrivacyLabel(**facts, answers=MappingProxyType(given))


def _mechanisms_behind(guarantee: Guarantee) -> tuple[str, ...]:
    """As far as a promise tells: which of the two purses paid."""
    mu, trained = guarantee.mu or guarantee.basis.cost.mu, guarantee.epsilon and not guarantee.mu
    questions = f"questions of Gaussian differential privacy, mu = {rounded_up(mu)} together"
    other = MECHANISMS["fixed-block" if guarantee.delta else "laplace-sum"]  # of both, only Laplace noise needs no delta
    return (*([questions] if mu else []), *([other] if trained else []))


@singledispatch
def label_facts(result: object) -> dict[str, Any]:
    """The fields of the label; rooms above this one register their own."""
    if not isinstance(result, Drawn) and callable(bill := getattr(result, "bill", None)):  # an account's statement
        charges = result.to_dp_events().charges  # type: ignore[attr-defined]
        run = Counter(CHOICE if charge.is_block and charge.question == CHOICE else charge.mechanism for charge in charges)
        return label_facts(bill()) | {"mechanisms": tuple(f"{MECHANISMS[kind]}, {n} times" for kind, n in run.items())}
    raise InvalidInput(
        f"there is no privacy label of a {type(result).__name__}; give one of vitrail's results, a pane, or data.budget"
    )


@label_facts.register
def _(bill: Bill) -> dict[str, Any]:
    """Of all that an account has released."""
    told = {"guarantee": bill.guarantee, "dataset": bill.account, "bill": bill, "created": _last_day(bill)}
    return {"what": "All releases", **told}


def _last_day(bill: Bill) -> str:
    """The day of the last charge; empty where nothing was charged."""
    return max((line.time_utc[:10] for line in bill.lines if line.paid), default="")


@label_facts.register
def _(result: Result) -> dict[str, Any]:
    """Of one result."""
    named = {name: getattr(result, name, "") for name in ("dataset", "model")}
    known = {name: getattr(result, name, None) for name in ("schema", "n_rows_public")}
    return {
        "what": type(result).__name__,
        "guarantee": result.guarantee,
        **{name: text if isinstance(text, str) else "" for name, text in named.items()},
        **known,
        "rows_counted": result.rows_counted,
        "accuracy": (*result.verdict_sentences, *result.band_sentences, *result.notes),
    }
