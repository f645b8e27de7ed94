"""What every page is held to (``checks``), in a real browser."""

import pytest

from browser import checks

KINDS = ("person", "report", "group", "question")
SHEETS = {"person": 2, "report": 12, "group": 6, "question": 4}
"""The most A4 sheets that a page prints on."""


@pytest.fixture(params=KINDS)
def page(request, pages):
    return getattr(pages, request.param)


@pytest.fixture
def tab(browser, page):
    with checks.opened(browser, page) as tab:
        yield tab


def test_a_page_fits_every_window(tab):
    checks.assert_none(checks.overflows(tab))


def test_a_page_fits_every_window_from_right_to_left(tab):
    checks.assert_none(checks.overflows(tab, direction="rtl"))


def test_a_page_has_one_heading_and_skips_none(tab):
    checks.assert_none(checks.structure_problems(tab))


def test_everything_is_reached_by_keyboard_and_has_a_name(tab):
    checks.assert_none(checks.keyboard_problems(tab))


@pytest.mark.usefixtures("axe")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_a_page_is_accessible(browser, page, width, scheme):
    checks.assert_none(checks.accessibility_problems(browser, page, width=width, scheme=scheme))


def test_a_page_is_small(page):
    checks.assert_none(checks.size_problems(page))


def test_a_page_asks_for_nothing_and_keeps_to_its_policy(browser, page):
    checks.assert_none(checks.loading_problems(browser, page))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_prints_on_few_sheets(browser, pages, kind):
    with checks.opened(browser, getattr(pages, kind)) as tab:
        checks.assert_none(checks.print_problems(tab, most=SHEETS[kind]))


def test_a_person_sees_reasons_and_changes_at_once(browser, pages):
    with checks.opened(browser, pages.person) as tab:
        checks.assert_none(checks.answers_out_of_sight(tab, ".reasons > li", least=2))
        checks.assert_none(checks.answers_out_of_sight(tab, ".changes > li"))
