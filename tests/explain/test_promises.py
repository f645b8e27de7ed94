"""The promise of every result covers all releases it was computed from, each once: read off the ledger."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Basis, rounded_up
from vitrail.errors import InvalidInput
from vitrail.pane.pane_recipe import PARTS

ROWS = 3000
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 1),
        "dose": vt.Numeric(0, 1),
        "ward": vt.Categorical(["A", "B"]),
        "ill": vt.Categorical(["no", "yes"]),
    }
)

pytestmark = pytest.mark.usefixtures("curves_in_a_hurry")
POINT = {"age": 0.4, "dose": 0.6, "ward": "B"}


def private(**options: object) -> vt.PrivateData:
    draw = np.random.default_rng(0)
    rows = {
        "age": draw.uniform(size=ROWS),
        "dose": draw.uniform(size=ROWS),
        "ward": draw.choice(["A", "B"], ROWS),
        "ill": draw.choice(["no", "yes"], ROWS),
    }
    settings = {"name": "trial", "n_rows_public": ROWS, "budget": vt.Budget(500.0, 1e-6), "target": "ill", **options}
    return vt.PrivateData(rows, SCHEMA, **settings)  # type: ignore[arg-type]


def model(column: int = 0) -> vt.Model:
    return vt.Model(lambda x: 0.2 + 0.6 * x[:, column], range=(0, 1), name="risk")


def classes() -> list[vt.Model]:
    def both(x: np.ndarray) -> np.ndarray:
        return np.stack([x[:, 0], 1 - x[:, 0]], axis=1)

    return [vt.Model(both, output=place, range=(0, 1)) for place in (0, 1)]


def seqs_since(data: vt.PrivateData, last: int) -> set[int]:
    """The ``charged`` entries of what was asked after ``last``, those of replayed answers included."""
    found = set()
    for entry in data.budget.entries:
        if entry.seq > last and entry.kind == "charged":
            found.add(entry.seq)
        elif entry.seq > last and entry.kind == "replayed":
            found.add(int(entry.body["of"]))  # type: ignore[call-overload]
    return found


def last_of(data: vt.PrivateData) -> int:
    return max(entry.seq for entry in data.budget.entries)


def check(data: vt.PrivateData, promise: vt.Guarantee, used: set[int]) -> None:
    """What the entries cost together is what is promised: no less, and nothing twice."""
    cost = sum((entry.cost for entry in data.budget.entries if entry.seq in used), vt.Cost())
    assert used
    assert promise.mu**2 >= cost.pico_mu_squared * 1e-12 * (1 - 1e-12)
    assert promise.mu == pytest.approx(cost.mu, rel=1e-9)
    assert promise.delta == data.delta
    assert promise.epsilon == pytest.approx(vt.Guarantee.of_mu(cost.mu, data.delta).epsilon, rel=1e-9)


def local(data: vt.PrivateData, method: Any) -> vt.Attribution:
    return vt.LocalLinear(data, model(), method=method)(POINT, epsilon=1.0)


Explain = Callable[[vt.PrivateData], object]
ALONE: dict[str, Explain] = {
    "marginals": lambda d: vt.marginals(d, epsilon=1.0),
    "private rows": lambda d: vt.private_rows(d, epsilon=2.0),
    "statistics": lambda d: vt.LocalLinear(d, model())(POINT, epsilon=1.0),
    "descent": lambda d: local(d, vt.linear.Descent(iterations=5)),
    "adaptive": lambda d: local(d, vt.linear.Adaptive(iterations=5)),
    "enhanced": lambda d: local(d, vt.linear.Adaptive(iterations=5, enhanced=True)),
    "moments": lambda d: vt.LocalLinear(d, model()).fit(epsilon=1.0)(POINT),
    "cells": lambda d: vt.LocalLinear(d, model()).fit(epsilon=8.0, kind="cells")(POINT),
    "sharp rows": lambda d: vt.LocalLinear(d, model()).fit(epsilon=2.0, kind=vt.linear.Rows(n_sampled=500))(POINT),
    "classes": lambda d: vt.LocalClasses(d, classes())(POINT, epsilon=1.0)[0],
    "shapley": lambda d: vt.Shapley(d, model())(POINT, epsilon=1.0),
    "shapley, clip chosen": lambda d: vt.Shapley(d, model(), clip="auto")(POINT, epsilon=1.0),
    "counterfactual": lambda d: vt.Counterfactual(d, model(), rows=False).fit(epsilon=1.0)(POINT),
    "counterfactual with rows": lambda d: vt.Counterfactual(d, model(), latent="linear", rows=True).fit(epsilon=4.0)(POINT),
    "counterfactual of a network": lambda d: vt.Counterfactual(d, model(), latent="network").fit(epsilon=4.0)(POINT),
    "any curve": lambda d: vt.AnyCurve(
        d, lambda m, X: np.full(3, 0.5), x_grid=[0.0, 0.5, 1.0], y_range=(0, 1), model=model(), groups=20, isolation="none"
    )(epsilon=1.0),
    "any ranking": lambda d: vt.AnyRanking(
        d, lambda m, X: dict.fromkeys(X.columns, 1.0), model=model(), groups=20, isolation="none"
    )(epsilon=1.0),
}
ON_MARGINALS: dict[str, Callable[..., object]] = {
    "partial dependence": lambda d, **given: vt.PartialDependence(d, model(), columns=["age"], **given)(epsilon=0.4),
    "partial dependence of a pair": lambda d, **given: vt.PartialDependence(d, model(), columns=[("age", "dose")], **given)(
        epsilon=0.4
    )["age", "dose"],
    "accumulated effects": lambda d, **given: vt.AccumulatedEffects(d, model(), columns=["age"], **given)(epsilon=0.4)[
        "age"
    ],
    "importance": lambda d, **given: vt.PermutationImportance(d, model(), **given)(epsilon=0.4),
    "interactions": lambda d, **given: vt.Interactions(d, model(), **given)(epsilon=0.4),
    "shap importance": lambda d, **given: vt.ShapImportance(d, model(), **given)(epsilon=0.4),
    "shap dependence": lambda d, **given: vt.ShapDependence(d, model(), columns=["age"], **given)(epsilon=0.4)["age"],
    "report": lambda d, **given: vt.GlobalReport(d, model(), **given)(epsilon=0.4),
    "curve of a report": lambda d, **given: vt.GlobalReport(d, model(), **given)(epsilon=0.4).ale["age"],  # type: ignore[index]
    "ranking of a report": lambda d, **given: vt.GlobalReport(d, model(), **given)(epsilon=0.4).importance,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ALONE, *ON_MARGINALS])
def test_a_promise_covers_every_release_of_its_own_call(name: str) -> None:
    data = private()
    last = last_of(data)
    found = {**ALONE, **ON_MARGINALS}[name](data)
    check(data, found.guarantee, seqs_since(data, last))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ON_MARGINALS)
def test_a_promise_covers_marginals_that_were_paid_for_before(name: str) -> None:
    data = private()
    last = last_of(data)
    before = vt.marginals(data, epsilon=2.0)
    paid = last_of(data)
    found = ON_MARGINALS[name](data, marginals=before)
    check(data, found.guarantee, seqs_since(data, last))  # type: ignore[attr-defined]
    own = sum((entry.cost for entry in data.budget.entries if entry.seq in seqs_since(data, paid)), vt.Cost())
    assert found.cost == own  # type: ignore[attr-defined]
    back = vt.Marginals.from_json(before.to_json())
    again = ON_MARGINALS[name](data, marginals=back)
    # Read from a file they are the same release: the second result does not count them twice with the first.
    both = Basis.union(one.guarantee.behind for one in (before, back))
    assert both.cost == before.cost
    assert again.guarantee.mu == pytest.approx(found.guarantee.mu, rel=1e-9)  # type: ignore[attr-defined]


def test_the_two_numbers_of_the_audit() -> None:
    data = private()
    before = vt.marginals(data, epsilon=2.0)
    curve = vt.PartialDependence(data, model(), columns=["age"], marginals=before)(epsilon=0.4)["age"]
    assert curve.guarantee.epsilon == pytest.approx(2.055, abs=5e-4)
    assert curve.guarantee.epsilon == pytest.approx(data.budget.spent_epsilon, rel=1e-6)
    assert f"epsilon = {curve.guarantee.epsilon:.4g}" in curve._repr_html_()


@pytest.mark.parametrize("enhanced", [False, True])
def test_an_explanation_that_starts_from_earlier_ones_covers_those(enhanced: bool) -> None:
    data = private()
    explained = model()
    history, last = vt.linear.History(vt.LocalLinear(data, explained).problem), last_of(data)
    method = vt.linear.Adaptive(enhanced=enhanced, history=history, iterations=5)
    explain = vt.LocalLinear(data, explained, method=method)
    first = explain(POINT, epsilon=1.0)
    near = explain({**POINT, "age": 0.401}, epsilon=1.0)  # handed on
    far = explain({**POINT, "age": 1.0, "ward": "A"}, epsilon=1.0)
    assert near.guarantee == first.guarantee
    check(data, far.guarantee, seqs_since(data, last))
    assert far.cost.mu < far.guarantee.mu


def test_every_part_of_a_pane_covers_the_rows_that_its_curves_are_drawn_with() -> None:
    data = private()
    last = last_of(data)
    made = vt.release(data, model(), epsilon=1.0, parts=PARTS)
    check(data, made.guarantee, seqs_since(data, last))
    for pane in (made, vt.Pane.from_bytes(made.to_bytes(), model())):
        rows, report = pane.private_rows, pane.report
        together = rows.cost + report.cost
        for found in (report, pane.pdp, pane.pdp["age"], pane.ale["age"], pane.importance):
            assert found.guarantee.mu**2 >= together.pico_mu_squared * 1e-12 * (1 - 1e-12)
            assert found.guarantee.mu <= pane.guarantee.mu * (1 + 1e-12)
            assert found.guarantee.basis == rows.guarantee.basis | found.guarantee.basis
        for explained in (pane.local(POINT), pane.counterfactual(POINT)):
            assert explained.guarantee == pane.guarantee
        assert pane.mean_reasons.guarantee.basis == rows.guarantee.basis | pane.mean_reasons.guarantee.basis
        parts = (rows, pane.mean_reasons, report, pane.synopsis, pane._part("counterfactual"))
        assert Basis.union(part.guarantee.behind for part in parts).cost == pane.cost
        assert f"epsilon = {rounded_up(report.guarantee.epsilon)}" in report._repr_html_()


def test_a_replay_is_the_same_release() -> None:
    data = private()
    first, again = vt.marginals(data, epsilon=1.0), vt.marginals(data, epsilon=1.0)
    other = vt.marginals(data, epsilon=1.5)
    assert first.guarantee.basis == again.guarantee.basis
    assert not first.guarantee.basis.paid & other.guarantee.basis.paid


def test_two_choices_that_came_out_alike_are_two_releases() -> None:
    data = private()
    question = vt.Select(lambda block: np.stack([block.features[:, 0], 0 * block.features[:, 0]], axis=1), 2, 1.0)
    one, two = (data.ask(question, epsilon=5.0) for _ in range(2))
    both = one.guarantee.behind | two.guarantee.behind
    assert both.cost == one.cost + two.cost


def test_a_promise_that_says_less_than_its_releases_cost_cannot_be_made() -> None:
    found = vt.marginals(private(), epsilon=2.0).guarantee
    with pytest.raises(InvalidInput, match="says less than the releases behind it"):
        vt.Guarantee(0.4, found.delta, 0.1, basis=found.basis)
    with pytest.raises(InvalidInput, match="says less than the releases behind it"):
        vt.Guarantee(1.9, found.delta, 0.0, basis=found.basis)
    fields = {**found.to_json(), "epsilon": 0.4, "mu": 0.1}
    with pytest.raises(InvalidInput, match="says less than the releases behind it"):
        vt.Guarantee.from_json(fields)


def test_marginals_with_a_promise_of_another_kind_are_refused_before_a_charge() -> None:
    replaced = vt.marginals(private(neighbours="replace-one"), epsilon=1.0)
    data = private()
    with pytest.raises(InvalidInput, match="replace-one"):
        vt.PartialDependence(data, model(), marginals=replaced)(epsilon=0.4)
    assert data.budget.spent == vt.Cost()


def test_no_result_makes_its_promise_from_a_price() -> None:
    """Only price tags may (the vault's): they are about questions that nobody has asked yet."""
    source = Path(vt.__file__).parent
    made: dict[str, list[str]] = {}
    for room in ("explain", "pane", "results", "solve"):
        for file in sorted((source / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                if called in ("Guarantee", "Guarantee.of_mu", "Guarantee.of", "Guarantee.together"):
                    made.setdefault(str(file.relative_to(source)), []).append(called)
    assert {file for file, calls in made.items() if "Guarantee.of_mu" in calls} == set()
    assert {file for file, calls in made.items() if "Guarantee.of" in calls} == {
        "solve/linear/descent.py",  # History.promise: from the releases of its entries
        "solve/linear/labelled_rows.py",  # of no release at all
    }
    # Terms.promise: from the releases that a recipe was handed; of two panes: from the promises of both
    together = {file for file, calls in made.items() if "Guarantee.together" in calls}
    assert together == {"explain/recipe.py", "pane/comparison.py"}
    assert {file for file, calls in made.items() if "Guarantee" in calls} == {"explain/linear/fitting.py"}  # adds to one
