"""The newcomer's path, walked: docs/start/index.md in a fresh clone with an environment of its own; and what the site holds.

    python benchmarks/site_walk.py                  # both parts, into benchmarks/results/site.json
    python benchmarks/site_walk.py --only walk      # the walk alone

The walk types what the page says: its shell block, then its Python, block by block, in one interpreter, with the noise as it
comes. Each step has seconds by the clock and of the processor; the former depend on the network and on what else runs.
Reading is not in them: the page's words are counted, and taken to be read at 200 a minute.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import ROOT, Benchmark, Figure, Part, options_of, run

sys.path.insert(0, str(ROOT / "tools"))

from page_blocks import Block, blocks_of, commands_of, pages

PAGE = "docs/start/index.md"
WORDS_A_MINUTE = 200
STEPS = """
import json, sys, time
names = {"__name__": "__main__"}
for block in json.load(open(sys.argv[1])):
    clock, work = time.perf_counter(), time.process_time()
    exec(compile(block["text"], "the page", "exec"), names)
    spent = {"clock": time.perf_counter() - clock, "work": time.process_time() - work}
    with open(sys.argv[2], "a") as told:
        told.write(json.dumps({**block, **spent}) + chr(10))
"""


@dataclass(frozen=True)
class Walk:
    """Where packages come from is pip's own affair."""

    python: str


def timed(command: str, folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Run a line of shell; seconds by the clock and of the processor."""
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command!r} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"clock": time.perf_counter() - clock, "work": work}


def code_of(text: str) -> tuple[Block, list[Block]]:
    shell, *rest = blocks_of(text)
    if shell.kind != "bash" or any(block.kind != "python" for block in rest):
        raise SystemExit(f"{PAGE} has a shell block, and then Python")
    return shell, rest


def walk(bench: Walk) -> Part:
    """Clone, install, and type the page."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    shell, blocks = code_of(text)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment |= {"HOME": name, "VITRAIL_STATE": str(folder / "state"), "MPLBACKEND": "Agg"}
        for command in commands_of(shell):
            for step in command.split(" && "):
                if step.startswith("git clone"):  # of this repository as it is committed
                    rows.append({"step": "clone", **timed(f"git clone --quiet '{ROOT}' vitrail", folder, environment)})
                elif step.startswith("python3 -m venv"):
                    line = step.replace("python3", f"'{bench.python}'")
                    rows.append({"step": "environment", **timed(line, folder / "vitrail", environment)})
                elif step.startswith("pip install"):
                    line = f". .venv/bin/activate && {step}"
                    rows.append({"step": "install", **timed(line, folder / "vitrail", environment)})
        clone = folder / "vitrail"
        listed, told = folder / "blocks.json", folder / "told.jsonl"
        listed.write_text(json.dumps([{"line": block.line, "text": block.text} for block in blocks]))
        python = f"'{clone}/.venv/bin/python' -c '{STEPS.replace(chr(39), chr(34))}' '{listed}' '{told}'"
        whole = timed(python, clone, environment)
        steps = [json.loads(line) for line in told.read_text().splitlines()]
        paid = next(place for place, step in enumerate(steps) if '.save("census.pane")' in step["text"])
        seen = next(place for place, step in enumerate(steps) if 'to_html("why.html")' in step["text"])
        rows += [{"step": f"Python, line {step['line']}", "clock": step["clock"], "work": step["work"]} for step in steps]
        written = [file for file in ("census.pane", "why.html", "report.html", "census.db") if (clone / file).stat().st_size]
        installed = sum(
            file.stat().st_size for file in (clone / ".venv").rglob("*") if file.is_file() and not file.is_symlink()
        )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    setting_up = sum(row["clock"] for row in rows if not row["step"].startswith("Python"))
    words = len(re.sub(r"```.*?```|<!--.*?-->", " ", text, flags=re.DOTALL).split())
    headline = {
        "walk_blocks": len(steps),
        "walk_setting_up_seconds": round(setting_up, 1),
        "walk_first_pane_seconds": round(sum(step["clock"] for step in steps[: paid + 1]), 1),
        "walk_first_page_seconds": round(sum(step["clock"] for step in steps[: seen + 1]), 1),
        "walk_python_seconds": round(whole["clock"], 1),
        "walk_processor_seconds": round(
            sum(row["work"] for row in rows if not row["step"].startswith("Python")) + whole["work"], 1
        ),
        "walk_reading_minutes": round(words / WORDS_A_MINUTE, 1),
        "walk_installed_mib": round(installed / 2**20),
    }
    load = os.getloadavg()[0]
    how = (
        f"commit {commit.strip()}, {len(written)} files written; load {load:.1f} on {os.cpu_count()} cores, "
        "so seconds by the clock are what a busy machine took"
    )
    return Part(headline, [{"part": "walk", **row} for row in rows], how)


def built(bench: Walk) -> Part:
    """The site, built strictly: how many pages, how large, how many blocks of code."""
    found = [block for page in pages() for block in blocks_of(page.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory() as name:
        command = f"'{sys.executable}' -m mkdocs build --strict --quiet --site-dir '{name}'"
        seconds = timed(command, ROOT, {**os.environ, "NO_MKDOCS_2_WARNING": "1"})
        files = [file for file in Path(name).rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        n_pages = sum(file.suffix == ".html" for file in files)
    headline = {
        "site_pages": n_pages,
        "site_mib": round(size / 2**20, 1),
        "site_build_processor_seconds": round(seconds["work"], 1),
        "blocks": len(found),
        "blocks_not_run": sum(block.why is not None for block in found),
        "blocks_with_output": sum(block.shows is not None for block in found),
    }
    return Part(
        headline,
        [{"part": "site", **headline}],
        "mkdocs build --strict; blocks of README.md and docs, notebooks not counted",
    )


BENCHMARK: Benchmark[Walk] = Benchmark(
    name="site",
    script="benchmarks/site_walk.py",
    figures={"walk": Figure(walk), "site": Figure(built)},
    quick="nothing",
)


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--python", default="python3", help="the Python of the newcomer")
    run(BENCHMARK, parser.parse_args(), lambda options: Walk(options.python))


if __name__ == "__main__":
    main()
