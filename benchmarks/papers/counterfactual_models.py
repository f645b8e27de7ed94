"""The models of the counterfactual benchmark: tanh networks and a forest on Adult, a network on Diabetes 130."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np

import bench_data as datasets
import vitrail as vt
from local_setup import Cache
from papers.counterfactual_cases import Case

HIDDEN = (64, 32)


class Forest:
    """Probabilities of class 1."""

    def __init__(self, estimator: object) -> None:
        self._estimator = estimator

    def __call__(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(self._estimator.predict_proba(features)[:, 1])  # type: ignore[attr-defined]


def tanh_network(features: np.ndarray, positive: np.ndarray, epochs: int) -> object:
    """A fully connected tanh network of the probability of class 1, by Adam on batches of 256."""
    import torch

    torch.manual_seed(0)
    sizes = [features.shape[1], *HIDDEN]
    layers: list[torch.nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.Tanh()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1), torch.nn.Sigmoid(), torch.nn.Flatten(0))
    x, y = torch.tensor(features, dtype=torch.float32), torch.tensor(positive, dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-5)
    order = np.random.default_rng(0)
    for _ in range(epochs):
        shuffled = torch.as_tensor(order.permutation(len(x)))
        for start in range(0, len(x), 256):
            some = shuffled[start : start + 256]
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy(network(x[some]), y[some]).backward()
            optimizer.step()
    return network.eval()


class Network:
    """The torch module on arrays."""

    def __init__(self, module: object) -> None:
        self.module = module

    def __call__(self, features: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return self.module(torch.as_tensor(features, dtype=torch.float32)).double().numpy()  # type: ignore[operator]


@cache
def adult(folder: Path, cache_folder: Path, kind: str) -> Case:
    """``network`` or ``forest``: 30 162 rows in the vault, other people from the last two thirds of the test split."""
    data = datasets.adult(folder)
    features = data.schema.features(data.raw)[0]
    test, _ = datasets.adult_test(folder, data.schema)
    kept = Cache(cache_folder)
    if kind == "network":
        module = kept.model("cf-adult-network", lambda: tanh_network(features, data.positive, 12))
        model = vt.Model(module, range=(0, 1), name="the tanh network")
        probability: Network | Forest = Network(module)
    else:
        estimator = kept.model("adult-forest", lambda: datasets.adult_forest(data)[0])
        module = None
        model = vt.Model(estimator, output=1, name="the forest")
        probability = Forest(estimator)
    return Case("adult", data.schema, data.frame, probability, model, test[len(test) // 3 :], 1, module)


@cache
def diabetes(folder: Path, cache_folder: Path) -> Case:
    """A tanh network; patients, not encounters, are split: 70 % in the vault, 20 % to ask about."""
    data, patient = datasets.diabetes(folder)
    _, number = np.unique(patient, return_inverse=True)
    share = np.random.default_rng(0).random(number.max() + 1)[number]
    train = share < 0.7
    features = data.schema.features(data.raw[train])[0]
    kept = Cache(cache_folder)
    module = kept.model("cf-diabetes-network", lambda: tanh_network(features, data.positive[train], 8))
    model = vt.Model(module, range=(0, 1), name="the tanh network")
    frame = data.frame
    rows, test = (part.reset_index(drop=True) for part in (frame[train], frame[share >= 0.8]))
    return Case("diabetes", data.schema, rows, Network(module), model, test, 0, module)
