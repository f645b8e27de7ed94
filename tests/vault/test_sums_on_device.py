"""Exact sums on an accelerator have the integers of those on the processor, whatever the rows are."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import vitrail as vt  # noqa: E402
from vitrail.errors import InvalidInput  # noqa: E402
from vitrail.vault.engines.row_pass import RowPass  # noqa: E402
from vitrail.vault.public_facts import PublicFacts  # noqa: E402
from vitrail.vault.rows.block import Counted  # noqa: E402
from vitrail.vault.rows.predictions import Predictions  # noqa: E402
from vitrail.vault.rows.sources import open_rows  # noqa: E402
from vitrail.vault.sums import device as device_sums  # noqa: E402
from vitrail.vault.sums.device import check_device, device_for, on_grid, on_host  # noqa: E402
from vitrail.vault.sums.gram_products import DirectProducts, SharedProduct  # noqa: E402
from vitrail.vault.sums.grid import Grid  # noqa: E402

# "torch" goes the way of an accelerator on the processor.
DEVICES = ["torch", pytest.param("cuda", marks=pytest.mark.gpu)]
NASTY = [0.0, -0.0, 5e-324, -1e-310, 2.0**-1022, 1e-200, 1e154, -1e200, 1.7e308, math.nan, math.inf, -math.inf]


def nasty_rows(width: int, grid: Grid, rows: int = 700, seed: int = 1) -> np.ndarray:
    """Rows of every kind that rounding, clipping and mending tell apart."""
    draw = np.random.default_rng(seed)
    made = draw.normal(size=(rows, width)) * 10.0 ** draw.uniform(-3, 3, size=(rows, 1)) / math.sqrt(width)
    made[0:50] = draw.choice(NASTY, size=(50, width))
    made[50:100, 0] = draw.choice(NASTY, size=50)
    ties = (draw.integers(-1000, 1000, size=(50, width)) + 0.5) * grid.step  # halfway between two cells
    made[100:150] = ties
    at_bound = draw.normal(size=(200, width))
    at_bound /= np.linalg.norm(at_bound, axis=1)[:, None] / grid.l2_bound
    made[150:350] = at_bound * (1 + draw.integers(-3, 4, size=(200, 1)) * 2.0**-52)
    made[350:360] = grid.l2_bound / math.sqrt(width)
    made[360] = 0.0
    return made


@pytest.fixture(autouse=True)
def everything_is_sent(monkeypatch):
    """However small it is."""
    monkeypatch.setattr(device_sums, "FEWEST_PRODUCTS", 0)
    monkeypatch.setattr(device_sums, "PRODUCTS_PER_NUMBER", 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("width", [1, 3, 200])
@pytest.mark.parametrize("bound", [1.0, 1.3, 1e-300, 1e150])
def test_rows_get_the_cells_that_they_get_on_the_host(device, width, bound):
    grid = Grid(bound, 2.0 ** (math.frexp(bound)[1] - 20), width)
    with np.errstate(all="ignore"):
        rows = nasty_rows(width, grid) * bound
        here, there = on_grid(rows, grid, "cpu"), on_grid(rows, grid, device)
    assert not isinstance(there.cells, np.ndarray)
    assert np.array_equal(on_host(there.cells), here.cells)
    assert np.array_equal(there.squares, here.squares)
    assert np.array_equal(there.finite, here.finite)
    assert (here.squares <= grid.limit_squared).all()
    assert (here.squares > 0).sum() > 300


floats = st.one_of(st.sampled_from(NASTY), st.floats(), st.floats(-2, 2))


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.lists(floats, min_size=3, max_size=3), min_size=1, max_size=8).map(np.array))
def test_any_row_gets_its_cells(rows):
    grid = Grid(1.7, 2.0**-19, 3)
    with np.errstate(all="ignore"):
        here, there = on_grid(rows, grid, "cpu"), on_grid(rows, grid, "torch")
    assert np.array_equal(on_host(there.cells), here.cells)
    assert np.array_equal(there.squares, here.squares)


def counted(rows: int, *, persons: bool) -> Counted:
    draw = np.random.default_rng(5)
    return Counted(draw.uniform(size=rows) < 0.9, draw.integers(1, 9, size=rows).astype(float) if persons else None)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("l2_bound", [math.inf, 0.4])
def test_product_sums_are_the_same(device, persons, l2_bound):
    asked = vt.ProductSum(
        lambda block: (), (5, 40), (30, 1), left_bounds=(1.3, 2.0), right_bounds=(1.7, 0.9), l2_bound=l2_bound
    )
    plan = asked.plan(1.0, PublicFacts(vt.Schema({"x": vt.Numeric(0, 1)}), None, 700, "add-remove", 700))
    grids = [grid for pair in plan.grids for grid in pair]
    arrays = tuple(nasty_rows(grid.size, grid, seed=place) for place, grid in enumerate(grids))
    who = counted(700, persons=persons)
    with np.errstate(all="ignore"):
        here, there = (replace(plan, device=one)._products(arrays, who) for one in ("cpu", device))
    assert all(map(np.array_equal, here, there))
    assert all(np.abs(one).max() > 2**30 for one in here)


def weight(distances):
    return np.exp(-distances * distances)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("queries", [1, 3, 40])
def test_gram_sums_are_the_same(device, persons, cross, queries):
    n, draw = 12, np.random.default_rng(8)
    centres = None if queries == 1 else draw.uniform(-0.2, 0.2, size=(queries, n))
    asked = vt.GramSum(lambda block: (), n, 0.7, cross=cross, centres=centres, weight=weight if queries > 1 else None)
    arrays = nasty_rows(n, Grid(1.0, 2.0**-20, n)), nasty_rows(1, Grid(1.0, 2.0**-20, 1), seed=2), np.zeros((700, 0))
    who = counted(700, persons=persons)
    with np.errstate(all="ignore"):
        if queries < 8:
            here, there = (DirectProducts(asked, one)._products(arrays, who) for one in ("cpu", device))
        else:
            here, there = (SharedProduct(asked, one)._products(arrays, who) for one in ("cpu", device))
    assert np.array_equal(here[0], there[0])
    assert np.abs(here[0]).max() > 2**30


WIDTH = 6
SCHEMA = vt.Schema({f"x{i}": vt.Numeric(-1.0, 1.0) for i in range(WIDTH)})
QUESTIONS = {
    "product": vt.ProductSum(lambda block: (block.values, np.tanh(block.values)), (WIDTH,), (WIDTH,)),
    "one gram": vt.GramSum(lambda block: block.values, WIDTH, 1.0),
    "many grams": vt.GramSum(lambda block: block.values, WIDTH, 1.0, centres=np.eye(WIDTH).repeat(2, axis=0), weight=weight),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_whole_questions_are_the_same_in_threads(device, kind):
    rows = np.random.default_rng(4).uniform(-1, 1, size=(900, WIDTH))
    sums = []
    for place, threads in (("cpu", 1), (device, 3)):
        facts = PublicFacts(SCHEMA, None, 900, "add-remove", 128, threads, device=place)
        plan = QUESTIONS[kind].plan(1.0, facts)
        sums.append(plan.exact_cells(RowPass(open_rows(rows, SCHEMA), facts, Predictions(facts)), 128))
    assert np.array_equal(*sums)


def test_a_dataset_is_asked_on_a_device():
    rows = {name: np.full(300, 0.5) for name in SCHEMA.names}
    data = vt.PrivateData(
        rows, SCHEMA, name="there", n_rows_public=300, budget=vt.Budget(9, 1e-6), ledger="memory", device="torch"
    )
    release = data.ask(QUESTIONS["product"], epsilon=8.0)
    assert abs(release.value.mean() - 300 * 0.5 * np.tanh(0.5) / (1.5**0.5 * (WIDTH**0.5 * np.tanh(0.5)))) < 10
    (part, _) = data.parts(2, name="halves")
    assert part.ask(QUESTIONS["one gram"], epsilon=1.0).value.shape == (WIDTH, WIDTH)


@pytest.mark.parametrize("device", ["tpu", 3, None])
def test_devices_that_there_are_not_are_refused_before_anything_is_opened(device):
    with pytest.raises(InvalidInput, match=r"device is .*choose"):
        vt.PrivateData({}, SCHEMA, name="x", n_rows_public=1, budget=vt.Budget(1, 1e-6), ledger="memory", device=device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_an_accelerator_that_is_not_there_is_named():
    with pytest.raises(InvalidInput, match="torch sees no such accelerator"):
        check_device("cuda")
    assert check_device("auto") == "cpu"


def test_small_products_stay_on_the_processor(monkeypatch):
    monkeypatch.undo()
    assert device_for("cuda", 4096, 20 * 20, 40) == "cpu"
    assert device_for("cuda", 4096, 1000 * 1000, 2000) == "cuda"
    assert device_for("cuda", 256, 20 * 20, 40) == "cpu"
    assert device_for("cuda", 4096, 1000, 1001) == "cpu"  # much to send, little to multiply
    assert device_for("cpu", 4096, 1000 * 1000, 2000) == "cpu"
