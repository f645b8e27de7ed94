"""Figure 6 of "On the Privacy Risks of Model Explanations" in full: 20 targets, 1 000 members and 1 000 others of each.

The ``lime`` package explains one point in about a second, so that 40 000 points take half a day. Here its law is computed
for many points at once, where torch computes: a sample of bits, each drawn as often as it is 1 in the data; what is kept of
the point as features; ridge regression of the predicted class's probability, weighted by exp(-d^2/w^2)^(1/2). A test holds
the regression against the package's own, on the package's own sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from papers.risks_setup import Case, Rounds, attack_row, sides, signals_of
from running import Part
from vitrail.audit.signals import explanation_signals

if TYPE_CHECKING:
    from torch import Tensor

    from papers.risks_figures import Bench

SAMPLES, POINTS_AT_ONCE = 5000, 16
RIDGE, KERNEL_WIDTH = 1.0, 0.75
"""The package's: the weight of the penalty, and the width of the kernel over the root of the number of columns."""


def figure_6(bench: Bench) -> Part:
    """Variance of LIME's and SmoothGrad's explanations beside gradients and predictions, models trained on 1 000 people."""
    case = bench.case("location")
    people, count, samples = (200, 2, 100) if bench.quick else (2000, 20, SAMPLES)
    rounds = small_targets(replace(case, people=people), count, seed=6)
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for place, rows in enumerate(rounds.people):
        for name, signal in signals_of(rounds, place, bench.smooth_and_not()).items():
            found.setdefault(name, []).append(sides(signal, rounds.half))
        module = rounds.trained.modules[place]
        vectors = bit_limes(module, case.points[rows], case.points[rows], samples, place, bench.device)
        found.setdefault("lime variance", []).append(sides(explanation_signals(vectors)[0], rounds.half))
        print(f"figure 6: target {place + 1} of {count}", flush=True)
    train, test = rounds.accuracy()
    row: dict[str, object] = {"data": "location", "train": train, "test": test}
    rows = [{**row, "signal": name, **attack_row(scores)} for name, scores in found.items()]
    lime = f"the law of LimeTabularExplainer in batches: ridge, all features, categorical bits, {samples} samples"
    return Part({}, rows, {"people": f"{people} of each target, half of them members", "lime": lime})


def small_targets(case: Case, count: int, seed: int) -> Rounds:
    """Targets on random people each; with 5 010 in all they overlap."""
    generator = np.random.default_rng(seed)
    people = [generator.permutation(len(case.points))[: case.people] for _ in range(count)]
    members = [rows[: case.people // 2] for rows in people]
    return Rounds(case, replace(case.recipe, seed=seed).fit(case.points, case.labels, members), people)


def bit_limes(
    module: Callable[[Tensor], Tensor], points: np.ndarray, background: np.ndarray, samples: int, seed: int, device: str
) -> np.ndarray:
    """LIME's weights (points, columns) of the class that a torch module predicts; columns are bits."""
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    shares = torch.as_tensor(background.mean(axis=0), device=device, dtype=torch.float32)
    asked = torch.as_tensor(points, device=device, dtype=torch.float32)
    answers = []
    with torch.no_grad():
        for some in asked.split(POINTS_AT_ONCE):
            drawn = torch.rand((len(some), samples, some.shape[1]), generator=generator, device=device) < shares
            drawn[:, 0] = some.bool()  # the first of the sample is the point
            kept = (drawn == some.bool()[:, None, :]).double()
            logits = module(drawn.reshape(-1, some.shape[1]).double())
            chances = torch.softmax(logits, dim=1).unflatten(0, drawn.shape[:2])
            classes = chances[:, 0].argmax(dim=1)
            outputs = chances.gather(2, classes[:, None, None].expand(-1, samples, 1))[:, :, 0]
            answers.append(weighted_ridge(kept, outputs))
    return torch.cat(answers).cpu().numpy()


def weighted_ridge(kept: Tensor, outputs: Tensor) -> Tensor:
    """LIME's coefficients (points, columns) from ``kept`` (points, samples, columns) and ``outputs`` (points, samples)."""
    import torch

    columns = kept.shape[2]
    squares = ((kept - kept[:, :1]) ** 2).sum(dim=2)
    weights = torch.exp(-squares / (KERNEL_WIDTH**2 * columns)).sqrt()
    shares = (weights / weights.sum(dim=1, keepdim=True))[:, :, None]
    root = weights.sqrt()[:, :, None]
    x = (kept - (shares * kept).sum(dim=1, keepdim=True)) * root
    y = (outputs[:, :, None] - (shares * outputs[:, :, None]).sum(dim=1, keepdim=True)) * root
    gram = x.mT @ x + RIDGE * torch.eye(columns, dtype=x.dtype, device=x.device)
    return torch.linalg.solve(gram, x.mT @ y)[:, :, 0]
