"""Rounded Gaussian draws worked out where an accelerator needs them: the same bits in, the same integers out.

The random bits are the operating system's, drawn on the host. What ``vault.noise`` does with them on NumPy arrays is done
here on torch tensors, operation by operation: masks and shifts of integers, then one IEEE multiplication or addition of
float64 at a time, which round alike everywhere; so the proof of the table holds, and a test compares the integers with
those of ``vault.noise`` for the same bits. Draws that lie near the edge of their cell come back to the host and are settled
there in integers, as ever.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import sampler as noise
from .normal_exact import RandomBytes, exact_magnitude

if TYPE_CHECKING:
    import torch


def rounded_gaussian_from(
    words: NDArray[np.int64], sigma_grid: float, device: Any, random_bytes: RandomBytes = os.urandom
) -> torch.Tensor:
    """One draw of round(sigma_grid Z) for each word of 64 random bits, as int64 on ``device``.

    Parameters
    ----------
    words : array of int64
        Fresh random bits, used for nothing else.
    sigma_grid : float
        Standard deviation in units of the grid, in (0, 2^45].
    device : torch.device or str
        Where the integers are wanted.
    random_bytes : callable
        More bits, for draws that 64 do not settle.
    """
    import torch

    sigma = noise._checked_sigma(sigma_grid, words.size)
    assert isinstance(sigma, float)
    coefficients, bounds = (torch.tensor(table, device=device) for table in noise._table())
    bits = torch.from_numpy(words).to(device)

    tail = (bits & noise._V_IN_PLACE).to(torch.float64).view(torch.int64)
    place = (tail & noise._PLACE_MASK).to(torch.float64)
    column = torch.clamp((tail >> noise._PLACE_BITS) - noise._COLUMN_ORIGIN, 0, len(bounds) - 1)
    z = coefficients[noise._DEGREE][column]
    for power in range(noise._DEGREE - 1, -1, -1):
        z = z * place
        z = z + coefficients[power][column]
    x = z * sigma
    nearest = torch.round(x)
    rest = x - nearest
    margin = bounds[column] * sigma
    undecided = torch.nonzero((torch.abs(rest) + margin) > noise._SURE_BELOW)[:, 0]

    if undecided.numel():
        cases = torch.stack([nearest[undecided], rest[undecided], margin[undecided]]).cpu().tolist()
        settled = []
        for word, middle, beside, doubt in zip(words[undecided.cpu().numpy()].tolist(), *cases, strict=True):
            low, high = noise._bracket(middle, beside, doubt, sigma)
            settled.append(exact_magnitude(word & noise._TAIL_MASK, sigma, low, high, random_bytes))
        nearest[undecided] = torch.tensor(settled, dtype=torch.float64, device=device)
    return torch.where(bits < 0, -nearest, nearest).to(torch.int64)
