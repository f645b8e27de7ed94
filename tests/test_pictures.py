"""Pictures as rows of pixels, their regions, the bound of what regions show, and heat maps over the picture."""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.errors import InvalidInput, SchemaError
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.schema import View
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import scales_of
from vitrail.solve.linear.weights import stable
from vitrail.vault import rehearse

SHOES = Path(__file__).resolve().parents[1] / "examples" / "data" / "shoes.parquet"


def shoes() -> tuple[np.ndarray, np.ndarray]:
    table = pq.read_table(SHOES)
    pixels = np.frombuffer(b"".join(table["image"].to_pylist()), dtype=np.uint8).reshape(-1, 28, 28)
    return pixels, np.array(table["kind"].to_pylist())


def shaft(features: np.ndarray) -> np.ndarray:
    """How bright the upper right quarter is: what a boot has and other shoes have not."""
    return features.reshape(len(features), 28, 28)[:, 7:14, 14:].sum(axis=(1, 2)) / 98


def data_of(picture: vt.Picture, images: np.ndarray) -> vt.PrivateData:
    return vt.PrivateData(
        picture.rows(images), picture.schema(), name="shoes", n_rows_public=2000, budget=vt.Budget(50, 1e-6)
    )


# --- what a picture is -----------------------------------------------------------------------------------------------


def test_patches_cover_the_picture_and_end_at_its_edge() -> None:
    picture = vt.Picture((5, 7), patches=(2, 3))
    assert picture.n_regions == 9
    assert picture.region_of_pixels[:, 0].tolist() == [0, 0, 3, 3, 6]
    assert picture.region_of_pixels[0].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert picture.view_schema().names[-1] == "patch 2,2"
    assert repr(picture) == "Picture(5 x 7, 9 patches)"
    assert isinstance(picture, View)


def test_rows_are_pixels_line_by_line() -> None:
    picture = vt.Picture((2, 3), high=9)
    images = np.arange(12).reshape(2, 2, 3) % 10
    rows = picture.rows(images)
    assert rows["pixel 0,2"].tolist() == [2, 8]
    assert tuple(rows) == picture.schema().names == picture.view_schema().names
    flat = picture.rows(images.reshape(2, 6))
    assert all(np.array_equal(flat[name], rows[name]) for name in rows)
    assert picture.rows(images[1])["pixel 1,0"].tolist() == [9]
    for bad in (np.zeros((2, 3, 2)), np.zeros(6), np.full((2, 2, 3), "a")):
        with pytest.raises(SchemaError, match="pictures are"):
            picture.rows(bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (4,)}, "shape is"),
        ({"shape": (4, 0)}, "shape is"),
        ({"shape": (4, 4), "patches": (2,)}, "patches is"),
        ({"shape": (4, 4), "patches": (2, 2), "superpixels": np.zeros((4, 4), int)}, "one of the two"),
        ({"shape": (4, 4), "superpixels": np.zeros((4, 3), int)}, "superpixels have shape"),
        ({"shape": (4, 4), "superpixels": np.zeros((4, 4))}, "superpixels have shape"),
        ({"shape": (4, 4), "superpixels": np.full((4, 4), 1)}, "none left out"),
        ({"shape": (2, 2), "superpixels": np.array([[0, 0], [2, 2]])}, "none left out"),
    ],
)
def test_pictures_that_make_no_sense_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        vt.Picture(**arguments)


def test_superpixels_follow_the_public_picture_and_are_connected() -> None:
    from scipy import ndimage

    image = shoes()[0][0]
    picture = vt.Picture.around(image, 25, high=15)
    regions = picture.region_of_pixels
    assert 15 <= picture.n_regions <= 30
    for region in range(picture.n_regions):
        assert ndimage.label(regions == region)[1] == 1
    within = sum(image[regions == region].var() * (regions == region).sum() for region in range(picture.n_regions))
    grid = vt.Picture((28, 28), patches=(5, 5)).region_of_pixels
    assert within < 0.5 * sum(image[grid == patch].var() * (grid == patch).sum() for patch in range(grid.max() + 1))
    assert np.array_equal(regions, vt.Picture.around(image, 25, high=15).region_of_pixels)
    for bad in (np.zeros((2, 2, 3)), np.full((3, 3), np.nan)):
        with pytest.raises(InvalidInput, match="public_image"):
            vt.Picture.around(bad)
    with pytest.raises(InvalidInput, match="n_regions"):
        vt.Picture.around(image, 0)
    with pytest.raises(InvalidInput, match="compactness"):
        vt.Picture.around(image, 25, compactness=0)


@pytest.mark.parametrize(("shape", "n_regions"), [((1, 1), 1), ((2, 2), 4), ((1, 9), 3), ((5, 7), 35)])
def test_small_and_empty_pictures_have_regions_too(shape: tuple[int, int], n_regions: int) -> None:
    for image in (np.zeros(shape), np.arange(np.prod(shape)).reshape(shape)):
        assert 1 <= vt.Picture.around(image, n_regions).n_regions <= image.size


def test_without_scikit_image_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(InvalidInput, match=r"vitrail\[pictures\]"):
        vt.Picture.around(shoes()[0][0], 25)


# --- the bound -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    regions=st.integers(1, 12),
    rows=st.integers(2, 9),
    seed=st.integers(0, 99),
)
def test_what_regions_show_is_bounded_and_each_row_is_alone(
    height: int, width: int, regions: int, rows: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    labels = np.unique(generator.integers(0, regions, (height, width)), return_inverse=True)[1].reshape(height, width)
    picture = vt.Picture((height, width), superpixels=labels, high=1)
    problem = LocalProblem(picture.view_schema(), vt.Model(lambda x: x[:, 0], range=(0, 1)), stable(), view=picture)
    raw = generator.random((rows, height * width)) ** generator.choice([0.01, 1, 10])
    raw[0], raw[1] = 1.0, 0.0  # the longest row there is, and the farthest from it
    shown, x = picture.look(raw), problem.encode(raw)
    assert shown.min() >= 0
    assert shown.max() <= 1
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    assert np.linalg.norm(x[:, None] - x[None], axis=2).max() <= problem.largest_distance + 1e-12
    for region in range(picture.n_regions):
        assert np.allclose(shown[:, region], raw[:, (labels == region).ravel()].mean(axis=1), atol=1e-14)
    for row in range(rows):
        assert np.array_equal(picture.look(raw[row : row + 1])[0], shown[row])
        assert np.array_equal(picture.look(raw[::-1])[rows - 1 - row], shown[row])


def test_sums_that_round_above_one_are_cut() -> None:
    picture = vt.Picture((1, 10), patches=(1, 10), high=1)
    largest = max(
        float(picture.look(np.full((1, 10), value))[0, 0]) for value in np.nextafter(1.0, 0.0) - np.arange(50) * 2e-16
    )
    assert largest <= 1.0


class TooBright:
    """A view that breaks what it says: it shows lengths of up to 2, and states a bound of 0.1."""

    picture = vt.Picture((2, 2), high=1)
    note, largest_norm = "", 0.1

    def schema(self) -> vt.Schema:
        return self.picture.schema()

    view_schema = schema

    def look(self, features: np.ndarray) -> np.ndarray:
        return features

    def digest(self) -> str:
        return "too bright"


@pytest.mark.parametrize("view", [vt.Picture((2, 2), high=1), vt.Picture((2, 2), patches=(2, 1), high=1), TooBright()])
@pytest.mark.parametrize("bright", [0.1, 1.0])
def test_the_vault_holds_a_row_to_the_bound_even_if_the_view_does_not(view: View, bright: float) -> None:
    model = vt.Model(lambda pixels: pixels[:, 0], range=(0, 1))
    problem = LocalProblem(view.view_schema(), model, stable(), view=view)
    question = statistics_question(problem, np.zeros((1, 4)))
    row = {name: [bright] for name in view.schema().names}
    flat = rehearse(question, row, view.schema(), mu=1e6, n_rows_public=1, draws=1)[0]
    pairs = np.triu_indices(question.size)
    counts = np.concatenate((np.where(pairs[0] == pairs[1], 1, 2), np.ones(question.size)))
    norm = np.sqrt((counts * flat**2).sum())
    assert norm <= question.l2_bound * 1.001
    if isinstance(view, vt.Picture):  # an honest view is not clipped
        d = np.linalg.norm(problem.encode(np.full((1, 4), bright)))
        scales = scales_of(problem)
        u, y = np.hypot(scales.intercept, d), scales.label * (2 * bright - 1)
        assert norm == pytest.approx(float(stable()(d)) * u * np.hypot(u, y), rel=1e-3)


# --- explanations ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("how", ["patches", "superpixels"])
@pytest.mark.parametrize("method", ["statistics", "descent"])
def test_an_explanation_points_at_the_shaft_of_a_boot(how: str, method: str) -> None:
    images, kinds = shoes()
    boot = images[:400][kinds[:400] == "ankle boot"][3]
    picture = vt.Picture((28, 28), patches=(7, 7), high=15) if how == "patches" else vt.Picture.around(boot, 16, high=15)
    data, model = data_of(picture, images[400:]), vt.Model(shaft, range=(0, 1), name="shaft")
    chosen = vt.linear.Descent(iterations=25) if method == "descent" else vt.linear.Statistics()
    e = vt.LocalLinear(data, model, method=chosen, view=picture)(picture.rows(boot), epsilon=8.0)
    heat = e.values[0][picture.region_of_pixels]
    assert heat[7:14, 14:].mean() > 3 * np.abs(heat[21:, :14]).mean()
    assert e.points[0][e.columns[0]] == pytest.approx(boot[picture.region_of_pixels == 0].mean(), abs=1e-9)
    assert any(f"means of {picture.n_regions} {how}" in note for note in e.notes)
    figure = e.plot.image(picture, image=boot)
    assert len(figure.axes[0].collections) == 1  # outlines of the regions
    drawn = e.plot.image(picture).axes
    assert len(drawn) == 3
    again = vt.Attribution.from_json(e.to_json())
    assert again.plot.image(picture).axes[0].get_title(loc="left") == "contributions"


def test_pixels_explain_too_and_a_digest_tells_pictures_apart() -> None:
    images, _ = shoes()
    picture = vt.Picture((28, 28), high=15)
    data, model = data_of(picture, images), vt.Model(shaft, range=(0, 1), name="shaft")
    explain = vt.LocalLinear(data, model, method=vt.linear.Statistics(bands=False), view=picture)
    e = explain(picture.rows(images[0]), epsilon=8.0)
    assert e.values.shape == (1, 784)
    assert len(e.plot.image(picture).axes) == 3
    patches = [vt.Picture((28, 28), patches=size, high=15) for size in ((4, 4), (7, 7))]
    assert len({one.digest() for one in (*patches, picture, vt.Picture((28, 28)))}) == 4
    with pytest.raises(InvalidInput, match="the picture that the explanation was made with"):
        e.plot.image(patches[0])


@pytest.mark.usefixtures("planted_noise")
def test_without_a_view_pictures_are_ordinary_rows() -> None:
    picture = vt.Picture((2, 2), high=1)
    images = np.random.default_rng(0).random((4000, 2, 2))
    data = vt.PrivateData(picture.rows(images), picture.schema(), name="tiny", n_rows_public=4000, budget=vt.Budget(9, 1e-6))
    model = vt.Model(lambda pixels: pixels[:, 3], range=(0, 1), name="last")
    for view in (None, picture):
        e = vt.LocalLinear(data, model, view=view)(picture.rows(np.ones((2, 2))), epsilon=3.0)
        assert e.top(1)[0].column == "pixel 1,1"
