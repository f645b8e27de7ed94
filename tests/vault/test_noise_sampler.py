"""The noise sampler on chosen bits: the fast path keeps its bound, and every decided cell is the one mpmath finds."""

import importlib.util
import random
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

from vitrail.errors import InvalidInput
from vitrail.vault.noise import sampler as noise
from vitrail.vault.noise.normal_exact import FIRST_BITS, LAST_BITS
from vitrail.vault.noise.sampler import LARGEST_SIGMA_GRID, TOTAL_VARIATION_PER_DRAW, rounded_gaussian

SIGMAS = [1e-200, 0.3, 1.0, 7.5, 1234.567, 2.0**20, 1.1 * 2.0**30, 2.0**40 / 3, 2.0**45]


class Tape:
    """Chosen bytes: first the words of the draws, then the extensions; counts what was taken."""

    def __init__(self, words, extension=b""):
        self.left = np.array(words, np.uint64).tobytes() + extension
        self.taken = 0

    def __call__(self, n):
        assert n <= len(self.left), "the tape is at its end"
        out, self.left = self.left[:n], self.left[n:]
        self.taken += n
        return out


def upper_tail(m_minus_half: Fraction, sigma: float) -> mpf:
    x = m_minus_half / Fraction(sigma)
    if x > 10**6:  # mpmath's erfc overflows there; u is never that small
        return mpf(0)
    return mp.erfc(mpf(x.numerator) / mpf(x.denominator) / mp.sqrt(2)) / 2


def is_cell_of(m: int, u: Fraction, sigma: float) -> bool:
    """Whether |round(sigma Z)| = m for tail probability u, decided by mpmath in 150 digits."""
    with mp.workdps(150):
        u = mpf(u.numerator) / mpf(u.denominator)
        outer_side = m == 0 or u <= upper_tail(Fraction(2 * m - 1, 2), sigma)
        return bool(outer_side and u > upper_tail(Fraction(2 * m + 1, 2), sigma))


def bits_of_boundary(m: int, sigma: float, bits: int) -> int:
    """floor(2^bits Q((m - 1/2)/sigma))."""
    with mp.workdps(200):
        return int(mp.floor(upper_tail(Fraction(2 * m - 1, 2), sigma) * mpf(2) ** bits))


def interesting_words(seed: int, n_random: int) -> list[int]:
    """63-bit tails: ends of octaves and pieces, their neighbours, the extremes, and random ones of every size."""
    source = random.Random(seed)
    v = {0, 1, 2, 2**13 - 1, 2**13, 2**13 + 1, 2**53 - 1, 2**53 - 2, 2**52, 2**52 - 1}
    for _ in range(n_random):
        octave = source.randrange(53)
        v.add((1 << octave) | source.getrandbits(octave))
        octave, sub = source.randrange(13, 53), source.randrange(128)
        edge = (128 + sub) << (octave - 7)
        v.update((edge, edge - 1, edge + 1, source.randrange(2**53)))
    return [(x << 10) | source.getrandbits(10) for x in sorted(v)]


def test_fast_path_is_within_its_bound_for_the_whole_cell():
    spec = importlib.util.spec_from_file_location(
        "tool", Path(__file__).resolve().parents[2] / "tools" / "make_normal_table.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tails = [t for t in interesting_words(1, 150) if t >> 10 >= 2**13]
    words = np.array(tails, np.int64)
    column, z, _, _ = noise._evaluate_z(words, (np.empty(words.size, np.int64), np.empty((4, words.size))))
    assert column.min() >= 1
    assert column.max() == noise._table()[1].size - 1
    closest = 0.0
    with mp.workdps(60):
        for tail, value, bound in zip(tails, z.tolist(), noise._table()[1][column].tolist(), strict=True):
            v = tail >> 10
            for end in (v, v + 1):
                share = abs(mpf(value) - tool.quantile(mpf(end) / mpf(2) ** 54)) / mpf(bound)
                assert share <= 1
                closest = max(closest, float(share))
    assert closest > 0.9  # the bound is not only true but tight: in the tail half a cell is nearly all of it


def test_tails_below_the_table_go_to_the_exact_path():
    words = np.array([0, 1, 1 << 10, (2**13 - 1) << 10], np.int64)
    column, z, _, _ = noise._evaluate_z(words, (np.empty(words.size, np.int64), np.empty((4, words.size))))
    assert (column <= 0).all()
    assert (z == 0).all()


@pytest.mark.parametrize("sigma", SIGMAS)
def test_decided_cells_are_those_of_mpmath(sigma):
    for tail in interesting_words(int(sigma) % 997, 12):
        sign = tail & 1
        extension = random.Random(tail).randbytes((LAST_BITS - FIRST_BITS) // 8)
        tape = Tape([tail | (sign << 63)], extension)
        (drawn,) = noise._rounded_gaussian(sigma, 1, tape).tolist()
        assert drawn == 0 or (drawn < 0) == bool(sign)
        u = Fraction((tail << (LAST_BITS - FIRST_BITS)) | int.from_bytes(extension, "big"), 2**LAST_BITS)
        assert is_cell_of(abs(drawn), u, sigma), (tail, drawn)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.5, 1234.567, 2.0**20, 1.1 * 2.0**30, 2.0**45])
def test_bits_right_at_a_boundary_force_extensions_and_both_outcomes_occur(sigma):
    taken_by_outcome = {"outer": set(), "inner": set()}
    for z in (0.02, 0.7, 2.1, 5.5, 6.6, 12.3):
        m = max(1, round(z * sigma))
        edge = bits_of_boundary(m, sigma, LAST_BITS)
        cell = edge - bits_of_boundary(m + 1, sigma, LAST_BITS)
        for differs_at in (66, 80, 127, 140, 200, 300):
            step = 1 << (LAST_BITS - differs_at)
            if step >= cell:  # far out a cell is narrower than that: u would be past the next boundary
                continue
            for outcome, u, expected in (("outer", edge - step, m), ("inner", edge + step, m - 1)):
                word, extension = divmod(u, 1 << (LAST_BITS - FIRST_BITS))
                tape = Tape([word], extension.to_bytes(32, "big"))
                assert noise._rounded_gaussian(sigma, 1, tape).tolist() == [expected]
                assert is_cell_of(expected, Fraction(u, 2**LAST_BITS), sigma)
                if u >> 256 == edge >> 256:
                    assert tape.taken > 8
                if u >> 192 == edge >> 192:
                    assert tape.taken == 8 + 32
                taken_by_outcome[outcome].add(tape.taken)
    assert {16, 40} <= taken_by_outcome["outer"]
    assert {16, 40} <= taken_by_outcome["inner"]


def test_the_last_level_gives_up_on_the_smaller_side():
    for sigma, m in ((1.0, 1), (2.0**20, 700_000), (7.5, 40)):
        edge = bits_of_boundary(m, sigma, LAST_BITS)
        word, extension = edge >> 256, (edge & (2**256 - 1)).to_bytes(32, "big")
        tape = Tape([word], extension)
        assert noise._rounded_gaussian(sigma, 1, tape).tolist() == [m - 1]
        assert tape.taken == 8 + 32


@pytest.mark.parametrize("sigma", [0.3, 1.0, 1000.0, 2.0**45])
def test_all_bits_zero_ends_in_the_far_tail(sigma):
    tape = Tape([0], bytes(32))
    (drawn,) = noise._rounded_gaussian(sigma, 1, tape).tolist()
    assert 20.5 * sigma - 0.5 < drawn <= 22 * sigma + 1
    (drawn,) = noise._rounded_gaussian(sigma, 1, Tape([1 << 63], bytes(32))).tolist()
    assert -22 * sigma - 1 <= drawn < 0.5 - 20.5 * sigma


def test_a_wide_cell_is_filled_and_not_represented_by_one_value():
    # v = 2^13 at sigma = 2^40: one 53-bit cell holds millions of integers, and further bits choose among them
    source = random.Random(3)
    seen = {
        int(noise._rounded_gaussian(2.0**40, 1, Tape([(2**13 << 10) | source.getrandbits(10)], source.randbytes(32)))[0])
        for _ in range(200)
    }
    assert len(seen) == 200
    assert max(seen) - min(seen) > 10**6


def test_scale_per_draw_equals_one_scale_at_a_time():
    source = random.Random(5)
    n = 2 * noise._CHUNK + 77
    words = [source.getrandbits(64) for _ in range(n)]
    extension = source.randbytes(10_000)
    scales = np.array([source.choice([0.3, 1.0, 2.0**20, 2.0**35 / 3]) for _ in range(n)])
    together = noise._rounded_gaussian(scales, n, Tape(words, extension))
    for scale in np.unique(scales):
        apart = noise._rounded_gaussian(float(scale), n, Tape(words, extension))
        where = scales == scale
        assert np.array_equal(together[where], apart[where])


def test_no_floating_point_warning_whatever_the_bits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words = [0x7FF0000000000001, 0xFFF0000000000001, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0, 1 << 63]
        with np.errstate(all="raise", under="ignore"):
            noise._rounded_gaussian(1.0, len(words), Tape(words, bytes(64)))


def test_sizes_and_types():
    for size in (0, 1, noise._CHUNK - 1, noise._CHUNK, noise._CHUNK + 1, np.int64(5)):
        drawn = rounded_gaussian(3.0, size)
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64
    assert rounded_gaussian(np.array([]), 0).shape == (0,)
    assert not rounded_gaussian(5e-324, 1000).any()
    assert 0 < TOTAL_VARIATION_PER_DRAW < 1e-70


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 2 * LARGEST_SIGMA_GRID, "wide"])
def test_scales_outside_the_domain_are_refused(bad):
    with pytest.raises(InvalidInput, match="sigma_grid is"):
        rounded_gaussian(bad, 3)
    if not isinstance(bad, str):
        with pytest.raises(InvalidInput, match="sigma_grid is"):
            rounded_gaussian(np.array([1.0, bad, 2.0]), 3)


def test_wrong_shapes_and_sizes_are_refused():
    with pytest.raises(InvalidInput, match="shape"):
        rounded_gaussian(np.ones(4), 3)
    for size in (-1, 1.5, True):
        with pytest.raises(InvalidInput, match="size is"):
            rounded_gaussian(1.0, size)
