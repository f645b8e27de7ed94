"""Sufficient statistics: one release from which the local linear models of a batch of points are solved.

*What a row contributes.* For each point z, with d = x - z and alpha its weight, the matrix alpha u u^T and the vector
alpha y u, where u = d and y = eta f, or u = (kappa, d) with an intercept (kappa and eta: ``solve.linear.statistics``). In
the isometric embedding its norm is alpha |u| sqrt(|u|^2 + y^2) <= sup_d alpha(d) sqrt((kappa^2 + d^2)(kappa^2 + d^2 +
eta^2)), d up to the schema's largest distance; the vault lowers the weight of a row that exceeds it. Q points: sqrt(Q) times
that, or ``joint_bound``. *Cost*: (bound/sigma)^2, once for the batch. *Neighbours*: as the dataset declares. No iteration,
hence no sqrt(T). Test: tests/explain/linear/test_statistics.py.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput
from ...releases import Release
from ...results import Attribution
from ...solve.linear.problem import LocalModels, LocalProblem, explanation_of
from ...solve.linear.statistics import LocalStatistics, Scales, radius_of, scales_of
from ...vault import Block, GramSum
from ..recipe import Ask, Recipe, Terms
from .options import Statistics

MOST_NUMBERS = 2 * 10**8
BANDS_NOTE = "Bands are drawn from the noise of the release; sampling error is not in them, nor rows the vault clipped."
SPARSE_NOTE = "Only the {count} strongest columns of the released statistics were used; bands take that choice as given."


def statistics_question(
    problem: LocalProblem, raw_points: Floats, *, scales: Scales | None = None, joint_bound: float | None = None
) -> GramSum:
    """The one question behind a batch of explanations.

    Parameters
    ----------
    problem : LocalProblem
    raw_points : array (points, n_columns)
        As ``schema.read_points`` returns them.
    scales : Scales, optional
        Those of ``scales_of`` if not given.
    joint_bound : float, optional
        A smaller bound on what a row says about all points together; rows near many of them then count less.
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
        joint_bound=joint_bound,
    )


def statistics_recipe(
    problem: LocalProblem, options: Statistics, raw: Floats, terms: Terms, most_steps: int | None = None
) -> Recipe[Attribution]:
    """One question, for the whole price; it has no steps."""
    scales = scales_of(problem)
    release = yield Ask(statistics_question(problem, raw, scales=scales, joint_bound=options.joint_bound), 1.0)
    statistics = LocalStatistics.of_release(problem, raw, release, terms.n_rows_public, scales)
    return explained(problem, raw, statistics, release, options)


def explained(
    problem: LocalProblem,
    raw: Floats,
    statistics: LocalStatistics,
    release: Release,
    options: Statistics,
    *,
    shift: float = 0.0,
) -> Attribution:
    """The explanation that released statistics make; ``shift`` was taken off f before they were, and is added again."""
    radius = options.radius or radius_of(problem, statistics.noise, statistics.structure.coordinates.size)
    fit, columns, notes = statistics.solve(radius), None, [BANDS_NOTE] if options.bands else []
    if options.max_features is not None and options.max_features < problem.schema.n_columns:
        columns = statistics.strongest(fit, options.max_features)
        fit = statistics.solve(radius, columns)
        notes.append(SPARSE_NOTE.format(count=options.max_features))
    slopes = statistics.features(fit.slopes)
    phi = np.concatenate((fit.intercepts[:, None] + shift, slopes), axis=1) if problem.intercept else slopes
    explanation = explanation_of(
        problem,
        raw,
        LocalModels(phi, None if fit.means is None else statistics.features(fit.means)),
        guarantee=release.guarantee,
        cost=release.cost,
        method="statistics",
        notes=tuple(notes),
    )
    if not options.bands:
        return explanation
    half = statistics.half_widths(fit, radius, columns=columns, draws=options.draws) * problem.model.width / 2
    return replace(explanation, lower=explanation.values - half, upper=explanation.values + half)


def check_size(problem: LocalProblem, n_points: int) -> None:
    """Refuse more statistics than a machine holds."""
    numbers = n_points * (problem.n_features + 1) ** 2
    if numbers > MOST_NUMBERS:
        raise InvalidInput(
            f"{n_points} points with {problem.n_features} features need {numbers:.2g} numbers at once; {MOST_NUMBERS:.0e} "
            "is the limit; explain fewer points at a time, use method='descent', or pay once with fit()"
        )
