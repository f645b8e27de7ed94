"""How accurate the parts of one pane are, against the same parts bought alone and against the methods as published.

*Ratios*: geometric means over draws on both sides; for curves also over columns. *Gains*: the as-published method is given
all of epsilon for one question (one point, one column), the pane has spent it on everything; means over draws, as for the
published designs, then the geometric mean over columns.
"""

from __future__ import annotations

import math

import numpy as np

import global_curves
import vitrail as vt
from global_curves import geometric
from global_ranking import NEARLY_TIED, permutations
from global_setup import mise
from local_fidelity import Judge as FidelityJudge
from pane_subject import BOOSTING, DELTA, EPSILON, FOREST, WHOLE, Bench, Part, shown
from papers.patel_published import algorithm_1
from papers.tailoring_published import concordant
from vitrail.accounting import mu_of
from vitrail.pane.local_ways import SAMPLED
from vitrail.pane.pane_recipe import ROW_BINS, PaneExplainer
from vitrail.solve.linear.labelled_rows import explain_on
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import polynomial

KINDS = ("pdp", "ale")
Row = dict[str, object]


def curve_errors(bench: Bench, pane: vt.Pane, kind: str) -> np.ndarray:
    """MISE of each column, against the exact curve of our convention."""
    case, effects = bench.whole, getattr(pane, kind)
    return np.array(
        [float(mise(shown(case, name, effects[name]), case.truth(kind, name, "ours", clip=True))[0]) for name in case.names]
    )


def ratios(bench: Bench) -> Part:
    """Local synopsis and curves: in a pane that carries everything, over alone."""
    headline: dict[str, float] = {}
    rows: list[Row] = []
    count = bench.scale.draws
    panes = list(bench.panes(FOREST, count))
    together = np.array([bench.loss.of_synopsis(pane.synopsis) for pane in panes])
    alone = np.array([bench.loss.of_synopsis(pane.synopsis) for pane in bench.panes(FOREST, count, parts=["local"])])
    headline["local_ratio"] = geometric(list(together)) / geometric(list(alone))
    rows.append(
        {
            "what": "local excess loss",
            "in_the_pane": geometric(list(together)),
            "alone": geometric(list(alone)),
            "ratio": headline["local_ratio"],
            "draws": count,
        }
    )
    for kind in KINDS:
        both = np.array([curve_errors(bench, pane, kind) for pane in panes])
        single = np.array([curve_errors(bench, pane, kind) for pane in bench.panes(FOREST, count, parts=[kind])])
        inside, outside = (np.exp(np.log(found).mean(axis=0)) for found in (both, single))
        headline[f"{kind}_ratio"] = geometric(list(inside / outside))
        for name, one, other in zip(bench.whole.names, inside, outside, strict=True):
            rows.append(
                {"what": kind, "feature": name, "in_the_pane": one, "alone": other, "ratio": one / other, "draws": count}
            )
        rows.append(
            {
                "what": kind,
                "feature": "geometric mean",
                "in_the_pane": geometric(list(inside)),
                "alone": geometric(list(outside)),
                "ratio": headline[f"{kind}_ratio"],
                "draws": count,
            }
        )
    rows.append({"what": "shares of the price", **panes[0].shares()})
    how = (
        f"{count} panes (the default parts and the synopsis), and {count} releases of each part alone, each at epsilon 1 "
        "and delta 1e-6 through a ledger of its own; geometric means over draws, and over the 13 columns. The forest of "
        "the benchmarks on whole models (levels as numbers). Local: mean excess loss of the released synopsis over 100 "
        "points, polynomial weight, no intercept; labels are soft (2p - 1), because that is what a pane holds. Curves: "
        "MISE against the exact curves"
    )
    return Part(headline, rows, how)


def published(bench: Bench) -> Part:
    """The pane, against methods as published that are given the whole epsilon for one question."""
    panes = list(bench.panes(FOREST, bench.scale.draws))
    judge, case = bench.loss, bench.whole
    rows: list[Row] = []
    rng = np.random.default_rng(5)
    c = polynomial().gradient_constant(2.0)
    phi = [
        [algorithm_1(a, b, judge.m, EPSILON, DELTA, rng, c=c) for a, b in zip(judge.a, judge.b, strict=True)]
        for _ in range(2 if bench.scale.quick else 10)
    ]
    theirs = float(judge.losses(np.array(phi)).mean())
    ours = float(np.mean([judge.of_synopsis(pane.synopsis) for pane in panes]))
    gains = {"local excess loss": theirs / ours}
    rows.append({"what": "local excess loss", "published": theirs, "in_the_pane": ours, "gain": theirs / ours})
    for kind in KINDS:
        mine = np.array([curve_errors(bench, pane, kind) for pane in panes]).mean(axis=0)
        found = []
        for name, error in zip(case.names, mine, strict=True):
            as_published = global_curves.published_errors(case, kind, name, global_curves.EPSILONS)[str(EPSILON)]
            error_published = float(as_published["published_clipped_truth"])  # type: ignore[call-overload, index]
            found.append((error_published, float(error)))
            rows.append(
                {
                    "what": kind,
                    "feature": name,
                    "published": error_published,
                    "in_the_pane": float(error),
                    "gain": error_published / float(error),
                }
            )
        gains[kind] = geometric([one / other for one, other in found])
        totals = np.array(found).mean(axis=0)
        rows.append({"what": kind, "feature": "geometric mean", "gain": gains[kind]})
        rows.append({"what": kind, "feature": "ratio of mean MISE", "gain": float(totals[0] / totals[1])})
    how = (
        "as published: Algorithm 1 at epsilon 1 for one point (mean over 100 points x 10 draws); the specific designs with "
        "all of epsilon 1, pure, for one column, against the clipped exact curve of their own convention. Ours: all from "
        f"one pane, means over {len(panes)} panes. Over columns: the geometric mean, as for the other gains; the ratio of "
        "mean errors, which columns with large errors decide, is in rows. The headline is the smallest of the three"
    )
    return Part({"worst_gain_vs_published": min(gains.values())}, rows, how)


def importance(bench: Bench) -> Part:
    """Concordant pairs with the ranking by the mean over twelve permutations."""
    case = bench.whole
    truth = permutations(case)["plain"].mean(axis=0)
    rows: list[Row] = []
    for draw, pane in enumerate(bench.panes(FOREST, bench.scale.draws)):
        ranked = pane.importance
        scores = np.array([ranked.scores[list(ranked.items).index(name)] for name in case.names])
        rows.append({"draw": draw, "agreement": float(concordant(truth, scores)[0]), "order": list(ranked.order)})
    agreement = float(np.mean([float(row["agreement"]) for row in rows]))  # type: ignore[arg-type]
    how = (
        "share of pairs of columns in the order of the non-private ranking, mean over panes; that ranking is by the mean "
        f"loss over {case.scale.permutations(case.name in NEARLY_TIED)} permutations"
    )
    return Part({"importance_agreement": agreement}, rows, how)


def counterfactual(bench: Bench) -> Part:
    """Share of people whom the model, asked again, puts in the wanted class."""
    case, rows = bench.whole, []
    people = bench.people
    for draw in range(min(bench.scale.draws, 3)):
        pane = bench.pane(FOREST, draw).with_model(bench.forest)
        out = pane.counterfactual(people, desired_class=1)
        told = [dict(some[0].row) for some in out.answers if some]
        right = (case.predict(case.schema.read_points(told)) >= 0.5).sum() if told else 0
        rows.append({"draw": draw, "people": len(people), "validity": float(right / len(people))})
    validity = float(np.mean([row["validity"] for row in rows]))
    how = (
        f"{len(people)} people of the last two thirds of the test split whom the forest puts at <=50K, desired >50K, one "
        f"answer each, every column free; the forest is asked again; mean over {len(rows)} panes"
    )
    return Part({"counterfactual_validity": validity}, rows, how)


def fidelity(bench: Bench) -> Part:
    """Local explanations of gradient boosting from a pane of that model, on the 200 nearest other real rows."""
    judge = FidelityJudge(bench.boosting_case)
    points = bench.boosting_case.points(judge.of)
    pane = bench.pane(BOOSTING, 0)
    found = pane.local(points, method="linear")
    rows: list[Row] = [
        {
            "draw": 0,
            "what": "pane",
            "error": judge.error_of(found),
            "error_of_moments": judge.error_of(pane.local(points, method="moments")),
        }
    ]
    about = bench.subject(BOOSTING)
    problem = LocalProblem(about.schema, about.model, polynomial())
    for draw in range(1, bench.scale.boosting_draws):
        data = about.vault("add-remove")
        whole = mu_of(EPSILON, DELTA)
        price = whole * math.sqrt(PaneExplainer(data, about.model, parts=WHOLE).shares(whole)["rows"])
        drawn = vt.private_rows(data, mu=price, columns=about.schema.names, bins=ROW_BINS)
        sharp = explain_on(problem, drawn, n_sampled=SAMPLED)
        rows.append(
            {"draw": draw, "what": "its rows alone, at their price in the pane", "error": judge.error_of(sharp(points))}
        )
    error = float(np.mean([float(row["error"]) for row in rows]))  # type: ignore[arg-type]
    how = (
        "gradient boosting, so a pane of its own (a pane is of one model), epsilon 1; pane.local(method='linear'): "
        "a sharp kernel on the pane's private rows. One whole pane, and more draws of its rows alone at the price that they "
        f"have in it, which is the same release; {len(judge.of)} points; mean squared error against soft f in [-1, 1]; mean "
        f"over {len(rows)} draws"
    )
    return Part({"local_fidelity": error}, rows, how)
