"""The live page: how soon it explains, how large it is, and how far its numbers are from Python's.

    python benchmarks/page.py --data FOLDER            # all parts, two minutes; needs `make web` and a browser
    python benchmarks/page.py --only speed --quick     # few loads and changes; nothing is written

Adult, 13 columns: GradientBoostingClassifier with 100 trees on the schema's features, as skl2onnx exports it; a pane at
epsilon 1 of the complete rows of the train split. Headless Chromium, it and the file server on one core together (CPU
affinity), clock time. *First*: from the start of the navigation until the first reasons, with their bands, are on the screen
(the animation frame after they were put into the page), in a fresh profile. *Change*: from an input event in the form to the
same, with the first 256 stored rows; every change waits until all work for the one before is done. *Size*: every file of the
site, gzip -9. *Difference*: golden.test.ts of web, JavaScript against Python given the same recorded outputs, rows and
orders; and end to end through float32 ONNX.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

import vitrail as vt
from bench_data import adult, data_folder
from running import ROOT, Benchmark, Figure, Part, Row, options_of, run
from vitrail.live.site import site_files, write_page

EPSILON, DELTA, TREES = 1.0, 1e-6, 100
LOADS, CHANGES = 7, 40
CHANGED = ("age", "hours-per-week", "capital-gain", "education-num")

# Types into a field, or chooses a level, and waits for the next reasons on the screen; then until everything is done.
CHANGE = """async ([name, value]) => {
  const label = [...document.querySelectorAll(".entry label")].find((one) => one.textContent === name);
  const field = document.getElementById(label.htmlFor), began = performance.now();
  document.body.dataset.state = "asked";
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const later = (made) => new Promise((resolve) => {
    const look = () => (made() === undefined ? setTimeout(look, 2) : resolve(made()));
    look();
  });
  const shown = await later(() => performance.getEntriesByName("vitrail:reasons").find((one) => one.startTime > began));
  await later(() => (document.body.dataset.state === "done" ? true : undefined));
  return shown.startTime - began;
}"""


@dataclass(frozen=True, eq=False)
class Bench:
    pane: vt.Pane
    quick: bool

    @property
    def loads(self) -> int:
        return 2 if self.quick else LOADS

    @property
    def changes(self) -> int:
        return 6 if self.quick else CHANGES


def bench_of(options: argparse.Namespace) -> Bench:
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier

    data = adult(data_folder(options.data))
    features = data.schema.features(data.raw)[0]
    boosting = GradientBoostingClassifier(n_estimators=TREES, random_state=0).fit(features, data.positive)
    graph = to_onnx(boosting, features[:1].astype(np.float32), options={"zipmap": False})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(graph.SerializeToString())
        model = vt.Model(path, output=1, name="income model")
    budget, n_rows = vt.Budget(EPSILON, DELTA), len(data.frame)
    private = vt.PrivateData(data.frame, data.schema, name="adult", n_rows_public=n_rows, budget=budget, ledger="memory")
    return Bench(vt.release(private, model, epsilon=EPSILON), options.quick)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def one_core() -> Iterator[None]:
    """This process and those that it starts, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def speed(bench: Bench) -> Part:
    sys.path.insert(0, str(ROOT / "tools"))
    from page_pictures import running_browser

    rows = list[Row]()
    generator, schema = np.random.default_rng(0), bench.pane.schema
    with tempfile.TemporaryDirectory() as folder, one_core():
        site = write_page(bench.pane, Path(folder) / "site", trained_on="the same rows", publish_model=True)
        with served(site) as address, running_browser() as browser:
            for _ in range(bench.loads):
                context = browser.new_context()
                tab = context.new_page()
                tab.goto(address)
                tab.wait_for_selector("body[data-state=done]")
                first = tab.evaluate("performance.getEntriesByName('vitrail:reasons')[0].startTime")
                rows.append({"what": "first", "ms": first, "load": os.getloadavg()[0]})
                context.close()
            tab = browser.new_context().new_page()
            tab.goto(address)
            tab.wait_for_selector("body[data-state=done]")
            for number in range(bench.changes):
                name = CHANGED[number % len(CHANGED)]
                value = str(generator.integers(schema[name].low, schema[name].high))  # type: ignore[union-attr]
                took = tab.evaluate(CHANGE, [name, value])
                rows.append({"what": "change", "column": name, "ms": took, "load": os.getloadavg()[0]})
    found = {what: [row["ms"] for row in rows if row["what"] == what] for what in ("first", "change")}
    headline = {
        "first_ms": statistics.median(found["first"]),
        "change_ms": statistics.median(found["change"]),
        "change_ms_worst_of_20": float(np.quantile(found["change"], 0.95)),
    }
    how = (
        f"medians of {len(found['first'])} loads and {len(found['change'])} changes of {', '.join(CHANGED)} to random "
        "values; load is that of the machine's last minute, which other work shared"
    )
    return Part(headline, rows, how)


def size(bench: Bench) -> Part:
    assert bench.pane.model is not None
    files = site_files(bench.pane, bench.pane.model, trained_on="the same rows")
    packed = {name: len(gzip.compress(content, 9)) for name, content in files.items()}
    rows = [{"what": "file", "name": name, "bytes": len(files[name]), "gzip": number} for name, number in packed.items()]
    return Part({"bytes_gzip": sum(packed.values())}, rows, "every file of the folder; the runtime lies in it packed")


def golden(bench: Bench) -> Part:
    web = ROOT / "web"
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "differences.json"
        subprocess.run(["node", "build.mjs", "--tests"], cwd=web, check=True)
        environment = {**os.environ, "GOLDEN_MAX_DIFF": str(told)}
        tested = ["node", "--test", str(Path("build", "tests", "golden.test.mjs"))]
        subprocess.run(tested, cwd=web, check=True, env=environment, stdout=subprocess.DEVNULL)
        found: dict[str, float] = json.loads(told.read_text())
    return Part(found, [{"what": name, "difference": value} for name, value in found.items()], "golden.test.ts of web")


BENCHMARK = Benchmark[Bench](
    name="page",
    script="benchmarks/page.py",
    figures={
        "speed": Figure(speed, ("first_ms", "change_ms", "change_ms_worst_of_20")),
        "size": Figure(size, ("bytes_gzip",)),
        "golden": Figure(golden, ("golden_max_diff", "golden_max_diff_end_to_end")),
    },
    quick="few loads and changes",
    facts={"epsilon": EPSILON, "delta": DELTA, "trees": TREES},
)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
