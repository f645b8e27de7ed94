"""Rate limits: so many a minute for each name, whatever the order, the threads and the number of names."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.serve.access.rate_limits import FAILURES_PER_MINUTE, RateLimit, failed_sign_ins, network_of


class Clock:
    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


def test_a_minutes_worth_then_one_at_a_time(clock):
    limit = RateLimit(60, clock=clock)
    assert [limit.allow("alice") for _ in range(60)] == [0.0] * 60
    assert limit.allow("alice") == pytest.approx(1.0)
    clock.seconds += 0.25
    assert limit.allow("alice") == pytest.approx(0.75), "asking in vain costs nothing"
    clock.seconds += 0.75
    assert limit.allow("alice") == 0.0
    assert limit.allow("alice") > 0


def test_silence_does_not_add_up_beyond_a_minute(clock):
    limit = RateLimit(3, clock=clock)
    limit.allow("alice")
    clock.seconds += 10**6
    assert [limit.allow("alice") > 0 for _ in range(5)] == [False, False, False, True, True]


def test_names_do_not_wait_for_each_other(clock):
    limit = RateLimit(1, clock=clock)
    assert [limit.allow(name) for name in ("alice", "bob", "alice", "bob")] == [0.0, 0.0, 60.0, 60.0]


@given(per_minute=st.integers(1, 10_000), gaps=st.lists(st.floats(0, 30), max_size=60))
def test_never_more_than_a_minutes_worth_and_what_time_brought(per_minute, gaps):
    clock = Clock()
    limit, allowed, start = RateLimit(per_minute, clock=clock), 0, clock.seconds
    for gap in gaps:
        clock.seconds += gap
        allowed += limit.allow("alice") == 0.0
    assert allowed <= per_minute * (1 + (clock.seconds - start) / 60) + 1e-3


@given(per_minute=st.integers(1, 100))
def test_who_waits_as_long_as_was_said_may_go(per_minute):
    clock = Clock()
    limit = RateLimit(per_minute, clock=clock)
    for _ in range(per_minute + 20):
        if (wait := limit.allow("alice")) > 0:
            clock.seconds += wait
            assert limit.allow("alice") == 0.0


def test_memory_is_bounded_and_the_busiest_are_remembered(clock):
    limit = RateLimit(1, clock=clock, most_names=10)
    limit.allow("alice")
    for number in range(1000):
        limit.allow(f"address {number}")
        assert limit.allow("alice") > 0, "who asks again and again is not forgotten"
        assert len(limit) <= 10


class SlowlyFound(str):
    """A name that lets other threads run whenever it is looked up."""

    __slots__ = ()

    def __hash__(self):
        time.sleep(1e-5)
        return hash(str(self))

    def __eq__(self, other):
        return str(self) == str(other)


def test_threads_do_not_get_more(clock):
    limit = RateLimit(20, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: limit.allow(SlowlyFound("alice")), range(200)))
    assert answers.count(0.0) == 20


def test_failed_sign_ins_are_limited_more(clock):
    limit = failed_sign_ins(clock)
    assert FAILURES_PER_MINUTE < 60
    for _ in range(FAILURES_PER_MINUTE):
        assert limit.allow("192.0.2.1") == 0.0
    assert limit.allow("192.0.2.1") == pytest.approx(60 / FAILURES_PER_MINUTE)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "unix:"),
        ("x" * 1000, "x" * 64),
    ],
)
def test_one_household_is_one_name(address, network):
    assert network_of(address) == network
