"""Surfaces as objects, files and pictures."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.results.band_claim import BandClaim
from vitrail.show import figure_svg

PROMISE, COST = vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2)
VALUES = np.arange(6.0).reshape(3, 2) / 10


def surface(**changes):
    fields = {
        "names": ("age", "se$x"),
        "kind": "partial dependence",
        "sides": (np.array([20.0, 40.0, 80.0]), ("f", "m")),
        "values": VALUES,
        "guarantee": PROMISE,
        "cost": COST,
        "std": np.full((3, 2), 0.01),
    }
    return vt.Surface(**(fields | changes))


def test_a_surface_survives_being_written_down():
    one = surface(notes=("a note",))
    back = vt.Surface.from_json(one.to_json())
    assert back.names == one.names
    assert back.sides[0].tolist() == one.sides[0].tolist()
    assert back.sides[1] == one.sides[1]
    assert back.values.tolist() == one.values.tolist()
    assert back.std.tolist() == one.std.tolist()
    assert back.notes == ("a note",)
    assert back.guarantee == one.guarantee


def test_frames_have_a_line_per_place():
    frame = surface().frame()
    assert frame["age"].tolist() == [20.0, 20.0, 40.0, 40.0, 80.0, 80.0]
    assert frame["se$x"].tolist() == ["f", "m"] * 3
    np.testing.assert_allclose(frame["value"], VALUES.ravel())
    np.testing.assert_allclose(frame["upper"] - frame["lower"], 2 * 1.96 * 0.01, rtol=1e-3)


def test_the_picture_shows_values_and_noise():
    figure = surface().plot()
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "age"]
    assert len(panels) == 2
    np.testing.assert_allclose(np.asarray(panels[0].collections[0].get_array()).ravel(), VALUES.T.ravel())
    text = figure_svg(figure).decode()
    assert "se$x" in text
    assert "band, not calibrated" in text
    assert "95 % noise band" in figure_svg(surface(band_claim=BandClaim.MEASURED_95).plot()).decode()
    assert len(surface(std=None).plot().axes) == 2  # the map and its scale


def test_it_can_be_drawn_into_given_axes():
    from matplotlib.figure import Figure

    figure = Figure()
    assert surface().plot(figure.add_subplot()) is figure
    assert "<img" in surface()._repr_html_()


def test_the_page_has_its_numbers():
    page = surface().to_html()
    assert "<h1>Partial dependence: age and se$x</h1>" in page
    assert page.count('<td class="number">± 0.02</td>') == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("a",)}, "two columns"),
        ({"names": ("a", "a")}, "twice"),
        ({"sides": (np.array([2.0, 1.0, 3.0]), ("f", "m"))}, "must increase"),
        ({"sides": (np.array([1.0, 2.0, 3.0]), ("f", "f"))}, "different levels"),
        ({"values": VALUES.T}, "shape"),
        ({"values": VALUES * np.nan}, "finite"),
        ({"std": -np.ones((3, 2))}, "negative"),
        ({"cost": 3}, "cost of a surface"),
    ],
)
def test_what_cannot_be_a_surface_is_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        surface(**changes)


def test_of_many_levels_few_are_named():
    names, values = tuple(f"level {i}" for i in range(30)), np.zeros((30, 2))
    many = surface(sides=(names, np.array([1.0, 2.0])), values=values, std=None)
    assert len(many.plot().axes[0].get_xticks()) <= 9
