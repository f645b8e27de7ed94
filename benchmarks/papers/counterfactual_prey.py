"""Whom Table 4 and Figures 5 and 6 of Yang et al. attack: four sets of people, one of which a network was trained on.

As in section 5.3: train and test split are merged, four sets that share nobody are drawn, each is cut in two halves. The
model under attack is trained on one half of the first set, and its vault holds that half; the attacker has the other three
sets, with labels, and trains shadow models on a half of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

import bench_data as datasets
import vitrail as vt
from local_setup import Cache
from papers.counterfactual_cases import DELTA
from vitrail.audit.shadow import Networks

SETS = 4
STEPS, BATCH = 800, 64
"""Steps of every network, whatever the number of its rows."""
HIDDEN = {"adult": (64, 32), "diabetes": (64, 32), "location": (64,)}


@dataclass(frozen=True, eq=False)
class Prey:
    """The model under attack, its rows, and the attacker's people.

    Attributes
    ----------
    features, labels : array
        Of everybody, encoded.
    halves : list of (array, array)
        Of each set, who was trained on and who was not; the first set is that of the model under attack.
    module : torch module
        Features to the probability of class 1, or to probabilities of all classes.
    """

    name: str
    schema: vt.Schema
    frame: pd.DataFrame
    features: np.ndarray
    labels: np.ndarray
    halves: list[tuple[np.ndarray, np.ndarray]]
    module: object
    shadows: object
    sensitive: np.ndarray | None = None

    @cached_property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1

    @cached_property
    def model(self) -> vt.Model | list[vt.Model]:
        return model_of(self.module, self.n_classes)

    def vault(self) -> vt.PrivateData:
        rows = self.frame.iloc[self.halves[0][0]].reset_index(drop=True)
        budget = vt.Budget(50.0, DELTA)
        return vt.PrivateData(rows, self.schema, name=self.name, n_rows_public=len(rows), budget=budget)

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Of every class."""
        import torch

        with torch.no_grad():
            said = self.module(torch.as_tensor(features, dtype=torch.float32)).double().numpy()
        return np.stack([1 - said, said], axis=1) if said.ndim == 1 else said

    def classes(self, features: np.ndarray) -> np.ndarray:
        """What the model says, by its own threshold."""
        said = self.probabilities(features)
        return np.asarray(said.argmax(axis=1) if self.n_classes > 2 else said[:, 1] >= 0.5).astype(np.int64)

    def other_classes(self, features: np.ndarray) -> np.ndarray:
        """The class that a counterfactual leads to: the other one, or the model's second choice."""
        said = self.probabilities(features).copy()
        said[np.arange(len(said)), self.classes(features)] = -1
        return np.asarray(said.argmax(axis=1))

    def attackers(self) -> np.ndarray:
        """The people of the other sets, in an order drawn once."""
        others = np.concatenate([np.concatenate(pair) for pair in self.halves[1:]])
        return np.random.default_rng(3).permutation(others)


def model_of(module: object, n_classes: int) -> vt.Model | list[vt.Model]:
    """As the library takes it: a probability, or one of every class."""
    named: dict[str, Any] = {"range": (0, 1), "inputs": "features", "name": "the network"}
    return vt.Model(module, **named) if n_classes == 2 else [vt.Model(module, output=k, **named) for k in range(n_classes)]


def recipe(name: str, n_classes: int, rows: int, *, deeper: bool = False, seed: int = 0) -> Networks:
    """Networks of the model's architecture, or (``deeper``) with one dense layer more."""
    hidden = HIDDEN[name] + ((HIDDEN[name][-1],) if deeper else ())
    return Networks(
        hidden=hidden,
        activation="tanh",
        epochs=max(1, round(STEPS * BATCH / rows)),
        batch_size=BATCH,
        weight_decay=1e-5,
        n_classes=n_classes,
        seed=seed,
    )


def with_probabilities(logits: Any, n_classes: int) -> object:
    """A trained network as a module of probabilities: of class 1 where there are two classes, as both searches take it."""
    import torch

    layers = list(logits.float().children())
    if n_classes > 2:
        return torch.nn.Sequential(*layers, torch.nn.Softmax(dim=1)).eval()
    last = layers[-1]
    single = torch.nn.Linear(last.in_features, 1)
    with torch.no_grad():
        single.weight.copy_(last.weight[1:] - last.weight[:1])
        single.bias.copy_(last.bias[1:] - last.bias[:1])
    return torch.nn.Sequential(*layers[:-1], single, torch.nn.Sigmoid(), torch.nn.Flatten(0)).eval()


def prey(name: str, folder: Path, cache: Cache, quick: bool = False) -> Prey:
    """``adult``, ``diabetes`` or ``location``."""
    schema, frame, labels, group, sensitive = SOURCES[name](folder)
    people = np.unique(group)
    if quick:
        people = people[: min(len(people), 4_000)]
    parts = np.array_split(np.random.default_rng(0).permutation(people), 2 * SETS)
    size = min(int(np.isin(group, part).sum()) for part in parts)
    rows = [np.flatnonzero(np.isin(group, part))[:size] for part in parts]
    halves = [(rows[2 * place], rows[2 * place + 1]) for place in range(SETS)]
    features = schema.features(schema.read(frame))[0]
    n_classes = int(labels.max()) + 1

    def networks() -> list[object]:
        fitted = recipe(name, n_classes, size).fit(features, labels, [trained for trained, _ in halves])
        return [with_probabilities(one, n_classes) for one in fitted.modules]

    module, *shadows = cast("list[object]", cache.model(f"cf-prey-{name}{'-quick' if quick else ''}", networks))
    return Prey(name, schema, frame, features, labels, halves, module, shadows, sensitive)


Source = tuple[vt.Schema, pd.DataFrame, np.ndarray, np.ndarray, np.ndarray | None]


def _adult(folder: Path) -> Source:
    data = datasets.adult(folder)
    test, positive = datasets.adult_test(folder, data.schema)
    frame = pd.concat([data.frame, test], ignore_index=True)
    labels = np.concatenate([data.positive, positive]).astype(np.int64)
    return data.schema, frame, labels, np.arange(len(frame)), frame["race"].to_numpy()


def _diabetes(folder: Path) -> Source:
    """People are patients: no set has encounters of another's."""
    data, patient = datasets.diabetes(folder)
    return data.schema, data.frame, data.positive.astype(np.int64), patient, data.frame["race"].to_numpy()


def _location(folder: Path) -> Source:
    bits, labels = datasets.location30(folder)
    schema = vt.Schema({f"place {number}": vt.Numeric(0, 1, integer=True) for number in range(bits.shape[1])})
    frame = pd.DataFrame(bits.astype(np.int64), columns=list(schema.names))
    # In the place of Texas's race: the bit that about a third of people have.
    shares = bits.mean(axis=0)
    return schema, frame, labels.astype(np.int64) - 1, np.arange(len(bits)), bits[:, np.abs(shares - 1 / 3).argmin()]


SOURCES = {"adult": _adult, "diabetes": _diabetes, "location": _location}
