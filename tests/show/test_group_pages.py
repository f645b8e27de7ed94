"""The page and the pictures of a table of groups: what is shown, what is not, names that look like markup."""

import dataclasses

import numpy as np
import pytest

import vitrail as vt
from vitrail.show.groups import MOST_DRAWN, between_table, calibration_figure, calibration_table, groups_table
from vitrail.solve.groups.layout import Layout, shares_of

LAYOUT = Layout(("<f>", "m", "x"), (0.0, 0.25, 0.5, 0.75, 1.0), 2, "binary", 0.0, 1.0, shares_of("binary"))
PAID = {"guarantee": vt.Guarantee.of_mu(0.2, 1e-6), "cost": vt.Cost.of_mu(0.2), "n_rows_public": 3000}


def table_of(layout, counts, sigma=1.0):
    """Rows of which one in three has the outcome, outputs evenly spread, and no noise."""
    draw = np.random.default_rng(0)
    group = np.repeat(np.arange(len(counts)), counts)
    outcome = None if layout.outcome == "none" else (draw.random(len(group)) < 1 / 3) * 1.0
    sums = layout.vectors(group, draw.random(len(group)), outcome).sum(axis=0).reshape(len(counts), -1)
    return vt.GroupTable("staff", "score", ("sex",), layout, "ill is 1", sums, sigma, **PAID)


@pytest.fixture(scope="module")
def found():
    return table_of(LAYOUT, [2000, 990, 10], sigma=3.0)


def test_a_page_shows_groups_comparisons_and_calibration(found):
    page = found.to_html()
    for words in (
        "Privacy label",
        "group by group",
        "Between groups",
        "Calibration",
        "demographic parity ratio",
        "four fifths",
    ):
        assert words in page
    assert "&lt;f&gt;" in page
    assert "<f>" not in page
    assert "Too few rows to say anything about at this price: x." in page
    assert "sampling error" in page
    assert "another sample of people" in page.lower()


def test_tables_have_what_is_shown_and_nothing_else(found):
    table = groups_table(found)
    assert [row[0] for row in table.rows] == ["<f>", "m"]
    assert table.header[:3] == ("group", "rows", "selection rate")
    assert table.rows[0][2].startswith("0.5")
    assert len(calibration_table(found).rows) == 2 * 4
    assert len(between_table(found).rows) == len(found.between) == 5


def test_one_panel_for_every_measure(found):
    axes = found.plot().get_axes()
    assert len(axes) == len(found.measures) + 1
    assert len(calibration_figure(found).get_axes()) == 2


def test_of_many_groups_the_largest_are_drawn():
    many = dataclasses.replace(LAYOUT, groups=tuple(map(str, range(40))))
    found = table_of(many, [100 + 10 * k for k in range(40)])
    names = [label.get_text() for label in found.plot().get_axes()[0].get_yticklabels()]
    assert names == [str(number) for number in range(40 - MOST_DRAWN, 40)]
    assert len(groups_table(found).rows) == 40


def test_where_nothing_is_shown_the_page_says_so():
    nothing = table_of(LAYOUT, [3, 2, 1], sigma=50.0)
    page = nothing.to_html()
    assert nothing.shown == ()
    assert nothing.verdict is vt.Verdict.MOSTLY_NOISE
    assert "too little data to tell" in page
    assert "Between groups" not in page
    assert nothing.plot().get_axes()
    assert calibration_figure(nothing).get_axes()
    assert nothing.four_fifths is None


def test_without_an_outcome_there_is_no_calibration():
    plain = table_of(dataclasses.replace(LAYOUT, outcome="none", shares=shares_of("none")), [900, 900, 900])
    page = plain.to_html()
    assert "Calibration" not in page
    assert "demographic parity" in page


@pytest.mark.parametrize(("counts", "verdict"), [((1000, 1000), "kept"), ((60, 60), "cannot be told")])
def test_the_rule_of_four_fifths_is_told_by_its_band(counts, verdict):
    two = dataclasses.replace(LAYOUT, groups=("f", "m"))
    table = table_of(two, list(counts), sigma=1.0 if verdict == "kept" else 3.0)
    assert table.four_fifths == verdict
    assert f"The rule of four fifths {'is kept' if verdict == 'kept' else 'cannot be told'}" in " ".join(table.notes)
