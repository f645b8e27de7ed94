"""Select: choose one of several candidates by a private score.

The exponential mechanism, P(j) ~ exp(epsilon score_j / (2 s)), where one neighbour step moves any score by at most s. It is
epsilon-bounded-range and costs mu = -2 ndtri(1/(1 + e^(epsilon/2))) (see ``accounting.events``). score_j is the sum over
rows of a number clipped to [-bound, bound]: s = bound add-remove, 2 bound replace-one, k times that where a person has up
to k rows (``accounting.neighbours``); where rows carry their persons, each of j rows counts a j-th, rounded towards zero.
Scores are exact integers, so s holds exactly.

The draw is exact as well: the weights exp(.) are computed as integers with ``WEIGHT_BITS`` bits by a series with a known
remainder, and a uniform integer of ``UNIFORM_BITS`` bits, drawn before the rows are read, picks one. The distribution is
within candidates * 2**(4 - WEIGHT_BITS) of the true one. Test: tests/vault/test_select.py enumerates the probabilities.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...accounting import Selection, bounded_range_epsilon_of
from ..engines.row_pass import RowPass, Summation
from ..noise.sampler import random_integer_below
from ..public_facts import PublicFacts
from ..rows.block import Arrays, Block, Counted
from ..rows.predictions import Predictions
from ..rows.row_function import RowFunction
from ..sums.grid import Grid, power_of_two_below, to_grid
from .question import Answer, RowQuestion

WEIGHT_BITS = 256
UNIFORM_BITS = 512
CELLS_PER_BOUND = 2**20


@dataclass(frozen=True)
class Select(RowQuestion):
    """Choose one of ``candidates`` with a high score, privately.

    Parameters
    ----------
    fn : callable
        Takes a :class:`Block`; returns (rows, candidates) numbers. A candidate's score is the sum of its numbers.
    candidates : int
        How many there are. The released value is the index of the chosen one.
    bound : float
        Every number is clipped to [-bound, bound].
    key, label, rate : optional
        As for :class:`BoundedSum`; the scores of a sample are that much lower, and the choice is that much noisier.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"team": vt.Categorical(["red", "blue"])})
    >>> rows = {"team": np.array(["red"] * 400 + ["blue"] * 100)}
    >>> data = vt.PrivateData(rows, schema, name="teams", n_rows_public=500, budget=vt.Budget(1, 1e-6))
    >>> winner = data.ask(vt.Select(lambda block: block.features, candidates=2, bound=1.0), epsilon=0.9)
    >>> ["red", "blue"][int(winner.value[0])]
    'red'
    """

    kind = "select"
    described = ("candidates", "bound")
    fn: Callable[[Block], Floats]
    candidates: int
    bound: float
    key: str | None = None
    label: str | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        self._check(wholes={"candidates": 10**6}, positives=("bound",))
        self._check_rate()

    def row_function(self) -> RowFunction:
        """``fn``, with the shape it must return."""
        return RowFunction(self.fn, ((self.candidates,),), "the function of this Select")

    def plan(self, mu: float, facts: PublicFacts) -> SelectPlan:
        """Fix the mechanism's own epsilon."""
        step = power_of_two_below(self.bound / CELLS_PER_BOUND)
        cells = math.ceil(Fraction(self.bound) / Fraction(step)) * facts.sensitivity_factor
        return SelectPlan(self, bounded_range_epsilon_of(mu), step, cells)


@dataclass(frozen=True)
class SelectPlan:
    """A selection with its epsilon fixed; ``sensitivity_cells`` bounds what one neighbour step does to a score."""

    question: Select
    epsilon: float
    step: float
    sensitivity_cells: int
    sigma: ClassVar[None] = None
    stds: ClassVar[None] = None

    @property
    def event(self) -> Selection:
        """One bounded-range selection."""
        return Selection(self.epsilon)

    def answers(self, rows: RowPass, block_rows: int, draws: int) -> Floats:
        """Draw from the exponential mechanism over exact scores."""
        uniform = [random_integer_below(1 << UNIFORM_BITS) for _ in range(draws)]
        edges = np.cumsum(selection_weights(self.scores(rows, block_rows), self.epsilon, self.sensitivity_cells))
        return np.array([drawn(edges, u) for u in uniform], dtype=np.float64).reshape(draws, 1)

    def scores(self, rows: RowPass, block_rows: int) -> list[int]:
        """The exact score of every candidate, in cells. Never leaves the vault."""
        totals = rows.sampled(self.question.rate).totals(self, block_rows)
        return [int(score) for score in totals.exact(0)]

    def summation(self) -> Summation:
        """Scores of single rows on the grid."""
        return Summation(self.question.row_function(), self._reduce, ((self.question.candidates,),), "scoring")

    def _reduce(self, arrays: Arrays, counted: Counted) -> list[list[Floats]]:
        grid = Grid(self.question.bound, self.step, 1)
        cells = to_grid(arrays[0].reshape(-1, 1), grid).reshape(-1, self.question.candidates)
        if counted.among is not None:  # of whole numbers below 2**53: the quotient never rounds up to the next
            cells = np.trunc(cells / counted.among[:, None])
        return [[np.asarray(cells[counted.valid].sum(axis=0))]]

    def public_outputs(self) -> tuple[Floats, ...]:
        """None."""
        return ()

    def probe(self, facts: PublicFacts, predictions: Predictions) -> int:
        """Of the question."""
        return self.question.probe(facts, predictions)

    def shape(self, flat: Floats) -> Answer:
        """The index of the chosen candidate, in an array of one."""
        return Answer(flat)


def drawn(edges: NDArray[np.object_], uniform: int) -> int:
    """The number that a uniform integer of ``UNIFORM_BITS`` bits picks; ``edges`` are the running sums of the odds."""
    return int(np.searchsorted(edges, uniform * int(edges[-1]) >> UNIFORM_BITS, side="right"))


def selection_weights(scores: list[int], epsilon: float, sensitivity: int) -> NDArray[np.object_]:
    """Integers proportional to exp(epsilon * score / (2 * sensitivity)), the largest near 2**WEIGHT_BITS."""
    rate = Fraction(epsilon) / (2 * sensitivity)
    best = max(scores)
    known = {score: exp_minus(rate * (best - score), WEIGHT_BITS) for score in set(scores)}
    return np.array([known[score] for score in scores], dtype=np.object_)


def exp_minus(x: Fraction, bits: int) -> int:
    """2**bits * exp(-x) for x >= 0, rounded to within one unit.

    exp(-x) = 2**-k exp(-r), r = x - k ln 2 in [0, ln 2): the alternating series of exp(-r) is cut where its terms vanish.
    """
    guard = 64
    scale = bits + guard
    one = 1 << scale
    fixed = (x.numerator << scale) // x.denominator
    halvings = fixed // _ln2(scale)
    if halvings > bits + 1:
        return 0
    rest = fixed - halvings * _ln2(scale)
    term, total, n = one, one, 0
    while term:
        n += 1
        term = (term * rest >> scale) // n
        total += -term if n % 2 else term
    return int(total >> (guard + halvings))


@functools.cache
def _ln2(scale: int) -> int:
    """2**scale * ln 2 = sum 2**(scale - n)/n, to within a few units."""
    guard = 16
    return sum((1 << (scale + guard - n)) // n for n in range(1, scale + guard + 1)) >> guard
