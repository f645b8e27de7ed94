"""The graphs that explainers publish: what is released separates, and what the paper's code leaks is seen."""

import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.flow.stages import CATALOGUE

OURS = [name for name in CATALOGUE if not name.startswith(("plain/", "published/"))]
QUESTIONS = ("BoundedSum", "GramSum", "ProductSum", "Select", "GroupedSum", "earlier", "private_rows")


# Not needed to separate: donors from released counts make a loss a function of its row alone, which halves its sensitivity.
LOWERS_A_SENSITIVITY = {"PermutationImportance": {"marginals"}}


@pytest.mark.parametrize("name", OURS)
def test_what_our_explainers_release_is_a_separator_and_no_more_than_needed(name: str) -> None:
    stages = vt.flow.of(name)
    assert stages.is_separator()
    assert set(stages.released) - set(stages.minimal()) == LOWERS_A_SENSITIVITY.get(name, set())
    assert stages.minimal() in stages.separators()


@pytest.mark.parametrize("name", OURS)
def test_mechanisms_are_questions_of_the_vault(name: str) -> None:
    for stage in vt.flow.of(name):
        assert not stage.released or stage.released.startswith(QUESTIONS)
        for word in stage.released.replace(",", " ").split():
            assert not word.endswith("Sum") or hasattr(vt, word)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_stage_has_its_line(name: str) -> None:
    stages = CATALOGUE[name]
    assert stages.title
    assert all(stage.does and len(stage.does) < 70 and "\n" not in stage.does for stage in stages)


def test_the_minimal_sets_of_the_paper() -> None:
    """Supplement II.A.2 has {a}, {b} and {(1), (2)}; a is the rows, b the output."""
    assert set(vt.flow.of("plain/PDP").separators()) == {("explanation",), ("x values", "y values")}


def test_a_plot_with_its_rug_needs_three_releases() -> None:
    """The rug reads the rows as well, so (1) and (2) alone enable nothing for the plot that is shown."""
    plot = vt.flow.of("plain/PDP with rug")
    assert plot.leak(["x values", "y values"]) == ("rows", "rug", "explanation")
    assert set(plot.separators()) == {("explanation",), ("x values", "y values", "rug")}


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name.startswith("published/") and "code" not in name])
def test_designs_as_printed_separate(name: str) -> None:
    assert vt.flow.of(name).is_separator()


@pytest.mark.parametrize("name", ["published/PDP code", "published/categorical ALE code"])
def test_categories_read_off_the_data_pass_every_mechanism(name: str) -> None:
    path = vt.flow.of(name).leak()
    assert path is not None
    assert path[:2] == ("rows", "categories")


def test_of_takes_classes_functions_and_names() -> None:
    assert vt.flow.of(vt.LocalLinear) is CATALOGUE["LocalLinear"]
    assert vt.flow.of(vt.LocalLinear, "descent") is CATALOGUE["LocalLinear/descent"]
    assert vt.flow.of("LocalLinear", "cells") is vt.flow.of("LocalLinear/cells")
    assert vt.flow.of(vt.marginals) is vt.flow.of(vt.Marginals) is CATALOGUE["Marginals"]
    assert vt.flow.of(vt.private_rows) is CATALOGUE["PrivateRows"]
    assert vt.flow.of(vt.Shapley).released == ("norms", "sums")


def test_of_takes_what_a_class_declares() -> None:
    own = vt.flow.Stages("own").stage("explanation", after=["rows"], released="noise")

    class WithStages:
        __vitrail_flow__ = own

    class WithName:
        __vitrail_flow__ = "Marginals"

    class WithFunction:
        @staticmethod
        def __vitrail_flow__() -> vt.flow.Stages:
            return own

    class PerInstance:
        @classmethod
        def __vitrail_flow__(cls) -> str:
            return "LocalLinear"

    assert vt.flow.of(WithStages) is vt.flow.of(WithStages()) is own
    assert vt.flow.of(WithFunction) is vt.flow.of(WithFunction()) is own
    assert vt.flow.of(WithName()) is CATALOGUE["Marginals"]
    assert vt.flow.of(PerInstance(), "history") is CATALOGUE["LocalLinear/history"]
    with pytest.raises(InvalidInput, match="no variants"):
        vt.flow.of(WithStages, "descent")


def test_a_strangers_class_is_not_taken_for_ours() -> None:
    class Shapley:
        pass

    class Odd:
        __vitrail_flow__ = 3

    with pytest.raises(InvalidInput, match="Shapley publishes no stages"):
        vt.flow.of(Shapley)
    with pytest.raises(InvalidInput, match="is a int; it must be"):
        vt.flow.of(Odd())
    with pytest.raises(InvalidInput, match="no stages for 'Nothing'"):
        vt.flow.of("Nothing")
    with pytest.raises(InvalidInput, match="no stages for 'LocalLinear/nothing'"):
        vt.flow.of(vt.LocalLinear, "nothing")
