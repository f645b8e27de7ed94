"""Fixed blocks: runs whose parameters are all fixed before they start, priced by privacy loss distributions.

DP-SGD composes thousands of Poisson-sampled Gaussian sums. No finite mu describes one of them well, but the whole run,
fixed beforehand, has an exact privacy loss distribution (Koskela et al. 2020; Google's dp-accounting). The run is charged
as one (epsilon, delta) to the account's training purse. The sampling rate and the number of steps come from the public row
count, never from the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"


def block_epsilon(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, neighbours: str = ADD_REMOVE
) -> float:
    """Epsilon of ``steps`` Poisson-sampled Gaussian sums at ``delta``.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the clip norm of one row.
    sampling_rate : float
        Probability with which each row enters a step, independently.
    steps : int
        Number of sums, fixed beforehand.
    delta : float
        The block's delta.
    neighbours : {"add-remove", "replace-one"}
        The neighbour relation.

    Examples
    --------
    >>> round(block_epsilon(1.3, 500 / 60_000, 2400, 1e-5), 2)
    1.47
    """
    return float(_accountant(noise_multiplier, sampling_rate, steps, neighbours).get_epsilon(delta))


def noise_multiplier_for(
    epsilon: float, delta: float, sampling_rate: float, steps: int, neighbours: str = ADD_REMOVE
) -> float:
    """The smallest noise multiplier (to one part in 10 000, rounded up) whose block costs at most (epsilon, delta)."""

    def too_dear(multiplier: float) -> bool:
        return block_epsilon(multiplier, sampling_rate, steps, delta, neighbours) > epsilon

    low, high = 0.0, 1.0
    while too_dear(high):
        low, high = high, high * 2
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if middle < 0.2 or too_dear(middle):  # below 0.2 the loss distribution is too wide to be worth computing
            low = middle
        else:
            high = middle
    return high


def _accountant(noise_multiplier: float, sampling_rate: float, steps: int, neighbours: str) -> Any:
    import dp_accounting
    from dp_accounting import pld

    relation = {
        ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        REPLACE_ONE: dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[neighbours]
    step = dp_accounting.PoissonSampledDpEvent(sampling_rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    accountant = pld.PLDAccountant(relation)
    accountant.compose(dp_accounting.SelfComposedDpEvent(step, steps))
    return accountant
