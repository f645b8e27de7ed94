"""Pictures of a page as its readers see it: on a phone, on a desk, in the dark and on paper.

    python tools/page_pictures.py demo-output/person.html -o pictures

Writes phone.png (390 px wide), phone-dark.png, desk.png (1280 px), desk-dark.png, print.pdf (A4) and, where pdftoppm is
installed, print-1.png and so on. Needs Playwright (of the extra `test`) and Chromium or Chrome, which the variable
VITRAIL_BROWSER may name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTHS = {"phone": 390, "desk": 1280}
HEIGHT = 844


def find_browser() -> str | None:
    """The program that VITRAIL_BROWSER names, or the first browser on the path."""
    named = os.environ.get("VITRAIL_BROWSER")
    return shutil.which(named) if named else next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A headless browser; the system's own, because Playwright would download another one."""
    from playwright.sync_api import sync_playwright

    program = find_browser()
    if program is None:
        raise SystemExit(f"no browser was found; install one of {', '.join(BROWSERS)}, or name one in VITRAIL_BROWSER")
    options = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []  # root has no sandbox
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield browser
        finally:
            browser.close()


def write_pictures(browser: Browser, page: Path, folder: Path) -> list[Path]:
    """Screenshots of the whole page in two widths and two colour schemes, and what a printer would get."""
    written = []
    for name, width in WIDTHS.items():
        for scheme, ending in (("light", ""), ("dark", "-dark")):
            context = browser.new_context(
                viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, device_scale_factor=1
            )
            tab = context.new_page()
            tab.goto(page.resolve().as_uri())
            written.append(folder / f"{name}{ending}.png")
            tab.screenshot(path=written[-1], full_page=True)
            context.close()
    tab = browser.new_page()
    tab.goto(page.resolve().as_uri())
    written.append(folder / "print.pdf")
    tab.pdf(path=written[-1], format="A4")
    tab.close()
    return written + sheets(written[-1])


def sheets(pdf: Path) -> list[Path]:
    """One picture for every sheet of paper; none where pdftoppm is missing."""
    program = shutil.which("pdftoppm")
    if program is None:
        print("pdftoppm is not installed (Debian: poppler-utils): print.pdf has no pictures")
        return []
    for old in pdf.parent.glob(f"{pdf.stem}-*.png"):
        old.unlink()
    subprocess.run([program, "-r", "80", "-png", pdf, pdf.with_suffix("")], check=True)
    return sorted(pdf.parent.glob(f"{pdf.stem}-*.png"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of a page as its readers see it.")
    parser.add_argument("page", type=Path, help="an HTML file")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write to; made if it is missing")
    chosen = parser.parse_args()
    if not chosen.page.is_file():
        raise SystemExit(f"there is no file {chosen.page}")
    chosen.output.mkdir(parents=True, exist_ok=True)
    with running_browser() as browser:
        for path in write_pictures(browser, chosen.page, chosen.output):
            print(f"wrote {path}, {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
