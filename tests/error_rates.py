"""How sure a test may be of fresh noise: exact bounds that right code crosses with probability at most ``ERROR_RATE``.

A test that looks at fresh noise raises one false alarm in a thousand million runs, and is never run twice: a bug that shows
every second time shows. The rate is that of all assertions of a test together: ``of`` says how many there are (a union
bound, so they may depend on each other). What cannot be given a rate (how good an explanation is, whether an adversary that
learns from draws finds what it should) is asserted on noise that is the same in every run, ``planted_noise``.
"""

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

from scipy.special import ndtri
from scipy.stats import binom, chi2, t

from vitrail.vault.noise import keyed
from vitrail.vault.noise import sampler as noise
from vitrail.vault.training import run as training_noise

ERROR_RATE = 1e-9
CONFIDENCE = 1 - ERROR_RATE / 2
"""Of an audit: one that it is right to pass is refuted with at most half of ``ERROR_RATE``."""


def normal_bound(of: int = 1) -> float:
    """What none of ``of`` standard normal variables, however dependent, exceeds in size: 6.1 for one, 7.1 for a thousand."""
    return -float(ndtri(ERROR_RATE / (2 * of)))


def square_sum_bounds(squares: int, of: int = 1) -> tuple[float, float]:
    """Between which lies a sum of squares of independent standard normal variables."""
    tail = ERROR_RATE / (2 * of)
    return float(chi2.ppf(tail, squares)), float(chi2.isf(tail, squares))


def std_ratio_bounds(draws: int, of: int = 1) -> tuple[float, float]:
    """Between which lies the standard deviation (``ddof=1``) of normal draws, in units of the true one."""
    low, high = square_sum_bounds(draws - 1, of)
    return math.sqrt(low / (draws - 1)), math.sqrt(high / (draws - 1))


def correlation_bound(draws: int, of: int = 1) -> float:
    """What the sample correlation of independent normal variables does not exceed in size."""
    quantile = float(t.isf(ERROR_RATE / (2 * of), draws - 2))
    return quantile / math.sqrt(draws - 2 + quantile**2)


def count_bounds(trials: int, rate: float, of: int = 1) -> tuple[int, int]:
    """From which to which number an event of probability ``rate`` is seen in independent trials."""
    tail = ERROR_RATE / (2 * of)
    return int(binom.ppf(tail, trials, rate)), int(binom.isf(tail, trials, rate))


def largest_count(trials: int, rate: float, of: int = 1) -> int:
    """How often an event of probability at most ``rate`` is seen at the most: one side, all of the error."""
    return int(binom.isf(ERROR_RATE / of, trials, rate))


@contextmanager
def planted_noise(which: int = 0) -> Iterator[None]:
    """The bits of the operating system replaced, where noise is drawn from them, by a stream that is the same every time."""
    planted = SimpleNamespace(urandom=random.Random(f"planted noise {which}").randbytes)
    with (
        mock.patch.object(noise, "os", planted),
        mock.patch.object(keyed, "os", planted),
        mock.patch.object(training_noise, "os", planted),
    ):
        yield
