"""The technical report as a PDF: docs/report.md, its comments taken out, through Markdown and Chromium's printer.

    make report                                      # build/report.pdf
    python tools/make_report.py --out report.pdf
    python tools/make_report.py --html page.html     # the page that is printed, without a browser

Figures come from docs/report.md as they stand there: ``make figures`` writes them. Chromium is looked for under its usual
names; ``CHROMIUM=/path/to/it`` names another.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "report.md"
SITE = "https://github.com/vitrail/vitrail/blob/main/docs/"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
LEAST_BYTES = 50_000
"""A PDF smaller than that is an error page."""

STYLE = """
@page { size: A4; margin: 22mm 20mm 20mm; }
html { font: 10pt/1.42 "Charter", "Bitstream Charter", "DejaVu Serif", Georgia, serif; color: #111; }
body { margin: 0; }
h1 { font-size: 19pt; line-height: 1.2; margin: 0 0 6mm; }
h2 { font-size: 13.5pt; margin: 8mm 0 2mm; border-bottom: 0.3mm solid #3f51b5; padding-bottom: 0.6mm; break-after: avoid; }
h3 { font-size: 11pt; margin: 5mm 0 1.5mm; break-after: avoid; }
p { margin: 0 0 2.2mm; text-align: justify; hyphens: auto; orphans: 3; widows: 3; }
ul, ol { margin: 0 0 2.2mm; padding-left: 5mm; }
li { margin: 0 0 0.8mm; }
code { font: 7.8pt "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
pre { background: #f4f4f7; padding: 2mm 3mm; white-space: pre-wrap; break-inside: avoid; }
pre code { font-size: 8.2pt; }
ul.claim { font-size: 8.4pt; line-height: 1.3; color: #444; list-style: none; }
ul.claim { border-left: 0.6mm solid #c5cae9; padding-left: 4mm; }
table { border-collapse: collapse; width: 100%; font-size: 8.6pt; margin: 2mm 0 3.5mm; break-inside: avoid; }
th, td { text-align: left; padding: 0.9mm 1.6mm; border-bottom: 0.15mm solid #bbb; vertical-align: top; }
th { border-bottom: 0.35mm solid #333; }
a { color: #283593; text-decoration: none; }
"""


def without_marks(text: str) -> str:
    """Markdown as a reader sees it: no comments, and nothing where they stood.

    >>> without_marks("It loses <!--= local gain .0f -->595<!--/--> times less.")
    'It loses 595 times less.'
    """
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def absolute(link: re.Match[str]) -> str:
    """Links to other pages lead to the repository: a PDF travels alone."""
    target = html.unescape(link[1])
    return link[0] if re.match(r"[a-z]+:|#", target) else f'href="{html.escape(SITE + target)}"'


def page(text: str) -> str:
    """The whole page that is printed."""
    body = import_module("markdown").markdown(
        without_marks(text), extensions=["tables", "fenced_code", "sane_lists", "toc", "smarty"]
    )
    body = re.sub(r'href="([^"]+)"', absolute, body)
    body = re.sub(r"<ul>(\s*<li>(?:<p>)?<em>code</em>)", r'<ul class="claim">\1', body)
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title[1] if title else "Report")}'
        f"</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def browser() -> str:
    """Chromium, or a loud end."""
    named = os.environ.get("CHROMIUM")
    for name in (named,) if named else BROWSERS:
        if found := shutil.which(name):
            return found
    raise SystemExit(
        "!!! Chromium is not installed here (Debian: apt install chromium), so there is no PDF. !!!\n"
        "    CHROMIUM=/path/to/it names another; tools/make_report.py --html FILE writes the page without it."
    )


def printed(content: str, out: Path) -> None:
    """Print a page to a PDF."""
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(content, encoding="utf-8")
        command += [f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}", source.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        if done.returncode or not made.is_file() or made.stat().st_size < LEAST_BYTES:
            raise SystemExit(f"Chromium printed no report:\n{done.stderr[-2000:]}")
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "report.pdf")
    parser.add_argument("--html", type=Path, help="write the page that is printed, and print nothing")
    options = parser.parse_args()
    content = page(REPORT.read_text(encoding="utf-8"))
    if options.html:
        options.html.write_text(content, encoding="utf-8")
        return
    printed(content, options.out)
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", options.out.read_bytes()))
    print(f"wrote {options.out} ({pages} pages)", file=sys.stderr)


if __name__ == "__main__":
    main()
