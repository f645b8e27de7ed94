"""Figure 4 of the paper: the loss over the steps of Algorithm 3 as published, where it started near the optimum."""

from __future__ import annotations

import math

import numpy as np

import exact
from local_setup import Part
from local_stream import Third, thirds
from papers.patel_cases import PatelBench, problem_of
from papers.patel_published import Algorithm3, Parameters, gradient, learning_rate, projected
from papers.patel_streams import ITERATIONS, Workload, epsilon_for_least, published_stream

SHOWN = 15
KEPT_STEPS = 100


def convergence(bench: PatelBench) -> Part:
    case = bench.case("acs")
    queries = 40 if bench.scale.quick else 500
    load = Workload("acs", problem_of(case), [next(thirds(case, queries))], [], 0.01)
    rows: list[dict[str, object]] = []
    headline = {}
    for setting, epsilon in (("as stated", load.epsilon), ("raised", epsilon_for_least(load))):
        stream = published_stream(load, epsilon, 0, enhanced=False)
        for z in load.parts[0].centres:
            stream.explain(z)
        near = [place for place, chosen in stream.chosen.items() if place and started_near(stream, chosen)]
        rng = np.random.default_rng(91)
        of = rng.choice(near, min(SHOWN, len(near)), replace=False)
        curves = [losses_of_steps(load.parts[0], place, stream.chosen[place], rng) for place in of]
        row = {
            "setting": setting,
            "epsilon": epsilon,
            "points": len(curves),
            "started_near": len(near),
            "computed": len(stream.chosen),
            "sqrt_n_sigma_min": math.sqrt(load.parts[0].b.shape[1]) * stream.sigma_min,
            "steps": len(curves[0]) - 1,
            "mean_first": float(np.mean([curve[0] for curve in curves])),
            "mean_highest": float(np.mean([curve.max() for curve in curves])),
            "mean_last": float(np.mean([curve[-1] for curve in curves])),
            "end_lower_than_start": sum(bool(curve[-1] < curve[0]) for curve in curves),
            "nothing_released": float(load.parts[0].excess(np.zeros_like(load.parts[0].b)).mean()),
            **thinned(curves),
        }
        rows.append(row)
        headline[f"end_over_start_{setting.replace(' ', '_')}"] = row["mean_last"] / row["mean_first"]
        print("  ", {key: value for key, value in row.items() if not isinstance(value, list)}, flush=True)
    how = (
        "ACS, 500 queries to a third of the rows by Algorithm 3 as published, epsilon 0.01 a query, and at the epsilon at "
        "which the least T' is the printed one; delta 1e-7, T = 300. Of the queries that were computed from a start with "
        "beta < sqrt(n) sigma_min, 15 at random: excess loss at the start and after every step, their descents drawn again"
    )
    return Part(headline, rows, how)


def started_near(stream: Algorithm3, chosen: Parameters) -> bool:
    return chosen.beta < math.sqrt(len(chosen.start)) * stream.sigma_min


def losses_of_steps(third: Third, place: int, chosen: Parameters, rng: np.random.Generator) -> np.ndarray:
    """DPGD-Explain from a start: the excess loss of every phi."""
    a, b = third.a[place], third.b[place]
    c0, phis = learning_rate(len(b), chosen.sigma, chosen.beta, ITERATIONS), [chosen.start]
    for t in range(1, chosen.steps):
        noisy = gradient(a, b, phis[-1]) + rng.normal(0.0, chosen.sigma, len(b))
        phis.append(projected(phis[-1] - c0 / math.sqrt(t) * noisy))
    made = np.array(phis)[:, None]
    return exact.excess_loss(a[None], b[None], made, third.best[place][None])[:, 0]


def thinned(curves: list[np.ndarray]) -> dict[str, object]:
    places = np.unique(np.linspace(0, len(curves[0]) - 1, KEPT_STEPS).astype(int))
    return {"step": places.tolist(), "losses": [[float(f"{curve[place]:.3g}") for place in places] for curve in curves]}
