"""The shipped table of polynomials is certified anew, and a certificate can fail."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

from vitrail.vault.noise import sampler as noise


def load_tool():
    path = Path(__file__).resolve().parents[2] / "tools" / "make_normal_table.py"
    spec = importlib.util.spec_from_file_location("make_normal_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()
COEFFICIENTS, BOUNDS = TOOL.load_table()


def test_sampler_and_tool_mean_the_same_table():
    assert (noise._SUB_BITS, noise._FIRST_OCTAVE, noise._DEGREE) == (TOOL.SUB_BITS, TOOL.FIRST_OCTAVE, TOOL.DEGREE)
    assert COEFFICIENTS.shape == (TOOL.DEGREE + 1, TOOL.N_PIECES + 1)
    assert BOUNDS.shape == (TOOL.N_PIECES + 1,)
    assert np.isinf(BOUNDS[0])
    assert np.isfinite(BOUNDS[1:]).all()
    assert (BOUNDS[1:] > 0).all()
    assert np.array_equal(noise._table()[1], BOUNDS)


def test_a_sample_of_pieces_is_certified():
    n = TOOL.N_PIECES
    edges = [0, 1, 127, 128, 129, n // 2, n - 257, n - 256, n - 129, n - 128, n - 127, n - 2, n - 1]
    for piece in {*edges, *range(5, n, 131)}:
        assert TOOL.uncertified_pieces(COEFFICIENTS, BOUNDS, range(piece, piece + 1)) == []


def test_a_spoilt_piece_is_not_certified():
    piece = TOOL.N_PIECES - 70
    for power in range(TOOL.DEGREE + 1):
        spoilt = COEFFICIENTS.copy()
        spoilt[power, 1 + piece] += 2e-16  # about one last digit of the value
        assert TOOL.uncertified_pieces(spoilt, BOUNDS, range(piece, piece + 1)) == [piece]
    optimistic = BOUNDS.copy()
    optimistic[1 + piece] *= 0.999
    assert TOOL.uncertified_pieces(COEFFICIENTS, optimistic, range(piece, piece + 1)) == [piece]


def test_derivatives_of_the_quantile_function():
    with mp.workdps(TOOL.DIGITS):
        for u in (mpf("0.01"), mpf("0.2"), mpf("0.45")):
            z = TOOL.quantile(u)
            for order in (1, 2, 3, 6):
                ours = mp.polyval(list(reversed(TOOL.derivative_polynomial(order))), z) / TOOL.density(z) ** order
                numeric = mp.diff(lambda p: mp.sqrt(2) * mp.erfinv(1 - 2 * p), u, order)
                assert abs((-1) ** order * ours / numeric - 1) < mpf(10) ** -8


@pytest.mark.slow
def test_every_piece_is_certified():
    assert TOOL.uncertified_pieces(COEFFICIENTS, BOUNDS, range(TOOL.N_PIECES)) == []
