"""The private picture of a model's classes: what was released, and what follows from it. No vault, no ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from .._types import Bools, Figure, Floats, Indices
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..schema import Level, Numeric, Schema
from ..schema.bins import Bins, values_in
from ..solve.counterfactual.codes import AnyCode
from .band_claim import TWO_SIDED_95, BandClaim
from .base import Frame, Result, show
from .checks import frozen_numbers
from .marginals import nearest_shares
from .private_rows import PrivateRows
from .row_count import RowCount
from .verdict import Judgement, judge_sizes, sentences

By: TypeAlias = Literal["predictions", "labels"]
CODE_SHARE = 0.5
"""Of mu squared, for the codes where columns are counted too."""
OVER_NOISE = 3.0
"""A count that exceeds so many standard deviations of its noise is used."""


class BlockWeights(NamedTuple):
    """What the two blocks of a row's contribution are multiplied by: 2 codes^2 + columns counts^2 = 1."""

    codes: float
    counts: float


def block_weights(columns: int) -> BlockWeights:
    """The weights where so many columns are counted by class; 0 for codes alone.

    Examples
    --------
    >>> weights = block_weights(2)
    >>> round(2 * weights.codes**2 + 2 * weights.counts**2, 9)
    1.0
    """
    codes = CODE_SHARE if columns else 1.0
    return BlockWeights(math.sqrt(codes / 2), math.sqrt((1 - codes) / max(columns, 1)))


@dataclass(frozen=True, eq=False, repr=False)
class ClassPicture(Result, stored_as="class-picture/1"):
    """Releases about the classes of a model: prototypes, distributions of columns, private rows.

    Attributes
    ----------
    dataset : str
        Whose.
    schema : Schema
        The columns that the model reads.
    labels : tuple
        The classes.
    threshold : float
        Of a single output: at least this is the second class.
    by : {"predictions", "labels"}
        Whose classes: the model's, or the target column's.
    models : tuple of str or None
        Content hashes of the models; None for a function, which has none.
    scale : float
        Features are divided by it, and rows cut to length 1.
    code : Code, IdentityCode or NetworkCode
        What was computed from releases before the prototypes were asked for, kept as it was: eigenvectors are not the same
        to the last bit on every machine.
    sums : array (classes, width)
        Released: code, count and bins of each class, weighted.
    sums_sigma : float
        Standard deviation of the noise on them.
    bins : tuple of Bins
        How columns are counted by class; empty where they are not.
    rows : PrivateRows or None
        Rows that look like the data's, where they were paid for.
    n_rows_public : int
        The declared row count.
    cost : Cost
        What was charged for all of it.
    guarantee : Guarantee
        The promise for all of it, and for every counterfactual found with it.
    """

    band_claim: ClassVar[BandClaim] = BandClaim.NOISE_LAW_95
    dataset: str
    schema: Schema
    labels: tuple[Level, ...]
    threshold: float
    by: By
    models: tuple[str | None, ...]
    scale: float
    code: AnyCode
    sums: Floats
    sums_sigma: float
    bins: tuple[Bins, ...]
    rows: PrivateRows | None
    n_rows_public: int
    cost: Cost
    guarantee: Guarantee

    def __post_init__(self) -> None:
        self._check_fields("a class picture")
        columns = tuple(column.name for column in self.bins)
        of_rows = self.schema.names if self.rows is None else self.rows.schema.names
        if columns not in ((), self.schema.names) or of_rows != self.schema.names:
            raise InvalidInput("the bins and private rows of a class picture must be about the columns of its schema")
        if self.code.features != self.schema.n_features:
            raise InvalidInput("the code of a class picture must be of the features of its schema")
        shape = (len(self.labels), self.code.size + 1 + sum(map(len, self.bins)))
        self._fix(sums=frozen_numbers(self.sums, shape, "sums"))

    def check_read(self) -> None:
        """Refuse noise, scales and row counts that nothing can be divided by."""
        if not all(0 < amount < math.inf for amount in (self.sums_sigma, self.scale, self.n_rows_public)):
            raise InvalidInput("its noise, its scale or its row count is no positive number")

    def __repr__(self) -> str:
        return f"ClassPicture({self.dataset}, classes {', '.join(map(repr, self.labels[:6]))}, {self.guarantee.brief})"

    @cached_property
    def weights(self) -> BlockWeights:
        """What the sums were weighted by."""
        return block_weights(len(self.bins))

    @cached_property
    def counts(self) -> Floats:
        """Noisy numbers of rows by class."""
        return np.asarray(self.sums[:, self.code.size] / self.weights.codes)

    @property
    def counts_sigma(self) -> float:
        """Standard deviation of the noise on ``counts``."""
        return self.sums_sigma / self.weights.codes

    @cached_property
    def rows_counted(self) -> RowCount:
        """How many rows count, all classes together, against the declared number."""
        return RowCount.of_partitions([self.counts], self.counts_sigma, self.n_rows_public)

    @property
    def half_width(self) -> float:
        """Half-width of the noise band of a class's row count."""
        return TWO_SIDED_95 * self.counts_sigma

    @cached_property
    def known(self) -> Bools:
        """Which classes stand out of the noise."""
        return np.asarray(self.counts > OVER_NOISE * self.counts_sigma)

    @cached_property
    def prototypes(self) -> Floats:
        """The mean code of each class, (classes, code size); of all rows where a class is lost in the noise."""
        codes = self.sums[:, : self.code.size] / self.weights.codes
        overall = codes.sum(axis=0) / max(float(self.counts.sum()), 1.0)
        means = np.where(self.known[:, None], codes / np.maximum(self.counts, 1.0)[:, None], overall)
        return np.asarray(means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1.0))

    @cached_property
    def prototype_features(self) -> Floats:
        """The prototypes as features in [0, 1], (classes, features)."""
        return np.clip(self.code.decode(self.prototypes) * self.scale, 0.0, 1.0)

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands of the row counts claim."""
        return (self.band_claim.sentence(),)

    def _judge(self) -> Judgement:
        """The row counts of the classes, measured from 0."""
        return judge_sizes(self.counts, np.full(len(self.labels), self.counts_sigma))

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what would help; nothing where the counts are clear."""
        return sentences(self._judge(), [str(label) for label in self.labels], self.guarantee, noun="class")

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences a reader should know."""
        return self.notes_on(np.arange(len(self.labels)))

    def notes_on(self, numbers: Indices) -> tuple[str, ...]:
        """Which of these classes, given by number, have no prototype of their own."""
        lost = ", ".join(str(self.labels[number]) for number in numbers if not self.known[number])
        sentence = f"Few rows, or too much noise, for a prototype of class {lost}: that of all rows stands in."
        return (sentence,) if lost else ()

    def frame(self) -> Frame:
        """One line per class: its noisy row count with its band, then its prototype in original units, by column."""
        counts = {"rows": self.counts.copy(), "lower": self.counts - self.half_width, "upper": self.counts + self.half_width}
        prototypes = self.schema.frame(self.schema.unfeature(self.prototype_features))
        return {"class": np.asarray(self.labels), **counts, **prototypes}

    def plot(self) -> Figure:
        """Draw how many rows each class has, with noise bands."""
        return show.class_counts_figure(self)

    def shares(self, number: int) -> list[Floats]:
        """The distribution of every column within a class, shrunk to that of all rows as far as noise explains it."""
        shares, start = [], self.code.size + 1
        for column in self.bins:
            noise = self.sums_sigma / self.weights.counts
            counts = self.sums[:, start : start + len(column)] / self.weights.counts
            overall = nearest_shares(counts.sum(axis=0) / max(float(counts.sum()), 1.0))
            total, start = float(counts[number].sum()), start + len(column)
            if total > OVER_NOISE * noise * math.sqrt(len(column)):
                excess = counts[number] / total - overall
                explained = len(column) * (noise / total) ** 2
                kept = max(0.0, 1 - explained / max(float((excess**2).sum()), 1e-300))
                overall = nearest_shares(overall + kept * excess)
            shares.append(overall)
        return shares

    def draw(self, number: int, n: int, generator: np.random.Generator) -> Floats:
        """Rows that look like a class, as far as the picture tells: raw, (n, columns)."""
        if not self.bins:
            noise = generator.normal(size=(n, self.code.size)) * self.code.spread * generator.random((n, 1))
            return self.schema.unfeature(np.clip(self.code.decode(self.prototypes[number] + noise) * self.scale, 0.0, 1.0))
        drawn = np.empty((n, self.schema.n_columns))
        for j, (bins, share, column) in enumerate(zip(self.bins, self.shares(number), self.schema.values(), strict=True)):
            index = generator.choice(len(bins), size=n, p=share)
            low, high = (column.low, column.high) if isinstance(column, Numeric) else (0, len(column.levels) - 1)
            drawn[:, j] = values_in(bins, index, low, high, generator.random(n))
        return drawn
