"""The closed form against automatic differentiation and against a loop over rows, and the bound on what one row adds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitrail.vault import MapTraining, map_scores, train_maps
from vitrail.vault.map_gradients import clipped_sum, coefficients_of, safe_clip
from vitrail.vault.training import exact_products

ROWS, MAPS, CLASSES, WIDTH = 7, 3, 4, 5


def some(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    targets = np.eye(CLASSES, dtype=np.float32)[rng.integers(CLASSES, size=ROWS)]
    maps = (scale * rng.normal(size=(MAPS, CLASSES, WIDTH))).astype(np.float32)
    biases = (scale * rng.normal(size=(MAPS, CLASSES))).astype(np.float32)
    return inputs, targets, maps, biases


def row_gradient(x, target, maps, biases, beta):
    """By automatic differentiation, flat: maps then biases. ``x`` is one vector, or copies whose loss is averaged."""
    w, b = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (maps, biases))
    losses = []
    for one in np.atleast_2d(x):
        g = torch.einsum("jkp,p->jk", w, torch.tensor(one, dtype=torch.float64)) + b
        f = (torch.softmax(beta * g, 0) * g).sum(0)
        losses.append(-(torch.log_softmax(f, 0) * torch.tensor(target)).sum())
    torch.stack(losses).mean().backward()
    return np.concatenate([w.grad.numpy().ravel(), b.grad.numpy().ravel()])


def flat(found):
    return np.concatenate([np.asarray(found.maps).ravel(), np.asarray(found.biases).ravel()])


@pytest.mark.parametrize("beta", [0.0, 1 / 30, 1.0, 3.0])
def test_coefficients_are_the_derivatives_of_the_loss(beta):
    inputs, targets, maps, biases = some()
    found = coefficients_of(map_scores(inputs, maps, biases, beta), targets, beta)
    for row in range(ROWS):
        # the gradient towards the biases is the coefficients themselves
        told = row_gradient(inputs[row], targets[row], maps, biases, beta)[-MAPS * CLASSES :]
        np.testing.assert_allclose(found[row].ravel(), told, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("clip", [0.05, 0.5, 1e9])
@pytest.mark.parametrize("as_torch", [False, True])
def test_the_clipped_sum_is_that_of_a_loop_over_rows(clip, as_torch):
    inputs, targets, maps, biases = some(1)
    lengths = (inputs**2).sum(axis=1, keepdims=True)
    loop = np.zeros(MAPS * CLASSES * (WIDTH + 1))
    for row in range(ROWS):
        one = row_gradient(inputs[row], targets[row], maps, biases, 0.7)
        loop += one * min(1, clip / np.linalg.norm(one))
    arrays = (inputs, targets, lengths, maps, biases)
    if as_torch:
        arrays = tuple(map(torch.from_numpy, arrays))
    np.testing.assert_allclose(flat(clipped_sum(*arrays, beta=0.7, clip=clip)), loop, rtol=1e-3, atol=1e-5)


def test_copies_of_a_row_are_averaged_before_the_clip():
    rng = np.random.default_rng(2)
    _, targets, maps, biases = some(2)
    copies = rng.normal(size=(ROWS, 3, WIDTH)).astype(np.float32)
    gram = copies @ copies.transpose(0, 2, 1)
    loop = np.zeros(MAPS * CLASSES * (WIDTH + 1))
    for row in range(ROWS):
        one = row_gradient(copies[row], targets[row], maps, biases, 1.0)
        loop += one * min(1, 0.3 / np.linalg.norm(one))
    found = flat(clipped_sum(copies, targets, gram, maps, biases, beta=1.0, clip=0.3))
    np.testing.assert_allclose(found, loop, rtol=1e-3, atol=1e-5)


def test_a_projection_per_map_is_counted_with_its_own_length():
    inputs, targets, _, biases = some(3)
    rng = np.random.default_rng(3)
    projections = rng.normal(size=(MAPS, 2, WIDTH)).astype(np.float32)
    small = rng.normal(size=(MAPS, CLASSES, 2)).astype(np.float32)
    acting = small @ projections
    lengths = np.stack([((inputs @ projection.T) ** 2).sum(axis=1) for projection in projections], axis=1)
    for row in range(ROWS):
        here = slice(row, row + 1)
        found = clipped_sum(inputs[here], targets[here], lengths[here], acting, biases, beta=1.0, clip=0.2)
        in_small = found.maps @ projections.transpose(0, 2, 1)  # what gets noise, and what is bounded
        assert np.linalg.norm(np.concatenate([in_small.ravel(), found.biases.ravel()])) <= 0.2 * (1 + 1e-5)


LARGE = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=150, deadline=None)
@given(
    x=st.lists(LARGE, min_size=WIDTH, max_size=WIDTH),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 1e3, 1e8]),
    beta=st.sampled_from([0.0, 1 / 30, 1.0, 50.0]),
    clip=st.sampled_from([1e-3, 1.0, 10.0]),
    label=st.integers(-1, CLASSES),
    n_copies=st.sampled_from([1, 4]),
)
def test_no_row_moves_the_sum_further_than_clip(x, seed, scale, beta, clip, label, n_copies):
    """Whatever the row, the weights and the label: overflow, a label that does not exist, copies that cancel."""
    _, _, maps, biases = some(seed, scale)
    target = (np.arange(CLASSES) == label).astype(np.float32)[None]
    row = np.array(x, dtype=np.float32)[None]
    if n_copies > 1:
        signs = np.random.default_rng(seed).choice([-1, 1], size=(1, n_copies, WIDTH)).astype(np.float32)
        row = signs * row[:, None, :]
        lengths = row @ row.transpose(0, 2, 1)
    else:
        lengths = (row**2).sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        lowered = safe_clip(clip, MAPS, CLASSES, WIDTH, n_copies)
        found = flat(clipped_sum(row, target, lengths, maps, biases, beta=beta, clip=lowered)).astype(np.float64)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= clip


def test_an_unclipped_sum_would_pass_the_bound():
    """The bound is the clip's doing: without it the same row is far outside."""
    inputs, targets, maps, biases = some(4)
    far = 1e3 * inputs[:1]
    lengths = (far**2).sum(axis=1, keepdims=True)
    wrong = np.roll(targets[:1], 1)
    norms = [
        max(
            np.linalg.norm(flat(clipped_sum(far, t, lengths, maps, biases, beta=0.1, clip=clip)))
            for t in (targets[:1], wrong)
        )
        for clip in (1.0, np.inf)
    ]
    assert norms[0] <= 1.0 + 1e-5
    assert norms[1] > 100


def test_a_private_run_takes_no_generator_and_no_infinite_clip():
    fixed = {
        "n_classes": 2,
        "n_maps": 1,
        "sampling_rate": 0.5,
        "steps": 1,
        "epsilon": 1.0,
        "delta": 1e-5,
        "expected_rows": 1,
    }
    run = MapTraining(**fixed, noise_multiplier=1.0)
    with pytest.raises(ValueError, match="hides nothing"):
        train_maps(run, np.zeros((2, 2), np.float32), np.zeros(2, np.int64), generator=np.random.default_rng(0))
    with pytest.raises(ValueError, match="finite, positive clip"):
        MapTraining(**fixed, noise_multiplier=1.0, clip=np.inf)
    with pytest.raises(ValueError, match="positive noise_multiplier"):
        MapTraining(**fixed, noise_multiplier=0.0)


@pytest.mark.parametrize("size", [1e2, 1e3, 1e4, 1e5])
def test_copies_that_cancel_are_clipped_all_the_same(size):
    """What two copies leave of each other is smaller than the rounding of its norm: a row may hide behind that."""
    rng, clip = np.random.default_rng(0), 1e-3
    for _ in range(200):
        z = rng.normal(size=6)
        z *= size / np.linalg.norm(z)
        x = np.stack([z, rng.normal(size=6) * size * 1e-6 - z]).astype(np.float32)[None]
        maps, biases = (rng.normal(size=(1, 2, 6)) * 1e-9).astype(np.float32), np.zeros((1, 2), np.float32)
        gram = x @ x.transpose(0, 2, 1)
        target = np.array([[1.0, 0.0]], np.float32)
        found = clipped_sum(x, target, gram, maps, biases, beta=1.0, clip=safe_clip(clip, 1, 2, 6, 2))
        assert np.linalg.norm(flat(found).astype(np.float64)) <= clip


def test_a_row_that_overflows_shows_in_no_weight():
    rng = np.random.default_rng(1)
    features = rng.uniform(size=(50, 3)).astype(np.float32)
    features[7, 1] = np.inf
    training = MapTraining(
        n_classes=2, n_maps=2, noise_multiplier=1.0, sampling_rate=1.0, steps=3, epsilon=10.0, delta=1e-5, expected_rows=50
    )
    found = train_maps(training, features, rng.integers(0, 2, 50))
    assert np.isfinite(found.maps).all()
    assert np.isfinite(found.biases).all()


def test_products_are_exact_whatever_torch_was_told():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with exact_products(torch.zeros(1)):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
