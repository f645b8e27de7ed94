"""The report is long: one finds one's way in it, sorts its ranking, and reads values off its drawings."""

import pytest

from browser import checks

PHONE, DESK = 390, 1280
RANKING = "table:has(th[aria-sort], th button)"


@pytest.fixture
def phone(browser, pages):
    with checks.opened(browser, pages.report, width=PHONE) as tab:
        yield tab


@pytest.fixture
def desk(browser, pages):
    with checks.opened(browser, pages.report, width=DESK) as tab:
        yield tab


def contents(tab):
    """The list of contents: the first navigation with links into the page."""
    navigation = tab.locator("nav:has(a[href^='#'])")
    assert navigation.count() > 0, "no contents"  # at once: a locator would wait for them
    return navigation.first


def test_contents_stand_beside_the_text_on_a_desk(desk):
    links = contents(desk).locator("a[href^='#']")
    assert links.count() >= 3
    assert [link for link in links.all() if not link.is_visible()] == []
    column, text = contents(desk).bounding_box(), desk.locator("h1").bounding_box()
    assert column["x"] + column["width"] <= text["x"] or text["x"] + text["width"] <= column["x"]


def test_contents_lead_to_headings_or_sections(desk):
    find = "link => document.getElementById(decodeURIComponent(link.hash.slice(1)))?.tagName"
    targets = {link.get_attribute("href"): link.evaluate(find) for link in contents(desk).locator("a[href^='#']").all()}
    lost = {address: tag for address, tag in targets.items() if tag not in ("SECTION", "ARTICLE", "DIV", "H2", "H3")}
    assert lost == {}


def test_a_heading_is_on_the_screen_after_its_link_was_followed(desk):
    link = contents(desk).locator("a[href^='#']").last
    link.click()
    target = desk.locator(f"[id='{link.get_attribute('href')[1:]}']").bounding_box()
    assert 0 <= target["y"] < checks.HEIGHT


def test_contents_take_little_room_on_a_phone(phone):
    """Hidden, or folded to a line."""
    box = contents(phone).bounding_box()
    assert box is None or box["height"] <= 100
    assert not contents(phone).locator("a[href^='#']").first.is_visible()


def numbers_in(tab, column):
    """The keys of a ranking's column, from top to bottom: what is sorted by, or else the number that is shown."""
    return (
        tab.locator(RANKING)
        .first.locator("tbody tr")
        .evaluate_all(
            """(rows, column) => rows.map((row) => {
          const cell = row.cells[column];
          return Number(cell.dataset.key ?? cell.textContent.replace("−", "-").match(/-?[\\d.]+/)[0]);
        })""",
            column,
        )
    )


def test_the_ranking_is_sorted_by_pressing_a_heading(desk):
    ranking = desk.locator(RANKING).first
    button = ranking.locator("th.number button").first
    column = button.evaluate("button => button.closest('th').cellIndex")
    heading = ranking.locator("th").nth(column)
    seen = {}
    for _ in range(2):
        button.click()
        seen[heading.get_attribute("aria-sort")] = numbers_in(desk, column)
        assert ranking.locator("th[aria-sort]:not([aria-sort='none'])").count() == 1
    assert set(seen) == {"ascending", "descending"}
    assert len(seen["ascending"]) > 5
    assert seen["ascending"] == sorted(seen["ascending"])
    assert seen["descending"] == sorted(seen["descending"], reverse=True)


def test_the_ranking_is_sorted_by_name(desk):
    ranking = desk.locator(RANKING).first
    button = ranking.locator("th:not(.number) button").first
    names = []
    for _ in range(2):
        button.click()
        names.append([name.casefold() for name in ranking.locator("tbody tr > :first-child").all_inner_texts()])
    assert sorted(names) == sorted([sorted(names[0]), sorted(names[0], reverse=True)])


def test_the_ranking_is_sorted_by_keyboard(desk):
    button = desk.locator(RANKING).first.locator("th button").first
    button.focus()
    desk.keyboard.press("Enter")
    assert button.evaluate("button => button.closest('th').ariaSort") in ("ascending", "descending")


def test_drawings_tell_their_values_to_a_mouse(desk):
    drawings = desk.locator("svg[role=img]")
    assert drawings.count() > 5
    silent = drawings.evaluate_all(
        """drawings => drawings.filter((one) => ![...one.querySelectorAll("title")].some((t) => /\\d/.test(t.textContent)))
                               .map((one) => one.getAttribute("aria-label"))"""
    )
    assert silent == []


def test_a_drawing_says_what_it_shows(desk):
    unnamed = desk.locator("svg").evaluate_all(
        "all => all.filter((one) => !one.ariaLabel && one.ariaHidden !== 'true').map((one) => one.outerHTML.slice(0, 80))"
    )
    assert unnamed == []
