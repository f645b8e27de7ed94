"""Tokens of an identity provider, signed with real keys, and what an attacker makes of them."""

import base64
import hashlib
import hmac
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from joserfc.jws import JWSRegistry

from access_setup import PEOPLE, database_at, house_in
from vitrail.errors import InvalidInput
from vitrail.serve.access.gate import Gate
from vitrail.serve.access.oidc import ALGORITHMS, KEEP_SECONDS, REFETCH_SECONDS, KeysUnavailable, Oidc, fetch_bytes
from vitrail.serve.problems import Problem

ISSUER = "https://login.example"
NOW = 1_800_000_000
OIDC = f"""
[oidc]
issuer = "{ISSUER}"
audience = "vitrail"
FILE
[oidc.people]
"alice@lakeside.example" = "alice"
"owner@lakeside.example" = "owner"
"""
CLAIMS = {"iss": ISSUER, "aud": "vitrail", "exp": NOW + 300, "email": "alice@lakeside.example", "sub": "7"}
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"})


def jwks(*keys):
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def encoded(value):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(claims=None, key=RSA, algorithm="RS256", header=None, **changed):
    """A token as a provider signs it, or as one that checks nothing would; a header of None is left out."""
    named = {"alg": algorithm, "kid": key.kid, "typ": "JWT", **(header or {})}
    head = encoded({name: value for name, value in named.items() if value is not None})
    content = f"{head}.{encoded({**(CLAIMS if claims is None else claims), **changed})}"
    return f"{content}.{encoded(JWSRegistry.algorithms[algorithm].sign(content.encode(), key))}"


class Provider:
    """An identity provider whose documents can be changed, and that counts who fetches them."""

    def __init__(self, *keys):
        self.keys, self.discovery, self.fetched, self.down = (
            keys,
            {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"},
            [],
            False,
        )

    def __call__(self, address):
        self.fetched.append(address)
        if self.down:
            raise OSError("connection refused")
        if address == f"{ISSUER}/.well-known/openid-configuration":
            return json.dumps(self.discovery).encode()
        return jwks(*self.keys)  # wherever they are asked for


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def house(tmp_path):
    return house_in(tmp_path, oidc=OIDC.replace("FILE", ""))


@pytest.fixture
def provider():
    return Provider(RSA, EC)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def oidc(house, provider, clock):
    return Oidc(house, provider, clock=clock, now=lambda: NOW)


def test_a_signed_token_is_its_person(oidc):
    for token in (signed(), signed(key=EC, algorithm="ES256"), signed(algorithm="PS256"), signed(aud=["x", "vitrail"])):
        found = oidc.principal(token)
        assert (found.name, found.role, found.datasets, found.may_buy) == ("alice", "analyst", frozenset({"census"}), True)
        assert found.credential.startswith("oidc:")
        assert len(found.credential) == 21
        assert found.credential.removeprefix("oidc:") not in token
    assert oidc.principal(signed(email="owner@lakeside.example")).role == "owner"
    assert oidc.principal(signed(role="owner", datasets=["visits"])).role == "analyst", "claims give no rights"


def test_the_house_is_the_authority(oidc, tmp_path):
    oidc.house = house_in(tmp_path, PEOPLE.replace('role = "analyst"\ndatasets = ["census"]', 'role = "reader"'))
    found = oidc.principal(signed())
    assert (found.role, found.datasets, found.may_buy) == ("reader", None, False)
    oidc.house = house_in(tmp_path, "")
    assert oidc.principal(signed()) is None


def without(*names):
    return {name: value for name, value in CLAIMS.items() if name not in names}


PUBLIC_PEM = RSA.as_pem(private=False)
UNSIGNED = f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(CLAIMS)}."


def confused(secret, kid="rsa"):
    """A token that is signed as with a shared secret, which is the public key: what a careless check would accept."""
    head = f"{encoded({'alg': 'HS256', 'kid': kid, 'typ': 'JWT'})}.{encoded(CLAIMS)}"
    return f"{head}.{encoded(hmac.new(secret, head.encode(), hashlib.sha256).digest())}"


def tampered(token, **changed):
    head, _, signature = token.split(".")
    return f"{head}.{encoded({**CLAIMS, **changed})}.{signature}"


ATTACKS = {
    "alg none": UNSIGNED,
    "alg none in capitals": f"{encoded({'alg': 'NONE'})}.{encoded(CLAIMS)}.",
    "alg none with a number of a key": f"{encoded({'alg': 'none', 'kid': 'rsa'})}.{encoded(CLAIMS)}.",
    "no alg": f"{encoded({'kid': 'rsa'})}.{encoded(CLAIMS)}.{encoded(b'x')}",
    "HS256 with the public key": confused(PUBLIC_PEM),
    "HS256 with the key as it is published": confused(jwks(RSA)),
    "HS256 with the modulus": confused(RSA.as_dict(private=False)["n"].encode()),
    "HS256 with nothing": confused(b""),
    "a list of algorithms": f"{encoded({'alg': ['RS256'], 'kid': 'rsa'})}.{encoded(CLAIMS)}.{encoded(b'x')}",
    "another's key of the same number": signed(key=STRANGER),
    "a key that the token brings along": signed(key=STRANGER, header={"jwk": STRANGER.as_dict(private=False)}),
    "an address of keys that the token brings along": signed(key=STRANGER, header={"jku": "https://evil.example/keys"}),
    "a number of a key that is not there": signed(key=STRANGER, header={"kid": "unknown"}),
    "no number, and two keys": signed(header={"kid": None}),
    "a number that is no text": f"{encoded({'alg': 'RS256', 'kid': ['rsa']})}.{encoded(CLAIMS)}.{encoded(b'x')}",
    "another kind of key": signed(header={"kid": "ec"}),
    "a cut signature": signed()[:-10],
    "no signature": signed().rpartition(".")[0] + ".",
    "changed claims": tampered(signed(), email="owner@lakeside.example"),
    "what must be understood and is not": signed(header={"crit": ["vitrail"], "vitrail": 1}),
    "a statement that somebody has left": signed(header={"typ": "logout+jwt"}),
    "wrong issuer": signed(iss="https://evil.example"),
    "issuer with a slash": signed(iss=ISSUER + "/"),
    "no issuer": signed(without("iss")),
    "an issuer that is a list": signed(iss=[ISSUER]),
    "wrong audience": signed(aud="another service"),
    "a longer audience": signed(aud="vitrail2"),
    "other audiences": signed(aud=["a", "b"]),
    "an audience that is a table": signed(aud={"vitrail": 1}),
    "an audience in a list in a list": signed(aud=[["vitrail"]]),
    "no audience": signed(without("aud")),
    "expired": signed(exp=NOW - 60),
    "never expires": signed(without("exp")),
    "expires on a text": signed(exp=str(NOW + 300)),
    "expires on True": signed(exp=True),
    "expires on no number": signed(exp=float("nan")),
    "expires at infinity": signed(exp=float("inf")),
    "expires on null": signed(exp=None),
    "not yet": signed(nbf=NOW + 61),
    "begins on a text": signed(nbf="now"),
    "begins on True": signed(nbf=True),
    "begins on null": signed(nbf=None),
    "nobody of the house": signed(email="eve@lakeside.example"),
    "in capitals": signed(email="Alice@lakeside.example"),
    "no claim": signed(without("email")),
    "a claim that is a list": signed(email=["alice@lakeside.example"]),
    "a claim that is a number": signed(email=7),
    "a claim that is a table": signed(email={"alice@lakeside.example": 1}),
    "a claim that is null": signed(email=None),
    "an address that nobody looked at": signed(email_verified=False),
    "an address that was looked at, maybe": signed(email_verified="no"),
    "the name itself": signed(email="alice"),
    "five parts": signed() + ".x.y",
    "a signed text": f"{encoded({'alg': 'RS256', 'kid': 'rsa'})}.{encoded('text')}.{encoded(b'x')}",
    "nothing": "",
    "dots": "..",
    "not ASCII": signed() + "ä",
    "endless": signed(padding="x" * 20_000),
    "deep": f"{encoded(b'[' * 5000)}.{encoded(b'[' * 5000)}.x",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_nobody(oidc, attack):
    assert oidc.principal(ATTACKS[attack]) is None
    assert oidc.principal(signed()) is not None, "and good tokens still count"


def test_the_attacks_would_work_on_a_careless_check():
    """The shared-secret attack is a real one: who takes the published key for a secret accepts it."""
    published = RSA.as_dict(private=False)["n"].encode()
    assert jwt.decode(confused(published), OctKey.import_key(published), algorithms=["HS256"]).claims == CLAIMS
    assert not {"none", "HS256", "HS384", "HS512"} & set(ALGORITHMS)


def test_clocks_may_differ_by_a_minute(oidc):
    assert oidc.principal(signed(exp=NOW - 59)) is not None
    assert oidc.principal(signed(nbf=NOW + 60)) is not None
    assert oidc.principal(signed(exp=NOW + 300.5, nbf=NOW - 0.5, iat=NOW)) is not None
    assert oidc.principal(signed(email_verified=True)) is not None


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_a_shared_secret_among_the_published_keys_is_left_out(house):
    """Also a key for encryption, one that is too short, one of an unknown kind, and one for another algorithm."""
    secret = OctKey.generate_key(256, {"kid": "oct"})
    hidden = RSAKey.generate_key(2048, {"kid": "enc", "use": "enc"})
    short = RSAKey.generate_key(1024, {"kid": "short"})
    narrow = RSAKey.generate_key(2048, {"kid": "narrow", "alg": "RS512"})
    strange = [{"kty": "LATTICE", "kid": "later"}, {"kty": "EC", "crv": "P-0", "x": "", "y": "", "kid": "broken"}, 7, {}]
    published = [
        secret.as_dict(private=True),
        *(key.as_dict(private=False) for key in (hidden, short, narrow, RSA)),
        *strange,
    ]
    documents = {
        f"{ISSUER}/.well-known/openid-configuration": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"},
        f"{ISSUER}/keys": {"keys": published},
    }
    oidc = Oidc(house, lambda address: json.dumps(documents[address]).encode(), now=lambda: NOW)
    assert oidc.principal(signed()) is not None
    assert oidc.principal(signed(key=narrow, algorithm="RS512")) is not None
    assert oidc.principal(signed(key=secret, algorithm="HS256")) is None
    assert [oidc.principal(signed(key=key)) for key in (hidden, short, narrow)] == [None] * 3


def test_one_key_needs_no_number(house):
    oidc = Oidc(house, Provider(RSA), now=lambda: NOW)
    token = signed(header={"kid": None})
    assert oidc.principal(token) is not None
    assert Oidc(house, Provider(RSA, EC), now=lambda: NOW).principal(token) is None


def test_keys_are_kept_and_fetched_again_for_a_new_one(oidc, provider, clock):
    for _ in range(5):
        assert oidc.principal(signed()) is not None
    assert len(provider.fetched) == 2, "the discovery document and the keys, once"
    newer = RSAKey.generate_key(2048, {"kid": "newer"})
    provider.keys = (newer,)
    clock.seconds = REFETCH_SECONDS
    assert oidc.principal(signed(key=newer)) is not None
    assert oidc.principal(signed()) is None, "a key that was withdrawn"
    assert len(provider.fetched) == 4


def test_strangers_do_not_choose_how_often_keys_are_fetched(oidc, provider, clock):
    oidc.principal(signed())
    clock.seconds = REFETCH_SECONDS
    for number in range(100):
        assert oidc.principal(signed(key=STRANGER, header={"kid": f"unknown {number}"})) is None
    assert len(provider.fetched) == 4
    for attack in (UNSIGNED, confused(PUBLIC_PEM, kid="unknown"), "a.b.c", ""):
        clock.seconds += REFETCH_SECONDS
        assert oidc.principal(attack) is None
    assert len(provider.fetched) == 4, "what cannot be good fetches nothing"


def test_keys_are_not_believed_for_ever(oidc, provider, clock):
    assert oidc.principal(signed()) is not None
    provider.down = True
    clock.seconds = KEEP_SECONDS - 1
    assert oidc.principal(signed()) is not None, "while the provider is down, as long as keys are kept"
    assert oidc.principal(signed(key=STRANGER, header={"kid": "unknown"})) is None
    clock.seconds = KEEP_SECONDS + REFETCH_SECONDS
    fetched = len(provider.fetched)
    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            oidc.principal(signed())
    assert len(provider.fetched) == fetched + 1
    provider.down = False
    clock.seconds += REFETCH_SECONDS
    assert oidc.principal(signed()) is not None


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://evil.example", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER, "jwks_uri": "http://login.example/keys"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER, "jwks_uri": 7},
        {"issuer": ISSUER},
        [],
    ],
)
def test_a_discovery_document_must_be_the_issuers_own(oidc, provider, discovery):
    provider.discovery = discovery
    with pytest.raises(KeysUnavailable, match="cannot be read just now"):
        oidc.principal(signed())


def test_many_threads_fetch_once(oidc, provider):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: oidc.principal(signed()), range(16)))
    assert all(principal.name == "alice" for principal in found)
    assert len(provider.fetched) == 2


def test_keys_of_a_file(tmp_path, clock):
    house = house_in(tmp_path, oidc=OIDC.replace("FILE", 'jwks_file = "jwks.json"'))
    oidc = Oidc(house, Provider(), clock=clock, now=lambda: NOW)
    with pytest.raises(KeysUnavailable):
        oidc.principal(signed())
    (tmp_path / "jwks.json").write_bytes(jwks(RSA))
    clock.seconds = REFETCH_SECONDS
    assert oidc.principal(signed()) is not None
    (tmp_path / "jwks.json").write_bytes(jwks(EC))
    clock.seconds = 2 * REFETCH_SECONDS
    assert oidc.principal(signed(key=EC, algorithm="ES256")) is not None


def test_an_issuer_without_https_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="must begin with https://"):
        Oidc(house_in(tmp_path, oidc=OIDC.replace("FILE", "").replace("https://login", "http://login")))
    with pytest.raises(InvalidInput, match=r"has no \[oidc\]"):
        Oidc(house_in(tmp_path))


def test_documents_are_fetched_whole_or_not_at_all():
    """A real server on this machine: a document, one that is too long, and a redirect to another one."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302 if self.path == "/away" else 200)
            if self.path == "/away":
                self.send_header("Location", "/good")
            self.end_headers()
            self.wfile.write(b"x" * (1 << 21) if self.path == "/long" else b"{}")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        where = f"http://127.0.0.1:{server.server_port}"
        try:
            assert fetch_bytes(f"{where}/good") == b"{}"
            with pytest.raises(InvalidInput, match="is longer than"):
                fetch_bytes(f"{where}/long")
            with pytest.raises(OSError, match="302"):
                fetch_bytes(f"{where}/away")
        finally:
            server.shutdown()
            serving.join()
    for address in ("file:///etc/passwd", "http://login.example/keys", "ftp://login.example", ""):
        with pytest.raises(InvalidInput, match="must begin with https://"):
            fetch_bytes(address)


# -- the gate ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def gate(house, provider, clock):
    with database_at("memory") as database:
        made = Gate(house, database, fetch=provider, clock=clock)
        made.oidc._now = lambda: NOW
        yield made


def test_the_gate_takes_both_kinds(gate):
    secret = gate.tokens.issue("bob")[1]
    assert gate.who(f"Bearer {signed()}", None)[0].name == "alice"
    assert gate.who(f"Bearer {secret}", None)[0].name == "bob"
    for wrong in (UNSIGNED, secret.removeprefix("vt_"), "vt_" + signed()):
        with pytest.raises(Problem, match="not known here"):
            gate.who(f"Bearer {wrong}", None)
    with pytest.raises(Problem):
        gate.sign_in(signed())


def test_a_house_that_is_read_again_counts_at_once(gate, tmp_path):
    secret = gate.tokens.issue("bob")[1]
    gate.use(house_in(tmp_path, "[people.alice]\nrole = 'analyst'"))
    for bearer in (secret, signed()):
        with pytest.raises(Problem, match="not known here"):
            gate.who(f"Bearer {bearer}", None)
    assert gate.oidc is None


def test_a_provider_that_is_down_is_nobodys_failure(gate, provider):
    provider.down = True
    for _ in range(30):
        with pytest.raises(Problem, match="identity provider's keys") as refused:
            gate.who(f"Bearer {signed()}", None, "192.0.2.1")
        assert refused.value.code == "not-signed-in"
    assert "refused" not in refused.value.detail, "nothing of the network's own words"
    assert gate.who(f"Bearer {gate.tokens.issue('bob')[1]}", None, "192.0.2.1")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    header=st.one_of(
        st.text(),
        st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "zip"]), st.one_of(st.text(), st.none()))
        .map(lambda fields: {"alg": "RS256", "kid": "rsa", **fields})
        .map(encoded),
    ),
    payload=st.one_of(st.just(encoded(CLAIMS)), st.text(), st.binary().map(encoded)),
    signature=st.one_of(st.just(signed().split(".")[2]), st.text(), st.binary(max_size=300).map(encoded)),
)
def test_no_three_parts_but_signed_ones_are_anybody(gate, header, payload, signature):
    with pytest.raises(Problem) as refused:
        gate.who(f"Bearer {header}.{payload}.{signature}", None)
    assert refused.value.code == "not-signed-in"
