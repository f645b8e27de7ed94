"""What the paper only asks: who gets the worse explanations; and what a user asks: which method when."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bands_local import true_values
from local_draws import rehearsed, symmetric_noise
from local_loss import Judge
from local_setup import DELTA, Bench, Case, Part, fitted
from local_stream import Third, non_adaptive, per_query_statistics, protocol, thirds
from papers.patel_cases import problem_of
from papers.patel_loss import published_phis
from vitrail.accounting import mu_of
from vitrail.explain.linear.fitting import moments_question
from vitrail.solve.linear.descent import Gradients
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import LocalStatistics, scales_of
from vitrail.solve.linear.weights import Weight, polynomial, stable

SEX = {1: "men", 2: "women"}
RACE = {
    1: "White",
    2: "Black",
    3: "American Indian",
    4: "Alaska Native",
    5: "American Indian or Alaska Native, not specified",
    6: "Asian",
    7: "Native Hawaiian or Pacific Islander",
    8: "some other race",
    9: "two or more races",
}
GROUP_EPSILON = 0.1


def group_indices(case: Case, per_group: int) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
    """Rows to explain, drawn within each group, and which of them belong to which group."""
    chosen: list[np.ndarray] = []
    groups = []
    start = 0
    for column, names in (("SEX", SEX), ("RAC1P", RACE)):
        values = case.data.frame[column].to_numpy()
        for level, name in names.items():
            rng = np.random.default_rng([71, level, len(names)])
            members = np.flatnonzero(values == level)
            of = rng.choice(members, min(per_group, len(members)), replace=False)
            chosen.append(of)
            groups.append((name, np.arange(start, start + len(of))))
            start += len(of)
    return np.concatenate(chosen), groups


def subgroups(bench: Bench) -> Part:
    case = bench.case("acs")
    per_group = 5 if bench.scale.quick else 25
    of, groups = group_indices(case, per_group)
    shares = {SEX[k]: float((case.data.frame["SEX"] == k).mean()) for k in SEX}
    shares |= {RACE[k]: float((case.data.frame["RAC1P"] == k).mean()) for k in RACE}
    rows: list[dict[str, object]] = []
    pairs = case.exact(of, [stable(1.0)], "hard", affine=False), case.exact(of, [polynomial()], "hard", affine=False)
    for method, weight, ((a, b),) in zip(("statistics", "synopsis"), (stable(1.0), polynomial()), pairs, strict=True):
        problem = problem_of(case, weight)
        third = Third(case.m, case.data.raw[of], case.data.x[of], a, b)
        measure = statistics_by_point if method == "statistics" else synopsis_by_point
        draws = 2 if bench.scale.quick else 3
        losses, widths, held = measure(case, problem, third, of, draws)
        nothing = third.excess(np.zeros_like(b))
        for name, places in groups:
            rows.append(
                {
                    "method": method,
                    "group": name,
                    "share_of_rows": shares[name],
                    "mean_excess_loss": float(losses[:, places].mean()),
                    "loss_of_no_explanation": float(nothing[places].mean()),
                    "mean_half_width": float(widths[:, places].mean()),
                    "coverage": float(held[:, places].mean()),
                    "points": len(places),
                    "draws": len(losses),
                }
            )
            print("  ", rows[-1], flush=True)
    headline = {}
    for method in ("statistics", "synopsis"):
        found = [float(str(row["mean_excess_loss"])) for row in rows if row["method"] == method]
        headline[f"{method}_worst_over_best_group"] = max(found) / min(found)
        headline[f"{method}_lowest_coverage"] = min(float(str(row["coverage"])) for row in rows if row["method"] == method)
    how = (
        f"ACS, epsilon {GROUP_EPSILON}, delta 1e-6, hard labels, unit ball; {per_group} people drawn within each group. "
        "statistics: stable weight, one release each, exact sums plus the vault's noise law, 3 draws. synopsis: polynomial "
        "weight, one release for all, through the ledger, and two rehearsals of it by the vault. Half-width of the 95 % "
        "bands and their coverage of the explanation without noise, over people, columns and draws, in units of the "
        "model's output; groups as the survey codes them"
    )
    return Part(headline, rows, how)


def statistics_by_point(
    case: Case, problem: LocalProblem, third: Third, of: np.ndarray, draws: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses (draws, points), half-widths and whether they hold the truth (draws, points, columns)."""
    truth = true_values(problem, third.raw, third.a, third.b)
    scales = scales_of(problem)
    sigma, rng = scales.l2_bound / mu_of(GROUP_EPSILON, DELTA), np.random.default_rng(72)
    losses, widths, held = [], [], []
    for _ in range(draws):
        gram = case.m * third.a + symmetric_noise(third.a.shape, sigma, rng)
        cross = case.m * third.b * scales.label + rng.normal(0.0, sigma, third.b.shape)
        found = LocalStatistics.of_sums(problem, third.raw, gram, cross, sigma, case.m, scales)
        fit = found.solve()
        losses.append(third.excess(found.features(fit.slopes)))
        half = found.half_widths(fit, 1.0)
        widths.append(half * problem.model.width / 2)
        held.append(np.abs(found.values(fit) - truth) <= half)
    return np.array(losses), np.array(widths), np.array(held)


def synopsis_by_point(
    case: Case, problem: LocalProblem, third: Third, of: np.ndarray, draws: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    half = problem.model.width / 2
    truth = half * true_values(problem, third.raw, third.a, third.b)
    mu = mu_of(GROUP_EPSILON, DELTA)
    released = fitted(problem, case.private, mu)
    made = [released, *(replace(released, parts=p) for p in rehearsed(moments_question(problem), case, mu, draws - 1))]
    losses, widths, held = [], [], []
    for one in made:
        found = one(case.points(of))
        assert found.coefficients is not None
        assert found.lower is not None
        assert found.upper is not None
        losses.append(third.excess(found.coefficients / half))
        widths.append((found.upper - found.lower) / 2)
        held.append((found.lower <= truth) & (truth <= found.upper))
    return np.array(losses), np.array(widths), np.array(held)


# --- which method when ------------------------------------------------------------------------------------------------

COUNTS = (1, 10, 100, 1000)


def which(bench: Bench) -> Part:
    rows: list[dict[str, object]] = []
    for name in ("acs", "adult-forest"):
        case = bench.case(name)
        weight = stable(1.0)
        problem = problem_of(case, weight)
        counts = COUNTS[:2] if bench.scale.quick else COUNTS
        truth = Judge(case, weight)
        some = Third(case.m, case.data.raw[truth.of], case.data.x[truth.of], truth.a, truth.b)
        whole = long_stream(case, weight, counts[-1])
        judge = Judge(case, polynomial())
        for epsilon in (0.1, 1.0):
            mu = mu_of(epsilon, DELTA)
            free = unlimited(case, problem, some, judge, mu)
            for count in counts:
                each = mu / math.sqrt(count)
                rng = np.random.default_rng([81, count])
                found = {
                    "statistics": some.excess(per_query_statistics(problem, some, each, rng)[0]),
                    "descent": some.excess(non_adaptive(Gradients(problem), some, each, rng)[0]),
                }
                if count > 1:
                    found["adaptive"] = adaptive_losses(problem, whole, count, each)
                losses = {method: float(values.mean()) for method, values in found.items()} | free
                rows.append(row_of(name, epsilon, count, losses))
            rows.append(row_of(name, epsilon, None, free))
            rows[-1]["nothing released"] = float(some.excess(np.zeros_like(some.b)).mean())
            published = some.excess(published_phis(some, epsilon, DELTA, np.random.default_rng(82)))
            rows[-1]["Algorithm 1 as published, one explanation"] = float(published.mean())
            for row in rows[-len(counts) - 1 :]:
                print("  ", row, flush=True)
    how = (
        "mean excess loss by method when all explanations together cost epsilon (delta 1e-6; hard labels, unit ball). "
        "statistics, descent and adaptive: 100 points (adaptive: streams of exactly that many), price mu/sqrt(count) each,"
        " stable weight c = 1, exact sums plus the vault's noise law (adaptive on ACS: exact sums of a third of the rows)."
        " cells: one release through the ledger, read under the stable weight; synopsis: one release through the ledger "
        "under its own, polynomial weight, so its column is not comparable to the last digit. 'best' is the lowest under "
        "the stable weight"
    )
    return Part({}, rows, how)


def long_stream(case: Case, weight: Weight, count: int) -> Third:
    """Points for streams: of ACS the first part's queries, whose truth is stored, with the noise of all rows."""
    if case.name == "acs":
        return replace(next(thirds(case, 40 if case.scale.quick else 1500)), rows=case.m).first(count)
    of = case.indices(count, seed=5)
    ((a, b),) = case.exact(of, [weight], "hard", affine=False)
    return Third(case.m, case.data.raw[of], case.data.x[of], a, b)


def row_of(name: str, epsilon: float, count: int | None, losses: dict[str, float]) -> dict[str, object]:
    comparable = {method: loss for method, loss in losses.items() if method != "synopsis"}
    best = min(comparable, key=lambda method: comparable[method])
    return {
        "data": name,
        "epsilon": epsilon,
        "explanations": "unlimited" if count is None else count,
        **losses,
        "best": best,
    }


def adaptive_losses(problem: LocalProblem, whole: Third, count: int, mu: float) -> np.ndarray:
    """Streams of ``count`` points, as many as fit in 100 points."""
    found = []
    for start in range(0, max(1, min(100, len(whole.raw)) // count) * count, count):
        part = slice(start, start + count)
        third = Third(whole.rows, whole.raw[part], whole.centres[part], whole.a[part], whole.b[part])
        found.append(
            third.excess(protocol(Gradients(problem), third, mu, np.random.default_rng([83, start]), enhanced=False)[0])
        )
    return np.concatenate(found)


def unlimited(case: Case, problem: LocalProblem, third: Third, judge: Judge, mu: float) -> dict[str, float]:
    """Mean excess losses of cells under the problem's weight and of the synopsis under its own."""
    half = case.model.width / 2
    released = fitted(problem, case.private, mu, "cells")
    by_cell = released(case.data.schema.frame(third.raw), bands=False).coefficients
    assert by_cell is not None
    synopsis = fitted(judge.problem, case.private, mu)
    return {
        "synopsis": float(judge.losses_of(synopsis(judge.points, bands=False)).mean()),
        "cells": float(third.excess(by_cell / half).mean()),
    }
