"""Pay once, explain anybody for ever: what ``LocalLinear.fitting`` returns, to be quoted, called or audited.

*Training.* An explanation's promise is for the rows that it is computed from, given the model. If the same rows trained the
model under (epsilon_f, delta_f)-differential privacy, basic composition adds that: epsilons and deltas add, and the promise
is about training data too. Test: tests/explain/linear/test_local.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from ...accounting import JsonValue, rounded_up
from ...errors import InvalidInput
from ...guarantee import Guarantee
from ...results import Attribution
from ...results.synopsis import Synopsis
from ...solve.linear.labelled_rows import RowsExplainer, explain_on
from ...solve.linear.problem import LocalProblem
from ...solve.linear.weights import Weight
from ...vault import PrivateData
from ..private_rows import private_rows
from ..recipe import Conversation, GlobalExplainer, Recipe, Terms
from ..stand_in import try_model
from .moments import cells_recipe, moments_recipe
from .options import Cells, Moments, Rows

F = TypeVar("F")
VERSION = 2
TRAINING_NOTE = (
    "The promise covers the model's training too: its own (epsilon = {epsilon}, delta = {delta}) is added to that of "
    "the explanation."
)


@dataclass(frozen=True)
class TrainingGuarantee:
    """(epsilon, delta) under which a model was trained on the very rows that explain it."""

    epsilon: float
    delta: float

    @classmethod
    def of(cls, given: tuple[float, float]) -> TrainingGuarantee:
        """The pair, if it is one."""
        try:
            epsilon, delta = (float(number) for number in given)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"training_guarantee is {given!r}; it must be a pair (epsilon, delta)") from error
        if not (0 <= epsilon < float("inf") and 0 <= delta < 1):
            raise InvalidInput(f"training_guarantee is {given!r}; epsilon must be at least 0 and finite, delta in [0, 1)")
        return cls(epsilon, delta)

    def added_to(self, promise: Guarantee) -> Guarantee:
        """The promise for training and explanation together."""
        epsilon, delta = promise.epsilon + self.epsilon, promise.delta + self.delta
        return Guarantee(epsilon, delta, 0.0, promise.neighbours, "training-data", promise.basis)

    def added_to_explanation(self, explanation: Attribution) -> Attribution:
        """The explanation with that promise, and a note that says so."""
        note = TRAINING_NOTE.format(epsilon=rounded_up(self.epsilon), delta=rounded_up(self.delta))
        promise = self.added_to(explanation.guarantee)
        return replace(explanation, guarantee=promise, notes=(*explanation.notes, note))


@dataclass(frozen=True)
class Fitting(GlobalExplainer[F]):
    """What a fit would buy: made by :meth:`LocalLinear.fitting`.

    Attributes
    ----------
    make : callable
        Makes the conversation; whatever is wrong with model or columns is an error.
    """

    make: Callable[[], Conversation[F]]

    def conversation(self) -> Conversation[F]:
        """What would be said to the vault."""
        return self.make()


def synopsis_conversation(
    data: PrivateData,
    problem: LocalProblem,
    kind: Moments | Cells,
    training: TrainingGuarantee | None,
    key: str | None,
) -> Conversation[Synopsis]:
    """Moments of the rows, from which every point is explained: one question, or a survey and one."""
    columns = () if isinstance(kind, Moments) else None if kind.columns is None else tuple(kind.columns)

    def recipe(terms: Terms) -> Recipe[Synopsis]:
        made = yield from cells_recipe(problem, terms) if columns is None else moments_recipe(problem, columns, terms)
        return made if training is None else replace(made, guarantee=training.added_to(made.guarantee))

    known = problem.identity(key)
    cut: JsonValue = None if columns is None else list(columns)
    identity = None if known is None else {"kind": "synopsis", "version": VERSION, **known, "cells": cut}
    label = f"synopsis of {problem.schema.n_columns} columns for explanations of {problem.model.name}"
    return Conversation(data, recipe, label, identity, (problem.model,))


def rows_conversation(
    data: PrivateData, problem: LocalProblem, kind: Rows, training: TrainingGuarantee | None, weight: Weight | None
) -> Conversation[RowsExplainer]:
    """Private rows, on which every point is explained: their questions depend neither on the model nor on the weight."""
    paid = private_rows(data, columns=problem.schema.names).conversation()

    def recipe(terms: Terms) -> Recipe[RowsExplainer]:
        rows = yield from paid.recipe(terms)
        n_sampled = min(kind.n_sampled, terms.public_rows)
        made = explain_on(problem, rows, weight=weight, n_sampled=n_sampled, replicates=kind.replicates, seed=kind.seed)
        return made if training is None else replace(made, guarantee=training.added_to(made.guarantee))

    # Whoever has begun to buy these rows is not rehearsed again, whatever the model: so it is tried here.
    try_model(problem.model, problem.schema)
    return Conversation(data, recipe, paid.label, paid.identity, (problem.model,))
