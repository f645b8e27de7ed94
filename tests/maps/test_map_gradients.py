"""The closed form against automatic differentiation and a loop over rows; the bound on what one row adds, in integers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.errors import InvalidInput
from vitrail.vault import MapTraining, map_scores, train_maps
from vitrail.vault.training.map_gradients import clipped_cells, coefficients_of, rows_that_stay_exact
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors
from vitrail.vault.training.run import StepDraws, _Run

ROWS, MAPS, CLASSES, WIDTH = 7, 3, 4, 5
BITS = 32


def some(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    labels = rng.integers(CLASSES, size=ROWS)
    return inputs, labels, scale * rng.normal(size=(MAPS, CLASSES, WIDTH + 1))


def row_gradient(vectors, label, weights, beta):
    """By automatic differentiation. ``vectors``: one vector for all maps, one per map (M, P), or copies (A, 1, P)."""
    w = torch.tensor(weights, requires_grad=True)
    losses = []
    for copy in np.reshape(vectors, (-1, *np.shape(vectors)[-2:])) if np.ndim(vectors) == 3 else [np.atleast_2d(vectors)]:
        u = torch.tensor(np.concatenate([copy, np.ones((len(copy), 1))], axis=1), dtype=torch.float64)
        g = (w * u[:, None, :]).sum(2)
        f = (torch.softmax(beta * g, 0) * g).sum(0)
        losses.append(-torch.log_softmax(f, 0)[label])
    torch.stack(losses).mean().backward()
    return w.grad.numpy()


def cells(features, labels, weights, *, beta=1.0, clip=1.0, projections=None, filters=None, row_length=None, torched=False):
    features, labels = np.asarray(features, np.float32), np.asarray(labels, np.int64)
    if torched:
        where = "cpu" if torched is True else torched
        features, labels, weights = (torch.from_numpy(a).to(where) for a in (features, labels, weights))
    matrices = PublicMatrices.of(projections, filters, features.shape[1])
    with np.errstate(all="ignore"):
        rows = training_vectors(features, labels, weights.shape[1], matrices, row_length).at(slice(None))
        found = clipped_cells(rows, weights, beta=beta, clip=clip, cell_bits=BITS)
    return np.asarray(found.cpu() if torched else found)


def length_in_clips(found):
    """The exact length of integers, in units of the bound: no float is trusted."""
    squared = sum(int(v) ** 2 for v in np.asarray(found).ravel())
    return math.isqrt(squared) / 2.0**BITS if squared > 4**BITS else math.sqrt(squared / 4**BITS)


def within_bound(found):
    return sum(int(v) ** 2 for v in np.asarray(found).ravel()) <= 4**BITS


# --- what is computed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.0, 1 / 30, 1.0, 3.0])
def test_coefficients_are_the_derivatives_of_the_loss(beta):
    inputs, labels, weights = some()
    targets = np.eye(CLASSES)[labels]
    scores = map_scores(inputs.astype(np.float64), weights[:, :, :-1], weights[:, :, -1], beta)
    found = coefficients_of(scores, targets, beta)
    for row in range(ROWS):
        told = row_gradient(inputs[row], labels[row], weights, beta)[:, :, -1]  # towards biases: the coefficients
        np.testing.assert_allclose(found[row], told, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("clip", [0.05, 0.5, 100.0])
@pytest.mark.parametrize("torched", [False, True])
def test_the_clipped_sum_is_that_of_a_loop_over_rows(clip, torched):
    inputs, labels, weights = some(1)
    loop = np.zeros(weights.shape)
    for row in range(ROWS):
        one = row_gradient(inputs[row], labels[row], weights, 0.7)
        loop += one * min(1, clip / np.linalg.norm(one))
    found = cells(inputs, labels, weights, beta=0.7, clip=clip, torched=torched) * (clip / 2.0**BITS)
    np.testing.assert_allclose(found, loop, rtol=1e-2, atol=2e-4 * np.abs(loop).max())


def test_copies_of_a_row_are_averaged_before_the_clip():
    rng = np.random.default_rng(2)
    inputs, labels, weights = some(2)
    filters = rng.normal(size=(WIDTH, 3, WIDTH)).astype(np.float32)
    loop = np.zeros(weights.shape)
    for row in range(ROWS):
        copies = np.stack([filters[:, a] @ inputs[row] for a in range(3)])[:, None, :]
        one = row_gradient(copies, labels[row], weights, 1.0)
        loop += one * min(1, 0.3 / np.linalg.norm(one))
    found = cells(inputs, labels, weights, clip=0.3, filters=filters) * (0.3 / 2.0**BITS)
    np.testing.assert_allclose(found, loop, rtol=1e-2, atol=5e-4 * np.abs(loop).max())


def test_each_map_has_its_own_projection():
    inputs, labels, _ = some(3)
    rng = np.random.default_rng(3)
    projections = rng.normal(size=(MAPS, 2, WIDTH)).astype(np.float32)
    weights = rng.normal(size=(MAPS, CLASSES, 3))
    loop = np.zeros(weights.shape)
    for row in range(ROWS):
        one = row_gradient(projections @ inputs[row], labels[row], weights, 1.0)
        loop += one * min(1, 0.2 / np.linalg.norm(one))
    found = cells(inputs, labels, weights, clip=0.2, projections=projections) * (0.2 / 2.0**BITS)
    np.testing.assert_allclose(found, loop, rtol=1e-2, atol=5e-4 * np.abs(loop).max())


# --- the bound ---------------------------------------------------------------------------------------------------------

LARGE = st.floats(width=32, allow_nan=True, allow_infinity=True)


@settings(max_examples=250, deadline=None)
@given(
    x=st.lists(st.one_of(LARGE, st.floats(-1e6, 1e6, width=32)), min_size=WIDTH, max_size=WIDTH),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.0, 1e-9, 1e-3, 1.0, 1e3, 1e8, 1e30, 1e200]),
    beta=st.sampled_from([0.0, 1 / 30, 1.0, 50.0, 1e6]),
    clip=st.sampled_from([1e-12, 1e-6, 1.0, 10.0, 1e12]),
    label=st.integers(-1, CLASSES),
    kind=st.sampled_from(["plain", "copies", "projections"]),
    row_length=st.sampled_from([None, 1e-6, 3.0, 1e6]),
)
def test_no_row_moves_the_sum_further_than_clip(x, seed, scale, beta, clip, label, kind, row_length):
    """Whatever the row, the weights and the label: overflow, a label that does not exist, copies that cancel."""
    rng = np.random.default_rng(seed)
    weights = scale * rng.normal(size=(MAPS, CLASSES, WIDTH + 1))
    public = {}
    if kind == "copies":
        public["filters"] = (rng.choice([-1, 1], (1, 4, 1)) * rng.normal(size=(WIDTH, 1, WIDTH))).astype(np.float32)
    elif kind == "projections":
        public["projections"] = (10.0 ** rng.uniform(-6, 5, (MAPS, 1, 1)) * rng.normal(size=(MAPS, WIDTH, WIDTH))).astype(
            np.float32
        )
    assert within_bound(cells([x], [label], weights, beta=beta, clip=clip, row_length=row_length, **public))


def test_long_rows_use_the_whole_bound():
    """The bound is attained, so a test against half of it would fail; and it is the clip's doing."""
    inputs, labels, weights = some(4)
    found = cells(1e3 * inputs[:1], (labels[:1] + 1) % CLASSES, weights, beta=0.1)
    assert 0.999 < length_in_clips(found) <= 1
    free = cells(1e3 * inputs[:1], (labels[:1] + 1) % CLASSES, weights, beta=0.1, clip=1e4)
    assert length_in_clips(free) * 1e4 > 100


@pytest.mark.parametrize("size", [1e2, 1e3, 1e4, 1e5])
def test_copies_that_cancel_are_clipped_all_the_same(size):
    """What two copies leave of each other is smaller than the rounding of its norm: a row may hide behind that."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        z = rng.normal(size=6)
        filters = np.stack([np.eye(6), rng.normal(size=(6, 6)) * 1e-6 - np.eye(6)], axis=1).astype(np.float32)
        weights = rng.normal(size=(1, 2, 7)) * 1e-9
        assert within_bound(cells([z * size / np.linalg.norm(z)], [0], weights, clip=1e-3, filters=filters))


# --- other rows --------------------------------------------------------------------------------------------------------


def shapes(kind, rng, n_maps, width):
    if kind == "copies":
        return {"filters": rng.normal(size=(width, 5, width)).astype(np.float32)}
    if kind == "projections":
        return {"projections": rng.normal(size=(n_maps, 9, width)).astype(np.float32)}
    return {}


@pytest.mark.parametrize("kind", ["plain", "copies", "projections"])
@pytest.mark.parametrize(
    "torched", [False, True, pytest.param("cuda", marks=pytest.mark.gpu)], ids=["numpy", "torch", "accelerator"]
)
def test_a_row_adds_the_same_integers_whatever_stands_beside_it(kind, torched):
    """The sum less a row is the sum minus what the row adds alone, exactly: removed, permuted, split, on any library."""
    rng, n_maps, n_classes, width, count = np.random.default_rng(5), 6, 3, 41, 403
    public = shapes(kind, rng, n_maps, width)
    inner = 9 if kind == "projections" else width
    rows = rng.normal(size=(count, width)) * np.exp(rng.normal(0, 3, (count, 1)))
    labels = rng.integers(n_classes, size=count)
    weights = rng.normal(size=(n_maps, n_classes, inner + 1))

    def total(which):
        return cells(rows[which], labels[which], weights, clip=0.4, row_length=None, torched=torched, **public)

    everything = np.arange(count)
    whole = total(everything)
    assert np.abs(whole).max() > 2**BITS  # so large that single-precision sums would round
    assert np.array_equal(total(rng.permutation(count)), whole)
    for row in (0, 7, 200, 402):
        assert np.array_equal(total(np.delete(everything, row)) + total([row]), whole)
    assert np.array_equal(sum(total(part) for part in np.array_split(everything, [1, 64, 65, 300])), whole)
    assert np.array_equal(cells(rows, labels, weights, clip=0.4, torched=not torched, **public), whole)


def test_blocks_of_a_step_are_added_exactly(monkeypatch):
    from vitrail.vault.training import run as training

    rng = np.random.default_rng(6)
    plan = MapTraining(
        n_classes=3, n_maps=2, noise_multiplier=1.0, sampling_rate=1.0, steps=1, epsilon=9.0, delta=1e-5, expected_rows=5
    )
    features, labels = rng.normal(size=(700, 4)).astype(np.float32), rng.integers(3, size=700)
    rows = training_vectors(features, labels, 3, PublicMatrices.of(None, None, 4), None)
    weights, silence = rng.normal(size=(2, 3, 5)), np.zeros(30, np.int64)
    found = []
    for numbers in (1, 2**20):
        monkeypatch.setattr(training, "BLOCK_NUMBERS", numbers)
        found.append(_Run(plan, rows).noisy_sum(weights, StepDraws(None, silence)))
    assert np.array_equal(*found)


@pytest.mark.parametrize("kind", ["plain", "copies", "projections"])
def test_rows_that_do_not_fit_are_made_again_with_the_same_bits(kind, monkeypatch):
    """What a step sums is the same whether vectors were kept or are made for it."""
    from vitrail.vault.training import row_vectors as vectors

    rng = np.random.default_rng(10)
    matrices = PublicMatrices.of(*(shapes(kind, rng, 2, 7).get(name) for name in ("projections", "filters")), 7)
    features, labels = rng.normal(size=(900, 7)).astype(np.float32), rng.integers(3, size=900)
    plan = MapTraining(
        n_classes=3, n_maps=2, noise_multiplier=1.0, sampling_rate=0.5, steps=1, epsilon=9.0, delta=1e-5, expected_rows=5
    )
    kept = training_vectors(features, labels, 3, matrices, 2.0)
    monkeypatch.setattr(vectors, "MOST_NUMBERS_KEPT", 0)
    made_again = training_vectors(features, labels, 3, matrices, 2.0)
    assert made_again.kept is None
    weights = rng.normal(size=(2, 3, kept.width))
    for chosen in (None, np.flatnonzero(rng.random(900) < 0.5)):
        draws = StepDraws(chosen, np.zeros(weights.size, np.int64))
        found = [_Run(plan, rows).noisy_sum(weights, draws) for rows in (kept, made_again)]
        assert np.array_equal(*found)
        assert np.abs(found[0]).max() > 1


def test_blocks_are_no_longer_than_stays_exact():
    assert rows_that_stay_exact(36, 1) * 2**36 <= 2**53
    assert rows_that_stay_exact(32, 5) * 5 * 16 * 2**32 <= 2**53


# --- what the audit found ----------------------------------------------------------------------------------------------


def moved_by_one_row(rows, labels, weights, **public):
    """|S(D) - S(D')| in clips, D' without its first row."""
    whole = cells(rows, labels, weights, **public).astype(object)
    return length_in_clips(whole - cells(rows[1:], labels[1:], weights, **public).astype(object))


def test_a_projection_that_kills_every_row_has_nothing_to_amplify():
    """Column b = 3a and R = (3, -1) times something: R x is 0, the clip sees nothing, and nor does the sum."""
    a = np.random.default_rng(7).uniform(size=1000)
    rows, labels = np.stack([a, 3 * a], axis=1), np.arange(1000) % 2
    projections = np.array([[[3 * 2.0**18, -(2.0**18)]]], np.float32)
    weights = np.zeros((1, 2, 2))
    assert moved_by_one_row(rows, labels, weights, projections=projections) <= 1
    with pytest.raises(InvalidInput, match="beyond 1e"):
        MapTraining(
            n_classes=2,
            n_maps=1,
            noise_multiplier=4.0,
            sampling_rate=1.0,
            steps=1,
            epsilon=1.0,
            delta=1e-5,
            expected_rows=1000,
            projections=[[[3 * 2.0**23, -(2.0**23)]]],
        )


def test_many_rows_do_not_add_up_to_a_rounding_error():
    rng = np.random.default_rng(8)
    rows, labels = rng.uniform(size=(131_000, 8)), rng.integers(2, size=131_000)
    assert moved_by_one_row(rows, labels, np.zeros((3, 2, 9)), clip=0.01) <= 1


def test_a_norm_does_not_underflow():
    weights = np.zeros((1, 2, 2))
    assert within_bound(cells([[1e19]], [0], weights, clip=1e-6))
    assert moved_by_one_row([[1e19], [0.5]], [0, 1], weights, clip=1e-6) <= 1


def test_a_long_row_near_the_null_space_of_its_projection_stays_inside():
    rng = np.random.default_rng(9)
    projections = rng.normal(size=(2, 3, 8)).astype(np.float32)
    null = np.linalg.svd(projections.reshape(6, 8))[2][-1]
    rows = np.concatenate([[1e7 * null], rng.normal(size=(500, 8))])
    weights = 0.1 * rng.normal(size=(2, 3, 4))
    assert moved_by_one_row(rows, rng.integers(3, size=501), weights, projections=projections) <= 1


# --- refusals ----------------------------------------------------------------------------------------------------------

FIXED = {
    "n_classes": 2,
    "n_maps": 1,
    "sampling_rate": 0.5,
    "steps": 1,
    "epsilon": 1.0,
    "delta": 1e-5,
    "expected_rows": 1,
    "noise_multiplier": 1.0,
}


def test_a_private_run_takes_no_generator_and_no_infinite_clip():
    run = MapTraining(**FIXED)
    with pytest.raises(ValueError, match="hides nothing"):
        train_maps(run, np.zeros((2, 2), np.float32), np.zeros(2, np.int64), generator=np.random.default_rng(0))
    with pytest.raises(ValueError, match="finite, positive clip"):
        MapTraining(**FIXED, clip=np.inf)
    with pytest.raises(ValueError, match="positive noise_multiplier"):
        MapTraining(**{**FIXED, "noise_multiplier": 0.0})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"clip": 1e-20}, "clip"),
        ({"row_length": 1e9}, "row_length"),
        ({"row_length": float("nan")}, "row_length"),
        ({"beta": float("inf")}, "beta"),
        ({"projections": np.ones((2, 3, 4))}, "one entry per map"),
        ({"projections": np.full((1, 3, 4), np.nan)}, "no numbers"),
        ({"filters": np.full((1, 3, 4), 1e7)}, "beyond"),
        ({"filters": "wide"}, "array of numbers"),
        ({"filters": np.ones((2, 1, 4)), "projections": np.ones((1, 3, 4))}, "do not go together"),
        ({"steps": 0}, "steps"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"schedule": "never"}, "schedule"),
    ],
)
def test_what_cannot_be_bounded_is_refused(changes, says):
    with pytest.raises(InvalidInput, match=says):
        MapTraining(**{**FIXED, **changes})


def test_a_plan_cannot_be_changed_after_it_was_checked():
    projections = np.ones((1, 3, 4), np.float32)
    run = MapTraining(**FIXED, projections=projections)
    projections[:] = 1e30
    assert (run.projections == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        run.projections[:] = 1e30


def test_a_row_that_overflows_shows_in_no_weight():
    rng = np.random.default_rng(1)
    features = rng.uniform(size=(50, 3)).astype(np.float32)
    labels = rng.integers(0, 2, 50)
    weights = rng.normal(size=(2, 2, 4))
    strange = features.copy()
    strange[7, 1] = np.inf
    assert np.array_equal(cells(strange, labels, weights), cells(np.delete(features, 7, 0), np.delete(labels, 7), weights))
