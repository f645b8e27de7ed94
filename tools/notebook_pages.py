"""The tutorials in the site: a hook of MkDocs (mkdocs.yml names it) that makes a page of every executed notebook.

Cells become plain Markdown, so that a page looks, reads aloud and is searched like any other of the site, and loads nothing
from other hosts. Pictures become files, with the words of their cell for readers who do not see them. A link to a notebook,
as GitHub follows it, leads to its page in the site; the notebook itself and its source are offered at the top.
"""

from __future__ import annotations

import base64
import json
import re
from html import escape
from pathlib import Path
from typing import Any

FOLDER = "tutorials"
LINK = re.compile(r"(\]\((?:[\w./-]*/)?\w+)\.ipynb((?:#[\w-]+)?\))")
STYLE = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)
SOURCE = "https://github.com/vitrail/vitrail/blob/main/docs/tutorials/{file}"
TOP = (
    '<p class="source-link">This page is an executed notebook, with noise as it came: '
    '<a href="{name}.ipynb" download>download it</a>, or read <a href="{source}">its source</a>.</p>'
)


def page_of(name: str, notebook: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook, and its pictures by the name of their file beside it.

    >>> words = {"cell_type": "markdown", "source": "# Title\\n\\nWords."}
    >>> code = {"cell_type": "code", "source": "1 + 1", "metadata": {}, "outputs": [{"data": {"text/plain": "2"}}]}
    >>> print(page_of("sums", {"cells": [words, code], "metadata": {"vitrail": {"source": "sums.py"}}})[0])
    # Title
    <BLANKLINE>
    <p class="source-link">This page is ...
    <BLANKLINE>
    Words.
    <BLANKLINE>
    ```python
    1 + 1
    ```
    <BLANKLINE>
    <div class="output"><pre>2</pre></div>
    <BLANKLINE>
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = {kind: "".join(told) for kind, told in output.get("data", {"text/plain": output.get("text", "")}).items()}
            if "image/png" in data:
                file = f"{name}_files/{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                shows = escape(cell["metadata"].get("picture", ""), quote=True)
                parts.append(f'<p class="output"><img src="{file}" alt="{shows}"></p>')
            elif "text/html" in data:
                parts.append(f'<div class="output">{_plain(data["text/html"])}</div>')
            else:
                parts.append(f'<div class="output"><pre>{escape(data["text/plain"].rstrip())}</pre></div>')
    title, _, rest = parts[0].partition("\n")
    top = TOP.format(name=name, source=SOURCE.format(file=notebook["metadata"]["vitrail"]["source"]))
    return "\n\n".join([title, top, rest.strip(), *parts[1:]]) + "\n", pictures


def _plain(html: str) -> str:
    """An output's HTML without empty lines, which would end it in Markdown, and without pandas' own looks for tables."""
    html = STYLE.sub("", html).replace('<table border="1" class="dataframe">', "<table>")
    return re.sub(r"\n\s*\n+", "\n", html.strip())


# --- what MkDocs calls -----------------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the page and the pictures of every notebook."""
    from mkdocs.structure.files import File

    for path in sorted((Path(config.docs_dir) / FOLDER).glob("*.ipynb")):
        page, pictures = page_of(path.stem, json.loads(path.read_text(encoding="utf-8")))
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=page))
        for file, content in pictures.items():
            files.append(File.generated(config, f"{FOLDER}/{file}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to notebooks to their pages."""
    return LINK.sub(r"\1.md\2", markdown)
