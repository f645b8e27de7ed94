"""Sessions: a cookie stands for a token, for twelve hours at most, and no longer than the token."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

import postgresql_server
from access_setup import PEOPLE, database_at, house_in
from vitrail.serve.access.sessions import MOST_PER_TOKEN, Sessions, same_csrf
from vitrail.serve.access.tokens import Tokens
from vitrail.serve.tables import SESSIONS

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def postgresql():
    if (why := postgresql_server.missing()) is not None:
        pytest.skip(why)
    with postgresql_server.running() as address:
        yield address


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def sessions(request, tmp_path):
    places = {"memory": lambda: "memory", "sqlite": lambda: tmp_path / "ledger.db"}
    address = places.get(request.param, lambda: request.getfixturevalue("postgresql"))()
    with database_at(address) as database:
        yield Sessions(database, Tokens(database, house_in(tmp_path)))


def rows(sessions):
    with sessions.database.transaction(read_only=True) as connection:
        return connection.execute(select(SESSIONS)).all()


def test_a_session_is_who_opened_it(sessions):
    line, secret = sessions.tokens.issue("alice", may_buy=False)
    cookie, csrf = sessions.open(secret)
    assert sessions.principal(cookie) == (sessions.tokens.principal(secret), csrf)
    assert sessions.principal(cookie)[0].credential == line.id
    assert sessions.open("vt_wrong") is None
    assert len(rows(sessions)) == 1


def test_cookies_are_kept_as_hashes_and_nothing_else_opens_a_session(sessions):
    cookie, csrf = sessions.open(secret := sessions.tokens.issue("alice")[1])
    (row,) = rows(sessions)
    assert row.id_hash == hashlib.sha256(cookie.encode()).hexdigest()
    assert cookie not in repr(row)
    wrong = ["", cookie[:-1], cookie + "x", row.id_hash, csrf, secret, "ä", "\x00", "\ud800", "x" * 10**6]
    assert [sessions.principal(one) for one in wrong] == [None] * len(wrong)
    for one in wrong:
        sessions.close(one)
    assert sessions.principal(cookie) is not None


def test_two_sessions_of_a_token_have_secrets_of_their_own(sessions):
    secret = sessions.tokens.issue("alice")[1]
    (first, csrf), (second, other) = sessions.open(secret), sessions.open(secret)
    assert len({first, second, csrf, other}) == 4
    sessions.close(first)
    assert sessions.principal(first) is None
    assert sessions.principal(second)[1] == other


def test_a_session_ends_after_twelve_hours(sessions):
    start = datetime.now(UTC)
    cookie, _ = sessions.open(sessions.tokens.issue("alice")[1], start)
    assert sessions.principal(cookie, start + 12 * HOUR - timedelta(seconds=1)) is not None
    assert sessions.principal(cookie, start + 12 * HOUR) is None


def test_a_session_ends_with_its_token(sessions):
    line, secret = sessions.tokens.issue("alice")
    short, soon = sessions.tokens.issue("alice", days=1)
    start = datetime.fromisoformat(short.expires) - HOUR
    revoked, _ = sessions.open(secret)
    assert sessions.principal(revoked) is not None
    sessions.tokens.revoke(line.id)
    assert sessions.principal(revoked) is None
    expired, _ = sessions.open(soon, start)
    assert sessions.principal(expired, start) is not None
    assert sessions.principal(expired, start + HOUR) is None


def test_a_session_follows_the_house(sessions, tmp_path):
    cookie, _ = sessions.open(sessions.tokens.issue("alice")[1])
    sessions.tokens.house = house_in(tmp_path, PEOPLE.replace('role = "analyst"\ndatasets = ["census"]', 'role = "auditor"'))
    assert sessions.principal(cookie)[0].role == "auditor"
    sessions.tokens.house = house_in(tmp_path, "")
    assert sessions.principal(cookie) is None


def test_old_sessions_are_removed(sessions):
    start = datetime.now(UTC)
    secret, other = (sessions.tokens.issue(name)[1] for name in ("alice", "bob"))
    for hour in (0, 6):
        sessions.open(secret, start + hour * HOUR)
    cookie, _ = sessions.open(other, start + 13 * HOUR)
    assert len(rows(sessions)) == 2, "the one of hour 0 is gone"
    for minute in range(MOST_PER_TOKEN + 5):
        latest = sessions.open(secret, start + 14 * HOUR + timedelta(minutes=minute))
    kept = rows(sessions)
    assert len(kept) == MOST_PER_TOKEN + 1
    assert min(row.created for row in kept) > (start + 12 * HOUR).isoformat()
    assert sessions.principal(latest[0]) is not None
    assert sessions.principal(cookie) is not None, "another's session is not counted"


def test_the_secret_of_forms():
    assert same_csrf("abc", "abc")
    assert not any(same_csrf("abc", wrong) for wrong in (None, "", "ab", "abcd", "ABC", "äbc", "\ud800"))
