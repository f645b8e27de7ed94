"""What :func:`vitrail.private_rows` returns: released tables, and rows sampled from them. No vault, no ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._types import Figure
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from ..schema import Numeric, Schema
from ..schema.bins import Bins, values_in
from ..solve.rows.histograms import shares_of_columns
from ..solve.rows.left_out import hidden_squares, left_out_squares, weights_of
from ..solve.rows.network import MOST_SURVEYED, Link, Network, even_numbers, fit_network
from ..solve.rows.replicates import (
    errors_of,
    inside_bins,
    replicate_weights,
    sampled_share,
    table_squares,
    unsmoothed_ratios,
)
from ..solve.rows.tables import agreed_table, contrast_sigma, group_shares
from ..solve.sampling import cell_stds, sampling_notes
from .arrow_rows import arrow_table, write_table
from .band_claim import TWO_SIDED_95
from .base import Frame, Result, show
from .checks import Floats, frozen_numbers
from .codec import UNSAID
from .marginals import Marginals
from .row_count import RowCount
from .rows_layout import checked_blocks, linked_pairs, members, number_of_groups, widened

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Indices = NDArray[np.intp]

MOST_ROWS = 10**8
REPLICATES = 40
"""Sets of tables drawn again, for bands."""
FEW_REPLICATES = 8
"""The same where a size is enough."""
MOST_CELLS = 10**6
"""Of the joint distribution of a column and its parents, in a file; ours have at most 160 000."""


@dataclass(frozen=True, eq=False)
class PrivateRows(Result, stored_as="private-rows/4"):
    """A private model of a dataset's columns. Rows sampled from it may be published; sampling costs nothing.

    Attributes
    ----------
    dataset : str
        Whose.
    schema : Schema
        The columns of a sampled row, the target included where it was asked for.
    target : str or None
        The target column, which ``background`` leaves out.
    bins : tuple of Bins
        How each column is cut.
    groups : tuple of array
        For each column the group of every bin, as the tables count them.
    links : tuple of Link
        Which columns hang on which, by number, in the order in which they are drawn.
    counts, block_counts : tuple of array
        The noisy count of every bin, by column, and of every block of bins (empty for a column of few bins).
    noisy_tables : mapping of (int, int) to array
        What linked columns have in common: noisy sums of the contrasts of their groups (``solve.rows.tables``).
    counts_sigma, tables_sigma : float
        Standard deviations of the noise on them.
    sampled : array
        Rows that were drawn once, as a raw matrix: every reader, in any language, explains with the same ones.
    coarse_groups : tuple of array
        For each column the group of every bin, as tables of all pairs count them; none where those were not asked for.
    coarse_sigma : float
        Standard deviation of the noise on each contrast of those tables; 0 where they were not asked for.
    factors : mapping of (int, int) to array
        By how much more, as a logarithm, rows of any two groups of two columns count, so that pairs that no table links
        have in common what was seen of them (:meth:`weights`).
    n_rows_public : int
        The declared row count.
    cost : Cost
        What was charged for all of it.
    guarantee : Guarantee
        The promise for all of it, and for everything sampled from it.
    sampling_rate : float
        With which probability each private row was looked at, anew for every question; errors hold what that adds.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"city": vt.Categorical(["Bern", "Genf"]), "speaks": vt.Categorical(["de", "fr"])})
    >>> rows = {"city": np.repeat(["Bern", "Genf"], 5000), "speaks": np.repeat(["de", "fr"], 5000)}
    >>> data = vt.PrivateData(rows, schema, name="swiss", n_rows_public=10_000, budget=vt.Budget(1, 1e-6))
    >>> made = vt.private_rows(data, epsilon=1.0)
    >>> made.tree, made.tables["city", "speaks"].round(1).tolist()
    ((('city', 'speaks'),), [[0.5, 0.0], [0.0, 0.5]])
    >>> made.sample(3, seed=1)["city"].shape, made.to_arrow(3).column_names
    ((3,), ['city', 'speaks'])
    """

    dataset: str
    schema: Schema
    target: str | None
    bins: tuple[Bins, ...]
    groups: tuple[Indices, ...] = field(repr=False)
    links: tuple[Link, ...]
    counts: tuple[Floats, ...] = field(repr=False)
    block_counts: tuple[Floats, ...] = field(repr=False)
    counts_sigma: float
    noisy_tables: Mapping[tuple[int, int], Floats] = field(repr=False)
    tables_sigma: float
    n_rows_public: int
    sampled: Floats = field(repr=False)
    coarse_groups: tuple[Indices, ...] = field(repr=False)
    coarse_sigma: float
    factors: Mapping[tuple[int, int], Floats] = field(repr=False)
    cost: Cost
    guarantee: Guarantee
    sampling_rate: float = field(default=1.0, metadata=UNSAID)

    def __post_init__(self) -> None:
        self._check_fields("private rows")
        _checks.fraction("sampling_rate", self.sampling_rate)
        names = self.schema.names
        if tuple(cut.name for cut in self.bins) != names or not (
            len(names) == len(self.counts) == len(self.block_counts) == len(self.groups)
        ):
            raise InvalidInput("private rows need bins, counts and groups of exactly the columns of their schema")
        if self.target is not None:
            self.schema.column_index(self.target)
        counts = tuple(frozen_numbers(c, (len(cut),), "counts") for c, cut in zip(self.counts, self.bins, strict=True))
        blocks = tuple(map(checked_blocks, self.block_counts, self.bins))
        sizes = [number_of_groups(group, cut) for group, cut in zip(self.groups, self.bins, strict=True)]
        needed = linked_pairs(self.links, len(names))
        if set(self.noisy_tables) != needed:
            raise InvalidInput("the tables of private rows must be those of the linked columns")
        tables = {
            (i, j): frozen_numbers(self.noisy_tables[i, j], (sizes[i] - 1, sizes[j] - 1), "tables")
            for i, j in sorted(needed)
        }
        sampled = frozen_numbers(self.sampled, (len(self.sampled), len(names)), "sampled rows")
        self._fix(counts=counts, block_counts=blocks, noisy_tables=MappingProxyType(tables), sampled=sampled)
        self._fix(factors=MappingProxyType(self._checked_factors()))

    def _checked_factors(self) -> dict[tuple[int, int], Floats]:
        """Of pairs of columns, over coarse groups."""
        if len(self.coarse_groups) != (len(self.bins) if self.coarse_sigma > 0 else 0):
            raise InvalidInput("coarse groups of private rows must be of exactly the columns of their schema, or none")
        sizes = [number_of_groups(group, cut) for group, cut in zip(self.coarse_groups, self.bins, strict=False)]
        if not all(0 <= i < j < len(sizes) for i, j in self.factors):
            raise InvalidInput("factors of private rows must be of pairs of their columns")
        return {(i, j): frozen_numbers(f, (sizes[i], sizes[j]), "factors") for (i, j), f in sorted(self.factors.items())}

    def check_read(self) -> None:
        """Refuse tables that cannot be worked with: no noise, too many joint cells, no row that could be drawn."""
        sigmas = self.counts_sigma, self.tables_sigma, self.coarse_sigma
        if not (all(0 <= sigma < np.inf for sigma in sigmas) and all(sigmas[:2]) and self.n_rows_public > 0):
            raise InvalidInput("its noise or its row count is no positive number")
        sizes = [int(group.max()) + 1 for group in self.groups]
        if any(math.prod(sizes[j] for j in (link.child, *link.parents)) > MOST_CELLS for link in self.links):
            raise InvalidInput("too many columns hang on each other")
        if not np.isfinite(self.raw(1, seed=0)).all():
            raise InvalidInput("no row can be drawn from its tables")
        if not (
            len(self.sampled) and np.array_equal(self.schema.read_points(self.schema.frame(self.sampled)), self.sampled)
        ):
            raise InvalidInput("its sampled rows are none, or are not rows of its schema")

    def __repr__(self) -> str:
        what = f"{len(self.bins)} columns, {len(self.noisy_tables)} tables"
        return f"PrivateRows({self.dataset!r}, {what}, {self.guarantee.brief})"

    # --- the model ---------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.schema.names

    @property
    def tree(self) -> tuple[tuple[str, str], ...]:
        """Every (parent, child), in the order in which columns are drawn."""
        names = self.columns
        return tuple((names[parent], names[link.child]) for link in self.links for parent in link.parents)

    @cached_property
    def rows_counted(self) -> RowCount:
        """How many rows count, from all columns and blocks together, against the declared number."""
        counted = [*self.counts, *(blocks for blocks in self.block_counts if len(blocks))]
        return RowCount.of_partitions(counted, self.counts_sigma, self.n_rows_public, self.sampling_rate)

    @property
    def notes(self) -> tuple[str, ...]:
        """That only a sample of the rows was looked at, where that is so."""
        return sampling_notes(self.sampling_rate)

    @property
    def total(self) -> float:
        """The estimated number of rows that count; the declared one where noise drowns it."""
        return self.rows_counted.denominator

    def missing_rows(self) -> tuple[str, ...]:
        """What missing values did, in sentences (:meth:`Marginals.missing_rows`)."""
        return self.marginals.missing_rows(self.schema)

    @cached_property
    def shares(self) -> Mapping[str, Floats]:
        """The distribution of every column over its bins, as sampled."""
        network = self._network
        return MappingProxyType({name: network.table(j) @ network.opened[j] for j, name in enumerate(self.columns)})

    @cached_property
    def tables(self) -> Mapping[tuple[str, str], Floats]:
        """The distribution, as sampled, of every linked pair of columns over their groups, parent first."""
        pairs = [(parent, link.child) for link in self.links for parent in link.parents]
        return MappingProxyType({(self.columns[i], self.columns[j]): self._network.table(i, j) for i, j in pairs})

    @cached_property
    def _network(self) -> Network:
        total = self.total
        shares = shares_of_columns(self.counts, self.block_counts, self.bins, self.counts_sigma, total)
        of_groups = group_shares(shares, self.groups)
        tables = {
            (i, j): agreed_table(measured, self._contrast_sigma(measured), of_groups[i], of_groups[j], total)
            for (i, j), measured in self.noisy_tables.items()
        }
        return fit_network(self.links, tables, of_groups, shares, self.groups)

    # --- rows --------------------------------------------------------------------------------------------------------

    def raw(self, n: int, seed: int | None = None) -> Floats:
        """``n`` sampled rows as a raw matrix in the schema's order: numbers, and categories as level indices."""
        _checks.whole("n", n, most=MOST_ROWS)
        if seed is not None:
            _checks.whole("seed", seed, least=0, most=2**128)
        generator = np.random.default_rng(seed)  # sampling from a release is post-processing: a seed may be known
        drawn = self._network.draw_bins(int(n), generator)
        rows = np.empty(drawn.shape)
        for j, (bins, column) in enumerate(zip(self.bins, self.schema.values(), strict=True)):
            low, high = (column.low, column.high) if isinstance(column, Numeric) else (0, len(column.levels) - 1)
            rows[:, j] = values_in(bins, drawn[:, j], low, high, even_numbers(drawn[:, j], generator))
        return rows

    def sample(self, n: int, seed: int | None = None) -> dict[str, NDArray[np.generic]]:
        """``n`` sampled rows as columns in original units and levels.

        Parameters
        ----------
        n : int
            How many; they cost nothing.
        seed : int, optional
            The same seed gives the same rows. It protects nothing and endangers nothing: the noise is in the tables.
        """
        return self.schema.frame(self.raw(n, seed))

    def pandas(self, n: int, seed: int | None = None) -> pd.DataFrame:
        """``n`` sampled rows as a pandas data frame."""
        return self.schema.pandas(self.raw(n, seed))

    def to_arrow(self, n: int | None = None, seed: int | None = 0) -> pa.Table:
        """``n`` sampled rows as an Arrow table that carries the promise; as many as were declared if not given.

        The same rows as ``pandas(n, seed)``. Polars, DuckDB and others take the result itself: ``polars.DataFrame(made)``.
        """
        told = {"dataset": self.dataset, "guarantee": self.guarantee.to_json()}
        return arrow_table(self.schema, self.raw(self.n_rows_public if n is None else n, seed), told)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def write(self, path: str | Path, n: int | None = None, seed: int | None = 0) -> Path:
        """Write ``to_arrow(n, seed)`` to a ``.parquet``, ``.csv`` or ``.arrow`` file, without pandas; returns where."""
        return write_table(lambda: self.to_arrow(n, seed), path)

    def features(self, n: int, seed: int | None = None) -> Floats:
        """``n`` sampled rows without the target, encoded: numbers in [0, 1], categories one-hot."""
        schema, raw = self._without_target(n, seed)
        return schema.features(raw)[0]

    def background(self, n: int = 100, seed: int | None = 0) -> pd.DataFrame:
        """Sampled rows without the target, as background data for shap, lime or any other library.

        ``features`` gives the same rows encoded, for a model that reads numbers only.
        """
        schema, raw = self._without_target(n, seed)
        return schema.pandas(raw)

    def _without_target(self, n: int, seed: int | None) -> tuple[Schema, Floats]:
        raw = self.raw(n, seed)
        if self.target is None:
            return self.schema, raw
        return self.schema.without(self.target), np.delete(raw, self.schema.column_index(self.target), axis=1)

    def weights(self, raw: Floats) -> Floats:
        """How much rows of a raw matrix, such as ``raw`` and ``sampled``, count in a mean: 1 on average.

        Drawn rows have the tables of linked columns. Weighed, they also have what was measured of pairs that are not linked
        (``solve.rows.left_out``).
        """
        return weights_of(self.factors, self._coarse(raw), len(raw))

    def _coarse(self, raw: Floats) -> list[Indices]:
        """The coarse groups of rows, by column; none where none were counted."""
        cut = zip(self.coarse_groups, self.bins, raw.T, strict=bool(self.coarse_groups))
        return [group[bins.index(column)] for group, bins, column in cut]

    def storing(self, sampled: Floats, factors: Mapping[tuple[int, int], Floats]) -> PrivateRows:
        """The same with these rows stored, and these factors."""
        made = replace(self, sampled=sampled, factors=factors)
        vars(made)["_network"] = self._network  # it is known already, and takes its time
        return made

    def _contrast_sigma(self, table: Floats) -> float:
        """Of each contrast of a table: noise, and the choice of the rows."""
        first, second = table.shape
        return contrast_sigma(self.tables_sigma, self.sampling_rate, self.total, first + 1, second + 1)

    def noised_again(self, seed: int | None = None) -> PrivateRows:
        """The same model from tables with a second helping of the same noise, and of the choice of rows of a sample.

        How much an explanation moves is, to first order, how much the first helping moved it. The structure is kept.
        """
        generator = np.random.default_rng(seed)

        def noised(values: Floats, sigma: float | Floats) -> Floats:
            return np.asarray(values + generator.normal(0, sigma, values.shape))

        tables = {pair: noised(table, self._contrast_sigma(table)) for pair, table in self.noisy_tables.items()}
        counts = tuple(noised(column, self._count_stds(column)) for column in self.counts)
        blocks = tuple(noised(column, self._count_stds(column)) for column in self.block_counts)
        return replace(self, counts=counts, block_counts=blocks, noisy_tables=MappingProxyType(tables))

    def _count_stds(self, counts: Floats) -> Floats:
        return cell_stds(self.sampling_rate, counts, self.counts_sigma)

    def stored_weights(self, n_rows: int) -> Floats:
        """Of the first stored rows."""
        first = self._stored_weights[:n_rows]
        return np.asarray(first / first.mean())

    @cached_property
    def _stored_weights(self) -> Floats:
        return self.weights(self.sampled)

    @cached_property
    def _indices(self) -> Indices:
        """The bins of the stored rows."""
        return np.stack([cut.index(self.sampled[:, j]) for j, cut in enumerate(self.bins)], axis=1)

    def _drawn_again(self, replicates: int) -> Floats:
        """Weights of the stored rows under tables drawn again."""
        return replicate_weights(
            self._indices,
            self.bins,
            self.groups,
            list(self.shares.values()),
            {pair: self._network.table(*pair) for pair in self.noisy_tables},
            total=self.total,
            counts_sigma=self.counts_sigma,
            tables_sigma=self.tables_sigma,
            replicates=replicates,
            seed=0,
            rate=self.sampling_rate,
        )

    @cached_property
    def _perturbed(self) -> tuple[Floats, list[Floats]]:
        """Weights of the stored rows drawn again, and by column the ratios of bins that are not smoothed."""
        ratios = unsmoothed_ratios(self.bins, list(self.shares.values()), self.counts, self.block_counts, self.total)
        return self._drawn_again(REPLICATES), ratios

    @cached_property
    def _few_replicates(self) -> Floats:
        return self._drawn_again(FEW_REPLICATES)

    def rough_variances(self, per_row: Floats) -> Floats:
        """About how far, in squares, noise has moved means over the first stored rows of (rows, numbers)."""
        if len(self.bins) > MOST_SURVEYED:
            return np.asarray(self.standard_errors(per_row[None])[0] ** 2)
        weights = self._few_replicates[:, : len(per_row)]
        moved = (weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)) @ per_row - per_row.mean(axis=0)
        chosen = 1 / len(per_row) + sampled_share(self.sampling_rate, self.total)
        return np.asarray((moved**2).mean(axis=0) + per_row.var(axis=0) * chosen)

    def moves(self, per_row: Floats) -> Floats:
        """By how much noise may have moved means over the first stored rows of (rows, numbers): (moves, numbers).

        The sum over moves of their outer products is the covariance of what the release's noise did to these means, with
        what smoothing took from each column, and of the choice of a sample of the private rows; that of these rows is not in
        it. Of very many columns each number moves by itself, by its standard error: weights that are products over all of
        them would rest on a handful of rows.
        """
        if len(self.bins) > MOST_SURVEYED:
            return np.diag(self.standard_errors(per_row[None])[0])
        drawn, ratios = self._perturbed
        indices, mean = self._indices[: len(per_row)], per_row.mean(axis=0)

        def moved(weights: Floats) -> Floats:
            shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
            return np.asarray(shares @ per_row - mean)

        noise = moved(drawn[:, : len(per_row)]) / math.sqrt(len(drawn))  # so that the squares add up to their mean
        smoothing = [moved(ratio[None, indices[:, j]]) for j, ratio in enumerate(ratios)]
        if self.sampling_rate == 1:
            return np.concatenate([noise, *smoothing])
        sampled = math.sqrt(sampled_share(self.sampling_rate, self.total) / len(per_row)) * (per_row - mean)
        return np.concatenate([noise, *smoothing, sampled])

    def standard_errors(
        self, per_row: Floats, about: Sequence[Sequence[str]] | None = None, *, drawn: int | None = None
    ) -> Floats:
        """How far means of what was computed for the first stored rows, (points, rows, numbers), may be off.

        ``about``: the columns that each number is about, where it is about some. ``drawn``: how many rows the means are
        over, where there are more than these.

        The noise of the release, the choice of the rows, places of values inside their bins, dependence that noise hid when
        links were chosen and dependence of two columns that was seen and not linked, by what weights move, are in it
        (``solve.rows.replicates``); dependence beyond that is not. Where the noise on one count is half of the rows, nothing
        is known of any column, and a mean is off by all of itself.
        """
        n_rows, fitted = per_row.shape[1], list(self.shares.values())
        others = left_out_squares(per_row, self.stored_weights(n_rows))
        if self.coarse_groups:
            of_rows, known = self._coarse(self.sampled[:n_rows]), {*self.noisy_tables, *self.factors}
            sizes = [int(group.max()) + 1 for group in self.coarse_groups]
            alike = sum(1 / size for size in sizes) / len(sizes)
            noise = contrast_sigma(self.coarse_sigma, self.sampling_rate, self.total * alike**2, 1, 1) / self.total
            others = others + hidden_squares(per_row, of_rows, group_shares(fitted, self.coarse_groups), known, noise)
        given = self._indices[:n_rows], self.bins, fitted, self.counts, self.block_counts
        owners = None if about is None else members(self.columns, about)
        noise_of: Any = {"total": self.total, "rate": self.sampling_rate}
        errors = errors_of(per_row, *given, sigma=self.counts_sigma, owners=owners, drawn=drawn, **noise_of)
        tables = {pair: self._network.table(*pair) for pair in self.noisy_tables}
        linked = table_squares(per_row, self._indices[:n_rows], self.groups, tables, sigma=self.tables_sigma, **noise_of)
        errors = np.sqrt(errors**2 + linked + others + inside_bins(per_row, self.sampled[:n_rows], self.bins))
        chosen = sampled_share(self.sampling_rate, self.total)
        drowned = math.hypot(self.counts_sigma / self.total, math.sqrt(chosen)) >= 1 / 2
        return np.maximum(errors, np.abs(per_row.mean(axis=1))) if drowned else errors

    # --- tables and pictures -----------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """The released counts, one line per bin, with noise bands and the share as sampled; ``sample`` gives rows."""
        counts = np.concatenate(self.counts)
        half = TWO_SIDED_95 * self._count_stds(counts)
        return {
            "column": np.repeat(np.array(self.columns), [len(cut) for cut in self.bins]),
            "bin": np.array(list(chain.from_iterable(cut.labels for cut in self.bins))),
            "count": counts,
            "lower": counts - half,
            "upper": counts + half,
            "share": np.concatenate(list(self.shares.values())),
        }

    def plot(self) -> Figure:
        """Draw which columns hang on which; thicker lines where they share more."""
        return show.links_figure(self)

    @property
    def marginals(self) -> Marginals:
        """The noisy histograms of all columns, which are part of the same releases; bins of one value get a little width.

        Their cost and promise are those of the rows: who has them from a pane or a file has the rows as well.
        """
        bins = tuple(widened(each, self.schema[each.name]) for each in self.bins)
        counts = MappingProxyType(dict(zip(self.columns, self.counts, strict=True)))
        given = self.dataset, bins, counts, self.counts_sigma, self.n_rows_public, self.cost, self.guarantee
        return Marginals(*given, self.sampling_rate)
