"""How far a reader has to walk: four journeys through the library, under a profiler.

    python tools/walk.py            the table of docs/architecture.md
    python tools/walk.py --verbose  and every crossing between rooms

For each journey: the functions of ours that ran, the modules they are in, the rooms of those, how many pairs of modules in
different rooms call each other, and how deep our own calls nest. Functions of libraries are not counted; a call from ours
through a library to ours counts as ours. The first run of a journey, which imports what it needs, is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vitrail as vt

SOURCE = str(Path(vt.__file__).resolve().parent)
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True),
        "hours": vt.Numeric(0, 80),
        "sex": vt.Categorical(["Female", "Male"]),
        "rich": vt.Categorical(["no", "yes"]),
    }
)
POINT = {"age": 40, "hours": 45.0, "sex": "Male"}
N_ROWS = 2000


@dataclass
class Walk:
    """What a journey touched."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    crossings: set[tuple[str, str]] = field(default_factory=set)
    depth: int = 0
    stack: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """What ``sys.setprofile`` reports."""
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(SOURCE):
            return
        if event == "return":
            if self.stack:
                self.stack.pop()
            return
        module = frame.f_code.co_filename[len(SOURCE) + 1 : -3].removesuffix("/__init__")
        here = (module, frame.f_code.co_qualname)
        if frame.f_code.co_name == "<module>":  # imports are no part of the way
            self.stack.append(here)
            return
        if self.stack and room(self.stack[-1][0]) != room(module):
            self.crossings.add((self.stack[-1][0], module))
        self.functions.add(here)
        self.stack.append(here)
        self.depth = max(self.depth, len(self.stack))

    @property
    def row(self) -> tuple[int, int, int, int, int]:
        """Functions, modules, rooms, crossings, depth."""
        modules = {module for module, _ in self.functions}
        return len(self.functions), len(modules), len({room(module) for module in modules}), len(self.crossings), self.depth


def room(module: str) -> str:
    """The folder of a module, or the module itself where it lies on top."""
    return module.split("/")[0]


def walk(journey: Callable[[], object]) -> Walk:
    """Run a journey under the profiler, after one run that imports what it needs."""
    journey()
    seen = Walk()
    sys.setprofile(seen)
    try:
        journey()
    finally:
        sys.setprofile(None)
    return seen


def journeys(folder: Path) -> dict[str, Callable[[], object]]:
    """The four journeys, by name."""
    generator = np.random.default_rng(0)
    rows = {
        "age": generator.integers(18, 91, N_ROWS),
        "hours": generator.uniform(0, 80, N_ROWS),
        "sex": generator.choice(["Female", "Male"], N_ROWS),
        "rich": generator.choice(["no", "yes"], N_ROWS),
    }
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 3], range=(0, 1), name="score")

    def data() -> vt.PrivateData:
        return vt.PrivateData(
            folder / "rows.parquet",
            SCHEMA,
            name="staff",
            n_rows_public=N_ROWS,
            target="rich",
            budget=vt.Budget(100, 1e-6),
            ledger="memory",
        )

    def release() -> None:
        vt.release(data(), model, epsilon=10.0).save(folder / "staff.pane")

    def person() -> None:
        vt.Pane.load(folder / "staff.pane", model=model).explain(POINT).to_html(folder / "person.html")

    release()
    return {
        "a Parquet row to an explanation": lambda: vt.LocalLinear(data(), model)(POINT, epsilon=1.0),
        "a pane to a person's page": person,
        "a release of a pane": release,
        "a report": lambda: vt.GlobalReport(data(), model)(epsilon=5.0),
    }


def table() -> dict[str, Walk]:
    """All four walks."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: walk(journey) for name, journey in journeys(Path(folder)).items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verbose", action="store_true", help="print every crossing")
    verbose = parser.parse_args().verbose
    print("| journey | functions | modules | rooms | room changes | depth |\n|---|---|---|---|---|---|")
    walks = table()
    for name, seen in walks.items():
        print(f"| {name} | {' | '.join(map(str, seen.row))} |")
    for name, seen in walks.items() if verbose else ():
        print(f"\n{name}")
        for caller, called in sorted(seen.crossings):
            print(f"  {caller} -> {called}")


if __name__ == "__main__":
    main()
