"""How many groups, from public quantities alone, and what a price buys.

The mean over l groups has noise of standard deviation D/(l mu), D being how far apart two groups' results can be: twice as
many groups, half the noise. But each group then has half the rows, and an explainer of few rows may say something else than
one of many. So: as many groups as it takes for the noise to be small (2 % of ``y_range`` at each point of a curve; a quarter
of a place in a ranking), and never so many that a group has fewer than 50 rows, or 200 where it trains a model. A ranking is
a vote: many voters who each know little agree better than few who know more, so there are at least 200 of them, unless they
would have fewer than 25 rows each; down to 18 if that is what makes the noise small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...accounting import Cost, JsonValue, rounded_down, rounded_up
from ...errors import InvalidInput
from ...guarantee import Guarantee
from ...results.band_claim import claim_of

SMALL_CURVE_NOISE = 0.02
SMALL_RANKING_NOISE = 0.25
FEWEST_ROWS = 50
ENOUGH_VOTERS = 200
ROWS_TO_VOTE, FEWEST_ROWS_TO_VOTE = 25, 18
FEWEST_ROWS_TO_TRAIN = 200


def choose_groups(
    n_rows_public: int, distance: float, small_noise: float, mu: float, *, trains: bool, votes: bool = False
) -> int:
    """As many groups as make the noise small, and no more than leave them enough rows.

    Parameters
    ----------
    n_rows_public : int
        The declared rows.
    distance : float
        How far apart two groups' results can be.
    small_noise : float
        The standard deviation to aim at, in the same units.
    mu : float
        The price.
    trains : bool
        Whether each group trains a model.
    votes : bool
        Whether each group ranks.

    Examples
    --------
    >>> choose_groups(30_000, math.sqrt(20), 0.02, 0.2367, trains=False)  # as many as 50 rows each allow
    600
    >>> choose_groups(3_000_000, math.sqrt(20), 0.02, 0.2367, trains=False)  # noise of 2 % is reached before
    945
    """
    fewest, most = 2, n_rows_public // (FEWEST_ROWS_TO_TRAIN if trains else FEWEST_ROWS)
    if votes and not trains:
        fewest = max(2, min(ENOUGH_VOTERS, n_rows_public // ROWS_TO_VOTE))
        most = max(most, min(ENOUGH_VOTERS, n_rows_public // FEWEST_ROWS_TO_VOTE))
    wanted = distance / (small_noise * mu)
    return max(fewest, math.ceil(wanted) if wanted < most else most)


def checked_groups(groups: int | None, n_rows_public: int, what: str) -> int | None:
    """The number of groups asked for, if it can be had."""
    if groups is None:
        return None
    most = max(2, n_rows_public)
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer) or not 2 <= groups <= most:
        raise InvalidInput(
            f"groups of {what} is {groups!r}; it must be a whole number from 2 to the declared row count {most}, or be left "
            "out to be chosen from public quantities"
        )
    return int(groups)


@dataclass(frozen=True)
class GenericQuote:
    """What a curve or ranking would cost and how noisy it would be. No row was read for it.

    Attributes
    ----------
    groups : int
        Into how many groups rows would be dealt.
    rows_per_group : float
        About how many rows each would have, by the declared count.
    std : float
        Standard deviation of the noise of one number of the result.
    half_width : float
        Half the width of its band.
    cost : Cost
        What would be charged.
    guarantee : Guarantee
        The promise the result would carry.
    fits : bool
        Whether the account can pay for it now.
    remaining_epsilon : float
        The largest single question the account can still pay for.
    """

    groups: int
    rows_per_group: float
    std: float
    half_width: float
    cost: Cost
    guarantee: Guarantee
    fits: bool
    remaining_epsilon: float

    def __str__(self) -> str:
        verdict, mark = "It fits" if self.fits else "It does not fit", claim_of("any curve").mark
        return (
            f"epsilon {rounded_up(self.guarantee.epsilon)} at delta {rounded_up(self.guarantee.delta)}: "
            f"{self.groups} groups of about {self.rows_per_group:.0f} rows, each number within "
            f"+-{self.half_width:.3g} ({mark}). {verdict}: the largest question the account can still pay for is epsilon "
            f"{rounded_down(self.remaining_epsilon)}."
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        return {
            "groups": self.groups,
            "rows_per_group": self.rows_per_group,
            "std": self.std,
            "half_width": self.half_width,
            "pico_mu_squared": self.cost.pico_mu_squared,
            "guarantee": self.guarantee.to_json(),
            "fits": self.fits,
            "remaining_epsilon": self.remaining_epsilon,
        }
