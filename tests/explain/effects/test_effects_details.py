"""Between the grid points: jumps are where the model has them, spikes are found, and a smooth curve is left alone."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.solve.curves.details import MOST_POINTS, detail_of
from vitrail.solve.curves.reference import Reference, fine_axis

SCHEMA = vt.Schema(
    {"size": vt.Numeric(0, 50), "count": vt.Numeric(0, 5000, integer=True), "sex": vt.Categorical(["f", "m"])}
)
RNG = np.random.default_rng(0)
N = 5000
ROWS = {
    "size": RNG.uniform(0, 50, N).round(2),
    "count": np.minimum(RNG.geometric(0.002, N), 5000),
    "sex": RNG.choice(["f", "m"], N),
}


def private() -> vt.PrivateData:
    return vt.PrivateData(ROWS, SCHEMA, name="parts", n_rows_public=N, budget=vt.Budget(1e4, 1e-6), ledger="memory")


def reference(model: vt.Model) -> Reference:
    rows = vt.private_rows(private(), mu=5.0)
    return Reference(SCHEMA, model, rows.marginals, private=rows)


def of_size(function) -> vt.Model:
    """A model of values that looks at the size, and at the sex a little."""
    return vt.Model(lambda raw: 0.1 * raw[:, 2] + function(raw[:, 0]), range=(0, 1), inputs="values", name="steps")


def finished(model: vt.Model, name: str = "size") -> tuple[np.ndarray, np.ndarray]:
    """The curve of a reference whose grid points are exact."""
    made = reference(model)
    axis = fine_axis(SCHEMA, name, made.marginals)
    exact = made.curves([axis])[0].mean(axis=0)
    detail = detail_of(made, axis)
    if detail is None:
        return axis.numbers, exact
    values, stds = detail.drawn(axis, exact, np.zeros(len(axis)))
    assert len(values) <= MOST_POINTS
    assert np.isfinite(stds).all()
    return detail.axis.numbers, values


def test_a_jump_at_a_value_that_rows_have_is_there_and_nowhere_else() -> None:
    model = of_size(lambda size: np.where(size <= 18.01, 0.2, 0.7))
    places, values = finished(model)
    below, above = np.interp([18.01, 18.02], places, values)
    assert below == pytest.approx(0.25, abs=0.01)
    assert above == pytest.approx(0.75, abs=0.01)


def test_a_spike_between_two_grid_points_is_found() -> None:
    model = of_size(lambda size: np.where((size > 20.11) & (size < 20.21), 0.8, 0.3))
    places, values = finished(model)
    assert np.interp([20.05, 20.15, 20.25], places, values) == pytest.approx([0.35, 0.85, 0.35], abs=0.01)


def test_whole_numbers_jump_between_neighbours() -> None:
    model = vt.Model(lambda raw: np.where(raw[:, 1] > 1234, 0.9, 0.1), range=(0, 1), inputs="values", name="steps")
    places, values = finished(model, "count")
    assert (places == np.round(places)).all()
    assert np.interp([1234, 1235], places, values) == pytest.approx([0.1, 0.9], abs=1e-9)


def test_a_straight_line_needs_nothing() -> None:
    made = reference(of_size(lambda size: 0.01 * size))
    assert detail_of(made, fine_axis(SCHEMA, "size", made.marginals)) is None
    assert detail_of(made, fine_axis(SCHEMA, "sex", made.marginals)) is None


@pytest.mark.usefixtures("planted_noise")
def test_where_noise_hides_the_sum_a_curve_is_that_of_private_rows() -> None:
    """And its bands say how little the sum could tell: no wider than what rows leave open."""
    model = of_size(lambda size: np.where(size <= 18.01, 0.2, 0.7))
    rows = vt.private_rows(private(), mu=5.0)
    curve = vt.PartialDependence(private(), model, marginals=rows)(mu=0.001)["size"]
    assert curve(30) - curve(10) == pytest.approx(0.5, abs=0.02)
    plain = vt.PartialDependence(private(), model, marginals=rows, estimate="plain")(mu=0.001)["size"]
    assert curve.half_width < 0.2 * plain.half_width
