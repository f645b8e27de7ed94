"""Every explainer with ``sampling_rate=``: it looks at a sample of the rows, says so and pays as for all, or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vitrail as vt
from every_explainer import EVERY
from explainer_table import Row, model, private
from vitrail.errors import InvalidInput

OF_ALL_ROWS = {
    "any curve",
    "any ranking",
    "any ranking of the first",
    "counterfactual",
    "counterfactual with a code and rows",
    "groups",
    "groups of two columns",
    "partial dependence with Laplace noise",
    "accumulated effects with Laplace noise",
    "local descent",
    "local adaptive",
    "local enhanced",
    "local classes",
    "local moments",
    "local cells",
    "local cells by sex",
}
"""Docs name them (docs/global.md)."""
ALIKE = {"surfaces", "accumulated effects of one column", "private rows of two columns", "shapley, clip chosen"}
"""Nothing new beside their neighbours in the table; "... a sample" are run with a rate by the table itself."""
NOTE = "Looked at about 40 % of the rows, chosen by chance"


@EVERY
@pytest.mark.usefixtures("curves_in_a_hurry")
def test_an_explainer_of_a_sample_says_so_or_refuses(row: Row) -> None:
    if row.name.endswith("a sample") or row.name in ALIKE:
        return
    data = private()

    def run() -> Any:
        explainer = row.make(data, model(), sampling_rate=0.4)
        return explainer(epsilon=row.epsilon) if row.points is None else explainer(row.points, epsilon=row.epsilon)

    if row.name in OF_ALL_ROWS:
        with pytest.raises(
            InvalidInput, match=r"sampling_rate is 0\.4, and .* looks at all rows: .*Leave sampling_rate out"
        ):
            run()
        assert data.budget.n_questions == 0
        return
    result = run()
    notes = [*result.report.notes, *result.private_rows.notes] if isinstance(result, vt.Pane) else result.notes
    assert any(NOTE in note for note in notes)
    price = row.price(data.delta)
    assert result.cost <= price
    assert result.cost.pico_mu_squared > (1 - 1e-6) * price.pico_mu_squared - 10 or row.questions is None
    if row.bands:
        assert 0 < result.half_width < np.inf


@pytest.mark.parametrize("rate", [0, 1.5, -0.1, float("nan"), "half"])
def test_a_rate_is_a_probability(rate: object) -> None:
    data = private()
    for make in (vt.MarginalsExplainer, vt.PrivateRowsExplainer, vt.PaneExplainer):
        with pytest.raises(InvalidInput, match=r"sampling_rate is .*lie in"):
            make(data, sampling_rate=rate)  # type: ignore[arg-type]


def test_a_sample_is_another_question() -> None:
    """It is never answered by what all rows said, nor by a sample at another rate."""
    data = private()
    spent = []
    for rate in (1.0, 0.4, 0.3, 0.4, 1.0):
        vt.marginals(data, sampling_rate=rate, epsilon=1.0)
        spent.append(data.budget.n_questions)
    assert spent == [1, 2, 3, 3, 3]
