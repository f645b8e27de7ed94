"""The pages of the service without a browser: who sees what, forms, headers, and names that would like to be markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from page_house import (
    APPROVE_ABOVE,
    EVIL,
    EVIL_HOUSE,
    EVIL_LEVEL,
    PageHouse,
    Visitor,
    page_house,
    signed_in,
    write_hostile_house,
)
from serve_setup import PEOPLE, finished, person
from vitrail.serve.kinds import KINDS
from vitrail.serve.web.pages import ROUTES
from vitrail.serve.web.pages.questions import QUESTIONS, other_options
from vitrail.serve.web.pages.site import POLICY, environment, static_files

PERSON = {"p.0": "30", "p.1": "40", "p.2": "1"}
PAGES = {
    "owner": ("/datasets", "/datasets/staff", "/datasets/staff/ask", "/jobs", "/panes", "/people", "/approvals", "/ledger"),
    "alice": ("/datasets", "/datasets/staff", "/datasets/staff/ask", "/jobs", "/panes"),
    "rita": ("/panes",),
    "audrey": ("/datasets", "/datasets/staff", "/ledger"),
}
EVERY = sorted({path for paths in PAGES.values() for path in paths})


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageHouse]:
    with page_house(write_hostile_house(tmp_path_factory.mktemp("pages"))) as running:
        yield running


@pytest.fixture(scope="module")
def visitors(house: PageHouse) -> dict[str, Visitor]:
    return {name: signed_in(house, name) for name in PEOPLE}


@pytest.fixture(scope="module")
def bought(house: PageHouse, visitors: dict[str, Visitor]) -> str:
    """The number of an answered question of alice's."""
    answer = visitors["alice"].post("/datasets/staff/ask", explainer="shapley", model="score", epsilon="0.2", **PERSON)
    assert answer.status == 303, answer.text
    job = answer.headers["Location"].rpartition("/")[2]
    assert finished(house.service, person("alice"), job).state == "done"
    return job


@pytest.fixture(scope="module")
def pane(house: PageHouse, visitors: dict[str, Visitor]) -> str:
    """The number of a pane of alice's, published."""
    form = {"explainer": "pane", "model": "score", "epsilon": "0.9", "more": '{"parts": ["rows", "reasons"]}'}
    answer = visitors["alice"].post("/datasets/staff/ask", **form)
    assert answer.status == 303, answer.text
    job = answer.headers["Location"].rpartition("/")[2]
    assert finished(house.service, person("alice"), job).state == "done"
    (line,) = [line for line in house.service.panes(person("owner")) if line.job_id == job]
    assert visitors["owner"].post(f"/panes/{line.id}/publish").status == 303
    return line.id


# --- who sees what -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_each_role_sees_its_pages_and_links_to_no_other(name: str, visitors: dict[str, Visitor], bought: str) -> None:
    for path in EVERY:
        answer = visitors[name].get(path)
        assert answer.status == (200 if path in PAGES[name] else 403), path
    linked = set(re.findall(r'<li><a href="(/[a-z]+)"', visitors[name].get(PAGES[name][0]).text))
    assert linked == {path for path in PAGES[name] if path.count("/") == 1}


def test_nobody_is_sent_to_the_form_and_back(house: PageHouse) -> None:
    nobody = Visitor(house)
    assert nobody.get("/").headers["Location"] == "/signin"
    asked = nobody.get("/datasets/staff")
    assert (asked.status, asked.headers["Location"]) == (303, "/signin?next=/datasets/staff")
    form = nobody.get(asked.headers["Location"])
    assert 'value="/datasets/staff"' in form.text
    answer = nobody.ask("POST", "/signin", {"token": house.secrets["alice"], "next": "/datasets/staff"})
    assert answer.headers["Location"] == "/datasets/staff"
    assert nobody.get("/signin").headers["Location"] == "/"


@pytest.mark.parametrize("after", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "jobs"])
def test_nobody_is_sent_elsewhere_after_signing_in(house: PageHouse, after: str) -> None:
    answer = Visitor(house).ask("POST", "/signin", {"token": house.secrets["alice"], "next": after})
    assert answer.headers["Location"] == "/"


def test_a_session_begins_with_a_good_token_and_ends_with_signing_out(house: PageHouse) -> None:
    visitor = Visitor(house)
    wrong = visitor.post("/signin", token="vt_guessed")
    assert wrong.status == 401
    assert "not known here" in wrong.text
    assert not visitor.cookies
    good = visitor.post("/signin", token=house.secrets["alice"])
    cookie = good.headers["Set-Cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=lax", "secure", "path=/"))
    assert house.secrets["alice"] not in cookie
    visitor.csrf = visitor.get("/jobs").csrf
    kept = dict(visitor.cookies)
    assert visitor.post("/signout").headers["Location"] == "/signin"
    assert not visitor.cookies
    stale = Visitor(house, kept)
    assert stale.get("/jobs").headers["Location"] == "/signin?next=/jobs"
    assert not stale.cookies


def test_a_session_of_a_restricted_token_makes_no_other(house: PageHouse) -> None:
    for options in ({"datasets": ["staff"]}, {"may_buy": False}):
        line, secret = house.gate.tokens.issue("owner", **options)
        restricted = Visitor(house)
        assert restricted.post("/signin", token=secret).status == 303
        restricted.csrf = restricted.get("/approvals").csrf
        n_tokens = len(house.gate.tokens.lines())
        form = {"person": "owner", "days": "5", "may_buy": "yes", "label": ""}
        assert restricted.post("/tokens", **form).status == 403
        assert restricted.post(f"/tokens/{line.id}/revoke").status == 403
        assert len(house.gate.tokens.lines()) == n_tokens
        house.gate.tokens.revoke(line.id)


def test_an_old_cookie_does_not_shut_the_way_in(house: PageHouse) -> None:
    old = Visitor(house, {"vitrail_session": "gone"})
    assert old.get("/").headers["Location"] == "/signin"
    assert 'name="token"' in old.get("/signin").text
    assert old.ask("POST", "/jobs/x/approval", {"csrf": "x"}).status == 401
    assert not old.cookies


# --- forms ---------------------------------------------------------------------------------------------------------------


def posts() -> list[str]:
    parts = {"dataset": "staff", "job_id": "x", "pane_id": "x", "person": "alice", "token_id": "x"}
    return [path.format(**parts) for method, path, _, _ in ROUTES if method == "POST" and path != "/signin"]


@pytest.mark.parametrize("path", posts())
def test_a_form_without_the_sessions_secret_is_refused(path: str, house: PageHouse, visitors: dict[str, Visitor]) -> None:
    owner = visitors["owner"]
    for csrf in ("", "guessed", visitors["alice"].csrf):
        answer = owner.ask("POST", path, {"csrf": csrf})
        assert answer.status == 403, path
        assert "not of this session" in answer.text
    assert owner.ask("POST", path).status == 422
    elsewhere = owner.ask("POST", path, {"csrf": owner.csrf}, **{"Sec-Fetch-Site": "cross-site"})
    assert (elsewhere.status, "another site" in elsewhere.text) == (403, True)


def test_signing_in_from_another_site_is_refused(house: PageHouse) -> None:
    answer = Visitor(house).ask("POST", "/signin", {"token": house.secrets["alice"]}, **{"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403


@pytest.mark.parametrize("kind", KINDS)
def test_every_question_has_words_and_a_form(kind: str, visitors: dict[str, Visitor]) -> None:
    assert {field.name for field in QUESTIONS[kind].fields} <= set(KINDS[kind].options)
    answer = visitors["alice"].get(f"/datasets/staff/ask?explainer={kind}")
    assert answer.status == 200
    assert KINDS[kind].answers in unescape(answer.text)
    assert ('name="p.0"' in answer.text) is KINDS[kind].points
    assert all(option in answer.text for option in other_options(KINDS[kind]))


def test_there_are_words_for_no_question_that_is_not_there() -> None:
    assert set(QUESTIONS) == set(KINDS)


def test_a_quote_without_scripts_is_on_the_page_and_keeps_what_was_typed(visitors: dict[str, Visitor]) -> None:
    form = {"explainer": "shapley", "model": "score", "epsilon": "0.3", "action": "quote", **PERSON}
    answer = visitors["alice"].post("/datasets/staff/ask", **form)
    assert answer.status == 200
    assert "It fits." in answer.text
    assert "Buy for epsilon 0.3" in answer.text
    assert 'name="p.0" type="text" value="30"' in answer.text
    assert re.search(r'<option value="1" selected>', answer.text)


def quoted(visitor: Visitor, epsilon: str, **form: object) -> str:
    given = {"explainer": "partial-dependence", "model": "score", "epsilon": epsilon, **form}
    answer = visitor.post("/datasets/staff/quote", **given)
    assert answer.status == 200
    return answer.text


def test_a_quote_says_whether_it_fits_waits_or_is_wrong(visitors: dict[str, Visitor]) -> None:
    alice = visitors["alice"]
    widths = [float(re.search(r"±\s([\d.]+)", quoted(alice, price))[1]) for price in ("0.1", "0.9")]  # type: ignore[index]
    assert widths[1] < widths[0]
    assert "It waits for the owner" in quoted(alice, str(APPROVE_ABOVE + 0.1))
    assert "It does not fit" in quoted(alice, "9")
    assert "the price is 'lots'" in unescape(quoted(alice, "lots")).lower()
    assert "no JSON text" in quoted(alice, "0.1", more="{")
    assert "n_bins" in quoted(alice, "0.1", more='{"n_bins": 3}')
    assert "column that is not there" in quoted(alice, "0.1", **{"o.columns": "77"})
    assert quoted(alice, "0.9", **{"o.columns": ["0"]}) != quoted(alice, "0.9")


def test_the_price_of_a_clear_answer_is_found(visitors: dict[str, Visitor]) -> None:
    form = {"explainer": "partial-dependence", "model": "score", "epsilon": "0.01", "action": "clear", "o.columns": "0"}
    answer = visitors["alice"].post("/datasets/staff/ask", **form)
    price = float(re.search(r'name="epsilon" type="text" value="([\d.]+)"', answer.text)[1])  # type: ignore[index]
    assert price > 0.01
    assert "Perhaps clear: on made-up rows" in answer.text  # nobody has bought histograms here


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": ""}, "Type a price, such as 0.1."),
        ({"model": "other"}, "not approved a model"),
        ({"p.0": ""}, "no value for 'age'"),
        ({"p.0": "4000"}, "between 18 and 90"),
        ({"p.2": "7"}, "choose one of its values"),
        ({"p.0": "", "p.1": "", "p.2": ""}, "Fill in the person first: the answer is about"),
    ],
)
def test_what_cannot_be_asked_is_said_beside_the_form(
    change: dict[str, str], said: str, visitors: dict[str, Visitor]
) -> None:
    form = {"explainer": "shapley", "model": "score", "epsilon": "0.2", **PERSON, **change}
    answer = visitors["alice"].post("/datasets/staff/ask", **form)
    assert answer.status in (404, 422)
    assert said in unescape(answer.text)


# --- answers -------------------------------------------------------------------------------------------------------------


def test_an_answer_is_shown_in_a_sandbox(bought: str, visitors: dict[str, Visitor]) -> None:
    alice = visitors["alice"]
    page = alice.get(f"/jobs/{bought}")
    assert f'<iframe class="answer" src="/jobs/{bought}/page" sandbox="allow-scripts"' in page.text
    document = alice.get(f"/jobs/{bought}/page")
    policy = document.headers["Content-Security-Policy"]
    assert "sandbox allow-scripts;" in f"{policy};"
    assert "allow-same-origin" not in policy + page.text
    assert "script-src 'sha256-" in policy
    assert "Privacy label" in document.text
    again = alice.post("/datasets/staff/ask", explainer="shapley", model="score", epsilon="0.2", **PERSON)
    assert again.headers["Location"] == f"/jobs/{bought}"


def test_no_other_role_or_analyst_sees_it(bought: str, visitors: dict[str, Visitor]) -> None:
    for name, status in (("bob", 404), ("rita", 403), ("audrey", 403)):
        for path in (f"/jobs/{bought}", f"/jobs/{bought}/page"):
            assert visitors[name].get(path).status == status
    assert visitors["owner"].get(f"/jobs/{bought}/page").status == 200


def test_an_approval_is_asked_for_and_given_or_not(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    alice, owner = visitors["alice"], visitors["owner"]
    jobs = {}
    for decision, price in (("approve", "1.1"), ("decline", "1.2")):
        answer = alice.post("/datasets/staff/ask", explainer="marginals", epsilon=price)
        jobs[decision] = answer.headers["Location"]
        assert "Waits for approval" in alice.get(jobs[decision]).text
        assert jobs[decision] in owner.get("/approvals").text
        decided = owner.post(f"{jobs[decision]}/approval", decision=decision, why=EVIL)
        assert decided.headers["Location"] == "/approvals"
    done = finished(house.service, person("alice"), jobs["approve"].rpartition("/")[2])
    assert done.state == "done"
    declined = alice.get(jobs["decline"]).text
    assert "The owner declined it" in declined
    assert EVIL in unescape(declined)
    assert EVIL not in declined
    assert owner.post(f"{jobs['decline']}/approval", decision="perhaps").status == 422


def test_what_is_too_dear_is_refused_with_what_would_fit(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    answer = visitors["owner"].post("/datasets/staff/ask", explainer="marginals", epsilon="50")
    job = answer.headers["Location"]
    assert finished(house.service, person("owner"), job.rpartition("/")[2]).state == "refused"
    page = visitors["owner"].get(job).text
    assert "What would fit: epsilon" in page
    assert "Nothing was charged" in page


def test_a_pane_explains_people_to_readers_when_it_is_published(pane: str, visitors: dict[str, Visitor]) -> None:
    rita, owner = visitors["rita"], visitors["owner"]
    assert "everybody who may hear of the dataset" in rita.get("/panes").text
    assert rita.get(f"/panes/{pane}").status == 200
    assert rita.get(f"/panes/{pane}/page").status == 200
    page = rita.post(f"/panes/{pane}/person", **PERSON)
    assert page.status == 200
    assert "sandbox allow-scripts" in page.headers["Content-Security-Policy"]
    wrong = rita.post(f"/panes/{pane}/person", **{**PERSON, "p.1": "1e9"})
    assert (wrong.status, "between 0.0 and 80.0" in wrong.text) == (422, True), wrong.text
    assert owner.post(f"/panes/{pane}/withdraw").status == 303
    assert rita.get(f"/panes/{pane}").status == 404
    assert rita.post(f"/panes/{pane}/person", **PERSON).status == 404
    assert owner.post(f"/panes/{pane}/publish").status == 303


# --- the owner and the auditor -------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_revoked(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    owner = visitors["owner"]
    sent = owner.post("/tokens", person="bob", label=EVIL, days="30")
    assert (sent.status, sent.headers["Location"]) == (303, "/people")  # loading again sends nothing again
    n_tokens = len(house.gate.tokens.lines())
    made = owner.get("/people")
    secret = re.search(r'<code class="secret">(\S+)</code>', made.text)
    assert secret, made.text
    assert secret[1] not in owner.get("/people").text
    assert len(house.gate.tokens.lines()) == n_tokens
    bob = house.gate.tokens.principal(secret[1])
    assert (bob.name, bob.may_buy) == ("bob", False)  # the box was not ticked
    assert owner.post(f"/tokens/{bob.credential}/revoke").status == 303
    assert house.gate.tokens.principal(secret[1]) is None
    assert owner.post("/tokens", person="bob", days="1.5").status == 422


def test_a_cap_is_set(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    assert visitors["owner"].post("/people/bob/caps/staff", epsilon="0.75").status == 303
    assert house.service.statement(person("bob"), "staff")["yours"]["cap_epsilon"] == 0.75  # type: ignore[index,call-overload]
    assert "0.75 left of your 0.75" in visitors["bob"].get("/datasets").text
    assert visitors["owner"].post("/people/bob/caps/staff", epsilon="99").status == 422


def test_the_auditor_sees_heads_entries_and_the_log(house: PageHouse, bought: str, visitors: dict[str, Visitor]) -> None:
    page = visitors["audrey"].get("/ledger").text
    assert "The ledger holds" in page
    assert house.service.ledger.verify().heads["staff"][:16] in page
    assert "Shapley values of 1 point" in page
    assert re.search(r"The chain of \d+ lines holds", page)
    assert visitors["audrey"].get("/ledger?dataset=staff&after=3").text.count('<td data-label="entry"') < page.count(
        '<td data-label="entry"'
    )
    assert visitors["audrey"].get("/ledger?dataset=nowhere").status == 404


def test_the_bill_is_drawn_with_steps_under_the_budgets_line(bought: str, visitors: dict[str, Visitor]) -> None:
    page = visitors["alice"].get("/datasets/staff").text
    assert '<line class="limit"' in page
    assert page.count('<circle class="step"') == page.count('data-label="so far"') > 0
    assert re.search(r'role="img" aria-labelledby="chart-title chart-text"', page)
    assert "left of your 6" in page
    assert "Only your own questions" in page


# --- headers and markup --------------------------------------------------------------------------------------------------


def test_every_page_has_the_headers(bought: str, pane: str, visitors: dict[str, Visitor], house: PageHouse) -> None:
    owner = visitors["owner"]
    for path in (*EVERY, "/signin", f"/jobs/{bought}", f"/panes/{pane}", "/nowhere", "/jobs/none", "/datasets/none"):
        headers = (Visitor(house) if path == "/signin" else owner).get(path).headers
        assert headers["Content-Security-Policy"] == POLICY, path
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Type"] == "text/html; charset=utf-8"


def test_static_files_are_looked_up_by_their_hash(house: PageHouse) -> None:
    nobody = Visitor(house)
    form = nobody.get("/signin").text
    for name in static_files():
        assert f"/static/{name}" in form
        answer = nobody.get(f"/static/{name}")
        assert answer.status == 200
        assert "immutable" in answer.headers["Cache-Control"]
    for path in ("/static/service.js", "/static/..%2Fsite.py", "/static/../site.py", "/static/%2e%2e/%2e%2e/__init__.py"):
        assert nobody.get(path).status == 404


def test_names_and_words_are_never_markup(bought: str, pane: str, visitors: dict[str, Visitor]) -> None:
    seen = {EVIL: 0, EVIL_LEVEL: 0, EVIL_HOUSE: 0}
    asked = ("/datasets/staff/ask?explainer=shapley", f"/jobs/{bought}", f"/panes/{pane}", f"/jobs/{bought}/page")
    for path in (*EVERY, *asked, "/datasets/staff/ask?explainer=%3Cscript%3E"):
        text = visitors["owner"].get(path).text
        assert "<script>" not in text.replace("<script>\n", ""), path
        for words in seen:
            assert words not in text, path
            seen[words] += words in unescape(text)
    assert min(seen.values()) > 0


def test_templates_hold_no_inline_style_or_handler() -> None:
    names = [
        name
        for name in environment().list_templates()
        if (Path(__file__).parents[2] / "src/vitrail/serve/web/pages/templates" / name).exists()
    ]
    assert len(names) > 12
    for name in names:
        source = environment().loader.get_source(environment(), name)[0]  # type: ignore[union-attr]
        assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:|\|safe|<script(?! src)", source), name
