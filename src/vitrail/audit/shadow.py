"""Many small networks of one architecture, trained at once: shadow models for the price of a few.

Weights are stacked over networks, layer by layer as (models, inputs, outputs), so that a step is one batched matrix product
per layer. Losses are summed over networks, and no weight touches two of them: every network gets the gradient that it would
get alone, and optimisers that work weight by weight (SGD, Adagrad, Adam) take the same steps. What is saved is overhead,
which is nearly everything for small networks on small batches, and the idle width of a GPU.

Explanations and predictions are computed in double precision: a saturated network's gradients are differences of numbers
close to 1, and an attacker would see rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from .._types import Bools, Floats
from ..errors import InvalidInput
from ..progress import Advance, progress
from .signals import LabelArray, class_labels
from .targets import Adapter, Target, gradient, predictions

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from torch.nn import Module

Optimizer = Literal["adam", "adagrad", "sgd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """How to train fully connected networks, any number at once.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    activation : {"tanh", "relu"}
    epochs, batch_size : int
        Passes over each network's rows, and rows per step.
    optimizer : {"adam", "adagrad", "sgd"}
    learning_rate, learning_rate_decay, weight_decay : float
        As in torch.optim; ``learning_rate_decay`` is Adagrad's.
    explain : callable
        The explanation that ``model(i)`` offers: an adapter of ``vitrail.audit.targets`` for torch modules, such as
        ``integrated_gradients``, or ``functools.partial(smooth_gradient, samples=10)``.
    n_classes : int, optional
        Public; by default read off the labels.
    device : str
        Where torch computes: ``"cpu"``, ``"cuda"``.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> points = generator.normal(size=(200, 5))
    >>> labels = (points[:, 0] > 0).astype(int)
    >>> halves = [generator.permutation(200)[:100] for _ in range(8)]
    >>> trained = Networks(hidden=(8,), epochs=5).fit(points, labels, halves)
    >>> trained.predict(points).shape, trained.explain(points).shape
    ((8, 200, 2), (8, 200, 5))
    """

    hidden: tuple[int, ...] = (64,)
    activation: Literal["tanh", "relu"] = "tanh"
    epochs: int = 20
    batch_size: int = 32
    optimizer: Optimizer = "adam"
    learning_rate: float = 1e-3
    learning_rate_decay: float = 0.0
    weight_decay: float = 0.0
    explain: Adapter = gradient
    n_classes: int | None = None
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.choice("activation", self.activation, ("tanh", "relu"))
        _checks.choice("optimizer", self.optimizer, ("adam", "adagrad", "sgd"))
        if not callable(self.explain):
            raise InvalidInput(f"explain is {self.explain!r}; give an adapter, such as vitrail.audit.targets.gradient")
        for name, value in (("epochs", self.epochs), ("batch_size", self.batch_size), *(("hidden", n) for n in self.hidden)):
            _checks.whole(name, value)

    def fit(self, points: object, labels: object, chosen: Sequence[LabelArray], *, weights: object = None) -> Trained:
        """Train one network on each choice of rows; choices must be equally large.

        Parameters
        ----------
        points : array (rows, features)
        labels : array (rows,) of class numbers
        chosen : sequence of index arrays
            Which rows each network is trained on.
        weights : array (rows,), optional
            How much each row counts.
        """
        import torch

        x = _flat(points).astype(np.float32, order="C")  # rows are gathered, whatever the order of the points
        y = class_labels(labels, len(x), "the shadow models' rows")
        sizes = {len(rows) for rows in chosen}
        if len(sizes) != 1 or sizes == {0}:
            raise InvalidInput(
                f"the networks' rows are {len(chosen)} sets of {min(sizes, default=0)} to {max(sizes, default=0)} rows; "
                "they must be equally large, so that all networks take the same steps"
            )

        def tensor(values: NDArray[np.generic]) -> Tensor:
            return torch.as_tensor(values, device=self.device)

        generator = torch.Generator(device=self.device).manual_seed(self.seed)
        widths = (x.shape[1], *self.hidden, self.n_classes or int(y.max()) + 1)
        matrices = glorot(len(chosen), widths, self.device, generator)
        index = tensor(np.stack([np.asarray(rows, dtype=np.int64) for rows in chosen]))
        counts = tensor(np.ones(len(x), dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32))
        with progress("training shadow models", self.epochs) as advance:
            descend(matrices, (tensor(x), tensor(y), counts), index, self, generator, advance)
        doubles = [matrix.detach().double() for matrix in matrices]
        return Trained(tuple(as_module(doubles, model, self.activation) for model in range(len(chosen))), self)


@dataclass(frozen=True, slots=True)
class Trained:
    """Networks that ``Networks.fit`` trained: torch modules that return logits, in doubles."""

    modules: tuple[Module, ...]
    recipe: Networks

    def predict(self, points: object) -> Floats:
        """Class probabilities (models, people, classes)."""
        rows = _flat(points)
        return np.stack([predictions(module)(rows) for module in self.modules])

    def explain(self, points: object, adapter: Adapter | None = None) -> Floats:
        """Explanations (models, people, features), by the recipe's adapter or another."""
        chosen, rows = adapter or self.recipe.explain, _flat(points)
        return np.stack([chosen(module)(rows) for module in self.modules])

    def accuracy(self, points: object, labels: object) -> Floats:
        """The share of rows that each network classifies rightly."""
        right = self.predict(points).argmax(axis=2) == np.asarray(labels)[None, :]
        return np.asarray(right.mean(axis=1), dtype=np.float64)

    def only(self, index: int) -> Trained:
        """One of the networks."""
        return Trained(self.modules[index : index + 1], self.recipe)

    def model(self, index: int) -> Target:
        """One of the networks as a target of attacks."""
        alone = self.only(index)
        return Target(lambda points: alone.explain(points)[0], lambda points: alone.predict(points)[0])


def _flat(points: object) -> Floats:
    rows = np.asarray(points, dtype=np.float64)
    return rows.reshape(len(rows), -1)


STARTS = 5
# Standardised features are cut here: one saturated network's outlier would blind an attacker.
LARGEST_SCORE = 8.0


def votes(recipe: Networks, known: Floats, classes: LabelArray, asked: Floats, *, balanced: bool = False) -> Floats:
    """Class probabilities (networks, asked, classes) by networks of several starts; one start alone is noisy on few rows.

    Features are standardised on the ``known`` rows. With ``balanced`` every class counts the same, whatever its size.
    """
    centre, scale = known.mean(axis=0), known.std(axis=0)

    def standard(rows: Floats) -> Floats:
        scores = (rows - centre) / np.where(scale > 0, scale, 1.0)
        return np.asarray(np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE), dtype=np.float64)

    counts = np.bincount(classes)
    weights = (len(known) / (len(counts) * np.maximum(counts, 1)))[classes] if balanced else None
    trained = recipe.fit(standard(known), classes, [np.arange(len(known))] * STARTS, weights=weights)
    return trained.predict(standard(asked))


def some_of_each(classes: LabelArray, share: float, seed: int) -> Bools:
    """A random share of every class, as a mask: whom an attacker learns from."""
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(classes), dtype=np.bool_)
    for value in range(int(classes.max()) + 1):
        people = generator.permutation(np.flatnonzero(classes == value))
        chosen[people[: int(share * len(people))]] = True
    return chosen


def halves(models: int, rows: int, size: int, seed: int) -> tuple[list[LabelArray], Bools]:
    """Random choices of ``size`` rows, paired so that every row is in as many as it is out of; and who is in which.

    With ``size`` half of the rows, models come in pairs that take complementary halves.
    """
    generator = np.random.default_rng(seed)
    chosen: list[LabelArray] = []
    while len(chosen) < models:
        order = generator.permutation(rows)
        chosen.append(np.sort(order[:size]))
        if 2 * size <= rows and len(chosen) < models:
            chosen.append(np.sort(order[-size:]))
    return chosen, np.stack([np.isin(np.arange(rows), some) for some in chosen])


def as_targets(shadow: object, points: Floats, labels: LabelArray, chosen: Sequence[LabelArray]) -> list[Target]:
    """Shadow models by whatever ``shadow`` is: networks, trained at once, or a function that trains one model."""
    if isinstance(shadow, Networks):
        trained = shadow.fit(points, labels, chosen)
        return [trained.model(index) for index in range(len(chosen))]
    if not callable(shadow):
        raise InvalidInput(
            f"shadow is {type(shadow).__name__}; give a function train(points, labels) -> (explain, predict), or "
            "vitrail.audit.shadow.Networks(...)"
        )
    targets = []
    with progress("training shadow models", len(chosen)) as advance:
        for rows in chosen:
            made = shadow(points[rows], labels[rows])
            target = Target(*made) if isinstance(made, tuple | list) and len(made) == 2 else made
            if not (isinstance(target, Target) and callable(target.explain) and callable(target.predict)):
                raise InvalidInput(
                    f"shadow returned {type(made).__name__}; it must return a pair (explain, predict) of functions of "
                    "points, or a vitrail.audit.Target that has both"
                )
            targets.append(target)
            advance(1)
    return targets


# Training, all networks at once


def glorot(models: int, widths: Sequence[int], device: str, generator: Generator) -> list[Tensor]:
    """Glorot uniform weights and zero biases: W1, b1, W2, b2, ..., each (models, ., .)."""
    import torch

    matrices = []
    for inputs, outputs in pairwise(widths):
        reach = math.sqrt(6 / (inputs + outputs))
        weight = torch.zeros((models, inputs, outputs), device=device).uniform_(-reach, reach, generator=generator)
        matrices += [weight, torch.zeros((models, 1, outputs), device=device)]
    return matrices


def as_module(matrices: Sequence[Tensor], model: int, activation: str) -> Module:
    """One of the networks as a torch module that returns logits."""
    import torch

    layers: list[Module] = []
    for weight, bias in zip(matrices[::2], matrices[1::2], strict=True):
        linear = torch.nn.Linear(*weight.shape[1:], device="meta")  # without weights of its own
        linear.weight, linear.bias = torch.nn.Parameter(weight[model].T), torch.nn.Parameter(bias[model, 0])
        layers += [linear, torch.nn.Tanh() if activation == "tanh" else torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def forward(matrices: Sequence[Tensor], points: Tensor, activation: str) -> Tensor:
    """Logits (models, people, classes) of points (models, people, features)."""
    import torch

    for layer in range(0, len(matrices), 2):
        if layer:
            points = points.tanh() if activation == "tanh" else points.relu()
        points = torch.baddbmm(matrices[layer + 1], points, matrices[layer])
    return points


def descend(
    matrices: Sequence[Tensor],
    data: tuple[Tensor, Tensor, Tensor],
    index: Tensor,
    how: Networks,
    generator: Generator,
    advance: Advance,
) -> None:
    """Train in place: network i on the rows ``index[i]`` of points, classes and row weights, each epoch in its own order."""
    import torch

    points, classes, counts = data
    for matrix in matrices:
        matrix.requires_grad_(True)
    optimizer: torch.optim.Optimizer
    rates = {"lr": how.learning_rate, "weight_decay": how.weight_decay}
    if how.optimizer == "adagrad":
        optimizer = torch.optim.Adagrad(matrices, lr_decay=how.learning_rate_decay, **rates)
    else:
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        optimizer = kinds[how.optimizer](matrices, fused=True, **rates)
    for _ in range(how.epochs):
        order = torch.rand(index.shape, generator=generator, device=index.device).argsort(dim=1)
        for batch in index.gather(1, order).split(how.batch_size, dim=1):
            rows = points.index_select(0, batch.ravel()).unflatten(0, batch.shape)  # much quicker than points[batch]
            logits = forward(matrices, rows, how.activation)
            losses = torch.nn.functional.cross_entropy(logits.mT, classes[batch], reduction="none")
            optimizer.zero_grad()
            (losses * counts[batch]).mean(dim=1).sum().backward()
            optimizer.step()
        advance(1)
