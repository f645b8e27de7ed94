"""A small house whose names and words are hostile, served on a real socket; and visitors with cookies, without a browser."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from serve_setup import PEOPLE, listening, serving, write_house
from vitrail.serve.access.gate import Gate
from vitrail.serve.service import Service
from vitrail.serve.web.app import create_app

EVIL = "<script>alert(1)</script>"
EVIL_LEVEL = "<i>Male</i>&"
EVIL_HOUSE = "Lakeside <b>& co</b>"
APPROVE_ABOVE = 1.0
CAP = 6.0
CSRF = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass
class PageHouse:
    """A running service, and a token for everybody."""

    url: str
    service: Service
    gate: Gate
    secrets: Mapping[str, str]


@dataclass
class Answer:
    """What came back."""

    status: int
    text: str
    headers: http.client.HTTPMessage

    @property
    def csrf(self) -> str:
        found = CSRF.search(self.text)
        assert found, "the page has no form of a session"
        return unescape(found[1])


@dataclass
class Visitor:
    """Somebody with a browser that keeps one cookie and runs nothing."""

    house: PageHouse
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    def ask(self, method: str, path: str, form: Mapping[str, object] | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.house.url).netloc, timeout=60)
        sent = {"Accept": "text/html", **headers}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        content = None
        if form is not None:
            content = urlencode(form, doseq=True)
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        for line in response.headers.get_all("Set-Cookie") or ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
            if not self.cookies[name]:
                del self.cookies[name]
        return Answer(response.status, text, response.headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, **form: object) -> Answer:
        return self.ask("POST", path, {"csrf": self.csrf, **form})


def signed_in(house: PageHouse, name: str) -> Visitor:
    """Somebody of the house, signed in by the form."""
    visitor = Visitor(house)
    answer = visitor.post("/signin", token=house.secrets[name])
    assert answer.status == 303, answer.text
    home = visitor.get("/panes" if PEOPLE[name] == "reader" else "/datasets")
    visitor.csrf = home.csrf
    return visitor


def write_hostile_house(folder: Path) -> Path:
    """A house in which every name that may hold markup holds some."""
    path = write_house(folder, epsilon=10.0, approve_above=APPROVE_ABOVE, more='address = "https://house.example"')
    for file in ("staff.csv", "staff.toml"):
        place = folder / file
        place.write_text(re.sub(r"\bMale\b", EVIL_LEVEL, place.read_text()))
    words = f'label = "{EVIL}"\nunit = "<years>"\ndescription = "{EVIL}"\n'
    declared = folder / "staff.toml"
    declared.write_text(declared.read_text().replace("[columns.age]\n", f"[columns.age]\n{words}"))
    text = path.read_text().replace('name = "A house for tests"', f'name = "{EVIL_HOUSE}"')
    path.write_text(text.replace("[people.bob]", f"[people.alice.caps]\nstaff = {CAP}\n[people.bob]", 1))
    return path


@contextmanager
def page_house(path: Path) -> Iterator[PageHouse]:
    """The house behind a file, served."""
    with serving(path, started=False) as service:
        gate = Gate(service.house, service.ledger.database)
        secrets = {name: gate.tokens.issue(name, label=EVIL)[1] for name in PEOPLE}
        with listening(create_app(service, gate=gate)) as url:
            yield PageHouse(url, service, gate, secrets)
