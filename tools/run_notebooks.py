"""Run the tutorials: each plain source in docs/tutorials becomes an executed notebook beside it, with outputs and pictures.

A source is a Python file in cells: ``# %% [markdown]`` begins words (each line behind ``# ``), ``# %%`` begins code, and
``# %% picture: what it shows`` begins code that draws, with words for readers who do not see the picture. It reads well in a
diff; the notebook is what it said when it was run, with noise as it came, and is never edited by hand.

    python tools/run_notebooks.py                 # run those whose source changed
    python tools/run_notebooks.py from_shap       # run one
    python tools/run_notebooks.py --all           # run all of them (a minute or two)
    python tools/run_notebooks.py --check         # run nothing; exit with 1 where a notebook is not that of its source

Notebooks run in a folder that is laid out like the repository and goes afterwards, so ``../../examples/data`` leads to the
bundled rows, as it does for somebody who opens the notebook in a clone. What depends on the machine is taken out: times,
absolute paths (refused), numbers of the kernel.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "docs" / "tutorials"
NAMES = ("from_shap", "from_interpretml", "from_dice", "from_opendp", "hand_out_a_pane", "text_and_images", "audit_a_claim")
MARKER = re.compile(r"^# %%(?: (?:(?P<words>\[markdown\])|picture: (?P<picture>.+)))?$")
MOST_SECONDS = 120
COLOURS = 64
"""Of a stored picture: lines, bars and bands need no more, and files stay small."""

NO_WIDGETS = "ignore:IProgress not found"
"""What tqdm says in a kernel without widgets: of no use to a reader."""


def nbformat() -> Any:
    """Imported where it is needed: ``--help`` and the checker of types do without it."""
    return import_module("nbformat")


class BadNotebook(Exception):
    """A source that cannot be read, or whose run shows what no page should."""


@dataclass(frozen=True)
class Cell:
    """One cell of a source: words or code, and for code that draws what the picture shows."""

    is_code: bool
    text: str
    picture: str = ""


def cells(source: str) -> list[Cell]:
    """The cells of a source.

    >>> cells("# %% [markdown]\\n# # Title\\n#\\n# Words.\\n\\n# %% picture: a line\\nplot()\\n")
    [Cell(is_code=False, text='# Title\\n\\nWords.', picture=''), Cell(is_code=True, text='plot()', picture='a line')]
    """
    made: list[Cell] = []
    marker: re.Match[str] | None = None
    lines: list[str] = []

    def close() -> None:
        if marker is None:
            if "".join(lines).strip():
                raise BadNotebook("a source begins with '# %% [markdown]'")
        elif marker["words"]:
            bare = [line for line in lines if line and not line.startswith("#")]
            if bare:
                raise BadNotebook(f"in words every line begins with '#': {bare[0]!r}")
            made.append(Cell(False, "\n".join(line[2:] for line in lines).strip()))
        else:
            made.append(Cell(True, "\n".join(lines).strip(), marker["picture"] or ""))

    for line in source.splitlines():
        found = MARKER.match(line)
        if found:
            close()
            marker, lines = found, []
        elif line.startswith("# %%"):
            raise BadNotebook(f"no marker of a cell: {line!r}")
        else:
            lines.append(line)
    close()
    return made


def digest(source: str) -> str:
    """The content hash that a notebook keeps of its source."""
    return hashlib.sha256(source.encode()).hexdigest()


def source_of(name: str) -> str:
    return (TUTORIALS / f"{name}.py").read_text(encoding="utf-8")


def blank(name: str, source: str) -> Any:
    """The notebook of a source, not yet run."""
    book = nbformat().v4.new_notebook()
    for place, cell in enumerate(cells(source)):
        made = (nbformat().v4.new_code_cell if cell.is_code else nbformat().v4.new_markdown_cell)(cell.text)
        made["id"] = f"{name.replace('_', '-')}-{place}"
        if cell.picture:
            made["metadata"]["picture"] = cell.picture
        book.cells.append(made)
    book.metadata = nbformat().from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "vitrail": {"source": f"{name}.py", "sha256": digest(source)},
        }
    )
    return book


def run(name: str, source: str) -> Any:
    """The notebook of a source, run from top to bottom in a kernel of its own; an error in a cell is an error here."""
    book = blank(name, source)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "docs" / "tutorials").mkdir(parents=True)
        (folder / "examples").symlink_to(ROOT / "examples")
        for path in TUTORIALS.glob(f"{name}_*.*"):  # what a source reads beside itself
            (folder / "docs" / "tutorials" / path.name).symlink_to(path)
        homes = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "VITRAIL_STATE")
        environment = {**os.environ, **{home: str(folder / home) for home in homes}, "PYTHONWARNINGS": NO_WIDGETS}
        client = import_module("nbclient").NotebookClient(
            book,
            timeout=MOST_SECONDS,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(folder / "docs" / "tutorials")}},
        )
        client.execute(env=environment)
        for cell in book.cells:
            if cell.cell_type == "code":
                cell.outputs = tidied(cell.outputs)
        refuse_places(book, (str(folder), str(ROOT), str(Path.home()), tempfile.gettempdir() + "/"))
    return book


def tidied(outputs: list[Any]) -> list[Any]:
    """Outputs as they are kept: texts in one piece, small pictures, nothing of the kernel's."""
    kept: list[Any] = []
    for output in outputs:
        output.pop("transient", None)
        if output["output_type"] == "stream":
            if output["name"] == "stderr":
                raise BadNotebook(f"a cell wrote to standard error: {output['text'][:500]}")
            if kept and kept[-1]["output_type"] == "stream":
                kept[-1]["text"] += output["text"]
                continue
        elif not any(output["data"].values()):  # a bar of progress that came and went
            continue
        elif "image/png" in output["data"]:
            output["data"] = {"image/png": small(output["data"]["image/png"])}
        elif "text/html" in output["data"]:
            output["data"] = {"text/html": output["data"]["text/html"]}
        kept.append(output)
    return kept


def small(picture: str) -> str:
    """A PNG in few colours and without its metadata, as base64."""
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(picture))) as opened:
        plain = Image.new("RGB", opened.size, "white")
        plain.paste(opened, mask=opened.getchannel("A") if opened.mode == "RGBA" else None)
        kept = io.BytesIO()
        plain.quantize(COLOURS, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
    return base64.b64encode(kept.getvalue()).decode() + "\n"


def shown(book: Any) -> list[str]:
    """Every text that the outputs of a notebook hold."""
    found = []
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            found += [output["text"]] if output["output_type"] == "stream" else []
            found += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    return found


def refuse_places(book: Any, places: tuple[str, ...]) -> None:
    for text in shown(book):
        for place in places:
            if len(place) > 1 and place in text:
                raise BadNotebook(f"an output names a place of this machine: {place}")


def stale(name: str) -> str:
    """What is wrong with a stored notebook: it is not there, or not that of its source. Empty where nothing is."""
    path = TUTORIALS / f"{name}.ipynb"
    if not path.is_file():
        return f"{path.name} is missing"
    book, source = nbformat().read(path, as_version=4), source_of(name)
    told = dict(book.metadata.get("vitrail", {}))
    if told != {"source": f"{name}.py", "sha256": digest(source)}:
        return f"{path.name} was not made from {name}.py as it is"
    texts = [(cell.cell_type == "code", cell.source) for cell in book.cells]
    if texts != [(cell.is_code, cell.text) for cell in cells(source)]:
        return f"{path.name} was changed by hand"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which tutorials; those whose source changed if none is named"
    )
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--check", action="store_true", help="run nothing; exit with 1 where a notebook is out of date")
    options = parser.parse_args()
    names = options.names or NAMES
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no tutorial is called {unknown[0]!r}; there are: {', '.join(NAMES)}")
    if options.check:
        found = [words for name in names if (words := stale(name))]
        sys.exit("\n".join([*found, "Run: python tools/run_notebooks.py"]) if found else 0)
    chosen = names if options.names or options.all else [name for name in names if stale(name)]
    for name in chosen:
        source = source_of(name)
        nbformat().write(run(name, source), TUTORIALS / f"{name}.ipynb")
        print(f"{name}.ipynb was run and written.")


if __name__ == "__main__":
    main()
