"""A small neural network as a code: one hidden layer, and the steps of its training from noisy sums of gradients.

z is the encoded row, cut to length ``scale``; h = tanh(z W1 + b1), xhat = s(h W2 + b2) with the sigmoid s. The loss of a row
is the cross-entropy of xhat and z; its gradient by the argument of s is d = xhat - z, by that of tanh
e = (d W2^T)(1 - h^2). The questions about rows are in ``explain/counterfactual.py``.

*Bits.* What a row says must not depend on the rows beside it, and the last bits of matrix products do. Here z, h and d are
multiples of 2^-20 in [-1, 1], weights multiples of 2^-16 of at most 16, and sums have at most 2^11 terms: every partial sum
is a multiple of 2^-36 below 2^15, so no product is ever rounded, in whatever order it is added up.

Test: tests/explain/counterfactual/test_counterfactual_network.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..._types import Floats
from ...errors import InvalidInput
from .codes import Code, IdentityCode

UNITS = 32
TRAINING_STEPS = 80
RATE, MOMENTUM, MEMORY = 0.04, 0.8, 0.95
ROW_CELLS, WEIGHT_CELLS, LARGEST_WEIGHT = 2.0**20, 2.0**16, 16.0
MOST_FEATURES = 2**11 - 1
SPREAD = 0.3
"""A public guess of the standard deviation of a hidden unit."""


@dataclass(frozen=True, eq=False)
class NetworkCode:
    """A trained network as a code: the hidden units over sqrt(their number), so that codes are no longer than 1.

    Attributes
    ----------
    hidden : array (features + 1, size)
        W1 and, below it, b1.
    output : array (size + 1, features)
        W2 and b2.
    scale : float
        The greatest length of encoded rows; codes are made of x = features / scale.
    """

    hidden: Floats
    output: Floats
    scale: float

    def __post_init__(self) -> None:
        shape = (self.size + 1, self.features)
        if self.output.shape != shape or not 1 <= self.features <= MOST_FEATURES or not 0 < self.scale < math.inf:
            raise InvalidInput(
                f"a network has 1 to {MOST_FEATURES} features, a positive scale, and layers that fit each other"
            )

    @property
    def size(self) -> int:
        """How many numbers a code has."""
        return int(self.hidden.shape[1])

    @property
    def features(self) -> int:
        """How many numbers a row has."""
        return int(self.hidden.shape[0]) - 1

    @property
    def spread(self) -> Floats:
        """About the standard deviation of each coordinate of a code: a public guess."""
        return np.full(self.size, SPREAD / math.sqrt(self.size))

    def encode(self, x: Floats) -> Floats:
        """Codes of rows x, no longer than 1."""
        return np.asarray(self.units(_on_grid(x * self.scale, ROW_CELLS)) / math.sqrt(self.size))

    def decode(self, codes: Floats) -> Floats:
        """The rows x that codes stand for."""
        units = np.clip(codes * math.sqrt(self.size), -1.0, 1.0)
        return np.asarray(_sigmoid(units @ self.output[:-1] + self.output[-1]) / self.scale)

    def units(self, z: Floats) -> Floats:
        """Hidden units of rows on the grid, on the grid."""
        return _on_grid(2 * _sigmoid(2 * (z @ self.hidden[:-1] + self.hidden[-1])) - 1, ROW_CELLS)

    def gradients(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(z, 1), e, (h, 1), d of each row: its gradients are the products of the first two and of the last two."""
        h, one = self.units(z), np.ones((len(z), 1))
        d = _on_grid(_sigmoid(h @ self.output[:-1] + self.output[-1]) - z, ROW_CELLS)
        e = (d @ self.output[:-1].T) * (1 - h**2)
        return np.concatenate([z, one], axis=1), e, np.concatenate([h, one], axis=1), d


AnyCode: TypeAlias = Code | IdentityCode | NetworkCode


def first_code(mean: Floats, scale: float, units: int = UNITS) -> NetworkCode:
    """Where training starts: public random directions, and the released mean row as the answer to everything."""
    directions = np.random.default_rng(0).normal(size=(len(mean), units)) / scale
    hidden = np.concatenate([directions, -(mean @ directions)[None, :]])
    likely = np.clip(mean, 0.01, 0.99)
    output = np.concatenate([0.1 * directions.T, np.log(likely / (1 - likely))[None, :]])
    return NetworkCode(weights_on_grid(hidden), weights_on_grid(output), scale)


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer in training: gradient descent with momentum on noisy sums.

    Weights, and biases, go by their gradient over its root mean square: as Adam does, but with one number for all of them,
    because a coordinate's own scale would mostly be that of its noise.

    Attributes
    ----------
    weights : array (inputs + 1, outputs)
        The weights and, below them, the biases.
    mean : array or 0
        Running mean of the gradient.
    square : array (2, 1) or 0
        Running mean of the mean square of the gradient, of the weights and of the biases.
    """

    weights: Floats
    mean: Floats | float = 0.0
    square: Floats | float = 0.0

    def after(self, gradient: Floats, step: int, n_steps: int) -> Layer:
        """The layer after a step, counted from 0; the rate falls to a tenth on the way."""
        mean = np.asarray(MOMENTUM * self.mean + (1 - MOMENTUM) * gradient)
        squares = np.array([[(gradient[:-1] ** 2).mean()], [(gradient[-1] ** 2).mean()]])
        square = np.asarray(MEMORY * self.square + (1 - MEMORY) * squares)
        size = np.sqrt(square / (1 - MEMORY ** (step + 1))) + 1e-12
        per_line = np.repeat(size, [len(gradient) - 1, 1], axis=0)
        rate = RATE * (1 - 0.9 * step / n_steps) / (1 - MOMENTUM ** (step + 1))
        return Layer(weights_on_grid(self.weights - rate * mean / per_line), mean, square)


def weights_on_grid(values: Floats) -> Floats:
    """Weights as multiples of 2^-16, of at most 16."""
    return _on_grid(np.clip(values, -LARGEST_WEIGHT, LARGEST_WEIGHT), WEIGHT_CELLS)


def _on_grid(values: Floats, cells: float) -> Floats:
    return np.asarray(np.rint(values * cells) / cells)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(values, -40.0, 40.0))))
