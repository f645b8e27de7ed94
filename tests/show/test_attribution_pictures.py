"""Pictures of explanations: bars where the numbers are, bands where the noise is, names as they are."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.show import (
    figure_svg,
    fragment,
)
from vitrail.show.attributions import bars_of
from vitrail.show.style import LOWERS, PALE, RAISES
from vitrail.show.words import HighlightedText, Word


def explained(values, columns, points, band=None, **changes):  # type: ignore[no-untyped-def]
    values = np.atleast_2d(np.asarray(values, dtype=float))
    return (
        vt.Attribution(
            values=values,
            base_values=np.full(len(values), 0.5),
            columns=tuple(columns),
            points=tuple(points),
            outputs=np.full(len(values), 0.6),
            guarantee=vt.Guarantee.of_mu(0.2, 1e-6),
            cost=vt.Cost.of_mu(0.2),
            method="statistics",
            lower=None if band is None else values - band,
            upper=None if band is None else values + band,
        )
        if not changes
        else replace(explained(values, columns, points, band), **changes)
    )


ONE = explained(
    [[0.3, -0.2, 0.05]],
    ["age", "sex", "hours"],
    [{"age": 39, "sex": "Male", "hours": 40}],
    0.1,
    base_values=np.array([0.2]),
    outputs=np.array([0.4]),
)


def tick_texts(axes) -> list[str]:  # type: ignore[no-untyped-def]
    return [label.get_text() for label in axes.get_yticklabels()]


def hex_color(patch) -> str:  # type: ignore[no-untyped-def]
    from matplotlib.colors import to_hex

    return to_hex(patch.get_facecolor())


# --- bars ------------------------------------------------------------------------------------------------------------


def test_bars_are_sorted_coloured_and_pale_where_noise_could_be_all() -> None:
    (axes,) = ONE.plot.bar().axes
    assert tick_texts(axes) == ["age = 39", "sex = Male", "hours = 40"]
    assert [patch.get_width() for patch in axes.patches] == [0.3, -0.2, 0.05]
    assert [hex_color(patch) for patch in axes.patches] == [RAISES, LOWERS, RAISES]
    assert [patch.get_alpha() for patch in axes.patches] == [1.0, 1.0, PALE]
    assert axes.get_title(loc="left") == "from base value 0.200 to 0.350 (the model says 0.400)"


def test_bands_are_lines_from_lower_to_upper() -> None:
    (axes,) = ONE.plot.bar().axes
    drawn = [tuple(lines.get_segments()[0][:, 0]) for lines in axes.collections]
    assert np.allclose(drawn, [(0.2, 0.4), (-0.3, -0.1), (-0.05, 0.15)])
    low, high = axes.get_xlim()
    assert low < -0.3
    assert high > 0.4


def test_without_bands_no_line_is_drawn_and_no_word_said() -> None:
    figure = replace(ONE, lower=None, upper=None).plot.bar()
    assert not figure.axes[0].collections
    assert "band" not in figure_svg(figure).decode()
    assert {patch.get_alpha() for patch in figure.axes[0].patches} == {1.0}


def test_small_columns_stand_together_without_a_band() -> None:
    (axes,) = ONE.plot.bar(max_columns=2).axes
    assert tick_texts(axes) == ["age = 39", "2 other columns"]
    assert axes.patches[1].get_width() == pytest.approx(-0.15)
    assert len(axes.collections) == 1


@pytest.mark.parametrize("most", [0, -1, 2.5, True])
def test_max_columns_is_a_whole_number(most: object) -> None:
    for draw in (ONE.plot.bar, ONE.plot.waterfall):
        with pytest.raises(InvalidInput, match="max_columns is"):
            draw(max_columns=most)


@pytest.mark.parametrize("name", ["$x^$", "$5", "a_b^c", "<b>&", "è 中", "100 %", "\\frac"])
def test_names_are_text_not_formulas_or_markup(name: str) -> None:
    made = explained([[0.1, 0.2]] * 2, [name, "other"], [{name: name, "other": 1}] * 2, 0.05)
    figures = [
        made.plot.bar(),
        made.plot.bars(),
        made.plot.waterfall(),
        made.plot.text().figure(),
        made.plot.text([name]).figure(),
    ]
    for figure in figures:
        drawn = figure_svg(figure).decode()
        assert "<b>" not in drawn
        if name.isascii() and "<" not in name:
            assert name in drawn


def test_long_names_and_values_are_cut_in_the_middle() -> None:
    name, shown = "n" * 200 + "END", "v" * 200 + "END"
    (bar,) = bars_of(explained([[1.0]], [name], [{name: shown}]))
    assert len(bar.text) < 50
    assert bar.text.count("…") == 2
    assert bar.text.endswith("END")


@pytest.mark.parametrize("values", [(0.0, 0.0), (1e-300, -1e-300), (1e9, -3e8)])
def test_extreme_numbers_are_drawn(values: tuple[float, float]) -> None:
    made = explained(values, ["a", "b"], [{"a": 1, "b": 2}], max(map(abs, values)))
    for figure in (made.plot.bar(), made.plot.waterfall(), made.plot.text().figure()):
        assert figure_svg(figure)
    assert "nan" not in made._repr_html_()
    assert made.summary()


FAR = replace(ONE, outputs=np.array([0.9]))
CAUTION = (
    "This explanation misses the model's output by 0.55, more than its largest contribution (0.3): "
    "do not read it as the model's reasons."
)


def test_a_miss_that_is_larger_than_every_contribution_is_said_first_and_once() -> None:
    page, shown, text = vt.show.page(FAR), fragment(FAR), FAR.summary()
    for html in (page, shown):
        html = html.replace("&#39;", "'")
        assert html.count(CAUTION) == 1
        assert html.index(CAUTION) < html.index("from base value")
    assert text.splitlines()[1] == CAUTION
    assert text.count(CAUTION) == 1
    assert not any("misses" in said for said in (vt.show.page(ONE), fragment(ONE), ONE.summary()))


def test_a_miss_stands_above_every_picture() -> None:
    for figure in (FAR.plot.bar(), FAR.plot.waterfall()):
        title = figure.axes[0].get_title(loc="left")
        assert title.replace("\n", " ").startswith(CAUTION)
        assert title.endswith("(the model says 0.900)")
        assert figure.get_size_inches()[1] > ONE.plot.bar().get_size_inches()[1]
    heading = replace(FAR, columns=ONE.columns).plot.text().heading
    assert heading.replace("\n", " ").startswith(CAUTION)


def test_each_of_several_points_says_its_own_miss() -> None:
    two = explained([[0.3], [0.2]], ["a"], [{"a": 1}] * 2, base_values=np.zeros(2), outputs=np.array([0.3, 0.9]))
    assert "At 1 of 2 points (1) this explanation misses" in two.summary().splitlines()[1]
    for said in (vt.show.page(two), fragment(two), two.summary()):
        assert said.count("by 0.7, more than its largest contribution (0.2)") == 1
    titles = [axes.get_title(loc="left") for axes in two.plot.bars().axes]
    assert ["misses" in title for title in titles] == [False, True]


def test_what_cannot_be_compared_with_the_output_does_not_quote_it() -> None:
    centred = replace(FAR, explains_output=False)
    assert centred.plot.bar().axes[0].get_title(loc="left") == "from base value 0.200 to 0.350"
    assert not centred.caution


def test_fidelity_is_said_where_it_is_known() -> None:
    known = replace(ONE, fidelity=np.array([0.0625]))
    sentence = "On rows near the point it differs from the model by 0.062 (root mean square)."
    assert sentence in known.summary()
    assert sentence in vt.show.page(known)
    assert "near the point" not in ONE.summary() + vt.show.page(ONE)


# --- several points --------------------------------------------------------------------------------------------------


def test_small_multiples_share_order_and_scale() -> None:
    points = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    figure = explained([[0.1, 0.3], [-0.9, 0.4]], ["a", "b"], points, 0.05).plot.bars()
    first, second = figure.axes
    assert tick_texts(first) == ["a = 1", "b = x"]
    assert tick_texts(second) == ["a = 2", "b = y"]
    assert first.get_xlim() == second.get_xlim()
    assert second.get_title(loc="left").startswith("point 1\n")


def test_points_can_be_chosen_and_keep_their_numbers() -> None:
    made = explained([[0.1], [0.2], [0.3]], ["a"], [{"a": i} for i in range(3)])
    titles = [axes.get_title(loc="left").splitlines()[0] for axes in made.plot.bars([2, 0]).axes]
    assert titles == ["point 2", "point 0"]
    with pytest.raises(InvalidInput, match="point is 7"):
        made.plot.bars([7])
    with pytest.raises(InvalidInput, match="0 points were given"):
        made.plot.bars([])
    with pytest.raises(InvalidInput, match="across is 0"):
        made.plot.bars(across=0)


def test_too_many_points_are_refused() -> None:
    made = explained([[0.1]] * 30, ["a"], [{"a": 1}] * 30)
    with pytest.raises(InvalidInput, match="30 points were given"):
        made.plot.bars()


# --- waterfall -------------------------------------------------------------------------------------------------------


def test_steps_lead_from_the_base_value_to_the_prediction() -> None:
    (axes,) = ONE.plot.waterfall().axes
    spans = [sorted((patch.get_x(), patch.get_x() + patch.get_width())) for patch in axes.patches]
    # Drawn from the bottom: hours, sex, age.
    assert np.allclose(spans, [[0.2, 0.25], [0.05, 0.25], [0.05, 0.35]])
    bands = [tuple(c.get_segments()[0][:, 0]) for c in axes.collections if np.ptp(c.get_segments()[0][:, 1]) == 0]
    assert np.allclose(bands, [(0.15, 0.35), (-0.05, 0.15), (0.25, 0.45)])


# --- words -----------------------------------------------------------------------------------------------------------

BAG = explained(
    [[0.3, -0.2, 0.02, 0.4, 0.0]],
    ["great", "awful", "plot", "absent", "nil"],
    [{"great": 1, "awful": "yes", "plot": 2.0, "absent": 0, "nil": True}],
    0.1,
)


def test_present_words_are_shown_by_size_and_noise_stays_grey() -> None:
    text = BAG.plot.text()
    assert isinstance(text, HighlightedText)
    assert [(word.text, word.colored) for word in text.words] == [
        ("great", True),
        ("awful", True),
        ("plot", False),
        ("nil", False),
    ]
    html = str(text)
    assert html == text.to_html() == text._repr_html_()
    great, awful = (re.search(rf"rgba\((\d+),\d+,(\d+),[^)]*\)[^>]*>{word}<", html) for word in ("great", "awful"))
    assert great is not None
    assert int(great[1]) > int(great[2])
    assert awful is not None
    assert int(awful[1]) < int(awful[2])
    assert re.search(r"opacity:0\.5\">plot<", html)


def test_a_text_keeps_its_order_and_finds_words_in_their_dress() -> None:
    text = BAG.plot.text("A (GREAT!) plot, never absent, and not awful.")
    values = {word.text: word.value for word in text.words}
    assert list(values) == ["A", "(GREAT!)", "plot,", "never", "absent,", "and", "not", "awful."]
    assert values["(GREAT!)"] == 0.3
    assert values["awful."] == -0.2
    assert values["absent,"] is None
    assert values["never"] is None


def test_hostile_words_are_escaped() -> None:
    bad = "<img src=x onerror=alert(1)>\"'"
    html = str(explained([[0.3]], [bad], [{bad: 1}]).plot.text([bad, bad.upper()]))
    assert "<img" not in html.lower().replace("&lt;img", "")


@pytest.mark.parametrize("words", ["", [], [3]])
def test_words_are_words(words: object) -> None:
    with pytest.raises(InvalidInput, match="words is empty"):
        BAG.plot.text(words)


def test_a_point_without_words_says_so() -> None:
    with pytest.raises(InvalidInput, match="has none of the words"):
        explained([[0.3]], ["great"], [{"great": 0}]).plot.text()


def test_the_figure_of_a_text_breaks_its_lines() -> None:
    figure = HighlightedText(tuple(Word(f"word{i}", 0.1 * i) for i in range(60)), "heading", "footer").figure()
    places = {round(text.get_position()[1], 6) for text in figure.texts if text.get_text().startswith("word")}
    assert len(places) > 3
    figure.canvas.draw()
    right = max(text.get_window_extent().x1 for text in figure.texts)
    assert right <= figure.bbox.width
    assert HighlightedText((Word("x" * 500, 1.0),)).figure().texts[0].get_text().endswith("…")


# --- pictures --------------------------------------------------------------------------------------------------------

PIXELS = [f"p{i}" for i in range(6)]


def test_pixels_lie_line_by_line_and_colours_are_centred_at_zero() -> None:
    made = explained([np.arange(6) - 1.0], PIXELS, [dict.fromkeys(PIXELS, 3.0)])
    figure = made.plot.image((2, 3))
    overlay = figure.axes[0].images[-1]
    assert overlay.get_array().tolist() == [[-1, 0, 1], [2, 3, 4]]
    assert overlay.get_clim() == (-4, 4)
    assert len(figure.axes[1].images) == 1
    figure.canvas.draw()


def test_pixels_that_could_be_noise_have_no_colour() -> None:
    made = explained([[0.1, -0.5, 0.5, 0.0, 0.2, 0.9]], PIXELS, [dict.fromkeys(PIXELS, "text")], 0.3)
    figure = made.plot.image((2, 3))
    overlay = figure.axes[0].images[-1]
    assert (np.asarray(overlay.get_alpha()) > 0).tolist() == [[False, True, True], [False, False, True]]
    assert "3 of 6 pixels" in figure_svg(figure).decode()


def test_superpixels_spread_over_their_pixels() -> None:
    picture = vt.Picture((2, 2), superpixels=np.array([[0, 0], [1, 2]]))
    names = picture.view_schema().names
    made = explained([[0.5, 0.125, -0.25]], names, [dict.fromkeys(names, 1)])
    for image in (None, np.eye(2), np.zeros((2, 2, 3)), np.arange(4)):
        overlay = made.plot.image(picture, image=image).axes[0].images[-1]
        assert overlay.get_array().tolist() == [[0.5, 0.5], [0.125, -0.25]]
        assert (np.asarray(overlay.get_alpha()) > 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (28, 28)}, "784 pixels, and the explanation has 6 columns"),
        ({"shape": 6}, "shape is 6"),
        ({"shape": (2, 0)}, r"shape is \(2, 0\)"),
        ({"shape": (2, 3), "image": np.zeros((3, 2))}, r"image has shape \(3, 2\)"),
        ({"shape": (2, 3), "image": np.full((2, 3), np.nan)}, "image holds a number that is not finite"),
        ({"shape": (2, 3), "image": "picture"}, "image is not an array of numbers"),
    ],
)
def test_pictures_that_do_not_fit_are_refused(arguments: dict[str, object], message: str) -> None:
    made = explained([np.zeros(6)], PIXELS, [dict.fromkeys(PIXELS, 1)])
    with pytest.raises(InvalidInput, match=message):
        made.plot.image(**arguments)


# --- all of them -----------------------------------------------------------------------------------------------------


def test_a_notebook_gets_every_number_and_bars_where_they_are() -> None:
    html = fragment(ONE)
    for text in ("age = 39", "+0.300", "[+0.200, +0.400]", RAISES, LOWERS, f"opacity:{PALE}"):
        assert text in html
    # Bars from zero on a scale from -0.328 to 0.428: zero is at 43.39 %, the first ends at 83.07 %.
    first = re.search(r"left:([\d.]+)%;width:([\d.]+)%;background:" + RAISES, html)
    assert first is not None
    assert [float(number) for number in first.groups()] == pytest.approx([43.39, 39.68], abs=0.01)


def test_drawing_uses_no_window() -> None:
    program = (
        "import sys, numpy as np, vitrail as vt; "
        "one = vt.Attribution(np.ones((1, 1)), np.zeros(1), ('a',), ({'a': 1},), np.ones(1), vt.Guarantee.of_mu(0.2, 1e-6), "
        "vt.Cost(), 'statistics'); early = 'matplotlib' in sys.modules or 'vitrail.show' in sys.modules; "
        "one.plot(); one.plot.bars(); one.plot.waterfall(); "
        "print(early, 'matplotlib.pyplot' in sys.modules, 'vitrail.vault' in sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert seen.split() == ["False"] * 3
