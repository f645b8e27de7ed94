"""What follows from noisy counts."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import vitrail as vt
from error_rates import normal_bound
from vitrail.accounting.guarantee import Guarantee
from vitrail.errors import BudgetExceeded, InvalidInput, SchemaError
from vitrail.results.marginals import Marginals, nearest_shares
from vitrail.schema.bins import bins_of

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 9, integer=True),
        "pay": vt.Numeric(0.0, 100.0),
        "sex": vt.Categorical(["Female", "Male"]),
    }
)


def marginals_with(counts: dict[str, list[float]], sigma: float = 1.0) -> Marginals:
    bins = tuple(bins_of(name, SCHEMA[name], 4) for name in counts)
    values = {name: np.array(numbers, dtype=float) for name, numbers in counts.items()}
    return Marginals("made up", bins, values, sigma, 100, vt.Cost(1), Guarantee.of_mu(0.1, 1e-6))


def private(n: int = 4000, **kwargs: object) -> vt.PrivateData:
    rng = np.random.default_rng(1)
    rows = {
        "age": rng.integers(0, 10, n),
        "pay": rng.uniform(0, 50, n),
        "sex": np.array(["Female", "Male"])[rng.integers(0, 2, n)],
    }
    return vt.PrivateData(rows, SCHEMA, name="people", n_rows_public=n, budget=vt.Budget(1, 1e-6), **kwargs)  # type: ignore[arg-type]


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-100, 100)))
def test_the_nearest_shares_are_a_distribution_and_satisfy_the_optimality_conditions(values: np.ndarray) -> None:
    shares = nearest_shares(values)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    # Nearest: one shift for all that stays positive, and nobody at zero would be above zero after that shift.
    kept = shares > 1e-12
    shift = (values - shares)[kept]
    assert np.ptp(shift) < 1e-9
    assert (values[~kept] <= shift.max() + 1e-9).all()


def test_a_distribution_is_its_own_nearest() -> None:
    assert nearest_shares(np.array([0.2, 0.5, 0.3])).tolist() == pytest.approx([0.2, 0.5, 0.3])


def test_the_total_weighs_columns_by_their_noise() -> None:
    found = marginals_with({"sex": [40, 62], "pay": [25, 25, 25, 19]})
    assert found.total == pytest.approx((102 / 2 + 94 / 4) / (1 / 2 + 1 / 4))
    assert found.total_sigma == pytest.approx(1 / np.sqrt(0.75))


def test_the_total_has_the_noise_it_says() -> None:
    rng = np.random.default_rng(0)
    truth = {"sex": np.array([400.0, 600.0]), "age": np.full(10, 100.0)}
    noisy = [
        marginals_with({name: (c + rng.normal(0, 5, len(c))).tolist() for name, c in truth.items()}, 5.0)
        for _ in range(4000)
    ]
    errors = np.array([one.total - 1000 for one in noisy])
    assert abs(errors.mean()) < 0.3
    assert errors.std() == pytest.approx(noisy[0].total_sigma, rel=0.05)


def test_the_mean_is_unbiased_and_has_the_noise_it_says() -> None:
    rng = np.random.default_rng(0)
    counts = np.array([0.0, 0, 50, 900, 20, 10, 10, 10, 0, 0])
    truth = float(np.arange(10) @ counts / counts.sum())
    noisy = [marginals_with({"age": (counts + rng.normal(0, 20, 10)).tolist()}, 20.0) for _ in range(4000)]
    errors = np.array([one.mean("age") - truth for one in noisy])
    sigma = np.array([one.mean_sigma("age") for one in noisy])
    assert abs(errors.mean()) < 0.1 * errors.std()
    # The denominator is noisy as well and only the same column's; first order is good to some per cent here.
    assert errors.std() == pytest.approx(sigma.mean(), rel=0.1)


def test_quantiles() -> None:
    found = marginals_with({"age": [10, 20, 30, 40, 0, 0, 0, 0, 0, 0], "pay": [50, 0, 0, 50]})
    assert [found.quantile("age", q) for q in (0, 0.05, 0.1, 0.5, 0.61, 1)] == [0, 0, 0, 2, 3, 3]
    assert found.quantile("pay", 0.25) == pytest.approx(12.5)
    assert found.quantile("pay", 0.75) == pytest.approx(87.5)
    assert found.quantile("pay", 1) == 100


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), "half", True])
def test_a_quantile_is_asked_for_a_share(q: object) -> None:
    with pytest.raises(InvalidInput, match="a share between 0 and 1"):
        marginals_with({"pay": [1, 1, 1, 1]}).quantile("pay", q)  # type: ignore[arg-type]


def test_levels_have_no_mean_and_unknown_columns_a_suggestion() -> None:
    found = marginals_with({"sex": [1, 2], "pay": [1, 1, 1, 1]})
    with pytest.raises(InvalidInput, match="'sex' has levels, not numbers"):
        found.mean("sex")
    with pytest.raises(SchemaError, match="Did you mean 'pay'"):
        found.quantile("pays", 0.5)


def test_where_noise_drowns_everything_shares_are_still_a_distribution() -> None:
    found = marginals_with({"sex": [-300, 10], "pay": [-50, 4, 3, 2]}, sigma=200)
    assert found.total < 0
    for shares in found.shares.values():
        assert shares.sum() == pytest.approx(1)
    assert 0 <= found.mean("pay") <= 100


def test_bands_hold_the_truth_as_often_as_they_say() -> None:
    data = private(4000)
    found = vt.marginals(data, epsilon=0.9)
    exact = np.bincount(np.random.default_rng(1).integers(0, 10, 4000), minlength=10)
    assert found.half_width == pytest.approx(1.959964 * found.sigma)
    assert (np.abs(found.counts["age"] - exact) < normal_bound(of=10) * found.sigma).all()
    assert (found.upper["age"] - found.lower["age"]).tolist() == pytest.approx([2 * found.half_width] * 10)


def test_asking_twice_is_free_and_the_same() -> None:
    data = private()
    first = vt.marginals(data, epsilon=0.6)
    spent = data.budget.spent
    again = vt.marginals(data, epsilon=0.6)
    assert again.release is not None
    assert again.release.replayed
    assert data.budget.spent == spent
    assert again.counts["pay"].tolist() == first.counts["pay"].tolist()
    assert first.cost == spent
    assert first.guarantee.epsilon == pytest.approx(0.6, abs=1e-9)


def test_nothing_is_charged_for_a_mistake() -> None:
    data = private()
    for wrong in ({"columns": ["nope"]}, {"columns": []}, {"bins": 0}):
        with pytest.raises(InvalidInput):
            vt.marginals(data, epsilon=0.1, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="give the question a price"):
        vt.marginals(data)
    with pytest.raises(BudgetExceeded):
        vt.marginals(data, epsilon=1.1)
    assert data.budget.n_questions == 0


def test_fewer_columns_are_less_noisy() -> None:
    data = private()
    assert vt.marginals(data, mu=0.1, columns=["sex"]).sigma * 3**0.5 == pytest.approx(vt.marginals(data, mu=0.1).sigma)


def test_counts_cannot_be_changed() -> None:
    found = vt.marginals(private(), epsilon=0.5)
    with pytest.raises(ValueError, match="read-only"):
        found.counts["age"][0] = 0
    with pytest.raises(TypeError):
        found.counts["age"] = np.zeros(10)  # type: ignore[index]


def test_json_there_and_back() -> None:
    found = vt.marginals(private(), epsilon=0.5)
    read = vt.Marginals.from_json(json.loads(json.dumps(found.to_json())))
    assert read.release is None
    assert read == found
    assert (read.bins, read.sigma, read.cost, read.guarantee) == (found.bins, found.sigma, found.cost, found.guarantee)
    assert all(read.counts[name].tolist() == found.counts[name].tolist() for name in found.columns)
    assert read.quantile("pay", 0.3) == found.quantile("pay", 0.3)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fields: fields.pop("sigma"),
        lambda fields: fields.update(format="vitrail-marginals/9"),
        lambda fields: fields["counts"]["age"].pop(),
        lambda fields: fields["bins"][0]["edges"].pop(),
        lambda fields: fields.update(bins=[]),
        lambda fields: fields["counts"].update(age="many"),
        lambda fields: fields["guarantee"].pop("mu"),
    ],
)
def test_damaged_json_is_refused(spoil) -> None:  # type: ignore[no-untyped-def]
    fields = marginals_with({"age": [1] * 10}).to_json()
    spoil(fields)
    with pytest.raises(InvalidInput, match=r"Marginals|version 9"):
        vt.Marginals.from_json(fields)


def test_stored_marginals_are_read_without_the_vault() -> None:
    program = (
        "import sys, json, vitrail as vt; found = vt.Marginals.from_json(json.load(sys.stdin)); found.plot(); "
        "print([name for name in ('vitrail.vault', 'vitrail.ledger', 'matplotlib.pyplot') if name in sys.modules])"
    )
    stored = json.dumps(marginals_with({"pay": [1, 2, 3, 4], "sex": [5, 5]}).to_json())
    seen = subprocess.run([sys.executable, "-c", program], input=stored, capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"


def test_the_frame_has_a_line_per_bin() -> None:
    frame = marginals_with({"pay": [1, 2, 3, 4], "sex": [5, 6]}).frame()
    assert {len(column) for column in frame.values()} == {6}
    assert frame["bin"].tolist()[-1] == "Male"
    assert frame["count"].tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["high"].tolist()[:4] == [25, 50, 75, 100]
    assert np.isnan(frame["low"][4:].astype(float)).all()


def test_its_repr_shows_no_rows_and_its_html_is_safe() -> None:
    schema = vt.Schema({"<b>name": vt.Categorical(["<script>alert(1)</script>", "$x^$"])})
    data = vt.PrivateData({"<b>name": ["$x^$"] * 9}, schema, name="<i>data", n_rows_public=9, budget=vt.Budget(1, 1e-6))
    found = vt.marginals(data, epsilon=0.5)
    assert repr(found).startswith("Marginals('<i>data', 1 columns, sigma=")
    for text in (found._repr_html_(), found.to_html()):
        assert "<script" not in text
        assert "<i>data" not in text
        assert "&lt;i&gt;data" in text
