"""Laplace sums and the curves that are made of them, attacked on worst-case neighbours."""

import math

import numpy as np
import pytest
from scipy.stats import beta

import vitrail as vt
from error_rates import CONFIDENCE
from vitrail.vault import PublicRows

DRAWS, EPSILON = 40_000, 1.0
SCHEMA = vt.Schema({"x": vt.Numeric(-1, 1), "y": vt.Numeric(-1, 1)})


def both(block: vt.Block) -> np.ndarray:
    return np.stack([block.column("x"), block.column("y")], axis=1)


def least_epsilon(often: int, seldom: int, draws: int) -> float:
    """The largest epsilon that both counts refute, at ``CONFIDENCE`` each: exact bounds of two probabilities."""
    tail = 1 - CONFIDENCE
    low, high = float(beta.ppf(tail, often, draws - often + 1)), float(beta.isf(tail, seldom + 1, draws - seldom))
    return math.log(low / high)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("norm", ["l1", "max"])
def test_the_claim_holds_and_is_used_up(norm: str, neighbours: str) -> None:
    """On the event where the odds change by all of epsilon: sums as far out as those with the row, and on its side."""
    row = (1.0, 0.0) if norm == "l1" else (1.0, 1.0)
    crowd = [(0.2, -0.3), (-0.9, 0.4), (0.0, 0.1)]
    other = [] if neighbours == "add-remove" else [(-row[0], -row[1])]
    question = vt.LaplaceSum(both, 2, 1.0, norm)  # type: ignore[arg-type]
    sums = []
    for rows in ([*crowd, row], [*crowd, *other]):
        x, y = zip(*rows, strict=True)
        held = PublicRows({"x": list(x), "y": list(y)}, SCHEMA, n_rows_public=4, neighbours=neighbours)
        sums.append(held.draws(question, mu=EPSILON, draws=DRAWS))
    # What the noise would have to be, if the row is there; and if it is not.
    middle, moved = np.sum(crowd, axis=0), np.array(row)
    seen = []
    for drawn in sums:
        there, away = drawn - middle - moved, drawn - middle - (np.sum(other, axis=0) if other else 0.0)
        size = (lambda v: np.abs(v).sum(axis=1)) if norm == "l1" else (lambda v: np.abs(v).max(axis=1))
        farther = size(away) - size(there)
        seen.append(int((farther > 0.98 * (1 if neighbours == "add-remove" else 2)).sum()))
    found = least_epsilon(seen[0], seen[1], DRAWS)
    assert found <= EPSILON
    assert found > 0.75 * EPSILON  # a bound that is wrong by a factor of two would not pass
    assert least_epsilon(seen[0], seen[1], DRAWS) > 0


SEX = vt.Schema({"sex": vt.Categorical(["f", "m"]), "z": vt.Numeric(0, 1)})


def test_a_curve_keeps_its_promise_where_one_row_is_all_or_nothing() -> None:
    """The model says 1 for one row and 0 for all others, at both levels: the level of the curve is what gives it away."""
    model = vt.Model(lambda x: (x[:, 1] > 0.5).astype(float), range=(0, 1), inputs="values", name="the one")
    data = vt.PrivateData(
        {"sex": [], "z": []}, SEX, name="few", n_rows_public=8, budget=vt.Budget(9, 1e-6, training=(8, 0)), ledger="memory",
        neighbours="replace-one",
    )  # fmt: skip
    talk = vt.PartialDependence(data, model, columns=["sex"], noise="laplace").conversation()
    ask = _last_question(talk, data)
    sums = []
    for z in (1.0, 0.0):
        rows = PublicRows({"sex": ["f"] * 8, "z": [*[0.0] * 7, z]}, SEX, n_rows_public=8, neighbours="replace-one")
        sums.append(rows.draws(ask, mu=EPSILON, draws=DRAWS))
    seen = [int((drawn.min(axis=1) > -2.99).sum()) for drawn in sums]  # eight rows at -1/2, but for the one
    found = least_epsilon(seen[0], seen[1], DRAWS)
    assert 0.6 * EPSILON < found <= EPSILON


def _last_question(talk, data):  # type: ignore[no-untyped-def]
    """What the conversation asks about the model, from a rehearsal on nobody's rows."""
    from vitrail.explain.quoted import stand_in

    asked, terms = [], talk.terms(EPSILON)
    answer = stand_in(terms, 64)

    def listening(ask, units, step):  # type: ignore[no-untyped-def]
        asked.append(ask.question)
        return answer(ask, units, step)

    talk.run(terms, talk.currency.units(EPSILON), listening)
    return asked[-1]
