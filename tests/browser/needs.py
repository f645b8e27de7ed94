"""What tests of pages need of this machine: a browser, Playwright to drive it, and what npm installs and builds.

Imported wherever tests run, so it imports nothing that may be missing.
"""

from importlib.util import find_spec

from benchmark_scripts import ROOT, script

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
LIVE_PAGE = ROOT / "src" / "vitrail" / "live" / "assets" / "page.js"

pictures = script("page_pictures", "tools")


def without_browser() -> str | None:
    """Why no page can be opened; None if pages can be."""
    if find_spec("playwright") is None:
        return "Playwright is not installed here (pip: playwright)"
    if pictures.find_browser() is None:
        return "no browser is installed here (Debian: chromium), and VITRAIL_BROWSER names none"
    return None


def without_axe() -> str | None:
    """Why axe-core cannot look at a page; None if it can."""
    return None if AXE.exists() else "axe-core is not installed here (install npm, then: make web)"


def without_live_page() -> str | None:
    """Why there is no live page; None if there is."""
    return None if LIVE_PAGE.exists() else "the live page is not built here (install npm, then: make web)"


def missing() -> list[str]:
    """What this machine cannot test, with reasons."""
    found = {
        "Pages in a browser": without_browser(),
        "Whether pages are accessible": without_axe(),
        "The live page": without_live_page(),
    }
    return [f"{what}: {why}." for what, why in found.items() if why is not None]
