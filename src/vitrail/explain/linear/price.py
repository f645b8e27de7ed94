"""What a batch of explanations would cost and how wide its bands would be, before anything is paid or read.

The price is exact. The width is an estimate: rows drawn uniformly from the schema stand in for the private ones, the public
model labels them, and the bands are computed as they would be from a release, with the noise that the price buys. Real rows
crowd together where uniform ones spread out, so expect the right order of magnitude and the right dependence on epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import JsonValue
from ...results.band_claim import claim_of
from ...solve.linear.bands import expected_width
from .problem import Floats, LocalProblem
from .statistics import LocalStatistics, Scales, radius_of, scales_of, statistics_question

if TYPE_CHECKING:
    from ...vault import PrivateData, Quote

STAND_IN_ROWS = 2048
STAND_IN_POINTS = 6
"""Bands are computed for at most this many points; the noise is that of all of them."""


@dataclass(frozen=True)
class LocalQuote:
    """The price of local explanations, and what it buys.

    Attributes
    ----------
    price : Quote
        Cost, guarantee, noise, and whether it fits the account.
    half_width : float
        Expected (median) half-width of the bands, in units of the model's output. An estimate from public rows.
    n_points : int
        How many points are explained together.
    """

    price: Quote
    half_width: float
    n_points: int

    def __str__(self) -> str:
        points = "1 point" if self.n_points == 1 else f"{self.n_points} points together"
        mark = claim_of("local linear").mark
        return (
            f"{points}: {self.price} Bands of about +-{self.half_width:.2g} ({mark}; an estimate from public stand-in rows)."
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        return {
            "price": self.price.to_json(),
            "half_width": self.half_width,
            "band_claim": claim_of("local linear").value,
            "n_points": self.n_points,
        }


def quote_statistics(
    problem: LocalProblem,
    data: PrivateData,
    raw_points: Floats,
    *,
    epsilon: float | None,
    mu: float | None,
    radius: float | None = None,
) -> LocalQuote:
    """The quote for explaining these points from one release of sufficient statistics."""
    scales = scales_of(problem)
    price = data.quote(statistics_question(problem, raw_points, scales=scales), epsilon=epsilon, mu=mu)
    assert price.sigma is not None
    statistics = stand_in(problem, raw_points[:STAND_IN_POINTS], price.sigma, data.n_rows_public, scales)
    if radius is None:
        radius = radius_of(problem, statistics.noise, statistics.structure.size)
    width = expected_width(statistics, radius) * problem.model.width / 2
    return LocalQuote(price, width, len(raw_points))


def stand_in(problem: LocalProblem, raw_points: Floats, sigma: float, n_rows_public: int, scales: Scales) -> LocalStatistics:
    """Exact statistics of uniform public rows, as many as declared, beside the noise that a release would have."""
    raw = problem.row_schema.probe_rows(STAND_IN_ROWS)
    x, f = problem.encode(raw), problem.at(raw)
    copies = n_rows_public / len(raw)
    points = problem.encode(raw_points)
    width = x.shape[1] + (1 if scales.intercept else 0)
    gram, cross = np.empty((len(points), width, width)), np.empty((len(points), width))
    for place, point in enumerate(points):
        d = x - point
        weights = copies * problem.weight(np.linalg.norm(d, axis=1))
        u = np.concatenate((np.full((len(d), 1), scales.intercept), d), axis=1) if scales.intercept else d
        weighted = u * weights[:, None]
        gram[place], cross[place] = weighted.T @ u, weighted.T @ (scales.label * f)
    return LocalStatistics.of_sums(problem, raw_points, gram, cross, sigma, n_rows_public, scales)
