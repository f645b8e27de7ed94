"""Where the paper on private predictions needs mending, in numbers (docs/errata.md): what its clip of 0.001 bounds.

Its public code takes the gradient of a batch's *mean* loss, reads each example's share off it and clips that. The share of
an example is its own gradient divided by the size of the batch.
"""

import numpy as np
import torch

from vitrail.vault.training.map_gradients import clipped_cells
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors

BATCH, MAPS, CLASSES, WIDTH, BETA = 500, 3, 4, 6, 1 / 30
CLIP = 0.001
BITS = 32


def shares(features, labels, weights):
    """Of the gradient of the mean loss, by automatic differentiation: (batch, maps, classes, width + 1)."""
    u = torch.cat([torch.tensor(features, dtype=torch.float64), torch.ones(BATCH, 1, dtype=torch.float64)], dim=1)
    g = torch.einsum("mkw,nw->nmk", torch.tensor(weights), u).requires_grad_()
    scores = (torch.softmax(BETA * g, dim=1) * g).sum(dim=1)
    torch.nn.functional.cross_entropy(scores, torch.tensor(labels)).backward()
    return (g.grad[:, :, :, None] * u[:, None, None, :]).numpy()


def test_a_clip_of_the_mean_loss_is_500_times_as_much_per_example():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    features *= rng.uniform(0, 1, (BATCH, 1)).astype(np.float32)
    labels, weights = rng.integers(CLASSES, size=BATCH), 2.0 * rng.normal(size=(MAPS, CLASSES, WIDTH + 1))
    theirs = shares(features, labels, weights)
    norms = np.linalg.norm(theirs.reshape(BATCH, -1), axis=1)
    assert 0.1 < np.mean(norms < CLIP) < 0.9  # some examples are clipped, some are not
    assert np.mean(BATCH * norms < CLIP) == 0  # a clip of 0.001 per example would cut them all
    clipped = (theirs * np.minimum(1, CLIP / norms)[:, None, None, None]).sum(axis=0)

    rows = training_vectors(features, labels, CLASSES, PublicMatrices.of(None, None, WIDTH), None).at(slice(None))
    per_example = BATCH * CLIP
    ours = np.asarray(clipped_cells(rows, weights, beta=BETA, clip=per_example, cell_bits=BITS)) * per_example / 2.0**BITS
    assert per_example == 0.5
    np.testing.assert_allclose(BATCH * clipped, ours, rtol=1e-2, atol=1e-3 * np.abs(ours).max())
