"""The page of the service in a real browser, against a real server: ask, pay, wait, read; on a phone and by keyboard."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from browser import checks, needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

    from page_house import PageHouse

pytestmark = pytest.mark.skipif(needs.without_browser() is not None, reason=str(needs.without_browser()))
PHONE, DESK = 390, 1280
WAIT_MS = 30_000


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator["PageHouse"]:
    from page_house import page_house, write_hostile_house

    with page_house(write_hostile_house(tmp_path_factory.mktemp("service"))) as running:
        yield running


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """What the pages of a test complained about: refused by their policy, not found, or an error of a script."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def tab_of(browser: "Browser", house: "PageHouse", heard: list[str]) -> Iterator[object]:
    """A function: a tab in which somebody has signed in through the form."""
    opened = []

    def sign_in(name: str, *, width: int = DESK, **options: object) -> "Tab":
        # The house says https, so that cookies are Secure; 127.0.0.1 counts as secure to Chromium.
        context = browser.new_context(viewport={"width": width, "height": checks.HEIGHT}, base_url=house.url, **options)
        opened.append(context)
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        tab.on("console", lambda said: heard.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.goto("/")
        tab.get_by_label("Your token").fill(house.secrets[name])
        tab.get_by_role("button", name="Sign in").click()
        tab.get_by_role("button", name="Sign out").wait_for()
        return tab

    yield sign_in
    for context in opened:
        context.close()


def fill_person(tab: "Tab") -> None:
    tab.locator("[name='p.0']").fill("30")
    tab.locator("[name='p.1']").fill("40")
    tab.locator("[name='p.2']").select_option("1")


def quoted_price(tab: "Tab", price: str) -> None:
    """Type a price, and wait for the quote of that price."""
    tab.get_by_label("Price, as epsilon", exact=True).fill(price)
    tab.locator("#quote:not([aria-busy]) dd", has_text=re.compile(rf"^epsilon {re.escape(price)}$")).first.wait_for()


def band(tab: "Tab") -> float:
    return float(re.search(r"±\s([\d.]+)", tab.locator("#quote").inner_text())[1])


def bought(tab: "Tab", kind: str, price: str) -> None:
    tab.goto(f"/datasets/staff/ask?explainer={kind}")
    quoted_price(tab, price)
    tab.get_by_role("button", name=f"Buy for epsilon {price}").click()
    tab.wait_for_url("**/jobs/*")


def test_a_question_is_chosen_quoted_bought_and_read(tab_of):
    tab = tab_of("alice")
    assert tab.url.endswith("/datasets")
    tab.get_by_role("link", name="Ask a question").click()
    tab.get_by_role("link", name="Reasons for one person").click()
    fill_person(tab)
    quoted_price(tab, "0.05")
    wide = band(tab)
    quoted_price(tab, "0.4")
    assert band(tab) < wide
    assert "It fits." in tab.locator("#quote").inner_text()
    assert "Left afterwards" in tab.locator("#quote").inner_text()
    tab.get_by_role("button", name="Buy for epsilon 0.4").click()
    tab.wait_for_url("**/jobs/*")
    tab.locator(".state.done").wait_for()
    answer = tab.frame_locator("iframe.answer")
    answer.get_by_role("heading", name="Why the model says").wait_for()
    assert answer.get_by_text("Privacy label").count() > 0
    assert tab.evaluate("document.querySelector('iframe.answer').contentDocument") is None  # another origin


def test_the_slider_moves_the_price_and_the_quote(tab_of):
    tab = tab_of("alice")
    tab.goto("/datasets/staff/ask?explainer=marginals")
    price = tab.get_by_label("Price, as epsilon", exact=True)
    before = float(price.input_value())
    slider = tab.get_by_role("slider")
    slider.focus()
    for _ in range(3):
        tab.keyboard.press("PageUp")
    after = price.input_value()
    assert float(after) > before
    assert slider.get_attribute("aria-valuetext") == f"epsilon {after}"
    tab.get_by_role("button", name=f"Buy for epsilon {after}").wait_for()
    tab.locator("#quote:not([aria-busy]) dd", has_text=f"epsilon {after}").first.wait_for()


def count_requests(tab: "Tab", ending: str) -> list[str]:
    """A list that grows by every form that is posted to such an address."""
    asked: list[str] = []
    tab.on("request", lambda one: asked.append(one.url) if one.method == "POST" and one.url.endswith(ending) else None)
    return asked


def test_enter_asks_for_the_quote_and_buys_nothing(tab_of):
    for scripts in (True, False):
        tab = tab_of("alice", java_script_enabled=scripts)
        tab.goto("/datasets/staff/ask?explainer=shapley")
        if scripts:
            tab.locator("#quote dd").first.wait_for()
        fill_person(tab)
        tab.get_by_label("Price, as epsilon", exact=True).fill("0.21")
        for field in ("[name='p.0']", "[name='p.2']", "#epsilon") if scripts else ("#epsilon",):
            tab.locator(field).press("Enter")
        tab.locator("#quote dd", has_text=re.compile("^epsilon 0.21$")).first.wait_for()
        assert tab.url.endswith("/ask" if not scripts else "/ask?explainer=shapley")
        tab.goto("/jobs")
        assert "0.21" not in tab.locator("main").inner_text()


def test_a_comma_does_not_multiply_the_price(tab_of, heard):
    tab = tab_of("alice")
    tab.goto("/datasets/staff/ask?explainer=marginals")
    tab.locator("#quote dd").first.wait_for()
    price = tab.get_by_label("Price, as epsilon", exact=True)
    price.fill("")
    price.press_sequentially("0,5")
    tab.get_by_text("The price is '0,5'; write decimals with a point, such as 0.5.").wait_for()
    assert tab.locator("[data-buy]").inner_text() == "Buy"
    tab.get_by_role("button", name="Buy", exact=True).click()
    assert "'0,5'" in tab.get_by_role("alert").inner_text()
    price.fill("0.50")
    tab.get_by_role("button", name="Buy for epsilon 0.5", exact=True).wait_for()
    heard[:] = [text for text in heard if "422" not in text]  # the purchase that is refused


def test_why_nothing_was_bought_stays_beside_a_live_quote(tab_of, heard):
    tab = tab_of("alice")
    tab.goto("/datasets/staff/ask?explainer=shapley")
    tab.locator("#quote dd").first.wait_for()
    assert "made-up person" in tab.locator("#quote").inner_text()
    asked = count_requests(tab, "/quote")
    tab.locator("[data-buy]").click()
    tab.get_by_role("alert").wait_for()
    tab.locator("#quote:not([aria-busy]) .good-note").wait_for()
    assert asked
    assert "Fill in the person first" in tab.get_by_role("alert").inner_text()
    heard[:] = [text for text in heard if "422" not in text]


def test_an_ended_session_is_told_by_the_quote_which_goes_on_after_signing_in(tab_of, house, heard):
    tab = tab_of("bob")
    tab.goto("/datasets/staff/ask?explainer=marginals")
    tab.locator("#quote dd").first.wait_for()
    kept = tab.context.cookies()
    tab.context.clear_cookies()
    tab.get_by_label("Price, as epsilon", exact=True).fill("0.31")
    tab.get_by_text("Your session has ended. Sign in again in another tab; what you typed stays here.").wait_for()
    other = tab.context.new_page()
    other.goto("/")
    other.get_by_label("Your token").fill(house.secrets["bob"])
    other.get_by_role("button", name="Sign in").click()
    other.get_by_role("button", name="Sign out").wait_for()
    assert tab.context.cookies() != kept
    quoted_price(tab, "0.32")
    tab.get_by_role("button", name="Buy for epsilon 0.32").click()
    tab.locator(".state.done").wait_for()
    heard[:] = [text for text in heard if "401" not in text and "403" not in text]


def test_links_are_large_enough_to_be_tapped(tab_of):
    tab = tab_of("alice", width=PHONE)
    for path in ("/datasets", "/datasets/staff", "/datasets/staff/ask?explainer=shapley"):
        tab.goto(path)
        links = tab.locator(".crumbs a, .card .links a, .card h2 a")
        assert links.count() > 0
        assert all(link.bounding_box()["height"] >= 24 for link in links.all()), path


def test_only_the_last_of_many_prices_is_quoted(tab_of):
    tab = tab_of("alice")
    tab.goto("/datasets/staff/ask?explainer=marginals")
    tab.locator("#quote dd").first.wait_for()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url) if request.url.endswith("/quote") else None)
    price = tab.get_by_label("Price, as epsilon", exact=True)
    for digits in ("0.2", "0.23", "0.234"):
        price.fill(digits)
    quoted_price(tab, "0.25")
    assert len(asked) == 1


def test_what_is_too_dear_is_said_before_and_refused_after(tab_of):
    tab = tab_of("owner")
    tab.goto("/datasets/staff/ask?explainer=marginals")
    tab.get_by_label("Price, as epsilon", exact=True).fill("40")
    tab.get_by_text("It does not fit.").wait_for()
    tab.get_by_role("button", name="Buy for epsilon 40").click()
    tab.wait_for_url("**/jobs/*")
    tab.locator(".state.refused").wait_for()
    assert "What would fit: epsilon" in tab.locator("main").inner_text()


def test_above_the_owners_price_it_waits_until_the_owner_decides(tab_of):
    alice, owner = tab_of("alice"), tab_of("owner")
    bought(alice, "marginals", "1.5")
    alice.locator(".state.waiting").wait_for()
    owner.goto("/approvals")
    owner.locator(".card", has_text="alice asks").get_by_role("button", name="Approve").click()
    owner.get_by_text("No question waits for you.").wait_for()
    alice.locator(".state.done").wait_for()  # told by the server: nobody has loaded the page again
    bought(alice, "marginals", "1.6")
    owner.goto("/approvals")
    owner.get_by_label("Reason, for the one who asks").fill("too much at once")
    owner.get_by_role("button", name="Decline").click()
    alice.locator(".state.declined").wait_for()
    assert "too much at once" in alice.locator("main").inner_text()


def test_a_pane_is_released_published_and_explains_somebody_to_a_reader(tab_of):
    alice = tab_of("alice")
    alice.goto("/panes")
    alice.get_by_role("link", name="Release a pane of staff").click()
    alice.get_by_text("More", exact=True).click()
    alice.get_by_label("Further options, as JSON").fill('{"parts": ["rows", "reasons"]}')
    quoted_price(alice, "0.9")
    alice.get_by_role("button", name="Buy for epsilon 0.9").click()
    alice.locator(".state.done").wait_for()
    owner, reader = tab_of("owner"), tab_of("rita")
    assert reader.get_by_text("There is no pane that you may read.").is_visible()
    owner.goto("/panes")
    owner.get_by_role("button", name="Publish").click()
    owner.get_by_role("button", name="Withdraw").wait_for()
    reader.reload()
    reader.get_by_role("link", name="Explain a person").click()
    reader.get_by_text("Explain a person from it, free").click()
    fill_person(reader)
    with reader.expect_popup() as popup:
        reader.get_by_role("button", name="Explain this person").click()
    popup.value.get_by_role("heading", level=1).wait_for()
    assert popup.value.evaluate("origin") == "null"


def test_the_auditor_sees_the_ledger_and_no_answers(tab_of, house):
    from serve_setup import finished, person

    asked = {"explainer": "marginals", "epsilon": 0.11}
    job = finished(house.service, person("alice"), house.service.submit(person("alice"), "staff", asked).id)
    tab = tab_of("audrey")
    assert tab.get_by_role("navigation").get_by_role("link").all_inner_texts() == ["Datasets", "Ledger"]
    tab.get_by_role("link", name="Ledger").click()
    assert tab.get_by_text("The ledger holds: every chain is whole.").is_visible()
    assert tab.locator("text=marginals of").count() > 0
    for path in (f"/jobs/{job.id}", f"/jobs/{job.id}/page", "/panes", f"/v1/jobs/{job.id}/result"):
        answer = tab.request.get(path)
        assert answer.status == 403, path


def test_a_token_is_made_and_somebody_signs_in_with_it(tab_of, browser, house):
    owner = tab_of("owner")
    owner.goto("/people")
    owner.get_by_label("For", exact=True).select_option("bob")
    owner.get_by_role("button", name="Make a token").click()
    secret = owner.locator(".secret").inner_text()
    context = browser.new_context(base_url=house.url)
    tab = context.new_page()
    tab.goto("/jobs")
    tab.get_by_label("Your token").fill(secret)
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"{house.url}/jobs")
    assert "bob, analyst" in tab.locator("header").inner_text()
    tab.get_by_role("button", name="Sign out").click()
    tab.wait_for_url("**/signin")
    context.close()


def test_without_scripts_everything_is_a_form(tab_of):
    tab = tab_of("alice", java_script_enabled=False)
    tab.goto("/datasets/staff/ask?explainer=marginals")
    assert not tab.get_by_role("slider").is_visible()
    tab.get_by_label("Price, as epsilon", exact=True).fill("0.12")
    tab.get_by_role("button", name="Show the quote").click()
    assert "It fits." in tab.locator("#quote").inner_text()
    tab.get_by_role("button", name="Buy for epsilon 0.12").click()
    tab.wait_for_url("**/jobs/*")
    tab.locator(".state.done").wait_for()  # the page refreshes by itself


# --- every page, by role -------------------------------------------------------------------------------------------------

EVERY = {
    "owner": ("/people", "/approvals", "/jobs", "/panes", "/nowhere"),
    "alice": (
        "/datasets",
        "/datasets/staff",
        "/datasets/staff/ask",
        "/datasets/staff/ask?explainer=shapley",
        "/datasets/staff/ask?explainer=groups",
        "/jobs",
        "job",
    ),
    "audrey": ("/ledger",),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.usefixtures("axe")
def test_every_page_fits_a_phone_and_is_accessible(name, tab_of, house, heard):
    from serve_setup import finished, person

    asked = {"explainer": "marginals", "epsilon": 0.13}
    job = finished(house.service, person("alice"), house.service.submit(person("alice"), "staff", asked).id)
    tab = tab_of(name, width=PHONE, color_scheme="dark" if name == "owner" else "light", bypass_csp=True)
    problems = []
    for path in EVERY[name]:
        tab.goto(f"/jobs/{job.id}" if path == "job" else path)
        if "explainer=" in path:
            tab.locator("#quote dd").first.wait_for()
        found = checks.overflows(tab, (PHONE, DESK)) + checks.structure_problems(tab) + checks.keyboard_problems(tab)
        problems += [f"{path}: {problem}" for problem in found + checks.axe_problems(tab)]
    checks.assert_none(problems)
    heard[:] = [text for text in heard if "404" not in text]  # the page that is not there
