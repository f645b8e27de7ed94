"""How often the bands of reasons hold what the same values would be on all real rows."""

from __future__ import annotations

import numpy as np

import vitrail as vt
from reasons_setup import BOOSTING, Bench
from running import Part, Row
from vitrail.solve.shapley.reasons import explain_on_rows

DATA = ("adult", "bike", "framingham", "diabetes", "acs")
EPSILONS = (0.3, 1.0, 3.0)
RELEASES, PEOPLE = 10, 20
"""The error of a release is much the same for all people: many releases say more than many people."""
LEAST_PAIRS = 200
TUNED_ON = ("adult", "framingham")
"""On these the choice of what a band holds was looked at (and on COMPAS and German credit)."""


def bands(bench: Bench) -> Part:
    """Coverage by column, over releases and people, at three prices."""
    rows: list[Row] = []
    for name in DATA[:1] if bench.quick else DATA:
        case, truth = bench.case(name), bench.truth(name, BOOSTING).values
        model, people = bench.model(name, BOOSTING), bench.people(name)[:PEOPLE]
        for epsilon in EPSILONS:
            held, wide, off = [], [], []
            for _ in range(RELEASES):
                data = case.private_data(epsilon)
                released = vt.private_rows(data, epsilon=epsilon, columns=list(case.schema))
                found = explain_on_rows([model], case.schema, people, released)[0]
                assert found.lower is not None
                assert found.upper is not None
                of_people = truth[: len(people)]
                held.append((found.lower <= of_people) & (of_people <= found.upper))
                wide.append((found.upper - found.lower) / 2)
                off.append(found.values - of_people)
            by_column = np.concatenate(held).mean(axis=0)
            oracle = 1.96 * np.sqrt((np.concatenate(off) ** 2).mean(axis=0))
            rows.append(
                {
                    "data": name,
                    "epsilon": epsilon,
                    "overall": float(by_column.mean()),
                    "worst": float(by_column.min()),
                    "worst_column": case.schema.names[int(by_column.argmin())],
                    "width": float(np.median(np.concatenate(wide).mean(axis=0) / np.maximum(oracle, 1e-12))),
                    "pairs": RELEASES * len(people),
                }
            )
    headline = {
        "band_overall": min(row["overall"] for row in rows),
        "band_worst": min(row["worst"] for row in rows if row["pairs"] >= LEAST_PAIRS or bench.quick),
    }
    how = (
        f"share of (release, person) pairs in which a band of the boosted model's reasons holds the value on all real rows, "
        f"by column; {RELEASES} releases of rows alone, {PEOPLE} people, 1 024 rows as background; overall: mean over "
        f"columns, the least over data and epsilon; worst: the worst column of all; width: half-width over 1.96 root mean "
        f"squared errors, median over columns; looked at while choosing: {', '.join(TUNED_ON)}"
    )
    return Part(headline, rows, how)
