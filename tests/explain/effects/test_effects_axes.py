"""Axes, and public rows: what a model is asked along them, and where the rows come from."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.solve.curves.reference import Reference, fine_axis, reference_rows


def test_a_row_is_not_asked_about_at_its_own_level():
    schema = vt.Schema({"c": vt.Categorical(["a", "b", "d"]), "x": vt.Numeric(0, 1)})
    raw = np.column_stack([[0, 1, 2, 2, 0], np.linspace(0, 1, 5)]).astype(float)
    model = vt.Model(lambda x: (np.sin(3 * x[:, 1]) + x[:, 2] + x[:, 3] + 3) / 6, range=(0, 1))
    asked = []

    def what_if(names, values):
        asked.append(values.shape)
        return Reference(schema, model, None).what_if(raw, names, values)

    for name, shape in (("c", (5, 2, 1)), ("x", (104, 1))):
        axis = fine_axis(schema, name, None)
        found = axis.curves(raw, model.predict(schema, raw), what_if)
        assert asked[-1] == shape
        np.testing.assert_array_equal(found, what_if(axis.names, axis.values))
    assert not fine_axis(schema, "c", None).at(np.array([0, 1])).all_levels


def test_wide_ranges_of_a_stand_in_are_spread_by_magnitude_and_narrow_ones_evenly():
    schema = vt.Schema(
        {"gain": vt.Numeric(0, 100_000, integer=True), "change": vt.Numeric(-1e6, 1e6), "x": vt.Numeric(5, 9)}
    )
    even, by_magnitude = (reference_rows(schema, None, 4000, by_magnitude=way) for way in (False, True))
    np.testing.assert_array_equal(even[:, 2], by_magnitude[:, 2])
    for rows in (even, by_magnitude):
        assert (rows >= [0, -1e6, 5]).all()
        assert (rows <= [1e5, 1e6, 9]).all()
    assert np.median(even[:, 0]) == pytest.approx(50_000, rel=0.01)
    assert np.median(by_magnitude[:, 0]) == pytest.approx(np.sqrt(100_001) - 1, rel=0.02)
    assert np.quantile(by_magnitude[:, 1], [0.25, 0.75]) == pytest.approx([-1000, 1000], rel=0.05)


def test_values_inside_wide_bins_are_spread_by_magnitude_and_bins_keep_their_shares():
    schema = vt.Schema({"gain": vt.Numeric(0, 100_000, integer=True)})
    rows = {"gain": np.repeat([0, 7000, 60_000], [9000, 800, 200])}
    data = vt.PrivateData(rows, schema, name="gains", n_rows_public=10_000, budget=vt.Budget(1e4, 1e-6), ledger="memory")
    marginals = vt.marginals(data, mu=50.0)
    drawn = reference_rows(schema, marginals, 4000, by_magnitude=True)[:, 0]
    assert (drawn < 5000).mean() == pytest.approx(0.9, abs=0.01)
    assert (drawn < 100).mean() > 0.4
    assert ((drawn >= 5000) & (drawn < 10_000)).mean() == pytest.approx(0.08, abs=0.01)
