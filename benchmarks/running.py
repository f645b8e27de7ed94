"""How every benchmark of several parts runs: parts are measured one by one, each is kept as a file, and the files are put
together into ``benchmarks/results/NAME.json``.

A script says what its parts are (``Benchmark``), what they are measured on (a function of the options) and how they are
drawn; options, the choice of parts, the cache folders and both kinds of file are here:

    parser = options_of(BENCHMARK, __doc__)
    run(BENCHMARK, parser.parse_args(), bench_of)

A part is one file so that a long run can be broken off and taken up (``--resume``), and so that parts can be measured on
different machines. A result file has "headline" (numbers by key), "rows" (what tables and pictures are made from, each with
its part) and "how" (what was run, where, for how long, and each part's own words).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PICTURES = ROOT / "docs" / "papers" / "figures"
CACHE = Path(tempfile.gettempdir()) / "vitrail-benchmarks"

Bench = TypeVar("Bench")
Row = dict[str, Any]
Stored = dict[str, Any]
"""A finished part as its file has it: headline, rows, how, seconds."""


@dataclass(frozen=True)
class Part:
    """What one part of a benchmark found."""

    headline: Mapping[str, object]
    rows: Sequence[Row]
    how: str | dict[str, object]


@dataclass(frozen=True)
class Figure(Generic[Bench]):
    """A part of a benchmark: how it is measured, and the headline keys by which it can be asked for too.

    A part yields all its keys, unless they are ``compared``: keys that only printed figures, if they are there, can yield.
    A part that ``needs`` a package is left out where that is not installed, unless it is asked for.
    """

    measure: Callable[[Bench], Part]
    keys: tuple[str, ...] = ()
    compared: bool = False
    needs: str | None = None


@dataclass(frozen=True, kw_only=True)
class Benchmark(Generic[Bench]):
    """What tells one benchmark from another.

    Parameters
    ----------
    name : str
        Of the result file, and of the cache's folders NAME-parts and NAME-quick unless ``folders`` names them.
    script : str
        Where the script is in the repository.
    figures : mapping of str to Figure
        The parts by name, in the order of the result file.
    quick : str
        What ``--quick`` makes small, for the help.
    facts : mapping
        What "how" says of all parts, beside versions and machine.
    partial : bool
        Write whatever is finished, name what is not, and offer ``--collect``; else write once all parts are there.
    torch : bool
        Parts run where ``--device`` says, and each states it: parts may come from different machines.
    headline : str
        The key in the results of a part's ``key``.
    draw : callable, optional
        Pictures from rows, into a folder.
    indented : bool
        Lay every value of the result file on a line of its own; else every row.
    """

    name: str
    script: str
    figures: Mapping[str, Figure[Bench]]
    quick: str
    folders: tuple[str, str] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    partial: bool = False
    torch: bool = False
    headline: str = "{key}"
    draw: Callable[[list[Row], Path], None] | None = None
    indented: bool = False

    @property
    def results(self) -> Path:
        return RESULTS / f"{self.name}.json"

    def folder(self, cache: Path, quick: bool) -> Path:
        """Where finished parts are kept."""
        whole, small = self.folders or (f"{self.name}-parts", f"{self.name}-quick")
        return cache / (small if quick else whole)


def options_of(benchmark: Benchmark[Bench], description: str | None) -> argparse.ArgumentParser:
    """What every benchmark takes; scripts add their own."""
    keys = any(figure.keys for figure in benchmark.figures.values())
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of datasets; else the variable VITRAIL_DATA")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        metavar="NAME",
        help=("parts or headline keys; parts: " if keys else "parts: ") + ", ".join(benchmark.figures),
    )
    if benchmark.torch:
        parser.add_argument("--device", default="cpu", help="where torch trains: cpu, cuda")
        parser.add_argument("--threads", type=int, default=1, help="of torch on a CPU")
    parser.add_argument("--quick", action="store_true", help=f"{benchmark.quick}; nothing is written")
    parser.add_argument("--resume", action="store_true", help="do not measure again what is stored")
    parser.add_argument("--merge", action="store_true", help="parts that this cache lacks stay as the results file has them")
    if benchmark.partial:
        done = "write and draw" if benchmark.draw else "write"
        parser.add_argument("--collect", action="store_true", help=f"measure nothing; {done} what is finished")
    return parser


def chosen(benchmark: Benchmark[Bench], only: Sequence[str]) -> list[str]:
    """The parts that are named, or have a headline key that is; without names, all that can run here."""
    figures = benchmark.figures
    known = [*figures, *(key for figure in figures.values() for key in figure.keys)]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are {', '.join(dict.fromkeys(known))}")
    if not only:
        return [name for name, figure in figures.items() if figure.needs is None or find_spec(figure.needs)]
    return [name for name, figure in figures.items() if name in only or set(figure.keys) & set(only)]


def run(benchmark: Benchmark[Bench], options: argparse.Namespace, bench_of: Callable[[argparse.Namespace], Bench]) -> None:
    """Do what the options ask for: measure, write, draw."""
    names = chosen(benchmark, options.only)
    folder = benchmark.folder(options.cache, options.quick)
    folder.mkdir(parents=True, exist_ok=True)
    if not (benchmark.partial and options.collect):
        device = _device(options) if benchmark.torch else None
        measure(benchmark, names, bench_of(options), folder, resume=options.resume, device=device)
    parts, headline = finished(benchmark, folder), dict[str, object]()
    if options.merge and not options.quick:
        stored, headline = kept(benchmark)
        parts = {name: parts.get(name, stored.get(name)) for name in benchmark.figures if name in {*parts, *stored}}
    rows = rows_of(parts)
    if not options.quick:
        if not benchmark.partial and len(parts) < len(benchmark.figures):
            return
        if lost := _lost(benchmark, parts):
            raise SystemExit(
                f"{benchmark.results.name} has {', '.join(lost)}, which this cache lacks: "
                "nothing was written; --merge keeps them as they are"
            )
        write(benchmark, parts, rows, headline)
    if benchmark.draw:
        benchmark.draw(rows, folder if options.quick else PICTURES)


def measure(
    benchmark: Benchmark[Bench], names: Sequence[str], bench: Bench, folder: Path, *, resume: bool, device: str | None = None
) -> None:
    """Run parts and keep each as a file."""
    for name in names:
        path = folder / f"{name}.json"
        if resume and path.exists():
            print(f"{name}: kept", flush=True)
            continue
        figure = benchmark.figures[name]
        start = time.perf_counter()
        part = figure.measure(bench)
        seconds = time.perf_counter() - start
        missing = set(figure.keys) - set(part.headline)
        assert figure.compared or not missing, f"{name} did not yield {missing}"
        how = part.how
        if device is not None:
            how = {**({"text": how} if isinstance(how, str) else how), "device": device}
        found = {"headline": part.headline, "rows": part.rows, "how": how, "seconds": seconds}
        path.write_text(json.dumps(found) + "\n")
        print(f"{name} ({seconds:.0f} s)", json.dumps(part.headline, indent=2), flush=True)


def finished(benchmark: Benchmark[Bench], folder: Path) -> dict[str, Stored]:
    """The parts that have a file, by name."""
    paths = {name: folder / f"{name}.json" for name in benchmark.figures}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def kept(benchmark: Benchmark[Bench]) -> tuple[dict[str, Any], dict[str, object]]:
    """The parts of the results file, as their own files had them but for the headline, and that headline."""
    if not benchmark.results.exists():
        return {}, {}
    before = json.loads(benchmark.results.read_text())
    seconds = before["how"].get("seconds", {})
    parts = {
        name: {
            "headline": {},
            "rows": [
                {key: value for key, value in row.items() if key != "part"} for row in before["rows"] if row["part"] == name
            ],
            "how": before["how"][name],
            "seconds": seconds[name],
        }
        for name in seconds
        if name in benchmark.figures
    }
    return parts, before["headline"]


def rows_of(parts: Mapping[str, Stored]) -> list[Row]:
    """All rows, each with the name of its part."""
    return [{"part": name, **row} for name, part in parts.items() for row in part["rows"]]


def write(
    benchmark: Benchmark[Bench], parts: Mapping[str, Stored], rows: Sequence[Row], headline: Mapping[str, object]
) -> None:
    """Put finished parts together; ``headline`` is what kept parts had said."""
    headline = dict(headline) | {
        benchmark.headline.format(part=name, key=key): value
        for name, part in parts.items()
        for key, value in part["headline"].items()
    }
    how = {
        "command": f"python {benchmark.script}",
        **benchmark.facts,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        **({} if benchmark.torch else {"machine": _machine()}),
        **({"not finished": [name for name in benchmark.figures if name not in parts]} if benchmark.partial else {}),
        "seconds": {name: round(part["seconds"], 1) for name, part in parts.items()},
        **{name: part["how"] for name, part in parts.items()},
    }
    if benchmark.indented:
        text = json.dumps({"headline": headline, "rows": rows, "how": how}, indent=2)
    else:
        lines = [f'  "headline": {json.dumps(headline, indent=4)}', f'  "how": {json.dumps(how, indent=4)}']
        lines.append('  "rows": [\n    ' + ",\n    ".join(json.dumps(row) for row in rows) + "\n  ]")
        text = "{\n" + ",\n".join(lines) + "\n}"
    benchmark.results.parent.mkdir(exist_ok=True)
    benchmark.results.write_text(text + "\n")
    print(f"wrote {benchmark.results.name}", json.dumps(headline, indent=2))


def _lost(benchmark: Benchmark[Bench], parts: Mapping[str, Stored]) -> list[str]:
    """Parts of the results file that would be gone if these took its place: measured before, with another cache."""
    if not benchmark.results.exists():
        return []
    before = json.loads(benchmark.results.read_text())["how"].get("seconds", {})
    return sorted(set(before) & set(benchmark.figures) - set(parts))


def _machine() -> str:
    return platform.processor() or platform.machine()


def _device(options: argparse.Namespace) -> str:
    """Set torch up as asked, and say where it computes."""
    import torch

    torch.set_num_threads(options.threads)
    return _machine() if options.device == "cpu" else torch.cuda.get_device_name()
