"""What would have changed the answer: ours beside DiCE's methods, on the same people and forest, held to the same rules.

DiCE is told what it can be told: which columns never change, and that age and education only go up, for each person anew.
That a degree has its years of education cannot be said to it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import warnings

import numpy as np
import pandas as pd

import vitrail as vt
from comparison_setup import EPSILON, Bench, clocked, synthetic_rows
from peers import dice
from reasons_counterfactual import breaks_rules, lengths
from running import Part, Row

ANSWERS = 3
METHODS = ("random", "genetic", "kdtree")
PEOPLE = 30
"""DiCE's genetic method takes seconds for each."""


class Predictor(dice.Predictor):
    """The forest reads raw rows, so features are not needed."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.schema, bench.probability)
        self._bench = bench

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        high = self._bench.probability(read(self._bench.schema, frame))
        return np.stack([1 - high, high], axis=1)


def read(schema: vt.Schema, frame: pd.DataFrame) -> np.ndarray:
    """As ``dice.read``, a column at a time: populations are large, and the time is DiCE's to spend."""
    made = np.empty((len(frame), schema.n_columns))
    for place, (name, column) in enumerate(schema.items()):
        if isinstance(column, vt.Numeric):
            made[:, place] = np.clip(pd.to_numeric(frame[name]).to_numpy(dtype=np.float64), column.low, column.high)
        else:
            made[:, place] = pd.Categorical(frame[name].astype(str), categories=list(map(str, column.levels))).codes
    return made


def dice_answers(bench: Bench, rows: np.ndarray, people: np.ndarray, method: str) -> list[np.ndarray]:
    """For each person up to three raw rows."""
    import dice_ml

    schema, predictor = bench.schema, Predictor(bench)
    frame = pd.DataFrame(schema.frame(rows))
    model = dice_ml.Model(model=predictor, backend="sklearn", model_type="classifier")
    free = [name for name, column in schema.items() if column.change != "never"]
    up = {name: place for place, (name, column) in enumerate(schema.items()) if column.change == "up"}
    queries, found = pd.DataFrame(schema.frame(people)), list[np.ndarray]()
    texts = {name: object for name, column in schema.items() if not isinstance(column, vt.Numeric)}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        explainer = dice_ml.Dice(dice._data(schema, frame, predictor), model, method=method)
        np.random.seed(0)  # noqa: NPY002  what it draws from, and the line below
        random.seed(0)
        for place, person in enumerate(people):
            highs = {name: float(frame[name].max()) for name in up if isinstance(schema[name], vt.Numeric)}
            ranges = {name: [float(person[up[name]]), max(high, float(person[up[name]]))] for name, high in highs.items()}
            extra = {"random_seed": place} if method == "random" else {}
            try:
                told = explainer.generate_counterfactuals(
                    queries.iloc[[place]].astype(texts),
                    total_CFs=ANSWERS,
                    desired_class=1,
                    features_to_vary=free,
                    permitted_range=ranges,
                    **extra,
                )
                made = told.cf_examples_list[0].final_cfs_df
            except Exception:  # it raises where it finds nothing
                made = None
            some = made is not None and len(made)
            found.append(read(schema, made[list(schema)]) if some else np.empty((0, schema.n_columns)))
    return found


def our_answers(bench: Bench, people: np.ndarray) -> list[np.ndarray]:
    fitted = vt.Counterfactual(bench.data(), bench.model, rows=True).fit(epsilon=EPSILON)
    out = fitted(pd.DataFrame(bench.schema.frame(people)), desired_class=1, total_CFs=ANSWERS)
    empty = np.empty((0, bench.schema.n_columns))
    return [bench.schema.read_points([dict(one.row) for one in some]) if some else empty for some in out.answers]


def judged(bench: Bench, people: np.ndarray, answers: list[np.ndarray], real: np.ndarray) -> Row:
    """Judged by the forest and by real rows alone."""
    from papers.counterfactual_cases import nearest

    schema = bench.schema
    places = np.repeat(np.arange(len(people)), [len(some) for some in answers])
    every, whose = np.concatenate(answers), people[places]
    right = bench.probability(every) >= 0.5
    broken = np.array([breaks_rules(schema, *pair) for pair in zip(whose, every, strict=True)])
    private = {row.tobytes() for row in np.ascontiguousarray(bench.rows)}
    apart = [
        float(lengths(schema, first[None], second[None])[0])
        for some in answers
        for first, second in itertools.combinations(some, 2)
    ]
    return {
        "people": len(people),
        "answered": float(np.mean([len(some) > 0 for some in answers])),
        "answers_each": float(np.mean([len(some) for some in answers])),
        "confirmed": float(right.mean()),
        "breaking_a_rule": float(broken.mean()),
        "changed": float((every != whose).sum(axis=1).mean()),
        "distance": float(lengths(schema, every, whose).mean()),
        "to_nearest_real_row": float(nearest(schema.features(every)[0], real).mean()),
        "apart": float(np.mean(apart)) if apart else None,
        "copies_of_a_private_row": float(np.mean([row.tobytes() in private for row in np.ascontiguousarray(every)])),
    }


def counterfactuals(bench: Bench) -> Part:
    """Three answers each for people with a low predicted income."""
    others = bench.read(bench.others)
    low = bench.probability(others) < 0.5
    people, real = others[low][: min(PEOPLE, len(bench.people))], bench.schema.features(others[~low])[0]
    rows: list[Row] = []

    def add(method: str, promise: str, answers: list[np.ndarray], seconds: float) -> None:
        rows.append({"method": method, "promise": promise, **judged(bench, people, answers, real)})
        rows[-1]["seconds"] = seconds / len(people)
        print("  ", rows[-1], flush=True)

    with clocked() as clock:
        found = our_answers(bench, people)
    add("Vitrail", f"epsilon {EPSILON:g}", found, clock.seconds)
    for method in METHODS:
        with clocked() as clock:
            found = dice_answers(bench, bench.rows, people, method)
        add(f"DiCE, {method}", "nothing promised", found, clock.seconds)
    with clocked() as clock:
        found = dice_answers(bench, synthetic_rows(bench, EPSILON, 0), people, "genetic")
    add("mbi's rows, then DiCE, genetic", f"epsilon {EPSILON:g}", found, clock.seconds)
    by = {row["method"]: row for row in rows}
    headline = {
        "cf_answered": by["Vitrail"]["answered"],
        "cf_distance_over_dice_genetic": by["Vitrail"]["distance"] / by["DiCE, genetic"]["distance"],
        "cf_apart_over_dice_genetic": by["Vitrail"]["apart"] / by["DiCE, genetic"]["apart"],
        "cf_kdtree_copies": by["DiCE, kdtree"]["copies_of_a_private_row"],
    }
    how = (
        f"{len(people)} people whom the forest gives less than 0.5, {ANSWERS} answers asked for each; confirmed: the "
        "forest agrees; breaking a rule: of those declared with the table (what never changes, what only goes up, "
        "years of education that belong to a degree), all of which but the last DiCE was told; distance: L1 in the "
        "encoding, numbers in [0, 1], levels one-hot; apart: the same between two answers for one person; to the "
        "nearest real row: Euclidean, to people of the wanted class who are in no vault; seconds: processor seconds "
        "per person, everything from the rows on"
    )
    return Part(headline, rows, how)
