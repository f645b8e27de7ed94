"""DPC of "Differentially Private Counterfactuals via Functional Mechanism" as published: a baseline, not a product.

Written from the paper. Its claims do not hold (docs/errata.md): the polynomial basis of eq. 8 contains the rows themselves,
so noise on the coefficients does not hide them, and the prototypes of eq. 14 average the encodings of raw rows once more,
without any noise. Its epsilon is what it claims.

- *Autoencoder* (eq. 6): h = s(W^T x), xhat = s(W h), s the sigmoid, one hidden layer of K units.
- *Perturbed objective* (eq. 11-13): coefficients x_i^2, -2 x_i and 1 of the products of g(x, w_p), each summed over rows,
  get Lap(4 (K + 1) / epsilon). Per row that is noise / n on the coefficients; the basis keeps its rows.
- *Prototypes* (eq. 14): the mean of h over the rows of each class, exactly.
- *Search* (eq. 15-18): minimise alpha cross-entropy + beta |dec(rho + d) - q| + gamma |d| by Adam from d = 0, for a torch
  module that returns class probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(values, -40, 40)))


def sensitivity(hidden: int) -> float:
    """Eq. 13, as printed; the truth is up to d + 4 d K."""
    return 4.0 * (hidden + 1)


@dataclass(frozen=True)
class PublishedDPC:
    """A trained autoencoder and its class prototypes."""

    weights: np.ndarray
    prototypes: np.ndarray

    def encode(self, rows: np.ndarray) -> np.ndarray:
        return sigmoid(rows @ self.weights)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        return sigmoid(codes @ self.weights.T)


def published_dpc(
    rows: np.ndarray,
    classes: np.ndarray,
    n_classes: int,
    epsilon: float,
    rng: np.random.Generator,
    *,
    hidden: int = 32,
    epochs: int = 300,
    rate: float = 0.05,
) -> PublishedDPC:
    """Train on the perturbed objective by Adam on whole batches; then average the encodings of each class.

    Parameters
    ----------
    rows : array (rows, features)
        Encoded, in [0, 1].
    classes : array of int (rows,)
        The class of each.
    """
    n, features = rows.shape
    scale = sensitivity(hidden) / epsilon / max(n, 1)
    on_linear = rng.laplace(0.0, scale, features)  # -2 x_i, as a mean over rows
    on_square = 1 + rng.laplace(0.0, scale)
    weights = rng.normal(0.0, 0.1, (features, hidden))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, epochs + 1 if n else 1):
        h = sigmoid(rows @ weights)
        out = sigmoid(h @ weights.T)
        by_out = (2 * max(on_square, 0.1) * out - 2 * rows + on_linear) / n
        by_pre = by_out * out * (1 - out)
        by_h = (by_pre @ weights) * h * (1 - h)
        gradient = by_pre.T @ h + rows.T @ by_h
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights = weights - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    codes = sigmoid(rows @ weights)
    prototypes = np.zeros((n_classes, hidden))
    for place in range(n_classes):
        mine = classes == place
        if mine.any():
            prototypes[place] = codes[mine].mean(axis=0)
    return PublishedDPC(weights, prototypes)


def published_search(
    dpc: PublishedDPC,
    module: object,
    queries: np.ndarray,
    wanted: np.ndarray,
    *,
    alpha: float = 1.0,
    beta: float = 0.5,
    gamma: float = 0.1,
    steps: int = 300,
    rate: float = 0.05,
    begin: np.ndarray | None = None,
) -> np.ndarray:
    """Eq. 18 from the prototype; features in [0, 1], not yet on any schema, as in the paper.

    ``begin``: where d starts, if not at 0: other answers to the same query.
    """
    import torch

    weights = torch.as_tensor(dpc.weights, dtype=torch.float32)
    start = torch.as_tensor(dpc.prototypes[wanted], dtype=torch.float32)
    q = torch.as_tensor(queries, dtype=torch.float32)
    place = torch.as_tensor(wanted, dtype=torch.int64)
    moved = (torch.zeros_like(start) if begin is None else torch.as_tensor(begin, dtype=torch.float32)).requires_grad_(True)
    optimizer = torch.optim.Adam([moved], lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        x = torch.sigmoid((start + moved) @ weights.T)
        said = module(x)  # type: ignore[operator]
        said = (
            torch.stack([1 - said.reshape(-1), said.reshape(-1)], dim=1) if said.reshape(len(x), -1).shape[1] == 1 else said
        )
        missed = -torch.log(said.gather(1, place[:, None]).clamp_min(1e-9))[:, 0]
        far = torch.sqrt(((x - q) ** 2).sum(dim=1) + 1e-12)
        loss = alpha * missed + beta * far + gamma * torch.sqrt((moved**2).sum(dim=1) + 1e-12)
        loss.sum().backward()
        optimizer.step()
    with torch.no_grad():
        return torch.sigmoid((start + moved) @ weights.T).double().numpy()
