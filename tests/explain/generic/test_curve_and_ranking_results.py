"""Curves and rankings as results: numbers, files, pictures, and what they refuse."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.results import Density
from vitrail.show import curves_figure

PROMISE = {"guarantee": vt.Guarantee.of_mu(0.2, 1e-6, "replace-one", "training-data"), "cost": vt.Cost(10**20, 3, 10**31)}
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def numeric(**options):
    options = {"x": np.array([1.0, 2.0, 4.0]), "y": np.array([0.1, 0.3, 0.2]), "std": np.full(3, 0.05), **options}
    return vt.Curve("age", "partial dependence", **options, **PROMISE)


def levels(**options):
    options = {"x": ("f", "m"), "y": np.array([0.1, 0.3]), **options}
    return vt.Curve(("sex",), "accumulated effects", **options, **PROMISE)


def test_a_curve_is_read_between_its_points():
    curve = numeric()
    assert curve(3.0) == pytest.approx(0.25)
    assert curve([0.0, 9.0]).tolist() == [0.1, 0.2]
    assert levels()("m") == 0.3
    assert levels()(["m", "f"]).tolist() == [0.3, 0.1]
    codes = levels(x=(1, 2), categorical=True)
    assert codes(np.array([2.0])).tolist() == [0.3]
    for wrong in (lambda: curve("old"), lambda: curve(math.nan), lambda: levels()("x"), lambda: codes(3)):
        with pytest.raises(InvalidInput):
            wrong()


def test_a_band_follows_from_the_noise():
    assert numeric().half_widths == pytest.approx(np.full(3, 1.959963984540054 * 0.05))
    assert numeric(std=None).lower is None
    own = numeric(lower=np.zeros(3), upper=np.ones(3))
    assert own.lower.tolist() == [0, 0, 0]
    with pytest.raises(InvalidInput, match="no noise band"):
        assert numeric(std=None).half_widths


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_json_brings_everything_back(data):
    n = data.draw(st.integers(1, 5))
    numbers = arrays(np.float64, n, elements=FINITE)
    y, categorical = data.draw(numbers), data.draw(st.booleans())
    x = tuple(data.draw(st.lists(st.text(), min_size=n, max_size=n, unique=True))) if categorical else np.arange(float(n))
    shares = data.draw(arrays(np.float64, n if categorical else 2, elements=FINITE))
    curve = vt.Curve(
        "a",
        data.draw(st.text()),
        x,
        y,
        **PROMISE,
        lower=y,
        upper=y,
        density=Density(None if categorical else [0, 1, 2], shares),
    )
    again = vt.Curve.from_json(json.loads(json.dumps(curve.to_json(), allow_nan=False)))
    assert again.to_json() == curve.to_json()
    assert again.y.tobytes() == y.tobytes()
    assert (again.guarantee, again.cost) == (curve.guarantee, curve.cost)
    items = tuple(data.draw(st.lists(st.text(), min_size=n, max_size=n, unique=True)))
    ranking = vt.Ranking(items, y, **PROMISE, std=np.abs(y), notes=("a note",))
    again = vt.Ranking.from_json(json.loads(json.dumps(ranking.to_json(), allow_nan=False)))
    assert again.to_json() == ranking.to_json()
    assert again.order == ranking.order


@pytest.mark.parametrize("change", [{"format": "x"}, {"format": "vitrail-curve/9"}, {"y": "a"}, {"x": [[1]]}, {"cost": 3}])
def test_foreign_json_is_refused(change):
    fields = {**numeric().to_json(), **change}
    with pytest.raises(InvalidInput):
        vt.Curve.from_json(fields)
    with pytest.raises(InvalidInput):
        vt.Ranking.from_json(fields)
    del fields["y"]
    with pytest.raises(InvalidInput):
        vt.Curve.from_json(fields)


@pytest.mark.parametrize(
    "options",
    [
        {"x": []},
        {"x": np.array([1.0, 1.0, 2.0])},
        {"x": np.array([1.0, math.nan, 2.0])},
        {"x": ("a", "a", "b")},
        {"y": np.array([1.0])},
        {"y": np.array([1.0, math.inf, 0.0])},
        {"std": np.array([-1.0, 0, 0])},
        {"lower": np.zeros(3)},
        {"lower": np.ones(3), "upper": np.zeros(3)},
        {"density": Density(None, np.ones(3))},
        {"density": Density(np.array([0.0, 1.0]), np.ones(3))},
        {"notes": "one"},
        {"x_label": 3},
    ],
)
def test_impossible_curves_are_refused(options):
    with pytest.raises(InvalidInput):
        numeric(**options)


def test_a_ranking_knows_its_order_and_how_sure_it_is():
    ranking = vt.Ranking(
        ("a", "b", "c"), np.array([9.0, 11.0, 9.0]), **PROMISE, std=np.full(3, 2.0), own_std=np.full(3, 1.0)
    )
    assert ranking.order == ("b", "a", "c")
    assert list(ranking) == ["b", "a", "c"]
    assert ranking.rank("c") == 3
    assert ranking.confidence == pytest.approx([0.5 * math.erfc(-1), 0.5])
    assert ranking.confidence_in("a", "b") == pytest.approx(1 - ranking.confidence_in("b", "a"))
    assert ranking.upper == pytest.approx(ranking.scores + 1.959963984540054 * 2)
    frame = pd.DataFrame(ranking.frame())
    assert frame["item"].tolist() == ["b", "a", "c"]
    assert np.isnan(frame["confidence"].iloc[-1])
    without = vt.Ranking(("a", "b"), np.array([1.0, 3.0]), **PROMISE)
    with pytest.raises(InvalidInput, match="no noise law"):
        assert without.confidence
    assert np.isnan(without.frame()["confidence"]).all()
    for wrong in (lambda: ranking.rank("z"), lambda: ranking.top(0), lambda: ranking.confidence_in("a", "z")):
        with pytest.raises(InvalidInput):
            wrong()


@pytest.mark.parametrize("options", [{"items": ()}, {"items": ("a", "a")}, {"scores": [1.0]}, {"std": [-1.0, 0.0]}])
def test_impossible_rankings_are_refused(options):
    with pytest.raises(InvalidInput):
        vt.Ranking(**{"items": ("a", "b"), "scores": np.zeros(2), **PROMISE, **options})


def test_pictures_show_bands_levels_and_doubt():
    rug = numeric(density=Density(np.array([0.0, 2.0, 5.0]), np.array([0.7, 0.3])), notes=("<b>",))
    bars = levels(std=np.full(2, 0.1), density=Density(None, np.array([0.5, 0.5])))
    axes = rug.plot().axes[0]
    assert len(axes.collections) == 1  # the band
    assert axes.get_ylim()[0] < rug.lower.min()
    drawn = bars.plot().axes[0]
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["f", "m"]
    assert len(curves_figure([rug, bars, rug], across=2).axes) == 3
    own = bars.plot().axes[0]
    assert rug.plot(own) is own.get_figure()
    ranking = vt.Ranking(("a", "b"), np.array([9.0, 8.9]), **PROMISE, std=np.full(2, 1.0))
    assert any("53 %" in text.get_text() for text in ranking.plot().axes[0].texts)
    for html in (rug._repr_html_(), bars._repr_html_(), ranking._repr_html_()):
        assert "<img" in html
        assert "differential privacy" in html
    assert "&lt;b&gt;" in rug._repr_html_()
    assert "± 0.098" in rug.to_html()
    assert "53 %" in ranking.to_html()
    with pytest.raises(InvalidInput):
        curves_figure([])


def test_frames_are_tidy():
    frame = pd.DataFrame(levels().frame())
    assert frame["x"].tolist() == ["f", "m"]
    assert frame["lower"].isna().all()
    assert frame["name"].tolist() == ["sex", "sex"]
