"""The site builds strictly, links and anchors lead somewhere, nothing comes from another host, search works from a disk."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from benchmark_scripts import ROOT
from browser import needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("mkdocs", reason="mkdocs is not installed here (pip: mkdocs-material mkdocstrings[python])")

OURS = re.compile(
    r"https://(?:github\.com|raw\.githubusercontent\.com)/vitrail/vitrail/(?:(?:blob|tree|raw)/)?main/(?P<path>.*)"
)
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data", "embed": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "manifest"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it. A warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@dataclass
class Page:
    """What a page offers and wants: names of places, links, and what a browser loads by itself."""

    places: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.places.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.page.loads.append(given["href"])
        if tag in LOADS and LOADS[tag] in given:
            self.page.loads.append(given[LOADS[tag]])
        self.page.loads += re.findall(r"url\(([^)]+)\)", given.get("style", ""))


@cache
def read(path: Path) -> Page:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def pages_of(site: Path) -> list[Path]:
    return [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]


def leads_nowhere(page: Path, link: str, site: Path) -> str | None:
    """What is wrong with a link to somewhere in the site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if site.resolve() not in target.parents or not target.is_file():
        return "there is no such file"
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).places:
        return "there is no such place"
    return None


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    broken = {
        f"{page.relative_to(site)}: {link}": why
        for page in pages_of(site.resolve())
        for link in {*read(page).links, *read(page).loads}
        if (why := leads_nowhere(page, link, site.resolve())) is not None
    }
    assert len(pages_of(site)) > 100
    assert broken == {}


@pytest.mark.parametrize(
    ("link", "broken"),
    [("#here", False), ("#there", True), ("other.html", True), ("../page.html", True), ("https://x.org", False)],
)
def test_a_broken_link_is_seen(link: str, broken: bool, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1 id=here>Here</h1>")
    assert (leads_nowhere(page, link, tmp_path) is not None) is broken


def to_the_repository() -> Iterator[tuple[str, str]]:
    """Links to files of the repository by their address, in README.md and the docs."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"https://[^\s)>\"'`\]]+", page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), link


def no_such_file(link: str) -> str | None:
    """What is wrong with an address in our repository: a file, a heading or lines that are not there."""
    found = OURS.match(link)
    if found is None:
        return None
    path, _, place = found["path"].partition("#")
    target = ROOT / path
    if not target.exists():
        return "there is no such file"
    if lines := re.fullmatch(r"L(\d+)-L(\d+)", place):
        length = len(target.read_text(encoding="utf-8").splitlines())
        return None if 1 <= int(lines[1]) <= int(lines[2]) <= length else "there are no such lines"
    if place and target.suffix == ".md":
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        known = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        return None if place in known else "there is no such heading"
    return None


def test_addresses_in_the_repository_exist(site: Path) -> None:
    """Of README.md and the docs, and the links from the reference to the lines where an object stands."""
    links = [
        *to_the_repository(),
        *((str(page.relative_to(site)), link) for page in pages_of(site) for link in read(page).links),
    ]
    broken = {f"{page}: {link}": why for page, link in links if (why := no_such_file(link)) is not None}
    assert sum(OURS.match(link) is not None for _, link in links) > 100
    assert broken == {}


def test_links_of_the_readme_lead_somewhere() -> None:
    """Its names in square brackets have an address, and no address is without a name."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))
    body = re.sub(r"^\[[^\]\n]+\]: [^\n]*$|^ {4}[^\n]*$|```.*?```|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    used = {" ".join(name.split()) for name in re.findall(r"\[([^\]]+)\](?!\()", body)}
    assert used == defined


def in_navigation(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from in_navigation(inner)


def test_every_page_of_the_navigation_is_there(site: Path) -> None:
    """Six sections and the landing page; no page says nothing."""
    told = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [next(iter(section)) for section in told] == [
        "Vitrail", "Start", "Tutorials", "How-to", "Concepts", "Papers", "Reference",
    ]  # fmt: skip
    listed = list(in_navigation(told))
    assert len(listed) == len(set(listed)) > 40
    for name in listed:
        page = site / Path(name).with_suffix(".html")
        assert page.is_file(), name
        body = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
        assert body is not None
        assert len(re.sub(r"<[^>]+>", " ", body[0]).split()) > 60, name


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    """A reader of the site is told to nobody."""
    pages = {str(page.relative_to(site)): read(page).loads for page in [*pages_of(site), site / "404.html"]}
    styles = {
        str(path.relative_to(site)): re.findall(r"(?:@import\s+|url\()['\"]?([^'\")\s]+)", path.read_text(encoding="utf-8"))
        for path in site.rglob("*.css")
    }
    elsewhere = {
        f"{name}: {address}"
        for name, addresses in {**pages, **styles}.items()
        for address in addresses
        if re.match(r"(?:https?:)?//", address)
    }
    assert elsewhere == set()


def test_every_object_that_users_import_has_a_page_with_its_source(site: Path) -> None:
    import vitrail

    index = (site / "reference.html").read_text(encoding="utf-8")
    homes = {name: getattr(vitrail, name) for name in vitrail.__all__}
    objects = [name for name, found in homes.items() if callable(found)]
    assert len(objects) > 50
    assert [name for name in objects if f"vt.{name}<" not in index] == []
    page = (site / "reference" / "pane.pane.Pane.html").read_text(encoding="utf-8")
    assert re.search(
        r'class="source-link">Source: <a href="https://github.com/vitrail/vitrail/blob/main/src/vitrail/pane/pane.py#L', page
    )


# --- in a browser ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    if (why := needs.without_browser()) is not None:
        pytest.skip(why)
    with needs.pictures.running_browser() as running:
        yield running


def test_search_works_from_a_disk_and_asks_nobody(site: Path, browser: "Browser") -> None:
    tab = browser.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((site / "index.html").as_uri())
    tab.locator("input.md-search__input").click()
    tab.keyboard.type("counterfactual")
    tab.locator(".md-search-result__link").first.wait_for(timeout=30_000)
    assert tab.locator(".md-search-result__link").count() > 3
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    tab.close()


@pytest.mark.parametrize(
    "name", ["index", "start/index", "start/privacy", "concepts/bill", "papers/index", "reference", "tutorials/from_shap"]
)
def test_pages_fit_a_phone(name: str, site: Path, browser: "Browser") -> None:
    """Nothing is wider than the screen but what scrolls by itself, no picture is missing, nothing fails."""
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    trouble: list[str] = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.goto((site / f"{name}.html").as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)") == []
    assert trouble == []
    tab.close()
