"""CPU seconds per private step (all threads), ours and opacus's: the same model, batch of 2 000.

    python benchmarks/peers/opacus_step.py [--maps 30] [--steps 6]

The model is M maps for each of 10 classes on 784 pixels, as one linear layer and the softmax of its outputs. opacus stores a
gradient per row; the closed form does not.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time

import numpy as np
import torch

from vitrail.vault import MapTraining
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors
from vitrail.vault.training.run import _Run

BATCH, PIXELS, CLASSES, BETA, CLIP, SIGMA = 2000, 784, 10, 0.1, 1.0, 1.0


class Maps(torch.nn.Module):
    def __init__(self, n_maps: int) -> None:
        super().__init__()
        self.n_maps = n_maps
        self.linear = torch.nn.Linear(PIXELS, n_maps * CLASSES)

    def forward(self, x):
        g = self.linear(x).reshape(len(x), self.n_maps, CLASSES)
        return (torch.softmax(BETA * g, 1) * g).sum(1)


def opacus_seconds(n_maps: int, steps: int, x: np.ndarray, y: np.ndarray) -> list[float]:
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(Maps(n_maps))
    inner = torch.optim.SGD(model.parameters(), lr=0.01)
    optimiser = DPOptimizer(inner, noise_multiplier=SIGMA, max_grad_norm=CLIP, expected_batch_size=BATCH)
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    taken = []
    for _ in range(steps):
        started = time.process_time()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimiser.step()
        taken.append(time.process_time() - started)
    return taken


def our_seconds(n_maps: int, steps: int, x: np.ndarray, y: np.ndarray) -> list[float]:
    rng = np.random.default_rng(0)
    plan = MapTraining(
        n_classes=CLASSES,
        n_maps=n_maps,
        noise_multiplier=SIGMA,
        sampling_rate=1.0,
        steps=steps,
        epsilon=1e3,  # nobody is promised anything here
        delta=1e-5,
        expected_rows=BATCH,
        beta=BETA,
        clip=CLIP,
    )
    run = _Run(plan, training_vectors(x, y, CLASSES, PublicMatrices.of(None, None, PIXELS), None))
    weights = rng.uniform(-0.03, 0.03, (n_maps, CLASSES, PIXELS + 1))
    draws, taken = run.draws(weights.size, rng), []
    for _ in range(steps):
        started = time.process_time()
        weights = weights - 0.01 / BATCH * run.noisy_sum(weights, next(draws))
        taken.append(time.process_time() - started)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--maps", type=int, default=30)
    parser.add_argument("--steps", type=int, default=6)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 1, (BATCH, PIXELS)).astype(np.float32), rng.integers(CLASSES, size=BATCH)
    ours = our_seconds(given.maps, 3 * given.steps, x, y)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    theirs = opacus_seconds(given.maps, given.steps, x, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "part": "opacus",
                "n_maps": given.maps,
                "batch": BATCH,
                "ours_seconds": statistics.median(ours[1:]),
                "opacus_seconds": statistics.median(theirs[1:]),
                "speedup": statistics.median(theirs[1:]) / statistics.median(ours[1:]),
                "peak_mib_ours": before,
                "peak_mib_with_opacus": after,
            }
        )
    )


if __name__ == "__main__":
    main()
