"""A Poisson sample of the rows: every row is in it with probability ``rate``, by a coin of its own.

*What it costs.* Fix the coins of all other rows. With the extra row a question's output is P (it was drawn) with
probability q and Q (it was not) with probability 1 - q; without it, Q. The hockey-stick divergences satisfy
H(qP + (1-q)Q | Q) <= q H(P | Q) and H(Q | qP + (1-q)Q) <= q H(Q | P) by convexity, so at every epsilon they are at most
those of the question asked of all rows: it is mu-GDP for the same mu, and mixing over the other coins keeps that. The
smaller divergences have no smaller finite GDP price (both curves share their far tails), so no amplification is claimed: a
sample saves time, not mu. With up to k rows of a person, each with a coin of its own, the output is a mixture over which of
them were drawn, and every part of the mixture is at most k rows away: the same convexity holds. Under replace-one the old
row and the new one share their coin, and the bound is that of the whole sum. Where rows carry their persons, the coin is a
person's.

*Which coin is a row's.* SHAKE-256 of the question's secret key (``noise.keyed``) and of the row's place: which part of the
walk, which chunk of it, which row of that; for a person, of the key and their token. So a part of a walk that is walked
again, because a worker was lost, tosses the same coins, and equal rows in two parts have coins of their own. What privacy
needs is that in any one walk the coins of different rows are independent of each other and of the data: places differ, and
for whoever does not have the key the bits at different places are independent, whichever row stands there. (A row more
moves others to other places, where their coins are as independent as before: the law of the sample is the same.)

What is in the sample is scaled by 1/rate, an unbiased estimate of the sum over all rows; so is the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ..._types import Bools, Floats
from ..noise.keyed import bytes_at, fresh_key
from ..noise.sampler import bernoulli_from
from ..public_facts import PublicFacts
from .row_function import of_persons
from .sources import RowSource, recut

_OF_PEOPLE = 2**63
"""A place that no part of a walk has."""


@dataclass(frozen=True)
class Sample(RowSource):
    """A Poisson sample of another source. Its blocks are passing: predictions are not kept."""

    source: RowSource
    facts: PublicFacts
    rate: float
    key: bytes = field(default_factory=fresh_key, repr=False)
    share: int = 0
    keeps_order: bool = False

    def chunks(self, rows: int) -> Iterator[Floats]:
        """Chunks of exactly ``rows`` rows of the sample."""
        return recut(self._drawn(max(rows, 4096)), rows)

    def _drawn(self, rows: int) -> Iterator[Floats]:
        for number, chunk in enumerate(self.source.chunks(rows)):
            _, _, tokens = of_persons(chunk, self.facts)
            if tokens is None:
                yield chunk[bernoulli_from(bytes_at(self.key, self.share, number), self.rate, len(chunk))]
            else:
                yield chunk[self._of_people(tokens)]

    def _of_people(self, tokens: Floats) -> Bools:
        """The coin of everybody, at each of their rows."""
        people, places = np.unique(tokens, return_inverse=True)
        names = people.view(np.uint64).tolist()
        coins = [bernoulli_from(bytes_at(self.key, _OF_PEOPLE, name), self.rate, 1)[0] for name in names]
        return np.array(coins, dtype=np.bool_)[places]

    @property
    def base(self) -> RowSource:
        """As of the source."""
        return self.source.base

    def over(self, base: RowSource, share: int) -> RowSource:
        """The same sample of a part of the rows, with coins of its own."""
        return replace(self, source=self.source.over(base, share), share=share)

    def state(self) -> object:
        """As of the source."""
        return self.source.state()

    def check(self) -> None:
        """As the source does."""
        self.source.check()
