"""The way to shap: its object, its plots, and what happens without it."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput

shap = pytest.importorskip("shap")

VALUES = np.array([[0.2, -0.05, 0.1], [-0.3, 0.1, 0.4], [0.0, 0.2, -0.1]])
MADE = vt.Attribution(
    values=VALUES,
    base_values=np.array([0.3, 0.4, 0.1]),
    columns=("age", "sex", "$x^$"),
    points=(
        {"age": 39, "sex": "Male", "$x^$": "$"},
        {"age": 51, "sex": "Female", "$x^$": "b"},
        {"age": 1, "sex": "Male", "$x^$": "a"},
    ),
    outputs=np.array([0.5, 0.6, 0.2]),
    guarantee=vt.Guarantee.of_mu(0.2, 1e-6),
    cost=vt.Cost.of_mu(0.2),
    method="shapley",
    lower=VALUES - 0.1,
    upper=VALUES + 0.1,
)
PLAIN_NAMES = replace(MADE, columns=("age", "sex", "x"), points=tuple({**point, "x": 1} for point in MADE.points))


@pytest.fixture(autouse=True)
def no_windows() -> Iterator[None]:
    import matplotlib

    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    matplotlib.use(before)


def test_shap_gets_the_numbers_the_names_and_the_bands() -> None:
    made = MADE.to_shap()
    assert isinstance(made, shap.Explanation)
    assert np.array_equal(made.values, MADE.values)
    assert np.array_equal(made.base_values, MADE.base_values)
    assert np.array_equal(made.lower_bounds, MADE.lower)
    assert np.array_equal(made.upper_bounds, MADE.upper)
    assert list(made.feature_names) == ["age", "sex", "$x^$"]
    assert made.display_data[1].tolist() == [51, "Female", "b"]
    assert made.data.tolist() == [[39, 1, 0], [51, 0, 2], [1, 1, 1]]


def test_a_value_outside_its_band_can_still_be_drawn() -> None:
    made = replace(PLAIN_NAMES, lower=VALUES + 0.01, upper=VALUES + 0.02).to_shap()
    assert (made.lower_bounds <= made.values).all()
    shap.plots.waterfall(made[0], show=False)


def test_shap_without_bands() -> None:
    assert vt.Attribution(**{**vars(MADE), "lower": None, "upper": None}).to_shap().lower_bounds is None


@pytest.mark.parametrize("plot", ["waterfall", "bar", "bar of many", "beeswarm", "heatmap", "scatter"])
def test_shap_plots_run(plot: str) -> None:
    import matplotlib.pyplot as plt

    made = PLAIN_NAMES.to_shap()
    plt.figure()
    try:
        if plot == "waterfall":
            shap.plots.waterfall(made[0], show=False)
        elif plot == "bar":
            shap.plots.bar(made[0], show=False)
        elif plot == "bar of many":
            shap.plots.bar(made, show=False)
        elif plot == "beeswarm":
            shap.plots.beeswarm(made, show=False)
        elif plot == "heatmap":
            shap.plots.heatmap(made, show=False)
        else:
            shap.plots.scatter(made[:, "age"], show=False)
        assert plt.gcf().axes
    finally:
        plt.close("all")


def test_without_shap_the_waterfall_is_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    figure = MADE.plot.waterfall()
    assert figure.axes[0].get_title(loc="left").startswith("from base value 0.300")
    with pytest.raises(InvalidInput, match=r"shap is not installed.*vitrail\[shap\]"):
        MADE.to_shap()
