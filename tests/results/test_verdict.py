"""Too little to tell: the rule, by hand and on pure noise; what it does to orders, texts and pages."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vitrail as vt
from error_rates import largest_count
from vitrail.accounting import epsilon_of
from vitrail.errors import InvalidInput
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.results.row_count import RowCount
from vitrail.results.verdict import (
    THEREFORE,
    Verdict,
    judge,
    judge_sizes,
    middle_of_others,
    sentences,
    shape_size,
    too_little,
    usual_verdict,
    weakest_verdict,
    what_helps,
    widening,
)

CLEAR, WEAK, NOISE = Verdict
PAID: dict[str, Any] = {"guarantee": vt.Guarantee.of_mu(0.1, 1e-6), "cost": vt.Cost.of_mu(0.1)}
COLUMNS = ("zeta", "age", "sex", "hours")
POINT = {"zeta": 1.0, "age": 39, "sex": "Male", "hours": 40.0}
NOISY = np.array([0.01, -0.03, 0.02, 0.04])
STANDS_OUT = np.array([0.01, -0.9, 0.02, 0.5])


def attribution(*values: np.ndarray, half: float = 0.1, **more: Any) -> vt.Attribution:
    rows, n = np.array(values), len(values)
    fields: dict[str, Any] = {"lower": rows - half, "upper": rows + half, "method": "statistics", **PAID, **more}
    return vt.Attribution(rows, np.full(n, 0.3), COLUMNS, (POINT,) * n, 0.3 + rows.sum(axis=1), **fields)


def ranking(scores: np.ndarray, **more: Any) -> vt.Ranking:
    return vt.Ranking(COLUMNS, scores, **{"std": np.full(4, 0.1), "kind": "permutation importance", **PAID, **more})


def curve(name: str, heights: list[float], std: float = 0.05, **more: Any) -> vt.Curve:
    return vt.Curve(name, "partial dependence", np.arange(4.0), np.array(heights), std=np.full(4, std), **PAID, **more)


def effects(**heights: list[float]) -> vt.Effects:
    return vt.Effects({name: curve(name, y) for name, y in heights.items()}, None, **PAID)


# --- the rule --------------------------------------------------------------------------------------------------------


def test_bands_are_widened_by_bonferroni() -> None:
    assert widening(1) == 1.0
    assert widening(2) * TWO_SIDED_95 == pytest.approx(2.2414, abs=1e-4)  # tables of the normal law at 1 - 0.0125
    assert widening(10) * TWO_SIDED_95 == pytest.approx(2.8070, abs=1e-4)


@pytest.mark.parametrize(
    ("sizes", "errors", "items", "verdict"),
    [
        ([3.0], [1.0], [CLEAR], CLEAR),
        ([1.9], [1.0], [NOISE], WEAK),  # 1.9 < 1.96, and 1.9^2 >= 2
        ([1.0], [1.0], [NOISE], NOISE),
        ([2.2, 0.0], [1.0, 1.0], [WEAK, NOISE], WEAK),  # 1.96 < 2.2 < 2.24, and E = 2.42
        ([2.1, 0.1, 0.1], [1.0, 1.0, 1.0], [WEAK, NOISE, NOISE], NOISE),  # E = 1.48
        ([4.0] + [0.0] * 11, [1.0] * 12, [CLEAR] + [NOISE] * 11, WEAK),  # E = 1.33
        ([1.5] * 6, [1.0] * 6, [NOISE] * 6, WEAK),  # E = 2.25
        ([4.0, 4.0], [1.0, 1.0], [CLEAR, CLEAR], CLEAR),
        ([-4.0, 0.5], [1.0, 1.0], [CLEAR, NOISE], CLEAR),
    ],
)
def test_worked_examples(sizes: list[float], errors: list[float], items: list[Verdict], verdict: Verdict) -> None:
    found = judge_sizes(sizes, errors)
    assert list(found.verdicts) == items
    assert found.verdict is verdict
    energies = [sum(number**2 for number in numbers) for numbers in (sizes, errors)]
    assert found.signal == pytest.approx(math.sqrt(energies[0] / energies[1]))


def test_without_noise_the_signal_is_infinite() -> None:
    found = judge_sizes([1.0, 0.0], [0.0, 0.0])
    assert found.signal == math.inf
    assert found.verdict is CLEAR
    assert found.verdicts == (CLEAR, NOISE)  # a column that adds exactly nothing is no reason


def test_a_band_need_not_lie_around_its_number() -> None:
    assert judge([0.0], [0.1], [0.3]).verdicts == (CLEAR,)
    assert judge([0.0, 0.0], [0.01, -1.0], [0.3, 1.0]).verdicts == (WEAK, NOISE)


def test_numbers_that_overflow_are_noise() -> None:
    found = judge([1e308, -1e308], [-np.inf, -np.inf], [np.inf, np.inf])
    assert found.verdict is NOISE
    assert found.signal == 0.0
    assert "how much, this result cannot tell" in what_helps(found, PAID["guarantee"])


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(0.01, 9)), min_size=1, max_size=20),
    st.integers(-40, 40),
)
def test_scaling_numbers_and_noise_together_changes_nothing(items: list[tuple[float, float]], power: int) -> None:
    sizes, errors = np.array(items).T
    one, other = judge_sizes(sizes, errors), judge_sizes(sizes * 2.0**power, errors * 2.0**power)
    assert one == other  # powers of two round nothing


def test_pure_noise_has_a_clear_item_in_one_draw_of_twenty() -> None:
    draws, generator = 4000, np.random.default_rng(15)
    spread = generator.uniform(0.1, 10, 13)
    noise = generator.normal(size=(draws, 13)) * spread
    half = TWO_SIDED_95 * spread
    found = [judge(row, row - half, row + half) for row in noise]
    assert sum(CLEAR in judged.verdicts for judged in found) <= largest_count(draws, 0.05)
    assert sum(judged.verdict is CLEAR for judged in found) <= largest_count(draws, 0.05)


def test_pure_noise_that_all_columns_share_has_no_more() -> None:
    draws, generator = 4000, np.random.default_rng(16)
    noise = np.repeat(generator.normal(size=(draws, 1)), 13, axis=1)
    found = [judge(row, row - TWO_SIDED_95, row + TWO_SIDED_95) for row in noise]
    assert sum(CLEAR in judged.verdicts for judged in found) <= largest_count(draws, 0.05)


def test_a_truth_as_large_as_the_noise_is_at_two() -> None:
    generator = np.random.default_rng(17)
    truth = np.ones(400)
    energies = [judge_sizes(truth + generator.normal(size=400), np.ones(400)).signal ** 2 for _ in range(200)]
    # The mean of 200 E has a standard deviation of sqrt((2 + 4) / 400 / 200) = 0.009.
    assert np.mean(energies) == pytest.approx(2.0, abs=0.06)


def test_of_several_parts_and_of_several_points() -> None:
    assert weakest_verdict([CLEAR, WEAK]) is WEAK
    assert usual_verdict([CLEAR, CLEAR, NOISE]) is CLEAR
    assert usual_verdict([CLEAR, NOISE]) is NOISE
    assert weakest_verdict([]) is usual_verdict([]) is None
    assert CLEAR.at_least(WEAK)
    assert not NOISE.at_least(WEAK)


# --- words -----------------------------------------------------------------------------------------------------------


def test_the_epsilon_that_would_help_does_if_what_is_shown_is_real() -> None:
    sizes, errors = np.array([0.1, -0.12, 0.05]), np.full(3, 0.1)
    found = judge_sizes(sizes, errors)
    assert found.verdict is NOISE
    assert judge_sizes(sizes, errors / found.missing).verdict is CLEAR
    assert judge_sizes(sizes, errors / (0.99 * found.missing)).verdict is not CLEAR
    said = what_helps(found, vt.Guarantee.of_mu(0.1, 1e-6))
    named = re.findall(r"epsilon=([\d.]+)\)", said)
    assert len(named) == 1
    assert float(named[0]) == pytest.approx(epsilon_of(0.1 * found.missing, 1e-6), rel=1e-3)
    for words in ("fewer columns or points", "more rows", "data.quote(explainer, epsilon="):
        assert words in said


@pytest.mark.parametrize("promise", [vt.Guarantee(1.0, 1e-6, 0.0), vt.Guarantee(math.inf, 0.0, 0.0)])
def test_without_a_mu_it_is_said_in_words(promise: vt.Guarantee) -> None:
    said = what_helps(judge_sizes([0.1], [0.1]), promise)
    assert "how much, this result cannot tell" in said
    assert "data.quote(explainer, epsilon=...)" in said


def test_there_are_words_for_every_kind_of_item() -> None:
    for noun in THEREFORE:
        assert "too little data to tell" in too_little(judge_sizes([0.1], [0.1]), noun)
    promise = PAID["guarantee"]
    assert sentences(judge_sizes([9.0, 1.0], [1.0, 1.0]), ["a", "b"], promise) == ()
    named = sentences(judge_sizes([9.0, 1.0], [1.0, 1.0]), ["a", "b"], promise, say_clear=True)[0]
    assert named == "Clear when the bands of all 2 are taken together: a. The other 1 cannot be told from nothing."
    only = sentences(judge_sizes([4.0] + [0.0] * 11, [1.0] * 12), list("abcdefghijkl"), promise)[0]
    assert only.startswith("Weak: only a stands out")
    assert "any single one may be noise" in sentences(judge_sizes([1.5] * 6, [1.0] * 6), list("abcdef"), promise)[0]


# --- attributions ----------------------------------------------------------------------------------------------------


def test_an_attribution_has_a_verdict_by_point_and_column() -> None:
    e = attribution(STANDS_OUT, NOISY)
    assert e.verdicts == (CLEAR, NOISE)
    assert e.verdict is NOISE  # the weaker of two
    assert [e[0].verdict, e[1].verdict] == [CLEAR, NOISE]
    np.testing.assert_allclose(e.signals, [e[0].signal, e[1].signal])
    assert (e.verdict_of("age"), e.verdict_of("age", point=1)) == (CLEAR, NOISE)
    with pytest.raises(InvalidInput, match="tax"):
        e.verdict_of("tax")
    without = attribution(NOISY, lower=None, upper=None)
    assert (without.verdict, without.signal, without.verdicts, without.verdict_of("age")) == (None,) * 4
    assert without.read_first == ()


def test_certain_is_by_the_bands_of_all_columns_together() -> None:
    e = attribution(np.array([0.0, 0.11, 0.0, 0.5]))  # 0.11 excludes 0 by its own band of +-0.1, not by that of four
    assert e.certain() == ("hours",)
    assert e.verdict_of("age") is WEAK
    own = {top.column: top for top in e.top(4)}["age"]
    assert own.lower > 0
    assert not own.certain


def test_clear_is_what_surely_belongs_to_the_upper_half() -> None:
    # All four are certain to be above 0; only two are above the middle one of nothing and the others.
    found = judge([0.5, 0.4, 0.1, 0.09], [0.49, 0.39, 0.09, 0.08], [0.51, 0.41, 0.11, 0.10])
    assert found.certain == (True,) * 4
    assert found.verdicts == (CLEAR, CLEAR, WEAK, WEAK)
    equal = judge([0.5, 0.5], [0.49, 0.49], [0.51, 0.51])
    assert equal.verdicts == (CLEAR, CLEAR)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30))
def test_the_middle_of_the_others_is_that_of_a_list_without_the_item(sizes: list[float]) -> None:
    for index, found in enumerate(middle_of_others(np.array(sizes))):
        others = sorted([0.0, *sizes[:index], *sizes[index + 1 :]])
        assert found == others[(len(others) - 1) // 2]


def test_a_point_that_is_mostly_noise_is_not_ranked() -> None:
    e = attribution(STANDS_OUT, NOISY)
    assert [top.column for top in e.top(2)] == ["age", "hours"]
    assert [top.column for top in e.top(4, point=1)] == list(COLUMNS)
    assert e.certain(1) == ()
    text = e[1].summary()
    assert "too little data to tell at this price" in text.splitlines()[1]
    assert "█" not in text
    assert "░" not in text
    assert text.index("zeta = ") < text.index("age = ") < text.index("sex = ") < text.index("hours = ")
    assert "█" in e[0].summary()
    assert "mostly noise" in repr(e[1])
    assert "At 1 of 2 points (1) there is too little data" in e.summary()


def test_the_page_of_a_noisy_point_has_a_sentence_and_no_bars() -> None:
    noisy, clear = attribution(NOISY).to_html(), attribution(STANDS_OUT).to_html()
    assert "too little data to tell at this price" in noisy
    assert "so nothing is ranked" in noisy
    assert 'class="bar"' not in noisy
    assert "<details><summary>numbers, in no order" in noisy
    assert "too little" not in clear
    assert 'class="bar"' in clear
    both = attribution(STANDS_OUT, NOISY).to_html()
    assert both.count('class="bar"') == 4
    assert both.index("At 1 of 2 points (1)") < both.index("Privacy label")
    fragment = attribution(NOISY)._repr_html_()
    assert "too little data" in fragment
    assert 'class="bar"' not in fragment


def test_pictures_of_a_noisy_point_say_so() -> None:
    e = attribution(NOISY)
    for figure in (e.plot.bar(), e.plot.waterfall()):
        axes = figure.axes[0]
        assert "too little data" in axes.get_title(loc="left")
        assert [label.get_text().split(" = ")[0] for label in axes.get_yticklabels()] == list(COLUMNS)
    several = attribution(NOISY, STANDS_OUT).plot.bars()
    titles = [axes.get_title(loc="left") for axes in several.axes]
    assert ["mostly noise" in title for title in titles] == [True, False]
    assert several.axes[1].get_yticklabels()[0].get_text().startswith("age")


# --- rankings --------------------------------------------------------------------------------------------------------


def test_a_ranking_of_noise_is_none() -> None:
    found = ranking(NOISY)
    assert not found.ranked
    assert found.verdict is NOISE
    assert found.order == tuple(found) == COLUMNS
    assert found.top(2) == ()
    assert found.certain() == ()
    with pytest.raises(InvalidInput, match=r"'age' has no rank\. There is too little data to tell"):
        found.rank("age")
    with pytest.raises(InvalidInput, match="'tax' is not among"):
        found.rank("tax")
    frame = found.frame()
    assert frame["item"].tolist() == list(COLUMNS)
    assert np.isnan(frame["rank"]).all()
    assert np.isnan(frame["confidence"]).all()
    assert ">" not in repr(found)
    assert "not ranked" in repr(found)
    assert 0 < found.confidence_in("hours", "age") < 1  # of two items it can still be asked
    axes = found.plot().axes[0]
    assert "not ranked" in axes.get_title(loc="left")
    assert not axes.texts


def test_a_ranking_that_stands_out_is_ranked() -> None:
    found = ranking(STANDS_OUT)
    assert found.order == ("hours", "sex", "zeta", "age")
    assert found.certain() == ("hours", "age")
    assert dict(found.verdicts) == {"zeta": NOISE, "age": CLEAR, "sex": NOISE, "hours": CLEAR}
    assert found.frame()["rank"].tolist() == [1, 2, 3, 4]
    without = ranking(NOISY, std=None)
    assert without.ranked
    assert without.verdict is None
    with pytest.raises(InvalidInput, match="no noise law"):
        without.certain()


def test_the_page_of_a_ranking_says_it_first() -> None:
    page = ranking(NOISY).to_html()
    assert page.index("too little data to tell") < page.index("Privacy label")
    assert "above the next" not in page
    assert "Clear when the bands of all 4" in ranking(STANDS_OUT).to_html()


# --- curves ----------------------------------------------------------------------------------------------------------


def test_a_curve_is_measured_from_its_own_mean() -> None:
    assert shape_size([5.0, 7.0]) == 1.0
    flat, steep = curve("age", [0.50, 0.52, 0.49, 0.51]), curve("age", [0.1, 0.3, 0.6, 0.9])
    assert (flat.verdict, steep.verdict) == (NOISE, CLEAR)
    assert flat.signal == pytest.approx(np.std([0.50, 0.52, 0.49, 0.51]) / 0.05)
    assert "ups and downs are not to be read" in flat.read_first[0]
    assert "ups and downs are not to be read" in flat.to_html()
    surface = vt.Surface(("a", "b"), "pdp", (("x", "y"), ("u", "v")), np.eye(2), std=np.full((2, 2), 0.05), **PAID)
    assert surface.verdict is CLEAR


def test_effects_say_which_curves_are_clear() -> None:
    found = effects(age=[0.1, 0.3, 0.6, 0.9], sex=[0.5, 0.51, 0.5, 0.51])
    assert found.verdict is CLEAR
    assert dict(found.verdicts) == {"age": CLEAR, "sex": NOISE}
    assert "Clear when the bands of all 2 are taken together: age. The other 1 cannot be told from flat." in found.sentences
    page = found.to_html()
    assert page.count("this curve cannot be told from a flat one") == 1
    noise = effects(age=[0.5, 0.51, 0.5, 0.51], sex=[0.5, 0.51, 0.5, 0.51])
    assert noise.verdict is NOISE
    assert "mostly noise" in repr(noise)


# --- histograms and rows that count ----------------------------------------------------------------------------------


def marginals(counts: list[float], sigma: float, declared: int) -> vt.Marginals:
    bins = vt.schema.bins.Bins("sex", ("f", "m"), None)
    return vt.Marginals("staff", (bins,), {"sex": np.array(counts)}, sigma, declared, PAID["cost"], PAID["guarantee"])


def test_an_even_histogram_that_is_well_known_is_clear() -> None:
    assert marginals([5000.0, 5001.0], 20.0, 10_000).verdict is CLEAR
    noise = marginals([10.0, -12.0], 20.0, 10)
    assert noise.verdict is NOISE
    assert dict(noise.verdicts) == {"sex": NOISE}
    assert "heights are not to be compared" in noise.read_first[0]


def test_rows_that_contradict_the_declared_count_are_said_first() -> None:
    found = marginals([5000.0, 5001.0], 20.0, 3000)
    assert found.rows_counted.contradicts
    assert "contradict each other" in found.read_first[0]
    page = found.to_html()
    assert page.index("contradict each other") < page.index("Privacy label") < page.index("Rows that count</dt>")
    fits = marginals([5000.0, 5001.0], 20.0, 10_000)
    assert fits.read_first == ()
    assert "Rows that count</dt>" in fits.to_html()
    counted = attribution(STANDS_OUT, rows_counted=RowCount(2971.0, 38.0, 1500))
    assert "contradict each other" in counted.to_html().split("Privacy label")[0]
    assert "contradict each other" in counted.summary().splitlines()[1]
    assert vt.Effects({"age": curve("age", [0.0, 1.0, 2.0, 3.0])}, found, **PAID).rows_counted == found.rows_counted
    own = RowCount(9.0, 1.0, 10)
    told = curve("age", [0.0, 1.0, 2.0, 3.0], rows_counted=own)
    assert vt.Effects({"age": told}, found, **PAID).rows_counted == own


def test_a_report_has_a_verdict_by_part() -> None:
    columns = {name: [0.1, 0.3, 0.6, 0.9] for name in COLUMNS}
    found = vt.Report(
        "staff",
        "risk",
        10_000,
        marginals([5000.0, 5001.0], 20.0, 3000),
        effects(**columns),
        None,
        ranking(NOISY),
        {},
        **PAID,
    )
    assert found.verdicts == {"pdp": CLEAR, "importance": NOISE}
    assert found.verdict is NOISE
    assert found.signal == found.importance.signal
    assert "contradict each other" in found.read_first[0]
    assert found.read_first[1].startswith("Permutation importance: There is too little data")
    assert len(found.read_first) == 2
    assert any(said.startswith("Partial dependence: Clear") for said in found.sentences)
    assert found.frame()["name"].tolist()[-4:] == list(COLUMNS)
