"""Looking for bad neighbours: which pair of datasets tells most about a mechanism, and then an honest audit of that pair.

Choosing the worst of many pairs and reporting its number would find leaks in noise. So the draws are split: some explore
every candidate, the rest, drawn afresh, test the one that promised most. The test's confidence holds whatever was explored
before. A good candidate is a row at the edge of what a mechanism is meant to bound: the largest norm, the only member of a
group, a value outside the declared range, a duplicate of another row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..progress import progress as bar
from .claims import FEWEST_DRAWS
from .draws import RawArray
from .instrument import mechanism
from .result import Audit

EXPLORED_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourSearch:
    """The outcome of ``vitrail.audit.search``.

    Parameters
    ----------
    audit : Audit
        The test of the chosen pair, on draws of its own.
    chosen : int
        Its place among the candidates.
    explored : tuple of float
        What each candidate promised: a bound of mu (or epsilon) from the exploring draws. For orientation, not evidence.
    """

    audit: Audit
    chosen: int
    explored: tuple[float, ...]

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.audit.refuted

    def summary(self) -> str:
        """The outcome in a sentence."""
        return f"Candidate {self.chosen} of {len(self.explored)} told most. {self.audit.summary()}"

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, JsonValue]:
        """The outcome as plain JSON values."""
        return {"audit": self.audit.to_json(), "chosen": self.chosen, "explored": list(self.explored)}


def search(
    run: Callable[..., object],
    candidates: Sequence[tuple[object, object]],
    claimed: Guarantee | float,
    *,
    draws: int = 200_000,
    confidence: float = 0.999,
    statistic: Callable[[RawArray], object] | None = None,
    delta: float | None = None,
    progress: bool | None = None,
) -> NeighbourSearch:
    """Find the pair of neighbours on which a mechanism leaks most, and test the claim there.

    Parameters
    ----------
    run, claimed, confidence, statistic, delta, progress
        As for ``vitrail.audit.mechanism``.
    candidates : sequence of (dataset, dataset)
        Pairs of neighbouring datasets.
    draws : int
        Outputs on either side in all: half of them explore, shared evenly among the candidates, the other half test.

    Examples
    --------
    >>> import numpy as np
    >>> from vitrail.audit import search
    >>> generator = np.random.default_rng(0)
    >>> def clipped_below_only(rows, draws):                     # forgets to clip large values
    ...     return np.rint(64 * (np.maximum(rows, 0).sum() + generator.normal(0, 1, draws)))
    >>> pairs = [([0.5], []), ([-3.0], []), ([3.0], [])]
    >>> found = search(clipped_below_only, [tuple(map(np.array, pair)) for pair in pairs], claimed=1.0, draws=20_000)
    >>> found.chosen, found.refuted
    (2, True)
    """
    pairs = list(candidates)
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise InvalidInput("candidates must be a list of pairs of datasets (D, D2), at least one")
    if isinstance(draws, bool) or not isinstance(draws, int):
        raise InvalidInput(f"draws is {draws!r}; it must be a whole number")
    each = int(EXPLORED_SHARE * draws) // len(pairs)
    if len(pairs) > 1 and each < FEWEST_DRAWS:
        raise InvalidInput(
            f"draws is {draws}; exploring {len(pairs)} candidates takes at least {FEWEST_DRAWS} each, "
            f"{int(2 * FEWEST_DRAWS * len(pairs))} in all"
        )
    promises: list[float] = []
    if len(pairs) > 1:
        with bar("exploring neighbours", len(pairs)) as advance:
            for first, second in pairs:
                found = mechanism(
                    run,
                    (first, second),
                    claimed,
                    draws=each,
                    confidence=0.9,
                    statistic=statistic,
                    delta=delta,
                    progress=False,
                )
                promises.append(found.mu_lower if found.tests_mu else found.epsilon_lower)
                advance(1)
    chosen = max(range(len(pairs)), key=lambda place: promises[place]) if promises else 0
    left = draws - each * len(pairs) if promises else draws
    audit = mechanism(
        run,
        (pairs[chosen][0], pairs[chosen][1]),
        claimed,
        draws=left,
        confidence=confidence,
        statistic=statistic,
        delta=delta,
        progress=progress,
    )
    return NeighbourSearch(audit=audit, chosen=chosen, explored=tuple(promises or [float("nan")]))
