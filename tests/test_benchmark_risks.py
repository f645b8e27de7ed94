"""Pieces of the benchmark of privacy risks: LIME in batches is LIME, sources are combined, draws add up."""

import numpy as np
import pytest

from benchmark_scripts import script
from vitrail.audit import influence_attack

lime = script("papers.risks_lime")
sources = script("papers.risks_sources")
examples = script("papers.risks_examples")


def network(columns):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(columns, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()


def test_the_regression_is_that_of_the_package_on_its_own_sample():
    torch = pytest.importorskip("torch")
    tabular = pytest.importorskip("lime.lime_tabular")
    columns, samples = 12, 400
    bits = (np.random.default_rng(1).uniform(size=(60, columns)) < 0.4).astype(np.float64)
    module = network(columns)

    def predict(points):
        with torch.no_grad():
            return torch.softmax(module(torch.as_tensor(points)), dim=1).numpy()

    def explainer():
        return tabular.LimeTabularExplainer(
            bits, categorical_features=list(range(columns)), discretize_continuous=False, random_state=5
        )

    theirs = explainer().explain_instance(bits[0], predict, top_labels=1, num_features=columns, num_samples=samples)
    ((label, weights),) = theirs.as_map().items()
    kept, drawn = explainer()._LimeTabularExplainer__data_inverse(bits[0], samples)
    ours = lime.weighted_ridge(torch.as_tensor(kept)[None], torch.as_tensor(predict(drawn)[:, label])[None])[0].numpy()
    assert ours[[column for column, _ in weights]] == pytest.approx([weight for _, weight in weights], abs=1e-9)


def test_batches_find_what_the_model_looks_at():
    torch = pytest.importorskip("torch")
    bits = (np.random.default_rng(2).uniform(size=(50, 6)) < 0.5).astype(np.float64)
    weights = torch.zeros((2, 6), dtype=torch.float64)
    weights[1, 2] = 6.0

    def module(points):
        return points @ weights.T - torch.tensor([0.0, 3.0], dtype=torch.float64)

    found = lime.bit_limes(module, bits[:4], bits, 2000, 0, "cpu")
    assert found.shape == (4, 6)
    assert (np.abs(found).argmax(axis=1) == 2).all()
    assert (found[:, 2] > 0.5).all()  # keeping the bit keeps the class, whichever it is


def test_sources_together_are_no_worse_than_the_strongest():
    generator = np.random.default_rng(3)
    half = 300
    labels = generator.integers(0, 2, 2 * half)
    sure = np.where(np.arange(2 * half) < half, 0.95, 0.75) + generator.uniform(-0.05, 0.05, 2 * half)
    predicted = np.where(labels[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])
    noise = generator.normal(size=(2 * half, 4))
    scores = sources.combined_scores(noise, predicted, labels, half, 0, "cpu")
    assert len(scores) == 8
    areas = {name: np.mean(members[:, None] > others[None, :]) for name, (members, others) in scores.items()}
    assert all(len(members) == len(others) == 90 for members, others in scores.values())
    assert 0.35 < areas["explanation"] < 0.65
    assert areas["loss, threshold"] > 0.99
    assert areas["explanation + prediction + loss"] > 0.95


def test_draws_are_pooled_by_people():
    rows = np.arange(12.0).reshape(6, 2)
    audit = influence_attack(lambda points: np.repeat(rows[None, :2], len(points), axis=0), rows, rows[:3] + 0.5)
    row = examples.row_of([audit, audit])
    assert row["found"]["value"] == pytest.approx(2 / 6)
    assert row["accused"] == 0
    assert row["revealed"] == pytest.approx(2 / 6)
    assert row["largest"] == pytest.approx(2 / 6)
