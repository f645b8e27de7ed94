"""One table of explainers: every explainer is one row, and is thereby run for everything in ``test_every_explainer.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import vitrail as vt
from vitrail.accounting import Cost
from vitrail.explain.marginals import MarginalsExplainer
from vitrail.explain.private_rows import PrivateRowsExplainer
from vitrail.explain.recipe import Conversation, GlobalExplainer, Recipe, Terms
from vitrail.explain.split import EPSILON, MU, Currency

N_ROWS = 3000
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True),
        "hours": vt.Numeric(0, 80),
        "sex": vt.Categorical(["Female", "Male"]),
        "rich": vt.Categorical(["no", "yes"]),
    }
)


def rows(n: int = N_ROWS, seed: int = 0) -> dict[str, Any]:
    """Rows of nobody's: age and hours matter, sex a little."""
    generator = np.random.default_rng(seed)
    age, hours = generator.integers(18, 91, n), generator.uniform(0, 80, n)
    sex = generator.choice(["Female", "Male"], n)
    score = (age - 18) / 72 + hours / 80 + 0.2 * (sex == "Male") + 0.3 * generator.normal(size=n)
    return {"age": age, "hours": hours, "sex": sex, "rich": np.where(score > 1.1, "yes", "no")}


def private(given: Mapping[str, Any] | None = None, *, epsilon: float = 20.0, **more: Any) -> vt.PrivateData:
    """The rows behind a budget."""
    options = {"ledger": "memory", **more}
    held = rows() if given is None else given
    return vt.PrivateData(
        held, SCHEMA, name="staff", n_rows_public=N_ROWS, target="rich", budget=budget_of(epsilon), **options
    )


def budget_of(epsilon: float) -> vt.Budget:
    """So much for questions, and a purse for those with Laplace noise."""
    purse = min(5.0, epsilon)
    return vt.Budget(epsilon + purse, 1e-6, training=(purse, 0))


def outputs(features: Any) -> Any:
    """A smooth public model with an interaction; features are age, hours, sex=Female, sex=Male."""
    return 0.1 + 0.35 * features[:, 0] + 0.25 * features[:, 1] + 0.2 * features[:, 0] * features[:, 3]


def model() -> vt.Model:
    """The model that every row of the table explains."""
    return vt.Model(outputs, range=(0, 1), name="score")


ONE_POINT = {"age": 30, "hours": 40.0, "sex": "Male"}
POINTS = {"age": [30, 70], "hours": [40.0, 60.0], "sex": ["Male", "Female"]}


class Make(Protocol):
    """Makes an explainer; ``more`` are options that all of them know, such as ``sampling_rate``."""

    def __call__(self, data: vt.PrivateData, model: vt.Model, **more: Any) -> Any: ...


@dataclass(frozen=True)
class Row:
    """One explainer.

    Attributes
    ----------
    name : str
        Of the row.
    make : callable
        Explainer from data, model and more options. Give it ``key="table"`` where it asks a model: it then has a name.
    points : object
        What is explained, or None for an explainer of the whole model.
    epsilon : float
        The price in the tests.
    bands : bool
        Whether the result has bands (``half_width``).
    questions : int or None
        How many questions it asks at most; None where that depends on answers.
    quote_within : float
        A quote's half-width is the result's up to this factor. The logarithms of their ratios, over 150 draws each, have
        standard deviations of at most 0.13 and means of at most 0.1 (a chance of 1e-14 to miss a factor of 3), and for the
        explainers with 10 here 0.34 and 0.12, or 0.29 and 0.87 (less than 1e-6).
    """

    name: str
    make: Make
    points: object = None
    epsilon: float = 1.0
    bands: bool = True
    questions: int | None = 1
    quote_within: float = 3.0
    currency: Currency = MU

    def price(self, delta: float) -> Cost:
        """What it costs in the tests."""
        return self.currency.cost(self.currency.units(self.currency.price(self.epsilon, None, delta)))


def any_curve(data: vt.PrivateData, model: vt.Model, **more: Any) -> vt.AnyCurve:
    """Mean output by age, on groups."""

    def by_age(asked: Any, X: Any) -> Any:
        return [asked.predict(X.assign(age=age)).mean() for age in (20, 40, 60)]

    options: Any = {"x_grid": [20, 40, 60], "y_range": (0, 1), "isolation": "none", "key": "table"}
    return vt.AnyCurve(data, by_age, model=model, **options, **more)


def any_ranking(data: vt.PrivateData, model: vt.Model, **options: Any) -> vt.AnyRanking:
    """How far outputs move with each column, on groups."""

    def by_move(asked: Any, X: Any) -> Any:
        outputs = asked.predict(X)
        return [np.abs(asked.predict(X.assign(**{name: X[name].iloc[0]})) - outputs).mean() for name in X.columns]

    return vt.AnyRanking(data, by_move, model=model, isolation="none", key="table", **options)


class AtPoints(GlobalExplainer[vt.Attribution]):
    """What an explainer says about the points, where its own result is more than one explanation."""

    def __init__(self, talk: Conversation[Any], attribution: Callable[[Any], vt.Attribution]) -> None:
        self._talk, self._attribution = talk, attribution

    def conversation(self) -> Conversation[vt.Attribution]:
        talk = self._talk

        def recipe(terms: Terms) -> Recipe[vt.Attribution]:
            return self._attribution((yield from talk.recipe(terms)))

        given = talk.data, recipe, talk.label, talk.identity, talk.models
        return Conversation(*given, sampling_rate=talk.sampling_rate)


def fitted(kind: Any) -> Make:
    """A fit of LocalLinear, and what it says about the points."""
    return lambda data, model, **more: AtPoints(
        vt.LocalLinear(data, model, key="table", **more).fitting(kind).conversation(), lambda fit: fit(POINTS)
    )


def adaptive(enhanced: bool) -> Make:
    """A stream that starts anew: from a history of its own, points far from one another."""

    def make(data: vt.PrivateData, model: vt.Model, **more: Any) -> vt.LocalLinear:
        history = vt.linear.History(vt.LocalLinear(data, model).problem)
        method = vt.linear.Adaptive(enhanced=enhanced, iterations=4, history=history)
        return vt.LocalLinear(data, model, method=method, key="table", **more)

    return make


def classes(data: vt.PrivateData, model: vt.Model, **more: Any) -> AtPoints:
    """The classes of a model with one output, and what is said of it."""
    talk = vt.LocalClasses(data, [model], key="table", **more).conversation(POINTS)
    return AtPoints(talk, lambda found: found[0])


TABLE: list[Row] = [
    # marginals and private rows
    Row("marginals", lambda data, model, **more: MarginalsExplainer(data, **more)),
    Row("private rows", lambda data, model, **more: PrivateRowsExplainer(data, **more), bands=False, questions=3),
    Row(
        "private rows of two columns",
        lambda data, model, **more: PrivateRowsExplainer(data, columns=["age", "rich"], **more),
        bands=False,
        questions=2,
    ),
    # Shapley values
    Row("shapley", lambda data, model, **more: vt.Shapley(data, model, key="table", **more), points=POINTS),
    Row(
        "shapley, clip chosen",
        lambda data, model, **more: vt.Shapley(data, model, clip="auto", key="table", **more),
        POINTS,
        questions=2,
    ),
    Row(
        "shapley of a sample",
        lambda data, model, **more: vt.Shapley(data, model, sampling_rate=0.5, key="table", **more),
        POINTS,
    ),
    # explainers of other libraries, on groups
    Row("any curve", any_curve),
    Row("any ranking", any_ranking),
    Row("any ranking of the first", lambda data, model, **more: any_ranking(data, model, top_k=1, **more)),
    # counterfactuals
    Row("counterfactual", lambda data, model, **more: vt.Counterfactual(data, model, rows=False, key="table", **more)),
    Row(
        "counterfactual with a code and rows",
        lambda data, model, **more: vt.Counterfactual(data, model, latent="linear", rows=True, key="table", **more),
        questions=5,
    ),
    # curves, rankings and the global report
    Row(
        "partial dependence", lambda data, model, **more: vt.PartialDependence(data, model, key="table", **more), questions=2
    ),
    Row(
        "surfaces",
        lambda data, model, **more: vt.PartialDependence(
            data, model, columns=["age", ("age", "sex")], resolution=6, estimate="plain", key="table", **more
        ),
        questions=2,
    ),
    Row(
        "accumulated effects",
        lambda data, model, **more: vt.AccumulatedEffects(data, model, key="table", **more),
        questions=3,
        quote_within=10.0,
    ),
    Row(
        "accumulated effects of one column",
        lambda data, model, **more: vt.AccumulatedEffects(data, model, columns=["hours"], key="table", **more),
        questions=4,
        quote_within=10.0,
        currency=EPSILON,
    ),
    Row(
        "partial dependence with Laplace noise",
        lambda data, model, **more: vt.PartialDependence(data, model, columns=["sex"], noise="laplace", key="table", **more),
        questions=2,
        currency=EPSILON,
    ),
    Row(
        "accumulated effects with Laplace noise",
        lambda data, model, **more: vt.AccumulatedEffects(
            data, model, columns=["sex"], noise="laplace", key="table", **more
        ),
        questions=3,
        quote_within=10.0,
        currency=EPSILON,
    ),
    Row(
        "permutation importance",
        lambda data, model, **more: vt.PermutationImportance(data, model, key="table", **more),
        questions=2,
    ),
    Row("interactions", lambda data, model, **more: vt.Interactions(data, model, key="table", **more), questions=2),
    Row("SHAP importance", lambda data, model, **more: vt.ShapImportance(data, model, key="table", **more), questions=2),
    Row("SHAP dependence", lambda data, model, **more: vt.ShapDependence(data, model, key="table", **more), questions=2),
    Row("global report", lambda data, model, **more: vt.GlobalReport(data, model, key="table", **more), questions=3),
    Row(
        "global report from a sample",
        lambda data, model, **more: vt.GlobalReport(
            data, model, parts=["pdp", "shap"], sampling_rate=0.5, key="table", **more
        ),
        questions=2,
    ),
    # by group
    Row("groups", lambda data, model, **more: vt.GroupReport(data, model, by="sex", key="table", **more)),
    Row(
        "groups of two columns",
        lambda data, model, **more: vt.GroupReport(
            data, model, by=["sex", "age"], edges={"age": [40, 65]}, key="table", **more
        ),
    ),
    # the pane
    Row(
        "pane",
        lambda data, model, **more: vt.pane.PaneExplainer(data, model, key="table", **more),
        epsilon=3.0,
        questions=None,
    ),
    # local linear
    Row("local statistics", lambda data, model, **more: vt.LocalLinear(data, model, key="table", **more), POINTS),
    Row(
        "local descent",
        lambda data, model, **more: vt.LocalLinear(data, model, method=vt.linear.Descent(iterations=4), key="table", **more),
        POINTS,
        questions=5,
    ),
    Row("local adaptive", adaptive(enhanced=False), ONE_POINT, questions=None),
    Row("local enhanced", adaptive(enhanced=True), ONE_POINT, questions=None),
    Row("local classes", classes),
    Row("local moments", fitted("moments")),
    Row("local cells", fitted("cells"), questions=2),
    Row("local cells by sex", fitted(vt.linear.Cells(columns=("sex",)))),
    Row("local rows", fitted(vt.linear.Rows(n_sampled=2000)), questions=3, quote_within=10.0),
]
