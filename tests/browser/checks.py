"""What every page is held to. A check looks at one page and returns what is wrong with it, in words; nothing wrong is [].

A check gets a ``Tab`` of Playwright in which the page is open already, and leaves the page as it found it. Those that open
the page themselves get the browser and the file.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from browser import needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

WIDTHS = (360, 390, 768, 1280, 1440)
HEIGHT = 844
PAPER_WIDTH = 680
"""A4 between margins of 15 mm, in CSS pixels."""
MOST_BYTES = 400_000
INTERACTIVE = "a[href], area[href], button, input, select, textarea, summary, [tabindex], [contenteditable], [role=button]"
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")

Scheme = Literal["light", "dark"]


def assert_none(problems: list[str]) -> None:
    """Fail with everything that was found; a comparison of lists would show the first one."""
    if problems:
        raise AssertionError("\n".join([f"{len(problems)} problems:", *problems]))


@contextmanager
def opened(
    browser: "Browser", page: Path, *, width: int = 1280, scheme: Scheme = "light", **options: object
) -> Iterator["Tab"]:
    """The page in a tab of its own, as a reader opens the file."""
    context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, **options)
    try:
        tab = context.new_page()
        tab.goto(page.resolve().as_uri())
        yield tab
    finally:
        context.close()


# --- layout ----------------------------------------------------------------------------------------------------------

# Drawings count as one box: what is inside of them scales with them.
_OVERFLOW = """() => {
  const wide = innerWidth, root = document.scrollingElement, problems = [];
  const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + [...e.classList].map((c) => "." + c).join("");
  const told = (e) => `${name(e)} "${(e.textContent || "").trim().replace(/\\s+/g, " ").slice(0, 40)}"`;
  if (root.scrollWidth > wide) problems.push(`scrolls sideways: ${root.scrollWidth} px`);
  const isScroller = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  for (const e of document.body.querySelectorAll("*")) {
    if (e.closest("svg") && e.tagName !== "svg" || !e.checkVisibility()) continue;
    const box = e.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) continue;                      // for screen readers only
    let scroller = e.parentElement;
    while (scroller && !isScroller(scroller)) scroller = scroller.parentElement;
    if (!scroller && (box.right > wide + 1 || box.left < -1)) {
      problems.push(`outside (${Math.round(box.left)} to ${Math.round(box.right)}): ${told(e)}`);
    }
    const hides = ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
    if (hides && e.tagName !== "svg" && e.scrollWidth > e.clientWidth + 1) problems.push(`cut off: ${told(e)}`);
  }
  return problems.slice(0, 5);
}"""


def overflows(tab: "Tab", widths: tuple[int, ...] = WIDTHS, *, direction: Literal["ltr", "rtl"] | None = None) -> list[str]:
    """What does not fit into the width of the window, with every part that folds shut and then open."""
    before = tab.viewport_size
    written = tab.evaluate("document.documentElement.dir")
    if direction is not None:
        tab.evaluate("dir => { document.documentElement.dir = dir }", direction)
    found = []
    with _unfolded_later(tab) as unfold:
        for state in ("as it opens", "unfolded"):
            if state == "unfolded":
                unfold()
            for width in widths:
                tab.set_viewport_size({"width": width, "height": HEIGHT})
                found += [f"{width} px, {state}: {problem}" for problem in tab.evaluate(_OVERFLOW)]
    tab.evaluate("dir => { document.documentElement.dir = dir }", written)
    tab.set_viewport_size(before)
    return found


@contextmanager
def _unfolded_later(tab: "Tab") -> Iterator:
    """A function that opens every fold; at the end those are shut that were."""
    tab.evaluate("window.shut = [...document.querySelectorAll('details:not([open])')]")
    yield lambda: tab.evaluate("shut.forEach((fold) => { fold.open = true })")
    tab.evaluate("shut.forEach((fold) => { fold.open = false })")


_OUT_OF_SIGHT = """(answers) => answers.flatMap((e) => {
  const text = e.textContent.trim().replace(/\\s+/g, " ").slice(0, 40);
  if (!text || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return [`not shown: "${text}"`];
  const words = document.createRange();
  words.selectNodeContents(e);
  const boxes = [e.getBoundingClientRect(), ...words.getClientRects()];
  let left = 0, right = innerWidth;
  for (let around = e.parentElement; around; around = around.parentElement) {
    if (around === document.body || getComputedStyle(around).overflowX === "visible") continue;
    const window = around.getBoundingClientRect();
    [left, right] = [Math.max(left, window.left), Math.min(right, window.right)];
  }
  return boxes.some((box) => box.left < left - 1 || box.right > right + 1) ? [`has to be scrolled to: "${text}"`] : [];
})"""


def answers_out_of_sight(tab: "Tab", selector: str, *, least: int = 1, widths: tuple[int, ...] = WIDTHS) -> list[str]:
    """Which of a page's answers a reader sees only after scrolling sideways or unfolding something."""
    before = tab.viewport_size
    n_answers = tab.locator(selector).count()
    found = [] if n_answers >= least else [f"{n_answers} answers ({selector}) instead of {least} or more"]
    for width in widths:
        tab.set_viewport_size({"width": width, "height": HEIGHT})
        found += [f"{width} px: {problem}" for problem in tab.locator(selector).evaluate_all(_OUT_OF_SIGHT)]
    tab.set_viewport_size(before)
    return found


# --- reading ---------------------------------------------------------------------------------------------------------

_STRUCTURE = """() => {
  const problems = [], levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((h) => Number(h.tagName[1]));
  const mains = document.querySelectorAll("main").length, tops = levels.filter((level) => level === 1).length;
  if (!document.documentElement.lang) problems.push("no language");
  if (!document.title.trim()) problems.push("no title");
  if (mains !== 1) problems.push(`${mains} main elements`);
  if (tops !== 1) problems.push(`${tops} headings of level 1`);
  levels.forEach((level, i) => {
    const before = i ? levels[i - 1] : 0;
    const text = document.querySelectorAll("h1, h2, h3, h4, h5, h6")[i].textContent.trim();
    if (level > before + 1) problems.push(`level ${level} after ${before}: "${text.slice(0, 40)}"`);
  });
  return problems;
}"""


def structure_problems(tab: "Tab") -> list[str]:
    """One ``main``, one ``h1``, headings that skip no level, a language and a title."""
    return list(tab.evaluate(_STRUCTURE))


def accessibility_problems(browser: "Browser", page: Path, *, width: int, scheme: Scheme) -> list[str]:
    """What axe-core finds wrong by WCAG 2 A and AA, with everything unfolded. A page's policy lets no axe in."""
    with opened(browser, page, width=width, scheme=scheme, bypass_csp=True) as tab:
        return axe_problems(tab)


def axe_problems(tab: "Tab") -> list[str]:
    """The same for a page in a tab that does not mind scripts of others."""
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    tab.evaluate(needs.AXE.read_text(encoding="utf-8"))
    options = json.dumps({"runOnly": list(WCAG), "resultTypes": ["violations"]})
    violations = tab.evaluate(f"axe.run(document, {options}).then((found) => found.violations)")
    return [
        f"{one['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary'].splitlines()[-1].strip()}"
        for one in violations
        for node in one["nodes"][:3]
    ]


def keyboard_problems(tab: "Tab") -> list[str]:
    """Controls that Tab does not reach, and controls without a name."""
    tab.evaluate(
        """(interactive) => {
          window.controls = [...document.querySelectorAll(interactive)].filter(
            (e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0);
          document.activeElement.blur();
        }""",
        INTERACTIVE,
    )
    n_controls = tab.evaluate("controls.length")
    reached: set[int] = set()
    for _ in range(2 * n_controls + 20):  # boxes that scroll take the focus as well
        if len(reached) == n_controls:
            break
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("controls.indexOf(document.activeElement)"))
        reached.discard(-1)
    lost = [tab.evaluate("i => controls[i].outerHTML.slice(0, 80)", i) for i in range(n_controls) if i not in reached]
    return [f"Tab does not reach {one}" for one in lost] + [f"no name: {one}" for one in _nameless(tab)]


CONTROL_ROLES = {
    "button",
    "checkbox",
    "combobox",
    "DisclosureTriangle",
    "link",
    "listbox",
    "menuitem",
    "option",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
}


def _nameless(tab: "Tab") -> list[str]:
    """Roles of controls to which the browser's own accessibility tree gives no name."""
    wire = tab.context.new_cdp_session(tab)
    nodes = wire.send("Accessibility.getFullAXTree")["nodes"]
    wire.detach()
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] in CONTROL_ROLES]
    return [node["role"]["value"] for node in controls if not node.get("name", {}).get("value", "").strip()]


# --- the file --------------------------------------------------------------------------------------------------------


def size_problems(page: Path) -> list[str]:
    """A page is mailed, and read on a telephone."""
    n_bytes = page.stat().st_size
    return [] if n_bytes <= MOST_BYTES else [f"{n_bytes} bytes, more than {MOST_BYTES}"]


def n_sheets(pdf: bytes) -> int:
    """The number of sheets in what Chromium prints: its page objects are never compressed."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def print_problems(tab: "Tab", *, most: int) -> list[str]:
    """More sheets of A4 than there may be, and what the edge of the paper would cut off."""
    sheets = n_sheets(tab.pdf(format="A4", prefer_css_page_size=True))
    tab.emulate_media(media="print")
    cut = overflows(tab, (PAPER_WIDTH,))
    tab.emulate_media(media=None)
    return ([] if 0 < sheets <= most else [f"{sheets} sheets of paper, not 1 to {most}"]) + cut


def loading_problems(browser: "Browser", page: Path) -> list[str]:
    """What the page asks of anybody else, and what its own policy or a script's error stops."""
    with opened_while_listening(browser, page) as (tab, heard):
        tab.wait_for_load_state("networkidle")
        return list(heard)


@contextmanager
def opened_while_listening(browser: "Browser", page: Path) -> Iterator[tuple["Tab", list[str]]]:
    """The page in a tab, and a list that grows by everything that it should not do."""
    context = browser.new_context()
    heard: list[str] = []
    own = page.resolve().as_uri()
    try:
        tab = context.new_page()
        tab.on("request", lambda asked: heard.append(f"asks for {asked.url}") if _is_foreign(asked.url, own) else None)
        tab.on("pageerror", lambda error: heard.append(f"error: {error}"))
        tab.on(
            "console", lambda said: heard.append(f"{said.type}: {said.text}") if said.type in ("error", "warning") else None
        )
        tab.goto(own)
        yield tab, heard
    finally:
        context.close()


def _is_foreign(url: str, own: str) -> bool:
    return url.partition("#")[0] != own and not url.startswith("data:")
