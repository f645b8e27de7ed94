"""Two breaches of the published code for global explanations, caught by the same audit that ours pass (docs/errata.md)."""

import numpy as np

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.accounting.guarantee import Guarantee
from vitrail.audit import mechanism

EPSILON = 1.5
GRID = 2.0**-20
# A row of the first level with effect +R is exchanged for one of the second level with effect +R (R = 1).
NEIGHBOURS = ((np.array([1.0, 0.0]), np.array([1.0, 0.0])), (np.array([0.0, 1.0]), np.array([0.0, 1.0])))


def laplace(generator, scale, shape):
    return np.round(generator.laplace(0, scale, shape) / GRID) * GRID


def evidence(outputs, scales):
    """The auditor's own post-processing: how much likelier each output is from the second dataset than from the first."""
    first, second = (np.concatenate([effects, *[counts] * (len(scales) // 2 - 1)]) for effects, counts in NEIGHBOURS)
    found = ((np.abs(outputs - first) - np.abs(outputs - second)) / scales).sum(axis=1)
    return np.round(found / GRID) * GRID


def published_categorical_ale(seed):
    """Two levels, replace-one: effects with 8/9 of epsilon, counts with 1/9, and again a histogram with 1/9.

    Effects are divided by nothing here: it is the releases that matter. A replaced row moves two counts by one each, so
    Lap(1/(eps/9)) costs 2/9 of epsilon, and the counts are released twice: 8/9 + 2/9 + 2/9 = 4/3 of what is claimed.
    """
    generator = np.random.default_rng(seed)

    def run(rows, draws):
        effects, counts = rows
        parts = [
            effects + laplace(generator, 2.0 / (8 * EPSILON / 9), (draws, 2)),
            counts + laplace(generator, 1.0 / (EPSILON / 9), (draws, 2)),
            counts + laplace(generator, 1.0 / (EPSILON / 9), (draws, 2)),
        ]
        return evidence(np.concatenate(parts, axis=1), np.repeat([2 / (8 * EPSILON / 9), 9 / EPSILON, 9 / EPSILON], 2))

    return run


def repaired(seed):
    """The same with 2/eps for histograms and one release of counts, at the same total."""
    generator = np.random.default_rng(seed)

    def run(rows, draws):
        effects, counts = rows
        parts = [
            effects + laplace(generator, 2.0 / (8 * EPSILON / 9), (draws, 2)),
            counts + laplace(generator, 2.0 / (EPSILON / 9), (draws, 2)),
        ]
        return evidence(np.concatenate(parts, axis=1), np.repeat([2 / (8 * EPSILON / 9), 18 / EPSILON], 2))

    return run


def test_counts_that_are_released_twice_at_half_the_scale_are_caught():
    claim = Guarantee(EPSILON, 0.0, 0.0, "replace-one")
    audit = mechanism(published_categorical_ale(1), NEIGHBOURS, claimed=claim, draws=400_000)
    assert audit.refuted
    assert not mechanism(repaired(2), NEIGHBOURS, claimed=claim, draws=400_000).refuted


def test_categories_read_off_the_data_are_caught():
    """np.unique shows with certainty whether the only person from a country is there."""
    generator = np.random.default_rng(3)

    def published(countries, draws):
        shown = len(np.unique(countries))
        return np.column_stack([np.full(draws, float(shown)), laplace(generator, 1.0, draws)])

    neighbours = (np.array(["A", "B", "Holand-Netherlands"]), np.array(["A", "B", "B"]))
    assert mechanism(published, neighbours, claimed=Guarantee(1.0, 1e-6, 0.0), draws=2000).refuted


def test_ours_on_the_same_neighbours_is_not_caught():
    """The one person from a country, exchanged: marginals of the declared schema, at mu = 1."""
    from vitrail.explain.marginals import marginals_question
    from vitrail.vault import rehearse

    schema = vt.Schema({"country": vt.Categorical(["A", "B", "Holand-Netherlands"])})

    def run(countries, draws):
        question = marginals_question(schema)
        return rehearse(
            question, {"country": countries}, schema, mu=1.0, n_rows_public=3, draws=draws, neighbours="replace-one"
        )

    neighbours = (np.array(["A", "B", "Holand-Netherlands"]), np.array(["A", "B", "B"]))
    assert not mechanism(run, neighbours, claimed=1.0, draws=20_000, confidence=CONFIDENCE).refuted
    with planted_noise():
        assert mechanism(run, neighbours, claimed=1.0, draws=20_000).tightness > 0.8
