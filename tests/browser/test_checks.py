"""Checks find what they are for, on pages with one fault each, and nothing on a page without."""

import pytest

from browser import checks

POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
)
GOOD = """<h1>Why</h1><h2>Reasons</h2><ul class="reasons"><li>Hours: 45</li></ul>
<p><a href="#more">More</a></p><details id="more"><summary>Numbers</summary><p>1, 2, 3</p></details>
<div style="overflow-x:auto" tabindex="0"><table style="width:3000px"><tr><td>wide</td></tr></table></div>"""


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page with that body; the whole page if the text begins with a doctype."""
    contexts = []

    def open_page(body=GOOD):
        contexts.append(checks.opened(browser, written(tmp_path, body)))
        return contexts[-1].__enter__()

    yield open_page
    for context in contexts:
        context.__exit__(None, None, None)


def written(folder, body):
    head = f'<meta charset="utf-8">{POLICY}<title>A page</title><meta name="viewport" content="width=device-width">'
    page = f'<!doctype html><html lang="en"><head>{head}</head><body><main>{body}</main></body></html>'
    (folder / "page.html").write_text(body if body.startswith("<!doctype") else page, encoding="utf-8")
    return folder / "page.html"


def test_a_good_page_passes_everything(browser, opened, tmp_path):
    tab = opened()
    found = checks.overflows(tab) + checks.overflows(tab, direction="rtl") + checks.structure_problems(tab)
    found += checks.answers_out_of_sight(tab, ".reasons > li") + checks.keyboard_problems(tab)
    page = tmp_path / "page.html"
    checks.assert_none(found + checks.size_problems(page) + checks.loading_problems(browser, page))
    assert tab.evaluate("[innerWidth, document.documentElement.dir, document.querySelector('details').open]") == [
        1280,
        "",
        False,
    ]


@pytest.mark.usefixtures("axe")
def test_a_good_page_is_accessible_in_both_schemes(browser, tmp_path):
    page = written(tmp_path, GOOD)
    checks.assert_none(
        [p for s in ("light", "dark") for p in checks.accessibility_problems(browser, page, width=390, scheme=s)]
    )


@pytest.mark.parametrize(
    ("body", "widths"),
    [
        ('<p style="width:700px">wide', {360, 390}),
        ('<div style="overflow:hidden;width:300px"><p style="width:310px">cut', {*checks.WIDTHS}),
        ('<p style="position:absolute;left:-60px">outside', {*checks.WIDTHS}),
        ('<details><summary>more</summary><p style="width:1000px">wide</p></details>', {360, 390, 768}),
    ],
)
def test_what_does_not_fit_is_found(opened, body, widths):
    found = checks.overflows(opened(body))
    assert {int(problem.partition(" ")[0]) for problem in found} == widths


def test_what_does_not_fit_from_right_to_left_is_found(opened):
    tab = opened('<p style="position:absolute;inset-inline-start:0;width:20px;margin-right:-90px">x')
    assert checks.overflows(tab) == []
    assert checks.overflows(tab, direction="rtl") != []


@pytest.mark.parametrize(
    "answer",
    [
        '<div style="overflow-x:auto"><div style="width:3000px"><p class="answer" style="margin-left:2000px">Hours',
        '<details><summary>more</summary><p class="answer">Hours</p></details>',
        '<p class="answer" style="opacity:0">Hours',
        "<p>Hours",
    ],
)
def test_an_answer_out_of_sight_is_found(opened, answer):
    assert checks.answers_out_of_sight(opened(answer), ".answer") != []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<h1>a</h1><h3>b</h3>", 'level 3 after 1: "b"'),
        ("<h2>a</h2>", "0 headings of level 1"),
        ("<h1>a</h1><h1>b</h1>", "2 headings of level 1"),
        ("<!doctype html><title>a</title><main><h1>a</h1></main>", "no language"),
        ("<!doctype html><html lang=en><main><h1>a</h1></main>", "no title"),
        ("<!doctype html><html lang=en><title>a</title><h1>a</h1>", "0 main elements"),
    ],
)
def test_faults_of_structure_are_found(opened, body, problem):
    assert problem in checks.structure_problems(opened(body))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<button style="color:red"></button>', "no name: button"),
        ('<a href="#x"><img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></a>', "no name: link"),
        ('<div inert><a href="#x">never</a></div>', "Tab does not reach"),
    ],
)
def test_controls_that_keyboards_cannot_use_are_found(opened, body, problem):
    assert [found for found in checks.keyboard_problems(opened(body)) if found.startswith(problem)] != []


@pytest.mark.usefixtures("axe")
def test_a_colour_that_fades_in_the_dark_is_found_there_alone(browser, tmp_path):
    style = "<style>@media (prefers-color-scheme: dark) { body { background: #222; color: #444 } }</style>"
    page = written(tmp_path, style + GOOD)
    light, dark = (checks.accessibility_problems(browser, page, width=390, scheme=one) for one in ("light", "dark"))
    assert light == []
    assert {problem.partition(":")[0] for problem in dark} == {"color-contrast"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<img alt="" src="other.png">', "error: "),
        ("<script>document.title = 1</script>", "error: "),
        ('<!doctype html><img src="other.png">', "asks for "),
        ("<!doctype html><script>nobody.knows()</script>", "error: nobody"),
    ],
)
def test_what_a_page_loads_and_may_not_run_is_found(browser, tmp_path, body, problem):
    found = checks.loading_problems(browser, written(tmp_path, body))
    assert [one for one in found if one.startswith(problem)] != []


def test_a_heavy_page_is_found(tmp_path):
    assert checks.size_problems(written(tmp_path, "x" * checks.MOST_BYTES)) != []


@pytest.mark.parametrize("n_sheets", [1, 3])
def test_sheets_of_paper_are_counted(opened, n_sheets):
    tab = opened('<p style="break-after:page">a</p>' * (n_sheets - 1) + "<p>b</p>")
    assert checks.n_sheets(tab.pdf(format="A4")) == n_sheets
    assert checks.print_problems(tab, most=n_sheets) == []
    assert checks.print_problems(tab, most=n_sheets - 1) != []


def test_what_paper_cuts_off_is_found(opened):
    tab = opened("<style>@media print { p { width: 900px } }</style><p>wide")
    assert checks.overflows(tab, (checks.PAPER_WIDTH,)) == []
    assert checks.print_problems(tab, most=9) != []
