"""The pure functions behind copies of a model, other people's methods and autoencoders of several layers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from benchmark_scripts import script

torch = pytest.importorskip("torch")
attacks = script("papers.counterfactual_attacks")
inference = script("papers.counterfactual_inference")
prey = script("papers.counterfactual_prey")
peers = script("papers.counterfactual_peers")
layers = script("papers.counterfactual_layers")
published = script("yang_published", "benchmarks/papers")
cadex = script("peers.cadex")
variational = script("peers.variational")

SCHEMA = vt.Schema({"size": vt.Numeric(0, 10, integer=True), "weight": vt.Numeric(0, 1), "kind": vt.Categorical(["a", "b"])})


def module_of(weights, bias):
    """A torch module of the probability of class 1."""
    layer = torch.nn.Linear(len(weights), 1)
    with torch.no_grad():
        layer.weight[:] = torch.tensor([weights])
        layer.bias[:] = bias
    return torch.nn.Sequential(layer, torch.nn.Sigmoid(), torch.nn.Flatten(0)).eval()


MODULE = module_of([8.0, 2.0, 0.0, 1.0], -6.0)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.integers(0, 11, 400), "weight": rng.random(400), "kind": rng.choice(["a", "b"], 400)})
    features = SCHEMA.features(SCHEMA.read(frame))[0]
    labels = (features[:, 0] > 0.5).astype(np.int64)
    halves = [(np.arange(place * 50, place * 50 + 25), np.arange(place * 50 + 25, place * 50 + 50)) for place in range(4)]
    return prey.Prey("small", SCHEMA, frame, features, labels, halves, MODULE, [MODULE] * 3, frame["kind"].to_numpy())


# --- whom is attacked ----------------------------------------------------------------------------------------------------


def test_the_attackers_people_are_nobody_of_the_first_set(people):
    drawn = people.attackers()
    assert len(drawn) == len(set(drawn)) == 150
    assert not set(drawn) & {*people.halves[0][0], *people.halves[0][1]}


def test_the_other_class_is_the_second_choice(people):
    classes, others = people.classes(people.features), people.other_classes(people.features)
    assert (classes + others == 1).all()
    many = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(dim=1))
    three = replace(people, module=many, labels=np.arange(400) % 3)
    said = three.probabilities(three.features)
    assert (three.other_classes(three.features) == np.argsort(said, axis=1)[:, 1]).all()


def test_a_network_of_logits_becomes_one_of_probabilities():
    logits = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()
    x = torch.rand(6, 4)
    expected = torch.softmax(logits(x.double()), dim=1)[:, 1].detach().numpy()
    assert prey.with_probabilities(logits, 2)(x).detach().numpy() == pytest.approx(expected, abs=1e-5)


# --- copies --------------------------------------------------------------------------------------------------------------


def test_answers_are_labelled_as_asked_for_or_as_the_model_says(people):
    queries = people.features[:3]
    answers = np.stack([np.ones(4), np.zeros(4), np.full(4, np.nan)])
    asked = attacks.Told("x", None, [answers], attacks.ASKED).pairs(people, queries, 0)
    said = attacks.Told("x", None, [answers], attacks.SAID).pairs(people, queries, 0)
    assert (asked[0] == said[0]).all()
    assert (asked[0][2] == queries[2]).all()  # no answer: the query stands again, with its own class
    assert asked[1].tolist() == [*people.other_classes(queries[:2]), people.classes(queries)[2]]
    assert said[1].tolist() == [1, 0, people.classes(queries)[2]]


def test_gain_is_over_copies_of_the_same_draws():
    alone = np.array([0.8, 0.7, 0.6])
    found = attacks.cell(np.array([0.9, 0.8]), np.array([0.5, 0.6]), alone)
    assert found["gain"] == pytest.approx(0.1)
    assert found["gain_se"] == pytest.approx(0.0)
    assert found["agreement"] == pytest.approx(0.85)


def test_copies_of_many_queries_agree_with_the_model(people, monkeypatch):
    monkeypatch.setattr(prey, "STEPS", 150)
    named = replace(people, name="adult")
    draws = [people.attackers()]
    made = attacks.copies(named, draws, 75, None, deeper=False)
    agreed, _ = attacks.agreement(named, made, np.arange(400))
    assert len(agreed) == attacks.STARTS
    assert agreed.min() > 0.85
    each = made.each()
    assert each[1](people.features) == pytest.approx(made.predict(people.features)[1])


def test_ours_in_parts_are_ours_together(people, tmp_path, monkeypatch):
    data = vt.PrivateData(people.frame, SCHEMA, name="p", n_rows_public=400, budget=vt.Budget(9, 1e-6), ledger="memory")
    fitted = vt.Counterfactual(data, prey.model_of(MODULE, 2)).fit(epsilon=5)
    monkeypatch.setattr(attacks, "WORKERS", 1)
    together = attacks.first_answers(people, fitted, np.arange(140))
    part = attacks._elsewhere(
        fitted.save(tmp_path / "p.cf"), MODULE, 2, people.frame.iloc[70:140].reset_index(drop=True), {}
    )
    assert np.array_equal(part, together[70:], equal_nan=True)
    assert np.isfinite(part).all(axis=1).mean() > 0.9


# --- inference -----------------------------------------------------------------------------------------------------------


def test_what_an_attack_sees_of_a_person():
    seen = inference.seen(np.array([[0.2, 0.8], [0.9, 0.1]]), np.array([0, 0]))
    assert np.exp(seen) == pytest.approx(np.array([[0.8, 0.2, 0.2], [0.9, 0.1, 0.9]]), abs=1e-5)


# --- other methods -------------------------------------------------------------------------------------------------------


def test_cadex_changes_few_columns_and_flips(people):
    queries = people.features[people.classes(people.features) == 0]
    found = cadex.counterfactuals(SCHEMA, MODULE, queries, np.ones(len(queries), dtype=int), columns=1)
    there = np.isfinite(found).all(axis=1)
    assert there.mean() > 0.8
    assert (people.classes(found[there]) == 1).all()
    assert (np.abs(found[there] - queries[there])[:, 1:] == 0).all()  # size is what counts most
    assert found[there] == pytest.approx(cadex.on_schema(SCHEMA, found[there]))


def test_cadex_says_nothing_where_nothing_flips(people):
    never = module_of([1.0, 0.0, 0.0, 0.0], -50.0)
    assert np.isnan(cadex.counterfactuals(SCHEMA, never, people.features[:4], np.ones(4, dtype=int))).all()


def test_codes_are_searched_in_shells_and_by_descent(people):
    made = variational.trained(SCHEMA, people.features, epochs=30, hidden=8, latent=3)
    queries = people.features[people.classes(people.features) == 0][:12]
    wanted = np.ones(len(queries), dtype=int)
    several = variational.by_shells(made, MODULE, queries, wanted, total=3)
    single = variational.by_descent(made, MODULE, queries, wanted)
    for found in (several[:, 0], single):
        there = np.isfinite(found).all(axis=1)
        assert there.mean() > 0.5
        assert (people.classes(found[there]) == 1).all()
    distance = np.linalg.norm(several - queries[:, None], axis=2)
    assert len({tuple(row) for row in several[0] if np.isfinite(row).all()}) == np.isfinite(distance[0]).sum()


def test_answers_that_stand_twice_count_once():
    assert np.isnan(peers.different(np.array([[[1.0], [1.0], [2.0]]]))[0, 1, 0])


# --- autoencoders of several layers --------------------------------------------------------------------------------------


def test_several_layers_learn_something_where_there_is_hardly_noise():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((300, 1)) < 0.5, 0.9, 0.1) * np.ones(6)
    made = layers.published_layers(rows, (8, 4), 1e6, rng, 120)
    assert ((made.reconstructed(rows) - rows) ** 2).mean() < rows.var() / 4


def test_the_published_search_may_begin_elsewhere():
    dpc = published.PublishedDPC(np.eye(4), np.full((2, 4), 0.5))
    queries, wanted = np.full((1, 4), 0.5), np.array([1])
    usual = published.published_search(dpc, MODULE, queries, wanted, steps=5)
    same = published.published_search(dpc, MODULE, queries, wanted, steps=5, begin=np.zeros((1, 4)))
    other = published.published_search(dpc, MODULE, queries, wanted, steps=5, begin=np.full((1, 4), -0.5))
    assert usual == pytest.approx(same)
    assert np.abs(usual - other).max() > 0.01
