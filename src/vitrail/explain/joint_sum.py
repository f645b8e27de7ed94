"""Several explanations in one noisy sum, and the histograms that it is planned from.

A *summand* contributes some blocks of numbers per row. Each block b is clipped to its own bound B_b in L2 norm, here, on
every row, and scaled by sqrt(share_b) / B_b. The whole vector of a row then has norm at most sqrt(sum of shares) = 1 (shares
are normalised), so the sum is one :class:`BoundedSum` with bound 1 (2 under replace-one), which the vault enforces again.
Noise of standard deviation sigma on the sum is noise of sigma B_b / sqrt(share_b) on block b in its own units: a block pays
for its bound and its share and for nothing else, exactly as if it had been asked alone at the price mu sqrt(share_b). One
question instead of many makes one pass over the rows and one line on the bill. Test:
tests/explain/effects/test_effects_joint.py.

Recipes with a joint sum begin with ``released_rows`` of all columns (nothing is asked where rows or marginals are given),
plan from them and the public model, and end with ``ask_joint`` for all of the price that is left. Sums are divided by the
noisy count of those rows. A sum over a sample of the rows is off by more than its noise: ``split`` adds that (``sampling``).
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from .. import _checks
from .._types import Floats
from ..accounting import JsonValue
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..model import Model
from ..results.marginals import Marginals
from ..results.private_rows import PrivateRows
from ..solve.curves.assemble import Receipt
from ..solve.curves.reference import Reference
from ..solve.rows.network import MOST_SURVEYED
from ..solve.sampling import sampling_notes, sampling_variance
from ..vault import Block, BoundedSum, PrivateData
from .marginals import marginals_bins, marginals_question
from .private_rows import private_rows_recipe
from .recipe import Ask, Conversation, GlobalExplainer, Recipe, Terms, cost_of, scaled, sigma_of
from .sampled import checked_rate

R = TypeVar("R")
RowFunction: TypeAlias = Callable[[Block], Floats]
Measured: TypeAlias = tuple[Floats, Floats]
"""Means over rows, and the standard deviation of the noise on each of them."""

Estimate = Literal["smooth", "plain"]
"""Noisy means combined with what private rows and the public model say, or as they are."""
PLANNING_SHARE = 0.12
"""Of mu squared: private rows that a sum is only planned from need little."""
LEAST_ROWS_SHARE, MOST_ROWS_SHARE, ROWS_ENOUGH = 0.1, 0.8, 125.0
"""Of mu squared, for private rows that results are combined with; the last is how much n_rows_public * mu, over the root of
the number of columns, is enough for all to go to the sum."""
FOCUS_PART, FOCUS_BINS = 0.5, 400
"""Of the histograms' price, for a finer one of the columns asked about alone, where they are few: local effects are cut by
it, and noise grows with the number of columns counted."""
MARGINALS_BINS = 100
MOST_EXPLAINED = 1_000
"""Columns of one joint sum."""
ROUNDING = 1.0 + 1e-12
"""The bound of a joint sum is 1, and a hair: rounding must not clip rows that reach it."""


# --- the sum ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockSpec:
    """One block of a summand: how many numbers, their L2 bound per row, and the weight of its claim on the price.

    ``squares``: of every number, its mean square over rows as reference rows have it, for what a sample of the rows adds to
    the error; if not given, the bound's own, in equal parts.
    """

    size: int
    bound: float
    share: float = 1.0
    squares: tuple[float, ...] | None = None

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

    def question(self, label: str) -> BoundedSum:
        """The sum to ask for."""
        return BoundedSum(self, sum(spec.size for spec, _ in self.scaled), ROUNDING, label=label)

    def split(self, value: Floats, sigma: float, n_rows: float, sampling_rate: float = 1.0) -> list[Measured]:
        """By summand: means over rows in its own units, and the standard deviation of the error on each of them.

        That is the noise, the same for all numbers of a block, and what a sample of the rows adds.
        """
        units = np.concatenate([np.full(spec.size, spec.bound / math.sqrt(share) / n_rows) for spec, share in self.scaled])
        squares = np.concatenate(
            [
                np.full(spec.size, spec.bound**2 / spec.size)
                if spec.squares is None
                else np.minimum(spec.bound**2, spec.squares)
                for spec, _ in self.scaled
            ]
        )
        stds = np.sqrt((sigma * units) ** 2 + sampling_variance(sampling_rate, squares, n_rows))
        ends = np.cumsum([sum(spec.size for spec in summand.blocks) for summand in self.summands])[:-1]
        return list(zip(np.split(value * units, ends), np.split(stds, ends), strict=True))


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
        Below 1, each row is looked at with this probability, by every question: sooner, noisier, and no cheaper. What the
        choice of the rows adds is in the bands.
    key : str, optional
        A name for a model or a loss that is a bare function, so that asking again replays the stored releases.
    """

    KIND: ClassVar[str]
    data: PrivateData
    model: Model
    _: KW_ONLY
    marginals: Marginals | PrivateRows | None = None
    sampling_rate: float = 1.0
    key: str | None = None
    label: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.check_inputs(self.model)
        self.label, self.sampling_rate = self.KIND, checked_rate(self.sampling_rate)
        if self.marginals is None:
            return
        if not isinstance(self.marginals, Marginals | PrivateRows):
            raise InvalidInput(
                f"marginals is {type(self.marginals).__name__}; give what vt.marginals or vt.private_rows returned"
            )
        if (theirs := self.marginals.guarantee.neighbours) != self.data.neighbours:
            raise InvalidInput(
                f"marginals has a promise about {theirs!r} neighbours, and {self.data.name!r} is about "
                f"{self.data.neighbours!r} ones; the two cannot be added up"
            )

    def names_of(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Names of declared columns, each once; all of them for None. The model is asked about each, for every row."""
        names = _checks.names("columns", columns, self.data.feature_schema.names)
        if len(names) > MOST_EXPLAINED:
            raise InvalidInput(
                f"{self.KIND} of {len(names)} columns is asked for, and at most {MOST_EXPLAINED} are answered for at once; "
                "name the ones that matter with columns= (and leave curves and importance out of a pane's parts=)"
            )
        return names

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
        named = {"kind": self.KIND, "version": 5, "model": model, "marginals": histograms, **(options or {})}
        identity = None if model is None or options is None else named
        seen = self.marginals.marginals if isinstance(self.marginals, PrivateRows) else self.marginals
        given = self.data, self.recipe, self.label, identity
        return Conversation(*given, models=(self.model,), seen=seen, sampling_rate=self.sampling_rate)

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
    releases : tuple
        What this recipe asked for. The result rests on them and, where they were given, on the rows or histograms.
    spent : float
        Their share of mu squared.
    """

    terms: Terms
    reference: Reference
    releases: tuple[Release | PrivateRows, ...]
    spent: float


def released_rows(
    terms: Terms,
    model: Model,
    given: Marginals | PrivateRows | None,
    *,
    share: float | None = None,
    focus: Sequence[str] = (),
) -> Recipe[Groundwork]:
    """Private rows of all features, and a finer histogram of the columns in ``focus`` if they are at most half of them."""
    schema = terms.feature_schema
    if isinstance(given, Marginals):
        return Groundwork(terms, Reference(schema, model, given, None, terms.public_rows), (), 0.0)
    share = 0.0 if given is not None else rows_share(terms) if share is None else share
    fine = share * FOCUS_PART if 0 < 2 * len(focus) <= schema.n_columns else 0.0
    rows, finer = given, None
    used: list[Release | PrivateRows] = []
    if rows is None:
        inner = private_rows_recipe(terms.scaled(share - fine), columns=schema.names, bins=MARGINALS_BINS)
        rows = yield from scaled(inner, share - fine)
        used.append(rows)
    if fine:
        bins = marginals_bins(terms.schema, focus, FOCUS_BINS)
        counted = yield Ask(
            marginals_question(terms.schema, focus, FOCUS_BINS), fine, "histograms of the columns asked about"
        )
        finer = Marginals.of_release(counted, bins, terms.n_rows_public)
        used.append(counted)
    reference = Reference(schema, model, rows.marginals, finer, terms.public_rows, rows)
    return Groundwork(terms, reference, tuple(used), share)


def rows_share(terms: Terms) -> float:
    """Of mu squared, for the private rows that everything else leans on: more where rows are few and the price is low.

    There, noise hides single rows' curves, and what can be told follows from the columns' distributions.
    """
    little = ROWS_ENOUGH * math.sqrt(terms.feature_schema.n_columns) * terms.noise_of_mean()
    return min(MOST_ROWS_SHARE, max(LEAST_ROWS_SHARE, little))


def ask_joint(
    ground: Groundwork, summands: Sequence[Summand], weights: Sequence[float], label: str
) -> Recipe[tuple[list[Measured], Receipt]]:
    """Ask for all summands in one question, for all that is left of the price.

    Returns by summand its means and the noise on them, and the receipt of everything that was used.
    """
    joint = JointSum(tuple(summands), tuple(weights))
    release, rate = (yield Ask(joint.question(label), 1 - ground.spent, label)), ground.terms.sampling_rate
    releases = (*ground.releases, release)
    promise = ground.terms.promise(ground.reference.marginals, *releases)
    private = ground.reference.private
    independent = private is not None and len(private.columns) > MOST_SURVEYED
    receipt = Receipt(promise, cost_of(releases), ground.reference.rows_counted, sampling_notes(rate), independent)
    return joint.split(release.value, sigma_of(release), ground.reference.n_rows, rate), receipt
