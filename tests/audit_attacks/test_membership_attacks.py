"""Membership attacks: leaks that are there are found, none where there is none, and bad input is refused in words."""

import json
import re

import matplotlib as mpl
import numpy as np
import pytest
import torch

import vitrail as vt
from vitrail.audit import Attacker, Target, membership
from vitrail.audit.attacks import joint_online, offline, online
from vitrail.audit.shadow import Networks
from vitrail.errors import InvalidInput

mpl.use("Agg")
torch.set_num_threads(1)

FEATURES, PEOPLE = 100, 150
THRESHOLD = Attacker(attacks=["threshold"])
NETWORKS = Networks(hidden=(32,), epochs=60, batch_size=32, learning_rate=3e-3, n_classes=4)


def population(seed, count):
    """Bits around four class centres, 40 % of them flipped: a network learns its members by heart."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(1).integers(0, 2, (4, FEATURES))
    labels = generator.integers(0, 4, count)
    flipped = generator.uniform(size=(count, FEATURES)) < 0.4
    return np.where(flipped, 1 - centres[labels], centres[labels]).astype(float), labels


@pytest.fixture(scope="module")
def overfitted():
    points, labels = population(2, 2 * PEOPLE)
    target = NETWORKS.fit(points, labels, [np.arange(PEOPLE)])
    model = target.model(0)
    audit = membership(
        Target(model.explain, model.predict, name="gradient"),
        points[:PEOPLE],
        points[PEOPLE:],
        labels=(labels[:PEOPLE], labels[PEOPLE:]),
        attacker=Attacker(shadow=NETWORKS, shadow_models=8),
    )
    return audit, points, labels, model


def row(audit, attack, signal):
    (found,) = [one for one in audit.rows if one.attack == attack and one.signal == signal]
    return found


def test_an_overfitted_network_gives_its_members_away(overfitted):
    audit = overfitted[0]
    assert audit.leaks
    assert row(audit, "threshold", "loss").auc.lower > 0.6
    assert row(audit, "threshold", "explanation variance").auc.lower > 0.55
    assert row(audit, "likelihood ratio, online", "explanation variance").auc.lower > 0.6
    assert audit.best("explanation").source == "explanation"


def test_every_kind_of_attack_has_its_rows(overfitted):
    kinds = {one.attack for one in overfitted[0].rows}
    assert kinds == {
        "threshold", "shadow 1", "shadow 3", "learned", "likelihood ratio, offline", "likelihood ratio, online",
    }  # fmt: skip
    for one in overfitted[0].rows:
        for interval in (one.auc, one.balanced_accuracy, one.tpr_at_1_percent, one.tpr_at_01_percent):
            assert 0 <= interval.lower <= interval.value <= interval.upper <= 1
        assert (one.excess_auc is None) == (one.source == "prediction")


def test_transferred_thresholds_are_close_to_the_best(overfitted):
    audit = overfitted[0]
    for signal in ("loss", "explanation variance"):
        best = row(audit, "threshold", signal).balanced_accuracy.value
        assert best - 0.12 <= row(audit, "shadow 3", signal).balanced_accuracy.value <= best


def test_an_excess_is_the_difference_of_two_rows(overfitted):
    one = row(overfitted[0], "threshold", "explanation L1")
    rival = row(overfitted[0], "threshold", one.compared_with)
    assert one.excess_auc.value == pytest.approx(one.auc.value - rival.auc.value)
    assert one.excess_tpr.value == pytest.approx(one.tpr_at_1_percent.value - rival.tpr_at_1_percent.value)


def test_the_page_and_the_json_stand_alone(overfitted, tmp_path):
    audit = overfitted[0]
    page = audit.report(tmp_path / "audit.html").read_text()
    assert "Membership audit: gradient" in page
    assert 'name="viewport"' in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<script" not in page
    told = json.loads(json.dumps(audit.to_json()))
    assert len(told["rows"]) == len(audit.rows)
    assert told["excess"]["source"] != "prediction"
    figure = audit.plot()
    assert figure.axes[0].get_xscale() == "log"
    assert audit.plot(logarithmic=False).axes[0].get_xscale() == "linear"


def test_explanations_that_know_nothing_are_not_accused():
    """Forty audits of noise: `leaks` is corrected for the number of attacks, so hardly any may say so."""
    accused = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        members, others = generator.normal(size=(2, 200, 5))
        accused += membership(lambda x: x, members, others, attacker=THRESHOLD).leaks
    assert accused <= 8  # 1 expected; nine or more have a chance below 1e-6


def test_a_function_that_trains_one_model_is_a_shadow_too():
    """Nearest neighbours explain a point by its distance to the nearest training row: members have distance 0."""
    points, labels = population(5, 120)

    def train(rows, classes):
        def nearest(asked):
            return np.sqrt(np.square(asked[:, None] - rows[None]).sum(axis=2).min(axis=1))[:, None] + [[0.0, 1e-3]]

        def predict(asked):
            place = np.square(asked[:, None] - rows[None]).sum(axis=2).argmin(axis=1)
            return 0.05 + 0.8 * np.eye(4)[classes[place]]

        return nearest, predict

    explain, predict = train(points[:60], labels[:60])
    audit = membership(
        Target(explain, predict),
        points[:60],
        points[60:],
        labels=(labels[:60], labels[60:]),
        attacker=Attacker(shadow=train, shadow_models=4, attacks=["threshold", "shadow", "likelihood ratio"]),
    )
    assert row(audit, "threshold", "explanation L1").auc.value == 1
    assert row(audit, "shadow 1", "explanation L1").balanced_accuracy.value == 1


def test_reference_people_are_the_attackers_own():
    points, labels = population(6, 300)
    model = NETWORKS.fit(points, labels, [np.arange(60)]).model(0)
    own = points[120:], labels[120:]
    attacker = Attacker(shadow=NETWORKS, shadow_models=4, reference=own, attacks=["shadow", "likelihood ratio"])
    audit = membership(model, points[:60], points[60:120], labels=(labels[:60], labels[60:120]), attacker=attacker)
    assert audit.how["reference"] == 180
    assert {one.members for one in audit.rows} == {60}


def test_counterfactual_distance_is_a_signal():
    generator = np.random.default_rng(7)
    members, others = generator.normal(size=(2, 100, 3))
    shift = {one.tobytes(): 2.0 for one in members}

    def counterfactuals(points):
        found = points + np.array([[shift.get(one.tobytes(), 1.0), 0, 0] for one in points])
        found[0] = np.nan  # nothing found for one person
        return found

    audit = membership(Target(lambda x: x, counterfactuals=counterfactuals), members, others, attacker=THRESHOLD)
    found = row(audit, "threshold", "counterfactual distance")
    assert found.auc.value == 1
    assert found.source == "counterfactual"


# The likelihood ratio by hand


def test_the_likelihood_ratio_is_that_of_two_normal_laws():
    generator = np.random.default_rng(8)
    inside = np.repeat([True, False], 200)[:, None] & np.ones((1, 50), dtype=bool)
    shadows = generator.normal(np.where(inside, -1.0, 1.0), 1.0)
    target = np.linspace(-3, 3, 50)
    assert np.abs(online(target, shadows, inside) - (-2 * target)).mean() < 1.0
    assert np.corrcoef(online(target, shadows, inside), -target)[0, 1] > 0.98
    assert np.corrcoef(offline(target, shadows, inside, -1), -target)[0, 1] > 0.98
    both = joint_online(
        np.stack([target, target]), np.stack([shadows, shadows + generator.normal(size=shadows.shape)]), inside
    )
    assert np.corrcoef(both, -target)[0, 1] > 0.9


def test_a_hard_person_is_not_accused_by_a_likelihood_ratio():
    """Easy people have small signals always, hard ones large ones always; membership takes off two."""
    generator = np.random.default_rng(9)
    people, models = 400, 24
    level = np.where(np.arange(people) % 2, 10.0, 0.0)
    inside = generator.uniform(size=(models, people)) < 0.5
    shadows = level - 2.0 * inside + generator.normal(size=(models, people)) * 0.5
    member = np.arange(people) < people // 2
    target = level - 2.0 * member + generator.normal(size=people) * 0.5
    from vitrail.audit.roc import auc_of

    assert auc_of(-target[member], -target[~member]) < 0.75
    assert auc_of(online(target, shadows, inside)[member], online(target, shadows, inside)[~member]) > 0.97


# Bad input

GOOD = {
    "explain": lambda x: x,
    "members": np.random.default_rng(1).normal(size=(30, 2)),
    "nonmembers": np.random.default_rng(2).normal(size=(30, 2)),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": GOOD["members"][:5]}, "at least 20 people"),
        ({"nonmembers": np.zeros((30, 3))}, "same features"),
        ({"nonmembers": GOOD["members"]}, "same people"),
        ({"members": np.full((30, 2), np.nan)}, "NaN or infinity"),
        ({"members": [["a", "b"]] * 30}, "array of numbers"),
        ({"explain": 3}, "must be a function"),
        ({"explain": lambda x: x[:3]}, "one row for each of the 60"),
        ({"explain": lambda x: [[0.0] * (1 + i % 3) for i in range(len(x))]}, "equally wide"),
        ({"explain": lambda x: np.where(np.arange(len(x))[:, None] == 4, np.nan, x)}, "row 4"),
        ({"explain": lambda x: x[:, :0]}, "without numbers"),
        ({"labels": (np.zeros(30), np.zeros(30))}, "one class only"),
        ({"labels": (np.zeros(29), np.zeros(30))}, "one for each of the 30"),
        ({"labels": (np.full(30, 0.5), np.zeros(30))}, "class numbers"),
        ({"labels": np.zeros(60)}, "a pair"),
        ({"predict": lambda x: x}, "no probabilities"),
        ({"predict": lambda x: np.zeros((len(x), 2, 2))}, "of shape"),
        ({"predict": lambda x: x[:3]}, "one row for each of the 60"),
        ({"predict": lambda x: np.full(len(x), np.nan)}, "NaN"),
        ({"attacks": "loss"}, "attacks names 'loss'"),
        ({"attacks": []}, "attacks is empty"),
        ({"attacks": "likelihood ratio"}, "needs shadow="),
        ({"shadow": NETWORKS}, "need labels"),
        ({"confidence": 1.0}, "confidence is"),
        ({"counterfactuals": lambda x: x[:3]}, "counterfactuals returned shape"),
        ({"counterfactuals": lambda x: x * np.nan}, "no answer for anybody"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(changes, message):
    with pytest.raises(InvalidInput, match=message):
        attacked(**GOOD | changes)


def attacked(explain, members, nonmembers, *, predict=None, counterfactuals=None, labels=None, confidence=0.95, **attacker):
    target = Target(explain, predict, counterfactuals)
    return membership(target, members, nonmembers, labels=labels, attacker=Attacker(**attacker), confidence=confidence)


def test_a_shadow_that_returns_something_else_is_refused():
    half = (np.arange(30) % 2, np.arange(30) % 2)
    with pytest.raises(InvalidInput, match="pair"):
        attacked(**GOOD, labels=half, predict=lambda x: np.full(len(x), 0.5), shadow=lambda x, y: 3)
    with pytest.raises(InvalidInput, match="at least 4"):
        attacked(**GOOD, labels=half, predict=lambda x: np.full(len(x), 0.5), shadow=NETWORKS, shadow_models=2)


def test_a_vitrail_explanation_is_a_target():
    generator = np.random.default_rng(10)
    rows = generator.uniform(size=(300, 2))
    schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
    data = vt.PrivateData(rows, schema, name="rows", n_rows_public=300, budget=vt.Budget(9, 1e-6), ledger="memory")
    local = vt.LocalLinear(data, vt.Model(lambda x: x[:, 0], range=(0, 1))).fit(epsilon=1.0)
    audit = membership(vt.audit.targets.vitrail(local), rows[:40], generator.uniform(size=(40, 2)), attacker=THRESHOLD)
    assert audit.how["width"] == 2
