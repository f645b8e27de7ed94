"""Functions of scikit-learn and shap as explainers for ``AnyCurve`` and ``AnyRanking``.

Each returns a function of (model, X) or (model, X, y) that imports its library where it runs. A model may be a fitted
estimator that takes data frames, or a ``vitrail.Model``.

Examples
--------
>>> import numpy as np, pandas as pd, vitrail as vt
>>> rank = vt.adapters.from_shap(lambda model, X: model * X.to_numpy())  # any function that returns SHAP values
>>> rank(2.0, pd.DataFrame({"age": [0.1, -0.3], "dose": [0.0, 0.1]}))
{'age': 0.4, 'dose': 0.1}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..errors import InvalidInput
from .group_task import FrameModel

if TYPE_CHECKING:
    import pandas as pd


def from_partial_dependence(
    feature: str, **options: object
) -> Callable[[object, pd.DataFrame], tuple[NDArray[np.generic], Floats]]:
    """``sklearn.inspection.partial_dependence`` of one column, for ``AnyCurve``.

    Parameters
    ----------
    feature : str
        The column.
    **options
        As for ``partial_dependence``: ``grid_resolution``, ``percentiles``, ``response_method``. Without ``custom_values``,
        such as ``{"age": [20, 40, 60]}``, the grid is that of the group's own rows, and interpolated on the public one.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> X = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "dose": [0.0, 1.0, 0.0, 1.0]})
    >>> line = LinearRegression().fit(X, 2 * X["age"] + X["dose"])
    >>> x, y = from_partial_dependence("age", custom_values={"age": [1.0, 3.0]})(line, X)
    >>> y.round(6).tolist()
    [2.5, 6.5]
    """

    def explain(model: object, X: pd.DataFrame) -> tuple[NDArray[np.generic], Floats]:
        from sklearn.inspection import partial_dependence

        # Whole numbers on a grid of fractions would be cut off by newer versions of scikit-learn.
        X = X.astype({name: np.float64 for name in X.columns if X[name].dtype.kind in "iu"})
        categorical = [name for name in X.columns if X[name].dtype.kind not in "biuf"]
        given = {"kind": "average", "categorical_features": categorical or None, **options}
        average = partial_dependence(_estimator(model), X, [feature], **given)
        return average["grid_values"][0], np.asarray(average["average"], dtype=np.float64)[0]

    return explain


def from_permutation_importance(**options: object) -> Callable[[object, pd.DataFrame, pd.Series], Mapping[str, float]]:
    """``sklearn.inspection.permutation_importance`` of all columns, for ``AnyRanking``.

    Parameters
    ----------
    **options
        As for ``permutation_importance``, such as ``n_repeats=3`` or ``scoring="neg_log_loss"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> X = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "dose": [0.0, 1.0, 0.0, 1.0]})
    >>> y = 2 * X["age"]
    >>> importances = from_permutation_importance(n_repeats=20)(LinearRegression().fit(X, y), X, y)
    >>> importances["age"] > importances["dose"]
    True
    """

    def rank(model: object, X: pd.DataFrame, y: pd.Series) -> Mapping[str, float]:
        from sklearn.inspection import permutation_importance

        importances = permutation_importance(_estimator(model), X, y, **options)
        return dict(zip(X.columns, importances.importances_mean.tolist(), strict=True))

    return rank


def from_shap(values: Callable[[object, pd.DataFrame], object]) -> Callable[[object, pd.DataFrame], Mapping[str, float]]:
    """Mean absolute SHAP values of all columns, for ``AnyRanking``.

    Parameters
    ----------
    values : callable
        ``values(model, X)`` returns a ``shap.Explanation``, or an array of shape (rows, columns) or (rows, columns,
        outputs); for example ``lambda model, X: shap.TreeExplainer(model)(X)``.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [1.0, 2.0], "dose": [0.0, 1.0]})
    >>> from_shap(lambda model, X: np.array([[0.5, -0.1], [-0.7, 0.1]]))(None, X)
    {'age': 0.6, 'dose': 0.1}
    """

    def rank(model: object, X: pd.DataFrame) -> Mapping[str, float]:
        explained = values(model, X)
        sizes = np.abs(np.asarray(getattr(explained, "values", explained), dtype=np.float64))
        if sizes.ndim not in (2, 3) or sizes.shape[1] != X.shape[1]:
            raise InvalidInput(f"SHAP values have shape {sizes.shape}; ({len(X)}, {X.shape[1]}) is expected")
        axes = (0,) if sizes.ndim == 2 else (0, 2)
        return dict(zip(X.columns, sizes.mean(axis=axes).tolist(), strict=True))

    return rank


def _estimator(model: object) -> object:
    """The model as scikit-learn wants it: a model of ours becomes a fitted regressor of its output."""
    if not isinstance(model, FrameModel):
        return model
    from sklearn.base import BaseEstimator, RegressorMixin

    ours = model

    class Predictor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        """The outputs of a model, on frames."""

        def fit(self, X: object, y: object = None) -> Predictor:
            """Nothing to learn."""
            return self

        def predict(self, X: object) -> Floats:
            """The model's outputs."""
            return ours.predict(X)

        def __sklearn_is_fitted__(self) -> bool:
            return True

    return Predictor()
