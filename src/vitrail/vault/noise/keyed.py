"""Random bits that are a function of a secret key and a place: the same wherever and however often they are asked for.

A coin that decides whether a row is looked at must not depend on who tosses it: a walk may be shared by processes or by
machines, and a part of it that was lost is walked again. So the driver draws one key of 256 bits for each question, from the
operating system, before any row is touched, and every coin is SHAKE-256 of that key and of the coin's place. To anybody
without the key these bits are indistinguishable from random ones that nobody has seen (the sponge as a pseudo-random
function, Bertoni et al. 2011), which is what is assumed of the operating system's own generator, a function of its seed,
as well. A key is used for one question and never leaves the vault's own processes.
"""

from __future__ import annotations

import hashlib
import os

from .normal_exact import RandomBytes

KEY_BYTES = 32


def fresh_key() -> bytes:
    """A key that nobody has used."""
    return os.urandom(KEY_BYTES)


def bytes_at(key: bytes, *place: int) -> RandomBytes:
    """A source of random bytes for one place; asked again in the same way, it gives the same bytes.

    Examples
    --------
    >>> key = fresh_key()
    >>> bytes_at(key, 3, 0)(8) == bytes_at(key, 3, 0)(8), bytes_at(key, 3, 0)(8) == bytes_at(key, 3, 1)(8)
    (True, False)
    """
    prefix = key + b"".join(number.to_bytes(8, "big") for number in place)
    calls = 0

    def random_bytes(count: int) -> bytes:
        nonlocal calls
        calls += 1
        return hashlib.shake_256(prefix + calls.to_bytes(8, "big")).digest(count)

    return random_bytes
