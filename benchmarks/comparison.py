"""One task, every library in its own way: where each is better, and where this one loses. Anybody can rerun it.

    pip install -e '.[bench]' && pip install --no-deps -r benchmarks/peers/requirements-no-deps.txt
    python benchmarks/comparison.py                     # everything; writes results/comparison.json (about ten minutes)
    python benchmarks/comparison.py --only curves       # one part
    python benchmarks/comparison.py --quick             # small, to see that it runs; writes nothing

The task: 15 000 people of Adult are private; a forest that was trained on others is to be explained. Why does it say what
it says about 50 people (reasons)? What does it do as a column changes (curves)? What would have changed its answer
(counterfactuals)? What does somebody learn who sees the answers and knows everybody but one (attack)? And what if the
model itself should be private (glass_box)? What is under the hood of the private ones: noise, install, import
(under_the_hood).

Not private: shap, lime, DiCE, scikit-learn. Private: this library; InterpretML's DP-EBM; OpenDP, by hand; mbi's synthetic
rows with a library of the first kind; the designs of "Tailoring Differential Privacy to Any Explainer", whose public code
has no package, as a rerun (papers/tailoring_published.py); Tumult Analytics, which needs Java and older versions of what is
installed here, in a Python of its own:

    python benchmarks/comparison.py --only tumult --tumult /path/to/python/with/tmlt.analytics --merge
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np

import vitrail as vt
from comparison_attack import attack
from comparison_counterfactual import counterfactuals
from comparison_setup import (
    DELTA,
    EPSILON,
    RICH,
    Bench,
    clocked,
    independent_rows,
    opendp_sum,
    shap_values,
    synthetic_rows,
    tumult_rows,
)
from running import Benchmark, Figure, Part, Row, options_of, run
from vitrail.accounting import mu_of

DRAWS = 3
SMALL_EPSILON = 0.1
RANDOM_BACKGROUND = 100
LIME_PEOPLE = 50
EBM_SEEDS = 3
BARE = "nothing promised"


# --- reasons ---------------------------------------------------------------------------------------------------------------


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second).sum(axis=1) / np.where(sizes > 0, sizes, np.inf))


def agreement(found: np.ndarray, truth: np.ndarray) -> Row:
    """Of reasons with the exact ones: cosine, the same largest column, columns shared among the three largest."""
    top, top_true = (np.argsort(-np.abs(values), axis=1)[:, :3] for values in (found, truth))
    shared = [len(set(a) & set(b)) for a, b in zip(top.tolist(), top_true.tolist(), strict=True)]
    return {
        "cosine": float(cosines(found, truth).mean()),
        "same_first": float((top[:, 0] == top_true[:, 0]).mean()),
        "shared_of_three": float(np.mean(shared)),
        "error": float(np.sqrt(((found - truth) ** 2).mean())),
    }


def averaged(rows: list[Row]) -> Row:
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def lime_weights(bench: Bench, people: np.ndarray) -> np.ndarray:
    """lime's weight of every column, with its defaults."""
    from peers.lime_tabular import explainer

    def both(raw: np.ndarray) -> np.ndarray:
        high = bench.probability(raw)
        return np.stack([1 - high, high], axis=1)

    lime, found = explainer(bench.schema, bench.rows), np.zeros((len(people), bench.schema.n_columns))
    for place, person in enumerate(people):
        for column, value in lime.explain_instance(person, both, num_features=len(person)).local_exp[1]:
            found[place, column] = value
    return found


def reasons(bench: Bench) -> Part:
    """Why the forest says what it says about each of the people, against Shapley values on all private rows."""
    from reasons_truth import tree_sum

    people, rows = bench.people, list[Row]()

    def judged(background: np.ndarray) -> np.ndarray:
        # What shap's explainer finds on these rows (the first part asserts it), in a fortieth of the time.
        return np.asarray(tree_sum(bench.forest, bench.schema.n_columns).values(people, background))

    def add(method: str, promise: str, found: Row, seconds: float) -> None:
        rows.append({"method": method, "promise": promise, "people": len(people), **found, "seconds": seconds})
        print("  ", rows[-1], flush=True)

    with clocked() as clock:
        truth = shap_values(bench.forest, bench.rows)(people)
    assert np.abs(judged(bench.rows) - truth).max() < 1e-6
    add("shap, all rows", BARE, agreement(truth, truth), clock.seconds)
    seeds = range(1 if bench.quick else DRAWS)
    found, spent = [], 0.0
    for seed in seeds:
        few = np.random.default_rng(seed).choice(len(bench.rows), RANDOM_BACKGROUND, replace=False)
        with clocked() as clock:
            values = shap_values(bench.forest, bench.rows[few])(people)
        found, spent = [*found, agreement(values, truth)], spent + clock.seconds
    add(f"shap, {RANDOM_BACKGROUND} rows", BARE, averaged(found), spent / len(seeds))
    with clocked() as clock:
        values = lime_weights(bench, people)
    add("lime", BARE, agreement(values, truth), clock.seconds)
    for epsilon in (EPSILON, SMALL_EPSILON):
        found, widths, held, spent = [], [], [], 0.0
        for _ in seeds:
            with clocked() as clock:
                pane = vt.PaneExplainer(bench.data(), bench.model, parts=["rows"])(epsilon=epsilon)
                told = pane.local(bench.schema.frame(people), bands=True)
            assert told.lower is not None
            assert told.upper is not None
            widths.append(float(np.mean(told.upper - told.lower) / 2))
            held.append(float(np.mean((told.lower <= truth) & (truth <= told.upper))))
            found, spent = [*found, agreement(told.values, truth)], spent + clock.seconds
        bands: Row = {"half_width": float(np.mean(widths)), "held": float(np.mean(held))}
        add("Vitrail", f"epsilon {epsilon:g}", averaged(found) | bands, spent / len(seeds))
        for method, make in (
            ("mbi's rows, then shap", synthetic_rows),
            ("OpenDP's histograms, then shap", independent_rows),
        ):
            found, spent = [], 0.0
            for seed in seeds:
                with clocked() as clock:
                    made = make(bench, epsilon, seed)
                found, spent = [*found, agreement(judged(made), truth)], spent + clock.seconds
            add(method, f"epsilon {epsilon:g}", averaged(found), spent / len(seeds))
    ours, theirs = (next(row for row in rows if row["method"] == name) for name in ("Vitrail", "mbi's rows, then shap"))
    headline = {
        "reasons_cosine": ours["cosine"],
        "reasons_cosine_minus_mbi": ours["cosine"] - theirs["cosine"],
        "reasons_shap_seconds_over_ours": rows[0]["seconds"] / ours["seconds"],
    }
    how = (
        f"{len(people)} people who trained nothing; truth: shap's tree explainer, interventional, on all "
        f"{len(bench.rows)} private rows; means over {len(seeds)} releases; error: root mean square over people and "
        "columns; lime with its defaults, whose weights are another quantity and are held to the order of columns "
        "only; seconds: processor seconds of everything from the rows to the reasons (for rows that are then given "
        "to shap: until the rows are there, and shap's own come on top)"
    )
    return Part(headline, rows, how)


def tumult(bench: Bench) -> Part:
    """Tumult Analytics' noisy histograms, from which rows are drawn that shap then explains; --tumult names its Python."""
    from reasons_truth import tree_sum

    judge = tree_sum(bench.forest, bench.schema.n_columns)
    truth, rows = judge.values(bench.people, bench.rows), list[Row]()
    for epsilon in (EPSILON, SMALL_EPSILON):
        with clocked() as clock:
            made, noise, seconds = tumult_rows(bench, epsilon, 0)
        found = agreement(np.asarray(judge.values(bench.people, made)), np.asarray(truth))
        row: Row = {"method": "Tumult's histograms, then shap", "promise": f"epsilon {epsilon:g}"}
        row["people"] = len(bench.people)
        ours = np.sqrt(bench.schema.n_columns) / mu_of(epsilon, DELTA)
        row |= {"seconds": clock.seconds, "by_the_clock": seconds, "noise_over_ours": noise / ours}
        rows.append(row | found)
        print("  ", rows[-1], flush=True)
    how = (
        "thirteen histograms by the Gaussian mechanism for one budget of concentrated privacy, split evenly, on Spark with "
        "one thread; bins as OpenDP's and mbi's; the rest as in the part on reasons; seconds: processor seconds, start of "
        "Java included; noise: root mean square of the counts' errors over this library's standard deviation at the same "
        "promise"
    )
    return Part({"tumult_noise_over_ours": rows[0]["noise_over_ours"]}, rows, how)


# --- curves ----------------------------------------------------------------------------------------------------------------


def curves(bench: Bench) -> Part:
    """Partial dependence of all columns for one price, against the exact curve of the private rows."""
    import bench_data
    from global_setup import Cache, Case, Scale, mise
    from papers import tailoring_published as published

    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        table = bench_data.Dataset(
            "adult", bench.private[list(bench.schema.names)], bench.schema, np.zeros(len(bench.rows), bool)
        )
        given = bench_data.Explained(table, np.zeros(len(bench.rows)), 0.0, 1.0)
        case = Case("adult", "adult", given, bench.probability, bench.forest, Cache(Path(folder)), Scale(bench.quick))
        with clocked() as exact:
            truths = {name: case.true_partial(name) for name in case.names}
        rng, draws = np.random.default_rng(0), 2 if bench.quick else 5

        def add(method: str, promise: str, errors: dict[str, float], seconds: float) -> None:
            each = list(errors.values())
            row = {"method": method, "promise": promise, "error": float(np.mean(each)), "seconds": seconds}
            rows.append(row | {"worst": max(each), "worst_column": max(errors, key=errors.__getitem__), "by_column": errors})
            print("  ", rows[-1], flush=True)

        def wrong(name: str, found: np.ndarray) -> float:
            return float(np.sqrt(mise(found, truths[name]).mean()))

        add("scikit-learn, shap", BARE, dict.fromkeys(case.names, 0.0), exact.seconds)
        drawn: dict[str, list[np.ndarray]] = {name: [] for name in case.names}
        with clocked() as clock:
            for _ in range(draws):
                effects = vt.PartialDependence(bench.data(), bench.model)(epsilon=EPSILON)
                for name in case.names:
                    drawn[name].append(on_axis(case, name, effects[name]))
        errors = {name: wrong(name, np.stack(found)) for name, found in drawn.items()}
        add("Vitrail", f"epsilon {EPSILON:g}", errors, clock.seconds / draws)
        grids = {name: published.grid(case, name, published.RESOLUTION) for name in case.names}
        grids = {name: places if case.categorical(name) else np.round(places) for name, places in grids.items()}
        with clocked() as clock:
            outputs = [
                np.stack([bench.probability(case.altered(n, at)) for at in places], axis=1) for n, places in grids.items()
            ]
            centred = np.concatenate(outputs, axis=1) - 0.5
            bound = 0.5 * np.sqrt(centred.shape[1])
            sums = np.stack([opendp_sum(centred, bound, EPSILON)[0] for _ in range(draws)])
        ends = np.cumsum([len(places) for places in grids.values()])[:-1]
        by_hand = np.split(sums / len(bench.rows) + 0.5, ends, axis=1)
        errors = {
            name: wrong(name, np.stack([np.interp(case.axis(name), grids[name], one) for one in found]))
            for name, found in zip(case.names, by_hand, strict=True)
        }
        add("OpenDP, by hand", f"epsilon {EPSILON:g}", errors, clock.seconds)
        each = EPSILON / len(case.names)
        with clocked() as clock:
            errors = {n: wrong(n, published.partial_dependence(case, n, each, 200, rng)) for n in case.names}
        add("Tailoring DP, specific design", f"epsilon {EPSILON:g}, replace-one", errors, clock.seconds)
        found: list[dict[str, float]] = []
        with clocked() as clock:
            for seed in range(1 if bench.quick else DRAWS):
                found.append(synthetic_curves(case, bench, seed, wrong))
        errors = {name: float(np.sqrt(np.mean([one[name] ** 2 for one in found]))) for name in case.names}
        add("mbi's rows, then scikit-learn", f"epsilon {EPSILON:g}", errors, clock.seconds / len(found))
    ours = next(row for row in rows if row["method"] == "Vitrail")
    others = {row["method"]: row for row in rows if row["error"] and row is not ours}
    headline = {
        "curves_error": ours["error"],
        "curves_best_other_over_ours": min(row["error"] for row in others.values()) / ours["error"],
        "curves_columns_where_another_is_better": sum(
            min(row["by_column"][name] for row in others.values()) < error for name, error in ours["by_column"].items()
        ),
    }
    how = (
        "root mean squared difference from the exact curve (1 000 places of a number, all levels of a category), in "
        f"units of probability; all {len(case.names)} columns for epsilon {EPSILON:g} together at delta {DELTA:g}; "
        "mean over columns; Tailoring DP: a rerun of its partial dependence, the price split evenly, 20 places or "
        "the levels, Laplace noise, its own neighbours (replace one row), bounds read off the rows; OpenDP: one "
        "Gaussian sum of all curves at the same places, centred, its bound worked out by the caller; seconds: "
        "processor seconds, exact curves at every value that occurs"
    )
    return Part(headline, rows, how)


def on_axis(case: object, name: str, curve: vt.Curve) -> np.ndarray:
    """Our curve where curves are compared."""
    if case.categorical(name):  # type: ignore[attr-defined]
        places = [case.schema[name].levels.index(level) for level in curve.x]  # type: ignore[attr-defined]
        return np.asarray(curve.y)[np.argsort(places)]
    places = np.asarray(curve.x, dtype=float)
    return np.asarray(np.interp(case.axis(name), places, curve.y))  # type: ignore[attr-defined]


def synthetic_curves(case: object, bench: Bench, seed: int, wrong: object) -> dict[str, float]:
    """Exact partial dependence on synthetic rows."""
    made, found = synthetic_rows(bench, EPSILON, seed), {}
    for place, name in enumerate(bench.schema.names):
        values = case.single_curves(name).values  # type: ignore[attr-defined]
        means = []
        for value in values:
            altered = made.copy()
            altered[:, place] = value
            means.append(bench.probability(altered).mean())
        found[name] = wrong(name, np.interp(case.axis(name), values, means))  # type: ignore[attr-defined,operator]
    return found


# --- a private model -----------------------------------------------------------------------------------------------------


def glass_box(bench: Bench) -> Part:
    """A model that is private itself and explains itself, defaults on both sides, beside one that is not private."""
    from interpret.privacy import DPExplainableBoostingClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    names = list(bench.schema.names)
    train, y = bench.private[names], (bench.private["income"] == RICH).to_numpy()
    test, told = bench.others[names], (bench.others["income"] == RICH).to_numpy()
    numbers = [isinstance(column, vt.Numeric) for column in bench.schema.values()]
    bounds = {j: (c.low, c.high) for j, c in enumerate(bench.schema.values()) if isinstance(c, vt.Numeric)}
    rows: list[Row] = []

    def add(method: str, promise: str, aucs: list[float], seconds: float) -> None:
        row = {"method": method, "promise": promise, "auc": float(np.mean(aucs)), "spread": float(np.std(aucs))}
        rows.append(row | {"seeds": len(aucs), "seconds": seconds / len(aucs)})
        print("  ", rows[-1], flush=True)

    with clocked() as clock:
        free = HistGradientBoostingClassifier(random_state=0).fit(bench.rows, y)
    add("gradient boosting", BARE, [roc_auc_score(told, free.predict_proba(bench.read(test))[:, 1])], clock.seconds)
    for epsilon in (EPSILON, 4.0):
        aucs: dict[str, list[float]] = {"DP-EBM": [], "Vitrail's maps": []}
        spent = dict.fromkeys(aucs, 0.0)
        for _ in range(1 if bench.quick else EBM_SEEDS):
            with clocked() as clock:
                kinds = ["continuous" if number else "nominal" for number in numbers]
                ebm = DPExplainableBoostingClassifier(
                    feature_types=kinds, epsilon=epsilon, delta=DELTA, privacy_bounds=bounds, random_state=None
                ).fit(train.astype(str).to_numpy().astype(object), y.astype(int))
            spent["DP-EBM"] += clock.seconds
            aucs["DP-EBM"].append(roc_auc_score(told, ebm.predict_proba(test.astype(str).to_numpy().astype(object))[:, 1]))
            with clocked() as clock:
                maps = vt.LocallyLinearClassifier(
                    epsilon, DELTA, schema=bench.schema, classes=[False, True], n_rows_public=len(y), device="cpu"
                ).fit(train, y)
            spent["Vitrail's maps"] += clock.seconds
            aucs["Vitrail's maps"].append(roc_auc_score(told, maps.predict_proba(test)[:, 1]))
        for method, found in aucs.items():
            add(method, f"epsilon {epsilon:g}", found, spent[method])
    by = {(row["method"], row["promise"]): row["auc"] for row in rows}
    headline = {}
    for epsilon in (EPSILON, 4.0):
        ours, theirs = (by[method, f"epsilon {epsilon:g}"] for method in ("Vitrail's maps", "DP-EBM"))
        headline[f"glass_box_auc_minus_dpebm_eps{epsilon:g}"] = ours - theirs
    how = (
        f"area under the curve on {len(told)} people; trained on the private rows; defaults on both sides, public "
        f"bounds of numbers given to both, delta {DELTA:g}; {EBM_SEEDS} trainings each; the promise is about training "
        "rows"
    )
    return Part(headline, rows, how)


# --- under the hood ------------------------------------------------------------------------------------------------------

IMPORTS = {
    "vitrail": ("Vitrail", "import vitrail as vt; vt.PrivateData, vt.PartialDependence, vt.Shapley"),
    "shap": ("shap", "import shap"),
    "lime": ("lime", "import lime.lime_tabular"),
    "interpret-core": ("InterpretML", "from interpret.privacy import DPExplainableBoostingClassifier"),
    "dice_ml": ("DiCE", "import dice_ml"),
    "opendp": ("OpenDP", "import opendp.prelude"),
    "mbi": ("mbi", "import mbi"),
}
"""By distribution: how it is called, and what a first line of a program says."""


def installed_bytes(name: str, seen: set[str]) -> int:
    """A distribution's files and those of everything that it requires, as far as it is installed, once each."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    if canonicalize_name(name) in seen:
        return 0
    seen.add(canonicalize_name(name))
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return 0
    total = 0
    for file in found.files or ():
        path = Path(str(file.locate()))
        total += path.stat().st_size if path.is_file() and "__pycache__" not in path.parts else 0
    if name == "vitrail":  # installed from the checkout: its files are where it is imported from
        total = sum(
            path.stat().st_size for path in Path(vt.__file__).parent.rglob("*") if path.is_file() and path.suffix != ".pyc"
        )
    for line in found.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            total += installed_bytes(wanted.name, seen)
    return total


def under_the_hood(bench: Bench) -> Part:
    """The noise of one sum at the same promise and how long it takes, what is installed, how long an import takes."""
    rows: list[Row] = []
    for name, (called, line) in IMPORTS.items():
        with clocked() as clock:
            subprocess.run([sys.executable, "-c", line], check=True, capture_output=True)
        size = installed_bytes(name, set())
        own = installed_bytes_alone(name)
        row: Row = {"method": called, "kind": "install", "version": metadata.version(name), "megabytes": size / 1e6}
        rows.append(row | {"own_megabytes": own / 1e6, "import_seconds": clock.seconds})
        print("  ", rows[-1], flush=True)
    size = 1_000 if bench.quick else 100_000
    zeros = np.zeros((1, size))
    with clocked() as clock:
        _, scale = opendp_sum(zeros, 1.0, EPSILON)
    with clocked() as again:
        opendp_sum(zeros[:, :10], 1.0, EPSILON)
    rows.append(
        {"method": "OpenDP", "kind": "noise", "sigma": scale, "nanoseconds": (clock.seconds - again.seconds) / size * 1e9}
    )
    data = bench.data(bench.private.iloc[:10])
    question = vt.BoundedSum(lambda block: np.zeros((len(block), size)), size=size, l2_bound=1.0, key="zeros")
    few = vt.BoundedSum(lambda block: np.zeros((len(block), 10)), size=10, l2_bound=1.0, key="few zeros")
    data.ask(few, epsilon=0.5)
    with clocked() as again:
        data.ask(few, epsilon=EPSILON)
    with clocked() as clock:
        release = data.ask(question, epsilon=EPSILON)
    nanoseconds = (clock.seconds - again.seconds) / size * 1e9
    rows.append({"method": "Vitrail", "kind": "noise", "sigma": release.sigma, "nanoseconds": nanoseconds})
    print("  ", *rows[-2:], flush=True)
    headline = {
        "noise_opendp_over_ours": scale / (release.sigma or np.nan),
        "install_megabytes": rows[0]["megabytes"],
        "noise_at_mu": mu_of(EPSILON, DELTA),
    }
    how = (
        f"noise: standard deviation of every number of a sum of bound 1 at epsilon {EPSILON:g}, delta {DELTA:g} "
        "(OpenDP: the smallest that its conversion from concentrated privacy allows), processor time per number over "
        f"{size} numbers, everything included but what ten numbers cost; install: bytes of the package and all that "
        "it requires as installed here, without compiled modules of Python; import: processor seconds of a fresh "
        "process with the first line of a program"
    )
    return Part(headline, rows, how)


def installed_bytes_alone(name: str) -> int:
    """A distribution without what it requires."""
    from packaging.utils import canonicalize_name

    required = {canonicalize_name(str(found.metadata["Name"])) for found in metadata.distributions()}
    return installed_bytes(name, required - {canonicalize_name(name)})


BENCHMARK: Benchmark[Bench] = Benchmark(
    name="comparison",
    script="benchmarks/comparison.py",
    figures={
        "reasons": Figure(reasons),
        "tumult": Figure(tumult, needs="tmlt"),
        "curves": Figure(curves),
        "counterfactuals": Figure(counterfactuals),
        "attack": Figure(attack),
        "glass_box": Figure(glass_box, needs="interpret"),
        "under_the_hood": Figure(under_the_hood),
    },
    quick="2 000 private rows, five people, one draw",
    facts={
        "data": "Adult as it ships with the examples",
        "delta": DELTA,
        "neighbours": "add-remove unless a row says otherwise",
    },
    partial=True,
)


def main() -> None:
    parser = options_of(BENCHMARK, __doc__)
    parser.add_argument("--tumult", help="a Python that has tmlt.analytics, for the part tumult")
    run(BENCHMARK, parser.parse_args(), lambda given: Bench(quick=given.quick, tumult=given.tumult))


if __name__ == "__main__":
    main()
