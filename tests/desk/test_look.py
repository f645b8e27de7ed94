"""What is read off rows for a declaration: bounds that hold what was seen, and no number that only looks like one."""

import numpy as np
import pyarrow as pa
import pytest

from vitrail.errors import InvalidInput
from vitrail.vault.owner import look

DRAW = np.random.Generator(np.random.PCG64(3))


def facts(values: object, batch: int = 6_000) -> dict[str, object]:
    """What is told of a column, read in several batches."""
    table = pa.table({"x": pa.array(values)})
    looked, rows = look(table.slice(start, batch) for start in range(0, table.num_rows, batch))
    assert rows == table.num_rows
    return looked["x"].facts()


@pytest.mark.parametrize("n", [500, 20_000, 150_000])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("as_text", [False, True])
def test_bounds_hold_all_values_however_many_and_in_whatever_order(n, order, as_text):
    if as_text and n > 20_000:
        return
    values = np.linspace(97.7, 894.6, n)[::order]
    found = facts([repr(value) for value in values.tolist()] if as_text else values)
    assert found == {"kind": "number", "low": 0.0, "high": 900.0}


def test_codes_stand_apart_from_many_numbers_too():
    values = DRAW.integers(0, 45_000, 60_000)
    values[::50], values[1::50] = -9, 99_999
    assert facts(values) == {"kind": "integer", "low": 0, "high": 45_000, "codes": (-9, 99_999)}
    assert facts(values[::-1].copy()) == facts(values)


def test_numbers_that_may_be_codes_and_are_not_stay_within_the_bounds():
    assert facts(np.repeat(np.arange(-20, 200), 3)) == {"kind": "integer", "low": -50, "high": 200}
    assert facts([-9, -8, 99] * 9)["low"] <= -9


@pytest.mark.parametrize("n", [200, 9_000, 20_000, 150_000])
def test_a_number_for_every_row_is_an_identifier(n):
    assert facts(DRAW.permutation(n) + 10**6) == {"kind": "identifier"}
    if n > 10_000:
        apart = np.arange(n) * 999 + DRAW.integers(0, 999, n)
        assert facts(apart) == {"kind": "identifier"}
        assert facts([str(value) for value in apart[:12_000].tolist()]) == {"kind": "identifier"}


def test_many_numbers_that_occur_again_and_again_are_a_quantity():
    assert facts(DRAW.integers(0, 50_000, 300_000))["kind"] == "integer"


def test_zeros_in_front_make_a_code_and_no_number():
    few = [f"{value:05}" for value in (501, 1234, 20_001)] * 20
    assert facts(few) == {"kind": "levels", "levels": ("00501", "01234", "20001")}
    assert facts([f"{value:08}" for value in range(5_000)]) == {"kind": "identifier"}
    assert facts(["0", "0.5", "-0.25", "10"] * 9)["kind"] == "number"


def test_dates_beside_words_are_left_to_the_owner():
    assert facts(["2020-01-01", "unknown"] * 9) == {}


def test_texts_that_are_not_utf8_become_no_levels():
    with pytest.raises(InvalidInput, match="column 'x' holds texts that are not UTF-8"):
        facts(["caf\ufffd", "bar"] * 9)
