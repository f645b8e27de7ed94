"""Axes: what a model is asked along them."""

import numpy as np

import vitrail as vt
from vitrail.solve.curves.axes import fine_axis


def test_a_row_is_not_asked_about_at_its_own_level():
    schema = vt.Schema({"c": vt.Categorical(["a", "b", "d"]), "x": vt.Numeric(0, 1)})
    raw = np.column_stack([[0, 1, 2, 2, 0], np.linspace(0, 1, 5)]).astype(float)
    asked = []

    def ask(altered):
        asked.append(altered.shape)
        return np.sin(3 * altered[..., 0]) + altered[..., 1]

    for name, ways in (("c", 2), ("x", 104)):
        axis = fine_axis(schema, name, None)
        found = axis.curves(raw, ask(raw), ask)
        np.testing.assert_array_equal(found, ask(axis.altered(raw)))
        assert asked[-2] == (5, ways, 2)
    assert not fine_axis(schema, "c", None).at(np.array([0, 1])).all_levels
