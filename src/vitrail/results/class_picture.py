"""The private picture of the classes: what was released, and what follows from it. No vault, no ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost
from ..explain.counterfactual.moments import Code, Moments, identity_code, linear_code
from ..explain.counterfactual.network import NetworkCode
from ..explain.counterfactual.prototypes import Weights
from ..guarantee import Guarantee
from ..schema import FloatArray, Level, Numeric, Schema
from ..schema.bins import Bins
from ..solve.counterfactual.sigmoid import sigmoid_code
from ..solve.rows.cuts import values_in
from .marginals import nearest_shares
from .private_rows import PrivateRows

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassPicture:
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
    code : Code or NetworkCode
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
    latent: str
    scale: float
    moments: Floats | None = field(repr=False)
    moments_sigma: float
    code: Code | NetworkCode = field(repr=False)
    sums: Floats = field(repr=False)
    sums_sigma: float
    bins: tuple[Bins, ...] = field(repr=False)
    rows: PrivateRows | None
    n_rows_public: int
    cost: Cost
    guarantee: Guarantee
    by: str
    models: tuple[str | None, ...]

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

    def save(self, path: str | Path) -> None:
        """Write a file that explains anyone, anywhere, without the data: a zip of JSON and plain arrays."""
        from ..explain.counterfactual.storage import write_picture

        write_picture(self, path)

    @classmethod
    def load(cls, path: str | Path) -> ClassPicture:
        """Read what ``save`` wrote."""
        from ..explain.counterfactual.storage import read_picture

        return read_picture(path)


def code_of(latent: str, schema: Schema, moments: Floats | None, sigma: float, n_rows_public: int) -> Code:
    """The code of a kind, from released moments."""
    if moments is None:
        return identity_code(schema.n_features)
    possible = Moments.of(moments, sigma, n_rows_public)
    return linear_code(possible) if latent == "linear" else sigmoid_code(possible)
