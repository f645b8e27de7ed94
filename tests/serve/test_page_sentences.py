"""What the pages say: prices with a comma, refusals that stay, whose limit it is, what was asked, tokens in use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from page_house import CAP, Answer, PageHouse, Visitor, page_house, signed_in, write_hostile_house
from serve_setup import PEOPLE, finished, person
from vitrail.accounting import epsilon_of
from vitrail.serve.web.pages import forms, views, words

PERSON = {"p.0": "30", "p.1": "40", "p.2": "1"}
SHAPLEY = {"explainer": "shapley", "model": "score", **PERSON}
COMMA = "is '0,5'; write decimals with a point, such as 0.5."


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageHouse]:
    with page_house(write_hostile_house(tmp_path_factory.mktemp("sentences"))) as running:
        yield running


@pytest.fixture(scope="module")
def visitors(house: PageHouse) -> dict[str, Visitor]:
    return {name: signed_in(house, name) for name in PEOPLE}


def bought(house: PageHouse, visitor: Visitor, name: str, **form: object) -> str:
    """The number of a question that was asked by the form, when nothing more happens to it."""
    answer = visitor.post("/datasets/staff/ask", **form)
    assert answer.status == 303, answer.text
    job = answer.headers["Location"].rpartition("/")[2]
    finished(house.service, person(name), job)
    return job


def text_of(answer: Answer) -> str:
    """What is read on a page: no tags, and one blank between words."""
    bare = re.sub(r"<[^>]+>", " ", answer.text)
    return re.sub(r"\s+", " ", unescape(bare))


# --- numbers -------------------------------------------------------------------------------------------------------------


def test_the_first_button_of_a_form_asks_for_the_quote(visitors: dict[str, Visitor]) -> None:
    page = visitors["alice"].get("/datasets/staff/ask?explainer=shapley").text
    buttons = re.findall(r'<button[^>]* name="action" value="(\w+)"', page)
    assert buttons == ["quote", "buy", "clear"]  # a browser presses the first where somebody presses Enter


def test_a_decimal_comma_is_refused_everywhere_and_never_read(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    alice, owner = visitors["alice"], visitors["owner"]
    for path in ("/datasets/staff/ask", "/datasets/staff/quote"):
        assert f"The price {COMMA}" in text_of(alice.post(path, **SHAPLEY, epsilon="0,5")), path
        answer = alice.post(path, **{**SHAPLEY, "p.1": "0,5"}, epsilon="0.1")
        assert COMMA in text_of(answer), path
    assert f": the cap {COMMA}" in text_of(owner.post("/people/bob/caps/staff", epsilon="0,5"))
    assert not house.service.jobs(person("alice"))
    pages = [alice.get("/datasets/staff/ask?explainer=shapley"), owner.get("/people")]
    assert all('type="number"' not in page.text for page in pages)  # a browser drops the comma of these without a word


@pytest.mark.parametrize(
    ("typed", "button"), [("0.50", "Buy for epsilon 0.5"), ("0,5", "Buy"), ("lots", "Buy"), ("1_0", "Buy")]
)
def test_the_button_says_the_number_that_was_read(typed: str, button: str, visitors: dict[str, Visitor]) -> None:
    answer = visitors["alice"].post("/datasets/staff/ask", **SHAPLEY, epsilon=typed, action="quote")
    assert f"data-buy>{button}</button>" in answer.text


def test_bands_are_plain_digits_and_a_tiny_price_is_not_nothing(visitors: dict[str, Visitor]) -> None:
    answer = visitors["alice"].post("/datasets/staff/quote", explainer="marginals", epsilon="0.05")
    assert re.search(r"95 % bands of about ±\s\d+\srows", text_of(answer)), answer.text
    tiny = visitors["alice"].post("/datasets/staff/quote", explainer="marginals", epsilon="1e-9")
    assert "epsilon 1e-09 " in text_of(tiny)
    assert "epsilon 0 " not in text_of(tiny)


def test_a_sentence_ends_with_one_mark(visitors: dict[str, Visitor]) -> None:
    answer = visitors["alice"].post("/datasets/staff/quote", explainer="marginals", epsilon="0.1", more='{"bims": 3}')
    assert "Did you mean 'bins'? " in text_of(answer)


# --- quotes and refusals -------------------------------------------------------------------------------------------------


def test_a_refused_purchase_is_told_above_the_form(visitors: dict[str, Visitor]) -> None:
    empty = {"explainer": "shapley", "model": "score", "epsilon": "0.2"}
    answer = visitors["alice"].post("/datasets/staff/ask", **empty)
    assert answer.status == 422
    assert answer.text.index('role="alert"') < answer.text.index('<form method="post" action="/datasets')
    assert "Nothing was bought. Fill in the person first" in text_of(answer)
    assert "made-up person" in text_of(visitors["alice"].post("/datasets/staff/quote", **empty))
    assert "made-up person" not in text_of(visitors["alice"].post("/datasets/staff/quote", **SHAPLEY, epsilon="0.2"))


def test_a_clear_estimate_on_made_up_rows_says_so_until_histograms_are_bought(
    house: PageHouse, visitors: dict[str, Visitor]
) -> None:
    curves = {"explainer": "partial-dependence", "model": "score", "epsilon": "0.9"}
    owner = visitors["owner"]
    said = text_of(owner.post("/datasets/staff/quote", **curves))
    assert "on made-up rows" in said
    assert words.BETTER in said
    assert words.BETTER not in text_of(owner.post("/datasets/staff/quote", explainer="marginals", epsilon="0.1"))
    bought(house, owner, "owner", explainer="marginals", epsilon="0.05")
    assert "made-up rows" not in text_of(owner.post("/datasets/staff/quote", **curves))


def test_a_quote_says_that_the_answer_is_there_already(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    alice, asked = visitors["alice"], {"explainer": "marginals", "epsilon": "0.07"}
    assert "already" not in text_of(alice.post("/datasets/staff/quote", **asked))
    job = bought(house, alice, "alice", **asked)
    again = alice.post("/datasets/staff/quote", **asked)
    assert "You have this answer already: asking again is free." in text_of(again)
    assert f'href="/jobs/{job}"' in again.text
    for visitor, changed in ((alice, {"epsilon": "0.08"}), (visitors["owner"], {})):
        assert "already" not in text_of(visitor.post("/datasets/staff/quote", **{**asked, **changed}))


def test_a_token_that_may_not_buy_has_no_button_for_it(house: PageHouse) -> None:
    line, secret = house.gate.tokens.issue("alice", may_buy=False)
    reading = Visitor(house)
    assert reading.post("/signin", token=secret).status == 303
    page = reading.get("/datasets/staff/ask?explainer=marginals")
    assert 'value="buy"' not in page.text
    assert "This token may not buy." in text_of(page)
    house.gate.tokens.revoke(line.id)


# --- what is left, and what was asked ------------------------------------------------------------------------------------


def test_the_bill_says_what_fits_for_who_looks_and_whose_limit_it_is(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    bought(house, visitors["alice"], "alice", explainer="marginals", epsilon="0.09")
    told = house.service.statement(person("alice"), "staff")
    own = words.left(told["yours"]["remaining_epsilon"])  # type: ignore[index,call-overload]
    page = text_of(visitors["alice"].get("/datasets/staff"))
    assert f"of your own limit of {CAP:g} there is {own} left, so that a question of up to that fits." in page
    assert f"{own} left of your {CAP:g}" in page
    others = text_of(visitors["owner"].get("/datasets/staff"))
    left = words.left(told["remaining_epsilon"])
    assert f"a question of up to {left} fits, by what is left of the budget" in others
    assert f"epsilon {left} of 10 left" in others  # the same digits
    assert "Prices do not simply add up" in page


def test_a_job_says_what_was_asked_and_values_of_people_only_to_who_asked(
    house: PageHouse, visitors: dict[str, Visitor]
) -> None:
    form = {**SHAPLEY, "p.1": "61.5", "more": '{"n_permutations": 12}', "epsilon": "1.3"}
    job = bought(house, visitors["alice"], "alice", **form)
    pages = {name: text_of(visitors[name].get(f"/jobs/{job}")) for name in ("alice", "owner")}
    approvals = text_of(visitors["owner"].get("/approvals"))
    for said in (*pages.values(), approvals):
        assert all(part in said for part in ("What was asked", "Model score", "n_permutations 12", "About 1 person"))
    assert [("61.5" in said) for said in (*pages.values(), approvals)] == [True, False, False]
    assert visitors["owner"].post(f"/jobs/{job}/approval", decision="decline").status == 303
    declined = text_of(visitors["alice"].get(f"/jobs/{job}"))
    assert declined.count("The owner declined it") == 1


def test_asking_again_opens_the_form_as_it_was_for_who_may_see_it(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    owner, alice = visitors["owner"], visitors["alice"]
    asked = {**SHAPLEY, "p.1": "62.5", "more": '{"n_permutations": 11}', "epsilon": "50"}
    job = bought(house, owner, "owner", **asked)
    link = re.search(r'href="(/datasets/staff/ask\?[^"]+)">Ask again for less', owner.get(f"/jobs/{job}").text)
    assert link
    page = owner.get(unescape(link[1]))
    assert 'name="p.0" type="text" value="30"' in page.text
    assert 'name="p.1" type="text" value="62.5"' in page.text
    assert '<option value="1" selected>' in page.text
    assert '{"n_permutations": 11}' in unescape(page.text)
    price = float(re.search(r'name="epsilon" type="text" value="([\d.]+)"', page.text)[1])  # type: ignore[index]
    assert 0 < price <= house.service.statement(person("owner"), "staff")["remaining_epsilon"]  # type: ignore[operator]
    assert alice.get(unescape(link[1])).status == 404
    hers = bought(house, alice, "alice", **{**asked, "epsilon": "0.06"})
    page = owner.get(f"/datasets/staff/ask?explainer=shapley&from={hers}")
    assert '{"n_permutations": 11}' in unescape(page.text)
    assert "62.5" not in page.text


@pytest.mark.parametrize(
    "options", [{"columns": ["age", "sex"]}, {"columns": ["age", ["age", "sex"]]}, {"bins": 7}, {"bins": None}, {}]
)
def test_the_form_of_a_request_makes_it_again(options: dict[str, object], house: PageHouse) -> None:
    facts = house.service.dataset(person("alice"), "staff")
    columns, features = views.schema(facts), views.features(facts)
    for explainer, more in (("marginals", {}), ("shapley", {"model": "score", "points": [{"age": 30, "hours": 4.5}]})):
        point = [{**one, "sex": features[2]["levels"][1]} for one in more.get("points", [])]
        request = {"explainer": explainer, "epsilon": 0.5, **({**more, "points": point} if point else more)}
        request |= {"options": options} if options else {}
        form = forms.form_of(request, columns, features).with_value("epsilon", "0.5")
        assert forms.request_of(explainer, form, columns, features, quote=False) == request


# --- the owner and the auditor -------------------------------------------------------------------------------------------


def test_the_token_in_use_is_revoked_after_a_second_look_only(house: PageHouse) -> None:
    line, secret = house.gate.tokens.issue("owner")
    owner = Visitor(house)
    assert owner.post("/signin", token=secret).status == 303
    people = owner.get("/people")
    owner.csrf = people.csrf
    assert people.text.count("(in use here, now)") == 1
    asked = owner.post(f"/tokens/{line.id}/revoke")
    assert (asked.status, "signs you out" in asked.text) == (200, True)
    assert house.gate.tokens.principal(secret) is not None
    assert owner.post(f"/tokens/{line.id}/revoke", sure="yes").headers["Location"] == "/signin"
    assert house.gate.tokens.principal(secret) is None


def test_a_new_secret_is_shown_to_the_session_that_made_it(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    other = signed_in(house, "owner")
    assert visitors["owner"].post("/tokens", person="bob", days="9").status == 303
    assert '<code class="secret">' not in other.get("/people").text
    assert '<code class="secret">' in visitors["owner"].get("/people").text


def test_a_new_secret_is_not_shown_to_a_lesser_token_in_a_header(house: PageHouse) -> None:
    secrets = [house.gate.tokens.issue("owner", may_buy=may_buy)[1] for may_buy in (True, False)]
    full, reading = ({"Authorization": f"Bearer {secret}"} for secret in secrets)
    assert Visitor(house).ask("POST", "/tokens", {"person": "owner", "days": "9"}, **full).status == 303
    assert '<code class="secret">' not in Visitor(house).get("/people", **reading).text
    assert '<code class="secret">' in Visitor(house).get("/people", **full).text


def test_a_cap_that_is_refused_or_below_what_was_spent_is_told_on_the_page(
    house: PageHouse, visitors: dict[str, Visitor]
) -> None:
    refused = visitors["owner"].post("/people/bob/caps/staff", epsilon="99")
    assert refused.status == 422
    assert "The cap of bob for staff was not changed: epsilon is 99.0" in text_of(refused)
    assert "A new token" in refused.text
    bought(house, visitors["bob"], "bob", explainer="marginals", epsilon="0.3")
    assert "nothing more can be bought" not in text_of(visitors["owner"].get("/people"))
    assert visitors["owner"].post("/people/bob/caps/staff", epsilon="0.2").status == 303
    assert "less than is spent already: nothing more can be bought" in text_of(visitors["owner"].get("/people"))
    assert "your own limit of 0.2 is used up." in text_of(visitors["bob"].get("/datasets/staff"))


def test_entries_say_what_was_spent_and_what_their_kinds_mean(house: PageHouse, visitors: dict[str, Visitor]) -> None:
    bought(house, visitors["alice"], "alice", explainer="marginals", epsilon="0.123")
    head = house.service.ledger.verify().heads["staff"]
    page = visitors["audrey"].get("/ledger?dataset=staff")
    assert head in page.text
    assert page.text.count('<td data-label="entry"') <= 20
    assert all(meaning in text_of(page) for meaning in words.KIND_WORDS.values())
    last = text_of(visitors["audrey"].get(f"/ledger?dataset=staff&after={_n_entries(house) - 6}"))
    assert "0.123 set aside" in last
    assert "marginals of 4 columns 0.123 " in last


def _n_entries(house: PageHouse) -> int:
    return next(line.n_entries for line in house.service.ledger.verify().accounts if line.account == "staff")


def test_almost_nothing_is_not_nothing() -> None:
    assert words.paid(epsilon_of(1e-6, 1e-6)) == "almost 0"
