"""The vault's mechanisms on rows that are nobody's: for auditors, quotes, rehearsals and tests.

The same plans, the same sums and the same noise as in :meth:`PrivateData.ask`, without a ledger. The rows are the
caller's own; there is no way from a :class:`PrivateData` to here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting import Basis
from ..accounting.guarantee import Guarantee
from ..accounting.neighbours import relation_of
from ..accounting.releases import Release
from ..schema import Schema
from .engines.row_pass import RowPass
from .public_facts import PublicFacts
from .questions.grouped_sum import LARGEST_PUBLIC_GROUP, GroupedSum
from .questions.laplace_sum import LaplaceSumPlan
from .questions.question import Plan, Question, RowQuestion, SumPlan
from .questions.select import Select
from .rows.persons import open_persons
from .rows.predictions import Predictions

EXACT_MU = 1e5
"""A price at which noise is too small to matter beside that of any real question."""


@dataclass
class PublicRows:
    """Rows that are nobody's, with the vault's mechanisms in front of them.

    Parameters
    ----------
    rows : object
        What :class:`PrivateData` takes.
    schema, target, n_rows_public, neighbours, block_rows, threads, rows_per_person, person
        As for :class:`PrivateData`.

    Examples
    --------
    >>> import vitrail as vt
    >>> rows = PublicRows({"age": [50.0]}, vt.Schema({"age": vt.Numeric(0, 100)}), n_rows_public=1)
    >>> question = vt.BoundedSum(lambda block: block.features, size=1, l2_bound=1.0)
    >>> rows.draws(question, mu=1.0, draws=3).shape, rows.ask(question, mu=1.0, delta=1e-6).value.shape
    ((3, 1), (1,))
    """

    rows: object
    schema: Schema
    n_rows_public: int
    target: str | None = None
    neighbours: str = "add-remove"
    block_rows: int = 8
    threads: int = 1
    watches: bool = True
    """Whether models may be fitted again between questions; in a single run of a recipe they are not."""
    rows_per_person: int = 1
    person: str | None = None

    def __post_init__(self) -> None:
        relation = relation_of(self.neighbours, self.rows_per_person, whole_person=self.person is not None)
        self._facts = PublicFacts(self.schema, self.target, self.n_rows_public, relation, self.block_rows, self.threads)
        self._source = open_persons(self.rows, self.schema, self.person)
        self._predictions = Predictions(self._facts, watches=self.watches)

    def draws(self, question: Question, *, mu: float, draws: int) -> NDArray[np.float64]:
        """Independent outputs of a question, flat: (draws, width)."""
        self._predictions.begin()
        block_rows = question.probe(self._facts, self._predictions)
        rows = RowPass(self._source, self._facts, self._predictions)
        return question.plan(mu, self._facts).answers(rows, block_rows, draws)

    def ask(self, question: Question, *, mu: float, delta: float) -> Release:
        """One draw, as the release that the vault would hand out."""
        plan = question.plan(mu, self._facts)
        return self._release(question, plan, self.draws(question, mu=mu, draws=1)[0], delta)

    def scaled(self, question: Question, *, mu: float, delta: float, n_rows: int, noise: np.random.Generator) -> Release:
        """A release as ``n_rows`` rows like these would give it: exact sums times their ratio, noise at its real size.

        ``noise`` hides nothing here; with a fixed seed a quote is the same again.
        """
        true = replace(self._facts, n_rows_public=n_rows)
        plan, factor = question.plan(mu, true), n_rows / self.n_rows_public
        if isinstance(question, GroupedSum):
            flat = self._one_group(question, true)
        elif isinstance(question, Select):  # scores that are `factor` times larger: so is the epsilon in front of them
            flat = self.draws(question, mu=min(EXACT_MU, mu * factor), draws=1)[0]
        else:
            whole: Any = question  # of all rows: the stand-in is small already
            flat = self._exact_sums(replace(whole, rate=None) if isinstance(question, RowQuestion) else question) * factor
        if plan.stds is not None:
            laplace = question.in_epsilon  # of either norm: how the coordinates of one draw go together is not shown
            law = noise.laplace(scale=math.sqrt(0.5), size=flat.shape) if laplace else noise.normal(size=flat.shape)
            flat = flat + plan.stds * law
        return self._release(question, plan, flat, delta)

    def _exact_sums(self, question: Question) -> NDArray[np.float64]:
        """Without noise: these rows are nobody's. Otherwise seeds that follow from an answer would differ every time."""
        self._predictions.begin()
        block_rows, plan = question.probe(self._facts, self._predictions), question.plan(EXACT_MU, self._facts)
        assert isinstance(plan, SumPlan | LaplaceSumPlan)
        cells = plan.exact_cells(RowPass(self._source, self._facts, self._predictions), block_rows)
        return np.asarray(cells * np.float64(plan.step)).ravel()

    def _one_group(self, question: GroupedSum, true: PublicFacts) -> NDArray[np.float64]:
        """The sum over groups if all said what one of them says that is as large as they would be.

        The rows are repeated for that: a function that trains a model may fail on fewer. Nobody's rows need no process of
        their own, beyond the one that shows whether the function can be sent there.
        """
        question.probe(true, self._predictions)
        box = (question.low, question.high, question.default) if question.rank_points is None else (None, None, None)
        low, high, default = box  # a ranking makes its own
        alone = replace(question, groups=1, low=low, high=high, default=default, isolation="none")
        size = max(2, min(LARGEST_PUBLIC_GROUP, true.n_rows_public // question.groups))
        raw = np.concatenate(list(self._source.chunks(4096)))[:, : self.schema.n_columns]
        rows = self.schema.frame(np.resize(raw, (size, raw.shape[1])))
        repeated = replace(self, rows=rows, n_rows_public=size, person=None)
        return np.asarray(repeated.draws(alone, mu=EXACT_MU, draws=1)[0] * question.groups)

    def _release(self, question: Question, plan: Plan, flat: NDArray[np.float64], delta: float) -> Release:
        answer, cost = plan.shape(flat), plan.event.cost()
        promise = Guarantee.of(Basis.new(cost), delta, self._facts.neighbours)
        parts = MappingProxyType(answer.parts)
        return Release(answer.value, plan.sigma, cost, promise, question.describe(), "nobody's rows", parts)


def rehearse(
    question: Question, rows: object, schema: Schema, *, mu: float, draws: int, **declared: Any
) -> NDArray[np.float64]:
    """Independent outputs of a question on given, non-private rows, flat: (draws, width).

    Parameters
    ----------
    question : BoundedSum, CellCounts, GramSum, ProductSum, Select, GroupedSum or LaplaceSum
    rows, schema
        As for :class:`PrivateData`; so is ``declared``: n_rows_public, target, neighbours, block_rows,
        threads, rows_per_person, person.
    mu : float
        The price of each draw; epsilon of a question that is paid in it.
    draws : int
        How many.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.vault import rehearse
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> question = vt.BoundedSum(lambda block: block.features, size=1, l2_bound=1.0)
    >>> rehearse(question, {"age": [50.0]}, schema, mu=1.0, n_rows_public=1, draws=3).shape
    (3, 1)
    """
    return PublicRows(rows, schema, **declared).draws(question, mu=mu, draws=draws)
