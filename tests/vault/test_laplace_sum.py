"""Laplace sums: the noise has exactly its law, rows never exceed their norm, and prices are as proven."""

import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import vitrail as vt
from error_rates import ERROR_RATE, planted_noise
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.vault import PublicRows
from vitrail.vault.noise.discrete_laplace import discrete_laplace, discrete_laplace_of_largest
from vitrail.vault.questions.laplace_sum import to_cells

SCHEMA = vt.Schema({"x": vt.Numeric(-1e6, 1e6), "y": vt.Numeric(-1e6, 1e6)})
NORMS = ("l1", "max")


def as_they_are(block: vt.Block) -> np.ndarray:
    return np.stack([block.column("x"), block.column("y")], axis=1)


def question(norm: str, bound: float = 1.0, **more: object) -> vt.LaplaceSum:
    return vt.LaplaceSum(as_they_are, 2, bound, norm, **more)  # type: ignore[arg-type]


def private(**more: object) -> vt.PrivateData:
    budget = vt.Budget(3, 1e-6, training=(2, 0))
    declared: dict[str, object] = {"name": "xy", "n_rows_public": 4, "budget": budget, "ledger": "memory", **more}
    return vt.PrivateData({"x": [0.0] * 4, "y": [0.5] * 4}, SCHEMA, **declared)  # type: ignore[arg-type]


# --- the noise ----------------------------------------------------------------------------------------------------------


def fits(seen: np.ndarray, law: np.ndarray) -> bool:
    """Pearson's test; cells that expect fewer than 20 are put together."""
    expected = law * seen.sum()
    few = expected < 20
    seen = np.append(seen[~few], seen[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    return bool(((seen - expected) ** 2 / expected).sum() < chi2.isf(ERROR_RATE, len(seen) - 1))


@pytest.mark.parametrize("scale", [1, 2, 7])
def test_one_number_has_the_law_of_a_discrete_laplace_variable(scale: int) -> None:
    drawn, ends = discrete_laplace(scale, 40_000), 14 * scale
    law = np.exp(-np.abs(np.arange(-ends, ends + 1)) / scale)
    inside = drawn[np.abs(drawn) <= ends]
    assert fits(np.bincount(inside + ends, minlength=len(law)), law / law.sum())


@pytest.mark.parametrize(("scale", "size"), [(1, 1), (2, 2), (1, 3)])
def test_a_vector_has_the_law_of_its_largest_number(scale: int, size: int) -> None:
    """Every single vector of a cube, so that directions are seen too."""
    drawn, ends = discrete_laplace_of_largest(scale, 40_000, size), 4 * scale if size == 3 else 9 * scale
    inside = drawn[(np.abs(drawn) <= ends).all(axis=1)] + ends
    places = np.ravel_multi_index(tuple(inside.T), (2 * ends + 1,) * size)
    grid = np.meshgrid(*[np.arange(-ends, ends + 1)] * size, indexing="ij")
    law = np.exp(-np.abs(np.stack(grid)).max(axis=0).ravel() / scale)
    assert fits(np.bincount(places, minlength=len(law)), law / law.sum())


def test_the_stated_width_is_that_of_the_noise() -> None:
    """By the law, at a fine grid: 20 000 draws of a variable whose square has a kurtosis below 6 are within 20 %."""
    rows = PublicRows({"x": [0.0], "y": [0.0]}, SCHEMA, n_rows_public=1)
    with planted_noise():
        for norm in NORMS:
            drawn = rows.draws(question(norm), mu=0.5, draws=20_000)
            stated = rows.ask(question(norm), mu=0.5, delta=1e-6).sigma
            assert stated is not None
            assert drawn.std(axis=0) == pytest.approx([stated, stated], rel=0.05)


# --- the bound ----------------------------------------------------------------------------------------------------------

anything = st.one_of(st.floats(-5, 5), st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 1.0, 0.1, 1 / 3]))


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.lists(anything, min_size=3, max_size=3), min_size=1, max_size=6),
    bound=st.sampled_from([1.0, 0.3, 1 / 3, 2.5]),
    bits=st.integers(3, 30),
    among=st.lists(st.integers(1, 5), min_size=6, max_size=6),
    norm=st.sampled_from(NORMS),
)
def test_no_row_exceeds_its_norm_whatever_it_says(
    rows: list[list[float]], bound: float, bits: int, among: list[int], norm: str
) -> None:
    step = 2.0**-bits
    limit = math.floor(Fraction(bound) / Fraction(step))
    each = np.array(among[: len(rows)], dtype=np.float64)
    cells = to_cells(np.array(rows), bound, step, limit, norm, each)  # type: ignore[arg-type]
    for row, given_row, count in zip(cells, rows, among, strict=False):
        whole = [Fraction(number) for number in row]
        assert all(number.denominator == 1 for number in whole)
        size = sum(map(abs, whole)) if norm == "l1" else max(map(abs, whole))
        assert size * count <= limit
        if not np.isfinite(given_row).all():
            assert not any(whole)
    alone = [to_cells(np.array([row]), bound, step, limit, norm, each[k : k + 1])[0] for k, row in enumerate(rows)]  # type: ignore[arg-type]
    assert np.array_equal(cells, np.array(alone))


@pytest.mark.parametrize("norm", NORMS)
def test_what_lies_inside_is_kept_to_a_cell(norm: str) -> None:
    rows = np.array([[0.25, -0.75], [0.999, 0.0], [0.5, 0.5]])
    cells = to_cells(rows, 1.0, 2.0**-12, 2**12, norm)  # type: ignore[arg-type]
    assert np.abs(cells * 2.0**-12 - rows).max() <= 2.0**-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("neighbours", "factor"), [("add-remove", 1), ("replace-one", 2)])
def test_the_worst_neighbours_move_the_sum_as_far_as_is_charged_and_no_farther(
    norm: str, neighbours: str, factor: int
) -> None:
    crowd = {"x": [0.3, -0.2, 0.9, 1.0], "y": [0.1, 0.7, -0.9, 0.0 if norm == "l1" else 1.0]}
    fewer = {name: values[:-1] for name, values in crowd.items()}
    exchanged = {name: [*values[:-1], -values[-1]] for name, values in crowd.items()}
    asked, sums = question(norm), []
    event = None
    for rows in (crowd, exchanged if factor == 2 else fewer):
        held = PublicRows(rows, SCHEMA, n_rows_public=4, neighbours=neighbours)
        plan = asked.plan(0.5, held._facts)
        with (
            mock.patch("vitrail.vault.questions.laplace_sum.discrete_laplace", lambda scale, size: np.zeros(size, np.int64)),
            mock.patch(
                "vitrail.vault.questions.laplace_sum.discrete_laplace_of_largest",
                lambda scale, draws, size: np.zeros((draws, size), np.int64),
            ),
        ):
            sums.append(held.draws(asked, mu=0.5, draws=1)[0] / plan.step)
        event = plan.event
    assert event is not None
    moved = np.abs(sums[0] - sums[1])
    distance = moved.sum() if norm == "l1" else moved.max()
    assert distance == event.sensitivity
    assert Fraction(event.sensitivity, event.scale) <= Fraction(1, 2)
    assert Fraction(event.sensitivity, event.scale) > Fraction(499, 1000)


# --- the price ----------------------------------------------------------------------------------------------------------


def test_it_is_paid_in_epsilon_and_the_promise_has_no_delta() -> None:
    data = private()
    release = data.ask(question("max", key="xy"), epsilon=0.5)
    assert (release.guarantee.epsilon, release.guarantee.delta, release.guarantee.mu) == (pytest.approx(0.5), 0.0, 0.0)
    assert release.guarantee.epsilon <= 0.5
    assert data.budget.spent.pico_mu_squared == 0
    assert data.budget.training_remaining[0] == pytest.approx(1.5)
    assert data.ask(question("max", key="xy"), epsilon=0.5).replayed
    assert not data.ask(question("max", key="xy"), epsilon=0.25).replayed
    assert not data.ask(question("l1", key="xy"), epsilon=0.5).replayed
    assert data.budget.bill().spent_epsilon == pytest.approx(1.25)


def test_the_ledger_prices_the_event_anew() -> None:
    data = private()
    data.ask(question("l1"), epsilon=0.7)
    events = data.budget.to_dp_events()
    assert [charge.mechanism for charge in events.charges] == ["laplace-sum"]
    assert events.epsilon == pytest.approx(0.7, rel=1e-3)
    pytest.importorskip("dp_accounting")
    from dp_accounting import NeighboringRelation, pld

    accountant = pld.PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(events.to_dp_accounting())
    assert accountant.get_epsilon(1e-9) <= 0.7 + 1e-3


def test_what_cannot_be_paid_is_refused_and_nothing_is_charged() -> None:
    data = private()
    with pytest.raises(BudgetExceeded, match="only epsilon 2 and delta 0 are left"):
        data.ask(question("l1"), epsilon=2.5)
    with pytest.raises(InvalidInput, match="paid in epsilon"):
        data.ask(question("l1"), mu=0.5)
    without = private(name="other", budget=vt.Budget(3, 1e-6))
    with pytest.raises(BudgetExceeded, match="no training purse"):
        without.ask(question("l1"), epsilon=0.1)
    assert data.budget.n_questions == without.budget.n_questions == 0


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"norm": "l2"}, "norm"),
        ({"bound": 0.0}, "bound"),
        ({"size": 10**5, "norm": "max"}, "at most 4096"),
        ({"rate": 0.5}, "leave the sampling rate out"),
    ],
)
def test_bad_arguments_are_told(more: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        vt.LaplaceSum(as_they_are, **{"size": 2, "bound": 1.0, **more})  # type: ignore[arg-type]


def test_several_rows_of_a_person_move_it_no_farther() -> None:
    rows = {"x": [1.0] * 5, "y": [1.0] * 5, "who": ["a", "a", "a", "b", "b"]}
    held = PublicRows(rows, SCHEMA, n_rows_public=2, person="who")
    plan = question("max").plan(1e3, held._facts)
    total = held.draws(question("max"), mu=1e3, draws=1)[0]
    assert total == pytest.approx([2.0, 2.0], abs=0.2)
    assert plan.moved == plan.limit
