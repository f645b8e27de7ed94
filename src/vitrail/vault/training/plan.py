"""A training run of locally linear maps, fixed before it starts: what it is, what is refused, and what it costs.

A run is ``steps`` Poisson-sampled Gaussian sums, fixed beforehand: its epsilon is that of its privacy loss distribution
(``accounting.events``). For ``sampling_rate`` 1 they are plain Gaussian sums, and the run is mu-GDP with
mu = sqrt(steps) / noise_multiplier (twice that where a row may be exchanged), exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ...accounting import FixedBlock, JsonValue, block_epsilon, epsilon_of, mu_of, rounded_down, rounded_up
from ...accounting.neighbours import check_unit_counts_once, kind_of, sensitivity_factor
from ...errors import InvalidInput
from ..questions.question import plain
from .feature_curves import FeatureCurves
from .map_gradients import COPY_ROOM_BITS
from .row_vectors import LARGEST_WIDTH

FloatArray = NDArray[np.float32]
LARGEST_ENTRY = 1e6
"""Of a filter or a projection, and of a row's length: sums stay exact beyond, but no sensible plan lies there."""

_RANGES = {
    "beta": (0.0, 1e6),
    "learning_rate": (1e-12, 1e6),
    "decay": (0.0, 1e6),
    "start": (0.0, 1e6),
    "momentum": (0.0, math.nextafter(1.0, 0.0)),
    "expected_rows": (1e-12, 1e12),
    "row_length": (1e-6, LARGEST_ENTRY),
}
_IN_THE_EVENT = ("noise_multiplier", "sampling_rate", "steps", "epsilon", "delta")
FINEST_CELL_BITS, LARGEST_SIGMA_BITS = 36, 44


@dataclass(frozen=True, eq=False)
class MapTraining:
    """A training run, fixed before it starts. Nothing in it comes from rows.

    Parameters
    ----------
    n_classes, n_maps : int
        The model: ``n_maps`` linear maps for each class.
    beta : float
        Inverse temperature of the weights of the maps.
    epsilon, delta : float
        The price; ``epsilon`` infinite for a run without noise and without a promise.
    noise_multiplier : float
        Noise over clip; 0 where ``epsilon`` is infinite.
    sampling_rate : float
        Probability with which a row enters a step.
    steps : int
        How many noisy sums.
    clip : float
        The longest gradient of a row; infinite only where ``epsilon`` is.
    expected_rows : float
        Rows expected in a step, from the declared row count: what sums are divided by.
    learning_rate, decay : float
        Of Adam, with a cosine schedule down to zero; ``decay`` is L2 on the maps.
    average : float
        Share of the run, at its end, whose weights are averaged.
    start : float
        Half the width of the uniform first weights.
    filters : array (P, copies, P0), or None
        Public linear maps from features to inputs, one for each copy of a row; the first is what predictions use.
    projections : array (M, P', P), or None
        Public projections, one per map.
    row_length : float, or None
        Scale every row's features to this Euclidean length first, by the row's own length.
    curves : FeatureCurves, or None
        Public curves that numbers become before anything else; maps then act on these.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.vault import MapTraining
    >>> run = MapTraining(n_classes=2, n_maps=3, noise_multiplier=1.3, sampling_rate=500 / 60_000, steps=2400,
    ...                   epsilon=1.48, delta=1e-5, expected_rows=500)
    >>> run.event.cost().block_epsilon
    1.48
    """

    n_classes: int
    n_maps: int
    noise_multiplier: float
    sampling_rate: float
    steps: int
    epsilon: float
    delta: float
    expected_rows: float
    beta: float = 1.0
    clip: float = 1.0
    learning_rate: float = 1e-2
    decay: float = 0.0
    average: float = 0.25
    start: float = 0.01
    momentum: float = 0.9
    schedule: str = "cosine"
    filters: FloatArray | None = field(default=None, repr=False)
    projections: FloatArray | None = field(default=None, repr=False)
    row_length: float | None = None
    curves: FeatureCurves | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse a plan with a sentence; arrays are replaced by copies that nobody can change afterwards."""
        what = "a MapTraining"
        for name, most in (("n_classes", 10**5), ("n_maps", 10**5), ("steps", 10**7)):
            _checks.whole(name, getattr(self, name), most=most, of=what)
        for name, (low, high) in _RANGES.items():
            if name != "row_length" or self.row_length is not None:
                object.__setattr__(self, name, _checks.number(name, getattr(self, name), low=low, high=high, of=what))
        for name in ("sampling_rate", "average"):
            object.__setattr__(self, name, _checks.fraction(name, getattr(self, name), of=what))
        _checks.choice("schedule", self.schedule, ("cosine", "steps"), of=what)
        if not self.epsilon > 0 or not 0 <= self.delta < 1:
            raise InvalidInput(
                f"epsilon is {self.epsilon!r} and delta {self.delta!r}; epsilon must be positive (infinite for no promise), "
                "and delta lie in [0, 1)"
            )
        if self.private and not (0 < self.noise_multiplier <= 2.0**24 and 1e-12 <= self.clip <= 1e12):
            raise InvalidInput(
                f"noise_multiplier is {self.noise_multiplier!r} and clip {self.clip!r}; a private run needs a positive "
                "noise_multiplier of at most 2**24 and a finite, positive clip between 1e-12 and 1e12"
            )
        if self.filters is not None and self.projections is not None:
            raise InvalidInput("filters and a projection per map do not go together; leave one of them out")
        for name, axes in (("filters", "(inputs, copies, features)"), ("projections", "(maps, inputs, features)")):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._checked_matrices(name, axes))

    def _checked_matrices(self, name: str, axes: str) -> FloatArray:
        given = getattr(self, name)
        try:
            copy = np.array(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name} is {type(given).__name__}; give an array of numbers, {axes}") from error
        if copy.ndim != 3 or 0 in copy.shape or (name == "projections" and len(copy) != self.n_maps):
            raise InvalidInput(f"{name} has shape {copy.shape}; {axes} is expected, with a first axis of one entry per map")
        if not (np.abs(copy) <= LARGEST_ENTRY).all():
            raise InvalidInput(f"{name} holds entries beyond {LARGEST_ENTRY:g} or that are no numbers; scale them down")
        copy.flags.writeable = False
        return copy

    @property
    def private(self) -> bool:
        """Whether there is a promise."""
        return math.isfinite(self.epsilon)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coordinate of a step's sum."""
        return self.noise_multiplier * self.clip

    @property
    def cell_bits(self) -> int:
        """B: a sum is counted in cells of clip / 2^B, finer than the noise by 2^B times the noise multiplier."""
        finest = FINEST_CELL_BITS if self.filters is None else FINEST_CELL_BITS - COPY_ROOM_BITS
        return min(finest, LARGEST_SIGMA_BITS - math.ceil(math.log2(max(1.0, self.noise_multiplier))))

    @property
    def event(self) -> FixedBlock:
        """What the ledger records."""
        return FixedBlock(self.epsilon, self.delta, self.noise_multiplier, self.sampling_rate, self.steps)

    def describe(self) -> dict[str, JsonValue]:
        """The public parameters, but for those of the event; arrays by their digest."""
        names = [known.name for known in fields(self) if known.name not in (*_IN_THE_EVENT, "curves")]
        curves: dict[str, JsonValue] = {} if self.curves is None else {"curves": self.curves.digest()}
        return {"question": "map-training", **{name: plain(getattr(self, name)) for name in names}, **curves}

    def check_fits(self, n_features: int, neighbours: str) -> None:
        """Refuse a run that does not fit the data, or whose noise does not pay for its epsilon: a bill must be true."""
        self.check_width(n_features)
        check_paid(self.event, neighbours, "this run")

    def check_width(self, n_features: int) -> None:
        """Refuse a plan that was made for other features, or more of them than add up exactly."""
        given = self.filters if self.filters is not None else self.projections
        if self.curves is not None:
            if self.curves.n_features != n_features:
                raise InvalidInput(
                    f"the curves are for {self.curves.n_features} features; the schema has {n_features}. Nothing was charged"
                )
            n_features = self.curves.width
        if given is not None and given.shape[2] != n_features:
            raise InvalidInput(f"the run is for {given.shape[2]} features; the schema has {n_features}. Nothing was charged")
        widest, most = max(n_features, 0 if given is None else max(given.shape[:2])) + 1, LARGEST_WIDTH
        if widest > most:
            raise InvalidInput(f"there are {n_features} features; training takes at most {most}. Nothing was charged")


COINS = "in private training every row enters by a coin of its own, which is priced for people with one row each"
"""Why several rows per person are refused."""


def check_paid(event: FixedBlock, neighbours: str, what: str) -> None:
    """Refuse sums whose noise does not pay for the epsilon that the event says."""
    check_unit_counts_once(neighbours, COINS)
    cost = run_epsilon(event.noise_multiplier, event.sampling_rate, event.steps, event.delta, neighbours)
    if not cost <= event.epsilon:
        raise InvalidInput(
            f"noise_multiplier {event.noise_multiplier:.6g} makes {what} cost epsilon {rounded_up(cost)} at delta "
            f"{rounded_up(event.delta)} ({neighbours}); it says {rounded_down(event.epsilon)}. Nothing was charged"
        )


def run_epsilon(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, neighbours: str = "add-remove"
) -> float:
    """Epsilon of a run at ``delta``.

    Examples
    --------
    >>> round(run_epsilon(1.3, 500 / 60_000, 2400, 1e-5), 2)
    1.47
    """
    check_unit_counts_once(neighbours, COINS)
    if sampling_rate == 1:  # Gaussian sums that one row moves by the clip, or by twice as much where it is exchanged
        distance = math.sqrt(steps) * sensitivity_factor(neighbours)
        return epsilon_of(distance / noise_multiplier * (1 + 1e-12), delta)
    return block_epsilon(noise_multiplier, sampling_rate, steps, delta, kind_of(neighbours))


@cache
def noise_for(epsilon: float, delta: float, sampling_rate: float, steps: int, neighbours: str = "add-remove") -> float:
    """The smallest noise multiplier, to a few parts in 10 000 and rounded up, whose run costs at most (epsilon, delta).

    Starts from the Gaussian limit mu = rate sqrt(steps (exp(1/sigma^2) - 1)), which is near, and closes in by secants: every
    look at a privacy loss distribution takes some tenths of a second.

    Examples
    --------
    >>> run_epsilon(noise_for(2.0, 1e-5, 0.1, 300), 0.1, 300, 1e-5) <= 2.0
    True
    """
    check_unit_counts_once(neighbours, COINS)
    if sampling_rate == 1:
        return math.sqrt(steps) * sensitivity_factor(neighbours) / mu_of(epsilon, delta) * (1 + 1e-9)
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
        over = excess(middle)
        if over > 0:
            low, below = middle, over
        else:
            high, above = middle, over
            if over > -3e-4:
                break
    return high
