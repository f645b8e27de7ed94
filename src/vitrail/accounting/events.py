"""What happened, apart from what it costs: the frozen vocabulary of the ledger.

The meaning of an event never changes once released; a new meaning gets a new kind or version. An event carries every
number its price depends on, so an auditor can recompute the bill from the ledger alone, and a program that meets an event
it does not know must refuse to price it.

**GDP prices of mechanisms that are not Gaussian.**

*Pure epsilon.* The trade-off curve of any epsilon-DP mechanism lies above the two lines that meet at the corner
alpha = beta = 1/(1 + e^epsilon). A Gaussian curve is convex, so it lies below those lines as soon as it passes below the
corner: mu = -2 ndtri(1/(1 + e^epsilon)).

*Bounded range.* The exponential mechanism with P ~ exp(epsilon score / (2 s)) has privacy losses inside an interval of
length epsilon that contains 0 (Durfee & Rogers 2019). The worst such mechanism has losses t and t - epsilon only; over
t the corner is worst at t = epsilon/2, which prices it like epsilon/2 of pure DP: mu = -2 ndtri(1/(1 + e^(epsilon/2))),
about 0.627 epsilon. A test sweeps t and epsilon up to 16. (Permute-and-flip is not bounded-range: not used.)

*Rounding.* Near epsilon = 0 the corner is near 1/2 and ndtri of it loses digits, so small arguments go through ndtri(1/(1 +
e^epsilon)) = -sqrt(2) erfinv(tanh(epsilon/2)), and large ones through logarithms, which cannot overflow. Both are good to
1e-15 (a test compares them with 60-digit arithmetic); the safe side is a factor 1 + 1e-12 away.

**Fixed blocks**: runs whose parameters are all fixed before they start, priced by privacy loss distributions. DP-SGD
composes thousands of Poisson-sampled Gaussian sums. No finite mu describes one of them well, but the whole run, fixed
beforehand, has an exact privacy loss distribution (Koskela et al. 2020; Google's dp-accounting). The run is charged as one
(epsilon, delta) to the account's training purse. The sampling rate and the number of steps come from the public row count,
never from the rows.

**Laplace sums** are epsilon-DP with no delta, and for few numbers they have several times less variance than a Gaussian sum
that is (epsilon, 1e-6)-DP. As GDP they would be priced by the corner above, many times too dear; so they are paid in
epsilon, from the purse of fixed blocks, where epsilons add up.

*Why adding is sound*, also where each question is chosen from the answers to the others, Gaussian ones among them. Let D and
D' be neighbours, P and P' the laws of the whole transcript, and H the law where Gaussian answers come from D' and Laplace
answers from D. P and H differ in Gaussian steps alone: a Laplace step has the same law in both and costs nothing for this
pair, so by the filter theorem P(E) <= e^a H(E) + delta, (a, delta) being what the Gaussian capacity is worth. H and P'
differ in Laplace steps alone, the densities of which have a ratio of at most e^(epsilon_i) each; the product of the ratios
is at most e^b, b the purse's capacity, on every transcript: H(E) <= e^b P'(E). Together P(E) <= e^(a + b) P'(E) + delta.
Runs with a delta of their own are one step more of the same kind, by basic composition (Rogers et al. 2016). Test:
tests/vault/test_laplace_sum.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from scipy.special import erfinv, log_ndtr, ndtri_exp

from ..errors import InvalidInput
from .cost import Cost, JsonValue


class UnknownEvent(ValueError):
    """An event of a kind or version that this program cannot price."""


@dataclass(frozen=True, slots=True)
class GaussianSum:
    """A vector sum that one row moves by at most ``sensitivity`` (L2) was released with Gaussian noise of std ``sigma``.

    Version 1. The noise is N(0, sigma^2) on each coordinate of an isometric embedding of the sum.
    """

    kind: ClassVar[str] = "gaussian-sum"
    version: ClassVar[int] = 1
    sensitivity: float
    sigma: float

    def cost(self) -> Cost:
        """mu = sensitivity / sigma."""
        return Cost.of_gaussian(self.sensitivity, self.sigma)


@dataclass(frozen=True, slots=True)
class Selection:
    """One of several candidates was chosen by the exponential mechanism, ``epsilon``-bounded-range.

    Version 1.
    """

    kind: ClassVar[str] = "selection"
    version: ClassVar[int] = 1
    epsilon: float

    def cost(self) -> Cost:
        """The bounded-range price."""
        return Cost.of_mu(mu_of_bounded_range(self.epsilon))


@dataclass(frozen=True, slots=True)
class FixedBlock:
    """A run fixed beforehand that is (``epsilon``, ``delta``)-DP as a whole, paid from the training purse.

    Version 1. ``noise_multiplier``, ``sampling_rate`` and ``steps`` describe the Poisson-sampled Gaussian sums it is made
    of, so that its epsilon can be recomputed.
    """

    kind: ClassVar[str] = "fixed-block"
    version: ClassVar[int] = 1
    epsilon: float
    delta: float
    noise_multiplier: float
    sampling_rate: float
    steps: int

    def cost(self) -> Cost:
        """(epsilon, delta), as it stands."""
        return Cost.of_block(self.epsilon, self.delta)


@dataclass(frozen=True, slots=True)
class LaplaceSum:
    """A sum on a grid that one row moves by at most ``sensitivity`` cells was released with discrete Laplace noise.

    Version 1. Distances are in the norm named: ``"l1"``, the sum of the coordinates' sizes, or ``"max"``, the largest of
    them. A vector of noise has probability proportional to exp(-norm/scale); both numbers are whole.
    """

    kind: ClassVar[str] = "laplace-sum"
    version: ClassVar[int] = 1
    sensitivity: int
    scale: int
    norm: str

    def cost(self) -> Cost:
        """epsilon = sensitivity / scale, from the purse where epsilons add up."""
        return Cost.of_epsilon(Fraction(self.sensitivity, self.scale))


Event: TypeAlias = GaussianSum | Selection | FixedBlock | LaplaceSum

_KINDS: dict[tuple[str, int], type[GaussianSum] | type[Selection] | type[FixedBlock] | type[LaplaceSum]] = {
    (event.kind, event.version): event for event in (GaussianSum, Selection, FixedBlock, LaplaceSum)
}


def event_to_json(event: Event) -> dict[str, JsonValue]:
    """The event as plain JSON values.

    Examples
    --------
    >>> event_to_json(GaussianSum(sensitivity=1.0, sigma=2.0))
    {'kind': 'gaussian-sum', 'version': 1, 'sensitivity': 1.0, 'sigma': 2.0}
    """
    return {"kind": event.kind, "version": event.version, **asdict(event)}


def event_from_json(fields: Mapping[str, JsonValue]) -> Event:
    """The event that ``event_to_json`` wrote, or :class:`UnknownEvent`."""
    rest = dict(fields)
    kind, version = rest.pop("kind", None), rest.pop("version", None)
    event_type = _KINDS.get((kind, version)) if isinstance(kind, str) and isinstance(version, int) else None
    if event_type is None:
        raise UnknownEvent(f"an event of kind {kind!r}, version {version!r}, which this version cannot price")
    try:
        return event_type(**rest)  # type: ignore[arg-type]
    except TypeError as error:
        raise UnknownEvent(f"a {kind} event with unexpected fields {sorted(rest)}") from error


_ROUND_UP = 1 + 1e-12


def mu_of_pure(epsilon: float) -> float:
    """The GDP parameter of any epsilon-DP mechanism, rounded up.

    Examples
    --------
    >>> round(mu_of_pure(1.0), 4)
    1.232
    """
    if epsilon < 1:
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2))) * _ROUND_UP
    log_corner = -epsilon - math.log1p(math.exp(-epsilon))
    return -2 * float(ndtri_exp(log_corner)) * _ROUND_UP


def mu_of_bounded_range(epsilon: float) -> float:
    """The GDP parameter of an epsilon-bounded-range mechanism (the exponential mechanism), rounded up.

    Examples
    --------
    >>> round(mu_of_bounded_range(1.0), 4)
    0.6239
    """
    return mu_of_pure(epsilon / 2)


def bounded_range_epsilon_of(mu: float) -> float:
    """The largest epsilon whose bounded-range mechanism costs at most mu, rounded down.

    Examples
    --------
    >>> mu_of_bounded_range(bounded_range_epsilon_of(0.25)) <= 0.25
    True
    """
    shrunk = mu / _ROUND_UP
    if shrunk < 1:
        log_odds = 2 * math.atanh(math.erf(shrunk / 2 / math.sqrt(2)))
    else:
        log_odds = float(log_ndtr(shrunk / 2) - log_ndtr(-shrunk / 2))
    return 2 * log_odds * (1 - 1e-12)


def block_epsilon(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, neighbours: str = "add-remove"
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
    try:
        import dp_accounting
        from dp_accounting import pld
    except ImportError as error:
        raise InvalidInput(
            "what sampled training costs is computed by dp-accounting, which is not installed; install vitrail[maps]. "
            "Nothing was charged"
        ) from error

    relation = {
        "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[neighbours]
    step = dp_accounting.PoissonSampledDpEvent(sampling_rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    accountant = pld.PLDAccountant(relation)
    accountant.compose(dp_accounting.SelfComposedDpEvent(step, steps))
    return float(accountant.get_epsilon(delta))
