"""SHAP importance as a part of the report: same bill, same file, on the page; not there unless asked for."""

import numpy as np
import pytest

import vitrail as vt

SCHEMA = vt.Schema({"age": vt.Numeric(0, 1), "dose": vt.Numeric(0, 1), "sex": vt.Categorical(["f", "m"])})
MODEL = vt.Model(lambda x: 0.7 * x[:, 0] + 0.2 * x[:, 1], range=(0, 1), name="risk")


def private() -> vt.PrivateData:
    generator = np.random.default_rng(0)
    rows = {
        "age": generator.uniform(0, 1, 6000),
        "dose": generator.uniform(0, 1, 6000),
        "sex": generator.choice(["f", "m"], 6000),
    }
    return vt.PrivateData(rows, SCHEMA, name="trial", n_rows_public=6000, budget=vt.Budget(4, 1e-6))


@pytest.mark.usefixtures("planted_noise")
def test_shap_importance_is_bought_with_the_rest_and_comes_back_from_a_file(tmp_path) -> None:
    data = private()
    found = vt.GlobalReport(data, MODEL, parts=["pdp", "shap"])(epsilon=2.0)
    assert found.parts == ("pdp", "shap")
    assert found.importance is None
    assert found.shap.order[:2] == ("age", "dose")
    # E|phi| of 0.7 (x - E x) for uniform x is 0.7 / 4; each row meets few background rows, which makes it larger
    assert 0.15 < found.shap.scores[0] < 0.25
    assert data.budget.spent.mu == pytest.approx(found.cost.mu)
    assert sum(found.shares.values()) == pytest.approx(1, abs=1e-5)
    again = vt.Report.load(found.save(tmp_path / "report.vt"))
    np.testing.assert_array_equal(again.shap.scores, found.shap.scores)
    assert "Shapley" in found.to_html()
    assert "shap" in set(found.frame()["part"])


def test_it_is_quoted_and_left_out_unless_asked_for() -> None:
    data = private()
    quote = vt.GlobalReport(data, MODEL, parts=["shap"]).quote(epsilon=1.0)
    assert set(quote.half_widths) == {"shap"}
    assert 0 < quote.half_width < 0.1
    assert "shap" not in vt.GlobalReport(data, MODEL).quote(epsilon=1.0).half_widths
