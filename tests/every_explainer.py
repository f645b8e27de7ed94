"""What the tests of every explainer share: a row of the table, bought, asked about, and compared."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import vitrail as vt
from explainer_table import TABLE, Row, model, private

EVERY = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)


def explained(row: Row, data: vt.PrivateData, **price: Any) -> Any:
    explainer, price = row.make(data, model()), price or {"epsilon": row.epsilon}
    return explainer(**price) if row.points is None else explainer(row.points, **price)


def conversation(row: Row, data: vt.PrivateData) -> Any:
    explainer = row.make(data, model())
    return explainer.conversation() if row.points is None else explainer.conversation(row.points)


def bought(row: Row) -> tuple[vt.PrivateData, Any]:
    """Data that this explainer was bought from, and its result: once for all tests of a process, which only look at them."""
    return _bought(row.name)


@functools.cache
def _bought(name: str) -> tuple[vt.PrivateData, Any]:
    row, data = next(row for row in TABLE if row.name == name), private()
    return data, explained(row, data)


def assert_same(one: Any, other: Any) -> None:
    left, right = one.frame(), other.frame()
    assert list(left) == list(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])
    assert one.cost == other.cost
    assert one.guarantee == other.guarantee
