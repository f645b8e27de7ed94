"""Exact sums on an accelerator: the same integers as on the processor, sooner where the products are large.

*The same integers.* What is done there is of three kinds, and each gives the same bits on both sides:

1. one IEEE operation at a time on float64 numbers (a product, a difference, or a quotient of two arrays), rounded correctly
   by NumPy and by the accelerator alike. Every operation is a kernel of its own, so none is contracted into a fused one; and
   nothing is divided by a plain number, which torch turns into a product with its inverse;
2. rounding to whole numbers, to nearest or towards zero, which is exact;
3. sums and products of integers whose sums of magnitudes stay below 2**53: exact in any order, fused or not.

All else stays on the host and comes as one number for each row: norms of what a function returned, which float64 rounds in
some order, square roots, weights, and with them every decision to clip. Whether the integers of a row obey its limit is
decided on v.v, which is exact for a row that does; for one that does not, some partial sum of squares is beyond 2**52 in
every order, or no number, and stays so: the decision is the same. Rows that do not are mended on the host (``grid``).

*Where.* From which size on a product is worth the way there was measured (benchmarks/scale_gpu.py) and depends on public
shapes alone. ``device="torch"`` takes the same way with torch on the processor, for tests. Test:
tests/vault/test_sums_on_device.py.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._types import Bools, Floats
from ...errors import InvalidInput
from .grid import Grid, cell_scales, repaired, squared_norms, to_grid

Array = Any
"""A NumPy array, or a torch tensor on some device."""

FEWEST_PRODUCTS = 2**26
"""Multiplications in a block below which kernels take longer to start than a core to multiply."""
PRODUCTS_PER_NUMBER = 256
"""Multiplications for each number that is sent, below which sending it takes longer than they do."""
STAGED_BYTES = 2**20


def device_for(device: str, rows: int, products: int, numbers: int) -> str:
    """Where blocks of ``rows`` rows are multiplied: "cpu" where they are too small for the way to the accelerator.

    ``products`` and ``numbers``: multiplications of a row, and numbers sent for it.
    """
    pays = rows * products >= FEWEST_PRODUCTS and products >= PRODUCTS_PER_NUMBER * numbers
    return device if device in ("cpu", "torch") or pays else "cpu"


def placed(array: NDArray[Any], device: str) -> Array:
    """An array where the work shall be done; not to be written to, because it may be the very same memory."""
    return array if device == "cpu" else _sent(array, "cpu" if device == "torch" else device)


def _sent(array: NDArray[Any], where: Any) -> Array:
    """A tensor of an array's numbers. Through page-locked memory, which torch keeps, much arrives twice as soon."""
    import torch

    here = torch.from_numpy(array)
    if torch.device(where).type == "cpu" or array.nbytes < STAGED_BYTES:
        return here.to(where)
    return here.pin_memory().to(where, non_blocking=True)


def beside(array: NDArray[Any], there: Array) -> Array:
    """An array where another one is."""
    return array if isinstance(there, np.ndarray) else _sent(array, there.device)


def on_host(array: Array) -> Floats:
    """An array of float64 in main memory."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array, dtype=np.float64)


def namespace(array: Array) -> Any:
    """Whose functions take an array: NumPy or torch, which share the names of those that are used here."""
    return np if isinstance(array, np.ndarray) else importlib.import_module("torch")


@dataclass(frozen=True)
class OnGrid:
    """Rows as integers in float64 on some device; and on the host their exact v.v and which of them were finite."""

    cells: Array
    squares: Floats
    finite: Bools


def on_grid(contributions: Floats, grid: Grid, device: str) -> OnGrid:
    """What :func:`~.grid.to_grid` makes of rows, wherever: only the scale of each row is worked out on the host.

    The grid is one that is checked in floats.
    """
    if device == "cpu":
        cells = to_grid(contributions, grid)
        finite: Bools = np.ones(len(cells), dtype=np.bool_)
        if not np.isfinite(contributions.sum()):  # cheap to rule out
            finite = np.asarray(np.isfinite(contributions).all(axis=1))
        return OnGrid(cells, squared_norms(cells), finite)
    assert grid.checked_in_floats
    torch = importlib.import_module("torch")
    with np.errstate(all="ignore"):
        norms_squared = squared_norms(contributions)
        scale = cell_scales(norms_squared, grid, None)
    there = torch.round(placed(contributions, device) * placed(scale, device)[:, None])
    squares = on_host((there * there).sum(dim=1)).copy()
    finite = np.isfinite(norms_squared)
    broken = np.flatnonzero(~(finite & (squares <= float(grid.limit_squared))))
    if len(broken):
        mended = repaired(contributions[broken], grid, None)
        there[placed(broken, device)] = placed(mended, device)
        squares[broken] = squared_norms(mended)
        finite[broken] = np.isfinite(contributions[broken]).all(axis=1)
    return OnGrid(there, squares, finite)


def shortened(cells: Array, factors: Floats) -> Array:
    """Integers times the factor of their row, at most 1, rounded towards zero."""
    return namespace(cells).trunc(cells * beside(factors, cells)[:, None])


def divided(cells: Array, among: Floats) -> Array:
    """Integers divided by their row's whole number, rounded towards zero: the quotient never rounds up to the next."""
    return namespace(cells).trunc(cells / beside(among, cells)[:, None])


def product(left: Array, right: Array) -> Floats:
    """The exact product of two arrays of integers (rows, columns) over the rows, on the host."""
    return on_host(left.T @ right)


@cache
def _pair_indices(n: int, device: str) -> tuple[Array, Array]:
    first, second = np.triu_indices(n)
    return placed(first, device), placed(second, device)


def pair_columns(u_cells: Floats, y_cells: Floats | None, unit_bits: int, device: str) -> Array:
    """The columns (u_i u_j rounded, u, 1 [, y u rounded, y]) of ``gram_products``, made where they are used."""
    torch = importlib.import_module("torch")
    u = placed(u_cells, device)
    scaled = u * 2.0**-unit_bits  # a power of two: exact
    first, second = _pair_indices(u_cells.shape[1], device)
    one = torch.full((len(u), 1), 2.0**unit_bits, dtype=torch.float64, device=u.device)
    parts = [torch.round(scaled[:, first] * u[:, second]), u, one]
    if y_cells is not None:
        y = placed(y_cells, device)[:, None]
        parts += [torch.round(scaled * y), y]
    return torch.cat(parts, dim=1)


# --- which devices there are ---------------------------------------------------------------------------------------------


def check_device(device: object) -> str:
    """A device that is there: NumPy ("cpu"), "torch", "cuda"; "auto" is an accelerator if there is one. Reads no row."""
    if not isinstance(device, str) or (device not in ("auto", "cpu", "torch") and device.split(":")[0] != "cuda"):
        raise InvalidInput(f"device is {device!r}; choose 'auto', 'cpu', 'torch' or 'cuda'")
    has_torch = device != "cpu" and importlib.util.find_spec("torch") is not None
    has_cuda = has_torch and device != "torch" and importlib.import_module("torch").cuda.is_available()
    if device == "auto":
        device = "cuda" if has_cuda else "cpu"
    if device != "cpu" and not has_torch:
        raise InvalidInput(f"device is {device!r}, which needs torch; install it, or use device='cpu'")
    if device not in ("cpu", "torch") and not has_cuda:
        raise InvalidInput(f"device is {device!r} and torch sees no such accelerator; use device='auto' or 'cpu'")
    check_products_are_exact(device)
    return device


def _spread_integers(shape: tuple[int, int], bits: int) -> NDArray[np.int64]:
    """Integers of so many bits and a sign, fixed ones, whose bits are well mixed; the first column has the largest."""
    numbers = np.arange(1, math.prod(shape) + 1, dtype=np.int64) * 2_654_435_761
    mixed: NDArray[np.int64] = ((numbers ^ (numbers >> 13)) % 2 ** (bits + 1) - 2**bits).reshape(shape)
    mixed[:, :8] = 2**bits
    return mixed


@cache
def check_products_are_exact(device: str) -> None:
    """Refuse a device whose float64 matrix products round where they need not: the bound counts on exact integers.

    IEEE products and sums of integers below 2^53 are exact. A library may be told to emulate float64 by shorter numbers,
    perhaps in large products only; that would show here, on public numbers, before anything is charged. Of products whose
    entries are all below 2^53, sums over half of the columns are compared, in int64 (after Freivalds 1977).
    """
    for rows, left, right, bits in ((512, 96, 80, 22), *(() if device in ("cpu", "torch") else ((4096, 1000, 904, 20),))):
        one, other = _spread_integers((rows, left), bits), _spread_integers((rows, right), bits)
        made = product(placed(one.astype(np.float64), device), placed(other.astype(np.float64), device))
        halves = (_spread_integers((right, 24), 4)[:, 8:] > 0).astype(np.int64)
        if not np.array_equal(made.astype(np.int64) @ halves, one.T @ (other @ halves)):
            raise InvalidInput(
                f"matrix products on device {device!r} are not exact in 64-bit floats, which exact sums count on; "
                "switch off the emulation of float64, or use device='cpu'. Nothing was charged"
            )
