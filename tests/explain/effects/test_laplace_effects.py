"""Curves with Laplace noise: which columns take it, what they say at a high price, and how they are clipped."""

from __future__ import annotations

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.explain.laplace_effects import _Changes, _stepped, is_better
from vitrail.solve.curves.few_levels import (
    SIZE_BINS,
    chosen_clip,
    expected_counts,
    noise_against_bias,
    size_bins,
    size_edges,
    step_scales,
)
from vitrail.vault import Block
from vitrail.vault.public_facts import PublicFacts

N_ROWS = 4000
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100),
        "kind": vt.Categorical(["a", "b", "c"]),
        "sex": vt.Categorical(["f", "m"]),
        "town": vt.Categorical([str(town) for town in range(12)]),
    }
)


def held(**options: object) -> vt.PrivateData:
    generator = np.random.default_rng(0)
    rows = {
        "age": generator.uniform(20, 80, N_ROWS),
        "kind": generator.choice(["a", "b", "c"], N_ROWS, p=[0.5, 0.3, 0.2]),
        "sex": generator.choice(["f", "m"], N_ROWS),
        "town": generator.choice([str(town) for town in range(12)], N_ROWS),
    }
    given = {"budget": vt.Budget(60, 1e-6, training=(50, 0)), "ledger": "memory", **options}
    return vt.PrivateData(rows, SCHEMA, name="people", n_rows_public=N_ROWS, **given)  # type: ignore[arg-type]


def outputs(x: np.ndarray) -> np.ndarray:
    """Of age, kind=a, b, c, sex=f, m, towns: a step of .3 to c, a slope of .4, and a little of both."""
    found: np.ndarray = 0.1 + 0.3 * x[:, 3] + 0.4 * x[:, 0] + 0.1 * x[:, 0] * x[:, 5]
    return found


MODEL = vt.Model(outputs, range=(0, 1), inputs="features", name="score")


@pytest.mark.parametrize("explainer", [vt.PartialDependence, vt.AccumulatedEffects])
def test_a_purse_without_a_delta_is_taken_for_few_levels(explainer: type[vt.PartialDependence]) -> None:
    data = held()
    assert explainer(data, MODEL, columns=["sex"]).noise == "laplace"
    assert explainer(data, MODEL, columns=["sex", "kind"]).noise == "laplace"
    assert explainer(data, MODEL, columns=["town"]).noise == "gaussian"
    assert explainer(data, MODEL).noise == "gaussian"
    assert explainer(data, MODEL, columns=["sex"], estimate="plain").noise == "gaussian"
    assert explainer(data, MODEL, columns=["sex"], sampling_rate=0.5).noise == "gaussian"
    assert explainer(data, MODEL, columns=["sex"], noise="gaussian").noise == "gaussian"


def test_one_number_takes_it_for_effects_alone() -> None:
    data = held()
    assert vt.AccumulatedEffects(data, MODEL, columns=["age"]).noise == "laplace"
    assert vt.AccumulatedEffects(data, MODEL, columns=["age", "sex"]).noise == "gaussian"
    assert vt.PartialDependence(data, MODEL, columns=["age"]).noise == "gaussian"
    assert not is_better([], steps=True)
    with pytest.raises(InvalidInput, match="'age'"):
        vt.AccumulatedEffects(data, MODEL, columns=["age", "sex"], noise="laplace")


@pytest.mark.parametrize("training", [(0.0, 0.0), (1.0, 1e-7)])
def test_no_purse_and_one_for_training_runs_are_left_alone(training: tuple[float, float]) -> None:
    data = held(budget=vt.Budget(9, 1e-6, training=training))
    assert vt.PartialDependence(data, MODEL, columns=["sex"]).noise == "gaussian"


def test_an_analyst_whose_cap_has_no_purse_gets_gaussian_noise() -> None:
    owner = held(analyst="alice")
    owner.cap("alice", vt.Budget(1, 1e-6))
    assert vt.PartialDependence(owner, MODEL, columns=["sex"]).noise == "gaussian"
    owner.cap("alice", vt.Budget(2, 1e-6, training=(1, 0)))
    assert vt.PartialDependence(owner, MODEL, columns=["sex"]).noise == "laplace"


def test_the_purse_pays_and_the_promise_has_no_delta() -> None:
    data = held()
    effects = vt.PartialDependence(data, MODEL, columns=["kind"])(epsilon=2.0)
    assert effects.guarantee.delta == 0
    assert effects.guarantee.epsilon == pytest.approx(2.0)
    assert data.budget.training_spent[0] == pytest.approx(2.0, abs=1e-6)
    assert data.budget.spent_epsilon == 0
    with pytest.raises(InvalidInput, match="epsilon="):
        vt.PartialDependence(data, MODEL, columns=["kind"])(mu=0.5)


def test_levels_at_a_high_price() -> None:
    """Noise of about 1e-4 on every level."""
    data = held()
    curve = vt.PartialDependence(data, MODEL, columns=["kind"])(epsilon=20.0)["kind"]
    assert np.diff(curve.y) == pytest.approx([0.0, 0.3], abs=0.01)
    steps = vt.AccumulatedEffects(data, MODEL, columns=["kind"])(epsilon=20.0)["kind"]
    assert np.diff(steps.y) == pytest.approx([0.0, 0.3], abs=0.01)


def test_one_number_at_a_high_price() -> None:
    curve = vt.AccumulatedEffects(held(), MODEL, columns=["age"])(epsilon=20.0)["age"]
    assert curve(80) - curve(20) == pytest.approx(0.6 * 0.45, abs=0.02)
    assert abs(curve(50)) < 0.01  # centred over the rows


def test_a_histogram_is_believed_as_far_as_it_stands_out_of_its_noise() -> None:
    counts = np.array([900.0, 80.0, 25.0, 3.0, -4.0])
    expected = expected_counts(counts, 5.0, 1000.0)
    assert expected[:3] == pytest.approx(counts[:3], abs=4)
    assert (expected[3:] < 3).all()
    far = expected_counts(np.array([900.0, 0.0, 0.0, 60.0]), 5.0, 1000.0)
    assert far[3] == pytest.approx(60, abs=5)  # however unlikely: it is there


def test_noise_alone_does_not_make_a_clip_large() -> None:
    """Rows below a tenth of the range, and counts of noise above: in 200 draws the clip stays within 4 times of it.

    It passes that in a draw where one of the bins above has noise of several times what such a bin can hold unseen: with
    Laplace noise of scale 4, a chance of about e^-10 in each of six bins.
    """
    generator, edges = np.random.default_rng(1), size_edges(2.0)
    bins = np.bincount(size_bins(generator.uniform(0, 0.1, 3000), 2.0), minlength=SIZE_BINS).astype(float)
    found = [
        chosen_clip(bins + generator.laplace(0, 4.0, SIZE_BINS), 4.0 * 2**0.5, edges, 3000.0, 2e-3).bound for _ in range(200)
    ]
    assert np.median(found) <= 0.2
    assert max(found) <= 0.4


def test_a_rare_level_makes_noise_weigh_more() -> None:
    assert noise_against_bias(np.array([0.5, 0.4, 0.1])) < noise_against_bias(np.array([0.5, 0.49, 0.01]))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_scales_no_row_sends_more_than_a_norm_of_one(seed: int) -> None:
    """Wild models, scales and clips; and where no clip binds, sums over scales are the changes themselves."""
    generator = np.random.default_rng(seed)
    jumps = generator.uniform(-50, 50, (3, 12))
    model = vt.Model(
        lambda x: 0.5 + np.tanh(x[:, 1:4] @ jumps @ x[:, 6:18].T).mean(axis=1) / 2, range=(0, 1), inputs="features"
    )
    axes = (_stepped(SCHEMA, "kind", None), _stepped(SCHEMA, "town", None))
    scales = tuple(np.exp(-generator.exponential(3.0, len(axis) - 1)) for axis in axes)
    raw = SCHEMA.read(
        {
            "age": generator.uniform(0, 100, 300),
            "kind": generator.choice(["a", "b", "c"], 300),
            "sex": generator.choice(["f", "m"], 300),
            "town": generator.choice([str(town) for town in range(12)], 300),
        }
    )
    facts = PublicFacts(SCHEMA, None, 300, "add-remove", 300, 1)

    def block() -> Block:
        return Block(raw, facts, lambda asked, values: asked.predict(SCHEMA, values))

    tight = _Changes(model, axes, scales, tuple(np.exp(generator.normal(-3, 3, 2))))
    assert np.abs(tight(block())).sum(axis=1).max() <= 1 + 1e-12
    loose = _Changes(model, axes, scales, tuple(tight.largest))
    plain = _Changes(model, axes, tuple(np.ones(len(axis) - 1) for axis in axes), (2.0, 2.0))
    back = np.concatenate([own * bound for own, bound in zip(scales, tight.largest, strict=True)])
    assert loose(block()) * back == pytest.approx(plain(block()) * 2.0, abs=1e-9)


def test_a_step_at_which_the_model_changes_little_gets_less_of_the_noise() -> None:
    outputs_of_rows = np.array([[0.1, 0.5, 0.51], [0.2, 0.6, 0.61]])
    assert step_scales(outputs_of_rows) == pytest.approx([1.0, 0.05**0.5])
    assert (step_scales(np.ones((5, 4))) == 1).all()
    rare = np.array([0.5, 0.49, 0.01])
    assert noise_against_bias(rare, np.array([1.0, 1.0])) == noise_against_bias(rare)
