"""Results in other libraries' hands: their own classes, their own plots, the numbers and bands of the result."""

import sys
from dataclasses import replace

import interpret
import matplotlib
import numpy as np
import pytest
import shap
from interpret.api.base import ExplanationMixin
from interpret.visual import _interactive
from sklearn.inspection import PartialDependenceDisplay
from stored_examples import (
    ALE,
    ATTRIBUTION,
    CURVE,
    EFFECTS,
    FLOAT_SURFACE,
    LEVELS,
    MEAN_REASONS,
    PRIVATE_ROWS,
    RANKING,
    REPORT,
    SURFACE,
)

import vitrail as vt
from vitrail.errors import InvalidInput

PAID = {"guarantee": RANKING.guarantee, "cost": RANKING.cost}
BANDED_LEVELS = replace(LEVELS, std=np.array([0.1, 0.2]), lower=None, upper=None)
BOTH_NUMBERS = replace(
    SURFACE,
    names=("age", "pay"),
    sides=(np.array([20.0, 60.0]), np.array([0.0, 1.0])),
    values=np.array([[0.1, 0.2], [0.3, 0.7]]),
)


@pytest.fixture(autouse=True)
def no_windows():
    import matplotlib.pyplot as plt

    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    plt.close("all")
    matplotlib.use(before)


def drawn(figure, folder):
    """The picture, written: how many different colours it has. A page of one colour is empty."""
    figure.savefig(folder / "picture.png")
    pixels = matplotlib.image.imread(folder / "picture.png")
    return len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0))


# --- scikit-learn


def test_a_curve_is_scikit_learns_display_with_its_band(tmp_path):
    display = CURVE.to_sklearn()
    assert isinstance(display, PartialDependenceDisplay)
    (result,) = display.pd_results
    assert np.array_equal(result.average[0], CURVE.y)
    assert np.array_equal(result.grid_values[0], CURVE.x)
    assert np.array_equal(result.lower[0], CURVE.lower)
    display.plot()
    (axes,) = display.axes_.ravel()
    (band,) = [one for one in axes.collections if one.get_alpha() == 0.25]
    outline = band.get_paths()[0].vertices[:, 1]
    assert (outline.min(), outline.max()) == (CURVE.lower.min(), CURVE.upper.max())
    low, high = axes.get_ylim()
    assert low <= CURVE.lower.min() < CURVE.upper.max() <= high
    assert axes.get_xlabel() == "age"
    assert drawn(display.figure_, tmp_path) > 10


def test_deciles_come_from_the_released_histogram():
    deciles = CURVE.to_sklearn().deciles[0]
    assert np.interp(0.7, np.arange(1, 10) / 10, deciles) == pytest.approx(50)  # where seven tenths of the rows end
    assert len(replace(CURVE, density=None).to_sklearn().deciles[0]) == 0


def test_a_centred_display_moves_its_band_along():
    display = CURVE.to_sklearn().plot(centered=True)
    (axes,) = display.axes_.ravel()
    (band,) = [one for one in axes.collections if one.get_alpha() == 0.25]
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx((CURVE.lower - CURVE.y[0]).min())


def test_levels_are_bars_with_error_bars(tmp_path):
    display = BANDED_LEVELS.to_sklearn().plot()
    (axes,) = display.axes_.ravel()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["f", "m"]
    assert len(axes.containers) == 2  # bars, and their errors
    assert LEVELS.to_sklearn().pd_results[0].lower is None
    assert len(LEVELS.to_sklearn().plot().axes_.ravel()[0].containers) == 1
    assert drawn(display.figure_, tmp_path) > 10


@pytest.mark.parametrize("levels", [(3, 1, 2), (2.5, 0.5, 1.0), ("b", "a", "c")], ids=str)
def test_levels_that_are_numbers_have_their_names_below_and_their_bands_above(levels):
    """As numbers they would be places on the axis, and the bands of others would stand over them."""
    curve = vt.Curve("grade", "any curve", levels, np.array([0.2, 0.5, 0.1]), std=np.full(3, 0.05), categorical=True, **PAID)
    display = curve.to_sklearn().plot()
    (axes,) = display.axes_.ravel()
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(level) for level in levels]
    bars, errors = axes.containers
    middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
    stems = [np.asarray(stem)[:, 0] for stem in errors.lines[2][0].get_segments()]
    assert np.allclose(stems, np.array(middles)[:, None])


def test_an_axis_says_what_the_curve_is_of():
    """scikit-learn writes "Partial dependence" beside every curve."""
    labels = [made.to_sklearn().plot().axes_.ravel()[0].get_ylabel() for made in (CURVE, ALE)]
    assert labels == ["Partial dependence", "Any curve"]


def test_curves_of_a_display_have_one_scale_that_holds_all_bands():
    pair = vt.Effects({"age": CURVE, "sex": BANDED_LEVELS}, EFFECTS.marginals, **PAID)
    first, second = pair.to_sklearn().plot().axes_.ravel()
    assert first.get_ylim() == second.get_ylim()
    low, high = first.get_ylim()
    assert low < BANDED_LEVELS.lower.min() < BANDED_LEVELS.upper.max() < high
    narrow = pair.to_sklearn().plot(pdp_lim={1: (0.0, 0.2)}).axes_.ravel()
    assert narrow[1].get_ylim()[1] < BANDED_LEVELS.upper.max()


def test_effects_are_one_display_of_curves_and_surfaces(tmp_path):
    display = EFFECTS.to_sklearn()
    assert display.feature_names == ["age", "sex"]
    assert display.features == [(0,), (1,), (0, 1)]
    display.plot()
    assert len(display.axes_.ravel()) == 3
    assert drawn(display.figure_, tmp_path) > 10
    contours = BOTH_NUMBERS.to_sklearn().plot()
    assert contours.contours_.ravel()[0] is not None


# --- shap


@pytest.mark.parametrize("made", [RANKING, MEAN_REASONS], ids=["ranking", "mean reasons"])
@pytest.mark.parametrize("plot", [shap.plots.bar, shap.plots.waterfall])
def test_shap_draws_rankings_and_mean_reasons(made, plot, tmp_path):
    import matplotlib.pyplot as plt

    explanation = made.to_shap()
    assert isinstance(explanation, shap.Explanation)
    plt.figure()
    plot(explanation, show=False)
    assert drawn(plt.gcf(), tmp_path) > 10


def test_shap_gets_scores_and_bands():
    made = RANKING.to_shap()
    assert np.array_equal(made.values, RANKING.scores)
    assert np.array_equal(made.lower_bounds, RANKING.lower)
    assert list(made.feature_names) == list(RANKING.items)
    assert replace(RANKING, std=None, own_std=None).to_shap().upper_bounds is None
    means = MEAN_REASONS.to_shap()
    assert np.array_equal(means.values, MEAN_REASONS.means)
    assert np.allclose(means.upper_bounds - means.values, 1.96 * MEAN_REASONS.stds, rtol=1e-3)


def test_shap_draws_several_points_as_a_swarm(tmp_path):
    import matplotlib.pyplot as plt

    draw = np.random.default_rng(0)
    values = draw.normal(size=(30, 2))
    many = vt.Attribution(
        values=values,
        base_values=np.zeros(30),
        columns=("age", "sex"),
        points=tuple({"age": float(age), "sex": "f"} for age in draw.uniform(18, 90, 30)),
        outputs=values.sum(axis=1),
        guarantee=RANKING.guarantee,
        cost=RANKING.cost,
        method="shapley",
    )
    shap.plots.beeswarm(many.to_shap(), show=False)
    assert drawn(plt.gcf(), tmp_path) > 10


COLUMNS = ("age", "sex", "smoker", "grade", "never")
POINTS = tuple(
    {
        "age": None if row % 5 == 0 else 100 - row,
        "sex": None if row % 7 == 3 else "fm"[row % 2],
        "smoker": bool(row % 3),
        "grade": row % 3,
        "never": None,
    }
    for row in range(20)
)


@pytest.fixture(scope="module")
def incomplete():
    """Reasons of points with missing values, levels and truths."""
    values = np.random.default_rng(0).normal(size=(20, 5))
    bands = {"lower": values - 0.4, "upper": values + 0.2}
    known = {"columns": COLUMNS, "points": POINTS, "method": "shapley"}
    return vt.Attribution(values=values, base_values=np.zeros(20), outputs=values.sum(axis=1), **known, **bands, **PAID)


def test_shap_gets_missing_values_as_such_and_levels_as_texts(incomplete):
    made = incomplete.to_shap()
    ages = np.array([np.nan if point["age"] is None else point["age"] for point in POINTS])
    assert np.array_equal(made[:, "age"].data, ages, equal_nan=True)
    assert made[:, "sex"].display_data[:4].tolist() == ["f", "m", "f", "missing"]
    assert made[:, "sex"].data[:4].tolist() == [0, 1, 0, 2]
    assert made[:, "smoker"].display_data[:2].tolist() == ["False", "True"]
    assert made[:, "grade"].data[:3].tolist() == made[:, "grade"].display_data[:3].tolist() == [0, 1, 2]
    assert set(made[:, "never"].display_data) == {"missing"}


@pytest.mark.parametrize(
    "plot",
    [
        lambda made, **show: shap.plots.waterfall(made[0], **show),
        lambda made, **show: shap.plots.bar(made[0], **show),
        lambda made, **show: shap.plots.force(made[0], matplotlib=True, **show),
        shap.plots.bar,
        shap.plots.beeswarm,
        *(lambda made, name=name, **show: shap.plots.scatter(made[:, name], **show) for name in ("age", "sex", "smoker")),
    ],
    ids=["waterfall", "bar of one", "force", "bar", "beeswarm", "numbers", "levels", "truths"],
)
def test_shap_draws_points_with_missing_values(plot, incomplete, tmp_path):
    import matplotlib.pyplot as plt

    plot(incomplete.to_shap(), show=False)
    assert drawn(plt.gcf(), tmp_path) > 10


# --- interpret

GLOBAL = {
    "ranking": RANKING,
    "curve": CURVE,
    "levels": BANDED_LEVELS,
    "surface": SURFACE,
    "effects": EFFECTS,
    "report": REPORT,
}


@pytest.mark.parametrize("result", GLOBAL.values(), ids=GLOBAL)
def test_interpret_shows_results_of_a_whole_model(result, tmp_path):
    made = result.to_interpret()
    assert isinstance(made, ExplanationMixin)
    assert made.explanation_type == "global"
    keys = [] if made.selector is None else list(range(len(made.selector)))
    figures = [made.visualize(key) for key in keys]
    if made.data() is not None:
        figures.append(made.visualize())
    assert figures
    for number, figure in enumerate(figures):
        figure.write_html(tmp_path / f"{number}.html", include_plotlyjs=False)
        assert "Plotly.newPlot" in (tmp_path / f"{number}.html").read_text()
        assert any(len(trace.y) for trace in figure.data)


def test_interpret_shows_the_reasons_of_each_point():
    made = ATTRIBUTION.to_interpret()
    assert made.explanation_type == "local"
    assert made.selector["Predicted"].tolist() == ATTRIBUTION.outputs.tolist()
    for row in range(len(ATTRIBUTION)):
        told = made.data(row)
        assert told["scores"] == ATTRIBUTION.values[row].tolist()
        assert told["lower_bounds"] == ATTRIBUTION.lower[row].tolist()
        (bars,) = made.visualize(row).data
        assert bars.x[-1] == ATTRIBUTION.base_values[row]
        assert sorted(bars.x[:-1]) == pytest.approx(sorted(ATTRIBUTION.values[row]))


def test_a_report_has_importances_over_all_and_a_curve_for_each_column():
    made = REPORT.to_interpret()
    assert made.data()["names"] == list(RANKING.order)
    assert made.selector["Name"].tolist() == ["age", "sex", "age & sex"]
    assert made.selector["Type"].tolist() == ["continuous", "nominal", "interaction"]
    assert np.array_equal(made.data(0)["upper_bounds"], CURVE.upper)
    assert "risk on people" in made.name


class Shown:
    """Where interpret's ``show`` renders: it takes whatever has a ``render``."""

    def __init__(self):
        self.rendered = []

    def render(self, explanation, key=-1, **options):
        self.rendered.append((explanation.name, explanation.visualize(None if key == -1 else key)))


def test_interprets_own_show_renders_them(monkeypatch):
    shown = Shown()
    monkeypatch.setattr(_interactive, "visualize_provider", shown)
    interpret.show(RANKING.to_interpret())
    interpret.show(EFFECTS.to_interpret(), key=1)
    assert [name for name, _ in shown.rendered] == [RANKING.kind, "partial dependence"]
    assert all(len(figure.data) for _, figure in shown.rendered)


@pytest.mark.parametrize(
    "result", [CURVE, BANDED_LEVELS, SURFACE, ATTRIBUTION[:1]], ids=["curve", "levels", "surface", "point"]
)
def test_a_single_picture_is_drawn_without_a_key(result):
    """``preserve`` asks for none if not told, and writes nothing where nothing comes; ``show`` has it on its first page."""
    made = result.to_interpret()
    assert made.data() is None
    assert made.visualize().to_json() == made.visualize(0).to_json()
    assert EFFECTS.to_interpret().visualize() is None


def test_interpret_draws_both_ends_of_a_band_around_levels():
    uneven = replace(BANDED_LEVELS, std=None, lower=BANDED_LEVELS.y - 0.3, upper=BANDED_LEVELS.y + 0.1)
    bars = uneven.to_interpret().visualize(0).data[0]
    assert np.allclose(bars.error_y.array, 0.1)
    assert np.allclose(bars.error_y.arrayminus, 0.3)
    assert not bars.error_y.symmetric


def test_a_surface_has_its_own_names_and_levels_on_its_axes():
    figure = replace(FLOAT_SURFACE, names=("R & D", "b")).to_interpret().visualize(0)
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("R & D", "b")
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "category"
    mixed = SURFACE.to_interpret().visualize(0)
    assert (mixed.layout.xaxis.type, mixed.layout.yaxis.type) == (None, "category")


def test_what_interpret_has_no_word_for_is_refused():
    with pytest.raises(InvalidInput, match="no explanation like a PrivateRows"):
        PRIVATE_ROWS.to_interpret()


@pytest.mark.parametrize(
    ("module", "ask"),
    [
        ("sklearn.inspection", CURVE.to_sklearn),
        ("shap", RANKING.to_shap),
        ("interpret.api.templates", RANKING.to_interpret),
    ],
)
def test_without_the_library_a_sentence_says_what_to_install(module, ask, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidInput, match=r"is not installed; install it with: pip install 'vitrail\["):
        ask()
