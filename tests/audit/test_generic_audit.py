"""Any curve and any ranking attacked end to end, with explainers that betray one row as loudly as they can."""

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE
from vitrail.explain.recipe import Terms
from vitrail.vault import rehearse
from vitrail.vault.questions import grouped_sum

DRAWS = 4_000
ENOUGH_FOR_BUGS = 1_000
UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
NOBODY, SOMEBODY = {"x": []}, {"x": [1.0]}
CROWD, CROWD_AND_ONE, CROWD_EXCHANGED = {"x": [0.0] * 9}, {"x": [0.0] * 9 + [1.0]}, {"x": [0.0] * 8 + [1.0]}
MU = 2.0


def data():
    return vt.PrivateData({"x": []}, UNIT, name="audited", n_rows_public=4, budget=vt.Budget(9, 1e-6))


def betraying_curve(model, X):
    """One corner of the box, or the opposite one, far outside of it."""
    return np.full(3, 1e9 if (X["x"] == 1).any() else -1e9)


def betraying_ranking(model, X):
    return np.array([1.0, 2.0, 3.0, 4.0]) * (1e9 if (X["x"] == 1).any() else -1)


def question_of(explainer):
    talk = explainer.conversation()
    return next(talk.recipe(Terms.of(talk.data, MU))).question


def curves():
    explainer = vt.AnyCurve(
        data(), betraying_curve, x_grid=[0, 1, 2], y_range=(-1, 3), default=-1.0, groups=2, isolation="none"
    )
    return question_of(explainer)


def rankings(top_k=None):
    return question_of(vt.AnyRanking(data(), betraying_ranking, items=list("abcd"), top_k=top_k, groups=2, isolation="none"))


def audit(question, neighbours, relation="add-remove", draws=DRAWS):
    def run(rows, draws):
        return rehearse(question, rows, UNIT, mu=MU, n_rows_public=4, draws=draws, neighbours=relation, block_rows=2)

    return vt.audit.mechanism(run, neighbours, MU, draws=draws, confidence=CONFIDENCE)


CASES = {
    "curve, a row more": (curves, (NOBODY, SOMEBODY), "add-remove"),
    "curve, a row exchanged": (curves, (CROWD, CROWD_EXCHANGED), "replace-one"),
    "ranking, a row more": (rankings, (CROWD, CROWD_AND_ONE), "add-remove"),
    "ranking, a row exchanged": (rankings, (CROWD, CROWD_EXCHANGED), "replace-one"),
    "first two, a row more": (lambda: rankings(2), (CROWD, CROWD_AND_ONE), "add-remove"),
}


NAMES = [name if place < 2 else pytest.param(name, marks=pytest.mark.slow) for place, name in enumerate(CASES)]


@pytest.mark.parametrize("name", NAMES)
def test_one_row_is_told_no_better_than_promised(name):
    make, neighbours, relation = CASES[name]
    found = audit(make(), neighbours, relation)
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", NAMES)
def test_one_row_is_told_as_well_as_promised(name):
    make, neighbours, relation = CASES[name]
    found = audit(make(), neighbours, relation)
    assert found.tightness >= 0.5, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_a_ranking_charged_for_half_its_distance_is_caught(monkeypatch):
    real = grouped_sum.largest_distance
    monkeypatch.setattr(grouped_sum, "largest_distance", lambda places: real(places) / 2)
    assert audit(rankings(), (CROWD, CROWD_AND_ONE), draws=ENOUGH_FOR_BUGS).refuted


@pytest.mark.usefixtures("planted_noise")
def test_a_vault_that_trusts_the_ranker_is_caught(monkeypatch):
    """Scores taken as points: a group can then vote with any weight."""
    monkeypatch.setattr(grouped_sum, "points_of", lambda scores, places: np.clip(scores, -6, 6))
    assert audit(rankings(), (CROWD, CROWD_AND_ONE), draws=ENOUGH_FOR_BUGS).refuted


@pytest.mark.usefixtures("planted_noise")
def test_groups_that_are_not_clipped_are_caught(monkeypatch):
    def unclipped(self, said):
        usable = np.where(np.isfinite(said), np.clip(said, -9, 9), self.question.default)
        return np.rint((usable - self._middle) / self.step).astype(np.int64)

    monkeypatch.setattr(grouped_sum.GroupedSumPlan, "_on_grid", unclipped)
    assert audit(curves(), (NOBODY, SOMEBODY), draws=ENOUGH_FOR_BUGS).refuted
