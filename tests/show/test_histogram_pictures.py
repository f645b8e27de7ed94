"""Pictures: readable names, honest bars, no global state."""

import base64
import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.results.marginals import Marginals
from vitrail.schema.bins import Bins
from vitrail.show import figure_svg, histograms_figure, style
from vitrail.show.histograms import MOST_BARS, level_bars
from vitrail.show.text_tables import shortened

LEVELS = Bins("country", tuple(f"level {i}" for i in range(40)), None), tuple(float(i) for i in range(40))
NUMBERS = Bins("age", tuple("abcd"), (0.0, 1.0, 2.0, 3.0, 4.0)), (5.0, -3.0, 7.0, 1.0)
MANY = Bins("hours", tuple(map(str, range(99))), tuple(i - 0.5 for i in range(100))), (1.0,) * 99


def marginals(*columns: tuple[Bins, tuple[float, ...]], dataset: str = "people") -> Marginals:
    counts = {bins.name: np.array(numbers) for bins, numbers in columns}
    promise = vt.Guarantee.of_mu(0.2, 1e-6)
    return Marginals(dataset, tuple(bins for bins, _ in columns), counts, 1.0, 30, vt.Cost.of_mu(0.2), promise)


def words(figure) -> str:  # type: ignore[no-untyped-def]
    return figure_svg(figure).decode()


def test_of_many_levels_the_largest_are_shown_and_the_rest_together() -> None:
    bars = level_bars(LEVELS[0], np.array(LEVELS[1]))
    assert len(bars) == MOST_BARS
    assert bars[0].label == "level 39"
    assert (bars[-1].label, bars[-1].n_levels) == ("25 other levels", 25)
    assert sum(bar.total for bar in bars) == sum(LEVELS[1])


def test_few_levels_keep_their_declared_order() -> None:
    assert [bar.label for bar in level_bars(Bins("x", ("b", "a"), None), np.array([1.0, 2.0]))] == ["b", "a"]


def test_every_column_and_level_can_be_read() -> None:
    drawn = words(histograms_figure(marginals(LEVELS, NUMBERS, MANY)))
    for text in ("country", "age", "hours", "level 39", "25 other levels"):
        assert text in drawn


@pytest.mark.parametrize("name", ["$x^$", "$5", "a_b^c", "<b>&", "è 中", "100 %", "\\frac"])
def test_names_are_text_not_formulas_or_markup(name: str) -> None:
    drawn = words(marginals((Bins(name, (name, "other"), None), (1.0, 2.0))).plot())
    assert "<b>" not in drawn
    if name.isascii() and "<" not in name:
        assert name in drawn


def test_long_names_keep_both_ends() -> None:
    assert shortened("abc", 5) == "abc"
    short = shortened("Married, spouse absent for military reasons", 20)
    assert len(short) == 20
    assert short.startswith("Married")
    assert short.endswith("easons")


def test_bars_stop_at_zero() -> None:
    axes = histograms_figure(marginals(NUMBERS)).axes[0]
    assert min(patch.get_height() for patch in axes.patches) == 0
    assert axes.get_ylim()[0] == 0


def test_error_bars_are_the_95_per_cent_band() -> None:
    axes = histograms_figure(marginals(NUMBERS)).axes[0]
    (low, high) = axes.collections[0].get_segments()[2][:, 1]
    assert (low, high) == pytest.approx((7 - 1.959964, 7 + 1.959964))


def test_all_counts_noise_and_none_positive_still_draws() -> None:
    for edges in (None, (0.0, 1.0, 2.0)):
        histograms_figure(marginals((Bins("x", ("a", "b"), edges), (-500.0, -400.0))))


@pytest.mark.parametrize("across", [0, 13, 2.0, True])
def test_across_is_a_small_whole_number(across: object) -> None:
    with pytest.raises(InvalidInput, match="across is"):
        histograms_figure(marginals(NUMBERS), across=across)  # type: ignore[arg-type]


def test_a_picture_has_no_more_digits_than_can_be_seen_and_its_words_as_they_are() -> None:
    figure, axes = style.new_axes(3.6, 2.6)
    axes.plot(np.linspace(0, 1, 200), np.random.default_rng(0).random(200))
    axes.set_xlabel("L 1.23456 M 7.000001 <a> in $")
    root = ElementTree.fromstring(figure_svg(figure))
    said = [text for text in root.itertext() if text.strip()]
    assert any("L 1.23456 M 7.000001 <a> in $" in text for text in said)
    paths = [element.attrib["d"] for element in root.iter("{http://www.w3.org/2000/svg}path")]
    numbers = re.findall(r"-?\d+(?:\.\d+)?", " ".join(paths))
    assert len(numbers) > 400
    assert all(len(number.partition(".")[2]) <= 2 for number in numbers)
    assert all(re.fullmatch(r"(?:[MLQC]-?[\d.]+(?: -?[\d.]+)*|z)*", path) for path in paths)


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert figure_svg(histograms_figure(marginals(NUMBERS))) == figure_svg(histograms_figure(marginals(NUMBERS)))


def test_an_image_carries_itself_and_a_description() -> None:
    found = marginals(NUMBERS, dataset='of "age"')
    image = found._repr_html_()
    assert 'alt="Marginals(&#39;of &#34;age&#34;&#39;' in image
    encoded = re.search(r"base64,([A-Za-z0-9+/=]+)\"", image)
    assert encoded is not None
    assert base64.b64decode(encoded[1]).startswith(b"<?xml")


def test_a_page_holds_every_number() -> None:
    html = marginals(NUMBERS).to_html()
    assert "<td>b</td>" in html
    assert ">-3</td>" in html
    assert "2 of the true one" in html


def test_importing_show_draws_nothing_and_drawing_uses_no_window() -> None:
    program = (
        "import sys, vitrail.show as show; early = 'matplotlib' in sys.modules or 'jinja2' in sys.modules; "
        "show.roc_figure([show.RocCurve('x', 'y', (0.0, 1.0), (0.0, 1.0))]); "
        "print(early, 'matplotlib.pyplot' in sys.modules, 'vitrail.vault' in sys.modules, 'vitrail.ledger' in sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert seen.split() == ["False"] * 4
