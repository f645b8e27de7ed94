"""lime on the same rows and model: its local model's fidelity on real neighbours. Not private; it perturbs marginals.

lime fits a ridge regression on 0/1 features "same bin (or level) as the point"; that model, intercept included, is
evaluated on the real rows next to the point in the same 0/1 features. All columns are kept (``num_features``), which can
only help it here; everything else is its default.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lime.lime_tabular import LimeTabularExplainer

import vitrail as vt


def explainer(schema: vt.Schema, raw: np.ndarray, seed: int = 0) -> LimeTabularExplainer:
    categorical = [place for place, column in enumerate(schema.values()) if isinstance(column, vt.Categorical)]
    return LimeTabularExplainer(
        raw, feature_names=list(schema.names), categorical_features=categorical, mode="classification", random_state=seed
    )


def local_errors(
    lime: LimeTabularExplainer,
    predict_proba: Callable[[np.ndarray], np.ndarray],
    point: np.ndarray,
    near: np.ndarray,
    f_near: np.ndarray,
) -> float:
    """Mean squared error of lime's model against soft f in [-1, 1] on raw rows ``near``."""
    explained = lime.explain_instance(point, predict_proba, num_features=len(point))
    coefficients = np.zeros(len(point))
    for place, value in explained.local_exp[1]:
        coefficients[place] = value
    same = lime.discretizer.discretize(near) == lime.discretizer.discretize(point)
    probability = explained.intercept[1] + same @ coefficients
    return float(((2 * probability - 1 - f_near) ** 2).mean())
