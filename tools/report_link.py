"""The technical report's PDF in the site, where one was made (``make report``): a hook of MkDocs (mkdocs.yml names it).

The PDF is not part of the repository. Where build/report.pdf is there when the site is built, it is copied beside the page
on the report, and that page begins with a link to it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

PDF = Path(__file__).resolve().parent.parent / "build" / "report.pdf"
PAGE = "report.md"
LINK = '<p><a href="report.pdf">As a PDF</a></p>\n'


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Put the link under the title."""
    if page.file.src_uri != PAGE or not PDF.is_file():
        return html
    title, end, rest = html.partition("</h1>")
    return f"{title}{end}\n{LINK}{rest}" if end else LINK + html


def on_post_build(*, config: Any, **_: Any) -> None:
    """Copy the PDF."""
    if PDF.is_file():
        shutil.copyfile(PDF, Path(config["site_dir"]) / PDF.name)
