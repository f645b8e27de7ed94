"""The general-purpose alternative: private synthetic data by mbi (private-PGM), then everything without further privacy.

The MST mechanism (McKenna, Miklau & Sheldon 2021), winner of the NIST challenge, on mbi's graphical models: noisy one-way
marginals; a spanning tree of column pairs, edge by edge by the exponential mechanism, scored by how far the pair is
from what the one-way marginals imply; noisy two-way marginals of the tree; mirror descent; rows sampled from the model.
Numeric columns are cut into 32 bins and drawn uniformly inside their bin. The rows are labelled by the public
model, which serves it better than measuring a column of labels does.

The peer gets every advantage: exact Gaussian accounting (mu-GDP composition, tighter than its own zCDP) in the
same thirds, no rounding of its noise, a known row count, bins around the real rows' own values.

    pip install -e '.[bench]' && python benchmarks/peers/synthetic.py --data FOLDER     # one draw, its marginals' error
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import vitrail as vt
from vitrail.accounting import bounded_range_epsilon_of, mu_of

BINS = 32
SPIKES = 8
"""A column's most frequent values, if rows enough have each, get bins of their own: zeros, caps, full time."""
SPIKE = 0.002
"""How many are enough, as a share."""
EQUAL_BINS = 16
"""The best number of equal widths for local explanations, for which spikes of their own make the peer three times worse."""


def equal_edges(schema: vt.Schema, bins: int = EQUAL_BINS) -> dict[str, np.ndarray]:
    """Public edges from declared bounds of whole-number columns; a bin is [edge, next edge)."""
    return {
        name: np.unique(np.linspace(column.low, column.high + 1, bins + 1).round())
        for name, column in schema.items()
        if isinstance(column, vt.Numeric)
    }


@dataclass(frozen=True)
class Binned:
    """Rows as whole numbers per column, and the way back; where ``ends`` are given, bins are not filled beyond them."""

    schema: vt.Schema
    edges: dict[str, np.ndarray]
    ends: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def around(cls, schema: vt.Schema, raw: np.ndarray, bins: int = BINS) -> Binned:
        """Bins at the real rows' own spikes, quantiles and gaps, for nothing: an advantage that no buyer has.

        A column with at most so many values has a bin for each.
        """
        edges, ends = {}, {}
        for place, (name, column) in enumerate(schema.items()):
            if not isinstance(column, vt.Numeric):
                continue
            values, counts = np.unique(raw[:, place], return_counts=True)
            lows = np.arange(len(values))
            if len(values) > bins:
                spikes = np.argsort(counts)[::-1][:SPIKES]
                spikes = spikes[counts[spikes] >= SPIKE * len(raw)]
                rest = np.repeat(lows, np.where(np.isin(lows, spikes), 0, counts))
                inner = np.quantile(rest, np.linspace(0, 1, bins - 2 * len(spikes) + 1)[:-1], method="lower")
                lows = np.unique(np.concatenate([[0], spikes, np.minimum(spikes + 1, len(values) - 1), inner]))
            last = values[np.append(lows[1:] - 1, len(values) - 1)]
            ends[name] = last + 1 if column.integer else np.nextafter(last, np.inf)
            edges[name] = np.append(values[lows], ends[name][-1])
        return cls(schema, edges, ends)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(
            len(self.edges[name]) - 1 if isinstance(column, vt.Numeric) else len(column.levels)
            for name, column in self.schema.items()
        )

    def codes(self, raw: np.ndarray) -> np.ndarray:
        """(rows, columns) of bin or level numbers."""
        columns = []
        for place, (name, column) in enumerate(self.schema.items()):
            values = raw[:, place]
            if isinstance(column, vt.Numeric):
                values = np.clip(np.searchsorted(self.edges[name], values, side="right") - 1, 0, len(self.edges[name]) - 2)
            columns.append(values.astype(np.int64))
        return np.column_stack(columns)

    def rows(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Raw rows, numerics drawn uniformly in their bin, among its whole numbers if the column has those."""
        raw = codes.astype(np.float64)
        for place, (name, column) in enumerate(self.schema.items()):
            if isinstance(column, vt.Numeric):
                low, high = self.edges[name][codes[:, place]], self.ends.get(name, self.edges[name][1:])[codes[:, place]]
                drawn = low + rng.random(len(codes)) * (high - low)
                drawn = np.where(
                    drawn < high, drawn, low
                )  # a single real number's bin ends behind it: rounding reaches that
                raw[:, place] = np.clip(np.floor(drawn) if column.integer else drawn, column.low, column.high)
        return raw


@dataclass(frozen=True)
class Merged:
    """Rare values of a column taken together, as MST does: their noise would outweigh them in every pair."""

    group: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, noisy: np.ndarray, least: float) -> Merged:
        rare = noisy < least
        group = np.cumsum(~rare) - 1
        return cls(np.where(rare, group[-1] + 1, group), np.maximum(noisy, least / 100))

    @property
    def size(self) -> int:
        return int(self.group.max()) + 1

    def back(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A value of each group, rare ones in proportion to their noisy counts."""
        values = np.empty(len(groups), dtype=np.int64)
        for group in range(self.size):
            members, drawn = np.flatnonzero(self.group == group), np.flatnonzero(groups == group)
            values[drawn] = rng.choice(members, len(drawn), p=self.weight[members] / self.weight[members].sum())
        return values


@dataclass(frozen=True)
class Fitted:
    """A graphical model of merged codes, to be sampled."""

    binned: Binned
    merged: list[Merged]
    model: object

    def rows(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Raw rows."""
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002 - mbi samples with the global generator
        made = self.model.synthetic_data(rows=count)  # type: ignore[attr-defined]
        names = self.binned.schema.names
        columns = [m.back(np.asarray(made.data[name]), rng) for name, m in zip(names, self.merged, strict=True)]
        return self.binned.rows(np.column_stack(columns), rng)


def synthesize(
    binned: Binned, raw: np.ndarray, *, mu: float, rows: int, rng: np.random.Generator, iterations: int = 2000
) -> np.ndarray:
    """Raw synthetic rows under mu-GDP (add-remove)."""
    return fit(binned, raw, mu=mu, rng=rng, iterations=iterations).rows(rows, rng)


def fit(binned: Binned, raw: np.ndarray, *, mu: float, rng: np.random.Generator, iterations: int = 2000) -> Fitted:
    """The model behind them."""
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent
    from mbi.marginal_loss import WeightedQuery

    codes = binned.codes(raw)
    names = list(binned.schema.names)
    share = mu / math.sqrt(3)
    count = len(names)
    sigma = math.sqrt(count) / share
    noisy_ones = [
        np.bincount(codes[:, place], minlength=size) + rng.normal(0, sigma, size) for place, size in enumerate(binned.sizes)
    ]
    merged = [Merged.of(values, 3 * sigma) for values in noisy_ones]
    codes = np.column_stack([merge.group[codes[:, place]] for place, merge in enumerate(merged)])
    sizes = tuple(merge.size for merge in merged)
    domain = Domain(names, sizes)

    def table(*places: int) -> np.ndarray:
        shape = tuple(sizes[place] for place in places)
        flat = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
        return np.bincount(flat, minlength=math.prod(shape)).astype(np.float64)

    ones, measured = [], []
    for name, merge, values in zip(names, merged, noisy_ones, strict=True):
        ones.append(np.bincount(merge.group, values, minlength=merge.size))
        sigmas = sigma * np.sqrt(np.bincount(merge.group, minlength=merge.size))
        # A merged value is a sum of several noisy ones: dividing it by its own noise gives all entries noise 1.
        measured.append(LinearMeasurement(ones[-1] / sigmas, (name,), 1.0, WeightedQuery(1 / sigmas)))
    tree = spanning_tree(ones, table, len(raw), bounded_range_epsilon_of(share / math.sqrt(count - 1)), rng)
    sigma = math.sqrt(len(tree)) / share
    for first, second in tree:
        values = table(first, second)
        noisy = values + rng.normal(0, sigma, len(values))
        measured.append(LinearMeasurement(noisy, (names[first], names[second]), sigma))
    model = MirrorDescent().estimate(domain, measured, known_total=float(len(raw)), iters=iterations)
    return Fitted(binned, merged, model)


def spanning_tree(
    ones: list[np.ndarray], table: object, total: int, epsilon: float, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Kruskal's algorithm with every edge drawn by the exponential mechanism; scores move by at most 1 per row."""
    shares = [np.maximum(values, 0) / np.maximum(values, 0).sum() for values in ones]
    pairs = list(itertools.combinations(range(len(ones)), 2))
    scores = np.array([np.abs(table(a, b) - total * np.outer(shares[a], shares[b]).ravel()).sum() for a, b in pairs])
    part = list(range(len(ones)))
    tree: list[tuple[int, int]] = []
    while len(tree) < len(ones) - 1:
        open_ = np.array([index for index, (a, b) in enumerate(pairs) if part[a] != part[b]])
        chosen = open_[np.argmax(scores[open_] + rng.gumbel(0, 2 / epsilon, len(open_)))]
        a, b = pairs[chosen]
        tree.append((a, b))
        part = [part[a] if other == part[b] else other for other in part]
    return tree


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import bench_data as datasets

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    data = datasets.adult(datasets.data_folder(options.data))
    binned = Binned.around(data.schema, data.raw)
    mu = mu_of(options.epsilon, 1e-6)
    made = synthesize(binned, data.raw, mu=mu, rows=len(data.raw), rng=np.random.default_rng(0))
    x = data.schema.features(made)[0]
    truth = data.schema.features(data.raw)[0]
    print("largest error of a feature's mean", float(np.abs(x.mean(axis=0) - truth.mean(axis=0)).max()))
    second = np.abs(x.T @ x - truth.T @ truth).max() / len(x)
    print("largest error of a second moment", float(second))


if __name__ == "__main__":
    main()
