"""Pay once, explain anybody for ever: what ``LocalLinear.fitting`` returns, to be quoted, called or audited.

*Training.* An explanation's promise is for the rows that it is computed from, given the model. If the same rows trained the
model under (epsilon_f, delta_f)-differential privacy, basic composition adds that: epsilons and deltas add, and the promise
is about training data too. Test: tests/explain/linear/test_local.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
class SynopsisFitting(GlobalExplainer[Synopsis]):
    """Moments of the rows, from which every point is explained.

    Attributes
    ----------
    data : PrivateData
        The rows.
    problem : LocalProblem
        What will be explained.
    kind : Moments or Cells
        Whether rows are cut into cells.
    training : TrainingGuarantee, optional
        The model's own promise.
    key : str, optional
        A name for a model or weight that is a bare function.
    """

    data: PrivateData
    problem: LocalProblem
    kind: Moments | Cells
    training: TrainingGuarantee | None = None
    key: str | None = None

    def conversation(self) -> Conversation[Synopsis]:
        """One question, or a survey and one."""
        known = self.problem.identity(self.key)
        columns: JsonValue = None if self._columns is None else list(self._columns)
        identity = None if known is None else {"kind": "synopsis", "version": VERSION, **known, "cells": columns}
        label = f"synopsis of {self.problem.schema.n_columns} columns for explanations of {self.problem.model.name}"
        return Conversation(self.data, self._recipe, label, identity, (self.problem.model,))

    @property
    def _columns(self) -> tuple[str, ...] | None:
        """The columns to cut by; None where they are chosen."""
        if isinstance(self.kind, Moments):
            return ()
        return None if self.kind.columns is None else tuple(self.kind.columns)

    def _recipe(self, terms: Terms) -> Recipe[Synopsis]:
        if self._columns is None:
            made = yield from cells_recipe(self.problem, terms)
        else:
            made = yield from moments_recipe(self.problem, self._columns, terms)
        return made if self.training is None else replace(made, guarantee=self.training.added_to(made.guarantee))


@dataclass(frozen=True)
class RowsFitting(GlobalExplainer[RowsExplainer]):
    """Private rows, on which every point is explained.

    Attributes
    ----------
    data, problem, training
        As for :class:`SynopsisFitting`; the problem's weight is not used.
    kind : Rows
        How many rows are sampled.
    weight : Weight, optional
        Instead of exp(-d^2/width) with width 1.3/columns.
    """

    data: PrivateData
    problem: LocalProblem
    kind: Rows
    training: TrainingGuarantee | None = None
    weight: Weight | None = None

    def conversation(self) -> Conversation[RowsExplainer]:
        """The questions of private rows: they depend neither on the model nor on the weight."""
        paid = private_rows(self.data, columns=self.problem.schema.names).conversation()

        def recipe(terms: Terms) -> Recipe[RowsExplainer]:
            rows = yield from paid.recipe(terms)
            n_sampled, kind = min(self.kind.n_sampled, terms.public_rows), self.kind
            made = explain_on(
                self.problem, rows, weight=self.weight, n_sampled=n_sampled, replicates=kind.replicates, seed=kind.seed
            )
            return made if self.training is None else replace(made, guarantee=self.training.added_to(made.guarantee))

        # Whoever has begun to buy these rows is not rehearsed again, whatever the model: so it is tried here.
        try_model(self.problem.model, self.problem.schema)
        return Conversation(self.data, recipe, paid.label, paid.identity, (self.problem.model,))
