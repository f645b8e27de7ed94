"""A whole release attacked: everything that a pane holds, against a row that every part can see.

The neighbours differ in one row that fills a bin of every column, has the longest vector of the synopsis and is alone in its
class. The adversary reads the pane as anybody can: what each part released, along the direction in which the row moves it,
and what curves and importance say. Releases are made through ``vt.release`` itself, ledger and all. How the row moves a
release is public knowledge (mechanism and rows are the adversary's own), so it is computed from releases without noise.

Two audits: a short one, of 48 releases on each side, whose adversary asks one question fixed beforehand (the likelihood
ratio of the three parts whose direction is public knowledge, against the middle between both), so that no draw is spent on
learning; and the library's own instrument, a thousand releases on each side: some minutes, hence among the slow tests.
Promises are tested on fresh noise, whether too little noise is seen on planted noise.
"""

import functools
import warnings
from unittest import mock

import numpy as np
import pytest
from scipy.stats import beta, norm

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise

pytestmark = pytest.mark.usefixtures("known_to_be_row_wise", "shares_once", "curves_in_a_hurry")
DRAWS = 1_000
MU = 3.0
"""A thousand draws cannot show more than mu = 3.4 with that confidence, however much a release leaks."""
FEW_DRAWS = 48
FEW_MU = 0.5
"""Of the short audit, which cannot show more than mu = 0.67."""
SCORED = ("rows", "local", "classes")
"""Parts whose shape does not depend on earlier releases; groups of tables are chosen from the counts, points and clip of
mean reasons from the rows."""
SCHEMA = vt.Schema({"c": vt.Categorical(["a", "b"]), "x": vt.Numeric(0, 1), "t": vt.Numeric(0, 1)})
PARTS = ("rows", "reasons", "local", "pdp", "ale", "importance", "counterfactual")
FEW_PARTS = ("rows", "local", "counterfactual")
"""Of the short audit: those that are scored, for the whole price."""
NOBODY = {"c": [], "x": [], "t": []}
FIRST = {"c": ["b"], "x": [1.0], "t": [0.0]}
SECOND = {"c": ["a"], "x": [0.0], "t": [1.0]}
MODEL = vt.Model(lambda features: features[:, 1] * (0.5 + 0.5 * features[:, 2]), range=(0, 1), name="second level")


def released(rows, mu, relation, parts):
    data = vt.PrivateData(
        rows, SCHEMA, name="audited", target="t", n_rows_public=4, budget=vt.Budget(1e5, 1e-6), neighbours=relation,
        block_rows=2,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # With a weight of their own rows do not take most of so low a price: every part shall see the row.
        pane = vt.release(data, MODEL, mu=mu, parts=parts, weights={"rows": 3.0})
    assert pane.cost <= vt.Cost.of_mu(mu)
    return pane


def told(pane):
    """By part: what was released, in units of its noise."""
    rows, synopsis, picture = pane.private_rows, pane.synopsis, pane.class_picture
    counts = [column / rows.counts_sigma for column in rows.counts]
    moments = [part.ravel() / synopsis.sigma for part in synopsis.parts]
    classes = picture.sums.ravel() / picture.sums_sigma
    return {"rows": np.concatenate(counts), "local": np.concatenate(moments), "classes": classes}


def seen(pane):
    curves = [effects[name].y for effects in (pane.pdp, pane.ale) for name in ("c", "x")]
    reasons = pane.local({"c": "b", "x": 1.0}).values[0]
    return [*(float(one[-1] - one[0]) for one in curves), *map(float, pane.importance.scores), *map(float, reasons)]


@functools.cache
def expected(relation, parts):
    """By side, for mu = 1: what is released on average, in units of its noise."""
    with mock.patch("vitrail.vault.questions.question.rounded_gaussian", lambda sigma, size: np.zeros(size, np.int64)):
        return tuple(told(released(rows, 1.0, relation, parts)) for rows in PAIRS[relation])


def directions(relation):
    """In which direction the row moves what is released."""
    with_it, without = expected(relation, PARTS)
    found = {name: with_it[name] - without[name] for name in SCORED}
    return {name: move / np.linalg.norm(move) for name, move in found.items()}


PAIRS = {"add-remove": (FIRST, NOBODY), "replace-one": (FIRST, SECOND)}


def one_draw(relation, which):
    along, pane = directions(relation), released(PAIRS[relation][which], MU, relation, PARTS)
    parts = told(pane)
    scores = [float(parts[name] @ along[name]) for name in along]
    return [sum(scores), *scores, *seen(pane)]


def audit(relation, claimed):
    def run(which, draws):
        return np.array([one_draw(relation, which) for _ in range(draws)])

    return vt.audit.mechanism(run, (0, 1), claimed, draws=DRAWS, confidence=CONFIDENCE)


def scores(mu):
    """By side: log likelihood ratios of a few releases, times a constant; above zero speaks for the row."""
    with_it, without = expected("add-remove", FEW_PARTS)
    found = []
    for rows in (FIRST, NOBODY):
        side = []
        for _ in range(FEW_DRAWS):
            parts = told(released(rows, mu, "add-remove", FEW_PARTS))
            terms = [(parts[name] / mu, with_it[name], without[name]) for name in SCORED]
            side.append(sum(float((seen - (one + other) / 2) @ (one - other)) for seen, one, other in terms))
        found.append(np.array(side))
    return found


def least_mu(with_it, without):
    """A lower bound of mu at the confidence of ``error_rates``: exact binomial bounds on both error rates."""
    wrong = (1 - CONFIDENCE) / 2
    hits, alarms = int((with_it > 0).sum()), int((without > 0).sum())
    rate = beta.ppf(wrong, hits, FEW_DRAWS - hits + 1) if hits else 0.0
    false_rate = beta.isf(wrong, alarms + 1, FEW_DRAWS - alarms) if alarms < FEW_DRAWS else 1.0
    return float(norm.ppf(rate) - norm.ppf(false_rate))


@pytest.mark.parametrize("relation", PAIRS)
def test_every_scored_part_sees_the_row(relation):
    """Otherwise the audits below would look at noise alone and pass whatever the releases are."""
    with_it, without = expected(relation, PARTS)
    moved = [np.linalg.norm(with_it[name] - without[name]) for name in SCORED]
    assert min(moved) > 0.1, dict(zip(SCORED, moved, strict=True))
    assert 0.3 < np.linalg.norm(moved) < 1, dict(zip(SCORED, moved, strict=True))


def test_a_few_releases_do_not_break_the_promise():
    assert least_mu(*scores(FEW_MU)) <= FEW_MU


def test_a_few_releases_with_too_little_noise_do():
    expected("add-remove", FEW_PARTS)  # is public, and known before
    with planted_noise():
        assert least_mu(*scores(30 * FEW_MU)) > FEW_MU


@pytest.mark.slow
@pytest.mark.parametrize("relation", PAIRS)
def test_the_whole_pane_keeps_its_promise(relation):
    found = audit(relation, MU)
    assert not found.refuted, str(found)


@pytest.mark.slow
def test_a_pane_that_cost_more_than_it_says_is_caught():
    expected("add-remove", PARTS)
    with planted_noise():
        found = audit("add-remove", MU / 4)
    assert found.refuted, str(found)
