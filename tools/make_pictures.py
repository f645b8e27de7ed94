"""Write the pictures of pages in docs/images, for README and gallery: what a browser shows of them, nothing drawn over.

    make demo pages && python tools/make_pictures.py

Needs Playwright (of the extra `test`) and Chromium or Chrome, as tools/page_pictures.py does.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from page_pictures import running_browser

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "images"
MOST_BYTES = 300_000


class Picture(NamedTuple):
    """A page, how wide the window is, down to where it is shown, and whether in the dark."""

    name: str
    page: str
    width: int
    height: int
    dark: bool = False


WANTED = (
    Picture("person", "demo-output/person.html", 820, 1240),
    Picture("person_phone", "demo-output/person.html", 390, 1500),
    Picture("person_dark", "demo-output/person.html", 390, 1500, dark=True),
    Picture("loan_de", "gallery/loan.de.html", 390, 1500),
    Picture("hours", "gallery/hours.html", 390, 1500),
    Picture("education", "gallery/education.html", 390, 1500),
    Picture("groups", "gallery/groups.html", 390, 1500),
    Picture("model", "gallery/model.html", 1280, 1100),
)


def main() -> None:
    missing = [wanted.page for wanted in WANTED if not (ROOT / wanted.page).is_file()]
    if missing:
        raise SystemExit(f"there is no {missing[0]}; run make demo pages first")
    PICTURES.mkdir(exist_ok=True)
    with running_browser() as browser:
        for wanted in WANTED:
            scheme = "dark" if wanted.dark else "light"
            size = {"width": wanted.width, "height": wanted.height}
            context = browser.new_context(viewport=size, color_scheme=scheme)
            tab = context.new_page()
            tab.goto((ROOT / wanted.page).as_uri())
            picture = PICTURES / f"{wanted.name}.png"
            tab.screenshot(path=picture)
            context.close()
            if picture.stat().st_size > MOST_BYTES:
                raise SystemExit(f"{picture.name} has {picture.stat().st_size} bytes, more than {MOST_BYTES}")
            print(f"wrote {picture.relative_to(ROOT)}, {picture.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
