"""A classifier that explains itself: several linear maps per class, trained under differential privacy.

The model is that of Harder, Bauer & Park (2020); its formula, gradient and bound stand in ``training/map_gradients.py``, the
price of a run in ``vault/training.py``. This file is the face: a scikit-learn estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import whole
from .._types import Floats
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput, SchemaError
from ..progress import progress
from ..results import Attribution
from ..schema import Categorical, Schema
from ..vault import FeatureCurves, MapScores, MapTraining, PrivateData, check_device, on_device, train_maps
from .explaining import (
    ActiveMap,
    MapBank,
    MapPlots,
    TrainingGuarantee,
    active_maps,
    column_shapes,
    local_explanation,
    weighed,
)
from .settings import (
    PictureFilters,
    check_settings,
    checked_bounds,
    classes_of,
    plan_training,
    scaled_by,
    scaled_to_length,
    schema_features,
)
from .tables import curves_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class LocallyLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Locally linear maps: a private classifier whose every answer is a weighted average of a few linear maps.

    Class k has ``n_maps`` linear maps of the input; its score is their average, weighted by a softmax of the maps
    themselves. So the model is linear around any input, and what it does is its maps. With one map it is logistic
    regression.

    Parameters
    ----------
    epsilon, delta : float
        The promise for the training rows (add or remove one). ``math.inf``: no noise, no clip, no promise.
    n_maps : int, optional
        Linear maps per class. Left open, tables with few rows for their epsilon have one, others 3, all else 5.
    projection : int, optional
        Train each map on a public random projection to so many numbers, one projection per map, shared by the classes.
    filters : PictureFilters, optional
        For pictures: train maps on smooth patterns, and on pictures moved by a pixel.
    curves : int, optional
        For tables: the smooth curves that each number becomes, so that a map is a sum of smooth functions of the columns; 0
        for the number as it is. Left open, 12 where a schema declares at most a hundred columns.
    beta : float
        Inverse temperature: large, one map decides; 0, all count alike.
    clip : float, optional
        The longest gradient of one row. Left open, 2 for tables, 0.3 for all else.
    steps, epochs : int or float, optional
        How long: noisy steps (150 or 200 for tables, 400 for all else), or passes over the declared rows.
    batch_size : int, optional
        Rows expected in a step, each drawn on its own. Left open, all rows of a table up to 100 000, or a tenth of all
        else, at least 256.
    learning_rate, momentum, schedule : float, float, {"cosine", "steps"}
        Of Adam.
    average : float
        Share of the run, at its end, whose weights are averaged.
    start : float
        Half the width of the uniform first weights.
    decay : float
        L2 penalty on the maps.
    row_length : float, optional
        Scale each row's features to this length.
    bounds : (low, high), optional
        Public bounds of the columns, numbers or one per column, that scale them to [0, 1]. A value outside is an error.
    schema : Schema, optional
        For frames: scales numbers, and makes categories 0/1 features.
    classes : sequence, optional
        The classes. Read off y if not given, and then named as public in ``guarantee_``.
    n_rows_public : int, optional
        The row count everybody may know; that of X if not given, and then named as public.
    device : {"auto", "cpu", "torch", "cuda"}
        Where to train: NumPy on the CPU, or torch.
    random_state : int, optional
        Without privacy only: the same seed gives the same bits.
    progress : bool
        Show a bar where somebody can see it.

    Attributes
    ----------
    maps_, biases_ : arrays (n_maps, n_classes, n_features) and (n_maps, n_classes)
        The maps, as they act on features.
    classes_ : array
        The classes.
    guarantee_ : TrainingGuarantee
        What is promised, and what was taken as public.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (2000, 3)); y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> clf = vt.LocallyLinearClassifier(epsilon=2.0, n_maps=2, bounds=(0, 1), steps=60).fit(X, y)
    >>> bool(clf.score(X, y) > 0.8), round(clf.guarantee_.epsilon, 2)
    (True, 2.0)
    >>> clf.explain_local(X[0]).columns
    ('x0', 'x1', 'x2')
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        n_maps: int | None = None,
        projection: int | None = None,
        filters: PictureFilters | None = None,
        curves: int | None = None,
        beta: float = 1.0,
        clip: float | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        schedule: str = "cosine",
        average: float = 0.25,
        start: float = 0.03,
        decay: float = 0.0,
        row_length: float | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        schema: Schema | None = None,
        classes: Sequence[object] | None = None,
        n_rows_public: int | None = None,
        device: str = "auto",
        random_state: int | None = None,
        progress: bool = True,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_maps = n_maps
        self.projection = projection
        self.filters = filters
        self.curves = curves
        self.beta = beta
        self.clip = clip
        self.steps = steps
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.schedule = schedule
        self.average = average
        self.start = start
        self.decay = decay
        self.row_length = row_length
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.n_rows_public = n_rows_public
        self.device = device
        self.random_state = random_state
        self.progress = progress

    # --- training ------------------------------------------------------------------------------------------------------

    def fit(self, X: object, y: object = None) -> LocallyLinearClassifier:
        """Train on arrays or a frame, ``fit(X, y)``, or on ``vt.PrivateData``, ``fit(data)``, which is charged.

        ``fit(data)`` pays (epsilon, delta) from the training purse of the data's budget (``vt.Budget(..., training=(1.0,
        1e-6))``) before a row is read, or raises ``BudgetExceeded``. Classes, bounds and row count are the declared ones.
        """
        check_settings(self)
        check_device(self.device)
        if isinstance(X, PrivateData):
            return self._fit_private_data(X, y)
        features, labels = self._training_arrays(X, y)
        self.classes_ = classes_of(self.classes, labels)
        n_rows = len(features) if self.n_rows_public is None else self.n_rows_public
        n_rows = whole("n_rows_public", n_rows, most=10**12)
        training = plan_training(self, features.shape[1], len(self.classes_), n_rows, schema=self.schema_)
        numbers = np.searchsorted(self.classes_, labels).astype(np.int64)
        rows = on_device(np.ascontiguousarray(features, dtype=np.float32), numbers, self.device)
        generator = None if self.random_state is None else np.random.default_rng(self.random_state)
        with progress("training", training.steps) if self.progress else nullcontext() as advance:
            trained = train_maps(training, *rows, advance=advance, generator=generator)
        promise = Guarantee(training.epsilon, training.delta, 0.0, "add-remove", "training-data")
        self._keep(training, trained.maps, trained.biases, promise, self._taken_as_public(len(features)))
        return self

    def _training_arrays(self, X: object, y: object) -> tuple[Floats, NDArray[np.generic]]:
        if self.schema is not None:
            schema: object = self.schema
            if not isinstance(schema, Schema):
                kind = type(schema).__name__
                raise SchemaError(f"schema is {kind}; declare one: vt.Schema({{'age': vt.Numeric(0, 120), ...}})")
            if y is None:
                raise InvalidInput("y is missing; give the labels: fit(frame, y)")
            labels = np.asarray(y)
            features = schema_features(schema, X)[1]
            if labels.shape != (len(features),):
                raise InvalidInput(f"y has shape {labels.shape} and X {len(features)} rows; there must be one label per row")
            self.n_features_in_ = schema.n_columns
            self.feature_names_in_ = np.array(schema.names, dtype=object)
            self.schema_: Schema | None = schema
            self.curves_: FeatureCurves | None = curves_of(self, schema)
            return self._curved(features), labels
        checked, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.schema_, self.curves_ = None, None
        if self.curves:
            raise InvalidInput("curves are of declared columns; give a frame and its schema, or leave curves out")
        self._bounds = checked_bounds(self.bounds, checked.shape[1])
        return scaled_by(self._bounds, checked), np.asarray(labels)

    def _fit_private_data(self, data: PrivateData, y: object) -> LocallyLinearClassifier:
        if y is not None:
            raise InvalidInput("y is given together with a PrivateData, which has its labels already: fit(data)")
        classes = self._classes_of_private_data(data)
        schema = data.feature_schema
        training = plan_training(self, schema.n_features, len(classes), data.n_rows_public, data.neighbours, schema=schema)
        release = data.train(training, device=self.device)
        order = np.argsort(classes)  # scikit-learn wants classes sorted
        self.classes_ = classes[order]
        self.schema_, self.n_features_in_ = schema, schema.n_columns
        self.curves_ = training.curves
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        facts = ("the schema", f"the row count {data.n_rows_public}, as declared")
        self._keep(training, release.parts["maps"][:, order], release.parts["biases"][:, order], release.guarantee, facts)
        return self

    def _classes_of_private_data(self, data: PrivateData) -> NDArray[np.generic]:
        """The declared classes, in the schema's order; an error for data that cannot be learnt. Reads no row."""
        for name in ("bounds", "schema", "classes", "n_rows_public"):
            if getattr(self, name) is not None:
                raise InvalidInput(f"{name} is given together with a PrivateData, which declares it already; leave it out")
        target = None if data.target is None else data.schema[data.target]
        if not isinstance(target, Categorical):
            raise SchemaError(
                "the data has no categorical target to learn; declare one: vt.PrivateData(..., target='income')"
            )
        classes = np.array(target.levels)
        if classes.ndim != 1 or len({isinstance(level, str) for level in target.levels}) > 1:
            raise SchemaError(
                "the levels of the target are of mixed kinds; declare them as one kind, all texts or all numbers"
            )
        return classes

    def _keep(
        self, training: MapTraining, maps: Floats, biases: Floats, promise: Guarantee, taken_as_public: tuple[str, ...]
    ) -> None:
        self.maps_, self.biases_ = maps, biases
        self.row_length_, self.beta_ = training.row_length, training.beta
        self.guarantee_ = TrainingGuarantee(
            promise, taken_as_public, training.noise_multiplier, training.sampling_rate, training.steps
        )

    def _taken_as_public(self, n_rows: int) -> tuple[str, ...]:
        facts = ["the classes, read off y" if self.classes is None else "the classes, as declared"]
        declared = self.n_rows_public
        facts.append(f"the row count {n_rows}, read off X" if declared is None else f"the row count {declared}, as declared")
        facts.append("the schema" if self.schema is not None else "the number and names of the columns")
        if self.bounds is not None or self.schema is not None:
            facts.append("that every value lies within what was declared (checked on X before training)")
        return tuple(facts)

    # --- predicting ----------------------------------------------------------------------------------------------------

    def _features(self, X: object) -> tuple[Floats, Mapping[str, NDArray[np.generic]]]:
        """Features of rows to be predicted, and the rows in their own units by column."""
        check_is_fitted(self)
        if self.schema_ is not None:
            raw, features = schema_features(self.schema_, X)
            return scaled_to_length(self._curved(features), self.row_length_), self.schema_.frame(raw)
        checked = validate_data(self, X, dtype=np.float64, reset=False)
        shown = dict(zip(self._feature_names(), checked.T, strict=True))
        return scaled_to_length(scaled_by(self._bounds, checked), self.row_length_), shown

    def _curved(self, features: Floats) -> Floats:
        return features if self.curves_ is None else self.curves_.of(features)

    def _scores(self, X: object) -> MapScores:
        return weighed(self, self._features(X)[0])

    def decision_function(self, X: object) -> Floats:
        """Scores f of the classes (rows, classes); for two classes their difference (rows,)."""
        scores = self._scores(X).scores
        return np.asarray(scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict_proba(self, X: object) -> Floats:
        """Probabilities of the classes."""
        return np.asarray(softmax(self._scores(X).scores, axis=1))

    def predict(self, X: object) -> NDArray[np.generic]:
        """The likeliest class."""
        scores = self._scores(X).scores
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    # --- explaining ----------------------------------------------------------------------------------------------------

    def _one_or_more(self, x: object) -> object:
        check_is_fitted(self)
        if self.schema_ is None and not hasattr(x, "columns") and np.ndim(x) == 1:  # type: ignore[arg-type]
            return np.asarray(x)[None, :]
        return x

    def _class_number(self, target: object) -> int | None:
        if target is None:
            return None
        numbers = np.flatnonzero(self.classes_ == target)
        if not len(numbers):
            raise InvalidInput(f"target is {target!r}; the classes are {self.classes_.tolist()!r}")
        return int(numbers[0])

    def explain_local(self, x: object, *, target: object = None) -> Attribution:
        """Why these inputs get their scores: the weighted average of the maps that are active, times the input.

        Contributions and base value add up to the score exactly. It is post-processing of the trained model: no price, no
        noise.

        Parameters
        ----------
        x : row, rows or frame
            Public points.
        target : class, optional
            Whose score to explain; the predicted class of each point by default.
        """
        features, shown = self._features(self._one_or_more(x))
        return local_explanation(self, features, shown, self._class_number(target))

    def active_maps(self, x: object, *, target: object = None, top: int = 3) -> list[list[ActiveMap]]:
        """The maps that decide, with their weights: for each point its ``top`` maps, heaviest first."""
        features, _ = self._features(self._one_or_more(x))
        return active_maps(self, features, self._class_number(target), top)

    def explain_global(self, X_public: object = None) -> MapBank:
        """The bank of maps per class; with public rows also how much each map is used by them."""
        check_is_fitted(self)
        usage = None if X_public is None else self._scores(X_public).shares.mean(axis=0)
        classes = tuple(self.classes_.tolist())
        return MapBank(self.maps_, self.biases_, classes, self._feature_names(), self.guarantee_, usage)

    def shapes(self, target: object, map_number: int = 0) -> dict[str, tuple[NDArray[np.generic], Floats]]:
        """What a map adds to a class for the values of each column: (values, contributions) by name, for models of a schema.

        A model with one map is additive: these shapes and the bias are all of it. Of several maps, this is one.

        Examples
        --------
        >>> import numpy as np, vitrail as vt
        >>> x = np.random.default_rng(0).uniform(0, 100, 1000)
        >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
        >>> clf = vt.LocallyLinearClassifier(8.0, n_maps=1, schema=schema).fit({"age": x}, np.abs(x - 50) < 25)
        >>> age, adds = clf.shapes(True)["age"]
        >>> bool(25 < age[adds.argmax()] < 75)
        True
        """
        check_is_fitted(self)
        if self.schema_ is None:
            raise InvalidInput("shapes are of declared columns, and this model was trained on an array; give it a schema")
        number = self._class_number(target)
        map_number = whole("map_number", map_number, least=0, most=len(self.maps_) - 1)
        return column_shapes(self, self.schema_, 0 if number is None else number, map_number)

    @property
    def plot(self) -> MapPlots:
        """Pictures: ``clf.plot.filters(shape=(28, 28))``, ``clf.plot.attribution(x)``."""
        check_is_fitted(self)
        return MapPlots(self)

    def _feature_names(self) -> tuple[str, ...]:
        if self.schema_ is not None:
            names = self.schema_.feature_names
            return names if self.curves_ is None else self.curves_.names(names)
        if hasattr(self, "feature_names_in_"):
            return tuple(str(name) for name in self.feature_names_in_)
        return tuple(f"x{column}" for column in range(self.n_features_in_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags
