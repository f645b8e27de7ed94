"""Draws worked out by torch are those of NumPy for the same bits."""

import io
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vitrail.errors import InvalidInput  # noqa: E402
from vitrail.vault.noise.sampler import (  # noqa: E402
    _CHUNK,
    _rounded_gaussian,
    rounded_gaussian_from,
)

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def fixed_then_fresh(words):
    """The given words first; what more is drawn comes from bytes that are the same in both runs."""
    more = io.BytesIO(np.random.default_rng(3).bytes(2**20))
    return lambda count: words.tobytes() if count == 8 * len(words) else more.read(count)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sigma", [0.2, 17.3, 2.0**20, 6.1 * 2.0**32, 2.0**45])
def test_the_same_bits_give_the_same_integers(device, sigma):
    words = np.frombuffer(os.urandom(8 * _CHUNK), np.int64).copy()
    words[:64] &= np.int64((1 << 20) - 1)  # far out in the tail: settled in integers
    words[64:128] |= np.int64(-(2**63))
    here = _rounded_gaussian(sigma, _CHUNK, fixed_then_fresh(words))
    there = rounded_gaussian_from(words, sigma, device, fixed_then_fresh(words))
    assert there.dtype == torch.int64
    assert np.array_equal(there.cpu().numpy(), here)


def test_noise_that_is_too_wide_is_refused():
    with pytest.raises(InvalidInput, match="2\\*\\*45"):
        rounded_gaussian_from(np.zeros(3, np.int64), 2.0**46, "cpu")
