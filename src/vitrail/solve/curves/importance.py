"""Permutation importance: values from other rows, and losses with a known largest value.

*Donors*: values that a column might have in another row, from released histograms. Shuffling a column would make a row's
contribution depend on other rows. Here a row gets its donors by itself: numbers in [0, 1) from a hash of the row's own
values, put through the inverse of the column's released distribution. To the model that is as good as a draw
(``coalitions`` says why), and what a row contributes is a function of that row alone. The k-th of K donors is k/K further
along, so that K of them are spread evenly over the distribution. A column of K + 1 values or fewer needs no donors: its rows
are asked about at every value, and the mean over the distribution is exact, for as many predictions and with shorter rows.

The distribution is that of private rows, or a smoothed histogram (``reference``). Post-processing, as is everything here.

*Losses*: what a prediction costs, given the target. A loss is a function of one row's target and one output, and its
largest value follows from what is declared: the target's range and the model's. Outputs are clipped to the model's range by
the vault, targets to theirs by the schema, and what a loss of the caller's own returns is clipped to [0, ``loss_bound``]
here.

*Two estimates of every importance*, from private rows with targets as the model has them and asked of the data itself, are
combined in ``combined_scores``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..._types import Floats
from ...accounting import JsonValue
from ...errors import InvalidInput
from ...model import Model
from ...model.contents import sketch
from ...schema import Categorical, Column, Level, Numeric, Schema
from ...schema.bins import Bins
from ..coalitions import rehashed
from .reference import Reference, released_bins

# Targets and outputs, both of shape (rows,), to losses of that shape, each from its own row.
LossFunction: TypeAlias = Callable[[Floats, Floats], Floats]

# Probabilities are kept this far from 0 and 1 in the logarithmic loss, which has no largest value otherwise.
SMALLEST_PROBABILITY = 1e-3
NAMES = ("squared", "absolute", "zero-one", "log")
ITSELF = NAMES[:2]
"""Losses by which outputs can be compared with the model's own, where there is no target."""
LOG_FACTOR, LOG_FACTOR_SPREAD = 0.75, 0.6
"""Of the factor by which rows that a model remembers have larger importances: expected, and how far from that."""
LOG_SPREADS = np.array([0.15, 0.25, 0.4, 0.6, 0.9])
"""By how much single columns may differ from that factor, in logarithms; the middle one is likeliest, by a factor e^(1/2)
over its neighbours. All of these were looked at on COMPAS, German credit, Framingham and 1 000 rows of Adult."""
STEPS, FREEDOM = np.linspace(-5.0, 5.0, 31), 4.0
"""Of a column's logarithm, in spreads, and how heavy its tails are: one column in twenty is another matter altogether."""


def combined_scores(scores: Floats, stds: Floats, told: Floats, doubts: Floats, *, remembers: bool) -> tuple[Floats, Floats]:
    """Importances and their standard deviations, from noisy ones and from what private rows tell.

    y_j ~ N(s_j, std_j^2) was measured of s_j = c t_j e^(w u_j) + d_j, t_j what private rows tell and d_j what these leave
    open (variance c^2 doubt_j): a model that remembers the rows it was trained on loses more by exchanging *any* of their
    columns, by one factor c, and of some columns it remembers far more than of others. u_j has Student's law, c and w are
    averaged over with the rest: where noise hides everything the order is that of t, and where it hides nothing that of y.

    Parameters
    ----------
    scores, stds : array (columns,)
        As measured, and the noise on them.
    told, doubts : array (columns,)
        What private rows tell, and the variance of that.
    remembers : bool
        Whether c may be expected to be above 1: there are targets.

    Examples
    --------
    >>> asked, noise, told = np.array([3.0, -9.0]), np.array([0.01, 100.0]), np.ones(2)
    >>> found, spread = combined_scores(asked, noise, told, np.zeros(2), remembers=True)
    >>> found.round(1).tolist(), bool(spread[0] < 0.02)
    ([3.0, 3.3], True)
    """
    steps = np.linspace(-3.0, 3.0, 31)
    factor = np.exp(LOG_FACTOR * remembers + LOG_FACTOR_SPREAD * steps)
    likely = -((np.arange(len(LOG_SPREADS)) - len(LOG_SPREADS) // 2) ** 2) / 2
    of_steps = (1 + STEPS**2 / FREEDOM) ** (-(FREEDOM + 1) / 2)
    # The law of c t e^(w u) as a mixture of narrow normal ones: (factors, spreads, steps, columns).
    middles = factor[:, None, None, None] * np.exp(LOG_SPREADS[:, None] * STEPS)[:, :, None] * told
    between = (LOG_SPREADS * (STEPS[1] - STEPS[0]))[:, None, None]
    before = (between * middles) ** 2 + factor[:, None, None, None] ** 2 * doubts
    variance = np.maximum(before + stds**2, 1e-300)
    chances = of_steps[:, None] / of_steps.sum() * np.exp(-((scores - middles) ** 2) / variance / 2) / np.sqrt(variance)
    alone = np.maximum(chances.sum(axis=2), 1e-300)  # (factors, spreads, columns)
    evidence = np.log(alone).sum(axis=2) + likely - (steps**2)[:, None] / 2
    together = np.exp(evidence - evidence.max())
    weights = (together / together.sum())[:, :, None, None] * chances / alone[:, :, None]
    gain = before / variance
    means = (1 - gain) * middles + gain * scores
    mean = (weights * means).sum(axis=(0, 1, 2))
    return mean, np.sqrt((weights * ((means - mean) ** 2 + gain * stds**2)).sum(axis=(0, 1, 2)))


def _allowed(column: Numeric, values: Floats) -> Floats:
    return np.asarray(np.clip(np.round(values) if column.integer else values, column.low, column.high))


@dataclass(frozen=True, eq=False)
class Donor:
    """The distribution of one column, known by its index: running sums of the shares of its bins, the last of which is 1."""

    column: int
    declared: Column
    bins: Bins
    cumulated: Floats

    @classmethod
    def of(cls, reference: Reference, name: str) -> Donor:
        """From the released distribution of a column."""
        schema, shares = reference.schema, reference.shares(name)
        bins = released_bins(reference.histogram(name), name)
        return cls(schema.column_index(name), schema[name], bins, np.cumsum(shares) / shares.sum())

    def at(self, shares: Floats) -> Floats:
        """Values below which these shares of the distribution lie."""
        chosen = np.minimum(np.searchsorted(self.cumulated, shares, side="right"), len(self.cumulated) - 1)
        if isinstance(self.declared, Categorical):
            return chosen.astype(np.float64)
        start, edges = np.concatenate([[0.0], self.cumulated])[chosen], np.asarray(self.bins.edges)
        inside = (shares - start) / np.maximum(self.cumulated[chosen] - start, 1e-300)
        interval = np.minimum(chosen, self.bins.n_intervals - 1)
        values = edges[interval] + np.clip(inside, 0.0, 1.0) * (edges[interval + 1] - edges[interval])
        return self.bins.or_codes(chosen, _allowed(self.declared, values))

    @property
    def ordered(self) -> bool:
        """Whether neighbouring bins are alike: all of them are intervals of numbers."""
        return isinstance(self.declared, Numeric) and not self.bins.codes

    @property
    def shares(self) -> Floats:
        """The share of every bin."""
        return np.diff(self.cumulated, prepend=0.0)

    @property
    def middles(self) -> Floats:
        """A value from the middle of every bin, and the codes; or the levels."""
        if isinstance(self.declared, Categorical):
            return np.arange(len(self.cumulated), dtype=np.float64)
        edges = np.asarray(self.bins.edges)
        return np.concatenate([_allowed(self.declared, (edges[1:] + edges[:-1]) / 2), self.bins.codes])

    def exact(self, repeats: int) -> bool:
        """Whether rows meet every value of the column, each with its share, instead of donors: at most one more."""
        bins = len(self.cumulated)
        if isinstance(self.declared, Categorical):
            return bins <= repeats + 1
        single = self.declared.integer and bool((np.diff(np.asarray(self.bins.edges)) <= 1).all())
        return single and bins <= repeats + 1

    def values(self, hashes: NDArray[np.uint64], repeats: int) -> Floats:
        """What a row's value is exchanged for: (values, 1) for all rows, or (rows, repeats, 1)."""
        return self.middles[:, None] if self.exact(repeats) else np.stack(self.draws(hashes, repeats), axis=1)[:, :, None]

    def weights(self, repeats: int) -> Floats:
        """Of the values that a row's is exchanged for, adding up to 1."""
        return self.shares if self.exact(repeats) else np.full(repeats, 1 / repeats)

    def draws(self, hashes: NDArray[np.uint64], repeats: int) -> list[Floats]:
        """``repeats`` donors for each row, from a hash of the row's own values."""
        key = int.from_bytes(hashlib.sha256(f"vitrail importance 2 {self.column}".encode()).digest()[:8], "little")
        first: Floats = (rehashed(hashes, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return [self.at((first + repeat / repeats) % 1.0) for repeat in range(repeats)]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss from 0 to ``largest``, and how targets become numbers.

    ``positive`` is the level that counts as 1 where the target is categorical, None where it is a number; ``binary``:
    the target is 0 or 1. ``own``: it is a function of the caller's own. ``itself``: there is no target, and outputs are
    compared with those of the row as it is.
    """

    name: str
    largest: float
    positive: int | None
    binary: bool
    _function: LossFunction
    own: bool = False
    itself: bool = False

    def identity(self, key: str | None) -> list[JsonValue] | None:
        """What tells it from every other loss; None for a function that the caller gave no ``key``: two may have one name.

        With a key it is what can be known of the function (``model.contents.sketch``), so that asking again replays.
        """
        if self.own and key is None:
            return None
        return [self.name, self.largest, self.positive, sketch(self._function) if self.own else ""]

    def numbers(self, target: Floats) -> Floats:
        """The target as numbers: as it is, or 1 where it is the positive level and 0 elsewhere."""
        return target if self.positive is None else (target == self.positive).astype(np.float64)

    def __call__(self, target: Floats, output: Floats) -> Floats:
        """Losses in [0, largest]; NaN where an output is NaN."""
        losses = np.asarray(self._function(target, output), dtype=np.float64)
        if losses.shape != np.shape(output):
            raise InvalidInput(
                f"the loss {self.name} returned an array of shape {losses.shape} for {np.shape(output)} outputs; it must "
                "return one loss for each"
            )
        return np.clip(losses, 0.0, self.largest)


def loss_of(
    loss: str | LossFunction, loss_bound: float | None, model: Model, schema: Schema, target: str | None, positive: object
) -> Loss:
    """The loss that is meant, or an error that says what is missing.

    Examples
    --------
    >>> from vitrail.schema import Numeric
    >>> model = Model(lambda x: x[:, 0], range=(0, 1), name="risk")
    >>> loss_of("squared", None, model, Schema({"y": Numeric(-1, 1)}), "y", None).largest
    4.0
    """
    if target is None:
        if loss not in ITSELF:
            raise InvalidInput(
                f"loss is {loss!r} and this dataset declares no target; without one outputs are compared with the model's "
                f"own, by {' or '.join(map(repr, ITSELF))}; or give PrivateData(target=...)"
            )
        largest, function = (model.width**2, _squared) if loss == "squared" else (model.width, _absolute)
        return Loss(f"{loss} (without a target)", largest, None, False, function, itself=True)
    column, positive_level = schema[target], None
    if isinstance(column, Categorical):
        positive_level, (low, high), binary = level_meant(column, target, model, positive), (0.0, 1.0), True
    elif positive is not None:
        raise InvalidInput(f"positive is {positive!r}, but the target {target!r} is a number; leave it out")
    elif column.codes:
        raise InvalidInput(f"the target {target!r} has codes, which no output can be compared with; declare it without them")
    else:
        low, high = float(column.low), float(column.high)
        binary = column.integer and (low, high) == (0.0, 1.0)
    if not isinstance(loss, str) and callable(loss):
        return _own(loss, loss_bound, positive_level, binary)
    if loss not in NAMES:
        raise InvalidInput(f"loss is {loss!r}; choose one of {', '.join(map(repr, NAMES))}, or give a function")
    if loss_bound is not None:
        raise InvalidInput(f"loss_bound is for a loss of your own; that of {loss!r} follows from the declared ranges")
    furthest = max(high - model.lo, model.hi - low)
    if loss == "squared":
        return Loss(loss, furthest**2, positive_level, binary, _squared)
    if loss == "absolute":
        return Loss(loss, furthest, positive_level, binary, _absolute)
    if not binary or model.lo < 0 or model.hi > 1:
        raise InvalidInput(
            f"the {loss} loss needs a target of two values, 0 and 1, and a model of probabilities; {target!r} lies in "
            f"[{low:g}, {high:g}] and the model in [{model.lo:g}, {model.hi:g}]"
        )
    if loss == "zero-one":
        return Loss(loss, 1.0, positive_level, binary, lambda y, f: np.where(np.isnan(f), f, (f >= 0.5) != (y >= 0.5)))
    return Loss(loss, -math.log(SMALLEST_PROBABILITY), positive_level, binary, _log)


def _squared(y: Floats, f: Floats) -> Floats:
    return np.asarray((y - f) ** 2)


def _absolute(y: Floats, f: Floats) -> Floats:
    return np.asarray(np.abs(y - f))


def _log(y: Floats, f: Floats) -> Floats:
    inside = np.clip(f, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    return np.asarray(-(y * np.log(inside) + (1 - y) * np.log1p(-inside)))


def _own(loss: LossFunction, bound: object, positive_level: int | None, binary: bool) -> Loss:
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < math.inf:
        raise InvalidInput(
            f"loss_bound is {bound!r}; a loss of your own needs the largest value it can have, a positive number, because "
            "noise is scaled to it"
        )
    return Loss(getattr(loss, "__name__", "own"), float(bound), positive_level, binary, loss, own=True)


def level_meant(column: Categorical, target: str, model: Model, given: object) -> int:
    """The level whose probability the model gives."""
    levels: list[Level] = list(column.levels)
    if given in levels:
        return levels.index(given)
    if given is not None:
        raise InvalidInput(f"positive is {given!r}; choose a level of {target!r}: {', '.join(map(repr, levels))}")
    if model.output in levels:
        return levels.index(model.output)
    if len(levels) == 2 and model.output in (None, 1, True):
        return 1
    raise InvalidInput(
        f"the model's output is {model.output!r}, which is no level of the target {target!r}; say with positive= which of "
        f"{', '.join(map(repr, levels))} it stands for"
    )
