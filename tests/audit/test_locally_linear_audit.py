"""Private training attacked: one noisy step at its worst neighbours, and whole runs with a canary."""

import dataclasses

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.vault import MapTraining, noise_for, run_epsilon, train_maps
from vitrail.vault.training import map_gradients
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors
from vitrail.vault.training.run import _Run

CROWD = np.zeros((6, 2), np.float32)
CANARY = np.array([[1e4, -1e4]], np.float32)  # its gradient is ten thousand times as long as the clip


def plan(sigma, steps=1, rate=1.0, **more):
    return MapTraining(
        n_classes=2,
        n_maps=1,
        noise_multiplier=sigma,
        sampling_rate=rate,
        steps=steps,
        epsilon=99.0,
        delta=1e-5,
        expected_rows=6.0,
        clip=0.5,
        start=1e-6,
        **more,
    )


def rows_with(canary):
    features = np.concatenate([CROWD, CANARY]) if canary else CROWD
    labels = np.zeros(len(features), np.int64)
    labels[6:] = 1
    return features, labels


def steps_drawn(canary, draws, run=None):
    """What one step adds up, in the direction in which the canary pushes: integers in cells, as they are released."""
    run = plan(1.0) if run is None else run
    made = _Run(run, training_vectors(*rows_with(canary), 2, PublicMatrices.of(None, None, 2), None))
    weights = np.zeros((1, 2, 3))
    towards = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]]) / 2
    many = _Run(dataclasses.replace(run, steps=draws), made.rows)
    return np.array(
        [(made.noisy_sum(weights, drawn)[0] * towards).sum() for drawn in many.draws(6, np.random.default_rng())]
    )


def no_clip(monkeypatch):
    monkeypatch.setattr(map_gradients, "_shrinking", lambda xp, norms, bound: np.ones_like(norms))


def test_one_step_leaks_no_more_than_is_promised():
    """Full batch, sigma 1: one row is worth mu = 1. False alarms: 1e-9."""
    found = vt.audit.mechanism(steps_drawn, (True, False), 1.0, draws=4000, confidence=CONFIDENCE)
    assert found.verdict != "refuted"


@planted_noise()
def test_the_worst_row_comes_close_to_what_is_promised():
    assert vt.audit.mechanism(steps_drawn, (True, False), 1.0, draws=4000, confidence=CONFIDENCE).mu_lower > 0.5


@planted_noise()
def test_a_missing_clip_is_caught_in_one_step(monkeypatch):
    no_clip(monkeypatch)
    found = vt.audit.mechanism(steps_drawn, (True, False), 1.0, draws=2000, confidence=CONFIDENCE)
    assert found.verdict == "refuted"


def runs(canary, draws, steps=3):
    """Whole runs; what leaves is the final weights. The canary's own margin is the best thing to look at."""
    run = plan(noise_for(1.0, 1e-5, 1.0, steps), steps=steps, learning_rate=0.1, average=1.0)
    margins = []
    for _ in range(draws):
        maps = train_maps(run, *rows_with(canary)).maps[0]
        margins.append(float((maps[1] - maps[0]) @ CANARY[0]) / 1e4)
    return np.rint(np.array(margins) * 1e3)


CLAIM = vt.Guarantee(1.0, 1e-5, 0.0)


def test_whole_runs_with_a_canary_keep_their_promise():
    found = vt.audit.mechanism(runs, (True, False), CLAIM, draws=1500, confidence=CONFIDENCE)
    assert found.verdict != "refuted"


@planted_noise()
def test_a_missing_clip_is_caught_from_the_trained_weights(monkeypatch):
    no_clip(monkeypatch)
    found = vt.audit.mechanism(runs, (True, False), CLAIM, draws=1500, confidence=CONFIDENCE)
    assert found.verdict == "refuted"


# --- a projection that every row vanishes under, which once enlarged the rounding of a float sum ------------------------

HIDING = np.random.default_rng(11).uniform(size=1000).astype(np.float32)
HIDDEN = np.array([[[3 * 2.0**18, -(2.0**18)]]], np.float32)


def hiding_rows(canary):
    """Column b is three times column a, so that (3, -1) sees nothing of anybody."""
    rows, labels = np.stack([HIDING, 3 * HIDING], axis=1).astype(np.float32), np.arange(1000) % 2
    return (rows, labels) if canary else (rows[1:], labels[1:])


def hidden_steps(canary, draws):
    """One step's noisy sums of the projected weight, in cells."""
    run = dataclasses.replace(plan(1.0), projections=HIDDEN)
    features, labels = hiding_rows(canary)
    made = _Run(run, training_vectors(features, labels, 2, PublicMatrices.of(HIDDEN, None, 2), None))
    many, weights = _Run(dataclasses.replace(run, steps=draws), made.rows), np.zeros((1, 2, 2))
    return np.array([made.noisy_sum(weights, drawn)[0, 0, 0] for drawn in many.draws(4, np.random.default_rng())])


def test_a_projection_that_kills_every_row_leaks_nothing():
    found = vt.audit.mechanism(hidden_steps, (True, False), 1.0, draws=2000, confidence=CONFIDENCE)
    assert found.verdict != "refuted"


@planted_noise()
def test_sums_of_floats_that_are_projected_afterwards_are_caught(monkeypatch):
    """Planted back: clipped by what the projection leaves, summed in 32 bits, projected then. Rounding is all it shows."""
    from vitrail.vault.training import run as training

    seen = {}

    def float_sum(rows, weights, *, beta, clip, cell_bits):
        features, labels = seen["rows"]
        signs = (0.5 - labels).astype(np.float32)  # d loss / d g at zero weights; |R x| = 0, so nothing is clipped
        towards = np.stack([-signs, signs]) @ features @ HIDDEN[0].T
        cells = np.zeros(weights.shape)
        cells[0, :, 0] = towards[:, 0] * 2.0**cell_bits / clip
        return np.rint(cells).astype(np.int64)

    def planted(canary, draws):
        seen["rows"] = hiding_rows(canary)
        return hidden_steps(canary, draws)

    monkeypatch.setattr(training, "clipped_cells", float_sum)
    found = vt.audit.mechanism(planted, (True, False), 1.0, draws=2000, confidence=CONFIDENCE)
    assert found.verdict == "refuted"


@pytest.mark.slow
def test_a_sampled_step_is_no_worse_than_its_accountant_says():
    """Rate 1/2, sigma 1: the audited epsilon of a step stays below that of the privacy loss distribution."""
    run = plan(1.0, rate=0.5)
    epsilon = run_epsilon(1.0, 0.5, 1, 1e-5)
    found = vt.audit.mechanism(
        lambda canary, draws: steps_drawn(canary, draws, run),
        (True, False),
        vt.Guarantee(epsilon, 1e-5, 0.0),
        draws=20_000,
        confidence=CONFIDENCE,
    )
    assert found.verdict != "refuted"
