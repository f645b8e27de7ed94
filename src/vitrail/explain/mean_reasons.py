"""What real rows say of a model's reasons, on average: one short noisy vector per model.

Reasons on private rows (``solve.shapley.reasons``) are means over rows that were sampled from a release, and are off by what
sampled rows and real ones have not in common: noise, dependence that no table holds, and what a model knows of the rows it
was trained on by heart. Most of that is the same for everybody, because a Shapley value is, to a large part, something of
the person minus something of the rows. So it is measured: for some points z_1, ..., z_Q, which are sampled rows, the mean
over real rows x of

    v(x) = mean over k of the K points of x's own:  psi(z_k, x), scaled down to the clip C where it is longer,

psi_j what player j adds along a random order and its reverse (``solve.coalitions``), over a size a_j of it: with noise the
same on all numbers of v, a_j the root of the size that sampled rows have makes the noise on all psi_j together least
(Cauchy-Schwarz), and that on small ones small. Which K of the Q points a row gets, and its orders, are hashes of the row's
content with a public key. The same mean over sampled rows is free, and the difference of the two is the correction
(``solve.shapley.real_rows``). For rows of one distribution it is zero on average whatever C is: both sides are clipped.

With it comes one number more, e(x) / 3: the mean over k of how much longer than C psi was, counted up to C.

*Bound.* v(x) is a mean of K vectors of norm at most C, so its norm is at most C, and e(x) / 3 is at most C / 3: one
:class:`BoundedSum` with l2_bound C sqrt(1 + 1/9) (twice that under replace-one neighbours). A row that does not count, or on
which the model fails, is zero. The vault enforces the bound whatever is returned here. Points and C are functions of the
released rows and the public model, so asking in turn is adaptive composition. Tests: tests/explain/test_mean_reasons.py,
tests/audit/test_mean_reasons_audit.py.

*C*. Of the vectors of sampled rows ``CLIPPED`` are longer than C_1. Those of rows that a model knows by heart are longer
than that, and a clip takes some of the very thing that is asked about; so C is up to ``LONGEST`` times C_1, as far as the
noise on a mean stays below ``NOISE`` of what the correction is expected to be, over all players. (Chosen on loans and
Framingham.) How much more the clip took from real rows than from sampled ones is seen from e, and in the bands. *K* is 1
where rows are many, and more where few: then the choice of points would be as large as the noise. Rows that are alike make
the same choice (of HELOC's hundreds have nothing but codes), so that few are those of which few are different, by how often
two sampled rows are alike. Of very many rows a sample is looked at (``MOST_ROWS``): more of them would make an error smaller
that is already below that of what is a person's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._types import Floats
from ..errors import ModelError
from ..model import Model
from ..results.mean_reasons import MeanReasons
from ..results.private_rows import PrivateRows
from ..solve.coalitions import Chains, point_key, ranks_of, row_hashes, share_alike
from ..solve.sampling import sampling_variance
from ..solve.shapley.on_rows import player_numbers, players_of
from ..solve.shapley.reasons import BACKGROUND
from ..vault import Block, BoundedSum
from .joint_sum import ROUNDING
from .recipe import Ask, Recipe, Terms, sigma_of
from .shapley import RowVectors, norms_of

POINTS = 8
PAIRS = 2**14
"""Rows times points of each, where rows are few."""
MOST_ROWS = 2**15
CLIPPED, LONGEST, NOISE = 0.05, 2.0, 0.5
LEAST_CLIP, LEAST_SIZE = 1e-6, 0.1
"""Of the root of the width of the model's range: a model that is constant on sampled rows has a clip, too. Of the largest
size: one of a column that hardly moves any sampled row."""
ORDERS = 2
EXCESS = 1 / 3
"""What the length that the clip took is multiplied by."""


def mean_reasons_recipe(terms: Terms, model: Model, rows: PrivateRows) -> Recipe[MeanReasons]:
    """The conversation behind what a pane knows of its models' reasons on real rows.

    ``rows`` are of all columns that the model reads, and were paid for before.
    """
    schema = terms.feature_schema
    players = players_of(schema)
    # The model is asked about points times rows times steps of an order and its reverse.
    n_points = max(1, min(POINTS, terms.public_rows // (BACKGROUND * ORDERS * len(players))))
    n_rows = max(1, min(BACKGROUND, terms.public_rows // (n_points * ORDERS * len(players))))
    sampled = np.ascontiguousarray(rows.sampled[:, [rows.schema.column_index(name) for name in schema]])
    points, background = sampled[-n_points:], sampled[:n_rows]
    alike = 1 / terms.n_rows_public + share_alike(sampled)
    n_each, rate = max(1, min(n_points, int(PAIRS * alike))), min(terms.sampling_rate, MOST_ROWS / terms.n_rows_public)
    chains, at_points = Chains(model, schema, player_numbers(schema, players)), model.predict(schema, points)
    given = (terms.schema, terms.target, chains, points, at_points, ORDERS, 0)
    outputs = model.predict(schema, background)
    vectors = PairedVectors(*given, n_each=n_points).of(background, outputs)
    failed = ~np.isfinite(vectors).all(axis=(1, 2))
    if failed.all():
        raise ModelError(f"{model.name} returns no finite number for any sampled row with some values of another")
    vectors[failed] = 0.0  # as real rows are
    sizes = np.sqrt((vectors**2).mean(axis=(0, 1)) ** 0.5)
    sizes = np.maximum(sizes, max(LEAST_SIZE * float(sizes.max()), LEAST_CLIP * math.sqrt(model.width)))
    paired, vectors = PairedVectors(*given, n_each=n_each, sizes=sizes), vectors / sizes
    clip = max(float(np.quantile(norms_of(vectors), 1 - CLIPPED)), LEAST_CLIP * math.sqrt(model.width))
    about = list(players.values())
    expected = rows.standard_errors(clipped(vectors, clip).mean(axis=1)[None], about)
    noise = clip * math.hypot(1, EXCESS) * terms.noise_of_mean() * terms.sampling_rate / rate
    clip *= min(LONGEST, max(1.0, NOISE * float(np.sqrt((expected**2).mean())) / noise))
    taken = float(excess(vectors, clip).mean())
    vectors = clipped(vectors, clip)
    per_row = vectors.mean(axis=1)

    bound = clip * math.hypot(1, EXCESS) * ROUNDING
    of_some = rate if rate < 1 else None
    question = BoundedSum(partial(paired.mean_clipped, clip), len(players) + 1, bound, rate=of_some)
    sums = yield Ask(question, 1.0, f"mean reasons of {model.name}")
    means, sigma = sums.value[:-1] / rows.total, sigma_of(sums)  # of v; in units of the output below
    variances = (sigma**2 + (means * rows.rows_counted.std) ** 2) / rows.total**2
    choice = ((vectors - per_row[:, None]) ** 2).mean(axis=(0, 1)) / n_each
    variances += choice * alike + sampling_variance(rate, (per_row**2).mean(axis=0) + choice, rows.total)
    return MeanReasons(
        dataset=terms.dataset,
        model=model.name,
        schema=schema,
        players=tuple(players),
        clip=clip,
        sizes=sizes,
        means=sizes * means,
        stds=sizes * np.sqrt(variances),
        per_row=sizes * per_row,
        outputs=np.where(failed, 0.0, outputs),
        expected=sizes * rows.standard_errors(per_row[None], about)[0],
        excess=float(sums.value[-1]) / EXCESS / rows.total - taken,
        excess_std=sigma / EXCESS / rows.total,
        n_rows_public=terms.n_rows_public,
        cost=sums.cost,
        guarantee=terms.promise(rows, sums),
    )


def clipped(vectors: Floats, clip: float) -> Floats:
    """Vectors (rows, points, players) that are longer than the clip, scaled down to it.

    Examples
    --------
    >>> clipped(np.array([[[3.0, 4.0], [0.3, 0.4]]]), 1.0).round(3).tolist()
    [[[0.6, 0.8], [0.3, 0.4]]]
    """
    return np.asarray(vectors * np.minimum(1.0, clip / np.maximum(norms_of(vectors), 1e-300))[:, :, None])


def excess(vectors: Floats, clip: float) -> Floats:
    """How much longer than the clip vectors (rows, points, players) are, up to the clip."""
    return np.clip(norms_of(vectors) - clip, 0.0, clip)


@dataclass(frozen=True, eq=False)
class PairedVectors(RowVectors):
    """The same vectors over sizes, of every row to some of the points only: those that a hash of the row names."""

    n_each: int = 1
    sizes: Floats | float = 1.0

    def of(self, values: Floats, outputs: Floats) -> Floats:
        """(rows, points of each, n) of any rows and their outputs."""
        n_players, n_points = int(self.chains.player_of.max()) + 1, len(self.points)
        key = point_key(self.points.ravel(), self.seed)
        first = (row_hashes(values, key) % np.uint64(n_points)).astype(np.intp)
        vectors = np.empty((len(values), self.n_each, n_players))
        for k in range(self.n_each):
            which = (first + k) % n_points
            ranks = ranks_of(values, key + self.n_permutations * (k + 1), self.n_permutations, n_players)
            vectors[:, k] = self.chains.contributions(values, outputs, self.points[which], self.point_outputs[which], ranks)
        return np.asarray(vectors / self.sizes)

    def mean_clipped(self, clip: float, block: Block) -> Floats:
        """(rows, players + 1): NaN where the model failed on the way, so that the row counts zero."""
        vectors, _ = self(block)
        over = EXCESS * excess(vectors, clip).mean(axis=1)
        return np.concatenate([clipped(vectors, clip).mean(axis=1), over[:, None]], axis=1)
