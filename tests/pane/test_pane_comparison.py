"""Two panes compared: nothing is flagged where nothing has changed, a planted shift is, and both promises are told."""

import json

import numpy as np
import pytest
from pane_setup import N_ROWS, SCHEMA, fitted, people

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput

MODEL = vt.Model(fitted()[0], output="yes", name="riches")
NEVER = 1e-8
"""A level: with fresh noise, a false alarm of a whole comparison is rarer than that (Holm), so the test's own rate is."""


def released(rows, *, model=MODEL, schema=SCHEMA, parts=("rows", "pdp"), **options):
    data = vt.PrivateData(
        rows,
        schema,
        name="people",
        target="rich",
        n_rows_public=N_ROWS,
        budget=vt.Budget(2.0, 1e-6),
        ledger="memory",
    )
    return vt.release(data, model, epsilon=2.0, parts=[part for part in parts if model or part == "rows"], **options)


def older(rows):
    """Everybody ten years older, as far as the schema goes."""
    return {**rows, "age": np.minimum(rows["age"] + 10, 90)}


@pytest.fixture(scope="module")
def panes():
    """The same rows twice, other people of the same population, and a shifted population."""
    with planted_noise():
        rows = people(seed=21)
        first, again = released(rows, version="2025"), released(rows, version="2025b")
        others, shifted = released(people(seed=22), version="2026"), released(older(people(seed=23)), version="2027")
    return first, again, others, shifted


def test_the_same_rows_and_other_people_of_one_population_are_not_flagged(panes):
    first, again, others, _ = panes
    for new in (again, others):
        found = vt.pane.compare(first, new)
        assert found.flagged == ()
        assert "Nothing differs" in found.sentence
        assert {(line.column, line.what) for line in found.lines} == {
            (name, what) for name in ("age", "gain", "sex") for what in ("histogram", "partial dependence")
        }


def test_a_step_between_the_points_of_one_pane_is_no_difference(panes):
    """Drawn straight between their own points, the curves of `gain` differed by up to 80 standard deviations."""
    first, again = panes[:2]
    assert not np.array_equal(first.pdp["gain"].x, again.pdp["gain"].x)
    line = next(line for line in vt.pane.compare(first, again).lines if line.label.startswith("gain, partial"))
    assert 50 < line.degrees < len(first.pdp["gain"].x)
    assert line.adjusted > 0.05


def test_fresh_noise_flags_histograms_of_one_population_as_rarely_as_stated():
    old, new = (released(people(seed=seed), model=None) for seed in (31, 32))
    assert vt.pane.compare(old, new, level=NEVER).flagged == ()


def test_a_planted_shift_is_found_where_it_is(panes):
    first, _, _, shifted = panes
    found = vt.pane.compare(first, shifted, level=NEVER)
    # Curves of the other columns may move as well: they are means over people, who are older now.
    histograms = [line for line in found.flagged if line.what == "histogram"]
    assert [line.column for line in histograms] == ["age"]
    line = histograms[0]
    truth = 10 / 73  # of the ages from 18 to 90, ten are left
    assert line.lower <= truth <= line.upper
    assert line.lower > 0.02


def test_a_comparison_is_a_frame_a_picture_a_page_and_json(panes, tmp_path):
    found = vt.pane.compare(panes[0], panes[3])
    assert {len(values) for values in found.frame().values()} == {6}
    assert found.frame()["differs"].any()
    page = found.to_html(tmp_path / "drift.html")
    assert "People, version 2025, against people, version 2027" in page
    assert "samples from one population" in page
    assert "age, histogram" in found._repr_html_()
    told = json.loads(json.dumps(found.to_json()))
    assert next(line["column"] for line in told["lines"] if line["differs"]) == "age"
    assert len(found.plot().axes) >= 2


def test_both_promises_are_told_and_a_release_in_both_counts_once(panes):
    first, _, others, _ = panes
    both = vt.pane.compare(first, others).guarantee
    assert both.mu == pytest.approx(np.hypot(first.guarantee.mu, others.guarantee.mu), rel=1e-6)
    itself = vt.pane.compare(first, first)
    assert itself.guarantee.mu == pytest.approx(first.guarantee.mu, rel=1e-6)
    assert "are in both and count once" in " ".join(itself.notes)
    assert itself.flagged == ()


def test_columns_that_one_lacks_are_named_and_no_common_column_is_an_error(panes):
    fewer = vt.Schema({name: SCHEMA[name] for name in ("age", "sex", "rich")} | {"hours": vt.Numeric(0, 80)})
    rows = {**people(seed=41), "hours": np.tile(np.linspace(0, 80, 60), 100)}
    with planted_noise(1):
        other = released({name: rows[name] for name in fewer}, model=None, schema=fewer)
        nothing = released(
            {"hours": rows["hours"], "weeks": rows["hours"] / 2, "rich": rows["rich"]},
            model=None,
            schema=vt.Schema({"hours": vt.Numeric(0, 80), "weeks": vt.Numeric(0, 52), "rich": SCHEMA["rich"]}),
        )
    found = vt.pane.compare(panes[0], other)
    assert (found.only_old, found.only_new) == (("gain",), ("hours",))
    assert "Only the old pane has the columns gain" in " ".join(found.notes)
    assert {line.column for line in found.lines} == {"age", "sex"}
    with pytest.raises(InvalidInput, match="no column in common"):
        vt.pane.compare(panes[0], nothing)
    with pytest.raises(InvalidInput, match="level"):
        vt.pane.compare(panes[0], other, level=2)


def test_a_column_that_is_declared_otherwise_and_another_model_are_not_compared(panes):
    wider = vt.Schema({**SCHEMA, "gain": vt.Numeric(0, 2)})
    with planted_noise(2):
        other = released(people(seed=51), model=vt.Model(fitted(2)[0], output="yes", name="riches"), schema=wider)
    found = vt.pane.compare(panes[0], other)
    told = " ".join(found.notes)
    assert "The histograms of gain are not compared" in told
    assert "The curves of riches are not compared: it is another model" in told
    assert {line.label for line in found.lines} == {"age, histogram", "sex, histogram"}
