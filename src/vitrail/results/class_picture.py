"""The private picture of the classes: what was released, and what follows from it. No vault, no ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost
from ..errors import InvalidInput
from ..guarantee import Guarantee
from ..schema import FloatArray, Level, Numeric, Schema
from ..schema.bins import Bins
from ..solve.counterfactual.codes import AnyCode, Code, IdentityCode, Moments, NetworkCode, Weights, linear_code
from ..solve.counterfactual.sigmoid import sigmoid_code
from ..solve.rows.cuts import values_in
from .base import Stored
from .checks import Floats, frozen_numbers
from .marginals import nearest_shares
from .private_rows import PrivateRows

Latent = Literal["none", "linear", "sigmoid", "network"]


@dataclass(frozen=True, eq=False)
class ClassPicture(Stored, stored_as="class-picture/1"):
    """Releases about the classes of a model: moments, prototypes, distributions of columns, private rows.

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
    latent : {"none", "linear", "sigmoid", "network"}
        The kind of code.
    scale : float
        Features are divided by it, and rows cut to length 1.
    moments : array or None
        The released Gram matrix of (1, x), where the code was made of it.
    code : Code, IdentityCode or NetworkCode
        What was computed from releases before the prototypes were asked for, kept as it was: eigenvectors are not the same
        to the last bit on every machine.
    sums : array (classes, width)
        Released: code, count and bins of each class, weighted.
    bins : tuple of Bins
        How columns are counted by class; empty where they are not.
    rows : PrivateRows or None
        Rows that look like the data's, where they were paid for.
    moments_sigma, sums_sigma : float
        Standard deviations of the noise.
    """

    dataset: str
    schema: Schema
    labels: tuple[Level, ...]
    threshold: float
    latent: Latent
    scale: float
    moments: Floats | None = field(repr=False)
    moments_sigma: float
    code: AnyCode = field(repr=False)
    sums: Floats = field(repr=False)
    sums_sigma: float
    bins: tuple[Bins, ...] = field(repr=False)
    rows: PrivateRows | None
    n_rows_public: int
    cost: Cost
    guarantee: Guarantee
    by: str
    models: tuple[str | None, ...]

    def __post_init__(self) -> None:
        self._check_types("a class picture")
        features, names = self.schema.n_features, tuple(one.name for one in self.bins)
        if (names and names != self.schema.names) or (self.rows is not None and self.rows.schema.names != self.schema.names):
            raise InvalidInput("the bins and private rows of a class picture must be about the columns of its schema")
        kind = {"none": IdentityCode, "network": NetworkCode}.get(self.latent, Code)
        if not isinstance(self.code, kind) or self.code.features != features or (self.moments is None) != (kind is not Code):
            raise InvalidInput("the code of a class picture must be of the kind that it names, and made from its moments")
        if self.moments is not None:
            self._fix(moments=frozen_numbers(self.moments, (features + 1, features + 1), "moments"))
        self._fix(sums=frozen_numbers(self.sums, (len(self.labels), self.code.size + 1 + sum(map(len, self.bins))), "sums"))

    def check_read(self) -> None:
        """Refuse noise and scales that nothing can be divided by."""
        if not all(0 < amount < math.inf for amount in (self.sums_sigma, self.scale)):
            raise InvalidInput("its noise or its scale is no positive number")

    @cached_property
    def counts(self) -> Floats:
        """Noisy numbers of rows by class."""
        return np.asarray(self.sums[:, self.code.size] / Weights.of(len(self.bins)).codes)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which classes stand out of the noise."""
        noise = self.sums_sigma / Weights.of(len(self.bins)).codes
        return np.asarray(self.counts > 3 * noise)

    @cached_property
    def prototypes(self) -> Floats:
        """The mean code of each class, (classes, code size); of all rows where a class is lost in the noise."""
        codes = self.sums[:, : self.code.size] / Weights.of(len(self.bins)).codes
        overall = codes.sum(axis=0) / max(float(self.counts.sum()), 1.0)
        found = np.where(self.known[:, None], codes / np.maximum(self.counts, 1.0)[:, None], overall)
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(norms, 1.0))

    @cached_property
    def prototype_features(self) -> Floats:
        """The prototypes as features in [0, 1], (classes, features)."""
        return np.clip(self.code.decode(self.prototypes) * self.scale, 0.0, 1.0)

    def shares(self, place: int) -> list[Floats]:
        """The distribution of every column within a class, shrunk to that of all rows as far as noise explains it."""
        weights = Weights.of(len(self.bins))
        found, start = [], self.code.size + 1
        noise = self.sums_sigma / weights.marginals
        for one in self.bins:
            counts = self.sums[:, start : start + len(one)] / weights.marginals
            overall = nearest_shares(counts.sum(axis=0) / max(float(counts.sum()), 1.0))
            total = float(counts[place].sum())
            if total > 3 * noise * math.sqrt(len(one)):
                own = counts[place] / total
                excess = own - overall
                explained = len(one) * (noise / total) ** 2
                kept = max(0.0, 1 - explained / max(float((excess**2).sum()), 1e-300))
                found.append(nearest_shares(overall + kept * excess))
            else:
                found.append(overall)
            start += len(one)
        return found

    def draw(self, place: int, n: int, generator: np.random.Generator) -> FloatArray:
        """Rows that look like a class, as far as the picture tells: raw, (n, columns)."""
        if self.bins:
            made = np.empty((n, self.schema.n_columns))
            for j, (one, share, column) in enumerate(zip(self.bins, self.shares(place), self.schema.values(), strict=True)):
                index = generator.choice(len(one), size=n, p=share)
                low, high = (column.low, column.high) if isinstance(column, Numeric) else (0, len(column.levels) - 1)
                made[:, j] = values_in(one, index, low, high, generator.random(n))
            return made
        spread = self.code.spread
        codes = self.prototypes[place] + generator.normal(size=(n, self.code.size)) * spread * generator.random((n, 1))
        return self.schema.unfeature(np.clip(self.code.decode(codes) * self.scale, 0.0, 1.0))


def code_of(latent: str, schema: Schema, moments: Floats | None, sigma: float, n_rows_public: int) -> Code | IdentityCode:
    """The code of a kind, from released moments."""
    if moments is None:
        return IdentityCode(schema.n_features)
    possible = Moments.of(moments, sigma, n_rows_public)
    return linear_code(possible) if latent == "linear" else sigmoid_code(possible)
