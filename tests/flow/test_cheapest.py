"""The cheapest separator against the least of all that brute force finds."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.errors import InvalidInput
from vitrail.flow import Stages


@st.composite
def layered_stages(draw) -> Stages:
    """Three layers of up to three stages, each reading some of the layer before or the rows."""
    stages, before, unread = Stages(), ["rows"], set()
    for layer in range(3):
        names = [f"{layer}.{i}" for i in range(draw(st.integers(1, 3)))]
        for name in names:
            after = draw(st.lists(st.sampled_from([*before, "rows"]), min_size=1, unique=True))
            stages = stages.stage(name, after=after)
            unread = (unread - set(after)) | {name}
        before = names
    extra = draw(st.sampled_from([[], ["rows"]]))
    return stages.stage("explanation", after=sorted(unread | set(extra)))


COSTS = st.one_of(st.integers(0, 4), st.sampled_from([0.1, 0.2, 0.3, 1e-9, 1e9]))


@settings(max_examples=300, deadline=None)
@given(layered_stages(), st.data())
def test_cheapest_is_the_least_of_all_separators(stages: Stages, data: st.DataObject) -> None:
    cost = {part.name: data.draw(COSTS) for part in stages if part.name == "explanation" or data.draw(st.booleans())}
    sums = [sum(Fraction(cost[name]) for name in names) for names in stages.separators() if set(names) <= set(cost)]
    found = stages.cheapest(cost)
    assert found.stages in stages.separators()
    assert sum(Fraction(cost[name]) for name in found.stages) == min(sums)
    assert found.cost == float(min(sums))


def test_costs_that_floats_would_confuse() -> None:
    """0.1 + 0.2 > 0.3 in floats and in the fractions they stand for; a third of a thousandth less is still less."""
    stages = Stages().stage("a", after=["rows"]).stage("b", after=["rows"]).stage("explanation", after=["a", "b"])
    assert stages.cheapest({"a": 0.1, "b": 0.2, "explanation": 0.3}).stages == ("explanation",)
    assert stages.cheapest({"a": 1.0, "b": 1e-30, "explanation": 1.0}).stages == ("explanation",)  # 1 + 1e-30 is more than 1


def test_stages_without_a_cost_cannot_be_released() -> None:
    stages = Stages().stage("a", after=["rows"]).stage("b", after=["rows"]).stage("explanation", after=["a", "b"])
    assert stages.cheapest({"a": 5, "b": 7}).stages == ("a", "b")
    with pytest.raises(InvalidInput, match="rows -> b -> explanation; give a cost"):
        stages.cheapest({"a": 5})


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf"), True, "1"])
def test_costs_are_finite_numbers(cost: object) -> None:
    stages = Stages().stage("explanation", after=["rows"])
    with pytest.raises(InvalidInput, match="finite number of at least 0"):
        stages.cheapest({"explanation": cost})
