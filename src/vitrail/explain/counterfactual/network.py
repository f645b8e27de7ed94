"""A small neural network as the code: one hidden layer, trained by noisy gradient descent in the vault's own sums.

*The network.* z is the encoded row, cut to length ``scale``; h = tanh(z W1 + b1), xhat = s(h W2 + b2) with the sigmoid s.
The loss of a row is the cross-entropy of xhat and z; its gradient by the argument of s is d = xhat - z, by that of tanh
e = (d W2^T)(1 - h^2).

*What a row contributes to a step*: the gradients (z, 1) e^T and (h, 1) d^T. Two outer products, so their norm is
sqrt(|(z, 1)|^2 |e|^2 + |(h, 1)|^2 |d|^2), known without forming them, and a row beyond ``clip`` is scaled down to it:
clipping per example, and no gradient of an example is ever stored. That is a :class:`ProductSum` with l2_bound ``clip``,
which does the scaling and the bound in integers: clip/sigma-GDP, and 2 clip under replace-one. Before the first step the
sum of z is released, of norm at most ``scale``; it sets b2, so that the network learns what differs from the mean row.

*What it costs.* Weights are functions of earlier releases, so asking in turn is adaptive composition: squares of mu add up
in the ledger's filter, exactly. Every row enters every step: p passes with noise sigma cost mu = sqrt(p) clip/sigma. Steps
on Poisson samples of rate q (DP-SGD) are quicker to compute and no less noisy for as many passes: their mu tends to
q sqrt(p/q (exp(1/s^2) - 1)) with noise s clip (Dong, Roth & Su 2022), about sqrt(p q)/s, and 1/q such steps together have
the noise s/sqrt(q) of one whole pass at the same price. They would be charged as (epsilon, delta) to the training purse;
this is charged as mu to the account, and has the vault's exact noise.

*Bits.* What a row says must not depend on the rows beside it, and the last bits of matrix products do. Here z, h and d are
multiples of 2^-20 in [-1, 1], weights multiples of 2^-16 of at most 16, and sums have at most 2^11 terms: every partial sum
is a multiple of 2^-36 below 2^15, so no product is ever rounded, in whatever order it is added up.

Test: tests/explain/counterfactual/test_counterfactual_network.py, tests/audit/test_counterfactual_audit.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import rounded_up
from ...errors import InvalidInput
from ...solve.counterfactual.codes import ROW_CELLS, Floats, NetworkCode, on_grid
from .moments import HAIR, shortened

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum, ProductSum, Release

VERSION = 1
UNITS = 32
STEPS = 80
CLIP_SHARE = 0.5
"""Clip of a row's gradient over ``scale``."""
MEAN_SHARE = 0.1
"""Of the price, for the mean row."""
RATE, MOMENTUM, MEMORY = 0.04, 0.8, 0.95
WEIGHT_CELLS, LARGEST_WEIGHT = 2.0**16, 16.0


def first_code(mean: Floats, scale: float, units: int = UNITS) -> NetworkCode:
    """Where training starts: public random directions, and the released mean row as the answer to everything."""
    features = len(mean)
    generator = np.random.default_rng(0)
    directions = generator.normal(size=(features, units)) / scale
    hidden = np.concatenate([directions, -(mean @ directions)[None, :]])
    likely = np.clip(mean, 0.01, 0.99)
    output = np.concatenate([0.1 * directions.T, np.log(likely / (1 - likely))[None, :]])
    return NetworkCode(_weights(hidden), _weights(output), scale)


def _weights(values: Floats) -> Floats:
    return on_grid(np.clip(values, -LARGEST_WEIGHT, LARGEST_WEIGHT), WEIGHT_CELLS)


@dataclass(frozen=True, eq=False)
class Descent:
    """Steps down noisy gradients, with momentum; post-processing.

    Each layer's weights, and its biases, go by their gradient over its root mean square: as Adam does, but with one number
    for all of them, because a coordinate's own scale would mostly be that of its noise.
    """

    code: NetworkCode
    step: int = 0
    first: tuple[Floats, Floats] | None = None
    second: tuple[Floats, Floats] | None = None

    def after(self, sums: tuple[Floats, Floats], n_rows_public: int, steps: int) -> Descent:
        """One step; the rate falls to a tenth on the way."""
        count = self.step + 1
        rate = RATE * (1 - 0.9 * self.step / steps)
        made, first, second = [], [], []
        for place, (weights, total) in enumerate(zip((self.code.hidden, self.code.output), sums, strict=True)):
            gradient = total / n_rows_public
            square = np.array([[(gradient[:-1] ** 2).mean()], [(gradient[-1] ** 2).mean()]])
            old = np.zeros_like(total) if self.first is None else self.first[place]
            old_square = np.zeros_like(square) if self.second is None else self.second[place]
            first.append(MOMENTUM * old + (1 - MOMENTUM) * gradient)
            second.append(MEMORY * old_square + (1 - MEMORY) * square)
            size = np.sqrt(second[-1] / (1 - MEMORY**count)) + 1e-12
            per_line = np.concatenate([np.repeat(size[:1], len(total) - 1, axis=0), size[1:]])
            made.append(_weights(weights - rate / (1 - MOMENTUM**count) * first[-1] / per_line))
        code = replace(self.code, hidden=made[0], output=made[1])
        return Descent(code, count, (first[0], first[1]), (second[0], second[1]))


def _rows(scale: float) -> Callable[[Block], Floats]:
    """z of a block: features cut to length ``scale``, on the grid (rounded down: no row gets longer)."""

    def of(block: Block) -> Floats:
        return np.asarray(np.floor(shortened(block.features, scale) * scale * ROW_CELLS) / ROW_CELLS)

    return of


def mean_question(features: int, scale: float) -> BoundedSum:
    """The sum of all rows z."""
    from ...vault import BoundedSum  # here, so that stored counterfactuals can be used without loading the vault

    key = {"kind": "counterfactual-network-mean", "version": VERSION, "scale": scale}
    return BoundedSum(
        _rows(scale),
        size=features,
        l2_bound=scale * HAIR,
        key=json.dumps(key, sort_keys=True),
        label="counterfactuals: mean row",
    )


def step_question(code: NetworkCode, step: int) -> ProductSum:
    """The clipped gradients of all rows at these weights, summed."""
    from ...vault import ProductSum

    rows, scale = _rows(code.scale), code.scale
    features, units = code.hidden.shape[0] - 1, code.size
    clip = CLIP_SHARE * scale
    key = {"kind": "counterfactual-network-step", "version": VERSION, "step": step, "code": code.digest(), "clip": clip}
    return ProductSum(
        lambda block: code.gradients(rows(block)),
        lefts=(features + 1, units + 1),
        rights=(units, features),
        # (z, 1) and (h, 1) have norm 1 at least: e or d longer than clip would be scaled down to it in any case.
        left_bounds=(math.sqrt(scale**2 + 1) * HAIR, math.sqrt(units + 1) * HAIR),
        right_bounds=(clip, clip),
        l2_bound=clip,
        key=json.dumps(key, sort_keys=True),
        label=f"counterfactuals: network, step {step + 1}",
    )


def trained(
    ask: Callable[[BoundedSum | ProductSum, float], Release],
    features: int,
    scale: float,
    n_rows_public: int,
    mu: float,
    steps: int = STEPS,
    units: int = UNITS,
) -> tuple[NetworkCode, list[Release]]:
    """Train; ``ask(question, mu)`` is the vault. The prices of all questions add up to no more than ``mu``."""
    mean, each = _pico(mu, steps)
    release = ask(mean_question(features, scale), _price(mean))
    releases = [release]
    state = Descent(first_code(np.clip(release.value / n_rows_public, 0.0, 1.0), scale, units))
    for step in range(steps):
        release = ask(step_question(state.code, step), _price(each))
        releases.append(release)
        state = state.after((release.parts["0"], release.parts["1"]), n_rows_public, steps)
    return state.code, releases


def mean_price(mu: float, steps: int = STEPS) -> float:
    """What the first question of a training at this price costs; too little is refused, before anything is asked."""
    return _price(_pico(mu, steps)[0])


def _pico(mu: float, steps: int) -> tuple[int, int]:
    """The prices of the mean row and of a step, in the ledger's units: together no more than mu squared."""
    whole = math.floor(mu**2 * 10**12 * (1 - 1e-9))
    each = math.floor(whole * (1 - MEAN_SHARE) / steps)
    if each < 10:
        raise InvalidInput(f"the price of this network is mu = {rounded_up(mu)}, too small for {steps} steps; ask for more")
    return whole - steps * each, each


def _price(pico: int) -> float:
    return math.sqrt(pico / 10**12) * (1 - 2e-15)
