"""What a run draws, what it costs, and that a ledger is charged before a row is read."""

import dp_accounting
import numpy as np
import pytest
import torch
from dp_accounting import pld
from scipy import stats

import vitrail as vt
from error_rates import planted_noise
from vitrail.accounting import block_epsilon
from vitrail.vault import MapTraining, noise_for, run_epsilon, train_maps
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors
from vitrail.vault.training.run import _Run, private_draws

SCHEMA = vt.Schema(
    {"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"]), "ill": vt.Categorical(["yes", "no"], missing="no")}
)


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, n)
    return {
        "age": age,
        "smoker": np.where(rng.random(n) < 0.3, "yes", "no"),
        "ill": np.where(age + rng.normal(0, 5, n) > 50, "yes", "no"),
    }


def private(rows=None, training=(4.0, 1e-5), neighbours="add-remove"):
    return vt.PrivateData(
        people() if rows is None else rows,
        SCHEMA,
        name="people",
        n_rows_public=600,
        target="ill",
        neighbours=neighbours,
        budget=vt.Budget(8.0, 1e-4, training=training),
    )


def independent_epsilon(sigma, rate, steps, delta):
    """By Google's library and nothing of ours."""
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    accountant.compose(dp_accounting.SelfComposedDpEvent(step, steps))
    return accountant.get_epsilon(delta)


def test_the_claimed_epsilon_is_what_dp_accounting_says():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (500, 2)), rng.integers(2, size=500)
    clf = vt.LocallyLinearClassifier(epsilon=1.0, delta=1e-5, steps=50, batch_size=100, n_maps=2).fit(X, y)
    promise = clf.guarantee_
    told = independent_epsilon(promise.noise_multiplier, promise.sampling_rate, promise.steps, promise.delta)
    assert told <= promise.epsilon == 1.0
    assert told > 0.999


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 100), (4.0, 30)])
def test_full_batches_are_priced_by_gdp_and_agree_with_the_accountant(epsilon, steps, neighbours):
    sigma = noise_for(epsilon, 1e-5, 1.0, steps, neighbours)
    assert run_epsilon(sigma, 1.0, steps, 1e-5, neighbours) <= epsilon
    assert block_epsilon(sigma, 1.0, steps, 1e-5, neighbours) == pytest.approx(epsilon, rel=2e-3)


@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
def test_samples_are_poisson(device):
    """Every row alike, and sizes with the binomial's law: a fixed size would have no spread at all. False alarms: 2e-10."""
    n_rows, rate, times = 40, 0.3, 4000
    inside, sizes = np.zeros(n_rows), np.zeros(n_rows + 1)
    for drawn in private_draws(n_rows, rate, 1.0, 1, times, device=device):
        assert len(np.unique(drawn.rows)) == len(drawn.rows)
        inside[drawn.rows] += 1
        sizes[len(drawn.rows)] += 1
    assert min(stats.binomtest(int(k), times, rate).pvalue for k in inside) > 1e-10 / n_rows
    law = stats.binom.pmf(np.arange(n_rows + 1), n_rows, rate)
    assert min(stats.binomtest(int(seen), times, chance).pvalue for seen, chance in zip(sizes, law, strict=True)) > 1e-10 / (
        n_rows + 1
    )


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_a_step_adds_rounded_noise_of_noise_multiplier_times_clip(rate):
    """On no rows at all: a sum of integers in cells, normal with the promised variance. False alarms: 2e-10."""
    run = MapTraining(
        n_classes=3,
        n_maps=2,
        noise_multiplier=1.7,
        sampling_rate=rate,
        steps=1,
        epsilon=9.0,
        delta=1e-5,
        expected_rows=5,
        clip=0.5,
    )
    X, y = np.zeros((0, 2500), np.float32), np.zeros(0, np.int64)
    made = _Run(run, training_vectors(X, y, 3, PublicMatrices.of(None, None, 2500), None))
    weights = np.zeros((2, 3, 2501))
    (draws,) = made.draws(weights.size, np.random.default_rng())
    found = made.noisy_sum(weights, draws)
    in_cells = found / (run.clip / 2.0**run.cell_bits)
    assert np.array_equal(in_cells, np.rint(in_cells))
    z = found.ravel() / (1.7 * 0.5)
    assert stats.kstest(z, "norm").pvalue > 1e-10
    assert 1e-10 < stats.chi2.cdf((z**2).sum(), z.size) < 1 - 1e-10


@pytest.mark.parametrize("noise_multiplier", [1e-3, 0.4, 1.0, 257.0, 1e6])
def test_the_grid_is_finer_than_the_noise_whatever_its_size(noise_multiplier):
    run = MapTraining(
        n_classes=2,
        n_maps=1,
        noise_multiplier=noise_multiplier,
        sampling_rate=1.0,
        steps=2,
        epsilon=9.0,
        delta=1e-5,
        expected_rows=5,
    )
    assert noise_multiplier * 2.0**run.cell_bits <= 2.0**45
    assert run.cell_bits >= 20
    assert np.isfinite(train_maps(run, np.zeros((5, 2), np.float32), np.zeros(5, np.int64)).maps).all()


def test_two_private_runs_draw_different_noise():
    run = MapTraining(
        n_classes=2, n_maps=1, noise_multiplier=1.0, sampling_rate=1.0, steps=2, epsilon=9.0, delta=1e-5, expected_rows=5
    )
    X, y = np.zeros((5, 2), np.float32), np.zeros(5, np.int64)
    assert not np.array_equal(train_maps(run, X, y).maps, train_maps(run, X, y).maps)


# --- the ledger --------------------------------------------------------------------------------------------------------


@planted_noise()
def test_fit_on_private_data_is_charged_as_a_fixed_block_and_learns():
    data = private()
    clf = vt.LocallyLinearClassifier(epsilon=4.0, delta=1e-5, n_maps=2, steps=60, batch_size=600).fit(data)
    assert data.budget.spent.block_epsilon == 4.0
    assert data.budget.spent.block_delta == pytest.approx(1e-5)
    assert data.budget.spent.pico_mu_squared == 0
    assert clf.classes_.tolist() == ["no", "yes"]  # sorted, whatever the order of the levels
    points = {"age": [5, 95], "smoker": ["no", "no"]}
    assert clf.predict(points).tolist() == ["no", "yes"]
    assert "row count 600, as declared" in clf.guarantee_.sentence
    told = clf.explain_local(points)
    assert told.columns == ("age", "smoker")
    assert told.points[1]["age"] == 95
    np.testing.assert_allclose(told.predictions, told.outputs, atol=1e-9)


def test_what_does_not_fit_is_refused_before_a_row_is_read(monkeypatch):
    from vitrail.vault import private_data

    read = []
    monkeypatch.setattr(private_data, "training_rows", lambda *_: read.append(1))
    data = private(training=(1.0, 1e-5))
    with pytest.raises(vt.errors.BudgetExceeded):
        vt.LocallyLinearClassifier(epsilon=2.0, steps=5, batch_size=600).fit(data)
    assert read == []
    assert data.budget.spent.block_epsilon == 0


def test_the_charge_comes_before_the_rows(monkeypatch):
    from vitrail.vault import private_data

    data = private()

    def fails(*_):
        raise RuntimeError("the machine died here")

    monkeypatch.setattr(private_data, "training_rows", fails)
    with pytest.raises(vt.errors.Unanswered):
        vt.LocallyLinearClassifier(epsilon=2.0, steps=5, batch_size=600).fit(data)
    assert data.budget.spent.block_epsilon == 2.0


def test_training_twice_is_charged_twice_and_the_purse_runs_out():
    data = private(training=(4.0, 1e-4 / 2))
    for _ in range(2):
        vt.LocallyLinearClassifier(epsilon=2.0, steps=4, batch_size=600).fit(data)
    with pytest.raises(vt.errors.BudgetExceeded):
        vt.LocallyLinearClassifier(epsilon=0.5, steps=4, batch_size=600).fit(data)


def test_a_plan_that_understates_its_price_is_refused():
    data = private()
    lie = MapTraining(
        n_classes=2, n_maps=1, noise_multiplier=0.6, sampling_rate=1.0, steps=50, epsilon=0.1, delta=1e-5, expected_rows=600
    )
    with pytest.raises(vt.errors.InvalidInput, match="makes this run cost"):
        data.train(lie)
    free = MapTraining(
        n_classes=2, n_maps=1, noise_multiplier=0, sampling_rate=1.0, steps=5, epsilon=np.inf, delta=1e-5, expected_rows=600
    )
    with pytest.raises(vt.errors.InvalidInput, match="finite epsilon"):
        data.train(free)
    assert data.budget.spent.block_epsilon == 0


def test_replace_one_costs_more_noise():
    noisy = [
        vt.LocallyLinearClassifier(epsilon=2.0, steps=10, batch_size=600).fit(private(neighbours=relation)).guarantee_
        for relation in ("add-remove", "replace-one")
    ]
    assert noisy[1].noise_multiplier == pytest.approx(2 * noisy[0].noise_multiplier)
    assert noisy[1].promise.neighbours == "replace-one"


def test_rows_outside_the_schema_are_silent_and_strange_rows_count_zero(capsys, recwarn):
    rows = people()
    rows["age"][:5] = [np.nan, np.inf, -1e9, 1e9, 50]
    vt.LocallyLinearClassifier(epsilon=2.0, steps=5, batch_size=600).fit(private(rows))
    assert capsys.readouterr() == ("", "")
    assert len(recwarn) == 0


def test_what_private_data_declares_is_not_given_twice():
    for name, value in (("classes", ["no", "yes"]), ("n_rows_public", 5), ("bounds", (0, 1)), ("schema", SCHEMA)):
        with pytest.raises(vt.errors.InvalidInput, match=name):
            vt.LocallyLinearClassifier(steps=5, **{name: value}).fit(private())
    with pytest.raises(vt.errors.InvalidInput, match="labels already"):
        vt.LocallyLinearClassifier(steps=5).fit(private(), [1])
    untargeted = vt.PrivateData(
        {"age": [1.0]}, vt.Schema({"age": vt.Numeric(0, 9)}), name="x", n_rows_public=1, budget=vt.Budget(1, 1e-6)
    )
    with pytest.raises(vt.errors.SchemaError, match="target"):
        vt.LocallyLinearClassifier(steps=5).fit(untargeted)


def test_no_rows_at_all_train_like_any_others():
    empty = {"age": np.empty(0), "smoker": np.empty(0, object), "ill": np.empty(0, object)}
    data = private(empty, training=(4.0, 5e-5))
    clf = vt.LocallyLinearClassifier(epsilon=2.0, steps=3, batch_size=600).fit(data)
    assert np.isfinite(clf.maps_).all()
    sampled = MapTraining(
        n_classes=2, n_maps=1, noise_multiplier=5.0, sampling_rate=0.1, steps=3, epsilon=2.0, delta=1e-5, expected_rows=60
    )
    assert np.isfinite(data.train(sampled).parts["maps"]).all()


def test_disjoint_parts_cost_as_much_as_the_dearest():
    data = private()
    for part in data.parts(2, name="halves"):
        vt.LocallyLinearClassifier(epsilon=2.0, steps=3, batch_size=300).fit(part)
    assert data.budget.spent.block_epsilon == 2.0


def test_a_device_that_is_not_there_is_refused_before_the_charge():
    data = private()
    missing = "cuda:0" if not torch.cuda.is_available() else "tpu"
    with pytest.raises(vt.errors.InvalidInput, match="device is"):
        vt.LocallyLinearClassifier(epsilon=2.0, delta=1e-5, n_maps=1, steps=3, device=missing).fit(data)
    assert data.budget.n_questions == 0


def test_levels_of_mixed_kinds_are_refused_before_the_charge():
    schema = vt.Schema({"x": vt.Numeric(0, 1), "y": vt.Categorical(["no", 1])})
    data = vt.PrivateData(
        {"x": [0.1, 0.9], "y": ["no", 1]},
        schema,
        name="mixed",
        target="y",
        n_rows_public=2,
        budget=vt.Budget(5, 1e-4, training=(4.0, 1e-5)),
    )
    with pytest.raises(vt.errors.SchemaError, match="mixed kinds"):
        vt.LocallyLinearClassifier(epsilon=2.0, delta=1e-5, n_maps=1, steps=3).fit(data)
    assert data.budget.n_questions == 0
