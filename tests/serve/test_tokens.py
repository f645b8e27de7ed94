"""Tokens: who shows a secret is its person, as the house says today; nothing else is anybody."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

import postgresql_server
from access_setup import PEOPLE, database_at, house_in
from vitrail.errors import InvalidInput
from vitrail.ledger import open_ledger
from vitrail.serve.access.gate import Gate
from vitrail.serve.access.tokens import PREFIX, Tokens
from vitrail.serve.problems import Problem
from vitrail.serve.tables import SESSIONS, TOKENS

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def postgresql():
    if (why := postgresql_server.missing()) is not None:
        pytest.skip(why)
    with postgresql_server.running() as address:
        yield address


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "postgresql":
        return request.getfixturevalue("postgresql")
    return {"memory": "memory", "sqlite": tmp_path / "ledger.db"}[request.param]


@pytest.fixture
def database(address):
    with database_at(address) as opened:
        yield opened


@pytest.fixture
def house(tmp_path):
    return house_in(tmp_path)


@pytest.fixture
def tokens(database, house):
    return Tokens(database, house)


def stored(database, table):
    with database.transaction(read_only=True) as connection:
        return connection.execute(select(table)).all()


def test_a_secret_is_its_person(tokens):
    line, secret = tokens.issue("alice", label="laptop")
    found = tokens.principal(secret)
    assert (found.name, found.role, found.datasets, found.may_buy) == ("alice", "analyst", frozenset({"census"}), True)
    assert found.credential == line.id
    assert tokens.principal_of(line.id) == found
    assert tokens.lines() == [line]
    assert line.to_json()["label"] == "laptop"


def test_secrets_are_long_and_random_and_kept_as_hashes_only(tokens, database):
    secrets = [tokens.issue("bob")[1] for _ in range(3)]
    assert len(set(secrets)) == 3
    assert all(secret.startswith(PREFIX) and len(secret) == len(PREFIX) + 43 for secret in secrets)
    rows = stored(database, TOKENS)
    assert {row.secret_hash for row in rows} == {hashlib.sha256(secret.encode()).hexdigest() for secret in secrets}
    text = repr(rows) + repr(tokens.lines()) + repr([line.to_json() for line in tokens.lines()])
    assert not any(secret in text or secret.removeprefix(PREFIX) in text for secret in secrets)
    assert not any(row.secret_hash in repr(tokens.lines()) for row in rows)


def test_what_is_no_secret_is_nobody(tokens):
    line, secret = tokens.issue("alice")
    wrong = ["", PREFIX, secret[:-1], secret + "A", secret.upper(), secret.removeprefix(PREFIX), line.id, "\x00", "vt_ä"]
    wrong += [hashlib.sha256(secret.encode()).hexdigest(), PREFIX + "x" * 10**6, "vt_%", "vt_' OR 1=1 --", secret + "\x00"]
    assert [tokens.principal(one) for one in wrong] == [None] * len(wrong)


def test_a_revoked_token_is_nobody(tokens):
    line, secret = tokens.issue("alice")
    _, other = tokens.issue("alice")
    tokens.revoke(line.id)
    assert tokens.principal(secret) is tokens.principal_of(line.id) is None
    assert tokens.principal(other) is not None
    (revoked,) = (one.revoked for one in tokens.lines() if one.id == line.id)
    tokens.revoke(line.id)
    assert [one.revoked for one in tokens.lines() if one.id == line.id] == [revoked], "when it first ended is kept"
    with pytest.raises(Problem, match="there is no token 't_nobody'") as refused:
        tokens.revoke("t_nobody")
    assert refused.value.code == "not-found"


def test_a_token_expires_on_its_day(tokens):
    line, secret = tokens.issue("alice", days=2)
    expires = datetime.fromisoformat(line.expires)
    assert timedelta(days=2) - (expires - datetime.now(UTC)) < timedelta(minutes=10)
    assert tokens.principal(secret, expires - timedelta(seconds=1)) is not None
    assert tokens.principal(secret, expires) is None
    assert tokens.principal(tokens.issue("alice")[1], datetime.now(UTC) + 10_000 * DAY) is not None


def test_the_house_is_the_authority(tokens, tmp_path):
    line, secret = tokens.issue("alice", datasets=["census"])
    tokens.house = house_in(tmp_path, PEOPLE.replace('"analyst"\ndatasets = ["census"]', '"reader"\ndatasets = ["visits"]'))
    found = tokens.principal(secret)
    assert (found.role, found.datasets, found.may_buy) == ("reader", frozenset(), False)
    assert [one.role for one in tokens.lines()] == [line.role] == ["analyst"], "what it was on the day of issue"
    tokens.house = house_in(tmp_path, "[people.bob]\nrole = 'analyst'")
    assert tokens.principal(secret) is tokens.principal_of(line.id) is None


def test_a_token_allows_less_than_its_person_never_more(tokens):
    narrow = tokens.principal(tokens.issue("bob", datasets=["visits"], may_buy=False)[1])
    assert (narrow.datasets, narrow.may_buy) == (frozenset({"visits"}), False)
    assert tokens.principal(tokens.issue("bob")[1]).datasets is None
    assert tokens.principal(tokens.issue("bob", datasets=[])[1]).datasets == frozenset()
    assert not tokens.principal(tokens.issue("rita", may_buy=True)[1]).may_buy, "readers buy nothing"
    with pytest.raises(InvalidInput, match="names 'visits', which 'alice' may not hear of; choose among census"):
        tokens.issue("alice", datasets=["census", "visits"])
    with pytest.raises(InvalidInput, match=r"names 'cencus', which 'bob' may not hear of; .* Did you mean 'census'"):
        tokens.issue("bob", datasets=["cencus"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"person": "alcie"}, "nobody of the house is called so.* Did you mean 'alice'"),
        ({"person": "bob", "datasets": "census"}, "give a list of names"),
        ({"person": "bob", "days": 0}, "days of a token is 0; it must be a whole number from 1"),
        ({"person": "bob", "label": "a\nb"}, "must be one line"),
        ({"person": "bob", "may_buy": "no"}, "may_buy of a token is 'no'"),
    ],
)
def test_mistakes_are_told_and_nothing_is_issued(arguments, sentence, house):
    with database_at("memory") as database:
        tokens = Tokens(database, house)
        with pytest.raises(InvalidInput, match=sentence):
            tokens.issue(**arguments)
        assert tokens.lines() == []


def test_the_first_owner_token_is_made_once(tokens):
    assert not tokens.has_owner_token()
    secret = tokens.first_owner_token()
    assert tokens.principal(secret).role == "owner"
    assert tokens.has_owner_token()
    assert tokens.first_owner_token() is None
    tokens.revoke(tokens.lines()[0].id)
    assert not tokens.has_owner_token()
    assert tokens.first_owner_token() is None, "a service whose owner's token was revoked prints no new one"
    tokens.issue("owner", days=1)
    assert tokens.has_owner_token()
    assert not tokens.has_owner_token(datetime.now(UTC) + 2 * DAY)


def test_an_owner_who_has_a_token_gets_no_first_one(tokens):
    tokens.issue("owner")
    assert tokens.first_owner_token() is None


def test_services_that_start_at_once_print_one_first_token(address, house):
    """Each with connections of its own, all at the same moment; in memory, threads of one process."""
    with database_at(address) as database, ExitStack() as opened:
        databases = [database] * 6
        if address != "memory":
            databases = [opened.enter_context(closing(open_ledger(address))).database for _ in range(6)]
        at_once = threading.Barrier(len(databases))

        def start(database):
            at_once.wait()
            return Tokens(database, house).first_owner_token()

        with ThreadPoolExecutor(len(databases)) as pool:
            secrets = [secret for secret in pool.map(start, databases) if secret is not None]
        tokens = Tokens(database, house)
        assert len(secrets) == len(tokens.lines()) == 1
        assert tokens.principal(secrets[0]).name == "owner"


def test_a_start_that_saw_no_token_does_not_make_a_second_one(tokens, database):
    """PostgreSQL lets two starts both see nothing; the key of the first token is what decides."""
    first = tokens.first_owner_token()
    with database.transaction(read_only=False) as connection:  # as if it could not be seen yet: it is not the owner's
        connection.execute(TOKENS.update().values(person="alice"))
    assert tokens.first_owner_token() is None
    assert len(tokens.lines()) == 1
    assert tokens.principal(first).name == "alice", "the row is as it was"


# -- the gate ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def gate(house):
    with database_at("memory") as database:
        yield Gate(house, database)


def test_the_gate_knows_bearers_and_cookies(gate):
    line, secret = gate.tokens.issue("alice")
    assert gate.who(None, None) is None
    for header in (f"Bearer {secret}", f"bearer {secret}", f"BEARER   {secret} "):
        principal, csrf = gate.who(header, None)
        assert (principal.name, principal.credential, csrf) == ("alice", line.id, None)
    cookie, csrf = gate.sign_in(f" {secret}\n")
    assert gate.who(None, cookie) == (principal, csrf)
    assert gate.who(f"Bearer {secret}", "an old cookie") == (principal, None), "a header is looked at alone"
    gate.check_csrf(csrf, csrf)
    for wrong in (None, "", csrf[:-1], csrf + "x", "ä", "\ud800"):
        with pytest.raises(Problem) as refused:
            gate.check_csrf(csrf, wrong)
        assert refused.value.code == "forbidden"
    gate.sign_out(cookie)
    with pytest.raises(Problem, match="sign in again") as refused:
        gate.who(None, cookie)
    assert refused.value.code == "not-signed-in"


def test_a_wrong_header_is_not_rescued_by_a_good_cookie(gate):
    cookie, _ = gate.sign_in(gate.tokens.issue("alice")[1])
    with pytest.raises(Problem, match="not known here"):
        gate.who("Bearer vt_wrong", cookie)


def test_refusals_do_not_tell_why(gate):
    """Unknown, revoked, and of somebody who left: the same sentence."""
    line, revoked = gate.tokens.issue("alice")
    gate.tokens.revoke(line.id)
    told = set()
    for secret in ("vt_unknown", revoked, "eyJ.eyJ.x"):
        with pytest.raises(Problem) as refused:
            gate.who(f"Bearer {secret}", None)
        told.add((refused.value.code, refused.value.detail))
    assert len(told) == 1
    assert revoked not in repr(told)


def test_a_person_waits_whatever_credential_is_shown(tmp_path):
    seconds = [0.0]
    with database_at("memory") as database:
        gate = Gate(house_in(tmp_path, service="requests_per_minute = 3"), database, clock=lambda: seconds[0])
        header, other = (f"Bearer {gate.tokens.issue('bob')[1]}" for _ in range(2))
        cookie, _ = gate.sign_in(header.split()[1])
        assert all(gate.who(header, None) for _ in range(2))
        assert gate.who(None, cookie)
        for again in ((other, None), (None, cookie)):
            with pytest.raises(Problem, match="try again in 20 s") as refused:
                gate.who(*again)
            assert (refused.value.code, refused.value.facts) == ("too-many-requests", {"retry_after": 20})
        assert gate.who(f"Bearer {gate.tokens.issue('alice')[1]}", None), "others do not wait"
        seconds[0] = 20.0
        assert gate.who(other, None)


def test_an_address_that_fails_waits_and_keeps_nobody_out(house):
    """Many people share an address: a forgotten program with an old token must not lock them out."""
    seconds = [0.0]
    with database_at("memory") as database:
        gate = Gate(house, database, clock=lambda: seconds[0])
        good = gate.tokens.issue("bob")[1]
        for attempt in range(10):
            with pytest.raises(Problem) as refused:
                gate.sign_in("vt_x", "192.0.2.1") if attempt % 2 else gate.who("Bearer vt_x", None, "192.0.2.1")
            assert refused.value.code == "not-signed-in"
        for ask in (lambda: gate.who("Bearer vt_x", None, "192.0.2.1"), lambda: gate.sign_in("vt_x", "192.0.2.1")):
            with pytest.raises(Problem) as refused:
                ask()
            assert (refused.value.code, refused.value.facts) == ("too-many-requests", {"retry_after": 6})
        assert all(gate.who(f"Bearer {good}", None, "192.0.2.1") for _ in range(20)), "what succeeds is not counted"
        assert gate.sign_in(good, "192.0.2.1")
        with pytest.raises(Problem, match="not known here"):
            gate.who("Bearer vt_x", None, "192.0.2.2")


HEADERS = st.one_of(
    st.text(),
    st.binary().map(lambda raw: raw.decode("latin-1")),
    st.text(alphabet=st.characters()).map("Bearer {}".format),
    st.from_regex(r"(?i)bearer vt_[A-Za-z0-9_-]{0,60}", fullmatch=True),
    st.from_regex(r"Bearer [A-Za-z0-9_-]{1,40}(\.[A-Za-z0-9_-]{0,40}){1,4}", fullmatch=True),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=st.one_of(st.none(), HEADERS), cookie=st.one_of(st.none(), st.text()))
def test_no_header_or_cookie_but_a_secret_is_anybody(gate, header, cookie):
    gate.tokens.first_owner_token()
    if header is cookie is None:
        assert gate.who(header, cookie) is None
        return
    with pytest.raises(Problem) as refused:
        gate.who(header, cookie)
    assert refused.value.code == "not-signed-in"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_secret_with_one_letter_changed_is_nobody(gate, data):
    if not gate.tokens.lines():
        gate.secret = gate.tokens.issue("owner")[1]
    secret = gate.secret
    place = data.draw(st.integers(0, len(secret) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != secret[place]))
    changed = secret[:place] + letter + secret[place + 1 :]
    with pytest.raises(Problem):
        gate.who(f"Bearer {changed}", None)
    assert gate.tokens.principal(secret) is not None


def test_a_token_in_the_database_of_another_house_is_nobody(house):
    with database_at("memory") as here, database_at("memory") as there:
        assert Gate(house, there).tokens.principal(Gate(house, here).tokens.issue("owner")[1]) is None
        assert stored(there, SESSIONS) == []
