"""A batch of points from one release of sufficient statistics: ask, then solve. ``statistics`` says what is asked and why.

Whatever follows the release is post-processing: contributions, bands, another ball, fewer columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import Cost
from ...errors import InvalidInput
from ...guarantee import Guarantee
from ...results import Attribution
from ...solve.linear.bands import DRAWS, FEWEST_DRAWS, bands_of
from ...solve.linear.contributions import explanation_of
from .problem import Floats, LocalProblem
from .statistics import LocalStatistics, radius_of, scales_of, statistics_question

if TYPE_CHECKING:
    from ...vault import PrivateData

MOST_NUMBERS = 2 * 10**8

BANDS_NOTE = "Bands are drawn from the noise of the release; sampling error is not in them, nor rows the vault clipped."
SPARSE_NOTE = "Only the {count} strongest columns of the released statistics were used; bands take that choice as given."


def explain(
    problem: LocalProblem,
    data: PrivateData,
    raw_points: Floats,
    mu: float,
    *,
    radius: float | None = None,
    max_features: int | None = None,
    bands: bool = True,
    draws: int = DRAWS,
    joint_bound: float | None = None,
    key: str | None = None,
) -> Attribution:
    """Explain public points, which cost ``mu`` together.

    Parameters
    ----------
    problem : LocalProblem
    data : PrivateData
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.
    mu : float
        The price.
    radius : float, optional
        Of the ball that holds the slope, for x = features/sqrt(columns) and f in [-1, 1]; :func:`radius_of` if not given.
    max_features : int, optional
        Solve again with only so many columns per point, the strongest of the first solution.
    bands : bool
        Whether to compute them; they take ``draws`` times as long as the explanation.
    draws : int
        Resamplings per point.
    joint_bound : float, optional
        A smaller bound on what a row says about all points together: less noise, but rows near many points count less.
    key : str, optional
        A name for a model or weight that is a bare function.
    """
    check_options(problem, len(raw_points), radius, max_features, draws)
    scales = scales_of(problem)
    question = statistics_question(problem, raw_points, scales=scales, joint_bound=joint_bound, key=key)
    release = data.ask(question, mu=mu)
    return explained(
        problem,
        raw_points,
        LocalStatistics.of_release(problem, raw_points, release, data.n_rows_public, scales),
        guarantee=release.guarantee,
        cost=release.cost,
        radius=radius,
        max_features=max_features,
        bands=bands,
        draws=draws,
    )


def explained(
    problem: LocalProblem,
    raw_points: Floats,
    statistics: LocalStatistics,
    *,
    guarantee: Guarantee,
    cost: Cost,
    radius: float | None,
    max_features: int | None,
    bands: bool,
    draws: int,
    shift: float = 0.0,
) -> Attribution:
    """The explanation that released statistics make; ``shift`` was taken off f before they were, and is added again."""
    if radius is None:
        radius = radius_of(problem, statistics.noise, statistics.structure.size)
    fit, columns, notes = statistics.solve(radius), None, [BANDS_NOTE] if bands else []
    if max_features is not None and max_features < problem.schema.n_columns:
        columns = statistics.strongest(fit, max_features)
        fit = statistics.solve(radius, columns)
        notes.append(SPARSE_NOTE.format(count=max_features))
    slopes = statistics.features(fit.slopes)
    explanation = explanation_of(
        problem,
        raw_points,
        np.concatenate((fit.intercepts[:, None] + shift, slopes), axis=1) if problem.intercept else slopes,
        guarantee=guarantee,
        cost=cost,
        method="statistics",
        notes=tuple(notes),
        means=None if fit.means is None else statistics.features(fit.means),
    )
    if not bands:
        return explanation
    found = bands_of(statistics, fit, radius, columns=columns, draws=draws)
    half_widths = found.half_widths * problem.model.width / 2
    return replace(explanation, lower=explanation.values - half_widths, upper=explanation.values + half_widths)


def check_options(problem: LocalProblem, n_points: int, radius: float | None, max_features: int | None, draws: int) -> None:
    """Refuse what cannot be computed, or makes no sense, before anything is charged."""
    numbers = n_points * (problem.n_features + 1) ** 2
    if numbers > MOST_NUMBERS:
        raise InvalidInput(
            f"{n_points} points with {problem.n_features} features need {numbers:.2g} numbers at once; {MOST_NUMBERS:.0e} "
            "is the limit; explain fewer points at a time, use method='descent', or pay once with fit()"
        )
    if radius is not None and (isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 < radius < 1e9):
        raise InvalidInput(f"radius is {radius!r}; it must be positive and finite")
    for name, value, least in (("max_features", max_features, 1), ("draws", draws, FEWEST_DRAWS)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least):
            raise InvalidInput(f"{name} is {value!r}; it must be a whole number of at least {least}")
