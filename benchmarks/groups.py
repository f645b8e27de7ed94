"""Groups: how often the bands of ``vt.GroupReport`` hold, how wide they are, and how many groups are shown.

    python benchmarks/groups.py --data FOLDER            # all parts, some minutes on one core
    python benchmarks/groups.py --only compas --quick    # one of them, few draws; nothing is written

A model is trained on every third row and explained on the others, so that it errs as models do. The exact sums are made once
for every choice of groups; releases are these sums with noise of the question's own law. Truths are counted on the rows,
by numpy, and not by the library. Constants (the shares of the vector, from how many rows on a group is shown) were chosen on
Adult; the other data judge.

A *cell* is one number of one group, or one comparison of all groups. *Held*: over all cells and releases in which it is
shown, the share in which the band holds the truth. *Worst*: the cell that held least, of those shown in at least
``LEAST_SHOWN`` releases. *Width*: mean half-width of such cells over that of an oracle, 1.96 root mean squared errors.
*Against a table of counts*: half-widths over those from counts of group x bin x outcome at the same price, the same bands. A
price at which a group of average size would not be shown is *refused* by the library, and not measured.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import reasons_setup
import vitrail as vt
from bands_data import READERS
from bench_data import data_folder
from running import Benchmark, Figure, Part, Row, options_of, run
from vitrail.accounting import mu_of
from vitrail.errors import InvalidInput
from vitrail.explain.recipe import Terms
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.groups.layout import Estimates
from vitrail.vault import PublicRows

EPSILONS = (0.1, 0.3, 1.0)
DELTA = 1e-6
DRAWS, LEAST_SHOWN = 400, 100
ASKED: dict[str, list[tuple[list[str], dict[str, list[float]]]]] = {
    "adult": [(["sex"], {}), (["race"], {}), (["race", "sex"], {})],
    "compas": [(["race"], {}), (["race", "sex"], {}), (["age"], {"age": [25, 45]})],
    "heloc": [(["MaxDelqEver"], {}), (["ExternalRiskEstimate"], {"ExternalRiskEstimate": [60, 70, 80]})],
    "acs": [(["RAC1P"], {}), (["RAC1P", "SEX"], {}), (["AGEP"], {"AGEP": [30, 45, 60]})],
    "bike": [(["mnth"], {"mnth": [4, 7, 10]}), (["weathersit", "workingday"], {})],
    "diabetes": [(["race"], {}), (["race", "gender"], {}), (["age"], {"age": [4, 7]})],
    "framingham": [(["sex"], {}), (["sex", "age"], {"age": [45, 55]})],
    "german": [(["personal_status_sex"], {}), (["age"], {"age": [30, 45]})],
}
"""By data: columns, and where numbers are cut."""
LOOKED_AT = {
    "adult": "constants were chosen here",
    "heloc": "measured again after a change: bands of differences and ratios come from bands of rates that are not cut to "
    "their range, because they had failed here",
    "compas": "measured again after the change for HELOC, before which it had held; nothing was changed for it",
    "acs": "measured again after the change for HELOC, before which it had held; nothing was changed for it",
    "bike": "measured again after the change for HELOC, before which it had held; nothing was changed for it",
}
"""Of the others nobody had looked at before everything was as it is."""


@dataclass(frozen=True, eq=False)
class Case:
    """Rows that the model was not trained on, their target, and its outputs."""

    schema: vt.Schema
    rows: np.ndarray
    target: np.ndarray
    outputs: np.ndarray
    model: vt.Model


@dataclass(frozen=True, eq=False)
class Bench:
    folder: Path
    draws: int
    _cases: dict[str, Case] = field(default_factory=dict)

    def case(self, name: str) -> Case:
        if name not in self._cases:
            self._cases[name] = fitted(READERS[name](self.folder))
        return self._cases[name]


def fitted(split: reasons_setup.Case) -> Case:
    """Gradient boosting on every third row; of a target with more than two values, its number."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    train = np.arange(len(split.rows)) % 3 == 0
    rows, target = split.rows[~train], split.target[~train]
    if (binary := set(np.unique(split.target)) == {0.0, 1.0}) is True:
        trained = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(split.rows[train], split.target[train])
    else:
        trained = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(split.rows[train], split.target[train])
    low, high = (0.0, 1.0) if binary else (0.0, 1000.0)

    def predict(raw: np.ndarray) -> np.ndarray:
        found = trained.predict_proba(raw)[:, 1] if binary else trained.predict(raw)
        return np.clip(found, low, high)

    model = vt.Model(predict, range=(low, high), inputs="values", name=f"model of {split.name}")
    return Case(split.schema, rows, target, predict(rows), model)


# --- releases ------------------------------------------------------------------------------------------------------------


def tables(case: Case, by: list[str], edges: Mapping[str, list[float]], epsilon: float, draws: int) -> list[vt.GroupTable]:
    """So many releases, from one pass over the rows."""
    column = vt.Numeric(0, 1 if set(np.unique(case.target)) == {0.0, 1.0} else 1000, integer=True)
    schema, n_rows, mu = vt.Schema({**case.schema, "the target": column}), len(case.rows), mu_of(epsilon, DELTA)
    empty = {name: [] for name in schema}
    data = vt.PrivateData(
        empty, schema, name="rows", target="the target", n_rows_public=n_rows, budget=vt.Budget(99, DELTA), ledger="memory"
    )
    talk = vt.GroupReport(data, case.model, by=by, edges=edges or None).conversation()
    talk.rehearse(mu)  # a price at which nothing could be shown is refused
    frame = case.schema.pandas(case.rows).assign(**{"the target": case.target})
    rows = PublicRows(frame, schema, n_rows, "the target", block_rows=4096, watches=False)
    recipe = talk.recipe(Terms.of(data, mu))
    question = next(recipe).question
    one, layout = rows.ask(question, mu=mu, delta=DELTA), None
    try:
        recipe.send(one)
    except StopIteration as stop:
        layout = stop.value
    values = rows.draws(question, mu=mu, draws=draws)
    return [replace(layout, sums=value.reshape(layout.sums.shape)) for value in values]


# --- truths --------------------------------------------------------------------------------------------------------------


def truths(case: Case, table: vt.GroupTable, by: list[str], edges: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    """Every measure, counted on the rows: (groups,), or (bins, groups) for those within bins of outputs."""
    group = np.zeros(len(case.rows), dtype=np.intp)
    for name in by:
        column, values = case.schema[name], case.rows[:, case.schema.column_index(name)]
        if isinstance(column, vt.Categorical):
            size, place = len(column.levels), values.astype(np.intp)
        else:
            cuts = edges.get(name) or list(range(int(column.low) + 1, int(column.high) + 1))
            size, place = len(cuts) + 1 + len(column.codes), np.searchsorted(cuts, values, side="right")
            for rank, code in enumerate(column.codes):
                place[values == code] = len(cuts) + 1 + rank
        group = group * size + place
    cut = np.array(table.layout.edges)
    outputs, target, binary = case.outputs, case.target, table.layout.outcome == "binary"
    selected, bins = outputs >= table.threshold, np.clip(np.searchsorted(cut, outputs, side="right") - 1, 0, len(cut) - 2)

    def mean(of: np.ndarray, where: np.ndarray) -> np.ndarray:
        return np.array(
            [of[where & (group == g)].mean() if (where & (group == g)).any() else np.nan for g in range(n_groups)]
        )

    n_groups, every = len(table.groups), np.ones(len(group), dtype=np.bool_)
    found = {
        "rows": np.bincount(group, minlength=n_groups).astype(np.float64),
        "selection_rate": mean(selected * 1.0, every),
        "mean_output": mean(outputs, every),
    }
    if binary:
        positive = target == 1
        found |= {
            "base_rate": mean(target, every),
            "true_positive_rate": mean(selected * 1.0, positive),
            "false_positive_rate": mean(selected * 1.0, ~positive),
            "precision": mean(target, selected),
            "accuracy": mean((selected == positive) * 1.0, every),
            "calibration_gap": mean(outputs - target, every),
        }
    else:
        errors = outputs - target
        found |= {"mean_outcome": mean(target, every), "mean_error": mean(errors, every)}
        found["mean_absolute_error"] = mean(np.abs(errors), every)
    for place in range(len(cut) - 1):
        found[f"mean_output {place}"] = mean(outputs, bins == place)
        found[f"mean_outcome {place}"] = mean(target, bins == place)
    return found


def true_between(table: vt.GroupTable, truth: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Comparisons of the groups that this release shows."""
    made = {}
    for name in table.between:
        measures = {
            "demographic_parity_difference": ["selection_rate"],
            "demographic_parity_ratio": ["selection_rate"],
            "equal_opportunity_difference": ["true_positive_rate"],
            "equalized_odds_difference": ["true_positive_rate", "false_positive_rate"],
            "accuracy_difference": ["accuracy"],
        }[name]
        rates = [truth[measure][table[measure].shown] for measure in measures]
        if any(np.isnan(rate).any() for rate in rates):
            continue
        made[name] = (
            rates[0].min() / rates[0].max() if name.endswith("ratio") else max(rate.max() - rate.min() for rate in rates)
        )
    return made


# --- counting ------------------------------------------------------------------------------------------------------------


@dataclass
class Cell:
    """Releases that showed a number: whether its band held, the squared error, the half-width."""

    held: list[bool] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)

    def add(self, truth: float, value: float, lower: float, upper: float) -> None:
        slack = 1e-9 * max(1.0, abs(truth))  # sums were put on a grid
        self.held.append(lower - slack <= truth <= upper + slack)
        self.squares.append((value - truth) ** 2)
        self.halves.append((upper - lower) / 2)

    @property
    def half(self) -> float:
        return float(np.mean(self.halves))

    @property
    def needed(self) -> float:
        """Half the width of an oracle's band."""
        return TWO_SIDED_95 * float(np.sqrt(np.mean(self.squares)))


def counted(case: Case, found: Sequence[vt.GroupTable], by: list[str], edges: Mapping[str, list[float]]) -> dict[str, Cell]:
    """Every cell over all releases."""
    truth = truths(case, found[0], by, edges)
    cells: dict[str, Cell] = defaultdict(Cell)
    for table in found:
        of_bins = {
            f"{name} {place}": bands for name, every in table.calibration.items() for place, bands in enumerate(every)
        }
        for name, bands in {"rows": table.rows, **{name: table[name] for name in table.measures}, **of_bins}.items():
            for number, group in enumerate(table.groups):
                if bands.shown[number] and not np.isnan(truth[name][number]):
                    cells[f"{name} of {group}"].add(truth[name][number], *(float(ends[number]) for ends in bands[:3]))
        for name, true in true_between(table, truth).items():
            cells[name].add(true, *(float(number) for number in table.between[name]))
    return dict(cells)


def against_counts(table: vt.GroupTable) -> float | None:
    """Mean half-width of the rates that people read, over that from counts of group x bin x outcome; None for numbers."""
    if table.layout.outcome != "binary":
        return None
    tiny = 1e-10  # what is not told
    shares = dict.fromkeys(table.layout.shares, tiny) | {"bin rows": 0.5, "bin outcome": 0.5}
    plain = replace(table.layout, shares=shares)
    names = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
    ours = Estimates(table.layout, table.sums, table.sigma)
    sums = ours.unknowns @ plain.system.T  # the same numbers, told in the other way
    theirs = Estimates(plain, sums, table.sigma)
    ratios = []
    for name in names:
        shown = table[name].shown
        mine, other = (kind.bands(kind.layout.measures[name], TWO_SIDED_95) for kind in (ours, theirs))
        ratios += list(((mine.upper - mine.lower) / (other.upper - other.lower))[shown])
    return float(np.mean(ratios)) if ratios else None


def measured(bench: Bench, name: str) -> Part:
    """All choices of groups of one dataset, at every price."""
    case, rows = bench.case(name), list[Row]()
    for by, edges in ASKED[name]:
        for epsilon in EPSILONS:
            try:
                found = tables(case, by, edges, epsilon, bench.draws)
            except InvalidInput:
                rows.append(
                    {"data": name, "by": " x ".join(by), "epsilon": epsilon, "rows": len(case.rows), "refused": True}
                )
                continue
            cells = counted(case, found, by, edges)
            often = {key: cell for key, cell in cells.items() if len(cell.held) >= min(LEAST_SHOWN, bench.draws)}
            worst = min(often, key=lambda key: float(np.mean(often[key].held)))
            row = {
                "data": name,
                "by": " x ".join(by),
                "epsilon": epsilon,
                "rows": len(case.rows),
                "refused": False,
                "groups": len(found[0].groups),
                "shown": float(np.mean([len(table.shown) for table in found])),
                "cells": len(often),
                "held": _held(list(cells.values())),
                "worst": float(np.mean(often[worst].held)),
                "worst_cell": worst,
                "width": _width([cell for key, cell in often.items() if " of " in key and not key.startswith("rows")]),
                "between_held": _held([cell for key, cell in cells.items() if " of " not in key]),
                "between_width": _width([cell for key, cell in often.items() if " of " not in key]),
                "half_width": float(np.median([table.half_width for table in found])),
                "against_counts": against_counts(found[0]),
            }
            rows.append(row)
            print(rows[-1], flush=True)
    bought = [row for row in rows if not row["refused"]]
    headline = {
        f"{name}_held": min(row["held"] for row in bought),
        f"{name}_worst": min(row["worst"] for row in bought),
        f"{name}_width": float(np.median([row["width"] for row in bought])),
        f"{name}_between_held": min(row["between_held"] for row in bought if row["between_held"] is not None),
        f"{name}_between_width": float(np.median([row["between_width"] for row in bought if row["between_width"]])),
    }
    chosen = LOOKED_AT.get(name, "nobody had looked at these data before")
    how = (
        f"gradient boosting trained on every third row, explained on the other {len(case.rows)}; {bench.draws} releases "
        f"each; cells shown in at least {min(LEAST_SHOWN, bench.draws)} of them; {chosen}"
    )
    return Part(headline, rows, how)


def _held(cells: Sequence[Cell]) -> float | None:
    held = [held for cell in cells for held in cell.held]
    return float(np.mean(held)) if held else None


def _width(cells: Sequence[Cell]) -> float | None:
    """Where the truth is an end of the range an estimate is often exactly that: such a cell needs nothing of its band."""
    return sum(cell.half for cell in cells) / sum(cell.needed for cell in cells) if cells else None


KEYS = ("held", "worst", "width", "between_held", "between_width")
BENCHMARK = Benchmark[Bench](
    name="groups",
    script="benchmarks/groups.py",
    quick="few draws",
    facts={"delta": DELTA, "neighbours": "add-remove", "epsilons": list(EPSILONS)},
    figures={
        name: Figure(lambda bench, name=name: measured(bench, name), tuple(f"{name}_{key}" for key in KEYS))
        for name in ASKED
    },
)


def bench_of(options: argparse.Namespace) -> Bench:
    return Bench(data_folder(options.data), 40 if options.quick else DRAWS)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), bench_of)


if __name__ == "__main__":
    main()
