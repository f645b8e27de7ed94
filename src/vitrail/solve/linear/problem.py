"""The local problem, and what its solution says about the columns. Public facts and post-processing only.

A point z and a row become x = features / sqrt(number of columns): every numeric lies in [0, 1] and every categorical
is one-hot, so |x| <= 1 and |x - z|^2 <= (numeric + 2 categorical)/columns <= 2. A number with codes has features of length
at most 1 too; it counts as a category there, since two codes, or a code and a number, are up to sqrt 2 apart. The model's
output p in [lo, hi] becomes f = (2p - lo - hi)/(hi - lo) in [-1, 1] ("soft"), or its sign ("hard"). An explanation
minimises sum alpha(|x - z|) (phi.(x - z) [+ phi_0] - f(x))^2.

With a *view* x is made of what the view shows of the row, n features in [0, 1] of length at most B, divided by B: again |x|
<= 1. For two such vectors |x - z|^2 = |x|^2 + |z|^2 - 2 x.z <= 2, as no entry is negative, and <= n/B^2, as no entry of
x - z exceeds 1/B. The model sees the row itself.

*Contributions.* g(x) = phi_0 + phi.(x - z). With the weighted mean m of x - z, a column contributes the sum over its
features of -phi_j m_j: how far the point's own value moves the model from the local average g(z + m), which is the base
value. Without an intercept (the paper's centred form) there is no local average: contributions are phi at the features that
the point has (a number's own, a category's level), and the base value is 0.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..._types import Floats
from ...accounting import Cost, JsonValue
from ...accounting.guarantee import Guarantee
from ...model import Model
from ...results import Attribution
from ...results.band_claim import TWO_SIDED_95, BandClaim, claim_of
from ...results.checks import plain_rows
from ...schema import Numeric, Schema, View
from .weights import NAMED, Weight

Labels = Literal["soft", "hard"]


@dataclass(frozen=True)
class LocalProblem:
    """Schema, model, weight and labels of a local linear explanation.

    ``schema`` has the columns that explain: those of the rows, or those that the view shows.

    Examples
    --------
    >>> from vitrail.solve.linear.weights import stable
    >>> from vitrail.schema import Categorical
    >>> schema = Schema({"age": Numeric(0, 100), "sex": Categorical(["Female", "Male"])})
    >>> problem = LocalProblem(schema, Model(lambda x: x[:, 0], range=(0, 1)), stable())
    >>> problem.encode(schema.read_points({"age": 50, "sex": "Male"})).round(3)
    array([[0.354, 0.   , 0.707]])
    """

    schema: Schema
    model: Model
    weight: Weight
    labels: Labels = "soft"
    intercept: bool = True
    view: View | None = None

    @cached_property
    def row_schema(self) -> Schema:
        """The columns of rows and points, which the model is given."""
        return self.schema if self.view is None else self.view.schema()

    @property
    def n_features(self) -> int:
        """Length of x."""
        return self.schema.n_features

    @property
    def size(self) -> int:
        """Length of phi: one number per feature, after the intercept where there is one."""
        return self.n_features + int(self.intercept)

    @cached_property
    def scale(self) -> float:
        """What features are divided by, so that |x| <= 1."""
        return math.sqrt(self.schema.n_columns) if self.view is None else self.view.largest_norm

    @cached_property
    def largest_distance(self) -> float:
        """The largest |x - z| the schema allows."""
        if self.view is not None:
            return min(math.sqrt(2), math.sqrt(self.n_features) / self.scale)
        return farthest(self.schema)

    def x(self, features: Floats) -> Floats:
        """x of encoded rows; runs inside the vault."""
        return (features if self.view is None else self.view.look(features)) / self.scale

    def encode(self, raw: Floats) -> Floats:
        """x of complete raw rows or points."""
        return self.x(self.row_schema.features(raw)[0])

    def label(self, outputs: Floats) -> Floats:
        """f in [-1, 1] of model outputs."""
        f = (2 * outputs - self.model.lo - self.model.hi) / self.model.width
        return f if self.labels == "soft" else np.where(f >= 0, 1.0, -1.0) + 0.0 * f

    def at(self, raw: Floats) -> Floats:
        """f of public points."""
        return self.label(self.model.predict_points(self.row_schema, raw))

    def shown_values(self, raw: Floats) -> Floats:
        """Complete raw points as raw rows of ``schema``: what an explanation says that a point has."""
        if self.view is None:
            return raw
        return self.schema.unfeature(self.view.look(self.row_schema.features(raw)[0]))

    def facts(self) -> dict[str, JsonValue]:
        """Schema, weight, labels and form, as far as they make two problems the same.

        A weight enters by its values on public distances too, because anybody can use a name; to a billionth, because last
        bits may differ between machines.
        """
        values = np.rint(self.weight(np.linspace(0.0, self.largest_distance, 1001)) * 1e9) + 0.0
        seen = self.row_schema.digest()
        if self.view is not None:
            seen = hashlib.sha256(f"{seen} seen through {self.view.digest()}".encode()).hexdigest()
        return {
            "schema": seen,
            "weight": self.weight.to_json(),
            "weight_values": hashlib.sha256(np.nan_to_num(values).tobytes()).hexdigest(),
            "labels": self.labels,
            "intercept": self.intercept,
        }

    def claim(self, kind: str) -> BandClaim:
        """What bands of a kind claim: each was measured with the stable weight, on the model's output, without a view."""
        usual = self.labels == "soft" and self.view is None and self.weight.name == "stable"
        return claim_of(kind if usual else "local linear")

    def identity(self, key: str | None) -> dict[str, JsonValue] | None:
        """The facts and the model's name; None where the model, or a weight that is a function, has no name."""
        model = self.model.identity(self.row_schema, key)
        named = model is not None and (key is not None or self.weight.name in NAMED)
        return {**self.facts(), "model": model} if named else None


@dataclass(frozen=True, eq=False)
class LocalModels:
    """Linear models around points, in units of f.

    Attributes
    ----------
    phi : array (points, size)
        The intercept first, where the problem has one; then ``means`` are needed.
    means : array (points, n_features), optional
        Weighted means of x - z.
    phi_std, means_std : array (points,), optional
        Standard deviation of every entry of phi and of the means; bands are drawn where ``phi_std`` is given.
    misses : array (points,), optional
        Weighted root mean squared error of each model on rows near its point.
    """

    phi: Floats
    means: Floats | None = None
    phi_std: Floats | None = None
    means_std: Floats | None = None
    misses: Floats | None = None


def explanation_of(
    problem: LocalProblem,
    raw_points: Floats,
    models: LocalModels,
    *,
    guarantee: Guarantee,
    cost: Cost,
    method: str,
    notes: tuple[str, ...],
    claim: BandClaim = BandClaim.NOT_CALIBRATED,
) -> Attribution:
    """The contributions of columns, in units of the model's output; ``claim`` is that of their bands."""
    schema, model, phi = problem.schema, problem.model, models.phi
    middle, half = (model.hi + model.lo) / 2, model.width / 2
    slope = phi[:, 1:] if problem.intercept else phi
    no_noise = np.zeros(len(phi))
    slope_variance = np.square(no_noise if models.phi_std is None else models.phi_std)[:, None]
    if problem.intercept:
        assert models.means is not None
        means_variance = np.square(no_noise if models.means_std is None else models.means_std)[:, None]
        by_feature = -slope * models.means
        variances = slope_variance * models.means**2 + slope**2 * means_variance
        intercepts = middle + half * phi[:, 0]
    else:
        active = active_features(schema, problem.shown_values(raw_points))
        by_feature, variances = slope * active, slope_variance * active
        intercepts = np.full(len(phi), middle)
    values = half * by_column(schema, by_feature)
    spread = TWO_SIDED_95 * half * np.sqrt(by_column(schema, variances))
    banded = models.phi_std is not None
    return Attribution(
        values=values,
        base_values=intercepts - values.sum(axis=1) if problem.intercept else np.zeros(len(phi)),
        columns=schema.names,
        points=plain_rows(schema.frame(problem.shown_values(raw_points))),
        outputs=model.predict_points(problem.row_schema, raw_points),
        guarantee=guarantee,
        cost=cost,
        method=method,
        band_claim=claim,
        lower=values - spread if banded else None,
        upper=values + spread if banded else None,
        coefficients=half * slope,
        intercepts=intercepts,
        features=schema.feature_names,
        fidelity=None if models.misses is None else half * models.misses,
        explains_output=problem.intercept and problem.labels == "soft",
        notes=notes if problem.view is None else (*notes, problem.view.note),
    )


def farthest(schema: Schema) -> float:
    """The largest |x - z| that a schema allows; all but numbers without codes may be sqrt 2 apart."""
    numeric = sum(isinstance(column, Numeric) and not column.codes for column in schema.values())
    return math.sqrt((numeric + 2 * (schema.n_columns - numeric)) / schema.n_columns)


def by_column(schema: Schema, by_feature: Floats) -> Floats:
    """Sums over the features of each column, (points, columns)."""
    return np.stack([by_feature[:, span].sum(axis=1) for span in schema.feature_slices.values()], axis=1)


def active_features(schema: Schema, raw: Floats) -> Floats:
    """1 for numbers and for the level or code that a point has, 0 for other levels and codes, and for a number at a code."""
    active = schema.features(raw)[0] > 0
    for name, span in schema.feature_slices.items():
        if isinstance(schema[name], Numeric):
            active[:, span.start] = ~active[:, span.start + 1 : span.stop].any(axis=1)
    return active.astype(np.float64)
