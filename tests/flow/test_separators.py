"""Minimal separators against brute force, and the theorem itself acted out on small graphs."""

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.flow import Stages


@st.composite
def graphs(draw, most_inner: int = 8) -> Stages:
    """Random stages: every inner one reads something and is read; some are public. Declared in a shuffled order."""
    count = draw(st.integers(0, most_inner))
    names = ["rows", *(f"v{i}" for i in range(count)), "explanation"]
    reads: dict[str, set[str]] = {}
    for place, name in enumerate(names[1:], 1):
        earlier = names[:place]
        reads[name] = set(draw(st.lists(st.sampled_from(earlier), max_size=4, unique=True)))
    read = set(chain.from_iterable(reads.values()))
    for place, name in enumerate(names[:-1]):
        if name not in read:  # read by nobody yet
            reads[draw(st.sampled_from(names[place + 1 :]))].add(name)
    tainted = {"rows"}
    for name in names[1:]:
        if reads[name] & tainted:
            tainted.add(name)
    if "explanation" not in tainted:
        reads["explanation"].add("rows")
        tainted.add("explanation")
    stages = Stages()
    for name in draw(st.permutations(names[1:])):
        stages = stages.stage(name, after=sorted(reads[name]), public=name not in tainted)
    return stages


def paths(stages: Stages) -> list[tuple[str, ...]]:
    """Every path from rows to explanation, by plain recursion over the declarations."""

    def back(name: str) -> list[tuple[str, ...]]:
        if name == "rows":
            return [("rows",)]
        return [(*path, name) for earlier in stages[name].after for path in back(earlier)]

    return back("explanation")


def brute_force_separators(stages: Stages) -> set[frozenset[str]]:
    """All inclusion-minimal sets that meet every path, by trying every set."""
    names = [part.name for part in stages]
    walks = [set(path) for path in paths(stages)]
    found: set[frozenset[str]] = set()
    for size in range(len(names) + 1):
        for some in combinations(names, size):
            chosen = frozenset(some)
            if all(walk & chosen for walk in walks) and not any(smaller <= chosen for smaller in found):
                found.add(chosen)
    return found


def act(stages: Stages, released: set[str], rows: object) -> object:
    """The algorithm of part (b): every stage returns all it reads; a released stage returns a constant instead."""
    value: dict[str, object] = {"rows": rows}
    for name in stages.graph.names[1:]:
        value[name] = "hidden" if name in released else tuple((one, value[one]) for one in sorted(stages[name].after))
    return value["explanation"]


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_separators_are_those_of_brute_force(stages: Stages) -> None:
    found = stages.separators()
    assert {frozenset(names) for names in found} == brute_force_separators(stages)
    assert len(set(found)) == len(found)
    assert [len(names) for names in found] == sorted(len(names) for names in found)


@settings(max_examples=150, deadline=None)
@given(graphs(6), st.data())
def test_a_set_hides_the_rows_from_every_algorithm_exactly_if_it_separates(stages: Stages, data: st.DataObject) -> None:
    released = set(data.draw(st.lists(st.sampled_from([part.name for part in stages]), unique=True)))
    seen = act(stages, released, "Ada") != act(stages, released, "Bob")
    assert stages.is_separator(released) is not seen
    path = stages.leak(released)
    assert (path is not None) is seen
    if path is not None:
        assert path in paths(stages)
        assert not released & set(path)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.data())
def test_minimal_finds_a_minimal_separator_inside(stages: Stages, data: st.DataObject) -> None:
    known = brute_force_separators(stages)
    some = data.draw(st.sampled_from(sorted(known, key=sorted)))
    more = data.draw(st.lists(st.sampled_from([part.name for part in stages]), unique=True))
    inside = frozenset(stages.minimal(some | set(more)))
    assert inside <= some | set(more)
    assert inside in known


def test_the_order_does_not_depend_on_the_order_of_a_set() -> None:
    stages = Stages()
    for side in "abc":
        stages = stages.stage(f"{side}1", after=["rows"]).stage(f"{side}2", after=[f"{side}1"])
    stages = stages.stage("explanation", after=["a2", "b2", "c2"])
    found = stages.separators()
    assert len(found) == 2**3 + 1  # one of each chain, or the explanation
    assert found[:3] == (("explanation",), ("a1", "b1", "c1"), ("a1", "b1", "c2"))
    assert set(stages.each_separator()) == set(found)
    assert next(iter(stages.each_separator())) == ("a1", "b1", "c1")  # nearest to the rows


def test_separators_come_one_by_one_however_many_there_are() -> None:
    """60 chains of two stages: more separators than could ever be listed."""
    stages = Stages()
    for i in range(60):
        stages = stages.stage(f"first {i}", after=["rows"]).stage(f"second {i}", after=[f"first {i}"])
    stages = stages.stage("explanation", after=[f"second {i}" for i in range(60)])
    some = [names for names, _ in zip(stages.each_separator(), range(50), strict=False)]
    assert len(set(some)) == 50
    assert all(stages.minimal(names) == names for names in some)


def test_private_stages_with_a_shared_coin_are_not_private_together() -> None:
    """Why the theorem asks for privacy at every fixed value of what is released, with fresh coins."""
    stages = (
        Stages()
        .stage("x", after=["rows"], does="(bit xor coin, coin)")
        .stage("u", after=["x"], does="first part", released="as it is: a fair coin")
        .stage("w", after=["x"], does="second part", released="as it is: a fair coin")
        .stage("explanation", after=["u", "w"], does="their xor")
    )
    assert stages.is_separator()
    u_given_bit = {bit: sorted(bit ^ coin for coin in (0, 1)) for bit in (0, 1)}
    assert u_given_bit[0] == u_given_bit[1]  # u alone tells nothing, nor does w, which is the coin
    assert {bit: {(bit ^ coin) ^ coin for coin in (0, 1)} for bit in (0, 1)} == {0: {0}, 1: {1}}  # together: everything


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.stage("a", after=["rows"]).stage("a", after=["rows"]), "two stages named 'a'"),
        (lambda s: s.stage("rows"), "'rows' is the input"),
        (lambda s: s.stage(" "), "must be a text that is not empty"),
        (lambda s: s.stage("a", after="rows"), r"such as \['rows'\]"),
        (lambda s: s.stage("a", after=["rows"], public=True, released="noise"), "public and released"),
        (lambda s: s.stage("a", after=["rows"]).separators(), "no stage 'explanation'"),
        (lambda s: s.stage("explanation", after=["rows", "b"]).separators(), "after 'b', which is no stage"),
        (
            lambda s: (
                s.stage("a", after=["rows", "b"]).stage("b", after=["a"]).stage("explanation", after=["b"]).separators()
            ),
            "in a circle: (a -> b -> a|b -> a -> b)",
        ),
        (lambda s: s.stage("a", after=["a", "rows"]).stage("explanation", after=["a"]).separators(), "in a circle: a -> a"),
        (lambda s: s.stage("a", after=["explanation"]).stage("explanation", after=["rows"]).separators(), "the last stage"),
        (
            lambda s: s.stage("a", after=["rows"]).stage("explanation", after=["rows"]).separators(),
            "'a' is read by no other",
        ),
        (lambda s: s.stage("a", public=True).stage("explanation", after=["a"]).separators(), "rows are read by no other"),
        (lambda s: s.stage("a").stage("explanation", after=["rows", "a"]).separators(), "'a' depends on no row"),
        (
            lambda s: s.stage("a", after=["rows"], public=True).stage("explanation", after=["a"]).separators(),
            "'a' is declared public, but it depends on rows",
        ),
        (lambda s: s.stage("explanation", after=["rows"]).is_separator(["a"]), "no stage 'a'"),
        (lambda s: s.stage("explanation", after=["rows"]).is_separator("explanation"), "give a list of names"),
        (lambda s: s.stage("explanation", after=["rows"]).is_separator(["rows"]), "make private rows a stage"),
        (lambda s: s.stage("explanation", after=["rows"]).minimal([]), "rows -> explanation; release a stage"),
        (lambda s: s.stage("explanation", after=["rows"])["a"], "no stage 'a'"),
    ],
)
def test_what_is_wrong_is_said(build, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build(vt.flow.Stages())
