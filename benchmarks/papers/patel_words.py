"""The strongest words of reviews (section 6.1, Table 2): Algorithm 1 and ours beside LIME and MIM.

Words of every method but LIME are found where wide sums are computed, and kept; LIME asks the network about perturbed
reviews and needs no sums. MIM (Sliwinski, Strobel & Zick 2019) is the sum of alpha(|x - z|) (x - z) over rows of the label
of z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import exact
from local_setup import DELTA, Part
from local_stream import Third, per_query_statistics
from papers.patel_cases import (
    TEXT_ROWS_OF_THE_PAPER,
    PatelBench,
    agreement,
    bordered,
    in_parallel,
    points_of,
    problem_of,
    strongest_present,
    text_case,
)
from vitrail.accounting import mu_of
from vitrail.solve.linear.descent import Gradients
from vitrail.solve.linear.weights import stable

EPSILON = 0.1
WORDS = 5
AT_ONCE = 100
WITH_INTERCEPT = 200
"""Reviews that are also explained by releases of statistics with an intercept: a second and more each."""
PRINTED = {"LIME": 3.9, "MIM": 2.6}
LEAST_WORDS = 10
COMPARED = ("LIME", "MIM", "MIM, labels as signs", "non-private optimum")
SHOWN = ("Algorithm 1 as published", "statistics", "statistics, intercept, soft labels")


@dataclass(frozen=True)
class WordNetwork:
    """A dense network with one hidden layer, from its weights."""

    weights: dict[str, np.ndarray]

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        hidden = np.maximum(features @ self.weights["w0"] + self.weights["b0"], 0.0)
        second = 1 / (1 + np.exp(-(hidden @ self.weights["w1"] + self.weights["b1"])[:, 0]))
        return np.stack((1 - second, second), axis=1)


def network(bench: PatelBench) -> WordNetwork:
    """16 units, trained on all reviews."""
    from sklearn.neural_network import MLPClassifier

    case = text_case(bench)

    def trained() -> dict[str, np.ndarray]:
        made = MLPClassifier((16,), alpha=0.01, early_stopping=True, random_state=0).fit(case.data.raw, case.data.positive)
        (w0, w1), (b0, b1) = made.coefs_, made.intercepts_
        return {"w0": w0, "w1": w1, "b0": b0, "b1": b1}

    return WordNetwork(bench.cache.arrays("text-network-weights", trained))


def reviews_of(bench: PatelBench) -> np.ndarray:
    """Reviews drawn at random, those with at least ten of the words."""
    case = text_case(bench)
    of = case.indices(points_of(bench))
    return of[(case.data.raw[of] > 0).sum(axis=1) >= LEAST_WORDS]


def named(method: str, rows: int | None = None) -> str:
    return method if rows is None else f"{method} / {rows}"


def strongest(bench: PatelBench) -> dict[str, np.ndarray]:
    """By method: (draws, reviews, 5) words from the strongest, 1 + their place, negative where they speak against."""
    of = reviews_of(bench)
    found: dict[str, list[np.ndarray]] = {}
    for start in range(0, len(of), AT_ONCE):
        some = of[start : start + AT_ONCE]
        made = bench.cache.arrays(f"strongest-words-{len(of)}-{start}", partial(strongest_of, bench, some, start))
        print("   words of reviews", start, "to", start + len(some), flush=True)
        for method, words in made.items():
            found.setdefault(method, []).append(words)
    return {method: np.concatenate(some, axis=1) for method, some in found.items()}


def strongest_of(bench: PatelBench, of: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    from papers.patel_wide import Around, Rows, batches, tensor

    case, draws = text_case(bench), 2
    x, raw, z = case.data.x, case.data.raw[of], case.data.x[of]
    probability = network(bench).predict_proba(case.data.raw)[:, 1]
    f = np.where(probability >= 0.5, 1.0, -1.0)
    problem, mu = problem_of(case), mu_of(EPSILON, DELTA)
    rows = Rows.of(x, bench.device)
    ((_, alphas, grams),) = batches(rows, z, stable(1.0), len(z))
    signed = rows.crosses(tensor(f, bench.device), tensor(z, bench.device), alphas)
    plain = rows.crosses(tensor(np.ones(len(x)), bench.device), tensor(z, bench.device), alphas).cpu().numpy()
    around = Around.of(grams, signed, len(x), seed)
    own = f[of][:, None]
    phis: dict[str, list[np.ndarray]] = {
        "five words by chance": list(np.random.default_rng([42, seed]).normal(size=(draws, *z.shape))),
        "non-private optimum": [around.best.cpu().numpy()],
        "MIM": [own * (plain + own * signed.cpu().numpy()) / 2],
        "MIM, labels as signs": [signed.cpu().numpy()],
    }
    a, b = bordered(x, 2 * probability - 1, z, problem.weight, grams.cpu().numpy())
    phis["non-private, intercept, soft labels, no ball"] = [exact.affine_optimum(a, b)[1]]
    affine = replace(problem, labels="soft", intercept=True)
    for m in (len(x), TEXT_ROWS_OF_THE_PAPER):
        some = around.of_rows(m, seed)
        for method, phi in (
            ("Algorithm 1 as published", some.published(EPSILON, DELTA, draws)),
            ("descent", some.descent(Gradients(problem), mu, draws)),
            ("statistics", some.statistics(problem, mu, draws)),
        ):
            phis[named(method, m)] = list(phi.permute(2, 0, 1).cpu().numpy())

        if seed >= WITH_INTERCEPT:
            continue

        def one(place: int, m: int = m) -> np.ndarray:
            rng = np.random.default_rng([43, seed, m, place])
            third = Third(m, raw[place : place + 1], z[place : place + 1], a[place : place + 1], b[place : place + 1])
            return np.stack([per_query_statistics(affine, third, mu, rng)[0][0] for _ in range(draws)])

        made = np.stack(in_parallel([partial(one, place) for place in range(len(z))], bench.workers))
        phis[named(SHOWN[2], m)] = list(made.transpose(1, 0, 2))
    return {method: np.stack([top_words(phi, raw > 0) for phi in draw]) for method, draw in phis.items()}


def top_words(phi: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(reviews, 5) of 1 + the place of a word, negative where phi is; 0 where a review has no further word."""
    found = np.zeros((len(phi), WORDS), dtype=np.int64)
    for line, one, has in zip(found, phi, present, strict=True):
        places = np.array(strongest_present(one, has, WORDS), dtype=np.int64)
        line[: len(places)] = np.where(one[places] < 0, -1, 1) * (places + 1)
    return found


def lime_words(words: list[str], estimator: WordNetwork, present: np.ndarray) -> np.ndarray:
    """LIME's five strongest words of each review; 1 000 perturbed reviews each, words by weight."""
    from lime.lime_text import LimeTextExplainer

    place_of = {word: place for place, word in enumerate(words)}

    def probabilities(texts: list[str]) -> np.ndarray:
        features = np.zeros((len(texts), len(words)))
        for row, text in enumerate(texts):
            features[row, [place_of[word] for word in text.split() if word in place_of]] = 1.0
        return estimator.predict_proba(features)

    explainer = LimeTextExplainer(split_expression=r"\s+", feature_selection="highest_weights", random_state=0)
    found = np.zeros((len(present), WORDS), dtype=np.int64)
    for line, row in zip(found, present, strict=True):
        text = " ".join(words[place] for place in np.flatnonzero(row))
        explained = explainer.explain_instance(text, probabilities, num_features=WORDS, num_samples=1000).as_list()
        line[: len(explained)] = [(1 if weight >= 0 else -1) * (1 + place_of[word]) for word, weight in explained]
    return found


def with_lime(bench: PatelBench) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Words of all methods, LIME's among them, and the reviews."""
    case, of = text_case(bench), reviews_of(bench)
    words = strongest(bench)
    estimator = network(bench)

    def made() -> dict[str, np.ndarray]:
        return {"words": lime_words(list(case.data.schema.names), estimator, case.data.raw[of] > 0)}

    return words | {"LIME": bench.cache.arrays(f"lime-words-{len(of)}", made)["words"][None]}, of


def shared(words: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How many words every review's two lists share, (draws, reviews); ``words`` may be of the first reviews alone."""
    return np.array(
        [
            [agreement(set(abs(a)) - {0}, set(abs(b)) - {0}) for a, b in zip(draw, other[0, : len(draw)], strict=True)]
            for draw in words
        ]
    )


def top5(bench: PatelBench) -> Part:
    """Words shared with LIME and with MIM, of five, on reviews that have at least ten of the vocabulary."""
    found, _ = with_lime(bench)
    rows: list[dict[str, object]] = []
    counts = {len(text_case(bench).data.x): "its own", TEXT_ROWS_OF_THE_PAPER: "the paper's"}
    for name, words in found.items():
        method, _, noise = name.partition(" / ")
        lime, mim, signed, best = (shared(words, found[other]) for other in COMPARED)
        more = {"epsilon": EPSILON, "noise_of_rows": int(noise), "row_count": counts[int(noise)]} if noise else {}
        rows.append(
            {
                "method": method,
                "shared_with_lime": float(lime.mean()),
                "variance": float(lime.var()),
                "shared_with_mim": float(mim.mean()),
                "variance_mim": float(mim.var()),
                "shared_with_signed_mim": float(signed.mean()),
                "variance_signed_mim": float(signed.var()),
                "shared_with_the_optimum": float(best.mean()),
                "points": words.shape[1],
                "draws": len(words),
                **more,
            }
        )
        print("  ", rows[-1], flush=True)
    how = (
        "a dense network of 16 units on 500 words, asked for its labels; reviews drawn at random, those with at least ten "
        "of the words; the five longest coefficients among the words that a review has, those of LimeTextExplainer (1 000 "
        "perturbed reviews, words by weight) and of MIM (sum of alpha(|x - z|) (x - z) over reviews of the same label, all "
        "of them, the same alpha; 'labels as signs' takes those of the other label away instead of leaving them out) on the "
        "same network; epsilon 0.1, delta 1e-6. 'intercept, soft labels' is the library's default, the rest the paper's "
        "centred form in the unit ball, whose coefficients follow how often a word occurs as well as what it says, as MIM's "
        "do; LIME's do not. The paper prints 3.9 of 5 (LIME) and 2.6 of 5 (MIM) on 8.8 million reviews; 'row_count' says "
        "whose noise was drawn"
    )
    headline = {f"shared_{row['method']}_{row.get('row_count', '-')}": row["shared_with_lime"] for row in rows}
    headline |= {f"shared_with_mim_{row['method']}_{row.get('row_count', '-')}": row["shared_with_mim"] for row in rows}
    return Part(headline, rows, how)


def reviews(bench: PatelBench) -> Part:
    """Table 2: the strongest words of four reviews, by method; of a review its chosen words alone are kept."""
    found, of = with_lime(bench)
    case = text_case(bench)
    names, positive = np.array(case.data.schema.names), case.data.positive[of]
    columns = {method: named(method, TEXT_ROWS_OF_THE_PAPER) for method in SHOWN} | {name: name for name in COMPARED[:3]}
    rows = []
    for label in (True, False):
        for place in np.flatnonzero(positive == label)[:2]:
            said = {method: [int(word) for word in found[column][0, place] if word] for method, column in columns.items()}
            chosen = {
                method: [f"{'+' if word > 0 else '-'}{names[abs(word) - 1]}" for word in words]
                for method, words in said.items()
            }
            probability = float(network(bench).predict_proba(case.data.raw[of[place : place + 1]])[0, 1])
            rows.append({"label": 1 if label else -1, "probability": probability, "chosen": chosen})
    how = (
        "the first two positive and the first two negative reviews of those above, first draw; epsilon 0.1, delta 1e-6, the "
        "noise of the paper's row count; strongest word first, + speaks for a positive review. Words are among the 500 most "
        "frequent without English stop words; the reviews themselves are not shown"
    )
    return Part({}, rows, how)
