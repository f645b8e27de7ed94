"""Interactions end to end: planted ones are found, additive models have none, bad input is refused."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput

N = 4000
RNG = np.random.default_rng(3)
SCHEMA = vt.Schema({name: vt.Numeric(0, 1) for name in "abcde"} | {"kind": vt.Categorical(["x", "y"])})
ROWS = {name: RNG.random(N) for name in "abcde"} | {"kind": RNG.choice(["x", "y"], N)}


def planted(x):
    return 0.2 * x[:, 0] + 0.3 * (x[:, 1] - 0.5) * (x[:, 2] - 0.5) * 4 + 0.3 * x[:, 3] * x[:, 6] + 0.3


def additive(x):
    return 0.2 * x[:, 0] + 0.3 * x[:, 1] ** 2 + 0.2 * x[:, 3] + 0.1 * x[:, 6]


MODEL = vt.Model(planted, range=(0, 1.2), name="planted")
PLAIN = vt.Model(additive, range=(0, 1), name="additive")


def private(budget=1e4, **more):
    return vt.PrivateData(ROWS, SCHEMA, name="rows", n_rows_public=N, budget=vt.Budget(budget, 1e-6), **more)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_planted_pairs_come_first(neighbours):
    found = vt.Interactions(private(neighbours=neighbours), MODEL, n_pairs=4)(epsilon=2.0)
    assert len(found) == 4
    assert set(found.top(2)) == {"b x c", "d x kind"}
    assert found.scores[found.items.index("b x c")] > 0.85  # nearly all of their joint effect
    assert found.lower[found.items.index("b x c")] > 0.7


@pytest.mark.usefixtures("planted_noise")
def test_an_additive_model_has_none():
    found = vt.Interactions(private(), PLAIN, columns=["a", "b", "d", "kind"])(epsilon=2.0)
    assert len(found) == 6
    assert found.scores.max() < 0.05


@pytest.mark.usefixtures("planted_noise")
def test_named_pairs_are_measured_as_named():
    found = vt.Interactions(private(), MODEL, columns=[("c", "b"), ("a", "e")])(mu=20.0)
    assert found.items == ("c x b", "a x e")
    assert found.scores[0] > 0.9
    assert found.scores[1] < 0.01


@pytest.mark.usefixtures("planted_noise")
def test_the_bands_hold_what_noise_does():
    marginals = vt.marginals(private(), mu=100.0)  # the same for all: they decide how places are weighted
    given = {"columns": [("d", "kind")], "marginals": marginals}
    exact = vt.Interactions(private(), MODEL, **given)(mu=100.0).scores[0]
    draws = [vt.Interactions(private(), MODEL, **given)(mu=1.0) for _ in range(50)]
    inside = np.mean([one.lower[0] <= exact <= one.upper[0] for one in draws])
    assert inside >= 0.84  # 95 % nominal; 50 draws
    spread = np.std([one.scores[0] for one in draws], ddof=1)
    assert spread == pytest.approx(np.mean([one.std[0] for one in draws]), rel=0.5)


def test_the_price_is_what_was_asked():
    data = private(budget=2.0)
    found = vt.Interactions(data, MODEL, n_pairs=2, grid=3)(epsilon=1.0)
    assert data.budget.spent == found.cost
    assert found.guarantee.epsilon <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({}, ["a"], "at least two"),
        ({}, "a", "give a list of names"),
        ({}, [("a", "a")], "two different columns"),
        ({}, [("a", "z")], "names 'z', which is none of"),
        ({}, [("a", "b", "c")], "a pair of columns such as"),
        ({}, ["a", ("b", "c")], "among pairs"),
        ({}, [("a", "b"), ("b", "a")], "twice"),
        ({}, [("a", 3)], "names 3, which is none of"),
        ({}, 5, "columns is 5"),
        ({"grid": 1}, None, "grid is 1"),
        ({"n_pairs": True}, None, "n_pairs is True"),
        ({"sampling_rate": 2}, None, "sampling_rate"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_charged(options, columns, message):
    data = private()
    with pytest.raises(InvalidInput, match=message):
        vt.Interactions(data, MODEL, columns=columns, **options)(epsilon=1.0)
    assert data.budget.spent == vt.Cost()
