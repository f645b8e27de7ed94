"""Quotes of curves, rankings and reports: free, without rows, exact in price, and about right in width."""

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting.guarantee import question_mu
from vitrail.explain.joint_sum import rows_share
from vitrail.explain.recipe import Terms

SCHEMA = vt.Schema(
    {"a": vt.Numeric(0, 1), "b": vt.Numeric(-3, 3), "c": vt.Categorical(["x", "y", "z"]), "t": vt.Numeric(0, 1)}
)
MODEL = vt.Model(lambda x: 1 / (1 + np.exp(-(2 * x[:, 0] - 1 + 3 * (x[:, 1] - 0.5) + x[:, 2]))), range=(0, 1), name="smooth")
N = 8000
EXPLAINERS = {
    "pdp": vt.PartialDependence,
    "ale": vt.AccumulatedEffects,
    "importance": vt.PermutationImportance,
    "report": vt.GlobalReport,
}


def private(rows: bool = True, budget: float = 20.0) -> vt.PrivateData:
    generator = np.random.default_rng(1)
    n = N if rows else 0
    a = generator.uniform(size=n)
    found = {"a": a, "b": np.clip(generator.normal(size=n), -3, 3), "c": generator.choice(["x", "y", "z"], n), "t": a}
    return vt.PrivateData(found, SCHEMA, name="two", target="t", n_rows_public=N, budget=vt.Budget(budget, 1e-6))


@pytest.mark.parametrize("name", EXPLAINERS)
def test_a_quote_charges_nothing_and_reads_no_row(name: str) -> None:
    data, nobody = private(), private(rows=False)
    entries = len(data.budget.entries)
    quote = data.quote(EXPLAINERS[name](data, MODEL), epsilon=0.5)
    assert len(data.budget.entries) == entries
    same = nobody.quote(EXPLAINERS[name](nobody, MODEL), epsilon=0.5)
    assert quote.price == same.price
    # Sums of a stand-in are drawn at a price at which noise hardly matters.
    np.testing.assert_allclose(quote.half_width, same.half_width, rtol=1e-2)
    assert quote.price.guarantee.epsilon == pytest.approx(0.5)
    assert quote.price.sigma is None
    assert "an estimate from rows drawn from the schema" in str(quote)
    assert quote.to_json()["price"]["fits"] is True


@pytest.mark.parametrize("name", EXPLAINERS)
def test_what_is_charged_is_what_was_quoted(name: str) -> None:
    data = private()
    explainer = EXPLAINERS[name](data, MODEL)
    quoted = explainer.quote(epsilon=0.5).price.cost
    explainer(epsilon=0.5)
    spent = data.budget.spent.pico_mu_squared
    assert 0.999999 * quoted.pico_mu_squared <= spent <= quoted.pico_mu_squared


def test_it_says_when_it_does_not_fit() -> None:
    data = private(budget=0.4)
    quote = data.quote(vt.GlobalReport(data, MODEL), epsilon=0.5)
    assert not quote.fits
    assert "It does not fit" in str(quote)
    with pytest.raises(vt.errors.BudgetExceeded):
        vt.GlobalReport(data, MODEL)(epsilon=0.5)
    assert data.budget.spent_epsilon == 0


@pytest.mark.usefixtures("planted_noise")
def test_widths_are_of_the_right_size_and_shrink_with_the_price() -> None:
    data = private()
    report = vt.GlobalReport(data, MODEL)
    quote, dearer = report.quote(epsilon=0.5), report.quote(epsilon=4.0)
    found = report(epsilon=0.5)
    real = {
        "pdp": np.median([1.96 * np.median(curve.std) for curve in found.pdp.values()]),
        "ale": np.median([1.96 * np.median(curve.std) for curve in found.ale.values()]),
        "importance": 1.96 * np.median(found.importance.std),
    }
    assert found.half_widths == pytest.approx(real, rel=1e-3)
    for part, width in real.items():
        expected, claim = quote.half_widths[part]
        assert width / 4 < expected < width * 4
        assert dearer.half_widths[part][0] < expected
        assert f"{part} +-{expected:.2g} ({claim.mark})" in str(quote)
        assert quote.to_json()["half_widths"][part] == expected


def test_marginals_of_before_leave_more_for_the_rest() -> None:
    data = private()
    before = vt.marginals(data, epsilon=1.0, bins=100)
    given, alone = (
        vt.PermutationImportance(data, MODEL, clip=5.0, marginals=known, estimate="plain") for known in (before, None)
    )
    widths = [np.linalg.norm(explainer.quote(epsilon=0.5).result.std) for explainer in (given, alone)]
    assert widths[0] < widths[1]
    paid = []
    for explainer in (given, alone):
        explainer(epsilon=0.5)
        paid.append(data.budget.bill().lines[-1].share)  # the sum comes last
    share = rows_share(Terms.of(data, question_mu(0.5, None, data.delta)))
    assert share > 0
    assert paid[1] == pytest.approx(paid[0] * (1 - share), rel=1e-6)


def test_a_quote_stands_on_histograms_that_were_given_or_bought() -> None:
    data = private()
    assert vt.PartialDependence(data, MODEL).quote(epsilon=0.5).stands_on == "the schema"
    before = vt.marginals(private(), epsilon=1.0)
    assert vt.PartialDependence(data, MODEL, marginals=before).quote(epsilon=0.5).stands_on == "histograms bought before"
    vt.marginals(data, epsilon=1.0)
    assert vt.PartialDependence(data, MODEL).quote(epsilon=0.5).stands_on == "histograms bought before"
