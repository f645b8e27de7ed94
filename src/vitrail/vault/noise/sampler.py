"""Noise and other draws of the vault, exact up to a stated distance, from the operating system's generator.

**What is added.** A sum of grid integers x gets round(sigma Z), Z ~ N(0, 1), sigma in units of the grid. As x is an
integer, x + round(sigma Z) = round(x + sigma Z): a function of the continuous Gaussian mechanism's output. So the release
is at most mu-GDP with mu = C/sigma, and not one float of the noise is visible. The discrete Gaussian is not that good.

**How it is drawn.** 64 random bits: the first is the sign, the others begin the binary expansion of the tail
probability u in (0, 1/2) of |Z| = z(u) = -Phi^{-1}(u). 53 of them, v, place u in [v, v + 1) 2^-54. As a float, v
shows its piece in its exponent and leading mantissa bits, and its place within the piece in the others; the piece's
polynomial gives z(u) to within a bound that was proven for every u of every cell of the piece
(tools/make_normal_table.py, with the proof). If sigma z(u) is further than that from the nearest half-integer, every
continuation of the bits gives the same integer and it is the answer. Otherwise, and for u < 2^-41, which has no
piece, all 64 bits are used and, where they do not settle it, more are drawn, until the answer is certain
(``normal_exact``, integers only).

**Why 53 bits are not enough.** Their cells are 2^-54/phi(z) wide in z: 5e-10 at z = 5.5, and wider further out. With
sigma at 2^31 grid steps a cell there is one step: taking one value per cell would leave integers that never occur,
and which ones moves with x, so one look at the output could rule out a neighbour. Here such a cell is left open and
settled by further bits, so every integer has its own probability.

**Distance.** The result is the function round(sigma Z) of an ideal uniform, except when a comparison is still open
after 320 bits or |Z| > 22: less than ``TOTAL_VARIATION_PER_DRAW`` (derived in ``normal_exact``). N draws are within N
times that; a mechanism within tau of an (epsilon, delta)-DP one is (epsilon, delta + (1 + e^epsilon) tau)-DP.

**Assumed.** IEEE doubles rounded to nearest, one rounding per NumPy operation (no fused multiply-add across ufuncs), and
os.urandom indistinguishable from random bits. Running time depends on the noise: on how many draws lie close to the
edge of their cell. It does not depend on the data, because noise is drawn before the data is read.

There is no seed. ``random_bytes`` is a parameter of private functions only, for tests that choose the bits.

**On an accelerator** (``rounded_gaussian_from``): the same bits in, the same integers out. The random bits are the
operating system's, drawn on the host. What is done with them on NumPy arrays is done on torch tensors, operation by
operation: masks and shifts of integers, then one IEEE multiplication or addition of float64 at a time, which round alike
everywhere; so the proof of the table holds, and a test compares the integers with those of NumPy for the same bits. Draws
that lie near the edge of their cell come back to the host and are settled there in integers, as ever.
"""

from __future__ import annotations

import math
import os
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ... import _checks
from ...errors import InvalidInput
from .normal_exact import LARGEST_Z, RandomBytes, exact_magnitude

if TYPE_CHECKING:
    import torch


FloatArray = NDArray[np.float64]

TOTAL_VARIATION_PER_DRAW = 2.0**-256
LARGEST_SIGMA_GRID = 2.0**45

_CHUNK = 8192  # buffers of 64 KiB stay in the second-level cache

# A word: the sign, 53 bits v, 10 bits that only the exact path uses. Left in place, v 2^10 is a float without rounding.
_V_IN_PLACE = ((1 << 53) - 1) << 10
_V_SHIFT = 10
_TAIL_MASK = (1 << 63) - 1

# The table's shape; tools/make_normal_table.py has the same three numbers and a test compares them.
_SUB_BITS = 7
_FIRST_OCTAVE = 13
_DEGREE = 5

_PLACE_BITS = 52 - _SUB_BITS
_PLACE_MASK = (1 << _PLACE_BITS) - 1
# Column 1 is the first piece, column 0 stands for all smaller v (there the difference is negative and "clip" makes it 0).
_COLUMN_ORIGIN = ((1023 + _V_SHIFT + _FIRST_OCTAVE) << _SUB_BITS) - 1

# |x - k| is exact and its sum with the margin rounds by less than 2^-53; 2^-50 leaves room.
_SURE_BELOW = 0.5 - 2.0**-50


@cache
def _table() -> tuple[FloatArray, FloatArray]:
    """Coefficients (degree + 1, columns), lowest power first, of polynomials in the raw place bits; bounds (columns,)."""
    with (
        resources.as_file(resources.files(__package__) / "normal_table.npz") as path,
        np.load(path, allow_pickle=False) as file,
    ):
        coefficients, bounds = file["coefficients"], file["bounds"]
    # the place bits are t 2^45: scaling by powers of two is exact, and so is everything proven for t in [0, 1)
    coefficients = coefficients * 2.0 ** (-_PLACE_BITS * np.arange(_DEGREE + 1))[:, np.newaxis]
    coefficients.flags.writeable = bounds.flags.writeable = False
    return coefficients, bounds


def rounded_gaussian(sigma_grid: float | FloatArray, size: int) -> NDArray[np.int64]:
    """Independent draws of round(sigma_grid Z), Z standard normal.

    Parameters
    ----------
    sigma_grid : float or array of shape (size,)
        Standard deviation in units of the grid, one for all or one per draw; in (0, 2^45].
    size : int
        How many.

    Returns
    -------
    array of int64, shape (size,)

    Examples
    --------
    >>> noise = rounded_gaussian(1000.0, 10_000)
    >>> bool(900 < noise.std() < 1100)
    True
    """
    size = _checked_size(size)
    return _rounded_gaussian(_checked_sigma(sigma_grid, size), size, os.urandom)


def _rounded_gaussian(sigma: float | FloatArray, size: int, random_bytes: RandomBytes) -> NDArray[np.int64]:
    bounds = _table()[1]
    drawn = np.empty(size, np.int64)
    # Working memory of one call: allocated once, reused for every chunk, never shared between threads.
    buffers = np.empty(min(size, _CHUNK), np.int64), np.empty((4, min(size, _CHUNK)))
    for start in range(0, size, _CHUNK):
        here = slice(start, min(start + _CHUNK, size))
        words = np.frombuffer(random_bytes(8 * (here.stop - start)), np.int64)
        sigma_here = sigma if isinstance(sigma, float) else sigma[here]

        column, z, nearest, other = _evaluate_z(words, buffers)
        x = np.multiply(z, sigma_here, out=z)
        np.rint(x, out=nearest)
        rest = np.subtract(x, nearest, out=x)
        margin = np.take(bounds, column, out=other, mode="clip")
        np.multiply(margin, sigma_here, out=margin)
        undecided = np.flatnonzero(np.add(np.abs(rest), margin) > _SURE_BELOW)
        for i in undecided.tolist():
            sigma_i = sigma_here if isinstance(sigma_here, float) else float(sigma_here[i])
            low, high = _bracket(float(nearest[i]), float(rest[i]), float(margin[i]), sigma_i)
            nearest[i] = exact_magnitude(int(words[i]) & _TAIL_MASK, sigma_i, low, high, random_bytes)

        np.copysign(nearest, words.view(np.float64), out=nearest)
        np.copyto(drawn[here], nearest, casting="unsafe")
    return drawn


def _evaluate_z(
    words: NDArray[np.int64], buffers: tuple[NDArray[np.int64], FloatArray]
) -> tuple[NDArray[np.int64], FloatArray, FloatArray, FloatArray]:
    """Table column and |Z| of every word (0 in column 0), and two buffers that are free again."""
    coefficients = _table()[0]
    column = buffers[0][: words.size]
    tail, place, z, coefficient = buffers[1][:, : words.size]

    np.bitwise_and(words, _V_IN_PLACE, out=column)
    np.copyto(tail, column)
    tail_bits = tail.view(np.int64)
    np.bitwise_and(tail_bits, _PLACE_MASK, out=column)
    np.copyto(place, column)
    np.right_shift(tail_bits, _PLACE_BITS, out=column)
    np.subtract(column, _COLUMN_ORIGIN, out=column)

    np.take(coefficients[_DEGREE], column, out=z, mode="clip")
    for power in range(_DEGREE - 1, -1, -1):
        np.multiply(z, place, out=z)
        np.take(coefficients[power], column, out=coefficient, mode="clip")
        np.add(z, coefficient, out=z)
    return column, z, place, coefficient


def _bracket(nearest: float, rest: float, margin: float, sigma: float) -> tuple[int, int]:
    """Integers around |round(sigma Z)| when sigma |Z| is within ``margin`` of nearest + rest."""
    if not math.isfinite(margin):
        return 0, math.ceil(LARGEST_Z * sigma) + 1
    wide = margin * (1 + 2.0**-40) + 2.0**-40  # more than the roundings of the sums below
    low, high = math.floor(rest + 0.5 - wide), math.floor(rest + 0.5 + wide)
    return max(int(nearest) + low, 0), max(int(nearest) + high, 0)


def uniform_below(n: int, size: int) -> NDArray[np.int64]:
    """Exactly uniform draws from 0, ..., n - 1, for 1 <= n <= 2^63.

    Examples
    --------
    >>> bool((uniform_below(6, 1000) < 6).all())
    True
    """
    return _uniform_below(_checks.whole("n", n, most=1 << 63), _checked_size(size), os.urandom)


def _uniform_below(n: int, size: int, random_bytes: RandomBytes) -> NDArray[np.int64]:
    # words from the last, incomplete run of n are drawn again: those kept are uniform over whole runs
    last_kept = np.uint64((1 << 64) - (1 << 64) % n - 1)
    drawn = np.empty(size, np.int64)
    filled = 0
    while filled < size:
        words = np.frombuffer(random_bytes(8 * (size - filled)), np.uint64)
        kept = words[words <= last_kept] % np.uint64(n)
        drawn[filled : filled + kept.size] = kept.astype(np.int64)
        filled += kept.size
    return drawn


def bernoulli(rate: float, size: int) -> NDArray[np.bool_]:
    """Independent draws that are True with probability exactly ``rate``, every float in [0, 1] included.

    Examples
    --------
    >>> bool(bernoulli(1.0, 5).all()), bool(bernoulli(0.0, 5).any())
    (True, False)
    """
    return bernoulli_from(os.urandom, _checks.number("rate", rate, low=0, high=1), _checked_size(size))


def bernoulli_from(random_bytes: RandomBytes, rate: float, size: int) -> NDArray[np.bool_]:
    """The same, from given random bytes (``keyed``)."""
    numerator, denominator = rate.as_integer_ratio()
    threshold, rest = divmod(numerator << 64, denominator)
    if threshold == 1 << 64:
        return np.ones(size, np.bool_)
    words = np.frombuffer(random_bytes(8 * size), np.uint64)
    drawn = words < np.uint64(threshold)
    if rest:  # the first 64 bits of a uniform equal those of rate: the bits after them decide
        for i in np.flatnonzero(words == np.uint64(threshold)).tolist():
            drawn[i] = _is_below_fraction(rest, denominator, random_bytes)
    return drawn


def _is_below_fraction(numerator: int, denominator: int, random_bytes: RandomBytes) -> bool:
    """True with probability numerator/denominator < 1. Ends, because the denominator is a power of two."""
    while numerator:
        threshold, numerator = divmod(numerator << 64, denominator)
        word = int.from_bytes(random_bytes(8), "big")
        if word != threshold:
            return word < threshold
    return False


def random_integer_below(n: int) -> int:
    """One exactly uniform draw from 0, ..., n - 1, for any n >= 1, however large.

    Examples
    --------
    >>> 0 <= random_integer_below(10**40) < 10**40
    True
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidInput(f"n is {n!r}; random_integer_below needs an integer of at least 1")
    return _random_integer_below(int(n), os.urandom)


def _random_integer_below(n: int, random_bytes: RandomBytes) -> int:
    bits = (n - 1).bit_length()
    length = -(-bits // 8)
    while True:
        drawn = int.from_bytes(random_bytes(length), "big") >> (8 * length - bits)
        if drawn < n:
            return drawn


def _checked_size(size: int) -> int:
    return _checks.whole("size", size, least=0, most=2**62)


def _checked_sigma(sigma_grid: float | FloatArray, size: int) -> float | FloatArray:
    try:
        sigma = np.array(sigma_grid, dtype=np.float64)  # a copy: it cannot change between this check and its use
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"sigma_grid is {sigma_grid!r}; give one number, or an array with one per draw") from error
    if sigma.ndim and sigma.shape != (size,):
        raise InvalidInput(f"sigma_grid has shape {sigma.shape}; give one number, or one per draw: shape ({size},)")
    refused = sigma[~((sigma > 0) & (sigma <= LARGEST_SIGMA_GRID))]  # a NaN fails both
    if refused.size:
        raise InvalidInput(
            f"sigma_grid is {refused.flat[0]}; it must be positive and at most 2**45 grid steps. "
            "If the noise is that wide, choose a coarser grid"
        )
    return sigma if sigma.ndim else float(sigma)


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

    sigma = _checked_sigma(sigma_grid, words.size)
    assert isinstance(sigma, float)
    coefficients, bounds = (torch.tensor(table, device=device) for table in _table())
    bits = torch.from_numpy(words).to(device)

    tail = (bits & _V_IN_PLACE).to(torch.float64).view(torch.int64)
    place = (tail & _PLACE_MASK).to(torch.float64)
    column = torch.clamp((tail >> _PLACE_BITS) - _COLUMN_ORIGIN, 0, len(bounds) - 1)
    z = coefficients[_DEGREE][column]
    for power in range(_DEGREE - 1, -1, -1):
        z = z * place
        z = z + coefficients[power][column]
    x = z * sigma
    nearest = torch.round(x)
    rest = x - nearest
    margin = bounds[column] * sigma
    undecided = torch.nonzero((torch.abs(rest) + margin) > _SURE_BELOW)[:, 0]

    if undecided.numel():
        cases = torch.stack([nearest[undecided], rest[undecided], margin[undecided]]).cpu().tolist()
        settled = []
        for word, middle, beside, doubt in zip(words[undecided.cpu().numpy()].tolist(), *cases, strict=True):
            low, high = _bracket(middle, beside, doubt, sigma)
            settled.append(exact_magnitude(word & _TAIL_MASK, sigma, low, high, random_bytes))
        nearest[undecided] = torch.tensor(settled, dtype=torch.float64, device=device)
    return torch.where(bits < 0, -nearest, nearest).to(torch.int64)
