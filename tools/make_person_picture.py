"""Write docs/images/person.png, the picture in the README: the page for a person that ``make demo`` leaves behind.

    make demo && python tools/make_person_picture.py

Needs Chromium (or Chrome) on the path. The picture is what the browser shows of demo-output/person.html, nothing drawn over.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "demo-output" / "person.html"
PICTURE = ROOT / "docs" / "images" / "person.png"
WIDTH, HEIGHT = 820, 1920
"""Down to the end of what would change the answer."""
MOST_BYTES = 300_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main() -> None:
    page = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PAGE
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"no browser was found; install one of {', '.join(BROWSERS)}")
    if not page.is_file():
        raise SystemExit(f"there is no {page}; run make demo first")
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        size = [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run([browser, *options, *size], check=True, capture_output=True)
    if PICTURE.stat().st_size > MOST_BYTES:
        raise SystemExit(f"the picture has {PICTURE.stat().st_size} bytes, more than {MOST_BYTES}")
    print(f"wrote {PICTURE.relative_to(ROOT)}, {PICTURE.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
