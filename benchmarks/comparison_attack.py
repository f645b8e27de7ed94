"""What somebody learns who sees an answer and knows every private row but one: was that person among them?

The game: a thousand private rows; a coin decides whether one of them is there; the attacker knows the model, the code,
every random seed that a library takes, and all other rows, sees the explanation of somebody else, and guesses. Against an
explanation that is a function of the rows the attacker computes both answers and compares, so a guess is right whenever
the two differ in what is printed. Against noise the attacker projects the answer on the difference that the person would
make, and takes the threshold that was best on other releases.

"Right" is the share of right guesses; somebody who sees nothing is right half of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sized

import numpy as np
from scipy.stats import binom, norm

import vitrail as vt
from comparison_counterfactual import dice_answers
from comparison_setup import EPSILON, SMALL_TABLE, Bench, clocked
from running import Part, Row
from vitrail.accounting import mu_of

TARGETS = 50
DICE_TARGETS = {"random": 20, "genetic": 3, "kdtree": 20}
DIGITS = (None, 4, 3, 2)
"""What is printed: everything, or so many digits behind the point."""
RELEASES = 40
"""With the person, and as many without."""


def differs(first: np.ndarray, second: np.ndarray, digits: int | None) -> bool:
    """Whether two answers differ in what is printed.

    >>> differs(np.array([0.12341]), np.array([0.12339]), 4), differs(np.array([0.12341]), np.array([0.12339]), 3)
    (False, False)
    """
    if digits is None:
        return bool((first != second).any())
    return bool((np.round(first, digits) != np.round(second, digits)).any())


def guessed(pairs: list[tuple[np.ndarray, np.ndarray]], digits: int | None) -> float:
    """Share of right guesses where answers are compared: sure where they differ, a coin where not."""
    return 0.5 + float(np.mean([differs(*pair, digits) for pair in pairs])) / 2


def targets(rows: Sized, count: int) -> list[int]:
    """Whose presence is asked about."""
    return np.random.default_rng(5).choice(len(rows), min(count, len(rows)), replace=False).tolist()


def of_shap(bench: Bench, rows: np.ndarray, people: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Shapley values with and without each target; they are means over rows, so one pass over the rows is enough."""
    from reasons_truth import tree_sum

    judge = tree_sum(bench.forest, bench.schema.n_columns)
    with_all, pairs = judge.values(people, rows), []
    for target in targets(rows, TARGETS):
        own = judge.values(people, rows[target : target + 1])
        pairs.append((with_all, (len(rows) * with_all - own) / (len(rows) - 1)))
    return pairs


def of_lime(bench: Bench, rows: np.ndarray, person: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    from peers.lime_tabular import explainer

    def both(raw: np.ndarray) -> np.ndarray:
        high = bench.probability(raw)
        return np.stack([1 - high, high], axis=1)

    def weights(kept: np.ndarray) -> np.ndarray:
        told = explainer(bench.schema, kept).explain_instance(person, both, num_features=len(person))
        return np.array([value for _, value in sorted(told.local_exp[1])])

    with_all = weights(rows)
    return [(with_all, weights(np.delete(rows, target, axis=0))) for target in targets(rows, 3 if bench.quick else TARGETS)]


def of_dice(bench: Bench, rows: np.ndarray, person: np.ndarray, method: str) -> list[tuple[np.ndarray, np.ndarray]]:
    def answers(kept: np.ndarray) -> np.ndarray:
        (found,) = dice_answers(bench, kept, person[None], method)
        return np.pad(found, ((0, 3 - min(len(found), 3)), (0, 0)))[:3]

    with_all = answers(rows)
    if differs(with_all, answers(rows), None):
        raise RuntimeError(f"DiCE's {method} method answers differently when asked again: answers cannot be compared")
    count = 2 if bench.quick else DICE_TARGETS[method]
    return [(with_all, answers(np.delete(rows, target, axis=0))) for target in targets(rows, count)]


def of_vitrail(bench: Bench, people: np.ndarray) -> tuple[float, int]:
    """Share of right guesses about the target whose absence would move the reasons most, and how many guesses there were."""
    frame = bench.private.iloc[:SMALL_TABLE]
    exact = of_shap(bench, bench.rows[:SMALL_TABLE], people)
    moves = [float(np.linalg.norm(there - gone)) for there, gone in exact]
    place = int(np.argmax(moves))
    target, (there, gone) = targets(frame, TARGETS)[place], exact[place]
    direction = (there - gone).ravel()
    draws = 6 if bench.quick else RELEASES
    scores: list[np.ndarray] = []
    for rows in (frame, frame.drop(index=target).reset_index(drop=True)):
        found = []
        for _ in range(draws):
            data = vt.PrivateData(
                rows, bench.whole, name="adult", target="income", n_rows_public=SMALL_TABLE,
                budget=vt.Budget(EPSILON, 1e-6), ledger="memory",
            )  # fmt: skip
            pane = vt.PaneExplainer(data, bench.model, parts=["rows"])(epsilon=EPSILON)
            found.append(float(pane.local(bench.schema.frame(people)).values.ravel() @ direction))
        scores.append(np.array(found))
    half = draws // 2
    known, tried = [one[:half] for one in scores], [one[half:] for one in scores]
    bars = np.concatenate(known)
    best = max(bars, key=lambda bar: float((known[0] >= bar).mean() + (known[1] < bar).mean()))
    right = (tried[0] >= best).sum() + (tried[1] < best).sum()
    guesses = sum(len(one) for one in tried)
    return float(right / guesses), guesses


def at_most(mu: float) -> float:
    """How often the best of all guesses is right against a mechanism that is mu-GDP, with an even coin.

    >>> round(at_most(0.0), 3), round(at_most(0.2367), 3)
    (0.5, 0.547)
    """
    return float(norm.cdf(mu / 2))


def attack(bench: Bench) -> Part:
    rows: list[Row] = []
    small = bench.rows[:SMALL_TABLE]
    people = bench.people[:5]

    def add(method: str, promise: str, facts: Row, seconds: float) -> None:
        rows.append({"method": method, "promise": promise, **facts, "seconds": seconds})
        print("  ", rows[-1], flush=True)

    def compared(pairs: list[tuple[np.ndarray, np.ndarray]], n_rows: int) -> Row:
        right = {"all digits" if digits is None else f"{digits} digits": guessed(pairs, digits) for digits in DIGITS}
        return {"n_rows": n_rows, "targets": len(pairs), "right": right, "at_most": 1.0}

    for n_rows, table in ((SMALL_TABLE, small), (len(bench.rows), bench.rows)):
        with clocked() as clock:
            pairs = of_shap(bench, table, people)
        add("shap", "nothing promised", compared(pairs, n_rows), clock.seconds)
    with clocked() as clock:
        pairs = of_lime(bench, small, people[0])
    add("lime", "nothing promised", compared(pairs, len(small)), clock.seconds)
    others = bench.read(bench.others)
    poor = others[bench.probability(others) < 0.5][0]
    for method in ("random", "genetic", "kdtree"):
        with clocked() as clock:
            pairs = of_dice(bench, small, poor, method)
        add(f"DiCE, {method}", "nothing promised", compared(pairs, len(small)), clock.seconds)
    with clocked() as clock:
        right, guesses = of_vitrail(bench, people)
    mu = mu_of(EPSILON, 1e-6)
    chance = float(binom.sf(math.ceil(right * guesses) - 1, guesses, at_most(mu)))
    facts: Row = {"n_rows": len(small), "guesses": guesses, "right": {"all digits": right}, "at_most": at_most(mu)}
    add("Vitrail", f"epsilon {EPSILON:g}", facts | {"chance_of_so_many": chance}, clock.seconds)
    pure = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    for method, bound in (
        ("mbi's rows, then anything", at_most(mu)),
        ("DP-EBM", at_most(mu)),
        ("OpenDP, by hand (Gaussian)", at_most(mu)),
        ("Tailoring DP, as claimed (pure epsilon)", pure),
    ):
        add(method, f"epsilon {EPSILON:g}", {"at_most": bound}, 0.0)
    headline = {
        "attack_shap_right": rows[0]["right"]["all digits"],
        "attack_shap_right_3_digits": rows[0]["right"]["3 digits"],
        "attack_vitrail_right": right,
        "attack_vitrail_at_most": at_most(mu),
    }
    how = (
        f"{SMALL_TABLE} private rows (shap also with all of them); shap: five people explained, {TARGETS} targets; "
        f"lime: one person, {TARGETS} targets, the same seed with and without; DiCE: one person, "
        f"{DICE_TARGETS['random']} targets ({DICE_TARGETS['genetic']} of the genetic method), the same seeds; "
        f"Vitrail: five people explained, the target that would move them most, {RELEASES} releases with it and as "
        "many without, half of them to choose the threshold; at most: by the promise, whoever attacks and whatever "
        "they know"
    )
    return Part(headline, rows, how)
