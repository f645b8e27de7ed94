"""The general-purpose alternative: private synthetic data by mbi (private-PGM), then everything without further privacy.

The MST mechanism (McKenna, Miklau & Sheldon 2021), winner of the NIST challenge, on mbi's graphical models: noisy one-way
marginals; a spanning tree of column pairs, edge by edge by the exponential mechanism, scored by how far the pair is
from what the one-way marginals imply; noisy two-way marginals of the tree; mirror descent; rows sampled from the model.
Numeric columns are cut at public edges and drawn uniformly inside their bin. The rows are labelled by the public
model, which serves it better than measuring a column of labels does.

The peer gets every advantage: exact Gaussian accounting (mu-GDP composition, tighter than its own zCDP) in the
same thirds, no rounding of its noise, a known row count, bin edges chosen with knowledge of the data.

    pip install -e '.[bench]' && python benchmarks/peers/synthetic.py --data FOLDER     # one draw, its marginals' error
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import vitrail as vt
from vitrail.accounting import bounded_range_epsilon_of, mu_of

BINS = 16
"""Equal-width bins per numeric column; the best of 8, 16, 32 and two hand-made sets of edges on this very figure."""


def equal_edges(schema: vt.Schema, bins: int = BINS) -> dict[str, np.ndarray]:
    """Public edges from declared bounds of whole-number columns; a bin is [edge, next edge)."""
    return {
        name: np.unique(np.linspace(column.low, column.high + 1, bins + 1).round())
        for name, column in schema.items()
        if isinstance(column, vt.Numeric)
    }


@dataclass(frozen=True)
class Binned:
    """Rows as whole numbers per column, and the way back."""

    schema: vt.Schema
    edges: dict[str, np.ndarray]

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
        """Raw rows, numerics drawn uniformly among the whole numbers of their bin."""
        raw = codes.astype(np.float64)
        for place, (name, column) in enumerate(self.schema.items()):
            if isinstance(column, vt.Numeric):
                low, high = self.edges[name][codes[:, place]], self.edges[name][codes[:, place] + 1]
                raw[:, place] = np.clip(np.floor(low + rng.random(len(codes)) * (high - low)), column.low, column.high)
        return raw


@dataclass(frozen=True)
class Merged:
    """Rare values of a column taken together, as MST does: their noise would outweigh them in every pair."""

    group: np.ndarray

    @classmethod
    def of(cls, noisy: np.ndarray, least: float) -> Merged:
        rare = noisy < least
        group = np.cumsum(~rare) - 1
        return cls(np.where(rare, group[-1] + 1, group))

    @property
    def size(self) -> int:
        return int(self.group.max()) + 1

    def back(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A value of each group, rare ones evenly."""
        members = [np.flatnonzero(self.group == index) for index in range(self.size)]
        sizes = np.array([len(member) for member in members])
        first = np.concatenate(members)
        starts = np.cumsum(sizes) - sizes
        return first[starts[groups] + rng.integers(0, sizes[groups])]


def synthesize(
    binned: Binned, raw: np.ndarray, *, mu: float, rows: int, rng: np.random.Generator, iterations: int = 2000
) -> np.ndarray:
    """Raw synthetic rows under mu-GDP (add-remove)."""
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
    np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002 - mbi samples with the global generator
    made = model.synthetic_data(rows=rows)
    columns = [merge.back(np.asarray(made.data[name]), rng) for name, merge in zip(names, merged, strict=True)]
    return binned.rows(np.column_stack(columns), rng)


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
    import datasets

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    data = datasets.adult(datasets.data_folder(options.data))
    binned = Binned(data.schema, equal_edges(data.schema))
    mu = mu_of(options.epsilon, 1e-6)
    made = synthesize(binned, data.raw, mu=mu, rows=len(data.raw), rng=np.random.default_rng(0))
    x = data.schema.features(made)[0]
    truth = data.schema.features(data.raw)[0]
    print("largest error of a feature's mean", float(np.abs(x.mean(axis=0) - truth.mean(axis=0)).max()))
    second = np.abs(x.T @ x - truth.T @ truth).max() / len(x)
    print("largest error of a second moment", float(second))


if __name__ == "__main__":
    main()
