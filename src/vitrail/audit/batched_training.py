"""The training loop of many networks at once, with its derivatives written out.

All weights lie in one flat buffer, layer by layer as (models, inputs, outputs), and so do their gradients: an optimiser's
step is a handful of passes over one array, whatever the number of networks and layers. Derivatives of a chain of matrix
products and activations are three lines per layer; automatic differentiation of the same chain took six times as long on a
CPU (``tests/audit_attacks`` checks that both agree).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from ..progress import Advance

ADAM_DECAYS = (0.9, 0.999)
TINY = {"adam": 1e-8, "adagrad": 1e-10}


@dataclass(frozen=True, slots=True)
class Descent:
    """How to descend; the meaning of every number is that of torch.optim."""

    optimizer: Literal["adam", "adagrad", "sgd"]
    activation: Literal["tanh", "relu"]
    epochs: int
    batch_size: int
    learning_rate: float
    learning_rate_decay: float
    weight_decay: float


@dataclass(slots=True)
class Weights:
    """Weights of many networks in one buffer; ``matrices`` are views of it: W1, b1, W2, b2, ..."""

    flat: Tensor
    matrices: list[Tensor]

    @classmethod
    def like(cls, models: int, widths: Sequence[int], device: str) -> Weights:
        """Zeros."""
        import torch

        shapes = []
        for inputs, outputs in pairwise(widths):
            shapes += [(models, inputs, outputs), (models, 1, outputs)]
        flat = torch.zeros(sum(math.prod(shape) for shape in shapes), device=device)
        views, start = [], 0
        for shape in shapes:
            views.append(flat[start : start + math.prod(shape)].view(shape))
            start += math.prod(shape)
        return cls(flat, views)

    @classmethod
    def glorot(cls, models: int, widths: Sequence[int], device: str, generator: Generator) -> Weights:
        """Glorot uniform weights and zero biases."""
        found = cls.like(models, widths, device)
        for matrix in found.matrices[::2]:
            reach = math.sqrt(6 / (matrix.shape[1] + matrix.shape[2]))
            matrix.uniform_(-reach, reach, generator=generator)
        return found


def descend(
    weights: Weights,
    points: Tensor,
    classes: Tensor,
    row_weights: Tensor | None,
    index: Tensor,
    how: Descent,
    generator: Generator,
    advance: Advance,
) -> None:
    """Train in place: network i on the rows ``index[i]``, every epoch in an order of its own."""
    import torch

    gradients = Weights(torch.zeros_like(weights.flat), [])
    start = 0
    for matrix in weights.matrices:
        gradients.matrices.append(gradients.flat[start : start + matrix.numel()].view(matrix.shape))
        start += matrix.numel()
    memory = [torch.zeros_like(weights.flat) for _ in range({"adam": 2, "adagrad": 1, "sgd": 0}[how.optimizer])]
    models, rows = index.shape
    taken = 0
    for _ in range(how.epochs):
        order = torch.rand((models, rows), generator=generator, device=index.device).argsort(dim=1)
        shuffled = index.gather(1, order)
        for first in range(0, rows, how.batch_size):
            batch = shuffled[:, first : first + how.batch_size].contiguous()
            flat = batch.view(-1)
            entered = points.index_select(0, flat).view(models, batch.shape[1], -1)
            counts = None if row_weights is None else row_weights.index_select(0, flat).view(batch.shape)
            into_gradients(weights, gradients, entered, classes.index_select(0, flat), counts, how.activation)
            taken += 1
            take_step(weights.flat, gradients.flat, memory, taken, how)
        advance(1)


def into_gradients(
    weights: Weights, gradients: Weights, points: Tensor, classes: Tensor, counts: Tensor | None, activation: str
) -> None:
    """The gradient of every network's mean cross-entropy over its batch; ``classes`` flat over (models, batch)."""
    import torch

    matrices = weights.matrices
    values = [points]
    for place in range(0, len(matrices), 2):
        value = torch.bmm(values[-1], matrices[place]).add_(matrices[place + 1])
        if place + 2 < len(matrices):
            value = value.tanh_() if activation == "tanh" else value.relu_()
        values.append(value)
    signal = torch.softmax(values[-1], dim=2)
    signal.view(-1, signal.shape[2]).scatter_add_(1, classes.view(-1, 1), torch.full_like(signal[..., :1], -1.0).view(-1, 1))
    signal = signal.div_(points.shape[1]) if counts is None else signal.mul_(counts[:, :, None] / points.shape[1])
    for place in range(len(matrices) - 2, -1, -2):
        before = values[place // 2]
        torch.bmm(before.transpose(1, 2), signal, out=gradients.matrices[place])
        torch.sum(signal, dim=1, keepdim=True, out=gradients.matrices[place + 1])
        if place:
            signal = torch.bmm(signal, matrices[place].transpose(1, 2))
            slope = before.square_().neg_().add_(1.0) if activation == "tanh" else before.sign_()
            signal.mul_(slope)


def take_step(weights: Tensor, gradient: Tensor, memory: list[Tensor], taken: int, how: Descent) -> None:
    """One step of the optimiser, in place, as torch.optim defines it."""
    if how.weight_decay:
        gradient.add_(weights, alpha=how.weight_decay)
    rate = how.learning_rate
    if how.optimizer == "sgd":
        weights.add_(gradient, alpha=-rate)
    elif how.optimizer == "adagrad":
        memory[0].addcmul_(gradient, gradient)
        weights.addcdiv_(
            gradient, memory[0].sqrt().add_(TINY["adagrad"]), value=-rate / (1 + (taken - 1) * how.learning_rate_decay)
        )
    else:
        first, second = ADAM_DECAYS
        memory[0].lerp_(gradient, 1 - first)
        memory[1].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = memory[1].sqrt().div_(math.sqrt(1 - second**taken)).add_(TINY["adam"])
        weights.addcdiv_(memory[0], scale, value=-rate / (1 - first**taken))
