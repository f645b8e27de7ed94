"""Membership by who is shown, and the graph of who explains whom, on explainers whose answers are known."""

import numpy as np
import pytest

from vitrail.audit import influence_attack
from vitrail.errors import InvalidInput

ROWS = np.arange(12.0).reshape(6, 2)


def showing(*targets):
    """An explainer that shows row ``targets[i]`` (or several) for row i, and row 0 for anybody else."""

    def shows(points):
        answers = []
        for point in points:
            place = np.flatnonzero((point == ROWS).all(axis=1))
            answers.append(ROWS[np.atleast_1d(targets[place[0]] if len(place) else 0)])
        return np.array(answers)

    return shows


def test_a_circle_is_one_component_and_every_walk_shows_all():
    audit = influence_attack(showing(1, 2, 3, 4, 5, 0), ROWS)
    assert audit.found.value == 0
    assert (audit.graph.components, audit.graph.largest) == (1, (6,))
    assert audit.graph.edges == 6
    assert audit.graph.reached == audit.graph.reached_most == 1.0  # the start itself is shown at the end of the circle
    assert audit.over_walk == (1.0,) * 6


def test_a_chain_ends_and_every_row_is_a_component():
    audit = influence_attack(showing(1, 2, 3, 4, 5, 5), ROWS)
    assert audit.graph.components == 6
    assert audit.graph.revealed == pytest.approx(5 / 6)
    assert audit.over_walk == pytest.approx((5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 1 / 6))
    assert audit.found.value == pytest.approx(1 / 6)  # the last row shows itself


def test_two_islands_are_two_components():
    audit = influence_attack(showing([1, 0], [0, 1], [3, 2], [2, 3], [5, 4], [4, 5]), ROWS)
    assert audit.shown_per_query == 2
    assert audit.graph.largest == (2, 2, 2)
    assert audit.graph.reached == pytest.approx(2 / 6)
    assert audit.found.value == 1.0


def test_people_who_are_alike_are_one_vertex_and_accuse_their_twins():
    members = np.repeat(ROWS[:3], 2, axis=0)
    audit = influence_attack(lambda points: points[:, None, :], members, ROWS[:4], groups=list("aabbcc"))
    assert (audit.graph.rows, audit.graph.edges) == (3, 3)
    assert audit.found.value == 1.0
    assert audit.accused.value == 1.0  # the fourth sees themselves as well: this explainer repeats whoever asks
    assert set(audit.by_group) == {"a", "b", "c"}


def test_minus_zero_is_zero():
    rows = np.array([[0.0, 1.0], [2.0, 3.0]])
    audit = influence_attack(lambda points: np.where(points == 0, -0.0, points)[:, None, :], rows)
    assert audit.graph.rows == 2
    assert audit.found.value == 1.0


def test_groups_and_a_page(tmp_path):
    audit = influence_attack(showing(0, 0, 0, 0, 0, 5), ROWS, groups=["x"] * 5 + ["y"])
    assert audit.by_group["x"].value == pytest.approx(0.2)
    assert audit.by_group["y"].value == 1.0
    assert "Hit hardest: y, 100.0%" in str(audit)
    assert audit.plot().axes[0].get_ylabel() == "rows shown, %"
    assert "Who leads to whom" in audit.report(tmp_path / "a.html").read_text()
    assert "over_walk" not in audit.to_json()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"members": ROWS[:1]}, "at least 2"),
        ({"members": ROWS.reshape(3, 2, 2)}, "must be"),
        ({"members": [[1.0, np.nan], [1.0, 2.0]]}, "NaN"),
        ({"nonmembers": ROWS[:, :1]}, "columns must be alike"),
        ({"groups": ["a"]}, "one for each"),
        ({"confidence": 2.0}, "confidence"),
        ({"example_explainer": "rows"}, "example_explainer"),
        ({"example_explainer": lambda points: points[:, None, :1]}, "returned shape"),
        ({"example_explainer": lambda points: points[:1]}, "returned shape"),
        ({"example_explainer": lambda points: np.full((len(points), 1, 2), np.nan)}, "NaN or infinity"),
        ({"example_explainer": lambda points: points[:, None, :] + 0.5}, "not among members"),
    ],
)
def test_bad_input_is_refused(given, message):
    good = {"example_explainer": showing(0, 0, 0, 0, 0, 0), "members": ROWS}
    with pytest.raises(InvalidInput, match=message):
        influence_attack(**(good | given))
