"""The codec by itself: what annotations mean, and that both directions agree."""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from vitrail.errors import DamagedFile, InvalidInput
from vitrail.results.codec import INLINE, from_files, from_json, to_files, to_json

Floats = NDArray[np.float64]


class Colour(enum.StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Small:
    size: int


@dataclass(frozen=True)
class Other:
    size: int
    more: str


@dataclass(frozen=True, eq=False)
class Everything:
    number: float
    whole: int
    truth: bool
    text: str
    nothing: None
    word: Literal["a", "b"]
    colour: Colour
    pair: tuple[int, str]
    several: tuple[float, ...]
    named: Mapping[str, float]
    paired: Mapping[tuple[int, int], Floats]
    record: Small | Other
    maybe: float | None
    plain: str | int | float | bool | None
    floats: Floats
    indices: NDArray[np.intp]
    truths: NDArray[np.bool_]
    levels: Floats | tuple[str | float, ...]
    ignored: object = field(default=None, compare=False)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.one_of(st.text(), st.integers(-(2**70), 2**70), FINITE, st.booleans(), st.none())
SHAPES = st.sampled_from([(0,), (1,), (3, 2), (0, 4), (INLINE + 1,), (20, 20)])


@st.composite
def everything(draw):
    return Everything(
        number=draw(FINITE),
        whole=draw(st.integers(-(2**60), 2**60)),
        truth=draw(st.booleans()),
        text=draw(st.text()),
        nothing=None,
        word=draw(st.sampled_from(["a", "b"])),
        colour=Colour.RED,
        pair=(draw(st.integers(0, 9)), draw(st.text())),
        several=tuple(draw(st.lists(FINITE, max_size=4))),
        named=draw(st.dictionaries(st.text(), FINITE, max_size=3)),
        paired={
            (1, number): draw(arrays(np.float64, draw(SHAPES), elements=FINITE)) for number in range(draw(st.integers(0, 2)))
        },
        record=draw(st.sampled_from([Small(1), Other(2, "x")])),
        maybe=draw(st.one_of(st.none(), FINITE)),
        plain=draw(PLAIN),
        floats=draw(arrays(np.float64, draw(SHAPES), elements=FINITE)),
        indices=draw(arrays(np.intp, draw(SHAPES))),
        truths=draw(arrays(np.bool_, draw(SHAPES))),
        levels=draw(
            st.one_of(
                arrays(np.float64, st.integers(1, 4), elements=FINITE),
                st.lists(st.one_of(st.text(), FINITE), min_size=1, max_size=4).map(tuple),
            )
        ),
    )


def same(one, other):
    for name in ("number", "several", "maybe"):
        assert repr(getattr(one, name)) == repr(getattr(other, name))
    assert repr(dict(one.named)) == repr(dict(other.named))
    for name in ("whole", "truth", "text", "word", "colour", "pair", "record", "plain"):
        assert getattr(one, name) == getattr(other, name)
        assert type(getattr(one, name)) is type(getattr(other, name))
    for first, second in [
        (one.floats, other.floats),
        (one.indices, other.indices),
        (one.truths, other.truths),
        *zip(one.paired.values(), other.paired.values(), strict=True),
    ]:
        assert (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())
    assert type(one.levels) is type(other.levels)
    assert list(one.levels) == list(other.levels)


@given(everything())
def test_files_bring_everything_back_bit_for_bit(made):
    files = to_files(made)
    again = from_files(Everything, files, "the file")
    same(again, made)
    assert to_files(again) == files


@given(everything())
def test_json_brings_everything_back_but_the_shape_of_nothing(made):
    again = from_json(Everything, json.loads(json.dumps(to_json(made), allow_nan=False)), "the text")
    assert to_json(again) == to_json(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"whole": True}, "whole number"),
        ({"whole": 1.0}, "whole number"),
        ({"number": "1"}, "finite number"),
        ({"number": float("nan")}, "finite number"),
        ({"number": 10**400}, "OverflowError"),
        ({"truth": 1}, "true or false"),
        ({"text": None}, "a text"),
        ({"nothing": 0}, "null"),
        ({"word": "c"}, "'a', 'b'"),
        ({"colour": "blue"}, "'red'"),
        ({"pair": [1]}, "1 entries and not 2"),
        ({"several": {"0": 1.0}}, "must be a list"),
        ({"named": [1]}, "must be an object"),
        ({"paired": [[[1, 2]]]}, "pairs of a key and a value"),
        ({"paired": [[[1, 2], [1.0]], [[1, 2], [1.0]]]}, "names a key twice"),
        ({"record": {"size": 1, "less": 2}}, "lacks 'more'"),
        ({"record": {"size": "one"}}, "lacks 'more'|whole number"),
        ({"plain": [1]}, "'plain'"),
        ({"floats": ["1.0"]}, "list of numbers"),
        ({"floats": [True]}, "list of numbers"),
        ({"floats": [[1.0], 2.0]}, "list of numbers"),
        ({"floats": [[1.0], [2.0, 3.0]]}, "inhomogeneous"),
        ({"floats": [float("inf")]}, "not finite"),
        ({"indices": [1.5]}, "list of numbers"),
        ({"indices": [2**70]}, "OverflowError"),
        ({"truths": [1]}, "list of numbers"),
        ({"floats": "floats.npy"}, "must name"),
        ({"levels": {"levels": 3}}, "must be a list"),
        ({"ignored": 1}, "does not know"),
    ],
)
def test_no_field_takes_what_is_not_its_own(changes, said):
    made = Everything(
        1.0, 1, True, "", None, "a", Colour.RED, (1, ""), (), {}, {}, Small(1), None, 1,
        np.zeros(1), np.zeros(1, np.intp), np.zeros(1, np.bool_), np.zeros(1),
    )  # fmt: skip
    fields = to_json(made)
    assert from_json(Everything, fields, "the text").record == Small(1)
    with pytest.raises(DamagedFile, match=said):
        from_json(Everything, {**fields, **changes}, "the text")
    with pytest.raises(DamagedFile, match="is no object"):
        from_json(Everything, [1], "the text")


Scalar = TypeVar("Scalar", bound=np.generic)
Named = TypeAliasType("Named", np.ndarray[tuple[Any, ...], np.dtype[Scalar]], type_params=(Scalar,))


@dataclass(frozen=True, eq=False)
class Aliased:
    """With a name for arrays as Python 3.12 has them; ``NDArray`` is one in newer versions of NumPy."""

    floats: Named[np.float64]
    maybe: Named[np.float64] | None
    named: Mapping[str, Named[np.intp]]


def test_a_name_for_a_type_is_what_it_stands_for():
    made = Aliased(np.array([0.5, 1.5]), None, {"a": np.array([3])})
    read = from_files(Aliased, to_files(made), "the file")
    assert (read.floats.tolist(), read.maybe, read.named["a"].tolist()) == ([0.5, 1.5], None, [3])
    assert read.named["a"].dtype == np.intp
    again = from_files(Aliased, to_files(Aliased(made.floats, made.floats, {})), "the file")
    assert again.maybe.tolist() == [0.5, 1.5]


def test_whole_numbers_and_floats_that_numpy_made_are_written_plainly():
    made = Everything(
        np.float64(1), np.int64(2), np.True_, np.str_("t"), None, "a", Colour.RED, (1, ""), (1, 2), {"a": 1}, {}, Small(1),
        3, 4, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1),
    )  # fmt: skip
    fields = to_json(made)
    assert (fields["number"], fields["several"], fields["maybe"], fields["plain"]) == (1.0, [1.0, 2.0], 3.0, 4)
    assert [type(number) for number in fields["several"]] == [float, float]


def test_what_no_file_can_hold_is_refused_when_it_is_written():
    @dataclass(frozen=True)
    class Plain:
        value: "str | int"

    with pytest.raises(InvalidInput, match="which no file can hold"):
        to_json(Plain({1, 2}))
