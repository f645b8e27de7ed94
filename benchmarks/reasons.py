"""Reasons from private rows, measured: Shapley values on released rows against those on all real rows.

    python benchmarks/reasons.py --data FOLDER                  # everything; writes results/reasons.json
    python benchmarks/reasons.py --data FOLDER --only adult     # one part, or the part of one headline key
    python benchmarks/reasons.py --data FOLDER --quick          # small, to see that it runs; writes nothing
    python benchmarks/reasons.py --data FOLDER --resume         # keep parts that an earlier run finished

A part releases rows of a dataset at its epsilons, takes each release as background for three models and compares the
values of held-out people with the truth (reasons_setup.py, compiled in reasons_truth.py). Parts ``pane_*`` do the same
with the rows of whole panes; ``mbi`` holds rows against those of another library at the same price (reasons_peers.py),
``*_vs_rows`` hold our curves and rankings against ordinary tools on such rows (reasons_tools.py). Rows are released
anew by every run; models and truths stay in ``--cache``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import reasons_counterfactual
import reasons_peers
import reasons_speed
import reasons_tools
import vitrail as vt
from bench_data import data_folder
from reasons_setup import BOOSTING, DELTA, MODELS, SMALL, STORED, Bench, agreement, background_of, bench_of
from reasons_truth import TreeSum
from running import Benchmark, Figure, Part, Row, options_of, run

RELEASES = 5


def released(bench: Bench, name: str, epsilon: float) -> vt.PrivateRows:
    """Rows alone, without the target, at the whole price."""
    case = bench.case(name)
    return vt.private_rows(case.private_data(epsilon), epsilon=epsilon, columns=list(case.schema))


def judged(bench: Bench, name: str, backgrounds: Sequence[np.ndarray], **said: object) -> list[Row]:
    """A row for every model: mean agreement with the truth over people and backgrounds."""
    rows: list[Row] = []
    for kind in MODELS:
        model, truth, people = bench.judged(name, kind), bench.truth(name, kind), bench.people(name)
        found = [agreement(model.values(people, background), truth.values) for background in backgrounds]
        row: Row = {**said, "data": name, "model": kind}
        row |= {"cosine": float(np.mean([f[0] for f in found])), "top": float(np.mean([f[1] for f in found]))}
        row |= {"cosine_by_release": [f[0] for f in found], "monte_carlo": truth.monte_carlo, "people": len(people)}
        if kind == BOOSTING and truth.margin is not None:
            assert isinstance(model, TreeSum)
            margins = [agreement(model.margin().values(people, background), truth.margin) for background in backgrounds]
            row |= {
                "margin_cosine": float(np.mean([f[0] for f in margins])),
                "margin_top": float(np.mean([f[1] for f in margins])),
            }
        rows.append(row)
    return rows


def floor(bench: Bench, name: str) -> list[Row]:
    """The same with other real rows, as many as a release stores: what sampling alone costs."""
    case, rng = bench.case(name), np.random.default_rng(2)
    count = min(STORED, len(case.rows))
    drawn = [
        case.rows[rng.choice(len(case.rows), count, replace=len(case.rows) <= STORED)]
        for _ in range(1 if bench.quick else 2)
    ]
    return judged(bench, name, drawn, rows="real rows")


def headline_of(rows: Sequence[Row], name: str, epsilon: float, prefix: str = "") -> dict[str, float]:
    """The least over models, under the keys of a dataset and an epsilon."""
    short, suffix = (name.split("-")[0], "_n1000") if name == SMALL else (name, "")
    those = [row for row in rows if row["data"] == name and row.get("epsilon") == epsilon]
    return {
        f"{prefix}{short}_{what}{suffix}_eps{epsilon:g}": min(row[what] for row in those) for what in ("cosine", "top")
    }  # fmt: skip


HOW = (
    "Shapley values of the probability, one player per column, of held-out people, on {stored} rows of a release "
    "as background; truth: all private rows (at most 65 536, drawn once) as background, exact for the forest, for "
    "boosting and network at least 65 536 orders and their reverses per person, whose own error (1 - cosine, of 20 "
    "people by another run) is in rows as monte_carlo; cosine: mean over people and releases, the least of three "
    "models; top: the share of people whose largest column is the same; margin: boosting's log-odds, exact on both sides; "
    "'real rows': as many other real rows as background (drawn with replacement where there are no more), which "
    "is what sampling alone costs"
)


def rows_alone(bench: Bench, name: str, epsilons: Sequence[float]) -> Part:
    """Releases of rows only."""
    rows, headline, seconds = floor(bench, name), {}, []
    for epsilon in epsilons:
        backgrounds = []
        for _ in range(1 if bench.quick else RELEASES):
            start = time.perf_counter()
            backgrounds.append(background_of(released(bench, name, epsilon)))
            seconds.append(time.perf_counter() - start)
        rows += judged(bench, name, backgrounds, rows="private rows", epsilon=epsilon)
        headline |= headline_of(rows, name, epsilon)
    case = bench.case(name)
    how: dict[str, object] = {
        "what": HOW.format(stored=STORED),
        "private rows": len(case.rows),
        "columns": case.schema.n_columns,
        "people": len(bench.people(name)),
        "releases": 1 if bench.quick else RELEASES,
        "seconds per release": round(float(np.mean(seconds)), 2),
    }
    return Part(headline, rows, how)


def pane_rows(bench: Bench, name: str, epsilons: Sequence[float]) -> Part:
    """Whole panes of the boosted model; their rows serve the other models too, as they would a user."""
    rows: list[Row] = []
    headline: dict[str, float] = {}
    for epsilon in epsilons:
        backgrounds = [pane_background(bench, name, epsilon) for _ in range(1 if bench.quick else RELEASES)]
        rows += judged(bench, name, backgrounds, rows="pane", epsilon=epsilon)
        headline |= headline_of(rows, name, epsilon, "pane_")
    return Part(
        headline, rows, "as for rows alone, with the rows of whole panes of the boosted model, as they are by default"
    )


def pane_background(bench: Bench, name: str, epsilon: float) -> np.ndarray:
    rows = pane_of(bench, name, epsilon).private_rows
    return background_of(rows)[:, [rows.columns.index(column) for column in bench.case(name).schema]]


def pane_of(bench: Bench, name: str, epsilon: float) -> vt.Pane:
    return vt.release(bench.case(name).private_data(epsilon), bench.model(name, BOOSTING), epsilon=epsilon)


def gap(bench: Bench) -> Part:
    """How far the reasons on a page are from adding up to the model's output."""
    rows: list[Row] = []
    for name in ("framingham", "adult"):
        pane, frame = pane_of(bench, name, 1.0), bench.case(name).schema.pandas(bench.people(name))
        gaps = [gap_of(pane.explain(person, bands=False).explanation) for person in frame.to_dict("records")[:20]]
        rows.append({"data": name, "epsilon": 1.0, "gap_max": max(gaps), "people": len(gaps)})
    how = "largest |base value + values - the model's own output| of pane.explain, whole panes of the boosted model"
    return Part({"gap_max": max(row["gap_max"] for row in rows)}, rows, how)


def gap_of(reasons: vt.Attribution) -> float:
    return float(np.abs(reasons.base_values + reasons.values.sum(axis=1) - reasons.outputs).max())


PARTS: dict[str, tuple[str, tuple[float, ...]]] = {
    "adult": ("adult", (1.0, 0.1)),
    "framingham": ("framingham", (1.0,)),
    "n1000": (SMALL, (1.0,)),
    "acs": ("acs", (0.01,)),
    "diabetes": ("diabetes", (1.0,)),
}


def figures() -> dict[str, Figure[Bench]]:
    found: dict[str, Figure[Bench]] = {}
    for prefix, measure in (("", rows_alone), ("pane_", pane_rows)):
        for part, (name, epsilons) in PARTS.items():
            keys = tuple(key for epsilon in epsilons for key in headline_keys(name, epsilon, prefix))
            found[f"{prefix}{part}"] = Figure(lambda bench, m=measure, n=name, e=epsilons: m(bench, n, e), keys)
    found["gap"] = Figure(gap, ("gap_max",))
    found["speed"] = Figure(speed, ("shapley_per_second", "shap_permutation_speedup"), needs="shap")
    found["million"] = Figure(million, ("rows_seconds_million",))
    found["counterfactuals"] = Figure(
        lambda bench: reasons_counterfactual.counterfactuals(bench.folder),
        ("redundant_changes", "cf_validity", "implausible_links", "distance_vs_nearest_row", "changed_columns_vs_dice"),
    )
    found["mbi"] = Figure(reasons_peers.rows_vs_mbi, ("rows_vs_mbi_cosine", "rows_vs_mbi_tvd"), needs="mbi")
    for key in ("pdp_vs_rows", "ale_vs_rows", "importance_vs_rows"):
        found[key] = Figure(getattr(reasons_tools, key), (key,), needs="mbi")
    return found


def speed(bench: Bench) -> Part:
    """People a second, and shap's permutations at equal error."""
    return reasons_speed.shapley_speed(bench.folder, quick=bench.quick)


def million(bench: Bench) -> Part:
    """A pane of rows alone, of 1 000 000 rows and 20 columns."""
    count, rng = 10_000 if bench.quick else 1_000_000, np.random.default_rng(0)
    numbers = {f"number {i}": rng.normal(50, 15, count).clip(0, 100) for i in range(10)}
    levels = {f"level {i}": rng.integers(0, 8, count) for i in range(10)}
    kinds: dict[str, vt.Numeric | vt.Categorical] = {name: vt.Numeric(0, 100) for name in numbers}
    schema = vt.Schema(kinds | {name: vt.Categorical(range(8)) for name in levels})
    budget = vt.Budget(1, DELTA)
    data = vt.PrivateData(numbers | levels, schema, name="many", n_rows_public=count, budget=budget, ledger="memory")
    model = vt.Model(lambda features: features[:, 0], range=(0, 1), name="first")
    start, wall = time.process_time(), time.perf_counter()
    vt.release(data, model, epsilon=1.0, parts=["rows"], key="first")
    seconds, waited = time.process_time() - start, time.perf_counter() - wall
    row: Row = {"rows": count, "columns": 20, "cpu_seconds": seconds, "wall_seconds": waited}
    how = "processor seconds of vt.release(parts=['rows']), one BLAS thread, ten real and ten categorical columns, in memory"
    return Part({"rows_seconds_million": seconds}, [row], how)


def headline_keys(name: str, epsilon: float, prefix: str) -> list[str]:
    none = [{"data": name, "epsilon": epsilon, "cosine": 0.0, "top": 0.0}]
    return list(headline_of(none, name, epsilon, prefix))


BENCHMARK = Benchmark[Bench](
    name="reasons",
    script="benchmarks/reasons.py",
    quick="one release, ten people",
    facts={"delta": DELTA, "neighbours": "add-remove, the true row count public"},
    partial=True,
    figures=figures(),
)


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--people", type=int, default=100, help="how many of the 500 held-out people are explained")
    run(
        BENCHMARK,
        parser.parse_args(),
        lambda given: bench_of(data_folder(given.data), given.cache, given.people, given.quick),
    )


if __name__ == "__main__":
    main()
