"""Rate limits: so that one person, or one address that tries tokens, does not keep the others waiting.

They protect the service, not the rows: what may be learnt is limited by the budget, and a token of 256 random bits is not
found by trying. They depend on who asks and when, never on what is answered.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

FAILURES_PER_MINUTE = 10
"""Failed sign-ins of an address."""
MOST_NAMES = 10_000
"""Names that are remembered at a time."""


class RateLimit:
    """A bucket for each name: it holds a minute's worth, refills steadily, and every request takes one out.

    Each process counts for itself.

    Memory is bounded: beyond ``most_names`` the one that asked longest ago is forgotten. Who can ask under more names than
    that is not limited by names anyway.

    Parameters
    ----------
    per_minute : int
        Requests of one name in a minute, and at once after a minute of silence.
    clock : function, optional
        Seconds that never run backwards.
    most_names : int
        How many names are remembered.

    Examples
    --------
    >>> seconds = [0.0]
    >>> limit = RateLimit(2, clock=lambda: seconds[0])
    >>> [limit.allow("alice") for _ in range(3)], limit.allow("bob")
    ([0.0, 0.0, 30.0], 0.0)
    >>> seconds[0] = 30.0
    >>> limit.allow("alice")
    0.0
    """

    def __init__(
        self, per_minute: int, *, clock: Callable[[], float] = time.monotonic, most_names: int = MOST_NAMES
    ) -> None:
        self._size, self._per_second = float(per_minute), per_minute / 60
        self._clock, self._most = clock, most_names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name: what it held, and when
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def allow(self, name: str) -> float:
        """Take one: 0 for go ahead, or how many seconds to wait, and then nothing is taken."""
        with self._lock:
            now = self._clock()
            held = self._held(name, now)
            wait = self._wait(held)
            self._buckets[name] = (held if wait else held - 1.0, now)
            self._buckets.move_to_end(name)
            while len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
            return wait

    def _held(self, name: str, now: float) -> float:
        held, when = self._buckets.get(name, (self._size, now))
        return min(self._size, held + (now - when) * self._per_second)

    def _wait(self, held: float) -> float:
        # Without a millionth of grace, who waits as long as was said may find 0.9999999 there.
        return 0.0 if held >= 1.0 - 1e-6 else (1.0 - held) / self._per_second


def failed_sign_ins(clock: Callable[[], float] = time.monotonic) -> RateLimit:
    """The limit for addresses that show wrong credentials: ask ``allow`` after a failure.

    Examples
    --------
    >>> limit = failed_sign_ins(clock=lambda: 0.0)
    >>> [limit.allow("192.0.2.1") for _ in range(FAILURES_PER_MINUTE)][-1], limit.allow("192.0.2.1")
    (0.0, 6.0)
    """
    return RateLimit(FAILURES_PER_MINUTE, clock=clock)


def network_of(address: str) -> str:
    """The name under which an address is limited: of IPv6 the first 64 bits, because one household has all the others.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8::1"), network_of("2001:db8::2"), network_of("testclient")
    ('192.0.2.7', '2001:db8::/64', '2001:db8::/64', 'testclient')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
