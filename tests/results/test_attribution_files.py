"""Explanations in files: every number comes back, and nothing foreign is taken for one."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import vitrail as vt
from vitrail.errors import InvalidInput

PLAIN = vt.Attribution(
    values=np.array([[0.2, -0.05]]),
    base_values=np.array([0.3]),
    columns=("age", "sex"),
    points=({"age": 39, "sex": "Männlich"},),
    outputs=np.array([0.5]),
    guarantee=vt.Guarantee.of_mu(0.2, 1e-6, "replace-one"),
    cost=vt.Cost(10**20, 3, 10**31),
    method="synopsis",
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(st.text(), st.integers(-(2**70), 2**70), FINITE, st.booleans(), st.none())


@st.composite
def explanations(draw):  # type: ignore[no-untyped-def]
    columns = draw(st.lists(st.text(), min_size=1, max_size=4, unique=True))
    features = draw(st.lists(st.text(), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(1, 3))

    def numbers(*shape: int) -> np.ndarray:
        return draw(arrays(np.float64, shape, elements=FINITE))

    first, second = numbers(n, len(columns)), numbers(n, len(columns))
    banded, linear = draw(st.booleans()), draw(st.booleans())
    return vt.Attribution(
        values=numbers(n, len(columns)),
        base_values=numbers(n),
        columns=tuple(columns),
        points=tuple({name: draw(VALUES) for name in columns} for _ in range(n)),
        outputs=numbers(n),
        guarantee=vt.Guarantee(
            draw(st.one_of(st.just(math.inf), st.floats(0, 1e9))),
            draw(st.floats(0, 1)),
            draw(st.floats(0, 1e9)),
            draw(st.sampled_from(["add-remove", "replace-one"])),
            draw(st.sampled_from(["explanation-data", "training-data"])),
        ),
        cost=vt.Cost(draw(st.integers(0, 10**30)), draw(st.integers(0, 10**30)), draw(st.integers(0, 10**40))),
        method=draw(st.text()),
        lower=np.minimum(first, second) if banded else None,
        upper=np.maximum(first, second) if banded else None,
        coefficients=numbers(n, len(features)) if linear else None,
        intercepts=numbers(n) if linear else None,
        features=tuple(features) if linear else (),
        notes=tuple(draw(st.lists(st.text(), max_size=2))),
        fidelity=np.abs(numbers(n)) if linear else None,
        explains_output=draw(st.booleans()),
    )


def assert_same(one: vt.Attribution, other: vt.Attribution) -> None:
    for name in ("columns", "points", "guarantee", "cost", "method", "features", "notes", "explains_output"):
        assert getattr(one, name) == getattr(other, name)
    assert [[type(value) for value in point.values()] for point in one.points] == [
        [type(value) for value in point.values()] for point in other.points
    ]
    for name in ("values", "base_values", "outputs", "lower", "upper", "coefficients", "intercepts", "fidelity"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None)
        assert first is None or (first.shape == second.shape and first.tobytes() == second.tobytes())


@given(explanations())
def test_files_and_json_bring_everything_back_bit_for_bit(made: vt.Attribution) -> None:
    assert_same(vt.Attribution.from_bytes(made.to_bytes()), made)
    text = json.dumps(made.to_json(), allow_nan=False)
    assert_same(vt.Attribution.from_json(json.loads(text)), made)


def test_json_is_written_for_other_programs(tmp_path: Path) -> None:
    path = PLAIN.write_json(tmp_path / "e.json")
    assert json.loads(path.read_text()) == PLAIN.to_json()
    assert PLAIN.to_json()["format"] == "vitrail-attribution/2"
    assert vt.Attribution.load(path) == PLAIN
    for length in range(0, path.stat().st_size - 2, 7):
        (tmp_path / "cut.json").write_bytes(path.read_bytes()[:length])
        with pytest.raises(InvalidInput, match=r"no JSON text|no whole zip file"):
            vt.Attribution.load(tmp_path / "cut.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "names the format 'None'"),
        ({"format": "vitrail-marginals/1"}, "names the format 'vitrail-marginals/1'"),
        ({"format": "vitrail-attribution/3"}, "version 3 .* reads version 2"),
        ({"format": "vitrail-attribution/2"}, "lacks 'values'"),
        ({"format": 7}, "names the format '7'"),
    ],
)
def test_foreign_fields_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        vt.Attribution.from_json(fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(set(PLAIN.to_json()) - {"format"}))
@pytest.mark.parametrize("wrong", [7, "text", {"a": 1}, [[["deep"]]], True, [True], ["0.5"], [10**400], [float("nan")], []])
def test_no_field_takes_what_is_not_its_own(name: str, wrong: object) -> None:
    fields = {**PLAIN.to_json(), name: wrong}
    fits = (
        (name == "method" and isinstance(wrong, str))
        or (name == "explains_output" and wrong is True)
        or (name in ("features", "notes") and wrong in ([], ["0.5"]))
    )
    if fits:
        vt.Attribution.from_json(fields)
    else:
        with pytest.raises(InvalidInput):
            vt.Attribution.from_json(fields)


@pytest.mark.parametrize("name", sorted(set(PLAIN.to_json()) - {"format"}))
def test_no_field_may_be_missing(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"lacks '{name}'"):
        vt.Attribution.from_json({key: value for key, value in PLAIN.to_json().items() if key != name})


@pytest.mark.parametrize(
    ("part", "name", "wrong"),
    [
        ("guarantee", "epsilon", -1),
        ("guarantee", "epsilon", "nan"),
        ("guarantee", "delta", None),
        ("guarantee", "neighbours", "none"),
        ("guarantee", "protects", "nobody"),
        ("cost", "pico_mu_squared", -1),
        ("cost", "pico_mu_squared", 0.5),
        ("cost", "quecto_delta", "-3"),
        ("cost", "quecto_delta", "9" * 200),
    ],
)
def test_a_promise_is_read_as_it_was_written_or_not_at_all(part: str, name: str, wrong: object) -> None:
    fields = PLAIN.to_json()
    fields[part] = {**fields[part], name: wrong}
    with pytest.raises(InvalidInput):
        vt.Attribution.from_json(fields)
