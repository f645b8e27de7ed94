"""What is put to the test: a promise that can be tested, and enough draws to test it."""

from __future__ import annotations

import math

import numpy as np

from ..errors import InvalidInput
from ..guarantee import Guarantee

FEWEST_DRAWS = 1000
DEFAULT_DELTA = 1e-6


def check_claim(claimed: Guarantee | float, delta: float | None) -> tuple[float, float, float]:
    """The mu under test (0 if an epsilon is), the epsilon under test (0 if a mu is), and the delta."""
    if delta is not None and (isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 <= delta < 1):
        raise InvalidInput(f"delta is {delta!r}; it must be at least 0 and below 1, for example 1e-6")
    if isinstance(claimed, Guarantee):
        if claimed.mu > 0:
            if not math.isfinite(claimed.mu):
                raise InvalidInput(f"claimed has mu {claimed.mu}; only a finite promise can be tested")
            return float(claimed.mu), 0.0, float(claimed.delta if delta is None else delta)
        if not (math.isfinite(claimed.epsilon) and claimed.epsilon >= 0 and 0 <= claimed.delta < 1):
            raise InvalidInput(
                f"claimed promises epsilon {claimed.epsilon} at delta {claimed.delta}; epsilon must be finite and not "
                "negative, delta at least 0 and below 1"
            )
        if delta is not None and delta != claimed.delta:
            raise InvalidInput(
                f"delta is {delta}, and the claimed guarantee holds at delta {claimed.delta}; leave delta= away, an epsilon "
                "is tested at its own delta"
            )
        return 0.0, float(claimed.epsilon), float(claimed.delta)
    if isinstance(claimed, bool) or not isinstance(claimed, int | float) or not (math.isfinite(claimed) and claimed > 0):
        raise InvalidInput(f"claimed is {claimed!r}; give a vitrail.Guarantee, or a positive finite mu such as 0.5")
    return float(claimed), 0.0, float(DEFAULT_DELTA if delta is None else delta)


def check_numbers(draws: int, confidence: float) -> None:
    """Refuse too few draws and a confidence that is none."""
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < FEWEST_DRAWS:
        raise InvalidInput(
            f"draws is {draws!r}; an audit needs a whole number of at least {FEWEST_DRAWS}, "
            "and some 200 000 to see an error of 10 %"
        )
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.5 <= confidence < 1:
        raise InvalidInput(f"confidence is {confidence!r}; it must be at least 0.5 and below 1, for example 0.999")
