"""Partial dependence of pairs: the right surface, with bands, for the price of one call; bad pairs are refused."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput

N = 3000
RNG = np.random.default_rng(8)
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(20, 60, integer=True),
        "pay": vt.Numeric(0, 1000),
        "job": vt.Categorical(["clerk", "smith", "baker"]),
    }
)
ROWS = {
    "age": RNG.integers(20, 61, N),
    "pay": np.clip(RNG.gamma(2, 100, N), 0, 1000),
    "job": RNG.choice(["clerk", "smith", "baker"], N, p=[0.6, 0.3, 0.1]),
}


def output(x):
    return 0.2 + 0.3 * x[:, 0] * x[:, 1] + 0.2 * x[:, 0] + x[:, 3] * (0.1 + 0.2 * x[:, 0])


MODEL = vt.Model(output, range=(0, 1.2), name="formula")


def private(budget=1e4, **more):
    return vt.PrivateData(ROWS, SCHEMA, name="staff", n_rows_public=N, budget=vt.Budget(budget, 1e-6), **more)


def exact(surface):
    raw = SCHEMA.read_points(ROWS)
    found = np.empty(surface.values.shape)
    for i, first in enumerate(surface.sides[0]):
        for j, second in enumerate(surface.sides[1]):
            altered = raw.copy()
            for name, value in zip(surface.names, (first, second), strict=True):
                place = SCHEMA["job"].levels.index(value) if name == "job" else value
                altered[:, SCHEMA.column_index(name)] = place
            found[i, j] = output(SCHEMA.features(altered)[0]).mean()
    return found


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("estimate", ["smooth", "plain"])
def test_surfaces_are_right_at_a_high_price(estimate):
    effects = vt.PartialDependence(private(), MODEL, columns=["age", ("age", "pay"), ("job", "age")], estimate=estimate)(
        mu=80.0
    )
    assert list(effects) == ["age"]
    for pair in (("age", "pay"), ("job", "age")):
        surface = effects[pair]
        assert surface.names == pair
        np.testing.assert_allclose(surface.values, exact(surface), atol=6e-3)
    assert effects["job", "age"].sides[0] == ("clerk", "smith", "baker")
    assert "1 column and 2 pairs" in repr(effects)
    with pytest.raises(KeyError, match="nothing of"):
        effects["pay", "age"]


@pytest.mark.usefixtures("planted_noise")
def test_pairs_alone_will_do_and_resolution_counts_for_them():
    data = private(budget=2.0)
    effects = vt.PartialDependence(data, MODEL, columns=[("age", "pay")], resolution=4)(epsilon=1.0)
    assert len(effects) == 0
    surface = effects["age", "pay"]
    assert surface.values.shape == (4, 4)
    assert data.budget.spent == effects.cost == surface.cost
    assert (surface.upper > surface.lower).all()
    assert effects.plot() is not None
    assert [pair for pair, _ in effects.to_json()["surfaces"]] == [["age", "pay"]]
    with pytest.raises(InvalidInput, match="no curves"):
        effects.frame()


@pytest.mark.usefixtures("planted_noise")
def test_bands_hold_the_truth():
    marginals = vt.marginals(private(), mu=20.0)
    inside = []
    for _ in range(12):
        explain = vt.PartialDependence(
            private(), MODEL, columns=[("age", "pay")], estimate="plain", resolution=4, marginals=marginals
        )
        surface = explain(mu=0.5)["age", "pay"]
        true = exact(surface)
        inside.append((surface.lower <= true) & (true <= surface.upper))
    assert np.mean(inside) > 0.8  # 95 % nominal; the values of one draw go together


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([("age", "age")], "two different columns"),
        ([("age", "pat")], "names 'pat', which is none of"),
        ([("age", "pay", "job")], "a pair of columns such as"),
        ([("age", 4)], "names 4, which is none of"),
        (["age", 7], "names 7, which is none of"),
        ([("age", "pay"), ("pay", "age")], "twice"),
        (["age", "age", ("age", "pay")], "twice"),
    ],
)
def test_bad_pairs_are_refused_and_nothing_is_charged(columns, message):
    data = private()
    with pytest.raises(InvalidInput, match=message):
        vt.PartialDependence(data, MODEL, columns=columns)(epsilon=1.0)
    assert data.budget.spent == vt.Cost()
