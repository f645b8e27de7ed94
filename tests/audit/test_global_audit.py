"""Global explanations attacked on worst-case neighbours: the joint sums by themselves.

The model is as jagged as can be, so that single rows reach the clips; among many rows the one whose vector is longest is the
one that comes or goes. Claims hold, and are used up as far as that row's length allows: the audit would see a bound that is
wrong by a tenth. What is planned from marginals is planned once here, from rows that are nobody's; whole explainers,
marginals included, are attacked in ``test_every_explainer_audit.py``.
"""

import dataclasses
import functools
import itertools
from unittest import mock

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE, planted_noise
from vitrail.explain.effects import DependenceSummand, EffectsSummand
from vitrail.explain.interactions import plan_pairs
from vitrail.explain.joint_sum import JointSum
from vitrail.explain.permutation_importance import plan_importance
from vitrail.explain.shap_global import plan_shap_dependence, plan_shap_importance
from vitrail.solve.curves.dependence import plan_dependence
from vitrail.solve.curves.importance import loss_of
from vitrail.solve.curves.local_effects import plan_effects
from vitrail.solve.curves.reference import Reference
from vitrail.vault import rehearse
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

DRAWS, MU = 60_000, 1.0
SCHEMA = vt.Schema(
    {"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Categorical(["x", "y"]), "t": vt.Numeric(0, 1, integer=True)}
)
FEATURES = SCHEMA.without("t")
RNG = np.random.default_rng(0)
CROWD = {"a": RNG.random(300), "b": RNG.random(300), "c": RNG.choice(["x", "y"], 300), "t": RNG.integers(0, 2, 300)}


def jagged(features):
    return (np.sin(1e4 * features @ np.array([1.0, 2.0, 3.0, 5.0])) > 0).astype(float)


MODEL = vt.Model(jagged, range=(0, 1), name="jagged")


@functools.cache
def reference():
    """From marginals without noise, so that every run attacks the same rows."""
    data = vt.PrivateData(CROWD, SCHEMA, name="crowd", target="t", n_rows_public=300, budget=vt.Budget(1e4, 1e-6))
    with mock.patch("vitrail.vault.questions.question.rounded_gaussian", lambda sigma, size: np.zeros(size, np.int64)):
        marginals = vt.marginals(data, mu=5.0, bins=10)
    return Reference(FEATURES, MODEL, marginals)


def summand_of(name):
    names, noise = FEATURES.names, 1 / MU / 300
    if name == "partial dependence":
        # Planned for much noise: bounds are then what rows reach, and leave no room that an attack could not fill.
        return DependenceSummand(MODEL, plan_dependence(reference(), names, 0.3, resolution=4))
    if name == "accumulated effects":
        plan = plan_effects(reference(), names, {}, noise * np.sqrt(3))
        return EffectsSummand(MODEL, dataclasses.replace(plan, clips=(0.5, 0.5, 0.5)))
    if name == "permutation importance":
        return plan_importance(reference(), names, loss_of("squared", None, MODEL, SCHEMA, "t", None), 2, 0.5, noise=1e-3)
    if name == "interactions":
        return plan_pairs(reference(), list(itertools.combinations(names, 2)), 3, 2, noise)
    if name == "shap importance":
        return plan_shap_importance(reference(), 2)
    return plan_shap_dependence(reference(), names, 2)


NAMES = [
    "partial dependence",
    "accumulated effects",
    "permutation importance",
    "interactions",
    "shap importance",
    "shap dependence",
]


def as_rows(raw):
    return {
        "a": raw[:, 0], "b": raw[:, 1], "c": np.array(["x", "y"])[raw[:, 2].astype(int)], "t": raw[:, 3].astype(int)
    }  # fmt: skip


def vectors(joint, raw):
    facts = PublicFacts(SCHEMA, "t", len(raw), "add-remove", len(raw))
    predictions = Predictions(facts)
    predictions.admit(MODEL)
    return joint(Block(raw, facts, lambda model, values: predictions.of(model, values, None)))


@functools.cache
def case(name):
    """The question, the rows that are longest and most opposed, and how far they are from nothing and from each other."""
    joint = JointSum((summand_of(name),), (1.0,))
    draw = np.random.default_rng(7)
    raw = np.column_stack([draw.random(256), draw.random(256), draw.integers(0, 2, 256), draw.integers(0, 2, 256)]) + 0.0
    found = vectors(joint, raw)
    longest = int(np.argmax(np.linalg.norm(found, axis=1)))
    apart = np.linalg.norm(found - found[longest], axis=1)
    furthest = int(np.argmax(apart))
    one, other = as_rows(raw[[longest]]), as_rows(raw[[furthest]])
    return joint.question(name), one, other, float(np.linalg.norm(found[longest])), float(apart[furthest]) / 2


NOBODY = {"a": [], "b": [], "c": [], "t": []}


def audit(question, neighbours, relation="add-remove", claimed=MU, draws=DRAWS):
    def run(rows, draws):
        return rehearse(
            question, rows, SCHEMA, mu=MU, n_rows_public=4, draws=draws, target="t", neighbours=relation, block_rows=2
        )

    return vt.audit.mechanism(run, neighbours, claimed, draws=draws, confidence=CONFIDENCE)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_more_is_told_no_better_than_promised(name):
    question, one, _, length, _ = case(name)
    assert length <= 1 + 1e-12
    found = audit(question, (NOBODY, one))
    assert not found.refuted, str(found)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_exchanged_is_told_no_better_than_promised(name):
    question, one, other, _, _ = case(name)
    found = audit(question, (one, other), "replace-one")
    assert not found.refuted, str(found)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_told_as_well_as_they_are_long_and_far_apart(name):
    question, one, other, length, apart = case(name)
    with planted_noise():
        found = audit(question, (NOBODY, one))
        assert found.tightness >= 0.7 * length, str(found)
        found = audit(question, (one, other), "replace-one")
        assert found.tightness >= 0.6 * apart, str(found)


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_that_is_too_small_is_caught(name):
    """The rows above do reach far enough for a bound that is a third too small for them to be seen."""
    question, one, _, length, _ = case(name)
    assert length > 0.6, "these neighbours would test nothing"
    with planted_noise():
        assert audit(question, (NOBODY, one), claimed=0.66 * length * MU).refuted


def test_a_joint_sum_that_trusts_its_summands_is_caught():
    """Without the clip, here and in the vault's bound, importance betrays a row that its clip would have shortened."""
    summand = summand_of("permutation importance")
    plain = summand.contributions
    question, one, _, _, _ = case("permutation importance")
    blown = vt.BoundedSum(
        lambda block: plain(block) / np.array([spec.bound for spec in summand.blocks for _ in range(spec.size)]),
        size=question.size,
        l2_bound=100.0,
    )

    def run(rows, draws):
        # What the vault would add had it been told a bound of 1.
        return rehearse(blown, rows, SCHEMA, mu=100.0 * MU, n_rows_public=4, draws=draws, target="t", block_rows=2)

    with planted_noise():
        assert vt.audit.mechanism(run, (NOBODY, one), MU, draws=DRAWS, confidence=CONFIDENCE).refuted
