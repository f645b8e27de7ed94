"""The bill as a picture: steps where somebody paid, under the line of the budget, whatever the times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vitrail.serve.web.pages.charts import HEIGHT, WIDTH, BillChart, bill_chart

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def corners(chart: BillChart) -> list[tuple[float, float]]:
    (line,) = [shape for shape in chart.drawing.shapes if shape.tag == "polyline"]
    return [(float(x), float(y)) for x, _, y in (pair.partition(",") for pair in line.at["points"].split())]


def test_it_steps_up_at_every_time_and_stays_within_the_drawing() -> None:
    chart = bill_chart([("2026-05-01T10:00", 0.5), ("2026-05-03T10:00:07.5+00:00", 0.8)], 2.0, now=NOW)
    points = corners(chart)
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    heights = [y for _, y in points]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == 3
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    (limit,) = [shape for shape in chart.drawing.shapes if shape.kind == "limit"]
    assert float(limit.at["y1"]) < min(heights)
    told = [shape.title for shape in chart.drawing.shapes if shape.kind == "step"]
    assert told == ["2026-05-01 10:00: epsilon 0.5 spent so far", "2026-05-03 10:00: epsilon 0.8 spent so far"]
    assert "2 steps, up to 0.8 of 2 by 2026-05-04 12:00 UTC" in chart.description


def test_its_axes_are_named() -> None:
    texts = [shape.text for shape in bill_chart([("2026-05-04T10:00", 0.5)], 2.0, now=NOW).drawing.shapes if shape.text]
    assert "epsilon spent so far" in texts
    assert "12:00 UTC" in texts


def test_an_empty_bill_is_a_line_on_the_ground() -> None:
    assert len({y for _, y in corners(bill_chart([], 1.0, now=NOW))}) == 1


def test_what_others_spent_is_at_the_end() -> None:
    ends = [corners(bill_chart([("2026-05-01T10:00", 0.5)], 2.0, spent=spent, now=NOW))[-1] for spent in (0.5, 1.0)]
    assert ends[0][0] == ends[1][0]
    assert ends[1][1] < ends[0][1]


def test_a_cut_bill_does_not_begin_at_nothing() -> None:
    lines = [("2026-05-01T10:00", 0.5), ("2026-05-02T10:00", 0.6)]
    begins = [corners(bill_chart(lines, 2.0, whole=whole, now=NOW))[0][1] for whole in (True, False)]
    assert begins[1] < begins[0]


@pytest.mark.parametrize("budget", [1e-3, 0.7, 50.0])
def test_more_than_the_budget_is_still_inside(budget: float) -> None:
    points = corners(bill_chart([("2027-05-01T10:00", 2 * budget)], budget, now=NOW))  # by a clock that runs ahead
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
