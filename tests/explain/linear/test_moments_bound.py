"""No row says more than the synopsis claims, none is clipped, and the release is as private as it says."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.explain.linear import fitting as moments
from vitrail.solve.linear.cells import _costs_and_norms, choose_scales
from vitrail.solve.linear.coordinates import Partition
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import exponential, polynomial, stable
from vitrail.vault import rehearse
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Counted

SCHEMA = vt.Schema(
    {
        "a": vt.Numeric(-1, 3),
        "b": vt.Categorical(["p", "q", "r"]),
        "c": vt.Numeric(0, 10),
        "d": vt.Categorical(["u", "v"]),
    }
)
CORNERS = np.array(list(product([-1.0, 3.0], range(3), [0.0, 10.0], range(2))))


def sign(features: np.ndarray) -> np.ndarray:
    return (features[:, 0] > 0.4).astype(float)


def question(cells: tuple[str, ...] = (), weight: vt.weights.Weight | None = None) -> vt.ProductSum:
    problem = LocalProblem(SCHEMA, vt.Model(sign, range=(0, 1)), weight or polynomial(), "hard")
    return moments.moments_question(problem, cells=cells)


def factors(asked: vt.ProductSum, raw: np.ndarray) -> tuple[np.ndarray, ...]:
    facts = PublicFacts(SCHEMA, None, len(raw), "add-remove", len(raw))
    return asked.fn(vt.Block(raw, facts, lambda model, values: model.predict(SCHEMA, values)))


def norms(asked: vt.ProductSum, raw: np.ndarray) -> np.ndarray:
    made = factors(asked, raw)
    squares = [(left**2).sum(axis=1) * (right**2).sum(axis=1) for left, right in zip(made[0::2], made[1::2], strict=True)]
    return np.sqrt(np.sum(squares, axis=0))


rows = st.tuples(st.floats(-1, 3), st.integers(0, 2), st.floats(0, 10), st.integers(0, 1)).map(np.array)


@settings(deadline=None, max_examples=100)
@given(st.lists(rows, min_size=1, max_size=8).map(np.array), st.sampled_from([(), ("b",), ("b", "d")]))
def test_no_row_exceeds_the_declared_norms(raw: np.ndarray, cells: tuple[str, ...]) -> None:
    asked = question(cells)
    assert (norms(asked, raw) <= asked.l2_bound).all()
    made = factors(asked, raw)
    for left, right, left_bound, right_bound in zip(
        made[0::2], made[1::2], asked.left_bounds, asked.right_bounds, strict=True
    ):
        assert (np.linalg.norm(left, axis=1) <= left_bound).all()
        assert (np.linalg.norm(right, axis=1) <= right_bound).all()


@pytest.mark.parametrize("cells", [(), ("b",), ("b", "d")])
@pytest.mark.parametrize("weight", [polynomial(), stable(), exponential(0.2)])
def test_corners_attain_the_bound_and_are_not_clipped(cells: tuple[str, ...], weight) -> None:
    asked = question(cells, weight)
    reached = norms(asked, CORNERS)
    assert reached.max() <= asked.l2_bound
    assert reached.min() >= (1 - 1e-4) * asked.l2_bound
    plan = asked.plan(1.0, PublicFacts(SCHEMA, None, 50, "add-remove", 8))
    products = plan._products(factors(asked, CORNERS), Counted(np.ones(len(CORNERS), dtype=bool)))
    exact = factors(asked, CORNERS)
    for summed, left, right, (left_grid, right_grid) in zip(products, exact[0::2], exact[1::2], plan.grids, strict=True):
        # What the vault sums differs from the products by the rounding of entries to its grid, and by no factor.
        assert summed * left_grid.step * right_grid.step == pytest.approx(left.T @ right, abs=len(CORNERS) * 2e-6)


@pytest.mark.parametrize("cells", [(), ("b",)])
def test_audit_on_worst_case_neighbours(cells: tuple[str, ...]) -> None:
    asked = question(cells)
    one, none = CORNERS[:1], np.empty((0, 4))
    direction = np.concatenate(
        [(left.T @ right).ravel() for left, right in zip(factors(asked, one)[0::2], factors(asked, one)[1::2], strict=True)]
    )

    def run(data: np.ndarray, draws: int) -> np.ndarray:
        # In batches, for memory; the likelihood ratio is a function of this product.
        batches = [
            rehearse(asked, SCHEMA.frame(data), SCHEMA, mu=1.0, n_rows_public=1, draws=min(20_000, draws - start))
            @ direction
            for start in range(0, draws, 20_000)
        ]
        return np.concatenate(batches)

    audit = vt.audit.mechanism(run, (one, none), claimed=1.0, confidence=CONFIDENCE)
    assert not audit.refuted, audit.summary()
    with planted_noise():
        audit = vt.audit.mechanism(run, (one, none), claimed=1.0, draws=40_000)
    assert audit.tightness >= 0.8, audit.summary()


def test_scales_depend_on_public_facts_only_and_are_round() -> None:
    scales = choose_scales(Partition(SCHEMA), polynomial())
    assert all(float(f"{scale:.3g}") == scale > 0 for scale in scales.values())
    assert scales["F1"] == 1.0


def test_scales_minimise_the_predicted_noise() -> None:
    costs, squares = _costs_and_norms(Partition(SCHEMA), stable())
    scales = choose_scales(Partition(SCHEMA), stable())

    def noise(changed: dict[str, float]) -> float:
        used = {**scales, **changed}
        return sum(costs[t] / used[t] ** 2 for t in costs) * sum(squares[t] * used[t] ** 2 for t in costs)

    best = noise({})
    for name in ("M0", "M1", "F1", "M2", "F2", "T"):
        assert noise({name: 1.1 * scales[name]}) > best
        assert noise({name: scales[name] / 1.1}) > best
