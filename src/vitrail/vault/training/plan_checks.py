"""What is refused before a training run starts: plans that cannot be run or bounded, and devices that cannot multiply."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ...errors import InvalidInput
from .row_vectors import largest_width

if TYPE_CHECKING:
    from .run import MapTraining

LARGEST_ENTRY = 1e6
"""Of a filter or a projection, and of a row's length: sums stay exact beyond, but no sensible plan lies there."""

_NUMBERS = {  # least and most; a least of 0 is allowed itself
    "beta": (0.0, 1e6),
    "learning_rate": (1e-12, 1e6),
    "decay": (0.0, 1e6),
    "start": (0.0, 1e6),
    "expected_rows": (1e-12, 1e12),
    "row_length": (1e-6, LARGEST_ENTRY),
}


def check_training(plan: MapTraining) -> None:
    """Refuse a plan with a sentence; arrays are replaced by copies that nobody can change afterwards."""
    what = "a MapTraining"
    _checks.whole("n_classes", plan.n_classes, most=10**5, of=what)
    _checks.whole("n_maps", plan.n_maps, most=10**5, of=what)
    _checks.whole("steps", plan.steps, most=10**7, of=what)
    for name, (least, most) in _NUMBERS.items():
        value = getattr(plan, name)
        if value is None and name == "row_length":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value <= most:
            raise InvalidInput(f"{name} of {what} is {value!r}; it must lie between {least:g} and {most:g}")
    if not plan.epsilon > 0 or not 0 <= plan.delta < 1:
        raise InvalidInput(
            f"epsilon is {plan.epsilon!r} and delta {plan.delta!r}; epsilon must be positive (infinite for no promise), and "
            "delta lie in [0, 1)"
        )
    if not 0 < plan.sampling_rate <= 1:
        raise InvalidInput(f"sampling_rate is {plan.sampling_rate!r}; it must lie in (0, 1]")
    if not 0 <= plan.momentum < 1 or not 0 < plan.average <= 1:
        raise InvalidInput(f"momentum is {plan.momentum!r} and average {plan.average!r}; they must lie in [0, 1) and (0, 1]")
    if plan.schedule not in ("cosine", "steps"):
        raise InvalidInput(f"schedule is {plan.schedule!r}; choose 'cosine' or 'steps'")
    if math.isfinite(plan.epsilon) and not (0 < plan.noise_multiplier <= 2.0**24 and 1e-12 <= plan.clip <= 1e12):
        raise InvalidInput(
            f"noise_multiplier is {plan.noise_multiplier!r} and clip {plan.clip!r}; a private run needs a positive "
            "noise_multiplier of at most 2**24 and a finite, positive clip between 1e-12 and 1e12"
        )
    if plan.filters is not None and plan.projections is not None:
        raise InvalidInput("filters and a projection per map do not go together; leave one of them out")
    object.__setattr__(plan, "filters", _checked("filters", plan.filters, "(inputs, copies, features)", None))
    object.__setattr__(
        plan, "projections", _checked("projections", plan.projections, "(maps, inputs, features)", plan.n_maps)
    )


def _checked(name: str, given: object, axes: str, first: int | None) -> NDArray[np.float32] | None:
    if given is None:
        return None
    try:
        copy = np.array(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} is {type(given).__name__}; give an array of numbers, {axes}") from error
    if copy.ndim != 3 or 0 in copy.shape or (first is not None and len(copy) != first):
        raise InvalidInput(f"{name} has shape {copy.shape}; {axes} is expected, with a first axis of one entry per map")
    if not (np.abs(copy) <= LARGEST_ENTRY).all():
        raise InvalidInput(f"{name} holds entries beyond {LARGEST_ENTRY:g} or that are no numbers; scale them down")
    copy.flags.writeable = False
    return copy


def check_width(plan: MapTraining, n_features: int) -> None:
    """Refuse a plan that was made for other features, or more of them than add up exactly."""
    given = plan.filters if plan.filters is not None else plan.projections
    if given is not None and given.shape[2] != n_features:
        raise InvalidInput(f"the run is for {given.shape[2]} features; the schema has {n_features}. Nothing was charged")
    widest = max(n_features, 0 if given is None else max(given.shape[:2])) + 1
    if widest > largest_width():
        raise InvalidInput(f"there are {n_features} features; training takes at most {largest_width()}. Nothing was charged")


def _spread_integers(shape: tuple[int, int]) -> NDArray[np.int64]:
    """Integers of 22 bits and a sign, fixed ones, whose bits are well mixed."""
    numbers = np.arange(1, math.prod(shape) + 1, dtype=np.int64) * 2_654_435_761
    return ((numbers ^ (numbers >> 13)) % 2**23 - 2**22).reshape(shape)


@cache
def check_products_are_exact(device: str) -> None:
    """Refuse a device whose float64 matrix products round where they need not: the bound counts on exact integers.

    IEEE products and sums of integers below 2^53 are exact. A library may be told to emulate float64 by shorter numbers;
    that would show here, on public numbers, before anything is charged.
    """
    left, right = _spread_integers((96, 512)), _spread_integers((512, 80))
    left[:8], right[:, :8] = 2**22, 2**22
    factors = left.astype(np.float64), right.astype(np.float64)
    if device == "cpu":
        found = factors[0] @ factors[1]
    else:
        import torch

        where = "cpu" if device == "torch" else device
        found = torch.matmul(*(torch.from_numpy(factor).to(where) for factor in factors)).cpu().numpy()
    if not np.array_equal(found, (left @ right).astype(np.float64)):
        raise InvalidInput(
            f"matrix products on device {device!r} are not exact in 64-bit floats, which private training counts on; "
            "switch off the emulation of float64, or use device='cpu'. Nothing was charged"
        )
