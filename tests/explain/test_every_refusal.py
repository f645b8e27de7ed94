"""What every explainer refuses, and that nothing is charged for it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import vitrail as vt
from every_explainer import EVERY, explained
from explainer_table import POINTS, Row, model, outputs, private
from vitrail.accounting import Cost


@EVERY
def test_a_price_that_does_not_fit_is_refused_whole(row: Row) -> None:
    data = private(epsilon=0.9 * row.epsilon)
    with pytest.raises(vt.errors.BudgetExceeded, match="Nothing was charged"):
        explained(row, data)
    assert data.budget.spent == Cost()
    assert all(entry.kind != "charged" for entry in data.budget.entries)


@EVERY
@pytest.mark.parametrize(
    "price", [{"epsilon": -1.0}, {"epsilon": float("nan")}, {}, {"epsilon": 1.0, "mu": 1.0}, {"mu": 0.0}]
)
def test_a_bad_price_is_refused_before_any_charge(row: Row, price: dict[str, float]) -> None:
    data = private()
    explainer = row.make(data, model())
    with pytest.raises(vt.errors.VitrailError):
        explainer(**price) if row.points is None else explainer(row.points, **price)
    assert data.budget.spent == Cost()


@EVERY
def test_bad_points_are_refused_before_any_charge(row: Row) -> None:
    if row.points is None:
        pytest.skip("this explainer takes no points")
    data = private()
    for bad in ({**POINTS, "sex": ["Male", "Other"]}, {**POINTS, "age": [30, float("nan")]}, {"age": [30]}, {}):
        with pytest.raises(vt.errors.VitrailError):
            row.make(data, model())(bad, epsilon=row.epsilon)
    assert data.budget.spent == Cost()


@EVERY
def test_a_model_that_fails_is_found_before_any_charge(row: Row) -> None:
    data = private()
    gap = vt.Model(lambda x: np.where(x[:, 0] == 1, np.nan, outputs(x)), range=(0, 1), name="gap")
    talk = row.make(data, model()).conversation
    if not (talk() if row.points is None else talk(row.points)).models:
        pytest.skip("this explainer asks no model")
    with pytest.raises(vt.errors.VitrailError):
        explained(dataclasses.replace(row, make=lambda data, _: row.make(data, gap)), data)
    assert data.budget.spent == Cost()
