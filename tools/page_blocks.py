"""Run the code of pages, page by page and block by block, and write what it printed where pages show it.

    python tools/page_blocks.py                          # run every page; write outputs and pictures anew
    python tools/page_blocks.py --check                  # change nothing; name what fails and what is stale
    python tools/page_blocks.py docs/models.md --check   # one page

Every ```python, ```bash and ```console block of README.md and docs/ runs, in the order of its page, in an empty folder with
``examples`` in it; Python blocks of a page share names. What a page speaks of and does not make itself (somebody's rows,
a model) is prepared by ``tools/page_settings.py``. Noise is planted (``tests/error_rates.py``), so that what is
printed is the same in every run. Commands ``vitrail`` run in the page's process; ``pip install``, ``make``
and scripts of ``benchmarks`` do not run.

Marks in a page, in comments that no reader sees:

    <!-- not run: somebody's database -->    before a block that cannot run here, and why

    <!-- output -->                          after a block: what it printed, written by this script; ``output: 12 lines``
    ```text                                  shows the first ones only; ``output varies: a date`` is shown, and not compared
    ...
    ```
    <!-- end output -->

    <!-- picture: why.png -->                before an image: the file of the page's folder that it is a copy of; of an HTML
    ![why](images/start_why.png)             page a picture is taken, ``picture: person.html 620`` pixels wide
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("python", "bash", "console")
FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<why>[^\n]+) -->\n\s*?)?"
    rf"^(?P<indent> *)```(?P<kind>{'|'.join(KINDS)})\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
OUTPUT = re.compile(
    r"\n+<!-- output(?P<varies> varies)?(?:: (?P<words>[^\n]+?))? -->\n(?P<shown>.*?)<!-- end output -->", re.DOTALL
)
PICTURE = re.compile(
    r"<!-- picture: (?P<file>\S+)(?: (?P<width>\d+))? -->\s*(?:<img src=\"|!\[[^\]]*\]\()(?P<image>[^\")]+)"
)
ELSEWHERE = ("pip ", "make ", "python benchmarks/")
"""What installs, or is a target of its own (benchmarks/site_walk.py runs those in a fresh clone), or takes hours."""
MOST_SECONDS = 600
"""For a page. The slowest needs half a minute where nothing else runs, and ten times that on a machine that is full."""

WIDTH = 84
"""Of the terminal, in characters: what fits into the column of a page (docs/assets/site.css)."""

DIGITS = re.compile(r"\d+")
GAP = re.compile(r" {2,}")
SHELL = re.compile(r"[|<>;&*$`]|\b(?:echo|export|alias|cd|mkdir)\b")


@dataclass(frozen=True)
class Block:
    """A block of code: its kind, its text, the line it begins at, why it does not run, and whether its output is shown."""

    kind: str
    text: str
    line: int
    why: str | None
    shows: re.Match[str] | None


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in its order.

    Examples
    --------
    >>> page = "<!-- not run: it never ends -->\\n```bash\\nvitrail serve\\n```\\n\\n```python\\n1 + 1\\n```\\n"
    >>> [(block.kind, block.line, block.why) for block in blocks_of(page)]
    [('bash', 3, 'it never ends'), ('python', 7, None)]
    """
    found = []
    for fence in FENCE.finditer(text):
        code = fence["text"]
        if fence["indent"]:
            code = "".join(line.removeprefix(fence["indent"]) for line in code.splitlines(keepends=True))
        line = text.count("\n", 0, fence.start("text")) + 1
        found.append(Block(fence["kind"], code, line, fence["why"], OUTPUT.match(text, fence.end())))
    return found


def pages() -> list[Path]:
    """Every page that holds a block."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if blocks_of(page.read_text(encoding="utf-8"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# --- running a page, in a process of its own -----------------------------------------------------------------------------


@dataclass
class Ran:
    """What came of a page: what each block printed (``None`` where it did not run), what went wrong, seconds of work."""

    page: str
    printed: list[str | None] = field(default_factory=list)
    trouble: str = ""
    files: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Screen(io.StringIO):
    """What a person at a terminal would see."""

    def isatty(self) -> bool:
        return True


def commands_of(block: Block) -> list[str]:
    """The commands of a block: lines, joined where they go on, without the prompt."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.kind == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def run_command(line: str) -> None:
    words = shlex.split(line, comments=True)
    if " ".join([*words, ""]).startswith(ELSEWHERE):
        return
    if words[0] == "vitrail" and not SHELL.search(" ".join(w for w in words if "{" not in w)) and "'" not in line:
        from vitrail.cli import main

        sys.argv = words
        try:
            main()
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"{line!r} ended with {stop.code}") from stop
        return
    done = subprocess.run(["bash", "-e", "-c", line], capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"{line!r} ended with {done.returncode}: {done.stderr}")


def run_blocks(ran: Ran, text: str, names: dict[str, Any], hidden: Sequence[str]) -> None:
    for block in blocks_of(text):
        if block.why is not None:
            ran.printed.append(None)
            continue
        screen = Screen()
        try:
            with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
                if block.kind == "python":
                    with without(hidden):
                        exec(compile("\n" * (block.line - 1) + block.text, ran.page, "exec"), names)  # lines as in the page
                else:
                    for line in commands_of(block):
                        run_command(line)
        except BaseException:
            ran.trouble = f"{ran.page}:{block.line}: {screen.getvalue()[-2000:]}\n{traceback.format_exc()}"
            return
        ran.printed.append(tidy(screen.getvalue()))


@contextlib.contextmanager
def without(hidden: Sequence[str]) -> Iterator[None]:
    """Import none of these packages: what `pip install .` does not bring."""
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in hidden}
    for name in [*kept, *hidden]:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in [*kept, *hidden]:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


def tidy(printed: str) -> str:
    """Without colours and spaces at the ends of lines."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
    return "\n".join(line.rstrip() for line in plain.splitlines()).strip("\n")


def run_page(page: Path, folder: Path) -> Ran:
    """Run a page in this process, which is its own; ``folder`` is empty."""
    from page_settings import SETTINGS, Setting

    ran = Ran(name_of(page))
    text = page.read_text(encoding="utf-8")
    setting = SETTINGS.get(ran.page, Setting())
    for before, after in setting.changed:
        if before not in text:
            ran.trouble = f"{ran.page} does not say {before!r} any more, which tools/page_settings.py changes"
            return ran
        text = text.replace(before, after)
    os.chdir(folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    os.environ["VITRAIL_STATE"] = str(folder / ".state")
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        with planted():
            names.update(setting.prepare() or {})
            run_blocks(ran, text, names, setting.hidden)
    except Exception:
        ran.trouble = f"preparing {ran.page}: {traceback.format_exc()}"
    ran.files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    if not ran.trouble:
        ran.trouble = "\n".join(setting.missing("\n".join(filter(None, ran.printed)), ran.files))
    spent = os.times()
    ran.seconds = spent.user + spent.system + spent.children_user + spent.children_system
    return ran


@contextlib.contextmanager
def planted() -> Iterator[None]:
    """The same noise in every run, and nobody waits for the disk."""
    sys.path.insert(0, str(ROOT / "tests"))
    os.fsync = lambda fd: None
    with import_module("error_rates").planted_noise():
        yield


def run_pages(wanted: Sequence[Path], keep: Path) -> list[Ran]:
    """Each page in a process forked from this one, which has imported what most of them need."""
    os.environ |= {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "MPLBACKEND": "Agg"}
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    import matplotlib as mpl

    mpl.use("Agg")
    import page_settings  # noqa: F401

    found = []
    for page in wanted:
        folder = keep / name_of(page).replace("/", "_").removesuffix(".md")
        folder.mkdir(parents=True)
        answer = keep / f"{folder.name}.json"
        child = os.fork()
        if child == 0:
            os.setsid()
            code = 1
            try:
                ran = run_page(page, folder)
                answer.write_text(json.dumps(ran.__dict__), encoding="utf-8")
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        ended = ends_within(child, MOST_SECONDS)
        if answer.exists():
            found.append(Ran(**json.loads(answer.read_text(encoding="utf-8"))))
        else:
            why = "its process died" if ended else f"it did not end within {MOST_SECONDS} seconds"
            found.append(Ran(name_of(page), trouble=f"{name_of(page)}: {why}"))
    return found


def ends_within(child: int, seconds: float) -> bool:
    """Wait for a process of ours, and end it and what it started where it takes longer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


# --- what pages show -----------------------------------------------------------------------------------------------------


def folded(line: str) -> list[str]:
    """A sentence as a terminal folds it, at words; a line of a table stays whole."""
    is_table = len(GAP.findall(line.strip())) > 1 or "\t" in line
    return (
        [line]
        if is_table or len(line) <= WIDTH
        else textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
    )


def shown(printed: str, words: str | None) -> str:
    """What stands under a block that printed this."""
    lines = [part for line in printed.splitlines() for part in folded(line)]
    limit = re.fullmatch(r"(\d+) lines", words or "")
    if limit and len(lines) > int(limit[1]):
        lines = [*lines[: int(limit[1])], "..."]
    return "\n".join(["", "```text", *lines, "```", "", ""])


def with_outputs(text: str, ran: Ran, everything: bool) -> str:
    """The page with what its blocks printed; outputs that vary only where everything is wanted, and their words changed."""
    fresh = text
    for block, printed in reversed(list(zip(blocks_of(text), ran.printed, strict=False))):
        if block.shows is None or printed is None:
            continue
        output = shown(printed, block.shows["words"])
        if block.shows["varies"] and (not everything or DIGITS.sub("0", output) == DIGITS.sub("0", block.shows["shown"])):
            continue
        start, end = block.shows.span("shown")
        fresh = fresh[:start] + output + fresh[end:]
    return fresh


def complaints(ran: Ran) -> Iterator[str]:
    """What is wrong with a page that was run."""
    if ran.trouble:
        yield ran.trouble
        return
    text = (ROOT / ran.page).read_text(encoding="utf-8")
    if with_outputs(text, ran, everything=False) != text:
        yield f"{ran.page}: what its blocks print has changed: run python tools/page_blocks.py {ran.page}"
    for picture in PICTURE.finditer(text):
        if picture["file"] not in ran.files:
            yield f"{ran.page}: its blocks do not write {picture['file']}"


def write_pictures(page: Path, folder: Path) -> None:
    """Copy or take the pictures that a page shows of what its blocks wrote."""
    for picture in PICTURE.finditer(page.read_text(encoding="utf-8")):
        source, target = folder / picture["file"], (page.parent / picture["image"]).resolve()
        target.parent.mkdir(exist_ok=True)
        if source.suffix == ".png":
            target.write_bytes(source.read_bytes())
        else:
            take_picture(source, target, int(picture["width"] or 620))


def take_picture(source: Path, target: Path, width: int) -> None:
    from page_pictures import find_browser, running_browser

    if find_browser() is None:
        print(f"no browser: {target.relative_to(ROOT)} stays as it is", file=sys.stderr)
        return
    with running_browser() as browser:
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="light", device_scale_factor=1)
        tab.goto(source.as_uri())
        tab.screenshot(path=target, clip={"x": 0, "y": 0, "width": width, "height": min(width * 1.5, 1200)}, full_page=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages; else all")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something is wrong")
    parser.add_argument("--json", type=Path, help="write here what came of each page")
    options = parser.parse_args()
    wanted = [page.resolve() for page in options.pages] or pages()
    with tempfile.TemporaryDirectory() as name:
        keep = Path(name)
        found = run_pages(wanted, keep)
        if not options.check:
            for page, ran in zip(wanted, found, strict=True):
                if not ran.trouble:
                    text = page.read_text(encoding="utf-8")
                    fresh = with_outputs(text, ran, everything=True)
                    if fresh != text:
                        page.write_text(fresh, encoding="utf-8")
                    write_pictures(page, keep / name_of(page).replace("/", "_").removesuffix(".md"))
        wrong = [words for ran in found for words in complaints(ran)]
    if options.json:
        told = [{**ran.__dict__, "complaints": list(complaints(ran))} for ran in found]
        options.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    for ran in found:
        print(f"{ran.seconds:6.1f} s  {ran.page}{'  FAILED' if ran.trouble else ''}")
    print("\n".join(wrong) or "every block runs")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
