"""What can be asked, as people choose it: short titles, and which options have a field; the rest is JSON under "more".

What a question answers, which models and points it takes and what its options may be is the vocabulary's (``kinds``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...kinds import KINDS, Kind

About = Literal["a person", "the model", "the data"]


@dataclass(frozen=True)
class Field:
    """An option with a field of its own: ``columns`` and ``column`` are chosen, the others are typed."""

    name: str
    label: str
    kind: Literal["columns", "column", "number", "whole"]
    help: str = ""
    low: float | None = None
    required: bool = False


@dataclass(frozen=True)
class Question:
    """An explainer as people choose it."""

    title: str
    about: About
    fields: tuple[Field, ...] = ()


_COLUMNS = Field("columns", "Columns", "columns", "None ticked means all. Fewer columns make sharper answers.")

QUESTIONS: Mapping[str, Question] = {
    "shapley": Question("Reasons for one person", "a person"),
    "local-linear": Question("What matters near one person", "a person"),
    "local-classes": Question("What speaks for each class", "a person"),
    "global-report": Question("The whole report", "the model", (_COLUMNS,)),
    "permutation-importance": Question("What matters: lost accuracy", "the model", (_COLUMNS,)),
    "shap-importance": Question("What matters: size of reasons", "the model"),
    "shap-dependence": Question("Reasons along a column", "the model", (_COLUMNS,)),
    "partial-dependence": Question("Curves", "the model", (_COLUMNS,)),
    "accumulated-effects": Question("Curves by small steps", "the model", (_COLUMNS,)),
    "interactions": Question(
        "Columns that act together", "the model", (Field("n_pairs", "How many pairs at most", "whole", "Empty: 10.", 1),)
    ),
    "groups": Question(
        "Groups side by side",
        "the model",
        (
            Field("by", "Groups by", "column", "Its values are the groups.", required=True),
            Field("threshold", "Counts as a yes from", "number", "An output of the model. Empty: the usual one."),
        ),
    ),
    "counterfactual": Question(
        "What would have to change",
        "the model",
        (Field("threshold", "The decision's threshold", "number", "From this output on it is a yes. Empty: 0.5."),),
    ),
    "local-fit": Question("A file of linear pictures", "the model"),
    "marginals": Question("Histograms", "the data", (_COLUMNS, Field("bins", "Bins of a number", "whole", "Empty: 20.", 2))),
    "private-rows": Question("Rows of nobody's", "the data", (_COLUMNS,)),
    "pane": Question("A pane", "the model"),
}
"""Every explainer of the vocabulary. A test holds the two together."""


@dataclass(frozen=True)
class Choice:
    """A line of the list to choose from."""

    name: str
    title: str
    answers: str


def question(name: str) -> Question:
    """How an explainer is shown."""
    return QUESTIONS.get(name) or Question(name.replace("-", " ").capitalize(), "the model")


def choices(*, without: tuple[str, ...] = ()) -> dict[About, list[Choice]]:
    """All that can be asked, by what it is about."""
    found: dict[About, list[Choice]] = {"a person": [], "the model": [], "the data": []}
    for name in sorted(KINDS, key=[*QUESTIONS, *(set(KINDS) - set(QUESTIONS))].index):
        if name not in without:
            shown = question(name)
            found[shown.about].append(Choice(name, shown.title, KINDS[name].answers))
    return found


def other_options(kind: Kind) -> list[str]:
    """The options without a field of their own."""
    own = {field.name for field in question(kind.name).fields}
    return [name for name in kind.options if name not in own]
