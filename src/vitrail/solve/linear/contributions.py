"""From the linear model around a point to what each column contributed. Post-processing only.

g(x) = phi_0 + phi.(x - z). With the weighted mean m of x - z, the column's contribution is the sum over its features of
-phi_j m_j: how much the point's own value moves the model away from the local average g(z + m), which is the base value.
Without an intercept (the paper's centred form) there is nothing to compare with: contributions are phi at the features the
point has (a number's own, a category's level), and the base value is 0.
"""

from __future__ import annotations

import numpy as np

from ...accounting import Cost
from ...explain.linear.problem import Floats, LocalProblem
from ...guarantee import Guarantee
from ...results import Attribution
from ...results.band_claim import TWO_SIDED_95, claim_of
from ...results.checks import plain_rows
from ...schema import Numeric


def explanation_of(
    problem: LocalProblem,
    raw_points: Floats,
    phi: Floats,
    *,
    guarantee: Guarantee,
    cost: Cost,
    method: str,
    notes: tuple[str, ...],
    phi_std: Floats | None = None,
    means: Floats | None = None,
    means_std: Floats | None = None,
) -> Attribution:
    """An explanation in units of the model's output, from phi in units of f.

    Parameters
    ----------
    phi : array (points, size)
        The intercept first, where the problem has one; then ``means`` are needed.
    phi_std, means_std : array (points,), optional
        Standard deviation of every entry of phi and of the means; bands are drawn where ``phi_std`` is given.
    means : array (points, n_features), optional
        Weighted means of x - z.
    """
    schema, model = problem.schema, problem.model
    middle, half = (model.hi + model.lo) / 2, model.width / 2
    slope = phi[:, 1:] if problem.intercept else phi
    no_noise = np.zeros(len(phi))
    slope_variance = np.broadcast_to(np.square(no_noise if phi_std is None else phi_std)[:, None], slope.shape)
    if problem.intercept:
        assert means is not None
        means_variance = np.square(no_noise if means_std is None else means_std)[:, None]
        parts = -slope * means
        variances = slope_variance * means**2 + slope**2 * means_variance
        intercepts = middle + half * phi[:, 0]
    else:
        active = _active_features(problem, raw_points)
        parts, variances = slope * active, slope_variance * active
        intercepts = np.full(len(phi), middle)
    slices = list(schema.feature_slices.values())
    values = half * np.stack([parts[:, one].sum(axis=1) for one in slices], axis=1)
    spread = TWO_SIDED_95 * half * np.sqrt(np.stack([variances[:, one].sum(axis=1) for one in slices], axis=1))
    return Attribution(
        values=values,
        base_values=intercepts - values.sum(axis=1) if problem.intercept else np.zeros(len(phi)),
        columns=schema.names,
        points=plain_rows(schema.frame(problem.shown_values(raw_points))),
        outputs=model.predict_points(problem.row_schema, raw_points),
        guarantee=guarantee,
        cost=cost,
        method=method,
        band_claim=claim_of("local linear"),
        lower=None if phi_std is None else values - spread,
        upper=None if phi_std is None else values + spread,
        coefficients=half * slope,
        intercepts=intercepts,
        features=schema.feature_names,
        notes=notes if problem.view is None else (*notes, problem.view.note),
    )


def _active_features(problem: LocalProblem, raw_points: Floats) -> Floats:
    """1 for numbers and for the level that a point has, 0 for other levels."""
    active = problem.schema.features(problem.shown_values(raw_points))[0] > 0
    for name, place in problem.schema.feature_slices.items():
        if isinstance(problem.schema[name], Numeric):
            active[:, place] = True
    return active.astype(np.float64)
