"""Private training attacked: one noisy step at its worst neighbours, and whole runs with a canary."""

import array_api_compat.numpy as xp
import numpy as np
import pytest

import vitrail as vt
from vitrail.vault import MapTraining, noise_for, run_epsilon, train_maps, training
from vitrail.vault.training import _lengths, _Run
from vitrail.vault.training_noise import randomness_on

CONFIDENCE = 0.999999
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
    """What one step adds up, in the direction in which the canary pushes; rounded, since floats betray their low bits."""
    run = plan(1.0) if run is None else run
    features, labels = rows_with(canary)
    targets = np.eye(2, dtype=np.float32)[labels]
    made = _Run(xp, run, features, targets, _lengths(xp, features, None), None, randomness_on(features))
    maps, biases = np.zeros((1, 2, 2), np.float32), np.zeros((1, 2), np.float32)
    clip = training.safe_clip(run.clip, 1, 2, 2)
    towards = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 2
    found = [
        (made._noisy_sum(maps, biases, clip, run.noise_multiplier * run.clip)[0][0] * towards).sum() for _ in range(draws)
    ]
    return np.rint(np.array(found) * 64)


def test_one_step_leaks_what_is_promised_and_no_more():
    """Full batch, sigma 1: one row is worth mu = 1, and the worst row comes close to it."""
    found = vt.audit.mechanism(steps_drawn, (True, False), 1.0, draws=4000, confidence=CONFIDENCE)
    assert found.verdict != "refuted"
    assert found.mu_lower > 0.4  # typically 0.79, standard deviation 0.07


def test_a_missing_clip_is_caught_in_one_step(monkeypatch):
    monkeypatch.setattr(training, "safe_clip", lambda *_: np.inf)
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


def test_a_missing_clip_is_caught_from_the_trained_weights(monkeypatch):
    monkeypatch.setattr(training, "safe_clip", lambda *_: np.inf)
    found = vt.audit.mechanism(runs, (True, False), CLAIM, draws=1500, confidence=CONFIDENCE)
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
