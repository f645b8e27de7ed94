"""Pictures: readable names, honest bars, no global state."""

import base64
import re
import subprocess
import sys

import pytest

from vitrail.errors import InvalidInput
from vitrail.show import Estimate, Histogram, estimates_figure, figure_image, histograms_figure, histograms_section
from vitrail.show.histograms import MOST_BARS, level_bars, shortened
from vitrail.show.images import figure_svg

LEVELS = Histogram("country", tuple(f"level {i}" for i in range(40)), None, tuple(float(i) for i in range(40)), 2.0)
NUMBERS = Histogram("age", tuple("abcd"), (0.0, 1.0, 2.0, 3.0, 4.0), (5.0, -3.0, 7.0, 1.0), 1.0)
MANY = Histogram("hours", tuple(map(str, range(99))), tuple(i - 0.5 for i in range(100)), (1.0,) * 99, 1.0)


def words(figure) -> str:  # type: ignore[no-untyped-def]
    return figure_svg(figure).decode()


def test_of_many_levels_the_largest_are_shown_and_the_rest_together() -> None:
    bars = level_bars(LEVELS)
    assert len(bars) == MOST_BARS
    assert bars[0].label == "level 39"
    assert (bars[-1].label, bars[-1].n_levels) == ("25 other levels", 25)
    assert sum(bar.count for bar in bars) == sum(LEVELS.counts)


def test_few_levels_keep_their_declared_order() -> None:
    assert [bar.label for bar in level_bars(Histogram("x", ("b", "a"), None, (1.0, 2.0), 1.0))] == ["b", "a"]


def test_every_column_and_level_can_be_read() -> None:
    drawn = words(histograms_figure([LEVELS, NUMBERS, MANY]))
    for text in ("country", "age", "hours", "level 39", "25 other levels"):
        assert text in drawn


@pytest.mark.parametrize("name", ["$x^$", "$5", "a_b^c", "<b>&", "è 中", "100 %", "\\frac"])
def test_names_are_text_not_formulas_or_markup(name: str) -> None:
    histogram = Histogram(name, (name, "other"), None, (1.0, 2.0), 1.0)
    drawn = words(histograms_figure([histogram]))
    assert "<b>" not in drawn
    if name.isascii() and "<" not in name:
        assert name in drawn
    assert name in words(estimates_figure([Estimate(name, 1.0, 0.5)])) or "<" in name


def test_long_names_keep_both_ends() -> None:
    assert shortened("abc", 5) == "abc"
    short = shortened("Married, spouse absent for military reasons", 20)
    assert len(short) == 20
    assert short.startswith("Married")
    assert short.endswith("easons")


def test_bars_stop_at_zero() -> None:
    axes = histograms_figure([NUMBERS]).axes[0]
    assert min(patch.get_height() for patch in axes.patches) == 0
    assert axes.get_ylim()[0] == 0


def test_error_bars_are_the_95_per_cent_band() -> None:
    axes = histograms_figure([NUMBERS]).axes[0]
    (low, high) = axes.collections[0].get_segments()[2][:, 1]
    assert (low, high) == pytest.approx((7 - 1.959964, 7 + 1.959964))


def test_all_counts_noise_and_none_positive_still_draws() -> None:
    for edges in (None, (0.0, 1.0, 2.0)):
        histograms_figure([Histogram("x", ("a", "b"), edges, (-500.0, -400.0), 1.0)])


@pytest.mark.parametrize("across", [0, 13, 2.0, True])
def test_across_is_a_small_whole_number(across: object) -> None:
    with pytest.raises(InvalidInput, match="across is"):
        histograms_figure([NUMBERS], across=across)  # type: ignore[arg-type]


def test_no_estimates_no_figure() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        estimates_figure([])


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert figure_svg(histograms_figure([NUMBERS])) == figure_svg(histograms_figure([NUMBERS]))


def test_an_image_carries_itself_and_a_description() -> None:
    image = figure_image(histograms_figure([NUMBERS]), 'of "age"')
    assert 'alt="of &quot;age&quot;"' in image
    encoded = re.search(r"base64,([A-Za-z0-9+/=]+)\"", image)
    assert encoded is not None
    assert base64.b64decode(encoded[1]).startswith(b"<?xml")


def test_a_section_holds_every_number() -> None:
    html = histograms_section([NUMBERS], total=10.0, total_sigma=1.0).to_html()
    assert "<td>b</td>" in html
    assert ">-3</td>" in html
    assert "within 2 of the true one" in html


def test_importing_show_draws_nothing_and_drawing_uses_no_window() -> None:
    program = (
        "import sys, vitrail.show as show; early = 'matplotlib' in sys.modules; "
        "show.histograms_figure([show.Histogram('x', ('a',), None, (1.0,), 1.0)]); "
        "print(early, 'matplotlib.pyplot' in sys.modules, 'vitrail.vault' in sys.modules, 'vitrail.ledger' in sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert seen.split() == ["False"] * 4
