"""LocalLinear: why a model says what it says at a point, by the linear model that imitates it best on nearby private rows.

One door to several ways of computing it. *Pay per question*: ``statistics`` (the default: one release per batch of
points), ``descent`` (where features are so many that their square hurts), ``adaptive`` and ``enhanced`` (each point from
what earlier ones released), ``history`` (from earlier ones alone, free). *Pay once*: :meth:`LocalLinear.fit`. Everything
that can be wrong with points, model and options is found on public input, before anything is charged.

*Statistics*: one release from which the local linear models of a batch of points are solved. *What a row contributes.* For
each point z, with d = x - z and alpha its weight, the matrix alpha u u^T and the vector alpha y u, where u = d and y = eta
f, or u = (kappa, d) with an intercept (kappa and eta: ``solve.linear.statistics``). In the isometric embedding its norm is
alpha |u| sqrt(|u|^2 + y^2) <= sup_d alpha(d) sqrt((kappa^2 + d^2)(kappa^2 + d^2 + eta^2)), d up to the schema's largest
distance; the vault lowers the weight of a row that exceeds it. Q points: sqrt(Q) times that. *Cost*:
(bound/sigma)^2, once for the batch. *Neighbours*: as the dataset declares. No iteration, hence no sqrt(T). Test:
tests/explain/linear/test_statistics.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias, TypeVar, overload

import numpy as np

from ... import _checks
from ..._types import Floats
from ...accounting import JsonValue, rounded_up
from ...accounting.guarantee import question_mu
from ...accounting.neighbours import check_neighbours, check_unit_is_a_row
from ...accounting.releases import Release
from ...errors import InvalidInput, SchemaError
from ...model import Model
from ...results import Attribution
from ...results.band_claim import TWO_SIDED_95, BandClaim
from ...results.synopsis import Synopsis
from ...schema import Numeric, Schema, View
from ...solve.linear.descent import Gradients, History, Past
from ...solve.linear.labelled_rows import RowsExplainer, explain_from
from ...solve.linear.problem import Labels, LocalModels, LocalProblem, explanation_of
from ...solve.linear.ridge import RIDGE, RidgeFit
from ...solve.linear.statistics import LocalFit, LocalStatistics, Scales, scales_of
from ...solve.linear.weights import Weight, custom, polynomial, stable
from ...solve.sampling import rate_of, sampling_notes
from ...vault import Block, GramSum, PrivateData
from ..elsewhere import elsewhere
from ..recipe import Ask, Conversation, Given, GlobalExplainer, LocalExplainer, Recipe, Terms, points_identity, sigma_of
from ..sampled import all_rows, checked_rate
from . import descent
from .fitting import Fitting, checked_training, rows_conversation, synopsis_conversation, with_training
from .options import Adaptive, Cells, Descent, FromHistory, Method, MethodName, Moments, Rows, Statistics

VERSION = 3
MOST_FEATURES = 1500
"""Beyond it "auto" means descent: statistics take n^2 numbers per point."""
MOST_NUMBERS = 2 * 10**8
RIDGE_NOTE = (
    f"Bands are about weighted ridge regression (ridge {RIDGE:g} of the mean eigenvalue) on the same rows without noise. "
    "Sampling error is not in them, nor rows the vault clipped."
)
SAMPLED_NOTE = RIDGE_NOTE.partition(" Sampling")[0]
NOT_TOLD = "what a sample adds to a local line depends on how far rows lie from it, which is not released there"
BALL_NOTE = (
    "Bands are about the best slope no longer than 1, on the same rows without noise; what that bound takes from "
    "contributions is not in them, nor sampling error, nor rows the vault clipped."
)
METHODS: dict[str, Method] = {"statistics": Statistics(), "descent": Descent(), "adaptive": Adaptive()}
METHODS |= {"enhanced": Adaptive(enhanced=True), "history": FromHistory()}
KINDS: dict[str, Moments | Cells | Rows] = {"moments": Moments(), "cells": Cells(), "rows": Rows()}


R = TypeVar("R")
PointsRecipe: TypeAlias = Callable[[Floats, Terms, int | None], Recipe[R]]
"""A recipe from raw points, terms, and the most steps of a descent."""
SynopsisKind: TypeAlias = Literal["auto", "moments", "cells"] | Moments | Cells
RowsKind: TypeAlias = Literal["rows"] | Rows


@dataclass(eq=False, repr=False)
class LocalLinear(LocalExplainer[Attribution]):
    """Local linear explanations of a model from private rows.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained. One output at a time: choose the class of a multi-class model with ``Model(output=...)``.
    method : {"auto", "statistics", "descent", "adaptive", "enhanced", "history"}, or its options
        How. A name means its defaults; options are given as ``vt.linear.Statistics(bands=False)``,
        ``vt.linear.Descent(...)``, ``vt.linear.Adaptive(...)`` or ``vt.linear.FromHistory(...)``. ``"auto"`` is statistics,
        or descent beyond 1500 features.
    weight : Weight or callable, optional
        How much a row counts by its distance from the point: ``vt.weights.exponential(0.3)``, for example. The paper's
        ``vt.weights.stable()`` if not given.
    labels : {"soft", "hard"}
        Imitate the model's output, or only on which side of the middle of its range it lies.
    intercept : bool
        Fit a level as well as slopes. Without it the model is centred at the point, as in the paper.
    view : View, optional
        Explain by what it shows of a row, while the model sees the row: a :class:`~vitrail.Picture` with patches or
        superpixels, a :class:`~vitrail.BagOfWords`. For methods ``"statistics"`` and ``"descent"``.
    training_guarantee : (float, float), optional
        (epsilon, delta) under which the model was trained on these same rows: the promise then covers that too.
    sampling_rate : float
        Below 1, each row is looked at with this probability: sooner, noisier and no cheaper; bands hold what that adds. For
        method ``"statistics"`` with an intercept, and for ``fit(kind="rows")``.
    key : str, optional
        A name for a model or weight that is a bare function, so that asking again replays the stored releases.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 5000), "smoker": generator.choice(["no", "yes"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=5000, budget=vt.Budget(3, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> e = vt.LocalLinear(data, model)({"age": 90, "smoker": "yes"}, epsilon=1.0)
    >>> sorted(e.certain())
    ['age', 'smoker']
    >>> bool(abs(e.predictions[0] - 0.87) < 0.05)
    True
    >>> few = vt.LocalLinear(data, model, method=vt.linear.Descent(iterations=20))({"age": 90, "smoker": "yes"}, epsilon=1.0)
    >>> few.method
    'descent'
    """

    data: PrivateData
    model: Model
    _: KW_ONLY
    method: MethodName | Statistics | Descent | Adaptive | FromHistory = "auto"
    weight: Weight | Callable[[Floats], Floats] | None = None
    labels: Labels = "soft"
    intercept: bool = True
    view: View | None = None
    training_guarantee: tuple[float, float] | None = None
    sampling_rate: float = 1.0
    key: str | None = None
    problem: LocalProblem = field(init=False)
    """The public facts of the explanation: schema, model, weight, labels."""

    def __post_init__(self) -> None:
        self.check_inputs(self.model)
        _checks.choice("labels", self.labels, ("soft", "hard"))
        _checks.flag("intercept", self.intercept)
        given = stable() if self.weight is None else self.weight
        weight = given if isinstance(given, Weight) else custom(given)
        schema = self.data.feature_schema if self.view is None else _checked_view(self.view, self.data)
        self.problem = LocalProblem(schema, self.model, weight, self.labels, self.intercept, self.view)
        self._gradients = Gradients(self.problem)
        self._training = checked_training(self.training_guarantee)
        if self._training is not None:
            unsaid = "training_guarantee= does not say whether it is about rows or about people"
            check_unit_is_a_row(
                self.data.neighbours, unsaid, "leave it out: the promise is then about the explanation alone"
            )
        self._method = self._chosen_method(self.method)
        self.sampling_rate = checked_rate(self.sampling_rate)

    def _chosen_method(self, method: str | Method) -> Method:
        if method == "auto":
            return Statistics() if self.problem.n_features <= MOST_FEATURES else Descent()
        chosen = method if isinstance(method, Method) else METHODS[_checks.choice("method", method, ("auto", *METHODS))]
        if self.view is not None and not isinstance(chosen, Statistics | Descent):
            raise InvalidInput("this method takes no view; leave view= away, or choose 'statistics' or 'descent'")
        if isinstance(chosen, Adaptive | FromHistory) and chosen.history is not None:
            chosen.history.check(self.problem)
            unsaid = "a history= does not say whether its releases promise something about rows or about people"
            check_unit_is_a_row(self.data.neighbours, unsaid, "leave it out, and the ledger keeps one")
        return chosen

    def __repr__(self) -> str:
        problem = self.problem
        level = "with" if problem.intercept else "without"
        return f"LocalLinear({problem.model!r}, weight {problem.weight.name!r}, {problem.labels} labels, {level} intercept)"

    def __call__(self, points: object, *, epsilon: Given = None, mu: Given = None) -> Attribution:
        """Explain public points; all of them together cost ``epsilon``.

        Parameters
        ----------
        points : dictionary, data frame, array
            One public point or several, in the schema's columns. What does not fit the schema is an error.
        epsilon, mu : float
            The price of the whole batch, in one of the two currencies. Method ``"history"`` has none.

        Returns
        -------
        Attribution

        Raises
        ------
        SchemaError, ModelError, InvalidInput
            If something is wrong with the points or the model. Nothing was charged.
        BudgetExceeded
            If the account or the analyst's cap cannot pay for all of it. Nothing was charged; points of a stream
            (``"adaptive"``) that were explained before are kept.
        """
        self._check_sampling()
        method = self._method
        if elsewhere(self) is not None and not (isinstance(method, FromHistory) and method.history is not None):
            return super().__call__(points, epsilon=epsilon, mu=mu)
        if isinstance(method, Adaptive):
            price = question_mu(epsilon, mu, self.data.delta)
            raw, _ = self.read_points(points)
            if len(raw) > 1:
                epsilon, mu = None, price / math.sqrt(len(raw))
            return self._stream(raw, method, epsilon, mu)
        if not isinstance(method, FromHistory):
            return super().__call__(points, epsilon=epsilon, mu=mu)
        if epsilon is not None or mu is not None:
            raise InvalidInput("method 'history' is free: it uses earlier explanations alone; leave epsilon and mu away")
        (raw, _), given = self.read_points(points), method.history
        history = descent.kept_history(self.problem, self.data, self.key) if given is None else given
        return self._promised(explain_from(history, raw))

    def conversation(self, points: object) -> Conversation[Attribution]:
        """What would be said to the vault about these points; whatever is wrong with them is an error."""
        self._check_sampling()
        (raw, _), method = self.read_points(points), self._method
        facts: dict[str, JsonValue]
        recipe: PointsRecipe[Attribution]
        if isinstance(method, Statistics):
            check_size(self.problem, len(raw))
            facts = {"method": "statistics"}
            recipe = partial(statistics_recipe, self.problem, scales_of(self.problem), method)
        elif isinstance(method, Descent):
            facts = {"method": "descent", "iterations": method.iterations}
            recipe = partial(descent.descent_recipe, self._gradients, method)
        elif isinstance(method, Adaptive):
            stream = descent.Stream(self._gradients, History(self.problem, self._history(method)[0]), method)
            facts, recipe = stream.facts(), stream.recipe
        else:
            raise InvalidInput("method 'history' is free and asks nothing about the rows: call it, without epsilon and mu")

        def promising(raw: Floats, terms: Terms, most_steps: int | None) -> Recipe[Attribution]:
            return self._promised((yield from recipe(raw, terms, most_steps)))

        return self._talk(raw, facts, promising)

    def _talk(self, raw: Floats, facts: dict[str, JsonValue], recipe: PointsRecipe[R]) -> Conversation[R]:
        """The conversation about these points; it is rehearsed with two of them and a few steps."""
        known, models = self.problem.identity(self.key), (self.problem.model,)
        facts = {"kind": "local linear", "version": VERSION, **facts, "points": points_identity(raw)}
        identity = None if known is None else {**known, **facts}
        label = f"local explanation of {len(raw)} point{'s' if len(raw) > 1 else ''}"

        def few(terms: Terms) -> Recipe[R]:
            return recipe(raw[:2], terms, descent.REHEARSED_STEPS)

        given = self.data, lambda terms: recipe(raw, terms, None), label, identity, models, few
        return Conversation(*given, sampling_rate=self.sampling_rate)

    # --- a stream of points ------------------------------------------------------------------------------------------

    def _stream(self, raw: Floats, method: Adaptive, epsilon: float | None, mu: float | None) -> Attribution:
        """Every point is a conversation of its own, at this price, and is kept as soon as it is explained."""
        history, keeper = self._history(method)
        entries: list[Past] = []
        for point in raw:
            past = history.neighbour(point, method.reuse_distance)  # asks nothing: free even where nothing is left
            if past is None:
                stream = descent.Stream(self._gradients, history, method)
                talk = self._talk(point[None], stream.facts(), stream.entries_recipe)
                _, (past,) = talk.explain(epsilon=epsilon, mu=mu)
            history.take(past)
            entries.append(past)
            if keeper is not None:
                keeper.keep(history)
        promise = history.promise(self.data.delta, check_neighbours(self.data.neighbours))
        made = self._promised(descent.stream_explanation(history, raw, entries, promise, method))
        kept = keeper is not None or method.history is not None
        return made if kept else replace(made, notes=(*made.notes, descent.NOT_KEPT_NOTE))

    def _history(self, method: Adaptive) -> tuple[History, descent.Keeper | None]:
        """The history that was given, or else that which the ledger keeps, and where it is kept again."""
        if method.history is not None:
            return method.history, None
        keeper = descent.keeper_of(self.problem, self.data, self.key)
        return (History(self.problem), None) if keeper is None else (keeper.load(), keeper)

    # --- pay once ----------------------------------------------------------------------------------------------------

    @overload
    def fitting(self, kind: SynopsisKind = "auto") -> GlobalExplainer[Synopsis]: ...

    @overload
    def fitting(self, kind: RowsKind) -> GlobalExplainer[RowsExplainer]: ...

    def fitting(self, kind: SynopsisKind | RowsKind = "auto") -> GlobalExplainer[Synopsis] | GlobalExplainer[RowsExplainer]:
        """What :meth:`fit` buys, to be quoted, called or audited.

        Examples
        --------
        >>> import vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "hours": vt.Numeric(0, 80)})
        >>> nobody = {"age": [], "hours": []}
        >>> data = vt.PrivateData(nobody, schema, name="staff", n_rows_public=5000, budget=vt.Budget(1, 1e-6))
        >>> explainer = vt.LocalLinear(data, vt.Model(lambda x: x[:, 0], range=(0, 1)))
        >>> cheap, dear = (data.quote(explainer.fitting("moments"), epsilon=epsilon) for epsilon in (0.1, 1.0))
        >>> dear.half_width < cheap.half_width, dear.fits
        (True, True)
        """
        problem = self.problem
        if problem.view is not None:
            raise InvalidInput(
                "fit takes no view: what it releases is about the columns of the rows; leave view= away, or pay per question"
            )
        if kind == "auto":
            kind = "cells" if self.weight is not None and problem.weight.name != "polynomial" else "moments"
        chosen = kind if isinstance(kind, Moments | Cells | Rows) else KINDS[_checks.choice("kind", kind, ("auto", *KINDS))]
        if isinstance(chosen, Rows):
            weight = None if self.weight is None else problem.weight
            facts = self.data, problem, chosen, self._training, weight, self.sampling_rate
            return Fitting(partial(rows_conversation, *facts), (self, chosen))
        all_rows(self.sampling_rate, "this fit", f"{NOT_TOLD}; fit(kind='rows') can know it")
        if isinstance(chosen, Moments) and self.weight is None:
            problem = replace(problem, weight=polynomial())
        made = partial(synopsis_conversation, self.data, problem, chosen, self._training, self.key)
        return Fitting(made, (self, chosen))

    @overload
    def fit(self, *, kind: SynopsisKind = "auto", epsilon: Given = None, mu: Given = None) -> Synopsis: ...

    @overload
    def fit(self, *, kind: RowsKind, epsilon: Given = None, mu: Given = None) -> RowsExplainer: ...

    def fit(
        self, *, kind: SynopsisKind | RowsKind = "auto", epsilon: Given = None, mu: Given = None
    ) -> Synopsis | RowsExplainer:
        """Release once what explains any point afterwards, free.

        Parameters
        ----------
        kind : {"auto", "moments", "cells", "rows"}, or its options
            ``"moments"`` is exact for the polynomial weight; ``"cells"`` approximates any weight; ``"rows"`` draws private
            rows and explains on those. ``"auto"`` is moments, unless a weight was chosen that is not polynomial: then cells.
            Options are given as ``vt.linear.Cells(columns=...)`` or ``vt.linear.Rows(n_sampled=10_000)``.
        epsilon, mu : float
            The price, in one of the two currencies.

        Returns
        -------
        Synopsis or RowsExplainer
            Takes points, returns an :class:`Attribution`.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "hours": vt.Numeric(0, 80)})
        >>> rows = {"age": np.linspace(0, 100, 5000), "hours": np.tile(np.linspace(0, 80, 50), 100)}
        >>> data = vt.PrivateData(rows, schema, name="staff", n_rows_public=5000, budget=vt.Budget(1, 1e-6))
        >>> local = vt.LocalLinear(data, vt.Model(lambda x: x[:, 0], range=(0, 1))).fit(epsilon=1.0)
        >>> local({"age": 90, "hours": 40}).certain()  # free, like any further point
        ('age',)
        """
        return self.fitting(kind)(epsilon=epsilon, mu=mu)

    # --- checks ------------------------------------------------------------------------------------------------------

    def _check_sampling(self) -> None:
        if not (isinstance(self._method, Statistics) and self.intercept):
            all_rows(self.sampling_rate, "this method", f"{NOT_TOLD}; only 'statistics' with an intercept has bands that do")

    def _promised(self, explanation: Attribution) -> Attribution:
        """The explanation, and the model's own promise where there is one."""
        if self._training is None:
            return explanation
        epsilon, delta = map(rounded_up, self._training)
        note = (
            f"The promise covers the model's training too: its own (epsilon = {epsilon}, delta = {delta}) is added to that "
            "of the explanation."
        )
        promise = with_training(explanation.guarantee, self._training)
        return replace(explanation, guarantee=promise, notes=(*explanation.notes, note))


def _checked_view(view: object, data: PrivateData) -> Schema:
    """The columns that a view shows, if it looks at rows like these."""
    if not isinstance(view, View):
        raise InvalidInput(f"view is {type(view).__name__}; give a vt.Picture or a vt.BagOfWords")
    if view.schema() != data.feature_schema:
        raise SchemaError(
            f"view looks at {_first(view.schema())}, and the data has {_first(data.feature_schema)}; make rows and schema "
            "with the same view"
        )
    shown = view.view_schema()
    if not all(isinstance(column, Numeric) for column in shown.values()):
        raise SchemaError("view shows columns that are no numbers; every column that it shows must be numeric")
    return shown


def _first(schema: Schema) -> str:
    return f"{schema.n_columns} columns ({', '.join(map(repr, schema.names[:3]))}, ...)"


# --- statistics ------------------------------------------------------------------------------------------------------


def statistics_question(problem: LocalProblem, raw_points: Floats, scales: Scales | None = None) -> GramSum:
    """The one question behind a batch of explanations.

    Parameters
    ----------
    problem : LocalProblem
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.
    scales : Scales, optional
        Those of ``scales_of`` if not given.
    """
    scales = scales_of(problem) if scales is None else scales
    kappa, eta = scales.intercept, scales.label
    points = problem.encode(raw_points)
    centres = np.concatenate((np.zeros((len(points), 1)), points), axis=1) if kappa else points

    def rows(block: Block) -> tuple[Floats, Floats]:
        x, f = problem.x(block.features), problem.label(block.predictions(problem.model))
        u = np.concatenate((np.full((len(x), 1), kappa), x), axis=1) if kappa else x
        return u, eta * f

    def weight(distances: Floats) -> Floats:
        return problem.weight(np.sqrt(np.maximum(distances**2 - kappa**2, 0.0)))

    return GramSum(
        rows,
        size=centres.shape[1],
        l2_bound=scales.l2_bound,
        row_norm=math.sqrt(1 + kappa**2) * (1 + 1e-12),
        cross=True,
        y_bound=eta,
        centres=centres,
        weight=weight,
    )


def statistics_recipe(
    problem: LocalProblem, scales: Scales, options: Statistics, raw: Floats, terms: Terms, most_steps: int | None = None
) -> Recipe[Attribution]:
    """One question, for the whole price; it has no steps."""
    release = yield Ask(statistics_question(problem, raw, scales), 1.0)
    gram, cross = release.parts["gram"], release.parts["cross"]
    statistics = LocalStatistics.of_sums(problem, raw, gram, cross, sigma_of(release), terms.n_rows_public, scales)
    return explained(problem, raw, statistics, release, options, n_rows=terms.n_rows_public)


def explained(
    problem: LocalProblem,
    raw: Floats,
    statistics: LocalStatistics,
    release: Release,
    options: Statistics,
    shift: float = 0.0,
    n_rows: int = 0,
) -> Attribution:
    """The explanation that released statistics make; ``shift`` was taken off f before they were, and is added again.

    ``n_rows``: what sums were divided by, where they are of a sample.
    """
    fit, half_widths = (_by_ridge if problem.intercept else _in_ball)(statistics, options)
    slopes = statistics.features(fit.slopes)
    phi = np.concatenate((fit.intercepts[:, None] + shift, slopes), axis=1) if problem.intercept else slopes
    models = LocalModels(phi, None if fit.means is None else statistics.features(fit.means))
    notes: tuple[str, ...] = ((RIDGE_NOTE if problem.intercept else BALL_NOTE),) if options.bands else ()
    rate, claim = rate_of(release), problem.claim("local statistics" if problem.intercept else "local centred")
    if rate < 1 and half_widths is not None:
        assert isinstance(fit, RidgeFit)
        largest = float(problem.weight(np.linspace(0.0, problem.largest_distance, 1001)).max())
        half_widths = np.hypot(half_widths, TWO_SIDED_95 * statistics.sampling_stds(fit, rate, n_rows, largest))
        notes, claim = (SAMPLED_NOTE,), BandClaim.NOT_CALIBRATED
    promise, cost, notes = release.guarantee, release.cost, (*notes, *sampling_notes(rate))
    explanation = explanation_of(
        problem, raw, models, guarantee=promise, cost=cost, method="statistics", notes=notes, claim=claim
    )
    if half_widths is None:
        return explanation
    half = half_widths * problem.model.width / 2
    return replace(explanation, lower=explanation.values - half, upper=explanation.values + half)


def _by_ridge(statistics: LocalStatistics, options: Statistics) -> tuple[RidgeFit, Floats | None]:
    fit = statistics.explain()
    return fit, fit.half_widths if options.bands else None


def _in_ball(statistics: LocalStatistics, options: Statistics) -> tuple[LocalFit, Floats | None]:
    """The best slope in the paper's ball."""
    fit = statistics.solve()
    return fit, statistics.half_widths(fit, draws=options.draws) if options.bands else None


def check_size(problem: LocalProblem, n_points: int) -> None:
    """Refuse more statistics than a machine holds."""
    numbers = n_points * (problem.n_features + 1) ** 2
    if numbers > MOST_NUMBERS:
        raise InvalidInput(
            f"{n_points} points with {problem.n_features} features need {numbers:.2g} numbers at once; {MOST_NUMBERS:.0e} "
            "is the limit; explain fewer points at a time, use method='descent', or pay once with fit()"
        )
