"""Fidelity: how well an explanation predicts the model on the 200 nearest other real rows. Every method, every weight.

Soft labels, affine explanations, errors in units of f in [-1, 1] (so a quarter of them in squared probability). Methods
that answer unlimited questions are given all of epsilon once; per-question methods are given it for *one* explanation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import exact
import vitrail as vt
from local_draws import drawn_statistics
from local_setup import DELTA, Bench, Case, Part, fitted
from vitrail.accounting import mu_of
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.solve.linear.labelled_rows import explain_on
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import Weight, custom, exponential, polynomial, stable

NON_PRIVATE: tuple[tuple[str, Weight], ...] = (
    ("sharp kernel exp(-d^2/0.05)", exponential(0.05)),
    ("sharp kernel exp(-d^2/0.1)", exponential(0.1)),
    ("kernel exp(-d^2/0.2)", exponential(0.2)),
    ("stable, c = 1", stable(1.0)),
    ("polynomial", polynomial()),
    ("global fit", custom(np.ones_like, name="global")),
)
RIDGE = 1e-6


class Judge:
    """Points of a case and the real rows around them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.of = case.indices(case.scale.fidelity_points, seed=1)
        self.centres = case.data.x[self.of]
        self.x_near, self.f_near = case.neighbours(self.of)

    @property
    def variance(self) -> float:
        return float(self.f_near.var(axis=1).mean())

    def error(self, intercepts: np.ndarray, slopes: np.ndarray, places: np.ndarray | None = None) -> float:
        at = np.arange(len(self.of)) if places is None else places
        found = exact.fidelity(self.x_near[at], self.f_near[at], self.centres[at], intercepts, slopes)
        return float(found.mean())

    def error_of(self, explanation: vt.Attribution, places: np.ndarray | None = None) -> float:
        """Of an explanation in units of a probability."""
        assert explanation.intercepts is not None
        assert explanation.coefficients is not None
        return self.error(2 * explanation.intercepts - 1, 2 * explanation.coefficients, places)


def non_private(judge: Judge) -> list[dict[str, object]]:
    weights = [weight for _, weight in NON_PRIVATE]
    found = judge.case.exact(judge.of, weights, "soft", affine=True)
    return [
        {"method": "non-private", "weight": name, "error": judge.error(*exact.affine_optimum(a, b, RIDGE))}
        for (name, _), (a, b) in zip(NON_PRIVATE, found, strict=True)
    ]


def lime_errors(judge: Judge) -> dict[str, object]:
    from peers import lime_tabular

    case = judge.case
    raw, schema = case.data.raw, case.data.schema
    rows = np.random.default_rng(2).choice(len(raw), min(len(raw), 30_000), replace=False)
    lime = lime_tabular.explainer(schema, raw[rows])
    predict = lambda given: case.estimator.predict_proba(schema.features(given)[0])  # type: ignore[attr-defined] # noqa: E731
    near = case.neighbour_rows(judge.of)
    count = min(len(judge.of), 6 if case.scale.quick else 60)
    errors = [
        lime_tabular.local_errors(lime, predict, raw[judge.of[place]], raw[near[place]], judge.f_near[place])
        for place in range(count)
    ]
    return {"method": "lime (not private)", "weight": "its default", "error": float(np.mean(errors)), "points": count}


WEIGHTS: tuple[tuple[str, Weight], ...] = NON_PRIVATE[:-1]


def per_question(judge: Judge, epsilon: float) -> Iterator[dict[str, object]]:
    """One release of statistics per point, each at the whole epsilon, for every weight; the library's own ridge."""
    case = judge.case
    weights = [weight for _, weight in WEIGHTS]
    rng = np.random.default_rng(9)
    for (name, weight), (a, b) in zip(WEIGHTS, case.exact(judge.of, weights, "soft", affine=True), strict=True):
        problem = LocalProblem(case.data.schema, case.model, weight)
        sigma = case.private.quote(statistics_question(problem, case.data.raw[judge.of[:1]]), epsilon=epsilon).sigma
        assert sigma is not None
        errors = []
        for _ in range(1 if case.scale.quick else 3):
            drawn = drawn_statistics(problem, case, judge.of, a, b, sigma, rng)
            fit = drawn.explain()
            errors.append(judge.error(fit.intercepts, drawn.features(fit.slopes)))
        yield {"method": "statistics, one explanation", "weight": name, "error": float(np.mean(errors))}


def unlimited(judge: Judge, epsilon: float, draws: int) -> Iterator[dict[str, object]]:
    """Everything that is paid for once; every draw is a release through a ledger of its own."""
    case = judge.case
    mu = mu_of(epsilon, DELTA)
    points = case.points(judge.of)
    schema, model = case.data.schema, case.model
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(draws):
        data = case.vault()
        released = fitted(LocalProblem(schema, model, polynomial()), data, mu)
        found.setdefault(("synopsis", "polynomial"), []).append(judge.error_of(released(points, bands=False)))
        for name, weight in (("stable, c = 1", stable(1.0)), ("kernel exp(-d^2/0.2)", exponential(0.2))):
            released = fitted(LocalProblem(schema, model, weight), data, mu, "cells")
            found.setdefault(("cells", name), []).append(judge.error_of(released(points, bands=False)))
        rows = vt.private_rows(data, mu=mu)
        problem = LocalProblem(schema, model, stable(1.0))
        for name, weight in (("default width", None), *WEIGHTS[:3]):
            sharp = explain_on(problem, rows, weight=weight)
            found.setdefault(("private rows", name), []).append(judge.error_of(sharp(points)))
    for (method, name), errors in found.items():
        yield {"method": method, "weight": name, "error": float(np.mean(errors)), "draws": len(errors)}


def descent_errors(judge: Judge, epsilon: float) -> dict[str, object]:
    """Real descents, point by point, each at the whole epsilon; few, because each is a hundred passes."""
    case = judge.case
    places = np.arange(2 if case.scale.quick else 20)
    explain = vt.LocalLinear(case.private, case.model, method="descent")
    errors = [
        judge.error_of(explain(case.points(judge.of[[place]]), epsilon=epsilon), np.array([place])) for place in places
    ]
    return {
        "method": "descent, one explanation",
        "weight": "stable, c = 1",
        "error": float(np.mean(errors)),
        "points": len(places),
    }


def fidelity(bench: Bench) -> Part:
    rows: list[dict[str, object]] = []

    def note(case: Case, epsilon: float | None, found: dict[str, object]) -> None:
        rows.append({"data": case.name, "epsilon": epsilon, **found})
        print("  ", rows[-1], flush=True)

    for name in ("adult-boosting", "acs"):
        case = bench.case(name)
        judge = Judge(case)
        note(case, None, {"method": "predicting the mean of the neighbours", "weight": "", "error": judge.variance})
        for found in (*non_private(judge), lime_errors(judge)):
            note(case, None, found)
        for epsilon in (0.1, 1.0):
            draws = 1 if bench.scale.quick else 5 if name == "adult-boosting" else 2
            for found in (*per_question(judge, epsilon), *unlimited(judge, epsilon, draws)):
                note(case, epsilon, found)
            if name == "adult-boosting":
                note(case, epsilon, descent_errors(judge, epsilon))
    private = [row for row in rows if row["data"] == "adult-boosting" and row["epsilon"] == 1.0]
    best = min(float(row["error"]) for row in private)  # type: ignore[arg-type]
    how = (
        "mean squared error of the affine explanation against soft f in [-1, 1] on the 200 nearest other real rows, "
        "mean over 200 points (60 for lime, 20 for descent); non-private: weighted least squares with a ridge of "
        "1e-6; statistics and descent have epsilon for one explanation, the others for all of them; the best is "
        "chosen on these same points"
    )
    return Part({"adult_fidelity_best_eps1": best}, rows, how)
