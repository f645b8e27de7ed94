"""Adult once more, on people of no other part: the weight is chosen on some, the two ratios are tested on others.

People are those of the last two thirds of the test split who are no query of ``adult`` and ``forest``, split by row into
three groups: ``tuning`` is for choosing a weight, ``last`` is tested with it, ``gradient`` is asked of DiCE's slow method.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import vitrail as vt
from local_setup import Part
from papers import counterfactual_models as models
from papers.counterfactual_adult import (
    OURS,
    PUBLISHED,
    PUBLISHED_SETTLED,
    Measured,
    as_published,
    by_dice,
    mean_row,
    ours,
    ratio,
)
from papers.counterfactual_cases import TUNED, Case, of_schema, outlier_factor
from papers.counterfactual_scale import Bench
from papers.yang_published import PublishedDPC, published_dpc

GROUPS = ("gradient", "tuning", "last")
TRIED = (3.0, 4.0, 5.0, 6.0, 8.0)
MARGIN, FARTHEST = 0.85, 0.95
"""Fixed before the tuning people were asked about: the smallest weight tried whose plausibility ratio on them is at most
MARGIN and whose distance ratio is at most FARTHEST; plausibility first if no weight does both."""
LOOKED_AT = 500
"""Queries of the parts ``adult`` and ``forest``, for either model."""


def fresh_rows(cases: list[Case]) -> dict[str, np.ndarray]:
    """Places in the test frame of people who were no query of any model, in three groups of equal size.

    The groups are drawn by row, so that a person is in the same group whatever model is asked about.
    """
    seen: set[int] = set()
    for case in cases:
        seen |= set(case.places(LOOKED_AT).tolist())
    rest = np.array([place for place in range(len(cases[0].test)) if place not in seen])
    parts = np.array_split(np.random.default_rng(5).permutation(rest), len(GROUPS))
    return dict(zip(GROUPS, parts, strict=True))


def people_of(bench: Bench, kind: str, group: str, count: int) -> tuple[Case, pd.DataFrame]:
    """The case, and the first people of a group whom its model does not put in the wanted class."""
    both = [models.adult(bench.folder, bench.cache.folder, one) for one in ("network", "forest")]
    case = both[("network", "forest").index(kind)]
    places = fresh_rows(both)[group]
    some = case.test.iloc[places].reset_index(drop=True)
    needing = np.flatnonzero(case.sides(case.schema.read(some)) != case.wanted)[:count]
    return case, some.iloc[needing].reset_index(drop=True)


def trainings(bench: Bench, case: Case) -> list[PublishedDPC]:
    """The as-published method from other seeds than that of the part ``adult``."""
    raw = case.schema.read(case.rows)
    features, sides = case.schema.features(raw)[0], case.sides(raw)
    epochs = 20 if bench.scale.quick else 300

    def make(seed: int) -> PublishedDPC:
        return published_dpc(features, sides, 2, 0.75, np.random.default_rng(100 + seed), hidden=32, epochs=epochs)

    names = [(seed, f"cf-dpc-fresh-{seed}{'-quick' if bench.scale.quick else ''}") for seed in range(bench.scale.fresh_fits)]
    return [bench.cache.model(name, lambda seed=seed: make(seed)) for seed, name in names]  # type: ignore[misc]


def interval(mine: list[np.ndarray], theirs: list[np.ndarray], both: list[np.ndarray]) -> list[float]:
    """95 % for the mean ratio: people drawn again with replacement, 2 000 times; fits as they are."""
    generator, found = np.random.default_rng(0), []
    for _ in range(2_000):
        drawn = generator.integers(0, len(mine[0]), len(mine[0]))
        found.append(np.mean([ratio(m[drawn], t[drawn], b[drawn]) for m, t, b in zip(mine, theirs, both, strict=True)]))
    return [float(value) for value in np.quantile(found, (0.025, 0.975))]


def against(mine: list[Measured], theirs: list[Measured], of: str) -> dict[str, object]:
    """The ratio of means, ours over theirs, fit by fit, over people whom both gave a valid answer."""
    count = len(theirs[0].verdict.flipped)
    ours_, others, both = [], [], []
    for place, one in enumerate(mine):
        other = theirs[place % len(theirs)].verdict
        ours_.append(getattr(one.verdict, of)[:count])
        others.append(getattr(other, of))
        both.append(one.verdict.flipped[:count] & other.flipped)
    ratios = [ratio(*some) for some in zip(ours_, others, both, strict=True)]
    return {"ratio": float(np.mean(ratios)), "ratios": ratios, "interval": interval(ours_, others, both)}


def gradient(bench: Bench) -> Part:
    """DiCE's gradient method, which needs a torch module: few people, it takes seconds for each."""
    from peers import dice

    case, people = people_of(bench, "network", "gradient", bench.scale.gradient)
    queries = case.schema.read(people)
    lof = outlier_factor(case.real)
    mine = [ours(case, people, 0.75, lof, TUNED) for _ in range(bench.scale.fresh_fits)]
    predictor = dice.Predictor(case.schema, case.probability)
    found = dice.by_gradient(case.schema, case.rows, predictor, case.module, people, case.wanted)
    theirs = Measured(of_schema(case, queries, found.rows, lof), found.seconds)
    told = {f"{of}_ratio": against(mine, [theirs], of)["ratio"] for of in ("plausibility", "distance")}
    rows: list[dict[str, object]] = [
        {"method": OURS, "epsilon": 0.75, **mean_row(mine)},
        {"method": "DiCE gradient", "epsilon": None, **theirs.row(), **told},
    ]
    how = (
        f"the tanh network and the first {len(people)} people of the group 'gradient'; DiCE 0.12 gradient with its "
        f"defaults, one answer each; ours: {len(mine)} fits, plausibility_weight {TUNED:g}. Seconds on a machine that other "
        "work shared"
    )
    return Part({}, rows, how)


def tuning(bench: Bench) -> Part:
    """Choose a weight on people of no other part, by a rule fixed before."""
    rows: list[dict[str, object]] = []
    found: dict[float, dict[str, float]] = {weight: {} for weight in TRIED}
    for kind, of in (("forest", "plausibility"), ("network", "distance")):
        case, people = people_of(bench, kind, "tuning", bench.scale.few)
        queries = case.schema.read(people)
        if kind == "forest":
            theirs = [[by_dice(case, people, "genetic", None)]]
            rows.append({"method": "DiCE genetic", "model": kind, **theirs[0][0].verdict.row()})
        else:
            pairs = [as_published(case, dpc, people, None) for dpc in trainings(bench, case)]
            theirs = [[one[side] for one in pairs] for side in (0, 1)]
            for name, some in zip((PUBLISHED, PUBLISHED_SETTLED), theirs, strict=True):
                rows.append({"method": name, "model": kind, **mean_row(some)})
        fitted = [vt.Counterfactual(case.vault(), case.model).fit(epsilon=0.75) for _ in range(bench.scale.fresh_fits)]
        for weight in TRIED:
            mine = []
            for one in fitted:
                out = one(people, desired_class=case.wanted, plausibility_weight=weight)
                mine.append(Measured(of_schema(case, queries, case.told(out)), 0.0))
            worst = max(against(mine, some, of)["ratio"] for some in theirs)  # type: ignore[type-var]
            found[weight][of] = worst  # type: ignore[assignment]
            told = {f"{of}_ratio": worst, **mean_row(mine)}
            rows.append({"method": OURS, "model": kind, "plausibility_weight": weight, **told})
            print(kind, weight, worst, flush=True)
    for row in rows:
        for key in ("local_outlier_factor", "seconds_each"):
            row.pop(key, None)
    how = (
        f"{bench.scale.few} other fresh people (group 'tuning') for each model; {bench.scale.fresh_fits} fits; chosen: the "
        f"smallest weight tried with a plausibility ratio of at most {MARGIN} (DiCE genetic, forest) and a distance ratio "
        f"of at most {FARTHEST} (as published, network): {chosen_of(found):g}. The rule was fixed before these people were "
        "asked about"
    )
    return Part({}, rows, how)


def chosen_of(found: dict[float, dict[str, float]]) -> float:
    """The rule.

    >>> chosen_of({1.3: {"plausibility": 0.9, "distance": 0.5}, 1.4: {"plausibility": 0.8, "distance": 0.6}})
    1.4
    """
    near = [weight for weight, one in found.items() if one["plausibility"] <= MARGIN]
    both = [weight for weight in near if found[weight]["distance"] <= FARTHEST]
    return min(both or near or [max(found)])


def asked_of(people: pd.DataFrame, mine: list[Measured]) -> str:
    return (
        f"{len(people)} people of the last two thirds of the test split who are no query of another part (group 'last'), "
        f"asked about once with this search; plausibility_weight {TUNED:g}; epsilon 0.75; {len(mine)} fits of ours, each in "
        "a vault of its own"
    )


def last_network(bench: Bench) -> Part:
    """Distance on the last group, with the weight of ``tuning``."""
    case, people = people_of(bench, "network", "last", bench.scale.fresh)
    lof = outlier_factor(case.real)
    mine = [ours(case, people, 0.75, lof, TUNED) for _ in range(bench.scale.fresh_fits)]
    rows: list[dict[str, object]] = [{"method": OURS, "epsilon": 0.75, **mean_row(mine)}]
    loose: list[Measured] = []
    settled: list[Measured] = []
    for dpc in trainings(bench, case):
        for made, one in zip((loose, settled), as_published(case, dpc, people, lof), strict=True):
            made.append(one)
    found = []
    for name, some in ((PUBLISHED, loose), (PUBLISHED_SETTLED, settled)):
        found.append(against(mine, some, "distance"))
        told = {"distance_ratio": found[-1]["ratio"], "ratio_95": found[-1]["interval"], "ratios": found[-1]["ratios"]}
        rows.append({"method": name, "epsilon": 0.75, **mean_row(some), **told})
    headline = {"adult_distance_ratio": max(one["ratio"] for one in found)}  # type: ignore[type-var]
    how = (
        f"{asked_of(people, mine)}, beside {len(loose)} trainings of the as-published method from other seeds (32 units, "
        "300 epochs). adult_distance_ratio: mean over fits of the ratio of mean distances, over people whom both gave a "
        "valid answer, against its answers in the cube and those put on the schema, the worse for us of both. ratio_95: "
        "people drawn again with replacement"
    )
    return Part(headline, rows, how)  # type: ignore[arg-type]


def last_forest(bench: Bench) -> Part:
    """Plausibility on the last group, with the weight of ``tuning``."""
    case, people = people_of(bench, "forest", "last", bench.scale.fresh)
    lof = outlier_factor(case.real)
    mine = [ours(case, people, 0.75, lof, TUNED) for _ in range(bench.scale.fresh_fits)]
    rows: list[dict[str, object]] = [{"method": OURS, "epsilon": 0.75, **mean_row(mine)}]
    print("ours", rows[0], flush=True)
    ratios, seconds = [], 0.0
    for method, count in (("random", bench.scale.random), ("genetic", bench.scale.fresh_genetic)):
        theirs = by_dice(case, people[:count], method, lof)
        told = against(mine, [theirs], "plausibility")
        near = against(mine, [theirs], "distance")
        ratios.append(told["ratio"])
        seconds = theirs.seconds / count
        rows.append(
            {
                "method": f"DiCE {method}",
                "epsilon": None,
                **theirs.row(),
                "plausibility_ratio": told["ratio"],
                "ratio_95": told["interval"],
                "ratios": told["ratios"],
                "distance_ratio": near["ratio"],
            }
        )
        print(rows[-1], flush=True)
    headline = {
        "adult_plausibility_ratio": max(ratios),  # type: ignore[type-var]
        "dice_speedup": seconds / (float(np.mean([one.seconds for one in mine])) / len(people)),
    }
    how = (
        f"{asked_of(people, mine)}. DiCE 0.12 with its defaults: random for the first {bench.scale.random} of them, genetic "
        f"for the first {bench.scale.fresh_genetic}. adult_plausibility_ratio: mean distance to the nearest held-out real "
        "row that the forest puts at >50K, ours over DiCE's, over the same people, mean over fits, against the better of "
        "DiCE's methods. ratio_95: people drawn again with replacement. dice_speedup: DiCE genetic's seconds per person "
        "over ours for all in one call, the same forest, one process, one thread, a machine that other work shared; ours "
        "without its fit"
    )
    return Part(headline, rows, how)  # type: ignore[arg-type]
