"""Golden vectors of the live page's search: small panes, models that both languages compute to the last bit, and answers.

    python tools/make_golden_counterfactual.py            # writes web/golden/counterfactual*
    python tools/make_golden_counterfactual.py answers    # keeps its panes and models, and writes the answers anew

The TypeScript in web/src/counterfactual has to give the same answers (web/tests/counterfactual.test.ts), and today's Python
has to give them again (tests/live/test_golden_counterfactual.py). Noise is drawn anew whenever panes are written.

The models are sums of trees over features whose leaves are multiples of 2^-20: their sums are exact in any order. Answers
from the search's last resort, random rows, are left out: its generator is NumPy's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor

import vitrail as vt
from vitrail._types import Floats
from vitrail.live.prepared_search import prepared_search
from vitrail.pane import Pane
from vitrail.schema import Column
from vitrail.schema.rules import Rule
from vitrail.solve.counterfactual import search
from vitrail.solve.counterfactual.fitted import FittedCounterfactual

ROOT = Path(__file__).resolve().parent.parent
DATA, GOLDEN = ROOT / "examples" / "data", ROOT / "web" / "golden"
NAMES = GOLDEN / "counterfactual.json"
N_ROWS, EPSILON, TOTAL = 4_000, 3.0, 3
PEOPLE = {"sides": 20, "range": 8, "three": 12, "odd": 20}
LEAF = 2.0**-20
VARIED = ("education", "occupation", "hours-per-week")
"""Columns that may change in the second question about everybody."""


@dataclass(frozen=True)
class Forest:
    """A sum of trees over features, held to a range; ``trees`` as lists of nodes, of which leaves have no feature."""

    base: float
    trees: list[list[list[float]]]
    low: float
    high: float

    @classmethod
    def fit(cls, features: Floats, target: Floats, low: float, high: float) -> Forest:
        """Boosted trees with leaves on the grid."""
        boosted = GradientBoostingRegressor(n_estimators=24, max_depth=3, learning_rate=0.2, random_state=0)
        boosted.fit(features, target)
        trees = []
        for grown in boosted.estimators_[:, 0]:
            tree = grown.tree_
            leaves = np.rint(tree.value[:, 0, 0] * boosted.learning_rate / LEAF) * LEAF
            nodes = zip(tree.feature, tree.threshold, tree.children_left, tree.children_right, leaves, strict=True)
            trees.append([[float(max(f, -1)), float(t), float(a), float(b), float(v)] for f, t, a, b, v in nodes])
        return cls(float(np.rint(target.mean() / LEAF) * LEAF), trees, low, high)

    def __call__(self, features: Floats) -> Floats:
        total = np.full(len(features), self.base)
        for tree in self.trees:
            nodes, place = np.array(tree), np.zeros(len(features), dtype=np.intp)
            while (inner := nodes[place, 0] >= 0).any():
                column = np.where(inner, nodes[place, 0], 0).astype(np.intp)
                left = features[np.arange(len(features)), column] <= nodes[place, 1]
                place = np.where(inner, np.where(left, nodes[place, 2], nodes[place, 3]), place).astype(np.intp)
            total += nodes[place, 4]
        return np.asarray(np.clip(total, self.low, self.high))

    def model(self, name: str) -> vt.Model:
        """As Vitrail asks it."""
        return vt.Model(self.__call__, range=(self.low, self.high), inputs="features", name=name)


# --- data ----------------------------------------------------------------------------------------------------------------


def adult_rows() -> tuple[vt.Schema, pd.DataFrame]:
    """Adult with its own rules: age grows, education and its years go together, sex and race stay."""
    rows = pd.read_parquet(DATA / "adult.parquet").sample(N_ROWS, random_state=0)
    return vt.Schema.load(DATA / "adult.schema.json"), rows


def odd_rows() -> tuple[vt.Schema, pd.DataFrame]:
    """A table with everything that a rule can be about: codes, orders, ranges, links, fractions, one-way columns."""
    generator = np.random.default_rng(7)
    columns: dict[str, Column] = {
        "debt": vt.Numeric(0, 50, codes=(-9, -8), missing=-9, change="down"),
        "income": vt.Numeric(0, 130.7),
        "oldest": vt.Numeric(0, 40),
        "average": vt.Numeric(0, 40, integer=True),
        "rate": vt.Numeric(-1, 1),
        "score": vt.Numeric(0, 999, integer=True, codes=(-1,)),
        "school": vt.Categorical(["none", "some", "degree"], ordered=True, change="up"),
        "job": vt.Categorical(["clerk", "nurse", "driver", "boss"]),
        "badge": vt.Categorical(["red", "green"]),
        "wage": vt.Numeric(0, 10),
        "region": vt.Categorical(["n", "s"], change="never"),
    }
    rules: list[Rule] = [
        vt.AtLeast("oldest", "average"),
        vt.Within("rate", -0.5, 0.75),
        vt.Link("job", "badge", {"clerk": "red", "nurse": "green", "driver": "red", "boss": "green"}),
        vt.Link("job", "wage", {"clerk": 2.5, "nurse": 3.25, "driver": 2.75, "boss": 9.1}),
    ]
    job, n = generator.integers(4, size=N_ROWS), N_ROWS
    oldest = generator.gamma(4, 3, n).clip(0, 40)
    rows = pd.DataFrame(
        {
            "debt": np.where(generator.random(n) < 0.2, generator.choice([-9, -8], n), generator.gamma(2, 6, n).clip(0, 50)),
            "income": generator.gamma(3, 15, n).clip(0, 130.7),
            "oldest": oldest,
            "average": np.floor(oldest * generator.random(n)),
            "rate": generator.normal(0, 0.4, n).clip(-1, 1),
            "score": np.where(generator.random(n) < 0.15, -1, generator.integers(0, 1000, n)),
            "school": np.array(["none", "some", "degree"])[generator.integers(3, size=n)],
            "job": np.array(["clerk", "nurse", "driver", "boss"])[job],
            "badge": np.array(["red", "green", "red", "green"])[job],
            "wage": np.array([2.5, 3.25, 2.75, 9.1])[job],
            "region": generator.choice(["n", "s"], n),
        }
    )
    return vt.Schema(columns, rules), rows


def released(schema: vt.Schema, rows: pd.DataFrame, name: str, target: str | None = None) -> Pane:
    """Private rows alone."""
    budget = vt.Budget(epsilon=EPSILON, delta=1e-6)
    data = vt.PrivateData(rows, schema, name=name, n_rows_public=N_ROWS, budget=budget, target=target)
    return vt.release(data, epsilon=EPSILON, parts=["rows"])


def trained() -> dict[str, list[Forest]]:
    """The models, by case."""
    schema, rows = adult_rows()
    read = schema.without("income")
    features = read.features(read.read(rows))[0]
    rich, age, hours = (np.asarray(values) for values in (rows["income"] == ">50K", rows["age"], rows["hours-per-week"]))
    blind = features.copy()
    blind[:, read.feature_slices["hours-per-week"]] = 0.0
    third = (rich & (age < 45), rich & (age >= 45), ~rich)
    odd, odd_table = odd_rows()
    odd_features = odd.features(odd.read(odd_table))[0]
    # Either or, so that two changes can be undone together and not alone; and an order that matters.
    either = (odd_table["income"] > 45) ^ (odd_table["rate"] > 0.1), (odd_table["score"] > 500) ^ (odd_table["debt"] > 10)
    paid = 2.0 * either[0] + 1.5 * either[1] + 0.08 * (odd_table["average"] - 0.5 * odd_table["oldest"])
    paid = paid + 0.1 * odd_table["wage"] + 0.5 * (odd_table["school"] == "degree")
    return {
        "sides": [Forest.fit(features, rich.astype(float), 0, 1)],
        "range": [Forest.fit(blind, hours.astype(float), 0, 99)],
        "three": [Forest.fit(features, side.astype(float), 0, 1) for side in third],
        "odd": [Forest.fit(odd_features, np.asarray(paid > paid.quantile(0.6), dtype=float), 0, 1)],
    }


# --- answers -------------------------------------------------------------------------------------------------------------


def pane_path(case: str) -> Path:
    """Of a case's pane."""
    return GOLDEN / ("counterfactual_odd.zip" if case == "odd" else "counterfactual_adult.zip")


def fitted_of(case: str, forests: list[Forest]) -> FittedCounterfactual:
    """The search on a committed pane."""
    rows = Pane.load(pane_path(case)).private_rows
    models = [forest.model(f"{case} {number}") for number, forest in enumerate(forests)]
    middle = (forests[0].low + forests[0].high) / 2
    return FittedCounterfactual.on_rows(rows, models[0] if len(models) == 1 else models, middle)


def wishes(case: str) -> list[dict[str, Any]]:
    """What everybody of a case is asked for, in the page's words."""
    if case == "range":
        return [{"desired": [45, None]}, {"desired": [None, 30.5]}, {"desired": [41.25, 43]}]
    if case == "three":
        return [{}, {"desiredClass": 1}]
    return (
        [{}, {"total": 5}, {"vary": [*VARIED]}]
        if case == "sides"
        else [{}, {"total": 1, "vary": ["income", "average", "wage"]}]
    )


def answers_of(fitted: FittedCounterfactual, point: Mapping[Hashable, Any], wish: dict[str, Any]) -> dict[str, Any] | None:
    """What Python answers to one person; None where that came from random rows."""
    names = {"desired": "desired", "desiredClass": "desired_class", "vary": "features_to_vary"}
    found = fitted(point, total_CFs=wish.get("total", TOTAL), **{names[key]: wish[key] for key in wish if key in names})
    schema, (answers,), (message,) = fitted.picture.schema, found.answers, found.messages
    kind = "found" if answers else "already" if "already" in message else "none"
    if answers and RANDOM_ROWS.used:
        return None
    return {
        "point": schema.read_points(point)[0].tolist(),
        "wish": wish,
        "kind": kind,
        "output": found.outputs[0],
        "rows": [schema.read_points(answer.row)[0].tolist() for answer in answers],
        "distance": [answer.distance for answer in answers],
        "plausibility": [answer.plausibility for answer in answers],
        "outputs": [answer.output for answer in answers],
    }


class RandomRows:
    """Tells whether the search's last resort was looked at."""

    def __init__(self, of: Callable[..., search.Candidates]) -> None:
        self._of, self.used = of, False

    def __call__(self, asked: search.Search, points: Any) -> search.Candidates:
        """The last resort."""
        self.used = len(points) > 0
        return self._of(asked, points)


RANDOM_ROWS = RandomRows(search._random)


def answered(case: str, forests: list[Forest]) -> list[dict[str, Any]]:
    """All answers of a case."""
    search._random = RANDOM_ROWS  # type: ignore[assignment]
    fitted = fitted_of(case, forests)
    schema, picture = fitted.picture.schema, fitted.picture
    assert picture.rows is not None
    drawn = picture.rows.raw(PEOPLE[case], seed=99)
    people = pd.DataFrame(schema.frame(drawn)).to_dict("records")
    told = (answers_of(fitted, point, wish) for point in people for wish in wishes(case))
    return [answer for answer in told if answer is not None]


def main(keep: bool) -> None:
    """Write everything, or the answers alone."""
    if not keep:
        adult, odd = adult_rows(), odd_rows()
        released(*adult, "adult", "income").save(pane_path("sides"))
        released(*odd, "odd").save(pane_path("odd"))
        models = trained()
    else:
        models = {case: [Forest(**f) for f in told["models"]] for case, told in json.loads(NAMES.read_text()).items()}
    told = {}
    for case, forests in models.items():
        fitted = fitted_of(case, forests)
        prepared = prepared_search(fitted, ranges=case == "range")
        (GOLDEN / f"counterfactual_{case}_search.zip").write_bytes(prepared)
        answers = answered(case, forests)
        told[case] = {
            "schema": fitted.picture.schema.to_json(),
            "models": [vars(forest) for forest in forests],
            "answers": answers,
        }
        kinds = [answer["kind"] for answer in answers]
        print(case, f"{len(prepared)} bytes prepared", {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)})
    NAMES.write_text(json.dumps(told, separators=(",", ":"), allow_nan=False) + "\n")


if __name__ == "__main__":
    main(keep=sys.argv[1:] == ["answers"])
