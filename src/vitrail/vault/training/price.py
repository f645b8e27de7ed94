"""What a training run costs, and how much noise a price needs.

A run is ``steps`` Poisson-sampled Gaussian sums, fixed beforehand: its epsilon is that of its privacy loss distribution
(``accounting.blocks``). For ``sampling_rate`` 1 they are plain Gaussian sums, and the run is mu-GDP with
mu = sqrt(steps) / noise_multiplier (twice that where a row may be exchanged), exactly.
"""

from __future__ import annotations

import math
from functools import cache

from ...accounting import ADD_REMOVE, block_epsilon, epsilon_of, mu_of


def run_epsilon(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, neighbours: str = ADD_REMOVE
) -> float:
    """Epsilon of a run at ``delta``.

    Examples
    --------
    >>> round(run_epsilon(1.3, 500 / 60_000, 2400, 1e-5), 2)
    1.47
    """
    if sampling_rate == 1:  # Gaussian sums that one row moves by the clip, or by twice as much where it is exchanged
        distance = math.sqrt(steps) * (1 if neighbours == ADD_REMOVE else 2)
        return epsilon_of(distance / noise_multiplier * (1 + 1e-12), delta)
    return block_epsilon(noise_multiplier, sampling_rate, steps, delta, neighbours)


@cache
def noise_for(epsilon: float, delta: float, sampling_rate: float, steps: int, neighbours: str = ADD_REMOVE) -> float:
    """The smallest noise multiplier, to a few parts in 10 000 and rounded up, whose run costs at most (epsilon, delta).

    Starts from the Gaussian limit mu = rate sqrt(steps (exp(1/sigma^2) - 1)), which is near, and closes in by secants: every
    look at a privacy loss distribution takes some tenths of a second.

    Examples
    --------
    >>> run_epsilon(noise_for(2.0, 1e-5, 0.1, 300), 0.1, 300, 1e-5) <= 2.0
    True
    """
    if sampling_rate == 1:
        return math.sqrt(steps) * (1 if neighbours == ADD_REMOVE else 2) / mu_of(epsilon, delta) * (1 + 1e-9)
    ratio = mu_of(epsilon, delta) / sampling_rate
    guess = max(0.3, 1 / math.sqrt(math.log1p(ratio**2 / steps)))
    target = math.log(epsilon)

    def excess(sigma: float) -> float:
        return math.log(max(run_epsilon(sigma, sampling_rate, steps, delta, neighbours), 1e-12)) - target

    low, high = guess / 1.02, guess * 1.02
    below, above = excess(low), excess(high)
    while above > 0:
        low, below, high = high, above, high * 1.3
        above = excess(high)
    while below <= 0 and low > 0.25:
        high, above, low = low, below, low / 1.3
        below = excess(low)
    for _ in range(12):
        if high / low < 1 + 3e-4 or below <= 0:
            break
        share = min(0.95, max(0.05, below / (below - above)))
        middle = math.exp(math.log(low) + share * math.log(high / low)) * (1 + 5e-5)
        middle = min(middle, high / (1 + 2e-5))
        found = excess(middle)
        if found > 0:
            low, below = middle, found
        else:
            high, above = middle, found
            if found > -3e-4:
                break
    return high
