"""Counterfactuals that a person can use: no redundant change, declared rules kept, not farther than the nearest row.

Four datasets with rules as an owner would declare them (what never changes, links, orders), gradient boosting trained on the
rows in the vault, people from rows that trained nothing and whom the model puts in the class that nobody wants. Judged by
brute force and the model alone, with nothing of the library's search: a change is redundant if undoing it, alone or with one
other, keeps the class (linked columns are one change; what breaks a declared order is no row to go back to).

    from reasons_counterfactual import counterfactuals
    counterfactuals(Path(DATA)).headline
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import vitrail as vt
from papers.counterfactual_cases import TUNED, Case
from running import ROOT, Part, Row
from vitrail.solve.counterfactual.permitted import Rules

EPSILON = 1.0
ANSWERS = 3
PEOPLE, DICE_PEOPLE = 75, 40
ORDERS = (
    ("MSinceOldestTradeOpen", "AverageMInFile"),
    ("MSinceOldestTradeOpen", "MSinceMostRecentTradeOpen"),
    ("AverageMInFile", "MSinceMostRecentTradeOpen"),
    ("NumInqLast6M", "NumInqLast6Mexcl7days"),
    ("NumTrades60Ever2DerogPubRec", "NumTrades90Ever2DerogPubRec"),
)


def case_of(name: str, schema: vt.Schema, table: pd.DataFrame, good: np.ndarray) -> Case:
    """Half of the rows in the vault, where the model is trained; the other half are people and real rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    order = np.random.default_rng(0).permutation(len(table))
    inside, outside = order[: len(table) // 2], order[len(table) // 2 :]
    rows, others = (table.iloc[places].reset_index(drop=True) for places in (inside, outside))
    fitted = HistGradientBoostingClassifier(random_state=0).fit(schema.features(schema.read(rows))[0], good[inside])
    model = vt.Model(fitted, output=1, inputs="features", name=f"{name} model")
    return Case(name, schema, rows, lambda x: fitted.predict_proba(x)[:, 1], model, others, 1)


def inferred(table: pd.DataFrame, changes: dict[str, str], rules: tuple[vt.AtLeast, ...] = ()) -> vt.Schema:
    """A schema read off a table that is public in a benchmark, with what may change."""
    made: dict[str, vt.Numeric | vt.Categorical] = {}
    for name, column in vt.Schema.infer(table).items():
        change = changes.get(name, "any")
        if isinstance(column, vt.Numeric):
            made[name] = vt.Numeric(column.low, column.high, integer=column.integer, change=change)
        else:
            made[name] = vt.Categorical(column.levels, change=change)
    return vt.Schema(made, rules)


def adult(folder: Path) -> Case:
    """With the schema that ships with the library: education is linked to its years."""
    table = pd.read_parquet(folder / "adult" / "adult.parquet").drop(columns=["split", "fnlwgt"])
    table = table[~(table == "?").any(axis=1)].reset_index(drop=True)
    schema = vt.Schema.load(ROOT / "examples" / "data" / "adult.schema.json").without("income")
    return case_of("Adult", schema, table, (table.pop("income") == ">50K").to_numpy())


def compas(folder: Path) -> Case:
    """Sex and race never change, age goes up."""
    names = ["age", "sex", "race", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "c_charge_degree"]
    table = pd.read_parquet(folder / "compas" / "compas_scores_two_years.parquet")
    good, table = (table["two_year_recid"] == 0).to_numpy(), table[names]
    return case_of("COMPAS", inferred(table, {"age": "up", "sex": "never", "race": "never"}), table, good)


def german(folder: Path) -> Case:
    """Personal status, sex and citizenship never change, age goes up."""
    table = pd.read_parquet(folder / "german_credit" / "german.parquet")
    good = (table.pop("class") == 1).to_numpy()
    changes = {"age": "up", "personal_status_sex": "never", "foreign_worker": "never"}
    return case_of("German credit", inferred(table, changes), table, good)


def heloc(folder: Path) -> Case:
    """Orders between columns; rows without any record are left out, and special codes read as zero."""
    table = pd.read_parquet(folder / "heloc" / "heloc.parquet")
    table = table[(table.drop(columns="RiskPerformance") != -9).any(axis=1)].reset_index(drop=True)
    good = (table.pop("RiskPerformance") == "Good").to_numpy()
    rules = tuple(vt.AtLeast(larger, smaller) for larger, smaller in ORDERS)
    return case_of("HELOC", inferred(table.clip(lower=0), {}, rules), table.clip(lower=0), good)


CASES: dict[str, Callable[[Path], Case]] = {"adult": adult, "compas": compas, "heloc": heloc, "german": german}


# --- judging -------------------------------------------------------------------------------------------------------------


def players(schema: vt.Schema) -> list[list[int]]:
    """Columns that are one change: linked ones together."""
    leader = {rule.other: rule.column for rule in schema.rules if isinstance(rule, vt.Link)}
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(schema.names):
        groups.setdefault(leader.get(name, name), []).append(place)
    return list(groups.values())


def breaks_rules(schema: vt.Schema, person: np.ndarray, row: np.ndarray) -> bool:
    """Whether a row breaks a rule about columns that it changes."""
    at = {name: place for place, name in enumerate(schema.names)}
    for rule in schema.rules:
        if isinstance(rule, vt.Link):
            places, values = [at[rule.column], at[rule.other]], list(rule.values.values())
            wrong = values[int(row[places[0]])] != row[places[1]]
        else:
            places = [at[rule.larger], at[rule.smaller]]
            wrong = row[places[0]] < row[places[1]]
        if wrong and (row[places] != person[places]).any():
            return True
    for name, column in schema.items():
        went = row[at[name]] - person[at[name]]
        if (column.change == "never" and went) or (column.change == "up" and went < 0):
            return True
    return False


def undone(schema: vt.Schema, person: np.ndarray, row: np.ndarray) -> Iterator[np.ndarray]:
    """The row with one change undone, and with two, as far as the rules let them."""
    changed = [group for group in players(schema) if (row[group] != person[group]).any()]
    for some in (*((group,) for group in changed), *combinations(changed, 2)):
        less = row.copy()
        for group in some:
            less[group] = person[group]
        if len(some) < len(changed) and not breaks_rules(schema, person, less):
            yield less


def redundant(case: Case, people: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """For each answer whether a change, alone or with one other, is not needed."""
    less = [(place, row) for place in range(len(answers)) for row in undone(case.schema, people[place], answers[place])]
    found = np.zeros(len(answers), dtype=np.bool_)
    if less:
        places, rows = zip(*less, strict=True)
        found[np.array(places)[case.sides(np.array(rows)) == case.wanted]] = True
    return found


def greedy(case: Case, person: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The row with its changes undone, each time the largest that keeps the class: the baseline, in ten lines."""
    while True:
        changed = [group for group in players(case.schema) if (row[group] != person[group]).any()]
        less = np.array([np.where(np.isin(np.arange(len(row)), group), person, row) for group in changed])
        less = less[case.sides(less) == case.wanted]
        if not len(less):
            return row
        row = less[lengths(case.schema, less, person[None]).argmin()]


def lengths(schema: vt.Schema, rows: np.ndarray, people: np.ndarray) -> np.ndarray:
    """L1 distances in the encoding."""
    return np.asarray(np.abs(schema.features(rows)[0] - schema.features(people)[0]).sum(axis=1))


def nearest_rows(case: Case, people: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """For each person the nearest of these rows, with what may not change put back, that the model puts in the class."""
    made, rules = np.full(people.shape, np.nan), Rules.of(case.schema, "all", None)
    for place, person in enumerate(people):
        own = np.repeat(person[None], len(rows), axis=0)
        near = np.argsort(lengths(case.schema, rows, own), kind="stable")[:2000]
        settled = rules.settle(own[: len(near)], rows[near])
        right = np.flatnonzero(case.sides(settled) == case.wanted)
        if len(right):
            best = lengths(case.schema, settled[right], own[: len(right)]).argmin()
            made[place] = greedy(case, person, settled[right[best]])
    return made


def mean_length(case: Case, people: np.ndarray, answers: np.ndarray, among: np.ndarray) -> float:
    return float(lengths(case.schema, answers[among], people[among]).mean())


# --- the figures ---------------------------------------------------------------------------------------------------------


def measured(case: Case, count: int, dice_count: int) -> Row:
    """One dataset: how our answers do, beside the nearest row's and DiCE's."""
    schema, frame = case.schema, case.people(2 * count)[-count:].reset_index(drop=True)
    people = schema.read(frame)
    fitted = vt.Counterfactual(case.vault(EPSILON), case.model, rows=True).fit(epsilon=EPSILON)
    fitted(frame[:1], desired_class=case.wanted)  # the rows of the class are drawn once
    out, seconds = timed(fitted, frame, case.wanted, 0.0)
    weighted, weighted_seconds = timed(fitted, frame, case.wanted, TUNED)
    told, resembling = case.told(out), case.told(weighted)
    answers = (*out.answers, *weighted.answers)
    every = schema.read_points([dict(one.row) for some in answers for one in some])
    whose = np.repeat(np.concatenate([people, people]), [len(some) for some in answers], axis=0)
    have = np.isfinite(told).all(axis=1)
    rows_of_class = fitted.picture.rows.raw(10_000, 1)
    rows_of_class = rows_of_class[case.sides(rows_of_class) == case.wanted]
    private = schema.read(case.rows)
    by_row, by_real = (nearest_rows(case, people, rows) for rows in (rows_of_class, private[case.sides(private) == 1]))
    both, both_real = (have & np.isfinite(baseline).all(axis=1) for baseline in (by_row, by_real))
    changes = (*out.changes, *weighted.changes)
    sets = [len({tuple(sorted(column for column, *_ in change)) for change in some}) for some in changes]
    distance = np.linalg.norm(schema.features(told[have])[0] - schema.features(people[have])[0], axis=1)
    row: Row = {
        "dataset": case.name,
        "people": len(people),
        "answered": float(have.mean()),
        "answers": len(every),
        "confirmed_by_the_model": float((case.sides(every) == case.wanted).mean()),
        "redundant": int(redundant(case, whose, every).sum()),
        "breaking_a_rule": sum(map(partial(breaks_rules, schema), whose, every)),
        "same_columns_twice": sum(len(some) - n for some, n in zip(answers, sets, strict=True)),
        "changes": float((told[have] != people[have]).sum(axis=1).mean()),
        "distance_l1": mean_length(case, people, told, have),
        "distance": float(distance.mean()),
        "to_nearest_real_row": nearest_distance(case, told[have]),
        "over_nearest_private_row": mean_length(case, people, told, both) / mean_length(case, people, by_row, both),
        "over_nearest_real_row": mean_length(case, people, told, both_real) / mean_length(case, people, by_real, both_real),
        "answered_by_nearest_row": float(np.isfinite(by_row).all(axis=1).mean()),
        "seconds_per_person": seconds / len(people),
        "weighted_seconds_per_person": weighted_seconds / len(people),
        "weighted_to_nearest_real_row": nearest_distance(case, resembling[have]),
        "weighted_distance_l1": mean_length(case, people, resembling, have),
        "weighted_changes": float((resembling[have] != people[have]).sum(axis=1).mean()),
    }
    return row | (dice_row(case, frame[:dice_count], told[:dice_count]) if dice_count else {})


def timed(
    fitted: vt.FittedCounterfactual, frame: pd.DataFrame, wanted: int, weight: float
) -> tuple[vt.Counterfactuals, float]:
    """Answers for all people in one call, and its processor seconds."""
    start = time.process_time()
    out = fitted(frame, desired_class=wanted, total_CFs=ANSWERS, plausibility_weight=weight)
    return out, time.process_time() - start


def nearest_distance(case: Case, answers: np.ndarray) -> float:
    """Mean distance to the nearest held-out real row of the wanted class."""
    from papers.counterfactual_cases import nearest

    return float(nearest(case.schema.features(answers)[0], case.real).mean())


def dice_row(case: Case, frame: pd.DataFrame, told: np.ndarray) -> Row:
    """DiCE's random method on the same people and model, with the rows themselves; empty where it is not installed."""
    try:
        from peers.dice import Predictor, counterfactuals

        predictor = Predictor(case.schema, case.probability)
        found = counterfactuals(case.schema, case.rows, predictor, frame, "random", case.wanted).rows
    except ImportError:
        return {}
    people = case.schema.read(frame)
    both = np.isfinite(found).all(axis=1) & np.isfinite(told).all(axis=1)
    ours, theirs = ((rows[both] != people[both]).sum(axis=1).mean() for rows in (told, found))
    return {"changes_on_dice_people": float(ours), "changes_of_dice": float(theirs), "people_of_dice": int(both.sum())}


def counterfactuals(folder: Path, *, people: int = PEOPLE, dice_people: int = DICE_PEOPLE) -> Part:
    """All datasets, and the headline: sums of what must not be, the worst of what is compared."""
    rows = [measured(make(folder), people, dice_people) for make in CASES.values()]
    headline = {
        "cf_people": sum(row["people"] for row in rows),
        "cf_validity": min(row["confirmed_by_the_model"] for row in rows),
        "cf_answered": min(row["answered"] for row in rows),
        "redundant_changes": sum(row["redundant"] for row in rows),
        "implausible_links": sum(row["breaking_a_rule"] for row in rows),
        "distance_vs_nearest_row": max(row["over_nearest_private_row"] for row in rows),
        "weight_seconds": max(row["weighted_seconds_per_person"] / row["seconds_per_person"] for row in rows),
        "weight_plausibility": max(row["weighted_to_nearest_real_row"] / row["to_nearest_real_row"] for row in rows),
    }
    if all("changes_of_dice" in row for row in rows) and dice_people:
        headline["changed_columns_vs_dice"] = max(row["changes_on_dice_people"] / row["changes_of_dice"] for row in rows)
    how = (
        f"{people} people of each of {len(rows)} datasets, rows that trained nothing and whom gradient boosting "
        "(scikit-learn, defaults, trained on the rows in the vault) puts in the class that is not wanted; Counterfactual at "
        f"epsilon {EPSILON:g}, {ANSWERS} answers asked for. Redundant: undoing a change, alone or with one other, keeps the "
        "class. Distances: L1 in the encoding, of the first answer; the nearest row is the nearest private row of the "
        "wanted class with changes undone greedily. Worst dataset, or the sum over them. The price of a change was chosen "
        "on other people of COMPAS and HELOC. The weight: processor seconds and distances to the nearest held-out real row "
        f"of the class with plausibility_weight {TUNED:g}, over those with 0. DiCE 0.12 random, defaults, given the "
        "rows themselves"
    )
    return Part(headline, rows, how)
