"""What counterfactuals tell an attacker: section 5.3 of Yang et al. (Table 4, Figures 5 and 6), ours and the published ones.

*Extraction*: a network is trained on queries with the model's classes, and on their counterfactuals. As published, an
answer is labelled with the class that it was asked for, whether or not the model agrees; who can ask the model about queries
can ask it about answers too, so both are measured; and so are copies of as many queries again, which anybody may ask.
*Membership* and *attribute*: see ``counterfactual_inference.py``.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import vitrail as vt
from local_setup import Part
from papers.counterfactual_adult import OURS, PUBLISHED
from papers.counterfactual_inference import MOST_TESTED, Inference, attribute, direct, direct_attribute, membership
from papers.counterfactual_prey import STEPS, Prey, model_of, prey, recipe
from papers.counterfactual_scale import Bench
from papers.yang_published import published_dpc, published_search
from peers import cadex
from vitrail.audit.shadow import Trained

SIZES = (250, 500, 1000)
EPSILONS = (0.025, 0.75)
STARTS = 3
FAR = "ours, margin 0.3"
VARIANTS: dict[str, dict[str, object]] = {
    FAR: {"margin": 0.3},
    "ours, plausibility_weight 5": {"plausibility_weight": 5.0},
}
"""What a user may set, at the larger epsilon: answers further from the border."""
WORKERS = max(1, (os.cpu_count() or 1) // 4)
CLIPS = {"location": 8.0}
COEFFICIENTS = {
    "adult": (1.0, 0.5, 0.1),
    "diabetes": (1.0, 0.5, 0.1),
    "location": (1.0, 0.5, 10.0),
}
"""The paper's, by the kind of data."""
ITSELF, BASE, AGAIN = "the model itself", "queries alone", "as many queries again"
ASKED, SAID = "the class asked for", "the model's class"


@dataclass(frozen=True, eq=False)
class Told:
    """One way's answers to the queries of every draw: encoded rows, NaN where there is none."""

    method: str
    epsilon: float | None
    answers: list[np.ndarray]
    labels: str = SAID

    def pairs(self, of: Prey, queries: np.ndarray, draw: int) -> tuple[np.ndarray, np.ndarray]:
        """Answers with their labels; a query stands again where there is no answer, so that all sets are equally large."""
        answers = self.answers[draw][: len(queries)]
        there = np.isfinite(answers).all(axis=1)
        rows = np.where(there[:, None], answers, queries)
        said = of.classes(rows)
        return rows, np.where(there, of.other_classes(queries), said) if self.labels == ASKED else said

    def is_of_table_4(self) -> bool:
        """Whether it is measured with the unknown architecture too: no settings of ours, DPC as the paper has it."""
        if self.method == PUBLISHED:
            return self.labels == ASKED and self.epsilon == EPSILONS[0]
        return self.method not in VARIANTS

    def covers(self, size: int) -> bool:
        return all(len(some) >= size for some in self.answers)


# --- answers -------------------------------------------------------------------------------------------------------------


def by_ours(of: Prey, epsilon: float) -> vt.FittedCounterfactual:
    """Bought in a vault of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vt.Counterfactual(of.vault(), of.model, clip=CLIPS.get(of.name)).fit(epsilon=epsilon)


def first_answers(of: Prey, fitted: vt.FittedCounterfactual, queries: np.ndarray, **options: object) -> np.ndarray:
    """Encoded, NaN where there is none. Nobody's answer depends on who else asks, so some processes share the people."""
    parts = np.array_split(queries, max(1, min(WORKERS, len(queries) // 64)))
    frames = [of.frame.iloc[part].reset_index(drop=True) for part in parts]
    if len(parts) == 1:
        return answered(fitted, frames[0], options)
    with TemporaryDirectory() as folder:
        path = fitted.save(Path(folder) / "picture.cf")
        found = [_workers().submit(_elsewhere, path, of.module, of.n_classes, frame, options) for frame in frames]
        return np.concatenate([one.result() for one in found])


def answered(fitted: vt.FittedCounterfactual, frame: pd.DataFrame, options: dict[str, object]) -> np.ndarray:
    schema, out = fitted.picture.schema, fitted(frame, **options)  # type: ignore[arg-type]
    made = np.full((len(frame), schema.n_features), np.nan)
    have = [place for place, some in enumerate(out.answers) if some]
    if have:
        made[have] = schema.features(schema.read_points([dict(out.answers[place][0].row) for place in have]))[0]
    return made


@cache
def _workers() -> ProcessPoolExecutor:
    """Fresh processes: torch cannot follow gradients in copies of one that has done so."""
    return ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn"))


def _elsewhere(path: Path, module: object, n_classes: int, frame: pd.DataFrame, options: dict[str, object]) -> np.ndarray:
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return answered(vt.FittedCounterfactual.load(path, model=model_of(module, n_classes)), frame, options)


def by_published(of: Prey, draws: list[np.ndarray], epsilon: float, quick: bool) -> list[np.ndarray]:
    """Answers of the published design, anywhere in the cube, as the paper counts them."""
    epochs = 20 if quick else 300
    rows = of.features[of.halves[0][0]]
    rng = np.random.default_rng(0)
    dpc = published_dpc(rows, of.classes(rows), of.n_classes, epsilon, rng, hidden=32, epochs=epochs)
    alpha, beta, gamma = COEFFICIENTS[of.name]
    found = []
    for queries in draws:
        asked = of.features[queries]
        wanted = of.other_classes(asked)
        found.append(published_search(dpc, of.module, asked, wanted, alpha=alpha, beta=beta, gamma=gamma))
    return found


def by_cadex(of: Prey, draws: list[np.ndarray]) -> list[np.ndarray]:
    columns = None if of.n_classes > 2 else 5
    asked = [of.features[queries] for queries in draws]
    return [cadex.counterfactuals(of.schema, of.module, some, of.other_classes(some), columns) for some in asked]


def by_dice(of: Prey, queries: np.ndarray) -> list[np.ndarray]:
    """DiCE random with its defaults, given the rows that the model was trained on; for two classes, of the first draw."""
    from peers import dice

    rows = of.frame.iloc[of.halves[0][0]].reset_index(drop=True)
    predictor = dice.Predictor(of.schema, lambda features: of.probabilities(features)[:, 1])
    wanted = of.other_classes(of.features[queries])
    made = np.full((len(queries), of.schema.n_features), np.nan)
    for side in (0, 1):
        mine = np.flatnonzero(wanted == side)
        people = of.frame.iloc[queries[mine]].reset_index(drop=True)
        found = dice.counterfactuals(of.schema, rows, predictor, people, "random", side).rows
        there = np.isfinite(found).all(axis=1)
        made[mine[there]] = of.schema.features(found[there])[0]
    return [made]


# --- copies --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Copies:
    """Surrogates of one cell of Table 4: ``STARTS`` for each draw of queries."""

    trained: Trained
    draws: int

    def predict(self, features: np.ndarray) -> np.ndarray:
        return self.trained.predict(features)

    def each(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        """What every copy says of encoded people."""
        import torch

        def of(module: object) -> Callable[[np.ndarray], np.ndarray]:
            def probabilities(features: np.ndarray) -> np.ndarray:
                with torch.no_grad():
                    logits = module(torch.as_tensor(features, dtype=torch.float64))  # type: ignore[operator]
                return torch.softmax(logits, dim=1).numpy()  # type: ignore[no-any-return]

            return probabilities

        return [of(module) for module in self.trained.modules]


def copies(of: Prey, draws: list[np.ndarray], size: int, told: Told | None, deeper: bool, again: bool = False) -> Copies:
    """Train on queries (``again``: on as many more, in the place of answers) and on answers."""
    points, labels, starts = [], [], [0]
    for draw, queries in enumerate(draws):
        some = of.features[queries[: 2 * size if again else size]]
        rows, classes = [some], [of.classes(some)]
        if told is not None:
            more = told.pairs(of, some, draw)
            rows.append(more[0])
            classes.append(more[1])
        points.append(np.concatenate(rows))
        labels.append(np.concatenate(classes))
        starts.append(starts[-1] + len(points[-1]))
    chosen = [np.arange(starts[draw], starts[draw + 1]) for draw in range(len(draws)) for _ in range(STARTS)]
    made = recipe(of.name, of.n_classes, len(points[0]), deeper=deeper)
    return Copies(made.fit(np.concatenate(points), np.concatenate(labels), chosen), len(draws))


def agreement(of: Prey, made: Copies, tested: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every copy: the share of people whom it puts in the model's class, and in the right one."""
    predicted = made.predict(of.features[tested]).argmax(axis=2)
    return (predicted == of.classes(of.features[tested])).mean(axis=1), (predicted == of.labels[tested]).mean(axis=1)


def spread(values: np.ndarray) -> dict[str, float]:
    """Mean and standard error.

    >>> spread(np.array([1.0, 3.0]))
    {'mean': 2.0, 'se': 1.0}
    """
    return {"mean": float(values.mean()), "se": float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0}


def extraction(
    of: Prey, draws: list[np.ndarray], told: list[Told], sizes: tuple[int, ...]
) -> Iterator[tuple[dict[str, object], Copies]]:
    """Table 4: a row for every way, number of queries and architecture, with its copies."""
    tested = of.halves[0][1][:MOST_TESTED]
    for deeper in (False, True):
        for size in sizes:
            base = copies(of, draws, size, None, deeper)
            alone, right = agreement(of, base, tested)
            named = {"queries": size, "architecture": "unknown" if deeper else "known"}
            yield {"method": BASE, **named, **cell(alone, right, alone)}, base
            if all(len(queries) >= 2 * size for queries in draws):
                more = copies(of, draws, size, None, deeper, again=True)
                yield {"method": AGAIN, **named, **cell(*agreement(of, more, tested), alone)}, more
            for one in told:
                if one.covers(size) and (not deeper or one.is_of_table_4()):
                    made = copies(of, draws[: len(one.answers)], size, one, deeper)
                    told_by = {"method": one.method, "epsilon": one.epsilon, "answers_labelled": one.labels}
                    yield {**told_by, **named, **cell(*agreement(of, made, tested), alone)}, made


def cell(agreed: np.ndarray, right: np.ndarray, alone: np.ndarray) -> dict[str, object]:
    """Agreement, accuracy, and what was gained over copies of the queries alone, of the same draws and starts."""
    gained = spread(agreed - alone[: len(agreed)])
    return {
        "agreement": float(agreed.mean()),
        "accuracy": float(right.mean()),
        "gain": gained["mean"],
        "gain_se": gained["se"],
        "copies": len(agreed),
    }


# --- the parts -----------------------------------------------------------------------------------------------------------


class Ours:
    """Our answers about one model at one price; a picture is bought where they are not stored yet."""

    def __init__(self, of: Prey, epsilon: float, bench: Bench) -> None:
        self._of, self._epsilon, self._bench = of, epsilon, bench

    @cached_property
    def _fitted(self) -> vt.FittedCounterfactual:
        return by_ours(self._of, self._epsilon)

    def __call__(self, queries: np.ndarray, what: str, **options: object) -> np.ndarray:
        name = f"cf-attacks-{self._of.name}-{self._epsilon:g}-{what}{'-quick' if self._bench.scale.quick else ''}"
        make = lambda: {"answers": first_answers(self._of, self._fitted, queries, **options)}  # noqa: E731
        return self._bench.cache.arrays(name, make)["answers"]


def all_told(of: Prey, asked: list[np.ndarray], bench: Bench) -> Iterator[Told]:
    """Every way's answers but DiCE's."""
    every = np.concatenate(asked)
    for epsilon in EPSILONS:
        ours = Ours(of, epsilon, bench)
        for method, options in {OURS: {}, **VARIANTS}.items():
            if method == OURS or (epsilon == EPSILONS[-1] and of.n_classes == 2):
                yield Told(method, epsilon, np.split(ours(every, method, **options), len(asked)))
                print(of.name, "answered at", epsilon, "by", method, flush=True)
        found = by_published(of, asked, epsilon, bench.scale.quick)
        yield from (Told(PUBLISHED, epsilon, found, ASKED), Told(PUBLISHED, epsilon, found, SAID))
    yield Told("CADEX", None, by_cadex(of, asked))


def attacked(bench: Bench, name: str, sizes: tuple[int, ...] = SIZES, n_draws: int = 2) -> Part:
    """All attacks on one model."""
    quick = bench.scale.quick
    sizes = (40, 80) if quick else sizes
    of = prey(name, bench.folder, bench.cache, quick)
    draws = np.array_split(of.attackers()[: n_draws * 2 * sizes[-1]], n_draws)
    asked = [queries[: sizes[-1]] for queries in draws]
    told = list(all_told(of, asked, bench))
    rows: list[dict[str, object]] = [{"attack": "answers", **flips(of, one, asked)} for one in told]
    rows += from_copies(of, draws, told, sizes)
    rows += from_answers(of, told, asked[0], bench)
    return Part(headline_of(name, rows, sizes[-1]), rows, how_of(of, asked, sizes))


def attacked_dice(bench: Bench, name: str) -> Part:
    """DiCE's answers, which the paper stands beside: slower, so fewer."""
    quick = bench.scale.quick
    sizes = (20,) if quick else (250, 500)
    of = prey(name, bench.folder, bench.cache, quick)
    draws = [of.attackers()[: 2 * sizes[-1]]]
    asked = [draws[0][: sizes[-1]]]
    told = [Told("DiCE random", None, by_dice(of, asked[0]))]
    rows: list[dict[str, object]] = [{"attack": "answers", **flips(of, told[0], asked)}]
    rows += from_copies(of, draws, told, sizes)
    return Part({}, rows, how_of(of, asked, sizes) + ". DiCE 0.12 random with its defaults, given the model's own rows")


def from_copies(of: Prey, draws: list[np.ndarray], told: list[Told], sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """Extraction, and what copies of the most queries tell of people."""
    by = Inference.taught(of)
    rows: list[dict[str, object]] = [{"attack": "membership", "method": ITSELF, **membership(by, [of.probabilities])}]
    if of.sensitive is not None:
        rows.append({"attack": "attribute", "method": ITSELF, **attribute(of, of.probabilities)})
    for row, made in extraction(of, draws, told, sizes):
        rows.append({"attack": "extraction", **row})
        if row["queries"] == sizes[-1] and row["architecture"] == "known":
            keys: tuple[str, ...] = ("method", "epsilon", "answers_labelled", "queries")
            named = {key: row[key] for key in keys if key in row}
            rows.append({"attack": "membership", **named, **membership(by, made.each())})
            if of.sensitive is not None:
                rows.append({"attack": "attribute", **named, **attribute(of, made.each()[0])})
            print(of.name, "copied by", row["method"], row["agreement"], row["gain"], flush=True)
    return rows


def flips(of: Prey, told: Told, asked: list[np.ndarray]) -> dict[str, object]:
    """How many answers the model puts in the class asked for, and how far they are."""
    right, away = [], []
    for queries, answers in zip(asked, told.answers, strict=False):
        own = of.features[queries[: len(answers)]]
        there = np.isfinite(answers).all(axis=1)
        filled = np.where(there[:, None], answers, own)
        right.append(there & (of.classes(filled) == of.other_classes(own)))
        away.append(np.linalg.norm(filled - own, axis=1)[right[-1]])
    distance = np.concatenate(away)
    return {
        "method": told.method,
        "epsilon": told.epsilon,
        "answers_labelled": told.labels,
        "flipping_ratio": float(np.concatenate(right).mean()),
        "distance": float(distance.mean()) if len(distance) else None,
    }


def from_answers(of: Prey, told: list[Told], queries: np.ndarray, bench: Bench) -> list[dict[str, object]]:
    """Membership and attribute from answers themselves, at the larger epsilon."""
    quick, ours = bench.scale.quick, Ours(of, EPSILONS[-1], bench)
    ways: list[tuple[str, float | None, Callable[[np.ndarray], np.ndarray]]] = [
        (OURS, EPSILONS[-1], lambda people: ours(people, "members")),
        (PUBLISHED, EPSILONS[-1], lambda people: by_published(of, [people], EPSILONS[-1], quick)[0]),
        ("CADEX", None, lambda people: by_cadex(of, [people])[0]),
    ]
    rows: list[dict[str, object]] = [
        {"attack": "membership of answers", "method": method, "epsilon": epsilon, **direct(of, way)}
        for method, epsilon, way in ways
    ]
    for one in told if of.name in ("adult", "diabetes") and len(queries) >= 500 else ():
        if one.labels == SAID and one.epsilon in (None, EPSILONS[-1]):
            named = {"method": one.method, "epsilon": one.epsilon}
            rows.append({"attack": "attribute of answers", **named, **direct_attribute(of, one.answers[0], queries)})
    return rows


def headline_of(name: str, rows: list[dict[str, object]], size: int) -> dict[str, object]:
    """Agreement gained by answers at the most queries, known architecture."""
    found: dict[str, object] = {}
    for row in rows:
        at = row["attack"] == "extraction" and row.get("queries") == size and row.get("architecture") == "known"
        if at and row["method"] == OURS and row["epsilon"] == 0.75:
            found[f"{name}_extraction_gain"] = row["gain"]
        if at and row["method"] == PUBLISHED and row["epsilon"] == 0.025 and row["answers_labelled"] == ASKED:
            found[f"{name}_extraction_gain_published"] = row["gain"]
    return found


def how_of(of: Prey, asked: list[np.ndarray], sizes: tuple[int, ...]) -> str:
    own, held = ((of.classes(of.features[half]) == of.labels[half]).mean() for half in of.halves[0])
    return (
        f"four sets that share nobody, each cut in half; the model (a network, accuracy {own:.3f} on its "
        f"{len(of.halves[0][0])} rows, {held:.3f} on the other half) and the vault have one half of the first, the attacker "
        f"the other three sets. {len(asked)} draws of {sizes[-1]} queries, {STARTS} copies of each; all networks take "
        f"{STEPS} steps of 64 rows. Agreement and accuracy: on the half that the model was not trained on, at most "
        f"{MOST_TESTED}. Gain: agreement less that of copies of the queries alone, same draws and starts. Unknown "
        "architecture: one dense layer more. Membership: half of those judged are members; thresholds and the paper's "
        "attack network are taught by three shadow models. CADEX is our own implementation of the idea (benchmarks/peers)"
    )


def adult(bench: Bench) -> Part:
    return attacked(bench, "adult")


def adult_dice(bench: Bench) -> Part:
    return attacked_dice(bench, "adult")


def diabetes(bench: Bench) -> Part:
    return attacked(bench, "diabetes")


def diabetes_dice(bench: Bench) -> Part:
    return attacked_dice(bench, "diabetes")


def location(bench: Bench) -> Part:
    return attacked(bench, "location", sizes=(250, 500), n_draws=1)
