"""Bands of local linear explanations: how often they hold the ridge regression on the same rows without noise.

The truth is solved here from exact sums, by numpy alone: weighted least squares without a ball, with the library's fixed
ridge. One point per release; exact sums are reused and noise is drawn by the law of the vault's own plan. Results that are
mostly noise (sum of squared contributions below twice that of their standard errors, and no column whose simultaneous band
leaves out zero) are counted apart. Constants were chosen on ``CHOSEN_ON`` and judged on ``JUDGED_ON``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

import vitrail as vt
from local_draws import symmetric_noise
from reasons_setup import BOOSTING, Bench
from running import Part
from vitrail.accounting import mu_of
from vitrail.explain.linear.fitting import moments_question
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.ridge import RIDGE
from vitrail.solve.linear.statistics import LocalStatistics, scales_of
from vitrail.solve.linear.weights import Weight, polynomial, stable
from vitrail.vault import rehearse

DELTA = 1e-6
EPSILONS = (0.3, 1.0, 3.0)
CHOSEN_ON = ("adult", "framingham")
JUDGED_ON = ("acs", "bike", "diabetes")
POINTS, DRAWS = 20, 10
MOST_ROWS = 100_000
MOST_COORDINATES = 128
"""Beyond it the third moments of a hundred thousand rows take minutes."""
FEWEST_PAIRS = 200
TWO_SIDED_95 = 1.959963984540054
BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Subject:
    """Rows, points and the problem of a dataset."""

    name: str
    problem: LocalProblem
    rows: np.ndarray
    points: np.ndarray

    @property
    def m(self) -> int:
        return len(self.rows)


def subject_of(bench: Bench, name: str, weight: Weight, n_points: int = POINTS) -> Subject:
    """A case of the reasons benchmark under its boosted model; counts are cut to 0 to 977, the range declared."""
    case = bench.case(name)
    model = bench.model(name, BOOSTING)
    if case.counts:
        estimator = bench.estimator(name, BOOSTING)

        def counts(raw: np.ndarray) -> np.ndarray:
            return np.clip(estimator.predict(raw), 0, 977)  # type: ignore[attr-defined]

        model = vt.Model(counts, range=(0, 977), inputs="values", name=f"boosting of {name}")
    rows = case.rows
    if len(rows) > MOST_ROWS:
        rows = rows[np.random.default_rng(3).choice(len(rows), MOST_ROWS, replace=False)]
    return Subject(name, LocalProblem(case.schema, model, weight), rows, case.people[:n_points])


def exact_sums(bench: Bench, subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Sums of alpha u u^T and alpha f u, u = (1, d), around every point: (points, n + 1, n + 1) and (points, n + 1)."""

    def make() -> dict[str, np.ndarray]:
        problem = subject.problem
        x, f, z = problem.encode(subject.rows), problem.at(subject.rows), problem.encode(subject.points)
        gram, cross = np.zeros((len(z), x.shape[1] + 1, x.shape[1] + 1)), np.zeros((len(z), x.shape[1] + 1))
        u = np.ones((BLOCK_ROWS, x.shape[1] + 1))
        for start in range(0, len(x), BLOCK_ROWS):
            some, labels = x[start : start + BLOCK_ROWS], f[start : start + BLOCK_ROWS]
            for point, centre in enumerate(z):
                block = u[: len(some)]
                block[:, 1:] = some - centre
                alpha = problem.weight(np.linalg.norm(block[:, 1:], axis=1))
                weighted = block * alpha[:, None]
                gram[point] += weighted.T @ block
                cross[point] += weighted.T @ labels
        return {"gram": gram, "cross": cross}

    name = f"bands-local-{subject.name}-{subject.problem.weight.name}-{subject.m}-{len(subject.points)}"
    found = bench.cache.arrays(name, make)
    return found["gram"], found["cross"]


def ridge_truth(schema: vt.Schema, a: np.ndarray, b: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Contributions by column, in units of f, of weighted ridge regression on exact statistics of u = (1, d)."""
    free = sum(1 if isinstance(column, vt.Numeric) else len(column.levels) - 1 for column in schema.without_codes().values())
    mean = a[:, 0, 1:] / a[:, 0, :1]
    inner = a[:, 1:, 1:] - mean[:, :, None] * a[:, None, 0, 1:]
    penalty = ridge * np.trace(inner, axis1=1, axis2=2) / free
    inner[:, np.arange(inner.shape[1]), np.arange(inner.shape[1])] += penalty[:, None]
    slopes = np.linalg.solve(inner, (b[:, 1:] - mean * b[:, :1])[:, :, None])[:, :, 0]
    return np.stack([-(slopes * mean)[:, span].sum(axis=1) for span in schema.feature_slices.values()], axis=1)


# --- draws ---------------------------------------------------------------------------------------------------------------

Draw = tuple[np.ndarray, np.ndarray]
"""Values and half-widths, both (points, columns), in units of f."""


def statistics_draws(bench: Bench, subject: Subject, epsilon: float, draws: int) -> Iterator[Draw]:
    """Every point from a release of its own, each time with fresh noise."""
    problem, scales = subject.problem, scales_of(subject.problem)
    gram, cross = exact_sums(bench, subject)
    size = np.ones(gram.shape[1])
    size[0] = scales.intercept
    gram, cross = gram * size[:, None] * size, cross * size * scales.label
    sigma = statistics_question(problem, subject.points[:1]).l2_bound / mu_of(epsilon, DELTA)
    rng = np.random.default_rng(8)
    for _ in range(draws):
        noisy = gram + symmetric_noise(gram.shape, sigma, rng), cross + rng.normal(0.0, sigma, cross.shape)
        fit = LocalStatistics.of_sums(problem, subject.points, *noisy, sigma, subject.m, scales).explain()
        yield fit.values, fit.half_widths


def moments_draws(subject: Subject, epsilon: float, draws: int) -> Iterator[Draw]:
    """All points from one release of moments, by the vault's own rehearsal: one exact pass, ``draws`` times its noise."""
    problem, mu = subject.problem, mu_of(epsilon, DELTA)
    asked = moments_question(problem)
    frame = problem.schema.pandas(subject.rows)
    data = vt.PrivateData(
        frame.head(200), problem.schema, name=subject.name, n_rows_public=subject.m, budget=vt.Budget(500.0, DELTA),
        ledger="memory",
    )  # fmt: skip
    released = vt.LocalLinear(data, problem.model, weight=problem.weight).fit(kind="moments", mu=mu)  # for its public facts
    shapes = list(zip(asked.lefts, asked.rights, strict=True))
    ends = np.cumsum([left * right for left, right in shapes])
    w = released.coordinates.of_points(subject.points)
    for flat in rehearse(asked, frame, problem.schema, mu=mu, n_rows_public=subject.m, draws=draws, block_rows=4096):
        parts = tuple(part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True))
        fit = replace(released, parts=parts).ridge(w)
        yield fit.values, fit.half_widths


# --- what they are worth -----------------------------------------------------------------------------------------------


def mostly_noise(values: np.ndarray, half_widths: np.ndarray) -> np.ndarray:
    """Which results (..., columns) do not stand out of their noise."""
    errors = half_widths / TWO_SIDED_95
    simultaneous = norm.ppf(1 - 0.025 / values.shape[-1])
    weak = (values**2).sum(axis=-1) < 2 * (errors**2).sum(axis=-1)
    return np.asarray(weak & ~(np.abs(values) > simultaneous * errors).any(axis=-1))


def judged(truth: np.ndarray, draws: Sequence[Draw]) -> dict[str, object]:
    """Coverage and width of draws (draws, points, columns), all of them and without those that are mostly noise."""
    values, half_widths = (np.array(parts) for parts in zip(*draws, strict=True))
    errors = values - truth
    held, apart = np.abs(errors) <= half_widths, mostly_noise(values, half_widths)

    def figures(chosen: np.ndarray) -> dict[str, object]:
        if not chosen.any():
            return {"results": 0}
        columns = held[chosen].mean(axis=0)
        oracle = TWO_SIDED_95 * np.sqrt((errors[chosen] ** 2).mean(axis=0))
        return {
            "results": int(chosen.sum()),
            "coverage": float(columns.mean()),
            "by_column": columns.round(4).tolist(),
            "width": float(half_widths[chosen].mean() / (TWO_SIDED_95 * np.sqrt((errors[chosen] ** 2).mean()))),
            "widths": (half_widths[chosen].mean(axis=0) / np.maximum(oracle, 1e-300)).round(3).tolist(),
        }

    return {
        "all": figures(np.ones_like(apart)),
        "told": figures(~apart),
        "mostly_noise": float(apart.mean()),
        "size": float((values * truth).mean() / (truth**2).mean()),
        "error": float(np.sqrt((errors**2).mean())),
        "truth": float(np.sqrt((truth**2).mean())),
    }


def summed_up(rows: Sequence[dict[str, object]], explainer: str) -> dict[str, object]:
    """Overall, worst column (of those with enough pairs) and width over datasets nobody tuned on, and over all."""

    def figures(names: Sequence[str]) -> tuple[float, float, float]:
        told = [row["told"] for row in rows if row["data"] in names and row["told"]["results"]]  # type: ignore[index]
        enough = [one for one in told if one["results"] >= FEWEST_PAIRS // 2]  # type: ignore[index]
        results = np.array([one["results"] for one in told], dtype=float)  # type: ignore[index]
        overall = float(np.average([one["coverage"] for one in told], weights=results))  # type: ignore[index]
        worst = min((min(one["by_column"]) for one in enough), default=float("nan"))  # type: ignore[index]
        return overall, worst, float(np.average([one["width"] for one in told], weights=results))  # type: ignore[index]

    found: dict[str, object] = {}
    for suffix, names in (("", (*CHOSEN_ON, *JUDGED_ON)), ("_unseen", JUDGED_ON)):
        keys = (f"{explainer}_overall{suffix}", f"{explainer}_worst{suffix}", f"{explainer}_width{suffix}")
        found |= dict(zip(keys, figures(names), strict=True))
    return found


def measured(bench: Bench, method: str, names: Sequence[str]) -> list[dict[str, object]]:
    """One row for each dataset and epsilon."""
    rows: list[dict[str, object]] = []
    for name in names:
        subject = subject_of(bench, name, stable() if method == "statistics" else polynomial())
        gram, cross = exact_sums(bench, subject)
        truth = ridge_truth(subject.problem.schema, gram / subject.m, cross / subject.m)
        for epsilon in EPSILONS:
            draws = 2 if bench.quick else DRAWS
            drawn = statistics_draws(bench, subject, epsilon, draws) if method == "statistics" else moments_draws(
                subject, epsilon, draws
            )  # fmt: skip
            found = judged(truth, list(drawn))
            columns = list(subject.problem.schema.names)
            rows.append({"data": name, "method": method, "epsilon": epsilon, "rows": subject.m, "columns": columns, **found})
            told = found["told"]
            worst = columns[int(np.argmin(told["by_column"]))] if told["results"] else None  # type: ignore[index]
            print(
                "  ", name, epsilon, {k: v for k, v in found.items() if k not in ("all", "told")}, "worst", worst, flush=True
            )
            for which in ("all", "told"):
                print("      ", which, found[which], flush=True)
    return rows


HOW = (
    "share of (draw, point) pairs whose band holds the contribution of weighted ridge regression (no ball, intercept free, "
    f"ridge {RIDGE} of the mean eigenvalue) on exact sums of the same rows; {POINTS} points x {DRAWS} draws, one point per "
    "release for statistics; results that are mostly noise are counted apart; width: mean over 1.96 root mean squared "
    f"errors; constants chosen on {', '.join(CHOSEN_ON)}, judged on {', '.join(JUDGED_ON)}; heavy tails and the correction "
    "of the resolvent were added after a look at diabetes"
)


def local_statistics(bench: Bench) -> Part:
    """Bands of ``method="statistics"``, stable weight."""
    rows = measured(bench, "statistics", (*CHOSEN_ON, *JUDGED_ON))
    return Part(summed_up(rows, "local_statistics"), rows, HOW)


def local_moments(bench: Bench) -> Part:
    """Bands of ``fit(kind="moments")``, polynomial weight, where the moments of all rows are not too many."""
    names = [name for name in (*CHOSEN_ON, *JUDGED_ON) if _free(bench, name) <= MOST_COORDINATES]
    rows = measured(bench, "moments", names)
    return Part(summed_up(rows, "local_moments"), rows, f"{HOW}; moments of {', '.join(names)}")


def _free(bench: Bench, name: str) -> int:
    schema = bench.case(name).schema
    return schema.n_features - sum(isinstance(column, vt.Categorical) for column in schema.values())
