"""Several explanations in one noisy sum, and the histograms that it is planned from.

A *summand* contributes some blocks of numbers per row. Each block b is clipped to its own bound B_b in L2 norm, here, on
every row, and scaled by sqrt(share_b) / B_b. The whole vector of a row then has norm at most sqrt(sum of shares) = 1 (shares
are normalised), so the sum is one :class:`BoundedSum` with bound 1 (2 under replace-one), which the vault enforces again.
Noise of standard deviation sigma on the sum is noise of sigma B_b / sqrt(share_b) on block b in its own units: a block pays
for its bound and its share and for nothing else, exactly as if it had been asked alone at the price mu sqrt(share_b). One
question instead of many makes one pass over the rows and one line on the bill. Test:
tests/explain/effects/test_effects_joint.py.

Recipes with a joint sum begin with ``released_histograms`` of all columns (nothing is asked where marginals are given),
plan from them and the public model, and end with ``ask_joint`` for all of the price that is left.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..model import Model
from ..results.marginals import Marginals
from ..solve.curves.assemble import Receipt
from ..solve.curves.reference import Reference
from ..vault import Block, BoundedSum, PrivateData
from .marginals import marginals_bins, marginals_question
from .recipe import Ask, Conversation, GlobalExplainer, Recipe, Terms, cost_of, sigma_of

R = TypeVar("R")
RowFunction: TypeAlias = Callable[[Block], Floats]
Measured: TypeAlias = tuple[Floats, Floats]
"""Means over rows, and the standard deviation of the noise on each of them."""

MARGINALS_SHARE = 0.12
"""Of mu squared: the histogram of all columns needs little, and everything else leans on it."""
FOCUS_PART, FOCUS_BINS = 0.5, 400
"""Of the histograms' price, for a finer one of the columns asked about alone, where they are few: local effects are cut by
it, and noise grows with the number of columns counted."""
MARGINALS_BINS = 100
ROUNDING = 1.0 + 1e-12
"""The bound of a joint sum is 1, and a hair: rounding must not clip rows that reach it."""


# --- the sum ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockSpec:
    """One block of a summand: how many numbers, their L2 bound per row, and the weight of its claim on the price."""

    size: int
    bound: float
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.bound < math.inf or not 0 < self.share < math.inf:
            raise InvalidInput(f"a block of a joint sum is {self}; it needs a positive size, bound and share")


class Summand(Protocol):
    """What one explanation wants to know of every row."""

    @property
    def blocks(self) -> tuple[BlockSpec, ...]:
        """Its blocks, in the order of their numbers."""
        ...

    def contributions(self, block: Block) -> Floats:
        """(rows, sum of sizes), each row from that row alone; not yet clipped."""
        ...


@dataclass(frozen=True, eq=False)
class JointSum:
    """Summands with their weights, as one function of a block of rows."""

    summands: tuple[Summand, ...]
    weights: tuple[float, ...]

    @property
    def scaled(self) -> tuple[tuple[BlockSpec, float], ...]:
        """Every block with its normalised share of mu squared; a summand's own shares add up to its weight."""
        claims = [
            (block, weight * block.share / sum(other.share for other in summand.blocks))
            for summand, weight in zip(self.summands, self.weights, strict=True)
            for block in summand.blocks
        ]
        total = sum(claim for _, claim in claims)
        return tuple((block, claim / total) for block, claim in claims)

    def __call__(self, block: Block) -> Floats:
        """Clipped and scaled contributions."""
        rows = np.concatenate([summand.contributions(block) for summand in self.summands], axis=1)
        start = 0
        for spec, share in self.scaled:
            columns = rows[:, start : start + spec.size]
            norms = np.sqrt(np.einsum("ij,ij->i", columns, columns))
            # A row over its bound is scaled to it; NaN stays NaN, and the vault counts such a row as zero.
            columns *= (np.minimum(1.0, spec.bound / np.maximum(norms, 1e-300)) * (math.sqrt(share) / spec.bound))[:, None]
            start += spec.size
        return rows

    def question(self, label: str, sampling_rate: float = 1.0) -> BoundedSum:
        """The sum to ask for."""
        return sum_question(self, sum(spec.size for spec, _ in self.scaled), ROUNDING, sampling_rate, label=label)

    def split(self, value: Floats, sigma: float, n_rows: float) -> list[Measured]:
        """By summand: means over rows in its own units, and the standard deviation of the noise on each of them."""
        units = np.concatenate([np.full(spec.size, spec.bound / math.sqrt(share) / n_rows) for spec, share in self.scaled])
        ends = np.cumsum([sum(spec.size for spec in summand.blocks) for summand in self.summands])[:-1]
        return list(zip(np.split(value * units, ends), np.split(sigma * units, ends), strict=True))


def sum_question(
    fn: RowFunction, size: int, l2_bound: float, rate: float, *, replace_bound: float | None = None, label: str | None = None
) -> BoundedSum:
    """The sum over all rows, or over a sample of them where the rate is below 1."""
    bounds = {"rate": rate} if rate < 1 else {"replace_bound": replace_bound}
    return BoundedSum(fn, size, l2_bound, label=label, **bounds)


# --- what explainers with a joint sum share --------------------------------------------------------------------------


@dataclass(eq=False)
class JointExplainer(GlobalExplainer[R]):
    """An explainer whose answer comes from one joint sum: the arguments that all of them take.

    A subclass declares its own options as fields, and in ``__post_init__`` checks them and leaves them as JSON values:
    they are what makes two explainers the same question.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained.
    marginals : Marginals, optional
        Histograms that were paid for before; otherwise some of the price goes there.
    sampling_rate : float
        Below 1, each row is looked at with this probability: cheaper for a slow model, noisier.
    key : str, optional
        A name for a model or a loss that is a bare function, so that asking again replays the stored releases.
    """

    KIND: ClassVar[str]
    data: PrivateData
    model: Model
    _: KW_ONLY
    marginals: Marginals | None = None
    sampling_rate: float = 1.0
    key: str | None = None
    label: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.check_inputs(self.model)
        self.label, self.sampling_rate = self.KIND, _checks.fraction("sampling_rate", self.sampling_rate)
        if self.marginals is None:
            return
        if not isinstance(self.marginals, Marginals):
            raise InvalidInput(f"marginals is {type(self.marginals).__name__}; give what vt.marginals(data, ...) returned")
        if (theirs := self.marginals.guarantee.neighbours) != self.data.neighbours:
            raise InvalidInput(
                f"marginals has a promise about {theirs!r} neighbours, and {self.data.name!r} is about "
                f"{self.data.neighbours!r} ones; the two cannot be added up"
            )

    def names_of(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Names of declared columns, each once; all of them for None."""
        return _checks.names("columns", columns, self.data.feature_schema.names)

    def columns_and_pairs(
        self, columns: Sequence[str | tuple[str, str]] | None
    ) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Names of declared columns, and pairs of two different ones; all columns and no pair for None."""
        mixed = isinstance(columns, Sequence) and not isinstance(columns, str)
        pairs = [pair for pair in columns or () if isinstance(pair, tuple | list)] if mixed else []
        if not pairs:
            return self.names_of(columns), ()  # type: ignore[arg-type]
        for pair in pairs:
            if len(pair) != 2:
                raise InvalidInput(f"columns names {pair!r}; name a column, or a pair of columns such as ('age', 'sex')")
            self.names_of(list(dict.fromkeys(pair)))
            if pair[0] == pair[1]:
                raise InvalidInput(f"a pair in columns is ({pair[0]!r}, {pair[1]!r}); name two different columns")
        if len({frozenset(pair) for pair in pairs}) < len(pairs):
            raise InvalidInput("columns names a pair twice; name each pair once")
        names = [name for name in columns or () if not isinstance(name, tuple | list)]
        return self.names_of(names) if names else (), tuple((pair[0], pair[1]) for pair in pairs)

    def conversation(self) -> Conversation[R]:
        """Histograms, then one joint sum."""
        model, options = self.model.identity(self.data.feature_schema, self.key), self.options()
        histograms = None if self.marginals is None else hashlib.sha256(self.marginals.to_bytes()).hexdigest()
        named = {"kind": self.KIND, "version": 1, "model": model, "marginals": histograms, **(options or {})}
        identity = None if model is None or options is None else named
        return Conversation(self.data, self.recipe, self.label, identity, models=(self.model,), seen=self.marginals)

    def options(self) -> dict[str, JsonValue] | None:
        """Everything public that makes it this question, besides data, model and histograms; None if that has no name."""
        return self.options_but("marginals", "label")

    @abstractmethod
    def recipe(self, terms: Terms) -> Recipe[R]:
        """The questions, and what is made of their answers."""


@dataclass(frozen=True, eq=False)
class Groundwork:
    """What a joint sum is planned from, and what was spent on it.

    Attributes
    ----------
    terms : Terms
        Of the recipe.
    reference : Reference
        Released histograms, schema and model.
    releases : tuple of Release
        What this recipe asked for. The result rests on them and, where they were given, on the histograms.
    spent : float
        Their share of mu squared.
    """

    terms: Terms
    reference: Reference
    releases: tuple[Release, ...]
    spent: float


def released_histograms(
    terms: Terms, model: Model, given: Marginals | None, *, share: float = MARGINALS_SHARE, focus: Sequence[str] = ()
) -> Recipe[Groundwork]:
    """Histograms of all columns, and once more, finer, of those in ``focus`` if they are at most half of them."""
    n_rows = terms.n_rows_public
    wanted: list[tuple[tuple[str, ...] | None, int, float]] = [(None, MARGINALS_BINS, share)]
    if 0 < 2 * len(focus) <= len(terms.schema.names):
        wanted = [(None, MARGINALS_BINS, share * (1 - FOCUS_PART)), (tuple(focus), FOCUS_BINS, share * FOCUS_PART)]
    releases, made = [], []
    for columns, bins, part in wanted if given is None else ():
        label = "histograms of all columns" if columns is None else "histograms of the columns asked about"
        releases.append((yield Ask(marginals_question(terms.schema, columns, bins), part, label)))
        made.append(Marginals.of_release(releases[-1], marginals_bins(terms.schema, columns, bins), n_rows))
    marginals, *focused = made if given is None else [given]
    finer = next(iter(focused), None)
    reference = Reference(terms.feature_schema, model, marginals, float(n_rows), finer, terms.public_rows)
    return Groundwork(terms, reference, tuple(releases), share if releases else 0.0)


def ask_joint(
    ground: Groundwork, summands: Sequence[Summand], weights: Sequence[float], label: str, sampling_rate: float
) -> Recipe[tuple[list[Measured], Receipt]]:
    """Ask for all summands in one question, for all that is left of the price.

    Returns by summand its means and the noise on them, and the receipt of everything that was used.
    """
    joint = JointSum(tuple(summands), tuple(weights))
    release = yield Ask(joint.question(label, sampling_rate), 1 - ground.spent, label)
    releases = (*ground.releases, release)
    receipt = Receipt(ground.terms.promise(ground.reference.marginals, *releases), cost_of(releases))
    return joint.split(release.value, sigma_of(release), ground.reference.n_rows), receipt
