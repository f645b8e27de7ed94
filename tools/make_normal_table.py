"""Make, or check, the table of polynomials behind the noise sampler, with a proven error bound for every piece.

    python tools/make_normal_table.py            writes src/vitrail/vault/noise/normal_table.npz
    python tools/make_normal_table.py --check    certifies the shipped table again and says how tight its bounds are

Let z(u) = -Phi^{-1}(u) for a tail probability u in (0, 1/2], and v = floor(2^54 u) its first 53 bits. A *piece* is the set
of v in [a, a + w) with a = 2^o (1 + i/128), w = 2^o/128: octave o, sub-interval i. With t = (v - a)/w in [0, 1), the piece's
polynomial p(t) approximates z at the middle of the cell [v, v + 1) 2^-54, that is f(t) = z((a + 1/2 + t w) 2^-54). The bound
stored for a piece covers, for every v in it and *every* u of the cell of v, the distance from the computed p(t) to z(u):

1. Interpolation. f is interpolated at n + 1 Chebyshev nodes t_i: |f - q| <= sup|f^(n+1)|/(n+1)! prod|t - t_i|, and
   prod|t - t_i| <= 2^(-2n-1) on [0, 1]. As z' = -1/phi(z), derivatives are z^(k) = (-1)^k P_k(z)/phi(z)^k with P_1 = 1 and
   P_{k+1}(z) = P_k'(z) + k z P_k(z). These have non-negative coefficients, so |P_k(z)| <= P_k(|z|), and both factors
   are largest where |z| is: at the lower end u of the piece. (The last piece ends at u = 1/2 + 2^-55, where |z| is tiny.)
2. Node values come from Newton's method in 60 digits and are kept only if |Phi(-z_i) - u_i| <= 1e-50 u_i, so their error is
   below 1e-49; interpolation multiplies it by the Lebesgue constant, below 10. ``SLACK_ABSOLUTE`` covers it.
3. Coefficients are rounded to float64: sum |c_k - float(c_k)|.
4. Horner's rule p_k = fl(fl(p_{k+1} t) + c_k), t exact in [0, 1]: with M_k = sum_{j>=k} |c_j| every step adds at most
   2^-53 (M_{k+1} + M_k) up to a factor 1 + 2^-40, and later steps multiply by t <= 1.
5. Half a cell: 2^-55/phi(z) at the lower end of the piece.
6. x = fl(sigma p) errs by at most 2^-53 |p| sigma: 2^-53 M_0, counted in units of z here so that the sampler need not.

``SLACK_RELATIVE`` on the sum covers the factor of 4, rounding in this file, and the sampler's own product bound * sigma.
mpmath is trusted to evaluate erfc, exp and arithmetic in 60 digits to 1e-55 relative; the tests compare it with the
integer arithmetic of ``vitrail.vault.noise.normal_exact``, which does not use it.
"""

from __future__ import annotations

import argparse
import math
import sys
from functools import cache
from pathlib import Path
from statistics import NormalDist

import mpmath
import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

SUB_BITS = 7
FIRST_OCTAVE = 13
LAST_OCTAVE = 52
DEGREE = 5
N_PIECES = (LAST_OCTAVE - FIRST_OCTAVE + 1) << SUB_BITS

DIGITS = 60
SLACK_RELATIVE = mpf(2) ** -20
SLACK_ABSOLUTE = mpf(10) ** -40

TABLE = Path(__file__).resolve().parents[1] / "src" / "vitrail" / "vault" / "noise" / "normal_table.npz"


def density(z: mpf) -> mpf:
    return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)


def quantile(u: mpf) -> mpf:
    """z with Phi(-z) = u, checked: relative residual at most 1e-50."""
    z = mpf(-NormalDist().inv_cdf(float(u)))
    for _ in range(4):
        residual = mp.erfc(z / mp.sqrt(2)) / 2 - u
        if abs(residual) <= u * mpf(10) ** -50:
            return z
        z += residual / density(z)
    raise ArithmeticError(f"Newton's method did not settle at u = {u}")


@cache
def derivative_polynomial(order: int) -> tuple[int, ...]:
    """Coefficients, lowest first, of P_order in z^(k) = (-1)^k P_k(z)/phi(z)^k."""
    if order == 1:
        return (1,)
    previous, k = derivative_polynomial(order - 1), order - 1
    following = [0] * (len(previous) + 1)
    for power, coefficient in enumerate(previous):
        if power:
            following[power - 1] += power * coefficient
        following[power + 1] += k * coefficient
    return tuple(following)


@cache
def nodes_and_inverse() -> tuple[list[mpf], mpmath.matrix]:
    """Chebyshev nodes of [0, 1] and the matrix that turns values there into monomial coefficients."""
    with mp.workdps(DIGITS):  # the cache must not keep what a caller at lower precision would compute
        nodes = [(1 - mp.cos((2 * i + 1) * mp.pi / (2 * DEGREE + 2))) / 2 for i in range(DEGREE + 1)]
        vandermonde = mp.matrix([[node**k for k in range(DEGREE + 1)] for node in nodes])
        return nodes, vandermonde**-1


def piece_limits(piece: int) -> tuple[mpf, mpf]:
    """Start a and width w of a piece, in units of 2^-54 of tail probability."""
    octave, sub = FIRST_OCTAVE + (piece >> SUB_BITS), piece & ((1 << SUB_BITS) - 1)
    width = mpf(2) ** (octave - SUB_BITS)
    return ((1 << SUB_BITS) + sub) * width, width


def interpolant(piece: int) -> list[mpf]:
    """Monomial coefficients in t, lowest first, of the polynomial through f at the nodes."""
    start, width = piece_limits(piece)
    nodes, inverse = nodes_and_inverse()
    values = mp.matrix([quantile((start + mpf(0.5) + node * width) / mpf(2) ** 54) for node in nodes])
    return list(inverse * values)


def certified_bound(piece: int, coefficients: NDArray[np.float64], exact: list[mpf]) -> dict[str, mpf]:
    """The parts of a piece's error bound, in units of z, for given float coefficients (lowest first)."""
    start, width = piece_limits(piece)
    scale = mpf(2) ** -54
    z_largest = quantile(start * scale)  # half a cell below the first midpoint: the lower end of its cell
    density_least = density(z_largest)
    order = DEGREE + 1
    derivative = mp.polyval(list(reversed(derivative_polynomial(order))), z_largest) / density_least**order
    unit = mpf(2) ** -53
    floats = [mpf(float(c)) for c in coefficients]
    tails = [sum((abs(c) for c in floats[k:]), mpf(0)) for k in range(DEGREE + 1)]
    return {
        "interpolation": derivative * (width * scale) ** order / mp.factorial(order) / mpf(2) ** (2 * DEGREE + 1),
        "coefficients": sum((abs(a - b) for a, b in zip(floats, exact, strict=True)), mpf(0)),
        "horner": unit * sum((tails[k] + tails[k + 1] for k in range(DEGREE)), mpf(0)),
        "cell": scale / 2 / density_least,
        "product": unit * tails[0],
    }


def total_bound(parts: dict[str, mpf]) -> float:
    """The sum of the parts with both slacks, rounded up to a float."""
    return math.nextafter(float(sum(parts.values(), mpf(0)) * (1 + SLACK_RELATIVE) + SLACK_ABSOLUTE), math.inf)


def make_piece(piece: int) -> tuple[NDArray[np.float64], float]:
    with mp.workdps(DIGITS):
        exact = interpolant(piece)
        coefficients = np.array([float(c) for c in exact])
        return coefficients, total_bound(certified_bound(piece, coefficients, exact))


def needed_bound(piece: int, coefficients: NDArray[np.float64]) -> float:
    """The bound that a piece with these coefficients needs; the shipped one must not be smaller."""
    with mp.workdps(DIGITS):
        return total_bound(certified_bound(piece, coefficients, interpolant(piece)))


def make_table() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients (degree + 1, 1 + pieces) and bounds (1 + pieces). Column 0 stands for every smaller u: no bound."""
    coefficients, bounds = np.zeros((DEGREE + 1, 1 + N_PIECES)), np.full(1 + N_PIECES, np.inf)
    for piece in range(N_PIECES):
        coefficients[:, 1 + piece], bounds[1 + piece] = make_piece(piece)
    return coefficients, bounds


def load_table(path: Path = TABLE) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    with np.load(path, allow_pickle=False) as file:
        return file["coefficients"], file["bounds"]


def uncertified_pieces(coefficients: NDArray[np.float64], bounds: NDArray[np.float64], pieces: range) -> list[int]:
    """Those of ``pieces`` whose stored bound is smaller than the one proven anew (none, in a good table)."""
    return [p for p in pieces if not bounds[1 + p] >= needed_bound(p, coefficients[:, 1 + p])]


def main() -> int:
    parser = argparse.ArgumentParser(description="Make or check the noise sampler's table.")
    parser.add_argument("--check", action="store_true", help="certify the shipped table again, write nothing")
    if parser.parse_args().check:
        coefficients, bounds = load_table()
        bad = uncertified_pieces(coefficients, bounds, range(N_PIECES))
        print(f"{N_PIECES} pieces, {len(bad)} without proof", *bad[:10])
        return 1 if bad or not np.isinf(bounds[0]) else 0
    coefficients, bounds = make_table()
    np.savez_compressed(TABLE, coefficients=coefficients, bounds=bounds)
    print(f"{TABLE.name}: {N_PIECES} pieces, {TABLE.stat().st_size} bytes, largest bound {bounds[1:].max():.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
