"""What a moment synopsis is planned by: the scales of its products, and the columns that rows are cut into cells by.

*Scales.* Noise of standard deviation sigma on a block released with scale s is sigma/s on its sums. To first order an
explanation phi moves by (A + lambda)^-1 g, g = dA phi - db, and lambda, which the unit ball brings in, exceeds most
eigenvalues of A: what counts is |g|^2. Block t adds C_t/s_t^2 to its expectation, over points with independent, uniformly
distributed columns and slopes that owe the same to each; it adds s_t^2 N_t to the squared norm. The product of both sums is
least, (sum_t sqrt(C_t N_t))^2, for s_t^2 = sqrt(C_t/N_t). C_t follows from the schema and the weight, both public. Third
moments, most of the numbers, make for a twentieth of the noise: contracted with a point, a cube of noise is a thin matrix.

*Which columns to cut by.* Those that explain most of the variance of d^2 among rows and points, through every column they go
along with: a function of second moments, which a survey releases. Around a row w drawn like the others, d^2 has the variance
4 w^T C w, on average 4 tr(C S), with covariance C and second moment S of y; the levels of column c explain 4 tr(B_c S) of
it, B_c the covariance of the means per level. Columns are added as long as they lower

    g_K^2 + (MISS_COST m)^2 prod_c (1 - share_c)^2

the noise of K cells (``expected_gradient_noise``) against what a line misses of the weight (m of ``typical_line``), which
falls with the square of the unexplained variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ..._types import Floats
from ...schema import Schema
from .coordinates import Coordinates, Partition
from .tensors import typical_line, typical_squares
from .weights import Weight

# A typical square of what the explanation says at y = 0, phi_0 - w.phi; f lies in [-1, 1].
OFFSET_SQUARED = 0.2
# How much an error of the gradient along w, or of the intercept, counts: A is larger there than lambda.
ALONG_SHARE = 0.25
MOST_CELLS = 64
# What a line that misses the weight by 1 costs, as an error |g| of the gradient: 5.2e-5 of excess loss on ACS.
MISS_COST = 0.0155
# Levels with fewer rows than so many standard deviations of their noisy count explain nothing that could be seen.
RARE = 4.0


def choose_scales(cells: Partition, weight: Weight) -> Mapping[str, float]:
    """What each kind of product is multiplied by, from public facts; three digits, so that every machine finds the same."""
    costs, norms = _costs_and_norms(cells, weight)
    best = {name: (costs[name] / norms[name]) ** 0.25 if norms[name] > 0 and costs[name] > 0 else 1.0 for name in costs}
    return MappingProxyType({name: float(f"{scale / best['F1']:.3g}") for name, scale in best.items()})


def expected_gradient_noise(cells: Partition, weight: Weight, mu: float, n_rows_public: int) -> float:
    """The root mean square of |g| to expect of a synopsis at this price (module docstring); reads nothing private."""
    costs, norms = _costs_and_norms(cells, weight)
    whole = sum(math.sqrt(costs[name] * norms[name]) for name in costs)
    return whole * math.sqrt(cells.count) / (mu * n_rows_public)


def _costs_and_norms(cells: Partition, weight: Weight) -> tuple[dict[str, float], dict[str, float]]:
    """C_t and N_t of the module docstring, by kind of product, for one cell."""
    c = cells.rest
    p, columns = c.n_columns, len(c.widths)
    k, rho2 = np.array(c.widths, dtype=np.float64), c.squared_lengths
    numbers, middle, h2 = len(c.numeric_indices), c.square_middle, c.largest_h**2
    w2 = typical_squares(c)
    along = ALONG_SHARE * (1 + float(w2.sum()))
    apart = len(cells.levels) / p  # the squared distance of two cells, where half of all rows agree in a column
    level, slope = (value**2 for value in typical_line(cells.whole, weight)[:2])
    steep = 4 * slope  # t contains -2 y.w
    n = float(k.sum())
    _, once, pair_norms, cube_norms = (*np.poly(-rho2)[:4], 0.0, 0.0, 0.0)[:4]  # elementary symmetric polynomials
    pair_points = n * float(w2.sum()) - float(k @ w2)  # over ordered pairs of columns, k_i w2_j
    pair_widths, cube_points = (columns - 1) * n / p, max(columns - 2, 0) * pair_points / p
    per_vector = n * OFFSET_SQUARED + along
    number_points = sum(float((w2 + w2[j] * (k + 1)).sum()) / p for j in range(columns) if c.is_numeric[j])
    costs = {
        "M0": level * OFFSET_SQUARED * (along + apart),
        "F0": level * (along + apart),
        "H0": slope * OFFSET_SQUARED * (along + apart),
        "G0": slope * (along + apart),
        "h": level * numbers / p,
        "fh": steep * numbers / (12 * p),
        "hh": slope * numbers / p,
        "M1": level * per_vector,
        "F1": level * n + steep * along * float(w2.sum()),
        "H1": slope * per_vector,
        "G1": slope * n,
        "E": steep * number_points,
        "M2": level * pair_widths + steep * OFFSET_SQUARED * pair_points,
        "F2": steep * pair_points,
        "H2": slope * pair_widths,
        "T": steep * cube_points,
    }
    each = numbers * middle**2
    norms = {"M0": 1.0, "F0": 1.0, "H0": h2, "G0": h2, "h": each, "fh": each, "hh": each * h2, "E": each * once}
    norms |= {"M1": once, "F1": once, "H1": once * h2, "G1": once * h2}
    norms |= {"M2": pair_norms, "F2": pair_norms, "H2": pair_norms * h2, "T": cube_norms}
    return costs, norms


def pays(schema: Schema, weight: Weight, mu: float, n_rows_public: int) -> bool:
    """Whether two cells that explained half of the variance of d^2 would be a clear gain; from public facts alone."""
    missed = MISS_COST * typical_line(Partition(schema).whole, weight)[2]
    noise = expected_gradient_noise(Partition(schema), weight, mu, n_rows_public)
    return 2 * noise**2 + 0.25 * missed**2 < 0.8 * (noise**2 + missed**2)


def choose_columns(
    schema: Schema, weight: Weight, mu: float, n_rows_public: int, shares: dict[str, float]
) -> tuple[str, ...]:
    """The columns to cut by, from public facts and the shares that a survey found; none where one cell is best."""
    missed = MISS_COST * typical_line(Partition(schema).whole, weight)[2]

    def expected(columns: tuple[str, ...]) -> float:
        noise = expected_gradient_noise(Partition(schema, columns), weight, mu, n_rows_public)
        return noise**2 + (missed * math.prod(1 - shares[name] for name in columns)) ** 2

    chosen: tuple[str, ...] = ()
    while True:
        wider = [(*chosen, name) for name in shares if name not in chosen]
        wider = [columns for columns in wider if _is_cut(schema, columns)]
        best = min(wider, key=expected, default=chosen)
        if expected(best) >= expected(chosen):
            return chosen
        chosen = best


def _is_cut(schema: Schema, columns: tuple[str, ...]) -> bool:
    """Whether these columns leave something to explain by, in not too many cells."""
    whole = Coordinates(schema)
    leaves = any(width and name not in columns for name, width in zip(whole.parts, whole.widths, strict=True))
    return leaves and Partition(schema, columns).count <= MOST_CELLS


def explained_shares(schema: Schema, surveyed: Floats, sigma: float) -> dict[str, float]:
    """How much of the variance of d^2 the levels of each categorical column explain, from a survey (1 + n, 1 + n)."""
    coordinates = Coordinates(schema)
    count = max(float(surveyed[0, 0]), 1.0)
    moments = (surveyed + surveyed.T) / (2 * count)
    mean, second = moments[0, 1:], moments[1:, 1:]
    whole = float(np.sum((second - np.outer(mean, mean)) * second))
    shares = {}
    for name, span, table in zip(coordinates.parts, coordinates.slices, coordinates.tables, strict=True):
        if table is None or table.shape[1] == 0:
            continue
        frequencies = 1 / len(table) + coordinates.scale * table @ mean[span]
        sums = mean / len(table) + coordinates.scale * table @ second[span]
        sums[:, span] = table * frequencies[:, None] / coordinates.scale
        common = frequencies * count > RARE * sigma * coordinates.scale
        means = sums[common] / frequencies[common, None] - mean
        between = (means * frequencies[common, None]).T @ means
        share = float(np.sum(between * second)) / whole if whole > 0 else 0.0
        shares[name] = min(max(share, 0.0), 1.0)
    return shares
