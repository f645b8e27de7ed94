"""LocalLinear: why a model says what it says at a point, by the linear model that imitates it best on nearby private rows.

One door to several ways of computing it. *Pay per question*: ``statistics`` (the default: one release per batch of
points), ``descent`` (where features are so many that their square hurts), ``adaptive`` and ``enhanced`` (each point from
what earlier ones released), ``history`` (from earlier ones alone, free). *Pay once*: :meth:`LocalLinear.fit`. Everything
that can be wrong with points, model and options is found on public input, before anything is charged.

*What is promised*: the release's own guarantee, for the rows that the explanation is computed from, given the model. If
the same rows trained the model under (epsilon_f, delta_f)-differential privacy, ``training_guarantee=`` adds that (basic
composition: epsilons and deltas add), and the promise is about training data too. Tests:
tests/explain/linear/test_local*.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ...accounting import rounded_up
from ...errors import InvalidInput, ModelError, SchemaError
from ...guarantee import Guarantee, question_mu
from ...model import Model
from ...results import Attribution
from ...results.synopsis import Labels
from ...schema import Numeric, Schema, View
from ...solve.linear.weights import Weight, custom, polynomial, stable
from .price import LocalQuote, quote_statistics
from .problem import Floats, LocalProblem

if TYPE_CHECKING:
    from ...results.synopsis import Synopsis
    from ...vault import PrivateData
    from .sharp import SharpRows

VIEW_METHODS = ("auto", "statistics", "descent")
METHODS = ("auto", "statistics", "descent", "adaptive", "enhanced", "history")
_METHOD_MODULES = {"statistics": ".batch", "descent": ".descent", "adaptive": ".adaptive", "enhanced": ".adaptive"}
KINDS = ("auto", "moments", "cells", "rows")
_KIND_MODULES = {"moments": ".moments", "cells": ".cells", "rows": ".sharp"}
MOST_FEATURES = 1500
"""Beyond it "auto" means descent: statistics take n^2 numbers per point."""
MOST_NUMBERS = 2 * 10**8

BANDS_NOTE = "Bands are drawn from the noise of the release; sampling error is not in them, nor rows the vault clipped."
SPARSE_NOTE = "Only the {count} strongest columns of the released statistics were used; bands take that choice as given."
TRAINING_NOTE = (
    "The promise covers the model's training too: its own (epsilon = {epsilon}, delta = {delta}) is added to that of "
    "the explanation."
)


class LocalLinear:
    """Local linear explanations of a model from private rows.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained. One output at a time: choose the class of a multi-class model with ``Model(output=...)``.
    weight : Weight or callable, optional
        How much a row counts by its distance from the point; the paper's stable weight if not given.
    labels : {"soft", "hard"}
        Imitate the model's output, or only on which side of the middle of its range it lies.
    intercept : bool
        Fit a level as well as slopes. Without it the model is centred at the point, as in the paper.
    training_guarantee : (float, float), optional
        (epsilon, delta) under which the model was trained on these same rows.
    view : View, optional
        Explain by what it shows of a row, while the model sees the row: a :class:`~vitrail.Picture` with patches or
        superpixels, a :class:`~vitrail.BagOfWords`. For methods ``"statistics"`` and ``"descent"``.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"age": generator.uniform(0, 100, 5000), "smoker": generator.choice(["no", "yes"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=5000, budget=vt.Budget(2, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> e = vt.LocalLinear(data, model)({"age": 90, "smoker": "yes"}, epsilon=1.0)
    >>> sorted(e.certain())
    ['age', 'smoker']
    >>> bool(abs(e.predictions[0] - 0.87) < 0.05)
    True
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        weight: Weight | Callable[[Floats], Floats] | None = None,
        labels: Labels = "soft",
        intercept: bool = True,
        training_guarantee: tuple[float, float] | None = None,
        view: View | None = None,
    ) -> None:
        from ...vault import PrivateData  # here, so that stored explanations can be read without loading the vault

        if not isinstance(data, PrivateData):
            raise InvalidInput(f"data is {type(data).__name__}; give the vt.PrivateData that holds the rows")
        if not isinstance(model, Model):
            raise InvalidInput(f"model is {type(model).__name__}; wrap it: vt.Model(your_model)")
        if labels not in ("soft", "hard"):
            raise InvalidInput(f"labels is {labels!r}; choose 'soft' or 'hard'")
        if not isinstance(intercept, bool):
            raise InvalidInput(f"intercept is {intercept!r}; it must be True or False")
        self._data, self._weight_given = data, weight is not None
        chosen = stable() if weight is None else weight if isinstance(weight, Weight) else custom(weight)
        schema = data.feature_schema if view is None else _checked_view(view, data)
        self._problem = LocalProblem(schema, model, chosen, labels, intercept, view)
        self._training = None if training_guarantee is None else _checked_training(training_guarantee)

    def __repr__(self) -> str:
        problem = self._problem
        level = "with" if problem.intercept else "without"
        return f"LocalLinear({problem.model!r}, weight {problem.weight.name!r}, {problem.labels} labels, {level} intercept)"

    @property
    def problem(self) -> LocalProblem:
        """The public facts of the explanation: schema, model, weight, labels."""
        return self._problem

    def __call__(
        self,
        points: object,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        method: str = "auto",
        key: str | None = None,
        **options: object,
    ) -> Attribution:
        """Explain public points; all of them together cost ``epsilon``.

        Parameters
        ----------
        points : object
            What ``schema.read_points`` takes: a dictionary, a data frame, an array. What does not fit is an error.
        epsilon, mu : float
            The price of the whole batch, in one of the two currencies. ``method="history"`` has none.
        method : {"auto", "statistics", "descent", "adaptive", "enhanced", "history"}
            ``"auto"`` is statistics, or descent beyond 1500 features.
        key : str, optional
            A name for a model or weight that is a bare function, so that asking again replays the stored release.
        **options
            Of the method. ``"statistics"`` takes ``radius`` (of the ball that holds the slope), ``max_features`` (use only
            so many columns per point), ``bands`` (False to go without), ``draws`` (resamplings per band), ``joint_bound``
            (a smaller bound on what a row says about all points together). For the others see their modules.

        Returns
        -------
        Attribution

        Raises
        ------
        SchemaError, ModelError, InvalidInput
            If something is wrong with the points, the model or an option. Nothing was charged.
        BudgetExceeded
            If too little is left. Nothing was charged.
        """
        if method not in METHODS:
            raise InvalidInput(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")
        if method == "auto":
            method = "statistics" if self._problem.n_features <= MOST_FEATURES else "descent"
        if self._problem.view is not None and method not in VIEW_METHODS:
            raise InvalidInput(f"method {method!r} takes no view; choose one of {', '.join(map(repr, VIEW_METHODS))}")
        raw = self.read(points)
        if method == "history":
            if epsilon is not None or mu is not None:
                raise InvalidInput("method 'history' is free: it uses earlier explanations alone; leave epsilon and mu away")
            if options.get("history") is None:
                from .kept_history import existing

                options = {**options, "history": existing(self._problem, self._data, key)}
            explain = _function("explain", "...solve.linear.history", f"method {method!r}", options)
            return with_training(explain(raw_points=raw, **options), self._training)
        price = question_mu(epsilon, mu, self._data.delta)
        explain = _function("explain", _METHOD_MODULES[method], f"method {method!r}", options)
        if method == "enhanced":
            options = {**options, "enhanced": True}
        if key is not None:
            options = {**options, "key" if method == "statistics" else "model_key": key}
        return with_training(explain(self._problem, self._data, raw, price, **options), self._training)

    def fit(
        self,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        kind: str = "auto",
        key: str | None = None,
        **options: object,
    ) -> Synopsis | SharpRows | TrainingPromise:
        """Release once what explains any point afterwards, free.

        Parameters
        ----------
        epsilon, mu : float
            The price, in one of the two currencies.
        kind : {"auto", "moments", "cells", "rows"}
            ``"moments"`` is exact for the polynomial weight; ``"cells"`` approximates any weight; ``"rows"`` draws private
            rows and explains on those. ``"auto"`` is moments, unless a weight was chosen that is not polynomial: then cells.
        key : str, optional
            A name for a model or weight that is a bare function.
        **options
            Of the kind; see ``moments.fit``, ``cells.fit`` and ``sharp.fit``.

        Returns
        -------
        callable
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
        if kind not in KINDS:
            raise InvalidInput(f"kind is {kind!r}; choose one of {', '.join(map(repr, KINDS))}")
        problem = self._problem
        if problem.view is not None:
            raise InvalidInput(
                "fit takes no view: what it releases is about the columns of the rows; leave view= away, or pay per question"
            )
        if kind == "auto":
            kind = "cells" if self._weight_given and problem.weight.name != "polynomial" else "moments"
        if kind == "moments" and not self._weight_given:
            problem = replace(problem, weight=polynomial())
        if kind == "rows" and self._weight_given:
            options = {"weight": problem.weight, **options}
        problem.model.check(problem.schema)
        price = question_mu(epsilon, mu, self._data.delta)
        fit = _function("fit", _KIND_MODULES[kind], f"kind {kind!r}", options)
        if key is not None:
            options = {**options, "key": key}
        fitted: Synopsis | SharpRows = fit(problem, self._data, price, **options)
        return fitted if self._training is None else TrainingPromise(fitted, self._training)

    def quote(
        self,
        points: object = 1,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        radius: float | None = None,
    ) -> LocalQuote:
        """What explaining these points (or so many) would cost, and how wide the bands would be: free, and without rows.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "weight": vt.Numeric(0, 200)})
        >>> rows = {"age": np.full(9, 40.0), "weight": np.full(9, 70.0)}
        >>> data = vt.PrivateData(rows, schema, name="nine", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
        >>> local = vt.LocalLinear(data, vt.Model(lambda x: x[:, 0], range=(0, 1)))
        >>> cheap, dear = local.quote(epsilon=0.1), local.quote(epsilon=1.0)
        >>> dear.half_width < cheap.half_width, dear.price.fits
        (True, True)
        """
        if isinstance(points, int | np.integer) and not isinstance(points, bool):
            if not 1 <= points <= 10**5:
                raise InvalidInput(f"points is {points!r}; give the points, or how many they will be (1 to 100000)")
            raw = self._checked(self._problem.row_schema.probe_rows(int(points)))
        else:
            raw = self.read(points)
        return quote_statistics(self._problem, self._data, raw, epsilon=epsilon, mu=mu, radius=radius)

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> LocalQuote:
        """What ``data.quote(LocalLinear(...), epsilon=...)`` shows: the price of one point."""
        return self.quote(epsilon=epsilon, mu=mu)

    def read(self, points: object) -> Floats:
        """Public points as a raw matrix, once points and model have been tried; an error says what is wrong with them."""
        raw = self._problem.row_schema.read_points(points)
        if len(raw) == 0:
            raise InvalidInput("there are no points to explain; give at least one")
        return self._checked(raw)

    def _checked(self, raw: Floats) -> Floats:
        """Points at which the model can be used: tried on public probe rows, and on the points themselves."""
        problem = self._problem
        problem.model.check(problem.row_schema)
        try:
            outputs = problem.model.predict_points(problem.row_schema, raw)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{problem.model.name} fails on the points: {type(error).__name__}: {error}") from error
        if not np.isfinite(outputs).all():
            raise ModelError(
                f"{problem.model.name} returns no finite number at point {int(np.argmin(np.isfinite(outputs)))}"
            )
        return raw


def _function(name: str, module: str, what: str, options: dict[str, object]) -> Callable[..., Any]:
    """The function behind a method or kind. Options that it does not know are refused, before anything is charged."""
    function: Callable[..., Any] = getattr(import_module(module, __package__), name)
    parameters = inspect.signature(function).parameters.values()
    internal = ("problem", "data", "raw_points", "mu", "key", "model_key", "enhanced")
    known = [one.name for one in parameters if one.name not in internal]
    for option in options:
        if option not in known:
            raise InvalidInput(f"{what} has no option {option!r}; it has {', '.join(known) or 'none'}")
    for one in parameters:
        if one.default is one.empty and one.name in known and one.name not in options:
            raise InvalidInput(f"{what} needs the option {one.name}=")
    return function


@dataclass(frozen=True, eq=False)
class TrainingPromise:
    """A fitted explainer whose explanations promise for the model's training data too.

    Attributes
    ----------
    fitted : Synopsis or SharpRows
        The explainer itself, which can be saved; what it says alone is about the explanation data.
    training_guarantee : (float, float)
        (epsilon, delta) of the model.
    """

    fitted: Synopsis | SharpRows
    training_guarantee: tuple[float, float]

    def __call__(self, points: object) -> Attribution:
        """Explain points, free."""
        return with_training(self.fitted(points), self.training_guarantee)


def with_training(explanation: Attribution, training: tuple[float, float] | None) -> Attribution:
    """The explanation with the model's own guarantee added, where there is one."""
    if training is None:
        return explanation
    epsilon, delta = training
    given = explanation.guarantee
    whole = Guarantee(given.epsilon + epsilon, given.delta + delta, 0.0, given.neighbours, "training-data", given.basis)
    note = TRAINING_NOTE.format(epsilon=rounded_up(epsilon), delta=rounded_up(delta))
    return replace(explanation, guarantee=whole, notes=(*explanation.notes, note))


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


def _checked_training(given: tuple[float, float]) -> tuple[float, float]:
    try:
        epsilon, delta = (float(part) for part in given)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"training_guarantee is {given!r}; it must be a pair (epsilon, delta)") from error
    if not (0 <= epsilon < float("inf") and 0 <= delta < 1):
        raise InvalidInput(f"training_guarantee is {given!r}; epsilon must be at least 0 and finite, delta in [0, 1)")
    return epsilon, delta
